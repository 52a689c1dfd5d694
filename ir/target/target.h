/* Targets. A target is an instruction set (Isa), which decides which instructions code may contain,
 * and a machine, whose costs decide between schedules: gcc's -march and -mtune. */
#ifndef WEFT_IR_TARGET_H
#define WEFT_IR_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "ir/graph/dtype.h"
#include "ir/scalar/scalar.h"
#include "ir/target/gpu.h"

/* How a vector of bools is represented: not at all (one lane only), as an i32 vector of 0 and -1,
 * in a mask register. */
typedef enum { MASK_NONE, MASK_VECTOR, MASK_BITS } MaskKind;

/* Features of an instruction set beyond plain arithmetic, comparison, selection and memory; rows of
 * preludes require them (ir/loop/prelude.h). */
typedef enum {
	ISA_FMA = 1,     /* f32 and f64: a * b + c with one rounding */
	ISA_F16 = 2,     /* conversion between f16 and f32 */
	ISA_GATHER = 4,  /* one instruction that gathers is faster than a load for each lane */
	ISA_LESSER = 8,  /* a < b ? a : b and a > b ? a : b of floats in one instruction */
	ISA_BF16 = 32,   /* dot2_bf16 */
	ISA_VNNI = 64,   /* dot4_u8s8 and dot2_s16 */
	ISA_SDOT = 128,  /* dot4_s8s8 */
	ISA_MADD = 256,  /* dot2_s16, of which dot4_u8s8 and dot4_s8s8 are made */
	ISA_SIGNS = 512, /* pairs_s8s8 */
	ISA_CONVERT = 16, /* floats to i32 and i64 give the smallest value where they do not fit */
	ISA_TILE_BF16 = 1 << 16, /* AMX: products of matrices of bf16 in fragments, sums in f32 */
	ISA_TILE_INT8 = 1 << 17  /* AMX: of i8 and u8, sums in i32 */
} IsaOp;

/* An instruction set: which instructions code may contain. The manifest names it; processors
 * without it are refused. */
typedef struct Isa {
	const char *name;      /* "x86-64-v3", "aarch64-linux-gnu" */
	const char *family;    /* "x86-64", "aarch64", "riscv64", "generic": targets of a family
	                          have packed weights and preludes in common */
	const char *triple;    /* of tools and LLVM, "x86_64-linux-gnu"; NULL: that of the C
	                          compiler, and for LLVM of this machine */
	const char *cpu;       /* LLVM's name of the processor; NULL: generic */
	const char *attributes; /* LLVM's features: "+avx2,+fma"; NULL: none */
	const char *abi;       /* LLVM's name of the calling convention; NULL: the triple's */
	uint32_t vector_bytes; /* bytes of the widest register; 0: scalar code */
	uint32_t nvreg;        /* vector registers */
	uint32_t npointer;     /* general registers that a loop has for pointers to rows, besides
	                          its counters and other operands */
	uint32_t ops;          /* the IsaOp bits of the set. Without ISA_FMA schedules use mul and
	                          add; fma is emulated exactly, and slow */
	MaskKind masks;
	bool of_block;         /* of the threads of a GPU; others have no functions of blocks */
	bool masked_memory;    /* masked loads and stores of elements of 4 and 8 bytes are cheap */
	uint32_t page;         /* bytes of the largest page that the system may use: the alignment
	                          of segments */
	const char *features;  /* the features that a processor must have, "avx2 fma"; for the
	                          manifest */
	const char *attribute_features; /* further features that LLVM's code needs because of
	                                   `attributes`; NULL: none */
	const char *flags;     /* flags of the C compiler, besides target_common_flags */
	const char *machine;   /* the machine to assume if none is named */
	const void *without;   /* for tests: a row of a prelude to ignore */
} Isa;

/* A target is a CPU, or a GPU whose threads have the instructions of `isa`. */
typedef struct Target {
	Isa isa;
	Machine machine; /* of a GPU: all of it as one machine (gpu_machine) */
	const Gpu *gpu;  /* NULL: a CPU */
} Target;

/* Whether the instruction set has a feature. */
static inline bool isa_has(const Isa *isa, IsaOp op) { return (isa->ops & op) != 0; }

/* Whether contractions of the target sum products of a's and b's integers, of 8 bits, by rows of
 * micro-kernels that take several steps at once (micro.h). False for GPUs. */
bool target_multiplies_bytes(const Target *, DType a, DType b);
/* Returns the CPU of that name or alias, with the machine Isa.machine, or the GPU of that name;
 * NULL if there is neither. Behind the name of a CPU may stand features of the table, in any order:
 * "x86-64-v4+vnni+bf16". codegen/cpu/host.h names the target of the processor that runs the
 * compiler. */
const Target *target_find(const char *name);
/* Returns the names of all CPUs, then of all GPUs, without aliases, for messages: "generic-c,
 * x86-64-v2, ...". */
const char *target_list(Arena *);
/* Returns CPU k, within a family in order of increasing capability; NULL after the last. */
const Target *target_at(uint32_t k);
/* Returns the name of feature k of that base, a target of target_at, "bf16"; NULL after the last.
 * Sets *needs to what the processor must have for it, "avx512bf16" (Isa.features). */
const char *target_feature_at(const Target *base, uint32_t k, const char **needs);
/* Returns GPU k; NULL after the last. */
const Target *target_gpu_at(uint32_t k);
/* Returns the number of elements of a real dtype in one register, as computed (in its
 * dtype_compute, bools as 4 bytes); 1 for scalar targets. */
uint32_t target_lanes(const Target *, DType);
/* Whether the local memory of a task holds that many elements for each of the matrices that it
 * computes side by side, one in each lane. False for GPUs. */
bool target_holds_members(const Target *, DType, int64_t elements);
/* Returns the number of columns in a panel of packed weights (a block of columns of a matrix that
 * is stored together): the f32 lanes of the widest register of the target and all CPUs of its
 * family (target_at), so that all of them read the same constants; 1 for scalar targets. */
uint32_t target_panel(const Target *);
/* Returns the number of lanes of vectorised kernels: the f32 lanes of a register. All vector values
 * of a kernel have this number of lanes, and wider dtypes take several registers, unless the
 * kernel's plan chooses fewer lanes (PlanLanes.n, tuning_lanes). 1 for scalar targets. */
uint32_t target_width(const Target *);
/* Returns the flags of the C compiler for every target, besides Isa.flags: -O2, and flags that keep
 * the bits of results (no contraction of a * b + c). */
const char *target_common_flags(void);

#endif
