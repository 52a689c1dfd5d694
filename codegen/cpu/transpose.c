/* Kernels that read along one axis and write along another: a transposed copy, NCHW to NHWC, and what is computed on the
 * way. Neither axis alone is worth lanes, since what is contiguous along one is gathered or scattered along the other. So
 * tiles of as many rows as lanes are loaded as rows of the operand, transposed in registers, and computed with and stored
 * as rows of the result:
 *
 *     for a, b in blocks:   row[r] = x[b + r, a ..]         lanes along a, the axis of the operand's rows
 *                           column[c] = lane c of each row   log2(lanes) times interleaved
 *                           out[a + c, b ..] = f(column[c])  lanes along b, the vector axis
 *
 * Tiles at the end repeat the last row, load what there is of each, and store as many columns as there are, masked. */
#include "codegen/cpu/generic.h"

#include <string.h>

enum {
	BLOCK = 4,      /* tiles beside each other, so that whole lines of small elements are used while they are near */
	FEW_STAGES = 2, /* what is repeated for every column: that many results of that many operations */
	FEW_OPS = 4
};

/* ---- which kernels ---- */

/* What is computed from, by Kx. */
static const bool *find_live(const Sched *s)
{
	const Kernel *k = s->k;
	bool *live = ARENA_ARRAY(s->arena, bool, k->kx.n);
	for (uint32_t i = 0; i < k->stage.n; i++)
		live[k->stage.data[i].value.i] = true;
	for (uint32_t i = 0; i < k->vvar.n; i++)
		live[k->vvar.data[i].value.i] = true;
	for (uint32_t i = k->kx.n; i-- > 1;) {
		const KxData *x = &k->kx.data[i];
		for (uint32_t j = 0; live[i] && j < x->nin; j++)
			live[x->in[j].i] = true;
		if (live[i])
			live[x->guard.i] = live[x->other.i] = true;
	}
	return live;
}

static bool is_turned(const Sched *s, uint32_t load, uint32_t along, uint32_t across)
{
	Sym offset = s->offset[load];
	return offset.i && s->deps[load] >> across & 1 && sched_axes(s, offset) >> across & 1 &&
	       sched_coef_is(s, offset, along, 1) && !sched_coef_is(s, offset, across, 1);
}

static bool stores_along(const Sched *s, uint32_t axis)
{
	for (uint32_t i = 0; i < s->k->stage.n; i++)
		if (!sched_coef_is(s, s->store[i], axis, 1))
			return false;
	return true;
}

/* One value of an outer point each, which is stored. */
static bool is_map(const Sched *s)
{
	for (uint32_t i = 0; i < s->k->stage.n; i++) {
		const Stage *st = &s->k->stage.data[i];
		if (st->kind != STAGE_MAP || st->result != RESULT_GLOBAL || st->nmap)
			return false;
	}
	return s->k->stage.n > 0;
}

static uint32_t count_turned(const Sched *s, const bool *live, uint32_t along, uint32_t across)
{
	uint32_t n = 0;
	for (uint32_t i = 1; i < s->k->kx.n; i++)
		n += live[i] && s->k->kx.data[i].kind == KX_LOAD && is_turned(s, i, along, across);
	return n;
}

static uint32_t tile_lanes(const Sched *s, const Turned *t)
{
	uint32_t size = 1, lanes = target_width(s->target);
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t bytes = dtype_size(s->k->kx.data[t->load[i].i].dtype);
		size = bytes > size ? bytes : size;
	}
	return size > 4 && lanes > 4 ? lanes / 2 : lanes;
}

/* How much of the tiles along an axis is used, and how many of them are whole. */
typedef struct {
	double used, whole;
} Filled;

static Filled filled(const Sched *s, uint32_t axis, uint32_t lanes)
{
	int64_t n = axes_hint(s, axis), whole = n / lanes;
	double tiles = (double)(whole + (n % lanes != 0));
	return n > 0 ? (Filled){(double)n / (tiles * lanes), (double)whole / tiles} : (Filled){0, 0};
}

/* A tile takes less time than a load and a store of each element that it has. One at the end passes through memory, and
 * each of its rows has a mask and a bound. */
static bool is_worth(const Sched *s, const Turned *t, uint32_t along, uint32_t lanes)
{
	const Machine *m = &s->target->machine;
	uint32_t steps = 0;
	Filled a = filled(s, t->across, lanes), b = filled(s, along, lanes);
	double tiles = 0, ones = 0;
	while (1u << steps < lanes)
		steps++;
	for (uint32_t i = 0; i < t->n; i++) {
		DType d = s->k->kx.data[t->load[i].i].dtype;
		double shuffle = machine_cycles(m, MOP_shuffle, d, lanes);
		double move = machine_cycles(m, MOP_load, d, lanes) + machine_cycles(m, MOP_store, d, lanes);
		double one = machine_cycles(m, MOP_load, d, 1) + machine_cycles(m, MOP_store, d, 1);
		double end = move + 4 * machine_cycles(m, MOP_scalar, DT_i64, 1);
		tiles += lanes * (move + steps * shuffle + (1 - a.whole * b.whole) * end);
		ones += a.used * b.used * lanes * lanes * one;
	}
	return tiles < ones;
}

