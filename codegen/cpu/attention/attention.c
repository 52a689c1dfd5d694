/* The schedule for attention: keys pass by once, block by block (codegen/plan/attention.h). In the
 * field's words: online softmax, as in FlashAttention.
 *
 *   phases before: keys, and perhaps values, into panels of one vector
 *   task: rows of queries, copied to a local array
 *     for blocks of keys that some row's conditions let through:
 *       scores[row][key] = sum over depth of query * key           register tiles
 *       for each row: logits = f(scores), new = max(high, logits),
 *                     result[row] *= exp(high - new), sum = sum * exp(high - new),
 *                     scores = exp(logits - new), sum += scores
 *       result[row][column] += sum over keys of scores * value     register tiles
 *     for each row: the stages behind the sum, which store
 *
 * Rows past the end repeat the last one, so that every tile of rows is whole; they are not stored.
 * Keys past the end have the logit -inf. */
#include <math.h>

#include "codegen/cpu/contract.h"
#include "codegen/plan/attention/attention.h"

enum { UNROLL = 4 };
#define FAR (INT64_C(1) << 61) /* beyond all keys */

typedef struct {
	Cpu *s;
	const AttentionPlan *p;
	LoopFn *f;
	struct {
		LMem q, scores, result; /* [row][depth], [row][key], [row][column] */
		LMem weights;   /* [row][key], as the second product multiplies; `scores`, if that
				   is f32 */
		LMem high, sum; /* [row], [row][lane] */
		LMem level, by; /* [row]: what exponentials are above, and what scales sums */
	} local;
	int64_t depth, width; /* elements of a row of q, of result: whole vectors */
	struct AttentionOperand {
		LMem mem;
		Lx base, step; /* where the member of the batch begins; elements from a depth of
				  keys, from a value, to the next */
	} keys, values;
	struct {
		Lx first, n, whole; /* the block's first row, its rows, and those of whole tiles */
	} rows;
	Lx from, count, groups; /* the block of keys; their groups */
} Attention;

static Lx number(const Attention *a, int64_t v)
{
	return lx_int(a->f, v);
}

static Lx let(Attention *a, const char *name, Lx x)
{
	return eval_let(&a->s->e, name, x);
}

static Lx load(Attention *a, LMem m, Lx at, uint32_t lanes)
{
	return lx_var(a->f, ls_load(a->f, "x", m, at, (LType){DT_f32, lanes}, (Lx){0}));
}

static Lx times(const Attention *a, Lx x, int64_t n)
{
	return lx_mul(a->f, x, number(a, n));
}

/* ---- tasks ---- */

static void decode_task(Attention *a)
{
	Cpu *s = a->s;
	const AttentionPlan *p = a->p;
	LoopFn *f = a->f;
	Lx t = lx_var(f, f->task), blocks = eval_size(&s->e, p->blocks),
	   rows = p->axis.row == NO_AXIS ? number(a, 1)
					 : eval_size(&s->e, p->nest->extent[p->axis.row]);
	a->rows.first = let(a, "first", times(a, lx_mod(f, t, blocks), p->block.rows));
	t = let(a, "rest", lx_div(f, t, blocks));
	for (uint32_t i = p->axis.nbatch; i-- > 0;) {
		Lx n = eval_size(&s->e, p->nest->extent[p->axis.batch[i]]);
		eval_at(&s->e, p->axis.batch[i], let(a, "batch", i ? lx_mod(f, t, n) : t));
		t = i ? let(a, "rest", lx_div(f, t, n)) : t;
	}
	a->rows.n =
		let(a, "rows", lx_min(f, lx_sub(f, rows, a->rows.first), number(a, p->block.rows)));
	Lx up = lx_add(f, a->rows.n, number(a, p->tile.mr - 1));
	a->rows.whole = let(a, "whole", times(a, lx_div(f, up, number(a, p->tile.mr)), p->tile.mr));
}

