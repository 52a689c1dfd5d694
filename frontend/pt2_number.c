/* Numbers that depend on data: x.item() and arithmetic on it. */
#include <string.h>

#include "frontend/pt2_priv.h"

/* The symbol that an item() is: of an integer itself, of a bool the one that is 1 where it is true. None: another kind. */
static Sym item_symbol(Scope *s, const char *tag, const json_t *v)
{
	Import *im = s->st->im;
	json_t *inner;
	const char *kind = json_tag(v, &inner), *name = kind && !strcmp(kind, "as_name") ? json_string_value(inner) : NULL;
	ExprEnv env = {.ctx = im->ctx, .syms = im->syms};
	const Cond *c;
	uint32_t n;
	Sym size = {0};
	if (!strcmp(tag, "as_sym_int"))
		return arg_sym(s, tag, v, &size) ? size : (Sym){0};
	json_t *value = json_object_get(json_object_get(s->graph, "sym_bool_values"), name ? name : "");
	const char *text = json_str(json_object_get(value, "as_expr"), "expr_str");
	if (!strcmp(tag, "as_sym_bool") && text && expr_cond(&env, text, &c, &n) && n == 1 && c->kind == GUARD_EQ &&
	    sym_is(im->syms, c->b, 1))
		return c->a;
	return size;
}

bool import_item(Scope *s, const json_t *node)
{
	State *st = s->st;
	Import *im = st->im;
	json_t *v, *inner;
	const char *tag = json_tag(json_array_get(json_object_get(node, "outputs"), 0), &v);
	uint32_t self = arg_value(s, node, "self", 0);
	if (!self || !tag)
		return ctx_error(im->ctx, s->where, "expected a tensor and a number");
	Node x = value_read(st, &s->b, self);
	x = x.i ? b_reshape(&s->b, x, 0, NULL) : x;
	TRY(x.i);
	const char *kind = json_tag(v, &inner), *name = kind && !strcmp(kind, "as_name") ? json_string_value(inner) : NULL;
	if (!strcmp(tag, "as_sym_float") && name) {
		Meta m = {.dtype = DT_f64, .offset = sym_int(im->syms, 0)};
		return scope_bind(s, name, value_new(st, b_convert(&s->b, x, DT_f64), &m));
	}
	Sym size = item_symbol(s, tag, v);
	if (!size.i)
		return ctx_error(im->ctx, s->where, "item gives %s, which is not supported", tag);
	b_to_size(&s->b, b_convert(&s->b, x, DT_i64), size, (Sym){0}, "item");
	return true;
}

bool import_symbolic(Scope *s, const json_t *node, const char *target)
{
	static const struct {
		const char *name;
		Op op;
		uint32_t nin;
	} ops[] = {{"_operator.add", OP_add, 2}, {"_operator.sub", OP_sub, 2}, {"_operator.mul", OP_mul, 2}, {"_operator.truediv", OP_div, 2},
	           {"_operator.neg", OP_neg, 1}, {"_operator.pow", OP_pow, 2}, {"torch.sym_float", OP_none, 1}, {"math.sqrt", OP_sqrt, 1}};
	Import *im = s->st->im;
	json_t *v, *inner;
	const char *tag = json_tag(json_array_get(json_object_get(node, "outputs"), 0), &v);
	const char *kind = tag && !strcmp(tag, "as_sym_float") ? json_tag(v, &inner) : NULL;
	const char *name = kind && !strcmp(kind, "as_name") ? json_string_value(inner) : NULL;
	json_t *value = json_object_get(json_object_get(s->graph, "sym_float_values"), name ? name : "");
	const char *text = json_str(json_object_get(value, "as_expr"), "expr_str");
	ExprEnv env = {.ctx = im->ctx, .syms = im->syms};
	double known;
	if (!text || expr_float(&env, text, &known))
		return true;
	for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
		if (strcmp(ops[k].name, target))
			continue;
		Node in[2] = {{0}, {0}};
		for (uint32_t i = 0; i < ops[k].nin; i++) {
			v = arg_find(node, i ? "b" : "a", i, &tag);
			in[i] = tag ? arg_float_value(s, tag, v) : (Node){0};
			TRY(in[i].i);
		}
		Node y = ops[k].op == OP_none ? in[0] : ops[k].nin == 1 ? b_un(&s->b, ops[k].op, in[0]) : b_bin(&s->b, ops[k].op, in[0], in[1]);
		Meta m = {.dtype = DT_f64, .offset = sym_int(im->syms, 0)};
		return y.i && scope_bind(s, name, value_new(s->st, y, &m));
	}
	return true; /* whoever reads it says what it is */
}
