/* The schedule for attention by online softmax, as in FlashAttention: keys pass by once, block by
 * block (codegen/plan/attention/attention.h).
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

#include "codegen/cpu/attention/attention.h"
#include "codegen/cpu/attention/blocks.h"
#include "codegen/cpu/contract.h"

typedef struct {
	Blocks b;
	const AttentionPlan *p;
	struct {
		LMem q, scores, result; /* [row][depth], [row][key], [row][column] */
		LMem weights;   /* [row][key], as the second product multiplies; `scores`, if that
				   is f32 */
		LMem high, sum; /* [row], [row][lane] */
		LMem level, by; /* [row]: what exponentials are above, and what scales sums */
	} local;
	int64_t depth, width;      /* elements of a row of q, of result: whole vectors */
	BlockOperand keys, values; /* by step: a depth of keys, a value */
	Lx groups;                 /* of the keys of the block */
} Attention;

/* ---- tasks ---- */

static void decode_task(Attention *a)
{
	Blocks *b = &a->b;
	const AttentionPlan *p = a->p;
	LoopFn *f = b->f;
	Lx t = lx_var(f, f->task), blocks = eval_size(&b->s->e, p->blocks),
	   rows = p->axis.row == NO_AXIS ? number(b, 1)
					 : eval_size(&b->s->e, p->nest->extent[p->axis.row]);
	Lx first = let(b, "first", times(b, lx_mod(f, t, blocks), p->block.rows));
	t = let(b, "rest", lx_div(f, t, blocks));
	blocks_go_to_member(b, p->axis.batch, p->axis.nbatch, t);
	blocks_set_rows(b, first, rows, p->block.rows);
}

/* Calls body for each row of whole tiles; those past the end are the last row. */
static void for_rows(Attention *a, void (*body)(Attention *, Lx))
{
	Lx r = blocks_open_rows(&a->b, a->b.rows.whole, 1);
	blocks_go_to_row(&a->b, r, true);
	body(a, r);
	blocks_leave_row(&a->b);
	ls_end(a->b.f);
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
	ls_store(a->b.f, a->local.q, lx_add(a->b.f, q->at, s->e.at[a->p->axis.depth]), x,
		 s->e.lanes.mask);
}

static void copy_row(Attention *a, Lx r)
{
	const AttentionPlan *p = a->p;
	RowPlace q = {a, let(&a->b, "at", times(&a->b, r, a->depth))};
	cpu_vector_loop(a->b.s, p->axis.depth, number(&a->b, 0), number(&a->b, p->axis.depths),
			p->axis.depths % p->vector.lanes == 0, copy_query, &q);
}

static void copy_queries(Attention *a)
{
	eval_lanes(&a->b.s->e, a->p->axis.depth, a->p->vector.lanes);
	for_rows(a, copy_row);
	eval_lanes(&a->b.s->e, NO_AXIS, a->p->vector.lanes);
}

/* ---- products ---- */

static void make_scores(Attention *a)
{
	const AttentionPlan *p = a->p;
	const ScoreTiles tiles = {.rows = a->local.q,
				  .to = a->local.scores,
				  .keys = a->keys,
				  .depth = a->depth,
				  .pitch = p->block.cols,
				  .steps = p->axis.depths / p->row->group};
	blocks_make_scores(&a->b, &tiles);
}

/* Adds the products of the block's exponentials and values. */
static void add_values(Attention *a)
{
	const AttentionPlan *p = a->p;
	const SumTiles tiles = {.weights = a->local.weights,
				.to = a->local.result,
				.pitch = p->block.cols,
				.stride = p->row->group,
				.operand = a->values,
				.first = lx_div(a->b.f, a->b.from, number(&a->b, p->row->group)),
				.steps = a->groups,
				.end = a->b.rows.whole,
				.width = a->width};
	blocks_add_products(&a->b, &tiles);
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
	return lx_add(a->b.f, row->at, lx_sub(a->b.f, a->b.s->e.at[a->p->axis.key], a->b.from));
}

