/* The kinds of refusals that users meet first, each with a number and an explanation. */
#ifndef WEFT_BASE_REFUSAL_H
#define WEFT_BASE_REFUSAL_H

/* The number of a kind is its place here: W0001, W0002, ... Kinds are added at the end, and none is
 * removed. */
typedef enum {
	REFUSAL_NONE,
	REFUSAL_OPERATOR, /* no such operator, or not supported */
	REFUSAL_DTYPE,
	REFUSAL_FILE,      /* damaged, or no file of its kind */
	REFUSAL_GUARD,     /* a condition on inputs that cannot be checked */
	REFUSAL_TYPES,     /* operands that do not fit */
	REFUSAL_DATA_SIZE, /* a number depends on data where a constant is needed */
	REFUSAL_TARGET,
	REFUSAL_INPUT,   /* of a call: dtype, shape, a violated guard, a tensor that is missing */
	REFUSAL_CHECK,   /* of a call: a check inside of the model */
	REFUSAL_PATH,    /* a file cannot be opened or written */
	REFUSAL_MACHINE, /* compiled code of another machine */
	REFUSAL_TOOL,    /* a program or library is missing, or fails */
	REFUSAL_DERIVATIVE,
	REFUSAL_VERSION, /* a file of a version that is not read */
	REFUSAL_FORM,    /* a part of a model file that is not read */
	NREFUSAL
} RefusalKind;

typedef struct {
	const char *id, *title; /* "W0001" */
	const char *text;       /* what it means, why, and what to do; lines with breaks */
} RefusalInfo;

/* Returns what is known of a kind; NULL for REFUSAL_NONE and what is out of range. */
const RefusalInfo *refusal_info(unsigned kind);

#endif
