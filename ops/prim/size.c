/* Sizes that depend on data: where a value becomes a symbol. */
#include <inttypes.h>
#include <stdio.h>

#include "ir/interp/priv.h"
#include "ops/prim/priv.h"
#include "ops/rules/batch.h"

static bool shape_to_size(Infer *f)
{
	Type x = infer_in(f, 0);
	Sym size;
	const Attr *most = infer_attr(f, "most");
	TRY(infer_sym(f, "size", &size));
	if (x.dtype != DT_i64 || x.n != 0)
		return infer_fail(f, "expected a 0-d i64, got %s of rank %u", dtype_name(x.dtype),
				  x.n);
	if (most->kind == ATTR_int && sym_kind(f->syms, size) == SYM_VAR)
		sym_set_most(f->syms, size, most->s);
	return true; /* no value */
}
INFER(to_size)

/* Returns what the size is where there are no members to say so. */
static Node size_of_none(Build *b, Sym size)
{
	int64_t lo, hi;
	if (!sym_uses_kind(b_syms(b), size, SYMVAR_UNBACKED))
		return b_from_size(b, size);
	sym_range(b_syms(b), size, &lo, &hi);
	return b_from_size(b, b_int(b, lo > 0 ? lo : 0));
}

/* Adds the batch. A tensor has one size: that of all members, which are compared when it runs. */
static Node batch_to_size(Build *b, Node n, const Node *in, const bool *batched, Sym batch)
{
	(void)batched;
	Node one = b_reduce(b, REDUCE_MAX, in[0], 1, DT_i64);
	Node same = b_reduce(b, REDUCE_AND, b_bin(b, OP_eq, in[0], one), 1, DT_bool);
	const char *message = arena_printf(
		b->g->ir->ctx->arena, "%s: results of different sizes for the members of a batch",
		node_str(b->g, n, "what"));
	b_node(b, OP_assert, &same, 1, (Attr[]){attr_none(), attr_str(b->g->ir, message)}, 2);
	if (sym_le(b_syms(b), b_int(b, 1), batch) != YES) {
		Node none =
			b_bin(b, OP_eq, b_from_size(b, batch), b_full_int(b, DT_i64, 0, 0, NULL));
		one = b_select(b, none, size_of_none(b, node_sym(b->g, n, "size")), one);
	}
	return batch_again(b, n, &one, batch_attrs(b, n));
}

static bool eval_to_size(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	(void)out;
	char text[512];
	int64_t v = tensor_i64(in, 0), lo, hi, before;
	Sym size = node_sym(g, n, "size");
	if (sym_eval(e->syms, size, e->sym, e->value, e->nsym, &before)) {
		if (v == before)
			return true;
		snprintf(text, sizeof text, node_size_differs(g, n, e->bound), (long long)v,
			 (long long)before);
		return ctx_error(e->ctx, node_where(g, n), "%s", text);
	}
	sym_range(e->syms, size, &lo, &hi);
	if (v < lo || v > hi) {
		snprintf(text, sizeof text, node_size_message(g, n), (long long)v);
		return ctx_error(e->ctx, node_where(g, n), "%s", text);
	}
	return interp_born(e, g, n, size, v);
}

OP(to_size) {
	.schema = "to_size(Tensor x, *, int size, int? most=None, str what) -> ()",
	.doc = "size, a symbol that gets its value here, is x; where it has one it is the same. "
	       "`what` is counted, and is at most `most`",
	.effect = true,
	.infer = infer_to_size,
	.eval = eval_to_size,
	.batch = batch_to_size,
	.lower = {.role = LOWER_ROOT, .reads = ALL_OPERANDS},
	.sample = "i64[] of 7, size=7, what=\"a number\"",
};
