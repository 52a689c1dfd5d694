#include "codegen/plan/tuning.h"

enum {
	SOME_THREADS = 16, /* of a machine that does not say how many */
	TASK_PHASES = 5    /* taking a task, its tables and its first misses cost a fraction of a
			      phase: a twentieth of so many */
};

int64_t tuning_tasks(const Machine *m)
{
	return 2 * (int64_t)(m->threads ? m->threads : SOME_THREADS);
}

/* Returns the elements of as many cycles as starting a phase takes, at 3.2 elements a cycle. */
int64_t tuning_task_work(const Machine *m)
{
	return (int64_t)m->phase * 16 / 5;
}

int64_t tuning_part_work(const Machine *m)
{
	return 2 * tuning_task_work(m);
}

uint32_t tuning_lanes(const Target *t, DType d)
{
	const uint32_t least = target_width(t) < 4 ? target_width(t) : 4,
		       lanes = target_lanes(t, d);
	return lanes < least ? least : lanes;
}

uint32_t tuning_registers(const Target *t, DType d)
{
	const uint32_t bytes = tuning_lanes(t, d) * dtype_size(d);
	return t->isa.vector_bytes && bytes > t->isa.vector_bytes ? bytes / t->isa.vector_bytes : 1;
}

double tuning_tile_spills(const Target *t, DType d, uint32_t mr, uint32_t nv)
{
	return mr > t->isa.npointer || 4 * mr * nv * tuning_registers(t, d) > 3 * t->isa.nvreg ? 1.1
											       : 1;
}

/* Counts the busier of additions and multiplications where they are not fused: each has units of
 * its own. */
double tuning_step_cycles(const Target *t, const MicroKernel *row)
{
	const Machine *m = &t->machine;
	const uint32_t lanes = tuning_lanes(t, row->acc);
	if (row->nfrag) /* a row of a, for as many groups as a fragment has */
		return machine_cycles(m, MOP_tile, DT_f32, 1) * row->group / row->k;
	const double mul = machine_cycles(m, row->cost == MOP_int_mul ? MOP_int_mul : MOP_mul,
					  row->acc, lanes),
		     add = machine_cycles(m, row->acc == DT_i32 ? MOP_simple : MOP_add, row->acc,
					  lanes);
	if (row->cost == MOP_dot || row->cost == MOP_dot_bf16)
		return machine_cycles(m, row->cost, row->acc, lanes);
	if (row->signs)
		return 2 * machine_cycles(m, MOP_mul, DT_f32, lanes) + 2 * add;
	if (row->pairs)
		return machine_cycles(m, MOP_mul, DT_f32, lanes) + add;
	if (row->acc == DT_i32 && row->group > 1) /* by products of 16 bits: two with their sums,
	                                             and what takes groups of a apart */
		return 2 * (machine_cycles(m, MOP_mul, DT_f32, lanes) + add);
	if (row->cost == MOP_fma && isa_has(&t->isa, ISA_FMA))
		return row->group * machine_cycles(m, MOP_fma, row->acc, lanes);
	return row->group * (mul > add ? mul : add);
}

double tuning_parts_cycles(const Target *t, const MicroKernel *row, uint32_t vectors)
{
	const uint32_t operations = row->group == 1 || row->pairs || row->signs ||
						    row->cost == MOP_dot ||
						    row->cost == MOP_dot_bf16
					    ? 0
				    : row->acc == DT_f32 ? 2
							 : 8;
	return vectors * operations *
	       machine_cycles(&t->machine, MOP_simple, row->acc, tuning_lanes(t, row->acc));
}

double tuning_step_latency(const Target *t, const MicroKernel *row)
{
	if (row->nfrag) /* of an operation, for as many groups */
		return machine_latency(&t->machine, MOP_tile, DT_f32);
	const MachineOp op = row->cost == MOP_dot || row->cost == MOP_dot_bf16       ? row->cost
			     : row->acc == DT_i32                                    ? MOP_simple
			     : row->cost == MOP_fma && isa_has(&t->isa, ISA_FMA) ? MOP_fma
										     : MOP_add;
	return (op == MOP_fma || op == MOP_add ? row->group : 1) *
	       machine_latency(&t->machine, op, row->acc);
}

/* Returns the cycles of broadcasting a group of a into all lanes. A single number is a memory
 * operand of the multiply-add or costs one lane's load; a group, for a dot product, a load of a
 * vector. */
static double spread_cycles(const Target *t, const MicroKernel *row)
{
	return machine_cycles(&t->machine, MOP_load, row->acc,
			      row->group > 1 ? tuning_lanes(t, row->acc) : 1);
}

/* Returns the cycles of the busiest of multiply-adds and loads, or the latency of an accumulator;
 * the vectors of b come from L2 for every tile again. */
double tuning_tile_cycles(const Target *t, const MicroKernel *row, uint32_t mr, uint32_t nv)
{
	const Machine *m = &t->machine;
	const DType d = row->acc;
	const double latency = tuning_step_latency(t, row);
	const double fma = mr * nv * tuning_step_cycles(t, row) * tuning_tile_spills(t, d, mr, nv) +
			   tuning_parts_cycles(t, row, mr + nv);
	const double vector = machine_cycles(m, MOP_load, d, tuning_lanes(t, d));
	const double load = mr * spread_cycles(t, row) + nv * vector + 1;
	const double most = fma > load ? fma : load;
	return (most < latency ? latency : most) + nv * vector;
}

