/* Factorisations: loops over panels of columns or rows. What a round does is a graph whose inputs
 * and outputs are regions of buffers, and whose extents depend on the round: so panels get smaller,
 * and what is updated is a contraction with the schedules of all contractions.
 *
 *   cholesky           rows k0..k1 of x, less those of the factor above times themselves; then row
 *                      by row, each divided by the root of its pivot
 *   triangular_solve   the same, with rows of A
 *   lu                 Crout's form: columns k0..k1 below k0, less the product of what is known;
 *                      column by column with pivots; then rows k0..k1. What is left of L is kept in
 *                      the rows of x, and is put in order at the end
 *   geqrf              columns k0..k1, reflector by reflector; then the reflectors are applied to
 *                      the columns behind, by products with their matrix
 *
 * With k1 = min(k0 + PANEL, n), round u of a panel handles row or column k0 + u. All steps follow
 * each other: each reads what the one before has stored. */
#include "lower/factor.h"

#include <string.h>

#include "ir/ops/prim/factor.h"
#include "ir/ops/prim/matrix.h"
#include "lower/stage.h"

enum { PANEL_ROWS = 64, PANEL_COLUMNS = 32, BODY_PLACES = 8 };

typedef struct {
	Lower *s;
	Node n;
	SymTab *syms;
	DType dtype;
	bool pairs;
	uint32_t lead; /* batch dimensions */
	Sym batch[MAX_RANK];
	Sym rows, columns; /* of operand 0 */
	bool inside; /* buffers have the batches behind the matrices, for vectors of members */
} Factor;

/* Whether the matrices are small, and the members many: then vectors hold members. */
static bool has_many_members(const Factor *f)
{
	enum { SMALL = 48, MANY = 16 };
	int64_t members = 1, rows, columns;
	if (!f->lead || !sym_is_const(f->syms, f->rows, &rows) || !sym_is_const(f->syms, f->columns, &columns))
		return false;
	for (uint32_t k = 0; k < f->lead; k++)
		members *= sym_hint(f->syms, f->batch[k]);
	return rows <= SMALL && columns <= SMALL && members >= MANY;
}

static Factor factor_of(Lower *s, Node n)
{
	Factor f = {.s = s, .n = n, .syms = s->ir->syms, .pairs = node_bool(s->g, n, "pairs")};
	const Type *t = node_type(s->g, node_in(s->g, n, 0));
	f.dtype = t->dtype;
	f.lead = t->n - 2 - f.pairs;
	memcpy(f.batch, t->dim, f.lead * sizeof *f.batch);
	f.rows = t->dim[f.lead];
	f.columns = t->dim[f.lead + 1];
	f.inside = has_many_members(&f);
	return f;
}

static Sym number(const Factor *f, int64_t v)
{
	return sym_int(f->syms, v);
}

/* ---- places ---- */

/* The batches, then extents; returns the rank. pairs: with a last dimension of two. */
static uint32_t shape(const Factor *f, const Sym *extent, uint32_t n, bool pairs, Sym *dim)
{
	memcpy(dim, f->batch, f->lead * sizeof *dim);
	memcpy(dim + f->lead, extent, n * sizeof *dim);
	if (pairs)
		dim[f->lead + n] = number(f, 2);
	return f->lead + n + pairs;
}

/* The same of a buffer. */
static uint32_t buffer_shape(const Factor *f, const Sym *extent, uint32_t n, bool pairs, Sym *dim)
{
	Sym all[MAX_RANK];
	uint32_t rank = shape(f, extent, n, pairs, all), behind = rank - f->lead;
	for (uint32_t k = 0; k < rank; k++)
		dim[k] = !f->inside ? all[k] : k < behind ? all[f->lead + k] : all[k - behind];
	return rank;
}

/* What is in a buffer, with its batches in front. */
static Node with_batches_first(Build *b, const Factor *f, Node x)
{
	uint32_t perm[MAX_RANK], rank = node_rank(b->g, x), behind = rank - f->lead;
	for (uint32_t k = 0; k < rank; k++)
		perm[k] = k < f->lead ? behind + k : k - f->lead;
	return f->inside && behind ? b_permute(b, x, perm) : x;
}

/* The reverse. */
static Node as_in_buffer(Build *b, const Factor *f, Node x)
{
	uint32_t perm[MAX_RANK], rank = x.i ? node_rank(b->g, x) : 0, behind = rank - f->lead;
	for (uint32_t k = 0; k < rank; k++)
		perm[k] = k < behind ? f->lead + k : k - behind;
	return x.i && f->inside && behind ? b_permute(b, x, perm) : x;
}

static NodePlace new_place(const Factor *f, DType d, const Sym *extent, uint32_t n, bool pairs)
{
	Sym dim[MAX_RANK];
	uint32_t rank = buffer_shape(f, extent, n, pairs, dim);
	BufId buf = lowered_buf(f->s->l, BUF_TEMP, 0, d, rank, dim, graph_name(f->s->g, f->n));
	buf_of(f->s->l, buf)->layout_fixed = f->inside;
	return (NodePlace){.buf = buf};
}

static NodePlace new_matrix(const Factor *f, Sym rows, Sym columns)
{
	return new_place(f, f->dtype, (Sym[]){rows, columns}, 2, f->pairs);
}

/* The part of a place that begins at an index behind the batches. */
static NodePlace part_of(const Factor *f, NodePlace p, const Sym *at, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		Sym *off = &p.off[f->inside ? k : f->lead + k];
		*off = off->i ? sym_add(f->syms, *off, at[k]) : at[k];
	}
	return p;
}

static NodePlace region(const Factor *f, NodePlace p, Sym row, Sym column)
{
	return part_of(f, p, (Sym[]){row, column}, 2);
}

/* ---- graphs over places ---- */

