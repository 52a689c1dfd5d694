/* Windows of a padded operand, and whether tiles gain by leaving out taps, see contract_border.c.
 */
#include "codegen/plan/contract.h"

enum { WORTH = 16 /* of so many steps, one is saved */, MAX_COUNTED = 1 << 16 };

static bool is_row(const ContractAxes *x, uint32_t axis)
{
	for (uint32_t i = 0; i < x->nm; i++)
		if (x->m[i] == axis)
			return true;
	return false;
}

/* idx == coef * row + step * k + start? */
MUST_LOOK static bool read_window(const PlanInput *in, const ContractAxes *x, Sym idx, uint32_t k,
				  Window *w)
{
	Sym step, coef, rest;
	TRY(sym_linear(in->nest->syms, idx, in->nest->var[k], &step, &rest) &&
	    sym_is_const(in->nest->syms, step, &w->step) && w->step > 0);
	w->k = k;
	w->row = NO_AXIS;
	for (uint32_t a = 0; a < in->nest->n; a++)
		if (in->nest->var[a].i && sym_uses(in->nest->syms, rest, in->nest->var[a])) {
			TRY(w->row == NO_AXIS && is_row(x, a));
			w->row = a;
		}
	return w->row != NO_AXIS &&
	       sym_linear(in->nest->syms, rest, in->nest->var[w->row], &coef, &w->start) &&
	       sym_is_const(in->nest->syms, coef, &w->coef) && w->coef > 0;
}

Windows contract_find_windows(const PlanInput *in, Kx load, const ContractAxes *x)
{
	const KxData *a = &in->nest->k->kx.data[load.i];
	const Buffer *buf = buf_of(in->nest->l, a->buf);
	Windows found = {0};
	for (uint32_t d = 0; buf->inner_lo && d < a->nidx; d++)
		for (uint32_t i = 0; i < x->nk; i++) {
			Window w = {.lo = buf->inner_lo[d], .hi = buf->inner_hi[d]};
			if (found.n < MAX_WINDOWS &&
			    sym_uses(in->nest->syms, a->idx[d], in->nest->var[x->k[i]]) &&
			    read_window(in, x, a->idx[d], x->k[i], &w))
				found.at[found.n++] = w;
		}
	return found;
}

/* ---- is it worth it? ---- */

/* Rows of the tile differ in this axis by less than that. */
static int64_t span_of(const PlanInput *in, const ContractAxes *x, TileSize tile, uint32_t row)
{
	int64_t faster = 1;
	for (uint32_t i = x->nm; i-- > 0 && x->m[i] != row;)
		faster *= nest_hint(in->nest, x->m[i]);
	return (tile.mr - 1) / (faster > 0 ? faster : 1) + 1;
}

static bool is_dead(const PlanInput *in, const Window *w, int64_t first, int64_t last, int64_t k)
{
	int64_t at = w->step * k + sym_hint(in->nest->syms, w->start);
	return w->coef * last + at < sym_hint(in->nest->syms, w->lo) ||
	       w->coef * first + at >= sym_hint(in->nest->syms, w->hi);
}

/* The share of steps that tiles leave out, at hint sizes; a tile that wraps around sees all rows.
 */
static double saved_by(const PlanInput *in, const ContractAxes *x, TileSize tile, const Window *w)
{
	int64_t rows = nest_hint(in->nest, w->row), taps = nest_hint(in->nest, w->k),
		span = span_of(in, x, tile, w->row), dead = 0;
	if (rows < 1 || taps < 1 || rows > MAX_COUNTED || taps > MAX_COUNTED / rows)
		return 0;
	for (int64_t r = 0; r < rows; r++)
		for (int64_t k = 0; k < taps; k++)
			dead += r + span > rows ? is_dead(in, w, 0, rows - 1, k)
						: is_dead(in, w, r, r + span - 1, k);
	return (double)dead / ((double)rows * (double)taps);
}

static bool still_there(const PlanInput *in, const ContractAxes *x, const Window *w)
{
	bool outer_loop = false; /* the innermost is unrolled */
	for (uint32_t i = 0; i + 1 < x->nk; i++)
		outer_loop |= x->k[i] == w->k;
	return outer_loop && in->nest->var[w->row].i && is_row(x, w->row);
}

Windows contract_useful_windows(const PlanInput *in, const ContractAxes *x, TileSize tile,
				const Windows *all)
{
	Windows useful = {0};
	double saved = 0;
	for (uint32_t i = 0; i < all->n; i++) {
		double share =
			still_there(in, x, &all->at[i]) ? saved_by(in, x, tile, &all->at[i]) : 0;
		saved += share;
		if (share > 0)
			useful.at[useful.n++] = all->at[i];
	}
	return saved * WORTH >= 1 ? useful : (Windows){0};
}
