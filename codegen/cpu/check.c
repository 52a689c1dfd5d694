/* Run-time checks. What a failure reports is computed where it fails, in a branch that is hardly ever taken, and costs
 * nothing elsewhere. */
#include "codegen/cpu/sched.h"

void sched_merge_positions(Sched *s, uint32_t a, uint32_t b, uint32_t m)
{
	Sym size = sym_max(s->syms, s->extent[b], sym_int(s->syms, 1)), var[2] = {s->var[a], s->var[b]};
	Sym by[2] = {sym_floordiv(s->syms, s->var[m], size), sym_mod(s->syms, s->var[m], size)};
	for (uint32_t i = 0; i < s->k->vvar.n; i++) {
		uint32_t n = s->k->vvar.data[i].nat;
		Sym *at = ARENA_ARRAY(s->arena, Sym, n);
		for (uint32_t k = 0; k < n; k++)
			at[k] = sym_subst(s->syms, s->position[i][k], var, by, 2);
		s->position[i] = at;
	}
}

static Lx lane_numbers(Sched *s, uint32_t lanes)
{
	return lx_ramp(s->f, lx_int(s->f, 0), lx_int(s->f, 1), lanes);
}

Lx sched_lane(Sched *s, Lx x)
{
	LType t = lx_type(s->f, x);
	if (!s->lane.i || t.lanes == 1)
		return x;
	Lx here = lx_cmp(s->f, SC_eq, lane_numbers(s, t.lanes), lx_splat(s->f, s->lane, t.lanes));
	return lx_hreduce(s->f, SC_add, lx_select(s->f, here, x, lx_int_of(s->f, t, 0)));
}

/* The first lane that fails. */
static Lx first_lane(Sched *s, Lx bad)
{
	LType t = {DT_i64, lx_type(s->f, bad).lanes};
	Lx which = lx_select(s->f, bad, lane_numbers(s, t.lanes), lx_int_of(s->f, t, t.lanes));
	return lx_var(s->f, ls_let(s->f, "lane", lx_hreduce(s->f, SC_min, which)));
}

/* A coordinate of the index that fails; along axes on which it does not depend, that of the first point. */
static Lx coordinate(Sched *s, Sym e)
{
	Sym zero = sym_int(s->syms, 0);
	for (uint32_t i = 0; i < s->naxis; i++)
		if (s->var[i].i && !s->at[i].i)
			e = sym_subst(s->syms, e, &s->var[i], &zero, 1);
	return sched_sym(s, e);
}

void sched_check_index(Sched *s, uint32_t vvar, Lx x)
{
	const ValueVar *v = &s->k->vvar.data[vvar];
	Lx zero = lx_int(s->f, 0), size = sched_size(s, v->extent), arg[MAX_FAIL_ARGS];
	bool vector = lx_type(s->f, x).lanes > 1;
	Lx ok = lx_and(s->f, lx_cmp(s->f, SC_ge, x, zero), lx_cmp(s->f, SC_lt, x, size));
	Lx bad = lx_fails(s->f, ok, vector ? s->mask : (Lx){0});
	ls_if(s->f, lx_any(s->f, bad));
	s->lane = vector ? first_lane(s, bad) : (Lx){0};
	arg[0] = sched_lane(s, x);
	if (v->wraps)
		arg[0] = lx_select(s->f, lx_cmp(s->f, SC_lt, arg[0], zero), lx_sub(s->f, arg[0], size), arg[0]);
	for (uint32_t k = 0; k < v->nat; k++)
		arg[k + 1] = coordinate(s, s->position[vvar][k]);
	ls_fail(s->f, v->check, arg, v->nat + 1);
	ls_end(s->f);
	s->lane = (Lx){0};
}

void sched_check(Sched *s, uint32_t stage)
{
	const Stage *st = &s->k->stage.data[stage];
	Lx ok = sched_value(s, st->value);
	ls_if(s->f, lx_any(s->f, lx_fails(s->f, ok, lx_type(s->f, ok).lanes > 1 ? s->mask : (Lx){0})));
	ls_fail(s->f, st->check, NULL, 0);
	ls_end(s->f);
}
