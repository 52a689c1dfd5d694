/* Random evaluation: expressions of a random kernel, evaluated at random points in random nests of
 * loops, branches, lanes and unrolled steps, in random order, against the scalar evaluator.
 *
 * The function under test writes a record for each evaluation that it executes: which expression,
 * the values of all axes, the results of stages, the value itself. Afterwards each record is
 * computed again from its point alone. Other seeds: codegen_eval SEED [COUNT]. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/cpu/cpu.h"
#include "ir/kernel/build.h"
#include "ir/loop/interp/interp.h"

enum {
	NAXIS = 5,
	NOUTER = 2,
	NSTAGE = 2, /* with results that expressions read */
	NKX = 40,   /* expressions, about */
	DIM = 24,   /* extents of x and of the table of indices */
	LANES = 4,
	DEPTH = 4,    /* of nests */
	BUDGET = 120, /* evaluations in the text of a function */
	RECORDS = 4000,
	HEAD = 2 + NAXIS, /* of a record: its number, active lanes, axes */
	COUNT = 200
};

enum { X, TABLE, TURNED, WEIGHTS, WORK }; /* buffers of `run` */

/* An evaluation in the text of the function. */
typedef struct {
	Kx x;
	uint32_t vaxis, lanes; /* lanes 1: a scalar */
} Seen;

typedef struct {
	Ctx *ctx;
	Ir *ir;
	Arena *a;
	uint64_t rng;
	Lowered *l;
	Kernel *k;
	Cpu s;
	BufId x, table, turned; /* turned: x, transposed */
	ARRAY(Kx) floats, bools, ints;
	int64_t extent[NAXIS];
	uint32_t head, result, value; /* temporaries */
	Lv cursor;
	Lx active; /* lanes, while there is a lane axis */
	ARRAY(Seen) seen;
	float xs[DIM * DIM], turned_xs[DIM * DIM];
	int64_t places[DIM];
} Test;

static uint64_t seed, count = COUNT;

static uint32_t below(Test *t, uint32_t n)
{
	t->rng = t->rng * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(t->rng >> 33) % n;
}

/* ---- a random kernel ---- */

static Sym axis_var(const Test *t, uint32_t axis)
{
	return t->k->axis.data[axis].var;
}

/* At most 19 at all points: of two axes, and perhaps of a place that data decides. */
static Sym random_index(Test *t, bool data)
{
	SymTab *y = t->ir->syms;
	Sym a = axis_var(t, below(t, NAXIS)), b = axis_var(t, below(t, NAXIS));
	Sym e = sym_add(y, a, sym_muli(y, b, 1 + below(t, 2)));
	if (below(t, 4) == 0)
		e = below(t, 2) ? sym_modi(y, e, 3) : sym_add(y, sym_divi(y, e, 2), b);
	if (data && t->k->vvar.n && below(t, 3) == 0)
		e = sym_add(y, sym_modi(y, e, 4), t->k->vvar.data[below(t, t->k->vvar.n)].var);
	return sym_min(y, e, sym_int(y, DIM - 1));
}

#define PICK(t, list) ((t)->list.data[below((t), (t)->list.n)])

static Kx random_load(Test *t)
{
	Sym idx[2] = {random_index(t, true), random_index(t, true)};
	Kx guard = {0}, other = {0};
	if (below(t, 3) == 0) {
		guard = PICK(t, bools);
		other = below(t, 2) ? kx_const(t->k, t->a, DT_f32, 0) : PICK(t, floats);
	}
	return kx_load(t->k, t->a, t->x, DT_f32, 2, idx, guard, other);
}

static Kx random_float(Test *t)
{
	static const char *const op[] = {"add", "sub", "maximum", "minimum"};
	Kx in[3] = {PICK(t, floats), PICK(t, floats), PICK(t, floats)};
	switch (below(t, 8)) {
	case 0:
		return kx_stage(t->k, t->a, below(t, NSTAGE), DT_f32, NOUTER,
				(Sym[]){axis_var(t, 0), axis_var(t, 1)});
	case 1:
		return kx_op(t->k, t->a, op_find("convert"), DT_f32, &PICK(t, ints), 1);
	case 2:
	case 3:
		return random_load(t);
	case 4:
		return kx_select(t->k, t->a, PICK(t, bools), in[1], in[2]);
	default:
		return kx_op(t->k, t->a, op_find(op[below(t, 4)]), DT_f32, in, 2);
	}
}

