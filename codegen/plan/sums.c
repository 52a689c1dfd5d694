#include "codegen/plan/sums.h"

/* Half a unit of the result in the last place is more than what a chain of that length may lose:
 * f32 has 2^16 times the precision of bf16, f64 2^29 times that of f32. */
enum { LIMIT_F32 = 256, LIMIT_NARROW = 4096, LIMIT_F64 = 65536 };

int64_t sum_limit(ReduceKind kind, DType acc, DType result)
{
	if (!reduce_rounds(kind) || !dtype_is_float(acc))
		return INT64_MAX;
	if (acc == DT_f64)
		return LIMIT_F64;
	return dtype_is_float(result) && dtype_size(result) < dtype_size(DT_f32) ? LIMIT_NARROW
										 : LIMIT_F32;
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

/* Returns how many rounds, of `terms` terms each, make a chunk of about `limit` terms; at least
 * 1. */
static int64_t rounds_of_chunk(int64_t terms, int64_t limit)
{
	int64_t n = chunks(limit, terms);
	n = n * terms > limit + limit / 2 ? limit / terms : n;
	return n > 1 ? n : 1;
}

/* Reverses the cuts of a plan, which is built with the innermost one first. */
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
		for (uint32_t cuts = 0; times(chain, chunks(most[i], unit)) > limit + limit / 2;
		     cuts++) {
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

int64_t sum_most(const SymTab *syms, Sym extent)
{
	int64_t least, most;
	sym_range(syms, extent, &least, &most);
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
