/* Formatted text. */
#ifndef WEFT_BASE_FORMAT_H
#define WEFT_BASE_FORMAT_H

#include <stdarg.h>
#include <stddef.h>

/* Prints as vsnprintf does, in a fraction of its time where a format has only %s, %c, %u, %d, %lu,
 * %ld and %%. Nearly all have, and a fifth of the instructions that compile a small model were
 * those of vsnprintf. */
int format_text(char *to, size_t size, const char *fmt, va_list args)
	__attribute__((format(printf, 3, 0)));

#endif
