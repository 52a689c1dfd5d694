/* Register tiles of the products of attention. */
#include "codegen/cpu/attention/blocks.h"

enum {
	UNROLL = 4,
	MOST_STEPS = 128 /* of a chain of additions: for accuracy longer rows are summed in parts */
};

/* The operands of a register tile. Step k of row i is at row + i * pitch + k * stride of `a`; of
 * vector j at vector[j] + k * step of `b`. */
typedef struct {
	LMem a, b;
	Lx row, step, vector[MAX_TILE_VECTORS];
	int64_t pitch, stride;
	uint32_t nv;
} TileOperands;

typedef Lv TileSums[MAX_TILE_ROWS][MAX_TILE_VECTORS];

BlockOperand blocks_operand(Blocks *b, Kx x, uint32_t along, uint32_t across, const Panels *panels)
{
	const Nest *n = b->nest;
	Eval *e = &b->s->e;
	const Sym zero[2] = {sym_int(n->syms, 0), sym_int(n->syms, 0)},
		  var[2] = {n->var[along], n->var[across]};
	Sym coef;
	if (!nest_coef(n, n->offset[x.i], along, &coef))
		ctx_bug(n->l->ir->ctx, "kernel %s: keys or values are not linear", n->k->name);
	BlockOperand o = {.mem = eval_load_memory(e, x)};
	o.base = let(b, "base", eval_index(e, sym_subst(n->syms, n->offset[x.i], var, zero, 2)));
	o.step = eval_size(e, coef);
	o.vector = panels ? eval_size(e, panels->stride) : number(b, b->vector.lanes);
	return o;
}

/* Returns the type of what a row multiplies: elements, or groups. */
static LType step_type(const Blocks *b, uint32_t lanes)
{
	return (LType){micro_groups(b->row) ? DT_u32 : DT_f32, lanes};
}

static Lx add_product(Blocks *b, Lx x, Lx y, Lx sum)
{
	if (!micro_groups(b->row))
		return code_fma(&b->s->code, x, y, sum);
	return lx_sc(b->f, b->row->op, b->vector,
		     (Lx[]){b->row->turned ? y : x, b->row->turned ? x : y, sum}, 3);
}

static void multiply_step(Blocks *b, const TileOperands *o, Lx k, TileSums sum)
{
	LoopFn *f = b->f;
	const uint32_t lanes = b->vector.lanes;
	const LType one = step_type(b, 1), all = step_type(b, lanes);
	Lx y[MAX_TILE_VECTORS], at = lx_mul(f, k, o->step), from = times(b, k, o->stride);
	for (uint32_t j = 0; j < o->nv; j++) /* registers hold the vectors of one step */
		y[j] = lx_var(f, ls_load_in_order(f, "b", o->b, lx_add(f, o->vector[j], at), all,
						  (Lx){0}));
	for (uint32_t i = 0; i < b->tile.mr; i++) {
		Lx row = lx_add(f, lx_add(f, o->row, from), number(b, i * o->pitch));
		Lx x = lx_splat(f, lx_var(f, ls_load(f, "a", o->a, row, one, (Lx){0})), lanes);
		for (uint32_t j = 0; j < o->nv; j++)
			ls_set(f, sum[i][j], add_product(b, x, y[j], lx_var(f, sum[i][j])));
	}
}

/* Adds the products of so many steps. */
static void multiply(Blocks *b, const TileOperands *o, Lx steps, TileSums sum)
{
	LoopFn *f = b->f;
	int64_t n;
	const bool fixed = lx_is_int(f, steps, &n);
	Lx round = number(b, UNROLL),
	   end = fixed ? number(b, n - n % UNROLL)
		       : let(b, "end", lx_sub(f, steps, lx_mod(f, steps, round)));
	Lx k = lx_var(f, ls_for(f, "k", number(b, 0), end, UNROLL));
	for (uint32_t u = 0; u < UNROLL; u++)
		multiply_step(b, o, lx_add(f, k, number(b, u)), sum);
	ls_end(f);
	if (fixed && n % UNROLL == 0)
		return;
	k = lx_var(f, ls_for(f, "k", end, steps, 1));
	multiply_step(b, o, k, sum);
	ls_end(f);
}

/* Where a tile's sums lie: [row + i][column + j * lanes] of an array of that pitch. */
typedef struct {
	LMem mem;
	Lx base, row, column; /* base none: 0 */
	int64_t pitch;
} TilePlace;

static Lx place(const Blocks *b, const TilePlace *p, uint32_t i, uint32_t j)
{
	Lx at = lx_add(b->f, times(b, p->row, p->pitch), p->column);
	if (p->base.i)
		at = lx_add(b->f, p->base, at);
	return lx_add(b->f, at, number(b, i * p->pitch + (int64_t)j * b->vector.lanes));
}

/* Makes the sums variables: 0, or what is at a place. */
static void start_sums(Blocks *b, uint32_t nv, TileSums sum, const TilePlace *from)
{
	const LType t = b->vector;
	for (uint32_t i = 0; i < b->tile.mr; i++)
		for (uint32_t j = 0; j < nv; j++) {
			Lx x = from ? load(b, from->mem, place(b, from, i, j), t.lanes)
				    : lx_float(b->f, t, 0);
			sum[i][j] = ls_var(b->f, "sum", x);
		}
}

