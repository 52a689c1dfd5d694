/* What depends on constants alone becomes a constant.
 *
 *   %1 = add(%var, %eps)                      with constants %var, %w: f32[16]
 *   %2 = rsqrt(%1)
 *   %3 = mul(%w, %2)                    ->    %3 = constant #7 : f32[16]
 *
 * The reference interpreter computes it, so folding rounds as the interpreter does. A value is
 * folded only if it is no larger than the constants it comes from (or SMALL bytes): broadcasts and
 * iotas stay symbolic, and so does what index maps make of iotas. A reshaped constant shares its
 * bytes. A constant of one element becomes a splat, because rules and kernels know more about
 * splats. Ends because every step removes a computation or a constant.
 *
 * Where parameters are replaceable, what depends on them is not computed: the constant gets a
 * recipe (recipe.c), and code of the target computes it, when the model is compiled and
 * whenever weights are set. What is folded is the same. */
#include "passes/fold/fold.h"

#include <string.h>

#include "ir/interp/interp.h"
#include "passes/fold/recipe.h"

enum { SMALL = 1 << 16, LARGEST_STEP = 1 << 26, AT_ONCE = 1 << 25 };

typedef struct {
	Graph *g;
	uint64_t *source; /* by node: bytes of the constants it comes from */
	bool *constant;   /* by node: computable now */
	bool *kept;       /* by node: of these, depends on what is replaceable */
	bool keep_params;
} Fold;

/* Sets *bytes to those of a value of concrete shape. Returns false for another value. */
static bool value_bytes(const Graph *g, TypeId id, uint64_t *bytes)
{
	const Type *t = ir_type_of(g->ir, id);
	int64_t n;
	if (t->dtype == DT_none || !sym_is_const(graph_syms(g), type_numel(g->ir, id), &n))
		return false;
	for (uint32_t k = 0; k < t->n; k++)
		TRY(sym_is_const(graph_syms(g), t->dim[k], NULL));
	*bytes = (uint64_t)n * dtype_size(t->dtype);
	return true;
}

static bool has_symbols(const Graph *g, Node n)
{
	const Schema *s = op_schema(node_op(g, n));
	for (uint32_t k = 0; k < s->narg; k++) {
		const Attr *a = ir_attr(g->ir, node_data(g, n)->attr, k);
		if (a->kind == ATTR_int && !sym_is_const(graph_syms(g), a->s, NULL))
			return true;
		for (uint32_t j = 0; a->kind == ATTR_ints && j < a->n; j++)
			if (!sym_is_const(graph_syms(g), a->ints[j], NULL))
				return true;
	}
	return false;
}

static Folds folds(const Graph *g, Node n)
{
	Op op = node_op(g, n);
	return op_is_scalar(op) ? FOLDS : op_info(op)->folds;
}

/* Whether following a recipe may fail at n: an index may be out of range. Weights with which
 * that happens are refused when they are set; those of the model stay in the graph, which will
 * say so when it is run. */
static bool recipe_may_fail(const Fold *f, Node n)
{
	return f->kept[n.i] && node_checks(f->g, n) == CHECKS_INDEX && !gather_is_in_range(f->g, n);
}

/* Whether the value is an index map of what is no constant of the model: kernels compute it of the
 * index, and see what it is, as where a mask compares positions. */
static bool is_of_indices(const Fold *f, Node n)
{
	return !f->source[n.i] && lower_is_map(op_lower(node_op(f->g, n)));
}

/* Whether the value is worth being a constant of its own. */
static bool wanted(const Fold *f, Node n)
{
	uint64_t bytes;
	if (!f->constant[n.i] || folds(f->g, n) != FOLDS || is_of_indices(f, n) ||
	    !value_bytes(f->g, node_type_id(f->g, n), &bytes))
		return false;
	return bytes <= f->source[n.i] || bytes <= SMALL;
}

/* Notes whether n can be computed now, and what is needed on the way is not much larger than
 * where it starts. */
static void visit(Fold *f, Node n)
{
	const Graph *g = f->g;
	uint64_t bytes, source = 0;
	if (folds(g, n) == FOLDS_NOT || node_has_effect(g, n) || has_symbols(g, n) ||
	    !value_bytes(g, node_type_id(g, n), &bytes))
		return;
	for (uint32_t k = 0; k < node_nin(g, n); k++) {
		Node x = node_in(g, n, k);
		if (!x.i || !f->constant[x.i])
			return;
		source += f->source[x.i];
		f->kept[n.i] |= f->kept[x.i];
	}
	if (node_const(g, n).i) {
		source = bytes;
		f->kept[n.i] = f->keep_params && const_is_replaceable(g->ir, node_const(g, n));
	}
	if (recipe_may_fail(f, n))
		return;
	f->source[n.i] = source;
	/* A broadcast on the way to a constant (a scale for every weight) is interpreted once. */
	f->constant[n.i] = bytes <= 8 * source || bytes <= LARGEST_STEP;
	/* It may be that constant that later values come from: what is packed stays packed. */
	if (bytes < source && wanted(f, n))
		f->source[n.i] = bytes;
}

