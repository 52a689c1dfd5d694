/* The discrete Fourier transform of a line, or of as many lines as there are lanes: a step for each
 * factor of the length (Stockham's form, whose results are in order). With n the length, s the
 * product of the factors of earlier steps, r the factor, m = n / (r s), and p < m, q < s:
 *
 *     a[j] = x[q + s (p + m j)]                                      for j < r
 *     y[q + s (r p + k)] = exp(-2 pi i k p s / n) * sum_j a[j] exp(-2 pi i j k / r)   for k < r
 *
 * The first step reads the operand and the last one stores the result; between them lines lie in
 * two rooms by turns (double buffering), as vectors of lines, the imaginary parts behind the real
 * ones. If the length is a number, so are the factors. Else they are found when the kernel runs,
 * and the line is copied to a room before the first step and from a room after the last. */
#include "codegen/cpu/fft.h"

enum {
	ROOM_BYTES = 64 << 10,       /* of both rooms, on the stack of a task */
	THREAD_ROOM_BYTES = 1 << 10, /* the same of one thread of a GPU */
};

/* A place for lines: the operand, the result, or a room that begins at `room`. exchanged: a room's
 * imaginary parts stand in front of the real ones. */
typedef struct {
	enum { IN_OPERAND, IN_RESULT, IN_ROOM } where;
	Lx room;
	bool exchanged;
} Place;

/* ---- memory ---- */

Cx fft_exchange(const Fft *t, Cx x)
{
	return t->exchanged ? (Cx){x.im, x.re} : x;
}

Lx fft_value(Fft *t, uint32_t stage)
{
	Eval *e = &t->s->e;
	Lx v = eval_vector(e, e->k->stage.data[stage].value);
	return eval_convert(e, v, t->type.dtype);
}

static Lx address(Fft *t, Place p, Lx at, uint32_t part)
{
	LoopFn *f = t->f;
	Lx element = lx_add(f, lx_mul(f, at, lx_int(f, 2)), lx_int(f, part ^ p.exchanged));
	return lx_add(f, p.room, lx_mul(f, element, lx_int(f, t->type.lanes)));
}

Cx fft_load_pairs(Fft *t, LMem mem, Lx offset, const Lx mask[2])
{
	LoopFn *f = t->f;
	Lx a = lx_var(f, ls_load(f, "x", mem, offset, t->type, mask[0]));
	Lx b = lx_var(f, ls_load(f, "x", mem, lx_add(f, offset, lx_int(f, t->type.lanes)), t->type,
				 mask[1]));
	return fft_let(t, "x",
		       (Cx){lx_shuffle(f, SHUFFLE_EVENS, a, b), lx_shuffle(f, SHUFFLE_ODDS, a, b)});
}

void fft_store_pairs(Fft *t, LMem mem, Lx offset, Cx x, const Lx mask[2])
{
	LoopFn *f = t->f;
	ls_store(f, mem, offset, lx_shuffle(f, SHUFFLE_ZIP_LOW, x.re, x.im), mask[0]);
	offset = lx_add(f, offset, lx_int(f, t->type.lanes));
	ls_store(f, mem, offset, lx_shuffle(f, SHUFFLE_ZIP_HIGH, x.re, x.im), mask[1]);
}

static Cx operand_at_hand(Fft *t)
{
	Eval *e = &t->s->e;
	const Kx re = e->k->stage.data[t->re].value;
	if (t->as.operand != BY_NEIGHBOURS)
		return (Cx){fft_value(t, t->re), fft_value(t, t->im)};
	Lx offset = fft_let_index(t, "at", eval_index(e, e->nest->offset[re.i]));
	return fft_load_pairs(t, eval_load_memory(e, re), offset, t->as.there);
}

/* Returns element `at` of all lines. */
static Cx get(Fft *t, Place from, Lx at)
{
	Cx x;
	if (from.where == IN_OPERAND) {
		eval_at(&t->s->e, t->axis, at);
		x = operand_at_hand(t);
		return fft_let(t, "x", t->real ? x : fft_exchange(t, x));
	}
	x.re = lx_var(t->f,
		      ls_load(t->f, "x", t->rooms, address(t, from, at, 0), t->type, (Lx){0}));
	x.im = lx_var(t->f,
		      ls_load(t->f, "x", t->rooms, address(t, from, at, 1), t->type, (Lx){0}));
	return x;
}

