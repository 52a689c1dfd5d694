/* Batched factorisations of small matrices (LU, Cholesky, QR, triangular solves): as many as there
 * are lanes side by side, each in a lane, in local memory. Element (i, j) of all of them is a
 * vector. LU exchanges rows by selections, because each lane has a pivot of its own; all others
 * treat lanes alike.
 *
 * A matrix whose elements are contiguous in memory is read and stored by tiles: as many elements
 * of each matrix as there are lanes are a row, and the rows of all lanes are transposed. */
#include "codegen/cpu/cpu.h"

/* Matrices, or vectors (columns 1), in an array of vectors. */
typedef struct {
	LMem mem;
	DType dtype;
	int64_t rows, columns;
} Room;

typedef struct {
	Cpu *s;
	LoopFn *f;
	uint32_t stage, lanes;
	DType dtype;
} Small;

static const Stage *stage_at(const Small *t, uint32_t k)
{
	return &t->s->e.k->stage.data[t->stage + k];
}

static Lx let(Small *t, const char *name, Lx x)
{
	return lx_var(t->f, ls_let(t->f, name, x));
}

static Lx number(Small *t, double v)
{
	return lx_float(t->f, (LType){t->dtype, t->lanes}, v);
}

static Lx negative(Small *t, Lx x)
{
	return lx_sc(t->f, SC_neg, lx_type(t->f, x), &x, 1);
}

static Lx quotient(Small *t, Lx a, Lx b)
{
	return lx_sc(t->f, SC_div, lx_type(t->f, a), (Lx[]){a, b}, 2);
}

static Lx root(Small *t, Lx x)
{
	return lx_sc(t->f, SC_sqrt, lx_type(t->f, x), &x, 1);
}

/* Returns acc - a * b. */
static Lx less_product(Small *t, Lx acc, Lx a, Lx b)
{
	return code_fma(&t->s->code, negative(t, a), b, acc);
}

/* ---- rooms ---- */

static Room new_room(Small *t, const char *name, DType d, int64_t rows, int64_t columns)
{
	return (Room){ls_local(t->f, name, d, (uint64_t)(rows * columns * t->lanes)), d, rows,
		      columns};
}

static Lx place(Small *t, const Room *m, Lx i, Lx j)
{
	Lx at = lx_add(t->f, lx_mul(t->f, i, lx_int(t->f, m->columns)), j);
	return lx_mul(t->f, at, lx_int(t->f, t->lanes));
}

static Lx get(Small *t, const Room *m, Lx i, Lx j)
{
	return lx_var(t->f, ls_load(t->f, "x", m->mem, place(t, m, i, j),
				    (LType){m->dtype, t->lanes}, (Lx){0}));
}

static void put(Small *t, const Room *m, Lx i, Lx j, Lx x)
{
	ls_store(t->f, m->mem, place(t, m, i, j), x, (Lx){0});
}

/* ---- operands and results ---- */

/* Sets the axes of a stage to element (i, j) of the matrix, or to element i of the vector. */
static void at_element(Small *t, const Stage *st, Lx i, Lx j)
{
	eval_at(&t->s->e, st->red[0], i);
	if (st->nred > 1)
		eval_at(&t->s->e, st->red[1], j);
}

/* Whether the elements of a matrix are contiguous in memory, row by row, and there are lanes. */
static bool is_contiguous(const Small *t, const Stage *st, Sym offset, const Room *m)
{
	const Nest *nest = t->s->e.nest;
	return t->lanes > 1 && nest_coef_is(nest, offset, st->red[0], m->columns) &&
	       (st->nred < 2 || nest_coef_is(nest, offset, st->red[1], 1));
}

/* Sets first[] to the offset of the first element of each lane's matrix. Lanes from `count` on
 * (none: all lanes have one) repeat the last matrix. */
