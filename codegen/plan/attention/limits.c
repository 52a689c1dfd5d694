/* Which keys a row may see: what selections and masks in a logit say. */
#include "codegen/plan/attention/attention.h"

#include <math.h>

#include "ir/kernel/build.h"

/* Whether a dtype has the value of each index. */
static bool holds_indices(DType d)
{
	return d == DT_i64 || d == DT_i32;
}

/* Whether x is an index of the kernel's that goes up with the key: key + *add. */
static bool is_key(const Nest *n, const KeyLimits *l, Kx x, Sym *add)
{
	const KxData *d = &n->k->kx.data[kx_unconverted(n->k, x).i];
	Sym coef;
	return d->kind == KX_INDEX && holds_indices(n->k->kx.data[x.i].dtype) &&
	       sym_linear(n->syms, d->idx[0], n->var[l->key], &coef, add) &&
	       sym_is(n->syms, coef, 1);
}

static void add_bound(const Nest *n, KeyLimits *l, KeyBound b)
{
	if (l->nbound < MAX_KEY_BOUNDS && !(n->deps[b.limit.i] >> l->key & 1) &&
	    !(nest_axes(n, b.add) >> l->key & 1) && nest_next_read(n, b.limit, 0) == n->k->stage.n)
		l->bound[l->nbound++] = b;
}

/* Adds what a comparison that holds, or does not, says of keys. op: what holds then. */
static void bound_by(const Nest *n, KeyLimits *l, ScOp op, Kx condition, bool holds)
{
	const KxData *x = &n->k->kx.data[condition.i];
	const bool less = op == SC_lt || op == SC_le, equal = op == SC_le || op == SC_ge;
	for (uint32_t side = 0; side < 2; side++) {
		/* key <= limit: below limit + 1; key > limit: from limit + 1 on */
		KeyBound b = {.limit = x->in[1 - side],
			      .below = less != (side == 1),
			      .condition = condition,
			      .holds = holds};
		b.inclusive = equal == b.below;
		if (holds_indices(n->k->kx.data[b.limit.i].dtype) &&
		    is_key(n, l, x->in[side], &b.add))
			add_bound(n, l, b);
	}
}

/* Returns the comparison that holds where one does not; SC_const of another operation. */
static ScOp opposite(ScOp op)
{
	return op == SC_lt   ? SC_ge
	       : op == SC_le ? SC_gt
	       : op == SC_gt ? SC_le
	       : op == SC_ge ? SC_lt
			     : SC_const;
}

/* Adds what a condition says of keys that must hold, or must not. */
static void bound_if(const Nest *n, KeyLimits *l, Kx condition, bool holds)
{
	const KxData *x = &n->k->kx.data[condition.i];
	const ScOp op = kx_basic(n->k, condition);
	if (op == SC_not) {
		bound_if(n, l, x->in[0], !holds);
	} else if (op == (holds ? SC_and : SC_or)) {
		bound_if(n, l, x->in[0], holds);
		bound_if(n, l, x->in[1], holds);
	} else if (opposite(op) != SC_const && dtype_is_int(n->k->kx.data[x->in[0].i].dtype)) {
		bound_by(n, l, holds ? op : opposite(op), condition, holds);
	}
}

/* Whether x is that constant. */
static bool is_constant_of(const Kernel *k, Kx x, double value)
{
	return k->kx.data[x.i].kind == KX_CONST && k->kx.data[x.i].c.f == value;
}

/* Returns the condition if x is *yes where it is `holds`, and else -inf; none if not. */
static Kx condition_of(const Kernel *k, Kx x, Kx *yes, bool *holds)
{
	const KxData *d = &k->kx.data[x.i];
	if (kx_basic(k, x) != SC_select)
		return (Kx){0};
	*holds = is_constant_of(k, d->in[2], -(double)INFINITY);
	if (!*holds && !is_constant_of(k, d->in[1], -(double)INFINITY))
		return (Kx){0};
	*yes = d->in[*holds ? 1 : 2];
	return d->in[0];
}

/* Whether x reads memory at each key, and no stage. */
static bool is_read_by_key(const Nest *n, const KeyLimits *l, Kx x)
{
	const Kernel *k = n->k;
	bool *part = ARENA_ARRAY(n->arena, bool, k->kx.n), found = false;
	part[x.i] = true;
	for (uint32_t i = x.i; i > 0; i--) {
		const KxData *d = &k->kx.data[i];
		for (uint32_t j = 0; part[i] && j < d->nin; j++)
			part[d->in[j].i] = true;
		found |= part[i] && d->kind == KX_LOAD && n->deps[i] >> l->key & 1;
	}
	return found && nest_next_read(n, x, 0) == k->stage.n;
}

static void add_mask(const Nest *n, KeyLimits *l, KeyMask mask)
{
	if (l->nmask < MAX_MASKS && is_read_by_key(n, l, mask.value))
		l->mask[l->nmask++] = mask;
}

void attention_find_limits(const Nest *n, KeyLimits *l, uint32_t nscore, Kx x)
{
	const Kernel *k = n->k;
	for (;;) {
		const KxData *d = &k->kx.data[x.i];
		bool holds;
		Kx yes, condition = condition_of(k, x, &yes, &holds);
		if (condition.i) {
			bound_if(n, l, condition, holds);
			add_mask(n, l, (KeyMask){condition, .hides = !holds});
			x = yes;
			continue;
		}
		if (kx_basic(k, x) != SC_add)
			return;
		/* the term with the scores is followed */
		const uint32_t other = nest_next_read(n, d->in[0], 0) < nscore;
		if (nest_next_read(n, d->in[other], 0) < nscore)
			return;
		condition = condition_of(k, d->in[other], &yes, &holds);
		if (condition.i && is_constant_of(k, yes, 0))
			bound_if(n, l, condition, holds);
		add_mask(n, l, (KeyMask){d->in[other], .is_added = true});
		x = d->in[1 - other];
	}
}
