/* Derivatives and batches of a graph. */
#ifndef WEFT_TESTS_ORACLE_DERIVE_CHECK_H
#define WEFT_TESTS_ORACLE_DERIVE_CHECK_H

#include "tests/text/file_test.h"

typedef struct {
	const FileTest *test; /* of its header: inputs, `; sizes:` (three at most), `; seed: N`, by
				 which is chosen what is compiled */
	Weft *w;
	Graph *g;
	bool interp;      /* nothing is compiled */
	bool jit, c;      /* compiled by LLVM in this process; by a C compiler */
	uint32_t checked; /* tangents that were compared with differences of values */
	char how[400];    /* what differs */
	Graph *wide;      /* in f64; these are set by derive_check */
	const char *sizes;
	uint64_t seed;
} DeriveCheck;

/* At all sizes, in f64:
 *   - cotangents and tangents fit each other and differences of values, of the derivative again too
 * (derivative.h);
 *   - a batch of the graph, a batch of batches and a batch of the derivative are what a loop gives;
 * branches and loops in it go different ways;
 *   - the derivative of a batch is the batch of derivatives;
 *   - compiled, one of vjp, jvp, vjp of vjp, vmap of vjp is what the interpreter gives: by
 * interpreted loop IR and, to the bit, by a JIT and a C compiler; and so is vjp in the graph's own
 * dtypes, as near to f64 as the interpreter is. False where something differs (`how`), and after
 * ctx_error. */
bool derive_check(DeriveCheck *);
/* Up to four transforms of transforms in an order that `; seed:` decides: each of the derivatives
 * is checked as above, but for differences, each batch against a loop, the last graph compiled
 * against interpreted. */
bool compose_check(DeriveCheck *);

#endif
