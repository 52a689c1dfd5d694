#include "ir/sym/sym.h"

#include <string.h>

#include "ir/sym/priv.h"

SymTab *symtab_new(Ctx *ctx)
{
	SymTab *t = ARENA_NEW(ctx->arena, SymTab);
	t->ctx = ctx;
	intern_init(&t->table, ctx->arena);
	sym_scope_new(t);
	t->generation = 1;
	t->zero = sym_int(t, 0);
	t->one = sym_int(t, 1);
	return t;
}

uint32_t sym_scope_new(SymTab *t)
{
	SymScope s = {.named = {0}};
	intern_init(&s.names, t->ctx->arena);
	array_push(t->ctx->arena, &t->scope, s);
	return t->current = t->scope.n - 1;
}

uint32_t sym_scope(const SymTab *t)
{
	return t->current;
}

void sym_set_scope(SymTab *t, uint32_t scope)
{
	assert(scope < t->scope.n);
	t->current = scope;
}

void sym_check(const SymTab *t, Sym e)
{
	if (!e.i || e.i > t->node.n)
		ctx_bug(t->ctx, "sym: operand %u is not an expression of this table", e.i);
}

int64_t sym_floor(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

/* Returns the absolute value of v; of INT64_MIN, whose absolute value int64 does not hold, a
 * divisor, 2^62. */
static int64_t magnitude(int64_t v)
{
	return v == INT64_MIN ? (int64_t)1 << 62 : v < 0 ? -v : v;
}

int64_t sym_gcd(int64_t a, int64_t b)
{
	a = magnitude(a);
	b = magnitude(b);
	while (b) {
		int64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

static int64_t known_divisor(const SymTab *t, const SymNode *n)
{
	int64_t div = 0;
	switch (n->kind) {
	case SYM_CONST: return magnitude(n->value);
	case SYM_PRODUCT: return magnitude(n->value);
	case SYM_SUM:
	case SYM_MIN:
	case SYM_MAX:
	case SYM_MOD:
		for (uint32_t k = 0; k < n->nargs; k++)
			div = sym_gcd(div, sym_node(t, n->args[k])->div);
		return div;
	default: return 1;
	}
}

/* Fills in what a new node knows. Of a PRODUCT with a coefficient, sym_make changes the mono
 * afterwards. */
static void fill(SymTab *t, Sym e)
{
	SymNode *n = sym_node(t, e);
	n->has_mod = n->kind == SYM_MOD;
	for (uint32_t k = 0; k < n->nargs; k++) {
		const SymNode *arg = sym_node(t, n->args[k]);
		n->kinds |= arg->kinds;
		n->vars |= arg->vars;
		if (n->kind == SYM_PRODUCT)
			n->has_mod |= arg->has_mod;
	}
	n->mono = e;
	if (n->kind == SYM_PRODUCT) {
		const SymNode *first = sym_node(t, n->args[0]);
		n->value = first->kind == SYM_CONST ? first->value : 1;
	}
	n->div = known_divisor(t, n);
	sym_set_range(t, e);
}

static Sym new_node(SymTab *t, const Sym *key, uint32_t n, bool *fresh)
{
	Sym e = {intern(&t->table, key, n * sizeof *key, fresh)};
	if (*fresh)
		array_push(t->ctx->arena, &t->node, (SymNode){.kind = (uint8_t)key[0].i});
	return e;
}

Sym sym_make(SymTab *t, SymKind kind, const Sym *args, uint32_t n)
{
	Sym local[32], *key = local;
	if (n >= 32)
		key = ARENA_ARRAY(t->ctx->arena, Sym, n + 1);
	key[0].i = kind;
	memcpy(key + 1, args, n * sizeof *args);
	bool fresh;
	Sym e = new_node(t, key, n + 1, &fresh);
	if (!fresh)
		return e;
	sym_node(t, e)->nargs = n;
	sym_node(t, e)->args = (const Sym *)intern_key(&t->table, e.i) + 1;
	fill(t, e);
	if (kind == SYM_PRODUCT && sym_node(t, args[0])->kind == SYM_CONST) {
		Sym mono = n == 2 ? args[1] : sym_make(t, SYM_PRODUCT, args + 1, n - 1);
		sym_node(t, e)->mono = mono;
	}
	return e;
}

Sym sym_int(SymTab *t, int64_t v)
{
	uint64_t bits = (uint64_t)v;
	if (bits < SYM_SMALL && t->small[bits].i)
		return t->small[bits];
	Sym key[3] = {{SYM_CONST}, {(uint32_t)bits}, {(uint32_t)(bits >> 32)}};
	bool fresh;
	Sym e = new_node(t, key, 3, &fresh);
	if (fresh) {
		sym_node(t, e)->value = v;
		fill(t, e);
		Sym one = v == 1 ? e : sym_int(t, 1);
		sym_node(t, e)->mono = one;
	}
	if (bits < SYM_SMALL)
		t->small[bits] = e;
	return e;
}

Sym sym_make_real(SymTab *t, int64_t bits)
{
	uint64_t u = (uint64_t)bits;
	Sym key[3] = {{SYM_REAL_CONST}, {(uint32_t)u}, {(uint32_t)(u >> 32)}};
	bool fresh;
	Sym e = new_node(t, key, 3, &fresh);
	if (fresh) {
		sym_node(t, e)->value = bits;
		fill(t, e);
	}
	return e;
}

static Sym new_var(SymTab *t, SymVar v)
{
	uint32_t index = t->var.n;
	Sym key[2] = {{SYM_VAR}, {index}};
	bool fresh;
	v.sym = new_node(t, key, 2, &fresh);
	array_push(t->ctx->arena, &t->var, v);
	SymNode *n = sym_node(t, v.sym);
	n->value = index;
	n->kinds = (uint8_t)(1u << v.kind);
	n->vars = (uint64_t)1 << index % 64;
	fill(t, v.sym);
	return v.sym;
}

Sym sym_var(SymTab *t, const char *name, SymVarKind kind, int64_t lo, int64_t hi)
{
	if (lo > hi)
		ctx_bug(t->ctx, "sym: the range of %s is empty", name);
	SymVar v = {.name = arena_strdup(t->ctx->arena, name), .kind = kind, .lo = lo, .hi = hi};
	if (kind == SYMVAR_AXIS)
		return new_var(t, v);
	bool fresh;
	SymScope *s = &t->scope.data[t->current];
	intern(&s->names, name, strlen(name), &fresh);
	if (!fresh)
		ctx_bug(t->ctx, "sym: a second variable %s", name);
	Sym e = new_var(t, v);
	array_push(t->ctx->arena, &s->named, e);
	return e;
}

Sym sym_find(const SymTab *t, const char *name, uint32_t len)
{
	const SymScope *s = &t->scope.data[t->current];
	uint32_t id = intern_find(&s->names, name, len);
	return id ? s->named.data[id - 1] : (Sym){0};
}

Sym sym_axis(SymTab *t, const char *name, Sym extent)
{
	sym_check(t, extent);
	SymVar v = {.name = arena_strdup(t->ctx->arena, name), .kind = SYMVAR_AXIS, .hi = SYM_INF};
	v.extent = extent;
	return new_var(t, v);
}

static SymVar *var_of(const SymTab *t, Sym e)
{
	sym_check(t, e);
	const SymNode *n = sym_node(t, e);
	if (n->kind != SYM_VAR)
		ctx_bug(t->ctx, "sym: %s is not a variable", sym_str(t, e));
	return &t->var.data[n->value];
}

bool sym_rename(SymTab *t, Sym var, const char *name)
{
	SymScope *s = &t->scope.data[t->current];
	if (sym_find(t, name, (uint32_t)strlen(name)).i)
		return false;
	var_of(t, var)->name = arena_strdup(t->ctx->arena, name);
	intern_init(&s->names, t->ctx->arena);
	for (uint32_t k = 0; k < s->named.n; k++) {
		const char *each = var_of(t, s->named.data[k])->name;
		intern(&s->names, each, strlen(each), NULL);
	}
	return true;
}

bool sym_bound(SymTab *t, Sym var, int64_t lo, int64_t hi)
{
	SymVar *v = var_of(t, var);
	const SymNode *n = sym_node(t, var);
	if (lo > n->hi || hi < n->lo || lo > hi)
		return false;
	if (lo <= v->lo && hi >= v->hi)
		return true;
	v->lo = lo > v->lo ? lo : v->lo;
	v->hi = hi < v->hi ? hi : v->hi;
	t->generation++;
	for (uint32_t i = 1; i <= t->node.n; i++) /* arguments precede their users */
		sym_set_range(t, (Sym){i});
	return true;
}

void sym_set_hint(SymTab *t, Sym var, int64_t hint)
{
	var_of(t, var)->hint = hint;
}

Sym sym_give_up(SymTab *t, const char *op, Sym a, Sym b)
{
	if (t->unknown.i)
		return t->unknown;
	t->unknown = new_var(t, (SymVar){.name = "unknown",
					 .kind = SYMVAR_UNBACKED,
					 .lo = -SYM_INF,
					 .hi = SYM_INF});
	ctx_error(t->ctx, NULL, "the size %s(%s, %s) leaves 64-bit integers", op, sym_str(t, a),
	        sym_str(t, b));
	return t->unknown;
}

bool sym_gave_up(const SymTab *t, Sym e)
{
	return t->unknown.i && e.i == t->unknown.i;
}

bool sym_is_const(const SymTab *t, Sym e, int64_t *value)
{
	sym_check(t, e);
	const SymNode *n = sym_node(t, e);
	if (n->kind != SYM_CONST)
		return false;
	if (value)
		*value = n->value;
	return true;
}

int64_t sym_const_or(const SymTab *t, Sym e, int64_t otherwise)
{
	int64_t v;
	return sym_is_const(t, e, &v) ? v : otherwise;
}

int64_t sym_const(const SymTab *t, Sym e)
{
	int64_t v;
	if (!sym_is_const(t, e, &v))
		ctx_bug(t->ctx, "sym: %s is no number", sym_str(t, e));
	return v;
}

bool sym_is(const SymTab *t, Sym e, int64_t value)
{
	int64_t v;
	return sym_is_const(t, e, &v) && v == value;
}

bool sym_divides(const SymTab *t, int64_t k, Sym e)
{
	sym_check(t, e);
	const SymNode *n = sym_node(t, e);
	if (!n->div)
		return true;
	if (n->kind == SYM_CONST)
		return k && (k == -1 || n->value % k == 0);
	return k && n->div % magnitude(k) == 0 && k != INT64_MIN;
}

void sym_range(const SymTab *t, Sym e, int64_t *lo, int64_t *hi)
{
	sym_check(t, e);
	*lo = sym_node(t, e)->lo;
	*hi = sym_node(t, e)->hi;
}

SymKind sym_kind(const SymTab *t, Sym e)
{
	sym_check(t, e);
	return (SymKind)sym_node(t, e)->kind;
}

const char *sym_name(const SymTab *t, Sym var)
{
	return var_of(t, var)->name;
}

SymVarKind sym_var_kind(const SymTab *t, Sym var)
{
	return var_of(t, var)->kind;
}

Sym sym_axis_extent(const SymTab *t, Sym axis)
{
	return var_of(t, axis)->extent;
}

uint32_t sym_nargs(const SymTab *t, Sym e)
{
	sym_check(t, e);
	return sym_node(t, e)->nargs;
}

Sym sym_arg(const SymTab *t, Sym e, uint32_t k)
{
	if (k >= sym_nargs(t, e))
		ctx_bug(t->ctx, "sym: %s has no argument %u", sym_str(t, e), k);
	return sym_node(t, e)->args[k];
}

uint32_t sym_nvars(const SymTab *t)
{
	return t->scope.data[t->current].named.n;
}

Sym sym_var_at(const SymTab *t, uint32_t k)
{
	const SymScope *s = &t->scope.data[t->current];
	return k < s->named.n ? s->named.data[k] : (Sym){0};
}
