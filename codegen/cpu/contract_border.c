/* Steps of a summed axis that read only the zero border of a padded operand: a tile whose rows all lie near an edge
 * of the image leaves those taps out.
 *
 * A window is a dimension of a that is read at coef * row + step * k + start, for one row axis and one summed axis,
 * and that is zero outside [lo, hi). With the row axis in [first, last], k matters where
 *   lo <= coef * last + step * k + start   and   coef * first + step * k + start < hi. */
#include "codegen/cpu/contract.h"

enum { WORTH = 16 /* of so many steps, one is saved */, MAX_COUNTED = 1 << 16 };

static bool is_row(const ContractAxes *x, uint32_t axis)
{
	for (uint32_t i = 0; i < x->nm; i++)
		if (x->m[i] == axis)
			return true;
	return false;
}

/* idx == coef * row + step * k + start? */
MUST_LOOK static bool read_window(const Cpu *s, const ContractAxes *x, Sym idx, uint32_t k,
				  Window *w)
{
	Sym step, coef, rest;
	TRY(sym_linear(s->e.syms, idx, s->e.axes.var[k], &step, &rest) && sym_is_const(s->e.syms, step, &w->step) && w->step > 0);
	w->k = k;
	w->row = NO_AXIS;
	for (uint32_t a = 0; a < s->e.axes.n; a++)
		if (s->e.axes.var[a].i && sym_uses(s->e.syms, rest, s->e.axes.var[a])) {
			TRY(w->row == NO_AXIS && is_row(x, a));
			w->row = a;
		}
	return w->row != NO_AXIS && sym_linear(s->e.syms, rest, s->e.axes.var[w->row], &coef, &w->start) &&
	       sym_is_const(s->e.syms, coef, &w->coef) && w->coef > 0;
}

Windows contract_find_windows(const Cpu *s, Kx load, const ContractAxes *x)
{
	const KxData *a = &s->e.k->kx.data[load.i];
	const Buffer *buf = buf_of(s->e.l, a->buf);
	Windows found = {0};
	for (uint32_t d = 0; buf->inner_lo && d < a->nidx; d++)
		for (uint32_t i = 0; i < x->nk; i++) {
			Window w = {.lo = buf->inner_lo[d], .hi = buf->inner_hi[d]};
			if (found.n < MAX_WINDOWS && sym_uses(s->e.syms, a->idx[d], s->e.axes.var[x->k[i]]) &&
			    read_window(s, x, a->idx[d], x->k[i], &w))
				found.at[found.n++] = w;
		}
	return found;
}

/* ---- is it worth it? ---- */

/* Rows of the tile differ in this axis by less than that. */
static int64_t span_of(const Cpu *s, const ContractAxes *x, TileSize tile, uint32_t row)
{
	int64_t faster = 1;
	for (uint32_t i = x->nm; i-- > 0 && x->m[i] != row;)
		faster *= axes_hint(s, x->m[i]);
	return (tile.mr - 1) / (faster > 0 ? faster : 1) + 1;
}

static bool is_dead(const Cpu *s, const Window *w, int64_t first, int64_t last, int64_t k)
{
	int64_t at = w->step * k + sym_hint(s->e.syms, w->start);
	return w->coef * last + at < sym_hint(s->e.syms, w->lo) || w->coef * first + at >= sym_hint(s->e.syms, w->hi);
}

/* The share of steps that tiles leave out, at hint sizes; a tile that wraps around sees all rows. */
static double saved_by(const Cpu *s, const ContractAxes *x, TileSize tile, const Window *w)
{
	int64_t rows = axes_hint(s, w->row), taps = axes_hint(s, w->k), span = span_of(s, x, tile, w->row), dead = 0;
	if (rows < 1 || taps < 1 || rows > MAX_COUNTED || taps > MAX_COUNTED / rows)
		return 0;
	for (int64_t r = 0; r < rows; r++)
		for (int64_t k = 0; k < taps; k++)
			dead += r + span > rows ? is_dead(s, w, 0, rows - 1, k) : is_dead(s, w, r, r + span - 1, k);
	return (double)dead / ((double)rows * (double)taps);
}

