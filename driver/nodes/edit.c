/* Nodes of graphs, for users: changes. A change keeps types; what else may become wrong is found by
 * graph_verify, before anybody takes the graph. */
#include <string.h>

#include "driver/nodes/nodes.h"
#include "ir/build/text.h"
#include "ir/build/state.h"
#include "ops/user/userop.h"
#include "passes/random.h"

static Build build_at(const NodeStep *s, Node before, Node line)
{
	return (Build){.g = s->g,
		       .before = before,
		       .loc = node_data(s->g, line)->loc,
		       .where = arena_printf(s->w->ctx->scratch, "%s: node %s", s->function,
					     step_name(s, line))};
}

static const char *type_of(const NodeStep *s, Node n)
{
	TypeId t = node_type_id(s->g, n);
	return t.i ? arena_strdup(s->w->ctx->scratch, type_str(s->g->ir, t)) : "nothing";
}

/* ---- insert ---- */

/* Returns the node in front of which new nodes stand: behind the inputs and state, which come
 * first. */
static Node place(const NodeStep *s)
{
	Node before = s->after ? node_next(s->g, s->n) : s->n;
	return before.i && node_op(s->g, before) == OP_input ? graph_behind_inputs(s->g) : before;
}

static bool insert(NodeStep *s)
{
	TRY(step_node(s) && given_text(s->w, s->function, "the operator", s->text));
	TRY(given_list(s->w, s->function, "arguments", s->attr, s->k));
	if (s->k > MAX_ARGS)
		return step_error(s, "%u arguments, more than any operator has", s->k);
	TraceArg *arg = arena_calloc(s->w->ctx->scratch, s->k + 1, sizeof *arg);
	uint32_t guards = s->g->guard.n;
	Node at = s->n;
	Build b = build_at(s, place(s), at);
	s->n = (Node){0};
	TRY(attr_take(s, arg));
	Node made = trace_call(&b, s->text, arg, s->k);
	if (!made.i)
		s->g->guard.n = guards;
	else
		step_changed(s);
	s->found = step_give(s, made);
	return made.i;
}

WeftNode weft_node_insert_before(Weft *w, WeftNode at, const char *op, const WeftAttr *attr,
				 uint32_t n)
{
	NodeStep s = {.w = w,
		      .function = "weft_node_insert_before",
		      .node = at,
		      .text = op,
		      .attr = attr,
		      .k = n};
	return step(&s, insert) ? s.found : (WeftNode){NULL, 0};
}

WeftNode weft_node_insert_after(Weft *w, WeftNode at, const char *op, const WeftAttr *attr,
				uint32_t n)
{
	NodeStep s = {.w = w,
		      .function = "weft_node_insert_after",
		      .node = at,
		      .text = op,
		      .attr = attr,
		      .k = n,
		      .after = true};
	return step(&s, insert) ? s.found : (WeftNode){NULL, 0};
}

static bool read_result(NodeStep *s)
{
	TRY(step_node(s));
	const Type *t = node_type_id(s->g, s->n).i ? node_type(s->g, s->n) : NULL;
	if (!t || t->dtype != DT_none || s->k >= t->n)
		return step_error(s, "node %s is %s, expected several results, %u among them",
				  step_name(s, s->n), type_of(s, s->n), s->k);
	Build b = build_at(s, node_next(s->g, s->n), s->n);
	s->found = step_give(s, b_get(&b, s->n, s->k));
	step_changed(s);
	return s->found.index;
}

WeftNode weft_node_result(Weft *w, WeftNode several, uint32_t k)
{
	NodeStep s = {.w = w, .function = "weft_node_result", .node = several, .k = k};
	return step(&s, read_result) ? s.found : (WeftNode){NULL, 0};
}

/* ---- sizes that depend on data ---- */

static bool used_elsewhere(const NodeStep *s, Sym var)
{
	for (Node n = s->g->first; n.i; n = node_next(s->g, n))
		if (n.i != s->n.i && node_uses(s->g, n, var))
			return true;
	return false;
}

