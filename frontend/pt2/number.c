/* Numbers that depend on data: x.item() and arithmetic on it. */
#include <string.h>

#include "frontend/pt2/priv.h"

/* Returns the symbol that an item() is: of an integer itself, of a bool the one that is 1 where
 * it is true. None: another kind. */
static Sym item_symbol(Scope *s, const char *tag, const json_t *v)
{
	Import *im = s->st->im;
	json_t *inner;
	const char *kind = json_tag(v, &inner),
		   *name = kind && !strcmp(kind, "as_name") ? json_string_value(inner) : NULL;
	ExprEnv env = {.ctx = im->ctx, .syms = im->syms};
	const Cond *c;
	uint32_t n;
	Sym size = {0};
	if (!strcmp(tag, "as_sym_int"))
		return arg_sym(s, tag, v, &size) ? size : (Sym){0};
	json_t *value =
		json_object_get(json_object_get(s->graph, "sym_bool_values"), name ? name : "");
	const char *text = json_str(json_object_get(value, "as_expr"), "expr_str");
	if (!strcmp(tag, "as_sym_bool") && text && expr_cond(&env, text, &c, &n) && n == 1 &&
	    c->kind == GUARD_EQ && sym_is(im->syms, c->b, 1))
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
	const char *kind = json_tag(v, &inner),
		   *name = kind && !strcmp(kind, "as_name") ? json_string_value(inner) : NULL;
	if (!strcmp(tag, "as_sym_float") && name) {
		Meta m = {.dtype = DT_f64, .offset = sym_int(im->syms, 0)};
		/* a number of Python's has no history */
		x = b_un(&s->b, OP_detached, b_convert(&s->b, x, DT_f64));
		return scope_bind(s, name, value_new(st, x, &m));
	}
	Sym size = item_symbol(s, tag, v);
	if (!size.i)
		return ctx_error(im->ctx, s->where, "item gives %s, which is not supported", tag);
	b_to_size(&s->b, b_convert(&s->b, x, DT_i64), size, (Sym){0}, "item");
	return true;
}

typedef struct {
	const char *name;
	Op op; /* none: the operand itself */
	uint32_t nin;
	bool compares; /* it is a bool */
} Arithmetic;

static const Arithmetic arithmetic[] = {
	{"_operator.add", OP_add, 2, false},     {"_operator.sub", OP_sub, 2, false},   {"_operator.mul", OP_mul, 2, false},
	{"_operator.truediv", OP_div, 2, false}, {"_operator.neg", OP_neg, 1, false},   {"_operator.pow", OP_pow, 2, false},
	{"torch.sym_float", OP_none, 1, false},  {"math.sqrt", OP_sqrt, 1, false},      {"_operator.lt", OP_lt, 2, true},
	{"_operator.le", OP_le, 2, true},        {"_operator.gt", OP_gt, 2, true},      {"_operator.ge", OP_ge, 2, true},
	{"_operator.eq", OP_eq, 2, true},        {"_operator.ne", OP_ne, 2, true},      {"_operator.and_", OP_bit_and, 2, true},
	{"_operator.or_", OP_bit_or, 2, true},   {"torch.sym_not", OP_bit_not, 1, true},
};

/* Whether the node computes with a fraction that depends on data, or with what was made of one. */
static bool reads_data(Scope *s, const json_t *node, uint32_t nin)
{
	for (uint32_t i = 0; i < nin; i++) {
		const char *tag;
		json_t *inner, *v = arg_find(node, i ? "b" : "a", i, &tag);
		bool number = tag && (!strcmp(tag, "as_sym_float") || !strcmp(tag, "as_sym_bool"));
		const char *kind = number ? json_tag(v, &inner) : NULL;
		if (kind && !strcmp(kind, "as_name") && scope_find(s, json_string_value(inner)))
			return true;
	}
	return false;
}

static bool compute(Scope *s, const json_t *node, const Arithmetic *a, const char *name)
{
	Node in[2] = {{0}, {0}};
	for (uint32_t i = 0; i < a->nin; i++) {
		const char *tag;
		json_t *v = arg_find(node, i ? "b" : "a", i, &tag);
		if (!tag)
			return ctx_error(s->st->im->ctx, s->where, "argument %s is missing",
					 i ? "b" : "a");
		in[i] = strcmp(tag, "as_sym_bool") ? arg_float_value(s, tag, v)
						   : symbolic_condition(s, v);
		TRY(in[i].i);
	}
	Node y = a->op == OP_none ? in[0]
		 : a->nin == 1    ? b_un(&s->b, a->op, in[0])
				  : b_bin(&s->b, a->op, in[0], in[1]);
	Meta m = {.dtype = a->compares ? DT_bool : DT_f64, .offset = sym_int(s->st->im->syms, 0)};
	return y.i && scope_bind(s, name, value_new(s->st, y, &m));
}

