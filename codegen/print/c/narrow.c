/* Index arithmetic of blocks of threads in 32 bits.
 *
 *   task in [0, 784), n0 = 64        task * n0 in [0, 50113)      computed as int32_t
 *   n1 = 3000000000                  task * n1                    (int64_t)task * n1
 *
 * A GPU has 32-bit integer units: a product of 64 bits is several instructions, a quotient about a
 * hundred. Intervals come from what all launches of the program pass (LoopFn.given, tasks_most);
 * variables have those of what they are set to, once. */
#include "codegen/print/c/emit_priv.h"

typedef LoopRange Range;

struct Narrow {
	const LoopFn *f;
	Range *lx, *lv; /* by expression, by variable; lo > hi: not known yet */
	bool *narrow;   /* by expression: its C expression is an int32_t */
};

static const Range any = {INT64_MIN, INT64_MAX}, none = {1, 0};

static bool fits(Range r)
{
	return r.lo >= INT32_MIN && r.hi <= INT32_MAX && r.lo <= r.hi;
}

static bool is_index(LType t)
{
	return t.dtype == DT_i64 && t.lanes == 1;
}

/* ---- intervals ---- */

static Range sum(Range a, Range b)
{
	Range r;
	return __builtin_add_overflow(a.lo, b.lo, &r.lo) ||
			       __builtin_add_overflow(a.hi, b.hi, &r.hi)
		       ? any
		       : r;
}

static Range difference(Range a, Range b)
{
	Range r;
	return __builtin_sub_overflow(a.lo, b.hi, &r.lo) ||
			       __builtin_sub_overflow(a.hi, b.lo, &r.hi)
		       ? any
		       : r;
}

static Range product(Range a, Range b)
{
	const int64_t x[] = {a.lo, a.lo, a.hi, a.hi}, y[] = {b.lo, b.hi, b.lo, b.hi};
	Range r = {INT64_MAX, INT64_MIN};
	for (int k = 0; k < 4; k++) {
		int64_t p;
		if (__builtin_mul_overflow(x[k], y[k], &p))
			return any;
		r = (Range){p < r.lo ? p : r.lo, p > r.hi ? p : r.hi};
	}
	return r;
}

