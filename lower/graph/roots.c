/* Operators whose kernels are more than a value at each point, one function each; see roots.h.
 * Operands of those that are more than one kernel or have no result are stored (.reads), so their
 * kernels can always be built.
 *
 *   scatter(x, index, u)    copy x to the result; then, for every point of the axes that index does
 *                           not choose, the updates one after the other
 *   update_slice(x, u, at)  copy x to the result; then u over a part of it
 *   sort(x)                 one kernel: a sort between the results and two temporary buffers, by
 *                           digits of keys or by merging; where only the first elements are
 *                           wanted, a heap of these in the results
 *   fft_lines(x, roots)     one kernel: each line is transformed
 *
 * Factorisations are in factor.c. */
#include "lower/roots.h"

#include <string.h>

#include "lower/factor/factor.h"
#include "lower/graph/graph.h"
#include "lower/stage.h"
#include "lower/state.h"
#include "lower/winograd.h"
#include "ops/rules/rules.h"

/* ---- roots of one kernel ---- */

static Kx root_cumulative(Trace *t, const Sym *idx)
{
	Graph *g = t->s->g;
	Node x = node_in(g, t->root, 0);
	int64_t dim = node_int(g, t->root, "dim");
	int axis = trace_axis_number(t, idx[dim]);
	Kx value = trace_value(t, x, idx, (Kx){0});
	if (axis < 0) /* one element */
		return value;
	t->has_reduce = true;
	t->outer = ((UINT64_C(1) << t->nroot) - 1) & ~(UINT64_C(1) << axis);
	DType d = node_dtype(g, t->root), c = dtype_compute(d);
	value = kx_to(t->k, t->s->arena, c, value);
	ReduceKind combine = lower_combiner(t->s, t->root, "kind", d);
	/* One chain of as many roundings as there are elements runs in f64, as PyTorch's do. */
	Stage st = {.kind = STAGE_RUNNING,
		    .nred = 1,
		    .red = {(uint8_t)axis},
		    .value = value,
		    .dtype = d,
		    .running = {.combine = combine,
				.acc = c == DT_f32 && reduce_rounds(combine) ? DT_f64 : c,
				.reverse = node_bool(g, t->root, "reverse")}};
	trace_push_stage(t, st);
	return (Kx){0};
}

static Kx root_arg_reduce(Trace *t, const Sym *idx)
{
	Graph *g = t->s->g;
	Node x = node_in(g, t->root, 0);
	int64_t dim = node_int(g, t->root, "dim");
	Stage st = {.kind = STAGE_ARGREDUCE,
		    .dtype = DT_i64,
		    .reduce = {.combine = lower_combiner(t->s, t->root, "kind", DT_i64),
			       .acc = DT_i64}};
	Sym in[MAX_RANK];
	for (uint32_t k = 0, o = 0; k < node_rank(g, x); k++)
		in[k] = k == (uint32_t)dim ? trace_inner_axis(t, "r", node_dim(g, x, k), &st)
					   : idx[o++];
	if (!st.nred)
		return kx_const_int(t->k, t->s->arena, DT_i64, 0);
	t->has_reduce = true;
	t->outer = (UINT64_C(1) << t->nroot) - 1;
	st.value = trace_value(t, x, in, (Kx){0});
	return trace_stage_value(t, trace_push_stage(t, st));
}

/* Returns the sum of what .index reads, over the axes of .index. */
static Kx root_fold(Trace *t, const Sym *idx)
{
	Graph *g = t->s->g;
	DType c = dtype_compute(node_dtype(g, t->root));
	Stage st = {.kind = STAGE_REDUCE,
		    .dtype = node_dtype(g, t->root),
		    .reduce = {.combine = reduce_of(REDUCE_SUM, c), .acc = c}};
	TraceMap m = trace_map(t, t->root, idx, (Kx){0}, &st);
	trace_ask(&m);
	t->has_reduce = true;
	t->outer = (UINT64_C(1) << t->nroot) - 1;
	Kx zero = kx_zero(t->k, t->s->arena, c);
	st.value = trace_guarded(t, node_in(g, t->root, 0), m.map.in[0], (Kx){0}, m.cond, zero);
	return trace_stage_value(t, trace_push_stage(t, st));
}

