#include "driver/targets/gpu_here.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

bool gpu_here_is(const char *name)
{
	const size_t n = strlen("cuda");
	return !strncmp(name, "cuda", n) &&
	       (!name[n] || (name[n] == ':' && name[n + 1] &&
			     !name[n + 1 + strspn(name + n + 1, "0123456789")]));
}

/* Asks the driver for the architecture, 10 * major + minor; 0 after an error. The functions are
 * those of cuda.h. */
static int ask(Ctx *ctx, const char *name, int ordinal)
{
	enum { MAJOR = 75, MINOR = 76 };
	int (*init)(unsigned) = NULL, (*count)(int *) = NULL, (*get)(int *, int) = NULL,
	    (*attribute)(int *, int, int) = NULL;
	int n = 0, device = 0, major = 0, minor = 0;
	void *so = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL); /* stays */
	if (!so)
		return ctx_error(ctx, NULL, "%s: NVIDIA's driver is not there: %s", name,
				 dlerror()) ||
		       ctx_kind(ctx, REFUSAL_TOOL);
	*(void **)&init = dlsym(so, "cuInit");
	*(void **)&count = dlsym(so, "cuDeviceGetCount");
	*(void **)&get = dlsym(so, "cuDeviceGet");
	*(void **)&attribute = dlsym(so, "cuDeviceGetAttribute");
	if (!init || !count || !get || !attribute || init(0) || count(&n) || n == 0)
		return ctx_error(ctx, NULL, "%s: NVIDIA's driver finds no GPU", name) ||
		       ctx_kind(ctx, REFUSAL_TOOL);
	if (ordinal >= n)
		return ctx_error(ctx, NULL, "%s: there is no such GPU, only 0 to %d", name, n - 1);
	if (get(&device, ordinal) || attribute(&major, MAJOR, device) ||
	    attribute(&minor, MINOR, device))
		return ctx_error(ctx, NULL, "%s: NVIDIA's driver does not tell the architecture",
				 name);
	return 10 * major + minor;
}

const Target *gpu_here(Ctx *ctx, const char *name)
{
	const char *colon = strchr(name, ':');
	const Target *found = NULL;
	const int sm = ask(ctx, name, colon ? (int)strtol(colon + 1, NULL, 10) : 0);
	for (uint32_t k = 0; sm && target_gpu_at(k); k++) {
		const Target *t = target_gpu_at(k);
		const int of = t->gpu->arch && !t->gpu->hip
				       ? (int)strtol(t->gpu->arch + strlen("sm_"), NULL, 10)
				       : 0;
		if (of / 10 == sm / 10 && of <= sm)
			found = t;
	}
	if (sm && !found)
		ctx_error(ctx, NULL, "%s: there is no target for a device of sm_%d: there are %s",
			  name, sm, target_list(ctx->arena));
	return found;
}
