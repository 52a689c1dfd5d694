/* Lowering, top level: a graph of primitives -> steps (kernels and loops) over buffers.
 *
 *   groups -> places -> kernels, in program order -> layouts
 *
 * A kernel that cannot be traced names the node that must be stored first; groups are then assigned
 * again. Each round makes at least one node a root for good, so this ends, and after as many rounds
 * as a group has nodes. */
#include "ir/build/text.h"
#include "ir/build/verify.h"
#include "lower/attention.h"
#include "lower/stage.h"
#include "lower/state.h"
#include "lower/roots.h"

#include <string.h>

typedef struct {
	bool *seen; /* by op */
	Text ops;
	const char *complex, *where; /* the first operator on complex values */
} Unsupported;

/* Whether n computes complex values. Those that the caller passes or gets are converted from and to
 * pairs of real numbers, which does not count. */
static bool computes_complex(Graph *g, Node n)
{
	bool found = dtype_is_complex(node_type(g, n)->dtype);
	if (op_lower(node_op(g, n))->complex)
		return false;
	for (uint32_t k = 0; k < node_nin(g, n) && !found; k++) {
		Node x = node_in(g, n, k);
		found = x.i && dtype_is_complex(node_type(g, x)->dtype);
	}
	return found;
}

/* Collects the operators of a graph and of its bodies that cannot be lowered. */
static void find_unsupported(Graph *g, Unsupported *u)
{
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		Op op = node_op(g, n);
		if (!u->complex && computes_complex(g, n)) {
			u->complex = op_name(op);
			u->where = node_where(g, n);
		}
		for (uint32_t k = 0; k < op_schema(op)->narg; k++) {
			const Attr *a = ir_attr(g->ir, node_data(g, n)->attr, k);
			if (a->kind == ATTR_graph)
				find_unsupported(a->graph, u);
		}
		if (u->seen[op] || op_kind(op) != OP_COMPOSITE)
			continue;
		u->seen[op] = true;
		text_printf(&u->ops, "%s%s (first at %s)", u->ops.n ? ", " : "", op_name(op),
		            graph_name(g, n));
	}
}

/* Marks the symbols that get their values from data, in a graph and its bodies. */
static void find_born(const Graph *g, bool *born)
{
	const SymTab *syms = graph_syms(g);
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		for (uint32_t k = 0; k < op_schema(node_op(g, n))->narg; k++) {
			const Attr *a = ir_attr(g->ir, node_data(g, n)->attr, k);
			if (a->kind == ATTR_graph)
				find_born(a->graph, born);
		}
		for (uint32_t v = 0; node_op(g, n) == OP_to_size && v < sym_nvars(syms); v++)
			born[v] |= node_sym(g, n, "size").i == sym_var_at(syms, v).i;
	}
}

/* Checks that nobody outside of a body uses a size that the body finds in data. known: by symbol,
 * whether a graph around this one knows it. Returns false after ctx_error. */
static bool check_born(Lower *s, Graph *g, const bool *known)
{
	const SymTab *syms = graph_syms(g);
	bool *here = arena_dup(s->arena, known, sym_nvars(syms) * sizeof *here);
	for (uint32_t v = 0; v < sym_nvars(syms); v++) {
		Sym var = sym_var_at(syms, v);
		bool known_here = here[v] || graph_is_given(g, var) || graph_finds(g, var);
		for (Node n = g->first; n.i && !known_here; n = node_next(g, n))
			if (node_uses_itself(g, n, var))
				return ctx_error(s->ir->ctx, node_where(g, n),
						 "%s has no value here, but in the body that finds "
						 "it in data",
						 sym_name(syms, var));
		here[v] |= known_here;
	}
	for (Node n = g->first; n.i; n = node_next(g, n))
		for (uint32_t k = 0; node_has_graph(g, n) && k < op_schema(node_op(g, n))->narg;
		     k++) {
			const Attr *a = ir_attr(s->ir, node_data(g, n)->attr, k);
			TRY(a->kind != ATTR_graph || check_born(s, a->graph, here));
		}
	return true;
}

/* Checks that every symbol in use gets a value, from the shape of an input or from data. Returns
 * false after ctx_error. */
