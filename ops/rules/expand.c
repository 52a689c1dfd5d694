/* Composites: their .expand text evaluated through the builder, or their function.
 *
 *   text  = { name "=" expr ";" } expr
 *   expr  = sum [ ("<" | "<=" | ">" | ">=" | "==" | "!=") sum ]
 *   sum   = term { ("+" | "-") term }       term = unary { ("*" | "/") unary }
 *   unary = "-" unary | number | "text" | name | name "(" [arg {"," arg}] ")" | "(" expr ")" | list
 *   arg   = [ name "=" ] expr               list = "[" [expr {"," expr}] "]"
 *
 * In rules of users' operators (user/rule.c) a name may be one of these: "mylib::decay".
 *
 * A name is a binding, an argument of the op, a dtype, true, false, none, inf or nan; before "(" it
 * is an op, by schema name or without "aten.". Numbers and Scalar arguments are weak scalars. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scan.h"
#include "ops/rules/expand_priv.h"
#include "ops/rules/expand_wide.h"
#include "ir/op/userop.h"

static Val expression(Eval *);

static Val fail(Eval *e, const char *err)
{
	if (!e->err) {
		e->err = err;
		e->errp = e->p;
	}
	return (Val){VAL_none};
}

static Val val_node(Node n)
{
	return (Val){.kind = VAL_node, .node = n};
}

static Val val_attr(Attr a)
{
	return (Val){.kind = VAL_attr, .attr = a};
}

static Val val_any(void)
{
	return (Val){.kind = VAL_any};
}

static Span span(const Eval *e, const char *from)
{
	return (Span){from, (uint32_t)(e->p - from)};
}

/* Returns v, which the text from there on gives, unless the judge of values refuses it. */
static Val judged(Eval *e, const char *from, Val v)
{
	const char *why = e->judge && !e->err ? e->judge(e->judged, &v) : NULL;
	if (!why)
		return v;
	e->bad = span(e, from);
	return fail(e, why);
}

static bool is_weak(const Val *v)
{
	return v->kind == VAL_attr && attr_weak_dtype(&v->attr) != DT_none;
}

/* ---- scanning ---- */

static bool is_letter(char c)
{
	return !scan_is_digit(c) && scan_word((char[]){c, 0});
}

/* Returns the length of the name at p; names of ops have dots, those of users' "::". */
static uint32_t name_length(const char *p)
{
	uint32_t n = 0;
	while (is_letter(p[n]) || (n && (scan_is_digit(p[n]) || p[n] == '.')) ||
	       (n && p[n] == ':' && p[n + 1] == ':' && is_letter(p[n + 2])))
		n += p[n] == ':' ? 2 : 1;
	return n;
}

/* Reads "name =", but not "name ==": at a binding or a keyword argument. Returns false where
 * something else stands. */
static bool name_and_equals(Eval *e, const char **name, uint32_t *len)
{
	scan_blanks(&e->p);
	uint32_t n = name_length(e->p), k = n + (uint32_t)strspn(e->p + n, " \t\n");
	if (!n || e->p[k] != '=' || e->p[k + 1] == '=')
		return false;
	*name = e->p;
	*len = n;
	e->p += k + 1;
	return true;
}

/* ---- calls ---- */

static double weak_value(const Eval *e, const Val *v, bool *known)
{
	int64_t i;
	if (v->attr.kind == ATTR_float)
		return v->attr.f;
	if (v->attr.kind == ATTR_bool)
		return v->attr.b;
	*known = *known && v->attr.kind == ATTR_int && sym_is_const(b_syms(e->b), v->attr.s, &i);
	return *known ? (double)i : 0;
}

/* Computes with integers, which stay integers, symbolic ones too. Returns false for other
 * numbers and operators. */
