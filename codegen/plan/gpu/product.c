/* Products that the vendor's library computes: which they are, and from which size on it is asked.
 * The generated kernel stays in the artifact: a machine without the library executes that. */
#include "codegen/plan/gpu/gpu.h"

#include <math.h>
#include <string.h>

/* ---- what follows the sum ---- */

static const KxData *at(const Nest *n, Kx x)
{
	return &n->k->kx.data[x.i];
}

/* Whether v is the operation on a constant c and another value, in any order. Sets *x to the other
 * value. */
static bool with_const(const Nest *n, Kx v, Op op, double c, Kx *x)
{
	const KxData *d = at(n, v);
	if (d->kind != KX_OP || d->op != op || d->nin != 2)
		return false;
	for (uint32_t k = 0; k < 2; k++) {
		const KxData *o = at(n, d->in[k]);
		*x = d->in[!k];
		if (o->kind == KX_CONST && o->dtype == DT_f32 && fabs(o->c.f - c) <= 1e-6 * fabs(c))
			return true;
	}
	return false;
}

static bool is_binary(const Nest *n, Kx v, Op op, Kx *x, Kx *y)
{
	const KxData *d = at(n, v);
	if (d->kind != KX_OP || d->op != op || d->nin != 2)
		return false;
	*x = d->in[0];
	*y = d->in[1];
	return true;
}

/* Whether v is x * x * x. */
static bool is_cube(const Nest *n, Kx v, Kx x)
{
	Kx p, q, r, s;
	if (!is_binary(n, v, OP_mul, &p, &q))
		return false;
	if (p.i == x.i) {
		r = p;
		p = q;
		q = r;
	}
	return q.i == x.i && is_binary(n, p, OP_mul, &r, &s) && r.i == x.i && s.i == x.i;
}

/* Whether v is tanh((x + x^3 * 0.044715) * 0.7979) + 1. */
static bool is_gelu_factor(const Nest *n, Kx v, Kx x)
{
	Kx t, in, p, q, cube;
	if (!with_const(n, v, OP_add, 1, &t) || at(n, t)->kind != KX_OP || at(n, t)->op != OP_tanh)
		return false;
	if (!with_const(n, at(n, t)->in[0], OP_mul, 0.7978845608028654, &in) ||
	    !is_binary(n, in, OP_add, &p, &q))
		return false;
	if (q.i == x.i) {
		q = p;
		p = x;
	}
	return p.i == x.i && with_const(n, q, OP_mul, 0.044715, &cube) && is_cube(n, cube, x);
}

/* Whether v is x / 2 * (1 + tanh(...)), the approximation of gelu. Sets *x. */
static bool is_gelu(const Nest *n, Kx v, Kx *x)
{
	Kx p, q;
	if (!is_binary(n, v, OP_mul, &p, &q))
		return false;
	return (with_const(n, p, OP_mul, 0.5, x) && is_gelu_factor(n, q, *x)) ||
	       (with_const(n, q, OP_mul, 0.5, x) && is_gelu_factor(n, p, *x));
}

/* ---- strides ---- */

/* Sets *stride to the distance of neighbours along axes that are counted as one; to 0 if there are
 * no axes. Returns false if there is no single distance. */
static bool stride_of(const Nest *n, Sym offset, const GpuAxes *x, Sym *stride)
{
	Sym coef, step = {0};
	*stride = sym_int(n->syms, 0);
	for (uint32_t i = x->n; i-- > 0;) {
		if (!nest_coef(n, offset, x->axis[i], &coef) || (step.i && step.i != coef.i))
			return false;
		*stride = step.i ? *stride : coef;
		step = sym_mul(n->syms, coef, n->extent[x->axis[i]]);
	}
	return true;
}

/* Sets *first to the offset where all axes are 0. Returns false if the offset is not linear in
 * them. */
static bool first_of(const Nest *n, Sym offset, Sym *first)
{
	Sym coef;
	for (uint32_t a = 0; a < n->n; a++)
		if (nest_has_axis(n, a) && !sym_linear(n->syms, offset, n->var[a], &coef, &offset))
			return false;
	*first = offset;
	return !sym_uses_kind(n->syms, offset, SYMVAR_AXIS);
}

