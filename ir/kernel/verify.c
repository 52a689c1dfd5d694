/* What schedules rely on: axes in scope, indices in range, dtypes agree, buffers written before
 * read. */
#include "ir/kernel/kernel.h"

#include <string.h>

#include "ir/op/userop.h"

typedef ARRAY(Sym) SymList;

typedef struct {
	Lowered *l;
	Arena *arena;
	const Kernel *k;
	uint32_t stage;  /* being checked */
	bool *written;   /* by buffer, aliases resolved */
	SymList loop;    /* variables of enclosing loops */
	SymList scope;   /* axes visible in the expression being checked */
	bool stores_nothing; /* the kernel */
	bool empty; /* an axis of the stage has no points, or of all that store: nothing is read or
		       stored */
	uint32_t nscope; /* number of the current scope, from 1 */
	uint32_t *seen;  /* by expression of the kernel: the last scope in which it was checked */
	ARRAY(uint32_t) seen_sym; /* the same by index expression */
	bool ok;
} Verify;

static void fail(Verify *v, const char *fmt, const char *detail)
{
	v->ok = false;
	char *text = arena_printf(v->arena, "%s%s", fmt, detail);
	ctx_error(v->l->ir->ctx, v->k ? v->k->name : "program", "kernel IR: stage %u: %s", v->stage,
		  text);
}

static bool in_list(const SymList *list, Sym s)
{
	for (uint32_t k = 0; k < list->n; k++)
		if (list->data[k].i == s.i)
			return true;
	return false;
}

static bool meet_sym(Verify *v, Sym e)
{
	while (v->seen_sym.n <= e.i)
		array_push(v->arena, &v->seen_sym, 0);
	bool met = v->seen_sym.data[e.i] == v->nscope;
	v->seen_sym.data[e.i] = v->nscope;
	return met;
}

/* Checks that every axis variable inside e is visible. */
static void check_sym(Verify *v, Sym e)
{
	const SymTab *st = v->l->ir->syms;
	if (!e.i) {
		fail(v, "missing index expression", "");
		return;
	}
	if (meet_sym(v, e))
		return;
	SymKind kind = sym_kind(st, e);
	if (kind == SYM_CONST)
		return;
	if (kind == SYM_VAR) {
		if (sym_var_kind(st, e) == SYMVAR_AXIS && !in_list(&v->scope, e) &&
		    !in_list(&v->loop, e))
			fail(v, "axis out of scope: ", sym_str(st, e));
		return;
	}
	for (uint32_t k = 0; k < sym_nargs(st, e); k++)
		check_sym(v, sym_arg(st, e, k));
}

/* Whether an axis in scope provably has no points, though its extent is not 0 as it stands. */
static bool is_never_reached(const Verify *v)
{
	SymTab *st = v->l->ir->syms;
	for (uint32_t k = 0; k < v->k->axis.n; k++)
		if (in_list(&v->scope, v->k->axis.data[k].var) &&
		    sym_le(st, v->k->axis.data[k].extent, sym_int(st, 0)) == YES)
			return true;
	return false;
}

/* Checks that an index is not provably outside of its extent; where that is undecided there is no
 * error. */
static void check_in_range(Verify *v, Sym idx, Sym extent)
{
	SymTab *st = v->l->ir->syms;
	int64_t least, most;
	sym_range(st, extent, &least, &most);
	if (v->empty || most <= 0)
		return;
	bool below = sym_lt(st, idx, sym_int(st, 0)) == YES;
	bool above = sym_le(st, extent, idx) == YES;
	if ((below || above) && !is_never_reached(v))
		fail(v, "index out of range: ", sym_str(st, idx));
}

static void check_index(Verify *v, BufId b, const Sym *idx, uint32_t n, bool guarded)
{
	if (!b.i || b.i >= v->l->buf.n) {
		fail(v, "buffer does not exist", "");
		return;
	}
	const Buffer *buf = buf_of(v->l, b);
	if (n != buf->rank) {
		fail(v, "number of indices differs from the rank of ", buf->name ? buf->name : "?");
		return;
	}
	for (uint32_t k = 0; k < n; k++) {
		check_sym(v, idx[k]);
		if (!guarded)
			check_in_range(v, idx[k], buf->dim[k]);
	}
}

static DType kx_dtype(const Verify *v, Kx x)
{
	return x.i && x.i < v->k->kx.n ? v->k->kx.data[x.i].dtype : DT_none;
}

