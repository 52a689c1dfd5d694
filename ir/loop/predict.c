#include "ir/loop/predict.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* What a block keeps busy, in cycles. */
typedef enum { BUSY_UNITS, BUSY_LOADS, BUSY_STORES, BUSY_SCALAR, BUSY_COUNT } Busy;

enum { UNKNOWN_ROUNDS = 4, MOST_ROUNDS = 1 << 28 };

typedef struct {
	const LoopFn *f;
	const Machine *m;
	const int64_t *param;
	int64_t *value;   /* by variable */
	bool *known;      /* by variable: it has a value */
	int64_t *result;  /* by expression, where it was asked for in this question */
	uint32_t *asked, question; /* twice the question, plus 1 where it has a value */
	uint32_t *met;    /* by expression: first plus the block that counted it */
	uint32_t first;   /* greater than what earlier predictions left in `met` */
	double *chain;    /* by variable: latency of what it waits for in a round of the block at
	                     hand */
	uint32_t block;   /* number of the block at hand */
	double *busy;     /* by its statements */
} Predict;

/* ---- values ---- */

static bool operate(ScOp op, const int64_t *x, int64_t *out)
{
	int64_t a = x[0], b = x[1];
	switch (op) {
	case SC_add: return !__builtin_add_overflow(a, b, out);
	case SC_sub: return !__builtin_sub_overflow(a, b, out);
	case SC_mul: return !__builtin_mul_overflow(a, b, out);
	case SC_min: return *out = a < b ? a : b, true;
	case SC_max: return *out = a > b ? a : b, true;
	case SC_floordiv: case SC_quot: return b > 0 ? (*out = a / b - (a % b < 0), true) : false;
	case SC_rem: case SC_mod: return b > 0 ? (*out = a % b, true) : false;
	case SC_right: return b >= 0 && b < 64 ? (*out = a >> b, true) : false;
	case SC_and: return *out = a & b, true;
	case SC_or: return *out = a | b, true;
	case SC_eq: return *out = a == b, true;
	case SC_ne: return *out = a != b, true;
	case SC_lt: return *out = a < b, true;
	case SC_le: return *out = a <= b, true;
	case SC_gt: return *out = a > b, true;
	case SC_ge: return *out = a >= b, true;
	case SC_select: return *out = a ? b : x[2], true;
	default: return false;
	}
}

static bool ask(Predict *p, Lx x, int64_t *out);

static bool answer(Predict *p, const LxData *d, int64_t *out)
{
	int64_t in[3] = {0};
	if (d->type.lanes != 1)
		return false;
	switch (d->kind) {
	case LX_INT: return *out = d->u.i, true;
	case LX_PARAM: return *out = p->param[d->u.k], true;
	case LX_VAR: return *out = p->value[d->u.v.i], p->known[d->u.v.i];
	case LX_THREAD: return *out = p->f->threads / 2, true;
	case LX_SC:
		for (uint32_t k = 0; k < d->nin; k++)
			TRY(ask(p, d->in[k], &in[k]));
		return operate(d->sc, in, out);
	default: return false;
	}
}

static bool ask(Predict *p, Lx x, int64_t *out)
{
	if (p->asked[x.i] / 2 != p->question)
		p->asked[x.i] = 2 * p->question + answer(p, &p->f->lx.data[x.i], &p->result[x.i]);
	*out = p->result[x.i];
	return p->asked[x.i] % 2;
}

/* Sets *out to the value of an integer or bool scalar, where it follows from the parameters.
 * What variables are changes from one question to the next. */
static bool value_of(Predict *p, Lx x, int64_t *out)
{
	int64_t v;
	p->question++;
	if (!ask(p, x, &v))
		return false;
	*out = v;
	return true;
}

static void set_value(Predict *p, Lv v, Lx x)
{
	p->known[v.i] = value_of(p, x, &p->value[v.i]);
}

/* ---- expressions ---- */

