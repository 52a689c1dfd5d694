/* Loop coalescing, here called merging of axes, before a schedule is chosen: neighbours that are
 * contiguous in every access become one, so that element-wise kernels are one long loop and rows of
 * pixels one dimension. */
#include "codegen/plan/axes.h"

static bool used_as_value(const Nest *nest, uint32_t axis)
{
	for (uint32_t i = 1; i < nest->k->kx.n; i++) {
		const KxData *x = &nest->k->kx.data[i];
		if (x->kind != KX_INDEX && x->kind != KX_INRANGE)
			continue;
		for (uint32_t j = 0; j < x->nidx; j++)
			if (nest_axes(nest, x->idx[j]) >> axis & 1)
				return true;
	}
	return false;
}

/* Whether the stride of axis a in the offset is that of axis b times the extent of b. */
static bool contiguous(const Nest *nest, Sym offset, uint32_t a, uint32_t b)
{
	Sym ca, cb;
	if (!nest_coef(nest, offset, a, &ca) || !nest_coef(nest, offset, b, &cb))
		return false;
	return sym_eq(nest->syms, ca, sym_mul(nest->syms, cb, nest->extent[b])) == YES;
}

bool axes_can_merge(const Nest *nest, uint32_t a, uint32_t b)
{
	if (used_as_value(nest, a) || used_as_value(nest, b) || !nest_axis_is_free(nest, a) ||
	    !nest_axis_is_free(nest, b))
		return false;
	for (uint32_t i = 1; i < nest->k->kx.n; i++)
		if (nest->offset[i].i && !contiguous(nest, nest->offset[i], a, b))
			return false;
	for (uint32_t i = 0; i < nest->k->stage.n; i++)
		if (nest->store[i].i && !contiguous(nest, nest->store[i], a, b))
			return false;
	return true;
}

/* Merges two of the axes, by bit. */
static bool try_merge(Nest *nest, uint64_t *among)
{
	for (uint32_t a = 0; a < nest->n; a++) {
		for (uint32_t b = 0; b < nest->n; b++) {
			bool usable =
				a != b && nest->var[a].i && nest->var[b].i && nest->n < MAX_AXES;
			if (!usable || !(*among >> a & 1) || !(*among >> b & 1) ||
			    !axes_can_merge(nest, a, b))
				continue;
			*among |= UINT64_C(1) << nest_merge_axes(nest, a, b);
			return true;
		}
	}
	return false;
}

void axes_merge_outer(Nest *nest, uint64_t among)
{
	while (try_merge(nest, &among))
		;
}

/* ---- the vector axis ---- */

enum {
	SPREAD_BYTES = 128 << 10, /* of local arrays: what a task may have on its stack
				     (SHARE_ELEMENTS of 8 bytes) */
	WORTH_LANES = 2, /* times that gathers have to be worth: indices and masks cost, too */
	NARROW = 4 /* times as many lanes as the elements of a row: a gather of each takes less than
	              combining lanes */
};

static double access_score(const PlanInput *in, Sym offset, uint32_t axis)
{
	Sym coef;
	if (!nest_coef(in->nest, offset, axis, &coef))
		return -4;
	if (sym_is(in->nest->syms, coef, 1))
		return 2;
	return sym_is(in->nest->syms, coef, 0) ? 0.1 : -4;
}

/* Whether the axis is so long, or so even, that few elements lie outside of whole vectors: where
 * vectors are shuffled, these are read and stored one by one. */
static bool has_few_tails(const PlanInput *in, uint32_t axis)
{
	const int64_t lanes = target_lanes(in->target, DT_f32), n = nest_hint(in->nest, axis);
	return n >= lanes && (n >= 4 * lanes || n % lanes == 0);
}

/* Whether a load whose stride along the axis is -1 or 2 can be vector loads with a shuffle: it has
 * no condition, and a vector of its elements takes one register at most. */