static double fma_cycles(const Target *t, DType d)
{
	return machine_cycles(&t->machine, isa_has(&t->isa, ISA_FMA) ? MOP_fma : MOP_mul, d,
			      tuning_lanes(t, d));
}

/* Returns the cycles of reading a vector of b, where `elements` elements are read before it is read
 * again. */
static double reading(const Target *t, DType d, double elements)
{
	double size = dtype_size(d);
	return machine_memory_cycles(&t->machine, size * tuning_lanes(t, d), size * elements);
}

double tuning_gathered_cycles(const Target *t, DType d, double elements)
{
	return machine_cycles(&t->machine, MOP_gather, d, tuning_lanes(t, d)) +
	       reading(t, d, elements);
}

double tuning_copied_cycles(const Target *t, DType d, double elements, CopyKind kind)
{
	const Machine *m = &t->machine;
	uint32_t lanes = tuning_lanes(t, d);
	double cycles = machine_cycles(m, MOP_store, d, lanes);
	cycles += machine_cycles(m, kind == COPY_GATHERED ? MOP_gather : MOP_load, d, lanes);
	for (uint32_t width = 1; kind == COPY_TURNED && width < lanes; width *= 2)
		cycles += machine_cycles(m, MOP_shuffle, d, lanes);
	return cycles + 2 * reading(t, d, elements); /* read and written */
}

/* Whether a cache holds `bytes` bytes in pieces of `together` bytes that lie `spacing` bytes apart,
 * which maps them to few sets. A quarter of the cache is left to what passes by. */
static bool holds(const Machine *m, uint32_t cache, double bytes, double together, double spacing)
{
	double way = (double)cache / m->ways, apart = spacing < way ? spacing : way;
	return bytes * (apart > together ? apart / together : 1) <= 0.75 * cache;
}

double tuning_spaced_cycles(const Machine *m, double bytes, double steps, double together,
			    double spacing)
{
	double set = steps * together;
	if (holds(m, m->l1, set, together, spacing))
		return machine_memory_cycles(m, bytes, 0);
	if (holds(m, m->l2, set, together, spacing))
		return machine_memory_cycles(m, bytes, m->l2);
	return machine_memory_cycles(m, bytes, set > m->l2 ? set : m->l2 + 1.0);
}

double tuning_waiting_cycles(const Machine *m, double steps, double together, double spacing)
{
	enum { FROM_L2 = 1, FROM_AFAR = 14 }; /* on a Sapphire Rapids, at least */
	if (holds(m, m->l1, steps * together, together, spacing))
		return 0;
	return holds(m, m->l2, steps * together, together, spacing) ? FROM_L2 : FROM_AFAR;
}

/* Returns the rows of a tile whose row takes so many registers: beside it lie a row of b, and two
 * registers for a and for moves. */
static uint32_t rows_of_registers(const Isa *isa, uint32_t registers)
{
	return isa->nvreg > registers + 2 ? (isa->nvreg - registers - 2) / registers : 1;
}

/* Limits a tile of one vector to the rows of a tile of two. */
uint32_t tuning_tile_rows(const Target *t, DType d, uint32_t nv)
{
	const uint32_t room = rows_of_registers(&t->isa, nv * tuning_registers(t, d)),
		       limit = rows_of_registers(&t->isa, 2),
		       rows = room > limit ? limit : room;
	return rows > MAX_TILE_ROWS ? MAX_TILE_ROWS : rows ? rows : 1;
}

/* Returns the number of multiply-adds that take so many cycles. */
static double work_of(const Target *t, DType d, double cycles)
{
	return cycles * tuning_lanes(t, d) / fma_cycles(t, d);
}

double tuning_block_work(const Target *t, DType d)
{
	return work_of(t, d, TASK_PHASES * (double)t->machine.phase);
}

double tuning_row_speed(const Target *t, const MicroKernel *row)
{
	return row->nfrag ? fma_cycles(t, DT_f32) / tuning_step_cycles(t, row) : 1;
}

double tuning_stream_work(const Target *t, DType d, double bytes, double set)
{
	return work_of(t, d, machine_memory_cycles(&t->machine, bytes, set));
}

double tuning_gather_work(const Target *t, DType d, double elements)
{
	return work_of(t, d, elements * machine_cycles(&t->machine, MOP_gather, d, 1));
}

/* Returns the elements that fill 5/8 of L2, the rest of which is left to the other operand. */
int64_t tuning_block_elements(const Machine *m, DType d)
{
	return m->l2 / 8 * 5 / dtype_size(d);
}

/* Returns eight times a core's share of the last cache: eight cores at least have a part of it, and
 * the model may use all. */
int64_t tuning_beyond_caches(const Machine *m)
{
	return 8 * (int64_t)(m->l3 ? m->l3 : m->l2);
}