static Kx random_bool(Test *t)
{
	SymTab *y = t->ir->syms;
	Kx in[2] = {PICK(t, floats), PICK(t, floats)};
	if (below(t, 3) == 0)
		return kx_op(t->k, t->a, op_find("lt"), DT_bool, in, 2);
	if (below(t, 3) == 0)
		return kx_and(t->k, t->a, PICK(t, bools), PICK(t, bools));
	return kx_inrange(t->k, t->a, random_index(t, true), sym_int(y, below(t, 4)),
			  sym_int(y, 4 + below(t, 6)));
}

/* A place in the table, checked or not, is an index. */
static void random_place(Test *t)
{
	Sym at = random_index(t, true), extent = sym_int(t->ir->syms, DIM);
	ValueVar v = {.extent = extent, .var = sym_axis(t->ir->syms, "v", extent)};
	v.value = kx_load(t->k, t->a, t->table, DT_i64, 1, &at, (Kx){0}, (Kx){0});
	v.check = below(t, 2) ? lowered_check(t->l, "index %lld is out of range") : 0;
	array_push(t->a, &t->k->vvar, v);
}

static void grow(Test *t)
{
	Kx x;
	switch (below(t, 6)) {
	case 0:
		x = kx_index(t->k, t->a, random_index(t, true));
		array_push(t->a, &t->ints, x);
		break;
	case 1:
		x = random_bool(t);
		array_push(t->a, &t->bools, x);
		break;
	case 2:
		if (t->k->vvar.n < 3)
			random_place(t);
		break;
	default:
		x = random_float(t);
		array_push(t->a, &t->floats, x);
		break;
	}
}

static void random_kernel(Test *t)
{
	SymTab *y = t->ir->syms;
	Sym dim[2] = {sym_int(y, DIM), sym_int(y, DIM)}, outer[NOUTER];
	t->l = lowered_new(t->ir, NULL);
	t->x = lowered_buf(t->l, BUF_INPUT, 0, DT_f32, 2, dim, "x");
	t->table = lowered_buf(t->l, BUF_INPUT, 1, DT_i64, 1, dim, "table");
	t->turned = lowered_buf(t->l, BUF_INPUT, 2, DT_f32, 2, dim, "turned");
	t->k = ARENA_NEW(t->a, Kernel);
	t->k->name = "k";
	for (uint32_t i = 0; i < NAXIS; i++) {
		t->extent[i] = 2 + below(t, 6);
		Sym extent = sym_int(y, t->extent[i]);
		array_push(t->a, &t->k->axis, (Axis){sym_axis(y, "i", extent), extent});
		if (i < NOUTER)
			outer[i] = extent;
	}
	array_push(t->a, &t->floats, kx_const(t->k, t->a, DT_f32, 1));
	array_push(t->a, &t->ints, kx_index(t->k, t->a, axis_var(t, 0)));
	array_push(t->a, &t->bools,
		   kx_inrange(t->k, t->a, axis_var(t, 1), sym_int(y, 1), sym_int(y, 9)));
	while (t->k->kx.n < NKX)
		grow(t);
	Stage st = {.kind = STAGE_MAP, .dtype = DT_f32, .value = t->floats.data[0]};
	stage_map_first(&st, NOUTER);
	for (uint32_t i = 0; i < NSTAGE; i++)
		array_push(t->a, &t->k->stage, st);
	st.store.buf = lowered_buf(t->l, BUF_OUTPUT, 0, DT_f32, NOUTER,
				   arena_dup(t->a, outer, sizeof outer), "y");
	Sym idx[NOUTER] = {axis_var(t, 0), axis_var(t, 1)};
	st.store.idx = arena_dup(t->a, idx, sizeof idx);
	array_push(t->a, &t->k->stage, st);
}

/* ---- a random function ---- */

static Lx lit(Test *t, int64_t v)
{
	return lx_int(t->s.e.f, v);
}

static bool knows(const Test *t, Kx x)
{
	for (uint32_t a = 0; a < NAXIS; a++)
		if (t->s.e.nest->deps[x.i] >> a & 1 && !t->s.e.at[a].i)
			return false;
	for (uint32_t i = 0; i < NSTAGE; i++)
		if (!t->s.e.stage[i].run && nest_next_read(t->s.e.nest, x, i) < t->s.e.k->stage.n)
			return false;
	return true;
}

