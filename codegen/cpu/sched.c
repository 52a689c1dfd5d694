/* Lowering index arithmetic, loads and bodies at a point; see sched.h. */
#include "codegen/cpu/sched.h"

#include "codegen/cpu/cost.h"
#include "codegen/cpu/tuning.h"
#include "ir/loop/predict.h"

#include <string.h>

/* ---- setting up ---- */

uint64_t sched_axes(const Sched *s, Sym e)
{
	uint64_t m = 0;
	for (uint32_t i = 0; i < s->naxis; i++)
		if (s->var[i].i && sym_uses(s->syms, e, s->var[i]))
			m |= UINT64_C(1) << i;
	for (uint32_t i = 0; i < s->k->vvar.n; i++)
		if (sym_uses(s->syms, e, s->k->vvar.data[i].var))
			m |= s->deps[s->k->vvar.data[i].value.i];
	return m;
}

static uint64_t stage_deps(const Sched *s, const KxData *x)
{
	uint64_t m = s->outer; /* a stage runs once per outer point */
	for (uint32_t j = 0; j < x->nidx; j++)
		m |= sched_axes(s, x->idx[j]);
	return m;
}

static uint32_t words(const Kernel *k)
{
	return (k->stage.n + 63) / 64;
}

static void read_as_well(Sched *s, uint32_t x, Kx part)
{
	for (uint32_t i = 0, n = words(s->k); i < n; i++)
		s->reads[x * n + i] |= s->reads[part.i * n + i];
}

static bool reads(const Sched *s, Kx x, uint32_t stage)
{
	return s->reads[x.i * words(s->k) + stage / 64] >> stage % 64 & 1;
}

/* The stages that each expression reads. */
static void find_stages(Sched *s)
{
	const Kernel *k = s->k;
	for (uint32_t i = 1; i < k->kx.n; i++) {
		const KxData *x = &k->kx.data[i];
		if (x->kind == KX_STAGE)
			s->reads[i * words(k) + x->stage / 64] |= UINT64_C(1) << x->stage % 64;
		for (uint32_t j = 0; j < x->nin; j++)
			read_as_well(s, i, x->in[j]);
		read_as_well(s, i, x->guard);
		read_as_well(s, i, x->other);
		for (uint32_t j = 0; j < x->nidx; j++)
			for (uint32_t v = 0; v < k->vvar.n; v++)
				if (sym_uses(s->syms, x->idx[j], k->vvar.data[v].var))
					read_as_well(s, i, k->vvar.data[v].value);
	}
}

bool sched_reads_below(const Sched *s, Kx x, uint32_t n)
{
	for (uint32_t i = n; i < s->k->stage.n; i++)
		if (reads(s, x, i))
			return false;
	return true;
}

void sched_find_deps(Sched *s)
{
	const Kernel *k = s->k;
	for (uint32_t i = 1; i < k->kx.n; i++) {
		const KxData *x = &k->kx.data[i];
		uint64_t m = s->deps[x->guard.i] | s->deps[x->other.i];
		for (uint32_t j = 0; j < x->nin; j++)
			m |= s->deps[x->in[j].i];
		if (x->kind == KX_LOAD) {
			m |= sched_axes(s, s->offset[i]);
		} else if (x->kind == KX_STAGE) {
			m |= stage_deps(s, x);
		} else {
			for (uint32_t j = 0; j < x->nidx; j++)
				m |= sched_axes(s, x->idx[j]);
		}
		s->deps[i] = m;
	}
	memo_init(&s->memo, s->f, s->arena);
}

static void start_function(Sched *s)
{
	uint32_t phase = s->out->phase.n;
	s->f = loop_new(s->ir, phase ? arena_printf(s->arena, "%s_phase_%u", s->k->name, phase + 1) : s->k->name);
	s->f->comment = kernel_text(s->k, s->arena);
	memo_init(&s->memo, s->f, s->arena);
}

