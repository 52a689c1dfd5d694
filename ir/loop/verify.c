/* Checks what emitters rely on: scopes, types, memory references, structure, and of legal functions
 * that the target has every operation. verify_block.c checks what threads do together,
 * verify_frag.c fragments. */
#include "ir/loop/prelude.h"
#include "ir/loop/verify_priv.h"

/* A definition of a variable: later ones have larger numbers. */
typedef struct {
	uint32_t v, number;
} Definition;

typedef struct {
	LoopFn *f;
	const Isa *isa;     /* NULL: any form */
	uint32_t *defined;  /* by variable: number of the definition that is visible, 0: none; [0]
	                       always is */
	uint32_t ndefined;
	bool *checked;      /* expression was checked for types */
	Definition *newest; /* by expression, when it was last checked: the newest definition that
	                       it reads */
	const LsData *s;
	bool ok;
} Verify;

static const char *type_text(Verify *v, LType t)
{
	return arena_printf(v->f->ir->ctx->scratch, "%sx%u", dtype_name(t.dtype), t.lanes);
}

static void fail(Verify *v, const char *what, const char *detail)
{
	v->ok = false;
	ctx_error(v->f->ir->ctx, v->f->name, "loop IR: %s: %s%s%s", ls_row(v->s->kind)->name, what,
	          detail ? " " : "", detail ? detail : "");
}

static void expect(Verify *v, bool cond, const char *what)
{
	if (!cond)
		fail(v, what, NULL);
}

static bool same(LType a, LType b)
{
	return a.dtype == b.dtype && a.lanes == b.lanes;
}

/* ---- expressions ---- */

static bool is_compute(DType d)
{
	return d == DT_bool || d == DT_f32 || d == DT_f64 || dtype_is_int(d);
}

static bool is_compare(ScOp op)
{
	return op >= SC_eq && op <= SC_ge;
}

/* Whether all lanes of x are known to be the same. */
static bool is_uniform(const LoopFn *f, Lx x)
{
	const LxData *d = &f->lx.data[x.i];
	return d->kind == LX_INT || d->kind == LX_SPLAT || d->type.lanes == 1;
}

static bool sc_types_ok(const LoopFn *f, const LxData *d)
{
	if (sc_arity(d->sc) == 0 || sc_arity(d->sc) != d->nin)
		return false;
	LType a = lx_type(f, d->in[0]);
	for (uint32_t k = 0; k < d->nin; k++)
		if (lx_type(f, d->in[k]).lanes != d->type.lanes)
			return false;
	if (d->sc == SC_convert)
		return true;
	if (d->sc == SC_fit)
		return dtype_is_float(a.dtype) &&
		       (d->type.dtype == DT_i32 || d->type.dtype == DT_i64);
	if (d->sc == SC_nearest)
		return a.dtype == DT_f32 && d->type.dtype == DT_i32;
	if (d->sc == SC_from_f16 || d->sc == SC_to_f16)
		return a.dtype == (d->sc == SC_from_f16 ? DT_u16 : DT_f32) &&
		       d->type.dtype == (d->sc == SC_to_f16 ? DT_u16 : DT_f32);
	if (d->sc == SC_flush_bf16)
		return a.dtype == DT_f32 && d->type.dtype == DT_u16;
	if (d->sc == SC_bitcast)
		return dtype_size(a.dtype) == dtype_size(d->type.dtype);
	if (sc_is_dot(d->sc))
		return a.dtype == DT_u32 && same(lx_type(f, d->in[1]), a) &&
		       same(lx_type(f, d->in[2]), d->type) && d->type.dtype == sc_dot_acc(d->sc);
	if (d->sc == SC_lookup8 &&
	    (a.dtype != DT_u32 || !is_uniform(f, d->in[1]) || !is_uniform(f, d->in[2])))
		return false;
	if (d->sc == SC_select)
		return a.dtype == DT_bool && same(lx_type(f, d->in[1]), d->type) &&
		       same(lx_type(f, d->in[2]), d->type);
	for (uint32_t k = 1; k < d->nin; k++)
		if (!same(lx_type(f, d->in[k]), a))
			return false;
	return is_compare(d->sc) ? d->type.dtype == DT_bool : same(a, d->type);
}