typedef struct {
	const Factor *f;
	Build b;
	NodePlace in[BODY_PLACES], out[BODY_PLACES];
} Body;

static Body body_new(const Factor *f, const char *name)
{
	Graph *g = graph_new(f->s->ir, name);
	return (Body){.f = f, .b = {.g = g, .loc = node_data(f->s->g, f->n)->loc, .where = node_near(f->s->g, f->n)}};
}

static Node take(Body *y, NodePlace p, DType d, const Sym *extent, uint32_t n, bool pairs)
{
	Sym dim[MAX_RANK];
	uint32_t rank = buffer_shape(y->f, extent, n, pairs, dim);
	y->in[y->b.g->input.n] = p;
	Node x = graph_add_input(y->b.g, "", INPUT_USER, ir_type(y->f->s->ir, d, rank, dim));
	return with_batches_first(&y->b, y->f, x);
}

/* The matrix at a region of a place. */
static Parts take_matrix(Body *y, NodePlace p, Sym row, Sym column, Sym rows, Sym columns)
{
	const Factor *f = y->f;
	Node x = take(y, region(f, p, row, column), f->dtype, (Sym[]){rows, columns}, 2, f->pairs);
	return mat_of(&y->b, x, f->pairs);
}

static void put(Body *y, Node x, NodePlace p)
{
	y->out[y->b.g->output.n] = p;
	x = as_in_buffer(&y->b, y->f, x);
	if (x.i)
		graph_add_output(y->b.g, "", x, -1);
}

static void put_matrix(Body *y, Parts x, NodePlace p, Sym row, Sym column)
{
	put(y, mat_node(&y->b, x), region(y->f, p, row, column));
}

/* Adds the steps of the graph to a list. */
static void body_lower(Body *y, StepList *to)
{
	factor_lower_graph(y->f->s, y->b.g, y->in, y->out, to);
}

/* ---- loops ---- */

static StepList *new_list(const Factor *f)
{
	return ARENA_NEW(f->s->arena, StepList);
}

/* Rounds 0 .. extent - 1: a loop, or the steps of the one round themselves. */
typedef struct {
	Step step;
	bool none, loops;
	Sym at;         /* the round */
	StepList *body; /* where its steps are added */
} Rounds;

static Rounds rounds_of(const Factor *f, const char *name, Sym extent, StepList *list)
{
	Rounds r = {.none = sym_is(f->syms, extent, 0), .loops = !sym_is(f->syms, extent, 1), .at = number(f, 0), .body = list};
	if (!r.loops || r.none)
		return r;
	r.body = new_list(f);
	r.at = sym_axis(f->syms, name, extent);
	/* schedules are chosen for the middle */
	sym_set_hint(f->syms, r.at, sym_hint(f->syms, extent) / 2);
	r.step = (Step){.kind = STEP_LOOP, .var = r.at, .extent = extent, .body = r.body};
	return r;
}

/* Of each pair, a round reads the first place and writes the second one. */
static void carry(const Factor *f, Rounds *r, const NodePlace *pair, uint32_t n)
{
	r->step.ncarry = n;
	r->step.carry = ARENA_ARRAY(f->s->arena, struct StepCarry, n);
	for (uint32_t k = 0; k < n; k++)
		r->step.carry[k] = (struct StepCarry){pair[2 * k].buf, pair[2 * k + 1].buf};
}

static void rounds_end(const Factor *f, const Rounds *r, StepList *list)
{
	if (r->loops && !r->none)
		array_push(f->s->arena, &list->step, r->step);
}

/* Panel t of `extent` elements. */
typedef struct {
	Sym first, width, end;
} Panel;

static Panel panel_at(const Factor *f, Sym t, Sym extent, int64_t most)
{
	Panel p = {.first = sym_muli(f->syms, t, most)};
	p.width = sym_min(f->syms, number(f, most), sym_sub(f->syms, extent, p.first));
	p.end = sym_add(f->syms, p.first, p.width);
	return p;
}

static Sym panel_count(const Factor *f, Sym extent, int64_t most)
{
	return sym_ceildiv(f->syms, extent, number(f, most));
}

/* ---- small graphs ---- */

static void fill(const Factor *f, StepList *list, NodePlace p, DType d, const Sym *extent, uint32_t n, bool pairs)
{
	Sym dim[MAX_RANK];
	Body y = body_new(f, "zeros");
	uint32_t rank = shape(f, extent, n, pairs, dim);
	put(&y, b_zeros(&y.b, ir_type(f->s->ir, d, rank, dim)), p);
	body_lower(&y, list);
}

static void copy_matrix(const Factor *f, StepList *list, NodePlace from, NodePlace to, Sym rows, Sym columns)
{
	Body y = body_new(f, "copy");
	Sym zero = number(f, 0);
	put_matrix(&y, take_matrix(&y, from, zero, zero, rows, columns), to, zero, zero);
	body_lower(&y, list);
}

/* What a reader of the node's results, or the node, expects of places. */
static Factor outside_of(const Factor *f)
{
	Factor outside = *f;
	outside.inside = false;
	return outside;
}

/* Copies between places inside and outside; into: to the inside. */
static void move(const Factor *f, NodePlace from, NodePlace to, bool into, DType d, const Sym *extent, uint32_t n, bool pairs)
{
	const Factor outside = outside_of(f);
	Body y = body_new(f, "move");
	y.f = into ? &outside : f;
	Node x = take(&y, from, d, extent, n, pairs);
	y.f = into ? f : &outside;
	put(&y, x, to);
	y.f = f;
	body_lower(&y, f->s->steps);
}

/* The operand, inside. */
static NodePlace operand_inside(const Factor *f, uint32_t k, Sym rows, Sym columns)
{
	NodePlace p = factor_operand(f->s, f->n, k);
	if (!f->inside)
		return p;
	NodePlace own = new_matrix(f, rows, columns);
	move(f, p, own, true, f->dtype, (Sym[]){rows, columns}, 2, f->pairs);
	return own;
}

