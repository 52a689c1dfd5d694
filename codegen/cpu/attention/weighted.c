/* The schedule for sums with weights, which are the backward pass of FlashAttention
 * (codegen/plan/attention/attention.h).
 *
 *   phases before: operands of keys, and others that are not read in place, into panels
 *   task: a member of the batch
 *     for blocks of keys, for blocks of rows that some row's conditions let through:
 *       products[row][key] = sum over depth of row's operand * key's    register tiles
 *       weights[row][key] = functions of the products; by groups, if groups are multiplied: of
 *                           neighbouring keys, [row][key], and of rows, [row / 2][key][2]
 *       sums of keys[key][column] += sum over rows of weight * operand  register tiles
 *       sums of rows[row][column] += sum over keys of weight * operand  register tiles
 *     the stages behind the sums, which store: for each key behind its rows, for each row at last
 *
 * Rows past the end repeat the last one, so that every tile of rows is whole; they are not added,
 * and not stored. Neither are keys past the end. */
#include "codegen/cpu/attention/attention.h"
#include "codegen/cpu/attention/blocks.h"
#include "codegen/cpu/contract.h"

typedef struct {
	Blocks b;
	const WeightedPlan *p;
	LMem rows[MAX_WEIGHTED];    /* by product: [row][depth] */
	LMem product[MAX_WEIGHTED]; /* [row][key]; weights replace the products */
	LMem narrow[MAX_WEIGHTED];  /* by sum: weights as they are multiplied; of those of another
				       sum, the same array. Of sums of rows [row][key]; of keys
				       [row / 2][key][2], or by fragments [key][row] */
	LMem sum[MAX_WEIGHTED];     /* [key][column], or [row][column] */
	BlockOperand key[MAX_WEIGHTED], operand[MAX_WEIGHTED];
	Lx region[MAX_WEIGHTED]; /* of sums of rows: where the member's begin; none: at the first
				    row of the task */
	uint32_t temp[MAX_WEIGHTED]; /* of those: the temporary + 1; 0: a local array */
	Lx part;                     /* of the member's tasks, this one's number */
	bool inside;                 /* weights are those of a block that no bound cuts */
	int64_t pitch, turned;       /* elements from a row of products to the next, and from a key
					to the next where weights are [key][row] */
} Weighted;

/* A row or key of the block, and where it begins in an array. */
typedef struct {
	Weighted *w;
	uint32_t number; /* of the product or sum */
	Lx at;
} Place;

static int64_t width_of(const Weighted *w, uint32_t sum)
{
	return weighted_row(w->p, w->p->sum[sum].columns);
}

/* ---- arrays ---- */

/* Returns rows of whole blocks, of all that there are. */
static Sym padded_rows(const WeightedPlan *p)
{
	SymTab *syms = p->nest->syms;
	const Sym size = sym_int(syms, p->block.rows);
	return sym_mul(syms, sym_ceildiv(syms, p->nest->extent[p->limits.row], size), size);
}

/* Adds a temporary for sums of rows that all blocks of keys add to. */
static void add_regions(Weighted *w, Cpu *s, uint32_t phase)
{
	const WeightedPlan *p = w->p;
	SymTab *syms = p->nest->syms;
	for (uint32_t i = 0; i < p->is.nsum; i++)
		if (p->sum[i].of_row && p->task == TASK_MEMBER)
			w->temp[i] =
				1 + code_temp(&s->code,
					      (SchedTemp){.name = "sums",
							  .dtype = DT_f32,
							  .numel = sym_mul(
								  syms,
								  sym_mul(syms, p->members,
									  padded_rows(p)),
								  sym_int(syms, width_of(w, i))),
							  .first = phase,
							  .last = phase});
}

/* Returns the first sum that has the weights of another one, in the same order. */
static uint32_t same_weights(const WeightedPlan *p, uint32_t sum)
{
	uint32_t i = 0;
	while (p->sum[i].weight != p->sum[sum].weight || p->sum[i].of_row != p->sum[sum].of_row)
		i++;
	return i;
}

