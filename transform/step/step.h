/* A step of training as one graph: the loss of a model, its gradients, and an optimiser's new
 * values of parameters, which become state. Nothing below the graph knows that it is a step. */
#ifndef WEFT_TRANSFORM_STEP_STEP_H
#define WEFT_TRANSFORM_STEP_STEP_H

#include "ops/optim/optim.h"

/* What is asked for, as texts; the members are those of WeftTrainOptions (include/weft.h). */
typedef struct {
	const char *optimizer, *loss, *clip_norm, *clip_value, *ema, *loss_scale;
	uint32_t ngroup, ntrainable;
	const char *const *group, *const *trainable;
	bool outputs, skips;
} StepTexts;

/* A number of a step. */
typedef struct {
	double number;
	const char *input; /* the name of the input that has the number; NULL: none has */
	const Formula
		*schedule; /* the number is a function of the count of steps; NULL: it is not */
	double argument[OPTIM_MAX_ITEMS]; /* of the schedule */
} StepNumber;

/* Whether only those rows of a parameter are updated that a step reads. */
typedef enum {
	ROWS_ALL,
	ROWS_MAY, /* if the step reads it by rows alone, as the file says of embeddings */
	ROWS_MUST
} RowsAsked;

/* Parameters that are updated by one rule. */
typedef struct {
	uint32_t number;  /* in names of state */
	const char *text; /* of StepTexts.group; NULL: the group of the others */
	const Optimizer *of;
	StepNumber scalar[OPTIM_MAX_ITEMS]; /* by scalar of the optimiser */
	bool flag[OPTIM_MAX_ITEMS];         /* by flag of the optimiser */
	uint32_t nparam;
	ConstId *param;        /* in the order of the file */
	bool sparse;           /* `sparse` is set */
	const RowsAsked *rows; /* by ConstId */
} StepGroup;

/* The loss: of the model's output number `output`. */
typedef struct {
	uint32_t output;
	const Formula *of;              /* NULL: the output is the loss */
	double number[OPTIM_MAX_ITEMS]; /* by number of the formula */
} StepLoss;

typedef struct {
	StepLoss loss;
	uint32_t ngroup;
	StepGroup *group;                         /* none is empty */
	const StepNumber *clip_norm, *clip_value; /* NULL: no clipping */
	const StepNumber *ema; /* how much of an average stays; NULL: there are none */
	bool outputs;          /* the step gives the model's outputs, too */
	bool skips;  /* a step whose loss or gradient is not finite updates nothing */
	bool scaled; /* the loss has a scale, which changes; `skips` is set */
	double scale[OPTIM_MAX_ITEMS]; /* its numbers (skip_scale) */
} Step;

/* Reads the texts, and chooses the parameters of the graph that they are about. Returns false after
 * an error. */
bool transform_step_read(const Graph *, const StepTexts *, Step *);
/* Sets *step to the graph of a step of the graph `g`, which is changed. Inputs: those of g, "label"
 * if the loss takes one, then numbers that are inputs, f64[]. Outputs: "loss", with Step.outputs
 * the model's, "grad_norm" with clip_norm, "skipped" with skips. The parameters become state;
 * further state is that of the optimiser, "state.PARAMETER.KEY" and "optimizer.GROUP.NAME", the
 * count of steps "weft.step" if a number is a function of it, and with a scale of the loss
 * "weft.loss_scale" and "weft.good_steps". A parameter that has no influence on the loss stays a
 * constant, with a note.
 * applies: NULL, or set to a second graph: *step then adds the gradients times the input "weight",
 * f64[], to the state "grad.PARAMETER" and updates nothing, and *applies, whose inputs are numbers,
 * updates the parameters by these sums and sets them to 0. Returns false after an error. */
bool transform_step(Graph *g, const Step *, Graph **step, Graph **applies);
/* Gives the constants of a graph that evaluates the names of the averages "ema.NAME" that the graph
 * of a step has of them. */
void transform_step_averages(Graph *evaluates, const Graph *step);
/* Makes the graph, which evaluates, the entry beside a step: its outputs get the names "output" or
 * "output.K" if `rename`; with a loss, an output "loss" comes before them, and an input "label"
 * behind the inputs if the loss takes one. Returns false after an error. */
bool transform_step_evaluation(Graph *, const StepLoss *, bool rename);

#endif