static bool fn_types_ok(const LoopFn *f, const LxData *d)
{
	if (!d->fn || d->nin != d->fn->nparam)
		return false;
	for (uint32_t k = 0; k < d->nin; k++)
		if (!same(lx_type(f, d->in[k]), (LType){d->fn->param[k], d->type.lanes}))
			return false;
	return true;
}

static bool is_index(const LoopFn *f, Lx x)
{
	return x.i && same(lx_type(f, x), (LType){DT_i64, 1});
}

static bool warp_types_ok(const LoopFn *f, const LxData *d)
{
	LType a = lx_type(f, d->in[0]);
	if (!warp_is_vote((WarpOp)d->u.k))
		return d->nin == 2 && same(a, d->type) && a.dtype != DT_bool &&
		       is_index(f, d->in[1]);
	return d->nin == 1 && same(a, (LType){DT_bool, 1}) && d->type.lanes == 1 &&
	       d->type.dtype == (d->u.k == WARP_BALLOT ? DT_u32 : DT_bool);
}

static bool pack_types_ok(const LoopFn *f, const LxData *d)
{
	for (uint32_t k = 0; k < d->nin; k++)
		if (!same(lx_type(f, d->in[k]), (LType){d->type.dtype, 1}))
			return false;
	return d->nin > 1 && d->nin == d->type.lanes;
}

static bool lanes_types_ok(const LoopFn *f, const LxData *d)
{
	LType a = lx_type(f, d->in[0]);
	switch (d->kind) {
	case LX_SPLAT: return a.lanes == 1 && a.dtype == d->type.dtype;
	case LX_RAMP:
		return a.lanes == 1 && same(a, lx_type(f, d->in[1])) &&
		       (a.dtype == DT_i64 || a.dtype == DT_i32);
	case LX_MASK: return is_index(f, d->in[0]) && d->type.dtype == DT_bool;
	case LX_HREDUCE: return a.lanes > 1 && a.dtype == d->type.dtype;
	case LX_ANY: return a.dtype == DT_bool;
	case LX_SHUFFLE:
		return a.lanes > 1 && same(a, lx_type(f, d->in[1])) && a.dtype == d->type.dtype;
	case LX_TABLE: return a.dtype == DT_i32 && d->type.dtype == d->table->dtype;
	case LX_ADDR: return is_index(f, d->in[0]);
	case LX_WARP: return warp_types_ok(f, d);
	case LX_LANE: return d->u.k < a.lanes && a.dtype == d->type.dtype && d->type.lanes == 1;
	case LX_PACK: return pack_types_ok(f, d);
	default: return true;
	}
}

static bool lx_ok(const LoopFn *f, const LxData *d)
{
	if (!is_compute(d->type.dtype) || d->type.lanes == 0 ||
	    (d->type.lanes & (d->type.lanes - 1)))
		return false;
	switch (d->kind) {
	case LX_PARAM: return d->u.k < f->param.n;
	case LX_VAR: return d->u.v.i && d->u.v.i < f->lv.n;
	case LX_FLOAT: return d->type.dtype == DT_f32 || d->type.dtype == DT_f64;
	case LX_INT: return d->type.dtype == DT_bool || dtype_is_int(d->type.dtype);
	case LX_SC: return sc_types_ok(f, d);
	case LX_FN: return fn_types_ok(f, d);
	default: return lanes_types_ok(f, d);
	}
}

static const char *lx_label(const LxData *d)
{
	static const char *const name[] = {"int",   "float", "param", "var",     "sc",    "fn",
					   "splat", "ramp",  "mask",  "hreduce", "any",   "shuffle",
					   "table", "addr",  "lane",  "pack",    "thread"};
	switch (d->kind) {
	case LX_SC: return sc_name(d->sc);
	case LX_FN: return d->fn->name;
	case LX_WARP: return warp_name((WarpOp)d->u.k);
	default: return name[d->kind];
	}
}

static bool is_of_block(const LxData *d)
{
	return d->kind >= LX_LANE;
}

static bool is_legal(const Verify *v, const LxData *d)
{
	if (!v->isa)
		return true;
	if (d->kind == LX_HREDUCE || (is_of_block(d) && !v->isa->of_block))
		return false;
	return d->kind != LX_SC ||
	       isa_takes(v->isa, d->sc, d->type, lx_type(v->f, d->in[0]), d->known);
}

