#include "codegen/print/names.h"
#include "base/visible.h"

#include <ctype.h>
#include <dlfcn.h>
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

/* Of C++ and newer C: the header of a model is read by both. */
static const char *const other_keywords[] = {
	"alignas", "alignof", "and", "and_eq", "bitand", "bitor", "catch", "char8_t", "char16_t", "char32_t", "class",
	"compl", "concept", "const_cast", "consteval", "constexpr", "constinit", "co_await", "co_return", "co_yield",
	"decltype", "delete", "dynamic_cast", "explicit", "export", "friend", "mutable", "namespace", "new", "noexcept",
	"not", "not_eq", "nullptr", "operator", "or", "or_eq", "private", "protected", "public", "reinterpret_cast",
	"requires", "static_assert", "static_cast", "template", "this", "thread_local", "throw", "try", "typeid",
	"typename", "typeof_unqual", "using", "virtual", "wchar_t", "xor", "xor_eq",
};

static bool is_listed(const char *s, const char *const *list, size_t n)
{
	for (size_t k = 0; k < n; k++)
		if (!strcmp(s, list[k]))
			return true;
	return false;
}

/* Whether a function of the C library has the name. Looks in the libraries of this machine, whose
 * names are much the same on every machine. */
static bool in_c_library(const char *name)
{
	static const char *const library[] = {"libc.so.6", "libm.so.6", "libpthread.so.0",
					      "libdl.so.2"};
	bool found = false;
	for (size_t k = 0; k < sizeof library / sizeof *library && !found; k++) {
		void *so = dlopen(library[k], RTLD_LAZY);
		found = so && dlsym(so, name);
		if (so)
			dlclose(so);
	}
	return found;
}

const char *c_export_refused(const char *s)
{
	if (!text_is_identifier(s))
		return "it is no identifier of C";
	if (is_listed(s, reserved, sizeof reserved / sizeof *reserved) ||
	    is_listed(s, other_keywords, sizeof other_keywords / sizeof *other_keywords))
		return "it has a meaning in C or C++";
	if (*s == '_')
		return "names that begin with _ are reserved";
	if (!strncmp(s, "k_", 2) || !strncmp(s, "weft_rt_", 8))
		return "names that begin with k_ or weft_rt_ are those of kernels and of the "
		       "runtime";
	return in_c_library(s) ? "the C library has a function of that name" : NULL;
}

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

void c_comment(Text *out, const char *s, const char *line)
{
	Text visible;
	text_init(&visible, out->arena);
	text_visible(&visible, s, "\n");
	for (const char *p = visible.data ? visible.data : ""; *p; p++) {
		bool marks = (p[0] == '*' && p[1] == '/') || (p[0] == '/' && p[1] == '*');
		if (*p == '\n')
			text_add(out, line);
		else if (marks) /* the end of a comment, or what compilers warn of */
			text_char(out, '+');
		else if ((p[0] == '?' && p[1] == '?') || (*p == '\\' && (!p[1] || p[1] == '\n')))
			text_char(out, '.'); /* a trigraph, a line that would go on */
		else
			text_char(out, *p);
	}
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

/* Takes the name in the current scope. Returns false if the name is taken already. */
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

void names_reserve_cpp(Names *n)
{
	for (size_t k = 0; k < sizeof other_keywords / sizeof *other_keywords; k++)
		names_reserve(n, other_keywords[k]);
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
