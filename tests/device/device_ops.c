/* An operator of the user that takes memory of a GPU, by the stand-in for the CUDA driver: its
 * result is a copy of its operand, made by the stream of the call. Fails if the tensors are
 * elsewhere. */
#include <dlfcn.h>
#include <string.h>

#include "weft_op.h"

static int test_here(const WeftOpContext *c, const WeftTensor *in, const WeftTensor *out,
		     void *work, uint64_t bytes, WeftStatus *status)
{
	static int (*copy)(uint64_t, uint64_t, size_t, void *),
		(*fill)(uint64_t, unsigned char, size_t, void *);
	void *so = dlopen("libcuda.so.1", RTLD_NOW);
	size_t n = 4;
	if (c->device.type != WEFT_CUDA || in[0].device.type != WEFT_CUDA ||
	    out[0].device.type != WEFT_CUDA || in[1].device.type != WEFT_CPU)
		return weft_op_fail(status, "tensors are not where they should be");
	if (*(const int64_t *)in[1].data == 13)
		return weft_op_fail(status, "13 is unlucky");
	void *fn = so ? dlsym(so, "cuMemcpyDtoDAsync_v2") : NULL,
	     *fill_fn = so ? dlsym(so, "cuMemsetD8Async") : NULL;
	memcpy(&copy, &fn, sizeof fn);
	memcpy(&fill, &fill_fn, sizeof fn);
	for (int32_t d = 0; d < in[0].ndim; d++)
		n *= (size_t)in[0].shape[d];
	if (!fn || fill((uint64_t)(uintptr_t)work, 0, bytes, c->stream) ||
	    copy((uint64_t)(uintptr_t)out[0].data, (uint64_t)(uintptr_t)in[0].data, n, c->stream))
		return weft_op_fail(status, "the driver fails");
	return 0;
}

const WeftOpDef *const *weft_ops(void);
const WeftOpDef *const *weft_ops(void)
{
	static const WeftOpDef here = {.size = sizeof(WeftOpDef),
				       .flags = WEFT_OP_DEVICE,
				       .schema = "test::here(Tensor x, int n) -> Tensor",
				       .types = "f32[...] -> f32[...]",
				       .work_bytes = "64",
				       .symbol = "test_here_op",
				       .fn = test_here};
	static const WeftOpDef *const all[] = {&here, NULL};
	return all;
}

__attribute__((visibility("default"))) int test_here_op(const WeftOpContext *c,
							const WeftTensor *in, const WeftTensor *out,
							void *work, uint64_t bytes,
							WeftStatus *status);
int test_here_op(const WeftOpContext *c, const WeftTensor *in, const WeftTensor *out, void *work,
		 uint64_t bytes, WeftStatus *status)
{
	return test_here(c, in, out, work, bytes, status);
}
