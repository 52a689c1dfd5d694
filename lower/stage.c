/* Stages: reductions, contractions and convolutions met while tracing, and the end of a kernel:
 * axes in order, values that several stages need, the stores. */
#include "lower/stage.h"

#include "ir/kernel/contraction.h"
#include "lower/attention.h"
#include "lower/roots.h"
#include "lower/winograd.h"

#include <string.h>

/* ---- axes ---- */

int trace_axis_number(const Trace *t, Sym var)
{
	for (uint32_t i = 0; i < t->k->axis.n; i++)
		if (t->k->axis.data[i].var.i == var.i)
			return (int)i;
	return -1;
}

static uint32_t new_axis(Trace *t, const char *name, Sym extent)
{
	Axis a = {.var = sym_axis(t->s->ir->syms, name, extent), .extent = extent};
	array_push(t->s->arena, &t->k->axis, a);
	return t->k->axis.n - 1;
}

Sym trace_root_axis(Trace *t, Sym extent)
{
	if (sym_is(t->s->ir->syms, extent, 1))
		return sym_int(t->s->ir->syms, 0);
	uint32_t a = new_axis(t, "i", extent);
	return t->k->axis.data[a].var;
}

Sym trace_inner_axis(Trace *t, const char *name, Sym extent, Stage *stage)
{
	if (sym_is(t->s->ir->syms, extent, 1))
		return sym_int(t->s->ir->syms, 0);
	uint32_t a = new_axis(t, name, extent);
	stage->red[stage->nred++] = (uint8_t)a;
	return t->k->axis.data[a].var;
}

Sym trace_bounded_axis(Trace *t, const char *name, Sym extent, uint32_t lo, uint32_t hi, Sym parts,
		       Stage *stage)
{
	const SymTab *syms = t->s->ir->syms;
	const uint32_t number = new_axis(t, name, extent);
	Axis *a = &t->k->axis.data[number];
	const double n = (double)sym_hint(syms, parts), mean = (double)sym_hint(syms, extent) / n;
	a->lo = lo;
	a->hi = hi;
	a->mean = n >= 1 && mean >= 1 ? mean : 1;
	stage->red[stage->nred++] = (uint8_t)number;
	return a->var;
}

static uint64_t axes_of(const Trace *t, Sym e)
{
	uint64_t mask = 0;
	for (uint32_t i = 0; i < t->k->axis.n; i++)
		if (sym_uses(t->s->ir->syms, e, t->k->axis.data[i].var))
			mask |= UINT64_C(1) << i;
	return mask;
}

static bool uses_value_var(const Trace *t, Sym e)
{
	for (uint32_t i = 0; i < t->k->vvar.n; i++)
		if (sym_uses(t->s->ir->syms, e, t->k->vvar.data[i].var))
			return true;
	return false;
}

/* A stage runs once per outer point: its index may read root axes only. A reduction needs each
 * dimension to be an axis of its own, so that the other axes are free. */
MUST_LOOK static bool outer_axes(const Trace *t, const Sym *idx, uint32_t rank, bool plain,
				 uint64_t *mask)
{
	*mask = 0;
	for (uint32_t k = 0; k < rank; k++) {
		uint64_t m = axes_of(t, idx[k]);
		if ((m >> t->nroot) != 0 || uses_value_var(t, idx[k]))
			return false;
		if (plain && m && (trace_axis_number(t, idx[k]) < 0 || (m & *mask)))
			return false;
		*mask |= m;
	}
	return true;
}

Stage trace_global_stage(Trace *t, StageKind kind, const NodePlace *p, const Sym *at, uint32_t rank)
{
	DType d = buf_of(t->s->l, p->buf)->dtype;
	return (Stage){.kind = kind,
		       .dtype = d,
		       .store = {.buf = p->buf, .idx = trace_place_index(t, p, at, rank)}};
}

