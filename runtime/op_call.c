/* Calling operators of the user. Linkers leave it out of models that have none. */
#include "runtime.h"

#include <stdio.h>

/* Returns the values of the next one. */
static int64_t *fill(WeftTensor *t, const WeftOpTensor *c, void *const *buf, int64_t *value)
{
	*t = (WeftTensor){.device = {WEFT_CPU, 0}, .ndim = c->rank, .dtype = c->dtype, .shape = value};
	value += c->rank;
	t->data = c->buf < 0 ? value : buf[c->buf];
	return c->buf >= 0 ? value : value + (c->rank ? t->shape[0] : 1);
}

int weft_op_call(const WeftFrame *f, const WeftOpCall *c, int64_t *value)
{
	WeftTensor t[c->nin + c->nout + 1];
	WeftStatus told;
	for (uint32_t k = 0; k < c->nin + c->nout; k++)
		value = fill(&t[k], &c->tensor[k], f->buf, value);
	told.code = 0;
	told.message[0] = 0;
	int code = c->fn(t, t + c->nin, *value ? f->buf[c->work] : NULL, (uint64_t)*value, &told);
	if (!code)
		return 0;
	f->failure[0] = 0;
	f->failure[1] = f->status->code = told.code ? told.code : WEFT_ERR_CHECK;
	told.message[sizeof told.message - 1] = 0;
	if (told.message[0])
		snprintf(f->status->message, sizeof told.message, "%s: %.440s", c->name, told.message);
	else
		snprintf(f->status->message, sizeof told.message, "%s: failed with %d", c->name, code);
	return WEFT_TOLD;
}
