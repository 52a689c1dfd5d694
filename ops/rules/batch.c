/* Batches of one node: its block's rule, or what holds for its kind. */
#include "ops/rules/batch.h"

#include <string.h>

/* ---- attributes ---- */

Attr *batch_attrs(Build *b, Node n)
{
	Attr *attr = ARENA_ARRAY(b->g->ir->ctx->scratch, Attr, MAX_ARGS);
	node_copy_attrs(b->g, n, attr);
	return attr;
}

static Attr *slot(Build *b, Node n, Attr *attr, const char *name)
{
	int k = op_arg_index(node_op(b->g, n), name);
	if (k < 0)
		ctx_bug(b->g->ir->ctx, ".batch of %s: it has no argument %s",
			op_name(node_op(b->g, n)), name);
	return &attr[k];
}

static const Sym *longer(Build *b, const Attr *list, Sym first)
{
	Sym *v = ARENA_ARRAY(b->g->ir->ctx->scratch, Sym, list->n + 1);
	v[0] = first;
	if (list->n)
		memcpy(v + 1, list->ints, list->n * sizeof *v);
	return v;
}

void batch_first(Build *b, Node n, Attr *attr, const char *name, Sym first)
{
	Attr *a = slot(b, n, attr, name);
	*a = attr_ints(longer(b, a, first), a->n + 1);
}

void batch_first_int(Build *b, Node n, Attr *attr, const char *name, int64_t first)
{
	batch_first(b, n, attr, name, b_int(b, first));
}

void batch_next(Build *b, Node n, Attr *attr, const char *name)
{
	Attr *a = slot(b, n, attr, name);
	if (a->kind == ATTR_int) {
		a->s = sym_addi(b_syms(b), a->s, 1);
		return;
	}
	Sym *v = ARENA_ARRAY(b->g->ir->ctx->scratch, Sym, a->n + 1);
	for (uint32_t k = 0; k < a->n; k++)
		v[k] = sym_addi(b_syms(b), a->ints[k], 1);
	*a = attr_ints(v, a->n);
}

Node batch_again(Build *b, Node n, const Node *in, const Attr *attr)
{
	Op op = node_op(b->g, n);
	return b_node(b, op, in, node_nin(b->g, n), attr, op_schema(op)->narg);
}

/* ---- operands ---- */

Node batch_wide(Build *b, Node x, bool batched, Sym size)
{
	Sym dim[MAX_RANK + 1] = {size};
	if (batched || !x.i)
		return x;
	const Type *t = node_type(b->g, x);
	if (t->n)
		memcpy(dim + 1, t->dim, t->n * sizeof *dim);
	return b_broadcast(b, x, t->n + 1, dim);
}

Node *batch_all_wide(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	uint32_t nin = node_nin(b->g, n);
	Node *wide = ARENA_ARRAY(b->g->ir->ctx->scratch, Node, nin + 1);
	for (uint32_t k = 0; k < nin; k++)
		wide[k] = batch_wide(b, in[k], batched[k], size);
	return wide;
}

Node batch_to(Build *b, Node x, uint32_t to)
{
	uint32_t perm[MAX_RANK];
	if (!x.i)
		return x;
	for (uint32_t k = 0; k < node_rank(b->g, x); k++)
		perm[k] = k < to ? k + 1 : k == to ? 0 : k;
	return b_permute(b, x, perm);
}

Node batch_from(Build *b, Node x, uint32_t from)
{
	uint32_t perm[MAX_RANK];
	if (!x.i)
		return x;
	for (uint32_t k = 0; k < node_rank(b->g, x); k++)
		perm[k] = k == 0 ? from : k <= from ? k - 1 : k;
	return b_permute(b, x, perm);
}

Node batch_merge(Build *b, Node x, uint32_t k)
{
	Sym dim[MAX_RANK];
	if (!x.i)
		return x;
	const Type t = *node_type(b->g, x);
	memcpy(dim, t.dim, t.n * sizeof *dim);
	dim[k - 1] = sym_mul(b_syms(b), dim[k - 1], dim[k]);
	memmove(dim + k, dim + k + 1, (t.n - k - 1) * sizeof *dim);
	return b_reshape(b, x, t.n - 1, dim);
}

Node batch_split(Build *b, Node x, uint32_t k, Sym first, Sym second)
{
	Sym dim[MAX_RANK + 1];
	if (!x.i)
		return x;
	const Type t = *node_type(b->g, x);
	memcpy(dim, t.dim, k * sizeof *dim);
	dim[k] = first;
	dim[k + 1] = second;
	memcpy(dim + k + 2, t.dim + k + 1, (t.n - k - 1) * sizeof *dim);
	return b_reshape(b, x, t.n + 1, dim);
}

