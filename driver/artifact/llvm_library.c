#include "driver/artifact/llvm_library.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/temp.h"
#include "driver/elf/elf_note.h"
#include "interface_id.h"
#include "weft.h"
#include "weft_file.h"

#ifdef WEFT_LLVM

#define LIBRARY "weft_llvm.so"
#define FOLDER  "WEFT_LLVM_FOLDER"

/* Loaded once per process and never unloaded: LLVM leaves threads' data behind. */
static struct {
	pthread_mutex_t lock;
	const LlvmBackend *table;
} loaded = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool library_in(const char *folder, size_t n, const char *below, char path[4096])
{
	int len = snprintf(path, 4096, "%.*s/%s" LIBRARY, (int)n, folder, below);
	return len < 4096 && access(path, R_OK) == 0;
}

/* Finds the file that holds this code, links followed: libweft.so, or a program that the
 * compiler is linked into. */
static bool own_file(char self[PATH_MAX])
{
	Dl_info info;
	struct link_map *map = NULL;
	if (!dladdr1((const void *)&loaded, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
		return false;
	/* The loader has no name for the program itself. */
	return realpath(*map->l_name ? map->l_name : "/proc/self/exe", self);
}

/* Finds the library beside that file, or where an installation has it, seen from the library or
 * from the command: prefixes may be moved. */
static bool library_near(char path[4096])
{
	static const char *const below[] = {"", "weft/", WEFT_LLVM_FROM_COMMAND};
	char self[PATH_MAX];
	char *slash = own_file(self) ? strrchr(self, '/') : NULL;
	for (size_t k = 0; slash && k < sizeof below / sizeof *below; k++)
		if (library_in(self, (size_t)(slash - self), below[k], path))
			return true;
	return false;
}

/* Finds the library. A folder that is named is the only one; else it is nearby, or where it is
 * installed. */
static bool library_path(const char *folder, char path[4096])
{
	const char *set = folder ? folder : getenv(FOLDER);
	if (set && *set)
		return library_in(set, strlen(set), "", path);
	return library_near(path) || library_in(WEFT_LLVM, strlen(WEFT_LLVM), "", path);
}

static bool of_this_build(const char *path)
{
	return elf_has_note(path, LLVM_BACKEND_NOTE, WEFT_INTERFACE_ID);
}

/* Ends the process as LLVM would, but leaves nothing behind. */
static void end_process(const char *why)
{
	temp_abandon();
	fprintf(stderr, "error: LLVM: %s\n", why);
	_exit(1);
}

/* Loads the library and returns its table, or NULL and why. */
static const LlvmBackend *load(const char *folder, char *why, size_t size)
{
	char path[4096];
	const char *set = folder ? folder : getenv(FOLDER);
	if (!library_path(folder, path)) {
		if (set && *set)
			snprintf(why, size, "the LLVM back end (" LIBRARY ") is not in %.3000s",
				 set);
		else
			snprintf(why, size, "%s",
				 "the LLVM back end (" LIBRARY
				 ") lies neither beside this program or library nor in " WEFT_LLVM
				 "; $" FOLDER " may name its folder");
		return NULL;
	}
	if (!of_this_build(path)) {
		snprintf(why, size, "%.3000s does not belong to this build of weft", path);
		return NULL;
	}
	WeftStatus status;
	if (weft_file_check(path, &status)) {
		snprintf(why, size, "the LLVM back end cannot be loaded: %s", status.message);
		return NULL;
	}
	void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const LlvmBackend *t = so ? dlsym(so, LLVM_BACKEND_SYMBOL) : NULL;
	if (!t)
		snprintf(why, size, "the LLVM back end cannot be loaded: %.3000s", dlerror());
	else
		t->on_fatal(end_process);
	return t;
}

bool llvm_is_there(const char *folder)
{
	char path[4096];
	return library_path(folder, path) && of_this_build(path);
}

bool weft_has_llvm(void)
{
	return llvm_is_there(NULL);
}

const LlvmBackend *llvm_backend(Ctx *ctx, const char *folder)
{
	char why[4000];
	pthread_mutex_lock(&loaded.lock);
	if (!loaded.table)
		loaded.table = load(folder, why, sizeof why);
	const LlvmBackend *t = loaded.table;
	pthread_mutex_unlock(&loaded.lock);
	if (!t)
		ctx_error(ctx, NULL, "%s", why), ctx_kind(ctx, REFUSAL_TOOL);
	return t;
}

const LlvmBackend *llvm_loaded(void)
{
	pthread_mutex_lock(&loaded.lock);
	const LlvmBackend *t = loaded.table;
	pthread_mutex_unlock(&loaded.lock);
	return t;
}

#else

bool llvm_is_there(const char *folder)
{
	(void)folder;
	return false;
}

bool weft_has_llvm(void)
{
	return false;
}

const LlvmBackend *llvm_backend(Ctx *ctx, const char *folder)
{
	(void)folder;
	ctx_error(ctx, NULL,
		  "this weft was built without LLVM; use --backend c, or build with llvm-19-dev "
		  "installed");
	return NULL;
}

const LlvmBackend *llvm_loaded(void)
{
	return NULL;
}

#endif
