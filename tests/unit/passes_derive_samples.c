/* Derivatives of every operator, from its samples in f64 (the language: ir/op/op.h), at the values
 * of the sample and near them, with sizes as numbers and as symbols; first and second derivatives,
 * backwards and forwards in all orders, against each other and against differences of values
 * (tests/oracle/derivative.h): forwards over backwards is backwards over backwards for each. So an
 * operator is tested by having a sample. What is excepted stands below, with the reason; an
 * exception that is not needed fails. passes_derive_samples [PART PARTS]: each PARTS-th operator
 * only. OP=name in the environment: that op alone, its graphs printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/interp/interp.h"
#include "tests/oracle/derivative.h"
#include "tests/help/sample.h"

typedef enum {
	NO_DERIVATIVE = 1, /* an error says so */
	NO_SECOND = 2,     /* an error says so */
	KINKS = 4,         /* at the values of the sample, which PyTorch's conventions are for; near
	                      them there are differences */
	CONVENTION = 8,    /* PyTorch's derivative is not that of the values */
	ROUNDS = 16,       /* the sample goes through a narrower dtype */
	BY_FIRST = 32,     /* differences are taken by the first operand only */
	ASYMMETRIC = 64,   /* second derivatives backwards are not those forwards, nor are
	                      PyTorch's */
} Excepted;

typedef struct {
	const char *name;
	Excepted how;
	const char *why;
} Exception;

