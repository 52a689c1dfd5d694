/* The plan for every kernel without a schedule of its own: axes are merged, the vector axis and the
 * grid of tasks chosen. See generic.c. */
#include "codegen/plan/generic.h"
#include "codegen/plan/predict.h"
#include "codegen/plan/tuning.h"

double generic_work_per_point(const Nest *nest, uint64_t stages)
{
	double work = 0;
	for (uint32_t i = 0; i < nest->k->stage.n; i++) {
		const Stage *st = &nest->k->stage.data[i];
		double w = i >= 64 || stages >> i & 1;
		for (uint32_t j = 0; j < st->nred; j++)
			w *= (double)nest_hint(nest, st->red[j]);
		const AxisList map = nest_inner(nest, st);
		for (uint32_t j = 0; j < map.n; j++)
			w *= (double)nest_hint(nest, map.axis[j]);
		if (st->kind == STAGE_FACTOR && st->nred)
			w *= (double)nest_hint(nest, st->red[0]);
		work += w;
	}
	return work;
}

/* Whether the axis has rounds enough for several accumulators: none waits for the addition before,
 * and the error of a sum grows with the rounds of one chain only. */
bool generic_has_chains(const GenericPlan *p, const Stage *st, uint32_t axis)
{
	return axis == p->lanes.axis && st->kind == STAGE_REDUCE &&
	       reduce_op(stage_combine(st)) != SC_const &&
	       nest_hint(p->nest, axis) >= 2 * MAX_CHAINS * (int64_t)p->lanes.n;
}

/* ---- tasks ---- */

void generic_count_tasks(const Nest *nest, TaskGrid *g)
{
	Sym n = sym_int(nest->syms, 1);
	for (uint32_t i = 0; i < g->ntask; i++)
		n = sym_mul(nest->syms, n, nest->extent[g->order[i]]);
	g->ntasks = g->cut == NO_AXIS ? n : sym_mul(nest->syms, n, g->npart);
}

/* Returns the outer axis that vectors run along, to divide it among tasks: of transposed tiles the
 * longer one of both. Returns NO_AXIS if lanes are not outer points. */
static uint32_t lanes_to_cut(const GenericPlan *p)
{
	const uint32_t across = p->turned.across;
	if (!generic_outer_vector(p))
		return NO_AXIS;
	return across != NO_AXIS && nest_hint(p->nest, across) > nest_hint(p->nest, p->lanes.axis)
		       ? across
		       : p->lanes.axis;
}

/* Returns the work of all points as one task. work: of one outer point. */
static double all_work(const GenericPlan *p, const TaskGrid *g, double work)
{
	for (uint32_t i = 0; i < g->n; i++)
		work *= (double)nest_hint(p->nest, g->order[i]);
	if (generic_outer_vector(p))
		work *= (double)nest_hint(p->nest, p->lanes.axis);
	if (p->turned.across != NO_AXIS)
		work *= (double)nest_hint(p->nest, p->turned.across);
	return work;
}

bool generic_halves(const GenericPlan *p, const TaskGrid *g)
{
	bool points = p->streams && generic_outer_vector(p) && !g->n && g->cut == p->lanes.axis;
	for (uint32_t i = 0; points && i < p->nest->k->stage.n; i++)
		points = p->nest->k->stage.data[i].kind == STAGE_MAP;
	return points;
}

/* Makes a part so long that its halves are streams of their own, as far as enough tasks are left.
 */
static void lengthen_part(const PlanInput *in, const GenericPlan *p, TaskGrid *g)
{
	const int64_t all = nest_hint(p->nest, g->cut) / tuning_tasks(&in->target->machine),
		      unit = abreast_columns(p), most = all < STREAM_PART ? all : STREAM_PART;
	int64_t per;
	if (sym_is_const(p->nest->syms, g->per, &per) && per < most)
		g->per = sym_int(p->nest->syms, most - most % unit);
}