/* Gives the row axis the value of row r of the block, or of the last row. */
static void go_to_row(Attention *a, Lx r, bool clamp)
{
	if (a->p->axis.row == NO_AXIS)
		return;
	if (clamp)
		r = lx_min(a->f, r, lx_sub(a->f, a->rows.n, number(a, 1)));
	eval_at(&a->s->e, a->p->axis.row, let(a, "row", lx_add(a->f, a->rows.first, r)));
}

static void leave_row(Attention *a)
{
	if (a->p->axis.row != NO_AXIS)
		eval_at(&a->s->e, a->p->axis.row, (Lx){0});
}

static Lx open_rows(Attention *a, Lx end, int64_t step)
{
	return lx_var(a->f, ls_for(a->f, "r", number(a, 0), end, step));
}

/* Calls body for each row of whole tiles; those past the end are the last row. */
static void for_rows(Attention *a, void (*body)(Attention *, Lx))
{
	Lx r = open_rows(a, a->rows.whole, 1);
	go_to_row(a, r, true);
	body(a, r);
	leave_row(a);
	ls_end(a->f);
}

/* A row, and where it begins in a local array. */
typedef struct {
	Attention *a;
	Lx at;
} RowPlace;

/* ---- queries ---- */

static void copy_query(Cpu *s, void *data)
{
	const RowPlace *q = data;
	Attention *a = q->a;
	Lx x = eval_vector(&s->e, a->p->value.q);
	ls_store(a->f, a->local.q, lx_add(a->f, q->at, s->e.at[a->p->axis.depth]), x,
		 s->e.lanes.mask);
}

static void copy_row(Attention *a, Lx r)
{
	const AttentionPlan *p = a->p;
	RowPlace q = {a, let(a, "at", times(a, r, a->depth))};
	cpu_vector_loop(a->s, p->axis.depth, number(a, 0), number(a, p->axis.depths),
			p->axis.depths % p->vector.lanes == 0, copy_query, &q);
}

static void copy_queries(Attention *a)
{
	eval_lanes(&a->s->e, a->p->axis.depth, a->p->vector.lanes);
	for_rows(a, copy_row);
	eval_lanes(&a->s->e, NO_AXIS, a->p->vector.lanes);
}

/* ---- products ---- */

/* The operands of a register tile: rows of a local array, and panels of vectors. Steps are elements
 * or groups of these. Step k of row i is at row + i * pitch + k * group of `a`; of vector j at
 * vector[j] + k * step of `b`. */
typedef struct {
	LMem a, b;
	Lx row, step, vector[MAX_TILE_VECTORS];
	int64_t pitch;
	uint32_t nv;
} Operands;

typedef Lv Sums[MAX_TILE_ROWS][MAX_TILE_VECTORS];

/* Returns the type of what a row multiplies: elements, or groups. */
static LType step_type(const Attention *a, uint32_t lanes)
{
	return (LType){micro_groups(a->p->row) ? DT_u32 : DT_f32, lanes};
}

static Lx add_product(Attention *a, Lx x, Lx b, Lx sum)
{
	const MicroKernel *row = a->p->row;
	if (!micro_groups(row))
		return code_fma(&a->s->code, x, b, sum);
	return lx_sc(a->f, row->op, a->p->vector,
		     (Lx[]){row->turned ? b : x, row->turned ? x : b, sum}, 3);
}

static void multiply_step(Attention *a, const Operands *o, Lx k, Sums sum)
{
	LoopFn *f = a->f;
	const uint32_t lanes = a->p->vector.lanes;
	const LType one = step_type(a, 1), all = step_type(a, lanes);
	Lx b[MAX_TILE_VECTORS], at = lx_mul(f, k, o->step), from = times(a, k, a->p->row->group);
	for (uint32_t j = 0; j < o->nv; j++) /* registers hold the vectors of one step */
		b[j] = lx_var(f, ls_load_in_order(f, "b", o->b, lx_add(f, o->vector[j], at), all,
						  (Lx){0}));
	for (uint32_t i = 0; i < a->p->tile.mr; i++) {
		Lx row = lx_add(f, lx_add(f, o->row, from), number(a, i * o->pitch));
		Lx x = lx_splat(f, lx_var(f, ls_load(f, "a", o->a, row, one, (Lx){0})), lanes);
		for (uint32_t j = 0; j < o->nv; j++)
			ls_set(f, sum[i][j], add_product(a, x, b[j], lx_var(f, sum[i][j])));
	}
}