static const Exception exceptions[] = {
	{"igamma", NO_DERIVATIVE, "by the order there is none in closed form, nor in PyTorch"},
	{"igammac", NO_DERIVATIVE, "by the order there is none in closed form, nor in PyTorch"},
	{"aten.igamma", NO_DERIVATIVE, "by the order there is none in closed form, nor in PyTorch"},
	{"aten.igammac", NO_DERIVATIVE,
	 "by the order there is none in closed form, nor in PyTorch"},
	{"aten.special_gammainc", NO_DERIVATIVE,
	 "by the order there is none in closed form, nor in PyTorch"},
	{"aten.special_gammaincc", NO_DERIVATIVE,
	 "by the order there is none in closed form, nor in PyTorch"},
	{"aten.special_airy_ai", NO_DERIVATIVE, "nor has PyTorch"},
	{"aten.histogram.bin_ct", KINKS, "elements on the edges of bins"},
	{"aten.nextafter", KINKS, "equal operands, where PyTorch's is 0"},
	{"aten.embedding", CONVENTION, "padding and counts are of cotangents only"},
	{"aten.embedding_renorm", CONVENTION, "derivatives pass through"},
	{"aten.native_batch_norm", CONVENTION, "statistics have no derivative"},
	{"aten._native_batch_norm_legit", CONVENTION, "statistics have no derivative"},
	{"aten._native_batch_norm_legit.no_stats", CONVENTION, "statistics have no derivative"},
	{"aten._batch_norm_with_update", CONVENTION, "statistics have no derivative"},
	{"aten._batch_norm_with_update_functional", CONVENTION, "statistics have no derivative"},
	{"aten._native_batch_norm_legit_functional", CONVENTION, "statistics have no derivative"},
	{"aten.native_layer_norm", CONVENTION, "statistics have no derivative"},
	{"aten.nll_loss", CONVENTION, "tangents pass class weights over"},
	{"aten.nll_loss_nd", CONVENTION, "tangents pass class weights over"},
	{"aten.nll_loss2d", CONVENTION, "tangents pass class weights over"},
	{"aten.nll_loss_forward", CONVENTION, "tangents pass class weights over"},
	{"aten.nll_loss2d_forward", CONVENTION, "tangents pass class weights over"},
	{"aten.cross_entropy_loss", CONVENTION, "tangents pass class weights over"},
	{"torch_nn._linear_cross_entropy_batch_chunked", CONVENTION,
	 "tangents pass class weights over"},
	{"torch_nn._linear_cross_entropy_batch_chunked_no_reduction", CONVENTION,
	 "tangents pass class weights over"},
	{"aten.view.dtype", CONVENTION, "bits have no derivative"},
	{"aten.view_copy.dtype", CONVENTION, "bits have no derivative"},
	{"aten._standard_gamma", CONVENTION, "of the quantile that was drawn, as PyTorch's, "
					     "not of the rounds"},
	{"aten._sample_dirichlet", CONVENTION, "of the quantile that was drawn, as PyTorch's, "
					       "not of the rounds"},
	{"aten.normal.Tensor_Tensor", CONVENTION, "what is drawn has no derivative"},
	{"aten.normal.Tensor_float", CONVENTION, "what is drawn has no derivative"},
	{"aten.normal.float_Tensor", CONVENTION, "what is drawn has no derivative"},
	{"aten.fake_quantize_per_tensor_affine", CONVENTION, "passes through what is rounded"},
	{"aten.fake_quantize_per_tensor_affine.tensor_qparams", CONVENTION,
	 "passes through what is rounded"},
	{"aten.fake_quantize_per_tensor_affine_cachemask", CONVENTION,
	 "passes through what is rounded"},
	{"aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams", CONVENTION,
	 "passes through what is rounded"},
	{"aten.fake_quantize_per_channel_affine", CONVENTION, "passes through what is rounded"},
	{"aten.fake_quantize_per_channel_affine_cachemask", CONVENTION,
	 "passes through what is rounded"},
	{"aten._fake_quantize_learnable_per_tensor_affine", CONVENTION,
	 "passes through what is rounded"},
	{"aten._fake_quantize_learnable_per_channel_affine", CONVENTION,
	 "passes through what is rounded"},
	{"aten._fused_moving_avg_obs_fq_helper_functional", CONVENTION,
	 "passes through what is rounded"},
	{"straight_through", CONVENTION, "it says so"},
	{"without_cotangent", CONVENTION, "it says so"},
	{"replaced", CONVENTION, "it says so"},
	{"aten.detach", CONVENTION, "it has no derivative"},
	{"aten.detach_copy", CONVENTION, "it has no derivative"},
	{"aten.linalg_cholesky", CONVENTION, "of symmetric matrices; one triangle is read"},
	{"aten.linalg_cholesky_ex", CONVENTION, "of symmetric matrices; one triangle is read"},
	{"aten.linalg_ldl_factor", NO_DERIVATIVE, "nor in PyTorch"},
	{"aten.linalg_ldl_factor_ex", NO_DERIVATIVE, "nor in PyTorch"},
	{"aten.linalg_ldl_solve", NO_DERIVATIVE, "by the factors, nor in PyTorch"},
	{"aten.linalg_eigh", CONVENTION, "of symmetric matrices; one triangle is read"},
	{"aten.linalg_eigvalsh", CONVENTION, "of symmetric matrices; one triangle is read"},
	{"aten._linalg_eigh", CONVENTION, "of symmetric matrices; one triangle is read"},
	{"aten.linalg_matrix_sqrth", CONVENTION, "of symmetric matrices; one triangle is read"},
	{"aten.linalg_pinv.atol_rtol_float", CONVENTION, "of symmetric matrices, if it is told so"},
	{"cholesky", CONVENTION, "of symmetric matrices; one triangle is read"},
	{"lu", KINKS, "a sample is singular"},
	{"geqrf", NO_DERIVATIVE, "nor has PyTorch"},
	{"aten.geqrf", NO_DERIVATIVE, "nor has PyTorch"},
	{"aten.linalg_qr", NO_DERIVATIVE, "of R alone, and of more rows than columns of a complete "
					  "Q; nor has PyTorch"},
	{"aten.linalg_det", KINKS, "of a singular matrix it is 0, as in PyTorch"},
	{"aten.linspace.Tensor_Tensor", ROUNDS, "the sample's dtype is narrower"},
	{"aten.linspace.Tensor_Scalar", ROUNDS, "the sample's dtype is narrower"},
	{"aten.linspace.Scalar_Tensor", ROUNDS, "the sample's dtype is narrower"},
	{"aten.logspace.Tensor_Tensor", ROUNDS, "the sample's dtype is narrower"},
	{"aten.logspace.Tensor_Scalar", ROUNDS, "the sample's dtype is narrower"},
	{"aten.logspace.Scalar_Tensor", ROUNDS, "the sample's dtype is narrower"},
	{"aten.to.dtype", ROUNDS, "the sample's dtype is narrower"},
	{"aten.to.device", ROUNDS, "the sample's dtype is narrower"},
	{"aten.to.dtype_layout", ROUNDS, "the sample's dtype is narrower"},
	{"aten._to_copy", ROUNDS, "the sample's dtype is narrower"},
	{"aten.chalf", ROUNDS, "the sample's dtype is narrower"},
	{"prims.convert_element_type", ROUNDS, "the sample's dtype is narrower"},
	{"quantized_decomposed.convert_element_type.no_fuse", ROUNDS,
	 "the sample's dtype is narrower"},
	{"quantized_decomposed.dequantize_per_tensor.tensor", ROUNDS, "scales are f32"},
	{"quantized_decomposed.dequantize_per_tensor.tensor2", ROUNDS, "scales are f32"},
	{"quantized_decomposed.dequantize_per_channel", ROUNDS, "scales are f32"},
	{"quantized_decomposed.choose_qparams.tensor", ROUNDS, "scales are f32"},
	{"quantized_decomposed.choose_qparams_symmetric.tensor", ROUNDS, "scales are f32"},
	{"quantized_decomposed.fake_quant_per_channel", ROUNDS, "scales are f32"},
	{"aten._fake_quantize_learnable_per_tensor_affine_backward", ROUNDS, "scales are f32"},
	{"aten._fake_quantize_learnable_per_channel_affine_backward", ROUNDS, "scales are f32"},
	{"torchao.dequantize_affine", ROUNDS, "scales are f32"},
	{"aten.binary_cross_entropy", ASYMMETRIC,
	 "a sample has 0 and 1, which are infinitely steep"},
	{"aten.copysign.Tensor", KINKS, "of 0 with a sign"},
	{"pow", KINKS,
	 "PyTorch has no derivative by the exponent of what is 0 where the exponent is"},
	{"aten.pow.Tensor_Tensor", KINKS,
	 "PyTorch has no derivative by the exponent of what is 0 where the exponent is"},
	{"aten.float_power.Tensor_Tensor", KINKS,
	 "PyTorch has no derivative by the exponent of what is 0 where the exponent is"},
	{"aten.log_sigmoid_forward", KINKS, "the logarithm's argument is 0 in the buffer"},
	{"aten.log_sigmoid_backward", KINKS, "the logarithm's argument is 0 in the buffer"},
	{"aten.scatter.reduce", KINKS,
	 "a product of several zeros has no second derivative in PyTorch"},
	{"aten.scatter_reduce.two", KINKS,
	 "a product of several zeros has no second derivative in PyTorch"},
	{"aten.index_reduce", KINKS,
	 "a product of several zeros has no second derivative in PyTorch"},
	{"aten._unique2", KINKS, "equal elements, which moved ones are not"},
	{"aten.unique_dim", KINKS, "equal elements, which moved ones are not"},
	{"aten.special_chebyshev_polynomial_t.n_scalar", KINKS,
	 "the ends of the interval; PyTorch has no derivative at all"},
	{"aten.special_shifted_chebyshev_polynomial_t.n_scalar", KINKS,
	 "the ends of the interval; PyTorch has no derivative at all"},
	{"aten.special_chebyshev_polynomial_u.n_scalar", KINKS,
	 "the ends of the interval; PyTorch has no derivative at all"},
	{"aten.special_shifted_chebyshev_polynomial_u.n_scalar", KINKS,
	 "the ends of the interval; PyTorch has no derivative at all"},
	{"aten.special_chebyshev_polynomial_v.n_scalar", KINKS,
	 "the ends of the interval; PyTorch has no derivative at all"},
	{"aten.special_shifted_chebyshev_polynomial_v.n_scalar", KINKS,
	 "the ends of the interval; PyTorch has no derivative at all"},
	{"aten.special_chebyshev_polynomial_w.n_scalar", KINKS,
	 "the ends of the interval; PyTorch has no derivative at all"},
	{"aten.special_shifted_chebyshev_polynomial_w.n_scalar", KINKS,
	 "the ends of the interval; PyTorch has no derivative at all"},
	{"torchvision.roi_align", BY_FIRST, "regions have no derivative, nor in torchvision"},
	{"torchvision.ps_roi_align", BY_FIRST, "regions have no derivative, nor in torchvision"},
	{"roi_align_max", BY_FIRST, "regions have no derivative, as torchvision's"},
	{"aten.quantile", BY_FIRST, "quantiles 0 and 1, beyond which there is nothing"},
	{"aten.nanquantile", BY_FIRST, "quantiles 0 and 1, beyond which there is nothing"},
};

