/* Private to ops/aten/resize*.c: resizing of images along one axis after the other, which the
 * float and the 8-bit computation share. An output element is a weighted sum of input elements
 * (taps). b: as in ops/aten/priv.h. */
#ifndef WEFT_OPS_ATEN_RESIZE_PRIV_H
#define WEFT_OPS_ATEN_RESIZE_PRIV_H

#include "ops/aten/priv.h"

typedef struct {
	uint32_t dim; /* of the tensor */
	Sym in, out;  /* extents of the input and the output */
	double scale; /* output elements per input element, if the call gives it; 0: out / in */
	bool align_corners; /* as torch.nn.functional.interpolate: the first and the last elements
			       of input and output coincide */
} Axis;

/* The input elements that each output element reads, and their weights. */
typedef struct {
	Node index;  /* [out, taps] of i64; -1: no element */
	Node weight; /* [out, taps] of f64 */
} Taps;

/* Returns the position in the input, f64[out], of each output element; between elements it is a
 * fraction. clamped: positions before the first element are 0 (unless align_corners, where there
 * are none). */
Node resize_source(Build *, const Axis *, bool clamped);
/* Returns the cubic convolution kernel of Keys (1981) with parameter a at the distances t, 0 <= t
 * <= 1. */
Node resize_cubic_near(Build *, Node t, double a);
/* Returns the cubic convolution kernel of Keys (1981) with parameter a at the distances t, 1 < t <
 * 2. */
Node resize_cubic_far(Build *, Node t, double a);
/* Returns the 2 (linear) or 4 (cubic) nearest elements of each output element, with their weights.
 * Elements outside of the input are replaced by the border element, which gets their weights. */
Taps resize_near_taps(Build *, const Axis *, bool cubic);
/* Returns x of u8 resized along the axis by these taps, in ATen's fixed-point arithmetic: u8, with
 * weights rounded to 16-bit integers. */
Node resize_fixed(Build *, Node x, const Axis *, const Taps *);

#endif
