#include "ir/program.h"

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
