/* Operators that are more than a call: constants and ranges. */
#include <math.h>
#include <string.h>

#include "frontend/onnx/priv.h"

/* ---- constants ---- */

static bool constant_of(const Item *it, const OnnxAttr *a, Tensor *t)
{
	Import *im = it->s->im;
	if (!strcmp(a->name, "value") && a->t)
		return onnx_tensor(im->ctx, a->t, &im->folder, "the constant", t);
	if (!strcmp(a->name, "sparse_value") && a->sparse)
		return onnx_sparse(im->ctx, a->sparse, &im->folder, "the constant", t);
	if (!strcmp(a->name, "value_float"))
		*t = (Tensor){.dtype = DT_f32,
			      .data = arena_dup(im->ctx->arena, &a->f, sizeof a->f)};
	else if (!strcmp(a->name, "value_int"))
		*t = (Tensor){.dtype = DT_i64,
			      .data = arena_dup(im->ctx->arena, &a->i, sizeof a->i)};
	else if (!strcmp(a->name, "value_floats"))
		*t = (Tensor){
			.dtype = DT_f32, .rank = 1, .dim = {a->floats.n}, .data = a->floats.data};
	else if (!strcmp(a->name, "value_ints"))
		*t = (Tensor){.dtype = DT_i64, .rank = 1, .dim = {a->ints.n}, .data = a->ints.data};
	else
		return onnx_item_error(it, "%s is not supported: expected a tensor or numbers",
				       a->name);
	return true;
}

static bool bind_constant(const Item *it, const OnnxAttr *a, const Tensor *t)
{
	Value *v = onnx_value_known(it->s->im, t);
	v->elem = a->t ? onnx_kept_type(a->t->type) : 0;
	return onnx_item_bind(it, 0, v);
}

static bool import_constant(const Item *it)
{
	Tensor t;
	if (it->n->attr.n != 1 || !it->n->attr.data[0].name)
		return onnx_item_error(it, "a constant with %u attributes, expected one",
				       it->n->attr.n);
	const OnnxAttr *a = onnx_item_attr(it, it->n->attr.data[0].name);
	if (!a)
		return onnx_item_error(it, "attribute %s is missing in the call",
				       it->n->attr.data[0].name);
	OnnxAttr as = *a;
	as.name = it->n->attr.data[0].name;
	return constant_of(it, &as, &t) && bind_constant(it, &as, &t);
}

static bool import_identity(const Item *it)
{
	Value *v = onnx_item_in(it, 0);
	if (!v)
		return onnx_item_error(it, "input is missing");
	if (!it->n->out.n)
		return true;
	Value *y = arena_dup(it->s->im->ctx->arena, v, sizeof *v);
	y->name = NULL;
	return onnx_scope_bind(it->s, it->n->out.data[0], y);
}

/* ---- ranges ---- */

/* Returns the number of steps from 0 up to `far`, or down to -far. */
static Sym steps_to(SymTab *t, Sym far, Sym step)
{
	return sym_max(t, sym_int(t, 0), sym_ceildiv(t, far, step));
}

/* Whether the step is the extent of an input's dimension, which then is not 0: no range has such a
 * step. */
static bool is_extent(SymTab *t, Sym step)
{
	return sym_kind(t, step) == SYM_VAR && sym_var_kind(t, step) == SYMVAR_SIZE &&
	       sym_bound(t, step, 1, SYM_INF);
}

/* Sets *out to how many elements lie from start up to the limit, as far as that is known at
 * import. */
static bool count_known(const Item *it, Sym *out)
{
	Scope *s = it->s;
	SymTab *t = s->im->syms;
	const Sym *v[3];
	const Tensor *e[3];
	uint32_t n[3];
	int64_t step;
	bool sizes = true, elements = true;
	for (int k = 0; k < 3; k++)
		sizes = sizes && onnx_value_as_sizes(s, it->in[k], &v[k], &n[k]) && n[k] == 1;
	if (sizes && sym_is_const(t, v[2][0], &step) && step && step != INT64_MIN) {
		Sym far = step > 0 ? sym_sub(t, v[1][0], v[0][0]) : sym_sub(t, v[0][0], v[1][0]);
		*out = steps_to(t, far, sym_int(t, step < 0 ? -step : step));
		return true;
	}
	if (sizes && is_extent(t, v[2][0])) {
		*out = steps_to(t, sym_sub(t, v[1][0], v[0][0]), v[2][0]);
		return true;
	}
	for (int k = 0; k < 3 && elements; k++)
		elements = (e[k] = onnx_value_elements(s, it->in[k])) && tensor_numel(e[k]) == 1;
	if (!elements)
		return false;
	double count = ceil((tensor_f64(e[1], 0) - tensor_f64(e[0], 0)) / tensor_f64(e[2], 0));
	*out = sym_int(t, count > 0 && count < 1e15 ? (int64_t)count : 0);
	return true;
}

