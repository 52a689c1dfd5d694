/* Run a compiled model on tensors in a file; needs nothing but libc, so that it is easily built for
 * another machine:
 *
 *     aarch64-linux-gnu-gcc -Iinclude examples/run_file.c -o run_file -ldl
 *     qemu-aarch64 -L /usr/aarch64-linux-gnu ./run_file model.so inputs outputs THREADS [ENTRY]
 *
 * `weft check --runner` uses it that way. A file is, in this machine's byte order: the number of
 * tensors (u32); of each the dtype (WeftDType), the rank (i32), the extents (i64) and the row-major
 * elements. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft_file.h"
#include "weft_model.h"

static void die(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

static void *new_bytes(size_t n)
{
	void *p = aligned_alloc(64, (n + 64) / 64 * 64);
	if (!p)
		die("run_file", "out of memory");
	return memset(p, 0, n);
}

static size_t bytes_of(const WeftTensor *t)
{
	size_t n = (t->dtype.bits + 7u) / 8;
	for (int32_t d = 0; d < t->ndim; d++)
		n *= (size_t)t->shape[d];
	return n;
}

static void get(FILE *f, void *to, size_t n)
{
	if (fread(to, 1, n, f) != n)
		die("inputs", "truncated");
}

static void read_tensor(FILE *f, WeftTensor *t)
{
	memset(t, 0, sizeof *t);
	t->device.type = WEFT_CPU;
	get(f, &t->dtype, sizeof t->dtype);
	get(f, &t->ndim, sizeof t->ndim);
	if (t->ndim < 0 || t->ndim > 64)
		die("inputs", "not a file of tensors");
	t->shape = new_bytes((size_t)t->ndim * sizeof *t->shape);
	get(f, t->shape, (size_t)t->ndim * sizeof *t->shape);
	t->data = new_bytes(bytes_of(t));
	get(f, t->data, bytes_of(t));
}

static WeftTensor *read_inputs(const char *path, uint32_t n)
{
	FILE *f = fopen(path, "rb");
	uint32_t have;
	if (!f)
		die(path, "cannot read");
	get(f, &have, sizeof have);
	if (have != n)
		die(path, "another number of tensors than the model has inputs");
	WeftTensor *t = new_bytes(n * sizeof *t);
	for (uint32_t k = 0; k < n; k++)
		read_tensor(f, &t[k]);
	fclose(f);
	return t;
}

static WeftTensor *new_outputs(const WeftModel *m, const WeftEntry *e, const WeftSizes *sizes)
{
	WeftTensor *t = new_bytes(e->noutput * sizeof *t);
	for (uint32_t k = 0; k < e->noutput; k++) {
		const WeftTensorInfo *info = weft_output(m, e, k);
		t[k].device.type = WEFT_CPU;
		t[k].dtype = info->dtype;
		t[k].ndim = (int32_t)info->rank;
		t[k].shape = new_bytes(info->rank * sizeof *t->shape);
		memcpy(t[k].shape, weft_output_shape(m, e, sizes, k),
		       info->rank * sizeof *t->shape);
		t[k].data = new_bytes(bytes_of(&t[k]));
	}
	return t;
}

static void write_outputs(const char *path, const WeftTensor *t, uint32_t n)
{
	FILE *f = fopen(path, "wb");
	if (!f)
		die(path, "cannot write");
	fwrite(&n, sizeof n, 1, f);
	for (uint32_t k = 0; k < n; k++) {
		fwrite(&t[k].dtype, sizeof t[k].dtype, 1, f);
		fwrite(&t[k].ndim, sizeof t[k].ndim, 1, f);
		fwrite(t[k].shape, sizeof *t[k].shape, (size_t)t[k].ndim, f);
		fwrite(t[k].data, 1, bytes_of(&t[k]), f);
	}
	int bad = ferror(f);
	if (fclose(f) || bad)
		die(path, "cannot write");
}

static void free_tensors(WeftTensor *t, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		free(t[k].shape);
		free(t[k].data);
	}
	free(t);
}

static const WeftModel *load(const char *path)
{
	const WeftModel *(*model)(void);
	WeftStatus status;
	void *so = weft_file_check(path, &status) ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!so)
		die(path, status.code ? status.message : dlerror());
	*(void **)&model = dlsym(so, "weft_model");
	if (!model)
		die(path, "not a compiled model");
	const char *wrong = weft_model_check(model());
	if (wrong)
		die(path, wrong);
	return model();
}

static uint32_t find_entry(const WeftModel *m, const char *name)
{
	for (uint32_t k = 0; k < m->nentry; k++)
		if (!strcmp(weft_entry(m, k)->name, name))
			return k;
	die(name, "the model has no entry of this name");
	return 0;
}

int main(int argc, char **argv)
{
	WeftStatus status = {0};
	WeftInstance *instance;
	if (argc != 5 && argc != 6)
		die("usage", "run_file MODEL.so INPUTS OUTPUTS THREADS [ENTRY]");
	const WeftModel *m = load(argv[1]);
	const uint32_t which = argc == 6 ? find_entry(m, argv[5]) : 0;
	const WeftEntry *e = weft_entry(m, which);
	if (m->open(m, NULL, &instance, &status))
		die(argv[1], status.message);
	WeftTensor *in = read_inputs(argv[2], e->ninput);
	WeftSizes *sizes = new_bytes(e->sizes_bytes);
	if (m->sizes(instance, which, in, sizes, &status))
		die(argv[1], status.message);
	WeftTensor *out = new_outputs(m, e, sizes);
	WeftContext context = {.size = sizeof context, .nthreads = atoi(argv[4])};
	void *work = new_bytes(sizes->workspace_bytes);
	if (m->run(instance, sizes, in, out, work, &context, &status))
		die(argv[1], status.message);
	write_outputs(argv[3], out, e->noutput);
	m->close(instance);
	free_tensors(in, e->ninput);
	free_tensors(out, e->noutput);
	free(sizes);
	free(work);
	return 0;
}
