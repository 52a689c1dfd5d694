/* Two operators of one's own, for models that call torch.ops.mylib.decay and torch.ops.mylib.smooth
 * (make_model.py), and what their derivatives are made of: two more, which compute gradients. The
 * library is what models are compiled with and what they run with:
 *
 *     cc -O2 -shared -fPIC -I../../include mylib.c -Wl,-soname,libmylib.so -o libmylib.so
 *     weft check model.pt2 model.0.safetensors --ops ./libmylib.so
 *     weft compile model.pt2 --ops ./libmylib.so --link ./libmylib.so -o model.so
 *     LD_LIBRARY_PATH=. weft check model.so model.0.safetensors
 *     weft check --mode vjp --wrt inputs,params model.pt2 model.0.safetensors \
 *             --ops ./libmylib.so */
#include <math.h>

#include "weft_op.h"

/* decay(x, rate, scale) = scale * x * exp(-rate), the rate of each column. */
int mylib_decay(const WeftOpContext *context, const WeftTensor *in, const WeftTensor *out,
		void *work, uint64_t work_bytes, WeftStatus *status)
{
	const float *x = in[0].data, *rate = in[1].data;
	const double *scale = in[2].data;
	float *y = out[0].data, *factor = work; /* b floats */
	int64_t a = in[0].shape[0], b = in[0].shape[1];
	(void)context, (void)work_bytes;
	for (int64_t k = 0; k < b; k++) {
		if (rate[k] < 0)
			return weft_op_fail(status, "rate %lld is %g, and negative", (long long)k,
					    (double)rate[k]);
		factor[k] = (float)*scale * expf(-rate[k]);
	}
	for (int64_t i = 0; i < a; i++)
		for (int64_t k = 0; k < b; k++)
			y[i * b + k] = x[i * b + k] * factor[k];
	return 0;
}

/* Of decay: (scale * g * exp(-rate), the sum of -scale * g * x * exp(-rate) over each column). */
int mylib_decay_backward(const WeftOpContext *context, const WeftTensor *in, const WeftTensor *out,
			 void *work, uint64_t work_bytes, WeftStatus *status)
{
	const float *g = in[0].data, *x = in[1].data, *rate = in[2].data;
	const double *scale = in[3].data;
	float *gx = out[0].data, *grate = out[1].data;
	int64_t a = in[0].shape[0], b = in[0].shape[1];
	(void)context, (void)work, (void)work_bytes, (void)status;
	for (int64_t k = 0; k < b; k++) {
		float factor = (float)*scale * expf(-rate[k]), sum = 0;
		for (int64_t i = 0; i < a; i++) {
			gx[i * b + k] = g[i * b + k] * factor;
			sum -= gx[i * b + k] * x[i * b + k];
		}
		grate[k] = sum;
	}
	return 0;
}

/* smooth(x, width) = the mean of as many neighbours along the last dimension as there are in the
 * row, and how many rows there are: a dimension less, as a number of its own. */
int mylib_smooth(const WeftOpContext *context, const WeftTensor *in, const WeftTensor *out,
		 void *work, uint64_t work_bytes, WeftStatus *status)
{
	int64_t width = *(const int64_t *)in[1].data, rows = 1, n = in[0].shape[in[0].ndim - 1];
	const float *x = in[0].data;
	float *y = out[0].data;
	(void)context, (void)work, (void)work_bytes;
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

/* Of smooth's means: what each element was a part of. */
int mylib_smooth_backward(const WeftOpContext *context, const WeftTensor *in, const WeftTensor *out,
			  void *work, uint64_t work_bytes, WeftStatus *status)
{
	int64_t width = *(const int64_t *)in[1].data, rows = 1, n = in[0].shape[in[0].ndim - 1];
	const float *g = in[0].data;
	float *gx = out[0].data;
	(void)context, (void)work, (void)work_bytes, (void)status;
	for (int32_t d = 0; d < in[0].ndim - 1; d++)
		rows *= in[0].shape[d];
	for (int64_t r = 0; r < rows; r++, g += n, gx += n)
		for (int64_t k = 0; k < n; k++) {
			gx[k] = 0;
			for (int64_t i = k < width ? 0 : k - width + 1; i <= k; i++)
				gx[k] += g[i] / (float)(i + width < n ? width : n - i);
		}
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
	.vjp = "d = mylib::decay_backward(g, x, rate, scale); [get(d, 0), get(d, 1)]",
	.jvp = "scale * exp(-rate) * (t_x - x * t_rate)",
};

static const WeftOpDef decay_backward = {
	.size = sizeof decay_backward,
	.flags = WEFT_OP_THREAD_SAFE,
	.schema = "mylib::decay_backward(Tensor grad, Tensor x, Tensor rate, float scale) -> "
		  "(Tensor, Tensor)",
	.types = "f32[a, b], f32[a, b], f32[b] -> f32[a, b], f32[b]",
	.symbol = "mylib_decay_backward",
	.fn = mylib_decay_backward,
};

static const WeftOpDef smooth = {
	.size = sizeof smooth,
	.schema = "mylib::smooth(Tensor x, int width) -> (Tensor, Tensor)",
	.types = "f32[..., n] -> f32[..., n], i64[]",
	.symbol = "mylib_smooth",
	.fn = mylib_smooth,
	.vjp = "[mylib::smooth_backward(g0, width)]",
	.jvp = "[get(mylib::smooth(t_x, width), 0), none]", /* it is linear */
};

static const WeftOpDef smooth_backward = {
	.size = sizeof smooth_backward,
	.flags = WEFT_OP_THREAD_SAFE | WEFT_OP_BATCH_LEADING,
	.schema = "mylib::smooth_backward(Tensor grad, int width) -> Tensor",
	.types = "f32[..., n] -> f32[..., n]",
	.symbol = "mylib_smooth_backward",
	.fn = mylib_smooth_backward,
	.vjp = "[get(mylib::smooth(g, width), 0)]",
	.jvp = "mylib::smooth_backward(t_grad, width)",
};

const WeftOpDef *const *weft_ops(void)
{
	static const WeftOpDef *const ops[] = {&decay, &decay_backward, &smooth, &smooth_backward,
					       NULL};
	return ops;
}
