/* Operands of contractions behind index maps that no axis follows in equal steps: of a convolution
 * over pixels that were channels (pixel_shuffle) x[.., (i + k) / 2, ..], of which neither axis can
 * be split; or behind a border, whose elements are in no memory: windows of a padded image.
 * Contractions read what is linear in their axes; all others read each element anew for each
 * product, by arithmetic and conditions. So such an operand is stored first, where that takes less
 * time.
 *
 * What an access takes apart evenly (i / 64, i % 64, with 64 rows) is no reason: schedules split
 * that axis (codegen/cpu/split.c). */
#include "ir/target/work.h"
#include "lower/trace.h"

enum { MAX_SPLITS = 16 };

/* Indices, and the axes that they are to be linear in. */
typedef struct {
	SymTab *syms;
	Sym idx[MAX_RANK];
	uint32_t n, naxis;
	Sym var[MAX_KERNEL_AXES + MAX_SPLITS], extent[MAX_KERNEL_AXES + MAX_SPLITS];
} Indices;

static bool is_linear(const Indices *x, uint32_t axis)
{
	Sym coef, rest;
	for (uint32_t k = 0; k < x->n; k++)
		if (!sym_linear(x->syms, x->idx[k], x->var[axis], &coef, &rest))
			return false;
	return true;
}

/* Returns the divisor by which an index takes the axis apart, if it divides the axis's extent; else
 * none. */
static Sym even_divisor(const Indices *x, uint32_t axis)
{
	for (uint32_t k = 0; k < x->n; k++) {
		Sym d = sym_divisor_of(x->syms, x->idx[k], x->var[axis]);
		if (!d.i || sym_uses_kind(x->syms, d, SYMVAR_AXIS))
			continue;
		Sym whole = sym_mul(x->syms, sym_floordiv(x->syms, x->extent[axis], d), d);
		if (sym_eq(x->syms, whole, x->extent[axis]) == YES)
			return d;
	}
	return (Sym){0};
}

static void split(Indices *x, uint32_t axis, Sym d)
{
	Sym old = x->var[axis], high = sym_floordiv(x->syms, x->extent[axis], d);
	x->var[axis] = sym_axis(x->syms, "i", high);
	x->extent[axis] = high;
	x->var[x->naxis] = sym_axis(x->syms, "i", d);
	x->extent[x->naxis] = d;
	Sym by = sym_add(x->syms, sym_mul(x->syms, x->var[axis], d), x->var[x->naxis++]);
	for (uint32_t k = 0; k < x->n; k++)
		x->idx[k] = sym_subst(x->syms, x->idx[k], &old, &by, 1);
}

/* Whether the indices are linear in all axes, once every axis is split that an index takes apart
 * evenly. */
static bool can_follow(Indices *x)
{
	uint32_t splits = 0;
	for (uint32_t a = 0; a < x->naxis; a++)
		while (!is_linear(x, a)) {
			Sym d = even_divisor(x, a);
			if (!d.i || splits++ == MAX_SPLITS)
				return false;
			split(x, a, d);
			a = 0;
		}
	return true;
}

/* Whether axes follow the elements idx[] of n in equal steps: dimension by dimension, whatever
 * their order in memory, or as a row-major whole. */
static bool is_followed(const Trace *t, Node n, const Sym *idx)
{
	Graph *g = t->s->g;
	Indices x = {.syms = g->ir->syms, .n = node_rank(g, n), .naxis = t->k->axis.n};
	for (uint32_t a = 0; a < x.naxis; a++) {
		x.var[a] = t->k->axis.data[a].var;
		x.extent[a] = t->k->axis.data[a].extent;
	}
	for (uint32_t k = 0; k < x.n; k++)
		x.idx[k] = idx[k];
	Indices rows = x;
	if (can_follow(&x))
		return true;
	Sym at = sym_int(x.syms, 0);
	for (uint32_t k = 0; k < rows.n; k++)
		at = sym_add(x.syms, sym_mul(x.syms, at, node_dim(g, n, k)), idx[k]);
	rows.idx[0] = at;
	rows.n = 1;
	return can_follow(&rows);
}

/* ---- down the maps ---- */

typedef struct {
	IndexMap map;
	bool asked; /* for a value: what it selects is unknown here */
} Down;

static Sym ask_value(IndexMap *m, uint32_t k, const Sym *at, Sym extent, IndexMode mode)
{
	(void)k, (void)at, (void)extent, (void)mode;
	((Down *)m)->asked = true;
	return sym_int(m->g->ir->syms, 0);
}

static Sym ask_axis(IndexMap *m, const char *name, Sym extent)
{
	(void)name, (void)extent;
	((Down *)m)->asked = true;
	return sym_int(m->g->ir->syms, 0);
}

/* Whether the products that the kernel adds up take longer than an element-wise copy of n in a
 * phase more. */
static bool pays(const Trace *t, Node n)
{
	const Graph *g = t->s->g;
	SymTab *syms = g->ir->syms;
	double products = 1,
	       elements = (double)sym_hint(syms, type_numel(g->ir, node_type_id(g, n)));
	for (uint32_t a = 0; a < t->k->axis.n; a++)
		products *= (double)sym_hint(syms, t->k->axis.data[a].extent);
	Work copy = {.bytes = 2 * elements * dtype_size(node_dtype(g, n)), .phases = 1};
	return target_cycles(t->s->target, (Work){.operations = products}) >
	       target_cycles(t->s->target, copy);
}

/* Whether some element that the kernel reads may not be in the operand, so that each product has a
 * condition. */
static bool asks_where(const Trace *t, const IndexMap *m)
{
	const SymTab *syms = t->s->ir->syms;
	for (uint32_t k = 0; k < m->nrange; k++) {
		const struct IndexRange *r = &m->range[k];
		if (sym_le(syms, r->lo, r->e) != YES || sym_lt(syms, r->e, r->hi) != YES)
			return true;
	}
	return false;
}

/* Returns the lowest map from n on that can be followed, if what is read below it cannot: *why says
 * how. Returns none if all can be followed, or no map. */
static Node lowest_followed(const Trace *t, Node n, const Sym *at, const char **why)
{
	const Graph *g = t->s->g;
	if (trace_reads_stored(t, n)) {
		*why = is_followed(t, n, at)
			       ? NULL
			       : "a contraction would read it at an index that is not linear";
		return (Node){0};
	}
	const OpLower *how = op_lower(node_op(g, n));
	if (!lower_is_map(how) || how->holds == HOLDS_OPERANDS)
		return (Node){0};
	Down d = {.map = {.g = g,
			  .n = n,
			  .start = sym_int(g->ir->syms, 0),
			  .at = at,
			  .axis = ask_axis,
			  .value = ask_value}};
	how->index(&d.map);
	if (d.asked)
		return (Node){0};
	Node found = lowest_followed(t, node_in(g, n, 0), d.map.in[0], why);
	if (!*why && asks_where(t, &d.map))
		*why = "a contraction would ask for each product whether there is an element";
	return found.i || !*why || !is_followed(t, n, at) ? found : n;
}

Node lower_unfollowed_map(const Trace *t, Node n, const Sym *idx, const char **why)
{
	*why = NULL;
	Node map = lowest_followed(t, n, idx, why);
	return map.i && pays(t, map) ? map : (Node){0};
}
