/* Run-time checks. What a failure reports is computed where it fails, in a branch that is hardly ever taken, and costs
 * nothing elsewhere. */
#include "codegen/cpu/sched.h"

static void merge_positions(Sched *s, uint32_t a, uint32_t b, uint32_t m)
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

/* rest + ca * a + cb * b becomes rest + cb * m. */
static Sym merged_offset(Sched *s, Sym offset, uint32_t a, uint32_t b, Sym m)
{
	Sym coef, rest, unused;
	if (!offset.i)
		return offset;
	if (!sym_linear(s->syms, offset, s->var[a], &unused, &rest) ||
	    !sym_linear(s->syms, rest, s->var[b], &coef, &rest))
		ctx_bug(s->ir->ctx, "kernel %s: axes are merged that an access takes apart",
			s->k->name);
	return sym_add(s->syms, rest, sym_mul(s->syms, coef, m));
}

uint32_t sched_add_axis(Sched *s, const char *name, Sym extent)
{
	s->extent[s->naxis] = extent;
	s->var[s->naxis] = sym_axis(s->syms, name, extent);
	return s->naxis++;
}

uint32_t sched_merge_axes(Sched *s, uint32_t a, uint32_t b)
{
	uint32_t m = sched_add_axis(s, "m", sym_mul(s->syms, s->extent[a], s->extent[b]));
	for (uint32_t i = 1; i < s->k->kx.n; i++)
		s->offset[i] = merged_offset(s, s->offset[i], a, b, s->var[m]);
	for (uint32_t i = 0; i < s->k->stage.n; i++)
		s->store[i] = merged_offset(s, s->store[i], a, b, s->var[m]);
	merge_positions(s, a, b, m);
	s->var[a] = s->var[b] = (Sym){0};
	if (s->outer >> a & 1)
		s->outer = (s->outer & ~(UINT64_C(1) << a) & ~(UINT64_C(1) << b)) | UINT64_C(1) << m;
	sched_find_deps(s);
	return m;
}

static Sym renamed(const Sched *s, Sym e, uint32_t from, uint32_t to)
{
	return e.i ? sym_subst(s->syms, e, &s->var[from], &s->var[to], 1) : e;
}

static const Sym *renamed_all(const Sched *s, const Sym *e, uint32_t n, uint32_t from, uint32_t to)
{
	Sym *out = ARENA_ARRAY(s->arena, Sym, n);
	for (uint32_t i = 0; i < n; i++)
		out[i] = renamed(s, e[i], from, to);
	return out;
}

void sched_rename_axis(Sched *s, uint32_t from, uint32_t to)
{
	Kernel *k = s->k;
	for (uint32_t i = 1; i < k->kx.n; i++) {
		s->offset[i] = renamed(s, s->offset[i], from, to);
		k->kx.data[i].idx = renamed_all(s, k->kx.data[i].idx, k->kx.data[i].nidx, from, to);
	}
	for (uint32_t i = 0; i < k->vvar.n; i++)
		s->position[i] = renamed_all(s, s->position[i], k->vvar.data[i].nat, from, to);
	for (uint32_t i = 0; i < k->stage.n; i++)
		s->store[i] = renamed(s, s->store[i], from, to);
	s->var[from] = (Sym){0};
}

/* ---- checks ---- */

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
