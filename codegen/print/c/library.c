/* Library functions as C functions on one lane or many, and their tables. */
#include <string.h>

#include "codegen/legal/legalise.h"
#include "codegen/print/c/emit_priv.h"

/* ---- tables ---- */

static void print_entry(Text *t, const ScTable *tab, uint32_t k)
{
	switch (tab->dtype) {
	case DT_f32: text_printf(t, "%af", (double)((const float *)tab->data)[k]); break;
	case DT_f64: text_printf(t, "%a", ((const double *)tab->data)[k]); break;
	case DT_i32: text_printf(t, "%ld", (long)((const int32_t *)tab->data)[k]); break;
	default: text_printf(t, "0x%lx", (unsigned long)((const uint32_t *)tab->data)[k]); break;
	}
}

static const char *c_table(CUnit *u, const ScTable *tab)
{
	const char *name = arena_printf(u->arena, "table_%s", c_identifier(u->arena, tab->name));
	bool fresh;
	intern(&u->known, name, strlen(name), &fresh);
	if (!fresh)
		return name;
	Text *t = &u->helpers;
	text_printf(t, "%s %s %s[%u] = {", u->dialect->table, c_elem(tab->dtype), name, tab->n);
	for (uint32_t k = 0; k < tab->n; k++) {
		text_add(t, k % 8 ? " " : "\n\t");
		print_entry(t, tab, k);
		text_char(t, ',');
	}
	text_add(t, "\n};\n\n");
	return name;
}

CExpr c_look_up(CUnit *u, const ScTable *table, uint32_t lanes, CExpr index)
{
	const char *name = c_table(u, table);
	if (lanes == 1)
		return c_atom(arena_printf(u->arena, "%s[%s]", name, index.s));
	LType to = {table->dtype, lanes}, from = {DT_i32, lanes};
	return c_call(u, c_helper(u, "gather", to, from), (CExpr[]){c_atom(name), index}, 2);
}

/* ---- functions ---- */

/* Returns the C name of a scalar function on so many lanes, "exp_f32x16"; with "sc_" in front if a
 * helper could have that name. */
static const char *fn_name(CUnit *u, const ScFn *fn, uint32_t lanes)
{
	const char *id = c_identifier(u->arena, fn->name), *last = strrchr(id, '_');
	const char *prefix = last && is_helper_op(id, (size_t)(last - id)) ? "sc_" : "";
	return lanes == 1 ? arena_printf(u->arena, "%s%s", prefix, id)
	                  : arena_printf(u->arena, "%s%sx%u", prefix, id, lanes);
}

const char *c_library(CUnit *u, Ir *ir, const ScFn *fn, uint32_t lanes)
{
	const char *name = fn_name(u, fn, lanes);
	bool fresh;
	intern(&u->known, name, strlen(name), &fresh);
	if (!fresh)
		return name;
	Text text;
	text_init(&text, u->arena);
	c_function(u, library_function(ir, fn, lanes, &u->target->isa), name, FN_LIBRARY, NULL,
		   NULL, &text);
	text_add(&u->helpers, text.data); /* after what it calls */
	return name;
}