/* Whether weights of the sum are stored by groups, for it and those of the same. */
static bool is_narrow(const WeightedPlan *p, uint32_t sum)
{
	return micro_groups(p->by.row) && same_weights(p, sum) == sum;
}

/* Returns rows of whole groups of fragments, or of tiles, in a block. */
static int64_t whole_rows(const WeightedPlan *p)
{
	const int64_t k = p->by.frag ? p->by.frag->k : 1;
	return (p->block.rows + k - 1) / k * k;
}

/* Returns the elements of weights as they are multiplied. */
static int64_t narrow_elements(const Weighted *w, uint32_t sum)
{
	const WeightedPlan *p = w->p;
	return p->by.frag && !p->sum[sum].of_row
		       ? weighted_row(p, p->block.cols + p->tile.mr) * w->turned
		       : whole_rows(p) * w->pitch;
}

static LMem local(Weighted *w, const char *name, int64_t elements)
{
	return ls_local(w->b.f, name, DT_f32, (uint64_t)elements);
}

static void declare_arrays(Weighted *w)
{
	const WeightedPlan *p = w->p;
	const uint32_t arrays = p->is.nscore > p->weights.n ? p->is.nscore : p->weights.n;
	w->pitch = weighted_pitch(p);
	if (p->by.frag) /* keys do not share places of the caches */
		w->turned = whole_rows(p) + (int64_t)p->by.frag->k;
	const DType d = micro_groups(p->by.row) ? p->by.row->a : DT_f32;
	for (uint32_t i = 0; i < p->is.nscore; i++)
		w->rows[i] =
			ls_local(w->b.f, "rows", d,
				 (uint64_t)(p->block.rows * weighted_row(p, p->score[i].depths)));
	for (uint32_t i = 0; i < p->is.nsum; i++)
		w->narrow[i] = is_narrow(p, i) ? ls_local(w->b.f, "weights", d,
							  (uint64_t)narrow_elements(w, i))
					       : w->narrow[same_weights(p, i)];
	for (uint32_t i = 0; i < arrays; i++)
		w->product[i] = local(w, "products", whole_rows(p) * w->pitch);
	if (p->task == TASK_PAIRS)
		w->sum[0] = local(w, "sums", p->block.rows * w->pitch);
	for (uint32_t i = 0; i < p->is.nsum; i++)
		if (w->temp[i])
			w->sum[i] = eval_temp_memory(&w->b.s->e, w->temp[i] - 1);
		else
			w->sum[i] = local(
				w, "sums",
				(p->sum[i].of_row ? p->block.rows : p->block.cols + p->tile.mr) *
					width_of(w, i));
}

/* Sets n elements, of whole vectors, to 0. */
static void clear(Weighted *w, LMem m, Lx from, Lx n)
{
	LoopFn *f = w->b.f;
	Lx i = lx_var(f, ls_for(f, "i", number(&w->b, 0), n, w->b.vector.lanes));
	ls_store(f, m, from.i ? lx_add(f, from, i) : i, lx_float(f, w->b.vector, 0), (Lx){0});
	ls_end(f);
}

/* Sets products and weights to 0: those past the last key are read where tiles are whole, and not
 * used. */
static void clear_products(Weighted *w)
{
	const WeightedPlan *p = w->p;
	const uint32_t arrays = p->is.nscore > p->weights.n ? p->is.nscore : p->weights.n;
	for (uint32_t i = 0; i < arrays; i++)
		clear(w, w->product[i], (Lx){0}, number(&w->b, whole_rows(p) * w->pitch));
	for (uint32_t i = 0; i < p->is.nsum; i++)
		if (is_narrow(p, i))
			clear(w, w->narrow[i], (Lx){0}, number(&w->b, narrow_elements(w, i)));
}

