/* Plans of split reductions, whose long rows are reduced in parts: where a kernel has few outer
 * points and reduces much at each, tasks reduce parts of the rows, and the phases after combine the
 * results in the order of the parts. y = x / sum(x), with a sum over n elements:
 *
 *   phase 1   task (part):  acc over x[lo .. hi) -> temporary[part]
 *   phase 2   task (part):  r = all of temporary[..], in order;  y[lo .. hi) = x / r
 *
 * A reduction that reads another one's result has a phase of its own after it; each task of a phase
 * combines what it needs itself. How rows are cut depends on their length alone, so results have
 * the same bits for every number of threads. */
#include <string.h>

#include "codegen/plan/generic.h"
#include "codegen/plan/tuning.h"

enum {
	MAX_PARTS = 256, /* of all rows; every later task combines those of its row */
	MAX_STAGES = 64
};

typedef struct {
	const PlanInput *in;
	const GenericPlan *plan;
	const TaskGrid *whole;
	uint32_t cut;    /* the axis */
	uint32_t nphase; /* the last one has no partial results */
	uint32_t
		phase[MAX_STAGES]; /* by stage: where it runs; a reduction leaves its parts there */
	uint32_t reader[MAX_STAGES]; /* by stage: the last phase that reads its result */
	uint64_t reads[MAX_STAGES];  /* by stage: reductions whose results it reads */
	Sym per, npart;
} Cuts;

/* ---- what stages read ---- */

/* Stores at indices that depend on data read what the index is made of. */
static uint64_t index_reads(const PlanInput *in, const Stage *st, const uint64_t *reads)
{
	uint64_t m = 0;
	uint32_t rank = stage_stores(st) ? buf_of(in->nest->l, st->store.buf)->rank : 0;
	for (uint32_t d = 0; d < rank; d++)
		for (uint32_t v = 0; v < in->nest->k->vvar.n; v++)
			if (sym_uses(in->nest->syms, st->store.idx[d],
				     in->nest->k->vvar.data[v].var))
				m |= reads[in->nest->k->vvar.data[v].value.i];
	return m;
}

static void find_phases(Cuts *p)
{
	const Kernel *k = p->in->nest->k;
	const uint64_t *reads = p->in->nest->reads; /* one word each, of so few stages */
	uint32_t last = 0;
	for (uint32_t i = 0; i < k->stage.n; i++) {
		const Stage *st = &k->stage.data[i];
		p->reads[i] =
			reads[st->value.i] | reads[st->where.i] | index_reads(p->in, st, reads);
		for (uint32_t j = 0; j < i; j++)
			if (p->reads[i] >> j & 1 && p->phase[i] <= p->phase[j])
				p->phase[i] = p->phase[j] + 1;
		if (st->kind == STAGE_REDUCE && p->phase[i] + 1 > last)
			last = p->phase[i] + 1;
	}
	p->nphase = last + 1;
	for (uint32_t i = 0; i < k->stage.n; i++) {
		if (k->stage.data[i].kind == STAGE_MAP)
			p->phase[i] = last;
		for (uint32_t j = 0; j < i; j++)
			if (p->reads[i] >> j & 1 && p->reader[j] < p->phase[i])
				p->reader[j] = p->phase[i];
	}
}

/* ---- which axis, and how ---- */

static bool among(const uint8_t *axis, uint32_t n, uint32_t x)
{
	for (uint32_t i = 0; i < n; i++)
		if (axis[i] == x)
			return true;
	return false;
}

/* Returns why a stage cannot be reduced in parts (split reduction); NULL if all stages can. */
static const char *unsuitable(const PlanInput *in)
{
	const Stage *first = NULL;
	if (in->nest->k->stage.n > MAX_STAGES)
		return "too many steps";
	for (uint32_t i = 0; i < in->nest->k->stage.n; i++) {
		const Stage *st = &in->nest->k->stage.data[i];
		bool reduces = st->kind == STAGE_REDUCE && nest_keeps_value(in->nest, st) &&
			       !nest_maps_inner(in->nest, st);
		if (!reduces && (st->kind != STAGE_MAP || !stage_stores(st)))
			return "more than reductions and stores";
		if (!reduces)
			continue;
		first = first ? first : st;
		if (!st->nred || st->nred != first->nred ||
		    memcmp(st->red, first->red, st->nred * sizeof *st->red) != 0)
			return "reductions over different rows";
	}
	return first ? NULL : "nothing is reduced";
}

