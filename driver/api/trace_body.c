/* Branches and loops of a trace: the functions of the caller add nodes to graphs of their own, the
 * bodies. What these read from outside becomes an operand of the branch or loop, and an input of
 * all its bodies. */
#include "driver/api/trace.h"
#include "ir/build/build.h"

#include <string.h>

enum { BODIES = 2 };

typedef struct {
	TraceStep step; /* the first, for tracing_perform */
	Captured captured;
	TraceScope body[BODIES];
	const TypeId *type; /* of the bodies' own inputs */
	const WeftValue *in; /* operands for these */
	uint32_t nin, ncarry, nxs, nbody, call;
	uint32_t ngiven; /* results that the function of the body at hand gives */
	int64_t said;    /* what it says of their number itself, else NOT_SAID */
	WeftValue *value, *result; /* room for its inputs and results */
	bool slices;  /* operands from ncarry on lose their leading dimension */
	int64_t most; /* rounds; 0: not known */
	bool reverse;
	Op op;
	WeftValue *out;
	uint32_t nout;
} Bodies;

static bool body_error(const Bodies *k, const char *what)
{
	return ctx_error(k->step.t->w->ctx, k->step.t->name, "call %u (%s): %s", k->call,
			 k->step.name, what);
}

static Build body_build(const Bodies *k)
{
	WeftTrace *t = k->step.t;
	return tracing_build(t, arena_printf(t->w->ctx->scratch, "%s: call %u (%s)", t->name,
					     k->call, k->step.name));
}

/* ---- bodies ---- */

/* Sets *out to the type of input j: the operand's, or that of one of its slices. */
static bool input_type(Bodies *k, uint32_t j, TypeId *out)
{
	const WeftTrace *t = k->step.t;
	TraceScope *owner;
	Node n;
	TRY(tracing_owner(&k->step, k->in[j], &owner, &n) && tracing_is_tensor(&k->step, owner, n));
	*out = node_type_id(owner->g, n);
	if (!k->slices || j < k->ncarry)
		return true;
	const Type x = *ir_type_of(t->scope->g->ir, *out);
	if (!x.n)
		return body_error(k, "what is scanned over has no dimension");
	*out = ir_type(t->scope->g->ir, x.dtype, x.n - 1, x.dim + 1);
	return true;
}

static bool find_types(Bodies *k)
{
	TypeId *type = ARENA_ARRAY(weft_arena(k->step.t->w), TypeId, k->nin);
	for (uint32_t j = 0; j < k->nin; j++)
		TRY(input_type(k, j, &type[j]));
	k->type = type;
	return true;
}

/* Makes the next body the current scope; value[] are its inputs. */
static void open_body(Bodies *k)
{
	WeftTrace *t = k->step.t;
	TraceScope *s = &k->body[k->nbody++];
	Graph *g = graph_beside(t->scope->g, "body");
	g->scope = t->scope->g->scope;
	*s = (TraceScope){.g = g,
			  .id = ++t->w->ntrace,
			  .outer = t->scope,
			  .nin = k->nin,
			  .captured = &k->captured};
	for (uint32_t j = 0; j < k->nin; j++)
		k->value[j] = (WeftValue){graph_add_input(g, "", INPUT_USER, k->type[j]).i, s->id};
	for (uint32_t j = 0; j < k->captured.value.n; j++)
		graph_add_input(g, "", INPUT_USER,
				node_type_id(t->scope->g, k->captured.value.data[j]));
	t->scope = s;
}

/* Sets the number of the call's results to the number that its bodies say. */
static bool count_results(Bodies *k)
{
	Arena *scratch = k->step.t->w->ctx->scratch;
	if (k->said < 0)
		return true;
	if (k->nbody > 1 && k->said != k->nout)
		return body_error(k, arena_printf(scratch,
						  "one branch gives %u values, the other one %u",
						  k->nout, k->ngiven));
	if (k->op == OP_while || k->said < k->ncarry || k->said > k->nout)
		return body_error(k, arena_printf(scratch, "a body gives %u values, expected %u%s",
						  k->ngiven, k->op == OP_scan ? k->ncarry : k->nout,
						  k->op == OP_scan ? " or more" : " at most"));
	if (k->ngiven < k->nout)
		memset(k->out + k->ngiven, 0, (k->nout - k->ngiven) * sizeof *k->out);
	k->nout = k->ngiven;
	return true;
}

