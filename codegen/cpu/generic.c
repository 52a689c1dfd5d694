/* The schedule for every kernel without one of its own: element-wise, reductions, softmax and
 * norms, gathers, windows, cumulative ops.
 *
 * Outer axes run as tasks and loops, largest stride of the result first; one axis with unit stride
 * runs over vector lanes. If that is an outer axis, lanes are different outer points; if it is an
 * inner one, lanes belong to one row and reductions end with a horizontal step. */
#include "codegen/cpu/generic.h"

#include <assert.h>
#include <math.h>

#include "codegen/plan/axes.h"

/* ---- stages at one outer point ---- */

static void stage_body(Cpu *s, void *data);

uint64_t generic_known_axes(const Cpu *s)
{
	uint64_t known = 0;
	for (uint32_t a = 0; a < s->e.nest->n; a++)
		if (s->e.at[a].i)
			known |= UINT64_C(1) << a;
	return known;
}

/* Combines the elements in [lo, hi) of the axis that fill rounds of MAX_CHAINS vectors, each vector
 * into an accumulator of its own, and these into one. Returns where the other elements begin. */
static Lx run_chains(StageRun *r, const Stage *st, uint32_t axis, Lx lo, Lx hi)
{
	Cpu *s = r->g->s;
	int64_t lanes = s->e.lanes.n;
	Lx n = lx_sub(s->e.f, hi, lo), rest = lx_mod(s->e.f, n, lx_int(s->e.f, MAX_CHAINS * lanes));
	Lx end = eval_let(&s->e, "whole", lx_sub(s->e.f, hi, rest));
	Lv acc = r->acc, chain[MAX_CHAINS] = {acc};
	for (uint32_t c = 1; c < MAX_CHAINS; c++)
		chain[c] = ls_var(s->e.f, "acc",
				  code_identity(&s->code, stage_combine(st),
						lx_type(s->e.f, lx_var(s->e.f, acc))));
	eval_for(&s->e, axis, lo, end, MAX_CHAINS * lanes);
	Lx here = s->e.at[axis];
	for (uint32_t c = 0; c < MAX_CHAINS; c++) {
		eval_at(&s->e, axis, lx_add(s->e.f, here, lx_int(s->e.f, c * lanes)));
		r->acc = chain[c];
		stage_body(s, r);
	}
	eval_end(&s->e);
	r->acc = acc;
	for (uint32_t c = 1; c < MAX_CHAINS; c++)
		ls_set(s->e.f, acc,
		       code_combine(&s->code, stage_combine(st), lx_var(s->e.f, acc),
				    lx_var(s->e.f, chain[c])));
	return end;
}

static void stage_loops(StageRun *r);

void generic_open_row(Cpu *s, const Stage *st, uint32_t axis, Lx start, Lx end)
{
	eval_for(&s->e, axis, start, end, 1);
	if (st->kind == STAGE_RUNNING && st->running.reverse) {
		Lx last = lx_sub(s->e.f, end, lx_int(s->e.f, 1));
		eval_at(&s->e, axis, lx_sub(s->e.f, last, s->e.at[axis]));
	}
}

static void stage_loop(StageRun *r, Lx start, Lx end)
{
	Cpu *s = r->g->s;
	uint32_t axis = r->axes[r->next++];
	const Stage *st = &s->e.k->stage.data[r->stage];
	if (axis == s->e.lanes.axis) {
		bool whole = sym_divides(s->e.syms, s->e.lanes.n, s->e.nest->extent[axis]);
		/* the vector axis is the innermost loop */
		if (generic_has_chains(r->g->p, st, axis))
			start = run_chains(r, st, axis, start, end);
		cpu_vector_loop(s, axis, start, end, whole, stage_body, r);
	} else {
		if (axis == r->g->p->running.across && !s->e.lanes.mask.i)
			start = transpose_running_rows(r, start, end);
		generic_open_row(s, st, axis, start, end);
		stage_loops(r);
		eval_end(&s->e);
		eval_at(&s->e, axis, (Lx){0});
	}
	r->next--;
}

/* Whether a value is an element, or one scalar operation on elements. */
static bool is_brief(const Cpu *s, Kx x)
{
	const KxData *d = &s->e.k->kx.data[x.i];
	bool brief = d->kind != KX_OP || op_is_scalar(d->op);
	for (uint32_t i = 0; d->kind == KX_OP && i < d->nin; i++)
		brief = brief && s->e.k->kx.data[d->in[i].i].kind != KX_OP;
	return brief;
}