/* Adds the products of `steps` steps. */
static void multiply(Attention *a, const Operands *o, Lx steps, Sums sum)
{
	LoopFn *f = a->f;
	int64_t n;
	const bool fixed = lx_is_int(f, steps, &n);
	Lx round = number(a, UNROLL),
	   end = fixed ? number(a, n - n % UNROLL)
		       : let(a, "end", lx_sub(f, steps, lx_mod(f, steps, round)));
	Lx k = lx_var(f, ls_for(f, "k", number(a, 0), end, UNROLL));
	for (uint32_t u = 0; u < UNROLL; u++)
		multiply_step(a, o, lx_add(f, k, number(a, u)), sum);
	ls_end(f);
	if (fixed && n % UNROLL == 0)
		return;
	k = lx_var(f, ls_for(f, "k", end, steps, 1));
	multiply_step(a, o, k, sum);
	ls_end(f);
}

/* Returns the offset of element [row + i][column of vector j] of a local array of that pitch. */
static Lx place(const Attention *a, Lx row, uint32_t i, int64_t pitch, Lx column, uint32_t j)
{
	Lx at = lx_add(a->f, times(a, row, pitch), column);
	return lx_add(a->f, at, number(a, i * pitch + (int64_t)j * a->p->vector.lanes));
}

static void start_sums(Attention *a, uint32_t nv, Sums sum, const LMem *from, Lx row, int64_t pitch,
		       Lx column)
{
	const LType t = a->p->vector;
	for (uint32_t i = 0; i < a->p->tile.mr; i++)
		for (uint32_t j = 0; j < nv; j++) {
			Lx x = from ? load(a, *from, place(a, row, i, pitch, column, j), t.lanes)
				    : lx_float(a->f, t, 0);
			sum[i][j] = ls_var(a->f, "sum", x);
		}
}

static void store_sums(Attention *a, uint32_t nv, Sums sum, LMem to, Lx row, int64_t pitch,
		       Lx column)
{
	for (uint32_t i = 0; i < a->p->tile.mr; i++)
		for (uint32_t j = 0; j < nv; j++)
			ls_store(a->f, to, place(a, row, i, pitch, column, j),
				 lx_var(a->f, sum[i][j]), (Lx){0});
}

/* Makes the scores of the block's rows and nv vectors of keys, from the key `key` of the block
 * on. */
static void make_scores(Attention *a, Lx key, uint32_t nv)
{
	Cpu *s = a->s;
	LoopFn *f = a->f;
	const AttentionPlan *p = a->p;
	Sums sum;
	Operands o = {.a = a->local.q,
		      .b = a->keys.mem,
		      .step = a->keys.step,
		      .pitch = a->depth,
		      .nv = nv};
	Lx panel = lx_div(f, lx_add(f, a->from, key), number(a, p->vector.lanes)),
	   stride = eval_size(&s->e, p->k_panels.stride);
	for (uint32_t j = 0; j < nv; j++)
		o.vector[j] = let(
			a, "panel",
			lx_add(f, a->keys.base, lx_mul(f, lx_add(f, panel, number(a, j)), stride)));
	Lx r = open_rows(a, a->rows.whole, p->tile.mr);
	o.row = let(a, "at", times(a, r, a->depth));
	start_sums(a, nv, sum, NULL, r, p->block.cols, key);
	multiply(a, &o, number(a, p->axis.depths / p->row->group), sum);
	store_sums(a, nv, sum, a->local.scores, r, p->block.cols, key);
	ls_end(f);
}

