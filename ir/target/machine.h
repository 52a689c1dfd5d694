/* Machines: the costs of operations, memory and phases on one processor. Schedules and grouping
 * compare costs; costs never decide which instructions code may contain (Isa in
 * ir/target/target.h). scripts/measure_machine measures the processor on which it runs, and writes
 * a file for --tune. */
#ifndef WEFT_IR_MACHINE_H
#define WEFT_IR_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "ir/graph/dtype.h"

/* Classes of operations that take the same time. */
#define MACHINE_OPS(X)                                                                             \
	X(add)                                                                                     \
	X(mul) X(fma) X(div) X(sqrt) /* of floats */                                               \
		X(dot) /* sums of products of groups of integers of 4 bytes (ir/target/micro.h) */ \
		X(tile)     /* a row of an operation on fragments (ir/loop/frag.h) */              \
		X(dot_bf16) /* of two bf16 */                                                      \
		X(simple)   /* compare, select, min, max, logic, shifts, integer addition */       \
		X(int_mul) X(convert) X(shuffle) X(load) X(store)                                  \
			X(gather) /* one element of a gather or scatter */                         \
		X(scalar)         /* index arithmetic */

typedef enum {
#define X(name) MOP_##name,
	MACHINE_OPS(X)
#undef X
	MOP_COUNT
} MachineOp;

/* Returns the name of a class below MOP_COUNT: "add", "int_mul". */
const char *machine_op_name(MachineOp);

typedef struct {
	float issue;   /* instructions that begin per cycle, for vectors up to Machine.unit_bytes */
	float latency; /* cycles until the result can be read */
} MachineRate;

typedef struct {
	const char *name;     /* "zen4", "skylake-x" */
	const char *family;   /* the family of its instruction sets (Isa.family) */
	uint32_t unit_bytes;  /* the width of the execution units; a wider vector takes several
	                         cycles */
	MachineRate rate[MOP_COUNT][2]; /* elements of up to 4 bytes; of 8 */
	uint32_t l1, l2, l3;  /* bytes of the data caches of one core; of l3 its part; l3 0: none */
	uint32_t line, ways;  /* of these caches: bytes of a line; the associativity, the least of
	                         all */
	float l1_bytes, l2_bytes, l3_bytes, memory_bytes; /* bytes that one core reads per cycle */
	float ghz;            /* cycles per nanosecond, for reports only */
	uint32_t stream_bytes; /* the width of accesses by which what no cache holds is read and
				  written fastest, at two places of each tensor in turn; 0: that of
				  a register, at one place */
	uint32_t phase;       /* cycles of a phase: start, barrier, end */
	uint32_t call;        /* cycles of a call of a kernel function or an emulated operation */
	uint32_t branch;      /* cycles of a mispredicted branch */
	uint32_t window;      /* operations among which a core finds those that need not wait; 1:
	                         it executes them in order */
	float code;           /* cycles for fetching one byte of code the first time */
	uint32_t threads;     /* processors to assume; 0: unknown */
} Machine;

/* Returns the machine of that name or alias ("znver4"), or NULL. */
const Machine *machine_find(const char *name);
/* Returns machine k of the table, or NULL after the last. */
const Machine *machine_at(uint32_t k);
/* Returns the names of the machines of a family (NULL: of all) for messages, in the order of
 * machine_at, "zen3, zen4"; "none" if there are none. A static text, or one in the arena. */
const char *machine_list(Arena *, const char *family);

/* Returns the cycles for which one operation on `lanes` elements of a real dtype (computed in its
 * dtype_compute, bools as f32) keeps the execution units busy. Of MOP_gather and MOP_scalar each
 * lane is an instruction. */
double machine_cycles(const Machine *, MachineOp, DType, uint32_t lanes);
/* Returns the cycles from the start of an operation on elements of a real dtype until its result
 * can be read. */
double machine_latency(const Machine *, MachineOp, DType);
/* Returns the cycles that one core takes to read `bytes` bytes again of a working set of `set`
 * bytes: at the rate of L1, L2 or L3, the first that holds the set (L3 together with L2), else of
 * memory. */
double machine_memory_cycles(const Machine *, double bytes, double set);

#endif
