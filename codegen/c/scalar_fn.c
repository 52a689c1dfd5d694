/* Scalar functions as C functions on one lane or many, printed from their SSA form. */
#include <string.h>

#include "codegen/c/emit_priv.h"

typedef struct {
	CUnit *u;
	const ScFn *fn;
	uint32_t lanes;
	CExpr *value; /* by instruction */
} Fn;

static LType type_of(const Fn *f, DType d)
{
	return (LType){d, f->lanes};
}

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
	text_printf(t, "static const %s %s[%u] = {", c_elem(tab->dtype), name, tab->n);
	for (uint32_t k = 0; k < tab->n; k++) {
		text_add(t, k % 8 ? " " : "\n\t");
		print_entry(t, tab, k);
		text_char(t, ',');
	}
	text_add(t, "\n};\n\n");
	return name;
}

static CExpr look_up(Fn *f, const ScIns *i)
{
	CUnit *u = f->u;
	CExpr index = f->value[i->in[0]];
	const char *table = c_table(u, i->table);
	if (f->lanes == 1)
		return c_atom(arena_printf(u->arena, "%s[%s]", table, index.s));
	LType to = type_of(f, i->dtype), from = type_of(f, DT_i32);
	return c_call(u, c_helper(u, "gather", to, from), (CExpr[]){c_atom(table), index}, 2);
}

/* ---- instructions ---- */

static CExpr instruction(Fn *f, const ScIns *i)
{
	CExpr in[3];
	for (uint32_t k = 0; k < i->nin; k++)
		in[k] = f->value[i->in[k]];
	LType result = type_of(f, i->dtype);
	switch (i->op) {
	case SC_const:
		result.dtype = dtype_compute(i->dtype);
		return dtype_is_float(i->dtype) ? c_float(f->u, result, i->f) : c_int(f->u, result, i->i);
	case SC_let:
		return in[0];
	case SC_call:
		return c_scalar_fn(f->u, i->fn, f->lanes, in, i->nin);
	case SC_table:
		return look_up(f, i);
	default:
		return c_op(f->u, i->op, result, type_of(f, f->fn->ins[i->in[0]].dtype), in, i->nin, 0);
	}
}

static bool is_leaf(const ScIns *i)
{
	return i->op == SC_param || i->op == SC_const || i->op == SC_let;
}

static void mark_used(const ScFn *fn, uint32_t k, bool *used)
{
	if (used[k])
		return;
	used[k] = true;
	for (uint32_t j = 0; j < fn->ins[k].nin; j++)
		mark_used(fn, fn->ins[k].in[j], used);
}

/* One operation on parameters and constants, each parameter read at most once: printed in place. */
static bool is_single(const ScFn *fn)
{
	uint32_t reads[4] = {0};
	const ScIns *last = &fn->ins[fn->nins - 1];
	for (uint32_t k = 0; k < last->nin; k++) {
		const ScIns *a = &fn->ins[last->in[k]];
		if (a->op != SC_param && a->op != SC_const)
			return false;
		if (a->op == SC_param && ++reads[a->k] > 1)
			return false;
	}
	return last->op != SC_table;
}

static CExpr in_place(CUnit *u, const ScFn *fn, uint32_t lanes, const CExpr *in)
{
	Fn f = {u, fn, lanes, ARENA_ARRAY(u->arena, CExpr, fn->nins)};
	const ScIns *last = &fn->ins[fn->nins - 1];
	if (last->op == SC_param)
		return in[last->k];
	for (uint32_t k = 0; k < last->nin; k++) {
		const ScIns *a = &fn->ins[last->in[k]];
		f.value[last->in[k]] = a->op == SC_param ? in[a->k] : instruction(&f, a);
	}
	return instruction(&f, last);
}

/* ---- functions ---- */