static bool check_symbols(Lower *s)
{
	SymTab *syms = graph_syms(s->g);
	uint32_t n = sym_nvars(syms);
	bool *used = ARENA_ARRAY(s->arena, bool, n);
	bool *born = ARENA_ARRAY(s->arena, bool, n), *elsewhere = ARENA_ARRAY(s->arena, bool, n),
	     found = false;
	graph_used_symbols(s->g, used);
	find_born(s->g, born);
	for (uint32_t v = 0; v < n; v++) {
		bool known = !used[v] || born[v];
		for (uint32_t i = 0; !known && i < s->g->input.n; i++) {
			const Type *t = node_type(s->g, s->g->input.data[i].node);
			for (uint32_t d = 0; d < t->n; d++)
				known |= sym_uses(syms, t->dim[d], sym_var_at(syms, v));
		}
		if (!known)
			return ctx_error(s->ir->ctx, NULL,
					 "%s has no value: no input has it in its shape",
					 sym_name(syms, sym_var_at(syms, v)));
		elsewhere[v] = !born[v];
		found |= born[v];
	}
	return !found || check_born(s, s->g, elsewhere);
}

static bool check_supported(Lower *s)
{
	Ctx *ctx = s->ir->ctx;
	Unsupported u = {.seen = ARENA_ARRAY(s->arena, bool, op_count())};
	for (uint32_t k = 0; k < s->g->output.n; k++)
		if (!s->g->output.data[k].node.i)
			return ctx_error(
				ctx, NULL,
				"output %u is none: a compiled model's outputs are tensors", k);
	text_init(&u.ops, ctx->arena);
	find_unsupported(s->g, &u);
	if (u.ops.n)
		return ctx_error(ctx, NULL, "no schedule for these operators: %s", u.ops.data);
	return !u.complex ||
	       ctx_error(ctx, u.where, "%s of complex numbers is not supported", u.complex);
}

/* Returns the functions of a root that needs more than one kernel with a value at each point; NULL
 * for other nodes. */
static const RootFn *has_steps(const Lower *s, Node n)
{
	const RootFn *fn = s->root_fn(node_op(s->g, n));
	return fn && fn->steps ? fn : NULL;
}

/* Whether n is a root with one kernel, which is built by tracing its value. */
static bool is_traced(const Lower *s, Node n)
{
	return node_info(s, n)->is.role == ROLE_ROOT && !lower_holds_operands(s, n) &&
	       !has_steps(s, n);
}

/* Whether the kernel of another node stores n. */
static bool is_stored_beside(const Lower *s, Node n)
{
	return node_info(s, n)->is.role == ROLE_ROOT && node_info(s, n)->is.attention->row;
}

/* Tries to build the kernels of all roots. A kernel that needs another node stored makes that node
 * a root. Then the result is true: a new round is needed, which does not try again the kernels that
 * were built, because only the groups of the blocked kernel and of the new root change. It tries
 * all again if an index map that several groups read was stored. A kernel stays in s->kernel if it
 * would be built the same way again: it reads no result of a loop, and has no checks, which are
 * numbered as steps are made. */
static bool find_blocked(Lower *s, bool *built)
{
	ARRAY(StoredFirst) blocked = {0};
	memset(s->kernel, 0, s->g->node.n * sizeof *s->kernel);
	for (Node n = s->g->first; n.i; n = node_next(s->g, n)) {
		Kernel *k;
		StoredFirst first;
		uint32_t nbuf = s->l->buf.n, ncheck = s->l->check.n;
		if (built[n.i] || !is_traced(s, n) || is_stored_beside(s, n))
			continue;
		s->read_loop = false;
		built[n.i] = lower_build_kernel(s, n, &k, &first);
		if (!built[n.i])
			array_push(s->arena, &blocked, first);
		else if (!s->read_loop && s->l->buf.n == nbuf && s->l->check.n == ncheck)
			s->kernel[n.i] = k;
	}
	for (uint32_t i = 0; i < blocked.n; i++) {
		const StoredFirst *first = &blocked.data[i];
		if (node_info(s, first->node)->is.root && s->stored[first->node.i] == first->why)
			ctx_bug(s->ir->ctx, "node %s is stored already: %s",
				lower_name(s, first->node), first->why);
		if (!node_info(s, first->node)->is.root)
			memset(built, 0, s->g->node.n * sizeof *built);
		s->stored[first->node.i] = first->why;
	}
	return blocked.n != 0;
}

