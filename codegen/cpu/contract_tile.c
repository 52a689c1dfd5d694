/* Register tiling of a contraction, the loops of one task: columns, rows, the register tile over k,
 * the epilogue. */
#include "codegen/cpu/contract.h"

static Lx int_of(Cpu *s, int64_t v)
{
	return lx_int(s->e.f, v);
}

/* Returns the stride of an axis in an operand that contract_linear took. */
static Sym coef_of(const Cpu *s, Kx load, uint32_t axis)
{
	Sym coef;
	if (!nest_coef(s->e.nest, s->e.nest->offset[load.i], axis, &coef))
		ctx_bug(s->e.l->ir->ctx,
			"kernel %s: a contraction steps through an operand that is not linear",
			s->e.k->name);
	return coef;
}

/* Gathers the panel of the current columns: local[k][j * lanes + lane] = b[k, col + j * lanes +
 * lane]. */
static void gather_panel(ContractCode *c, uint32_t nv, Lx mask)
{
	Cpu *s = c->s;
	LMem from = eval_load_memory(&s->e, c->p->b.load);
	Sym coef = coef_of(s, c->p->b.load, c->p->axes.n);
	for (uint32_t i = 0; i < c->p->axes.nk; i++)
		eval_for(&s->e, c->p->axes.k[i], int_of(s, 0),
			 eval_size(&s->e, s->e.nest->extent[c->p->axes.k[i]]), 1);
	for (uint32_t j = 0; j < nv; j++) {
		eval_at(&s->e, c->p->axes.n,
			lx_add(s->e.f, c->col, int_of(s, (int64_t)j * s->e.lanes.n)));
		Lx m = j + 1 == nv ? mask : (Lx){0};
		Lx lanes = lx_ramp(s->e.f, int_of(s, 0), eval_size(&s->e, coef), s->e.lanes.n);
		Lv v = ls_gather(s->e.f, "b", from,
				 eval_index(&s->e, s->e.nest->offset[c->p->b.load.i]), lanes,
				 dtype_compute(from.dtype), m);
		ls_store(s->e.f, c->local_b, contract_b_offset(c, j, (Lx){0}),
			 eval_convert(&s->e, lx_var(s->e.f, v), c->p->vector.dtype), (Lx){0});
	}
	for (uint32_t i = 0; i < c->p->axes.nk; i++)
		eval_end(&s->e);
}

/* ---- the register tile ---- */

static int64_t panel_width(const ContractCode *c)
{
	return (int64_t)c->p->b.vectors * c->s->e.lanes.n * c->p->b.panels.unit;
}

static int64_t panels_of_tile(const ContractCode *c, const ContractTile *t)
{
	return (t->how->nv + c->p->b.vectors - 1) / c->p->b.vectors;
}

static Lx tile_of_rows(const ContractCode *c)
{
	Cpu *s = c->s;
	return lx_div(s->e.f, lx_sub(s->e.f, c->row, c->rows.lo), int_of(s, c->p->tile.mr));
}

/* Returns the offset, in a packed b, of the part of the next panels that this tile prefetches; with
 * blocks of k, of the same steps of these panels. */
static Lx next_panels(ContractCode *c, const ContractTile *t)
{
	Cpu *s = c->s;
	Lx lines = int_of(s, t->how->ahead), part;
	if (c->p->k_block.used) {
		part = lx_mul(s->e.f,
			      int_of(s, c->p->k_block.steps * c->p->k_block.inner * panel_width(c) /
						UNROLL_K),
			      lines);
	} else {
		Sym rounds = sym_divi(s->e.syms, c->p->b.panels.stride, t->how->unroll);
		if (c->p->axes.row->nfrag) /* rounds divide steps, not the elements of a row */
			rounds = sym_muli(
				s->e.syms,
				sym_divi(s->e.syms,
					 sym_divi(s->e.syms, c->p->b.panels.stride, panel_width(c)),
					 t->how->unroll),
				panel_width(c));
		part = lx_mul(s->e.f, eval_size(&s->e, rounds), lines);
	}
	const int64_t ahead = panels_of_tile(c, t) * (c->p->columns.turn ? c->p->columns.turn : 1);
	Lx next = lx_mul(s->e.f, eval_size(&s->e, c->p->b.panels.stride), int_of(s, ahead));
	return lx_add(s->e.f, lx_add(s->e.f, t->panel, next),
		      lx_mul(s->e.f, tile_of_rows(c), part));
}

/* Returns the number of the current step of all summed axes, or of the first step of this block of
 * k. */
