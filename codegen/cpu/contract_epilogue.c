/* What is done with the sums of a tile: those of blocks are added up, and the epilogue stores. */
#include "codegen/cpu/contract.h"

static Lx int_of(Cpu *s, int64_t v)
{
	return lx_int(s->e.f, v);
}

/* ---- sums ---- */

Lx contract_sum_offset(const ContractCode *c, const ContractTile *t, uint32_t i, uint32_t j)
{
	return int_of(c->s, ((int64_t)i * t->how->nv + j) * c->s->e.lanes.n);
}

Lx contract_chains(Cpu *s, const ContractTile *t, uint32_t first, uint32_t n, uint32_t i,
		   uint32_t j)
{
	if (n == 1)
		return lx_var(s->e.f, t->acc[first][i][j]);
	return lx_add(s->e.f, contract_chains(s, t, first, n / 2, i, j),
		      contract_chains(s, t, first + n / 2, n / 2, i, j));
}

/* ---- blocks ---- */

static void go_to_column(ContractCode *c, const ContractTile *t, uint32_t j)
{
	Cpu *s = c->s;
	eval_at(&s->e, c->p->axes.n, lx_add(s->e.f, c->col, int_of(s, (int64_t)j * s->e.lanes.n)));
	eval_mask(&s->e, j + 1 == t->how->nv ? t->mask : (Lx){0});
}

/* Loads scale number i of vector j of the tile's columns, at the current block. */
static Lx load_scale(ContractCode *c, const ContractTile *t, uint32_t i, uint32_t j)
{
	Cpu *s = c->s;
	LoopFn *f = s->e.f;
	const uint32_t vectors = c->p->b.vectors, lanes = s->e.lanes.n;
	const PanelLoad *of = &c->p->sums.blocks.scale[i];
	const LMem m = eval_load_memory(&s->e, of->load);
	const Lx stride = eval_size(&s->e, of->panels.stride);
	Lx at = lx_add(f, t->scale[i], eval_index(&s->e, of->panels.offset));
	at = lx_add(f, at, lx_mul(f, stride, int_of(s, j / vectors)));
	at = lx_add(f, at, int_of(s, (int64_t)(j % vectors) * lanes));
	contract_fetch_next(c, t, &of->panels, m, at);
	const Lv v = ls_load(f, "scale", m, at, (LType){dtype_compute(m.dtype), lanes}, (Lx){0});
	return eval_convert(&s->e, lx_var(f, v), s->e.k->kx.data[of->load.i].dtype);
}

/* Says what the scales are for vector j of the tile's columns, at the current block. */
static void load_scales(ContractCode *c, const ContractTile *t, uint32_t j)
{
	const BlockSums *blocks = &c->p->sums.blocks;
	for (uint32_t i = 0; i < blocks->nscale; i++)
		eval_assume(&c->s->e, blocks->scale[i].load, load_scale(c, t, i, j));
}

/* Returns what was added of the blocks before, to vector j of row i. */
static Lx added_before(ContractCode *c, const ContractTile *t, uint32_t i, uint32_t j)
{
	LoopFn *f = c->s->e.f;
	if (c->p->sums.held)
		return lx_var(f, t->held[i][j]);
	return lx_var(f, ls_load(f, "sum", t->sum[t->ncut], contract_sum_offset(c, t, i, j),
				 c->p->sums.result, (Lx){0}));
}

/* Replaces that. */
static void set_added(ContractCode *c, const ContractTile *t, uint32_t i, uint32_t j, Lx sum)
{
	LoopFn *f = c->s->e.f;
	if (c->p->sums.held)
		ls_set(f, t->held[i][j], sum);
	else
		ls_store(f, t->sum[t->ncut], contract_sum_offset(c, t, i, j), sum, (Lx){0});
}

/* Adds the products of the accumulators and of a factor. */
static void end_decoded_block(ContractCode *c, const ContractTile *t)
{
	Cpu *s = c->s;
	for (uint32_t j = 0; j < t->how->nv; j++) {
		const Lx by = contract_factor(c, t, j);
		for (uint32_t i = 0; i < c->p->tile.mr; i++) {
			const Lx before = added_before(c, t, i, j),
				 sum = contract_chains(s, t, 0, t->how->ways, i, j);
			set_added(c, t, i, j, code_fma(&s->code, sum, by, before));
		}
	}
}

