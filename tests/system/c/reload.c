/* 100 cycles of load, run, unload must leave no mapping, descriptor or thread behind: reload
 * MODEL.so */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft_model.h"

static int entries(const char *path)
{
	int n = 0;
	DIR *d = opendir(path);
	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* Lines of /proc/self/maps that name the object. */
static int mappings(const char *object)
{
	char line[4096];
	int n = 0;
	const char *slash = strrchr(object, '/');
	FILE *f = fopen("/proc/self/maps", "r");
	while (f && fgets(line, sizeof line, f))
		n += strstr(line, slash ? slash + 1 : object) != NULL;
	if (f)
		fclose(f);
	return n;
}

static void *input_data(const WeftModel *m, const WeftTensorInfo *info, int64_t *shape)
{
	size_t n = info->dtype.bits / 8;
	for (uint32_t d = 0; d < info->rank; d++) {
		shape[d] = weft_dim(m, info, d)->value >= 0 ? weft_dim(m, info, d)->value : 2;
		n *= (size_t)shape[d];
	}
	return calloc(n + 1, 1);
}

static int cycle(const char *path, int pool)
{
	enum { MOST = 16 };
	WeftStatus status = {0};
	WeftInstance *in;
	const WeftModel *(*get)(void);
	void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!so)
		return fprintf(stderr, "%s\n", dlerror()), 1;
	*(void **)&get = dlsym(so, "weft_model");
	const WeftModel *m = get();
	const WeftEntry *e = weft_entry(m, 0);
	WeftTensor x[MOST] = {{0}}, y[MOST] = {{0}};
	int64_t shape[2 * MOST][16];
	if (m->open(m, NULL, &in, &status) || e->ninput > MOST || e->noutput > MOST)
		return fprintf(stderr, "%s\n", status.message), 1;
	for (uint32_t k = 0; k < e->ninput; k++)
		x[k] = (WeftTensor){input_data(m, weft_input(m, e, k), shape[k]),
				    {WEFT_CPU, 0},
				    (int32_t)weft_input(m, e, k)->rank,
				    weft_input(m, e, k)->dtype,
				    shape[k],
				    NULL,
				    0};
	WeftSizes *s = malloc(e->sizes_bytes);
	int code = m->sizes(in, 0, x, s, &status);
	for (uint32_t k = 0; !code && k < e->noutput; k++) {
		size_t n = weft_output(m, e, k)->dtype.bits / 8;
		memcpy(shape[MOST + k], weft_output_shape(m, e, s, k),
		       weft_output(m, e, k)->rank * sizeof(int64_t));
		for (uint32_t d = 0; d < weft_output(m, e, k)->rank; d++)
			n *= (size_t)shape[MOST + k][d];
		y[k] = (WeftTensor){calloc(n + 1, 1),
				    {WEFT_CPU, 0},
				    (int32_t)weft_output(m, e, k)->rank,
				    weft_output(m, e, k)->dtype,
				    shape[MOST + k],
				    NULL,
				    0};
	}
	WeftThreads *t = pool ? m->threads_new(WEFT_THREADS_POOL, 3, &status) : NULL;
	WeftContext c = {.size = sizeof c, .flags = WEFT_SHARE_ALL, .threads = t, .nthreads = 3};
	void *work = malloc(code ? 1 : s->workspace_bytes);
	code = code ? code : m->run(in, s, x, y, work, &c, &status);
	if (code)
		fprintf(stderr, "%s\n", status.message);
	if (pool)
		m->threads_free(t);
	m->close(in);
	for (uint32_t k = 0; k < MOST; k++) {
		free(x[k].data);
		free(y[k].data);
	}
	free(work);
	free(s);
	dlclose(so);
	return code;
}

static int check(const char *path, int pool, const char *name)
{
	if (cycle(path, pool))
		return 1;
	int fds = entries("/proc/self/fd"), tasks = entries("/proc/self/task"),
	    maps = mappings(path);
	for (int k = 0; k < 100; k++)
		if (cycle(path, pool))
			return 1;
	if (entries("/proc/self/fd") != fds || entries("/proc/self/task") != tasks || maps != 0 ||
	    mappings(path) != 0) {
		fprintf(stderr,
			"%s: %d descriptors, then %d; %d threads, then %d; %d mappings, then %d\n",
			name, fds, entries("/proc/self/fd"), tasks, entries("/proc/self/task"),
			maps, mappings(path));
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return fputs("usage: reload MODEL.so\n", stderr), 1;
	return check(argv[1], 1, "pool") || check(argv[1], 0, "default");
}