/* Whether a value that stays in the graph reads n. */
static bool frontier(const Fold *f, const bool *want, Node n)
{
	const Graph *g = f->g;
	if (node_is_output(g, n))
		return true;
	for (Use u = node_data(g, n)->first_use; u.i; u = g->use.data[u.i].next)
		if (!want[g->use.data[u.i].user.i])
			return true;
	return false;
}

/* ---- evaluation ---- */

/* Returns a graph of what the wanted values need, with them as outputs. */
static Graph *extract(const Graph *g, const Node *root, uint32_t nroot)
{
	Arena *scratch = g->ir->ctx->scratch;
	Graph *out = graph_beside(g, "fold");
	bool *need = ARENA_ARRAY(scratch, bool, g->node.n);
	Node *copy = ARENA_ARRAY(scratch, Node, g->node.n);
	for (uint32_t k = 0; k < nroot; k++)
		need[root[k].i] = true;
	for (Node n = g->last; n.i; n = node_prev(g, n))
		for (uint32_t k = 0; need[n.i] && k < node_nin(g, n); k++)
			need[node_in(g, n, k).i] = true;
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		const NodeData *d = node_data(g, n);
		if (!need[n.i])
			continue;
		Node *arg = ARENA_ARRAY(scratch, Node, d->nin);
		for (uint32_t k = 0; k < d->nin; k++)
			arg[k] = copy[node_in(g, n, k).i];
		copy[n.i] = graph_add(out, (Node){0}, d->op, arg, d->nin, d->attr, d->type, d->loc);
	}
	for (uint32_t k = 0; k < nroot; k++)
		graph_add_output(out, "", copy[root[k].i], -1);
	return out;
}

static ConstId constant_of(Ir *ir, const Tensor *t)
{
	int64_t *dim = arena_dup(ir->ctx->arena, t->dim, t->rank * sizeof *dim);
	uint64_t bytes = tensor_bytes(t);
	return ir_const(ir, (Const){.name = "",
				    .dtype = t->dtype,
				    .rank = t->rank,
				    .dim = dim,
				    .data = arena_dup(ir->ctx->arena, t->data, bytes),
				    .bytes = bytes});
}

static void free_values(void *arg)
{
	Arena **values = arg;
	arena_free(*values);
	*values = NULL;
}

/* Replaces the roots by constants; made[k] is the node of the k-th, or NULL. Values that fail to
 * evaluate (an index out of range) stay. */
static bool evaluate(Graph *g, const Node *root, uint32_t nroot, Node *made)
{
	Ctx *ctx = g->ir->ctx;
	ArenaMark mark = arena_mark(ctx->scratch);
	Graph *part = extract(g, root, nroot);
	Tensor *out = ARENA_ARRAY(ctx->scratch, Tensor, nroot);
	Arena **values = ARENA_NEW(ctx->arena, Arena *);
	ctx_defer(ctx, free_values, values); /* also when memory runs out below */
	*values = arena_new(&ctx->unwind);
	Diag *last = ctx->last;
	uint32_t errors = ctx->nerror;
	if (!*values)
		return false;
	bool ok = interp(ctx, part, NULL, 0, out, nroot, *values);
	for (uint32_t k = 0; ok && k < nroot; k++) {
		Build b = pass_build(g, root[k]);
		Node value = b_const(&b, constant_of(g->ir, &out[k]));
		if (made)
			made[k] = value;
		pass_replace(g, root[k], value);
	}
	free_values(values);
	arena_release(ctx->scratch, mark);
	if (!ok) {
		/* It will fail again at run time, where the message belongs. */
		ctx->nerror = errors;
		ctx->last = last;
		if (last)
			last->next = NULL;
		else
			ctx->first = NULL;
	}
	return ok;
}

/* Returns how many of the next roots are computed together: what they need on the way is there
 * until all are done, beside the constants made so far. */
static uint32_t group(const Graph *g, const Node *root, uint32_t nroot)
{
	uint64_t sum = 0, bytes;
	uint32_t n = 0;
	while (n < nroot && sum < AT_ONCE) {
		value_bytes(g, node_type_id(g, root[n++]), &bytes);
		sum += bytes;
	}
	return n;
}

/* ---- reshaped constants ---- */

static bool share_reshaped(Graph *g)
{
	bool changed = false;
	for (Node n = g->first, next; n.i; n = next) {
		next = node_next(g, n);
		uint64_t bytes;
		Node x = op_lower(node_op(g, n))->keeps == KEEPS_ORDER ? node_in(g, n, 0)
								       : (Node){0};
		if (!x.i || !node_const(g, x).i || !value_bytes(g, node_type_id(g, n), &bytes))
			continue;
		Const c = *ir_const_of(g->ir, node_const(g, x));
		if (c.recipe) /* it has no bytes yet: a recipe of its own */
			continue;
		const Type *t = node_type(g, n);
		int64_t *dim = ARENA_ARRAY(g->ir->ctx->arena, int64_t, t->n);
		for (uint32_t k = 0; k < t->n; k++)
			dim[k] = sym_const(graph_syms(g), t->dim[k]);
		c.rank = t->n;
		c.dim = dim;
		c.view_of = node_const(g, x);
		c.hash = 0;
		Build b = pass_build(g, n);
		pass_replace(g, n, b_const(&b, ir_const(g->ir, c)));
		changed = true;
	}
	return changed;
}

