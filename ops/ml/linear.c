/* Linear models and support vectors of ai.onnx.ml. */
#include "ops/ml/ml.h"

#include <string.h>

/* Returns the operand as f32[N, features]. */
static Node rows(Build *b, Node x)
{
	x = b_convert(b, x, DT_f32);
	if (!x.i)
		return x;
	x = node_rank(b->g, x) == 1 ? b_unsqueeze(b, x, 0) : x;
	return node_rank(b->g, x) == 2 ? x
				       : b_error(b, "an operand of rank %u, expected [N, features]",
						 node_rank(b->g, x));
}

/* Returns a list of numbers as [count, the rest]. */
static Node by_row(Build *b, Node v, int64_t count, const char *name)
{
	int64_t n;
	if (!v.i || !aten_const(b, b_dim(b, v, 0), &n))
		return v.i ? (Node){0} : b_error(b, "%s is empty", name);
	if (count < 1 || n % count)
		return b_error(b, "%s has %lld elements for %lld rows", name, (long long)n,
			       (long long)count);
	return b_reshape(b, v, 2, (Sym[]){b_int(b, count), b_int(b, n / count)});
}

/* Returns x w^T + bias of [count] targets. */
static Node linear(Build *b, Node n, int64_t count)
{
	Node x = rows(b, arg(b, n, "X")),
	     w = by_row(b, ml_numbers(b, n, "coefficients"), count, "coefficients"),
	     bias = ml_numbers(b, n, "intercepts");
	return x.i && w.i ? aten_linear(b, x, w, bias) : (Node){0};
}

/* ---- linear models ---- */

static Node build_regressor(Build *b, Node n)
{
	int64_t targets = aten_int(b, n, "targets");
	Node y = linear(b, n, targets);
	/* one score has no others to be compared with */
	bool alone = targets == 1 && !aten_is(b, n, "post_transform", "PROBIT");
	return alone ? y : ml_post_transform(b, y, node_str(b->g, n, "post_transform"));
}

OP(onnx_ml_LinearRegressor_1){
	.schema = "onnx_ml.LinearRegressor.1(Tensor X, *, float[] coefficients, float[]? "
		  "intercepts=None, str post_transform=\"NONE\", int targets=1) -> Tensor",
	.build = build_regressor,
	.no_sample = ML_CASES,
};

/* Reads the labels of a classifier, which are constants. Returns false after an error: strings. */
static bool labels_of(Build *b, Node n, int64_t **label, uint32_t *count)
{
	const Sym *v = aten_has(b, n, "classlabels_ints")
			       ? node_ints(b->g, n, "classlabels_ints", count)
			       : NULL;
	*count = v ? *count : 0;
	if (aten_has(b, n, "classlabels_strings") && !aten_is(b, n, "classlabels_strings", ""))
		b_error(b, "the labels are strings, which a compiled model does not hold: expected "
			   "classlabels_ints");
	else if (*count < 2)
		b_error(b, "classlabels_ints has %u labels, expected two at least", *count);
	else {
		*label = ARENA_ARRAY(b->g->ir->ctx->scratch, int64_t, *count);
		for (uint32_t k = 0; k < *count; k++)
			TRY(aten_const(b, v[k], &(*label)[k]));
		return true;
	}
	return false;
}

/* Classifies. With one score of two classes the label is the second one above 0, or above one
 * half where the score becomes a probability. */
static Node build_classifier(Build *b, Node n)
{
	int64_t *label;
	uint32_t count;
	Node bias = ml_numbers(b, n, "intercepts");
	const char *transform = node_str(b->g, n, "post_transform");
	if (!labels_of(b, n, &label, &count))
		return (Node){0};
	bool one = count == 2 && bias.i && sym_is(b_syms(b), b_dim(b, bias, 0), 1);
	Node s = linear(b, n, one ? 1 : count);
	if (!one) {
		Node best = b_arg_reduce(b, true, s, 1), z = ml_post_transform(b, s, transform);
		return z.i ? b_tuple(b, (Node[]){ml_labels(b, best, label, count), z}, 2) : z;
	}
	Node second = b_convert(b, b_squeeze(b, b_bin_scalar(b, OP_gt, s, 0), 1), DT_i64);
	Node z = b_concat(b, (Node[]){b_un(b, OP_neg, s), s}, 2, 1);
	z = ml_post_transform(b, z, transform);
	return z.i ? b_tuple(b, (Node[]){ml_labels(b, second, label, 2), z}, 2) : z;
}

