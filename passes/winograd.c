/* A convolution of 3 x 3 taps becomes a product of matrices for each place of a tile, if that is
 * predicted to take clearly less time (ir/target/winograd.h):
 *
 *   %y = conv(%x, %w, pad=[1, 1])   -> %v = winograd_input(pad(%x), tile=4) [36, N, C, H/4, W/4]
 *                                        %p = contract(%v, %u)                     [36, N, H/4,
 *                                                                                  W/4, O]
 *                                        %y = winograd_output(%p, tile=4)          [N, O, H, W]
 *
 * with %u = G w G': of constant taps a constant, computed in f64 and rounded once; of others
 * winograd_input(%w, part="filter"). The padding reaches to the end of the last tile. The gradient
 * of the taps, a convolution with a result of 3 x 3, becomes products of the same kind:
 *
 *   %d = conv(%x, %g, size=[3, 3])      -> %v = winograd_input(pad(%x)) [36, C, N, H/4, W/4]
 *                                        %h = winograd_input(pad(%g), part="results")
 *                                                                       [36, O, N, H/4, W/4]
 *                                        %p = contract(%v, %h)          [36, C, O]
 *                                        %d = winograd_output(%p, part="filter") [C, O, 3, 3]
 *
 * Once, on what is otherwise done: nothing makes convolutions of these. */
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

/* Whether n is a convolution in two dimensions, f32 throughout, stride 1, one group. */
static bool has_form(const Graph *g, Node n)
{
	if (node_op(g, n) != OP_conv || node_rank(g, n) != 5)
		return false;
	Node x = node_in(g, n, 0), w = node_in(g, n, 1);
	const bool f32 = node_dtype(g, x) == DT_f32 && node_dtype(g, w) == DT_f32 &&
			 node_dtype(g, n) == DT_f32;
	return f32 && is_one(g, node_dim(g, w, 0)) && is_all(g, n, "stride", 1) &&
	       is_all(g, n, "dilation", 1) && is_all(g, n, "dilation_in", 1);
}

/* Whether the last two dimensions of n have three elements each. */
static bool is_filter(const Graph *g, Node n)
{
	const SymTab *syms = graph_syms(g);
	return sym_is(syms, node_dim(g, n, 3), WINOGRAD_TAPS) &&
	       sym_is(syms, node_dim(g, n, 4), WINOGRAD_TAPS);
}

/* Sets *l to the layer at hint sizes. What wins there wins at larger sizes: the work for the taps
 * stays. Returns false if n is neither a convolution with 3 x 3 taps nor has a result of 3 x 3. */
