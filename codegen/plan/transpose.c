/* Decides which loads are transposed by tiles in registers, see cpu/transpose.c. */
#include "codegen/plan/generic.h"

enum {
	FEW_STAGES = 2,
	FEW_OPS = 4
}; /* what is repeated for every column: that many results of that
      many operations */

/* Returns, by Kx, whether some stage or value variable is computed from the expression. */
static const bool *find_live(const PlanInput *in)
{
	const Kernel *k = in->nest->k;
	bool *live = ARENA_ARRAY(in->nest->arena, bool, k->kx.n);
	for (uint32_t i = 0; i < k->stage.n; i++)
		live[k->stage.data[i].value.i] = true;
	for (uint32_t i = 0; i < k->vvar.n; i++)
		live[k->vvar.data[i].value.i] = true;
	for (uint32_t i = k->kx.n; i-- > 1;) {
		const KxData *x = &k->kx.data[i];
		for (uint32_t j = 0; live[i] && j < x->nin; j++)
			live[x->in[j].i] = true;
		if (live[i])
			live[x->guard.i] = live[x->other.i] = true;
	}
	return live;
}

/* Whether the loads are of the first and the second elements of pairs that are contiguous along
 * the axis. */
static bool are_pairs(const PlanInput *in, uint32_t first, uint32_t second, uint32_t axis)
{
	const Nest *nest = in->nest;
	const KxData *a = &nest->k->kx.data[first], *b = &nest->k->kx.data[second];
	const SchedArg *x = &nest->from[first], *y = &nest->from[second];
	return a->kind == KX_LOAD && b->kind == KX_LOAD && dtype_is_float(a->dtype) &&
	       !a->guard.i && !b->guard.i && a->buf.i == b->buf.i && x->kind == y->kind &&
	       x->k == y->k && x->packed == y->packed &&
	       nest_coef_is(nest, nest->offset[first], axis, 2) &&
	       sym_eq(nest->syms, sym_addi(nest->syms, nest->offset[first], 1),
		      nest->offset[second]) == YES;
}

/* Returns 1 or 2 if the load is the first or the second of a pair that is contiguous along the
 * axis, else 0 (Turned.part). */
static uint32_t part_of(const PlanInput *in, const bool *live, uint32_t load, uint32_t axis)
{
	for (uint32_t i = 1; i < in->nest->k->kx.n; i++) {
		if (live[i] && are_pairs(in, load, i, axis))
			return 1;
		if (live[i] && are_pairs(in, i, load, axis))
			return 2;
	}
	return 0;
}

/* Whether the load goes along the axis by 1, or, where lanes can be shuffled, by -1. */
static bool runs_along(const PlanInput *in, uint32_t load, uint32_t axis)
{
	const KxData *x = &in->nest->k->kx.data[load];
	return nest_coef_is(in->nest, in->nest->offset[load], axis, 1) ||
	       (!x->guard.i && dtype_size(dtype_compute(x->dtype)) <= 4 &&
		nest_coef_is(in->nest, in->nest->offset[load], axis, -1));
}

static bool is_turned(const PlanInput *in, const bool *live, uint32_t load, uint32_t along,
		      uint32_t across)
{
	Sym offset = in->nest->offset[load];
	return offset.i && in->nest->deps[load] >> across & 1 &&
	       nest_axes(in->nest, offset) >> across & 1 &&
	       (runs_along(in, load, along) ||
		(nest_coef_is(in->nest, offset, along, 2) && part_of(in, live, load, along))) &&
	       !nest_coef_is(in->nest, offset, across, 1);
}

static bool stores_along(const PlanInput *in, uint32_t axis)
{
	for (uint32_t i = 0; i < in->nest->k->stage.n; i++)
		if (!nest_coef_is(in->nest, in->nest->store[i], axis, 1))
			return false;
	return true;
}

/* Whether all stages store one value for each outer point. */
static bool is_map(const PlanInput *in)
{
	for (uint32_t i = 0; i < in->nest->k->stage.n; i++) {
		const Stage *st = &in->nest->k->stage.data[i];
		if (st->kind != STAGE_MAP || !stage_stores(st) || nest_maps_inner(in->nest, st))
			return false;
	}
	return in->nest->k->stage.n > 0 && kernel_is_plain(in->nest->k);
}

static uint32_t count_turned(const PlanInput *in, const bool *live, uint32_t along, uint32_t across)
{
	uint32_t n = 0;
	for (uint32_t i = 1; i < in->nest->k->kx.n; i++)
		n += live[i] && in->nest->k->kx.data[i].kind == KX_LOAD &&
		     is_turned(in, live, i, along, across);
	return n;
}

static uint32_t tile_lanes(const PlanInput *in, const Turned *t)
{
	uint32_t size = 1, lanes = target_width(in->target);
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t bytes = dtype_size(in->nest->k->kx.data[t->load[i].i].dtype);
		size = bytes > size ? bytes : size;
	}
	return size > 4 && lanes > 4 ? lanes / 2 : lanes;
}

