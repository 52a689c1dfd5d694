#include "ir/loop/program.h"
#include "ir/ops/userop.h"

Program *program_new(Ir *ir, const char *name)
{
	Program *p = ARENA_NEW(ir->ctx->arena, Program);
	p->ir = ir;
	p->name = name;
	array_push(ir->ctx->arena, &p->message, "");
	return p;
}

uint32_t program_message(Program *p, const char *text)
{
	array_push(p->ir->ctx->arena, &p->message, text);
	return p->message.n - 1;
}

static uint32_t count_dims(const ProgramTensor *t, uint32_t n)
{
	uint32_t dims = 0;
	for (uint32_t k = 0; k < n; k++)
		dims += t[k].rank;
	return dims;
}

uint32_t program_nextent(const Program *p)
{
	return count_dims(p->input.data, p->input.n);
}

uint32_t program_nslot(const Program *p)
{
	return p->symbol.n + count_dims(p->output.data, p->output.n) + 1;
}

ProgramCount program_count(const Program *p, uint32_t k, const int64_t *value)
{
	const ProgramCost *c = &p->call.data[k].cost;
	const SymTab *syms = p->ir->syms;
	uint32_t n = value ? p->symbol.n : 0;
	return (ProgramCount){cost_at(syms, c->flops, p->symbol.data, value, n),
	                      cost_at(syms, c->bytes, p->symbol.data, value, n),
	                      cost_at(syms, c->launches, p->symbol.data, value, n)};
}

ProgramCount program_total(const Program *p, const int64_t *value)
{
	ProgramCount sum = {0};
	for (uint32_t k = 0; k < p->call.n; k++) {
		ProgramCount c = program_count(p, k, value);
		sum = (ProgramCount){sum.flops + c.flops, sum.bytes + c.bytes, sum.launches + c.launches};
	}
	return sum;
}

uint32_t program_nslot_params(const Program *p, const LoopFn *f)
{
	return f == p->sizes ? 0 : p->symbol.n;
}

bool program_verify(const Program *p, const struct Isa *isa)
{
	bool ok = loop_verify(p->sizes, isa) && loop_verify(p->run, isa);
	for (uint32_t k = 0; ok && k < p->fn.n; k++)
		ok = loop_verify(p->fn.data[k], isa);
	for (uint32_t k = 0; ok && k < p->sizes_part.n; k++)
		ok = loop_verify(p->sizes_part.data[k], isa);
	for (uint32_t k = 0; ok && k < p->run_part.n; k++)
		ok = loop_verify(p->run_part.data[k], isa);
	return ok;
}

uint32_t program_user_ops(const Program *p, const UserOp ***op)
{
	ARRAY(const UserOp *) found = {0};
	for (uint32_t k = 0; k < p->fn.n; k++)
		for (uint32_t i = 0; i < p->fn.data[k]->ls.n; i++) {
			const LoopCall *c = p->fn.data[k]->ls.data[i].call;
			uint32_t j = 0;
			while (c && j < found.n && found.data[j] != c->op)
				j++;
			if (c && j == found.n)
				array_push(p->ir->ctx->arena, &found, c->op);
		}
	*op = found.data;
	return found.n;
}
