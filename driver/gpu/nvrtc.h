/* NVRTC, the library that compiles CUDA C for GPUs. It is loaded when it is first asked for:
 * neither building nor running weft needs it. Needs no GPU. */
#ifndef WEFT_DRIVER_GPU_NVRTC_H
#define WEFT_DRIVER_GPU_NVRTC_H

#include "base/array.h"
#include "base/ctx.h"

/* What a kernel takes of a multiprocessor, as the compiler reports. */
typedef struct {
	const char *name;
	uint32_t registers;      /* of a thread */
	uint32_t shared;         /* bytes of static shared memory of a block */
	uint32_t stack;          /* bytes of a thread's stack: local arrays, spilled registers */
	uint32_t spilled;        /* bytes of spilled registers that are stored and loaded */
} GpuUse;

/* Machine code of one text for one architecture; in the context's arena. */
typedef struct {
	const void *cubin;
	size_t cubin_bytes;
	const char *ptx;         /* for later architectures; ends with 0 */
	ARRAY(GpuUse) use;       /* by kernel, in the order of the report */
	const char *warnings;    /* lines of the log that are warnings; NULL: none */
} GpuImage;

/* Returns NULL if NVRTC can be used, else a sentence, in the arena, that says why not. The first
 * call in the process looks for the library: in the folder $WEFT_NVRTC, or of the file of that
 * name, if that is set, else where the system's loader looks, then among the packages of a Python
 * (pip.h). */
const char *nvrtc_missing(Arena *);
/* Returns the version of NVRTC, 1000 * major + 10 * minor; 0 if the library cannot be used. */
uint32_t nvrtc_version(void);
/* Compiles CUDA C for an architecture, "sm_90", without contraction of multiplications and
 * additions. `name` is for messages. Any number of threads may call at the same time, each with a
 * context of its own. Returns false after an error: NVRTC cannot be used (nvrtc_missing), or the
 * compiler's first message; *out is then of no use. */
MUST_LOOK bool nvrtc_compile(Ctx *, const char *name, const char *text, const char *arch,
			     GpuImage *out);

#endif
