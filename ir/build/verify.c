/* What holds of every graph between passes: structure, use lists, operands and attributes as the
 * schemas say, and types that agree with what the ops infer. Also equality of graphs. */
#include <string.h>

#include "ir/build/verify.h"
#include "ir/build/build.h"
#include "ir/op/op.h"

enum { MAX_NESTING = 64 };

typedef struct {
	Graph *g;
	Ctx *ctx;
	uint32_t *order; /* position of a node, 0: not in the graph */
	uint32_t depth;
} Verifier;

/* Adds guards for what a node's type says beyond what is inferred. */
static void require_type(Graph *g, Node n, TypeId inferred)
{
	if (!inferred.i || inferred.i == node_type_id(g, n).i)
		return;
	const Type is = *ir_type_of(g->ir, inferred), said = *node_type(g, n);
	for (uint32_t k = 0; k < is.n && is.dtype != DT_none; k++)
		graph_guard(g, GUARD_EQ, is.dim[k], said.dim[k],
			    arena_printf(g->ir->ctx->scratch, "dimension %u of %s", k,
					 graph_name(g, n)));
}

void graph_require(Graph *g)
{
	Arena *scratch = g->ir->ctx->scratch;
	g->requires = true;
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		const NodeData d = *node_data(g, n);
		Node *in = ARENA_ARRAY(scratch, Node, d.nin);
		for (uint32_t k = 0; k < d.nin; k++)
			in[k] = node_in(g, n, k);
		if (d.op != OP_input && op_info(d.op)->infer)
			require_type(g, n,
				     op_infer(&(Build){.g = g, .where = node_near(g, n)}, d.op, in,
					      d.nin, d.attr));
		Graph *body;
		for (uint32_t k = 0; (body = node_next_body(g, n, &k));)
			graph_require(body);
	}
	g->requires = false;
}

static bool verify_at_depth(Graph *, uint32_t depth);

static bool fail(Verifier *v, Node n, const char *text)
{
	const char *op = n.i < v->g->node.n ? op_name(node_op(v->g, n)) : "?";
	return ctx_error(v->ctx, node_where(v->g, n), "%s: %s", op, text);
}

/* ---- structure ---- */

static bool alive(const Verifier *v, Node n)
{
	return n.i && n.i < v->g->node.n && v->order[n.i];
}

static bool check_order(Verifier *v)
{
	Graph *g = v->g;
	Node prev = {0};
	uint32_t k = 0;
	for (Node n = g->first; n.i; prev = n, n = node_next(g, n)) {
		if (n.i >= g->node.n || v->order[n.i] || node_prev(g, n).i != prev.i)
			return ctx_error(v->ctx, NULL, "graph %s: the list of nodes is broken",
					 g->name);
		v->order[n.i] = ++k;
		if (node_op(g, n) == OP_none || node_op(g, n) >= op_count())
			return fail(v, n, "expected an op");
	}
	if (g->last.i != prev.i)
		return ctx_error(v->ctx, NULL, "graph %s: the last node is not the last", g->name);
	return true;
}

static bool check_operands(Verifier *v, Node n, uint32_t *linked)
{
	const NodeData *d = node_data(v->g, n);
	for (uint32_t k = 0; k < d->nin; k++) {
		const UseData *u = &v->g->use.data[d->in + k];
		if (u->user.i != n.i)
			return fail(v, n, "an operand belongs to another node");
		if (!u->def.i)
			continue;
		++*linked;
		if (!alive(v, u->def))
			return fail(v, n, "reads an erased node");
		if (v->order[u->def.i] >= v->order[n.i])
			return fail(v, n, "reads a node that comes later");
		if (!node_type_id(v->g, u->def).i)
			return fail(v, n, "reads a node without value");
		if (!node_is_tensor(v->g, u->def) && d->op != OP_get && d->op != OP_tuple)
			return fail(v, n, "reads a tuple, expected a tensor");
	}
	return true;
}

/* Checks that the readers in n's list read n. With the count over all lists, every operand is in
 * its list once. */
static bool check_uses(Verifier *v, Node n, uint32_t *listed)
{
	const Graph *g = v->g;
	Use prev = {0};
	for (Use u = node_data(g, n)->first_use; u.i; prev = u, u = g->use.data[u.i].next) {
		const UseData *d = &g->use.data[u.i];
		const NodeData *user = alive(v, d->user) ? node_data(g, d->user) : NULL;
		bool own = user && u.i >= user->in && u.i < user->in + user->nin;
		if (d->def.i != n.i || d->prev.i != prev.i || !own || ++*listed > g->use.n)
			return fail(v, n, "its use list is broken");
	}
	return true;
}

