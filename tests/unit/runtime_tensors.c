/* What sizes and run look at in the tensors that arrive: dtypes, ranks, ranges, memory; and that
 * views are read as they lie. The model: y = a, z[m] = b[0, m] + the real part of c[m]. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime_model.h"

static int copy_rows(const WeftFrame *f, int64_t begin, int64_t end)
{
	memcpy((float *)f->buf[3] + 3 * begin, (const float *)f->buf[0] + 3 * begin,
	       (size_t)(3 * (end - begin)) * 4);
	return 0;
}

static int add_up(const WeftFrame *f, int64_t begin, int64_t end)
{
	for (int64_t i = begin; i < end; i++)
		((double *)f->buf[4])[i] = (double)((const int64_t *)f->buf[1])[i] +
					   ((const double *)f->buf[2])[2 * i];
	return 0;
}

/* Symbols n and m, shapes of y and z, bytes of the workspace. */
static int sizes_fn(const int64_t *extent, int64_t *slot, WeftStatus *status)
{
	(void)status;
	const int64_t all[] = {extent[0], extent[3], extent[0], 3, extent[3], 200};
	memcpy(slot, all, sizeof all);
	return WEFT_OK;
}

static int run_fn(WeftRegion *r, void *const *buf, const int64_t *slot)
{
	if ((uintptr_t)buf[6] % 64)
		return weft_region_fail(r, "a workspace that is not aligned");
	memset(buf[6], 0xee, (size_t)slot[5]);
	return weft_phase(r, copy_rows, buf, NULL, 0, slot[0]) ||
	       weft_phase(r, add_up, buf, NULL, 1, slot[1]);
}

static const WeftDim dim_a[] = {{-1, 0, "n"}, {3, -1, "3"}}, dim_b[] = {{2, -1, "2"}, {-1, 1, "m"}},
		     dim_m[] = {{-1, 1, "m"}};
static const WeftTensorInfo inputs[] = {TENSOR("a", F32, 2, dim_a), TENSOR("b", I64, 2, dim_b),
					TENSOR("c", C128, 1, dim_m)};
static const WeftTensorInfo outputs[] = {TENSOR("y", F32, 2, dim_a), TENSOR("z", F64, 1, dim_m)};
static const WeftSymbolInfo symbols[] = {{"n", 2, 5}, {"m", 1, INT64_MAX}};
static const WeftCallInfo calls[] = {{"rows", "map", 0, 0}, {"sums", "map", 0, 0}};
static const WeftEntry entry = {ENTRY("main", 6, 5, sizes_fn, run_fn), IN(inputs), OUT(outputs),
				COUNTED(nsymbol, symbol, symbols), COUNTED(ncall, call, calls)};
static const WeftEntry *const entries[] = {&entry};
static const WeftManifest manifest = MANIFEST("m");
static const WeftModel model = {
	MODEL(manifest), COUNTED(nentry, entry, entries),
	.stride = {[WEFT_DIM] = sizeof(WeftDim), [WEFT_TENSOR_INFO] = sizeof(WeftTensorInfo)}};

typedef struct {
	_Alignas(64) float a[64];
	int64_t b[64];
	double c[64], z[32];
	float y[64];
	int64_t sa[2], sb[2], sc[1], sy[2], sz[1], strides[3][2];
	WeftTensor in[3], out[2];
	WeftInstance *inst;
	WeftSizes *sizes;
	WeftStatus status;
	char work[2048];
} Fix;

