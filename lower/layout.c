/* Layouts of buffers: the order of dimensions in memory, chosen for the whole program.
 *
 * Contractions and convolutions vote, weighted by size: an operand wants its summed dimensions
 * fastest, a result wants the free dimensions of the second operand fastest (so convolutions get
 * channels-last), and slices at places that depend on data want to lie in one piece. What a kernel
 * makes a larger result of the model from takes that result's order.
 * Other buffers without votes take the order of the largest buffer that is read or written with the
 * same index in one kernel. Conversions then happen inside the kernels at the borders, as loads
 * through another order. */
#include "ir/kernel/contraction.h"
#include "ir/kernel/build.h"
#include "lower/priv.h"

#include <string.h>

enum {
	MAX_VOTES = 6, /* orders that are compared for one buffer */
	FEW_TAPS = 12, /* as many products of a row cost less than turning its elements */
	SHORT_ROW = 8
};

typedef struct {
	uint32_t perm[MAX_RANK];
	double weight;
} Vote;

typedef struct {
	Vote vote[MAX_VOTES];
	uint32_t n;
	uint32_t tiles; /* bits of dimensions that count tiles */
	bool decided;
} Ballot;

typedef struct {
	Lowered *l;
	Ballot *ballot; /* by buffer */
} Layouts;

/* An access of kernel k: one index for each dimension of the buffer. */
typedef struct {
	BufId buf;
	const Sym *idx;
} Access;

static double elements(Lowered *l, BufId b)
{
	const Buffer *buf = buf_of(l, b);
	double n = 1;
	for (uint32_t k = 0; k < buf->rank; k++)
		n *= (double)sym_hint(l->ir->syms, buf->dim[k]);
	return n;
}

static void vote(Layouts *w, BufId b, const uint32_t *perm, double weight)
{
	Ballot *ballot = &w->ballot[b.i];
	uint32_t rank = buf_of(w->l, b)->rank;
	for (uint32_t i = 0; i < ballot->n; i++) {
		if (!memcmp(ballot->vote[i].perm, perm, rank * sizeof *perm)) {
			ballot->vote[i].weight += weight;
			return;
		}
	}
	if (ballot->n == MAX_VOTES)
		return;
	Vote *v = &ballot->vote[ballot->n++];
	memcpy(v->perm, perm, rank * sizeof *perm);
	v->weight = weight;
}

static bool free_to_choose(const Layouts *w, BufId b)
{
	const Buffer *buf = buf_of(w->l, b);
	return buf->kind == BUF_TEMP && !buf->layout_fixed;
}

/* Sorts dimensions by class, the slowest class first; dimensions of one class stay in order. */
static void order_by_class(const uint32_t *class, uint32_t rank, uint32_t *perm)
{
	uint32_t n = 0;
	for (uint32_t c = 0; c < 5; c++)
		for (uint32_t k = 0; k < rank; k++)
			if (class[k] == c)
				perm[n++] = k;
}

static uint64_t axes_in(const Layouts *w, const Kernel *k, Sym e)
{
	uint64_t m = 0;
	for (uint32_t i = 0; i < k->axis.n; i++)
		if (sym_uses(w->l->ir->syms, e, k->axis.data[i].var))
			m |= UINT64_C(1) << i;
	return m;
}

static uint64_t axes_of_load(const Layouts *w, const Kernel *k, const KxData *x)
{
	uint64_t m = 0;
	for (uint32_t i = 0; i < x->nidx; i++)
		m |= axes_in(w, k, x->idx[i]);
	return m;
}

/* Roles of the axes of an anchor. */
typedef struct {
	uint64_t sum, only_a, only_b, batch;
	bool channels; /* all that is free in a are windows, and nothing in b is */
	bool rows;     /* so, but b is large and row-major */
} Roles;

enum { CLASS_ONE, CLASS_BATCH, CLASS_FREE, CLASS_SUM, CLASS_LAST };

/* Whether the contraction is a depthwise convolution or its gradient by weights: b has the channel
 * (batch) and summed axes only, and a has the channel and windows. */
