/* The two graphs that a choice of what is saved makes of one. In the second what is computed again
 * stands as late as possible: in front of the first node that depends on a cotangent and needs it,
 * so that it does not lie in memory before. */
#include "base/hash.h"
#include "ir/build/text.h"
#include "ir/build/verify.h"
#include "ir/target/target.h"
#include "transform/partition/priv.h"

static const char *saved_name(const Graph *g, uint32_t k)
{
	return arena_printf(g->ir->ctx->arena, "saved.%u", k);
}

/* Returns a number of the graph with what is saved of it, by which it refuses another one's
 * values. */
static int64_t mark_of(const Parting *p)
{
	Text t;
	text_init(&t, p->g->ir->ctx->scratch);
	graph_print(p->g, &t);
	for (uint32_t k = 0; k < p->list.n; k++)
		text_printf(&t, "%u ", p->list.data[k].i);
	return (int64_t)(hash_bytes(t.data, t.n, 0) >> 2);
}

typedef struct {
	const Parting *p;
	const Graph *from;
	Graph *g;
	Node *map;        /* by node of `from` */
	ARRAY(Node) wait; /* to be copied, the last one first */
} GraphPart;

static GraphPart part_new(const Parting *p)
{
	GraphPart a = {.p = p,
		       .from = p->g,
		       .g = graph_beside(p->g, p->g->name),
		       .map = ZEROED(p->g, Node, p->g->node.n)};
	a.g->unrounded = p->g->unrounded;
	a.g->activations = p->g->activations;
	for (uint32_t k = 0; k < p->g->guard.n; k++) {
		const GraphGuard *o = &p->g->guard.data[k];
		graph_guard(a.g, o->kind, o->a, o->b, o->why);
	}
	return a;
}

static void add_input(GraphPart *a, uint32_t k)
{
	const GraphInput *in = &a->from->input.data[k];
	a->map[in->node.i] =
		graph_add_input(a->g, in->name, in->kind, node_type_id(a->from, in->node));
	a->g->input.data[a->g->input.n - 1].init = in->init;
}

static void copy(GraphPart *a, Node n)
{
	a->map[n.i] = graph_copy_node(a->g, (Node){0}, a->from, n, a->map);
}

static Graph *finished(Graph *g)
{
	graph_dce(g);
	if (!graph_verify(g))
		ctx_bug_verify(g->ir->ctx, "partition");
	return g;
}

static Node mark_node(Build *b, int64_t mark)
{
	return b_full_int(b, DT_i64, mark, 0, NULL);
}

/* Returns saved value k in the order in which it is kept, or from that (back) the value itself. */
static Node reordered(const Parting *p, Graph *g, uint32_t k, Node x, bool back)
{
	Build b = {.g = g};
	uint32_t perm[MAX_RANK], inverse[MAX_RANK], rank = node_rank(g, x),
						    space = p->space[p->list.data[k].i];
	if (!space)
		return x;
	partition_order(rank, space, perm);
	for (uint32_t i = 0; i < rank; i++)
		inverse[perm[i]] = i;
	return b_permute(&b, x, back ? inverse : perm);
}

static TypeId kept_type(const Parting *p, uint32_t k)
{
	Node n = p->list.data[k];
	uint32_t perm[MAX_RANK];
	if (!p->space[n.i])
		return node_type_id(p->g, n);
	Type t = *node_type(p->g, n);
	Sym dim[MAX_RANK];
	partition_order(t.n, p->space[n.i], perm);
	for (uint32_t i = 0; i < t.n; i++)
		dim[i] = t.dim[perm[i]];
	return ir_type(p->g->ir, t.dtype, t.n, dim);
}

/* Whether n marks several values: its results are its operands, so that nobody reads the node. */
static bool marks_several(const Graph *g, Node n)
{
	return op_info(node_op(g, n))->marks && node_dtype(g, n) == DT_none;
}

static Graph *first_part(const Parting *p, int64_t mark)
{
	GraphPart a = part_new(p);
	Build b = {.g = a.g};
	for (uint32_t k = 0; k < p->ninput; k++)
		add_input(&a, k);
	for (Node n = a.from->first; n.i; n = node_next(a.from, n)) {
		if (p->late[n.i] || a.map[n.i].i || marks_several(a.from, n) ||
		    n.i >= p->undo.first)
			continue;
		Node same = node_marked(a.from, n);
		if (same.i)
			a.map[n.i] = a.map[same.i];
		else
			copy(&a, n);
	}
	for (uint32_t k = 0; k < p->noutput; k++)
		graph_add_output(a.g, a.from->output.data[k].name,
				 a.map[a.from->output.data[k].node.i],
				 a.from->output.data[k].writes);
	graph_add_output(a.g, saved_name(a.g, 0), mark_node(&b, mark), -1);
	for (uint32_t k = 0; k < p->list.n; k++)
		graph_add_output(a.g, saved_name(a.g, k + 1),
				 reordered(p, a.g, k, a.map[p->list.data[k].i], false), -1);
	return finished(a.g);
}

