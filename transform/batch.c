/* A graph for many sets of inputs. Nodes that depend on none of those that differ stay as they are,
 * the others get a batch as their first dimension, by the rules of their blocks (op_batch).
 *
 *   graph @main(%x: f32[4], %w: f32[3, 4]) {           graph @main(%x: f32[s, 4], %w: f32[3, 4]) {
 *     %t = tanh(%w) : f32[3, 4]                          %t = tanh(%w) : f32[3, 4]
 *     %y = contract(%t, %x, ...) : f32[3]        ->      %1 = contract(%t, %x, ...) : f32[3, s]
 *     return %y                                          %y = permute(%1, perm=[1, 0]) : f32[s, 3]
 *   }                                                    return %y
 *
 * Where callers want it elsewhere an input or output is permuted, which is an index map to the
 * kernels there, and often cancels such a one (of %y as dimension 1 nothing would be left).
 *
 * Linear in the number of nodes: each is visited once, and its rule adds a bounded number. */
#include "ir/build/verify.h"
#include "ops/prim/random.h"
#include "ops/rules/batch.h"
#include "ops/rules/rules.h"
#include "transform/batch_priv.h"
#include "transform/transform.h"

#include <string.h>

/* ---- which values differ ---- */

typedef struct {
	const Graph *g;
	bool *differs;  /* by node; a tuple: one of its elements does */
	bool **element; /* by tuple */
} Spread;

static void spread_tuple(Spread *s, Node n, const bool *in)
{
	const Graph *g = s->g;
	uint32_t nout = node_nresult(g, n);
	bool *out = ARENA_ARRAY(g->ir->ctx->scratch, bool, nout + 1);
	if (node_has_graph(g, n))
		control_spread(g, n, in, out);
	else
		memcpy(out, in, nout * sizeof *in);
	s->element[n.i] = out;
	for (uint32_t k = 0; k < nout; k++)
		s->differs[n.i] |= out[k];
}

static void spread(Spread *s, Node n)
{
	const Graph *g = s->g;
	uint32_t nin = node_nin(g, n);
	bool *in = ARENA_ARRAY(g->ir->ctx->scratch, bool, nin + 1), any = false;
	for (uint32_t k = 0; k < nin; k++) {
		in[k] = s->differs[node_in(g, n, k).i];
		any |= in[k];
	}
	if (!any)
		return;
	Node from = node_nin(g, n) ? node_in(g, n, 0) : (Node){0};
	if (node_op(g, n) == OP_tuple || node_has_graph(g, n))
		spread_tuple(s, n, in);
	else if (node_op(g, n) == OP_get && s->element[from.i])
		s->differs[n.i] = s->element[from.i][node_int(g, n, "index")];
	else
		s->differs[n.i] = true;
}

void batch_spread(const Graph *g, const bool *in, bool *out)
{
	Arena *scratch = g->ir->ctx->scratch;
	Spread s = {g, ARENA_ARRAY(scratch, bool, g->node.n),
		    ARENA_ARRAY(scratch, bool *, g->node.n)};
	for (uint32_t k = 0; k < g->input.n; k++)
		s.differs[g->input.data[k].node.i] = in[k];
	for (Node n = g->first; n.i; n = node_next(g, n))
		spread(&s, n);
	for (uint32_t k = 0; k < g->output.n; k++)
		out[k] = s.differs[g->output.data[k].node.i];
}

/* ---- nodes ---- */

static Node wide(Build *b, Node x, Sym size)
{
	const Type t = *ir_type_of(b->g->ir, batch_type(b->g->ir, node_type_id(b->g, x), size));
	return b_broadcast(b, x, t.n, t.dim);
}

/* Returns what stands for n with the batch. None: n is the same for all members, as is every
 * node that was added since and is read in the place of another one. */
static Node with_batch(const Batch *v, Node n)
{
	return n.i < v->n ? v->to[n.i] : (Node){0};
}

/* Returns the type with the batch as dimension `place`. */
static TypeId type_at(Ir *ir, TypeId type, Sym size, uint32_t place)
{
	Type t = *ir_type_of(ir, batch_type(ir, type, size));
	Sym dim[MAX_RANK];
	memcpy(dim, t.dim, t.n * sizeof *dim);
	memmove(dim, dim + 1, place * sizeof *dim);
	dim[place] = size;
	return ir_type(ir, t.dtype, t.n, dim);
}

