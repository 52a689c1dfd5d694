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
