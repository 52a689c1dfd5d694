/* Memory that `run` asks for, on a model written by hand: x[n] of i64 says how many; y[m] counts up
 * to m, the sum of x; between, each x[i] has room of its own. What fails gives one error, and
 * nothing is lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime_model.h"

enum { X, Y, Z, WEIGHTS, WORK, STATE, ROOM, NBUF };

/* Of x[i] elements their numbers, counted on in the workspace. */
static int fill(const WeftFrame *f, int64_t begin, int64_t end)
{
	int64_t *y = f->buf[0], *room = f->buf[1];
	for (int64_t i = begin; i < end; i++)
		y[f->p[0] + i] = room[i] = f->p[0] + i;
	return (int)f->p[1];
}

static int run_fn(WeftRegion *r, void *const *buf, const int64_t *slot)
{
	int64_t at = 0, m[2] = {weft_read(r, (int64_t *)buf[WORK], WEFT_INT, 64), 3};
	for (int64_t i = 0; i < slot[0]; i++)
		m[0] += ((int64_t *)buf[X])[i];
	if (weft_room(r, Y, m) || weft_room(r, Z, m))
		return 1;
	for (int64_t i = 0; i < slot[0]; i++) {
		int64_t n = ((int64_t *)buf[X])[i], bytes = 8 * n, p[2] = {at, n == 99};
		if (weft_room(r, ROOM, &bytes))
			return 1;
		void *b[2] = {buf[Y], buf[ROOM]};
		if (weft_phase(r, fill, b, p, (uint32_t)i, n))
			return 1;
		at += n;
		if (i + 1 < slot[0]) /* the last one is given back after the call */
			weft_room(r, ROOM, NULL);
	}
	return 0;
}

static int sizes_fn(const int64_t *extent, int64_t *slot, WeftStatus *status)
{
	(void)status;
	slot[0] = extent[0];
	slot[1] = slot[2] = -1;
	slot[3] = 3;
	slot[4] = 64;
	return WEFT_OK;
}

static const WeftDim dims[] = {{-1, 0, "n"}, {-1, -1, "u0"}, {3, -1, "3"}};
static const WeftTensorInfo inputs[] = {TENSOR("x", I64, 1, dims)};
static const WeftTensorInfo outputs[] = {TENSOR("y", I64, 1, dims + 1),
					 TENSOR("z", I64, 2, dims + 1)};
static const WeftSymbolInfo symbols[] = {{"n", 1, 64}};
static const char *const messages[] = {NULL, "it is 99"};
static const WeftEntry entry = {ENTRY("main", 5, 1, sizes_fn, run_fn),
				.flags = WEFT_ENTRY_DATA_SIZES,
				IN(inputs),
				OUT(outputs),
				COUNTED(nsymbol, symbol, symbols),
				.nroom = 1,
				COUNTED(nmessage, message, messages)};
static const WeftEntry *const entries[] = {&entry};
static const WeftManifest manifest = MANIFEST("m");
_Alignas(64) static const float weights[16];
static const WeftModel model = {MODEL(manifest), COUNTED(nentry, entry, entries),
				.weights = weights, .weights_bytes = 64};

/* ---- an allocator that counts, and fails when it is told to ---- */

typedef struct {
	int64_t held, calls, fails; /* fails: the call that does, from 1; 0: none */
} Count;

static void *take(void *user, uint64_t bytes, uint64_t align)
{
	Count *c = user;
	if (++c->calls == c->fails)
		return NULL;
	c->held += (int64_t)bytes;
	assert_true(bytes > 0);
	return aligned_alloc(align, (bytes + align - 1) / align * align);
}

static void give(void *user, void *p, uint64_t bytes)
{
	((Count *)user)->held -= (int64_t)bytes;
	free(p);
}

typedef struct {
	int64_t x[4], xs, ys, zs[2];
	WeftTensor in, out[2];
	WeftInstance *inst;
	WeftSizes *sizes;
	WeftStatus status;
	char work[512];
} Fix;

static Fix *fix_new(void)
{
	Fix *f = calloc(1, sizeof *f);
	f->xs = 4;
	memcpy(f->x, (int64_t[]){3, 0, 200, 1}, sizeof f->x);
	f->in = (WeftTensor){f->x, {WEFT_CPU, 0}, 1, I64, &f->xs, NULL, 0};
	f->out[0] = (WeftTensor){NULL, {WEFT_CPU, 0}, 1, I64, &f->ys, NULL, 0};
	f->out[1] = (WeftTensor){NULL, {WEFT_CPU, 0}, 2, I64, f->zs, NULL, 0};
	assert_int_equal(model.open(&model, NULL, &f->inst, &f->status), WEFT_OK);
	f->sizes = malloc(entry.sizes_bytes);
	assert_int_equal(model.sizes(f->inst, 0, &f->in, f->sizes, &f->status), WEFT_OK);
	assert_int_equal(weft_output_shape(&model, &entry, f->sizes, 0)[0], -1);
	return f;
}

