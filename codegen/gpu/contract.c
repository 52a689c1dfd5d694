/* The code of GpuContractPlan. */
#include "codegen/gpu/block.h"

enum { MOST_TILE = 64, MOST_UNITS = 16, STAGES = 2 };

/* An operand on the way into shared memory. */
typedef struct {
	const GpuOperand *o;
	const GpuAxes *side;
	uint32_t length, units; /* rows of the tile; copies of a thread in a step */
	LMem tile;              /* [stage][k][row] */
	Lx first;               /* the first row of the tile */
	Lx step;                /* if steps are even: the place of the current one, without rows */
	Lx count;               /* rows of the operand */
	Lx base[MOST_UNITS], row[MOST_UNITS], k[MOST_UNITS]; /* by unit: the place of its row in
	                                                        memory, without k (if steps are
	                                                        even, with its k in the tile); its
	                                                        row and step in the tile */
	Lx there[MOST_UNITS];   /* whether its row exists */
	Lx value[MOST_UNITS];   /* on the way through registers; `deep` of each unit */
} Side;

typedef struct {
	Code *s;
	const GpuContractPlan *p;
	Side a, b;
	Lx start, steps; /* of k: the block's first one, and the end */
	Lx part, member;  /* which part of k the block has (none: all, and no second phase), which
	                     member of the batch */
	Lv acc[MOST_TILE];
	Lv sum[MAX_LOOP_CUTS][MOST_TILE]; /* by cut, the outermost first */
	Lx trow, tcol;   /* the thread's place in the block's tile, in tiles of its own */
	bool even;       /* is_even */
} Contract;

static Lx int_of(Contract *c, int64_t v)
{
	return lx_int(c->s->e.f, v);
}

static Lx plus(Contract *c, Lx x, int64_t v)
{
	return lx_add(c->s->e.f, x, int_of(c, v));
}

static Lx times(Contract *c, Lx x, int64_t v)
{
	return lx_mul(c->s->e.f, x, int_of(c, v));
}

static Lx half(Contract *c, Lx x, int64_t v)
{
	return lx_div(c->s->e.f, x, int_of(c, v));
}

static Lx rest(Contract *c, Lx x, int64_t v)
{
	return lx_mod(c->s->e.f, x, int_of(c, v));
}

/* ---- places ---- */

static uint32_t inner_axis(const GpuContractPlan *p)
{
	return p->k.axis[p->k.n - 1];
}

/* Whether a step lies within one run of the innermost summed axis: then one decoding of k serves
 * all units, which lie at constant distances from there. */
static bool is_even(const GpuContractPlan *p)
{
	return sym_divides(p->nest->syms, p->tile.depth, p->nest->extent[inner_axis(p)]) &&
	       p->grid.per % p->tile.depth == 0;
}

/* Returns the offset of a load without its summed axes from number `from` on; summed: the part of
 * those axes alone. */
static Sym part_of_offset(Contract *c, Kx load, uint32_t from, bool summed)
{
	const Nest *n = c->p->nest;
	Sym sum = n->offset[load.i], k = sym_int(n->syms, 0), coef;
	for (uint32_t i = from; i < c->p->k.n; i++) {
		const uint32_t axis = c->p->k.axis[i];
		Sym left;
		if (!sym_linear(n->syms, sum, n->var[axis], &coef, &left))
			continue;
		k = sym_add(n->syms, k, sym_mul(n->syms, coef, n->var[axis]));
		sum = left;
	}
	return summed ? k : sum;
}

