/* The state of an instance. Only models that have state or replaceable weights carry this. */
#include "instance_priv.h"

#include <string.h>

int check_tensor(const Expected *x, const WeftTensor *t, WeftStatus *status)
{
	int64_t stride = 1;
	TRY(check_kind(x, t, status));
	for (uint32_t k = 0; k < x->rank; k++)
		if (t->shape[k] != x->dim[k])
			return weft_fail(status, WEFT_ERR_INPUT, "%s %s: dimension %u is %lld, expected %lld", x->role, x->name, (unsigned)k,
					 (long long)t->shape[k], (long long)x->dim[k]);
	for (uint32_t k = x->rank; k-- > 0 && !tensor_row_major(t); stride *= x->dim[k])
		if (t->shape[k] != 1 && t->strides[k] != stride)
			return weft_fail(status, WEFT_ERR_INPUT, "%s %s: the stride of dimension %u is %lld, expected %lld, row-major", x->role,
					 x->name, (unsigned)k, (long long)t->strides[k], (long long)stride);
	return t->data || tensor_bytes(t) == 0 ? WEFT_OK : weft_fail(status, WEFT_ERR_INPUT, "%s %s has no data", x->role, x->name);
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
	return check_tensor(&(Expected){"state", s->name, s->dtype, s->rank, dim}, t, status);
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