/* Makes the scores of all keys of the block: by whole tiles, then vector by vector. */
static void make_all_scores(Attention *a)
{
	LoopFn *f = a->f;
	const AttentionPlan *p = a->p;
	const int64_t lanes = p->vector.lanes, wide = p->tile.nv * lanes;
	Lx end = let(a, "end", lx_sub(f, a->count, lx_mod(f, a->count, number(a, wide))));
	Lx key = lx_var(f, ls_for(f, "key", number(a, 0), end, wide));
	make_scores(a, key, p->tile.nv);
	ls_end(f);
	if (sym_divides(a->s->e.syms, wide, p->nest->extent[p->axis.key]))
		return;
	key = lx_var(f, ls_for(f, "key", end, a->count, lanes));
	make_scores(a, key, 1);
	ls_end(f);
}

/* Adds the products of the block's exponentials with nv vectors of values, from the first one at
 * that column on. */
static void add_values(Attention *a, Lx column, uint32_t nv)
{
	Cpu *s = a->s;
	LoopFn *f = a->f;
	const AttentionPlan *p = a->p;
	Sums sum;
	const int64_t lanes = p->vector.lanes;
	Operands o = {.a = a->local.weights,
		      .b = a->values.mem,
		      .step = a->values.step,
		      .pitch = p->block.cols,
		      .nv = nv};
	/* from one vector of columns to the next */
	Lx vector = lx_div(f, column, number(a, lanes)),
	   stride = p->copy[1] ? eval_size(&s->e, p->v_panels.stride) : number(a, lanes),
	   first = lx_div(f, a->from, number(a, p->row->group)),
	   base = lx_add(f, a->values.base, lx_mul(f, first, a->values.step));
	for (uint32_t j = 0; j < nv; j++)
		o.vector[j] =
			let(a, "values",
			    lx_add(f, base, lx_mul(f, lx_add(f, vector, number(a, j)), stride)));
	Lx r = open_rows(a, a->rows.whole, p->tile.mr);
	o.row = let(a, "at", times(a, r, p->block.cols));
	start_sums(a, nv, sum, &a->local.result, r, a->width, column);
	multiply(a, &o, a->groups, sum);
	store_sums(a, nv, sum, a->local.result, r, a->width, column);
	ls_end(f);
}

static void add_all_values(Attention *a)
{
	LoopFn *f = a->f;
	const AttentionPlan *p = a->p;
	const uint32_t lanes = p->vector.lanes, nv = p->tile.nv, vectors = attention_vectors(p),
		       rest = vectors % nv;
	Lx column = lx_var(f, ls_for(f, "column", number(a, 0),
				     number(a, (int64_t)(vectors - rest) * lanes),
				     (int64_t)nv * lanes));
	add_values(a, column, nv);
	ls_end(f);
	if (rest)
		add_values(a, number(a, (int64_t)(vectors - rest) * lanes), rest);
}

/* ---- softmax ---- */

typedef struct {
	Attention *a;
	Lx at;    /* of the row's scores */
	Lv most;  /* of logits */
	Lv total; /* of exponentials */
} LogitRow;

static Lx score_place(const LogitRow *row)
{
	const Attention *a = row->a;
	return lx_add(a->f, row->at, lx_sub(a->f, a->s->e.at[a->p->axis.key], a->from));
}

/* Replaces scores by logits, and finds their maximum. */
static void make_logits(Cpu *s, void *data)
{
	LogitRow *row = data;
	Attention *a = row->a;
	LoopFn *f = a->f;
	const AttentionPlan *p = a->p;
	Lx at = let(a, "at", score_place(row));
	eval_stage_value(&s->e, p->stage.scores, load(a, a->local.scores, at, p->vector.lanes));
	Lx x = eval_vector(&s->e, p->value.logits);
	if (s->e.lanes.mask.i)
		x = lx_select(f, s->e.lanes.mask, x, lx_float(f, p->vector, -(double)INFINITY));
	x = let(a, "logit", x);
	ls_store(f, a->local.scores, at, x, (Lx){0});
	ls_set(f, row->most, code_combine(&s->code, REDUCE_MAX, lx_var(f, row->most), x));
}

