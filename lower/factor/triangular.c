/* Cholesky's factors and triangular systems, panel by panel of rows.
 *
 *   cholesky           rows k0..k1 of x, less those of the factor above times themselves; then row
 *                      by row, each divided by the root of its pivot
 *   triangular_solve   the same, with rows of A */
#include "lower/factor/factor.h"
#include "lower/factor/priv.h"

/* ---- cholesky ---- */
/* Subtracts the product of what is known from the panel's rows: z = x[k0..k1, k0..] - U[..k0,
 * k0..k1]^H U[..k0, k0..]. */
static void cholesky_panel(const Factor *f, StepList *list, const Panel *p, NodePlace x,
			   NodePlace u, NodePlace z)
{
	Body y = body_new(f, "panel");
	Sym zero = factor_int(f, 0), rest = sym_sub(f->syms, f->columns, p->first);
	Parts own = body_take_matrix(&y, x, p->first, p->first, p->width, rest);
	Parts left = body_take_matrix(&y, u, zero, p->first, p->first, p->width);
	Parts above = body_take_matrix(&y, u, zero, p->first, p->first, rest);
	Parts product = mat_times(&y.b, mat_adjoint(&y.b, left), above);
	body_put_matrix(&y, mat_sub(&y.b, own, product), z, zero, zero);
	body_lower(&y, list);
}

/* Computes a row of the factor from the panel's rows above it. v: room for the row times the root
 * of its pivot; the first element of that is the pivot. */
static void cholesky_row(const Factor *f, StepList *list, const Panel *p, Sym row, NodePlace z,
			 NodePlace u, NodePlace v)
{
	Sym zero = factor_int(f, 0), one = factor_int(f, 1), r = sym_add(f->syms, p->first, row),
	    rest = sym_sub(f->syms, f->columns, r);
	Body y = body_new(f, "row");
	Build *b = &y.b;
	Parts own = body_take_matrix(&y, z, row, row, one, rest);
	Parts left = body_take_matrix(&y, u, p->first, r, row, one),
	      above = body_take_matrix(&y, u, p->first, r, row, rest);
	Parts sum = mat_sum(b, mat_multiply(b, mat_conj(b, left), above), 1u << f->lead);
	body_put_matrix(&y, mat_sub(b, own, mat_unsqueeze(b, sum, (int)f->lead)), v, zero, zero);
	body_lower(&y, list);

	Body scale = body_new(f, "scale");
	b = &scale.b;
	own = body_take_matrix(&scale, v, zero, zero, one, rest);
	Node root = b_un(b, OP_sqrt, mat_columns(b, own, zero, one).re);
	Parts unit = {.re = b_bin(b, OP_div, own.re, root)}, on = {.re = root};
	if (f->pairs) {
		unit.im = b_bin(b, OP_div, own.im, root);
		on.im = b_bin_scalar(b, OP_mul, root, 0);
	}
	Node is_first = b_bin_scalar(b, OP_eq, b_iota(b, DT_i64, rest), 0);
	body_put_matrix(&scale, mat_select(b, is_first, on, unit), u, r, r);
	body_lower(&scale, list);
}

static void cholesky_info(const Factor *f, StepList *list, NodePlace u, NodePlace info)
{
	Body y = body_new(f, "info");
	Build *b = &y.b;
	Sym zero = factor_int(f, 0);
	Parts x = body_take_matrix(&y, u, zero, zero, f->columns, f->columns);
	Node d = factor_diagonal(b, x.re, f->columns);
	body_put(&y,
		 factor_first_true(b, b_un(b, OP_bit_not, b_bin(b, OP_gt, d, aten_like(b, d, 0)))),
		 info);
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
	cholesky_row(f, rows.body, &p, rows.at, z, u,
		     factor_new_matrix(f, factor_int(f, 1), f->columns));
	rounds_end(f, &rows, panels.body);
	rounds_end(f, &panels, list);
}

