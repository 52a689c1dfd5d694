/* Register tiling and cache blocking of a contraction: the register tile, the cache block, blocks
 * of k, and how the code of tiles is written. */
#include "codegen/plan/contract.h"

#include "ir/scalar/scalar.h"

/* Blocks of k. */
enum {
	FEW_TILES = 8,
	MORE_STEPS = 2, /* times as many steps of fragments cost no more than steps behind the last
	                   whole one, which pass through local arrays */
	TURN = 8, /* tiles of columns of fragments: the rows of a come from the second cache for the
	             first of them only */
	TURN_FETCHED = 4, /* where panels are fetched ahead: nobody fetches the first ones */
	FRAG_TILES = 4, /* of fragments, which take half of their operands from the first cache */
	MANY_REGISTERS = 32,
	K_BLOCK = 256, /* steps of k: as many as a chain of f32 may have */
	SUM_COLUMNS =
		128, /* of a block, about as many as rows: either operand is read again as seldom */
	INLINE_EPILOGUE =
		160 /* operations that are written out for all of a tile: bounds its code, too */
};

/* ---- tile and block sizes ---- */

/* Returns the tile of a micro-kernel on fragments: MAX_FRAG_ROWS fragments of rows and of columns,
 * or fewer if the result has fewer rows (fixed: their number is known) or vectors of columns. */
static TileSize tile_of_fragments(const PlanInput *in, int64_t rows, bool fixed, int64_t vectors)
{
	const int64_t most = MAX_FRAG_ROWS * in->row->rows;
	return (TileSize){.mr = (uint32_t)(fixed && rows < most ? rows < 1 ? 1 : rows : most),
			  .nv = vectors < MAX_FRAG_ROWS ? 1 : MAX_FRAG_ROWS};
}

uint32_t contract_choose_step(const PlanInput *in, const ContractAxes *x)
{
	const int64_t most = x->row->k / x->row->group;
	int64_t groups, all = x->nfield;
	for (uint32_t i = x->nblock; x->nblock && i < x->nk; i++)
		all *= sym_const(in->nest->syms, in->nest->extent[x->k[i]]);
	if (x->nblock)
		return (uint32_t)all;
	if (contract_has_tail(in->nest, x) ||
	    !sym_is_const(in->nest->syms, in->nest->extent[x->k[x->nk - 1]], &groups) || groups < 1)
		return (uint32_t)most;
	const int64_t least = (groups + most - 1) / most;
	for (int64_t steps = least; steps <= MORE_STEPS * least && steps <= groups; steps++)
		if (groups % steps == 0)
			return (uint32_t)(groups / steps);
	return (uint32_t)most;
}

/* Whether a tile with this cost is better than the best so far. Of equal costs the first tile
 * stays, but for b in place one with more columns wins, because each step reads lines and pages of
 * its own. */
static bool is_better(const OperandB *b, double cost, double best, bool wider)
{
	const bool apart = b->access == B_IN_PLACE && wider;
	return best == 0 || cost < best * (apart ? 1.005 : 0.995);
}

/* Returns the most rows of a tile of nv vectors. Steps with halves of bytes keep, besides the sums,
 * vectors of b as they are loaded and as they are multiplied, an element of a, a product and a
 * mask; those that decode b what is beside it, too. */
static uint32_t most_rows(const PlanInput *in, const ContractAxes *x, const OperandB *b,
			  uint32_t nv)
{
	const bool decodes = b->decoded.value.i && !b->decoded.slab;
	const uint32_t most = tuning_tile_rows(in->target, in->contraction.dtype, nv),
		       besides = (decodes ? 3 : 2) * nv + 3, all = in->target->isa.nvreg;
	if (decodes ? all < MANY_REGISTERS : x->half == NO_AXIS || b->decoded.slab)
		return most;
	const uint32_t rows = all > besides + nv ? (all - besides) / nv : 1;
	return rows < most ? rows : most;
}

