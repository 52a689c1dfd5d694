/* Solving the symbols of a graph's inputs from concrete shapes, and the checks at entry. */
#include <inttypes.h>
#include <string.h>

#include "ir/interp/priv.h"
#include "ir/op/node.h"

typedef struct {
	EvalCtx *e;
	Graph *g;
	const Tensor *in;
} Binder;

/* Records an error that begins with: input "x" dimension 1. */
static bool bind_error(const Binder *b, uint32_t input, uint32_t dim, const char *expected,
                       int64_t got)
{
	return ctx_error(b->e->ctx, NULL, "input \"%s\" dimension %u: expected %s, got %" PRId64,
	                 b->g->input.data[input].name, dim, expected, got);
}

static bool is_bound(const EvalCtx *e, Sym var)
{
	for (uint32_t k = 0; k < e->nsym; k++) {
		if (e->sym[k].i == var.i)
			return true;
	}
	return false;
}

/* Returns an unbound variable of s, and sets *count to their number: with one it is the only
 * one. */
static Sym unbound_var(const Binder *b, Sym s, uint32_t *count)
{
	SymTab *syms = graph_syms(b->g);
	Sym found = {0};
	*count = 0;
	for (uint32_t k = 0; k < sym_nvars(syms); k++) {
		Sym var = sym_var_at(syms, k);
		if (!is_bound(b->e, var) && sym_uses(syms, s, var)) {
			found = var;
			++*count;
		}
	}
	return found;
}

static char *print_range(const Binder *b, Sym var)
{
	SymTab *syms = graph_syms(b->g);
	Arena *scratch = b->e->ctx->scratch;
	int64_t lo, hi;
	sym_range(syms, var, &lo, &hi);
	const char *name = sym_name(syms, var);
	if (hi == SYM_INF)
		return arena_printf(scratch, "%s >= %" PRId64, name, lo);
	return arena_printf(scratch, "%" PRId64 " <= %s <= %" PRId64, lo, name, hi);
}

/* Gives var its value; input and dim are where the value was found. Returns false after an
 * error: the value is out of range. */
static bool bind_var(const Binder *b, Sym var, int64_t v, uint32_t input, uint32_t dim)
{
	SymTab *syms = graph_syms(b->g);
	EvalCtx *e = b->e;
	int64_t lo, hi, got = b->in[input].dim[dim];
	sym_range(syms, var, &lo, &hi);
	const char *name = sym_name(syms, var), *expected = NULL;
	if (v > hi)
		expected = arena_printf(e->ctx->scratch, "%s <= %" PRId64, name, hi);
	else if (v < lo)
		expected = arena_printf(e->ctx->scratch, "%s >= %" PRId64, name, lo);
	if (expected) {
		Sym whole = node_dim(b->g, b->g->input.data[input].node, dim);
		if (whole.i != var.i)
			expected = arena_printf(e->ctx->scratch, "%s with %s", sym_str(syms, whole),
			                        print_range(b, var));
		return bind_error(b, input, dim, expected, got);
	}
	e->sym[e->nsym] = var;
	e->value[e->nsym++] = v;
	return true;
}

/* Solves coef * var + rest = got where the dimension has one unknown. */
static bool solve_dim(const Binder *b, uint32_t input, uint32_t dim, bool *progress)
{
	SymTab *syms = graph_syms(b->g);
	EvalCtx *e = b->e;
	Sym s = node_dim(b->g, b->g->input.data[input].node, dim), coef, rest;
	uint32_t unknown;
	int64_t c, r, got = b->in[input].dim[dim], left;
	Sym var = unbound_var(b, s, &unknown);
	if (unknown != 1 || !sym_linear(syms, s, var, &coef, &rest))
		return true;
	if (!sym_eval(syms, coef, e->sym, e->value, e->nsym, &c) || c == 0 ||
	    !sym_eval(syms, rest, e->sym, e->value, e->nsym, &r) ||
	    __builtin_sub_overflow(got, r, &left))
		return true;
	if (left % c != 0)
		return bind_error(b, input, dim,
		                  arena_printf(e->ctx->scratch, "%s for an integer %s",
		                               sym_str(syms, s), sym_name(syms, var)),
		                  got);
	*progress = true;
	return bind_var(b, var, left / c, input, dim);
}