static Lx step_number(ContractCode *c, bool of_block)
{
	Cpu *s = c->s;
	Lx k = int_of(s, 0);
	for (uint32_t i = 0; i < c->p->axes.nk; i++) {
		Lx at = s->e.at[c->p->axes.k[i]];
		if (of_block && i >= c->p->k_block.k)
			at = i == c->p->k_block.k ? c->k.lo : int_of(s, 0);
		k = lx_add(s->e.f,
			   lx_mul(s->e.f, k, eval_size(&s->e, s->e.nest->extent[c->p->axes.k[i]])),
			   at);
	}
	return k;
}

/* Fetches the next panels into L2 while the tiles of a block use these, because the first tile
 * would otherwise wait for memory. A fetch past the end is harmless. */
void contract_prefetch(ContractCode *c, Lx next, int64_t lines, uint32_t unroll)
{
	Cpu *s = c->s;
	Lx k = step_number(c, false), at = next;
	if (c->p->k_block.used) {
		Lx first = step_number(c, true);
		at = lx_add(s->e.f, at, lx_mul(s->e.f, first, int_of(s, panel_width(c))));
		k = lx_sub(s->e.f, k, first);
	}
	if (c->p->axes.row->nfrag)
		k = lx_mul(s->e.f, lx_div(s->e.f, k, int_of(s, unroll)),
			   int_of(s, lines * panel_width(c)));
	else
		k = lx_mul(s->e.f, k, int_of(s, lines * panel_width(c) / unroll));
	at = lx_add(s->e.f, at, k);
	for (int64_t i = 0; i < lines; i++)
		ls_prefetch(s->e.f, contract_b_memory(c),
			    lx_add(s->e.f, at, int_of(s, i * panel_width(c))), 2);
}

void contract_fetch_next(ContractCode *c, const ContractTile *t, const Panels *p, LMem m, Lx at)
{
	LoopFn *f = c->s->e.f;
	if (!t->how->ahead || c->p->block.rows > c->p->tile.mr)
		return;
	const Lx stride = eval_size(&c->s->e, p->stride);
	ls_prefetch(f, m, lx_add(f, at, lx_mul(f, stride, int_of(c->s, panels_of_tile(c, t)))), 2);
}

Lx contract_step_offset(ContractCode *c, Kx load)
{
	Cpu *s = c->s;
	Sym k_part = sym_int(s->e.syms, 0);
	for (uint32_t i = 0; i < c->p->axes.nk; i++)
		k_part = sym_add(s->e.syms, k_part,
				 sym_mul(s->e.syms, coef_of(s, load, c->p->axes.k[i]),
					 s->e.nest->var[c->p->axes.k[i]]));
	return eval_index(&s->e, k_part);
}

/* Multiplies vectors of b with a of the current step, k_offset from the rows' offsets. left: of the
 * last group; none: the group is whole. */
static void multiply_rows(ContractCode *c, ContractTile *t, const Lx *b, Lx k_offset, Lx left)
{
	Cpu *s = c->s;
	for (uint32_t i = 0; i < c->p->tile.mr; i++) {
		Lx x = lx_splat(s->e.f, contract_load_a(c, lx_add(s->e.f, t->a[i], k_offset), left),
				s->e.lanes.n);
		for (uint32_t j = 0; j < t->how->nv; j++)
			ls_set(s->e.f, t->acc[t->way][i][j],
			       contract_add_product(c, x, b[j],
						    lx_var(s->e.f, t->acc[t->way][i][j])));
	}
}

/* Adds the products of a step of what is decoded. The accumulators take its fields in turn. */
static void multiply_decoded(ContractCode *c, ContractTile *t)
{
	Cpu *s = c->s;
	const ContractAxes *x = &c->p->axes;
	const Lx k_offset = contract_step_offset(c, c->p->a.load),
		 apart = x->half == NO_AXIS ? int_of(s, 0)
					    : eval_size(&s->e, coef_of(s, c->p->a.load, x->half));
	Lx b[MAX_TILE_VECTORS];
	for (uint32_t k = 0; k < x->nfield; k++) {
		for (uint32_t j = 0; j < t->how->nv; j++)
			b[j] = c->p->b.decoded.slab ? contract_load_slab(c, j, k)
						    : contract_decoded(c, t, j, k);
		if (x->nfield > 1)
			t->way = k % t->how->ways;
		multiply_rows(c, t, b,
			      lx_add(s->e.f, k_offset, lx_mul(s->e.f, apart, int_of(s, k))),
			      (Lx){0});
	}
}

