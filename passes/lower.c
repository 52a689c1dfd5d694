/* Lowering, top level: a graph of primitives -> steps (kernels and loops) over buffers.
 *
 *   explicit padding -> groups -> places -> kernels, in program order -> layouts
 *
 * A kernel that cannot be traced names the node that must be stored first; groups are then assigned again. Each round
 * makes at least one node a root for good, so this ends, and after as many rounds as a group has nodes. */
#include "passes/lower_stage.h"
#include "passes/rules.h"

#include <string.h>

NodePlace lower_new_place(Lower *s, Node n, BufKind kind, uint32_t k)
{
	const Type *t = node_type(s->g, n);
	NodePlace p = {.buf = lowered_buf(s->l, kind, k, t->dtype, t->n, t->dim, graph_name(s->g, n))};
	return p;
}

static void add_place(Lower *s, Node n, NodePlace p)
{
	array_push(s->arena, &info_of(s, n)->place, p);
}

/* ---- parents: concatenations and padded buffers ---- */

static bool is_parent(const Lower *s, Node n)
{
	Op op = node_op(s->g, n);
	return info_of((Lower *)s, n)->role == ROLE_ROOT && (op == OP_concat || op == OP_pad);
}

/* Its results, if it has any, are those of its `get` nodes. */
static bool has_no_place(Op op)
{
	return op == OP_scan || op == OP_sort || op == OP_assert;
}

/* The operand may be computed straight into the parent's buffer. */
static bool can_live_in(Lower *s, Node operand)
{
	NodeInfo *info = info_of(s, operand);
	Op op = node_op(s->g, operand);
	return info->role == ROLE_ROOT && !info->place.n && !has_no_place(op);
}

static NodePlace slice_of(Lower *s, Node parent, uint32_t rank, const Sym *start)
{
	NodePlace p = info_of(s, parent)->place.data[0];
	for (uint32_t k = 0; k < rank; k++)
		p.off[k] = p.off[k].i ? sym_add(s->ir->syms, p.off[k], start[k]) : start[k];
	return p;
}

/* Of operands in order: *at is where the next one of a concatenation begins, none before the first. */
static NodePlace operand_place(Lower *s, Node parent, uint32_t operand, Sym *at)
{
	Sym start[MAX_RANK];
	uint32_t rank = node_rank(s->g, parent);
	for (uint32_t k = 0; k < rank; k++)
		start[k] = sym_int(s->ir->syms, 0);
	if (node_op(s->g, parent) == OP_concat) {
		uint32_t dim = (uint32_t)node_int(s->g, parent, "dim");
		start[dim] = at->i ? *at : start[dim];
		*at = sym_add(s->ir->syms, start[dim], node_dim(s->g, node_in(s->g, parent, operand), dim));
	} else {
		uint32_t n;
		memcpy(start, node_ints(s->g, parent, "low", &n), rank * sizeof *start);
	}
	return slice_of(s, parent, rank, start);
}

static uint32_t noperands(const Lower *s, Node parent)
{
	return node_op(s->g, parent) == OP_pad ? 1 : node_nin(s->g, parent);
}

/* A negative pad crops: its operand does not fit into the parent. A border of many dimensions would have
 * too many pieces. */
static bool pads_only(Lower *s, Node n)
{
	if (node_op(s->g, n) != OP_pad)
		return true;
	static const char *const side[] = {"low", "high"};
	uint32_t rank, pieces = 0, padded[MAX_RANK] = {0}, npadded = 0;
	for (uint32_t i = 0; i < 2; i++) {
		const Sym *v = node_ints(s->g, n, side[i], &rank);
		for (uint32_t k = 0; k < rank; k++) {
			if (sym_le(s->ir->syms, sym_int(s->ir->syms, 0), v[k]) != YES)
				return false;
			bool pads = !sym_is(s->ir->syms, v[k], 0);
			pieces += pads;
			npadded += pads && !padded[k]++;
		}
	}
	if (pieces * npadded + rank - npadded > MAX_KERNEL_AXES)
		return false;
	const Sym *interior = node_ints(s->g, n, "interior", &rank);
	for (uint32_t k = 0; k < rank; k++)
		if (!sym_is(s->ir->syms, interior[k], 0))
			return false;
	return true;
}

/* ---- places ---- */

