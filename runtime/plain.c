/* Models that have no state, or weights that cannot be replaced: what their functions for these
 * say. */
#include "instance_priv.h"

int weft_rt_no_state(WeftInstance *in, uint32_t k, const WeftTensor *t, WeftStatus *status)
{
	(void)in, (void)k, (void)t;
	return weft_fail(status, WEFT_ERR_ARGUMENT, "the model has no state");
}

int weft_rt_no_reset(WeftInstance *in, WeftStatus *status)
{
	status_clear(status);
	return in ? WEFT_OK
		  : weft_fail(status, WEFT_ERR_ARGUMENT, "state_reset: no instance given");
}

int weft_rt_no_weights(WeftInstance *in, uint32_t n, const char *const *names,
		       const WeftTensor *values, const WeftContext *c, WeftStatus *status)
{
	(void)in, (void)n, (void)names, (void)values, (void)c;
	return weft_fail(status, WEFT_ERR_ARGUMENT,
			 "the model was not compiled with --replaceable-weights");
}