static const Exception *exception_of(Op op)
{
	for (size_t k = 0; k < sizeof exceptions / sizeof *exceptions; k++)
		if (strcmp(exceptions[k].name, op_name(op)) == 0)
			return &exceptions[k];
	return NULL;
}

typedef struct {
	Op op;
	uint32_t k; /* which sample */
	bool symbolic, near;
	uint32_t only; /* 1 + the result that is derived; 0: all of them are */
	Excepted how;
	bool quiet;
	uint32_t failures, refused;
	uint32_t points;          /* samples that have derivatives */
	uint32_t checked, second; /* elements compared with differences; those of second
	                             derivatives */
	uint32_t products;        /* elements of products with a Hessian, forwards and backwards */
} Case;

static void failed(void *user, const char *what)
{
	Case *c = user;
	c->refused += strstr(what, "has no derivative\n") != NULL;
	c->failures += *what != ';'; /* a graph that is shown */
	if (!c->quiet)
		print_error("%s %u%s%s, %s", op_name(c->op), c->k, c->symbolic ? " symbolic" : "",
			    c->near ? " near" : "", what);
}

/* Differences can be taken of it. */
static bool is_fit(const Tensor *t)
{
	Tensor x = tensor_flat_real(t);
	bool fit = x.dtype == DT_f64;
	for (int64_t i = 0; fit && i < tensor_numel(&x); i++)
		fit = fabs(tensor_f64(&x, i)) < 100;
	return fit;
}

