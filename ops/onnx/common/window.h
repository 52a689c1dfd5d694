/* Windows over the spatial dimensions of images, as convolutions and pooling of ONNX describe
 * them. */
#ifndef WEFT_OPS_ONNX_COMMON_WINDOW_H
#define WEFT_OPS_ONNX_COMMON_WINDOW_H

#include "ops/aten/priv.h"

enum { MAX_SPACE = 8 };

typedef struct {
	uint32_t ns; /* spatial dimensions, the last ones of the operand */
	int64_t kernel[MAX_SPACE], stride[MAX_SPACE], dilation[MAX_SPACE];
	Sym in[MAX_SPACE], low[MAX_SPACE], high[MAX_SPACE]; /* extents, and the borders in front and
	                                                       behind */
	Sym out[MAX_SPACE];                                  /* the number of windows */
} Window;

/* Reads the arguments strides, dilations, pads and auto_pad of n for windows of the given extents
 * over x[N, C, *in], and ceil_mode if the schema has it. Returns false after an error. */
bool window_read(Build *, Node n, Node x, const int64_t *kernel, uint32_t ns, Window *);
/* Fills in v[want] from an int[] argument; without it `fill`. Returns false after an error: another
 * length, or a number below `least` or above INT32_MAX. */
bool window_ints(Build *, Node n, const char *name, uint32_t want, int64_t fill, int64_t least,
		 int64_t *v);
/* Returns the elements of each distance of a window, dilation * (kernel - 1) + 1, below 2^62. */
static inline int64_t window_reach(const Window *w, uint32_t k)
{
	return w->dilation[k] * (w->kernel[k] - 1) + 1;
}
/* Whether borders are constant and the same in front and behind: sets pad[]. */
bool window_is_even(Build *, const Window *, int64_t *pad);
/* Returns x[N, C, *in] with its borders filled, as long as the windows reach. fill: without
 * dimensions. */
Node window_pad(Build *, Node x, const Window *, Node fill);
/* Returns the windows of x[N, C, *in]: [N, C, *out, *kernel]; elements outside are `fill`. */
Node window_elements(Build *, Node x, const Window *, Node fill);

#endif
