/* Building the kernel of one root: trace its value backwards from an index over the kernel's axes,
 * transforming the index through index maps, inlining what the group holds, loading what is stored. */
#include "passes/lower_trace.h"

#include <string.h>

#include "ir/scalar/scalar.h"
#include "passes/rules.h"

/* ---- loads ---- */

static const Sym *full_index(Trace *t, Node n, const NodePlace *place, const Sym *idx, uint32_t *nidx)
{
	SymTab *syms = t->s->ir->syms;
	uint32_t rank = node_rank(t->s->g, n);
	Sym *out = ARENA_ARRAY(t->s->arena, Sym, rank + 1);
	uint32_t m = 0;
	if (place->t.i)
		out[m++] = place->t;
	for (uint32_t k = 0; k < rank; k++)
		out[m++] = place->off[k].i ? sym_add(syms, idx[k], place->off[k]) : idx[k];
	*nidx = m;
	return out;
}

static Kx load(Trace *t, Node n, const Sym *idx, Kx guard, Kx other)
{
	NodeInfo *info = info_of(t->s, n);
	if (!info->place.n)
		ctx_bug(t->s->ir->ctx, "node %s is read before it has a place", graph_name(t->s->g, n));
	uint32_t nidx;
	const Sym *full = full_index(t, n, &info->place.data[0], idx, &nidx);
	BufId buf = info->place.data[0].buf;
	DType dtype = dtype_compute(buf_of(t->s->l, buf)->dtype);
	if (guard.i && !other.i)
		other = dtype_is_float(dtype) ? kx_const(t->k, t->s->arena, dtype, 0)
		                              : kx_const_int(t->k, t->s->arena, dtype, 0);
	return kx_load(t->k, t->s->arena, buf, dtype, nidx, full, guard, other);
}

/* ---- helpers ---- */

static Kx both(Trace *t, Kx a, Kx b)
{
	if (!a.i || !b.i)
		return a.i ? a : b;
	return kx_op(t->k, t->s->arena, OP_bit_and, DT_bool, (Kx[]){a, b}, 2);
}

Kx trace_zero(Trace *t, DType d)
{
	return dtype_is_float(d) ? kx_const(t->k, t->s->arena, d, 0)
	                         : kx_const_int(t->k, t->s->arena, d, 0);
}

/* The condition lo <= e < hi, none when it is proven. */
Kx trace_in_range(Trace *t, Sym e, Sym lo, Sym hi)
{
	SymTab *syms = t->s->ir->syms;
	if (sym_le(syms, lo, e) == YES && sym_lt(syms, e, hi) == YES)
		return (Kx){0};
	return kx_inrange(t->k, t->s->arena, e, lo, hi);
}

static bool reads_stored(Trace *t, Node n)
{
	Role role = info_of(t->s, n)->role;
	Op op = node_op(t->s->g, n);
	if (op == OP_get)
		return info_of(t->s, n)->place.n != 0;
	return (role == ROLE_ROOT && n.i != t->root.i) || op == OP_input || op == OP_constant ||
	       op == OP_view_real;
}

/* Value of `n` where the condition holds, `other` elsewhere. */
Kx trace_guarded(Trace *t, Node n, const Sym *idx, Kx guard, Kx cond, Kx other)
{
	Kx all = both(t, guard, cond);
	if (!cond.i)
		return trace_value(t, n, idx, guard);
	if (reads_stored(t, n) && !guard.i)
		return load(t, n, idx, all, other);
	Kx inner = trace_value(t, n, idx, all);
	DType d = t->k->kx.data[inner.i].dtype;
	return kx_op(t->k, t->s->arena, OP_select, d, (Kx[]){cond, inner, other}, 3);
}

/* ---- index maps ---- */

static Kx trace_broadcast(Trace *t, Node n, const Sym *idx, Kx guard)
{
	Graph *g = t->s->g;
	Node x = node_in(g, n, 0);
	uint32_t nmap;
	const Sym *map = node_ints(g, n, "map", &nmap);
	Sym in[MAX_RANK] = {{0}};
	for (uint32_t k = 0; k < node_rank(g, x); k++) {
		int64_t to;
		sym_is_const(g->ir->syms, map[k], &to);
		bool one = sym_is(g->ir->syms, node_dim(g, x, k), 1);
		in[k] = one ? sym_int(g->ir->syms, 0) : idx[to];
	}
	return trace_value(t, x, in, guard);
}