static bool makes_a_size(const NodeStep *s)
{
	const SymTab *t = graph_syms(s->g);
	bool found = false,
	     may = node_has_data_size(s->g, s->n) || node_op(s->g, s->n) == OP_to_size;
	for (uint32_t k = 0; may && k < sym_nvars(t) && !found; k++) {
		Sym var = sym_var_at(t, k);
		found = sym_var_kind(t, var) == SYMVAR_UNBACKED && node_finds(s->g, s->n, var);
	}
	return found;
}

/* ---- replace ---- */

static bool is_same_type(const NodeStep *s, const char *what, Node by, Node old)
{
	return types_are_equal(s->g->ir, node_type_id(s->g, by), node_type_id(s->g, old), false) ||
	       step_error(s, "%s, node %s, is %s, expected %s as node %s", what, step_name(s, by),
			  type_of(s, by), type_of(s, old), step_name(s, old));
}

static bool replace(NodeStep *s)
{
	Node by;
	TRY(step_node(s) && step_value(s, "the new value", s->by, &by));
	if (by.i == s->n.i)
		return step_error(s, "node %s cannot replace itself", step_name(s, by));
	TRY(is_same_type(s, "the new value", by, s->n));
	graph_replace(s->g, s->n, by);
	for (uint32_t k = 0; k < node_nin(s->g, by); k++)
		if (node_in(s->g, by, k).i == by.i)
			graph_set_operand(s->g, by, k, s->n);
	step_changed(s);
	return true;
}

bool weft_node_replace(Weft *w, WeftNode old, WeftNode by)
{
	NodeStep s = {.w = w, .function = "weft_node_replace", .node = old, .by = by};
	return step(&s, replace);
}

/* Checks that a node that makes a size keeps the bound for it, which follows from the types of
 * operands and from attributes. */
static bool keeps_bound(const NodeStep *s, const Node *in, const Attr *attr)
{
	const Graph *g = s->g;
	for (uint32_t k = 0; k < node_nin(g, s->n); k++) {
		TypeId old =
			node_in(g, s->n, k).i ? node_type_id(g, node_in(g, s->n, k)) : (TypeId){0};
		TypeId by = in[k].i ? node_type_id(g, in[k]) : (TypeId){0};
		if (!types_are_equal(g->ir, by, old, false))
			return step_error(s,
					  "node %s makes a size that depends on data: operand %u "
					  "must keep its type",
					  step_name(s, s->n), k);
	}
	for (uint32_t k = 0; k < op_schema(node_op(g, s->n))->narg; k++)
		if (!attr_equal(&attr[k], ir_attr(g->ir, node_data(g, s->n)->attr, k)))
			return step_error(
				s, "node %s makes a size that depends on data: its attributes stay",
				step_name(s, s->n));
	return true;
}

/* Gives s->n other operands and attributes, if it keeps its type with them. */
static bool become(const NodeStep *s, const Node *in, uint32_t nin, const Attr *attr)
{
	Graph *g = s->g;
	Op op = node_op(g, s->n);
	bool makes = makes_a_size(s);
	TRY(!makes || keeps_bound(s, in, attr));
	uint32_t guards = g->guard.n;
	Build b = build_at(s, s->n, s->n);
	Node made = b_call(&b, op, in, nin, attr, op_schema(op)->narg);
	TRY(made.i);
	bool same = types_are_equal(g->ir, node_type_id(g, made), node_type_id(g, s->n), makes) &&
		    node_nin(g, made) == node_nin(g, s->n);
	if (!same)
		step_error(s, "node %s would be %s, expected %s as before", step_name(s, s->n),
			   type_of(s, made), type_of(s, s->n));
	for (uint32_t k = 0; same && k < node_nin(g, made); k++)
		graph_set_operand(g, s->n, k, node_in(g, made, k));
	if (same)
		graph_set_attrs(g, s->n, node_data(g, made)->attr);
	else
		g->guard.n = guards;
	graph_erase(g, made);
	if (same)
		step_changed(s);
	return same;
}

static bool is_call(const NodeStep *s)
{
	Op op = node_op(s->g, s->n);
	return (op != OP_input && op != OP_constant) ||
	       step_error(s, "node %s is no call of an operator", step_name(s, s->n));
}