/* Lists the nodes that are computed in each root's kernel, in program order. */
static void list_members(Lower *s)
{
	for (Node n = s->g->last; n.i; n = node_prev(s->g, n)) {
		const NodeInfo *info = node_info(s, n);
		uint32_t root = info->is.root;
		if (!root || (info->is.role != ROLE_ROOT && info->is.role != ROLE_INLINE &&
			      info->is.role != ROLE_VIRTUAL))
			continue;
		s->next_member[n.i] = s->member[root];
		s->member[root] = n;
	}
}

static bool has_name(const Graph *g, Node n)
{
	return g->node_name.data[n.i] != NULL;
}

const char *lower_name(Lower *s, Node n)
{
	enum { FAR = 64 };
	Graph *g = s->g;
	if (has_name(g, n))
		return graph_name(g, n);
	const char *op = op_name(node_op(g, n)), *dot = strrchr(op, '.');
	op = dot ? dot + 1 : op;
	Node reader = n;
	for (int k = 0; k < FAR && node_data(g, reader)->first_use.i; k++) {
		reader = g->use.data[node_data(g, reader)->first_use.i].user;
		if (!reader.i)
			break;
		if (has_name(g, reader))
			return arena_printf(s->arena, "%s_%s", graph_name(g, reader), op);
	}
	return op;
}

/* Sets what a kernel computes, and its name: the root's, or else that of the last named node. */
static void describe_kernel(Lower *s, Node root, Kernel *k)
{
	const Graph *g = s->g;
	Node named = root;
	k->graph = g;
	for (Node n = s->member[root.i]; n.i; n = s->next_member[n.i]) {
		array_push(s->arena, &k->computes, n);
		if (!has_name(g, root) && has_name(g, n))
			named = n;
	}
	k->name = lower_name(s, named);
}

static void lower_node(Lower *s, Node n)
{
	if (node_info(s, n)->is.role != ROLE_ROOT || is_stored_beside(s, n))
		return;
	s->at = n;
	const RootFn *root = has_steps(s, n);
	if (root) {
		if (!root->instead || !root->instead(s, n))
			root->steps(s, n);
		return;
	}
	if (lower_holds_operands(s, n)) {
		lower_copy_operands(s, n);
		return;
	}
	Kernel *k = s->kernel[n.i];
	StoredFirst first;
	if (!k && !lower_build_kernel(s, n, &k, &first))
		ctx_bug(s->ir->ctx, "kernel of %s needs %s", graph_name(s->g, n),
		        graph_name(s->g, first.node));
	describe_kernel(s, n, k);
	lower_push_kernel(s, k);
}

/* Returns the value of rows that an index map moves and the kernel of an attention stores; none: n
 * is no such map. */
static Node moved_row(const Lower *s, Node n)
{
	if (node_info(s, n)->is.role != ROLE_ROOT)
		return (Node){0};
	while (lower_is_map(op_lower(node_op(s->g, n))))
		n = node_in(s->g, n, 0);
	return is_stored_beside(s, n) ? n : (Node){0};
}

/* Notes the values of rows that the kernel of a root stores. */
static void note_rows(const Lower *s, Node root, bool *stored)
{
	for (Node n = s->member[root.i]; n.i; n = s->next_member[n.i]) {
		const AttentionNodes *a = node_info(s, n)->is.attention->attention;
		if (a && a->stores_rows)
			stored[a->high.i] = stored[a->sum.i] = true;
	}
}

/* Adds the steps of all roots in program order. An index map of a value of rows comes behind the
 * kernel that stores the value: program order may have the map before the kernel's last node. */
static void lower_nodes(Lower *s)
{
	bool *stored = ARENA_ARRAY(s->arena, bool, s->g->node.n);
	ARRAY(Node) waiting = {0};
	for (Node n = s->g->first; n.i; n = node_next(s->g, n)) {
		const Node row = moved_row(s, n);
		if (row.i && row.i != n.i && !stored[row.i]) {
			array_push(s->arena, &waiting, n);
			continue;
		}
		lower_node(s, n);
		note_rows(s, n, stored);
		uint32_t left = 0;
		for (uint32_t k = 0; k < waiting.n; k++)
			if (stored[moved_row(s, waiting.data[k]).i])
				lower_node(s, waiting.data[k]);
			else
				waiting.data[left++] = waiting.data[k];
		waiting.n = left;
	}
	s->at = (Node){0};
}

