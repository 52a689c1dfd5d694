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
 * of the target's family, so that all levels of a family read the same memory; tiles begin where panels do. Another b whose
 * columns are apart is gathered or copied into panels, where that is faster than sums along k (contract_copy.c). Rows
 * past the end repeat the last one, so that every tile is whole; they store the same values again. */
#include "codegen/schedule/contract.h"
#include "codegen/schedule/tuning.h"

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
static bool pack_layout(const Sched *s, const ContractAxes *x, const KxData *b, int64_t width, Layout *out)
{
	Digit digit[MAX_AXES];
	for (uint32_t a = 0; a < s->naxis; a++)
		digit[a].dim = NO_AXIS;
	for (uint32_t d = 0; d < b->nidx; d++)
		if (!find_digits(s, b->idx[d], d, digit))
			return false;
	*out = (Layout){0};
	if (digit[x->n].dim == NO_AXIS || x->nbatch + x->nk + 2 > 2 * MAX_RANK)
		return false;
	for (uint32_t i = 0; i < x->nk; i++)
		if (digit[x->k[i]].dim == NO_AXIS)
			return false;
	/* a partial last panel would run into the next digit of the same dimension */
	for (uint32_t a = 0; a < s->naxis; a++)
		if (a != x->n && digit[a].dim == digit[x->n].dim && digit[a].divisor > digit[x->n].divisor &&
		    !sym_divides(s->syms, width, s->extent[x->n]))
			return false;
	for (uint32_t i = 0; i < x->nbatch; i++)
		if (digit[x->batch[i]].dim != NO_AXIS)
			add_digit(out, &digit[x->batch[i]], s->extent[x->batch[i]]);
	Digit panel = {digit[x->n].dim, digit[x->n].divisor * width};
	add_digit(out, &panel, sym_ceildiv(s->syms, s->extent[x->n], sym_int(s->syms, width)));
	for (uint32_t i = 0; i < x->nk; i++)
		add_digit(out, &digit[x->k[i]], s->extent[x->k[i]]);
	add_digit(out, &digit[x->n], sym_int(s->syms, width));
	return true;
}

/* A constant in the widest panels that are possible, at least one vector; 0 for others, and where it is stored otherwise. Returns vectors side by side. */
static uint32_t choose_panels(const Sched *s, Kx load, const ContractAxes *x, Layout *out)
{
	const KxData *b = &s->k->kx.data[load.i];
	uint32_t width = target_panel(s->target), lanes = target_width(s->target);
	if (buf_of(s->l, b->buf)->kind != BUF_CONST)
		return 0;
	while (width >= lanes && !(pack_layout(s, x, b, width, out) && sched_may_repack(s, load, out)))
		width /= 2;
	return width / lanes;
}

/* Strides of everything but the columns of a panel, in elements. */
static void place_panels(const Sched *s, Kx load, const ContractAxes *x, OperandB *b)
{
	Sym stride = sym_int(s->syms, (int64_t)b->vectors * target_width(s->target));
	uint64_t axes = sched_axes(s, s->offset[load.i]);
	b->offset = sym_int(s->syms, 0);
	for (uint32_t i = x->nk; i-- > 0;) {
		b->offset = sym_add(s->syms, b->offset, sym_mul(s->syms, s->var[x->k[i]], stride));
		stride = sym_mul(s->syms, stride, s->extent[x->k[i]]);
	}
	b->panel = stride;
	stride = sym_mul(s->syms, stride, sym_ceildiv(s->syms, s->extent[x->n], sym_int(s->syms, (int64_t)b->vectors * target_width(s->target))));
	for (uint32_t i = x->nbatch; i-- > 0;) {
		if (!(axes & bit(x->batch[i])))
			continue;
		b->offset = sym_add(s->syms, b->offset, sym_mul(s->syms, s->var[x->batch[i]], stride));
		stride = sym_mul(s->syms, stride, s->extent[x->batch[i]]);
	}
}

int64_t contract_k_bound(const Sched *s, const ContractAxes *x)
{
	int64_t total = 1;
	for (uint32_t i = 0; i < x->nk; i++) {
		int64_t lo, hi;
		sym_range(s->syms, s->extent[x->k[i]], &lo, &hi);
		if (hi > MAX_PANEL || total * hi > MAX_PANEL)
			return 0;
		total *= hi;
	}
	return total;
}