static void record(Test *t, Kx x, Lx v)
{
	Cpu *s = &t->s;
	LoopFn *f = s->e.f;
	const uint32_t lanes = lx_type(f, v).lanes;
	const LType type = {DT_f32, lanes};
	if (lx_type(f, v).dtype != DT_f32)
		v = lx_sc(f, SC_convert, type, &v, 1);
	Lx at = lx_var(f, t->cursor), head = lx_mul(f, at, lit(t, HEAD));
	ls_if(f, lx_cmp(f, SC_lt, at, lit(t, RECORDS)));
	ls_store(f, eval_temp_memory(&s->e, t->head), head, lit(t, t->seen.n), (Lx){0});
	ls_store(f, eval_temp_memory(&s->e, t->head), lx_add(f, head, lit(t, 1)),
		 lanes > 1 ? t->active : lit(t, 1), (Lx){0});
	for (uint32_t a = 0; a < NAXIS; a++)
		ls_store(f, eval_temp_memory(&s->e, t->head), lx_add(f, head, lit(t, 2 + a)),
			 s->e.at[a].i ? s->e.at[a] : lit(t, -1), (Lx){0});
	for (uint32_t i = 0; i < NSTAGE; i++)
		if (s->e.stage[i].run)
			ls_store(f, eval_temp_memory(&s->e, t->result),
				 lx_add(f, lx_mul(f, at, lit(t, NSTAGE)), lit(t, i)),
				 s->e.stage[i].value, (Lx){0});
	ls_store(f, eval_temp_memory(&s->e, t->value), lx_mul(f, at, lit(t, LANES)), v,
		 lanes > 1 ? s->e.lanes.mask : (Lx){0});
	ls_set(f, t->cursor, lx_add(f, at, lit(t, 1)));
	ls_end(f);
	array_push(t->a, &t->seen, (Seen){x, lanes > 1 ? s->e.lanes.axis : NO_AXIS, lanes});
}

/* Any expression, or one of the last: what is remembered shows when it is asked for again. */
static void evaluate(Test *t)
{
	Kx x = {1 + below(t, t->k->kx.n - 1)};
	uint32_t last = below(t, 6) + 1;
	if (below(t, 2) && last <= t->seen.n)
		x = t->seen.data[t->seen.n - last].x;
	if (knows(t, x))
		record(t, x, below(t, 8) ? eval_value(&t->s.e, x) : eval_vector(&t->s.e, x));
}

static void walk(Test *t, uint32_t depth);

static void some(Test *t, uint32_t depth)
{
	if (depth < DEPTH && below(t, 2))
		walk(t, depth + 1);
	else
		evaluate(t);
}

/* An axis that is no lane axis. */
static uint32_t scalar_axis(Test *t)
{
	uint32_t a = below(t, NAXIS);
	return a == t->s.e.lanes.axis ? (a + 1) % NAXIS : a;
}

static void loop(Test *t, uint32_t depth)
{
	uint32_t a = scalar_axis(t);
	eval_for(&t->s.e, a, lit(t, below(t, 2)), lit(t, t->extent[a]), 1 + below(t, 2));
	walk(t, depth + 1);
	eval_end(&t->s.e);
}

static void unrolled(Test *t, uint32_t depth)
{
	Cpu *s = &t->s;
	uint32_t a = scalar_axis(t);
	eval_for(&s->e, a, lit(t, 0), lit(t, t->extent[a] / 2 * 2), 2);
	Lx here = s->e.at[a];
	for (int64_t c = 0; c < 2; c++) {
		s->e.at[a] = lx_add(s->e.f, here, lit(t, c));
		some(t, depth);
		evaluate(t);
	}
	eval_end(&s->e);
}

/* Another value of an axis in the same block. */
static void move(Test *t)
{
	Cpu *s = &t->s;
	uint32_t a = scalar_axis(t), b = below(t, NAXIS);
	Lx last = lit(t, t->extent[a] - 1), at = lit(t, below(t, (uint32_t)t->extent[a]));
	if (s->e.at[b].i && below(t, 2))
		at = lx_min(s->e.f, lx_add(s->e.f, s->e.at[b], lit(t, below(t, 3))), last);
	if (below(t, 2))
		at = eval_let(&s->e, "at", at);
	s->e.at[a] = below(t, 8) ? at : (Lx){0};
}