static void parts_of(const NodeStep *s, Node **in, Attr **attr)
{
	uint32_t nin = node_nin(s->g, s->n), narg = op_schema(node_op(s->g, s->n))->narg;
	*in = ARENA_ARRAY(s->w->ctx->scratch, Node, nin);
	*attr = ARENA_ARRAY(s->w->ctx->scratch, Attr, narg);
	for (uint32_t k = 0; k < nin; k++)
		(*in)[k] = node_in(s->g, s->n, k);
	node_copy_attrs(s->g, s->n, *attr);
}

/* Returns the argument that operand k belongs to. */
static const Arg *arg_of_operand(const NodeStep *s, uint32_t k)
{
	const Schema *schema = op_schema(node_op(s->g, s->n));
	for (uint32_t a = 0; a < schema->narg; a++) {
		uint32_t first, n;
		if (schema->arg[a].kind != ARG_tensor && schema->arg[a].kind != ARG_tensors)
			continue;
		n = node_args(s->g, s->n, schema->arg[a].name, &first);
		if (k >= first && k < first + n)
			return &schema->arg[a];
	}
	return NULL;
}

static bool set_operand(NodeStep *s)
{
	Node *in, by = {0};
	Attr *attr;
	TRY(step_node(s) && is_call(s));
	const Arg *arg = s->k < node_nin(s->g, s->n) ? arg_of_operand(s, s->k) : NULL;
	if (!arg)
		return step_error(s, "node %s has %u operands, no operand %u", step_name(s, s->n),
				  node_nin(s->g, s->n), s->k);
	if (s->by.index)
		TRY(step_value(s, "the new operand", s->by, &by));
	else if (!arg->optional)
		return step_error(s, "operand %s of node %s is missing: no node", arg->name,
				  step_name(s, s->n));
	if (by.i == s->n.i)
		return step_error(s, "node %s cannot read itself", step_name(s, by));
	parts_of(s, &in, &attr);
	in[s->k] = by;
	return become(s, in, node_nin(s->g, s->n), attr);
}

bool weft_node_set_operand(Weft *w, WeftNode n, uint32_t k, WeftNode by)
{
	NodeStep s = {.w = w, .function = "weft_node_set_operand", .node = n, .k = k, .by = by};
	return step(&s, set_operand);
}

static bool put_operands(const NodeStep *s, const Arg *arg, const TraceArg *from, Node *in)
{
	uint32_t first, n = node_args(s->g, s->n, arg->name, &first);
	bool absent = !from->is_values && from->attr.kind == ATTR_none;
	bool list = arg->kind == ARG_tensors;
	if (absent && !list && arg->optional) {
		in[first] = (Node){0};
		return true;
	}
	if (!from->is_values || from->is_list != list)
		return step_error(s, "argument %s: expected %s", arg->name,
				  list ? "a list of nodes" : "one node");
	if (from->n != n)
		return step_error(s,
				  "argument %s: expected as many nodes as before, %u; insert a new "
				  "node for %u",
				  arg->name, n, from->n);
	for (uint32_t k = 0; k < n; k++) {
		if (!from->value[k].i && !arg->optional)
			return step_error(s, "operand %u of argument %s is missing: no node", k,
					  arg->name);
		if (from->value[k].i == s->n.i)
			return step_error(s, "node %s cannot read itself", step_name(s, s->n));
		in[first + k] = from->value[k];
	}
	return true;
}

static bool put_value(const NodeStep *s, const Arg *arg, const TraceArg *from, Attr *out)
{
	if (from->is_values)
		return step_error(s, "argument %s: expected no node", arg->name);
	if (arg->kind == ARG_graph || arg->kind == ARG_const)
		return step_error(s, "argument %s of node %s stays: change its nodes", arg->name,
				  step_name(s, s->n));
	*out = from->attr;
	if (arg->kind != ARG_dtype || out->kind != ATTR_str)
		return true;
	*out = attr_dtype(dtype_parse(from->attr.str, (uint32_t)strlen(from->attr.str)));
	return out->dtype != DT_none ||
	       step_error(s, "argument %s: there is no dtype %s", arg->name, from->attr.str);
}

