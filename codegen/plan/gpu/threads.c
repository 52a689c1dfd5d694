/* The schedule that takes every kernel: each task of the kernel's scalar schedule becomes a thread,
 * so a thread has all axes inside of a point. */
#include "codegen/plan/gpu/gpu.h"

/* Neighbouring threads are neighbours along the fastest outer axis. */
static GpuTime predict(const PlanInput *in, uint32_t threads)
{
	enum { WAIT = 8 };
	const Nest *n = in->nest;
	uint32_t order[MAX_AXES], nout = axes_outer_order(n, NO_AXIS, order);
	double points = 1, loads = 0;
	GpuWork w = {.threads = threads, .rounds = 1};
	for (uint32_t i = 0; i < nout; i++)
		points *= (double)plan_extent(in, order[i]);
	for (uint32_t i = 0; i < n->k->stage.n; i++) {
		const Stage *st = &n->k->stage.data[i];
		const double inside = gpu_inside(in, st);
		w.operations += points * inside * (st->value.i ? gpu_operations(n, st->value) : 1);
		w.rounds += inside > 1 ? inside / WAIT : 0;
		loads += inside;
	}
	loads = loads > n->k->stage.n ? loads / n->k->stage.n : 1;
	const uint32_t fast = nout ? order[nout - 1] : NO_AXIS;
	for (uint32_t i = 1; i < n->k->kx.n; i++)
		if (n->offset[i].i) {
			const uint32_t size = dtype_size(buf_of(n->l, n->k->kx.data[i].buf)->dtype);
			w.bytes += gpu_bytes_of_load(in, i, points * loads * gpu_bytes_each(n, n->offset[i], fast, size));
			w.flight += size;
		}
	for (uint32_t i = 0; i < n->k->stage.n; i++)
		if (n->store[i].i)
			w.bytes += points * gpu_bytes_each(n, n->store[i], fast, dtype_size(n->k->stage.data[i].dtype));
	w.blocks = points / threads;
	return gpu_time(in->target->gpu, &w);
}

Refusal plan_gpu_threads(const PlanInput *in, Plan *plan)
{
	PlanInput at = *in;
	const GpuTime here = predict(&at, in->target->gpu->threads);
	at.at = in->larger;
	gpu_plan_time(plan, in->target->gpu, &here, &(GpuTime){predict(&at, in->target->gpu->threads).all});
	plan->algorithm = "threads";
	return taken();
}

void print_gpu_threads(const Plan *plan, Text *out)
{
	(void)plan;
	text_add(out, "a thread for each task");
}
