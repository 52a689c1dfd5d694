/* The plan of attention of few rows, such as one new token that reads a cache: keys and values are
 * read in place, once, and no more of them than conditions let through. */
#include "codegen/plan/attention/attention.h"

#include <math.h>

enum {
	MOST_ROWS = 32,
	KEYS = 128,     /* of a block */
	ABREAST = 4,    /* keys whose sums are made together */
	PART_KEYS = 512 /* of a task, if members of the batch are too few to keep processors busy;
			   the same for all lengths, on which results then do not depend */
};

enum {
	LOCAL_ELEMENTS = 49152, /* of a task's arrays */
	SCALAR_ELEMENTS = 2048  /* of a target without vectors: stacks may be small */
};

static int64_t round_up(int64_t x, int64_t to)
{
	return (x + to - 1) / to * to;
}

/* Moves axes of rows out of the batch. Returns the number of rows; 0: it is no small constant.
 * may_cut: of more rows, those along one axis may be members of the batch. */
static int64_t find_rows(const PlanInput *in, AttentionPlan *p, bool may_cut)
{
	const Nest *n = in->nest;
	const uint64_t of_q = n->deps[p->value.q.i],
		       others = n->deps[p->value.k.i] | n->deps[p->value.v.i];
	int64_t rows = 1, extent;
	uint32_t nbatch = 0;
	if (p->axis.row != NO_AXIS && !sym_is_const(n->syms, n->extent[p->axis.row], &rows))
		return 0;
	if (rows > MOST_ROWS && may_cut) {
		p->axis.batch[p->axis.nbatch++] = p->axis.row;
		p->axis.row = p->limits.row = NO_AXIS;
		rows = 1;
	}
	for (uint32_t i = 0; i < p->axis.nbatch; i++) {
		const uint32_t a = p->axis.batch[i];
		const bool is_row = of_q >> a & 1 && !(others >> a & 1) &&
				    sym_is_const(n->syms, n->extent[a], &extent) &&
				    rows * extent <= MOST_ROWS;
		if (!is_row) {
			p->axis.batch[nbatch++] = a;
			continue;
		}
		rows *= extent;
		if (p->axis.row == NO_AXIS)
			p->axis.row = p->limits.row = a;
		else
			p->limits.inner.axis[p->limits.inner.n++] = a;
	}
	p->axis.nbatch = nbatch;
	return rows <= MOST_ROWS ? rows : 0;
}

/* Whether rows of what is loaded are read by vectors. */
static bool has_unit_rows(const PlanInput *in, Kx load, uint32_t axis)
{
	return nest_coef_is(in->nest, in->nest->offset[load.i], axis, 1);
}

/* Returns the bytes of an element of what x is computed of, along that axis. */
static double element_bytes(const PlanInput *in, Kx x, uint32_t axis)
{
	const Nest *n = in->nest;
	bool *part = ARENA_ARRAY(n->arena, bool, n->k->kx.n);
	double bytes = 0;
	part[x.i] = true;
	for (uint32_t i = x.i; i > 0; i--) {
		const KxData *d = &n->k->kx.data[i];
		for (uint32_t j = 0; part[i] && j < d->nin; j++)
			part[d->in[j].i] = true;
		if (part[i] && d->kind == KX_LOAD && n->deps[i] >> axis & 1)
			bytes += dtype_size(attention_stored(in, (Kx){i}));
	}
	return bytes;
}

/* Chooses tiles of rows, whose sums fit three quarters of the registers. */
static void choose_tile(const PlanInput *in, AttentionPlan *p, int64_t rows)
{
	const uint32_t all = 3 * in->target->isa.nvreg / 4 / tuning_registers(in->target, DT_f32),
		       vectors = attention_vectors(p);
	const int64_t most = all / 2 < 1               ? 1
			     : all / 2 > MAX_TILE_ROWS ? MAX_TILE_ROWS
						       : all / 2,
		      tiles = (rows + most - 1) / most;
	p->tile.mr = (uint32_t)((rows + tiles - 1) / tiles);
	p->tile.nv = MAX_TILE_VECTORS;
	while (p->tile.nv > 1 && (p->tile.nv > vectors || p->tile.nv * p->tile.mr > all))
		p->tile.nv /= 2;
	p->few.abreast = ABREAST;
	while (p->few.abreast > 1 &&
	       (p->few.abreast > p->vector.lanes || p->few.abreast * (p->tile.mr + 1) > all))
		p->few.abreast /= 2;
}

