/* Tiled transposition in registers, for kernels that read along one axis and write along another: a
 * transposed copy, NCHW to NHWC, and what is computed on the way. Neither axis alone is worth
 * lanes, since what is contiguous along one is gathered or scattered along the other. So tiles of
 * as many rows as lanes are loaded as rows of the operand, transposed in registers, and computed
 * with and stored as rows of the result:
 *
 *     for a, b in blocks:   row[r] = x[b + r, a ..] lanes along a, the axis of the operand's rows
 *                           column[c] = lane c of each row log2(lanes) times interleaved out[a + c,
 *                           b ..] = f(column[c]) lanes along b, the vector axis
 *
 * Running results of rows, x -> cumsum(x), are read and written along one axis, and wait for the
 * element before. Tiles are transposed before and after: lanes are neighbouring rows.
 *
 * A few results that lie beside each other, of which each is read along another axis (an image's
 * channels), are vectors along that axis, interleaved.
 *
 * Tiles at the end repeat the last row, load what there is of each, and store as many columns as
 * there are, masked. */
#include "codegen/cpu/generic.h"

enum {
	BLOCK = 4 /* tiles beside each other, so that whole lines of small elements are used while
		     they are near */
};

/* Returns a vector of the first (part 1) or the second (part 2) elements of pairs at the point. */
static Lx load_part(Cpu *s, Kx load, uint32_t part)
{
	LMem mem = eval_load_memory(&s->e, load);
	LType type = {s->e.k->kx.data[load.i].dtype, s->e.lanes.n};
	Lx at = eval_let(&s->e, "at",
			 lx_add(s->e.f, eval_index(&s->e, s->e.nest->offset[load.i]),
				lx_int(s->e.f, part == 2 ? -1 : 0)));
	Lx a = lx_var(s->e.f, ls_load(s->e.f, "pairs", mem, at, type, (Lx){0}));
	at = lx_add(s->e.f, at, lx_int(s->e.f, s->e.lanes.n));
	Lx b = lx_var(s->e.f, ls_load(s->e.f, "pairs", mem, at, type, (Lx){0}));
	return lx_shuffle(s->e.f, part == 2 ? SHUFFLE_ODDS : SHUFFLE_EVENS, a, b);
}

/* Returns row r of the tile at the point, of load number i: a vector along t->across. */
static Lx row_of(Cpu *s, const Turned *t, uint32_t i, uint32_t r, bool whole)
{
	const Kx load = t->load[i];
	uint32_t along = s->e.lanes.axis;
	Lx here = s->e.at[along], outer_mask = s->e.lanes.mask,
	   row = lx_add(s->e.f, here, lx_int(s->e.f, r));
	if (!whole) {
		Lx last = lx_sub(s->e.f, cpu_limit(s, along), lx_int(s->e.f, 1));
		Lx left = lx_sub(s->e.f, cpu_limit(s, t->across), s->e.at[t->across]);
		row = lx_var(s->e.f, ls_let(s->e.f, "i", lx_min(s->e.f, row, last)));
		eval_mask(&s->e,
			  lx_var(s->e.f,
				 ls_let(s->e.f, "there",
					lx_mask(s->e.f,
						lx_min(s->e.f, left, lx_int(s->e.f, s->e.lanes.n)),
						s->e.lanes.n))));
	}
	eval_at(&s->e, along, row);
	eval_lanes(&s->e, t->across, s->e.lanes.n);
	Lx x = t->part[i] && whole ? load_part(s, load, t->part[i]) : eval_vector(&s->e, load);
	if (lx_type(s->e.f, x).dtype == DT_bool)
		x = lx_sc(s->e.f, SC_convert, (LType){DT_u8, s->e.lanes.n}, &x, 1);
	x = lx_var(s->e.f, ls_let(s->e.f, "row", x));
	eval_at(&s->e, along, here);
	eval_lanes(&s->e, along, s->e.lanes.n);
	eval_mask(&s->e, outer_mask);
	return x;
}

/* Shuffles n rows so that, end to end, they are the elements of the first column, of the second,
 * and so on. Each step interleaves the first half of all rows with the second. */