static void clear_sums(Weighted *w, bool of_row)
{
	const WeightedPlan *p = w->p;
	for (uint32_t i = 0; i < p->is.nsum; i++) {
		const int64_t rows = of_row ? p->block.rows : p->block.cols + p->tile.mr;
		if (p->sum[i].of_row != of_row)
			continue;
		Lx n = w->temp[i]
			       ? times(&w->b, eval_size(&w->b.s->e, padded_rows(p)), width_of(w, i))
			       : number(&w->b, rows * width_of(w, i));
		clear(w, w->sum[i], w->region[i], n);
	}
}

/* ---- products ---- */

static void copy_element(Cpu *s, void *data)
{
	const Place *q = data;
	const WeightedScore *x = &q->w->p->score[q->number];
	LoopFn *f = q->w->b.f;
	blocks_store(&q->w->b, q->w->rows[q->number], lx_add(f, q->at, s->e.at[x->depth]),
		     eval_vector(&s->e, x->row), s->e.lanes.mask);
}

/* Copies the rows of a product's operand into a local array. */
static void copy_rows(Weighted *w, uint32_t product)
{
	const WeightedPlan *p = w->p;
	const WeightedScore *x = &p->score[product];
	Cpu *s = w->b.s;
	eval_lanes(&s->e, x->depth, p->vector.lanes);
	Lx r = blocks_open_rows(&w->b, w->b.rows.whole, 1);
	blocks_go_to_row(&w->b, r, true);
	Place q = {w, product, let(&w->b, "at", times(&w->b, r, weighted_row(p, x->depths)))};
	cpu_vector_loop(s, x->depth, number(&w->b, 0), number(&w->b, x->depths),
			x->depths % p->vector.lanes == 0, copy_element, &q);
	blocks_leave_row(&w->b);
	ls_end(w->b.f);
	eval_lanes(&s->e, NO_AXIS, p->vector.lanes);
}

static void make_products(Weighted *w)
{
	const WeightedPlan *p = w->p;
	for (uint32_t i = 0; i < p->is.nscore; i++) {
		const ScoreTiles tiles = {.rows = w->rows[i],
					  .to = w->product[i],
					  .keys = w->key[i],
					  .depth = weighted_row(p, p->score[i].depths),
					  .pitch = w->pitch,
					  .steps = p->score[i].depths / p->by.row->group};
		copy_rows(w, i);
		blocks_make_scores(&w->b, &tiles);
	}
}

/* ---- weights ---- */

/* Replaces products by weights. */
static void make_weights(Cpu *s, void *data)
{
	const Place *row = data;
	Weighted *w = row->w;
	const WeightedPlan *p = w->p;
	LoopFn *f = w->b.f;
	Lx at = let(&w->b, "at", lx_add(f, row->at, lx_sub(f, s->e.at[p->limits.key], w->b.from))),
	   x[MAX_WEIGHTED];
	for (uint32_t i = 0; i < p->is.nscore; i++)
		eval_stage_value(
			&s->e, i,
			let(&w->b, "product", load(&w->b, w->product[i], at, p->vector.lanes)));
	if (w->inside)
		blocks_assume_inside(&w->b);
	for (uint32_t i = 0; i < p->weights.n; i++) {
		const Kx weight = p->weights.at[i];
		x[i] = eval_vector(&s->e, p->is.nsum ? blocks_unrounded(&w->b, weight) : weight);
		if (s->e.lanes.mask.i && micro_groups(p->by.row)) /* groups are whole */
			x[i] = lx_select(f, s->e.lanes.mask, x[i], lx_float(f, p->vector, 0));
		x[i] = let(&w->b, "weight", x[i]);
	}
	for (uint32_t i = 0; i < p->is.nsum; i++)
		if (p->sum[i].of_row && is_narrow(p, i))
			blocks_store(&w->b, w->narrow[i], at, x[p->sum[i].weight], (Lx){0});
	for (uint32_t i = 0; i < p->weights.n; i++)
		ls_store(f, w->product[i], at, x[i], (Lx){0});
}