uint32_t trace_push_stage(Trace *t, Stage st)
{
	bool copies = st.kind == STAGE_MAP ||
		      (st.kind == STAGE_SCATTER && st.scatter.combine == REDUCE_SET);
	if (copies && stage_stores(&st)) {
		const KxData *x = &t->k->kx.data[st.value.i];
		if (x->round == st.dtype) /* the store rounds */
			st.value = x->in[0];
	}
	array_push(t->s->arena, &t->k->stage, st);
	return t->k->stage.n - 1;
}

Kx trace_stage_value(Trace *t, uint32_t stage)
{
	return kx_stage(t->k, t->s->arena, stage, dtype_compute(t->k->stage.data[stage].dtype), 0,
			NULL);
}

void trace_all_outer(Trace *t)
{
	t->nroot = t->k->axis.n;
	t->has_reduce = true;
	t->outer = (UINT64_C(1) << t->nroot) - 1;
}

/* ---- reductions ---- */

ReduceKind lower_combiner(Lower *s, Node n, const char *attr, DType d)
{
	ReduceKind k;
	if (!reduce_parse(node_str(s->g, n, attr), &k))
		ctx_bug(s->ir->ctx, "%s combines by \"%s\"", graph_name(s->g, n),
			node_str(s->g, n, attr));
	return reduce_of(k, d);
}

/* The root's axes that the reduction does not depend on, when they match the reduced dimensions one
 * to one: then both run over the same variables and the row is shared (softmax, norms). */
MUST_LOOK static bool share_inner(const Trace *t, uint64_t outer, const Sym *extent, uint32_t n,
				  uint32_t *axis)
{
	uint32_t m = 0;
	for (uint32_t i = 0; i < t->nroot; i++) {
		if (outer >> i & 1)
			continue;
		if (m == n || sym_eq(t->s->ir->syms, t->k->axis.data[i].extent, extent[m]) != YES)
			return false;
		axis[m++] = i;
	}
	return m == n && n > 0;
}

static void reduce_index(Trace *t, Node n, const Sym *idx, uint64_t outer, Stage *st, Sym *in)
{
	Graph *g = t->s->g;
	SymTab *syms = g->ir->syms;
	Node x = node_in(g, n, 0);
	uint32_t ndims, rank = node_rank(g, x), m = 0, next = 0, shared[MAX_RANK];
	const Sym *dims = node_ints(g, n, "dims", &ndims);
	bool reduced[MAX_RANK] = {false};
	Sym extent[MAX_RANK];
	for (uint32_t k = 0; k < ndims; k++)
		reduced[sym_const(syms, dims[k])] = true;
	for (uint32_t k = 0; k < rank; k++)
		if (reduced[k] && !sym_is(syms, node_dim(g, x, k), 1))
			extent[m++] = node_dim(g, x, k);
	bool share = share_inner(t, outer, extent, m, shared);
	for (uint32_t k = 0, o = 0; k < rank; k++) {
		if (!reduced[k]) {
			in[k] = idx[o++];
		} else if (share && !sym_is(syms, node_dim(g, x, k), 1)) {
			st->red[st->nred++] = (uint8_t)shared[next];
			in[k] = t->k->axis.data[shared[next++]].var;
		} else {
			in[k] = trace_inner_axis(t, "r", node_dim(g, x, k), st);
		}
	}
}

/* Returns the condition that n has an element idx[]. A reduction, which runs once for all inner
 * points, gets this in place of a guard that differs among them. Under that guard a reduction that
 * shares its row with the kernel would leave out terms. */
static Kx in_bounds(Trace *t, Node n, const Sym *idx)
{
	Kx all = {0};
	Sym zero = sym_int(t->s->ir->syms, 0);
	for (uint32_t k = 0; k < node_rank(t->s->g, n); k++)
		all = kx_and(t->k, t->s->arena, all,
			     trace_in_range(t, idx[k], zero, node_dim(t->s->g, n, k)));
	return all;
}

