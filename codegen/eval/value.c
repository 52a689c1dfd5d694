/* Values of expressions, and what is evaluated early. */
#include "codegen/eval/priv.h"
#include "ir/op/op.h"

static Lx const_of(Eval *e, const KxData *x)
{
	LType t = {x->dtype, 1};
	return dtype_is_float(x->dtype) ? lx_float(e->f, t, x->c.f) : lx_int_of(e->f, t, x->c.i);
}

static bool is_zero(const Eval *e, Kx x)
{
	const KxData *d = &e->k->kx.data[x.i];
	if (d->kind != KX_CONST)
		return false;
	return dtype_is_float(d->dtype) ? d->c.f == 0 : d->c.i == 0;
}

/* Returns the value of a guard; none if there is no guard, or it is known to hold. */
static Lx open_guard(Eval *e, Kx guard)
{
	int64_t holds;
	Lx g = guard.i ? eval_value(e, guard) : (Lx){0};
	return g.i && lx_is_int(e->f, g, &holds) && holds ? (Lx){0} : g;
}

/* Returns the mask of a load or check: the guard and, of a vector, the active lanes. none: all
 * lanes. */
static Lx access_mask(Eval *e, Kx guard, bool vector)
{
	Lx g = open_guard(e, guard);
	if (!vector)
		return g;
	if (g.i)
		g = eval_splat(e, g);
	if (!g.i || !e->lanes.mask.i)
		return g.i ? g : e->lanes.mask;
	return lx_and(e->f, g, e->lanes.mask);
}

static Lx load(Eval *e, Kx id, const KxData *x)
{
	bool vector = e->lanes.axis != NO_AXIS &&
		      (nest_axes(e->nest, e->nest->offset[id.i]) >> e->lanes.axis & 1);
	bool vector_guard = x->guard.i && eval_varies(e, x->guard);
	/* lanes that are none need not be in bounds */
	Lx mask = access_mask(e, x->guard, vector || vector_guard);
	LMem mem = eval_load_memory(e, id);
	const char *name = e->f->buf.data[mem.k].name;
	Lv v;
	if (vector) {
		EvalAddress a = eval_vector_address(e, e->nest->offset[id.i]);
		v = a.index.i ? ls_gather(e->f, name, mem, a.offset, a.index, x->dtype, mask)
			      : ls_load(e->f, name, mem, a.offset, (LType){x->dtype, e->lanes.n},
					mask);
	} else {
		Lx ok = vector_guard ? lx_any(e->f, mask) : mask;
		v = ls_load(e->f, name, mem, eval_index(e, e->nest->offset[id.i]),
			    (LType){x->dtype, 1}, ok);
	}
	Lx value = lx_var(e->f, v);
	if (open_guard(e, x->guard).i && (!is_zero(e, x->other) || (vector_guard && !vector))) {
		bool wide = vector || vector_guard || eval_varies(e, x->other);
		Lx c = eval_value(e, x->guard), other = eval_value(e, x->other);
		if (wide) {
			c = eval_splat(e, c);
			value = eval_splat(e, value);
			other = eval_splat(e, other);
		}
		value = lx_select(e->f, c, value, other);
	}
	return value;
}

static Lx in_range(Eval *e, const KxData *x, bool vector)
{
	Lx sym = vector ? eval_index_lanes(e, x->idx[0]) : eval_index(e, x->idx[0]);
	Lx lo = eval_index(e, x->idx[1]), hi = eval_index(e, x->idx[2]);
	Lx above = lx_cmp(e->f, SC_ge, sym, vector ? eval_splat(e, lo) : lo);
	return lx_and(e->f, above, lx_cmp(e->f, SC_lt, sym, vector ? eval_splat(e, hi) : hi));
}

static Lx read_stage(Eval *e, const KxData *x)
{
	const StageValue *v = &e->stage[x->stage];
	if (!v->run)
		ctx_bug(e->l->ir->ctx, "kernel %s: stage %u is read before it ran", e->k->name,
			x->stage);
	if (nest_keeps_value(e->nest, &e->k->stage.data[x->stage]))
		return v->value;
	Sym offset = sym_int(e->syms, 0);
	for (uint32_t i = 0; i < v->nmap; i++)
		offset = sym_add(e->syms, sym_mul(e->syms, offset, e->nest->extent[v->map[i]]),
				 x->idx[v->from[i]]);
	if (eval_outer_vector(e)) {
		Lx at = lx_mul(e->f, eval_index(e, offset), lx_int(e->f, e->lanes.n));
		return lx_var(e->f, ls_load(e->f, "row", v->local, at,
					    (LType){x->dtype, e->lanes.n}, (Lx){0}));
	}
	if (e->lanes.axis == NO_AXIS || !(nest_axes(e->nest, offset) >> e->lanes.axis & 1))
		return lx_var(e->f, ls_load(e->f, "row", v->local, eval_index(e, offset),
					    (LType){x->dtype, 1}, (Lx){0}));
	EvalAddress a = eval_vector_address(e, offset);
	if (a.index.i)
		return lx_var(e->f, ls_gather(e->f, "row", v->local, a.offset, a.index, x->dtype,
					      e->lanes.mask));
	return lx_var(e->f, ls_load(e->f, "row", v->local, a.offset, (LType){x->dtype, e->lanes.n},
				    e->lanes.mask));
}

