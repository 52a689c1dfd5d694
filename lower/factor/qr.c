/* Reflectors: columns k0..k1, reflector by reflector; then the reflectors are applied to the
 * columns behind, by products with their matrix. The columns of their product Q: the same, to the
 * columns of the identity, from the last panel on. */
#include "lower/factor/factor.h"
#include "lower/factor/priv.h"
#include "ops/prim/factor.h"

/* ---- the reflectors of a panel: I - V T V^H ---- */

/* Places of V, of T, and of what V is multiplied by. */
typedef struct {
	NodePlace v, t, w; /* [rows, PANEL], [PANEL, PANEL], [PANEL, columns] */
} Reflect;

/* Returns the columns of the widest panel, if there are `least` columns. */
static Sym panel_width(const Factor *f, Sym least)
{
	return sym_min(f->syms, factor_int(f, PANEL_COLUMNS), least);
}

static Reflect reflect_of(const Factor *f, Sym least, Sym columns)
{
	const Sym width = panel_width(f, least);
	return (Reflect){factor_new_matrix(f, f->rows, width), factor_new_matrix(f, width, width),
			 factor_new_matrix(f, width, columns)};
}

/* Computes the V and T of a panel of reflectors, whose product is I - V T V^H. V is the panel below
 * the diagonal, with ones on it. T = S^-1 D, where D is the diagonal matrix of tau and S = I + D N,
 * with N what V^H V has above its diagonal. */
static void reflect_panel(const Factor *f, StepList *list, const Reflect *r, const Panel *p,
			  NodePlace a, NodePlace tau)
{
	Sym zero = factor_int(f, 0), rows = sym_sub(f->syms, f->rows, p->first);
	Body y = body_new(f, "reflectors");
	Parts below = mat_lower(&y.b, body_take_matrix(&y, a, zero, zero, rows, p->width), -1);
	body_put_matrix(&y, mat_with_ones(&y.b, below), r->v, zero, zero);
	body_lower(&y, list);
	Body z = body_new(f, "product");
	Build *b = &z.b;
	Parts v = body_take_matrix(&z, r->v, zero, zero, rows, p->width);
	Parts t = mat_of(
		b,
		body_take(&z, factor_part(f, tau, &p->first, 1), f->dtype, &p->width, 1, f->pairs),
		f->pairs);
	Parts product = mat_times(b, mat_adjoint(b, v), v);
	Parts s = mat_upper(b, mat_multiply(b, mat_unsqueeze(b, t, -1), product), 1);
	Node on = b_bin(b, OP_eq, b_unsqueeze(b, b_iota(b, DT_i64, p->width), -1),
			b_iota(b, DT_i64, p->width));
	Parts none = mat_number(b, t, 0), d = mat_select(b, on, mat_unsqueeze(b, t, -1), none);
	Node right = mat_node(b, d);
	body_put(&z,
		 factor_solve(b, mat_node(b, s), right, (Triangle){.upper = true, .unit = true},
			      f->pairs),
		 r->t);
	body_lower(&z, list);
}

/* Writes C - V (T (V^H C)) to `to`: applies a panel's reflectors to C, so many columns at `from`,
 * whose first row is the panel's. conjugate: with T^H for T. The two places differ, because tiles
 * of products overlap. */
static void reflect_apply(const Factor *f, StepList *list, const Reflect *r, const Panel *p,
			  NodePlace from, NodePlace to, Sym columns, bool conjugate)
{
	Sym zero = factor_int(f, 0), rows = sym_sub(f->syms, f->rows, p->first);
	Body y = body_new(f, "reflect");
	Parts v = body_take_matrix(&y, r->v, zero, zero, rows, p->width);
	Parts c = body_take_matrix(&y, from, zero, zero, rows, columns);
	Parts t = body_take_matrix(&y, r->t, zero, zero, p->width, p->width);
	Parts w = mat_times(&y.b, mat_adjoint(&y.b, v), c);
	w = mat_times(&y.b, conjugate ? mat_adjoint(&y.b, t) : t, w);
	body_put_matrix(&y, w, r->w, zero, zero);
	body_lower(&y, list);
	Body z = body_new(f, "rest");
	v = body_take_matrix(&z, r->v, zero, zero, rows, p->width);
	c = body_take_matrix(&z, from, zero, zero, rows, columns);
	w = body_take_matrix(&z, r->w, zero, zero, p->width, columns);
	body_put_matrix(&z, mat_sub(&z.b, c, mat_times(&z.b, v, w)), to, zero, zero);
	body_lower(&z, list);
}

/* ---- geqrf ---- */

typedef struct {
	Factor f;
	Sym least;
	NodePlace result, tau;
	NodePlace rest[2];  /* what is left of x, behind the panels */
	NodePlace panel[2];
	Reflect reflect;
} Qr;

