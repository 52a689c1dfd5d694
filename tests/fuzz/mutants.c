/* mutants FILES...: the share of mutants that are read. Every file that is read (of a text, the
 * graph before "; ----") is the first of chains of mutants, each made of the one before, as a
 * fuzzer makes them. Prints how many of the mutants are read; fails if less than half are. Linked
 * with the mutator and the reader of one fuzz target. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/mutate.h"

enum { LARGEST = 20000, ROOM = 65536, CHAINS = 4, LENGTH = 4 };

static unsigned byte_state = 1;

/* What libFuzzer does without knowing the language: a bit, a byte less, a byte more. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max)
{
	size_t at = fuzz_below(&byte_state, (uint32_t)size);
	char c = (char)fuzz_below(&byte_state, 256);
	if (!size)
		return size;
	switch (fuzz_below(&byte_state, 3)) {
	case 0:
		data[at] ^= (uint8_t)(1u << fuzz_below(&byte_state, 8));
		return size;
	case 1:
		return fuzz_splice(data, size, max, at, 1, "", 0);
	default:
		return fuzz_splice(data, size, max, at, 0, &c, 1);
	}
}

static size_t read_seed(const char *path, uint8_t *data)
{
	FILE *f = fopen(path, "rb");
	size_t n = f ? fread(data, 1, LARGEST, f) : 0;
	if (f)
		fclose(f);
	size_t length = strlen(path);
	if (n == LARGEST || length < 4 || strcmp(path + length - 4, ".txt") != 0)
		return n == LARGEST ? 0 : n;
	uint8_t *end = memmem(data, n, "; ----", 6);
	n = end ? (size_t)(end - data) : n;
	return memmem(data, n, "graph @", 7) ? n : 0;
}

/* Texts of tests that expect a refusal are not read, and neither are their mutants. */
static bool is_read(const uint8_t *seed, size_t n)
{
	unsigned long all, before = fuzz_loaded(&all);
	LLVMFuzzerTestOneInput(seed, n);
	return fuzz_loaded(&all) > before;
}

static void chains_of(const uint8_t *seed, size_t n)
{
	static uint8_t data[ROOM], before[ROOM];
	for (unsigned chain = 0; chain < CHAINS; chain++) {
		size_t size = n;
		memcpy(data, seed, n);
		for (unsigned k = 0; k < LENGTH; k++) {
			size_t old = size;
			memcpy(before, data, size);
			size = LLVMFuzzerCustomMutator(data, size, ROOM,
						       fuzz_below(&byte_state, 1u << 24));
			/* something was there to change */
			if (size != old || memcmp(before, data, size) != 0)
				LLVMFuzzerTestOneInput(data, size);
		}
	}
}

int main(int argc, char **argv)
{
	static uint8_t seed[LARGEST];
	unsigned long seeds = 0, seeds_read = 0, all, loaded;
	fuzz_only_reads = true;
	for (int k = 1; k < argc; k++) {
		glob_t found;
		if (glob(argv[k], 0, NULL, &found) != 0) {
			fprintf(stderr, "no %s\n", argv[k]);
			return 1;
		}
		for (size_t i = 0; i < found.gl_pathc; i++) {
			size_t n = read_seed(found.gl_pathv[i], seed);
			if (!n)
				continue;
			seeds++;
			if (is_read(seed, n)) {
				seeds_read++;
				chains_of(seed, n);
			}
		}
		globfree(&found);
	}
	loaded = fuzz_loaded(&all) - seeds_read;
	all -= seeds;
	printf("%lu seeds of %lu are read\n%lu of %lu mutants are read\n", seeds_read, seeds,
	       loaded, all);
	return all == 0 || 2 * loaded < all;
}