/* Checks the types of an expression, once; scopes are checked at every use. */
static void check_types(Verify *v, Lx x)
{
	if (v->checked[x.i])
		return;
	v->checked[x.i] = true;
	const LxData *d = &v->f->lx.data[x.i];
	for (uint32_t k = 0; k < d->nin; k++) {
		if (!d->in[k].i || d->in[k].i >= x.i) {
			fail(v, "missing operand of", lx_label(d));
			return;
		}
		check_types(v, d->in[k]);
	}
	if (!lx_ok(v->f, d))
		fail(v, "operand types do not fit", lx_label(d));
	else if (!is_legal(v, d))
		fail(v, arena_printf(v->f->ir->ctx->scratch, "%s has not", v->isa->name),
		     lx_label(d));
}

/* Checks that what an expression reads is in scope. Scopes nest, so an expression stays valid
 * for as long as the newest definition in it is visible. */
static void check_scope(Verify *v, Lx x)
{
	const LxData *d = &v->f->lx.data[x.i];
	Definition *known = &v->newest[x.i], newest = {0, 1};
	if (known->number && v->defined[known->v] == known->number)
		return;
	if (d->kind == LX_VAR && d->u.v.i < v->f->lv.n) {
		if (v->defined[d->u.v.i])
			newest = (Definition){d->u.v.i, v->defined[d->u.v.i]};
		else
			fail(v, "variable out of scope:", v->f->lv.data[d->u.v.i].name);
	}
	for (uint32_t k = 0; k < d->nin; k++) {
		check_scope(v, d->in[k]);
		if (v->newest[d->in[k].i].number > newest.number)
			newest = v->newest[d->in[k].i];
	}
	*known = newest;
}

static void define(Verify *v, Lv x)
{
	v->defined[x.i] = ++v->ndefined;
}

static void check_expr(void *data, Lx x)
{
	Verify *v = data;
	if (x.i >= v->f->lx.n) {
		fail(v, "expression does not exist", NULL);
		return;
	}
	check_types(v, x);
	check_scope(v, x);
}

/* ---- statements ---- */

static LType type_of(const Verify *v, Lx x)
{
	return x.i ? lx_type(v->f, x) : (LType){DT_none, 0};
}

static bool is_address(const Verify *v, Lx x)
{
	return x.i && v->f->lx.data[x.i].kind == LX_ADDR;
}

static void check_field(Verify *v, LsField field, Lx x, LType value, const char *which)
{
	LType t = type_of(v, x);
	bool ok = false;
	switch (field) {
	case FIELD_NONE: ok = !x.i; break;
	case FIELD_VALUE: ok = same(t, value); break;
	case FIELD_INDEX: case FIELD_BUFFERS: ok = is_index(v->f, x) && !is_address(v, x); break;
	case FIELD_BOOL: ok = same(t, (LType){DT_bool, 1}); break;
	case FIELD_LANES:
		ok = (t.dtype == DT_i64 || t.dtype == DT_i32) && t.lanes == value.lanes;
		break;
	case FIELD_ADDRESS: ok = is_address(v, x); break;
	}
	static const char *const what[] = {"is not used",
					   "must have the type of the value",
					   "must be an i64 scalar",
					   "must be a bool scalar",
					   "must be i32 or i64 of the value's lanes",
					   "must be an address",
					   "must be i64 scalars"};
	if (!ok)
		fail(v, arena_printf(v->f->ir->ctx->scratch, "%s %s, not", which, what[field]),
		     type_text(v, t));
}

static void check_args(Verify *v, const LsRow *row, const LsData *s)
{
	bool buffers = row->arg == FIELD_BUFFERS;
	expect(v, !row->most || s->narg <= row->most, "too many arguments");
	expect(v, s->nbuf <= s->narg && (buffers || !s->nbuf), "more buffers than arguments");
	for (uint32_t k = 0; k < s->narg; k++)
		check_field(v, buffers && k < s->nbuf ? FIELD_ADDRESS : row->arg, s->arg[k],
			    (LType){DT_none, 0}, "argument");
}

static void check_place(Verify *v, LMem m)
{
	const LoopFn *f = v->f;
	if (lmem_is_array(m))
		expect(v, m.k < f->lv.n && v->defined[m.k],
		       m.kind == MEM_LOCAL ? "local array out of scope"
					   : "shared array out of scope");
	else
		expect(v, m.k < f->buf.n, "no such buffer");
	expect(v, m.dtype > DT_none && m.dtype < DT_COUNT && !dtype_is_complex(m.dtype),
	       "memory has no element type");
}