static void check_mark(GraphPart *a, Node given, int64_t mark)
{
	Build b = {.g = a->g};
	Node same = b_bin(&b, OP_eq, given, mark_node(&b, mark));
	const Attr attr[2] = {
		attr_none(),
		attr_str(a->g->ir,
			 "saved.0, saved.1, ... are not what this model's forward_saving gave")};
	b_node(&b, OP_assert, &same, 1, attr, 2);
}

/* Copies n, and before it what it is computed from, in the order of its operands. */
static void copy_with_operands(GraphPart *a, Node n)
{
	Arena *scratch = a->g->ir->ctx->scratch;
	array_push(scratch, &a->wait, n);
	while (a->wait.n) {
		Node top = a->wait.data[a->wait.n - 1], same = partition_same(a->p, top);
		uint32_t before = a->wait.n;
		for (uint32_t k = same.i ? 1 : node_nin(a->from, top);
		     k-- > 0 && !a->map[top.i].i;) {
			Node x = same.i ? same : node_in(a->from, top, k);
			if (x.i && !a->map[x.i].i)
				array_push(scratch, &a->wait, x);
		}
		if (a->wait.n > before)
			continue;
		if (!a->map[top.i].i && same.i)
			a->map[top.i] = a->map[same.i];
		else if (!a->map[top.i].i)
			copy(a, top);
		a->wait.n--;
	}
}

static Graph *second_part(const Parting *p, int64_t mark)
{
	GraphPart a = part_new(p);
	const Graph *from = a.from;
	for (uint32_t k = 0; k < p->ninput; k++)
		if (from->input.data[k].kind == INPUT_USER)
			add_input(&a, k);
	Node given = graph_add_input(a.g, saved_name(a.g, 0), INPUT_USER,
				     ir_type(a.g->ir, DT_i64, 0, NULL));
	for (uint32_t k = 0; k < p->list.n; k++) {
		Node kept =
			graph_add_input(a.g, saved_name(a.g, k + 1), INPUT_USER, kept_type(p, k));
		a.map[p->list.data[k].i] = reordered(p, a.g, k, kept, true);
	}
	for (uint32_t k = p->ninput; k < from->input.n; k++)
		add_input(&a, k);
	check_mark(&a, given, mark);
	for (Node n = from->first; n.i; n = node_next(from, n))
		if (p->late[n.i] && !marks_several(from, n) &&
		    (node_nuses(from, n) || node_has_effect(from, n)))
			copy_with_operands(&a, n);
	for (uint32_t k = p->noutput; k < from->output.n; k++) {
		copy_with_operands(&a, from->output.data[k].node);
		graph_add_output(a.g, from->output.data[k].name, a.map[from->output.data[k].node.i],
				 -1);
	}
	return finished(a.g);
}

void partition_build(const Parting *p, Graph *part[2])
{
	int64_t mark = mark_of(p);
	part[0] = first_part(p, mark);
	part[1] = second_part(p, mark);
}

/* Whether n only marks values, and stays. Composites become what they are made of: a norm is
 * saved as the mean and variance of its rows, and the rest is computed again. */
static bool is_mark(const Graph *g, Node n, void *user)
{
	(void)user;
	return op_info(node_op(g, n))->marks != NULL;
}

static bool expand(Graph *g)
{
	static bool (*const tidy[])(Graph *, PassCtx *) = {pass_decompose, pass_simplify, pass_cse,
							   pass_row_sums, pass_dce};
	PassCtx c = {.stays = is_mark, .target = target_find("generic-c")};
	for (size_t k = 0; k < sizeof tidy / sizeof *tidy && !c.failed; k++)
		tidy[k](g, &c);
	return !c.failed;
}

bool transform_partition(Graph *joint, uint32_t ninput, uint32_t noutput, double budget,
			 Graph *part[2])
{
	TRY(expand(joint));
	Undo undo = partition_undo(joint, ninput);
	Parting p = {.undo = undo,
		     .again = ZEROED(joint, Node, joint->node.n),
		     .kept = ZEROED(joint, bool, joint->node.n),
		     .g = joint,
		     .ninput = ninput,
		     .noutput = noutput,
		     .late = ZEROED(joint, bool, joint->node.n),
		     .given = ZEROED(joint, bool, joint->node.n),
		     .wanted = ZEROED(joint, bool, joint->node.n),
		     .region = ZEROED(joint, uint32_t, joint->node.n),
		     .saved = ZEROED(joint, bool, joint->node.n)};
	TRY(partition_choose(&p, budget));
	p.space = partition_space(&p);
	partition_build(&p, part);
	return true;
}