/* Adds the products of a step. left: as for multiply_rows. */
static void multiply_add(ContractCode *c, ContractTile *t, Lx left)
{
	Cpu *s = c->s;
	const uint32_t half = c->p->axes.half;
	Lx b[MAX_TILE_VECTORS], field[MAX_TILE_VECTORS];
	if (c->p->b.decoded.value.i) {
		multiply_decoded(c, t);
		return;
	}
	for (uint32_t j = 0; j < t->how->nv && !t->bytes; j++) {
		bool edge = c->p->b.access == B_IN_PLACE && j + 1 == t->how->nv;
		b[j] = contract_load_b(c, j, t->how, t->panel, edge ? t->mask : (Lx){0});
	}
	const Lx k_offset = contract_step_offset(c, c->p->a.load);
	if (half == NO_AXIS) {
		multiply_rows(c, t, b, k_offset, left);
		return;
	}
	const Lx apart = eval_size(&s->e, coef_of(s, c->p->a.load, half));
	for (uint32_t k = 0; k < 2; k++) {
		for (uint32_t j = 0; j < t->how->nv; j++)
			field[j] = t->bytes ? contract_load_byte_group(c, j, k)
					    : contract_half(c, b[j], k);
		multiply_rows(c, t, field, k ? lx_add(s->e.f, k_offset, apart) : k_offset, left);
	}
}

static Lx load_sum(const ContractCode *c, const ContractTile *t, LMem sum, uint32_t i, uint32_t j)
{
	Cpu *s = c->s;
	return lx_var(s->e.f, ls_load(s->e.f, "sum", sum, contract_sum_offset(c, t, i, j),
				      c->p->sums.result, (Lx){0}));
}

static Lx sum_zero(const ContractCode *c)
{
	const LType r = c->p->sums.result;
	return dtype_is_float(r.dtype) ? lx_float(c->s->e.f, r, 0) : lx_int_of(c->s->e.f, r, 0);
}

static void clear_sum(const ContractCode *c, const ContractTile *t, LMem sum)
{
	for (uint32_t i = 0; i < c->p->tile.mr; i++)
		for (uint32_t j = 0; j < t->how->nv; j++)
			ls_store(c->s->e.f, sum, contract_sum_offset(c, t, i, j), sum_zero(c),
				 (Lx){0});
}

/* Adds the sums of the chunks inside, or what registers have, to the sums of this cut, and clears
 * them. */
static void end_chunk(ContractCode *c, const ContractTile *t, uint32_t cut)
{
	Cpu *s = c->s;
	LoopFn *f = s->e.f;
	const bool innermost = cut + 1 == t->ncut, held = innermost && c->p->sums.held,
		   products = innermost && !contract_has_blocks(c->p);
	if (c->many.i)
		ls_if(f, c->many);
	for (uint32_t i = 0; i < c->p->tile.mr; i++)
		for (uint32_t j = 0; j < t->how->nv; j++) {
			Lx before = load_sum(c, t, t->sum[cut], i, j);
			Lx chunk = held       ? lx_var(f, t->held[i][j])
				   : products ? contract_chains(s, t, 0, t->how->ways, i, j)
					      : load_sum(c, t, t->sum[cut + 1], i, j);
			ls_store(f, t->sum[cut], contract_sum_offset(c, t, i, j),
				 lx_add(f, before, chunk), (Lx){0});
			for (uint32_t w = 0; products && w < t->how->ways; w++)
				ls_set(f, t->acc[w][i][j], contract_zero(c));
			if (held)
				ls_set(f, t->held[i][j], sum_zero(c));
		}
	if (!products && !held)
		clear_sum(c, t, t->sum[cut + 1]);
	if (c->many.i)
		ls_end(s->e.f);
}

static void k_loops(ContractCode *c, ContractTile *t, uint32_t next);

/* Multiplies the last group of the innermost axis if it is not whole: if `whole`, its index, is
 * less than `end`. */
static void last_group(ContractCode *c, ContractTile *t, uint32_t axis, Lx whole, Lx end)
{
	Cpu *s = c->s;
	ls_if(s->e.f, lx_cmp(s->e.f, SC_lt, whole, end));
	eval_at(&s->e, axis, whole);
	t->way = 0;
	Lx steps = eval_size(&s->e, s->e.nest->extent[c->p->axes.grouped]);
	Lx before = lx_mul(s->e.f, whole, int_of(s, c->p->axes.row->group));
	multiply_add(c, t, eval_let(&s->e, "left", lx_sub(s->e.f, steps, before)));
	eval_at(&s->e, axis, (Lx){0});
	ls_end(s->e.f);
}

/* Writes the loop over blocks in [start, end) of a tile of fragments. What the stage of blocks
 * makes of a block's sums is added behind the operations of the next block (software
 * pipelining). */
static void blocks_of_fragments(ContractCode *c, ContractTile *t, uint32_t axis, Lx start, Lx end)
{
	Cpu *s = c->s;
	LoopFn *f = s->e.f;
	const Lx behind = lx_add(f, end, int_of(s, 1));
	contract_zero_frags(c, t->how->nv);
	const Lx k = lx_var(f, ls_for(f, "block", start, behind, 1)),
		 others = lx_cmp(f, SC_lt, start, k);
	ls_if(f, others);
	contract_store_frags(c, t->how->nv);
	ls_end(f);
	ls_if(f, lx_cmp(f, SC_lt, k, end));
	eval_at(&s->e, axis, k);
	contract_add_block(c, t->how, t->panel, t->next);
	ls_end(f);
	ls_if(f, others);
	eval_at(&s->e, axis, eval_let(&s->e, "before", lx_sub(f, k, int_of(s, 1))));
	contract_end_block(c, t);
	ls_end(f);
	eval_at(&s->e, axis, (Lx){0});
	ls_end(f);
}