void sched_init(Sched *s, const Lowered *l, Kernel *k, const Target *target)
{
	Ir *ir = l->ir;
	Arena *arena = ir->ctx->arena;
	*s = (Sched){.l = l, .ir = ir, .syms = ir->syms, .arena = arena, .k = k, .target = target,
	             .vaxis = NO_AXIS, .lanes = 1, .naxis = k->axis.n,
	             .outer = (UINT64_C(1) << k->nouter) - 1};
	if (k->axis.n > MAX_KERNEL_AXES)
		ctx_bug(ir->ctx, "kernel %s has %u axes", k->name, k->axis.n);
	for (uint32_t i = 0; i < k->axis.n; i++) {
		s->var[i] = k->axis.data[i].var;
		s->extent[i] = k->axis.data[i].extent;
	}
	intern_init(&s->part, arena);
	s->out = ARENA_NEW(arena, Schedule);
	start_function(s);
	s->deps = ARENA_ARRAY(arena, uint64_t, k->kx.n);
	s->offset = ARENA_ARRAY(arena, Sym, k->kx.n);
	s->from = ARENA_ARRAY(arena, SchedArg, k->kx.n);
	s->key = ARENA_ARRAY(arena, uint32_t, 2 + MAX_AXES + k->stage.n);
	s->position = ARENA_ARRAY(arena, const Sym *, k->vvar.n);
	for (uint32_t i = 0; i < k->vvar.n; i++)
		s->position[i] = k->vvar.data[i].at;
	s->reads = ARENA_ARRAY(arena, uint64_t, (size_t)k->kx.n * words(k));
	s->visited = ARENA_ARRAY(arena, uint32_t, k->kx.n);
	s->stage = ARENA_ARRAY(arena, StageValue, k->stage.n);
	s->store = ARENA_ARRAY(arena, Sym, k->stage.n);
	for (uint32_t i = 1; i < k->kx.n; i++) {
		const KxData *x = &k->kx.data[i];
		if (x->kind != KX_LOAD)
			continue;
		s->offset[i] = layout_offset(ir, &buf_of(l, x->buf)->layout, x->idx);
		s->from[i] = (SchedArg){ARG_BUF, x->buf.i, NULL};
	}
	for (uint32_t i = 0; i < k->stage.n; i++)
		if (k->stage.data[i].result == RESULT_GLOBAL)
			s->store[i] = layout_offset(ir, &buf_of(l, k->stage.data[i].buf)->layout,
			                            k->stage.data[i].idx);
	sched_find_deps(s);
	find_stages(s);
	s->shape = kernel_shape(s->syms, k);
	s->cost = kernel_cost(s, UINT64_MAX);
}

bool sched_coef(const Sched *s, Sym offset, uint32_t axis, Sym *coef)
{
	Sym rest;
	for (uint32_t i = 0; i < s->k->vvar.n; i++)
		if (sym_uses(s->syms, offset, s->k->vvar.data[i].var) &&
		    (s->deps[s->k->vvar.data[i].value.i] >> axis & 1))
			return false;
	return sym_linear(s->syms, offset, s->var[axis], coef, &rest);
}

bool sched_coef_is(const Sched *s, Sym offset, uint32_t axis, int64_t value)
{
	Sym coef;
	return sched_coef(s, offset, axis, &coef) && sym_is(s->syms, coef, value);
}

/* ---- arguments ---- */

static LMem argument(Sched *s, SchedArg a, const char *name, DType dtype, bool donated)
{
	uint32_t i = 0;
	while (i < s->arg.n &&
	       (s->arg.data[i].kind != a.kind || s->arg.data[i].k != a.k || s->arg.data[i].packed != a.packed))
		i++;
	if (i == s->arg.n) {
		array_push(s->arena, &s->arg, a);
		loop_buf(s->f, (LArg){.name = name, .dtype = dtype, .restrict_ok = !donated, .align = dtype_size(dtype)});
	}
	return lmem_buf(i, dtype);
}

LMem sched_memory(Sched *s, BufId b)
{
	const Buffer *buf = buf_of(s->l, b);
	return argument(s, (SchedArg){ARG_BUF, b.i, NULL}, buf->name, buf->dtype, buf->donated);
}

LMem sched_load_memory(Sched *s, Kx load)
{
	const Buffer *buf = buf_of(s->l, s->k->kx.data[load.i].buf);
	if (s->from[load.i].kind == ARG_TEMP)
		return sched_temp_memory(s, s->from[load.i].k);
	return argument(s, s->from[load.i], buf->name, buf->dtype, buf->donated);
}

bool sched_may_repack(const Sched *s, Kx load, const Layout *layout)
{
	const Buffer *buf = buf_of(s->l, s->k->kx.data[load.i].buf);
	return buf->kind == BUF_CONST && (!buf->layout_fixed || layout_equal(&buf->layout, layout));
}

SchedArg sched_packed(const Sched *s, Kx load, const Layout *layout)
{
	return (SchedArg){ARG_BUF, s->k->kx.data[load.i].buf.i, arena_dup(s->arena, layout, sizeof *layout)};
}

void sched_read(Sched *s, Kx load, SchedArg from, Sym offset)
{
	s->from[load.i] = from;
	s->offset[load.i] = offset;
	sched_find_deps(s);
}

/* ---- phases ---- */

uint32_t sched_temp(Sched *s, SchedTemp t)
{
	array_push(s->arena, &s->out->temp, t);
	return s->out->temp.n - 1;
}

static double predicted(const Sched *s, const SchedPhase *p)
{
	int64_t *param = ARENA_ARRAY(s->arena, int64_t, p->nparam);
	for (uint32_t i = 0; i < p->nparam; i++)
		param[i] = sym_hint(s->syms, p->param[i]);
	return loop_predict(p->f, &s->target->machine, param, sym_hint(s->syms, p->ntasks),
	                    cost_at(s->syms, p->cost.bytes, NULL, NULL, 0));
}

