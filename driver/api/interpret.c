/* The reference interpreter behind the API. */
#include "driver/api/given.h"

#include <string.h>

#include "ir/interp/interp.h"
#include "ir/op/op.h"
#include "passes/pipeline.h"

typedef struct {
	Weft *w;
	WeftGraph *g;
	const WeftTensor *state; /* the caller's; NULL: first contents */
	const WeftTensor *inputs;
	uint32_t n;
	WeftTensor *outputs;
	bool all; /* outputs has room for the new values of inputs, too */
} Interpret;

/* Sets *out to the first contents of state: of a parameter or buffer that the graph would
 * replace. */
static bool state_value(WeftGraph *wg, const GraphInput *in, Tensor *out)
{
	if (!in->init.i)
		return ctx_error(wg->w->ctx, wg->path, "%s has no first contents", in->name);
	const Const *c = ir_const_of(wg->g->ir, in->init);
	*out = (Tensor){.dtype = c->dtype, .rank = c->rank, .data = (void *)(uintptr_t)c->data};
	for (uint32_t d = 0; d < c->rank; d++)
		out->dim[d] = c->dim[d];
	return true;
}

static uint32_t state_index(const Graph *g, uint32_t input)
{
	uint32_t n = 0;
	for (uint32_t k = 0; k < input; k++)
		n += g->input.data[k].kind != INPUT_USER;
	return n;
}

static bool check_state(Interpret *a, const GraphInput *in, uint32_t k, Tensor *out)
{
	Tensor want;
	TRY(state_value(a->g, in, &want));
	TRY(tensor_from_api(a->w->ctx, a->w->results, in->name, &a->state[k], out));
	bool same = out->dtype == want.dtype && out->rank == want.rank;
	for (uint32_t d = 0; same && d < want.rank; d++)
		same = out->dim[d] == want.dim[d];
	if (!same) {
		Arena *arena = weft_arena(a->w);
		return ctx_error(a->w->ctx, NULL, "state %s is %s, expected %s", in->name,
				 tensor_type_str(arena, out), tensor_type_str(arena, &want));
	}
	return true;
}

/* Sets *out to a copy of the state that the caller gives: results may be views of operands, and
 * are stored where these came from. */
static bool given_state(Interpret *a, const GraphInput *in, uint32_t k, Tensor *out)
{
	TRY(check_state(a, in, k, out));
	out->data = arena_dup(a->w->results, out->data, tensor_bytes(out));
	return true;
}

static void keep_state(const Interpret *a, const Graph *g, const Tensor *out)
{
	for (uint32_t k = 0; a->state && k < g->output.n; k++) {
		int32_t writes = g->output.data[k].writes;
		if (writes < 0 || g->input.data[writes].kind == INPUT_USER)
			continue;
		const WeftTensor *to = &a->state[state_index(g, (uint32_t)writes)];
		if (tensor_bytes(&out[k]))
			memcpy((char *)to->data + to->byte_offset, out[k].data,
			       tensor_bytes(&out[k]));
	}
}

/* Whether the caller gets output k. */
static bool is_given_out(const Interpret *a, const Graph *g, uint32_t k)
{
	return g->output.data[k].writes < 0 || (a->all && !graph_output_is_state(g, k));
}

static uint32_t user_outputs(const Interpret *a, const Graph *g)
{
	uint32_t n = 0;
	for (uint32_t k = 0; k < g->output.n; k++)
		n += is_given_out(a, g, k);
	return n;
}

/* Returns the graph that is interpreted: one whose operands are to be rounded is rewritten. NULL
 * after an error. */
static Graph *interpreted(Graph *g)
{
	const PipelineOptions o = {0};
	if (!graph_rounds(g))
		return g;
	g = graph_clone(g);
	return pipeline_run(g, &o) ? g : NULL;
}