/* ---- segment_reduce ---- */

/* Returns the number + 1 of a variable for offset `at` of a segment, which bounds its elements. */
static uint32_t segment_bound(Trace *t, const Sym *idx, uint32_t batch, int64_t more, Sym n)
{
	SymTab *syms = t->s->ir->syms;
	Sym at[MAX_RANK];
	memcpy(at, idx, batch * sizeof *at);
	at[batch] = sym_addi(syms, idx[batch], more);
	Kx offset = trace_value(t, node_in(t->s->g, t->root, 1), at, (Kx){0});
	trace_value_var(t, offset, sym_addi(syms, n, 1));
	return t->k->vvar.n;
}

/* Combines the elements of a segment, along an axis whose bounds are data. */
static Kx root_segment_reduce(Trace *t, const Sym *idx)
{
	Graph *g = t->s->g;
	Node x = node_in(g, t->root, 0);
	const uint32_t batch = (uint32_t)node_int(g, t->root, "batch");
	const Sym n = node_dim(g, x, batch), segments = node_dim(g, t->root, batch);
	DType d = node_dtype(g, t->root), c = dtype_compute(d);
	Stage st = {.kind = STAGE_REDUCE,
		    .dtype = d,
		    .reduce = {.combine = lower_combiner(t->s, t->root, "kind", d), .acc = c}};
	Sym at[MAX_RANK];
	t->has_reduce = true;
	t->outer = (UINT64_C(1) << t->nroot) - 1;
	const uint32_t lo = segment_bound(t, idx, batch, 0, n),
		       hi = segment_bound(t, idx, batch, 1, n);
	memcpy(at, idx, node_rank(g, x) * sizeof *at);
	at[batch] = trace_bounded_axis(t, "e", n, lo, hi, segments, &st);
	/* an index that is always 0 may be read ahead of the loop, if there is an element at all */
	const Kx some = trace_in_range(t, at[batch], sym_int(g->ir->syms, 0), n);
	st.value = kx_to(t->k, t->s->arena, c, trace_value(t, x, at, some));
	return trace_stage_value(t, trace_push_stage(t, st));
}

/* ---- searchsorted ---- */

typedef struct {
	Trace *t;
	Kx x;
	Sym at[MAX_RANK]; /* in the sorted rows; the last one is the place */
	uint32_t last;
	bool right;
} Search;

/* Returns a bool expression: whether the row's element at that place stands after x. */
static Kx stands_after(Search *w, Sym place)
{
	Trace *t = w->t;
	Graph *g = t->s->g;
	Node sorted = node_in(g, t->root, 0);
	w->at[w->last] = place;
	Sym zero = sym_int(g->ir->syms, 0);
	/* an empty row has no element */
	Kx some = trace_in_range(t, zero, zero, node_dim(g, sorted, w->last));
	Kx none = kx_zero(t->k, t->s->arena, dtype_compute(node_dtype(g, sorted)));
	Kx in[2] = {trace_guarded(t, sorted, w->at, (Kx){0}, some, none), w->x};
	return kx_op(t->k, t->s->arena, w->right ? OP_gt : OP_ge, DT_bool, in, 2);
}

/* Searches a short row, of which every place is a number: elements are loaded once for all of x. */
static Kx search_tree(Search *w, int64_t low, int64_t high)
{
	Trace *t = w->t;
	if (low == high)
		return kx_const_int(t->k, t->s->arena, DT_i64, low);
	int64_t middle = low + (high - low) / 2;
	Kx after = stands_after(w, sym_int(t->s->ir->syms, middle));
	return kx_select(t->k, t->s->arena, after, search_tree(w, low, middle),
			 search_tree(w, middle + 1, high));
}

