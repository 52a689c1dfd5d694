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

static uint32_t name_id(Names *n, const char *text)
{
	bool fresh;
	uint32_t id = intern(&n->used, text, strlen(text), &fresh);
	if (fresh)
		array_push(n->arena, &n->name, (Name){.next = 1});
	return id;
}

/* True when the name was free; it now belongs to the current scope. */
static bool names_take(Names *n, uint32_t id)
{
	if (n->name.data[id - 1].scope)
		return false;
	n->name.data[id - 1].scope = n->scope;
	array_push(n->arena, &n->taken, id);
	return true;
}

void names_reserve(Names *n, const char *name)
{
	uint32_t id = name_id(n, name);
	if (!n->name.data[id - 1].scope)
		n->name.data[id - 1].scope = 1;
}

const char *names_add(Names *n, const char *stem)
{
	const char *text = c_identifier(n->arena, stem);
	uint32_t of = name_id(n, text);
	if (names_take(n, of))
		return text;
	for (uint32_t k = n->name.data[of - 1].next;; k++) {
		const char *next = arena_printf(n->arena, "%s_%u", text, k);
		uint32_t id = name_id(n, next);
		if (!names_take(n, id))
			continue;
		n->name.data[id - 1].of = of;
		n->name.data[id - 1].number = k;
		n->name.data[of - 1].next = k + 1;
		return next;
	}
}

void names_push(Names *n)
{
	n->scope++;
}

void names_pop(Names *n)
{
	for (; n->taken.n; n->taken.n--) {
		Name *name = &n->name.data[n->taken.data[n->taken.n - 1] - 1];
		if (name->scope != n->scope)
			break;
		name->scope = 0;
		if (name->of && n->name.data[name->of - 1].next > name->number)
			n->name.data[name->of - 1].next = name->number;
	}
	n->scope--;
}