/* Replaces scores by logits, and finds their maximum. */
static void make_logits(Cpu *s, void *data)
{
	LogitRow *row = data;
	Attention *a = row->a;
	LoopFn *f = a->b.f;
	const AttentionPlan *p = a->p;
	Lx at = let(&a->b, "at", score_place(row));
	eval_stage_value(&s->e, p->stage.scores, load(&a->b, a->local.scores, at, p->vector.lanes));
	Lx x = eval_vector(&s->e, p->value.logits);
	if (s->e.lanes.mask.i)
		x = lx_select(f, s->e.lanes.mask, x, lx_float(f, p->vector, -(double)INFINITY));
	x = let(&a->b, "logit", x);
	ls_store(f, a->local.scores, at, x, (Lx){0});
	ls_set(f, row->most, code_combine(&s->code, REDUCE_MAX, lx_var(f, row->most), x));
}

/* Replaces logits by exponentials, and adds these. */
static void make_weights(Cpu *s, void *data)
{
	LogitRow *row = data;
	Attention *a = row->a;
	LoopFn *f = a->b.f;
	const AttentionPlan *p = a->p;
	Lx at = let(&a->b, "at", score_place(row)), mask = s->e.lanes.mask;
	eval_mask(&s->e, (Lx){0}); /* logits past the end are there */
	eval_assume(&s->e, p->value.logits, load(&a->b, a->local.scores, at, p->vector.lanes));
	Lx x = let(&a->b, "weight", eval_vector(&s->e, p->value.weights));
	ls_store(f, a->local.weights, at, eval_vector(&s->e, p->value.factor), (Lx){0});
	eval_mask(&s->e, mask);
	ls_set(f, row->total, lx_add(f, lx_var(f, row->total), x));
}

/* Returns the place of a vector of row r of the result. */
static Lx result_vector(const Attention *a, Lx r, uint32_t vector)
{
	Lx at = times(&a->b, r, a->width);
	return lx_add(a->b.f, at, number(&a->b, (int64_t)vector * a->p->vector.lanes));
}

static void scale(Attention *a, LMem m, Lx at, Lx by)
{
	ls_store(a->b.f, m, at, lx_mul(a->b.f, load(&a->b, m, at, a->p->vector.lanes), by),
		 (Lx){0});
}

/* Scales what was summed of row r, unless the factor is 1. */
static void scale_row(Attention *a, Lx r)
{
	LoopFn *f = a->b.f;
	const uint32_t lanes = a->p->vector.lanes;
	Lx by = let(&a->b, "by", load(&a->b, a->local.by, r, 1));
	ls_if(f, lx_cmp(f, SC_ne, by, lx_float(f, (LType){DT_f32, 1}, 1)));
	Lx all = let(&a->b, "all", lx_splat(f, by, lanes));
	scale(a, a->local.sum, times(&a->b, r, lanes), all);
	for (uint32_t j = 0; j < attention_vectors(a->p); j++)
		scale(a, a->local.result, result_vector(a, r, j), all);
	ls_end(f);
}

/* Makes the logits of row r, and their maximum with those before. */
static void logits_of_row(Attention *a, Lx r)
{
	Cpu *s = a->b.s;
	LoopFn *f = a->b.f;
	LogitRow row = {.a = a, .at = let(&a->b, "at", times(&a->b, r, a->p->block.cols))};
	row.most = ls_var(f, "most", code_identity(&s->code, REDUCE_MAX, a->p->vector));
	blocks_for_keys(&a->b, make_logits, &row);
	Lx most = lx_hreduce(f, reduce_op(REDUCE_MAX), lx_var(f, row.most));
	ls_store(f, a->local.level, r,
		 code_combine(&s->code, REDUCE_MAX, load(&a->b, a->local.high, r, 1), most),
		 (Lx){0});
}

/* Raises the maxima of all rows to those in `level`, which become what exponentials are of: 0
 * instead of -inf. Sets `by`. */