/* ---- constants of one element ---- */

/* Sets *out to the number of a constant of one element that a splat can hold. Returns false for
 * NaN, complex numbers, and integers that are no i64. */
static bool number_of(const Graph *g, const Const *c, Attr *out)
{
	int64_t n = 1;
	for (uint32_t k = 0; k < c->rank; k++)
		n *= c->dim[k];
	if (n != 1 || dtype_is_complex(c->dtype) || c->recipe)
		return false;
	const Tensor t = {.dtype = c->dtype, .rank = 0, .data = (void *)(uintptr_t)c->data};
	if (dtype_is_float(c->dtype)) {
		*out = attr_float(tensor_f64(&t, 0));
		return out->f == out->f;
	}
	*out = c->dtype == DT_bool ? attr_bool(tensor_i64(&t, 0) != 0)
				   : attr_int(g->ir, tensor_i64(&t, 0));
	return c->dtype != DT_u64 || *(const uint64_t *)c->data <= INT64_MAX;
}

static bool splat_numbers(Graph *g, const PassCtx *c)
{
	bool changed = false;
	for (Node n = g->first, next; n.i; n = next) {
		next = node_next(g, n);
		ConstId id = node_const(g, n);
		Attr v;
		if (!id.i || !node_nuses(g, n) ||
		    (c->keep_params && const_is_replaceable(g->ir, id)) ||
		    !number_of(g, ir_const_of(g->ir, id), &v))
			continue;
		const Type t = *node_type(g, n);
		Build b = pass_build(g, n);
		pass_replace(g, n, b_full_attr(&b, t.dtype, v, t.n, t.dim));
		changed = true;
	}
	return changed;
}

bool pass_fold(Graph *g, PassCtx *c)
{
	Arena *scratch = g->ir->ctx->scratch;
	bool changed = share_reshaped(g);
	changed |= splat_numbers(g, c);
	Fold f = {.g = g,
		  .keep_params = c->keep_params,
		  .kept = ARENA_ARRAY(scratch, bool, g->node.n)};
	f.source = ARENA_ARRAY(scratch, uint64_t, g->node.n);
	f.constant = ARENA_ARRAY(scratch, bool, g->node.n);
	bool *want = ARENA_ARRAY(scratch, bool, g->node.n);
	ARRAY(Node) root = {0}, kept = {0};
	for (Node n = g->first; n.i; n = node_next(g, n))
		visit(&f, n);
	for (Node n = g->first; n.i; n = node_next(g, n))
		want[n.i] = wanted(&f, n);
	for (Node n = g->first; n.i; n = node_next(g, n))
		if (want[n.i] && frontier(&f, want, n) && f.kept[n.i])
			array_push(scratch, &kept, n);
		else if (want[n.i] && frontier(&f, want, n))
			array_push(scratch, &root, n);
	for (uint32_t k = 0, n; k < root.n; k += n) {
		n = group(g, root.data + k, root.n - k);
		bool done = evaluate(g, root.data + k, n, NULL);
		for (uint32_t j = k; !done && n > 1 && j < k + n; j++) /* which of them fails? */
			changed |= evaluate(g, root.data + j, 1, NULL);
		changed |= done;
	}
	fold_recipes(g, kept.data, kept.n, NULL);
	changed |= kept.n > 0;
	return pass_subgraphs(g, c, pass_fold) || changed;
}

/* Whether n depends on a constant that may be replaced. */
static bool is_kept(const Graph *g, Node n)
{
	bool kept = node_const(g, n).i && const_is_replaceable(g->ir, node_const(g, n));
	for (uint32_t k = 0; k < node_nin(g, n) && !kept; k++)
		kept = is_kept(g, node_in(g, n, k));
	return kept;
}

static bool same_bytes(const Const *a, const Const *b)
{
	return a->data && b->data && a->dtype == b->dtype && a->rank == b->rank &&
	       a->bytes == b->bytes && !a->is_param && !a->is_buffer && !a->view_of.i &&
	       memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) == 0 &&
	       memcmp(a->data, b->data, a->bytes) == 0;
}

/* Returns the first constant with the bytes of n, so that weights of which several products make
 * the same are stored once. */
static Node first_same(Graph *g, Node n)
{
	const ConstId own = node_const(g, n);
	for (uint32_t k = 1; own.i && k < own.i; k++)
		if (same_bytes(ir_const_of(g->ir, (ConstId){k}), ir_const_of(g->ir, own))) {
			Build b = pass_build(g, n);
			const Node first = b_const(&b, (ConstId){k});
			pass_replace(g, n, first);
			return first;
		}
	return n;
}

Node fold_node(Graph *g, PassCtx *c, Node n)
{
	Node made = n;
	if (c->keep_params && is_kept(g, n))
		fold_recipes(g, &n, 1, &made);
	else if (!evaluate(g, &n, 1, &made))
		return n;
	return first_same(g, made);
}
