/* Target descriptions. A target is two things: an instruction set (Isa), which decides what code is
 * allowed to hold, and a machine, which says what code costs: gcc's -march and -mtune. Schedules
 * and grouping choose by costs, and never use what the instruction set lacks. */
#ifndef WEFT_IR_TARGET_H
#define WEFT_IR_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "ir/graph/dtype.h"
#include "ir/scalar/scalar.h"
#include "ir/target/machine.h"

/* How a vector of bools is held: not at all (one lane only), as an i32 vector of 0 and -1, in a
 * mask register. */
typedef enum { MASK_NONE, MASK_VECTOR, MASK_BITS } MaskKind;

/* What an instruction set may have beyond plain arithmetic, comparison, selection and memory: rows
 * of preludes that need it (ir/loop/prelude.h) count only then. */
typedef enum {
	ISA_FMA = 1,     /* f32 and f64: a * b + c with one rounding */
	ISA_F16 = 2,     /* conversion between f16 and f32 */
	ISA_GATHER = 4,  /* one instruction that gathers is faster than a load for each lane */
	ISA_LESSER = 8,  /* a < b ? a : b and a > b ? a : b of floats in one instruction */
	ISA_CONVERT = 16 /* floats to i32 and i64 give the smallest value where they do not fit */
} IsaOp;

/* Legality: what code may be made of; it goes into the manifest, and processors without it are
 * refused. */
typedef struct Isa {
	const char *name;      /* "x86-64-v3", "aarch64-linux-gnu" */
	const char *family;    /* "x86-64", "aarch64", "riscv64", "generic": packed weights are
	                          shared within a family, and preludes belong to one */
	const char *triple;    /* of the tools and of LLVM: "x86_64-linux-gnu"; NULL: whatever the C
	                          compiler compiles for, and LLVM for this machine */
	const char *cpu;       /* LLVM's name of the processor; NULL: generic */
	const char *attributes; /* LLVM's features: "+avx2,+fma"; NULL: none */
	const char *abi;       /* LLVM's name of the calling convention; NULL: the triple's */
	uint32_t vector_bytes; /* widest register; 0: plain scalar code */
	uint32_t nvreg;        /* vector registers */
	uint32_t npointer;     /* general registers that a loop has for pointers to rows, beside its
	                          counters and other operands */
	uint32_t ops;          /* IsaOp bits that are present; without ISA_FMA schedules use mul and
	                          add, and fma still works, slowly and exactly */
	MaskKind masks;
	bool masked_memory;    /* masked loads and stores of 4- and 8-byte elements are cheap */
	uint32_t page;         /* bytes of the largest page the system may use: alignment of
	                          segments */
	const char *features;  /* what the processor must have: "avx2 fma"; for the manifest */
	const char *attribute_features; /* beside features, of code by LLVM: what attributes add;
	                                   NULL: nothing */
	const char *flags;     /* of the C compiler, beside the common ones */
	const char *machine;   /* the machine that is assumed where none is named */
	const void *without;   /* tests: a row of a prelude that is struck out */
} Isa;

typedef struct Target {
	Isa isa;
	Machine machine;
} Target;

static inline bool isa_has(const Isa *isa, IsaOp op) { return (isa->ops & op) != 0; }

/* By name or another name of it; NULL when unknown. The machine this runs on is named in
 * codegen/cpu/host.h. */
const Target *target_find(const char *name);
/* The names of all of them, for messages: "generic-c, x86-64-v2, ...". */
const char *target_list(Arena *);
/* In order of increasing capability; NULL after the last. */
const Target *target_at(uint32_t k);
/* Elements of that compute dtype in one register; 1 for scalar targets. */
uint32_t target_lanes(const Target *, DType);
/* Columns of a packed weight's panel: f32 lanes of the family's widest register. */
uint32_t target_panel(const Target *);
/* The lane count of vectorised kernels: all vector values of one kernel have it, whatever their
 * dtype; wider values take several registers. That of f32. */
uint32_t target_width(const Target *);
/* Compiler flags for every target: no fast-math, no contraction. */
const char *target_common_flags(void);

#endif