static Sym count_of(const Nest *n, const GpuAxes *x)
{
	Sym all = sym_int(n->syms, 1);
	for (uint32_t i = 0; i < x->n; i++)
		all = sym_mul(n->syms, all, n->extent[x->axis[i]]);
	return all;
}

/* Whether an operand is a matrix in each member of the batch, of which one dimension has its
 * elements side by side. Sets *second if that is not the first one, and *stride to the stride of
 * the other dimension. */
static bool operand(const Nest *n, const GpuContractPlan *p, Sym offset, const GpuAxes *first,
		    const GpuAxes *other, bool *second, Sym *stride, Sym *member, Sym *begin)
{
	Sym x, y;
	if (!stride_of(n, offset, first, &x) || !stride_of(n, offset, other, &y) ||
	    !stride_of(n, offset, &p->batch, member) || !first_of(n, offset, begin))
		return false;
	*second = !sym_is(n->syms, x, 1);
	*stride = *second ? x : y;
	return !*second || sym_is(n->syms, y, 1);
}

bool gpu_is_matrix(const GpuContractPlan *p, const GpuOperand *o)
{
	const GpuAxes *side = o == &p->a ? &p->m : &p->c;
	Sym stride, member, begin;
	bool second;
	return operand(p->nest, p, p->nest->offset[o->load.i], side, &p->k, &second, &stride,
		       &member, &begin);
}

/* ---- the kernel ---- */

static DType storage(const Nest *n, Kx load)
{
	return buf_of(n->l, at(n, load)->buf)->dtype;
}

static const char *read_epilogue(const Nest *n, const GpuContractPlan *p, GpuProduct *x, BufId *out,
				 Sym *store)
{
	const uint32_t sum = kernel_first_contraction(n->k), last = kernel_last_store(n->k);
	const Stage *st = &n->k->stage.data[last];
	if (n->k->stage.n > 2 || (last != sum && stage_stores(&n->k->stage.data[sum])))
		return "it has several results";
	*out = st->store.buf;
	*store = n->store[last];
	x->of.c_type = buf_of(n->l, st->store.buf)->dtype;
	if (last == sum)
		return NULL;
	Kx v = st->value, in, load;
	if (with_const(n, v, OP_maximum, 0, &in))
		x->of.relu = true, v = in;
	else if (is_gelu(n, v, &in))
		x->of.gelu = true, v = in;
	if (is_binary(n, v, OP_add, &in, &load)) {
		if (at(n, in)->kind == KX_LOAD) {
			const Kx t = in;
			in = load;
			load = t;
		}
		const KxData *d = at(n, load);
		Sym stride, none;
		GpuAxes others = p->m;
		if (d->kind != KX_LOAD || d->guard.i || storage(n, load) != x->of.c_type ||
		    !stride_of(n, n->offset[load.i], &p->c, &stride) ||
		    !sym_is(n->syms, stride, 1) ||
		    !first_of(n, n->offset[load.i], &x->size[PRODUCT_BIAS_FIRST]))
			return "what is added is no bias of columns";
		for (uint32_t k = 0; k < 2; k++, others = p->batch)
			for (uint32_t i = 0; i < others.n; i++)
				if (!nest_coef(n, n->offset[load.i], others.axis[i], &none) ||
				    !sym_is(n->syms, none, 0))
					return "what is added is no bias of columns";
		x->bias = load;
		v = in;
	}
	return at(n, v)->kind == KX_STAGE && at(n, v)->stage == sum
		       ? NULL
		       : "the library has no such epilogue";
}

/* Returns the number of a result, which is its place in the temporary of a plan with sums apart. */
static Sym number_of(const Nest *n, const GpuContractPlan *p)
{
	const GpuAxes *const part[] = {&p->batch, &p->m, &p->c};
	Sym at = sym_int(n->syms, 0);
	for (uint32_t k = 0; k < 3; k++)
		for (uint32_t i = 0; i < part[k]->n; i++)
			at = sym_add(n->syms, sym_mul(n->syms, at, n->extent[part[k]->axis[i]]),
				     n->var[part[k]->axis[i]]);
	return at;
}

