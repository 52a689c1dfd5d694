/* Puts rounded weights into graphs, in the form that passes/quantize reads. */
#include <string.h>

#include "ir/build/build.h"
#include "ir/op/op.h"
#include "transform/quantize/quantize.h"

enum { HALF_BITS = 4, HALF_ZERO = 8 };

enum { STORED_Q, STORED_SCALE, STORED_ZERO };

/* What a weight is replaced by. */
typedef struct {
	RoundedWeight *w; /* NULL: it stays */
	bool dynamic;
} NewValue;

typedef struct {
	NewValue *of; /* by ConstId */
	uint32_t nconst;
} Replacement;

/* Returns the node of a constant of the weight, called as the weight and `part`, which is made if
 * there is none yet. */
static Node stored(Build *b, NewValue *v, const char *part, const Tensor *t, uint32_t which)
{
	Ir *ir = b->g->ir;
	ConstId *id = &v->w->stored[which];
	const char *name = ir_const_of(ir, v->w->of)->name;
	if (!id->i)
		*id = ir_const(ir, (Const){.name = *name ? arena_printf(ir->ctx->arena, "%s.%s",
									name, part)
							 : "",
					   .dtype = t->dtype,
					   .rank = t->rank,
					   .dim = t->dim,
					   .data = t->data,
					   .bytes = tensor_bytes(t)});
	return b_const(b, *id);
}

/* Returns x, numbers of groups, in f32 and in the shape dim[] of all terms, in which dimension
 * `along`
 * + 1 are those of a group. Converted last: passes keep what is stored below a conversion. */
static Node of_groups(Build *b, Node x, uint32_t along, uint32_t rank, const Sym *dim)
{
	uint32_t map[MAX_RANK];
	for (uint32_t d = 0; d + 1 < rank; d++)
		map[d] = d + (d > along);
	return b_convert(b, b_broadcast_in_dim(b, x, rank, dim, map), DT_f32);
}

/* Returns a weight of 4 bits, in f32 and the type's shape. */
static Node halves(Build *b, NewValue *v, const Type *t)
{
	const RoundedWeight *w = v->w;
	Sym dim[MAX_RANK];
	const uint32_t rank = w->q.rank;
	for (uint32_t d = 0; d < rank; d++)
		dim[d] = b_int(b, w->q.dim[d] * (d == w->dim + 1 ? 2 : 1));
	const Node bytes = stored(b, v, "q4", &w->q, STORED_Q);
	const Attr attr[] = {attr_none(), attr_int(b->g->ir, w->dim + 1),
			     attr_int(b->g->ir, HALF_BITS), attr_none()};
	const Node fields = b_node(b, OP_fields, &bytes, 1, attr, 4);
	Node x = b_convert(b, b_reshape(b, fields, rank, dim), DT_f32);
	if (w->zero.data) {
		const Node zero = stored(b, v, "zero", &w->zero, STORED_ZERO);
		const Node all = of_groups(b, zero, w->dim, rank, dim);
		x = b_bin(b, OP_sub, x, all);
	} else {
		x = b_bin_scalar(b, OP_sub, x, HALF_ZERO);
	}
	const Node scale = stored(b, v, "scale", &w->scale, STORED_SCALE);
	const Node by = of_groups(b, scale, w->dim, rank, dim);
	return b_reshape(b, b_bin(b, OP_mul, x, by), t->n, t->dim);
}

/* Returns the value of the weight, of the type of the constant `like`. */
static Node value_of(Build *b, NewValue *v, Node like)
{
	const RoundedWeight *w = v->w;
	const Type t = *node_type(b->g, like);
	Node x;
	if (w->kind == WEIGHT_BF16) {
		x = stored(b, v, "bf16", &w->q, STORED_Q);
	} else if (w->kind == WEIGHT_INT4) {
		x = halves(b, v, &t);
	} else {
		const Node q = b_convert(b, stored(b, v, "q8", &w->q, STORED_Q), DT_f32);
		const Node scale = stored(b, v, "scale", &w->scale, STORED_SCALE);
		const Node by = b_broadcast(b, scale, t.n, t.dim);
		x = b_bin(b, OP_mul, q, by);
	}
	x = b_convert(b, x, t.dtype);
	return v->dynamic ? b_node(b, OP_roundable, &x, 1, NULL, 0) : x;
}

static bool replace_nodes(const Replacement *r, Graph *g)
{
	for (Node n = g->first, next; n.i; n = next) {
		next = node_next(g, n);
		Graph *body;
		for (uint32_t k = 0; (body = node_next_body(g, n, &k));)
			TRY(replace_nodes(r, body));
		const ConstId id = node_const(g, n);
		if (!id.i || id.i >= r->nconst || !r->of[id.i].w)
			continue;
		Build b = {.g = g, .before = n, .loc = node_data(g, n)->loc};
		const Node value = value_of(&b, &r->of[id.i], n);
		TRY(value.i);
		if (node_nuses(g, n))
			graph_replace(g, n, value);
		graph_erase(g, n);
	}
	return true;
}

bool quantize_replace(Graph *g, const FoundWeights *f, RoundedWeight *w, uint32_t n, bool dynamic)
{
	Ir *ir = g->ir;
	Replacement r = {.nconst = ir->constant.n};
	r.of = ARENA_ARRAY(ir->ctx->arena, NewValue, r.nconst);
	for (uint32_t k = 0; k < n; k++)
		if (w[k].kind != WEIGHT_FLOAT)
			r.of[w[k].of.i] = (NewValue){
				.w = &w[k], .dynamic = dynamic && w[k].kind != WEIGHT_BF16};
	for (uint32_t k = 0; k < f->weight.n; k++)
		r.of[f->weight.data[k].of.i].dynamic &= !f->weight.data[k].windows;
	return replace_nodes(&r, g);
}

void quantize_forget(Ir *ir, const RoundedWeight *w, uint32_t n)
{
	bool *gone = ARENA_ARRAY(ir->ctx->arena, bool, ir->constant.n);
	for (uint32_t k = 0; k < n; k++)
		gone[w[k].of.i] = w[k].kind != WEIGHT_FLOAT;
	gone[0] = false;
	for (uint32_t k = 1; k < ir->constant.n; k++) {
		Const *c = &ir->constant.data[k];
		if (!gone[k] && !gone[c->same_as.i])
			continue;
		c->is_param = c->absent = false;
		c->in_blocks = true;
		c->name = "";
	}
}