static bool fold_ints(Eval *e, Op op, const Val *x, uint32_t n, Val *out)
{
	SymTab *t = b_syms(e->b);
	if (x[0].attr.kind != ATTR_int || (n == 2 && x[1].attr.kind != ATTR_int))
		return false;
	if (op == OP_add)
		*out = val_attr(attr_sym(sym_add(t, x[0].attr.s, x[1].attr.s)));
	else if (op == OP_sub)
		*out = val_attr(attr_sym(sym_sub(t, x[0].attr.s, x[1].attr.s)));
	else if (op == OP_mul)
		*out = val_attr(attr_sym(sym_mul(t, x[0].attr.s, x[1].attr.s)));
	else if (op == OP_neg)
		*out = val_attr(attr_sym(sym_muli(t, x[0].attr.s, -1)));
	else
		return false;
	return true;
}

static double fold_double(Op op, double a, double c, bool *known)
{
	switch (op) {
	case OP_add:
		return a + c;
	case OP_sub:
		return a - c;
	case OP_mul:
		return a * c;
	case OP_div:
		return a / c;
	case OP_neg:
		return -a;
	case OP_abs:
		return fabs(a);
	case OP_sqrt:
		return sqrt(a);
	case OP_exp:
		return exp(a);
	case OP_log:
		return log(a);
	case OP_log1p:
		return log1p(a);
	case OP_pow:
		return pow(a, c);
	default:
		*known = false;
		return 0;
	}
}

/* Computes arithmetic of weak scalars, in double as in Python. Returns false if an operand is no
 * such number, or the operator is not computed here. */
static bool weak_result(Eval *e, Op op, const Val *x, uint32_t n, Val *out)
{
	bool known = true;
	for (uint32_t k = 0; k < n; k++)
		if (!is_weak(&x[k]))
			return false;
	if (fold_ints(e, op, x, n, out))
		return true;
	double a = weak_value(e, &x[0], &known), c = n > 1 ? weak_value(e, &x[1], &known) : 0;
	*out = val_attr(attr_float(fold_double(op, a, c, &known)));
	return known;
}

/* Returns a tensor operand; a weak scalar becomes one of dtype d. */
Node expand_operand(Eval *e, const Val *v, DType d)
{
	if (v->kind == VAL_node)
		return v->node;
	if (is_weak(v))
		return b_full_attr(e->b, d, v->attr, 0, NULL);
	fail(e, v->kind == VAL_none ? "expected an argument that is present" : "expected a tensor");
	return b_error(e->b, "%s", e->err);
}

static DType call_dtype(Eval *e, const Val *x, uint32_t n)
{
	Promotion p = {DT_none, DT_none, DT_none};
	const Graph *g = e->b->g;
	for (uint32_t k = 0; k < n; k++) {
		if (x[k].kind == VAL_node && x[k].node.i)
			promote_tensor(&p, node_dtype(g, x[k].node), node_rank(g, x[k].node));
		else if (is_weak(&x[k]))
			promote_weak(&p, attr_weak_dtype(&x[k].attr));
	}
	return promote_result(&p);
}

static DType promote_apply(Promote how, DType d)
{
	if (how == PROMOTE_FLOAT && (d == DT_bool || dtype_is_int(d)))
		return DT_f32;
	return how == PROMOTE_INT && d == DT_bool ? DT_i64 : d;
}

static Val scalar_call(Eval *e, Op op, const Val *x, uint32_t n)
{
	Val folded;
	if (n != op_schema(op)->narg)
		return fail(e, "wrong number of operands");
	if (!e->b)
		return val_any();
	if (weak_result(e, op, x, n, &folded))
		return folded;
	uint32_t first = op == OP_select;
	DType d = promote_apply(op_info(op)->promote, call_dtype(e, x + first, n - first));
	Node in[4] = {{0}};
	for (uint32_t k = 0; k < n && k < 4; k++) {
		in[k] = expand_operand(e, &x[k], k < first ? DT_bool : d);
		if (!in[k].i)
			return val_node((Node){0});
		in[k] = b_convert(e->b, in[k], k < first ? DT_bool : d);
	}
	return val_node(b_pointwise(e->b, op, in, n));
}

/* Calls an operator with arguments in schema order: they become operands and attributes of
 * b_node. */
