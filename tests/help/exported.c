#include "tests/help/exported.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* PyTorch's numbers of dtypes: torch/_export/serde/schema.py. */
static const struct {
	DType dtype;
	int code;
} codes[] = {{DT_u8, 1}, {DT_i8, 2}, {DT_i16, 3}, {DT_i32, 4}, {DT_i64, 5}, {DT_f16, 6}, {DT_f32, 7}, {DT_f64, 8}, {DT_c32, 9},
             {DT_c64, 10}, {DT_c128, 11}, {DT_bool, 12}, {DT_bf16, 13}, {DT_u16, 28}, {DT_f8e4m3, 29}, {DT_f8e5m2, 30}, {DT_f8e4m3fnuz, 31}, {DT_f8e5m2fnuz, 32}, {DT_u32, 34},
             {DT_u64, 35}};

typedef struct {
	Graph *g;
	ArgsForm form;
	json_t *graph; /* of the JSON */
	uint32_t nsym;
	bool ok;
} Writer;

static int code_of(Writer *w, DType d)
{
	for (size_t k = 0; k < sizeof codes / sizeof *codes; k++)
		if (codes[k].dtype == d)
			return codes[k].code;
	w->ok = false;
	return 0;
}

/* ---- sizes ---- */

/* The text of an expression: functions are capitalised there. */
static json_t *expression(Writer *w, Sym s)
{
	const char *from = sym_str(graph_syms(w->g), s);
	Text t;
	text_init(&t, w->g->ir->ctx->arena);
	for (const char *p = from; *p; p++) {
		bool begins = p == from || !strchr("abcdefghijklmnopqrstuvwxyz_0123456789", p[-1]);
		if (begins && !strncmp(p, "floordiv(", 9)) {
			text_add(&t, "FloorDiv(");
			p += 8;
		} else if (begins && !strncmp(p, "mod(", 4)) {
			text_add(&t, "Mod(");
			p += 3;
		} else {
			text_char(&t, *p);
		}
	}
	w->ok = w->ok && !strstr(t.data, "sqrt") && !strstr(t.data, "floor(");
	return json_pack("{s:{s:s, s:{s:I}}}", "as_expr", "expr_str", t.data, "hint", "as_int",
			 (json_int_t)sym_hint(graph_syms(w->g), s));
}

static json_t *size(Writer *w, Sym s)
{
	int64_t v;
	return sym_is_const(graph_syms(w->g), s, &v) ? json_pack("{s:I}", "as_int", (json_int_t)v)
						     : expression(w, s);
}

static json_t *tensor(Writer *w, TypeId id)
{
	Ir *ir = w->g->ir;
	Type t = *ir_type_of(ir, id);
	json_t *sizes = json_array(), *strides = json_array();
	Sym step = sym_int(ir->syms, 1);
	for (uint32_t k = 0; k < t.n; k++)
		json_array_append_new(sizes, size(w, t.dim[k]));
	for (uint32_t k = t.n; k-- > 0;) {
		json_array_insert_new(strides, 0, size(w, step));
		step = sym_mul(ir->syms, step, t.dim[k]);
	}
	return json_pack("{s:i, s:o, s:b, s:{s:s, s:n}, s:o, s:{s:i}, s:i}", "dtype", code_of(w, t.dtype), "sizes", sizes, "requires_grad", 0,
	                 "device", "type", "cpu", "index", "strides", strides, "storage_offset", "as_int", 0, "layout", 7);
}

static void define(Writer *w, const char *name, TypeId type)
{
	json_object_set_new(json_object_get(w->graph, "tensor_values"), name, tensor(w, type));
}

/* ---- arguments ---- */

static json_t *tagged(const char *tag, json_t *value)
{
	return json_pack("{s:o}", tag, value);
}

/* A name for a symbolic value that is written there. */
static json_t *symbolic(Writer *w, const char *tag, const char *table, json_t *value)
{
	char name[24];
	snprintf(name, sizeof name, "sym_%u", w->nsym++);
	json_object_set_new(json_object_get(w->graph, table), name, value);
	return tagged(tag, tagged("as_name", json_string(name)));
}

/* An integer: where names are wanted, in turn by one of an expression, by one of a number, and as a
 * symbolic one without a name. */
static json_t *integer(Writer *w, Sym s)
{
	int64_t v;
	bool known = sym_is_const(graph_syms(w->g), s, &v);
	if (!known)
		return symbolic(w, "as_sym_int", "sym_int_values", expression(w, s));
	json_t *plain = tagged("as_int", json_integer(v));
	if (w->form != ARGS_NAMED)
		return plain;
	if (w->nsym % 3 == 0)
		return symbolic(w, "as_sym_int", "sym_int_values", plain);
	if (w->nsym++ % 3 == 1)
		return tagged("as_sym_int", plain);
	json_decref(plain);
	return symbolic(w, "as_sym_int", "sym_int_values", expression(w, s));
}

