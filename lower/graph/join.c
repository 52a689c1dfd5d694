/* Kernels that sum with weights of the same products become one:
 *
 *   kernel a (h<8, j<N) { s[i] = sum d: q k;  dv[e] = sum i: exp(s[i] - l) g;  store }
 *   kernel b (h<8, i<N) { s[j] = sum d: q k;  t[j] = sum e: g v;
 *                         dq[d] = sum j: exp(s[j] - l) (t[j] - m) k;  store }
 *
 *   ->  one kernel (h<8) { s[i, j] = sum d: q k;  t[i, j] = sum e: g v;
 *                          dv[j, e] = sum i: ...;  dq[i, d] = sum j: ...;  stores }
 *
 * Outer axes are those that both have outside; if these have few points, two kernels remain, of
 * sums of keys and of rows, whose tasks have blocks of these. Axes are the same where they index
 * what the products multiply in the same way. This is done after steps have their order: one of the
 * two kernels moves to the other, which it may if no step between touches what it stores, or writes
 * what it reads. */
#include <string.h>

#include "ir/kernel/contraction.h"
#include "lower/graph/graph.h"
#include "lower/priv.h"

/* One kernel of two that become one. */
typedef struct {
	const Kernel *k;
	uint32_t *axis;  /* by axis: that of the joined kernel */
	Sym *var, *by;   /* by axis: its variable, and that of the joined kernel's axis */
	Kx *to;          /* by expression: that of the joined kernel; none: not copied yet */
	uint32_t *stage; /* by stage: that of the joined kernel */
	WeightedStages is;
} Half;

typedef struct {
	Lowered *l;
	SymTab *syms;
	Arena *arena;
	Half of[2];
	Kernel *k;       /* the joined one */
	uint32_t nouter; /* its outer axes */
	uint32_t *match; /* by axis of the second kernel: that of the first + 1; 0: none yet */
	uint32_t left;   /* how many more expressions are compared */
} Join;

enum { MOST_COMPARED = 256 }; /* expressions of the operands of two products */

/* ---- the same axes ---- */

static int axis_of(const Kernel *k, Sym var)
{
	for (uint32_t i = 0; i < k->axis.n; i++)
		if (k->axis.data[i].var.i == var.i)
			return (int)i;
	return -1;
}

/* Makes axis y of the second kernel that of the first one, x. Returns false if one of the two is
 * another one's. */
static bool match_axes(const Join *j, uint32_t x, uint32_t y)
{
	const Kernel *a = j->of[0].k, *b = j->of[1].k;
	if (j->match[y])
		return j->match[y] == x + 1;
	for (uint32_t i = 0; i < b->axis.n; i++)
		TRY(j->match[i] != x + 1);
	TRY(a->axis.data[x].extent.i == b->axis.data[y].extent.i);
	j->match[y] = x + 1;
	return true;
}

/* Whether an index of the second kernel is one of the first where its axes are replaced by those
 * that are the same. */
static bool same_index(const Join *j, Sym x, Sym y)
{
	const Kernel *a = j->of[0].k, *b = j->of[1].k;
	Sym from[MAX_KERNEL_AXES], to[MAX_KERNEL_AXES];
	uint32_t n = 0;
	for (uint32_t i = 0; i < b->axis.n; i++)
		if (j->match[i]) {
			from[n] = b->axis.data[i].var;
			to[n++] = a->axis.data[j->match[i] - 1].var;
		} else if (sym_uses(j->syms, y, b->axis.data[i].var)) {
			return false;
		}
	return sym_subst(j->syms, y, from, to, n).i == x.i;
}

/* Whether x and y, of the two kernels, are loads and functions of loads of the same elements;
 * matches axes that are indices by themselves (first), or asks about all indices. Also false after
 * MOST_COMPARED expressions: one that is read often is compared as often. */
