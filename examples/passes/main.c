/* A pass outside of Weft, and what the model then computes:
 *
 *     passes fold|quantise|none MODEL REFERENCE.safetensors COUNT
 *
 * Applies the pass, which must find COUNT places, compiles, runs the model on x.0, x.1, ... of the
 * reference and compares with y.0, y.1, ... by the rule of `weft check` for f32: an error of at
 * most 8 times PyTorch's own (eager_err.K of the metadata) and a millionth of the largest value. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "passes.h"

enum { MOST = 16 }; /* inputs, outputs */

static int fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	return 1;
}

/* ---- running ---- */

/* The tensors x.0, x.1, ... of a file. */
static uint32_t numbered(const WeftTensors *file, char of, WeftTensor *out)
{
	char name[8];
	for (uint32_t n = 0;; n++) {
		snprintf(name, sizeof name, "%c.%u", of, n);
		const WeftTensor *t = weft_tensors_find(file, name);
		if (!t || n == MOST)
			return n;
		out[n] = *t;
	}
}

static bool run_jit(Weft *w, WeftGraph *g, const WeftTensor *in, const WeftTensor *want,
		    uint32_t nout, WeftTensor *out)
{
	const WeftModel *m = weft_jit(w, g, NULL);
	WeftInstance *instance = NULL;
	WeftStatus status = {0};
	void *work = NULL;
	WeftSizes *sizes = m ? malloc(weft_entry(m, 0)->sizes_bytes) : NULL;
	if (!sizes)
		return false;
	int code = m->open(m, NULL, &instance, &status);
	if (code == WEFT_OK)
		code = m->sizes(instance, 0, in, sizes, &status);
	for (uint32_t k = 0; code == WEFT_OK && k < nout; k++) {
		size_t n = 4;
		out[k] = want[k];
		for (int32_t d = 0; d < out[k].ndim; d++)
			n *= (size_t)out[k].shape[d];
		out[k].data = malloc(n + 1);
	}
	if (code == WEFT_OK)
		work = aligned_alloc(64, (sizes->workspace_bytes + 127) / 64 * 64);
	if (code == WEFT_OK)
		code = m->run(instance, sizes, in, out, work, NULL, &status);
	free(work);
	free(sizes);
	if (instance)
		m->close(instance);
	return code == WEFT_OK || (fprintf(stderr, "%s\n", status.message), false);
}

static bool run(Weft *w, WeftGraph *g, const WeftTensor *in, uint32_t nin, const WeftTensor *want,
		uint32_t nout, WeftTensor *out)
{
	return weft_has_llvm() ? run_jit(w, g, in, want, nout, out)
			       : weft_interpret(w, g, in, nin, out);
}

/* ---- comparing ---- */

static double compare(const WeftTensors *file, uint32_t k, const WeftTensor *got,
		      const WeftTensor *want)
{
	char name[30];
	const float *x = got->data, *y = want->data;
	double error = 0, largest = 0;
	size_t n = 1;
	for (int32_t d = 0; d < want->ndim; d++)
		n *= (size_t)want->shape[d];
	for (size_t i = 0; i < n; i++) {
		double e = fabs((double)x[i] - y[i]);
		error = e <= error ? error : isnan(e) ? INFINITY : e;
		largest = fmax(largest, fabs(y[i]));
	}
	snprintf(name, sizeof name, "eager_err.%u", k);
	const char *eager = weft_tensors_meta(file, name);
	double allowed = 8 * (eager ? atof(eager) : 0) + 1e-6 * largest;
	printf("output %u: error %.3g, allowed %.3g\n", k, error, allowed);
	return error / allowed;
}

static bool check(Weft *w, WeftGraph *g, const WeftTensors *file)
{
	WeftTensor in[MOST], want[MOST], got[MOST];
	uint32_t nin = numbered(file, 'x', in), nout = numbered(file, 'y', want), n;
	weft_outputs(w, g, &n);
	if (!nout || n != nout || !run(w, g, in, nin, want, nout, got))
		return false;
	bool ok = true;
	for (uint32_t k = 0; k < nout; k++)
		ok &= compare(file, k, &got[k], &want[k]) <= 1;
	for (uint32_t k = 0; weft_has_llvm() && k < nout; k++)
		free(got[k].data);
	return ok;
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return fail("usage", "passes fold|quantise|none MODEL REFERENCE COUNT");
	Weft *w = weft_new();
	WeftGraph *g = weft_load(w, argv[2]);
	const WeftTensors *file = g ? weft_tensors_read(w, argv[3]) : NULL;
	if (!file)
		return fail("loading", weft_messages(w));
	int n = !strcmp(argv[1], "fold")       ? fold_batch_norms(w, g)
		: !strcmp(argv[1], "quantise") ? quantise_linears(w, g)
					       : 0;
	printf("%s: %d places\n", argv[1], n);
	if (n != atoi(argv[4]))
		return fail("another number of places", weft_messages(w));
	if (!check(w, g, file))
		return fail("the results differ", weft_messages(w));
	weft_free(w);
	return 0;
}
