/* The code of GpuRowsPlan. */
#include "codegen/gpu/block.h"

enum { MOST_CACHED = 16 };

/* An expression whose values at the elements of a thread stay in registers. */
typedef struct {
	Kx x;
	Lv var[GPU_KEPT];
	bool set;
} Cached;

typedef struct {
	Code *s;
	const GpuRowsPlan *p;
	uint32_t phase;      /* from 0 */
	bool last;
	uint32_t reductions; /* so far in this phase */
	Lx point, part;      /* part none: a point has one block in this phase */
	Lx valid;            /* none: the point exists */
	Lx place;            /* of the thread in its team */
	Lx lo, hi;           /* of the axis: the first element of the thread, and the end */
	Lx at[GPU_KEPT], in[GPU_KEPT]; /* kept elements, and whether they exist (none: they do) */
	Cached cached[MOST_CACHED];
	uint32_t ncached;
	LMem *row;           /* by stage: shared memory of its results */
} Rows;

/* A partial result: of a reduction, or the best value and its place. */
typedef struct {
	Lx v, arg;
} Partial;

typedef struct {
	Rows *r;
	uint32_t stage;
	uint32_t axis[2 * MAX_RANK], n;
	Lv acc, arg;
	uint32_t k; /* which of the kept elements */
} Run;

static const Stage *stage_of(const Rows *r, uint32_t i)
{
	return &r->s->e.k->stage.data[i];
}

static bool has_inner(const Rows *r, const Stage *st)
{
	return st->nred || nest_maps_inner(r->s->e.nest, st);
}

static Lx both(Rows *r, Lx a, Lx b)
{
	return !a.i ? b : !b.i ? a : lx_and(r->s->e.f, a, b);
}

/* ---- one result of two ---- */

static DType reduced_dtype(const Rows *r, const Stage *st)
{
	return st->kind == STAGE_ARGREDUCE ? r->s->e.k->kx.data[st->value.i].dtype : stage_acc(st);
}

/* Whether b, whose place comes later unless it is less, takes the place of a: NaN beats everything
 * but NaN. */
static Lx takes_over(Rows *r, const Stage *st, Partial a, Partial b)
{
	LoopFn *f = r->s->e.f;
	const LType bit = {DT_bool, 1};
	Lx wins = lx_cmp(f, stage_combine(st) == REDUCE_MAX ? SC_gt : SC_lt, b.v, a.v),
	   same = lx_cmp(f, SC_eq, a.v, b.v);
	if (dtype_is_float(lx_type(f, a.v).dtype)) {
		Lx a_nan = lx_cmp(f, SC_ne, a.v, a.v), b_nan = lx_cmp(f, SC_ne, b.v, b.v);
		Lx a_ok = lx_sc(f, SC_not, bit, &a_nan, 1);
		wins = lx_sc(f, SC_or, bit, (Lx[]){wins, lx_and(f, b_nan, a_ok)}, 2);
		same = lx_sc(f, SC_or, bit, (Lx[]){same, lx_and(f, a_nan, b_nan)}, 2);
	}
	return lx_sc(f, SC_or, bit, (Lx[]){wins, lx_and(f, same, lx_cmp(f, SC_lt, b.arg, a.arg))},
		     2);
}

static Partial combine(Rows *r, const Stage *st, Partial a, Partial b)
{
	Eval *e = &r->s->e;
	if (st->kind != STAGE_ARGREDUCE)
		return (Partial){
			.v = eval_let(e, "acc", code_combine(r->s, stage_combine(st), a.v, b.v))};
	Lx wins = eval_let(e, "wins", takes_over(r, st, a, b));
	return (Partial){eval_let(e, "best", lx_select(e->f, wins, b.v, a.v)),
			 eval_let(e, "arg", lx_select(e->f, wins, b.arg, a.arg))};
}

/* ---- what the threads of a team have together ---- */

