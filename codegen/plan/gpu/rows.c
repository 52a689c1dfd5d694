/* Rows: which axis the threads of a team share, how many of them there are, whether a point has
 * several blocks. All that is possible is predicted, and the least taken. */
#include "codegen/plan/gpu/gpu.h"

#include <math.h>

enum { MOST_CODE = 600, LEAST_PART = 1024, AHEAD = 4, MOST_BLOCK = 1024 };

/* ---- the form ---- */

static bool is_inner(const Nest *n, const Stage *st, uint32_t axis)
{
	bool found = false;
	for (uint32_t i = 0; i < st->nred; i++)
		found = found || st->red[i] == axis;
	const AxisList map = nest_inner(n, st);
	for (uint32_t i = 0; i < map.n; i++)
		found = found || map.axis[i] == axis;
	return found;
}

static bool has_inner(const Nest *n, const Stage *st)
{
	return st->nred || nest_maps_inner(n, st);
}

static bool is_reduction(const Stage *st)
{
	return st->kind == STAGE_REDUCE || st->kind == STAGE_ARGREDUCE;
}

static Refusal no_rows(const Nest *n)
{
	const Kernel *k = n->k;
	bool any = false;
	for (uint32_t i = 0; i < k->stage.n; i++) {
		const Stage *st = &k->stage.data[i];
		if (!is_reduction(st) && st->kind != STAGE_MAP && st->kind != STAGE_CHECK)
			return refuse("a step goes along its row in order");
		if (is_reduction(st) && (nest_maps_inner(n, st) || !nest_keeps_value(n, st)))
			return refuse("a reduction has several results at a point");
		any = any || is_reduction(st);
	}
	return any ? taken() : refuse("nothing is reduced");
}

/* Whether every read of a row that stays in the kernel is at the reader's own element. */
static bool reads_own_elements(const Nest *n)
{
	for (uint32_t i = 1; i < n->k->kx.n; i++) {
		const KxData *x = &n->k->kx.data[i];
		if (x->kind != KX_STAGE || !nest_keeps_row(n, &n->k->stage.data[x->stage]))
			continue;
		const Stage *st = &n->k->stage.data[x->stage];
		for (uint32_t j = n->nouter; j < st->nmap; j++)
			if (x->idx[j].i != n->var[st->map[j]].i)
				return false;
	}
	return true;
}

/* Whether the axis is an inner one of every stage that has any. */
static bool is_shared(const Nest *n, uint32_t axis)
{
	for (uint32_t i = 0; i < n->k->stage.n; i++)
		if (has_inner(n, &n->k->stage.data[i]) && !is_inner(n, &n->k->stage.data[i], axis))
			return false;
	return nest_has_axis(n, axis) && !nest_is_outer(n, axis);
}

uint32_t gpu_rows_axes(const GpuRowsPlan *p, const Stage *st, uint32_t *axis)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < st->nred; i++)
		if (st->red[i] != p->along)
			axis[n++] = st->red[i];
	const AxisList map = nest_inner(p->nest, st);
	for (uint32_t i = 0; i < map.n; i++)
		if (map.axis[i] != p->along)
			axis[n++] = map.axis[i];
	axis[n++] = p->along;
	return n;
}

/* ---- what it takes ---- */

static uint32_t neighbours(const GpuRowsPlan *p)
{
	return !p->columns ? p->along : p->n ? p->order[p->n - 1] : NO_AXIS;
}

/* Returns how many elements a load reads inside of a point: the product of the extents of the inner
 * axes that it depends on. */
static double times_inside(const PlanInput *in, uint32_t load)
{
	double most = 1;
	for (uint32_t a = 0; a < in->nest->n; a++)
		if (nest_has_axis(in->nest, a) && !nest_is_outer(in->nest, a) &&
		    in->nest->deps[load] >> a & 1)
			most *= (double)plan_extent(in, a);
	return most;
}

/* Returns the bytes of a load, at all points: once from memory, more often from the cache. */
static double bytes_of_load(const PlanInput *in, const GpuRowsPlan *p, uint32_t load, double points)
{
	const Nest *n = p->nest;
	const uint32_t size = dtype_size(buf_of(n->l, n->k->kx.data[load].buf)->dtype);
	return gpu_bytes_of_load(in, load,
				 points * times_inside(in, load) *
					 gpu_bytes_each(n, n->offset[load], neighbours(p), size));
}

static double bytes_of_store(const PlanInput *in, const GpuRowsPlan *p, uint32_t stage,
			     double points)
{
	const Nest *n = p->nest;
	return points * gpu_inside(in, &n->k->stage.data[stage]) *
	       gpu_bytes_each(n, n->store[stage], neighbours(p),
			      dtype_size(n->k->stage.data[stage].dtype));
}

