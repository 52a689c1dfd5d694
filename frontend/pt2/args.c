/* A node's named arguments -> operands and attributes in the order of the schema, defaults filled
 * in. */
#include <math.h>
#include <string.h>

#include "frontend/pt2/priv.h"

static bool is(const char *tag, const char *s)
{
	return !strcmp(tag, s);
}

json_t *arg_find(const json_t *node, const char *name, size_t k, const char **tag)
{
	size_t i;
	json_t *input, *v = NULL, *inputs = json_object_get(node, "inputs");
	*tag = NULL;
	json_array_foreach(inputs, i, input)
	{
		const char *n = json_str(input, "name");
		if (n && (*n ? is(n, name) : i == k)) {
			*tag = json_tag(json_object_get(input, "arg"), &v);
			return v;
		}
	}
	return NULL;
}

bool arg_bool(const json_t *node, const char *name, size_t k, bool fallback)
{
	const char *tag;
	json_t *v = arg_find(node, name, k, &tag);
	return json_is_boolean(v) ? json_is_true(v) : fallback;
}

double arg_double(const json_t *node, const char *name, size_t k, double fallback)
{
	const char *tag;
	json_t *v = arg_find(node, name, k, &tag);
	return json_is_number(v) ? json_number_value(v) : fallback;
}

uint32_t arg_value(Scope *s, const json_t *node, const char *name, size_t k)
{
	const char *tag;
	json_t *v = arg_find(node, name, k, &tag);
	if (tag && is(tag, "as_optional_tensor"))
		v = json_object_get(v, "as_tensor");
	const char *tensor = json_str(v, "name");
	return tensor ? scope_find(s, tensor) : 0;
}

static bool bad(Scope *s, const char *what, const char *tag)
{
	return ctx_error(s->st->im->ctx, s->where, "argument %s: unexpected %s", what, tag);
}

/* ---- scalars ---- */

bool arg_sym(Scope *s, const char *tag, const json_t *arg, Sym *out)
{
	Import *im = s->st->im;
	if (is(tag, "as_int") && json_is_integer(arg)) {
		*out = sym_int(im->syms, json_integer_value(arg));
		return true;
	}
	json_t *v;
	const char *kind = is(tag, "as_sym_int") ? json_tag(arg, &v) : NULL;
	if (kind && is(kind, "as_int") && json_is_integer(v)) {
		*out = sym_int(im->syms, json_integer_value(v));
		return true;
	}
	const char *name = kind && is(kind, "as_name") ? json_string_value(v) : NULL;
	if (!name)
		return ctx_error(im->ctx, s->where, "expected an integer, not %s", tag);
	json_t *value = json_object_get(json_object_get(s->graph, "sym_int_values"), name);
	if (!value)
		return ctx_error(im->ctx, s->where, "symbolic integer %s is not defined", name);
	*out = meta_sym(im, value, s->where);
	return out->i;
}

static bool read_double(const json_t *v, double *out)
{
	const char *text = json_string_value(v);
	*out = json_number_value(v);
	if (!text)
		return json_is_number(v);
	if (is(text, "Infinity"))
		*out = INFINITY;
	else if (is(text, "-Infinity"))
		*out = -INFINITY;
	else if (is(text, "NaN"))
		*out = NAN;
	else
		return false;
	return true;
}

static bool sym_float(Scope *s, const json_t *arg, double *out)
{
	Import *im = s->st->im;
	json_t *v;
	const char *kind = json_tag(arg, &v);
	if (kind && is(kind, "as_float"))
		return read_double(v, out);
	const char *name = kind && is(kind, "as_name") ? json_string_value(v) : NULL;
	if (name && scope_find(s, name))
		return ctx_error(
			im->ctx, s->where,
			"symbolic float %s depends on data: this operator takes constants there",
			name) || ctx_kind(im->ctx, REFUSAL_DATA_SIZE);
	json_t *value =
		json_object_get(json_object_get(s->graph, "sym_float_values"), name ? name : "");
	kind = json_tag(value, &v);
	if (kind && is(kind, "as_float"))
		return read_double(v, out);
	const char *text = kind && is(kind, "as_expr") ? json_str(v, "expr_str") : NULL;
	ExprEnv env = {.ctx = im->ctx, .syms = im->syms};
	if (text && expr_float(&env, text, out))
		return true;
	return ctx_error(im->ctx, s->where, "symbolic float %s: %s", name ? name : "?",
			 text ? env.error : "not defined");
}