void sched_finish_phase(Sched *s, Sym ntasks, KernelCost cost)
{
	if (s->streamed)
		ls_fence(s->f);
	s->streamed = false;
	SchedPhase p = {.f = s->f, .ntasks = ntasks, .cost = cost, .narg = s->arg.n, .arg = s->arg.data,
	                .nparam = s->param.n, .param = s->param.data};
	loop_simplify(p.f);
	s->out->code += loop_statements(p.f, p.f->body);
	s->out->flops += cost_at(s->syms, cost.flops, NULL, NULL, 0);
	s->out->bytes += cost_at(s->syms, cost.bytes, NULL, NULL, 0);
	s->out->cycles += predicted(s, &p);
	array_push(s->arena, &s->out->phase, p);
	s->arg.data = NULL;
	s->arg.n = s->arg.cap = 0;
	s->param.data = NULL;
	s->param.n = s->param.cap = 0;
	for (uint32_t i = 0; i < s->naxis; i++)
		s->at[i] = s->start[i] = s->limit[i] = (Lx){0};
	s->mask = (Lx){0};
	start_function(s);
}

Lx sched_let(Sched *s, const char *name, Lx x)
{
	int64_t v;
	return lx_is_int(s->f, x, &v) ? x : lx_var(s->f, ls_let(s->f, name, x));
}

/* Of a size that is not negative and no constant. */
static Lx parameter(Sched *s, Sym e)
{
	for (uint32_t i = 0; i < s->param.n; i++)
		if (s->param.data[i].i == e.i)
			return lx_param(s->f, i);
	array_push(s->arena, &s->param, e);
	return lx_param(s->f, loop_param(s->f, "n"));
}

/* Parameters are never negative, which index arithmetic relies on: what may be (an offset from a symbolic pad) is the
 * difference of two. */
Lx sched_size(Sched *s, Sym e)
{
	int64_t lo, hi;
	sym_range(s->syms, e, &lo, &hi);
	if (lo >= 0 || lo == hi)
		return lo == hi ? lx_int(s->f, lo) : parameter(s, e);
	Sym zero = sym_int(s->syms, 0), minus = sym_muli(s->syms, e, -1);
	Lx below = parameter(s, hi <= 0 ? minus : sym_max(s->syms, minus, zero));
	return lx_sub(s->f, hi <= 0 ? lx_int(s->f, 0) : parameter(s, sym_max(s->syms, e, zero)), below);
}

/* ---- symbolic index arithmetic ---- */

static Lx lower_sym(Sched *s, Sym e, bool lanes);

static Lx fold_args(Sched *s, Sym e, bool lanes, Lx (*op)(LoopFn *, Lx, Lx))
{
	Lx x = lower_sym(s, sym_arg(s->syms, e, 0), lanes);
	for (uint32_t i = 1; i < sym_nargs(s->syms, e); i++)
		x = op(s->f, x, lower_sym(s, sym_arg(s->syms, e, i), lanes));
	return x;
}

/* Nothing is indexed along an extent of 0, but code beside a guard computes the index all the same: by 1 instead. */
static Lx divide(Sched *s, Sym e, bool lanes, Lx (*op)(LoopFn *, Lx, Lx))
{
	Sym by = sym_arg(s->syms, e, 1);
	Lx x = lower_sym(s, sym_arg(s->syms, e, 0), lanes), d = lower_sym(s, by, lanes);
	int64_t lo, hi;
	sym_range(s->syms, by, &lo, &hi);
	if (lo <= 0 && hi >= 0)
		d = lx_select(s->f, lx_cmp(s->f, SC_eq, d, lx_int(s->f, 0)), lx_int(s->f, 1), d);
	return op(s->f, x, d);
}

/* ---- what is remembered ---- */

/* All that a value depends on besides the lanes that are active: which it is, the lanes that it
 * has, its axes, and the computations of the stages that it reads. Returns the length of s->key. */
static uint32_t find_key(const Sched *s, uint32_t number, Kx x)
{
	uint32_t n = 0;
	uint64_t deps = s->deps[x.i];
	s->key[n++] = number;
	s->key[n++] = sched_varies(s, x) ? (s->vaxis + 1) << 16 | s->lanes : 0;
	for (uint32_t a = 0; deps; a++, deps >>= 1)
		if (deps & 1)
			s->key[n++] = s->at[a].i;
	for (uint32_t i = 0; i < s->k->stage.n; i++)
		if (reads(s, x, i))
			s->key[n++] = s->stage[i].run;
	return n;
}

static Lx active(const Sched *s, Kx x)
{
	return sched_varies(s, x) ? s->mask : (Lx){0};
}

/* Of an expression, or of the value variable that it is: their numbers are the expression's, and
 * those behind. */
static Lx recall(Sched *s, uint32_t number, Kx x)
{
	return memo_find(&s->memo, s->key, find_key(s, number, x), active(s, x));
}

/* What depends on an axis whose value changes is computed each time. */
static Lx remember(Sched *s, uint32_t number, Kx x, Lx v)
{
	uint64_t deps = s->deps[x.i];
	for (uint32_t a = 0; deps; a++, deps >>= 1)
		if (deps & 1 && memo_changes(s->f, s->at[a]))
			return v;
	memo_add(&s->memo, s->key, find_key(s, number, x), active(s, x), v);
	return v;
}

