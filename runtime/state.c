/* The state of an instance. Only models that have state or replaceable weights carry this. */
#include "instance_priv.h"

#include <string.h>

int same_shape(const WeftTensor *t, WeftDType dtype, uint32_t rank, const int64_t *dim)
{
	int same = t->ndim == (int32_t)rank && t->dtype.code == dtype.code && t->dtype.bits == dtype.bits &&
		   t->device.type == WEFT_CPU;
	for (uint32_t k = 0; same && k < rank; k++)
		same = t->shape[k] == dim[k];
	return same && tensor_row_major(t) && (t->data || tensor_bytes(t) == 0);
}

static void *data_of(const WeftTensor *t)
{
	return (char *)t->data + t->byte_offset;
}

/* ---- state ---- */

/* The tensor is one for state k. */
static int check_state(WeftInstance *in, uint32_t k, const WeftTensor *t, WeftStatus *status)
{
	int64_t dim[64];
	status_clear(status);
	if (!in || !t || k >= in->model->nstate)
		return weft_fail(status, WEFT_ERR_ARGUMENT, "state: a null pointer or no such state");
	const WeftTensorInfo *s = &in->model->state[k];
	for (uint32_t d = 0; d < s->rank; d++)
		dim[d] = s->dim[d].value;
	if (!same_shape(t, s->dtype, s->rank, dim))
		return weft_fail(status, WEFT_ERR_INPUT, "state %s: other dtype, shape or layout than the model's", s->name);
	return WEFT_OK;
}

int weft_rt_state_get(WeftInstance *in, uint32_t k, const WeftTensor *to, WeftStatus *status)
{
	TRY(check_state(in, k, to, status));
	TRY(instance_enter(in, false, status));
	if (tensor_bytes(to))
		memcpy(data_of(to), in->state + in->model->state[k].offset, (size_t)tensor_bytes(to));
	instance_leave(in, false);
	return WEFT_OK;
}

int weft_rt_state_set(WeftInstance *in, uint32_t k, const WeftTensor *from, WeftStatus *status)
{
	TRY(check_state(in, k, from, status));
	TRY(instance_enter(in, true, status));
	if (tensor_bytes(from))
		memcpy(in->state + in->model->state[k].offset, data_of(from), (size_t)tensor_bytes(from));
	instance_leave(in, true);
	return WEFT_OK;
}

int weft_rt_state_reset(WeftInstance *in, WeftStatus *status)
{
	status_clear(status);
	if (!in)
		return weft_fail(status, WEFT_ERR_ARGUMENT, "state_reset: a null pointer");
	TRY(instance_enter(in, true, status));
	if (in->state)
		state_begin(in);
	instance_leave(in, true);
	return WEFT_OK;
}