static bool only_channels(const Layouts *w, const Kernel *k, const KxData *a, const Roles *r)
{
	if (r->only_b || !r->batch)
		return false;
	for (uint32_t d = 0; d < a->nidx; d++) {
		uint64_t m = axes_in(w, k, a->idx[d]);
		if ((m & r->only_a) && !(m & r->sum))
			return false;
	}
	return true;
}

static bool in_order(const Buffer *b)
{
	bool same = b->layout.n == b->rank;
	for (uint32_t k = 0; k < b->layout.n; k++)
		same &= b->layout.dim[k].axis == k;
	return same;
}

/* Whether the pixels of a row are the vector: windows have few taps, and run along rows that the
 * result has, too. Neither operand nor result gets another order then. */
static bool along_rows(const Layouts *w, const Kernel *k, const KxData *a, const Roles *r)
{
	SymTab *t = w->l->ir->syms;
	const uint32_t last = kernel_last_store(k);
	if (last == k->stage.n)
		return false;
	const Stage *st = &k->stage.data[last];
	const Buffer *to = buf_of(w->l, st->store.buf);
	const Stage *sum = &k->stage.data[kernel_first_contraction(k)];
	double taps = 1;
	if (!r->channels || free_to_choose(w, st->store.buf) || !in_order(to) || !a->nidx ||
	    !to->rank)
		return false;
	for (uint32_t i = 0; i < sum->nred; i++)
		taps *= (double)sym_hint(t, k->axis.data[sum->red[i]].extent);
	for (uint32_t i = 0, n = kernel_nouter(k); i < n; i++) {
		Sym coef, rest, var = k->axis.data[i].var;
		if (r->only_a >> i & 1 && sym_uses(t, st->store.idx[to->rank - 1], var) &&
		    sym_linear(t, a->idx[a->nidx - 1], var, &coef, &rest) && sym_is(t, coef, 1))
			return taps <= FEW_TAPS && sym_hint(t, k->axis.data[i].extent) >= SHORT_ROW;
	}
	return false;
}

/* Returns the axes of which indices of loads are functions, and not the axis itself. */
static uint64_t tile_axes(const Layouts *w, const Kernel *k)
{
	uint64_t tiles = 0;
	for (uint32_t i = 1; i < k->kx.n; i++)
		for (uint32_t d = 0; d < k->kx.data[i].nidx; d++) {
			const uint64_t axes = axes_in(w, k, k->kx.data[i].idx[d]);
			for (uint32_t a = 0; a < k->axis.n; a++)
				if (axes >> a & 1 &&
				    k->axis.data[a].var.i != k->kx.data[i].idx[d].i)
					tiles |= UINT64_C(1) << a;
		}
	return tiles;
}

/* Notes dimensions of what the kernel stores that count tiles: from one point to the next, loads go
 * on by several elements, so that vectors along such a dimension would gather. */
static bool note_tiles(Layouts *w, const Kernel *k)
{
	enum { FEW_STORES = 4 };
	if (k->stage.n < FEW_STORES || kernel_contracts(k))
		return false;
	const uint64_t tiles = tile_axes(w, k);
	for (uint32_t s = 0; s < k->stage.n && tiles; s++) {
		const Access to = {k->stage.data[s].store.buf, k->stage.data[s].store.idx};
		for (uint32_t d = 0; to.buf.i && d < buf_of(w->l, to.buf)->rank; d++)
			if (axes_in(w, k, to.idx[d]) & tiles)
				w->ballot[to.buf.i].tiles |= 1U << d;
	}
	return false;
}

/* Makes summed dimensions slower than free ones where the fastest would count tiles. */
static void keep_tiles_slow(uint32_t tiles, uint32_t rank, uint32_t *class)
{
	bool summed = false, free = false;
	for (uint32_t d = 0; d < rank; d++) {
		summed |= class[d] == CLASS_SUM && tiles >> d & 1;
		free |= class[d] == CLASS_FREE && !(tiles >> d & 1);
	}
	for (uint32_t d = 0; d < rank; d++)
		if (summed && free && class[d] == CLASS_FREE)
			class[d] = CLASS_LAST;
}

