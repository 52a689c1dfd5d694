/* A text buffer that grows in an arena: n bytes at `data`, always NUL-terminated. `data` may move
 * when the text grows. The text_ functions append to a text that text_init has made empty. */
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

/* Makes the text empty. Its memory comes from the arena. */
void text_init(Text *, Arena *);
/* Appends a string, which is not NULL and not part of the text. */
void text_add(Text *, const char *s);
/* Appends the n bytes at s. */
void text_addn(Text *, const char *s, size_t n);
/* Appends a character. */
void text_char(Text *, char c);
/* Appends what printf would print. */
void text_printf(Text *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Appends what vprintf would print. */
void text_vprintf(Text *, const char *fmt, va_list);
/* Appends s for use in a format of printf: doubles percent signs. */
void text_format(Text *, const char *s);
/* Appends the shortest decimal that reads back as the same double, with a point or an exponent
 * ("1.0", "1e+20"); or "inf", "-inf", "nan". Independent of the locale. */
void text_double(Text *, double v);
/* Writes the text to a file, whole or not at all (temporary file and rename), and replaces a file
 * or symbolic link of that name. Devices and pipes are written to directly. Returns false and sets
 * errno on failure. */
bool text_write_file(const Text *, const char *path);
/* Whether s ends with `end`, or is `end`. */
bool text_ends(const char *s, const char *end);
/* Whether s is formed as an identifier of C and of Python: letters and digits of ASCII and _, at
 * least one, no digit first. Keywords count. */
bool text_is_identifier(const char *);

#endif