static bool same_value(Join *j, Kx x, Kx y, bool first)
{
	TRY(j->left && j->left--);
	const KxData *a = &j->of[0].k->kx.data[x.i], *b = &j->of[1].k->kx.data[y.i];
	TRY(a->kind == b->kind && a->dtype == b->dtype && a->op == b->op && a->round == b->round &&
	    a->bits == b->bits && a->nin == b->nin && a->buf.i == b->buf.i && a->nidx == b->nidx &&
	    !a->guard.i && !b->guard.i && (a->kind == KX_LOAD || a->kind == KX_OP));
	for (uint32_t k = 0; k < a->nin; k++)
		TRY(same_value(j, a->in[k], b->in[k], first));
	for (uint32_t k = 0; k < a->nidx; k++) {
		const int p = axis_of(j->of[0].k, a->idx[k]), q = axis_of(j->of[1].k, b->idx[k]);
		if (first && p >= 0 && q >= 0)
			TRY(match_axes(j, (uint32_t)p, (uint32_t)q));
		else if (!first)
			TRY(same_index(j, a->idx[k], b->idx[k]));
	}
	return true;
}

/* Matches axes of both kernels. Returns false if they have no product in common. */
static bool match_products(Join *j)
{
	const Kernel *a = j->of[0].k, *b = j->of[1].k;
	const size_t size = b->axis.n * sizeof *j->match;
	bool found = false;
	for (uint32_t p = 0; p < j->of[0].is.nscore; p++)
		for (uint32_t q = 0; q < j->of[1].is.nscore; q++) {
			const Kx x = a->stage.data[p].value, y = b->stage.data[q].value;
			uint32_t before[MAX_KERNEL_AXES];
			memcpy(before, j->match, size);
			j->left = MOST_COMPARED;
			if (same_value(j, x, y, true) && same_value(j, x, y, false))
				found = true;
			else
				memcpy(j->match, before, size);
		}
	return found;
}

/* Returns the outer axes of both kernels, as axes of the first one, as bits. */
static uint64_t common_outer(const Join *j)
{
	const uint32_t outer_a = kernel_nouter(j->of[0].k), outer_b = kernel_nouter(j->of[1].k);
	uint64_t outer = 0;
	for (uint32_t i = 0; i < outer_b; i++)
		if (j->match[i] && j->match[i] <= outer_a)
			outer |= UINT64_C(1) << (j->match[i] - 1);
	return outer;
}

/* Whether there is work for several threads outside, at hint sizes: there is more in each of the
 * two kernels, though they compute products twice. */
static bool has_tasks(const Join *j, uint64_t outer)
{
	enum { FEW_TASKS = 8 };
	const Kernel *a = j->of[0].k;
	double n = 1;
	for (uint32_t i = 0; i < a->axis.n; i++)
		if (outer >> i & 1)
			n *= (double)sym_hint(j->syms, a->axis.data[i].extent);
	return n >= FEW_TASKS;
}

/* ---- the joined kernel ---- */

static void add_axis(Join *j, uint32_t half, uint32_t axis)
{
	Half *h = &j->of[half];
	Axis a = h->k->axis.data[axis];
	if (axis_of(j->k, a.var) >= 0)
		a.var = sym_axis(j->syms, "i", a.extent);
	h->axis[axis] = j->k->axis.n;
	array_push(j->arena, &j->k->axis, a);
}

/* Sets the axes: outer ones of both, then the others of the first kernel, then those of the
 * second. */
static void join_axes(Join *j, uint64_t outer)
{
	Half *a = &j->of[0], *b = &j->of[1];
	for (uint32_t pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < a->k->axis.n; i++)
			if ((outer >> i & 1) == (pass == 0))
				add_axis(j, 0, i);
		j->nouter = pass ? j->nouter : j->k->axis.n;
	}
	for (uint32_t i = 0; i < b->k->axis.n; i++)
		if (j->match[i])
			b->axis[i] = a->axis[j->match[i] - 1];
		else
			add_axis(j, 1, i);
	for (uint32_t half = 0; half < 2; half++)
		for (uint32_t i = 0; i < j->of[half].k->axis.n; i++) {
			j->of[half].var[i] = j->of[half].k->axis.data[i].var;
			j->of[half].by[i] = j->k->axis.data[j->of[half].axis[i]].var;
		}
}

