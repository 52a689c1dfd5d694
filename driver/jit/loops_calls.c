/* The table's functions: the runtime checks and binds tensors as for a compiled model, then the
 * interpreter runs. */
#include <stddef.h>

#include "driver/jit/loops_priv.h"
#include "runtime/instance_priv.h"

/* What sizes_fn finds its entry by: the status is all that it is given. */
typedef struct {
	WeftStatus status;
	LoopEntry *entry;
} SizesCall;

static int sizes_fn(const int64_t *extent, int64_t *slot, WeftStatus *status)
{
	char message[MESSAGE];
	SizesCall *call = (SizesCall *)(void *)status;
	int code = loops_sizes(call->entry, extent, slot, message);
	return code == WEFT_OK ? code : weft_fail(status, code, "%s", message);
}

static bool room(void *region, uint32_t k, const int64_t *p)
{
	return !weft_room(region, k, p);
}

static int run_fn(WeftRegion *region, void *const *buf, const int64_t *slot)
{
	char message[MESSAGE];
	/* the table is the first member of a LoopEntry */
	LoopEntry *entry = (LoopEntry *)(void *)(uintptr_t)region->entry;
	const WeftOpContext context = weft_op_context(region->context);
	int code = loops_run(entry, buf, slot, room, region, &context, message);
	return code == WEFT_OK         ? 0
	       : code == LOOPS_NO_ROOM ? 1
				       : weft_region_fail(region, "%s", message);
}

static int sizes(const WeftInstance *in, uint32_t entry, const WeftTensor *inputs, WeftSizes *out,
		 WeftStatus *status)
{
	/* the model is the first member of a LoopModel */
	const LoopModel *m = in ? (const LoopModel *)(const void *)in->model : NULL;
	SizesCall call = {.entry = m && entry < m->model.nentry ? &m->entry[entry] : NULL};
	int code = weft_rt_sizes(in, entry, inputs, out, &call.status);
	if (status)
		*status = call.status;
	return code;
}

static int run(WeftInstance *in, const WeftSizes *sizes, const WeftTensor *inputs,
	       WeftTensor *outputs, void *workspace, const WeftContext *given, WeftStatus *status)
{
	WeftContext one;
	if (!take_struct(&one, sizeof one, given, given ? given->size : 0))
		/* which says so */
		return weft_rt_run(in, sizes, inputs, outputs, workspace, given, status);
	one.size = sizeof one;
	one.nthreads = 1;
	one.threads = NULL;
	one.profile = NULL;
	return weft_rt_run_ranks(in, sizes, inputs, outputs, workspace, &one, status);
}

/* Sets weights with one thread: the interpreter belongs to one thread at a time. */
static int set_weights(WeftInstance *in, uint32_t n, const char *const *names,
		       const WeftTensor *values, const WeftContext *given, WeftStatus *status)
{
	WeftContext one;
	if (!take_struct(&one, sizeof one, given, given ? given->size : 0))
		return weft_rt_set_weights(in, n, names, values, given, status); /* which says so */
	one.size = sizeof one;
	one.nthreads = 1;
	one.threads = NULL;
	return weft_rt_set_weights(in, n, names, values, &one, status);
}

void loops_functions(LoopModel *m)
{
	const bool variable = m->model.nstate || m->model.replaceable;
	for (uint32_t k = 0; k < m->model.nentry; k++) {
		m->entry[k].table.sizes_fn = sizes_fn;
		m->entry[k].table.run_fn = run_fn;
	}
	m->model.open = weft_rt_open;
	m->model.close = weft_rt_close;
	m->model.sizes = sizes;
	m->model.run = run;
	m->model.threads_new = weft_rt_threads_new;
	m->model.threads_free = weft_rt_threads_free;
	m->model.clone = weft_rt_clone;
	m->model.get_weights = variable ? weft_rt_get_weights : weft_rt_no_weights;
	m->model.set_weights = variable ? set_weights : weft_rt_no_weights;
	m->model.state_get = variable ? weft_rt_state_get : weft_rt_no_state;
	m->model.state_set = variable ? weft_rt_state_set : weft_rt_no_state;
	m->model.state_reset = variable ? weft_rt_state_reset : weft_rt_no_reset;
}
