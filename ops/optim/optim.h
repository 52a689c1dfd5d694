/* Optimisers: what a step makes of parameters, gradients and states. Each is one block of
 * ops/optim/optimizers.c and nothing else; the trace API (weft_optimizer_step) and Python's
 * weft.train_step ask the table.
 *
 *   {.name = "adamw", .torch = "AdamW",
 *    .scalars = "lr = 0.001; beta1 = 0.9 : betas.0; weight_decay = 0.01; ...",
 *    .flags = "amsgrad; maximize",
 *    .states = "step[] = 0; exp_avg = 0; max_exp_avg_sq = 0 if amsgrad; ...",
 *    .before = "step = step + 1; w1 = 1 - beta1; ...",
 *    .update = "g = -g if maximize; exp_avg = lerp.Tensor(exp_avg, g, w1); p = p - ..."}
 *
 *   list      = item { ";" item }
 *   item      = name [ "[]" ] [ "=" value ] [ ":" key ] [ condition ]
 *   text      = statement { ";" statement }
 *   statement = name "=" expression [ condition ]
 *   condition = " if " [ "not " ] flag { " and " [ "not " ] flag }
 *
 * Expressions are those of .expand (ops/rules/expand.c). A statement, or a state, with a condition
 * is there only if the condition holds. `key` is the name in PyTorch's param_groups or state where
 * that is another one: "betas.0" is element 0 of betas.
 *
 * Scalars are numbers, which may change from step to step; `value` is PyTorch's default. Flags are
 * constants. A flag whose key is a scalar is set where this scalar is not 0; another one as `value`
 * says: 1, or not at all.
 *
 * A state has the shape and dtype of its parameter, and begins as `value` says: a number, or the
 * name of a scalar. A state with "[]" is one number for each parameter, such as the count of steps.
 * The key "-" says that PyTorch has no such state: of a parameter with other states in PyTorch's it
 * is 1.
 *
 * .before computes with scalars and states with "[]", in f64 as Python does, once for all
 * parameters; what it assigns to a state is the state's new value. .update computes with these, p,
 * g and the other states, element by element, in the dtype of p, or in f32 if that is narrower.
 * Its new values of p and of states are the result.
 *
 * .update of matrices also knows aspect, sqrt(max(1, rows/columns)), ratio, sqrt(rows/columns), and
 * width, sqrt(max(rows, columns)), and the flag `tall`: more rows than columns. */
#ifndef WEFT_OPS_OPTIM_OPTIM_H
#define WEFT_OPS_OPTIM_OPTIM_H

#include "ir/build/build.h"

typedef struct {
	const char *name, *torch; /* torch: the class in torch.optim; NULL: PyTorch has none */
	const char *scalars, *flags, *states;
	const char *before, *update;
	bool matrix; /* parameters have two dimensions; .update is no function of elements */
	const char *rows; /* a list: with these scalars 0, rows without a gradient stay as they are,
			     with their states; NULL: they never do */
	bool lazy;        /* only rows with a gradient are updated, by definition */
} Optimizer;

/* An item of a list of a block. */
typedef struct {
	const char *name, *key; /* key: the name, where the item has none */
	const char *value;      /* "" if there is none */
	const char *condition;  /* "amsgrad and not maximize"; "" if there is none */
	bool number;            /* "[]" */
} OptimItem;

enum { OPTIM_MAX_ITEMS = 16 };

/* The items of a list. */
typedef struct {
	uint32_t n;
	OptimItem item[OPTIM_MAX_ITEMS];
} OptimList;

/* Returns block k, from 0 on; NULL if there are not so many. */
const Optimizer *optim_at(uint32_t k);
/* Returns the block of that name, or NULL. */
const Optimizer *optim_find(const char *name);
/* Reads a list. Texts of the items are in the arena. */
OptimList optim_list(Arena *, const char *text);
/* Returns the number of the item of that name, or -1. */
int optim_item(const OptimList *, const char *name);
/* Whether a flag that nobody sets is set: that of a scalar if the scalar is not 0 (is[k]: scalar k
 * is not 0, or not known), another one as its block says. */
bool optim_flag(const OptimList *scalars, const OptimItem *flag, const bool *is);
/* Whether a condition holds; flag[k] is flag k of the list. A name that is no flag does not
 * hold. */
bool optim_holds(const OptimList *flags, const bool *flag, const char *condition);

/* One step of n parameters. state[]: of each state that is there under the flags, in order: one
 * for each parameter, or of a state with "[]" one value f[n], or f[1] for all parameters. */
typedef struct {
	const Optimizer *of;
	const bool *flag;   /* by flag of the block */
	const Node *scalar; /* by scalar of the block; no node: number[k] */
	const double *number;
	uint32_t n;
	const Node *p, *g, *state;
	uint32_t nstate;
} OptimStep;

/* Adds a step. Sets out[0..n) to the new parameters, and out[n..n + nstate) to the new states, each
 * of the type that it has. Returns false after b_error. */
bool optim_step(Build *, const OptimStep *, Node *out);

/* A loss, or a schedule of a scalar: a value that is computed from others and from numbers. */
typedef struct {
	const char *name;
	const char *in;      /* the names of the values that `value` reads, with blanks between */
	const char *numbers; /* a list; one without a value must be given */
	const char *value;   /* in the language of .expand */
	bool classes; /* of a loss: the label has numbers of classes, i64, in x's shape without
			 the dimension of classes, `dim`; else it has x's type */
} Formula;

/* Returns loss k, from 0 on; NULL if there are not so many. Its values are x and label. */
const Formula *loss_at(uint32_t k);
/* Returns schedule k, from 0 on; NULL if there are not so many. Its value is t, an f64 without
 * dimensions: the number of steps before this one. */
const Formula *schedule_at(uint32_t k);
/* Adds the value of a formula, of in[] by its `in` and number[] by its `numbers`. Returns no node
 * after an error. */
Node formula_value(Build *, const Formula *, const Node *in, const double *number);

#endif