/* The place of a result while it is computed. */
static NodePlace result_inside(const Factor *f, uint32_t k, DType d, const Sym *extent, uint32_t n, bool pairs)
{
	return f->inside ? new_place(f, d, extent, n, pairs) : lower_result_place(f->s, f->n, k);
}

/* Makes it known to its readers. */
static void publish(const Factor *f, uint32_t k, NodePlace p, DType d, const Sym *extent, uint32_t n, bool pairs)
{
	NodePlace to = p;
	if (f->inside) {
		to = lower_result_place(f->s, f->n, k);
		move(f, p, to, false, d, extent, n, pairs);
	}
	lower_publish_result(f->s, f->n, k, &to);
}

/* The number, from 1 on, of the first true element of a bool [.., n], or 0, as i32. */
static Node first_true(Build *b, Node wrong)
{
	uint32_t last = node_rank(b->g, wrong) - 1;
	Sym n = node_dim(b->g, wrong, last);
	Node k = b_bin_scalar(b, OP_add, b_iota(b, DT_i64, n), 1), never = b_full_int(b, DT_i64, INT64_MAX, 0, NULL);
	Node first = b_reduce(b, REDUCE_MIN, b_select(b, wrong, k, never), 1u << last, DT_none);
	first = b_select(b, b_bin(b, OP_eq, first, never), b_full_int(b, DT_i64, 0, 0, NULL), first);
	return b_convert(b, first, DT_i32);
}

/* The diagonal of [.., n, n], as [.., n]. */
static Node diagonal(Build *b, Node x, Sym n)
{
	uint32_t rank = node_rank(b->g, x);
	Node on = b_bin(b, OP_eq, b_unsqueeze(b, b_iota(b, DT_i64, n), -1), b_iota(b, DT_i64, n));
	return b_reduce(b, REDUCE_SUM, b_select(b, on, x, aten_like(b, x, 0)), 1u << (rank - 1), DT_none);
}

/* ---- cholesky ---- */

/* Rows of the panel in z, less the product: x[k0..k1, k0..] - U[..k0, k0..k1]^H U[..k0, k0..]. */
static void cholesky_panel(const Factor *f, StepList *list, const Panel *p, NodePlace x, NodePlace u, NodePlace z)
{
	Body y = body_new(f, "panel");
	Sym zero = number(f, 0), rest = sym_sub(f->syms, f->columns, p->first);
	Parts own = take_matrix(&y, x, p->first, p->first, p->width, rest);
	Parts left = take_matrix(&y, u, zero, p->first, p->first, p->width);
	Parts above = take_matrix(&y, u, zero, p->first, p->first, rest);
	Parts product = mat_times(&y.b, mat_adjoint(&y.b, left), above);
	put_matrix(&y, mat_sub(&y.b, own, product), z, zero, zero);
	body_lower(&y, list);
}

/* Row r of the factor, of which the rows of the panel above it are known: v is the row times its
 * pivot's root, which is first in v. */
static void cholesky_row(const Factor *f, StepList *list, const Panel *p, Sym row, NodePlace z, NodePlace u, NodePlace v)
{
	Sym zero = number(f, 0), one = number(f, 1), r = sym_add(f->syms, p->first, row), rest = sym_sub(f->syms, f->columns, r);
	Body y = body_new(f, "row");
	Build *b = &y.b;
	Parts own = take_matrix(&y, z, row, row, one, rest);
	Parts left = take_matrix(&y, u, p->first, r, row, one), above = take_matrix(&y, u, p->first, r, row, rest);
	Parts sum = mat_sum(b, mat_multiply(b, mat_conj(b, left), above), 1u << f->lead);
	put_matrix(&y, mat_sub(b, own, mat_unsqueeze(b, sum, (int)f->lead)), v, zero, zero);
	body_lower(&y, list);

	Body scale = body_new(f, "scale");
	b = &scale.b;
	own = take_matrix(&scale, v, zero, zero, one, rest);
	Node root = b_un(b, OP_sqrt, mat_columns(b, own, zero, one).re);
	Parts unit = {.re = b_bin(b, OP_div, own.re, root)}, on = {.re = root};
	if (f->pairs) {
		unit.im = b_bin(b, OP_div, own.im, root);
		on.im = b_bin_scalar(b, OP_mul, root, 0);
	}
	Node is_first = b_bin_scalar(b, OP_eq, b_iota(b, DT_i64, rest), 0);
	put_matrix(&scale, mat_select(b, is_first, on, unit), u, r, r);
	body_lower(&scale, list);
}

static void cholesky_info(const Factor *f, StepList *list, NodePlace u, NodePlace info)
{
	Body y = body_new(f, "info");
	Build *b = &y.b;
	Sym zero = number(f, 0);
	Parts x = take_matrix(&y, u, zero, zero, f->columns, f->columns);
	Node d = diagonal(b, x.re, f->columns);
	put(&y, first_true(b, b_un(b, OP_bit_not, b_bin(b, OP_gt, d, aten_like(b, d, 0)))), info);
	body_lower(&y, list);
}

static void cholesky_panels(const Factor *f, NodePlace x, NodePlace u, NodePlace z)
{
	StepList *list = f->s->steps;
	Rounds panels = rounds_of(f, "t", panel_count(f, f->columns, PANEL_ROWS), list);
	if (panels.none)
		return;
	const Panel p = panel_at(f, panels.at, f->columns, PANEL_ROWS);
	cholesky_panel(f, panels.body, &p, x, u, z);
	Rounds rows = rounds_of(f, "u", p.width, panels.body);
	cholesky_row(f, rows.body, &p, rows.at, z, u, new_matrix(f, number(f, 1), f->columns));
	rounds_end(f, &rows, panels.body);
	rounds_end(f, &panels, list);
}