/* Makes the results of the body's function its outputs, and leaves the body. */
static bool close_body(Bodies *k)
{
	WeftTrace *t = k->step.t;
	TRY(count_results(k));
	for (uint32_t j = 0; j < k->ngiven; j++) {
		Node n;
		if (!k->result[j].node)
			return body_error(k,
					  arena_printf(t->w->ctx->scratch,
						       "body %u gives no value %u", k->nbody, j));
		TRY(tracing_node(&k->step, k->result[j], &n) &&
		    tracing_is_tensor(&k->step, t->scope, n));
		graph_add_output(t->scope->g, arena_printf(weft_arena(t->w), "y%u", j), n, -1);
	}
	t->scope = t->scope->outer;
	return true;
}

/* Gives earlier bodies the inputs that later ones have captured. */
static void complete_bodies(Bodies *k)
{
	const Graph *outside = k->step.t->scope->g;
	for (uint32_t b = 0; b < k->nbody; b++)
		for (uint32_t j = k->body[b].g->input.n - k->nin; j < k->captured.value.n; j++)
			graph_add_input(k->body[b].g, "", INPUT_USER,
					node_type_id(outside, k->captured.value.data[j]));
}

static bool begin(void *arg)
{
	Bodies *k = arg;
	WeftTrace *t = k->step.t;
	Arena *arena = weft_arena(t->w);
	TRY(tracing_ready(&k->step));
	k->call = ++t->ncall;
	if ((k->nin && !k->in) || (k->nout && !k->out))
		return body_error(k, "values, or room for values, are missing: NULL");
	if (k->nin < k->ncarry || k->nout < k->ncarry) /* sums that have wrapped around */
		return body_error(k, "more values than can be counted");
	k->value = ARENA_ARRAY(arena, WeftValue, k->nin);
	/* a test gives one of its own */
	k->result = ARENA_ARRAY(arena, WeftValue, (size_t)k->nout + 1);
	if (k->most < 0)
		return body_error(k, "the number of rounds is negative");
	if (k->op == OP_scan && !k->nxs)
		return body_error(k, "there is nothing to scan over");
	TRY(find_types(k));
	open_body(k);
	return true;
}

static bool begin_next(void *arg)
{
	Bodies *k = arg;
	TRY(tracing_ready(&k->step) && close_body(k));
	open_body(k);
	return true;
}

/* ---- the node ---- */

static Sym length_of(const Bodies *k, Node slices)
{
	return node_dim(k->step.t->scope->g, slices, 0);
}

/* Sets in[] to the operands: of the caller, then captured ones; in front of them, of a branch,
 * the condition. */
static bool operands(const Bodies *k, Node *in, uint32_t *n)
{
	if (k->op == OP_cond)
		TRY(tracing_node(&k->step, k->step.value, &in[(*n)++]));
	for (uint32_t j = 0; j < k->nin; j++)
		TRY(tracing_node(&k->step, k->in[j], &in[(*n)++]));
	for (uint32_t j = 0; j < k->captured.value.n; j++)
		in[(*n)++] = k->captured.value.data[j];
	return true;
}

static uint32_t attributes(const Bodies *k, const Node *in, Attr *attr)
{
	Ir *ir = k->step.t->scope->g->ir;
	const Attr ncaptured = attr_int(ir, k->captured.value.n);
	uint32_t n = 0;
	if (k->op == OP_cond) {
		attr[n++] = attr_none();
		attr[n++] = ncaptured;
		attr[n++] = attr_graph(k->body[0].g);
		attr[n++] = attr_graph(k->body[1].g);
		return n;
	}
	attr[n++] = attr_int(ir, k->ncarry);
	if (k->op == OP_scan)
		attr[n++] = attr_int(ir, k->nxs);
	attr[n++] = ncaptured;
	attr[n++] = attr_graph(k->body[0].g);
	if (k->op == OP_scan) {
		attr[n++] = attr_sym(length_of(k, in[k->ncarry]));
		attr[n++] = attr_bool(k->reverse);
		return n;
	}
	attr[n++] = attr_graph(k->body[1].g);
	attr[n++] = k->most ? attr_int(ir, k->most) : attr_none();
	return n;
}

