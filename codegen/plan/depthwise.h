/* Plans of depthwise convolutions. */
#ifndef WEFT_CODEGEN_PLAN_DEPTHWISE_H
#define WEFT_CODEGEN_PLAN_DEPTHWISE_H

#include "codegen/plan/axes.h"
#include "codegen/plan/sums.h"

enum { MAX_PIXELS = 8, MAX_LINE = 8 };
_Static_assert((int)MAX_PIXELS <= (int)MAX_SUMS, "each pixel has an accumulator");

/* Register tiles along a row of pixels. */
typedef struct {
	uint32_t size, rest; /* pixels of a tile, and of the tile after [0, whole); rest 0: there is
				no such tile */
	Sym whole;
	bool beyond; /* the tile after [0, whole) may reach beyond the row: pixels past the
			end repeat the last one */
} PixelTiles;

/* Innermost taps in line with the pixels, unrolled. n 0: there are none. */
typedef struct {
	uint32_t n, stride; /* stride: the number of taps from one pixel to the next */
} TapLine;

typedef struct DepthwisePlan {
	const Nest *nest;
	Kx x, w;
	bool bytes; /* both are bytes, and the sum is i32: products are added up in f32, which holds
	               all such sums */
	uint32_t channel, lanes;      /* channel: the axis that runs over lanes */
	uint32_t pixel;               /* the axis tiled in registers */
	uint32_t row[MAX_AXES], nrow; /* other row axes */
	PixelTiles tiles;
	TapLine line;
	SumPlan sums; /* of the taps */
	bool together; /* the epilogues of a tile's pixels are written in turn */
	Sym vectors;  /* of channels, each a task; none: a task has all channels */
	Sym ntasks;
	KernelCost cost;
} DepthwisePlan;

#endif