static Fix *fix_new(int64_t n, int64_t m)
{
	Fix *f = aligned_alloc(64, (sizeof *f + 63) / 64 * 64);
	memset(f, 0, sizeof *f);
	for (int k = 0; k < 64; k++) {
		f->a[k] = (float)(k + 1);
		f->b[k] = 100 * k;
		f->c[k] = k;
	}
	f->sa[0] = f->sy[0] = n;
	f->sa[1] = f->sy[1] = 3;
	f->sb[0] = 2;
	f->sb[1] = f->sc[0] = f->sz[0] = m;
	f->in[0] = (WeftTensor){f->a, {WEFT_CPU, 0}, 2, F32, f->sa, NULL, 0};
	f->in[1] = (WeftTensor){f->b, {WEFT_CPU, 0}, 2, I64, f->sb, NULL, 0};
	f->in[2] = (WeftTensor){f->c, {WEFT_CPU, 0}, 1, C128, f->sc, NULL, 0};
	f->out[0] = (WeftTensor){f->y, {WEFT_CPU, 0}, 2, F32, f->sy, NULL, 0};
	f->out[1] = (WeftTensor){f->z, {WEFT_CPU, 0}, 1, F64, f->sz, NULL, 0};
	assert_int_equal(model.open(&model, NULL, &f->inst, &f->status), WEFT_OK);
	f->sizes = calloc(1, entry.sizes_bytes);
	return f;
}

static void fix_free(Fix *f)
{
	model.close(f->inst);
	free(f->sizes);
	free(f);
}

static int sizes(Fix *f)
{
	return model.sizes(f->inst, 0, f->in, f->sizes, &f->status);
}

static int run(Fix *f, void *work)
{
	return model.run(f->inst, f->sizes, f->in, f->out, work, NULL, &f->status);
}

#define IS(call, want, text)                                                                       \
	do {                                                                                       \
		assert_int_equal(call, want);                                                      \
		assert_string_equal(f->status.message, text);                                      \
		assert_int_equal(f->status.code, want);                                            \
	} while (0)
#define SIZES(text) IS(sizes(f), WEFT_ERR_INPUT, text)

static void test_sizes(void **state)
{
	(void)state;
	for (int64_t n = 2; n <= 5; n++)
		for (int64_t m = 1; m < 8; m += 3) {
			Fix *f = fix_new(n, m);
			const int64_t want[] = {n, m, n, 3, m, 200, n, 3, 2, m, m};
			IS(sizes(f), WEFT_OK, "");
			assert_memory_equal(f->sizes->slot, want, sizeof want);
			assert_int_equal(f->sizes->entry, 0);
			assert_int_equal(f->sizes->nslot, 6);
			assert_int_equal(f->sizes->workspace_bytes, 200 + 128);
			fix_free(f);
		}
}

static void test_extents(void **state)
{
	(void)state;
	Fix *f = fix_new(5, 4);
	f->sa[0] = 1;
	SIZES("input a: dimension 0 (n) is 1, expected 2 to 5");
	f->sa[0] = 6;
	SIZES("input a: dimension 0 (n) is 6, expected 2 to 5");
	f->sa[0] = -1;
	SIZES("input a: dimension 0 is -1, expected n");
	f->sa[0] = 5;
	f->sa[1] = 2;
	SIZES("input a: dimension 1 is 2, expected 3");
	f->sa[1] = 3;
	f->sb[1] = 0;
	SIZES("input b: dimension 1 (m) is 0, expected at least 1");
	f->sb[1] = 3;
	SIZES("input c: dimension 0 (m) is 4, expected 3 as dimension 1 of input b");
	f->sb[1] = 4;
	assert_int_equal(sizes(f), WEFT_OK);
	f->sb[1] = f->sc[0] = INT64_MAX / 8; /* no copy, so no matter */
	assert_int_equal(sizes(f), WEFT_OK);
	fix_free(f);
}