static void branch(Test *t, uint32_t depth)
{
	Cpu *s = &t->s;
	Kx c = PICK(t, bools);
	if (!knows(t, c) || eval_varies(&s->e, c))
		return;
	Lx at[NAXIS];
	memcpy(at, s->e.at, sizeof at);
	ls_if(s->e.f, eval_value(&s->e, c));
	eval_assume(&s->e, c, lx_int_of(s->e.f, (LType){DT_bool, 1}, 1));
	walk(t, depth + 1);
	if (below(t, 2)) {
		ls_else(s->e.f);
		walk(t, depth + 1);
	}
	ls_end(s->e.f);
	memcpy(s->e.at, at, sizeof at);
}

static void in_lanes(Cpu *s, void *data)
{
	Test *t = data;
	t->active = lit(t, LANES);
	if (s->e.lanes.mask.i)
		t->active = lx_sub(s->e.f, lit(t, t->extent[s->e.lanes.axis]),
				   s->e.at[s->e.lanes.axis]);
	walk(t, DEPTH - 1);
}

static void lanes(Test *t)
{
	Cpu *s = &t->s;
	uint32_t a = below(t, NAXIS);
	if (s->e.lanes.axis != NO_AXIS)
		return;
	Lx before = s->e.at[a];
	s->e.lanes.axis = a;
	s->e.lanes.n = LANES;
	cpu_vector_loop(s, a, lit(t, 0), lit(t, t->extent[a]), t->extent[a] % LANES == 0, in_lanes,
			t);
	s->e.lanes.axis = NO_AXIS;
	s->e.lanes.n = 1;
	s->e.at[a] = before;
}

/* Lanes along another axis for a while, as tiles that are transposed have. */
static void turn(Test *t)
{
	Cpu *s = &t->s;
	uint32_t was = s->e.lanes.axis, a = scalar_axis(t);
	if (was == NO_AXIS)
		return;
	Lx mask = s->e.lanes.mask, active = t->active, at = s->e.at[a];
	s->e.at[a] = lit(t, 0);
	for (uint32_t i = 0; i < 2; i++)
		evaluate(t);
	s->e.lanes.axis = a;
	t->active = lit(t, t->extent[a] < LANES ? t->extent[a] : LANES);
	s->e.lanes.mask = t->extent[a] < LANES ? lx_mask(s->e.f, t->active, LANES) : (Lx){0};
	for (uint32_t i = 0; i < 3; i++)
		evaluate(t);
	s->e.lanes.axis = was;
	s->e.lanes.mask = mask;
	t->active = active;
	s->e.at[a] = at;
}

/* Fewer lanes for a while. */
static void narrow(Test *t)
{
	Cpu *s = &t->s;
	if (s->e.lanes.axis == NO_AXIS)
		return;
	Lx mask = s->e.lanes.mask, active = t->active, n = lit(t, 1 + below(t, LANES - 1));
	s->e.lanes.mask = mask.i ? lx_and(s->e.f, mask, lx_mask(s->e.f, n, LANES))
				 : lx_mask(s->e.f, n, LANES);
	t->active = lx_min(s->e.f, active, n);
	for (uint32_t i = 0; i < 2; i++)
		evaluate(t);
	s->e.lanes.mask = mask;
	t->active = active;
}

static void hoist(Test *t)
{
	uint64_t known = 0;
	for (uint32_t a = 0; a < NAXIS; a++)
		known |= (uint64_t)(t->s.e.at[a].i != 0) << a;
	eval_hoist(&t->s.e, (Kx){1 + below(t, t->k->kx.n - 1)},
		   known & ~(uint64_t)below(t, 1 << NAXIS));
}

/* An axis whose value is a variable, which changes. */
static void vary(Test *t)
{
	Cpu *s = &t->s;
	uint32_t a = scalar_axis(t), n = (uint32_t)t->extent[a];
	Lx before = s->e.at[a];
	Lv v = ls_var(s->e.f, "at", lit(t, below(t, n)));
	s->e.at[a] = lx_var(s->e.f, v);
	for (uint32_t i = 0; i < 4; i++) {
		evaluate(t);
		if (i % 2)
			ls_set(s->e.f, v, lit(t, below(t, n)));
	}
	s->e.at[a] = before;
}

