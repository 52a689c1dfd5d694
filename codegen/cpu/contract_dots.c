/* Tiles of dot products (the inner-product form of a matrix multiplication): operand b is read
 * along k, whose steps are neighbours in both operands. Lanes are steps, and each sum of a vector
 * of columns is a dot product. Neither operand is copied, and a tile reads each of its columns
 * once:
 *
 *     for g in groups of columns:
 *         for k by vectors:   acc_i_j += A[row_i, k ..] * B[col + g + j, k ..]    for all i, j
 *         part_i_g = lanes of acc_i_0, acc_i_1, ... added up until together they are one vector
 *     sum_i = lanes of part_i_0, part_i_1, ... added up until they are one vector of columns
 *
 * Two vectors become one by adding the even lanes of both to the odd ones: the lower half holds
 * what is left of the first, the upper half what is left of the second. So after log2(lanes) turns
 * lane j is the sum of column j.
 *
 * Short columns that come from memory are read in order, because processors fetch one stream of a
 * page further ahead than several: the loop over k is inside of that over j, then. Rows that fit
 * registers are loaded ahead of the groups. Columns past the end repeat the last one; groups of
 * nothing but such columns are left out. */
#include <string.h>

#include "codegen/cpu/contract.h"

typedef struct {
	ContractCode *c;
	const Lx *a; /* by row: the offset in a */
	Lx b[MAX_ABREAST_COLUMNS]; /* by column: the offset in b */
	Lv acc[MAX_SUMS];          /* [column][row] */
	uint32_t first, n;         /* the columns of the group that are read together */
	Lx held[MAX_HELD];         /* [row][vector] of a */
} Dots;

static Lx int_of(const ContractCode *c, int64_t v)
{
	return lx_int(c->s->e.f, v);
}

/* ---- sums ---- */

/* Adds the lanes of n vectors, a power of two, until they are one vector: its lanes are n parts in
 * the order of the vectors, each the partial sums of one of them. */
static Lx add_lanes(ContractCode *c, const Lx *v, uint32_t n)
{
	LoopFn *f = c->s->e.f;
	if (n == 1)
		return v[0];
	const Lx low = add_lanes(c, v, n / 2), high = add_lanes(c, v + n / 2, n / 2);
	return eval_let(&c->s->e, "half",
			lx_add(f, lx_shuffle(f, SHUFFLE_EVENS, low, high),
			       lx_shuffle(f, SHUFFLE_ODDS, low, high)));
}

/* Returns a vector of an operand along k, at the current step, as it is multiplied. */
static Lx load_steps(ContractCode *c, const char *name, Kx load, Lx offset)
{
	Cpu *s = c->s;
	const LMem m = eval_load_memory(&s->e, load);
	const LType to = contract_b_type(c->p),
		    t = {to.dtype == DT_u32 ? to.dtype : dtype_compute(m.dtype), to.lanes};
	Lx at = lx_add(s->e.f, offset, contract_step_offset(c, load));
	Lx x = lx_var(s->e.f, ls_load(s->e.f, name, m, at, t, s->e.lanes.mask));
	if (t.dtype == to.dtype)
		return x;
	return eval_let(&s->e, name, eval_convert(&s->e, x, to.dtype));
}

static void multiply_add(Cpu *s, void *data)
{
	const Dots *d = data;
	const uint32_t mr = d->c->p->tile.mr;
	Lx b[MAX_ABREAST_COLUMNS];
	for (uint32_t j = 0; j < d->n; j++)
		b[j] = load_steps(d->c, "b", d->c->p->b.load, d->b[d->first + j]);
	for (uint32_t i = 0; i < mr; i++) {
		Lx a = load_steps(d->c, "a", d->c->p->a.load, d->a[i]);
		for (uint32_t j = 0; j < d->n; j++) {
			Lv acc = d->acc[(d->first + j) * mr + i];
			ls_set(s->e.f, acc,
			       contract_add_product(d->c, a, b[j], lx_var(s->e.f, acc)));
		}
	}
}

/* Goes to vector u of rows that are held, of which the last one may be less. */
static void go_to_vector(ContractCode *c, uint32_t u)
{
	Cpu *s = c->s;
	const uint32_t axis = c->p->axes.k[0];
	const uint32_t lanes = s->e.lanes.n;
	const int64_t at = (int64_t)u * lanes,
		      left = sym_const(s->e.syms, s->e.nest->extent[axis]) - at;
	eval_at(&s->e, axis, int_of(c, at));
	eval_mask(&s->e, left < lanes ? lx_mask(s->e.f, int_of(c, left), lanes) : (Lx){0});
}

static void leave_vectors(ContractCode *c)
{
	eval_at(&c->s->e, c->p->axes.k[0], (Lx){0});
	eval_mask(&c->s->e, (Lx){0});
}