static void first_elements(Small *t, const Stage *st, Sym offset, Lx count, Lx *first)
{
	Eval *e = &t->s->e;
	LoopFn *f = t->f;
	const Lx here = e->at[e->lanes.axis], zero = lx_int(f, 0);
	at_element(t, st, zero, zero);
	for (uint32_t r = 0; r < t->lanes; r++) {
		Lx lane = lx_int(f, r);
		if (count.i)
			lane = lx_min(f, lane, lx_sub(f, count, lx_int(f, 1)));
		eval_at(e, e->lanes.axis, eval_let(e, "member", lx_add(f, here, lane)));
		first[r] = eval_let(e, "first", eval_index(e, offset));
	}
	eval_at(e, e->lanes.axis, here);
}

/* Returns the number of matrices at hand, if it may be less than the lanes; else none. */
static Lx members(Small *t)
{
	Eval *e = &t->s->e;
	if (!e->lanes.mask.i)
		return (Lx){0};
	return eval_let(e, "members",
			lx_sub(t->f, cpu_limit(t->s, e->lanes.axis), e->at[e->lanes.axis]));
}

/* Elements `at` to at + lanes - 1 of all members; mask: those that there are; none: all. */
typedef struct {
	const Room *room;
	LMem mem;
	DType dtype; /* of values that move */
	const Lx *first;
	Lx count;
} Tiles;

static void load_tile(Small *t, const Tiles *v, Lx at, uint32_t n, Lx mask)
{
	Lx *row = ARENA_ARRAY(t->s->e.arena, Lx, t->lanes);
	for (uint32_t r = 0; r < t->lanes; r++)
		row[r] = lx_var(t->f, ls_load(t->f, "row", v->mem, lx_add(t->f, v->first[r], at),
					      (LType){v->dtype, t->lanes}, mask));
	transpose_lanes(t->s, row);
	for (uint32_t c = 0; c < n; c++)
		ls_store(t->f, v->room->mem,
			 lx_mul(t->f, lx_add(t->f, at, lx_int(t->f, c)), lx_int(t->f, t->lanes)),
			 row[c], (Lx){0});
}

static void store_tile(Small *t, const Tiles *v, Lx at, uint32_t n, Lx mask)
{
	LoopFn *f = t->f;
	Lx *row = ARENA_ARRAY(t->s->e.arena, Lx, t->lanes);
	for (uint32_t c = 0; c < t->lanes; c++) {
		Lx from =
			lx_mul(f, lx_add(f, at, lx_int(f, c < n ? c : n - 1)), lx_int(f, t->lanes));
		row[c] = lx_var(f, ls_load(f, "x", v->room->mem, from,
					   (LType){v->room->dtype, t->lanes}, (Lx){0}));
	}
	transpose_lanes(t->s, row);
	for (uint32_t r = 0; r < t->lanes; r++) {
		if (v->count.i && r)
			ls_if(f, lx_cmp(f, SC_lt, lx_int(f, r), v->count));
		ls_store(f, v->mem, lx_add(f, v->first[r], at),
			 eval_convert(&t->s->e, row[r], v->dtype), mask);
		if (v->count.i && r)
			ls_end(f);
	}
}

static void all_tiles(Small *t, const Tiles *v,
		      void (*tile)(Small *, const Tiles *, Lx at, uint32_t n, Lx mask))
{
	LoopFn *f = t->f;
	const int64_t n = v->room->rows * v->room->columns, rest = n % t->lanes;
	if (n > rest) {
		Lx at = lx_var(f, ls_for(f, "at", lx_int(f, 0), lx_int(f, n - rest), t->lanes));
		tile(t, v, at, t->lanes, (Lx){0});
		ls_end(f);
	}
	if (rest)
		tile(t, v, lx_int(f, n - rest), (uint32_t)rest,
		     let(t, "tail", lx_mask(f, lx_int(f, rest), t->lanes)));
}

typedef void ElementFn(Small *, const Stage *, const Room *, Lx i, Lx j);

