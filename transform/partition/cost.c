/* What it costs to save a value for gradients, and what to compute it again.
 *
 * A value that is saved is written, unless it is stored anyway because a kernel reads it at indices
 * of its own, and read. One that is computed again is part of the kernels that read it, of each of
 * them, or, where they read it at indices of their own or it takes long, a kernel more: then it is
 * written and read after all. Index maps cost nothing: whoever reads them computes indices.
 *
 * What lowering computes inside of an attention and of its gradient is never saved: their kernels
 * compute scores again, of the operands and of a number a row, and memory of as many elements as
 * there are pairs of queries and keys is not needed at all. */
#include <math.h>
#include <string.h>

#include "ir/target/target.h"
#include "ir/target/work.h"
#include "lower/attention.h"
#include "lower/group_cost.h"
#include "transform/partition/priv.h"

/* How a value is read. */
typedef struct {
	uint32_t kernel, count;      /* the kernel of the second graph that reads it, by its root,
	                                or MANY; 0: none. How many do */
	bool in_memory, late_memory; /* some other reader, and some late one, reads it at indices of
	                                its own */
	bool open;                   /* computed in the first graph with what it is made of, and not
	                                the end of that */
	bool stored;                 /* in the first graph, whether it is saved or not */
} Readers;

static const uint32_t MANY = UINT32_MAX;

typedef struct {
	const Parting *p;
	const Target *target;
	Readers *read;
	const FoundAttention *attention; /* by node */
	Sym *var; /* sizes, and what they are taken to be */
	int64_t *value;
	uint32_t nvar;
} Pricing;

/* ---- sizes ---- */

/* Chooses values for the sizes: their hints; where the file has none, values that are neither 1
 * nor large. */
static void choose_sizes(Pricing *c)
{
	const SymTab *s = graph_syms(c->p->g);
	Arena *scratch = c->p->g->ir->ctx->scratch;
	c->nvar = sym_nvars(s);
	c->var = ARENA_ARRAY(scratch, Sym, c->nvar);
	c->value = ARENA_ARRAY(scratch, int64_t, c->nvar);
	for (uint32_t k = 0; k < c->nvar; k++) {
		enum { SOME = 64 };
		int64_t lo, hi, hint = sym_hint(s, sym_var_at(s, k));
		sym_range(s, sym_var_at(s, k), &lo, &hi);
		c->var[k] = sym_var_at(s, k);
		c->value[k] = hint > lo ? hint : hi < SOME ? hi : lo > SOME ? lo : SOME;
	}
}

static double size_of(const Pricing *c, Sym e)
{
	int64_t v;
	if (sym_eval(graph_syms(c->p->g), e, c->var, c->value, c->nvar, &v))
		return (double)v;
	return (double)sym_hint(graph_syms(c->p->g), e);
}

static double elements_of(const Pricing *c, TypeId type)
{
	Ir *ir = c->p->g->ir;
	const Type t = *ir_type_of(ir, type);
	double n = 0;
	if (t.dtype != DT_none)
		return size_of(c, type_numel(ir, type));
	for (uint32_t k = 0; k < t.n; k++)
		n += elements_of(c, t.elem[k]);
	return n;
}

static double elements(const Pricing *c, Node n)
{
	return n.i && node_type_id(c->p->g, n).i ? elements_of(c, node_type_id(c->p->g, n)) : 0;
}

static double bytes_of(const Pricing *c, Node n)
{
	DType d = n.i && node_type_id(c->p->g, n).i ? node_dtype(c->p->g, n) : DT_none;
	return elements(c, n) * (d == DT_none ? 8 : (double)dtype_size(d));
}

/* ---- readers ---- */

/* Whether n is made of one value that is in memory in any case, and of small ones: kernels
 * repeat such a value rather than store it, as lowering does. */
static bool is_repeated(const Pricing *c, Node n)
{
	enum { SMALL = 8 };
	const Graph *g = c->p->g;
	uint32_t large = 0;
	for (uint32_t k = 0; k < node_nin(g, n); k++) {
		Node x = node_in(g, n, k);
		while (x.i && lower_is_map(op_lower(node_op(g, x))))
			x = node_in(g, x, 0);
		if (!x.i || elements(c, x) * SMALL <= elements(c, n))
			continue;
		LowerRole role = op_lower(node_op(g, x))->role;
		if (large++ || role == LOWER_MAP || role == LOWER_INDEX)
			return false;
	}
	return true;
}

/* Says where the second graph computes n: in the kernel of its readers, in all of them (MANY),
 * or in its own. 0: it does not. */
static uint32_t kernel_of(const Pricing *c, Node n)
{
	const Readers *r = &c->read[n.i];
	const OpLower *l = op_lower(node_op(c->p->g, n));
	bool late = c->p->late[n.i];
	if (lower_is_map(l) || (!late && !r->kernel))
		return r->kernel;
	if (l->role != LOWER_MAP && l->role != LOWER_INDEX)
		return late ? n.i : 0;
	if (!r->kernel || r->late_memory || (r->kernel == MANY && (late || !is_repeated(c, n))))
		return n.i;
	return r->kernel;
}