static bool sym_bool(Scope *s, const json_t *arg, bool *out)
{
	Import *im = s->st->im;
	json_t *v;
	const char *kind = json_tag(arg, &v);
	if (kind && is(kind, "as_bool") && json_is_boolean(v)) {
		*out = json_is_true(v);
		return true;
	}
	const char *name = kind && is(kind, "as_name") ? json_string_value(v) : NULL;
	json_t *value =
		json_object_get(json_object_get(s->graph, "sym_bool_values"), name ? name : "");
	const char *text = json_str(json_object_get(value, "as_expr"), "expr_str");
	ExprEnv env = {.ctx = im->ctx, .syms = im->syms};
	const Cond *c;
	uint32_t n;
	if (!text || !expr_cond(&env, text, &c, &n) || n != 1)
		return ctx_error(im->ctx, s->where, "symbolic bool %s is not understood",
				 name ? name : "?");
	Truth t = cond_truth(im->syms, c);
	*out = t == YES;
	return t != MAYBE ||
	       ctx_error(im->ctx, s->where, "symbolic bool %s depends on sizes that are not fixed",
			 name);
}

bool arg_scalar(Scope *s, const char *name, const char *tag, const json_t *v, Attr *out)
{
	double d = 0;
	bool b = false;
	Sym sym = {0};
	if (is(tag, "as_bool") && json_is_boolean(v)) {
		*out = attr_bool(json_is_true(v));
		return true;
	}
	if (is(tag, "as_float") && read_double(v, &d)) {
		*out = attr_float(d);
		return true;
	}
	if (is(tag, "as_int") || is(tag, "as_sym_int")) {
		TRY(arg_sym(s, tag, v, &sym));
		*out = attr_sym(sym);
		return true;
	}
	if (is(tag, "as_sym_float")) {
		TRY(sym_float(s, v, &d));
		*out = attr_float(d);
		return true;
	}
	if (is(tag, "as_sym_bool")) {
		TRY(sym_bool(s, v, &b));
		*out = attr_bool(b);
		return true;
	}
	if (is(tag, "as_complex")) {
		*out = attr_complex(0, 0);
		if (read_double(json_object_get(v, "real"), &out->z.re) &&
		    read_double(json_object_get(v, "imag"), &out->z.im))
			return true;
	}
	return bad(s, name, tag);
}

/* ---- lists ---- */

bool arg_syms(Scope *s, const char *tag, const json_t *v, const Sym **out, uint32_t *n)
{
	bool symbolic = is(tag, "as_sym_ints");
	if (!json_is_array(v) || (!symbolic && !is(tag, "as_ints")))
		return ctx_error(s->st->im->ctx, s->where, "expected a list of integers, not %s",
				 tag);
	*n = (uint32_t)json_array_size(v);
	Sym *list = ARENA_ARRAY(s->st->im->ctx->arena, Sym, *n);
	*out = list;
	for (uint32_t k = 0; k < *n; k++)
		TRY(arg_sym(s, symbolic ? "as_sym_int" : "as_int", json_array_get(v, k), &list[k]));
	return true;
}

static bool int_list(Scope *s, const Arg *a, const char *tag, const json_t *v, Attr *out)
{
	Arena *arena = s->st->im->ctx->arena;
	if (is(tag, "as_int") || is(tag, "as_sym_int")) {
		uint32_t n = a->size ? a->size : 1;
		Sym one, *list = ARENA_ARRAY(arena, Sym, n);
		TRY(arg_sym(s, tag, v, &one));
		for (uint32_t k = 0; k < n; k++)
			list[k] = one;
		*out = attr_ints(list, n);
		return true;
	}
	const Sym *list = NULL;
	uint32_t n = 0;
	TRY(arg_syms(s, tag, v, &list, &n));
	*out = attr_ints(list, n);
	return true;
}

static bool float_list(Scope *s, const Arg *a, const char *tag, const json_t *v, Attr *out)
{
	if (!json_is_array(v) || (!is(tag, "as_floats") && !is(tag, "as_ints")))
		return bad(s, a->name, tag);
	uint32_t n = (uint32_t)json_array_size(v);
	double *list = ARENA_ARRAY(s->st->im->ctx->arena, double, n);
	for (uint32_t k = 0; k < n; k++)
		if (!read_double(json_array_get(v, k), &list[k]))
			return bad(s, a->name, "element");
	*out = (Attr){ATTR_floats, n, {.floats = list}};
	return true;
}

