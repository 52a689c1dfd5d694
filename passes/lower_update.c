/* Roots that are more than one kernel or that have no result: sorting, scattering, updates of a slice,
 * assertions. Their operands are stored (lower_group.c), so their kernels can always be built.
 *
 *   scatter(x, index, u)    copy x to the result; then, for every point of the axes that index does not
 *                           choose, the updates one after the other
 *   update_slice(x, u, at)  copy x to the result; then u over a part of it
 *   sort(x)                 one kernel: a merge sort between the results and two temporary buffers */
#include "passes/lower_stage.h"

#include <string.h>

bool node_is_update(Op op)
{
	return op == OP_scatter || op == OP_update_slice;
}

static void push(Lower *s, Kernel *k)
{
	array_push(s->arena, &s->steps->step, (Step){.kind = STEP_KERNEL, .kernel = k});
}

/* All root axes are outer. */
static void all_outer(Trace *t)
{
	t->nroot = t->k->axis.n;
	t->has_reduce = true;
	t->outer = (UINT64_C(1) << t->nroot) - 1;
}

static Stage global_stage(Trace *t, StageKind kind, const NodePlace *p, const Sym *at, uint32_t rank)
{
	DType d = buf_of(t->s->l, p->buf)->dtype;
	return (Stage){.kind = kind, .dtype = d, .acc = dtype_compute(d), .place = PLACE_GLOBAL,
	               .buf = p->buf, .idx = trace_place_index(t, p, at, rank)};
}

/* ---- scatter ---- */

/* ATen calls two of the kinds otherwise. */
static ReduceKind scatter_combine(Trace *t, Node n, DType d)
{
	const char *how = node_str(t->s->g, n, "combine");
	return trace_kind(t, n, !strcmp(how, "add") ? "sum" : !strcmp(how, "mul") ? "prod" : how, d);
}

static Kernel *scatter_kernel(Lower *s, Node n, const NodePlace *to)
{
	Graph *g = s->g;
	Node x = node_in(g, n, 0), index = node_in(g, n, 1), update = node_in(g, n, 2);
	uint32_t batch = (uint32_t)node_int(g, n, "batch"), rank = node_rank(g, update);
	uint32_t lead = node_rank(g, index) - 1;
	Trace t = {.s = s, .root = n};
	Sym at[MAX_RANK], in[MAX_RANK];
	Stage walk = {0};
	Kx cond = {0};
	trace_start(&t, lower_name(s, n));
	for (uint32_t k = 0; k < rank; k++)
		if (k < batch || k >= lead)
			at[k] = trace_root_axis(&t, node_dim(g, update, k));
	all_outer(&t);
	for (uint32_t k = batch; k < lead; k++)
		at[k] = trace_inner_axis(&t, "u", node_dim(g, index, k), &walk);
	trace_places(&t, n, at, at + lead, (Kx){0}, in, &cond);
	Stage st = global_stage(&t, STAGE_SCATTER, to, in, node_rank(g, x));
	st.nred = walk.nred;
	memcpy(st.red, walk.red, sizeof st.red);
	st.combine = scatter_combine(&t, n, st.dtype);
	st.value = trace_value(&t, update, at, (Kx){0});
	st.guard = cond;
	trace_push_stage(&t, st);
	trace_order_axes(&t);
	t.k->name = arena_printf(s->arena, "scatter_%s", t.k->name);
	return t.k;
}

/* Sums of short floats would round at every step: they are built in f32. */
static bool rounds_at_every_step(Lower *s, Node n)
{
	const char *how = node_str(s->g, n, "combine");
	DType d = node_dtype(s->g, n);
	return (!strcmp(how, "add") || !strcmp(how, "mul")) && dtype_is_float(d) && dtype_compute(d) != d;
}

static void lower_scatter(Lower *s, Node n)
{
	NodeInfo *info = info_of(s, n);
	NodePlace to = info->place.data[0], acc = to;
	bool wide = rounds_at_every_step(s, n);
	if (wide) {
		const Type *t = node_type(s->g, n);
		acc = (NodePlace){.buf = lowered_buf(s->l, BUF_TEMP, 0, dtype_compute(t->dtype), t->n, t->dim,
		                                     graph_name(s->g, n))};
	}
	push(s, lower_copy_kernel(s, node_in(s->g, n, 0), &acc));
	push(s, scatter_kernel(s, n, &acc));
	if (wide) {
		info->place.data[0] = acc;
		push(s, lower_copy_kernel(s, n, &to));
		info->place.data[0] = to;
	}
}

