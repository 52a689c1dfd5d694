/* Building the kernel of one root: trace its value backwards from an index over the kernel's axes,
 * transforming the index through index maps, inlining what the group holds, loading what is
 * stored. */
#include "lower/trace.h"

#include <string.h>

#include "ir/scalar/scalar.h"

/* ---- loads ---- */

static const Sym *full_index(Trace *t, Node n, const NodePlace *place, const Sym *idx,
			     uint32_t *nidx)
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
	NodeInfo *info = node_info(t->s, n);
	if (!info->place.n)
		ctx_bug(t->s->ir->ctx, "node %s is read before it has a place",
			graph_name(t->s->g, n));
	uint32_t nidx;
	const Sym *full = full_index(t, n, &info->place.data[0], idx, &nidx);
	BufId buf = info->place.data[0].buf;
	DType dtype = dtype_compute(buf_of(t->s->l, buf)->dtype);
	if (guard.i && !other.i)
		other = kx_zero(t->k, t->s->arena, dtype);
	return kx_load(t->k, t->s->arena, buf, dtype, nidx, full, guard, other);
}

Kx trace_in_range(Trace *t, Sym e, Sym lo, Sym hi)
{
	SymTab *syms = t->s->ir->syms;
	if (sym_le(syms, lo, e) == YES && sym_lt(syms, e, hi) == YES)
		return (Kx){0};
	return kx_inrange(t->k, t->s->arena, e, lo, hi);
}

bool trace_reads_stored(const Trace *t, Node n)
{
	const NodeInfo *info = node_info(t->s, n);
	if (op_lower(node_op(t->s->g, n))->role == LOWER_MEMORY)
		return info->place.n != 0;
	return info->is.role == ROLE_ROOT && n.i != t->root.i;
}