bool generic_expects_one_chunk(const StageRun *r, int64_t step)
{
	const Cpu *s = r->g->s;
	return r->n == 1 && nest_hint(s->e.nest, r->axes[0]) <= step &&
	       is_brief(s, s->e.k->stage.data[r->stage].value);
}

static void stage_chunks(StageRun *r, Lx lo, Lx hi)
{
	Cpu *s = r->g->s;
	SumLoop sums;
	if (!generic_sums(r, 1, &sums)) {
		stage_loop(r, lo, hi);
		return;
	}
	const int64_t step = sums.cut[sums.ncut - 1].rounds * sums.width;
	const bool asks = generic_expects_one_chunk(r, step);
	if (asks) {
		ls_if(s->e.f, lx_cmp(s->e.f, SC_le, lx_sub(s->e.f, hi, lo), lx_int(s->e.f, step)));
		stage_loop(r, lo, hi);
		ls_else(s->e.f);
	}
	sum_open(&s->code, &sums, &lo, &hi, &r->acc);
	stage_loop(r, lo, hi);
	sum_close(&s->code, &sums, &r->acc);
	if (asks)
		ls_end(s->e.f);
}

void generic_bounds(Cpu *s, uint32_t axis, Lx *lo, Lx *hi)
{
	*lo = cpu_start(s, axis);
	*hi = cpu_limit(s, axis);
	if (nest_axis_is_plain(s->e.nest, axis))
		return;
	const Axis *a = &s->e.k->axis.data[axis];
	if (a->lo)
		*lo = eval_let(&s->e, "lo", eval_index(&s->e, s->e.k->vvar.data[a->lo - 1].var));
	if (a->hi)
		*hi = eval_let(&s->e, "hi", eval_index(&s->e, s->e.k->vvar.data[a->hi - 1].var));
}

static void stage_loops(StageRun *r)
{
	Cpu *s = r->g->s;
	if (r->next == r->n) {
		stage_body(s, r);
		return;
	}
	uint32_t axis = r->axes[r->next];
	if (axis != s->e.lanes.axis)
		eval_hoist(&s->e, s->e.k->stage.data[r->stage].value, generic_known_axes(s));
	Lx lo, hi;
	generic_bounds(s, axis, &lo, &hi);
	stage_chunks(r, lo, hi);
}

/* ---- points that add nothing ---- */

static DType reduced_dtype(const Cpu *s, const Stage *st)
{
	return st->kind == STAGE_ARGREDUCE ? s->e.k->kx.data[st->value.i].dtype : stage_acc(st);
}

static bool is_identity(const Cpu *s, const Stage *st, Kx x)
{
	const KxData *d = &s->e.k->kx.data[x.i];
	const DType type = reduced_dtype(s, st);
	const ScVal v = reduce_identity(stage_combine(st), type);
	if (!x.i || d->kind != KX_CONST || d->dtype != type)
		return false;
	return dtype_is_float(type) ? d->c.f == v.f && signbit(d->c.f) == signbit(v.f)
				    : d->c.i == v.i;
}

/* Whether a condition compares indices alone, the same for all lanes: it follows a pattern, so that
 * a branch is seldom predicted wrong. */
static bool is_pattern(const Cpu *s, Kx where)
{
	if (!where.i || eval_varies(&s->e, where))
		return false;
	const KxData *d = &s->e.k->kx.data[where.i];
	if (d->kind == KX_OP && d->op == OP_bit_and)
		return is_pattern(s, d->in[0]) && is_pattern(s, d->in[1]);
	for (uint32_t i = 0; d->kind == KX_INRANGE && i < s->e.k->vvar.n; i++)
		for (uint32_t j = 0; j < d->nidx; j++)
			if (sym_uses(s->e.syms, d->idx[j], s->e.k->vvar.data[i].var))
				return false;
	return d->kind == KX_INRANGE;
}

/* Sums from +0 never are -0, so that adding +0 leaves them; maxima of -inf, their places from 0 and
 * the like are left too. */