static const Stage *first_reduction(const PlanInput *in)
{
	const Stage *st = in->nest->k->stage.data;
	while (st->kind != STAGE_REDUCE)
		st++;
	return st;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

/* Returns the work of a task for each element of the axis `cut`, where all outer axes but the
 * vector axis are tasks. */
static double work_along(const Cuts *p, uint32_t cut)
{
	const PlanInput *in = p->in;
	const Stage *st = first_reduction(in);
	double work = generic_outer_vector(p->plan)
			      ? (double)nest_hint(in->nest, p->plan->lanes.axis)
			      : 1;
	for (uint32_t i = 0; i < st->nred; i++)
		work *= st->red[i] == cut ? 1 : (double)nest_hint(in->nest, st->red[i]);
	return work < 1 ? 1 : work;
}

static int64_t outer_tasks(const Cuts *p)
{
	double n = 1;
	for (uint32_t i = 0; i < p->whole->n; i++)
		n *= (double)nest_hint(p->in->nest, p->whole->order[i]);
	return n < 1 ? 1 : n > MAX_PARTS ? MAX_PARTS : (int64_t)n;
}

/* Returns the number of elements of which each part is a multiple, so that rounds of vectors are
 * whole. */
static int64_t unit_of(const Cuts *p, uint32_t cut)
{
	const PlanLanes *lanes = &p->plan->lanes;
	return cut == lanes->axis ? 4 * (int64_t)lanes->n : 1;
}

/* Returns the least number of elements of a part along the axis that is worth a task. */
static int64_t least_part(const Cuts *p, uint32_t cut)
{
	int64_t unit = unit_of(p, cut);
	return ceil_div(ceil_div(tuning_part_work(&p->in->target->machine),
				 (int64_t)work_along(p, cut)),
			unit) *
	       unit;
}

static int64_t nparts_at_hint(const Cuts *p, uint32_t cut)
{
	int64_t most = ceil_div(MAX_PARTS, outer_tasks(p));
	int64_t n = nest_hint(p->in->nest, cut) / least_part(p, cut);
	return n < most ? n : most;
}

/* Chooses the axis that gives the most parts as the one to cut; the outermost of several. */
static void choose_cut(Cuts *p)
{
	const Stage *st = first_reduction(p->in);
	for (uint32_t i = 0; i < st->nred; i++)
		if (!i || nparts_at_hint(p, st->red[i]) > nparts_at_hint(p, p->cut))
			p->cut = st->red[i];
}

/* Chooses the elements of a part and the number of parts, which are of even size if the extent is
 * known. */
static void choose_parts(Cuts *p)
{
	SymTab *syms = p->in->nest->syms;
	Sym extent = p->in->nest->extent[p->cut];
	int64_t unit = unit_of(p, p->cut), n;
	Sym most = sym_int(syms, ceil_div(MAX_PARTS, outer_tasks(p)));
	Sym per = sym_max(syms, sym_ceildiv(syms, extent, most),
			  sym_int(syms, least_part(p, p->cut)));
	if (sym_is_const(syms, extent, &n))
		per = sym_ceildiv(syms, extent, sym_ceildiv(syms, extent, per));
	p->per = sym_muli(syms, sym_ceildiv(syms, per, sym_int(syms, unit)), unit);
	p->npart = sym_ceildiv(syms, extent, p->per);
}

/* Chooses the axis to cut, and returns taken(); or refuses, if stages do not allow parts, whole
 * rows are tasks enough, or rows are too short. The refusal is near if rows hold more than one part
 * of the least size. */
static Refusal refuse_rows(Cuts *p)
{
	const PlanInput *in = p->in;
	const char *why = unsuitable(in);
	int64_t tasks = sym_hint(in->nest->syms, p->whole->ntasks);
	if (why)
		return refuse(why);
	choose_cut(p);
	bool near = nest_hint(in->nest, p->cut) > least_part(p, p->cut);
	if (tasks >= tuning_tasks(&in->target->machine))
		return (Refusal){.why = arena_printf(in->nest->arena,
						     "whole rows are %lld tasks, enough",
						     (long long)tasks),
				 .near = near};
	if (nparts_at_hint(p, p->cut) < 2)
		return (Refusal){.why = arena_printf(
					 in->nest->arena,
					 "rows are short: parts would have less than %lld elements",
					 (long long)tuning_part_work(&in->target->machine)),
				 .near = near};
	return in->nest->n == MAX_AXES ? refuse("too many axes") : taken();
}

/* ---- phases ---- */

static Sym slot_of(const Cuts *p, uint32_t number)
{
	const PlanInput *in = p->in;
	Sym slot = in->nest->var[number];
	for (uint32_t pass = 0; pass < 2; pass++) /* the vector axis is the fastest */
		for (uint32_t a = 0; a < in->nest->n; a++)
			if (in->nest->var[a].i && in->nest->outer >> a & 1 &&
			    (a == p->plan->lanes.axis) == (pass == 1))
				slot = sym_add(in->nest->syms,
					       sym_mul(in->nest->syms, slot, in->nest->extent[a]),
					       in->nest->var[a]);
	return slot;
}

static Sym outer_points(const PlanInput *in)
{
	Sym n = sym_int(in->nest->syms, 1);
	for (uint32_t a = 0; a < in->nest->n; a++)
		if (in->nest->var[a].i && in->nest->outer >> a & 1)
			n = sym_mul(in->nest->syms, n, in->nest->extent[a]);
	return n;
}

static void make_temps(const Cuts *p, Parts *parts)
{
	const Nest *n = p->in->nest;
	uint32_t *temp = ARENA_ARRAY(n->arena, uint32_t, n->k->stage.n);
	Sym numel = sym_mul(n->syms, p->npart, outer_points(p->in));
	for (uint32_t i = 0; i < n->k->stage.n; i++) {
		const Stage *st = &n->k->stage.data[i];
		if (st->kind != STAGE_REDUCE)
			continue;
		temp[i] = parts->temps.n;
		array_push(n->arena, &parts->temps,
			   (SchedTemp){.name = "parts",
				       .dtype = stage_acc(st),
				       .numel = numel,
				       .first = p->phase[i],
				       .last = p->reader[i]});
	}
	parts->temp = temp;
}

/* Sets what a phase does with each stage, and returns the stages that run in it, by bit. Results of
 * stages of earlier phases that these read are combined from parts. */
static uint64_t find_roles(const Cuts *p, uint32_t phase, StageRole *role)
{
	const Kernel *k = p->in->nest->k;
	uint64_t here = 0, read = 0;
	for (uint32_t i = 0; i < k->stage.n; i++) {
		role[i] = RUN_NOT;
		if (p->phase[i] != phase)
			continue;
		role[i] = k->stage.data[i].kind == STAGE_REDUCE ? RUN_PART : RUN_WHOLE;
		here |= UINT64_C(1) << i;
		read |= p->reads[i];
	}
	for (uint32_t i = 0; i < k->stage.n; i++)
		if (read >> i & 1)
			role[i] = RUN_FROM_PARTS;
	return here;
}

/* Whether all stores go along the axis that is cut, so that each task of the last phase stores its
 * part. */
static bool maps_parts(const Cuts *p)
{
	for (uint32_t i = 0; i < p->in->nest->k->stage.n; i++) {
		const Stage *st = &p->in->nest->k->stage.data[i];
		if (st->kind == STAGE_MAP && !among(st->map, st->nmap, p->cut))
			return false;
	}
	return true;
}

static GenericPhase plan_phase(const Cuts *p, uint32_t phase, const Nest *before)
{
	const Nest *n = p->in->nest;
	StageRole *role = ARENA_ARRAY(n->arena, StageRole, n->k->stage.n);
	const uint64_t here = find_roles(p, phase, role);
	GenericPhase out = {.grid = *p->whole,
			    .role = role,
			    .abreast = abreast_points(p->in, p->plan, role),
			    .cost = kernel_cost(before, here)};
	if (phase + 1 == p->nphase && !maps_parts(p)) {
		generic_choose_tasks(p->in, p->plan, &out.grid,
				     (double)sym_hint(n->syms, p->npart) +
					     generic_work_per_point(n, here));
		return out;
	}
	out.grid.ntask = out.grid.n;
	out.grid.cut = p->cut;
	out.grid.per = p->per;
	out.grid.npart = p->npart;
	generic_count_tasks(n, &out.grid);
	return out;
}

Refusal parts_plan(const PlanInput *in, GenericPlan *plan, Nest *nest, const TaskGrid *whole,
		   const Nest *before)
{
	Cuts p = {.in = in, .plan = plan, .whole = whole, .cut = NO_AXIS};
	const Refusal no = refuse_rows(&p);
	if (no.why)
		return no;
	choose_parts(&p);
	find_phases(&p);
	Parts *parts = ARENA_NEW(nest->arena, Parts);
	parts->number = nest_add_axis(nest, "part", p.npart);
	parts->slot = slot_of(&p, parts->number);
	make_temps(&p, parts);
	for (uint32_t i = 0; i < p.nphase; i++)
		array_push(nest->arena, &plan->phase, plan_phase(&p, i, before));
	plan->parts = parts;
	return taken();
}
