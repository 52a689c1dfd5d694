/* Clean-up of a finished loop function, and turning literals into parameters so that layers which
 * differ only in sizes share one kernel. */
#include "ir/loop/loop.h"

#include <string.h>

static Arena *arena_of(const LoopFn *f)
{
	return f->ir->ctx->arena;
}

/* ---- constant control flow ---- */

typedef ARRAY(uint32_t) StmtList;

static void splice(LoopFn *f, StmtList *out, Lb b);

/* Adds a statement to the list, but for loops of no or one iteration and branches on literals,
 * which disappear. */
static void splice_stmt(LoopFn *f, StmtList *out, uint32_t at)
{
	LsData *s = &f->ls.data[at];
	int64_t lo, hi, c;
	if (s->kind == LS_IF && lx_is_int(f, s->x, &c)) {
		splice(f, out, c ? s->body : s->other);
		return;
	}
	if (s->kind == LS_FOR && lx_is_int(f, s->x, &lo) && lx_is_int(f, s->y, &hi)) {
		if (lo >= hi)
			return;
		if (hi - lo <= s->step) {
			Lb body = s->body;
			*s = (LsData){.kind = LS_LET, .v = s->v, .x = s->x};
			array_push(arena_of(f), out, at);
			splice(f, out, body);
			return;
		}
	}
	array_push(arena_of(f), out, at);
}

static void splice(LoopFn *f, StmtList *out, Lb b)
{
	for (uint32_t k = 0; b.i && k < f->block.data[b.i].stmt.n; k++)
		splice_stmt(f, out, f->block.data[b.i].stmt.data[k]);
}

static void flatten(LoopFn *f, Lb b)
{
	if (!b.i)
		return;
	StmtList out = {0};
	splice(f, &out, b);
	struct LBlock *block = &f->block.data[b.i];
	block->stmt.data = out.data;
	block->stmt.n = out.n;
	block->stmt.cap = out.cap;
	for (uint32_t k = 0; k < out.n; k++) {
		LsData s = f->ls.data[out.data[k]];
		flatten(f, s.body);
		flatten(f, s.other);
	}
}

/* ---- dead statements ---- */

typedef struct {
	const LoopFn *f;
	bool *live;    /* by variable */
	bool *seen;    /* by expression */
	bool changed;
} Live;

static void mark_var(Live *l, Lv v)
{
	if (!l->live[v.i])
		l->live[v.i] = l->changed = true;
}

static void mark_expr(void *data, Lx x)
{
	Live *l = data;
	if (!x.i || l->seen[x.i])
		return;
	l->seen[x.i] = true;
	const LxData *d = &l->f->lx.data[x.i];
	if (d->kind == LX_VAR)
		mark_var(l, d->u.v);
	for (uint32_t k = 0; k < d->nin; k++)
		mark_expr(l, d->in[k]);
}

static bool block_live(Live *l, Lb b);

/* Whether a statement is live. One without an effect lives by what it holds, gives or writes. */
static bool stmt_live(Live *l, const LsData *s)
{
	const LsRow *row = ls_row(s->kind);
	if (row->effect)
		return true;
	if (row->body) {
		bool body = block_live(l, s->body);
		return block_live(l, s->other) || body;
	}
	if (row->v != V_NONE)
		return l->live[s->v.i];
	return row->mem != MEM_NONE && (!lmem_is_array(s->mem) || l->live[s->mem.k]);
}

/* Whether something in the block is live. Goes from the last statement to the first: what reads
 * a value comes after what sets it, but for loops. */
static bool block_live(Live *l, Lb b)
{
	bool any = false;
	for (uint32_t k = b.i ? l->f->block.data[b.i].stmt.n : 0; k--;) {
		const LsData *s = &l->f->ls.data[l->f->block.data[b.i].stmt.data[k]];
		if (!stmt_live(l, s))
			continue;
		any = true;
		ls_visit(l->f, s, mark_expr, l);
		const LsMemory mem = ls_row(s->kind)->mem;
		if ((mem == MEM_READ || mem == MEM_READ_ROWS) && lmem_is_array(s->mem))
			mark_var(l, (Lv){s->mem.k});
	}
	return any;
}

static void sweep(LoopFn *f, Live *l, Lb b)
{
	if (!b.i)
		return;
	struct LBlock *block = &f->block.data[b.i];
	uint32_t n = 0;
	for (uint32_t k = 0; k < block->stmt.n; k++) {
		uint32_t at = block->stmt.data[k];
		const LsData *s = &f->ls.data[at];
		if (s->kind != LS_COMMENT && !stmt_live(l, s))
			continue;
		block->stmt.data[n++] = at;
		sweep(f, l, s->body);
		sweep(f, l, s->other);
	}
	block->stmt.n = n;
}