void lower_cholesky(Lower *s, Node n)
{
	if (lower_by_members(s, n))
		return;
	const Factor f = factor_of(s, n);
	const Sym all[] = {f.columns, f.columns};
	NodePlace x = operand_inside(&f, 0, f.rows, f.columns), u = result_inside(&f, 0, f.dtype, all, 2, f.pairs);
	NodePlace info = lower_result_place(s, n, 1);
	NodePlace z = new_matrix(&f, sym_min(f.syms, number(&f, PANEL_ROWS), f.columns), f.columns);
	fill(&f, s->steps, u, f.dtype, all, 2, f.pairs);
	cholesky_panels(&f, x, u, z);
	cholesky_info(&f, s->steps, u, info);
	publish(&f, 0, u, f.dtype, all, 2, f.pairs);
	lower_publish_result(s, n, 1, &info);
}

/* ---- triangular_solve ---- */

/* The triangle and its right side: [n, n], [n, m]. */
typedef struct {
	const Factor *f;
	bool upper, unit;
	Sym m;
	NodePlace a, b, x, z;
} Solve;

/* z = B[k0..k1, :] - A[k0..k1, known] X[known, :], where `known` rows are above or below. */
static void solve_panel(const Solve *v, StepList *list, const Panel *p)
{
	const Factor *f = v->f;
	Body y = body_new(f, "panel");
	Sym zero = number(f, 0), from = v->upper ? p->end : zero;
	Sym known = v->upper ? sym_sub(f->syms, f->rows, p->end) : p->first;
	Parts own = take_matrix(&y, v->b, p->first, zero, p->width, v->m);
	Parts left = take_matrix(&y, v->a, p->first, from, p->width, known);
	Parts above = take_matrix(&y, v->x, from, zero, known, v->m);
	put_matrix(&y, mat_sub(&y.b, own, mat_times(&y.b, left, above)), v->z, zero, zero);
	body_lower(&y, list);
}

/* Row number u of a panel, in the order in which they are solved. */
static void solve_row(const Solve *v, StepList *list, const Panel *p, Sym u)
{
	const Factor *f = v->f;
	Body y = body_new(f, "row");
	Build *b = &y.b;
	Sym one = number(f, 1), zero = number(f, 0);
	Sym row = v->upper ? sym_sub(f->syms, sym_addi(f->syms, p->width, -1), u) : u, r = sym_add(f->syms, p->first, row);
	Sym from = v->upper ? sym_addi(f->syms, r, 1) : p->first;
	Parts own = take_matrix(&y, v->z, row, zero, one, v->m);
	Parts left = take_matrix(&y, v->a, r, from, one, u), above = take_matrix(&y, v->x, from, zero, u, v->m);
	left.re = b_transpose(b, left.re, -1, -2);
	left.im = f->pairs ? b_transpose(b, left.im, -1, -2) : left.im;
	Parts sum = mat_unsqueeze(b, mat_sum(b, mat_multiply(b, left, above), 1u << f->lead), (int)f->lead);
	Parts x = mat_sub(b, own, sum);
	if (!v->unit)
		x = mat_divide(b, x, take_matrix(&y, v->a, r, r, one, one));
	put_matrix(&y, x, v->x, r, zero);
	body_lower(&y, list);
}

static void solve_panels(const Solve *v)
{
	const Factor *f = v->f;
	StepList *list = f->s->steps;
	Rounds panels = rounds_of(f, "t", panel_count(f, f->rows, PANEL_ROWS), list);
	if (panels.none)
		return;
	Panel p = panel_at(f, panels.at, f->rows, PANEL_ROWS);
	if (v->upper) { /* from the last row up */
		p.end = sym_sub(f->syms, f->rows, p.first);
		p.first = sym_sub(f->syms, p.end, p.width);
	}
	solve_panel(v, panels.body, &p);
	Rounds rows = rounds_of(f, "u", p.width, panels.body);
	solve_row(v, rows.body, &p, rows.at);
	rounds_end(f, &rows, panels.body);
	rounds_end(f, &panels, list);
}

void lower_triangular_solve(Lower *s, Node n)
{
	if (lower_by_members(s, n))
		return;
	const Factor f = factor_of(s, n);
	Solve v = {.f = &f, .upper = node_bool(s->g, n, "upper"), .unit = node_bool(s->g, n, "unit"),
		   .m = node_dim(s->g, node_in(s->g, n, 1), f.lead + 1)};
	const Sym all[] = {f.rows, v.m};
	v.a = operand_inside(&f, 0, f.rows, f.columns);
	v.b = operand_inside(&f, 1, f.rows, v.m);
	v.x = result_inside(&f, 0, f.dtype, all, 2, f.pairs);
	v.z = new_matrix(&f, sym_min(f.syms, number(&f, PANEL_ROWS), f.rows), v.m);
	fill(&f, s->steps, v.x, f.dtype, all, 2, f.pairs);
	solve_panels(&v);
	publish(&f, 0, v.x, f.dtype, all, 2, f.pairs);
}

/* ---- lu ---- */

/* Pairs of places are those before and after a round. */
typedef struct {
	Factor f;
	Sym least;           /* pivots */
	NodePlace x, result, pivots, order[2], info;
	NodePlace panel[2];  /* columns k0..k1 of the rows from k0 on */
	NodePlace swaps[2];  /* for these rows, where they were before the panel */
	NodePlace left;      /* L, by rows of x */
	NodePlace ordered, columns, rows; /* L, a panel of x and rows of x in the order of now */
} Lu;