/* Returns the value of the lane that is `by` away; bools are exchanged as integers. */
static Lx from_lane(Rows *r, Lx v, uint32_t by)
{
	LoopFn *f = r->s->e.f;
	const LType t = lx_type(f, v), wide = {DT_i32, 1};
	if (t.dtype != DT_bool)
		return eval_let(&r->s->e, "other", lx_warp(f, WARP_XOR, v, lx_int(f, by)));
	Lx x = eval_let(&r->s->e, "bits", lx_sc(f, SC_convert, wide, &v, 1));
	x = eval_let(&r->s->e, "other", lx_warp(f, WARP_XOR, x, lx_int(f, by)));
	return lx_cmp(f, SC_ne, x, lx_int_of(f, wide, 0));
}

static Partial exchange(Rows *r, const Stage *st, Partial a, uint32_t lanes)
{
	for (uint32_t by = lanes / 2; by; by /= 2) {
		Partial b = {.v = from_lane(r, a.v, by)};
		if (a.arg.i)
			b.arg = from_lane(r, a.arg, by);
		a = combine(r, st, a, b);
	}
	return a;
}

/* Leaves the thread's partial result at a place of the block, for all to read. */
typedef struct {
	LMem v, arg;
} Exchange;

static Exchange leave(Rows *r, Partial a, uint32_t n, Lx at, Lx who)
{
	LoopFn *f = r->s->e.f;
	Exchange x = {.v = ls_shared(f, "partial", lx_type(f, a.v).dtype, n)};
	if (a.arg.i)
		x.arg = ls_shared(f, "places", lx_type(f, a.arg).dtype, n);
	if (who.i)
		ls_if(f, who);
	ls_store(f, x.v, at, a.v, (Lx){0});
	if (a.arg.i)
		ls_store(f, x.arg, at, a.arg, (Lx){0});
	if (who.i)
		ls_end(f);
	ls_sync(f);
	return x;
}

static Partial take(Rows *r, const Exchange *x, Partial like, Lx at)
{
	LoopFn *f = r->s->e.f;
	Partial p = {.v = lx_var(f, ls_load(f, "other", x->v, at, lx_type(f, like.v), (Lx){0}))};
	if (like.arg.i)
		p.arg = lx_var(f, ls_load(f, "place", x->arg, at, lx_type(f, like.arg), (Lx){0}));
	return p;
}

/* Combines the partial results of all threads of the team, for each of them. */
static Partial of_team(Rows *r, const Stage *st, Partial a)
{
	LoopFn *f = r->s->e.f;
	const uint32_t team = r->p->team, warps = team / WARP;
	if (!r->p->columns) {
		a = exchange(r, st, a, team < WARP ? team : WARP);
		if (team <= WARP)
			return a;
		Lx first = lx_cmp(f, SC_eq, block_column(r->s, WARP), lx_int(f, 0));
		const Exchange x = leave(r, a, warps, block_row(r->s, WARP), first);
		return exchange(r, st, take(r, &x, a, block_column(r->s, warps)), warps);
	}
	const Exchange x = leave(r, a, team * r->p->rows, block_thread(r->s), (Lx){0});
	Lx column = eval_let(&r->s->e, "column", block_column(r->s, r->p->rows));
	Partial all = take(r, &x, a, column);
	for (uint32_t k = 1; k < team; k++)
		all = combine(
			r, st, all,
			take(r, &x, a, lx_add(f, column, lx_int(f, (int64_t)k * r->p->rows))));
	return all;
}

/* ---- rows that stay in the kernel ---- */

static Lx stored(Rows *r, const Stage *st, Lx v)
{
	Eval *e = &r->s->e;
	return eval_convert(e, eval_convert(e, v, st->dtype), dtype_compute(st->dtype));
}

static bool is_local(const Rows *r, Kx x)
{
	const KxData *d = &r->s->e.k->kx.data[x.i];
	return d->kind == KX_STAGE && nest_keeps_row(r->s->e.nest, stage_of(r, d->stage));
}

static const bool *reached(const Rows *r, uint32_t stage)
{
	const Kernel *k = r->s->e.k;
	bool *mark = ARENA_ARRAY(r->s->e.arena, bool, k->kx.n);
	kernel_reached(k, stage, stage + 1, mark);
	return mark;
}