static Val node_call(Eval *e, Op op, const Val *slot)
{
	const Schema *s = op_schema(op);
	Attr attr[MAX_ARGS] = {{0}};
	uint32_t nin = 0, max = s->narg;
	if (!e->b)
		return val_any();
	for (uint32_t k = 0; k < s->narg; k++)
		max += slot[k].n;
	Node *in = ARENA_ARRAY(e->b->g->ir->ctx->scratch, Node, max);
	DType d = call_dtype(e, slot, s->narg);
	for (uint32_t k = 0; k < s->narg; k++) {
		const Val *v = &slot[k];
		if (s->arg[k].kind == ARG_tensors) {
			attr[k] = attr_int(e->b->g->ir, v->n);
			for (uint32_t j = 0; j < v->n; j++)
				in[nin++] = v->nodes[j];
		} else if (s->arg[k].kind == ARG_tensor) {
			bool absent = v->kind == VAL_none && s->arg[k].optional;
			in[nin++] = absent ? (Node){0} : expand_operand(e, v, d);
			if (!absent && !in[nin - 1].i)
				return val_node((Node){0});
		} else if (v->kind == VAL_attr) {
			attr[k] = v->attr;
		} else if (v->kind != VAL_none) {
			return fail(e, "expected an attribute");
		}
	}
	if (op == OP_get && e->user) {
		const Type *t = node_type(e->b->g, in[0]);
		bool known = is_weak(&slot[1]);
		double index = known ? weak_value(e, &slot[1], &known) : -1;
		if (t->dtype != DT_none || !known || index < 0 || index >= t->n)
			return fail(e, "no such result");
	}
	if (op == OP_get)
		return val_node(
			b_get(e->b, in[0], (uint32_t)weak_value(e, &slot[1], &(bool){true})));
	return val_node(b_node(e->b, op, in, nin, attr, s->narg));
}

static Op find_op(const char *name, uint32_t len)
{
	char full[128];
	if (len + 6 > sizeof full)
		return OP_none;
	memcpy(full, "aten.", 5);
	memcpy(full + 5, name, len);
	full[5 + len] = 0;
	Op op = op_find(full + 5);
	return op ? op : op_find(full);
}

static int slot_of(const Schema *s, const char *name, uint32_t len)
{
	for (uint32_t k = 0; k < s->narg; k++)
		if (strlen(s->arg[k].name) == len && memcmp(s->arg[k].name, name, len) == 0)
			return (int)k;
	return -1;
}

/* Whether a user's rule may not call the operator: it has no operands, or is how graphs are held
 * together. */
static bool is_structure(Op op)
{
	return op == OP_input || op == OP_constant || op == OP_tuple || op == OP_call ||
	       op == OP_to_size;
}

static Val call(Eval *e, const char *name, uint32_t len)
{
	Val slot[MAX_ARGS] = {{0}}, made;
	bool given[MAX_ARGS] = {false};
	const UserOp *user = e->user ? expand_user_find(e, name, len) : NULL;
	Op op = user ? OP_none : find_op(name, len);
	uint32_t n = 0;
	if (!user && (!op || (e->user && is_structure(op))))
		return fail(e, "no such op");
	const Schema *s = user ? &user->schema : op_schema(op);
	for (bool more = !scan_accept(&e->p, ")"); more && !e->err;
	     more = !scan_accept(&e->p, ")")) {
		const char *key;
		uint32_t klen;
		if (n && !scan_accept(&e->p, ","))
			return fail(e, "expected \",\" or \")\"");
		int at = name_and_equals(e, &key, &klen) ? slot_of(s, key, klen) : (int)n;
		if (at < 0 || at >= (int)s->narg)
			return fail(e, "the op has no such argument");
		slot[at] = expression(e);
		given[at] = true;
		n++;
	}
	for (uint32_t k = 0; k < s->narg && e->user && !e->err; k++)
		if (!given[k] && !s->arg[k].has_default && !s->arg[k].optional)
			return fail(e, "an argument of the op is missing");
	if (e->err)
		return (Val){VAL_none};
	if (!user)
		return op_is_scalar(op) ? scalar_call(e, op, slot, n) : node_call(e, op, slot);
	const char *err = expand_user_call(e, user, slot, &made);
	return err ? fail(e, err) : made;
}

/* ---- expressions ---- */