/* Stores weights of neighbouring rows side by side. */
static void pair_rows(Weighted *w, uint32_t sum)
{
	const WeightedPlan *p = w->p;
	Blocks *b = &w->b;
	LoopFn *f = b->f;
	const int64_t lanes = p->vector.lanes;
	const LMem from = w->product[p->sum[sum].weight], to = w->narrow[sum];
	Lx r = blocks_open_rows(b, b->rows.n, 2);
	Lx key = lx_var(f, ls_for(f, "key", number(b, 0), b->count, lanes)),
	   at = let(b, "at", times(b, r, w->pitch));
	Lx x = load(b, from, lx_add(f, at, key), p->vector.lanes),
	   y = load(b, from, lx_add(f, lx_add(f, at, number(b, w->pitch)), key), p->vector.lanes);
	at = let(b, "pair", lx_add(f, at, times(b, key, 2)));
	blocks_store(b, to, at, lanes == 1 ? x : lx_shuffle(f, SHUFFLE_ZIP_LOW, x, y), (Lx){0});
	at = lx_add(f, at, number(b, lanes));
	blocks_store(b, to, at, lanes == 1 ? y : lx_shuffle(f, SHUFFLE_ZIP_HIGH, x, y), (Lx){0});
	ls_end(f);
	ls_end(f);
}

/* Returns the bits of weights of two rows, from the element `at` of products on, side by side. */
static Lx pair_of_rows(Weighted *w, LMem from, Lx at)
{
	Blocks *b = &w->b;
	LoopFn *f = b->f;
	const uint32_t lanes = w->p->vector.lanes;
	Lx bits[2];
	for (uint32_t i = 0; i < 2; i++) {
		Lx x = load(b, from, lx_add(f, at, number(b, i * w->pitch)), lanes);
		x = lx_sc(f, SC_flush_bf16, (LType){DT_u16, lanes}, &x, 1);
		bits[i] = lx_sc(f, SC_convert, (LType){DT_u32, lanes}, &x, 1);
	}
	const LType t = {DT_u32, lanes};
	Lx high = lx_sc(f, SC_shl, t, (Lx[]){bits[1], lx_int_of(f, t, 16)}, 2);
	return let(b, "pair", lx_sc(f, SC_or, t, (Lx[]){bits[0], high}, 2));
}

/* Stores weights [key][row], as a fragment has them: squares of pairs of rows are transposed. */
static void turn_rows(Weighted *w, uint32_t sum)
{
	Blocks *b = &w->b;
	LoopFn *f = b->f;
	const int64_t lanes = w->p->vector.lanes, wide = 2 * lanes;
	const LMem from = w->product[w->p->sum[sum].weight];
	LMem to = w->narrow[sum];
	to.dtype = DT_u32;
	Lx row[MAX_DOT_GROUPS];
	Lx r = blocks_open_rows(b, b->rows.n, wide);
	Lx key = lx_var(f, ls_for(f, "key", number(b, 0), b->count, lanes)),
	   at = let(b, "at", lx_add(f, times(b, r, w->pitch), key)),
	   first = lx_add(f, times(b, key, w->turned), r);
	for (int64_t i = 0; i < lanes; i++)
		row[i] = pair_of_rows(w, from, lx_add(f, at, number(b, 2 * i * w->pitch)));
	transpose_lanes(b->s, row);
	first = let(b, "to", lx_div(f, first, number(b, 2)));
	for (int64_t i = 0; i < lanes; i++)
		ls_store(f, to, lx_add(f, first, number(b, i * w->turned / 2)), row[i], (Lx){0});
	ls_end(f);
	ls_end(f);
}

