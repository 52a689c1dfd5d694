/* Calling a compiled model from tests. */
#ifndef WEFT_TESTS_HELP_MODEL_H
#define WEFT_TESTS_HELP_MODEL_H

#include "driver/api/driver_priv.h"

typedef struct {
	void *object;
	const WeftModel *model;
	WeftInstance *instance;
	WeftStatus status; /* of the call that failed */
} Model;

/* Compile to a temporary file and open it. False after ctx_error. */
bool model_open(Model *, Weft *, const WeftGraph *, const WeftOptions *);
/* Compile into this process. */
bool model_open_jit(Model *, Weft *, const WeftGraph *, const WeftOptions *);
/* The same with its loop IR interpreted. */
bool model_open_loops(Model *, Weft *, const WeftGraph *, const WeftOptions *);
/* One call with that many threads; outputs are allocated in the arena. Not WEFT_OK: see status.
 * Memory around outputs and workspace is checked: writing there gives WEFT_ERR_MEMORY. */
int model_run(Model *, const Tensor *in, uint32_t nin, Tensor *out, int32_t nthreads, Arena *);
/* The call that failed was too much work, or too much memory, for the interpreter of loop IR:
 * nothing is known to be wrong. */
bool model_gave_up(const Model *);
/* The same where outputs take the memory of the inputs that they replace, if they may. */
int model_run_in_place(Model *, const Tensor *in, uint32_t nin, Tensor *out, int32_t nthreads, Arena *);
void model_close(Model *);

#endif
