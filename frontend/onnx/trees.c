/* TreeEnsembleClassifier, TreeEnsembleRegressor and TreeEnsemble. */
#include <string.h>

#include "frontend/onnx/trees.h"
#include "ops/ml/ml.h"

/* ---- what the operators share ---- */

static const char *text_of(const Item *it, const char *name, const char *otherwise)
{
	const OnnxAttr *a = onnx_item_attr(it, name);
	return a ? arena_strndup(it->s->im->ctx->scratch, (const char *)a->s.p, a->s.n) : otherwise;
}

/* Returns the operand [N, features] in the dtype of comparisons. */
static Node rows(const Item *it, Forest *f)
{
	Build *b = &it->s->b;
	Value *v = onnx_item_in(it, 0);
	Node x = v ? onnx_value_node(it->s, v) : (Node){0};
	if (!x.i)
		return v ? x : (onnx_item_error(it, "input X is missing"), x);
	f->dtype = node_dtype(b->g, x) == DT_f64 ? DT_f64 : DT_f32;
	x = node_rank(b->g, x) == 1 ? b_unsqueeze(b, x, 0) : x;
	if (node_rank(b->g, x) != 2)
		return b_error(b, "an operand of rank %u, expected [N, features]",
			       node_rank(b->g, x));
	return b_convert(b, x, f->dtype);
}

/* Returns the sums of the weights, [N, targets]. */
static Node evaluate(const Item *it, TreesCombine combine, const Forest *f, Node x)
{
	Build *b = &it->s->b;
	TreeTable t;
	if (!trees_arrange(b, f, &t))
		return (Node){0};
	aten_require_le(b, b_int(b, f->nfeature), b_dim(b, x, 1),
			"the trees read more features than there are");
	return trees_build(b, f, &t, combine, x);
}

static Node add_base(const Item *it, Node y, const double *base, uint32_t n, uint32_t ntarget)
{
	Build *b = &it->s->b;
	if (!n || !y.i)
		return y;
	if (n != 1 && n != ntarget)
		return b_error(b, "base_values has %u elements, of %u targets", n, ntarget);
	if (n == 1)
		return ntarget == 1 ? b_bin_scalar(b, OP_add, y, base[0]) : y;
	Node v[64], *each = n <= 64 ? v : ARENA_ARRAY(it->s->im->ctx->scratch, Node, n);
	for (uint32_t k = 0; k < n; k++)
		each[k] = aten_like(b, y, base[k]);
	return b_bin(b, OP_add, y, aten_stack(b, each, n, 0));
}

static bool bind(const Item *it, uint32_t k, Node y)
{
	return y.i && onnx_item_bind(it, k, onnx_value_of(it->s, y));
}

/* ---- regression ---- */

static bool combine_named(const Item *it, TreesCombine *out)
{
	static const char *const names[] = {"SUM", "AVERAGE", "MIN", "MAX"};
	const char *name = text_of(it, "aggregate_function", "SUM");
	for (uint32_t k = 0; k < 4; k++)
		if (!strcmp(name, names[k])) {
			*out = (TreesCombine)k;
			return true;
		}
	return onnx_item_error(it, "aggregate_function is %s, expected SUM, AVERAGE, MIN or MAX",
			       name);
}

bool onnx_import_tree_regressor(const Item *it)
{
	Build *b = &it->s->b;
	TreesCombine combine = TREES_SUM;
	const double *base;
	uint32_t nbase;
	int64_t n = onnx_item_int(it, "n_targets", 1);
	Forest f = {.ntarget = n > 0 && n < INT32_MAX ? (uint32_t)n : 0};
	Node x = rows(it, &f);
	TRY(x.i && combine_named(it, &combine) && trees_numbers(it, "base_values", &base, &nbase));
	if (!f.ntarget)
		return onnx_item_error(it, "n_targets is %lld", (long long)n);
	TRY(trees_read(it, "target", &f));
	Node y = add_base(it, evaluate(it, combine, &f, x), base, nbase, f.ntarget);
	const char *transform = text_of(it, "post_transform", "NONE");
	/* one score has no others to be compared with */
	if (f.ntarget > 1 || !strcmp(transform, "PROBIT"))
		y = ml_post_transform(b, y, transform);
	return y.i && bind(it, 0, b_convert(b, y, DT_f32));
}

