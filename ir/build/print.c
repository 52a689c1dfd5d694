/* The text form of graphs. parse.c reads exactly this; both change together.
 *
 *   graph @main(%x: f32[s0, 3], %w: f32[16] param "fc.weight") -> f32[s0] where 1 <= s0 <= 64 {
 *     %y = op(%a, none, [%b, %c], attr=2) : f32[s0]   ; net.py:12
 *     return %y "logits", %n -> "fc.weight"
 *   }
 *
 * Operands stand in schema order; a Tensor[] is bracketed; absent optional operands are `none` and
 * left out at the end. Attributes stand by name when they differ from their default. Unnamed nodes
 * are numbered. */
#include <string.h>

#include "ir/build/text.h"
#include "ir/op/op.h"
#include "base/visible.h"

typedef struct {
	const Graph *g;
	Ir *ir;
	Text *out;
	int indent;
} GraphPrinter;

static void print_graph(GraphPrinter, bool top);

/* ---- attributes ---- */

static void print_string(Text *out, const char *s)
{
	text_char(out, '"');
	for (uint32_t n; *s; s += n) {
		bool visible = text_is_visible(text_code_point(s, &n));
		if (*s == '"' || *s == '\\')
			text_printf(out, "\\%c", *s);
		else if (visible)
			text_addn(out, s, n);
		for (uint32_t k = 0; k < n && !visible; k++)
			text_printf(out, "\\x%02x", (unsigned)(unsigned char)s[k]);
	}
	text_char(out, '"');
}

/* Prints a float so that it is always distinct from an integer. */
static void print_float(Text *out, double f)
{
	size_t start = out->n;
	text_double(out, f);
	if (!strpbrk(out->data + start, ".en"))
		text_add(out, ".0");
}

static void print_item(GraphPrinter p, const Attr *a, uint32_t k)
{
	if (a->kind == ATTR_ints)
		sym_print(graph_syms(p.g), a->ints[k], p.out);
	else if (a->kind == ATTR_floats)
		print_float(p.out, a->floats[k]);
	else
		text_add(p.out, a->bools[k] ? "true" : "false");
}

static void print_attr(GraphPrinter p, const Attr *a)
{
	switch (a->kind) {
	case ATTR_none:
		text_add(p.out, "none");
		break;
	case ATTR_bool:
		text_add(p.out, a->b ? "true" : "false");
		break;
	case ATTR_int:
		sym_print(graph_syms(p.g), a->s, p.out);
		break;
	case ATTR_float:
		print_float(p.out, a->f);
		break;
	case ATTR_complex:
		text_add(p.out, "complex(");
		print_float(p.out, a->z.re);
		text_add(p.out, ", ");
		print_float(p.out, a->z.im);
		text_char(p.out, ')');
		break;
	case ATTR_str:
		print_string(p.out, a->str);
		break;
	case ATTR_dtype:
		text_add(p.out, dtype_name(a->dtype));
		break;
	case ATTR_const:
		text_printf(p.out, "#%u", a->c.i);
		break;
	case ATTR_graph:
		p.g = a->graph;
		print_graph(p, false);
		break;
	case ATTR_ints:
	case ATTR_floats:
	case ATTR_bools:
		text_char(p.out, '[');
		for (uint32_t k = 0; k < a->n; k++) {
			text_add(p.out, k ? ", " : "");
			print_item(p, a, k);
		}
		text_char(p.out, ']');
		break;
	}
}

/* ---- nodes ---- */

/* Returns the node's name. The numbers of unnamed nodes are a cache of the graph; nothing else
 * changes. */
static const char *name_of(const Graph *g, Node n)
{
	return graph_name((Graph *)g, n);
}

static void print_operand(GraphPrinter p, Node n)
{
	if (n.i)
		text_printf(p.out, "%%%s", name_of(p.g, n));
	else
		text_add(p.out, "none");
}

/* Returns the number of operands up to the last that is present. */
static uint32_t operands_present(const Graph *g, Node n)
{
	uint32_t k = node_nin(g, n);
	while (k && !node_in(g, n, k - 1).i)
		k--;
	return k;
}

static void print_list(GraphPrinter p, Node n, uint32_t first, uint32_t count)
{
	text_char(p.out, '[');
	for (uint32_t k = 0; k < count; k++) {
		text_add(p.out, k ? ", " : "");
		print_operand(p, node_in(p.g, n, first + k));
	}
	text_char(p.out, ']');
}