/* ---- update_slice ---- */

static Kernel *update_kernel(Lower *s, Node n, const NodePlace *to)
{
	Graph *g = s->g;
	SymTab *syms = g->ir->syms;
	Node x = node_in(g, n, 0), update = node_in(g, n, 1);
	uint32_t rank = node_rank(g, x);
	Trace t = {.s = s, .root = n};
	Sym in[MAX_RANK];
	trace_start_over(&t, update);
	all_outer(&t);
	for (uint32_t k = 0; k < rank; k++) {
		Sym room = sym_sub(syms, node_dim(g, x, k), node_dim(g, update, k));
		in[k] = t.root_axis[k];
		if (sym_is(syms, room, 0))
			continue;
		Kx v = trace_as_i64(&t, trace_value(&t, node_in(g, n, 2 + k), NULL, (Kx){0}));
		in[k] = sym_add(syms, in[k], trace_value_var(&t, v, sym_addi(syms, room, 1)));
	}
	Stage st = global_stage(&t, STAGE_MAP, to, in, rank);
	st.value = trace_value(&t, update, t.root_axis, (Kx){0});
	trace_push_stage(&t, st);
	trace_order_axes(&t);
	t.k->name = arena_printf(s->arena, "update_%s", lower_name(s, n));
	return t.k;
}

void lower_update(Lower *s, Node n)
{
	const NodePlace *to = &info_of(s, n)->place.data[0];
	if (node_op(s->g, n) == OP_scatter) {
		lower_scatter(s, n);
	} else {
		push(s, lower_copy_kernel(s, node_in(s->g, n, 0), to));
		push(s, update_kernel(s, n, to));
	}
	for (uint32_t k = 1; k < info_of(s, n)->place.n; k++)
		push(s, lower_copy_kernel(s, n, &info_of(s, n)->place.data[k]));
}

/* ---- sort ---- */

/* Room like the result's, the sorted dimension last. */
static NodePlace scratch_place(Lower *s, Node n, const Type *t, DType d, uint32_t dim, const Sym *idx,
                               Sym *at)
{
	Sym extent[MAX_RANK];
	for (uint32_t k = 0; k < t->n; k++) {
		uint32_t from = k + 1 == t->n ? dim : k + (k >= dim);
		extent[k] = t->dim[from];
		at[k] = idx[from];
	}
	return (NodePlace){.buf = lowered_buf(s->l, BUF_TEMP, 0, d, t->n, extent, graph_name(s->g, n))};
}

static void sort_stages(Trace *t, Node n, uint32_t dim, const NodePlace *to)
{
	Graph *g = t->s->g;
	const Type *x = node_type(g, node_in(g, n, 0));
	Sym at[MAX_RANK];
	NodePlace place[4] = {to[0], to[1]};
	place[2] = scratch_place(t->s, n, x, x->dtype, dim, t->root_axis, at);
	place[3] = scratch_place(t->s, n, x, DT_i64, dim, t->root_axis, at);
	uint32_t axis = 0;
	while (t->k->axis.data[axis].var.i != t->root_axis[dim].i)
		axis++;
	t->outer &= ~(UINT64_C(1) << axis);
	for (uint32_t k = 0; k < 4; k++) {
		Stage st = global_stage(t, STAGE_SORT, &place[k], k < 2 ? t->root_axis : at, x->n);
		st.nred = 1;
		st.red[0] = axis;
		st.out2 = k < 3 ? k + 1 : 0;
		st.descending = node_bool(g, n, "descending");
		st.stable = true;
		if (k == 0)
			st.value = trace_value(t, node_in(g, n, 0), t->root_axis, (Kx){0});
		trace_push_stage(t, st);
	}
}

