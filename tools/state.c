/* The state of a runner: its tensors, from and to files. */
#include <stdlib.h>
#include <string.h>

#include "tool.h"

uint32_t runner_nstate(const Runner *r)
{
	return r->model ? r->model->nstate : r->nstate;
}

const WeftTensorInfo *runner_state(const Runner *r, uint32_t k)
{
	return r->model ? weft_state_info(r->model, k) : &r->state_info[k];
}

/* ---- one tensor ---- */

/* Allocates row-major memory for state k. Returns false after a message. */
static bool alloc_state(const Runner *r, uint32_t k, WeftTensor *t)
{
	const WeftTensorInfo *info = runner_state(r, k);
	*t = (WeftTensor){
		.device = {WEFT_CPU, 0}, .ndim = (int32_t)info->rank, .dtype = info->dtype};
	t->shape = malloc((info->rank + 1) * sizeof *t->shape);
	for (uint32_t d = 0; t->shape && d < info->rank; d++)
		t->shape[d] = tensor_dim(r->model, info, d)->value;
	t->data = t->shape ? malloc(bytes_of(t) + 1) : NULL;
	return t->data || (fail("no memory for state %s", info->name), false);
}

static void free_tensors(WeftTensor *t, uint32_t n)
{
	for (uint32_t k = 0; t && k < n; k++) {
		free(t[k].data);
		free(t[k].shape);
	}
	free(t);
}

static bool move(const Runner *r, uint32_t k, const WeftTensor *t, bool set)
{
	WeftStatus status = {0};
	if (!r->model) {
		const WeftTensor *to = set ? &r->state[k] : t, *from = set ? t : &r->state[k];
		memcpy(to->data, (char *)from->data + from->byte_offset, bytes_of(t));
		return true;
	}
	int code = set ? r->model->state_set(r->instance, k, t, &status)
		       : r->model->state_get(r->instance, k, t, &status);
	return code == WEFT_OK || (fail_status(NULL, code, status.message), false);
}

/* ---- the interpreter's own ---- */

bool runner_begin_state(Runner *r)
{
	r->state_info = weft_states(r->w, r->one, &r->nstate);
	if (!r->state_info)
		return fail_messages(r->w), false;
	r->state = calloc(r->nstate + 1, sizeof *r->state);
	if (!r->state)
		return fail("out of memory"), false;
	for (uint32_t k = 0; k < r->nstate; k++)
		if (!alloc_state(r, k, &r->state[k]))
			return false;
	return weft_first_state(r->w, r->one, r->state) || (fail_messages(r->w), false);
}

void runner_end_state(Runner *r)
{
	free_tensors(r->state, r->nstate);
	r->state = NULL;
}

/* ---- files ---- */

static bool is_like(const WeftTensor *t, const WeftTensor *want)
{
	return !memcmp(&t->dtype, &want->dtype, sizeof t->dtype) && t->ndim == want->ndim &&
	       !memcmp(t->shape, want->shape, (size_t)t->ndim * sizeof *t->shape);
}

/* Whether the name is that of state k, or one of the other ones that the model's file has for
 * it. */
static bool is_named(const Runner *r, uint32_t k, const char *name)
{
	const WeftTensorInfo *info = runner_state(r, k);
	bool knows =
		!r->model || WEFT_HAS(r->model->stride[WEFT_TENSOR_INFO], WeftTensorInfo, aliases);
	const char *at = knows ? info->aliases : NULL, *end;
	if (!strcmp(info->name, name))
		return true;
	for (; at && (end = strchr(at, '\n')); at = end + 1)
		if ((size_t)(end - at) == strlen(name) && !memcmp(at, name, strlen(name)))
			return true;
	return false;
}

static bool is_equal(const WeftTensor *a, const WeftTensor *b)
{
	return is_like(a, b) && !memcmp((char *)a->data + a->byte_offset,
					(char *)b->data + b->byte_offset, bytes_of(a));
}

/* Finds the file's tensor for state k, which may be there under several names; NULL after a
 * message. */
static const WeftTensor *find_state(const Runner *r, const WeftTensors *file, const char *path,
				    uint32_t k)
{
	const WeftTensor *found = NULL;
	const char *as = NULL;
	for (uint32_t i = 0; i < weft_tensors_count(file); i++) {
		const char *name = weft_tensors_name(file, i);
		if (!is_named(r, k, name))
			continue;
		if (found && !is_equal(found, weft_tensors_at(file, i)))
			return fail("%s: %s and %s are one tensor of the model, and have different "
				    "values",
				    path, as, name),
			       NULL;
		found = weft_tensors_at(file, i);
		as = name;
	}
	if (!found)
		fail("%s: no tensor %s, which is state of the model", path,
		     runner_state(r, k)->name);
	return found;
}

static bool load_one(const Runner *r, const WeftTensors *file, const char *path, uint32_t k)
{
	const WeftTensor *t = find_state(r, file, path, k);
	WeftTensor want;
	if (!t)
		return false;
	bool ok = alloc_state(r, k, &want) &&
		  (is_like(t, &want) ||
		   (fail("%s: %s has another dtype or shape than the model's state", path,
			 runner_state(r, k)->name),
		    false));
	free(want.data);
	free(want.shape);
	return ok && move(r, k, t, true);
}

bool runner_get_state(const Runner *r, uint32_t k, const WeftTensor *t)
{
	return move(r, k, t, false);
}

bool runner_load_state(Runner *r, Weft *w, const char *path)
{
	WeftTensors *file = weft_tensors_read(w, path);
	if (!file)
		return fail_messages(w), false;
	for (uint32_t i = 0; i < weft_tensors_count(file); i++) {
		uint32_t k = 0;
		while (k < runner_nstate(r) && !is_named(r, k, weft_tensors_name(file, i)))
			k++;
		if (k == runner_nstate(r))
			return fail("%s: the model has no state %s", path,
				    weft_tensors_name(file, i)),
			       false;
	}
	for (uint32_t k = 0; k < runner_nstate(r); k++)
		if (!load_one(r, file, path, k))
			return false;
	return true;
}

bool runner_save_state(Runner *r, Weft *w, const char *path)
{
	uint32_t n = runner_nstate(r);
	WeftTensor *state = calloc(n + 1, sizeof *state);
	WeftTensors *file = state ? weft_tensors_new(w) : NULL;
	bool ok = file;
	if (!state)
		fail("out of memory");
	else if (!file)
		fail_messages(w);
	for (uint32_t k = 0; ok && k < n; k++)
		ok = alloc_state(r, k, &state[k]) && move(r, k, &state[k], false) &&
		     (weft_tensors_add(w, file, runner_state(r, k)->name, &state[k]) ||
		      (fail_messages(w), false));
	ok = ok && (weft_tensors_write(w, file, path) || (fail_messages(w), false));
	free_tensors(state, n);
	return ok;
}
