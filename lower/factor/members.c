/* Factorisations of many small matrices: a loop over blocks of the members whose matrices stay in
 * the caches through all rounds. A block is the same operator on some of the members:
 *
 *   for t:  factors[first.., n, n] = lu(x[first.., n, n])     with first = t * block
 */
#include "ir/build/build.h"
#include "lower/factor/factor.h"
#include "lower/stage.h"

#include <string.h>

void factor_lower_graph(Lower *s, Graph *g, const NodePlace *in, NodePlace *out, StepList *to)
{
	Lower inner;
	lower_init(&inner, g, s, s->l, to);
	lower_place_constants(&inner);
	for (uint32_t k = 0; k < g->input.n; k++)
		array_push(inner.arena, &node_info(&inner, g->input.data[k].node)->place, in[k]);
	lower_body_to(&inner, out);
}

NodePlace factor_operand(Lower *s, Node n, uint32_t k)
{
	Node x = node_in(s->g, n, k);
	const NodeInfo *info = node_info(s, x);
	if (info->place.n)
		return info->place.data[0];
	NodePlace p = lower_new_place(s, x, BUF_TEMP, 0);
	lower_push_kernel(s, lower_copy_kernel(s, x, &p));
	return p;
}

/* Returns how many members along the first dimension make a block that stays in the cache; 0 if all
 * are lowered at once. */
static int64_t block_of(const Lower *s, Node n)
{
	/* bytes; of each matrix; rows; members */
	enum { CACHED = 1 << 20, COPIES = 6, MOST = 48, UNIT = 16 };
	const Type *t = node_type(s->g, node_in(s->g, n, 0));
	const uint32_t behind = 2 + (uint32_t)node_bool(s->g, n, "pairs");
	int64_t bytes = dtype_size(t->dtype) * COPIES;
	if (t->n <= behind)
		return 0;
	for (uint32_t k = 1; k < t->n; k++) {
		int64_t extent = 0;
		const bool is_number = sym_is_const(s->ir->syms, t->dim[k], &extent);
		if (k >= t->n - behind && (!is_number || extent > MOST))
			return 0;
		bytes *=
			sym_hint(s->ir->syms, t->dim[k]) > 0 ? sym_hint(s->ir->syms, t->dim[k]) : 1;
	}
	const int64_t block = CACHED / bytes / UNIT * UNIT;
	return block && sym_hint(s->ir->syms, t->dim[0]) >= 2 * block ? block : 0;
}

static TypeId with_members(Ir *ir, const Type *t, Sym members)
{
	Sym dim[MAX_RANK];
	memcpy(dim, t->dim, t->n * sizeof *dim);
	dim[0] = members;
	return ir_type(ir, t->dtype, t->n, dim);
}

static NodePlace from_member(NodePlace p, SymTab *syms, Sym first)
{
	p.off[0] = p.off[0].i ? sym_add(syms, p.off[0], first) : first;
	return p;
}

static bool by_blocks(Lower *s, Node n)
{
	enum { MOST_PLACES = 4 };
	SymTab *syms = s->ir->syms;
	const int64_t block = block_of(s, n);
	const uint32_t nin = node_nin(s->g, n);
	const Type *t = node_type(s->g, n);
	const bool several = t->dtype == DT_none;
	const uint32_t nout = several ? t->n : 1;
	if (!block || nin > MOST_PLACES || nout > MOST_PLACES)
		return false;
	NodePlace in[MOST_PLACES], out[MOST_PLACES], result[MOST_PLACES];
	Sym all = node_dim(s->g, node_in(s->g, n, 0), 0), size = sym_int(syms, block);
	Sym at = sym_axis(syms, "members", sym_ceildiv(syms, all, size)),
	    first = sym_mul(syms, at, size);
	Sym members = sym_min(syms, size, sym_sub(syms, all, first));
	sym_set_hint(syms, at, 0);
	Graph *g = graph_beside(s->g, "members");
	Build b = {.g = g, .loc = node_data(s->g, n)->loc, .where = node_near(s->g, n)};
	Node x[MOST_PLACES];
	for (uint32_t k = 0; k < nin; k++) {
		in[k] = from_member(factor_operand(s, n, k), syms, first);
		x[k] = graph_add_input(
			g, "", INPUT_USER,
			with_members(s->ir, node_type(s->g, node_in(s->g, n, k)), members));
	}
	const Schema *schema = op_schema(node_op(s->g, n));
	Attr *attr = ARENA_ARRAY(s->arena, Attr, schema->narg + 1);
	for (uint32_t k = 0; k < schema->narg; k++)
		attr[k] = *ir_attr(s->ir, node_data(s->g, n)->attr, k);
	Node y = b_node(&b, node_op(s->g, n), x, nin, attr, schema->narg);
	for (uint32_t k = 0; k < nout; k++) {
		result[k] = lower_result_place(s, n, k);
		out[k] = from_member(result[k], syms, first);
		graph_add_output(g, "", several ? b_get(&b, y, k) : y, -1);
	}
	Step loop = {.kind = STEP_LOOP,
		     .var = at,
		     .extent = sym_ceildiv(syms, all, size),
		     .body = ARENA_NEW(s->arena, StepList)};
	factor_lower_graph(s, g, in, out, loop.body);
	array_push(s->arena, &s->steps->step, loop);
	for (uint32_t k = 0; k < nout; k++)
		lower_publish_result(s, n, k, &result[k]);
	return true;
}

bool lower_members(Lower *s, Node n)
{
	return lower_small(s, n) || by_blocks(s, n);
}
