/* The `sizes` function of a program: checks what the caller passes, solves the symbols, computes
 * the output shapes and the workspace. Its parameters are the extents of the inputs in order. */
#include "codegen/program/program_priv.h"

#include <stdio.h>
#include <string.h>

/* ---- symbolic integers over variables that have values here ---- */

static Lx lower_args(SymLower *s, Sym e, Lx (*op)(LoopFn *, Lx, Lx))
{
	Lx x = sym_lower(s, sym_arg(s->syms, e, 0));
	for (uint32_t i = 1; i < sym_nargs(s->syms, e); i++)
		x = op(s->f, x, sym_lower(s, sym_arg(s->syms, e, i)));
	return x;
}

static Lx variable(SymLower *s, Sym e)
{
	if (sym_gave_up(s->syms, e)) /* reported; the program is not used */
		return lx_int(s->f, 0);
	ctx_bug(s->ctx, "symbol %s has no value in the program", sym_name(s->syms, e));
}

/* Lowers a double, or an integer that is made of doubles. */
static Lx lower_real(SymLower *s, Sym e)
{
	static const ScOp op[] = {
		[SYM_REAL_ADD] = SC_add, [SYM_REAL_MUL] = SC_mul,  [SYM_REAL_DIV] = SC_div,
		[SYM_REAL_SQRT] = SC_sqrt, [SYM_FLOOR] = SC_floor, [SYM_CEIL] = SC_ceil,
		[SYM_TRUNC] = SC_trunc,  [SYM_RINT] = SC_rint,     [SYM_REAL_LESS] = SC_lt,
		[SYM_REAL_EQUAL] = SC_eq};
	LType f64 = {DT_f64, 1}, i64 = {DT_i64, 1};
	double v;
	if (sym_real_is_const(s->syms, e, &v))
		return lx_float(s->f, f64, v);
	SymKind kind = sym_kind(s->syms, e);
	uint32_t n = sym_nargs(s->syms, e);
	Lx x[2];
	for (uint32_t k = 0; k < n; k++)
		x[k] = sym_lower(s, sym_arg(s->syms, e, k));
	if (kind == SYM_REAL)
		return lx_sc(s->f, SC_convert, f64, x, n);
	if (kind == SYM_REAL_LESS || kind == SYM_REAL_EQUAL)
		return lx_select(s->f, lx_cmp(s->f, op[kind], x[0], x[1]), lx_int(s->f, 1),
				 lx_int(s->f, 0));
	Lx y = lx_sc(s->f, op[kind], f64, x, n);
	return sym_is_real(s->syms, e) ? y : lx_sc(s->f, SC_convert, i64, &y, 1);
}

static Lx lower(SymLower *s, Sym e)
{
	switch (sym_kind(s->syms, e)) {
	case SYM_SUM:
		return lower_args(s, e, lx_add);
	case SYM_PRODUCT:
		return lower_args(s, e, lx_mul);
	case SYM_FLOORDIV:
		return lower_args(s, e, lx_div);
	case SYM_MOD:
		return lower_args(s, e, lx_mod);
	case SYM_MIN:
		return lower_args(s, e, lx_min);
	case SYM_MAX:
		return lower_args(s, e, lx_max);
	case SYM_VAR:
		return variable(s, e);
	default:
		return lower_real(s, e);
	}
}

static Lx remembered(const SymLower *s, Sym e)
{
	uint32_t id = intern_find(&s->sym, &e, sizeof e);
	return id ? s->value.data[id - 1] : (Lx){0};
}

Lx sym_lower(SymLower *s, Sym e)
{
	int64_t c;
	if (sym_is_const(s->syms, e, &c))
		return lx_int(s->f, c);
	Lx x = remembered(s, e);
	if (!x.i) {
		x = lower(s, e);
		sym_lower_set(s, e, x);
	}
	return x;
}

void sym_lower_init(SymLower *s, Ctx *ctx, SymTab *syms, LoopFn *f)
{
	*s = (SymLower){.ctx = ctx, .syms = syms, .f = f};
	intern_init(&s->sym, ctx->arena);
}