Branch generic_branch(StageRun *r)
{
	Cpu *s = r->g->s;
	const Stage *st = &s->e.k->stage.data[r->stage];
	const KxData *x = &s->e.k->kx.data[st->value.i];
	Branch b = {0};
	r->value = st->value;
	if ((st->kind != STAGE_REDUCE && st->kind != STAGE_ARGREDUCE) ||
	    eval_known(&s->e, st->value).i)
		return b; /* the value with its condition is known already */
	if (x->kind == KX_OP && x->op == OP_select && is_pattern(s, x->in[0]) &&
	    is_identity(s, st, x->in[2])) {
		b.where = x->in[0];
		r->value = x->in[1];
	} else if (x->kind == KX_LOAD && is_pattern(s, x->guard) && is_identity(s, st, x->other)) {
		b.where = x->guard;
	}
	if (!b.where.i)
		return b;
	ls_if(s->e.f, eval_value(&s->e, b.where));
	eval_assume(&s->e, b.where, lx_int_of(s->e.f, (LType){DT_bool, 1}, 1));
	return b;
}

void generic_branch_end(Cpu *s, const Branch *b)
{
	if (b->where.i)
		ls_end(s->e.f);
}

/* Updates the best value and its place in the row. The larger (or smaller) value wins, the first
 * of equals stays, and NaN beats everything but an earlier NaN. A row in which none wins has
 * place 0. */
static void arg_step(StageRun *r, const Stage *st)
{
	Cpu *s = r->g->s;
	Lx x = eval_value(&s->e, r->value), best = lx_var(s->e.f, r->best);
	const LType t = lx_type(s->e.f, best), places = lx_type(s->e.f, lx_var(s->e.f, r->arg));
	if (t.lanes > 1)
		x = eval_splat(&s->e, x);
	Lx wins = lx_cmp(s->e.f, stage_combine(st) == REDUCE_MAX ? SC_gt : SC_lt, x, best);
	if (dtype_is_float(t.dtype)) {
		Lx nan = lx_and(s->e.f, lx_cmp(s->e.f, SC_ne, x, x),
				lx_cmp(s->e.f, SC_eq, best, best));
		LType m = lx_type(s->e.f, nan);
		wins = lx_sc(s->e.f, SC_or, m, (Lx[]){wins, nan}, 2);
	}
	Lx at = eval_convert(&s->e, s->e.at[st->red[0]], places.dtype);
	bool lanes_in_row = st->red[0] == s->e.lanes.axis;
	if (t.lanes > 1)
		at = lanes_in_row ? lx_ramp(s->e.f, at,
					    lx_int_of(s->e.f, (LType){places.dtype, 1}, 1), t.lanes)
				  : eval_splat(&s->e, at);
	if (lanes_in_row && s->e.lanes.mask.i)
		wins = lx_and(s->e.f, wins, s->e.lanes.mask);
	wins = lx_var(s->e.f, ls_let(s->e.f, "wins", wins));
	ls_set(s->e.f, r->best, lx_select(s->e.f, wins, x, best));
	ls_set(s->e.f, r->arg, lx_select(s->e.f, wins, at, lx_var(s->e.f, r->arg)));
}

void generic_reduce_step(StageRun *r)
{
	Cpu *s = r->g->s;
	const Stage *st = &s->e.k->stage.data[r->stage];
	if (st->kind == STAGE_ARGREDUCE) {
		arg_step(r, st);
		return;
	}
	Lx acc = lx_var(s->e.f, r->acc);
	Lx next = code_accumulate(&s->code, st, acc, r->value);
	bool lanes_in_row = !eval_outer_vector(&s->e);
	if (s->e.lanes.mask.i && lanes_in_row && lx_type(s->e.f, acc).lanes > 1)
		next = lx_select(s->e.f, s->e.lanes.mask, next, acc);
	ls_set(s->e.f, r->acc, next);
}

void generic_running_step(StageRun *r)
{
	Cpu *s = r->g->s;
	const Stage *st = &s->e.k->stage.data[r->stage];
	ls_set(s->e.f, r->acc, code_accumulate(&s->code, st, lx_var(s->e.f, r->acc), st->value));
	cpu_store(s, r->stage, lx_var(s->e.f, r->acc));
}

static bool starts_pair(const Cpu *s, uint32_t stage)
{
	return s->e.lanes.axis != NO_AXIS && !s->e.lanes.mask.i &&
	       axes_store_pairs(s->e.nest, stage, s->e.lanes.axis);
}

static Lx stored_vector(Cpu *s, uint32_t stage)
{
	const Stage *st = &s->e.k->stage.data[stage];
	return eval_convert(&s->e, eval_vector(&s->e, st->value), dtype_compute(st->dtype));
}

