/* Writing JSON. */
#include <math.h>

#include "tool.h"

static void text(Json *j, const char *s)
{
	fputc('"', j->f);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fprintf(j->f, "\\%c", *s);
		else if ((unsigned char)*s < 32)
			fprintf(j->f, "\\u%04x", (unsigned)*s);
		else
			fputc(*s, j->f);
	}
	fputc('"', j->f);
}

static void begin(Json *j, const char *key)
{
	if (j->comma)
		fputc(',', j->f);
	if (j->depth)
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
	j->depth--;
	fprintf(j->f, "\n%*s%c", 2 * j->depth, "", bracket);
	j->comma = true;
	if (!j->depth)
		fputc('\n', j->f);
}

void json_string(Json *j, const char *key, const char *value)
{
	begin(j, key);
	text(j, value);
}

void json_number(Json *j, const char *key, double value)
{
	begin(j, key);
	if (!isfinite(value))
		text(j, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
	else if (value == floor(value) && fabs(value) < 1e15)
		fprintf(j->f, "%.0f", value);
	else
		fprintf(j->f, "%.9g", value);
}

void json_bool(Json *j, const char *key, bool value)
{
	begin(j, key);
	fputs(value ? "true" : "false", j->f);
}
