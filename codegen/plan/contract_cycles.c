/* Predicts what a contraction's plan takes: its tiles, what they read again, copies, the epilogue.
 */
#include <math.h>

#include "codegen/plan/contract.h"

enum { PAGE = 4096 /* bytes */ };

/* Counts at hint sizes. */
typedef struct {
	double steps, members, rows, cols;
	double row_tiles, row_blocks; /* of a member of the batch */
	double col_tiles;
} Counts;

static Counts count(const PlanInput *in, const ContractPlan *c)
{
	Counts n = {.steps = contract_steps(in, &c->axes),
		    .members = contract_members(in, &c->axes),
		    .rows = (double)plan_size(in, c->rows),
		    .cols = (double)plan_extent(in, c->axes.n)};
	n.row_tiles = ceil(n.rows / c->tile.mr);
	n.row_blocks = ceil(n.rows / (double)c->block.rows);
	n.col_tiles = ceil(n.cols / ((double)c->tile.nv * c->vector.lanes));
	return n;
}

/* Adds the multiply-adds, unpacking and loads of the tiles of a micro-kernel on vectors. steps: of
 * all tiles; step: the cycles of one multiply-add. */
static void count_vectors(const PlanInput *in, const ContractPlan *c, const TileCode *t,
			  double steps, double step, Busy *busy)
{
	const Machine *m = &in->target->machine;
	const DType d = c->vector.dtype;
	const uint32_t mr = c->tile.mr;
	busy->units += steps * mr * t->nv * step * tuning_tile_spills(in->target, d, mr, t->nv);
	busy->units += steps * tuning_parts_cycles(in->target, c->axes.row, mr + t->nv);
	if (c->axes.half != NO_AXIS &&
	    !c->b.decoded.value.i) /* a shift for two steps, and a mask for each */
		busy->units +=
			steps * t->nv * 1.5 * machine_cycles(m, MOP_simple, d, c->vector.lanes);
	busy->loads += steps * (mr * machine_cycles(m, MOP_load, d, 1) +
				t->nv * machine_cycles(m, MOP_load, d, c->vector.lanes));
}

/* Adds the operations, loads and stores of the tiles of a micro-kernel on fragments. A row of a
 * fragment is a vector; it passes through a local array unless a is read in place. steps: of all
 * tiles. */
static void count_fragments(const ContractPlan *c, const TileCode *t, double steps,
			    const Machine *m, Busy *busy)
{
	const DType d = c->vector.dtype;
	const uint32_t lanes = c->vector.lanes,
		       fragments = (c->tile.mr + c->axes.row->rows - 1) / c->axes.row->rows;
	const double vectors = steps / c->axes.step, copied = c->a.runs.used ? 0 : c->tile.mr;
	const double rows = (double)fragments * c->axes.row->rows;
	busy->units += vectors * rows * t->nv * machine_cycles(m, MOP_tile, DT_f32, 1);
	busy->loads += vectors * (copied + rows + t->nv * (double)lanes) *
		       machine_cycles(m, MOP_load, d, lanes);
	busy->stores += vectors * copied * machine_cycles(m, MOP_store, d, lanes);
}

/* Adds what steps of fragments that are blocks take besides: their sums pass through memory. Tiles
 * of 16 x 16 on a Sapphire Rapids take 17 cycles to multiply, 16 to store and 42 to add to the sums
 * of blocks before, and all of that together as long as one after the other. A step waits for its
 * last operation, and for what that stores. steps: of all tiles. */
static void count_block_steps(const ContractPlan *c, const TileCode *t, double steps,
			      const Machine *m, Busy *busy)
{
	const DType d = c->vector.dtype;
	const uint32_t lanes = c->vector.lanes;
	const double each = steps / c->axes.step;
	busy->units +=
		each * c->tile.mr * t->nv *
		(machine_cycles(m, MOP_store, d, lanes) + machine_cycles(m, MOP_load, d, lanes));
	busy->units += each * 2 * c->axes.row->rows * machine_latency(m, MOP_tile, DT_f32);
}

/* Adds the cycles of an operand's vectors: loads, conversions, taking groups apart. Rows begin
 * anywhere, so that a part of the loads reads two lines. */
