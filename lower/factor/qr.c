/* Reflectors: columns k0..k1, reflector by reflector; then the reflectors are applied to the
 * columns behind, by products with their matrix. */
#include "lower/factor/factor.h"
#include "lower/factor/priv.h"
#include "ir/ops/prim/factor.h"

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
	factor_copy(f, list, factor_region(f, v->rest[0], p->first, p->first), v->panel[0], sym_sub(f->syms, f->rows, p->first),
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
	Sym zero = factor_int(f, 0), one = factor_int(f, 1), rows = sym_sub(f->syms, f->rows, p->first), c = sym_add(f->syms, p->first, u);
	Sym next = sym_addi(f->syms, u, 1), less = sym_sub(f->syms, rows, next);
	Parts x = body_take_matrix(&y, v->panel[0], zero, zero, rows, p->width), alpha = body_take_matrix(&y, v->panel[0], u, u, one, one);
	Parts mine = body_take_matrix(&y, v->panel[0], u, zero, one, p->width);
	Parts below = body_take_matrix(&y, v->panel[0], next, u, less, one), behind = body_take_matrix(&y, v->panel[0], next, zero, less, p->width);
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
	body_put(&y, mat_node(b, mat_select_dim(b, tau, (int)f->lead, zero)), factor_part(f, v->tau, &c, 1));

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
	body_put_matrix(&y, mat_select(b, b_bin(b, OP_ge, i, at), next_x, x), v->panel[1], zero, zero);
	body_lower(&y, list);
}

/* The panel's reflectors, applied to the columns behind it: rows of R, and the rest. */
static void qr_rest(const Qr *v, StepList *list, const Panel *p)
{
	const Factor *f = &v->f;
	Sym zero = factor_int(f, 0), rows = sym_sub(f->syms, f->rows, p->first), columns = sym_sub(f->syms, f->columns, p->end);
	factor_copy(f, list, v->panel[1], factor_region(f, v->result, p->first, p->first), rows, p->width);
	Body y = body_new(f, "rest");
	Build *b = &y.b;
	Node a = mat_node(b, body_take_matrix(&y, v->panel[1], zero, zero, rows, p->width));
	Node tau = body_take(&y, factor_part(f, v->tau, &p->first, 1), f->dtype, &p->width, 1, f->pairs);
	Node c = mat_node(b, body_take_matrix(&y, v->rest[0], p->first, p->end, rows, columns));
	Parts all = mat_of(b, factor_reflect(b, a, tau, c, columns, true, f->pairs), f->pairs);
	body_put_matrix(&y, all, v->rest[1], p->first, p->end);
	body_lower(&y, list);
	factor_copy(f, list, factor_region(f, v->rest[1], p->first, p->end), factor_region(f, v->result, p->first, p->end), p->width, columns);
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
	qr_panel(v, panels.body, &p);
	Rounds columns = rounds_of(f, "u", p.width, panels.body);
	rounds_carry(f, &panels, v->rest, 1);
	rounds_carry(f, &columns, v->panel, 1);
	qr_column(v, columns.body, &p, columns.at);
	rounds_end(f, &columns, panels.body);
	qr_rest(v, panels.body, &p);
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
	for (uint32_t k = 0; k < 2; k++) {
		v.rest[k] = factor_new_matrix(f, f->rows, f->columns);
		v.panel[k] = factor_new_matrix(f, f->rows, sym_min(f->syms, factor_int(f, PANEL_COLUMNS), v.least));
	}
	factor_fill(f, s->steps, v.result, f->dtype, all, 2, f->pairs);
	factor_copy(f, s->steps, x, v.rest[0], f->rows, f->columns);
	qr_panels(&v, s->steps);
	factor_publish(f, 0, v.result, f->dtype, all, 2, f->pairs);
	factor_publish(f, 1, v.tau, f->dtype, &v.least, 1, f->pairs);
}