static void put_part(Fft *t, uint32_t stage, Lx value)
{
	Eval *e = &t->s->e;
	eval_store_at(e, stage, eval_address(e, stage),
		      eval_convert(e, value, e->k->stage.data[stage].dtype));
}

static void put_result(Fft *t, Cx x)
{
	Eval *e = &t->s->e;
	if (t->as.result == BY_NEIGHBOURS) {
		Lx offset = fft_let_index(t, "to", eval_index(e, e->nest->store[t->re]));
		fft_store_pairs(t, eval_memory(e, e->k->stage.data[t->re].store.buf), offset, x,
				t->as.there);
		return;
	}
	put_part(t, t->re, x.re);
	put_part(t, t->im, x.im);
}

static void put(Fft *t, Place to, Lx at, Cx x)
{
	if (to.where == IN_RESULT) {
		eval_at(&t->s->e, t->axis, at);
		put_result(t, fft_exchange(t, x));
		return;
	}
	ls_store(t->f, t->rooms, address(t, to, at, 0), x.re, (Lx){0});
	ls_store(t->f, t->rooms, address(t, to, at, 1), x.im, (Lx){0});
}

Cx fft_root(Fft *t, Lx k)
{
	eval_at(&t->s->e, t->table, k);
	return (Cx){fft_value(t, t->root_re), fft_value(t, t->root_im)};
}

/* ---- halves of real transforms ---- */

Cx fft_half(Fft *t, Cx a, Cx b, Cx w)
{
	LoopFn *f = t->f;
	Lx half = fft_number(t, 0.5);
	Cx even = {lx_add(f, a.re, b.re), lx_sub(f, a.im, b.im)},
	   odd = {lx_sub(f, a.re, b.re), lx_add(f, a.im, b.im)};
	even = fft_let(t, "even", even);
	odd = fft_let(t, "odd", odd);
	if (t->exchanged) {
		w.im = lx_sc(f, SC_neg, t->type, &w.im, 1);
		Cx turned = fft_mul(t, odd, w);
		return fft_let(t, "z",
			       (Cx){lx_sub(f, even.re, turned.im), lx_add(f, even.im, turned.re)});
	}
	Cx turned = fft_mul(t, odd, w);
	Cx sum = {lx_add(f, even.re, turned.im), lx_sub(f, even.im, turned.re)};
	return fft_let(t, "y", (Cx){lx_mul(f, sum.re, half), lx_mul(f, sum.im, half)});
}

/* Returns k, or 0 if k is n. */
static Lx in_turn(Fft *t, Lx k)
{
	return fft_let_index(t, "k",
			     lx_select(t->f, lx_cmp(t->f, SC_eq, k, t->n), lx_int(t->f, 0), k));
}

/* Returns element k of the transform of real numbers whose pairs z are in the room. */
static Cx half_of(Fft *t, Place z, Lx k)
{
	Cx a = get(t, z, in_turn(t, k)), b = get(t, z, in_turn(t, lx_sub(t->f, t->n, k)));
	return fft_half(t, a, b, fft_root(t, lx_add(t->f, k, lx_int(t->f, t->turns))));
}

/* Returns pair k of the operand of an inverse transform that gives real numbers. The imaginary
 * parts of the operand's first and last element count as 0. */
static Cx pair_of_half(Fft *t, Place half, Lx k)
{
	LoopFn *f = t->f;
	Cx a = get(t, half, k), b = get(t, half, fft_let_index(t, "mirror", lx_sub(f, t->n, k)));
	Lx first = lx_cmp(f, SC_eq, k, lx_int(f, 0)), none = fft_number(t, 0);
	a.im = lx_select(f, first, none, a.im);
	b.im = lx_select(f, first, none, b.im);
	return fft_exchange(t, fft_half(t, a, b, fft_root(t, lx_add(f, k, lx_int(f, t->turns)))));
}

/* Returns the number of elements of a line of the operand, or of the result. */
static Lx elements_of(Fft *t, bool operand)
{
	return t->real && operand == t->exchanged ? lx_add(t->f, t->n, lx_int(t->f, 1)) : t->n;
}

