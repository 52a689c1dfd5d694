#include "transform/model/weights.h"

#include "ir/build/build.h"
#include "ir/op/op.h"

typedef struct {
	Graph *g;
	const NewWeight **of; /* by ConstId: integers in groups; NULL: none */
} Replacing;

static uint64_t group_of(const NewWeight *w)
{
	const int64_t all = tensor_numel(&w->value), groups = tensor_numel(&w->scale);
	return groups ? (uint64_t)(all / groups) : 1;
}

/* ---- numbers ---- */

/* Returns the numbers that integers in groups stand for, in the dtype, in the arena. */
static const void *decoded(Arena *arena, const NewWeight *w, DType d)
{
	Tensor out = w->value;
	const int64_t n = tensor_numel(&out);
	const uint64_t group = group_of(w);
	const int8_t *q = w->value.data;
	out.dtype = d;
	out.data = arena_alloc(arena, tensor_bytes(&out));
	for (int64_t i = 0; i < n; i++) {
		const int64_t k = (int64_t)((uint64_t)i / group);
		const float v = (float)q[i] * (float)tensor_f64(&w->scale, k),
			    less = w->offset.data ? (float)tensor_f64(&w->offset, k) : 0;
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

/* Returns the numbers of groups in f32, in the shape dim[] of all weights. Converted last: passes
 * keep what is stored below a conversion. */
static Node along_group(Build *b, const Tensor *t, const Sym *dim)
{
	const Node stored = constant(b, t);
	return b_convert(b, b_broadcast(b, stored, t->rank, dim), DT_f32);
}

/* Returns the value of the weight, of the type of the constant `like`. */
static Node in_groups(Build *b, const NewWeight *w, Node like)
{
	const Type t = *node_type(b->g, like);
	Tensor q = w->value, scale = w->scale, offset = w->offset;
	Sym dim[MAX_RANK];
	const uint32_t rank = q.rank;
	q.dim[rank - 1] = scale.dim[rank - 1];
	q.dim[rank] = (int64_t)group_of(w);
	scale.dim[rank] = offset.dim[rank] = 1;
	q.rank = scale.rank = offset.rank = rank + 1;
	for (uint32_t k = 0; k <= rank; k++)
		dim[k] = b_int(b, q.dim[k]);
	Node x = b_convert(b, constant(b, &q), DT_f32);
	const Node by = along_group(b, &scale, dim);
	x = b_bin(b, OP_mul, x, by);
	if (offset.data) {
		const Node less = along_group(b, &offset, dim);
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
		if (!x->scale.data)
			set_data(ir, x, x->value.data);
		else if (is_state(g, x->of) || x->value.rank == MAX_RANK)
			set_data(ir, x, decoded(ir->ctx->arena, x, ir_const_of(ir, x->of)->dtype));
		else
			r.of[x->of.i] = x;
	}
	for (uint32_t k = 1; k < nconst; k++) {
		Const *c = &ir->constant.data[k];
		if (!r.of[k] && !r.of[c->same_as.i])
			continue;
		c->is_param = c->absent = false;
		c->name = "";
	}
	return replace_nodes(&r, g);
}