static void raise_maxima(Attention *a)
{
	LoopFn *f = a->b.f;
	const AttentionPlan *p = a->p;
	Lx r = blocks_open_rows(&a->b, a->b.rows.whole, p->vector.lanes);
	Lx before = load(&a->b, a->local.high, r, p->vector.lanes),
	   high = load(&a->b, a->local.level, r, p->vector.lanes),
	   none = lx_cmp(f, SC_eq, high, lx_float(f, p->vector, -(double)INFINITY));
	Lx level = let(&a->b, "level", lx_select(f, none, lx_float(f, p->vector, 0), high)),
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
	Cpu *s = a->b.s;
	LoopFn *f = a->b.f;
	const uint32_t lanes = a->p->vector.lanes;
	LogitRow row = {.a = a, .at = let(&a->b, "at", times(&a->b, r, a->p->block.cols))};
	scale_row(a, r);
	eval_stage_value(&s->e, a->p->stage.high,
			 let(&a->b, "level", load(&a->b, a->local.level, r, 1)));
	Lx at = times(&a->b, r, lanes);
	row.total = ls_var(f, "total", load(&a->b, a->local.sum, at, lanes));
	blocks_for_keys(&a->b, make_weights, &row);
	ls_store(f, a->local.sum, at, lx_var(f, row.total), (Lx){0});
}

static void soften(Attention *a)
{
	Cpu *s = a->b.s;
	eval_lanes(&s->e, a->p->axis.key, a->p->vector.lanes);
	for_rows(a, logits_of_row);
	raise_maxima(a);
	for_rows(a, weights_of_row);
	eval_lanes(&s->e, NO_AXIS, a->p->vector.lanes);
	eval_stage_over(&s->e, a->p->stage.scores);
	eval_stage_over(&s->e, a->p->stage.high);
}

/* ---- blocks of keys ---- */

static void pass_keys(Attention *a)
{
	LoopFn *f = a->b.f;
	const AttentionPlan *p = a->p;
	Lx lo, hi;
	blocks_bound_keys(&a->b, &lo, &hi);
	if (p->limits.nbound) /* blocks begin at the same keys for all rows */
		lo = times(&a->b, lx_div(f, lo, number(&a->b, p->block.cols)), p->block.cols);
	blocks_set_keys(&a->b, lx_var(f, ls_for(f, "from", lo, hi, p->block.cols)));
	if (p->limits.nmask)
		blocks_open_if_seen(&a->b);
	const int64_t group = p->row->group;
	a->groups = let(
		&a->b, "groups",
		lx_div(f, lx_add(f, a->b.count, number(&a->b, group - 1)), number(&a->b, group)));
	make_scores(a);
	soften(a);
	add_values(a);
	if (p->limits.nmask)
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
	Lx at = lx_add(a->b.f, row->at, s->e.at[a->p->axis.column]);
	eval_stage_value(&s->e, a->p->stage.result,
			 load(&a->b, a->local.result, at, a->p->vector.lanes));
	store_stages(s, true);
	eval_stage_over(&s->e, a->p->stage.result);
}

static void store_results(Attention *a)
{
	Cpu *s = a->b.s;
	const AttentionPlan *p = a->p;
	Lx r = blocks_open_rows(&a->b, a->b.rows.n, 1);
	blocks_go_to_row(&a->b, r, false);
	eval_stage_value(&s->e, p->stage.high,
			 let(&a->b, "high", load(&a->b, a->local.high, r, 1)));
	Lx total = load(&a->b, a->local.sum, times(&a->b, r, p->vector.lanes), p->vector.lanes);
	eval_stage_value(&s->e, p->stage.sum, let(&a->b, "sum", lx_hreduce(a->b.f, SC_add, total)));
	store_stages(s, false);
	eval_lanes(&s->e, p->axis.column, p->vector.lanes);
	RowPlace row = {a, let(&a->b, "at", times(&a->b, r, a->width))};
	cpu_vector_loop(s, p->axis.column, number(&a->b, 0), number(&a->b, p->axis.columns),
			p->axis.columns % p->vector.lanes == 0, store_result, &row);
	eval_lanes(&s->e, NO_AXIS, p->vector.lanes);
	blocks_leave_row(&a->b);
	ls_end(a->b.f);
}

