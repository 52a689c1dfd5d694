/* Reductions where lanes are neighbouring points: the sum of each column. One vector of columns alone reads a line here and there,
 * and waits for its own sum; so several go through long rows together:
 *
 *     for r in rows:   acc0 += x[r, c .. c + 16)   acc1 += x[r, c + 16 .. c + 32)   ...
 *
 * and through short ones, windows of images for example, where it takes arithmetic to find the next element, which is done once then.
 * Each column is added up in the same order as alone. */
#include "codegen/schedule/generic.h"

enum {
	ABREAST = 4,  /* vectors */
	LONG_ROW = 64
};

/* Divisions and comparisons of indices, the same for all lanes. */
static bool takes_arithmetic(const Sched *s, const Stage *st)
{
	bool *part = ARENA_ARRAY(s->arena, bool, s->k->kx.n), found = false;
	uint64_t axes = 0;
	for (uint32_t i = 0; i < st->nred; i++)
		axes |= UINT64_C(1) << st->red[i];
	part[st->value.i] = true;
	for (uint32_t i = st->value.i; i > 0; i--) {
		const KxData *x = &s->k->kx.data[i];
		if (!part[i] || !(s->deps[i] & axes))
			continue;
		for (uint32_t j = 0; j < x->nin; j++)
			part[x->in[j].i] = true;
		part[x->guard.i] = part[x->other.i] = true;
		found |= x->kind == KX_INRANGE && !sched_varies(s, (Kx){i});
		for (uint32_t j = 0; x->kind == KX_LOAD && j < st->nred; j++) {
			Sym coef;
			found |= !sched_coef(s, s->offset[i], st->red[j], &coef);
		}
	}
	return found;
}

/* How many: long rows of which each has a line to read, or waits for its own result, are read beside each other, and such of which
 * the elements have to be found. */
static uint32_t points_abreast(const Generic *g)
{
	const Sched *s = g->s;
	uint32_t n = ABREAST;
	bool reduces = false;
	for (uint32_t i = 0; i < s->k->stage.n; i++) {
		const Stage *st = &s->k->stage.data[i];
		if (st->kind == STAGE_MAP && st->result == RESULT_GLOBAL && !st->nmap)
			continue;
		double length = 1;
		for (uint32_t j = 0; j < st->nred; j++)
			length *= (double)axes_hint(s, st->red[j]);
		if ((st->kind != STAGE_REDUCE && st->kind != STAGE_ARGREDUCE) || st->result != RESULT_REGISTER || st->nmap ||
		    (length < LONG_ROW && !takes_arithmetic(s, st)) || kernel_needed_where(s->k, i, s->arena).i)
			return 1;
		reduces = reduces || generic_role(g, i) == RUN_WHOLE || generic_role(g, i) == RUN_PART;
	}
	while (n > 1 && axes_hint(s, s->vaxis) < (int64_t)n * s->lanes)
		n /= 2;
	return reduces ? n : 1;
}

/* The vectors: what the stages of each have given. */
typedef struct {
	Generic *g;
	uint32_t n;
	Lx here;
	StageValue *value[ABREAST], *whole;
} Abreast;

static uint32_t enter(const Abreast *p, uint32_t v)
{
	Sched *s = p->g->s;
	s->at[s->vaxis] = lx_add(s->f, p->here, lx_int(s->f, (int64_t)v * s->lanes));
	s->stage = p->value[v];
	return sched_mark(s);
}

static void leave(const Abreast *p, uint32_t mark)
{
	Sched *s = p->g->s;
	sched_forget(s, mark);
	s->at[s->vaxis] = p->here;
	s->stage = p->whole;
}

/* One loop over the row for all of them. */
static void reduce_abreast(const Abreast *p, uint32_t stage)
{
	Sched *s = p->g->s;
	const Stage *st = &s->k->stage.data[stage];
	StageRun r[ABREAST] = {generic_start(p->g, stage)};
	uint32_t mark[MAX_RANK], scope, n = r[0].n;
	for (uint32_t v = 1; v < p->n; v++)
		r[v] = generic_start(p->g, stage);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t axis = r[0].axes[i];
		sched_hoist(s, st->value, generic_known_axes(s) & ~(UINT64_C(1) << s->vaxis));
		mark[i] = sched_for(s, axis, sched_start(s, axis), sched_limit(s, axis), 1);
	}
	const Branch branch = generic_branch(&r[0]);
	const uint32_t hoisted = sched_mark(s);
	sched_hoist(s, r[0].value, generic_known_axes(s) & ~(UINT64_C(1) << s->vaxis));
	for (uint32_t v = 0; v < p->n; v++) {
		scope = enter(p, v);
		r[v].value = r[0].value;
		generic_reduce_step(&r[v]);
		leave(p, scope);
	}
	sched_forget(s, hoisted);
	generic_branch_end(s, &branch);
	for (uint32_t i = n; i-- > 0;) {
		sched_end(s, mark[i]);
		s->at[r[0].axes[i]] = (Lx){0};
	}
	for (uint32_t v = 0; v < p->n; v++) {
		scope = enter(p, v);
		generic_finish(&r[v]);
		leave(p, scope);
	}
}

static void points_at_once(Generic *g, uint32_t n)
{
	Sched *s = g->s;
	Abreast p = {.g = g, .n = n, .here = s->at[s->vaxis], .whole = s->stage};
	for (uint32_t v = 0; v < n; v++)
		p.value[v] = ARENA_ARRAY(s->arena, StageValue, s->k->stage.n);
	for (uint32_t i = 0; i < s->k->stage.n; i++) {
		StageRole role = generic_role(g, i);
		const StageKind kind = s->k->stage.data[i].kind;
		if ((kind == STAGE_REDUCE || kind == STAGE_ARGREDUCE) && (role == RUN_WHOLE || role == RUN_PART)) {
			reduce_abreast(&p, i);
			continue;
		}
		for (uint32_t v = 0; role != RUN_NOT && v < n; v++) {
			uint32_t scope = enter(&p, v);
			generic_stage(g, i);
			leave(&p, scope);
		}
	}
}

Lx abreast_run(Generic *g, Lx lo, Lx hi)
{
	Sched *s = g->s;
	uint32_t axis = s->vaxis, n = points_abreast(g);
	if (n == 1)
		return lo;
	int64_t step = (int64_t)n * s->lanes;
	Lx rest = lx_mod(s->f, lx_sub(s->f, hi, lo), lx_int(s->f, step));
	Lx end = sched_let(s, "whole", lx_sub(s->f, hi, rest));
	uint32_t mark = sched_for(s, axis, lo, end, step);
	points_at_once(g, n);
	sched_end(s, mark);
	return end;
}

