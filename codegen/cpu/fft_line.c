/* Transforms of lines whose pairs are contiguous.
 *
 * Of one line, with lanes along it, so that its rooms stay in the nearest cache. The steps are
 * those of fft.c, the first one with the factor 16:
 *
 *     step 1:  a[j] = x[p + m j]   for 16 j, lanes are neighbouring p, m = n / 16
 *              the 16 vectors of results, of number k, are transposed: lanes are neighbouring k
 *              y[16 p + k] = exp(-2 pi i k p / n) * result k
 *     others:  lanes are neighbouring q, of which there are s, a multiple of 16
 *
 * In the rooms a vector of imaginary parts follows each vector of real ones. The roots of step 1
 * stand in the table behind the n others, in the order in which they are used.
 *
 * Of real transforms the last step leaves the real parts behind each other, and so the imaginary
 * parts, and a pass over them makes the half; the inverse makes pairs of the half as step 1 reads
 * it.
 *
 * Of lines of 16 m elements with m less than lanes: as many lines as fill the lanes of step 1 are
 * transformed side by side, in registers, and separated by the transposition. */
#include "codegen/cpu/fft.h"

enum {
	FIRST = 16,             /* the first factor */
	LINE_BYTES = 160 << 10, /* of both rooms, on the stack of a task */
	APART = 32              /* vectors between the rooms, so that their addresses differ modulo
	                           pages */
};

/* A step: the names are those of fft.c. */
typedef struct {
	Lx from, to; /* rooms */
	uint32_t r;
	int64_t s, m;
	bool last; /* stores the result */
	bool apart; /* the last one of a real transform: leaves parts behind each other in a room */
} LineStep;

static Lx in_room(Fft *t, Lx room, Lx at, uint32_t part)
{
	LoopFn *f = t->f;
	Lx offset = lx_add(f, room, lx_mul(f, at, lx_int(f, 2)));
	return lx_add(f, offset, lx_int(f, part * (int64_t)t->type.lanes));
}

static Lx load(Fft *t, LMem mem, Lx offset)
{
	return lx_var(t->f, ls_load(t->f, "x", mem, offset, t->type, (Lx){0}));
}

static Cx get(Fft *t, Lx room, Lx at)
{
	return (Cx){load(t, t->rooms, in_room(t, room, at, 0)),
		    load(t, t->rooms, in_room(t, room, at, 1))};
}

static void put(Fft *t, Lx room, Lx at, Cx x)
{
	ls_store(t->f, t->rooms, in_room(t, room, at, 0), x.re, (Lx){0});
	ls_store(t->f, t->rooms, in_room(t, room, at, 1), x.im, (Lx){0});
}

/* Returns, by lane, 1 where the guard of a load holds at the point, else 0. */
static Lx is_there(Fft *t, Kx load)
{
	Eval *e = &t->s->e;
	const Kx guard = e->k->kx.data[load.i].guard;
	Lx one = fft_number(t, 1);
	return guard.i ? lx_select(t->f, eval_vector(e, guard), one, fft_number(t, 0)) : one;
}

/* Sets mask[] to the masks of the two vectors of pairs at the point; to none if loads have no
 * guard. */
static void find_masks(Fft *t, Lx *mask)
{
	const Eval *e = &t->s->e;
	const Kx re = e->k->stage.data[t->re].value, im = e->k->stage.data[t->im].value;
	mask[0] = mask[1] = (Lx){0};
	if (!e->k->kx.data[re.i].guard.i && !e->k->kx.data[im.i].guard.i)
		return;
	Lx a = is_there(t, re), b = is_there(t, im);
	for (uint32_t i = 0; i < 2; i++) {
		Lx both = lx_shuffle(t->f, i ? SHUFFLE_ZIP_HIGH : SHUFFLE_ZIP_LOW, a, b);
		mask[i] = lx_var(
			t->f, ls_let(t->f, "there", lx_cmp(t->f, SC_ne, both, fft_number(t, 0))));
	}
}