static bool bool_list(Scope *s, const Arg *a, const char *tag, const json_t *v, Attr *out)
{
	if (!json_is_array(v) || !is(tag, "as_bools"))
		return bad(s, a->name, tag);
	uint32_t n = (uint32_t)json_array_size(v);
	bool *list = ARENA_ARRAY(s->st->im->ctx->arena, bool, n);
	for (uint32_t k = 0; k < n; k++)
		list[k] = json_is_true(json_array_get(v, k));
	*out = (Attr){ATTR_bools, n, {.bools = list}};
	return true;
}

/* ---- operands ---- */

static void push_operand(Scope *s, NodeCall *c, uint32_t value)
{
	Arena *a = s->st->im->ctx->scratch;
	array_push(a, &c->value, value);
	array_push(a, &c->in, value ? value_read(s->st, &s->b, value) : (Node){0});
}

static bool named_tensor(Scope *s, const Arg *a, NodeCall *c, const json_t *tensor)
{
	const char *name = json_str(tensor, "name");
	uint32_t v = name ? scope_find(s, name) : 0;
	const Wrapped *w = name && !v ? wrapped_find(s->st->im, name) : NULL;
	if (w)
		return ctx_error(
			s->st->im->ctx, s->where,
			"argument %s: weight %s wraps tensors, of which the graph must name one",
			a->name, w->label);
	if (!v)
		return ctx_error(s->st->im->ctx, s->where, "argument %s: tensor %s is not defined",
				 a->name, name ? name : "?");
	push_operand(s, c, v);
	return true;
}

/* Returns the dtype that a Python scalar takes beside a tensor of dtype d. */
static DType weak_dtype(DType d, DType scalar)
{
	Promotion p = {d, DT_none, DT_none};
	promote_weak(&p, scalar);
	return promote_result(&p);
}

/* Returns the value of a fraction that depends on data, 0 for others. */
static uint32_t data_float(Scope *s, const char *tag, const json_t *arg)
{
	json_t *v;
	const char *kind = is(tag, "as_sym_float") ? json_tag(arg, &v) : NULL;
	const char *name = kind && is(kind, "as_name") ? json_string_value(v) : NULL;
	return name ? scope_find(s, name) : 0;
}

bool arg_is_data(Scope *s, const char *tag, const json_t *arg)
{
	return data_float(s, tag, arg) != 0;
}

bool call_has_data(Scope *s, const json_t *node)
{
	size_t i;
	json_t *x, *inner;
	json_array_foreach(json_object_get(node, "inputs"), i, x)
	{
		const char *tag = json_tag(json_object_get(x, "arg"), &inner);
		if (tag && arg_is_data(s, tag, inner))
			return true;
	}
	return false;
}

/* Returns a number that depends on data, as a value without dimensions; none if it is known from
 * the file. */
static Node data_number(Scope *s, const char *tag, const json_t *arg)
{
	uint32_t value = data_float(s, tag, arg);
	json_t *v;
	const char *kind = is(tag, "as_sym_bool") ? json_tag(arg, &v) : NULL;
	if (value)
		return value_read(s->st, &s->b, value);
	Node x = kind && is(kind, "as_name") ? symbolic_condition(s, arg) : (Node){0};
	return x.i && node_op(s->st->g, x) != OP_full ? x : (Node){0};
}

Node arg_float_value(Scope *s, const char *tag, const json_t *arg)
{
	Attr x;
	uint32_t value = data_float(s, tag, arg);
	if (value)
		return value_read(s->st, &s->b, value);
	return arg_scalar(s, "number", tag, arg, &x) ? b_full_attr(&s->b, DT_f64, x, 0, NULL)
						     : (Node){0};
}

/* Returns the dtype of a Python number that stands where the schema wants a tensor: that of operand
 * 0 where the operand can hold it (the other tensors may be indices), else the one that it takes
 * beside all tensors: where(mask, 0.1, x) and multiply(0.1, x) have x's. */
static DType number_dtype(const Scope *s, const NodeCall *c, const Attr *number)
{
	DType weak = attr_weak_dtype(number), first = DT_none;
	if (c->in.n && c->value.data[0])
		first = s->st->value.data[c->value.data[0]].meta.dtype;
	if (first != DT_none && weak_dtype(first, weak) == first)
		return first;
	return c->beside == DT_none ? weak : weak_dtype(c->beside, weak);
}

