/* Rows of a contraction's tiles: their axes, and where they begin in operand a. */
#include "codegen/cpu/contract.h"

static Lx int_of(Cpu *s, int64_t v)
{
	return lx_int(s->e.f, v);
}

static bool rows_are_whole(const ContractCode *c)
{
	return sym_divides(c->s->e.syms, c->p->tile.mr, c->p->rows) &&
	       c->p->block.rows % c->p->tile.mr == 0;
}

/* Returns the number of the last row; 0 if there are no rows, because divisions of it ignore
 * signs. */
static Lx last_row(const ContractCode *c)
{
	Cpu *s = c->s;
	return lx_max(s->e.f, lx_sub(s->e.f, eval_size(&s->e, c->p->rows), int_of(s, 1)),
		      int_of(s, 0));
}

/* Returns `row`, or the last row if that is less. */
static Lx clamp_row(ContractCode *c, Lx row)
{
	Cpu *s = c->s;
	if (rows_are_whole(c))
		return row;
	return lx_min(s->e.f, row, last_row(c));
}

Sym contract_row_offset(const ContractCode *c, Kx load)
{
	Cpu *s = c->s;
	Sym var[MAX_AXES + 1], zero[MAX_AXES + 1];
	uint32_t n = 0;
	for (; n < c->p->axes.nk; n++)
		var[n] = s->e.nest->var[c->p->axes.k[n]];
	if (c->p->axes.half != NO_AXIS)
		var[n++] = s->e.nest->var[c->p->axes.half];
	for (uint32_t i = 0; i < n; i++)
		zero[i] = sym_int(s->e.syms, 0);
	return sym_subst(s->e.syms, s->e.nest->offset[load.i], var, zero, n);
}

/* Sets at[] to variables with the values of the row axes at the block's first row. */
static void decode_row(ContractCode *c, Lv *at)
{
	Cpu *s = c->s;
	Lx rest = eval_let(&s->e, "row", lx_min(s->e.f, c->rows.lo, last_row(c)));
	for (uint32_t i = c->p->axes.nm; i-- > 0;) {
		Lx v = rest;
		if (i) {
			Lx n = eval_size(&s->e, s->e.nest->extent[c->p->axes.m[i]]);
			v = lx_mod(s->e.f, rest, n);
			rest = eval_let(&s->e, "rest", lx_div(s->e.f, rest, n));
		}
		at[i] = ls_var(s->e.f, "i", v);
	}
}

/* Moves the values at[] of the row axes to the next row, if `more` is true: the fastest axis counts
 * up, and each slower one when the axis after it wraps. */
static void count_row(ContractCode *c, const Lv *at, Lx more)
{
	Cpu *s = c->s;
	for (uint32_t i = c->p->axes.nm; i-- > 0;) {
		Lx next = lx_add(s->e.f, lx_var(s->e.f, at[i]),
				 lx_select(s->e.f, more, int_of(s, 1), int_of(s, 0)));
		if (i) {
			next = eval_let(&s->e, "next", next);
			more = eval_let(
				&s->e, "wraps",
				lx_cmp(s->e.f, SC_eq, next,
				       eval_size(&s->e, s->e.nest->extent[c->p->axes.m[i]])));
			next = lx_select(s->e.f, more, int_of(s, 0), next);
		}
		ls_set(s->e.f, at[i], next);
	}
}

/* Computes the values of several row axes once for every row of the block. Past the last row they
 * stay. */