void sym_lower_set(SymLower *s, Sym e, Lx value)
{
	uint32_t id = intern(&s->sym, &e, sizeof e, NULL);
	if (id > s->value.n)
		array_push(s->ctx->arena, &s->value, value);
	s->value.data[id - 1] = value;
	array_push(s->ctx->arena, &s->log, id);
}

void sym_lower_forget(SymLower *s, uint32_t n)
{
	while (s->log.n > n)
		s->value.data[s->log.data[--s->log.n] - 1] = (Lx){0};
}

/* Lowers the parts that can be lowered before the whole, so that each part of an expression is
 * asked about once. */
bool sym_lower_can(SymLower *s, Sym e)
{
	uint32_t n = sym_nargs(s->syms, e);
	if (sym_is_const(s->syms, e, NULL) || remembered(s, e).i)
		return true;
	if (sym_kind(s->syms, e) == SYM_VAR)
		return sym_gave_up(s->syms, e);
	for (uint32_t k = 0; k < n; k++)
		TRY(sym_lower_can(s, sym_arg(s->syms, e, k)));
	sym_lower(s, e);
	return true;
}

/* ---- solving ---- */

typedef struct {
	Program *p;
	ProgramEntry *e;
	const Graph *g;
	SymLower s;
	uint32_t n;     /* checks and results in the function at hand */
	uint32_t first; /* in an outlined function: the number of its first extent, whose parameter
	                   follows the symbols */
} Sizes;

/* Begins the next statement, which reads extents from this one on. Where the current function is
 * long, the statement goes to a new one. */
static void next_statement(Sizes *z, uint32_t extent)
{
	Program *p = z->p;
	ProgramEntry *e = z->e;
	if (z->n++ < OUTLINE_SIZE)
		return;
	LoopFn *f = loop_new(p->ir, program_outlined_name(e, "sizes", e->sizes_outlined.n + 1));
	sym_lower_init(&z->s, p->ir->ctx, z->s.syms, f);
	for (uint32_t k = 0; k < e->symbol.n; k++)
		sym_lower_set(&z->s, e->symbol.data[k],
			      lx_param(f, loop_param(f, sym_name(z->s.syms, e->symbol.data[k]))));
	z->n = 1;
	z->first = extent;
	array_push(p->ir->ctx->arena, &e->sizes_outlined, f);
	ls_outlined(e->sizes, e->sizes_outlined.n - 1, extent, NULL, 0);
}

/* Returns extent `at` of all inputs, which is dimension d of t. An outlined function gets its
 * parameters here: ask for extents in ascending order. */
static Lx extent_of(Sizes *z, const ProgramTensor *t, uint32_t d, uint32_t at)
{
	LoopFn *f = z->s.f;
	if (f == z->e->sizes)
		return lx_param(f, at);
	uint32_t k = z->e->symbol.n + at - z->first;
	while (f->param.n < k)
		loop_param(f, "unused");
	if (f->param.n == k)
		loop_param(f, arena_printf(z->p->ir->ctx->arena, "%s_%u", t->name, d));
	return lx_param(f, k);
}

static const char *escape_percent(Arena *a, const char *text)
{
	Text t;
	text_init(&t, a);
	text_format(&t, text);
	return t.data;
}

static void check(Sizes *z, Lx ok, const char *text, Lx a, Lx b)
{
	int64_t v;
	if (lx_is_int(z->s.f, ok, &v) && v)
		return;
	ls_assert(z->s.f, ok, program_message(z->p, text), (Lx[]){a, b}, b.i ? 2 : a.i ? 1 : 0);
}

/* Returns the first unknown variable among the factors of e's terms; none if there is no such, or a
 * variable before it hides in another operation. */