/* ---- rules that several blocks have ---- */

Node batch_dim(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	Attr *attr = batch_attrs(b, n);
	batch_next(b, n, attr, "dim");
	return batch_again(b, n, batch_all_wide(b, n, in, batched, size), attr);
}

Node batch_dims(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	Attr *attr = batch_attrs(b, n);
	batch_next(b, n, attr, "dims");
	return batch_again(b, n, batch_all_wide(b, n, in, batched, size), attr);
}

/* ---- composites that stay whole ---- */

TypeId batch_type(Ir *ir, TypeId type, Sym size)
{
	const Type t = *ir_type_of(ir, type);
	Sym dim[MAX_RANK + 1] = {size};
	if (t.dtype == DT_none) {
		TypeId *part = ARENA_ARRAY(ir->ctx->scratch, TypeId, t.n);
		for (uint32_t k = 0; k < t.n; k++)
			part[k] = batch_type(ir, t.elem[k], size);
		return ir_tuple(ir, t.n, part);
	}
	if (t.n)
		memcpy(dim + 1, t.dim, t.n * sizeof *dim);
	return ir_type(ir, t.dtype, t.n + 1, dim);
}

/* Adds n of other operands and attributes, not expanded. */
static Node kept_again(Build *b, Node n, const Node *in, AttrId attr, Sym size)
{
	Graph *g = b->g;
	const NodeData d = *node_data(g, n);
	return graph_add(g, b->before, d.op, in, d.nin, attr, batch_type(g->ir, d.type, size),
			 b->loc);
}

/* Returns x, which has the batch, with dimensions of extent 1 behind the batch, up to `rank`
 * besides it. */
static Node with_rank(Build *b, Node x, uint32_t rank)
{
	while (x.i && node_rank(b->g, x) < rank + 1)
		x = b_unsqueeze(b, x, 1);
	return x;
}

/* Converts a number of each member to the dtype that the operands have together. It has the
 * dimension of the batch now, with which it would outrank the others. */
static Node as_number(Build *b, Node n, uint32_t k, Node x)
{
	const Graph *g = b->g;
	Node all[MAX_ARGS];
	if (!x.i || node_nin(g, n) > MAX_ARGS || node_rank(g, node_in(g, n, k)) || !node_rank(g, n))
		return x;
	for (uint32_t i = 0; i < node_nin(g, n); i++)
		all[i] = node_in(g, n, i);
	return b_promote(b, all, node_nin(g, n)) == node_dtype(g, n)
		       ? b_convert(b, x, node_dtype(g, n))
		       : x;
}

Node batch_element_wise(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	Graph *g = b->g;
	uint32_t nin = node_nin(g, n);
	Node *x = ARENA_ARRAY(g->ir->ctx->scratch, Node, nin + 1);
	for (uint32_t k = 0; k < nin; k++)
		x[k] = batched[k] && nin > 1
			       ? with_rank(b, as_number(b, n, k, in[k]), node_rank(g, n))
			       : in[k];
	return kept_again(b, n, x, node_data(g, n)->attr, size);
}

Node batch_along(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	Graph *g = b->g;
	int64_t dim = 0;
	if (node_rank(g, node_in(g, n, 0)) == 0)
		return batch_by_scan(b, n, in, batched, size); /* dim 0 of what has none */
	Attr *attr = batch_attrs(b, n);
	if (sym_is_const(b_syms(b), node_sym(g, n, "dim"), &dim) && dim >= 0)
		batch_next(b, n, attr, "dim");
	return kept_again(b, n, in, ir_attrs(g->ir, op_schema(node_op(g, n))->narg, attr), size);
}

/* Returns the type with its first dimension `size` times as large. */
static TypeId with_more(Ir *ir, TypeId type, Sym size)
{
	const Type t = *ir_type_of(ir, type);
	Sym dim[MAX_RANK];
	if (t.dtype == DT_none) {
		TypeId *part = ARENA_ARRAY(ir->ctx->scratch, TypeId, t.n);
		for (uint32_t k = 0; k < t.n; k++)
			part[k] = with_more(ir, t.elem[k], size);
		return ir_tuple(ir, t.n, part);
	}
	memcpy(dim, t.dim, t.n * sizeof *dim);
	dim[0] = sym_mul(ir->syms, dim[0], size);
	return ir_type(ir, t.dtype, t.n, dim);
}