static bool layer_of(const Graph *g, Node n, WinogradLayer *l)
{
	const SymTab *syms = graph_syms(g);
	Node x = node_in(g, n, 0), w = node_in(g, n, 1);
	const bool taps = is_filter(g, w);
	const Sym *dim = node_type(g, taps ? n : w)->dim, *in = node_type(g, x)->dim;
	if (!taps && !is_filter(g, n))
		return false;
	*l = (WinogradLayer){.kind = !taps                ? WINOGRAD_TAPS_GRADIENT
				     : node_const(g, w).i ? WINOGRAD_KNOWN_TAPS
							  : WINOGRAD_NEW_TAPS,
			     .images = sym_hint(syms, in[taps ? 0 : 2]),
			     .rows = sym_hint(syms, dim[3]),
			     .cols = sym_hint(syms, dim[4]),
			     .in = sym_hint(syms, in[taps ? 2 : 0]),
			     .out = sym_hint(syms, node_dim(g, n, 2))};
	return true;
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

/* Returns winograd_input of x[N, C, H, W] in so many tiles. */
static Node into_products(Build *b, Node x, uint32_t m, WinogradPart part, const Sym *tiles)
{
	const Attr attr[] = {attr_none(), attr_int(b->g->ir, m), attr_ints(tiles, 2),
			     attr_str(b->g->ir, winograd_part_name[part])};
	return b_node(b, OP_winograd_input, &x, 1, attr, 4);
}

/* Returns the transformed taps: [1, O, C, 3, 3] -> [n * n, C, O]. */
static Node transformed_taps(Build *b, PassCtx *c, Node taps, const Winograd *w)
{
	const Graph *g = b->g;
	const Sym *dim = node_type(g, taps)->dim;
	if (!node_const(g, taps).i) {
		const Sym one[] = {b_int(b, 1), b_int(b, 1)};
		Node x = b_permute(b, b_reshape(b, taps, 4, dim + 1),
				   (const uint32_t[]){1, 0, 2, 3});
		x = into_products(b, x, w->m, WINOGRAD_FILTER, one);
		return b_reshape(b, x, 3, node_type(g, x)->dim);
	}
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

/* Returns x, padded below by low[] and above up to size[]. */
static Node padded(Build *b, Node x, const Sym *low, const Sym *size)
{
	SymTab *syms = b_syms(b);
	const Sym none = sym_int(syms, 0), *dim = node_type(b->g, x)->dim;
	Sym high[] = {none, none, none, none};
	for (uint32_t k = 0; k < 2; k++)
		high[2 + k] = sym_sub(syms, sym_sub(syms, size[k], low[k]), dim[2 + k]);
	return b_pad(b, x, (const Sym[]){none, none, low[0], low[1]}, high, b_scalar(b, DT_f32, 0));
}

/* Returns x of n, padded as far as tiles reach, without the dimension of one element: [N, C, H, W],
 * or as they are named in a gradient of taps. */
static Node padded_input(Build *b, Node n, uint32_t m, const Sym *tiles)
{
	SymTab *syms = b_syms(b);
	const Graph *g = b->g;
	Node x = node_in(g, n, 0), base = below_reshape(g, x, 2);
	const Sym *dim = node_type(g, x)->dim;
	uint32_t count;
	const Sym *pad = node_ints(g, n, "pad", &count);
	bool same = node_rank(g, base) == 4 && sym_eq(syms, node_dim(g, base, 0), dim[0]) == YES;
	base = same ? base : b_reshape(b, x, 4, (const Sym[]){dim[0], dim[2], dim[3], dim[4]});
	Sym inputs[2];
	for (uint32_t k = 0; k < 2; k++)
		inputs[k] = sym_addi(syms, sym_muli(syms, tiles[k], m), WINOGRAD_TAPS - 1);
	return padded(b, base, pad, inputs);
}

/* Returns winograd_output of x, for n, of that size. */
static Node from_products(Build *b, Node n, Node x, uint32_t m, WinogradPart part, const Sym *size)
{
	const Attr attr[] = {attr_none(), attr_int(b->g->ir, m), attr_ints(size, 2),
			     attr_str(b->g->ir, winograd_part_name[part])};
	Node y = b_node(b, OP_winograd_output, &x, 1, attr, 4);
	graph_set_name(b->g, y, b->g->node_name.data[n.i]);
	return y;
}

static void tiles_of(SymTab *syms, const Sym *extent, uint32_t m, Sym *tiles)
{
	for (uint32_t k = 0; k < 2; k++)
		tiles[k] = sym_ceildiv(syms, extent[k], sym_int(syms, m));
}

static void replace(Graph *g, Node n, uint32_t m, PassCtx *c)
{
	const Winograd w = winograd_matrices(m);
	Build b = pass_build(g, n);
	const Type *t = node_type(g, n);
	Sym tiles[2];
	tiles_of(graph_syms(g), t->dim + 3, m, tiles);
	Node taps = transformed_taps(&b, c, node_in(g, n, 1), &w);
	Node x = into_products(&b, padded_input(&b, n, m, tiles), m, WINOGRAD_INPUTS, tiles);
	x = b_contract(&b, x, taps, (const uint32_t[][2]){{0, 0}}, 1, (const uint32_t[][2]){{2, 1}},
		       1);
	Node y = from_products(&b, n, x, m, WINOGRAD_RESULTS, t->dim + 3);
	pass_replace(g, n, b_reshape(&b, y, t->n, t->dim));
}

/* Replaces the gradient of taps: the tiles are those of the gradient of the result. */
static void replace_gradient(Graph *g, Node n, uint32_t m)
{
	SymTab *syms = graph_syms(g);
	Build b = pass_build(g, n);
	const Type *t = node_type(g, n);
	const Node dy = node_in(g, n, 1);
	const Sym *dim = node_type(g, dy)->dim, none = sym_int(syms, 0), one = sym_int(syms, 1);
	Sym tiles[2], size[2];
	tiles_of(syms, dim + 3, m, tiles);
	for (uint32_t k = 0; k < 2; k++)
		size[k] = sym_muli(syms, tiles[k], m);
	Node x = into_products(&b, padded_input(&b, n, m, tiles), m, WINOGRAD_INPUTS, tiles);
	Node y = padded(&b, b_reshape(&b, dy, 4, dim + 1), (const Sym[]){none, none}, size);
	y = into_products(&b, y, m, WINOGRAD_RESULTS, tiles);
	x = b_contract(&b, x, y, (const uint32_t[][2]){{0, 0}}, 1,
		       (const uint32_t[][2]){{2, 2}, {3, 3}, {4, 4}}, 3);
	x = b_reshape(&b, x, 5, (const Sym[]){node_dim(g, x, 0), t->dim[0], one, one, t->dim[2]});
	y = from_products(&b, n, x, m, WINOGRAD_FILTER, t->dim + 3);
	pass_replace(g, n, b_reshape(&b, y, t->n, t->dim));
}

bool pass_winograd(Graph *g, PassCtx *c)
{
	bool changed = false;
	for (Node n = g->first, next; n.i; n = next) {
		next = node_next(g, n);
		WinogradLayer layer;
		if (c->target->gpu || !has_form(g, n) || !layer_of(g, n, &layer))
			continue;
		const WinogradChoice choice = winograd_choose(c->target, &layer);
		if (choice.tile && layer.kind == WINOGRAD_TAPS_GRADIENT)
			replace_gradient(g, n, choice.tile);
		else if (choice.tile)
			replace(g, n, choice.tile, c);
		changed |= choice.tile != 0;
	}
	if (changed)
		graph_dce(g);
	return pass_subgraphs(g, c, pass_winograd) || changed;
}