/* Takes a Python number where the schema wants a tensor. */
static bool number_operand(Scope *s, const Arg *a, NodeCall *c, const char *tag, const json_t *v)
{
	Attr x;
	Node data = data_number(s, tag, v);
	if (data.i) {
		DType d = is(tag, "as_sym_float") ? DT_f32 : DT_bool;
		d = c->beside == DT_none ? d : weak_dtype(c->beside, d);
		push_operand(s, c, 0);
		c->in.data[c->in.n - 1] = b_convert(&s->b, data, d);
		return c->in.data[c->in.n - 1].i;
	}
	TRY(arg_scalar(s, a->name, tag, v, &x));
	push_operand(s, c, 0);
	c->in.data[c->in.n - 1] = b_full_attr(&s->b, number_dtype(s, c, &x), x, 0, NULL);
	return c->in.data[c->in.n - 1].i;
}

static bool read_tensor(Scope *s, const Arg *a, NodeCall *c, const char *tag, const json_t *v)
{
	if (is(tag, "as_tensor"))
		return named_tensor(s, a, c, v);
	json_t *inner = NULL;
	const char *kind = is(tag, "as_optional_tensor") ? json_tag(v, &inner) : tag;
	if (kind && is(kind, "as_tensor"))
		return named_tensor(s, a, c, inner);
	if (kind && is(kind, "as_none")) {
		push_operand(s, c, 0);
		return a->optional || bad(s, a->name, "None");
	}
	return number_operand(s, a, c, tag, v);
}

static bool read_tensors(Scope *s, const Arg *a, NodeCall *c, const char *tag, const json_t *v,
			 Attr *out)
{
	size_t i, n = 0;
	json_t *x, *inner;
	if (!is(tag, "as_none") && !is(tag, "as_tensors") && !is(tag, "as_optional_tensors") &&
	    !is(tag, "as_ints"))
		return bad(s, a->name, tag);
	json_array_foreach(v, i, x)
	{
		if (is(tag, "as_ints")) { /* the empty list has no element type */
			return bad(s, a->name, tag);
		} else if (is(tag, "as_tensors")) {
			TRY(named_tensor(s, a, c, x));
		} else {
			const char *kind = json_tag(x, &inner);
			if (kind && is(kind, "as_tensor"))
				TRY(named_tensor(s, a, c, inner));
			else
				push_operand(s, c, 0);
		}
		n++;
	}
	*out = attr_int(s->st->im->ir, (int64_t)n);
	return true;
}

/* ---- one argument ---- */

static bool read_dtype(Scope *s, const Arg *a, const char *tag, const json_t *v, Attr *out)
{
	if (!is(tag, "as_scalar_type") || !json_is_integer(v))
		return bad(s, a->name, tag);
	int64_t code = json_integer_value(v);
	*out = attr_dtype(pt2_dtype(code));
	return out->dtype != DT_none ||
	       ctx_error(s->st->im->ctx, s->where, "argument %s: unsupported dtype %s (code %lld)",
			 a->name, pt2_dtype_name(code), (long long)code);
}

static bool read_attr(Scope *s, const Arg *a, const char *tag, const json_t *v, Attr *out)
{
	Import *im = s->st->im;
	*out = attr_none();
	if (a->kind == ARG_ignored) {
		if (is(tag, "as_layout") && json_is_integer(v) && json_integer_value(v) != 7)
			return ctx_error(im->ctx, s->where,
					 "argument %s: only strided tensors are supported",
					 a->name);
		return true;
	}
	if (is(tag, "as_none"))
		return a->optional || bad(s, a->name, "None");
	switch (a->kind) {
	case ARG_ints:
		return int_list(s, a, tag, v, out);
	case ARG_floats:
		return float_list(s, a, tag, v, out);
	case ARG_bools:
		return bool_list(s, a, tag, v, out);
	case ARG_dtype:
		return read_dtype(s, a, tag, v, out);
	case ARG_str:
		if (!is(tag, "as_string") || !json_is_string(v))
			return bad(s, a->name, tag);
		*out = attr_str(im->ir, json_string_value(v));
		return true;
	default:
		break;
	}
	TRY(arg_scalar(s, a->name, tag, v, out));
	int64_t i;
	if (a->kind == ARG_float && out->kind == ATTR_int) {
		if (!sym_is_const(im->syms, out->s, &i))
			return bad(s, a->name, "symbolic integer where a float is wanted");
		*out = attr_float((double)i);
	}
	if (a->kind == ARG_int && out->kind == ATTR_bool)
		*out = attr_int(im->ir, out->b);
	if (a->kind == ARG_bool && out->kind == ATTR_int && sym_is_const(im->syms, out->s, &i))
		*out = attr_bool(i != 0);
	return op_attr_fits(im->ir, a, out) || bad(s, a->name, tag);
}