/* Replaces logits by exponentials, and adds these. */
static void make_weights(Cpu *s, void *data)
{
	LogitRow *row = data;
	Attention *a = row->a;
	LoopFn *f = a->f;
	const AttentionPlan *p = a->p;
	Lx at = let(a, "at", score_place(row)), mask = s->e.lanes.mask;
	eval_mask(&s->e, (Lx){0}); /* logits past the end are there */
	eval_assume(&s->e, p->value.logits, load(a, a->local.scores, at, p->vector.lanes));
	Lx x = let(a, "weight", eval_vector(&s->e, p->value.weights));
	ls_store(f, a->local.weights, at, eval_vector(&s->e, p->value.factor), (Lx){0});
	eval_mask(&s->e, mask);
	ls_set(f, row->total, lx_add(f, lx_var(f, row->total), x));
}

/* Writes the loop over the keys of the block, by vectors. */
static void for_keys(Attention *a, void (*body)(Cpu *, void *), void *data)
{
	const AttentionPlan *p = a->p;
	Lx end = lx_add(a->f, a->from, a->count);
	cpu_vector_loop(a->s, p->axis.key, a->from, end,
			sym_divides(a->s->e.syms, p->vector.lanes, p->nest->extent[p->axis.key]),
			body, data);
}

static void scale(Attention *a, LMem m, Lx at, Lx by)
{
	ls_store(a->f, m, at, lx_mul(a->f, load(a, m, at, a->p->vector.lanes), by), (Lx){0});
}

/* Scales what was summed of row r, unless the factor is 1. */
static void scale_row(Attention *a, Lx r)
{
	LoopFn *f = a->f;
	const uint32_t lanes = a->p->vector.lanes;
	Lx by = let(a, "by", load(a, a->local.by, r, 1));
	ls_if(f, lx_cmp(f, SC_ne, by, lx_float(f, (LType){DT_f32, 1}, 1)));
	Lx all = let(a, "all", lx_splat(f, by, lanes));
	scale(a, a->local.sum, times(a, r, lanes), all);
	for (uint32_t j = 0; j < attention_vectors(a->p); j++)
		scale(a, a->local.result, place(a, r, 0, a->width, number(a, 0), j), all);
	ls_end(f);
}

/* Makes the logits of row r, and their maximum with those before. */
static void logits_of_row(Attention *a, Lx r)
{
	Cpu *s = a->s;
	LoopFn *f = a->f;
	LogitRow row = {.a = a, .at = let(a, "at", times(a, r, a->p->block.cols))};
	row.most = ls_var(f, "most", code_identity(&s->code, REDUCE_MAX, a->p->vector));
	for_keys(a, make_logits, &row);
	Lx most = lx_hreduce(f, reduce_op(REDUCE_MAX), lx_var(f, row.most));
	ls_store(f, a->local.level, r,
		 code_combine(&s->code, REDUCE_MAX, load(a, a->local.high, r, 1), most), (Lx){0});
}

/* Raises the maxima of all rows to those in `level`, which become what exponentials are of: 0
 * instead of -inf. Sets `by`. */
static void raise_maxima(Attention *a)
{
	LoopFn *f = a->f;
	const AttentionPlan *p = a->p;
	Lx r = open_rows(a, a->rows.whole, p->vector.lanes);
	Lx before = load(a, a->local.high, r, p->vector.lanes),
	   high = load(a, a->local.level, r, p->vector.lanes),
	   none = lx_cmp(f, SC_eq, high, lx_float(f, p->vector, -(double)INFINITY));
	Lx level = let(a, "level", lx_select(f, none, lx_float(f, p->vector, 0), high)),
	   less = lx_sub(f, before, level);
	ls_store(f, a->local.by, r, lx_fn(f, scalar_lib("exp", DT_f32), p->vector.lanes, &less, 1),
		 (Lx){0});
	ls_store(f, a->local.high, r, high, (Lx){0});
	ls_store(f, a->local.level, r, level, (Lx){0});
	ls_end(f);
}