static void k_loop(ContractCode *c, ContractTile *t, uint32_t next, Lx start, Lx end)
{
	Cpu *s = c->s;
	uint32_t axis = c->p->axes.k[next];
	bool innermost = next + 1 == c->p->axes.nk,
	     tail = innermost && contract_has_tail(s->e.nest, &c->p->axes);
	uint32_t unroll = innermost ? t->how->unroll : 1;
	Lx whole = end;
	if (c->p->axes.row->nfrag && next + 1 == c->p->axes.nblock) {
		blocks_of_fragments(c, t, axis, start, end);
		return;
	}
	if (innermost && c->p->axes.row->nfrag) {
		contract_frag_steps(c, t->how, t->panel, t->next);
		return;
	}
	if (tail)
		whole = eval_let(&s->e, "whole",
				 lx_min(s->e.f, end, eval_size(&s->e, c->p->axes.whole_groups)));
	eval_for(&s->e, axis, start, whole, unroll);
	Lx k = s->e.at[axis];
	if (innermost && t->how->ahead)
		contract_prefetch(c, t->next, t->how->ahead, unroll);
	for (uint32_t u = 0; u < unroll; u++) {
		eval_at(&s->e, axis, lx_add(s->e.f, k, int_of(s, u)));
		t->way = innermost ? u % t->how->ways : 0;
		if (next + 1 == c->p->axes.nblock)
			contract_begin_block(c, t);
		if (innermost)
			multiply_add(c, t, (Lx){0});
		else
			k_loops(c, t, next + 1);
	}
	if (next + 1 == c->p->axes.nblock)
		contract_end_block(c, t);
	eval_end(&s->e);
	if (tail)
		last_group(c, t, axis, whole, end);
}

/* Writes the loop over summed axis number `next` in [start, end), in chunks if the sums are cut
 * there. */
static void k_chunks(ContractCode *c, ContractTile *t, uint32_t next, Lx start, Lx end)
{
	const uint32_t cut = c->cut;
	if (cut >= t->ncut || c->p->sums.cuts.cut[cut].loop != next) {
		k_loop(c, t, next, start, end);
		return;
	}
	sum_chunks(&c->s->code, c->p->sums.cuts.cut[cut].rounds, &start, &end);
	c->cut++;
	k_chunks(c, t, next, start, end);
	c->cut--;
	end_chunk(c, t, cut);
	ls_end(c->s->e.f);
}

static void k_loops(ContractCode *c, ContractTile *t, uint32_t next)
{
	Cpu *s = c->s;
	uint32_t axis = c->p->axes.k[next];
	if (c->p->b.decoded.value.i && !c->p->b.decoded.slab)
		contract_decode_ahead(c, t, next);
	Lx start = int_of(s, 0), end = eval_size(&s->e, s->e.nest->extent[axis]);
	if (c->p->k_block.used && next == c->p->k_block.k) {
		start = c->k.lo;
		end = c->k.hi;
	}
	contract_taps(c, axis, &start, &end);
	k_chunks(c, t, next, start, end);
}

/* Sets all accumulators of the tile, and the sums of its chunks, to 0. */
static void start_sums(ContractCode *c, ContractTile *t)
{
	Cpu *s = c->s;
	const bool frags = c->p->axes.row->nfrag;
	t->ncut = c->p->k_block.used ? 0 : c->p->sums.cuts.n;
	if (frags && !contract_has_blocks(c->p))
		contract_zero_frags(c, t->how->nv);
	for (uint32_t i = 0; i < c->p->tile.mr && !frags; i++)
		for (uint32_t j = 0; j < t->how->nv; j++)
			for (uint32_t w = 0; w < t->how->ways; w++)
				t->acc[w][i][j] =
					ls_var(s->e.f, arena_printf(s->e.arena, "acc_%u_%u", i, j),
					       contract_zero(c));
	for (uint32_t i = 0; i < c->p->tile.mr && c->p->sums.held; i++)
		for (uint32_t j = 0; j < t->how->nv; j++)
			t->held[i][j] = ls_var(s->e.f, arena_printf(s->e.arena, "sum_%u_%u", i, j),
					       sum_zero(c));
	const uint32_t nsum = t->ncut + (contract_has_blocks(c->p) && !c->p->sums.held);
	for (uint32_t k = 0; k < nsum; k++)
		t->sum[k] = ls_local(s->e.f, "sums", c->p->sums.result.dtype,
				     (uint64_t)c->p->tile.mr * t->how->nv * s->e.lanes.n);
	if (t->ncut && c->many.i)
		ls_if(s->e.f, c->many);
	for (uint32_t k = 0; k < nsum; k++)
		clear_sum(c, t, t->sum[k]);
	if (t->ncut && c->many.i)
		ls_end(s->e.f);
}