static Sym count_from_data(const Item *it, Node start, Node limit, Node step)
{
	Build *b = &it->s->b;
	Node far = b_bin(b, OP_div, b_convert(b, b_bin(b, OP_sub, limit, start), DT_f64),
			 b_convert(b, step, DT_f64));
	Node count = b_convert(b, b_bin_scalar(b, OP_maximum, b_un(b, OP_ceil, far), 0), DT_i64);
	return onnx_size_from_data(it->s, count, (Sym){0}, "the number of elements");
}

static bool import_range(const Item *it)
{
	Build *b = &it->s->b;
	Node x[3];
	Sym count;
	for (uint32_t k = 0; k < 3; k++) {
		if (!onnx_item_in(it, k))
			return onnx_item_error(it, "expected three operands");
		x[k] = onnx_value_node(it->s, it->in[k]);
		TRY(x[k].i);
		x[k] = b_reshape(b, x[k], 0, NULL);
		TRY(x[k].i);
	}
	if (!count_known(it, &count))
		count = count_from_data(it, x[0], x[1], x[2]);
	DType d = node_dtype(b->g, x[0]), wide = d == DT_f16 || d == DT_bf16 ? DT_f32 : d;
	Node steps = b_bin(b, OP_mul, b_iota(b, wide, count), b_convert(b, x[2], wide));
	Node y = b_convert(b, b_bin(b, OP_add, b_convert(b, x[0], wide), steps), d);
	return y.i && onnx_item_bind(it, 0, onnx_value_of(it->s, y));
}

/* ---- table ---- */

static const struct {
	const char *op;
	Importer import;
} specials[] = {
	{"Constant", import_constant},
	{"Identity", import_identity},
	{"SequenceConstruct", onnx_import_sequence},
	{"SequenceEmpty", onnx_import_sequence},
	{"SequenceAt", onnx_import_sequence},
	{"SequenceInsert", onnx_import_sequence},
	{"SequenceErase", onnx_import_sequence},
	{"SequenceLength", onnx_import_sequence},
	{"SequenceMap", onnx_import_sequence},
	{"SplitToSequence", onnx_import_sequence},
	{"ConcatFromSequence", onnx_import_sequence},
	{"Optional", onnx_import_sequence},
	{"OptionalHasElement", onnx_import_sequence},
	{"OptionalGetElement", onnx_import_sequence},
	{"Range", import_range},
	{"If", onnx_import_if},
	{"Loop", onnx_import_loop},
	{"Scan", onnx_import_scan},
	{"Shape", import_identity}, /* sizes.c has them */
	{"Size", import_identity},
};

static const struct {
	const char *domain, *op;
	Importer import;
} others[] = {
	{"ai.onnx.preview", "FlexAttention", onnx_import_flex_attention},
	{"ai.onnx.ml", "TreeEnsemble", onnx_import_tree_ensemble},
	{"ai.onnx.ml", "TreeEnsembleClassifier", onnx_import_tree_classifier},
	{"ai.onnx.ml", "TreeEnsembleRegressor", onnx_import_tree_regressor},
};

static bool is(const OnnxNode *n, const char *domain, const char *op)
{
	return n->domain && !strcmp(n->domain, domain) && !strcmp(n->op, op);
}

Importer onnx_special_importer(const OnnxNode *n)
{
	for (size_t k = 0; k < sizeof others / sizeof *others; k++)
		if (is(n, others[k].domain, others[k].op))
			return others[k].import;
	for (size_t k = 0; k < sizeof specials / sizeof *specials && onnx_is_main_domain(n->domain);
	     k++)
		if (!strcmp(specials[k].op, n->op))
			return specials[k].import;
	return NULL;
}

void onnx_offer_specials(const char *domain, Nearest *near)
{
	for (size_t k = 0; k < sizeof others / sizeof *others; k++)
		if (domain && !strcmp(others[k].domain, domain))
			nearest_offer(near, others[k].op);
	for (size_t k = 0; k < sizeof specials / sizeof *specials && onnx_is_main_domain(domain);
	     k++)
		nearest_offer(near, specials[k].op);
}

static const struct {
	const char *domain, *op, *why;
} refused[] = {
	{"ai.onnx.ml", "ZipMap",
	 "gives a sequence of maps, which a compiled model does not have; skl2onnx leaves it out "
	 "with options={'zipmap': False}"},
	{"ai.onnx.ml", "SVMClassifier",
	 "couples probabilities of pairs of classes by an iteration, which is not written yet"},
	{"ai.onnx.ml", "CastMap", "takes a map, which a compiled model does not have"},
	{"ai.onnx.ml", "DictVectorizer", "takes a map, which a compiled model does not have"},
	{"ai.onnx.ml", "CategoryMapper",
	 "takes or gives strings, which a compiled model does not have"},
};

const char *onnx_refusal(const OnnxNode *n)
{
	for (size_t k = 0; k < sizeof refused / sizeof *refused; k++)
		if (is(n, refused[k].domain, refused[k].op))
			return refused[k].why;
	return NULL;
}
