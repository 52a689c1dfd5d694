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
 * columns are apart is gathered or copied into panels, where that is faster than sums along k (contract_copy.c). Where steps of k are so far
 * apart that they share places of the caches (a power of two of bytes), b is copied, too, and a, if rows are what lies together. Long sums of
 * few rows are added up in blocks of k: for each, all tiles of the block. Rows
 * past the end repeat the last one, so that every tile is whole; they store the same values again. */
#include "codegen/cpu/contract.h"

#include "ir/scalar/scalar.h"

/* Blocks of k. */
enum {
	FEW_TILES = 8,
	K_BLOCK = 256,        /* steps of k: as many as a chain of f32 may have */
	SUM_COLUMNS = 128     /* of a block, about as many as rows: either operand is read again as seldom */
};

/* ---- recognising ---- */

static uint64_t bit(uint32_t axis)
{
	return UINT64_C(1) << axis;
}

/* How far apart neighbours are at the sizes seen while exporting; 0 if that differs. */
static int64_t distance(const Cpu *s, Sym offset, uint32_t axis)
{
	Sym coef;
	return eval_coef(&s->e, offset, axis, &coef) ? sym_hint(s->e.syms, coef) : 0;
}

/* ---- axes ---- */

/* Largest stride in this offset first. */
static void sort_axes(const Cpu *s, Sym offset, uint32_t *axis, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		for (uint32_t j = i;
		     j > 0 && distance(s, offset, axis[j]) > distance(s, offset, axis[j - 1]);
		     j--) {
			uint32_t t = axis[j];
			axis[j] = axis[j - 1];
			axis[j - 1] = t;
		}
}

static void merge_k(Cpu *s, ContractAxes *x)
{
	for (uint32_t i = 0; i + 1 < x->nk;) {
		if (s->e.axes.n < MAX_AXES && axes_can_merge(s, x->k[i], x->k[i + 1])) {
			x->k[i] = eval_merge_axes(&s->e, x->k[i], x->k[i + 1]);
			for (uint32_t j = i + 1; j + 1 < x->nk; j++)
				x->k[j] = x->k[j + 1];
			x->nk--;
		} else {
			i++;
		}
	}
}

/* Unit stride in the result first, where it is a vector's length or no other is longer; then the longest. */
static uint32_t vector_axis(const Cpu *s, uint64_t candidates)
{
	uint32_t best = NO_AXIS;
	Sym store = s->e.store[s->e.k->stage.n - 1];
	for (uint32_t a = 0; a < s->e.axes.n; a++) {
		if (!s->e.axes.var[a].i || !(candidates >> a & 1))
			continue;
		if (eval_coef_is(&s->e, store, a, 1) && axes_hint(s, a) >= (int64_t)contract_lanes(s))
			return a;
		if (best == NO_AXIS || axes_hint(s, a) > axes_hint(s, best) || (axes_hint(s, a) == axes_hint(s, best) && eval_coef_is(&s->e, store, a, 1)))
			best = a;
	}
	return best;
}

/* Rows of a and batch axes, but for the column n. */
static void divide_axes(const Cpu *s, uint64_t in_a, uint64_t in_b, ContractAxes *x)
{
	x->nm = x->nbatch = 0;
	for (uint32_t a = 0; a < s->e.axes.n; a++) {
		if (!s->e.axes.var[a].i || !(s->e.axes.outer >> a & 1) || a == x->n)
			continue;
		if ((in_a & ~in_b) >> a & 1)
			x->m[x->nm++] = a;
		else
			x->batch[x->nbatch++] = a;
	}
}

/* The operands, b the one with columns, and their axes. */
static Refusal find_axes(const Cpu *s, Kx *a, Kx *b, ContractAxes *x)
{
	const Stage *st = &s->e.k->stage.data[0];
	uint64_t in_a = s->shape.in_a, in_b = s->shape.in_b;
	*x = (ContractAxes){.n = vector_axis(s, shape_columns(&s->shape))};
	*a = s->shape.a;
	*b = s->shape.b;
	if (x->n == NO_AXIS) {
		*a = s->shape.b;
		*b = s->shape.a;
		in_a = s->shape.in_b;
		in_b = s->shape.in_a;
		x->n = vector_axis(s, shape_rows(&s->shape));
	}
	if (x->n == NO_AXIS)
		return refuse("no operand has a column of its own");
	if (!st->nred)
		return refuse("one product each, and no sum");
	if (!contract_linear(s, s->e.offset[a->i]))
		return refuse_near("operand a is read at an index that is not linear");
	for (uint32_t i = 0; i < st->nred; i++)
		x->k[x->nk++] = st->red[i];
	divide_axes(s, in_a, in_b, x);
	sort_axes(s, s->e.offset[a->i], x->k, x->nk);
	return taken();
}