/* Puts a new node in the place of input k, with the batch as dimension `place`. */
static bool batch_input(Batch *v, uint32_t k, uint32_t place)
{
	Graph *g = v->g;
	GraphInput *in = &g->input.data[k];
	Node old = in->node;
	if (node_rank(g, old) == MAX_RANK)
		return ctx_error(g->ir->ctx, NULL,
				 "input \"%s\" has %d dimensions: there is none left for a batch",
				 in->name, MAX_RANK);
	Node new = graph_add(g, old, OP_input, NULL, 0, (AttrId){0},
			     type_at(g->ir, node_type_id(g, old), v->size, place), (LocId){0});
	g->node_name.data[new.i] = g->node_name.data[old.i];
	g->node_name.data[old.i] = NULL;
	in->node = new;
	v->to[old.i] = new;
	return true;
}

static void get(Batch *v, Node n)
{
	Graph *g = v->g;
	Node tuple = node_in(g, n, 0);
	uint32_t k = (uint32_t)node_int(g, n, "index");
	Build b = pass_build(g, node_next(g, n));
	if (v->element[tuple.i])
		v->to[n.i] = v->element[tuple.i][k];
	else if (v->to[tuple.i].i)
		v->to[n.i] = b_get(&b, v->to[tuple.i], k);
	Node own = node_element(g, tuple, k);
	if (v->element[tuple.i] && !v->to[n.i].i && own.i) {
		graph_replace(g, n, own);
		v->gone[n.i] = true;
	}
}

/* Notes the elements of a tuple that have the batch. */
static void tuple(Batch *v, Node n, const Node *in, const bool *batched, bool any)
{
	uint32_t nin = node_nin(v->g, n);
	if (!any)
		return;
	v->element[n.i] = ARENA_ARRAY(v->g->ir->ctx->scratch, Node, nin);
	for (uint32_t k = 0; k < nin; k++)
		v->element[n.i][k] = batched[k] ? in[k] : (Node){0};
}

/* ---- checks of those that are not active ---- */

bool node_needs_mask(const Graph *g, Node n)
{
	return node_checks(g, n) || (node_has_graph(g, n) && control_needs_mask(g, n));
}

/* Returns who is active, in the shape of x, a value with or without the batch. */
static Node mask_of(const Batch *v, Build *b, Node x, bool batched)
{
	const Type t = *node_type(b->g, x);
	return b_broadcast_in_dim(b, batched ? v->active : v->any, t.n, t.dim, (uint32_t[]){0});
}

/* Puts an assertion in the place of the check of an index, which may have no value that passes;
 * the node itself clamps the index, which does no harm. */
static Node checked(const Batch *v, Build *b, Node n, Node index, bool batched, Node extents)
{
	Graph *g = b->g;
	Node zero = b_full_int(b, DT_i64, 0, 0, NULL);
	if (node_index_mode(g, n) == INDEX_CHECK)
		index = b_select(b, b_bin(b, OP_lt, index, zero), b_bin(b, OP_add, index, extents),
				 index);
	Node inside =
		b_bin(b, OP_bit_and, b_bin(b, OP_ge, index, zero), b_bin(b, OP_lt, index, extents));
	Node ok = b_bin(b, OP_bit_or, inside, b_un(b, OP_bit_not, mask_of(v, b, index, batched)));
	Node all = b_reduce(b, REDUCE_AND, ok, (1u << node_rank(g, ok)) - 1, DT_bool);
	b_node(b, OP_assert, &all, 1,
	       (Attr[]){attr_none(), attr_str(g->ir, "an index is out of range")}, 2);
	graph_set_attr(g, n, "mode", attr_str(g->ir, "clamp"));
	return index;
}