static MachineOp class_of(ScOp op, LType t)
{
	bool is_float = dtype_is_float(t.dtype);
	switch (op) {
	case SC_add: case SC_sub: return is_float ? MOP_add : MOP_simple;
	case SC_mul: return is_float ? MOP_mul : MOP_int_mul;
	case SC_fma: return MOP_fma;
	case SC_dot2_bf16: return MOP_dot_bf16;
	case SC_dot2_s16: case SC_pairs_u8s8: case SC_pairs_s8s8:
	case SC_dot4_u8s8: case SC_dot4_s8s8: return MOP_dot;
	case SC_div: case SC_floordiv: case SC_rem: case SC_quot: case SC_mod: return MOP_div;
	case SC_sqrt: return MOP_sqrt;
	case SC_convert:
	case SC_fit:
	case SC_floor:
	case SC_ceil:
	case SC_trunc:
	case SC_rint:
	case SC_nearest:
	case SC_from_f16:
	case SC_to_f16:
	case SC_flush_bf16:
		return MOP_convert;
	default: return MOP_simple;
	}
}

static bool is_index(LType t)
{
	return t.lanes == 1 && (t.dtype == DT_i64 || t.dtype == DT_bool);
}

static void count_node(const Predict *p, const LxData *d, double *busy)
{
	const Machine *m = p->m;
	LType t = d->type;
	uint32_t lanes = d->nin ? p->f->lx.data[d->in[0].i].type.lanes : 1;
	switch (d->kind) {
	case LX_SC:
		if (is_index(t) && class_of(d->sc, t) != MOP_div)
			busy[BUSY_SCALAR] += machine_cycles(m, MOP_scalar, t.dtype, 1);
		else
			busy[BUSY_UNITS] += machine_cycles(m, class_of(d->sc, t), t.dtype, t.lanes);
		break;
	case LX_FN:
		busy[BUSY_UNITS] += d->fn->cost * machine_cycles(m, MOP_fma, t.dtype, t.lanes);
		break;
	case LX_SPLAT: case LX_RAMP: case LX_MASK: case LX_ANY:
		busy[BUSY_UNITS] += machine_cycles(m, MOP_simple, t.dtype, t.lanes);
		break;
	case LX_HREDUCE:
		busy[BUSY_UNITS] += 2 * log2(lanes) * machine_latency(m, MOP_shuffle, t.dtype);
		break;
	case LX_SHUFFLE: busy[BUSY_UNITS] += machine_cycles(m, MOP_shuffle, t.dtype, lanes); break;
	case LX_TABLE: busy[BUSY_LOADS] += machine_cycles(m, MOP_gather, t.dtype, t.lanes); break;
	default: break;
	}
}

/* Counts each expression once in a block: what it repeats is computed once. */
static void count_expr(Predict *p, Lx x, double *busy)
{
	if (!x.i || p->met[x.i] == p->first + p->block)
		return;
	const LxData *d = &p->f->lx.data[x.i];
	p->met[x.i] = p->first + p->block;
	for (uint32_t k = 0; k < d->nin; k++)
		count_expr(p, d->in[k], busy);
	count_node(p, d, busy);
}

/* ---- statements ---- */

/* Returns the cycles that a round waits for the last one: a variable that becomes an operation
 * on itself waits for its last value. */
static double carried(const Predict *p, Lv v, Lx x)
{
	const LxData *d = &p->f->lx.data[x.i];
	for (uint32_t k = 0; k < d->nin; k++) {
		const LxData *in = &p->f->lx.data[d->in[k].i];
		if (in->kind == LX_VAR && in->u.v.i == v.i)
			return machine_latency(
				p->m, d->kind == LX_SC ? class_of(d->sc, d->type) : MOP_fma,
				d->type.dtype);
	}
	return 0;
}

static void count_access(Predict *p, const LsData *s, double *busy)
{
	const LsRow *row = ls_row(s->kind);
	bool store = row->mem == MEM_WRITE;
	LType t = store ? lx_type(p->f, s->x) : p->f->lv.data[s->v.i].type;
	t.dtype = dtype_raw(s->mem.dtype);
	if (row->x == FIELD_LANES || row->y == FIELD_LANES)
		busy[store ? BUSY_STORES : BUSY_LOADS] +=
			machine_cycles(p->m, MOP_gather, t.dtype, t.lanes);
	else
		busy[store ? BUSY_STORES : BUSY_LOADS] +=
			machine_cycles(p->m, store ? MOP_store : MOP_load, t.dtype, t.lanes);
	if (t.dtype != dtype_compute(s->mem.dtype))
		busy[BUSY_UNITS] += machine_cycles(p->m, MOP_convert, DT_f32, t.lanes);
}

