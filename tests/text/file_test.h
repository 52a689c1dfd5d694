/* File tests: one file is one test.
 *
 *     ; run: canon simplify            what to do with the graph, word by word (see file_step.c)
 *     ; const "w": f32[2] = 1 2        constant #1, #2, ... of the graph
 *     ; input x = 1 2 3                values of an input; `random LO HI [SEED]`, `steps LO HI STEP
 *                                      [SEED]`; a type before the
 *     ; sizes: B=1 B=7,N=2             `=` overrides the graph's; one execution per word
 *     graph @f(%x: f32[3]) { ... }
 *     ; ----
 *     what running it prints */
#ifndef WEFT_TESTS_TEXT_FILE_TEST_H
#define WEFT_TESTS_TEXT_FILE_TEST_H

#include "driver/api/driver_priv.h"

typedef struct {
	const char *name; /* "softmax": of the graph in messages */
	const char *text; /* everything before the separator: comments, then the graph */
	const char *loops; /* a target: nothing is compiled, its loop IR is interpreted instead,
	                      whatever the test names; or NULL */
	const char *draw;  /* a seed: variants of families of kernels instead (file_kernels.h); or
			      NULL */
} FileTest;

/* Run the test; what it prints is appended to out. */
void file_test_run(const FileTest *, Text *out);

/* The value of the header line "; key" that follows *at (NULL: the first), copied; NULL when there
 * is no other. */
const char *header_find(Arena *, const char *text, const char *key, const char **at);

/* Constants of the header, added to the Ir in order. False after ctx_error. */
bool values_constants(const FileTest *, Ir *);
/* One input for the graph with these symbols bound; see the header above for where its values come
 * from: by default random numbers. False after ctx_error. */
typedef struct EvalCtx EvalCtx;
bool values_input(const FileTest *, EvalCtx *, Graph *, uint32_t k, Tensor *out);
/* The same of one of several calls, from 0: `; input x@2 = ...` is of the second one. */
bool values_input_of(const FileTest *, EvalCtx *, Graph *, uint32_t k, uint32_t call, Tensor *out);
/* "f32[2, 3]" */
void values_print_type(const Tensor *, Text *out);
/* "f32[2, 3] = 1 2 3 4 5 6" */
void values_print(const Tensor *, Text *out);
/* "B=7,N=2": these sizes, and the hints of the other symbols. False after ctx_error. */
bool values_bind(Ctx *, SymTab *, const char *sizes, EvalCtx *out);
/* Deterministic numbers lo + k * step, at most hi; range: lo, hi, step. Of complex numbers both
 * parts. */
void values_steps(Tensor *, const double range[3], uint64_t seed);
/* Deterministic numbers: uniform floats in [lo, hi), or integers in [lo, hi]. */
void values_random(Tensor *, double lo, double hi, uint64_t seed);
/* Where compiled and interpreted results differ by more than rounding; -1: nowhere. */
int64_t values_differ(const Tensor *compiled, const Tensor *expected, double tolerance);
/* The first element of other bits, where every NaN is the same; -1: none. */
int64_t values_other_bits(const Tensor *, const Tensor *);
/* "[1, 2]" of element i */
void values_index(const Tensor *, int64_t i, Text *out);

#endif
