/* What the machine can do: measured, for shares of the peak. */
#ifndef WEFT_TOOLS_PEAK_H
#define WEFT_TOOLS_PEAK_H

typedef struct {
	double flops; /* multiply-adds of f32 in registers count two; per second, all threads */
	double bytes; /* read from memory per second, all threads */
	double cache; /* bytes that the caches hold, of all levels that these threads have */
} Peak;

Peak peak_measure(int threads);

#endif
