#include "codegen/plan/predict.h"

#include <math.h>

#include "codegen/plan/axes.h"
#include "ir/scalar/scalar.h"

/* The expressions of a stage while it is counted. */
typedef struct {
	const PlanInput *in;
	const PlanLoops *loops;
	Busy *busy;
	double rounds[2 * MAX_AXES]; /* by loop: of the loop and those around it */
	double operations;           /* in all rounds */
} Counter;

double predict_rounds(const PlanInput *in, const PlanLoops *loops, uint32_t axis)
{
	const double extent = (double)plan_extent(in, axis);
	return axis == loops->lane_axis ? ceil(extent / loops->lanes) : extent;
}

static bool depends(uint64_t axes, uint32_t axis)
{
	return axes >> axis & 1;
}

/* Returns the number of loops inside of which an expression that depends on these axes is
 * computed. */
static uint32_t depth_of(const PlanLoops *loops, uint64_t axes)
{
	uint32_t n = loops->n;
	while (n && !depends(axes, loops->axis[n - 1]))
		n--;
	return n;
}

static double times_at(const Counter *c, uint32_t depth)
{
	return depth ? c->rounds[depth - 1] : 1;
}

/* Returns the lanes of a value that depends on these axes: all if it differs from lane to lane,
 * else 1. */
static uint32_t lanes_of(const PlanLoops *loops, uint64_t axes)
{
	return loops->lane_axis != NO_AXIS && depends(axes, loops->lane_axis) ? loops->lanes : 1;
}

/* ---- memory ---- */

/* Returns how many of the lanes a short lane axis fills; at least 1. */
static uint32_t filled_lanes(const Counter *c, uint32_t lanes)
{
	const int64_t extent = plan_extent(c->in, c->loops->lane_axis);
	return extent < 1 ? 1 : extent < lanes ? (uint32_t)extent : lanes;
}

/* Returns the cycles of an access: of all lanes if it depends on the lane axis, else of one
 * element. A load along the axis `turned` is transposed; another one without unit stride is a
 * gather. */
static double access_cycles(const Counter *c, MachineOp op, DType d, Sym offset, uint64_t axes)
{
	const Machine *m = &c->in->target->machine;
	const uint32_t lanes = lanes_of(c->loops, axes);
	if (lanes > 1 && c->loops->turned != NO_AXIS &&
	    (nest_coef_is(c->in->nest, offset, c->loops->turned, 1) ||
	     nest_coef_is(c->in->nest, offset, c->loops->turned, -1)))
		return machine_cycles(m, op, d, lanes) +
		       log2(lanes) * machine_cycles(m, MOP_shuffle, d, lanes);
	if (lanes > 1 && !nest_coef_is(c->in->nest, offset, c->loops->lane_axis, 1))
		return machine_cycles(m, MOP_gather, d, filled_lanes(c, lanes));
	return machine_cycles(m, op, d, lanes);
}

/* Returns the bytes that reading an element brings along: those of a line, if its neighbours in the
 * loops from `first` on lie in other lines. */
static double bytes_each(const Counter *c, Sym offset, uint64_t axes, uint32_t first, double size)
{
	const Nest *n = c->in->nest;
	double least = c->in->target->machine.line;
	for (uint32_t k = first; k < c->loops->n; k++) {
		Sym coef;
		if (!depends(axes, c->loops->axis[k]) ||
		    !nest_coef(n, offset, c->loops->axis[k], &coef))
			continue;
		const double stride = fabs((double)plan_size(c->in, coef)) * size;
		least = stride < least ? stride : least;
	}
	return least < size ? size : least;
}

/* Adds the memory cycles of a load that a loop, on which it does not depend, repeats: it reads
 * again what the loops inside have read, which may be more than L1 holds. */
static void count_again(Counter *c, Sym offset, uint64_t axes, double size)
{
	const PlanLoops *loops = c->loops;
	const uint32_t depth = depth_of(loops, axes);
	uint32_t again = 0;
	double all = 1, set = 1, once = 1;
	while (again < depth && (depends(axes, loops->axis[again]) ||
				 predict_rounds(c->in, loops, loops->axis[again]) <= 1))
		again++;
	for (uint32_t k = 0; k < depth; k++) {
		const bool own = depends(axes, loops->axis[k]);
		const double extent = own ? (double)plan_extent(c->in, loops->axis[k])
					  : predict_rounds(c->in, loops, loops->axis[k]);
		all *= extent;
		once *= own ? extent : 1;
		set *= own && k > again ? extent : 1;
	}
	const double each = bytes_each(c, offset, axes, again, size);
	const Machine *m = &c->in->target->machine;
	if (all > once && set * each > m->l1)
		c->busy->memory += machine_memory_cycles(m, (all - once) * each, set * each);
}