/* Chooses blocks, and cuts keys into tasks if members of the batch are few. Returns whether arrays
 * fit. */
static bool choose_blocks(const PlanInput *in, AttentionPlan *p, int64_t rows)
{
	const Nest *n = in->nest;
	const uint32_t lanes = p->vector.lanes;
	const bool scalar = lanes == 1;
	p->block.cols = round_up(scalar ? KEYS / 8 : KEYS, lanes);
	p->block.rows = round_up(rows, p->tile.mr);
	p->blocks = sym_int(n->syms, 1);
	const Sym members = attention_members(n, p), keys = n->extent[p->axis.key];
	const bool cut = sym_hint(n->syms, members) < tuning_tasks(&in->target->machine) &&
			 sym_le(n->syms, keys, sym_int(n->syms, PART_KEYS)) != YES;
	p->few.keys = cut ? PART_KEYS : 0;
	p->few.parts =
		cut ? sym_ceildiv(n->syms, keys, sym_int(n->syms, PART_KEYS)) : sym_int(n->syms, 1);
	p->ntasks = sym_mul(n->syms, members, p->few.parts);
	const Cost *results =
		cost_mul(n->arena, cost_number(n->arena, (double)(rows * p->axis.columns)),
			 cost_sym(n->arena, p->ntasks));
	p->few.cost = (KernelCost){.flops = cost_mul(n->arena, cost_number(n->arena, 2), results),
				   .bytes = cost_mul(n->arena, cost_number(n->arena, 4), results)};
	return p->block.rows * (p->block.cols + round_up(p->axis.depths, lanes) +
				round_up(p->axis.columns, lanes)) <=
	       (scalar ? SCALAR_ELEMENTS : LOCAL_ELEMENTS);
}

Refusal attention_plan_few(const PlanInput *in, AttentionPlan *p, bool tiles)
{
	const int64_t rows = find_rows(in, p, !tiles);
	if (!rows)
		return refuse("rows are many");
	if (tiles && (!has_unit_rows(in, p->value.k, p->axis.depth) ||
		      !has_unit_rows(in, p->value.v, p->axis.column)))
		return refuse_near("elements of a key or of a value are apart");
	p->few.rows = rows;
	p->axis.k_step = p->axis.depth;
	p->axis.v_step = p->axis.key;
	choose_tile(in, p, rows);
	if (!choose_blocks(in, p, rows))
		return refuse_near("rows are too long");
	p->nest = in->nest;
	return taken();
}

/* ---- cycles ---- */

/* Returns the bytes of an operand of which each key has a row along an axis. */
static double bytes_of(const PlanInput *in, const AttentionPlan *p, Kx x, uint32_t axis)
{
	return (double)plan_size(in, attention_members(in->nest, p)) *
	       (double)plan_extent(in, p->axis.key) * (double)plan_extent(in, axis) *
	       element_bytes(in, x, axis);
}

double attention_few_cycles(const PlanInput *in, const AttentionPlan *p)
{
	const Machine *m = &in->target->machine;
	const uint32_t lanes = p->vector.lanes;
	const double keys = (double)plan_extent(in, p->axis.key),
		     members = (double)plan_size(in, attention_members(in->nest, p)),
		     rows = (double)p->block.rows, tiles = rows / p->tile.mr,
		     bytes = bytes_of(in, p, p->value.k, p->axis.depth) +
			     bytes_of(in, p, p->value.v, p->axis.column),
		     vectors = ceil((double)p->axis.depths / lanes) + attention_vectors(p);
	/* adding up lanes takes two shuffles and an addition for each sum */
	const double sums = 3 * rows * machine_cycles(m, MOP_add, DT_f32, lanes);
	const double key = vectors * (rows * tuning_step_cycles(in->target, p->by.row) +
				      tiles * machine_cycles(m, MOP_load, DT_f32, lanes)) +
			   (lanes > 1 ? sums : 0);
	const double work = members * keys * key + attention_logit_cycles(in, p, rows, keys),
		     memory = machine_memory_cycles(m, bytes, bytes);
	return (work > memory ? work : memory) + (p->few.keys ? 2 : 1) * m->phase;
}
