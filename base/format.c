#include "base/format.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct {
	char *to;
	size_t size, n; /* of `to`, with the byte that ends it; what was put, also beyond that */
} Output;

static size_t left(const Output *o)
{
	return o->n < o->size ? o->size - o->n : 0;
}

static void put(Output *o, const char *s, size_t n)
{
	const size_t most = left(o);
	if (most)
		memcpy(o->to + o->n, s, n < most ? n : most);
	o->n += n;
}

static void put_string(Output *o, const char *s)
{
	s = s ? s : "(null)";
	put(o, s, strlen(s));
}

static void put_number(Output *o, bool negative, uint64_t v)
{
	char digit[21], *end = digit + sizeof digit, *p = end;
	do
		*--p = (char)('0' + v % 10);
	while (v /= 10);
	if (negative)
		*--p = '-';
	put(o, p, (size_t)(end - p));
}

static void put_signed(Output *o, int64_t v)
{
	put_number(o, v < 0, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

/* Puts what follows a %; returns how many characters of the format that takes. 0: it is none of
 * those that are done here. */
static size_t put_argument(Output *o, const char *fmt, va_list *args)
{
	switch (*fmt) {
	case '%': put(o, fmt, 1); return 1;
	case 'c': put(o, &(char){(char)va_arg(*args, int)}, 1); return 1;
	case 's': put_string(o, va_arg(*args, const char *)); return 1;
	case 'u': put_number(o, false, va_arg(*args, unsigned)); return 1;
	case 'd': put_signed(o, va_arg(*args, int)); return 1;
	case 'l': break;
	default: return 0;
	}
	switch (fmt[1]) {
	case 'u': put_number(o, false, va_arg(*args, unsigned long)); return 2;
	case 'd': put_signed(o, va_arg(*args, long)); return 2;
	default: return 0;
	}
}

/* Returns what of the format is not done here, "" if all is. */
static const char *put_most(Output *o, const char *fmt, va_list *args)
{
	for (;;) {
		const size_t n = strcspn(fmt, "%");
		put(o, fmt, n);
		fmt += n;
		const size_t done = *fmt ? put_argument(o, fmt + 1, args) : 0;
		if (!done)
			return fmt;
		fmt += 1 + done;
	}
}

int format_text(char *to, size_t size, const char *fmt, va_list args)
{
	Output o = {to, size, 0};
	va_list rest;
	va_copy(rest, args);
	const char *others = put_most(&o, fmt, &rest);
	int n = *others ? vsnprintf(left(&o) ? to + o.n : NULL, left(&o), others, rest) : 0;
	va_end(rest);
	if (n < 0 || o.n + (size_t)n > INT32_MAX)
		return -1;
	if (size)
		to[o.n + (size_t)n < size ? o.n + (size_t)n : size - 1] = 0;
	return (int)(o.n + (size_t)n);
}