static void test_kinds(void **state)
{
	(void)state;
	static const struct {
		WeftDType is;
		const char *text;
	} cases[] = {{{WEFT_INT, 32, 1}, "i32"},     {{WEFT_UINT, 8, 1}, "u8"},
		     {{WEFT_FLOAT, 16, 1}, "f16"},   {{WEFT_BFLOAT, 16, 1}, "bf16"},
		     {{WEFT_COMPLEX, 64, 1}, "c64"}, {{WEFT_BOOL, 8, 1}, "bool"},
		     {{WEFT_FLOAT, 64, 1}, "f64"},   {{3, 64, 1}, "opaque64"},
		     {{10, 8, 1}, "f8 kind 8"}};
	Fix *f = fix_new(5, 4);
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		char want[100] = "input a has dtype ";
		f->in[0].dtype = cases[k].is;
		strcat(want, cases[k].text);
		strcat(want, ", expected f32");
		SIZES(want);
	}
	f->in[0].dtype = (WeftDType)F32;
	f->in[0].dtype.lanes = 2;
	SIZES("input a has vectors of 2 for elements, expected 1");
	f->in[0].dtype.lanes = 1;
	f->in[2].dtype = (WeftDType){WEFT_COMPLEX, 64, 1};
	SIZES("input c has dtype c64, expected c128");
	f->in[2].dtype = (WeftDType)C128;
	for (int ndim = 0; ndim < 4; ndim++) {
		char want[] = "input a has 0 dimensions, expected 2";
		want[12] = (char)('0' + ndim);
		f->in[0].ndim = ndim;
		IS(sizes(f), ndim == 2 ? WEFT_OK : WEFT_ERR_INPUT, ndim == 2 ? "" : want);
	}
	f->in[0].ndim = 2;
	f->in[0].shape = NULL;
	IS(sizes(f), WEFT_ERR_ARGUMENT, "input a has no shape");
	f->in[0].shape = f->sa;
	f->in[1].device.type = WEFT_CPU + 1;
	SIZES("input b is not in the processor's memory");
	f->in[1].device.type = WEFT_CPU;
	assert_int_equal(sizes(f), WEFT_OK);
	f->out[1].dtype.bits = 32;
	IS(run(f, f->work), WEFT_ERR_INPUT, "output z has dtype f32, expected f64");
	f->out[1].dtype.bits = 64;
	f->out[1].device.type = 2;
	IS(run(f, f->work), WEFT_ERR_INPUT, "output z is not in the processor's memory");
	f->out[1].device.type = WEFT_CPU;
	f->sz[0] = 3;
	IS(run(f, f->work), WEFT_ERR_INPUT,
	   "output z: dimension 0 is 3, expected 4 as found by sizes");
	f->sz[0] = 4;
	f->sy[1] = 4;
	IS(run(f, f->work), WEFT_ERR_INPUT,
	   "output y: dimension 1 is 4, expected 3 as found by sizes");
	f->sy[1] = 3;
	f->sc[0] = 5;
	IS(run(f, f->work), WEFT_ERR_INPUT,
	   "input c: dimension 0 is 5, expected 4 as found by sizes");
	fix_free(f);
}

static void test_arguments(void **state)
{
	(void)state;
	Fix *f = fix_new(5, 4);
	IS(model.sizes(NULL, 0, f->in, f->sizes, &f->status), WEFT_ERR_ARGUMENT,
	   "sizes: no instance given");
	IS(model.sizes(f->inst, 0, f->in, NULL, &f->status), WEFT_ERR_ARGUMENT,
	   "sizes: no room for the sizes given");
	IS(model.sizes(f->inst, 1, f->in, f->sizes, &f->status), WEFT_ERR_ARGUMENT,
	   "sizes: no such entry");
	IS(model.sizes(f->inst, 0, NULL, f->sizes, &f->status), WEFT_ERR_ARGUMENT,
	   "sizes: no inputs given");
	assert_int_equal(sizes(f), WEFT_OK);
	IS(model.run(NULL, f->sizes, f->in, f->out, f->work, NULL, &f->status), WEFT_ERR_ARGUMENT,
	   "run: no instance given");
	IS(model.run(f->inst, NULL, f->in, f->out, f->work, NULL, &f->status), WEFT_ERR_ARGUMENT,
	   "run: no sizes given");
	IS(model.run(f->inst, f->sizes, f->in, f->out, NULL, NULL, &f->status), WEFT_ERR_ARGUMENT,
	   "run: no workspace given");
	IS(model.run(f->inst, f->sizes, NULL, f->out, f->work, NULL, &f->status), WEFT_ERR_ARGUMENT,
	   "run: no inputs given");
	IS(model.run(f->inst, f->sizes, f->in, NULL, f->work, NULL, &f->status), WEFT_ERR_ARGUMENT,
	   "run: no outputs given");
	f->sizes->entry = 1;
	IS(run(f, f->work), WEFT_ERR_ARGUMENT, "run: no such entry");
	f->sizes->entry = 0;
	f->sizes->nslot = 5;
	assert_int_equal(run(f, f->work), WEFT_ERR_ABI);
	f->sizes->nslot = 6;
	/* nobody wants to know */
	assert_int_equal(model.run(f->inst, f->sizes, f->in, f->out, f->work, NULL, NULL), WEFT_OK);
	f->sa[0] = 9;
	assert_int_equal(model.sizes(f->inst, 0, f->in, f->sizes, NULL), WEFT_ERR_INPUT);
	fix_free(f);
}