/* Rows of x and of L in the order of now, from row k0 on: operands of a contraction are stored. */
static void lu_ordered(const Lu *v, StepList *list, const Panel *p, NodePlace order, Sym rows, Sym column, Sym columns, NodePlace to)
{
	const Factor *f = &v->f;
	Body y = body_new(f, "ordered");
	Build *b = &y.b;
	Sym zero = number(f, 0);
	Node from = take(&y, part_of(f, order, &p->first, 1), DT_i64, &rows, 1, false);
	Parts all = take_matrix(&y, v->x, zero, column, f->rows, columns), left = take_matrix(&y, v->left, zero, zero, f->rows, p->first);
	put(&y, factor_rows(b, mat_node(b, all), from, f->pairs), to);
	put(&y, factor_rows(b, mat_node(b, left), from, f->pairs), v->ordered);
	body_lower(&y, list);
}

/* What lu_ordered has stored: x - L[.., ..k0] U[..k0, columns], of `rows` rows */
static Parts lu_rest(Body *y, const Lu *v, const Panel *p, NodePlace x, Sym rows, Sym column, Sym columns)
{
	Build *b = &y->b;
	Sym zero = number(y->f, 0);
	Parts all = take_matrix(y, x, zero, zero, rows, columns), left = take_matrix(y, v->ordered, zero, zero, rows, p->first);
	Parts above = take_matrix(y, v->result, zero, column, p->first, columns);
	return mat_sub(b, all, mat_times(b, left, above));
}

/* The panel, and that its rows were not exchanged yet. */
static void lu_panel(const Lu *v, StepList *list, const Panel *p)
{
	const Factor *f = &v->f;
	Body y = body_new(f, "panel");
	Sym zero = number(f, 0), rows = sym_sub(f->syms, f->rows, p->first), dim[MAX_RANK];
	lu_ordered(v, list, p, v->order[0], rows, p->first, p->width, v->columns);
	put_matrix(&y, lu_rest(&y, v, p, v->columns, rows, p->first, p->width), v->panel[0], zero, zero);
	uint32_t rank = shape(f, &rows, 1, false, dim);
	put(&y, b_broadcast(&y.b, b_iota(&y.b, DT_i64, rows), rank, dim), v->swaps[0]);
	body_lower(&y, list);
}

static Node pivot_size(Build *b, Parts x)
{
	Node size = b_un(b, OP_abs, x.re);
	return x.im.i ? b_bin(b, OP_add, size, b_un(b, OP_abs, x.im)) : size;
}

/* The row of each member. */
static Parts row_at(Build *b, const Factor *f, Parts x, Node row)
{
	Node rows = b_unsqueeze(b, row, -1);
	return mat_of(b, factor_rows(b, mat_node(b, x), rows, f->pairs), f->pairs);
}

/* Column u of the panel: rows u and that of the pivot change places, and the pivot's is taken off
 * those below. */
static void lu_column(const Lu *v, StepList *list, const Panel *p, Sym u)
{
	const Factor *f = &v->f;
	Body y = body_new(f, "column");
	Build *b = &y.b;
	Sym zero = number(f, 0), rows = sym_sub(f->syms, f->rows, p->first), c = sym_add(f->syms, p->first, u);
	Parts x = take_matrix(&y, v->panel[0], zero, zero, rows, p->width);
	Parts below = take_matrix(&y, v->panel[0], u, u, sym_sub(f->syms, rows, u), number(f, 1));
	Parts mine = take_matrix(&y, v->panel[0], u, zero, number(f, 1), p->width);
	Node swaps = take(&y, v->swaps[0], DT_i64, &rows, 1, false), size = b_squeeze(b, pivot_size(b, below), -1);
	Attr attr[] = {attr_none(), attr_str(f->s->ir, "max"), attr_int(f->s->ir, f->lead)};
	Node at = b_bin(b, OP_add, b_node(b, OP_arg_reduce, &size, 1, attr, 3), b_from_size(b, u));
	Parts best = row_at(b, f, x, at), pivot = mat_columns(b, best, u, sym_addi(f->syms, u, 1));
	Node number_of = b_convert(b, b_bin(b, OP_add, at, b_from_size(b, sym_addi(f->syms, p->first, 1))), DT_i32);
	put(&y, b_unsqueeze(b, number_of, -1), part_of(f, v->pivots, &c, 1));

	Node i = b_iota(b, DT_i64, rows), is_best = b_bin(b, OP_eq, i, b_unsqueeze(b, at, -1));
	Node is_mine = b_bin(b, OP_eq, i, b_from_size(b, u)), j = b_iota(b, DT_i64, p->width);
	Parts swapped = mat_select(b, b_unsqueeze(b, is_best, -1), mine, x);
	swapped = mat_select(b, b_unsqueeze(b, is_mine, -1), best, swapped);
	/* column u of that */
	Parts column = mat_columns(b, x, u, sym_addi(f->syms, u, 1)), own = mat_columns(b, mine, u, sym_addi(f->syms, u, 1));
	column = mat_select(b, b_unsqueeze(b, is_best, -1), own, column);
	Node none = b_bin(b, OP_eq, pivot.re, aten_like(b, pivot.re, 0));
	if (f->pairs)
		none = b_bin(b, OP_bit_and, none, b_bin(b, OP_eq, pivot.im, aten_like(b, pivot.im, 0)));
	Parts factor = mat_divide(b, column, mat_select(b, none, mat_number(b, pivot, 1), pivot));
	Parts rest = mat_sub(b, swapped, mat_multiply(b, factor, best));
	Node later = b_bin(b, OP_gt, j, b_from_size(b, u)), same = b_bin(b, OP_eq, j, b_from_size(b, u));
	Node lower = b_unsqueeze(b, b_bin(b, OP_gt, i, b_from_size(b, u)), -1);
	Parts next = mat_select(b, later, rest, mat_select(b, same, factor, swapped));
	put_matrix(&y, mat_select(b, lower, next, swapped), v->panel[1], zero, zero);

	Node from = factor_take(b, swaps, b_unsqueeze(b, at, -1), f->lead);
	Node first = b_slice(b, swaps, -1, u, sym_addi(f->syms, u, 1), number(f, 1));
	swaps = b_select(b, is_mine, from, b_select(b, is_best, first, swaps));
	put(&y, swaps, v->swaps[1]);
	body_lower(&y, list);
}

