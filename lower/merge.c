/* Results that are other tensors with other dimensions.
 *
 * A value that kernels read, and of which a permutation or another shape is a result of the model,
 * would be stored twice: in the workspace, and by a copy in the result. Where it lies in memory as
 * the result does it is the result instead, and there is no copy. */
#include "lower/priv.h"

typedef struct {
	Lowered *l;
	uint32_t step;                /* the present one of the main list, counted from 1 */
	uint32_t *writes, *reads, *last_write; /* by buffer: how many, in which step the last
	                                          write */
} Merge;

static void visit(void *data, BufId b, bool write)
{
	Merge *m = data;
	(*(write ? &m->writes[b.i] : &m->reads[b.i]))++;
	m->last_write[b.i] = write ? m->step : m->last_write[b.i];
}

/* Whether the stage stores all of the result, each element once. */
static bool stores_all(const Merge *m, const Kernel *k, const Buffer *result)
{
	const Stage *st = &k->stage.data[0];
	const SymTab *syms = m->l->ir->syms;
	uint64_t seen = 0;
	for (uint32_t d = 0; d < result->rank; d++) {
		uint32_t a = 0;
		if (sym_uses_kind(syms, result->dim[d], SYMVAR_UNBACKED))
			return false;
		if (sym_is(syms, result->dim[d], 1) && sym_is(syms, st->store.idx[d], 0))
			continue;
		while (a < k->axis.n && k->axis.data[a].var.i != st->store.idx[d].i)
			a++;
		if (a == k->axis.n || k->axis.data[a].extent.i != result->dim[d].i ||
		    (seen >> a & 1))
			return false;
		seen |= UINT64_C(1) << a;
	}
	return true;
}

static Sym allocated(const Merge *m, const Buffer *b)
{
	Sym n = sym_int(m->l->ir->syms, 1);
	for (uint32_t d = 0; d < b->layout.n; d++)
		n = sym_mul(m->l->ir->syms, n, b->layout.dim[d].padded);
	return n;
}

/* Whether the kernel copies all of a temporary tensor, as it lies in memory, to all of a result.
 * Sets *from and *to. */
MUST_LOOK static bool copies_to_result(const Merge *m, const Kernel *k, BufId *from, BufId *to)
{
	const Stage *st = &k->stage.data[0];
	if (k->stage.n != 1 || st->kind != STAGE_MAP || !stage_stores(st))
		return false;
	const KxData *x = &k->kx.data[st->value.i];
	*to = st->store.buf;
	*from = x->buf;
	if (x->kind != KX_LOAD || x->guard.i || st->where.i || m->writes[to->i] != 1 ||
	    m->reads[to->i] || m->last_write[from->i] >= m->step)
		return false;
	const Buffer *a = buf_of(m->l, *from), *b = buf_of(m->l, *to);
	if (a->kind != BUF_TEMP || b->kind != BUF_OUTPUT || a->layout_fixed || b->donated ||
	    a->dtype != b->dtype || !stores_all(m, k, b))
		return false;
	return allocated(m, a).i == allocated(m, b).i &&
	       layout_offset(m->l->ir, &a->layout, x->idx).i ==
		       layout_offset(m->l->ir, &b->layout, st->store.idx).i;
}

void lower_merge_results(Lowered *l)
{
	Arena *scratch = l->ir->ctx->scratch;
	Merge m = {.l = l,
		   .writes = ARENA_ARRAY(scratch, uint32_t, l->buf.n),
		   .reads = ARENA_ARRAY(scratch, uint32_t, l->buf.n),
		   .last_write = ARENA_ARRAY(scratch, uint32_t, l->buf.n)};
	uint32_t n = 0, nstep = l->steps.step.n;
	for (m.step = 1; m.step <= nstep; m.step++)
		step_buffers(&l->steps.step.data[m.step - 1], scratch, visit, &m);
	for (m.step = 1; m.step <= nstep; m.step++) {
		const Step *step = &l->steps.step.data[m.step - 1];
		BufId from, to;
		if (step->kind == STEP_KERNEL && copies_to_result(&m, step->kernel, &from, &to)) {
			Buffer *b = buf_of(l, from);
			b->kind = BUF_OUTPUT;
			b->k = buf_of(l, to)->k;
			b->layout_fixed = true;
		} else {
			l->steps.step.data[n++] = *step;
		}
	}
	l->steps.step.n = n;
}