static double block_cycles(Predict *p, Lb b);

/* Whether the loop goes from chunk to chunk: its body begins with the end of the chunk at hand,
 * which is min(chunk + step, ..). */
static bool goes_by_chunks(const Predict *p, const LsData *s)
{
	const LoopFn *f = p->f;
	if (!f->block.data[s->body.i].stmt.n)
		return false;
	const LsData *first = &f->ls.data[f->block.data[s->body.i].stmt.data[0]];
	const LxData *end = &f->lx.data[first->x.i];
	return first->kind == LS_LET && end->kind == LX_SC && end->sc == SC_min &&
	       is_index(end->type);
}

static double rounds_of(Predict *p, const LsData *s)
{
	int64_t lo = 0, hi = 0;
	bool known = value_of(p, s->x, &lo);
	p->value[s->v.i] = lo;
	p->known[s->v.i] = known;
	if (!known || !value_of(p, s->y, &hi))
		return UNKNOWN_ROUNDS;
	int64_t rounds = hi > lo ? (hi - lo + s->step - 1) / s->step : 0;
	p->value[s->v.i] = lo + rounds / 2 * s->step; /* one in the middle stands for all */
	if (rounds > 1 && goes_by_chunks(p, s)) { /* but for the last one */
		p->value[s->v.i] = lo;
		return (double)(hi - lo) / (double)s->step;
	}
	return rounds < MOST_ROUNDS ? (double)rounds : (double)MOST_ROUNDS;
}

static double branch_cycles(Predict *p, const LsData *s)
{
	int64_t c;
	if (value_of(p, s->x, &c))
		return block_cycles(p, c ? s->body : s->other);
	if (ls_is_rare(p->f, s))
		return 0;
	return (block_cycles(p, s->body) + block_cycles(p, s->other)) / 2;
}

static void count_operand(void *predict, Lx x)
{
	Predict *p = predict;
	count_expr(p, x, p->busy);
}

static double loop_cycles(Predict *p, const LsData *s)
{
	if (s->kind == LS_IF)
		return branch_cycles(p, s);
	double rounds = s->kind == LS_FOR ? rounds_of(p, s) : UNKNOWN_ROUNDS;
	return rounds > 0 ? rounds * block_cycles(p, s->body) : 0;
}

/* Counts an operation on fragments: a row of an operand each cycle. */
static void count_fragments(Predict *p, const LsData *s, double *busy)
{
	const LsData *d = loop_frag(p->f, s->frag[0]);
	const double rows = d ? d->rows : FRAG_ROWS;
	if (s->kind == LS_FRAG_DOT)
		busy[BUSY_UNITS] += rows;
	else if (s->kind != LS_FRAG_ZERO)
		busy[s->kind == LS_FRAG_STORE ? BUSY_STORES : BUSY_LOADS] +=
			rows * machine_cycles(p->m, s->kind == LS_FRAG_STORE ? MOP_store : MOP_load,
					      DT_f32, FRAG_ROW_BYTES / 4);
}

static double statement_cycles(Predict *p, const LsData *s, double *busy)
{
	const LsRow *row = ls_row(s->kind);
	p->busy = busy;
	ls_visit(p->f, s, count_operand, p);
	if (row->frags)
		count_fragments(p, s, busy);
	else if (row->mem == MEM_HINT || row->mem == MEM_COPY)
		busy[BUSY_LOADS] += machine_cycles(p->m, MOP_load, DT_f32, 1);
	else if (row->mem != MEM_NONE)
		count_access(p, s, busy);
	if (row->v == V_LET || row->v == V_VAR)
		set_value(p, s->v, s->x);
	if (row->v == V_SET) {
		p->chain[s->v.i] += carried(p, s->v, s->x);
		p->known[s->v.i] = false;
	}
	return row->body ? loop_cycles(p, s) : 0;
}

