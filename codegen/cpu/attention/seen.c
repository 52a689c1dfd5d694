/* The phase that asks masks which keys a block of rows sees: from the first to behind the last one.
 * Members of the batch that share the masks, as heads do, share the answer. Rows are read from the
 * ends of the keys up to where another row is known to see one. */
#include "codegen/cpu/attention/blocks.h"

typedef struct {
	Blocks *b;
	Lv lo, hi; /* of the rows so far; lo >= hi: they see none */
	Lx all;    /* keys */
} Seen;

/* Asks the vector of keys from `key` on. Returns whether the row sees one. */
static Lx ask(Seen *x, Lx key)
{
	Blocks *b = x->b;
	Eval *e = &b->s->e;
	key = let(b, "key", key);
	eval_at(e, b->limits->key, key);
	eval_mask(e, lx_mask(b->f, lx_sub(b->f, x->all, key), b->vector.lanes));
	Lx any = let(b, "any", lx_any(b->f, blocks_seen(b)));
	eval_mask(e, (Lx){0});
	eval_at(e, b->limits->key, (Lx){0});
	return any;
}

/* Lowers lo, or raises hi, to the outermost vector of keys of which the row sees one. */
static void widen(Seen *x, bool up)
{
	Blocks *b = x->b;
	LoopFn *f = b->f;
	const int64_t lanes = b->vector.lanes;
	Lx last = lx_sub(f, x->all, number(b, 1)),
	   end = times(b, lx_div(f, last, number(b, lanes)), lanes);
	Lv at = ls_var(f, "at", up ? end : number(b, 0)), set = up ? x->hi : x->lo;
	Lx key = lx_var(f, at);
	ls_while(f, up ? lx_cmp(f, SC_ge, key, lx_var(f, set))
		       : lx_cmp(f, SC_lt, key, lx_var(f, set)));
	ls_if(f, ask(x, key));
	ls_set(f, set, up ? lx_min(f, lx_add(f, key, number(b, lanes)), x->all) : key);
	ls_else(f);
	ls_set(f, at, up ? lx_sub(f, key, number(b, lanes)) : lx_add(f, key, number(b, lanes)));
	ls_end(f);
	ls_end(f);
}

void blocks_find_seen(Blocks *b, LMem to, Lx task)
{
	LoopFn *f = b->f;
	Seen x = {.b = b, .all = eval_size(&b->s->e, b->nest->extent[b->limits->key])};
	x.lo = ls_var(f, "lo", x.all);
	x.hi = ls_var(f, "hi", number(b, 0));
	Lx r = blocks_open_rows(b, b->rows.n, 1);
	blocks_go_to_row(b, r, false);
	eval_lanes(&b->s->e, b->limits->key, b->vector.lanes);
	widen(&x, true);
	widen(&x, false);
	eval_lanes(&b->s->e, NO_AXIS, b->vector.lanes);
	blocks_leave_row(b);
	ls_end(f);
	Lx at = let(b, "at", times(b, task, 2));
	ls_store(f, to, at, lx_var(f, x.lo), (Lx){0});
	ls_store(f, to, lx_add(f, at, number(b, 1)), lx_var(f, x.hi), (Lx){0});
}

void blocks_bound_by_seen(Blocks *b, LMem from, Lx block, Sym blocks, Lx *lo, Lx *hi)
{
	LoopFn *f = b->f;
	Eval *e = &b->s->e;
	Lx member = number(b, 0);
	for (uint32_t i = 0; i < b->limits->seen.n; i++) {
		const uint32_t axis = b->limits->seen.axis[i];
		member = lx_add(f, lx_mul(f, member, eval_size(e, b->nest->extent[axis])),
				e->at[axis]);
	}
	Lx at = times(b, lx_add(f, lx_mul(f, member, eval_size(e, blocks)), block), 2);
	const LType t = {DT_i64, 1};
	at = let(b, "at", at);
	*lo = lx_max(f, *lo, lx_var(f, ls_load(f, "seen", from, at, t, (Lx){0})));
	*hi = lx_min(f, *hi,
		     lx_var(f, ls_load(f, "seen", from, lx_add(f, at, number(b, 1)), t, (Lx){0})));
}