/* One group of dimensions with equal element counts: linearise over `from`, split over `to`. */
static void regroup(SymTab *syms, const Sym *from, const Sym *idx, uint32_t nfrom, const Sym *to,
                    Sym *out, uint32_t nto)
{
	Sym linear = sym_int(syms, 0);
	for (uint32_t k = 0; k < nfrom; k++)
		if (!sym_is(syms, from[k], 1))
			linear = sym_add(syms, sym_mul(syms, linear, from[k]), idx[k]);
	uint32_t first = nto;
	for (uint32_t k = 0; k < nto && first == nto; k++)
		if (!sym_is(syms, to[k], 1))
			first = k;
	for (uint32_t k = nto; k-- > 0;) {
		/* without elements no index is ever used */
		if (sym_is(syms, to[k], 1) || sym_is(syms, to[k], 0)) {
			out[k] = sym_int(syms, 0);
		} else if (k == first) {
			out[k] = linear;
		} else {
			out[k] = sym_mod(syms, linear, to[k]);
			linear = sym_floordiv(syms, linear, to[k]);
		}
	}
}

bool reshape_group(SymTab *syms, const Sym *from, uint32_t nfrom, const Sym *to, uint32_t nto, ReshapeGroup *g)
{
	uint32_t i = g->from_end, j = g->to_end;
	if (i >= nfrom && j >= nto)
		return false;
	*g = (ReshapeGroup){.from = i, .to = j};
	Sym a = i < nfrom ? from[i++] : sym_int(syms, 1);
	Sym b = j < nto ? to[j++] : sym_int(syms, 1);
	while (sym_eq(syms, a, b) != YES && (i < nfrom || j < nto)) {
		bool more_from = i < nfrom && (j == nto || sym_le(syms, a, b) == YES);
		if (!more_from && i < nfrom && sym_le(syms, b, a) != YES)
			more_from = i - g->from <= j - g->to;
		if (more_from)
			a = sym_mul(syms, a, from[i++]);
		else if (j < nto)
			b = sym_mul(syms, b, to[j++]);
		else
			a = sym_mul(syms, a, from[i++]);
	}
	/* trailing ones belong to this group when nothing else is left */
	while (i < nfrom && j == nto && sym_is(syms, from[i], 1))
		i++;
	while (j < nto && i == nfrom && sym_is(syms, to[j], 1))
		j++;
	g->from_end = i;
	g->to_end = j;
	return true;
}

void reshape_index(SymTab *syms, const Sym *from, const Sym *idx, uint32_t nfrom, const Sym *to,
                   Sym *out, uint32_t nto)
{
	ReshapeGroup g = {0};
	while (reshape_group(syms, from, nfrom, to, nto, &g))
		regroup(syms, from + g.from, idx + g.from, g.from_end - g.from, to + g.to, out + g.to,
		        g.to_end - g.to);
}

static Kx trace_reshape(Trace *t, Node n, const Sym *idx, Kx guard)
{
	Graph *g = t->s->g;
	Node x = node_in(g, n, 0);
	Sym in[MAX_RANK] = {{0}};
	const Type *to = node_type(g, n), *from = node_type(g, x);
	reshape_index(g->ir->syms, to->dim, idx, to->n, from->dim, in, from->n);
	return trace_value(t, x, in, guard);
}

static Kx trace_permute(Trace *t, Node n, const Sym *idx, Kx guard)
{
	Graph *g = t->s->g;
	uint32_t rank;
	const Sym *perm = node_ints(g, n, "perm", &rank);
	Sym in[MAX_RANK] = {{0}};
	for (uint32_t k = 0; k < rank; k++) {
		int64_t p;
		sym_is_const(g->ir->syms, perm[k], &p);
		in[p] = idx[k];
	}
	return trace_value(t, node_in(g, n, 0), in, guard);
}

static Kx trace_slice(Trace *t, Node n, const Sym *idx, Kx guard)
{
	Graph *g = t->s->g;
	SymTab *syms = g->ir->syms;
	uint32_t rank;
	const Sym *start = node_ints(g, n, "start", &rank), *step = node_ints(g, n, "step", &rank);
	Sym in[MAX_RANK] = {{0}};
	for (uint32_t k = 0; k < rank; k++)
		in[k] = sym_add(syms, start[k], sym_mul(syms, idx[k], step[k]));
	return trace_value(t, node_in(g, n, 0), in, guard);
}