/* Returns how often a row of up to n elements is halved until none is left. Memory has at most 2^46
 * bytes. */
static uint32_t halvings(int64_t n, DType d)
{
	uint32_t most = 47, steps = 0;
	for (uint32_t size = dtype_size(d); size > 1; size /= 2)
		most--;
	for (; n > 0 && steps < most; n /= 2)
		steps++;
	return steps;
}

static Kx search_steps(Search *w, Sym length, uint32_t steps)
{
	Trace *t = w->t;
	Kernel *k = t->k;
	Arena *arena = t->s->arena;
	Kx one = kx_const_int(k, arena, DT_i64, 1), low = kx_const_int(k, arena, DT_i64, 0);
	Kx high = kx_index(k, arena, length);
	for (uint32_t i = 0; i < steps; i++) {
		Kx sum = kx_op(k, arena, OP_add, DT_i64, (Kx[]){low, high}, 2);
		Kx middle = kx_op(k, arena, OP_shift_right, DT_i64, (Kx[]){sum, one}, 2);
		Kx after = stands_after(w, trace_value_var(t, middle, length));
		Kx done = kx_op(k, arena, OP_ge, DT_bool, (Kx[]){low, high}, 2);
		Kx stays = kx_op(k, arena, OP_bit_or, DT_bool, (Kx[]){after, done}, 2);
		Kx next = kx_op(k, arena, OP_add, DT_i64, (Kx[]){middle, one}, 2);
		/* where it is done, the middle is there already */
		high = kx_select(k, arena, after, middle, high);
		low = kx_select(k, arena, stays, low, next);
	}
	return low;
}

/* Adds the bisection that PyTorch does, and .eval. */
static Kx root_searchsorted(Trace *t, const Sym *idx)
{
	enum { SHORT_ROW = 64 };
	Graph *g = t->s->g;
	Node sorted = node_in(g, t->root, 0);
	Search w = {
		.t = t, .last = node_rank(g, sorted) - 1, .right = node_bool(g, t->root, "right")};
	Sym length = node_dim(g, sorted, w.last);
	memcpy(w.at, idx, w.last * sizeof *idx);
	w.x = trace_value(t, node_in(g, t->root, 1), idx, (Kx){0});
	int64_t lo, hi;
	sym_range(g->ir->syms, length, &lo, &hi);
	if (lo == hi && hi <= SHORT_ROW)
		return search_tree(&w, 0, hi);
	return search_steps(&w, length, halvings(hi, node_dtype(g, sorted)));
}

/* ---- scatter ---- */

static Kernel *scatter_kernel(Lower *s, Node n, const NodePlace *to)
{
	Graph *g = s->g;
	Node x = node_in(g, n, 0), index = node_in(g, n, 1), update = node_in(g, n, 2);
	uint32_t batch = (uint32_t)node_int(g, n, "batch"), rank = node_rank(g, update);
	uint32_t lead = node_rank(g, index) - 1;
	Trace t = {.s = s, .root = n};
	Sym at[MAX_RANK];
	Stage walk = {0};
	trace_start(&t, lower_name(s, n));
	for (uint32_t k = 0; k < rank; k++)
		if (k < batch || k >= lead)
			at[k] = trace_root_axis(&t, node_dim(g, update, k));
	trace_all_outer(&t);
	for (uint32_t k = batch; k < lead; k++)
		at[k] = trace_inner_axis(&t, "u", node_dim(g, index, k), &walk);
	TraceMap m = trace_map(&t, n, at, (Kx){0}, NULL);
	trace_ask(&m);
	Stage st = trace_global_stage(&t, STAGE_SCATTER, to, m.map.in[0], node_rank(g, x));
	st.nred = walk.nred;
	memcpy(st.red, walk.red, sizeof st.red);
	st.scatter.combine = lower_combiner(s, n, "combine", st.dtype);
	st.value = trace_value(&t, update, at, (Kx){0});
	st.where = m.cond;
	trace_push_stage(&t, st);
	trace_order_axes(&t);
	t.k->name = arena_printf(s->arena, "scatter_%s", t.k->name);
	return t.k;
}