/* ---- tiles ---- */

/* Lines whose pairs are contiguous are read and written by tiles: as many numbers of each line as
 * there are lanes are a row, and the rows of all lines are transposed. So each line of a cache is
 * used as a whole, also where the lines lie a power of two apart, which maps them to one set. An
 * operand that is computed from such lines is read by tiles too (BY_VALUE): a row is what the
 * operand is for as many elements of a line as there are lanes, the real or the imaginary parts. */

/* Whether the parts lie at these offsets in the buffer as pairs that are contiguous along the
 * axis. */
static bool has_rows(const Fft *t, uint32_t axis, Sym re, Sym im, BufId buf)
{
	const Nest *nest = t->s->e.nest;
	return t->type.lanes > 1 && buf_of(t->s->e.l, buf)->dtype == t->type.dtype &&
	       nest_coef_is(nest, re, axis, 2) &&
	       sym_eq(t->s->e.syms, sym_addi(t->s->e.syms, re, 1), im) == YES;
}

static bool is_plain(const KxData *x)
{
	return x->kind == KX_LOAD && !x->guard.i;
}

typedef struct {
	const Fft *t;
	bool *seen;     /* by expression */
	bool may, pays; /* each load is near along a line; one is not near across lines */
} Near;

/* Whether neighbours along the axis are at most a pair apart. */
static bool is_near(const Nest *nest, Sym offset, uint32_t axis, bool *moves)
{
	Sym coef;
	int64_t step;
	if (!nest_coef(nest, offset, axis, &coef) || !sym_is_const(nest->l->ir->syms, coef, &step))
		return false;
	*moves = step != 0;
	return step >= 0 && step <= 2;
}

static void visit_loads(Near *n, Kx x)
{
	const Eval *e = &n->t->s->e;
	const KxData *d = &e->k->kx.data[x.i];
	if (!x.i || n->seen[x.i])
		return;
	n->seen[x.i] = true;
	if (d->kind == KX_LOAD) {
		const Sym offset = e->nest->offset[x.i];
		bool along = false, across = false;
		n->may &= is_near(e->nest, offset, n->t->axis, &along);
		n->pays |= !is_near(e->nest, offset, e->lanes.axis, &across) && along;
	}
	for (uint32_t k = 0; k < d->nin; k++)
		visit_loads(n, d->in[k]);
	visit_loads(n, d->guard);
	visit_loads(n, d->other);
}

static bool is_near_along_lines(const Fft *t, Kx re, Kx im)
{
	const Eval *e = &t->s->e;
	if (t->type.lanes == 1)
		return false;
	Near n = {.t = t, .seen = ARENA_ARRAY(e->arena, bool, e->k->kx.n), .may = true};
	visit_loads(&n, re);
	visit_loads(&n, im);
	return n.may && n.pays;
}

static void find_tiles(Fft *t)
{
	const Eval *e = &t->s->e;
	const Stage *st = e->k->stage.data;
	Kx re = st[t->re].value, im = st[t->im].value;
	const KxData *x = &e->k->kx.data[re.i], *y = &e->k->kx.data[im.i];
	const Sym from[2] = {e->nest->offset[re.i], e->nest->offset[im.i]};
	const Sym to[2] = {e->nest->store[t->re], e->nest->store[t->im]};
	const bool plain = is_plain(x) && is_plain(y) && x->buf.i == y->buf.i;
	if (plain && has_rows(t, t->axis, from[0], from[1], x->buf))
		t->as.operand = BY_PAIRS;
	else if (plain && has_rows(t, e->lanes.axis, from[0], from[1], x->buf))
		t->as.operand = BY_NEIGHBOURS;
	else if (is_near_along_lines(t, re, im))
		t->as.operand = BY_VALUE;
	if (has_rows(t, t->axis, to[0], to[1], st[t->re].store.buf))
		t->as.result = BY_PAIRS;
	else if (has_rows(t, e->lanes.axis, to[0], to[1], st[t->re].store.buf))
		t->as.result = BY_NEIGHBOURS;
}