/* Sets argument `at` of a call of the user's operator: an operand, or one of the scalars. */
static bool set_user(NodeStep *s, const UserOp *user, uint32_t at, const TraceArg *from)
{
	Node *in;
	Attr *attr, *value = ARENA_ARRAY(s->w->ctx->scratch, Attr, user->schema.narg);
	uint32_t operand = 0;
	parts_of(s, &in, &attr);
	for (uint32_t k = 0; k < user->schema.narg; k++) {
		const Arg *arg = &user->schema.arg[k];
		bool tensor = arg->kind == ARG_tensor;
		if (k == at && tensor && (!from->is_values || from->is_list))
			return step_error(s, "argument %s: expected one node", arg->name);
		if (k == at && tensor && from->value->i == s->n.i)
			return step_error(s, "node %s cannot read itself", step_name(s, s->n));
		if (k == at && tensor)
			in[operand] = *from->value;
		else if (k == at)
			TRY(put_value(s, arg, from, &value[k]));
		else if (!tensor)
			value[k] = userop_argument(s->g, s->n, user, k);
		operand += tensor;
	}
	const char *wrong = userop_attrs(s->g->ir, user, value, attr);
	if (wrong)
		return step_error(s, "argument %s: %s", user->schema.arg[at].name, wrong);
	return become(s, in, node_nin(s->g, s->n), attr);
}

static bool set_attr(NodeStep *s)
{
	Node *in;
	Attr *attr;
	TraceArg from = {0};
	TRY(step_node(s) && is_call(s) && given(s->w, s->function, "the argument", s->attr));
	TRY(given_text(s->w, s->function, "the name of the argument", s->attr->name));
	int k = step_arg_index(s, s->attr->name);
	if (k < 0)
		return step_error(s, "%s has no argument %s", step_schema(s)->name, s->attr->name);
	const UserOp *user = step_user(s);
	const Arg *arg = &step_schema(s)->arg[k];
	s->k = 1;
	TRY(attr_take(s, &from));
	if (user)
		return set_user(s, user, (uint32_t)k, &from);
	parts_of(s, &in, &attr);
	bool operand = arg->kind == ARG_tensor || arg->kind == ARG_tensors;
	TRY(operand ? put_operands(s, arg, &from, in) : put_value(s, arg, &from, &attr[k]));
	return become(s, in, node_nin(s->g, s->n), attr);
}

bool weft_node_set_attr(Weft *w, WeftNode n, const WeftAttr *a)
{
	NodeStep s = {.w = w, .function = "weft_node_set_attr", .node = n, .attr = a};
	return step(&s, set_attr);
}

/* ---- erase ---- */

static bool is_no_body(const NodeStep *s)
{
	return !s->graph->owner ||
	       step_error(s, "the graph is a body, whose inputs and outputs are those of its node");
}

static bool sizes_are_free(const NodeStep *s)
{
	const SymTab *t = graph_syms(s->g);
	if (!node_has_data_size(s->g, s->n) && node_op(s->g, s->n) != OP_to_size)
		return true;
	for (uint32_t k = 0; k < sym_nvars(t); k++) {
		Sym var = sym_var_at(t, k);
		if (sym_var_kind(t, var) == SYMVAR_UNBACKED && node_finds(s->g, s->n, var) &&
		    used_elsewhere(s, var))
			return step_error(s, "node %s makes the size %s, which another node has",
					  step_name(s, s->n), sym_name(t, var));
	}
	return true;
}

/* Whether the input is the only one that has this size. */
static bool gives_alone(const NodeStep *s, Sym var)
{
	const Graph *g = s->g;
	bool alone = type_uses(g->ir, node_type_id(g, s->n), var);
	for (uint32_t i = 0; alone && i < g->input.n; i++) {
		Node other = g->input.data[i].node;
		alone = other.i == s->n.i || !type_uses(g->ir, node_type_id(g, other), var);
	}
	return alone;
}

/* Removes what the graph requires of sizes that only this input has. Returns false after an error:
 * a node has one of them. */
