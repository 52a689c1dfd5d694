/* The point of evaluation, and what is remembered there. */
#include "codegen/eval/priv.h"

/* ---- setting up ---- */

void eval_init(Eval *e, const Lowered *l, const Schedule *made)
{
	*e = (Eval){.l = l, .syms = l->ir->syms, .arena = l->ir->ctx->arena, .args.made = made};
	intern_init(&e->index.part, e->arena);
}

void eval_start(Eval *e, LoopFn *f, const Nest *nest)
{
	const Kernel *k = nest->k;
	e->f = f;
	e->nest = nest;
	e->k = k;
	e->stage = ARENA_ARRAY(e->arena, StageValue, k->stage.n);
	e->args = (EvalArgs){.made = e->args.made};
	e->state = (EvalState){.key = ARENA_ARRAY(e->arena, uint32_t, 2 + MAX_AXES + k->stage.n),
			       .visited = ARENA_ARRAY(e->arena, uint32_t, k->kx.n)};
	memo_init(&e->state.memo, f, e->arena);
	e->lanes = (EvalLanes){.axis = NO_AXIS, .n = 1};
	for (uint32_t i = 0; i < nest->n; i++)
		e->at[i] = (Lx){0};
}

/* ---- the point ---- */

void eval_at(Eval *e, uint32_t axis, Lx value)
{
	e->at[axis] = value;
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
	array_push(e->arena, &e->state.loop, (EvalLoop){axis, e->at[axis]});
	e->at[axis] =
		lx_var(e->f, ls_for(e->f, sym_name(e->syms, e->nest->var[axis]), lo, hi, step));
}

void eval_end(Eval *e)
{
	const EvalLoop *l = &e->state.loop.data[--e->state.loop.n];
	ls_end(e->f);
	e->at[l->axis] = l->before;
}

bool eval_varies(const Eval *e, Kx x)
{
	return e->lanes.axis != NO_AXIS && (e->nest->deps[x.i] >> e->lanes.axis & 1);
}

bool eval_outer_vector(const Eval *e)
{
	return e->lanes.axis != NO_AXIS && (e->nest->outer >> e->lanes.axis & 1);
}

/* ---- what is remembered ---- */

/* Writes to e->state.key what the value of x depends on besides the active lanes: its number, the
 * lanes that it has, the values of its axes, and the computations of the stages that it reads.
 * Returns the length of the key. */
static uint32_t find_key(const Eval *e, uint32_t number, Kx x)
{
	uint32_t n = 0;
	uint64_t deps = e->nest->deps[x.i];
	e->state.key[n++] = number;
	e->state.key[n++] = eval_varies(e, x) ? (e->lanes.axis + 1) << 16 | e->lanes.n : 0;
	for (uint32_t a = 0; deps; a++, deps >>= 1)
		if (deps & 1)
			e->state.key[n++] = e->at[a].i;
	for (uint32_t i = nest_next_read(e->nest, x, 0); i < e->k->stage.n;
	     i = nest_next_read(e->nest, x, i + 1))
		e->state.key[n++] = e->stage[i].run;
	return n;
}

static Lx active(const Eval *e, Kx x)
{
	return eval_varies(e, x) ? e->lanes.mask : (Lx){0};
}

Lx eval_recall(Eval *e, uint32_t number, Kx x)
{
	return memo_find(&e->state.memo, e->state.key, find_key(e, number, x), active(e, x));
}

Lx eval_remember(Eval *e, uint32_t number, Kx x, Lx v)
{
	uint64_t deps = e->nest->deps[x.i];
	for (uint32_t a = 0; deps; a++, deps >>= 1)
		if (deps & 1 && memo_changes(e->f, e->at[a]))
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