/* Computes the masks of the pairs of neighbouring lines, if there may be fewer lines than lanes. */
static void find_pairs(Fft *t)
{
	LoopFn *f = t->f;
	const uint32_t lanes = t->type.lanes;
	if (!t->s->e.lanes.mask.i ||
	    (t->as.operand != BY_NEIGHBOURS && t->as.result != BY_NEIGHBOURS))
		return;
	Lx n = fft_let_index(t, "numbers", lx_mul(f, fft_lines_at_hand(t).count, lx_int(f, 2)));
	t->as.there[0] = lx_var(f, ls_let(f, "there", lx_mask(f, n, lanes)));
	t->as.there[1] =
		lx_var(f, ls_let(f, "there", lx_mask(f, lx_sub(f, n, lx_int(f, lanes)), lanes)));
}

Lines fft_lines_at_hand(Fft *t)
{
	const Eval *e = &t->s->e;
	const uint32_t axis = e->lanes.axis;
	Lines l = {.first = e->at[axis], .some = e->lanes.mask.i != 0};
	if (l.some)
		l.count = fft_let_index(t, "lines", lx_sub(t->f, cpu_limit(t->s, axis), l.first));
	return l;
}

Lx fft_line_of(Fft *t, const Lines *l, Lx line)
{
	if (l->some)
		line = lx_min(t->f, line, lx_sub(t->f, l->count, lx_int(t->f, 1)));
	return fft_let_index(t, "line", lx_add(t->f, l->first, line));
}

/* Returns the value of `offset` for row r of a tile, which is line r, from element `at` on. */
static Lx row_offset(Fft *t, const Lines *l, uint32_t r, Lx at, Sym offset)
{
	Eval *e = &t->s->e;
	eval_at(e, e->lanes.axis, fft_line_of(t, l, lx_int(t->f, r)));
	eval_at(e, t->axis, at);
	Lx where = fft_let_index(t, "row", eval_index(e, offset));
	eval_at(e, e->lanes.axis, l->first);
	return where;
}

/* Loads a tile of a stored operand into the room `to`, transposed, from element `at` on. mask: of
 * the numbers that a row has; none: all. */
static void load_tile(Fft *t, const Lines *l, Place to, Lx at, Lx mask)
{
	const Eval *e = &t->s->e;
	const Kx re = e->k->stage.data[t->re].value;
	LMem mem = eval_load_memory(&t->s->e, re);
	Lx *row = ARENA_ARRAY(e->arena, Lx, t->type.lanes);
	for (uint32_t r = 0; r < t->type.lanes; r++) {
		Lx offset = row_offset(t, l, r, at, e->nest->offset[re.i]);
		row[r] = lx_var(t->f, ls_load(t->f, "row", mem, offset, t->type, mask));
	}
	transpose_lanes(t->s, row);
	to.exchanged = false;
	for (uint32_t c = 0; c < t->type.lanes; c++)
		ls_store(t->f, t->rooms,
			 address(t, to, lx_add(t->f, at, lx_int(t->f, c / 2)), c % 2), row[c],
			 (Lx){0});
}

/* Computes a tile of the operand into the room `to`, transposed, from element `at` on. mask: of the
 * elements that there are; none: all. */
static void evaluate_tile(Fft *t, const Lines *l, Place to, Lx at, Lx mask)
{
	Eval *e = &t->s->e;
	const EvalLanes lines = e->lanes;
	const uint32_t n = t->type.lanes, part[2] = {t->re, t->im};
	Lx *row = ARENA_ARRAY(e->arena, Lx, 2 * n);
	eval_at(e, t->axis, at);
	eval_lanes(e, t->axis, n);
	eval_mask(e, mask);
	for (uint32_t r = 0; r < n; r++) {
		eval_at(e, lines.axis, fft_line_of(t, l, lx_int(t->f, r)));
		for (uint32_t i = 0; i < 2; i++)
			row[i * n + r] = lx_var(t->f, ls_let(t->f, "row", fft_value(t, part[i])));
	}
	eval_lanes(e, lines.axis, n);
	eval_mask(e, lines.mask);
	eval_at(e, lines.axis, l->first);
	to.exchanged = false;
	for (uint32_t i = 0; i < 2; i++) {
		transpose_lanes(t->s, &row[i * n]);
		for (uint32_t c = 0; c < n; c++)
			ls_store(t->f, t->rooms,
				 address(t, to, lx_add(t->f, at, lx_int(t->f, c)), i),
				 row[i * n + c], (Lx){0});
	}
}

