/* Composites become what they mean.
 *
 *   %y = aten.linear(%x, %w, %b) : f32[8, 10]
 * becomes
 *   %1 = contract(%x, %w, ...) : f32[8, 10]
 *   %2 = broadcast(%b, ...) : f32[8, 10]
 *   %y = add(%1, %2) : f32[8, 10]
 *
 * The type of the replacement is compared with the one the file gave: provably different, or
 * different at the hints or at a sampled point, is bad input; undecided keeps the file's and
 * asserts it at entry: of %x[:, -1:] the file says [N, 1], which holds where there are columns. Ends because expansions hold composites of lower rank only (tests/unit/ir_samples.c
 * expands a sample of every op and bounds depth and size). Does not simplify. */
#include "passes/pass.h"

enum { SAMPLES = 16 };

/* ---- types ---- */

/* A pseudo-random number that depends on its arguments only. */
static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t h = a * 0x9e3779b97f4a7c15u + b;
	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9u;
	return h ^ h >> 32;
}

/* Point 0 is the hints, point 1 the least values, the others lie within range. torch.export takes sizes to be 2 at least when it
 * writes types, whatever their range. */
static int64_t sample(const SymTab *t, Sym var, uint32_t k, uint32_t point)
{
	int64_t lo, hi;
	sym_range(t, var, &lo, &hi);
	if (sym_var_kind(t, var) == SYMVAR_SIZE && lo < 2)
		lo = hi < 2 ? hi : 2;
	if (point == 0)
		return sym_hint(t, var);
	if (point == 1 && lo > -SYM_INF)
		return lo;
	lo = lo > -SYM_INF ? lo : 0;
	uint64_t span = hi - lo < 64 ? (uint64_t)(hi - lo) + 1 : 65;
	return lo + (int64_t)(mix(point, k) % span);
}

/* Do the entry conditions hold there? Unless they do, the point says nothing. */
static bool admissible(const Graph *g, const Sym *var, const int64_t *value, uint32_t n)
{
	for (uint32_t k = 0; k < g->guard.n; k++) {
		const GraphGuard *d = &g->guard.data[k];
		int64_t a, b;
		if (!sym_eval(g->ir->syms, d->a, var, value, n, &a) ||
		    !sym_eval(g->ir->syms, d->b, var, value, n, &b))
			continue;
		if ((d->kind == GUARD_EQ && a != b) || (d->kind == GUARD_NE && a == b) ||
		    (d->kind == GUARD_LE && a > b))
			return false;
	}
	return true;
}

/* NO: they differ, provably or at a sampled point. MAYBE: equal as far as one can see. */
static Truth same_extent(Graph *g, Sym x, Sym y)
{
	SymTab *t = g->ir->syms;
	Truth eq = sym_eq(t, x, y);
	if (eq != MAYBE)
		return eq;
	uint32_t n = sym_nvars(t);
	Sym *var = arena_calloc(g->ir->ctx->scratch, n, sizeof *var);
	int64_t *value = arena_calloc(g->ir->ctx->scratch, n, sizeof *value);
	for (uint32_t k = 0; k < n; k++)
		var[k] = sym_var_at(t, k);
	for (uint32_t p = 0; p <= SAMPLES; p++) {
		int64_t a, b;
		for (uint32_t k = 0; k < n; k++)
			value[k] = sample(t, var[k], k, p);
		if (admissible(g, var, value, n) && sym_eval(t, x, var, value, n, &a) &&
		    sym_eval(t, y, var, value, n, &b) && a != b)
			return NO;
	}
	return MAYBE;
}

static Truth same_type(Graph *g, TypeId x, TypeId y)
{
	if (x.i == y.i)
		return YES;
	const Type a = *ir_type_of(g->ir, x), b = *ir_type_of(g->ir, y);
	Truth all = YES;
	if (a.dtype != b.dtype || a.n != b.n)
		return NO;
	for (uint32_t k = 0; k < a.n; k++) {
		Truth t = a.dtype == DT_none ? same_type(g, a.elem[k], b.elem[k])
					     : same_extent(g, a.dim[k], b.dim[k]);
		if (t == NO)
			return NO;
		all = t == MAYBE ? MAYBE : all;
	}
	return all;
}