static json_t *real(double v)
{
	return isnan(v) ? json_string("NaN") : isinf(v) ? json_string(v < 0 ? "-Infinity" : "Infinity") : json_real(v);
}

static json_t *fraction(Writer *w, double v)
{
	char text[80];
	json_t *plain = tagged("as_float", real(v));
	if (w->form != ARGS_NAMED)
		return plain;
	if (w->nsym % 3 == 0 || !isfinite(v))
		return symbolic(w, "as_sym_float", "sym_float_values", plain);
	if (w->nsym++ % 3 == 1)
		return tagged("as_sym_float", plain);
	json_decref(plain);
	snprintf(text, sizeof text, "Float('%.17g', precision=53)", v);
	return symbolic(w, "as_sym_float", "sym_float_values", json_pack("{s:{s:s}}", "as_expr", "expr_str", text));
}

/* A bool, as a condition on sizes that is known. */
static json_t *truth(Writer *w, bool v)
{
	static const char *const text[2][3] = {{"False", "Ne(Integer(3), Integer(3))", "GreaterThan(2, 3)"},
	                                       {"True", "Eq(Integer(3), Integer(3))", "StrictLessThan(2, 3)"}};
	json_t *plain = tagged("as_bool", json_boolean(v));
	if (w->form != ARGS_NAMED)
		return plain;
	if (w->nsym % 2) {
		w->nsym++;
		return tagged("as_sym_bool", plain);
	}
	json_decref(plain);
	return symbolic(w, "as_sym_bool", "sym_bool_values", json_pack("{s:{s:s}}", "as_expr", "expr_str", text[v][w->nsym / 2 % 3]));
}

static json_t *integers(Writer *w, const Attr *a)
{
	bool plain = w->form != ARGS_NAMED;
	int64_t v;
	json_t *list = json_array();
	for (uint32_t k = 0; k < a->n; k++)
		plain &= sym_is_const(graph_syms(w->g), a->ints[k], &v);
	for (uint32_t k = 0; k < a->n; k++) {
		json_t *one = integer(w, a->ints[k]), *inner = json_object_get(one, plain ? "as_int" : "as_sym_int");
		/* {"as_name": ...}, or {"as_int": 3} as it is */
		json_array_append(list, inner ? inner : one);
		json_decref(one);
	}
	return tagged(plain ? "as_ints" : "as_sym_ints", list);
}

static json_t *plain_list(const Attr *a)
{
	json_t *list = json_array();
	for (uint32_t k = 0; k < a->n; k++)
		json_array_append_new(list, a->kind == ATTR_bools ? json_boolean(a->bools[k]) : real(a->floats[k]));
	return tagged(a->kind == ATTR_bools ? "as_bools" : "as_floats", list);
}

static json_t *attribute(Writer *w, const Attr *a)
{
	switch (a->kind) {
	case ATTR_bool: return truth(w, a->b);
	case ATTR_int: return integer(w, a->s);
	case ATTR_float: return fraction(w, a->f);
	case ATTR_complex: return json_pack("{s:{s:o, s:o}}", "as_complex", "real", real(a->z.re), "imag", real(a->z.im));
	case ATTR_str: return tagged("as_string", json_string(a->str));
	case ATTR_dtype: return tagged("as_scalar_type", json_integer(code_of(w, a->dtype)));
	case ATTR_ints: return integers(w, a);
	case ATTR_floats:
	case ATTR_bools: return plain_list(a);
	case ATTR_none: return tagged("as_none", json_true());
	default: w->ok = false; return json_null();
	}
}

static json_t *named(Writer *w, Node n)
{
	return json_pack("{s:s}", "name", graph_name(w->g, n));
}

static json_t *operand(Writer *w, const Arg *arg, Node n)
{
	json_t *x = n.i ? tagged("as_tensor", named(w, n)) : tagged("as_none", json_true());
	return arg->optional && w->form != ARGS_SHORT && (n.i || w->form != ARGS_ALL) ? tagged("as_optional_tensor", x) : x;
}

static json_t *operands(Writer *w, Node node, uint32_t first, uint32_t n)
{
	bool all = true;
	json_t *list = json_array();
	for (uint32_t k = 0; k < n; k++)
		all &= node_in(w->g, node, first + k).i != 0;
	for (uint32_t k = 0; k < n; k++) {
		Node x = node_in(w->g, node, first + k);
		json_array_append_new(list, all ? named(w, x) : x.i ? tagged("as_tensor", named(w, x)) : tagged("as_none", json_true()));
	}
	return tagged(all ? "as_tensors" : "as_optional_tensors", list);
}

