/* How kernels and steps touch buffers. */
#include "ir/kernel/contraction.h"

#include "ir/op/userop.h"

typedef struct {
	const Kernel *k;
	bool *mark;
} Reach;

static void reach(Reach *r, Kx x)
{
	const KxData *d = &r->k->kx.data[x.i];
	if (!x.i || r->mark[x.i])
		return;
	r->mark[x.i] = true;
	for (uint32_t k = 0; k < d->nin; k++)
		reach(r, d->in[k]);
	reach(r, d->guard);
	reach(r, d->other);
}

void kernel_reached(const Kernel *k, uint32_t first, uint32_t end, bool *mark)
{
	Reach r = {k, mark};
	for (uint32_t i = first; i < end; i++) {
		reach(&r, k->stage.data[i].value);
		reach(&r, k->stage.data[i].where);
	}
	for (uint32_t i = 0; i < k->vvar.n; i++)
		reach(&r, k->vvar.data[i].value);
}

static bool same_index(const KxData *x, const Stage *st, uint32_t rank)
{
	bool same = x->nidx == rank;
	for (uint32_t k = 0; k < rank && same; k++)
		same = x->idx[k].i == st->store.idx[k].i;
	return same;
}

static bool loads(const Kernel *k, const bool *mark, BufId b)
{
	for (uint32_t i = 1; i < k->kx.n; i++)
		if (mark[i] && k->kx.data[i].kind == KX_LOAD && k->kx.data[i].buf.i == b.i)
			return true;
	return false;
}

static bool loads_at(const Kernel *k, const bool *mark, BufId b, const Stage *st)
{
	for (uint32_t i = 1; i < k->kx.n; i++) {
		const KxData *x = &k->kx.data[i];
		if (mark[i] && x->kind == KX_LOAD && x->buf.i == b.i && !same_index(x, st, x->nidx))
			return false;
	}
	return true;
}

/* Returns false for contractions, which store some elements twice: rows past the end repeat the
 * last one. */
bool kernel_replaces(const Kernel *k, BufId to, BufId from, Arena *scratch)
{
	uint32_t at = k->stage.n;
	bool *mark = ARENA_ARRAY(scratch, bool, k->kx.n), ok = true;
	kernel_reached(k, 0, k->stage.n, mark);
	if (!loads(k, mark, from))
		return true;
	for (uint32_t i = 0; i < k->stage.n; i++)
		if (stage_stores(&k->stage.data[i]) && k->stage.data[i].store.buf.i == to.i) {
			ok = ok && at == k->stage.n && k->stage.data[i].kind == STAGE_MAP;
			at = i;
		}
	if (at == k->stage.n)
		return true;
	bool *later = ARENA_ARRAY(scratch, bool, k->kx.n);
	Reach r = {k, later};
	for (uint32_t i = at + 1; i < k->stage.n; i++) {
		reach(&r, k->stage.data[i].value);
		reach(&r, k->stage.data[i].where);
	}
	return ok && !kernel_contracts(k) && !loads(k, later, from) &&
	       loads_at(k, mark, from, &k->stage.data[at]);
}

/* ---- stores that do not meet ---- */

/* Returns the largest (or smallest) value of an index over the variables of a kernel; none if it
 * is not linear in one of them. */
static Sym bound_of(SymTab *syms, const Kernel *k, Sym e, bool most)
{
	for (uint32_t i = 0; i < k->axis.n + k->vvar.n && e.i; i++) {
		bool is_axis = i < k->axis.n;
		Sym var = is_axis ? k->axis.data[i].var : k->vvar.data[i - k->axis.n].var, coef,
		    rest;
		Sym extent = is_axis ? k->axis.data[i].extent : k->vvar.data[i - k->axis.n].extent,
		    zero = sym_int(syms, 0);
		if (!sym_uses(syms, e, var))
			continue;
		if (!sym_linear(syms, e, var, &coef, &rest))
			return (Sym){0};
		bool rises = sym_le(syms, zero, coef) == YES;
		if (!rises && sym_le(syms, coef, zero) != YES)
			return (Sym){0};
		Sym last = sym_mul(syms, coef, sym_sub(syms, extent, sym_int(syms, 1)));
		e = rises == most ? sym_add(syms, rest, last) : rest;
	}
	return e;
}

/* Whether all indices of the one stage in dimension d are provably less than those of the
 * other. */
static bool ends_before(SymTab *syms, const Kernel *a, const Stage *x, const Kernel *b,
			const Stage *y, uint32_t d)
{
	Sym end = bound_of(syms, a, x->store.idx[d], true),
	    begin = bound_of(syms, b, y->store.idx[d], false);
	return end.i && begin.i && sym_le(syms, sym_add(syms, end, sym_int(syms, 1)), begin) == YES;
}

static bool stages_apart(SymTab *syms, const Kernel *a, const Stage *x, const Kernel *b,
			 const Stage *y, uint32_t rank)
{
	for (uint32_t d = 0; d < rank; d++)
		if (ends_before(syms, a, x, b, y, d) || ends_before(syms, b, y, a, x, d))
			return true;
	return false;
}

static bool stores_into(const Stage *st, BufId b)
{
	return stage_stores(st) && st->store.buf.i == b.i;
}

