/* Features of ai.onnx.ml. */
#include "ops/ml/ml.h"

#include <math.h>
#include <string.h>

/* Checks that a list has one element, or one for each feature (the last dimension of x); absent
 * lists fit. */
static bool fits(Build *b, Node v, Node x, const char *name)
{
	if (!v.i)
		return true;
	Sym n = b_dim(b, v, 0);
	bool ok = sym_is(b_syms(b), n, 1) ||
		  (aten_rank(b, x) && sym_eq(b_syms(b), n, b_dim(b, x, -1)) != NO);
	if (!ok)
		b_error(b, "%s has %s elements, expected 1 or one for each of %s features", name,
			sym_str(b_syms(b), n), sym_str(b_syms(b), b_dim(b, x, -1)));
	return ok;
}

/* ---- numbers that become other numbers ---- */

static Node build_scaler(Build *b, Node n)
{
	Node x = b_convert(b, arg(b, n, "X"), DT_f32), offset = ml_numbers(b, n, "offset"),
	     scale = ml_numbers(b, n, "scale");
	if (!fits(b, offset, x, "offset") || !fits(b, scale, x, "scale"))
		return (Node){0};
	x = offset.i ? b_bin(b, OP_sub, x, offset) : x;
	return scale.i ? b_bin(b, OP_mul, x, scale) : x;
}

OP(onnx_ml_Scaler_1){
	.schema = "onnx_ml.Scaler.1(Tensor X, *, float[]? offset=None, float[]? scale=None) -> "
		  "Tensor",
	.build = build_scaler,
	.no_sample = ML_CASES,
};

OP(onnx_ml_Binarizer_1){
	.schema = "onnx_ml.Binarizer.1(Tensor X, *, float threshold=0.0) -> Tensor",
	.expand = "select(gt(X, threshold), full_like(X, 1), full_like(X, 0))",
	.no_sample = ML_CASES,
};

/* Normalises rows; a row of zeros stays. */
static Node build_normalizer(Build *b, Node n)
{
	Node x = b_convert(b, arg(b, n, "X"), DT_f32), norm;
	uint32_t rank = aten_rank(b, x), last = 1u << (rank - 1);
	if (!x.i || rank < 1 || rank > 2 || !aten_check_word(b, n, "norm", "MAX L1 L2"))
		return x.i && (rank < 1 || rank > 2)
			       ? b_error(b, "an operand of rank %u, expected 1 or 2", rank)
			       : (Node){0};
	if (aten_is(b, n, "norm", "MAX"))
		norm = aten_reduce(b, REDUCE_MAX, x, last, true);
	else
		norm = aten_vector_norm(b, x, aten_is(b, n, "norm", "L1") ? 1 : 2, last, true);
	return b_select(b, b_bin_scalar(b, OP_eq, norm, 0), x, b_bin(b, OP_div, x, norm));
}

OP(onnx_ml_Normalizer_1){
	.schema = "onnx_ml.Normalizer.1(Tensor X, *, str norm=\"MAX\") -> Tensor",
	.build = build_normalizer,
	.no_sample = ML_CASES,
};

/* Replaces what equals the replaced value, which may be NaN, by the imputed one. */
static Node build_imputer(Build *b, Node n)
{
	Node x = arg(b, n, "X"), wanted;
	bool real = dtype_is_float(aten_dtype(b, x));
	Node by = real ? ml_numbers(b, n, "imputed_value_floats")
		       : ml_integers(b, n, "imputed_value_int64s");
	if (!x.i || !by.i)
		return x.i ? b_error(b, "no %s",
				     real ? "imputed_value_floats" : "imputed_value_int64s")
			   : x;
	if (!fits(b, by, x, "the imputed value"))
		return (Node){0};
	double old = node_float(b->g, n, "replaced_value_float");
	if (real && isnan(old))
		wanted = b_bin(b, OP_ne, x, x);
	else
		wanted = b_bin_scalar(b, OP_eq, x,
				      real ? old : (double)aten_int(b, n, "replaced_value_int64"));
	return b_select(b, wanted, b_convert(b, by, node_dtype(b->g, x)), x);
}

OP(onnx_ml_Imputer_1){
	.schema = "onnx_ml.Imputer.1(Tensor X, *, float[]? imputed_value_floats=None, int[]? "
		  "imputed_value_int64s=None, float replaced_value_float=0.0, "
		  "int replaced_value_int64=0) -> Tensor",
	.build = build_imputer,
	.no_sample = ML_CASES,
};

/* ---- columns ---- */

/* Takes columns by index; a vector is a row. */
static Node build_extractor(Build *b, Node n)
{
	Node x = arg(b, n, "X"), y = arg(b, n, "Y");
	if (!x.i || !y.i)
		return (Node){0};
	uint32_t rank = node_rank(b->g, x);
	if (!rank)
		return b_error(b, "an operand without dimensions");
	y = b_reshape(b, b_convert(b, y, DT_i64), 1,
		      (Sym[]){type_numel(b->g->ir, node_type_id(b->g, y))});
	x = rank == 1 ? b_unsqueeze(b, x, 0) : x;
	return aten_take_dim(b, x, rank == 1 ? 1 : rank - 1, y, "check");
}

OP(onnx_ml_ArrayFeatureExtractor_1){
	.schema = "onnx_ml.ArrayFeatureExtractor.1(Tensor X, Tensor Y) -> Tensor",
	.build = build_extractor,
	.no_sample = ML_CASES,
};

/* Joins the inputs. Each has inputdimensions columns: missing ones are zeros, others are
 * dropped. */
