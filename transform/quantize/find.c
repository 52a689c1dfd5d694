/* Which constants are weights: those that reach products alone, through index maps. Looks at the
 * graph in basic operations, so that no operator need be known by name. */
#include <string.h>

#include "ops/rules/rules.h"
#include "passes/pipeline.h"
#include "transform/quantize/quantize.h"

typedef struct {
	FoundWeights *found;
	Ir *ir;
	Arena *arena;
	uint32_t *number; /* by ConstId: 1 + the index in FoundWeights.weight; 0: none yet */
	uint32_t nnumber;
} Finding;

/* A place where a weight is read: operand `side` of the product n is the value x, which is the
 * constant behind index maps. */
typedef struct {
	Graph *g;
	Node n, x;
	uint32_t side;
	bool top; /* the graph is no body */
} WeightPlace;

static bool has_windows(Op op)
{
	return op_arg_index(op, "dilation_in") >= 0;
}

static bool is_product(const Graph *g, Node n)
{
	const Op op = node_op(g, n);
	return op_lower(op)->role == LOWER_ANCHOR &&
	       (has_windows(op) || op_arg_index(op, "sum_x") >= 0);
}

/* Returns a bit for each dimension that an attribute of the product lists. */
static uint32_t bits_of(const Graph *g, Node n, const char *name)
{
	uint32_t count, bits = 0;
	const Sym *list = node_ints(g, n, name, &count);
	for (uint32_t k = 0; k < count; k++)
		bits |= 1u << sym_const_or(graph_syms(g), list[k], 0);
	return bits;
}

/* Returns a bit for each dimension of operand `side` that the product sums over. */
static uint32_t summed_of(const Graph *g, Node n, uint32_t side)
{
	enum { GROUP_AND_ROW = 3 };
	if (has_windows(node_op(g, n)))
		return ((1u << node_rank(g, n)) - 1) & ~(uint32_t)GROUP_AND_ROW;
	return bits_of(g, n, side ? "sum_y" : "sum_x");
}

/* ---- what is known of a weight ---- */

/* Returns the weight of a constant, which is added to the list if it is not there. */
static ProductWeight *weight_of(Finding *f, ConstId id)
{
	FoundWeights *w = f->found;
	if (!f->number[id.i]) {
		array_push(f->arena, &w->weight, ((ProductWeight){.of = id}));
		f->number[id.i] = w->weight.n;
	}
	return &w->weight.data[f->number[id.i] - 1];
}

static void stays(ProductWeight *w, const char *why)
{
	w->why = w->why ? w->why : why;
}

/* Sets at[] to the index in the constant of element axis[] of x, which is the constant behind index
 * maps and converts. */
static void index_of(const Graph *g, Node x, const Sym *axis, Sym *at)
{
	memcpy(at, axis, sizeof *axis * node_rank(g, x));
	while (!node_const(g, x).i) {
		const OpLower *lower = op_lower(node_op(g, x));
		if (lower->role == LOWER_INDEX) {
			IndexMap m = {.g = g, .n = x, .at = at};
			lower->index(&m);
			memcpy(at, m.in[0], sizeof m.in[0]);
		}
		x = node_in(g, x, 0);
	}
}

/* Returns the index of what the operand of a product is, behind index maps. */
static uint32_t value_of(Finding *f, const Graph *g, Node x)
{
	FoundWeights *w = f->found;
	while (op_info(node_op(g, x))->moves && op_lower(node_op(g, x))->role == LOWER_INDEX)
		x = node_in(g, x, 0);
	for (uint32_t k = 0; k < w->value.n; k++)
		if (w->value.data[k].x.i == x.i)
			return k;
	array_push(f->arena, &w->value, ((ProductValue){.x = x}));
	return w->value.n - 1;
}

/* Notes a product of the weight: along which dimensions it sums, and whether another product sums
 * along others. */
