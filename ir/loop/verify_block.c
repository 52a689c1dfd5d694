/* Checks of functions that blocks of threads execute: all threads of a block reach its barriers,
 * all of a warp reach an exchange together, shared memory is no more than there is, and accesses
 * are not known to be misaligned. What depends on sizes and data the interpreter finds. */
#include "ir/loop/verify_priv.h"

#include <stdarg.h>
#include <string.h>

/* In which threads a value is the same, or which go on together. */
typedef enum { ALIKE_BLOCK, ALIKE_WARP, APART } Alike;

/* An integer is `rem` and a multiple of `of`, a power of two. */
typedef struct {
	uint64_t of, rem;
} Residue;

enum { MOST_RESIDUE = 1 << 12 };

typedef struct {
	LoopFn *f;
	uint8_t *var;        /* Alike by variable */
	Lx *let;             /* by variable: its value, if it has only this one */
	const LsData **loop; /* by variable: of which loop */
	uint8_t *alike;      /* Alike + 1 by expression; 0: not known yet in this round */
	uint8_t *lanes;      /* by expression: 1: 32 * a value that a warp has in common + the lane;
	                        2: not known to be */
	bool *exchanges;     /* by expression: has an LX_WARP in it */
	Residue *residue;    /* by expression; of 0: not known yet */
	uint64_t shared;     /* bytes so far */
	uint32_t depth;      /* of loops and branches around */
	bool changed, ok;
} BlockVerifier;

