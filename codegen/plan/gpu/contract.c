/* Contractions: which axes are rows, columns, sums; how large the tile of a block is; how operands
 * come into shared memory. */
#include "codegen/plan/gpu/gpu.h"

#include <math.h>

/* Tiles of a block, and of a thread; how many summed steps are in shared memory at a time. `share`:
 * of the rate of the units that such a tile reaches. Shares, STEP and FULL were fitted to 200 times
 * of f32 products on an H100 (docs/log/measurements.md). */
static const struct {
	uint32_t rows, cols, trows, tcols, depth;
	double share;
} tiles[] = {
	{128, 128, 8, 8, 8, 0.53}, {128, 64, 8, 4, 16, 0.55}, {64, 128, 4, 8, 16, 0.52},
	{64, 64, 4, 4, 16, 0.46},  {32, 64, 4, 4, 16, 0.42},  {64, 32, 4, 4, 16, 0.42},
	{32, 32, 4, 4, 16, 0.37},
};

enum {
	STEP_NS = 125,     /* a step into shared memory, from one barrier to the next, */
	DEEP_NS = 15,      /* and for each of its summed steps */
	FULL = 128,        /* threads of a multiprocessor that reach the share */
	CACHED = 2, LEAST_STEPS = 128, MOST_DEPTH = 16,
	MOST_SUMS = 144    /* registers */
};

static bool is_linear(const Nest *n, Sym offset)
{
	Sym coef;
	for (uint32_t a = 0; a < n->n; a++)
		if (nest_has_axis(n, a) && !nest_coef(n, offset, a, &coef))
			return false;
	return true;
}

static int64_t stride_hint(const Nest *n, Sym offset, uint32_t axis)
{
	Sym coef;
	return nest_coef(n, offset, axis, &coef) ? sym_hint(n->syms, coef) : 0;
}

/* ---- axes ---- */

/* Sorts axes by their stride in the offset, the largest first. */
static void sort_axes(const Nest *n, Sym offset, GpuAxes *x)
{
	for (uint32_t i = 1; i < x->n; i++)
		for (uint32_t j = i; j > 0 && stride_hint(n, offset, x->axis[j]) >
						      stride_hint(n, offset, x->axis[j - 1]);
		     j--) {
			const uint32_t t = x->axis[j];
			x->axis[j] = x->axis[j - 1];
			x->axis[j - 1] = t;
		}
}

static void add(GpuAxes *x, uint32_t axis)
{
	x->axis[x->n++] = axis;
}

static Sym product(const Nest *n, const GpuAxes *x)
{
	Sym all = sym_int(n->syms, 1);
	for (uint32_t i = 0; i < x->n; i++)
		all = sym_mul(n->syms, all, n->extent[x->axis[i]]);
	return all;
}

/* Merges neighbours among the summed axes that are contiguous. */
static void merge_summed(Nest *n, GpuAxes *x)
{
	for (uint32_t i = 0; i + 1 < x->n;) {
		if (n->n >= MAX_AXES || !axes_can_merge(n, x->axis[i], x->axis[i + 1])) {
			i++;
			continue;
		}
		x->axis[i] = nest_merge_axes(n, x->axis[i], x->axis[i + 1]);
		for (uint32_t j = i + 1; j + 1 < x->n; j++)
			x->axis[j] = x->axis[j + 1];
		x->n--;
	}
}

/* Finds the axes of rows, columns, sums and batch. Sets *want to the layout of the constant that is
 * packed, if one is. */
static void find_axes(Nest *n, const Contraction *of, GpuContractPlan *p, LayoutWant *want)
{
	const Stage *st = &n->k->stage.data[of->sum];
	for (uint32_t i = 0; i < st->nred; i++)
		add(&p->k, st->red[i]);
	sort_axes(n, n->offset[of->a.i], &p->k);
	if (!gpu_pack(n, of->b, &p->k, want))
		gpu_pack(n, of->a, &p->k, want);
	merge_summed(n, &p->k);
	axes_merge_outer(n, n->outer);
	const uint64_t in_a = nest_axes(n, n->offset[of->a.i]),
		       in_b = nest_axes(n, n->offset[of->b.i]);
	for (uint32_t a = 0; a < n->n; a++) {
		if (!nest_has_axis(n, a) || !nest_is_outer(n, a))
			continue;
		const bool of_a = in_a >> a & 1, of_b = in_b >> a & 1;
		add(of_a && !of_b ? &p->m : of_b && !of_a ? &p->c : &p->batch, a);
	}
}

