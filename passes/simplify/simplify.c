/* Identities.
 *
 *   %2 = permute(%1, perm=[1, 0])
 *   %3 = permute(%2, perm=[1, 0])      ->   readers of %3 read %1
 *   %4 = mul(%3, %one)                 ->   readers of %4 read %1
 *
 * Every rule makes the graph smaller, or moves a broadcast, a gather, a constant operand or a
 * conversion in one direction only, so the rewriting ends. No rule changes a floating-point result,
 * -0 and NaN included, but pow_constant, whose powers are those of aten.pow.Tensor_Scalar. Dead
 * nodes are left to dce. */
#include "passes/simplify/simplify.h"

#include "passes/simplify/rules.h"

static const Rule *const lists[] = {scalar_rules, shape_rules, row_rules,   reduce_rules,
				    conv_rules,   low_rules,   update_rules};

static Node apply(Build *b, Node n)
{
	Op op = node_op(b->g, n);
	for (size_t k = 0; k < sizeof lists / sizeof(Rule *); k++)
		for (const Rule *r = lists[k]; r->name; r++) {
			if (r->op != op && r->op != OP_none)
				continue;
			Node new = r->apply(b, n);
			if (!new.i || new.i == n.i)
				continue;
			if (node_type_id(b->g, new).i != node_type_id(b->g, n).i)
				ctx_bug(b->g->ir->ctx, "rule %s makes %s of %s at %s", r->name,
					type_str(b->g->ir, node_type_id(b->g, new)),
					type_str(b->g->ir, node_type_id(b->g, n)),
					node_where(b->g, n));
			return new;
		}
	return (Node){0};
}

bool pass_simplify(Graph *g, PassCtx *c)
{
	bool changed = false;
	for (Node n = g->first; n.i;) {
		Node before = node_prev(g, n), next = node_next(g, n);
		if (node_nuses(g, n)) {
			Build b = pass_build(g, n);
			Node new = apply(&b, n);
			if (new.i) {
				pass_replace(g, n, new);
				changed = true;
				/* Visit what was built; readers come later anyway. */
				next = before.i ? node_next(g, before) : g->first;
			}
		}
		n = next;
	}
	return pass_subgraphs(g, c, pass_simplify) || changed;
}