/* Returns the offset of the tile in the local sums that blocks of k are added to. */
static Lx tile_sums(ContractCode *c)
{
	Cpu *s = c->s;
	Lx columns =
		lx_mul(s->e.f, lx_sub(s->e.f, c->col, c->cols.lo), int_of(s, c->p->block.rows));
	Lx rows = lx_mul(s->e.f, lx_sub(s->e.f, c->row, c->rows.lo), int_of(s, s->e.lanes.n));
	return eval_let(&s->e, "sum_at", lx_add(s->e.f, columns, rows));
}

static Lx sum_at(ContractCode *c, Lx tile, uint32_t i, uint32_t j)
{
	return lx_add(c->s->e.f, tile, int_of(c->s, (j * c->p->block.rows + i) * c->s->e.lanes.n));
}

static void add_to_sums(ContractCode *c, const ContractTile *t)
{
	Cpu *s = c->s;
	Lx tile = tile_sums(c);
	for (uint32_t i = 0; i < c->p->tile.mr; i++)
		for (uint32_t j = 0; j < t->how->nv; j++) {
			Lx at = sum_at(c, tile, i, j);
			Lx before = lx_var(
				s->e.f, ls_load(s->e.f, "sum", c->sums, at, c->p->vector, (Lx){0}));
			ls_store(s->e.f, c->sums, at,
				 lx_add(s->e.f, before,
					contract_chains(s, t, 0, t->how->ways, i, j)),
				 (Lx){0});
		}
}

static void load_sums(ContractCode *c, ContractTile *t)
{
	Cpu *s = c->s;
	Lx tile = tile_sums(c);
	for (uint32_t i = 0; i < c->p->tile.mr; i++)
		for (uint32_t j = 0; j < t->how->nv; j++)
			t->acc[0][i][j] = ls_load(s->e.f, "sum", c->sums, sum_at(c, tile, i, j),
						  c->p->vector, (Lx){0});
}

/* Adds up the accumulators of each sum into the first one; or loads the sum, if it consists of
 * blocks or chunks, from local memory into that. */
static void finish_sums(ContractCode *c, ContractTile *t)
{
	Cpu *s = c->s;
	const bool held = c->p->sums.held && !t->ncut;
	for (uint32_t i = 0; contract_has_blocks(c->p) && i < c->p->tile.mr; i++)
		for (uint32_t j = 0; j < t->how->nv; j++)
			t->acc[0][i][j] =
				held ? t->held[i][j]
				     : ls_let(s->e.f, "sum", load_sum(c, t, t->sum[0], i, j));
	if (contract_has_blocks(c->p))
		return;
	for (uint32_t i = 0; i < c->p->tile.mr; i++)
		for (uint32_t j = 0; j < t->how->nv; j++)
			if (t->how->ways > 1 && (!t->ncut || c->many.i))
				ls_set(s->e.f, t->acc[0][i][j],
				       contract_chains(s, t, 0, t->how->ways, i, j));
	if (!t->ncut)
		return;
	if (c->many.i)
		ls_if(s->e.f, c->many);
	for (uint32_t i = 0; i < c->p->tile.mr; i++)
		for (uint32_t j = 0; j < t->how->nv; j++)
			ls_set(s->e.f, t->acc[0][i][j], load_sum(c, t, t->sum[0], i, j));
	if (c->many.i)
		ls_end(s->e.f);
}

static void subtract_bias(ContractCode *c, ContractTile *t)
{
	Cpu *s = c->s;
	for (uint32_t j = 0; j < t->how->nv; j++) {
		Lx at = int_of(s, (int64_t)j * s->e.lanes.n);
		Lx bias =
			lx_var(s->e.f, ls_load(s->e.f, "bias", c->bias, at, c->p->vector, (Lx){0}));
		for (uint32_t i = 0; i < c->p->tile.mr; i++)
			t->acc[0][i][j] =
				ls_let(s->e.f, "sum",
				       lx_sub(s->e.f, lx_var(s->e.f, t->acc[0][i][j]), bias));
	}
}

static void fetch_row(ContractCode *c, Kx load, int64_t width)
{
	Cpu *s = c->s;
	const int64_t line = (int64_t)s->target->machine.line /
			     (int64_t)dtype_size(eval_load_memory(&s->e, load).dtype);
	Lx last =
		lx_add(s->e.f, eval_index(&s->e, s->e.nest->offset[load.i]), int_of(s, width - 1));
	for (int64_t back = 0; back < width; back += line)
		ls_prefetch(s->e.f, eval_load_memory(&s->e, load),
			    lx_sub(s->e.f, last, int_of(s, back)), 1);
}