static void interleave(Cpu *s, Lx *row, uint32_t n)
{
	Lx *next = ARENA_ARRAY(s->e.arena, Lx, n);
	const uint32_t half = n / 2;
	for (uint32_t step = 1; step < n; step *= 2) {
		for (uint32_t i = 0; i < half; i++) {
			next[2 * i] = lx_shuffle(s->e.f, SHUFFLE_ZIP_LOW, row[i], row[i + half]);
			next[2 * i + 1] =
				lx_shuffle(s->e.f, SHUFFLE_ZIP_HIGH, row[i], row[i + half]);
		}
		for (uint32_t i = 0; i < n; i++)
			row[i] = lx_var(s->e.f, ls_let(s->e.f, "zip", next[i]));
	}
}

void transpose_lanes(Cpu *s, Lx *row)
{
	interleave(s, row, s->e.lanes.n);
}

static void assume_column(Cpu *s, const Turned *t, uint32_t i, Lx x)
{
	if (s->e.k->kx.data[t->load[i].i].dtype == DT_bool)
		x = lx_cmp(s->e.f, SC_ne, x, lx_int_of(s->e.f, lx_type(s->e.f, x), 0));
	eval_assume(&s->e, t->load[i], x);
}

static void store_column(Cpu *s, const Turned *t, const Lx *value)
{
	for (uint32_t i = 0; i < t->n; i++)
		assume_column(s, t, i, value[i]);
	for (uint32_t i = 0; i < s->e.k->stage.n; i++)
		cpu_store(s, i, eval_value(&s->e, s->e.k->stage.data[i].value));
}

static void columns_in_registers(Cpu *s, const Turned *t, const Lx *column)
{
	Lx here = s->e.at[t->across];
	for (uint32_t c = 0; c < s->e.lanes.n; c++) {
		eval_at(&s->e, t->across, lx_add(s->e.f, here, lx_int(s->e.f, c)));
		store_column(s, t, &column[c]);
	}
	eval_at(&s->e, t->across, here);
}

/* Writes the loop over a tile's columns, which it loads from memory: code of more than a few
 * instructions is written once then. */
static void columns_in_memory(Cpu *s, const Turned *t, const LMem *tile, bool whole)
{
	Lx here = s->e.at[t->across], lanes = lx_int(s->e.f, s->e.lanes.n),
	   outer_mask = s->e.lanes.mask;
	Lx *value = ARENA_ARRAY(s->e.arena, Lx, t->n), n = lanes;
	if (!whole) {
		Lx left = lx_sub(s->e.f, cpu_limit(s, s->e.lanes.axis), s->e.at[s->e.lanes.axis]);
		n = lx_min(s->e.f, lx_sub(s->e.f, cpu_limit(s, t->across), here), lanes);
		eval_mask(&s->e, lx_var(s->e.f, ls_let(s->e.f, "there",
						       lx_mask(s->e.f, lx_min(s->e.f, left, lanes),
							       s->e.lanes.n))));
	}
	Lx c = lx_var(s->e.f, ls_for(s->e.f, "c", lx_int(s->e.f, 0), n, 1));
	eval_at(&s->e, t->across, lx_add(s->e.f, here, c));
	for (uint32_t i = 0; i < t->n; i++)
		value[i] =
			lx_var(s->e.f, ls_load(s->e.f, "column", tile[i], lx_mul(s->e.f, c, lanes),
					       (LType){tile[i].dtype, s->e.lanes.n}, (Lx){0}));
	store_column(s, t, value);
	ls_end(s->e.f);
	eval_at(&s->e, t->across, here);
	eval_mask(&s->e, outer_mask);
}

static void transpose_tile(Cpu *s, const Turned *t, const LMem *tile, bool whole)
{
	Lx *row = ARENA_ARRAY(s->e.arena, Lx, s->e.lanes.n);
	for (uint32_t i = 0; i < t->n; i++) {
		for (uint32_t r = 0; r < s->e.lanes.n; r++)
			row[r] = row_of(s, t, i, r, whole);
		transpose_lanes(s, row);
		for (uint32_t c = 0; (!t->simple || !whole) && c < s->e.lanes.n; c++)
			ls_store(s->e.f, tile[i], lx_int(s->e.f, (int64_t)c * s->e.lanes.n), row[c],
				 (Lx){0});
	}
	if (t->simple && whole)
		columns_in_registers(s, t, row);
	else
		columns_in_memory(s, t, tile, whole);
}