/* Returns the sum of |x|^2 over dims, in f64. */
static Node square_sum(Build *b, Parts x, uint32_t dims)
{
	Node re = b_convert(b, x.re, DT_f64), sum = b_bin(b, OP_mul, re, re);
	if (x.im.i) {
		Node im = b_convert(b, x.im, DT_f64);
		sum = b_bin(b, OP_add, sum, b_bin(b, OP_mul, im, im));
	}
	return b_reduce(b, REDUCE_SUM, sum, dims, DT_none);
}

/* Makes column u of the panel a reflector, and applies it to the panel's columns behind. */
static void qr_column(const Qr *v, StepList *list, const Panel *p, Sym u)
{
	const Factor *f = &v->f;
	Body y = body_new(f, "column");
	Build *b = &y.b;
	Sym zero = factor_int(f, 0), one = factor_int(f, 1),
	    rows = sym_sub(f->syms, f->rows, p->first), c = sym_add(f->syms, p->first, u);
	Sym next = sym_addi(f->syms, u, 1), less = sym_sub(f->syms, rows, next);
	Parts x = body_take_matrix(&y, v->panel[0], zero, zero, rows, p->width),
	      alpha = body_take_matrix(&y, v->panel[0], u, u, one, one);
	Parts mine = body_take_matrix(&y, v->panel[0], u, zero, one, p->width);
	Parts below = body_take_matrix(&y, v->panel[0], next, u, less, one),
	      behind = body_take_matrix(&y, v->panel[0], next, zero, less, p->width);
	Node tail = b_unsqueeze(b, b_unsqueeze(b, square_sum(b, below, 3u << f->lead), -1), -1);
	Node head = b_convert(b, alpha.re, DT_f64),
	     all = b_bin(b, OP_add, tail, b_bin(b, OP_mul, head, head));
	Node none = b_bin(b, OP_eq, tail, aten_like(b, tail, 0));
	if (f->pairs) {
		Node im = b_convert(b, alpha.im, DT_f64);
		all = b_bin(b, OP_add, all, b_bin(b, OP_mul, im, im));
		none = b_bin(b, OP_bit_and, none, b_bin(b, OP_eq, im, aten_like(b, im, 0)));
	}
	Node length = b_convert(b, b_un(b, OP_sqrt, all), f->dtype);
	Node sign = b_bin_scalar(b, OP_lt, alpha.re, 0),
	     beta = b_select(b, sign, length, b_un(b, OP_neg, length));
	Parts own = {.re = b_select(b, none, alpha.re, beta)},
	      scale = {.re = b_bin(b, OP_sub, alpha.re, beta)}, tau;
	Node safe = b_select(b, none, aten_like(b, beta, 1), beta);
	tau = (Parts){.re = b_select(b, none, aten_like(b, beta, 0),
				     b_bin(b, OP_div, b_bin(b, OP_sub, beta, alpha.re), safe))};
	scale.re = b_select(b, none, aten_like(b, beta, 1), scale.re);
	if (f->pairs) {
		own.im = b_bin_scalar(b, OP_mul, b_select(b, none, alpha.re, aten_like(b, beta, 0)),
				      0);
		scale.im = alpha.im;
		tau.im = b_select(b, none, aten_like(b, beta, 0),
				  b_un(b, OP_neg, b_bin(b, OP_div, alpha.im, safe)));
	}
	body_put(&y, mat_node(b, mat_select_dim(b, tau, (int)f->lead, zero)),
		 factor_part(f, v->tau, &c, 1));

	/* w = conj(tau) v^H x */
	Parts sum = mat_sum(b, mat_multiply(b, mat_conj(b, below), behind), 1u << f->lead);
	Parts by = mat_conj(b, scale);
	sum = mat_divide(b, mat_unsqueeze(b, sum, (int)f->lead), by);
	sum = mat_add(b, mine, sum);
	Parts w = mat_multiply(b, mat_conj(b, tau), sum);
	Node i = b_unsqueeze(b, b_iota(b, DT_i64, rows), -1), j = b_iota(b, DT_i64, p->width),
	     at = b_from_size(b, u);
	Parts unit = mat_divide(b, mat_columns(b, x, u, next), scale);
	Node is_mine = b_bin(b, OP_eq, i, at), later = b_bin(b, OP_gt, j, at),
	     same = b_bin(b, OP_eq, j, at);
	Parts rest = mat_sub(b, x, mat_multiply(b, unit, w)), row = mat_sub(b, x, w);
	rest = mat_select(b, is_mine, row, rest);
	Parts column = mat_select(b, is_mine, own, unit),
	      next_x = mat_select(b, later, rest, mat_select(b, same, column, x));
	body_put_matrix(&y, mat_select(b, b_bin(b, OP_ge, i, at), next_x, x), v->panel[1], zero,
			zero);
	body_lower(&y, list);
}

