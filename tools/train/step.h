/* A step of training, as `weft compile --train` and `weft train` describe it. */
#ifndef WEFT_TOOLS_TRAIN_STEP_H
#define WEFT_TOOLS_TRAIN_STEP_H

#include "tools/tool.h"

typedef struct {
	const char *optimizer, *loss, *clip_norm, *clip_value; /* NULL: not given */
	const char *ema, *on_nan, *loss_scale;                 /* the same */
	const char *eval_model; /* a file; NULL: the model itself, in evaluation mode */
	StringList group, trainable;
	bool accumulate; /* entries accumulate and apply in place of step */
} StepArgs;

/* The rows of Opt for the StepArgs a, but for the optimiser, and their help. */
#define STEP_OPTIONS(a)                                                                            \
	{"--loss", OPT_STRING, &(a)->loss}, {"--group", OPT_LIST, &(a)->group},                    \
		{"--trainable", OPT_LIST, &(a)->trainable},                                        \
		{"--clip-norm", OPT_STRING, &(a)->clip_norm},                                      \
		{"--clip-value", OPT_STRING, &(a)->clip_value}, {"--ema", OPT_STRING, &(a)->ema},  \
		{"--loss-scale", OPT_STRING, &(a)->loss_scale},                                    \
	{                                                                                          \
		"--eval-model", OPT_STRING, &(a)->eval_model                                       \
	}
#define STEP_HELP                                                                                  \
	{"--loss LOSS",                                                                            \
	 "output:K if the model gives it, or a loss of an output and a label: cross_entropy, "     \
	 "nll, "                                                                                   \
	 "mse, l1, smooth_l1, huber, bce, bce_with_logits, with numbers as in "                    \
	 "cross_entropy(output=0, label_smoothing=0.1)",                                           \
	 false},                                                                                   \
		{"--group TEXT",                                                                   \
		 "parameters with other numbers: '*.bias,*norm*: weight_decay=0' (repeatable; "    \
		 "the first that names a parameter has it)",                                       \
		 false},                                                                           \
		{"--trainable LIST",                                                               \
		 "patterns of the parameters that are trained (repeatable; default: those that "   \
		 "require gradients in the file); the others are constants",                       \
		 false},                                                                           \
		{"--clip-norm X", "limit the norm of all gradients", false},                       \
		{"--clip-value X", "limit each element of gradients", false},                      \
		{"--ema X",                                                                        \
		 "evaluate with averages of parameters, of which X stays at each update: 0.999",   \
		 false},                                                                           \
		{"--loss-scale TEXT",                                                              \
		 "of --precision f16: dynamic(begin=65536, growth=2, backoff=0.5, every=2000), "   \
		 "as torch.amp.GradScaler",                                                        \
		 false},                                                                           \
	{                                                                                          \
		"--eval-model FILE",                                                               \
			"the model exported in evaluation mode, if it cannot be made of MODEL",    \
			false                                                                      \
	}

/* Whether an option of the StepArgs is given besides the optimiser; returns its name, or NULL. */
const char *step_option_given(const StepArgs *);
/* Returns the model that trains (weft_train) of a model file, loaded as the LoadArgs say. test:
 * with a third entry. Returns NULL after an error, whose message is printed, or recorded in the
 * Weft: call fail_messages. */
WeftGraph *load_step(Weft *, const char *path, const StepArgs *, const LoadArgs *, bool test);

#endif
