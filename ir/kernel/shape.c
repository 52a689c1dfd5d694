#include "ir/kernel/shape.h"

#include "ir/kernel/build.h"
#include "ir/op/op.h"

static uint64_t axes_of(const SymTab *syms, const Kernel *k, const KxData *x)
{
	uint64_t axes = 0;
	for (uint32_t d = 0; d < x->nidx; d++)
		for (uint32_t i = 0; i < k->axis.n; i++)
			if (sym_uses(syms, x->idx[d], k->axis.data[i].var))
				axes |= UINT64_C(1) << i;
	return axes;
}

static bool plain_load(const Kernel *k, Kx id, DType dtype)
{
	const KxData *x = &k->kx.data[id.i];
	return x->kind == KX_LOAD && !x->guard.i && x->dtype == dtype;
}

/* The load that is an operand of products in acc: itself, or of bytes the operand of a
 * conversion. */
static Kx loaded(const Kernel *k, Kx operand, DType acc)
{
	const Kx x = acc == DT_i32 || acc == DT_f32 ? kx_unconverted(k, operand) : operand;
	const DType d = k->kx.data[x.i].dtype;
	return d == acc || d == DT_i8 || d == DT_u8 ? x : operand;
}

static const char *why_no_product(const Kernel *k)
{
	if (k->anchor == 0)
		return "no sum of products of two operands";
	if (k->anchor != 1)
		return "the sum of products is not the first step";
	if (k->vvar.n)
		return "an index depends on data";
	const Stage *st = &k->stage.data[0];
	const KxData *value = &k->kx.data[st->value.i];
	if ((stage_acc(st) != DT_f32 && stage_acc(st) != DT_f64 && stage_acc(st) != DT_i32) ||
	    value->kind != KX_OP || value->op != OP_mul)
		return "its products are not of f32, f64 or i32";
	const uint32_t nouter = kernel_nouter(k);
	for (uint32_t i = 1; i < k->stage.n; i++)
		if (k->stage.data[i].kind != STAGE_MAP || k->stage.data[i].nmap > nouter ||
		    !stage_stores(&k->stage.data[i]))
			return "more than stores at each point follows the sum";
	for (uint32_t i = 0; i < 2; i++) {
		const Kx x = loaded(k, value->in[i], stage_acc(st));
		if (!plain_load(k, x, k->kx.data[x.i].dtype) ||
		    (x.i == value->in[i].i && k->kx.data[x.i].dtype != stage_acc(st)))
			return "an operand is no plain load of what is summed";
	}
	return NULL;
}

/* A dimension that is read at a sum of outer and inner axes. */
static bool has_window(const SymTab *syms, const Kernel *k)
{
	uint64_t outer = (UINT64_C(1) << kernel_nouter(k)) - 1;
	for (uint32_t i = 1; i < k->kx.n; i++) {
		const KxData *x = &k->kx.data[i];
		for (uint32_t d = 0; x->kind == KX_LOAD && d < x->nidx; d++) {
			KxData one = {.nidx = 1, .idx = &x->idx[d]};
			uint64_t axes = axes_of(syms, k, &one);
			if ((axes & outer) && (axes & ~outer))
				return true;
		}
	}
	return false;
}

static ShapeKind other_kind(const SymTab *syms, const Kernel *k)
{
	bool reduces = false;
	for (uint32_t i = 0; i < k->stage.n; i++) {
		StageKind kind = k->stage.data[i].kind;
		if (kind == STAGE_RUNNING || kind == STAGE_SORT || kind == STAGE_SCATTER ||
		    kind == STAGE_FFT || kind == STAGE_FACTOR)
			return SHAPE_SERIAL;
		reduces |= kind == STAGE_REDUCE || kind == STAGE_ARGREDUCE;
	}
	if (!reduces)
		return SHAPE_MAP;
	return has_window(syms, k) ? SHAPE_WINDOW : SHAPE_ROWS;
}

KernelShape kernel_shape(const SymTab *syms, const Kernel *k)
{
	KernelShape s = {.no_product = why_no_product(k)};
	if (s.no_product) {
		s.kind = other_kind(syms, k);
		return s;
	}
	const Stage *st = &k->stage.data[0];
	uint64_t outer = (UINT64_C(1) << kernel_nouter(k)) - 1;
	s.kind = SHAPE_CONTRACTION;
	s.dtype = stage_acc(st);
	s.a = loaded(k, k->kx.data[st->value.i].in[0], stage_acc(st));
	s.b = loaded(k, k->kx.data[st->value.i].in[1], stage_acc(st));
	s.in_a = axes_of(syms, k, &k->kx.data[s.a.i]) & outer;
	s.in_b = axes_of(syms, k, &k->kx.data[s.b.i]) & outer;
	for (uint32_t i = 0; i < st->nred; i++)
		s.summed |= UINT64_C(1) << st->red[i];
	s.depthwise =
		s.in_a != s.in_b && (!shape_rows(&s) || !shape_columns(&s)) && s.in_a && s.in_b;
	return s;
}
