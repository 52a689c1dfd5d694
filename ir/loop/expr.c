#include "ir/loop/loop.h"

#include <string.h>

/* ---- interning ---- */

static Arena *arena_of(const LoopFn *f)
{
	return f->ir->ctx->arena;
}

/* Clears a record: interning compares bytes, so padding must be zero, too. */
static LxData *lx_clear(LxData *d, LxKind kind, LType type)
{
	memset(d, 0, sizeof *d);
	d->kind = kind;
	d->type = type;
	return d;
}

static bool sc_nonneg(const LoopFn *f, const LxData *d);

static Lx lx_intern(LoopFn *f, const LxData *d)
{
	bool fresh;
	uint32_t id = intern(&f->lx_table, d, sizeof *d, &fresh);
	if (fresh) {
		array_push(arena_of(f), &f->lx, *d);
		array_push(arena_of(f), &f->nonneg, d->kind == LX_SC && sc_nonneg(f, d));
	}
	return (Lx){id};
}

static Lx lx_one(LoopFn *f, LxKind kind, LType type, Lx x)
{
	LxData d;
	lx_clear(&d, kind, type);
	d.nin = 1;
	d.in[0] = x;
	return lx_intern(f, &d);
}

static const LxData *lx_at(const LoopFn *f, Lx x)
{
	return &f->lx.data[x.i];
}

/* ---- leaves ---- */

Lx lx_int_of(LoopFn *f, LType type, int64_t v)
{
	LxData d;
	lx_clear(&d, LX_INT, type);
	d.u.i = v;
	return lx_intern(f, &d);
}

Lx lx_int(LoopFn *f, int64_t v)
{
	return lx_int_of(f, (LType){DT_i64, 1}, v);
}

Lx lx_float(LoopFn *f, LType type, double v)
{
	LxData d;
	lx_clear(&d, LX_FLOAT, type);
	d.u.f = type.dtype == DT_f32 ? (double)(float)v : v;
	return lx_intern(f, &d);
}

Lx lx_param(LoopFn *f, uint32_t k)
{
	LxData d;
	lx_clear(&d, LX_PARAM, (LType){DT_i64, 1});
	d.u.k = k;
	return lx_intern(f, &d);
}

Lx lx_var(LoopFn *f, Lv v)
{
	LxData d;
	lx_clear(&d, LX_VAR, f->lv.data[v.i].type);
	d.u.v = v;
	return lx_intern(f, &d);
}

Lx lx_addr(LoopFn *f, uint32_t buf, Lx bytes)
{
	LxData d;
	lx_clear(&d, LX_ADDR, (LType){DT_i64, 1});
	d.nin = 1;
	d.in[0] = bytes;
	d.u.k = buf;
	return lx_intern(f, &d);
}

bool lx_is_int(const LoopFn *f, Lx x, int64_t *value)
{
	if (!x.i || lx_at(f, x)->kind != LX_INT)
		return false;
	if (value)
		*value = lx_at(f, x)->u.i;
	return true;
}

/* ---- what is known about signs ---- */

static bool sc_nonneg(const LoopFn *f, const LxData *d)
{
	switch (d->sc) {
	case SC_add:
	case SC_mul:
	case SC_floordiv:
	case SC_min:
	case SC_shr:
	case SC_quot:
	case SC_right:
		return lx_nonneg(f, d->in[0]) && lx_nonneg(f, d->in[1]);
	case SC_rem:
	case SC_mod:
		return lx_nonneg(f, d->in[0]);
	case SC_max:
	case SC_and:
		return lx_nonneg(f, d->in[0]) || lx_nonneg(f, d->in[1]);
	case SC_select:
		return lx_nonneg(f, d->in[1]) && lx_nonneg(f, d->in[2]);
	default:
		return false;
	}
}

bool lx_nonneg(const LoopFn *f, Lx x)
{
	const LxData *d = lx_at(f, x);
	if (d->type.dtype != DT_i64 || d->type.lanes != 1)
		return false;
	switch (d->kind) {
	case LX_INT:
		return d->u.i >= 0;
	case LX_PARAM: case LX_THREAD:
		return true;
	case LX_VAR:
		return f->lv.data[d->u.v.i].nonneg;
	case LX_SC:
		return f->nonneg.data[x.i];
	default:
		return false;
	}
}