static void choose_cut(const PlanInput *in, const GenericPlan *p, TaskGrid *g, double rest,
		       double least)
{
	const Nest *nest = p->nest;
	const uint32_t axis = g->ntask < g->n ? g->order[g->ntask] : lanes_to_cut(p);
	if (axis == NO_AXIS)
		return;
	const double per = rest / (double)nest_hint(nest, axis);
	const int64_t unit = axis == p->lanes.axis || axis == p->turned.across ? abreast_columns(p)
			     : g->ntask + 1 == g->n ? abreast_rows(in, p, axis)
						    : 1;
	const int64_t want = (int64_t)(least / per);
	g->cut = axis;
	g->per = sym_int(nest->syms, want < unit ? unit : want - want % unit);
	if (generic_halves(p, g))
		lengthen_part(in, p, g);
	g->npart = sym_ceildiv(nest->syms, nest->extent[axis], g->per);
}

void generic_choose_tasks(const PlanInput *in, const GenericPlan *p, TaskGrid *g, double work)
{
	const Machine *m = &in->target->machine;
	double rest = all_work(p, g, work);
	double tasks = 1, enough = (double)tuning_tasks(m), least = (double)tuning_task_work(m);
	/* threads cost nothing, and neighbouring ones access neighbouring elements */
	g->ntask = in->target->isa.of_block ? g->n : 0;
	g->cut = NO_AXIS;
	if (g->ntask) {
		generic_count_tasks(p->nest, g);
		return;
	}
	while (g->ntask < g->n && tasks < enough) {
		const double extent = (double)nest_hint(p->nest, g->order[g->ntask]);
		if (rest / extent < least)
			break;
		tasks *= extent;
		rest /= extent;
		g->ntask++;
	}
	if (tasks < enough && rest >= 2 * least) /* rest may be no number: an axis without extent */
		choose_cut(in, p, g, rest, least);
	generic_count_tasks(p->nest, g);
}

static TaskGrid choose_order(const GenericPlan *p)
{
	uint32_t order[MAX_AXES];
	const uint32_t n = axes_outer_order(p->nest, p->lanes.axis, order);
	TaskGrid g = {.cut = NO_AXIS};
	for (uint32_t i = 0; i < n; i++)
		if (order[i] != p->turned.across)
			g.order[g.n++] = order[i];
	return g;
}

/* ---- cycles ---- */

/* Returns the loops over all outer points. */
static PlanLoops outer_loops(const GenericPlan *p, const TaskGrid *g)
{
	PlanLoops l = {.lane_axis = p->lanes.axis,
		       .lanes = p->lanes.n,
		       .turned =
			       p->running.across != NO_AXIS ? p->running.across : p->turned.across};
	for (uint32_t i = 0; i < g->n; i++)
		l.axis[l.n++] = g->order[i];
	if (p->turned.across != NO_AXIS)
		l.axis[l.n++] = p->turned.across;
	if (generic_outer_vector(p))
		l.axis[l.n++] = p->lanes.axis;
	return l;
}

static void add_loops(PlanLoops *l, const uint8_t *axis, uint32_t n, bool lane)
{
	for (uint32_t i = 0; i < n; i++)
		if ((axis[i] == l->lane_axis) == lane)
			l->axis[l->n++] = axis[i];
}

/* Predicts a stage inside of these loops, and the sums that it reads as terms (nest_is_term), which
 * are computed anew at each of its points. */
static void predict_whole(const PlanInput *in, const GenericPlan *p, const GenericPhase *phase,
			  uint32_t stage, PlanLoops l, Busy *busy)
{
	const Nest *n = p->nest;
	const Stage *st = &n->k->stage.data[stage];
	AxisList map = nest_inner(n, st);
	if (nest_is_term(n, st))
		map.n = 0;
	for (uint32_t lane = 0; lane < 2; lane++) {
		add_loops(&l, st->red, st->nred, lane);
		add_loops(&l, map.axis, map.n, lane);
	}
	for (uint32_t i = 0; (i = nest_next_read(n, st->value, i)) < stage; i++)
		if (nest_is_term(n, &n->k->stage.data[i]))
			predict_whole(in, p, phase, i, l, busy);
	const uint32_t last = l.n ? l.axis[l.n - 1] : NO_AXIS;
	const uint32_t chains = generic_outer_vector(p) || p->lanes.axis == NO_AXIS ? phase->abreast
				: last != NO_AXIS && generic_has_chains(p, st, last) ? MAX_CHAINS
										     : 1;
	predict_stage(in, &l, stage, chains, busy);
}