static void count_vectors_of(const PlanInput *in, const ContractAxes *x, Kx load, double vectors,
			     Busy *busy)
{
	const Machine *m = &in->target->machine;
	const DType d = in->contraction.dtype,
		    stored = buf_of(in->nest->l, in->nest->k->kx.data[load.i].buf)->dtype;
	const double bytes = contract_lanes(in) * (micro_groups(x->row) ? 4 : dtype_size(stored));
	busy->loads += vectors * machine_cycles(m, MOP_load, d, contract_lanes(in)) *
		       (1 + bytes / m->line);
	if (micro_groups(x->row))
		busy->units += vectors * tuning_parts_cycles(in->target, x->row, 1);
	else if (stored != d)
		busy->units += vectors * machine_cycles(m, MOP_convert, d, contract_lanes(in));
}

/* Whether b comes from memory: it outlives a call, in which other tensors pass the caches, or is
 * more than they hold. */
static bool comes_from_memory(const PlanInput *in, const ContractAxes *x, Kx b)
{
	const Buffer *buf = buf_of(in->nest->l, in->nest->k->kx.data[b.i].buf);
	const double bytes = contract_steps(in, x) * (double)plan_extent(in, x->n) *
			     contract_members(in, x) * (double)contract_size(in);
	return buf->kind == BUF_STATE || buf->kind == BUF_INPUT ||
	       bytes > in->target->machine.l2 + (double)in->target->machine.l3;
}

/* Whether several columns of b begin on one page. */
static bool share_pages(const PlanInput *in, const ContractAxes *x, Kx b)
{
	const Nest *n = in->nest;
	const double size = dtype_size(buf_of(n->l, n->k->kx.data[b.i].buf)->dtype);
	Sym coef;
	return nest_coef(n, n->offset[b.i], x->n, &coef) &&
	       fabs((double)plan_size(in, coef)) * size < PAGE;
}

/* Returns the rounds of a sum whose last axis goes by vectors. */
static double rounds_of(const PlanInput *in, const ContractAxes *x)
{
	const double last = (double)plan_extent(in, x->k[x->nk - 1]);
	return last > 0 ? contract_steps(in, x) / last * ceil(last / contract_lanes(in)) : 0;
}

double contract_group_memory(const PlanInput *in, const ContractAxes *x, const OperandB *b)
{
	const double bytes =
		rounds_of(in, x) * b->abreast * (double)contract_size(in) * contract_lanes(in);
	return comes_from_memory(in, x, b->load)
		       ? machine_memory_cycles(&in->target->machine, bytes, INFINITY)
		       : 0;
}

bool contract_mixes_streams(const PlanInput *in, const ContractAxes *x, const OperandB *b)
{
	return !b->in_turn && b->abreast > 1 && share_pages(in, x, b->load);
}

void contract_count_dots(const PlanInput *in, const ContractAxes *x, Kx a, const OperandB *b,
			 uint32_t rows, double times, Busy *busy)
{
	const Machine *m = &in->target->machine;
	const double rounds = rounds_of(in, x), columns = b->abreast, sums = rows * columns,
		     again = b->held ? 0 : b->in_turn ? columns : 1;
	busy->units += times * rounds * sums * tuning_step_cycles(in->target, x->row);
	count_vectors_of(in, x, a, times * rounds * rows * again, busy);
	count_vectors_of(in, x, b->load, times * rounds * columns, busy);
	busy->units += times * sums * (b->chains - 1) *
		       machine_cycles(m, MOP_add, in->contraction.dtype, contract_lanes(in));
	const double chains = b->in_turn ? columns : 1,
		     latency = DOT_SLACK * tuning_step_latency(in->target, x->row),
		     operations = rounds * (sums + rows * again + columns) + 3 * sums;
	busy->waits += predict_waits(m, times * chains, rounds * latency / b->chains,
				     operations / chains);
}

static double again(const Machine *m, double bytes, double set)
{
	return set > m->l1 ? machine_memory_cycles(m, bytes, set) : 0;
}

/* Returns the cycles of adding two vectors' neighbouring lanes into one vector. */
static double halving_cycles(const Machine *m, const ContractPlan *c)
{
	return 2 * machine_cycles(m, MOP_shuffle, c->vector.dtype, c->vector.lanes) +
	       machine_cycles(m, MOP_add, c->vector.dtype, c->vector.lanes);
}