static void print_args(GraphPrinter p, Node n)
{
	const NodeData *d = node_data(p.g, n);
	const Schema *s = op_schema(d->op);
	uint32_t at = 0, present = operands_present(p.g, n);
	const char *comma = "";
	for (uint32_t k = 0; k < s->narg; k++) {
		const Arg *arg = &s->arg[k];
		const Attr *a = ir_attr(p.ir, d->attr, k);
		Attr usual = op_default(p.ir, arg);
		int64_t count = 0;
		if (arg->kind == ARG_tensor && at++ >= present)
			continue;
		if (arg->kind != ARG_tensor && arg->kind != ARG_tensors && attr_equal(a, &usual))
			continue;
		text_add(p.out, comma);
		comma = ", ";
		if (arg->kind == ARG_tensor) {
			print_operand(p, node_in(p.g, n, at - 1));
		} else if (arg->kind == ARG_tensors) {
			if (a->kind == ATTR_int)
				count = sym_const_or(graph_syms(p.g), a->s, count);
			if (count < 0 || (uint64_t)count > node_nin(p.g, n) - at)
				count = node_nin(p.g, n) - at;
			print_list(p, n, at, (uint32_t)count);
			at += (uint32_t)count;
		} else {
			text_printf(p.out, "%s=", arg->name);
			print_attr(p, a);
		}
	}
}

static void print_constant(GraphPrinter p, Node n)
{
	ConstId c = ir_attr(p.ir, node_data(p.g, n)->attr, 0)->c;
	text_printf(p.out, "const #%u ", c.i);
	type_print(p.ir, node_type_id(p.g, n), p.out);
	text_printf(p.out, " sha=%016llx", (unsigned long long)const_hash(p.ir, c));
}

static void print_indent(GraphPrinter p)
{
	for (int k = 0; k < p.indent; k++)
		text_add(p.out, "  ");
}

static void print_node(GraphPrinter p, Node n)
{
	const NodeData d = *node_data(p.g, n);
	print_indent(p);
	if (d.type.i || p.g->node_name.data[n.i])
		text_printf(p.out, "%%%s = ", name_of(p.g, n));
	if (d.op == OP_constant) {
		print_constant(p, n);
	} else {
		text_printf(p.out, "%s(", op_name(d.op));
		print_args(p, n);
		text_char(p.out, ')');
		if (d.type.i) {
			text_add(p.out, " : ");
			type_print(p.ir, d.type, p.out);
		}
	}
	if (*ir_loc_text(p.ir, d.loc))
		text_printf(p.out, "  ; %s", ir_loc_text(p.ir, d.loc));
	text_char(p.out, '\n');
}

/* ---- header ---- */

static void print_input(GraphPrinter p, const GraphInput *in)
{
	const char *name = name_of(p.g, in->node);
	text_printf(p.out, "%%%s: ", name);
	type_print(p.ir, node_type_id(p.g, in->node), p.out);
	if (in->kind != INPUT_USER)
		text_add(p.out, in->kind == INPUT_PARAM ? " param" : " buffer");
	if (in->init.i)
		text_printf(p.out, " #%u", in->init.i);
	if (strcmp(name, in->name) != 0) {
		text_char(p.out, ' ');
		print_string(p.out, in->name);
	}
}

static void print_inputs(GraphPrinter p)
{
	bool lines = p.g->input.n > 4;
	for (uint32_t k = 0; k < p.g->input.n; k++) {
		text_add(p.out, k ? "," : "");
		if (lines) {
			text_char(p.out, '\n');
			print_indent(p);
			text_add(p.out, "    ");
		} else {
			text_add(p.out, k ? " " : "");
		}
		print_input(p, &p.g->input.data[k]);
	}
}

static void print_results(GraphPrinter p)
{
	for (uint32_t k = 0; k < p.g->output.n; k++) {
		Node n = p.g->output.data[k].node;
		text_add(p.out, k ? ", " : " -> ");
		if (n.i)
			type_print(p.ir, node_type_id(p.g, n), p.out);
		else
			text_add(p.out, "none");
	}
}

/* ---- symbols ---- */

static void used_in(const Graph *g, Sym e, bool *used)
{
	const SymTab *t = graph_syms(g);
	for (uint32_t k = 0; k < sym_nvars(t); k++)
		used[k] = used[k] || sym_uses(t, e, sym_var_at(t, k));
}

static void used_in_type(const Graph *g, TypeId id, bool *used)
{
	const Type *t = ir_type_of(g->ir, id);
	for (uint32_t k = 0; k < t->n; k++)
		if (t->dtype == DT_none)
			used_in_type(g, t->elem[k], used);
		else if (!sym_is_const(graph_syms(g), t->dim[k], NULL))
			used_in(g, t->dim[k], used);
}

static void used_in_attrs(const Graph *g, Op op, AttrId id, bool *used)
{
	for (uint32_t k = 0; id.i && k < op_schema(op)->narg; k++) {
		const Attr *a = ir_attr(g->ir, id, k);
		if (a->kind == ATTR_int)
			used_in(g, a->s, used);
		for (uint32_t j = 0; a->kind == ATTR_ints && j < a->n; j++)
			if (!sym_is_const(graph_syms(g), a->ints[j], NULL))
				used_in(g, a->ints[j], used);
		if (a->kind == ATTR_graph && a->graph)
			graph_used_symbols(a->graph, used);
	}
}