static void check_mem(Verify *v, const LsRow *row, const LsData *s, LType value)
{
	check_place(v, s->mem);
	if (row->mem == MEM_COPY)
		check_place(v, s->from);
	if (row->mem == MEM_READ_ROWS || row->mem == MEM_WRITE_ROWS)
		expect(v, !v->isa || s->mem.dtype == dtype_raw(s->mem.dtype),
		       "legal memory holds values as they are");
	if (row->mem != MEM_READ && row->mem != MEM_WRITE)
		return;
	const bool groups = s->kind == LS_LOAD && ls_group(s->mem, value) > 1;
	if (!groups && value.dtype != dtype_compute(s->mem.dtype))
		fail(v, "value and memory differ in type:", type_text(v, value));
	if (v->isa) {
		bool scattered = row->x == FIELD_LANES || row->y == FIELD_LANES;
		expect(v, (groups || value.dtype == s->mem.dtype) && value.dtype != DT_bool,
		       "legal memory holds values as they are");
		expect(v, s->kind != LS_STREAM || isa_streams(v->isa, value), "the target cannot");
		expect(v, !ls_stride(v->f, s) && !(value.lanes == 1 && (scattered || s->mask.i)),
		       "not a legal access");
	}
}

/* Checks that buffers are what the call makes of them, and arguments as many as it has. */
static void check_call(Verify *v, const LsData *s)
{
	const LoopCall *c = s->call;
	uint32_t narg = 1;
	for (uint32_t k = 0; k < c->nin + c->nout; k++) {
		const struct LoopCallTensor *t = &c->tensor[k];
		const LArg *b = t->buf >= 0 && (uint32_t)t->buf < v->f->buf.n
					? &v->f->buf.data[t->buf]
					: NULL;
		narg += t->rank + t->nvalue;
		expect(v, b || (t->buf < 0 && k < c->nin), "a result lies in no buffer");
		expect(v, !b || (b->dtype == t->dtype && (k < c->nin ? b->read : b->written)),
		       "a buffer is not what the call makes of it");
	}
	expect(v, c->work < (int32_t)v->f->buf.n, "no such buffer");
	expect(v, s->narg == narg, "another number of arguments");
}

static void check_block(Verify *v, Lb b);

static void check_nested(Verify *v, const LsData *s, Lb b)
{
	check_block(v, b);
	v->s = s;
}

/* Checks what v becomes; before the body, where that sees it. */
static void check_variable(Verify *v, const LsRow *row, const LsData *s)
{
	const LvData *d = &v->f->lv.data[s->v.i];
	if (row->v == V_NONE)
		return;
	if (row->v == V_SET) {
		expect(v, v->defined[s->v.i], "variable out of scope");
		expect(v, d->is_mutable, "variable is not mutable");
		return;
	}
	if (row->v == V_LET || row->v == V_VAR)
		expect(v, !v->defined[s->v.i], "variable defined twice");
	if (row->v == V_LOOP)
		expect(v, s->step > 0, "step must be positive");
	if (row->v == V_ARRAY)
		expect(v, s->count > 0, "array without elements");
	if (row->v == V_DATA && row->mem == MEM_NONE) {
		expect(v, s->dtype == DT_bool || dtype_is_int(s->dtype),
		       "a bool or an integer is read");
		expect(v, same(d->type, (LType){s->dtype == DT_bool ? DT_bool : DT_i64, 1}),
		       "gives a bool or an i64");
	}
	define(v, s->v);
}