static void check_results(const Fix *f, int64_t n, int64_t m, const int64_t *step_a, int64_t step_b,
			  int64_t step_c)
{
	for (int64_t i = 0; i < n; i++)
		for (int64_t k = 0; k < 3; k++)
			assert_true(f->y[3 * i + k] ==
				    ((float *)f->in[0].data)[i * step_a[0] + k * step_a[1]]);
	for (int64_t i = 0; i < m; i++)
		assert_true(f->z[i] == (double)((int64_t *)f->in[1].data)[i * step_b] +
					       ((double *)f->in[2].data)[2 * i * step_c]);
	assert_true(f->y[3 * n] == 0 && f->z[m] == 0);
}

/* Views of each input alone and of several together, in workspaces at any address that are no
 * longer than asked for. */
static void test_views(void **state)
{
	(void)state;
	static const int64_t a[][2] = {{3, 1}, {1, 5}, {4, 1}, {0, 1}, {6, 2}, {3, 0}},
			     b[][2] = {{4, 1}, {1, 2}, {8, 2}, {0, 3}};
	for (size_t i = 0; i < 6; i++)
		for (size_t j = 0; j < 4; j++)
			for (int64_t step = 1; step <= 2; step++) {
				Fix *f = fix_new(5, 4);
				memcpy(f->strides[0], a[i], sizeof a[i]);
				memcpy(f->strides[1], b[j], sizeof b[j]);
				f->strides[2][0] = step;
				for (int k = 0; k < 3; k++)
					f->in[k].strides = f->strides[k];
				uint64_t want = 200 + 128 + (i ? 64 : 0) + (j ? 64 : 0) +
						(step > 1 ? 64 : 0);
				assert_int_equal(sizes(f), WEFT_OK);
				assert_int_equal(f->sizes->workspace_bytes, want);
				for (size_t at = 0; at < 70; at += 23) {
					size_t bytes = at + want;
					/* the sanitizer sees writes past the end */
					char *work = malloc(bytes + 16);
					memset(work, 0x55, bytes + 16);
					memset(f->y, 0, sizeof f->y);
					memset(f->z, 0, sizeof f->z);
					IS(run(f, work + at), WEFT_OK, "");
					check_results(f, 5, 4, a[i], b[j][1], step);
					for (size_t k = 0; k < 16; k++)
						assert_int_equal(work[bytes + k], 0x55);
					for (size_t k = 0; k < at; k++)
						assert_int_equal(work[k], 0x55);
					free(work);
				}
				fix_free(f);
			}
}