static void check_load(Verify *v, const KxData *d)
{
	check_index(v, d->buf, d->idx, d->nidx, d->guard.i != 0);
	if (!d->buf.i || d->buf.i >= v->l->buf.n)
		return;
	const Buffer *b = buf_of(v->l, d->buf);
	if (d->dtype != dtype_compute(b->dtype))
		fail(v, "load and buffer differ in dtype: ", b->name ? b->name : "?");
	if (!v->written[d->buf.i])
		fail(v, "buffer is read before it is written: ", b->name ? b->name : "?");
	if (d->guard.i && kx_dtype(v, d->guard) != DT_bool)
		fail(v, "guard is not bool", "");
	if (d->guard.i && kx_dtype(v, d->other) != d->dtype)
		fail(v, "the guarded load's other value has another dtype", "");
}

static void check_stage_ref(Verify *v, const KxData *d)
{
	if (d->stage >= v->stage) {
		fail(v, "reads a stage that comes later", "");
		return;
	}
	const Stage *s = &v->k->stage.data[d->stage];
	bool keeps = s->kind == STAGE_RUNNING || s->kind == STAGE_SORT || s->kind == STAGE_FFT ||
		     s->kind == STAGE_FACTOR;
	const uint32_t n = s->nmap, all = n + (keeps ? s->nred : 0u);
	if (d->nidx != n && d->nidx != all)
		fail(v, "number of indices differs from the stage's axes", "");
	if (d->dtype != dtype_compute(s->dtype))
		fail(v, "stage and reader differ in dtype", "");
	for (uint32_t k = 0; k < d->nidx; k++)
		check_sym(v, d->idx[k]);
}

static void check_op(Verify *v, const KxData *d)
{
	const char *name = op_name(d->op);
	bool conversion = strcmp(name, "convert") == 0 || strcmp(name, "bitcast") == 0;
	if (!op_is_scalar(d->op) && !conversion)
		fail(v, "not a scalar operation: ", name);
	bool rounds = d->round && (d->op != OP_convert || d->dtype != DT_f32 ||
				   kx_dtype(v, d->in[0]) != DT_f32 || !scalar_round(d->round));
	if (rounds)
		fail(v, "rounds what is not f32, or to no storage dtype: ", dtype_name(d->round));
	if (d->op == OP_bitcast && !kx_bitcast_fn(d, kx_dtype(v, d->in[0])))
		fail(v, "takes bits between different sizes: ", dtype_name(d->dtype));
}

static void check_kx(Verify *v, Kx x)
{
	if (!x.i || x.i >= v->k->kx.n) {
		fail(v, "missing operand", "");
		return;
	}
	if (v->seen[x.i] == v->nscope)
		return;
	v->seen[x.i] = v->nscope;
	const KxData *d = &v->k->kx.data[x.i];
	for (uint32_t k = 0; k < d->nin; k++)
		check_kx(v, d->in[k]);
	if (d->guard.i) {
		check_kx(v, d->guard);
		check_kx(v, d->other);
	}
	if (d->kind == KX_LOAD)
		check_load(v, d);
	else if (d->kind == KX_STAGE)
		check_stage_ref(v, d);
	else if (d->kind == KX_OP)
		check_op(v, d);
	else
		for (uint32_t k = 0; k < d->nidx; k++)
			check_sym(v, d->idx[k]);
}

/* ---- stages ---- */

static void push_axes(Verify *v, const uint8_t *axis, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		if (axis[k] >= v->k->axis.n) {
			fail(v, "axis does not exist", "");
			continue;
		}
		array_push(v->arena, &v->scope, v->k->axis.data[axis[k]].var);
		v->empty |= sym_is(v->l->ir->syms, v->k->axis.data[axis[k]].extent, 0);
	}
}

/* Puts all value variables in scope: a value may read another variable, and the value of each is
 * checked. */
static void push_value_vars(Verify *v)
{
	for (uint32_t k = 0; k < v->k->vvar.n; k++)
		array_push(v->arena, &v->scope, v->k->vvar.data[k].var);
}

static void check_place(Verify *v, const Stage *s)
{
	if (!stage_stores(s))
		return;
	if (s->store.buf.i >= v->l->buf.n) {
		fail(v, "buffer does not exist", "");
		return;
	}
	check_index(v, s->store.buf, s->store.idx, buf_of(v->l, s->store.buf)->rank, false);
	const Buffer *b = buf_of(v->l, s->store.buf);
	if (b->dtype != s->dtype)
		fail(v, "stage and its buffer differ in dtype: ", b->name ? b->name : "?");
	if (b->kind == BUF_INPUT || b->kind == BUF_CONST)
		fail(v, "writes a buffer that is only readable: ", b->name ? b->name : "?");
	v->written[s->store.buf.i] = true;
}