/* Stores the results of stages `stage` and stage + 1, which are the two members of pairs. */
static void store_pairs(Cpu *s, uint32_t stage)
{
	LoopFn *f = s->e.f;
	LMem mem = eval_memory(&s->e, s->e.k->stage.data[stage].store.buf);
	Lx a = stored_vector(s, stage), b = stored_vector(s, stage + 1);
	Lx at = eval_let(&s->e, "at", eval_index(&s->e, s->e.nest->store[stage]));
	ls_store(f, mem, at, lx_shuffle(f, SHUFFLE_ZIP_LOW, a, b), (Lx){0});
	ls_store(f, mem, lx_add(f, at, lx_int(f, s->e.lanes.n)),
		 lx_shuffle(f, SHUFFLE_ZIP_HIGH, a, b), (Lx){0});
}

static void map_step(Cpu *s, StageRun *r, const Stage *st)
{
	if (starts_pair(s, r->stage))
		return; /* the next stage stores both */
	if (r->stage && starts_pair(s, r->stage - 1)) {
		store_pairs(s, r->stage - 1);
		return;
	}
	Lx v = eval_value(&s->e, st->value);
	if (stage_stores(st)) {
		cpu_store(s, r->stage, v);
		return;
	}
	eval_store_local(&s->e, r->stage, v);
}

static void run_stage(Generic *g, uint32_t stage);

/* Computes the sums that are terms of the stage's sum, at the current point. */
static void run_terms(StageRun *r, const Stage *st)
{
	const Cpu *s = r->g->s;
	const Nest *n = s->e.nest;
	for (uint32_t i = 0; (i = nest_next_read(n, st->value, i)) < r->stage; i++)
		if (nest_is_term(n, &s->e.k->stage.data[i]))
			run_stage(r->g, i);
}

static void stage_body(Cpu *s, void *data)
{
	StageRun *r = data;
	const Stage *st = &s->e.k->stage.data[r->stage];
	Branch b;
	switch (st->kind) {
	case STAGE_REDUCE:
	case STAGE_ARGREDUCE:
		run_terms(r, st);
		b = generic_branch(r);
		generic_reduce_step(r);
		generic_branch_end(s, &b);
		break;
	case STAGE_RUNNING:
		generic_running_step(r);
		break;
	case STAGE_SCATTER:
		cpu_scatter(s, r->stage);
		break;
	default:
		run_terms(r, st);
		map_step(s, r, st);
		break;
	}
}

/* Returns how many elements of the axis one round of the reduction takes. */
static int64_t round_elements(const StageRun *r, uint32_t axis)
{
	const Cpu *s = r->g->s;
	if (axis != s->e.lanes.axis || eval_outer_vector(&s->e))
		return 1;
	return generic_has_chains(r->g->p, &s->e.k->stage.data[r->stage], axis)
		       ? MAX_CHAINS * (int64_t)s->e.lanes.n
		       : s->e.lanes.n;
}

static void plan_sums(StageRun *r, const Stage *st)
{
	const Cpu *s = r->g->s;
	int64_t most[MAX_RANK];
	if (st->kind != STAGE_REDUCE || nest_maps_inner(s->e.nest, st))
		return;
	for (uint32_t i = 0; i < r->n; i++) {
		uint32_t axis = r->axes[i];
		int64_t per = round_elements(r, axis);
		most[i] = sum_most(s->e.syms, axis == r->g->phase->grid.cut
						      ? r->g->phase->grid.per
						      : s->e.nest->extent[axis]);
		most[i] = most[i] == INT64_MAX ? most[i] : (most[i] + per - 1) / per;
	}
	r->sums = sum_plan(most, r->n, sum_limit(stage_combine(st), stage_acc(st), st->dtype));
}

/* Sets r->axes to the inner loops of a stage, the summed axes first and the vector axis last. */
static void stage_axes(const Cpu *s, StageRun *r, const Stage *st)
{
	AxisList map = nest_inner(s->e.nest, st);
	if (nest_is_term(s->e.nest, st)) /* the loops of the stage that reads it are open */
		map.n = 0;
	uint32_t all[2 * MAX_RANK], n = 0;
	for (uint32_t i = 0; i < st->nred; i++)
		all[n++] = st->red[i];
	for (uint32_t i = 0; i < map.n; i++)
		all[n++] = map.axis[i];
	for (uint32_t i = 0; i < n; i++)
		if (all[i] != s->e.lanes.axis)
			r->axes[r->n++] = all[i];
	for (uint32_t i = 0; i < n; i++)
		if (all[i] == s->e.lanes.axis)
			r->axes[r->n++] = all[i];
	plan_sums(r, st);
}