/* Finds unit i of the thread in a step. Consecutive threads go along k, or along rows by `wide`. */
static void place_unit(Contract *c, Side *x, uint32_t i)
{
	Eval *e = &c->s->e;
	Lx t = block_thread(c->s);
	const uint32_t wide = x->o->wide, threads = c->p->threads;
	if (x->o->along_k) {
		const uint32_t steps = c->p->tile.depth / x->o->deep; /* of a row */
		x->k[i] = times(c, rest(c, t, steps), x->o->deep);
		x->row[i] = plus(c, half(c, t, steps), (int64_t)i * (threads / steps));
	} else {
		Lx u = plus(c, t, (int64_t)i * threads);
		x->k[i] = half(c, u, x->length / wide);
		x->row[i] = times(c, rest(c, u, x->length / wide), wide);
	}
	Lx row = eval_let(e, "row", lx_add(e->f, x->first, x->row[i]));
	x->there[i] = eval_let(e, "there", lx_cmp(e->f, SC_lt, row, x->count));
	block_decode(c->s, row, x->side->axis, x->side->n, NULL);
	Lx base = eval_index(e, part_of_offset(c, x->o->load, 0, false));
	if (c->even) {
		const uint32_t inner = inner_axis(c->p);
		block_decode(c->s, x->k[i], &inner, 1, NULL);
		base = lx_add(e->f, base,
			      eval_index(e, part_of_offset(c, x->o->load, c->p->k.n - 1, true)));
	}
	x->base[i] = eval_let(e, "base", base);
}

static Sym product(Contract *c, const GpuAxes *x)
{
	SymTab *syms = c->s->e.syms;
	Sym all = sym_int(syms, 1);
	for (uint32_t i = 0; i < x->n; i++)
		all = sym_mul(syms, all, c->p->nest->extent[x->axis[i]]);
	return all;
}

static void place_side(Contract *c, Side *x, const GpuOperand *o, const GpuAxes *side,
		       uint32_t length, Lx tile)
{
	Eval *e = &c->s->e;
	*x = (Side){.o = o,
		    .side = side,
		    .length = length,
		    .units = c->p->tile.depth * length / (c->p->threads * o->wide * o->deep)};
	x->tile = ls_shared(e->f, "tile", c->p->dtype,
			    STAGES * c->p->tile.depth * (uint64_t)(length + GPU_PAD));
	x->first = eval_let(e, "first", times(c, tile, length));
	x->count = eval_size(e, product(c, side));
	for (uint32_t i = 0; i < x->units; i++)
		place_unit(c, x, i);
}

/* ---- a step into shared memory ---- */

/* Returns which half of the tiles in shared memory step k0 has. */
static Lx stage_of(Contract *c, Lx k0)
{
	return rest(c, half(c, k0, c->p->tile.depth), STAGES);
}

static Lx in_tile(Contract *c, const Side *x, Lx stage, Lx k, Lx row)
{
	LoopFn *f = c->s->e.f;
	const int64_t line = x->length + GPU_PAD;
	return lx_add(f, lx_add(f, times(c, stage, c->p->tile.depth * line), times(c, k, line)),
		      row);
}

/* Returns the offset of step k in memory, without rows. */
static Lx place_of_step(Contract *c, const Side *x, Lx k)
{
	Eval *e = &c->s->e;
	block_decode(c->s, k, c->p->k.axis, c->p->k.n, NULL);
	return eval_index(e, part_of_offset(c, x->o->load, 0, true));
}

/* Returns the offset of a unit in memory at step k0, and sets *there to whether it exists. */
static Lx unit_place(Contract *c, Side *x, Lx k0, uint32_t i, Lx *there)
{
	Eval *e = &c->s->e;
	Lx k = c->even ? k0 : eval_let(e, "k", lx_add(e->f, k0, x->k[i]));
	*there = lx_and(e->f, x->there[i], lx_cmp(e->f, SC_lt, k, c->steps));
	return lx_add(e->f, x->base[i], c->even ? x->step : place_of_step(c, x, k));
}

/* Loads several steps of a row in one access; 0 where they do not exist. */
static void load_deep(Contract *c, Side *x, LMem m, Lx at, uint32_t i, Lx there)
{
	LoopFn *f = c->s->e.f;
	const LType t = {c->p->dtype, x->o->deep};
	Lv v[SHARED_ALIGN];
	for (uint32_t k = 0; k < x->o->deep; k++)
		v[k] = ls_var(f, "ahead", lx_float(f, (LType){c->p->dtype, 1}, 0));
	ls_if(f, there);
	Lx all = lx_var(f, ls_load(f, f->buf.data[m.k].name, m, at, t, (Lx){0}));
	for (uint32_t k = 0; k < x->o->deep; k++)
		ls_set(f, v[k], lx_lane(f, all, k));
	ls_end(f);
	for (uint32_t k = 0; k < x->o->deep; k++)
		x->value[i * x->o->deep + k] = lx_var(f, v[k]);
}

