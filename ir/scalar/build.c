/* From text to SSA: names are resolved, literals typed, constants folded, equal instructions
 * shared. */
#include "ir/scalar/priv.h"

#include <string.h>

#define NO_INS UINT32_MAX
enum { INLINE_COST = 12, MAX_PARAM = 4 };

/* A typed instruction, or a literal that takes the dtype of what it meets. */
typedef struct {
	const Expr *lit; /* NULL: ins */
	uint32_t ins;
} TypedVal;

typedef struct {
	const char *name;
	TypedVal v;
} Binding;

typedef struct {
	Arena *arena;
	ARRAY(ScIns) ins;
	ARRAY(Binding) env;
	DType T;
	const char *why; /* NULL while all is well */
} FnBuild;

static TypedVal fail(FnBuild *b, const char *why)
{
	if (!b->why)
		b->why = why;
	return (TypedVal){NULL, 0};
}

static TypedVal val(uint32_t ins)
{
	return (TypedVal){NULL, ins};
}

static DType type_of(const FnBuild *b, uint32_t k)
{
	return b->ins.data[k].dtype;
}

static bool is_const(const FnBuild *b, uint32_t k)
{
	return b->ins.data[k].op == SC_const;
}

static bool same_ins(const ScIns *a, const ScIns *b)
{
	return a->op == b->op && a->dtype == b->dtype && a->nin == b->nin && a->i == b->i &&
	       !memcmp(a->in, b->in, sizeof a->in);
}

/* Appends an instruction, or finds the equal one. */
static uint32_t intern_ins(FnBuild *b, ScIns ins)
{
	for (uint32_t k = 0; k < b->ins.n; k++)
		if (same_ins(&b->ins.data[k], &ins))
			return k;
	array_push(b->arena, &b->ins, ins);
	return b->ins.n - 1;
}

static uint32_t emit_const(FnBuild *b, DType t, ScVal v)
{
	ScIns ins = {SC_const, t, {0}, 0, {.i = 0}};
	uint64_t store;
	scalar_pack(t, &store, &v, 1); /* wraps or rounds to the dtype */
	scalar_unpack(t, &v, &store, 1);
	if (dtype_is_float(t))
		ins.f = v.f;
	else
		ins.i = v.i;
	return intern_ins(b, ins);
}

static uint32_t materialise(FnBuild *b, const Expr *lit, DType t)
{
	if (dtype_is_float(t))
		return emit_const(b, t, (ScVal){.f = lit->f});
	if (lit->kind == EXPR_FLOAT)
		fail(b, "a float literal meets an integer");
	return emit_const(b, t, (ScVal){.i = lit->i});
}

static uint32_t typed(FnBuild *b, TypedVal v, DType t)
{
	return v.lit ? materialise(b, v.lit, t) : v.ins;
}

static ScVal const_val(const ScIns *ins)
{
	return dtype_is_float(ins->dtype) ? (ScVal){.f = ins->f} : (ScVal){.i = ins->i};
}

static uint32_t known_result(FnBuild *b, const ScIns *ins)
{
	uint64_t store[3] = {0}, out = 0;
	const void *in[3] = {&store[0], &store[1], &store[2]};
	for (uint32_t k = 0; k < ins->nin; k++) {
		const ScIns *x = &b->ins.data[ins->in[k]];
		ScVal v = const_val(x);
		scalar_pack(x->dtype, &store[k], &v, 1);
	}
	scalar_step(ins, type_of(b, ins->in[ins->op == SC_select]), &out, in, 1);
	ScVal v;
	scalar_unpack(ins->dtype, &v, &out, 1);
	return emit_const(b, ins->dtype, v);
}

static bool is_one(const ScIns *c)
{
	return c->op == SC_const && (dtype_is_float(c->dtype) ? c->f == 1.0 : c->i == 1);
}

/* Returns an operand that equals the result bit for bit, or NO_INS. */
static uint32_t identity(const FnBuild *b, const ScIns *ins)
{
	const ScIns *d = b->ins.data;
	const uint32_t *in = ins->in;
	switch (ins->op) {
	case SC_mul:
		return is_one(&d[in[1]]) ? in[0] : is_one(&d[in[0]]) ? in[1] : NO_INS;
	case SC_convert:
	case SC_bitcast:
		return d[in[0]].dtype == ins->dtype ? in[0] : NO_INS;
	case SC_select:
		if (is_const(b, in[0]))
			return d[in[0]].i ? in[1] : in[2];
		return in[1] == in[2] ? in[1] : NO_INS;
	case SC_neg:
	case SC_not:
		return d[in[0]].op == ins->op ? d[in[0]].in[0] : NO_INS;
	default:
		return NO_INS;
	}
}