static void count_load(Counter *c, Kx x, double times)
{
	const Nest *n = c->in->nest;
	const KxData *d = &n->k->kx.data[x.i];
	const DType stored = buf_of(n->l, d->buf)->dtype;
	const uint64_t axes = n->deps[x.i];
	c->busy->loads += times * access_cycles(c, MOP_load, stored, n->offset[x.i], axes);
	if (stored != dtype_compute(stored))
		c->busy->units += times * machine_cycles(&c->in->target->machine, MOP_convert,
							 DT_f32, lanes_of(c->loops, axes));
	count_again(c, n->offset[x.i], nest_axes(n, n->offset[x.i]), dtype_size(stored));
}

/* ---- expressions ---- */

static double operation_cycles(const Counter *c, const KxData *d, uint32_t lanes)
{
	const Machine *m = &c->in->target->machine;
	const Kernel *k = c->in->nest->k;
	DType in[4];
	if (d->op == OP_bitcast)
		return 0;
	if (d->op == OP_convert)
		return machine_cycles(m, MOP_convert, d->dtype, lanes);
	for (uint32_t j = 0; j < d->nin; j++)
		in[j] = k->kx.data[d->in[j].i].dtype;
	const ScFn *fn = scalar_fn(d->op, in, d->nin);
	return (fn ? fn->cost : 1) * machine_cycles(m, MOP_fma, d->dtype, lanes);
}

static void count_expression(Counter *c, Kx x)
{
	const Nest *n = c->in->nest;
	const KxData *d = &n->k->kx.data[x.i];
	const Machine *m = &c->in->target->machine;
	const uint64_t axes = n->deps[x.i];
	const double times = times_at(c, depth_of(c->loops, axes));
	const uint32_t lanes = lanes_of(c->loops, axes);
	c->operations += d->kind == KX_CONST ? 0 : times;
	switch (d->kind) {
	case KX_LOAD:
		count_load(c, x, times);
		break;
	case KX_OP:
		c->busy->units += times * operation_cycles(c, d, lanes);
		break;
	case KX_INDEX:
	case KX_INRANGE:
		if (lanes > 1)
			c->busy->units += times * machine_cycles(m, MOP_simple, DT_i64, lanes);
		else
			c->busy->scalar += times * machine_cycles(m, MOP_scalar, DT_i64, 1);
		break;
	default:
		break;
	}
}

static void mark_operands(const Kernel *k, Kx x, bool *part)
{
	const KxData *d = &k->kx.data[x.i];
	for (uint32_t j = 0; j < d->nin; j++)
		part[d->in[j].i] = true;
	part[d->guard.i] = part[d->other.i] = true;
}

/* ---- stages ---- */

/* Whether the stage adds products of floats, which a fused multiply-add does in one operation. */
static bool adds_product(const Kernel *k, const Stage *st)
{
	const KxData *d = &k->kx.data[st->value.i];
	return st->kind == STAGE_REDUCE && stage_combine(st) == REDUCE_SUM && d->kind == KX_OP &&
	       d->op == OP_mul && dtype_is_float(d->dtype);
}

static uint64_t inner_map(const Nest *n, const Stage *st)
{
	const AxisList map = nest_inner(n, st);
	return axes_set(map.axis, map.n);
}

/* Returns the axes of the points at which a stage combines or stores, by bit. */
static uint64_t stage_axes(const Nest *n, const Stage *st)
{
	return n->outer | inner_map(n, st) | axes_set(st->red, st->nred);
}

double predict_waits(const Machine *m, double chains, double cycles, double operations)
{
	const double together = m->window / fmax(operations, 1);
	return chains * cycles / fmax(together, 1);
}

/* Adds what the combinations of a reduction keep busy, and how long they wait. A row waits for its
 * own results only, so that short rows overlap. chains: accumulators of a row. */
static void count_combination(Counter *c, const Stage *st, uint32_t chains)
{
	const Nest *n = c->in->nest;
	const Machine *m = &c->in->target->machine;
	const PlanLoops *loops = c->loops;
	const bool fused = isa_has(&c->in->target->isa, ISA_FMA) && adds_product(n->k, st);
	const uint64_t axes = stage_axes(n, st);
	const double times = times_at(c, depth_of(loops, axes)),
		     rows = times_at(c, depth_of(loops, n->outer | inner_map(n, st)));
	const uint32_t lanes = lanes_of(loops, axes);
	c->busy->units +=
		times * machine_cycles(m, fused ? MOP_fma : MOP_add, stage_acc(st), lanes);
	if (adds_product(n->k, st) && !fused)
		c->busy->units += times * machine_cycles(m, MOP_mul, stage_acc(st), lanes);
	double waits = times * machine_latency(m, fused ? MOP_fma : MOP_add, stage_acc(st)) /
		       chains,
	       operations = c->operations + times;
	if (lanes > 1 && depends(axes_set(st->red, st->nred), loops->lane_axis)) {
		waits += rows * 2 * log2(lanes) * machine_latency(m, MOP_shuffle, stage_acc(st));
		operations += rows * 3 * log2(lanes);
		c->busy->units += rows * log2(lanes) *
				  (machine_cycles(m, MOP_shuffle, stage_acc(st), lanes) +
				   machine_cycles(m, MOP_add, stage_acc(st), lanes));
	}
	if (rows > 0)
		c->busy->waits += predict_waits(m, rows, waits / rows, operations / rows);
}