/* Begins copies, or loads into registers. */
static void begin_step(Contract *c, Side *x, Lx k0)
{
	Eval *e = &c->s->e;
	LMem m = eval_load_memory(e, x->o->load);
	const uint32_t bytes = x->o->wide * dtype_size(c->p->dtype);
	if (x->o->async)
		block_align(c->s, m, bytes);
	if (x->o->deep > 1)
		block_align(c->s, m, x->o->deep * dtype_size(m.dtype));
	if (c->even)
		x->step = eval_let(e, "step", place_of_step(c, x, k0));
	for (uint32_t i = 0; i < x->units; i++) {
		Lx there, at = unit_place(c, x, k0, i, &there);
		if (x->o->async)
			ls_copy_async(e->f, x->tile,
				      in_tile(c, x, stage_of(c, k0), x->k[i], x->row[i]), m, at,
				      bytes, there);
		else if (x->o->deep > 1)
			load_deep(c, x, m, at, i, there);
		else
			x->value[i] = lx_var(e->f, ls_load(e->f, e->f->buf.data[m.k].name, m, at,
							   (LType){c->p->dtype, 1}, there));
	}
}

static void end_step(Contract *c, Side *x, Lx k0)
{
	const uint32_t deep = x->o->deep;
	for (uint32_t i = 0; i < x->units * deep && !x->o->async; i++)
		ls_store(c->s->e.f, x->tile,
			 in_tile(c, x, stage_of(c, k0), plus(c, x->k[i / deep], i % deep),
				 x->row[i / deep]),
			 x->value[i], (Lx){0});
}

static void begin_both(Contract *c, Lx k0)
{
	begin_step(c, &c->a, k0);
	begin_step(c, &c->b, k0);
	if (c->p->a.async || c->p->b.async)
		ls_copy_commit(c->s->e.f);
}

static void end_both(Contract *c, Lx k0)
{
	end_step(c, &c->a, k0);
	end_step(c, &c->b, k0);
}

/* ---- products ---- */

/* Returns the position of a thread's element i in a side of the tile. Groups of four lie a share of
 * the tile apart, so that the vectors of neighbouring threads are neighbours. */
static Lx element(Contract *c, Lx thread, uint32_t i, uint32_t length, uint32_t own)
{
	return plus(c, times(c, thread, 4), (int64_t)(i / 4) * (length / (own / 4)) + i % 4);
}

static void load_elements(Contract *c, const Side *x, Lx stage, uint32_t k, Lx thread, uint32_t own,
			  Lx *out)
{
	LoopFn *f = c->s->e.f;
	const uint32_t lanes = SHARED_ALIGN / dtype_size(c->p->dtype);
	for (uint32_t i = 0; i < own; i += lanes) {
		Lx at = in_tile(c, x, stage, int_of(c, k), element(c, thread, i, x->length, own));
		Lx v = lx_var(f, ls_load(f, x == &c->a ? "a" : "b", x->tile, at,
					 (LType){c->p->dtype, lanes}, (Lx){0}));
		for (uint32_t l = 0; l < lanes; l++)
			out[i + l] = lx_lane(f, v, l);
	}
}

static void multiply(Contract *c, Lx k0)
{
	LoopFn *f = c->s->e.f;
	const GpuContractPlan *p = c->p;
	Lx a[MOST_TILE] = {0}, b[MOST_TILE] = {0}, stage = stage_of(c, k0);
	for (uint32_t k = 0; k < p->tile.depth; k++) {
		load_elements(c, &c->a, stage, k, c->trow, p->tile.trows, a);
		load_elements(c, &c->b, stage, k, c->tcol, p->tile.tcols, b);
		for (uint32_t i = 0; i < p->tile.trows; i++)
			for (uint32_t j = 0; j < p->tile.tcols; j++) {
				Lv acc = c->acc[i * p->tile.tcols + j];
				ls_set(f, acc, code_fma(c->s, a[i], b[j], lx_var(f, acc)));
			}
	}
}

