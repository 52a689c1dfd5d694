/* The reference interpreter behind the API. */
#include "driver/driver_priv.h"

#include <string.h>

#include "ir/interp/interp.h"

typedef struct {
	Weft *w;
	WeftGraph *g;
	const WeftTensor *inputs;
	uint32_t n;
	WeftTensor *outputs;
} Interpret;

/* State has its first contents: parameters and buffers that the graph would replace. */
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

static bool interpret(void *arg)
{
	Interpret *a = arg;
	Ctx *ctx = a->w->ctx;
	TRY(graph_is_one(a->w, a->g));
	Graph *g = a->g->g;
	Arena *arena = a->w->results;
	Tensor *in = ARENA_ARRAY(arena, Tensor, g->input.n);
	Tensor *out = ARENA_ARRAY(arena, Tensor, g->output.n);
	uint32_t used = 0, nout = 0;
	ctx->file = a->g->path;
	for (uint32_t k = 0; k < g->input.n; k++) {
		const GraphInput *gi = &g->input.data[k];
		if (gi->kind != INPUT_USER) {
			TRY(state_value(a->g, gi, &in[k]));
			continue;
		}
		if (used == a->n)
			return ctx_error(ctx, NULL, "%u inputs given, %s is missing", a->n,
					 gi->name);
		TRY(tensor_from_api(ctx, arena, gi->name, &a->inputs[used++], &in[k]));
	}
	if (used < a->n)
		return ctx_error(ctx, NULL, "%u inputs given, expected %u", a->n, used);
	TRY(interp(ctx, g, in, g->input.n, out, g->output.n, arena));
	for (uint32_t k = 0; k < g->output.n; k++)
		if (g->output.data[k].writes < 0)
			a->outputs[nout++] = tensor_to_api(arena, &out[k]);
	return true;
}

bool weft_interpret(Weft *w, WeftGraph *g, const WeftTensor *inputs, uint32_t n,
		    WeftTensor *outputs)
{
	Interpret a = {w, g, inputs, n, outputs};
	return boundary(w, interpret, &a);
}

void weft_release(Weft *w)
{
	if (w->dead)
		return;
	arena_free(w->results);
	w->results = arena_new(&w->ctx->unwind);
	w->dead = !w->results;
}