static bool can_shuffle(const PlanInput *in, uint32_t load, uint32_t axis)
{
	const KxData *x = &in->nest->k->kx.data[load];
	return !x->guard.i && dtype_size(dtype_compute(x->dtype)) <= 4 && has_few_tails(in, axis) &&
	       (nest_coef_is(in->nest, in->nest->offset[load], axis, -1) ||
		nest_coef_is(in->nest, in->nest->offset[load], axis, 2));
}

bool axes_store_pairs(const Nest *nest, uint32_t stage, uint32_t axis)
{
	const Kernel *k = nest->k;
	if (stage + 1 >= k->stage.n)
		return false;
	const Stage *a = &k->stage.data[stage], *b = a + 1;
	if (a->kind != STAGE_MAP || b->kind != STAGE_MAP || !stage_stores(a) || !stage_stores(b) ||
	    a->store.buf.i != b->store.buf.i || nest_maps_inner(nest, a) ||
	    nest_maps_inner(nest, b) || dtype_size(dtype_compute(a->dtype)) > 4)
		return false;
	const Sym from = nest->store[stage], to = nest->store[stage + 1];
	return nest_coef_is(nest, from, axis, 2) &&
	       sym_eq(nest->syms, sym_addi(nest->syms, from, 1), to) == YES;
}

bool axes_in_pair(const Nest *nest, uint32_t stage, uint32_t axis)
{
	return axes_store_pairs(nest, stage, axis) ||
	       (stage && axes_store_pairs(nest, stage - 1, axis));
}

static double store_score(const PlanInput *in, uint32_t stage, uint32_t axis)
{
	return has_few_tails(in, axis) && axes_in_pair(in->nest, stage, axis)
		       ? 1
		       : access_score(in, in->nest->store[stage], axis);
}

static double load_score(const PlanInput *in, uint32_t load, uint32_t axis)
{
	return can_shuffle(in, load, axis) ? 1 : access_score(in, in->nest->offset[load], axis);
}

uint64_t axes_local_bound(const Nest *nest, const Stage *st)
{
	uint64_t total = 1;
	const AxisList map = nest_inner(nest, st);
	for (uint32_t i = 0; i < map.n; i++) {
		int64_t lo, hi;
		sym_range(nest->syms, nest->extent[map.axis[i]], &lo, &hi);
		total *= (uint64_t)hi;
	}
	return total;
}

/* Whether the rows in local arrays stay small when each of their elements has a value for every
 * lane. */
static bool can_be_spread(const PlanInput *in)
{
	uint64_t bytes = 0, lanes = target_lanes(in->target, DT_f32);
	for (uint32_t i = 0; i < in->nest->k->stage.n; i++)
		if (nest_keeps_row(in->nest, &in->nest->k->stage.data[i]))
			bytes += axes_local_bound(in->nest, &in->nest->k->stage.data[i]) *
				 dtype_size(in->nest->k->stage.data[i].dtype) * lanes;
	return bytes <= SPREAD_BYTES && bytes <= in->target->machine.l2 / 2;
}

static bool can_be_vector(const PlanInput *in, uint32_t axis)
{
	if (!nest_axis_is_free(in->nest, axis))
		return false;
	for (uint32_t i = 0; i < in->nest->k->stage.n; i++) {
		const Stage *st = &in->nest->k->stage.data[i];
		for (uint32_t j = 0; j < st->nred; j++)
			if (st->red[j] == axis && st->kind != STAGE_REDUCE &&
			    st->kind != STAGE_ARGREDUCE)
				return false;
		/* rows are sorted one by one */
		if (st->kind == STAGE_SORT)
			return false;
		/* a sum that is a term of another one is one value */
		const AxisList map = nest_inner(in->nest, st);
		if (nest_is_term(in->nest, st) && axes_set(map.axis, map.n) >> axis & 1)
			return false;
	}
	return !(in->nest->outer >> axis & 1) || can_be_spread(in);
}