static GpuTime predict(const PlanInput *in, const GpuRowsPlan *p)
{
	const Nest *n = p->nest;
	const double points = (double)plan_size(in, p->points),
		     parts = (double)plan_size(in, p->parts);
	const double along = (double)plan_extent(in, p->along),
		     each = ceil(along / parts / p->team);
	GpuWork w = {.blocks = ceil(points / p->rows) * parts,
		     .threads = p->team * p->rows,
		     .shared = (double)p->row_bytes};
	for (uint32_t i = 0; i < n->k->stage.n; i++) {
		const Stage *st = &n->k->stage.data[i];
		const double around = has_inner(n, st) ? gpu_inside(in, st) / fmax(1, along) : 1;
		const double rounds = has_inner(n, st) ? around * each : 1;
		w.operations += w.blocks * w.threads *
				(rounds * (st->value.i ? gpu_operations(n, st->value) : 1) +
				 (is_reduction(st) ? 4 * log2(p->team) : 0));
		if (is_reduction(st))
			/* a barrier; exchanges */
			w.rounds += p->columns || p->team > WARP ? 0.2 : 0.1;
		w.rounds += has_inner(n, st) ? rounds / AHEAD / (p->kept.n && i ? 4 : 1) : 0;
		w.bytes += n->store[i].i ? bytes_of_store(in, p, i, points) : 0;
	}
	for (uint32_t i = 1; i < n->k->kx.n; i++) {
		if (!n->offset[i].i)
			continue;
		w.bytes += bytes_of_load(in, p, i, points);
		w.flight += dtype_size(n->k->kx.data[i].dtype) * fmin(AHEAD, each);
	}
	GpuTime t = gpu_time(in->target->gpu, &w);
	gpu_time_phases(&t, p->phases);
	return t;
}

/* ---- choices ---- */

static double code_of(const Nest *n)
{
	double code = 0;
	for (uint32_t i = 0; i < n->k->stage.n; i++)
		code += n->k->stage.data[i].value.i ? gpu_operations(n, n->k->stage.data[i].value)
						    : 1;
	return code;
}

/* Whether no stage has more than one inner axis. */
static bool is_single(const Nest *n)
{
	for (uint32_t i = 0; i < n->k->stage.n; i++)
		if (n->k->stage.data[i].nred + nest_inner(n, &n->k->stage.data[i]).n > 1)
			return false;
	return true;
}

static void choose_kept(const Nest *n, GpuRowsPlan *p)
{
	int64_t most = sum_most(n->syms, n->extent[p->along]);
	const int64_t each = most == INT64_MAX ? most : (most + p->team - 1) / p->team;
	if (!p->per && is_single(n) && each <= GPU_KEPT && (double)each * code_of(n) <= MOST_CODE)
		p->kept.n = each < 1 ? 1 : (uint32_t)each;
}

/* Chooses shared memory for results along the axis, if a team is a block and a row of each stage
 * fits. */
static void choose_shared(const PlanInput *in, GpuRowsPlan *p)
{
	const Nest *n = p->nest;
	uint64_t bytes = 0;
	if (p->kept.n || p->per || p->rows > 1)
		return;
	for (uint32_t i = 0; i < n->k->stage.n; i++) {
		const Stage *st = &n->k->stage.data[i];
		if (!nest_keeps_row(n, st))
			continue;
		if (nest_inner(n, st).n > 1 || sum_most(n->syms, n->extent[p->along]) == INT64_MAX)
			return;
		bytes += ((uint64_t)sum_most(n->syms, n->extent[p->along]) * dtype_size(st->dtype) +
			  SHARED_ALIGN) /
			 SHARED_ALIGN * SHARED_ALIGN;
	}
	enum { PARTIALS = 8 << 10 }; /* for what teams exchange */
	if (bytes + PARTIALS <= in->target->gpu->shared && bytes + PARTIALS <= 48 << 10)
		p->row_bytes = bytes;
}

static uint32_t count_reductions(const Nest *n)
{
	uint32_t reductions = 0;
	for (uint32_t i = 0; i < n->k->stage.n; i++)
		reductions += is_reduction(&n->k->stage.data[i]);
	return reductions;
}

static bool has_arguments(const Nest *n)
{
	for (uint32_t i = 0; i < n->k->stage.n; i++)
		if (n->k->stage.data[i].kind == STAGE_ARGREDUCE)
			return true;
	return false;
}

/* Returns how many elements of the axis a part has, so that all multiprocessors have some; 0: no
 * parts. */
