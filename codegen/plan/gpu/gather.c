/* Operands that are rearranged: a constant whose summed elements lie apart, as weights of
 * convolutions, is stored with them side by side. Of others copies are made: an operand whose axes
 * have no single strides, as that of a convolution, or one whose sum goes over heads and their
 * elements, becomes a matrix that a library multiplies. */
#include "codegen/plan/gpu/gpu.h"

#include <math.h>

enum {
	ALIGN = 16,    /* bytes: of lines, and the most of an access */
	WORK = 4,      /* operations on an access */
	MOST = 1 << 30 /* bytes of a copy */
};

static Sym product(const Nest *n, const GpuAxes *x)
{
	Sym all = sym_int(n->syms, 1);
	for (uint32_t i = 0; i < x->n; i++)
		all = sym_mul(n->syms, all, n->extent[x->axis[i]]);
	return all;
}

static void add_all(GpuAxes *to, const GpuAxes *from)
{
	for (uint32_t i = 0; i < from->n; i++)
		to->axis[to->n++] = from->axis[i];
}

/* ---- constants ---- */

/* Whether elements lie side by side along an axis that is not summed, or along the last of the
 * summed axes k. */
static bool is_along(const Nest *n, Sym offset, const GpuAxes *k)
{
	for (uint32_t a = 0; a < n->n; a++) {
		bool skip = !nest_has_axis(n, a) || !nest_coef_is(n, offset, a, 1);
		for (uint32_t i = 0; i + 1 < k->n; i++)
			skip = skip || k->axis[i] == a;
		if (!skip)
			return true;
	}
	return false;
}

/* Returns the dimension whose index is the axis; MAX_RANK if there is none, or several. */
static uint32_t dimension_of(const Nest *n, const KxData *x, uint32_t axis)
{
	uint32_t found = MAX_RANK;
	for (uint32_t d = 0; d < x->nidx; d++)
		if (sym_uses(n->syms, x->idx[d], n->var[axis])) {
			if (found < MAX_RANK || x->idx[d].i != n->var[axis].i)
				return MAX_RANK;
			found = d;
		}
	return found;
}

bool gpu_pack(Nest *n, Kx load, const GpuAxes *k, LayoutWant *want)
{
	const KxData *x = &n->k->kx.data[load.i];
	const Buffer *b = buf_of(n->l, x->buf);
	uint32_t perm[MAX_RANK], count = 0;
	bool summed[MAX_RANK] = {0};
	if (b->kind != BUF_CONST || !layout_is_row_major(&b->layout, b->rank) ||
	    is_along(n, n->offset[load.i], k))
		return false;
	for (uint32_t i = 0; i < k->n; i++) {
		const uint32_t d = dimension_of(n, x, k->axis[i]);
		if (d == MAX_RANK)
			return false;
		summed[d] = true;
	}
	for (uint32_t d = 0; d < b->rank; d++)
		if (!summed[d])
			perm[count++] = d;
	for (uint32_t i = 0; i < k->n; i++)
		perm[count++] = dimension_of(n, x, k->axis[i]);
	const Layout layout = layout_permuted(n->l->ir, b->rank, b->dim, perm);
	if (!nest_may_repack(n, load, &layout))
		return false;
	*want = (LayoutWant){load, layout};
	nest_read(n, load, nest_packed(n, load, &layout), layout_offset(n->l->ir, &layout, x->idx));
	return true;
}

/* ---- copies ---- */

static uint32_t count_in(const Nest *n, Sym offset, const GpuAxes *x)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < x->n; i++)
		count += (nest_axes(n, offset) >> x->axis[i] & 1) != 0;
	return count;
}

/* Returns the number that axes have together, the last one fastest. */
static Sym number(const Nest *n, const GpuAxes *x)
{
	Sym at = sym_int(n->syms, 0);
	for (uint32_t i = 0; i < x->n; i++)
		at = sym_add(n->syms, sym_mul(n->syms, at, n->extent[x->axis[i]]),
			     n->var[x->axis[i]]);
	return at;
}

