/* What the machine can do: measured, for shares of the peak. */
#ifndef WEFT_TOOLS_PEAK_H
#define WEFT_TOOLS_PEAK_H

typedef struct {
	double flops; /* multiply-adds of f32 in registers count two; per second, all threads */
	double bytes; /* read from memory per second, all threads */
	double cache; /* bytes that the caches hold, of all levels that these threads have */
} Peak;

/* Measures this machine with so many threads, from 1 to 64. Ends the process after a message if
 * there is no memory or no thread. */
Peak peak_measure(int threads);

#endif
