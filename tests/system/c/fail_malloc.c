/* Preloaded into the command: one of its allocations fails. Counted are those by the program itself
 * and by the libraries named in FAIL_IN ("weft libjansson libz weft_llvm"), not those within
 * libc; by one with a ~ before its name not while a library is loaded. FAIL_AT: which one, from 1;
 * FAIL_MARK: a file that is made when it has failed. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static atomic_long left;
static const char *libraries, *mark;
static _Thread_local int loading;

__attribute__((constructor)) static void start(void)
{
	const char *at = getenv("FAIL_AT");
	libraries = getenv("FAIL_IN");
	mark = getenv("FAIL_MARK");
	unsetenv("LD_PRELOAD"); /* not into compilers and linkers */
	left = at && libraries && mark ? atol(at) : 0;
}

/* Is the library of this address one of those named, up to the dot of its file name? */
static bool counts(const void *caller)
{
	Dl_info info;
	if (!dladdr(caller, &info) || !info.dli_fname)
		return false;
	const char *slash = strrchr(info.dli_fname, '/'),
		   *name = slash ? slash + 1 : info.dli_fname;
	size_t n = strcspn(name, ".");
	for (const char *p = libraries; *p; p += strcspn(p, " "), p += strspn(p, " ")) {
		bool later = *p == '~';
		p += later;
		if (strcspn(p, " ") == n && !strncmp(p, name, n))
			return !later || !loading;
	}
	return false;
}

static bool fails(const void *caller)
{
	if (atomic_load_explicit(&left, memory_order_relaxed) <= 0 || !counts(caller) ||
	    atomic_fetch_sub(&left, 1) != 1)
		return false;
	int fd = open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
	errno = ENOMEM;
	return true;
}

void *dlopen(const char *file, int mode)
{
	void *(*real)(const char *, int), *library;
	*(void **)&real = dlsym(RTLD_NEXT, "dlopen");
	loading++;
	library = real(file, mode);
	loading--;
	return library;
}

#define CALLER __builtin_extract_return_addr(__builtin_return_address(0))

void *malloc(size_t n)
{
	return fails(CALLER) ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	return fails(CALLER) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	return fails(CALLER) ? NULL : __libc_realloc(p, n);
}

void *aligned_alloc(size_t align, size_t n)
{
	return fails(CALLER) ? NULL : __libc_memalign(align, n);
}

int posix_memalign(void **p, size_t align, size_t n)
{
	*p = fails(CALLER) ? NULL : __libc_memalign(align, n);
	return *p ? 0 : ENOMEM;
}