static void test_offsets(void **state)
{
	(void)state;
	Fix *f = fix_new(3, 2);
	f->in[0].byte_offset = 8;
	f->in[1].byte_offset = 16;
	f->in[2].byte_offset = 8; /* aligned as its parts */
	f->out[0].byte_offset = 4;
	assert_int_equal(sizes(f), WEFT_OK);
	IS(run(f, f->work), WEFT_OK, "");
	assert_true(f->y[0] == 0 && f->y[1] == f->a[2] && f->y[9] == f->a[10] && f->y[10] == 0);
	assert_true(f->z[0] == 200 + 1 && f->z[1] == 300 + 3);
	f->in[0].byte_offset = 2;
	IS(run(f, f->work), WEFT_ERR_INPUT, "input a is not aligned to 4 bytes");
	f->in[0].byte_offset = 0;
	f->in[1].byte_offset = 4;
	IS(run(f, f->work), WEFT_ERR_INPUT, "input b is not aligned to 8 bytes");
	f->in[1].byte_offset = 0;
	f->in[2].byte_offset = 4;
	IS(run(f, f->work), WEFT_ERR_INPUT, "input c is not aligned to 8 bytes");
	f->in[2].byte_offset = 0;
	f->out[1].byte_offset = 4;
	IS(run(f, f->work), WEFT_ERR_INPUT, "output z is not aligned to 8 bytes");
	f->out[1].byte_offset = 0;
	f->in[1].data = NULL;
	IS(run(f, f->work), WEFT_ERR_ARGUMENT, "input b has no data");
	f->in[1].data = f->b;
	f->strides[0][0] = 1;
	f->strides[0][1] = 3;
	f->out[0].byte_offset = 0;
	f->out[0].strides = f->strides[0];
	IS(run(f, f->work), WEFT_ERR_INPUT, "output y is not row-major");
	f->out[0].strides = NULL;
	f->in[0].strides = f->strides[0]; /* after sizes */
	IS(run(f, f->work), WEFT_ERR_INPUT,
	   "input a has other strides than when sizes were computed");
	fix_free(f);
}

static void test_overlap(void **state)
{
	(void)state;
	Fix *f = fix_new(4, 4);
	assert_int_equal(sizes(f), WEFT_OK);
	const size_t bytes = f->sizes->workspace_bytes;
	char *work = f->work + 64;
	f->in[0].data = work + bytes; /* right behind, and right before */
	IS(run(f, work), WEFT_OK, "");
	f->in[0].data = work - 48;
	IS(run(f, work), WEFT_OK, "");
	f->in[0].data = work + bytes - 4;
	IS(run(f, work), WEFT_ERR_ARGUMENT, "input a overlaps the workspace");
	f->in[0].data = work - 44;
	IS(run(f, work), WEFT_ERR_ARGUMENT, "input a overlaps the workspace");
	f->in[0].data = f->a;
	f->in[2].data = work + 8;
	IS(run(f, work), WEFT_ERR_ARGUMENT, "input c overlaps the workspace");
	f->in[2].data = f->c;
	f->out[0].data = f->a + 11;
	IS(run(f, work), WEFT_ERR_ARGUMENT, "output y overlaps another tensor or the workspace");
	f->out[0].data = f->a + 12; /* behind the input */
	IS(run(f, work), WEFT_OK, "");
	f->out[0].data = f->y;
	f->out[1].data = f->c + 7;
	IS(run(f, work), WEFT_ERR_ARGUMENT, "output z overlaps another tensor or the workspace");
	f->out[1].data = f->c + 8;
	IS(run(f, work), WEFT_OK, "");
	f->out[1].data = f->y + 10;
	IS(run(f, work), WEFT_ERR_ARGUMENT, "output z overlaps another tensor or the workspace");
	f->out[1].data = f->y + 12;
	IS(run(f, work), WEFT_OK, "");
	f->out[1].data = work + bytes - 8;
	IS(run(f, work), WEFT_ERR_ARGUMENT, "output z overlaps another tensor or the workspace");
	f->out[1].data = f->z;
	/* What is copied first may be overwritten; what a view skips counts for the workspace. */
	f->strides[0][0] = 6;
	f->strides[0][1] = 2;
	f->in[0].strides = f->strides[0];
	assert_int_equal(sizes(f), WEFT_OK);
	f->out[0].data = f->a;
	IS(run(f, work), WEFT_OK, "");
	assert_true(f->a[1] == 3 && f->a[3] == 7);
	f->out[0].data = f->y;
	f->in[0].data = work - 4;
	IS(run(f, work), WEFT_ERR_ARGUMENT, "input a overlaps the workspace");
	f->in[0].data = work - 23 * 4; /* its last element ends where the workspace begins */
	IS(run(f, work), WEFT_OK, "");
	f->in[0].data = work - 22 * 4;
	IS(run(f, work), WEFT_ERR_ARGUMENT, "input a overlaps the workspace");
	fix_free(f);
}