/* ---- sums ---- */

static uint32_t elements(const Contract *c)
{
	return c->p->tile.trows * c->p->tile.tcols;
}

static void make_sums(Contract *c)
{
	LoopFn *f = c->s->e.f;
	Lx zero = lx_float(f, (LType){c->p->dtype, 1}, 0);
	for (uint32_t i = 0; i < elements(c); i++) {
		c->acc[i] = ls_var(f, "acc", zero);
		for (uint32_t l = 0; l < c->p->sums.n; l++)
			c->sum[l][i] = ls_var(f, "sum", zero);
	}
}

/* Adds the sums from[] to to[], and sets from[] to 0. */
static void carry(Contract *c, const Lv *to, const Lv *from)
{
	LoopFn *f = c->s->e.f;
	for (uint32_t i = 0; i < elements(c); i++) {
		ls_set(f, to[i], lx_add(f, lx_var(f, to[i]), lx_var(f, from[i])));
		ls_set(f, from[i], lx_float(f, (LType){c->p->dtype, 1}, 0));
	}
}

static const Lv *inner_of(const Contract *c, uint32_t level)
{
	return level + 1 == c->p->sums.n ? c->acc : c->sum[level + 1];
}

static Lx is_multiple(Contract *c, Lx x, int64_t of)
{
	LoopFn *f = c->s->e.f;
	const bool power = !(of & (of - 1));
	Lx left = power ? lx_sc(f, SC_and, (LType){DT_i64, 1}, (Lx[]){x, int_of(c, of - 1)}, 2)
			: rest(c, x, of);
	return lx_cmp(f, SC_eq, left, int_of(c, 0));
}

/* Cuts chains of additions behind step k0: those that are long enough become terms of the next
 * ones. */
static void cut_sums(Contract *c, Lx k0)
{
	LoopFn *f = c->s->e.f;
	const SumPlan *sums = &c->p->sums;
	for (uint32_t l = sums->n; l-- > 0;) {
		ls_if(f, is_multiple(c, plus(c, k0, c->p->tile.depth), sums->cut[l].rounds));
		carry(c, c->sum[l], inner_of(c, l));
	}
	for (uint32_t l = 0; l < sums->n; l++)
		ls_end(f);
}

static void end_sums(Contract *c)
{
	for (uint32_t l = c->p->sums.n; l-- > 0;)
		carry(c, c->sum[l], inner_of(c, l));
}

/* ---- the loop along k ---- */

static void run_steps(Contract *c)
{
	Eval *e = &c->s->e;
	LoopFn *f = e->f;
	const bool async = c->p->a.async || c->p->b.async;
	begin_both(c, c->start);
	end_both(c, c->start);
	Lx k0 = lx_var(f, ls_for(f, "k", c->start, c->steps, c->p->tile.depth));
	Lx next = eval_let(e, "next", plus(c, k0, c->p->tile.depth));
	if (async)
		ls_copy_wait(f, 0);
	ls_sync(f);
	begin_both(c, next);
	multiply(c, k0);
	cut_sums(c, k0);
	end_both(c, next);
	ls_end(f);
	if (async)
		ls_copy_wait(f, 0);
	end_sums(c);
}

/* ---- results ---- */

/* Computes the rest of the kernel at (row, column), whose sum is v. */
static void run_point(Contract *c, Lx row, Lx col, Lx v)
{
	Eval *e = &c->s->e;
	const uint32_t sum = kernel_first_contraction(e->k);
	const Stage *st = &e->k->stage.data[sum];
	block_decode(c->s, row, c->p->m.axis, c->p->m.n, NULL);
	block_decode(c->s, col, c->p->c.axis, c->p->c.n, NULL);
	v = eval_convert(e, v, dtype_compute(st->dtype));
	if (stage_stores(st))
		eval_store_at(e, sum, eval_address(e, sum), v);
	else
		eval_stage_value(e, sum, v);
	for (uint32_t i = 0; i < e->k->stage.n; i++)
		if (i != sum)
			block_store(c->s, i);
	eval_stage_over(e, sum);
}

