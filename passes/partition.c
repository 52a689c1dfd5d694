/* A graph of results and gradients becomes two: one that computes the results and saves what the other one, which computes the
 * gradients, reads of the first's values.
 *
 *   graph @f(%x, %w, %ct.y) {               graph @f(%x, %w) {            graph @f(%x, %w, %saved.0, %saved.1, %ct.y) {
 *     %1 = contract(%x, %w)                   %1 = contract(%x, %w)         assert(%saved.0 == 5711..)
 *     %y = sin(%1)                     ->     %y = sin(%1)                  %2 = mul(%ct.y, cos(%saved.1))
 *     %2 = mul(%ct.y, cos(%1))                return %y, 5711.., %1         %g.x = contract(%2, %w)
 *     %g.x = contract(%2, %w)               }                               return %g.x
 *     return %y, %g.x                                                     }
 *   }
 *
 * Whatever depends on a cotangent is of the second graph, and so is what can be made of its inputs, of constants and of saved values
 * by element-wise functions and index maps, which are cheaper to compute again than to store and read. Of a chain of such functions
 * the first value is saved, unless a later one is smaller (a comparison's result, a sum's). State is not there any more when gradients are
 * computed, and neither are inputs that the model writes: what is read of their old values is saved.
 *
 * saved.0 is a number made of the graph's text, so that values that another model's forward saved are refused.
 *
 * Linear in the number of nodes: two sweeps, in which a node becomes available once. */
#include <string.h>

#include "base/hash.h"
#include "passes/derive_priv.h"

typedef struct {
	Graph *g;
	uint32_t ninput, noutput; /* of the model */
	bool *late;               /* by node: it depends on a cotangent */
	bool *there;              /* the second graph has it: an input, a constant, saved, or made of these */
	bool *saved;
	ARRAY(Node) list; /* saved, in program order of discovery */
} Parting;

/* ---- what is cheap ---- */

static bool is_cheap(const Graph *g, Node n)
{
	Op op = node_op(g, n);
	if (node_has_effect(g, n))
		return false;
	if (op_kind(op) == OP_COMPOSITE) /* element-wise */
		return op_info(op)->deriv[0];
	LowerRole role = op_lower(op)->role;
	return op_is_scalar(op) || role == LOWER_MAP || role == LOWER_INDEX || role == LOWER_LEAF;
}

static bool reads_only(const Parting *p, Node n, const bool *what)
{
	for (uint32_t k = 0; k < node_nin(p->g, n); k++) {
		Node x = node_in(p->g, n, k);
		if (x.i && !what[x.i])
			return false;
	}
	return true;
}

/* An operand that is not there, if it is the only one. */
static Node missing(const Parting *p, Node n)
{
	Node found = {0};
	for (uint32_t k = 0; k < node_nin(p->g, n); k++) {
		Node x = node_in(p->g, n, k);
		if (!x.i || p->there[x.i] || x.i == found.i)
			continue;
		if (found.i)
			return (Node){0};
		found = x;
	}
	return found;
}

/* Is it certain that x has no more bytes than y? */
static bool no_larger(const Graph *g, Node x, Node y)
{
	SymTab *s = g->ir->syms;
	if (node_dtype(g, x) == DT_none)
		return false;
	Sym nx = sym_muli(s, type_numel(g->ir, node_type_id(g, x)), (int64_t)dtype_size(node_dtype(g, x)));
	Sym ny = sym_muli(s, type_numel(g->ir, node_type_id(g, y)), (int64_t)dtype_size(node_dtype(g, y)));
	return sym_le(s, nx, ny) == YES;
}

/* ---- what is saved ---- */

static void find_late(Parting *p)
{
	Graph *g = p->g;
	for (uint32_t k = p->ninput; k < g->input.n; k++)
		p->late[g->input.data[k].node.i] = true;
	for (Node n = g->first; n.i; n = node_next(g, n))
		for (uint32_t k = 0; k < node_nin(g, n); k++)
			p->late[n.i] |= p->late[node_in(g, n, k).i];
}

static bool is_written(const Graph *g, uint32_t input)
{
	for (uint32_t k = 0; k < g->output.n; k++)
		if (g->output.data[k].writes == (int32_t)input)
			return true;
	return false;
}