static double predict(const PlanInput *in, const GenericPlan *p)
{
	double cycles = 0;
	for (uint32_t k = 0; k < p->phase.n; k++) {
		const GenericPhase *phase = &p->phase.data[k];
		Busy busy = {0};
		for (uint32_t i = 0; i < p->nest->k->stage.n; i++)
			if ((!phase->role || phase->role[i] == RUN_WHOLE ||
			     phase->role[i] == RUN_PART) &&
			    !nest_is_term(p->nest, &p->nest->k->stage.data[i]))
				predict_whole(in, p, phase, i, outer_loops(p, &phase->grid), &busy);
		busy.scalar += in->target->machine.call * (double)plan_size(in, phase->grid.ntasks);
		cycles += predict_phase(in, &busy, &phase->cost);
	}
	return cycles;
}

/* ---- lanes ---- */

/* Returns the bytes of an element of the buffer, if its offset varies along the axis; else 0. */
static uint32_t size_along(const Nest *nest, BufId buf, Sym offset, uint32_t axis)
{
	return offset.i && nest_axes(nest, offset) >> axis & 1
		       ? dtype_size(buf_of(nest->l, buf)->dtype)
		       : 0;
}

/* Returns the bytes of the largest elements that are read or written along the axis; at least 1. */
static uint32_t largest_along(const Nest *nest, uint32_t axis)
{
	const Kernel *k = nest->k;
	uint32_t most = 1;
	for (uint32_t i = 1; i < k->kx.n; i++) {
		const uint32_t n = size_along(nest, k->kx.data[i].buf, nest->offset[i], axis);
		most = n > most ? n : most;
	}
	for (uint32_t i = 0; i < k->stage.n; i++) {
		const uint32_t n =
			size_along(nest, k->stage.data[i].store.buf, nest->store[i], axis);
		most = n > most ? n : most;
	}
	return most;
}

/* Whether the kernel does little, by these lanes, beside reading and writing memory. */
static bool is_stream(const PlanInput *in, const GenericPlan *p)
{
	const GenericPhase phase = {.grid = choose_order(p), .abreast = 1};
	Busy busy = {0};
	for (uint32_t i = 0; i < in->nest->k->stage.n; i++)
		if (!nest_is_term(p->nest, &p->nest->k->stage.data[i]))
			predict_whole(in, p, &phase, i, outer_loops(p, &phase.grid), &busy);
	return predict_is_stream(in, &busy, &in->cost);
}

/* Leaves fewer lanes, where the machine streams by accesses that are narrower than a register, and
 * notes that it streams. No target has registers of fewer than four lanes. */
static void narrow_lanes(const PlanInput *in, GenericPlan *p)
{
	const uint32_t n =
		in->target->machine.stream_bytes / largest_along(in->nest, p->lanes.axis);
	p->streams = n >= 4 && !(n & (n - 1)) && n <= p->lanes.n && is_stream(in, p);
	if (p->streams)
		p->lanes.n = n;
}

static Refusal choose_lanes(const PlanInput *in, GenericPlan *p)
{
	uint32_t along, lanes;
	bool points = false; /* are computed one by one, of what is read where it lies */
	const Refusal no = transpose_find(in, &p->turned, &along, &lanes);
	const bool running = transpose_running(in, &p->running, &along, &lanes);
	if (p->turned.across == NO_AXIS && transpose_neighbours(in, &p->turned, &along, &lanes))
		p->lanes = (PlanLanes){along, lanes};
	else if (p->turned.across == NO_AXIS && !running) {
		along = axes_choose_vector(in);
		const Stage *first = &in->nest->k->stage.data[0];
		points = first->kind != STAGE_FFT && first->kind != STAGE_FACTOR;
		const DType d = points ? DT_f32 : stage_acc(first);
		/* where nothing is computed, strides are 0, and no address moves with the lanes */
		lanes = along == NO_AXIS || nest_is_empty(in->nest) ? 1
								    : target_lanes(in->target, d);
	}
	p->lanes = (PlanLanes){.axis = lanes == 1 ? NO_AXIS : along, .n = lanes};
	if (points && lanes > 1)
		narrow_lanes(in, p);
	return no;
}

