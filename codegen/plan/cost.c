/* Counting by axes: a stage has as many points as its axes span, an access touches no more elements
 * than the axes that its index reads, nor along a dimension more than it has. */
#include "codegen/plan/plan.h"

#include "ir/op/op.h"

/* The elements that one index expression touches. */
typedef struct {
	BufId root;     /* that owns the storage */
	bool write;     /* what is read and replaced in place moves twice */
	const Sym *idx; /* with one variable for all axes of equal extent: stages that read the same
			   have axes of their own */
	uint32_t n;
	uint32_t naxes;
	const Cost *bytes;
} Access;

typedef struct {
	const Nest *s;
	Arena *arena;
	uint64_t stages; /* those that count */
	bool *seen;      /* by Kx */
	uint32_t nvar;
	Sym *var, *common; /* axes and value variables, and what stands for them in Access.idx */
	Intern same;       /* pairs of Kx that are the same value at common variables */
	ARRAY(Access) access;
} Counter;

/* ---- operations ---- */

static bool computes(const Kernel *k, Kx x)
{
	const KxData *d = &k->kx.data[x.i];
	if (d->kind != KX_OP)
		return false;
	if (d->op != OP_convert && d->op != OP_bitcast)
		return true;
	return computes(k, d->in[0]);
}

static bool multiplies(const Kernel *k, Kx x)
{
	const KxData *d = &k->kx.data[x.i];
	return d->kind == KX_OP &&
	       (d->op == OP_mul || (d->op == OP_convert && multiplies(k, d->in[0])));
}

static double per_point(const Kernel *k, uint32_t stage)
{
	const Stage *st = &k->stage.data[stage];
	switch (st->kind) {
	case STAGE_MAP:
		return computes(k, st->value);
	case STAGE_REDUCE:
		return st->reduce.contraction ||
				       (stage_combine(st) == REDUCE_SUM && multiplies(k, st->value))
			       ? 2
			       : 1;
	case STAGE_ARGREDUCE:
	case STAGE_RUNNING:
		return 1;
	case STAGE_FFT: /* five for each of log2 n halvings, of which a stage has half; n is taken
			   as some hundreds */
		return stage_next(st) && stage_stores(st) ? 20 : 0;
	case STAGE_FACTOR: /* of an element, for each row of the matrix; rows are taken as some
			      tens */
		return stage_next(st) && st->value.i ? 10 : 0;
	case STAGE_SCATTER:
		return stage_combine(st) != REDUCE_SET || computes(k, st->value);
	default:
		return 0;
	}
}

static bool counts(const Counter *c, uint32_t stage)
{
	return stage >= 64 || c->stages >> stage & 1;
}

static const Cost *points(const Counter *c, const Cost *n, uint64_t axes)
{
	for (uint32_t i = 0; i < c->s->n; i++)
		if (axes >> i & 1)
			n = cost_mul(c->arena, n, cost_sym(c->arena, c->s->extent[i]));
	return n;
}

static uint64_t stage_axes(const Nest *s, const Stage *st)
{
	const AxisList map = nest_inner(s, st);
	return s->outer | axes_set(map.axis, map.n) |
	       axes_set(st->red, st->kind == STAGE_SORT ? 1 : st->nred);
}

static const Cost *count_operations(const Counter *c)
{
	const Kernel *k = c->s->k;
	const Cost *sum = cost_number(c->arena, 0);
	for (uint32_t i = 0; i < k->stage.n; i++) {
		double each = counts(c, i) ? per_point(k, i) : 0;
		if (each > 0)
			sum = cost_add(c->arena, sum,
				       points(c, cost_number(c->arena, each),
					      stage_axes(c->s, &k->stage.data[i])));
	}
	return sum;
}

/* ---- bytes ---- */

static bool same_value(Counter *c, Kx a, Kx b);

static bool same_data(Counter *c, const KxData *x, const KxData *y)
{
	if (x->kind != y->kind || x->op != y->op || x->dtype != y->dtype || x->nin != y->nin ||
	    x->nidx != y->nidx || x->buf.i != y->buf.i || x->stage != y->stage || x->c.i != y->c.i)
		return false;
	for (uint32_t i = 0; i < x->nin; i++)
		TRY(same_value(c, x->in[i], y->in[i]));
	for (uint32_t i = 0; i < x->nidx; i++)
		if (sym_subst(c->s->syms, x->idx[i], c->var, c->common, c->nvar).i !=
		    sym_subst(c->s->syms, y->idx[i], c->var, c->common, c->nvar).i)
			return false;
	return same_value(c, x->guard, y->guard) && same_value(c, x->other, y->other);
}

/* Whether two expressions have the same value. Each pair found equal is remembered, and compared
 * once. */
static bool same_value(Counter *c, Kx a, Kx b)
{
	Kx pair[2] = {a, b};
	if (a.i == b.i || intern_find(&c->same, pair, sizeof pair))
		return true;
	TRY(same_data(c, &c->s->k->kx.data[a.i], &c->s->k->kx.data[b.i]));
	intern(&c->same, pair, sizeof pair, NULL);
	return true;
}

/* Finds, for each axis, the first axis of the same extent and, for each value variable, the first
 * variable of the same extent and value, which stands for it in counts. */