Node batch_members(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	(void)batched;
	Graph *g = b->g;
	const NodeData d = *node_data(g, n);
	Node x = batch_merge(b, in[0], 1);
	Node y = graph_add(g, b->before, d.op, &x, 1, d.attr, with_more(g->ir, d.type, size),
			   b->loc);
	const Type t = *ir_type_of(g->ir, d.type);
	if (t.dtype != DT_none)
		return batch_split(b, y, 0, size, t.dim[0]);
	Node *part = ARENA_ARRAY(g->ir->ctx->scratch, Node, t.n);
	for (uint32_t k = 0; k < t.n; k++)
		part[k] = batch_split(b, b_get(b, y, k), 0, size,
				      ir_type_of(g->ir, t.elem[k])->dim[0]);
	return b_tuple(b, part, t.n);
}

/* ---- without a rule ---- */

/* Returns a body that is n alone, of the operands that n has: first the batched ones, then the
 * others. */
static Graph *lane(Build *b, Node n, const bool *batched)
{
	Graph *g = b->g, *body = graph_beside(g, "lane");
	const NodeData d = *node_data(g, n);
	Node *in = ARENA_ARRAY(g->ir->ctx->scratch, Node, d.nin + 1);
	body->scope = g->scope;
	for (uint32_t shared = 0; shared < 2; shared++)
		for (uint32_t k = 0; k < d.nin; k++)
			if (node_in(g, n, k).i && batched[k] != shared)
				in[k] = graph_add_input(body, "", INPUT_USER,
							node_type_id(g, node_in(g, n, k)));
	Node y = graph_add(body, (Node){0}, d.op, in, d.nin, node_clone_attrs(g, n), d.type, d.loc);
	if (!d.type.i)
		return body;
	const Type t = *ir_type_of(g->ir, d.type);
	for (uint32_t k = 0; k < node_nresult(body, y); k++)
		graph_add_output(body, "",
				 t.dtype == DT_none ? b_get(&(Build){.g = body}, y, k) : y, -1);
	return body;
}

Node batch_by_scan(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	Graph *g = b->g;
	uint32_t nin = node_nin(g, n), count[2] = {0}, nx = 0;
	Node *x = ARENA_ARRAY(g->ir->ctx->scratch, Node, nin + 1);
	for (uint32_t shared = 0; shared < 2; shared++)
		for (uint32_t k = 0; k < nin; k++)
			if (in[k].i && batched[k] != shared) {
				x[nx++] = in[k];
				count[shared]++;
			}
	Attr attr[] = {attr_int(g->ir, 0), attr_int(g->ir, count[0]), attr_int(g->ir, count[1]),
		       attr_graph(lane(b, n, batched)), attr_sym(size), attr_bool(false)};
	Node y = b_node(b, OP_scan, x, nx, attr, 6);
	bool single = node_type_id(g, n).i && node_type(g, n)->dtype != DT_none;
	return single ? b_get(b, y, 0) : y;
}

/* ---- any node ---- */

static bool fits(Build *b, Node n)
{
	const Graph *g = b->g;
	uint32_t most = 0;
	for (uint32_t k = 0; k < node_nin(g, n); k++)
		if (node_in(g, n, k).i && node_rank(g, node_in(g, n, k)) > most)
			most = node_rank(g, node_in(g, n, k));
	const Type *t = node_type_id(g, n).i ? node_type(g, n) : NULL;
	if (t && t->dtype != DT_none && t->n > most)
		most = t->n;
	for (uint32_t k = 0; t && t->dtype == DT_none && k < t->n; k++)
		if (ir_type_of(g->ir, t->elem[k])->n > most)
			most = ir_type_of(g->ir, t->elem[k])->n;
	return most < MAX_RANK || b_error(b,
					  "%s has operands or results of %u dimensions, which with "
					  "that of a batch are more than %d",
					  op_name(node_op(g, n)), most, MAX_RANK)
					  .i;
}

Node op_batch(Build *outer, Node n, const Node *in, const bool *batched, Sym size)
{
	Build *b = &(Build){outer->g, outer->before, node_data(outer->g, n)->loc,
			    node_near(outer->g, n)};
	Op op = node_op(b->g, n);
	const OpInfo *info = op_info(op);
	uint32_t errors = b->g->ir->ctx->nerror;
	if (!fits(b, n))
		return (Node){0};
	Node y;
	if (info->batch)
		y = info->batch(b, n, in, batched, size);
	else if (op_is_element_wise(op))
		y = batch_element_wise(b, n, in, batched, size);
	else if (op_is_scalar(op) || info->batch_leading)
		y = batch_again(b, n, batch_all_wide(b, n, in, batched, size), batch_attrs(b, n));
	else
		y = batch_by_scan(b, n, in, batched, size);
	return b->g->ir->ctx->nerror == errors ? y : (Node){0};
}