/* Returns the number of a result among those of all members. */
static Lx number_of(Contract *c, Lx row, Lx col)
{
	LoopFn *f = c->s->e.f;
	Lx first = c->member.i ? lx_mul(f, c->member, c->a.count) : int_of(c, 0);
	return lx_add(f, lx_mul(f, lx_add(f, first, row), c->b.count), col);
}

/* Returns the temporary of the sums that a second phase reads. */
static uint32_t partial_of(const GpuContractPlan *p)
{
	return gpu_gathers(p);
}

/* Handles one result of the slice, if it exists. Loads its sum from shared memory, and computes the
 * rest of the kernel, or leaves the sum for the second phase. */
static void run_element(Contract *c, LMem slice, Lx at, Lx row, Lx col)
{
	Eval *e = &c->s->e;
	LoopFn *f = e->f;
	ls_if(f, lx_and(f, lx_cmp(f, SC_lt, row, c->a.count), lx_cmp(f, SC_lt, col, c->b.count)));
	Lx v = lx_var(f, ls_load(f, "sum", slice, at, (LType){c->p->dtype, 1}, (Lx){0}));
	if (c->part.i) {
		Lx place = lx_add(f, lx_mul(f, c->part, eval_size(e, c->p->grid.results)),
				  number_of(c, row, col));
		ls_store(f, eval_temp_memory(e, partial_of(c->p)), place, v, (Lx){0});
	} else {
		run_point(c, row, col, v);
	}
	ls_end(f);
}

/* Handles GPU_SLICE rows of each thread: their sums go through shared memory, so that neighbouring
 * threads have neighbouring columns. */
static void run_slice(Contract *c, LMem slice, uint32_t first)
{
	Eval *e = &c->s->e;
	LoopFn *f = e->f;
	const GpuContractPlan *p = c->p;
	const uint32_t down = p->tile.rows / p->tile.trows;
	for (uint32_t i = 0; i < GPU_SLICE; i++)
		for (uint32_t j = 0; j < p->tile.tcols; j++) {
			Lx line = plus(c, times(c, c->trow, GPU_SLICE), i),
			   col = element(c, c->tcol, j, p->tile.cols, p->tile.tcols);
			const Lv *from = p->sums.n ? c->sum[0] : c->acc;
			ls_store(f, slice, lx_add(f, times(c, line, p->tile.cols), col),
				 lx_var(f, from[(first + i) * p->tile.tcols + j]), (Lx){0});
		}
	ls_sync(f);
	Lx at = lx_var(f, ls_for(f, "at", block_thread(c->s),
				 int_of(c, (int64_t)down * GPU_SLICE * p->tile.cols), p->threads));
	Lx line = eval_let(e, "line", half(c, at, p->tile.cols)), thread = half(c, line, GPU_SLICE);
	Lx inside = plus(c, element(c, thread, first, p->tile.rows, p->tile.trows), 0);
	Lx row = eval_let(e, "row",
			  lx_add(f, c->a.first, lx_add(f, inside, rest(c, line, GPU_SLICE))));
	Lx col = eval_let(e, "col", lx_add(f, c->b.first, rest(c, at, p->tile.cols)));
	run_element(c, slice, at, row, col);
	ls_end(f);
}

static void run_results(Contract *c)
{
	LoopFn *f = c->s->e.f;
	const GpuContractPlan *p = c->p;
	LMem slice = ls_shared(f, "slice", p->dtype,
			       (uint64_t)p->tile.rows / p->tile.trows * GPU_SLICE * p->tile.cols);
	for (uint32_t i = 0; i < p->tile.trows; i += GPU_SLICE) {
		if (i)
			ls_sync(f);
		run_slice(c, slice, i);
	}
}