/* Checked and clamped once at a point. */
static Lx value_var(Sched *s, uint32_t i)
{
	const ValueVar *v = &s->k->vvar.data[i];
	uint32_t number = s->k->kx.n + i;
	Lx known = recall(s, number, v->value);
	if (known.i)
		return known;
	Lx lane = s->lane; /* of the caller's arithmetic, not of the value */
	s->lane = (Lx){0};
	Lx x = sched_value(s, v->value);
	Lx size = sched_size(s, v->extent);
	Lx zero = lx_int(s->f, 0);
	if (v->check)
		sched_check_index(s, i, x);
	Lx last = lx_sub(s->f, size, lx_int(s->f, 1));
	Lv at = ls_let(s->f, "at", lx_max(s->f, lx_min(s->f, x, last), zero));
	s->lane = lane;
	return remember(s, number, v->value, lx_var(s->f, at));
}

static Lx lower_var(Sched *s, Sym e, bool lanes)
{
	for (uint32_t i = 0; i < s->naxis; i++) {
		if (s->var[i].i != e.i)
			continue;
		if (!s->at[i].i)
			ctx_bug(s->ir->ctx, "kernel %s: axis %u has no value here", s->k->name, i);
		if (i == s->vaxis && s->lane.i)
			return lx_add(s->f, s->at[i], s->lane);
		return lanes && i == s->vaxis ? lx_ramp(s->f, s->at[i], lx_int(s->f, 1), s->lanes)
		                              : s->at[i];
	}
	for (uint32_t i = 0; i < s->k->vvar.n; i++)
		if (s->k->vvar.data[i].var.i == e.i)
			return sched_lane(s, value_var(s, i));
	return sched_size(s, e);
}

/* Terms of a sum that differ only in sizes. */
typedef struct {
	Sym axes, sizes; /* their factors: those that use axes, and the sum of the others */
} SumPart;

static SumPart split_term(Sched *s, Sym term)
{
	Sym one = sym_int(s->syms, 1);
	bool product = sym_kind(s->syms, term) == SYM_PRODUCT;
	SumPart p = {one, one};
	for (uint32_t i = 0, n = product ? sym_nargs(s->syms, term) : 1; i < n; i++) {
		Sym factor = product ? sym_arg(s->syms, term, i) : term;
		Sym *part = sym_uses_kind(s->syms, factor, SYMVAR_AXIS) ? &p.axes : &p.sizes;
		*part = sym_mul(s->syms, *part, factor);
	}
	return p;
}

/* (n + 2) * c * i is a sum of two products of sizes and i: what sizes make of it is one parameter, and one product with i
 * is left to the kernel. */
static Lx lower_sum(Sched *s, Sym e, bool lanes)
{
	uint32_t n = sym_nargs(s->syms, e), nparts = 0;
	SumPart *part = ARENA_ARRAY(s->arena, SumPart, n);
	for (uint32_t i = 0; i < n; i++) {
		SumPart p = split_term(s, sym_arg(s->syms, e, i));
		uint32_t k = 0;
		while (k < nparts && part[k].axes.i != p.axes.i)
			k++;
		part[k].sizes = k < nparts ? sym_add(s->syms, part[k].sizes, p.sizes) : p.sizes;
		part[k].axes = p.axes;
		nparts += k == nparts;
	}
	if (nparts == n)
		return fold_args(s, e, lanes, lx_add);
	Lx x = {0};
	for (uint32_t k = 0; k < nparts; k++) {
		Lx sizes = sched_size(s, part[k].sizes);
		bool plain = sym_is(s->syms, part[k].axes, 1);
		Lx term = plain ? sizes : lx_mul(s->f, lower_sym(s, part[k].axes, lanes), sizes);
		x = x.i ? lx_add(s->f, x, term) : term;
	}
	return x;
}

static Lx lower_fresh(Sched *s, Sym e, bool lanes)
{
	switch (sym_kind(s->syms, e)) {
	case SYM_SUM:
		return lower_sum(s, e, lanes);
	case SYM_PRODUCT:
		return fold_args(s, e, lanes, lx_mul);
	case SYM_FLOORDIV:
		return divide(s, e, lanes, lx_div);
	case SYM_MOD:
		return divide(s, e, lanes, lx_mod);
	case SYM_MIN:
		return fold_args(s, e, lanes, lx_min);
	case SYM_MAX:
		return fold_args(s, e, lanes, lx_max);
	default:
		return sched_size(s, e);
	}
}

/* Inside an expression each part is lowered once, however often it stands there. */
static Lx lower_sym(Sched *s, Sym e, bool lanes)
{
	if (!sym_uses_kind(s->syms, e, SYMVAR_AXIS))
		return sched_size(s, e);
	SymKind kind = sym_kind(s->syms, e);
	if (kind == SYM_VAR || kind == SYM_PRODUCT)
		return kind == SYM_VAR ? lower_var(s, e, lanes) : fold_args(s, e, lanes, lx_mul);
	uint32_t key[2] = {s->call, e.i}, id = intern_find(&s->part, key, sizeof key);
	if (id)
		return s->part_value.data[id - 1];
	Lx x = lower_fresh(s, e, lanes);
	intern(&s->part, key, sizeof key, NULL);
	array_push(s->arena, &s->part_value, x);
	return x;
}

