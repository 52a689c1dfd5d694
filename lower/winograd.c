/* Kernels of Winograd's transforms. A point of a kernel is a tile of one image and channel:
 *
 *   winograd_input     loads the elements of the tile, stores (m + 2)^2 stages of B' d B, G w G' or
 *                      A y A'
 *   winograd_output    loads (m + 2)^2 products, computes A' x A or G' x G; what follows it one to
 *                      one, up to the root, is evaluated for each element of the tile, and stored
 *                      by a stage each
 *
 * Elements past the end of the result are computed at its last row or column, and stored there
 * before the element that belongs there: stages of one point run in order. */
#include "lower/winograd.h"

#include "ir/target/winograd_matrices.h"

/* ---- one dimension ---- */

typedef struct {
	Kernel *k;
	Arena *arena;
	DType d;
} Maker;

static Kx plus(const Maker *m, Kx x, Kx y)
{
	return kx_op(m->k, m->arena, OP_add, m->d, (Kx[]){x, y}, 2);
}

static Kx minus(const Maker *m, Kx x, Kx y)
{
	return kx_op(m->k, m->arena, OP_sub, m->d, (Kx[]){x, y}, 2);
}

static Kx times(const Maker *m, Kx x, double c)
{
	Kx in[] = {x, kx_const(m->k, m->arena, m->d, c)};
	return c == 1 ? x : kx_op(m->k, m->arena, OP_mul, m->d, in, 2);
}

/* Returns the sum of coef[i] * x[i] for i = n - 1, n - 1 - step, ... >= 0, without terms whose
 * factor is 0. */
static Kx combine(const Maker *m, const double *coef, const Kx *x, uint32_t n, uint32_t step)
{
	Kx sum = {0};
	for (uint32_t i = n; i > 0; i = i > step ? i - step : 0) {
		double c = coef[i - 1];
		if (c == 0)
			continue;
		if (!sum.i)
			sum = times(m, x[i - 1], c);
		else if (c < 0)
			sum = minus(m, sum, times(m, x[i - 1], -c));
		else
			sum = plus(m, sum, times(m, x[i - 1], c));
	}
	return sum;
}

/* Computes y = M d of a matrix into products. The rows of a pair of points are the even and the odd
 * part, added and subtracted. */
static void input_line(const Maker *m, const WinogradMatrix *w, const Kx *d, Kx *y)
{
	const uint32_t last = w->rows - 1;
	y[0] = combine(m, w->c[0], d, w->cols, 1);
	y[last] = combine(m, w->c[last], d, w->cols, 1);
	for (uint32_t i = 1; i < last; i += 2) {
		const uint32_t even_end = (w->cols - 1) / 2 * 2 + 1, odd_end = w->cols / 2 * 2;
		Kx even = combine(m, w->c[i], d, even_end, 2),
		   odd = combine(m, w->c[i], d, odd_end, 2);
		y[i] = plus(m, even, odd);
		y[i + 1] = minus(m, even, odd);
	}
}

/* Computes y = M x of a matrix from products. A row has the sum or the difference of each pair of
 * points. */
static void output_line(const Maker *m, const WinogradMatrix *w, const Kx *x, Kx *y)
{
	for (uint32_t r = 0; r < w->rows; r++) {
		Kx part[WINOGRAD_MAX];
		double coef[WINOGRAD_MAX];
		uint32_t n = 0;
		for (uint32_t i = 1; i + 1 < w->cols; i += 2) {
			part[n] = r % 2 ? minus(m, x[i], x[i + 1]) : plus(m, x[i], x[i + 1]);
			coef[n++] = w->c[r][i];
		}
		part[n] = x[0];
		coef[n++] = w->c[r][0];
		part[n] = x[w->cols - 1];
		coef[n++] = w->c[r][w->cols - 1];
		y[r] = combine(m, coef, part, n, 1);
	}
}

/* ---- nodes ---- */

static WinogradPart part_of(const Graph *g, Node n)
{
	WinogradPart part = WINOGRAD_RESULTS;
	winograd_part_named(node_str(g, n, "part"), &part);
	return part;
}