bool generic_sums(const StageRun *r, uint32_t n, SumLoop *out)
{
	*out = (SumLoop){.kind = stage_combine(&r->g->s->e.k->stage.data[r->stage]),
			 .n = n,
			 .width = round_elements(r, r->axes[r->next])};
	out->ncut = sum_cuts(&r->sums, r->next, &out->cut);
	return out->ncut;
}

static uint32_t lanes_of_stage(const Cpu *s, const Stage *st)
{
	if (s->e.lanes.axis == NO_AXIS)
		return 1;
	if (eval_outer_vector(&s->e))
		return s->e.lanes.n;
	for (uint32_t i = 0; i < st->nred; i++)
		if (st->red[i] == s->e.lanes.axis)
			return s->e.lanes.n;
	return 1;
}

static void start_accumulators(Cpu *s, StageRun *r, const Stage *st)
{
	uint32_t lanes = lanes_of_stage(s, st);
	if (st->kind == STAGE_REDUCE || st->kind == STAGE_RUNNING)
		r->acc = ls_var(
			s->e.f, "acc",
			code_identity(&s->code, stage_combine(st), (LType){stage_acc(st), lanes}));
	if (st->kind == STAGE_ARGREDUCE) {
		int64_t least, most;
		sym_range(s->e.syms, s->e.nest->extent[st->red[0]], &least, &most);
		const DType place = most <= INT32_MAX ? DT_i32 : DT_i64;
		r->best = ls_var(s->e.f, "best",
				 code_identity(&s->code, stage_combine(st),
					       (LType){reduced_dtype(s, st), lanes}));
		r->arg = ls_var(s->e.f, "arg", lx_int_of(s->e.f, (LType){place, lanes}, 0));
	}
}

StageRun generic_start(Generic *g, uint32_t stage)
{
	const Stage *st = &g->s->e.k->stage.data[stage];
	StageRun r = {.g = g, .stage = stage};
	stage_axes(g->s, &r, st);
	start_accumulators(g->s, &r, st);
	return r;
}

/* ---- stages that are not always needed ---- */

/* Returns the cycles of reducing one row: of reading its elements from the cache or memory that
 * holds the whole tensor, and of an operation for each. */
static double row_cycles(const Cpu *s, const Stage *st)
{
	double n = 1, cycles = 0;
	uint64_t axes = 0;
	bool *part = ARENA_ARRAY(s->e.arena, bool, s->e.k->kx.n);
	for (uint32_t i = 0; i < st->nred; i++) {
		n *= (double)nest_hint(s->e.nest, st->red[i]);
		axes |= UINT64_C(1) << st->red[i];
	}
	part[st->value.i] = true;
	for (uint32_t i = st->value.i; i > 0; i--) {
		const KxData *x = &s->e.k->kx.data[i];
		for (uint32_t j = 0; part[i] && j < x->nin; j++)
			part[x->in[j].i] = true;
		if (!part[i] || x->kind != KX_LOAD || !(s->e.nest->deps[i] & axes))
			continue;
		const Buffer *b = buf_of(s->e.l, x->buf);
		double size = dtype_size(b->dtype),
		       all = size *
			     (double)sym_hint(s->e.syms, layout_numel(s->e.l->ir, &b->layout));
		cycles += machine_memory_cycles(&s->target->machine, n * size, all);
	}
	return cycles + n / (double)s->e.lanes.n;
}

/* Returns the condition under which the stage has to run, if a branch costs less than running it
 * always; else none. The condition must be known at the point, and the stage must check no
 * index. */
static Kx runs_where(const Generic *g, const Stage *st, uint32_t stage)
{
	const Cpu *s = g->s;
	bool simple = st->kind == STAGE_REDUCE && nest_keeps_value(s->e.nest, st) &&
		      !nest_maps_inner(s->e.nest, st) && !g->p->parts;
	for (uint32_t i = 0; i < s->e.k->vvar.n; i++)
		simple = simple && !s->e.k->vvar.data[i].check;
	Kx where = simple ? kernel_needed_where(s->e.k, stage, s->e.arena) : (Kx){0};
	bool known = where.i && nest_next_read(s->e.nest, where, stage) == s->e.k->stage.n &&
		     !eval_varies(&s->e, where) &&
		     !(s->e.nest->deps[where.i] & ~generic_known_axes(s));
	return known && row_cycles(s, st) > s->target->machine.branch ? where : (Kx){0};
}

StageRole generic_role(const Generic *g, uint32_t stage)
{
	return g->phase->role ? g->phase->role[stage] : RUN_WHOLE;
}

