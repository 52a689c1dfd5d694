/* Kernels that compute each of their points alone: which axis threads go along, how much one access
 * moves, which loads are turned in shared memory. */
#include "codegen/plan/gpu/gpu.h"

#include <math.h>

enum { MOST_POINTS = 16, MOST_CODE = 400, SHORT_AXIS = 8 };

static Refusal no_points(const Nest *n)
{
	const Kernel *k = n->k;
	for (uint32_t i = 0; i < k->stage.n; i++) {
		const Stage *st = &k->stage.data[i];
		if ((st->kind != STAGE_MAP && st->kind != STAGE_CHECK) || nest_maps_inner(n, st) ||
		    st->nred)
			return refuse("a step has axes of its own");
	}
	return taken();
}

/* ---- along which axis ---- */

static double stride(const Nest *n, Sym offset, uint32_t axis)
{
	Sym coef;
	return nest_coef(n, offset, axis, &coef) ? fabs((double)sym_hint(n->syms, coef)) : INFINITY;
}

/* Returns the bytes that all accesses of a point move, if neighbouring threads are neighbours along
 * the axis. */
static double bytes_of_point(const Nest *n, uint32_t axis)
{
	double bytes = 0;
	for (uint32_t i = 1; i < n->k->kx.n; i++)
		if (n->offset[i].i)
			bytes += gpu_bytes_each(
				n, n->offset[i], axis,
				dtype_size(buf_of(n->l, n->k->kx.data[i].buf)->dtype));
	for (uint32_t i = 0; i < n->k->stage.n; i++)
		if (n->store[i].i)
			bytes += gpu_bytes_each(n, n->store[i], axis,
						dtype_size(n->k->stage.data[i].dtype));
	return bytes;
}

static bool stores_along(const Nest *n, uint32_t axis)
{
	bool all = true;
	for (uint32_t i = 0; i < n->k->stage.n; i++)
		all = all && (!n->store[i].i || nest_coef_is(n, n->store[i], axis, 1));
	return all;
}

/* Chooses the axis of neighbouring threads: the one along which least is moved. An axis along which
 * stores are contiguous counts half, a short one more. */
static uint32_t choose_fast(const Nest *n)
{
	uint32_t best = NO_AXIS;
	double least = INFINITY;
	for (uint32_t a = 0; a < n->n; a++) {
		if (!nest_has_axis(n, a) || !nest_is_outer(n, a))
			continue;
		const double short_by = fmax(1, SHORT_AXIS / fmax(1, (double)nest_hint(n, a)));
		const double bytes =
			bytes_of_point(n, a) * short_by * (stores_along(n, a) ? 0.5 : 1);
		if (bytes < least) {
			least = bytes;
			best = a;
		}
	}
	return best;
}

/* ---- how much one access moves ---- */

bool gpu_is_aligned(const Nest *n, Sym offset, uint32_t axis, int64_t wide)
{
	Sym coef, rest;
	return nest_coef_is(n, offset, axis, 1) &&
	       sym_linear(n->syms, offset, n->var[axis], &coef, &rest) &&
	       sym_divides(n->syms, wide, rest);
}

static bool stores_wide(const Nest *n, uint32_t axis, uint32_t wide)
{
	bool any = false;
	for (uint32_t i = 0; i < n->k->stage.n; i++) {
		if (n->store[i].i && !gpu_is_aligned(n, n->store[i], axis, wide))
			return false;
		any = any || n->store[i].i;
	}
	return any;
}

static bool is_turned(const Turned *t, uint32_t load)
{
	for (uint32_t i = 0; i < t->n; i++)
		if (t->load[i].i == load)
			return true;
	return false;
}

static void choose_wide(const Nest *n, GpuPointsPlan *p)
{
	Kx *list = ARENA_ARRAY(n->arena, Kx, n->k->kx.n);
	double code = 0;
	for (uint32_t i = 0; i < n->k->stage.n; i++)
		code += gpu_operations(n, n->k->stage.data[i].value);
	p->wide = p->each = 1;
	if (p->fast == NO_AXIS || p->turned.n)
		return;
	for (uint32_t w = GPU_WIDE; w > 1 && p->wide == 1; w /= 2)
		if (w * code <= MOST_CODE && nest_hint(n, p->fast) >= w &&
		    stores_wide(n, p->fast, w))
			p->wide = w;
	for (uint32_t i = 1; p->wide > 1 && i < n->k->kx.n; i++)
		if (n->offset[i].i && !n->k->kx.data[i].guard.i &&
		    gpu_is_aligned(n, n->offset[i], p->fast, p->wide))
			list[p->nvector++] = (Kx){i};
	p->vector = list;
}