static bool same_offset(const SymTab *syms, Sym a, Sym b)
{
	return a.i == b.i || ((!a.i || sym_is(syms, a, 0)) && (!b.i || sym_is(syms, b, 0)));
}

/* Whether x is where the result goes: then it is scattered into in place. */
static bool lies_at(const Lower *s, Node x, const NodePlace *to)
{
	const NodeInfo *info = node_info(s, x);
	const NodePlace *p = info->place.data;
	if (!info->place.n || p->buf.i != to->buf.i || p->t.i != to->t.i)
		return false;
	for (uint32_t k = 0; k < node_rank(s->g, x); k++)
		if (!same_offset(s->ir->syms, p->off[k], to->off[k]))
			return false;
	return true;
}

static void root_scatter(Lower *s, Node n)
{
	NodePlace *place = &node_info(s, n)->place.data[0], to = *place, acc = to;
	DType d = node_dtype(s->g, n);
	ReduceKind how = lower_combiner(s, n, "combine", d);
	/* sums of short floats would round at every step: they are built in f32 */
	bool wide = reduce_rounds(how) && dtype_is_float(d) && dtype_compute(d) != d;
	if (wide) {
		const Type *t = node_type(s->g, n);
		acc = (NodePlace){.buf = lowered_buf(s->l, BUF_TEMP, 0, dtype_compute(t->dtype),
						     t->n, t->dim, graph_name(s->g, n))};
	}
	if (!lies_at(s, node_in(s->g, n, 0), &acc))
		lower_push_kernel(s, lower_copy_kernel(s, node_in(s->g, n, 0), &acc));
	Kernel *k = scatter_kernel(s, n, &acc);
	if (s->state && buf_of(s->l, acc.buf)->kind == BUF_STATE)
		lower_state_check(s, k, node_in(s->g, n, 1));
	lower_push_kernel(s, k);
	if (wide) {
		*place = acc;
		lower_push_kernel(s, lower_copy_kernel(s, n, &to));
		*place = to;
	}
	lower_publish_result(s, n, 0, &to);
}

/* ---- update_slice ---- */

static Kernel *update_kernel(Lower *s, Node n, const NodePlace *to)
{
	Node update = node_in(s->g, n, 1);
	Trace t = {.s = s, .root = n};
	trace_start_over(&t, update);
	trace_all_outer(&t);
	TraceMap m = trace_map(&t, n, t.root_axis, (Kx){0}, NULL);
	trace_ask(&m);
	Stage st = trace_global_stage(&t, STAGE_MAP, to, m.map.in[0], node_rank(s->g, n));
	st.value = trace_value(&t, update, t.root_axis, (Kx){0});
	trace_push_stage(&t, st);
	trace_order_axes(&t);
	t.k->name = arena_printf(s->arena, "update_%s", lower_name(s, n));
	return t.k;
}

static void root_update_slice(Lower *s, Node n)
{
	NodePlace to = lower_result_place(s, n, 0);
	NodePlace part;
	lower_push_kernel(s, lower_copy_kernel(s, node_in(s->g, n, 0), &to));
	Node update = node_in(s->g, n, 1), one = lower_without_leading_one(s, update);
	bool there = lower_has_place(s, n) && lower_update_place(s, n, &part) &&
		     (lower_lives_in(s, update, part) ||
		      (one.i && lower_lives_in(s, one, lower_place_without_leading_one(s, part))));
	if (!there)
		lower_push_kernel(s, update_kernel(s, n, &to));
	lower_publish_result(s, n, 0, &to);
}

/* ---- sort ---- */