static void find_inputs(Parting *p)
{
	Graph *g = p->g;
	for (uint32_t k = 0; k < p->ninput; k++)
		p->there[g->input.data[k].node.i] = g->input.data[k].kind == INPUT_USER && !is_written(g, k);
}

static bool save(Parting *p, Node n)
{
	Graph *g = p->g;
	Ctx *ctx = g->ir->ctx;
	const Type *t = node_type(g, n);
	if (t->dtype == DT_none)
		return ctx_error(ctx, node_where(g, n), "several values in one are needed for gradients, and cannot be saved");
	for (uint32_t d = 0; d < t->n; d++)
		if (sym_uses_kind(g->ir->syms, t->dim[d], SYMVAR_UNBACKED))
			return ctx_error(ctx, node_where(g, n),
					 "a value whose size depends on data would have to be saved for gradients: not supported; "
					 "compile the graph of --mode vjp as one entry instead");
	p->there[n.i] = p->saved[n.i] = true;
	array_push(ctx->arena, &p->list, n);
	return true;
}

/* Up along cheap functions of one value to where it is not larger than what is asked for, and down again. */
static bool obtain(Parting *p, Node n)
{
	Graph *g = p->g;
	Node from = n;
	ARRAY(Node) way = {0};
	while (is_cheap(g, from)) {
		Node up = missing(p, from);
		if (!up.i || !no_larger(g, up, n))
			break;
		array_push(g->ir->ctx->scratch, &way, from);
		from = up;
	}
	TRY(save(p, from));
	while (way.n)
		p->there[way.data[--way.n].i] = true;
	return true;
}

/* Is it read by what depends on a cotangent, or one of the gradients itself? */
static void find_wanted(const Parting *p, bool *wanted)
{
	const Graph *g = p->g;
	for (Node n = g->first; n.i; n = node_next(g, n))
		for (uint32_t k = 0; k < node_nin(g, n) && p->late[n.i]; k++)
			wanted[node_in(g, n, k).i] = true;
	for (uint32_t k = p->noutput; k < g->output.n; k++)
		wanted[g->output.data[k].node.i] = true;
	wanted[0] = false;
}

static bool choose(Parting *p)
{
	Graph *g = p->g;
	bool *wanted = arena_calloc(g->ir->ctx->scratch, g->node.n, sizeof(bool));
	find_late(p);
	find_inputs(p);
	find_wanted(p, wanted);
	for (Node n = g->first; n.i; n = node_next(g, n))
		if (wanted[n.i] && !p->late[n.i] && !is_cheap(g, n) && !node_const(g, n).i && !p->there[n.i])
			TRY(save(p, n));
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		if (p->late[n.i] || p->there[n.i])
			continue;
		p->there[n.i] = node_const(g, n).i || (is_cheap(g, n) && reads_only(p, n, p->there));
		if (wanted[n.i] && !p->there[n.i])
			TRY(obtain(p, n));
	}
	return true;
}

/* ---- the two graphs ---- */

static const char *saved_name(const Graph *g, uint32_t k)
{
	return arena_printf(g->ir->ctx->arena, "saved.%u", k);
}

static int64_t mark_of(const Graph *g)
{
	Text t;
	text_init(&t, g->ir->ctx->scratch);
	graph_print(g, &t);
	return (int64_t)(hash_bytes(t.data, t.n, 0) >> 2);
}

static Node add_input(Graph *to, const Graph *from, uint32_t k)
{
	const GraphInput *in = &from->input.data[k];
	Node n = graph_add_input(to, in->name, in->kind, node_type_id(from, in->node));
	to->input.data[to->input.n - 1].init = in->init;
	return n;
}

static Graph *finished(Graph *g)
{
	graph_dce(g);
	if (!graph_verify(g))
		ctx_bug_verify(g->ir->ctx, "partition");
	return g;
}

