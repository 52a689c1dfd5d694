#include "driver/backend.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/temp.h"
#include "driver/elf_note.h"
#include "interface_id.h"
#include "weft.h"

#ifdef WEFT_LLVM

#define LIBRARY "weft_llvm.so"

/* Loaded once per process and never unloaded: LLVM leaves threads' data behind. */
static struct {
	pthread_once_t once;
	const LlvmBackend *table;
	char why[600];
} loaded = {.once = PTHREAD_ONCE_INIT};

/* Beside the program or library that holds this code, else where it is installed. */
static bool library_path(char path[4096])
{
	Dl_info info;
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	if (dladdr((const void *)&loaded, &info) && info.dli_fname && info.dli_fname[0] == '/' && n < 0)
		n = snprintf(self, sizeof self, "%s", info.dli_fname);
	self[n > 0 && n < (ssize_t)sizeof self ? n : 0] = 0;
	char *slash = strrchr(self, '/');
	if (slash) {
		snprintf(path, 4096, "%.*s/" LIBRARY, (int)(slash - self), self);
		if (access(path, R_OK) == 0)
			return true;
	}
	snprintf(path, 4096, "%s/" LIBRARY, WEFT_LLVM);
	return access(path, R_OK) == 0;
}

static bool of_this_build(const char *path)
{
	return elf_has_note(path, LLVM_BACKEND_NOTE, WEFT_INTERFACE_ID);
}

/* As LLVM would, but nothing is left behind. */
static void end_process(const char *why)
{
	temp_abandon();
	fprintf(stderr, "error: LLVM: %s\n", why);
	_exit(1);
}

static void load(void)
{
	char path[4096];
	if (!library_path(path)) {
		snprintf(loaded.why, sizeof loaded.why,
			 "the LLVM back end (" LIBRARY ") lies neither beside this program nor in " WEFT_LLVM);
		return;
	}
	if (!of_this_build(path)) {
		snprintf(loaded.why, sizeof loaded.why, "%.500s does not belong to this build of weft", path);
		return;
	}
	void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const LlvmBackend *t = so ? dlsym(so, LLVM_BACKEND_SYMBOL) : NULL;
	if (!t)
		snprintf(loaded.why, sizeof loaded.why, "the LLVM back end cannot be loaded: %s", dlerror());
	else
		t->on_fatal(end_process), loaded.table = t;
}

bool weft_has_llvm(void)
{
	char path[4096];
	return library_path(path) && of_this_build(path);
}

const LlvmBackend *llvm_backend(Ctx *ctx)
{
	pthread_once(&loaded.once, load);
	if (!loaded.table)
		ctx_error(ctx, NULL, "%s", loaded.why);
	return loaded.table;
}

#else

bool weft_has_llvm(void)
{
	return false;
}

const LlvmBackend *llvm_backend(Ctx *ctx)
{
	ctx_error(ctx, NULL, "this weft was built without LLVM; use --backend c, or build with llvm-19-dev installed");
	return NULL;
}

#endif
