/* Rewriting the axes of a kernel before a schedule is chosen: neighbours that are contiguous in every access
 * become one, so that element-wise kernels are one long loop and rows of pixels one dimension. */
#include "codegen/cpu/axes.h"

static bool used_as_value(const Cpu *s, uint32_t axis)
{
	for (uint32_t i = 1; i < s->e.k->kx.n; i++) {
		const KxData *x = &s->e.k->kx.data[i];
		if (x->kind != KX_INDEX && x->kind != KX_INRANGE)
			continue;
		for (uint32_t j = 0; j < x->nidx; j++)
			if (eval_axes(&s->e, x->idx[j]) >> axis & 1)
				return true;
	}
	return false;
}

/* coef(a) == coef(b) * extent(b) in this offset. */
static bool contiguous(const Cpu *s, Sym offset, uint32_t a, uint32_t b)
{
	Sym ca, cb;
	if (!eval_coef(&s->e, offset, a, &ca) || !eval_coef(&s->e, offset, b, &cb))
		return false;
	return sym_eq(s->e.syms, ca, sym_mul(s->e.syms, cb, s->e.axes.extent[b])) == YES;
}

bool axes_can_merge(const Cpu *s, uint32_t a, uint32_t b)
{
	if (used_as_value(s, a) || used_as_value(s, b))
		return false;
	for (uint32_t i = 1; i < s->e.k->kx.n; i++)
		if (s->e.offset[i].i && !contiguous(s, s->e.offset[i], a, b))
			return false;
	for (uint32_t i = 0; i < s->e.k->stage.n; i++)
		if (s->e.store[i].i && !contiguous(s, s->e.store[i], a, b))
			return false;
	return true;
}

/* Merges two of the axes, by bit. */
static bool try_merge(Cpu *s, uint64_t *among)
{
	for (uint32_t a = 0; a < s->e.axes.n; a++) {
		for (uint32_t b = 0; b < s->e.axes.n; b++) {
			bool usable = a != b && s->e.axes.var[a].i && s->e.axes.var[b].i && s->e.axes.n < MAX_AXES;
			if (!usable || !(*among >> a & 1) || !(*among >> b & 1) || !axes_can_merge(s, a, b))
				continue;
			*among |= UINT64_C(1) << eval_merge_axes(&s->e, a, b);
			return true;
		}
	}
	return false;
}

void axes_merge_outer(Cpu *s, uint64_t among)
{
	while (try_merge(s, &among))
		;
}

int64_t axes_hint(const Cpu *s, uint32_t axis)
{
	return sym_hint(s->e.syms, s->e.axes.extent[axis]);
}

/* ---- the vector axis ---- */

enum {
	SPREAD_BYTES = 128 << 10, /* of local arrays: what a task may have on its stack (SHARE_ELEMENTS of 8 bytes) */
	WORTH_LANES = 2           /* times that gathers have to be worth: indices and masks cost, too */
};

static double access_score(const Cpu *s, Sym offset, uint32_t axis)
{
	Sym coef;
	if (!eval_coef(&s->e, offset, axis, &coef))
		return -4;
	if (sym_is(s->e.syms, coef, 1))
		return 2;
	return sym_is(s->e.syms, coef, 0) ? 0.1 : -4;
}

/* Reversed and every second element: loads and a shuffle, of whole vectors of at most a register and without a
 * condition. Tails are read one by one, so there must be few of them. */
static bool can_shuffle(const Cpu *s, uint32_t load, uint32_t axis)
{
	const KxData *x = &s->e.k->kx.data[load];
	int64_t lanes = target_lanes(s->target, DT_f32), n = axes_hint(s, axis);
	return !x->guard.i && dtype_size(dtype_compute(x->dtype)) <= 4 && n >= lanes &&
	       (n >= 4 * lanes || n % lanes == 0) &&
	       (eval_coef_is(&s->e, s->e.offset[load], axis, -1) || eval_coef_is(&s->e, s->e.offset[load], axis, 2));
}

static double load_score(const Cpu *s, uint32_t load, uint32_t axis)
{
	return can_shuffle(s, load, axis) ? 1 : access_score(s, s->e.offset[load], axis);
}

uint64_t axes_local_bound(const Cpu *s, const Stage *st)
{
	uint64_t total = 1;
	for (uint32_t i = 0; i < st->nmap; i++) {
		int64_t lo, hi;
		sym_range(s->e.syms, s->e.axes.extent[st->map[i]], &lo, &hi);
		total *= (uint64_t)hi;
	}
	return total;
}

/* What rows in local arrays take when each element has lanes. */
static bool can_be_spread(const Cpu *s)
{
	uint64_t bytes = 0, lanes = target_lanes(s->target, DT_f32);
	for (uint32_t i = 0; i < s->e.k->stage.n; i++)
		if (s->e.k->stage.data[i].result == RESULT_LOCAL)
			bytes += axes_local_bound(s, &s->e.k->stage.data[i]) * dtype_size(s->e.k->stage.data[i].dtype) * lanes;
	return bytes <= SPREAD_BYTES && bytes <= s->target->machine.l2 / 2;
}

static bool can_be_vector(const Cpu *s, uint32_t axis)
{
	for (uint32_t i = 0; i < s->e.k->stage.n; i++) {
		const Stage *st = &s->e.k->stage.data[i];
		for (uint32_t j = 0; j < st->nred; j++)
			if (st->red[j] == axis && st->kind != STAGE_REDUCE && st->kind != STAGE_ARGREDUCE)
				return false;
		/* rows are sorted one by one */
		if (st->kind == STAGE_SORT)
			return false;
	}
	return !(s->e.axes.outer >> axis & 1) || can_be_spread(s);
}

