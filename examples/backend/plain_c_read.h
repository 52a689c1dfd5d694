/* Reads the text of loop IR word by word; types, names and memory of plain_c.c, the only file that
 * includes this one. */
#ifndef PLAIN_C_READ_H
#define PLAIN_C_READ_H

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft_backend.h"

/* ---- types ---- */

typedef enum { F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, BOOL, ADDRESS, TYPES } Type;

static const struct {
	const char *name, *c;
} types[TYPES] = {{"f32", "float"},    {"f64", "double"},   {"i8", "int8_t"},
		  {"i16", "int16_t"},  {"i32", "int32_t"},  {"i64", "int64_t"},
		  {"u8", "uint8_t"},   {"u16", "uint16_t"}, {"u32", "uint32_t"},
		  {"u64", "uint64_t"}, {"bool", "uint8_t"}, {"address", "char *"}};

static bool is_float(Type t)
{
	return t <= F64;
}

static bool is_integer(Type t)
{
	return t >= I8 && t <= U64;
}

/* ---- text and memory ---- */

typedef struct {
	char *data;
	size_t n, room;
} Text;

/* Memory that is freed at the end of `emit`. */
typedef struct Block {
	struct Block *next;
} Block;

typedef struct {
	const char *name;
	Type type;
} Name;

typedef struct {
	Name *data;
	uint32_t n, room;
} Names;

/* An expression in C. */
typedef struct {
	const char *text;
	Type type;
} Value;

/* The text that is read, and the C text that is made of it. */
typedef struct {
	const WeftBackendProgram *p;
	const WeftBackendEntry *entry; /* of `sizes` and `run` */
	uint32_t number;               /* of the entry */
	WeftBackendOutput *out;
	Block *block;
	Text made;
	const char *at, *function; /* where the reader is; the function, for messages */
	bool failed;
	Names function_type;            /* library functions and their results */
	Names var, temp, param, buffer; /* of the function at hand */
	int indent;
	uint32_t nloop;
} Reader;

static void *take(Reader *r, size_t bytes)
{
	Block *b = calloc(1, sizeof *b + bytes + 1);
	if (!b)
		abort();
	b->next = r->block;
	r->block = b;
	return b + 1;
}

static void drop(Reader *r)
{
	for (Block *b = r->block, *next; b; b = next) {
		next = b->next;
		free(b);
	}
	free(r->made.data);
	Names *const all[] = {&r->function_type, &r->var, &r->temp, &r->param, &r->buffer};
	for (size_t k = 0; k < sizeof all / sizeof *all; k++)
		free(all[k]->data);
}

__attribute__((format(printf, 2, 3))) static const char *format(Reader *r, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	char *s = take(r, (size_t)n);
	vsnprintf(s, (size_t)n + 1, fmt, again);
	va_end(ap);
	va_end(again);
	return s;
}

__attribute__((format(printf, 2, 3))) static void put(Reader *r, const char *fmt, ...)
{
	va_list ap, again;
	Text *t = &r->made;
	va_start(ap, fmt);
	va_copy(again, ap);
	size_t n = (size_t)vsnprintf(NULL, 0, fmt, ap);
	if (t->n + n + 1 > t->room) {
		t->room = 2 * (t->n + n + 1);
		t->data = realloc(t->data, t->room);
		if (!t->data)
			abort();
	}
	vsnprintf(t->data + t->n, n + 1, fmt, again);
	t->n += n;
	va_end(ap);
	va_end(again);
}

/* Records the first thing that is not known. */
__attribute__((format(printf, 2, 3))) static void refuse(Reader *r, const char *fmt, ...)
{
	char text[400];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (!r->failed)
		weft_backend_fail(r->out, "%.60s has %.400s, which it does not know", r->function,
				  text);
	r->failed = true;
}

static void name_add(Names *n, const char *name, Type type)
{
	if (n->n == n->room) {
		n->room = 2 * n->room + 16;
		n->data = realloc(n->data, n->room * sizeof *n->data);
		if (!n->data)
			abort();
	}
	n->data[n->n++] = (Name){name, type};
}

/* The index of a name; the last one counts. */
static int64_t name_find(const Names *n, const char *name)
{
	for (uint32_t k = n->n; k-- > 0;)
		if (!strcmp(n->data[k].name, name))
			return k;
	return -1;
}

/* ---- reading ---- */

static bool see(const Reader *r, const char *s)
{
	return !strncmp(r->at, s, strlen(s));
}

static bool accept(Reader *r, const char *s)
{
	if (r->failed || !see(r, s))
		return false;
	r->at += strlen(s);
	return true;
}

static void expect(Reader *r, const char *s)
{
	if (!accept(r, s) && !r->failed)
		refuse(r, "\"%.*s\" where \"%s\" is expected", (int)strcspn(r->at, "\n"), r->at, s);
}

/* A name: letters, digits, and . _ $ */
static const char *word(Reader *r)
{
	size_t n = 0;
	while (isalnum((unsigned char)r->at[n]) || (r->at[n] && strchr("._$", r->at[n])))
		n++;
	char *s = take(r, n);
	memcpy(s, r->at, n);
	r->at += n;
	return s;
}

static Type type_of(Reader *r, const char *name)
{
	for (int k = 0; k < ADDRESS; k++)
		if (!strcmp(types[k].name, name))
			return (Type)k;
	refuse(r, "the type %s", name);
	return I64;
}

#endif