/* A buffer that is all of a tensor padded with zeros has a border that readers may leave out. */
static void note_border(Lower *s, Node n)
{
	const NodePlace *p = &info_of(s, n)->place.data[0];
	SymTab *syms = s->ir->syms;
	uint32_t rank = node_rank(s->g, n), nattr;
	if (node_op(s->g, n) != OP_pad || !is_splat(s->g, node_in(s->g, n, 1), 0))
		return;
	for (uint32_t k = 0; k < rank; k++)
		if (p->off[k].i && !sym_is(syms, p->off[k], 0))
			return;
	const Sym *high = node_ints(s->g, n, "high", &nattr);
	Sym *hi = ARENA_ARRAY(s->arena, Sym, rank);
	for (uint32_t k = 0; k < rank; k++)
		hi[k] = sym_sub(syms, node_dim(s->g, n, k), high[k]);
	buf_of(s->l, p->buf)->inner_lo = node_ints(s->g, n, "low", &nattr);
	buf_of(s->l, p->buf)->inner_hi = hi;
}

/* Outputs first, then parents before their operands (so from the end), then everything else. */
static void choose_places(Lower *s)
{
	Graph *g = s->g;
	for (Node n = g->last; n.i; n = node_prev(g, n)) {
		NodeInfo *info = info_of(s, n);
		if (info->role != ROLE_ROOT || has_no_place(node_op(g, n)))
			continue;
		if (!info->place.n)
			add_place(s, n, lower_new_place(s, n, BUF_TEMP, 0));
		if (!is_parent(s, n) || !pads_only(s, n))
			continue;
		note_border(s, n);
		Sym at = {0};
		for (uint32_t k = 0; k < noperands(s, n); k++) {
			NodePlace p = operand_place(s, n, k, &at);
			if (can_live_in(s, node_in(g, n, k)))
				add_place(s, node_in(g, n, k), p);
		}
	}
}

static void push_kernel(Lower *s, Kernel *k)
{
	array_push(s->arena, &s->steps->step, (Step){.kind = STEP_KERNEL, .kernel = k});
}

/* ---- steps ---- */

static bool lives_in(Lower *s, Node operand, NodePlace p)
{
	NodeInfo *info = info_of(s, operand);
	if (info->role != ROLE_ROOT || !info->place.n || info->place.data[0].buf.i != p.buf.i)
		return false;
	for (uint32_t k = 0; k < node_rank(s->g, operand); k++)
		if (info->place.data[0].off[k].i != p.off[k].i)
			return false;
	return true;
}

static void lower_parent(Lower *s, Node n)
{
	if (node_op(s->g, n) == OP_pad)
		push_kernel(s, lower_border_kernel(s, n));
	Sym at = {0};
	for (uint32_t k = 0; k < noperands(s, n); k++) {
		NodePlace p = operand_place(s, n, k, &at);
		if (!lives_in(s, node_in(s->g, n, k), p))
			push_kernel(s, lower_copy_kernel(s, node_in(s->g, n, k), &p));
	}
	for (uint32_t k = 1; k < info_of(s, n)->place.n; k++)
		push_kernel(s, lower_copy_kernel(s, n, &info_of(s, n)->place.data[k]));
}

typedef struct {
	bool seen[OP_COUNT];
	Text ops;
	const char *complex, *where; /* the first operator on complex values */
} Unsupported;

/* Complex values pass as pairs of real ones between the caller and the graph. */
static bool computes_complex(Graph *g, Node n)
{
	Op op = node_op(g, n);
	bool found = dtype_is_complex(node_type(g, n)->dtype);
	if (op == OP_input || op == OP_view_real || op == OP_view_complex)
		return false;
	for (uint32_t k = 0; k < node_nin(g, n) && !found; k++) {
		Node x = node_in(g, n, k);
		found = x.i && dtype_is_complex(node_type(g, x)->dtype);
	}
	return found;
}

/* Of a graph and of the bodies of its loops. */
static void find_unsupported(Graph *g, Unsupported *u)
{
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		Op op = node_op(g, n);
		if (!u->complex && computes_complex(g, n)) {
			u->complex = op_name(op);
			u->where = node_where(g, n);
		}
		if (op == OP_scan)
			find_unsupported(node_attr(g, n, "body")->graph, u);
		if (u->seen[op] || op_kind(op) != OP_COMPOSITE)
			continue;
		u->seen[op] = true;
		text_printf(&u->ops, "%s%s (first at %s)", u->ops.n ? ", " : "", op_name(op),
		            graph_name(g, n));
	}
}

