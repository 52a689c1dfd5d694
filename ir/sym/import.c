/* Expressions of one table, made again in another. */
#include <string.h>

#include "ir/sym/priv.h"

struct SymImport {
	SymTab *to;
	const SymTab *from;
	ARRAY(Sym) made; /* by expression of `from`, as far as asked for; none: not yet */
};

static void put(SymImport *m, Sym e, Sym made)
{
	while (m->made.n <= e.i)
		array_push(m->to->ctx->arena, &m->made, (Sym){0});
	m->made.data[e.i] = made;
}

static const char *free_name(SymTab *to, const char *name)
{
	const char *free = name;
	for (uint32_t k = 1; sym_find(to, free, (uint32_t)strlen(free)).i; k++)
		free = arena_printf(to->ctx->arena, "%s_%u", name, k);
	return free;
}

SymImport *sym_import_at(SymTab *to, const SymTab *from, const Sym *var, const Sym *by, uint32_t n)
{
	SymImport *m = ARENA_NEW(to->ctx->arena, SymImport);
	*m = (SymImport){.to = to, .from = from};
	for (uint32_t k = 0; k < n; k++)
		put(m, var[k], by[k]);
	for (uint32_t k = 0; k < sym_nvars(from); k++) {
		const SymVar *v = &from->var.data[sym_node(from, sym_var_at(from, k))->value];
		if (v->sym.i < m->made.n && m->made.data[v->sym.i].i)
			continue;
		Sym made = sym_var(to, free_name(to, v->name), v->kind, v->lo, v->hi);
		sym_set_hint(to, made, v->hint);
		put(m, v->sym, made);
	}
	return m;
}

SymImport *sym_import_new(SymTab *to, const SymTab *from)
{
	SymImport *m = ARENA_NEW(to->ctx->arena, SymImport);
	*m = (SymImport){.to = to, .from = from};
	sym_scope_new(to);
	for (uint32_t k = 0; k < sym_nvars(from); k++) {
		const SymVar *v = &from->var.data[sym_node(from, sym_var_at(from, k))->value];
		Sym var = sym_var(to, v->name, v->kind, v->lo, v->hi);
		sym_set_hint(to, var, v->hint);
		put(m, v->sym, var);
	}
	return m;
}

static Sym make(SymImport *m, Sym e)
{
	const SymNode *n = sym_node(m->from, e);
	SymTab *t = m->to;
	Sym x = {0}, y = {0};
	if (n->kind == SYM_VAR)
		ctx_bug(t->ctx, "sym: %s belongs to no graph", sym_str(m->from, e));
	for (uint32_t k = 0; k < n->nargs; k++) {
		y = sym_import(m, n->args[k]);
		x = !k                       ? y
		    : n->kind == SYM_SUM     ? sym_add(t, x, y)
		    : n->kind == SYM_PRODUCT ? sym_mul(t, x, y)
					     : x;
	}
	switch ((SymKind)n->kind) {
	case SYM_CONST: return sym_int(t, n->value);
	case SYM_REAL_CONST: return sym_make_real(t, n->value);
	case SYM_SUM: case SYM_PRODUCT: return x;
	case SYM_FLOORDIV: return sym_floordiv(t, x, y);
	case SYM_MOD: return sym_mod(t, x, y);
	case SYM_MIN: return sym_min(t, x, y);
	case SYM_MAX: return sym_max(t, x, y);
	default: return sym_real_op(t, (SymKind)n->kind, x, n->nargs > 1 ? y : (Sym){0});
	}
}

Sym sym_import(SymImport *m, Sym e)
{
	sym_check(m->from, e);
	if (e.i >= m->made.n || !m->made.data[e.i].i)
		put(m, e, make(m, e));
	return m->made.data[e.i];
}