Kx trace_guarded(Trace *t, Node n, const Sym *idx, Kx guard, Kx cond, Kx other)
{
	Kx all = kx_and(t->k, t->s->arena, guard, cond);
	if (!cond.i)
		return trace_value(t, n, idx, guard);
	if (trace_reads_stored(t, n) && !guard.i)
		return load(t, n, idx, all, other);
	Kx inner = trace_value(t, n, idx, all);
	return kx_select(t->k, t->s->arena, cond, inner, other);
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

Sym trace_zero_var(Trace *t, Kx value, uint32_t check, Sym place, uint32_t ncode)
{
	Sym var = trace_value_var(t, value, sym_int(t->s->ir->syms, 1)),
	    *at = ARENA_ARRAY(t->s->arena, Sym, ncode + 1);
	ValueVar *v = &t->k->vvar.data[t->k->vvar.n - 1];
	v->check = check;
	v->listed = true;
	if (place.i)
		at[v->nat++] = place;
	while (ncode--)
		at[v->nat++] = var;
	v->at = at;
	return var;
}

/* Adds the message of a run-time check of n's indices, and returns its number. The message gets the
 * index and its nat coordinates. input: the name of the caller's input that has the indices; NULL:
 * none has. */
static uint32_t index_check(Trace *t, Node n, Sym extent, bool wraps, uint32_t nat,
			    const char *input)
{
	const char *size = sym_str(t->s->ir->syms, extent),
		   *loc = ir_loc_text(t->s->ir, node_data(t->s->g, n)->loc);
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
	text_add(&m, " is out of range, expected ");
	if (wraps)
		text_printf(&m, sum ? "-(%s)" : "-%s", size);
	text_printf(&m, wraps ? " <= index < %s" : "0 <= index < %s", size);
	if (*loc) {
		text_add(&m, " (");
		text_format(&m, loc);
		text_char(&m, ')');
	}
	return lowered_check(t->s->l, m.data);
}

/* Returns a variable for the checked index v, element at[] of all indices. Where the index as given
 * is an element of an input, messages name that element. */
static Sym checked_index(Trace *t, Node n, Kx given, Kx v, IndexMode mode, const Sym *at,
			 uint32_t nat, Sym extent)
{
	const KxData *x = &t->k->kx.data[kx_unconverted(t->k, given).i];
	const char *input = NULL;
	if (x->kind == KX_LOAD && buf_of(t->s->l, x->buf)->kind == BUF_INPUT) {
		input = buf_of(t->s->l, x->buf)->name;
		at = x->idx;
		nat = x->nidx;
	}
	return new_value_var(
		t, (ValueVar){.value = v,
			      .extent = extent,
			      .check = index_check(t, n, extent, mode == INDEX_CHECK, nat, input),
			      .wraps = mode == INDEX_CHECK,
			      .at = arena_dup(t->s->arena, at, nat * sizeof *at),
			      .nat = nat});
}

/* Returns the value of operand k of n, at at[], as an index (IndexMap.value). A scalar is read
 * without the guard. */
static Sym ask_value(IndexMap *m, uint32_t k, const Sym *at, Sym extent, IndexMode mode)
{
	TraceMap *tm = (TraceMap *)m;
	Trace *t = tm->t;
	SymTab *syms = t->s->ir->syms;
	Node x = node_in(m->g, m->n, k);
	uint32_t rank = node_rank(m->g, x), nat = rank ? rank - 1 : 0;
	if (mode == INDEX_FITS && sym_is(syms, extent, 1))
		return sym_int(syms, 0);
	Kx given = kx_to(t->k, t->s->arena, DT_i64,
			 trace_value(t, x, at, rank ? tm->guard : (Kx){0})),
	   v = given;
	if (mode == INDEX_CHECK)
		v = kx_wrap(t->k, t->s->arena, v, extent);
	if (mode == INDEX_FILL)
		tm->cond = kx_below(t->k, t->s->arena, tm->cond, v, extent);
	Sym zero = sym_int(syms, 0);
	if (mode != INDEX_FITS) /* an empty axis has no element to clamp to */
		tm->cond =
			kx_and(t->k, t->s->arena, tm->cond, trace_in_range(t, zero, zero, extent));
	bool checks = mode == INDEX_CHECK || mode == INDEX_WITHIN;
	return checks ? checked_index(t, m->n, given, v, mode, at, nat, extent)
		      : trace_value_var(t, v, extent);
}

static Sym ask_axis(IndexMap *m, const char *name, Sym extent)
{
	TraceMap *tm = (TraceMap *)m;
	return trace_inner_axis(tm->t, name, extent, tm->stage);
}

TraceMap trace_map(Trace *t, Node n, const Sym *at, Kx guard, Stage *stage)
{
	const Sym zero = sym_int(t->s->ir->syms, 0);
	return (TraceMap){.map = {.g = t->s->g,
				  .n = n,
				  .start = zero,
				  .at = at,
				  .axis = ask_axis,
				  .value = ask_value},
			  .t = t,
			  .guard = guard,
			  .stage = stage};
}

void trace_ask(TraceMap *m)
{
	op_lower(node_op(m->map.g, m->map.n))->index(&m->map);
	for (uint32_t k = 0; k < m->map.nrange; k++) {
		const struct IndexRange *r = &m->map.range[k];
		m->cond = kx_and(m->t->k, m->t->s->arena, m->cond,
				 trace_in_range(m->t, r->e, r->lo, r->hi));
	}
}

/* Whether the index is certainly outside of a range that was asked for. */
static bool is_outside(const TraceMap *m)
{
	SymTab *syms = m->t->s->ir->syms;
	for (uint32_t k = 0; k < m->map.nrange; k++) {
		const struct IndexRange *r = &m->map.range[k];
		if (sym_lt(syms, r->e, r->lo) == YES || sym_le(syms, r->hi, r->e) == YES)
			return true;
	}
	return false;
}

/* Whether x reads an element that var chooses. seen: by expression, false before the first call. */
static bool uses_var(const Trace *t, Kx x, Sym var, bool *seen)
{
	const KxData *d = &t->k->kx.data[x.i];
	if (!x.i || seen[x.i])
		return false;
	seen[x.i] = true;
	for (uint32_t k = 0; k < d->nidx; k++)
		if (sym_uses(t->s->ir->syms, d->idx[k], var))
			return true;
	for (uint32_t k = 0; k < d->nin; k++)
		if (uses_var(t, d->in[k], var, seen))
			return true;
	return uses_var(t, d->guard, var, seen) || uses_var(t, d->other, var, seen);
}

static bool uses(const Trace *t, Kx x, Sym var)
{
	return uses_var(t, x, var, ARENA_ARRAY(t->s->ir->ctx->scratch, bool, t->k->kx.n));
}

bool trace_needs_more(const Trace *t, Kx x, uint64_t axes)
{
	for (uint32_t i = 0; i < t->k->axis.n; i++)
		if (!(axes >> i & 1) && uses(t, x, t->k->axis.data[i].var))
			return true;
	for (uint32_t i = 0; i < t->k->vvar.n; i++)
		if (uses(t, x, t->k->vvar.data[i].var))
			return true;
	return false;
}

/* Returns the field of x that element idx[] of n is, or what it numbers. */
static Kx trace_field(Trace *t, Node n, Kx x, const Sym *idx)
{
	const Graph *g = t->s->g;
	uint32_t count;
	const Sym *byte = node_ints(g, n, "table", &count);
	const Kx field = kx_field(t->s->l, t->k, x, idx[node_int(g, n, "dim")],
				  (uint32_t)node_int(g, n, "bits"));
	uint64_t table[2] = {0};
	for (uint32_t i = 0; i < count; i++)
		table[i / 8] |= (uint64_t)sym_const(g->ir->syms, byte[i]) << i % 8 * 8;
	return count ? kx_look_up(t->s->l, t->k, field, table[0], table[1]) : field;
}

/* Makes x depend on the checked indices `first` to `end` - 1. Checks are made where an index is
 * used. An index that makes no difference, because all elements are the same, is checked all the
 * same: x is chosen by it. */
static Kx keep_checks(Trace *t, Kx x, uint32_t first, uint32_t end)
{
	Arena *a = t->s->arena;
	for (uint32_t k = first; k < end; k++) {
		const ValueVar v = t->k->vvar.data[k];
		bool *seen = ARENA_ARRAY(t->s->ir->ctx->scratch, bool, t->k->kx.n),
		     used = uses_var(t, x, v.var, seen);
		for (uint32_t j = k + 1; j < end; j++) /* an index that is found by this one */
			used = used || uses_var(t, t->k->vvar.data[j].value, v.var, seen);
		if (!v.check || used)
			continue;
		Kx in[2] = {kx_index(t->k, a, v.var), kx_const_int(t->k, a, DT_i64, 0)};
		Kx is_there = kx_op(t->k, a, OP_ge, DT_bool, in, 2);
		x = kx_op(t->k, a, OP_select, t->k->kx.data[x.i].dtype, (Kx[]){is_there, x, x}, 3);
	}
	return x;
}

static Kx trace_index(Trace *t, Node n, const Sym *idx, Kx guard)
{
	uint32_t other = op_lower(node_op(t->s->g, n))->other, nvar = t->k->vvar.n;
	TraceMap m = trace_map(t, n, idx, guard, NULL);
	trace_ask(&m);
	uint32_t nasked = t->k->vvar.n;
	if (t->attention.nscore && nasked != nvar)
		return trace_store_first(t, n, "its index depends on data");
	Kx outside = {0};
	if (other)
		outside = trace_value(t, node_in(t->s->g, n, other), NULL, (Kx){0});
	else if (m.cond.i)
		outside = kx_zero(t->k, t->s->arena, dtype_compute(node_dtype(t->s->g, n)));
	if (nasked == nvar && is_outside(&m))
		return outside;
	Kx x = trace_guarded(t, node_in(t->s->g, n, 0), m.map.in[0], guard, m.cond, outside);
	if (op_lower(node_op(t->s->g, n))->fields)
		return trace_field(t, n, x, idx);
	return nasked == nvar || trace_reads_stored(t, node_in(t->s->g, n, 0))
		       ? x
		       : keep_checks(t, x, nvar, nasked);
}

/* Returns element idx[] of n, which holds its operands one behind the other: selects the operand
 * whose part has the index. */
static Kx trace_operands(Trace *t, Node n, const Sym *idx, Kx guard)
{
	Graph *g = t->s->g;
	uint32_t dim = (uint32_t)node_int(g, n, "dim");
	Sym end = node_dim(g, n, dim);
	Kx value = {0};
	for (uint32_t k = node_nin(g, n); k-- > 0;) {
		Node x = node_in(g, n, k);
		TraceMap m = trace_map(t, n, idx, guard, NULL);
		m.map.operand = k;
		m.map.start = end = sym_sub(g->ir->syms, end, node_dim(g, x, dim));
		trace_ask(&m);
		if (is_outside(&m) && (k || value.i))
			continue;
		Kx part = trace_value(t, x, m.map.in[0], kx_and(t->k, t->s->arena, guard, m.cond));
		value = !value.i || !m.cond.i ? part
					      : kx_select(t->k, t->s->arena, m.cond, part, value);
	}
	return value;
}

/* ---- element-wise and leaves ---- */

static Kx trace_elementwise(Trace *t, Node n, const Sym *idx, Kx guard)
{
	Graph *g = t->s->g;
	Kx in[4] = {{0}};
	uint32_t nin = node_nin(g, n);
	for (uint32_t k = 0; k < nin; k++)
		in[k] = trace_value(t, node_in(g, n, k), idx, guard);
	return kx_map(t->s->l, t->k, node_op(g, n), node_dtype(g, node_in(g, n, 0)),
		      node_dtype(g, n), in, nin);
}

static Kx integer_value(Trace *t, Node n, Sym v)
{
	return kx_as(t->k, t->s->arena, node_dtype(t->s->g, n), kx_index(t->k, t->s->arena, v));
}

/* Returns the number that is the attribute `value` of n. */
static Kx number(Trace *t, Node n)
{
	Graph *g = t->s->g;
	DType d = node_dtype(g, n), c = dtype_compute(d);
	const Attr *a = node_attr(g, n, "value");
	int64_t i = a->kind == ATTR_bool && a->b;
	if (a->kind == ATTR_int && !sym_is_const(g->ir->syms, a->s, &i))
		return integer_value(t, n, a->s);
	bool is_float = a->kind == ATTR_float;
	ScVal v = is_float ? (ScVal){.f = a->f} : (ScVal){.i = i};
	v = scalar_eval(scalar_convert(is_float ? DT_f64 : DT_i64, d), &v);
	return dtype_is_float(d) ? kx_const(t->k, t->s->arena, c, v.f)
				 : kx_const_int(t->k, t->s->arena, c, v.i);
}

static Kx trace_leaf(Trace *t, Node n, const Sym *idx)
{
	if (!op_lower(node_op(t->s->g, n))->index)
		return number(t, n);
	TraceMap m = trace_map(t, n, idx, (Kx){0}, NULL);
	trace_ask(&m);
	return integer_value(t, n, m.map.in[0][0]);
}

/* ---- dispatch ---- */

/* Returns an operand of a contraction that is computed of constants. */
static Kx trace_decoded(Trace *t, Node n, const Sym *idx, Kx guard)
{
	t->only_maps = false;
	const Kx x = trace_elementwise(t, n, idx, guard);
	t->only_maps = true;
	return x;
}

/* Returns a placeholder for a result of a loop in a dry run: the result gets its place when the
 * loop is lowered. Else asks to store it first. */
static Kx later_result(Trace *t, Node n)
{
	t->s->read_loop = true;
	return t->s->dry ? kx_zero(t->k, t->s->arena, dtype_compute(node_dtype(t->s->g, n))) :
	                   trace_store_first(t, n, "its operator has steps of its own");
}

static Kx dispatch(Trace *t, Node n, const Sym *idx, Kx guard)
{
	const OpLower *how = op_lower(node_op(t->s->g, n));
	if (t->only_maps && t->s->info.data[n.i].is.decoded)
		return trace_decoded(t, n, idx, guard);
	if (t->only_maps && !lower_is_map(how) && how->role != LOWER_MEMORY)
		return trace_store_first(t, n, "a contraction reads it");
	switch (how->role) {
	case LOWER_MAP:
		return trace_elementwise(t, n, idx, guard);
	case LOWER_INDEX:
		return how->holds == HOLDS_OPERANDS ? trace_operands(t, n, idx, guard)
						    : trace_index(t, n, idx, guard);
	case LOWER_LEAF:
		return trace_leaf(t, n, idx);
	case LOWER_MEMORY:
		return later_result(t, n);
	case LOWER_TILES:
		return trace_tiles(t, n, idx);
	case LOWER_REDUCE:
	case LOWER_ANCHOR:
		return trace_stage(t, n, idx, guard);
	default:
		return trace_store_first(t, n, "its operator has kernels of its own");
	}
}

Kx trace_store_first(Trace *t, Node n, const char *why)
{
	if (!t->blocked.node.i)
		t->blocked = (StoredFirst){n, why};
	return kx_zero(t->k, t->s->arena, dtype_compute(node_dtype(t->s->g, n)));
}

Kx trace_value(Trace *t, Node n, const Sym *idx, Kx guard)
{
	if (t->blocked.node.i)
		return kx_zero(t->k, t->s->arena, dtype_compute(node_dtype(t->s->g, n)));
	if (trace_reads_stored(t, n))
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
	if (!fresh)
		return x;
	array_push(t->s->arena, &t->memo_value, x);
	if (op_lower(node_op(t->s->g, n))->role != LOWER_LEAF)
		array_push(t->s->arena, &t->k->evaluates, n);
	return x;
}