bool kernel_stores_apart(const Lowered *l, const Kernel *a, const Kernel *b, BufId buf)
{
	uint32_t rank = buf_of(l, buf)->rank;
	for (uint32_t i = 0; i < a->stage.n; i++)
		for (uint32_t j = 0; j < b->stage.n; j++) {
			const Stage *x = &a->stage.data[i], *y = &b->stage.data[j];
			if (stores_into(x, buf) && stores_into(y, buf) &&
			    !stages_apart(l->ir->syms, a, x, b, y, rank))
				return false;
		}
	return true;
}

static void kernel_buffers(const Kernel *k, Arena *scratch,
			   void (*visit)(void *, BufId, bool write), void *data)
{
	bool *mark = ARENA_ARRAY(scratch, bool, k->kx.n);
	kernel_reached(k, 0, k->stage.n, mark);
	for (uint32_t i = 1; i < k->kx.n; i++)
		if (mark[i] && k->kx.data[i].kind == KX_LOAD)
			visit(data, k->kx.data[i].buf, false);
	for (uint32_t i = 0; i < k->stage.n; i++)
		if (stage_stores(&k->stage.data[i]))
			visit(data, k->stage.data[i].store.buf, true);
}

static void save_buffers(const StepSave *s, void (*visit)(void *, BufId, bool write), void *data)
{
	visit(data, s->state, false);
	if (s->at.i) {
		visit(data, s->at, false);
		visit(data, s->values, false);
	} else {
		visit(data, s->values, true);
	}
	visit(data, s->record, true);
}

void step_buffers(const Step *s, Arena *scratch, void (*visit)(void *, BufId, bool write),
		  void *data)
{
	StepList *inner[MAX_STEP_LISTS];
	if (s->kind == STEP_KERNEL)
		kernel_buffers(s->kernel, scratch, visit, data);
	if (s->kind == STEP_SAVE)
		save_buffers(s->save, visit, data);
	if (s->kind == STEP_COPY) {
		visit(data, s->from, false);
		visit(data, s->to, true);
	}
	if (s->kind == STEP_CALL)
		for (uint32_t k = 0; k < s->call->op->nin + s->call->op->nout; k++)
			visit(data, s->call->buf[k], k >= s->call->op->nin);
	if (s->pred.i)
		visit(data, s->pred, false);
	for (uint32_t k = 0; k < s->ncarry; k++) {
		visit(data, s->carry[k].from, false);
		visit(data, s->carry[k].from, true);
		visit(data, s->carry[k].to, true);
	}
	for (uint32_t k = 0, n = step_lists(s, inner); k < n; k++)
		for (uint32_t i = 0; i < inner[k]->step.n; i++)
			step_buffers(&inner[k]->step.data[i], scratch, visit, data);
}

/* ---- axes ---- */

uint64_t kernel_aligned_axes(const Kernel *k, uint32_t stage)
{
	const Stage *st = &k->stage.data[stage];
	uint64_t axes = axes_set(st->map, st->nmap);
	for (uint32_t i = 1; i < k->kx.n; i++) {
		const KxData *x = &k->kx.data[i];
		for (uint32_t j = 0; x->kind == KX_STAGE && x->stage == stage && j < st->nmap; j++)
			if (x->idx[j].i != k->axis.data[st->map[j]].var.i)
				axes &= ~(UINT64_C(1) << st->map[j]);
	}
	return axes;
}

bool kernel_is_plain(const Kernel *k)
{
	for (uint32_t i = 0; i < k->axis.n; i++)
		if (!axis_is_plain(&k->axis.data[i]))
			return false;
	return true;
}

/* Returns how many of the first n axes the list begins with, in order. */
static uint32_t first_axes(const Stage *st, uint32_t n)
{
	uint32_t same = 0;
	while (same < n && same < st->nmap && st->map[same] == same)
		same++;
	return same;
}

uint32_t kernel_nouter(const Kernel *k)
{
	uint32_t n = k->stage.n ? k->axis.n : 0;
	for (uint32_t i = 0; i < n; i++)
		if (!axis_is_plain(&k->axis.data[i]))
			n = i;
	for (uint32_t i = 0; i < k->stage.n; i++)
		n = first_axes(&k->stage.data[i], n);
	for (uint32_t i = 1; i < k->kx.n; i++) {
		const KxData *x = &k->kx.data[i];
		for (uint32_t j = 0; x->kind == KX_STAGE && j < n; j++)
			if (x->idx[j].i != k->axis.data[j].var.i)
				n = j;
	}
	return n;
}

/* ---- what is empty ---- */

static bool has_none(const Lowered *l, const Kernel *k, const uint8_t *axis, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (axis[i] < k->axis.n && sym_is(l->ir->syms, k->axis.data[axis[i]].extent, 0))
			return true;
	return false;
}

bool kernel_stores_nothing(const Lowered *l, const Kernel *k)
{
	for (uint32_t i = 0; i < k->stage.n; i++) {
		const Stage *st = &k->stage.data[i];
		bool stores = stage_stores(st) || st->kind == STAGE_CHECK;
		bool rows = st->kind == STAGE_RUNNING || st->kind == STAGE_SORT ||
			    st->kind == STAGE_SCATTER || st->kind == STAGE_FFT ||
			    st->kind == STAGE_FACTOR;
		if (stores && !has_none(l, k, st->map, st->nmap) &&
		    !(rows && has_none(l, k, st->red, st->nred)))
			return false;
	}
	return true;
}