static void store_tile(Fft *t, const Lines *l, Place from, Lx at, Lx mask)
{
	const Eval *e = &t->s->e;
	LMem mem = eval_memory(&t->s->e, e->k->stage.data[t->re].store.buf);
	Lx *row = ARENA_ARRAY(e->arena, Lx, t->type.lanes);
	Lx last = lx_sub(t->f, elements_of(t, false), lx_int(t->f, 1));
	from.exchanged = false;
	for (uint32_t c = 0; c < t->type.lanes; c++) {
		Lx element = lx_add(t->f, at, lx_int(t->f, c / 2));
		if (mask.i) /* what is behind the line was never written */
			element = lx_min(t->f, element, last);
		if (t->real && !t->exchanged) {
			Cx y = half_of(t, from, fft_let_index(t, "element", element));
			row[c++] = y.re;
			row[c] = y.im;
			continue;
		}
		Lx offset = address(t, from, element, c % 2);
		row[c] = lx_var(t->f, ls_load(t->f, "x", t->rooms, offset, t->type, (Lx){0}));
	}
	transpose_lanes(t->s, row);
	for (uint32_t r = 0; r < t->type.lanes; r++) {
		Lx offset = row_offset(t, l, r, at, e->nest->store[t->re]);
		if (l->some && r)
			ls_if(t->f, lx_cmp(t->f, SC_lt, lx_int(t->f, r), l->count));
		ls_store(t->f, mem, offset, row[r], mask);
		if (l->some && r)
			ls_end(t->f);
	}
}

/* Writes the loop over all tiles of the lines at hand. each: the lanes of a row that an element
 * takes. */
static void turn_lines(Fft *t, Place room, bool operand, int64_t each,
		       void (*tile)(Fft *, const Lines *, Place, Lx, Lx))
{
	LoopFn *f = t->f;
	const Lines l = fft_lines_at_hand(t);
	const int64_t lanes = t->type.lanes, elements = lanes / each;
	Lx n = fft_let_index(t, "n", elements_of(t, operand));
	Lx rest = lx_mod(f, n, lx_int(f, elements)),
	   end = fft_let_index(t, "whole", lx_sub(f, n, rest));
	Lx at = lx_var(f, ls_for(f, "at", lx_int(f, 0), end, elements));
	tile(t, &l, room, at, (Lx){0});
	ls_end(f);
	if (sym_divides(t->s->e.syms, elements, t->s->e.nest->extent[t->axis]) &&
	    !(t->real && operand == t->exchanged))
		return;
	ls_if(f, lx_cmp(f, SC_lt, end, n));
	Lx mask = lx_mask(f, lx_mul(f, rest, lx_int(f, each)), (uint32_t)lanes);
	tile(t, &l, room, end, lx_var(f, ls_let(f, "tail", mask)));
	ls_end(f);
}

/* Copies the operand into a room, and the result out of a room. */
static void load_lines(Fft *t, Place to)
{
	if (t->as.operand == BY_PAIRS) {
		turn_lines(t, to, true, 2, load_tile);
		return;
	}
	if (t->as.operand == BY_VALUE) {
		turn_lines(t, to, true, 1, evaluate_tile);
		return;
	}
	Lx k = lx_var(t->f, ls_for(t->f, "k", lx_int(t->f, 0), t->n, 1));
	put(t, to, k, get(t, (Place){.where = IN_OPERAND}, k));
	ls_end(t->f);
}

static void store_lines(Fft *t, Place from)
{
	if (t->as.result == BY_PAIRS) {
		turn_lines(t, from, false, 2, store_tile);
		return;
	}
	Lx k = lx_var(t->f, ls_for(t->f, "k", lx_int(t->f, 0), elements_of(t, false), 1));
	put(t, (Place){.where = IN_RESULT}, k,
	    t->real && !t->exchanged ? half_of(t, from, k) : get(t, from, k));
	ls_end(t->f);
}

/* ---- steps ---- */

/* A step: the names are those of the top of the file. */
typedef struct {
	Place from, to;
	uint32_t codelet; /* 0: the factor is any number */
	Lx r, s, m;
	bool last; /* m is 1 */
	bool joins; /* `from` is a half, from which pairs are made */
} FftStep;