/* Adds a vote for the order of operand a: batch, free, summed dimensions. A dimension of free and
 * summed axes (windows) counts as free. Of a channel-wise contraction the batch dimensions are the
 * vector: they come last, unless b is as large and has another order. */
static void vote_operand_a(Layouts *w, const Kernel *k, const KxData *x, const Roles *r,
			   double weight)
{
	uint32_t class[MAX_RANK], perm[MAX_RANK];
	bool has_sum = false;
	for (uint32_t d = 0; d < x->nidx; d++) {
		uint64_t m = axes_in(w, k, x->idx[d]);
		if (!m)
			class[d] = CLASS_ONE;
		else if ((m & r->only_a) || (r->channels && (m & r->sum)))
			class[d] = CLASS_FREE;
		else if (m & r->sum)
			class[d] = CLASS_SUM;
		else
			class[d] = CLASS_BATCH;
		has_sum |= class[d] == CLASS_SUM;
	}
	for (uint32_t d = 0; d < x->nidx; d++)
		if (class[d] == CLASS_BATCH && !has_sum && !r->rows)
			class[d] = CLASS_LAST;
	keep_tiles_slow(w->ballot[x->buf.i].tiles, x->nidx, class);
	order_by_class(class, x->nidx, perm);
	vote(w, x->buf, perm, weight);
}

/* Adds a vote for the order of operand b: batch, summed, free dimensions; of a channel-wise
 * contraction summed, then batch. */
static void vote_operand_b(Layouts *w, const Kernel *k, const KxData *x, const Roles *r,
			   double weight)
{
	uint32_t class[MAX_RANK], perm[MAX_RANK];
	for (uint32_t d = 0; d < x->nidx; d++) {
		uint64_t m = axes_in(w, k, x->idx[d]);
		class[d] = !m                ? CLASS_ONE
			   : (m & r->only_b) ? CLASS_LAST
			   : (m & r->sum)    ? CLASS_SUM
			   : r->channels     ? CLASS_LAST
					     : CLASS_BATCH;
	}
	order_by_class(class, x->nidx, perm);
	vote(w, x->buf, perm, weight);
}

static void vote_result(Layouts *w, const Kernel *k, const Stage *st, const Roles *r, double weight)
{
	uint32_t class[MAX_RANK], perm[MAX_RANK], rank = buf_of(w->l, st->store.buf)->rank;
	for (uint32_t d = 0; d < rank; d++) {
		uint64_t m = axes_in(w, k, st->store.idx[d]);
		if (!m)
			class[d] = CLASS_ONE;
		else if (m & r->only_b)
			class[d] = CLASS_LAST;
		else if (m & r->only_a)
			class[d] = CLASS_FREE;
		else
			class[d] = r->only_b ? CLASS_BATCH : CLASS_LAST;
	}
	order_by_class(class, rank, perm);
	vote(w, st->store.buf, perm, weight);
}

/* Returns what operand i of the contraction is computed of: without conversion, of halves of bytes
 * the bytes. */
static const KxData *operand(const Layouts *w, const Kernel *k, uint32_t i)
{
	const Stage *sum = &k->stage.data[kernel_first_contraction(k)];
	const Kx x = kx_unconverted(k, k->kx.data[sum->value.i].in[i]);
	uint32_t axis;
	const Kx bytes = sum->reduce.half == i + 1 ? kx_half(w->l->ir->syms, k, x, &axis) : x;
	return &k->kx.data[bytes.i];
}

