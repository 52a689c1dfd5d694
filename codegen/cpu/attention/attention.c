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
 * Keys past the end have the logit -inf.
 *
 * Of few rows keys and values are read in place (few.c). If a task has a part of the keys, it
 * stores the maxima, sums and results of its rows, and a phase behind adds them up in the order of
 * the parts, as one block after the other. */
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
		LMem dots;      /* of few rows: KeyDots.parts */
	} local;
	struct {
		LMem high, sum, result; /* [task][row], [task][row][column] */
	} part;                         /* of few rows in parts: temporaries */
	Lx task;                        /* of all tasks */
	Lx first_key;                   /* of the task's part of the keys */
	Lx block;                       /* of tiles: the number of the block of rows */
	LMem seen;                      /* what a phase before found in masks */
	int64_t depth, width;           /* elements of a row of q, of result: whole vectors */
	bool inside;                    /* logits are those of a block that no bound cuts */
	int64_t pitch;                  /* elements from a row of scores, of weights, to the next */
	BlockOperand keys, values;      /* by step: a depth of keys, a value */
	Lx groups;                      /* of the keys of the block */
} Attention;

/* ---- tasks ---- */

static Lx row_count(Attention *a)
{
	const AttentionPlan *p = a->p;
	return p->few.rows              ? number(&a->b, p->few.rows)
	       : p->axis.row == NO_AXIS ? number(&a->b, 1)
					: eval_size(&a->b.s->e, p->nest->extent[p->axis.row]);
}

/* Goes to the member of the batch, of those axes, and the block of rows of a task of tiles. */
static void go_to_block(Attention *a, const uint32_t *axis, uint32_t n)
{
	Blocks *b = &a->b;
	const AttentionPlan *p = a->p;
	LoopFn *f = b->f;
	Lx blocks = eval_size(&b->s->e, p->blocks), rows = row_count(a);
	a->block = let(b, "block", lx_mod(f, a->task, blocks));
	Lx first = let(b, "first", times(b, a->block, p->block.rows));
	blocks_go_to_member(b, axis, n, let(b, "rest", lx_div(f, a->task, blocks)));
	blocks_set_rows(b, first, rows, p->block.rows);
}

static void decode_task(Attention *a)
{
	Blocks *b = &a->b;
	const AttentionPlan *p = a->p;
	LoopFn *f = b->f;
	if (!p->few.rows) {
		go_to_block(a, p->axis.batch, p->axis.nbatch);
		return;
	}
	Lx parts = eval_size(&b->s->e, p->few.parts), part = lx_mod(f, a->task, parts);
	a->first_key = let(b, "first", times(b, part, p->few.keys));
	blocks_go_to_member(b, p->axis.batch, p->axis.nbatch,
			    let(b, "rest", lx_div(f, a->task, parts)));
	blocks_set_rows(b, number(b, 0), row_count(a), p->block.rows);
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
	Lx mask = a->p->few.rows ? (Lx){0} : s->e.lanes.mask; /* KeyDots.rows ends in 0 */
	blocks_store(&a->b, a->local.q, lx_add(a->b.f, q->at, s->e.at[a->p->axis.depth]), x, mask);
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
	if (p->few.rows) {
		const KeyDots dots = {.rows = a->local.q,
				      .to = a->local.scores,
				      .parts = a->local.dots,
				      .keys = p->value.k,
				      .along = p->axis.depth,
				      .abreast = p->few.abreast,
				      .depth = a->depth,
				      .pitch = a->pitch,
				      .steps = p->axis.depths};
		blocks_make_dots(&a->b, &dots);
		return;
	}
	const ScoreTiles tiles = {.rows = a->local.q,
				  .to = a->local.scores,
				  .keys = a->keys,
				  .depth = a->depth,
				  .pitch = a->pitch,
				  .steps = p->axis.depths / p->by.row->group};
	blocks_make_scores(&a->b, &tiles);
}