/* Makes the operand b the one along whose own axes results lie side by side: its axes are the
 * columns. */
static void choose_sides(const Nest *n, const Contraction *of, uint32_t last, GpuContractPlan *p)
{
	const Sym store = n->store[last];
	bool turned = false;
	for (uint32_t i = 0; store.i && i < p->m.n; i++)
		turned = turned || nest_coef_is(n, store, p->m.axis[i], 1);
	p->a.load = turned ? of->b : of->a;
	p->b.load = turned ? of->a : of->b;
	if (turned) {
		const GpuAxes t = p->m;
		p->m = p->c;
		p->c = t;
	}
	const Sym order = store.i ? store : n->offset[p->a.load.i];
	sort_axes(n, order, &p->m);
	sort_axes(n, order, &p->c);
	sort_axes(n, order, &p->batch);
}

/* ---- operands ---- */

static bool is_aligned(const Nest *n, Sym offset, uint32_t axis, int64_t wide)
{
	Sym coef, rest;
	return nest_coef_is(n, offset, axis, 1) &&
	       sym_linear(n->syms, offset, n->var[axis], &coef, &rest) &&
	       sym_divides(n->syms, wide, rest) && sym_divides(n->syms, wide, n->extent[axis]);
}

/* Chooses how an operand comes into shared memory. If its elements lie side by side along k,
 * threads go along k, with several elements in one access where alignment allows it; these come by
 * registers, since they lie apart in the tile. Else threads go along the rows (columns), with
 * several elements in one copy where alignment allows it. Copies go on while threads compute,
 * unless a conversion does. */
static void choose_operand(const Nest *n, const GpuContractPlan *p, const GpuAxes *side,
			   GpuOperand *o)
{
	const Sym offset = n->offset[o->load.i];
	const DType storage = buf_of(n->l, n->k->kx.data[o->load.i].buf)->dtype;
	const uint32_t most = SHARED_ALIGN / dtype_size(p->dtype);
	o->async = storage == p->dtype;
	o->along_k = nest_coef_is(n, offset, p->k.axis[p->k.n - 1], 1);
	o->wide = o->deep = 1;
	if (o->along_k && is_aligned(n, offset, p->k.axis[p->k.n - 1], most)) {
		o->deep = most;
		o->async = false;
	}
	if (!o->along_k && o->async && side->n &&
	    is_aligned(n, offset, side->axis[side->n - 1], most))
		o->wide = most;
}

/* ---- the tile ---- */

static void add_copy(GpuTime *t, const GpuTime *copy)
{
	t->all += copy->all;
	t->start += copy->start;
	t->memory += copy->memory;
	t->units += copy->units;
	t->waits += copy->waits;
}

static GpuTime predict(const PlanInput *in, const GpuContractPlan *p, double share)
{
	const Gpu *g = in->target->gpu;
	const double steps = (double)plan_size(in, p->grid.steps),
		     k = p->grid.per ? fmin(steps, (double)p->grid.per) : steps;
	const double tiles_of = (double)plan_size(in, p->grid.nblock), rows = p->tile.rows,
		     cols = p->tile.cols;
	const double rate = (double)g->f32 * 1000 / g->multiprocessors * share,
		     size = dtype_size(p->dtype);
	const double at_once = fmin(g->blocks, floor((double)g->warps * WARP / p->threads)),
		     own = ceil(tiles_of / g->multiprocessors);
	const double each = fmin(1, fmin(own, at_once) * p->threads / FULL);
	const double compute =
		own * 2 * rows * cols * k * (p->dtype == DT_f64 ? 2 : 1) / (rate * fmax(each, 0.1));
	const double left = gpu_two_phases(p) ? 2 * size * (double)plan_size(in, p->grid.results) *
							(double)plan_size(in, p->grid.splits)
					      : 0;
	const double bytes =
		left + cost_at(in->nest->syms, in->cost.bytes, in->at.var, in->at.value, in->at.n);
	const double moved = bytes + tiles_of * (rows + cols) * k * size / CACHED;
	const double waits =
		ceil(own / at_once) * k / p->tile.depth * (STEP_NS + DEEP_NS * p->tile.depth);
	GpuTime t = {
		.start = GPU_START, .memory = moved / g->memory, .units = compute, .waits = waits};
	t.all = t.start + fmax(fmax(t.units, t.memory), t.waits);
	gpu_time_phases(&t, gpu_two_phases(p) ? 2 : 1);
	return t;
}