static Cx stored_pairs(Fft *t, Lx at)
{
	Eval *e = &t->s->e;
	const Kx re = e->k->stage.data[t->re].value;
	Lx mask[2];
	eval_at(e, t->axis, at);
	LMem mem = eval_load_memory(e, re);
	Lx offset = fft_let_index(t, "at", eval_index(e, e->nest->offset[re.i]));
	find_masks(t, mask);
	return fft_load_pairs(t, mem, offset, mask);
}

static Cx reversed(Fft *t, Cx x)
{
	return fft_let(t, "x",
		       (Cx){lx_shuffle(t->f, SHUFFLE_REVERSE, x.re, x.re),
			    lx_shuffle(t->f, SHUFFLE_REVERSE, x.im, x.im)});
}

/* Returns the first element of the vector whose reverse has the elements n - k, n - k - 1, and so
 * on. */
static Lx mirror(Fft *t, Lx k)
{
	return lx_sub(t->f, lx_sub(t->f, t->n, lx_int(t->f, t->type.lanes - 1)), k);
}

static void put_pairs(Fft *t, LMem mem, Lx offset, Cx x)
{
	fft_store_pairs(t, mem, offset, fft_exchange(t, x), (const Lx[2]){{0}, {0}});
}

static void put_result(Fft *t, Lx at, Cx x)
{
	Eval *e = &t->s->e;
	LMem mem = eval_memory(e, e->k->stage.data[t->re].store.buf);
	eval_at(e, t->axis, at);
	put_pairs(t, mem, fft_let_index(t, "at", eval_index(e, e->nest->store[t->re])), x);
}

/* Whether the table has roots for step 1. */
static bool has_first_roots(const Fft *t, int64_t n)
{
	int64_t table;
	return sym_is_const(t->s->e.syms, t->s->e.nest->extent[t->table], &table) && table == 2 * n;
}

/* Returns the roots of the table from number k on, one in each lane. */
static Cx neighbouring_roots(Fft *t, Lx k)
{
	Eval *e = &t->s->e;
	eval_lanes(e, t->table, t->type.lanes);
	Cx w = fft_let(t, "w", fft_root(t, k));
	eval_lanes(e, t->axis, t->type.lanes);
	return w;
}

/* Returns the vector that step 1 reads, from element `at` on. first: `at` may be 0. */
static Cx get_operand(Fft *t, Lx at, bool first)
{
	LoopFn *f = t->f;
	const uint32_t lanes = t->type.lanes;
	Cx a = stored_pairs(t, at);
	if (!t->real || !t->exchanged)
		return fft_exchange(t, a);
	Cx b = reversed(t, stored_pairs(t, mirror(t, at)));
	if (first) { /* imaginary parts that do not count */
		Lx zero = lx_int(f, 0), where = lx_ramp(f, at, lx_int(f, 1), lanes);
		Lx counts = lx_cmp(f, SC_ne, where, lx_splat(f, zero, lanes)),
		   none = fft_number(t, 0);
		a.im = lx_select(f, counts, a.im, none);
		b.im = lx_select(f, counts, b.im, none);
	}
	return fft_exchange(
		t, fft_half(t, a, b, neighbouring_roots(t, lx_add(f, at, lx_int(f, t->turns)))));
}

static void first_step(Fft *t, int64_t n, Lx to)
{
	LoopFn *f = t->f;
	const int64_t m = n / FIRST;
	const uint32_t lanes = t->type.lanes;
	Cx a[FIRST];
	Lx re[FIRST], im[FIRST], p = fft_loop(t, "p", lx_int(f, m), lanes);
	for (uint32_t j = 0; j < FIRST; j++)
		a[j] = get_operand(t, lx_add(f, p, lx_int(f, m * j)), j == 0);
	fft_transform(t, a, FIRST);
	for (uint32_t k = 0; k < FIRST; k++) {
		re[k] = a[k].re;
		im[k] = a[k].im;
	}
	for (uint32_t k = 0; k < FIRST; k += lanes) {
		transpose_lanes(t->s, &re[k]);
		transpose_lanes(t->s, &im[k]);
		for (uint32_t i = 0; i < lanes; i++) {
			Lx at = lx_add(f, lx_mul(f, p, lx_int(f, FIRST)), lx_int(f, FIRST * i + k));
			Cx w = neighbouring_roots(t, lx_add(f, at, lx_int(f, n)));
			put(t, to, at, fft_mul(t, (Cx){re[k + i], im[k + i]}, w));
		}
	}
	fft_end_loop(t, lx_int(f, m), lanes);
}

