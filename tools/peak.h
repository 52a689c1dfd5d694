/* What the machine can do: measured, for shares of the peak. */
#ifndef WEFT_TOOLS_PEAK_H
#define WEFT_TOOLS_PEAK_H

typedef struct {
	double flops; /* multiply-adds of f32 in registers count two; per second, all threads */
	double bytes; /* read from memory per second, all threads */
	double near;  /* the same of what fits in the second-level cache */
} Peak;

enum { PEAK_NEAR = 1 << 20 }; /* bytes that count as near */

Peak peak_measure(int threads);

#endif
