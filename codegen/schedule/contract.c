/* The schedule for contractions and convolutions: implicit matrix multiplication that reads its input in
 * place.
 *
 * Axes have roles: M appear in operand a only, N in b only, batch axes in both, K are summed. One N axis with
 * unit stride in the result runs over vector lanes. A task is a block of rows (flattened M) times a block of
 * columns; inside, register tiles of MR rows x NV vectors accumulate over K:
 *
 *   for each tile of columns:  for each tile of rows:
 *     for k:  b_j = B[k, n + j*lanes];  a_i = A[row_i, k];  acc_i_j = fma(a_i, b_j, acc_i_j)
 *     epilogue: the stages after the contraction, per row and vector
 *
 * Constant b is packed at compile time in panels: [N / panel][K...][panel]. A panel is as wide as the widest vector
 * of the target's family, so that all levels of a family read the same memory; tiles begin where panels do. Rows
 * past the end repeat the last one, so that every tile is whole; they store the same values again. */
#include "codegen/schedule/contract.h"

#include "ir/scalar/scalar.h"

/* ---- recognising ---- */

static uint64_t bit(uint32_t axis)
{
	return UINT64_C(1) << axis;
}

/* Linear in every axis, so that strides are all there is to know. */
static bool linear(const Sched *s, Sym offset)
{
	Sym coef;
	for (uint32_t a = 0; a < s->naxis; a++)
		if (s->var[a].i && !sched_coef(s, offset, a, &coef))
			return false;
	return true;
}

static Sym coef_of(const Sched *s, Sym offset, uint32_t axis)
{
	Sym coef = sym_int(s->syms, 0);
	sched_coef(s, offset, axis, &coef);
	return coef;
}

/* ---- operand b as a packed constant ---- */

/* Where an axis stands in the packed constant: (index of dimension `dim`) / divisor % extent. */
typedef struct {
	uint32_t dim;
	int64_t divisor;
} Digit;

/* The index of a dimension as a number whose digits are axes: idx = sum of axis * divisor. */
static bool find_digits(const Sched *s, Sym idx, uint32_t dim, Digit *digit)
{
	Sym rest = idx;
	int64_t product = 1;
	uint32_t left = 0;
	for (uint32_t a = 0; a < s->naxis; a++)
		left += s->var[a].i && sym_uses(s->syms, idx, s->var[a]);
	while (left) {
		uint32_t found = NO_AXIS;
		for (uint32_t a = 0; a < s->naxis && found == NO_AXIS; a++) {
			Sym coef, other;
			if (s->var[a].i && sym_uses(s->syms, rest, s->var[a]) &&
			    sym_linear(s->syms, rest, s->var[a], &coef, &other) &&
			    sym_is(s->syms, coef, product))
				found = a;
		}
		int64_t extent;
		if (found == NO_AXIS || (left > 1 && !sym_is_const(s->syms, s->extent[found], &extent)))
			return false;
		Sym coef;
		sym_linear(s->syms, rest, s->var[found], &coef, &rest);
		digit[found] = (Digit){dim, product};
		product = left > 1 ? product * extent : product;
		left--;
	}
	return sym_is(s->syms, rest, 0);
}

static void add_digit(Layout *out, const Digit *d, Sym extent)
{
	out->dim[out->n++] = (LayoutDim){d->dim, d->divisor, extent, extent};
}

/* Dimensions in the order: batch, N panels, K by decreasing stride of a, columns of a panel. */
static bool pack_layout(Contract *c, const KxData *b, int64_t width, Layout *out)
{
	Sched *s = c->s;
	Digit digit[MAX_AXES];
	for (uint32_t a = 0; a < s->naxis; a++)
		digit[a].dim = NO_AXIS;
	for (uint32_t d = 0; d < b->nidx; d++)
		if (!find_digits(s, b->idx[d], d, digit))
			return false;
	*out = (Layout){0};
	if (digit[c->n].dim == NO_AXIS || c->nbatch + c->nk + 2 > 2 * MAX_RANK)
		return false;
	for (uint32_t i = 0; i < c->nk; i++)
		if (digit[c->k[i]].dim == NO_AXIS)
			return false;
	/* a partial last panel would run into the next digit of the same dimension */
	for (uint32_t a = 0; a < s->naxis; a++)
		if (a != c->n && digit[a].dim == digit[c->n].dim && digit[a].divisor > digit[c->n].divisor &&
		    !sym_divides(s->syms, width, s->extent[c->n]))
			return false;
	for (uint32_t i = 0; i < c->nbatch; i++)
		if (digit[c->batch[i]].dim != NO_AXIS)
			add_digit(out, &digit[c->batch[i]], s->extent[c->batch[i]]);
	Digit panel = {digit[c->n].dim, digit[c->n].divisor * width};
	add_digit(out, &panel, sym_ceildiv(s->syms, s->extent[c->n], sym_int(s->syms, width)));
	for (uint32_t i = 0; i < c->nk; i++)
		add_digit(out, &digit[c->k[i]], s->extent[c->k[i]]);
	add_digit(out, &digit[c->n], sym_int(s->syms, width));
	return true;
}