static void each_element(Small *t, const Stage *st, const Room *m, ElementFn *element)
{
	LoopFn *f = t->f;
	Lx zero = lx_int(f, 0), i = lx_var(f, ls_for(f, "i", zero, lx_int(f, m->rows), 1));
	Lx j = lx_var(f, ls_for(f, "j", zero, lx_int(f, m->columns), 1));
	at_element(t, st, i, j);
	element(t, st, m, i, j);
	ls_end(f);
	ls_end(f);
}

static void load_element(Small *t, const Stage *st, const Room *m, Lx i, Lx j)
{
	put(t, m, i, j, eval_convert(&t->s->e, eval_vector(&t->s->e, st->value), m->dtype));
}

static void store_element(Small *t, const Stage *st, const Room *m, Lx i, Lx j)
{
	Eval *e = &t->s->e;
	const uint32_t stage = (uint32_t)(st - e->k->stage.data);
	Lx v = eval_convert(e, get(t, m, i, j), dtype_compute(st->dtype));
	eval_store_at(e, stage, eval_address(e, stage), v);
}

/* Returns a local array with the operand of a stage. */
static Room load(Small *t, const char *name, const Stage *st)
{
	Eval *e = &t->s->e;
	const KxData *x = &e->k->kx.data[st->value.i];
	Lx *first = ARENA_ARRAY(e->arena, Lx, t->lanes);
	const Room m = new_room(t, name, t->dtype, sym_const(e->syms, e->nest->extent[st->red[0]]),
	                        st->nred > 1 ? sym_const(e->syms, e->nest->extent[st->red[1]]) : 1);
	if (x->kind != KX_LOAD || x->guard.i ||
	    !is_contiguous(t, st, e->nest->offset[st->value.i], &m)) {
		each_element(t, st, &m, load_element);
		return m;
	}
	Tiles v = {.room = &m,
		   .mem = eval_load_memory(e, st->value),
		   .dtype = x->dtype,
		   .first = first,
		   .count = members(t)};
	first_elements(t, st, e->nest->offset[st->value.i], v.count, first);
	all_tiles(t, &v, load_tile);
	return m;
}

static void store(Small *t, const Stage *st, const Room *m)
{
	Eval *e = &t->s->e;
	Lx *first = ARENA_ARRAY(e->arena, Lx, t->lanes);
	const Sym offset = e->nest->store[st - e->k->stage.data];
	if (!is_contiguous(t, st, offset, m)) {
		each_element(t, st, m, store_element);
		return;
	}
	Tiles v = {.room = m,
		   .mem = eval_memory(e, st->store.buf),
		   .dtype = dtype_compute(st->dtype),
		   .first = first,
		   .count = members(t)};
	first_elements(t, st, offset, v.count, first);
	all_tiles(t, &v, store_tile);
}

static void store_number(Small *t, const Stage *st, Lx x)
{
	Eval *e = &t->s->e;
	const uint32_t stage = (uint32_t)(st - e->k->stage.data);
	eval_store_at(e, stage, eval_address(e, stage),
		      eval_convert(e, x, dtype_compute(st->dtype)));
}

/* ---- loops ---- */

static Lx loop(Small *t, const char *name, Lx from, int64_t end)
{
	return lx_var(t->f, ls_for(t->f, name, from, lx_int(t->f, end), 1));
}

static Lx behind(Small *t, Lx k)
{
	return lx_add(t->f, k, lx_int(t->f, 1));
}

/* Subtracts l times row k from row i, from column `from` on. */
static void subtract_row(Small *t, const Room *m, Lx i, Lx k, Lx l, Lx from)
{
	Lx j = loop(t, "j", from, m->columns);
	Lx other = get(t, m, k, j);
	put(t, m, i, j, less_product(t, get(t, m, i, j), l, other));
	ls_end(t->f);
}

/* Declares `info`, by lane 0, or 1 plus the first k at which the factorisation failed; sets it to
 * 0. */
static Lv start_info(Small *t)
{
	return ls_var(t->f, "info", lx_int_of(t->f, (LType){DT_i32, t->lanes}, 0));
}