/* Returns how many steps of k a block has, so that there are blocks for all multiprocessors; 0 if a
 * block has all steps: there are tiles enough, or few steps. */
static int64_t choose_per(const PlanInput *in, const GpuContractPlan *p)
{
	const double blocks = (double)plan_size(in, p->grid.nblock),
		     steps = (double)plan_size(in, p->grid.steps);
	const double wanted = 2.0 * in->target->gpu->multiprocessors / fmax(1, blocks);
	const double per = ceil(steps / wanted / MOST_DEPTH) * MOST_DEPTH;
	return wanted < 2 || steps < 2 * LEAST_STEPS ? 0 : (int64_t)fmax(per, LEAST_STEPS);
}

static void set_tile(const Nest *n, GpuContractPlan *p, uint32_t t)
{
	p->tile.rows = tiles[t].rows;
	p->tile.cols = tiles[t].cols;
	p->tile.trows = tiles[t].trows;
	p->tile.tcols = tiles[t].tcols;
	/* shared memory holds as many bytes */
	p->tile.depth = tiles[t].depth * 4 / dtype_size(p->dtype);
	p->threads = p->tile.rows / p->tile.trows * (p->tile.cols / p->tile.tcols);
	p->grid.row_tiles = sym_ceildiv(n->syms, product(n, &p->m), sym_int(n->syms, p->tile.rows));
	p->grid.col_tiles = sym_ceildiv(n->syms, product(n, &p->c), sym_int(n->syms, p->tile.cols));
	p->grid.splits =
		p->grid.per ? sym_ceildiv(n->syms, p->grid.steps, sym_int(n->syms, p->grid.per))
			    : sym_int(n->syms, 1);
	p->grid.nblock = sym_mul(n->syms, product(n, &p->batch),
				 sym_mul(n->syms, p->grid.row_tiles, p->grid.col_tiles));
	p->grid.nblock = sym_mul(n->syms, p->grid.nblock, p->grid.splits);
	const int64_t most = p->grid.per ? p->grid.per : sum_most(n->syms, p->grid.steps);
	p->sums = sum_plan(&most, 1,
			   sum_limit(REDUCE_SUM, p->dtype,
				     n->k->stage.data[kernel_first_contraction(n->k)].dtype));
}

static uint64_t shared_bytes(const GpuContractPlan *p)
{
	const uint64_t size = dtype_size(p->dtype);
	return size * (2 * p->tile.depth * (uint64_t)(p->tile.rows + p->tile.cols + 2 * GPU_PAD) +
		       (uint64_t)p->tile.rows / p->tile.trows * GPU_SLICE * p->tile.cols);
}

/* Whether the tile fits into shared memory, and its sums into registers. Each cut takes as many
 * registers as the tile. */
static bool tile_fits(const PlanInput *in, const GpuContractPlan *p)
{
	const uint32_t sums =
		p->tile.trows * p->tile.tcols * (1 + p->sums.n) * (dtype_size(p->dtype) / 4);
	return shared_bytes(p) <= 48 << 10 && shared_bytes(p) <= in->target->gpu->shared &&
	       sums <= MOST_SUMS;
}

/* Returns the most elements, up to `wide`, of an access with which every thread has at least one
 * copy of a step. */
static uint32_t fits(uint32_t wide, uint32_t length, const GpuContractPlan *p)
{
	const uint32_t most = p->tile.depth * length / p->threads;
	return wide < most ? wide : most;
}

static bool choose_tile(const PlanInput *in, GpuContractPlan *p)
{
	GpuContractPlan best = {0};
	const uint32_t a_wide = p->a.wide, b_wide = p->b.wide, a_deep = p->a.deep,
		       b_deep = p->b.deep;
	double least = INFINITY;
	PlanInput larger = *in;
	larger.at = in->larger;
	for (uint32_t t = 0; t < 2 * sizeof tiles / sizeof *tiles; t++) {
		p->grid.per = t % 2 ? choose_per(in, p) : 0;
		if (t % 2 && (!p->grid.per || p->product)) /* a library has one phase */
			continue;
		set_tile(p->nest, p, t / 2);
		p->a.wide = fits(a_wide, p->tile.rows, p);
		p->b.wide = fits(b_wide, p->tile.cols, p);
		p->a.deep = fits(a_deep, p->tile.rows, p);
		p->b.deep = fits(b_deep, p->tile.cols, p);
		if (!tile_fits(in, p))
			continue;
		p->time[0] = predict(in, p, tiles[t / 2].share);
		p->time[1] = predict(&larger, p, tiles[t / 2].share);
		for (uint32_t k = 0; k < 2; k++) {
			if (p->a.gather)
				add_copy(&p->time[k], &p->a.gather->time[k]);
			if (p->b.gather)
				add_copy(&p->time[k], &p->b.gather->time[k]);
		}
		if (sqrt(p->time[0].all * p->time[1].all) < 0.98 * least) {
			least = sqrt(p->time[0].all * p->time[1].all);
			best = *p;
		}
	}
	*p = best;
	return least < INFINITY;
}

