#include "codegen/names.h"

#include <ctype.h>
#include <string.h>

/* Keywords, and what emitted code and its headers call. */
static const char *const reserved[] = {
	"auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum",
	"extern", "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return",
	"short", "signed", "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void",
	"volatile", "while", "bool", "true", "false", "asm", "typeof", "linux", "unix", "near", "far",
	"memcpy", "sqrt", "sqrtf", "floor", "floorf", "ceil", "ceilf", "trunc", "truncf", "rint", "rintf",
	"fma", "fmaf", "fabs", "fabsf", "ldexpf", "NAN", "INFINITY", "NULL", "main",
};

const char *c_identifier(Arena *arena, const char *s)
{
	char *id = arena_printf(arena, "%s%s", !*s || isdigit((unsigned char)*s) ? "v" : "", s);
	for (char *p = id; *p; p++)
		if (!isalnum((unsigned char)*p))
			*p = '_';
	while (*id == '_' && id[1]) /* leading underscores belong to the implementation */
		id++;
	if (isdigit((unsigned char)*id))
		id = arena_printf(arena, "v%s", id);
	for (uint32_t k = 0; k < sizeof reserved / sizeof *reserved; k++)
		if (strcmp(id, reserved[k]) == 0)
			return arena_printf(arena, "%s_", id);
	return id;
}

void names_init(Names *n, Arena *arena)
{
	memset(n, 0, sizeof *n);
	n->arena = arena;
	intern_init(&n->used, arena);
	n->scope = 1;
}

/* True when the name was free; it now belongs to the current scope. */
static bool names_take(Names *n, const char *name)
{
	bool fresh;
	uint32_t id = intern(&n->used, name, strlen(name), &fresh);
	if (fresh)
		array_push(n->arena, &n->depth, 0);
	if (n->depth.data[id - 1])
		return false;
	n->depth.data[id - 1] = n->scope;
	return true;
}

void names_reserve(Names *n, const char *name)
{
	uint32_t scope = n->scope;
	n->scope = 1;
	names_take(n, name);
	n->scope = scope;
}

const char *names_add(Names *n, const char *stem)
{
	const char *id = c_identifier(n->arena, stem);
	if (names_take(n, id))
		return id;
	for (uint32_t k = 1;; k++) {
		const char *next = arena_printf(n->arena, "%s_%u", id, k);
		if (names_take(n, next))
			return next;
	}
}

void names_push(Names *n)
{
	n->scope++;
}

void names_pop(Names *n)
{
	for (uint32_t k = 0; k < n->depth.n; k++)
		if (n->depth.data[k] == n->scope)
			n->depth.data[k] = 0;
	n->scope--;
}
