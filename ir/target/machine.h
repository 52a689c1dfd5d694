/* Machines: what operations, memory and phases cost on one processor. Schedules and grouping
 * compare such costs; they decide nothing about what code may hold (ir/target/target.h, Isa).
 * scripts/measure_machine writes a row for the processor it runs on, as a file that --tune
 * reads. */
#ifndef WEFT_IR_MACHINE_H
#define WEFT_IR_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "ir/graph/dtype.h"

/* Classes of operations that take the same time. */
#define MACHINE_OPS(X)                                                                                                 \
	X(add) X(mul) X(fma) X(div) X(sqrt) /* of floats */                                                           \
	X(simple)   /* compare, select, min, max, logic, shifts, integer addition */                                  \
	X(int_mul)                                                                                                     \
	X(convert)                                                                                                     \
	X(shuffle)                                                                                                     \
	X(load) X(store)                                                                                               \
	X(gather)   /* one element of a gather or scatter */                                                          \
	X(scalar)   /* index arithmetic */

typedef enum {
#define X(name) MOP_##name,
	MACHINE_OPS(X)
#undef X
	MOP_COUNT
} MachineOp;

const char *machine_op_name(MachineOp);

typedef struct {
	float issue;   /* instructions that begin in a cycle, of vectors no wider than
	                  Machine.unit_bytes */
	float latency; /* cycles until the result can be used */
} MachineRate;

typedef struct {
	const char *name;     /* "zen4", "skylake-x" */
	const char *family;   /* of the instruction sets that it has (Isa.family) */
	uint32_t unit_bytes;  /* of the execution units: a wider vector takes several turns */
	MachineRate rate[MOP_COUNT][2]; /* elements of up to 4 bytes; of 8 */
	uint32_t l1, l2, l3;  /* data caches in bytes: of one core, one core, its share; l3 0:
	                         none */
	uint32_t line, ways;  /* of these caches: bytes of a line; places for lines whose addresses agree
	                         in their lower bits, the fewest of all */
	float l1_bytes, l2_bytes, l3_bytes, memory_bytes; /* per cycle, by one core */
	float ghz;            /* cycles per nanosecond: reports only */
	uint32_t phase;       /* cycles of a phase: start, barrier, end */
	uint32_t call;        /* cycles of a call of a kernel function or an emulated operation */
	uint32_t branch;      /* cycles of a branch that was predicted wrong */
	float code;           /* cycles that one byte of code costs once: fetching it from memory */
	uint32_t threads;     /* processors to assume; 0: unknown */
} Machine;

/* By name; NULL when unknown. */
const Machine *machine_find(const char *name);
/* NULL after the last. */
const Machine *machine_at(uint32_t k);
/* The names of those of a family (NULL: of all), for messages. */
const char *machine_list(Arena *, const char *family);

/* Cycles that the execution units are busy with one operation on `lanes` elements. */
double machine_cycles(const Machine *, MachineOp, DType, uint32_t lanes);
/* Cycles until its result can be used. */
double machine_latency(const Machine *, MachineOp, DType);
/* Cycles to move so many bytes that lie in a working set of `set` bytes: from the smallest cache
 * that holds it. */
double machine_memory_cycles(const Machine *, double bytes, double set);

#endif