static Lx is_whole(Cpu *s, uint32_t axis)
{
	return lx_cmp(s->e.f, SC_le, lx_add(s->e.f, s->e.at[axis], lx_int(s->e.f, s->e.lanes.n)),
		      cpu_limit(s, axis));
}

static void tile_at(Cpu *s, const Turned *t, const LMem *tile)
{
	bool a = sym_divides(s->e.syms, s->e.lanes.n, s->e.nest->extent[t->across]),
	     b = sym_divides(s->e.syms, s->e.lanes.n, s->e.nest->extent[s->e.lanes.axis]);
	if (a && b) {
		transpose_tile(s, t, tile, true);
		return;
	}
	Lx yes = lx_int_of(s->e.f, (LType){DT_bool, 1}, 1);
	Lx lanes = b ? yes : is_whole(s, s->e.lanes.axis),
	   across = a ? yes : is_whole(s, t->across);
	ls_if(s->e.f, lx_and(s->e.f, across, lanes));
	transpose_tile(s, t, tile, true);
	ls_else(s->e.f);
	transpose_tile(s, t, tile, false);
	ls_end(s->e.f);
}

void transpose_tiles(Cpu *s, const Turned *t)
{
	uint32_t a = t->across, b = s->e.lanes.axis;
	int64_t lanes = s->e.lanes.n;
	LMem *tile = ARENA_ARRAY(s->e.arena, LMem, t->n);
	for (uint32_t i = 0; i < t->n; i++) {
		DType d = s->e.k->kx.data[t->load[i].i].dtype;
		tile[i] = ls_local(s->e.f, "tile", d == DT_bool ? DT_u8 : d,
				   (uint64_t)(lanes * lanes));
	}
	eval_for(&s->e, a, cpu_start(s, a), cpu_limit(s, a), BLOCK * lanes);
	Lx begin = s->e.at[a];
	Lx end = eval_let(&s->e, "end",
			  lx_min(s->e.f, lx_add(s->e.f, begin, lx_int(s->e.f, BLOCK * lanes)),
				 cpu_limit(s, a)));
	eval_for(&s->e, b, cpu_start(s, b), cpu_limit(s, b), lanes);
	eval_for(&s->e, a, begin, end, lanes);
	tile_at(s, t, tile);
	eval_end(&s->e);
	eval_end(&s->e);
	eval_end(&s->e);
}

/* ---- neighbours ---- */

/* Stores the results of the neighbours at the point's lanes, interleaved, or one by one if lanes
 * are masked. */
static void interleave_point(Cpu *s, void *data)
{
	const Turned *t = data;
	const uint32_t axis = s->e.lanes.axis, lanes = s->e.lanes.n;
	const Stage *st = &s->e.k->stage.data[0];
	const bool whole = !s->e.lanes.mask.i;
	LMem mem = eval_memory(&s->e, st->store.buf);
	Lx row[MOST_NEIGHBOURS];
	for (uint32_t c = 0; c < t->neighbours; c++) {
		eval_at(&s->e, t->across, lx_int(s->e.f, c));
		if (whole)
			row[c] = lx_var(
				s->e.f,
				ls_let(s->e.f, "row",
				       eval_splat(&s->e,
						  eval_convert(&s->e, eval_value(&s->e, st->value),
							       dtype_compute(mem.dtype)))));
		else
			cpu_store(s, 0, eval_value(&s->e, st->value));
	}
	eval_at(&s->e, t->across, lx_int(s->e.f, 0));
	if (whole) {
		interleave(s, row, t->neighbours);
		eval_lanes(&s->e, NO_AXIS, 1);
		Lx at = eval_let(&s->e, "at", eval_address(&s->e, 0).offset);
		eval_lanes(&s->e, axis, lanes);
		for (uint32_t c = 0; c < t->neighbours; c++)
			ls_store(s->e.f, mem,
				 lx_add(s->e.f, at, lx_int(s->e.f, (int64_t)c * lanes)), row[c],
				 (Lx){0});
	}
	eval_at(&s->e, t->across, (Lx){0});
}