/* Finds the tile of the block, its member of the batch, and its part of k. */
static void find_tile(Contract *c, Lx *row, Lx *col)
{
	Eval *e = &c->s->e;
	const GpuContractPlan *p = c->p;
	Lx b = block_number(c->s), cols = eval_size(e, p->grid.col_tiles),
	   rows = eval_size(e, p->grid.row_tiles);
	c->start = int_of(c, 0);
	c->steps = eval_size(e, p->grid.steps);
	c->part = p->rest.apart ? int_of(c, 0) : (Lx){0};
	if (p->grid.per) {
		Lx splits = eval_size(e, p->grid.splits), per = int_of(c, p->grid.per);
		c->part = eval_let(e, "part", lx_mod(e->f, b, splits));
		b = eval_let(e, "tile", lx_div(e->f, b, splits));
		c->start = eval_let(e, "start", lx_mul(e->f, c->part, per));
		c->steps = eval_let(e, "end", lx_min(e->f, lx_add(e->f, c->start, per), c->steps));
	}
	*col = eval_let(e, "col", lx_mod(e->f, b, cols));
	*row = eval_let(e, "up", lx_div(e->f, b, cols));
	if (!p->batch.n)
		return;
	c->member = eval_let(e, "member", lx_div(e->f, *row, rows));
	*row = eval_let(e, "row", lx_mod(e->f, *row, rows));
	block_decode(c->s, c->member, p->batch.axis, p->batch.n, NULL);
}

/* Returns the number of the function's argument that is the buffer, or the temporary. */
static uint32_t argument_at(const Eval *e, int kind, uint32_t which)
{
	uint32_t k = 0;
	while (k < e->args.arg.n &&
	       ((int)e->args.arg.data[k].kind != kind || e->args.arg.data[k].k != which))
		k++;
	return k;
}

static uint32_t argument_of(const Eval *e, const GpuContractPlan *p, Kx load)
{
	const SchedArg from = p->nest->from[load.i];
	return argument_at(e, from.kind, from.k);
}

/* Describes the kernel to a library that computes it in one call, and adds the parameters for
 * that. */
static void tell_product(Eval *e, const GpuContractPlan *p)
{
	static const char *const name[PRODUCT_SIZES] = {
		"m",        "n",        "k",        "batch",     "a_stride",
		"b_stride", "c_stride", "a_member", "b_member",  "c_member",
		"a_first",  "b_first",  "c_first",  "bias_first"};
	LoopProduct *x = arena_dup(e->arena, &p->product->of, sizeof *x);
	x->a = argument_of(e, p, p->a.load);
	x->b = argument_of(e, p, p->b.load);
	x->c = p->rest.apart ? argument_at(e, ARG_TEMP, partial_of(p))
			     : argument_at(e, ARG_BUF,
					   e->k->stage.data[kernel_last_store(e->k)].store.buf.i);
	x->bias = p->product->bias.i ? argument_of(e, p, p->product->bias) : UINT32_MAX;
	x->param = e->args.param.n;
	for (uint32_t k = 0; k < PRODUCT_SIZES; k++) {
		array_push(e->arena, &e->args.param, p->product->size[k]);
		loop_param(e->f, name[k]);
	}
	e->f->product = x;
}

static void run_tiles(Code *s, const GpuContractPlan *p)
{
	Contract c = {.s = s, .p = p, .even = is_even(p)};
	Eval *e = &s->e;
	Lx row, col;
	block_begin(s, p->nest, p->threads);
	find_tile(&c, &row, &col);
	c.trow = eval_let(e, "down", half(&c, block_thread(s), p->tile.cols / p->tile.tcols));
	c.tcol = eval_let(e, "across", rest(&c, block_thread(s), p->tile.cols / p->tile.tcols));
	place_side(&c, &c.a, &p->a, &p->m, p->tile.rows, row);
	place_side(&c, &c.b, &p->b, &p->c, p->tile.cols, col);
	make_sums(&c);
	run_steps(&c);
	run_results(&c);
	if (p->product)
		tell_product(e, p);
	code_finish_phase(s, p->grid.nblock, p->cost);
}

/* ---- the second phase ---- */

/* Adds the sums of the thread's columns, from number `at` on, in the order of the blocks that have
 * left them. */
