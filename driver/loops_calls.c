/* The table's functions: the runtime checks and binds tensors as for a compiled model, then the interpreter runs. */
#include <stddef.h>

#include "driver/loops_priv.h"
#include "runtime/instance_priv.h"

/* What sizes_fn finds its model by: the status is all that it is given. */
typedef struct {
	WeftStatus status;
	LoopModel *model;
} SizesCall;

static int sizes_fn(const int64_t *extent, int64_t *slot, WeftStatus *status)
{
	char message[MESSAGE];
	SizesCall *call = (SizesCall *)(void *)status;
	int code = loops_sizes(call->model, extent, slot, message);
	return code == WEFT_OK ? code : weft_fail(status, code, "%s", message);
}

static int run_fn(WeftRegion *region, void *const *buf, const int64_t *slot)
{
	char message[MESSAGE];
	const char *entry = (const char *)region->shared->entry;
	LoopModel *m = (LoopModel *)(void *)(uintptr_t)(entry - offsetof(LoopModel, entry));
	return loops_run(m, buf, slot, message) == WEFT_OK ? 0 : weft_region_fail(region, "%s", message);
}

static int sizes(const WeftInstance *in, uint32_t entry, const WeftTensor *inputs, WeftSizes *out, WeftStatus *status)
{
	/* the model is the first member of a LoopModel */
	SizesCall call = {.model = in ? (LoopModel *)(void *)(uintptr_t)in->model : NULL};
	int code = weft_rt_sizes(in, entry, inputs, out, &call.status);
	if (status)
		*status = call.status;
	return code;
}

static int step(WeftInstance *in, const WeftSizes *sizes, const WeftTensor *inputs, const WeftTensor *outputs,
		void *workspace, const WeftContext *ctx, WeftStatus *status)
{
	WeftContext one = {.size = sizeof one, .nthreads = 1};
	if (ctx && ctx->size >= sizeof *ctx)
		one.flags = ctx->flags;
	return weft_rt_step(in, sizes, inputs, outputs, workspace, &one, status);
}

static int run(const WeftInstance *in, const WeftSizes *sizes, const WeftTensor *inputs, const WeftTensor *outputs,
	       void *workspace, const WeftContext *ctx, WeftStatus *status)
{
	return step((WeftInstance *)(uintptr_t)in, sizes, inputs, outputs, workspace, ctx, status);
}

void loops_functions(LoopModel *m)
{
	m->entry.sizes_fn = sizes_fn;
	m->entry.run_fn = run_fn;
	m->entries[0] = &m->entry;
	m->model.entry = m->entries;
	m->model.open = weft_rt_open;
	m->model.close = weft_rt_close;
	m->model.sizes = sizes;
	m->model.run = run;
	m->model.step = step;
	m->model.set_weights = weft_rt_set_weights;
	m->model.threads_new = weft_rt_threads_new;
	m->model.threads_free = weft_rt_threads_free;
}