/* Vector instructions that a point takes, functions included. */
static double point_operations(const Cpu *s)
{
	double n = 0;
	for (uint32_t i = 1; i < s->e.k->kx.n; i++) {
		const KxData *x = &s->e.k->kx.data[i];
		DType d[4];
		for (uint32_t j = 0; x->kind == KX_OP && j < x->nin; j++)
			d[j] = s->e.k->kx.data[x->in[j].i].dtype;
		const ScFn *fn = x->kind != KX_OP || x->op == OP_convert || x->op == OP_bitcast ? NULL : scalar_fn(x->op, d, x->nin);
		n += fn ? fn->cost : x->kind == KX_OP;
	}
	for (uint32_t i = 0; i < s->e.k->stage.n; i++) {
		const Stage *st = &s->e.k->stage.data[i];
		bool combines = st->kind == STAGE_REDUCE || st->kind == STAGE_RUNNING;
		if (combines && st->combine == REDUCE_LOGADDEXP)
			n += scalar_lib("exp", st->acc)->cost + scalar_lib("log1p", st->acc)->cost;
	}
	return n;
}

/* Cycles of as many points as there are lanes along an axis, some of which its extent may leave empty; of NO_AXIS one by one. */
static double points_cycles(const Cpu *s, uint32_t axis, double operations)
{
	const Machine *m = &s->target->machine;
	bool alone = axis == NO_AXIS;
	uint32_t lanes = target_lanes(s->target, DT_f32), width = alone ? 1 : lanes;
	double cycles = operations * machine_cycles(m, MOP_add, DT_f32, width);
	for (uint32_t i = 1; i < s->e.k->kx.n; i++)
		if (s->e.offset[i].i)
			cycles += alone || access_score(s, s->e.offset[i], axis) > 0 ? machine_cycles(m, MOP_load, DT_f32, width)
			                                                           : lanes * machine_cycles(m, MOP_gather, DT_f32, 1);
	for (uint32_t i = 0; i < s->e.k->stage.n; i++)
		if (s->e.store[i].i)
			cycles += alone || access_score(s, s->e.store[i], axis) > 0 ? machine_cycles(m, MOP_store, DT_f32, width)
			                                                          : lanes * machine_cycles(m, MOP_gather, DT_f32, 1);
	if (alone)
		return lanes * cycles;
	double n = (double)axes_hint(s, axis);
	return n > 0 ? cycles * (n < lanes ? lanes / n : 1) : 0;
}

/* Where every axis has gathers, but so much is computed that lanes are worth them: neighbouring points. */
static uint32_t choose_gathered(const Cpu *s)
{
	for (uint32_t i = 0; i < s->e.k->stage.n; i++) {
		StageKind kind = s->e.k->stage.data[i].kind;
		if (kind != STAGE_MAP && kind != STAGE_REDUCE && kind != STAGE_RUNNING)
			return NO_AXIS;
	}
	double operations = point_operations(s), least = points_cycles(s, NO_AXIS, operations) / WORTH_LANES;
	uint32_t best = NO_AXIS;
	for (uint32_t a = 0; a < s->e.axes.n; a++) {
		if (!s->e.axes.var[a].i || !(s->e.axes.outer >> a & 1) || !can_be_vector(s, a))
			continue;
		double cycles = points_cycles(s, a, operations);
		if (cycles <= 0 || cycles >= least)
			continue;
		least = cycles;
		best = a;
	}
	return best;
}

uint32_t axes_choose_vector(const Cpu *s)
{
	uint32_t best = NO_AXIS;
	double best_score = 0;
	for (uint32_t a = 0; a < s->e.axes.n; a++) {
		if (!s->e.axes.var[a].i || !can_be_vector(s, a))
			continue;
		double score = 0;
		for (uint32_t i = 1; i < s->e.k->kx.n; i++)
			if (s->e.offset[i].i)
				score += load_score(s, i, a);
		for (uint32_t i = 0; i < s->e.k->stage.n; i++)
			if (s->e.store[i].i)
				score += 2 * access_score(s, s->e.store[i], a);
		double filled = (double)axes_hint(s, a) / target_lanes(s->target, DT_f32);
		if (score > 0)
			score *= filled < 1 ? filled : 1;
		if (score > best_score) {
			best_score = score;
			best = a;
		}
	}
	return best == NO_AXIS ? choose_gathered(s) : best;
}

/* ---- the order of loops ---- */

/* How far apart neighbours along the axis are in the largest store (else load). */
static int64_t stride_of(const Cpu *s, uint32_t axis)
{
	Sym coef;
	for (uint32_t i = s->e.k->stage.n; i-- > 0;)
		if (s->e.store[i].i && eval_coef(&s->e, s->e.store[i], axis, &coef) && !sym_is(s->e.syms, coef, 0))
			return sym_hint(s->e.syms, coef);
	for (uint32_t i = 1; i < s->e.k->kx.n; i++)
		if (s->e.offset[i].i && eval_coef(&s->e, s->e.offset[i], axis, &coef) && !sym_is(s->e.syms, coef, 0))
			return sym_hint(s->e.syms, coef);
	return INT64_MAX;
}

uint32_t axes_outer_order(const Cpu *s, uint32_t *order)
{
	uint32_t n = 0;
	for (uint32_t a = 0; a < s->e.axes.n; a++)
		if (s->e.axes.var[a].i && (s->e.axes.outer >> a & 1) && a != s->e.lanes.axis)
			order[n++] = a;
	for (uint32_t i = 1; i < n; i++)
		for (uint32_t j = i; j > 0 && stride_of(s, order[j]) > stride_of(s, order[j - 1]); j--) {
			uint32_t t = order[j];
			order[j] = order[j - 1];
			order[j - 1] = t;
		}
	return n;
}
