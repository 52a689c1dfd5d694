/* Mutants of which many are still read: changes that keep to the language of the input. Each target
 * counts what loads and prints the share at the end. */
#ifndef WEFT_TESTS_FUZZ_MUTATE_H
#define WEFT_TESTS_FUZZ_MUTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ctx.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

/* A pseudo-random number below n (0 for n = 0); *state goes on. */
uint32_t fuzz_below(unsigned *state, uint32_t n);
/* Replace data[at .. at + drop) by text; the new size, or `size` when that does not fit. */
size_t fuzz_splice(uint8_t *data, size_t size, size_t max, size_t at, size_t drop, const char *text,
		   size_t n);
/* One input: read(ctx, copy, size) in a context of its own, on a copy of exactly size bytes, and
 * `nul` bytes of 0 behind them. An internal error aborts; returns 0. */
int fuzz_run(const uint8_t *data, size_t size, size_t nul,
	     void (*read)(Ctx *, uint8_t *copy, size_t size));
/* Count one input; the first call arranges for the share to be printed at exit. */
void fuzz_count(bool loaded);
/* How many of *all inputs were read. */
unsigned long fuzz_loaded(unsigned long *all);
/* Nothing is done with what was read: only the share is asked for. */
extern bool fuzz_only_reads;

#endif