void loop_simplify(LoopFn *f)
{
	loop_propagate(f);
	for (uint32_t k = 0; k < LOOP_TOPS; k++)
		flatten(f, loop_top(f, k));
	loop_propagate(f); /* loops of one iteration became lets */
	Live l = {f, ARENA_ARRAY(arena_of(f), bool, f->lv.n), NULL, true};
	while (l.changed) {
		l.changed = false;
		l.seen = ARENA_ARRAY(arena_of(f), bool, f->lx.n);
		for (uint32_t k = LOOP_TOPS; k--;)
			block_live(&l, loop_top(f, k));
	}
	for (uint32_t k = 0; k < LOOP_TOPS; k++)
		sweep(f, &l, loop_top(f, k));
}

/* ---- literals to parameters ---- */

typedef struct {
	LoopFn *f;
	int64_t keep;
	uint32_t n;     /* expressions before */
	Lx *map;        /* by old expression */
	ARRAY(int64_t) value;
	uint32_t first; /* index of the first new parameter */
} Param;

/* Returns the parameter that stands for a positive literal: one per distinct value. */
static Lx param_for(Param *p, int64_t v)
{
	for (uint32_t k = 0; k < p->value.n; k++)
		if (p->value.data[k] == v)
			return lx_param(p->f, p->first + k);
	uint32_t index = loop_param(p->f, arena_printf(arena_of(p->f), "n%u", p->value.n));
	array_push(arena_of(p->f), &p->value, v);
	return lx_param(p->f, index);
}

static Lx param_literal(Param *p, Lx x, int64_t v)
{
	if (v > p->keep)
		return param_for(p, v);
	if (v < -p->keep && v != INT64_MIN)
		return lx_sub(p->f, lx_int(p->f, 0), param_for(p, -v));
	return x;
}

static Lx param_expr(Param *p, Lx x);

/* Whether only the number of the thread and literals are in it: that is part of the tile, and tells
 * warps apart. */
static bool of_thread(const LoopFn *f, Lx x)
{
	const LxData *d = &f->lx.data[x.i];
	bool all = d->kind == LX_SC, any = d->kind == LX_THREAD;
	for (uint32_t k = 0; all && k < d->nin; k++) {
		bool of = of_thread(f, d->in[k]);
		all = of || f->lx.data[d->in[k].i].kind == LX_INT;
		any = any || of;
	}
	return any && (all || d->kind == LX_THREAD);
}

/* Returns the same operation on new operands; adding a negative literal becomes a subtraction. */
static Lx param_rebuild(Param *p, Lx x)
{
	LoopFn *f = p->f;
	LxData d = f->lx.data[x.i];
	int64_t c;
	if (d.kind == LX_SC && d.sc == SC_add && lx_is_int(f, d.in[1], &c) && c < -p->keep &&
	    d.type.lanes == 1 && d.type.dtype == DT_i64 && c != INT64_MIN) {
		Lx a = param_expr(p, d.in[0]);
		return lx_sub(f, a, param_for(p, -c));
	}
	if (of_thread(f, x))
		return x;
	Lx in[4];
	bool same = true;
	for (uint32_t k = 0; k < d.nin; k++) {
		bool lane = d.kind == LX_WARP && k == 1;
		in[k] = lane ? d.in[k] : param_expr(p, d.in[k]);
		same = same && in[k].i == d.in[k].i;
	}
	if (same)
		return x;
	return lx_rebuild(f, x, in);
}

static Lx param_expr(Param *p, Lx x)
{
	if (!x.i || x.i >= p->n)
		return x;
	if (p->map[x.i].i)
		return p->map[x.i];
	const LxData *d = &p->f->lx.data[x.i];
	bool index = d->type.dtype == DT_i64 && d->type.lanes == 1;
	Lx r = d->kind == LX_INT && index ? param_literal(p, x, d->u.i) : param_rebuild(p, x);
	p->map[x.i] = r;
	return r;
}

static Lx param_of(void *param, Lx x)
{
	return param_expr(param, x);
}

static void param_block(Param *p, Lb b)
{
	for (uint32_t k = 0; b.i && k < p->f->block.data[b.i].stmt.n; k++) {
		uint32_t at = p->f->block.data[b.i].stmt.data[k];
		LsData s = p->f->ls.data[at];
		Lx offset = s.offset;
		/* arrays have literal sizes, and their places are part of the tile */
		s.offset = lmem_is_array(s.mem) ? (Lx){0} : offset;
		ls_map(p->f, &s, param_of, p);
		s.offset = lmem_is_array(s.mem) ? offset : s.offset;
		p->f->ls.data[at] = s;
		param_block(p, s.body);
		param_block(p, s.other);
	}
}

uint32_t loop_parametrise(LoopFn *f, int64_t keep, const int64_t **value)
{
	Param p = {.f = f, .keep = keep < 0 ? 0 : keep, .n = f->lx.n, .first = f->param.n};
	p.map = ARENA_ARRAY(arena_of(f), Lx, f->lx.n);
	for (uint32_t k = 0; k < LOOP_TOPS; k++)
		param_block(&p, loop_top(f, k));
	*value = p.value.data;
	return p.value.n;
}
