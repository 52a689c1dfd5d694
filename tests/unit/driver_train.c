/* weft_train: steps in numbers beside a computation by hand, what entries take and give, which
 * state there is, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "weft_call.h"
#include "weft_trace.h"

enum { N = 3 };

static const float w_first[2] = {0.5f, -1}, b_first[1] = {0.25f};
static const int64_t table_first[2] = {3, 4};

/* Returns the model y = x w + b, with the shape f32[B, 1], or f32[3, 1] if `fixed`. */
static WeftGraph *linear(Weft *w, bool fixed)
{
	WeftTrace *t = weft_trace_new(w, "linear");
	weft_trace_symbol(t, "B", 1, 100);
	const WeftValue x = weft_trace_input(t, "x", fixed ? "f32[3, 2]" : "f32[B, 2]"),
			weight = weft_trace_param(t, "out.weight", "f32[2, 1]", w_first),
			bias = weft_trace_param(t, "out.bias", "f32[1]", b_first);
	WeftValue y = weft_binary(t, "aten.matmul", x, weight);
	y = weft_binary(t, "aten.add.Tensor", y, bias);
	weft_trace_output(t, "y", y);
	WeftGraph *g = weft_trace_end(t);
	if (!g)
		fail_msg("%s", weft_messages(w));
	return g;
}

static const WeftModel *opened(Weft *w, const WeftGraph *g, WeftTrainOptions o, WeftCall *step)
{
	o.size = sizeof o;
	WeftGraph *train = weft_train(w, g, NULL, &o);
	const WeftModel *m = train ? weft_loops(w, train, NULL) : NULL;
	if (!m || weft_call_open(step, m, 0))
		fail_msg("%s", m ? step->status.message : weft_messages(w));
	return m;
}

static void get(const WeftCall *c, const char *name, void *to, WeftDType type, int32_t rank,
		const int64_t *dim)
{
	WeftStatus status;
	const WeftTensor t = weft_tensor(to, type, rank, dim);
	const int32_t k = weft_state_index(c->model, name);
	if (k < 0)
		fail_msg("no state %s", name);
	if (c->model->state_get(c->instance, (uint32_t)k, &t, &status))
		fail_msg("%s", status.message);
}

/* What a step computes by hand. */
typedef struct {
	double w[2], b, mw[2], mb, loss, norm;
} Hand;

/* SGD with momentum 0.5, a weight decay of the weight alone, and gradients of a norm of 1 at
 * most. */
static void by_hand(Hand *h, float x[N][2], float label[N][1], double lr, double decay)
{
	double g[3] = {0}, sum = 0;
	h->loss = 0;
	for (int k = 0; k < N; k++) {
		const double y = (double)x[k][0] * h->w[0] + (double)x[k][1] * h->w[1] + h->b,
			     d = y - (double)label[k][0];
		h->loss += d * d / N;
		g[0] += 2 * d * (double)x[k][0] / N;
		g[1] += 2 * d * (double)x[k][1] / N;
		g[2] += 2 * d / N;
	}
	for (int k = 0; k < 3; k++)
		sum += g[k] * g[k];
	h->norm = sqrt(sum);
	const double factor = fmin(1, 1 / (h->norm + 1e-6));
	for (int k = 0; k < 2; k++) {
		h->mw[k] = 0.5 * h->mw[k] + factor * g[k] + decay * h->w[k];
		h->w[k] -= lr * h->mw[k];
	}
	h->mb = 0.5 * h->mb + factor * g[2];
	h->b -= lr * h->mb;
}