static const Sym *copy_index(const Join *j, const Half *h, const Sym *idx, uint32_t n)
{
	Sym *out = ARENA_ARRAY(j->arena, Sym, n + 1);
	for (uint32_t k = 0; k < n; k++)
		out[k] = sym_subst(j->syms, idx[k], h->var, h->by, h->k->axis.n);
	return out;
}

/* Makes a read of a stage of one kernel one of the joined kernel's stage, whose axes have another
 * order. */
static void copy_read(const Join *j, const Half *h, KxData *x)
{
	const Stage *from = &h->k->stage.data[x->stage];
	const Stage *to = &j->k->stage.data[h->stage[x->stage]];
	const Sym *idx = copy_index(j, h, x->idx, x->nidx);
	Sym *out = ARENA_ARRAY(j->arena, Sym, x->nidx + 1);
	for (uint32_t i = 0; i < to->nmap; i++)
		for (uint32_t p = 0; p < from->nmap; p++)
			if (h->axis[from->map[p]] == to->map[i])
				out[i] = idx[p];
	x->idx = out;
	x->stage = h->stage[x->stage];
}

static Kx copy_kx(const Join *j, Half *h, Kx from)
{
	KxData x = h->k->kx.data[from.i];
	if (!from.i || h->to[from.i].i)
		return h->to[from.i];
	for (uint32_t k = 0; k < x.nin; k++)
		x.in[k] = copy_kx(j, h, x.in[k]);
	x.guard = copy_kx(j, h, x.guard);
	x.other = copy_kx(j, h, x.other);
	if (x.kind == KX_STAGE)
		copy_read(j, h, &x);
	else
		x.idx = copy_index(j, h, x.idx, x.nidx);
	return h->to[from.i] = kx_copy(j->k, j->arena, &x);
}

/* Returns the stage of the joined kernel that computes the same; the number of stages: none
 * does. */
static uint32_t find_same(const Join *j, const Stage *st)
{
	uint32_t s = 0;
	for (; s < j->k->stage.n; s++) {
		const Stage *x = &j->k->stage.data[s];
		if (x->kind == st->kind && x->value.i == st->value.i && !stage_stores(x) &&
		    !stage_stores(st) && x->nred == st->nred &&
		    axes_set(x->red, x->nred) == axes_set(st->red, st->nred))
			break;
	}
	return s;
}

static void copy_stage(const Join *j, Half *h, uint32_t stage)
{
	const Stage *from = &h->k->stage.data[stage];
	Stage st = *from;
	const uint64_t outer = (UINT64_C(1) << j->nouter) - 1;
	st.value = copy_kx(j, h, from->value);
	stage_map_first(&st, j->nouter);
	for (uint32_t i = 0; i < from->nmap; i++)
		if (!(outer >> h->axis[from->map[i]] & 1))
			st.map[st.nmap++] = (uint8_t)h->axis[from->map[i]];
	for (uint32_t i = 0; i < from->nred; i++)
		st.red[i] = (uint8_t)h->axis[from->red[i]];
	if (stage_stores(from))
		st.store.idx =
			copy_index(j, h, from->store.idx, buf_of(j->l, from->store.buf)->rank);
	h->stage[stage] = find_same(j, &st);
	if (h->stage[stage] == j->k->stage.n)
		array_push(j->arena, &j->k->stage, st);
}

