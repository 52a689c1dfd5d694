/* What the interfaces say of tensors: roles, gradients that the model's file asks for, other names;
 * the compiler and the compiled model say the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "weft.h"

typedef struct {
	const char *name, *role;
	uint32_t requires_grad;
	const char *aliases;
} Want;

static void check(const WeftTensorInfo *t, const Want *w)
{
	assert_string_equal(t->name, w->name);
	assert_string_equal(t->role, w->role);
	assert_int_equal(t->requires_grad, w->requires_grad);
	assert_int_equal(t->aliases != NULL, w->aliases != NULL);
	if (w->aliases)
		assert_string_equal(t->aliases, w->aliases);
	assert_null(t->holder);
	assert_int_equal(t->nlayout, 0);
}

static const Want input = {"x", "input", 0, NULL}, key = {"weft.rng", "rng", 0, NULL};
static const Want states[] = {{"learned", "param", 1, "again\n"},
			      {"frozen", "param", 0, NULL},
			      {"last", "buffer", 0, NULL},
			      {"weft.rng", "rng", 0, NULL}};
enum { NSTATE = sizeof states / sizeof *states };

static void check_model(Weft *w, const WeftModel *m)
{
	if (!m)
		fail_msg("%s", weft_messages(w));
	const WeftEntry *e = weft_entry(m, 0);
	check(weft_input(m, e, 0), &input);
	assert_string_equal(weft_output(m, e, 0)->role, "output");
	assert_null(weft_output(m, e, 0)->holder);
	assert_int_equal(m->nstate, NSTATE);
	for (uint32_t k = 0; k < NSTATE; k++) {
		check(weft_state_info(m, k), &states[k]);
		assert_null(weft_state_layout(m, weft_state_info(m, k), 0));
	}
}

/* The initial contents, also after calls have changed the state; by either name. */
static void check_first(const WeftModel *m)
{
	WeftInstance *in;
	WeftStatus status;
	const char *const name[] = {"learned", "again", "frozen", "last"};
	float v[4][3], five[3] = {5, 5, 5};
	int64_t three[] = {3};
	WeftTensor t[4];
	if (m->open(m, NULL, &in, &status))
		fail_msg("%s", status.message);
	for (int k = 0; k < 4; k++)
		t[k] = (WeftTensor){.data = v[k],
				    .device = {WEFT_CPU, 0},
				    .ndim = 1,
				    .dtype = {WEFT_FLOAT, 32, 1},
				    .shape = three};
	WeftTensor set = t[0];
	set.data = five;
	assert_int_equal(m->state_set(in, 0, &set, NULL), WEFT_OK);
	if (m->get_weights(in, 4, name, t, NULL, &status))
		fail_msg("%s", status.message);
	for (int k = 0; k < 4; k++)
		for (int i = 0; i < 3; i++)
			assert_true(v[k][i] == (k == 3 ? 0.f : 1.f));
	m->close(in);
}

static void test_roles(void **state)
{
	(void)state;
	uint32_t n;
	Weft *w = weft_new();
	WeftGraph *g = weft_load(w, TEST_DATA "/state/roles.pt2");
	if (!g)
		fail_msg("%s", weft_messages(w));
	const WeftTensorInfo *t = weft_inputs(w, g, &n);
	assert_int_equal(n, 1);
	check(t, &input);
	t = weft_states(w, g, &n);
	assert_int_equal(n, NSTATE);
	for (uint32_t k = 0; k < n; k++)
		check(&t[k], &states[k]);
	t = weft_outputs(w, g, &n);
	assert_string_equal(t[0].role, "output");
	WeftOptions o = {.size = sizeof o},
		    replaceable = {.size = sizeof replaceable, .replaceable = true};
	check_model(w, weft_loops(w, g, &o));
	const WeftModel *m = weft_loops(w, g, &replaceable);
	check_model(w, m);
	check_first(m);
	if (weft_has_llvm()) {
		m = weft_jit(w, g, &o);
		check_model(w, m);
		check_first(m);
	}
	weft_free(w);
}

/* The seed may be an input. */
static void test_rng_input(void **state)
{
	(void)state;
	uint32_t n;
	Weft *w = weft_new();
	const WeftLoadOptions o = {.size = sizeof o, .rng_input = true};
	const WeftTensorInfo *t =
		weft_inputs(w, weft_load_with(w, TEST_DATA "/state/roles.pt2", &o), &n);
	assert_int_equal(n, 2);
	check(&t[0], &input);
	check(&t[1], &key);
	weft_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_roles),
					   cmocka_unit_test(test_rng_input)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