void contract_fill_tables(ContractCode *c)
{
	Cpu *s = c->s;
	Lv at[MAX_AXES];
	if (c->p->a.runs.used)
		contract_fill_runs(c);
	if (c->p->axes.nm < 2 || c->p->a.runs.used)
		return;
	for (uint32_t i = 0; i < c->p->axes.nm; i++)
		c->row_table[i] = ls_local(s->e.f, "row_index", DT_i64, (uint64_t)c->p->block.rows);
	c->a_table = ls_local(s->e.f, "row_offset", DT_i64, (uint64_t)c->p->block.rows);
	decode_row(c, at);
	Lx r = lx_var(s->e.f, ls_for(s->e.f, "r", int_of(s, 0), int_of(s, c->p->block.rows), 1));
	for (uint32_t i = 0; i < c->p->axes.nm; i++) {
		eval_at(&s->e, c->p->axes.m[i], lx_var(s->e.f, at[i]));
		ls_store(s->e.f, c->row_table[i], r, lx_var(s->e.f, at[i]), (Lx){0});
	}
	ls_store(s->e.f, c->a_table, r, eval_index(&s->e, contract_row_offset(c, c->p->a.load)),
		 (Lx){0});
	count_row(c, at, lx_cmp(s->e.f, SC_lt, lx_add(s->e.f, c->rows.lo, r), last_row(c)));
	ls_end(s->e.f);
	for (uint32_t i = 0; i < c->p->axes.nm; i++)
		eval_at(&s->e, c->p->axes.m[i], (Lx){0});
}

static Lx table_at(ContractCode *c, LMem table, Lx row)
{
	Cpu *s = c->s;
	return lx_var(s->e.f, ls_load(s->e.f, "i", table, row, (LType){DT_i64, 1}, (Lx){0}));
}

void contract_go_to_row(ContractCode *c, Lx i)
{
	Cpu *s = c->s;
	if (c->p->axes.nm == 0)
		return;
	if (c->p->axes.nm == 1) {
		eval_at(&s->e, c->p->axes.m[0],
			eval_let(&s->e, "m", clamp_row(c, lx_add(s->e.f, c->row, i))));
		return;
	}
	Lx at = lx_add(s->e.f, lx_sub(s->e.f, c->row, c->rows.lo), i);
	for (uint32_t k = 0; k < c->p->axes.nm; k++)
		eval_at(&s->e, c->p->axes.m[k], table_at(c, c->row_table[k], at));
}

void contract_row_axes(ContractCode *c, Lx i, Lx *value)
{
	Cpu *s = c->s;
	contract_go_to_row(c, i);
	for (uint32_t k = 0; k < c->p->axes.nm; k++) {
		value[k] = s->e.at[c->p->axes.m[k]];
		eval_at(&s->e, c->p->axes.m[k], (Lx){0});
	}
}

Lx contract_open_rows(ContractCode *c)
{
	Cpu *s = c->s;
	if (c->p->a.runs.used)
		return contract_open_segments(c);
	Lx row = lx_var(s->e.f, ls_for(s->e.f, "i", int_of(s, 0), int_of(s, c->p->tile.mr), 1));
	contract_go_to_row(c, row);
	return row;
}

void contract_close_rows(ContractCode *c)
{
	if (c->p->a.runs.used)
		contract_close_segments(c);
	else
		ls_end(c->s->e.f);
	for (uint32_t k = 0; k < c->p->axes.nm; k++)
		eval_at(&c->s->e, c->p->axes.m[k], (Lx){0});
}

Lx contract_a_row(ContractCode *c, Lx i)
{
	Cpu *s = c->s;
	if (c->p->axes.nm >= 2)
		return table_at(c, c->a_table,
		                lx_add(s->e.f, lx_sub(s->e.f, c->row, c->rows.lo), i));
	contract_go_to_row(c, i);
	Lx offset = eval_index(&s->e, contract_row_offset(c, c->p->a.load));
	if (c->p->a.copied) {
		Lx tile = lx_div(s->e.f, c->row, int_of(s, c->p->tile.mr)),
		   panel = lx_mul(s->e.f, tile, eval_size(&s->e, c->p->a.panels.stride));
		Lx in_panel = lx_sub(s->e.f, s->e.at[c->p->axes.m[0]], c->row);
		offset = lx_add(s->e.f, lx_add(s->e.f, offset, panel), in_panel);
	}
	return eval_let(&s->e, "a_row", offset);
}
