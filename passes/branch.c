/* Branches that need not be: those whose condition is known, and those that cost less than
 * deciding.
 *
 *   %c = cond(%p, [%x], yes=graph(%x) { %a = neg(%x)  return %a }, no=graph(%x) { return %x })
 *   %r = get(%c, index=0)
 * becomes
 *   %a = neg(%x)
 *   %r = select(%p, %a, %x)
 *
 * A condition becomes selects where both bodies are element-wise and without checks, effects and
 * requirements of sizes, so that nothing can go wrong in the one not taken, and where computing
 * both takes less time than a phase: a branch is a phase or more, and what reads the results cannot
 * join the kernels that compute them. The values are the same. Ends because every step removes a
 * branch. */
#include "ir/scalar/scalar.h"
#include "ir/target/work.h"
#include "passes/common/questions.h"
#include "passes/pass.h"

/* ---- what a branch costs ---- */

/* Returns the most elements that n may have; -1 if no bound is known. */
static int64_t most_elements(const Graph *g, Node n)
{
	int64_t lo, hi;
	sym_range(graph_syms(g), type_numel(g->ir, node_type_id(g, n)), &lo, &hi);
	return hi == SYM_INF ? -1 : hi;
}

static bool is_pointwise(Op op)
{
	const OpLower *l = op_lower(op);
	return op_is_scalar(op) || l->role == LOWER_MAP || l->role == LOWER_LEAF ||
	       l->role == LOWER_MEMORY || (l->role == LOWER_INDEX && l->fuses == FUSE_ALWAYS);
}

static uint32_t op_cost(const Graph *g, Node n)
{
	DType in[4];
	uint32_t nin = node_nin(g, n);
	const OpLower *l = op_lower(node_op(g, n));
	if (!op_is_scalar(node_op(g, n)))
		return l->role == LOWER_MAP ? 1 : 0;
	for (uint32_t k = 0; k < nin && k < 4; k++)
		in[k] = dtype_compute(node_dtype(g, node_in(g, n, k)));
	const ScFn *fn = scalar_fn(node_op(g, n), in, nin);
	return fn ? fn->cost : 1;
}

static bool stays_within(const SymTab *t, Sym e)
{
	int64_t lo, hi;
	sym_range(t, e, &lo, &hi);
	return sym_kind(t, e) == SYM_VAR || (lo > -SYM_INF && hi < SYM_INF);
}

/* Whether no number among n's arguments can leave 64 bits. */
static bool numbers_stay_within(const Graph *g, Node n)
{
	const SymTab *t = graph_syms(g);
	for (uint32_t k = 0; k < op_schema(node_op(g, n))->narg; k++) {
		const Attr *a = ir_attr(g->ir, node_data(g, n)->attr, k);
		if (a->kind == ATTR_int && !stays_within(t, a->s))
			return false;
		for (uint32_t i = 0; a->kind == ATTR_ints && i < a->n; i++)
			if (!stays_within(t, a->ints[i]))
				return false;
	}
	return true;
}

/* Adds the operations of a body to *work. False where it is more than element-wise, or may be of
 * any size. */
static bool count_body(const Graph *body, Work *work)
{
	if (body->guard.n)
		return false;
	for (Node n = body->first; n.i; n = node_next(body, n)) {
		int64_t elements = is_pointwise(node_op(body, n)) && !node_has_effect(body, n)
					   ? most_elements(body, n)
					   : -1;
		if (elements < 0 || !numbers_stay_within(body, n))
			return false;
		work->operations += (double)elements * op_cost(body, n);
	}
	return true;
}

/* Whether computing both bodies and selecting takes no longer than a phase. */
static bool worth_selecting(const PassCtx *c, const Graph *yes, const Graph *no)
{
	Work work = {0};
	TRY(count_body(yes, &work) && count_body(no, &work));
	for (uint32_t k = 0; k < yes->output.n; k++) {
		int64_t elements = most_elements(yes, yes->output.data[k].node);
		TRY(elements >= 0);
		work.operations += (double)elements;
	}
	return target_cycles(c->target, work) <= target_cycles(c->target, (Work){.phases = 1});
}

/* ---- rewriting ---- */

static void inline_body(Graph *g, Node n, const char *name, Node *out)
{
	uint32_t first, nxs = node_args(g, n, "xs", &first);
	Node *arg = ARENA_ARRAY(g->ir->ctx->scratch, Node, nxs);
	for (uint32_t k = 0; k < nxs; k++)
		arg[k] = node_in(g, n, first + k);
	graph_inline(g, n, node_attr(g, n, name)->graph, arg, out);
}

/* Makes readers of result k read out[k], and erases the branch. */
static void replace_results(Graph *g, Node n, const Node *out, uint32_t nout)
{
	for (uint32_t k = 0; k < nout; k++) {
		Use u = node_data(g, n)->first_use;
		for (Node get; (get = node_next_get(g, &u, k)).i; u = node_data(g, n)->first_use) {
			graph_replace(g, get, out[k]);
			graph_erase(g, get);
		}
	}
	graph_erase(g, n);
}

/* Says whether pred holds, where that is known. Parameters that may be replaced are not looked
 * at. */
static Truth known(const Graph *g, const PassCtx *c, Node pred)
{
	if (is_splat(g, pred, 1) || is_splat(g, pred, 0))
		return is_splat(g, pred, 1) ? YES : NO;
	if (!node_const(g, pred).i)
		return MAYBE;
	const Const *value = ir_const_of(g->ir, node_attr(g, pred, "value")->c);
	if ((c->keep_params && const_is_replaceable(g->ir, node_const(g, pred))) || !value->bytes)
		return MAYBE;
	return *(const uint8_t *)value->data ? YES : NO;
}

static bool rewrite(Graph *g, const PassCtx *c, Node n)
{
	Node pred = node_in(g, n, 0);
	Truth holds = known(g, c, pred);
	const Graph *yes = node_attr(g, n, "yes")->graph, *no = node_attr(g, n, "no")->graph;
	uint32_t nout = yes->output.n;
	Node *out = ARENA_ARRAY(g->ir->ctx->scratch, Node, nout),
	     *other = ARENA_ARRAY(g->ir->ctx->scratch, Node, nout);
	if (holds != MAYBE) {
		inline_body(g, n, holds == YES ? "yes" : "no", out);
		replace_results(g, n, out, nout);
		return true;
	}
	if (!worth_selecting(c, yes, no))
		return false;
	inline_body(g, n, "yes", out);
	inline_body(g, n, "no", other);
	Build b = pass_build(g, n);
	for (uint32_t k = 0; k < nout; k++)
		out[k] = b_select(&b, pred, out[k], other[k]);
	replace_results(g, n, out, nout);
	return true;
}

/* Rewrites what stands inside of a branch first: without branches it may be element-wise. */
bool pass_branch(Graph *g, PassCtx *c)
{
	bool changed = pass_subgraphs(g, c, pass_branch);
	for (Node n = g->first, next; n.i; n = next) {
		next = node_next(g, n);
		if (node_op(g, n) != OP_cond)
			continue;
		Node before = node_prev(g, n);
		if (!rewrite(g, c, n))
			continue;
		changed = true;
		/* what was inlined may hold branches */
		next = before.i ? node_next(g, before) : g->first;
	}
	return changed;
}
