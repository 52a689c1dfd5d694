/* Axes and offsets of a kernel; axes that are made, merged and renamed. */
#include "codegen/plan/nest.h"

#include <math.h>

/* ---- dependences ---- */

uint64_t nest_axes(const Nest *e, Sym sym)
{
	uint64_t m = 0;
	for (uint32_t i = 0; i < e->n; i++)
		if (e->var[i].i && sym_uses(e->syms, sym, e->var[i]))
			m |= UINT64_C(1) << i;
	for (uint32_t i = 0; i < e->k->vvar.n; i++)
		if (sym_uses(e->syms, sym, e->k->vvar.data[i].var))
			m |= e->deps[e->k->vvar.data[i].value.i];
	return m;
}

static uint64_t stage_deps(const Nest *e, const KxData *x)
{
	uint64_t m = e->outer; /* a stage runs once per outer point */
	for (uint32_t j = 0; j < x->nidx; j++)
		m |= nest_axes(e, x->idx[j]);
	return m;
}

void nest_find_deps(Nest *e)
{
	const Kernel *k = e->k;
	for (uint32_t i = 1; i < k->kx.n; i++) {
		const KxData *x = &k->kx.data[i];
		uint64_t m = e->deps[x->guard.i] | e->deps[x->other.i];
		for (uint32_t j = 0; j < x->nin; j++)
			m |= e->deps[x->in[j].i];
		if (x->kind == KX_LOAD) {
			m |= nest_axes(e, e->offset[i]);
		} else if (x->kind == KX_STAGE) {
			m |= stage_deps(e, x);
		} else {
			for (uint32_t j = 0; j < x->nidx; j++)
				m |= nest_axes(e, x->idx[j]);
		}
		e->deps[i] = m;
	}
}

/* ---- stages that are read ---- */

static uint32_t words(const Kernel *k)
{
	return (k->stage.n + 63) / 64;
}

static void read_as_well(const Kernel *k, uint64_t *reads, uint32_t x, Kx part)
{
	for (uint32_t i = 0, n = words(k); i < n; i++)
		reads[x * n + i] |= reads[part.i * n + i];
}

/* Returns the set of stages that each expression reads, by bit (Nest.reads). */
static const uint64_t *find_stages(const Nest *e)
{
	const Kernel *k = e->k;
	uint64_t *reads = ARENA_ARRAY(e->arena, uint64_t, (size_t)k->kx.n * words(k));
	for (uint32_t i = 1; i < k->kx.n; i++) {
		const KxData *x = &k->kx.data[i];
		if (x->kind == KX_STAGE)
			reads[i * words(k) + x->stage / 64] |= UINT64_C(1) << x->stage % 64;
		for (uint32_t j = 0; j < x->nin; j++)
			read_as_well(k, reads, i, x->in[j]);
		read_as_well(k, reads, i, x->guard);
		read_as_well(k, reads, i, x->other);
		for (uint32_t j = 0; j < x->nidx; j++)
			for (uint32_t v = 0; v < k->vvar.n; v++)
				if (sym_uses(e->syms, x->idx[j], k->vvar.data[v].var))
					read_as_well(k, reads, i, k->vvar.data[v].value);
	}
	return reads;
}

uint32_t nest_next_read(const Nest *e, Kx x, uint32_t stage)
{
	const uint64_t *reads = e->reads + (size_t)x.i * words(e->k);
	while (stage < e->k->stage.n) {
		uint64_t rest = reads[stage / 64] >> stage % 64;
		if (rest)
			return stage + (uint32_t)__builtin_ctzll(rest);
		stage += 64 - stage % 64;
	}
	return e->k->stage.n;
}

/* ---- making ---- */

static void copy_axes(Nest *e)
{
	const Kernel *k = e->k;
	if (k->axis.n > MAX_KERNEL_AXES)
		ctx_bug(e->l->ir->ctx, "kernel %s has %u axes", k->name, k->axis.n);
	e->n = k->axis.n;
	e->nouter = kernel_nouter(k);
	e->outer = (UINT64_C(1) << e->nouter) - 1;
	for (uint32_t i = 0; i < k->axis.n; i++) {
		e->var[i] = k->axis.data[i].var;
		e->extent[i] = k->axis.data[i].extent;
	}
	e->position = ARENA_ARRAY(e->arena, const Sym *, k->vvar.n);
	for (uint32_t i = 0; i < k->vvar.n; i++)
		e->position[i] = k->vvar.data[i].at;
}