static int64_t lesser(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t greater(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Returns the interval of a quotient or a remainder. Operands that may be negative give `any`; no
 * divisor is 0. */
static Range divided(ScOp op, Range a, Range b)
{
	const int64_t least = greater(b.lo, 1), most = greater(b.hi, 1);
	if (a.lo < 0 || b.lo < 0)
		return any;
	return op == SC_quot ? (Range){a.lo / most, a.hi / least}
			     : (Range){0, lesser(a.hi, most - 1)};
}

static Range operation(const LxData *d, const Range *in)
{
	switch (d->sc) {
	case SC_add: return sum(in[0], in[1]);
	case SC_sub: return difference(in[0], in[1]);
	case SC_mul: return product(in[0], in[1]);
	case SC_neg: return difference((Range){0, 0}, in[0]);
	case SC_quot: case SC_mod: return divided(d->sc, in[0], in[1]);
	case SC_min: return (Range){lesser(in[0].lo, in[1].lo), lesser(in[0].hi, in[1].hi)};
	case SC_max: return (Range){greater(in[0].lo, in[1].lo), greater(in[0].hi, in[1].hi)};
	case SC_select: return (Range){lesser(in[1].lo, in[2].lo), greater(in[1].hi, in[2].hi)};
	default: return any;
	}
}

static Range of_param(const LoopFn *f, uint32_t k)
{
	return k < f->given.n ? f->given.data[k] : (Range){0, INT64_MAX};
}

static Range range_of(Narrow *n, Lx x)
{
	const LxData *d = &n->f->lx.data[x.i];
	Range in[4], *r = &n->lx[x.i];
	if (r->lo <= r->hi)
		return *r;
	for (uint32_t k = 0; k < d->nin; k++)
		in[k] = range_of(n, d->in[k]);
	*r = any;
	if (is_index(d->type))
		switch (d->kind) {
		case LX_INT: *r = (Range){d->u.i, d->u.i}; break;
		case LX_PARAM: *r = of_param(n->f, d->u.k); break;
		case LX_VAR: *r = n->lv[d->u.v.i]; break;
		case LX_THREAD: *r = (Range){0, (int64_t)n->f->threads - 1}; break;
		case LX_SC: *r = operation(d, in); break;
		default: break;
		}
	return *r;
}

/* ---- which C expressions are int32_t ---- */

/* Whether C computes the operation in the type of its operands. */
static bool keeps_type(const LxData *d)
{
	const bool index = d->known & KNOWN_INDEX;
	return d->sc == SC_select ||
	       (index && (d->sc == SC_add || d->sc == SC_sub || d->sc == SC_mul ||
			  d->sc == SC_neg || d->sc == SC_quot || d->sc == SC_mod));
}

/* Whether all operands that have the type of the result are int32_t. */
static bool operands_are(const Narrow *n, const LxData *d)
{
	for (uint32_t k = d->sc == SC_select; k < d->nin; k++)
		if (!n->narrow[d->in[k].i])
			return false;
	return true;
}

static bool is_narrow(const Narrow *n, Lx x)
{
	const LxData *d = &n->f->lx.data[x.i];
	if (!is_index(d->type) || !fits(n->lx[x.i]))
		return false;
	if (d->kind == LX_SC)
		return keeps_type(d) && operands_are(n, d);
	return d->kind == LX_INT || d->kind == LX_PARAM || d->kind == LX_VAR ||
	       d->kind == LX_THREAD;
}

bool narrow_lx(const Narrow *n, Lx x)
{
	return n && n->narrow[x.i];
}

bool narrow_needs_cast(const Narrow *n, Lx x)
{
	const LxData *d = &n->f->lx.data[x.i];
	return is_index(d->type) && d->kind == LX_SC && d->nin && d->sc != SC_select &&
	       is_index(n->f->lx.data[d->in[0].i].type) && !n->narrow[x.i] && operands_are(n, d);
}

bool narrow_var(const Narrow *n, Lv v)
{
	return n && is_index(n->f->lv.data[v.i].type) && fits(n->lv[v.i]);
}

bool narrow_param(const Narrow *n, uint32_t k)
{
	return n && fits(of_param(n->f, k));
}

/* ---- variables ---- */

/* Returns the interval of a loop's variable; `any` if the value behind the last round, which ends
 * the loop, might not fit into 32 bits. */
static Range of_loop(Narrow *n, const LsData *s)
{
	const Range lo = range_of(n, s->x), hi = range_of(n, s->y);
	Range r = {lo.lo, hi.hi};
	return hi.hi > INT32_MAX - s->step || !fits(lo) ? any
	       : r.lo <= r.hi                           ? r
							: (Range){lo.lo, lo.lo};
}

static void walk(Narrow *n, Lb b)
{
	for (uint32_t k = 0; b.i && k < n->f->block.data[b.i].stmt.n; k++) {
		const LsData *s = &n->f->ls.data[n->f->block.data[b.i].stmt.data[k]];
		if (s->kind == LS_LET && is_index(n->f->lv.data[s->v.i].type))
			n->lv[s->v.i] = range_of(n, s->x);
		else if (s->kind == LS_FOR)
			n->lv[s->v.i] = of_loop(n, s);
		walk(n, s->body);
		walk(n, s->other);
	}
}

const Narrow *narrow_of(const LoopFn *f, Arena *a)
{
	Narrow *n = ARENA_NEW(a, Narrow);
	*n = (Narrow){f, ARENA_ARRAY(a, Range, f->lx.n), ARENA_ARRAY(a, Range, f->lv.n),
		      ARENA_ARRAY(a, bool, f->lx.n)};
	for (uint32_t k = 0; k < f->lx.n; k++)
		n->lx[k] = none;
	for (uint32_t k = 0; k < f->lv.n; k++)
		n->lv[k] = any;
	if (f->tasks_most)
		n->lv[f->task.i] = (Range){0, f->tasks_most - 1};
	for (uint32_t k = 0; k < LOOP_TOPS; k++)
		walk(n, loop_top(f, k));
	/* operands come before what reads them */
	for (uint32_t k = 1; k < f->lx.n; k++) {
		range_of(n, (Lx){k});
		n->narrow[k] = is_narrow(n, (Lx){k});
	}
	return n;
}