/* How much of the tiles along an axis is used, and how many of them are whole. */
typedef struct {
	double used, whole;
} Filled;

static Filled filled(const PlanInput *in, uint32_t axis, uint32_t lanes)
{
	int64_t n = nest_hint(in->nest, axis), whole = n / lanes;
	double tiles = (double)(whole + (n % lanes != 0));
	return n > 0 ? (Filled){(double)n / (tiles * lanes), (double)whole / tiles}
		     : (Filled){0, 0};
}

/* Whether transposed tiles take less time than loading and storing each of their elements. A tile
 * at the end passes through memory, with a mask and a bound for each of its rows. */
static bool is_worth(const PlanInput *in, const Turned *t, uint32_t along, uint32_t lanes)
{
	const Machine *m = &in->target->machine;
	uint32_t steps = 0;
	Filled a = filled(in, t->across, lanes), b = filled(in, along, lanes);
	double tiles = 0, ones = 0;
	while (1u << steps < lanes)
		steps++;
	for (uint32_t i = 0; i < t->n; i++) {
		DType d = in->nest->k->kx.data[t->load[i].i].dtype;
		double shuffle = machine_cycles(m, MOP_shuffle, d, lanes);
		double move = machine_cycles(m, MOP_load, d, lanes) +
			      machine_cycles(m, MOP_store, d, lanes);
		double one = machine_cycles(m, MOP_load, d, 1) + machine_cycles(m, MOP_store, d, 1);
		double end = move + 4 * machine_cycles(m, MOP_scalar, DT_i64, 1);
		tiles += lanes * (move + steps * shuffle + (1 - a.whole * b.whole) * end);
		ones += a.used * b.used * lanes * lanes * one;
	}
	return tiles < ones;
}

static uint32_t find_axes(const PlanInput *in, const bool *live, uint32_t *along, uint32_t *across)
{
	uint32_t most = 0;
	for (uint32_t b = 0; b < in->nest->n; b++)
		for (uint32_t a = 0; in->nest->var[b].i && in->nest->outer >> b & 1 &&
				     stores_along(in, b) && a < in->nest->n;
		     a++) {
			bool usable = a != b && in->nest->var[a].i && in->nest->outer >> a & 1;
			uint32_t n = usable ? count_turned(in, live, a, b) : 0;
			if (n <= most)
				continue;
			most = n;
			*along = b;
			*across = a;
		}
	return most;
}

static bool is_simple(const PlanInput *in, const Turned *t, const bool *live)
{
	uint32_t ops = 0;
	for (uint32_t i = 1; i < in->nest->k->kx.n; i++)
		ops += live[i] && in->nest->k->kx.data[i].kind != KX_LOAD &&
		       in->nest->k->kx.data[i].kind != KX_CONST;
	return t->n == 1 && in->nest->k->stage.n <= FEW_STAGES && ops <= FEW_OPS;
}

Refusal transpose_find(const PlanInput *in, Turned *t, uint32_t *along, uint32_t *lanes)
{
	*t = (Turned){.across = NO_AXIS};
	if (target_width(in->target) == 1 || !is_map(in))
		return taken();
	const bool *live = find_live(in);
	uint32_t n = find_axes(in, live, along, &t->across);
	if (!n)
		return taken();
	Kx *load = ARENA_ARRAY(in->nest->arena, Kx, n);
	uint32_t *part = ARENA_ARRAY(in->nest->arena, uint32_t, n);
	for (uint32_t i = 1; i < in->nest->k->kx.n; i++)
		if (live[i] && in->nest->k->kx.data[i].kind == KX_LOAD &&
		    is_turned(in, live, i, t->across, *along)) {
			part[t->n] = part_of(in, live, i, t->across);
			load[t->n++].i = i;
		}
	t->load = load;
	t->part = part;
	t->simple = is_simple(in, t, live);
	*lanes = tile_lanes(in, t);
	if (is_worth(in, t, *along, *lanes))
		return taken();
	const char *why = arena_printf(in->nest->arena, "tiles of %u by %u would be mostly empty",
				       *lanes, *lanes);
	*t = (Turned){.across = NO_AXIS};
	return refuse_near(why);
}

/* ---- neighbours ---- */

enum { MOST_NEIGHBOUR_OPS = 32 /* that are repeated for each of them */ };

/* Whether every load goes along the axis or does not depend on it, and few operations follow. */
static bool loads_along(const PlanInput *in, const bool *live, uint32_t axis)
{
	const Nest *nest = in->nest;
	uint32_t ops = 0;
	for (uint32_t i = 1; i < nest->k->kx.n; i++) {
		const KxData *x = &nest->k->kx.data[i];
		ops += live[i] && x->kind == KX_OP;
		if (!live[i] || x->kind != KX_LOAD || !(nest->deps[i] >> axis & 1))
			continue;
		if (!nest->offset[i].i || (nest_axes(nest, nest->offset[i]) >> axis & 1 &&
					   !nest_coef_is(nest, nest->offset[i], axis, 1)))
			return false;
	}
	return ops <= MOST_NEIGHBOUR_OPS;
}