bool onnx_import_tree_ensemble(const Item *it)
{
	static const char *const transforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO",
						 "PROBIT"};
	static const TreesCombine combines[] = {TREES_AVERAGE, TREES_SUM, TREES_MIN, TREES_MAX};
	Build *b = &it->s->b;
	int64_t n = onnx_item_int(it, "n_targets", 1),
		how = onnx_item_int(it, "aggregate_function", 1),
		transform = onnx_item_int(it, "post_transform", 0);
	Forest f = {.ntarget = n > 0 && n < INT32_MAX ? (uint32_t)n : 0};
	Node x = rows(it, &f);
	TRY(x.i);
	if (!f.ntarget || how < 0 || how > 3 || transform < 0 || transform > 4)
		return onnx_item_error(
			it, "n_targets %lld, aggregate_function %lld, post_transform %lld",
			(long long)n, (long long)how, (long long)transform);
	DType d = node_dtype(b->g, onnx_value_node(it->s, onnx_item_in(it, 0)));
	TRY(trees_read(it, NULL, &f));
	Node y = evaluate(it, combines[how], &f, x);
	if (f.ntarget > 1 || transform == 4)
		y = ml_post_transform(b, y, transforms[transform]);
	return y.i && bind(it, 0, b_convert(b, y, d));
}

/* ---- classification ---- */

typedef struct {
	const int64_t *label;
	uint32_t n;
	bool one_class;  /* two labels, and all weights are of one of them */
	bool second;     /* some weight is of class 1 */
	bool positive;   /* no weight is below 0 */
	const double *base;
	uint32_t nbase;
	const char *transform;
} Classes;

static bool read_classes(const Item *it, Classes *c)
{
	const OnnxAttr *text = onnx_item_attr(it, "classlabels_strings"),
		       *ints = onnx_item_attr(it, "classlabels_int64s");
	if (text && text->strings.n)
		return onnx_item_error(it, "the labels are strings, which a compiled model does "
					   "not hold: expected classlabels_int64s");
	if (!ints || ints->ints.n < 2)
		return onnx_item_error(it,
				       "classlabels_int64s has %u labels, expected two at least",
				       ints ? ints->ints.n : 0);
	c->label = ints->ints.data;
	c->n = ints->ints.n;
	c->transform = text_of(it, "post_transform", "NONE");
	return trees_numbers(it, "base_values", &c->base, &c->nbase);
}

/* Finds out what the weights say about the classes; weights of one class of two are a target of
 * its own. */
static void classify_weights(Forest *f, Classes *c)
{
	bool first = false;
	c->positive = true;
	for (uint32_t k = 0; k < f->weight.n; k++) {
		first = first || f->weight.data[k].target == 0;
		c->second = c->second || f->weight.data[k].target == 1;
		c->positive = c->positive && f->weight.data[k].value >= 0;
	}
	c->one_class = c->n == 2 && !(first && c->second);
	if (!c->one_class)
		return;
	f->ntarget = 1;
	for (uint32_t k = 0; k < f->weight.n; k++)
		f->weight.data[k].target = 0;
}

/* Binds the scores of both classes from one score, and the label. */
static bool one_score(const Item *it, const Classes *c, Node s)
{
	Build *b = &it->s->b;
	if (c->nbase)
		s = b_bin_scalar(b, OP_add, s, c->base[c->nbase - 1]);
	Node second = b_bin_scalar(b, OP_gt, s, c->positive ? 0.5 : 0), z;
	if (c->nbase == 2 || c->second) {
		z = b_concat(
			b,
			(Node[]){c->nbase == 2 ? b_un(b, OP_neg, s) : b_bin_scalar(b, OP_mul, s, 0),
				 s},
			2, 1);
		z = ml_post_transform(b, z, c->transform);
	} else if (c->positive) {
		z = b_concat(b, (Node[]){b_bin(b, OP_sub, aten_like(b, s, 1), s), s}, 2, 1);
	} else if (!strcmp(c->transform, "LOGISTIC")) {
		z = ml_post_transform(b, b_concat(b, (Node[]){b_un(b, OP_neg, s), s}, 2, 1),
				      "LOGISTIC");
	} else {
		z = b_concat(b, (Node[]){b_un(b, OP_neg, s), s}, 2, 1);
	}
	Node label = ml_labels(b, b_convert(b, b_squeeze(b, second, 1), DT_i64), c->label, 2);
	return z.i && bind(it, 0, label) && bind(it, 1, b_convert(b, z, DT_f32));
}

/* Imports a classifier. Where both of two classes have weights, the label is that of the greater
 * sum, as ONNX says; ONNX Runtime gives 1 or 0 by the sign of the second one, whatever the
 * labels are. */
bool onnx_import_tree_classifier(const Item *it)
{
	Build *b = &it->s->b;
	Classes c = {0};
	TRY(read_classes(it, &c));
	Forest f = {.ntarget = c.n};
	Node x = rows(it, &f);
	TRY(x.i && trees_read(it, "class", &f));
	classify_weights(&f, &c);
	Node s = evaluate(it, TREES_SUM, &f, x);
	TRY(s.i);
	if (c.one_class)
		return one_score(it, &c, s);
	s = add_base(it, s, c.base, c.nbase, c.n);
	Node best = b_arg_reduce(b, true, s, 1);
	Node z = ml_post_transform(b, s, c.transform);
	return z.i && bind(it, 0, ml_labels(b, best, c.label, c.n)) &&
	       bind(it, 1, b_convert(b, z, DT_f32));
}