/* ---- the phase ---- */

static void start_rows(Attention *a)
{
	LoopFn *f = a->b.f;
	const LType t = a->p->vector;
	Lx r = blocks_open_rows(&a->b, a->b.rows.whole,
				t.lanes); /* raise_maxima takes whole vectors of rows */
	ls_store(f, a->local.high, r, lx_float(f, t, -(double)INFINITY), (Lx){0});
	ls_store(f, a->local.level, r, lx_float(f, t, -(double)INFINITY), (Lx){0});
	ls_end(f);
	r = blocks_open_rows(&a->b, a->b.rows.whole, 1);
	ls_store(f, a->local.sum, times(&a->b, r, a->p->vector.lanes), lx_float(f, a->p->vector, 0),
		 (Lx){0});
	for (uint32_t j = 0; j < attention_vectors(a->p); j++)
		ls_store(f, a->local.result, result_vector(a, r, j), lx_float(f, a->p->vector, 0),
			 (Lx){0});
	ls_end(f);
}

static void declare_arrays(Attention *a)
{
	const AttentionPlan *p = a->p;
	const int64_t lanes = p->vector.lanes;
	a->depth = (p->axis.depths + lanes - 1) / lanes * lanes;
	a->width = attention_vectors(p) * lanes;
	const DType d = micro_groups(p->row) ? p->row->a : DT_f32;
	a->local.q = ls_local(a->b.f, "queries", d, (uint64_t)(p->block.rows * a->depth));
	a->local.scores =
		ls_local(a->b.f, "scores", DT_f32, (uint64_t)(p->block.rows * p->block.cols));
	a->local.weights = d == DT_f32 ? a->local.scores
				       : ls_local(a->b.f, "weights", d,
						  (uint64_t)(p->block.rows * p->block.cols));
	a->local.result = ls_local(a->b.f, "result", DT_f32, (uint64_t)(p->block.rows * a->width));
	a->local.sum = ls_local(a->b.f, "total", DT_f32, (uint64_t)(p->block.rows * lanes));
	const uint64_t rows = (uint64_t)((p->block.rows + lanes - 1) / lanes * lanes);
	a->local.high = ls_local(a->b.f, "high", DT_f32, rows);
	a->local.level = ls_local(a->b.f, "level", DT_f32, rows);
	a->local.by = ls_local(a->b.f, "by", DT_f32, rows);
}

void emit_attention(Cpu *s, const Plan *plan)
{
	const AttentionPlan *p = plan->of.attention;
	const uint32_t ncopy = p->copy[1] ? 2 : 1;
	for (uint32_t i = 0; i < ncopy; i++)
		contract_copy(s, p->copy[i], ncopy);
	cpu_begin_phase(s, p->nest);
	eval_lanes(&s->e, NO_AXIS, p->vector.lanes);
	Attention a = {.b = {.s = s,
			     .f = s->e.f,
			     .nest = p->nest,
			     .row = p->row,
			     .limits = &p->limits,
			     .vector = p->vector,
			     .tile = p->tile,
			     .most = p->block.cols},
		       .p = p};
	decode_task(&a);
	declare_arrays(&a);
	a.keys = blocks_operand(&a.b, p->value.k, p->axis.k_step, p->axis.key, &p->k_panels);
	a.values = blocks_operand(&a.b, p->value.v, p->axis.v_step, p->axis.column,
				  p->copy[1] ? &p->v_panels : NULL);
	copy_queries(&a);
	start_rows(&a);
	pass_keys(&a);
	store_results(&a);
	cpu_finish_phase(s, p->ntasks, p->cost);
}
