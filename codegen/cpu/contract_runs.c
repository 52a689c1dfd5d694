/* Rows of a contraction whose fragments are loaded from a in place (Runs): which places of a the
 * fragments of a block are, and which rows of the result.
 *
 *     run:        the places of lines of an image, w of them in a line, of which n are rows
 *     fragments:  places [0, 16), [16, 32), ..., the last one [length - 16, length)
 *     segments:   of each fragment, the rows of one line, but those of the fragment before
 *
 * The tables are filled once for each block, for all its tiles of columns. */
#include "codegen/cpu/contract.h"

static Lx int_of(const ContractCode *c, int64_t v)
{
	return lx_int(c->s->e.f, v);
}

static Lx load(const ContractCode *c, LMem table, Lx at)
{
	return lx_var(c->s->e.f, ls_load(c->s->e.f, "i", table, at, (LType){DT_i64, 1}, (Lx){0}));
}

static void store(const ContractCode *c, LMem table, Lx at, Lx value)
{
	ls_store(c->s->e.f, table, at, value, (Lx){0});
}

/* Returns the number of fragments in a tile. */
static int64_t per_tile(const ContractCode *c)
{
	return c->p->tile.mr / c->p->a.runs.rows;
}

static bool has_lines(const ContractCode *c)
{
	return c->p->axes.nm > c->p->a.runs.first + 1;
}

/* Returns the number of places in a line: of the last row axis, or, without lines, of the run. */
static Lx line_of(const ContractCode *c)
{
	const Runs *r = &c->p->a.runs;
	return eval_size(&c->s->e, has_lines(c) ? r->wide[c->p->axes.nm - 1] : r->length);
}

/* Returns the most segments that a fragment may have, whose places may begin anywhere in a line. */
static int64_t most_segments(const ContractCode *c)
{
	const Runs *r = &c->p->a.runs;
	int64_t least, most;
	if (!has_lines(c))
		return 1;
	sym_range(c->s->e.syms, r->wide[c->p->axes.nm - 1], &least, &most);
	least = least < 1 ? 1 : least;
	return (r->rows - 1 + least - 1) / least + 1;
}

static void declare(ContractCode *c)
{
	LoopFn *f = c->s->e.f;
	const uint64_t fragments = (uint64_t)(c->p->block.rows / c->p->a.runs.rows),
		       segments = fragments * (uint64_t)most_segments(c);
	c->frags.runs.base = ls_local(f, "base", DT_i64, fragments);
	if (contract_has_blocks(c->p))
		c->frags.runs.start = ls_local(f, "start", DT_i64, fragments);
	c->frags.runs.first = ls_local(f, "first", DT_i64, fragments + 1);
	c->frags.runs.lo = ls_local(f, "segment_lo", DT_i64, segments);
	c->frags.runs.hi = ls_local(f, "segment_hi", DT_i64, segments);
	c->frags.runs.place = ls_local(f, "segment_place", DT_i64, segments);
	for (uint32_t i = 0; i + 1 < c->p->axes.nm; i++)
		c->frags.runs.axis[i] = ls_local(f, "segment_axis", DT_i64, segments);
}

/* Sets the row axes to the first row of the run with that number, and value[] to the values of the
 * axes outside of runs. */
static void go_to_run(ContractCode *c, Lx run, Lx *value)
{
	Cpu *s = c->s;
	const ContractAxes *x = &c->p->axes;
	for (uint32_t i = c->p->a.runs.first; i-- > 0;) {
		Lx n = eval_size(&s->e, s->e.nest->extent[x->m[i]]);
		value[i] = i ? eval_let(&s->e, "i", lx_mod(s->e.f, run, n)) : run;
		run = i ? eval_let(&s->e, "rest", lx_div(s->e.f, run, n)) : run;
		eval_at(&s->e, x->m[i], value[i]);
	}
	for (uint32_t i = c->p->a.runs.first; i < x->nm; i++)
		eval_at(&s->e, x->m[i], int_of(c, 0));
}