/* Makes weights of rows groups, or fragments; behind the last row there are some of 0. */
static void pair_all_rows(Weighted *w)
{
	const WeightedPlan *p = w->p;
	Blocks *b = &w->b;
	LoopFn *f = b->f;
	const int64_t group = p->by.frag ? p->by.frag->k : p->by.row->group;
	Lx part = let(b, "part", lx_mod(f, b->rows.n, number(b, group)));
	ls_if(f, lx_cmp(f, SC_ne, part, number(b, 0)));
	Lx last = let(b, "last", times(b, b->rows.n, w->pitch)),
	   rest = let(b, "rest", times(b, lx_sub(f, number(b, group), part), w->pitch));
	for (uint32_t i = 0; i < p->weights.n; i++)
		clear(w, w->product[i], last, rest);
	ls_end(f);
	for (uint32_t i = 0; i < p->is.nsum; i++) {
		if (p->sum[i].of_row || !is_narrow(p, i))
			continue;
		if (p->by.frag)
			turn_rows(w, i);
		else
			pair_rows(w, i);
	}
}

/* Makes the weights of all rows of the block. */
static void make_rows(Weighted *w)
{
	const WeightedPlan *p = w->p;
	Cpu *s = w->b.s;
	uint64_t known = UINT64_C(1) << p->limits.row;
	for (uint32_t i = 0; i < p->added.n; i++)
		known |= UINT64_C(1) << p->added.axis[i];
	for (uint32_t i = 0; i < p->batch.n; i++)
		known |= UINT64_C(1) << p->batch.axis[i];
	Lx r = blocks_open_rows(&w->b, w->b.rows.n, 1);
	blocks_go_to_row(&w->b, r, false);
	for (uint32_t i = 0; i < p->weights.n; i++)
		eval_hoist(&s->e, p->weights.at[i], known);
	Place row = {w, 0, let(&w->b, "at", times(&w->b, r, w->pitch))};
	blocks_for_keys(&w->b, make_weights, &row);
	blocks_leave_row(&w->b);
	ls_end(w->b.f);
}

static void make_all_weights(Weighted *w)
{
	const WeightedPlan *p = w->p;
	Cpu *s = w->b.s;
	LoopFn *f = w->b.f;
	eval_lanes(&s->e, p->limits.key, p->vector.lanes);
	Lx inside = blocks_are_inside(&w->b);
	if (inside.i) { /* rows of most blocks evaluate no bounds */
		ls_if(f, inside);
		w->inside = true;
		make_rows(w);
		w->inside = false;
		ls_else(f);
	}
	make_rows(w);
	if (inside.i)
		ls_end(f);
	for (uint32_t i = 0; i < p->is.nscore; i++)
		eval_stage_over(&s->e, i);
	eval_lanes(&s->e, NO_AXIS, p->vector.lanes);
	if (micro_groups(p->by.row))
		pair_all_rows(w);
}

/* ---- sums ---- */

/* Returns so many steps, or the first step, in groups. */
static Lx in_groups(Weighted *w, Lx steps)
{
	const int64_t group = w->p->by.row->group;
	return let(&w->b, "groups",
		   lx_div(w->b.f, lx_add(w->b.f, steps, number(&w->b, group - 1)),
			  number(&w->b, group)));
}

static void add_products(Weighted *w, uint32_t sum)
{
	const WeightedPlan *p = w->p;
	const WeightedSum *x = &p->sum[sum];
	Blocks *b = &w->b;
	Lx up = lx_add(b->f, b->count, number(b, p->tile.mr - 1));
	const int64_t group = p->by.row->group;
	SumTiles t = {.weights = micro_groups(p->by.row) ? w->narrow[sum] : w->product[x->weight],
		      .to = w->sum[sum],
		      .operand = w->operand[sum],
		      .width = width_of(w, sum),
		      .apart = true};
	if (x->of_row) {
		t.pitch = w->pitch;
		t.stride = group;
		t.first = in_groups(w, b->from);
		t.steps = in_groups(w, b->count);
		t.end = b->rows.whole;
		if (w->temp[sum])
			t.base =
				let(b, "base",
				    lx_add(b->f, w->region[sum], times(b, b->rows.first, t.width)));
	} else {
		t.pitch = p->by.frag ? w->turned : group;
		t.stride = p->by.frag ? group : group * w->pitch;
		t.first = in_groups(w, b->rows.first);
		t.steps = in_groups(w, b->rows.n);
		t.end = let(b, "keys",
			    times(b, lx_div(b->f, up, number(b, p->tile.mr)), p->tile.mr));
	}
	blocks_add_products(b, &t);
}