/* Another result of a stage, and what reads it before and after. */
static void stage(Test *t)
{
	Cpu *s = &t->s;
	Kx reader = PICK(t, floats);
	Lx v = lx_float(s->e.f, (LType){DT_f32, 1}, below(t, 50)), at = s->e.at[below(t, NAXIS)];
	if (at.i && below(t, 2))
		v = lx_sc(s->e.f, SC_convert, (LType){DT_f32, 1}, &at, 1);
	for (uint32_t i = 0; i < 9 && nest_next_read(s->e.nest, reader, 0) == s->e.k->stage.n; i++)
		reader = PICK(t, floats);
	if (knows(t, reader))
		record(t, reader, eval_value(&s->e, reader));
	eval_stage_value(
		&s->e, below(t, NSTAGE),
		lx_var(s->e.f, below(t, 2) ? ls_let(s->e.f, "r", v) : ls_var(s->e.f, "r", v)));
	if (knows(t, reader))
		record(t, reader, eval_value(&s->e, reader));
}

static void step(Test *t, uint32_t depth)
{
	uint32_t what = below(t, depth < DEPTH ? 15 : 11);
	switch (what) {
	case 0:
		hoist(t);
		break;
	case 1:
		move(t);
		break;
	case 2:
		turn(t);
		break;
	case 3:
		narrow(t);
		break;
	case 4:
		stage(t);
		break;
	case 5:
		vary(t);
		break;
	case 11:
		loop(t, depth);
		break;
	case 12:
		unrolled(t, depth);
		break;
	case 13:
		branch(t, depth);
		break;
	case 14:
		lanes(t);
		break;
	default:
		evaluate(t);
		break;
	}
}

/* What has been set inside is no more behind. */
static void walk(Test *t, uint32_t depth)
{
	Cpu *s = &t->s;
	StageValue before[NSTAGE + 1];
	Lx at[NAXIS];
	memcpy(before, s->e.stage, sizeof before);
	memcpy(at, s->e.at, sizeof at);
	for (uint32_t n = 3 + below(t, 8); n && t->seen.n < BUDGET; n--)
		step(t, depth);
	memcpy(s->e.at, at, sizeof at);
	memcpy(s->e.stage, before, sizeof before);
}

static uint32_t temp(Test *t, const char *name, DType d, int64_t n)
{
	return code_temp(&t->s.code, (SchedTemp){.name = name,
					   .dtype = d,
					   .numel = sym_int(t->ir->syms, n * RECORDS),
					   .last = 0});
}

/* Some loads read x where it is transposed. */
static const Nest *read_elsewhere(Test *t)
{
	SymTab *y = t->ir->syms;
	Nest *nest = nest_copy(nest_new(t->l, t->k), t->k);
	for (uint32_t i = 1; i < t->k->kx.n; i++) {
		const KxData *x = &t->k->kx.data[i];
		if (x->kind != KX_LOAD || x->buf.i != t->x.i || below(t, 2))
			continue;
		Sym offset = sym_add(y, sym_muli(y, x->idx[1], DIM), x->idx[0]);
		nest_read(nest, (Kx){i}, (SchedArg){ARG_BUF, t->turned.i, NULL}, offset);
	}
	return nest;
}

static void random_function(Test *t)
{
	Cpu *s = &t->s;
	code_init(&s->code, t->l, target_find("x86-64-v3"));
	cpu_begin_phase(s, read_elsewhere(t));
	t->head = temp(t, "head", DT_i64, HEAD);
	t->result = temp(t, "result", DT_f32, NSTAGE);
	t->value = temp(t, "value", DT_f32, LANES);
	for (uint32_t i = 0; i < 3; i++)
		eval_temp_memory(&s->e, i);
	t->cursor = ls_var(s->e.f, "cursor", lit(t, 0));
	while (t->seen.n < BUDGET)
		walk(t, 0);
	Lx end = lx_min(s->e.f, lx_var(s->e.f, t->cursor), lit(t, RECORDS - 1));
	ls_store(s->e.f, eval_temp_memory(&s->e, t->head), lx_mul(s->e.f, end, lit(t, HEAD)),
		 lit(t, -1), (Lx){0});
}

/* ---- the same from a point alone ---- */

typedef struct {
	const Test *t;
	int64_t at[NAXIS];
	const float *result;
	ScVal value[4 * NKX];
	bool known[4 * NKX];
} Point;

static ScVal scalar(Point *, Kx);

