/* Writing JSON. */
#include <math.h>

#include "tools/tool.h"

/* Returns the code point at *s, which moves behind it; U+FFFD for what is no UTF-8. */
static uint32_t next_code_point(const unsigned char **s)
{
	uint32_t c = *(*s)++;
	int more = c < 0x80 ? 0 : c >> 5 == 6 ? 1 : c >> 4 == 14 ? 2 : c >> 3 == 30 ? 3 : -1;
	if (more < 0)
		return 0xfffd;
	if (more)
		c &= 0x3fu >> more;
	for (int k = 0; k < more; k++) {
		if (**s >> 6 != 2)
			return 0xfffd;
		c = c << 6 | (*(*s)++ & 0x3f);
	}
	return c > 0x10ffff || c >> 11 == 0x1b ? 0xfffd : c;
}

void print_escaped(FILE *f, const char *text)
{
	for (const unsigned char *s = (const unsigned char *)text; *s;) {
		uint32_t c = next_code_point(&s);
		if (c == '"' || c == '\\')
			fprintf(f, "\\%c", (int)c);
		else if (c >= 32 && c < 127)
			fputc((int)c, f);
		else if (c < 0x10000)
			fprintf(f, "\\u%04x", (unsigned)c);
		else
			fprintf(f, "\\u%04x\\u%04x", (unsigned)(0xd7c0 + (c >> 10)),
				(unsigned)(0xdc00 + (c & 0x3ff)));
	}
}

static void text(Json *j, const char *s)
{
	fputc('"', j->f);
	print_escaped(j->f, s);
	fputc('"', j->f);
}

/* Whether members of the innermost object or list begin lines of their own. */
static bool begins_line(const Json *j)
{
	return !j->line_from || j->depth <= j->line_from;
}

static void begin(Json *j, const char *key)
{
	if (j->comma)
		fputc(',', j->f);
	if (j->depth && begins_line(j))
		fprintf(j->f, "\n%*s", 2 * j->depth, "");
	if (key) {
		text(j, key);
		fputs(": ", j->f);
	}
	j->comma = true;
}

void json_open(Json *j, const char *key, char bracket)
{
	begin(j, key);
	fputc(bracket, j->f);
	j->depth++;
	j->comma = false;
}

void json_close(Json *j, char bracket)
{
	const bool line = begins_line(j);
	j->depth--;
	if (line)
		fprintf(j->f, "\n%*s", 2 * j->depth, "");
	fputc(bracket, j->f);
	j->comma = true;
	if (!j->depth)
		fputc('\n', j->f);
}

void json_put_string(Json *j, const char *key, const char *value)
{
	begin(j, key);
	text(j, value);
}

void json_put_number(Json *j, const char *key, double value)
{
	begin(j, key);
	if (!isfinite(value))
		text(j, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
	else if (value == floor(value) && fabs(value) < 1e15)
		fprintf(j->f, "%.0f", value);
	else
		fprintf(j->f, "%.9g", value);
}

void json_put_bool(Json *j, const char *key, bool value)
{
	begin(j, key);
	fputs(value ? "true" : "false", j->f);
}