static json_t *arguments(Writer *w, Node n)
{
	Ir *ir = w->g->ir;
	const Schema *schema = op_schema(node_op(w->g, n));
	json_t *list = json_array();
	uint32_t in = 0;
	for (uint32_t k = 0; k < schema->narg; k++) {
		const Arg *arg = &schema->arg[k];
		const Attr *a = ir_attr(ir, node_data(w->g, n)->attr, k);
		json_t *v;
		Attr usual = op_default(ir, arg);
		bool left_out = w->form == ARGS_SHORT && attr_equal(a, &usual) && (arg->has_default || arg->optional || arg->kind == ARG_ignored);
		if (arg->kind == ARG_tensor) {
			Node x = node_in(w->g, n, in++);
			left_out = w->form == ARGS_SHORT && !x.i && (arg->has_default || arg->optional);
			v = operand(w, arg, x);
		} else if (arg->kind == ARG_tensors) {
			int64_t count = 0;
			count = sym_const_or(ir->syms, a->s, 0);
			left_out = false;
			v = operands(w, n, in, (uint32_t)count);
			in += (uint32_t)count;
		} else {
			v = left_out ? json_null() : attribute(w, a);
		}
		if (left_out)
			json_decref(v);
		else
			json_array_append_new(list, json_pack("{s:s, s:o, s:i}", "name", w->form == ARGS_PLACED ? "" : arg->name, "arg", v, "kind", 1));
	}
	return list;
}

/* ---- nodes ---- */

/* The name of result k of a tuple: of the node that takes it, if any does. */
static const char *result_name(Writer *w, Node n, uint32_t k)
{
	Use u = node_data(w->g, n)->first_use;
	Node got = node_next_get(w->g, &u, k);
	return got.i ? graph_name(w->g, got) : arena_printf(w->g->ir->ctx->arena, "%s_%u", graph_name(w->g, n), k);
}

static json_t *results(Writer *w, Node n)
{
	TypeId id = node_type_id(w->g, n);
	const char *name = graph_name(w->g, n);
	json_t *out = json_array();
	if (!id.i)
		return out;
	Type t = *ir_type_of(w->g->ir, id);
	if (t.dtype != DT_none) {
		define(w, name, id);
		json_array_append_new(out, tagged("as_tensor", json_pack("{s:s}", "name", name)));
		return out;
	}
	json_t *list = json_array();
	bool is_list = op_schema(node_op(w->g, n))->nresult == UINT32_MAX;
	for (uint32_t k = 0; k < t.n; k++) {
		name = result_name(w, n, k);
		define(w, name, t.elem[k]);
		json_t *one = json_pack("{s:s}", "name", name);
		json_array_append_new(is_list ? list : out, is_list ? one : tagged("as_tensor", one));
	}
	if (is_list)
		json_array_append_new(out, tagged("as_tensors", list));
	else
		json_decref(list);
	return out;
}

static json_t *call(Writer *w, Node n)
{
	const char *name = op_name(node_op(w->g, n)), *dot = strchr(name, '.');
	const char *target = arena_printf(w->g->ir->ctx->arena, "torch.ops.%s%s", name, dot && strchr(dot + 1, '.') ? "" : ".default");
	json_t *in = arguments(w, n), *out = results(w, n);
	return json_pack("{s:s, s:o, s:o, s:{}, s:s}", "target", target, "inputs", in, "outputs", out, "metadata", "name", graph_name(w->g, n));
}

static json_t *ranges(const SymTab *t)
{
	json_t *all = json_object();
	for (uint32_t k = 0; k < sym_nvars(t); k++) {
		Sym v = sym_var_at(t, k);
		int64_t lo, hi;
		sym_range(t, v, &lo, &hi);
		json_object_set_new(all, sym_name(t, v), json_pack("{s:I, s:o}", "min_val", (json_int_t)lo, "max_val",
		                                                    hi == SYM_INF ? json_null() : json_integer(hi)));
	}
	return all;
}