/* Copies products, then sums, then stores of both. */
static void join_stages(Join *j)
{
	for (uint32_t part = 0; part < 3; part++)
		for (uint32_t half = 0; half < 2; half++) {
			Half *h = &j->of[half];
			const uint32_t sums = h->is.nscore + h->is.nsum,
				       first = part == 0   ? 0
					       : part == 1 ? h->is.nscore
							   : sums,
				       end = part == 0   ? h->is.nscore
					     : part == 1 ? sums
							 : h->k->stage.n;
			for (uint32_t s = first; s < end; s++)
				copy_stage(j, h, s);
		}
}

static Half half_of(const Join *j, const Kernel *k, WeightedStages is)
{
	return (Half){.k = k,
		      .is = is,
		      .axis = ARENA_ARRAY(j->arena, uint32_t, k->axis.n),
		      .var = ARENA_ARRAY(j->arena, Sym, k->axis.n),
		      .by = ARENA_ARRAY(j->arena, Sym, k->axis.n),
		      .to = ARENA_ARRAY(j->arena, Kx, k->kx.n),
		      .stage = ARENA_ARRAY(j->arena, uint32_t, k->stage.n)};
}

static void describe(const Join *j)
{
	Kernel *k = j->k;
	const Kernel *a = j->of[0].k, *b = j->of[1].k;
	k->computes.data = NULL;
	k->computes.n = k->computes.cap = 0;
	kernel_join_evaluated(k, a, b, j->arena);
	for (uint32_t i = 0; i < a->computes.n; i++)
		array_push(j->arena, &k->computes, a->computes.data[i]);
	for (uint32_t i = 0; i < b->computes.n; i++)
		array_push(j->arena, &k->computes, b->computes.data[i]);
	const SourceLines lines =
		k->computes.n ? lower_computed_lines(k->graph, k->computes.data, k->computes.n)
			      : (SourceLines){0};
	if (lines.nline)
		k->lines = lines;
}

/* Returns the kernel that computes what both do; NULL: they have no product in common, or one would
 * have too few tasks. */
static Kernel *join(Lowered *l, const Kernel *a, const Kernel *b)
{
	Arena *arena = l->ir->ctx->arena;
	WeightedStages is[2];
	Join j = {.l = l, .syms = l->ir->syms, .arena = arena};
	if (!kernel_sums_weighted(a, l->ir->ctx->scratch, &is[0]) ||
	    !kernel_sums_weighted(b, l->ir->ctx->scratch, &is[1]) || !is[0].nsum || !is[1].nsum ||
	    a->graph != b->graph || a->axis.n + b->axis.n > MAX_KERNEL_AXES)
		return NULL;
	j.of[0] = half_of(&j, a, is[0]);
	j.of[1] = half_of(&j, b, is[1]);
	j.match = ARENA_ARRAY(arena, uint32_t, b->axis.n);
	const uint64_t outer = match_products(&j) ? common_outer(&j) : 0;
	if (!has_tasks(&j, outer))
		return NULL;
	j.k = arena_dup(arena, a, sizeof *j.k);
	j.k->kx.data = NULL;
	j.k->stage.data = NULL;
	j.k->axis.data = NULL;
	j.k->kx.n = j.k->kx.cap = j.k->stage.n = j.k->stage.cap = j.k->axis.n = j.k->axis.cap = 0;
	array_push(arena, &j.k->kx, (KxData){0});
	join_axes(&j, outer);
	join_stages(&j);
	describe(&j);
	return j.k;
}

/* ---- steps ---- */

/* Whether one step may be done where another one is. */
typedef struct {
	const Lowered *l;
	ARRAY(BufId) read, written;
	bool apart; /* no step that was asked touches these buffers so that order matters */
} Touched;

static void note(void *data, BufId b, bool write)
{
	Touched *t = data;
	if (write)
		array_push(t->l->ir->ctx->scratch, &t->written, b);
	else
		array_push(t->l->ir->ctx->scratch, &t->read, b);
}

static bool may_be_one(const Lowered *l, BufId x, BufId y)
{
	return buf_may_be(l, x, y) || buf_may_be(l, y, x);
}