static bool vote_kernel(Layouts *w, const Kernel *k)
{
	if (!kernel_contracts(k))
		return false;
	const KxData *a = operand(w, k, 0), *b = operand(w, k, 1);
	if (a->kind != KX_LOAD || b->kind != KX_LOAD)
		return false;
	uint64_t ma = axes_of_load(w, k, a), mb = axes_of_load(w, k, b);
	uint64_t outer = (UINT64_C(1) << kernel_nouter(k)) - 1;
	Roles r = {.sum = ~outer, .only_a = ma & ~mb & outer, .only_b = mb & ~ma & outer,
	           .batch = ma & mb & outer};
	r.channels = only_channels(w, k, a, &r);
	r.rows = r.channels && !free_to_choose(w, b->buf) &&
		 2 * elements(w->l, b->buf) > elements(w->l, a->buf);
	if (along_rows(w, k, a, &r)) {
		const uint32_t class[MAX_RANK] = {0};
		uint32_t perm[MAX_RANK];
		order_by_class(class, a->nidx, perm);
		vote(w, a->buf, perm, 2 * elements(w->l, a->buf));
		return false;
	}
	vote_operand_a(w, k, a, &r, 2 * elements(w->l, a->buf));
	vote_operand_b(w, k, b, &r, elements(w->l, b->buf));
	for (uint32_t s = 0; s < k->stage.n; s++) {
		const Stage *st = &k->stage.data[s];
		if (stage_stores(st))
			vote_result(w, k, st, &r, 3 * elements(w->l, st->store.buf));
	}
	return false;
}

static bool uses_value_var(const Layouts *w, const Kernel *k, Sym e)
{
	for (uint32_t i = 0; i < k->vvar.n; i++)
		if (sym_uses(w->l->ir->syms, e, k->vvar.data[i].var))
			return true;
	return false;
}

/* Adds a vote for slices at places that depend on data: each lies in one piece. */
static void vote_slices(Layouts *w, const Kernel *k, const Access *at, double weight)
{
	uint32_t class[MAX_RANK], perm[MAX_RANK], rank = buf_of(w->l, at->buf)->rank, placed = 0;
	for (uint32_t d = 0; d < rank; d++) {
		const bool place = uses_value_var(w, k, at->idx[d]);
		class[d] = place ? CLASS_FREE : axes_in(w, k, at->idx[d]) ? CLASS_LAST : CLASS_ONE;
		placed += place;
	}
	if (!placed || placed == rank)
		return;
	order_by_class(class, rank, perm);
	vote(w, at->buf, perm, weight);
}

/* Makes scatters, and sums of segments, vote for the slices that they write or read. An access out
 * of order takes a line of a cache for each element. */
static bool vote_places(Layouts *w, const Kernel *k)
{
	enum { LINE = 8 };
	double points = LINE;
	for (uint32_t a = 0; a < k->axis.n; a++)
		points *= axis_is_plain(&k->axis.data[a])
				  ? (double)sym_hint(w->l->ir->syms, k->axis.data[a].extent)
				  : k->axis.data[a].mean;
	for (uint32_t s = 0; s < k->stage.n; s++) {
		const Stage *st = &k->stage.data[s];
		if (st->kind == STAGE_SCATTER && stage_stores(st))
			vote_slices(w, k, &(Access){st->store.buf, st->store.idx}, points);
	}
	for (uint32_t i = 1; i < k->kx.n && !kernel_is_plain(k); i++)
		if (k->kx.data[i].kind == KX_LOAD)
			vote_slices(w, k, &(Access){k->kx.data[i].buf, k->kx.data[i].idx}, points);
	return false;
}

static void set_layout(Layouts *w, BufId b, const uint32_t *perm)
{
	Buffer *buf = buf_of(w->l, b);
	buf->layout = layout_permuted(w->l->ir, buf->rank, buf->dim, perm);
	w->ballot[b.i].decided = true;
}

/* Decides by votes; of orders with as many votes, for one whose last dimension is the fastest, else
 * for the first. */
static void count_votes(Layouts *w)
{
	for (uint32_t i = 1; i < w->l->buf.n; i++) {
		const Ballot *b = &w->ballot[i];
		uint32_t best = 0, last = buf_of(w->l, (BufId){i})->rank - 1;
		for (uint32_t v = 1; v < b->n; v++)
			if (b->vote[v].weight > b->vote[best].weight ||
			    (b->vote[v].weight == b->vote[best].weight &&
			     b->vote[best].perm[last] != last && b->vote[v].perm[last] == last))
				best = v;
		if (b->n && free_to_choose(w, (BufId){i}))
			set_layout(w, (BufId){i}, b->vote[best].perm);
	}
}