static double block_cycles(Predict *p, Lb b)
{
	double busy[BUSY_COUNT] = {0}, inner = 0, most = 0;
	if (!b.i)
		return 0;
	uint32_t outer = p->block, n = p->f->block.data[b.i].stmt.n;
	const uint32_t *at = p->f->block.data[b.i].stmt.data;
	for (uint32_t k = 0; k < n; k++)
		if (p->f->ls.data[at[k]].kind == LS_SET)
			p->chain[p->f->ls.data[at[k]].v.i] = 0;
	for (uint32_t k = 0; k < n; k++) {
		p->block = b.i;
		inner += statement_cycles(p, &p->f->ls.data[at[k]], busy);
	}
	for (uint32_t k = 0; k < n; k++)
		if (p->f->ls.data[at[k]].kind == LS_SET)
			most = fmax(most, p->chain[p->f->ls.data[at[k]].v.i]);
	for (uint32_t k = 0; k < BUSY_COUNT; k++)
		most = fmax(most, busy[k]);
	p->block = outer;
	return inner + most;
}

/* Makes room for predictions of functions with at most so many variables and expressions, one
 * after the other. */
static Predict predict_room(const Machine *m, uint32_t nlv, uint32_t nlx, Arena *arena)
{
	return (Predict){.m = m,
			 .value = ARENA_ARRAY(arena, int64_t, nlv),
			 .known = ARENA_ARRAY(arena, bool, nlv),
			 .result = ARENA_ARRAY(arena, int64_t, nlx),
			 .asked = ARENA_ARRAY(arena, uint32_t, nlx),
			 .met = ARENA_ARRAY(arena, uint32_t, nlx),
			 .chain = ARENA_ARRAY(arena, double, nlv)};
}

/* Begins a prediction. What the room holds of an earlier function is not asked for: no variable
 * is known, and questions and blocks have new numbers. */
static void predict_begin(Predict *p, const LoopFn *f, const int64_t *param)
{
	p->first += p->f ? p->f->block.n : 0;
	p->f = f;
	p->param = param;
	memset(p->known, 0, f->lv.n * sizeof *p->known);
}

static double predict(Predict *p, const LoopFn *f, const int64_t *param, int64_t ntasks,
		      double bytes)
{
	const Machine *m = p->m;
	predict_begin(p, f, param);
	p->value[f->task.i] = ntasks / 2; /* one in the middle stands for all */
	p->known[f->task.i] = true;
	double around = block_cycles(p, f->enter) + block_cycles(p, f->leave);
	double compute = ntasks > 0 ? (double)ntasks * block_cycles(p, f->body) + around : 0;
	double memory = machine_memory_cycles(m, bytes, bytes);
	return m->phase / 8.0 + fmax(compute, memory) + fmin(compute, memory) / 4;
}

double loop_predict(const LoopFn *f, const Machine *m, const int64_t *param, int64_t ntasks,
		    double bytes)
{
	Arena *arena = f->ir->ctx->scratch;
	ArenaMark mark = arena_mark(arena);
	Predict p = predict_room(m, f->lv.n, f->lx.n, arena);
	double cycles = predict(&p, f, param, ntasks, bytes);
	arena_release(arena, mark);
	return cycles;
}

/* ---- programs ---- */

/* A launch of a kernel. */
typedef struct {
	bool known;
	int64_t ntasks, *param;
	double bytes, cycles;
} Launched;

typedef struct {
	const ProgramEntry *entry;
	const int64_t *value; /* of the symbols */
	Predict p;            /* of the function at hand */
	Predict kernel;       /* of what it launches */
	Launched *last;       /* by index into Program.fn: many launches of a kernel differ in
	                         addresses only */
	double *cycles;
	bool tasks;           /* cycles are those of a task */
} PredictRun;

static bool calls_user(const LoopFn *f)
{
	for (uint32_t k = 0; k < f->ls.n; k++)
		if (f->ls.data[k].kind == LS_CALL)
			return true;
	return false;
}

