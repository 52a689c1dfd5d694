#include "tools/train/step.h"

const char *step_option_given(const StepArgs *a)
{
	const OptUse all[] = {{.given = a->loss, .option = "--loss"},
			      {.given = a->group.n, .option = "--group"},
			      {.given = a->trainable.n, .option = "--trainable"},
			      {.given = a->clip_norm, .option = "--clip-norm"},
			      {.given = a->clip_value, .option = "--clip-value"},
			      {.given = a->ema, .option = "--ema"},
			      {.given = a->loss_scale, .option = "--loss-scale"},
			      {.given = a->eval_model, .option = "--eval-model"},
			      {.given = a->accumulate, .option = "--accumulate"}};
	for (size_t k = 0; k < sizeof all / sizeof *all; k++)
		if (all[k].given)
			return all[k].option;
	return NULL;
}

WeftGraph *load_step(Weft *w, const char *path, const StepArgs *a, const LoadArgs *load, bool test)
{
	/* the step sets the precision itself, behind the mode and before the loss */
	LoadArgs plain = *load, other;
	plain.precision.n = 0;
	other = plain;
	other.mode.n = 0;
	WeftGraph *g = load_model(w, path, &plain, NULL), *eval = NULL;
	if (!g)
		return NULL;
	if (a->eval_model && !(eval = load_model(w, a->eval_model, &other, NULL)))
		return NULL;
	const WeftTrainOptions o = {.size = sizeof o,
				    .optimizer = a->optimizer,
				    .loss = a->loss ? a->loss : "output:0",
				    .ngroup = a->group.n,
				    .group = a->group.item,
				    .ntrainable = a->trainable.n,
				    .trainable = a->trainable.item,
				    .clip_norm = a->clip_norm,
				    .clip_value = a->clip_value,
				    .ema = a->ema,
				    .precision = precision_given(load, NULL),
				    .skip_not_finite = a->on_nan && !strcmp(a->on_nan, "skip"),
				    .loss_scale = a->loss_scale,
				    .test = test,
				    .accumulate = a->accumulate,
				    .keep_mode = load->mode.n > 0};
	return weft_train(w, g, eval, &o);
}