static void count_store(Counter *c, uint32_t stage)
{
	const Nest *n = c->in->nest;
	const Stage *st = &n->k->stage.data[stage];
	const uint64_t axes = n->outer | inner_map(n, st);
	const double times = times_at(c, depth_of(c->loops, axes));
	const uint32_t lanes = lanes_of(c->loops, axes), lane_axis = c->loops->lane_axis;
	if (lanes > 1 && axes_in_pair(n, stage, lane_axis))
		c->busy->stores +=
			times *
			(machine_cycles(&c->in->target->machine, MOP_store, st->dtype, lanes) +
			 machine_cycles(&c->in->target->machine, MOP_shuffle, st->dtype, lanes));
	else if (stage_stores(st))
		c->busy->stores +=
			times * access_cycles(c, MOP_store, buf_of(n->l, st->store.buf)->dtype,
					      n->store[stage], axes);
	if (nest_keeps_row(n, st))
		c->busy->stores += times * machine_cycles(&c->in->target->machine, MOP_store,
							  st->dtype, lanes_of(c->loops, axes));
}

static void start(Counter *c)
{
	double rounds = 1;
	for (uint32_t k = 0; k < c->loops->n; k++)
		c->rounds[k] = rounds *= predict_rounds(c->in, c->loops, c->loops->axis[k]);
}

void predict_stage(const PlanInput *in, const PlanLoops *loops, uint32_t stage, uint32_t chains,
		   Busy *busy)
{
	const Nest *n = in->nest;
	const Stage *st = &n->k->stage.data[stage];
	Counter c = {.in = in, .loops = loops, .busy = busy};
	bool *part = ARENA_ARRAY(n->arena, bool, n->k->kx.n);
	start(&c);
	part[st->value.i] = part[st->where.i] = true;
	for (uint32_t i = n->k->kx.n; i-- > 1;) {
		if (!part[i])
			continue;
		mark_operands(n->k, (Kx){i}, part);
		if (i != st->value.i || !adds_product(n->k, st))
			count_expression(&c, (Kx){i});
	}
	if (st->kind == STAGE_REDUCE || st->kind == STAGE_ARGREDUCE || st->kind == STAGE_RUNNING)
		count_combination(&c, st, chains);
	count_store(&c, stage);
}

void predict_value(const PlanInput *in, const PlanLoops *loops, Kx value, Busy *busy)
{
	const Nest *n = in->nest;
	Counter c = {.in = in, .loops = loops, .busy = busy};
	bool *part = ARENA_ARRAY(n->arena, bool, n->k->kx.n);
	start(&c);
	part[value.i] = true;
	for (uint32_t i = value.i + 1; i-- > 1;) {
		if (!part[i])
			continue;
		mark_operands(n->k, (Kx){i}, part);
		count_expression(&c, (Kx){i});
	}
}

static double cost_bytes(const PlanInput *in, const KernelCost *cost)
{
	return cost_at(in->nest->syms, cost->bytes, in->at.var, in->at.value, in->at.n);
}

static double memory_cycles(const PlanInput *in, const Busy *b, const KernelCost *cost)
{
	const double bytes = cost_bytes(in, cost);
	return b->memory + machine_memory_cycles(&in->target->machine, bytes, bytes);
}

static double compute_cycles(const Busy *b)
{
	return fmax(fmax(fmax(b->units, b->loads), fmax(b->stores, b->scalar)), b->waits);
}

/* Where more is computed, a core sees fewer accesses ahead if each is narrower. */
enum { FEW_OPERATIONS = 3 };

bool predict_is_stream(const PlanInput *in, const Busy *b, const KernelCost *cost)
{
	const Machine *m = &in->target->machine;
	return cost_bytes(in, cost) > m->l2 + (double)m->l3 &&
	       memory_cycles(in, b, cost) > FEW_OPERATIONS * compute_cycles(b);
}

double predict_phase(const PlanInput *in, const Busy *b, const KernelCost *cost)
{
	const double memory = memory_cycles(in, b, cost), compute = compute_cycles(b);
	return in->target->machine.phase / 8.0 + fmax(compute, memory) + fmin(compute, memory) / 4;
}

uint32_t predict_epilogue(const Kernel *k)
{
	uint32_t cost = 0;
	for (uint32_t i = 1; i < k->kx.n; i++) {
		const KxData *x = &k->kx.data[i];
		cost += x->kind == KX_LOAD;
		if (x->kind != KX_OP || !op_is_scalar(x->op))
			continue;
		DType in[4];
		for (uint32_t j = 0; j < x->nin; j++)
			in[j] = k->kx.data[x->in[j].i].dtype;
		const ScFn *fn = scalar_fn(x->op, in, x->nin);
		cost += fn ? fn->cost : 1;
	}
	return cost;
}

bool predict_is_long(const Kernel *k)
{
	enum { LONG_CHAIN = 16 }; /* operations, of some 4 cycles each */
	return predict_epilogue(k) > LONG_CHAIN;
}