static Graph *first_part(const Parting *p, int64_t mark)
{
	const Graph *from = p->g;
	Graph *g = graph_new(from->ir, from->name);
	Arena *scratch = g->ir->ctx->scratch;
	Node *arg = ARENA_ARRAY(scratch, Node, from->input.n), *out = ARENA_ARRAY(scratch, Node, from->output.n);
	Build b = {.g = g};
	for (uint32_t k = 0; k < p->ninput; k++)
		arg[k] = add_input(g, from, k);
	for (uint32_t k = p->ninput; k < from->input.n; k++)
		arg[k] = b_zeros(&b, node_type_id(from, from->input.data[k].node));
	uint32_t first = from->output.n - p->list.n;
	graph_inline(g, (Node){0}, from, arg, out);
	for (uint32_t k = 0; k < p->noutput; k++)
		graph_add_output(g, from->output.data[k].name, out[k], from->output.data[k].writes);
	graph_add_output(g, saved_name(g, 0), b_full_int(&b, DT_i64, mark, 0, NULL), -1);
	for (uint32_t k = first; k < from->output.n; k++)
		graph_add_output(g, from->output.data[k].name, out[k], -1);
	return finished(g);
}

/* Effects, such as assertions, are the first part's where they do not depend on cotangents. */
static void drop_early_effects(Graph *g, uint32_t nearly)
{
	Parting p = {.g = g, .ninput = nearly, .late = arena_calloc(g->ir->ctx->scratch, g->node.n, sizeof(bool))};
	find_late(&p);
	for (Node n = g->last, before; n.i; n = before) {
		before = node_prev(g, n);
		if (node_op(g, n) != OP_input && !p.late[n.i] && !node_nuses(g, n))
			graph_erase(g, n);
	}
}

static void check_mark(Build *b, Node given, int64_t mark)
{
	Node same = b_bin(b, OP_eq, given, b_full_int(b, DT_i64, mark, 0, NULL));
	const Attr attr[2] = {attr_none(), attr_str(b->g->ir, "saved.0, saved.1, ... are not what this model's forward_saving gave")};
	b_node(b, OP_assert, &same, 1, attr, 2);
}

static Graph *second_part(const Parting *p, int64_t mark)
{
	const Graph *from = p->g;
	Graph *g = graph_new(from->ir, from->name);
	Arena *scratch = g->ir->ctx->scratch;
	uint32_t first = from->output.n - p->list.n;
	Node *arg = ARENA_ARRAY(scratch, Node, from->input.n), *out = ARENA_ARRAY(scratch, Node, from->output.n);
	Node *saved = ARENA_ARRAY(scratch, Node, p->list.n + 1);
	Build b = {.g = g};
	for (uint32_t k = 0; k < p->ninput; k++)
		if (from->input.data[k].kind == INPUT_USER)
			arg[k] = add_input(g, from, k);
	saved[0] = graph_add_input(g, saved_name(g, 0), INPUT_USER, ir_type(g->ir, DT_i64, 0, NULL));
	for (uint32_t k = 0; k < p->list.n; k++)
		saved[k + 1] = graph_add_input(g, saved_name(g, k + 1), INPUT_USER, node_type_id(from, p->list.data[k]));
	uint32_t nearly = g->input.n;
	for (uint32_t k = p->ninput; k < from->input.n; k++)
		arg[k] = add_input(g, from, k);
	for (uint32_t k = 0; k < p->ninput; k++)
		if (from->input.data[k].kind != INPUT_USER) /* nothing reads it in the end */
			arg[k] = b_zeros(&b, node_type_id(from, from->input.data[k].node));
	graph_inline(g, (Node){0}, from, arg, out);
	for (uint32_t k = p->noutput; k < first; k++)
		graph_add_output(g, from->output.data[k].name, out[k], -1);
	for (uint32_t k = 0; k < p->list.n; k++)
		graph_replace(g, out[first + k], saved[k + 1]);
	drop_early_effects(g, nearly);
	check_mark(&b, saved[0], mark);
	return finished(g);
}

bool transform_partition(Graph *joint, uint32_t ninput, uint32_t noutput, Graph *part[2])
{
	graph_enter(joint);
	Arena *scratch = joint->ir->ctx->scratch;
	Parting p = {.g = joint, .ninput = ninput, .noutput = noutput, .late = arena_calloc(scratch, joint->node.n, sizeof(bool)),
		     .there = arena_calloc(scratch, joint->node.n, sizeof(bool)), .saved = arena_calloc(scratch, joint->node.n, sizeof(bool))};
	TRY(choose(&p));
	for (uint32_t k = 0; k < p.list.n; k++)
		graph_add_output(joint, saved_name(joint, k + 1), p.list.data[k], -1);
	int64_t mark = mark_of(joint);
	part[0] = first_part(&p, mark);
	part[1] = second_part(&p, mark);
	return true;
}
