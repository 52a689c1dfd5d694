/* What a graph gives does not depend on how it is run. */
#ifndef WEFT_TESTS_ORACLE_GRAPH_CHECK_H
#define WEFT_TESTS_ORACLE_GRAPH_CHECK_H

#include "tests/text/file_test.h"

typedef struct {
	const FileTest *test; /* of its header: inputs, `; sizes:`, and how far outputs may be off:
				 `; tolerances: X...`, twice that of each output, and `; tolerance:
				 X`, X times the value and the mean value */
	Weft *w;
	Graph *g;
	const char *target; /* by its name here */
	bool passes;        /* nothing is compiled */
	bool jit, c[2];  /* compiled by LLVM in this process; by a C compiler, op by op and fused */
	uint32_t failed; /* an output that differs, plus 1 */
	char how[200];   /* and where */
} GraphCheck;

/* The interpreter on the graph as it is, on the graph after the passes, and compiled code with and
 * without fusion, at all sizes: within the tolerances of its outputs; code of both emitters, on one
 * thread and on three, and interpreted loop IR, which has no findings, to the bit. False where
 * something differs (`how`), and after ctx_error. */
bool graph_check(GraphCheck *);

#endif