/* Adds what all tiles of b that is read along k keep busy. Each group of columns reads the rows of
 * a again; its sums wait for themselves while the groups behind it are under way. */
static void count_dots(const PlanInput *in, const ContractPlan *c, const Counts *n, Busy *busy)
{
	const Machine *m = &in->target->machine;
	const DType d = c->vector.dtype;
	const uint32_t lanes = c->vector.lanes, mr = c->tile.mr, columns = c->b.abreast;
	const double size = (double)contract_size(in), rows = n->members * n->row_tiles,
		     groups = rows * ceil(n->cols / columns),
		     vectors = rows * ceil(n->cols / lanes) * mr;
	contract_count_dots(in, &c->axes, c->a.load, &c->b, mr, groups, busy);
	busy->units += vectors * (lanes - 1) * halving_cycles(m, c);
	busy->stores += groups * mr * machine_cycles(m, MOP_store, d, lanes);
	busy->loads += groups * mr * machine_cycles(m, MOP_load, d, lanes);
	busy->scalar += groups * columns * machine_cycles(m, MOP_scalar, DT_i64, 1);
	if (contract_mixes_streams(in, &c->axes, &c->b))
		busy->memory += groups / fmax(n->row_tiles, 1) *
				contract_group_memory(in, &c->axes, &c->b);
	if (!c->b.held)
		busy->memory += groups * again(m, n->steps * mr * size,
					       n->steps * (mr + columns) * size);
}

/* Adds what all tiles of that width keep busy. columns: the number of such tiles side by side. */
static void count_tiles(const PlanInput *in, const ContractPlan *c, const Counts *n,
			const TileCode *t, double columns, Busy *busy)
{
	const Machine *m = &in->target->machine;
	const DType d = c->vector.dtype;
	const uint32_t lanes = c->vector.lanes, mr = c->tile.mr;
	const bool unfused = c->axes.row->cost == MOP_fma && !isa_has(&in->target->isa, ISA_FMA);
	const double add = unfused ? c->axes.row->group * machine_cycles(m, MOP_add, d, lanes)
				   : tuning_step_cycles(in->target, c->axes.row),
		     mul = unfused ? c->axes.row->group * machine_cycles(m, MOP_mul, d, lanes) : 0;
	const double load = machine_cycles(m, MOP_load, d, lanes),
		     store = machine_cycles(m, MOP_store, d, lanes);
	const double tiles = n->members * n->row_tiles * columns, steps = tiles * n->steps;
	if (c->axes.row->nfrag)
		count_fragments(c, t, steps, m, busy);
	if (c->axes.row->nfrag && contract_has_blocks(c))
		count_block_steps(c, t, steps, m, busy);
	if (!c->axes.row->nfrag)
		count_vectors(in, c, t, steps, add + mul, busy);
	busy->waits += tiles * fmax(n->steps - t->ways, 0) *
		       tuning_step_latency(in->target, c->axes.row) / t->ways;
	busy->units += tiles * mr * t->nv * (t->ways - 1) * machine_cycles(m, MOP_add, d, lanes);
	busy->scalar += tiles * mr * (c->axes.nm < 2 ? 2 : c->axes.nm) *
			machine_cycles(m, MOP_scalar, DT_i64, 1);
	if (t->looped) {
		busy->stores += tiles * mr * t->nv * store;
		busy->loads += tiles * mr * t->nv * load;
	}
	if (c->b.access == B_GATHERED) {
		busy->loads += n->members * n->row_blocks * columns * n->steps * t->nv *
			       machine_cycles(m, MOP_gather, d, lanes);
		busy->stores += n->members * n->row_blocks * columns * n->steps * t->nv * store;
	}
}