static void test_numbers(void **unused)
{
	(void)unused;
	Weft *w = weft_new();
	WeftCall step;
	const char *groups[] = {"*.weight : weight_decay=0.125"};
	const WeftModel *m = opened(w, linear(w, false),
				    (WeftTrainOptions){.optimizer = "sgd(lr=input, momentum=0.5)",
						       .loss = "mse(output=0)",
						       .group = groups,
						       .ngroup = 1,
						       .clip_norm = "1"},
				    &step);
	assert_int_equal(m->nentry, 2);
	assert_int_equal(step.entry->ninput, 3);
	assert_string_equal(weft_input(m, step.entry, 0)->name, "x");
	assert_string_equal(weft_input(m, step.entry, 1)->name, "label");
	assert_string_equal(weft_input(m, step.entry, 2)->name, "lr");
	assert_int_equal(step.entry->noutput, 2);
	assert_string_equal(weft_output(m, step.entry, 0)->name, "loss");
	assert_string_equal(weft_output(m, step.entry, 1)->name, "grad_norm");
	float x[N][2] = {{1, 2}, {-1, 3}, {0.5f, -2}}, label[N][1] = {{1}, {-2}, {3}}, got[2];
	double lr = 0.5;
	const WeftTensor in[] = {weft_tensor(x, WEFT_F32, 2, (int64_t[]){N, 2}),
				 weft_tensor(label, WEFT_F32, 2, (int64_t[]){N, 1}),
				 weft_tensor(&lr, WEFT_F64, 0, NULL)};
	Hand h = {.w = {0.5, -1}, .b = 0.25};
	for (int k = 0; k < 4; k++, lr /= 2) {
		by_hand(&h, x, label, lr, 0.125);
		if (weft_call_run(&step, in))
			fail_msg("%s", step.status.message);
		assert_float_equal(*(float *)step.output[0].data, (float)h.loss, 1e-5);
		assert_float_equal(*(float *)step.output[1].data, (float)h.norm, 1e-5);
		get(&step, "out.weight", got, WEFT_F32, 2, (int64_t[]){2, 1});
		assert_float_equal(got[0], (float)h.w[0], 1e-5);
		assert_float_equal(got[1], (float)h.w[1], 1e-5);
		get(&step, "out.bias", got, WEFT_F32, 1, (int64_t[]){1});
		assert_float_equal(got[0], (float)h.b, 1e-5);
	}
	get(&step, "state.out.weight.momentum_buffer", got, WEFT_F32, 2, (int64_t[]){2, 1});
	assert_float_equal(got[1], (float)h.mw[1], 1e-5);
	get(&step, "optimizer.1.started", got, WEFT_F32, 1, (int64_t[]){1});
	assert_float_equal(got[0], 1, 0);
	/* the other entry reads what the step has written */
	WeftSizes *sizes = malloc(weft_entry(m, 1)->sizes_bytes);
	float y[N];
	WeftTensor out = weft_tensor(y, WEFT_F32, 2, (int64_t[]){N, 1});
	WeftStatus status;
	assert_string_equal(weft_entry(m, 1)->name, "eval");
	assert_int_equal(m->sizes(step.instance, 1, in, sizes, &status), 0);
	char *work = malloc(sizes->workspace_bytes + 1);
	assert_int_equal(m->run(step.instance, sizes, in, &out, work, NULL, &status), 0);
	assert_float_equal(y[1], (float)(3 * h.w[1] - h.w[0] + h.b), 1e-5);
	free(work);
	free(sizes);
	weft_call_close(&step);
	weft_free(w);
}

/* A step that fails changes nothing. */
static void test_failure(void **unused)
{
	(void)unused;
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "classes");
	static const float first[6] = {1, 2, 3, 4, 5, 6};
	const WeftValue x = weft_trace_input(t, "x", "f32[3, 2]"),
			weight = weft_trace_param(t, "weight", "f32[2, 3]", first);
	weft_trace_output(t, "y", weft_binary(t, "aten.matmul", x, weight));
	WeftGraph *g = weft_trace_end(t);
	WeftCall step;
	opened(w, g,
	       (WeftTrainOptions){.optimizer = "adamw",
				  .loss = "cross_entropy(label_smoothing=0.1)"},
	       &step);
	float data[3][2] = {{1, 2}, {3, 4}, {5, 6}}, got[6];
	int64_t label[3] = {0, 1, 3};
	const WeftTensor in[] = {weft_tensor(data, WEFT_F32, 2, (int64_t[]){3, 2}),
				 weft_tensor(label, WEFT_I64, 1, (int64_t[]){3})};
	assert_int_equal(weft_call_run(&step, in), WEFT_ERR_CHECK);
	get(&step, "weight", got, WEFT_F32, 2, (int64_t[]){2, 3});
	assert_memory_equal(got, first, sizeof first);
	get(&step, "optimizer.0.step", got, WEFT_F32, 1, (int64_t[]){1});
	assert_float_equal(got[0], 0, 0);
	label[2] = 2;
	assert_int_equal(weft_call_run(&step, in), WEFT_OK);
	get(&step, "optimizer.0.step", got, WEFT_F32, 1, (int64_t[]){1});
	assert_float_equal(got[0], 1, 0);
	weft_call_close(&step);
	weft_free(w);
}