static Kx trace_reduce(Trace *t, Node n, const Sym *idx, Kx guard)
{
	Graph *g = t->s->g;
	uint64_t outer;
	if (!outer_axes(t, idx, node_rank(g, n), n.i != t->root.i, &outer))
		return trace_store_first(t, n,
					 "what reads it would reduce again for each of its points");
	if (t->has_reduce && outer != t->outer)
		return trace_store_first(t, n, "what reads it reduces other rows");
	if (guard.i && trace_needs_more(t, guard, outer))
		return trace_value(t, n, idx, in_bounds(t, n, idx));
	t->has_reduce = true;
	t->outer = outer;
	DType acc = node_attr(g, n, "acc")->dtype;
	Stage st = {.kind = STAGE_REDUCE,
		    .dtype = node_dtype(g, n),
		    .reduce = {.combine = lower_combiner(t->s, n, "kind", node_dtype(g, n)),
			       .acc = dtype_compute(acc ? acc : node_dtype(g, n))}};
	Sym in[MAX_RANK];
	reduce_index(t, n, idx, outer, &st, in);
	const WeightedNodes *w = node_info(t->s, n)->is.attention->weighted;
	if (w)
		t->attention = (TracedAttention){w->score, w->nscore, 0, axes_set(st.red, st.nred)};
	if (!t->k->stage.n && !guard.i && st.reduce.combine == REDUCE_SUM &&
	    dtype_is_float(st.reduce.acc))
		t->summed = axes_set(st.red, st.nred);
	st.value = trace_value(t, node_in(g, n, 0), in, guard);
	t->summed = 0;
	return trace_stage_value(t, trace_push_stage(t, st));
}

/* ---- contractions ---- */

/* Whether what follows, perhaps behind an index map, enlarges the errors of contraction n: the
 * transform of Winograd's products adds numbers that are larger than its results. */
static bool is_enlarged(const Graph *g, Node n)
{
	Node user = node_first_user(g, n);
	if (user.i && op_lower(node_op(g, user))->role == LOWER_INDEX)
		user = node_first_user(g, user);
	return user.i && op_lower(node_op(g, user))->role == LOWER_TILES;
}

/* Reads the bounds of operands, if a byte holds them. */
static void read_bounds(const Graph *g, Node n, uint8_t most[2])
{
	uint32_t count;
	int64_t bound[2];
	const Sym *list = node_ints(g, n, "most", &count);
	for (uint32_t k = 0; k < 2; k++)
		if (count != 2 || !sym_is_const(g->ir->syms, list[k], &bound[k]) || bound[k] < 0 ||
		    bound[k] > UINT8_MAX)
			return;
	for (uint32_t k = 0; k < 2; k++)
		most[k] = (uint8_t)bound[k];
}

/* Returns the number, from 1, of the operand that has fields of 4 bits; 0: none. */
static uint8_t half_operand(const Graph *g, Node n)
{
	for (uint8_t k = 0; k < 2; k++) {
		Node x = node_in(g, n, k);
		while (lower_is_map(op_lower(node_op(g, x))) && !op_lower(node_op(g, x))->fields)
			x = node_in(g, x, 0);
		if (op_lower(node_op(g, x))->fields && node_int(g, x, "bits") == 4)
			return (uint8_t)(k + 1);
	}
	return 0;
}

Node trace_decoded_operand(const Trace *t, Node n, uint32_t k)
{
	const Graph *g = t->s->g;
	Node x = node_in(g, n, k);
	while (!trace_reads_stored(t, x) && lower_is_map(op_lower(node_op(g, x))))
		x = node_in(g, x, 0);
	return !trace_reads_stored(t, x) && node_info(t->s, x)->is.decoded ? x : (Node){0};
}

Kx trace_read_at(Trace *t, uint32_t stage, uint64_t axes)
{
	Stage *st = &t->k->stage.data[stage];
	Sym at[MAX_RANK];
	for (uint32_t i = 0; i < t->k->axis.n; i++)
		if (axes >> i & 1) {
			at[st->nmap] = t->k->axis.data[i].var;
			st->map[st->nmap++] = (uint8_t)i;
		}
	return kx_stage(t->k, t->s->arena, stage, dtype_compute(st->dtype), st->nmap, at);
}