/* Adds the loads, additions and stores of sums in local memory: of blocks of k, or of chunks. */
static void count_sums(const PlanInput *in, const ContractPlan *c, const Counts *n, Busy *busy)
{
	const Machine *m = &in->target->machine;
	const double vectors = n->members * n->rows * ceil(n->cols / c->vector.lanes);
	double times = 0;
	if (c->k_block.used)
		times = 1 + ceil(n->steps / (double)(c->k_block.steps * c->k_block.inner));
	else if (c->sums.cuts.n && (!c->sums.many || n->steps > (double)c->sums.many))
		times = 1 + ceil(n->steps *
				 (in->nest->k->stage.data[in->contraction.sum].reduce.enlarged
					  ? SUM_ENLARGED
					  : 1) /
				 (double)sum_limit(REDUCE_SUM, c->vector.dtype, c->vector.dtype));
	busy->units +=
		times * vectors * machine_cycles(m, MOP_add, c->vector.dtype, c->vector.lanes);
	busy->loads +=
		times * vectors * machine_cycles(m, MOP_load, c->vector.dtype, c->vector.lanes);
	busy->stores +=
		times * vectors * machine_cycles(m, MOP_store, c->vector.dtype, c->vector.lanes);
}

/* Counts decoding b by each tile of rows, or each block of them; slabs are stored. */
static void count_decoding(const PlanInput *in, const ContractPlan *c, const Counts *n, Busy *busy)
{
	const DecodedB *d = &c->b.decoded;
	PlanLoops loops = {.lane_axis = c->axes.n, .lanes = c->vector.lanes, .turned = NO_AXIS};
	Busy once = {0};
	if (!d->value.i)
		return;
	loops.axis[loops.n++] = c->axes.n;
	for (uint32_t i = 0; i < c->axes.nk; i++)
		loops.axis[loops.n++] = c->axes.k[i];
	if (c->axes.half != NO_AXIS)
		loops.axis[loops.n++] = c->axes.half;
	predict_value(in, &loops, d->value, &once);
	const double times = n->members * (d->slab ? n->row_blocks : n->row_tiles);
	busy->units += times * once.units;
	busy->loads += times * n->steps / c->axes.nfield * ceil(n->cols / c->vector.lanes) *
		       machine_cycles(&in->target->machine, MOP_load, DT_f32, c->vector.lanes);
	if (d->slab)
		busy->stores +=
			times * n->steps * ceil(n->cols / c->vector.lanes) *
			machine_cycles(&in->target->machine, MOP_store, DT_f32, c->vector.lanes);
}

/* Counts writing halves of bytes as bytes, for each block of rows. */
static void count_bytes(const PlanInput *in, const ContractPlan *c, const Counts *n, Busy *busy)
{
	const Machine *m = &in->target->machine;
	const DType d = c->vector.dtype;
	const uint32_t lanes = c->vector.lanes;
	const double vectors = n->members * n->row_blocks * n->steps * ceil(n->cols / lanes);
	if (!c->b.bytes)
		return;
	busy->units += vectors * (machine_cycles(m, MOP_load, d, lanes) / c->axes.nfield +
				  1.5 * machine_cycles(m, MOP_simple, d, lanes) +
				  machine_cycles(m, MOP_store, d, lanes));
}

/* Adds the memory cycles of reading operands again: every tile of rows reads a panel of b, and
 * every tile of columns the block's rows of a. */
static void count_reads(const PlanInput *in, const ContractPlan *c, const Counts *n, Busy *busy)
{
	const Machine *m = &in->target->machine;
	const double size = (double)contract_size(in), width = (double)c->tile.nv * c->vector.lanes;
	const double steps = c->k_block.used
				     ? fmin(n->steps, (double)(c->k_block.steps * c->k_block.inner))
				     : n->steps;
	const double b = n->steps * n->cols * size;
	const double b_apart = contract_spacing(in, c->b.load, &c->axes);
	const bool in_place = c->b.access == B_IN_PLACE;
	busy->memory +=
		n->members * (n->row_tiles - n->row_blocks) * again(m, b, steps * width * size);
	if (in_place)
		busy->memory +=
			n->members * (n->row_tiles - n->row_blocks) * n->col_tiles *
			(tuning_spaced_cycles(m, width * size, steps, width * size, b_apart) -
			 tuning_spaced_cycles(m, width * size, steps, width * size, 0)) *
			n->steps;
	busy->memory += n->members * (n->row_blocks - 1) * again(m, b, b);
	if (n->col_tiles > 1)
		busy->memory += n->members * (n->col_tiles - 1) *
				again(m, n->rows * n->steps * size,
				      fmin((double)c->block.rows, n->rows) * steps * size);
}