/* Fetches ahead, while the tile is added up, what its epilogue reads of each row. */
static void fetch_rows(ContractCode *c, const ContractTile *t)
{
	Cpu *s = c->s;
	const LoadList *fetched = &c->p->fetched;
	if (!fetched->n)
		return;
	contract_open_rows(c);
	eval_at(&s->e, c->p->axes.n, c->col);
	for (uint32_t i = 0; i < fetched->n; i++)
		fetch_row(c, fetched->load[i], (int64_t)t->how->nv * s->e.lanes.n);
	contract_close_rows(c);
	eval_at(&s->e, c->p->axes.n, (Lx){0});
}

/* What is done with each tile. */
typedef enum {
	TILE_WHOLE,
	TILE_SUM,   /* a block of k is added to the sums */
	TILE_FINISH /* their epilogue */
} TilePart;

static void start_tile(ContractCode *c, ContractTile *t)
{
	Cpu *s = c->s;
	for (uint32_t i = 0; i < c->p->tile.mr && !c->p->axes.row->nfrag; i++) {
		t->a[i] = contract_a_row(c, int_of(s, i));
		if (contract_has_blocks(c->p) && c->p->axes.nm == 1)
			t->row[i] = s->e.at[c->p->axes.m[0]];
	}
	if (c->p->a.runs.used)
		contract_find_fragments(c);
	if (c->p->b.decoded.value.i) {
		if (!c->p->b.decoded.slab)
			contract_start_decoding(c, t);
	} else if (has_panels(&c->p->b)) {
		t->panel = contract_first_panel(c, &c->p->b.panels);
		for (uint32_t i = 0; i < c->p->sums.blocks.nscale; i++)
			t->scale[i] = contract_first_panel(c, &c->p->sums.blocks.scale[i].panels);
	}
	if (t->how->ahead)
		t->next = eval_let(&s->e, "next", next_panels(c, t));
}

/* Adds the products of all steps of k, or of the current block of k, to the sums of the tile. */
static void sum_tile(ContractCode *c, ContractTile *t, TilePart part)
{
	Lv sum[MAX_TILE_ROWS];
	if (c->p->b.access != B_ALONG) {
		start_sums(c, t);
		k_loops(c, t, part == TILE_SUM ? c->p->k_block.k : 0);
		return;
	}
	contract_dots(c, t->a, t->left, sum);
	for (uint32_t i = 0; i < c->p->tile.mr; i++)
		t->acc[0][i][0] = sum[i];
}

static void run_tile(ContractCode *c, ContractTile *t, TilePart part)
{
	Cpu *s = c->s;
	if (c->p->tile.mr == 0)
		ctx_bug(s->e.f->ir->ctx, "a contraction whose tile has no rows");
	if (part != TILE_FINISH) {
		start_tile(c, t);
		contract_bound_taps(c);
		if (part == TILE_WHOLE)
			fetch_rows(c, t);
		sum_tile(c, t, part);
	}
	if (c->frags.late.used) {
		contract_late_tile(c, t->how);
		return;
	}
	if (c->p->axes.row->nfrag) {
		if (!contract_has_blocks(c->p))
			contract_store_frags(c, t->how->nv);
		contract_epilogue_of_fragments(c, t);
		return;
	}
	if (part == TILE_SUM) {
		add_to_sums(c, t);
		return;
	}
	if (part == TILE_FINISH)
		load_sums(c, t);
	else if (c->p->b.access != B_ALONG)
		finish_sums(c, t);
	if (c->p->b.decoded.factor.i && !c->p->axes.nblock)
		contract_multiply_sums(c, t);
	if (c->p->axes.row->biased)
		subtract_bias(c, t);
	if (t->how->looped)
		contract_looped_epilogue(c, t);
	else
		contract_inline_epilogue(c, t);
}

/* Writes the loop over tiles of rows that are like t. */
static void tiles_of_rows(ContractCode *c, ContractTile t, TilePart part)
{
	Cpu *s = c->s;
	c->row = lx_var(s->e.f, ls_for(s->e.f, "row", c->rows.lo, c->rows.hi, c->p->tile.mr));
	run_tile(c, &t, part);
	ls_end(s->e.f);
}

/* Writes the loop over tiles of vectors that read bytes of halves, if there are so many rows that
 * these pay, which a symbolic number of rows says when the code runs. */