/* The layout of a constant b in the widest panels that are possible, at least one vector; nothing for others. */
static void choose_panels(Contract *c, Layout *out)
{
	const KxData *b = &c->s->k->kx.data[c->b.i];
	uint32_t width = target_panel(c->s->target), lanes = target_width(c->s->target);
	if (buf_of(c->s->l, b->buf)->kind != BUF_CONST)
		return;
	while (width >= lanes && !pack_layout(c, b, width, out))
		width /= 2;
	c->panel_vectors = width / lanes;
	c->packed = c->panel_vectors > 0;
}

static void pack_constant(Contract *c, Layout layout)
{
	Sched *s = c->s;
	sched_repack(s, c->b, &layout);
	/* strides of everything but the columns of a panel, in elements */
	Sym stride = sym_int(s->syms, (int64_t)c->panel_vectors * s->lanes);
	c->offset_b = sym_int(s->syms, 0);
	for (uint32_t i = c->nk; i-- > 0;) {
		c->offset_b = sym_add(s->syms, c->offset_b, sym_mul(s->syms, s->var[c->k[i]], stride));
		stride = sym_mul(s->syms, stride, s->extent[c->k[i]]);
	}
	c->panel = stride;
	stride = sym_mul(s->syms, stride, layout.dim[layout.n - 2 - c->nk].extent);
	for (uint32_t i = c->nbatch; i-- > 0;) {
		if (!sched_axes(s, s->offset[c->b.i]) || !(sched_axes(s, s->offset[c->b.i]) & bit(c->batch[i])))
			continue;
		c->offset_b = sym_add(s->syms, c->offset_b, sym_mul(s->syms, s->var[c->batch[i]], stride));
		stride = sym_mul(s->syms, stride, s->extent[c->batch[i]]);
	}
	s->offset[c->b.i] = c->offset_b;
}

/* ---- axes ---- */

static void sort_k(Contract *c)
{
	Sched *s = c->s;
	for (uint32_t i = 1; i < c->nk; i++)
		for (uint32_t j = i; j > 0; j--) {
			int64_t x = sym_hint(s->syms, coef_of(s, s->offset[c->a.i], c->k[j]));
			int64_t y = sym_hint(s->syms, coef_of(s, s->offset[c->a.i], c->k[j - 1]));
			if (x <= y)
				break;
			uint32_t t = c->k[j];
			c->k[j] = c->k[j - 1];
			c->k[j - 1] = t;
		}
}

static void merge_k(Contract *c)
{
	Sched *s = c->s;
	for (uint32_t i = 0; i + 1 < c->nk;) {
		if (s->naxis < MAX_AXES && axes_can_merge(s, c->k[i], c->k[i + 1])) {
			c->k[i] = axes_merge(s, c->k[i], c->k[i + 1]);
			for (uint32_t j = i + 1; j + 1 < c->nk; j++)
				c->k[j] = c->k[j + 1];
			c->nk--;
		} else {
			i++;
		}
	}
}

/* Unit stride in the result first, then the longest. */
static uint32_t vector_axis(const Sched *s, uint64_t candidates)
{
	uint32_t best = NO_AXIS;
	Sym store = s->store[s->k->stage.n - 1];
	for (uint32_t a = 0; a < s->naxis; a++) {
		if (!s->var[a].i || !(candidates >> a & 1))
			continue;
		if (sched_coef_is(s, store, a, 1))
			return a;
		if (best == NO_AXIS || axes_hint(s, a) > axes_hint(s, best))
			best = a;
	}
	return best;
}