/* Requires that all that is scanned over has as many slices, where that is not known. */
static bool require_lengths(Bodies *k, const Node *in)
{
	Graph *g = k->step.t->scope->g;
	for (uint32_t j = 1; j < k->nxs; j++) {
		Sym a = length_of(k, in[k->ncarry]), b = length_of(k, in[k->ncarry + j]);
		if (sym_eq(graph_syms(g), a, b) == NO)
			return body_error(k, arena_printf(g->ir->ctx->scratch,
							  "leading extents %s and %s differ",
							  sym_str(graph_syms(g), a),
							  sym_str(graph_syms(g), b)));
		graph_guard(g, GUARD_EQ, a, b, "weft_scan");
	}
	return true;
}

static bool finish(void *arg)
{
	Bodies *k = arg;
	Graph *g = k->step.t->scope->outer->g;
	TRY(tracing_ready(&k->step) && close_body(k));
	complete_bodies(k);
	uint32_t n = 0;
	Attr attr[6];
	Node *in = ARENA_ARRAY(g->ir->ctx->scratch, Node, 1 + k->nin + k->captured.value.n);
	TRY(operands(k, in, &n) && require_lengths(k, in));
	Build b = body_build(k);
	const uint32_t nattr = attributes(k, in, attr);
	Node made = b_node(&b, k->op, in, n, attr, nattr);
	TRY(made.i);
	for (uint32_t j = 0; j < k->nout; j++)
		k->out[j] = tracing_value(k->step.t, b_get(&b, made, j));
	return true;
}

/* Calls fn with the inputs of the body at hand. */
static void call(Bodies *k, WeftBlockFn fn, uint32_t ngiven, void *user)
{
	WeftTrace *t = k->step.t;
	const int64_t outer = t->gives;
	memset(k->result, 0, ((size_t)k->nout + 1) * sizeof *k->result);
	t->gives = NOT_SAID;
	fn(t, k->value, k->result, user);
	k->said = t->gives;
	k->ngiven = k->said >= 0 ? (uint32_t)k->said : ngiven;
	t->gives = outer;
}

static void give(Bodies *k, bool ok)
{
	if (!ok && k->out)
		memset(k->out, 0, k->nout * sizeof *k->out);
}

static bool has_functions(void *arg)
{
	const Bodies *k = arg;
	return body_error(k, "a function is missing: NULL");
}

void weft_body_gives(WeftTrace *t, uint32_t n)
{
	if (t)
		t->gives = n;
}

void weft_cond(WeftTrace *t, WeftValue condition, WeftBlockFn yes, WeftBlockFn no, void *user,
	       WeftValue *out, uint32_t nout)
{
	Bodies k = {.step = {.t = t, .name = "weft_cond", .value = condition},
		    .op = OP_cond,
		    .out = out,
		    .nout = nout};
	bool ok = t && (yes && no ? tracing_perform(&k.step, begin)
				  : tracing_perform(&k.step, has_functions));
	if (ok)
		call(&k, yes, nout, user);
	ok = ok && tracing_perform(&k.step, begin_next);
	if (ok)
		call(&k, no, nout, user);
	give(&k, ok && tracing_perform(&k.step, finish));
}

void weft_while_loop(WeftTrace *t, const WeftValue *x, uint32_t n, WeftBlockFn test,
		     WeftBlockFn body, int64_t most, void *user, WeftValue *out)
{
	Bodies k = {.step = {.t = t, .name = "weft_while_loop"},
		    .op = OP_while,
		    .in = x,
		    .nin = n,
		    .ncarry = n,
		    .most = most,
		    .out = out,
		    .nout = n};
	bool ok = t && (test && body ? tracing_perform(&k.step, begin)
				     : tracing_perform(&k.step, has_functions));
	if (ok)
		call(&k, test, 1, user);
	ok = ok && tracing_perform(&k.step, begin_next);
	if (ok)
		call(&k, body, n, user);
	give(&k, ok && tracing_perform(&k.step, finish));
}

void weft_scan(WeftTrace *t, const WeftValue *x, uint32_t ninit, uint32_t nxs, uint32_t ny,
	       bool reverse, WeftBlockFn body, void *user, WeftValue *out)
{
	Bodies k = {.step = {.t = t, .name = "weft_scan"},
		    .op = OP_scan,
		    .in = x,
		    .nin = ninit + nxs,
		    .ncarry = ninit,
		    .nxs = nxs,
		    .slices = true,
		    .reverse = reverse,
		    .out = out,
		    .nout = ninit + ny};
	bool ok = t && (body ? tracing_perform(&k.step, begin)
			     : tracing_perform(&k.step, has_functions));
	if (ok)
		call(&k, body, ninit + ny, user);
	give(&k, ok && tracing_perform(&k.step, finish));
}