/* A learning rate that is a function of the count of steps, and a parameter that is left alone. */
static void test_schedule(void **unused)
{
	(void)unused;
	Weft *w = weft_new();
	WeftCall step;
	const char *trained[] = {"*.bias"};
	opened(w, linear(w, true),
	       (WeftTrainOptions){.optimizer = "sgd(lr=cosine(0.5, steps=4, warmup=1))",
				  .loss = "l1",
				  .trainable = trained,
				  .ntrainable = 1,
				  .clip_value = "0.5"},
	       &step);
	assert_true(weft_state_index(step.model, "out.weight") < 0);
	float x[N][2] = {{0}}, label[N][1] = {{9}, {9}, {9}}, got[1];
	double b = 0.25;
	const double rate[] = {0.25, 0.5, 0.5 * (0.5 + 0.5 * 0.5), 0.5 * (0.5 - 0.5 * 0.5), 0};
	const WeftTensor in[] = {weft_tensor(x, WEFT_F32, 2, (int64_t[]){N, 2}),
				 weft_tensor(label, WEFT_F32, 2, (int64_t[]){N, 1})};
	for (int k = 0; k < 5; k++) {
		b += 0.5 * rate[k]; /* the gradient is -1, which is clipped */
		if (weft_call_run(&step, in))
			fail_msg("%s", step.status.message);
		get(&step, "out.bias", got, WEFT_F32, 1, (int64_t[]){1});
		assert_float_equal(got[0], (float)b, 1e-6);
	}
	int64_t count;
	get(&step, "weft.step", &count, WEFT_I64, 0, NULL);
	assert_int_equal(count, 5);
	weft_call_close(&step);
	weft_free(w);
}

/* Expects that options are refused with the message. */
static void refused(const WeftTrainOptions *options, const char *message)
{
	Weft *w = weft_new();
	WeftTrainOptions o = *options;
	o.size = sizeof o;
	o.optimizer = o.optimizer ? o.optimizer : "sgd";
	o.loss = o.loss ? o.loss : "mse";
	assert_null(weft_train(w, linear(w, false), NULL, &o));
	if (!strstr(weft_messages(w), message))
		fail_msg("expected \"%s\": %s", message, weft_messages(w));
	weft_free(w);
}

#define GROUP(text)   &(WeftTrainOptions){.group = (const char *[]){text}, .ngroup = 1}
#define TRAINED(text) &(WeftTrainOptions){.trainable = (const char *[]){text}, .ntrainable = 1}