static void set_result(Cpu *s, uint32_t stage, Lx v)
{
	v = eval_convert(&s->e, v, dtype_compute(s->e.k->stage.data[stage].dtype));
	eval_stage_value(&s->e, stage, lx_var(s->e.f, ls_let(s->e.f, "r", v)));
}

/* Returns the place of the first of the lanes that have the best value, or NaN. */
static Lx first_of_lanes(Cpu *s, StageRun *r, const Stage *st)
{
	Lx best = lx_var(s->e.f, r->best), arg = lx_var(s->e.f, r->arg);
	LType t = lx_type(s->e.f, arg);
	Lx hit = lx_cmp(
		s->e.f, SC_eq, best,
		lx_splat(s->e.f, lx_hreduce(s->e.f, reduce_op(stage_combine(st)), best), t.lanes));
	if (dtype_is_float(lx_type(s->e.f, best).dtype))
		hit = lx_sc(s->e.f, SC_or, lx_type(s->e.f, hit),
			    (Lx[]){hit, lx_cmp(s->e.f, SC_ne, best, best)}, 2);
	return lx_hreduce(
		s->e.f, SC_min,
		lx_select(s->e.f, hit, arg,
			  lx_int_of(s->e.f, t, t.dtype == DT_i32 ? INT32_MAX : INT64_MAX)));
}

void generic_finish(StageRun *r)
{
	Cpu *s = r->g->s;
	const Stage *st = &s->e.k->stage.data[r->stage];
	const Parts *parts = r->g->p->parts;
	eval_stage_stored(&s->e, r->stage);
	if (!nest_keeps_value(s->e.nest, st))
		return;
	Lx v = lx_var(s->e.f, st->kind == STAGE_ARGREDUCE ? r->arg : r->acc);
	bool across = lx_type(s->e.f, v).lanes > 1 && !eval_outer_vector(&s->e);
	if (across)
		v = st->kind == STAGE_ARGREDUCE
			    ? first_of_lanes(s, r, st)
			    : lx_hreduce(s->e.f, reduce_op(stage_combine(st)), v);
	if (generic_role(r->g, r->stage) == RUN_PART)
		eval_store_temp(&s->e, parts->temp[r->stage], parts->slot, v);
	else
		set_result(s, r->stage, v);
}

/* Combines the results of all parts of a reduction, in order (split reduction). */
static void combine_parts(Generic *g, uint32_t stage)
{
	Cpu *s = g->s;
	const Parts *p = g->p->parts;
	assert(p); /* what has the role RUN_FROM_PARTS has parts */
	const Stage *st = &s->e.k->stage.data[stage];
	uint32_t lanes = eval_outer_vector(&s->e) ? s->e.lanes.n : 1;
	Lv acc = ls_var(s->e.f, "acc",
			code_identity(&s->code, stage_combine(st), (LType){stage_acc(st), lanes}));
	eval_for(&s->e, p->number, lx_int(s->e.f, 0),
		 eval_size(&s->e, s->e.nest->extent[p->number]), 1);
	Lx part = eval_load_temp(&s->e, p->temp[stage], p->slot);
	ls_set(s->e.f, acc, code_combine(&s->code, stage_combine(st), lx_var(s->e.f, acc), part));
	eval_end(&s->e);
	set_result(s, stage, lx_var(s->e.f, acc));
}

/* Runs a reduction only where the condition holds. Elsewhere nothing reads its result. */
static void run_where(StageRun *r, const Stage *st, Kx where)
{
	Cpu *s = r->g->s;
	LType t = {dtype_compute(st->dtype), eval_outer_vector(&s->e) ? s->e.lanes.n : 1};
	Lx condition = eval_value(&s->e, where);
	Lv result = ls_var(s->e.f, "r", code_identity(&s->code, stage_combine(st), t));
	ls_if(s->e.f, condition);
	start_accumulators(s, r, st);
	eval_hoist(&s->e, st->value, generic_known_axes(s));
	stage_loops(r);
	generic_finish(r);
	ls_set(s->e.f, result, s->e.stage[r->stage].value);
	ls_end(s->e.f);
	eval_stage_value(&s->e, r->stage, lx_var(s->e.f, result));
}

/* Evaluates a value that later stages read at the same point. */
static void keep_value(Cpu *s, uint32_t stage)
{
	const Kx value = s->e.k->stage.data[stage].value;
	set_result(s, stage,
		   eval_outer_vector(&s->e) ? eval_vector(&s->e, value) : eval_value(&s->e, value));
}