static bool same_index(const Layouts *w, const KxData *x, const Stage *st)
{
	if (x->kind != KX_LOAD || x->nidx != buf_of(w->l, st->store.buf)->rank)
		return false;
	uint32_t equal = 0;
	for (uint32_t d = 0; d < x->nidx; d++)
		equal += sym_uses_kind(w->l->ir->syms, st->store.idx[d], SYMVAR_AXIS) &&
			 sym_uses_kind(w->l->ir->syms, x->idx[d], SYMVAR_AXIS);
	return equal >= 2;
}

/* ---- orders of buffers of other ranks: reshapes, windows, what is reduced ---- */

/* Of the axes of an index: in which dimensions they stand of a buffer that another index is of,
 * counted from the slowest in memory. */
typedef struct {
	bool known;
	uint32_t slowest, fastest;
	int64_t stride; /* how far apart elements are in it along the axis, if there is one of
	                   each */
} Place;

static Place place_of(const Layouts *w, const Kernel *k, Access of, Sym e)
{
	SymTab *t = w->l->ir->syms;
	const Layout *order = &buf_of(w->l, of.buf)->layout;
	Place found = {0};
	for (uint32_t p = 0; p < order->n; p++)
		for (uint32_t a = 0; a < k->axis.n; a++) {
			Sym coef, rest, there = of.idx[order->dim[p].axis],
					var = k->axis.data[a].var;
			if (!sym_uses(t, e, var) || !sym_uses(t, there, var))
				continue;
			if (!found.known)
				found.slowest = p;
			found.known = true;
			found.fastest = p;
			found.stride = 0;
			if (sym_linear(t, there, var, &coef, &rest))
				found.stride = sym_const_or(t, coef, 0);
		}
	return found;
}

static bool comes_before(Place a, Place b)
{
	return a.slowest != b.slowest ? a.slowest < b.slowest : a.stride > b.stride;
}

/* The order of `to` in which its elements lie much as those of `from` at the same points: by the
 * slowest dimension there that each belongs to; what `from` lacks comes before its fastest one.
 * False where that one is not in `to`: nothing is gained. */
MUST_LOOK static bool order_like(Layouts *w, const Kernel *k, Access to, Access from,
				 uint32_t *perm)
{
	const uint32_t rank = buf_of(w->l, to.buf)->rank,
		       last = buf_of(w->l, from.buf)->layout.n - 1;
	Place at[MAX_RANK];
	uint32_t inner = rank;
	for (uint32_t d = 0; d < rank; d++) {
		at[d] = place_of(w, k, from, to.idx[d]);
		if (at[d].known && at[d].fastest == last)
			inner = d;
	}
	for (uint32_t d = 0; d < rank && inner < rank; d++) {
		if (!at[d].known)
			at[d] = (Place){.slowest = at[inner].slowest, .stride = INT64_MAX};
		uint32_t p = d;
		for (; p > 0 && comes_before(at[d], at[perm[p - 1]]); p--)
			perm[p] = perm[p - 1];
		perm[p] = d;
	}
	return inner < rank;
}

static bool follow_order(Layouts *w, const Kernel *k, Access to, Access from)
{
	const Buffer *src = buf_of(w->l, from.buf);
	uint32_t perm[MAX_RANK];
	if (w->ballot[to.buf.i].decided || !w->ballot[from.buf.i].decided ||
	    !free_to_choose(w, to.buf) || src->layout.n != src->rank || in_order(src) ||
	    !order_like(w, k, to, from, perm))
		return false;
	set_layout(w, to.buf, perm);
	return true;
}

static bool take_order(Layouts *w, BufId to, BufId from)
{
	const Buffer *src = buf_of(w->l, from);
	if (w->ballot[to.i].decided || !free_to_choose(w, to) ||
	    src->rank != buf_of(w->l, to)->rank || src->layout.n != src->rank)
		return false;
	uint32_t perm[MAX_RANK];
	for (uint32_t k = 0; k < src->rank; k++)
		perm[k] = src->layout.dim[k].axis;
	set_layout(w, to, perm);
	return true;
}

static bool copy_layout(Layouts *w, BufId to, BufId from)
{
	return w->ballot[from.i].decided && take_order(w, to, from);
}

