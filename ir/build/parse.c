/* Graphs from their text form, the inverse of print.c. Reads any text without harm: bounded depth,
 * checked integers, and every operand, attribute and type checked against the op's schema. */
#include <string.h>

#include "ir/build/build.h"
#include "ir/build/parse_priv.h"
#include "ir/build/text.h"

/* One graph being read; names are local to it. */
typedef struct {
	Parser *r;
	Graph *g;
	Intern names;
	ARRAY(Node) node; /* by name id */
} ParsedGraph;

static bool parse_graph(Parser *, Graph **);

/* ---- names ---- */

/* Parses "%name", a new one or an operand's. */
static const char *value_name(ParsedGraph *s)
{
	if (!parse_expect(s->r, "%"))
		return NULL;
	const char *name = parse_name(s->r);
	bool digit = *name >= '0' && *name <= '9';
	if (*name && (!digit || !name[strspn(name, "0123456789")]))
		return name;
	parse_fail(s->r, "expected the name of a value");
	return NULL;
}

static bool define(ParsedGraph *s, const char *name, Node n)
{
	bool fresh;
	uint32_t id = intern(&s->names, name, (uint32_t)strlen(name), &fresh);
	if (!fresh)
		return parse_fail(s->r, "expected a new name, %%%s is defined already", name);
	array_push(s->r->ir->ctx->scratch, &s->node, n);
	(void)id;
	if (*name < '0' || *name > '9')
		graph_set_name(s->g, n, name);
	return true;
}

static bool operand(ParsedGraph *s, Node *out)
{
	*out = (Node){0};
	if (parse_accept(s->r, "none"))
		return true;
	const char *name = value_name(s);
	TRY(name);
	uint32_t id = intern_find(&s->names, name, (uint32_t)strlen(name));
	if (!id)
		return parse_fail(s->r, "expected a value defined before, got %%%s", name);
	*out = s->node.data[id - 1];
	return node_type_id(s->g, *out).i || parse_fail(s->r, "%%%s has no value", name);
}

/* ---- statements ---- */

/* The arguments of one node while they are read. */
typedef struct {
	Op op;
	const Schema *schema;
	Attr attr[MAX_ARGS];
	bool given[MAX_ARGS];
	uint32_t slot; /* the next positional argument */
	ARRAY(Node) in;
} ParsedCall;

/* Moves to the next positional argument of that kind. The arguments before are absent optional
 * tensors. */
static bool advance(ParsedGraph *s, ParsedCall *c, ArgKind kind)
{
	for (; c->slot < c->schema->narg; c->slot++) {
		const Arg *arg = &c->schema->arg[c->slot];
		if (arg->kind == kind)
			return true;
		if (arg->kind != ARG_tensor && arg->kind != ARG_tensors)
			continue;
		if (arg->kind == ARG_tensors || !arg->optional)
			return parse_fail(s->r, "expected operand \"%s\" of %s", arg->name,
					  c->schema->name);
		array_push(s->r->ir->ctx->scratch, &c->in, (Node){0});
	}
	return parse_fail(s->r, "expected no more operands of %s", c->schema->name);
}

static bool positional(ParsedGraph *s, ParsedCall *c)
{
	Arena *a = s->r->ir->ctx->scratch;
	Node n;
	bool list = parse_accept(s->r, "[");
	TRY(advance(s, c, list ? ARG_tensors : ARG_tensor));
	const Arg *arg = &c->schema->arg[c->slot];
	uint32_t first = c->in.n;
	for (bool more = !list || !parse_accept(s->r, "]"); more;
	     more = list && !parse_accept(s->r, "]")) {
		TRY(c->in.n == first || parse_expect(s->r, ","));
		TRY(operand(s, &n));
		if (!n.i && !arg->optional)
			return parse_fail(s->r, "expected operand \"%s\" of %s", arg->name,
					  c->schema->name);
		if (c->in.n >= UINT16_MAX)
			return parse_fail(s->r, "expected fewer operands");
		array_push(a, &c->in, n);
	}
	if (list)
		c->attr[c->slot] = attr_int(s->r->ir, c->in.n - first);
	c->slot++;
	return true;
}