/* Describes the kernel as a product, *x. apart: the place of the sums, all that the library
 * computes then; none: it computes the whole kernel. Returns why the library cannot; NULL if it
 * can. */
static const char *read_kernel(const Nest *n, const GpuContractPlan *p, Sym apart, GpuProduct *x)
{
	BufId out = {0};
	Sym store = apart, zero = sym_int(n->syms, 0);
	bool second;
	for (uint32_t k = 0; k < PRODUCT_SIZES; k++)
		x->size[k] = zero;
	x->of.a_type = storage(n, p->a.load);
	x->of.b_type = storage(n, p->b.load);
	if (x->of.a_type != x->of.b_type || p->dtype != DT_f32)
		return "its operands are not of one of the library's types";
	if (at(n, p->a.load)->guard.i || at(n, p->b.load)->guard.i)
		return "an operand is padded";
	const char *no = apart.i ? NULL : read_epilogue(n, p, x, &out, &store);
	if (no)
		return no;
	if (apart.i)
		x->of.c_type = DT_f32;
	if (x->of.c_type != x->of.a_type && x->of.c_type != DT_f32)
		return "its results are not of one of the library's types";
	if (out.i == at(n, p->a.load)->buf.i || out.i == at(n, p->b.load)->buf.i)
		return "it replaces an operand";
	if (!operand(n, p, n->offset[p->a.load.i], &p->m, &p->k, &x->of.a_rows,
		     &x->size[PRODUCT_A_STRIDE], &x->size[PRODUCT_A_MEMBER],
		     &x->size[PRODUCT_A_FIRST]) ||
	    !operand(n, p, n->offset[p->b.load.i], &p->k, &p->c, &x->of.b_rows,
		     &x->size[PRODUCT_B_STRIDE], &x->size[PRODUCT_B_MEMBER],
		     &x->size[PRODUCT_B_FIRST]) ||
	    !operand(n, p, store, &p->m, &p->c, &second, &x->size[PRODUCT_C_STRIDE],
		     &x->size[PRODUCT_C_MEMBER], &x->size[PRODUCT_C_FIRST]))
		return "its axes have no single strides, as of a convolution";
	x->of.a_rows = !x->of.a_rows;
	x->of.b_rows = !x->of.b_rows;
	if (!second)
		return "its results lie side by side along rows";
	x->size[PRODUCT_M] = count_of(n, &p->m);
	x->size[PRODUCT_N] = count_of(n, &p->c);
	x->size[PRODUCT_K] = count_of(n, &p->k);
	x->size[PRODUCT_BATCH] = count_of(n, &p->batch);
	return NULL;
}

/* Moves one of two axes of a side, which have no single stride, to the batch, whose members share
 * the other operand then: the images of a convolution by a window of one element. */
static void split_side(const Nest *n, Sym offset, Sym store, GpuAxes *side, GpuAxes *batch)
{
	Sym none;
	if (side->n != 2 || batch->n ||
	    (stride_of(n, offset, side, &none) && store.i && stride_of(n, store, side, &none)))
		return;
	*batch = (GpuAxes){1, {side->axis[0]}};
	*side = (GpuAxes){1, {side->axis[1]}};
}

/* ---- the decision ---- */

static bool is_large(const PlanInput *in, const GpuProduct *x)
{
	bool all = true;
	for (uint32_t k = 0; k < 3; k++)
		all = all && plan_size(in, x->size[PRODUCT_M + k]) >= x->of.least[k];
	return all;
}

/* Tiles that a library's kernels have, and the share of the rate of the units that these reach in
 * large products: published are 0.71 of f32 and 0.77 of f16 and bf16 on an H100. For smaller tiles
 * it is assumed. */
static const struct {
	double side, share;
} library_tiles[] = {{128, 0.74}, {64, 0.5}, {32, 0.25}};