static Sym unknown_factor(Sizes *z, Sym e)
{
	SymTab *syms = z->s.syms;
	SymKind kind = sym_kind(syms, e);
	if (sym_lower_can(&z->s, e))
		return (Sym){0};
	if (kind == SYM_VAR)
		return e;
	Sym v = {0};
	for (uint32_t k = 0;
	     (kind == SYM_SUM || kind == SYM_PRODUCT) && k < sym_nargs(syms, e) && !v.i; k++)
		v = unknown_factor(z, sym_arg(syms, e, k));
	return v;
}

/* Adds checks that neither coef nor rest leaves 64 bits, and that coef is not 0. */
static void check_solution(Sizes *z, const ProgramTensor *t, uint32_t d, Sym coef, Sym rest)
{
	Arena *arena = z->p->ir->ctx->arena;
	int64_t lo, hi;
	SizeBounds *bounds = size_bounds_new(z->p->ir, NULL);
	size_bounds_add(bounds, coef);
	size_bounds_add(bounds, rest);
	while (size_bounds_assert(bounds, &z->s, z->p, z->g, (Sym){0}))
		;
	sym_range(z->s.syms, coef, &lo, &hi);
	if (lo > 0 || hi < 0)
		return;
	const char *text = arena_printf(
		arena, "input \"%s\" dimension %u: %s cannot be solved, as %s is %%lld",
		escape_percent(arena, t->name), d, sym_str(z->s.syms, t->dim[d]),
		sym_str(z->s.syms, coef));
	Lx c = sym_lower(&z->s, coef);
	check(z, lx_cmp(z->s.f, SC_ne, c, lx_int(z->s.f, 0)), text, c, (Lx){0});
}

/* Solves extent = coef * var + rest for the one unknown variable of dimension d, as var = (extent -
 * rest) / coef, and checks the solution. Returns false if the dimension has no such form yet. */
static bool solve(Sizes *z, const ProgramTensor *t, uint32_t d, Lx extent)
{
	SymTab *syms = z->s.syms;
	Sym v = unknown_factor(z, t->dim[d]), coef, rest;
	if (!v.i || !sym_linear(syms, t->dim[d], v, &coef, &rest) || !sym_lower_can(&z->s, coef) ||
	    !sym_lower_can(&z->s, rest))
		return false;
	check_solution(z, t, d, coef, rest);
	Lx c = sym_lower(&z->s, coef), diff = lx_sub(z->s.f, extent, sym_lower(&z->s, rest));
	Arena *arena = z->p->ir->ctx->arena;
	const char *expr = sym_str(syms, t->dim[d]);
	check(z, lx_cmp(z->s.f, SC_eq, lx_mod(z->s.f, diff, c), lx_int(z->s.f, 0)),
	      arena_printf(arena, "input \"%s\" dimension %u: expected %s, got %%lld",
	                   escape_percent(arena, t->name), d, expr),
	      extent, (Lx){0});
	Lv value = ls_let(z->s.f, sym_name(syms, v), lx_div(z->s.f, diff, c));
	sym_lower_set(&z->s, v, lx_var(z->s.f, value));
	int64_t lo, hi;
	sym_range(syms, v, &lo, &hi);
	Lx x = lx_var(z->s.f, value);
	Lx ok = lx_cmp(z->s.f, SC_ge, x, lx_int(z->s.f, lo));
	const char *bound = hi == SYM_INF ? "" : arena_printf(arena, " <= %lld", (long long)hi);
	if (hi != SYM_INF)
		ok = lx_and(z->s.f, ok, lx_cmp(z->s.f, SC_le, x, lx_int(z->s.f, hi)));
	check(z, ok,
	      arena_printf(arena,
	                   "input \"%s\" dimension %u: expected %s with %lld <= %s%s, got "
	                   "%%lld",
	                   escape_percent(arena, t->name), d, expr, (long long)lo,
	                   sym_name(syms, v), bound),
	      extent, (Lx){0});
	return true;
}