/* Axes and lanes have other values in other calls. A value that e uses is a call in between. */
static Lx lower_whole(Sched *s, Sym e, bool lanes)
{
	if (!sym_uses_kind(s->syms, e, SYMVAR_AXIS))
		return sched_size(s, e);
	uint32_t call = s->call;
	s->call = ++s->ncall;
	Lx x = sym_kind(s->syms, e) == SYM_VAR ? lower_var(s, e, lanes) : lower_fresh(s, e, lanes);
	s->call = call;
	return x;
}

Lx sched_sym(Sched *s, Sym e)
{
	return lower_whole(s, e, false);
}

Lx sched_sym_lanes(Sched *s, Sym e)
{
	Lx x = lower_whole(s, e, s->vaxis != NO_AXIS);
	return sched_splat(s, x);
}

Lx sched_splat(Sched *s, Lx x)
{
	return s->lanes == 1 || lx_type(s->f, x).lanes > 1 ? x : lx_splat(s->f, x, s->lanes);
}

/* ---- bodies ---- */

bool sched_varies(const Sched *s, Kx x)
{
	return s->vaxis != NO_AXIS && (s->deps[x.i] >> s->vaxis & 1);
}

bool sched_outer_vector(const Sched *s)
{
	return s->vaxis != NO_AXIS && (s->outer >> s->vaxis & 1);
}

static Lx const_of(Sched *s, const KxData *x)
{
	LType t = {x->dtype, 1};
	return dtype_is_float(x->dtype) ? lx_float(s->f, t, x->c.f) : lx_int_of(s->f, t, x->c.i);
}

static bool is_zero(const Sched *s, Kx x)
{
	const KxData *d = &s->k->kx.data[x.i];
	if (d->kind != KX_CONST)
		return false;
	return dtype_is_float(d->dtype) ? d->c.f == 0 : d->c.i == 0;
}

/* The guard, where it is not known to hold. */
static Lx open_guard(Sched *s, Kx guard)
{
	int64_t holds;
	Lx g = guard.i ? sched_value(s, guard) : (Lx){0};
	return g.i && lx_is_int(s->f, g, &holds) && holds ? (Lx){0} : g;
}

/* The mask of a load or check: active lanes and the guard. */
static Lx access_mask(Sched *s, Kx guard, bool vector)
{
	Lx g = open_guard(s, guard);
	if (!vector)
		return g;
	if (g.i)
		g = sched_splat(s, g);
	if (!g.i || !s->mask.i)
		return g.i ? g : s->mask;
	return lx_and(s->f, g, s->mask);
}

static SchedAddress vector_address(Sched *s, Sym offset)
{
	Sym coef;
	if (!sched_coef(s, offset, s->vaxis, &coef))
		return (SchedAddress){lx_int(s->f, 0), sched_sym_lanes(s, offset), true};
	Lx at = sched_sym(s, offset);
	if (sym_is(s->syms, coef, 1))
		return (SchedAddress){at, {0}, true};
	return (SchedAddress){at, lx_ramp(s->f, lx_int(s->f, 0), sched_size(s, coef), s->lanes), true};
}

static Lx load(Sched *s, Kx id, const KxData *x)
{
	bool vector = s->vaxis != NO_AXIS && (sched_axes(s, s->offset[id.i]) >> s->vaxis & 1);
	bool vector_guard = x->guard.i && sched_varies(s, x->guard);
	Lx mask = access_mask(s, x->guard, vector || vector_guard); /* lanes that are none need not be in bounds */
	LMem mem = sched_load_memory(s, id);
	const char *name = s->f->buf.data[mem.k].name;
	Lv v;
	if (vector) {
		SchedAddress a = vector_address(s, s->offset[id.i]);
		v = a.index.i ? ls_gather(s->f, name, mem, a.offset, a.index, x->dtype, mask)
		              : ls_load(s->f, name, mem, a.offset, (LType){x->dtype, s->lanes}, mask);
	} else {
		Lx ok = vector_guard ? lx_any(s->f, mask) : mask;
		v = ls_load(s->f, name, mem, sched_sym(s, s->offset[id.i]), (LType){x->dtype, 1}, ok);
	}
	Lx value = lx_var(s->f, v);
	if (open_guard(s, x->guard).i && (!is_zero(s, x->other) || (vector_guard && !vector))) {
		bool wide = vector || vector_guard || sched_varies(s, x->other);
		Lx c = sched_value(s, x->guard), other = sched_value(s, x->other);
		if (wide) {
			c = sched_splat(s, c);
			value = sched_splat(s, value);
			other = sched_splat(s, other);
		}
		value = lx_select(s->f, c, value, other);
	}
	return value;
}

static Lx in_range(Sched *s, const KxData *x, bool vector)
{
	Lx e = vector ? sched_sym_lanes(s, x->idx[0]) : sched_sym(s, x->idx[0]);
	Lx lo = sched_sym(s, x->idx[1]), hi = sched_sym(s, x->idx[2]);
	Lx above = lx_cmp(s->f, SC_ge, e, vector ? sched_splat(s, lo) : lo);
	return lx_and(s->f, above, lx_cmp(s->f, SC_lt, e, vector ? sched_splat(s, hi) : hi));
}