static bool interpret(void *arg)
{
	Interpret *a = arg;
	Ctx *ctx = a->w->ctx;
	static const char here[] = "weft_interpret";
	TRY(given_graph(a->w, here, a->g) && graph_is_one(a->w, a->g));
	graph_warn_absent(a->g);
	ctx->file = a->g->path;
	Graph *g = interpreted(a->g->g);
	TRY(g && given_list(a->w, here, "inputs", a->inputs, a->n) &&
	    given_list(a->w, here, "outputs", a->outputs, user_outputs(a, g)));
	*g->ir->comm = a->w->comm;
	Arena *arena = a->w->results;
	Tensor *in = ARENA_ARRAY(arena, Tensor, g->input.n);
	Tensor *out = ARENA_ARRAY(arena, Tensor, g->output.n);
	uint32_t used = 0, nout = 0;
	for (uint32_t k = 0; k < g->input.n; k++) {
		const GraphInput *gi = &g->input.data[k];
		if (gi->kind != INPUT_USER) {
			TRY(a->state ? given_state(a, gi, state_index(g, k), &in[k])
				     : state_value(a->g, gi, &in[k]));
			continue;
		}
		if (used == a->n)
			return ctx_error(ctx, NULL, "%u inputs given, %s is missing", a->n,
					 gi->name);
		TRY(tensor_from_api(ctx, arena, gi->name, &a->inputs[used++], &in[k]));
	}
	if (used < a->n)
		return ctx_error(ctx, NULL, "%u inputs given, expected %u", a->n, used);
	TRY(interp(ctx, g, in, g->input.n, out, g->output.n, arena) ||
	    ctx_kind(ctx, REFUSAL_CHECK));
	for (uint32_t k = 0; k < g->output.n; k++)
		if (is_given_out(a, g, k))
			a->outputs[nout++] = tensor_to_api(arena, &out[k]);
	keep_state(a, g, out);
	return true;
}

void weft_interpret_comm(Weft *w, const WeftComm *comm)
{
	if (w)
		w->comm = comm;
}

bool weft_interpret(Weft *w, WeftGraph *g, const WeftTensor *inputs, uint32_t n,
		    WeftTensor *outputs)
{
	return weft_interpret_on(w, g, NULL, inputs, n, outputs);
}

bool weft_interpret_on(Weft *w, WeftGraph *g, const WeftTensor *state, const WeftTensor *inputs,
		       uint32_t n, WeftTensor *outputs)
{
	Interpret a = {w, g, state, inputs, n, outputs, false};
	return boundary(w, interpret, &a);
}

bool weft_interpret_all(Weft *w, WeftGraph *g, const WeftTensor *state, const WeftTensor *inputs,
			uint32_t n, WeftTensor *results)
{
	Interpret a = {w, g, state, inputs, n, results, true};
	return boundary(w, interpret, &a);
}

static bool first_state(void *arg)
{
	Interpret *a = arg;
	TRY(given_graph(a->w, "weft_first_state", a->g) && graph_is_one(a->w, a->g));
	const Graph *g = a->g->g;
	for (uint32_t k = 0; k < g->input.n; k++) {
		Tensor t, room;
		uint32_t n = state_index(g, k);
		if (g->input.data[k].kind == INPUT_USER)
			continue;
		TRY(given(a->w, "weft_first_state", "the state", a->state) &&
		    check_state(a, &g->input.data[k], n, &room));
		TRY(state_value(a->g, &g->input.data[k], &t));
		const WeftTensor *to = &a->state[n];
		memcpy((char *)to->data + to->byte_offset, t.data, tensor_bytes(&t));
	}
	return true;
}

bool weft_first_state(Weft *w, const WeftGraph *g, const WeftTensor *state)
{
	Interpret a = {.w = w, .g = (WeftGraph *)(uintptr_t)g, .state = state};
	return boundary(w, first_state, &a);
}

void weft_release(Weft *w)
{
	if (!w || w->dead)
		return;
	arena_free(w->results);
	w->results = arena_new(&w->ctx->unwind);
	w->dead = !w->results;
}