static int64_t choose_per(const PlanInput *in, const GpuRowsPlan *p)
{
	const Nest *n = p->nest;
	const double points = (double)sym_hint(n->syms, p->points),
		     along = (double)nest_hint(n, p->along);
	const double wanted = 2.0 * in->target->gpu->multiprocessors * p->rows / fmax(1, points);
	const double per = ceil(along / fmax(1, wanted) / p->team) * p->team;
	const double least = p->columns ? 8.0 * p->team : LEAST_PART;
	if (has_arguments(n) || count_reductions(n) > GPU_REDUCES || wanted < 2 ||
	    along < 2 * least)
		return 0;
	return (int64_t)fmax(per, ceil(least / p->team) * p->team);
}

static void count_blocks(const Nest *n, GpuRowsPlan *p)
{
	p->points = sym_int(n->syms, 1);
	for (uint32_t i = 0; i < p->n; i++)
		p->points = sym_mul(n->syms, p->points, n->extent[p->order[i]]);
	p->parts = p->per ? sym_ceildiv(n->syms, n->extent[p->along], sym_int(n->syms, p->per))
			  : sym_int(n->syms, 1);
	p->nblock = sym_mul(n->syms, sym_ceildiv(n->syms, p->points, sym_int(n->syms, p->rows)),
			    p->parts);
}

/* Plans where chains of additions are cut, from the rounds that a thread goes through each loop. */
static SumPlan plan_sums(const GpuRowsPlan *p, const Stage *st)
{
	uint32_t axis[2 * MAX_RANK], n;
	int64_t most[2 * MAX_RANK];
	if (st->kind != STAGE_REDUCE)
		return (SumPlan){0};
	n = gpu_rows_axes(p, st, axis);
	for (uint32_t i = 0; i < n; i++)
		most[i] = sum_most(p->nest->syms, p->nest->extent[axis[i]]);
	if (p->per)
		most[n - 1] = p->per;
	if (most[n - 1] != INT64_MAX)
		most[n - 1] = (most[n - 1] + p->team - 1) / p->team;
	return sum_plan(most, n, sum_limit(stage_combine(st), stage_acc(st), st->dtype));
}

static bool stores_wide(const Nest *n, uint32_t along, uint32_t wide)
{
	for (uint32_t i = 0; i < n->k->stage.n; i++)
		if (n->store[i].i && has_inner(n, &n->k->stage.data[i]) &&
		    !gpu_is_aligned(n, n->store[i], along, wide))
			return false;
	return true;
}

/* Chooses how many neighbouring elements a thread has in one access: several, where rows are whole
 * numbers of groups and hardly any threads have one less than others. */
static void choose_wide(GpuRowsPlan *p)
{
	const Nest *n = p->nest;
	Kx *list = ARENA_ARRAY(n->arena, Kx, n->k->kx.n);
	p->kept.wide = 1;
	if (!p->kept.n || p->columns)
		return;
	const int64_t most = sum_most(n->syms, n->extent[p->along]);
	for (uint32_t w = GPU_WIDE; w > 1 && p->kept.wide == 1; w /= 2) {
		const int64_t own = (most + (int64_t)w * p->team - 1) / ((int64_t)w * p->team) * w;
		const bool busy = own <= p->kept.n || own * p->team * 4 <= most * 5;
		const bool fits = busy && own <= GPU_KEPT && (double)own * code_of(n) <= MOST_CODE;
		if (!fits || !sym_divides(n->syms, w, n->extent[p->along]) ||
		    !stores_wide(n, p->along, w))
			continue;
		p->kept.wide = w;
		p->kept.n = (uint32_t)own;
	}
	for (uint32_t i = 1; p->kept.wide > 1 && i < n->k->kx.n; i++)
		if (n->offset[i].i && !n->k->kx.data[i].guard.i &&
		    gpu_is_aligned(n, n->offset[i], p->along, p->kept.wide))
			list[p->kept.nvector++] = (Kx){i};
	p->kept.vector = list;
}

static void finish(const PlanInput *in, GpuRowsPlan *p)
{
	const Nest *n = p->nest;
	choose_wide(p);
	SumPlan *sums = ARENA_ARRAY(n->arena, SumPlan, n->k->stage.n);
	for (uint32_t i = 0; i < n->k->stage.n; i++)
		sums[i] = plan_sums(p, &n->k->stage.data[i]);
	p->sums = sums;
	(void)in;
}

typedef struct {
	const PlanInput *in;
	GpuRowsPlan best;
	double time; /* of the best, between the hints and larger sizes; infinite: there is
	                  none */
} Search;

static void offer(Search *s, GpuRowsPlan p)
{
	choose_kept(p.nest, &p);
	choose_shared(s->in, &p);
	p.phases = p.per ? count_reductions(p.nest) + 1 : 1;
	count_blocks(p.nest, &p);
	PlanInput larger = *s->in;
	larger.at = larger.larger;
	const double time = sqrt(predict(s->in, &p).all * predict(&larger, &p).all);
	if (time < 0.98 * s->time) {
		s->best = p;
		s->time = time;
	}
}

