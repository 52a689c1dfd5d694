/* The compiler as a library, outside its source tree: load a model, compile it to a shared object
 * and into this process, run both on the tensors of a file, and compare. Usage: compile_and_run
 * MODEL.pt2 INPUTS.safetensors OUT.so ; the file holds x.0, x.1, ..., one for each input. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft.h>

static int fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	return 1;
}

/* The outputs of a call: shapes belong to the sizes, data to whoever frees it. */
typedef struct {
	uint32_t n;
	WeftTensor *tensor;
	WeftSizes *sizes;
} Outputs;

static uint64_t bytes_of(const WeftTensor *t)
{
	uint64_t bytes = t->dtype.bits / 8u;
	for (int32_t k = 0; k < t->ndim; k++)
		bytes *= (uint64_t)t->shape[k];
	return bytes;
}

/* Room for what the entry returns on these inputs. */
static int prepare(const WeftModel *m, WeftInstance *in, const WeftTensor *x, Outputs *y,
		   WeftStatus *status)
{
	const WeftEntry *e = weft_entry(m, 0);
	y->n = e->noutput;
	y->tensor = calloc(y->n, sizeof *y->tensor);
	y->sizes = malloc(e->sizes_bytes);
	int bad = m->sizes(in, 0, x, y->sizes, status);
	for (uint32_t k = 0; !bad && k < y->n; k++) {
		const WeftTensorInfo *info = weft_output(m, e, k);
		y->tensor[k] =
			(WeftTensor){.device = {WEFT_CPU, 0},
				     .ndim = (int32_t)info->rank,
				     .dtype = info->dtype,
				     .shape = (int64_t *)weft_output_shape(m, e, y->sizes, k)};
		y->tensor[k].data = malloc(bytes_of(&y->tensor[k]) + 1);
	}
	return bad;
}

static int run(const char *what, const WeftModel *m, const WeftTensor *x, Outputs *y)
{
	WeftStatus status = {0};
	WeftInstance *in;
	const char *wrong = weft_model_check(m);
	if (wrong)
		return fail(what, wrong);
	if (m->open(m, NULL, &in, &status))
		return fail(what, status.message);
	int bad = prepare(m, in, x, y, &status);
	WeftContext context = {.size = sizeof context, .nthreads = 2};
	void *work = bad ? NULL : malloc(y->sizes->workspace_bytes + 1);
	bad = bad || m->run(in, y->sizes, x, y->tensor, work, &context, &status);
	free(work);
	m->close(in);
	return bad ? fail(what, status.message) : 0;
}

static const WeftModel *load_shared(const char *path)
{
	const WeftModel *(*get)(void) = NULL;
	void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (so)
		*(void **)&get = dlsym(so, "weft_model");
	if (!get)
		fail(path, dlerror());
	return get ? get() : NULL;
}

static int compare(const Outputs *a, const Outputs *b)
{
	for (uint32_t k = 0; k < a->n; k++) {
		uint64_t bytes = bytes_of(&a->tensor[k]);
		if (bytes != bytes_of(&b->tensor[k]) ||
		    memcmp(a->tensor[k].data, b->tensor[k].data, bytes) != 0)
			return fail("the results", "differ");
		printf("output %" PRIu32 ": %" PRIu64 " bytes, equal\n", k, bytes);
	}
	return 0;
}

static void drop(Outputs *y)
{
	for (uint32_t k = 0; k < y->n; k++)
		free(y->tensor[k].data);
	free(y->tensor);
	free(y->sizes);
}

static int compile_and_run(Weft *w, char **argv)
{
	WeftOptions o = {.size = sizeof o};
	WeftTensors *file = weft_tensors_read(w, argv[2]);
	WeftGraph *g = weft_load(w, argv[1]);
	if (!file || !g || !weft_compile(w, g, &o, argv[3]))
		return fail("error", weft_messages(w));
	uint32_t n;
	const WeftTensorInfo *info = weft_inputs(w, g, &n);
	WeftTensor *x = calloc(n + 1, sizeof *x);
	for (uint32_t k = 0; k < n; k++) {
		char name[16];
		snprintf(name, sizeof name, "x.%" PRIu32, k);
		const WeftTensor *t = weft_tensors_find(file, name);
		if (!t) {
			free(x);
			return fail(info[k].name, "no tensor for it in the file");
		}
		x[k] = *t;
	}
	Outputs shared = {0}, jit = {0};
	const WeftModel *here = weft_has_llvm() ? weft_jit(w, g, &o) : NULL,
			*there = load_shared(argv[3]);
	int bad = weft_has_llvm() && !here ? fail("error", weft_messages(w)) : !there;
	bad = bad || run(argv[3], there, x, &shared) ||
	      (here && run("in this process", here, x, &jit));
	if (!here)
		puts("no LLVM back end: nothing to compare with");
	bad = bad || (here && compare(&shared, &jit));
	drop(&shared);
	drop(&jit);
	free(x);
	return bad;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return fail("usage", "compile_and_run MODEL.pt2 INPUTS.safetensors OUT.so");
	Weft *w = weft_new();
	int bad = w ? compile_and_run(w, argv) : fail("error", "out of memory");
	weft_free(w);
	return bad;
}