Lx eval_convert(Eval *e, Lx v, DType d)
{
	LType t = lx_type(e->f, v);
	if (t.dtype == d)
		return v;
	const ScFn *fn = NULL;
	if (d != dtype_compute(d))
		fn = scalar_round(d);
	else if (dtype_is_float(t.dtype) && dtype_is_int(d))
		fn = scalar_convert(t.dtype, d);
	return fn ? lx_fn(e->f, fn, t.lanes, &v, 1)
		  : lx_sc(e->f, SC_convert, (LType){d, t.lanes}, &v, 1);
}

/* Returns the literal that a function of integer literals is, if all are i32, or one is converted
 * to i32; none if it is another value. */
static Lx literal_of(Eval *e, const ScFn *fn, DType d, const Lx *in, uint32_t nin, uint32_t lanes)
{
	ScVal arg[4] = {{0}};
	for (uint32_t j = 0; j < nin; j++)
		if (!lx_is_int(e->f, in[j], &arg[j].i))
			return (Lx){0};
	return d == DT_i32 && fn && nin ? lx_int_of(e->f, (LType){d, lanes}, scalar_eval(fn, arg).i)
					: (Lx){0};
}

static Lx apply(Eval *e, const KxData *x, bool vector)
{
	Lx in[4];
	DType dt[4];
	for (uint32_t j = 0; j < x->nin; j++) {
		in[j] = eval_value(e, x->in[j]);
		if (vector)
			in[j] = eval_splat(e, in[j]);
		dt[j] = lx_type(e->f, in[j]).dtype;
	}
	uint32_t lanes = vector ? e->lanes.n : 1;
	if (x->op == OP_convert) {
		const ScFn *to = scalar_convert(dt[0], x->dtype);
		const Lx number = literal_of(e, to, x->dtype, in, 1, lanes);
		return number.i ? number : eval_convert(e, in[0], x->round ? x->round : x->dtype);
	}
	const ScFn *fn =
		x->op == OP_bitcast ? kx_bitcast_fn(x, dt[0]) : scalar_fn(x->op, dt, x->nin);
	if (!fn)
		ctx_bug(e->l->ir->ctx, "kernel %s: no scalar function for %s", e->k->name,
			op_name(x->op));
	const Lx number = literal_of(e, fn, x->dtype, in, x->nin, lanes);
	return number.i ? number : lx_fn(e->f, fn, lanes, in, x->nin);
}

/* Gives the result of an operation a name, so that its readers share it. Simpler values stay
 * expressions. */
static Lx named(Eval *e, const KxData *x, Lx v)
{
	int64_t number;
	return x->kind == KX_OP && !(x->dtype == DT_i32 && lx_is_int(e->f, v, &number))
		       ? lx_var(e->f, ls_let(e->f, "t", v))
		       : v;
}

Lx eval_value(Eval *e, Kx id)
{
	Lx known = eval_known(e, id);
	if (known.i)
		return known;
	const KxData *x = &e->k->kx.data[id.i];
	bool vector = eval_varies(e, id);
	Lx v = {0};
	switch (x->kind) {
	case KX_CONST:
		v = const_of(e, x);
		break;
	case KX_INDEX:
		v = vector ? eval_index_lanes(e, x->idx[0]) : eval_index(e, x->idx[0]);
		break;
	case KX_INRANGE:
		v = in_range(e, x, vector);
		break;
	case KX_LOAD:
		v = load(e, id, x);
		break;
	case KX_STAGE:
		v = read_stage(e, x);
		break;
	case KX_OP:
		v = apply(e, x, vector);
		break;
	}
	return eval_remember(e, id.i, id, named(e, x, v));
}

Lx eval_vector(Eval *e, Kx x)
{
	return eval_splat(e, eval_value(e, x));
}

/* ---- hoisting ---- */

/* Whether every stage that x reads has a result. */
static bool ready(const Eval *e, Kx x)
{
	for (uint32_t i = nest_next_read(e->nest, x, 0); i < e->k->stage.n;
	     i = nest_next_read(e->nest, x, i + 1))
		if (!e->stage[i].run)
			return false;
	return true;
}

/* Evaluates the subexpressions of x that depend only on `axes`, each once per eval_hoist: an
 * expression is a graph. */
static void hoist(Eval *e, Kx id, uint64_t axes)
{
	if (!id.i || eval_known(e, id).i || e->state.visited[id.i] == e->state.visit)
		return;
	e->state.visited[id.i] = e->state.visit;
	const KxData *x = &e->k->kx.data[id.i];
	if (!(e->nest->deps[id.i] & ~axes)) {
		if (x->kind != KX_CONST && ready(e, id))
			eval_value(e, id);
		return;
	}
	for (uint32_t j = 0; j < x->nin; j++)
		hoist(e, x->in[j], axes);
	hoist(e, x->guard, axes);
	hoist(e, x->other, axes);
	for (uint32_t i = 0; x->kind == KX_LOAD && i < e->k->vvar.n; i++) {
		Kx value = e->k->vvar.data[i].value;
		if (!sym_uses(e->syms, e->nest->offset[id.i], e->k->vvar.data[i].var))
			continue;
		hoist(e, value, axes);
		if (!(e->nest->deps[value.i] & ~axes) && eval_known(e, value).i)
			eval_place(e, i);
	}
}

void eval_hoist(Eval *e, Kx x, uint64_t axes)
{
	e->state.visit++;
	hoist(e, x, axes);
}