/* Makes the row results that a stage reads known at the point. */
static void provide(Rows *r, uint32_t stage)
{
	Eval *e = &r->s->e;
	const bool *mark = reached(r, stage);
	for (uint32_t i = 1; i < e->k->kx.n; i++) {
		if (!mark[i] || !is_local(r, (Kx){i}) || eval_known(e, (Kx){i}).i)
			continue;
		const uint32_t from = e->k->kx.data[i].stage;
		const Stage *st = stage_of(r, from);
		if (r->p->row_bytes) {
			Lx v = lx_var(e->f, ls_load(e->f, "row", r->row[from], e->at[r->p->along],
						    (LType){dtype_compute(st->dtype), 1}, (Lx){0}));
			eval_assume(e, (Kx){i}, v);
			continue;
		}
		provide(r, from);
		eval_assume(e, (Kx){i},
			    eval_let(e, "row", stored(r, st, eval_value(e, st->value))));
	}
}

/* ---- elements ---- */

static void argument_step(Run *run, const Stage *st)
{
	Rows *r = run->r;
	Eval *e = &r->s->e;
	Partial best = {lx_var(e->f, run->acc), lx_var(e->f, run->arg)},
		x = {.v = eval_value(e, st->value)};
	x.arg = eval_convert(e, e->at[st->red[0]], lx_type(e->f, best.arg).dtype);
	Lx wins = eval_let(e, "wins", takes_over(r, st, best, x));
	ls_set(e->f, run->acc, lx_select(e->f, wins, x.v, best.v));
	ls_set(e->f, run->arg, lx_select(e->f, wins, x.arg, best.arg));
}

static void element(Run *run)
{
	Rows *r = run->r;
	Eval *e = &r->s->e;
	const Stage *st = stage_of(r, run->stage);
	provide(r, run->stage);
	if (st->kind == STAGE_ARGREDUCE) {
		argument_step(run, st);
	} else if (st->kind == STAGE_REDUCE) {
		ls_set(e->f, run->acc,
		       code_accumulate(r->s, st, lx_var(e->f, run->acc), st->value));
	} else if (st->kind == STAGE_CHECK) {
		eval_check(e, run->stage);
	} else if (stage_stores(st)) {
		block_store(r->s, run->stage);
	} else if (r->row && r->p->row_bytes) {
		ls_store(e->f, r->row[run->stage], e->at[r->p->along], eval_value(e, st->value),
			 (Lx){0});
	}
}

/* Makes what earlier stages kept of element k known. Keeps the rest of what this stage reads, and
 * its own result along the axis. */
static void keep(const Run *run, const bool *mark, uint32_t k)
{
	Rows *r = run->r;
	Eval *e = &r->s->e;
	const Stage *st = stage_of(r, run->stage);
	for (uint32_t c = 0; c < r->ncached; c++)
		if (r->cached[c].set)
			eval_assume(e, r->cached[c].x, lx_var(e->f, r->cached[c].var[k]));
	for (uint32_t c = 0; c < r->ncached; c++) {
		const Cached *kept = &r->cached[c];
		const KxData *x = &e->k->kx.data[kept->x.i];
		if (kept->set)
			continue;
		if (x->kind == KX_STAGE && x->stage == run->stage)
			ls_set(e->f, kept->var[k], stored(r, st, eval_value(e, st->value)));
		else if (mark[kept->x.i] && x->kind == KX_LOAD)
			ls_set(e->f, kept->var[k], eval_value(e, kept->x));
	}
}

static bool is_kept(const Rows *r, Kx load)
{
	for (uint32_t c = 0; c < r->ncached; c++)
		if (r->cached[c].x.i == load.i && r->cached[c].set)
			return true;
	return false;
}

