/* Private to codegen/print/cuda: the languages of kernels for blocks of threads. */
#ifndef WEFT_CODEGEN_PRINT_CUDA_PRINT_PRIV_H
#define WEFT_CODEGEN_PRINT_CUDA_PRINT_PRIV_H

#include "codegen/print/c/emit_priv.h"

/* A language, and the functions that its kernels call, each part ahead of the kernels if one of
 * them needs the part. */
typedef struct {
	const CDialect *dialect;
	const char *barrier;   /* what CBlock.sync names */
	const char *checks;    /* weft_fail, which records a failed check */
	const char *copies;    /* asynchronous copies */
	const char *exchanges; /* exchanges in a warp, of which all threads are there */
} BlockLanguage;

extern const BlockLanguage cuda_language, hip_language;

/* Fields of a CBlock: the names of what each language defines. */
#define BLOCK_NAMES \
	.failure = "WeftFailure", \
	.shared = "__shared__ __align__(16)", \
	.copy = "weft_copy", \
	.commit = "weft_commit", \
	.wait = "weft_wait", \
	.warp = { \
		[WARP_XOR] = "weft_xor", [WARP_UP] = "weft_up", [WARP_DOWN] = "weft_down", \
		[WARP_LANE] = "weft_lane", [WARP_ANY] = "weft_any", [WARP_ALL] = "weft_all", \
		[WARP_BALLOT] = "weft_ballot", \
	}

/* Fields of a CDialect: the words that the languages have in common. */
#define DIALECT_WORDS \
	.helper = "static __device__ inline", \
	.function = "static __device__", \
	.table = "static __device__ const", \
	.local = "__align__(16)", \
	.restrict_word = "__restrict__", \
	.cpp = true

/* The record of failed checks, in the head of each language. */
#define FAILURE_RECORD                                                                             \
	"\n"                                                                                       \
	"/* The failed check of the first thread, in the order of launches, tasks and threads, "   \
	"which has\n"                                                                              \
	" * the greatest key. id 0: none. */\n"                                                    \
	"struct WeftFailure {\n"                                                                   \
	"\tint lock, id;\n"                                                                        \
	"\tuint64_t key;\n"                                                                        \
	"\tint64_t value[13];\n"                                                                   \
	"};\n"                                                                                     \
	"\n"                                                                                       \
	"/* Whether a check of a launch before failed. */\n"                                       \
	"static __device__ inline bool weft_stopped(const WeftFailure *f, int64_t launch)\n"       \
	"{\n"                                                                                      \
	"\treturn f && ((const volatile WeftFailure *)f)->key > ~((uint64_t)launch << 42);\n"      \
	"}\n"
_Static_assert(MAX_FAIL_ARGS == 13, "WeftFailure.value");

#endif
