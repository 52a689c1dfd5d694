/* What schedules have in common: phases, the task's part of axes, streaming stores. */
#include "codegen/cpu/cpu.h"

#include "codegen/plan/tuning.h"

/* ---- phases ---- */

void cpu_begin_phase(Cpu *s, const Nest *nest)
{
	code_begin_phase(&s->code, nest);
	for (uint32_t i = 0; i < nest->n; i++)
		s->start[i] = s->limit[i] = (Lx){0};
}

void cpu_finish_phase(Cpu *s, Sym ntasks, KernelCost cost)
{
	if (s->streamed)
		ls_fence(s->e.f);
	s->streamed = false;
	code_finish_phase(&s->code, ntasks, cost);
}

/* ---- results ---- */

/* Whether the kernel reads what it stores there: it is in a cache then. */
static bool is_read(const Lowered *l, const Kernel *k, BufId buf)
{
	for (uint32_t i = 1; i < k->kx.n; i++)
		if (k->kx.data[i].kind == KX_LOAD && buf_may_be(l, buf, k->kx.data[i].buf))
			return true;
	return false;
}

/* Whether a store of so many bytes is as wide as a register, or as the machine streams. */
static bool is_stream_width(const Target *t, uint32_t bytes)
{
	return bytes == t->isa.vector_bytes || bytes == t->machine.stream_bytes;
}

/* Whether a store goes past the caches (streaming store): it fills whole vectors of a tensor that
 * no cache holds until it is read, so that lines need not be fetched before they are written. */
static bool streams(const Cpu *s, uint32_t stage, const EvalAddress *a)
{
	const Stage *st = &s->e.k->stage.data[stage];
	DType d = buf_of(s->e.l, st->store.buf)->dtype;
	if (!a->vector || a->index.i || s->e.lanes.mask.i || d != dtype_compute(d) ||
	    !is_stream_width(s->target, s->e.lanes.n * dtype_size(d)))
		return false;
	uint64_t axes = nest_axes(s->e.nest, s->e.nest->store[stage]);
	int64_t n, bytes = dtype_size(d), limit = tuning_beyond_caches(&s->target->machine);
	for (uint32_t i = 0; i < s->e.nest->n && bytes < limit; i++)
		if (axes >> i & 1)
			bytes = sym_is_const(s->e.syms, s->e.nest->extent[i], &n) && n ? bytes * n
										       : 0;
	return bytes >= limit && !is_read(s->e.l, s->e.k, st->store.buf);
}

void cpu_store(Cpu *s, uint32_t stage, Lx value)
{
	EvalAddress a = eval_address(&s->e, stage);
	if (!streams(s, stage, &a)) {
		eval_store_at(&s->e, stage, a, value);
		return;
	}
	LMem mem = eval_memory(&s->e, s->e.k->stage.data[stage].store.buf);
	ls_stream(s->e.f, mem, a.offset, eval_splat(&s->e, eval_convert(&s->e, value, mem.dtype)));
	s->streamed = true;
}

void cpu_store_sum(Cpu *s, uint32_t sum, Lx value)
{
	eval_stage_value(&s->e, sum, value);
	for (uint32_t i = 0; i < s->e.k->stage.n; i++)
		if (i != sum && stage_stores(&s->e.k->stage.data[i]))
			cpu_store(s, i, eval_value(&s->e, s->e.k->stage.data[i].value));
	eval_stage_over(&s->e, sum);
}

void cpu_hoist_stores(Cpu *s, uint32_t sum, uint64_t known)
{
	for (uint32_t i = 0; i < s->e.k->stage.n; i++)
		if (i != sum && stage_stores(&s->e.k->stage.data[i]))
			eval_hoist(&s->e, s->e.k->stage.data[i].value, known);
}

/* ---- loops ---- */

void cpu_part(Cpu *s, uint32_t axis, Lx lo, Lx hi)
{
	s->start[axis] = lo;
	s->limit[axis] = hi;
}

Lx cpu_start(Cpu *s, uint32_t axis)
{
	return s->start[axis].i ? s->start[axis] : lx_int(s->e.f, 0);
}

Lx cpu_limit(Cpu *s, uint32_t axis)
{
	return s->limit[axis].i ? s->limit[axis] : eval_size(&s->e, s->e.nest->extent[axis]);
}

void cpu_vector_loop(Cpu *s, uint32_t axis, Lx lo, Lx hi, bool divisible,
		     void (*body)(Cpu *, void *), void *data)
{
	Lx outer_mask = s->e.lanes.mask, lanes = lx_int(s->e.f, s->e.lanes.n);
	Lx end = hi;
	if (!divisible) {
		Lx n = lx_sub(s->e.f, hi, lo);
		Lx whole = lx_sub(s->e.f, n, lx_mod(s->e.f, n, lanes));
		end = lx_add(s->e.f, lo, whole);
		if (!lx_is_int(s->e.f, end, &(int64_t){0}))
			end = lx_var(s->e.f, ls_let(s->e.f, "whole", end));
	}
	int64_t a, b;
	bool never = lx_is_int(s->e.f, lo, &a) && lx_is_int(s->e.f, end, &b) && a >= b;
	if (!never) {
		eval_for(&s->e, axis, lo, end, s->e.lanes.n);
		body(s, data);
		eval_end(&s->e);
	}
	if (!divisible) {
		ls_if(s->e.f, lx_cmp(s->e.f, SC_lt, end, hi));
		eval_at(&s->e, axis, end);
		Lx tail = lx_mask(s->e.f, lx_sub(s->e.f, hi, end), s->e.lanes.n);
		eval_mask(&s->e, lx_var(s->e.f, ls_let(s->e.f, "tail", tail)));
		body(s, data);
		ls_end(s->e.f);
		eval_mask(&s->e, outer_mask);
	}
	eval_at(&s->e, axis, (Lx){0});
}

/* ---- scattering, whose steps depend on each other ---- */

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

/* Writes a scalar guard as a branch, and one that differs by lane as a mask. */
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
