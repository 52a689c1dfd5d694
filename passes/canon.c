/* Composites become what they mean.
 *
 *   %y = aten.linear(%x, %w, %b) : f32[8, 10]
 * becomes
 *   %1 = contract(%x, %w, ...) : f32[8, 10]
 *   %2 = broadcast(%b, ...) : f32[8, 10]
 *   %y = add(%1, %2) : f32[8, 10]
 *
 * The type of the replacement is compared with the one the file gave: provably different, or
 * different at the hints or at a sampled point, is bad input; undecided keeps the file's and
 * asserts it at entry: of %x[:, -1:] the file says [N, 1], which holds where there are columns.
 * Ends because expansions hold composites of lower rank only (tests/unit/ir_samples.c expands a
 * sample of every op and bounds depth and size). Does not simplify. */
#include <string.h>

#include "ir/build/adopt.h"
#include "passes/pass.h"

/* ---- expansion ---- */

/* Whether a tensor argument chooses elements or random numbers, and takes no part in arithmetic. */
static bool chooses(const Arg *a)
{
	static const char *const names[] = {"condition", "mask", "index", "indices", "rng"};
	for (size_t k = 0; k < sizeof names / sizeof *names; k++)
		if (!strcmp(a->name, names[k]))
			return true;
	return false;
}

/* Whether the file gives n in double precision though no operand and no argument says so: PyTorch's
 * default dtype was f64 (torch.set_default_dtype) when the file was written. */
static bool is_widened(const Graph *g, Node n)
{
	const Type *t = node_type_id(g, n).i ? node_type(g, n) : NULL;
	const Schema *schema = op_schema(node_op(g, n));
	if (!t || (t->dtype != DT_f64 && t->dtype != DT_c128))
		return false;
	for (uint32_t k = 0; k < schema->narg; k++)
		if (schema->arg[k].kind == ARG_dtype &&
		    node_attr(g, n, schema->arg[k].name)->kind == ATTR_dtype)
			return false;
	for (uint32_t k = 0; k < node_nin(g, n); k++)
		TRY(!node_in(g, n, k).i || !dtype_is_inexact(node_dtype(g, node_in(g, n, k))));
	return true;
}

/* Expands n as with PyTorch's default dtype f64: numbers of integers and bools are f64 beside
 * floats, and so are tensors that are made without a dtype. */
static Node expand_widened(Build *b, Node n)
{
	Op op = node_op(b->g, n);
	const Schema *schema = op_schema(op);
	Arena *scratch = b->g->ir->ctx->scratch;
	uint32_t nin = node_nin(b->g, n), at = 0;
	bool converted = false, made = false;
	Node *in = ARENA_ARRAY(scratch, Node, nin + 1);
	Attr *attr = ARENA_ARRAY(scratch, Attr, schema->narg + 1);
	for (uint32_t k = 0; k < schema->narg; k++) {
		const Arg *a = &schema->arg[k];
		attr[k] = *node_attr(b->g, n, a->name);
		int64_t several = a->kind == ARG_tensor;
		if (a->kind == ARG_tensors)
			several = sym_const_or(b_syms(b), attr[k].s, 0);
		for (; several > 0 && at < nin; several--, at++) {
			in[at] = node_in(b->g, n, at);
			if (!in[at].i || chooses(a))
				continue;
			in[at] = b_convert(b, in[at], DT_f64);
			converted = true;
		}
		if (!converted && a->kind == ARG_dtype && attr[k].kind == ATTR_none) {
			attr[k] = attr_dtype(node_dtype(b->g, n));
			made = true;
		}
	}
	if (!converted && !made)
		return op_expand_node(b, n);
	return op_expand(b, op, in, nin, ir_attrs(b->g->ir, schema->narg, attr));
}

/* Returns the replacement of n, none after ctx_error or for an op without result. */
static Node expand(Graph *g, Node n)
{
	Ctx *ctx = g->ir->ctx;
	uint32_t errors = ctx->nerror;
	Build b = pass_build(g, n);
	b.keep = true; /* they are visited next (expand_in) */
	Op op = node_op(g, n);
	Node new = is_widened(g, n) ? expand_widened(&b, n) : op_expand_node(&b, n);
	if (ctx->nerror != errors)
		return (Node){0};
	if (op_schema(op)->nresult == 0)
		return (Node){0};
	if (!new.i) {
		ctx_error(ctx, node_where(g, n), "%s has no expansion for these operands",
			  op_name(op));
		return new;
	}
	TypeId file = node_type_id(g, n), ours = node_type_id(g, new);
	Truth same = file.i ? adopt_compare(g, ours, file) : YES;
	if (same == NO) {
		ctx_error(ctx, node_where(g, n), "%s gives %s here, but the file says %s",
			  op_name(op), type_str(g->ir, ours), type_str(g->ir, file));
		return (Node){0};
	}
	return same == MAYBE ? adopt_type(&b, new, file) : new;
}

/* Makes readers of elements read what now stands there, if it is a tuple. The last reader is the
 * first of the list. */
static void forward_gets(Graph *g, Node tuple)
{
	ARRAY(Node) get = {0};
	for (Use u = node_data(g, tuple)->first_use; u.i; u = g->use.data[u.i].next)
		if (node_op(g, g->use.data[u.i].user) == OP_get)
			array_push(g->ir->ctx->scratch, &get, g->use.data[u.i].user);
	while (get.n) {
		Node n = get.data[--get.n];
		Node x = node_element(g, tuple, (uint32_t)node_int(g, n, "index"));
		if (!x.i)
			return;
		pass_replace(g, n, x);
	}
}

static bool replace(Graph *g, Node n, PassCtx *c)
{
	uint32_t errors = g->ir->ctx->nerror;
	Node new = expand(g, n);
	if (g->ir->ctx->nerror != errors) {
		c->failed = true;
		return false;
	}
	if (new.i && node_nuses(g, n))
		graph_replace(g, n, new);
	graph_erase(g, n);
	if (new.i)
		forward_gets(g, new);
	return true;
}

static bool kept(const Graph *g, Node n, const PassCtx *c, Expands when)
{
	Op op = node_op(g, n);
	if (c->stays)
		return c->stays(g, n, c->stays_user);
	if (when == EXPANDS_IN_CANON && op_is_kept(op))
		return true;
	for (uint32_t k = 0; k < c->nkeep; k++)
		if (c->keep[k] == op)
			return true;
	return false;
}

static bool expand_in(Graph *g, PassCtx *c, Expands when)
{
	bool changed = false;
	for (Node n = g->first; n.i && !c->failed;) {
		Op op = node_op(g, n);
		Node before = node_prev(g, n), next = node_next(g, n);
		if (op_kind(op) == OP_COMPOSITE && !kept(g, n, c, when)) {
			changed |= replace(g, n, c);
			/* What it was built from may hold composites again. */
			next = before.i ? node_next(g, before) : g->first;
		}
		n = next;
	}
	return changed;
}

bool pass_canon(Graph *g, PassCtx *c)
{
	bool changed = expand_in(g, c, EXPANDS_IN_CANON);
	return pass_subgraphs(g, c, pass_canon) || changed;
}

bool pass_decompose(Graph *g, PassCtx *c)
{
	bool changed = expand_in(g, c, EXPANDS_IN_DECOMPOSE);
	return pass_subgraphs(g, c, pass_decompose) || changed;
}
