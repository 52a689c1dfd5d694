/* HIP, which clang compiles for AMD's GPUs, for gfx90a here. The text needs no header of HIP and no
 * library of the device: what CUDA has and HIP has in those is written with clang's builtins.
 *
 * Wavefronts have 64 threads; a warp of loop IR, 32 threads, is one half of a wavefront. Exchanges
 * stay within a half, and votes take the bits of a half. The other half need not be there: it may
 * wait where the two halves have parted. */
#include "codegen/print/cuda/print_priv.h"

static const char head[] =
	"#include <stddef.h>\n"
	"#include <stdint.h>\n"
	"#ifndef __global__\n"
	"#define __global__ __attribute__((global))\n"
	"#endif\n"
	"#ifndef __device__\n"
	"#define __device__ __attribute__((device))\n"
	"#endif\n"
	"#ifndef __shared__\n"
	"#define __shared__ __attribute__((shared))\n"
	"#endif\n"
	"#ifndef __align__\n"
	"#define __align__(n) __attribute__((aligned(n)))\n"
	"#endif\n"
	"#define WEFT_THREADS(n) __attribute__((amdgpu_flat_work_group_size(n, n)))\n"
	"#define WEFT_THREAD __builtin_amdgcn_workitem_id_x()\n"
	"#define WEFT_BLOCK __builtin_amdgcn_workgroup_id_x()\n"
	"#ifndef INFINITY\n"
	"#define INFINITY __builtin_inff()\n"
	"#define NAN __builtin_nanf(\"\")\n"
	"#endif\n"
	"#define memcpy(to, from, n) __builtin_memcpy(to, from, n)\n"
	"#define fabsf(x) __builtin_fabsf(x)\n"
	"#define fabs(x) __builtin_fabs(x)\n"
	"#define fmaf(a, b, c) __builtin_fmaf(a, b, c)\n"
	"#define fma(a, b, c) __builtin_fma(a, b, c)\n"
	"#define floorf(x) __builtin_floorf(x)\n"
	"#define floor(x) __builtin_floor(x)\n"
	"#define ceilf(x) __builtin_ceilf(x)\n"
	"#define ceil(x) __builtin_ceil(x)\n"
	"#define truncf(x) __builtin_truncf(x)\n"
	"#define trunc(x) __builtin_trunc(x)\n"
	"#define rintf(x) __builtin_rintf(x)\n"
	"#define rint(x) __builtin_rint(x)\n"
	"#define sqrtf(x) weft_sqrtf(x)\n"
	"#define sqrt(x) weft_sqrt(x)\n"
	"\n"
	"/* Products and sums are rounded apart. */\n"
	"#pragma clang fp contract(off)\n"
	"\n"
	"/* The instruction is off by up to one unit in the last place: of the result and its "
	"neighbours\n"
	" * the right one. */\n"
	"[[maybe_unused]] static __device__ inline float weft_sqrtf(float x)\n"
	"{\n"
	"\tconst bool small = x < 0x1p-96f;\n"
	"\tconst float y = small ? x * 0x1p+32f : x, s = __builtin_amdgcn_sqrtf(y);\n"
	"\tint32_t bits;\n"
	"\tmemcpy(&bits, &s, sizeof bits);\n"
	"\tconst int32_t below = bits - 1, above = bits + 1;\n"
	"\tfloat down, up;\n"
	"\tmemcpy(&down, &below, sizeof down);\n"
	"\tmemcpy(&up, &above, sizeof up);\n"
	"\tfloat r = fmaf(-down, s, y) <= 0.0f ? down : s;\n"
	"\tr = fmaf(-up, s, y) > 0.0f ? up : r;\n"
	"\tr = small ? r * 0x1p-16f : r;\n"
	"\treturn x == 0.0f || x == INFINITY ? x : r;\n"
	"}\n"
	"\n"
	"/* By two steps of Newton's method from the instruction's 1 / sqrt(x). */\n"
	"[[maybe_unused]] static __device__ inline double weft_sqrt(double x)\n"
	"{\n"
	"\tconst bool small = x < 0x1p-767;\n"
	"\tconst double y = small ? x * 0x1p+256 : x, start = __builtin_amdgcn_rsq(y);\n"
	"\tdouble g = y * start, h = 0.5 * start;\n"
	"\tconst double r = fma(-h, g, 0.5);\n"
	"\tg = fma(g, r, g);\n"
	"\th = fma(h, r, h);\n"
	"\tg = fma(fma(-g, g, y), h, g);\n"
	"\tg = fma(fma(-g, g, y), h, g);\n"
	"\tg = small ? g * 0x1p-128 : g;\n"
	"\treturn x == 0.0 || x == (double)INFINITY ? x : g;\n"
	"}\n" FAILURE_RECORD;

/* A wavefront goes through a loop as one: if a thread left the loop with the lock, and others
 * stayed to wait for the lock, none would go on. So the threads of a wavefront come in turn. */