/* Computes the offsets of loads and stores in the present layouts of their buffers. */
static void find_offsets(Nest *e)
{
	const Kernel *k = e->k;
	e->deps = ARENA_ARRAY(e->arena, uint64_t, k->kx.n);
	e->offset = ARENA_ARRAY(e->arena, Sym, k->kx.n);
	e->from = ARENA_ARRAY(e->arena, SchedArg, k->kx.n);
	e->store = ARENA_ARRAY(e->arena, Sym, k->stage.n);
	for (uint32_t i = 1; i < k->kx.n; i++) {
		const KxData *x = &k->kx.data[i];
		if (x->kind != KX_LOAD)
			continue;
		e->offset[i] = layout_offset(e->l->ir, &buf_of(e->l, x->buf)->layout, x->idx);
		e->from[i] = (SchedArg){ARG_BUF, x->buf.i, NULL};
	}
	for (uint32_t i = 0; i < k->stage.n; i++) {
		const Stage *st = &k->stage.data[i];
		if (stage_stores(st))
			e->store[i] = layout_offset(e->l->ir, &buf_of(e->l, st->store.buf)->layout,
						    st->store.idx);
	}
}

const Nest *nest_new(const Lowered *l, const Kernel *k)
{
	Nest *e = ARENA_NEW(l->ir->ctx->arena, Nest);
	*e = (Nest){.l = l, .k = k, .syms = l->ir->syms, .arena = l->ir->ctx->arena};
	copy_axes(e);
	find_offsets(e);
	nest_find_deps(e);
	e->reads = find_stages(e);
	return e;
}

Nest *nest_copy(const Nest *from, const Kernel *k)
{
	Nest *e = arena_dup(from->arena, from, sizeof *from);
	e->k = k;
	e->deps = arena_dup(e->arena, e->deps, k->kx.n * sizeof *e->deps);
	e->offset = arena_dup(e->arena, e->offset, k->kx.n * sizeof *e->offset);
	e->from = arena_dup(e->arena, e->from, k->kx.n * sizeof *e->from);
	e->store = arena_dup(e->arena, e->store, k->stage.n * sizeof *e->store);
	e->position = arena_dup(e->arena, e->position, k->vvar.n * sizeof *e->position);
	return e;
}

/* ---- merging and renaming ---- */

static void merge_positions(Nest *e, uint32_t a, uint32_t b, uint32_t m)
{
	Sym size = sym_max(e->syms, e->extent[b], sym_int(e->syms, 1)),
	    var[2] = {e->var[a], e->var[b]};
	Sym by[2] = {sym_floordiv(e->syms, e->var[m], size), sym_mod(e->syms, e->var[m], size)};
	for (uint32_t i = 0; i < e->k->vvar.n; i++) {
		uint32_t n = e->k->vvar.data[i].nat;
		Sym *at = ARENA_ARRAY(e->arena, Sym, n);
		for (uint32_t k = 0; k < n; k++)
			at[k] = sym_subst(e->syms, e->position[i][k], var, by, 2);
		e->position[i] = at;
	}
}

/* Returns the offset with axes a and b replaced by their merged axis m: rest + ca * a + cb * b
 * becomes rest + cb * m. */
static Sym merged_offset(Nest *e, Sym offset, uint32_t a, uint32_t b, Sym m)
{
	Sym coef, rest, unused;
	if (!offset.i)
		return offset;
	if (!sym_linear(e->syms, offset, e->var[a], &unused, &rest) ||
	    !sym_linear(e->syms, rest, e->var[b], &coef, &rest))
		ctx_bug(e->l->ir->ctx, "kernel %s: axes are merged that an access takes apart",
			e->k->name);
	return sym_add(e->syms, rest, sym_mul(e->syms, coef, m));
}

uint32_t nest_add_axis(Nest *e, const char *name, Sym extent)
{
	e->extent[e->n] = extent;
	e->var[e->n] = sym_axis(e->syms, name, extent);
	return e->n++;
}