static bool check_structure(Verifier *v)
{
	uint32_t linked = 0, listed = 0;
	TRY(check_order(v));
	for (Node n = v->g->first; n.i; n = node_next(v->g, n))
		TRY(check_operands(v, n, &linked) && check_uses(v, n, &listed));
	return linked == listed || ctx_error(v->ctx, NULL, "graph %s: %u operands but %u uses",
					     v->g->name, linked, listed);
}

/* ---- inputs and outputs ---- */

/* Checks that only state has first contents, and that these are of its type. */
static bool check_init(Verifier *v, const GraphInput *in)
{
	Ir *ir = v->g->ir;
	if (!in->init.i)
		return true;
	if (in->kind == INPUT_USER || in->init.i >= ir->constant.n)
		return fail(v, in->node, "expected no first contents, or a constant that exists");
	const Const *c = ir_const_of(ir, in->init);
	return ir_type_ints(ir, c->dtype, c->rank, c->dim).i == node_type_id(v->g, in->node).i ||
	       fail(v, in->node, "differs in type from its first contents");
}

static bool check_inputs(Verifier *v)
{
	Graph *g = v->g;
	uint32_t count = 0;
	for (Node n = g->first; n.i; n = node_next(g, n))
		count += node_op(g, n) == OP_input;
	bool *seen = ARENA_ARRAY(v->ctx->scratch, bool, g->node.n);
	for (uint32_t k = 0; k < g->input.n; k++) {
		Node n = g->input.data[k].node;
		if (!alive(v, n) || node_op(g, n) != OP_input || seen[n.i])
			return ctx_error(v->ctx, NULL, "graph %s: input %u is no input node",
					 g->name, k);
		if (node_dtype(g, n) == DT_none)
			return fail(v, n, "expected a tensor type");
		TRY(check_init(v, &g->input.data[k]));
		seen[n.i] = true;
	}
	return count == g->input.n ||
	       ctx_error(v->ctx, NULL, "graph %s: an input node is not in the list", g->name);
}

static bool types_agree(const Ir *, TypeId, TypeId);

static bool check_outputs(Verifier *v)
{
	Graph *g = v->g;
	bool *written = ARENA_ARRAY(v->ctx->scratch, bool, g->input.n);
	for (uint32_t k = 0; k < g->output.n; k++) {
		const GraphOutput *o = &g->output.data[k];
		if (o->node.i && (!alive(v, o->node) || !node_type_id(g, o->node).i))
			return ctx_error(v->ctx, NULL, "graph %s: output %u has no value", g->name,
					 k);
		if (o->node.i && node_dtype(g, o->node) == DT_none)
			return ctx_error(v->ctx, NULL,
					 "graph %s: output %u is a tuple, expected a tensor",
					 g->name, k);
		if (o->writes < 0)
			continue;
		if (o->writes >= (int32_t)g->input.n || !o->node.i)
			return ctx_error(v->ctx, NULL, "graph %s: output %u writes no input",
					 g->name, k);
		TypeId in = node_type_id(g, g->input.data[o->writes].node);
		if (!types_agree(g->ir, in, node_type_id(g, o->node)))
			return fail(v, o->node, "differs in type from the input it replaces");
		if (written[o->writes])
			return ctx_error(v->ctx, NULL,
					 "graph %s: output %u replaces what another one does",
					 g->name, k);
		written[o->writes] = true;
	}
	return true;
}

/* ---- schemas ---- */

static bool check_subgraph(Verifier *v, Node n, const Attr *a)
{
	if (a->kind != ATTR_graph)
		return true;
	if (!a->graph || a->graph->ir != v->g->ir)
		return fail(v, n, "expected a graph of the same compilation");
	return verify_at_depth(a->graph, v->depth + 1);
}