static bool forget_sizes(const NodeStep *s)
{
	Graph *g = s->g;
	const SymTab *t = graph_syms(g);
	for (uint32_t k = 0; k < sym_nvars(t); k++) {
		Sym var = sym_var_at(t, k);
		if (gives_alone(s, var) && used_elsewhere(s, var))
			return step_error(
				s, "node %s says what the size %s is, which another node has",
				step_name(s, s->n), sym_name(t, var));
	}
	for (uint32_t k = 0; k < sym_nvars(t); k++) {
		Sym var = sym_var_at(t, k);
		uint32_t kept = 0;
		for (uint32_t i = 0; gives_alone(s, var) && i < g->guard.n; i++) {
			const GraphGuard guard = g->guard.data[i];
			if (!sym_uses(t, guard.a, var) && !sym_uses(t, guard.b, var))
				g->guard.data[kept++] = guard;
		}
		g->guard.n = gives_alone(s, var) ? kept : g->guard.n;
	}
	return true;
}

/* Sets *k to the number of the input that the node is. Returns false if it is none. */
static bool find_input(const NodeStep *s, uint32_t *k)
{
	for (*k = 0; *k < s->g->input.n; ++*k)
		if (s->g->input.data[*k].node.i == s->n.i)
			return true;
	return false;
}

/* Whether the node is an output, but for what is written to an input or state: that is removed with
 * the input. */
static bool is_output(const NodeStep *s)
{
	uint32_t k, count = 0;
	bool input = find_input(s, &k);
	for (uint32_t o = 0; o < s->g->output.n; o++) {
		const GraphOutput *out = &s->g->output.data[o];
		count += out->node.i == s->n.i && !(input && out->writes == (int32_t)k);
	}
	return count;
}

static bool erase_input(NodeStep *s, uint32_t k)
{
	TRY(is_no_body(s));
	if (s->g->output.n == 1 && graph_writer(s->g, k) == 0)
		return step_error(s, "what is written to node %s is all that the model does",
				  step_name(s, s->n));
	TRY(forget_sizes(s));
	graph_remove_input(s->g, k);
	step_changed(s);
	return true;
}

static bool erase(NodeStep *s)
{
	uint32_t input;
	TRY(step_node(s));
	if (is_output(s))
		return step_error(s, "node %s is an output", step_name(s, s->n));
	Use u = node_data(s->g, s->n)->first_use;
	if (u.i)
		return step_error(s, "node %s is read by node %s", step_name(s, s->n),
				  step_name(s, s->g->use.data[u.i].user));
	if (find_input(s, &input))
		return erase_input(s, input);
	TRY(sizes_are_free(s));
	graph_erase(s->g, s->n);
	step_changed(s);
	return true;
}

bool weft_node_erase(Weft *w, WeftNode n)
{
	NodeStep s = {.w = w, .function = "weft_node_erase", .node = n};
	return step(&s, erase);
}

static uint32_t count_nodes(const Graph *g)
{
	uint32_t n = 0;
	for (Node k = g->first; k.i; k = node_next(g, k))
		n++;
	return n;
}

static bool sweep(NodeStep *s)
{
	TRY(step_graph(s));
	uint32_t before = count_nodes(s->g);
	bool changed = graph_dce(s->g);
	if (!s->graph->owner) {
		changed |= graph_freeze_unchanged(s->g);
		changed |= random_release(s->g);
	}
	if (changed)
		step_changed(s);
	s->count = before - count_nodes(s->g);
	return true;
}

uint32_t weft_graph_sweep(Weft *w, WeftGraph *g)
{
	NodeStep s = {.w = w, .function = "weft_graph_sweep", .graph = g};
	return step(&s, sweep) ? s.count : 0;
}

/* ---- outputs and inputs ---- */

static bool is_tensor(const NodeStep *s, Node n)
{
	return node_dtype(s->g, n) != DT_none ||
	       step_error(s, "node %s is several results, expected a tensor", step_name(s, n));
}

/* Sets *out to the output's index among all outputs. */
static bool find_output(const NodeStep *s, uint32_t *out)
{
	uint32_t k = 0;
	for (*out = 0; *out < s->g->output.n; ++*out)
		if (s->g->output.data[*out].writes < 0 && k++ == s->k)
			return true;
	return step_error(s, "there is no output %u", s->k);
}

static bool set_output(NodeStep *s)
{
	uint32_t k;
	Node by;
	TRY(step_graph(s) && find_output(s, &k) && step_value(s, "the new output", s->by, &by) &&
	    is_tensor(s, by));
	TRY(!s->graph->owner || is_same_type(s, "the new output", by, s->g->output.data[k].node));
	graph_set_output(s->g, k, by);
	step_changed(s);
	return true;
}

