/* weft_invertible: blocks with a known inverse. */
#include "driver/api/trace.h"
#include "ir/build/build.h"

#include <string.h>

#include "transform/model/outline.h"

/* The inverse computes the nodes from handle `first` on, which become a graph of their own: first
 * those that stand for the results. */
typedef struct {
	TraceStep step; /* the first, for perform */
	const WeftValue *x;
	WeftValue *in, *y, *back, *stand; /* what forward takes and gives, and the inverse gives and
	                                     takes */
	uint32_t nx, ny, call, first;
	bool has_functions;
	NodeList capture; /* what else the inverse reads */
	Graph *body;
} TracedBlock;

static bool block_error(const TracedBlock *k, const char *what)
{
	return ctx_error(k->step.t->w->ctx, k->step.t->name,
			 "call %u (weft_invertible): block \"%s\": %s", k->call, k->step.name,
			 what);
}

static bool block_value(const TracedBlock *k, WeftValue v, const char *of, uint32_t number,
			Node *out)
{
	const WeftTrace *t = k->step.t;
	*out = (Node){v.node};
	if (!v.node)
		return block_error(
			k, arena_printf(t->w->ctx->scratch, "%s gives no value %u", of, number));
	TRY(tracing_node(&k->step, v, out));
	return tracing_is_tensor(&k->step, t->scope, *out);
}

static Build block_build(const TracedBlock *k)
{
	WeftTrace *t = k->step.t;
	return tracing_build(t, arena_printf(t->w->ctx->scratch, "%s: call %u (weft_invertible)",
					     t->name, k->call));
}

/* Begins the marked block that the call is: forward gets its operands behind checkpoints. */
static bool begin_block(void *arg)
{
	TracedBlock *k = arg;
	WeftTrace *t = k->step.t;
	Arena *arena = weft_arena(t->w);
	TRY(tracing_ready_named(&k->step));
	k->call = ++t->ncall;
	if (!k->x || !k->y || !k->has_functions)
		return block_error(k,
				   "it takes values, room for values, and two functions, not NULL");
	if (!k->nx || !k->ny)
		return block_error(k, "it takes and gives one value at least");
	k->in = ARENA_ARRAY(arena, WeftValue, k->nx);
	k->back = ARENA_ARRAY(arena, WeftValue, k->nx);
	k->stand = ARENA_ARRAY(arena, WeftValue, k->ny);
	Build b = block_build(k);
	for (uint32_t j = 0; j < k->nx; j++) {
		Node n;
		TRY(tracing_node(&k->step, k->x[j], &n) &&
		    tracing_is_tensor(&k->step, t->scope, n));
		n = b_node(&b, OP_checkpoint, &n, 1,
			   (Attr[]){attr_none(), attr_str(t->scope->g->ir, "begin")}, 2);
		k->in[j] = tracing_value(t, n);
	}
	return true;
}

/* Makes values for the inverse, behind barriers, so that nothing that is built of them sees
 * through. */
static bool begin_inverse(void *arg)
{
	TracedBlock *k = arg;
	WeftTrace *t = k->step.t;
	TRY(tracing_ready(&k->step));
	Build b = block_build(k);
	k->first = t->scope->g->node.n;
	for (uint32_t j = 0; j < k->ny; j++) {
		Node n;
		TRY(block_value(k, k->y[j], "forward", j, &n));
		k->stand[j] = tracing_value(t, b_node(&b, OP_barrier, &n, 1, NULL, 0));
	}
	return true;
}

/* Sets node[] to what the inverse takes, then what the inverse gives. */
static bool inverse_nodes(const TracedBlock *k, Node *node)
{
	for (uint32_t j = 0; j < k->ny; j++)
		node[j] = (Node){k->stand[j].node};
	for (uint32_t j = 0; j < k->nx; j++)
		TRY(block_value(k, k->back[j], "the inverse", j, &node[k->ny + j]));
	return true;
}

/* Makes a graph of what the inverse computes, which leaves the model. */
static bool take_inverse(TracedBlock *k)
{
	Graph *g = k->step.t->scope->g;
	Node *node = ARENA_ARRAY(g->ir->ctx->scratch, Node, k->ny + k->nx);
	TRY(inverse_nodes(k, node));
	const Outline inverse = {.from = g,
				 .name = "inverse",
				 .first = k->first,
				 .in = node,
				 .out = node + k->ny,
				 .nin = k->ny,
				 .nout = k->nx};
	k->body = graph_outline(&inverse, &k->capture);
	return graph_erase_outlined(&inverse) ||
	       block_error(k, "what its inverse computes is read outside of it");
}

static bool end_block(void *arg)
{
	TracedBlock *k = arg;
	Graph *g = k->step.t->scope->g;
	TRY(tracing_ready(&k->step) && take_inverse(k));
	uint32_t n = 0;
	Build b = block_build(k);
	Node *in = ARENA_ARRAY(g->ir->ctx->scratch, Node, k->ny + k->nx + k->capture.n);
	for (uint32_t j = 0; j < k->ny; j++)
		in[n++] = (Node){k->y[j].node};
	for (uint32_t j = 0; j < k->nx; j++)
		in[n++] = (Node){k->in[j].node};
	for (uint32_t j = 0; j < k->capture.n; j++)
		in[n++] = k->capture.data[j];
	const Attr attr[] = {attr_int(g->ir, k->ny), attr_int(g->ir, k->nx),
			     attr_int(g->ir, k->capture.n), attr_graph(k->body),
			     attr_str(g->ir, k->step.name)};
	Node block = b_node(&b, OP_invertible, in, n, attr, 5);
	TRY(block.i);
	for (uint32_t j = 0; j < k->ny; j++)
		k->y[j] = tracing_value(k->step.t, b_get(&b, block, j));
	return true;
}

void weft_invertible(WeftTrace *t, const char *name, const WeftValue *x, uint32_t nx, WeftValue *y,
		     uint32_t ny, WeftBlockFn forward, WeftBlockFn inverse, void *user)
{
	TracedBlock k = {.step = {.t = t, .function = "weft_invertible", .name = name},
			 .x = x,
			 .y = y,
			 .nx = nx,
			 .ny = ny,
			 .has_functions = forward && inverse};
	bool ok = t && tracing_perform(&k.step, begin_block);
	if (!y)
		return;
	memset(y, 0, ny * sizeof *y); /* which x may be */
	if (ok)
		forward(t, k.in, y, user);
	ok = ok && tracing_perform(&k.step, begin_inverse);
	if (ok)
		inverse(t, k.stand, k.back, user);
	if (!ok || !tracing_perform(&k.step, end_block))
		memset(y, 0, ny * sizeof *y);
}