/* Checks that a kernel which replaces state, or a donated input, reads it only where it replaces
 * it. */
static void check_replaces(Verify *v, const Stage *s)
{
	if (!stage_stores(s) || !v->ok)
		return;
	const Buffer *b = buf_of(v->l, s->store.buf);
	bool ok =
		b->kind != BUF_STATE || kernel_replaces(v->k, s->store.buf, s->store.buf, v->arena);
	for (uint32_t i = 1; b->donated && ok && i < v->l->buf.n; i++)
		if (i != s->store.buf.i && buf_may_be(v->l, s->store.buf, (BufId){i}))
			ok = kernel_replaces(v->k, s->store.buf, (BufId){i}, v->arena);
	if (!ok)
		fail(v, "reads state elsewhere than it replaces it: ", b->name);
}

static bool same_place(const Verify *v, const Stage *a, const Stage *b)
{
	uint32_t rank = buf_of(v->l, a->store.buf)->rank;
	return stage_stores(a) && stage_stores(b) && a->store.buf.i == b->store.buf.i &&
	       memcmp(a->store.idx, b->store.idx, rank * sizeof *a->store.idx) == 0;
}

static void check_written_once(Verify *v, const Stage *s)
{
	if (!stage_stores(s) || s->kind == STAGE_SCATTER || !v->ok)
		return;
	for (uint32_t k = 0; k < v->stage; k++)
		if (same_place(v, s, &v->k->stage.data[k]) &&
		    v->k->stage.data[k].kind != STAGE_SCATTER)
			fail(v, "a place is written twice: ", buf_of(v->l, s->store.buf)->name);
}

/* Checks the positions of values in terms of any of the kernel's axes: messages say them of
 * indices. */
static void check_positions(Verify *v)
{
	v->scope.n = 0;
	for (uint8_t k = 0; k < v->k->axis.n; k++)
		push_axes(v, &k, 1);
	push_value_vars(v);
	for (uint32_t k = 0; k < v->k->vvar.n; k++)
		for (uint32_t i = 0; i < v->k->vvar.data[k].nat; i++)
			check_sym(v, v->k->vvar.data[k].at[i]);
}

/* Checks that each axis is mapped or reduced once. */
static void check_axes_differ(Verify *v, const Stage *s)
{
	uint64_t seen = 0;
	for (uint32_t k = 0; k < (uint32_t)s->nmap + s->nred; k++) {
		const uint64_t axis = UINT64_C(1)
				      << (k < s->nmap ? s->map[k] : s->red[k - s->nmap]);
		if (seen & axis)
			fail(v, "an axis is mapped or reduced twice", "");
		seen |= axis;
	}
}

static void check_stage(Verify *v, const Stage *s)
{
	v->scope.n = 0;
	v->empty = v->stores_nothing;
	v->nscope++;
	push_axes(v, s->map, s->nmap);
	push_axes(v, s->red, s->nred);
	push_value_vars(v);
	check_axes_differ(v, s);
	if (s->value.i || (s->kind != STAGE_SORT && s->kind != STAGE_FACTOR))
		check_kx(v, s->value);
	if (s->where.i)
		check_kx(v, s->where);
	if (s->where.i && kx_dtype(v, s->where) != DT_bool)
		fail(v, "guard is not bool", "");
	if (s->dtype == DT_none)
		fail(v, "stage without a dtype", "");
	if (s->kind == STAGE_MAP && s->nred)
		fail(v, "a map stage does not reduce", "");
	if ((s->kind == STAGE_ARGREDUCE && s->nred != 1) ||
	    (s->kind == STAGE_SORT && s->nred != 1 && s->nred != 2) ||
	    (s->kind == STAGE_FFT && s->nred != 1))
		fail(v, "needs exactly one axis to work along", "");
	if (s->kind == STAGE_FACTOR && (s->nred > 2 || s->factor.kind == FACTOR_NONE))
		fail(v, "needs a factorisation and at most two axes", "");
	check_written_once(v, s);
	check_place(v, s);
	check_replaces(v, s);
}

/* Whether an expression of the kernel depends on axis `from` or a later one. */
static bool depends_on_later(const Verify *v, Kx x, uint32_t from)
{
	const SymTab *st = v->l->ir->syms;
	const KxData *d = &v->k->kx.data[x.i];
	if (!x.i)
		return false;
	for (uint32_t k = 0; k < d->nidx; k++)
		for (uint32_t a = from; a < v->k->axis.n; a++)
			if (sym_uses(st, d->idx[k], v->k->axis.data[a].var))
				return true;
	for (uint32_t k = 0; k < d->nin; k++)
		if (depends_on_later(v, d->in[k], from))
			return true;
	return depends_on_later(v, d->guard, from) || depends_on_later(v, d->other, from);
}