/* Executes a stage at the group of elements from k on, which all exist. */
static void kept_group(Run *run, const bool *mark, uint32_t k)
{
	Rows *r = run->r;
	Eval *e = &r->s->e;
	const Stage *st = stage_of(r, run->stage);
	const uint32_t along = r->p->along, wide = r->p->kept.wide;
	const bool stores = wide > 1 && st->kind == STAGE_MAP && stage_stores(st);
	Lx value[GPU_WIDE];
	for (uint32_t i = 0; i < r->p->kept.nvector; i++)
		if (mark[r->p->kept.vector[i].i] && !is_kept(r, r->p->kept.vector[i]))
			block_load_wide(r->s, r->p->kept.vector[i], along, r->at[k], wide);
	for (uint32_t i = 0; i < wide; i++) {
		eval_at(e, along, r->at[k + i]);
		keep(run, mark, k + i);
		if (stores) {
			provide(r, run->stage);
			value[i] =
				eval_convert(e, eval_value(e, st->value), dtype_compute(st->dtype));
		} else if (!nest_keeps_row(r->s->e.nest, st)) {
			element(run);
		}
	}
	if (stores)
		block_store_wide(r->s, run->stage, along, r->at[k], wide, value);
}

static void kept_elements(Run *run)
{
	Rows *r = run->r;
	Eval *e = &r->s->e;
	const bool *mark = reached(r, run->stage);
	for (uint32_t k = 0; k < r->p->kept.n; k += r->p->kept.wide) {
		if (r->in[k].i)
			ls_if(e->f, r->in[k]);
		kept_group(run, mark, k);
		if (r->in[k].i)
			ls_end(e->f);
	}
	for (uint32_t c = 0; c < r->ncached; c++) {
		const KxData *x = &e->k->kx.data[r->cached[c].x.i];
		r->cached[c].set |=
			x->kind == KX_STAGE ? x->stage == run->stage : mark[r->cached[c].x.i];
	}
}

static void loops(Run *run, uint32_t i);

static void open_loop(Run *run, uint32_t i, Lx lo, Lx hi)
{
	Eval *e = &run->r->s->e;
	const uint32_t axis = run->axis[i];
	eval_for(e, axis, lo, hi, axis == run->r->p->along ? run->r->p->team : 1);
	loops(run, i + 1);
	eval_end(e);
}

static uint64_t known_axes(const Eval *e)
{
	uint64_t known = 0;
	for (uint32_t a = 0; a < e->nest->n; a++)
		if (e->at[a].i)
			known |= UINT64_C(1) << a;
	return known;
}

/* Executes a stage in loops over axis i and the axes behind it, in chunks, so that no chain of
 * additions is long. */
static void loops(Run *run, uint32_t i)
{
	Rows *r = run->r;
	Eval *e = &r->s->e;
	if (i == run->n) {
		element(run);
		return;
	}
	const uint32_t axis = run->axis[i];
	const bool along = axis == r->p->along;
	Lx lo = along ? r->lo : lx_int(e->f, 0),
	   hi = along ? r->hi : eval_size(e, e->nest->extent[axis]);
	SumLoop sums = {.kind = stage_combine(stage_of(r, run->stage)),
			.n = 1,
			.width = along ? r->p->team : 1};
	eval_hoist(e, stage_of(r, run->stage)->value, known_axes(e));
	sums.ncut = sum_cuts(&r->p->sums[run->stage], i, &sums.cut);
	if (sums.ncut)
		sum_open(r->s, &sums, &lo, &hi, &run->acc);
	open_loop(run, i, lo, hi);
	if (sums.ncut)
		sum_close(r->s, &sums, &run->acc);
}

static void elements(Run *run)
{
	Rows *r = run->r;
	LoopFn *f = r->s->e.f;
	if (r->p->kept.n) {
		kept_elements(run);
	} else {
		if (r->valid.i)
			ls_if(f, r->valid);
		loops(run, 0);
		if (r->valid.i)
			ls_end(f);
	}
	eval_at(&r->s->e, r->p->along, (Lx){0});
}

/* ---- stages ---- */