static void fix_free(Fix *f)
{
	model.close(f->inst);
	free(f->sizes);
	free(f);
}

static int fix_run(Fix *f, int32_t n, Count *count)
{
	WeftContext c = {.size = sizeof c,
			 .nthreads = n,
			 .alloc = count ? take : NULL,
			 .free = count ? give : NULL,
			 .alloc_user = count};
	memset(f->work, 0, sizeof f->work);
	return model.run(f->inst, f->sizes, &f->in, f->out, f->work, &c, &f->status);
}

static void expect_numbers(const Fix *f, int64_t n)
{
	assert_int_equal(f->ys, n);
	assert_int_equal(f->zs[0], n);
	assert_int_equal(f->zs[1], 3);
	for (int64_t i = 0; i < n; i++)
		assert_int_equal(((int64_t *)f->out[0].data)[i], i);
}

/* ---- tests ---- */

static void test_default(void **state)
{
	(void)state;
	Fix *f = fix_new();
	for (int32_t n = 1; n < 4; n++) {
		assert_int_equal(fix_run(f, n, NULL), WEFT_OK);
		expect_numbers(f, 204);
		free(f->out[0].data);
		free(f->out[1].data);
		f->out[0].data = f->out[1].data = NULL;
	}
	memset(f->x, 0, sizeof f->x);
	assert_int_equal(fix_run(f, 2, NULL), WEFT_OK);
	assert_int_equal(f->ys, 0);
	assert_null(f->out[0].data);
	fix_free(f);
}

static void test_given(void **state)
{
	(void)state;
	Fix *f = fix_new();
	int64_t y[300], z[612];
	f->out[0].data = y;
	f->ys = 300;
	f->out[1].data = z;
	f->zs[0] = 1;
	f->zs[1] = 612;
	assert_int_equal(fix_run(f, 3, NULL), WEFT_OK);
	expect_numbers(f, 204);
	assert_ptr_equal(f->out[0].data, y);
	f->x[0] = 4; /* one more than there is room for */
	assert_int_equal(fix_run(f, 3, NULL), WEFT_ERR_INPUT);
	assert_string_equal(f->status.message,
			    "output y has 1640 bytes, and memory for 1632 is given");
	f->ys = 300;
	f->zs[0] = -1;
	assert_int_not_equal(fix_run(f, 1, NULL), WEFT_OK);
	fix_free(f);
}

/* Every allocation in turn, with one and more threads: the error says so, and all was given
 * back. */
static void test_failing(void **state)
{
	(void)state;
	Fix *f = fix_new();
	for (int32_t n = 1; n < 4; n++) {
		int64_t fails = 1;
		for (;; fails++) {
			Count c = {.fails = fails};
			int code = fix_run(f, n, &c);
			if (code == WEFT_OK) {
				expect_numbers(f, 204);
				assert_int_equal(c.held, 8 * 204 * 4);
				give(&c, f->out[0].data, 8 * 204);
				give(&c, f->out[1].data, 8 * 204 * 3);
				f->out[0].data = f->out[1].data = NULL;
				break;
			}
			assert_int_equal(code, WEFT_ERR_MEMORY);
			assert_non_null(strstr(f->status.message, "no memory for "));
			assert_int_equal(c.held, 0);
			assert_null(f->out[0].data);
			assert_null(f->out[1].data);
		}
		assert_int_equal(fails, 6); /* two outputs, three rooms that are not empty */
	}
	fix_free(f);
}

static void test_check_fails(void **state)
{
	(void)state;
	Fix *f = fix_new();
	f->x[2] = 99;
	for (int32_t n = 1; n < 4; n++) {
		Count c = {0};
		assert_int_equal(fix_run(f, n, &c), WEFT_ERR_CHECK);
		assert_string_equal(f->status.message, "it is 99");
		assert_int_equal(c.held, 0);
		assert_null(f->out[0].data);
	}
	fix_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_default),
		cmocka_unit_test(test_given),
		cmocka_unit_test(test_failing),
		cmocka_unit_test(test_check_fails),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