static void note_product(Finding *f, const WeightPlace *p, ConstId id)
{
	const Graph *g = p->g;
	SymTab *t = graph_syms(g);
	ProductWeight *w = weight_of(f, id);
	const Const *c = ir_const_of(f->ir, id);
	Sym axis[MAX_RANK], at[MAX_RANK];
	const uint32_t rank = node_rank(g, p->x), over = summed_of(g, p->n, p->side);
	uint32_t summed = 0, kept = 0;
	int64_t extent;
	for (uint32_t k = 0; k < rank; k++)
		axis[k] = sym_is_const(t, node_dim(g, p->x, k), &extent) && extent == 1
				  ? sym_int(t, 0)
				  : sym_axis(t, "i", node_dim(g, p->x, k));
	index_of(g, p->x, axis, at);
	for (uint32_t d = 0; d < c->rank; d++)
		for (uint32_t k = 0; k < rank; k++)
			if (sym_kind(t, axis[k]) == SYM_VAR && sym_uses(t, at[d], axis[k]))
				*(over >> k & 1 ? &summed : &kept) |= 1u << d;
	if (summed & kept)
		stays(w, "its rows and its terms are one dimension");
	else if (!summed)
		stays(w, "its products sum over one term");
	else if (w->readers && w->summed != summed)
		stays(w, "two products sum along different dimensions of it");
	if (!has_windows(node_op(g, p->n)) && bits_of(g, p->n, "batch_x"))
		stays(w, "it is a batch of matrices");
	w->windows |= has_windows(node_op(g, p->n));
	w->summed = summed;
	w->readers++;
	if (p->top && node_dtype(g, p->n) == DT_f32)
		array_push(f->arena, &f->found->product,
			   ((StaticProduct){f->number[id.i] - 1, p->n, !p->side,
					    value_of(f, g, node_in(g, p->n, !p->side))}));
	if (!p->top || has_windows(node_op(g, p->n)) || summed & (summed - 1) || over & (over - 1))
		return;
	const uint32_t dim = (uint32_t)__builtin_ctz(over);
	const Node other = node_in(g, p->n, !p->side);
	if (summed && at[__builtin_ctz(summed)].i == axis[dim].i)
		array_push(f->arena, &f->found->reader,
			   ((WeightReader){f->number[id.i] - 1, other,
					   (uint32_t)__builtin_ctz(summed_of(g, p->n, !p->side))}));
}

/* ---- readers ---- */

/* Whether each element of n is one of its operand: moved, or in another float dtype, which is a
 * linear function of one number. */
static bool passes_on(const Graph *g, Node n)
{
	const OpInfo *info = op_info(node_op(g, n));
	const OpLower *lower = op_lower(node_op(g, n));
	if (lower->role == LOWER_MAP)
		return node_nin(g, n) == 1 && lower->keeps == KEEPS_INDEX && info->linear &&
		       dtype_is_float(node_dtype(g, n));
	return info->moves && lower->role == LOWER_INDEX;
}

/* Whether n takes elements of x at indices that it computes, as an embedding does. */
static bool reads_rows(const Graph *g, Node n, Node x)
{
	const OpLower *lower = op_lower(node_op(g, n));
	return lower->role == LOWER_INDEX && !lower_is_map(lower) && lower_reads(lower, 0) &&
	       node_in(g, n, 0).i == x.i;
}

static const char *read_by(Finding *f, const Graph *g, Node n)
{
	return arena_printf(f->arena, "%s reads it", op_name(node_op(g, n)));
}

/* Follows a constant, which is x behind index maps, to what reads it. */
static void follow(Finding *f, Graph *g, Node x, ConstId id, bool top)
{
	if (node_is_output(g, x))
		stays(weight_of(f, id), "it is an output");
	for (Use u = node_data(g, x)->first_use; u.i; u = g->use.data[u.i].next) {
		const Node n = g->use.data[u.i].user;
		if (passes_on(g, n)) {
			follow(f, g, n, id, top);
			continue;
		}
		if (reads_rows(g, n, x)) {
			weight_of(f, id)->rows = true;
			continue;
		}
		const bool windows = has_windows(node_op(g, n));
		if (!is_product(g, n) || (windows && node_in(g, n, 1).i != x.i) ||
		    node_in(g, n, 0).i == node_in(g, n, 1).i) {
			stays(weight_of(f, id), read_by(f, g, n));
			continue;
		}
		const WeightPlace p = {g, n, x, node_in(g, n, 1).i == x.i, top};
		note_product(f, &p, id);
	}
}