/* NULL, or why there are none. */
static const char *find_roles(Contract *c)
{
	Sched *s = c->s;
	const Stage *st = &s->k->stage.data[0];
	if (!linear(s, s->offset[c->a.i]))
		return "operand a is read at an index that is not linear";
	uint64_t ma = s->shape.in_a, mb = s->shape.in_b;
	c->n = vector_axis(s, mb & ~ma & s->outer);
	if (c->n == NO_AXIS) {
		Kx t = c->a;
		c->a = c->b;
		c->b = t;
		uint64_t m = ma;
		ma = mb;
		mb = m;
		c->n = vector_axis(s, mb & ~ma & s->outer);
	}
	if (c->n == NO_AXIS)
		return "no operand has a column of its own";
	if (!st->nred)
		return "one product each, and no sum";
	for (uint32_t i = 0; i < st->nred; i++)
		c->k[c->nk++] = st->red[i];
	for (uint32_t a = 0; a < s->naxis; a++) {
		if (!s->var[a].i || !(s->outer >> a & 1) || a == c->n)
			continue;
		if ((ma & ~mb) >> a & 1)
			c->m[c->nm++] = a;
		else
			c->batch[c->nbatch++] = a;
	}
	return NULL;
}

/* Row axes that are not contiguous stay apart; the order is that of their stride. */
static void sort_rows(Contract *c)
{
	Sched *s = c->s;
	Sym store = s->store[s->k->stage.n - 1];
	for (uint32_t i = 1; i < c->nm; i++)
		for (uint32_t j = i; j > 0 && sym_hint(s->syms, coef_of(s, store, c->m[j])) >
		                                      sym_hint(s->syms, coef_of(s, store, c->m[j - 1]));
		     j--) {
			uint32_t t = c->m[j];
			c->m[j] = c->m[j - 1];
			c->m[j - 1] = t;
		}
}

static Sym product(const Sched *s, const uint32_t *axis, uint32_t n)
{
	Sym p = sym_int(s->syms, 1);
	for (uint32_t i = 0; i < n; i++)
		p = sym_mul(s->syms, p, s->extent[axis[i]]);
	return p;
}

/* ---- tile and block sizes ---- */

/* Cycles per step of k of one tile: two fused multiply-adds and two loads a cycle, latency of four; part of the time that b
 * takes from L2. More than ten row pointers or all registers in use cost spills. */
static double tile_cycles(uint32_t mr, uint32_t nv)
{
	double fma = mr * nv / 2.0, load = (mr + nv) / 2.0 + 1;
	if (mr > 10 || mr * nv > 24)
		fma *= 1.1;
	double most = fma > load ? fma : load;
	return (most < 4 ? 4 : most) + nv * 0.5;
}

static uint32_t max_rows(const Contract *c, uint32_t nv)
{
	uint32_t regs = c->s->target->isa.nvreg;
	uint32_t room = regs > nv + 2 ? (regs - nv - 2) / nv : 1;
	uint32_t limit = regs > 16 ? 14 : 6;
	return room > limit ? limit : room ? room : 1;
}

static void choose_tile(Contract *c)
{
	Sched *s = c->s;
	int64_t rows = sym_hint(s->syms, c->rows), cols = axes_hint(s, c->n);
	int64_t vectors = (cols + s->lanes - 1) / s->lanes;
	bool fixed = sym_is_const(s->syms, c->rows, NULL);
	double best = 0;
	for (uint32_t nv = 1; nv <= 4; nv++) {
		if (nv > 1 && nv > vectors)
			break;
		if (c->packed && nv % c->panel_vectors && nv < vectors)
			continue;
		for (uint32_t mr = max_rows(c, nv); mr > 0; mr--) {
			if (fixed && (int64_t)mr > rows)
				continue;
			int64_t tiles = (rows + mr - 1) / mr, whole = vectors / nv, rest = vectors % nv;
			double cost = (double)whole * tile_cycles(mr, nv);
			if (rest)
				cost += tile_cycles(mr, (uint32_t)rest);
			cost *= (double)tiles;
			if (best == 0 || cost < best * 0.995) {
				best = cost;
				c->mr = mr;
				c->nv = nv;
			}
		}
	}
}