static Kx trace_reverse(Trace *t, Node n, const Sym *idx, Kx guard)
{
	Graph *g = t->s->g;
	SymTab *syms = g->ir->syms;
	uint32_t nrev;
	const Sym *dims = node_ints(g, n, "dims", &nrev);
	Sym in[MAX_RANK] = {{0}};
	memcpy(in, idx, node_rank(g, n) * sizeof *in);
	for (uint32_t k = 0; k < nrev; k++) {
		int64_t d;
		sym_is_const(syms, dims[k], &d);
		in[d] = sym_addi(syms, sym_sub(syms, node_dim(g, n, (uint32_t)d), idx[d]), -1);
	}
	return trace_value(t, node_in(g, n, 0), in, guard);
}

static Kx trace_pad(Trace *t, Node n, const Sym *idx, Kx guard)
{
	Graph *g = t->s->g;
	SymTab *syms = g->ir->syms;
	Node x = node_in(g, n, 0);
	uint32_t rank, nint;
	const Sym *low = node_ints(g, n, "low", &rank), *interior = node_ints(g, n, "interior", &nint);
	Sym in[MAX_RANK] = {{0}}, zero = sym_int(syms, 0);
	Kx cond = {0};
	for (uint32_t k = 0; k < rank; k++) {
		in[k] = sym_sub(syms, idx[k], low[k]);
		if (k < nint && !sym_is(syms, interior[k], 0)) {
			Sym every = sym_addi(syms, interior[k], 1);
			cond = both(t, cond, trace_in_range(t, sym_mod(syms, in[k], every), zero, sym_int(syms, 1)));
			in[k] = sym_floordiv(syms, in[k], every);
		}
		cond = both(t, cond, trace_in_range(t, in[k], zero, node_dim(g, x, k)));
	}
	Kx other = trace_value(t, node_in(g, n, 1), NULL, (Kx){0});
	return trace_guarded(t, x, in, guard, cond, other);
}

static Kx trace_window(Trace *t, Node n, const Sym *idx, Kx guard)
{
	Graph *g = t->s->g;
	SymTab *syms = g->ir->syms;
	Node x = node_in(g, n, 0);
	uint32_t rank = node_rank(g, x);
	int64_t dim = node_int(g, n, "dim");
	Sym in[MAX_RANK] = {{0}};
	memcpy(in, idx, rank * sizeof *in);
	Sym at = sym_add(syms, sym_mul(syms, idx[dim], node_sym(g, n, "stride")),
	                 sym_mul(syms, idx[rank], node_sym(g, n, "dilation")));
	in[dim] = sym_sub(syms, at, node_sym(g, n, "low"));
	Kx cond = trace_in_range(t, in[dim], sym_int(syms, 0), node_dim(g, x, (uint32_t)dim));
	return trace_guarded(t, x, in, guard, cond, trace_zero(t, dtype_compute(node_dtype(g, n))));
}

/* ---- data-dependent indices ---- */

static Sym new_value_var(Trace *t, ValueVar v)
{
	v.var = sym_axis(t->s->ir->syms, "v", v.extent);
	array_push(t->s->arena, &t->k->vvar, v);
	return v.var;
}

Sym trace_value_var(Trace *t, Kx value, Sym extent)
{
	return new_value_var(t, (ValueVar){.value = value, .extent = extent});
}

Kx trace_as_i64(Trace *t, Kx x)
{
	if (t->k->kx.data[x.i].dtype == DT_i64)
		return x;
	return kx_op(t->k, t->s->arena, OP_convert, DT_i64, &x, 1);
}

static Kx op2(Trace *t, Op op, DType d, Kx a, Kx b)
{
	return kx_op(t->k, t->s->arena, op, d, (Kx[]){a, b}, 2);
}

/* Negative indices count from the end. */
static Kx wrap_index(Trace *t, Kx v, Sym extent)
{
	Kx size = kx_index(t->k, t->s->arena, extent);
	Kx neg = op2(t, OP_lt, DT_bool, v, kx_const_int(t->k, t->s->arena, DT_i64, 0));
	Kx up = op2(t, OP_add, DT_i64, v, size);
	return kx_op(t->k, t->s->arena, OP_select, DT_i64, (Kx[]){neg, up, v}, 3);
}

