#include "ir/kernel/kernel.h"

#include <string.h>

#include "ir/op/op.h"

Lowered *lowered_new(Ir *ir, const Graph *graph)
{
	Arena *arena = ir->ctx->arena;
	Lowered *l = ARENA_NEW(arena, Lowered);
	l->ir = ir;
	l->graph = graph;
	array_push(arena, &l->buf, (Buffer){0});
	array_push(arena, &l->check, "");
	return l;
}

void lowered_check_after(Lowered *l, const Lowered *before)
{
	Arena *arena = l->ir->ctx->arena;
	intern_init(&l->others, arena);
	for (uint32_t k = 1; k < before->check.n; k++) {
		const char *text = before->check.data[k];
		bool fresh;
		intern(&l->others, text, strlen(text), &fresh);
		if (fresh)
			array_push(arena, &l->other, k);
		array_push(arena, &l->check, text);
	}
}

uint32_t lowered_check(Lowered *l, const char *message)
{
	uint32_t id = l->other.n ? intern_find(&l->others, message, strlen(message)) : 0;
	if (id)
		return l->other.data[id - 1];
	array_push(l->ir->ctx->arena, &l->check, message);
	return l->check.n - 1;
}

BufId lowered_buf(Lowered *l, BufKind kind, uint32_t k, DType dtype, uint32_t rank, const Sym *dim,
                  const char *name)
{
	Arena *arena = l->ir->ctx->arena;
	Buffer b = {.kind = kind, .k = k, .dtype = dtype, .rank = rank, .name = name};
	b.dim = arena_dup(arena, dim, rank * sizeof *dim);
	b.layout = layout_row_major(l->ir, rank, dim);
	array_push(arena, &l->buf, b);
	return (BufId){l->buf.n - 1};
}

/* ---- layouts ---- */

Layout layout_row_major(Ir *ir, uint32_t rank, const Sym *dim)
{
	uint32_t perm[MAX_RANK];
	for (uint32_t k = 0; k < rank; k++)
		perm[k] = k;
	return layout_permuted(ir, rank, dim, perm);
}

Layout layout_permuted(Ir *ir, uint32_t rank, const Sym *dim, const uint32_t *perm)
{
	(void)ir;
	Layout l;
	memset(&l, 0, sizeof l); /* layouts are compared and hashed as bytes */
	l.n = rank;
	for (uint32_t k = 0; k < rank; k++)
		l.dim[k] = (LayoutDim){perm[k], 1, dim[perm[k]], dim[perm[k]]};
	return l;
}

bool layout_is_row_major(const Layout *l, uint32_t rank)
{
	if (l->n != rank)
		return false;
	for (uint32_t k = 0; k < rank; k++) {
		const LayoutDim *d = &l->dim[k];
		if (d->axis != k || d->divisor != 1 || d->extent.i != d->padded.i)
			return false;
	}
	return true;
}

bool layout_equal(const Layout *a, const Layout *b)
{
	bool same = a->n == b->n;
	for (uint32_t k = 0; same && k < a->n; k++) {
		const LayoutDim *x = &a->dim[k], *y = &b->dim[k];
		same = x->axis == y->axis && x->divisor == y->divisor &&
		       x->extent.i == y->extent.i && x->padded.i == y->padded.i;
	}
	return same;
}

/* Whether dimension k of the layout is the piece of its axis with the largest divisor, of equal
 * ones (panels of one column) the first: it holds all that is left of the index, without a
 * modulo. */
static bool is_outermost_piece(const Layout *l, uint32_t k)
{
	for (uint32_t j = 0; j < l->n; j++)
		if (l->dim[j].axis == l->dim[k].axis &&
		    (l->dim[j].divisor > l->dim[k].divisor ||
		     (l->dim[j].divisor == l->dim[k].divisor && j < k)))
			return false;
	return true;
}