bool weft_graph_set_output(Weft *w, WeftGraph *g, uint32_t k, WeftNode n)
{
	NodeStep s = {.w = w, .function = "weft_graph_set_output", .graph = g, .k = k, .by = n};
	return step(&s, set_output);
}

static bool rename_size(NodeStep *s)
{
	TRY(step_graph(s) && is_no_body(s) && given_text(s->w, s->function, "the size", s->text) &&
	    given_text(s->w, s->function, "the name", s->type));
	SymTab *syms = graph_syms(s->g);
	Sym size = sym_find(syms, s->text, (uint32_t)strlen(s->text));
	if (!size.i)
		return step_error(s, "there is no size %s", s->text);
	if (!text_is_identifier(s->type))
		return step_error(s, "a size's name must be an identifier");
	return sym_rename(syms, size, s->type) ||
	       step_error(s, "there is a size %s already", s->type);
}

bool weft_graph_rename_size(Weft *w, WeftGraph *g, const char *size, const char *name)
{
	NodeStep s = {.w = w,
		      .function = "weft_graph_rename_size",
		      .graph = g,
		      .text = size,
		      .type = name};
	return step(&s, rename_size);
}

static bool add_output(NodeStep *s)
{
	Node by;
	TRY(step_graph(s) && is_no_body(s) && given_text(s->w, s->function, "the name", s->text));
	TRY(step_value(s, "the output", s->by, &by) && is_tensor(s, by));
	for (uint32_t k = 0; k < s->g->output.n; k++)
		if (!strcmp(s->g->output.data[k].name, s->text))
			return step_error(s, "there is an output %s already", s->text);
	graph_add_output(s->g, s->text, by, -1);
	step_changed(s);
	return true;
}

bool weft_graph_add_output(Weft *w, WeftGraph *g, const char *name, WeftNode n)
{
	NodeStep s = {
		.w = w, .function = "weft_graph_add_output", .graph = g, .text = name, .by = n};
	return step(&s, add_output);
}

static bool remove_output(NodeStep *s)
{
	uint32_t k;
	TRY(step_graph(s) && is_no_body(s) && find_output(s, &k));
	if (s->g->output.n == 1)
		return step_error(s, "output %u is the last one", s->k);
	graph_remove_output(s->g, k);
	step_changed(s);
	return true;
}

bool weft_graph_remove_output(Weft *w, WeftGraph *g, uint32_t k)
{
	NodeStep s = {.w = w, .function = "weft_graph_remove_output", .graph = g, .k = k};
	return step(&s, remove_output);
}

static bool extents_are_sizes(const NodeStep *s, TypeId id)
{
	const Type *t = ir_type_of(s->g->ir, id);
	for (uint32_t k = 0; k < t->n; k++)
		if (sym_uses_kind(graph_syms(s->g), t->dim[k], SYMVAR_UNBACKED))
			return step_error(s, "type %s: an input has no size that depends on data",
					  s->type);
	return true;
}

static bool add_input(NodeStep *s)
{
	TRY(step_graph(s) && is_no_body(s) && given_text(s->w, s->function, "the name", s->text));
	TRY(given_text(s->w, s->function, "the type", s->type));
	const char *owner = graph_name_owner(s->g, s->text);
	if (owner)
		return step_error(s, "there is %s %s already", owner, s->text);
	TypeId type = type_parse(
		s->g, s->type,
		arena_printf(s->w->ctx->scratch, "%s: type of %s", s->function, s->text));
	TRY(type.i);
	if (ir_type_of(s->g->ir, type)->dtype == DT_none)
		return step_error(s, "type %s is several, expected a tensor", s->type);
	TRY(extents_are_sizes(s, type));
	s->found = step_give(s, graph_add_input(s->g, s->text, INPUT_USER, type));
	step_changed(s);
	return true;
}

WeftNode weft_graph_add_input(Weft *w, WeftGraph *g, const char *name, const char *type)
{
	NodeStep s = {
		.w = w, .function = "weft_graph_add_input", .graph = g, .text = name, .type = type};
	return step(&s, add_input) ? s.found : (WeftNode){NULL, 0};
}