bool contract_holds_sums(const PlanInput *in, TileSize tile)
{
	const Target *t = in->target;
	/* of many registers a few sums may lie in memory, which are read once for each block */
	const uint32_t sums = 2 * tile.mr * tile.nv,
		       besides = t->isa.nvreg < MANY_REGISTERS ? 2 * tile.nv + 3 : 0;
	return !in->row->nfrag &&
	       (sums + besides) * tuning_registers(t, in->contraction.dtype) <= t->isa.nvreg;
}

/* Returns the cycles of a step of a tile of blocks besides its products: taking halves of bytes
 * apart, and a step's share of what a block's sums take that are added in memory. */
static double block_cycles(const PlanInput *in, const ContractAxes *x, TileSize tile)
{
	const Machine *m = &in->target->machine;
	const DType d = in->contraction.dtype;
	const uint32_t lanes = contract_lanes(in);
	double steps = x->nfield, cycles = 0;
	if (!in->contraction.blocks)
		return 0;
	for (uint32_t i = x->nblock; i < x->nk; i++)
		steps *= (double)plan_extent(in, x->k[i]);
	if (x->half != NO_AXIS)
		cycles += 1.5 * tile.nv * machine_cycles(m, MOP_simple, d, lanes);
	if (!contract_holds_sums(in, tile))
		cycles += tile.mr * tile.nv / steps *
			  (machine_cycles(m, MOP_load, d, lanes) +
			   machine_cycles(m, MOP_store, d, lanes));
	return cycles;
}

static double tile_cycles(const PlanInput *in, const ContractAxes *x, uint32_t mr, uint32_t nv)
{
	return tuning_tile_cycles(in->target, in->row, mr, nv) +
	       block_cycles(in, x, (TileSize){mr, nv});
}

/* Whether tiles and blocks are made for more rows than the hint says: of rounded operands, where
 * code for many rows takes hardly longer for a few. */
static bool may_have_more_rows(const PlanInput *in, Sym rows)
{
	return in->contraction.blocks && !sym_is_const(in->nest->syms, rows, NULL);
}

int64_t contract_planned_rows(const PlanInput *in, Sym rows)
{
	enum { MANY_ROWS = 64 };
	int64_t least, most;
	PlanInput at = *in;
	at.at = in->larger;
	if (!may_have_more_rows(in, rows))
		return sym_hint(in->nest->syms, rows);
	sym_range(in->nest->syms, rows, &least, &most);
	const int64_t n = plan_size(&at, rows), many = most < MANY_ROWS ? most : MANY_ROWS;
	return n > many ? n : many;
}

/* Returns the most rows of a tile for that number of rows. A batch whose size is unknown, or small,
 * may be one row, of which a small tile costs little more. */
static uint32_t most_of_few(const PlanInput *in, Sym rows)
{
	enum { FEW = 2, SMALL_TILE = 4 };
	return may_have_more_rows(in, rows) && sym_hint(in->nest->syms, rows) <= FEW
		       ? SMALL_TILE
		       : MAX_TILE_ROWS;
}