static void offer_parts(Search *s, GpuRowsPlan p)
{
	offer(s, p);
	count_blocks(p.nest, &p);
	p.per = choose_per(s->in, &p);
	if (p.per)
		offer(s, p);
}

static bool lie_side_by_side(const GpuRowsPlan *p)
{
	const Nest *n = p->nest;
	for (uint32_t i = 1; p->n && i < n->k->kx.n; i++)
		if (n->offset[i].i && nest_coef_is(n, n->offset[i], p->order[p->n - 1], 1))
			return true;
	return false;
}

static void search(Search *s, GpuRowsPlan p)
{
	const uint32_t usual = s->in->target->gpu->threads;
	for (p.team = 2; p.team <= MOST_BLOCK; p.team *= 2) {
		p.rows = p.team < usual ? usual / p.team : 1;
		p.columns = false;
		if (p.team <= WARP || p.team >= usual) {
			p.rows = p.team > WARP ? 1 : p.rows;
			offer_parts(s, p);
		}
		p.columns = true;
		p.rows = WARP;
		if (p.team * WARP <= MOST_BLOCK && lie_side_by_side(&p))
			offer_parts(s, p);
	}
}

static const char *why(const GpuRowsPlan *p)
{
	if (p->per)
		return "several blocks for a row, their results combined in order";
	if (p->columns)
		return "neighbouring points beside each other";
	return p->team <= WARP ? "threads of a warp share a row" : "a block for each row";
}

Refusal plan_gpu_rows(const PlanInput *in, Plan *plan)
{
	const Refusal no = no_rows(in->nest);
	if (no.why)
		return no;
	if (nest_is_empty(in->nest))
		return refuse("it is empty");
	Kernel *k = kernel_copy(in->nest->arena, in->nest->k);
	Nest *nest = nest_copy(in->nest, k);
	axes_join_rows(nest, k);
	axes_merge_outer(nest, nest->outer);
	if (!reads_own_elements(nest))
		return refuse(
			"a row that stays in the kernel is read at other elements than its own");
	PlanInput at = *in;
	at.nest = nest;
	Search s = {.in = &at, .time = INFINITY};
	GpuRowsPlan p = {.nest = nest, .cost = in->cost};
	p.n = axes_outer_order(nest, NO_AXIS, p.order);
	for (p.along = 0; p.along < nest->n; p.along++)
		if (is_shared(nest, p.along))
			search(&s, p);
	if (s.time == INFINITY)
		return refuse("its steps go along different axes");
	GpuRowsPlan *best = arena_dup(nest->arena, &s.best, sizeof s.best);
	finish(&at, best);
	plan->of.gpu_rows = best;
	const GpuTime here = predict(&at, best);
	at.at = in->larger;
	gpu_plan_time(plan, in->target->gpu, &here, &(GpuTime){predict(&at, best).all});
	plan->algorithm = best->per ? "parts of rows" : best->columns ? "columns" : "rows";
	plan->why = why(best);
	return taken();
}

void print_gpu_rows(const Plan *plan, Text *out)
{
	const GpuRowsPlan *p = plan->of.gpu_rows;
	const Nest *n = p->nest;
	text_add(out, "points");
	for (uint32_t i = 0; i < p->n; i++)
		text_printf(out, " %s<%s", sym_name(n->syms, n->var[p->order[i]]),
			    sym_str(n->syms, n->extent[p->order[i]]));
	text_printf(out, ", along %s<%s by %u threads, %u %s a block",
		    sym_name(n->syms, n->var[p->along]), sym_str(n->syms, n->extent[p->along]),
		    p->team, p->rows,
		    p->columns    ? "columns"
		    : p->rows > 1 ? "rows"
				  : "row");
	if (p->kept.n)
		text_printf(out, ", %u element%s in registers", p->kept.n,
			    p->kept.n > 1 ? "s" : "");
	if (p->kept.wide > 1)
		text_printf(out, ", %u elements an access", p->kept.wide);
	if (p->row_bytes)
		text_printf(out, ", rows in %llu bytes of shared memory",
			    (unsigned long long)p->row_bytes);
	if (p->per)
		text_printf(out, ", parts of %lld, %u phases", (long long)p->per, p->phases);
	for (uint32_t i = 0; i < n->k->stage.n; i++)
		for (uint32_t c = 0; c < p->sums[i].n; c++)
			text_printf(out, ", sums cut in loop %u every %lld rounds",
				    p->sums[i].cut[c].loop, (long long)p->sums[i].cut[c].rounds);
	text_printf(out, "; blocks: %s", sym_str(n->syms, p->nblock));
}