uint32_t nest_merge_axes(Nest *e, uint32_t a, uint32_t b)
{
	uint32_t m = nest_add_axis(e, "m", sym_mul(e->syms, e->extent[a], e->extent[b]));
	for (uint32_t i = 1; i < e->k->kx.n; i++)
		e->offset[i] = merged_offset(e, e->offset[i], a, b, e->var[m]);
	for (uint32_t i = 0; i < e->k->stage.n; i++)
		e->store[i] = merged_offset(e, e->store[i], a, b, e->var[m]);
	merge_positions(e, a, b, m);
	e->var[a] = e->var[b] = (Sym){0};
	if (e->outer >> a & 1)
		e->outer = (e->outer & ~(UINT64_C(1) << a) & ~(UINT64_C(1) << b)) | UINT64_C(1)
											    << m;
	nest_find_deps(e);
	return m;
}

static Sym renamed(const Nest *e, Sym sym, uint32_t from, uint32_t to)
{
	return sym.i ? sym_subst(e->syms, sym, &e->var[from], &e->var[to], 1) : sym;
}

static const Sym *renamed_all(const Nest *e, const Sym *sym, uint32_t n, uint32_t from, uint32_t to)
{
	Sym *out = ARENA_ARRAY(e->arena, Sym, n);
	for (uint32_t i = 0; i < n; i++)
		out[i] = renamed(e, sym[i], from, to);
	return out;
}

void nest_rename_axis(Nest *e, Kernel *k, uint32_t from, uint32_t to)
{
	for (uint32_t i = 1; i < k->kx.n; i++) {
		e->offset[i] = renamed(e, e->offset[i], from, to);
		k->kx.data[i].idx = renamed_all(e, k->kx.data[i].idx, k->kx.data[i].nidx, from, to);
	}
	for (uint32_t i = 0; i < k->vvar.n; i++)
		e->position[i] = renamed_all(e, e->position[i], k->vvar.data[i].nat, from, to);
	for (uint32_t i = 0; i < k->stage.n; i++)
		e->store[i] = renamed(e, e->store[i], from, to);
	e->var[from] = (Sym){0};
}

void nest_read(Nest *e, Kx load, SchedArg from, Sym offset)
{
	e->from[load.i] = from;
	e->offset[load.i] = offset;
	nest_find_deps(e);
}

/* ---- questions ---- */

SchedArg nest_packed(const Nest *e, Kx load, const Layout *layout)
{
	return (SchedArg){ARG_BUF, e->k->kx.data[load.i].buf.i,
			  arena_dup(e->arena, layout, sizeof *layout)};
}

bool nest_may_repack(const Nest *e, Kx load, const Layout *layout)
{
	const Buffer *buf = buf_of(e->l, e->k->kx.data[load.i].buf);
	return buf->kind == BUF_CONST && (!buf->layout_fixed || layout_equal(&buf->layout, layout));
}

bool nest_coef(const Nest *e, Sym offset, uint32_t axis, Sym *coef)
{
	for (uint32_t i = 0; i < e->k->vvar.n; i++)
		if (sym_uses(e->syms, offset, e->k->vvar.data[i].var) &&
		    (e->deps[e->k->vvar.data[i].value.i] >> axis & 1))
			return false;
	return sym_linear(e->syms, offset, e->var[axis], coef, NULL);
}

bool nest_coef_is(const Nest *e, Sym offset, uint32_t axis, int64_t value)
{
	Sym coef;
	return nest_coef(e, offset, axis, &coef) && sym_is(e->syms, coef, value);
}

bool nest_axis_is_plain(const Nest *e, uint32_t axis)
{
	return axis >= e->k->axis.n || axis_is_plain(&e->k->axis.data[axis]);
}

bool nest_axis_is_free(const Nest *e, uint32_t axis)
{
	for (uint32_t a = 0; a < e->k->axis.n; a++) {
		const uint32_t bound[] = {e->k->axis.data[a].lo, e->k->axis.data[a].hi};
		for (uint32_t i = 0; i < 2; i++)
			if (bound[i] && e->deps[e->k->vvar.data[bound[i] - 1].value.i] >> axis & 1)
				return false;
	}
	return nest_axis_is_plain(e, axis);
}

int64_t nest_hint(const Nest *e, uint32_t axis)
{
	if (!nest_axis_is_plain(e, axis) && e->k->axis.data[axis].mean > 0)
		return (int64_t)ceil(e->k->axis.data[axis].mean);
	return sym_hint(e->syms, e->extent[axis]);
}

bool nest_is_empty(const Nest *n)
{
	for (uint32_t a = 0; a < n->n; a++)
		if (sym_is(n->syms, n->extent[a], 0))
			return true;
	return false;
}
