/* What the machine can do: measured, for shares of the peak. */
#ifndef WEFT_TOOLS_PEAK_H
#define WEFT_TOOLS_PEAK_H

typedef struct {
	double flops; /* multiply-adds of f32 in registers count two; per second, all threads */
	double bytes; /* read from memory per second, all threads */
	double cache; /* bytes that the caches hold, of all levels that these threads have */
	double wall, cpu; /* seconds of the windows of which the fastest counts, times threads, and
			     how many of them the threads had a processor */
} Peak;

/* Measures this machine with so many threads at once; a number below 1 counts as 1, one above 64 as
 * 64. Takes about half a second. bytes is too small if there is no memory to read. Ends the process
 * after a message if a thread cannot be started. */
Peak peak_measure(int threads);
/* Measures flops in so many further windows of about a millisecond, and joins them to the peak.
 * Reads no memory. */
void peak_windows(Peak *, int threads, int windows);
/* Joins to a peak what was measured with as many threads at another time. */
void peak_join(Peak *, const Peak *other);

#endif
