/* Lower precision, and rounded operands of products, behind the API. */
#include "driver/api/given.h"
#include "ir/build/verify.h"
#include "ir/op/op.h"
#include "passes/precision.h"

typedef struct {
	Weft *w;
	WeftGraph *g;
	WeftPrecision to;
} PrecisionSetting;

static bool set_precision(void *arg)
{
	static const char here[] = "weft_set_precision";
	const PrecisionSetting *s = arg;
	Ctx *ctx = s->w->ctx;
	TRY(given_graph(s->w, here, s->g) && graph_is_one(s->w, s->g));
	if (s->to != WEFT_PRECISION_BF16 && s->to != WEFT_PRECISION_F16)
		return ctx_error(ctx, here, "there is no precision %d", (int)s->to);
	if (s->g->transformed)
		return ctx_error(ctx, s->g->path,
				 "the graph was transformed: set the precision of the graph that "
				 "was loaded, then transform it");
	ctx->file = s->g->path;
	const DType low = s->to == WEFT_PRECISION_BF16 ? DT_bf16 : DT_f16;
	precision_lower(s->g->g, low);
	s->g->transformed = true;
	return graph_verify(s->g->g);
}

typedef struct {
	Weft *w;
	WeftGraph *g;
	WeftActivations to;
} ActivationSetting;

static bool set_activations(void *arg)
{
	static const char here[] = "weft_set_activations";
	const ActivationSetting *s = arg;
	Ctx *ctx = s->w->ctx;
	TRY(given_graph(s->w, here, s->g) && graph_is_one(s->w, s->g));
	if (s->to != WEFT_ACTIVATIONS_INT8 && s->to != WEFT_ACTIVATIONS_EXACT)
		return ctx_error(ctx, here, "there are no activations %d", (int)s->to);
	if (s->g->transformed && !s->g->g->unrounded)
		return ctx_error(ctx, s->g->path,
				 "the graph was transformed: set the activations of the graph that "
				 "was loaded, then transform it");
	s->g->g->activations = s->to == WEFT_ACTIVATIONS_INT8 ? DT_i8 : DT_f32;
	return true;
}

bool weft_set_activations(Weft *w, WeftGraph *g, WeftActivations to)
{
	ActivationSetting s = {.w = w, .g = g, .to = to};
	return boundary(w, set_activations, &s);
}

bool weft_set_precision(Weft *w, WeftGraph *g, WeftPrecision to)
{
	PrecisionSetting s = {.w = w, .g = g, .to = to};
	return boundary(w, set_precision, &s);
}

typedef struct {
	Weft *w;
	const WeftGraph *g;
} RoundsQuestion;

static bool ask_rounds(void *arg)
{
	const RoundsQuestion *q = arg;
	return given_graph(q->w, "weft_rounds_activations", q->g) && graph_is_one(q->w, q->g) &&
	       graph_rounds(q->g->g);
}

bool weft_rounds_activations(Weft *w, const WeftGraph *g)
{
	RoundsQuestion q = {.w = w, .g = g};
	return boundary(w, ask_rounds, &q);
}