static bool all_fit(const Point *p)
{
	for (uint32_t k = 0; k < p->nin; k++)
		if (p->wrt[k] && !is_fit(&p->in[k]))
			return false;
	return true;
}

/* The same when other operators come. */
static uint64_t seed_of(Op op)
{
	uint64_t h = 0;
	for (const char *p = op_name(op); *p; p++)
		h = h * 31 + (uint8_t)*p;
	return h;
}

/* False: there is no such result, or no other. */
static bool keep_output(const Case *c, Graph *g)
{
	if (!c->only)
		return true;
	if (g->output.n < 2 || c->only > g->output.n)
		return false;
	GraphOutput out = g->output.data[c->only - 1];
	graph_clear_outputs(g);
	graph_add_output(g, out.name, out.node, -1);
	return true;
}

static void run_case(Case *c)
{
	Sample s;
	Point p;
	Ctx *ctx = ctx_new();
	assert_non_null(ctx);
	Derivative d = {.ctx = ctx,
			.rng = seed_of(c->op) + c->k,
			.failed = failed,
			.user = c,
			.print = getenv("OP") && !c->quiet};
	d.no_differences = c->how & (CONVENTION | ROUNDS) || (c->how & KINKS && !c->near);
	d.no_products = c->how & (CONVENTION | ROUNDS);
	d.no_second = c->how & NO_SECOND;
	d.no_hessian = d.no_differences || c->how & ASYMMETRIC;
	if (setjmp(ctx->unwind)) {
		failed(c, ctx->bug_text);
		ctx_free(ctx);
		return;
	}
	SampleForm form = {.symbolic = c->symbolic, .real = DT_f64};
	if (sample_build(ir_new(ctx), c->op, sample_text(ctx->arena, c->op, c->k), form, &s) &&
	    keep_output(c, s.g) && point_of(s.g, s.in, s.nin, ctx->arena, &p)) {
		bool *wrt = arena_dup(ctx->arena, p.wrt, (p.nin + 1) * sizeof *wrt);
		p.wrt = wrt;
		for (uint32_t k = 1; k < p.nin && c->how & BY_FIRST; k++)
			wrt[k] = false;
		p = c->near ? point_near(&d, p) : p;
		if (all_fit(&p)) {
			c->points++;
			derivative_check_twice(&d, p);
		}
	}
	c->checked += d.checked;
	c->second += d.checked - d.first;
	c->products += d.products;
	ctx_free(ctx);
}