/* Returns the distance from the real to the imaginary parts of a line whose parts lie apart: its
 * elements, the first one again, and padding of less than two vectors. */
static Lx parts_apart(Fft *t)
{
	return lx_add(t->f, t->n, lx_int(t->f, 2 * t->type.lanes));
}

static void put_apart(Fft *t, Lx room, Lx at, Cx x)
{
	Lx offset = lx_add(t->f, room, at);
	ls_store(t->f, t->rooms, offset, x.re, (Lx){0});
	ls_store(t->f, t->rooms, lx_add(t->f, offset, parts_apart(t)), x.im, (Lx){0});
}

static Cx get_apart(Fft *t, Lx room, Lx at, LType type)
{
	LoopFn *f = t->f;
	Lx offset = lx_add(f, room, at);
	return (Cx){lx_var(f, ls_load(f, "z", t->rooms, offset, type, (Lx){0})),
		    lx_var(f, ls_load(f, "z", t->rooms, lx_add(f, offset, parts_apart(t)), type,
				      (Lx){0}))};
}

/* Stores the result of a real transform, computed from the pairs in the room. */
static void put_half(Fft *t, Lx room)
{
	Eval *e = &t->s->e;
	LoopFn *f = t->f;
	const uint32_t lanes = t->type.lanes;
	const LType one = {t->type.dtype, 1};
	Cx first = get_apart(t, room, lx_int(f, 0), one);
	put_apart(t, room, t->n, first);
	Lx k = fft_loop(t, "k", t->n, lanes);
	Cx a = get_apart(t, room, k, t->type),
	   b = reversed(t, get_apart(t, room, mirror(t, k), t->type));
	put_result(t, k,
		   fft_half(t, a, b, neighbouring_roots(t, lx_add(f, k, lx_int(f, t->turns)))));
	fft_end_loop(t, t->n, lanes);
	LMem mem = eval_memory(e, e->k->stage.data[t->re].store.buf);
	eval_at(e, t->axis, t->n);
	Lx offset = fft_let_index(t, "at", eval_index(e, e->nest->store[t->re]));
	ls_store(f, mem, offset, lx_sub(f, first.re, first.im), (Lx){0});
	ls_store(f, mem, lx_add(f, offset, lx_int(f, 1)), lx_float(f, one, 0), (Lx){0});
}

static void next_step(Fft *t, const LineStep *st)
{
	LoopFn *f = t->f;
	Cx a[MAX_CODELET], w[MAX_CODELET];
	const uint32_t r = st->r, lanes = t->type.lanes;
	Lx p = fft_loop(t, "p", lx_int(f, st->m), 1);
	for (uint32_t k = 1; k < r && st->m > 1; k++)
		w[k] = fft_let(t, "w", fft_root(t, lx_mul(f, p, lx_int(f, st->s * k))));
	Lx q = fft_loop(t, "q", lx_int(f, st->s), lanes);
	Lx in = lx_add(f, q, lx_mul(f, p, lx_int(f, st->s))),
	   out = lx_add(f, q, lx_mul(f, p, lx_int(f, st->s * r)));
	for (uint32_t j = 0; j < r; j++)
		a[j] = get(t, st->from, lx_add(f, in, lx_int(f, st->s * st->m * j)));
	fft_transform(t, a, r);
	for (uint32_t k = 0; k < r; k++) {
		Lx at = lx_add(f, out, lx_int(f, st->s * k));
		Cx y = k && st->m > 1 ? fft_mul(t, a[k], w[k]) : a[k];
		if (st->apart)
			put_apart(t, st->to, at, y);
		else if (st->last)
			put_result(t, at, y);
		else
			put(t, st->to, at, y);
	}
	fft_end_loop(t, lx_int(f, st->s), lanes);
	fft_end_loop(t, lx_int(f, st->m), 1);
}