static void check_stmt(Verify *v, const LsData *s)
{
	const LsRow *row = ls_row(s->kind);
	v->s = s;
	ls_visit(v->f, s, check_expr, v);
	if (s->v.i >= v->f->lv.n) {
		fail(v, "variable does not exist", NULL);
		return;
	}
	LType value = row->v == V_NONE ? type_of(v, s->x) : v->f->lv.data[s->v.i].type;
	expect(v, !row->legal || v->isa, "in legal functions only");
	expect(v, !row->block || ((!v->isa || v->isa->of_block) && v->f->threads > 1),
	       "in blocks of threads only");
	expect(v, s->kind != LS_FENCE || !v->isa || prelude_of_statement(v->isa, "fence", false),
	       "the target cannot");
	expect(v,
	       s->kind != LS_FRAG_DOT || !v->isa || s->k >= FRAG_OPS ||
		       isa_has_frag(v->isa, (FragOp)s->k),
	       "the target cannot");
	check_field(v, row->x, s->x, value, "operand");
	check_field(v, row->y, s->y, value, "operand");
	check_field(v, row->offset, s->offset, value, "offset");
	if (s->mask.i)
		check_field(v, row->masked ? FIELD_VALUE : FIELD_NONE, s->mask,
			    (LType){DT_bool, value.lanes}, "mask");
	check_args(v, row, s);
	expect(v, !s->call == (s->kind != LS_CALL), "the operator that is called");
	if (s->call)
		check_call(v, s);
	if (row->mem != MEM_NONE)
		check_mem(v, row, s, value);
	check_variable(v, row, s);
	expect(v, row->body ? s->body.i : !s->body.i, "its body");
	expect(v, row->other || !s->other.i, "another body");
	if (s->body.i)
		check_nested(v, s, s->body);
	if (row->v == V_LOOP)
		v->defined[s->v.i] = 0;
	if (s->other.i)
		check_nested(v, s, s->other);
}

/* Checks that a launch whose phase goes on is followed by one. */
static void check_same_phase(Verify *v, Lb b)
{
	const struct LBlock *block = &v->f->block.data[b.i];
	for (uint32_t k = 0; k < block->stmt.n; k++) {
		v->s = &v->f->ls.data[block->stmt.data[k]];
		bool last = k + 1 == block->stmt.n;
		expect(v,
		       !v->s->same_phase ||
			       (!last && v->f->ls.data[block->stmt.data[k + 1]].kind == LS_LAUNCH),
		       "the next launch of the phase is missing");
	}
}

/* Checks a block. What it defines stays visible. */
static void check_open_block(Verify *v, Lb b)
{
	if (b.i >= v->f->block.n) {
		fail(v, "block does not exist", NULL);
		return;
	}
	for (uint32_t k = 0; k < v->f->block.data[b.i].stmt.n; k++)
		check_stmt(v, &v->f->ls.data[v->f->block.data[b.i].stmt.data[k]]);
	check_same_phase(v, b);
}

/* Ends a block. What it defines is not visible after it. */
static void close_block(Verify *v, Lb b)
{
	if (b.i >= v->f->block.n)
		return;
	for (uint32_t k = 0; k < v->f->block.data[b.i].stmt.n; k++) {
		const LsData *s = &v->f->ls.data[v->f->block.data[b.i].stmt.data[k]];
		LsVariable made = ls_row(s->kind)->v;
		if (made != V_SET && made != V_LOOP && s->v.i && s->v.i < v->f->lv.n)
			v->defined[s->v.i] = 0;
	}
}

static void check_block(Verify *v, Lb b)
{
	check_open_block(v, b);
	close_block(v, b);
}

/* Checks the result of a library function, at the end of its body. */
static void check_result(Verify *v)
{
	static const LsData result = {.kind = LS_RESULT};
	v->s = &result;
	if (v->f->result.i)
		check_expr(v, v->f->result);
}

bool loop_verify(LoopFn *f, const Isa *isa)
{
	Arena *arena = f->ir->ctx->scratch;
	ArenaMark mark = arena_mark(arena);
	LsData start = {.kind = LS_COMMENT};
	Verify v = {.f = f, .isa = isa, .s = &start, .ok = true};
	v.defined = ARENA_ARRAY(arena, uint32_t, f->lv.n);
	v.checked = ARENA_ARRAY(arena, bool, f->lx.n);
	v.newest = ARENA_ARRAY(arena, Definition, f->lx.n);
	if (f->open.n > 1)
		fail(&v, "a block was left open", NULL);
	define(&v, (Lv){0});
	for (uint32_t k = 0; k < f->arg.n; k++)
		define(&v, f->arg.data[k]);
	check_open_block(&v, f->enter);
	define(&v, f->task);
	check_open_block(&v, f->body);
	check_result(&v);
	close_block(&v, f->body);
	v.defined[f->task.i] = 0;
	check_block(&v, f->leave);
	if (isa && !isa->of_block && f->threads != 1)
		fail(&v, "CPUs have no blocks of threads", NULL);
	v.ok = v.ok && (!loop_is_of_block(f) || verify_block(f)) &&
	       (!loop_has_frags(f) || verify_frag(f));
	arena_release(arena, mark);
	return v.ok;
}
