/* weft_train. */
#include "transform/step/step.h"

#include <string.h>

#include "driver/api/given.h"
#include "driver/api/user_ops.h"
#include "ir/build/verify.h"
#include "ir/op/import.h"

static const char here[] = "weft_train";

typedef struct {
	Weft *w;
	const WeftGraph *train, *eval;
	WeftTrainOptions options;
	WeftGraph *out;
} Training;

static bool is_f16(const Training *t)
{
	return t->options.precision && !strcmp(t->options.precision, "f16");
}

static bool check(const Training *t)
{
	const WeftTrainOptions *o = &t->options;
	TRY(options_fit(t->w, o->size, sizeof *o));
	TRY(given_graph(t->w, here, t->train) && graph_is_one(t->w, t->train));
	TRY(!t->eval || (given_graph(t->w, here, t->eval) && graph_is_one(t->w, t->eval)));
	TRY(given_text(t->w, here, "the optimiser", o->optimizer) &&
	    given_text(t->w, here, "the loss", o->loss) &&
	    given_texts(t->w, here, "groups", o->group, o->ngroup) &&
	    given_texts(t->w, here, "patterns", o->trainable, o->ntrainable));
	return !o->precision || !strcmp(o->precision, "bf16") || is_f16(t) ||
	       ctx_error(t->w->ctx, here, "the precision of a step is bf16 or f16, not %s",
			 o->precision);
}

/* Returns a copy of a graph in an Ir of its own. */
static WeftGraph *copied(const Training *t, const WeftGraph *from)
{
	WeftGraph *out = graph_wrap(t->w, graph_import(user_ir(t->w), from->g), from->path);
	out->transformed = from->transformed;
	out->seed = from->seed;
	out->rng_input = from->rng_input;
	out->rng_cipher = from->rng_cipher;
	out->named = from->named;
	return out;
}

/* Whether the mode of a graph can be set. */
static bool has_mode(const WeftGraph *g)
{
	return !g->transformed && !g->g->decomposed;
}

static bool lower(const Training *t, WeftGraph *g)
{
	return !t->options.precision ||
	       weft_set_precision(t->w, g, is_f16(t) ? WEFT_PRECISION_F16 : WEFT_PRECISION_BF16);
}

static WeftGraph *done(const Training *t, Graph *g, const char *path)
{
	WeftGraph *out = graph_wrap(t->w, g, path);
	out->transformed = true;
	return out;
}

/* Sets graph[0] to the step; with accumulation, graph[0] and graph[1] to its two parts. */
static bool make_step(const Training *t, Step *step, WeftGraph **graph)
{
	const WeftTrainOptions *o = &t->options;
	WeftGraph *g = copied(t, t->train);
	TRY(o->keep_mode || !has_mode(g) || weft_set_mode(t->w, g, WEFT_TRAIN));
	if (!o->keep_mode && !has_mode(g))
		ctx_note(t->w->ctx, g->path,
			 "%s: the step computes in the mode in which the model was exported",
			 g->transformed ? "the graph was transformed"
					: "the file is decomposed (run_decompositions)");
	t->w->ctx->file = g->path;
	const StepTexts texts = {.optimizer = o->optimizer,
				 .loss = o->loss,
				 .clip_norm = o->clip_norm,
				 .clip_value = o->clip_value,
				 .ema = o->ema,
				 .loss_scale = o->loss_scale ? o->loss_scale
					       : is_f16(t)   ? "dynamic"
							     : NULL,
				 .skips = o->skip_not_finite,
				 .ngroup = o->ngroup,
				 .group = o->group,
				 .ntrainable = o->ntrainable,
				 .trainable = o->trainable,
				 .outputs = o->outputs};
	Graph *made, *applies = NULL;
	TRY(transform_step_read(g->g, &texts, step) && lower(t, g) &&
	    transform_step(g->g, step, &made, o->accumulate ? &applies : NULL));
	graph[0] = done(t, made, g->path);
	graph[1] = applies ? done(t, applies, g->path) : NULL;
	return true;
}

/* Returns the graph that evaluates, and gives the loss if there is one. writes: the graph that
 * writes averages, if one does. */
static WeftGraph *make_evaluation(const Training *t, const StepLoss *loss, const Graph *writes)
{
	const WeftGraph *from = t->eval ? t->eval : t->train;
	WeftGraph *g = copied(t, from);
	if (!t->eval && has_mode(g) && !weft_set_mode(t->w, g, WEFT_EVAL))
		return NULL;
	t->w->ctx->file = g->path;
	transform_step_averages(g->g, writes);
	if (!lower(t, g) || !transform_step_evaluation(g->g, loss, g->g->exported && !g->named))
		return NULL;
	return done(t, g->g, g->path);
}

/* Says what is trained. */
static void tell(const Training *t, const Step *s, const WeftGraph *g)
{
	for (uint32_t k = 0; k < s->ngroup; k++) {
		const StepGroup *group = &s->group[k];
		int64_t all = 0;
		for (uint32_t i = 0; i < group->nparam; i++) {
			const Const *c = ir_const_of(g->g->ir, group->param[i]);
			int64_t n = 1;
			for (uint32_t d = 0; d < c->rank; d++)
				n *= c->dim[d];
			all += n;
		}
		ctx_note(t->w->ctx, t->train->path,
			 "group %u, %s%s%s: %u parameters, %lld elements", group->number,
			 group->of->name, group->text ? ", " : "", group->text ? group->text : "",
			 group->nparam, (long long)all);
	}
}

static bool train(void *arg)
{
	Training *t = arg;
	Step step;
	TRY(check(t));
	const bool two = t->options.accumulate;
	const char *const name[] = {two ? "accumulate" : "step", two ? "apply" : "eval",
				    two ? "eval" : "test", "test"};
	WeftGraph *graph[4];
	TRY(make_step(t, &step, graph));
	const Graph *writes = graph[two]->g;
	WeftGraph **rest = graph + (two ? 2 : 1);
	TRY((rest[0] = make_evaluation(t, NULL, writes)));
	if (t->options.test)
		TRY((rest[1] = make_evaluation(t, &step.loss, writes)));
	tell(t, &step, graph[0]);
	t->out = weft_join(t->w, 2 + two + t->options.test, name, graph);
	return t->out;
}

WeftGraph *weft_train(Weft *w, const WeftGraph *train_graph, const WeftGraph *eval,
		      const WeftTrainOptions *options)
{
	Training t = {.w = w, .train = train_graph, .eval = eval};
	options_copy(&t.options, sizeof t.options, options);
	return boundary(w, train, &t) ? t.out : NULL;
}