static void store_sums(Blocks *b, uint32_t nv, TileSums sum, const TilePlace *to, bool adds)
{
	for (uint32_t i = 0; i < b->tile.mr; i++)
		for (uint32_t j = 0; j < nv; j++) {
			Lx at = place(b, to, i, j), x = lx_var(b->f, sum[i][j]);
			if (adds)
				x = lx_add(b->f, load(b, to->mem, at, b->vector.lanes), x);
			ls_store(b->f, to->mem, at, x, (Lx){0});
		}
}

/* Sets where the tile's vectors of operand b begin: `stride` elements apart, the first being vector
 * number `first` behind `base`. */
static void find_vectors(Blocks *b, TileOperands *o, const char *name, Lx base, Lx first, Lx stride)
{
	LoopFn *f = b->f;
	for (uint32_t j = 0; j < o->nv; j++)
		o->vector[j] =
			let(b, name,
			    lx_add(f, base, lx_mul(f, lx_add(f, first, number(b, j)), stride)));
}

/* ---- scores ---- */

/* Adds the products of the steps [first, first + n) to the scores of nv vectors of keys, from the
 * key `key` of the block on; makes the scores, if first is 0. */
static void make_part(Blocks *b, const ScoreTiles *s, Lx key, uint32_t nv, int64_t first, int64_t n)
{
	LoopFn *f = b->f;
	TileSums sum;
	TileOperands o = {.a = s->rows,
			  .b = s->keys.mem,
			  .step = s->keys.step,
			  .pitch = s->depth,
			  .stride = b->row->group,
			  .nv = nv};
	Lx panel = lx_div(f, lx_add(f, b->from, key), number(b, b->vector.lanes)),
	   base = lx_add(f, s->keys.base, times(b, s->keys.step, first));
	find_vectors(b, &o, "panel", base, panel, s->keys.vector);
	Lx r = blocks_open_rows(b, b->rows.whole, b->tile.mr);
	o.row = let(b, "at", lx_add(f, times(b, r, s->depth), number(b, first * o.stride)));
	const TilePlace to = {.mem = s->to, .row = r, .column = key, .pitch = s->pitch};
	start_sums(b, nv, sum, NULL);
	multiply(b, &o, number(b, n), sum);
	store_sums(b, nv, sum, &to, first != 0);
	ls_end(f);
}

/* Makes the scores of nv vectors of keys, from the key `key` of the block on. */
static void make_scores(Blocks *b, const ScoreTiles *s, Lx key, uint32_t nv)
{
	for (int64_t first = 0; first < s->steps; first += MOST_STEPS)
		make_part(b, s, key, nv, first,
			  s->steps - first < MOST_STEPS ? s->steps - first : MOST_STEPS);
}

/* Goes by whole tiles, then vector by vector. */
void blocks_make_scores(Blocks *b, const ScoreTiles *s)
{
	LoopFn *f = b->f;
	if (b->frags.row) {
		blocks_make_scores_by_frags(b, s);
		return;
	}
	const int64_t lanes = b->vector.lanes, wide = b->tile.nv * lanes;
	Lx end = let(b, "end", lx_sub(f, b->count, lx_mod(f, b->count, number(b, wide))));
	Lx key = lx_var(f, ls_for(f, "key", number(b, 0), end, wide));
	make_scores(b, s, key, b->tile.nv);
	ls_end(f);
	if (b->most % wide == 0 && sym_divides(b->s->e.syms, wide, b->nest->extent[b->limits->key]))
		return;
	key = lx_var(f, ls_for(f, "key", end, b->count, lanes));
	make_scores(b, s, key, 1);
	ls_end(f);
}

/* ---- sums ---- */

/* Adds products with nv vectors of the operand, from the one at that column on. */
static void add_products(Blocks *b, const SumTiles *s, Lx column, uint32_t nv)
{
	LoopFn *f = b->f;
	TileSums sum;
	TileOperands o = {.a = s->weights,
			  .b = s->operand.mem,
			  .step = s->operand.step,
			  .pitch = s->pitch,
			  .stride = s->stride,
			  .nv = nv};
	Lx vector = lx_div(f, column, number(b, b->vector.lanes)),
	   base = lx_add(f, s->operand.base, lx_mul(f, s->first, s->operand.step));
	find_vectors(b, &o, "values", base, vector, s->operand.vector);
	Lx r = blocks_open_rows(b, s->end, b->tile.mr);
	o.row = let(b, "at", times(b, r, s->pitch));
	const TilePlace to = {
		.mem = s->to, .base = s->base, .row = r, .column = column, .pitch = s->width};
	start_sums(b, nv, sum, s->apart ? NULL : &to);
	multiply(b, &o, s->steps, sum);
	store_sums(b, nv, sum, &to, s->apart);
	ls_end(f);
}

void blocks_add_products(Blocks *b, const SumTiles *s)
{
	LoopFn *f = b->f;
	if (b->frags.row && s->stride == b->row->group) { /* groups of a sum lie side by side */
		blocks_add_products_by_frags(b, s);
		return;
	}
	const int64_t lanes = b->vector.lanes;
	const uint32_t nv = b->tile.nv, vectors = (uint32_t)(s->width / lanes), rest = vectors % nv;
	Lx column = lx_var(f, ls_for(f, "column", number(b, 0),
				     number(b, (int64_t)(vectors - rest) * lanes),
				     (int64_t)nv * lanes));
	add_products(b, s, column, nv);
	ls_end(f);
	if (rest)
		add_products(b, s, number(b, (int64_t)(vectors - rest) * lanes), rest);
}