static void check_extent(Sizes *z, const ProgramTensor *t, uint32_t d, Lx extent)
{
	Arena *arena = z->p->ir->ctx->arena;
	Lx want = sym_lower(&z->s, t->dim[d]);
	const char *name = escape_percent(arena, t->name);
	int64_t fixed;
	const char *text =
		sym_is_const(z->s.syms, t->dim[d], &fixed)
			? arena_printf(arena,
				       "input \"%s\" dimension %u: expected %%lld, got %%lld", name,
				       d)
			: arena_printf(
				  arena,
				  "input \"%s\" dimension %u: expected %s = %%lld as in the other "
				  "inputs, got %%lld",
				  name, d, sym_str(z->s.syms, t->dim[d]));
	check(z, lx_cmp(z->s.f, SC_eq, extent, want), text, want, extent);
}

static void results(Sizes *z, uint32_t *slot, const Sym *x, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		next_statement(z, 0);
		bool later = program_finds(z->e, x[k]);
		ls_result(z->s.f, (*slot)++, later ? lx_int(z->s.f, -1) : sym_lower(&z->s, x[k]));
	}
}

/* Solves dimensions as soon as all but one of their variables are known, and marks them in
 * solved[]. The others are checked later. */
static void solve_inputs(Sizes *z, bool *solved)
{
	const ProgramEntry *e = z->e;
	for (bool progress = true; progress;) {
		progress = false;
		for (uint32_t i = 0, at = 0; i < e->input.n; i++)
			for (uint32_t d = 0; d < e->input.data[i].rank; d++, at++)
				if (!solved[at] &&
				    solve(z, &e->input.data[i], d, lx_param(z->s.f, at)))
					progress = solved[at] = true;
	}
}

static bool symbols_solved(Sizes *z)
{
	const ProgramEntry *e = z->e;
	for (uint32_t i = 0; i < e->input.n; i++)
		for (uint32_t d = 0; d < e->input.data[i].rank; d++)
			if (!sym_lower_can(&z->s, e->input.data[i].dim[d]))
				return ctx_error(z->p->ir->ctx, NULL,
						 "input \"%s\" dimension %u: cannot solve %s for "
						 "its symbols",
						 e->input.data[i].name, d,
						 sym_str(z->s.syms, e->input.data[i].dim[d]));
	return true;
}

/* Checks sizes that depend on data against their bounds, on which memory and proofs rest. */
static void check_found(Sizes *z)
{
	SymTab *syms = z->s.syms;
	for (uint32_t k = 0; k < z->e->symbol.n; k++) {
		Sym v = z->e->symbol.data[k], most = sym_most(syms, v);
		if (sym_var_kind(syms, v) != SYMVAR_UNBACKED || !most.i ||
		    sym_is_const(syms, most, NULL) || !sym_lower_can(&z->s, most))
			continue;
		GraphGuard bound = {.kind = GUARD_LE,
				    .a = v,
				    .b = most,
				    .why = "the bound of a size that depends on data"};
		next_statement(z, 0);
		program_guard(z->p, &z->s, z->g, &bound);
	}
}

uint32_t program_say_symbols(SymLower *s, const Graph *g, const bool *used, Text *text, Lx *arg,
			     uint32_t narg)
{
	const SymTab *syms = graph_syms(g);
	const char *before = " for";
	for (uint32_t k = 0; k < sym_nvars(syms); k++) {
		Sym v = sym_var_at(syms, k);
		if (!used[k])
			continue;
		text_printf(text, "%s %s = %%lld%s", before, sym_name(syms, v),
			    escape_percent(s->ctx->arena, graph_symbol_origin(g, v)));
		before = ",";
		arg[narg++] = sym_lower(s, v);
	}
	return narg;
}

