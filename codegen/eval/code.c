#include "codegen/eval/code.h"

#include "ir/loop/predict.h"

/* ---- phases ---- */

void code_init(Code *s, const Lowered *l, const Target *target)
{
	*s = (Code){.target = target, .out = ARENA_NEW(l->ir->ctx->arena, Schedule)};
	eval_init(&s->e, l, s->out);
}

void code_begin_phase(Code *s, const Nest *nest)
{
	uint32_t phase = s->out->phase.n;
	const char *name = nest->k->name;
	LoopFn *f =
		loop_new(s->e.l->ir,
			 phase ? arena_printf(s->e.arena, "%s_phase_%u", name, phase + 1) : name);
	f->comment = kernel_text(nest->k, s->e.arena);
	eval_start(&s->e, f, nest);
}

uint32_t code_temp(Code *s, SchedTemp t)
{
	array_push(s->e.arena, &s->out->temp, t);
	return s->out->temp.n - 1;
}

static double predicted(const Code *s, const SchedPhase *p)
{
	int64_t *param = ARENA_ARRAY(s->e.arena, int64_t, p->nparam);
	for (uint32_t i = 0; i < p->nparam; i++)
		param[i] = sym_hint(s->e.syms, p->param[i]);
	return loop_predict(p->f, &s->target->machine, param, sym_hint(s->e.syms, p->ntasks),
			    cost_at(s->e.syms, p->cost.bytes, NULL, NULL, 0));
}

void code_finish_phase(Code *s, Sym ntasks, KernelCost cost)
{
	SchedPhase p = {.f = s->e.f,
			.ntasks = ntasks,
			.cost = cost,
			.narg = s->e.args.arg.n,
			.arg = s->e.args.arg.data,
			.nparam = s->e.args.param.n,
			.param = s->e.args.param.data};
	loop_simplify(p.f);
	for (uint32_t k = 0; k < LOOP_TOPS; k++)
		s->out->code += loop_statements(p.f, loop_top(p.f, k));
	s->out->flops += cost_at(s->e.syms, cost.flops, NULL, NULL, 0);
	s->out->bytes += cost_at(s->e.syms, cost.bytes, NULL, NULL, 0);
	s->out->cycles += predicted(s, &p);
	array_push(s->e.arena, &s->out->phase, p);
}

/* ---- what is empty ---- */

static bool reads_nothing(const Lowered *l, const Kernel *k)
{
	for (uint32_t i = 1; i < k->kx.n; i++)
		if (k->kx.data[i].kind == KX_LOAD &&
		    sym_is(l->ir->syms, layout_numel(l->ir, &buf_of(l, k->kx.data[i].buf)->layout),
			   0))
			return true;
	return false;
}

static bool checks(const Kernel *k)
{
	for (uint32_t i = 0; i < k->vvar.n; i++)
		if (k->vvar.data[i].check)
			return true;
	return false;
}

void code_leave_out_empty(const Lowered *l, const Kernel *k, Schedule *s)
{
	if (!kernel_stores_nothing(l, k) || (checks(k) && !reads_nothing(l, k)))
		return;
	for (uint32_t p = 0; p < s->phase.n; p++)
		s->phase.data[p].ntasks = sym_int(l->ir->syms, 0);
}