void lower_cholesky(Lower *s, Node n)
{
	const Factor f = factor_of(s, n);
	const Sym all[] = {f.columns, f.columns};
	NodePlace x = factor_operand_inside(&f, 0, f.rows, f.columns),
		  u = factor_result_inside(&f, 0, f.dtype, all, 2, f.pairs);
	NodePlace info = lower_result_place(s, n, 1);
	NodePlace z = factor_new_matrix(&f, sym_min(f.syms, factor_int(&f, PANEL_ROWS), f.columns),
					f.columns);
	factor_fill(&f, s->steps, u, f.dtype, all, 2, f.pairs);
	cholesky_panels(&f, x, u, z);
	cholesky_info(&f, s->steps, u, info);
	factor_publish(&f, 0, u, f.dtype, all, 2, f.pairs);
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

/* Subtracts the product of what is known from the panel's right sides: z = B[k0..k1, :] - A[k0..k1,
 * known] X[known, :]. The known rows are those above, of an upper triangle those below. */
static void solve_panel(const Solve *v, StepList *list, const Panel *p)
{
	const Factor *f = v->f;
	Body y = body_new(f, "panel");
	Sym zero = factor_int(f, 0), from = v->upper ? p->end : zero;
	Sym known = v->upper ? sym_sub(f->syms, f->rows, p->end) : p->first;
	Parts own = body_take_matrix(&y, v->b, p->first, zero, p->width, v->m);
	Parts left = body_take_matrix(&y, v->a, p->first, from, p->width, known);
	Parts above = body_take_matrix(&y, v->x, from, zero, known, v->m);
	body_put_matrix(&y, mat_sub(&y.b, own, mat_times(&y.b, left, above)), v->z, zero, zero);
	body_lower(&y, list);
}

/* Solves row number u of a panel, in the order in which rows are solved. */
static void solve_row(const Solve *v, StepList *list, const Panel *p, Sym u)
{
	const Factor *f = v->f;
	Body y = body_new(f, "row");
	Build *b = &y.b;
	Sym one = factor_int(f, 1), zero = factor_int(f, 0);
	Sym row = v->upper ? sym_sub(f->syms, sym_addi(f->syms, p->width, -1), u) : u,
	    r = sym_add(f->syms, p->first, row);
	Sym from = v->upper ? sym_addi(f->syms, r, 1) : p->first;
	Parts own = body_take_matrix(&y, v->z, row, zero, one, v->m);
	Parts left = body_take_matrix(&y, v->a, r, from, one, u),
	      above = body_take_matrix(&y, v->x, from, zero, u, v->m);
	left.re = b_transpose(b, left.re, -1, -2);
	left.im = f->pairs ? b_transpose(b, left.im, -1, -2) : left.im;
	Parts sum = mat_unsqueeze(b, mat_sum(b, mat_multiply(b, left, above), 1u << f->lead),
				  (int)f->lead);
	Parts x = mat_sub(b, own, sum);
	if (!v->unit)
		x = mat_divide(b, x, body_take_matrix(&y, v->a, r, r, one, one));
	body_put_matrix(&y, x, v->x, r, zero);
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
	const Factor f = factor_of(s, n);
	Solve v = {.f = &f,
		   .upper = node_bool(s->g, n, "upper"),
		   .unit = node_bool(s->g, n, "unit"),
		   .m = node_dim(s->g, node_in(s->g, n, 1), f.lead + 1)};
	const Sym all[] = {f.rows, v.m};
	v.a = factor_operand_inside(&f, 0, f.rows, f.columns);
	v.b = factor_operand_inside(&f, 1, f.rows, v.m);
	v.x = factor_result_inside(&f, 0, f.dtype, all, 2, f.pairs);
	v.z = factor_new_matrix(&f, sym_min(f.syms, factor_int(&f, PANEL_ROWS), f.rows), v.m);
	factor_fill(&f, s->steps, v.x, f.dtype, all, 2, f.pairs);
	solve_panels(&v);
	factor_publish(&f, 0, v.x, f.dtype, all, 2, f.pairs);
}