static Node build_vectorizer(Build *b, Node n)
{
	uint32_t count, want = 0;
	Node *x = onnx_list(b, n, "X", &count);
	const Sym *size = aten_has(b, n, "inputdimensions")
				  ? node_ints(b->g, n, "inputdimensions", &want)
				  : NULL;
	if (!count || want != count)
		return b_error(b, "%u inputs, and %u inputdimensions", count, want);
	for (uint32_t k = 0; k < count; k++) {
		if (!x[k].i)
			return x[k];
		x[k] = b_convert(b, x[k], DT_f32);
		x[k] = node_rank(b->g, x[k]) < 2
			       ? b_reshape(b, x[k], 2,
					   (Sym[]){b_int(b, 1),
						   type_numel(b->g->ir, node_type_id(b->g, x[k]))})
			       : x[k];
		x[k] = aten_flatten(b, x[k], 1, node_rank(b->g, x[k]) - 1);
		Sym more = sym_sub(b_syms(b), size[k], b_dim(b, x[k], 1)), zero = b_int(b, 0);
		if (!sym_is(b_syms(b), more, 0))
			x[k] = b_pad(b, x[k], (Sym[]){zero, zero}, (Sym[]){zero, more},
				     b_scalar(b, DT_f32, 0));
	}
	return b_concat(b, x, count, 1);
}

OP(onnx_ml_FeatureVectorizer_1){
	.schema = "onnx_ml.FeatureVectorizer.1(Tensor[] X, *, int[]? inputdimensions=None) -> "
		  "Tensor",
	.build = build_vectorizer,
	.no_sample = ML_CASES,
};

/* ---- categories ---- */

/* Adds a dimension of the categories. An element that is none of them is an error unless
 * `zeros`. */
static Node build_one_hot(Build *b, Node n)
{
	Node x = arg(b, n, "X"), category = ml_integers(b, n, "cats_int64s");
	if (aten_has(b, n, "cats_strings") || !category.i)
		return b_error(b, "categories that are strings, or none, are not supported: "
				  "expected cats_int64s");
	if (!node_bool(b->g, n, "zeros"))
		return b_error(
			b, "zeros = 0, an error where an element is no category, is not supported");
	return b_convert(b, b_bin(b, OP_eq, b_unsqueeze(b, b_convert(b, x, DT_i64), -1), category),
			 DT_f32);
}

OP(onnx_ml_OneHotEncoder_1){
	.schema = "onnx_ml.OneHotEncoder.1(Tensor X, *, int[]? cats_int64s=None, str? "
		  "cats_strings=None, bool zeros=True) -> Tensor",
	.build = build_one_hot,
	.no_sample = ML_CASES,
};

/* ---- labels ---- */

/* Returns a table of keys or values, of integers, floats or a tensor: the last one that is
 * there. */
static Node table(Build *b, Node n, const char *ints, const char *floats, const char *tensor)
{
	Node t = arg(b, n, tensor), v = ml_integers(b, n, ints);
	return t.i ? t : v.i ? v : ml_numbers(b, n, floats);
}

/* Looks up the value whose key is x, of equal keys the last one; NaN is a key. Places count from
 * 1: 0 is none. */
static Node build_label_encoder(Build *b, Node n)
{
	Node x = arg(b, n, "X"), key = table(b, n, "keys_int64s", "keys_floats", "keys_tensor"),
	     otherwise = arg(b, n, "default_tensor");
	Node value = table(b, n, "values_int64s", "values_floats", "values_tensor");
	if (!x.i || !key.i || !value.i)
		return b_error(
			b, "keys and values of numbers are expected; strings are not supported");
	if (sym_eq(b_syms(b), b_dim(b, key, 0), b_dim(b, value, 0)) != YES)
		return b_error(b, "%s keys for %s values", sym_str(b_syms(b), b_dim(b, key, 0)),
			       sym_str(b_syms(b), b_dim(b, value, 0)));
	DType d = node_dtype(b->g, value);
	if (otherwise.i)
		otherwise = b_reshape(b, b_convert(b, otherwise, d), 0, NULL);
	else if (dtype_is_float(d))
		otherwise = b_scalar(b, d,
				     aten_has(b, n, "default_float")
					     ? node_float(b->g, n, "default_float")
					     : -0.0);
	else
		otherwise = b_full_int(b, d, aten_int_or(b, n, "default_int64", -1), 0, NULL);
	Node v = b_unsqueeze(b, x, -1),
	     same = b_bin(b, OP_eq, v, b_convert(b, key, node_dtype(b->g, x)));
	if (dtype_is_float(node_dtype(b->g, x)))
		same = b_bin(
			b, OP_bit_or, same,
			b_bin(b, OP_bit_and, b_bin(b, OP_ne, v, v), b_bin(b, OP_ne, key, key)));
	uint32_t last = 1u << node_rank(b->g, x);
	Node place = b_bin_scalar(b, OP_add, b_iota(b, DT_i64, b_dim(b, key, 0)), 1);
	place = aten_reduce(b, REDUCE_MAX, b_select(b, same, place, aten_like(b, place, 0)), last,
			    false);
	Node found = aten_take_dim(
		b, value, 0, b_bin_scalar(b, OP_maximum, b_bin_scalar(b, OP_sub, place, 1), 0),
		"promise");
	return b_select(b, b_bin_scalar(b, OP_eq, place, 0), otherwise, found);
}

OP(onnx_ml_LabelEncoder_2){
	.schema = "onnx_ml.LabelEncoder.2(Tensor X, *, int[]? keys_int64s=None, float[]? "
		  "keys_floats=None, Tensor? keys_tensor=None, "
		  "int[]? values_int64s=None, float[]? values_floats=None, "
		  "Tensor? values_tensor=None, float? default_float=None, int? default_int64=None, "
		  "Tensor? default_tensor=None) -> Tensor",
	.build = build_label_encoder,
	.no_sample = ML_CASES,
};