static void ask(void *data, BufId b, bool write)
{
	Touched *t = data;
	for (uint32_t i = 0; i < t->written.n; i++)
		t->apart &= !may_be_one(t->l, b, t->written.data[i]);
	for (uint32_t i = 0; write && i < t->read.n; i++)
		t->apart &= !may_be_one(t->l, b, t->read.data[i]);
}

/* Whether a check that fails leaves what the step stores to the caller. */
static bool is_kept(const Lowered *l, const Kernel *k)
{
	for (uint32_t i = 0; i < k->stage.n; i++) {
		const BufId b = k->stage.data[i].store.buf;
		if (b.i && (buf_of(l, b)->kind == BUF_STATE || buf_of(l, b)->donated))
			return true;
	}
	return false;
}

/* Whether the step may be done before or behind all steps from `from` to `end` - 1. */
static bool may_pass(const Lowered *l, const Step *s, const Step *steps, uint32_t from,
		     uint32_t end)
{
	Arena *scratch = l->ir->ctx->scratch;
	Touched t = {.l = l, .apart = true};
	step_buffers(s, scratch, note, &t);
	for (uint32_t i = from; i < end; i++) {
		if (steps[i].kind != STEP_KERNEL) /* it may end the call, or choose a size */
			return false;
		if (!steps[i].kernel) /* it was joined */
			continue;
		step_buffers(&steps[i], scratch, ask, &t);
	}
	return t.apart;
}

/* Joins step a with a later one, b, where one of the two may be. Returns whether it did; the other
 * step has no kernel then. */
static bool join_steps(Lowered *l, Step *steps, uint32_t a, uint32_t b)
{
	if (is_kept(l, steps[a].kernel) || is_kept(l, steps[b].kernel) ||
	    !may_pass(l, &steps[a], steps, b, b + 1))
		return false;
	const bool down = may_pass(l, &steps[a], steps, a + 1, b),
		   up = !down && may_pass(l, &steps[b], steps, a + 1, b);
	Kernel *k = down || up ? join(l, steps[a].kernel, steps[b].kernel) : NULL;
	if (!k)
		return false;
	steps[down ? b : a].kernel = k;
	steps[down ? a : b].kernel = NULL;
	return true;
}

static bool is_weighted(const Lowered *l, const Step *s)
{
	WeightedStages is;
	return s->kind == STEP_KERNEL && s->kernel &&
	       kernel_sums_weighted(s->kernel, l->ir->ctx->scratch, &is);
}

/* Joins steps of the list and of lists inside. Returns whether it did. */
static bool join_list(Lowered *l, StepList *list)
{
	enum { FAR = 64 };
	Step *steps = list->step.data;
	uint32_t n = 0;
	bool joined = false;
	for (uint32_t a = 0; a < list->step.n; a++) {
		StepList *inside[MAX_STEP_LISTS];
		const uint32_t ninside =
			step_is_nested(&steps[a]) ? step_lists(&steps[a], inside) : 0;
		for (uint32_t i = 0; i < ninside; i++)
			joined |= join_list(l, inside[i]);
		for (uint32_t b = a + 1;
		     b < list->step.n && b - a < FAR && is_weighted(l, &steps[a]); b++)
			if (is_weighted(l, &steps[b]))
				joined |= join_steps(l, steps, a, b);
	}
	for (uint32_t i = 0; i < list->step.n; i++)
		if (steps[i].kind != STEP_KERNEL || steps[i].kernel)
			steps[n++] = steps[i];
	list->step.n = n;
	return joined;
}

void lower_join_weighted(Lowered *l)
{
	const uint32_t before = l->ir->ctx->nerror;
	if (!join_list(l, &l->steps) || before)
		return;
#ifndef NDEBUG
	if (!lowered_verify(l))
		ctx_bug_verify(l->ir->ctx, "joining sums with weights");
#endif
}