static bool attribute(ParsedGraph *s, ParsedCall *c)
{
	const char *start = s->r->p, *name = parse_word(s->r);
	int k = name ? op_arg_index(c->op, name) : -1;
	const Arg *arg = k < 0 ? NULL : &c->schema->arg[k];
	if (!arg || arg->kind == ARG_tensor || arg->kind == ARG_tensors || c->given[k]) {
		s->r->p = start;
		return parse_fail(s->r, "expected an operand or a new attribute of %s",
				  c->schema->name);
	}
	c->given[k] = true;
	TRY(parse_expect(s->r, "="));
	if (arg->kind == ARG_graph) {
		c->attr[k] = attr_graph(NULL);
		return parse_graph(s->r, &c->attr[k].graph);
	}
	return parse_attr(s->r, arg, &c->attr[k]);
}

/* Adds defaults and absent operands, then checks that everything fits the schema. */
static bool complete(ParsedGraph *s, ParsedCall *c)
{
	Ir *ir = s->r->ir;
	for (uint32_t k = 0; k < c->schema->narg; k++) {
		const Arg *arg = &c->schema->arg[k];
		if (arg->kind == ARG_tensor && k >= c->slot) {
			if (!arg->optional)
				return parse_fail(s->r, "expected operand \"%s\" of %s", arg->name,
						  c->schema->name);
			array_push(ir->ctx->scratch, &c->in, (Node){0});
		}
		if (arg->kind == ARG_tensors && c->attr[k].kind == ATTR_none)
			c->attr[k] = attr_int(ir, 0);
		if (arg->kind != ARG_tensor && arg->kind != ARG_tensors && !c->given[k])
			c->attr[k] = op_default(ir, arg);
		if (!op_attr_fits(ir, arg, &c->attr[k]))
			return parse_fail(s->r, "expected attribute \"%s\" of %s", arg->name,
					  c->schema->name);
	}
	return true;
}

static bool arguments(ParsedGraph *s, ParsedCall *c)
{
	bool first = true;
	TRY(parse_expect(s->r, "("));
	for (bool more = !parse_accept(s->r, ")"); more; more = !parse_accept(s->r, ")")) {
		TRY(first || parse_expect(s->r, ","));
		first = false;
		bool is_operand =
			parse_at(s->r, "%") || parse_at(s->r, "[") || parse_at(s->r, "none");
		TRY(is_operand ? positional(s, c) : attribute(s, c));
	}
	return complete(s, c);
}

/* Checks, for inference, that operands are values, and none only where the schema allows that. */
static bool have_values(ParsedGraph *s, const ParsedCall *c)
{
	const SymTab *syms = s->r->ir->syms;
	for (uint32_t k = 0, at = 0; k < c->schema->narg; k++) {
		const Arg *arg = &c->schema->arg[k];
		int64_t n = arg->kind == ARG_tensors ? sym_const_or(syms, c->attr[k].s, 0)
						     : arg->kind == ARG_tensor;
		for (; n-- > 0 && at < c->in.n; at++) {
			Node in = c->in.data[at];
			if (in.i ? !node_type_id(s->g, in).i : !arg->optional)
				return parse_fail(s->r, "operand \"%s\" of %s has no value",
						  arg->name, c->schema->name);
		}
	}
	return true;
}

/* Sets *out to the type as written, or as inferred where none is written. */
static bool result_type(ParsedGraph *s, ParsedCall *c, AttrId attr, TypeId *out)
{
	*out = (TypeId){0};
	s->r->p += strspn(s->r->p, " \t"); /* not past a location */
	if (*s->r->p == ':')
		return parse_expect(s->r, ":") && parse_type(s->r, out);
	Ctx *ctx = s->r->ir->ctx;
	uint32_t errors = ctx->nerror;
	Build b = {.g = s->g, .where = parse_position(s->r)};
	TRY(have_values(s, c));
	*out = b_type(&b, c->op, c->in.data, c->in.n, attr);
	if (ctx->nerror != errors)
		return s->r->failed = true, false;
	return out->i || !c->schema->nresult || parse_fail(s->r, "expected \":\" and a type");
}

/* Parses the location between a statement and its end of line, if there is one. */
static LocId location(Parser *r)
{
	r->p += strspn(r->p, " \t");
	if (*r->p != ';')
		return (LocId){0};
	size_t n = strcspn(++r->p, "\n");
	LocId loc = ir_loc(r->ir, arena_strndup(r->ir->ctx->scratch, r->p, n));
	r->p += n;
	return loc;
}