TileSize contract_choose_tile(const PlanInput *in, const ContractAxes *x, const OperandB *b)
{
	Sym m = contract_product(in, x->m, x->nm);
	int64_t rows = contract_planned_rows(in, m), cols = nest_hint(in->nest, x->n);
	int64_t lanes = contract_lanes(in), vectors = (cols + lanes - 1) / lanes;
	bool fixed = sym_is_const(in->nest->syms, m, NULL);
	double best = 0;
	TileSize tile = {1, 1};
	if (in->row->nfrag)
		return tile_of_fragments(in, rows, fixed, vectors);
	for (uint32_t nv = 1; nv <= MAX_TILE_VECTORS; nv++) {
		if (nv > 1 && nv > vectors)
			break;
		if (has_panels(b) && nv % b->vectors && nv < vectors)
			continue;
		for (uint32_t mr = most_rows(in, x, b, nv); mr > 0; mr--) {
			if ((fixed && (int64_t)mr > rows) || mr > most_of_few(in, m))
				continue;
			int64_t tiles = (rows + mr - 1) / mr, whole = vectors / nv,
				rest = vectors % nv;
			double cost = (double)whole * tile_cycles(in, x, mr, nv);
			if (rest)
				cost += tile_cycles(in, x, mr, (uint32_t)rest);
			cost *= (double)tiles;
			if (is_better(b, cost, best, nv > tile.nv && !rest)) {
				best = best > 0 && best < cost ? best : cost;
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

/* Returns the vectors of each of mr rows of a that registers hold while columns pass by: the whole
 * row. Returns 0 if the row has no known length or is too long, or if registers are few, where LLVM
 * keeps the address of each vector of b in memory. */
static uint32_t held_vectors(const PlanInput *in, const ContractAxes *x, uint32_t mr)
{
	const int64_t lanes = contract_lanes(in);
	int64_t steps;
	if (x->nk != 1 || in->target->isa.nvreg < MANY_REGISTERS ||
	    !sym_is_const(in->nest->syms, in->nest->extent[x->k[0]], &steps) ||
	    steps < 1 || steps > MAX_HELD * lanes)
		return 0;
	const int64_t vectors = ceil_div(steps, lanes);
	return mr * vectors <= MAX_HELD ? (uint32_t)vectors : 0;
}

/* Whether the registers hold what a tile of dot products needs: an accumulator for each row and
 * column, the vectors that a step loads, and the rows of a that are held. A group that is unpacked
 * takes two vectors. */
static bool dots_fit(const PlanInput *in, const ContractAxes *x, const OperandB *b, uint32_t mr)
{
	const uint32_t parts = tuning_parts_cycles(in->target, x->row, 1) > 0 ? 2 : 1,
		       loaded = b->in_turn ? 2 : b->abreast + 1,
		       sums = mr * (b->abreast + b->chains - 1),
		       vectors = sums + (loaded + mr * b->held) * parts;
	return vectors * tuning_registers(in->target, in->contraction.dtype) <=
	       in->target->isa.nvreg;
}

/* Returns the cycles of the dot products of all rows with a vector of columns of b that is read
 * along k. */
static double dots_cycles(const PlanInput *in, const ContractAxes *x, Kx a, const OperandB *b,
			  int64_t rows, uint32_t mr)
{
	Busy busy = {0};
	contract_count_dots(in, x, a, b, mr, 1, &busy);
	double most = busy.units > busy.loads ? busy.units : busy.loads;
	most = most > busy.waits ? most : busy.waits;
	const double compute = most * (double)ceil_div(rows, mr),
		     memory = contract_group_memory(in, x, b) *
			      (contract_mixes_streams(in, x, b) ? 2 : 1);
	return contract_lanes(in) / b->abreast *
	       (compute > memory ? compute + memory / 4 : memory + compute / 4);
}

/* Ways to read b along k: for each number of rows and of columns in a group, the columns step by
 * step, in turn with rows in registers, and in turn with one chain or more. */
enum { STEP_BY_STEP, HELD, IN_TURN, MOST_CHAINS = 4, ORDERS = IN_TURN + MOST_CHAINS };
enum { DOT_WAYS = MAX_TILE_ROWS * MAX_ABREAST_COLUMNS * ORDERS };

/* Fills in way number k for so many rows. False: there is no such way. */
MUST_LOOK static bool dots_way(const PlanInput *in, const ContractAxes *x, uint32_t k, int64_t rows,
			       TileSize *tile, OperandB *b)
{
	const uint32_t order = k % ORDERS;
	tile->mr = k / ORDERS / MAX_ABREAST_COLUMNS + 1;
	tile->nv = 1;
	b->abreast = k / ORDERS % MAX_ABREAST_COLUMNS + 1;
	b->in_turn = order != STEP_BY_STEP;
	b->chains = order >= IN_TURN ? order - IN_TURN + 1 : 1;
	b->held = order == HELD ? held_vectors(in, x, tile->mr) : 0;
	return tile->mr <= rows && b->abreast <= contract_lanes(in) &&
	       !(b->abreast & (b->abreast - 1)) && (order != HELD || b->held) &&
	       dots_fit(in, x, b, tile->mr);
}

/* Takes the later one of ways that cost the same: more columns, and more rows. */
TileSize contract_choose_dots(const PlanInput *in, const ContractAxes *x, Kx a, OperandB *b)
{
	const Sym m = contract_product(in, x->m, x->nm);
	const int64_t hint = sym_hint(in->nest->syms, m), rows = hint > 1 ? hint : 1;
	OperandB best = *b;
	TileSize tile = {1, 1};
	double least = 0;
	for (uint32_t k = 0; k < DOT_WAYS; k++) {
		OperandB by = *b;
		TileSize of;
		if (!dots_way(in, x, k, rows, &of, &by))
			continue;
		const double cycles = dots_cycles(in, x, a, &by, rows, of.mr);
		if (least > 0 && cycles > least)
			continue;
		least = cycles;
		best = by;
		tile = of;
	}
	*b = best;
	return tile;
}

/* Counts the taps of a convolution's windows as one and a half elements in all, not as nine,
 * because windows of neighbouring rows overlap. */
int64_t contract_row_elements(const PlanInput *in, Kx load, const ContractAxes *x)
{
	const KxData *a = &in->nest->k->kx.data[load.i];
	int64_t n = 1;
	bool windows = false;
	for (uint32_t i = 0; i < x->nk; i++) {
		bool window = false;
		for (uint32_t d = 0; d < a->nidx; d++)
			for (uint32_t m = 0; m < x->nm; m++)
				window |=
					sym_uses(in->nest->syms, a->idx[d],
						 in->nest->var[x->k[i]]) &&
					sym_uses(in->nest->syms, a->idx[d], in->nest->var[x->m[m]]);
		windows |= window;
		n *= window ? 1 : nest_hint(in->nest, x->k[i]);
	}
	return windows ? n + n / 2 : n;
}

/* What cutting a contraction into tasks goes by; work is counted in multiply-adds. */
typedef struct {
	int64_t row_tiles, col_tiles, batch;
	double tile;   /* work of one */
	double stream; /* work as long as reading b for one tile of columns takes, where that is
			  done once; else 0 */
	double again;  /* work as long as reading all of b once more takes */
	int64_t together; /* tiles of rows that read the same columns of b from the first cache */
} Cut;

static Cut find_cut(const PlanInput *in, const ContractPlan *p)
{
	const ContractAxes *x = &p->axes;
	const OperandB *b = &p->b;
	const TileSize tile = p->tile;
	int64_t k = (int64_t)contract_steps(in, x), cols = nest_hint(in->nest, x->n),
		width = (int64_t)tile.nv * contract_lanes(in);
	Cut c = {.batch = (int64_t)contract_members(in, x),
		 .together = in->row->nfrag ? FRAG_TILES : 0};
	c.row_tiles = ceil_div(contract_planned_rows(in, p->rows), tile.mr);
	c.row_tiles = c.row_tiles > 1 ? c.row_tiles
				      : 1; /* nothing to do still takes a block of some size */
	c.col_tiles = sym_is_const(in->nest->syms, in->nest->extent[x->n], NULL) ||
				      b->access == B_ALONG
			      ? ceil_div(cols, width)
			      : 1;
	c.col_tiles = c.col_tiles > 1 ? c.col_tiles : 1;
	c.tile = (double)(tile.mr * k * width);
	double panel = (double)(k * width * contract_size(in)),
	       all = panel * (double)(c.col_tiles * c.batch), l2 = in->target->machine.l2;
	/* Until a constant is read again, by the next run, all others are. */
	double passed = b->access == B_PACKED && all <= l2 ? l2 + 1 : all;
	c.stream = c.row_tiles == 1
			   ? tuning_stream_work(in->target, in->contraction.dtype, panel, passed)
			   : 0;
	if (b->access == B_GATHERED)
		c.again = tuning_gather_work(in->target, in->contraction.dtype, (double)(k * cols));
	else
		c.again = tuning_stream_work(
			in->target, in->contraction.dtype, (double)(k * cols * contract_size(in)),
			(double)(2 * k * cols * contract_size(in))); /* a and results pass */
	return c;
}

/* Returns the work of a block of `tiles` tiles of rows and `per` tiles of columns: of the products,
 * or of reading b once, if that takes longer. Reading counts only where all rows are one tile
 * (Cut.stream). */
static double block_work(const Cut *c, int64_t tiles, int64_t per)
{
	double products = c->tile * (double)(tiles * per), reading = c->stream * (double)per;
	return products > reading ? products : reading;
}

/* Whether rows of a block are halved rather than columns: as long as reading b again for each block
 * costs little beside its products. What another phase reads by rows then lies in the cache of the
 * processor that wrote it, and no two processors write parts of one line. */
static bool cuts_rows(const Cut *c, int64_t tiles, int64_t per)
{
	return tiles > 1 &&
	       (per <= 1 ||
		(tiles > c->together &&
		 4 * c->again <= c->tile * (double)(ceil_div(tiles, 2) * c->col_tiles)));
}

/* Chooses the cache block of a task: its part of a stays in L2 while the panels of b pass by. Where
 * tasks are too few it cuts rows, which reads b again, or columns, which reads a again. */
static BlockSize choose_block(const PlanInput *in, const ContractPlan *p, int64_t row_elements)
{
	const Machine *machine = &in->target->machine;
	const TileSize tile = p->tile;
	const Cut c = find_cut(in, p);
	int64_t enough = tuning_tasks(machine) / 2, width = (int64_t)tile.nv * contract_lanes(in);
	double small = tuning_block_work(in->target, in->contraction.dtype) *
		       tuning_row_speed(in->target, in->row);
	int64_t most = tuning_block_elements(machine, in->contraction.dtype) /
		       (row_elements ? row_elements : 1);
	most = most > MAX_BLOCK_ROWS ? MAX_BLOCK_ROWS : most;
	int64_t tiles = most / tile.mr < 1 ? 1 : most / tile.mr, per = c.col_tiles;
	tiles = tiles > c.row_tiles
			? c.row_tiles
			: ceil_div(c.row_tiles, ceil_div(c.row_tiles, tiles)); /* even blocks */
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

/* Chooses the summed axis to cut into blocks of about K_BLOCK steps of k: the innermost one whose
 * steps, with those of the axes inside, are more. Returns false if all steps are one block, or if
 * an axis inside of it has no known extent; the extent of the cut axis may be a hint. */
static bool cut_k(const PlanInput *in, const ContractAxes *x, KBlock *cut)
{
	const int64_t most = K_BLOCK / x->nfield;
	int64_t inner = 1, extent;
	for (uint32_t k = x->nk; k-- > 0; inner *= extent) {
		bool known = sym_is_const(in->nest->syms, in->nest->extent[x->k[k]], &extent);
		if (!known)
			extent = nest_hint(in->nest, x->k[k]);
		if (extent >= 1 && inner * extent > most + most / 2) {
			*cut = (KBlock){.used = true,
					.k = k,
					.steps = (most + inner - 1) / inner,
					.inner = inner};
			return true;
		}
		if (!known || extent < 1)
			return false;
	}
	return false;
}

/* Whether one tile has all columns, and one axis is summed. */
static bool is_narrow(const PlanInput *in, const ContractPlan *c)
{
	const Sym width = sym_int(in->nest->syms, (int64_t)c->tile.nv * contract_lanes(in));
	return c->axes.nk == 1 && sym_le(in->nest->syms, in->nest->extent[c->axes.n], width) == YES;
}

/* Returns the number of accumulators for each element of a tile, at most UNROLL_K: a small tile
 * gets several, as long as they take half of the registers at most. */
static uint32_t ways_of(const PlanInput *in, TileSize tile)
{
	uint32_t ways = 1;
	while (ways < UNROLL_K &&
	       ways * tile.mr * tile.nv * tuning_registers(in->target, in->contraction.dtype) * 4 <=
		       in->target->isa.nvreg)
		ways *= 2;
	return ways;
}

/* Returns how many steps of k one chain of additions may have; INT64_MAX: any number. A group
 * counts for all its steps, except a dot product whose result is rounded to a narrower dtype. Sums
 * whose errors are enlarged get shorter chains. */
static int64_t steps_limit(const PlanInput *in, const ContractPlan *c)
{
	const Stage *st = &in->nest->k->stage.data[in->contraction.sum];
	int64_t limit = sum_limit(stage_combine(st), stage_acc(st), st->dtype);
	if (c->axes.row->nfrag) { /* a fragment's steps are a chain, which counts once for the next
	                             ones */
		const int64_t groups = c->axes.step;
		return limit == INT64_MAX ? limit : (limit - groups - 2) * groups;
	}
	const bool once = sc_is_dot(c->axes.row->op) && st->dtype != stage_acc(st);
	if (limit == INT64_MAX)
		return limit;
	limit /= st->reduce.enlarged ? SUM_ENLARGED : 1;
	limit /= c->axes.nfield;
	return once ? limit : limit / c->axes.row->group;
}

/* Returns how many steps of k a chunk of a sum has. A product of which one tile has all columns
 * waits for loads, so that shorter chains cost it nothing. */
static int64_t chunk_limit(const PlanInput *in, const ContractPlan *c)
{
	const int64_t limit = steps_limit(in, c);
	if (!is_narrow(in, c) || limit == INT64_MAX || c->b.access == B_ALONG)
		return limit;
	const int64_t vectors =
		ceil_div(sum_most(in->nest->syms, in->nest->extent[c->axes.n]), contract_lanes(in));
	return limit / 4 * ways_of(in, (TileSize){c->tile.mr, (uint32_t)at_least_one(vectors)});
}

/* Plans the cuts of the loops over the steps of k, or over its blocks, into chunks (sum_plan). */
static SumPlan plan_sums(const PlanInput *in, const ContractPlan *c)
{
	const KBlock *b = &c->k_block;
	const bool blocks = contract_has_blocks(c);
	int64_t most[MAX_AXES];
	uint32_t n = b->used ? b->k + 1 : blocks ? c->axes.nblock : c->axes.nk;
	for (uint32_t i = 0; i < n; i++)
		most[i] = sum_most(in->nest->syms, in->nest->extent[c->axes.k[i]]);
	if (c->b.access == B_ALONG && most[n - 1] != INT64_MAX)
		most[n - 1] = ceil_div(most[n - 1], contract_lanes(in));
	if (b->used && most[b->k] != INT64_MAX)
		most[b->k] = ceil_div(most[b->k], b->steps);
	const DType d = c->sums.result.dtype;
	return sum_plan(most, n, blocks ? sum_limit(REDUCE_SUM, d, d) : chunk_limit(in, c));
}

/* Returns the rows and columns of a block whose sums fit local memory and whose part of a, in a
 * block of k, stays in L2. */
static BlockSize block_of_sums(const PlanInput *in, const ContractPlan *c, int64_t row_elements)
{
	const Machine *m = &in->target->machine;
	const int64_t mr = c->tile.mr, width = (int64_t)c->tile.nv * contract_lanes(in),
		      room = MAX_PANEL / contract_size(in) / (1 + c->sums.cuts.n);
	const int64_t col_tiles = at_least_one(ceil_div(nest_hint(in->nest, c->axes.n), width)),
		      row_tiles = at_least_one(ceil_div(sym_hint(in->nest->syms, c->rows), mr));
	const int64_t most =
		tuning_block_elements(m, in->contraction.dtype) /
		at_least_one(smaller(row_elements, c->k_block.steps * c->k_block.inner));
	const double k = contract_steps(in, &c->axes);
	const int64_t batch = (int64_t)contract_members(in, &c->axes);
	int64_t per = smaller(col_tiles, at_least_one(SUM_COLUMNS / width));
	int64_t tiles = smaller(smaller(row_tiles, at_least_one(most / mr)),
				at_least_one(smaller(room / (per * width), MAX_BLOCK_ROWS) / mr));
	tiles = ceil_div(row_tiles, ceil_div(row_tiles, tiles));
	per = ceil_div(col_tiles, ceil_div(col_tiles, per));
	while ((tiles > 1 || per > 1) &&
	       k * (double)(tiles * mr * per * width) >
		       tuning_block_work(in->target, in->contraction.dtype) &&
	       batch * ceil_div(row_tiles, tiles) * ceil_div(col_tiles, per) < tuning_tasks(m) / 2)
		if (per == 1 || (tiles > 1 && !c->b.decoded.slab && tiles * mr >= per * width))
			tiles = ceil_div(tiles, 2);
		else
			per = ceil_div(per, 2);
	const bool all =
		per == col_tiles && sym_is_const(in->nest->syms, in->nest->extent[c->axes.n], NULL);
	return (BlockSize){.rows = tiles * mr, .cols = all ? 0 : per * width};
}

/* Chooses blocks of k (KBlock) where a panel of b is so long that it would not stay near (twice the
 * first cache) and few tiles of rows follow one another on it, or where b is decoded into slabs;
 * else leaves *c as it is. */
static void choose_k_block(const PlanInput *in, ContractPlan *c, int64_t row_elements)
{
	const double panel = (double)contract_size(in) * c->tile.nv * contract_lanes(in) *
			     contract_steps(in, &c->axes);
	ContractPlan cut = *c;
	if (contract_lanes(in) == 1 || c->axes.row->nfrag || c->windows.n || c->sums.blocks.stage ||
	    c->b.decoded.factor.i || c->b.access == B_GATHERED || c->b.access == B_ALONG ||
	    (!c->b.decoded.slab && (panel < 2.0 * in->target->machine.l1 ||
				    c->block.rows > FEW_TILES * c->tile.mr || is_narrow(in, c))) ||
	    !cut_k(in, &c->axes, &cut.k_block))
		return;
	cut.sums.cuts = plan_sums(in, &cut);
	cut.block = block_of_sums(in, &cut, row_elements);
	if (cut.block.rows > c->tile.mr || c->b.decoded.slab)
		*c = cut;
}

/* Returns the number of terms above which a sum goes by chunks, if the code asks when it runs; 0:
 * every sum does. The chunks of a short sum cost as much as the sum. */
static int64_t many_terms(const PlanInput *in, const ContractPlan *c)
{
	const int64_t limit = steps_limit(in, c);
	int64_t least, most;
	sym_range(in->nest->syms, c->sums.terms, &least, &most);
	if (c->b.access == B_ALONG || contract_has_blocks(c))
		return 0;
	return c->sums.cuts.n && !c->k_block.used && least <= limit ? limit : 0;
}

void contract_choose_blocks(const PlanInput *in, ContractPlan *c, int64_t row_elements)
{
	c->block = choose_block(in, c, row_elements);
	c->sums.cuts = plan_sums(in, c);
	choose_k_block(in, c, row_elements);
	c->sums.terms = contract_product(in, c->axes.k, c->axes.nk);
	c->sums.many = many_terms(in, c);
}

/* ---- how tiles are written ---- */

/* Whether prefetching the next panels of b pays. For fragments, whose steps already read about as
 * much as L2 gives, it pays only if a line from beyond L2 takes longer than reading it from L2 once
 * for each block of rows with the same columns. */
static bool is_worth_fetching(const PlanInput *in, const ContractPlan *c)
{
	const Machine *m = &in->target->machine;
	const double blocks = (double)sym_hint(in->nest->syms, c->rows) / (double)c->block.rows;
	return !c->axes.row->nfrag || machine_memory_cycles(m, m->line, m->l2 + 1.0) >
					      blocks * machine_memory_cycles(m, m->line, m->l2);
}

/* Returns the rows of the next panels that a round prefetches, so that the tiles of a block
 * together fetch them all. Returns 0 if the innermost loop is not unrolled, or has no vectors. */
static int64_t rows_ahead(const PlanInput *in, const ContractPlan *c, const TileCode *t)
{
	const bool rounds = t->unroll == UNROLL_K || c->axes.row->nfrag || c->b.decoded.value.i;
	if (!has_panels(&c->b) || !is_worth_fetching(in, c) || c->vector.lanes == 1 ||
	    c->b.decoded.slab || !rounds)
		return 0;
	const int64_t tiles = c->block.rows / c->tile.mr,
		      panels = (t->nv + c->b.vectors - 1) / c->b.vectors;
	return ceil_div(panels * t->unroll, tiles);
}

/* Returns how many rows of the tile before are finished at each step, so that it is done when the
 * current tile is (software pipelining); 0: none. Epilogues that are written in turn are not late:
 * they overlap by themselves, and two copies of them would be much code. */
static uint32_t rows_late(const PlanInput *in, const ContractPlan *c, const TileCode *t)
{
	const double steps = contract_steps(in, &c->axes) / c->axes.step;
	if (!c->columns.turn || !c->a.runs.used || t->edge || t->together > 1)
		return 0;
	return steps > 1 ? (uint32_t)ceil_div(c->tile.mr, (int64_t)steps) : c->tile.mr;
}

/* Returns no more accumulators than keep the units busy: what is decoded wants registers, too.
 * Fields take them in turn. */
static uint32_t ways_of_decoded(const PlanInput *in, const ContractPlan *c, uint32_t ways,
				uint32_t nv)
{
	enum { SLACK = 2 };
	const double enough = SLACK * tuning_step_latency(in->target, c->axes.row) /
			      tuning_step_cycles(in->target, c->axes.row);
	while (ways > 1 &&
	       (ways * c->tile.mr * nv > enough || (c->axes.nfield > 1 && c->axes.nfield % ways)))
		ways /= 2;
	return ways;
}

static TileCode tile_code(const PlanInput *in, const ContractPlan *c, uint32_t nv, int64_t edge)
{
	const Nest *n = in->nest;
	TileCode t = {.nv = nv, .edge = edge, .ways = ways_of(in, (TileSize){c->tile.mr, nv})};
	if (c->b.access == B_ALONG || c->axes.row->pairs)
		t.ways = 1;
	if (c->b.decoded.value.i)
		t.ways = ways_of_decoded(in, c, t.ways, nv);
	const uint32_t vectors = (c->tile.mr * t.ways + UNROLL_K) * nv + 1;
	t.tight = c->vector.lanes > 1 &&
		  vectors * tuning_registers(in->target, in->contraction.dtype) >
			  in->target->isa.nvreg;
	t.looped = predict_epilogue(n->k) * c->tile.mr * nv > INLINE_EPILOGUE;
	t.unroll = c->axes.nk > 0 && !contract_has_tail(n, &c->axes) &&
				   sym_divides(n->syms, UNROLL_K,
					       n->extent[c->axes.k[c->axes.nk - 1]]) &&
				   (!c->b.decoded.value.i || c->axes.nfield == 1)
			   ? UNROLL_K
			   : 1;
	if (c->axes.row->nfrag) {
		t.ways = 1;
		t.looped = true;
		t.tight = false;
		t.together =
			predict_is_long(n->k) && !contract_has_blocks(c) ? MAX_TOGETHER / nv : 1;
		t.unroll = c->axes.step / c->axes.nfield;
		t.late = rows_late(in, c, &t);
	}
	t.ahead = rows_ahead(in, c, &t);
	return t;
}

/* Chooses the widths of tiles of columns. A constant number of columns leaves a rest of constant
 * width. */
void contract_choose_columns(const PlanInput *in, ContractPlan *c)
{
	const int64_t lanes = c->vector.lanes, width = (int64_t)c->tile.nv * lanes;
	int64_t cols;
	c->columns = (ColumnTiles){
		.symbolic = !sym_is_const(in->nest->syms, in->nest->extent[c->axes.n], &cols),
		.turn = !c->axes.row->nfrag || c->axes.row->biased || contract_has_blocks(c) ? 0
			: is_worth_fetching(in, c) ? TURN_FETCHED
						   : TURN};
	if (c->columns.symbolic || cols >= width)
		c->columns.whole = tile_code(in, c, c->tile.nv, 0);
	if (c->columns.symbolic)
		c->columns.rest = tile_code(in, c, 1, 0);
	else if (cols % width)
		c->columns.rest = tile_code(in, c, (uint32_t)ceil_div(cols % width, lanes),
					    cols % width % lanes);
}