static Cx read(Fft *t, const FftStep *st, Lx at)
{
	return st->joins ? pair_of_half(t, st->from, fft_let_index(t, "at", at))
			 : get(t, st->from, at);
}

/* Returns the place q + s * block of an element in a line. block: p + m j of the operand, or r p +
 * k of the result, see the top. */
static Lx place_in_line(Fft *t, const FftStep *st, Lx q, Lx block)
{
	return lx_add(t->f, q, lx_mul(t->f, st->s, block));
}

static bool is_one_round(Fft *t, Lx n, int64_t step)
{
	int64_t count;
	return lx_is_int(t->f, n, &count) && count == step;
}

Lx fft_loop(Fft *t, const char *name, Lx n, int64_t step)
{
	Lx zero = lx_int(t->f, 0);
	return is_one_round(t, n, step) ? zero : lx_var(t->f, ls_for(t->f, name, zero, n, step));
}

void fft_end_loop(Fft *t, Lx n, int64_t step)
{
	if (!is_one_round(t, n, step))
		ls_end(t->f);
}

static void few_elements(Fft *t, const FftStep *st, Lx p)
{
	LoopFn *f = t->f;
	Cx a[MAX_CODELET], w[MAX_CODELET];
	const uint32_t r = st->codelet;
	for (uint32_t k = 1; k < r && !st->last; k++)
		w[k] = fft_let(t, "w", fft_root(t, lx_mul(f, lx_mul(f, p, st->s), lx_int(f, k))));
	Lx q = fft_loop(t, "q", st->s, 1);
	for (uint32_t j = 0; j < r; j++)
		a[j] = read(t, st,
			    place_in_line(t, st, q, lx_add(f, p, lx_mul(f, st->m, lx_int(f, j)))));
	fft_transform(t, a, r);
	for (uint32_t k = 0; k < r; k++) {
		Lx block = lx_add(f, lx_mul(f, p, lx_int(f, r)), lx_int(f, k));
		put(t, st->to, place_in_line(t, st, q, block),
		    k && !st->last ? fft_mul(t, a[k], w[k]) : a[k]);
	}
	fft_end_loop(t, st->s, 1);
}

/* Writes a step for a factor without a codelet: each result is a sum, with roots from the table. */
static void many_elements(Fft *t, const FftStep *st, Lx p)
{
	LoopFn *f = t->f;
	Lx zero = lx_int(f, 0), step = fft_let_index(t, "step", lx_div(f, t->n, st->r));
	Lx q = fft_loop(t, "q", st->s, 1), k = lx_var(f, ls_for(f, "k", zero, st->r, 1));
	Lv re = ls_var(f, "re", fft_number(t, 0)), im = ls_var(f, "im", fft_number(t, 0)),
	   turn = ls_var(f, "turn", zero);
	Lx j = lx_var(f, ls_for(f, "j", zero, st->r, 1));
	Lx now = fft_let_index(t, "now", lx_var(f, turn));
	Cx x = read(t, st, place_in_line(t, st, q, lx_add(f, p, lx_mul(f, st->m, j))));
	Cx sum = fft_mul_add(t, x, fft_root(t, lx_mul(f, now, step)),
			     (Cx){lx_var(f, re), lx_var(f, im)});
	ls_set(f, re, sum.re);
	ls_set(f, im, sum.im);
	Lx next = fft_let_index(t, "next", lx_add(f, now, k));
	ls_set(f, turn, lx_select(f, lx_cmp(f, SC_ge, next, st->r), lx_sub(f, next, st->r), next));
	ls_end(f);
	Cx y = {lx_var(f, re), lx_var(f, im)};
	if (!st->last)
		y = fft_mul(t, y, fft_root(t, lx_mul(f, lx_mul(f, p, st->s), k)));
	put(t, st->to, place_in_line(t, st, q, lx_add(f, lx_mul(f, p, st->r), k)), y);
	ls_end(f);
	fft_end_loop(t, st->s, 1);
}

static void run_step(Fft *t, const FftStep *st)
{
	Lx p = fft_loop(t, "p", st->m, 1);
	if (st->codelet)
		few_elements(t, st, p);
	else
		many_elements(t, st, p);
	fft_end_loop(t, st->m, 1);
}