static bool read_arg(Scope *s, const Arg *a, NodeCall *c, const char *tag, const json_t *v,
		     Attr *out)
{
	*out = attr_none();
	if (a->kind == ARG_tensor)
		return read_tensor(s, a, c, tag, v);
	if (a->kind == ARG_tensors)
		return read_tensors(s, a, c, tag, v, out);
	return read_attr(s, a, tag, v, out);
}

static bool absent_arg(Scope *s, const Schema *schema, const Arg *a, NodeCall *c, Attr *out)
{
	Import *im = s->st->im;
	*out = a->has_default ? op_default(im->ir, a) : attr_none();
	if (a->kind == ARG_tensor)
		push_operand(s, c, 0);
	else if (a->kind == ARG_tensors)
		*out = attr_int(im->ir, 0);
	if (a->has_default || a->optional || a->kind == ARG_ignored)
		return true;
	return ctx_error(im->ctx, s->where, "argument %s of %s is missing", a->name,
			 schema->name);
}

/* Whether an argument is about where and how memory is allocated: later versions of a schema may
 * add such arguments. */
static bool is_neutral(const char *tag)
{
	return is(tag, "as_none") || is(tag, "as_device") || is(tag, "as_memory_format");
}

/* Whether the name is that of an in-place operator's first operand: `self`, or, of its
 * functional form, sometimes `input`. */
static bool is_first(const char *name)
{
	return is(name, "self") || is(name, "input");
}

static bool has_argument(const Schema *schema, const char *name)
{
	for (uint32_t k = 0; k < schema->narg; k++)
		if (is(schema->arg[k].name, name))
			return true;
	return false;
}

/* Whether the argument is what the operator writes: `out` of "aten.add.out"; the functional form
 * has none. */
static bool is_destination(const json_t *node, const char *name)
{
	const char *target = json_str(node, "target");
	size_t n = target ? strlen(target) : 0;
	return is(name, "out") && n > 3 && is(target + n - 3, "out");
}

static bool check_names(Scope *s, const json_t *node, const Schema *schema)
{
	size_t i;
	json_t *input, *v;
	json_array_foreach(json_object_get(node, "inputs"), i, input)
	{
		const char *name = json_str(input, "name");
		const char *tag = json_tag(json_object_get(input, "arg"), &v);
		if (!name || !tag)
			return ctx_error(s->st->im->ctx, s->where, "argument %zu is malformed", i);
		bool known = i == 0 ? schema->narg > 0 && is_first(name) : false;
		known = known || is_destination(node, name) ||
			(*name ? has_argument(schema, name) || is_neutral(tag) : i < schema->narg);
		if (!known)
			return ctx_error(s->st->im->ctx, s->where, "%s has no argument %s",
					 schema->name, *name ? name : "at this position");
	}
	return true;
}

/* Returns the operator that takes a number: add.Tensor(x, 2) is add.Scalar(x, 2) where the table
 * has that: scalars are weaker than tensors. */
static Op scalar_overload(Scope *s, const json_t *node, Op op)
{
	const Schema *schema = op_schema(op);
	size_t n = strlen(schema->name), tail = strlen(".Tensor");
	if (n < tail || strcmp(schema->name + n - tail, ".Tensor"))
		return op;
	for (uint32_t k = 1; k < schema->narg; k++) {
		const char *tag;
		json_t *v = arg_find(node, schema->arg[k].name, k, &tag);
		if (schema->arg[k].kind != ARG_tensor || !tag || data_float(s, tag, v) ||
		    (!is(tag, "as_int") && !is(tag, "as_float") && !is(tag, "as_bool") &&
		     !is(tag, "as_sym_int") && !is(tag, "as_sym_float")))
			continue;
		Op other = op_find(arena_printf(s->st->im->ctx->scratch, "%.*s.Scalar",
						(int)(n - tail), schema->name));
		int slot = other != OP_none ? op_arg_index(other, schema->arg[k].name) : -1;
		if (slot >= 0 && op_schema(other)->arg[slot].kind == ARG_scalar)
			return other;
	}
	return op;
}