static void test_refused(void **unused)
{
	(void)unused;
	refused(&(WeftTrainOptions){.optimizer = "adem"},
		"there is no optimiser adem: there are sgd");
	refused(&(WeftTrainOptions){.optimizer = "sgd(lr=input"}, "expected a comma or \")\"");
	refused(&(WeftTrainOptions){.optimizer = "sgd(lr=1, lr=2)"}, "lr is given twice");
	refused(&(WeftTrainOptions){.optimizer = "sgd(rate=1)"},
		"sgd has no option rate: there are lr");
	refused(&(WeftTrainOptions){.optimizer = "sgd(lr=cosine(1))"}, "cosine needs steps");
	refused(&(WeftTrainOptions){.optimizer = "sgd(nesterov=maybe)"},
		"nesterov is true or false");
	refused(&(WeftTrainOptions){.loss = "crossentropy"}, "there is no loss crossentropy");
	refused(&(WeftTrainOptions){.loss = "output:1"}, "there is no output 1: the model has 1");
	refused(&(WeftTrainOptions){.loss = "output:0"}, "expected one number");
	refused(&(WeftTrainOptions){.loss = "cross_entropy(dim=0)"},
		"expected a batch, and classes");
	refused(&(WeftTrainOptions){.loss = "huber(beta=1)"}, "huber has no number beta");
	refused(&(WeftTrainOptions){.clip_norm = "-1"}, "expected a number above 0");
	refused(&(WeftTrainOptions){.ema = "1"}, "--ema: error: 1: expected a number below 1");
	refused(&(WeftTrainOptions){.precision = "f8"}, "of a step is bf16 or f16, not f8");
	refused(&(WeftTrainOptions){.loss_scale = "dynamic(growth=-1)"},
		"expected numbers above 0");
	refused(&(WeftTrainOptions){.optimizer = "muon"}, "expected two dimensions");
	refused(&(WeftTrainOptions){.optimizer = "sgd(lr=cosine(1, steps=9, warmup=9))"},
		"the warmup of 9 steps takes all of the 9 steps");
	refused(&(WeftTrainOptions){.optimizer = "sgd(lr=linear(1, steps=9, warmup=-1))"},
		"warmup=-1: expected a number from 0 on");
	refused(&(WeftTrainOptions){.optimizer = "sgd(lr=step(1, every=0))"},
		"every=0: expected a number of steps");
	refused(GROUP("*.bais: lr=1"), "no parameter is called *.bais");
	refused(GROUP("*.bias lr=1"), "expected PATTERNS: KEY=VALUE");
	refused(GROUP("*.bias: 3"), "expected KEY=VALUE");
	refused(GROUP(" : lr=1"), "a pattern is missing");
	refused(TRAINED("out.weigth"),
		"no parameter is called out.weigth; did you mean out.weight?");
}

/* Integers have no gradient; what has no derivative is listed. */
static void test_untrainable(void **unused)
{
	(void)unused;
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "net");
	static const float first[2] = {1, 2};
	const WeftValue table = weft_trace_param(t, "table", "i64[2]", table_first),
			scale = weft_trace_param(t, "scale", "f32[2]", first),
			x = weft_trace_input(t, "x", "f32[2]");
	WeftValue y = weft_binary(t, "aten.mul.Tensor", x, scale);
	y = weft_unary(t, "aten.special_airy_ai", y);
	y = weft_binary(t, "aten.igamma", y, x);
	y = weft_binary(t, "aten.mul.Tensor", y, table);
	y = weft_unary(t, "aten.special_airy_ai", y);
	weft_trace_output(t, "y", y);
	WeftGraph *g = weft_trace_end(t);
	if (!g)
		fail_msg("%s", weft_messages(w));
	const char *pattern[] = {"table"};
	WeftTrainOptions o = {.size = sizeof o, .optimizer = "sgd", .loss = "mse"};
	assert_null(weft_train(w, g, NULL, &o));
	if (!strstr(weft_messages(w), "operators without a derivative, in all: airy_ai, igamma\n"))
		fail_msg("%s", weft_messages(w));
	o.trainable = pattern;
	o.ntrainable = 1;
	assert_null(weft_train(w, g, NULL, &o));
	if (!strstr(weft_messages(w), "table is i64, which cannot be trained"))
		fail_msg("%s", weft_messages(w));
	assert_null(weft_train(w, NULL, NULL, &o));
	assert_null(weft_train(w, g, NULL, NULL));
	weft_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),     cmocka_unit_test(test_failure),
		cmocka_unit_test(test_schedule),    cmocka_unit_test(test_refused),
		cmocka_unit_test(test_untrainable),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