/* ---- the plan ---- */

static const char *why_lanes(const PlanInput *in, const GenericPlan *p)
{
	const bool points = generic_outer_vector(p);
	if (!p->streams)
		return points ? "lanes are neighbouring points" : "lanes are one row";
	return arena_printf(in->nest->arena, "lanes are %u %s, as memory takes longest", p->lanes.n,
			    points ? "neighbouring points" : "elements of one row");
}

static const char *why_generic(const PlanInput *in, const GenericPlan *p)
{
	if (p->turned.neighbours)
		return arena_printf(
			in->nest->arena,
			"vectors of %u results that lie beside each other are interleaved",
			p->turned.neighbours);
	if (p->turned.across != NO_AXIS)
		return arena_printf(in->nest->arena,
				    "tiles of %u by %u are transposed: what is read and what is "
				    "written lie along different axes",
				    p->lanes.n, p->lanes.n);
	if (p->running.across != NO_AXIS)
		return arena_printf(in->nest->arena,
				    "lanes are neighbouring rows: tiles of %u by %u are transposed",
				    p->lanes.n, p->lanes.n);
	if (p->lanes.axis == NO_AXIS)
		return target_lanes(in->target, DT_f32) == 1 ? "the target has no vectors"
							     : "no axis is worth vectors";
	return why_lanes(in, p);
}

static const char *why_parts(const PlanInput *in, const GenericPlan *p, const TaskGrid *whole)
{
	const long long tasks = (long long)sym_hint(in->nest->syms, whole->ntasks);
	return arena_printf(in->nest->arena, "whole rows would be %lld task%s; %s", tasks,
			    tasks == 1 ? "" : "s",
			    p->lanes.axis == NO_AXIS ? "no lanes" : why_lanes(in, p));
}

static void refuse_form(Plan *plan, const char *form, Refusal no)
{
	if (no.why)
		plan->refused[plan->nrefused++] = (Refusal){form, no.why, no.near};
}

/* Returns a copy of the nest with contiguous axes merged and the axes of equal rows shared. */
static Nest *join_axes(const Nest *before)
{
	Kernel *k = kernel_copy(before->arena, before->k);
	Nest *nest = nest_copy(before, k);
	axes_join_rows(nest, k);
	axes_merge_outer(nest, nest->outer);
	return nest;
}

Refusal plan_generic(const PlanInput *in, Plan *plan)
{
	Nest *nest = join_axes(in->nest);
	PlanInput joined = *in;
	GenericPlan *p = ARENA_NEW(nest->arena, GenericPlan);
	joined.nest = p->nest = nest;
	refuse_form(plan, "transposed tiles", choose_lanes(&joined, p));
	p->blocked = abreast_blocked(&joined, p);
	TaskGrid grid = choose_order(p);
	generic_choose_tasks(&joined, p, &grid, generic_work_per_point(nest, UINT64_MAX));
	const Refusal no = kernel_is_plain(nest->k) ? parts_plan(&joined, p, nest, &grid, in->nest)
						    : plan_refuse_bounds();
	refuse_form(plan, "parts of rows", no);
	const bool rows = p->lanes.axis == NO_AXIS && grid.ntask < grid.n;
	const uint32_t abreast = rows ? abreast_rows(&joined, p, grid.order[grid.n - 1])
				      : abreast_points(&joined, p, NULL);
	if (no.why)
		array_push(nest->arena, &p->phase, (GenericPhase){grid, NULL, abreast, in->cost});
	plan->of.generic = p;
	plan->cycles = predict(&joined, p);
	joined.at = in->larger;
	plan->larger = predict(&joined, p);
	plan->algorithm = no.why ? "generic" : "parts of rows";
	plan->why = no.why ? why_generic(&joined, p) : why_parts(&joined, p, &grid);
	return taken();
}