/* Of b: columns and summed, in all of the batch. */
static double elements_of_b(const Sched *s, const ContractAxes *x)
{
	double n = (double)axes_hint(s, x->n);
	for (uint32_t i = 0; i < x->nk; i++)
		n *= (double)axes_hint(s, x->k[i]);
	for (uint32_t i = 0; i < x->nbatch; i++)
		n *= (double)axes_hint(s, x->batch[i]);
	return n;
}

/* Than gathering each panel once: a phase has its price. */
static bool copying_is_cheaper(const Sched *s, Kx load, const ContractAxes *x)
{
	double elements = elements_of_b(s, x);
	double saved = tuning_gathered_cycles(s->target, 0, elements) -
	               tuning_copied_cycles(s->target, 0, elements, contract_turned_axis(s, load, x) != NO_AXIS);
	return saved * elements / target_width(s->target) > s->target->machine.phase;
}

/* NULL, or why b cannot be read. Where it is: with unit stride along n, or through a local panel of bounded size, or a copy. */
static const char *choose_b(const Sched *s, Kx load, const ContractAxes *x, OperandB *b)
{
	*b = (OperandB){.access = B_PACKED, .offset = s->offset[load.i]};
	b->vectors = choose_panels(s, load, x, &b->layout);
	if (b->vectors) {
		place_panels(s, load, x, b);
		return NULL;
	}
	if (!linear(s, b->offset))
		return "operand b is read at an index that is not linear";
	int64_t k = contract_k_bound(s, x);
	b->access = sched_coef_is(s, b->offset, x->n, 1) ? B_IN_PLACE : B_GATHERED;
	bool small = k && k * 4 * target_width(s->target) <= MAX_PANEL;
	if (b->access == B_GATHERED && !small && target_width(s->target) == 1)
		return "the columns of operand b are apart, and its panels may be larger than a local array";
	if (b->access == B_GATHERED && target_width(s->target) > 1 && (!small || copying_is_cheaper(s, load, x))) {
		b->access = B_COPIED;
		b->vectors = 1; /* columns past whole tiles of a symbolic number are done vector by vector */
		place_panels(s, load, x, b);
	}
	return NULL;
}

/* ---- axes ---- */

/* Largest stride in this offset first. */
static void sort_axes(const Sched *s, Sym offset, uint32_t *axis, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		for (uint32_t j = i; j > 0 && sym_hint(s->syms, coef_of(s, offset, axis[j])) >
		                                      sym_hint(s->syms, coef_of(s, offset, axis[j - 1]));
		     j--) {
			uint32_t t = axis[j];
			axis[j] = axis[j - 1];
			axis[j - 1] = t;
		}
}

static void merge_k(Sched *s, ContractAxes *x)
{
	for (uint32_t i = 0; i + 1 < x->nk;) {
		if (s->naxis < MAX_AXES && axes_can_merge(s, x->k[i], x->k[i + 1])) {
			x->k[i] = axes_merge(s, x->k[i], x->k[i + 1]);
			for (uint32_t j = i + 1; j + 1 < x->nk; j++)
				x->k[j] = x->k[j + 1];
			x->nk--;
		} else {
			i++;
		}
	}
}

/* Unit stride in the result first, where it is a vector's length or no other is longer; then the longest. */
static uint32_t vector_axis(const Sched *s, uint64_t candidates)
{
	uint32_t best = NO_AXIS;
	Sym store = s->store[s->k->stage.n - 1];
	for (uint32_t a = 0; a < s->naxis; a++) {
		if (!s->var[a].i || !(candidates >> a & 1))
			continue;
		if (sched_coef_is(s, store, a, 1) && axes_hint(s, a) >= (int64_t)target_width(s->target))
			return a;
		if (best == NO_AXIS || axes_hint(s, a) > axes_hint(s, best) || (axes_hint(s, a) == axes_hint(s, best) && sched_coef_is(s, store, a, 1)))
			best = a;
	}
	return best;
}