/* Adds the segment of the rows that lie in the line of place v of the run, up to place `end`, if
 * there are such rows. Moves v to the next line. at: a place plus `at` is the row's place in its
 * tile. */
static void add_segment(ContractCode *c, Lv v, Lx end, Lx at, Lx *value, Lv nsegment)
{
	Cpu *s = c->s;
	LoopFn *f = s->e.f;
	const ContractAxes *x = &c->p->axes;
	const uint32_t first = c->p->a.runs.first, last = x->nm ? x->nm - 1 : 0;
	Lx here = eval_let(&s->e, "place", lx_var(f, v)), line = line_of(c), rest = here,
	   column = here, there = {0};
	if (has_lines(c)) {
		column = eval_let(&s->e, "column", lx_mod(f, here, line));
		rest = eval_let(&s->e, "line", lx_div(f, here, line));
	}
	for (uint32_t i = last; i-- > first;) {
		value[i] = rest;
		if (i == first)
			break;
		Lx wide = eval_size(&s->e, c->p->a.runs.wide[i]);
		value[i] = eval_let(&s->e, "i", lx_mod(f, rest, wide));
		rest = eval_let(&s->e, "rest", lx_div(f, rest, wide));
		Lx row = lx_cmp(f, SC_lt, value[i], eval_size(&s->e, s->e.nest->extent[x->m[i]]));
		there = there.i ? lx_and(f, there, row) : row;
	}
	Lx rows = x->nm ? eval_size(&s->e, s->e.nest->extent[x->m[last]]) : int_of(c, 1);
	Lx stop = eval_let(&s->e, "stop", lx_min(f, lx_add(f, column, lx_sub(f, end, here)), rows));
	Lx some = lx_cmp(f, SC_lt, column, stop), n = lx_var(f, nsegment);
	ls_if(f, there.i ? lx_and(f, there, some) : some);
	store(c, c->frags.runs.lo, n, column);
	store(c, c->frags.runs.hi, n, stop);
	store(c, c->frags.runs.place, n, lx_sub(f, lx_add(f, at, here), column));
	for (uint32_t i = 0; i < last; i++)
		store(c, c->frags.runs.axis[i], n, value[i]);
	ls_set(f, nsegment, lx_add(f, n, int_of(c, 1)));
	ls_end(f);
	ls_set(f, v, lx_add(f, here, lx_sub(f, line, column)));
}

/* Adds fragment k of the block, and its segments, to the tables. It is number k + first of all
 * fragments; past the end it is the last fragment, without rows. */
static void add_fragment(ContractCode *c, Lx k, Lx first, Lv nsegment)
{
	Cpu *s = c->s;
	LoopFn *f = s->e.f;
	const Runs *r = &c->p->a.runs;
	Lx value[MAX_AXES];
	Lx all = eval_size(&s->e, sym_divi(s->e.syms, c->p->rows, r->rows)),
	   rows = int_of(c, r->rows);
	Lx wanted = eval_let(&s->e, "fragment", lx_add(f, first, k));
	Lx number = eval_let(&s->e, "number", lx_min(f, wanted, lx_sub(f, all, int_of(c, 1))));
	Lx in_run = eval_size(&s->e, r->fragments), length = eval_size(&s->e, r->length);
	go_to_run(c, r->first ? eval_let(&s->e, "run", lx_div(f, number, in_run)) : int_of(c, 0),
		  value);
	Lx at = r->first ? lx_mod(f, number, in_run) : number;
	at = eval_let(&s->e, "at", lx_mul(f, at, rows));
	Lx start = eval_let(&s->e, "start", lx_min(f, at, lx_sub(f, length, rows)));
	Lx in_rows = lx_mul(f, start, eval_size(&s->e, r->distance));
	Lx base = lx_add(f, eval_index(&s->e, contract_row_offset(c, c->p->a.load)), in_rows);
	store(c, c->frags.runs.base, k, base);
	if (contract_has_blocks(c->p))
		store(c, c->frags.runs.start, k, start);
	store(c, c->frags.runs.first, k, lx_var(f, nsegment));
	for (uint32_t i = 0; i < c->p->axes.nm; i++)
		eval_at(&s->e, c->p->axes.m[i], (Lx){0});
	Lx end = lx_min(f, lx_add(f, at, rows), length);
	end = eval_let(&s->e, "end", lx_select(f, lx_cmp(f, SC_eq, number, wanted), end, at));
	Lx tile = lx_mul(f, lx_mod(f, k, int_of(c, per_tile(c))), rows),
	   offset = eval_let(&s->e, "offset", lx_sub(f, tile, start));
	Lv v = ls_var(f, "v", at);
	ls_while(f, lx_cmp(f, SC_lt, lx_var(f, v), end));
	add_segment(c, v, end, offset, value, nsegment);
	ls_end(f);
}