static Val number(Eval *e)
{
	size_t n = strspn(e->p, "0123456789");
	char *end;
	if (strchr(".eE", e->p[n]) && e->p[n]) {
		double f = strtod(e->p, &end);
		e->p = end;
		return e->b ? val_attr(attr_float(f)) : val_any();
	}
	int64_t v = strtoll(e->p, &end, 10);
	e->p = end;
	return e->b ? val_attr(attr_int(e->b->g->ir, v)) : val_any();
}

static Val constant_name(Eval *e, const char *s, uint32_t n)
{
	static const struct {
		const char *name;
		AttrKind kind;
		double value;
	} names[] = {{"true", ATTR_bool, 1},
		     {"false", ATTR_bool, 0},
		     {"inf", ATTR_float, INFINITY},
		     {"nan", ATTR_float, NAN}};
	if (n == 4 && memcmp(s, "none", 4) == 0)
		return (Val){VAL_none};
	for (size_t k = 0; k < sizeof names / sizeof *names; k++)
		if (strlen(names[k].name) == n && memcmp(names[k].name, s, n) == 0)
			return val_attr(names[k].kind == ATTR_bool ? attr_bool(names[k].value != 0)
								   : attr_float(names[k].value));
	DType d = dtype_parse(s, n);
	return d ? val_attr(attr_dtype(d)) : fail(e, "unknown name");
}

static Val name(Eval *e)
{
	const char *s = e->p;
	uint32_t n = name_length(s);
	e->p += n;
	if (scan_accept(&e->p, "("))
		return judged(e, s, call(e, s, n));
	for (uint32_t k = e->nlet; k-- > 0;)
		if (e->let[k].len == n && memcmp(e->let[k].name, s, n) == 0)
			return e->let[k].val;
	return constant_name(e, s, n);
}

/* Evaluates a list: of tensors (or none, beside tensors) or of integers. */
static Val list(Eval *e)
{
	Arena *a = e->b ? e->b->g->ir->ctx->scratch : NULL;
	Node nodes[MAX_CALL];
	Sym ints[MAX_CALL];
	Span item[MAX_CALL];
	uint32_t n = 0, nnode = 0;
	for (bool more = !scan_accept(&e->p, "]"); more && !e->err;
	     more = !scan_accept(&e->p, "]")) {
		if (n && !scan_accept(&e->p, ","))
			return fail(e, "expected \",\" or \"]\"");
		if (n == MAX_CALL)
			return fail(e, "list too long");
		scan_blanks(&e->p);
		const char *from = e->p;
		Val v = expression(e);
		item[n] = span(e, from);
		if (v.kind == VAL_node || v.kind == VAL_none)
			nodes[nnode++] = v.node;
		else if (v.kind == VAL_attr && v.attr.kind == ATTR_int)
			ints[n] = v.attr.s;
		else if (v.kind != VAL_any)
			return fail(e, "expected tensors or integers in a list");
		n++;
	}
	if (e->item)
		memcpy(e->item, item, n * sizeof *item);
	if (!a)
		return (Val){.kind = VAL_any, .n = n};
	if (nnode == 0)
		return val_attr(attr_ints(arena_dup(a, ints, n * sizeof *ints), n));
	if (nnode != n)
		return fail(e, "expected tensors only in a list");
	Val v = {.kind = VAL_nodes, .n = n};
	v.nodes = arena_dup(a, nodes, n * sizeof *nodes);
	return v;
}

static Val text(Eval *e)
{
	size_t n = strcspn(e->p, "\"");
	const char *s = e->p;
	if (!s[n])
		return fail(e, "expected \"\\\"\"");
	e->p += n + 1;
	if (!e->b)
		return val_any();
	Ir *ir = e->b->g->ir;
	return val_attr(attr_str(ir, arena_strndup(ir->ctx->scratch, s, n)));
}