static void fail(BlockVerifier *b, const LsData *s, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void fail(BlockVerifier *b, const LsData *s, const char *fmt, ...)
{
	Text t;
	va_list ap;
	Arena *arena = b->f->ir->ctx->scratch;
	const char *subject = ls_subject(b->f, s);
	text_init(&t, arena);
	subject = *subject ? subject : arena_printf(arena, "%u", ls_number(b->f, s));
	va_start(ap, fmt);
	text_vprintf(&t, fmt, ap);
	va_end(ap);
	b->ok = false;
	ctx_error(b->f->ir->ctx, b->f->name, "loop IR: %s %s: %s", ls_row(s->kind)->name, subject,
		  t.data);
}

static const LxData *at(const BlockVerifier *b, Lx x)
{
	return &b->f->lx.data[x.i];
}

/* ---- which threads have the same value ---- */

static Alike apart(Alike a, Alike b)
{
	return a > b ? a : b;
}

static bool of_warps(const BlockVerifier *b, Lx x)
{
	int64_t n;
	return lx_is_int(b->f, x, &n) && n > 0 && n % WARP == 0;
}

/* Whether consecutive threads of a warp have consecutive values, and those of lane 0 are
 * multiples of WARP. */
static bool has_lanes(BlockVerifier *b, Lx x)
{
	const LxData *d = at(b, x);
	if (b->lanes[x.i])
		return b->lanes[x.i] == 1;
	bool is = d->kind == LX_THREAD;
	if (d->kind == LX_VAR)
		is = b->let[d->u.v.i].i && has_lanes(b, b->let[d->u.v.i]);
	else if (d->kind == LX_SC && (d->sc == SC_rem || d->sc == SC_mod))
		is = has_lanes(b, d->in[0]) && of_warps(b, d->in[1]);
	b->lanes[x.i] = is ? 1 : 2;
	return is;
}

/* Whether an expression has one value for all threads of a warp, which may be another for the next
 * warp. */
static bool splits_warps(BlockVerifier *b, const LxData *d)
{
	int64_t n;
	if (d->kind != LX_SC || d->nin != 2 || !has_lanes(b, d->in[0]))
		return false;
	if (d->sc == SC_shr || d->sc == SC_right)
		return lx_is_int(b->f, d->in[1], &n) && n >= 5 && n < 64;
	return (d->sc == SC_floordiv || d->sc == SC_quot || d->sc == SC_lt || d->sc == SC_ge) &&
	       of_warps(b, d->in[1]);
}

static Alike alike(BlockVerifier *b, Lx x)
{
	const LxData *d = at(b, x);
	Alike all = d->kind == LX_THREAD ? APART
		    : d->kind == LX_VAR  ? b->var[d->u.v.i]
					 : ALIKE_BLOCK;
	if (b->alike[x.i])
		return b->alike[x.i] - 1;
	for (uint32_t k = 0; k < d->nin; k++)
		all = apart(all, alike(b, d->in[k]));
	bool given = d->kind == LX_WARP && (warp_is_vote((WarpOp)d->u.k) ||
					    (d->u.k == WARP_LANE && alike(b, d->in[1]) != APART));
	if (all == APART && (given || splits_warps(b, d)))
		all = ALIKE_WARP;
	b->alike[x.i] = (uint8_t)all + 1;
	return all;
}

static void raise(BlockVerifier *b, Lv v, Alike a)
{
	if (b->var[v.i] >= a)
		return;
	b->var[v.i] = (uint8_t)a;
	b->changed = true;
}

/* Returns which threads are in the body of the statement together. */
static Alike control_of(BlockVerifier *b, const LsData *s, Alike control)
{
	if (ls_row(s->kind)->body && s->x.i)
		control = apart(control, alike(b, s->x));
	return s->kind == LS_FOR ? apart(control, alike(b, s->y)) : control;
}

static void spread_variable(BlockVerifier *b, const LsData *s, Alike control)
{
	switch (ls_row(s->kind)->v) {
	case V_LET: b->let[s->v.i] = s->x; raise(b, s->v, alike(b, s->x)); break;
	case V_VAR: raise(b, s->v, alike(b, s->x)); break;
	case V_SET: raise(b, s->v, apart(control, alike(b, s->x))); break;
	case V_LOOP: b->loop[s->v.i] = s; raise(b, s->v, alike(b, s->x)); break;
	case V_LOADED: case V_DATA: raise(b, s->v, APART); break;
	case V_NONE: case V_ARRAY: break;
	}
}

static void spread(BlockVerifier *b, Lb body, Alike control)
{
	for (uint32_t k = 0; body.i && k < b->f->block.data[body.i].stmt.n; k++) {
		const LsData *s = &b->f->ls.data[b->f->block.data[body.i].stmt.data[k]];
		spread_variable(b, s, control);
		Alike inner = control_of(b, s, control);
		spread(b, s->body, inner);
		spread(b, s->other, inner);
	}
}

/* Spreads what is not the same everywhere: variables are, until something shows that they are
 * not. */
static void spread_all(BlockVerifier *b)
{
	do {
		b->changed = false;
		memset(b->alike, 0, b->f->lx.n);
		memset(b->lanes, 0, b->f->lx.n);
		for (uint32_t k = 0; k < LOOP_TOPS; k++)
			spread(b, loop_top(b->f, k), ALIKE_BLOCK);
	} while (b->changed);
}

/* ---- alignment ---- */

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t power_in(uint64_t n)
{
	return n ? lesser(n & (~n + 1), MOST_RESIDUE) : MOST_RESIDUE;
}

static Residue residue(uint64_t of, uint64_t rem)
{
	of = lesser(of, MOST_RESIDUE);
	return (Residue){of, rem & (of - 1)};
}

static Residue residue_of(BlockVerifier *b, Lx x);

static Residue residue_of_operation(BlockVerifier *b, const LxData *d)
{
	if (d->kind != LX_SC || d->nin != 2 ||
	    (d->sc != SC_add && d->sc != SC_sub && d->sc != SC_mul))
		return residue(1, 0);
	Residue x = residue_of(b, d->in[0]), y = residue_of(b, d->in[1]);
	if (d->sc == SC_mul)
		return residue(
			lesser(x.of * y.of, lesser(x.of * power_in(y.rem), y.of * power_in(x.rem))),
			x.rem * y.rem);
	return residue(lesser(x.of, y.of), d->sc == SC_add ? x.rem + y.rem : x.rem - y.rem);
}

static Residue residue_of(BlockVerifier *b, Lx x)
{
	const LxData *d = at(b, x);
	Residue r = b->residue[x.i];
	if (r.of)
		return r;
	if (d->kind == LX_INT) {
		r = residue(MOST_RESIDUE, (uint64_t)d->u.i);
	} else if (d->kind == LX_VAR && b->let[d->u.v.i].i) {
		r = residue_of(b, b->let[d->u.v.i]);
	} else if (d->kind == LX_VAR && b->loop[d->u.v.i]) {
		Residue first = residue_of(b, b->loop[d->u.v.i]->x);
		r = residue(lesser(first.of, power_in((uint64_t)b->loop[d->u.v.i]->step)),
			    first.rem);
	} else {
		r = residue_of_operation(b, d);
	}
	return b->residue[x.i] = r;
}

static void check_aligned(BlockVerifier *b, const LsData *s, LMem m, Lx offset, uint64_t bytes)
{
	uint64_t size = dtype_size(m.dtype),
		 base = m.kind == MEM_BUFFER ? b->f->buf.data[m.k].align : SHARED_ALIGN;
	Residue r = residue_of(b, offset);
	if (base % bytes)
		fail(b, s, "moves %llu bytes of buffer %s, whose alignment is %llu",
		     (unsigned long long)bytes, b->f->buf.data[m.k].name, (unsigned long long)base);
	else if (r.rem * size % lesser(r.of * size, bytes))
		fail(b, s, "moves %llu bytes at an offset that is no multiple of it",
		     (unsigned long long)bytes);
}

/* ---- statements ---- */

static void check_shared(BlockVerifier *b, const LsData *s)
{
	if (b->depth)
		fail(b, s, "in a loop or a branch");
	uint64_t before = b->shared;
	b->shared = loop_shared_bytes(s, before);
	if (b->shared > b->f->shared_most && before <= b->f->shared_most)
		fail(b, s, "%llu bytes of shared memory, and a block has at most %llu",
		     (unsigned long long)b->shared, (unsigned long long)b->f->shared_most);
}

static void check_copy(BlockVerifier *b, const LsData *s)
{
	uint64_t size = dtype_size(s->mem.dtype);
	if (s->mem.kind != MEM_SHARED || s->from.kind != MEM_BUFFER) {
		fail(b, s, "goes from a buffer to shared memory");
	} else if (s->count != 4 && s->count != 8 && s->count != SHARED_ALIGN) {
		fail(b, s, "%llu bytes, expected 4, 8 or 16", (unsigned long long)s->count);
	} else if (dtype_raw(s->mem.dtype) != dtype_raw(s->from.dtype) || s->count % size) {
		fail(b, s, "memory of different types, or not a number of elements");
	} else {
		check_aligned(b, s, s->mem, s->offset, s->count);
		check_aligned(b, s, s->from, s->x, s->count);
	}
}

static void check_access(BlockVerifier *b, const LsData *s)
{
	const LsRow *row = ls_row(s->kind);
	uint32_t lanes = row->mem == MEM_WRITE ? lx_type(b->f, s->x).lanes
					       : b->f->lv.data[s->v.i].type.lanes;
	bool together = row->x != FIELD_LANES && row->y != FIELD_LANES && !s->mask.i;
	if (together && s->mem.kind != MEM_LOCAL && lanes > 1)
		check_aligned(b, s, s->mem, s->offset,
			      lesser((uint64_t)lanes * dtype_size(s->mem.dtype), SHARED_ALIGN));
}

static void check_exchange(BlockVerifier *b, const LsData *s, Alike control)
{
	int64_t lane;
	const LxData *d = at(b, s->x);
	if (control == APART)
		fail(b, s, "%s where threads of a warp may be elsewhere",
		     warp_name((WarpOp)d->u.k));
	if (d->nin == 2 && lx_is_int(b->f, d->in[1], &lane) && (lane < 0 || lane >= WARP))
		fail(b, s, "%s of %lld, expected 0 to %d", warp_name((WarpOp)d->u.k),
		     (long long)lane, WARP - 1);
}

static bool is_exchange(const BlockVerifier *b, const LsData *s)
{
	LsVariable v = ls_row(s->kind)->v;
	const LxData *d = at(b, s->x);
	bool may = (v == V_LET || v == V_VAR || v == V_SET) && d->kind == LX_WARP;
	for (uint32_t k = 0; may && k < d->nin; k++)
		may = !b->exchanges[d->in[k].i];
	return may;
}

typedef struct {
	BlockVerifier *b;
	const LsData *s;
	bool exchange;
} BlockVisit;

static void check_expr(void *visit, Lx x)
{
	BlockVisit *v = visit;
	if (v->b->exchanges[x.i] && !(v->exchange && x.i == v->s->x.i))
		fail(v->b, v->s,
		     "an exchange between threads is not all of what a variable becomes");
}

static void check(BlockVerifier *b, Lb body, Alike control);

static void check_statement(BlockVerifier *b, const LsData *s, Alike control)
{
	Alike together = b->f->threads == WARP ? ALIKE_WARP : ALIKE_BLOCK;
	BlockVisit v = {b, s, is_exchange(b, s)};
	ls_visit(b->f, s, check_expr, &v);
	if (v.exchange)
		check_exchange(b, s, control);
	switch (s->kind) {
	case LS_SYNC:
		if (control > together)
			fail(b, s, "where threads of the block may be elsewhere");
		break;
	case LS_SHARED: check_shared(b, s); break;
	case LS_COPY_ASYNC: check_copy(b, s); break;
	case LS_CALL: fail(b, s, "in a block of threads"); break;
	default:
		if (ls_row(s->kind)->mem == MEM_READ || ls_row(s->kind)->mem == MEM_WRITE)
			check_access(b, s);
		break;
	}
	Alike inner = control_of(b, s, control);
	b->depth++;
	check(b, s->body, inner);
	check(b, s->other, inner);
	b->depth--;
}

static void check(BlockVerifier *b, Lb body, Alike control)
{
	for (uint32_t k = 0; body.i && k < b->f->block.data[body.i].stmt.n; k++)
		check_statement(b, &b->f->ls.data[b->f->block.data[body.i].stmt.data[k]], control);
}

static void find_exchanges(BlockVerifier *b)
{
	for (uint32_t k = 1; k < b->f->lx.n; k++) { /* operands come first */
		const LxData *d = &b->f->lx.data[k];
		b->exchanges[k] = d->kind == LX_WARP;
		for (uint32_t i = 0; i < d->nin; i++)
			b->exchanges[k] |= b->exchanges[d->in[i].i];
	}
}

bool verify_block(LoopFn *f)
{
	Arena *a = f->ir->ctx->scratch;
	BlockVerifier b = {.f = f, .ok = true};
	if (f->threads > MAX_THREADS || f->threads % WARP)
		return ctx_error(
			f->ir->ctx, f->name,
			"loop IR: a block of %u threads, expected a multiple of %d up to %d",
			f->threads, WARP, MAX_THREADS);
	b.var = ARENA_ARRAY(a, uint8_t, f->lv.n);
	b.let = ARENA_ARRAY(a, Lx, f->lv.n);
	b.loop = ARENA_ARRAY(a, const LsData *, f->lv.n);
	b.alike = ARENA_ARRAY(a, uint8_t, f->lx.n);
	b.lanes = ARENA_ARRAY(a, uint8_t, f->lx.n);
	b.exchanges = ARENA_ARRAY(a, bool, f->lx.n);
	b.residue = ARENA_ARRAY(a, Residue, f->lx.n);
	spread_all(&b);
	find_exchanges(&b);
	for (uint32_t k = 0; k < LOOP_TOPS; k++)
		check(&b, loop_top(f, k), ALIKE_BLOCK);
	return b.ok;
}