static void check_bound(Verify *v, uint32_t axis, uint32_t bound)
{
	SymTab *st = v->l->ir->syms;
	if (!bound)
		return;
	if (bound > v->k->vvar.n) {
		fail(v, "a bound of an axis does not exist", "");
		return;
	}
	const ValueVar *b = &v->k->vvar.data[bound - 1];
	if (sym_eq(st, b->extent, sym_addi(st, v->k->axis.data[axis].extent, 1)) != YES)
		fail(v, "a bound of an axis has another range", "");
	if (depends_on_later(v, b->value, axis))
		fail(v, "a bound depends on an axis that does not come before", "");
}

/* Checks bounds, and that nothing but maps and reductions runs over such an axis. */
static void check_bounds(Verify *v, const Kernel *k)
{
	for (uint32_t a = 0; a < k->axis.n && v->ok; a++) {
		check_bound(v, a, k->axis.data[a].lo);
		check_bound(v, a, k->axis.data[a].hi);
	}
	for (v->stage = 0; v->ok && v->stage < k->stage.n; v->stage++) {
		const Stage *s = &k->stage.data[v->stage];
		for (uint32_t i = 0; i < s->nred; i++)
			if (s->red[i] < k->axis.n && !axis_is_plain(&k->axis.data[s->red[i]]) &&
			    s->kind != STAGE_REDUCE)
				fail(v, "only a reduction has an axis with bounds", "");
	}
}

static void check_kernel(Verify *v, const Kernel *k)
{
	v->k = k;
	v->seen = ARENA_ARRAY(v->arena, uint32_t, k->kx.n + 1);
	if (k->axis.n > MAX_KERNEL_AXES)
		fail(v, "too many axes", "");
	v->stores_nothing = v->ok && kernel_stores_nothing(v->l, k);
	check_positions(v);
	check_bounds(v, k);
	for (v->stage = 0; v->ok && v->stage < k->stage.n; v->stage++)
		check_stage(v, &k->stage.data[v->stage]);
	v->k = NULL;
}

/* ---- steps ---- */

static void check_steps(Verify *v, const StepList *list);

static const char *name_of(const Verify *v, BufId b)
{
	const char *name = buf_of(v->l, b)->name;
	return name ? name : "?";
}

static void check_pred(Verify *v, const Step *s)
{
	if (!s->pred.i || s->pred.i >= v->l->buf.n) {
		fail(v, "there is no condition", "");
		return;
	}
	const Buffer *b = buf_of(v->l, s->pred);
	if (b->dtype != DT_bool || b->rank)
		fail(v, "a condition is not a bool without dimensions: ", name_of(v, s->pred));
	if (!v->written[s->pred.i])
		fail(v, "a condition is read before it is written: ", name_of(v, s->pred));
}

/* Checks both branches. A buffer that one of them writes and the other does not is not written
 * behind them. */
static void check_if(Verify *v, const Step *s)
{
	uint32_t n = v->l->buf.n;
	bool *before = arena_dup(v->arena, v->written, n * sizeof *before);
	check_pred(v, s);
	check_steps(v, s->body);
	bool *then = arena_dup(v->arena, v->written, n * sizeof *then);
	memcpy(v->written, before, n * sizeof *before);
	check_steps(v, s->other);
	for (uint32_t k = 0; k < n; k++)
		v->written[k] = v->written[k] && then[k];
}

static void check_loop(Verify *v, const Step *s)
{
	uint32_t n = v->l->buf.n;
	for (uint32_t k = 0; k < s->ncarry; k++)
		if (!v->written[s->carry[k].from.i])
			fail(v, "a carried value has no initial value: ",
			     name_of(v, s->carry[k].from));
	const uint32_t around = v->loop.n;
	if (s->kind == STEP_LOOP)
		array_push(v->arena, &v->loop, s->var);
	for (uint32_t k = 0; k < s->nalso; k++)
		array_push(v->arena, &v->loop, s->also[k].var);
	if (s->kind == STEP_WHILE) {
		check_steps(v, s->test);
		check_pred(v, s);
	}
	bool *before =
		s->kind == STEP_WHILE ? arena_dup(v->arena, v->written, n * sizeof *before) : NULL;
	check_steps(v, s->body);
	for (uint32_t k = 0; k < s->ncarry; k++)
		if (v->ok && !v->written[s->carry[k].to.i])
			fail(v, "a carried value gets no next value: ", name_of(v, s->carry[k].to));
	v->loop.n = around;
	if (!before)
		return;
	memcpy(v->written, before, n * sizeof *before); /* perhaps there was no iteration */
	for (uint32_t k = 0; k < s->ncarry; k++)
		v->written[s->carry[k].to.i] = true;
}

