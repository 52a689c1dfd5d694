#include "tools/train/entry.h"

#include <stdlib.h>

bool entry_find(EntryCall *c, const Runner *r, const char *name)
{
	*c = (EntryCall){0};
	for (uint32_t k = 0; k < r->model->nentry; k++)
		if (!strcmp(weft_entry(r->model, k)->name, name))
			*c = (EntryCall){.r = r, .entry = weft_entry(r->model, k), .which = k};
	return c->entry;
}

const WeftTensorInfo *entry_input(const EntryCall *c, uint32_t k)
{
	return tensor_info(c->r->model, c->entry->input, k);
}

int entry_output(const EntryCall *c, const char *name)
{
	for (uint32_t k = 0; k < c->entry->noutput; k++)
		if (!strcmp(tensor_info(c->r->model, c->entry->output, k)->name, name))
			return (int)k;
	return -1;
}

void entry_reshape(EntryCall *c)
{
	c->ready = false;
}

static void free_results(EntryCall *c)
{
	for (uint32_t k = 0; c->result && k < c->entry->noutput; k++) {
		free(c->result[k].data);
		free(c->result[k].shape);
	}
	free(c->result);
	c->result = NULL;
}

static bool alloc_result(EntryCall *c, uint32_t k)
{
	const WeftModel *m = c->r->model;
	const WeftTensorInfo *info = tensor_info(m, c->entry->output, k);
	const int64_t *shape = weft_output_shape(m, c->entry, c->sizes, k);
	WeftTensor *t = &c->result[k];
	*t = (WeftTensor){
		.device = {WEFT_CPU, 0}, .ndim = (int32_t)info->rank, .dtype = info->dtype};
	t->shape = malloc((info->rank + 1) * sizeof *t->shape);
	if (!t->shape)
		return false;
	memcpy(t->shape, shape, info->rank * sizeof *shape);
	for (uint32_t d = 0; d < info->rank; d++)
		if (shape[d] < 0)
			return fail("%s: the size of output %s depends on data, which a step "
				    "cannot "
				    "have",
				    c->r->path, info->name),
			       false;
	t->data = aligned_alloc(64, (bytes_of(t) + 127) / 64 * 64);
	return t->data;
}

static bool prepare(EntryCall *c, const WeftTensor *inputs)
{
	WeftStatus status = {0};
	free_results(c);
	if (!c->sizes)
		c->sizes = malloc(c->entry->sizes_bytes);
	c->result = calloc(c->entry->noutput + 1, sizeof *c->result);
	if (!c->sizes || !c->result)
		return fail("out of memory"), false;
	if (c->r->model->sizes(c->r->instance, c->which, inputs, c->sizes, &status) != WEFT_OK)
		return fail_status(c->r->path, status.code, status.message), false;
	for (uint32_t k = 0; k < c->entry->noutput; k++)
		if (!alloc_result(c, k))
			return fail("no memory for the outputs of a step"), false;
	if (c->sizes->workspace_bytes > c->work_bytes || !c->work) {
		free(c->work);
		c->work_bytes = c->sizes->workspace_bytes;
		c->work = aligned_alloc(64, (c->work_bytes + 127) / 64 * 64);
	}
	return c->work || (fail("no memory for the workspace"), false);
}

bool entry_call(EntryCall *c, const WeftTensor *inputs, int threads)
{
	WeftStatus status = {0};
	const WeftContext how = {.size = sizeof how, .nthreads = threads};
	if (!c->ready && !prepare(c, inputs))
		return false;
	c->ready = true;
	if (c->r->model->run(c->r->instance, c->sizes, inputs, c->result, c->work, &how, &status) !=
	    WEFT_OK)
		return fail_status(c->r->path, status.code, status.message), false;
	return true;
}

void entry_close(EntryCall *c)
{
	free_results(c);
	free(c->sizes);
	free(c->work);
	*c = (EntryCall){0};
}