static void count_epilogue(const PlanInput *in, const ContractPlan *c, Busy *busy)
{
	PlanLoops loops = {.lane_axis = c->axes.n, .lanes = c->vector.lanes, .turned = NO_AXIS};
	for (uint32_t i = 0; i < c->axes.nbatch; i++)
		loops.axis[loops.n++] = c->axes.batch[i];
	loops.axis[loops.n++] = c->axes.n;
	for (uint32_t i = 0; i < c->axes.nm; i++)
		loops.axis[loops.n++] = c->axes.m[i];
	PlanLoops terms = loops; /* of the stage that adds functions of sums of blocks */
	for (uint32_t i = 0; i < c->axes.nblock; i++)
		terms.axis[terms.n++] = c->axes.k[i];
	for (uint32_t i = 0; i < in->nest->k->stage.n; i++)
		if (i != in->contraction.sum)
			predict_stage(in, i == c->sums.blocks.stage ? &terms : &loops, i, 1, busy);
}

double contract_copy_cycles(const PlanInput *in, const CopyPlan *p)
{
	const double elements = (double)plan_size(in, p->panels.numel);
	const bool vectors =
		nest_coef_is(p->nest, p->nest->offset[p->panels.load.i], p->panels.axis, 1);
	const CopyKind kind = p->unit.n         ? COPY_TURNED
			      : vectors           ? COPY_VECTORS
						  : COPY_GATHERED;
	return in->target->machine.phase / 8.0 +
	       elements / p->vector.lanes *
		       tuning_copied_cycles(in->target, p->vector.dtype, elements, kind);
}

double contract_cycles(const PlanInput *in, const ContractPlan *c)
{
	const Counts n = count(in, c);
	const double width = (double)c->tile.nv * c->vector.lanes, whole = floor(n.cols / width);
	Busy busy = {0};
	const bool along = c->b.access == B_ALONG;
	if (along)
		count_dots(in, c, &n, &busy);
	if (c->columns.whole.nv && !along)
		count_tiles(in, c, &n, &c->columns.whole, whole, &busy);
	if (c->columns.rest.nv && !along)
		count_tiles(in, c, &n, &c->columns.rest,
			    c->columns.symbolic ? ceil((n.cols - whole * width) / c->vector.lanes)
						: 1,
			    &busy);
	count_sums(in, c, &n, &busy);
	count_decoding(in, c, &n, &busy);
	count_bytes(in, c, &n, &busy);
	count_reads(in, c, &n, &busy);
	count_epilogue(in, c, &busy);
	busy.scalar += (double)plan_size(in, c->tasks.n) *
		       (in->target->machine.call +
			(c->axes.nm > 1 ? (double)(c->block.rows * c->axes.nm) : 0));
	double cycles = predict_phase(in, &busy, &c->cost);
	for (uint32_t i = 0; i < MAX_COPIES && c->copy[i]; i++)
		cycles += contract_copy_cycles(in, c->copy[i]);
	return cycles;
}

enum {
	NEAR_PAGES = 64, /* of which processors have the addresses at hand */
	PAGE_CYCLES = 7  /* of another one's address from the second level */
};

/* Returns the cycles of translating addresses for each time that all steps of k of an operand are
 * read; 0 if they lie on few pages. */
static double page_cycles(const PlanInput *in, Kx load, const ContractAxes *x)
{
	const Nest *n = in->nest;
	const double size = dtype_size(buf_of(n->l, n->k->kx.data[load.i].buf)->dtype);
	double pages = 1;
	for (uint32_t i = 0; i < x->nk; i++) {
		Sym coef;
		if (nest_coef(n, n->offset[load.i], x->k[i], &coef) &&
		    fabs((double)plan_size(in, coef)) * size >= PAGE)
			pages *= (double)plan_extent(in, x->k[i]);
	}
	return pages > NEAR_PAGES ? pages * PAGE_CYCLES : 0;
}

double contract_page_cycles(const PlanInput *in, const ContractPlan *c)
{
	PlanInput at = *in;
	at.nest = c->nest;
	const Counts n = count(&at, c);
	double cycles = 0;
	if (!c->a.copied && !c->a.turned)
		cycles += page_cycles(&at, c->a.load, &c->axes);
	if (c->b.access == B_IN_PLACE)
		cycles += page_cycles(&at, c->b.load, &c->axes);
	return cycles * n.members * n.row_tiles * n.col_tiles;
}