Kx trace_operand(Trace *t, Node n, uint32_t k, const Sym *idx)
{
	const char *why;
	const Node x = node_in(t->s->g, n, k);
	const Node bent = dtype_is_float(dtype_compute(node_dtype(t->s->g, n)))
				  ? lower_unfollowed_map(t, x, idx, &why)
				  : (Node){0};
	if (bent.i)
		return trace_store_first(t, bent, why);
	t->only_maps = true;
	const Kx value = trace_value(t, x, idx, (Kx){0});
	t->only_maps = false;
	return value;
}

Kx trace_contraction(Trace *t, Node n, const Sym *idx, uint64_t inner)
{
	Graph *g = t->s->g;
	Stage st = {0};
	TraceMap m = trace_map(t, n, idx, (Kx){0}, &st);
	trace_ask(&m);
	t->has_reduce = true;
	t->outer = (UINT64_C(1) << t->nroot) - 1;
	DType d = dtype_compute(node_dtype(g, n));
	Kx in[2];
	for (uint32_t k = 0; k < 2; k++)
		in[k] = trace_operand(t, n, k, m.map.in[k]);
	for (uint32_t k = 0; k < 2; k++) /* narrow integers multiply in the result's width */
		if (dtype_is_int(t->k->kx.data[in[k].i].dtype))
			in[k] = kx_to(t->k, t->s->arena, d, in[k]);
	DType acc = node_attr(g, n, "acc")->dtype;
	st.kind = STAGE_REDUCE;
	st.dtype = node_dtype(g, n);
	st.reduce = (StageReduce){.combine = reduce_of(REDUCE_SUM, d),
				  .acc = acc ? dtype_compute(acc) : d,
				  .enlarged = is_enlarged(g, n),
				  .contraction = true};
	if (op_arg_index(node_op(g, n), "most") >= 0)
		read_bounds(g, n, st.reduce.most);
	st.reduce.half = half_operand(g, n);
	st.value = kx_product(t->k, t->s->arena, d, in);
	for (uint32_t k = 0; k < 2; k++) {
		const Node decoded = trace_decoded_operand(t, n, k), other = node_in(g, n, !k);
		/* a float of two bytes is widened where it is loaded */
		const KxData *load = &t->k->kx.data[in[k].i];
		if (!decoded.i || node_info(t->s, decoded)->is.narrow ||
		    (load->kind == KX_LOAD && !load->guard.i) ||
		    kernel_decodes(g->ir->syms, t->k, &st))
			continue;
		/* read plainly, the other one may let it: its copy is the smaller one */
		if (lower_is_map(op_lower(node_op(g, other))) && !trace_reads_stored(t, other) &&
		    !trace_decoded_operand(t, n, !k).i)
			return trace_store_first(t, other, "what it is multiplied with is decoded");
		return trace_store_first(t, decoded, "no contraction decodes it");
	}
	return trace_read_at(t, trace_push_stage(t, st), inner);
}

/* Whether n is a contraction whose sums are exact and are read once, at idx, by the sum that is
 * being traced, of which each term has a contraction of its own: its batch dimensions, and no
 * others, are the axes that are summed, and its other dimensions axes of the root. */
static bool is_sum_of_block(const Trace *t, Node n, const Sym *idx)
{
	const Graph *g = t->s->g;
	uint32_t nbatch;
	uint64_t summed = 0, outer = 0;
	if (!t->summed || t->k->stage.n || dtype_is_float(node_dtype(g, n)) ||
	    op_arg_index(node_op(g, n), "batch_x") < 0 || t->outer != (UINT64_C(1) << t->nroot) - 1)
		return false;
	node_ints(g, n, "batch_x", &nbatch);
	for (uint32_t k = 0; k < node_rank(g, n); k++) {
		uint64_t *of = k < nbatch ? &summed : &outer;
		const uint64_t axes = axes_of(t, idx[k]);
		const int axis = trace_axis_number(t, idx[k]);
		if (uses_value_var(t, idx[k]) || (axes && (axis < 0 || *of & axes)))
			return false;
		*of |= axes;
	}
	return summed == t->summed && !(outer >> t->nroot);
}

