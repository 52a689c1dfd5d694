#include "transform/model/weights.h"

#include "ir/build/build.h"
#include "ir/op/op.h"

typedef struct {
	Graph *g;
	const NewWeight **of; /* by ConstId: integers in groups; NULL: none */
} Replacing;

/* Returns the number of elements of `all` for one of `of`; 1 if there are none. */
static int64_t per(const Tensor *all, const Tensor *of)
{
	const int64_t n = tensor_numel(of);
	return n ? tensor_numel(all) / n : 1;
}

/* ---- numbers ---- */

/* Returns the number of group k. */
static float number_of(const GroupNumbers *n, int64_t k)
{
	const float x = (float)tensor_f64(&n->of_group, k);
	return n->unit.data ? x * (float)tensor_f64(&n->unit, k / per(&n->of_group, &n->unit)) : x;
}

/* Returns the numbers that integers in groups stand for, in the dtype, in the arena. */
static const void *decoded(Arena *arena, const NewWeight *w, DType d)
{
	Tensor out = w->value;
	const int64_t n = tensor_numel(&out), group = per(&w->value, &w->scale.of_group);
	const int8_t *q = w->value.data;
	out.dtype = d;
	out.data = arena_alloc(arena, tensor_bytes(&out));
	for (int64_t i = 0; i < n; i++) {
		const float v = (float)q[i] * number_of(&w->scale, i / group),
			    less = w->offset.of_group.data ? number_of(&w->offset, i / group) : 0;
		tensor_set_f64(&out, i, (double)(v - less));
	}
	return out.data;
}

static void set_data(Ir *ir, const NewWeight *w, const void *data)
{
	Const *c = &ir->constant.data[w->of.i];
	c->data = data;
	c->bytes = (uint64_t)tensor_numel(&w->value) * dtype_size(c->dtype);
	c->hash = 0;
	c->absent = false;
}

/* ---- integers in groups ---- */

static Node constant(Build *b, const Tensor *t)
{
	return b_const(b, ir_const(b->g->ir, (Const){.dtype = t->dtype,
						     .rank = t->rank,
						     .dim = t->dim,
						     .data = t->data,
						     .bytes = tensor_bytes(t)}));
}

/* Returns numbers, each of equally many neighbours along the dimension behind the first rank - 1,
 * in f32, in the shape of all weights, dim[] with groups last. Converted last: passes keep what is
 * stored below a conversion. */
static Node along_group(Build *b, const Tensor *t, uint32_t rank, const Sym *dim)
{
	Sym apart[MAX_RANK + 1];
	uint32_t map[MAX_RANK];
	const int64_t n = t->dim[rank - 1];
	for (uint32_t k = 0; k < rank; k++) {
		map[k] = k;
		apart[k] = b_int(b, t->dim[k]);
	}
	apart[rank] = n ? sym_floordiv(b_syms(b), dim[rank - 1], b_int(b, n)) : b_int(b, 0);
	apart[rank + 1] = dim[rank];
	const Node stored = constant(b, t);
	const Node all = b_broadcast_in_dim(b, stored, rank + 2, apart, map);
	return b_convert(b, b_reshape(b, all, rank + 1, dim), DT_f32);
}

/* Returns scales or offsets in the shape dim[] of all weights. */
static Node numbers(Build *b, const GroupNumbers *n, uint32_t rank, const Sym *dim)
{
	const Node x = along_group(b, &n->of_group, rank, dim);
	if (!n->unit.data)
		return x;
	const Node unit = along_group(b, &n->unit, rank, dim);
	return b_bin(b, OP_mul, unit, x);
}

/* Returns the value of the weight, of the type of the constant `like`. */
static Node in_groups(Build *b, const NewWeight *w, Node like)
{
	const Type t = *node_type(b->g, like);
	Tensor q = w->value;
	Sym dim[MAX_RANK];
	const uint32_t rank = q.rank;
	q.dim[rank - 1] = w->scale.of_group.dim[rank - 1];
	q.dim[rank] = per(&w->value, &w->scale.of_group);
	q.rank = rank + 1;
	for (uint32_t k = 0; k <= rank; k++)
		dim[k] = b_int(b, q.dim[k]);
	Node x = b_convert(b, constant(b, &q), DT_f32);
	const Node by = numbers(b, &w->scale, rank, dim);
	x = b_bin(b, OP_mul, x, by);
	if (w->offset.of_group.data) {
		const Node less = numbers(b, &w->offset, rank, dim);
		x = b_bin(b, OP_sub, x, less);
	}
	x = b_convert(b, b_reshape(b, x, t.n, t.dim), t.dtype);
	return b_node(b, OP_roundable, &x, 1, NULL, 0);
}

static bool replace_nodes(const Replacing *r, Graph *g)
{
	for (Node n = g->first, next; n.i; n = next) {
		next = node_next(g, n);
		Graph *body;
		for (uint32_t k = 0; (body = node_next_body(g, n, &k));)
			TRY(replace_nodes(r, body));
		const NewWeight *w = r->of[node_const(g, n).i];
		if (!w)
			continue;
		Build b = {.g = g, .before = n, .loc = node_data(g, n)->loc};
		const Node value = in_groups(&b, w, n);
		TRY(value.i);
		if (node_nuses(g, n))
			graph_replace(g, n, value);
		graph_erase(g, n);
	}
	return true;
}

/* Whether the constant is the initial contents of state. */
static bool is_state(const Graph *g, ConstId c)
{
	for (uint32_t k = 0; k < g->input.n; k++)
		if (g->input.data[k].init.i == c.i)
			return true;
	return false;
}

bool transform_weights(Graph *g, const NewWeight *w, uint32_t n)
{
	Ir *ir = g->ir;
	const uint32_t nconst = ir->constant.n;
	Replacing r = {.g = g, .of = ARENA_ARRAY(ir->ctx->arena, const NewWeight *, nconst)};
	for (uint32_t k = 0; k < n; k++) {
		const NewWeight *x = &w[k];
		if (!x->scale.of_group.data)
			set_data(ir, x, x->value.data);
		else if (is_state(g, x->of) || x->value.rank + 2 > MAX_RANK)
			set_data(ir, x, decoded(ir->ctx->arena, x, ir_const_of(ir, x->of)->dtype));
		else
			r.of[x->of.i] = x;
	}
	for (uint32_t k = 1; k < nconst; k++) {
		Const *c = &ir->constant.data[k];
		if (!r.of[k] && !r.of[c->same_as.i])
			continue;
		c->is_param = c->absent = false;
		c->in_blocks = true;
		c->name = "";
	}
	return replace_nodes(&r, g);
}