static void qr_panels(const Qr *v, StepList *list)
{
	const Factor *f = &v->f;
	Rounds panels = rounds_of(f, "t", panel_count(f, v->least, PANEL_COLUMNS), list);
	if (panels.none) {
		factor_fill(f, list, v->tau, f->dtype, &v->least, 1, f->pairs);
		return;
	}
	const Panel p = panel_at(f, panels.at, v->least, PANEL_COLUMNS);
	NodePlace place = factor_region(f, v->result, p.first, p.first), rest[2], above;
	above = factor_region(f, v->result, p.first, p.end);
	Sym rows = sym_sub(f->syms, f->rows, p.first), behind = sym_sub(f->syms, f->columns, p.end);
	factor_copy(f, panels.body, factor_region(f, v->rest[0], p.first, p.first), v->panel[0],
		    rows, p.width);
	Rounds columns = rounds_of(f, "u", p.width, panels.body);
	rounds_carry(f, &panels, v->rest, 1);
	rounds_carry(f, &columns, v->panel, 1);
	qr_column(v, columns.body, &p, columns.at);
	rounds_end(f, &columns, panels.body);
	factor_copy(f, panels.body, v->panel[1], place, rows, p.width);
	for (uint32_t k = 0; k < 2; k++)
		rest[k] = factor_region(f, v->rest[k], p.first, p.end);
	reflect_panel(f, panels.body, &v->reflect, &p, v->panel[1], v->tau);
	reflect_apply(f, panels.body, &v->reflect, &p, rest[0], rest[1], behind, true);
	factor_copy(f, panels.body, rest[1], above, p.width, behind);
	rounds_end(f, &panels, list);
}

void lower_geqrf(Lower *s, Node n)
{
	Qr v = {.f = factor_of(s, n)};
	const Factor *f = &v.f;
	const Sym all[] = {f->rows, f->columns};
	v.least = sym_min(f->syms, f->rows, f->columns);
	NodePlace x = factor_operand_inside(f, 0, f->rows, f->columns);
	v.result = factor_result_inside(f, 0, f->dtype, all, 2, f->pairs);
	v.tau = factor_result_inside(f, 1, f->dtype, &v.least, 1, f->pairs);
	const Sym width = panel_width(f, v.least);
	for (uint32_t k = 0; k < 2; k++) {
		v.rest[k] = factor_new_matrix(f, f->rows, f->columns);
		v.panel[k] = factor_new_matrix(f, f->rows, width);
	}
	v.reflect = reflect_of(f, v.least, f->columns);
	factor_fill(f, s->steps, v.result, f->dtype, all, 2, f->pairs);
	factor_copy(f, s->steps, x, v.rest[0], f->rows, f->columns);
	qr_panels(&v, s->steps);
	factor_publish(f, 0, v.result, f->dtype, all, 2, f->pairs);
	factor_publish(f, 1, v.tau, f->dtype, &v.least, 1, f->pairs);
}

/* ---- orgqr ---- */

static void orgqr_start(const Factor *f, StepList *list, NodePlace q, Sym columns)
{
	Sym dim[MAX_RANK], zero = factor_int(f, 0);
	Body y = body_new(f, "identity");
	uint32_t rank = factor_shape(f, (Sym[]){f->rows, columns}, 2, false, dim);
	Parts zeros = {.re = b_full(&y.b, f->dtype, 0, rank, dim)};
	zeros.im = f->pairs ? zeros.re : zeros.im;
	body_put_matrix(&y, mat_with_ones(&y.b, zeros), q, zero, zero);
	body_lower(&y, list);
}

void lower_orgqr(Lower *s, Node n)
{
	Factor f = factor_of(s, n);
	f.inside = false;
	const Sym k = node_dim(s->g, node_in(s->g, n, 1), f.lead),
		  columns = node_sym(s->g, n, "columns");
	NodePlace a = factor_operand(s, n, 0), tau = factor_operand(s, n, 1), result, q[2],
		  region[2];
	const Sym count = panel_count(&f, k, PANEL_COLUMNS);
	for (uint32_t i = 0; i < 2; i++) {
		q[i] = factor_new_matrix(&f, f.rows, columns);
		orgqr_start(&f, s->steps, q[i], columns);
	}
	Rounds panels = rounds_of(&f, "t", count, s->steps);
	if (!panels.none) {
		const Sym last = sym_sub(f.syms, sym_addi(f.syms, count, -1), panels.at);
		const Panel p = panel_at(&f, last, k, PANEL_COLUMNS);
		const Reflect r = reflect_of(&f, k, columns);
		rounds_carry(&f, &panels, q, 1);
		for (uint32_t i = 0; i < 2; i++)
			region[i] = factor_region(&f, q[i], p.first, p.first);
		reflect_panel(&f, panels.body, &r, &p, factor_region(&f, a, p.first, p.first), tau);
		reflect_apply(&f, panels.body, &r, &p, region[0], region[1],
			      sym_sub(f.syms, columns, p.first), false);
		rounds_end(&f, &panels, s->steps);
	}
	result = lower_result_place(s, n, 0);
	factor_copy(&f, s->steps, q[1], result, f.rows, columns);
	lower_publish_result(s, n, 0, &result);
}