static void hold_rows(Dots *d)
{
	const ContractPlan *p = d->c->p;
	for (uint32_t u = 0; u < p->b.held; u++) {
		go_to_vector(d->c, u);
		for (uint32_t i = 0; i < p->tile.mr; i++)
			d->held[i * p->b.held + u] =
				load_steps(d->c, "a", p->a.load, d->a[i]);
	}
	leave_vectors(d->c);
}

/* Adds the products of all steps of column j with rows of a that registers hold. */
static void add_held(Dots *d, uint32_t j)
{
	Cpu *s = d->c->s;
	const ContractPlan *p = d->c->p;
	for (uint32_t u = 0; u < p->b.held; u++) {
		go_to_vector(d->c, u);
		Lx b = load_steps(d->c, "b", p->b.load, d->b[j]);
		for (uint32_t i = 0; i < p->tile.mr; i++) {
			Lv acc = d->acc[j * p->tile.mr + i];
			ls_set(s->e.f, acc,
			       contract_add_product(d->c, d->held[i * p->b.held + u], b,
						    lx_var(s->e.f, acc)));
		}
	}
	leave_vectors(d->c);
}

/* Adds the products of the steps in [lo, hi) of the last summed axis that fill rounds of one vector
 * for each chain; each chain has accumulators of its own. Returns where the other steps begin. */
static Lx run_chains(Dots *d, uint32_t axis, Lx lo, Lx hi)
{
	Cpu *s = d->c->s;
	LoopFn *f = s->e.f;
	const uint32_t n = d->c->p->tile.mr, chains = d->c->p->b.chains;
	const int64_t lanes = s->e.lanes.n;
	Lv *sum = d->acc + d->first * n, chain[MAX_SUMS];
	Lx rest = lx_mod(f, lx_sub(f, hi, lo), int_of(d->c, chains * lanes));
	Lx end = eval_let(&s->e, "whole", lx_sub(f, hi, rest));
	for (uint32_t k = 0; k < n * chains; k++)
		chain[k] = k < n ? sum[k] : ls_var(f, "chain", contract_zero(d->c));
	eval_for(&s->e, axis, lo, end, chains * lanes);
	Lx here = s->e.at[axis];
	for (uint32_t w = 0; w < chains; w++) {
		eval_at(&s->e, axis, lx_add(f, here, int_of(d->c, w * lanes)));
		memcpy(sum, chain + w * n, n * sizeof *sum);
		multiply_add(s, d);
	}
	memcpy(sum, chain, n * sizeof *sum);
	eval_end(&s->e);
	for (uint32_t k = n; k < n * chains; k++)
		ls_set(f, sum[k % n], lx_add(f, lx_var(f, sum[k % n]), lx_var(f, chain[k])));
	return end;
}

static void k_loops(Dots *d, uint32_t next);

static void k_loop(Dots *d, uint32_t next, Lx lo, Lx hi)
{
	Cpu *s = d->c->s;
	const ContractAxes *x = &d->c->p->axes;
	const uint32_t axis = x->k[next];
	if (next + 1 == x->nk) {
		if (d->c->p->b.chains > 1)
			lo = run_chains(d, axis, lo, hi);
		cpu_vector_loop(s, axis, lo, hi,
				sym_divides(s->e.syms, s->e.lanes.n, s->e.nest->extent[axis]),
				multiply_add, d);
		return;
	}
	eval_for(&s->e, axis, lo, hi, 1);
	k_loops(d, next + 1);
	eval_end(&s->e);
}

/* Writes the loop over summed axis number `next`, in chunks if the sums are cut. */
static void k_loops(Dots *d, uint32_t next)
{
	Cpu *s = d->c->s;
	const ContractPlan *p = d->c->p;
	Lx lo = int_of(d->c, 0), hi = eval_size(&s->e, s->e.nest->extent[p->axes.k[next]]);
	SumLoop sums = {.kind = REDUCE_SUM,
			.n = p->tile.mr * d->n,
			.width = next + 1 == p->axes.nk ? s->e.lanes.n : 1};
	sums.ncut = sum_cuts(&p->sums.cuts, next, &sums.cut);
	Lv *acc = d->acc + d->first * p->tile.mr;
	if (sums.ncut)
		sum_open(&s->code, &sums, &lo, &hi, acc);
	k_loop(d, next, lo, hi);
	if (sums.ncut)
		sum_close(&s->code, &sums, acc);
}

/* Adds the products of all steps for all columns of a group. */
static void add_products(Dots *d)
{
	const OperandB *b = &d->c->p->b;
	d->n = b->in_turn ? 1 : b->abreast;
	for (d->first = 0; d->first < b->abreast; d->first += d->n)
		if (b->held)
			add_held(d, d->first);
		else
			k_loops(d, 0);
}

/* ---- columns ---- */