void contract_multiply_sums(ContractCode *c, ContractTile *t)
{
	Cpu *s = c->s;
	for (uint32_t j = 0; j < t->how->nv; j++) {
		const Lx by = contract_factor(c, t, j);
		for (uint32_t i = 0; i < c->p->tile.mr; i++)
			t->acc[0][i][j] = ls_let(
				s->e.f, "sum", lx_mul(s->e.f, lx_var(s->e.f, t->acc[0][i][j]), by));
	}
}

/* Returns `before` and what the stage of blocks makes of `sum`, of the row and the vector of
 * columns that have values. */
static Lx add_block_sum(ContractCode *c, Lx sum, Lx before)
{
	Cpu *s = c->s;
	const BlockSums *blocks = &c->p->sums.blocks;
	const Stage *st = &s->e.k->stage.data[blocks->stage];
	sum = eval_let(&s->e, "block", sum);
	eval_stage_value(&s->e, 0, sum);
	if (blocks->begun.i)
		eval_assume(&s->e, blocks->begun, sum);
	return code_accumulate(&s->code, st, before, st->value);
}

/* Scales of each vector of columns, at the current block. */
typedef struct {
	Lx of[MAX_FRAG_ROWS][MAX_SCALES];
} TileScales;

/* Adds the sums of a block that c->frags.tile has, of the row at that place of the tile. The row
 * axes have values. */
static void add_block_of_row(ContractCode *c, const ContractTile *t, const TileScales *scale,
			     Lx place)
{
	Cpu *s = c->s;
	LoopFn *f = s->e.f;
	const BlockSums *blocks = &c->p->sums.blocks;
	const int64_t lanes = s->e.lanes.n;
	const Lx from = lx_mul(f, place, int_of(s, t->how->nv * lanes));
	for (uint32_t j = 0; j < t->how->nv; j++) {
		const Lx at = lx_add(f, from, int_of(s, j * lanes));
		go_to_column(c, t, j);
		for (uint32_t k = 0; k < blocks->nscale; k++)
			eval_assume(&s->e, blocks->scale[k].load, scale->of[j][k]);
		const Lv sum = ls_load(f, "block", c->frags.tile, at, c->p->vector, (Lx){0});
		const Lv before =
			ls_load(f, "sum", t->sum[t->ncut], at, c->p->sums.result, (Lx){0});
		const Lx all = add_block_sum(c, lx_var(f, sum), lx_var(f, before));
		ls_store(f, t->sum[t->ncut], at, all, (Lx){0});
	}
}

/* Does as add_block_of_row for all rows of each fragment, which are neighbours in a run, also those
 * that are rows of another fragment. */
static void add_block_of_runs(ContractCode *c, const ContractTile *t, const TileScales *scale)
{
	Cpu *s = c->s;
	LoopFn *f = s->e.f;
	const int64_t rows = c->p->a.runs.rows, fragments = c->p->tile.mr / rows;
	Lx k = lx_var(f, ls_for(f, "fragment", int_of(s, 0), int_of(s, fragments), 1));
	const Lx start = contract_first_place(c, k),
		 place = eval_let(&s->e, "place", lx_mul(f, k, int_of(s, rows)));
	for (uint32_t i = 0; i < rows; i++) {
		contract_go_to_segment_row(c, lx_add(f, start, int_of(s, i)));
		add_block_of_row(c, t, scale, lx_add(f, place, int_of(s, i)));
	}
	ls_end(f);
}

/* Adds the sums of a block that c->frags.tile has. */
static void end_block_of_fragments(ContractCode *c, const ContractTile *t)
{
	Cpu *s = c->s;
	TileScales scale;
	for (uint32_t j = 0; j < t->how->nv; j++) {
		go_to_column(c, t, j);
		for (uint32_t i = 0; i < c->p->sums.blocks.nscale; i++)
			scale.of[j][i] = eval_let(&s->e, "scale", load_scale(c, t, i, j));
	}
	if (c->p->axes.nm > 1) { /* rows of several axes, one after the other */
		add_block_of_row(c, t, &scale, contract_open_rows(c));
		contract_close_rows(c);
		return;
	}
	add_block_of_runs(c, t, &scale);
	for (uint32_t i = 0; i < c->p->axes.nm; i++)
		eval_at(&s->e, c->p->axes.m[i], (Lx){0});
}

/* Gives the row axes the values that they have at row i of the tile. */
static void go_to_tile_row(ContractCode *c, const ContractTile *t, uint32_t i)
{
	if (c->p->axes.nm == 1)
		eval_at(&c->s->e, c->p->axes.m[0], t->row[i]);
	else
		contract_go_to_row(c, int_of(c->s, i));
}