static Node masked_index(const Batch *v, Build *b, Node n, Node index, bool batched)
{
	Graph *g = b->g;
	Node x = node_in(g, n, 0);
	uint32_t naxes;
	const Sym *axes = node_ints(g, n, "axes", &naxes);
	bool exists = true;
	Node *extent = ARENA_ARRAY(g->ir->ctx->scratch, Node, naxes + 1);
	for (uint32_t k = 0; k < naxes; k++) {
		int64_t a = sym_const(b_syms(b), axes[k]);
		Sym size = node_dim(g, x, (uint32_t)a);
		exists &= sym_le(b_syms(b), b_int(b, 1), size) == YES;
		extent[k] = b_unsqueeze(b, b_from_size(b, size), 0);
	}
	if (!naxes)
		return index;
	if (!exists)
		return checked(v, b, n, index, batched, b_concat(b, extent, naxes, 0));
	return b_select(b, mask_of(v, b, index, batched), index, b_full_int(b, DT_i64, 0, 0, NULL));
}

/* Returns the operand of n that is checked, changed to pass where its member is not active. */
static Node masked(const Batch *v, Build *b, Node n, Node x, bool batched)
{
	if (node_checks(b->g, n) == CHECKS_TRUTH)
		return b_bin(b, OP_bit_or, x, b_un(b, OP_bit_not, mask_of(v, b, x, batched)));
	if (node_checks(b->g, n) == CHECKS_ZERO)
		return b_select(b, mask_of(v, b, x, batched), x, b_zeros_like(b, x));
	return masked_index(v, b, n, x, batched);
}

/* ---- the walk ---- */

/* Gives what stands for n the type of n with one dimension more. */
static void set_type(Batch *v, Node n, Node new)
{
	Graph *g = v->g;
	TypeId want =
		node_type_id(g, n).i ? batch_type(g->ir, node_type_id(g, n), v->size) : (TypeId){0};
	if (!want.i)
		return;
	const Type *a = ir_type_of(g->ir, want), *b = node_type(g, new);
	if (a->dtype != b->dtype || a->n != b->n)
		ctx_bug(g->ir->ctx, "the batch of %s is %s, expected %s", op_name(node_op(g, n)),
			type_str(g->ir, node_type_id(g, new)), type_str(g->ir, want));
	if (a->dtype != DT_none)
		graph_set_type(g, new, want);
}

/* Handles a key that all members share: of member k number k of it, unless they are to draw the
 * same. */
static bool random_key(Batch *v, Node n)
{
	Graph *g = v->g;
	Node state = node_in(g, n, 0);
	Build b = pass_build(g, node_next(g, n));
	if (v->randomness == RANDOM_ERROR)
		return ctx_error(g->ir->ctx, NULL,
				 "the model draws random numbers: say whether the members of a "
				 "batch draw the same or different "
				 "ones (randomness)");
	const Cipher cipher = node_cipher(g, n);
	if (v->randomness == RANDOM_DIFFERENT) {
		Node member = b_iota(&b, DT_u64, v->size);
		v->to[n.i] = b_random_fold(&b, cipher, b_random_key(&b, cipher, state), member);
	}
	return true;
}

static bool visit(Batch *v, Node n)
{
	Graph *g = v->g;
	Op op = node_op(g, n);
	uint32_t nin = node_nin(g, n), errors = g->ir->ctx->nerror;
	Node *in = ARENA_ARRAY(g->ir->ctx->scratch, Node, nin + 1);
	bool *batched = ARENA_ARRAY(g->ir->ctx->scratch, bool, nin + 1), any = false;
	if (op == OP_get) {
		if (!v->gone[n.i])
			get(v, n);
		return true;
	}
	for (uint32_t k = 0; k < nin; k++) {
		in[k] = with_batch(v, node_in(g, n, k));
		batched[k] = in[k].i;
		any |= batched[k];
		in[k] = in[k].i ? in[k] : node_in(g, n, k);
	}
	bool mask = v->active.i && node_needs_mask(g, n);
	if (op == OP_tuple) {
		tuple(v, n, in, batched, any);
		return true;
	}
	if (op == OP_random_key && !any)
		return random_key(v, n);
	if (!any && !mask)
		return true;
	Build b = pass_build(g, node_next(g, n));
	if (node_has_graph(g, n))
		return control_batch(v, &b, n, in, batched);
	if (mask) {
		uint32_t k = node_checks(g, n) == CHECKS_INDEX ? 1 : 0;
		b.before = any ? b.before : n;
		in[k] = masked(v, &b, n, in[k], batched[k]);
		if (!any && in[k].i)
			graph_set_operand(g, n, k, in[k]);
	}
	if (any) {
		Node new = op_batch(&b, n, in, batched, v->size);
		v->to[n.i] = new;
		v->gone[n.i] = true;
		if (new.i)
			set_type(v, n, new);
	}
	return g->ir->ctx->nerror == errors;
}