static uint32_t emit(FnBuild *b, ScOp op, DType t, const uint32_t *in, uint32_t nin)
{
	if (b->why)
		return 0;
	ScIns ins = {op, t, {0}, nin, {.i = 0}};
	bool all_const = true;
	for (uint32_t k = 0; k < nin; k++) {
		ins.in[k] = in[k];
		all_const = all_const && is_const(b, in[k]);
	}
	if (all_const)
		return known_result(b, &ins);
	uint32_t same = identity(b, &ins);
	return same != NO_INS ? same : intern_ins(b, ins);
}

static DType bracket_type(FnBuild *b, const char *name)
{
	uint32_t size = dtype_size(b->T);
	if (!name || !strcmp(name, "T"))
		return b->T;
	if (!strcmp(name, "I"))
		return size == 1 ? DT_i8 : size == 2 ? DT_i16 : size == 4 ? DT_i32 : DT_i64;
	if (!strcmp(name, "U"))
		return size == 1 ? DT_u8 : size == 2 ? DT_u16 : size == 4 ? DT_u32 : DT_u64;
	DType t = dtype_parse(name, (uint32_t)strlen(name));
	if (t == DT_none)
		fail(b, "unknown type in brackets");
	return t;
}

/* ---- operations by name ---- */

static ScOp basic_op(const char *name)
{
	for (ScOp op = SC_add; op < SC_convert; op++)
		if (!strcmp(sc_name(op), name))
			return op;
	return SC_COUNT;
}

static bool is_compare(ScOp op)
{
	return op >= SC_eq && op <= SC_ge;
}

/* Returns what an operation means on bool; SC_COUNT if it means nothing. */
static ScOp bool_op(ScOp op)
{
	switch (op) {
	case SC_add: case SC_max: case SC_or:
		return SC_or;
	case SC_mul: case SC_min: case SC_and:
		return SC_and;
	case SC_xor: case SC_not: case SC_select:
		return op;
	default:
		return is_compare(op) ? op : SC_COUNT;
	}
}

/* Whether the operation changes nothing on integers (absolute value: on unsigned ones). */
static bool is_int_identity(ScOp op, DType t)
{
	switch (op) {
	case SC_floor: case SC_ceil: case SC_trunc: case SC_rint:
		return dtype_is_int(t);
	case SC_abs:
		return t == DT_bool || (dtype_is_int(t) && !dtype_is_signed(t));
	default:
		return false;
	}
}

static bool op_takes(ScOp op, DType t)
{
	switch (op) {
	case SC_div: case SC_fma: case SC_sqrt: case SC_floor: case SC_ceil: case SC_trunc:
	case SC_rint: case SC_lesser: case SC_greater:
		return dtype_is_float(t);
	case SC_floordiv: case SC_rem: case SC_shl: case SC_shr:
		return dtype_is_int(t);
	case SC_and: case SC_or: case SC_xor: case SC_not:
		return !dtype_is_float(t);
	default:
		return true;
	}
}

/* Gives v[0..n) a common dtype, that of the first which is not a literal, and returns it. */
static DType unify(FnBuild *b, const TypedVal *v, uint32_t n, uint32_t *in)
{
	DType t = DT_none;
	for (uint32_t k = 0; k < n && t == DT_none; k++)
		if (!v[k].lit)
			t = type_of(b, v[k].ins);
	if (t == DT_none)
		t = b->T;
	for (uint32_t k = 0; k < n; k++) {
		in[k] = typed(b, v[k], t);
		if (!b->why && type_of(b, in[k]) != t)
			fail(b, "operands of different dtypes");
	}
	return t;
}

static TypedVal build_basic(FnBuild *b, ScOp op, const TypedVal *v, uint32_t n)
{
	if (n != sc_arity(op))
		return fail(b, "wrong number of operands");
	uint32_t in[3];
	uint32_t first = op == SC_select;
	if (first) {
		in[0] = typed(b, v[0], DT_bool);
		if (!b->why && type_of(b, in[0]) != DT_bool)
			return fail(b, "select wants a bool");
	}
	DType t = unify(b, v + first, n - first, in + first);
	if (b->why)
		return val(0);
	if (is_int_identity(op, t))
		return val(in[0]);
	if (t == DT_bool)
		op = bool_op(op);
	if (op == SC_COUNT || !op_takes(op, t))
		return fail(b, "operation does not take this dtype");
	return val(emit(b, op, is_compare(op) ? DT_bool : t, in, n));
}

