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
			Lx size = eval_size(&s->e, sym_ceildiv(s->e.syms, nest->extent[axis[i]],
							       sym_int(s->e.syms, each)));
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

static uint32_t access_lanes(uint32_t wide, DType d)
{
	const uint32_t most = SHARED_ALIGN / dtype_size(d);
	return wide < most ? wide : most;
}

void block_load_wide(Code *s, Kx load, uint32_t axis, Lx x, uint32_t wide)
{
	Eval *e = &s->e;
	LMem mem = eval_load_memory(e, load);
	const uint32_t lanes = access_lanes(wide, mem.dtype);
	const DType d = e->k->kx.data[load.i].dtype;
	block_align(s, mem, lanes * dtype_size(mem.dtype));
	for (uint32_t k = 0; k < wide; k += lanes) {
		eval_at(e, axis, lx_add(e->f, x, lx_int(e->f, k)));
		if (eval_known(e, load).i)
			continue;
		Lv v = ls_load(e->f, e->f->buf.data[mem.k].name, mem,
			       eval_index(e, e->nest->offset[load.i]), (LType){d, lanes}, (Lx){0});
		for (uint32_t i = 0; i < lanes; i++) {
			eval_at(e, axis, lx_add(e->f, x, lx_int(e->f, k + i)));
			eval_assume(e, load,
				    lanes == 1 ? lx_var(e->f, v)
					       : lx_lane(e->f, lx_var(e->f, v), i));
		}
	}
}

void block_store_wide(Code *s, uint32_t stage, uint32_t axis, Lx x, uint32_t wide, const Lx *value)
{
	Eval *e = &s->e;
	LMem mem = eval_memory(e, e->k->stage.data[stage].store.buf);
	const uint32_t lanes = access_lanes(wide, mem.dtype);
	block_align(s, mem, lanes * dtype_size(mem.dtype));
	for (uint32_t k = 0; k < wide; k += lanes) {
		eval_at(e, axis, lx_add(e->f, x, lx_int(e->f, k)));
		Lx v = lanes == 1 ? value[k] : lx_pack(e->f, value + k, lanes);
		ls_store(e->f, mem, eval_index(e, e->nest->store[stage]), v, (Lx){0});
	}
}

void block_store(Code *s, uint32_t stage)
{
	Lx value = eval_value(&s->e, s->e.k->stage.data[stage].value);
	eval_store_at(&s->e, stage, eval_address(&s->e, stage), value);
}

void block_point(Code *s)
{
	for (uint32_t i = 0; i < s->e.k->stage.n; i++) {
		const Stage *st = &s->e.k->stage.data[i];
		if (st->kind == STAGE_CHECK)
			eval_check(&s->e, i);
		else if (stage_stores(st))
			block_store(s, i);
		else
			eval_stage_value(&s->e, i,
					 eval_let(&s->e, "r",
						  eval_convert(&s->e, eval_value(&s->e, st->value),
							       dtype_compute(st->dtype))));
	}
	for (uint32_t i = 0; i < s->e.k->stage.n; i++)
		eval_stage_over(&s->e, i);
}