void transpose_interleave(Cpu *s, const Turned *t)
{
	const uint32_t axis = s->e.lanes.axis;
	const bool whole = sym_divides(s->e.syms, s->e.lanes.n, s->e.nest->extent[axis]);
	Turned copy = *t;
	cpu_vector_loop(s, axis, cpu_start(s, axis), cpu_limit(s, axis), whole, interleave_point,
			&copy);
}

/* ---- running rows ---- */

/* Computes the running results of the columns of a tile, in order. Sets result[c] to that at column
 * c. */
static void run_columns(StageRun *r, Lx *const *column, Lx *result)
{
	Cpu *s = r->g->s;
	const Turned *t = &r->g->p->running;
	const Stage *st = &s->e.k->stage.data[r->stage];
	const uint32_t lanes = s->e.lanes.n;
	Lx base = s->e.at[t->across];
	for (uint32_t k = 0; k < lanes; k++) {
		const uint32_t c = st->running.reverse ? lanes - 1 - k : k;
		eval_at(&s->e, t->across, lx_add(s->e.f, base, lx_int(s->e.f, c)));
		for (uint32_t i = 0; i < t->n; i++)
			assume_column(s, t, i, column[i][c]);
		ls_set(s->e.f, r->acc,
		       code_accumulate(&s->code, st, lx_var(s->e.f, r->acc), st->value));
		result[c] = lx_var(s->e.f, ls_let(s->e.f, "r",
						  eval_convert(&s->e, lx_var(s->e.f, r->acc),
							       dtype_compute(st->dtype))));
	}
	eval_at(&s->e, t->across, base);
}

static void store_rows(StageRun *r, const Lx *row)
{
	Cpu *s = r->g->s;
	const uint32_t along = s->e.lanes.axis, across = r->g->p->running.across,
		       lanes = s->e.lanes.n;
	Lx here = s->e.at[along];
	eval_lanes(&s->e, across, lanes);
	for (uint32_t i = 0; i < lanes; i++) {
		eval_at(&s->e, along, lx_add(s->e.f, here, lx_int(s->e.f, i)));
		cpu_store(s, r->stage, row[i]);
	}
	eval_lanes(&s->e, along, lanes);
	eval_at(&s->e, along, here);
}

Lx transpose_running_rows(StageRun *r, Lx lo, Lx hi)
{
	Cpu *s = r->g->s;
	const Turned *t = &r->g->p->running;
	const uint32_t lanes = s->e.lanes.n;
	Lx **column = ARENA_ARRAY(s->e.arena, Lx *, t->n),
	   *result = ARENA_ARRAY(s->e.arena, Lx, lanes);
	Lx rest = lx_mod(s->e.f, lx_sub(s->e.f, hi, lo), lx_int(s->e.f, lanes));
	Lx end = eval_let(&s->e, "tiles", lx_sub(s->e.f, hi, rest));
	eval_for(&s->e, t->across, lo, end, lanes);
	if (s->e.k->stage.data[r->stage].running.reverse) {
		Lx last = lx_sub(s->e.f, hi, lx_int(s->e.f, lanes));
		eval_at(&s->e, t->across, lx_sub(s->e.f, last, s->e.at[t->across]));
	}
	for (uint32_t i = 0; i < t->n; i++) {
		column[i] = ARENA_ARRAY(s->e.arena, Lx, lanes);
		for (uint32_t k = 0; k < lanes; k++)
			column[i][k] = row_of(s, t, i, k, true);
		transpose_lanes(s, column[i]);
	}
	run_columns(r, column, result);
	transpose_lanes(s, result);
	store_rows(r, result);
	eval_end(&s->e);
	eval_at(&s->e, t->across, (Lx){0});
	return end;
}