static TypedVal build_named(FnBuild *b, const char *name, const TypedVal *v, uint32_t n);

/* Converts by a basic operation, but for floats to other integers than i32 and i64: those are
 * library functions. */
static TypedVal convert_to(FnBuild *b, DType t, uint32_t x)
{
	bool basic =
		!dtype_is_int(t) || t == DT_i32 || t == DT_i64 || !dtype_is_float(type_of(b, x));
	if (basic)
		return val(emit(b, SC_convert, t, &x, 1));
	TypedVal v = val(x);
	return build_named(b, arena_printf(b->arena, "to_%s", dtype_name(t)), &v, 1);
}

static TypedVal build_convert(FnBuild *b, const Expr *e, const TypedVal *v, bool bits)
{
	DType t = bracket_type(b, e->bracket);
	if (e->arg.n != 1)
		return fail(b, "conversion takes one operand");
	if (v[0].lit && !bits)
		return val(materialise(b, v[0].lit, t));
	uint32_t x = typed(b, v[0], b->T);
	if (b->why)
		return val(0);
	if (bits && dtype_size(t) != dtype_size(type_of(b, x)))
		return fail(b, "bitcast between different sizes");
	return bits ? val(emit(b, SC_bitcast, t, &x, 1)) : convert_to(b, t, x);
}

static TypedVal build_table(FnBuild *b, const Expr *e, const TypedVal *v)
{
	const ScTable *table = e->bracket ? lib_table(e->bracket) : NULL;
	if (!table || e->arg.n != 1)
		return fail(b, "unknown table");
	ScIns ins = {SC_table, table->dtype, {typed(b, v[0], DT_i32)}, 1, {.table = table}};
	if (b->why || type_of(b, ins.in[0]) != DT_i32)
		return fail(b, "a table index is i32");
	return val(intern_ins(b, ins));
}

/* Builds poly(x, c0, c1, ...) by Horner's scheme in fma. */
static TypedVal build_poly(FnBuild *b, const TypedVal *v, uint32_t n)
{
	if (n < 2 || v[0].lit)
		return fail(b, "poly wants a variable and coefficients");
	DType t = type_of(b, v[0].ins);
	uint32_t acc = typed(b, v[n - 1], t);
	for (uint32_t k = n - 2; k > 0; k--) {
		uint32_t in[3] = {acc, v[0].ins, typed(b, v[k], t)};
		bool same = !b->why && type_of(b, in[0]) == t && type_of(b, in[2]) == t;
		if (!same || !dtype_is_float(t))
			return fail(b, "poly wants one float dtype");
		acc = emit(b, SC_fma, t, in, 3);
	}
	return val(acc);
}

static uint32_t inline_fn(FnBuild *b, const ScFn *f, const uint32_t *arg)
{
	uint32_t *at = ARENA_ARRAY(b->arena, uint32_t, f->nins);
	for (uint32_t k = 0; k < f->nins; k++) {
		ScIns ins = f->ins[k];
		uint32_t in[3] = {0};
		for (uint32_t j = 0; j < ins.nin; j++)
			in[j] = ins.in[j] = at[ins.in[j]];
		if (ins.op == SC_param)
			at[k] = arg[ins.k];
		else if (ins.op == SC_const || ins.op == SC_call || ins.op == SC_table)
			at[k] = intern_ins(b, ins);
		else
			at[k] = emit(b, ins.op, ins.dtype, in, ins.nin);
	}
	return at[f->nins - 1];
}

static TypedVal build_named(FnBuild *b, const char *name, const TypedVal *v, uint32_t n)
{
	uint32_t in[MAX_PARAM];
	DType t[MAX_PARAM];
	DType lit = b->T;
	if (n == 0 || n > MAX_PARAM)
		return fail(b, "wrong number of operands");
	for (uint32_t k = n; k-- > 0;)
		if (!v[k].lit)
			lit = type_of(b, v[k].ins);
	for (uint32_t k = 0; k < n; k++) {
		in[k] = typed(b, v[k], lit);
		t[k] = b->why ? DT_none : type_of(b, in[k]);
	}
	bool expand = false;
	const ScFn *f = b->why ? NULL : scalar_named(name, t, n, &expand);
	if (!f)
		return fail(b, arena_printf(b->arena, "no function %s for these dtypes", name));
	if (expand || f->cost <= INLINE_COST || n > 3)
		return val(inline_fn(b, f, in));
	ScIns ins = {SC_call, f->result, {0}, n, {.fn = f}};
	memcpy(ins.in, in, n * sizeof in[0]);
	return val(intern_ins(b, ins));
}