/* An output that replaces an input may be its memory, all of it, and no other's. */
static void test_donated(void **state)
{
	(void)state;
	WeftTensorInfo out[2] = {outputs[0], outputs[1]};
	out[0].donates = 0;
	WeftEntry e = entry;
	e.output = out;
	const WeftEntry *const list[] = {&e};
	WeftModel m = model;
	m.entry = list;
	Fix *f = fix_new(4, 4);
	WeftInstance *inst;
	assert_int_equal(model.open(&m, NULL, &inst, &f->status), WEFT_OK);
	IS(model.sizes(inst, 0, f->in, f->sizes, &f->status), WEFT_OK, "");
	const struct {
		void *data;
		bool fine;
	} cases[] = {{f->a, true}, {f->a + 3, false}, {f->b, false}, {f->c, false}, {f->y, true}};
	for (size_t k = 0; k < 5; k++) {
		f->out[0].data = cases[k].data;
		if (cases[k].fine)
			IS(model.run(inst, f->sizes, f->in, f->out, f->work, NULL, &f->status),
			   WEFT_OK, "");
		else
			IS(model.run(inst, f->sizes, f->in, f->out, f->work, NULL, &f->status),
			   WEFT_ERR_ARGUMENT, "output y overlaps another tensor or the workspace");
	}
	f->out[0].data = f->y;
	f->in[0].data = f->b; /* z may not take it */
	f->out[1].data = f->b;
	IS(model.run(inst, f->sizes, f->in, f->out, f->work, NULL, &f->status), WEFT_ERR_ARGUMENT,
	   "output z overlaps another tensor or the workspace");
	model.close(inst);
	fix_free(f);
}

/* Nothing to read: any pointer does. */
static void test_empty(void **state)
{
	(void)state;
	static const WeftDim free_m[] = {{2, -1, "2"}, {-1, -1, "m"}};
	WeftTensorInfo in[3] = {inputs[0], inputs[1], inputs[2]}, out[2] = {outputs[0], outputs[1]};
	in[1].dim = free_m;
	in[2].dim = out[1].dim = free_m + 1;
	WeftEntry e = entry;
	e.input = in;
	e.output = out;
	const WeftEntry *const list[] = {&e};
	WeftModel m = model;
	m.entry = list;
	Fix *f = fix_new(2, 0);
	WeftInstance *inst;
	assert_int_equal(model.open(&m, NULL, &inst, &f->status), WEFT_OK);
	IS(model.sizes(inst, 0, f->in, f->sizes, &f->status), WEFT_OK, "");
	f->in[1].data = f->in[2].data = f->out[1].data = NULL;
	f->strides[1][1] = 7;
	f->in[1].strides = f->strides[1];
	IS(model.run(inst, f->sizes, f->in, f->out, f->work, NULL, &f->status), WEFT_OK, "");
	assert_true(f->y[5] == f->a[5]);
	model.close(inst);
	fix_free(f);
}

typedef struct {
	uint32_t n, call[8];
} Heard;

static void hear(void *user, uint32_t call, double seconds)
{
	Heard *h = user;
	assert_true(seconds >= 0 && seconds < 100 && h->n < 8);
	h->call[h->n++] = call;
}

static void test_profile(void **state)
{
	(void)state;
	Fix *f = fix_new(5, 4);
	assert_int_equal(sizes(f), WEFT_OK);
	for (int32_t n = 1; n <= 4; n++) {
		Heard h = {0};
		const WeftContext c = {
			.size = sizeof c, .nthreads = n, .profile = hear, .profile_user = &h};
		assert_int_equal(
			model.run(f->inst, f->sizes, f->in, f->out, f->work, &c, &f->status),
			WEFT_OK);
		assert_int_equal(h.n, 2);
		assert_int_equal(h.call[0], 0);
		assert_int_equal(h.call[1], 1);
	}
	fix_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),   cmocka_unit_test(test_extents),
		cmocka_unit_test(test_kinds),   cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_views),   cmocka_unit_test(test_offsets),
		cmocka_unit_test(test_overlap), cmocka_unit_test(test_empty),
		cmocka_unit_test(test_donated), cmocka_unit_test(test_profile),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