static Val unary(Eval *e)
{
	scan_blanks(&e->p);
	if (e->err || e->depth > MAX_DEPTH)
		return fail(e, "too deep");
	const char *from = e->p;
	if (scan_accept(&e->p, "-")) {
		e->depth++;
		Val v = unary(e);
		e->depth--;
		return e->err ? v : judged(e, from, scalar_call(e, OP_neg, &v, 1));
	}
	if (scan_accept(&e->p, "(")) {
		Val v = expression(e);
		return scan_accept(&e->p, ")") ? v : fail(e, "expected \")\"");
	}
	if (scan_accept(&e->p, "["))
		return list(e);
	if (scan_accept(&e->p, "\""))
		return text(e);
	if (scan_is_digit(*e->p) || (*e->p == '.' && scan_is_digit(e->p[1])))
		return number(e);
	return is_letter(*e->p) ? name(e) : fail(e, "expected an expression");
}

static bool operand(void *reader, void *value)
{
	Eval *e = reader;
	*(Val *)value = unary(e);
	return !e->err;
}

static bool join(void *reader, int op, const char *from, void *left, const void *right)
{
	Eval *e = reader;
	Val *x = left;
	*x = judged(e, from, scalar_call(e, (Op)op, (Val[]){*x, *(const Val *)right}, 2));
	return !e->err;
}

static bool sum(Eval *e, Val *out)
{
	static const ScanInfix infix[] = {
		{"*", 2, OP_mul}, {"/", 2, OP_div}, {"+", 1, OP_add}, {"-", 1, OP_sub}, {NULL}};
	static const ScanGrammar sums = {infix, sizeof(Val), operand, join};
	return scan_expression(&sums, &e->p, e, out);
}

static Val expression(Eval *e)
{
	static const ScanInfix infix[] = {{"<=", 1, OP_le},
					  {">=", 1, OP_ge},
					  {"==", 1, OP_eq},
					  {"!=", 1, OP_ne},
					  {"<", 1, OP_lt},
					  {">", 1, OP_gt},
					  {NULL}};
	Val x = {VAL_none}, y;
	if (e->depth++ > MAX_DEPTH)
		return fail(e, "too deep");
	scan_blanks(&e->p);
	const char *from = e->p;
	const ScanInfix *op = sum(e, &x) ? scan_infix(infix, &e->p) : NULL;
	if (op && sum(e, &y))
		join(e, op->op, from, &x, &y);
	e->depth--;
	return x;
}

static void bindings(Eval *e)
{
	const char *key;
	uint32_t len, first = e->nlet;
	while (!e->err && name_and_equals(e, &key, &len)) {
		Val v = expression(e);
		if (e->nlet == first + MAX_LETS) {
			fail(e, "too many bindings");
			return;
		}
		e->let[e->nlet++] = (Binding){key, len, v};
		if (!scan_accept(&e->p, ";"))
			fail(e, "expected \";\"");
	}
}

static Val ended(Eval *e, Val v)
{
	scan_blanks(&e->p);
	return *e->p ? fail(e, "expected the end") : v;
}

Val expand_program(Eval *e)
{
	bindings(e);
	return ended(e, expression(e));
}

/* Whether the expression at e->p is one call of that name, with which it ends; then moves behind
 * the bracket. */
static bool only_call(Eval *e, const char *callee)
{
	const char *p = e->p;
	bool found = scan_accept(&e->p, callee) && scan_accept(&e->p, "(");
	const char *args = e->p, *q = args;
	for (uint32_t open = 1; found && open && *q; q++)
		open += *q == '(' ? 1u : *q == ')' ? -1u : 0;
	q += strspn(q, " \t\n");
	bool only = found && (!*q || *q == ')' || *q == ',');
	e->p = only ? args : p;
	return only;
}

static Val scaled(Eval *e, Val by)
{
	double factor = 0;
	bool known = true;
	if (only_call(e, "select")) {
		Val x[3] = {expression(e)};
		for (uint32_t k = 1; k < 3 && !e->err; k++)
			x[k] = scan_accept(&e->p, ",") ? scaled(e, by) : fail(e, "expected \",\"");
		if (!e->err && !scan_accept(&e->p, ")"))
			return fail(e, "expected \")\"");
		if (e->err || (x[1].kind == VAL_none && x[2].kind == VAL_none))
			return x[1];
		for (uint32_t k = 1; k < 3; k++)
			x[k] = x[k].kind == VAL_none ? val_attr(attr_float(0)) : x[k];
		return scalar_call(e, OP_select, x, 3);
	}
	Val x[2] = {expression(e), by};
	if (e->err || !e->b)
		return x[0];
	if (is_weak(&x[0]))
		factor = weak_value(e, &x[0], &known);
	if (is_weak(&x[0]) && known && factor == 0)
		return (Val){VAL_none};
	if (is_weak(&x[0]) && known && (factor == 1 || factor == -1))
		return factor == 1 ? by : scalar_call(e, OP_neg, &by, 1);
	return scalar_call(e, OP_mul, x, 2);
}

