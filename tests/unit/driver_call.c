/* weft_call.h: a model in three lines, and every wrong use of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "weft.h"
#include "weft_call.h"

static const char text[] = "graph @f(%x: f32[B, 3], %w: f32[3]) where 1 <= B {\n  %b = "
			   "broadcast(%w, shape=[B, 3], map=[1])\n"
			   "  %y = mul(%x, %b)\n  return %y\n}\n";

static const WeftModel *model_of(Weft *w)
{
	const WeftModel *m = weft_loops(w, weft_parse(w, text, "f"), NULL);
	if (!m)
		fail_msg("%s", weft_messages(w));
	return m;
}

static void test_names(void **state)
{
	(void)state;
	Weft *w = weft_new();
	const WeftModel *m = model_of(w);
	const WeftEntry *e = weft_entry(m, 0);
	assert_int_equal(weft_entry_index(m, "run"), 0);
	assert_int_equal(weft_input_index(m, e, "w"), 1);
	assert_int_equal(weft_output_index(m, e, "y"), 0);
	assert_int_equal(weft_entry_index(m, "walk"), -1);
	assert_int_equal(weft_input_index(m, e, "y"), -1);
	assert_int_equal(weft_output_index(m, e, ""), -1);
	assert_int_equal(weft_state_index(m, "y"), -1);
	assert_int_equal(weft_entry_index(NULL, "run"), -1);
	assert_int_equal(weft_entry_index(m, NULL), -1);
	assert_int_equal(weft_input_index(NULL, e, "x"), -1);
	assert_int_equal(weft_input_index(m, NULL, "x"), -1);
	assert_int_equal(weft_output_index(m, e, NULL), -1);
	assert_int_equal(weft_state_index(NULL, "x"), -1);
	weft_free(w);
}

/* Sizes grow and shrink; a run that fails leaves a call that can be used. */
static void test_run(void **state)
{
	(void)state;
	Weft *w = weft_new();
	float x[15], v[3] = {1, 2, 3};
	WeftCall c;
	for (int k = 0; k < 15; k++)
		x[k] = (float)k;
	assert_int_equal(weft_call_open(&c, model_of(w), 0), WEFT_OK);
	for (int64_t rows = 1; rows < 12; rows = rows * 5 % 12) {
		WeftTensor in[2] = {weft_tensor(x, WEFT_F32, 2, (const int64_t[]){rows, 3}),
				    weft_tensor(v, WEFT_F32, 1, (const int64_t[]){3})};
		if (weft_call_run(&c, in))
			fail_msg("%s", c.status.message);
		assert_int_equal(c.output[0].shape[0], rows);
		assert_float_equal(((const float *)c.output[0].data)[3 * rows - 1],
				   (float)(3 * rows - 1) * 3, 0);
		in[0].dtype = WEFT_F64;
		assert_int_equal(weft_call_run(&c, in), WEFT_ERR_INPUT);
		assert_non_null(strstr(c.status.message, "x"));
		assert_null(c.output[0].data);
		if (rows == 5)
			break;
	}
	weft_call_close(&c);
	weft_free(w);
}

static void test_wrong(void **state)
{
	(void)state;
	Weft *w = weft_new();
	const WeftModel *m = model_of(w);
	WeftModel old = *m;
	WeftCall c;
	old.abi = 1;
	assert_int_equal(weft_call_open(NULL, m, 0), WEFT_ERR_ARGUMENT);
	assert_int_equal(weft_call_open(&c, NULL, 0), WEFT_ERR_ABI);
	assert_string_equal(c.status.message, "there is no model");
	weft_call_close(&c);
	assert_int_equal(weft_call_open(&c, &old, 0), WEFT_ERR_ABI);
	assert_int_equal(weft_call_open(&c, m, 7), WEFT_ERR_ARGUMENT);
	assert_int_equal(weft_call_run(&c, NULL), WEFT_ERR_ARGUMENT);
	assert_string_equal(c.status.message, "the call is not open");
	assert_int_equal(weft_call_run(NULL, NULL), WEFT_ERR_ARGUMENT);
	assert_int_equal(weft_call_open(&c, m, 0), WEFT_OK);
	assert_int_equal(weft_call_run(&c, NULL), WEFT_ERR_ARGUMENT);
	const WeftTensor none[2] = {0};
	assert_int_not_equal(weft_call_run(&c, none), WEFT_OK);
	weft_call_close(&c);
	weft_call_close(&c);
	weft_call_close(NULL);
	assert_int_equal(weft_call_run(&c, none), WEFT_ERR_ARGUMENT); /* after the end */
	weft_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_run),
					   cmocka_unit_test(test_wrong)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