/* ---- results ---- */

static void store_vector(Cpu *s, void *data)
{
	const Place *q = data;
	Weighted *w = q->w;
	const Nest *n = s->e.nest;
	const WeightedSum *x = &w->p->sum[q->number];
	Lx at = lx_add(w->b.f, q->at, s->e.at[x->column]);
	eval_stage_value(&s->e, x->stage, load(&w->b, w->sum[q->number], at, w->b.vector.lanes));
	for (uint32_t i = w->p->is.nscore + w->p->is.nsum; i < n->k->stage.n; i++)
		if (nest_next_read(n, n->k->stage.data[i].value, 0) == x->stage)
			cpu_store(s, i, eval_value(&s->e, n->k->stage.data[i].value));
	eval_stage_over(&s->e, x->stage);
}

/* Stores a sum of n rows, or keys, from the one `first` on. */
static void store_sums(Weighted *w, uint32_t sum, uint32_t axis, Lx first, Lx n)
{
	const WeightedPlan *p = w->p;
	const WeightedSum *x = &p->sum[sum];
	Cpu *s = w->b.s;
	LoopFn *f = w->b.f;
	eval_lanes(&s->e, x->column, p->vector.lanes);
	Lx r = blocks_open_rows(&w->b, n, 1), at = times(&w->b, r, width_of(w, sum));
	eval_at(&s->e, axis, let(&w->b, "row", lx_add(f, first, r)));
	Place q = {w, sum, let(&w->b, "at", w->temp[sum] ? lx_add(f, w->region[sum], at) : at)};
	cpu_vector_loop(s, x->column, number(&w->b, 0), number(&w->b, x->columns),
			x->columns % p->vector.lanes == 0, store_vector, &q);
	eval_at(&s->e, axis, (Lx){0});
	ls_end(f);
	eval_lanes(&s->e, NO_AXIS, p->vector.lanes);
}

static void store_all(Weighted *w, bool of_row)
{
	const WeightedPlan *p = w->p;
	Blocks *b = &w->b;
	Lx rows = eval_size(&b->s->e, p->nest->extent[p->limits.row]);
	for (uint32_t i = 0; i < p->is.nsum; i++) {
		if (p->sum[i].of_row != of_row)
			continue;
		if (!of_row)
			store_sums(w, i, p->limits.key, b->from, b->count);
		else if (w->temp[i])
			store_sums(w, i, p->limits.row, number(b, 0), rows);
		else
			store_sums(w, i, p->limits.row, b->rows.first, b->rows.n);
	}
}

/* ---- sums of weights ---- */

static void add_weight(Cpu *s, void *data)
{
	const Place *q = data;
	Weighted *w = q->w;
	LoopFn *f = w->b.f;
	Lx at = let(&w->b, "at", lx_add(f, q->at, lx_sub(f, s->e.at[w->p->limits.key], w->b.from))),
	   x = load(&w->b, w->product[0], at, w->b.vector.lanes),
	   y = load(&w->b, w->sum[0], at, w->b.vector.lanes);
	ls_store(f, w->sum[0], at, lx_add(f, y, x), s->e.lanes.mask);
}

static void store_weight(Cpu *s, void *data)
{
	const Place *q = data;
	Weighted *w = q->w;
	const Nest *n = s->e.nest;
	const uint32_t sum = w->p->is.nscore;
	Lx at = lx_add(w->b.f, q->at, lx_sub(w->b.f, s->e.at[w->p->limits.key], w->b.from));
	eval_stage_value(&s->e, sum, load(&w->b, w->sum[0], at, w->b.vector.lanes));
	for (uint32_t i = sum + 1; i < n->k->stage.n; i++)
		cpu_store(s, i, eval_value(&s->e, n->k->stage.data[i].value));
	eval_stage_over(&s->e, sum);
}