/* The same after contiguous axes have been merged: outer ones, and summed ones that are neighbours. Row axes that are not
 * contiguous stay apart; the order is that of their stride. */
static ContractAxes merge_axes(Cpu *s, Kx a, Kx b, const ContractAxes *before)
{
	ContractAxes x = *before;
	merge_k(s, &x);
	/* columns of packed panels are not in b's offset, as if it did not have them */
	uint64_t column = sym_uses(s->e.syms, s->e.offset[b.i], s->e.axes.var[x.n]) ? 0 : bit(x.n);
	axes_merge_outer(s, s->e.axes.outer & ~column);
	uint64_t in_a = eval_axes(&s->e, s->e.offset[a.i]), in_b = eval_axes(&s->e, s->e.offset[b.i]);
	if (!s->e.axes.var[x.n].i)
		x.n = vector_axis(s, in_b & ~in_a & s->e.axes.outer);
	divide_axes(s, in_a, in_b, &x);
	sort_axes(s, s->e.store[s->e.k->stage.n - 1], x.m, x.nm);
	return x;
}

Sym contract_product(const Cpu *s, const uint32_t *axis, uint32_t n)
{
	Sym p = sym_int(s->e.syms, 1);
	for (uint32_t i = 0; i < n; i++)
		p = sym_mul(s->e.syms, p, s->e.axes.extent[axis[i]]);
	return p;
}

/* ---- tile and block sizes ---- */