static uint32_t find_axes(const Sched *s, const bool *live, uint32_t *along, uint32_t *across)
{
	uint32_t most = 0;
	for (uint32_t b = 0; b < s->naxis; b++)
		for (uint32_t a = 0; s->var[b].i && s->outer >> b & 1 && stores_along(s, b) && a < s->naxis; a++) {
			bool usable = a != b && s->var[a].i && s->outer >> a & 1;
			uint32_t n = usable ? count_turned(s, live, a, b) : 0;
			if (n <= most)
				continue;
			most = n;
			*along = b;
			*across = a;
		}
	return most;
}

static bool is_simple(const Sched *s, const Turned *t, const bool *live)
{
	uint32_t ops = 0;
	for (uint32_t i = 1; i < s->k->kx.n; i++)
		ops += live[i] && s->k->kx.data[i].kind != KX_LOAD && s->k->kx.data[i].kind != KX_CONST;
	return t->n == 1 && s->k->stage.n <= FEW_STAGES && ops <= FEW_OPS;
}

Refusal transpose_find(Sched *s, Turned *t, uint32_t *along, uint32_t *lanes)
{
	*t = (Turned){.across = NO_AXIS};
	if (target_width(s->target) == 1 || !is_map(s))
		return taken();
	const bool *live = find_live(s);
	uint32_t n = find_axes(s, live, along, &t->across);
	if (!n)
		return taken();
	Kx *load = ARENA_ARRAY(s->arena, Kx, n);
	for (uint32_t i = 1; i < s->k->kx.n; i++)
		if (live[i] && s->k->kx.data[i].kind == KX_LOAD && is_turned(s, i, t->across, *along))
			load[t->n++].i = i;
	t->load = load;
	t->simple = is_simple(s, t, live);
	*lanes = tile_lanes(s, t);
	if (is_worth(s, t, *along, *lanes))
		return taken();
	const char *why = arena_printf(s->arena, "tiles of %u by %u would be mostly empty", *lanes, *lanes);
	*t = (Turned){.across = NO_AXIS};
	return refuse_near(why);
}

/* ---- tiles ---- */

/* The operand's elements at the point's row `r` of the tile. */
static Lx row_of(Sched *s, const Turned *t, Kx load, uint32_t r, bool whole)
{
	uint32_t along = s->vaxis;
	Lx here = s->at[along], outer_mask = s->mask, row = lx_add(s->f, here, lx_int(s->f, r));
	if (!whole) {
		Lx last = lx_sub(s->f, sched_limit(s, along), lx_int(s->f, 1));
		Lx left = lx_sub(s->f, sched_limit(s, t->across), s->at[t->across]);
		row = lx_var(s->f, ls_let(s->f, "i", lx_min(s->f, row, last)));
		sched_mask(s, lx_var(s->f, ls_let(s->f, "there", lx_mask(s->f, lx_min(s->f, left, lx_int(s->f, s->lanes)), s->lanes))));
	}
	sched_at(s, along, row);
	sched_lanes(s, t->across, s->lanes);
	Lx x = sched_vector(s, load);
	if (lx_type(s->f, x).dtype == DT_bool)
		x = lx_sc(s->f, SC_convert, (LType){DT_u8, s->lanes}, &x, 1);
	x = lx_var(s->f, ls_let(s->f, "row", x));
	sched_at(s, along, here);
	sched_lanes(s, along, s->lanes);
	sched_mask(s, outer_mask);
	return x;
}

/* Each step interleaves the first half of all rows with the second. */
void transpose_lanes(Sched *s, Lx *row)
{
	Lx *next = ARENA_ARRAY(s->arena, Lx, s->lanes);
	uint32_t half = s->lanes / 2;
	for (uint32_t step = 1; step < s->lanes; step *= 2) {
		for (uint32_t i = 0; i < half; i++) {
			next[2 * i] = lx_shuffle(s->f, SHUFFLE_ZIP_LOW, row[i], row[i + half]);
			next[2 * i + 1] = lx_shuffle(s->f, SHUFFLE_ZIP_HIGH, row[i], row[i + half]);
		}
		for (uint32_t i = 0; i < s->lanes; i++)
			row[i] = lx_var(s->f, ls_let(s->f, "zip", next[i]));
	}
}