static void leave_rows(ContractCode *c)
{
	for (uint32_t i = 0; i < c->p->axes.nm; i++)
		eval_at(&c->s->e, c->p->axes.m[i], (Lx){0});
}

void contract_begin_block(ContractCode *c, const ContractTile *t)
{
	Cpu *s = c->s;
	const Kx start = c->p->sums.blocks.start;
	for (uint32_t i = 0; i < c->p->tile.mr; i++) {
		Lx first = contract_zero(c);
		if (start.i) {
			go_to_tile_row(c, t, i);
			first = eval_vector(&s->e, start);
		}
		for (uint32_t j = 0; j < t->how->nv; j++)
			for (uint32_t w = 0; w < t->how->ways; w++)
				ls_set(s->e.f, t->acc[w][i][j], w ? contract_zero(c) : first);
	}
	if (start.i)
		leave_rows(c);
}

static void end_block_of_vectors(ContractCode *c, const ContractTile *t)
{
	for (uint32_t j = 0; j < t->how->nv; j++) {
		go_to_column(c, t, j);
		load_scales(c, t, j);
		for (uint32_t i = 0; i < c->p->tile.mr; i++) {
			go_to_tile_row(c, t, i);
			const Lx before = added_before(c, t, i, j),
				 sum = contract_chains(c->s, t, 0, t->how->ways, i, j);
			set_added(c, t, i, j, add_block_sum(c, contract_block_sum(c, sum), before));
		}
	}
	leave_rows(c);
}

void contract_end_block(ContractCode *c, const ContractTile *t)
{
	if (!c->p->sums.blocks.stage) {
		end_decoded_block(c, t);
		return;
	}
	(c->p->axes.row->nfrag ? end_block_of_fragments : end_block_of_vectors)(c, t);
	eval_mask(&c->s->e, (Lx){0});
	eval_at(&c->s->e, c->p->axes.n, (Lx){0});
}

/* ---- the epilogue ---- */

static uint64_t without_rows(const ContractCode *c)
{
	uint64_t known = 0;
	for (uint32_t a = 0; a < c->p->nest->n; a++)
		known |= UINT64_C(1) << a;
	for (uint32_t i = 0; i < c->p->axes.nm; i++)
		known &= ~(UINT64_C(1) << c->p->axes.m[i]);
	for (uint32_t i = 0; i < c->p->axes.nk; i++)
		known &= ~(UINT64_C(1) << c->p->axes.k[i]);
	return known;
}

/* Returns the stage of whose result the epilogue is computed. */
static uint32_t result_stage(const ContractCode *c)
{
	return c->p->sums.blocks.stage ? c->p->sums.blocks.stage
				       : kernel_first_contraction(c->s->e.k);
}

static void store_vector(ContractCode *c, Lx acc)
{
	cpu_store_sum(c->s, result_stage(c), acc);
}

static void start_column(ContractCode *c, const ContractTile *t, uint32_t j)
{
	go_to_column(c, t, j);
	cpu_hoist_stores(c->s, result_stage(c), without_rows(c));
}

void contract_inline_epilogue(ContractCode *c, const ContractTile *t)
{
	Cpu *s = c->s;
	for (uint32_t j = 0; j < t->how->nv; j++) {
		start_column(c, t, j);
		for (uint32_t i = 0; i < c->p->tile.mr; i++) {
			contract_go_to_row(c, int_of(s, i));
			store_vector(c, lx_var(s->e.f, t->acc[0][i][j]));
		}
		eval_mask(&s->e, (Lx){0});
	}
}

/* Writes the epilogue as a loop over the rows of `tile`, a copy of the tile, for each vector of
 * columns. */
static void epilogue_of_copy(ContractCode *c, const ContractTile *t, LMem tile)
{
	Cpu *s = c->s;
	const uint32_t width = t->how->nv * s->e.lanes.n;
	for (uint32_t j = 0; j < t->how->nv; j++) {
		start_column(c, t, j);
		Lx i = lx_var(s->e.f,
			      ls_for(s->e.f, "i", int_of(s, 0), int_of(s, c->p->tile.mr), 1));
		contract_go_to_row(c, i);
		Lx at = lx_add(s->e.f, lx_mul(s->e.f, i, int_of(s, width)),
			       int_of(s, (int64_t)j * s->e.lanes.n));
		store_vector(c, lx_var(s->e.f, ls_load(s->e.f, "acc", tile, at, c->p->sums.result,
						       (Lx){0})));
		ls_end(s->e.f);
		eval_mask(&s->e, (Lx){0});
	}
}

