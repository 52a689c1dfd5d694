/* Calls of the user's operators (weft_op.h): torch.ops.mylib.decay.default becomes call(...,
 * op="mylib::decay"). */
#include "frontend/pt2/priv.h"
#include "ops/user/userop.h"

/* Checks that what the operator's types give is what the file says; what is not known is
 * required of the sizes. */
static bool check_type(Scope *s, const UserOp *op, uint32_t k, Node made, const Result *r)
{
	Import *im = s->st->im;
	Graph *g = s->st->g;
	const Type *got = node_type(g, made);
	bool same = got->dtype == r->meta.dtype && got->n == r->meta.rank;
	for (uint32_t d = 0; d < got->n && same; d++)
		same = sym_eq(im->syms, got->dim[d], r->meta.size[d]) != NO;
	if (!same)
		return ctx_error(im->ctx, s->where,
				 "result %u of %s is %s by its types, and %s in the file", k,
				 op->name, type_str(im->ir, node_type_id(g, made)),
				 type_str(im->ir, meta_type(im, &r->meta)));
	for (uint32_t d = 0; d < r->meta.rank; d++)
		graph_guard(g, GUARD_EQ, node_dim(g, made, d), r->meta.size[d],
			    arena_printf(im->ctx->arena, "%s: dimension %u of result %u", op->name,
					 d, k));
	return true;
}

bool import_user(Scope *s, const json_t *node, const UserOp *op)
{
	State *st = s->st;
	Import *im = st->im;
	NodeCall c = {0};
	Results r;
	Attr attr[4];
	TRY(call_read_as(s, node, &op->schema, &c) && read_results(s, node, &r));
	const char *wrong = userop_attrs(im->ir, op, c.attr, attr);
	if (wrong)
		return ctx_error(im->ctx, s->where, "%s: %s", op->name, wrong);
	Node made = b_node(&s->b, OP_call, c.in.data, c.in.n, attr, 4);
	TRY(made.i);
	graph_set_name(st->g, made, node_label(node));
	if (r.n != op->nout && !(op->nout == 0 && r.n == 1 && !r.data[0].name))
		return ctx_error(im->ctx, s->where, "%s has %u results, the file lists %u",
				 op->name, op->nout, r.n);
	for (uint32_t k = 0; k < op->nout; k++) {
		if (!r.data[k].name)
			continue;
		Node n = b_get(&s->b, made, k);
		TRY(n.i && check_type(s, op, k, n, &r.data[k]));
		graph_set_name(st->g, n, r.data[k].name);
		TRY(scope_bind(s, r.data[k].name, value_new(st, n, &r.data[k].meta)));
	}
	return true;
}