OP(onnx_ml_LinearClassifier_1){
	.schema = "onnx_ml.LinearClassifier.1(Tensor X, *, int[]? classlabels_ints=None, str? "
		  "classlabels_strings=None, float[] coefficients, float[]? intercepts=None, "
		  "int multi_class=0, str post_transform=\"NONE\") -> (Tensor, Tensor)",
	.build = build_classifier,
	.no_sample = ML_CASES,
};

/* ---- support vectors ---- */

/* Returns the kernel of each row of x and each row of v: [N, vectors]. */
static Node kernel_of(Build *b, Node n, Node x, Node v)
{
	const Attr *p = node_attr(b->g, n, "kernel_params");
	double param[3] = {0, 0, 3}; /* gamma, coef0, degree */
	for (uint32_t k = 0; p->kind == ATTR_floats && k < p->n && k < 3; k++)
		param[k] = p->floats[k];
	if (!aten_check_word(b, n, "kernel_type", "LINEAR POLY RBF SIGMOID"))
		return (Node){0};
	if (aten_is(b, n, "kernel_type", "RBF")) {
		Node d = b_bin(b, OP_sub, b_unsqueeze(b, x, 1), b_unsqueeze(b, v, 0));
		return b_un(b, OP_exp,
			    b_bin_scalar(b, OP_mul, aten_sum(b, b_bin(b, OP_mul, d, d), 4, false),
					 -param[0]));
	}
	Node y = b_matmul(b, x, b_transpose(b, v, 0, 1));
	if (aten_is(b, n, "kernel_type", "LINEAR"))
		return y;
	y = b_bin_scalar(b, OP_add, b_bin_scalar(b, OP_mul, y, param[0]), param[1]);
	return aten_is(b, n, "kernel_type", "POLY") ? b_bin_scalar(b, OP_pow, y, param[2])
						    : b_un(b, OP_tanh, y);
}

/* Builds a regressor. Without support vectors the coefficients are the one vector. */
static Node build_svm_regressor(Build *b, Node n)
{
	int64_t count = aten_int(b, n, "n_supports");
	Node x = rows(b, arg(b, n, "X")), w = ml_numbers(b, n, "coefficients"),
	     rho = ml_numbers(b, n, "rho"), y;
	if (!x.i || !w.i || !rho.i)
		return x.i ? b_error(b, "coefficients and rho are expected") : x;
	if (count > 0)
		y = b_matmul(b,
			     kernel_of(b, n, x,
				       by_row(b, ml_numbers(b, n, "support_vectors"), count,
					      "support_vectors")),
			     b_unsqueeze(b, w, 1));
	else
		y = kernel_of(b, n, x, b_unsqueeze(b, w, 0));
	y = b_bin(b, OP_add, y, b_slice(b, rho, 0, b_int(b, 0), b_int(b, 1), b_int(b, 1)));
	if (aten_int(b, n, "one_class"))
		return b_select(b, b_bin_scalar(b, OP_gt, y, 0), aten_like(b, y, 1),
				aten_like(b, y, -1));
	return aten_is(b, n, "post_transform", "PROBIT") ? ml_post_transform(b, y, "PROBIT") : y;
}

OP(onnx_ml_SVMRegressor_1){
	.schema = "onnx_ml.SVMRegressor.1(Tensor X, *, float[]? coefficients=None, float[]? "
		  "kernel_params=None, str kernel_type=\"LINEAR\", int n_supports=0, "
		  "int one_class=0, str post_transform=\"NONE\", float[]? rho=None, "
		  "float[]? support_vectors=None) -> Tensor",
	.build = build_svm_regressor,
	.no_sample = ML_CASES,
};