static Lx read_stage(Sched *s, const KxData *x)
{
	const StageValue *v = &s->stage[x->stage];
	if (!v->run)
		ctx_bug(s->ir->ctx, "kernel %s: stage %u is read before it ran", s->k->name, x->stage);
	if (s->k->stage.data[x->stage].result == RESULT_REGISTER)
		return v->value;
	Sym offset = sym_int(s->syms, 0);
	for (uint32_t i = 0; i < v->nmap; i++)
		offset = sym_add(s->syms, sym_mul(s->syms, offset, s->extent[v->map[i]]), x->idx[v->from[i]]);
	if (sched_outer_vector(s)) {
		Lx at = lx_mul(s->f, sched_sym(s, offset), lx_int(s->f, s->lanes));
		return lx_var(s->f, ls_load(s->f, "row", v->local, at, (LType){x->dtype, s->lanes}, (Lx){0}));
	}
	if (s->vaxis == NO_AXIS || !(sched_axes(s, offset) >> s->vaxis & 1))
		return lx_var(s->f, ls_load(s->f, "row", v->local, sched_sym(s, offset), (LType){x->dtype, 1}, (Lx){0}));
	SchedAddress a = vector_address(s, offset);
	if (a.index.i)
		return lx_var(s->f, ls_gather(s->f, "row", v->local, a.offset, a.index, x->dtype, s->mask));
	return lx_var(s->f, ls_load(s->f, "row", v->local, a.offset, (LType){x->dtype, s->lanes}, s->mask));
}

Lx sched_convert(Sched *s, Lx v, DType d)
{
	LType t = lx_type(s->f, v);
	if (t.dtype == d)
		return v;
	const ScFn *fn = NULL;
	if (d != dtype_compute(d))
		fn = scalar_round(d);
	else if (dtype_is_float(t.dtype) && dtype_is_int(d))
		fn = scalar_convert(t.dtype, d);
	return fn ? lx_fn(s->f, fn, t.lanes, &v, 1) : lx_sc(s->f, SC_convert, (LType){d, t.lanes}, &v, 1);
}

static Lx apply(Sched *s, const KxData *x, bool vector)
{
	Lx in[4];
	DType dt[4];
	for (uint32_t j = 0; j < x->nin; j++) {
		in[j] = sched_value(s, x->in[j]);
		if (vector)
			in[j] = sched_splat(s, in[j]);
		dt[j] = lx_type(s->f, in[j]).dtype;
	}
	uint32_t lanes = vector ? s->lanes : 1;
	if (x->op == OP_convert)
		return sched_convert(s, in[0], x->round ? x->round : x->dtype);
	const ScFn *fn = x->op == OP_bitcast ? kx_bitcast_fn(x, dt[0]) : scalar_fn(x->op, dt, x->nin);
	if (!fn)
		ctx_bug(s->ir->ctx, "kernel %s: no scalar function for %s", s->k->name, op_name(x->op));
	return lx_fn(s->f, fn, lanes, in, x->nin);
}

/* Longer results are named so that readers share them; simple ones stay expressions. */
static Lx named(Sched *s, const KxData *x, Lx v)
{
	return x->kind == KX_OP ? lx_var(s->f, ls_let(s->f, "t", v)) : v;
}

Lx sched_known(Sched *s, Kx x)
{
	return recall(s, x.i, x);
}

void sched_assume(Sched *s, Kx x, Lx value)
{
	remember(s, x.i, x, value);
}

Lx sched_value(Sched *s, Kx id)
{
	Lx known = sched_known(s, id);
	if (known.i)
		return known;
	const KxData *x = &s->k->kx.data[id.i];
	bool vector = sched_varies(s, id);
	Lx v = {0};
	switch (x->kind) {
	case KX_CONST:
		v = const_of(s, x);
		break;
	case KX_INDEX:
		v = vector ? sched_sym_lanes(s, x->idx[0]) : sched_sym(s, x->idx[0]);
		break;
	case KX_INRANGE:
		v = in_range(s, x, vector);
		break;
	case KX_LOAD:
		v = load(s, id, x);
		break;
	case KX_STAGE:
		v = read_stage(s, x);
		break;
	case KX_OP:
		v = apply(s, x, vector);
		break;
	}
	return remember(s, id.i, id, named(s, x, v));
}

Lx sched_vector(Sched *s, Kx x)
{
	return sched_splat(s, sched_value(s, x));
}

/* Every stage that x reads has run. */
static bool ready(const Sched *s, Kx x)
{
	for (uint32_t i = 0; i < s->k->stage.n; i++)
		if (reads(s, x, i) && !s->stage[i].run)
			return false;
	return true;
}

