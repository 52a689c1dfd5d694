/* What a kernel depends on, the point of evaluation, and what is remembered there. */
#include "codegen/eval/priv.h"

/* ---- dependences ---- */

uint64_t eval_axes(const Eval *e, Sym sym)
{
	uint64_t m = 0;
	for (uint32_t i = 0; i < e->axes.n; i++)
		if (e->axes.var[i].i && sym_uses(e->syms, sym, e->axes.var[i]))
			m |= UINT64_C(1) << i;
	for (uint32_t i = 0; i < e->k->vvar.n; i++)
		if (sym_uses(e->syms, sym, e->k->vvar.data[i].var))
			m |= e->deps[e->k->vvar.data[i].value.i];
	return m;
}

static uint64_t stage_deps(const Eval *e, const KxData *x)
{
	uint64_t m = e->axes.outer; /* a stage runs once per outer point */
	for (uint32_t j = 0; j < x->nidx; j++)
		m |= eval_axes(e, x->idx[j]);
	return m;
}

static uint32_t words(const Kernel *k)
{
	return (k->stage.n + 63) / 64;
}

static void read_as_well(Eval *e, uint32_t x, Kx part)
{
	for (uint32_t i = 0, n = words(e->k); i < n; i++)
		e->reads[x * n + i] |= e->reads[part.i * n + i];
}

bool eval_reads(const Eval *e, Kx x, uint32_t stage)
{
	return e->reads[x.i * words(e->k) + stage / 64] >> stage % 64 & 1;
}

/* The stages that each expression reads. */
static void find_stages(Eval *e)
{
	const Kernel *k = e->k;
	for (uint32_t i = 1; i < k->kx.n; i++) {
		const KxData *x = &k->kx.data[i];
		if (x->kind == KX_STAGE)
			e->reads[i * words(k) + x->stage / 64] |= UINT64_C(1) << x->stage % 64;
		for (uint32_t j = 0; j < x->nin; j++)
			read_as_well(e, i, x->in[j]);
		read_as_well(e, i, x->guard);
		read_as_well(e, i, x->other);
		for (uint32_t j = 0; j < x->nidx; j++)
			for (uint32_t v = 0; v < k->vvar.n; v++)
				if (sym_uses(e->syms, x->idx[j], k->vvar.data[v].var))
					read_as_well(e, i, k->vvar.data[v].value);
	}
}

bool eval_reads_below(const Eval *e, Kx x, uint32_t n)
{
	for (uint32_t i = n; i < e->k->stage.n; i++)
		if (eval_reads(e, x, i))
			return false;
	return true;
}

void eval_find_deps(Eval *e)
{
	const Kernel *k = e->k;
	for (uint32_t i = 1; i < k->kx.n; i++) {
		const KxData *x = &k->kx.data[i];
		uint64_t m = e->deps[x->guard.i] | e->deps[x->other.i];
		for (uint32_t j = 0; j < x->nin; j++)
			m |= e->deps[x->in[j].i];
		if (x->kind == KX_LOAD) {
			m |= eval_axes(e, e->offset[i]);
		} else if (x->kind == KX_STAGE) {
			m |= stage_deps(e, x);
		} else {
			for (uint32_t j = 0; j < x->nidx; j++)
				m |= eval_axes(e, x->idx[j]);
		}
		e->deps[i] = m;
	}
	memo_init(&e->state.memo, e->f, e->arena);
}

bool eval_coef(const Eval *e, Sym offset, uint32_t axis, Sym *coef)
{
	Sym rest;
	for (uint32_t i = 0; i < e->k->vvar.n; i++)
		if (sym_uses(e->syms, offset, e->k->vvar.data[i].var) &&
		    (e->deps[e->k->vvar.data[i].value.i] >> axis & 1))
			return false;
	return sym_linear(e->syms, offset, e->axes.var[axis], coef, &rest);
}

bool eval_coef_is(const Eval *e, Sym offset, uint32_t axis, int64_t value)
{
	Sym coef;
	return eval_coef(e, offset, axis, &coef) && sym_is(e->syms, coef, value);
}

/* ---- setting up ---- */

static void copy_axes(Eval *e)
{
	const Kernel *k = e->k;
	if (k->axis.n > MAX_KERNEL_AXES)
		ctx_bug(e->l->ir->ctx, "kernel %s has %u axes", k->name, k->axis.n);
	e->axes.n = k->axis.n;
	e->axes.outer = (UINT64_C(1) << k->nouter) - 1;
	for (uint32_t i = 0; i < k->axis.n; i++) {
		e->axes.var[i] = k->axis.data[i].var;
		e->axes.extent[i] = k->axis.data[i].extent;
	}
	e->state.position = ARENA_ARRAY(e->arena, const Sym *, k->vvar.n);
	for (uint32_t i = 0; i < k->vvar.n; i++)
		e->state.position[i] = k->vvar.data[i].at;
}