/* Replaces the logits of row r by exponentials, and adds these. */
static void weights_of_row(Attention *a, Lx r)
{
	Cpu *s = a->s;
	LoopFn *f = a->f;
	const uint32_t lanes = a->p->vector.lanes;
	LogitRow row = {.a = a, .at = let(a, "at", times(a, r, a->p->block.cols))};
	scale_row(a, r);
	eval_stage_value(&s->e, a->p->stage.high, let(a, "level", load(a, a->local.level, r, 1)));
	Lx at = times(a, r, lanes);
	row.total = ls_var(f, "total", load(a, a->local.sum, at, lanes));
	for_keys(a, make_weights, &row);
	ls_store(f, a->local.sum, at, lx_var(f, row.total), (Lx){0});
}

static void soften(Attention *a)
{
	Cpu *s = a->s;
	eval_lanes(&s->e, a->p->axis.key, a->p->vector.lanes);
	for_rows(a, logits_of_row);
	raise_maxima(a);
	for_rows(a, weights_of_row);
	eval_lanes(&s->e, NO_AXIS, a->p->vector.lanes);
	eval_stage_over(&s->e, a->p->stage.scores);
	eval_stage_over(&s->e, a->p->stage.high);
}

/* ---- blocks of keys ---- */

/* Sets *lo and *hi to the keys between which those of the block's rows lie that no condition leaves
 * out. */
static void bound_keys(Attention *a, Lx *lo, Lx *hi)
{
	Cpu *s = a->s;
	LoopFn *f = a->f;
	const AttentionPlan *p = a->p;
	Lx zero = number(a, 0), all = eval_size(&s->e, p->nest->extent[p->axis.key]);
	*lo = zero;
	*hi = all;
	if (!p->bounds.n)
		return;
	Lv least = ls_var(f, "least", all), most = ls_var(f, "most", zero);
	Lx r = open_rows(a, a->rows.n, 1), from = zero, to = all;
	go_to_row(a, r, false);
	for (uint32_t i = 0; i < p->bounds.n; i++) {
		const KeyBound *b = &p->bounds.at[i];
		Lx limit = eval_convert(&s->e, eval_value(&s->e, b->limit), DT_i64);
		/* the greatest number is no limit, and must not wrap */
		limit = lx_max(f, lx_min(f, limit, number(a, FAR)), number(a, -FAR));
		limit = lx_sub(f, limit, eval_index(&s->e, b->add));
		limit = let(a, "limit", lx_add(f, limit, number(a, b->inclusive)));
		if (b->below)
			to = let(a, "to", lx_min(f, to, limit));
		else
			from = let(a, "from", lx_max(f, from, limit));
	}
	ls_set(f, least, lx_min(f, lx_var(f, least), from));
	ls_set(f, most, lx_max(f, lx_var(f, most), to));
	leave_row(a);
	ls_end(f);
	*lo = let(a, "lo", lx_var(f, least));
	*hi = let(a, "hi", lx_var(f, most));
}

typedef struct {
	Attention *a;
	Lv any;
} MaskedBlock;

/* Sets `any` if the masks let a key through, of those in the lanes. */
static void find_seen(Cpu *s, void *data)
{
	const MaskedBlock *b = data;
	LoopFn *f = b->a->f;
	const AttentionPlan *p = b->a->p;
	Lx seen = {0};
	for (uint32_t i = 0; i < p->masks.n; i++) {
		const KeyMask *m = &p->masks.at[i];
		Lx x = eval_vector(&s->e, m->value);
		if (m->is_added)
			x = lx_cmp(f, SC_ne, x, lx_float(f, p->vector, -(double)INFINITY));
		if (m->hides)
			x = lx_sc(f, SC_not, (LType){DT_bool, p->vector.lanes}, &x, 1);
		seen = seen.i ? lx_and(f, seen, x) : x;
	}
	if (s->e.lanes.mask.i)
		seen = lx_and(f, seen, s->e.lanes.mask);
	Lx any[2] = {lx_var(f, b->any), lx_any(f, seen)};
	ls_set(f, b->any, lx_sc(f, SC_or, (LType){DT_bool, 1}, any, 2));
}

