/* Resizing: what the float and the 8-bit computation share. */
#ifndef WEFT_IR_OPS_ATEN_RESIZE_PRIV_H
#define WEFT_IR_OPS_ATEN_RESIZE_PRIV_H

#include "ir/ops/aten/priv.h"

typedef struct {
	uint32_t dim;
	Sym in, out;
	double scale; /* given by the caller, 0: in / out */
	bool align_corners;
} Axis;

/* The elements that each output reads and their weights. */
typedef struct {
	Node index;  /* [out, taps] of i64, -1: none */
	Node weight; /* [out, taps] of f64 */
} Taps;

/* Where in the input (f64, [out]) each output lies; clamped: not before its first element. */
Node resize_source(Build *, const Axis *, bool clamped);
/* Keys' cubic with parameter a: |t| <= 1, and 1 < |t| < 2. */
Node resize_cubic_near(Build *, Node t, double a);
Node resize_cubic_far(Build *, Node t, double a);
/* The 2 (linear) or 4 (cubic) nearest elements; the weights of what lies outside go to the
 * border. */
Taps resize_near_taps(Build *, const Axis *, bool cubic);
/* x of u8 along the axis, in ATen's fixed-point arithmetic. */
Node resize_fixed(Build *, Node x, const Axis *, const Taps *);

#endif