/* Sketches how lowering groups nodes (lower/group.c), of both graphs in one. */
static void find_readers(Pricing *c)
{
	const Graph *g = c->p->g;
	c->read = ARENA_ARRAY(g->ir->ctx->scratch, Readers, g->node.n);
	for (Node n = g->last; n.i; n = node_prev(g, n)) {
		const OpLower *l = op_lower(node_op(g, n));
		const Readers own = c->read[n.i];
		bool map = lower_is_map(l), late = c->p->late[n.i];
		uint32_t kernel = kernel_of(c, n),
			 count = kernel == MANY || map ? own.count : kernel != 0;
		for (uint32_t k = 0; k < node_nin(g, n); k++) {
			Readers *r = &c->read[node_in(g, n, k).i];
			bool memory = lower_reads(l, k),
			     same = r->kernel == kernel && kernel != MANY;
			r->in_memory |= map ? own.in_memory : !late && memory;
			r->late_memory |= map ? own.late_memory : late && memory;
			if (!kernel || same)
				continue;
			r->kernel = r->kernel ? MANY : kernel;
			r->count = r->count < MANY - count ? r->count + count : MANY;
		}
	}
}

/* ---- computing it again ---- */

/* Estimates cycles. Several cores compute as many times faster; the memory that they share does
 * not read faster. */
static double cycles(const Pricing *c, double operations, double bytes, double phases)
{
	enum { CORES = 8 };
	return target_cycles(
		c->target,
		(Work){.operations = operations / CORES, .bytes = bytes, .phases = phases});
}

static double operand_elements(const Pricing *c, Node n)
{
	double sum = 0;
	for (uint32_t k = 0; k < node_nin(c->p->g, n); k++)
		sum += elements(c, node_in(c->p->g, n, k));
	return sum;
}

static double operand_bytes(const Pricing *c, Node n)
{
	double sum = 0;
	for (uint32_t k = 0; k < node_nin(c->p->g, n); k++)
		sum += bytes_of(c, node_in(c->p->g, n, k));
	return sum;
}

/* Returns the products for each element of the result: what is left of operand 1. */
static double reach_of(const Pricing *c, Node n)
{
	const Graph *g = c->p->g;
	Node w = node_in(g, n, 1);
	int from[MAX_RANK];
	uint32_t kept = 0;
	double reach = 1;
	op_info(node_op(g, n))->along(g, n, from);
	for (uint32_t d = 0; d < node_rank(g, n); d++)
		kept |= from[d] >= 0 ? 1u << from[d] : 0;
	for (uint32_t d = 0; d < node_rank(g, w); d++)
		reach *= kept >> d & 1 ? 1 : size_of(c, node_dim(g, w, d));
	return reach;
}

/* Estimates the cycles of computing again what is computed for each element by itself. */
static double map_again(const Pricing *c, Node n)
{
	const Readers *r = &c->read[n.i];
	double work = elements(c, n) * element_cost(c->p->g, n);
	double apart = cycles(c, work, 2 * bytes_of(c, n), 1),
	       inside = cycles(c, work * (r->count ? r->count : 1), 0, 0);
	return kernel_of(c, n) == n.i || apart < inside ? apart : inside;
}

static double again(const Pricing *c, Node n)
{
	enum { SORTING = 16, LOOP = 64 }; /* operations per element, roughly */
	const Graph *g = c->p->g;
	const OpLower *l = op_lower(node_op(g, n));
	double moved = operand_bytes(c, n) + bytes_of(c, n);
	switch (l->role) {
	case LOWER_MEMORY: /* a result of a node that is paid for */
	case LOWER_NOTHING:
	case LOWER_LEAF:
		return 0;
	case LOWER_MAP:
	case LOWER_INDEX:
		return lower_is_map(l) ? 0 : map_again(c, n);
	case LOWER_REDUCE:
		return cycles(c, operand_elements(c, n), moved, 1);
	case LOWER_ANCHOR:
		return cycles(c, elements(c, n) * reach_of(c, n), moved, 1);
	default: /* composites have expanded, but those that have no expansion that is lowered */
		return cycles(c,
			      (operand_elements(c, n) + elements(c, n)) *
				      (node_has_graph(g, n) ? LOOP : SORTING),
			      moved, 1);
	}
}

static bool is_heavy(const Pricing *c, Node n)
{
	enum { FEW = 4 };
	LowerRole role = op_lower(node_op(c->p->g, n))->role;
	if (role == LOWER_REDUCE)
		return operand_elements(c, n) >= FEW * elements(c, n);
	return role == LOWER_ANCHOR || role == LOWER_ROOT || role == LOWER_NONE;
}

