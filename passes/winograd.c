/* A convolution of 3 x 3 constant taps becomes a product of matrices for each place of a tile, if
 * that is predicted to take clearly less time (ir/target/winograd.h):
 *
 *   %y = conv(%x, %w, pad=[1, 1])   -> %v = winograd_input(pad(%x), tile=4) [36, N, C, H/4, W/4]
 *                                        %p = contract(%v, %u)                     [36, N, H/4,
 *                                                                                  W/4, O]
 *                                        %y = winograd_output(%p, tile=4)          [N, O, H, W]
 *
 * with the constant %u = G w G' of f64, rounded once. The padding reaches to the end of the last
 * tile. Once, on what is otherwise done: nothing makes convolutions of these. */
#include "ir/target/winograd_matrices.h"

#include "ir/target/winograd.h"
#include "passes/common/questions.h"
#include "passes/pass.h"

static bool is_all(const Graph *g, Node n, const char *list, int64_t value)
{
	int64_t v[MAX_RANK];
	uint32_t count;
	bool all = const_list(g, n, list, v, &count);
	for (uint32_t k = 0; k < count && all; k++)
		all = v[k] == value;
	return all;
}

/* Whether n is a convolution by a constant of 3 x 3 taps, f32 throughout, stride 1, one group. */
static bool has_form(const Graph *g, Node n)
{
	const SymTab *syms = graph_syms(g);
	if (node_op(g, n) != OP_conv || node_rank(g, n) != 5)
		return false;
	Node x = node_in(g, n, 0), w = node_in(g, n, 1);
	bool taps = node_const(g, w).i && is_one(g, node_dim(g, w, 0));
	for (uint32_t k = 3; k < 5; k++)
		taps = taps && sym_is(syms, node_dim(g, w, k), WINOGRAD_TAPS);
	bool f32 = node_dtype(g, x) == DT_f32 && node_dtype(g, w) == DT_f32 &&
		   node_dtype(g, n) == DT_f32;
	return taps && f32 && is_all(g, n, "stride", 1) && is_all(g, n, "dilation", 1) &&
	       is_all(g, n, "dilation_in", 1);
}

/* Returns the layer at hint sizes. What wins there wins at larger sizes: the weights are
 * transformed before. */
static WinogradLayer layer_of(const Graph *g, Node n)
{
	const SymTab *syms = graph_syms(g);
	Node x = node_in(g, n, 0);
	return (WinogradLayer){.images = sym_hint(syms, node_dim(g, n, 0)),
			       .rows = sym_hint(syms, node_dim(g, n, 3)),
			       .cols = sym_hint(syms, node_dim(g, n, 4)),
			       .in = sym_hint(syms, node_dim(g, x, 2)),
			       .out = sym_hint(syms, node_dim(g, n, 2))};
}

/* ---- weights ---- */

static Node taps_matrix(Build *b, const Winograd *w)
{
	Ir *ir = b->g->ir;
	const int64_t dim[] = {w->n, WINOGRAD_TAPS};
	Const c = {.name = "", .dtype = DT_f64, .rank = 2, .bytes = w->n * sizeof w->g[0]};
	c.data = arena_dup(ir->ctx->arena, w->g, c.bytes);
	c.dim = arena_dup(ir->ctx->arena, dim, sizeof dim);
	return b_const(b, ir_const(ir, c));
}

/* Returns transformed_taps of a constant whose data are there: what the contractions give, in a
 * fifth of the time. */
static Node transformed_now(Build *b, const Const *taps, const Winograd *w)
{
	Ir *ir = b->g->ir;
	const int64_t dim[] = {w->n * w->n, taps->dim[2], taps->dim[1]};
	Const c = {.name = "", .dtype = DT_f32, .rank = 3, .bytes = sizeof(float)};
	for (uint32_t k = 0; k < c.rank; k++)
		c.bytes *= (uint64_t)dim[k];
	float *place = arena_alloc(ir->ctx->arena, c.bytes);
	winograd_filters(w, taps->data, (size_t)dim[2], (size_t)dim[1], place);
	c.data = place;
	c.dim = arena_dup(ir->ctx->arena, dim, sizeof dim);
	return b_const(b, ir_const(ir, c));
}