static bool set_written(NodeStep *s)
{
	Node by;
	TRY(step_node(s) && step_value(s, "the new value", s->by, &by) &&
	    is_same_type(s, "the new value", by, s->n));
	for (uint32_t k = 0; k < s->g->output.n; k++) {
		int32_t in = s->g->output.data[k].writes;
		if (in < 0 || s->g->input.data[in].node.i != s->n.i)
			continue;
		graph_set_output(s->g, k, by);
		step_changed(s);
		return true;
	}
	return step_error(s, "nothing is written to node %s", step_name(s, s->n));
}

bool weft_graph_set_written(Weft *w, WeftNode n, WeftNode value)
{
	NodeStep s = {.w = w, .function = "weft_graph_set_written", .node = n, .by = value};
	return step(&s, set_written);
}

/* ---- constants ---- */

static bool read_tensor(NodeStep *s)
{
	TRY(step_node(s) && given(s->w, s->function, "room for the tensor", s->tensor_out));
	ConstId c = node_const(s->g, s->n);
	for (uint32_t k = 0; k < s->g->input.n; k++)
		if (s->g->input.data[k].node.i == s->n.i)
			c = s->g->input.data[k].init;
	if (!c.i)
		return step_error(s, "node %s is no constant and no state", step_name(s, s->n));
	const Const *k = ir_const_of(s->g->ir, c);
	if (k->recipe)
		return step_error(
			s, "node %s is computed from replaceable parameters and has no value yet",
			step_name(s, s->n));
	*s->tensor_out = (WeftTensor){.data = (void *)(uintptr_t)k->data,
				      .device = {WEFT_CPU, 0},
				      .ndim = (int32_t)k->rank,
				      .dtype = dtype_to_api(k->dtype),
				      .shape = (int64_t *)(uintptr_t)k->dim};
	return true;
}

bool weft_node_tensor(Weft *w, WeftNode n, WeftTensor *out)
{
	NodeStep s = {.w = w, .function = "weft_node_tensor", .node = n, .tensor_out = out};
	return step(&s, read_tensor);
}

static bool add_constant(NodeStep *s)
{
	Tensor t;
	TRY(step_graph(s) && given(s->w, s->function, "the tensor", s->tensor));
	TRY(!s->text || given_text(s->w, s->function, "the name", s->text));
	const char *owner = s->text ? graph_name_owner(s->g, s->text) : NULL;
	if (owner)
		return step_error(s, "there is %s %s already", owner, s->text);
	TRY(tensor_from_api(s->w->ctx, s->w->ctx->scratch, s->function, s->tensor, &t));
	Arena *arena = weft_arena(s->w);
	uint64_t bytes = tensor_bytes(&t);
	void *data = arena_calloc(arena, bytes + 1, 1);
	if (bytes)
		memcpy(data, t.data, bytes);
	ConstId c =
		ir_const(s->g->ir, (Const){.name = s->text ? arena_strdup(arena, s->text) : "",
					   .dtype = t.dtype,
					   .rank = t.rank,
					   .dim = arena_dup(arena, t.dim, t.rank * sizeof *t.dim),
					   .data = data,
					   .bytes = bytes,
					   .is_param = s->text != NULL});
	s->found =
		step_give(s, b_const(&(Build){.g = s->g, .before = graph_behind_inputs(s->g)}, c));
	step_changed(s);
	return s->found.index;
}

WeftNode weft_graph_constant(Weft *w, WeftGraph *g, const char *name, const WeftTensor *t)
{
	NodeStep s = {
		.w = w, .function = "weft_graph_constant", .graph = g, .text = name, .tensor = t};
	return step(&s, add_constant) ? s.found : (WeftNode){NULL, 0};
}

/* ---- the whole graph ---- */

static bool verify(NodeStep *s)
{
	TRY(step_graph(s));
	graph_root(s->graph)->changed = true;
	return graph_is_sound(graph_root(s->graph));
}

bool weft_graph_verify(Weft *w, WeftGraph *g)
{
	NodeStep s = {.w = w, .function = "weft_graph_verify", .graph = g};
	return step(&s, verify);
}