/* Adds a temporary buffer of the result's shape, the sorted dimension last. */
static NodePlace scratch_place(Lower *s, Node n, const Type *t, DType d, uint32_t dim,
			       const Sym *idx, Sym *at)
{
	Sym extent[MAX_RANK];
	for (uint32_t k = 0; k < t->n; k++) {
		uint32_t from = k + 1 == t->n ? dim : k + (k >= dim);
		extent[k] = t->dim[from];
		at[k] = idx[from];
	}
	return (NodePlace){
		.buf = lowered_buf(s->l, BUF_TEMP, 0, d, t->n, extent, graph_name(s->g, n))};
}

/* Takes an axis of the root from the outer ones, and returns its number. */
static uint32_t sorted_axis(Trace *t, uint32_t dim)
{
	uint32_t axis = 0;
	while (t->k->axis.data[axis].var.i != t->root_axis[dim].i)
		axis++;
	t->outer &= ~(UINT64_C(1) << axis);
	return axis;
}

static Stage sort_stage(Trace *t, Node n, const NodePlace *to, const Sym *at, uint32_t axis)
{
	Stage st = trace_global_stage(t, STAGE_SORT, to, at,
				      node_rank(t->s->g, node_in(t->s->g, n, 0)));
	st.nred = 1;
	st.red[0] = (uint8_t)axis;
	st.sort.descending = node_bool(t->s->g, n, "descending");
	st.sort.stable = true;
	return st;
}

static void sort_stages(Trace *t, Node n, uint32_t dim, const NodePlace *to)
{
	Graph *g = t->s->g;
	const Type *x = node_type(g, node_in(g, n, 0));
	Sym at[MAX_RANK];
	NodePlace place[4] = {to[0], to[1]};
	place[2] = scratch_place(t->s, n, x, x->dtype, dim, t->root_axis, at);
	place[3] = scratch_place(t->s, n, x, DT_i64, dim, t->root_axis, at);
	uint32_t axis = sorted_axis(t, dim);
	for (uint32_t k = 0; k < 4; k++) {
		Stage st = sort_stage(t, n, &place[k], k < 2 ? t->root_axis : at, axis);
		st.sort.next = k < 3 ? k + 1 : 0;
		if (k == 0)
			st.value = trace_value(t, node_in(g, n, 0), t->root_axis, (Kx){0});
		trace_push_stage(t, st);
	}
}

/* Adds stages that find the first elements only, which have an axis of their own unless there is
 * one such element. */
static void first_stages(Trace *t, Node n, uint32_t dim, Sym first, const NodePlace *to)
{
	Graph *g = t->s->g;
	Sym at[MAX_RANK];
	Stage places = {0};
	uint32_t axis = sorted_axis(t, dim);
	memcpy(at, t->root_axis, node_rank(g, node_in(g, n, 0)) * sizeof *at);
	at[dim] = trace_inner_axis(t, "k", first, &places);
	for (uint32_t k = 0; k < 2; k++) {
		Stage st = sort_stage(t, n, &to[k], at, axis);
		if (places.nred)
			st.red[st.nred++] = places.red[0];
		st.sort.next = k ? 0 : 1;
		if (k == 0)
			st.value = trace_value(t, node_in(g, n, 0), t->root_axis, (Kx){0});
		trace_push_stage(t, st);
	}
}

/* Adds stages that sort rows of one element: they copy the element, as often as the result has it
 * (never, perhaps), and store place 0. */
static void copy_stages(Trace *t, Node n, uint32_t dim, Sym first, const NodePlace *to)
{
	uint32_t rank = node_rank(t->s->g, node_in(t->s->g, n, 0));
	Sym at[MAX_RANK];
	Stage places = {0};
	memcpy(at, t->root_axis, rank * sizeof *at);
	at[dim] = trace_inner_axis(t, "k", first, &places);
	for (uint32_t k = 0; k < 2; k++) {
		Stage st = trace_global_stage(t, STAGE_MAP, &to[k], at, rank);
		st.nmap = places.nred;
		st.map[0] = places.red[0];
		st.value = k ? kx_const_int(t->k, t->s->arena, DT_i64, 0)
		             : trace_value(t, node_in(t->s->g, n, 0), t->root_axis, (Kx){0});
		trace_push_stage(t, st);
	}
}

