/* Target descriptions: what schedules and emitters need to know about the machine compiled for. */
#ifndef WEFT_IR_TARGET_H
#define WEFT_IR_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "ir/graph/dtype.h"

/* How a vector of bools is held: not at all (one lane only), as an i32 vector of 0 and -1, in a mask
 * register. */
typedef enum { MASK_NONE, MASK_VECTOR, MASK_BITS } MaskKind;

typedef struct Target {
	const char *name;      /* "x86-64-v3", "aarch64-linux-gnu" */
	const char *family;    /* "x86-64", "aarch64", "riscv64", "generic": packed weights are shared within
	                          a family, and preludes belong to one */
	const char *triple;    /* of the tools and of LLVM: "x86_64-linux-gnu"; NULL: whatever the C compiler
	                          compiles for, and LLVM for this machine */
	const char *cpu;       /* LLVM's name of the processor; NULL: generic */
	const char *attributes; /* LLVM's features: "+avx2,+fma"; NULL: none */
	uint32_t vector_bytes; /* widest register; 0: plain scalar code */
	uint32_t nvreg;        /* vector registers */
	bool has_fma;          /* else schedules use mul and add; fma still works, slowly and exactly */
	bool has_f16;          /* converts between f16 and f32 in hardware */
	MaskKind masks;
	bool masked_memory;    /* masked loads and stores of 4- and 8-byte elements are cheap */
	bool gathers;          /* one instruction that gathers is faster than a load for each lane */
	uint32_t l1, l2;       /* data cache bytes of one core */
	uint32_t threads;      /* processors to assume; 0: unknown */
	uint32_t page;         /* bytes of the largest page the system may use: alignment of segments */
	const char *features;  /* what the processor must have: "avx2 fma"; for the manifest */
	const char *attribute_features; /* beside features, of code by LLVM: what attributes add; NULL: nothing */
	const char *flags;     /* of the C compiler, beside the common ones */
} Target;

/* By name or another name of it; NULL when unknown. The machine this runs on is named in codegen/host.h. */
const Target *target_find(const char *name);
/* The names of all of them, for messages: "generic-c, x86-64-v2, ...". */
const char *target_list(Arena *);
/* In order of increasing capability; NULL after the last. */
const Target *target_at(uint32_t k);
/* Elements of that compute dtype in one register; 1 for scalar targets. */
uint32_t target_lanes(const Target *, DType);
/* Columns of a packed weight's panel: f32 lanes of the family's widest register. */
uint32_t target_panel(const Target *);
/* The lane count of vectorised kernels: all vector values of one kernel have it, whatever their dtype;
 * wider values take several registers. That of f32. */
uint32_t target_width(const Target *);
/* Compiler flags for every target: no fast-math, no contraction. */
const char *target_common_flags(void);

#endif