Sym layout_offset(Ir *ir, const Layout *l, const Sym *idx)
{
	SymTab *st = ir->syms;
	Sym offset = sym_int(st, 0), stride = sym_int(st, 1);
	for (uint32_t k = l->n; k-- > 0;) {
		const LayoutDim *d = &l->dim[k];
		Sym i = idx[d->axis];
		if (d->divisor != 1)
			i = sym_divi(st, i, d->divisor);
		if (!is_outermost_piece(l, k))
			i = sym_mod(st, i, d->extent);
		offset = sym_add(st, offset, sym_mul(st, i, stride));
		stride = sym_mul(st, stride, d->padded);
	}
	return offset;
}

Sym layout_numel(Ir *ir, const Layout *l)
{
	Sym n = sym_int(ir->syms, 1);
	for (uint32_t k = 0; k < l->n; k++)
		n = sym_mul(ir->syms, n, l->dim[k].padded);
	return n;
}

Sym layout_most(Ir *ir, const Layout *l)
{
	Sym n = sym_int(ir->syms, 1);
	for (uint32_t k = 0; k < l->n && n.i; k++) {
		const Sym most = sym_most(ir->syms, l->dim[k].padded);
		n = most.i ? sym_mul(ir->syms, n, sym_max(ir->syms, most, sym_int(ir->syms, 0)))
			   : (Sym){0};
	}
	return n;
}

/* ---- kernels ---- */

#define COPY_ARRAY(arena, a)                                                                       \
	((a)->data = arena_dup((arena), (a)->data, (a)->n * sizeof *(a)->data), (a)->cap = (a)->n)

Kernel *kernel_copy(Arena *arena, const Kernel *k)
{
	Kernel *copy = arena_dup(arena, k, sizeof *k);
	COPY_ARRAY(arena, &copy->kx);
	COPY_ARRAY(arena, &copy->axis);
	COPY_ARRAY(arena, &copy->vvar);
	COPY_ARRAY(arena, &copy->stage);
	return copy;
}

/* ---- stages ---- */

void stage_map_first(Stage *st, uint32_t n)
{
	st->nmap = (uint8_t)n;
	for (uint32_t i = 0; i < n; i++)
		st->map[i] = (uint8_t)i;
}

ReduceKind stage_combine(const Stage *st)
{
	return st->kind == STAGE_RUNNING   ? st->running.combine
	       : st->kind == STAGE_SCATTER ? st->scatter.combine
					   : st->reduce.combine;
}

DType stage_acc(const Stage *st)
{
	return st->kind == STAGE_REDUCE || st->kind == STAGE_ARGREDUCE ? st->reduce.acc
	       : st->kind == STAGE_RUNNING                             ? st->running.acc
								       : dtype_compute(st->dtype);
}

uint32_t stage_next(const Stage *st)
{
	return st->kind == STAGE_SORT     ? st->sort.next
	       : st->kind == STAGE_FACTOR ? st->factor.next
	       : st->kind == STAGE_FFT    ? st->fft.next
					  : 0;
}

/* ---- bodies ---- */

static bool same_list(const void *a, const void *b, size_t n)
{
	return n == 0 || memcmp(a, b, n) == 0;
}

static bool kx_same(const KxData *a, const KxData *b)
{
	return a->kind == b->kind && a->dtype == b->dtype && a->op == b->op &&
	       a->round == b->round && a->bits == b->bits && a->nin == b->nin &&
	       same_list(a->in, b->in, a->nin * sizeof *a->in) && a->c.i == b->c.i &&
	       a->buf.i == b->buf.i && a->stage == b->stage && a->nidx == b->nidx &&
	       same_list(a->idx, b->idx, a->nidx * sizeof *a->idx) && a->guard.i == b->guard.i &&
	       a->other.i == b->other.i;
}

/* Adds an expression and returns it. Equal expressions share one entry; bodies are small, so a
 * linear search will do. */
static Kx kx_add(Kernel *k, Arena *arena, KxData d)
{
	if (k->kx.n == 0)
		array_push(arena, &k->kx, (KxData){0});
	for (uint32_t i = k->kx.n; i-- > 1;)
		if (kx_same(&k->kx.data[i], &d))
			return (Kx){i};
	if (d.nidx)
		d.idx = arena_dup(arena, d.idx, d.nidx * sizeof *d.idx);
	array_push(arena, &k->kx, d);
	return (Kx){k->kx.n - 1};
}