/* Checks dtypes, ranks and layouts of a call's buffers, and that operands are written before.
 * Extents are those of the types, or were required to be (lower/call.c). */
static void check_call(Verify *v, const StepCall *c)
{
	for (uint32_t k = 0; k < c->op->nin + c->op->nout; k++) {
		const Buffer *b = buf_of(v->l, c->buf[k]);
		const UserType *t = &c->op->type[k];
		if (t->dtype != DT_none && b->dtype != t->dtype)
			fail(v, "a call has an operand or result of another dtype: ",
			     name_of(v, c->buf[k]));
		if (b->rank < t->rank || (b->rank > t->rank && !t->leading))
			fail(v, "a call has an operand or result of another rank: ",
			     name_of(v, c->buf[k]));
		if (!layout_is_row_major(&b->layout, b->rank))
			fail(v, "an operand or result of a call is not row-major: ",
			     name_of(v, c->buf[k]));
		if (k < c->op->nin && !v->written[c->buf[k].i])
			fail(v,
			     "a call reads a buffer before it is written: ", name_of(v, c->buf[k]));
	}
	for (uint32_t k = c->op->nin; k < c->op->nin + c->op->nout; k++)
		v->written[c->buf[k].i] = true;
}

static void check_save(Verify *v, const StepSave *s)
{
	const Buffer *state = buf_of(v->l, s->state), *values = buf_of(v->l, s->values);
	if (state->kind != BUF_STATE || values->dtype != state->dtype)
		fail(v, "saves what is no state, or as another dtype: ", name_of(v, s->state));
	if (s->at.i && (!v->written[s->at.i] || !v->written[s->values.i]))
		fail(v, "saves what was not read before: ", name_of(v, s->state));
	v->written[s->values.i] = v->written[s->record.i] = true;
}

static void check_size(Verify *v, const Step *s)
{
	const Buffer *b = buf_of(v->l, s->pred);
	if (b->dtype != DT_i64 || b->rank)
		fail(v, "a size is not an i64 without dimensions: ", name_of(v, s->pred));
	if (!v->written[s->pred.i])
		fail(v, "a size is read before it is written: ", name_of(v, s->pred));
}

static void check_steps(Verify *v, const StepList *list)
{
	for (uint32_t k = 0; v->ok && k < list->step.n; k++) {
		const Step *s = &list->step.data[k];
		if (s->kind == STEP_KERNEL)
			check_kernel(v, s->kernel);
		else if (s->kind == STEP_CALL)
			check_call(v, s->call);
		else if (s->kind == STEP_COPY)
			v->written[s->to.i] = true;
		else if (s->kind == STEP_SAVE)
			check_save(v, s->save);
		else if (s->kind == STEP_IF)
			check_if(v, s);
		else if (s->kind == STEP_SIZE)
			check_size(v, s);
		else
			check_loop(v, s);
	}
}

/* Checks that each state has one buffer at most, which is row-major. */
static void check_states(Verify *v)
{
	bool *seen = ARENA_ARRAY(v->arena, bool, v->l->state.n);
	for (uint32_t k = 1; k < v->l->buf.n && v->ok; k++) {
		const Buffer *b = &v->l->buf.data[k];
		if (b->kind != BUF_STATE)
			continue;
		if (b->k >= v->l->state.n || seen[b->k] ||
		    !layout_is_row_major(&b->layout, b->rank))
			fail(v, "state has two buffers, or is not row-major: ", b->name);
		else
			seen[b->k] = true;
	}
}

bool lowered_verify(Lowered *l)
{
	Arena *arena = l->ir->ctx->scratch;
	ArenaMark mark = arena_mark(arena);
	Verify v = {.l = l, .arena = arena, .ok = true};
	v.written = ARENA_ARRAY(arena, bool, l->buf.n);
	check_states(&v);
	for (uint32_t k = 1; k < l->buf.n; k++) {
		BufKind kind = l->buf.data[k].kind;
		if (kind != BUF_TEMP && kind != BUF_OUTPUT)
			v.written[k] = true;
	}
	check_steps(&v, &l->steps);
	arena_release(arena, mark);
	return v.ok;
}
