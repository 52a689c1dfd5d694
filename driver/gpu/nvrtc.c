#include "driver/gpu/nvrtc.h"

#include <dlfcn.h>
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "driver/gpu/pip.h"

/* ---- the library ---- */

typedef struct NvrtcProgram NvrtcProgram;

/* The functions of NVRTC that are used, as its manual describes them. Results: 0 is success. */
typedef struct {
	int (*version)(int *major, int *minor);
	int (*create)(NvrtcProgram **, const char *text, const char *name, int nheader,
		      const char *const *header, const char *const *include);
	int (*compile)(NvrtcProgram *, int noption, const char *const *option);
	int (*log_size)(NvrtcProgram *, size_t *), (*log)(NvrtcProgram *, char *);
	int (*cubin_size)(NvrtcProgram *, size_t *), (*cubin)(NvrtcProgram *, char *);
	int (*ptx_size)(NvrtcProgram *, size_t *), (*ptx)(NvrtcProgram *, char *);
	int (*destroy)(NvrtcProgram **);
	const char *(*error)(int);
} Nvrtc;

static struct {
	Nvrtc fn;
	char missing[512]; /* why it cannot be used; empty: it can */
} library;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Opens the file of a folder whose name begins so. Of one that cannot be opened, library.missing
 * says why. The library opens its part "builtins" by name, which the loader finds only if the part
 * is open already. */
static void *open_in(const char *folder, const char *begin)
{
	char path[4096];
	void *so = NULL;
	DIR *d = opendir(folder);
	for (struct dirent *e; d && !so && (e = readdir(d));)
		if (!strncmp(e->d_name, begin, strlen(begin)) &&
		    snprintf(path, sizeof path, "%s/%s", folder, e->d_name) < (int)sizeof path)
			if (!(so = dlopen(path, RTLD_NOW | RTLD_GLOBAL)))
				snprintf(library.missing, sizeof library.missing,
					 "NVRTC cannot be loaded: %.400s", dlerror());
	if (d)
		closedir(d);
	if (so)
		*library.missing = 0;
	return so;
}

/* Opens the library. named: the folder, or a file in it. */
static void *open_named(const char *named)
{
	char folder[4096];
	struct stat s;
	void *so = NULL;
	if (snprintf(folder, sizeof folder, "%s", named) < (int)sizeof folder) {
		if (stat(folder, &s) == 0 && !S_ISDIR(s.st_mode)) {
			char *slash = strrchr(folder, '/');
			strcpy(slash ? slash + 1 : folder, slash ? "" : ".");
		}
		open_in(folder, "libnvrtc-builtins.so");
		*library.missing = 0;
		so = open_in(folder, "libnvrtc.so.");
	}
	if (!so && !*library.missing)
		snprintf(library.missing, sizeof library.missing,
			 "there is no libnvrtc.so in %.400s ($WEFT_NVRTC)", named);
	return so;
}

static void *open_library(void)
{
	static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
	const char *named = getenv("WEFT_NVRTC");
	char folder[PATH_MAX];
	void *so = NULL;
	if (named && *named)
		return open_named(named);
	for (size_t k = 0; !so && k < sizeof names / sizeof *names; k++)
		so = dlopen(names[k], RTLD_NOW | RTLD_GLOBAL);
	for (size_t k = 0; !so && k < sizeof names / sizeof *names; k++)
		so = pip_folder(names[k], folder) ? open_named(folder) : NULL;
	if (!so && !*library.missing)
		snprintf(library.missing, sizeof library.missing,
			 "NVRTC is not found: libnvrtc.so.13 or .12 of the CUDA toolkit, or of the "
			 "Python package nvidia-cuda-nvrtc of $WEFT_PYTHON, else python3; "
			 "$WEFT_NVRTC may name its folder");
	return so;
}

static void load(void)
{
	static const struct {
		const char *name;
		size_t at;
	} wanted[] = {
		{"nvrtcVersion", offsetof(Nvrtc, version)},
		{"nvrtcCreateProgram", offsetof(Nvrtc, create)},
		{"nvrtcCompileProgram", offsetof(Nvrtc, compile)},
		{"nvrtcGetProgramLogSize", offsetof(Nvrtc, log_size)},
		{"nvrtcGetProgramLog", offsetof(Nvrtc, log)},
		{"nvrtcGetCUBINSize", offsetof(Nvrtc, cubin_size)},
		{"nvrtcGetCUBIN", offsetof(Nvrtc, cubin)},
		{"nvrtcGetPTXSize", offsetof(Nvrtc, ptx_size)},
		{"nvrtcGetPTX", offsetof(Nvrtc, ptx)},
		{"nvrtcDestroyProgram", offsetof(Nvrtc, destroy)},
		{"nvrtcGetErrorString", offsetof(Nvrtc, error)},
	};
	void *so = open_library();
	for (size_t k = 0; so && k < sizeof wanted / sizeof *wanted; k++) {
		void *fn = dlsym(so, wanted[k].name);
		memcpy((char *)&library.fn + wanted[k].at, &fn, sizeof fn);
		if (!fn)
			snprintf(library.missing, sizeof library.missing,
				 "NVRTC has no function %s: expected version 12 or later",
				 wanted[k].name);
	}
}