static void tiles_of_bytes(ContractCode *c, ContractTile t, TilePart part)
{
	LoopFn *f = c->s->e.f;
	const bool sure = sym_is_const(c->s->e.syms, c->p->rows, NULL);
	const Lx few = int_of(c->s, (FEWEST_TILES - 1) * c->p->tile.mr);
	if (!sure)
		ls_if(f, lx_cmp(f, SC_lt, few, lx_sub(f, c->rows.hi, c->rows.lo)));
	contract_fill_bytes(c, t.how);
	t.bytes = true;
	tiles_of_rows(c, t, part);
	if (sure)
		return;
	ls_else(f);
	t.bytes = false;
	tiles_of_rows(c, t, part);
	ls_end(f);
}

/* Prepares what all tiles of the current columns read (gathered panels, slabs, biases), and writes
 * the loop over tiles of rows. left: the number of columns from c->col on, if it may be less than a
 * vector; else none. */
static void row_loop(ContractCode *c, const TileCode *how, Lx left, TilePart part)
{
	Cpu *s = c->s;
	Lx mask = {0};
	if (left.i)
		mask = lx_var(s->e.f,
			      ls_let(s->e.f, "edge", lx_mask(s->e.f, left, s->e.lanes.n)));
	ContractTile t = {.how = how, .mask = mask, .left = left};
	if (c->p->b.access == B_GATHERED)
		gather_panel(c, how->nv, mask);
	if (c->p->b.decoded.slab && part != TILE_FINISH)
		contract_fill_slab(c, &t);
	if (c->p->axes.row->biased && part != TILE_SUM)
		contract_sum_columns(c, how);
	if (c->p->b.bytes && !c->p->axes.row->nfrag) {
		tiles_of_bytes(c, t, part);
		return;
	}
	if (c->p->b.bytes)
		contract_fill_bytes(c, how);
	tiles_of_rows(c, t, part);
}

/* ---- columns ---- */

static void whole_columns(ContractCode *c, Lx end, TilePart part)
{
	Cpu *s = c->s;
	int64_t width = (int64_t)c->p->tile.nv * s->e.lanes.n;
	c->col = lx_var(s->e.f, ls_for(s->e.f, "col", c->cols.lo, end, width));
	row_loop(c, &c->p->columns.whole, (Lx){0}, part);
	ls_end(s->e.f);
}

/* Writes the loops over tiles where each tile of rows meets a few tiles of columns in turn. The
 * rows of a stay in the first cache meanwhile, and the panels of these columns in the second one
 * from one tile of rows to the next. */
static void columns_in_turn(ContractCode *c, Lx end)
{
	Cpu *s = c->s;
	LoopFn *f = s->e.f;
	const int64_t width = (int64_t)c->p->tile.nv * s->e.lanes.n,
		      all = c->p->columns.turn * width;
	ContractTile t = {.how = &c->p->columns.whole};
	if (t.how->late)
		contract_late_begin(c);
	Lx first = lx_var(f, ls_for(f, "cols", c->cols.lo, end, all));
	Lx last = eval_let(&s->e, "end", lx_min(f, lx_add(f, first, int_of(s, all)), end));
	c->row = lx_var(f, ls_for(f, "row", c->rows.lo, c->rows.hi, c->p->tile.mr));
	c->col = lx_var(f, ls_for(f, "col", first, last, width));
	run_tile(c, &t, TILE_WHOLE);
	ls_end(f);
	ls_end(f);
	ls_end(f);
	if (t.how->late)
		contract_late_finish(c, t.how);
	c->frags.late.used = false;
}

static void rest_of_columns(ContractCode *c, Lx start, TilePart part)
{
	Cpu *s = c->s;
	const TileCode *rest = &c->p->columns.rest;
	ls_if(s->e.f, lx_cmp(s->e.f, SC_lt, start, c->cols.hi));
	c->col = start;
	row_loop(c, rest, rest->edge ? int_of(s, rest->edge) : (Lx){0}, part);
	ls_end(s->e.f);
}

static void symbolic_rest(ContractCode *c, Lx start, TilePart part)
{
	Cpu *s = c->s;
	c->col = lx_var(s->e.f, ls_for(s->e.f, "col", start, c->cols.hi, s->e.lanes.n));
	row_loop(c, &c->p->columns.rest, lx_sub(s->e.f, c->cols.hi, c->col), part);
	ls_end(s->e.f);
}

static void all_tiles(ContractCode *c, TilePart part)
{
	Cpu *s = c->s;
	const ColumnTiles *columns = &c->p->columns;
	int64_t width = (int64_t)c->p->tile.nv * s->e.lanes.n;
	if (width <= 0)
		ctx_bug(s->e.f->ir->ctx, "a contraction whose tile has no columns");
	Lx n = lx_sub(s->e.f, c->cols.hi, c->cols.lo);
	Lx end = lx_add(s->e.f, c->cols.lo, lx_sub(s->e.f, n, lx_mod(s->e.f, n, int_of(s, width))));
	end = eval_let(&s->e, "whole", end);
	if (columns->whole.nv && c->p->columns.turn)
		columns_in_turn(c, end);
	else if (columns->whole.nv)
		whole_columns(c, end, part);
	if (columns->symbolic)
		symbolic_rest(c, end, part);
	else if (columns->rest.nv)
		rest_of_columns(c, end, part);
}

