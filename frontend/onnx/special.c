/* Operators that are more than a call: constants, sequences and optionals. */
#include <string.h>

#include "frontend/onnx/priv.h"

/* ---- constants ---- */

static bool constant_of(const Item *it, const OnnxAttr *a, Tensor *t)
{
	Import *im = it->s->im;
	if (!strcmp(a->name, "value") && a->t)
		return onnx_tensor(im->ctx, a->t, im->folder, "the constant", t);
	if (!strcmp(a->name, "sparse_value") && a->sparse)
		return onnx_sparse(im->ctx, a->sparse, im->folder, "the constant", t);
	if (!strcmp(a->name, "value_float"))
		*t = (Tensor){.dtype = DT_f32, .data = arena_dup(im->ctx->arena, &a->f, sizeof a->f)};
	else if (!strcmp(a->name, "value_int"))
		*t = (Tensor){.dtype = DT_i64, .data = arena_dup(im->ctx->arena, &a->i, sizeof a->i)};
	else if (!strcmp(a->name, "value_floats"))
		*t = (Tensor){.dtype = DT_f32, .rank = 1, .dim = {a->floats.n}, .data = a->floats.data};
	else if (!strcmp(a->name, "value_ints"))
		*t = (Tensor){.dtype = DT_i64, .rank = 1, .dim = {a->ints.n}, .data = a->ints.data};
	else
		return onnx_item_error(it, "%s is not supported: expected a tensor or numbers", a->name);
	return true;
}

static bool import_constant(const Item *it)
{
	Tensor t;
	if (it->n->attr.n != 1 || !it->n->attr.data[0].name)
		return onnx_item_error(it, "a constant with %u attributes, expected one", it->n->attr.n);
	const OnnxAttr *a = onnx_item_attr(it, it->n->attr.data[0].name);
	if (!a)
		return onnx_item_error(it, "attribute %s is missing in the call", it->n->attr.data[0].name);
	OnnxAttr as = *a;
	as.name = it->n->attr.data[0].name;
	return constant_of(it, &as, &t) && onnx_item_bind(it, 0, onnx_value_known(it->s->im, &t));
}

static bool import_identity(const Item *it)
{
	Value *v = onnx_item_in(it, 0);
	if (!v)
		return onnx_item_error(it, "input is missing");
	Value *y = arena_dup(it->s->im->ctx->arena, v, sizeof *v);
	y->name = NULL;
	return onnx_scope_bind(it->s, it->n->out.data[0], y);
}

/* ---- table ---- */

static const struct {
	const char *op;
	Importer import;
} specials[] = {
	{"Constant", import_constant},
	{"Identity", import_identity},
	{"Shape", import_identity}, /* sizes.c has them */
	{"Size", import_identity},
};

Importer onnx_special_importer(const char *op)
{
	for (size_t k = 0; k < sizeof specials / sizeof *specials; k++)
		if (!strcmp(specials[k].op, op))
			return specials[k].import;
	return NULL;
}
