/* Run-time checks. What a failure reports is computed where it fails, in a branch that is hardly
 * ever taken, and costs nothing elsewhere. */
#include "codegen/eval/priv.h"

static Lx lane_numbers(Eval *e, uint32_t lanes)
{
	return lx_ramp(e->f, lx_int(e->f, 0), lx_int(e->f, 1), lanes);
}

Lx eval_lane(Eval *e, Lx x)
{
	LType t = lx_type(e->f, x);
	if (!e->index.lane.i || t.lanes == 1)
		return x;
	Lx here = lx_cmp(e->f, SC_eq, lane_numbers(e, t.lanes),
			 lx_splat(e->f, e->index.lane, t.lanes));
	return lx_hreduce(e->f, SC_add, lx_select(e->f, here, x, lx_int_of(e->f, t, 0)));
}

/* Returns the number of the first lane that fails. */
static Lx first_lane(Eval *e, Lx bad)
{
	LType t = {DT_i64, lx_type(e->f, bad).lanes};
	Lx which = lx_select(e->f, bad, lane_numbers(e, t.lanes), lx_int_of(e->f, t, t.lanes));
	return lx_var(e->f, ls_let(e->f, "lane", lx_hreduce(e->f, SC_min, which)));
}

/* Returns a coordinate of the index that fails, for the message. Axes without a value here, on
 * which the index does not depend, count as 0. */
static Lx coordinate(Eval *e, Sym sym)
{
	Sym zero = sym_int(e->syms, 0);
	for (uint32_t i = 0; i < e->nest->n; i++)
		if (e->nest->var[i].i && !e->at[i].i)
			sym = sym_subst(e->syms, sym, &e->nest->var[i], &zero, 1);
	return eval_index(e, sym);
}

void eval_check_index(Eval *e, uint32_t vvar, Lx x)
{
	const ValueVar *v = &e->k->vvar.data[vvar];
	Lx zero = lx_int(e->f, 0), size = eval_size(e, v->extent), arg[MAX_FAIL_ARGS], index;
	uint32_t narg = 0;
	bool vector = lx_type(e->f, x).lanes > 1;
	Lx ok = lx_and(e->f, lx_cmp(e->f, SC_ge, x, zero), lx_cmp(e->f, SC_lt, x, size));
	Lx bad = lx_fails(e->f, ok, vector ? e->lanes.mask : (Lx){0});
	ls_if(e->f, lx_any(e->f, bad));
	e->index.lane = vector ? first_lane(e, bad) : (Lx){0};
	index = eval_lane(e, x);
	if (v->wraps)
		index = lx_select(e->f, lx_cmp(e->f, SC_lt, index, zero),
				  lx_sub(e->f, index, size), index);
	if (!v->listed)
		arg[narg++] = index;
	for (uint32_t k = 0; k < v->nat; k++) {
		Sym at = e->nest->position[vvar][k];
		arg[narg++] = at.i == v->var.i ? index : coordinate(e, at);
	}
	ls_fail(e->f, v->check, arg, narg);
	ls_end(e->f);
	e->index.lane = (Lx){0};
}

void eval_check(Eval *e, uint32_t stage)
{
	const Stage *st = &e->k->stage.data[stage];
	Lx ok = eval_value(e, st->value);
	ls_if(e->f, lx_any(e->f, lx_fails(e->f, ok,
					  lx_type(e->f, ok).lanes > 1 ? e->lanes.mask : (Lx){0})));
	ls_fail(e->f, st->check.message, NULL, 0);
	ls_end(e->f);
}