static void root_sort(Lower *s, Node n)
{
	Graph *g = s->g;
	Trace t = {.s = s, .root = n};
	uint32_t dim = (uint32_t)node_int(g, n, "dim");
	NodePlace to[2] = {lower_result_place(s, n, 0), lower_result_place(s, n, 1)};
	trace_start_over(&t, node_in(g, n, 0));
	trace_all_outer(&t);
	const Attr *a = node_attr(g, n, "first");
	Sym all = node_dim(g, node_in(g, n, 0), dim), first = a->kind == ATTR_none ? all : a->s;
	if (sym_is(g->ir->syms, all, 1))
		copy_stages(&t, n, dim, first, to);
	else if (a->kind != ATTR_none)
		first_stages(&t, n, dim, first, to);
	else
		sort_stages(&t, n, dim, to);
	trace_order_axes(&t);
	t.k->name = lower_name(s, n);
	lower_push_kernel(s, t.k);
	lower_publish_result(s, n, 0, &to[0]);
	lower_publish_result(s, n, 1, &to[1]);
}

/* ---- fft_lines ---- */

/* Starts a kernel whose axes go over all lines. Sets at[] to the variables of the axes; elements
 * for the place in the line and for the part are left to the caller. */
static void line_axes(Trace *t, Node n, uint32_t dim, Sym *at)
{
	Graph *g = t->s->g;
	trace_start(t, lower_name(t->s, n));
	for (uint32_t k = 0; k + 1 < node_rank(g, n); k++)
		if (k != dim)
			at[k] = trace_root_axis(t, node_dim(g, n, k));
	trace_all_outer(t);
}

static void root_fft_lines(Lower *s, Node n)
{
	Graph *g = s->g;
	Trace t = {.s = s, .root = n};
	uint32_t dim = (uint32_t)node_int(g, n, "dim"), rank = node_rank(g, n);
	NodePlace to = lower_result_place(s, n, 0);
	Sym at[MAX_RANK], in_table[2];
	const bool inverse = node_bool(g, n, "inverse"), real = node_bool(g, n, "real");
	const Sym length = node_dim(g, real && !inverse ? node_in(g, n, 0) : n, dim);
	Stage line = {0}, table = {0};
	line_axes(&t, n, dim, at);
	at[dim] = trace_inner_axis(&t, "n", length, &line);
	in_table[1] = trace_inner_axis(&t, "k", node_dim(g, node_in(g, n, 1), 1), &table);
	for (uint32_t k = 0; k < 4; k++) {
		Sym part = sym_int(g->ir->syms, k & 1);
		at[rank - 1] = in_table[0] = part;
		Stage st = trace_global_stage(&t, STAGE_FFT, &to, at, rank);
		if (k >= 2)
			st = (Stage){.kind = STAGE_FFT, .dtype = stage_acc(&st)};
		st.nred = 1;
		st.red[0] = k < 2 ? line.red[0] : table.red[0];
		st.fft = (StageFft){.next = k < 3 ? k + 1 : 0, .inverse = inverse, .real = real};
		st.value = k < 2 ? trace_value(&t, node_in(g, n, 0), at, (Kx){0})
				 : trace_value(&t, node_in(g, n, 1), in_table, (Kx){0});
		trace_push_stage(&t, st);
	}
	trace_order_axes(&t);
	t.k->name = lower_name(s, n);
	lower_push_kernel(s, t.k);
	lower_publish_result(s, n, 0, &to);
}

/* ---- assert ---- */

static void root_assert(Lower *s, Node n)
{
	Graph *g = s->g;
	Trace t = {.s = s, .root = n};
	trace_start_over(&t, node_in(g, n, 0));
	trace_all_outer(&t);
	Stage st = {.kind = STAGE_CHECK, .dtype = DT_bool};
	st.value = trace_value(&t, node_in(g, n, 0), t.root_axis, (Kx){0});
	Text message;
	text_init(&message, s->arena);
	text_format(&message, node_str(g, n, "message"));
	st.check.message = lowered_check(s->l, message.data ? message.data : "");
	trace_push_stage(&t, st);
	trace_order_axes(&t);
	t.k->name = "assert";
	lower_push_kernel(s, t.k);
}