static bool still_there(const Cpu *s, const ContractAxes *x, const Window *w)
{
	bool outer_loop = false; /* the innermost is unrolled */
	for (uint32_t i = 0; i + 1 < x->nk; i++)
		outer_loop |= x->k[i] == w->k;
	return outer_loop && s->e.axes.var[w->row].i && is_row(x, w->row);
}

Windows contract_useful_windows(const Cpu *s, const ContractAxes *x, TileSize tile, const Windows *all)
{
	Windows useful = {0};
	double saved = 0;
	for (uint32_t i = 0; i < all->n; i++) {
		double share = still_there(s, x, &all->at[i]) ? saved_by(s, x, tile, &all->at[i]) : 0;
		saved += share;
		if (share > 0)
			useful.at[useful.n++] = all->at[i];
	}
	return saved * WORTH >= 1 ? useful : (Windows){0};
}

/* ---- code ---- */

/* Values of the row axes in the first and the last row of the tile. */
typedef struct {
	Lx first[MAX_AXES], last[MAX_AXES];
} Rows;

/* The least and the largest value of a row axis in the tile: all there are where a slower axis changes within it. */
static void row_range(const ContractCode *c, const Rows *r, uint32_t row, Lx *lo, Lx *hi)
{
	Cpu *s = c->s;
	uint32_t at = 0;
	while (c->p->axes.m[at] != row)
		at++;
	*lo = r->first[at];
	*hi = r->last[at];
	Lx end = lx_sub(s->e.f, eval_size(&s->e, s->e.axes.extent[row]), lx_int(s->e.f, 1));
	for (uint32_t i = 0; i < at; i++) {
		Lx same = lx_cmp(s->e.f, SC_eq, r->first[i], r->last[i]);
		*lo = lx_select(s->e.f, same, *lo, lx_int(s->e.f, 0));
		*hi = lx_select(s->e.f, same, *hi, end);
	}
}

/* ceil(max(x, 0) / step) */
static Lx steps(Cpu *s, Lx x, int64_t step)
{
	Lx up = lx_max(s->e.f, lx_add(s->e.f, x, lx_int(s->e.f, step - 1)), lx_int(s->e.f, 0));
	return lx_div(s->e.f, up, lx_int(s->e.f, step));
}

void contract_bound_taps(ContractCode *c)
{
	Cpu *s = c->s;
	Rows rows;
	if (c->p->windows.n == 0)
		return;
	contract_row_axes(c, lx_int(s->e.f, 0), rows.first);
	contract_row_axes(c, lx_int(s->e.f, c->p->tile.mr - 1), rows.last);
	for (uint32_t i = 0; i < c->p->windows.n; i++) {
		const Window *w = &c->p->windows.at[i];
		Lx first, last;
		row_range(c, &rows, w->row, &first, &last);
		Lx coef = lx_int(s->e.f, w->coef), start = eval_size(&s->e, w->start);
		Lx below = lx_sub(s->e.f, eval_size(&s->e, w->lo), lx_add(s->e.f, start, lx_mul(s->e.f, coef, last)));
		Lx above = lx_sub(s->e.f, eval_size(&s->e, w->hi), lx_add(s->e.f, start, lx_mul(s->e.f, coef, first)));
		c->first_tap[i] = eval_let(&s->e, "tap_lo", steps(s, below, w->step));
		c->end_tap[i] = eval_let(&s->e, "tap_hi", lx_min(s->e.f, steps(s, above, w->step), eval_size(&s->e, s->e.axes.extent[w->k])));
	}
}

void contract_taps(const ContractCode *c, uint32_t axis, Lx *start, Lx *end)
{
	for (uint32_t i = 0; i < c->p->windows.n; i++)
		if (c->p->windows.at[i].k == axis) {
			*start = lx_max(c->s->e.f, *start, c->first_tap[i]);
			*end = lx_min(c->s->e.f, *end, c->end_tap[i]);
		}
}