/* Where loads read and results are stored. */
static void find_offsets(Eval *e)
{
	const Kernel *k = e->k;
	e->deps = ARENA_ARRAY(e->arena, uint64_t, k->kx.n);
	e->reads = ARENA_ARRAY(e->arena, uint64_t, (size_t)k->kx.n * words(k));
	e->offset = ARENA_ARRAY(e->arena, Sym, k->kx.n);
	e->from = ARENA_ARRAY(e->arena, SchedArg, k->kx.n);
	e->store = ARENA_ARRAY(e->arena, Sym, k->stage.n);
	for (uint32_t i = 1; i < k->kx.n; i++) {
		const KxData *x = &k->kx.data[i];
		if (x->kind != KX_LOAD)
			continue;
		e->offset[i] = layout_offset(e->l->ir, &buf_of(e->l, x->buf)->layout, x->idx);
		e->from[i] = (SchedArg){ARG_BUF, x->buf.i, NULL};
	}
	for (uint32_t i = 0; i < k->stage.n; i++) {
		const Stage *st = &k->stage.data[i];
		if (st->result == RESULT_GLOBAL)
			e->store[i] =
				layout_offset(e->l->ir, &buf_of(e->l, st->buf)->layout, st->idx);
	}
}

void eval_init(Eval *e, const Lowered *l, Kernel *k, const Schedule *made)
{
	Arena *arena = l->ir->ctx->arena;
	*e = (Eval){.l = l,
		    .syms = l->ir->syms,
		    .arena = arena,
		    .k = k,
		    .lanes = {.axis = NO_AXIS, .n = 1},
		    .args.made = made};
	intern_init(&e->index.part, arena);
	e->state.key = ARENA_ARRAY(arena, uint32_t, 2 + MAX_AXES + k->stage.n);
	e->state.visited = ARENA_ARRAY(arena, uint32_t, k->kx.n);
	e->stage = ARENA_ARRAY(arena, StageValue, k->stage.n);
	copy_axes(e);
	find_offsets(e);
	eval_find_deps(e);
	find_stages(e);
}

void eval_start(Eval *e, LoopFn *f)
{
	e->f = f;
	memo_init(&e->state.memo, f, e->arena);
	e->args = (EvalArgs){.made = e->args.made};
	for (uint32_t i = 0; i < e->axes.n; i++)
		e->axes.at[i] = (Lx){0};
	e->lanes.mask = (Lx){0};
}

/* ---- the point ---- */

void eval_at(Eval *e, uint32_t axis, Lx value)
{
	e->axes.at[axis] = value;
}

void eval_lanes(Eval *e, uint32_t axis, uint32_t lanes)
{
	e->lanes.axis = axis;
	e->lanes.n = lanes;
}

void eval_mask(Eval *e, Lx mask)
{
	e->lanes.mask = mask;
}

void eval_for(Eval *e, uint32_t axis, Lx lo, Lx hi, int64_t step)
{
	array_push(e->arena, &e->state.loop, (EvalLoop){axis, e->axes.at[axis]});
	e->axes.at[axis] =
		lx_var(e->f, ls_for(e->f, sym_name(e->syms, e->axes.var[axis]), lo, hi, step));
}

void eval_end(Eval *e)
{
	const EvalLoop *l = &e->state.loop.data[--e->state.loop.n];
	ls_end(e->f);
	e->axes.at[l->axis] = l->before;
}

bool eval_varies(const Eval *e, Kx x)
{
	return e->lanes.axis != NO_AXIS && (e->deps[x.i] >> e->lanes.axis & 1);
}

bool eval_outer_vector(const Eval *e)
{
	return e->lanes.axis != NO_AXIS && (e->axes.outer >> e->lanes.axis & 1);
}

/* ---- what is remembered ---- */

/* All that a value depends on besides the lanes that are active: which it is, the lanes that it
 * has, its axes, and the computations of the stages that it reads. Returns the length of
 * e->state.key. */
static uint32_t find_key(const Eval *e, uint32_t number, Kx x)
{
	uint32_t n = 0;
	uint64_t deps = e->deps[x.i];
	e->state.key[n++] = number;
	e->state.key[n++] = eval_varies(e, x) ? (e->lanes.axis + 1) << 16 | e->lanes.n : 0;
	for (uint32_t a = 0; deps; a++, deps >>= 1)
		if (deps & 1)
			e->state.key[n++] = e->axes.at[a].i;
	for (uint32_t i = 0; i < e->k->stage.n; i++)
		if (eval_reads(e, x, i))
			e->state.key[n++] = e->stage[i].run;
	return n;
}

static Lx active(const Eval *e, Kx x)
{
	return eval_varies(e, x) ? e->lanes.mask : (Lx){0};
}

/* Of an expression, or of the value variable that it is: their numbers are the expression's, and
 * those behind. */
Lx eval_recall(Eval *e, uint32_t number, Kx x)
{
	return memo_find(&e->state.memo, e->state.key, find_key(e, number, x), active(e, x));
}

/* What depends on an axis whose value changes is computed each time. */
Lx eval_remember(Eval *e, uint32_t number, Kx x, Lx v)
{
	uint64_t deps = e->deps[x.i];
	for (uint32_t a = 0; deps; a++, deps >>= 1)
		if (deps & 1 && memo_changes(e->f, e->axes.at[a]))
			return v;
	memo_add(&e->state.memo, e->state.key, find_key(e, number, x), active(e, x), v);
	return v;
}

Lx eval_known(Eval *e, Kx x)
{
	return eval_recall(e, x.i, x);
}

void eval_assume(Eval *e, Kx x, Lx value)
{
	eval_remember(e, x.i, x, value);
}