/* Returns the length of the name without its overload, the one behind the second dot. */
static size_t base_of(const char *name)
{
	const char *dot = strchr(name, '.');
	dot = dot ? strchr(dot + 1, '.') : NULL;
	return dot ? (size_t)(dot - name) : strlen(name);
}

/* Finds an overload whose argument of that name is a tensor. */
static Op overload_with_tensor(Scope *s, const Schema *schema, const char *arg)
{
	/* of pow, of where */
	static const char *const overload[] = {".Tensor", ".Tensor_Tensor", ".self"};
	for (size_t k = 0; k < sizeof overload / sizeof *overload; k++) {
		Op other = op_find(arena_printf(s->st->im->ctx->scratch, "%.*s%s",
						(int)base_of(schema->name), schema->name,
						overload[k]));
		int slot = other != OP_none ? op_arg_index(other, arg) : -1;
		if (slot >= 0 && op_schema(other)->arg[slot].kind == ARG_tensor)
			return other;
	}
	return OP_none;
}

/* Returns the operator that takes a tensor where the number depends on data: x > item is
 * gt.Tensor, as the number is a tensor here. The file says gt.Scalar, or clamp where there is
 * clamp.Tensor. */
static Op tensor_overload(Scope *s, const json_t *node, Op op)
{
	const Schema *schema = op_schema(op);
	for (uint32_t k = 0; k < schema->narg; k++) {
		const char *tag;
		json_t *v = arg_find(node, schema->arg[k].name, k, &tag);
		if (!tag || schema->arg[k].kind != ARG_scalar || !data_float(s, tag, v))
			continue;
		Op other = overload_with_tensor(s, schema, schema->arg[k].name);
		if (other != OP_none)
			return other;
	}
	return op;
}

static json_t *schema_arg(const json_t *node, const Schema *schema, uint32_t k, const char **tag)
{
	json_t *v = arg_find(node, schema->arg[k].name, k, tag);
	if (!*tag && k == 0 && is_first(schema->arg[0].name))
		v = arg_find(node, is(schema->arg[0].name, "self") ? "input" : "self", 0, tag);
	return v;
}

bool call_read(Scope *s, const json_t *node, Op op, NodeCall *c)
{
	*c = (NodeCall){.op = tensor_overload(s, node, scalar_overload(s, node, op))};
	return call_read_as(s, node, op_schema(c->op), c);
}

/* Returns the promoted dtype of all arguments that name a tensor, wherever they stand: in
 * where(c, 0.5, y) the number comes before y. */
static DType tensors_dtype(Scope *s, const json_t *node, const Schema *schema)
{
	Promotion p = {DT_none, DT_none, DT_none};
	for (uint32_t k = 0; k < schema->narg; k++) {
		const char *tag;
		json_t *v = schema_arg(node, schema, k, &tag);
		const char *name = tag && is(tag, "as_tensor") ? json_str(v, "name") : NULL;
		uint32_t value = name ? scope_find(s, name) : 0;
		if (value)
			promote_tensor(&p, s->st->value.data[value].meta.dtype, 1);
	}
	return promote_result(&p);
}

/* Sets an argument of ours, which no file has: whether operand 0 is row-major in PyTorch, where
 * the factors of a matrix depend on it. */
static void read_row_major(Scope *s, const Schema *schema, NodeCall *c)
{
	for (uint32_t k = 0; k < schema->narg; k++)
		if (is(schema->arg[k].name, "row_major") && c->value.n && c->value.data[0])
			c->attr[k] = attr_bool(meta_is_contiguous(
				s->st->im, &s->st->value.data[c->value.data[0]].meta));
}

bool call_read_as(Scope *s, const json_t *node, const Schema *schema, NodeCall *c)
{
	TRY(check_names(s, node, schema));
	c->beside = tensors_dtype(s, node, schema);
	for (uint32_t k = 0; k < schema->narg; k++) {
		const char *tag;
		json_t *v = schema_arg(node, schema, k, &tag);
		if (tag)
			TRY(read_arg(s, &schema->arg[k], c, tag, v, &c->attr[k]));
		else
			TRY(absent_arg(s, schema, &schema->arg[k], c, &c->attr[k]));
	}
	read_row_major(s, schema, c);
	return c->in.n <= UINT16_MAX ||
	       ctx_error(s->st->im->ctx, s->where, "too many operands: %u", c->in.n);
}