static Lx number_of(Small *t, Lx k)
{
	return lx_splat(t->f, lx_sc(t->f, SC_convert, (LType){DT_i32, 1}, &k, 1), t->lanes);
}

static void add_info(Small *t, Lv info, Lx wrong, Lx k)
{
	LoopFn *f = t->f;
	Lx now = lx_var(f, info),
	   first = lx_and(f, wrong, lx_cmp(f, SC_eq, now, lx_int_of(f, lx_type(f, now), 0)));
	ls_set(f, info, lx_select(f, first, number_of(t, behind(t, k)), now));
}

/* ---- LU ---- */

/* Returns, by lane, the row from k on with the largest absolute value in column k: the first of
 * equal ones. A NaN counts as the largest. */
static Lx pivot_row(Small *t, const Room *m, Lx k)
{
	LoopFn *f = t->f;
	Lx x = get(t, m, k, k);
	Lv most = ls_var(f, "most", lx_sc(f, SC_abs, lx_type(f, x), &x, 1)),
	   at = ls_var(f, "at", number_of(t, k));
	Lx i = loop(t, "i", behind(t, k), m->rows);
	x = get(t, m, i, k);
	Lx size = let(t, "size", lx_sc(f, SC_abs, lx_type(f, x), &x, 1)), best = lx_var(f, most);
	Lx nan = lx_and(f, lx_cmp(f, SC_ne, size, size), lx_cmp(f, SC_eq, best, best));
	Lx wins = lx_cmp(f, SC_gt, size, best);
	wins = let(t, "wins", lx_sc(f, SC_or, lx_type(f, wins), (Lx[]){wins, nan}, 2));
	ls_set(f, at, lx_select(f, wins, number_of(t, i), lx_var(f, at)));
	ls_set(f, most, lx_select(f, wins, size, best));
	ls_end(f);
	return let(t, "pivot", lx_var(f, at));
}

/* Exchanges rows k and i in the lanes of the mask. */
static void exchange(Small *t, const Room *m, Lx k, Lx i, Lx mask)
{
	LoopFn *f = t->f;
	Lx j = loop(t, "j", lx_int(f, 0), m->columns), a = get(t, m, k, j), b = get(t, m, i, j);
	put(t, m, k, j, lx_select(f, mask, b, a));
	put(t, m, i, j, lx_select(f, mask, a, b));
	ls_end(f);
}

static void factor_lu(Small *t)
{
	LoopFn *f = t->f;
	const Room m = load(t, "matrix", stage_at(t, 0));
	const int64_t least = m.rows < m.columns ? m.rows : m.columns;
	const Room pivots = new_room(t, "pivots", DT_i32, least, 1),
		   order = new_room(t, "order", DT_i32, m.rows, 1);
	Lx zero = lx_int(f, 0), none = number(t, 0), one = number(t, 1);
	Lv info = start_info(t);
	Lx i = loop(t, "i", zero, m.rows);
	put(t, &order, i, zero, number_of(t, i));
	ls_end(f);
	Lx k = loop(t, "k", zero, least);
	Lx at = pivot_row(t, &m, k);
	put(t, &pivots, k, zero, lx_add(f, at, lx_int_of(f, lx_type(f, at), 1)));
	i = loop(t, "i", behind(t, k), m.rows);
	Lx mask = let(t, "here", lx_cmp(f, SC_eq, at, number_of(t, i)));
	ls_if(f, lx_any(f, mask));
	exchange(t, &m, k, i, mask);
	exchange(t, &order, k, i, mask);
	ls_end(f);
	ls_end(f);
	Lx pivot = get(t, &m, k, k), singular = let(t, "singular", lx_cmp(f, SC_eq, pivot, none));
	add_info(t, info, singular, k);
	Lx by = let(t, "by", lx_select(f, singular, one, pivot));
	i = loop(t, "i", behind(t, k), m.rows);
	Lx l = let(t, "l", quotient(t, get(t, &m, i, k), by));
	put(t, &m, i, k, l);
	subtract_row(t, &m, i, k, l, behind(t, k));
	ls_end(f);
	ls_end(f);
	store(t, stage_at(t, 0), &m);
	store(t, stage_at(t, 1), &pivots);
	store(t, stage_at(t, 2), &order);
	store_number(t, stage_at(t, 3), lx_var(f, info));
}