/* Returns the transformed taps: [1, O, C, 3, 3] -> [n * n, C, O]. */
static Node transformed_taps(Build *b, PassCtx *c, Node taps, const Winograd *w)
{
	const Graph *g = b->g;
	const Sym *dim = node_type(g, taps)->dim;
	const Const *known = ir_const_of(g->ir, node_const(g, taps));
	if (known->data && !(c->keep_params && const_is_replaceable(g->ir, node_const(g, taps))))
		return transformed_now(b, known, w);
	Node matrix = taps_matrix(b, w);
	Node x = b_convert(b, b_reshape(b, taps, 4, dim + 1), DT_f64);
	/* [i, O, C, kw] */
	x = b_contract(b, matrix, x, NULL, 0, (const uint32_t[][2]){{1, 2}}, 1);
	/* [j, i, O, C] */
	x = b_convert(b, b_contract(b, matrix, x, NULL, 0, (const uint32_t[][2]){{1, 3}}, 1),
		      DT_f32);
	x = b_permute(b, x, (const uint32_t[]){1, 0, 3, 2});
	x = b_reshape(b, x, 3, (const Sym[]){b_int(b, w->n * w->n), dim[2], dim[1]});
	return fold_node(b->g, c, x);
}

/* ---- the convolution ---- */

/* Returns x of n, padded as far as tiles reach: [N, C, H, W]. */
static Node padded_input(Build *b, Node n, uint32_t m, const Sym *tiles)
{
	SymTab *syms = b_syms(b);
	const Graph *g = b->g;
	Node x = node_in(g, n, 0), base = below_reshape(g, x, 2);
	const Sym *dim = node_type(g, x)->dim;
	uint32_t count;
	const Sym *pad = node_ints(g, n, "pad", &count), none = sym_int(syms, 0);
	Sym low[] = {none, none, pad[0], pad[1]}, high[] = {none, none, none, none};
	bool same = node_rank(g, base) == 4 && sym_eq(syms, node_dim(g, base, 0), dim[0]) == YES;
	base = same ? base : b_reshape(b, x, 4, (const Sym[]){dim[0], dim[2], dim[3], dim[4]});
	for (uint32_t k = 0; k < 2; k++) {
		Sym inputs = sym_addi(syms, sym_muli(syms, tiles[k], m), WINOGRAD_TAPS - 1);
		high[2 + k] = sym_sub(syms, sym_sub(syms, inputs, pad[k]), dim[3 + k]);
	}
	return b_pad(b, base, low, high, b_scalar(b, DT_f32, 0));
}

static void replace(Graph *g, Node n, uint32_t m, PassCtx *c)
{
	SymTab *syms = graph_syms(g);
	const Winograd w = winograd_matrices(m);
	Build b = pass_build(g, n);
	const Type *t = node_type(g, n);
	Sym tiles[2];
	for (uint32_t k = 0; k < 2; k++)
		tiles[k] = sym_ceildiv(syms, t->dim[3 + k], sym_int(syms, m));
	Node taps = transformed_taps(&b, c, node_in(g, n, 1), &w);
	Node x = padded_input(&b, n, m, tiles);
	Attr attr[] = {attr_none(), attr_int(g->ir, m), attr_ints(tiles, 2)};
	x = b_node(&b, OP_winograd_input, &x, 1, attr, 3);
	x = b_contract(&b, x, taps, (const uint32_t[][2]){{0, 0}}, 1, (const uint32_t[][2]){{2, 1}},
		       1);
	attr[2] = attr_ints(t->dim + 3, 2);
	Node y = b_node(&b, OP_winograd_output, &x, 1, attr, 3);
	graph_set_name(g, y, g->node_name.data[n.i]);
	pass_replace(g, n, b_reshape(&b, y, t->n, t->dim));
}

bool pass_winograd(Graph *g, PassCtx *c)
{
	bool changed = false;
	for (Node n = g->first, next; n.i; n = next) {
		next = node_next(g, n);
		if (c->target->gpu || !has_form(g, n))
			continue;
		const WinogradLayer layer = layer_of(g, n);
		const WinogradChoice choice = winograd_choose(c->target, &layer);
		if (choice.tile)
			replace(g, n, choice.tile, c);
		changed |= choice.tile != 0;
	}
	if (changed)
		graph_dce(g);
	return pass_subgraphs(g, c, pass_winograd) || changed;
}