/* ---- all together ---- */

/* Whether n's type or an attribute has a size that is known where it was born only. */
static bool uses_data(const Graph *g, Node n)
{
	const SymTab *s = graph_syms(g);
	for (uint32_t k = 0; k < op_schema(node_op(g, n))->narg; k++) {
		const Attr *a = ir_attr(g->ir, node_data(g, n)->attr, k);
		if (a->kind == ATTR_int && sym_uses_kind(s, a->s, SYMVAR_UNBACKED))
			return true;
		for (uint32_t j = 0; a->kind == ATTR_ints && j < a->n; j++)
			if (sym_uses_kind(s, a->ints[j], SYMVAR_UNBACKED))
				return true;
	}
	return node_has_data_size(g, n);
}

/* Returns the one reader of the first graph, behind reshapes; none where there are several. */
static Node only_reader(const Pricing *c, Node n)
{
	const Graph *g = c->p->g;
	Node found = {0};
	for (Use u = node_data(g, n)->first_use; u.i; u = g->use.data[u.i].next) {
		Node reader = g->use.data[u.i].user;
		if (reader.i && (c->p->late[reader.i] || reader.i == found.i))
			continue;
		if (!reader.i || found.i)
			return (Node){0};
		found = reader;
	}
	const OpLower *l = op_lower(node_op(g, found));
	return found.i && lower_is_map(l) && l->keeps >= KEEPS_ORDER ? only_reader(c, found)
								     : found;
}

/* Whether one function reads n, element by element, and is part of its kernel. */
static bool has_epilogue(const Pricing *c, Node n)
{
	Node reader = only_reader(c, n);
	return reader.i && op_lower(node_op(c->p->g, reader))->role == LOWER_MAP;
}

/* Finds out whether the first graph stores n anyway: if not, saving n is a kernel more. A
 * reshape is another name for what it reads. */
static void find_stored(const Pricing *c, Node n)
{
	const Graph *g = c->p->g;
	const OpLower *l = op_lower(node_op(g, n));
	Readers *r = &c->read[n.i];
	const Readers *first = node_nin(g, n) ? &c->read[node_in(g, n, 0).i] : &c->read[0];
	bool renamed = lower_is_map(l) && l->keeps >= KEEPS_ORDER,
	     anchor = l->role == LOWER_ANCHOR || l->role == LOWER_REDUCE;
	bool epilogue = false;
	for (uint32_t k = 0; k < node_nin(g, n) && l->role == LOWER_MAP; k++)
		epilogue |= c->read[node_in(g, n, k).i].open;
	r->open = renamed ? first->open : (anchor || epilogue) && has_epilogue(c, n);
	r->stored = renamed ? first->stored
			    : (r->in_memory && !lower_is_map(l)) || l->role == LOWER_ROOT ||
				      l->role == LOWER_MEMORY || ((anchor || epilogue) && !r->open);
}

/* Whether n is a value for each pair of a query and a key: scores, and functions of them, that
 * kernels of an attention and of its gradient compute inside (lower/attention.h). The
 * rows' maxima and sums are not. */
static bool is_in_attention(const Pricing *c, Node n)
{
	const FoundAttention *f = &c->attention[n.i];
	return f->inside && !f->row;
}

static SaveCost cost_of(const Pricing *c, Node n)
{
	enum { SCORES = 1 << 16 }; /* times as dear as other memory */
	const Graph *g = c->p->g;
	bool marked = node_marked(g, n).i;
	SaveCost cost = {.bytes = bytes_of(c, n)};
	cost.hold = machine_memory_cycles(&c->target->machine, cost.bytes, INFINITY);
	cost.save = c->read[n.i].stored ? cost.hold : 2 * cost.hold + cycles(c, 0, 0, 1);
	cost.fixed = node_op(g, n) == OP_input || node_has_effect(g, n) || uses_data(g, n) ||
		     node_mark(g, n) == MARK_KEEP;
	cost.heavy = !marked && is_heavy(c, n);
	cost.again = marked || cost.fixed ? 0 : again(c, n);
	if (is_in_attention(c, n) && !cost.fixed) {
		cost.heavy = false;
		cost.again = 0;
		cost.save = cost.hold * SCORES;
	}
	return cost;
}

SaveCost *partition_costs(const Parting *p)
{
	const Graph *g = p->g;
	SaveCost *all = ARENA_ARRAY(g->ir->ctx->scratch, SaveCost, g->node.n);
	Pricing c = {.p = p, .target = target_find("x86-64-v3")};
	c.attention = find_attentions(g, c.target,
				      ARENA_ARRAY(g->ir->ctx->scratch, const char *, g->node.n),
				      g->ir->ctx->scratch);
	choose_sizes(&c);
	find_readers(&c);
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		find_stored(&c, n);
		if (!p->late[n.i])
			all[n.i] = cost_of(&c, n);
	}
	return all;
}