/* The message of a run-time check of n's indices, which gets the index and its nat coordinates. */
static uint32_t index_check(Trace *t, Node n, Sym extent, uint32_t nat, const char *input)
{
	const char *size = sym_str(t->s->ir->syms, extent), *loc = ir_loc_text(t->s->ir, node_data(t->s->g, n)->loc);
	bool sum = sym_kind(t->s->ir->syms, extent) == SYM_SUM;
	Text m;
	text_init(&m, t->s->arena);
	text_format(&m, graph_name(t->s->g, n));
	text_add(&m, ": index %lld at [");
	for (uint32_t k = 0; k < nat; k++)
		text_add(&m, k ? ", %lld" : "%lld");
	text_char(&m, ']');
	if (input) {
		text_add(&m, " of ");
		text_format(&m, input);
	}
	text_printf(&m, sum ? " is out of range, expected -(%s) <= index < %s" : " is out of range, expected -%s <= index < %s",
	            size, size);
	if (*loc) {
		text_add(&m, " (");
		text_format(&m, loc);
		text_char(&m, ')');
	}
	array_push(t->s->arena, &t->s->l->check, m.data);
	return t->s->l->check.n - 1;
}

/* A checked index, at at[] of all; where it is an element of an input, messages name that. */
static Sym checked_index(Trace *t, Node n, Kx given, Kx v, const Sym *at, uint32_t nat, Sym extent)
{
	const KxData *x = &t->k->kx.data[given.i];
	const char *input = NULL;
	if (x->kind == KX_OP && x->op == OP_convert)
		x = &t->k->kx.data[x->in[0].i];
	if (x->kind == KX_LOAD && buf_of(t->s->l, x->buf)->kind == BUF_INPUT) {
		input = buf_of(t->s->l, x->buf)->name;
		at = x->idx;
		nat = x->nidx;
	}
	return new_value_var(t, (ValueVar){.value = v, .extent = extent, .check = index_check(t, n, extent, nat, input),
	                                   .at = arena_dup(t->s->arena, at, nat * sizeof *at), .nat = nat});
}

/* One index of a gather or scatter, at at[] of all: negative ones wrap (check), are dropped (fill) or clamped. */
static Sym place_along(Trace *t, Node n, Kx v, const Sym *at, uint32_t nat, Sym extent, Kx *cond)
{
	SymTab *syms = t->s->ir->syms;
	const char *mode = node_str(t->s->g, n, "mode");
	bool check = !strcmp(mode, "check");
	Kx given = v;
	if (check)
		v = wrap_index(t, v, extent);
	if (!strcmp(mode, "fill")) {
		Kx size = kx_index(t->k, t->s->arena, extent);
		Kx zero = kx_const_int(t->k, t->s->arena, DT_i64, 0);
		*cond = both(t, *cond, op2(t, OP_ge, DT_bool, v, zero));
		*cond = both(t, *cond, op2(t, OP_lt, DT_bool, v, size));
	}
	/* an empty axis has no element to clamp to */
	*cond = both(t, *cond, trace_in_range(t, sym_int(syms, 0), sym_int(syms, 0), extent));
	return check ? checked_index(t, n, given, v, at, nat, extent) : trace_value_var(t, v, extent);
}

void trace_places(Trace *t, Node n, const Sym *lead, const Sym *rest, Kx guard, Sym *in, Kx *cond)
{
	Graph *g = t->s->g;
	Node x = node_in(g, n, 0), index = node_in(g, n, 1);
	uint32_t naxes, batch = (uint32_t)node_int(g, n, "batch"), ni = node_rank(g, index) - 1;
	const Sym *axes = node_ints(g, n, "axes", &naxes);
	bool indexed[MAX_RANK] = {false};
	Sym at[MAX_RANK] = {{0}};
	memcpy(at, lead, ni * sizeof *at);
	for (uint32_t k = 0; k < naxes; k++) {
		int64_t a;
		sym_is_const(g->ir->syms, axes[k], &a);
		indexed[a] = true;
		at[ni] = sym_int(g->ir->syms, k);
		Kx v = trace_as_i64(t, trace_value(t, index, at, guard));
		in[a] = place_along(t, n, v, at, ni, node_dim(g, x, (uint32_t)a), cond);
	}
	for (uint32_t k = 0, r = 0; k < node_rank(g, x); k++)
		if (k < batch)
			in[k] = lead[k];
		else if (!indexed[k])
			in[k] = rest[r++];
}