static WinogradMatrix matrix_into(const Graph *g, Node n)
{
	const Winograd w = winograd_matrices((uint32_t)node_int(g, n, "tile"));
	return winograd_into(&w, part_of(g, n));
}

static WinogradMatrix matrix_from(const Graph *g, Node n)
{
	const Winograd w = winograd_matrices((uint32_t)node_int(g, n, "tile"));
	return winograd_from(&w, part_of(g, n));
}

/* ---- winograd_input ---- */

/* Loads a tile to d[i * cols + j]. Its image and channel are at[0] and at[1], its place at[2] and
 * at[3]. */
static void load_tile(Trace *t, Node x, const WinogradMatrix *w, const Sym *at, Kx *d)
{
	SymTab *syms = t->s->ir->syms;
	for (uint32_t i = 0; i < w->cols; i++)
		for (uint32_t j = 0; j < w->cols; j++) {
			const Sym idx[] = {at[0], at[1],
					   sym_addi(syms, sym_muli(syms, at[2], w->step), i),
					   sym_addi(syms, sym_muli(syms, at[3], w->step), j)};
			d[i * w->cols + j] = trace_value(t, x, idx, (Kx){0});
		}
}

void lower_winograd_input(Lower *s, Node n)
{
	Graph *g = s->g;
	const WinogradMatrix w = matrix_into(g, n);
	NodePlace to = lower_result_place(s, n, 0);
	Trace t = {.s = s, .root = n};
	Sym at[5];
	Kx d[WINOGRAD_MAX * WINOGRAD_MAX], half[WINOGRAD_MAX][WINOGRAD_MAX], line[WINOGRAD_MAX],
		v[WINOGRAD_MAX];
	trace_start(&t, lower_name(s, n));
	for (uint32_t k = 1; k < 5; k++)
		at[k] = trace_root_axis(&t, node_dim(g, n, k));
	trace_all_outer(&t);
	load_tile(&t, node_in(g, n, 0), &w, at + 1, d);
	const Maker m = {t.k, s->arena, dtype_compute(node_dtype(g, n))};
	for (uint32_t j = 0; j < w.cols; j++) {
		for (uint32_t i = 0; i < w.cols; i++)
			line[i] = d[i * w.cols + j];
		input_line(&m, &w, line, v);
		for (uint32_t i = 0; i < w.rows; i++)
			half[i][j] = v[i];
	}
	for (uint32_t i = 0; i < w.rows; i++) {
		input_line(&m, &w, half[i], v);
		for (uint32_t j = 0; j < w.rows; j++) {
			at[0] = sym_int(g->ir->syms, i * w.rows + j);
			Stage st = trace_global_stage(&t, STAGE_MAP, &to, at, 5);
			st.value = v[j];
			trace_push_stage(&t, st);
		}
	}
	trace_order_axes(&t);
	lower_push_kernel(s, t.k);
	lower_publish_result(s, n, 0, &to);
}

/* ---- winograd_output ---- */

/* Finds the dimension of the root whose axis idx is. Returns false if there is none, or the root
 * has not as many elements there as n in dimension k. */
static bool is_root_axis(const Trace *t, Node n, uint32_t k, Sym idx, uint32_t *dim)
{
	const Graph *g = t->s->g;
	for (uint32_t r = 0; r < node_rank(g, t->root); r++)
		if (t->root_axis[r].i == idx.i && trace_axis_number(t, idx) >= 0) {
			*dim = r;
			return sym_eq(g->ir->syms, node_dim(g, t->root, r), node_dim(g, n, k)) ==
			       YES;
		}
	return false;
}

static Kx meet_tiles(Trace *t, Node n, const Sym *idx)
{
	SymTab *syms = t->s->ir->syms;
	bool fits = !t->tiles.node.i || t->tiles.node.i == n.i;
	for (uint32_t k = 0; k < 2; k++) {
		fits = fits && is_root_axis(t, n, 2 + k, idx[2 + k], &t->tiles.dim[k]);
		for (uint32_t other = 0; other < 2; other++)
			fits = fits && !sym_uses(syms, idx[other], idx[2 + k]);
	}
	if (!fits)
		return trace_store_first(t, n, "its tiles are no tiles of what reads it");
	t->tiles.node = n;
	return kx_zero(t->k, t->s->arena, dtype_compute(node_dtype(t->s->g, n)));
}