/* Whether this is a floordiv of floats, which the op table has; the basic operation is the one
 * on integers. */
static bool is_float_floordiv(const FnBuild *b, ScOp op, const TypedVal *v, uint32_t n)
{
	bool is_float = false;
	for (uint32_t k = 0; k < n && op == SC_floordiv; k++)
		is_float = is_float || (!v[k].lit && dtype_is_float(type_of(b, v[k].ins)));
	return is_float;
}

static TypedVal build_expr(FnBuild *b, const Expr *e)
{
	if (b->why)
		return val(0);
	if (e->kind == EXPR_INT || e->kind == EXPR_FLOAT)
		return (TypedVal){e, 0};
	if (e->kind == EXPR_NAME) {
		for (uint32_t k = b->env.n; k-- > 0;)
			if (!strcmp(b->env.data[k].name, e->name))
				return b->env.data[k].v;
		return fail(b, arena_printf(b->arena, "unknown name %s", e->name));
	}
	TypedVal *v = ARENA_ARRAY(b->arena, TypedVal, e->arg.n);
	for (uint32_t k = 0; k < e->arg.n; k++)
		v[k] = build_expr(b, e->arg.data[k]);
	if (b->why)
		return val(0);
	if (!strcmp(e->name, "convert") || !strcmp(e->name, "bitcast"))
		return build_convert(b, e, v, e->name[0] == 'b');
	if (!strcmp(e->name, "table"))
		return build_table(b, e, v);
	if (!strcmp(e->name, "poly"))
		return build_poly(b, v, e->arg.n);
	ScOp op = basic_op(e->name);
	if (is_float_floordiv(b, op, v, e->arg.n))
		return build_named(b, "floor_div", v, e->arg.n);
	if (op == SC_COUNT)
		return build_named(b, e->name, v, e->arg.n);
	return build_basic(b, op, v, e->arg.n);
}

/* ---- finishing ---- */

static uint32_t ins_cost(const ScIns *ins, const ScIns *first)
{
	switch (ins->op) {
	case SC_const: case SC_param: case SC_let: case SC_bitcast:
		return 0;
	case SC_div: case SC_sqrt:
		return 5;
	case SC_floordiv: case SC_rem: case SC_quot: case SC_mod:
		return 20;
	case SC_scale: /* where there is no instruction */
		return 7;
	case SC_table:
		return 8;
	case SC_call:
		return ins->fn->cost + 1;
	case SC_max: case SC_min: /* a constant first operand is no NaN: one instruction */
		return dtype_is_float(ins->dtype) && first->op != SC_const ? 2 : 1;
	default:
		return 1;
	}
}

/* Gives values slots. Constants keep one each; any other value's slot is free again after its
 * last reader. */
static void plan_slots(Arena *a, ScFnPlan *plan)
{
	const ScFn *f = &plan->fn;
	uint32_t *slot = ARENA_ARRAY(a, uint32_t, f->nins);
	uint32_t *last = ARENA_ARRAY(a, uint32_t, f->nins);
	uint32_t *pool = ARENA_ARRAY(a, uint32_t, f->nins), npool = 0;
	for (uint32_t k = 0; k < f->nins; k++)
		for (uint32_t j = 0; j < f->ins[k].nin; j++)
			last[f->ins[k].in[j]] = k;
	for (uint32_t k = 0; k < f->nins; k++) {
		const ScIns *ins = &f->ins[k];
		slot[k] = ins->op != SC_const && npool ? pool[--npool] : plan->nslot++;
		for (uint32_t j = 0; j < ins->nin; j++) {
			uint32_t x = ins->in[j];
			bool repeated = (j > 0 && ins->in[0] == x) || (j > 1 && ins->in[1] == x);
			bool owned = f->ins[x].op != SC_const && f->ins[x].op != SC_param;
			if (last[x] == k && owned && !repeated)
				pool[npool++] = slot[x];
		}
	}
	plan->slot = slot;
}

/* Finds the arm of a select that alone reads call k, if its condition is computed before the
 * call. */
static ScGuard find_guard(const ScFn *f, uint32_t k)
{
	ScGuard g = {false, false, 0};
	for (uint32_t j = k + 1; j < f->nins; j++) {
		const ScIns *user = &f->ins[j];
		for (uint32_t a = 0; a < user->nin; a++) {
			if (user->in[a] != k)
				continue;
			bool arm = user->op == SC_select && a > 0 && user->in[0] < k;
			if (!arm || (g.found && (g.cond != user->in[0] || g.when != (a == 1))))
				return (ScGuard){false, false, 0};
			g = (ScGuard){true, a == 1, user->in[0]};
		}
	}
	return g;
}