static bool constant(ParsedGraph *s, Node *out)
{
	Parser *r = s->r;
	Arg arg = {.name = "value", .kind = ARG_const};
	Attr value;
	TypeId type;
	TRY(parse_attr(r, &arg, &value));
	if (value.kind != ATTR_const)
		return parse_fail(r, "expected a constant");
	TRY(parse_type(r, &type));
	const Const *c = ir_const_of(r->ir, value.c);
	if (type.i != ir_type_ints(r->ir, c->dtype, c->rank, c->dim).i)
		return parse_fail(r, "expected the type of constant #%u", value.c.i);
	if (parse_accept(r, "sha")) {
		TRY(parse_expect(r, "="));
		const char *have = parse_name(r);
		const char *want = arena_printf(r->ir->ctx->scratch, "%016llx",
						(unsigned long long)const_hash(r->ir, value.c));
		if (strcmp(have, want) != 0)
			return parse_fail(r, "expected sha=%s of constant #%u", want, value.c.i);
	}
	AttrId attr = ir_attrs(r->ir, 1, &value);
	LocId loc = location(r);
	*out = graph_add(s->g, (Node){0}, OP_constant, NULL, 0, attr, type, loc);
	return true;
}

static bool operation(ParsedGraph *s, Node *out)
{
	Parser *r = s->r;
	const char *start = r->p, *name = parse_word(r);
	if (name && strcmp(name, "const") == 0)
		return constant(s, out);
	ParsedCall *c = ARENA_NEW(r->ir->ctx->scratch, ParsedCall);
	c->op = name ? op_find(name) : OP_none;
	if (c->op == OP_none || c->op == OP_input) {
		r->p = start;
		parse_fail(r, "expected an operation%s%s%s", name ? ", got " : "", name ? name : "",
			   name ? op_hint(r->ir->ctx->scratch, name) : "");
		return ctx_kind(r->ir->ctx, REFUSAL_OPERATOR);
	}
	c->schema = op_schema(c->op);
	TRY(arguments(s, c));
	AttrId attr = ir_attrs(r->ir, c->schema->narg, c->attr);
	TypeId type;
	TRY(result_type(s, c, attr, &type));
	LocId loc = location(r);
	*out = graph_add(s->g, (Node){0}, c->op, c->in.data, c->in.n, attr, type, loc);
	return true;
}

static bool statement(ParsedGraph *s)
{
	const char *name = NULL;
	Node n;
	if (parse_at(s->r, "%")) {
		name = value_name(s);
		TRY(name && parse_expect(s->r, "="));
	}
	parse_skip(s->r);
	TRY(operation(s, &n));
	return !name || define(s, name, n);
}

/* ---- header and return ---- */

static bool input(ParsedGraph *s)
{
	Parser *r = s->r;
	const char *name = value_name(s), *label = name;
	InputKind kind = INPUT_USER;
	Attr init = attr_none();
	TypeId type;
	TRY(name && parse_expect(r, ":") && parse_type(r, &type));
	if (ir_type_of(r->ir, type)->dtype == DT_none)
		return parse_fail(r, "expected a tensor as input");
	if (parse_accept(r, "param"))
		kind = INPUT_PARAM;
	else if (parse_accept(r, "buffer"))
		kind = INPUT_BUFFER;
	if (kind != INPUT_USER && parse_at(r, "#"))
		TRY(parse_attr(r, &(Arg){.name = "init", .kind = ARG_const}, &init));
	if (parse_at(r, "\""))
		TRY(parse_string(r, &label));
	Node n = graph_add_input(s->g, "", kind, type);
	s->g->input.data[s->g->input.n - 1].name = intern_str(&r->ir->strings, label);
	s->g->input.data[s->g->input.n - 1].init = init.kind == ATTR_const ? init.c : (ConstId){0};
	return define(s, name, n);
}

static bool target(ParsedGraph *s, int32_t *out)
{
	Parser *r = s->r;
	const char *name;
	int64_t k;
	if (parse_at(r, "\"")) {
		TRY(parse_string(r, &name));
		for (*out = 0; *out < (int32_t)s->g->input.n; ++*out)
			if (strcmp(s->g->input.data[*out].name, name) == 0)
				return true;
		return parse_fail(r, "expected an input, got \"%s\"", name);
	}
	TRY(parse_i64(r, &k));
	*out = (int32_t)k;
	return (k >= 0 && k < (int64_t)s->g->input.n) || parse_fail(r, "expected an input");
}