static void store_column(Sched *s, const Turned *t, const Lx *value)
{
	for (uint32_t i = 0; i < t->n; i++) {
		Lx x = value[i];
		if (s->k->kx.data[t->load[i].i].dtype == DT_bool)
			x = lx_cmp(s->f, SC_ne, x, lx_int_of(s->f, lx_type(s->f, x), 0));
		sched_assume(s, t->load[i], x);
	}
	for (uint32_t i = 0; i < s->k->stage.n; i++)
		sched_store(s, i, sched_value(s, s->k->stage.data[i].value));
}

static void columns_in_registers(Sched *s, const Turned *t, const Lx *column)
{
	Lx here = s->at[t->across];
	for (uint32_t c = 0; c < s->lanes; c++) {
		sched_at(s, t->across, lx_add(s->f, here, lx_int(s->f, c)));
		store_column(s, t, &column[c]);
	}
	sched_at(s, t->across, here);
}

/* What is more than a few instructions is written once, and as many columns as there are go through it. */
static void columns_in_memory(Sched *s, const Turned *t, const LMem *tile, bool whole)
{
	Lx here = s->at[t->across], lanes = lx_int(s->f, s->lanes), outer_mask = s->mask;
	Lx *value = ARENA_ARRAY(s->arena, Lx, t->n), n = lanes;
	if (!whole) {
		Lx left = lx_sub(s->f, sched_limit(s, s->vaxis), s->at[s->vaxis]);
		n = lx_min(s->f, lx_sub(s->f, sched_limit(s, t->across), here), lanes);
		sched_mask(s, lx_var(s->f, ls_let(s->f, "there", lx_mask(s->f, lx_min(s->f, left, lanes), s->lanes))));
	}
	Lx c = lx_var(s->f, ls_for(s->f, "c", lx_int(s->f, 0), n, 1));
	sched_at(s, t->across, lx_add(s->f, here, c));
	for (uint32_t i = 0; i < t->n; i++)
		value[i] = lx_var(s->f, ls_load(s->f, "column", tile[i], lx_mul(s->f, c, lanes), (LType){tile[i].dtype, s->lanes}, (Lx){0}));
	store_column(s, t, value);
	ls_end(s->f);
	sched_at(s, t->across, here);
	sched_mask(s, outer_mask);
}

static void transpose_tile(Sched *s, const Turned *t, const LMem *tile, bool whole)
{
	Lx *row = ARENA_ARRAY(s->arena, Lx, s->lanes);
	for (uint32_t i = 0; i < t->n; i++) {
		for (uint32_t r = 0; r < s->lanes; r++)
			row[r] = row_of(s, t, t->load[i], r, whole);
		transpose_lanes(s, row);
		for (uint32_t c = 0; (!t->simple || !whole) && c < s->lanes; c++)
			ls_store(s->f, tile[i], lx_int(s->f, (int64_t)c * s->lanes), row[c], (Lx){0});
	}
	if (t->simple && whole)
		columns_in_registers(s, t, row);
	else
		columns_in_memory(s, t, tile, whole);
}

static Lx is_whole(Sched *s, uint32_t axis)
{
	return lx_cmp(s->f, SC_le, lx_add(s->f, s->at[axis], lx_int(s->f, s->lanes)), sched_limit(s, axis));
}

static void tile_at(Sched *s, const Turned *t, const LMem *tile)
{
	bool a = sym_divides(s->syms, s->lanes, s->extent[t->across]), b = sym_divides(s->syms, s->lanes, s->extent[s->vaxis]);
	if (a && b) {
		transpose_tile(s, t, tile, true);
		return;
	}
	Lx yes = lx_int_of(s->f, (LType){DT_bool, 1}, 1);
	ls_if(s->f, lx_and(s->f, a ? yes : is_whole(s, t->across), b ? yes : is_whole(s, s->vaxis)));
	transpose_tile(s, t, tile, true);
	ls_else(s->f);
	transpose_tile(s, t, tile, false);
	ls_end(s->f);
}

void transpose_tiles(Sched *s, const Turned *t)
{
	uint32_t a = t->across, b = s->vaxis;
	int64_t lanes = s->lanes;
	LMem *tile = ARENA_ARRAY(s->arena, LMem, t->n);
	for (uint32_t i = 0; i < t->n; i++) {
		DType d = s->k->kx.data[t->load[i].i].dtype;
		tile[i] = ls_local(s->f, "tile", d == DT_bool ? DT_u8 : d, (uint64_t)(lanes * lanes));
	}
	sched_for(s, a, sched_start(s, a), sched_limit(s, a), BLOCK * lanes);
	Lx begin = s->at[a];
	Lx end = sched_let(s, "end", lx_min(s->f, lx_add(s->f, begin, lx_int(s->f, BLOCK * lanes)), sched_limit(s, a)));
	sched_for(s, b, sched_start(s, b), sched_limit(s, b), lanes);
	sched_for(s, a, begin, end, lanes);
	tile_at(s, t, tile);
	sched_end(s);
	sched_end(s);
	sched_end(s);
}