/* An expression is a graph: each part of it is visited once. */
static void hoist(Sched *s, Kx id, uint64_t axes)
{
	if (!id.i || sched_known(s, id).i || s->visited[id.i] == s->visit)
		return;
	s->visited[id.i] = s->visit;
	const KxData *x = &s->k->kx.data[id.i];
	if (!(s->deps[id.i] & ~axes)) {
		if (x->kind != KX_CONST && ready(s, id))
			sched_value(s, id);
		return;
	}
	for (uint32_t j = 0; j < x->nin; j++)
		hoist(s, x->in[j], axes);
	hoist(s, x->guard, axes);
	hoist(s, x->other, axes);
	for (uint32_t i = 0; x->kind == KX_LOAD && i < s->k->vvar.n; i++) {
		Kx value = s->k->vvar.data[i].value;
		if (!sym_uses(s->syms, s->offset[id.i], s->k->vvar.data[i].var))
			continue;
		hoist(s, value, axes);
		if (!(s->deps[value.i] & ~axes) && sched_known(s, value).i)
			value_var(s, i);
	}
}

void sched_hoist(Sched *s, Kx x, uint64_t axes)
{
	s->visit++;
	hoist(s, x, axes);
}

/* ---- stages ---- */

void sched_stage_value(Sched *s, uint32_t stage, Lx value)
{
	s->stage[stage].value = value;
	s->stage[stage].run = ++s->nrun;
}

void sched_stage_stored(Sched *s, uint32_t stage)
{
	s->stage[stage].run = ++s->nrun;
}

void sched_stage_over(Sched *s, uint32_t stage)
{
	s->stage[stage].run = 0;
}

/* Lanes are neighbours in memory. */
static void order_row(const Sched *s, StageValue *out, const Stage *st)
{
	out->nmap = 0;
	for (uint32_t last = 0; last < 2; last++)
		for (uint32_t i = 0; i < st->nmap; i++)
			if ((st->map[i] == s->vaxis) == last) {
				out->from[out->nmap] = i;
				out->map[out->nmap++] = st->map[i];
			}
}

void sched_stage_local(Sched *s, uint32_t stage, uint64_t elements)
{
	const Stage *st = &s->k->stage.data[stage];
	StageValue *out = &s->stage[stage];
	order_row(s, out, st);
	out->local = ls_local(s->f, "row", st->dtype, elements * (sched_outer_vector(s) ? s->lanes : 1));
}

void sched_store_local(Sched *s, uint32_t stage, Lx v)
{
	const StageValue *out = &s->stage[stage];
	Lx offset = lx_int(s->f, 0);
	bool vector = false;
	for (uint32_t i = 0; i < out->nmap; i++) {
		offset = lx_mul(s->f, offset, sched_size(s, s->extent[out->map[i]]));
		offset = lx_add(s->f, offset, s->at[out->map[i]]);
		vector |= out->map[i] == s->vaxis;
	}
	if (sched_outer_vector(s)) /* what a tail reads of the other lanes does not matter, but is there */
		ls_store(s->f, out->local, lx_mul(s->f, offset, lx_int(s->f, s->lanes)), sched_splat(s, v), (Lx){0});
	else
		ls_store(s->f, out->local, offset, vector ? sched_splat(s, v) : v, vector ? s->mask : (Lx){0});
}

void sched_stages(Sched *s, StageValue *stage)
{
	s->stage = stage;
}

/* ---- temporaries ---- */

LMem sched_temp_memory(Sched *s, uint32_t temp)
{
	const SchedTemp *t = &s->out->temp.data[temp];
	return argument(s, (SchedArg){ARG_TEMP, temp, NULL}, t->name, t->dtype, false);
}

Lx sched_load_temp(Sched *s, uint32_t temp, Sym offset)
{
	LMem mem = sched_temp_memory(s, temp);
	bool vector = s->vaxis != NO_AXIS && (sched_axes(s, offset) >> s->vaxis & 1);
	LType t = {dtype_compute(mem.dtype), vector ? s->lanes : 1};
	const char *name = s->out->temp.data[temp].name;
	return lx_var(s->f, ls_load(s->f, name, mem, sched_sym(s, offset), t, vector ? s->mask : (Lx){0}));
}

void sched_store_temp(Sched *s, uint32_t temp, Sym offset, Lx value)
{
	bool vector = s->vaxis != NO_AXIS && (sched_axes(s, offset) >> s->vaxis & 1);
	ls_store(s->f, sched_temp_memory(s, temp), sched_sym(s, offset), vector ? sched_splat(s, value) : value,
	         vector ? s->mask : (Lx){0});
}

/* ---- results ---- */

SchedAddress sched_address(Sched *s, uint32_t stage)
{
	if (s->vaxis != NO_AXIS && (sched_axes(s, s->store[stage]) >> s->vaxis & 1))
		return vector_address(s, s->store[stage]);
	return (SchedAddress){sched_sym(s, s->store[stage]), {0}, false};
}

Lx sched_load_at(Sched *s, uint32_t stage, SchedAddress a)
{
	LMem mem = sched_memory(s, s->k->stage.data[stage].buf);
	const char *name = s->f->buf.data[mem.k].name;
	DType d = dtype_compute(mem.dtype);
	LType t = {d, a.vector ? s->lanes : 1};
	Lv v = a.index.i ? ls_gather(s->f, name, mem, a.offset, a.index, d, s->mask)
	                 : ls_load(s->f, name, mem, a.offset, t, a.vector ? s->mask : (Lx){0});
	return lx_var(s->f, v);
}