/* Makes a function of what the result needs, in order. */
static const ScFn *finish(FnBuild *b, const char *name, uint32_t nparam, const DType *in,
                          uint32_t result)
{
	Arena *a = scalar_arena();
	ScFnPlan *plan = ARENA_NEW(a, ScFnPlan);
	bool *live = ARENA_ARRAY(b->arena, bool, b->ins.n);
	uint32_t *to = ARENA_ARRAY(b->arena, uint32_t, b->ins.n);
	ScIns *out = ARENA_ARRAY(a, ScIns, result + 1);
	ScFn *f = &plan->fn;
	live[result] = true;
	for (uint32_t k = result + 1; k-- > 0;)
		for (uint32_t j = 0; live[k] && j < b->ins.data[k].nin; j++)
			live[b->ins.data[k].in[j]] = true;
	for (uint32_t k = 0; k <= result; k++) {
		if (!live[k])
			continue;
		ScIns ins = b->ins.data[k];
		for (uint32_t j = 0; j < ins.nin; j++)
			ins.in[j] = to[ins.in[j]];
		to[k] = f->nins;
		out[f->nins++] = ins;
		f->cost += ins_cost(&ins, &out[ins.nin ? ins.in[0] : to[k]]);
	}
	f->name = arena_strdup(a, name);
	f->nparam = nparam;
	memcpy(f->param, in, nparam * sizeof in[0]);
	f->result = out[f->nins - 1].dtype;
	f->ins = out;
	plan_slots(a, plan);
	ScGuard *guard = ARENA_ARRAY(a, ScGuard, f->nins);
	for (uint32_t k = 0; k < f->nins; k++)
		if (out[k].op == SC_call)
			guard[k] = find_guard(f, k);
	plan->guard = guard;
	return f;
}

/* Returns the callee of a text that only passes its parameters on, so that both share one
 * function; NULL for another text. */
static const ScFn *forwarded(const ScText *t, uint32_t nparam, const char *const *param,
                             const DType *in)
{
	const Expr *e = t->result;
	if (e->kind != EXPR_CALL || e->bracket || t->let.n || e->arg.n != nparam)
		return NULL;
	for (uint32_t k = 0; k < nparam; k++)
		if (e->arg.data[k]->kind != EXPR_NAME || strcmp(e->arg.data[k]->name, param[k]))
			return NULL;
	bool expand;
	return basic_op(e->name) == SC_COUNT ? scalar_named(e->name, in, nparam, &expand) : NULL;
}

static const ScFn *build_text(FnBuild *b, const char *name, const ScText *t, uint32_t nparam,
                              const char *const *param, const DType *in)
{
	const ScFn *same = forwarded(t, nparam, param, in);
	if (same)
		return same;
	for (uint32_t k = 0; k < nparam; k++) {
		ScIns ins = {SC_param, in[k], {0}, 0, {.i = 0}};
		ins.k = k;
		array_push(b->arena, &b->ins, ins);
		array_push(b->arena, &b->env, (Binding){param[k], val(k)});
	}
	for (uint32_t k = 0; k < t->let.n && !b->why; k++) {
		TypedVal v = build_expr(b, t->let.data[k].value);
		array_push(b->arena, &b->env, (Binding){t->let.data[k].name, v});
	}
	uint32_t result = typed(b, build_expr(b, t->result), b->T);
	return b->why ? NULL : finish(b, name, nparam, in, result);
}

ScGuard scalar_guard(const ScFn *f, uint32_t k)
{
	return f->ins[k].fn->cost > SC_INLINE_COST ? ((const ScFnPlan *)f)->guard[k]
						   : (ScGuard){false, false, 0};
}

const ScFn *scalar_build(const char *name, const char *text, uint32_t nparam,
                         const char *const *param, const DType *in, DType T, const char **why)
{
	FnBuild b = {.arena = scalar_arena(), .T = T};
	const char *at = NULL;
	const ScText *t = scalar_parse(b.arena, text, &at);
	if (!t)
		fail(&b, arena_printf(b.arena, "cannot read \"%.20s\"", at));
	const ScFn *f = t ? build_text(&b, name, t, nparam, param, in) : NULL;
	if (why)
		*why = f ? NULL : b.why;
	return f;
}