static Partial identity(Rows *r, const Stage *st)
{
	LoopFn *f = r->s->e.f;
	Partial p = {.v = code_identity(r->s, stage_combine(st), (LType){reduced_dtype(r, st), 1})};
	if (st->kind == STAGE_ARGREDUCE) {
		const int64_t most = sum_most(r->s->e.syms, r->s->e.nest->extent[st->red[0]]);
		p.arg = lx_int_of(f, (LType){most <= INT32_MAX ? DT_i32 : DT_i64, 1}, 0);
	}
	return p;
}

/* Combines the thread's elements of a temporary, which has the results of all parts of the
 * point. */
static void parts_of(Run *run, const Stage *st, uint32_t temp)
{
	Rows *r = run->r;
	Eval *e = &r->s->e;
	LMem m = eval_temp_memory(e, temp);
	Lx parts = eval_size(e, r->p->parts), base = lx_mul(e->f, r->point, parts);
	if (r->valid.i)
		ls_if(e->f, r->valid);
	Lx t = lx_var(e->f, ls_for(e->f, "part", r->place, parts, r->p->team));
	Lx v = lx_var(e->f, ls_load(e->f, "partial", m, lx_add(e->f, base, t),
				    lx_type(e->f, lx_var(e->f, run->acc)), (Lx){0}));
	ls_set(e->f, run->acc, code_combine(r->s, stage_combine(st), lx_var(e->f, run->acc), v));
	ls_end(e->f);
	if (r->valid.i)
		ls_end(e->f);
}

static Lx is_lead(Rows *r)
{
	LoopFn *f = r->s->e.f;
	return both(r, r->valid, lx_cmp(f, SC_eq, r->place, lx_int(f, 0)));
}

static void store_part(Rows *r, uint32_t temp, Lx v)
{
	Eval *e = &r->s->e;
	LMem m = eval_temp_memory(e, temp);
	ls_if(e->f, is_lead(r));
	ls_store(e->f, m, lx_add(e->f, lx_mul(e->f, r->point, eval_size(e, r->p->parts)), r->part),
		 v, (Lx){0});
	ls_end(e->f);
}

/* Returns false if the phase ends here. */
static bool reduction(Rows *r, uint32_t stage)
{
	Eval *e = &r->s->e;
	const Stage *st = stage_of(r, stage);
	const Partial start = identity(r, st);
	const uint32_t number = r->reductions++;
	const bool done = r->p->per && number < r->phase; /* in an earlier phase */
	Run run = {.r = r, .stage = stage, .acc = ls_var(e->f, "acc", start.v)};
	if (start.arg.i)
		run.arg = ls_var(e->f, "arg", start.arg);
	run.n = gpu_rows_axes(r->p, st, run.axis);
	if (done)
		parts_of(&run, st, number);
	else
		elements(&run);
	Partial mine = {.v = lx_var(e->f, run.acc),
			.arg = start.arg.i ? lx_var(e->f, run.arg) : (Lx){0}};
	const Partial all = of_team(r, st, mine);
	if (r->p->per && !done) {
		store_part(r, number, all.v);
		return false;
	}
	Lx v = eval_convert(e, start.arg.i ? all.arg : all.v, dtype_compute(st->dtype));
	eval_stage_value(e, stage, eval_let(e, "r", v));
	return true;
}

/* Executes a stage that has a result for each element along the axis. */
static void map(Rows *r, uint32_t stage)
{
	const Stage *st = stage_of(r, stage);
	Run run = {.r = r, .stage = stage};
	if (!nest_keeps_row(r->s->e.nest, st) && !r->last)
		return;
	if (nest_keeps_row(r->s->e.nest, st) && r->p->row_bytes)
		r->row[stage] = ls_shared(
			r->s->e.f, "row", st->dtype,
			(uint64_t)sum_most(r->s->e.syms, r->s->e.nest->extent[r->p->along]));
	run.n = gpu_rows_axes(r->p, st, run.axis);
	if (!nest_keeps_row(r->s->e.nest, st) || r->p->row_bytes || r->p->kept.n)
		elements(&run);
	eval_stage_stored(&r->s->e, stage);
}

/* Executes a stage with one value for the point: all threads of the team have it, or one stores
 * it. */