bool transpose_neighbours(const PlanInput *in, Turned *t, uint32_t *along, uint32_t *lanes)
{
	const Nest *nest = in->nest;
	const uint32_t n = target_width(in->target);
	int64_t c;
	if (n == 1 || in->target->isa.of_block || !is_map(in) || nest->k->stage.n != 1 ||
	    nest->k->stage.data[0].dtype == DT_bool || nest->k->vvar.n)
		return false;
	const bool *live = find_live(in);
	const Sym store = nest->store[0];
	for (uint32_t a = 0; a < nest->n; a++) {
		if (!nest->var[a].i || !(nest->outer >> a & 1) ||
		    !sym_is_const(nest->syms, nest->extent[a], &c) ||
		    (c != 2 && c != MOST_NEIGHBOURS) || !nest_coef_is(nest, store, a, 1))
			continue;
		for (uint32_t b = 0; b < nest->n; b++) {
			if (a == b || !nest->var[b].i || !(nest->outer >> b & 1) ||
			    nest_hint(nest, b) < 2 * (int64_t)n ||
			    !nest_coef_is(nest, store, b, c) || !loads_along(in, live, b))
				continue;
			*t = (Turned){.across = a, .neighbours = (uint32_t)c};
			*along = b;
			*lanes = n;
			return true;
		}
	}
	return false;
}

/* ---- running rows ---- */

enum { MOST_RUNNING_OPS = 8 }; /* that are repeated for every column of a tile */

/* Whether the kernel is one running result of rows that are written along themselves, by an
 * operation of few instructions. */
static bool is_running(const PlanInput *in)
{
	const Kernel *k = in->nest->k;
	const Stage *st = &k->stage.data[0];
	return k->stage.n == 1 && kernel_is_plain(k) && st->kind == STAGE_RUNNING &&
	       st->nred == 1 && !nest_maps_inner(in->nest, st) && !k->vvar.n &&
	       st->dtype != DT_bool && reduce_op(stage_combine(st)) != SC_const &&
	       nest_coef_is(in->nest, in->nest->store[0], st->red[0], 1) &&
	       target_width(in->target) > 1 && !in->target->isa.of_block;
}

/* Finds the loads along the rows. Returns whether there are some, all loads that differ from row to
 * row and from element to element are among them, and few operations follow. */
static bool running_loads(const PlanInput *in, const bool *live, uint32_t along, Turned *t)
{
	const Nest *nest = in->nest;
	const uint32_t most = nest->k->kx.n;
	Kx *load = ARENA_ARRAY(nest->arena, Kx, most);
	uint32_t ops = 0;
	*t = (Turned){.across = nest->k->stage.data[0].red[0],
		      .load = load,
		      .part = ARENA_ARRAY(nest->arena, uint32_t, most)};
	for (uint32_t i = 1; i < most; i++) {
		const KxData *x = &nest->k->kx.data[i];
		ops += live[i] && x->kind == KX_OP;
		if (!live[i] || x->kind != KX_LOAD || !(nest->deps[i] >> t->across & 1) ||
		    !(nest->deps[i] >> along & 1))
			continue;
		if (!nest->offset[i].i || x->guard.i ||
		    !nest_coef_is(nest, nest->offset[i], t->across, 1))
			return false;
		load[t->n++].i = i;
	}
	return t->n && ops <= MOST_RUNNING_OPS;
}

/* Returns the lanes of tiles of running results: so many that vectors of the widest elements fill
 * registers. */
static uint32_t running_lanes(const PlanInput *in, const Turned *t)
{
	const Stage *st = &in->nest->k->stage.data[0];
	uint32_t lanes = tile_lanes(in, t);
	return (dtype_size(stage_acc(st)) > 4 || dtype_size(st->dtype) > 4) &&
			       lanes == target_width(in->target) && lanes > 4
		       ? lanes / 2
		       : lanes;
}

bool transpose_running(const PlanInput *in, Turned *running, uint32_t *along, uint32_t *lanes)
{
	Turned t;
	int64_t most = 0;
	*running = (Turned){.across = NO_AXIS};
	if (!is_running(in))
		return false;
	const bool *live = find_live(in);
	for (uint32_t a = 0; a < in->nest->n; a++) {
		const int64_t rows = nest_hint(in->nest, a);
		if (!in->nest->var[a].i || !(in->nest->outer >> a & 1) || rows <= most ||
		    !running_loads(in, live, a, &t))
			continue;
		const uint32_t n = running_lanes(in, &t);
		if (rows < n || nest_hint(in->nest, t.across) < 2 * (int64_t)n)
			continue;
		*running = t;
		*along = a;
		*lanes = n;
		most = rows;
	}
	return most;
}