/* The sizes of inputs are what others are computed from. */
static bool check_symbols(Lower *s)
{
	SymTab *syms = s->ir->syms;
	uint32_t n = sym_nvars(syms);
	bool *used = ARENA_ARRAY(s->arena, bool, n);
	graph_used_symbols(s->g, used);
	for (uint32_t v = 0; v < n; v++) {
		bool known = !used[v];
		for (uint32_t i = 0; !known && i < s->g->input.n; i++) {
			const Type *t = node_type(s->g, s->g->input.data[i].node);
			for (uint32_t d = 0; d < t->n; d++)
				known |= sym_uses(syms, t->dim[d], sym_var_at(syms, v));
		}
		if (!known)
			return ctx_error(s->ir->ctx, NULL, "%s has no value: no input has it in its shape",
			                 sym_name(syms, sym_var_at(syms, v)));
	}
	return true;
}

static bool check_supported(Lower *s)
{
	Ctx *ctx = s->ir->ctx;
	Unsupported u = {0};
	text_init(&u.ops, ctx->arena);
	find_unsupported(s->g, &u);
	if (u.ops.n)
		return ctx_error(ctx, NULL, "no schedule for these operators: %s", u.ops.data);
	return !u.complex ||
	       ctx_error(ctx, u.where, "%s of complex numbers is not supported", u.complex);
}

/* Roots with one kernel that is built by tracing their value. */
static bool is_traced(const Lower *s, Node n)
{
	Op op = node_op(s->g, n);
	bool parent = is_parent(s, n) && pads_only((Lower *)s, n);
	return info_of((Lower *)s, n)->role == ROLE_ROOT && !parent && !has_no_place(op) && !node_is_update(op);
}

/* Kernels of all roots are tried first. One that needs another node stored makes that a root and asks for a new round,
 * in which the kernels that were built before are not tried again: only the groups of the blocked kernel and of the new
 * root changed, unless an index map that several groups read was stored.
 * A kernel stays in s->kernel if it would be built the same way again: it reads no result of a loop, and has no checks,
 * which are numbered as steps are made. */
static bool find_blocked(Lower *s, bool *built)
{
	ARRAY(Node) blocked = {0};
	memset(s->kernel, 0, s->g->node.n * sizeof *s->kernel);
	for (Node n = s->g->first; n.i; n = node_next(s->g, n)) {
		Kernel *k;
		Node first;
		uint32_t nbuf = s->l->buf.n, ncheck = s->l->check.n;
		if (built[n.i] || !is_traced(s, n))
			continue;
		s->read_loop = false;
		built[n.i] = lower_build_kernel(s, n, &k, &first);
		if (!built[n.i])
			array_push(s->arena, &blocked, first);
		else if (!s->read_loop && s->l->buf.n == nbuf && s->l->check.n == ncheck)
			s->kernel[n.i] = k;
	}
	for (uint32_t i = 0; i < blocked.n; i++) {
		NodeInfo *info = info_of(s, blocked.data[i]);
		if (!info->group)
			memset(built, 0, s->g->node.n * sizeof *built);
		info->role = ROLE_ROOT;
	}
	return blocked.n != 0;
}

/* Lists of the nodes that are computed in each root's kernel, in program order. */
static void list_members(Lower *s)
{
	for (Node n = s->g->last; n.i; n = node_prev(s->g, n)) {
		const NodeInfo *info = info_of(s, n);
		uint32_t root = info->role == ROLE_ROOT ? n.i : info->group;
		if (!root || (info->role != ROLE_ROOT && info->role != ROLE_INLINE && info->role != ROLE_VIRTUAL))
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

/* The graph lines a kernel computes, and a name: the root's, or else that of the last named line. */
static void describe_kernel(Lower *s, Node root, Kernel *k)
{
	Graph *g = s->g;
	Text text;
	text_init(&text, s->arena);
	Node named = root;
	for (Node n = s->member[root.i]; n.i; n = s->next_member[n.i]) {
		graph_print_node(g, n, &text);
		if (!has_name(g, root) && has_name(g, n))
			named = n;
	}
	if (text.n && text.data[text.n - 1] == '\n')
		text.data[--text.n] = 0;
	k->text = text.data;
	k->name = lower_name(s, named);
}

static bool lower_node(Lower *s, Node n)
{
	if (info_of(s, n)->role != ROLE_ROOT)
		return true;
	Op op = node_op(s->g, n);
	if (op == OP_scan)
		return lower_scan(s, n);
	if (!is_traced(s, n)) {
		if (op == OP_sort)
			lower_sort(s, n);
		else if (op == OP_assert)
			lower_assert(s, n);
		else if (node_is_update(op))
			lower_update(s, n);
		else
			lower_parent(s, n);
		return true;
	}
	Kernel *k = s->kernel[n.i];
	Node blocked;
	if (!k && !lower_build_kernel(s, n, &k, &blocked))
		ctx_bug(s->ir->ctx, "kernel of %s needs %s", graph_name(s->g, n),
		        graph_name(s->g, blocked));
	describe_kernel(s, n, k);
	push_kernel(s, k);
	return true;
}

/* Nodes that outputs are computed in place of: roots, and results of a sort. */
static bool can_be_computed_in(Lower *s, Node n)
{
	const Graph *g = s->g;
	if (node_op(g, n) == OP_get)
		return node_op(g, node_in(g, n, 0)) == OP_sort;
	return info_of(s, n)->role == ROLE_ROOT && !has_no_place(node_op(g, n));
}

/* Outputs that are inputs, constants or second names of a stored value. */
static void copy_outputs(Lower *s, const NodePlace *out)
{
	for (uint32_t k = 0; k < s->g->output.n; k++) {
		Node n = lower_output(s->g, k);
		const NodeInfo *info = info_of(s, n);
		bool stored = false;
		for (uint32_t p = 0; p < info->place.n; p++)
			stored |= can_be_computed_in(s, n) && info->place.data[p].buf.i == out[k].buf.i &&
			          info->place.data[p].t.i == out[k].t.i;
		if (!stored)
			push_kernel(s, lower_copy_kernel(s, n, &out[k]));
	}
}

bool lower_body_to(Lower *s, const NodePlace *out)
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
		lower_assign_groups(s);
		uint32_t nbuf = s->l->buf.n, nvv = s->l->check.n;
		for (uint32_t k = 0; k < g->output.n; k++) {
			if (can_be_computed_in(s, lower_output(g, k)))
				add_place(s, lower_output(g, k), out[k]);
		}
		choose_places(s);
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
	}
	list_members(s);
	for (Node n = g->first; n.i; n = node_next(g, n))
		TRY(lower_node(s, n));
	copy_outputs(s, out);
	return true;
}