void program_guard(Program *p, SymLower *s, const Graph *g, const GraphGuard *w)
{
	static const ScOp op[] = {[GUARD_EQ] = SC_eq, [GUARD_NE] = SC_ne, [GUARD_LE] = SC_le};
	static const char *const relation[] = {
		[GUARD_EQ] = "==", [GUARD_NE] = "!=", [GUARD_LE] = "<="};
	SymTab *syms = graph_syms(g);
	Arena *arena = p->ir->ctx->arena;
	const char *sign = relation[w->kind];
	Lx *arg = ARENA_ARRAY(arena, Lx, 2 + sym_nvars(syms));
	bool *used = ARENA_ARRAY(arena, bool, sym_nvars(syms));
	uint32_t n = 2;
	Text text;
	text_init(&text, arena);
	const char *why = *w->why ? escape_percent(arena, w->why) : "required by the model";
	text_printf(&text, "the inputs violate %s %s ", sym_str(syms, w->a), sign);
	text_printf(&text, "%s (%s): %%lld %s %%lld", sym_str(syms, w->b), why, sign);
	arg[0] = sym_lower(s, w->a);
	arg[1] = sym_lower(s, w->b);
	for (uint32_t k = 0; k < sym_nvars(syms); k++)
		used[k] = sym_uses(syms, w->a, sym_var_at(syms, k)) ||
			  sym_uses(syms, w->b, sym_var_at(syms, k));
	n = program_say_symbols(s, g, used, &text, arg, n);
	Lx ok = lx_cmp(s->f, op[w->kind], arg[0], arg[1]);
	ls_assert(s->f, ok, program_message(p, text.data), arg, n);
}

static void check_inputs(Sizes *z, const bool *solved)
{
	const ProgramTensor *t = z->e->input.data;
	for (uint32_t i = 0, at = 0; i < z->e->input.n; i++)
		for (uint32_t d = 0; d < t[i].rank; d++, at++) {
			if (solved[at])
				continue;
			next_statement(z, at);
			check_extent(z, &t[i], d, extent_of(z, &t[i], d, at));
		}
}

static void check_bounds(Sizes *z, SizeBounds *bounds)
{
	do
		next_statement(z, 0);
	while (size_bounds_assert(bounds, &z->s, z->p, z->g, (Sym){0}));
}

static void check_guards(Sizes *z)
{
	const Graph *g = z->g;
	for (uint32_t i = 0; i < g->guard.n; i++) {
		const struct GraphGuard *w = &g->guard.data[i];
		if (!sym_lower_can(&z->s, w->a) || !sym_lower_can(&z->s, w->b))
			continue;
		next_statement(z, 0);
		program_guard(z->p, &z->s, g, w);
	}
}

bool program_sizes(ProgramEntry *e, const Graph *g, SizeBounds *bounds, Sym workspace)
{
	Program *p = e->program;
	Sizes z = {.p = p, .e = e, .g = g};
	SymTab *syms = p->ir->syms;
	e->sizes = loop_new(p->ir, program_fn_name(e, "sizes"));
	sym_lower_init(&z.s, p->ir->ctx, syms, e->sizes);
	for (uint32_t i = 0; i < e->input.n; i++)
		for (uint32_t d = 0; d < e->input.data[i].rank; d++)
			loop_param(e->sizes, arena_printf(p->ir->ctx->arena, "%s_%u",
							  e->input.data[i].name, d));
	bool *solved = ARENA_ARRAY(p->ir->ctx->arena, bool, program_nextent(e));
	uint32_t slot = 0;
	solve_inputs(&z, solved);
	TRY(symbols_solved(&z));
	for (uint32_t i = 0; i < e->symbol.n; i++) /* before outlined functions, which read them */
		ls_result(e->sizes, slot++, sym_lower(&z.s, e->symbol.data[i]));
	size_bounds_add_bytes(bounds, workspace);
	check_bounds(&z, bounds);
	check_inputs(&z, solved);
	check_guards(&z);
	check_found(&z);
	for (uint32_t i = 0; i < e->output.n; i++)
		results(&z, &slot, e->output.data[i].dim, e->output.data[i].rank);
	results(&z, &slot, &workspace, 1);
	return true;
}

/* ---- symbols ---- */