/* ---- loads that are turned ---- */

/* Whether a load is not contiguous along `fast`, but along the other axis. */
static bool lies_across(const Nest *n, uint32_t load, uint32_t fast, uint32_t axis)
{
	return nest_coef_is(n, n->offset[load], axis, 1) && stride(n, n->offset[load], fast) > 1 &&
	       stride(n, n->offset[load], fast) < INFINITY;
}

static bool reads_data(const Nest *n, uint32_t load)
{
	bool any = false;
	for (uint32_t v = 0; v < n->k->vvar.n; v++)
		any = any || sym_uses(n->syms, n->offset[load], n->k->vvar.data[v].var);
	return any;
}

/* Chooses the axis `across` that turns most loads, and these loads. */
static void choose_turned(const Nest *n, GpuPointsPlan *p)
{
	Kx *list = ARENA_ARRAY(n->arena, Kx, GPU_TURNED);
	p->turned = (Turned){.across = NO_AXIS, .load = list};
	if (p->fast == NO_AXIS || nest_hint(n, p->fast) < SHORT_AXIS)
		return;
	for (uint32_t a = 0; a < n->n; a++) {
		uint32_t found = 0;
		if (!nest_has_axis(n, a) || !nest_is_outer(n, a) || a == p->fast ||
		    nest_hint(n, a) < SHORT_AXIS)
			continue;
		for (uint32_t i = 1; i < n->k->kx.n; i++)
			found += n->offset[i].i && lies_across(n, i, p->fast, a) &&
				 !reads_data(n, i);
		if (found > p->turned.n) {
			p->turned.across = a;
			p->turned.n = found < GPU_TURNED ? found : GPU_TURNED;
		}
	}
	for (uint32_t i = 1, k = 0; i < n->k->kx.n && k < p->turned.n; i++)
		if (n->offset[i].i && lies_across(n, i, p->fast, p->turned.across) &&
		    !reads_data(n, i))
			list[k++] = (Kx){i};
}

/* ---- the grid ---- */

static void choose_order(const Nest *n, GpuPointsPlan *p)
{
	p->n = axes_outer_order(n, p->fast, p->order);
	for (uint32_t i = 0, k = 0; i < p->n; i++) {
		if (p->order[i] != p->turned.across)
			p->order[k++] = p->order[i];
		if (i + 1 == p->n)
			p->n = k;
	}
	if (p->fast != NO_AXIS)
		p->order[p->n++] = p->fast;
}

static Sym ceil_by(const Nest *n, uint32_t axis, int64_t by)
{
	return sym_ceildiv(n->syms, n->extent[axis], sym_int(n->syms, by));
}

static void count_blocks(const Nest *n, GpuPointsPlan *p)
{
	const int64_t side = p->turned.n ? GPU_TILE : p->wide;
	p->chunks = sym_int(n->syms, 1);
	for (uint32_t i = 0; i < p->n; i++)
		p->chunks = sym_mul(n->syms, p->chunks,
				    p->order[i] == p->fast ? ceil_by(n, p->fast, side)
							   : n->extent[p->order[i]]);
	if (p->turned.n)
		p->chunks = sym_mul(n->syms, p->chunks, ceil_by(n, p->turned.across, GPU_TILE));
	p->nblock = p->turned.n ? p->chunks
				: sym_ceildiv(n->syms, p->chunks,
					      sym_int(n->syms, (int64_t)p->threads * p->each));
}

/* ---- what it takes ---- */

static double work_points(const PlanInput *in, const GpuPointsPlan *p)
{
	double points = p->turned.n ? (double)plan_extent(in, p->turned.across) : 1;
	for (uint32_t i = 0; i < p->n; i++)
		points *= (double)plan_extent(in, p->order[i]);
	return points;
}