/* ---- QR ---- */

/* Returns the sum of the squares of column k below row k, in f64. */
static Lx squares_below(Small *t, const Room *m, Lx k)
{
	LoopFn *f = t->f;
	Lv sum = ls_var(f, "tail", lx_float(f, (LType){DT_f64, t->lanes}, 0));
	Lx i = loop(t, "i", behind(t, k), m->rows),
	   x = let(t, "x", eval_convert(&t->s->e, get(t, m, i, k), DT_f64));
	ls_set(f, sum, code_fma(&t->s->code, x, x, lx_var(f, sum)));
	ls_end(f);
	return let(t, "tail", lx_var(f, sum));
}

/* Replaces column k below row k by the vector v of a Householder reflector I - tau v v^T. Sets
 * *tau, and *diagonal to the element of R. */
static void make_reflector(Small *t, const Room *m, Lx k, Lx *tau, Lx *diagonal)
{
	LoopFn *f = t->f;
	Lx zero = number(t, 0), one = number(t, 1), alpha = get(t, m, k, k),
	   tail = squares_below(t, m, k);
	Lx wide = let(t, "alpha", eval_convert(&t->s->e, alpha, DT_f64));
	Lx length = let(
		t, "length",
		eval_convert(&t->s->e, root(t, code_fma(&t->s->code, wide, wide, tail)), t->dtype));
	Lx none = let(t, "none", lx_cmp(f, SC_eq, tail, lx_float(f, lx_type(f, tail), 0)));
	Lx beta = let(t, "beta",
		      lx_select(f, lx_cmp(f, SC_lt, alpha, zero), length, negative(t, length)));
	Lx scale = let(t, "scale", lx_select(f, none, one, lx_sub(f, alpha, beta)));
	Lx safe = lx_select(f, none, one, beta);
	*tau = let(t, "tau", lx_select(f, none, zero, quotient(t, lx_sub(f, beta, alpha), safe)));
	*diagonal = let(t, "own", lx_select(f, none, alpha, beta));
	Lx i = loop(t, "i", behind(t, k), m->rows);
	put(t, m, i, k, quotient(t, get(t, m, i, k), scale));
	ls_end(f);
}

/* Applies the Householder reflector of column k to the columns behind it. w: a local array of one
 * row. */
static void apply_reflector(Small *t, const Room *m, const Room *w, Lx k, Lx tau)
{
	LoopFn *f = t->f;
	Lx zero = lx_int(f, 0), next = behind(t, k), j = loop(t, "j", next, m->columns);
	put(t, w, j, zero, get(t, m, k, j));
	ls_end(f);
	Lx i = loop(t, "i", next, m->rows), v = get(t, m, i, k);
	j = loop(t, "j", next, m->columns);
	Lx sum = get(t, w, j, zero);
	put(t, w, j, zero, code_fma(&t->s->code, v, get(t, m, i, j), sum));
	ls_end(f);
	ls_end(f);
	j = loop(t, "j", next, m->columns);
	Lx part = let(t, "w", lx_mul(f, tau, get(t, w, j, zero)));
	put(t, w, j, zero, part);
	put(t, m, k, j, lx_sub(f, get(t, m, k, j), part));
	ls_end(f);
	i = loop(t, "i", next, m->rows);
	v = get(t, m, i, k);
	j = loop(t, "j", next, m->columns);
	part = get(t, w, j, zero);
	put(t, m, i, j, less_product(t, get(t, m, i, j), v, part));
	ls_end(f);
	ls_end(f);
}