/* Opens a branch for blocks of which some row sees a key. Rows are asked one by one, until one
 * does. */
static void open_if_seen(Attention *a)
{
	Cpu *s = a->s;
	LoopFn *f = a->f;
	const AttentionPlan *p = a->p;
	const LType one = {DT_bool, 1};
	MaskedBlock b = {a, ls_var(f, "any", lx_int_of(f, one, 0))};
	Lv row = ls_var(f, "asked", number(a, 0));
	Lx r = lx_var(f, row), any = lx_var(f, b.any);
	eval_lanes(&s->e, p->axis.key, p->vector.lanes);
	ls_while(f, lx_and(f, lx_sc(f, SC_not, one, &any, 1), lx_cmp(f, SC_lt, r, a->rows.n)));
	go_to_row(a, r, false);
	for_keys(a, find_seen, &b);
	leave_row(a);
	ls_set(f, row, lx_add(f, r, number(a, 1)));
	ls_end(f);
	eval_lanes(&s->e, NO_AXIS, p->vector.lanes);
	ls_if(f, any);
}

static void pass_keys(Attention *a)
{
	LoopFn *f = a->f;
	const AttentionPlan *p = a->p;
	Lx lo, hi;
	bound_keys(a, &lo, &hi);
	if (p->bounds.n) /* blocks begin at the same keys for all rows */
		lo = times(a, lx_div(f, lo, number(a, p->block.cols)), p->block.cols);
	a->from = lx_var(f, ls_for(f, "from", lo, hi, p->block.cols));
	Lx rest = lx_sub(f, eval_size(&a->s->e, p->nest->extent[p->axis.key]), a->from);
	a->count = let(a, "count", lx_min(f, rest, number(a, p->block.cols)));
	if (p->masks.n)
		open_if_seen(a);
	const int64_t group = p->row->group;
	a->groups = let(a, "groups",
			lx_div(f, lx_add(f, a->count, number(a, group - 1)), number(a, group)));
	make_all_scores(a);
	soften(a);
	add_all_values(a);
	if (p->masks.n)
		ls_end(f);
	ls_end(f);
}

/* ---- results ---- */

/* Stores what is a value of columns, or what is one of rows. */
static void store_stages(Cpu *s, bool columns)
{
	const Nest *n = s->e.nest;
	for (uint32_t i = 0; i < n->k->stage.n; i++) {
		const Stage *st = &n->k->stage.data[i];
		if (stage_stores(st) && nest_maps_inner(n, st) == columns)
			cpu_store(s, i, eval_value(&s->e, st->value));
	}
}

static void store_result(Cpu *s, void *data)
{
	const RowPlace *row = data;
	Attention *a = row->a;
	Lx at = lx_add(a->f, row->at, s->e.at[a->p->axis.column]);
	eval_stage_value(&s->e, a->p->stage.result, load(a, a->local.result, at, a->p->vector.lanes));
	store_stages(s, true);
	eval_stage_over(&s->e, a->p->stage.result);
}

static void store_results(Attention *a)
{
	Cpu *s = a->s;
	const AttentionPlan *p = a->p;
	Lx r = open_rows(a, a->rows.n, 1);
	go_to_row(a, r, false);
	eval_stage_value(&s->e, p->stage.high, let(a, "high", load(a, a->local.high, r, 1)));
	Lx total = load(a, a->local.sum, times(a, r, p->vector.lanes), p->vector.lanes);
	eval_stage_value(&s->e, p->stage.sum, let(a, "sum", lx_hreduce(a->f, SC_add, total)));
	store_stages(s, false);
	eval_lanes(&s->e, p->axis.column, p->vector.lanes);
	RowPlace row = {a, let(a, "at", times(a, r, a->width))};
	cpu_vector_loop(s, p->axis.column, number(a, 0), number(a, p->axis.columns),
			p->axis.columns % p->vector.lanes == 0, store_result, &row);
	eval_lanes(&s->e, NO_AXIS, p->vector.lanes);
	leave_row(a);
	ls_end(a->f);
}

/* ---- the phase ---- */

