/* Software pipelining of tiles of fragments, whose epilogues are here called late: the rows of a
 * tile are finished between the steps of the next tile, because neither needs the units of the
 * other. The sums lie in frags.tile until then. A task's last tile is finished behind it. */
#include "codegen/cpu/contract.h"

static Lx var(const ContractCode *c, Lv v)
{
	return lx_var(c->s->e.f, v);
}

static Lx load(const ContractCode *c, LMem table, Lx at)
{
	return lx_var(c->s->e.f, ls_load(c->s->e.f, "i", table, at, (LType){DT_i64, 1}, (Lx){0}));
}

void contract_late_begin(ContractCode *c)
{
	LoopFn *f = c->s->e.f;
	const Lx zero = lx_int(f, 0);
	c->frags.late = (LateRows){.used = true,
				   .col = ls_var(f, "late_col", zero),
				   .segment = ls_var(f, "late_segment", zero),
				   .end = ls_var(f, "late_end", zero),
				   .done = ls_var(f, "late_done", zero)};
}

/* Finishes the next rows of the late tile's current segment: `most` of them, or all if `most` is
 * 0. */
static void finish_rows(ContractCode *c, const TileCode *how, uint32_t most)
{
	Cpu *s = c->s;
	LoopFn *f = s->e.f;
	const LateRows *late = &c->frags.late;
	const ContractRuns *runs = &c->frags.runs;
	const ContractAxes *x = &c->p->axes;
	const Lx col = c->col;
	Lx k = eval_let(&s->e, "segment", var(c, late->segment)), done = var(c, late->done);
	Lx lo = load(c, runs->lo, k), hi = load(c, runs->hi, k), place = load(c, runs->place, k);
	for (uint32_t i = 0; i + 1 < x->nm; i++)
		eval_at(&s->e, x->m[i], load(c, runs->axis[i], k));
	Lx first = eval_let(&s->e, "first", lx_add(f, lo, done));
	Lx end = most ? eval_let(&s->e, "end", lx_min(f, lx_add(f, first, lx_int(f, most)), hi))
		      : hi;
	c->col = eval_let(&s->e, "col", var(c, late->col));
	Lx row = lx_var(f, ls_for(f, "row", first, end, 1));
	contract_go_to_segment_row(c, row);
	contract_finish_row(c, how, lx_add(f, place, row));
	ls_end(f);
	for (uint32_t i = 0; i < x->nm; i++)
		eval_at(&s->e, x->m[i], (Lx){0});
	c->col = col;
	ls_set(f, late->done, lx_sub(f, end, lo));
	if (most)
		ls_if(f, lx_cmp(f, SC_eq, end, hi));
	ls_set(f, late->segment, lx_add(f, k, lx_int(f, 1)));
	ls_set(f, late->done, lx_int(f, 0));
	if (most)
		ls_end(f);
}

void contract_late_rows(ContractCode *c, const TileCode *how)
{
	LoopFn *f = c->s->e.f;
	ls_if(f, lx_cmp(f, SC_lt, var(c, c->frags.late.segment), var(c, c->frags.late.end)));
	finish_rows(c, how, how->late);
	ls_end(f);
}

void contract_late_finish(ContractCode *c, const TileCode *how)
{
	LoopFn *f = c->s->e.f;
	ls_while(f, lx_cmp(f, SC_lt, var(c, c->frags.late.segment), var(c, c->frags.late.end)));
	finish_rows(c, how, 0);
	ls_end(f);
}

void contract_late_tile(ContractCode *c, const TileCode *how)
{
	LoopFn *f = c->s->e.f;
	const LateRows *late = &c->frags.late;
	Lx begin, end;
	contract_late_finish(c, how);
	contract_store_frags(c, how->nv);
	contract_segments(c, &begin, &end);
	ls_set(f, late->col, c->col);
	ls_set(f, late->segment, begin);
	ls_set(f, late->end, end);
}