static bool output(ParsedGraph *s)
{
	Node n;
	int32_t writes = -1;
	TRY(operand(s, &n));
	const char *name = n.i ? graph_name(s->g, n) : "";
	if (parse_at(s->r, "\""))
		TRY(parse_string(s->r, &name));
	if (parse_accept(s->r, "->"))
		TRY(target(s, &writes));
	graph_add_output(s->g, name, n, writes);
	return true;
}

static bool outputs(ParsedGraph *s)
{
	if (parse_at(s->r, "}"))
		return true;
	do
		TRY(output(s));
	while (parse_accept(s->r, ","));
	return true;
}

typedef ARRAY(TypeId) Types;

static bool results(Parser *r, Types *out)
{
	do {
		TypeId t = {0};
		TRY(parse_accept(r, "none") || parse_type(r, &t));
		array_push(r->ir->ctx->scratch, out, t);
	} while (parse_accept(r, ","));
	return true;
}

static bool results_match(ParsedGraph *s, const Types *t)
{
	bool same = t->n == s->g->output.n;
	for (uint32_t k = 0; same && k < t->n; k++) {
		Node n = s->g->output.data[k].node;
		same = t->data[k].i == (n.i ? node_type_id(s->g, n).i : 0);
	}
	return same || parse_fail(s->r, "expected outputs of the types after \"->\"");
}

/* Parses the ranges, which stand at the end of the header, ahead: the types before need them. */
static bool ranges_ahead(Parser *r)
{
	const char *start = r->p;
	for (parse_skip(r); *r->p && *r->p != '{' && !parse_at(r, "where"); parse_skip(r)) {
		const char *ignored;
		if (*r->p == '"') {
			TRY(parse_string(r, &ignored));
			continue;
		}
		r->p += *r->p == '%'; /* "%where" is a name */
		if (parse_word_char(*r->p))
			parse_name(r);
		else if (*r->p && *r->p != '%' && *r->p != '"')
			r->p++;
	}
	if (parse_accept(r, "where"))
		TRY(parse_where(r, NULL));
	r->p = start;
	return !r->failed;
}

static bool header(ParsedGraph *s, Types *types)
{
	Parser *r = s->r;
	TRY(parse_expect(r, "("));
	TRY(ranges_ahead(r));
	for (bool more = !parse_accept(r, ")"); more; more = !parse_accept(r, ")")) {
		TRY(!s->g->input.n || parse_expect(r, ","));
		TRY(input(s));
	}
	if (parse_accept(r, "->"))
		TRY(results(r, types));
	if (parse_accept(r, "where"))
		TRY(parse_where(r, s->g));
	r->in_body = true;
	return parse_expect(r, "{");
}

static bool body(ParsedGraph *s)
{
	Types types = {0};
	TRY(header(s, &types));
	while (!parse_accept(s->r, "return"))
		TRY(statement(s));
	TRY(outputs(s));
	TRY(!types.n || results_match(s, &types));
	return parse_expect(s->r, "}");
}

static bool parse_graph(Parser *r, Graph **out)
{
	const char *name;
	TRY(parse_expect(r, "graph") && parse_expect(r, "@"));
	if (parse_at(r, "\""))
		TRY(parse_string(r, &name));
	else
		name = parse_name(r);
	if (++r->depth > PARSE_DEPTH)
		return parse_fail(r, "expected fewer nested graphs");
	ParsedGraph s = {.r = r, .g = graph_new(r->ir, name)};
	intern_init(&s.names, r->ir->ctx->scratch);
	TRY(body(&s));
	r->depth--;
	*out = s.g;
	return true;
}

TypeId type_parse(const Graph *g, const char *text, const char *name)
{
	graph_syms(g);
	Parser r = {.ir = g->ir, .text = text, .p = text, .name = name};
	TypeId type;
	if (!parse_type(&r, &type))
		return (TypeId){0};
	parse_skip(&r);
	if (*r.p)
		return parse_fail(&r, "expected the end"), (TypeId){0};
	return type;
}

Graph *graph_parse(Ir *ir, const char *text, const char *name)
{
	Parser r = {.ir = ir, .text = text, .p = text, .name = name};
	Graph *g = NULL;
	if (!parse_graph(&r, &g))
		return NULL;
	parse_skip(&r);
	if (*r.p)
		return parse_fail(&r, "expected the end"), NULL;
	return g;
}

Graph *graph_parse_beside(const Graph *g, const char *text, const char *name)
{
	graph_syms(g);
	return graph_parse(g->ir, text, name);
}