/* ---- folding ---- */

/* Whether the operands may be exchanged. min and max of floats tell zeros apart by their order. */
static bool is_commutative(ScOp op, DType dtype)
{
	switch (op) {
	case SC_min: case SC_max:
		return !dtype_is_float(dtype);
	case SC_add: case SC_mul: case SC_and: case SC_or: case SC_xor: case SC_eq: case SC_ne:
		return true;
	default:
		return false;
	}
}

static int64_t floordiv_i64(int64_t a, int64_t b)
{
	return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* Computes an operation of two i64 literals. Returns false where the result would overflow or is
 * undefined. */
static bool fold_i64(ScOp op, int64_t a, int64_t b, int64_t *r)
{
	switch (op) {
	case SC_add: return !__builtin_add_overflow(a, b, r);
	case SC_sub: return !__builtin_sub_overflow(a, b, r);
	case SC_mul: return !__builtin_mul_overflow(a, b, r);
	case SC_floordiv:
		if (b == 0 || (a == INT64_MIN && b == -1))
			return false;
		return *r = floordiv_i64(a, b), true;
	case SC_rem:
		if (b == 0 || b == -1)
			return false;
		return *r = a % b, true;
	case SC_min: return *r = a < b ? a : b, true;
	case SC_max: return *r = a > b ? a : b, true;
	case SC_and: return *r = a & b, true;
	case SC_or: return *r = a | b, true;
	case SC_xor: return *r = a ^ b, true;
	case SC_eq: return *r = a == b, true;
	case SC_ne: return *r = a != b, true;
	case SC_lt: return *r = a < b, true;
	case SC_le: return *r = a <= b, true;
	case SC_gt: return *r = a > b, true;
	case SC_ge: return *r = a >= b, true;
	default: return false;
	}
}

/* Simplifies x op c with c an integer literal on the right; returns none when nothing is
 * simpler. */
static Lx fold_right(LoopFn *f, ScOp op, LType type, Lx x, Lx cx, int64_t c)
{
	const LxData d = *lx_at(f, x);
	int64_t c1;
	bool scalar = type.lanes == 1 && type.dtype == DT_i64;
	bool nested = scalar && d.kind == LX_SC && d.nin == 2 && lx_is_int(f, d.in[1], &c1);
	switch (op) {
	case SC_add:
		if (c == 0)
			return x;
		if (nested && d.sc == SC_add && fold_i64(SC_add, c1, c, &c1))
			return lx_add(f, d.in[0], lx_int(f, c1));
		return (Lx){0};
	case SC_sub:
		if (c == 0)
			return x;
		return scalar && c != INT64_MIN ? lx_add(f, x, lx_int(f, -c)) : (Lx){0};
	case SC_mul:
		if (c == 1)
			return x;
		if (c == 0)
			return cx;
		if (nested && d.sc == SC_mul && fold_i64(SC_mul, c1, c, &c1))
			return lx_mul(f, d.in[0], lx_int(f, c1));
		return (Lx){0};
	case SC_floordiv:
		if (c == 1)
			return x;
		if (nested && d.sc == SC_mul && c > 0 && c1 % c == 0)
			return lx_mul(f, d.in[0], lx_int(f, c1 / c));
		return (Lx){0};
	case SC_rem:
		if (c == 1 || (nested && d.sc == SC_mul && c > 0 && c1 % c == 0))
			return lx_int_of(f, type, 0);
		return (Lx){0};
	case SC_and:
		if (type.dtype == DT_bool)
			return c ? x : cx;
		return (Lx){0};
	case SC_or:
		if (type.dtype == DT_bool)
			return c ? cx : x;
		return (Lx){0};
	default:
		return (Lx){0};
	}
}

static bool is_int_like(LType t)
{
	return dtype_is_int(t.dtype) || t.dtype == DT_bool;
}

static Lx fold_binary(LoopFn *f, ScOp op, LType type, Lx a, Lx b)
{
	int64_t ca, cb, r;
	LType in = lx_type(f, a);
	if (!is_int_like(in)) {
		const LxData *d = lx_at(f, b);
		bool one = d->kind == LX_FLOAT && d->u.f == 1.0;
		return op == SC_mul && one ? a : (Lx){0};
	}
	bool la = lx_is_int(f, a, &ca), lb = lx_is_int(f, b, &cb);
	if (la && lb && (in.dtype == DT_i64 || in.dtype == DT_bool) && fold_i64(op, ca, cb, &r))
		return lx_int_of(f, type, r);
	if (a.i == b.i) {
		if (op == SC_min || op == SC_max || op == SC_and || op == SC_or)
			return a;
		if (op == SC_sub || op == SC_xor)
			return lx_int_of(f, type, 0);
	}
	return lb ? fold_right(f, op, type, a, b, cb) : (Lx){0};
}

static Lx fold_select(LoopFn *f, const Lx *in)
{
	int64_t c;
	if (lx_is_int(f, in[0], &c))
		return c ? in[1] : in[2];
	return in[1].i == in[2].i ? in[1] : (Lx){0};
}

static Lx fold_unary(LoopFn *f, ScOp op, LType type, Lx x)
{
	int64_t c;
	if (op == SC_not && type.dtype == DT_bool && lx_is_int(f, x, &c))
		return lx_int_of(f, type, !c);
	if (op == SC_convert && type.dtype == lx_type(f, x).dtype)
		return x;
	return (Lx){0};
}

/* ---- operations ---- */

Lx lx_sc(LoopFn *f, ScOp op, LType type, const Lx *in, uint32_t nin)
{
	Lx arg[3] = {{0}};
	for (uint32_t k = 0; k < nin && k < 3; k++)
		arg[k] = lx_splat(f, in[k], type.lanes);
	if (nin == 2 && is_commutative(op, type.dtype) && lx_at(f, arg[0])->kind <= LX_FLOAT &&
	    lx_at(f, arg[1])->kind > LX_FLOAT) {
		Lx t = arg[0];
		arg[0] = arg[1];
		arg[1] = t;
	}
	Lx folded = {0};
	if (nin == 2)
		folded = fold_binary(f, op, type, arg[0], arg[1]);
	else if (nin == 1)
		folded = fold_unary(f, op, type, arg[0]);
	else if (op == SC_select)
		folded = fold_select(f, arg);
	if (folded.i)
		return folded;
	LxData d;
	lx_clear(&d, LX_SC, type);
	d.sc = op;
	d.nin = nin;
	memcpy(d.in, arg, sizeof arg);
	return lx_intern(f, &d);
}

Lx lx_fn(LoopFn *f, const ScFn *fn, uint32_t lanes, const Lx *in, uint32_t nin)
{
	LxData d;
	lx_clear(&d, LX_FN, (LType){fn->result, lanes});
	d.fn = fn;
	d.nin = nin;
	for (uint32_t k = 0; k < nin && k < 4; k++)
		d.in[k] = lx_splat(f, in[k], lanes);
	return lx_intern(f, &d);
}

static uint32_t max_lanes(const LoopFn *f, Lx a, Lx b)
{
	uint32_t la = lx_type(f, a).lanes, lb = lx_type(f, b).lanes;
	return la > lb ? la : lb;
}

static Lx lx_binary(LoopFn *f, ScOp op, Lx a, Lx b)
{
	LType type = {lx_type(f, a).dtype, max_lanes(f, a, b)};
	return lx_sc(f, op, type, (Lx[]){a, b}, 2);
}

Lx lx_add(LoopFn *f, Lx a, Lx b) { return lx_binary(f, SC_add, a, b); }
Lx lx_sub(LoopFn *f, Lx a, Lx b) { return lx_binary(f, SC_sub, a, b); }
Lx lx_mul(LoopFn *f, Lx a, Lx b) { return lx_binary(f, SC_mul, a, b); }
Lx lx_div(LoopFn *f, Lx a, Lx b) { return lx_binary(f, SC_floordiv, a, b); }
Lx lx_min(LoopFn *f, Lx a, Lx b) { return lx_binary(f, SC_min, a, b); }
Lx lx_max(LoopFn *f, Lx a, Lx b) { return lx_binary(f, SC_max, a, b); }
Lx lx_and(LoopFn *f, Lx a, Lx b) { return lx_binary(f, SC_and, a, b); }

/* Returns the remainder with the divisor's sign: SC_rem where nothing is negative, else spelled
 * out. */
Lx lx_mod(LoopFn *f, Lx a, Lx b)
{
	int64_t c;
	if (lx_nonneg(f, a) && lx_nonneg(f, b))
		return lx_binary(f, SC_rem, a, b);
	if (lx_is_int(f, b, &c) && c > 0 && (c & (c - 1)) == 0)
		return lx_and(f, a, lx_int_of(f, lx_type(f, b), c - 1));
	return lx_sub(f, a, lx_mul(f, lx_div(f, a, b), b));
}

Lx lx_cmp(LoopFn *f, ScOp op, Lx a, Lx b)
{
	return lx_sc(f, op, (LType){DT_bool, max_lanes(f, a, b)}, (Lx[]){a, b}, 2);
}

Lx lx_select(LoopFn *f, Lx c, Lx a, Lx b)
{
	uint32_t lanes = max_lanes(f, a, b), lc = lx_type(f, c).lanes;
	LType type = {lx_type(f, a).dtype, lanes > lc ? lanes : lc};
	return lx_sc(f, SC_select, type, (Lx[]){c, a, b}, 3);
}

Lx lx_fma(LoopFn *f, Lx a, Lx b, Lx c)
{
	uint32_t lanes = max_lanes(f, a, b), lc = lx_type(f, c).lanes;
	LType type = {lx_type(f, c).dtype, lanes > lc ? lanes : lc};
	return lx_sc(f, SC_fma, type, (Lx[]){a, b, c}, 3);
}

/* ---- lanes ---- */

Lx lx_splat(LoopFn *f, Lx x, uint32_t lanes)
{
	const LxData d = *lx_at(f, x);
	if (d.type.lanes == lanes || d.type.lanes != 1)
		return x;
	LType type = {d.type.dtype, lanes};
	if (d.kind == LX_INT)
		return lx_int_of(f, type, d.u.i);
	if (d.kind == LX_FLOAT)
		return lx_float(f, type, d.u.f);
	return lx_one(f, LX_SPLAT, type, x);
}

Lx lx_ramp(LoopFn *f, Lx base, Lx step, uint32_t lanes)
{
	if (lanes == 1)
		return base;
	LxData d;
	lx_clear(&d, LX_RAMP, (LType){lx_type(f, base).dtype, lanes});
	d.nin = 2;
	d.in[0] = base;
	d.in[1] = step;
	return lx_intern(f, &d);
}

Lx lx_mask(LoopFn *f, Lx n, uint32_t lanes)
{
	int64_t c;
	LType type = {DT_bool, lanes};
	if (lx_is_int(f, n, &c) && c >= lanes)
		return lx_int_of(f, type, 1);
	if (lx_is_int(f, n, &c) && c <= 0)
		return lx_int_of(f, type, 0);
	if (lanes == 1)
		return lx_cmp(f, SC_gt, n, lx_int(f, 0));
	return lx_one(f, LX_MASK, type, n);
}

Lx lx_hreduce(LoopFn *f, ScOp op, Lx x)
{
	LType type = lx_type(f, x);
	if (type.lanes == 1)
		return x;
	LxData d;
	lx_clear(&d, LX_HREDUCE, (LType){type.dtype, 1});
	d.sc = op;
	d.nin = 1;
	d.in[0] = x;
	return lx_intern(f, &d);
}

Lx lx_any(LoopFn *f, Lx x)
{
	int64_t c;
	if (lx_type(f, x).lanes == 1)
		return x;
	if (lx_is_int(f, x, &c))
		return lx_int_of(f, (LType){DT_bool, 1}, c);
	return lx_one(f, LX_ANY, (LType){DT_bool, 1}, x);
}

Lx lx_shuffle(LoopFn *f, Shuffle how, Lx a, Lx b)
{
	LxData d;
	LType t = lx_type(f, a);
	lx_clear(&d, LX_SHUFFLE, (LType){t.dtype, how <= SHUFFLE_HIGH ? t.lanes / 2 : t.lanes});
	d.nin = 2;
	d.in[0] = a;
	d.in[1] = b;
	d.u.k = how;
	return lx_intern(f, &d);
}

uint32_t shuffle_lane(Shuffle how, uint32_t k, uint32_t lanes)
{
	switch (how) {
	case SHUFFLE_LOW: return k;
	case SHUFFLE_HIGH: return k + lanes / 2;
	case SHUFFLE_REVERSE: return lanes - 1 - k;
	case SHUFFLE_EVENS: return 2 * k;
	case SHUFFLE_ODDS: return 2 * k + 1;
	case SHUFFLE_TURN_EVENS: return k % 2 ? lanes + k - 1 : k;
	case SHUFFLE_TURN_ODDS: return k % 2 ? lanes + k : k + 1;
	case SHUFFLE_LOWS: return 2 * k < lanes ? k : lanes / 2 + k;
	case SHUFFLE_HIGHS: return 2 * k < lanes ? lanes / 2 + k : lanes + k;
	case SHUFFLE_EVEN: return 2 * k < lanes ? 2 * k : 2 * k + 1;
	default: return k / 2 + k % 2 * lanes + (how == SHUFFLE_ZIP_HIGH ? lanes / 2 : 0);
	}
}

const char *shuffle_name(Shuffle how)
{
	static const char *const name[SHUFFLE_COUNT] = {"low",   "high",  "reverse",    "even",
							"evens", "odds",  "turn_evens", "turn_odds",
							"lows",  "highs", "zip_low",    "zip_high"};
	return name[how];
}

bool shuffle_is_of_two(Shuffle how)
{
	return how >= SHUFFLE_EVEN;
}

/* ---- threads of a block ---- */

Lx lx_lane(LoopFn *f, Lx vector, uint32_t lane)
{
	const LxData *from = lx_at(f, vector);
	if (from->kind == LX_PACK)
		return from->in[lane];
	LxData d;
	lx_clear(&d, LX_LANE, (LType){from->type.dtype, 1});
	d.nin = 1;
	d.in[0] = vector;
	d.u.k = lane;
	return lx_intern(f, &d);
}

Lx lx_pack(LoopFn *f, const Lx *lane, uint32_t lanes)
{
	LxData d;
	lx_clear(&d, LX_PACK, (LType){lx_type(f, lane[0]).dtype, lanes});
	d.nin = lanes;
	memcpy(d.in, lane, lanes * sizeof *lane);
	return lx_intern(f, &d);
}

Lx lx_thread(LoopFn *f)
{
	LxData d;
	return lx_intern(f, lx_clear(&d, LX_THREAD, (LType){DT_i64, 1}));
}

Lx lx_warp(LoopFn *f, WarpOp op, Lx a, Lx b)
{
	LxData d;
	lx_clear(&d, LX_WARP, op == WARP_BALLOT ? (LType){DT_u32, 1} : lx_type(f, a));
	d.nin = warp_is_vote(op) ? 1 : 2;
	d.in[0] = a;
	d.in[1] = warp_is_vote(op) ? (Lx){0} : b;
	d.u.k = op;
	return lx_intern(f, &d);
}

const char *warp_name(WarpOp op)
{
	static const char *const name[WARP_COUNT] = {"warp_xor",   "warp_up",  "warp_down",
						     "warp_lane",  "warp_any", "warp_all",
						     "warp_ballot"};
	return name[op];
}

/* ---- legal forms ---- */

Lx lx_table(LoopFn *f, const ScTable *table, Lx index)
{
	LxData d;
	lx_clear(&d, LX_TABLE, (LType){table->dtype, lx_type(f, index).lanes});
	d.table = table;
	d.nin = 1;
	d.in[0] = index;
	return lx_intern(f, &d);
}

Lx lx_op(LoopFn *f, ScOp op, LType type, const Lx *in, uint32_t nin, unsigned known)
{
	LxData d;
	lx_clear(&d, LX_SC, type);
	d.sc = op;
	d.known = known;
	d.nin = nin;
	memcpy(d.in, in, nin * sizeof *in);
	return lx_intern(f, &d);
}

Lx lx_with(LoopFn *f, Lx x, const Lx *in)
{
	LxData d = *lx_at(f, x);
	memcpy(d.in, in, d.nin * sizeof *in);
	return lx_intern(f, &d);
}
