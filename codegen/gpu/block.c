#include "codegen/gpu/block.h"

void block_begin(Code *s, const Nest *nest, uint32_t threads)
{
	code_begin_phase(s, nest);
	loop_block(s->e.f, threads, s->target->gpu->shared);
}

Lx block_number(Code *s)
{
	return lx_var(s->e.f, s->e.f->task);
}

Lx block_thread(Code *s)
{
	return lx_thread(s->e.f);
}

Lx block_column(Code *s, uint32_t row)
{
	return lx_mod(s->e.f, lx_thread(s->e.f), lx_int(s->e.f, row));
}

Lx block_row(Code *s, uint32_t row)
{
	return lx_div(s->e.f, lx_thread(s->e.f), lx_int(s->e.f, row));
}

void block_decode(Code *s, Lx t, const uint32_t *axis, uint32_t n, const int64_t *by)
{
	LoopFn *f = s->e.f;
	for (uint32_t i = n; i-- > 0;) {
		const Nest *nest = s->e.nest;
		const int64_t each = by ? by[i] : 1;
		const char *name = sym_name(s->e.syms, nest->var[axis[i]]);
		Lx v = t;
		if (i) {
			Lx size = eval_size(&s->e, sym_ceildiv(s->e.syms, nest->extent[axis[i]], sym_int(s->e.syms, each)));
			t = eval_let(&s->e, "t", t);
			v = lx_mod(f, t, size);
			t = lx_div(f, t, size);
		}
		eval_at(&s->e, axis[i], eval_let(&s->e, name, lx_mul(f, v, lx_int(f, each))));
	}
}

void block_align(Code *s, LMem m, uint32_t bytes)
{
	LArg *a = &s->e.f->buf.data[m.k];
	a->align = a->align < bytes ? bytes : a->align;
}

void block_point(Code *s)
{
	for (uint32_t i = 0; i < s->e.k->stage.n; i++) {
		const Stage *st = &s->e.k->stage.data[i];
		if (st->kind == STAGE_CHECK)
			eval_check(&s->e, i);
		else if (st->result == RESULT_GLOBAL)
			eval_store_at(&s->e, i, eval_address(&s->e, i), eval_value(&s->e, st->value));
		else
			eval_stage_value(&s->e, i, eval_let(&s->e, "r", eval_convert(&s->e, eval_value(&s->e, st->value), dtype_compute(st->dtype))));
	}
	for (uint32_t i = 0; i < s->e.k->stage.n; i++)
		eval_stage_over(&s->e, i);
}
