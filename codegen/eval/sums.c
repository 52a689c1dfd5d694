/* Loops in chunks, and the steps of reductions. */
#include "codegen/eval/code.h"

#include "ir/op/op.h"

void sum_chunks(Code *s, int64_t step, Lx *lo, Lx *hi)
{
	*lo = lx_var(s->e.f, ls_for(s->e.f, "chunk", *lo, *hi, step));
	*hi = eval_let(&s->e, "end",
		       lx_min(s->e.f, lx_add(s->e.f, *lo, lx_int(s->e.f, step)), *hi));
}

static Lv begin(Code *s, const SumLoop *l, const char *name, Lv like)
{
	return ls_var(s->e.f, name,
		      code_identity(s, l->kind, lx_type(s->e.f, lx_var(s->e.f, like))));
}

void sum_open(Code *s, SumLoop *l, Lx *lo, Lx *hi, Lv *acc)
{
	l->lo = *lo;
	l->hi = *hi;
	for (uint32_t i = 0; i < l->n; i++) {
		l->outer[i] = acc[i];
		acc[i] = begin(s, l, "acc", l->outer[i]);
		for (uint32_t k = 0; k < l->ncut; k++)
			l->sum[k][i] = begin(s, l, "sum", l->outer[i]);
	}
	sum_chunks(s, l->cut[l->ncut - 1].rounds * l->width, lo, hi);
	l->end = *hi;
}

/* Combines each accumulator to[k] with from[k], by the reduction of the loop. */
static void add(Code *s, const SumLoop *l, const Lv *to, const Lv *from)
{
	for (uint32_t i = 0; i < l->n; i++)
		ls_set(s->e.f, to[i],
		       code_combine(s, l->kind, lx_var(s->e.f, to[i]), lx_var(s->e.f, from[i])));
}

/* Combines accumulators into to[], and sets from[] to the identity again. */
static void carry(Code *s, const SumLoop *l, const Lv *to, const Lv *from)
{
	add(s, l, to, from);
	for (uint32_t i = 0; i < l->n; i++)
		ls_set(s->e.f, from[i],
		       code_identity(s, l->kind, lx_type(s->e.f, lx_var(s->e.f, from[i]))));
}

void sum_close(Code *s, SumLoop *l, Lv *acc)
{
	const uint32_t last = l->ncut - 1;
	ls_if(s->e.f, lx_cmp(s->e.f, SC_lt, l->end, l->hi)); /* another chunk follows */
	carry(s, l, l->sum[last], acc);
	for (uint32_t k = last; k-- > 0;) {
		Lx whole = lx_mod(s->e.f, lx_sub(s->e.f, l->end, l->lo),
				  lx_int(s->e.f, l->cut[k].rounds * l->width));
		ls_if(s->e.f, lx_cmp(s->e.f, SC_eq, whole, lx_int(s->e.f, 0)));
		carry(s, l, l->sum[k], l->sum[k + 1]);
	}
	for (uint32_t k = 0; k <= last; k++)
		ls_end(s->e.f);
	ls_end(s->e.f);
	for (uint32_t k = last; k-- > 0;)
		add(s, l, l->sum[k], l->sum[k + 1]);
	add(s, l, l->sum[0], acc);
	add(s, l, l->outer, l->sum[0]);
	for (uint32_t i = 0; i < l->n; i++)
		acc[i] = l->outer[i];
}

/* ---- steps ---- */

Lx code_identity(Code *s, ReduceKind c, LType t)
{
	ScVal v = reduce_identity(c, t.dtype);
	return dtype_is_float(t.dtype) ? lx_float(s->e.f, t, v.f) : lx_int_of(s->e.f, t, v.i);
}

/* Returns log(exp(a) + exp(b)) as max + log1p(exp(-|a - b|)); equal infinities stay. */
static Lx logaddexp(Code *s, Lx a, Lx b)
{
	LType t = lx_type(s->e.f, a);
	const ScFn *exp_fn = scalar_lib("exp", t.dtype), *log1p_fn = scalar_lib("log1p", t.dtype);
	Lx m = lx_max(s->e.f, a, b), d = lx_sc(s->e.f, SC_sub, t, (Lx[]){a, b}, 2);
	d = lx_sc(s->e.f, SC_abs, t, &d, 1);
	d = lx_sc(s->e.f, SC_neg, t, &d, 1);
	Lx e = lx_fn(s->e.f, exp_fn, t.lanes, &d, 1);
	Lx sum = lx_add(s->e.f, m, lx_fn(s->e.f, log1p_fn, t.lanes, &e, 1));
	return lx_select(s->e.f, lx_cmp(s->e.f, SC_eq, a, b),
	                 lx_add(s->e.f, m, lx_float(s->e.f, t, 0.693147180559945309417)), sum);
}

Lx code_combine(Code *s, ReduceKind c, Lx a, Lx b)
{
	if (c == REDUCE_LOGADDEXP)
		return logaddexp(s, a, b);
	return lx_sc(s->e.f, reduce_op(c), lx_type(s->e.f, a), (Lx[]){a, b}, 2);
}

Lx code_fma(Code *s, Lx a, Lx b, Lx c)
{
	if (isa_has(&s->target->isa, ISA_FMA))
		return lx_fma(s->e.f, a, b, c);
	return lx_add(s->e.f, c, lx_mul(s->e.f, a, b));
}

Lx code_accumulate(Code *s, const Stage *st, Lx acc, Kx value)
{
	const KxData *x = &s->e.k->kx.data[value.i];
	LType t = lx_type(s->e.f, acc);
	bool product = x->kind == KX_OP && x->op == OP_mul && x->dtype == t.dtype;
	if (stage_combine(st) == REDUCE_SUM && product && dtype_is_float(t.dtype) &&
	    !eval_known(&s->e, value).i) {
		Lx a = eval_value(&s->e, x->in[0]), b = eval_value(&s->e, x->in[1]);
		if (t.lanes > 1) {
			a = eval_splat(&s->e, a);
			b = eval_splat(&s->e, b);
		}
		return code_fma(s, a, b, acc);
	}
	Lx v = eval_convert(&s->e, eval_value(&s->e, value), t.dtype);
	return code_combine(s, stage_combine(st), acc, t.lanes > 1 ? eval_splat(&s->e, v) : v);
}