static bool check_schema(Verifier *v, Node n)
{
	const NodeData *d = node_data(v->g, n);
	const Schema *s = op_schema(d->op);
	uint64_t nin = 0;
	for (uint32_t k = 0; k < s->narg; k++) {
		const Arg *arg = &s->arg[k];
		const Attr *a = ir_attr(v->g->ir, d->attr, k);
		int64_t count = arg->kind == ARG_tensor;
		if (!op_attr_fits(v->g->ir, arg, a))
			return fail(v, n,
				    arena_printf(v->ctx->scratch,
						 "argument \"%s\" has the wrong kind", arg->name));
		if (arg->kind == ARG_tensors)
			count = sym_const_or(graph_syms(v->g), a->s, count);
		if (count < 0 || nin + (uint64_t)count > d->nin)
			return fail(v, n, "expected more operands");
		for (uint64_t j = nin; j < nin + (uint64_t)count; j++)
			if (!arg->optional && !node_in(v->g, n, (uint32_t)j).i)
				return fail(v, n,
					    arena_printf(v->ctx->scratch,
							 "operand \"%s\" is missing", arg->name));
		nin += (uint64_t)count;
		TRY(check_subgraph(v, n, a));
	}
	return nin == d->nin || fail(v, n, "expected fewer operands");
}

/* ---- types ---- */

static bool types_agree(const Ir *ir, TypeId a, TypeId b)
{
	const Type *s = ir_type_of(ir, a), *t = ir_type_of(ir, b);
	if (a.i == b.i)
		return true;
	if (!a.i || !b.i || s->dtype != t->dtype || s->n != t->n)
		return false;
	for (uint32_t k = 0; k < s->n; k++)
		if (s->dtype == DT_none ? !types_agree(ir, s->elem[k], t->elem[k])
					: sym_eq(ir->syms, s->dim[k], t->dim[k]) == NO)
			return false;
	return true;
}

bool node_fits(const Graph *g, Node n)
{
	const Type *t = node_type(g, n);
	uint64_t bytes = t->dtype == DT_none ? 0 : dtype_size(t->dtype);
	bool empty = false;
	for (uint32_t k = 0; t->dtype != DT_none && k < t->n; k++) {
		int64_t lo, hi;
		sym_range(graph_syms(g), t->dim[k], &lo, &hi);
		empty |= lo <= 0;
		if (lo > 0 && __builtin_mul_overflow(bytes, (uint64_t)lo, &bytes))
			bytes = UINT64_MAX;
	}
	return empty || bytes < (uint64_t)1 << 48;
}

static bool check_size(Verifier *v, Node n)
{
	return node_fits(v->g, n) ||
	       fail(v, n,
		    arena_printf(v->ctx->scratch, "%s is too large: expected fewer than 2^48 bytes",
				 type_str(v->g->ir, node_type_id(v->g, n))));
}

/* Checks the node's type against the one that is inferred. An extent that is not provably
 * different may have been replaced under a guard. */
static bool check_type(Verifier *v, Node n)
{
	const NodeData d = *node_data(v->g, n);
	const Schema *s = op_schema(d.op);
	if (d.op == OP_input)
		return true;
	if (!d.type.i)
		return !s->nresult || fail(v, n, "expected a type");
	if (!op_info(d.op)->scalar && !op_info(d.op)->infer)
		return true;
	Node *in = ARENA_ARRAY(v->ctx->scratch, Node, d.nin);
	for (uint32_t k = 0; k < d.nin; k++)
		in[k] = node_in(v->g, n, k);
	uint32_t errors = v->ctx->nerror;
	Build b = {.g = v->g, .where = node_near(v->g, n)};
	TypeId t = op_infer(&b, d.op, in, d.nin, d.attr);
	if (v->ctx->nerror != errors)
		return false;
	if (types_agree(v->g->ir, t, d.type))
		return true;
	return fail(v, n,
		    arena_printf(v->ctx->scratch, "has type %s, expected %s",
				 type_str(v->g->ir, d.type), type_str(v->g->ir, t)));
}

static bool verify_at_depth(Graph *g, uint32_t depth)
{
	Verifier v = {g, g->ir->ctx, NULL, depth};
	if (depth > MAX_NESTING)
		return ctx_error(v.ctx, NULL, "graph %s: nested too deep", g->name);
	v.order = ARENA_ARRAY(v.ctx->scratch, uint32_t, g->node.n);
	TRY(check_structure(&v) && check_inputs(&v) && check_outputs(&v));
	for (Node n = g->first; n.i; n = node_next(g, n))
		TRY(check_schema(&v, n) && check_type(&v, n) && check_size(&v, n));
	return true;
}

bool graph_verify(Graph *g)
{
	return verify_at_depth(g, 0);
}
