/* Private to the calls of compiled models: a Function, and the memory of a call in progress. */
#ifndef WEFT_PYTHON_FUNCTION_H
#define WEFT_PYTHON_FUNCTION_H

#include "_weft.h"

/* The memory of an input. */
typedef struct {
	uintptr_t first, end;
	uint32_t input;
} Range;

/* The memory of one call besides its arguments. A Function keeps those of finished calls, so that
 * as many exist as calls were in progress at the same time. */
typedef struct CallRoom {
	struct CallRoom *next;
	WeftSizes *sizes;
	void *work;
	uint64_t work_bytes;
	PyObject **given, **made; /* by input; by output */
	WeftTensor *in, *out;
	View *in_view, *out_view;
	uint32_t nin, nout; /* of the first so many views some are open */
	int64_t *shape;     /* of outputs whose extents depend on data */
	double *spent;      /* in a profile: seconds by kernel call */
	Range *range;       /* of update: the memory of the inputs, in the order of the last call */
	bool *shared;       /* of update: by input: others have parts of its memory */
	struct CallRoom *running; /* the next call in progress */
	int32_t cancel;           /* WeftContext.cancel; set by other threads */
} CallRoom;

typedef struct {
	PyObject_HEAD Instance *instance;
	const WeftModel *model;
	const WeftEntry *entry;
	uint32_t number;
	int32_t threads;                 /* 0: the number of processors */
	int64_t took;                    /* ns of the last call */
	double timeout;                  /* seconds that a call may take; 0: any */
	unsigned long long memory_limit; /* WeftContext.memory_limit */
	PyObject *comm;    /* a Comm: WeftContext.comm; NULL: this process is alone */
	PyObject *record;  /* makes the result of a call of the tuple of several results; NULL: the
			      tuple is the result */
	CallRoom *running; /* calls in progress; changed under the interpreter lock */
	PyObject **name;   /* of the inputs, interned */
	PyObject *like;    /* outputs of calls without a tensor are of its class; NULL: NumPy
			      arrays */
	CallRoom *spare;
	double *spent; /* in a profile: seconds by kernel call; NULL: not profiled */
	uint64_t runs;
} Function;

/* Whether calls are measured: a profile is in progress. */
bool profile_is_on(void);
/* Begins a measured call: adds the function to the profile, and makes memory for the times. Returns
 * -1 with an exception. */
int profile_begin_call(Function *, CallRoom *);
/* Adds the times of the call to those of the function. The profile may have ended meanwhile. */
void profile_end_call(Function *, const CallRoom *);
/* Implements WeftContext.profile of a measured call; user: CallRoom.spent. */
void profile_spend(void *user, uint32_t call, double seconds);
/* Adds profile_begin and profile_end to the module. Returns -1 with an exception. */
int profile_setup(PyObject *module);

#endif