/* All samples in all forms. */
static Case run_op(Op op, Excepted how, bool quiet)
{
	Case c = {.op = op, .how = how, .quiet = quiet};
	for (uint32_t n = sample_count(op); c.k < n; c.k++)
		for (uint32_t form = 0; form < 4; form++) {
			c.symbolic = form & 1;
			c.near = form >> 1;
			run_case(&c);
		}
	return c;
}

static uint32_t bad(Op op, const char *what)
{
	print_error("%s: %s\n", op_name(op), what);
	return 1;
}

/* It fails as it is, and with the exception it does not, or only by the error that is expected. */
static uint32_t run_exception(Op op, const Exception *x, Case *c)
{
	if (!run_op(op, 0, true).failures)
		return bad(op, "needs no exception: remove it");
	*c = run_op(op, x->how, x->how & NO_DERIVATIVE);
	if (x->how & NO_DERIVATIVE)
		return c->refused ? 0 : bad(op, "has a derivative");
	return c->failures;
}

typedef struct {
	uint32_t part, parts;
} Part;

static void samples(void **state)
{
	const Part *part = *state;
	const char *only = sample_only();
	uint32_t failures = 0, ops = 0, first = 0, second = 0, checked = 0, hessians = 0;
	for (Op op = 1; op < op_count(); op++) {
		const Exception *x = exception_of(op);
		Case c = {0};
		if ((only ? strcmp(only, op_name(op)) != 0 : op % part->parts != part->part) ||
		    op_info(op)->no_deriv)
			continue;
		if (x) {
			failures += run_exception(op, x, &c);
		} else {
			c = run_op(op, 0, false);
			failures += c.failures;
		}
		ops += c.points > 0;
		first += c.checked > c.second;
		second += c.second > 0;
		checked += c.checked;
		hessians += c.products > 0;
		if (c.points && !c.checked && !x)
			failures += bad(op, "no difference tells anything of its samples");
	}
	print_message("%u operators, %u compared with differences, %u of these twice, %u by their "
		      "Hessian's products; %u tangents are differences of values\n",
		      ops, first, second, hessians, checked);
	assert_int_equal(failures, 0);
}

/* Of operators with several results and a rule of their own: where one of them is used, the others
 * have no cotangents. */
static void single_results(void **state)
{
	const Part *part = *state;
	enum { RESULTS = 3 };
	Case c = {.near = true};
	for (c.op = 1; c.op < op_count(); c.op++) {
		const OpInfo *info = op_info(c.op);
		bool rule = info->vjp || info->jvp || info->adjoint;
		if (!rule || info->no_deriv || exception_of(c.op) ||
		    c.op % part->parts != part->part)
			continue;
		for (c.k = 0; c.k < sample_count(c.op); c.k++)
			for (c.only = 1; c.only <= RESULTS; c.only++)
				run_case(&c);
	}
	assert_int_equal(c.failures, 0);
}

int main(int argc, char **argv)
{
	op_init();
	Part part = {.parts = 1};
	if (argc == 3)
		part = (Part){(uint32_t)atoi(argv[1]), (uint32_t)atoi(argv[2])};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(samples, &part),
		cmocka_unit_test_prestate(single_results, &part),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