/* Gives a buffer that grows into a result of the model (resizing) the result's order: it is read
 * more often than written. Returns whether a layout changed. */
static bool follow_result(Layouts *w, const Kernel *k)
{
	bool changed = false;
	for (uint32_t s = 0; s < k->stage.n; s++) {
		const Stage *st = &k->stage.data[s];
		if (!stage_stores(st) || buf_of(w->l, st->store.buf)->kind != BUF_OUTPUT)
			continue;
		for (uint32_t i = 1; i < k->kx.n; i++) {
			const KxData *x = &k->kx.data[i];
			if (same_index(w, x, st) &&
			    elements(w->l, st->store.buf) >= 2 * elements(w->l, x->buf))
				changed |= take_order(w, x->buf, st->store.buf);
		}
	}
	return changed;
}

/* Spreads decisions along one kernel: from the largest decided load to the stores, and back.
 * Returns whether a layout changed. */
static bool spread(Layouts *w, const Kernel *k)
{
	bool changed = false;
	for (uint32_t s = 0; s < k->stage.n; s++) {
		const Stage *st = &k->stage.data[s];
		if (!stage_stores(st))
			continue;
		BufId best = {0};
		for (uint32_t i = 1; i < k->kx.n; i++) {
			const KxData *x = &k->kx.data[i];
			if (x->kind == KX_LOAD) {
				const Access read = {x->buf, x->idx},
					     written = {st->store.buf, st->store.idx};
				changed |= follow_order(w, k, read, written) ||
					   follow_order(w, k, written, read);
			}
			if (!same_index(w, x, st))
				continue;
			changed |= copy_layout(w, x->buf, st->store.buf);
			if (w->ballot[x->buf.i].decided &&
			    (!best.i || elements(w->l, x->buf) > elements(w->l, best)))
				best = x->buf;
		}
		if (best.i)
			changed |= copy_layout(w, st->store.buf, best);
	}
	return changed;
}

static bool for_each_kernel(Layouts *w, const StepList *list,
			    bool (*visit)(Layouts *, const Kernel *))
{
	bool changed = false;
	for (uint32_t i = 0; i < list->step.n; i++) {
		const Step *step = &list->step.data[i];
		StepList *inner[MAX_STEP_LISTS];
		if (step->kind == STEP_KERNEL)
			changed |= visit(w, step->kernel);
		for (uint32_t k = 0, n = step_lists(step, inner); k < n; k++)
			changed |= for_each_kernel(w, inner[k], visit);
	}
	return changed;
}

/* Fixes the layouts of carried buffers, row-major: the two of a pair swap memory, so they need
 * equal layouts. */
static void fix_carried(Layouts *w, const StepList *list)
{
	for (uint32_t i = 0; i < list->step.n; i++) {
		const Step *step = &list->step.data[i];
		StepList *inner[MAX_STEP_LISTS];
		for (uint32_t c = 0; c < step->ncarry; c++) {
			buf_of(w->l, step->carry[c].from)->layout_fixed = true;
			buf_of(w->l, step->carry[c].to)->layout_fixed = true;
		}
		for (uint32_t k = 0, n = step_lists(step, inner); k < n; k++)
			fix_carried(w, inner[k]);
	}
}

void lower_choose_layouts(Lowered *l)
{
	Layouts w = {.l = l, .ballot = ARENA_ARRAY(l->ir->ctx->arena, Ballot, l->buf.n)};
	fix_carried(&w, &l->steps);
	for_each_kernel(&w, &l->steps, note_tiles);
	for_each_kernel(&w, &l->steps, vote_kernel);
	for_each_kernel(&w, &l->steps, vote_places);
	count_votes(&w);
	for_each_kernel(&w, &l->steps, follow_result);
	for (uint32_t round = 0; round < 64 && for_each_kernel(&w, &l->steps, spread); round++)
		;
}

/* ---- results that are other tensors with other dimensions ----
 *
 * A value that kernels read, and of which a permutation or another shape is a result of the model,
 * would be stored twice: in the workspace, and by a copy in the result. Where it lies in memory as
 * the result does it is the result instead, and there is no copy. */

