#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kernels.h"

static inline int64_t min_i64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t max_i64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}


/* %matmul = contract(%x, %p_w, batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], acc=f32) : f32[s77, 3]  ; make_golden.py:20
 * %relu = maximum(%matmul, %2) : f32[s77, 3]  ; make_golden.py:20
 * %3 = broadcast(%add_, shape=[s77, 3], map=[1]) : f32[s77, 3]  ; make_golden.py:20
 * %add = add(%relu, %3) : f32[s77, 3]  ; make_golden.py:20 */
int k_add(const WeftFrame *f, int64_t begin, int64_t end)
{
	const float *restrict p_w = f->buf[0];
	const float *restrict x = f->buf[1];
	const float *restrict total = f->buf[2];
	float *restrict add = f->buf[3];
	const int64_t n = f->p[0];
	const int64_t n_1 = f->p[1];
	for (int64_t task = begin; task < end; task++) {
		const int64_t row_lo = task % n * 4;
		const int64_t row_hi = min_i64(row_lo + 4, n_1);
		for (int64_t row = row_lo; row < row_hi; row += 4) {
			const int64_t m = min_i64(row, max_i64(n_1 + -1, 0));
			const int64_t a_row = m * 3;
			const int64_t m_1 = min_i64(row + 1, max_i64(n_1 + -1, 0));
			const int64_t a_row_1 = m_1 * 3;
			const int64_t m_2 = min_i64(row + 2, max_i64(n_1 + -1, 0));
			const int64_t a_row_2 = m_2 * 3;
			const int64_t m_3 = min_i64(row + 3, max_i64(n_1 + -1, 0));
			const int64_t a_row_3 = m_3 * 3;
			float acc_0_0 = 0.0f;
			float acc_0_1 = 0.0f;
			float acc_1_0 = 0.0f;
			float acc_1_1 = 0.0f;
			float acc_2_0 = 0.0f;
			float acc_2_1 = 0.0f;
			float acc_3_0 = 0.0f;
			float acc_3_1 = 0.0f;
			for (int64_t k = 0; k < 3; k++) {
				const float b = p_w[k];
				const float b_1 = p_w[k + 3];
				const float a = x[a_row + k];
				acc_0_0 = acc_0_0 + a * b;
				acc_0_1 = acc_0_1 + a * b_1;
				const float a_1 = x[a_row_1 + k];
				acc_1_0 = acc_1_0 + a_1 * b;
				acc_1_1 = acc_1_1 + a_1 * b_1;
				const float a_2 = x[a_row_2 + k];
				acc_2_0 = acc_2_0 + a_2 * b;
				acc_2_1 = acc_2_1 + a_2 * b_1;
				const float a_3 = x[a_row_3 + k];
				acc_3_0 = acc_3_0 + a_3 * b;
				acc_3_1 = acc_3_1 + a_3 * b_1;
			}
			const float total_1 = total[0];
			const int64_t m_4 = min_i64(row, max_i64(n_1 + -1, 0));
			const float t = (acc_0_0 <= 0.0f) ? 0.0f : acc_0_0;
			const float t_1 = t + total_1;
			add[m_4 * 3] = t_1;
			const int64_t m_5 = min_i64(row + 1, max_i64(n_1 + -1, 0));
			const float t_2 = (acc_1_0 <= 0.0f) ? 0.0f : acc_1_0;
			const float t_3 = t_2 + total_1;
			add[m_5 * 3] = t_3;
			const int64_t m_6 = min_i64(row + 2, max_i64(n_1 + -1, 0));
			const float t_4 = (acc_2_0 <= 0.0f) ? 0.0f : acc_2_0;
			const float t_5 = t_4 + total_1;
			add[m_6 * 3] = t_5;
			const int64_t m_7 = min_i64(row + 3, max_i64(n_1 + -1, 0));
			const float t_6 = (acc_3_0 <= 0.0f) ? 0.0f : acc_3_0;
			const float t_7 = t_6 + total_1;
			add[m_7 * 3] = t_7;
			const float total_2 = total[1];
			const int64_t m_8 = min_i64(row, max_i64(n_1 + -1, 0));
			const float t_8 = (acc_0_1 <= 0.0f) ? 0.0f : acc_0_1;
			const float t_9 = t_8 + total_2;
			add[m_8 * 3 + 1] = t_9;
			const int64_t m_9 = min_i64(row + 1, max_i64(n_1 + -1, 0));
			const float t_10 = (acc_1_1 <= 0.0f) ? 0.0f : acc_1_1;
			const float t_11 = t_10 + total_2;
			add[m_9 * 3 + 1] = t_11;
			const int64_t m_10 = min_i64(row + 2, max_i64(n_1 + -1, 0));
			const float t_12 = (acc_2_1 <= 0.0f) ? 0.0f : acc_2_1;
			const float t_13 = t_12 + total_2;
			add[m_10 * 3 + 1] = t_13;
			const int64_t m_11 = min_i64(row + 3, max_i64(n_1 + -1, 0));
			const float t_14 = (acc_3_1 <= 0.0f) ? 0.0f : acc_3_1;
			const float t_15 = t_14 + total_2;
			add[m_11 * 3 + 1] = t_15;
		}
		for (int64_t row = row_lo; row < row_hi; row += 4) {
			const int64_t m = min_i64(row, max_i64(n_1 + -1, 0));
			const int64_t a_row = m * 3;
			const int64_t m_1 = min_i64(row + 1, max_i64(n_1 + -1, 0));
			const int64_t a_row_1 = m_1 * 3;
			const int64_t m_2 = min_i64(row + 2, max_i64(n_1 + -1, 0));
			const int64_t a_row_2 = m_2 * 3;
			const int64_t m_3 = min_i64(row + 3, max_i64(n_1 + -1, 0));
			const int64_t a_row_3 = m_3 * 3;
			float acc_0_0 = 0.0f;
			float acc_0_0_1 = 0.0f;
			float acc_1_0 = 0.0f;
			float acc_1_0_1 = 0.0f;
			float acc_2_0 = 0.0f;
			float acc_2_0_1 = 0.0f;
			float acc_3_0 = 0.0f;
			float acc_3_0_1 = 0.0f;
			for (int64_t k = 0; k < 3; k++) {
				const float b = p_w[k + 6];
				const float a = x[a_row + k];
				acc_0_0 = acc_0_0 + a * b;
				const float a_1 = x[a_row_1 + k];
				acc_1_0 = acc_1_0 + a_1 * b;
				const float a_2 = x[a_row_2 + k];
				acc_2_0 = acc_2_0 + a_2 * b;
				const float a_3 = x[a_row_3 + k];
				acc_3_0 = acc_3_0 + a_3 * b;
			}
			acc_0_0 = acc_0_0 + acc_0_0_1;
			acc_1_0 = acc_1_0 + acc_1_0_1;
			acc_2_0 = acc_2_0 + acc_2_0_1;
			acc_3_0 = acc_3_0 + acc_3_0_1;
			const float total_1 = total[2];
			const int64_t m_4 = min_i64(row, max_i64(n_1 + -1, 0));
			const float t = (acc_0_0 <= 0.0f) ? 0.0f : acc_0_0;
			const float t_1 = t + total_1;
			add[m_4 * 3 + 2] = t_1;
			const int64_t m_5 = min_i64(row + 1, max_i64(n_1 + -1, 0));
			const float t_2 = (acc_1_0 <= 0.0f) ? 0.0f : acc_1_0;
			const float t_3 = t_2 + total_1;
			add[m_5 * 3 + 2] = t_3;
			const int64_t m_6 = min_i64(row + 2, max_i64(n_1 + -1, 0));
			const float t_4 = (acc_2_0 <= 0.0f) ? 0.0f : acc_2_0;
			const float t_5 = t_4 + total_1;
			add[m_6 * 3 + 2] = t_5;
			const int64_t m_7 = min_i64(row + 3, max_i64(n_1 + -1, 0));
			const float t_6 = (acc_3_0 <= 0.0f) ? 0.0f : acc_3_0;
			const float t_7 = t_6 + total_1;
			add[m_7 * 3 + 2] = t_7;
		}
	}
	return 0;
}