/* The order of rows after the panel. */
static void lu_order(const Lu *v, StepList *list, const Panel *p)
{
	const Factor *f = &v->f;
	Body y = body_new(f, "order");
	Build *b = &y.b;
	Sym rows = sym_sub(f->syms, f->rows, p->first), dim[MAX_RANK], zero = number(f, 0);
	Node old = take(&y, v->order[0], DT_i64, &f->rows, 1, false), swaps = take(&y, v->swaps[1], DT_i64, &rows, 1, false);
	Sym low[MAX_RANK], high[MAX_RANK];
	uint32_t rank = shape(f, &f->rows, 1, false, dim);
	for (uint32_t k = 0; k < rank; k++)
		low[k] = high[k] = zero;
	low[rank - 1] = p->first;
	Node moved = b_pad(b, b_bin(b, OP_add, swaps, b_from_size(b, p->first)), low, high, b_full_int(b, DT_i64, 0, 0, NULL));
	Node i = b_iota(b, DT_i64, f->rows), from = b_select(b, b_bin(b, OP_lt, i, b_from_size(b, p->first)), i, moved);
	put(&y, factor_take(b, old, from, f->lead), v->order[1]);
	body_lower(&y, list);
}

/* Columns k0..k1 of L, by rows of x. */
static void lu_left(const Lu *v, StepList *list, const Panel *p)
{
	const Factor *f = &v->f;
	Body y = body_new(f, "left");
	Build *b = &y.b;
	Sym zero = number(f, 0), rows = sym_sub(f->syms, f->rows, p->first), dim[MAX_RANK];
	Node order = take(&y, part_of(f, v->order[1], &p->first, 1), DT_i64, &rows, 1, false);
	Parts x = take_matrix(&y, v->panel[1], zero, zero, rows, p->width);
	uint32_t rank = shape(f, (Sym[]){f->rows, p->width}, 2, f->pairs, dim);
	Node none = b_zeros(b, ir_type(f->s->ir, f->dtype, rank, dim));
	put(&y, factor_place(b, none, order, mat_node(b, x), f->lead), region(f, v->left, zero, p->first));
	body_lower(&y, list);
}

/* U[k0..k1, k1..] */
static void lu_rows(const Lu *v, StepList *list, const Panel *p)
{
	const Factor *f = &v->f;
	Body y = body_new(f, "rows");
	Build *b = &y.b;
	Sym zero = number(f, 0), columns = sym_sub(f->syms, f->columns, p->end);
	Parts l = take_matrix(&y, v->panel[1], zero, zero, p->width, p->width);
	lu_ordered(v, list, p, v->order[1], p->width, p->end, columns, v->rows);
	Parts rest = lu_rest(&y, v, p, v->rows, p->width, p->end, columns);
	Node u = factor_solve(b, mat_node(b, l), mat_node(b, rest), (Triangle){.upper = false, .unit = true}, f->pairs);
	put(&y, u, region(f, v->result, p->first, p->end));
	body_lower(&y, list);
}

/* L in the order of rows, beside U. */
static void lu_join(const Lu *v, StepList *list, NodePlace order)
{
	const Factor *f = &v->f;
	Body y = body_new(f, "join");
	Build *b = &y.b;
	Sym zero = number(f, 0);
	Parts u = take_matrix(&y, v->result, zero, zero, f->rows, f->columns);
	Node rows = take(&y, order, DT_i64, &f->rows, 1, false);
	Node left = mat_node(b, take_matrix(&y, v->left, zero, zero, f->rows, v->least)), end = b_iota(b, DT_i64, f->rows);
	Parts l = mat_of(b, factor_rows(b, left, rows, f->pairs), f->pairs);
	end = b_bin_scalar(b, OP_mul, b_bin_scalar(b, OP_add, b_bin_scalar(b, OP_floordiv, end, PANEL_COLUMNS), 1), PANEL_COLUMNS);
	Node is_left = b_bin(b, OP_lt, b_iota(b, DT_i64, v->least), b_unsqueeze(b, end, -1));
	Parts square = mat_select(b, is_left, l, mat_columns(b, u, zero, v->least));
	put_matrix(&y, square, v->result, zero, zero);
	body_lower(&y, list);
}

static void lu_info(const Lu *v, StepList *list)
{
	const Factor *f = &v->f;
	Body y = body_new(f, "info");
	Build *b = &y.b;
	Sym zero = number(f, 0);
	Parts x = take_matrix(&y, v->result, zero, zero, v->least, v->least);
	Node d = diagonal(b, x.re, v->least), none = b_bin(b, OP_eq, d, aten_like(b, d, 0));
	if (f->pairs) {
		d = diagonal(b, x.im, v->least);
		none = b_bin(b, OP_bit_and, none, b_bin(b, OP_eq, d, aten_like(b, d, 0)));
	}
	put(&y, first_true(b, none), v->info);
	body_lower(&y, list);
}

static void lu_start(const Lu *v, StepList *list)
{
	const Factor *f = &v->f;
	Body y = body_new(f, "order");
	Sym dim[MAX_RANK];
	uint32_t rank = shape(f, &f->rows, 1, false, dim);
	put(&y, b_broadcast(&y.b, b_iota(&y.b, DT_i64, f->rows), rank, dim), v->order[0]);
	body_lower(&y, list);
}