/* Calls body for the keys of each row of the block, by vectors. */
static void for_pairs(Weighted *w, void (*body)(Cpu *, void *))
{
	Blocks *b = &w->b;
	Cpu *s = b->s;
	eval_lanes(&s->e, w->p->limits.key, w->p->vector.lanes);
	Lx r = blocks_open_rows(b, b->rows.n, 1);
	blocks_go_to_row(b, r, false);
	Place row = {w, 0, let(b, "at", times(b, r, w->pitch))};
	blocks_for_keys(b, body, &row);
	blocks_leave_row(b);
	ls_end(b->f);
	eval_lanes(&s->e, NO_AXIS, w->p->vector.lanes);
}

/* ---- blocks ---- */

/* Adds what the block of rows and keys adds. */
static void add_block(Weighted *w)
{
	const WeightedPlan *p = w->p;
	Blocks *b = &w->b;
	LoopFn *f = b->f;
	Lx lo, hi;
	blocks_bound_keys(b, &lo, &hi);
	if (p->limits.nbound)
		ls_if(f, lx_and(f, lx_cmp(f, SC_lt, lo, lx_add(f, b->from, b->count)),
				lx_cmp(f, SC_gt, hi, b->from)));
	if (p->limits.nmask)
		blocks_open_if_seen(b);
	make_products(w);
	make_all_weights(w);
	for (uint32_t i = 0; i < p->is.nsum; i++)
		add_products(w, i);
	if (p->task == TASK_PAIRS)
		for_pairs(w, add_weight);
	if (p->limits.nmask)
		ls_end(f);
	if (p->limits.nbound)
		ls_end(f);
}

/* Opens the loop over blocks of an axis, unless the task has one of them. Returns the block's
 * first point. */
static Lx open_blocks(Weighted *w, const char *name, uint32_t axis, int64_t size, bool one)
{
	Blocks *b = &w->b;
	if (one)
		return let(b, name, times(b, w->part, size));
	return lx_var(b->f, ls_for(b->f, name, number(b, 0),
				   eval_size(&b->s->e, b->nest->extent[axis]), size));
}

static void open_rows(Weighted *w, bool one)
{
	const WeightedPlan *p = w->p;
	Blocks *b = &w->b;
	Lx first = open_blocks(w, "first", p->limits.row, p->block.rows, one),
	   all = eval_size(&b->s->e, b->nest->extent[p->limits.row]);
	blocks_set_rows(b, first, all, p->block.rows);
}

static void pass_rows(Weighted *w)
{
	const WeightedPlan *p = w->p;
	Blocks *b = &w->b;
	const bool one = p->task == TASK_ROWS;
	if (!one)
		open_rows(w, false);
	add_block(w);
	if (!one)
		ls_end(b->f);
}

static void pass_keys(Weighted *w)
{
	const WeightedPlan *p = w->p;
	Blocks *b = &w->b;
	const bool one = p->task == TASK_KEYS;
	if (p->task == TASK_ROWS)
		open_rows(w, true);
	blocks_set_keys(b, open_blocks(w, "from", p->limits.key, p->block.cols, one));
	clear_sums(w, false);
	pass_rows(w);
	store_all(w, false);
	if (!one)
		ls_end(b->f);
}

static void find_operands(Weighted *w)
{
	const WeightedPlan *p = w->p;
	for (uint32_t i = 0; i < p->is.nscore; i++)
		w->key[i] = blocks_operand(&w->b, p->score[i].key, p->score[i].step, p->limits.key,
					   &p->score[i].panels);
	for (uint32_t i = 0; i < p->is.nsum; i++)
		w->operand[i] =
			blocks_operand(&w->b, p->sum[i].operand, p->sum[i].step, p->sum[i].column,
				       p->sum[i].copy ? &p->sum[i].panels : NULL);
}