static int64_t ceil_div(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

/* Elements of a that a row brings along: windows of neighbouring rows overlap, so that the taps of a
 * convolution count half as much again, not nine times. Before axes are merged. */
static int64_t elements_per_row(const Contract *c)
{
	const Sched *s = c->s;
	const KxData *a = &s->k->kx.data[c->a.i];
	int64_t n = 1;
	bool windows = false;
	for (uint32_t i = 0; i < c->nk; i++) {
		bool window = false;
		for (uint32_t d = 0; d < a->nidx; d++)
			for (uint32_t m = 0; m < c->nm; m++)
				window |= sym_uses(s->syms, a->idx[d], s->var[c->k[i]]) &&
				          sym_uses(s->syms, a->idx[d], s->var[c->m[m]]);
		windows |= window;
		n *= window ? 1 : axes_hint(s, c->k[i]);
	}
	return windows ? n + n / 2 : n;
}

/* A task's block of a stays in 5/8 of L2 while the panels of b pass by. Too few tasks: first columns are
 * cut, which reads a again, then rows, which reads b again. */
static void choose_blocks(Contract *c)
{
	Sched *s = c->s;
	int64_t cols = axes_hint(s, c->n), k = 1, batch = 1, width = (int64_t)c->nv * s->lanes;
	for (uint32_t i = 0; i < c->nk; i++)
		k *= axes_hint(s, c->k[i]);
	for (uint32_t i = 0; i < c->nbatch; i++)
		batch *= axes_hint(s, c->batch[i]);
	int64_t most = s->target->machine.l2 / 8 * 5 / 4 / (c->row_elements ? c->row_elements : 1);
	most = most > MAX_BLOCK_ROWS ? MAX_BLOCK_ROWS : most;
	int64_t need = ceil_div(sym_hint(s->syms, c->rows), c->mr);
	need = need > 1 ? need : 1; /* nothing to do still takes a block of some size */
	int64_t tiles = most / c->mr < 1 ? 1 : most / c->mr;
	tiles = tiles > need ? need : ceil_div(need, ceil_div(need, tiles)); /* even blocks */
	int64_t col_tiles = sym_is_const(s->syms, s->extent[c->n], NULL) ? ceil_div(cols, width) : 1;
	col_tiles = col_tiles > 1 ? col_tiles : 1;
	int64_t per = col_tiles, tile_work = c->mr * k * width;
	while (per > 1 && batch * ceil_div(need, tiles) * ceil_div(col_tiles, per) < ENOUGH_BLOCKS &&
	       tiles * per * tile_work > SMALL_BLOCK)
		per = ceil_div(per, 2);
	while (tiles > 1 && batch * ceil_div(need, tiles) * ceil_div(col_tiles, per) < ENOUGH_BLOCKS &&
	       tiles * per * tile_work > SMALL_BLOCK)
		tiles = ceil_div(tiles, 2);
	c->block_rows = tiles * c->mr;
	c->block_cols = per < col_tiles ? per * width : 0;
}

/* ---- tasks ---- */

static Sym column_blocks(const Contract *c)
{
	SymTab *syms = c->s->syms;
	if (!c->block_cols)
		return sym_int(syms, 1);
	return sym_ceildiv(syms, c->s->extent[c->n], sym_int(syms, c->block_cols));
}

static Sym row_blocks(const Contract *c)
{
	return sym_ceildiv(c->s->syms, c->rows, sym_int(c->s->syms, c->block_rows));
}

static Lx take(Sched *s, Lx *task, Sym count)
{
	if (sym_is(s->syms, count, 1))
		return lx_int(s->f, 0);
	Lx n = sched_size(s, count), v = lx_mod(s->f, *task, n);
	*task = sched_let(s, "rest", lx_div(s->f, *task, n));
	return v;
}

static void decode_task(Contract *c)
{
	Sched *s = c->s;
	Lx task = lx_var(s->f, s->f->task);
	Lx row_block = take(s, &task, row_blocks(c));
	Lx col_block = take(s, &task, column_blocks(c));
	for (uint32_t i = c->nbatch; i-- > 0;)
		s->at[c->batch[i]] = sched_let(s, "batch", take(s, &task, s->extent[c->batch[i]]));
	c->row_lo = sched_let(s, "row_lo", lx_mul(s->f, row_block, lx_int(s->f, c->block_rows)));
	Lx hi = lx_add(s->f, c->row_lo, lx_int(s->f, c->block_rows));
	c->row_hi = sched_let(s, "row_hi", lx_min(s->f, hi, sched_size(s, c->rows)));
	Lx cols = sched_size(s, s->extent[c->n]);
	c->col_lo = lx_int(s->f, 0);
	c->col_hi = cols;
	if (c->block_cols) {
		c->col_lo = sched_let(s, "col_lo", lx_mul(s->f, col_block, lx_int(s->f, c->block_cols)));
		hi = lx_add(s->f, c->col_lo, lx_int(s->f, c->block_cols));
		c->col_hi = sched_let(s, "col_hi", lx_min(s->f, hi, cols));
	}
}

int64_t contract_k_bound(const Contract *c)
{
	int64_t total = 1;
	for (uint32_t i = 0; i < c->nk; i++) {
		int64_t lo, hi;
		sym_range(c->s->syms, c->s->extent[c->k[i]], &lo, &hi);
		if (hi > MAX_PANEL || total * hi > MAX_PANEL)
			return 0;
		total *= hi;
	}
	return total;
}

/* b is read where it is: with unit stride along n, or through a local panel of bounded size. */
static bool usable_in_place(const Contract *c)
{
	const Sched *s = c->s;
	int64_t k = contract_k_bound(c);
	return sched_coef_is(s, s->offset[c->b.i], c->n, 1) || (k && k * 4 * target_width(s->target) <= MAX_PANEL);
}

static bool is_empty(const Sched *s)
{
	for (uint32_t a = 0; a < s->naxis; a++)
		if (sym_is(s->syms, s->extent[a], 0))
			return true;
	return false;
}

const char *schedule_contract(Sched *s)
{
	Contract c = {.s = s, .a = s->shape.a, .b = s->shape.b};
	Layout panels = {0};
	if (s->shape.no_product)
		return s->shape.no_product;
	if (is_empty(s))
		return "it is empty";
	const char *why = find_roles(&c);
	if (why)
		return why;
	sort_k(&c);
	choose_panels(&c, &panels);
	if (!c.packed && !linear(s, s->offset[c.b.i]))
		return "operand b is read at an index that is not linear";
	if (!c.packed && !usable_in_place(&c))
		return "the columns of operand b are apart, and its panels may be larger than a local array";
	s->lanes = target_width(s->target);
	s->vaxis = c.n;
	if (c.packed)
		pack_constant(&c, panels);
	c.row_elements = elements_per_row(&c);
	contract_find_windows(&c);
	merge_k(&c);
	axes_merge_outer(s);
	contract_after_merge(&c);
	c.offset_b = s->offset[c.b.i];
	c.transpose = !c.packed && !sched_coef_is(s, c.offset_b, c.n, 1);
	sort_rows(&c);
	c.rows = product(s, c.m, c.nm);
	choose_tile(&c);
	contract_keep_windows(&c);
	choose_blocks(&c);
	Sym ntasks = sym_mul(s->syms, row_blocks(&c), column_blocks(&c));
	for (uint32_t i = 0; i < c.nbatch; i++)
		ntasks = sym_mul(s->syms, ntasks, s->extent[c.batch[i]]);
	decode_task(&c);
	contract_block(&c);
	s->out->algorithm = arena_printf(
	        s->arena, "%s %ux%u tile, %lld-row blocks%s%s", c.packed ? "gemm, packed b," : "gemm, b in place,",
	        c.mr, c.nv * s->lanes, (long long)c.block_rows, c.block_cols ? ", column blocks" : "",
	        c.nwindow ? ", borders left out" : "");
	s->out->why = c.packed      ? "b is a constant: its panels are packed before"
	              : c.transpose ? "the columns of b are apart: each panel is gathered"
	                            : "the columns of b are neighbours";
	sched_finish_phase(s, ntasks, s->cost);
	return NULL;
}

void contract_after_merge(Contract *c)
{
	Sched *s = c->s;
	uint64_t ma = sched_axes(s, s->offset[c->a.i]), mb = sched_axes(s, s->offset[c->b.i]);
	if (!s->var[c->n].i)
		c->n = s->vaxis = vector_axis(s, mb & ~ma & s->outer);
	c->nm = c->nbatch = 0;
	for (uint32_t a = 0; a < s->naxis; a++) {
		if (!s->var[a].i || !(s->outer >> a & 1) || a == c->n)
			continue;
		if ((ma & ~mb) >> a & 1)
			c->m[c->nm++] = a;
		else
			c->batch[c->nbatch++] = a;
	}
}