/* Returns a variable of e that is not known, and sets *n to the number of such variables. */
static Sym unknown_var(SymTab *syms, Sym e, const bool *known, uint32_t *n)
{
	Sym found = {0};
	*n = 0;
	for (uint32_t k = 0; k < sym_nvars(syms); k++)
		if (!known[k] && sym_uses(syms, e, sym_var_at(syms, k))) {
			found = sym_var_at(syms, k);
			++*n;
		}
	return found;
}

static void know(SymTab *syms, Sym var, bool *known)
{
	for (uint32_t k = 0; k < sym_nvars(syms); k++)
		known[k] |= sym_var_at(syms, k).i == var.i;
}

/* Marks in known[] the variables that `sizes` will solve, by the same rules. */
static void find_known(SymTab *syms, const ProgramEntry *e, bool *known)
{
	for (bool progress = true; progress;) {
		progress = false;
		for (uint32_t i = 0; i < e->input.n; i++)
			for (uint32_t d = 0; d < e->input.data[i].rank; d++) {
				uint32_t n, rest;
				Sym dim = e->input.data[i].dim[d],
				    v = unknown_var(syms, dim, known, &n), c, r;
				if (n != 1 || !sym_linear(syms, dim, v, &c, &r) ||
				    unknown_var(syms, r, known, &rest).i ||
				    unknown_var(syms, c, known, &rest).i)
					continue;
				know(syms, v, known);
				progress = true;
			}
	}
}

/* Whether a dimension has unknown variables, and all of them are sizes that a step of `run` finds
 * out, outside of branches and loops. */
static bool is_found_later(SymTab *syms, const Lowered *l, Sym dim, const bool *known)
{
	bool *later = ARENA_ARRAY(l->ir->ctx->arena, bool, sym_nvars(syms));
	uint32_t n, nlater;
	for (uint32_t k = 0; k < sym_nvars(syms); k++)
		later[k] = known[k];
	for (uint32_t k = 0; k < l->steps.step.n; k++)
		if (l->steps.step.data[k].kind == STEP_SIZE)
			know(syms, l->steps.step.data[k].size, later);
	unknown_var(syms, dim, known, &n);
	unknown_var(syms, dim, later, &nlater);
	return n && !nlater;
}

static Sym new_extent(SymTab *syms)
{
	char name[24];
	for (uint32_t k = 0;; k++) {
		snprintf(name, sizeof name, "d%u", k);
		if (!sym_find(syms, name, (uint32_t)strlen(name)).i)
			return sym_var(syms, name, SYMVAR_SIZE, 0, SYM_INF);
	}
}

static void name_found_extents(ProgramEntry *e, const Lowered *l)
{
	SymTab *syms = graph_syms(l->graph);
	Arena *arena = l->ir->ctx->arena;
	bool *known = ARENA_ARRAY(arena, bool, sym_nvars(syms) + program_nextent(e));
	find_known(syms, e, known);
	for (uint32_t i = 0; i < e->input.n; i++) {
		ProgramTensor *t = &e->input.data[i];
		Sym *dim = arena_dup(arena, t->dim, t->rank * sizeof *dim);
		for (uint32_t d = 0; d < t->rank; d++)
			if (is_found_later(syms, l, dim[d], known))
				dim[d] = new_extent(syms);
		t->dim = dim;
	}
}

void program_find_symbols(ProgramEntry *e, const Lowered *l)
{
	SymTab *syms = graph_syms(l->graph);
	for (uint32_t k = 0; k < sym_nvars(syms); k++)
		if (sym_var_kind(syms, sym_var_at(syms, k)) == SYMVAR_UNBACKED) {
			name_found_extents(e, l);
			break;
		}
	for (uint32_t k = 0; k < sym_nvars(syms); k++) {
		Sym v = sym_var_at(syms, k);
		bool used = false;
		for (uint32_t i = 0; i < e->input.n; i++)
			for (uint32_t d = 0; d < e->input.data[i].rank; d++)
				used |= sym_uses(syms, e->input.data[i].dim[d], v);
		if (used)
			array_push(e->program->ir->ctx->arena, &e->symbol, v);
	}
}