static void run_stage(Generic *g, uint32_t stage)
{
	Cpu *s = g->s;
	const Stage *st = &s->e.k->stage.data[stage];
	if (st->kind == STAGE_MAP && nest_keeps_value(s->e.nest, st)) {
		keep_value(s, stage);
		return;
	}
	if (st->kind == STAGE_CHECK) {
		eval_check(&s->e, stage);
		return;
	}
	if (st->kind == STAGE_SORT) {
		if (st->value.i)
			cpu_sort(s, stage);
		return;
	}
	if (st->kind == STAGE_FFT) {
		if (stage == 0 || stage_next(&s->e.k->stage.data[stage - 1]) != stage)
			cpu_fft(s, stage, g->phase->grid.ntasks);
		return;
	}
	if (st->kind == STAGE_FACTOR) {
		if (stage == 0 || stage_next(&s->e.k->stage.data[stage - 1]) != stage)
			cpu_factor(s, stage);
		return;
	}
	StageRun r = {.g = g, .stage = stage};
	stage_axes(s, &r, st);
	if (nest_keeps_row(s->e.nest, st))
		eval_stage_local(&s->e, stage, axes_local_bound(s->e.nest, st));
	Kx where = runs_where(g, st, stage);
	if (where.i) {
		run_where(&r, st, where);
		return;
	}
	start_accumulators(s, &r, st);
	eval_hoist(&s->e, st->value, generic_known_axes(s));
	stage_loops(&r);
	generic_finish(&r);
}

void generic_stage(Generic *g, uint32_t stage)
{
	StageRole role = generic_role(g, stage);
	if (role == RUN_FROM_PARTS)
		combine_parts(g, stage);
	else if (role != RUN_NOT)
		run_stage(g, stage);
}

static void outer_point(Cpu *s, void *data)
{
	Generic *g = data;
	for (uint32_t i = 0; i < s->e.k->stage.n; i++)
		if (!nest_is_term(s->e.nest, &s->e.k->stage.data[i]))
			generic_stage(g, i);
	for (uint32_t i = 0; i < s->e.k->stage.n; i++)
		eval_stage_over(&s->e, i);
}

/* ---- outer loops ---- */

/* Runs two vectors of points of the first half of [lo, hi) and two of the second in turn: of memory
 * processors fetch more ahead where more streams are read. Returns the first point that is left. */
static Lx run_halves(Generic *g, Lx lo, Lx hi)
{
	Cpu *s = g->s;
	LoopFn *f = s->e.f;
	const uint32_t axis = s->e.lanes.axis, step = 2 * s->e.lanes.n;
	const Lx pairs = lx_div(f, lx_sub(f, hi, lo), lx_int(f, 2 * step));
	const Lx half = eval_let(&s->e, "half", lx_mul(f, pairs, lx_int(f, step)));
	eval_for(&s->e, axis, lo, eval_let(&s->e, "middle", lx_add(f, lo, half)), step);
	const Lx here = s->e.at[axis];
	for (uint32_t v = 0; v < 4; v++) {
		const Lx first = v < 2 ? here : lx_add(f, here, half);
		eval_at(&s->e, axis, lx_add(f, first, lx_int(f, v % 2 * s->e.lanes.n)));
		outer_point(s, g);
	}
	eval_at(&s->e, axis, here);
	eval_end(&s->e);
	return eval_let(&s->e, "rest", lx_add(f, lo, lx_mul(f, half, lx_int(f, 2))));
}

static bool reads_own_result(const Cpu *s)
{
	for (uint32_t i = 0; i < s->e.k->stage.n; i++)
		for (uint32_t j = 1; s->e.nest->store[i].i && j < s->e.k->kx.n; j++)
			if (s->e.nest->offset[j].i &&
			    s->e.k->kx.data[j].buf.i == s->e.k->stage.data[i].store.buf.i)
				return true;
	return false;
}

static bool may_be_empty(const Cpu *s, uint32_t axis)
{
	int64_t lo, hi;
	sym_range(s->e.syms, s->e.nest->extent[axis], &lo, &hi);
	return lo < 1;
}

/* Evaluates, ahead of the loop over this axis, what the loop would compute again in each round.
 * Does nothing if the loop might have no round, because there may be nothing to read, or if the
 * kernel reads its own results. */
static void hoist_out_of(Generic *g, uint32_t axis)
{
	Cpu *s = g->s;
	if (may_be_empty(s, axis) || reads_own_result(s))
		return;
	uint64_t known = generic_known_axes(s);
	for (uint32_t i = 0; known && i < s->e.k->stage.n; i++)
		if (generic_role(g, i) == RUN_WHOLE || generic_role(g, i) == RUN_PART)
			eval_hoist(&s->e, s->e.k->stage.data[i].value, known);
}