void contract_fill_runs(ContractCode *c)
{
	LoopFn *f = c->s->e.f;
	const int64_t rows = c->p->a.runs.rows, fragments = c->p->block.rows / rows;
	declare(c);
	Lx first = eval_let(&c->s->e, "first", lx_div(f, c->rows.lo, int_of(c, rows)));
	Lv nsegment = ls_var(f, "segments", int_of(c, 0));
	Lx k = lx_var(f, ls_for(f, "k", int_of(c, 0), int_of(c, fragments), 1));
	add_fragment(c, k, first, nsegment);
	ls_end(f);
	store(c, c->frags.runs.first, int_of(c, fragments), lx_var(f, nsegment));
}

/* Returns the number, in the block, of the current tile's first fragment. */
static Lx first_fragment(ContractCode *c)
{
	LoopFn *f = c->s->e.f;
	return eval_let(&c->s->e, "fragment",
			lx_div(f, lx_sub(f, c->row, c->rows.lo), int_of(c, c->p->a.runs.rows)));
}

void contract_find_fragments(ContractCode *c)
{
	LoopFn *f = c->s->e.f;
	Lx first = first_fragment(c);
	for (uint32_t i = 0; i < per_tile(c); i++)
		c->frags.base[i] = load(c, c->frags.runs.base, lx_add(f, first, int_of(c, i)));
}

Lx contract_first_place(ContractCode *c, Lx k)
{
	return load(c, c->frags.runs.start, lx_add(c->s->e.f, first_fragment(c), k));
}

void contract_segments(ContractCode *c, Lx *begin, Lx *end)
{
	Lx tile = first_fragment(c);
	*begin = load(c, c->frags.runs.first, tile);
	*end = load(c, c->frags.runs.first, lx_add(c->s->e.f, tile, int_of(c, per_tile(c))));
}

RowSpan contract_open_segment(ContractCode *c)
{
	Cpu *s = c->s;
	LoopFn *f = s->e.f;
	const ContractAxes *x = &c->p->axes;
	Lx begin, end;
	contract_segments(c, &begin, &end);
	Lx k = lx_var(f, ls_for(f, "segment", begin, end, 1));
	for (uint32_t i = 0; i + 1 < x->nm; i++)
		eval_at(&s->e, x->m[i], load(c, c->frags.runs.axis[i], k));
	Lx place = load(c, c->frags.runs.place, k), lo = load(c, c->frags.runs.lo, k);
	return (RowSpan){lo, load(c, c->frags.runs.hi, k), place};
}

Lx contract_open_segments(ContractCode *c)
{
	Cpu *s = c->s;
	const RowSpan span = contract_open_segment(c);
	Lx row = lx_var(s->e.f, ls_for(s->e.f, "row", span.lo, span.hi, 1));
	contract_go_to_segment_row(c, row);
	return lx_add(s->e.f, span.place, row);
}

void contract_go_to_segment_row(ContractCode *c, Lx row)
{
	const ContractAxes *x = &c->p->axes;
	if (x->nm)
		eval_at(&c->s->e, x->m[x->nm - 1], row);
}

void contract_close_segments(ContractCode *c)
{
	ls_end(c->s->e.f);
	ls_end(c->s->e.f);
}