void sched_store_at(Sched *s, uint32_t stage, SchedAddress a, Lx value)
{
	LMem mem = sched_memory(s, s->k->stage.data[stage].buf);
	value = sched_convert(s, value, dtype_compute(mem.dtype));
	if (a.vector)
		value = sched_splat(s, value);
	if (a.index.i)
		ls_scatter(s->f, mem, a.offset, a.index, value, s->mask);
	else
		ls_store(s->f, mem, a.offset, value, a.vector ? s->mask : (Lx){0});
}

static bool is_read(const Kernel *k, BufId buf)
{
	for (uint32_t i = 1; i < k->kx.n; i++)
		if (k->kx.data[i].kind == KX_LOAD && k->kx.data[i].buf.i == buf.i)
			return true;
	return false;
}

/* Whole registers of a tensor that no cache holds until it is read: they need not be fetched before they are written. */
static bool streams(const Sched *s, uint32_t stage, const SchedAddress *a)
{
	const Stage *st = &s->k->stage.data[stage];
	DType d = buf_of(s->l, st->buf)->dtype;
	if (!a->vector || a->index.i || s->mask.i || d != dtype_compute(d) || s->lanes * dtype_size(d) != s->target->isa.vector_bytes)
		return false;
	uint64_t axes = sched_axes(s, s->store[stage]);
	int64_t n, bytes = dtype_size(d), limit = tuning_beyond_caches(&s->target->machine);
	for (uint32_t i = 0; i < s->naxis && bytes < limit; i++)
		if (axes >> i & 1)
			bytes = sym_is_const(s->syms, s->extent[i], &n) && n ? bytes * n : 0;
	return bytes >= limit && !is_read(s->k, st->buf);
}

void sched_store(Sched *s, uint32_t stage, Lx value)
{
	SchedAddress a = sched_address(s, stage);
	if (!streams(s, stage, &a)) {
		sched_store_at(s, stage, a, value);
		return;
	}
	LMem mem = sched_memory(s, s->k->stage.data[stage].buf);
	ls_stream(s->f, mem, a.offset, sched_splat(s, sched_convert(s, value, mem.dtype)));
	s->streamed = true;
}

/* ---- loops ---- */

void sched_at(Sched *s, uint32_t axis, Lx value)
{
	s->at[axis] = value;
}

void sched_lanes(Sched *s, uint32_t axis, uint32_t lanes)
{
	s->vaxis = axis;
	s->lanes = lanes;
}

void sched_mask(Sched *s, Lx mask)
{
	s->mask = mask;
}

void sched_part(Sched *s, uint32_t axis, Lx lo, Lx hi)
{
	s->start[axis] = lo;
	s->limit[axis] = hi;
}

Lx sched_start(Sched *s, uint32_t axis)
{
	return s->start[axis].i ? s->start[axis] : lx_int(s->f, 0);
}

Lx sched_limit(Sched *s, uint32_t axis)
{
	return s->limit[axis].i ? s->limit[axis] : sched_size(s, s->extent[axis]);
}

void sched_for(Sched *s, uint32_t axis, Lx lo, Lx hi, int64_t step)
{
	array_push(s->arena, &s->loop, (SchedLoop){axis, s->at[axis]});
	s->at[axis] = lx_var(s->f, ls_for(s->f, sym_name(s->syms, s->var[axis]), lo, hi, step));
}

void sched_end(Sched *s)
{
	const SchedLoop *l = &s->loop.data[--s->loop.n];
	ls_end(s->f);
	s->at[l->axis] = l->before;
}

void sched_vector_loop(Sched *s, uint32_t axis, Lx lo, Lx hi, bool divisible,
                       void (*body)(Sched *, void *), void *data)
{
	Lx outer_mask = s->mask, lanes = lx_int(s->f, s->lanes);
	Lx end = hi;
	if (!divisible) {
		Lx n = lx_sub(s->f, hi, lo);
		Lx whole = lx_sub(s->f, n, lx_mod(s->f, n, lanes));
		end = lx_add(s->f, lo, whole);
		if (!lx_is_int(s->f, end, &(int64_t){0}))
			end = lx_var(s->f, ls_let(s->f, "whole", end));
	}
	int64_t a, b;
	bool never = lx_is_int(s->f, lo, &a) && lx_is_int(s->f, end, &b) && a >= b;
	if (!never) {
		sched_for(s, axis, lo, end, s->lanes);
		body(s, data);
		sched_end(s);
	}
	if (!divisible) {
		ls_if(s->f, lx_cmp(s->f, SC_lt, end, hi));
		s->at[axis] = end;
		s->mask = lx_var(s->f, ls_let(s->f, "tail", lx_mask(s->f, lx_sub(s->f, hi, end), s->lanes)));
		body(s, data);
		ls_end(s->f);
		s->mask = outer_mask;
	}
	s->at[axis] = (Lx){0};
}