/* Adds copies for outputs that are inputs, constants or second names of a stored value. */
static void copy_outputs(Lower *s, const NodePlace *out)
{
	for (uint32_t k = 0; k < s->g->output.n; k++) {
		Node n = lower_output(s->g, k);
		const NodeInfo *info = node_info(s, n);
		bool stored = lower_replaces(s, k);
		for (uint32_t p = 0; p < info->place.n; p++)
			stored |= lower_can_be_computed_in(s, n) &&
				  info->place.data[p].buf.i == out[k].buf.i &&
				  info->place.data[p].t.i == out[k].t.i;
		if (!stored)
			lower_push_kernel(s, lower_copy_kernel(s, n, &out[k]));
	}
	if (s->state)
		lower_state_copy(s, out);
}

static void assign_groups(Lower *s)
{
	const NodeGroup *is = group_nodes(s->g, s->target, s->stored, s->opt->no_fusion, s->arena);
	for (uint32_t k = 0; k < s->g->node.n; k++) {
		s->info.data[k].is = is[k];
		s->stored[k] = is[k].why;
	}
}

/* Gives nodes that can be computed where an output goes that place. State comes in a second round:
 * a kernel stores into state after its other stores, since it may read what it replaces. Of a node
 * with several steps readers read the first place; that is the one in state, where the rest of the
 * value is. */
static void place_outputs(Lower *s, NodePlace *out)
{
	const Graph *g = s->g;
	for (uint32_t round = 0; round < 2; round++)
		for (uint32_t k = 0; k < g->output.n; k++) {
			Node n = lower_output(g, k);
			bool state = lower_replaces(s, k);
			if (state != (round == 1))
				continue;
			if (state)
				out[k] = lower_state_output(s, k, out[k]);
			if (!lower_can_be_computed_in(s, n) || (state && s->state->apart[n.i]))
				continue;
			lower_add_place(s, n, out[k]);
			NodePlace *place = node_info(s, n)->place.data;
			if (state && !is_traced(s, n)) {
				place[node_info(s, n)->place.n - 1] = place[0];
				place[0] = out[k];
			}
		}
}

void lower_body_to(Lower *s, NodePlace *out)
{
	Graph *g = s->g;
	NodePlace *saved = ARENA_ARRAY(s->arena, NodePlace, g->node.n);
	bool *placed = ARENA_ARRAY(s->arena, bool, g->node.n);
	for (uint32_t i = 1; i < g->node.n; i++) {
		placed[i] = s->info.data[i].place.n != 0;
		if (placed[i])
			saved[i] = s->info.data[i].place.data[0];
	}
	bool *built = ARENA_ARRAY(s->arena, bool, g->node.n);
	s->kernel = ARENA_ARRAY(s->arena, Kernel *, g->node.n);
	s->member = ARENA_ARRAY(s->arena, Node, g->node.n);
	s->next_member = ARENA_ARRAY(s->arena, Node, g->node.n);
	for (;;) {
		assign_groups(s);
		uint32_t nbuf = s->l->buf.n, nvv = s->l->check.n;
		place_outputs(s, out);
		lower_choose_places(s);
		s->dry = true;
		bool found = find_blocked(s, built);
		s->dry = false;
		s->l->check.n = nvv;
		if (!found)
			break;
		for (uint32_t i = 1; i < g->node.n; i++) {
			s->info.data[i].place.n = placed[i];
			if (placed[i])
				s->info.data[i].place.data[0] = saved[i];
		}
		s->l->buf.n = nbuf;
		if (s->state)
			s->state->version.n = s->state->nroot;
	}
	list_members(s);
	lower_nodes(s);
	copy_outputs(s, out);
}

void lower_init(Lower *s, Graph *g, Lower *parent, Lowered *l, StepList *steps)
{
	*s = (Lower){.g = g, .ir = g->ir, .l = l, .arena = g->ir->ctx->arena, .steps = steps,
	             .parent = parent};
	if (parent) {
		s->opt = parent->opt;
		s->root_fn = parent->root_fn;
		s->target = parent->target;
	}
	s->info.data = ARENA_ARRAY(s->arena, NodeInfo, g->node.n);
	s->info.n = s->info.cap = g->node.n;
	s->stored = ARENA_ARRAY(s->arena, const char *, g->node.n);
}

