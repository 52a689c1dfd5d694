/* Kernels of running. */
#ifndef WEFT_KERNELS_H
#define WEFT_KERNELS_H

#include "runtime.h"

int k_add_(const WeftFrame *f, int64_t begin, int64_t end);
int k_add__1(const WeftFrame *f, int64_t begin, int64_t end);
int k_add(const WeftFrame *f, int64_t begin, int64_t end);
int k_mul(const WeftFrame *f, int64_t begin, int64_t end);
int k_mul_1(const WeftFrame *f, int64_t begin, int64_t end);
int k_matmul(const WeftFrame *f, int64_t begin, int64_t end);

#endif