/* Returns the row-major number of an element of n; none if n has rank 0. */
static Sym place_number(const Trace *t, Node n)
{
	SymTab *syms = t->s->ir->syms;
	Sym at = {0};
	for (uint32_t k = 0; k < node_rank(t->s->g, n); k++)
		at = k ? sym_add(syms, sym_mul(syms, at, node_dim(t->s->g, n, k)), t->root_axis[k])
		       : t->root_axis[k];
	return at;
}

/* Adds a kernel that checks a code as an index that must be 0, so that a failure is reported as
 * that of an index. */
static void root_assert_zero(Lower *s, Node n)
{
	Graph *g = s->g;
	Node x = node_in(g, n, 0);
	Trace t = {.s = s, .root = n};
	trace_start_over(&t, x);
	trace_all_outer(&t);
	Text format, message;
	text_init(&format, s->arena);
	text_init(&message, s->arena);
	text_format(&format, node_str(g, n, "message"));
	const Sym place = place_number(&t, x);
	const uint32_t ncode =
		assert_zero_message(&message, format.data, place.i ? "%lld" : NULL, "%lld");
	Kx code = kx_to(t.k, s->arena, DT_i64, trace_value(&t, x, t.root_axis, (Kx){0}));
	Sym v = trace_zero_var(&t, code, lowered_check(s->l, message.data), place, ncode);
	Kx in[2] = {kx_index(t.k, s->arena, v), kx_const_int(t.k, s->arena, DT_i64, 0)};
	trace_push_stage(&t, (Stage){.kind = STAGE_CHECK,
				     .dtype = DT_bool,
				     .value = kx_op(t.k, s->arena, OP_eq, DT_bool, in, 2)});
	trace_order_axes(&t);
	t.k->name = "assert_zero";
	lower_push_kernel(s, t.k);
}

/* ---- the table ---- */

static const RootFn fns[OP_UNNAMED] = {
	[OP_cumulative] = {.value = root_cumulative},
	[OP_arg_reduce] = {.value = root_arg_reduce},
	[OP_fold] = {.value = root_fold},
	[OP_segment_reduce] = {.value = root_segment_reduce},
	[OP_searchsorted] = {.value = root_searchsorted},
	[OP_scatter] = {.steps = root_scatter},
	[OP_update_slice] = {.steps = root_update_slice},
	[OP_sort] = {.steps = root_sort},
	[OP_assert] = {.steps = root_assert},
	[OP_assert_zero] = {.steps = root_assert_zero},
	[OP_fft_lines] = {.steps = root_fft_lines},
	[OP_winograd_input] = {.steps = lower_winograd_input},
	[OP_cholesky] = {.instead = lower_members, .steps = lower_cholesky},
	[OP_lu] = {.instead = lower_members, .steps = lower_lu},
	[OP_geqrf] = {.instead = lower_members, .steps = lower_geqrf},
	[OP_orgqr] = {.steps = lower_orgqr},
	[OP_triangular_solve] = {.instead = lower_members, .steps = lower_triangular_solve},
	[OP_scan] = {.steps = lower_scan},
	[OP_while] = {.steps = lower_while},
	[OP_cond] = {.steps = lower_cond},
	[OP_call] = {.steps = lower_call},
	[OP_to_size] = {.steps = lower_to_size},
};

const RootFn *root_fn(Op op)
{
	return op < OP_UNNAMED && (fns[op].value || fns[op].steps) ? &fns[op] : NULL;
}

Lowered *lower_graph(Graph *g, const LowerOptions *opt)
{
	Lowered *l = lower_by_roots(g, opt, root_fn);
	if (l && !opt->no_fusion)
		lower_join_weighted(l);
	return l;
}