/* ---- a length that is a number ---- */

/* Returns the place of room k, 0 or 1. room: the elements of a room. */
static Place room_of(Fft *t, Lx base, Lx room, uint32_t k)
{
	return (Place){.where = IN_ROOM, .room = k ? lx_add(t->f, base, room) : base};
}

static void known_length(Fft *t, int64_t n, Lx base, Lx room)
{
	LoopFn *f = t->f;
	int64_t factor[MAX_STEPS], s = 1;
	const uint32_t count = fft_factors(n, factor);
	Place at = {.where = IN_OPERAND};
	if (t->as.operand == BY_PAIRS || t->as.operand == BY_VALUE) {
		at = room_of(t, base, room, 1);
		at.exchanged = t->exchanged && !t->real;
		load_lines(t, at);
	}
	const bool stores = t->as.result == BY_PAIRS || (t->real && !t->exchanged);
	for (uint32_t i = 0; i < count; i++) {
		const int64_t r = factor[i];
		FftStep st = {.r = lx_int(f, r),
			      .s = lx_int(f, s),
			      .m = lx_int(f, n / (r * s)),
			      .from = at};
		st.last = i + 1 == count;
		st.joins = i == 0 && t->real && t->exchanged;
		at = st.last && !stores ? (Place){.where = IN_RESULT}
					: room_of(t, base, room, i % 2);
		at.exchanged = st.last && stores && t->exchanged;
		st.to = at;
		st.codelet = fft_has_codelet(r) ? (uint32_t)r : 0;
		run_step(t, &st);
		s *= r;
	}
	if (stores)
		store_lines(t, at);
}

/* ---- a length that is known when the kernel runs ---- */

/* The state of the steps. */
typedef struct {
	Lv left, s, from, to;
} Rest;

/* Writes a step with factor r, by a codelet or, if that is 0, for any r, and exchanges the
 * rooms. */
static void run_factor(Fft *t, const Rest *v, Lx r, uint32_t codelet)
{
	LoopFn *f = t->f;
	Lx from = fft_let_index(t, "from", lx_var(f, v->from)),
	   to = fft_let_index(t, "to", lx_var(f, v->to));
	Lx m = fft_let_index(t, "m", lx_div(f, lx_var(f, v->left), r)),
	   s = fft_let_index(t, "s", lx_var(f, v->s));
	FftStep st = {.from = {IN_ROOM, from, t->exchanged},
		      .to = {IN_ROOM, to, t->exchanged},
		      .codelet = codelet,
		      .r = r,
		      .s = s,
		      .m = m};
	run_step(t, &st);
	ls_set(f, v->left, m);
	ls_set(f, v->s, lx_mul(f, s, r));
	ls_set(f, v->from, to);
	ls_set(f, v->to, from);
}

/* Returns the least factor of `left`, which has no factor with a codelet. */
static Lx any_factor(Fft *t, Lx left)
{
	LoopFn *f = t->f;
	LType bit = {DT_bool, 1};
	Lx two = lx_int(f, 2);
	Lv p = ls_var(f, "factor", lx_int(f, 3));
	Lx now = lx_var(f, p), none = lx_cmp(f, SC_ne, lx_mod(f, left, now), lx_int(f, 0));
	Lx small = lx_cmp(f, SC_le, lx_mul(f, now, now), left);
	ls_while(f, lx_sc(f, SC_and, bit, (Lx[]){none, small}, 2));
	ls_set(f, p, lx_add(f, now, two));
	ls_end(f);
	return fft_let_index(t, "r", lx_select(f, small, now, left));
}