typedef struct {
	Lowered *l;
	uint32_t step; /* the present one of the main list, counted from 1 */
	uint32_t *writes, *reads, *last_write; /* by buffer: how many, in which step the last
						  write */
} Merge;

static void visit(void *data, BufId b, bool write)
{
	Merge *m = data;
	(*(write ? &m->writes[b.i] : &m->reads[b.i]))++;
	m->last_write[b.i] = write ? m->step : m->last_write[b.i];
}

/* Whether the stage stores all of the result, each element once. */
static bool stores_all(const Merge *m, const Kernel *k, const Buffer *result)
{
	const Stage *st = &k->stage.data[0];
	const SymTab *syms = m->l->ir->syms;
	uint64_t seen = 0;
	for (uint32_t d = 0; d < result->rank; d++) {
		uint32_t a = 0;
		if (sym_uses_kind(syms, result->dim[d], SYMVAR_UNBACKED))
			return false;
		if (sym_is(syms, result->dim[d], 1) && sym_is(syms, st->store.idx[d], 0))
			continue;
		while (a < k->axis.n && k->axis.data[a].var.i != st->store.idx[d].i)
			a++;
		if (a == k->axis.n || k->axis.data[a].extent.i != result->dim[d].i ||
		    (seen >> a & 1))
			return false;
		seen |= UINT64_C(1) << a;
	}
	return true;
}

static Sym allocated(const Merge *m, const Buffer *b)
{
	Sym n = sym_int(m->l->ir->syms, 1);
	for (uint32_t d = 0; d < b->layout.n; d++)
		n = sym_mul(m->l->ir->syms, n, b->layout.dim[d].padded);
	return n;
}

/* Whether the kernel copies all of a temporary tensor, as it lies in memory, to all of a result.
 * Sets *from and *to. */
MUST_LOOK static bool copies_to_result(const Merge *m, const Kernel *k, BufId *from, BufId *to)
{
	const Stage *st = &k->stage.data[0];
	if (k->stage.n != 1 || st->kind != STAGE_MAP || !stage_stores(st))
		return false;
	const KxData *x = &k->kx.data[st->value.i];
	*to = st->store.buf;
	*from = x->buf;
	if (x->kind != KX_LOAD || x->guard.i || st->where.i || m->writes[to->i] != 1 ||
	    m->reads[to->i] || m->last_write[from->i] >= m->step)
		return false;
	const Buffer *a = buf_of(m->l, *from), *b = buf_of(m->l, *to);
	if (a->kind != BUF_TEMP || b->kind != BUF_OUTPUT || a->layout_fixed || b->donated ||
	    a->dtype != b->dtype || !stores_all(m, k, b))
		return false;
	return allocated(m, a).i == allocated(m, b).i &&
	       layout_offset(m->l->ir, &a->layout, x->idx).i ==
		       layout_offset(m->l->ir, &b->layout, st->store.idx).i;
}

void lower_merge_results(Lowered *l)
{
	Arena *scratch = l->ir->ctx->scratch;
	Merge m = {.l = l,
		   .writes = ARENA_ARRAY(scratch, uint32_t, l->buf.n),
		   .reads = ARENA_ARRAY(scratch, uint32_t, l->buf.n),
		   .last_write = ARENA_ARRAY(scratch, uint32_t, l->buf.n)};
	uint32_t n = 0, nstep = l->steps.step.n;
	for (m.step = 1; m.step <= nstep; m.step++)
		step_buffers(&l->steps.step.data[m.step - 1], scratch, visit, &m);
	for (m.step = 1; m.step <= nstep; m.step++) {
		const Step *step = &l->steps.step.data[m.step - 1];
		BufId from, to;
		if (step->kind == STEP_KERNEL && copies_to_result(&m, step->kernel, &from, &to)) {
			Buffer *b = buf_of(l, from);
			b->kind = BUF_OUTPUT;
			b->k = buf_of(l, to)->k;
			b->layout_fixed = true;
		} else {
			l->steps.step.data[n++] = *step;
		}
	}
	l->steps.step.n = n;
}