Kx trace_stage(Trace *t, Node n, const Sym *idx, Kx guard)
{
	bool too_many = t->k->axis.n + node_rank(t->s->g, node_in(t->s->g, n, 0)) > MAX_KERNEL_AXES;
	if (t->only_maps)
		return trace_store_first(t, n, "a contraction reads it");
	if (too_many && n.i != t->root.i)
		return trace_store_first(t, n, "one kernel has no more axes");
	if (op_lower(node_op(t->s->g, n))->role == LOWER_REDUCE)
		return trace_reduce(t, n, idx, guard);
	const FoundAttention *found = node_info(t->s, n)->is.attention;
	if (trace_is_score(t, n))
		return trace_scores(t, n, idx, guard);
	uint64_t outer;
	if (!guard.i && is_sum_of_block(t, n, idx))
		return trace_contraction(t, n, idx, t->summed);
	if (t->has_reduce || !outer_axes(t, idx, node_rank(t->s->g, n), false, &outer))
		return trace_store_first(t, n, "a contraction is what its kernel begins with");
	if (found->attention)
		return trace_attention(t, found->attention, idx);
	if (found->weighted)
		return trace_weighted(t, found->weighted, idx);
	return trace_contraction(t, n, idx, 0);
}

/* ---- finishing ---- */

const Sym *trace_place_index(Trace *t, const NodePlace *p, const Sym *at, uint32_t rank)
{
	Sym *idx = ARENA_ARRAY(t->s->arena, Sym, rank + 1);
	uint32_t m = 0;
	if (p->t.i)
		idx[m++] = p->t;
	for (uint32_t k = 0; k < rank; k++)
		idx[m++] = p->off[k].i ? sym_add(t->s->ir->syms, at[k], p->off[k]) : at[k];
	return idx;
}

void trace_add_stores(Trace *t, Node value_of, const NodePlace *place, uint32_t nplace, Kx value)
{
	uint32_t rank = node_rank(t->s->g, value_of);
	Stage running = {0};
	bool is_running = !value.i;
	if (is_running)
		running = t->k->stage.data[--t->k->stage.n];
	for (uint32_t p = 0; p < nplace; p++) {
		DType d = buf_of(t->s->l, place[p].buf)->dtype;
		Stage st = is_running ? running
				      : (Stage){.kind = STAGE_MAP, .value = value, .dtype = d};
		st.store.buf = place[p].buf;
		st.store.idx = trace_place_index(t, &place[p], t->root_axis, rank);
		for (uint32_t i = 0; !is_running && i < t->nroot; i++)
			if (t->has_reduce && !(t->outer >> i & 1))
				st.map[st.nmap++] = (uint8_t)i;
		trace_push_stage(t, st);
	}
}

/* Puts the first axes of the kernel, the outer ones, in front of what the stage maps. */
static void map_outer(Stage *st, uint32_t nouter)
{
	memmove(st->map + nouter, st->map, st->nmap * sizeof *st->map);
	const uint32_t n = nouter + st->nmap;
	stage_map_first(st, nouter);
	st->nmap = (uint8_t)n;
}

/* Makes a read of a stage that has only inner indices one at the point of the outer axes. */
static void read_at_outer(Trace *t, KxData *x, uint32_t nouter)
{
	Sym *idx = ARENA_ARRAY(t->s->arena, Sym, nouter + x->nidx);
	for (uint32_t i = 0; i < nouter + x->nidx; i++)
		idx[i] = i < nouter ? t->k->axis.data[i].var : x->idx[i - nouter];
	x->idx = idx;
	x->nidx += nouter;
}