static Batch batch_new(Graph *g, Sym size)
{
	Arena *scratch = g->ir->ctx->scratch;
	return (Batch){.g = g,
		       .size = size,
		       .n = g->node.n,
		       .to = arena_calloc(scratch, g->node.n, sizeof(Node)),
		       .element = arena_calloc(scratch, g->node.n, sizeof(Node *)),
		       .gone = arena_calloc(scratch, g->node.n, sizeof(bool))};
}

static bool batch_run(Batch *v)
{
	Graph *g = v->g;
	for (Node n = g->first, next; n.i; n = next) {
		next = node_next(g, n); /* what stands for it comes between */
		while (next.i && next.i >= v->n)
			next = node_next(g, next);
		if (n.i < v->n && !visit(v, n))
			return false;
	}
	return true;
}

/* Erases the nodes that something stands for. Their readers are those that went before, and
 * outputs. */
static void batch_end(Batch *v)
{
	Graph *g = v->g;
	for (Node n = g->last, prev; n.i; n = prev) {
		prev = node_prev(g, n);
		if (n.i >= v->n || (!v->to[n.i].i && !v->element[n.i] && !v->gone[n.i]))
			continue;
		if (v->to[n.i].i)
			graph_replace(g, n, v->to[n.i]);
		graph_erase(g, n);
	}
}

bool batch_body(Graph *g, Sym size, const bool *in, const bool *want, bool mask)
{
	Batch v = batch_new(g, size);
	Build b = {.g = g};
	if (mask) {
		v.active =
			graph_add_input(g, "active", INPUT_USER, ir_type(g->ir, DT_bool, 1, &size));
		b.before = graph_behind_inputs(g);
		v.any = b_reduce(&b, REDUCE_OR, v.active, 1, DT_bool);
	}
	for (uint32_t k = 0; k < g->input.n - mask; k++)
		if (in[k])
			TRY(batch_input(&v, k, 0));
	TRY(batch_run(&v));
	b.before = (Node){0};
	for (uint32_t k = 0; k < g->output.n; k++) {
		Node y = g->output.data[k].node, new = with_batch(&v, y);
		if (new.i && !want[k])
			ctx_bug(g->ir->ctx, "output %u of a body has a batch", k);
		if (want[k])
			graph_set_output(g, k, new.i ? new : wide(&b, y, size));
	}
	batch_end(&v);
	graph_dce(g);
	return true;
}

/* ---- the transform ---- */

/* Sets *place to `dim` of a value that has `rank` dimensions with the batch. Returns false after
 * an error: there is no such dimension. */
static bool place_of(const Graph *g, const char *what, const char *name, int32_t dim, uint32_t rank,
		     uint32_t *place)
{
	int32_t n = (int32_t)rank;
	if (dim < -n || dim >= n)
		return ctx_error(g->ir->ctx, NULL,
				 "%s \"%s\" has %u dimensions with a batch: it cannot be dimension "
				 "%d, expected %d to %d",
				 what, name, rank, dim, -n, n - 1);
	*place = (uint32_t)(dim < 0 ? dim + n : dim);
	return true;
}

/* Sets *place to where input k has its batch. Returns false after an error. */
static bool place_of_input(const Graph *g, uint32_t k, uint32_t rank, const BatchDims *dims,
			   uint32_t *place)
{
	return place_of(g, "input", g->input.data[k].name, dims && dims->in ? dims->in[k] : 0, rank,
			place);
}

/* Adds inputs with their batch, and, behind all inputs, permutations of those that have it
 * elsewhere than at dimension 0. */
static bool batch_inputs(Batch *v, const bool *batched, const BatchDims *dims)
{
	Graph *g = v->g;
	Build b = {.g = g, .before = graph_behind_inputs(g)};
	for (uint32_t k = 0; k < g->input.n; k++) {
		const GraphInput *in = &g->input.data[k];
		Node old = in->node;
		uint32_t place;
		if (!batched[k])
			continue;
		if (in->kind != INPUT_USER)
			return ctx_error(
				g->ir->ctx, NULL,
				"\"%s\" is state, of which there is one for the whole batch",
				in->name);
		TRY(place_of_input(g, k, node_rank(g, old) + 1, dims, &place) &&
		    batch_input(v, k, place));
		if (place)
			v->to[old.i] = batch_from(&b, v->to[old.i], place);
	}
	return true;
}

