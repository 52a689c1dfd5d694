/* The schedule for contractions and convolutions: a tiled matrix multiplication (GEMM), implicit in
 * that convolutions read their input in place (implicit GEMM, without im2col).
 *
 * Axes have roles: M appear in operand a only, N in b only, batch axes in both, K are summed. One N
 * axis with unit stride in the result runs over vector lanes. A task is a block of rows (flattened
 * M) times a block of columns; inside, register tiles of MR rows x NV vectors accumulate over K:
 *
 *   for each tile of columns:  for each tile of rows:
 *     for k:  b_j = B[k, n + j*lanes];  a_i = A[row_i, k];  acc_i_j = fma(a_i, b_j, acc_i_j)
 *     epilogue: the stages after the contraction, per row and vector
 *
 * Constant b is packed at compile time in panels: [N / panel][K...][panel]. A panel is as wide as
 * the widest vector of the target's family, so that all levels of a family read the same memory;
 * tiles begin where panels do. Another b whose columns are apart is gathered or copied into panels,
 * where that is faster than sums along k (contract_copy.c). Where steps of k are so far apart that
 * they share places of the caches (a power of two of bytes), b is copied, too, and a, if rows are
 * what lies together. Long sums of few rows are added up in blocks of k: for each, all tiles of the
 * block. Rows past the end repeat the last one, so that every tile is whole; they store the same
 * values again. */
#include "codegen/cpu/contract.h"

static Lx take(Cpu *s, Lx *task, Sym count)
{
	if (sym_is(s->e.syms, count, 1))
		return lx_int(s->e.f, 0);
	Lx n = eval_size(&s->e, count), v = lx_mod(s->e.f, *task, n);
	*task = eval_let(&s->e, "rest", lx_div(s->e.f, *task, n));
	return v;
}

/* Returns the task's block of rows and columns, and gives the batch axes their values. */
static ContractCode decode_task(Cpu *s, const ContractPlan *p)
{
	ContractCode c = {.s = s, .p = p};
	Lx task = lx_var(s->e.f, s->e.f->task);
	Lx row_block = take(s, &task, p->tasks.rows);
	Lx col_block = take(s, &task, p->tasks.cols);
	for (uint32_t i = p->axes.nbatch; i-- > 0;)
		eval_at(&s->e, p->axes.batch[i],
			eval_let(&s->e, "batch",
				 take(s, &task, p->nest->extent[p->axes.batch[i]])));
	c.rows.lo =
		eval_let(&s->e, "row_lo", lx_mul(s->e.f, row_block, lx_int(s->e.f, p->block.rows)));
	Lx hi = lx_add(s->e.f, c.rows.lo, lx_int(s->e.f, p->block.rows));
	c.rows.hi = eval_let(&s->e, "row_hi", lx_min(s->e.f, hi, eval_size(&s->e, p->rows)));
	Lx cols = eval_size(&s->e, p->nest->extent[p->axes.n]);
	c.cols.lo = lx_int(s->e.f, 0);
	c.cols.hi = cols;
	if (p->block.cols) {
		c.cols.lo = eval_let(&s->e, "col_lo",
				     lx_mul(s->e.f, col_block, lx_int(s->e.f, p->block.cols)));
		hi = lx_add(s->e.f, c.cols.lo, lx_int(s->e.f, p->block.cols));
		c.cols.hi = eval_let(&s->e, "col_hi", lx_min(s->e.f, hi, cols));
	}
	return c;
}

void emit_contract(Cpu *s, const Plan *plan)
{
	const ContractPlan *p = plan->of.contract;
	uint32_t ncopy = 0;
	while (ncopy < MAX_COPIES && p->copy[ncopy])
		ncopy++;
	for (uint32_t i = 0; i < ncopy; i++)
		contract_copy(s, p->copy[i], ncopy);
	cpu_begin_phase(s, p->nest);
	eval_lanes(&s->e, p->axes.n, p->vector.lanes);
	ContractCode code = decode_task(s, p);
	contract_block(&code);
	cpu_finish_phase(s, p->tasks.n, p->cost);
}
