/* The state of an instance. Only models that have state or replaceable weights carry this. */
#include "instance_priv.h"

#include <stdlib.h>
#include <string.h>

/* ---- state ---- */

/* The tensor is one for state k. */
SMALL static int check_state(WeftInstance *in, uint32_t k, const WeftTensor *t, WeftStatus *status)
{
	int64_t dim[64];
	status_clear(status);
	if (!in || !t)
		return weft_fail(status, WEFT_ERR_ARGUMENT, "state: no %s given",
				 in ? "tensor" : "instance");
	if (k >= in->model->nstate)
		return weft_fail(status, WEFT_ERR_ARGUMENT, "state: no state %u, the model has %u",
				 (unsigned)k, (unsigned)in->model->nstate);
	const WeftTensorInfo *s = &in->model->state[k];
	if (t->device.type != WEFT_CPU && !device_of(in))
		return weft_fail(status, WEFT_ERR_INPUT,
				 "state %s is not in the processor's memory", s->name);
#ifdef WEFT_DEVICES
	if (in->driver)
		TRY(device_check(in->driver, "state", s->name, t, status));
#endif
	for (uint32_t d = 0; d < s->rank; d++)
		dim[d] = s->dim[d].value;
	return check_tensor(&(Expected){"state", s->name, s->dtype, s->rank, dim}, t, status);
}

/* Before the first replacement in a process, calls of this process use the set that is in use now.
 * Other sets are of calls that a fork has left behind. Their memory is not freed, because the
 * thread that was freeing it may be among those. */
SMALL static void forget_calls(Current *c, _Atomic int *settled)
{
	if (atomic_exchange(settled, 1))
		return;
	for (uint32_t k = 0; k < SETS; k++)
		if (k != atomic_load(&c->now) % SETS) {
			atomic_store(&c->set[k].balance, 0);
			atomic_store(&c->set[k].what, NULL);
		}
}

SMALL int current_replace(WeftInstance *in, Current *c, void *with,
			  void (*drop)(WeftInstance *, void *), WeftStatus *status)
{
	uint32_t k = 0;
	forget_calls(c,
		     c == &in->weights ? &in->calls->settled_weights : &in->calls->settled_state);
	while (k < SETS && atomic_load_explicit(&c->set[k].what, memory_order_acquire))
		k++;
	if (k == SETS)
		return weft_fail(status, WEFT_ERR_BUSY,
				 "calls that began long ago use what was replaced since");
	atomic_store(&c->drop, drop);
	atomic_store(&c->set[k].balance, 0);
	atomic_store(&c->set[k].what, with);
	const uint64_t before = atomic_exchange(&c->now, k);
	const int64_t begun = (int64_t)(before / SETS);
	if (atomic_fetch_add(&c->set[before % SETS].balance, begun) + begun)
		return WEFT_OK; /* somebody still uses it, and drops it */
	drop(in, current_at(c, before % SETS));
	atomic_store_explicit(&c->set[before % SETS].what, NULL, memory_order_release);
	return WEFT_OK;
}

static void drop_state(WeftInstance *in, void *state)
{
	memory_free(in, state);
}

/* Bytes of the state from there, or all that it is first. */
SMALL static void change(WeftInstance *in, char *state, uint64_t offset, const WeftTensor *from)
{
	const uint32_t w = current_begin(&in->weights);
	if (!from)
		state_begin(in, state, current_at(&in->weights, w));
	else if (tensor_bytes(from))
		memory_copy(in, state + offset, data_of(from), tensor_bytes(from),
			    way_of(from, WEFT_TO_DEVICE));
	current_end(in, &in->weights, w);
}

/* While others read it: of a copy. */
SMALL static int change_copy(WeftInstance *in, uint64_t offset, const WeftTensor *from,
			     WeftStatus *status)
{
	if (atomic_exchange(&in->calls->replaces_state, 1))
		return weft_fail(status, WEFT_ERR_BUSY, "another call replaces the state");
	char *state = memory_alloc(in, in->model->state_bytes);
	int code = state ? WEFT_OK
			 : weft_fail(status, WEFT_ERR_MEMORY, "no memory for a copy of the state");
	if (state) {
		memory_copy(in, state, current_now(&in->state), in->model->state_bytes,
			    WEFT_ON_DEVICE);
		change(in, state, offset, from);
		code = memory_wait(in, WEFT_OK, status);
		if (code == WEFT_OK)
			code = current_replace(in, &in->state, state, drop_state, status);
		if (code != WEFT_OK)
			memory_free(in, state);
	}
	atomic_store(&in->calls->replaces_state, 0);
	return code;
}

/* In place where nobody uses it; a call that writes state is not disturbed. */
SMALL static int change_state(WeftInstance *in, uint64_t offset, const WeftTensor *from,
			      WeftStatus *status)
{
	StateUse as = STATE_CHANGE;
	int code = WEFT_OK;
	if (from && atomic_load(&in->writing) && atomic_load(&in->calls->users) >= 0)
		return weft_fail(status, WEFT_ERR_BUSY, "%s", STATE_TORN);
	if (instance_enter(in, as, NULL) != WEFT_OK) {
		as = STATE_READ;
		TRY(instance_enter(in, as, status));
	}
	if (as == STATE_CHANGE)
		change(in, current_now(&in->state), offset, from);
	else
		code = change_copy(in, offset, from, status);
	code = memory_wait(in, code, status);
	instance_leave(in, as);
	return code;
}

SMALL int weft_rt_state_get(WeftInstance *in, uint32_t k, const WeftTensor *to, WeftStatus *status)
{
	TRY(check_state(in, k, to, status));
	TRY(instance_enter(in, STATE_READ, status));
	const uint32_t s = current_begin(&in->state);
	if (tensor_bytes(to))
		memory_copy(in, data_of(to),
			    (const char *)current_at(&in->state, s) + in->model->state[k].offset,
			    tensor_bytes(to), way_of(to, WEFT_TO_HOST));
	int code = memory_wait(in, WEFT_OK, status);
	current_end(in, &in->state, s);
	instance_leave(in, STATE_READ);
	return code;
}

SMALL int weft_rt_state_set(WeftInstance *in, uint32_t k, const WeftTensor *from,
			    WeftStatus *status)
{
	TRY(check_state(in, k, from, status));
	return change_state(in, in->model->state[k].offset, from, status);
}

SMALL int weft_rt_state_reset(WeftInstance *in, WeftStatus *status)
{
	status_clear(status);
	if (!in)
		return weft_fail(status, WEFT_ERR_ARGUMENT, "state_reset: no instance given");
	return in->model->state_bytes ? change_state(in, 0, NULL, status) : WEFT_OK;
}