/* Returns the vector instructions that a point of the kernel takes, functions included. */
static double point_operations(const PlanInput *in)
{
	double n = 0;
	for (uint32_t i = 1; i < in->nest->k->kx.n; i++) {
		const KxData *x = &in->nest->k->kx.data[i];
		DType d[4];
		for (uint32_t j = 0; x->kind == KX_OP && j < x->nin; j++)
			d[j] = in->nest->k->kx.data[x->in[j].i].dtype;
		const ScFn *fn = x->kind != KX_OP || x->op == OP_convert || x->op == OP_bitcast
					 ? NULL
					 : scalar_fn(x->op, d, x->nin);
		n += fn ? fn->cost : x->kind == KX_OP;
	}
	for (uint32_t i = 0; i < in->nest->k->stage.n; i++) {
		const Stage *st = &in->nest->k->stage.data[i];
		bool combines = st->kind == STAGE_REDUCE || st->kind == STAGE_RUNNING;
		if (combines && stage_combine(st) == REDUCE_LOGADDEXP)
			n += scalar_lib("exp", stage_acc(st))->cost +
			     scalar_lib("log1p", stage_acc(st))->cost;
	}
	return n;
}

/* Returns the cycles of as many points as a vector has lanes, if lanes run along the axis; NO_AXIS:
 * without vectors. Counts lanes that a short axis leaves empty. operations: of a point. */
static double points_cycles(const PlanInput *in, uint32_t axis, double operations)
{
	const Machine *m = &in->target->machine;
	bool alone = axis == NO_AXIS;
	uint32_t lanes = target_lanes(in->target, DT_f32), width = alone ? 1 : lanes;
	double cycles = operations * machine_cycles(m, MOP_add, DT_f32, width);
	for (uint32_t i = 1; i < in->nest->k->kx.n; i++)
		if (in->nest->offset[i].i)
			cycles += alone || access_score(in, in->nest->offset[i], axis) > 0
					  ? machine_cycles(m, MOP_load, DT_f32, width)
					  : lanes * machine_cycles(m, MOP_gather, DT_f32, 1);
	for (uint32_t i = 0; i < in->nest->k->stage.n; i++)
		if (in->nest->store[i].i)
			cycles += alone || store_score(in, i, axis) > 0
					  ? machine_cycles(m, MOP_store, DT_f32, width)
					  : lanes * machine_cycles(m, MOP_gather, DT_f32, 1);
	if (alone)
		return lanes * cycles;
	double n = (double)nest_hint(in->nest, axis);
	return n > 0 ? cycles * (n < lanes ? lanes / n : 1) : 0;
}

/* Chooses the outer axis whose lanes take the fewest cycles where every axis needs gathers: so much
 * may be computed that vectors pay. Returns NO_AXIS if they do not. */
static uint32_t choose_gathered(const PlanInput *in)
{
	for (uint32_t i = 0; i < in->nest->k->stage.n; i++) {
		StageKind kind = in->nest->k->stage.data[i].kind;
		if (kind != STAGE_MAP && kind != STAGE_REDUCE && kind != STAGE_RUNNING)
			return NO_AXIS;
	}
	double operations = point_operations(in),
	       least = points_cycles(in, NO_AXIS, operations) / WORTH_LANES;
	uint32_t best = NO_AXIS;
	for (uint32_t a = 0; a < in->nest->n; a++) {
		if (!in->nest->var[a].i || !(in->nest->outer >> a & 1) || !can_be_vector(in, a))
			continue;
		double cycles = points_cycles(in, a, operations);
		if (cycles <= 0 || cycles >= least)
			continue;
		least = cycles;
		best = a;
	}
	return best;
}

/* Chooses the outer axis with the fewest cycles of those along which all results are stored side by
 * side, however they are read; NO_AXIS if there is none. Such an axis is better than an inner axis
 * that fills few lanes, which each point would have to combine. */
static uint32_t choose_stored(const PlanInput *in)
{
	const double operations = point_operations(in);
	double least = 0;
	uint32_t best = NO_AXIS;
	for (uint32_t a = 0; a < in->nest->n; a++) {
		bool usable = in->nest->var[a].i && (in->nest->outer >> a & 1) &&
			      can_be_vector(in, a) && has_few_tails(in, a);
		for (uint32_t i = 0; i < in->nest->k->stage.n; i++)
			usable = usable && (!in->nest->store[i].i || store_score(in, i, a) > 0);
		double cycles = usable ? points_cycles(in, a, operations) : 0;
		if (cycles > 0 && (best == NO_AXIS || cycles < least)) {
			least = cycles;
			best = a;
		}
	}
	return best;
}