Val expand_scaled(Eval *e, Val by)
{
	bindings(e);
	return e->err ? (Val){VAL_none} : ended(e, scaled(e, by));
}

/* ---- arguments ---- */

/* Whether this Scalar takes part in promotion. Those with a default (alpha=1, beta=1) do not. */
static bool scalar_promotes(const Arg *a)
{
	return a->kind == ARG_scalar && (!a->has_default || strcmp(a->text, "None") == 0);
}

void expand_let(Eval *e, const char *key, Val v)
{
	e->let[e->nlet++] = (Binding){key, (uint32_t)strlen(key), v};
}

void expand_bind(Eval *e, Op op, const Node *in, uint32_t nin, AttrId id)
{
	const Schema *s = op_schema(op);
	uint32_t at = 0;
	for (uint32_t k = 0; k < s->narg; k++) {
		const Arg *arg = &s->arg[k];
		Val v = {.kind = e->b ? VAL_none : VAL_any};
		const Attr *a = e->b ? ir_attr(e->b->g->ir, id, k) : NULL;
		if (e->b && arg->kind == ARG_tensor) {
			Node x = at < nin ? in[at] : (Node){0};
			at++;
			v = x.i ? val_node(x) : v;
		} else if (e->b && arg->kind == ARG_tensors && a->kind == ATTR_int) {
			uint32_t n = (uint32_t)sym_const_or(b_syms(e->b), a->s, 0);
			v = (Val){.kind = VAL_nodes, .n = n, .nodes = in + at};
			at += n;
		} else if (e->b && a->kind != ATTR_none) {
			v = val_attr(*a);
		}
		expand_let(e, arg->name, v);
	}
}

/* Converts the tensor arguments to the op's common dtype. */
static void promote_arguments(Eval *e, Op op)
{
	const OpInfo *info = op_info(op);
	const Schema *s = op_schema(op);
	Val part[MAX_ARGS] = {{0}};
	if (info->promote == PROMOTE_NONE)
		return;
	for (uint32_t k = 0; k < s->narg; k++)
		if (s->arg[k].kind == ARG_tensor || scalar_promotes(&s->arg[k]))
			part[k] = e->let[k].val;
	DType d = promote_apply(info->promote, call_dtype(e, part, s->narg));
	for (uint32_t k = 0; k < s->narg; k++)
		if (e->let[k].val.kind == VAL_node)
			e->let[k].val.node = b_convert(e->b, e->let[k].val.node, d);
}

static Node expand_text(Build *b, Op op, const Node *in, uint32_t nin, AttrId id)
{
	Eval e = {.b = b, .p = op_info(op)->expand};
	uint32_t errors = b->g->ir->ctx->nerror;
	expand_bind(&e, op, in, nin, id);
	promote_arguments(&e, op);
	Val v = expand_program(&e);
	if (e.err && errors == b->g->ir->ctx->nerror)
		ctx_bug(b->g->ir->ctx, "expansion of %s: %s at \"%.32s\"", op_name(op), e.err,
			e.errp);
	if (e.err || v.kind == VAL_none)
		return (Node){0};
	if (v.kind == VAL_nodes)
		return b_tuple(b, v.nodes, v.n);
	Node y = expand_operand(&e, &v, is_weak(&v) ? attr_weak_dtype(&v.attr) : DT_none);
	return op_info(op)->promote == PROMOTE_BOOL ? b_convert(b, y, DT_bool) : y;
}

static Node built(Build *b, Node n)
{
	const OpInfo *info = op_info(node_op(b->g, n));
	return info->build ? info->build(b, n) : info->build_as.f(b, n, info->build_as.how);
}