void trace_order_axes(Trace *t)
{
	Kernel *k = t->k;
	uint32_t n = k->axis.n, m = 0, nouter = 0;
	uint8_t to[64];
	Axis *old = arena_dup(t->s->arena, k->axis.data, n * sizeof *old);
	for (uint32_t pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < n; i++) {
			bool outer = i < t->nroot && (!t->has_reduce || (t->outer >> i & 1));
			if (outer == (pass == 0)) {
				to[i] = (uint8_t)m;
				k->axis.data[m++] = old[i];
			}
		}
		if (pass == 0)
			nouter = m;
	}
	for (uint32_t s = 0; s < k->stage.n; s++) {
		Stage *st = &k->stage.data[s];
		for (uint32_t i = 0; i < st->nmap; i++)
			st->map[i] = to[st->map[i]];
		for (uint32_t i = 0; i < st->nred; i++)
			st->red[i] = to[st->red[i]];
		map_outer(st, nouter);
	}
	for (uint32_t i = 1; i < k->kx.n; i++)
		if (k->kx.data[i].kind == KX_STAGE)
			read_at_outer(t, &k->kx.data[i], nouter);
}

void trace_start(Trace *t, const char *name)
{
	t->k = ARENA_NEW(t->s->arena, Kernel);
	array_push(t->s->arena, &t->k->kx, (KxData){0});
	t->k->name = name;
	intern_init(&t->memo, t->s->arena);
}

void trace_start_over(Trace *t, Node value_of)
{
	Graph *g = t->s->g;
	trace_start(t, lower_name(t->s, value_of));
	for (uint32_t k = 0; k < node_rank(g, value_of); k++)
		t->root_axis[k] = trace_root_axis(t, node_dim(g, value_of, k));
	t->nroot = t->k->axis.n;
}

/* Builds the kernel of a root that makes pairs. Its axes are those of all dimensions but the
 * last. */
static void trace_pairs(Trace *t)
{
	Graph *g = t->s->g;
	const uint32_t last = node_rank(g, t->root) - 1;
	const NodeInfo *info = node_info(t->s, t->root);
	trace_start(t, lower_name(t->s, t->root));
	for (uint32_t k = 0; k < last; k++)
		t->root_axis[k] = trace_root_axis(t, node_dim(g, t->root, k));
	t->nroot = t->k->axis.n;
	Kx part[2];
	for (uint32_t k = 0; k < 2; k++) {
		t->root_axis[last] = sym_int(g->ir->syms, k);
		part[k] = trace_value(t, t->root, t->root_axis, (Kx){0});
	}
	for (uint32_t k = 0; k < 2 && !t->blocked.node.i && !t->tiles.node.i; k++) {
		t->root_axis[last] = sym_int(g->ir->syms, k);
		trace_add_stores(t, t->root, info->place.data, info->place.n, part[k]);
	}
}

static void trace_all(Trace *t)
{
	const NodeInfo *info = node_info(t->s, t->root);
	trace_start_over(t, t->root);
	const RootFn *special = t->s->root_fn(node_op(t->s->g, t->root));
	Kx value = special ? special->value(t, t->root_axis)
			   : trace_value(t, t->root, t->root_axis, (Kx){0});
	if (!t->blocked.node.i && !t->tiles.node.i)
		trace_add_stores(t, t->root, info->place.data, info->place.n, value);
}

bool lower_build_kernel(Lower *s, Node root, Kernel **out, StoredFirst *first)
{
	Trace t = {.s = s, .root = root};
	(group_makes_pairs(s->g, root) ? trace_pairs : trace_all)(&t);
	*first = t.blocked;
	if (t.blocked.node.i)
		return false;
	if (t.tiles.node.i)
		return lower_build_tiles(s, &t, out, first);
	trace_order_axes(&t);
	if (!t.attention.nscore) /* a schedule runs along its keys once */
		kernel_share_values(s, t.k);
	*out = t.k;
	return true;
}

Kernel *lower_copy_kernel(Lower *s, Node n, const NodePlace *to)
{
	Trace t = {.s = s};
	trace_start_over(&t, n);
	Kx value = trace_value(&t, n, t.root_axis, (Kx){0});
	if (t.blocked.node.i)
		ctx_bug(s->ir->ctx, "cannot copy %s", graph_name(s->g, n));
	trace_add_stores(&t, n, to, 1, value);
	trace_order_axes(&t);
	t.k->name = arena_printf(s->arena, "copy_%s", t.k->name);
	t.k->lines = lower_line(s, n);
	return t.k;
}