static void outer_loops(Generic *g, uint32_t next)
{
	Cpu *s = g->s;
	bool outer_vector = eval_outer_vector(&s->e);
	if (next < g->phase->grid.n) {
		uint32_t axis = g->phase->grid.order[next];
		Lx lo = cpu_start(s, axis), hi = cpu_limit(s, axis);
		hoist_out_of(g, axis);
		if (s->e.lanes.axis == NO_AXIS && next + 1 == g->phase->grid.n &&
		    g->phase->abreast > 1)
			lo = abreast_run_rows(g, axis, lo, hi);
		eval_for(&s->e, axis, lo, hi, 1);
		outer_loops(g, next + 1);
		eval_end(&s->e);
		eval_at(&s->e, axis, (Lx){0});
	} else if (g->p->turned.across != NO_AXIS) {
		if (!may_be_empty(s, g->p->turned.across))
			hoist_out_of(g, s->e.lanes.axis);
		if (g->p->turned.neighbours)
			transpose_interleave(s, &g->p->turned);
		else
			transpose_tiles(s, &g->p->turned);
	} else if (outer_vector) {
		uint32_t axis = s->e.lanes.axis;
		Lx lo = cpu_start(s, axis), hi = cpu_limit(s, axis);
		bool whole = sym_divides(s->e.syms, s->e.lanes.n, s->e.nest->extent[axis]);
		hoist_out_of(g, axis);
		lo = generic_halves(g->p, &g->phase->grid) ? run_halves(g, lo, hi)
							   : abreast_run(g, lo, hi);
		cpu_vector_loop(s, axis, lo, hi, whole, outer_point, g);
		eval_at(&s->e, axis, (Lx){0});
	} else {
		outer_point(s, g);
	}
}

/* Splits the task number into the part of the cut axis and the values of the task axes, the last
 * one fastest. */
static void decode_task(Generic *g)
{
	Cpu *s = g->s;
	Lx t = lx_var(s->e.f, s->e.f->task);
	if (g->phase->grid.cut != NO_AXIS) {
		Lx c = t, per = eval_size(&s->e, g->phase->grid.per);
		if (g->phase->grid.ntask) {
			c = lx_mod(s->e.f, t, eval_size(&s->e, g->phase->grid.npart));
			t = lx_div(s->e.f, t, eval_size(&s->e, g->phase->grid.npart));
		}
		Lx lo = lx_var(s->e.f, ls_let(s->e.f, "lo", lx_mul(s->e.f, c, per)));
		Lx hi = lx_min(s->e.f, lx_add(s->e.f, lo, per),
			       eval_size(&s->e, s->e.nest->extent[g->phase->grid.cut]));
		cpu_part(s, g->phase->grid.cut, lo, lx_var(s->e.f, ls_let(s->e.f, "hi", hi)));
		if (g->p->parts)
			eval_at(&s->e, g->p->parts->number, c);
	}
	for (uint32_t i = g->phase->grid.ntask; i-- > 0;) {
		uint32_t a = g->phase->grid.order[i];
		Lx v = t;
		if (i) {
			v = lx_mod(s->e.f, t, eval_size(&s->e, s->e.nest->extent[a]));
			t = lx_div(s->e.f, t, eval_size(&s->e, s->e.nest->extent[a]));
		}
		eval_at(&s->e, a,
			lx_var(s->e.f, ls_let(s->e.f, sym_name(s->e.syms, s->e.nest->var[a]), v)));
	}
}

static void run_phase(Cpu *s, const GenericPlan *p, const GenericPhase *phase)
{
	Generic g = {.s = s, .p = p, .phase = phase};
	cpu_begin_phase(s, p->nest);
	eval_lanes(&s->e, p->lanes.axis, p->lanes.n);
	decode_task(&g);
	outer_loops(&g, phase->grid.ntask);
	cpu_finish_phase(s, phase->grid.ntasks, phase->cost);
}

void emit_generic(Cpu *s, const Plan *plan)
{
	const GenericPlan *p = plan->of.generic;
	for (uint32_t i = 0; p->parts && i < p->parts->temps.n; i++)
		code_temp(&s->code, p->parts->temps.data[i]);
	for (uint32_t i = 0; i < p->phase.n; i++)
		run_phase(s, p, &p->phase.data[i]);
}