static int64_t index_at(Point *p, Sym e)
{
	const Kernel *k = p->t->k;
	SymTab *y = p->t->ir->syms;
	Sym var[NAXIS + 3];
	int64_t value[NAXIS + 3], out = 0;
	uint32_t n = 0;
	for (uint32_t a = 0; a < NAXIS; a++)
		if (sym_uses(y, e, k->axis.data[a].var)) {
			var[n] = k->axis.data[a].var;
			value[n++] = p->at[a];
		}
	for (uint32_t v = 0; v < k->vvar.n; v++)
		if (sym_uses(y, e, k->vvar.data[v].var)) {
			var[n] = k->vvar.data[v].var;
			value[n++] = scalar(p, k->vvar.data[v].value).i;
		}
	assert_true(sym_eval(y, e, var, value, n, &out));
	return out;
}

static ScVal scalar_load(Point *p, const KxData *x)
{
	const Test *t = p->t;
	if (x->guard.i && !scalar(p, x->guard).i)
		return x->other.i ? scalar(p, x->other) : (ScVal){0};
	int64_t i = index_at(p, x->idx[0]);
	if (x->buf.i == t->table.i)
		return (ScVal){.i = t->places[i]};
	return (ScVal){.f = (double)t->xs[i * DIM + index_at(p, x->idx[1])]};
}

static ScVal scalar_op(Point *p, const KxData *x)
{
	ScVal in[4];
	DType d[4];
	for (uint32_t i = 0; i < x->nin; i++) {
		in[i] = scalar(p, x->in[i]);
		d[i] = p->t->k->kx.data[x->in[i].i].dtype;
	}
	const ScFn *fn = x->op == op_find("convert") ? scalar_convert(d[0], x->dtype)
						     : scalar_fn(x->op, d, x->nin);
	return scalar_eval(fn, in);
}

static ScVal scalar_fresh(Point *p, const KxData *x)
{
	switch (x->kind) {
	case KX_CONST:
		return dtype_is_float(x->dtype) ? (ScVal){.f = x->c.f} : (ScVal){.i = x->c.i};
	case KX_INDEX:
		return (ScVal){.i = index_at(p, x->idx[0])};
	case KX_INRANGE:
		return (ScVal){.i = index_at(p, x->idx[0]) >= index_at(p, x->idx[1]) &&
				    index_at(p, x->idx[0]) < index_at(p, x->idx[2])};
	case KX_LOAD:
		return scalar_load(p, x);
	case KX_STAGE:
		return (ScVal){.f = (double)p->result[x->stage]};
	default:
		return scalar_op(p, x);
	}
}

static ScVal scalar(Point *p, Kx x)
{
	if (!p->known[x.i])
		p->value[x.i] = scalar_fresh(p, &p->t->k->kx.data[x.i]);
	p->known[x.i] = true;
	return p->value[x.i];
}

/* ---- comparing ---- */

static void check_record(const Test *t, const int64_t *head, const float *result,
			 const float *value)
{
	const Seen *s = &t->seen.data[head[0]];
	for (int64_t lane = 0; lane < head[1]; lane++) {
		Point p = {.t = t, .result = result};
		memcpy(p.at, head + 2, sizeof p.at);
		if (s->lanes > 1)
			p.at[s->vaxis] += lane;
		ScVal v = scalar(&p, s->x);
		DType d = t->k->kx.data[s->x.i].dtype;
		float want = dtype_is_float(d) ? (float)v.f : (float)v.i;
		if (memcmp(&want, &value[lane], sizeof want) != 0 &&
		    !(isnan(want) && isnan(value[lane])))
			fail_msg("seed %llu: evaluation %lld, expression %u, lane %lld: %g, "
				 "expected %g",
				 (unsigned long long)seed, (long long)head[0], s->x.i,
				 (long long)lane, (double)value[lane], (double)want);
	}
}

