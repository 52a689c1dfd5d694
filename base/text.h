/* A text buffer that grows in an arena. Always NUL-terminated. */
#ifndef WEFT_BASE_TEXT_H
#define WEFT_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

typedef struct {
	Arena *arena;
	char *data;
	size_t n, cap;
} Text;

void text_init(Text *, Arena *);
void text_add(Text *, const char *s);
void text_addn(Text *, const char *s, size_t n);
void text_char(Text *, char c);
void text_printf(Text *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text_vprintf(Text *, const char *fmt, va_list);
/* Appends s for use in a format of printf: doubles percent signs. */
void text_format(Text *, const char *s);
/* Appends the shortest decimal that reads back as the same double; inf, -inf and nan by name. */
void text_double(Text *, double v);
/* Writes the text to a file, whole or not at all (temporary file and rename). Returns false and
 * sets errno on failure. */
bool text_write_file(const Text *, const char *path);
/* Whether s is an identifier of C and of Python: letters, digits and _, no digit first. */
bool text_is_identifier(const char *);

#endif
