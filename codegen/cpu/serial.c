/* Scattering, whose steps depend on each other. */
#include "codegen/cpu/cpu.h"

/* ---- scatter ---- */

static Lx combined(Cpu *s, const Stage *st, uint32_t stage, EvalAddress at)
{
	Lx v = eval_value(&s->e, st->value);
	if (stage_combine(st) == REDUCE_SET)
		return v;
	Lx old = eval_load_at(&s->e, stage, at);
	LType t = lx_type(s->e.f, old);
	if (t.lanes > 1)
		v = eval_splat(&s->e, v);
	return code_combine(&s->code, stage_combine(st), old, v);
}

/* A scalar guard is a branch, lanes of one are masked. */
void cpu_scatter(Cpu *s, uint32_t stage)
{
	const Stage *st = &s->e.k->stage.data[stage];
	EvalAddress at = eval_address(&s->e, stage);
	Lx guard = st->where.i ? eval_value(&s->e, st->where) : (Lx){0},
	   outer_mask = s->e.lanes.mask;
	bool branch = guard.i && lx_type(s->e.f, guard).lanes == 1;
	if (branch)
		ls_if(s->e.f, guard);
	else if (guard.i)
		eval_mask(&s->e, outer_mask.i ? lx_and(s->e.f, outer_mask, guard) : guard);
	eval_store_at(&s->e, stage, at, combined(s, st, stage, at));
	if (branch)
		ls_end(s->e.f);
	eval_mask(&s->e, outer_mask);
}