static void run(Test *t, void *work, uint64_t bytes)
{
	Program *p = program_new(t->ir, "test");
	ProgramEntry *e = program_entry(p, "run");
	Sym *dim = ARENA_ARRAY(t->a, Sym, 2);
	dim[0] = dim[1] = sym_int(t->ir->syms, DIM);
	array_push(t->a, &e->input,
		   (ProgramTensor){.name = "x", .dtype = DT_f32, .rank = 2, .dim = dim});
	array_push(t->a, &e->input,
		   (ProgramTensor){.name = "table", .dtype = DT_i64, .rank = 1, .dim = dim});
	array_push(t->a, &e->input,
		   (ProgramTensor){.name = "turned", .dtype = DT_f32, .rank = 2, .dim = dim});
	e->run = loop_new(t->ir, "run");
	array_push(t->a, &p->fn, t->s.e.f);
	for (uint32_t i = 0; i < t->l->check.n; i++)
		array_push(t->a, &p->message, t->l->check.data[i]);
	Lx arg[8];
	ProgramArg *known = ARENA_ARRAY(t->a, ProgramArg, t->s.e.args.arg.n);
	const int64_t size[3] = {8 * HEAD * RECORDS, 4 * NSTAGE * RECORDS, 4 * LANES * RECORDS},
		      offset[3] = {0, size[0], size[0] + size[1]};
	for (uint32_t i = 0; i < t->s.e.args.arg.n; i++) {
		const SchedArg *a = &t->s.e.args.arg.data[i];
		const bool temp = a->kind == ARG_TEMP, table = a->k == t->table.i;
		const uint32_t region = temp ? WORK : table ? TABLE : a->k == t->x.i ? X : TURNED;
		const int64_t bytes_of = temp ? size[a->k] : table ? 8 * DIM : 4 * DIM * DIM;
		arg[i] = lx_addr(e->run, region, lx_int(e->run, temp ? offset[a->k] : 0));
		known[i] = (ProgramArg){t->s.e.f->buf.data[i].name, sym_int(t->ir->syms, bytes_of),
					i + 1};
	}
	uint32_t call = program_add_call(e, &(ProgramCall){.name = "the call", .arg = known});
	ls_launch(e->run, call, lx_int(e->run, 1), arg, t->s.e.args.arg.n, t->s.e.args.arg.n);
	assert_true(loop_verify(t->s.e.f, NULL));
	LoopReport report = {0};
	int64_t slot[] = {(int64_t)bytes};
	void *buf[] = {t->xs, t->places, t->turned_xs, NULL, work, NULL};
	if (loop_interp_run(e, t->a, buf, slot, &report) != LOOP_DONE)
		fail_msg("seed %llu: %s", (unsigned long long)seed, report.message);
}

static void check_function(Test *t)
{
	const uint64_t bytes = (uint64_t)RECORDS * (8 * HEAD + 4 * NSTAGE + 4 * LANES);
	int64_t *head = arena_alloc(t->a, bytes);
	const float *result = (const float *)(const void *)(head + HEAD * RECORDS),
		    *value = result + NSTAGE * RECORDS;
	run(t, head, bytes);
	for (uint32_t i = 0; i < RECORDS && head[i * HEAD] >= 0; i++)
		check_record(t, head + (size_t)i * HEAD, result + (size_t)i * NSTAGE,
			     value + (size_t)i * LANES);
}

static void one(uint64_t rng)
{
	Test *t = calloc(1, sizeof *t);
	assert_non_null(t);
	t->ctx = ctx_new();
	assert_non_null(t->ctx);
	if (setjmp(t->ctx->unwind))
		fail_msg("seed %llu: an internal error: %s", (unsigned long long)rng,
			 t->ctx->last ? t->ctx->last->text : "");
	t->a = t->ctx->arena;
	t->ir = ir_new(t->ctx);
	t->rng = rng;
	for (uint32_t i = 0; i < DIM * DIM; i++)
		t->turned_xs[i % DIM * DIM + i / DIM] = t->xs[i] = (float)(i * 37 % 101) - 50;
	for (uint32_t i = 0; i < DIM; i++)
		t->places[i] = i * 7 % (DIM - 4);
	random_kernel(t);
	random_function(t);
	check_function(t);
	ctx_free(t->ctx);
	free(t);
}

static void evaluates(void **state)
{
	(void)state;
	const uint64_t first = seed;
	for (uint64_t i = 0; i < count; i++) {
		seed = first + i;
		one(seed * 0x9e3779b97f4a7c15u + 1);
	}
}

/* Of the commit that is tested, if there is one. */
static uint64_t fresh_seed(void)
{
	char hash[9] = "";
	FILE *git = popen("git -C '" TEST_DATA "' rev-parse HEAD 2>/dev/null", "r");
	bool read = git && fgets(hash, sizeof hash, git);
	if (git)
		pclose(git);
	return read ? strtoull(hash, NULL, 16) : 1;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(evaluates)};
	op_init();
	seed = argc > 1 ? strtoull(argv[1], NULL, 10) : fresh_seed();
	count = argc > 2 ? strtoull(argv[2], NULL, 10) : COUNT;
	printf("codegen_eval %llu %llu\n", (unsigned long long)seed, (unsigned long long)count);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