static void single(Rows *r, uint32_t stage)
{
	Eval *e = &r->s->e;
	const Stage *st = stage_of(r, stage);
	if (st->kind == STAGE_CHECK || stage_stores(st)) {
		if (!r->last)
			return;
		Lx who = is_lead(r);
		if (r->part.i)
			who = lx_and(e->f, who, lx_cmp(e->f, SC_eq, r->part, lx_int(e->f, 0)));
		ls_if(e->f, who);
		if (st->kind == STAGE_CHECK)
			eval_check(e, stage);
		else
			block_store(r->s, stage);
		ls_end(e->f);
		return;
	}
	const DType d = dtype_compute(st->dtype);
	if (!r->valid.i) {
		eval_stage_value(e, stage,
				 eval_let(e, "r", eval_convert(e, eval_value(e, st->value), d)));
		return;
	}
	const LType t = {d, 1};
	Lv v = ls_var(e->f, "r", dtype_is_float(d) ? lx_float(e->f, t, 0) : lx_int_of(e->f, t, 0));
	ls_if(e->f, r->valid);
	ls_set(e->f, v, eval_convert(e, eval_value(e, st->value), d));
	ls_end(e->f);
	eval_stage_value(e, stage, lx_var(e->f, v));
}

static void run_stages(Rows *r)
{
	const Kernel *k = r->s->e.k;
	for (uint32_t i = 0; i < k->stage.n; i++) {
		const Stage *st = &k->stage.data[i];
		if (st->kind == STAGE_REDUCE || st->kind == STAGE_ARGREDUCE) {
			if (!reduction(r, i))
				return;
		} else if (has_inner(r, st)) {
			map(r, i);
		} else {
			single(r, i);
		}
	}
}

/* ---- phases ---- */

/* Finds the expressions that several stages read at the thread's own elements. */
static void find_cached(Rows *r)
{
	Eval *e = &r->s->e;
	uint32_t *readers = ARENA_ARRAY(e->arena, uint32_t, e->k->kx.n);
	for (uint32_t i = 0; i < e->k->stage.n; i++) {
		const bool *mark = reached(r, i);
		for (uint32_t x = 1; x < e->k->kx.n; x++)
			readers[x] += mark[x] && has_inner(r, stage_of(r, i));
	}
	for (uint32_t x = 1; x < e->k->kx.n && r->ncached < MOST_CACHED; x++) {
		const KxData *d = &e->k->kx.data[x];
		const bool along = e->nest->deps[x] >> r->p->along & 1;
		if ((d->kind == KX_LOAD && along && readers[x] > 1 && !e->k->vvar.n) ||
		    is_local(r, (Kx){x}))
			r->cached[r->ncached++].x = (Kx){x};
	}
}

static void keep_elements(Rows *r)
{
	Eval *e = &r->s->e;
	const int64_t team = r->p->team, wide = r->p->kept.wide;
	int64_t least, most;
	Lx n = eval_size(e, e->nest->extent[r->p->along]),
	   own = lx_mul(e->f, r->place, lx_int(e->f, wide));
	sym_range(e->syms, e->nest->extent[r->p->along], &least, &most);
	find_cached(r);
	for (uint32_t k = 0; k < r->p->kept.n; k++) {
		const int64_t group = k / wide * wide;
		r->at[k] = k > group ? lx_add(e->f, r->at[group], lx_int(e->f, k - group))
				     : eval_let(e, "x", lx_add(e->f, own, lx_int(e->f, k * team)));
		r->in[k] =
			both(r, r->valid,
			     least >= (group + wide) * team ? (Lx){0}
							    : lx_cmp(e->f, SC_lt, r->at[group], n));
		for (uint32_t c = 0; c < r->ncached; c++) {
			const LType t = {e->k->kx.data[r->cached[c].x.i].dtype, 1};
			r->cached[c].var[k] =
				ls_var(e->f, "kept",
				       dtype_is_float(t.dtype) ? lx_float(e->f, t, 0)
							       : lx_int_of(e->f, t, 0));
		}
	}
}

