#include "base/scan.h"

#include <assert.h>

/* Every schema and scalar function is read at the start of a compilation, a character at a time:
 * texts are so short that calls of <string.h> would take longer than they read. */

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

void scan_blanks(const char **s)
{
	while (is_blank(**s))
		++*s;
}

bool scan_accept(const char **s, const char *t)
{
	scan_blanks(s);
	const char *p = *s;
	while (*t && *p == *t)
		p++, t++;
	if (*t)
		return false;
	*s = p;
	return true;
}

bool scan_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_of_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || scan_is_digit(c);
}

size_t scan_word(const char *s)
{
	size_t n = 0;
	while (is_of_word(s[n]) && !scan_is_digit(*s))
		n++;
	return n;
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
