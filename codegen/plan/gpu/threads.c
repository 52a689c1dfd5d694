/* The schedule that takes every kernel: each task of the kernel's scalar schedule becomes a thread,
 * so a thread has all axes inside of a point. */
#include "codegen/plan/gpu/gpu.h"

/* Sets *want to a layout of the load's constant, in which the dimension is last along which threads
 * are neighbours. Returns false for other loads, large constants, and where threads read neighbours
 * already. */
static bool wants(const Nest *n, uint32_t load, uint32_t fast, LayoutWant *want)
{
	enum {
		LARGE = 256
			<< 10 /* bytes: the model may read the constant in another layout, too */
	};
	const KxData *x = &n->k->kx.data[load];
	const Buffer *b = x->kind == KX_LOAD ? buf_of(n->l, x->buf) : NULL;
	uint32_t perm[MAX_RANK], last = MAX_RANK, count = 0;
	if (!b || b->kind != BUF_CONST || b->layout_fixed ||
	    !layout_is_row_major(&b->layout, b->rank) ||
	    nest_coef_is(n, n->offset[load], fast, 1) ||
	    sym_const_or(n->syms, layout_numel(n->l->ir, &b->layout), LARGE) *
			    dtype_size(b->dtype) >
		    LARGE)
		return false;
	for (uint32_t d = 0; d < b->rank; d++) {
		if (!sym_uses(n->syms, x->idx[d], n->var[fast]))
			perm[count++] = d;
		else if (last < MAX_RANK || x->idx[d].i != n->var[fast].i)
			return false;
		else
			last = d;
	}
	if (last == MAX_RANK)
		return false;
	perm[count] = last;
	*want = (LayoutWant){{load}, layout_permuted(n->l->ir, b->rank, b->dim, perm)};
	return true;
}

uint32_t gpu_threads_wants(const Nest *n, LayoutWant *want)
{
	uint32_t order[MAX_AXES], nout = axes_outer_order(n, NO_AXIS, order), count = 0;
	for (uint32_t i = 1; nout && i < n->k->kx.n; i++) {
		bool seen = !n->offset[i].i;
		for (uint32_t k = 0; k < count; k++)
			seen = seen ||
			       n->k->kx.data[want[k].load.i].buf.i == n->k->kx.data[i].buf.i;
		count += !seen && wants(n, i, order[nout - 1], &want[count]);
	}
	return count;
}

static bool is_turned(const LayoutWant *want, uint32_t count, uint32_t load)
{
	for (uint32_t k = 0; k < count; k++)
		if (want[k].load.i == load)
			return true;
	return false;
}

/* Predicts the time of a launch whose neighbouring threads are neighbours along the fastest outer
 * axis. */
static GpuTime predict(const PlanInput *in, uint32_t threads)
{
	enum { WAIT = 8 };
	const Nest *n = in->nest;
	uint32_t order[MAX_AXES], nout = axes_outer_order(n, NO_AXIS, order);
	LayoutWant *want = ARENA_ARRAY(n->arena, LayoutWant, n->k->kx.n);
	const uint32_t nwant = gpu_threads_wants(n, want);
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
			w.bytes += gpu_bytes_of_load(
				in, i,
				points * loads *
					(is_turned(want, nwant, i)
						 ? size
						 : gpu_bytes_each(n, n->offset[i], fast, size)));
			w.flight += size;
		}
	for (uint32_t i = 0; i < n->k->stage.n; i++)
		if (n->store[i].i)
			w.bytes += points * gpu_bytes_each(n, n->store[i], fast,
							   dtype_size(n->k->stage.data[i].dtype));
	w.blocks = points / threads;
	return gpu_time(in->target->gpu, &w);
}

Refusal plan_gpu_threads(const PlanInput *in, Plan *plan)
{
	PlanInput at = *in;
	const GpuTime here = predict(&at, in->target->gpu->threads);
	at.at = in->larger;
	gpu_plan_time(plan, in->target->gpu, &here,
		      &(GpuTime){predict(&at, in->target->gpu->threads).all});
	plan->algorithm = "threads";
	return taken();
}

void print_gpu_threads(const Plan *plan, Text *out)
{
	(void)plan;
	text_add(out, "a thread for each task");
}