static void add_parts(Contract *c, Lx at, Lx *sum)
{
	Eval *e = &c->s->e;
	LoopFn *f = e->f;
	const GpuContractPlan *p = c->p;
	const LType one = {p->dtype, 1};
	LMem partial = eval_temp_memory(e, partial_of(p));
	const uint32_t most = SHARED_ALIGN / dtype_size(p->dtype),
		       lanes = p->rest.wide < most ? p->rest.wide : most;
	Lv to[GPU_WIDE];
	for (uint32_t k = 0; k < p->rest.wide; k++)
		to[k] = ls_var(f, "sum", lx_float(f, one, 0));
	block_align(c->s, partial, lanes * dtype_size(p->dtype));
	Lx part = lx_var(f, ls_for(f, "part", int_of(c, 0), eval_size(e, p->grid.splits), 1));
	Lx first = lx_add(f, lx_mul(f, part, eval_size(e, p->grid.results)), at);
	for (uint32_t k = 0; k < p->rest.wide; k += lanes) {
		Lx v = lx_var(f, ls_load(f, "partial", partial, plus(c, first, k),
					 (LType){p->dtype, lanes}, (Lx){0}));
		for (uint32_t i = 0; i < lanes; i++)
			ls_set(f, to[k + i],
			       lx_add(f, lx_var(f, to[k + i]), lanes > 1 ? lx_lane(f, v, i) : v));
	}
	ls_end(f);
	for (uint32_t k = 0; k < p->rest.wide; k++)
		sum[k] = lx_var(f, to[k]);
}

/* Returns the value of a stage in one column. */
static Lx value_of(Contract *c, uint32_t stage, Lx sum)
{
	Eval *e = &c->s->e;
	const Stage *st = &e->k->stage.data[stage];
	Lx v = eval_convert(
		e, stage == kernel_first_contraction(e->k) ? sum : eval_value(e, st->value),
		dtype_compute(st->dtype));
	if (!stage_stores(st))
		eval_stage_value(e, stage, v);
	return v;
}

/* Computes the rest of the kernel at several columns, whose axes are set to the first one: stage by
 * stage, and in each column by column. */
static void run_columns(Contract *c, const Lx *sum)
{
	Eval *e = &c->s->e;
	const GpuContractPlan *p = c->p;
	const uint32_t fast = p->c.axis[p->c.n - 1];
	const Lx x = e->at[fast];
	StageValue *result[GPU_WIDE];
	Lx value[GPU_WIDE];
	for (uint32_t i = 0; i < p->rest.nvector; i++)
		block_load_wide(c->s, p->rest.vector[i], fast, x, p->rest.wide);
	for (uint32_t k = 0; k < p->rest.wide; k++)
		result[k] = ARENA_ARRAY(e->arena, StageValue, e->k->stage.n);
	for (uint32_t i = 0; i < e->k->stage.n; i++) {
		for (uint32_t k = 0; k < p->rest.wide; k++) {
			eval_stages(e, result[k]);
			eval_at(e, fast, plus(c, x, k));
			value[k] = value_of(c, i, sum[k]);
		}
		if (stage_stores(&e->k->stage.data[i]))
			block_store_wide(c->s, i, fast, x, p->rest.wide, value);
	}
}

/* Writes the second phase: a thread for `wide` results adds what the blocks of their tile have
 * left, and computes the rest of the kernel. */
static void run_parts(Code *s, const GpuContractPlan *p)
{
	enum { THREADS = 256 };
	Contract c = {.s = s, .p = p};
	Eval *e = &s->e;
	const Cost *none = cost_number(p->nest->arena, 0);
	const uint32_t wide = p->rest.wide;
	Lx sum[GPU_WIDE];
	block_begin(s, p->nest, THREADS);
	LoopFn *f = e->f;
	Lx rows = eval_size(e, product(&c, &p->m)), cols = eval_size(e, product(&c, &p->c));
	Lx at = eval_let(
		e, "at",
		times(&c, lx_add(f, times(&c, block_number(s), THREADS), block_thread(s)), wide));
	ls_if(f, lx_cmp(f, SC_lt, at, eval_size(e, p->grid.results)));
	add_parts(&c, at, sum);
	Lx up = eval_let(e, "up", lx_div(f, at, cols)), row = up,
	   col = eval_let(e, "col", lx_mod(f, at, cols));
	if (p->batch.n) {
		row = eval_let(e, "row", lx_mod(f, up, rows));
		block_decode(s, lx_div(f, up, rows), p->batch.axis, p->batch.n, NULL);
	}
	if (wide > 1) {
		block_decode(s, row, p->m.axis, p->m.n, NULL);
		block_decode(s, col, p->c.axis, p->c.n, NULL);
		run_columns(&c, sum);
	} else {
		run_point(&c, row, col, sum[0]);
	}
	ls_end(f);
	code_finish_phase(
		s, sym_ceildiv(e->syms, p->grid.results, sym_int(e->syms, (int64_t)THREADS * wide)),
		(KernelCost){none, none});
}