static void find_common(Counter *c)
{
	const Nest *s = c->s;
	const Kernel *k = s->k;
	c->var = ARENA_ARRAY(c->arena, Sym, s->n + k->vvar.n);
	c->common = ARENA_ARRAY(c->arena, Sym, s->n + k->vvar.n);
	for (uint32_t i = 0; i < s->n; i++) {
		uint32_t first = 0;
		while (s->extent[first].i != s->extent[i].i)
			first++;
		c->var[c->nvar] = s->var[i];
		c->common[c->nvar++] = s->var[first];
	}
	for (uint32_t i = 0; i < k->vvar.n; i++) {
		const ValueVar *v = k->vvar.data;
		uint32_t first = 0;
		while (v[first].extent.i != v[i].extent.i ||
		       !same_value(c, v[first].value, v[i].value))
			first++;
		c->var[c->nvar] = v[i].var;
		c->common[c->nvar++] = v[first].var;
	}
}

static const Cost *whole(const Counter *c, const Buffer *b)
{
	const Cost *n = cost_number(c->arena, dtype_size(b->dtype));
	for (uint32_t d = 0; d < b->rank; d++)
		n = cost_mul(c->arena, n, cost_sym(c->arena, b->dim[d]));
	return n;
}

static const Cost *touched(const Counter *c, const Buffer *b, const Sym *idx, uint32_t n,
			   uint64_t *axes)
{
	const Cost *size = cost_number(c->arena, dtype_size(b->dtype)),
		   *one = cost_number(c->arena, 1), *box = size;
	*axes = 0;
	for (uint32_t d = 0; d < n; d++) {
		uint64_t here = nest_axes(c->s, idx[d]);
		if (here)
			box = cost_mul(c->arena, box,
				       cost_min(c->arena, cost_sym(c->arena, b->dim[d]),
						points(c, one, here)));
		*axes |= here;
	}
	return cost_min(c->arena, box, points(c, size, *axes));
}

static bool known(const Counter *c, const Access *a)
{
	for (uint32_t i = 0; i < c->access.n; i++) {
		const Access *b = &c->access.data[i];
		bool same = a->root.i == b->root.i && a->write == b->write && a->n == b->n &&
			    a->naxes == b->naxes;
		for (uint32_t d = 0; same && d < a->n; d++)
			same = a->idx[d].i == b->idx[d].i;
		if (same)
			return true;
	}
	return false;
}

static void add_access(Counter *c, BufId id, bool write, const Sym *idx, uint32_t n)
{
	const Buffer *b = buf_of(c->s->l, id);
	uint64_t axes;
	Access a = {.root = id, .write = write, .n = n, .bytes = touched(c, b, idx, n, &axes)};
	a.naxes = (uint32_t)__builtin_popcountll(axes);
	Sym *common = ARENA_ARRAY(c->arena, Sym, n);
	for (uint32_t d = 0; d < n; d++)
		common[d] = sym_subst(c->s->syms, idx[d], c->var, c->common, c->nvar);
	a.idx = common;
	if (!known(c, &a))
		array_push(c->arena, &c->access, a);
}

static void visit(Counter *c, Kx x);

static void visit_indices(Counter *c, const Sym *idx, uint32_t n)
{
	const Kernel *k = c->s->k;
	for (uint32_t d = 0; d < n; d++)
		for (uint32_t v = 0; v < k->vvar.n; v++)
			if (sym_uses(c->s->syms, idx[d], k->vvar.data[v].var))
				visit(c, k->vvar.data[v].value);
}

static void visit(Counter *c, Kx x)
{
	if (!x.i || c->seen[x.i])
		return;
	c->seen[x.i] = true;
	const KxData *d = &c->s->k->kx.data[x.i];
	visit_indices(c, d->idx, d->nidx);
	for (uint32_t i = 0; i < d->nin; i++)
		visit(c, d->in[i]);
	visit(c, d->guard);
	visit(c, d->other);
	if (d->kind == KX_LOAD)
		add_access(c, d->buf, false, d->idx, d->nidx);
}

static void visit_stages(Counter *c)
{
	const Kernel *k = c->s->k;
	for (uint32_t i = 0; i < k->stage.n; i++) {
		const Stage *st = &k->stage.data[i];
		if (!counts(c, i))
			continue;
		visit(c, st->value);
		visit(c, st->where);
		if (!stage_stores(st))
			continue;
		uint32_t rank = buf_of(c->s->l, st->store.buf)->rank;
		visit_indices(c, st->store.idx, rank);
		add_access(c, st->store.buf, true, st->store.idx, rank);
	}
}

static const Cost *count_bytes(Counter *c)
{
	const Cost *sum = cost_number(c->arena, 0);
	visit_stages(c);
	for (uint32_t i = 0; i < c->access.n; i++) {
		BufId root = c->access.data[i].root;
		const Cost *bytes = cost_number(c->arena, 0);
		bool write = c->access.data[i].write, first = true;
		for (uint32_t j = 0; j < c->access.n; j++) {
			if (c->access.data[j].root.i != root.i || c->access.data[j].write != write)
				continue;
			first &= j >= i;
			bytes = cost_add(c->arena, bytes, c->access.data[j].bytes);
		}
		if (first)
			sum = cost_add(c->arena, sum,
				       cost_min(c->arena, bytes, whole(c, buf_of(c->s->l, root))));
	}
	return sum;
}

KernelCost kernel_cost(const Nest *s, uint64_t stages)
{
	Counter c = {.s = s,
		     .arena = s->arena,
		     .stages = stages,
		     .seen = ARENA_ARRAY(s->arena, bool, s->k->kx.n)};
	intern_init(&c.same, s->arena);
	find_common(&c);
	KernelCost out = {.flops = count_operations(&c)};
	out.bytes = count_bytes(&c);
	return out;
}