json_t *exported(Graph *g, ArgsForm form)
{
	static const char *const tables[] = {"tensor_values", "sym_int_values", "sym_bool_values", "sym_float_values"};
	json_t *inputs = json_array(), *outputs = json_array(), *nodes = json_array(), *in = json_array(), *out = json_array();
	Writer w = {g, form, json_pack("{s:o, s:o, s:o}", "inputs", inputs, "outputs", outputs, "nodes", nodes), 0, true};
	for (size_t k = 0; k < sizeof tables / sizeof *tables; k++)
		json_object_set_new(w.graph, tables[k], json_object());
	for (uint32_t k = 0; k < g->input.n; k++) {
		Node n = g->input.data[k].node;
		define(&w, graph_name(g, n), node_type_id(g, n));
		json_array_append_new(inputs, tagged("as_tensor", named(&w, n)));
		json_array_append_new(in, json_pack("{s:{s:{s:o}}}", "user_input", "arg", "as_tensor", named(&w, n)));
	}
	for (Node n = g->first; n.i; n = node_next(g, n))
		if (strchr(op_name(node_op(g, n)), '.'))
			json_array_append_new(nodes, call(&w, n));
	for (uint32_t k = 0; k < g->output.n; k++) {
		json_array_append_new(outputs, tagged("as_tensor", named(&w, g->output.data[k].node)));
		json_array_append_new(out, json_pack("{s:{s:{s:o}}}", "user_output", "arg", "as_tensor", named(&w, g->output.data[k].node)));
	}
	json_t *root = json_pack("{s:{s:o, s:{s:o, s:o}}, s:o, s:{s:i, s:i}, s:[]}", "graph_module",
				 "graph", w.graph, "signature", "input_specs", in, "output_specs",
				 out, "range_constraints", ranges(graph_syms(g)), "schema_version",
				 "major", 8, "minor", 20, "guards_code");
	if (w.ok)
		return root;
	json_decref(root);
	return NULL;
}

/* ---- changes ---- */

json_t *exported_graph(json_t *root)
{
	return json_object_get(json_object_get(root, "graph_module"), "graph");
}

static json_t *specs(json_t *root, const char *which)
{
	return json_object_get(json_object_get(json_object_get(root, "graph_module"), "signature"), which);
}

json_t *exported_node(json_t *root, size_t k)
{
	return json_array_get(json_object_get(exported_graph(root), "nodes"), k);
}

json_t *exported_tensor(json_t *root, const char *name)
{
	return json_object_get(json_object_get(exported_graph(root), "tensor_values"), name);
}

void exported_set_strides(json_t *meta, const int64_t *stride, uint32_t rank, int64_t offset)
{
	json_t *list = json_array();
	for (uint32_t k = 0; k < rank; k++)
		json_array_append_new(list, tagged("as_int", json_integer(stride[k])));
	json_object_set_new(meta, "strides", list);
	json_object_set_new(meta, "storage_offset", tagged("as_int", json_integer(offset)));
}

static void define_like(json_t *root, const char *name, const char *like)
{
	json_object_set_new(json_object_get(exported_graph(root), "tensor_values"), name, json_deep_copy(exported_tensor(root, like)));
}

void exported_add_input(json_t *root, const char *name, const char *like)
{
	define_like(root, name, like);
	json_array_append_new(json_object_get(exported_graph(root), "inputs"), json_pack("{s:{s:s}}", "as_tensor", "name", name));
	json_array_append_new(specs(root, "input_specs"), json_pack("{s:{s:{s:{s:s}}}}", "user_input", "arg", "as_tensor", "name", name));
}

void exported_add_output(json_t *root, const char *name)
{
	json_array_append_new(json_object_get(exported_graph(root), "outputs"), json_pack("{s:{s:s}}", "as_tensor", "name", name));
	json_array_append_new(specs(root, "output_specs"), json_pack("{s:{s:{s:{s:s}}}}", "user_output", "arg", "as_tensor", "name", name));
}

void exported_add_call(json_t *root, size_t at, const char *target, const char *const *args, const char *name, const char *like)
{
	json_t *in = json_array(), *out = json_array();
	for (; *args; args++) {
		const char *value = strchr(*args, '=') + 1;
		bool number = *value == '-' || (*value >= '0' && *value <= '9');
		json_t *v = number ? tagged("as_int", json_integer(strtoll(value, NULL, 10))) : json_pack("{s:{s:s}}", "as_tensor", "name", value);
		json_array_append_new(in, json_pack("{s:s%, s:o, s:i}", "name", *args, (size_t)(value - 1 - *args), "arg", v, "kind", 1));
	}
	if (name) {
		define_like(root, name, like);
		json_array_append_new(out, json_pack("{s:{s:s}}", "as_tensor", "name", name));
	}
	json_array_insert_new(json_object_get(exported_graph(root), "nodes"), at,
	                      json_pack("{s:s, s:o, s:o, s:{}, s:s}", "target", target, "inputs", in, "outputs", out, "metadata", "name",
	                                name ? name : target));
}

ZipBytes exported_archive(const json_t *root, const char *model)
{
	char path[200];
	ZipFile z = {0};
	char *text = json_dumps(root, JSON_COMPACT);
	snprintf(path, sizeof path, "m/models/%s.json", model);
	zip_put(&z, path, text, strlen(text));
	zip_put(&z, "m/byteorder", "little", 6);
	ZipBytes b = zip_pack(&z);
	zip_drop(&z);
	free(text);
	return b;
}