/* Looks at every type and attribute tuple once. */
void graph_used_symbols(const Graph *g, bool *used)
{
	Ir *ir = g->ir;
	bool *seen_type = ARENA_ARRAY(ir->ctx->scratch, bool, ir->type.n);
	bool *seen_attr = ARENA_ARRAY(ir->ctx->scratch, bool, ir->attr.n);
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		const NodeData *d = node_data(g, n);
		if (!seen_type[d->type.i])
			used_in_type(g, d->type, used);
		if (!seen_attr[d->attr.i])
			used_in_attrs(g, d->op, d->attr, used);
		seen_type[d->type.i] = seen_attr[d->attr.i] = true;
	}
}

static void print_range(GraphPrinter p, Sym v)
{
	const SymTab *t = graph_syms(p.g);
	int64_t lo, hi, hint = sym_hint(t, v);
	sym_range(t, v, &lo, &hi);
	if (sym_var_kind(t, v) == SYMVAR_UNBACKED)
		text_add(p.out, "unbacked ");
	if (lo == -SYM_INF)
		text_add(p.out, "-inf <= ");
	else
		text_printf(p.out, "%lld <= ", (long long)lo);
	text_add(p.out, sym_name(t, v));
	if (hi != SYM_INF)
		text_printf(p.out, " <= %lld", (long long)hi);
	if (hint > 0 && hint != lo)
		text_printf(p.out, " ~ %lld", (long long)hint);
}

static void print_guard(GraphPrinter p, const GraphGuard *guard)
{
	static const char *const relation[] = {
		[GUARD_EQ] = " == ", [GUARD_NE] = " != ", [GUARD_LE] = " <= "};
	text_add(p.out, "require ");
	sym_print(graph_syms(p.g), guard->a, p.out);
	text_add(p.out, relation[guard->kind]);
	sym_print(graph_syms(p.g), guard->b, p.out);
	if (*guard->why) {
		text_char(p.out, ' ');
		print_string(p.out, guard->why);
	}
}

static void print_where(GraphPrinter p, bool top)
{
	uint32_t n = sym_nvars(graph_syms(p.g));
	bool *used = ARENA_ARRAY(p.ir->ctx->scratch, bool, n);
	const char *lead = " where ";
	if (top)
		graph_used_symbols(p.g, used);
	for (uint32_t k = 0; top && k < p.g->guard.n; k++) {
		used_in(p.g, p.g->guard.data[k].a, used);
		used_in(p.g, p.g->guard.data[k].b, used);
	}
	for (uint32_t k = 0; k < n; k++) {
		if (!used[k])
			continue;
		text_add(p.out, lead);
		print_range(p, sym_var_at(graph_syms(p.g), k));
		lead = ", ";
	}
	for (uint32_t k = 0; k < p.g->guard.n; k++) {
		text_add(p.out, lead);
		print_guard(p, &p.g->guard.data[k]);
		lead = ", ";
	}
}

/* ---- graphs ---- */

/* Prints the input that an output replaces: its name where that is unique, else its number. */
static void print_target(GraphPrinter p, uint32_t input)
{
	uint32_t same = 0;
	const char *name = input < p.g->input.n ? p.g->input.data[input].name : "";
	for (uint32_t k = 0; k < p.g->input.n; k++)
		same += strcmp(p.g->input.data[k].name, name) == 0;
	text_add(p.out, " -> ");
	if (same == 1)
		print_string(p.out, name);
	else
		text_printf(p.out, "%u", input);
}

static void print_return(GraphPrinter p)
{
	print_indent(p);
	text_add(p.out, "return");
	for (uint32_t k = 0; k < p.g->output.n; k++) {
		const GraphOutput *o = &p.g->output.data[k];
		text_add(p.out, k ? ", " : " ");
		print_operand(p, o->node);
		if (strcmp(o->name, o->node.i ? name_of(p.g, o->node) : "") != 0) {
			text_char(p.out, ' ');
			print_string(p.out, o->name);
		}
		if (o->writes >= 0)
			print_target(p, (uint32_t)o->writes);
	}
	text_char(p.out, '\n');
}

static bool plain_name(const char *s)
{
	const char *chars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.$";
	return *s && !s[strspn(s, chars)];
}

static void print_graph(GraphPrinter p, bool top)
{
	text_add(p.out, "graph @");
	if (plain_name(p.g->name))
		text_add(p.out, p.g->name);
	else
		print_string(p.out, p.g->name);
	text_char(p.out, '(');
	print_inputs(p);
	text_char(p.out, ')');
	print_results(p);
	print_where(p, top);
	text_add(p.out, " {\n");
	p.indent++;
	for (Node n = p.g->first; n.i; n = node_next(p.g, n))
		if (node_op(p.g, n) != OP_input)
			print_node(p, n);
	print_return(p);
	p.indent--;
	print_indent(p);
	text_char(p.out, '}');
}

void graph_print_node(const Graph *g, Node n, Text *out)
{
	print_node((GraphPrinter){g, g->ir, out, 0}, n);
}

void graph_print(const Graph *g, Text *out)
{
	print_graph((GraphPrinter){g, g->ir, out, 0}, true);
	text_char(out, '\n');
}