static bool has_small_factors(int64_t n)
{
	static const int64_t prime[] = {2, 3, 5, 7, 11, 13};
	for (uint32_t k = 0; k < sizeof prime / sizeof *prime; k++)
		while (n % prime[k] == 0)
			n /= prime[k];
	return n == 1;
}

/* Whether the parts lie at these offsets in the buffer as pairs that are contiguous along the
 * axis. */
static bool are_pairs_along(const Nest *nest, Sym re, Sym im, BufId buf, DType dtype, uint32_t axis)
{
	return buf_of(nest->l, buf)->dtype == dtype && nest_coef_is(nest, re, axis, 2) &&
	       sym_eq(nest->syms, sym_addi(nest->syms, re, 1), im) == YES;
}

/* Whether the load is 0 where its guard does not hold. */
static bool is_zero_beyond(const Nest *nest, const KxData *x)
{
	const KxData *other = &nest->k->kx.data[x->other.i];
	return !x->guard.i ||
	       (other->kind == KX_CONST && dtype_is_float(other->dtype) && other->c.f == 0);
}

bool axes_transforms_along(const Nest *nest, const Target *target, uint32_t stage)
{
	enum { UNIT = 256, MOST_LANES = 16 };
	const Stage *all = nest->k->stage.data, *re = &all[stage], *im = &all[re->fft.next];
	const uint32_t axis = re->red[0], lanes = target_lanes(target, stage_acc(re));
	const KxData *x = &nest->k->kx.data[re->value.i], *y = &nest->k->kx.data[im->value.i];
	int64_t n, table;
	if (lanes == 1 || lanes > MOST_LANES || target->isa.of_block ||
	    !sym_is_const(nest->syms, nest->extent[axis], &n) || n < UNIT || n % UNIT ||
	    !has_small_factors(n) ||
	    !sym_is_const(nest->syms, nest->extent[all[im->fft.next].red[0]], &table) ||
	    table != (re->fft.real ? 3 * n + 1 : 2 * n))
		return false;
	return x->kind == KX_LOAD && y->kind == KX_LOAD && is_zero_beyond(nest, x) &&
	       is_zero_beyond(nest, y) && x->buf.i == y->buf.i &&
	       are_pairs_along(nest, nest->offset[re->value.i], nest->offset[im->value.i], x->buf,
			       stage_acc(re), axis) &&
	       are_pairs_along(nest, nest->store[stage], nest->store[re->fft.next], re->store.buf,
			       stage_acc(re), axis);
}

/* Chooses the longest outer axis as that of the lanes for a transform or a factorisation, which
 * then takes a line or a matrix in each lane. Returns NO_AXIS if it fills less than half of a
 * vector, or if lanes run along the line (axes_transforms_along). */
static uint32_t choose_lines(const PlanInput *in)
{
	uint32_t best = NO_AXIS;
	for (uint32_t a = 0; a < in->nest->n; a++)
		if (in->nest->var[a].i && nest_is_outer(in->nest, a) &&
		    (best == NO_AXIS || nest_hint(in->nest, a) > nest_hint(in->nest, best)))
			best = a;
	if (in->nest->k->stage.data[0].kind == STAGE_FFT &&
	    axes_transforms_along(in->nest, in->target, 0))
		return NO_AXIS;
	const double least = target_lanes(in->target, DT_f32) / 2.0;
	return best != NO_AXIS && (double)nest_hint(in->nest, best) >= least ? best : NO_AXIS;
}

/* Whether a point is a transform or a factorisation: lanes are points. */
static bool has_long_points(const PlanInput *in)
{
	for (uint32_t i = 0; i < in->nest->k->stage.n; i++)
		if (in->nest->k->stage.data[i].kind == STAGE_FFT ||
		    in->nest->k->stage.data[i].kind == STAGE_FACTOR)
			return true;
	return false;
}

