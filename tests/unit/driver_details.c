/* weft_details: which nodes became which kernels, buffers and lifetimes; the code of a kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "weft.h"

static void expect_error(Weft *w, const char *text)
{
	const char *all = weft_messages(w);
	if (!strstr(all, text))
		fail_msg("expected '%s' in: %s", text, all);
}

/* A sum that is stored for two readers, a permuted operand, and a node that nothing reads. */
static const char net[] = "graph @net(%x: f32[B, 64], %w: f32[64, 64]) where 1 <= B <= 512 {\n"
			  "  %twice = aten.add.Tensor(%x, %x) : f32[B, 64]  ; net.py:3 in a\n"
			  "  %none = aten.permute(%w, dims=[1, 0]) : f32[64, 64]\n"
			  "  %product = aten.mm(%twice, %none) : f32[B, 64]  ; net.py:5 in b\n"
			  "  %relu = aten.relu(%product) : f32[B, 64]  ; net.py:6 in b\n"
			  "  %unread = aten.exp(%x) : f32[B, 64]\n"
			  "  return %relu, %twice\n"
			  "}\n";

static const WeftNodeDetails *named(const WeftDetails *d, const char *name)
{
	for (uint32_t k = 0; k < d->nnode; k++)
		if (!strcmp(d->node[k].name, name))
			return &d->node[k];
	fail_msg("no node %s", name);
	return NULL;
}

static uint32_t number(const WeftDetails *d, const char *name)
{
	return (uint32_t)(named(d, name) - d->node) + 1;
}

/* Returns how many kernels have an operator of the node. */
static uint32_t kernels_of(const WeftDetails *d, const char *name)
{
	uint32_t n = 0, of = number(d, name);
	for (uint32_t k = 0; k < d->nkernel; k++) {
		bool has = false;
		for (uint32_t i = 0; i < d->kernel[k].nop; i++)
			has |= d->kernel[k].op[i].node == of;
		n += has;
	}
	return n;
}

static void test_nodes(void **state)
{
	(void)state;
	const int64_t size = 10;
	Weft *w = weft_new();
	WeftGraph *g = weft_parse(w, net, "net");
	WeftOptions o = {.size = sizeof o, .target = "x86-64-v3"};
	assert_true(g && weft_plan(w, g, &o));
	const WeftDetails *d = weft_details(w, g, 0, &size, 1);
	assert_non_null(d);
	assert_int_equal(d->nnode, 7);
	assert_string_equal(d->target, "x86-64-v3");
	assert_string_equal(d->node[0].kind, "input");
	assert_string_equal(d->node[0].user_name, "x");
	assert_true(d->node[0].bytes == 10 * 64 * 4);
	const WeftNodeDetails *product = named(d, "product");
	assert_string_equal(product->op, "aten.mm");
	assert_string_equal(product->line, "net.py:5 in b");
	assert_string_equal(product->type, "f32[B, 64]");
	assert_int_equal(product->noperand, 2);
	assert_int_equal(product->operand[0], number(d, "twice"));
	assert_int_equal(kernels_of(d, "product"), 1);
	assert_int_equal(kernels_of(d, "relu"), 1);
	assert_int_equal(kernels_of(d, "unread"), 0);
	assert_true(kernels_of(d, "twice") >= 1);
	weft_free(w);
}

static void test_kernels(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *g = weft_parse(w, net, "net");
	WeftOptions o = {.size = sizeof o, .target = "x86-64-v3"};
	assert_true(g && weft_plan(w, g, &o));
	const WeftDetails *d = weft_details(w, g, 0, NULL, 0);
	const WeftReport *r = weft_report(w);
	assert_int_equal(d->nkernel, r->nkernel);
	bool main_node = false;
	for (uint32_t k = 0; k < d->nkernel; k++) {
		const WeftKernelDetails *kernel = &d->kernel[k];
		main_node |= kernel->node == number(d, "product");
		assert_true(kernel->nop > 0 && kernel->naccess > 0 && !kernel->user);
		for (uint32_t i = 0; i < kernel->naccess; i++) {
			const WeftKernelAccess *a = &kernel->access[i];
			assert_true(a->buffer >= 1 && a->buffer <= d->nbuffer);
			assert_true(a->read || a->written);
			const WeftBufferDetails *b = &d->buffer[a->buffer - 1];
			if (b->first)
				assert_true(b->first <= k + 1 && k + 1 <= b->last);
			else
				assert_string_not_equal(b->kind, "workspace");
		}
		const char *source = weft_kernel_source(w, 0, k);
		assert_non_null(source);
		assert_non_null(strstr(source, "begin"));
		assert_ptr_equal(strstr(source, "#include"), NULL);
	}
	assert_true(main_node);
	weft_free(w);
}

/* A value that each of two reductions computes is marked in the second one. */
static void test_again(void **state)
{
	(void)state;
	static const char both[] = "graph @both(%x: f32[64, 64]) {\n"
				   "  %abs = aten.abs(%x) : f32[64, 64]\n"
				   "  %a = aten.amax(%abs, dim=[0]) : f32[64]\n"
				   "  %b = aten.amax(%abs, dim=[1]) : f32[64]\n"
				   "  return %a, %b\n"
				   "}\n";
	uint32_t again = 0, first = 0;
	Weft *w = weft_new();
	WeftGraph *g = weft_parse(w, both, "both");
	assert_true(g && weft_plan(w, g, NULL));
	const WeftDetails *d = weft_details(w, g, 0, NULL, 0);
	for (uint32_t k = 0; k < d->nkernel; k++)
		for (uint32_t i = 0; i < d->kernel[k].nop; i++)
			if (d->kernel[k].op[i].node == number(d, "abs")) {
				again += d->kernel[k].op[i].again;
				first += !d->kernel[k].op[i].again;
			}
	assert_int_equal(first, 1);
	assert_int_equal(again, 1);
	assert_int_equal(kernels_of(d, "abs"), 2);
	weft_free(w);
}

static void test_wrong_calls(void **state)
{
	(void)state;
	const int64_t size = 513;
	Weft *w = weft_new();
	WeftGraph *g = weft_parse(w, net, "net"), *other = weft_parse(w, net, "net");
	assert_null(weft_details(w, g, 0, NULL, 0));
	expect_error(w, "nothing was compiled");
	assert_null(weft_kernel_source(w, 0, 0));
	assert_true(weft_plan(w, g, NULL));
	assert_null(weft_details(w, other, 0, NULL, 0));
	expect_error(w, "another graph");
	assert_null(weft_details(w, g, 1, NULL, 0));
	expect_error(w, "there is no entry 1");
	assert_null(weft_details(w, g, 0, &size, 2));
	expect_error(w, "values of 2 symbols, expected 1");
	assert_null(weft_details(w, g, 0, &size, 1));
	expect_error(w, "B cannot be 513");
	assert_null(weft_kernel_source(w, 0, 1000));
	expect_error(w, "there is no kernel 1000");
	assert_null(weft_details(NULL, g, 0, NULL, 0));
	weft_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_kernels),
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_wrong_calls),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