void lower_init(Lower *s, Graph *g, Lower *parent, Lowered *l, StepList *steps)
{
	*s = (Lower){.g = g, .ir = g->ir, .l = l, .arena = g->ir->ctx->arena, .steps = steps,
	             .parent = parent};
	s->info.data = ARENA_ARRAY(s->arena, NodeInfo, g->node.n);
	s->info.n = s->info.cap = g->node.n;
}

void lower_place_constants(Lower *s)
{
	for (Node n = s->g->first; n.i; n = node_next(s->g, n))
		if (node_op(s->g, n) == OP_constant)
			add_place(s, n, lower_new_place(s, n, BUF_CONST, node_attr(s->g, n, "value")->c.i));
}

/* The value stored as output k. */
Node lower_output(const Graph *g, uint32_t k)
{
	Node n = g->output.data[k].node;
	return node_op(g, n) == OP_view_complex ? node_in(g, n, 0) : n;
}

/* The value read from an input: complex numbers as pairs of real ones. */
static Node lower_input(const Graph *g, Node n)
{
	Use u = node_data(g, n)->first_use;
	bool paired = u.i && dtype_is_complex(node_type(g, n)->dtype);
	return paired ? g->use.data[u.i].user : n;
}

static bool place_inputs(Lower *s)
{
	for (uint32_t k = 0; k < s->g->input.n; k++) {
		const GraphInput *in = &s->g->input.data[k];
		if (in->kind != INPUT_USER)
			return ctx_error(s->ir->ctx, NULL,
			                 "\"%s\" is written by the graph: compiled models cannot yet own "
			                 "mutable state",
			                 in->name);
		Node n = lower_input(s->g, in->node);
		NodePlace p = lower_new_place(s, n, BUF_INPUT, k);
		buf_of(s->l, p.buf)->layout_fixed = true;
		add_place(s, n, p);
	}
	return true;
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

Lowered *lower_graph(Graph *g, const LowerOptions *opt)
{
	uint32_t errors = g->ir->ctx->nerror;
	lower_explicit_padding(g);
	Lowered *l = lowered_new(g->ir, g);
	Lower s;
	lower_init(&s, g, NULL, l, &l->steps);
	s.opt = opt;
	if (!check_supported(&s) || !check_symbols(&s) || !place_inputs(&s))
		return NULL;
	lower_place_constants(&s);
	NodePlace *out = ARENA_ARRAY(s.arena, NodePlace, g->output.n);
	for (uint32_t k = 0; k < g->output.n; k++) {
		out[k] = lower_new_place(&s, lower_output(g, k), BUF_OUTPUT, k);
		buf_of(l, out[k].buf)->layout_fixed = true;
	}
	if (!lower_body_to(&s, out))
		return NULL;
	lower_choose_layouts(l);
	if (g->ir->ctx->nerror == errors)
		check_lowered(l);
	return l;
}