/* Returns the score of the stores for lanes along an axis. All stores of one value for each row
 * count together as the one with the lowest score. */
static double stores_score(const PlanInput *in, uint32_t axis)
{
	const Kernel *k = in->nest->k;
	double score = 0, least = 0;
	uint32_t rows = 0;
	for (uint32_t i = 0; i < k->stage.n; i++) {
		if (!in->nest->store[i].i)
			continue;
		const double own = 2 * store_score(in, i, axis);
		const bool row = k->stage.data[i].kind == STAGE_MAP &&
				 !nest_maps_inner(in->nest, &k->stage.data[i]) &&
				 k->axis.n > in->nest->nouter;
		if (!row)
			score += own;
		else if (!rows++ || own < least)
			least = own;
	}
	return score + least;
}

/* Whether a map reads a sum of its own at each point of its inner axes. */
static bool maps_read_terms(const PlanInput *in)
{
	const Kernel *k = in->nest->k;
	for (uint32_t i = 0; i < k->stage.n; i++)
		for (uint32_t j = 0; k->stage.data[i].kind == STAGE_MAP &&
				     (j = nest_next_read(in->nest, k->stage.data[i].value, j)) < i;
		     j++)
			if (nest_is_term(in->nest, &k->stage.data[j]))
				return true;
	return false;
}

uint32_t axes_choose_vector(const PlanInput *in)
{
	uint32_t best = NO_AXIS;
	if (maps_read_terms(in))
		return NO_AXIS;
	if (has_long_points(in))
		return choose_lines(in);
	double best_score = 0;
	for (uint32_t a = 0; a < in->nest->n; a++) {
		if (!in->nest->var[a].i || !can_be_vector(in, a))
			continue;
		double score = 0;
		for (uint32_t i = 1; i < in->nest->k->kx.n; i++)
			if (in->nest->offset[i].i)
				score += load_score(in, i, a);
		score += stores_score(in, a);
		double filled = (double)nest_hint(in->nest, a) / target_lanes(in->target, DT_f32);
		if (score > 0)
			score *= filled < 1 ? filled : 1;
		if (score > best_score) {
			best_score = score;
			best = a;
		}
	}
	if (best == NO_AXIS)
		return choose_gathered(in);
	const bool narrow =
		!(in->nest->outer >> best & 1) &&
		NARROW * nest_hint(in->nest, best) <= (int64_t)target_lanes(in->target, DT_f32);
	const uint32_t stored = narrow ? choose_stored(in) : NO_AXIS;
	return stored == NO_AXIS ? best : stored;
}

/* ---- the order of loops ---- */

/* Returns the stride of an axis, at hint sizes, in the last store that depends on it, else in the
 * first such load; INT64_MAX if there is none. */
static int64_t stride_of(const Nest *nest, uint32_t axis)
{
	Sym coef;
	for (uint32_t i = nest->k->stage.n; i-- > 0;)
		if (nest->store[i].i && nest_coef(nest, nest->store[i], axis, &coef) &&
		    !sym_is(nest->syms, coef, 0))
			return sym_hint(nest->syms, coef);
	for (uint32_t i = 1; i < nest->k->kx.n; i++)
		if (nest->offset[i].i && nest_coef(nest, nest->offset[i], axis, &coef) &&
		    !sym_is(nest->syms, coef, 0))
			return sym_hint(nest->syms, coef);
	return INT64_MAX;
}

uint32_t axes_outer_order(const Nest *nest, uint32_t vector, uint32_t *order)
{
	uint32_t n = 0;
	for (uint32_t a = 0; a < nest->n; a++)
		if (nest->var[a].i && (nest->outer >> a & 1) && a != vector)
			order[n++] = a;
	for (uint32_t i = 1; i < n; i++)
		for (uint32_t j = i;
		     j > 0 && stride_of(nest, order[j]) > stride_of(nest, order[j - 1]); j--) {
			uint32_t t = order[j];
			order[j] = order[j - 1];
			order[j - 1] = t;
		}
	return n;
}