static bool solve_all(const Binder *b)
{
	for (bool progress = true; progress;) {
		progress = false;
		for (uint32_t k = 0; k < b->g->input.n; k++) {
			for (uint32_t d = 0; d < b->in[k].rank; d++)
				TRY(solve_dim(b, k, d, &progress));
		}
	}
	return true;
}

/* Whether all that is not known of s are sizes that nodes will find out. */
static bool found_later(const Binder *b, Sym s)
{
	SymTab *syms = graph_syms(b->g);
	for (uint32_t k = 0; k < sym_nvars(syms); k++) {
		Sym var = sym_var_at(syms, k);
		if (sym_var_kind(syms, var) != SYMVAR_UNBACKED && sym_uses(syms, s, var) &&
		    !is_bound(b->e, var))
			return false;
	}
	return true;
}

/* Checks that the extent equals what its expression says now. */
static bool check_dim(const Binder *b, uint32_t input, uint32_t dim)
{
	SymTab *syms = graph_syms(b->g);
	EvalCtx *e = b->e;
	Sym s = node_dim(b->g, b->g->input.data[input].node, dim);
	int64_t want, got = b->in[input].dim[dim];
	if (!sym_eval(syms, s, e->sym, e->value, e->nsym, &want))
		return found_later(b, s) ||
		       ctx_error(e->ctx, NULL,
		                 "input \"%s\" dimension %u: %s cannot be solved from the inputs",
		                 b->g->input.data[input].name, dim, sym_str(syms, s));
	if (want == got)
		return true;
	const char *expected =
		sym_is_const(syms, s, NULL)
			? arena_printf(e->ctx->scratch, "%" PRId64, want)
			: arena_printf(e->ctx->scratch, "%s = %" PRId64, sym_str(syms, s), want);
	return bind_error(b, input, dim, expected, got);
}

static bool check_kind(const Binder *b, uint32_t input)
{
	const Type *t = node_type(b->g, b->g->input.data[input].node);
	const Tensor *x = &b->in[input];
	const char *name = b->g->input.data[input].name;
	if (x->dtype != t->dtype)
		return ctx_error(b->e->ctx, NULL, "input \"%s\": expected dtype %s, got %s", name,
		                 dtype_name(t->dtype), dtype_name(x->dtype));
	if (x->rank != t->n)
		return ctx_error(b->e->ctx, NULL, "input \"%s\": expected %u dimensions, got %u",
		                 name, t->n, x->rank);
	return true;
}

/* Returns the values of the variables of a guard of g: s0 = 3 (input "x" dimension 0), s1 = 4
 * (...). The inputs are those of the graph that is run, also of a guard in a body. */
static const char *print_values(const EvalCtx *e, const Graph *g, Sym x, Sym y)
{
	const Graph *bound = e->bound ? e->bound : g;
	Text text;
	text_init(&text, e->ctx->scratch);
	for (uint32_t k = 0; k < e->nsym; k++) {
		if (!sym_uses(e->syms, x, e->sym[k]) && !sym_uses(e->syms, y, e->sym[k]))
			continue;
		text_printf(&text, "%s%s = %" PRId64 "%s", text.n ? ", " : "",
		            sym_name(e->syms, e->sym[k]), e->value[k],
		            graph_symbol_origin(bound, e->sym[k]));
	}
	return text.data;
}

static bool holds(GuardKind kind, int64_t x, int64_t y)
{
	switch (kind) {
	case GUARD_EQ: return x == y;
	case GUARD_NE: return x != y;
	case GUARD_LE: return x <= y;
	}
	return false;
}