/* Adds the products of the block's exponentials and values. */
static void add_values(Attention *a)
{
	const AttentionPlan *p = a->p;
	if (p->few.rows) {
		const ValueSums sums = {.weights = a->local.weights,
					.to = a->local.result,
					.values = p->value.v,
					.across = p->axis.column,
					.pitch = a->pitch,
					.width = a->width,
					.columns = p->axis.columns};
		blocks_add_values(&a->b, &sums);
		return;
	}
	const SumTiles tiles = {.weights = a->local.weights,
				.to = a->local.result,
				.pitch = a->pitch,
				.stride = p->by.row->group,
				.operand = a->values,
				.first = lx_div(a->b.f, a->b.from, number(&a->b, p->by.row->group)),
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
	if (a->inside)
		blocks_assume_inside(&a->b);
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
	eval_mask(&s->e, mask); /* what weights are multiplied by may be loaded, and is 0 there */
	eval_assume(&s->e, p->value.weights, x);
	const Kx factor = blocks_unrounded(&a->b, p->value.factor);
	blocks_store(&a->b, a->local.weights, at, eval_vector(&s->e, factor), (Lx){0});
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
	LogitRow row = {.a = a, .at = let(&a->b, "at", times(&a->b, r, a->pitch))};
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
	LogitRow row = {.a = a, .at = let(&a->b, "at", times(&a->b, r, a->pitch))};
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
	LoopFn *f = a->b.f;
	eval_lanes(&s->e, a->p->axis.key, a->p->vector.lanes);
	Lx inside = blocks_are_inside(&a->b);
	if (inside.i) { /* rows of most blocks evaluate no bounds */
		ls_if(f, inside);
		a->inside = true;
		for_rows(a, logits_of_row);
		a->inside = false;
		ls_else(f);
	}
	for_rows(a, logits_of_row);
	if (inside.i)
		ls_end(f);
	raise_maxima(a);
	for_rows(a, weights_of_row);
	eval_lanes(&s->e, NO_AXIS, a->p->vector.lanes);
	eval_stage_over(&s->e, a->p->stage.scores);
	eval_stage_over(&s->e, a->p->stage.high);
}

/* ---- blocks of keys ---- */

/* Sets *lo and *hi to the ends of the keys of the task, of which all blocks but the last one are
 * whole: each begins at the same key for all rows. */
static void find_keys(Attention *a, Lx *lo, Lx *hi)
{
	Blocks *b = &a->b;
	LoopFn *f = b->f;
	const AttentionPlan *p = a->p;
	blocks_bound_keys(b, lo, hi);
	if (p->few.rows && p->few.keys) {
		*lo = lx_max(f, *lo, a->first_key);
		*hi = lx_min(f, *hi, lx_add(f, a->first_key, number(b, p->few.keys)));
	}
	if (p->limits.seen.asked)
		blocks_bound_by_seen(b, a->seen, a->block, p->blocks, lo, hi);
	if (p->limits.nbound || p->limits.seen.asked || (p->few.rows && p->few.keys))
		*lo = times(b, lx_div(f, *lo, number(b, p->block.cols)), p->block.cols);
	if (p->few.rows)
		b->end = *hi = let(b, "end", *hi);
}

static void pass_keys(Attention *a)
{
	LoopFn *f = a->b.f;
	const AttentionPlan *p = a->p;
	Lx lo, hi;
	find_keys(a, &lo, &hi);
	blocks_set_keys(&a->b, lx_var(f, ls_for(f, "from", lo, hi, p->block.cols)));
	if (p->limits.nmask)
		blocks_open_if_seen(&a->b);
	const int64_t group = p->by.row->group;
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

/* Stores the results of row r, whose sums begin there in `result`. */
static void store_row(Attention *a, Lx r, Lx high, Lx sum, Lx at)
{
	Cpu *s = a->b.s;
	const AttentionPlan *p = a->p;
	blocks_go_to_row(&a->b, r, false);
	eval_stage_value(&s->e, p->stage.high, high);
	eval_stage_value(&s->e, p->stage.sum, sum);
	store_stages(s, false);
	eval_lanes(&s->e, p->axis.column, p->vector.lanes);
	RowPlace row = {a, at};
	cpu_vector_loop(s, p->axis.column, number(&a->b, 0), number(&a->b, p->axis.columns),
			p->axis.columns % p->vector.lanes == 0, store_result, &row);
	eval_lanes(&s->e, NO_AXIS, p->vector.lanes);
	blocks_leave_row(&a->b);
}

static void store_results(Attention *a)
{
	const AttentionPlan *p = a->p;
	LoopFn *f = a->b.f;
	Lx r = blocks_open_rows(&a->b, a->b.rows.n, 1),
	   high = let(&a->b, "high", load(&a->b, a->local.high, r, 1)),
	   total = load(&a->b, a->local.sum, times(&a->b, r, p->vector.lanes), p->vector.lanes),
	   sum = let(&a->b, "sum", lx_hreduce(f, SC_add, total));
	store_row(a, r, high, sum, let(&a->b, "at", times(&a->b, r, a->width)));
	ls_end(f);
}

/* ---- parts of keys ---- */

/* Adds temporaries for what tasks store of their parts. */
static void add_temporaries(Cpu *s, const AttentionPlan *p, uint32_t phase)
{
	SymTab *syms = p->nest->syms;
	const Sym rows = sym_muli(syms, p->ntasks, p->few.rows);
	const int64_t width[3] = {1, 1, (int64_t)attention_vectors(p) * p->vector.lanes};
	static const char *const name[3] = {"highs", "totals", "results"};
	for (uint32_t i = 0; i < 3; i++)
		code_temp(&s->code, (SchedTemp){.name = name[i],
						.dtype = DT_f32,
						.numel = sym_muli(syms, rows, width[i]),
						.first = phase,
						.last = phase + 1});
}

/* Makes the temporaries, the last of the schedule, memory of the function. */
static void find_temporaries(Attention *a)
{
	Cpu *s = a->b.s;
	const uint32_t n = s->out->temp.n;
	a->part.high = eval_temp_memory(&s->e, n - 3);
	a->part.sum = eval_temp_memory(&s->e, n - 2);
	a->part.result = eval_temp_memory(&s->e, n - 1);
}

/* Stores what the task knows of its rows. Results of rows that see no key are not stored. */
static void store_part(Attention *a)
{
	Blocks *b = &a->b;
	LoopFn *f = b->f;
	const AttentionPlan *p = a->p;
	const uint32_t lanes = p->vector.lanes;
	find_temporaries(a);
	Lx r = blocks_open_rows(b, b->rows.n, 1),
	   to = let(b, "to", lx_add(f, times(b, a->task, p->few.rows), r)),
	   high = let(b, "high", load(b, a->local.high, r, 1)),
	   total = load(b, a->local.sum, times(b, r, lanes), lanes);
	ls_store(f, a->part.high, to, high, (Lx){0});
	ls_store(f, a->part.sum, to, lx_hreduce(f, SC_add, total), (Lx){0});
	ls_if(f, lx_cmp(f, SC_ne, high, lx_float(f, (LType){DT_f32, 1}, -(double)INFINITY)));
	to = let(b, "at", times(b, to, a->width));
	for (uint32_t j = 0; j < attention_vectors(p); j++) {
		Lx x = load(b, a->local.result, result_vector(a, r, j), lanes);
		ls_store(f, a->part.result, lx_add(f, to, number(b, (int64_t)j * lanes)), x,
			 (Lx){0});
	}
	ls_end(f);
	ls_end(f);
}

/* Adds what part number `part` of the member knows of row r, above `level`. */
static void add_part(Attention *a, Lx part, Lx r, Lx level, Lv sum)
{
	Blocks *b = &a->b;
	LoopFn *f = b->f;
	const AttentionPlan *p = a->p;
	const uint32_t lanes = p->vector.lanes;
	Lx from = let(b, "from", lx_add(f, times(b, part, p->few.rows), r)),
	   high = let(b, "high", load(b, a->part.high, from, 1));
	ls_if(f, lx_cmp(f, SC_ne, high, lx_float(f, (LType){DT_f32, 1}, -(double)INFINITY)));
	Lx less = lx_sub(f, high, level),
	   by = let(b, "by", lx_fn(f, scalar_lib("exp", DT_f32), 1, &less, 1)),
	   all = let(b, "all", lx_splat(f, by, lanes));
	ls_set(f, sum, code_fma(&b->s->code, load(b, a->part.sum, from, 1), by, lx_var(f, sum)));
	from = let(b, "at", times(b, from, a->width));
	for (uint32_t j = 0; j < attention_vectors(p); j++) {
		Lx at = number(b, (int64_t)j * lanes),
		   x = load(b, a->part.result, lx_add(f, from, at), lanes);
		ls_store(f, a->local.result, at,
			 code_fma(&b->s->code, x, all, load(b, a->local.result, at, lanes)),
			 (Lx){0});
	}
	ls_end(f);
}

/* Adds up the parts of row r, and stores its results. */
static void join_row(Attention *a, Lx r)
{
	Blocks *b = &a->b;
	LoopFn *f = b->f;
	const AttentionPlan *p = a->p;
	const LType one = {DT_f32, 1};
	Lx parts = eval_size(&b->s->e, p->few.parts),
	   first = let(b, "first", lx_mul(f, a->task, parts)),
	   none = lx_float(f, one, -(double)INFINITY);
	Lv high = ls_var(f, "most", none), sum = ls_var(f, "sum", lx_float(f, one, 0));
	Lx i = lx_var(f, ls_for(f, "part", number(b, 0), parts, 1)),
	   from = lx_add(f, times(b, lx_add(f, first, i), p->few.rows), r);
	ls_set(f, high,
	       code_combine(&b->s->code, REDUCE_MAX, lx_var(f, high),
			    load(b, a->part.high, from, 1)));
	ls_end(f);
	Lx most = let(b, "high", lx_var(f, high)),
	   level = let(b, "level",
		       lx_select(f, lx_cmp(f, SC_eq, most, none), lx_float(f, one, 0), most));
	for (uint32_t j = 0; j < attention_vectors(p); j++)
		ls_store(f, a->local.result, number(b, (int64_t)j * p->vector.lanes),
			 lx_float(f, p->vector, 0), (Lx){0});
	i = lx_var(f, ls_for(f, "part", number(b, 0), parts, 1));
	add_part(a, lx_add(f, first, i), r, level, sum);
	ls_end(f);
	store_row(a, r, most, let(b, "total", lx_var(f, sum)), number(b, 0));
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
	a->pitch = attention_pitch(p);
	const DType d = micro_groups(p->by.row) ? p->by.row->a : DT_f32;
	a->local.q = ls_local(a->b.f, "queries", d, (uint64_t)(p->block.rows * a->depth));
	a->local.scores =
		ls_local(a->b.f, "scores", DT_f32, (uint64_t)(p->block.rows * a->pitch));
	a->local.weights = d == DT_f32 ? a->local.scores
				       : ls_local(a->b.f, "weights", d,
						  (uint64_t)(p->block.rows * a->pitch));
	a->local.result = ls_local(a->b.f, "result", DT_f32, (uint64_t)(p->block.rows * a->width));
	a->local.sum = ls_local(a->b.f, "total", DT_f32, (uint64_t)(p->block.rows * lanes));
	const uint64_t rows = (uint64_t)((p->block.rows + lanes - 1) / lanes * lanes);
	a->local.high = ls_local(a->b.f, "high", DT_f32, rows);
	a->local.level = ls_local(a->b.f, "level", DT_f32, rows);
	a->local.by = ls_local(a->b.f, "by", DT_f32, rows);
	if (p->few.rows)
		a->local.dots = ls_local(a->b.f, "dots", DT_f32,
					 (uint64_t)(p->tile.mr * lanes * lanes / p->few.abreast));
}

static Attention begin_phase(Cpu *s, const AttentionPlan *p)
{
	cpu_begin_phase(s, p->nest);
	eval_lanes(&s->e, NO_AXIS, p->vector.lanes);
	return (Attention){.b = {.s = s,
				 .f = s->e.f,
				 .nest = p->nest,
				 .row = p->by.row,
				 .limits = &p->limits,
				 .vector = p->vector,
				 .tile = p->tile,
				 .most = p->block.cols},
			   .p = p,
			   .task = lx_var(s->e.f, s->e.f->task)};
}

/* Adds the phase that adds up parts. A task has a member of the batch. */
static void join_parts(Cpu *s, const AttentionPlan *p)
{
	Attention a = begin_phase(s, p);
	const int64_t lanes = p->vector.lanes;
	a.width = attention_vectors(p) * lanes;
	blocks_go_to_member(&a.b, p->axis.batch, p->axis.nbatch, a.task);
	blocks_set_rows(&a.b, number(&a.b, 0), row_count(&a), p->block.rows);
	a.local.result = ls_local(a.b.f, "result", DT_f32, (uint64_t)a.width);
	find_temporaries(&a);
	Lx r = blocks_open_rows(&a.b, a.b.rows.n, 1);
	join_row(&a, r);
	ls_end(a.b.f);
	cpu_finish_phase(s, attention_members(p->nest, p), p->few.cost);
}

/* Adds the phase that asks masks which keys each block of rows sees. */
static void find_seen(Cpu *s, const AttentionPlan *p)
{
	const uint32_t phase = s->out->phase.n;
	const uint32_t temp = code_temp(
		&s->code, (SchedTemp){.name = "seen",
				      .dtype = DT_i64,
				      .numel = sym_muli(p->nest->syms, p->limits.seen.ntasks, 2),
				      .first = phase,
				      .last = phase + 1});
	Attention a = begin_phase(s, p);
	go_to_block(&a, p->limits.seen.axis, p->limits.seen.n);
	blocks_find_seen(&a.b, eval_temp_memory(&s->e, temp), a.task);
	cpu_finish_phase(s, p->limits.seen.ntasks, p->limits.seen.cost);
}

void emit_attention(Cpu *s, const Plan *plan)
{
	const AttentionPlan *p = plan->of.attention;
	const uint32_t before = !!p->copy[0] + !!p->copy[1] + p->limits.seen.asked;
	const bool parts = p->few.rows && p->few.keys;
	for (uint32_t i = 0; i < 2; i++)
		if (p->copy[i])
			contract_copy(s, p->copy[i], before);
	if (p->limits.seen.asked)
		find_seen(s, p);
	if (parts)
		add_temporaries(s, p, before);
	Attention a = begin_phase(s, p);
	if (p->limits.seen.asked)
		a.seen = eval_temp_memory(&s->e, s->out->temp.n - 1);
	decode_task(&a);
	declare_arrays(&a);
	blocks_declare_frags(&a.b, p->by.frag, a.width);
	if (!p->few.rows) {
		a.keys = blocks_operand(&a.b, p->value.k, p->axis.k_step, p->axis.key,
					p->copy[0] ? &p->k_panels : NULL);
		a.values = blocks_operand(&a.b, p->value.v, p->axis.v_step, p->axis.column,
					  p->copy[1] ? &p->v_panels : NULL);
	}
	copy_queries(&a);
	start_rows(&a);
	pass_keys(&a);
	if (parts)
		store_part(&a);
	else
		store_results(&a);
	cpu_finish_phase(s, p->ntasks, p->cost);
	if (parts)
		join_parts(s, p);
}