Kx kx_copy(Kernel *k, Arena *arena, const KxData *d)
{
	return kx_add(k, arena, *d);
}

Kx kx_const(Kernel *k, Arena *arena, DType dtype, double v)
{
	return kx_add(k, arena, (KxData){.kind = KX_CONST, .dtype = dtype, .c.f = v});
}

Kx kx_const_int(Kernel *k, Arena *arena, DType dtype, int64_t v)
{
	return kx_add(k, arena, (KxData){.kind = KX_CONST, .dtype = dtype, .c.i = v});
}

Kx kx_op(Kernel *k, Arena *arena, Op op, DType result, const Kx *in, uint32_t nin)
{
	KxData d = {.kind = KX_OP, .dtype = result, .op = op, .nin = nin};
	memcpy(d.in, in, nin * sizeof *in);
	return kx_add(k, arena, d);
}

Kx kx_round(Kernel *k, Arena *arena, DType storage, Kx x)
{
	KxData d = {.kind = KX_OP,
		    .dtype = DT_f32,
		    .op = OP_convert,
		    .round = storage,
		    .nin = 1,
		    .in = {x}};
	return kx_add(k, arena, d);
}

const ScFn *kx_bitcast_fn(const KxData *d, DType in)
{
	bool made = d->bits && d->dtype == DT_f32;
	return scalar_bitcast(d->bits && !made ? d->bits : in, made ? d->bits : d->dtype);
}

Kx kx_bitcast(Kernel *k, Arena *arena, DType from, DType to, Kx x)
{
	bool from_storage = from != dtype_compute(from), to_storage = to != dtype_compute(to);
	if (from == to)
		return x;
	if (from_storage && to_storage) { /* an expression has room for the name of one */
		DType raw = dtype_size(from) == 1 ? DT_u8 : DT_u16;
		return kx_bitcast(k, arena, raw, to, kx_bitcast(k, arena, from, raw, x));
	}
	KxData d = {.kind = KX_OP,
		    .dtype = dtype_compute(to),
		    .op = OP_bitcast,
		    .bits = from_storage ? from : to_storage ? to : DT_none,
		    .nin = 1,
		    .in = {x}};
	return kx_add(k, arena, d);
}

Kx kx_load(Kernel *k, Arena *arena, BufId buf, DType dtype, uint32_t nidx, const Sym *idx, Kx guard,
           Kx other)
{
	return kx_add(k, arena, (KxData){.kind = KX_LOAD, .dtype = dtype, .buf = buf, .nidx = nidx,
	                                 .idx = idx, .guard = guard, .other = other});
}

Kx kx_index(Kernel *k, Arena *arena, Sym e)
{
	return kx_add(k, arena, (KxData){.kind = KX_INDEX, .dtype = DT_i64, .nidx = 1, .idx = &e});
}

Kx kx_inrange(Kernel *k, Arena *arena, Sym e, Sym lo, Sym hi)
{
	Sym idx[] = {e, lo, hi};
	return kx_add(k, arena,
		      (KxData){.kind = KX_INRANGE, .dtype = DT_bool, .nidx = 3, .idx = idx});
}

Kx kx_stage(Kernel *k, Arena *arena, uint32_t stage, DType dtype, uint32_t nidx, const Sym *idx)
{
	return kx_add(k, arena,
		      (KxData){.kind = KX_STAGE,
			       .dtype = dtype,
			       .stage = stage,
			       .nidx = nidx,
			       .idx = idx});
}

uint32_t step_lists(const Step *s, StepList *list[MAX_STEP_LISTS])
{
	uint32_t n = 0;
	if (s->kind == STEP_WHILE)
		list[n++] = s->test;
	if (step_is_nested(s))
		list[n++] = s->body;
	if (s->kind == STEP_IF)
		list[n++] = s->other;
	return n;
}