Kernel *lower_copy_place(Lower *s, Node n, const NodePlace *from, const NodePlace *to)
{
	Trace t = {.s = s};
	uint32_t rank = node_rank(s->g, n);
	trace_start_over(&t, n);
	const Buffer *b = buf_of(s->l, from->buf);
	Kx value = kx_load(t.k, s->arena, from->buf, dtype_compute(b->dtype), rank,
			   trace_place_index(&t, from, t.root_axis, rank), (Kx){0}, (Kx){0});
	trace_add_stores(&t, n, to, 1, value);
	trace_order_axes(&t);
	t.k->name = arena_printf(s->arena, "copy_%s", t.k->name);
	t.k->lines = lower_line(s, n);
	return t.k;
}

/* Adds the store of the low or high border of dimension d: over the interior of the padded
 * dimensions before it and all of those after it. */
static void border_stage(Trace *t, Node pad, uint32_t d, uint32_t side, const Sym *outer, Kx value)
{
	Graph *g = t->s->g;
	SymTab *syms = g->ir->syms;
	uint32_t rank, m = 0;
	const Sym *low = node_ints(g, pad, "low", &rank), *high = node_ints(g, pad, "high", &rank);
	Node x = node_in(g, pad, 0);
	NodePlace place = node_info(t->s, pad)->place.data[0];
	DType dtype = buf_of(t->s->l, place.buf)->dtype;
	Stage st = {.kind = STAGE_MAP, .value = value, .dtype = dtype, .store.buf = place.buf};
	Sym *idx = ARENA_ARRAY(t->s->arena, Sym, rank + 1);
	if (place.t.i)
		idx[m++] = place.t;
	for (uint32_t k = 0; k < rank; k++) {
		Sym at = outer[k];
		if (!at.i) {
			Sym extent = k == d ? (side ? high[k] : low[k])
			                    : k < d ? node_dim(g, x, k) : node_dim(g, pad, k);
			at = trace_root_axis(t, extent);
			if (!sym_is(syms, extent, 1))
				st.map[st.nmap++] = (uint8_t)(t->k->axis.n - 1);
			if (k < d)
				at = sym_add(syms, at, low[k]);
			else if (k == d && side)
				at = sym_add(syms, at, sym_add(syms, low[k], node_dim(g, x, k)));
		}
		idx[m++] = place.off[k].i ? sym_add(syms, at, place.off[k]) : at;
	}
	st.store.idx = idx;
	trace_push_stage(t, st);
}

Kernel *lower_border_kernel(Lower *s, Node pad)
{
	Trace t = {.s = s};
	Graph *g = s->g;
	uint32_t rank;
	const Sym *low = node_ints(g, pad, "low", &rank), *high = node_ints(g, pad, "high", &rank);
	trace_start_over(&t, node_in(g, pad, 1)); /* a 0-d tensor: no axes yet */
	Sym outer[MAX_RANK] = {{0}};
	for (uint32_t k = 0; k < rank; k++)
		if (sym_is(g->ir->syms, low[k], 0) && sym_is(g->ir->syms, high[k], 0))
			outer[k] = trace_root_axis(&t, node_dim(g, pad, k));
	t.nroot = t.k->axis.n;
	t.has_reduce = true;
	t.outer = (UINT64_C(1) << t.nroot) - 1;
	Kx value = trace_value(&t, node_in(g, pad, 1), NULL, (Kx){0});
	for (uint32_t d = 0; d < rank; d++) {
		if (!sym_is(g->ir->syms, low[d], 0))
			border_stage(&t, pad, d, 0, outer, value);
		if (!sym_is(g->ir->syms, high[d], 0))
			border_stage(&t, pad, d, 1, outer, value);
	}
	trace_order_axes(&t);
	t.k->name = arena_printf(s->arena, "border_%s", graph_name(g, pad));
	t.k->lines = lower_line(s, pad);
	return t.k;
}