double gpu_library_time(const PlanInput *in, const GpuContractPlan *p)
{
	enum { SPLITS = 32 };
	const Gpu *g = in->target->gpu;
	const Nest *n = p->nest;
	const DType a = storage(n, p->a.load), b = storage(n, p->b.load);
	const bool half = a == b && (a == DT_f16 || a == DT_bf16);
	const double rate = 1000.0 *
			    (half                 ? g->f16
			     : p->dtype == DT_f64 ? g->f32 / 2
						  : g->f32) /
			    g->multiprocessors;
	const double rows = (double)plan_size(in, count_of(n, &p->m)),
		     columns = (double)plan_size(in, count_of(n, &p->c));
	const double k = (double)plan_size(in, p->grid.steps),
		     results = (double)plan_size(in, p->grid.results);
	const double bytes = cost_at(n->syms, in->cost.bytes, in->at.var, in->at.value, in->at.n);
	double best = INFINITY;
	for (uint32_t t = 0; t < sizeof library_tiles / sizeof *library_tiles; t++)
		for (double splits = 1; splits <= SPLITS && splits * library_tiles[t].side <=
								    fmax(k, library_tiles[t].side);
		     splits *= 2) {
			const double side = library_tiles[t].side,
				     count = results / fmax(1, rows * columns) * ceil(rows / side) *
					     ceil(columns / side) * splits;
			const double units = ceil(count / g->multiprocessors) * 2 * side * side *
					     ceil(k / splits) / (rate * library_tiles[t].share);
			const double moved = bytes + (splits > 1 ? 2 * 4 * results * splits : 0);
			best = fmin(best, GPU_START * (splits > 1 ? 2 : 1) +
						  fmax(units, moved / g->memory));
		}
	const double copies = (p->a.gather ? p->a.gather->time[0].all : 0) +
			      (p->b.gather ? p->b.gather->time[0].all : 0);
	return best + copies +
	       (p->rest.apart ? GPU_START + 2 * dtype_size(DT_f32) * results / g->memory : 0);
}

static const GpuLibrary *row_of(const Gpu *g, DType t)
{
	for (uint32_t k = 0; k < g->nlibrary; k++)
		if (!strcmp(g->library[k].dtype, dtype_name(t)))
			return &g->library[k];
	return NULL;
}

const GpuProduct *gpu_product(const PlanInput *in, const GpuContractPlan *p, const char **why,
			      bool *now)
{
	const Gpu *g = in->target->gpu;
	const Nest *n = p->nest;
	Arena *a = n->arena;
	PlanInput here = *in, larger = *in;
	GpuProduct *x = ARENA_NEW(a, GpuProduct);
	*now = false;
	*why = NULL;
	if (!g->library)
		return NULL;
	GpuContractPlan q = *p;
	const Sym apart = p->rest.apart ? number_of(n, p) : (Sym){0},
		  store = p->rest.apart ? apart : n->store[kernel_last_store(n->k)];
	split_side(n, n->offset[p->b.load.i], store, &q.c, &q.batch);
	split_side(n, n->offset[p->a.load.i], store, &q.m, &q.batch);
	const char *no = read_kernel(n, &q, apart, x);
	const GpuLibrary *row = row_of(g, x->of.a_type);
	if (no || !row) {
		*why = arena_printf(
			a, "not by cuBLASLt: %s",
			no ? no : arena_printf(a, "it is slower for %s", dtype_name(x->of.a_type)));
		return NULL;
	}
	memcpy(x->of.least, (uint32_t[]){row->m, row->n, row->k}, sizeof x->of.least);
	here.nest = larger.nest = n;
	larger.at = in->larger;
	*now = is_large(&here, x);
	const char *from = arena_printf(a, "from %u x %u x %u of %s on (estimated)", row->m, row->n,
					row->k, dtype_name(x->of.a_type));
	if (!*now && !is_large(&larger, x)) {
		*why = arena_printf(a, "not by cuBLASLt, which is faster %s", from);
		return NULL;
	}
	*why = arena_printf(a, "by cuBLASLt %s%s%s%s%s%s", from,
			    p->a.gather || p->b.gather ? ", of copies" : "",
			    p->rest.apart ? ", the rest in a second phase" : "",
			    x->bias.i ? ", with bias" : "",
			    x->of.relu   ? ", relu"
			    : x->of.gelu ? ", gelu"
					 : "",
			    *now ? "" : "; not at these sizes");
	return x;
}