/* `new` with the type the file gave, of which we cannot tell that it differs. */
static Node adopt(Build *b, Node new, TypeId file)
{
	const Type t = *ir_type_of(b->g->ir, file);
	if (node_type_id(b->g, new).i == file.i)
		return new;
	if (t.dtype == DT_none) {
		Node *part = arena_calloc(b->g->ir->ctx->scratch, t.n, sizeof *part);
		for (uint32_t k = 0; k < t.n; k++)
			part[k] = adopt(b, b_get(b, new, k), t.elem[k]);
		return b_tuple(b, part, t.n);
	}
	for (uint32_t k = 0; k < t.n; k++)
		graph_guard(b->g, GUARD_EQ, node_dim(b->g, new, k), t.dim[k],
			    "a size inferred here and the one in the file");
	return b_reshape(b, new, t.n, t.dim);
}

/* ---- expansion ---- */

/* The replacement of n, none after ctx_error or for an op without result. */
static Node expand(Graph *g, Node n)
{
	Ctx *ctx = g->ir->ctx;
	uint32_t errors = ctx->nerror;
	Build b = pass_build(g, n);
	b.keep = true; /* they are visited next (expand_level) */
	Op op = node_op(g, n);
	Node new = op_expand_node(&b, n);
	if (ctx->nerror != errors)
		return (Node){0};
	if (op_schema(op)->nresult == 0)
		return (Node){0};
	if (!new.i) {
		ctx_error(ctx, node_where(g, n), "%s has no expansion for these operands",
			  op_name(op));
		return new;
	}
	TypeId file = node_type_id(g, n), ours = node_type_id(g, new);
	Truth same = file.i ? same_type(g, ours, file) : YES;
	if (same == NO) {
		ctx_error(ctx, node_where(g, n), "%s gives %s here, but the file says %s",
			  op_name(op), type_str(g->ir, ours), type_str(g->ir, file));
		return (Node){0};
	}
	return same == MAYBE ? adopt(&b, new, file) : new;
}

/* Elements read from a tuple that now stands there; the last reader is the first of the list. */
static void forward_gets(Graph *g, Node tuple)
{
	ARRAY(Node) get = {0};
	for (Use u = node_data(g, tuple)->first_use; u.i; u = g->use.data[u.i].next)
		if (node_op(g, g->use.data[u.i].user) == OP_get)
			array_push(g->ir->ctx->scratch, &get, g->use.data[u.i].user);
	while (node_op(g, tuple) == OP_tuple && get.n) {
		Node n = get.data[--get.n];
		pass_replace(g, n, node_in(g, tuple, (uint32_t)node_int(g, n, "index")));
	}
}

static bool replace(Graph *g, Node n, PassCtx *c)
{
	uint32_t errors = g->ir->ctx->nerror;
	bool tuple = false;
	Node new = expand(g, n);
	if (g->ir->ctx->nerror != errors) {
		c->failed = true;
		return false;
	}
	if (new.i) {
		tuple = node_op(g, new) == OP_tuple;
		if (node_nuses(g, n))
			graph_replace(g, n, new);
	}
	graph_erase(g, n);
	if (tuple)
		forward_gets(g, new);
	return true;
}

static bool kept(const Graph *g, Node n, const PassCtx *c, Level level)
{
	Op op = node_op(g, n);
	if (c->stays)
		return c->stays(g, n, c->stays_user);
	if (level == LEVEL_CANON && op_is_kept(op))
		return true;
	for (uint32_t k = 0; k < c->nkeep; k++)
		if (c->keep[k] == op)
			return true;
	return false;
}

static bool expand_level(Graph *g, PassCtx *c, Level level)
{
	bool changed = false;
	for (Node n = g->first; n.i && !c->failed;) {
		Op op = node_op(g, n);
		Node before = node_prev(g, n), next = node_next(g, n);
		if (op_kind(op) == OP_COMPOSITE && !kept(g, n, c, level)) {
			changed |= replace(g, n, c);
			/* What it was built from may hold composites again. */
			next = before.i ? node_next(g, before) : g->first;
		}
		n = next;
	}
	return changed;
}

bool pass_canon(Graph *g, PassCtx *c)
{
	bool changed = expand_level(g, c, LEVEL_CANON);
	return pass_subgraphs(g, c, pass_canon) || changed;
}

bool pass_decompose(Graph *g, PassCtx *c)
{
	bool changed = expand_level(g, c, LEVEL_DECOMPOSE);
	return pass_subgraphs(g, c, pass_decompose) || changed;
}