/* Rows of a and batch axes, but for the column n. */
static void divide_axes(const Sched *s, uint64_t in_a, uint64_t in_b, ContractAxes *x)
{
	x->nm = x->nbatch = 0;
	for (uint32_t a = 0; a < s->naxis; a++) {
		if (!s->var[a].i || !(s->outer >> a & 1) || a == x->n)
			continue;
		if ((in_a & ~in_b) >> a & 1)
			x->m[x->nm++] = a;
		else
			x->batch[x->nbatch++] = a;
	}
}

/* The operands, b the one with columns, and their axes. NULL, or why there are none. */
static const char *find_axes(const Sched *s, Kx *a, Kx *b, ContractAxes *x)
{
	const Stage *st = &s->k->stage.data[0];
	uint64_t in_a = s->shape.in_a, in_b = s->shape.in_b;
	*x = (ContractAxes){.n = vector_axis(s, shape_columns(&s->shape))};
	*a = s->shape.a;
	*b = s->shape.b;
	if (!linear(s, s->offset[a->i]))
		return "operand a is read at an index that is not linear";
	if (x->n == NO_AXIS) {
		*a = s->shape.b;
		*b = s->shape.a;
		in_a = s->shape.in_b;
		in_b = s->shape.in_a;
		x->n = vector_axis(s, shape_rows(&s->shape));
	}
	if (x->n == NO_AXIS)
		return "no operand has a column of its own";
	if (!st->nred)
		return "one product each, and no sum";
	for (uint32_t i = 0; i < st->nred; i++)
		x->k[x->nk++] = st->red[i];
	divide_axes(s, in_a, in_b, x);
	sort_axes(s, s->offset[a->i], x->k, x->nk);
	return NULL;
}

/* The same after contiguous axes have been merged: outer ones, and summed ones that are neighbours. Row axes that are not
 * contiguous stay apart; the order is that of their stride. */
static ContractAxes merge_axes(Sched *s, Kx a, Kx b, const ContractAxes *before)
{
	ContractAxes x = *before;
	merge_k(s, &x);
	/* columns of packed panels are not in b's offset, as if it did not have them */
	uint64_t column = sym_uses(s->syms, s->offset[b.i], s->var[x.n]) ? 0 : bit(x.n);
	s->outer &= ~column;
	axes_merge_outer(s);
	if (column) {
		s->outer |= column;
		sched_find_deps(s);
	}
	uint64_t in_a = sched_axes(s, s->offset[a.i]), in_b = sched_axes(s, s->offset[b.i]);
	if (!s->var[x.n].i)
		x.n = vector_axis(s, in_b & ~in_a & s->outer);
	divide_axes(s, in_a, in_b, &x);
	sort_axes(s, s->store[s->k->stage.n - 1], x.m, x.nm);
	return x;
}

static Sym product(const Sched *s, const uint32_t *axis, uint32_t n)
{
	Sym p = sym_int(s->syms, 1);
	for (uint32_t i = 0; i < n; i++)
		p = sym_mul(s->syms, p, s->extent[axis[i]]);
	return p;
}

/* ---- tile and block sizes ---- */