static Kx trace_gather(Trace *t, Node n, const Sym *idx, Kx guard)
{
	Graph *g = t->s->g;
	Sym in[MAX_RANK] = {{0}};
	Kx cond = {0};
	uint32_t ni = node_rank(g, node_in(g, n, 1)) - 1;
	trace_places(t, n, idx, idx + ni, guard, in, &cond);
	Kx zero = trace_zero(t, dtype_compute(node_dtype(g, n)));
	return trace_guarded(t, node_in(g, n, 0), in, guard, cond, zero);
}

static Kx trace_slice_at(Trace *t, Node n, const Sym *idx, Kx guard)
{
	Graph *g = t->s->g;
	SymTab *syms = g->ir->syms;
	Node x = node_in(g, n, 0);
	Sym in[MAX_RANK] = {{0}};
	for (uint32_t k = 0; k < node_rank(g, x); k++) {
		Kx v = trace_as_i64(t, trace_value(t, node_in(g, n, 1 + k), NULL, (Kx){0}));
		Sym room = sym_sub(syms, node_dim(g, x, k), node_dim(g, n, k));
		Sym start = trace_value_var(t, v, sym_addi(syms, room, 1));
		in[k] = sym_add(syms, start, idx[k]);
	}
	return trace_value(t, x, in, guard);
}

/* ---- element-wise and leaves ---- */

/* A value of a node of dtype d: rounded if that is a storage dtype. */
static Kx as_dtype(Trace *t, Kx x, DType d)
{
	DType c = dtype_compute(d);
	if (t->k->kx.data[x.i].dtype != c)
		x = kx_op(t->k, t->s->arena, OP_convert, c, &x, 1);
	return d == c ? x : kx_round(t->k, t->s->arena, d, x);
}

/* x has a value of storage dtype d for certain: it was rounded, lay in memory, or chooses among such. */
static bool is_rounded(const Trace *t, DType d, Kx x, uint32_t depth)
{
	const KxData *k = &t->k->kx.data[x.i];
	if (k->kind == KX_LOAD)
		return buf_of(t->s->l, k->buf)->dtype == d && (!k->guard.i || is_rounded(t, d, k->other, 1));
	if (k->kind != KX_OP || k->round == d || k->bits == d || depth == 0)
		return k->kind == KX_CONST || k->round == d || k->bits == d;
	bool first = k->op == OP_select, chooses = first || k->op == OP_maximum || k->op == OP_minimum;
	for (uint32_t i = first; i < k->nin; i++)
		chooses = chooses && is_rounded(t, d, k->in[i], depth - 1);
	return chooses;
}

/* Where it is converted, a value of a storage dtype is one: results of arithmetic are rounded first. */
static Kx trace_convert(Trace *t, DType from, DType to, Kx x)
{
	if (from != dtype_compute(from) && !is_rounded(t, from, x, 3))
		x = as_dtype(t, x, from);
	return as_dtype(t, x, dtype_keeps(from, to) ? dtype_compute(to) : to);
}

static Kx trace_elementwise(Trace *t, Node n, const Sym *idx, Kx guard)
{
	Graph *g = t->s->g;
	Op op = node_op(g, n);
	Kx in[4] = {{0}};
	uint32_t nin = node_nin(g, n);
	for (uint32_t k = 0; k < nin; k++)
		in[k] = trace_value(t, node_in(g, n, k), idx, guard);
	if (op == OP_convert)
		return trace_convert(t, node_dtype(g, node_in(g, n, 0)), node_dtype(g, n), in[0]);
	if (op == OP_bitcast)
		return kx_bitcast(t->k, t->s->arena, node_dtype(g, node_in(g, n, 0)),
		                  node_dtype(g, n), in[0]);
	return kx_op(t->k, t->s->arena, op, dtype_compute(node_dtype(g, n)), in, nin);
}

static Kx trace_index_value(Trace *t, Node n, Sym v)
{
	return as_dtype(t, kx_index(t->k, t->s->arena, v), node_dtype(t->s->g, n));
}

static Kx trace_full(Trace *t, Node n)
{
	Graph *g = t->s->g;
	DType d = node_dtype(g, n), c = dtype_compute(d);
	const Attr *a = node_attr(g, n, "value");
	int64_t i = a->kind == ATTR_bool && a->b;
	if (a->kind == ATTR_int && !sym_is_const(g->ir->syms, a->s, &i))
		return trace_index_value(t, n, a->s);
	bool is_float = a->kind == ATTR_float;
	ScVal v = is_float ? (ScVal){.f = a->f} : (ScVal){.i = i};
	v = scalar_eval(scalar_convert(is_float ? DT_f64 : DT_i64, d), &v);
	return dtype_is_float(d) ? kx_const(t->k, t->s->arena, c, v.f) : kx_const_int(t->k, t->s->arena, c, v.i);
}