const char *nvrtc_missing(Arena *a)
{
	pthread_once(&once, load);
	return *library.missing ? arena_printf(a, "%s", library.missing) : NULL;
}

uint32_t nvrtc_version(void)
{
	int major = 0, minor = 0;
	pthread_once(&once, load);
	if (*library.missing || library.fn.version(&major, &minor))
		return 0;
	return 1000 * (uint32_t)major + 10 * (uint32_t)minor;
}

/* ---- the report ---- */

/* Returns the number ahead of the word in a line, "0 bytes stack frame"; 0 if the word is not
 * there. */
static uint32_t number_before(const char *line, const char *word)
{
	const char *at = strstr(line, word);
	while (at && at > line && at[-1] == ' ')
		at--;
	while (at && at > line && at[-1] >= '0' && at[-1] <= '9')
		at--;
	return at ? (uint32_t)strtoul(at, NULL, 10) : 0;
}

static const char *next_line(const char *s)
{
	const char *end = strchr(s, '\n');
	return end ? end + 1 : s + strlen(s);
}

/* Returns what follows the word in a line, up to one of `ends`; NULL if the word is not there. */
static const char *text_after(Arena *a, const char *line, const char *word, const char *ends)
{
	const char *at = strstr(line, word);
	return at ? arena_strndup(a, at + strlen(word), strcspn(at + strlen(word), ends)) : NULL;
}

static void read_line(Arena *a, const char *line, GpuImage *out, bool *of_kernel)
{
	const char *entry = text_after(a, line, "Compiling entry function '", "'");
	const char *function = text_after(a, line, "Function properties for ", "\n");
	if (entry)
		array_push(a, &out->use, (GpuUse){.name = entry});
	GpuUse *u = out->use.n ? &out->use.data[out->use.n - 1] : NULL;
	if (function)
		*of_kernel = u && !strcmp(function, u->name);
	if (!u || !*of_kernel)
		return;
	if (strstr(line, "bytes stack frame")) {
		u->stack = number_before(line, "bytes stack frame");
		u->spilled = number_before(line, "bytes spill stores") +
			     number_before(line, "bytes spill loads");
	} else if (strstr(line, "Used ")) {
		u->registers = number_before(line, "registers");
		u->shared = number_before(line, "bytes smem");
	}
}

static void read_report(Arena *a, const char *log, GpuImage *out)
{
	Text warnings;
	bool of_kernel = false;
	text_init(&warnings, a);
	for (const char *s = log; *s; s = next_line(s)) {
		const char *line = arena_strndup(a, s, (size_t)(next_line(s) - s));
		if (strstr(line, "warning"))
			text_add(&warnings, line);
		read_line(a, line, out, &of_kernel);
	}
	out->warnings = warnings.n ? warnings.data : NULL;
}

/* ---- compiling ---- */

static const char *read_log(Ctx *ctx, NvrtcProgram *p)
{
	size_t n = 0;
	if (library.fn.log_size(p, &n) || !n)
		return "";
	char *log = arena_alloc(ctx->arena, n + 1);
	if (library.fn.log(p, log))
		return "";
	log[n] = 0;
	return log;
}

static bool read_images(Ctx *ctx, NvrtcProgram *p, GpuImage *out)
{
	size_t nptx = 0;
	if (library.fn.cubin_size(p, &out->cubin_bytes) || library.fn.ptx_size(p, &nptx))
		return false;
	char *cubin = arena_alloc(ctx->arena, out->cubin_bytes + 1),
	     *ptx = arena_alloc(ctx->arena, nptx + 1);
	if (library.fn.cubin(p, cubin) || library.fn.ptx(p, ptx))
		return false;
	ptx[nptx] = 0;
	out->cubin = cubin;
	out->ptx = ptx;
	return true;
}

static const char *first_error(Arena *a, const char *log)
{
	for (const char *s = log; *s; s = next_line(s)) {
		const char *line = arena_strndup(a, s, strcspn(s, "\n"));
		if (strstr(line, "error"))
			return line;
	}
	return *log ? arena_strndup(a, log, strcspn(log, "\n")) : "no message";
}

bool nvrtc_compile(Ctx *ctx, const char *name, const char *text, const char *arch, GpuImage *out)
{
	/* no contraction and no approximations: the bits of the CPU for single operations */
	const char *option[] = {arena_printf(ctx->arena, "--gpu-architecture=%s", arch),
				"--fmad=false", "--std=c++17", "--ptxas-options=-v"};
	const char *no = nvrtc_missing(ctx->arena);
	NvrtcProgram *p = NULL;
	*out = (GpuImage){0};
	if (no)
		return ctx_error(ctx, NULL, "%s", no);
	int rc = library.fn.create(&p, text, name, 0, NULL, NULL);
	if (rc)
		return ctx_error(ctx, NULL, "%s for %s: NVRTC: %s", name, arch,
				 library.fn.error(rc));
	rc = library.fn.compile(p, sizeof option / sizeof *option, option);
	const char *log = read_log(ctx, p);
	bool ok = !rc && read_images(ctx, p, out);
	library.fn.destroy(&p);
	if (!ok)
		return ctx_error(ctx, NULL, "%s for %s: NVRTC: %s: %s", name, arch,
				 library.fn.error(rc), first_error(ctx->arena, log));
	read_report(ctx->arena, log, out);
	return true;
}
