#include "base/scan.h"

#include <assert.h>
#include <string.h>

void scan_blanks(const char **s)
{
	*s += strspn(*s, " \t\n\v\f\r");
}

bool scan_accept(const char **s, const char *t)
{
	size_t n = strlen(t);
	scan_blanks(s);
	if (strncmp(*s, t, n) != 0)
		return false;
	*s += n;
	return true;
}

bool scan_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

size_t scan_word(const char *s)
{
	static const char of[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
	return scan_is_digit(*s) ? 0 : strspn(s, of);
}

bool scan_number(const char **s, uint64_t most, uint64_t *out)
{
	const char *p = *s;
	for (*out = 0; scan_is_digit(*p); p++) {
		uint64_t digit = (uint64_t)(*p - '0');
		if (digit > most || *out > (most - digit) / 10)
			return false;
		*out = *out * 10 + digit;
	}
	*s = p;
	return true;
}

const ScanInfix *scan_infix(const ScanInfix *table, const char **s)
{
	const char *p = *s;
	for (; table->text; table++)
		if (scan_accept(&p, table->text)) {
			*s = p;
			return table;
		}
	return NULL;
}

/* Reads an expression of operators that bind as closely as `least` or closer. */
static bool climb(const ScanGrammar *g, const char **s, void *reader, int least, void *left)
{
	_Alignas(max_align_t) char right[SCAN_VALUE];
	assert(g->size <= SCAN_VALUE);
	scan_blanks(s);
	const char *from = *s;
	if (!g->operand(reader, left))
		return false;
	for (;;) {
		const char *before = *s;
		const ScanInfix *i = scan_infix(g->infix, s);
		if (!i || i->binds < least || i->stays)
			*s = before;
		if (!i || i->binds < least)
			return true;
		if (!climb(g, s, reader, i->binds + 1, right) ||
		    !g->join(reader, i->op, from, left, right))
			return false;
	}
}

bool scan_expression(const ScanGrammar *g, const char **s, void *reader, void *value)
{
	return climb(g, s, reader, 1, value);
}