/* ---- blocks of k ---- */

static int64_t count_sums(const ContractCode *c)
{
	int64_t lanes = c->s->e.lanes.n,
		cols = c->p->block.cols ? c->p->block.cols
					: sym_const(c->s->e.syms, c->p->nest->extent[c->p->axes.n]);
	return c->p->block.rows * ((cols + lanes - 1) / lanes * lanes);
}

/* Opens a loop over the vectors of the block's sums, and returns the offset. */
static Lx each_sum(ContractCode *c)
{
	Cpu *s = c->s;
	return lx_var(s->e.f,
		      ls_for(s->e.f, "i", int_of(s, 0), int_of(s, count_sums(c)), s->e.lanes.n));
}

static void clear_block(ContractCode *c)
{
	Lx at = each_sum(c);
	ls_store(c->s->e.f, c->sums, at, contract_zero(c), (Lx){0});
	ls_end(c->s->e.f);
}

/* Adds the sums of a chunk of blocks of k, c->sums, to the sums before it. */
static void add_block(ContractCode *c, LMem sums)
{
	Cpu *s = c->s;
	Lx at = each_sum(c);
	Lx before = lx_var(s->e.f, ls_load(s->e.f, "sum", sums, at, c->p->vector, (Lx){0}));
	Lx chunk = lx_var(s->e.f, ls_load(s->e.f, "part", c->sums, at, c->p->vector, (Lx){0}));
	ls_store(s->e.f, sums, at, lx_add(s->e.f, before, chunk), (Lx){0});
	ls_end(s->e.f);
}

static void block_loops(ContractCode *c, uint32_t next);

/* Writes the loop over blocks of k, or over a summed axis outside of them, in [lo, hi). */
static void block_loop(ContractCode *c, uint32_t next, Lx lo, Lx hi)
{
	Cpu *s = c->s;
	const KBlock *b = &c->p->k_block;
	if (next == b->k) {
		c->k.lo = lx_var(s->e.f, ls_for(s->e.f, "chunk", lo, hi, b->steps));
		c->k.hi =
			eval_let(&s->e, "end",
				 lx_min(s->e.f, lx_add(s->e.f, c->k.lo, int_of(s, b->steps)), hi));
		all_tiles(c, TILE_SUM);
		ls_end(s->e.f);
		return;
	}
	eval_for(&s->e, c->p->axes.k[next], lo, hi, 1);
	block_loops(c, next + 1);
	eval_end(&s->e);
}

static void block_chunks(ContractCode *c, uint32_t next, Lx lo, Lx hi)
{
	Cpu *s = c->s;
	const SumCut *cut = &c->p->sums.cuts.cut[c->cut];
	const LMem sums = c->sums;
	if (c->cut == c->p->sums.cuts.n || cut->loop != next) {
		block_loop(c, next, lo, hi);
		return;
	}
	c->sums = ls_local(s->e.f, "part", c->p->vector.dtype, (uint64_t)count_sums(c));
	sum_chunks(&s->code, cut->rounds * (next == c->p->k_block.k ? c->p->k_block.steps : 1), &lo,
		   &hi);
	clear_block(c);
	c->cut++;
	block_chunks(c, next, lo, hi);
	c->cut--;
	add_block(c, sums);
	ls_end(s->e.f);
	c->sums = sums;
}

static void block_loops(ContractCode *c, uint32_t next)
{
	block_chunks(c, next, int_of(c->s, 0),
		     eval_size(&c->s->e, c->p->nest->extent[c->p->axes.k[next]]));
}

static void add_up_blocks(ContractCode *c)
{
	c->sums = ls_local(c->s->e.f, "sums", c->p->vector.dtype, (uint64_t)count_sums(c));
	clear_block(c);
	block_loops(c, 0);
}

void contract_block(ContractCode *c)
{
	Cpu *s = c->s;
	const ChunkPlan *sums = &c->p->sums;
	if (c->p->b.gathered)
		c->local_b =
			ls_local(s->e.f, "panel", c->p->vector.dtype, (uint64_t)c->p->b.gathered);
	contract_fill_tables(c);
	if (c->p->axes.row->nfrag)
		contract_declare_frags(c);
	if (sums->many)
		c->many = eval_let(&s->e, "many",
				   lx_cmp(s->e.f, SC_gt, eval_size(&s->e, sums->terms),
					  int_of(s, sums->many)));
	if (c->p->k_block.used)
		add_up_blocks(c);
	all_tiles(c, c->p->k_block.used ? TILE_FINISH : TILE_WHOLE);
}