static bool check_guard(EvalCtx *e, const Graph *g, const GraphGuard *u)
{
	static const char *const spelling[] = {
		[GUARD_EQ] = "=", [GUARD_NE] = "!=", [GUARD_LE] = "<="};
	int64_t x, y;
	TRY(eval_sym(e, u->a, &x) && eval_sym(e, u->b, &y));
	return holds(u->kind, x, y) ||
	       ctx_error(e->ctx, NULL,
			 "expected %s %s %s, got %" PRId64 " and %" PRId64 " for %s%s%s",
			 sym_str(e->syms, u->a), spelling[u->kind], sym_str(e->syms, u->b), x, y,
			 print_values(e, g, u->a, u->b), *u->why ? ": " : "", u->why);
}

/* Whether a size of the guard depends on data, and has no value yet. */
static bool waits(const EvalCtx *e, const GraphGuard *u)
{
	int64_t v;
	if (!sym_uses_kind(e->syms, u->a, SYMVAR_UNBACKED) &&
	    !sym_uses_kind(e->syms, u->b, SYMVAR_UNBACKED))
		return false;
	return !sym_eval(e->syms, u->a, e->sym, e->value, e->nsym, &v) ||
	       !sym_eval(e->syms, u->b, e->sym, e->value, e->nsym, &v);
}

bool interp_guards(EvalCtx *e, const Graph *g, uint32_t first)
{
	e->syms = graph_syms(g);
	for (uint32_t k = first; k < g->guard.n; k++)
		if (!waits(e, &g->guard.data[k]))
			TRY(check_guard(e, g, &g->guard.data[k]));
	return true;
}

bool interp_born(EvalCtx *e, Graph *g, Node n, Sym var, int64_t value)
{
	if (sym_kind(e->syms, var) != SYM_VAR || e->nsym == e->room)
		return ctx_error(e->ctx, node_where(g, n),
				 "the size %s cannot be given a value here", sym_str(e->syms, var));
	e->sym[e->nsym] = var;
	e->value[e->nsym++] = value;
	Binder b = {e, e->bound, e->given};
	for (uint32_t k = 0; e->bound && k < e->bound->input.n; k++)
		for (uint32_t d = 0; d < e->given[k].rank; d++)
			if (sym_uses(e->syms, node_dim(e->bound, e->bound->input.data[k].node, d),
				     var))
				TRY(check_dim(&b, k, d));
	for (uint32_t k = 0; k < g->guard.n; k++) {
		const GraphGuard *u = &g->guard.data[k];
		if ((sym_uses(e->syms, u->a, var) || sym_uses(e->syms, u->b, var)) && !waits(e, u))
			TRY(check_guard(e, g, u));
	}
	return true;
}

/* Makes room for all variables of the table. Keeps what the caller has bound. */
void interp_grow_symbols(EvalCtx *e)
{
	uint32_t room = e->nsym + sym_nvars(e->syms);
	Sym *sym = ARENA_ARRAY(e->arena, Sym, room);
	int64_t *value = ARENA_ARRAY(e->arena, int64_t, room);
	for (uint32_t k = 0; k < e->nsym; k++) {
		sym[k] = e->sym[k];
		value[k] = e->value[k];
	}
	e->sym = sym;
	e->value = value;
	e->room = room;
}

static bool bind(EvalCtx *e, Graph *g, const Tensor *input, uint32_t n)
{
	Binder b = {e, g, input};
	e->syms = graph_syms(g);
	e->bound = g;
	e->given = input;
	if (n != g->input.n)
		return ctx_error(e->ctx, NULL, "expected %u inputs, got %u", g->input.n, n);
	interp_grow_symbols(e);
	for (uint32_t k = 0; k < n; k++)
		TRY(check_kind(&b, k));
	TRY(solve_all(&b));
	for (uint32_t k = 0; k < n; k++) {
		for (uint32_t d = 0; d < input[k].rank; d++)
			TRY(check_dim(&b, k, d));
	}
	return interp_guards(e, g, 0);
}

bool interp_bind(EvalCtx *e, Graph *g, const Tensor *input, uint32_t n)
{
	return bind(e, g, input, n) || ctx_kind(e->ctx, REFUSAL_INPUT);
}