/* A call that no lane may need: its variable is 0 unless one does. */
static void guarded_call(Fn *f, uint32_t k, ScGuard guard, const char *call, Text *body)
{
	CUnit *u = f->u;
	LType t = {dtype_compute(f->fn->ins[k].dtype), f->lanes}, mask = type_of(f, DT_bool);
	CExpr cond = f->value[guard.cond];
	if (!guard.when)
		cond = c_op(u, SC_not, mask, mask, &cond, 1, 0);
	if (f->lanes > 1)
		cond = c_call(u, c_helper(u, "any", mask, mask), &cond, 1);
	CExpr zero = dtype_is_float(t.dtype) ? c_float(u, t, 0) : c_int(u, t, 0);
	text_printf(body, "\t%s v%u = %s;\n\tif (%s)\n\t\tv%u = %s;\n", c_type(u, t), k, zero.s, cond.s, k, call);
}

static void print_body(Fn *f, Text *body)
{
	CUnit *u = f->u;
	const ScFn *fn = f->fn;
	bool *used = ARENA_ARRAY(u->arena, bool, fn->nins);
	uint32_t last = fn->nins - 1;
	mark_used(fn, last, used);
	for (uint32_t k = 0; k < fn->nins; k++) {
		const ScIns *i = &fn->ins[k];
		if (!used[k])
			continue;
		if (i->op == SC_param) {
			f->value[k] = c_atom(arena_printf(u->arena, "%c", "xyzw"[i->k]));
			continue;
		}
		CExpr x = instruction(f, i);
		f->value[k] = x;
		if (is_leaf(i) || k == last)
			continue;
		const char *type = c_type(u, (LType){dtype_compute(i->dtype), f->lanes});
		ScGuard guard = i->op == SC_call ? scalar_guard(fn, k) : (ScGuard){false, false, 0};
		if (guard.found)
			guarded_call(f, k, guard, x.s, body);
		else
			text_printf(body, "\tconst %s v%u = %s;\n", type, k, x.s);
		f->value[k] = c_atom(arena_printf(u->arena, "v%u", k));
	}
	text_printf(body, "\treturn %s;\n", f->value[last].s);
}

static void define(CUnit *u, const ScFn *fn, uint32_t lanes, const char *name)
{
	Fn f = {u, fn, lanes, ARENA_ARRAY(u->arena, CExpr, fn->nins)};
	Text body;
	text_init(&body, u->arena);
	print_body(&f, &body); /* writes what it calls first */
	const char *result = c_type(u, (LType){dtype_compute(fn->result), lanes});
	const char *kind = fn->cost <= SC_INLINE_COST ? "static inline" : "static"; /* else the compiler judges */
	text_printf(&u->helpers, "%s %s %s(", kind, result, name);
	bool *used = ARENA_ARRAY(u->arena, bool, fn->nins);
	mark_used(fn, fn->nins - 1, used);
	bool read[4] = {false};
	for (uint32_t k = 0; k < fn->nins; k++)
		if (used[k] && fn->ins[k].op == SC_param)
			read[fn->ins[k].k] = true;
	for (uint32_t k = 0; k < fn->nparam; k++)
		text_printf(&u->helpers, "%s%s %c", k ? ", " : "",
		            c_type(u, (LType){dtype_compute(fn->param[k]), lanes}), "xyzw"[k]);
	text_add(&u->helpers, fn->nparam ? ")\n{\n" : "void)\n{\n");
	for (uint32_t k = 0; k < fn->nparam; k++)
		if (!read[k])
			text_printf(&u->helpers, "\t(void)%c;\n", "xyzw"[k]);
	text_printf(&u->helpers, "%s}\n\n", body.data);
}

/* "exp_f32x16"; names that helpers use get a prefix. */
static const char *fn_name(CUnit *u, const ScFn *fn, uint32_t lanes)
{
	const char *id = c_identifier(u->arena, fn->name), *last = strrchr(id, '_');
	const char *prefix = last && is_helper_op(id, (size_t)(last - id)) ? "sc_" : "";
	return lanes == 1 ? arena_printf(u->arena, "%s%s", prefix, id)
	                  : arena_printf(u->arena, "%s%sx%u", prefix, id, lanes);
}

CExpr c_scalar_fn(CUnit *u, const ScFn *fn, uint32_t lanes, const CExpr *in, uint32_t nin)
{
	if (is_single(fn))
		return in_place(u, fn, lanes, in);
	const char *name = fn_name(u, fn, lanes);
	bool fresh;
	intern(&u->known, name, strlen(name), &fresh);
	if (fresh)
		define(u, fn, lanes, name);
	return c_call(u, name, in, nin);
}
