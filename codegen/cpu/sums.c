#include "codegen/cpu/sums.h"

/* Half a unit of the result in the last place is more than what a chain of that length may lose:
 * f32 has 2^16 times the precision of bf16, f64 2^29 times that of f32. */
enum { LIMIT_F32 = 256, LIMIT_NARROW = 4096, LIMIT_F64 = 65536 };

int64_t sum_limit(ReduceKind kind, DType acc, DType result)
{
	if (!reduce_rounds(kind) || !dtype_is_float(acc))
		return INT64_MAX;
	if (acc == DT_f64)
		return LIMIT_F64;
	return dtype_is_float(result) && dtype_size(result) < dtype_size(DT_f32) ? LIMIT_NARROW : LIMIT_F32;
}

static int64_t times(int64_t a, int64_t b)
{
	int64_t n;
	return __builtin_mul_overflow(a, b, &n) ? INT64_MAX : n;
}

static int64_t chunks(int64_t n, int64_t of)
{
	return n == INT64_MAX ? n : n / of + (n % of != 0);
}

/* Rounds of which each adds so many terms, together about the limit. */
static int64_t rounds_of_chunk(int64_t terms, int64_t limit)
{
	int64_t n = chunks(limit, terms);
	n = n * terms > limit + limit / 2 ? limit / terms : n;
	return n > 1 ? n : 1;
}

/* The plan lists the innermost cut first until the end. */
static void turn(SumPlan *p)
{
	for (uint32_t i = 0; i < p->n / 2; i++) {
		SumCut c = p->cut[i];
		p->cut[i] = p->cut[p->n - 1 - i];
		p->cut[p->n - 1 - i] = c;
	}
}

SumPlan sum_plan(const int64_t *most, uint32_t nloop, int64_t limit)
{
	SumPlan p = {0};
	int64_t chain = 1; /* terms that a round of the loop at hand adds to its accumulator */
	for (uint32_t i = limit == INT64_MAX ? 0 : nloop; i-- > 0;) {
		int64_t unit = 1; /* rounds of the loop that are one term */
		for (uint32_t cuts = 0; times(chain, chunks(most[i], unit)) > limit + limit / 2; cuts++) {
			if (cuts == MAX_LOOP_CUTS || p.n == MAX_SUM_CUTS)
				break;
			unit *= rounds_of_chunk(chain, limit);
			p.cut[p.n++] = (SumCut){i, unit};
			chain = 1;
		}
		const int64_t left = times(chain, chunks(most[i], unit));
		chain = left == INT64_MAX ? 1 : left; /* the outermost chain of the loop has the
		                                         rest */
	}
	turn(&p);
	return p;
}

int64_t sum_most(const Cpu *s, Sym extent)
{
	int64_t least, most;
	sym_range(s->e.syms, extent, &least, &most);
	return most < 0 ? INT64_MAX : most;
}

uint32_t sum_cuts(const SumPlan *p, uint32_t loop, const SumCut **first)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < p->n; i++)
		if (p->cut[i].loop == loop && !n++)
			*first = &p->cut[i];
	return n;
}

void sum_chunks(Cpu *s, int64_t step, Lx *lo, Lx *hi)
{
	*lo = lx_var(s->e.f, ls_for(s->e.f, "chunk", *lo, *hi, step));
	*hi = eval_let(&s->e, "end", lx_min(s->e.f, lx_add(s->e.f, *lo, lx_int(s->e.f, step)), *hi));
}

static Lv begin(Cpu *s, const SumLoop *l, const char *name, Lv like)
{
	return ls_var(s->e.f, name, cpu_identity(s, l->kind, lx_type(s->e.f, lx_var(s->e.f, like))));
}

void sum_open(Cpu *s, SumLoop *l, Lx *lo, Lx *hi, Lv *acc)
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

/* to += from */
static void add(Cpu *s, const SumLoop *l, const Lv *to, const Lv *from)
{
	for (uint32_t i = 0; i < l->n; i++)
		ls_set(s->e.f, to[i], cpu_combine(s, l->kind, lx_var(s->e.f, to[i]), lx_var(s->e.f, from[i])));
}

/* to += from, which begins again. */
static void carry(Cpu *s, const SumLoop *l, const Lv *to, const Lv *from)
{
	add(s, l, to, from);
	for (uint32_t i = 0; i < l->n; i++)
		ls_set(s->e.f, from[i], cpu_identity(s, l->kind, lx_type(s->e.f, lx_var(s->e.f, from[i]))));
}

void sum_close(Cpu *s, SumLoop *l, Lv *acc)
{
	const uint32_t last = l->ncut - 1;
	ls_if(s->e.f, lx_cmp(s->e.f, SC_lt, l->end, l->hi)); /* another chunk follows */
	carry(s, l, l->sum[last], acc);
	for (uint32_t k = last; k-- > 0;) {
		Lx whole = lx_mod(s->e.f, lx_sub(s->e.f, l->end, l->lo), lx_int(s->e.f, l->cut[k].rounds * l->width));
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

Lx cpu_identity(Cpu *s, ReduceKind c, LType t)
{
	ScVal v = reduce_identity(c, t.dtype);
	return dtype_is_float(t.dtype) ? lx_float(s->e.f, t, v.f) : lx_int_of(s->e.f, t, v.i);
}

/* log(exp(a) + exp(b)) = max + log1p(exp(-|a - b|)); equal infinities stay. */
static Lx logaddexp(Cpu *s, Lx a, Lx b)
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

Lx cpu_combine(Cpu *s, ReduceKind c, Lx a, Lx b)
{
	if (c == REDUCE_LOGADDEXP)
		return logaddexp(s, a, b);
	return lx_sc(s->e.f, reduce_op(c), lx_type(s->e.f, a), (Lx[]){a, b}, 2);
}

Lx cpu_fma(Cpu *s, Lx a, Lx b, Lx c)
{
	if (isa_has(&s->target->isa, ISA_FMA))
		return lx_fma(s->e.f, a, b, c);
	return lx_add(s->e.f, c, lx_mul(s->e.f, a, b));
}

Lx cpu_accumulate(Cpu *s, const Stage *st, Lx acc, Kx value)
{
	const KxData *x = &s->e.k->kx.data[value.i];
	LType t = lx_type(s->e.f, acc);
	bool product = x->kind == KX_OP && x->op == OP_mul && x->dtype == t.dtype;
	if (st->combine == REDUCE_SUM && product && dtype_is_float(t.dtype) &&
	    !eval_known(&s->e, value).i) {
		Lx a = eval_value(&s->e, x->in[0]), b = eval_value(&s->e, x->in[1]);
		if (t.lanes > 1) {
			a = eval_splat(&s->e, a);
			b = eval_splat(&s->e, b);
		}
		return cpu_fma(s, a, b, acc);
	}
	Lx v = eval_convert(&s->e, eval_value(&s->e, value), t.dtype);
	return cpu_combine(s, st->combine, acc, t.lanes > 1 ? eval_splat(&s->e, v) : v);
}
