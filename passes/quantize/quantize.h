/* The pass that makes products of dequantised numbers products of integers. */
#ifndef WEFT_PASSES_QUANTIZE_QUANTIZE_H
#define WEFT_PASSES_QUANTIZE_QUANTIZE_H

#include "passes/common/pass_ctx.h"

/* Makes products and convolutions of dequantised integers of 8 bits sums of integer products, whose
 * zero points and scales follow them (quantize.c), where that is faster or
 * PassCtx.integers. */
bool pass_quantize(Graph *, PassCtx *);

#endif