/* *last: which of the two orders holds the last one. */
static void lu_panels(const Lu *v, StepList *list, uint32_t *last)
{
	const Factor *f = &v->f;
	Rounds panels = rounds_of(f, "t", panel_count(f, v->least, PANEL_COLUMNS), list);
	lu_start(v, list);
	*last = !panels.none;
	if (panels.none) {
		fill(f, list, v->pivots, DT_i32, &v->least, 1, false);
		return;
	}
	const Panel p = panel_at(f, panels.at, v->least, PANEL_COLUMNS);
	lu_panel(v, panels.body, &p);
	Rounds columns = rounds_of(f, "u", p.width, panels.body);
	carry(f, &panels, v->order, 1);
	carry(f, &columns, (NodePlace[]){v->panel[0], v->panel[1], v->swaps[0], v->swaps[1]}, 2);
	lu_column(v, columns.body, &p, columns.at);
	rounds_end(f, &columns, panels.body);
	lu_order(v, panels.body, &p);
	lu_left(v, panels.body, &p);
	lu_rows(v, panels.body, &p);
	rounds_end(f, &panels, list);
}

void lower_lu(Lower *s, Node n)
{
	if (lower_by_members(s, n))
		return;
	Lu v = {.f = factor_of(s, n)};
	const Factor *f = &v.f;
	const Sym all[] = {f->rows, f->columns};
	v.least = sym_min(f->syms, f->rows, f->columns);
	v.x = operand_inside(f, 0, f->rows, f->columns);
	v.result = result_inside(f, 0, f->dtype, all, 2, f->pairs);
	v.pivots = result_inside(f, 1, DT_i32, &v.least, 1, false);
	NodePlace order = result_inside(f, 2, DT_i64, &f->rows, 1, false);
	v.info = lower_result_place(s, n, 3);
	for (uint32_t k = 0; k < 2; k++) {
		v.order[k] = new_place(f, DT_i64, &f->rows, 1, false);
		v.swaps[k] = new_place(f, DT_i64, &f->rows, 1, false);
		v.panel[k] = new_matrix(f, f->rows, sym_min(f->syms, number(f, PANEL_COLUMNS), v.least));
	}
	v.left = new_matrix(f, f->rows, v.least);
	v.ordered = new_matrix(f, f->rows, v.least);
	v.columns = new_matrix(f, f->rows, sym_min(f->syms, number(f, PANEL_COLUMNS), v.least));
	v.rows = new_matrix(f, sym_min(f->syms, number(f, PANEL_COLUMNS), v.least), f->columns);
	fill(f, s->steps, v.ordered, f->dtype, (Sym[]){f->rows, v.least}, 2, f->pairs);
	fill(f, s->steps, v.result, f->dtype, all, 2, f->pairs);
	fill(f, s->steps, v.left, f->dtype, (Sym[]){f->rows, v.least}, 2, f->pairs);
	uint32_t last;
	lu_panels(&v, s->steps, &last);
	lu_join(&v, s->steps, v.order[last]);
	lu_info(&v, s->steps);
	Body y = body_new(f, "order");
	put(&y, take(&y, v.order[last], DT_i64, &f->rows, 1, false), order);
	body_lower(&y, s->steps);
	publish(f, 0, v.result, f->dtype, all, 2, f->pairs);
	publish(f, 1, v.pivots, DT_i32, &v.least, 1, false);
	publish(f, 2, order, DT_i64, &f->rows, 1, false);
	lower_publish_result(s, n, 3, &v.info);
}

/* ---- geqrf ---- */

typedef struct {
	Factor f;
	Sym least;
	NodePlace result, tau;
	NodePlace rest[2];  /* what is left of x, behind the panels */
	NodePlace panel[2];
} Qr;

static void qr_panel(const Qr *v, StepList *list, const Panel *p)
{
	const Factor *f = &v->f;
	copy_matrix(f, list, region(f, v->rest[0], p->first, p->first), v->panel[0], sym_sub(f->syms, f->rows, p->first),
			   p->width);
}

/* The sum of |x|^2, in f64. */
static Node square_sum(Build *b, Parts x, uint32_t dims)
{
	Node re = b_convert(b, x.re, DT_f64), sum = b_bin(b, OP_mul, re, re);
	if (x.im.i) {
		Node im = b_convert(b, x.im, DT_f64);
		sum = b_bin(b, OP_add, sum, b_bin(b, OP_mul, im, im));
	}
	return b_reduce(b, REDUCE_SUM, sum, dims, DT_none);
}

