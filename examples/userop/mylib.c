/* Two operators of one's own, for models that call torch.ops.mylib.decay and torch.ops.mylib.smooth (make_model.py). The
 * library is what models are compiled with and what they run with:
 *
 *     cc -O2 -shared -fPIC -I../../include mylib.c -Wl,-soname,libmylib.so -o libmylib.so
 *     weft check model.pt2 model.0.safetensors --ops ./libmylib.so
 *     weft compile model.pt2 --ops ./libmylib.so --link ./libmylib.so -o model.so
 *     LD_LIBRARY_PATH=. weft check model.so model.0.safetensors
 */
#include <math.h>

#include "weft_op.h"

/* decay(x, rate, scale) = scale * x * exp(-rate), the rate of each column. */
int mylib_decay(const WeftTensor *in, const WeftTensor *out, void *work, uint64_t work_bytes, WeftStatus *status)
{
	const float *x = in[0].data, *rate = in[1].data;
	const double *scale = in[2].data;
	float *y = out[0].data, *factor = work; /* b floats */
	int64_t a = in[0].shape[0], b = in[0].shape[1];
	(void)work_bytes;
	for (int64_t k = 0; k < b; k++) {
		if (rate[k] < 0)
			return weft_op_fail(status, "rate %lld is %g, and negative", (long long)k, (double)rate[k]);
		factor[k] = (float)*scale * expf(-rate[k]);
	}
	for (int64_t i = 0; i < a; i++)
		for (int64_t k = 0; k < b; k++)
			y[i * b + k] = x[i * b + k] * factor[k];
	return 0;
}

/* smooth(x, width) = the mean of as many neighbours along the last dimension as there are in the row, and how many rows
 * there are: a dimension less, as a number of its own. */
int mylib_smooth(const WeftTensor *in, const WeftTensor *out, void *work, uint64_t work_bytes, WeftStatus *status)
{
	int64_t width = *(const int64_t *)in[1].data, rows = 1, n = in[0].shape[in[0].ndim - 1];
	const float *x = in[0].data;
	float *y = out[0].data;
	(void)work, (void)work_bytes;
	if (width < 1)
		return weft_op_fail(status, "the width is %lld", (long long)width);
	for (int32_t d = 0; d < in[0].ndim - 1; d++)
		rows *= in[0].shape[d];
	for (int64_t r = 0; r < rows; r++, x += n, y += n)
		for (int64_t i = 0; i < n; i++) {
			float sum = 0;
			int64_t end = i + width < n ? i + width : n;
			for (int64_t k = i; k < end; k++)
				sum += x[k];
			y[i] = sum / (float)(end - i);
		}
	*(int64_t *)out[1].data = rows;
	return 0;
}

static const WeftOpDef decay = {
	.size = sizeof decay,
	.flags = WEFT_OP_THREAD_SAFE,
	.schema = "mylib::decay(Tensor x, Tensor rate, float scale=1.0) -> Tensor",
	.types = "f32[a, b], f32[b] -> f32[a, b]",
	.work_bytes = "4*b",
	.symbol = "mylib_decay",
	.fn = mylib_decay,
};

static const WeftOpDef smooth = {
	.size = sizeof smooth,
	.schema = "mylib::smooth(Tensor x, int width) -> (Tensor, Tensor)",
	.types = "f32[..., n] -> f32[..., n], i64[]",
	.symbol = "mylib_smooth",
	.fn = mylib_smooth,
};

const WeftOpDef *const *weft_ops(void)
{
	static const WeftOpDef *const ops[] = {&decay, &smooth, NULL};
	return ops;
}