Kx trace_tiles(Trace *t, Node n, const Sym *idx)
{
	if (t->only_maps)
		return trace_store_first(t, n, "a contraction reads it");
	if (t->has_reduce)
		return trace_store_first(t, n, "what reads it reduces");
	if (!t->tiles.at[0].i)
		return meet_tiles(t, n, idx);
	const WinogradMatrix w = matrix_from(t->s->g, n);
	const Maker m = {t->k, t->s->arena, dtype_compute(node_dtype(t->s->g, n))};
	/* equal expressions are one: all elements share them */
	Kx row[WINOGRAD_MAX], x[WINOGRAD_MAX], y[WINOGRAD_MAX_TILE];
	for (uint32_t j = 0; j < w.cols; j++) {
		for (uint32_t i = 0; i < w.cols; i++) {
			const Sym at[] = {sym_int(t->s->ir->syms, i * w.cols + j), idx[0],
					  t->tiles.at[0], t->tiles.at[1], idx[1]};
			x[i] = trace_value(t, node_in(t->s->g, n, 0), at, (Kx){0});
		}
		output_line(&m, &w, x, y);
		row[j] = y[t->tiles.element[0]];
	}
	output_line(&m, &w, row, y);
	return y[t->tiles.element[1]];
}

/* Returns the root's index of an element of the tile, along dimension k of the tiles; that of the
 * root's last element, if the tile's is past the end. */
static Sym element_index(const Trace *t, const WinogradMatrix *w, uint32_t k, uint32_t element)
{
	SymTab *syms = t->s->ir->syms;
	Sym extent = node_dim(t->s->g, t->root, t->tiles.dim[k]);
	Sym at = sym_addi(syms, sym_muli(syms, t->tiles.at[k], w->step), element);
	return sym_divides(syms, w->step, extent) ? at
						  : sym_min(syms, at, sym_addi(syms, extent, -1));
}

/* Whether the result has no such element in any tile: one before it is as far as it reaches. */
static bool is_past_end(const Trace *t, const WinogradMatrix *w, uint32_t k, uint32_t element)
{
	return element > 0 &&
	       element_index(t, w, k, element).i == element_index(t, w, k, element - 1).i;
}

bool lower_build_tiles(Lower *s, const Trace *met, Kernel **out, StoredFirst *first)
{
	const Graph *g = s->g;
	SymTab *syms = s->ir->syms;
	Node root = met->root, n = met->tiles.node;
	const WinogradMatrix w = matrix_from(g, n);
	Trace t = {.s = s, .root = root, .tiles = {.node = n}};
	const NodeInfo *info = node_info(s, root);
	trace_start(&t, lower_name(s, root));
	for (uint32_t k = 0; k < 2; k++)
		t.tiles.dim[k] = met->tiles.dim[k];
	for (uint32_t r = 0; r < node_rank(g, root); r++) {
		int k = r == t.tiles.dim[0] ? 0 : r == t.tiles.dim[1] ? 1 : -1;
		Sym extent = node_dim(g, root, r);
		t.root_axis[r] = trace_root_axis(
			&t, k < 0 ? extent : sym_ceildiv(syms, extent, sym_int(syms, w.step)));
		if (k >= 0)
			t.tiles.at[k] = t.root_axis[r];
	}
	t.nroot = t.k->axis.n;
	for (uint32_t e = w.rows * w.rows; e-- > 0;) {
		const uint32_t element[] = {e / w.rows, e % w.rows};
		if (is_past_end(&t, &w, 0, element[0]) || is_past_end(&t, &w, 1, element[1]))
			continue;
		for (uint32_t k = 0; k < 2; k++) {
			t.tiles.element[k] = element[k];
			t.root_axis[t.tiles.dim[k]] = element_index(&t, &w, k, element[k]);
		}
		Kx value = trace_value(&t, root, t.root_axis, (Kx){0});
		if (t.blocked.node.i)
			break;
		trace_add_stores(&t, root, info->place.data, info->place.n, value);
	}
	*first = t.blocked;
	if (t.blocked.node.i)
		return false;
	trace_order_axes(&t);
	*out = t.k;
	return true;
}