/* Column u of the panel becomes a reflector, which is applied to the columns behind it. */
static void qr_column(const Qr *v, StepList *list, const Panel *p, Sym u)
{
	const Factor *f = &v->f;
	Body y = body_new(f, "column");
	Build *b = &y.b;
	Sym zero = number(f, 0), one = number(f, 1), rows = sym_sub(f->syms, f->rows, p->first), c = sym_add(f->syms, p->first, u);
	Sym next = sym_addi(f->syms, u, 1), less = sym_sub(f->syms, rows, next);
	Parts x = take_matrix(&y, v->panel[0], zero, zero, rows, p->width), alpha = take_matrix(&y, v->panel[0], u, u, one, one);
	Parts mine = take_matrix(&y, v->panel[0], u, zero, one, p->width);
	Parts below = take_matrix(&y, v->panel[0], next, u, less, one), behind = take_matrix(&y, v->panel[0], next, zero, less, p->width);
	Node tail = b_unsqueeze(b, b_unsqueeze(b, square_sum(b, below, 3u << f->lead), -1), -1);
	Node head = b_convert(b, alpha.re, DT_f64), all = b_bin(b, OP_add, tail, b_bin(b, OP_mul, head, head));
	Node none = b_bin(b, OP_eq, tail, aten_like(b, tail, 0));
	if (f->pairs) {
		Node im = b_convert(b, alpha.im, DT_f64);
		all = b_bin(b, OP_add, all, b_bin(b, OP_mul, im, im));
		none = b_bin(b, OP_bit_and, none, b_bin(b, OP_eq, im, aten_like(b, im, 0)));
	}
	Node length = b_convert(b, b_un(b, OP_sqrt, all), f->dtype);
	Node sign = b_bin_scalar(b, OP_lt, alpha.re, 0), beta = b_select(b, sign, length, b_un(b, OP_neg, length));
	Parts own = {.re = b_select(b, none, alpha.re, beta)}, scale = {.re = b_bin(b, OP_sub, alpha.re, beta)}, tau;
	Node safe = b_select(b, none, aten_like(b, beta, 1), beta);
	tau = (Parts){.re = b_select(b, none, aten_like(b, beta, 0), b_bin(b, OP_div, b_bin(b, OP_sub, beta, alpha.re), safe))};
	scale.re = b_select(b, none, aten_like(b, beta, 1), scale.re);
	if (f->pairs) {
		own.im = b_bin_scalar(b, OP_mul, b_select(b, none, alpha.re, aten_like(b, beta, 0)), 0);
		scale.im = alpha.im;
		tau.im = b_select(b, none, aten_like(b, beta, 0), b_un(b, OP_neg, b_bin(b, OP_div, alpha.im, safe)));
	}
	put(&y, mat_node(b, mat_select_dim(b, tau, (int)f->lead, zero)), part_of(f, v->tau, &c, 1));

	/* w = conj(tau) v^H x */
	Parts sum = mat_sum(b, mat_multiply(b, mat_conj(b, below), behind), 1u << f->lead);
	sum = mat_divide(b, mat_unsqueeze(b, sum, (int)f->lead), mat_conj(b, scale));
	Parts w = mat_multiply(b, mat_conj(b, tau), mat_add(b, mine, sum));
	Node i = b_unsqueeze(b, b_iota(b, DT_i64, rows), -1), j = b_iota(b, DT_i64, p->width), at = b_from_size(b, u);
	Parts unit = mat_divide(b, mat_columns(b, x, u, next), scale);
	Node is_mine = b_bin(b, OP_eq, i, at), later = b_bin(b, OP_gt, j, at), same = b_bin(b, OP_eq, j, at);
	Parts rest = mat_sub(b, x, mat_multiply(b, unit, w)), row = mat_sub(b, x, w);
	rest = mat_select(b, is_mine, row, rest);
	Parts column = mat_select(b, is_mine, own, unit), next_x = mat_select(b, later, rest, mat_select(b, same, column, x));
	put_matrix(&y, mat_select(b, b_bin(b, OP_ge, i, at), next_x, x), v->panel[1], zero, zero);
	body_lower(&y, list);
}

/* The panel's reflectors, applied to the columns behind it: rows of R, and the rest. */
static void qr_rest(const Qr *v, StepList *list, const Panel *p)
{
	const Factor *f = &v->f;
	Sym zero = number(f, 0), rows = sym_sub(f->syms, f->rows, p->first), columns = sym_sub(f->syms, f->columns, p->end);
	copy_matrix(f, list, v->panel[1], region(f, v->result, p->first, p->first), rows, p->width);
	Body y = body_new(f, "rest");
	Build *b = &y.b;
	Node a = mat_node(b, take_matrix(&y, v->panel[1], zero, zero, rows, p->width));
	Node tau = take(&y, part_of(f, v->tau, &p->first, 1), f->dtype, &p->width, 1, f->pairs);
	Node c = mat_node(b, take_matrix(&y, v->rest[0], p->first, p->end, rows, columns));
	Parts all = mat_of(b, factor_reflect(b, a, tau, c, columns, true, f->pairs), f->pairs);
	put_matrix(&y, all, v->rest[1], p->first, p->end);
	body_lower(&y, list);
	copy_matrix(f, list, region(f, v->rest[1], p->first, p->end), region(f, v->result, p->first, p->end), p->width, columns);
}

static void qr_panels(const Qr *v, StepList *list)
{
	const Factor *f = &v->f;
	Rounds panels = rounds_of(f, "t", panel_count(f, v->least, PANEL_COLUMNS), list);
	if (panels.none) {
		fill(f, list, v->tau, f->dtype, &v->least, 1, f->pairs);
		return;
	}
	const Panel p = panel_at(f, panels.at, v->least, PANEL_COLUMNS);
	qr_panel(v, panels.body, &p);
	Rounds columns = rounds_of(f, "u", p.width, panels.body);
	carry(f, &panels, v->rest, 1);
	carry(f, &columns, v->panel, 1);
	qr_column(v, columns.body, &p, columns.at);
	rounds_end(f, &columns, panels.body);
	qr_rest(v, panels.body, &p);
	rounds_end(f, &panels, list);
}

void lower_geqrf(Lower *s, Node n)
{
	if (lower_by_members(s, n))
		return;
	Qr v = {.f = factor_of(s, n)};
	const Factor *f = &v.f;
	const Sym all[] = {f->rows, f->columns};
	v.least = sym_min(f->syms, f->rows, f->columns);
	NodePlace x = operand_inside(f, 0, f->rows, f->columns);
	v.result = result_inside(f, 0, f->dtype, all, 2, f->pairs);
	v.tau = result_inside(f, 1, f->dtype, &v.least, 1, f->pairs);
	for (uint32_t k = 0; k < 2; k++) {
		v.rest[k] = new_matrix(f, f->rows, f->columns);
		v.panel[k] = new_matrix(f, f->rows, sym_min(f->syms, number(f, PANEL_COLUMNS), v.least));
	}
	fill(f, s->steps, v.result, f->dtype, all, 2, f->pairs);
	copy_matrix(f, s->steps, x, v.rest[0], f->rows, f->columns);
	qr_panels(&v, s->steps);
	publish(f, 0, v.result, f->dtype, all, 2, f->pairs);
	publish(f, 1, v.tau, f->dtype, &v.least, 1, f->pairs);
}
