/* Where a stage's result is needed:
 *
 *   select(c, stage0 * 0.125, -inf)      stage0 only where c holds
 *
 * A schedule may leave it out elsewhere, with what it reads. */
#include "ir/kernel/kernel.h"

#include "ir/op/op.h"

enum { CANDIDATES = 4 /* conditions that are tried */ };

static bool is_choice(const KxData *x)
{
	return x->kind == KX_OP && x->op == OP_select;
}

/* Sets reads[], by expression, to whether it reads the stage, but for what is chosen only where
 * `cond` holds. */
static void find_readers(const Kernel *k, uint32_t stage, Kx cond, bool *reads)
{
	for (uint32_t i = 1; i < k->kx.n; i++) {
		const KxData *x = &k->kx.data[i];
		reads[i] = (x->kind == KX_STAGE && x->stage == stage) || reads[x->guard.i] ||
			   reads[x->other.i];
		for (uint32_t j = 0; j < x->nin; j++)
			reads[i] |= reads[x->in[j].i] &&
				    !(cond.i && is_choice(x) && j == 1 && x->in[0].i == cond.i);
	}
}

static bool any_reads(const Kernel *k, const bool *reads)
{
	bool any = false;
	for (uint32_t i = 0; i < k->stage.n; i++)
		any |= reads[k->stage.data[i].value.i] || reads[k->stage.data[i].where.i];
	for (uint32_t i = 0; i < k->vvar.n; i++)
		any |= reads[k->vvar.data[i].value.i];
	return any;
}

Kx kernel_needed_where(const Kernel *k, uint32_t stage, Arena *scratch)
{
	bool *reads = ARENA_ARRAY(scratch, bool, k->kx.n),
	     *bare = ARENA_ARRAY(scratch, bool, k->kx.n);
	uint32_t tried = 0;
	find_readers(k, stage, (Kx){0}, reads);
	for (uint32_t i = 1; i < k->kx.n && tried < CANDIDATES; i++) {
		const KxData *x = &k->kx.data[i];
		if (!is_choice(x) || !reads[x->in[1].i] || reads[x->in[0].i])
			continue;
		tried++;
		find_readers(k, stage, x->in[0], bare);
		if (!any_reads(k, bare))
			return x->in[0];
	}
	return (Kx){0};
}
