/* Private to building programs: equal kernels are scheduled once.
 *
 * Kernels are equal when they are written the same way with their axes and buffers numbered in order of appearance; of a
 * buffer its layout, shape and dtype count, of symbols of sizes and of loops outside themselves. */
#ifndef WEFT_CODEGEN_DISTINCT_H
#define WEFT_CODEGEN_DISTINCT_H

#include "codegen/schedule/cost.h"
#include "codegen/schedule/schedule.h"

typedef struct {
	uint32_t buf;         /* which of the kernel's buffers, in order of appearance */
	const Layout *packed; /* of a constant that is read in another layout; NULL: as it is */
} DistinctArg;

typedef struct {
	uint32_t fn; /* index into Program.fn */
	Sym ntasks;
	const char *algorithm;
	KernelCost cost; /* of one launch */
	uint32_t narg, nparam, nliteral;
	const DistinctArg *arg;
	const Sym *param;       /* parameters: these, then the literals */
	const int64_t *literal;
} Distinct;

typedef struct {
	Lowered *l;
	Program *p;
	const Target *target;
	Intern key, fn_text;
	ARRAY(Distinct) kernel; /* by id of key - 1 */
	/* the kernel at hand */
	ARRAY(uint32_t) word;
	ARRAY(BufId) buf;       /* in order of appearance */
	ARRAY(uint32_t) number; /* by Sym: its number + 1 if `of` is this kernel */
	ARRAY(uint32_t) of;
	uint32_t now, nsym;
} DistinctKernels;

void distinct_init(DistinctKernels *, Lowered *, Program *, const Target *);
/* The schedule of a kernel. Its buffers are d->buf until the next call. The kernel is used up: its axes may be split. */
Distinct distinct_kernel(DistinctKernels *, Kernel *);

#endif
