/* Whether a convolution with 3 x 3 taps and stride 1, or the gradient of its taps, is computed by
 * Winograd's transforms (ir/target/winograd_matrices.h), from the costs of a target's machine. */
#ifndef WEFT_IR_TARGET_WINOGRAD_H
#define WEFT_IR_TARGET_WINOGRAD_H

#include "ir/target/target.h"

/* A convolution of f32, at hint sizes. */
typedef struct {
	enum {
		WINOGRAD_KNOWN_TAPS,   /* they are transformed before */
		WINOGRAD_NEW_TAPS,     /* they are transformed at each call */
		WINOGRAD_TAPS_GRADIENT /* of the taps, by the gradient of the result */
	} kind;
	int64_t images, rows, cols; /* of the convolution's result */
	int64_t in, out;            /* channels */
} WinogradLayer;

typedef struct {
	uint32_t tile;         /* 2 or 4; 0: the convolution stays */
	double cycles, direct; /* predicted of the best tile, and of the convolution itself */
	double error;          /* of the best tile: how much larger errors are than those of the
	                          convolution */
} WinogradChoice;

/* Chooses the tile with the least predicted cycles of those whose errors are small enough, if it
 * takes clearly less than the convolution itself. */
WinogradChoice winograd_choose(const Target *, const WinogradLayer *);

#endif