/* One element per row: it is sorted, and comes from 0. */
static void copy_stages(Trace *t, Node n, const NodePlace *to)
{
	uint32_t rank = node_rank(t->s->g, node_in(t->s->g, n, 0));
	for (uint32_t k = 0; k < 2; k++) {
		Stage st = global_stage(t, STAGE_MAP, &to[k], t->root_axis, rank);
		st.value = k ? kx_const_int(t->k, t->s->arena, DT_i64, 0)
		             : trace_value(t, node_in(t->s->g, n, 0), t->root_axis, (Kx){0});
		trace_push_stage(t, st);
	}
}

/* The next reader of that result after *u. */
static Node next_get(const Graph *g, Use *u, uint32_t result)
{
	for (; u->i; *u = g->use.data[u->i].next) {
		Node user = g->use.data[u->i].user;
		if (user.i && node_op(g, user) == OP_get && node_int(g, user, "index") == result) {
			*u = g->use.data[u->i].next;
			return user;
		}
	}
	return (Node){0};
}

/* Where the result is computed: a place that a reader chose (an output), else a buffer of its own. */
static NodePlace result_place(Lower *s, Node n, uint32_t result)
{
	Graph *g = s->g;
	const Type *t = node_type(g, node_in(g, n, 0));
	Use u = node_data(g, n)->first_use;
	for (Node get; (get = next_get(g, &u, result)).i;)
		if (info_of(s, get)->place.n)
			return info_of(s, get)->place.data[0];
	return (NodePlace){.buf = lowered_buf(s->l, BUF_TEMP, 0, result ? DT_i64 : t->dtype, t->n, t->dim,
	                                      graph_name(g, n))};
}

static bool same_place(const NodePlace *a, const NodePlace *b)
{
	bool same = a->buf.i == b->buf.i && a->t.i == b->t.i;
	for (uint32_t k = 0; k < MAX_RANK; k++)
		same = same && a->off[k].i == b->off[k].i;
	return same;
}

/* Readers find the result where it is; other places that they want receive copies. */
static void publish(Lower *s, Node n, uint32_t result, const NodePlace *at)
{
	Graph *g = s->g;
	Use u = node_data(g, n)->first_use;
	for (Node get; (get = next_get(g, &u, result)).i;) {
		NodeInfo *info = info_of(s, get);
		uint32_t wanted = info->place.n;
		array_push(s->arena, &info->place, *at);
		NodePlace first = info->place.data[0];
		info->place.data[0] = *at;
		info->place.data[wanted] = first;
		for (uint32_t k = 1; k <= wanted; k++)
			if (!same_place(&info->place.data[k], at))
				push(s, lower_copy_kernel(s, get, &info->place.data[k]));
	}
}

void lower_sort(Lower *s, Node n)
{
	Graph *g = s->g;
	Trace t = {.s = s, .root = n};
	uint32_t dim = (uint32_t)node_int(g, n, "dim");
	NodePlace to[2] = {result_place(s, n, 0), result_place(s, n, 1)};
	trace_start_over(&t, node_in(g, n, 0));
	all_outer(&t);
	if (sym_is(g->ir->syms, node_dim(g, node_in(g, n, 0), dim), 1))
		copy_stages(&t, n, to);
	else
		sort_stages(&t, n, dim, to);
	trace_order_axes(&t);
	t.k->name = lower_name(s, n);
	push(s, t.k);
	publish(s, n, 0, &to[0]);
	publish(s, n, 1, &to[1]);
}

/* ---- assert ---- */

void lower_assert(Lower *s, Node n)
{
	Graph *g = s->g;
	Trace t = {.s = s, .root = n};
	trace_start_over(&t, node_in(g, n, 0));
	all_outer(&t);
	Stage st = {.kind = STAGE_CHECK, .dtype = DT_bool, .acc = DT_bool, .place = PLACE_REGISTER};
	st.value = trace_value(&t, node_in(g, n, 0), t.root_axis, (Kx){0});
	st.check = s->l->check.n;
	Text message;
	text_init(&message, s->arena);
	text_format(&message, node_str(g, n, "message"));
	array_push(s->arena, &s->l->check, message.data);
	trace_push_stage(&t, st);
	trace_order_axes(&t);
	t.k->name = "assert";
	push(s, t.k);
}