static Node expand(Build *b, Op op, const Node *in, uint32_t nin, AttrId id)
{
	const OpInfo *info = op_info(op);
	Build inner = *b;
	inner.where = b->where ? b->where : op_name(op);
	if (info->expand)
		return expand_text(&inner, op, in, nin, id);
	if (!op_builds(info))
		return b_error(b, "%s: has no expansion", op_name(op));
	inner.before = graph_add(b->g, b->before, op, in, nin, id, (TypeId){0}, b->loc);
	Node y = built(&inner, inner.before);
	graph_erase(b->g, inner.before);
	return y;
}

/* Expands a call, and keeps its first error only: helpers of expansions go on after an error,
 * with what may be wrong because of it. */
Node ops_expand(Build *b, Op op, const Node *in, uint32_t nin, AttrId id)
{
	CtxMark mark = ctx_mark(b->g->ir->ctx);
	Node y = expand(b, op, in, nin, id);
	return ctx_first_only(b->g->ir->ctx, mark) ? y : (Node){0};
}

static Node expand_node(Build *b, Node n)
{
	const NodeData d = *node_data(b->g, n);
	if (!op_info(d.op)->expand && op_builds(op_info(d.op)))
		return built(b, n);
	Node *in = ARENA_ARRAY(b->g->ir->ctx->scratch, Node, d.nin);
	for (uint32_t k = 0; k < d.nin; k++)
		in[k] = node_in(b->g, n, k);
	return expand(b, d.op, in, d.nin, d.attr);
}

/* Replaces the expansion y, which stands between prev and b->before, by one in f32. */
static Node expand_again(Build *b, Node n, Node prev, Node y)
{
	TypeId type = node_type_id(b->g, y);
	for (Node x = node_prev(b->g, b->before), before; x.i != prev.i; x = before) {
		before = node_prev(b->g, x);
		graph_erase(b->g, x);
	}
	Node wide = expand_widen(b, n, type);
	y = expand_narrow(b, expand_node(b, wide), type);
	graph_erase(b->g, wide);
	return y;
}

Node ops_expand_node(Build *b, Node n)
{
	Build inner = *b;
	inner.where = b->where ? b->where : node_near(b->g, n);
	inner.loc = node_data(b->g, n)->loc.i ? node_data(b->g, n)->loc : b->loc;
	CtxMark mark = ctx_mark(b->g->ir->ctx);
	Node prev = node_prev(b->g, b->before);
	Node y = expand_node(&inner, n);
	if (!ctx_first_only(b->g->ir->ctx, mark))
		return (Node){0};
	return expand_rounds_often(&inner, n, prev, y) ? expand_again(&inner, n, prev, y) : y;
}

/* Checks one text with the names that it may use. Returns NULL or what is wrong. */
static const char *check_text(Op op, const char *text, bool result)
{
	static const char *const names[] = {"y", "y0", "y1", "y2", "g", "g0", "g1", "g2"};
	char tangent[MAX_ARGS][64];
	const Schema *s = op_schema(op);
	Eval e = {.p = text};
	expand_bind(&e, op, NULL, 0, (AttrId){0});
	for (size_t k = 0; result && k < sizeof names / sizeof *names; k++)
		expand_let(&e, names[k], val_any());
	for (uint32_t k = 0; result && k < s->narg; k++) {
		snprintf(tangent[k], sizeof tangent[k], "t_%s", s->arg[k].name);
		expand_let(&e, tangent[k], val_any());
	}
	expand_program(&e);
	return e.err;
}

const char *op_expand_check(Op op)
{
	const OpInfo *info = op_info(op);
	const char *err = info->expand ? check_text(op, info->expand, false) : NULL;
	for (uint32_t k = 0; k < 4 && !err && op_kind(op) == OP_COMPOSITE; k++)
		err = info->deriv[k] ? check_text(op, info->deriv[k], true) : NULL;
	if (!err && info->vjp)
		err = check_text(op, info->vjp, true);
	return !err && info->jvp ? check_text(op, info->jvp, true) : err;
}