void lower_place_constants(Lower *s)
{
	for (Node n = s->g->first; n.i; n = node_next(s->g, n)) {
		ConstId c = node_const(s->g, n);
		if (c.i)
			lower_add_place(s, n, lower_new_place(s, n, BUF_CONST, c.i));
	}
}

Node lower_output(const Graph *g, uint32_t k)
{
	Node n = g->output.data[k].node;
	return op_lower(node_op(g, n))->role == LOWER_NOTHING ? node_in(g, n, 0) : n;
}

Node lower_input(const Graph *g, Node n)
{
	Use u = node_data(g, n)->first_use;
	bool paired = u.i && dtype_is_complex(node_type(g, n)->dtype);
	return paired ? g->use.data[u.i].user : n;
}

/* Checks that all state has first contents, with which it is created; so its shape is constant.
 * Returns false after ctx_error. */
static bool check_state(const Lower *s)
{
	for (uint32_t k = 0; k < s->g->input.n; k++) {
		const GraphInput *in = &s->g->input.data[k];
		if (in->kind != INPUT_USER && !in->init.i)
			return ctx_error(s->ir->ctx, NULL, "\"%s\" has no first contents",
					 in->name);
	}
	return true;
}

static void place_inputs(Lower *s)
{
	uint32_t user = 0;
	for (uint32_t k = 0; k < s->g->input.n; k++) {
		if (s->g->input.data[k].kind != INPUT_USER)
			continue;
		Node n = lower_input(s->g, s->g->input.data[k].node);
		NodePlace p = lower_new_place(s, n, BUF_INPUT, user++);
		buf_of(s->l, p.buf)->layout_fixed = true;
		lower_add_place(s, n, p);
	}
}

static void check_lowered(Lowered *l)
{
#ifndef NDEBUG
	if (!lowered_verify(l))
		ctx_bug_verify(l->ir->ctx, "lowering");
#else
	(void)l;
#endif
}

/* Lowers the graph in one attempt; `state` keeps what is known of state for the next one. Returns
 * NULL after ctx_error, or if state->again asks for another attempt. */
static Lowered *lower_once(Graph *g, const LowerOptions *opt, const RootFn *(*root_fn)(Op),
			   LowerState *state)
{
	Lowered *l = lowered_new(g->ir, g);
	Lower s;
	uint32_t user = 0;
	lower_init(&s, g, NULL, l, &l->steps);
	if (opt->after)
		lowered_check_after(l, opt->after);
	s.opt = opt;
	s.root_fn = root_fn;
	s.target = opt->target ? opt->target : target_find("generic-c");
	s.state = state;
	if (!check_supported(&s) || !check_symbols(&s) || !check_state(&s))
		return NULL;
	place_inputs(&s);
	if (state)
		lower_state_begin(&s);
	lower_place_constants(&s);
	NodePlace *out = ARENA_ARRAY(s.arena, NodePlace, g->output.n);
	for (uint32_t k = 0; k < g->output.n; k++) {
		if (graph_output_is_state(g, k))
			continue;
		out[k] = lower_new_place(&s, lower_output(g, k), BUF_OUTPUT, user++);
		buf_of(l, out[k].buf)->layout_fixed = true;
	}
	lower_body_to(&s, out);
	return !state || lower_order_steps(&s) ? l : NULL;
}

static bool replaces_inputs(const Graph *g)
{
	for (uint32_t k = 0; k < g->output.n; k++)
		if (g->output.data[k].writes >= 0)
			return true;
	for (uint32_t k = 0; k < g->input.n; k++)
		if (g->input.data[k].kind != INPUT_USER)
			return true;
	return false;
}

Lowered *lower_by_roots(Graph *g, const LowerOptions *opt, const RootFn *(*root_fn)(Op))
{
	uint32_t errors = g->ir->ctx->nerror;
	graph_require(g);
	LowerState *state = replaces_inputs(g) ? lower_state_new(g, g->ir->ctx->arena) : NULL;
	Lowered *l = lower_once(g, opt, root_fn, state);
	while (!l && state && state->again)
		l = lower_once(g, opt, root_fn, state);
	if (!l)
		return NULL;
	lower_choose_layouts(l);
	lower_merge_results(l);
	if (!opt->no_fusion)
		lower_join_updates(l, !(opt->target && opt->target->gpu));
	if (!state)
		lower_join_loops(l, opt->target ? opt->target : target_find("generic-c"));
	if (g->ir->ctx->nerror == errors)
		check_lowered(l);
	return l;
}