static bool is_state_without_batch(const Batch *v, GraphOutput o)
{
	return o.writes >= 0 && v->g->input.data[o.writes].node.i < v->n;
}

static bool check_state(const Batch *v, GraphOutput o)
{
	Graph *g = v->g;
	if (!is_state_without_batch(v, o) || !with_batch(v, o.node).i)
		return true;
	return ctx_error(g->ir->ctx, node_where(g, o.node),
			 "the value that is written to \"%s\" differs between the members of the "
			 "batch, and there "
			 "is one of it: make it an input with a batch of its own",
			 g->input.data[o.writes].name);
}

/* Returns the value of an output with the batch as dimension `place`. */
static Node with_batch_at(Batch *v, Node y, uint32_t place)
{
	Build b = {.g = v->g};
	Node has = with_batch(v, y);
	const Type t =
		*ir_type_of(v->g->ir, type_at(v->g->ir, node_type_id(v->g, y), v->size, place));
	uint32_t map[MAX_RANK];
	if (has.i)
		return place ? batch_to(&b, has, place) : has;
	for (uint32_t d = 0; d < t.n - 1; d++)
		map[d] = d + (d >= place);
	return b_broadcast_in_dim(&b, y, t.n, t.dim, map);
}

/* Sets output k. What callers get has the batch, unless they want it without; what is written
 * has the batch where its input does. */
static bool set_output(Batch *v, uint32_t k, const BatchDims *dims)
{
	Graph *g = v->g;
	GraphOutput o = g->output.data[k];
	int32_t dim = o.writes < 0 && dims && dims->out ? dims->out[k] : 0;
	uint32_t place, rank = node_rank(g, o.node) + 1;
	TRY(check_state(v, o));
	if (is_state_without_batch(v, o))
		return true;
	if (dim == DIM_NO_BATCH)
		return !with_batch(v, o.node).i ||
		       ctx_error(g->ir->ctx, node_where(g, o.node),
				 "output \"%s\" differs between the members of the batch: "
				 "it needs a dimension for it",
				 o.name);
	if (rank > MAX_RANK)
		return ctx_error(g->ir->ctx, node_where(g, o.node),
				 "a result of %d dimensions: there is none left for a batch",
				 MAX_RANK);
	TRY(o.writes < 0 ? place_of(g, "output", o.name, dim, rank, &place)
			 : place_of_input(g, (uint32_t)o.writes, rank, dims, &place));
	graph_set_output(g, k, with_batch_at(v, o.node, place));
	return true;
}

Graph *transform_vmap(const Graph *g, const bool *batched, Sym size, Randomness randomness)
{
	return transform_vmap_at(g, batched, size, randomness, NULL);
}

/* Checks that no value is too large with the batch. The batch is what the caller says, so this
 * is no error of the transform. */
static bool sizes_fit(Graph *g, Sym size)
{
	for (Node n = g->first; n.i; n = node_next(g, n))
		if (!node_fits(g, n))
			return ctx_error(
				g->ir->ctx, node_where(g, n),
				"with a batch of %s, %s is %s: expected fewer than 2^48 bytes",
				sym_str(graph_syms(g), size), op_name(node_op(g, n)),
				type_str(g->ir, node_type_id(g, n)));
	return true;
}

Graph *transform_vmap_at(const Graph *src, const bool *batched, Sym size, Randomness randomness,
			 const BatchDims *dims)
{
	Graph *g = transform_begin(src, op_has_batch);
	if (!g)
		return NULL;
	Batch v = batch_new(g, size);
	v.randomness = randomness;
	if (!batch_inputs(&v, batched, dims) || !sizes_fit(g, size) || !batch_run(&v))
		return NULL;
	for (uint32_t k = 0; k < g->output.n; k++)
		if (!set_output(&v, k, dims))
			return NULL;
	batch_end(&v);
	graph_dce(g);
	if (!sizes_fit(g, size))
		return NULL;
	if (!graph_verify(g))
		ctx_bug_verify(g->ir->ctx, "vmap");
	return g;
}