/* ---- dispatch ---- */

/* The operand whose slice holds the index, by a chain of selects. */
static Kx trace_concat(Trace *t, Node n, const Sym *idx, Kx guard)
{
	Graph *g = t->s->g;
	SymTab *syms = g->ir->syms;
	int64_t dim = node_int(g, n, "dim");
	DType d = dtype_compute(node_dtype(g, n));
	Sym in[MAX_RANK] = {{0}}, end = node_dim(g, n, (uint32_t)dim);
	memcpy(in, idx, node_rank(g, n) * sizeof *in);
	Kx value = {0};
	for (uint32_t k = node_nin(g, n); k-- > 0;) {
		Node x = node_in(g, n, k);
		Sym start = sym_sub(syms, end, node_dim(g, x, (uint32_t)dim));
		Kx cond = trace_in_range(t, idx[dim], start, end);
		in[dim] = sym_sub(syms, idx[dim], start);
		Kx part = trace_value(t, x, in, both(t, guard, cond));
		value = !value.i || !cond.i ? part
		                            : kx_op(t->k, t->s->arena, OP_select, d,
		                                    (Kx[]){cond, part, value}, 3);
		end = start;
	}
	return value;
}

static Kx dispatch(Trace *t, Node n, const Sym *idx, Kx guard)
{
	Graph *g = t->s->g;
	Op op = node_op(g, n);
	if (t->only_maps && !node_is_index_map(op))
		return trace_block(t, n);
	if (node_is_elementwise(op))
		return trace_elementwise(t, n, idx, guard);
	switch (op) {
	case OP_full:
		return trace_full(t, n);
	case OP_iota:
		return trace_index_value(t, n, idx[0]);
	case OP_from_size:
		return trace_index_value(t, n, node_sym(g, n, "value"));
	case OP_broadcast:
		return trace_broadcast(t, n, idx, guard);
	case OP_reshape:
		return trace_reshape(t, n, idx, guard);
	case OP_permute:
		return trace_permute(t, n, idx, guard);
	case OP_slice:
		return trace_slice(t, n, idx, guard);
	case OP_reverse:
		return trace_reverse(t, n, idx, guard);
	case OP_pad:
		return trace_pad(t, n, idx, guard);
	case OP_window:
		return trace_window(t, n, idx, guard);
	case OP_barrier:
		return trace_value(t, node_in(g, n, 0), idx, guard);
	case OP_gather:
		return trace_gather(t, n, idx, guard);
	case OP_slice_at:
		return trace_slice_at(t, n, idx, guard);
	case OP_concat:
		return trace_concat(t, n, idx, guard);
	case OP_get: /* of a loop: has a place once the loop is lowered */
		t->s->read_loop = true;
		return t->s->dry ? trace_zero(t, dtype_compute(node_dtype(g, n))) : trace_block(t, n);
	case OP_reduce:
	case OP_contract:
	case OP_conv:
		return trace_stage(t, n, idx, guard);
	default:
		return trace_block(t, n);
	}
}

Kx trace_block(Trace *t, Node n)
{
	if (!t->blocked.i)
		t->blocked = n;
	return trace_zero(t, dtype_compute(node_dtype(t->s->g, n)));
}

Kx trace_value(Trace *t, Node n, const Sym *idx, Kx guard)
{
	if (t->blocked.i)
		return trace_zero(t, dtype_compute(node_dtype(t->s->g, n)));
	if (reads_stored(t, n))
		return load(t, n, idx, guard, (Kx){0});
	uint32_t key[2 * MAX_RANK + 2], nkey = 0, rank = node_rank(t->s->g, n);
	if (rank && !idx)
		ctx_bug(t->s->ir->ctx, "node %s is read without an index", graph_name(t->s->g, n));
	key[nkey++] = n.i;
	key[nkey++] = guard.i;
	for (uint32_t k = 0; k < rank; k++)
		key[nkey++] = idx[k].i;
	uint32_t id = intern_find(&t->memo, key, nkey * sizeof *key);
	if (id)
		return t->memo_value.data[id - 1];
	Kx x = dispatch(t, n, idx, guard);
	bool fresh;
	intern(&t->memo, key, nkey * sizeof *key, &fresh);
	if (fresh)
		array_push(t->s->arena, &t->memo_value, x);
	return x;
}