static const char checks[] =
	"\n"
	"static __device__ void weft_fail(WeftFailure *f, int64_t launch, int id, int64_t task, "
	"const int64_t *value, int n)\n"
	"{\n"
	"\tconst uint64_t key = ~(((uint64_t)launch << 42) + (uint64_t)task * 1024 + "
	"WEFT_THREAD);\n"
	"#pragma clang loop unroll(disable)\n"
	"\tfor (unsigned lane = 0; lane < 64; lane++) {\n"
	"\t\tif (lane == WEFT_THREAD % 64) {\n"
	"\t\t\tfor (int free = 0; !__hip_atomic_compare_exchange_strong(&f->lock, &free, 1, "
	"__ATOMIC_ACQUIRE, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);\n"
	"\t\t\t     free = 0)\n"
	"\t\t\t\t__builtin_amdgcn_s_sleep(1);\n"
	"\t\t\tvolatile WeftFailure *v = f;\n"
	"\t\t\tif (key > v->key) {\n"
	"\t\t\t\tv->id = id;\n"
	"\t\t\t\tv->key = key;\n"
	"\t\t\t\tfor (int k = 0; k < n; k++)\n"
	"\t\t\t\t\tv->value[k] = value[k];\n"
	"\t\t\t}\n"
	"\t\t\t__hip_atomic_store(&f->lock, 0, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);\n"
	"\t\t}\n"
	"\t\t__builtin_amdgcn_wave_barrier();\n"
	"\t}\n"
	"}\n";

/* HIP has no asynchronous copies: done when they begin. */
static const char copies[] = "\n"
			     "template <int n> static __device__ inline void weft_copy(void *to, "
			     "const void *from, bool in)\n"
			     "{\n"
			     "\tstruct __align__(4) {\n"
			     "\t\tunsigned char byte[n];\n"
			     "\t} x = {};\n"
			     "\tif (in)\n"
			     "\t\tmemcpy(&x, __builtin_assume_aligned(from, n), n);\n"
			     "\tmemcpy(__builtin_assume_aligned(to, n), &x, n);\n"
			     "}\n"
			     "#define weft_copy_4(to, from, in) weft_copy<4>(to, from, in)\n"
			     "#define weft_copy_8(to, from, in) weft_copy<8>(to, from, in)\n"
			     "#define weft_copy_16(to, from, in) weft_copy<16>(to, from, in)\n"
			     "#define weft_commit() (void)0\n"
			     "#define weft_wait(n) (void)0\n";

static const char exchanges[] =
	"\n"
	"/* A warp is 32 threads, one half of a wavefront. x of a lane of the warp; where the warp "
	"has no\n"
	" * such lane, the own x. */\n"
	"template <typename T> static __device__ inline T weft_from(T x, int64_t lane)\n"
	"{\n"
	"\tenum { WORDS = (sizeof(T) + 3) / 4 };\n"
	"\tconst unsigned own = WEFT_THREAD % 32, from = lane >= 0 && lane < 32 ? (unsigned)lane : "
	"own;\n"
	"\tint word[WORDS] = {};\n"
	"\tmemcpy(word, &x, sizeof x);\n"
	"\tfor (int k = 0; k < WORDS; k++)\n"
	"\t\tword[k] = __builtin_amdgcn_ds_bpermute((int)(4 * (WEFT_THREAD % 64 - own + from)), "
	"word[k]);\n"
	"\tmemcpy(&x, word, sizeof x);\n"
	"\treturn x;\n"
	"}\n"
	"#define weft_lane_number() (int64_t)(WEFT_THREAD % 32)\n"
	"#define weft_xor(x, k) weft_from(x, weft_lane_number() ^ (int64_t)(k))\n"
	"#define weft_up(x, k) weft_from(x, weft_lane_number() - (int64_t)(k))\n"
	"#define weft_down(x, k) weft_from(x, weft_lane_number() + (int64_t)(k))\n"
	"#define weft_lane(x, k) weft_from(x, (int64_t)(k))\n"
	"\n"
	"/* The votes of a wavefront are 64 bits. 33: not equal. */\n"
	"[[maybe_unused]] static __device__ inline uint32_t weft_ballot(bool x)\n"
	"{\n"
	"\treturn (uint32_t)(__builtin_amdgcn_uicmp((unsigned)x, 0u, 33) >> (WEFT_THREAD & 32));\n"
	"}\n"
	"#define weft_any(x) (weft_ballot(x) != 0)\n"
	"#define weft_all(x) (weft_ballot(x) == 0xffffffffu)\n";

/* Orders all memory, as CUDA's barrier does. */
static const char barrier[] =
	"\n"
	"static __device__ inline void weft_sync()\n"
	"{\n"
	"\t__builtin_amdgcn_fence(__ATOMIC_RELEASE, \"workgroup\");\n"
	"\t__builtin_amdgcn_s_barrier();\n"
	"\t__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, \"workgroup\");\n"
	"}\n";

/* What kernels call, and what the head of the text declares. */
static const char *const own[] = {"first", "failure", "launch", "failed", "value", NULL};

static const CBlock block = {
	.kernel = "extern \"C\" __global__ void WEFT_THREADS(%u)",
	.task = "WEFT_BLOCK",
	.thread = "(int32_t)WEFT_THREAD",
	.sync = "weft_sync",
	BLOCK_NAMES,
};

static const CDialect hip = {
	DIALECT_WORDS,
	.own = own,
	.head = head,
	.block = &block,
};

const BlockLanguage hip_language = {.dialect = &hip,
				    .checks = checks,
				    .copies = copies,
				    .exchanges = exchanges,
				    .barrier = barrier};
