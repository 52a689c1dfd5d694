/* A simple model of a GPU: memory and units are kept busy by threads that are resident. */
#include "codegen/plan/gpu/gpu.h"

#include <math.h>

enum {
	LATENCY = 600,  /* nanoseconds of a load from memory */
	SECTOR = 32,    /* bytes: the least that is moved */
	UNITS = 128,    /* of a multiprocessor: operations that begin in a cycle */
	AHEAD = 4,      /* operations of a unit under way */
	START = 40,     /* operations of a thread before its first element */
	CACHED = 3,     /* how many times faster the caches are than memory */
	OVERLAP = 4     /* what is busy at the same time counts by one part of so many */
};

static double least(double a, double b)
{
	return a < b ? a : b;
}

/* Blocks that a multiprocessor holds at a time. */
static double resident_blocks(const Gpu *g, const GpuWork *w)
{
	double n = least(g->blocks, floor(g->warps * WARP / w->threads));
	if (w->shared > 0)
		n = least(n, floor(g->shared_all / w->shared));
	return n < 1 ? 1 : n;
}

GpuTime gpu_time(const Gpu *g, const GpuWork *w)
{
	const double room = resident_blocks(g, w) * g->multiprocessors,
		     blocks = w->blocks < 1 ? 1 : w->blocks;
	const double threads = least(blocks, room) * w->threads,
		     busy = least(blocks, g->multiprocessors);
	const double wanted = LATENCY * g->memory,
		     there = threads * (w->flight < 1 ? 1 : w->flight);
	const double memory = w->bytes / (g->memory * least(1, there / wanted));
	const double share = least(1, threads / (busy * UNITS * AHEAD)) * busy / g->multiprocessors;
	const double operations = w->operations + START * blocks * w->threads;
	const double units = operations / (g->f32 * 1000 / 2 * share);
	const double waits = ceil(blocks / room) * w->rounds * LATENCY;
	const double most = fmax(fmax(memory, units), waits);
	const double all = GPU_START + most + (memory + units + waits - most) / OVERLAP;
	return (GpuTime){
		.all = all, .start = GPU_START, .memory = memory, .units = units, .waits = waits};
}

void gpu_time_phases(GpuTime *t, uint32_t phases)
{
	const double more = (phases - 1.0) * GPU_START;
	t->all += more;
	t->start += more;
}

void gpu_plan_time(Plan *plan, const Gpu *g, const GpuTime *here, const GpuTime *larger)
{
	plan->time = *here;
	plan->cycles = g->ghz * here->all;
	plan->larger = g->ghz * larger->all;
}

static double operations(const Nest *n, Kx id, bool *met)
{
	const KxData *x = &n->k->kx.data[id.i];
	DType d[4];
	if (!id.i || met[id.i])
		return 0;
	met[id.i] = true;
	double sum = operations(n, x->guard, met) + operations(n, x->other, met);
	for (uint32_t k = 0; k < x->nin; k++) {
		sum += operations(n, x->in[k], met);
		d[k] = n->k->kx.data[x->in[k].i].dtype;
	}
	if (x->kind != KX_OP)
		return sum + 1;
	const bool moves = x->op == OP_convert || x->op == OP_bitcast;
	const ScFn *fn = moves ? NULL : scalar_fn(x->op, d, x->nin);
	return sum + (fn ? fn->cost : 1);
}

double gpu_operations(const Nest *n, Kx x)
{
	return operations(n, x, ARENA_ARRAY(n->arena, bool, n->k->kx.n));
}

double gpu_bytes_each(const Nest *n, Sym offset, uint32_t axis, uint32_t size)
{
	Sym coef;
	if (axis == NO_AXIS || !nest_coef(n, offset, axis, &coef))
		return SECTOR;
	const double stride = fabs((double)sym_hint(n->syms, coef)) * size;
	return stride < size ? (double)size / WARP : least(stride, SECTOR);
}

double gpu_bytes_of_load(const PlanInput *in, uint32_t load, double touched)
{
	const Nest *n = in->nest;
	const Buffer *b = buf_of(n->l, n->k->kx.data[load].buf);
	double points = 1, elements = 1;
	for (uint32_t a = 0; a < n->n; a++)
		if (nest_has_axis(n, a) && n->deps[load] >> a & 1)
			points *= (double)plan_extent(in, a);
	for (uint32_t d = 0; d < b->rank; d++)
		elements *= (double)plan_size(in, b->dim[d]);
	const double once = dtype_size(b->dtype) * least(points, elements);
	return touched <= once ? touched : once + (touched - once) / CACHED;
}

double gpu_inside(const PlanInput *in, const Stage *st)
{
	double n = 1;
	for (uint32_t i = 0; i < st->nred; i++)
		n *= (double)plan_extent(in, st->red[i]);
	const AxisList map = nest_inner(in->nest, st);
	for (uint32_t i = 0; i < map.n; i++)
		n *= (double)plan_extent(in, map.axis[i]);
	return n;
}
