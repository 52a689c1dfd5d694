#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kernels.h"

static inline int64_t add_i64(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline int64_t mul_i64(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a * (uint64_t)b);
}


/* %sum_1 = reduce(%x, kind="sum", dims=[0], acc=f32) : f32[3]  ; make_golden.py:18
 * %add_ = add(%total, %sum_1) : f32[3]  ; make_golden.py:18 */
int k_add_(const WeftFrame *f, int64_t begin, int64_t end)
{
	const float *restrict x = f->buf[0];
	float *restrict total = f->buf[1];
	const int64_t n = f->p[0];
	for (int64_t task = begin; task < end; task++) {
		for (int64_t i = 0; i < 3; i++) {
			float acc = 0.0f;
			for (int64_t r = 0; r < n; r++) {
				const float x_1 = x[i + r * 3];
				acc = acc + x_1;
			}
			const float r = acc;
			const float total_1 = total[i];
			const float t = total_1 + r;
			total[i] = t;
		}
	}
	return 0;
}

/* %add__1 = add(%calls, %1) : i64[]  ; make_golden.py:19 */
int k_add__1(const WeftFrame *f, int64_t begin, int64_t end)
{
	int64_t *restrict calls = f->buf[0];
	for (int64_t task = begin; task < end; task++) {
		const int64_t calls_1 = calls[0];
		const int64_t t = add_i64(calls_1, 1);
		calls[0] = t;
	}
	return 0;
}

/* %mul = mul(%add__1, %4) : i64[]  ; make_golden.py:20 */
int k_mul(const WeftFrame *f, int64_t begin, int64_t end)
{
	const int64_t *restrict calls = f->buf[0];
	int64_t *restrict mul = f->buf[1];
	for (int64_t task = begin; task < end; task++) {
		const int64_t calls_1 = calls[0];
		const int64_t t = mul_i64(calls_1, 2);
		mul[0] = t;
	}
	return 0;
}

/* %mul = mul(%total, %scale) : f32[3]  ; make_golden.py:25 */
int k_mul_1(const WeftFrame *f, int64_t begin, int64_t end)
{
	const float *restrict total = f->buf[0];
	const float *restrict scale = f->buf[1];
	float *restrict mul = f->buf[2];
	for (int64_t task = begin; task < end; task++) {
		const float total_1 = total[0];
		const float scale_1 = scale[0];
		const float t = total_1 * scale_1;
		mul[0] = t;
		const float total_2 = total[1];
		const float scale_2 = scale[1];
		const float t_1 = total_2 * scale_2;
		mul[1] = t_1;
		const float total_3 = total[2];
		const float scale_3 = scale[2];
		const float t_2 = total_3 * scale_3;
		mul[2] = t_2;
	}
	return 0;
}

/* %matmul = contract(%total, %p_w, batch_x=[], batch_y=[], sum_x=[0], sum_y=[0], acc=f32) : f32[3]  ; make_golden.py:25 */
int k_matmul(const WeftFrame *f, int64_t begin, int64_t end)
{
	const float *restrict p_w = f->buf[0];
	const float *restrict total = f->buf[1];
	float *restrict matmul = f->buf[2];
	for (int64_t task = begin; task < end; task++) {
		float acc_0_0 = 0.0f;
		float acc_0_0_1 = 0.0f;
		float acc_0_1 = 0.0f;
		float acc_0_1_1 = 0.0f;
		float acc_0_2 = 0.0f;
		float acc_0_2_1 = 0.0f;
		for (int64_t k = 0; k < 3; k++) {
			const float b = p_w[k];
			const float b_1 = p_w[k + 3];
			const float b_2 = p_w[k + 6];
			const float a = total[k];
			acc_0_0 = acc_0_0 + a * b;
			acc_0_1 = acc_0_1 + a * b_1;
			acc_0_2 = acc_0_2 + a * b_2;
		}
		acc_0_0 = acc_0_0 + acc_0_0_1;
		acc_0_1 = acc_0_1 + acc_0_1_1;
		acc_0_2 = acc_0_2 + acc_0_2_1;
		matmul[0] = acc_0_0;
		matmul[1] = acc_0_1;
		matmul[2] = acc_0_2;
	}
	return 0;
}
