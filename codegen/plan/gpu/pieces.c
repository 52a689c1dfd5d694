/* Kernels whose stages store at axes of their own and share outer points: the border of a padded
 * tensor has a stage for each side. */
#include "codegen/plan/gpu/gpu.h"

#include <math.h>

/* Refuses kernels whose stages do more than store the same value, each at axes of its own. With one
 * value the order of stages does not matter where two store the same element. */
static Refusal no_pieces(const Nest *n)
{
	const Kernel *k = n->k;
	bool own = false;
	for (uint32_t i = 0; i < k->stage.n; i++) {
		const Stage *st = &k->stage.data[i];
		if (st->kind != STAGE_MAP || !stage_stores(st) || st->nred)
			return refuse("a step does more than store its elements");
		if (st->value.i != k->stage.data[0].value.i)
			return refuse("its steps store different values");
		own = own || nest_maps_inner(n, st);
	}
	return !own        ? refuse("no step has axes of its own")
	       : k->vvar.n ? refuse("where it stores depends on data")
			   : taken();
}

static double stride(const Nest *n, uint32_t stage, uint32_t axis)
{
	Sym coef;
	return nest_coef(n, n->store[stage], axis, &coef) ? fabs((double)sym_hint(n->syms, coef))
							  : INFINITY;
}

/* Returns the stage's own axes, those with the longest stride first. */
static GpuAxes own_axes(const Nest *n, uint32_t stage)
{
	const Stage *st = &n->k->stage.data[stage];
	const AxisList map = nest_inner(n, st);
	GpuAxes x = {.n = map.n};
	for (uint32_t i = 0; i < map.n; i++) {
		uint32_t at = i;
		for (; at > 0 && stride(n, stage, x.axis[at - 1]) < stride(n, stage, map.axis[i]);
		     at--)
			x.axis[at] = x.axis[at - 1];
		x.axis[at] = map.axis[i];
	}
	return x;
}

static Sym product(const Nest *n, const uint32_t *axis, uint32_t count)
{
	Sym all = sym_int(n->syms, 1);
	for (uint32_t i = 0; i < count; i++)
		all = sym_mul(n->syms, all, n->extent[axis[i]]);
	return all;
}

static GpuTime predict(const PlanInput *in, const GpuPiecesPlan *p)
{
	const Nest *n = p->nest;
	const double points = (double)plan_size(in, p->points);
	GpuWork w = {
		.blocks = (double)plan_size(in, p->nblock), .threads = p->threads, .rounds = 1};
	for (uint32_t i = 0; i < n->k->stage.n; i++) {
		const Stage *st = &n->k->stage.data[i];
		const uint32_t fast = p->points_fast && p->n ? p->order[p->n - 1]
				      : p->own[i].n          ? p->own[i].axis[p->own[i].n - 1]
							     : NO_AXIS;
		const double all = points * (double)plan_size(in, p->count[i]);
		w.operations += all * gpu_operations(n, st->value);
		w.bytes += all * gpu_bytes_each(n, n->store[i], fast, dtype_size(st->dtype));
		for (uint32_t k = 1; k < n->k->kx.n && i == 0; k++)
			if (n->offset[k].i)
				w.bytes += points * (double)plan_size(in, p->most) *
					   dtype_size(n->k->kx.data[k].dtype);
	}
	w.flight = w.bytes / fmax(1, w.blocks * w.threads); /* stores do not wait for each other */
	return gpu_time(in->target->gpu, &w);
}

Refusal plan_gpu_pieces(const PlanInput *in, Plan *plan)
{
	const Refusal no = no_pieces(in->nest);
	if (no.why)
		return no;
	Nest *nest = nest_copy(in->nest, in->nest->k);
	axes_merge_outer(nest, nest->outer);
	SymTab *syms = nest->syms;
	const uint32_t nstage = nest->k->stage.n;
	GpuPiecesPlan *p = ARENA_NEW(nest->arena, GpuPiecesPlan);
	*p = (GpuPiecesPlan){.nest = nest, .threads = in->target->gpu->threads, .cost = in->cost};
	p->own = ARENA_ARRAY(nest->arena, GpuAxes, nstage);
	p->count = ARENA_ARRAY(nest->arena, Sym, nstage);
	p->n = axes_outer_order(nest, NO_AXIS, p->order);
	p->points = product(nest, p->order, p->n);
	p->points_fast = p->n && nest_coef_is(nest, nest->store[0], p->order[p->n - 1], 1);
	for (uint32_t i = 0; i < nstage; i++) {
		p->own[i] = own_axes(nest, i);
		p->count[i] = product(nest, p->own[i].axis, p->own[i].n);
		p->most = i ? sym_max(syms, p->most, p->count[i]) : p->count[i];
	}
	p->nblock = sym_ceildiv(syms, sym_mul(syms, p->points, p->most), sym_int(syms, p->threads));
	PlanInput at = *in;
	at.nest = nest;
	const GpuTime here = predict(&at, p);
	at.at = in->larger;
	gpu_plan_time(plan, in->target->gpu, &here, &(GpuTime){predict(&at, p).all});
	plan->of.gpu_pieces = p;
	plan->algorithm = "pieces";
	plan->why = "a thread for an element of each step";
	return taken();
}

void print_gpu_pieces(const Plan *plan, Text *out)
{
	const GpuPiecesPlan *p = plan->of.gpu_pieces;
	const Nest *n = p->nest;
	text_add(out, "points");
	for (uint32_t i = 0; i < p->n; i++)
		text_printf(out, " %s<%s", sym_name(n->syms, n->var[p->order[i]]),
			    sym_str(n->syms, n->extent[p->order[i]]));
	for (uint32_t i = 0; i < n->k->stage.n; i++)
		text_printf(out, "%s %s", i ? " and" : ", at each", sym_str(n->syms, p->count[i]));
	text_printf(out, " elements, neighbours along the %s; %u threads; blocks: %s",
		    p->points_fast ? "points" : "elements", p->threads,
		    sym_str(n->syms, p->nblock));
}
