#include "ir/loop/program.h"
#include "ir/op/userop.h"

Program *program_new(Ir *ir, const char *name)
{
	Program *p = ARENA_NEW(ir->ctx->arena, Program);
	p->ir = ir;
	p->name = name;
	array_push(ir->ctx->arena, &p->message, "");
	return p;
}

ProgramEntry *program_entry(Program *p, const char *name)
{
	array_push(p->ir->ctx->arena, &p->entry,
		   (ProgramEntry){.program = p, .name = name, .first_call = p->call.n});
	return &p->entry.data[p->entry.n - 1];
}

uint32_t program_add_call(ProgramEntry *e, const ProgramCall *call)
{
	array_push(e->program->ir->ctx->arena, &e->program->call, *call);
	return e->ncall++;
}

const ProgramCall *program_call(const ProgramEntry *e, uint32_t k)
{
	return &e->program->call.data[e->first_call + k];
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

uint32_t program_nextent(const ProgramEntry *e)
{
	return count_dims(e->input.data, e->input.n);
}

uint32_t program_nslot(const ProgramEntry *e)
{
	return e->symbol.n + count_dims(e->output.data, e->output.n) + 1;
}

ProgramCount program_count(const ProgramEntry *e, uint32_t k, const int64_t *value)
{
	const ProgramCost *c = &program_call(e, k)->cost;
	const SymTab *syms = e->program->ir->syms;
	uint32_t n = value ? e->symbol.n : 0;
	return (ProgramCount){cost_at(syms, c->flops, e->symbol.data, value, n),
	                      cost_at(syms, c->bytes, e->symbol.data, value, n),
	                      cost_at(syms, c->launches, e->symbol.data, value, n)};
}

ProgramCount program_total(const ProgramEntry *e, const int64_t *value)
{
	ProgramCount sum = {0};
	for (uint32_t k = 0; k < e->ncall; k++) {
		ProgramCount c = program_count(e, k, value);
		sum = (ProgramCount){sum.flops + c.flops, sum.bytes + c.bytes,
				     sum.launches + c.launches};
	}
	return sum;
}

bool program_is_found(const ProgramEntry *e, uint32_t k)
{
	const ProgramTensor *t = &e->output.data[k];
	bool found = false;
	for (uint32_t d = 0; d < t->rank; d++)
		found |= program_finds(e, t->dim[d]);
	return found;
}

bool program_finds(const ProgramEntry *e, Sym size)
{
	return sym_uses_others(e->program->ir->syms, size, SYMVAR_UNBACKED, e->symbol.data,
			       e->symbol.n);
}

bool program_is_room(const ProgramEntry *e, uint32_t buf)
{
	uint32_t first = e->input.n, end = first + e->output.n;
	return buf >= end + 3 || (buf >= first && buf < end && program_is_found(e, buf - first));
}

uint32_t program_nslot_params(const ProgramEntry *e, const LoopFn *f)
{
	return f == e->sizes ? 0 : e->symbol.n;
}

static bool verify_all(LoopFn *const *f, uint32_t n, const struct Isa *isa)
{
	for (uint32_t k = 0; k < n; k++)
		TRY(loop_verify(f[k], isa));
	return true;
}

bool program_verify(const Program *p, const struct Isa *isa)
{
	for (uint32_t k = 0; k < p->entry.n; k++) {
		const ProgramEntry *e = &p->entry.data[k];
		TRY(loop_verify(e->sizes, isa) && loop_verify(e->run, isa));
		TRY(verify_all(e->sizes_outlined.data, e->sizes_outlined.n, isa));
		TRY(verify_all(e->run_outlined.data, e->run_outlined.n, isa));
	}
	return verify_all(p->fn.data, p->fn.n, isa);
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