/* ---- copies of operands ---- */

/* Writes the phase that copies an operand. A thread copies neighbours of a line, without
 * conversion. */
static void run_gather(Code *s, const GpuGather *g, Kx load)
{
	Eval *e = &s->e;
	int64_t by[MAX_AXES];
	block_begin(s, g->nest, GPU_GATHER_THREADS);
	LoopFn *f = e->f;
	SymTab *syms = e->syms;
	const Sym accesses = sym_ceildiv(syms, g->length, sym_int(syms, g->wide)),
		  all = sym_mul(syms, g->nline, accesses);
	for (uint32_t i = 0; i < g->line.n; i++)
		by[i] = i + 1 < g->line.n ? 1 : g->wide;
	Lx thread = lx_mul(f, block_number(s), lx_int(f, GPU_GATHER_THREADS));
	Lx t = eval_let(e, "access", lx_add(f, thread, block_thread(s))),
	   of_line = eval_size(e, accesses);
	ls_if(f, lx_cmp(f, SC_lt, t, eval_size(e, all)));
	Lx line = eval_let(e, "line", lx_div(f, t, of_line)),
	   at = eval_let(e, "at", lx_mod(f, t, of_line));
	block_decode(s, line, g->lines.axis, g->lines.n, NULL);
	block_decode(s, at, g->line.axis, g->line.n, by);
	LMem from = eval_load_memory(e, load), to = eval_temp_memory(e, g->temp);
	from.dtype = to.dtype = dtype_raw(from.dtype);
	if (g->wide > 1) {
		block_align(s, from, g->wide * dtype_size(from.dtype));
		block_align(s, to, g->wide * dtype_size(to.dtype));
	}
	Lv v = ls_load(f, "copied", from, eval_index(e, g->nest->offset[load.i]),
		       (LType){from.dtype, g->wide}, (Lx){0});
	Lx place = lx_add(f, lx_mul(f, line, eval_size(e, g->stride)),
			  lx_mul(f, at, lx_int(f, g->wide)));
	ls_store(f, to, place, lx_var(f, v), (Lx){0});
	ls_end(f);
	const Cost *none = cost_number(e->arena, 0);
	code_finish_phase(s, sym_ceildiv(syms, all, sym_int(syms, GPU_GATHER_THREADS)),
			  (KernelCost){none, none});
}

static void gather(Code *s, const GpuContractPlan *p, const GpuOperand *o)
{
	const GpuGather *g = o->gather;
	if (!g)
		return;
	const DType d = buf_of(s->e.l, p->nest->k->kx.data[o->load.i].buf)->dtype;
	const Sym size = sym_mul(p->nest->syms, g->nline, g->stride);
	code_temp(s, (SchedTemp){"matrix", d, size, s->out->phase.n, gpu_gathers(p)});
	run_gather(s, g, o->load);
}

void emit_gpu_contract(Code *s, const Plan *plan)
{
	const GpuContractPlan *p = plan->of.gpu_contract;
	SymTab *syms = p->nest->syms;
	const uint32_t tiles = gpu_gathers(p);
	gather(s, p, &p->a);
	gather(s, p, &p->b);
	if (gpu_two_phases(p))
		code_temp(s, (SchedTemp){"partial", p->dtype,
					 sym_mul(syms, p->grid.results, p->grid.splits), tiles,
					 tiles + 1});
	run_tiles(s, p);
	if (gpu_two_phases(p))
		run_parts(s, p);
}