static void any_length(Fft *t, Lx base, Lx room)
{
	static const uint32_t codelet[] = {8, 4, 2, 3, 5, 7};
	enum { N = sizeof codelet / sizeof *codelet };
	LoopFn *f = t->f;
	Lx other = lx_add(f, base, room), one = lx_int(f, 1);
	Place at = room_of(t, base, room, 0);
	at.exchanged = t->exchanged;
	load_lines(t, at);
	Rest v = {ls_var(f, "left", t->n), ls_var(f, "s", one), ls_var(f, "from", base),
		  ls_var(f, "to", other)};
	ls_while(f, lx_cmp(f, SC_gt, lx_var(f, v.left), one));
	Lx left = fft_let_index(t, "now", lx_var(f, v.left));
	for (uint32_t i = 0; i < N; i++) {
		Lx r = lx_int(f, codelet[i]);
		ls_if(f, lx_cmp(f, SC_eq, lx_mod(f, left, r), lx_int(f, 0)));
		run_factor(t, &v, r, codelet[i]);
		ls_else(f);
	}
	run_factor(t, &v, any_factor(t, left), 0);
	for (uint32_t i = 0; i < N; i++)
		ls_end(f);
	ls_end(f);
	at.room = fft_let_index(t, "at", lx_var(f, v.from));
	store_lines(t, at);
}

/* ---- rooms ---- */

Lx fft_rooms(Fft *t, Sym count, int64_t limit, Sym ntasks)
{
	Cpu *s = t->s;
	SymTab *syms = s->e.syms;
	int64_t n;
	if (sym_is_const(syms, count, &n) && n * dtype_size(t->type.dtype) <= limit) {
		t->rooms = ls_local(t->f, "lines", t->type.dtype, (uint64_t)n);
		return lx_int(t->f, 0);
	}
	SchedTemp temp = {
		.name = "lines", .dtype = t->type.dtype, .numel = sym_mul(syms, count, ntasks)};
	temp.first = temp.last = s->out->phase.n;
	t->rooms = eval_temp_memory(&s->e, code_temp(&s->code, temp));
	return fft_let_index(t, "rooms",
			     lx_mul(t->f, lx_var(t->f, t->f->task), eval_size(&s->e, count)));
}

/* Makes two rooms for the lines at hand, and returns the offset of the first one. Sets *room to the
 * elements of each. */
static Lx make_rooms(Fft *t, Sym n, Sym ntasks, Lx *room)
{
	SymTab *syms = t->s->e.syms;
	if (t->real)
		n = sym_addi(syms, n, 1);
	const uint32_t tile = t->as.operand == BY_VALUE ? t->type.lanes : t->type.lanes / 2;
	if (tile) /* whole tiles */
		n = sym_muli(syms, sym_ceildiv(syms, n, sym_int(syms, tile)), tile);
	Sym one = sym_muli(syms, n, 2 * (int64_t)t->type.lanes);
	*room = eval_size(&t->s->e, one);
	return fft_rooms(t, sym_muli(syms, one, 2),
			 t->s->target->isa.of_block ? THREAD_ROOM_BYTES : ROOM_BYTES, ntasks);
}

void cpu_fft(Cpu *s, uint32_t stage, Sym ntasks)
{
	const Stage *st = s->e.k->stage.data;
	Fft t = {.s = s,
		 .f = s->e.f,
		 .re = stage,
		 .exchanged = st[stage].fft.inverse,
		 .real = st[stage].fft.real};
	t.im = st[t.re].fft.next;
	t.root_re = st[t.im].fft.next;
	t.root_im = st[t.root_re].fft.next;
	t.axis = st[t.re].red[0];
	t.table = st[t.root_re].red[0];
	t.type = (LType){stage_acc(&st[stage]), s->e.lanes.n};
	const Sym length = s->e.nest->extent[t.axis];
	t.n = eval_size(&s->e, length);
	int64_t n = 0;
	const bool known = sym_is_const(s->e.syms, length, &n);
	if (sym_is_const(s->e.syms, s->e.nest->extent[t.table], &t.turns))
		t.turns -= n + 1;
	find_tiles(&t);
	if (axes_transforms_along(s->e.nest, s->target, stage)) {
		fft_along_line(&t, n, ntasks);
	} else if (t.as.operand == BY_PAIRS && t.as.result == BY_PAIRS && fft_is_short(&t, n)) {
		fft_short_lines(&t, n);
	} else {
		Lx room, base = make_rooms(&t, length, ntasks, &room);
		find_pairs(&t);
		if (known)
			known_length(&t, n, base, room);
		else
			any_length(&t, base, room);
	}
	eval_at(&s->e, t.axis, (Lx){0});
	eval_at(&s->e, t.table, (Lx){0});
}