/* Finds the point of the team, the part of the point that the block has, and the thread's place.
 * Blocks of the same points follow each other. */
static void find_point(Rows *r, bool in_parts)
{
	Eval *e = &r->s->e;
	const GpuRowsPlan *p = r->p;
	Lx b = block_number(r->s);
	if (in_parts) {
		Lx parts = eval_size(e, p->parts);
		r->part = eval_let(e, "part", lx_mod(e->f, b, parts));
		b = lx_div(e->f, b, parts);
	}
	Lx own = p->columns ? block_column(r->s, p->rows) : block_row(r->s, p->team);
	r->place = p->columns    ? block_row(r->s, p->rows)
		   : p->rows > 1 ? block_column(r->s, p->team)
				 : block_thread(r->s);
	r->place = eval_let(e, "place", r->place);
	Lx first = lx_mul(e->f, b, lx_int(e->f, p->rows));
	r->point = eval_let(e, "point", p->rows > 1 ? lx_add(e->f, first, own) : first);
	r->valid = (Lx){0};
	if (!sym_divides(e->syms, p->rows, p->points))
		r->valid = eval_let(e, "valid",
				    lx_cmp(e->f, SC_lt, r->point, eval_size(e, p->points)));
	block_decode(r->s, r->point, p->order, p->n, NULL);
}

static void find_elements(Rows *r)
{
	Eval *e = &r->s->e;
	r->lo = r->place;
	r->hi = eval_size(e, e->nest->extent[r->p->along]);
	if (!r->part.i)
		return;
	Lx per = lx_int(e->f, r->p->per), first = eval_let(e, "first", lx_mul(e->f, r->part, per));
	r->lo = eval_let(e, "lo", lx_add(e->f, first, r->place));
	r->hi = eval_let(e, "hi", lx_min(e->f, lx_add(e->f, first, per), r->hi));
}

/* Whether some stage stores or checks along the axis, so that the last phase of a kernel in parts
 * goes along it. */
static bool stores_along(const GpuRowsPlan *p)
{
	for (uint32_t i = 0; i < p->nest->k->stage.n; i++) {
		const Stage *st = &p->nest->k->stage.data[i];
		if ((st->nred || nest_maps_inner(p->nest, st)) &&
		    (stage_stores(st) || st->kind == STAGE_CHECK))
			return true;
	}
	return false;
}

/* Returns the cost of a phase: the first one reads and stores everything. */
static KernelCost cost_of(const GpuRowsPlan *p, uint32_t phase)
{
	const Cost *none = cost_number(p->nest->arena, 0);
	return phase ? (KernelCost){none, none} : p->cost;
}

static void run_phase(Code *s, const GpuRowsPlan *p, uint32_t phase)
{
	Rows r = {.s = s, .p = p, .phase = phase, .last = phase + 1 == p->phases};
	const bool in_parts = p->per && (!r.last || stores_along(p));
	SymTab *syms = s->e.syms;
	block_begin(s, p->nest, p->team * p->rows);
	r.row = ARENA_ARRAY(s->e.arena, LMem, s->e.k->stage.n);
	find_point(&r, in_parts);
	find_elements(&r);
	if (p->kept.n)
		keep_elements(&r);
	run_stages(&r);
	const Sym blocks =
		in_parts ? p->nblock : sym_ceildiv(syms, p->points, sym_int(syms, p->rows));
	code_finish_phase(s, blocks, cost_of(p, phase));
}

void emit_gpu_rows(Code *s, const Plan *plan)
{
	const GpuRowsPlan *p = plan->of.gpu_rows;
	for (uint32_t i = 0, n = 0; p->per && i < p->nest->k->stage.n; i++) {
		const Stage *st = &p->nest->k->stage.data[i];
		if (st->kind == STAGE_REDUCE) {
			code_temp(s, (SchedTemp){"partial", dtype_compute(stage_acc(st)),
						 sym_mul(p->nest->syms, p->points, p->parts), n,
						 p->phases - 1});
			n++;
		}
	}
	for (uint32_t i = 0; i < p->phases; i++)
		run_phase(s, p, i);
}