static TileSize choose_tile(const Sched *s, const ContractAxes *x, const OperandB *b)
{
	Sym m = product(s, x->m, x->nm);
	int64_t rows = sym_hint(s->syms, m), cols = axes_hint(s, x->n);
	int64_t vectors = (cols + s->lanes - 1) / s->lanes;
	bool fixed = sym_is_const(s->syms, m, NULL);
	double best = 0;
	TileSize tile = {0};
	for (uint32_t nv = 1; nv <= 4; nv++) {
		if (nv > 1 && nv > vectors)
			break;
		if (has_panels(b) && nv % b->vectors && nv < vectors)
			continue;
		for (uint32_t mr = tuning_tile_rows(&s->target->isa, nv); mr > 0; mr--) {
			if (fixed && (int64_t)mr > rows)
				continue;
			int64_t tiles = (rows + mr - 1) / mr, whole = vectors / nv, rest = vectors % nv;
			double cost = (double)whole * tuning_tile_cycles(s->target, mr, nv);
			if (rest)
				cost += tuning_tile_cycles(s->target, mr, (uint32_t)rest);
			cost *= (double)tiles;
			if (best == 0 || cost < best * 0.995) {
				best = cost;
				tile = (TileSize){mr, nv};
			}
		}
	}
	return tile;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

/* Elements of a that a row brings along: windows of neighbouring rows overlap, so that the taps of a
 * convolution count half as much again, not nine times. Before axes are merged. */
static int64_t elements_per_row(const Sched *s, Kx load, const ContractAxes *x)
{
	const KxData *a = &s->k->kx.data[load.i];
	int64_t n = 1;
	bool windows = false;
	for (uint32_t i = 0; i < x->nk; i++) {
		bool window = false;
		for (uint32_t d = 0; d < a->nidx; d++)
			for (uint32_t m = 0; m < x->nm; m++)
				window |= sym_uses(s->syms, a->idx[d], s->var[x->k[i]]) &&
				          sym_uses(s->syms, a->idx[d], s->var[x->m[m]]);
		windows |= window;
		n *= window ? 1 : axes_hint(s, x->k[i]);
	}
	return windows ? n + n / 2 : n;
}

/* What cutting a contraction into tasks goes by; work is counted in multiply-adds. */
typedef struct {
	int64_t row_tiles, col_tiles, batch;
	double tile;   /* work of one */
	double stream; /* work as long as reading b for one tile of columns takes, where that is done once; else 0 */
	double again;  /* work as long as reading all of b once more takes */
} Cut;

static Cut find_cut(const Sched *s, const ContractAxes *x, TileSize tile, const OperandB *b)
{
	int64_t k = 1, cols = axes_hint(s, x->n), width = (int64_t)tile.nv * s->lanes;
	Cut c = {.batch = 1};
	for (uint32_t i = 0; i < x->nk; i++)
		k *= axes_hint(s, x->k[i]);
	for (uint32_t i = 0; i < x->nbatch; i++)
		c.batch *= axes_hint(s, x->batch[i]);
	c.row_tiles = ceil_div(sym_hint(s->syms, product(s, x->m, x->nm)), tile.mr);
	c.row_tiles = c.row_tiles > 1 ? c.row_tiles : 1; /* nothing to do still takes a block of some size */
	c.col_tiles = sym_is_const(s->syms, s->extent[x->n], NULL) ? ceil_div(cols, width) : 1;
	c.col_tiles = c.col_tiles > 1 ? c.col_tiles : 1;
	c.tile = (double)(tile.mr * k * width);
	double panel = (double)(k * width * 4), all = panel * (double)(c.col_tiles * c.batch), l2 = s->target->machine.l2;
	/* Until a constant is read again, by the next run, all others are. */
	double passed = b->access == B_PACKED && all <= l2 ? l2 + 1 : all;
	c.stream = c.row_tiles == 1 ? tuning_stream_work(s->target, panel, passed) : 0;
	if (b->access == B_GATHERED)
		c.again = tuning_gather_work(s->target, (double)(k * cols));
	else
		c.again = tuning_stream_work(s->target, (double)(k * cols * 4), (double)(2 * k * cols * 4)); /* a and results pass */
	return c;
}

/* Of a block of so many tiles of rows, and of columns. Where all rows are one tile b is read once, and that may take longer
 * than the products with it. */
static double block_work(const Cut *c, int64_t tiles, int64_t per)
{
	double products = c->tile * (double)(tiles * per), reading = c->stream * (double)per;
	return products > reading ? products : reading;
}

/* Rows, as long as reading b again for each block costs little beside its products: what another phase reads by rows lies in
 * the cache of the processor that wrote it, then, and no two processors write parts of one line. */
static bool cuts_rows(const Cut *c, int64_t tiles, int64_t per)
{
	return tiles > 1 && (per <= 1 || 4 * c->again <= c->tile * (double)(ceil_div(tiles, 2) * c->col_tiles));
}

/* A task's block of a stays in L2 while the panels of b pass by. Too few tasks: rows are cut, which reads b again, or columns,
 * which reads a again. */
static BlockSize choose_block(const Sched *s, const ContractAxes *x, TileSize tile, const OperandB *b, int64_t row_elements)
{
	const Machine *machine = &s->target->machine;
	const Cut c = find_cut(s, x, tile, b);
	int64_t enough = tuning_tasks(machine) / 2, width = (int64_t)tile.nv * s->lanes;
	double small = tuning_block_work(s->target);
	int64_t most = tuning_block_elements(machine) / (row_elements ? row_elements : 1);
	most = most > MAX_BLOCK_ROWS ? MAX_BLOCK_ROWS : most;
	int64_t tiles = most / tile.mr < 1 ? 1 : most / tile.mr, per = c.col_tiles;
	tiles = tiles > c.row_tiles ? c.row_tiles : ceil_div(c.row_tiles, ceil_div(c.row_tiles, tiles)); /* even blocks */
	while ((tiles > 1 || per > 1) && block_work(&c, tiles, per) > small &&
	       c.batch * ceil_div(c.row_tiles, tiles) * ceil_div(c.col_tiles, per) < enough)
		if (cuts_rows(&c, tiles, per))
			tiles = ceil_div(tiles, 2);
		else
			per = ceil_div(per, 2);
	return (BlockSize){.rows = tiles * tile.mr, .cols = per < c.col_tiles ? per * width : 0};
}

/* ---- tasks ---- */

static Sym column_blocks(const Sched *s, const Contract *c)
{
	if (!c->block.cols)
		return sym_int(s->syms, 1);
	return sym_ceildiv(s->syms, s->extent[c->axes.n], sym_int(s->syms, c->block.cols));
}

static Sym row_blocks(const Sched *s, const Contract *c)
{
	return sym_ceildiv(s->syms, c->rows, sym_int(s->syms, c->block.rows));
}

static Sym count_tasks(const Sched *s, const Contract *c)
{
	Sym blocks = sym_mul(s->syms, row_blocks(s, c), column_blocks(s, c));
	for (uint32_t i = 0; i < c->axes.nbatch; i++)
		blocks = sym_mul(s->syms, blocks, s->extent[c->axes.batch[i]]);
	return blocks;
}

static Lx take(Sched *s, Lx *task, Sym count)
{
	if (sym_is(s->syms, count, 1))
		return lx_int(s->f, 0);
	Lx n = sched_size(s, count), v = lx_mod(s->f, *task, n);
	*task = sched_let(s, "rest", lx_div(s->f, *task, n));
	return v;
}

/* The block of the task. */
static ContractCode decode_task(Sched *s, const Contract *p)
{
	ContractCode c = {.s = s, .p = p};
	Lx task = lx_var(s->f, s->f->task);
	Lx row_block = take(s, &task, row_blocks(s, p));
	Lx col_block = take(s, &task, column_blocks(s, p));
	for (uint32_t i = p->axes.nbatch; i-- > 0;)
		s->at[p->axes.batch[i]] = sched_let(s, "batch", take(s, &task, s->extent[p->axes.batch[i]]));
	c.row_lo = sched_let(s, "row_lo", lx_mul(s->f, row_block, lx_int(s->f, p->block.rows)));
	Lx hi = lx_add(s->f, c.row_lo, lx_int(s->f, p->block.rows));
	c.row_hi = sched_let(s, "row_hi", lx_min(s->f, hi, sched_size(s, p->rows)));
	Lx cols = sched_size(s, s->extent[p->axes.n]);
	c.col_lo = lx_int(s->f, 0);
	c.col_hi = cols;
	if (p->block.cols) {
		c.col_lo = sched_let(s, "col_lo", lx_mul(s->f, col_block, lx_int(s->f, p->block.cols)));
		hi = lx_add(s->f, c.col_lo, lx_int(s->f, p->block.cols));
		c.col_hi = sched_let(s, "col_hi", lx_min(s->f, hi, cols));
	}
	return c;
}

/* ---- the schedule ---- */

/* Cycles of a step of k, of all rows and a vector of columns, with what it takes to make panels. */
static double panel_cycles(const Sched *s, const Contract *c, double rows)
{
	double elements = elements_of_b(s, &c->axes);
	if (c->operand.access == B_GATHERED)
		return tuning_gathered_cycles(s->target, rows, elements);
	return tuning_copied_cycles(s->target, rows, elements, contract_turned_axis(s, c->b, &c->axes) != NO_AXIS);
}

/* Columns of b are apart, and rows are so few that panels of b do not pay: NULL, or why not. Steps of k may be neighbours in both
 * operands, and else b is gathered anew for each row. Without vectors panels save loads only, and take memory that small targets
 * do not have. */
static const char *panels_do_not_pay(const Sched *s, const Contract *c)
{
	const ContractAxes *x = &c->axes;
	if (c->operand.access != B_GATHERED && c->operand.access != B_COPIED)
		return NULL;
	double rows = (double)sym_hint(s->syms, product(s, x->m, x->nm)), elements = elements_of_b(s, x), cycles = panel_cycles(s, c, rows);
	for (uint32_t i = 0; i < x->nk; i++) {
		double k = (double)axes_hint(s, x->k[i]);
		bool near = sched_coef_is(s, s->offset[c->a.i], x->k[i], 1) && sched_coef_is(s, s->offset[c->b.i], x->k[i], 1);
		if (near && (target_width(s->target) == 1 || tuning_summed_cycles(s->target, rows, elements, k) < cycles))
			return "columns of b are apart and rows are few: sums along k take less time than gathering panels";
	}
	if (c->operand.access == B_COPIED && rows * tuning_gathered_cycles(s->target, 1, elements) < cycles)
		return "columns of b are apart and rows are few: gathering them for each takes less time than panels";
	return NULL;
}

static bool is_empty(const Sched *s)
{
	for (uint32_t a = 0; a < s->naxis; a++)
		if (sym_is(s->syms, s->extent[a], 0))
			return true;
	return false;
}

/* What can be told of the kernel as it is. NULL, or why it is not taken. */
static const char *recognise(const Sched *s, Contract *c)
{
	if (s->shape.no_product)
		return s->shape.no_product;
	if (is_empty(s))
		return "it is empty";
	const char *why = find_axes(s, &c->a, &c->b, &c->axes);
	why = why ? why : choose_b(s, c->b, &c->axes, &c->operand);
	return why ? why : panels_do_not_pay(s, c);
}

const char *contract_wants(const Sched *s, LayoutWant *want)
{
	Contract c = {0};
	const char *why = recognise(s, &c);
	if (!why && c.operand.access == B_PACKED)
		*want = (LayoutWant){c.b, c.operand.layout};
	return why;
}

/* Axes are merged; tiles and blocks follow from those that are left. */
static void decide(Sched *s, Contract *c)
{
	const ContractAxes before = c->axes;
	int64_t row_elements = elements_per_row(s, c->a, &before);
	Windows windows = contract_find_windows(s, c->a, &before);
	s->lanes = target_width(s->target);
	s->vaxis = before.n;
	if (c->operand.access == B_COPIED)
		c->operand.copy = contract_copy(s, c);
	if (c->operand.access == B_PACKED)
		sched_repack(s, c->b, &c->operand.layout);
	if (has_panels(&c->operand))
		s->offset[c->b.i] = c->operand.offset;
	c->axes = merge_axes(s, c->a, c->b, &before);
	s->vaxis = c->axes.n;
	c->operand.offset = s->offset[c->b.i];
	if (!has_panels(&c->operand))
		c->operand.access = sched_coef_is(s, c->operand.offset, c->axes.n, 1) ? B_IN_PLACE : B_GATHERED;
	c->rows = product(s, c->axes.m, c->axes.nm);
	c->tile = choose_tile(s, &c->axes, &c->operand);
	c->windows = contract_useful_windows(s, &c->axes, c->tile, &windows);
	c->block = choose_block(s, &c->axes, c->tile, &c->operand, row_elements);
}

const char *schedule_contract(Sched *s)
{
	static const char *const why_so[] = {
		[B_IN_PLACE] = "the columns of b are neighbours",
		[B_GATHERED] = "the columns of b are apart: each panel is gathered",
		[B_PACKED] = "b is a constant: its panels are packed before",
		[B_COPIED] = "the columns of b are apart: panels are copied in a phase before",
	};
	Contract c = {0};
	const char *why = recognise(s, &c);
	if (why)
		return why;
	decide(s, &c);
	ContractCode code = decode_task(s, &c);
	contract_block(&code);
	s->out->algorithm = arena_printf(
	        s->arena, "%s %ux%u tile, %lld-row blocks%s%s",
	        c.operand.access == B_PACKED ? "gemm, packed b," : c.operand.access == B_COPIED ? "gemm, copied b," : "gemm, b in place,", c.tile.mr, c.tile.nv * s->lanes,
	        (long long)c.block.rows, c.block.cols ? ", column blocks" : "", c.windows.n ? ", borders left out" : "");
	s->out->why = why_so[c.operand.access];
	sched_finish_phase(s, count_tasks(s, &c), s->cost);
	return NULL;
}