static GpuTime predict(const PlanInput *in, const GpuPointsPlan *p)
{
	const Nest *n = p->nest;
	const double points = work_points(in, p);
	GpuWork w = {
		.blocks = (double)plan_size(in, p->nblock), .threads = p->threads, .rounds = 1};
	for (uint32_t i = 0; i < n->k->stage.n; i++)
		w.operations += points * gpu_operations(n, n->k->stage.data[i].value);
	for (uint32_t i = 1; i < n->k->kx.n; i++) {
		const uint32_t size =
			n->offset[i].i ? dtype_size(buf_of(n->l, n->k->kx.data[i].buf)->dtype) : 0;
		if (!size)
			continue;
		w.flight += size * p->wide * p->each;
		w.bytes += points * (is_turned(&p->turned, i)
					     ? size
					     : gpu_bytes_each(n, n->offset[i], p->fast, size));
		w.shared += is_turned(&p->turned, i)
				    ? GPU_TILE * (GPU_TILE + 1) * dtype_size(n->k->kx.data[i].dtype)
				    : 0;
	}
	for (uint32_t i = 0; i < n->k->stage.n; i++)
		if (n->store[i].i)
			w.bytes += points * gpu_bytes_each(n, n->store[i], p->fast,
							   dtype_size(n->k->stage.data[i].dtype));
	w.flight *= p->turned.n ? GPU_TILE / GPU_TILE_ROWS : 1;
	return gpu_time(in->target->gpu, &w);
}

/* Gives a thread several accesses, so that more loads are under way, where that is predicted to
 * help. */
static void choose_each(const PlanInput *in, GpuPointsPlan *p)
{
	if (p->turned.n || p->fast == NO_AXIS)
		return;
	for (uint32_t each = 2; each <= GPU_EACH && each * p->wide <= MOST_POINTS; each *= 2) {
		GpuPointsPlan more = *p;
		more.each = each;
		count_blocks(p->nest, &more);
		const bool many = (double)sym_hint(p->nest->syms, more.nblock) >=
				  2.0 * in->target->gpu->multiprocessors;
		if (many && predict(in, &more).all < 0.95 * predict(in, p).all)
			*p = more;
	}
}

static const char *why(const GpuPointsPlan *p)
{
	if (p->turned.n)
		return "tiles in shared memory: what is read and what is written lie along "
		       "different axes";
	return p->wide > 1 ? "a thread has consecutive elements" : "a thread for each element";
}

Refusal plan_gpu_points(const PlanInput *in, Plan *plan)
{
	const Refusal no = no_points(in->nest);
	if (no.why)
		return no;
	Nest *nest = nest_copy(in->nest, in->nest->k);
	axes_merge_outer(nest, nest->outer);
	PlanInput at = *in;
	GpuPointsPlan *p = ARENA_NEW(nest->arena, GpuPointsPlan);
	*p = (GpuPointsPlan){.nest = nest,
			     .threads = in->target->gpu->threads,
			     .fast = choose_fast(nest),
			     .cost = in->cost};
	at.nest = nest;
	choose_turned(nest, p);
	if (p->turned.n)
		p->threads = GPU_TILE * GPU_TILE_ROWS;
	choose_wide(nest, p);
	choose_order(nest, p);
	count_blocks(nest, p);
	choose_each(&at, p);
	plan->of.gpu_points = p;
	const GpuTime here = predict(&at, p);
	at.at = in->larger;
	gpu_plan_time(plan, in->target->gpu, &here, &(GpuTime){predict(&at, p).all});
	plan->algorithm = "points";
	plan->why = why(p);
	return taken();
}

void print_gpu_points(const Plan *plan, Text *out)
{
	const GpuPointsPlan *p = plan->of.gpu_points;
	const Nest *n = p->nest;
	text_add(out, "points");
	for (uint32_t i = 0; i < p->n; i++)
		text_printf(out, " %s<%s", sym_name(n->syms, n->var[p->order[i]]),
			    sym_str(n->syms, n->extent[p->order[i]]));
	if (p->turned.n)
		text_printf(out, ", tiles of %d across %s<%s, %u load%s turned", GPU_TILE,
			    sym_name(n->syms, n->var[p->turned.across]),
			    sym_str(n->syms, n->extent[p->turned.across]), p->turned.n,
			    p->turned.n > 1 ? "s" : "");
	if (p->wide > 1)
		text_printf(out, ", %u elements an access", p->wide);
	if (p->each > 1)
		text_printf(out, ", %u accesses a thread", p->each);
	text_printf(out, "; %u threads; blocks: %s", p->threads, sym_str(n->syms, p->nblock));
}
