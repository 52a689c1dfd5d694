/* The threads of PyTorch, as a provider of threads. */
#include "_weft.h"

#include <dlfcn.h>
#include <pthread.h>

/* GNU's interface of an OpenMP library, which LLVM's and Intel's have, too. */
static struct {
	void (*parallel)(void (*)(void *), void *, unsigned n, unsigned flags);
	int (*number)(void), (*count)(void);
} omp;

typedef struct {
	void (*body)(void *, int32_t, int32_t);
	void *arg;
} ParallelBody;

static bool forked;

static void run_body(void *arg)
{
	const ParallelBody *w = arg;
	w->body(w->arg, omp.number(), omp.count());
}

static void run_parallel(void *user, int32_t n, void (*body)(void *, int32_t, int32_t), void *arg)
{
	(void)user;
	ParallelBody w = {body, arg};
	omp.parallel(run_body, &w, (unsigned)n, 0);
}

static void child(void)
{
	forked = true;
}

/* Looks among the libraries that libtorch_cpu.so is linked with: a process may have several OpenMP
 * libraries. */
static bool find(void)
{
	void *torch = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
	if (!torch)
		return false;
	void *parallel = dlsym(torch, "GOMP_parallel");
	*(void **)&omp.number = dlsym(torch, "omp_get_thread_num");
	*(void **)&omp.count = dlsym(torch, "omp_get_num_threads");
	if (parallel && omp.number && omp.count && !pthread_atfork(NULL, NULL, child))
		*(void **)&omp.parallel = parallel;
	dlclose(torch);
	return omp.parallel;
}

const WeftThreads *torch_threads(void)
{
	static const WeftThreads threads = {.parallel = run_parallel};
	return !forked && (omp.parallel || find()) ? &threads : NULL;
}
