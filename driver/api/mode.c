/* weft_set_mode. */
#include "transform/model/mode.h"

#include "driver/api/given.h"

typedef struct {
	Weft *w;
	WeftGraph *g;
	WeftMode mode;
} ModeSetting;

static bool check_graph(const ModeSetting *s)
{
	static const char here[] = "weft_set_mode";
	Ctx *ctx = s->w->ctx;
	TRY(given_graph(s->w, here, s->g) && graph_is_one(s->w, s->g));
	if (s->mode != WEFT_EVAL && s->mode != WEFT_TRAIN)
		return ctx_error(ctx, here, "there is no mode %d", (int)s->mode);
	if (s->g->transformed)
		return ctx_error(ctx, s->g->path,
				 "the graph was transformed: set the mode of the graph that was "
				 "loaded, then transform it");
	if (s->g->g->decomposed)
		return ctx_error(ctx, s->g->path,
				 "the file is decomposed (run_decompositions): its operators do "
				 "not say that they train; export the model in the "
				 "other mode");
	return !s->g->g->other_mode ||
	       ctx_error(ctx, s->g->g->other_mode,
			 "writes memory that dropout shares in evaluation mode only: "
			 "export the model in the other mode");
}

static bool set_mode(void *arg)
{
	const ModeSetting *s = arg;
	Ctx *ctx = s->w->ctx;
	TRY(check_graph(s));
	RandomSource random = {.seed = s->g->seed, .input = s->g->rng_input};
	Unclear unclear;
	cipher_find(s->g->rng_cipher, &random.cipher);
	ctx->file = s->g->path;
	TRY(transform_mode(s->g->g, s->mode == WEFT_TRAIN, &random, &unclear));
	if (s->mode == WEFT_TRAIN)
		ctx_note(ctx, s->g->path,
			 "what Python decided by self.training is not in this file");
	if (unclear.n)
		ctx_warn(ctx, unclear.first,
			 "in evaluation dropout returns its operand, so the file does not say "
			 "which of its readers read what is not dropped: all read "
			 "what is dropped (%u such dropouts); if that is not what the model does, "
			 "export it in training mode",
			 unclear.n);
	return true;
}

bool weft_set_mode(Weft *w, WeftGraph *g, WeftMode mode)
{
	ModeSetting s = {.w = w, .g = g, .mode = mode};
	return boundary(w, set_mode, &s);
}