void fft_along_line(Fft *t, int64_t n, Sym ntasks)
{
	Eval *e = &t->s->e;
	const EvalLanes outer = e->lanes;
	const uint32_t lanes = target_lanes(t->s->target, t->type.dtype);
	int64_t factor[MAX_STEPS], s = FIRST;
	const uint32_t count = fft_factors(n / FIRST, factor);
	t->type.lanes = lanes;
	eval_lanes(e, t->axis, lanes);
	const int64_t each = 2 * n + APART * lanes;
	Lx base = fft_rooms(t, sym_int(e->syms, 2 * each), LINE_BYTES, ntasks);
	Lx room[2] = {base, lx_add(t->f, base, lx_int(t->f, each))};
	first_step(t, n, room[0]);
	for (uint32_t i = 0; i < count; i++) {
		LineStep st = {.from = room[i % 2],
			       .to = room[(i + 1) % 2],
			       .r = (uint32_t)factor[i],
			       .s = s};
		s *= factor[i];
		st.m = n / s;
		st.last = i + 1 == count;
		st.apart = st.last && t->real && !t->exchanged;
		next_step(t, &st);
		if (st.apart)
			put_half(t, st.to);
	}
	eval_lanes(e, outer.axis, outer.n);
}

/* ---- short lines ---- */

enum { MOST_BESIDE = 4 }; /* lines that are transformed side by side */

bool fft_is_short(const Fft *t, int64_t n)
{
	const int64_t lanes = t->type.lanes, m = n / FIRST;
	return lanes <= FIRST && !t->real && n % FIRST == 0 && has_first_roots(t, n) &&
	       (m * 2 == lanes || m * MOST_BESIDE == lanes);
}

/* Lines that are transformed side by side. */
typedef struct {
	uint32_t n, m; /* lines, of FIRST * m elements each */
	Lx number[MOST_BESIDE], from[MOST_BESIDE], to[MOST_BESIDE]; /* in the group; offsets */
	Cx y[MOST_BESIDE][FIRST]; /* [line][p]: a vector of neighbouring k */
} Beside;

static void find_lines(Fft *t, const Lines *l, Lx group, Beside *b)
{
	Eval *e = &t->s->e;
	const Kx re = e->k->stage.data[t->re].value;
	eval_at(e, t->axis, lx_int(t->f, 0));
	for (uint32_t i = 0; i < b->n; i++) {
		b->number[i] = lx_add(t->f, group, lx_int(t->f, i));
		eval_at(e, e->lanes.axis, fft_line_of(t, l, b->number[i]));
		b->from[i] = fft_let_index(t, "from", eval_index(e, e->nest->offset[re.i]));
		b->to[i] = fft_let_index(t, "to", eval_index(e, e->nest->store[t->re]));
	}
	eval_at(e, e->lanes.axis, l->first);
}

/* Loads vector v of the lines as parts a[]. Lanes are (p, line), or, of four lines, (line / 2, p,
 * line % 2) of two elements j. */