/* Chooses how many columns a thread of the second phase has: several, if all stores have them side
 * by side. */
static void choose_rest(const Nest *n, GpuContractPlan *p)
{
	Kx *list = ARENA_ARRAY(n->arena, Kx, n->k->kx.n);
	const uint32_t fast = p->c.axis[p->c.n - 1];
	p->rest.wide = GPU_WIDE;
	for (uint32_t i = 0; i < n->k->stage.n; i++)
		while (p->rest.wide > 1 && n->store[i].i &&
		       !is_aligned(n, n->store[i], fast, p->rest.wide))
			p->rest.wide /= 2;
	for (uint32_t i = 1; p->rest.wide > 1 && i < n->k->kx.n; i++)
		if (n->offset[i].i && i != p->a.load.i && i != p->b.load.i &&
		    !n->k->kx.data[i].guard.i &&
		    gpu_is_aligned(n, n->offset[i], fast, p->rest.wide))
			list[p->rest.nvector++] = (Kx){i};
	p->rest.vector = list;
}

static Refusal no_tiles(const PlanInput *in)
{
	const Contraction *s = &in->contraction;
	const Nest *n = in->nest;
	if (in->no_contraction)
		return refuse(in->no_contraction);
	if (!dtype_is_float(s->dtype))
		return refuse("its products are not of floats");
	if (n->k->kx.data[s->a.i].dtype != s->dtype || n->k->kx.data[s->b.i].dtype != s->dtype)
		return refuse("an operand is converted where it is read");
	if (nest_is_empty(n))
		return refuse("it is empty");
	if (!contraction_rows(s) || !contraction_columns(s))
		return refuse("an operand has no axis of its own");
	if (!s->summed)
		return refuse("one product each, and no sum");
	if (!is_linear(n, n->offset[s->a.i]) || !is_linear(n, n->offset[s->b.i]))
		return refuse_near("an operand is read at an index that is not linear");
	return taken();
}

/* Whether the library, with what the plan does ahead of it and behind, takes half of the time of
 * the generated kernel without that, or gains a tenth of it and as much as is lost where there is
 * no library: the other phases are in vain there. q: a plan without a tile, which gets one; *p
 * becomes q. */
static bool take_library(const PlanInput *in, GpuContractPlan q, GpuContractPlan *p,
			 const char **why, bool *now)
{
	enum { LEAST = 10 };
	const char *other;
	bool faster;
	q.product = gpu_product(in, &q, &other, &faster);
	if (!q.product || !faster || !choose_tile(in, &q))
		return false;
	const double own = p->time[0].all, gained = own - gpu_library_time(in, &q),
		     lost = q.time[0].all - own;
	if (gained < own / 2 && (gained < own / LEAST || gained < lost))
		return false;
	*p = q;
	*why = other;
	*now = true;
	return true;
}

/* Tries a plan in which the library computes the sums, and a second phase the rest of the kernel,
 * as is faster for f16 and bf16. q: the plan without a tile; *p: the same with one. Returns false
 * if that does not pay. */
static bool consider_apart(const PlanInput *in, GpuContractPlan q, GpuContractPlan *p,
			   const char **why, bool *now)
{
	q.rest.apart = true;
	return take_library(in, q, p, why, now);
}

/* Tries a plan in which the library multiplies matrices that phases ahead have copied. */
static void consider_copies(const PlanInput *in, const GpuContractPlan *without, GpuContractPlan *p,
			    const char **why, bool *now)
{
	GpuContractPlan q;
	PlanInput at = *in;
	if (!in->target->gpu->library || !gpu_gather(in, without, &q))
		return;
	at.nest = q.nest;
	choose_operand(q.nest, &q, &q.m, &q.a);
	choose_operand(q.nest, &q, &q.c, &q.b);
	if (!take_library(&at, q, p, why, now))
		consider_apart(&at, q, p, why, now);
}