/* Adds up the weights of a block of rows and keys, over the members in order, and stores them. */
static void pass_members(Weighted *w)
{
	const WeightedPlan *p = w->p;
	Blocks *b = &w->b;
	LoopFn *f = b->f;
	Lx cols = eval_size(&b->s->e, sym_ceildiv(p->nest->syms, p->nest->extent[p->limits.key],
						  sym_int(p->nest->syms, p->block.cols))),
	   column = let(b, "column", lx_mod(f, w->part, cols));
	w->part = let(b, "row", lx_div(f, w->part, cols));
	open_rows(w, true);
	blocks_set_keys(b, let(b, "from", times(b, column, p->block.cols)));
	clear(w, w->sum[0], (Lx){0}, number(b, p->block.rows * w->pitch));
	Lx all = number(b, 1);
	for (uint32_t i = 0; i < p->added.n; i++)
		all = lx_mul(f, all, eval_size(&b->s->e, p->nest->extent[p->added.axis[i]]));
	Lx member = lx_var(f, ls_for(f, "added", number(b, 0), all, 1));
	blocks_go_to_member(b, p->added.axis, p->added.n, member);
	find_operands(w);
	add_block(w);
	for (uint32_t i = 0; i < p->added.n; i++)
		eval_at(&b->s->e, p->added.axis[i], (Lx){0});
	ls_end(f);
	for_pairs(w, store_weight);
}

/* ---- the phase ---- */

static int64_t widest(const Weighted *w)
{
	int64_t most = w->b.vector.lanes;
	for (uint32_t i = 0; i < w->p->is.nsum; i++)
		most = width_of(w, i) > most ? width_of(w, i) : most;
	return most;
}

static void decode_task(Weighted *w)
{
	const WeightedPlan *p = w->p;
	Blocks *b = &w->b;
	LoopFn *f = b->f;
	Lx member = lx_var(f, f->task);
	if (p->task != TASK_MEMBER) {
		Lx parts = eval_size(&b->s->e, p->parts);
		w->part = let(b, "part", lx_mod(f, member, parts));
		member = let(b, "member", lx_div(f, member, parts));
	}
	for (uint32_t i = 0; i < p->is.nsum; i++)
		if (w->temp[i])
			w->region[i] = let(b, "region",
					   lx_mul(f, member,
						  times(b, eval_size(&b->s->e, padded_rows(p)),
							width_of(w, i))));
	blocks_go_to_member(b, p->batch.axis, p->batch.n, member);
}

void emit_weighted(Cpu *s, const Plan *plan)
{
	const WeightedPlan *p = plan->of.weighted;
	uint32_t ncopy = p->is.nscore;
	for (uint32_t i = 0; i < p->is.nsum; i++)
		ncopy += p->sum[i].copy != NULL;
	for (uint32_t i = 0; i < p->is.nscore; i++)
		contract_copy(s, p->score[i].copy, ncopy);
	for (uint32_t i = 0; i < p->is.nsum; i++)
		if (p->sum[i].copy)
			contract_copy(s, p->sum[i].copy, ncopy);
	Weighted w = {.p = p};
	add_regions(&w, s, ncopy);
	cpu_begin_phase(s, p->nest);
	eval_lanes(&s->e, NO_AXIS, p->vector.lanes);
	w.b = (Blocks){.s = s,
		       .f = s->e.f,
		       .nest = p->nest,
		       .row = p->by.row,
		       .limits = &p->limits,
		       .vector = p->vector,
		       .tile = p->tile,
		       .most = p->block.cols};
	decode_task(&w);
	declare_arrays(&w);
	blocks_declare_frags(&w.b, p->by.frag, widest(&w));
	clear_products(&w);
	if (p->task == TASK_PAIRS) {
		pass_members(&w);
	} else {
		find_operands(&w);
		clear_sums(&w, true);
		pass_keys(&w);
		store_all(&w, true);
	}
	cpu_finish_phase(s, sym_mul(p->nest->syms, p->members, p->parts), p->cost);
}