static void get_beside(Fft *t, const Beside *b, uint32_t v, Cx *a)
{
	LoopFn *f = t->f;
	LMem mem = eval_load_memory(&t->s->e, t->s->e.k->stage.data[t->re].value);
	Lx x[MOST_BESIDE];
	Cx c[MOST_BESIDE / 2] = {{{0}, {0}}};
	for (uint32_t i = 0; i < b->n; i++)
		x[i] = load(t, mem, lx_add(f, b->from[i], lx_int(f, (int64_t)v * t->type.lanes)));
	for (uint32_t i = 0; i < b->n / 2; i++)
		c[i] = fft_let(t, "x",
			       (Cx){lx_shuffle(f, SHUFFLE_TURN_EVENS, x[2 * i], x[2 * i + 1]),
				    lx_shuffle(f, SHUFFLE_TURN_ODDS, x[2 * i], x[2 * i + 1])});
	a[0] = c[0];
	if (b->n == 4)
		for (uint32_t i = 0; i < 2; i++) {
			const Shuffle half = i ? SHUFFLE_HIGHS : SHUFFLE_LOWS;
			a[i] = fft_let(t, "x",
				       (Cx){lx_shuffle(f, half, c[0].re, c[1].re),
					    lx_shuffle(f, half, c[0].im, c[1].im)});
		}
	for (uint32_t i = 0; i < b->n / 2; i++)
		a[i] = fft_exchange(t, a[i]);
}

/* Transposes the vectors k to k + lanes of step 1 into elements of each line, b->y, times their
 * roots. */
static void separate(Fft *t, Beside *b, const Cx *a, int64_t n, uint32_t k)
{
	Lx re[FIRST], im[FIRST];
	const uint32_t lanes = t->type.lanes;
	for (uint32_t i = 0; i < lanes; i++) {
		re[i] = a[k + i].re;
		im[i] = a[k + i].im;
	}
	transpose_lanes(t->s, re);
	transpose_lanes(t->s, im);
	for (uint32_t p = 0; p < b->m; p++) {
		Cx w = {{0}, {0}};
		if (p)
			w = neighbouring_roots(t, lx_int(t->f, n + FIRST * p + k));
		for (uint32_t i = 0; i < b->n; i++) {
			const uint32_t lane = i / 2 * 2 * b->m + 2 * p + i % 2;
			Cx y = {re[lane], im[lane]};
			b->y[i][p] = p ? fft_mul(t, y, w) : y;
		}
	}
}

static void put_beside(Fft *t, const Lines *l, Beside *b, uint32_t k)
{
	LoopFn *f = t->f;
	LMem mem = eval_memory(&t->s->e, t->s->e.k->stage.data[t->re].store.buf);
	for (uint32_t i = 0; i < b->n; i++) {
		if (b->m > 1)
			fft_transform(t, b->y[i], b->m);
		if (l->some && i)
			ls_if(f, lx_cmp(f, SC_lt, b->number[i], l->count));
		for (uint32_t p = 0; p < b->m; p++)
			put_pairs(t, mem,
				  lx_add(f, b->to[i], lx_int(f, 2 * ((int64_t)FIRST * p + k))),
				  b->y[i][p]);
		if (l->some && i)
			ls_end(f);
	}
}

void fft_short_lines(Fft *t, int64_t n)
{
	Eval *e = &t->s->e;
	const EvalLanes lines = e->lanes;
	const uint32_t lanes = lines.n;
	const Lines l = fft_lines_at_hand(t);
	Beside b = {.m = (uint32_t)n / FIRST};
	b.n = lanes / b.m;
	Cx a[FIRST];
	Lx end = l.some ? lx_min(t->f, l.count, lx_int(t->f, lanes)) : lx_int(t->f, lanes);
	Lx group = lx_var(t->f, ls_for(t->f, "group", lx_int(t->f, 0), end, b.n));
	find_lines(t, &l, group, &b);
	eval_mask(e, (Lx){0});
	for (uint32_t j = 0, v = 0; j < FIRST; j += b.n / 2, v++)
		get_beside(t, &b, v, &a[j]);
	fft_transform(t, a, FIRST);
	for (uint32_t k = 0; k < FIRST; k += lanes) {
		separate(t, &b, a, n, k);
		put_beside(t, &l, &b, k);
	}
	ls_end(t->f);
	eval_mask(e, lines.mask);
	eval_lanes(e, lines.axis, lanes);
}
