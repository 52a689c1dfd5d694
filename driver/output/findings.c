/* What this machine has of what compiling and running use (weft_findings). */
#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver/api/driver_priv.h"
#include "driver/artifact/backend.h"
#include "driver/artifact/cache.h"
#include "driver/artifact/link.h"
#include "driver/gpu/nvrtc.h"
#include "driver/gpu/pip.h"
#include "driver/targets/gpu_here.h"
#include "runtime/lapack.h"

typedef struct {
	Weft *w;
	ARRAY(WeftFinding) list;
} FindingSearch;

static void add(FindingSearch *s, const char *name, bool found, const char *what,
		const char *advice)
{
	array_push(weft_arena(s->w), &s->list,
		   (WeftFinding){name, what, found ? "" : advice, found});
}

/* Returns the first message since the mark; removes it and later ones. */
static const char *taken_back(Ctx *ctx, CtxMark mark)
{
	const Diag *d = mark.last ? mark.last->next : ctx->first;
	const char *text = d ? arena_strdup(ctx->arena, d->text) : "";
	ctx_rewind(ctx, mark);
	return text;
}

/* ---- the processor ---- */

static void find_target(FindingSearch *s)
{
	uint32_t n;
	const WeftTargetInfo *t = weft_targets(s->w, "native", &n);
	add(s, "processor", n > 0,
	    n ? arena_printf(weft_arena(s->w), "target %s%s%s", t->name, *t->features ? ": " : "",
			     t->features)
	      : "no target for it",
	    "name one with --target (weft show --targets)");
}

/* Adds the back ends that make files for the processor, of which one may be missing in a build. */
static void find_backends(FindingSearch *s)
{
	const Compilation none = {.w = s->w, .ctx = s->w->ctx};
	for (const Backend *const *b = backends; *b; b++)
		if ((*b)->absent)
			add(s, arena_printf(weft_arena(s->w), "back end %s", (*b)->name),
			    backend_available(*b, &none), (*b)->about, (*b)->absent);
}

#ifdef __x86_64__
static const char *const own_linker = "Weft's own";
#else
static const char *const own_linker = NULL;
#endif

static void find_compilers(FindingSearch *s)
{
	static const char *const linker[] = {"ld.lld", "ld.lld-19", "ld"};
	Arena *a = weft_arena(s->w);
	const char *cc = getenv("CC"), *ld = NULL;
	char path[PATH_MAX];
	cc = cc && *cc ? cc : "cc";
	const char *word = arena_printf(a, "%.*s", (int)strcspn(cc, " "), cc);
	for (size_t k = 0; !ld && k < sizeof linker / sizeof *linker; k++)
		ld = on_path(linker[k], path) ? linker[k] : NULL;
	ld = ld ? ld : own_linker;
	add(s, "linker", ld, ld ? ld : "neither ld.lld nor ld is on PATH",
	    "install lld-19 or binutils, for shared objects without a C compiler");
	add(s, "C compiler", on_path(word, path), cc,
	    "install gcc or clang, or set CC, for --backend c");
}

/* ---- libraries ---- */

static void find_lapack(FindingSearch *s)
{
	WeftStatus status;
	bool found = weft_lapack_load(&status) == WEFT_OK;
	add(s, "LAPACK", found, found ? "found" : "no liblapack.so.3",
	    "install liblapack3 or libopenblas0: models with eigenvalues and singular values of "
	    "large matrices need it");
}

/* Looks for cuBLASLt as compiled models do. */
static void find_cublas(FindingSearch *s)
{
	static const char *const library[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
	const char *named = getenv("WEFT_CUBLASLT"),
		   *advice =
			   "install cuBLAS of the CUDA toolkit: large products on GPUs are slower "
			   "without";
	char pip[PATH_MAX];
	named = named && *named ? named : NULL;
	void *so = named ? dlopen(named, RTLD_LAZY | RTLD_LOCAL) : NULL;
	for (size_t k = 0; !so && !named && k < sizeof library / sizeof *library; k++) {
		so = dlopen(library[k], RTLD_LAZY | RTLD_LOCAL);
		if (!so && pip_folder(library[k], pip))
			advice = arena_printf(weft_arena(s->w),
					      "set WEFT_CUBLASLT=%s/%s, which pip installed", pip,
					      library[k]);
	}
	add(s, "cuBLASLt", so, so ? "found" : "no libcublasLt.so", advice);
}

static void find_gpu(FindingSearch *s)
{
	Ctx *ctx = s->w->ctx;
	CtxMark mark = ctx_mark(ctx);
	const Target *t = gpu_here(ctx, "cuda");
	const char *why = taken_back(ctx, mark), *no = nvrtc_missing(ctx->arena);
	add(s, "CUDA driver", t, t ? arena_printf(ctx->arena, "target %s", t->gpu->name) : why,
	    "install NVIDIA's driver, for --device cuda");
	add(s, "NVRTC", !no,
	    no ? no
	       : arena_printf(ctx->arena, "version %u.%u", nvrtc_version() / 1000,
			      nvrtc_version() % 1000 / 10),
	    "install the package nvidia-cuda-nvrtc of Python; WEFT_PYTHON names the Python if it "
	    "is not python3, WEFT_NVRTC the folder of another libnvrtc");
	find_cublas(s);
}

/* ---- the cache ---- */

static const char *contents(Arena *a, const char *folder)
{
	uint64_t n = 0, bytes = 0;
	DIR *d = opendir(folder);
	for (const struct dirent *e; d && (e = readdir(d));) {
		struct stat st;
		const char *path = arena_printf(a, "%s/%s", folder, e->d_name);
		if (stat(path, &st) || !S_ISREG(st.st_mode))
			continue;
		n++;
		bytes += (uint64_t)st.st_size;
	}
	if (d)
		closedir(d);
	return arena_printf(a, "%s: %llu objects, %.1f MB%s", folder, (unsigned long long)n,
			    (double)bytes / 1e6, access(folder, W_OK) ? ", read only" : "");
}

static void find_cache(FindingSearch *s)
{
	Ctx *ctx = s->w->ctx;
	CtxMark mark = ctx_mark(ctx);
	const char *folder = cache_folder(ctx), *why = taken_back(ctx, mark);
	add(s, "cache", folder, folder ? contents(ctx->arena, folder) : *why ? why : "no folder",
	    "set WEFT_CACHE to a folder of yours: every compilation begins anew until then");
}

static bool search(void *arg)
{
	FindingSearch *s = arg;
	find_target(s);
	find_backends(s);
	find_compilers(s);
	find_lapack(s);
	find_cache(s);
	find_gpu(s);
	return true;
}

const WeftFinding *weft_findings(Weft *w, uint32_t *n)
{
	FindingSearch s = {.w = w};
	bool ok = boundary(w, search, &s);
	if (n)
		*n = ok ? s.list.n : 0;
	return ok ? s.list.data : NULL;
}