/* Writes the epilogue of the rows of a span from lo to hi, in groups of `together` rows, whose
 * vectors of all columns are computed in turn (ls_interleave). */
static void epilogue_of_rows(ContractCode *c, const ContractTile *t, const RowSpan *span, Lx lo,
			     Lx hi, uint32_t together)
{
	Cpu *s = c->s;
	LoopFn *f = s->e.f;
	const int64_t width = (int64_t)t->how->nv * s->e.lanes.n;
	const LMem sums = contract_has_blocks(c->p) ? t->sum[0] : c->frags.tile;
	uint32_t from[MAX_TOGETHER * MAX_FRAG_ROWS + 1], n = 0;
	Lx first = lx_var(f, ls_for(f, "row", lo, hi, together));
	for (uint32_t i = 0; i < together; i++) {
		Lx row = lx_add(f, first, int_of(s, i));
		from[n] = ls_place(f);
		if (c->p->a.runs.used)
			contract_go_to_segment_row(c, row);
		else
			contract_go_to_row(c, row);
		Lx at = eval_let(&s->e, "at",
				 lx_mul(f, lx_add(f, span->place, row), int_of(s, width)));
		for (uint32_t j = 0; j < t->how->nv; j++) {
			from[n] = j ? ls_place(f) : from[n];
			go_to_column(c, t, j);
			Lx place = lx_add(f, at, int_of(s, (int64_t)j * s->e.lanes.n));
			store_vector(c, lx_var(f, ls_load(f, "acc", sums, place, c->p->sums.result,
							  (Lx){0})));
			n++;
		}
	}
	from[n] = ls_place(f);
	if (together > 1)
		ls_interleave(f, from, n);
	ls_end(f);
}

void contract_finish_row(ContractCode *c, const TileCode *how, Lx place)
{
	Cpu *s = c->s;
	const ContractTile t = {.how = how};
	const int64_t lanes = s->e.lanes.n;
	Lx at = eval_let(&s->e, "at", lx_mul(s->e.f, place, int_of(s, how->nv * lanes)));
	for (uint32_t j = 0; j < how->nv; j++) {
		Lx from = lx_add(s->e.f, at, int_of(s, j * lanes));
		go_to_column(c, &t, j);
		store_vector(c, lx_var(s->e.f, ls_load(s->e.f, "acc", c->frags.tile, from,
						       c->p->vector, (Lx){0})));
	}
	eval_at(&s->e, c->p->axes.n, (Lx){0});
	eval_mask(&s->e, (Lx){0});
}

/* Writes a loop over rows, in each all columns. */
void contract_epilogue_of_fragments(ContractCode *c, const ContractTile *t)
{
	Cpu *s = c->s;
	const uint32_t together = t->how->together;
	for (uint32_t j = 0; j < t->how->nv; j++)
		start_column(c, t, j);
	RowSpan span = {int_of(s, 0), int_of(s, c->p->tile.mr), int_of(s, 0)};
	if (c->p->a.runs.used)
		span = contract_open_segment(c);
	Lx left = lx_mod(s->e.f, lx_sub(s->e.f, span.hi, span.lo), int_of(s, together));
	Lx whole = together > 1 ? eval_let(&s->e, "whole", lx_sub(s->e.f, span.hi, left)) : span.lo;
	if (together > 1)
		epilogue_of_rows(c, t, &span, span.lo, whole, together);
	epilogue_of_rows(c, t, &span, whole, span.hi, 1);
	if (c->p->a.runs.used)
		ls_end(s->e.f);
	for (uint32_t k = 0; k < c->p->axes.nm; k++)
		eval_at(&s->e, c->p->axes.m[k], (Lx){0});
	eval_mask(&s->e, (Lx){0});
}

/* Copies the tile to a local array and loops over it, so that the code of a long epilogue stays
 * small. */
void contract_looped_epilogue(ContractCode *c, const ContractTile *t)
{
	Cpu *s = c->s;
	uint32_t width = t->how->nv * s->e.lanes.n;
	LMem tile =
		ls_local(s->e.f, "tile", c->p->sums.result.dtype, (uint64_t)c->p->tile.mr * width);
	for (uint32_t i = 0; i < c->p->tile.mr; i++)
		for (uint32_t j = 0; j < t->how->nv; j++)
			ls_store(s->e.f, tile,
				 int_of(s, (int64_t)i * width + (int64_t)j * s->e.lanes.n),
				 lx_var(s->e.f, t->acc[0][i][j]), (Lx){0});
	epilogue_of_copy(c, t, tile);
}