Refusal plan_gpu_contract(const PlanInput *in, Plan *plan)
{
	const Refusal no = no_tiles(in);
	if (no.why)
		return no;
	Kernel *k = kernel_copy(in->nest->arena, in->nest->k);
	Nest *nest = nest_copy(in->nest, k);
	PlanInput at = *in;
	at.nest = nest;
	GpuContractPlan *p = ARENA_NEW(nest->arena, GpuContractPlan);
	*p = (GpuContractPlan){.nest = nest, .dtype = in->contraction.dtype, .cost = in->cost};
	find_axes(nest, &in->contraction, p, &plan->want);
	choose_sides(nest, &in->contraction, in->last_store, p);
	choose_operand(nest, p, &p->m, &p->a);
	choose_operand(nest, p, &p->c, &p->b);
	choose_rest(nest, p);
	p->grid.steps = product(nest, &p->k);
	p->grid.results = sym_mul(nest->syms, product(nest, &p->batch),
				  sym_mul(nest->syms, product(nest, &p->m), product(nest, &p->c)));
	const char *library;
	bool now;
	p->product = gpu_product(&at, p, &library, &now);
	const GpuContractPlan without = *p;
	if (!choose_tile(&at, p))
		return refuse_near("registers or shared memory hold no tile");
	if (!p->product && !consider_apart(&at, without, p, &library, &now))
		consider_copies(&at, &without, p, &library, &now);
	at.nest = p->nest;
	plan->of.gpu_contract = p;
	p->time[0].library = gpu_library_time(&at, p);
	gpu_plan_time(plan, in->target->gpu, &p->time[0], &p->time[1]);
	plan->algorithm = now ? "library" : "contract";
	plan->why = arena_printf(nest->arena,
				 "%s%stiles of %u by %u in shared memory, of %u by %u a thread",
				 p->product ? library : "", p->product ? "; else " : "",
				 p->tile.rows, p->tile.cols, p->tile.trows, p->tile.tcols);
	if (library && !p->product)
		plan->why = arena_printf(nest->arena, "%s; %s", plan->why, library);
	return taken();
}

static void print_axes(const Nest *n, const char *what, const GpuAxes *x, Text *out)
{
	if (x->n)
		text_add(out, what);
	for (uint32_t i = 0; i < x->n; i++)
		text_printf(out, " %s<%s", sym_name(n->syms, n->var[x->axis[i]]),
			    sym_str(n->syms, n->extent[x->axis[i]]));
}

static void print_operand(const char *name, const GpuOperand *o, Text *out)
{
	text_printf(out, ", %s %s%s", name,
		    o->async      ? "copied"
		    : o->deep > 1 ? "loaded"
				  : "converted",
		    o->along_k ? " along k" : "");
	if (o->wide > 1 || o->deep > 1)
		text_printf(out, " by %u", o->wide > 1 ? o->wide : o->deep);
	if (o->gather)
		text_printf(out, " from a copy with lines along %s, made by %u",
			    o->gather->along_k ? "k"
			    : *name == 'a'     ? "rows"
					       : "columns",
			    o->gather->wide);
}

void print_gpu_contract(const Plan *plan, Text *out)
{
	const GpuContractPlan *p = plan->of.gpu_contract;
	const Nest *n = p->nest;
	print_axes(n, "rows", &p->m, out);
	print_axes(n, ", columns", &p->c, out);
	print_axes(n, ", k", &p->k, out);
	print_axes(n, ", batch", &p->batch, out);
	text_printf(out, "; tile %u x %u, %u x %u a thread", p->tile.rows, p->tile.cols,
		    p->tile.trows, p->tile.tcols);
	print_operand("a", &p->a, out);
	print_operand("b", &p->b, out);
	if (p->grid.per)
		text_printf(out, ", k in parts of %lld", (long long)p->grid.per);
	for (uint32_t c = 0; c < p->sums.n; c++)
		text_printf(out, ", sums cut every %lld steps", (long long)p->sums.cut[c].rounds);
	if (p->rest.apart)
		text_add(out, "; sums apart");
	if (gpu_two_phases(p) && p->rest.wide > 1)
		text_printf(out, ", the rest by %u columns", p->rest.wide);
	if (p->product)
		text_printf(out, "; cuBLASLt from %u x %u x %u on", p->product->of.least[0],
			    p->product->of.least[1], p->product->of.least[2]);
	text_printf(out, "; %u threads; blocks: %s", p->threads, sym_str(n->syms, p->grid.nblock));
}
