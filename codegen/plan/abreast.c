/* Decides which reductions go through several rows together, abreast (unroll-and-jam), see
 * cpu/abreast.c. */
#include "codegen/plan/generic.h"

enum {
	LONG_ROW = 64,
	MANY_BLOCKS = 4 /* from so many on rows are read in blocks, if they do not stay near */
};

/* Whether finding the elements that a reduction reads takes divisions or comparisons of indices,
 * which are the same for all lanes. */
static bool takes_arithmetic(const PlanInput *in, const GenericPlan *p, const Stage *st)
{
	bool *part = ARENA_ARRAY(in->nest->arena, bool, in->nest->k->kx.n), found = false;
	uint64_t axes = 0;
	for (uint32_t i = 0; i < st->nred; i++)
		axes |= UINT64_C(1) << st->red[i];
	part[st->value.i] = true;
	for (uint32_t i = st->value.i; i > 0; i--) {
		const KxData *x = &in->nest->k->kx.data[i];
		if (!part[i] || !(in->nest->deps[i] & axes))
			continue;
		for (uint32_t j = 0; j < x->nin; j++)
			part[x->in[j].i] = true;
		part[x->guard.i] = part[x->other.i] = true;
		found |= x->kind == KX_INRANGE && !generic_varies(p, (Kx){i});
		for (uint32_t j = 0; x->kind == KX_LOAD && j < st->nred; j++) {
			Sym coef;
			found |= !nest_coef(in->nest, in->nest->offset[i], st->red[j], &coef);
		}
	}
	return found;
}

static double row_length(const PlanInput *in, const Stage *st)
{
	double length = 1;
	for (uint32_t j = 0; j < st->nred; j++)
		length *= (double)nest_hint(in->nest, st->red[j]);
	return length;
}

/* Whether the bounds of a row, and what says where its elements are, are read from memory. */
static bool has_bounds(const PlanInput *in, const Stage *st)
{
	for (uint32_t j = 0; j < st->nred; j++)
		if (!nest_axis_is_plain(in->nest, st->red[j]))
			return true;
	return false;
}

/* Returns MAX_ABREAST, or fewer for a short vector axis, if all rows are long, so that each reads
 * lines of its own and waits for its own result, or if finding their elements takes arithmetic or
 * bounds; else 1. */
uint32_t abreast_points(const PlanInput *in, const GenericPlan *p, const StageRole *role)
{
	uint32_t n = MAX_ABREAST;
	bool reduces = false;
	if (!generic_outer_vector(p) || p->turned.across != NO_AXIS ||
	    !nest_axis_is_free(in->nest, p->lanes.axis))
		return 1;
	for (uint32_t i = 0; i < in->nest->k->stage.n; i++) {
		const Stage *st = &in->nest->k->stage.data[i];
		if (st->kind == STAGE_MAP && stage_stores(st) && !nest_maps_inner(in->nest, st))
			continue;
		if ((st->kind != STAGE_REDUCE && st->kind != STAGE_ARGREDUCE) ||
		    !nest_keeps_value(in->nest, st) || nest_maps_inner(in->nest, st) ||
		    (row_length(in, st) < LONG_ROW && !takes_arithmetic(in, p, st) &&
		     !has_bounds(in, st)) ||
		    kernel_needed_where(in->nest->k, i, in->nest->arena).i)
			return 1;
		reduces = reduces || !role || role[i] == RUN_WHOLE || role[i] == RUN_PART;
	}
	while (n > 1 && nest_hint(in->nest, p->lanes.axis) < (int64_t)n * p->lanes.n)
		n /= 2;
	return reduces ? n : 1;
}

/* Returns MAX_ABREAST for a kernel that is one running result, whose rows wait for the element
 * before. Returns 1 if an index is checked: rows stay in order, so that the first index that fails
 * is reported. */
uint32_t abreast_rows(const PlanInput *in, const GenericPlan *p, uint32_t axis)
{
	const Kernel *k = in->nest->k;
	if (p->lanes.axis != NO_AXIS || in->target->isa.of_block || k->stage.n != 1 ||
	    !kernel_is_plain(k) || k->stage.data[0].kind != STAGE_RUNNING ||
	    nest_maps_inner(in->nest, &k->stage.data[0]) || nest_hint(in->nest, axis) < MAX_ABREAST)
		return 1;
	for (uint32_t i = 0; i < k->vvar.n; i++)
		if (k->vvar.data[i].check)
			return 1;
	return MAX_ABREAST;
}

/* Whether all rows of a reduction together are more than the caches of one core: its L2, and half
 * of its share of L3. False for few columns. */
static bool is_far(const PlanInput *in, const GenericPlan *p, const Stage *st)
{
	const Machine *m = &in->target->machine;
	const double columns = (double)nest_hint(in->nest, p->lanes.axis),
		     bytes = columns * row_length(in, st) *
			     dtype_size(in->nest->k->kx.data[st->value.i].dtype);
	return columns >= MANY_BLOCKS * COLUMN_BLOCK &&
	       bytes >= (m->l2 > m->l3 / 2 ? m->l2 : m->l3 / 2);
}

uint32_t abreast_blocked(const PlanInput *in, const GenericPlan *p)
{
	uint32_t found = NO_STAGE;
	if (!generic_outer_vector(p) || p->turned.across != NO_AXIS ||
	    !kernel_is_plain(in->nest->k))
		return NO_STAGE;
	for (uint32_t i = 0; i < in->nest->k->stage.n; i++) {
		const Stage *st = &in->nest->k->stage.data[i];
		if (st->kind == STAGE_MAP && stage_stores(st) && !nest_maps_inner(in->nest, st))
			continue;
		if (found != NO_STAGE || st->kind != STAGE_REDUCE ||
		    !nest_keeps_value(in->nest, st) || nest_maps_inner(in->nest, st) ||
		    !dtype_is_float(stage_acc(st)) || row_length(in, st) < LONG_ROW ||
		    !is_far(in, p, st) || takes_arithmetic(in, p, st) ||
		    kernel_needed_where(in->nest->k, i, in->nest->arena).i)
			return NO_STAGE;
		found = i;
	}
	return found;
}

int64_t abreast_columns(const GenericPlan *p)
{
	if (p->running.across != NO_AXIS)
		return p->lanes.n;
	return p->blocked != NO_STAGE ? COLUMN_BLOCK : MAX_ABREAST * (int64_t)p->lanes.n;
}