bool import_symbolic(Scope *s, const json_t *node, const char *target)
{
	Import *im = s->st->im;
	json_t *v, *inner;
	const char *tag = json_tag(json_array_get(json_object_get(node, "outputs"), 0), &v);
	bool compares = tag && !strcmp(tag, "as_sym_bool");
	const char *kind =
		tag && (compares || !strcmp(tag, "as_sym_float")) ? json_tag(v, &inner) : NULL;
	const char *name = kind && !strcmp(kind, "as_name") ? json_string_value(inner) : NULL;
	json_t *value = json_object_get(
		json_object_get(s->graph, compares ? "sym_bool_values" : "sym_float_values"),
		name ? name : "");
	const char *text = json_str(json_object_get(value, "as_expr"), "expr_str");
	ExprEnv env = {.ctx = im->ctx, .syms = im->syms};
	double known;
	if (!text || (!compares && expr_float(&env, text, &known)))
		return true;
	for (size_t k = 0; k < sizeof arithmetic / sizeof *arithmetic; k++) {
		const Arithmetic *a = &arithmetic[k];
		if (!strcmp(a->name, target) && a->compares == compares &&
		    (!compares || reads_data(s, node, a->nin)))
			return compute(s, node, a, name);
	}
	return true; /* whoever reads it says what it is */
}

/* ---- numbers where the schema has a constant ---- */

/* Returns the argument that is a fraction that depends on data, of those that a table names for
 * the operator. */
static Node data_argument(Scope *s, const json_t *node, const char *name, size_t place)
{
	const char *tag;
	json_t *v = arg_find(node, name, place, &tag);
	return tag && arg_is_data(s, tag, v) ? arg_float_value(s, tag, v) : (Node){0};
}

/* Returns a tensor of which every element is the number. */
static Node filled(Scope *s, Node x, const Meta *m)
{
	return b_broadcast(&s->b, b_convert(&s->b, x, m->dtype), m->rank, m->size);
}

/* Returns self + alpha other, computed in the dtype that the expansion with a constant takes. */
static Node scaled(Scope *s, const json_t *node, Node alpha, bool minus, const Meta *m)
{
	Build *b = &s->b;
	uint32_t value[2] = {arg_value(s, node, "self", 0), arg_value(s, node, "other", 1)};
	DType c = dtype_compute(m->dtype);
	if (!value[0] || !value[1])
		return (Node){0};
	Node x = b_convert(b, value_read(s->st, b, value[0]), m->dtype),
	     y = b_convert(b, value_read(s->st, b, value[1]), m->dtype);
	y = b_bin(b, OP_mul, b_convert(b, y, c),
		  b_convert(b, minus ? b_un(b, OP_neg, alpha) : alpha, c));
	Node sum = b_bin(b, OP_add, b_convert(b, x, c), y);
	return sum.i ? b_convert(b, b_broadcast(b, sum, m->rank, m->size), m->dtype) : sum;
}

Node import_with_number(Scope *s, const json_t *node, const char *op, const Meta *m)
{
	static const struct {
		const char *op, *arg;
		uint32_t place;
	} fills[] = {{"aten.full", "fill_value", 1},
		     {"aten.full_like", "fill_value", 1},
		     {"aten.new_full", "fill_value", 2},
		     {"aten.scalar_tensor", "s", 0}};
	Node x;
	for (size_t k = 0; k < sizeof fills / sizeof *fills; k++)
		if (!strcmp(fills[k].op, op) &&
		    (x = data_argument(s, node, fills[k].arg, fills[k].place)).i)
			return filled(s, x, m);
	bool minus = !strcmp(op, "aten.sub.Tensor");
	if ((minus || !strcmp(op, "aten.add.Tensor")) && (x = data_argument(s, node, "alpha", 2)).i)
		return scaled(s, node, x, minus, m);
	return (Node){0};
}
