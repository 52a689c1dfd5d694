/* Steps of a summed axis that read only the zero border of a padded operand: a tile whose rows all
 * lie near an edge of the image leaves those taps out.
 *
 * A window is a dimension of a that is read at coef * row + step * k + start, for one row axis and
 * one summed axis, and that is zero outside [lo, hi). With the row axis in [first, last], k matters
 * where
 *   lo <= coef * last + step * k + start   and   coef * first + step * k + start < hi. */
#include "codegen/cpu/contract.h"

/* Values of the row axes in the first and the last row of the tile. */
typedef struct {
	Lx first[MAX_AXES], last[MAX_AXES];
} Rows;

/* Sets *lo and *hi to the least and the largest value of a row axis in the tile: to the ends of the
 * whole axis where a slower axis changes within the tile. */
static void row_range(const ContractCode *c, const Rows *r, uint32_t row, Lx *lo, Lx *hi)
{
	Cpu *s = c->s;
	uint32_t at = 0;
	while (c->p->axes.m[at] != row)
		at++;
	*lo = r->first[at];
	*hi = r->last[at];
	Lx end = lx_sub(s->e.f, eval_size(&s->e, s->e.nest->extent[row]), lx_int(s->e.f, 1));
	for (uint32_t i = 0; i < at; i++) {
		Lx same = lx_cmp(s->e.f, SC_eq, r->first[i], r->last[i]);
		*lo = lx_select(s->e.f, same, *lo, lx_int(s->e.f, 0));
		*hi = lx_select(s->e.f, same, *hi, end);
	}
}

/* Returns ceil(max(x, 0) / step). */
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
		Lx below = lx_sub(s->e.f, eval_size(&s->e, w->lo),
				  lx_add(s->e.f, start, lx_mul(s->e.f, coef, last)));
		Lx above = lx_sub(s->e.f, eval_size(&s->e, w->hi),
				  lx_add(s->e.f, start, lx_mul(s->e.f, coef, first)));
		c->taps[i].lo = eval_let(&s->e, "tap_lo", steps(s, below, w->step));
		c->taps[i].hi = eval_let(&s->e, "tap_hi",
					 lx_min(s->e.f, steps(s, above, w->step),
						eval_size(&s->e, s->e.nest->extent[w->k])));
	}
}

void contract_taps(const ContractCode *c, uint32_t axis, Lx *start, Lx *end)
{
	for (uint32_t i = 0; i < c->p->windows.n; i++)
		if (c->p->windows.at[i].k == axis) {
			*start = lx_max(c->s->e.f, *start, c->taps[i].lo);
			*end = lx_min(c->s->e.f, *end, c->taps[i].hi);
		}
}