static void visit(Finding *f, Graph *g, bool top)
{
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		Graph *body;
		for (uint32_t k = 0; (body = node_next_body(g, n, &k));)
			visit(f, body, false);
		const ConstId id = node_const(g, n);
		/* those that the expansion made are none of the model */
		if (!id.i || id.i >= f->nnumber)
			continue;
		const Const *c = ir_const_of(f->ir, id);
		if (dtype_is_float(c->dtype) && c->rank >= 2 && c->bytes)
			follow(f, g, n, id, top);
	}
}

/* Whether a constant is worth a line of a report: products or look-ups read it, or it is large. */
static bool is_listed(const ProductWeight *w, const Const *c)
{
	enum { LARGE = 4096 };
	return w->readers || w->rows || c->bytes >= LARGE;
}

/* Makes a table that no product reads one whose rows are along the last dimension; one of another
 * rank stays. */
static void close_table(ProductWeight *w, const Const *c)
{
	if (w->readers || !w->rows)
		return;
	w->table = true;
	w->summed = 1u << (c->rank - 1);
	if (c->rank != 2)
		stays(w, "it is a table of more than rows");
}

/* Puts the weights that products or look-ups read in the order of constants. */
static void sort(Finding *f)
{
	FoundWeights *w = f->found;
	ARRAY(ProductWeight) in_order = {0};
	uint32_t *to = ARENA_ARRAY(f->arena, uint32_t, w->weight.n);
	for (uint32_t id = 1; id < f->nnumber; id++) {
		const uint32_t k = f->number[id];
		if (!k || !is_listed(&w->weight.data[k - 1], ir_const_of(f->ir, (ConstId){id})))
			continue;
		close_table(&w->weight.data[k - 1], ir_const_of(f->ir, (ConstId){id}));
		to[k - 1] = in_order.n;
		array_push(f->arena, &in_order, w->weight.data[k - 1]);
	}
	for (uint32_t k = 0; k < w->reader.n; k++)
		w->reader.data[k].weight = to[w->reader.data[k].weight];
	for (uint32_t k = 0; k < w->product.n; k++)
		w->product.data[k].weight = to[w->product.data[k].weight];
	w->weight.data = in_order.data;
	w->weight.n = in_order.n;
}

/* Notes why weights of some kinds of constants stay as they are. */
static void refuse(Finding *f)
{
	for (uint32_t k = 0; k < f->found->weight.n; k++) {
		ProductWeight *w = &f->found->weight.data[k];
		const Const *c = ir_const_of(f->ir, w->of);
		if (c->absent)
			stays(w, "the file has no values of it");
		else if (!c->data)
			stays(w, "it is computed of other weights");
		else if (c->dtype != DT_f32 && c->dtype != DT_f16 && c->dtype != DT_bf16)
			stays(w, arena_printf(f->arena, "it is %s", dtype_name(c->dtype)));
		else if (c->rank + 2 > MAX_RANK)
			stays(w, "it has too many dimensions");
	}
}

bool quantize_find(Graph *g, FoundWeights *out)
{
	Ir *ir = g->ir;
	Finding f = {.found = out,
		     .ir = ir,
		     .arena = ir->ctx->arena,
		     .number = ARENA_ARRAY(ir->ctx->arena, uint32_t, ir->constant.n),
		     .nnumber = ir->constant.n};
	*out = (FoundWeights){.expanded = graph_clone(g)};
	TRY(pipeline_expand(out->expanded, &(PipelineOptions){0}));
	graph_dce(out->expanded);
	visit(&f, out->expanded, true);
	sort(&f);
	refuse(&f);
	return true;
}