static void start_rows(Attention *a)
{
	LoopFn *f = a->f;
	const LType t = a->p->vector;
	Lx r = open_rows(a, a->rows.whole, t.lanes); /* raise_maxima takes whole vectors of rows */
	ls_store(f, a->local.high, r, lx_float(f, t, -(double)INFINITY), (Lx){0});
	ls_store(f, a->local.level, r, lx_float(f, t, -(double)INFINITY), (Lx){0});
	ls_end(f);
	r = open_rows(a, a->rows.whole, 1);
	ls_store(f, a->local.sum, times(a, r, a->p->vector.lanes), lx_float(f, a->p->vector, 0),
		 (Lx){0});
	for (uint32_t j = 0; j < attention_vectors(a->p); j++)
		ls_store(f, a->local.result, place(a, r, 0, a->width, number(a, 0), j),
			 lx_float(f, a->p->vector, 0), (Lx){0});
	ls_end(f);
}

/* Returns the operand of a load whose steps run along one axis, and vectors across another. */
static struct AttentionOperand find_operand(Attention *a, Kx x, uint32_t along, uint32_t across)
{
	const Nest *n = a->p->nest;
	Eval *e = &a->s->e;
	const Sym zero[2] = {sym_int(n->syms, 0), sym_int(n->syms, 0)},
		  var[2] = {n->var[along], n->var[across]};
	Sym coef;
	if (!nest_coef(n, n->offset[x.i], along, &coef))
		ctx_bug(n->l->ir->ctx, "kernel %s: keys or values are not linear", n->k->name);
	struct AttentionOperand o = {.mem = eval_load_memory(e, x)};
	o.base = let(a, "base",
		     eval_index(e, sym_subst(n->syms, n->offset[x.i], var, zero, 2)));
	o.step = eval_size(e, coef);
	return o;
}

static void declare_arrays(Attention *a)
{
	const AttentionPlan *p = a->p;
	const int64_t lanes = p->vector.lanes;
	a->depth = (p->axis.depths + lanes - 1) / lanes * lanes;
	a->width = attention_vectors(p) * lanes;
	const DType d = micro_groups(p->row) ? p->row->a : DT_f32;
	a->local.q = ls_local(a->f, "queries", d, (uint64_t)(p->block.rows * a->depth));
	a->local.scores =
		ls_local(a->f, "scores", DT_f32, (uint64_t)(p->block.rows * p->block.cols));
	a->local.weights = d == DT_f32 ? a->local.scores
				       : ls_local(a->f, "weights", d,
						  (uint64_t)(p->block.rows * p->block.cols));
	a->local.result = ls_local(a->f, "result", DT_f32, (uint64_t)(p->block.rows * a->width));
	a->local.sum = ls_local(a->f, "total", DT_f32, (uint64_t)(p->block.rows * lanes));
	const uint64_t rows = (uint64_t)((p->block.rows + lanes - 1) / lanes * lanes);
	a->local.high = ls_local(a->f, "high", DT_f32, rows);
	a->local.level = ls_local(a->f, "level", DT_f32, rows);
	a->local.by = ls_local(a->f, "by", DT_f32, rows);
}

void emit_attention(Cpu *s, const Plan *plan)
{
	const AttentionPlan *p = plan->of.attention;
	const uint32_t ncopy = p->copy[1] ? 2 : 1;
	for (uint32_t i = 0; i < ncopy; i++)
		contract_copy(s, p->copy[i], ncopy);
	cpu_begin_phase(s, p->nest);
	eval_lanes(&s->e, NO_AXIS, p->vector.lanes);
	Attention a = {.s = s, .p = p, .f = s->e.f};
	decode_task(&a);
	declare_arrays(&a);
	a.keys = find_operand(&a, p->value.k, p->axis.k_step, p->axis.key);
	a.values = find_operand(&a, p->value.v, p->axis.v_step, p->axis.column);
	copy_queries(&a);
	start_rows(&a);
	pass_keys(&a);
	store_results(&a);
	cpu_finish_phase(s, p->ntasks, p->cost);
}