static void factor_qr(Small *t)
{
	LoopFn *f = t->f;
	const Room m = load(t, "matrix", stage_at(t, 0));
	const int64_t least = m.rows < m.columns ? m.rows : m.columns;
	const Room taus = new_room(t, "taus", t->dtype, least, 1),
		   w = new_room(t, "products", t->dtype, m.columns, 1);
	Lx k = loop(t, "k", lx_int(f, 0), least), tau, diagonal;
	make_reflector(t, &m, k, &tau, &diagonal);
	apply_reflector(t, &m, &w, k, tau);
	put(t, &m, k, k, diagonal);
	put(t, &taus, k, lx_int(f, 0), tau);
	ls_end(f);
	store(t, stage_at(t, 0), &m);
	store(t, stage_at(t, 1), &taus);
}

/* ---- Cholesky ---- */

static void factor_cholesky(Small *t)
{
	LoopFn *f = t->f;
	const Room m = load(t, "matrix", stage_at(t, 0));
	Lx zero = lx_int(f, 0), none = number(t, 0);
	Lv info = start_info(t);
	Lx k = loop(t, "k", zero, m.rows), pivot = get(t, &m, k, k);
	Lx positive = lx_cmp(f, SC_gt, pivot, none);
	add_info(t, info, lx_sc(f, SC_not, lx_type(f, positive), &positive, 1), k);
	Lx by = let(t, "root", root(t, pivot));
	put(t, &m, k, k, by);
	Lx j = loop(t, "j", behind(t, k), m.columns);
	put(t, &m, k, j, quotient(t, get(t, &m, k, j), by));
	ls_end(f);
	Lx i = loop(t, "i", behind(t, k), m.rows);
	subtract_row(t, &m, i, k, get(t, &m, k, i), i);
	put(t, &m, i, k, none);
	ls_end(f);
	ls_end(f);
	store(t, stage_at(t, 0), &m);
	store_number(t, stage_at(t, 1), lx_var(f, info));
}

/* ---- triangular systems ---- */

static void factor_solve(Small *t)
{
	LoopFn *f = t->f;
	const Stage *st = stage_at(t, 0);
	const Room x = load(t, "right", st), a = load(t, "triangle", stage_at(t, 1));
	Lx zero = lx_int(f, 0), u = loop(t, "u", zero, a.rows);
	Lx k = st->factor.upper ? eval_let(&t->s->e, "k", lx_sub(f, lx_int(f, a.rows - 1), u)) : u;
	if (!st->factor.unit) {
		Lx by = get(t, &a, k, k), j = loop(t, "j", zero, x.columns);
		put(t, &x, k, j, quotient(t, get(t, &x, k, j), by));
		ls_end(f);
	}
	Lx i = lx_var(f, ls_for(f, "i", st->factor.upper ? zero : behind(t, k),
				st->factor.upper ? k : lx_int(f, a.rows), 1));
	subtract_row(t, &x, i, k, get(t, &a, i, k), zero);
	ls_end(f);
	ls_end(f);
	store(t, st, &x);
}

void cpu_factor(Cpu *s, uint32_t stage)
{
	const Stage *st = &s->e.k->stage.data[stage];
	Small t = {
		.s = s, .f = s->e.f, .stage = stage, .lanes = s->e.lanes.n, .dtype = stage_acc(st)};
	switch (st->factor.kind) {
	case FACTOR_LU:
		factor_lu(&t);
		break;
	case FACTOR_QR:
		factor_qr(&t);
		break;
	case FACTOR_CHOLESKY:
		factor_cholesky(&t);
		break;
	default:
		factor_solve(&t);
	}
	for (uint32_t k = 0, next = stage;; next = stage_next(&st[k]), k = next - stage) {
		for (uint32_t i = 0; i < st[k].nred; i++)
			eval_at(&s->e, st[k].red[i], (Lx){0});
		if (!stage_next(&st[k]))
			break;
	}
}