TileSize contract_choose_tile(const Cpu *s, const ContractAxes *x, const OperandB *b)
{
	Sym m = contract_product(s, x->m, x->nm);
	int64_t rows = sym_hint(s->e.syms, m), cols = axes_hint(s, x->n);
	int64_t lanes = contract_lanes(s), vectors = (cols + lanes - 1) / lanes;
	bool fixed = sym_is_const(s->e.syms, m, NULL);
	double best = 0;
	TileSize tile = {1, 1};
	for (uint32_t nv = 1; nv <= 4; nv++) {
		if (nv > 1 && nv > vectors)
			break;
		if (has_panels(b) && nv % b->vectors && nv < vectors)
			continue;
		for (uint32_t mr = tuning_tile_rows(s->target, s->shape.dtype, nv); mr > 0; mr--) {
			if (fixed && (int64_t)mr > rows)
				continue;
			int64_t tiles = (rows + mr - 1) / mr, whole = vectors / nv, rest = vectors % nv;
			double cost = (double)whole * tuning_tile_cycles(s->target, s->shape.dtype, mr, nv);
			if (rest)
				cost += tuning_tile_cycles(s->target, s->shape.dtype, mr, (uint32_t)rest);
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
static int64_t elements_per_row(const Cpu *s, Kx load, const ContractAxes *x)
{
	const KxData *a = &s->e.k->kx.data[load.i];
	int64_t n = 1;
	bool windows = false;
	for (uint32_t i = 0; i < x->nk; i++) {
		bool window = false;
		for (uint32_t d = 0; d < a->nidx; d++)
			for (uint32_t m = 0; m < x->nm; m++)
				window |= sym_uses(s->e.syms, a->idx[d], s->e.axes.var[x->k[i]]) &&
				          sym_uses(s->e.syms, a->idx[d], s->e.axes.var[x->m[m]]);
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

static Cut find_cut(const Cpu *s, const ContractAxes *x, TileSize tile, const OperandB *b)
{
	int64_t k = (int64_t)contract_steps(s, x), cols = axes_hint(s, x->n), width = (int64_t)tile.nv * s->e.lanes.n;
	Cut c = {.batch = (int64_t)contract_members(s, x)};
	c.row_tiles = ceil_div(sym_hint(s->e.syms, contract_product(s, x->m, x->nm)), tile.mr);
	c.row_tiles = c.row_tiles > 1 ? c.row_tiles : 1; /* nothing to do still takes a block of some size */
	c.col_tiles = sym_is_const(s->e.syms, s->e.axes.extent[x->n], NULL) ? ceil_div(cols, width) : 1;
	c.col_tiles = c.col_tiles > 1 ? c.col_tiles : 1;
	c.tile = (double)(tile.mr * k * width);
	double panel = (double)(k * width * contract_size(s)), all = panel * (double)(c.col_tiles * c.batch), l2 = s->target->machine.l2;
	/* Until a constant is read again, by the next run, all others are. */
	double passed = b->access == B_PACKED && all <= l2 ? l2 + 1 : all;
	c.stream = c.row_tiles == 1 ? tuning_stream_work(s->target, s->shape.dtype, panel, passed) : 0;
	if (b->access == B_GATHERED)
		c.again = tuning_gather_work(s->target, s->shape.dtype, (double)(k * cols));
	else
		c.again = tuning_stream_work(s->target, s->shape.dtype, (double)(k * cols * contract_size(s)), (double)(2 * k * cols * contract_size(s))); /* a and results pass */
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
static BlockSize choose_block(const Cpu *s, const ContractAxes *x, TileSize tile, const OperandB *b, int64_t row_elements)
{
	const Machine *machine = &s->target->machine;
	const Cut c = find_cut(s, x, tile, b);
	int64_t enough = tuning_tasks(machine) / 2, width = (int64_t)tile.nv * s->e.lanes.n;
	double small = tuning_block_work(s->target, s->shape.dtype);
	int64_t most = tuning_block_elements(machine, s->shape.dtype) / (row_elements ? row_elements : 1);
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

/* ---- blocks of k ---- */

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t at_least_one(int64_t n)
{
	return n > 1 ? n : 1;
}

/* About K_BLOCK steps of k: the innermost axis that is longer is cut. Of an extent without a value the hint counts, but only that
 * axis may have one. False: all steps are one block. */
static bool cut_k(const Cpu *s, const ContractAxes *x, KBlock *cut)
{
	int64_t inner = 1, extent;
	for (uint32_t k = x->nk; k-- > 0; inner *= extent) {
		bool known = sym_is_const(s->e.syms, s->e.axes.extent[x->k[k]], &extent);
		if (!known)
			extent = axes_hint(s, x->k[k]);
		if (extent >= 1 && inner * extent > K_BLOCK + K_BLOCK / 2) {
			*cut = (KBlock){.used = true, .k = k, .steps = (K_BLOCK + inner - 1) / inner, .inner = inner};
			return true;
		}
		if (!known || extent < 1)
			return false;
	}
	return false;
}

/* One tile has all columns, and one axis is summed. */
static bool is_narrow(const Cpu *s, const Contract *c)
{
	const Sym width = sym_int(s->e.syms, (int64_t)c->tile.nv * s->e.lanes.n);
	return c->axes.nk == 1 && sym_le(s->e.syms, s->e.axes.extent[c->axes.n], width) == YES;
}

/* Terms of a chunk. A product of which one tile has all columns waits for loads: shorter chains cost it nothing. */
static int64_t chunk_limit(const Cpu *s, const Contract *c)
{
	const Stage *st = &s->e.k->stage.data[0];
	const int64_t limit = sum_limit(st->combine, st->acc, st->dtype);
	if (!is_narrow(s, c))
		return limit;
	const int64_t vectors = ceil_div(sum_most(s, s->e.axes.extent[c->axes.n]), s->e.lanes.n);
	return limit / 4 * contract_ways(s, (TileSize){c->tile.mr, (uint32_t)at_least_one(vectors)});
}

/* Of the loops over all steps of k, or over its blocks. */
static SumPlan plan_sums(const Cpu *s, const Contract *c)
{
	const KBlock *b = &c->k_block;
	int64_t most[MAX_AXES];
	uint32_t n = b->used ? b->k + 1 : c->axes.nk;
	for (uint32_t i = 0; i < n; i++)
		most[i] = sum_most(s, s->e.axes.extent[c->axes.k[i]]);
	if (b->used && most[b->k] != INT64_MAX)
		most[b->k] = ceil_div(most[b->k], b->steps);
	return sum_plan(most, n, chunk_limit(s, c));
}

/* Rows and columns of a block of which the sums fit local memory; a's part of a block of k stays in L2. */
static BlockSize block_of_sums(const Cpu *s, const Contract *c, int64_t row_elements)
{
	const Machine *m = &s->target->machine;
	const int64_t mr = c->tile.mr, width = (int64_t)c->tile.nv * s->e.lanes.n, room = MAX_PANEL / contract_size(s) / (1 + c->sums.n);
	const int64_t col_tiles = at_least_one(ceil_div(axes_hint(s, c->axes.n), width)), row_tiles = at_least_one(ceil_div(sym_hint(s->e.syms, c->rows), mr));
	const int64_t most = tuning_block_elements(m, s->shape.dtype) / at_least_one(smaller(row_elements, c->k_block.steps * c->k_block.inner));
	const double k = contract_steps(s, &c->axes);
	const int64_t batch = (int64_t)contract_members(s, &c->axes);
	int64_t per = smaller(col_tiles, at_least_one(SUM_COLUMNS / width));
	int64_t tiles = smaller(smaller(row_tiles, at_least_one(most / mr)), at_least_one(smaller(room / (per * width), MAX_BLOCK_ROWS) / mr));
	tiles = ceil_div(row_tiles, ceil_div(row_tiles, tiles));
	per = ceil_div(col_tiles, ceil_div(col_tiles, per));
	while ((tiles > 1 || per > 1) && k * (double)(tiles * mr * per * width) > tuning_block_work(s->target, s->shape.dtype) &&
	       batch * ceil_div(row_tiles, tiles) * ceil_div(col_tiles, per) < tuning_tasks(m) / 2)
		if (per == 1 || (tiles > 1 && tiles * mr >= per * width))
			tiles = ceil_div(tiles, 2);
		else
			per = ceil_div(per, 2);
	const bool all = per == col_tiles && sym_is_const(s->e.syms, s->e.axes.extent[c->axes.n], NULL);
	return (BlockSize){.rows = tiles * mr, .cols = all ? 0 : per * width};
}

/* Where a panel of b is so long that it would not stay near (twice the first cache), and few tiles of rows follow one another on it. */
static void choose_k_block(const Cpu *s, Contract *c, int64_t row_elements)
{
	const double panel = (double)contract_size(s) * c->tile.nv * s->e.lanes.n * contract_steps(s, &c->axes);
	Contract cut = *c;
	if (s->e.lanes.n == 1 || c->windows.n || c->operand.access == B_GATHERED || panel < 2.0 * s->target->machine.l1 || c->block.rows > FEW_TILES * c->tile.mr ||
	    is_narrow(s, c) || !cut_k(s, &c->axes, &cut.k_block))
		return;
	cut.sums = plan_sums(s, &cut);
	cut.block = block_of_sums(s, &cut, row_elements);
	if (cut.block.rows > c->tile.mr)
		*c = cut;
}

/* ---- tasks ---- */

static Sym column_blocks(const Cpu *s, const Contract *c)
{
	if (!c->block.cols)
		return sym_int(s->e.syms, 1);
	return sym_ceildiv(s->e.syms, s->e.axes.extent[c->axes.n], sym_int(s->e.syms, c->block.cols));
}

static Sym row_blocks(const Cpu *s, const Contract *c)
{
	return sym_ceildiv(s->e.syms, c->rows, sym_int(s->e.syms, c->block.rows));
}

static Sym count_tasks(const Cpu *s, const Contract *c)
{
	Sym blocks = sym_mul(s->e.syms, row_blocks(s, c), column_blocks(s, c));
	for (uint32_t i = 0; i < c->axes.nbatch; i++)
		blocks = sym_mul(s->e.syms, blocks, s->e.axes.extent[c->axes.batch[i]]);
	return blocks;
}

static Lx take(Cpu *s, Lx *task, Sym count)
{
	if (sym_is(s->e.syms, count, 1))
		return lx_int(s->e.f, 0);
	Lx n = eval_size(&s->e, count), v = lx_mod(s->e.f, *task, n);
	*task = eval_let(&s->e, "rest", lx_div(s->e.f, *task, n));
	return v;
}

/* The block of the task. */
static ContractCode decode_task(Cpu *s, const Contract *p)
{
	ContractCode c = {.s = s, .p = p};
	Lx task = lx_var(s->e.f, s->e.f->task);
	Lx row_block = take(s, &task, row_blocks(s, p));
	Lx col_block = take(s, &task, column_blocks(s, p));
	for (uint32_t i = p->axes.nbatch; i-- > 0;)
		eval_at(&s->e, p->axes.batch[i], eval_let(&s->e, "batch", take(s, &task, s->e.axes.extent[p->axes.batch[i]])));
	c.rows.lo = eval_let(&s->e, "row_lo", lx_mul(s->e.f, row_block, lx_int(s->e.f, p->block.rows)));
	Lx hi = lx_add(s->e.f, c.rows.lo, lx_int(s->e.f, p->block.rows));
	c.rows.hi = eval_let(&s->e, "row_hi", lx_min(s->e.f, hi, eval_size(&s->e, p->rows)));
	Lx cols = eval_size(&s->e, s->e.axes.extent[p->axes.n]);
	c.cols.lo = lx_int(s->e.f, 0);
	c.cols.hi = cols;
	if (p->block.cols) {
		c.cols.lo = eval_let(&s->e, "col_lo", lx_mul(s->e.f, col_block, lx_int(s->e.f, p->block.cols)));
		hi = lx_add(s->e.f, c.cols.lo, lx_int(s->e.f, p->block.cols));
		c.cols.hi = eval_let(&s->e, "col_hi", lx_min(s->e.f, hi, cols));
	}
	return c;
}

/* ---- the schedule ---- */

static bool is_empty(const Cpu *s)
{
	for (uint32_t a = 0; a < s->e.axes.n; a++)
		if (sym_is(s->e.syms, s->e.axes.extent[a], 0))
			return true;
	return false;
}

/* What can be told of the kernel as it is. */
static Refusal recognise(const Cpu *s, Contract *c)
{
	if (s->shape.no_product)
		return refuse(s->shape.no_product);
	if (is_empty(s))
		return refuse("it is empty");
	Refusal no = find_axes(s, &c->a, &c->b, &c->axes);
	no = no.why ? no : contract_choose_b(s, c->b, &c->axes, &c->operand);
	return no.why ? no : contract_panels_do_not_pay(s, c);
}

Refusal contract_wants(const Cpu *s, LayoutWant *want)
{
	Contract c = {0};
	Refusal no = recognise(s, &c);
	if (!no.why && c.operand.access == B_PACKED)
		*want = (LayoutWant){c.b, c.operand.layout};
	return no;
}

/* Axes are merged; tiles and blocks follow from those that are left. */
static void decide(Cpu *s, Contract *c)
{
	const ContractAxes before = c->axes;
	int64_t row_elements = elements_per_row(s, c->a, &before);
	Windows windows = contract_find_windows(s, c->a, &before);
	eval_lanes(&s->e, before.n, contract_lanes(s));
	if (is_copied(&c->operand))
		c->operand.copy = contract_copy(s, &c->operand.panels, &before);
	if (c->operand.access == B_PACKED)
		eval_read(&s->e, c->b, eval_packed(&s->e, c->b, &c->operand.layout), c->operand.panels.offset);
	if (is_copied(&c->operand))
		eval_read(&s->e, c->b, (SchedArg){ARG_TEMP, c->operand.copy, NULL}, c->operand.panels.offset);
	c->axes = merge_axes(s, c->a, c->b, &before);
	eval_lanes(&s->e, c->axes.n, s->e.lanes.n);
	if (!has_panels(&c->operand))
		c->operand.access = eval_coef_is(&s->e, s->e.offset[c->b.i], c->axes.n, 1) ? B_IN_PLACE : B_GATHERED;
	c->rows = contract_product(s, c->axes.m, c->axes.nm);
	c->tile = contract_choose_tile(s, &c->axes, &c->operand);
	c->windows = contract_useful_windows(s, &c->axes, c->tile, &windows);
	c->block = choose_block(s, &c->axes, c->tile, &c->operand, row_elements);
	c->sums = plan_sums(s, c);
	choose_k_block(s, c, row_elements);
	c->operand_a.copied = contract_copies_a(s, c, &c->operand_a.panels);
	if (!c->operand_a.copied)
		return;
	c->operand_a.copy = contract_copy(s, &c->operand_a.panels, &c->axes);
	eval_read(&s->e, c->a, (SchedArg){ARG_TEMP, c->operand_a.copy, NULL}, c->operand_a.panels.offset);
}

Refusal schedule_contract(Cpu *s)
{
	static const char *const why_so[] = {
		[B_IN_PLACE] = "the columns of b are neighbours",
		[B_GATHERED] = "the columns of b are apart: each panel is gathered",
		[B_PACKED] = "b is a constant: its panels are packed before",
		[B_COPIED] = "the columns of b are apart: panels are copied in a phase before",
		[B_BROUGHT] = "what a tile reads of b is far apart: panels are copied in a phase before",
	};
	Contract c = {0};
	Refusal no = recognise(s, &c);
	if (no.why)
		return no;
	decide(s, &c);
	ContractCode code = decode_task(s, &c);
	contract_block(&code);
	s->out->algorithm = arena_printf(
	        s->e.arena, "gemm, %s%s, %ux%u tile, %lld-row blocks%s%s%s", c.operand.access == B_PACKED ? "packed b" : is_copied(&c.operand) ? "copied b" : "b in place",
	        c.operand_a.copied ? ", copied a" : "", c.tile.mr, c.tile.nv * s->e.lanes.n,
	        (long long)c.block.rows, c.block.cols ? ", column blocks" : "", c.k_block.used ? ", blocks of k" : "", c.windows.n ? ", borders left out" : "");
	s->out->why = why_so[c.operand.access];
	cpu_finish_phase(s, count_tasks(s, &c), s->cost);
	return taken();
}
