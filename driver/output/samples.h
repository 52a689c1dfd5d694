/* Private to the driver: calls of a graph on tensors whose first dimension counts samples, by code
 * in this process, or by the reference interpreter where no back end makes that. Functions record
 * errors in the Weft. */
#ifndef WEFT_DRIVER_OUTPUT_SAMPLES_H
#define WEFT_DRIVER_OUTPUT_SAMPLES_H

#include "driver/api/driver_priv.h"
#include "weft_call.h"

/* The inputs of all calls. */
typedef struct {
	Weft *w;
	const WeftTensorInfo *input;
	uint32_t ninput, ncall;
	const WeftTensor **from; /* by input: the tensor with all samples */
	bool *apart;             /* by input: a sample has one dimension less than the tensor */
	int64_t *step;           /* by input: how many of dimension 0 a call takes */
} Samples;

/* A graph that is ready to be called. */
typedef struct {
	Weft *w;
	WeftGraph *g;
	WeftCall call;   /* model NULL: by the interpreter */
	WeftTensor *out; /* of the last call: outputs, valid until the next, or callee_release */
	uint32_t nout;
} Callee;

/* Finds the inputs of the graph in a list, by their names or as x.<i>. An input of as many
 * dimensions as its tensor takes as many samples in a call as its first extent says, 16 at most if
 * that is a symbol, which all calls but the last one take; an input of one dimension less takes
 * one. Returns false after an error: an input is missing, or inputs have different numbers of
 * samples, or none. */
bool samples_open(Weft *, const WeftGraph *, const WeftTensors *, Samples *);
/* Prepares calls of a graph. jobs: threads of the compiler. Returns false after an error. */
bool callee_open(Weft *, WeftGraph *, uint32_t jobs, Callee *);
/* Runs call k < s->ncall, with the state as it is at first. What the interpreter gives stays until
 * callee_release. Returns false after an error. */
bool callee_run(Callee *, const Samples *, uint32_t k);
/* Frees what the interpreter has given to callees of the Weft so far. */
void callee_release(const Callee *);
/* Returns the index in Callee.out of the output of that name; -1 if there is none. */
int32_t callee_output(const Callee *, const char *name);
/* Frees the outputs and the instance. Does nothing to zeros. */
void callee_close(Callee *);

#endif