static uint32_t widest(const Nest *n, Sym offset, uint32_t axis, uint32_t size)
{
	uint32_t wide = ALIGN / size;
	while (wide > 1 && !gpu_is_aligned(n, offset, axis, wide))
		wide /= 2;
	return wide;
}

static GpuTime predict(const PlanInput *in, const GpuGather *g, Kx load, uint32_t size)
{
	const Nest *n = g->nest;
	const double count = (double)plan_size(in, sym_mul(n->syms, g->nline, g->length)),
		     accesses = count / g->wide;
	const double touched =
		count * gpu_bytes_each(n, n->offset[load.i], g->line.axis[g->line.n - 1], size);
	const GpuWork w = {
		.blocks = ceil(accesses / GPU_GATHER_THREADS),
		.threads = GPU_GATHER_THREADS,
		.bytes = count * size + gpu_bytes_of_load(in, load.i, touched),
		.operations = accesses * WORK,
		.flight = (double)g->wide * size,
		.rounds = 1,
	};
	return gpu_time(in->target->gpu, &w);
}

/* Plans a copy of an operand: in lines along its own axes if its elements lie side by side there,
 * else along the summed axes. Returns NULL if the operand has some axes of the batch, and not all,
 * or the copy would be too large. */
static GpuGather *gather(const PlanInput *in, const GpuContractPlan *p, Kx load,
			 const GpuAxes *side)
{
	const Nest *n = p->nest;
	const Sym offset = n->offset[load.i];
	const uint32_t size = dtype_size(buf_of(n->l, n->k->kx.data[load.i].buf)->dtype),
		       batch = count_in(n, offset, &p->batch);
	if ((batch && batch != p->batch.n) || count_in(n, offset, side) != side->n)
		return NULL;
	GpuGather *g = ARENA_NEW(n->arena, GpuGather);
	*g = (GpuGather){.nest = n,
			 .along_k = !nest_coef_is(n, offset, side->axis[side->n - 1], 1)};
	g->line = g->along_k ? p->k : *side;
	if (batch)
		add_all(&g->lines, &p->batch);
	add_all(&g->lines, g->along_k ? side : &p->k);
	g->nline = product(n, &g->lines);
	g->length = product(n, &g->line);
	const Sym step = sym_int(n->syms, ALIGN / size);
	g->stride = sym_mul(n->syms, sym_ceildiv(n->syms, g->length, step), step);
	if ((double)plan_size(in, sym_mul(n->syms, g->nline, g->stride)) * size > MOST)
		return NULL;
	g->wide = widest(n, offset, g->line.axis[g->line.n - 1], size);
	PlanInput larger = *in;
	larger.at = in->larger;
	g->time[0] = predict(in, g, load, size);
	g->time[1] = predict(&larger, g, load, size);
	return g;
}

/* Makes the nest read an operand from its copy. */
static void read_copy(Nest *n, const GpuOperand *o)
{
	const GpuGather *g = o->gather;
	const Sym at = sym_add(n->syms, sym_mul(n->syms, number(n, &g->lines), g->stride),
			       number(n, &g->line));
	nest_read(n, o->load, (SchedArg){ARG_TEMP, g->temp, NULL}, at);
}

bool gpu_gather(const PlanInput *in, const GpuContractPlan *p, GpuContractPlan *out)
{
	*out = *p;
	GpuOperand *const operand[] = {&out->a, &out->b};
	Nest *nest = nest_copy(p->nest, p->nest->k);
	uint32_t temps = 0;
	for (uint32_t i = 0; i < 2; i++) {
		if (gpu_is_matrix(p, i ? &p->b : &p->a))
			continue;
		GpuGather *g = gather(in, p, operand[i]->load, i ? &p->c : &p->m);
		if (!g)
			return false;
		g->temp = temps++;
		operand[i]->gather = g;
		read_copy(nest, operand[i]);
	}
	out->nest = nest;
	return temps > 0;
}
