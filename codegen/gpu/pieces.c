/* The code of GpuPiecesPlan. */
#include "codegen/gpu/block.h"

static void store_element(Code *s, const GpuPiecesPlan *p, uint32_t stage, Lx number)
{
	Eval *e = &s->e;
	const bool all = p->count[stage].i == p->most.i;
	if (!all)
		ls_if(e->f, lx_cmp(e->f, SC_lt, number, eval_size(e, p->count[stage])));
	block_decode(s, number, p->own[stage].axis, p->own[stage].n, NULL);
	block_store(s, stage);
	if (!all)
		ls_end(e->f);
}

void emit_gpu_pieces(Code *s, const Plan *plan)
{
	const GpuPiecesPlan *p = plan->of.gpu_pieces;
	block_begin(s, p->nest, p->threads);
	Eval *e = &s->e;
	LoopFn *f = e->f;
	Lx at = eval_let(
		e, "at",
		lx_add(f, lx_mul(f, block_number(s), lx_int(f, p->threads)), block_thread(s)));
	ls_if(f, lx_cmp(f, SC_lt, at, eval_size(e, sym_mul(e->syms, p->points, p->most))));
	Lx by = eval_size(e, p->points_fast ? p->points : p->most), low = lx_mod(f, at, by),
	   high = lx_div(f, at, by);
	Lx point = eval_let(e, "point", p->points_fast ? low : high),
	   number = eval_let(e, "number", p->points_fast ? high : low);
	block_decode(s, point, p->order, p->n, NULL);
	for (uint32_t i = 0; i < e->k->stage.n; i++)
		store_element(s, p, i, number);
	ls_end(f);
	code_finish_phase(s, p->nblock, p->cost);
}