static void predict_launch(PredictRun *r, const LsData *s)
{
	const uint32_t fn = program_call(r->entry, s->k)->fn;
	const LoopFn *f = r->entry->program->fn.data[fn];
	const ProgramCount n = program_count(r->entry, s->k, r->value);
	Launched *last = &r->last[fn];
	Launched now = {true, 1, last->param, n.launches > 0 ? n.bytes / n.launches : 0,
			last->cycles};
	value_of(&r->p, s->x, &now.ntasks);
	bool same = last->known && last->ntasks == now.ntasks && last->bytes == now.bytes;
	assert(s->narg - s->nbuf == f->param.n);
	for (uint32_t k = 0; k < f->param.n; k++) {
		int64_t *param = &last->param[k], before = *param;
		*param = 0;
		value_of(&r->p, s->arg[s->nbuf + k], param);
		same &= *param == before;
	}
	if (!same)
		now.cycles = predict(&r->kernel, f, now.param, now.ntasks, now.bytes);
	*last = now;
	if (r->tasks)
		r->cycles[s->k] =
			calls_user(f) ? 0 : now.cycles / (now.ntasks > 0 ? (double)now.ntasks : 1);
	else
		r->cycles[s->k] = n.launches * now.cycles;
}

/* Predicts the steps of a block: loops by their first round, branches both. */
static void predict_steps(PredictRun *r, Lb b)
{
	const LoopFn *f = r->p.f;
	for (uint32_t k = 0; b.i && k < f->block.data[b.i].stmt.n; k++) {
		const LsData *s = &f->ls.data[f->block.data[b.i].stmt.data[k]];
		const LsVariable v = ls_row(s->kind)->v;
		if (v == V_LET || v == V_VAR || v == V_LOOP)
			set_value(&r->p, s->v, s->x);
		if (s->kind == LS_LAUNCH)
			predict_launch(r, s);
		predict_steps(r, s->body);
		predict_steps(r, s->other);
	}
}

static void predict_function(PredictRun *r, const LoopFn *f, const Machine *m)
{
	const ProgramEntry *e = r->entry;
	Arena *arena = f->ir->ctx->scratch;
	ArenaMark mark = arena_mark(arena);
	int64_t *param = ARENA_ARRAY(arena, int64_t, f->param.n);
	for (uint32_t k = 0; k < e->symbol.n && k < f->param.n; k++)
		param[k] = r->value ? r->value[k] : sym_hint(f->ir->syms, e->symbol.data[k]);
	r->p = predict_room(m, f->lv.n, f->lx.n, arena);
	predict_begin(&r->p, f, param);
	predict_steps(r, f->body);
	arena_release(arena, mark);
}

static void predict_run(PredictRun r, const Machine *m)
{
	const ProgramEntry *e = r.entry;
	const Program *p = e->program;
	Arena *arena = p->ir->ctx->scratch;
	ArenaMark mark = arena_mark(arena);
	uint32_t nlv = 0, nlx = 0;
	r.last = ARENA_ARRAY(arena, Launched, p->fn.n);
	for (uint32_t k = 0; k < p->fn.n; k++) {
		const LoopFn *f = p->fn.data[k];
		r.last[k].param = ARENA_ARRAY(arena, int64_t, f->param.n);
		nlv = nlv > f->lv.n ? nlv : f->lv.n;
		nlx = nlx > f->lx.n ? nlx : f->lx.n;
	}
	r.kernel = predict_room(m, nlv, nlx, arena);
	predict_function(&r, e->run, m);
	for (uint32_t k = 0; k < e->run_outlined.n; k++)
		predict_function(&r, e->run_outlined.data[k], m);
	arena_release(arena, mark);
}

void program_predict(const ProgramEntry *e, const Machine *m, const int64_t *value, double *cycles)
{
	predict_run((PredictRun){.entry = e, .value = value, .cycles = cycles}, m);
}

void program_predict_tasks(const ProgramEntry *e, const Machine *m, double *cycles)
{
	predict_run((PredictRun){.entry = e, .cycles = cycles, .tasks = true}, m);
}