/* Sets d->b to the offsets of the columns from `first` on. */
static void find_columns(Dots *d, Lx first, Lx left)
{
	ContractCode *c = d->c;
	Cpu *s = c->s;
	Lx last = lx_sub(s->e.f, c->cols.hi, int_of(c, 1));
	for (uint32_t j = 0; j < c->p->b.abreast; j++) {
		Lx column = lx_add(s->e.f, first, int_of(c, j));
		if (left.i)
			column = eval_let(&s->e, "column", lx_min(s->e.f, column, last));
		eval_at(&s->e, c->p->axes.n, column);
		d->b[j] = eval_let(&s->e, "b_column",
				   eval_index(&s->e, contract_row_offset(c, c->p->b.load)));
	}
	eval_at(&s->e, c->p->axes.n, (Lx){0});
}

/* Sets part[i] to what is left of the sums of row i, of the columns from `first` on. */
static void add_columns(Dots *d, Lx first, Lx left, Lx *part)
{
	ContractCode *c = d->c;
	Cpu *s = c->s;
	const uint32_t columns = c->p->b.abreast, mr = c->p->tile.mr;
	find_columns(d, first, left);
	for (uint32_t k = 0; k < columns * mr; k++)
		d->acc[k] =
			ls_var(s->e.f, arena_printf(s->e.arena, "acc_%u_%u", k % mr, k / mr),
			       contract_zero(c));
	add_products(d);
	for (uint32_t i = 0; i < mr; i++) {
		Lx sum[MAX_ABREAST_COLUMNS];
		for (uint32_t j = 0; j < columns; j++)
			sum[j] = lx_var(s->e.f, d->acc[j * mr + i]);
		part[i] = add_lanes(c, sum, columns);
	}
}

/* Returns the offset of a vector in the partial sums, [row][group][lanes]. */
static Lx part_offset(const ContractCode *c, uint32_t i, Lx group)
{
	LoopFn *f = c->s->e.f;
	const int64_t lanes = c->s->e.lanes.n, groups = lanes / c->p->b.abreast;
	return lx_add(f, int_of(c, i * groups * lanes), lx_mul(f, group, int_of(c, lanes)));
}

static void clear_parts(const ContractCode *c, LMem parts)
{
	LoopFn *f = c->s->e.f;
	const int64_t lanes = c->s->e.lanes.n,
		      all = c->p->tile.mr * (lanes / c->p->b.abreast) * lanes;
	Lx at = lx_var(f, ls_for(f, "i", int_of(c, 0), int_of(c, all), lanes));
	ls_store(f, parts, at, contract_zero(c), (Lx){0});
	ls_end(f);
}

/* Writes the loop over the groups of columns. left: the columns that there are, if the last group
 * may be less than whole; none: all. */
static void loop_over_groups(Dots *d, Lx left, LMem parts)
{
	ContractCode *c = d->c;
	LoopFn *f = c->s->e.f;
	const int64_t columns = c->p->b.abreast, groups = c->s->e.lanes.n / columns;
	Lx part[MAX_TILE_ROWS], end = int_of(c, groups);
	if (left.i) {
		clear_parts(c, parts);
		Lx some = lx_div(f, lx_add(f, left, int_of(c, columns - 1)), int_of(c, columns));
		end = eval_let(&c->s->e, "groups", lx_min(f, some, end));
	}
	Lx group = lx_var(f, ls_for(f, "group", int_of(c, 0), end, 1));
	Lx first = lx_add(f, c->col, lx_mul(f, group, int_of(c, columns)));
	add_columns(d, first, left, part);
	for (uint32_t i = 0; i < c->p->tile.mr; i++)
		ls_store(f, parts, part_offset(c, i, group), part[i], (Lx){0});
	ls_end(f);
}

/* Returns the vector of columns of row i, added up of all groups. */
static Lx add_groups(ContractCode *c, LMem parts, uint32_t i)
{
	LoopFn *f = c->s->e.f;
	const uint32_t groups = c->s->e.lanes.n / c->p->b.abreast;
	Lx part[MAX_DOT_LANES];
	for (uint32_t g = 0; g < groups; g++)
		part[g] = lx_var(f, ls_load(f, "part", parts, part_offset(c, i, int_of(c, g)),
					    c->p->vector, (Lx){0}));
	return add_lanes(c, part, groups);
}

void contract_dots(ContractCode *c, const Lx *a, Lx left, Lv *sum)
{
	LoopFn *f = c->s->e.f;
	const uint32_t mr = c->p->tile.mr, lanes = c->s->e.lanes.n;
	Dots d = {.c = c, .a = a};
	Lx part[MAX_TILE_ROWS];
	if (c->p->b.held)
		hold_rows(&d);
	if (lanes == c->p->b.abreast) {
		add_columns(&d, c->col, left, part);
	} else {
		LMem parts = ls_local(f, "parts", c->p->vector.dtype,
				      (uint64_t)mr * (lanes / c->p->b.abreast) * lanes);
		loop_over_groups(&d, left, parts);
		for (uint32_t i = 0; i < mr; i++)
			part[i] = add_groups(c, parts, i);
	}
	for (uint32_t i = 0; i < mr; i++)
		sum[i] = ls_let(f, "sum", part[i]);
}
