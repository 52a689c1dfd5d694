#include "ir/graph/graph.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/visible.h"

/* Slots of the empty attribute tuple: any op may ask for its k-th attribute. */
static const Attr no_attrs[MAX_ARGS];

Ir *ir_new(Ctx *ctx)
{
	Ir *ir = ARENA_NEW(ctx->arena, Ir);
	ir->ctx = ctx;
	ir->syms = symtab_new(ctx);
	ir->builtins = ARENA_NEW(ctx->arena, struct Builtins *);
	ir->collectives = ARENA_NEW(ctx->arena, struct Collectives *);
	ir->ranks = ARENA_NEW(ctx->arena, int64_t);
	ir->comm = ARENA_NEW(ctx->arena, const struct WeftComm *);
	intern_init(&ir->strings, ctx->arena);
	intern_init(&ir->types, ctx->arena);
	intern_init(&ir->attrs, ctx->arena);
	intern_init(&ir->locs, ctx->arena);
	array_push(ctx->arena, &ir->type, (Type){0});
	array_push(ctx->arena, &ir->attr, no_attrs);
	array_push(ctx->arena, &ir->nattr, 0);
	array_push(ctx->arena, &ir->constant, (Const){0});
	return ir;
}

/* ---- types ---- */

/* Interns a type. Its key is its dtype, its length, and its dims or elements (both one uint32_t
 * each). */
static TypeId type_intern(Ir *ir, DType dtype, uint32_t n, const void *items)
{
	uint32_t small[2 + MAX_RANK], *key = small;
	if (n > MAX_RANK)
		key = ARENA_ARRAY(ir->ctx->scratch, uint32_t, (size_t)n + 2);
	key[0] = (uint32_t)dtype;
	key[1] = n;
	if (n)
		memcpy(key + 2, items, n * sizeof *key);
	bool fresh;
	uint32_t id = intern(&ir->types, key, (n + 2) * sizeof *key, &fresh);
	if (fresh) {
		Type t = {dtype, n, {NULL}};
		const uint32_t *copy = intern_key(&ir->types, id);
		if (dtype == DT_none)
			t.elem = (const TypeId *)(copy + 2);
		else
			t.dim = (const Sym *)(copy + 2);
		array_push(ir->ctx->arena, &ir->type, t);
	}
	return (TypeId){id};
}

TypeId ir_type(Ir *ir, DType dtype, uint32_t rank, const Sym *dim)
{
	if (rank > MAX_RANK || dtype == DT_none || dtype >= DT_COUNT)
		ctx_bug(ir->ctx, "type %s of rank %u", dtype_name(dtype), rank);
	return type_intern(ir, dtype, rank, dim);
}

TypeId ir_type_ints(Ir *ir, DType dtype, uint32_t rank, const int64_t *dim)
{
	Sym s[MAX_RANK];
	for (uint32_t k = 0; k < rank && k < MAX_RANK; k++)
		s[k] = sym_int(ir->syms, dim[k]);
	return ir_type(ir, dtype, rank, s);
}

TypeId ir_tuple(Ir *ir, uint32_t n, const TypeId *elem)
{
	return type_intern(ir, DT_none, n, elem);
}

const Type *ir_type_of(const Ir *ir, TypeId t)
{
	return &ir->type.data[t.i];
}

Sym type_numel(const Ir *ir, TypeId id)
{
	const Type *t = ir_type_of(ir, id);
	Sym n = sym_int(ir->syms, 1);
	for (uint32_t k = 0; t->dtype != DT_none && k < t->n; k++)
		n = sym_mul(ir->syms, n, t->dim[k]);
	return n;
}

/* ---- attributes ---- */

Attr attr_int(Ir *ir, int64_t v)
{
	return attr_sym(sym_int(ir->syms, v));
}

Attr attr_str(Ir *ir, const char *s)
{
	return (Attr){ATTR_str, 0, {.str = intern_str(&ir->strings, s)}};
}

DType attr_weak_dtype(const Attr *a)
{
	switch (a->kind) {
	case ATTR_bool:
		return DT_bool;
	case ATTR_int:
		return DT_i64;
	case ATTR_float:
		return DT_f32;
	case ATTR_complex:
		return DT_c64;
	default:
		return DT_none;
	}
}

static size_t attr_list_bytes(const Attr *a)
{
	switch (a->kind) {
	case ATTR_ints:
		return a->n * sizeof(Sym);
	case ATTR_floats:
		return a->n * sizeof(double);
	case ATTR_bools:
		return a->n * sizeof(bool);
	case ATTR_complex: /* the part that the fixed one has no room for */
		return sizeof a->z.im;
	default:
		return 0;
	}
}

/* Returns f, and one NaN for every NaN, so that equal attributes have equal bytes. */
static double attr_canon_float(double f)
{
	return isnan(f) ? (double)NAN : f;
}

static uint64_t float_bits(double f)
{
	uint64_t w;
	memcpy(&w, &f, sizeof w);
	return w;
}

static uint64_t attr_word(Ir *ir, const Attr *a)
{
	switch (a->kind) {
	case ATTR_bool:
		return a->b;
	case ATTR_int:
		return a->s.i;
	case ATTR_float:
		return float_bits(attr_canon_float(a->f));
	case ATTR_complex:
		return float_bits(attr_canon_float(a->z.re));
	case ATTR_str:
		return intern(&ir->strings, a->str, (uint32_t)strlen(a->str) + 1, NULL);
	case ATTR_dtype:
		return (uint64_t)a->dtype;
	case ATTR_graph:
		return (uintptr_t)a->graph;
	case ATTR_const:
		return a->c.i;
	default:
		return 0;
	}
}

static const void *attr_list(const Attr *a)
{
	return a->kind == ATTR_ints     ? (const void *)a->ints
	       : a->kind == ATTR_floats ? (const void *)a->floats
	       : a->kind == ATTR_complex ? (const void *)&a->z.im
					: (const void *)a->bools;
}

/* Copies a tuple of attributes. The contents of lists follow the fixed part of the key, in slot
 * order; the copy points into the key. */
static const Attr *attr_tuple(Ir *ir, uint32_t n, const Attr *a, const char *lists)
{
	Attr *copy = arena_dup(ir->ctx->arena, a, n * sizeof *a);
	for (uint32_t k = 0; k < n; k++) {
		size_t bytes = attr_list_bytes(&copy[k]);
		switch (copy[k].kind) {
		case ATTR_str:
			copy[k].str = intern_str(&ir->strings, a[k].str);
			break;
		case ATTR_float:
			copy[k].f = attr_canon_float(a[k].f);
			break;
		case ATTR_complex:
			copy[k] = attr_complex(attr_canon_float(a[k].z.re),
					       attr_canon_float(a[k].z.im));
			break;
		case ATTR_ints:
			copy[k].ints = (const Sym *)(const void *)lists;
			break;
		case ATTR_floats:
			copy[k].floats = (const double *)(const void *)lists;
			break;
		case ATTR_bools:
			copy[k].bools = (const bool *)lists;
			break;
		default:
			break;
		}
		lists += (bytes + 7) & ~(size_t)7;
	}
	return copy;
}

AttrId ir_attrs(Ir *ir, uint32_t n, const Attr *a)
{
	bool empty = true;
	size_t len = 16 * (size_t)n;
	for (uint32_t k = 0; k < n && n <= MAX_ARGS; k++) {
		empty = empty && a[k].kind == ATTR_none;
		len += (attr_list_bytes(&a[k]) + 7) & ~(size_t)7;
	}
	if (n > MAX_ARGS || len > UINT32_MAX)
		ctx_bug(ir->ctx, "attribute tuple of %u slots", n);
	if (empty)
		return (AttrId){0};
	ArenaMark mark = arena_mark(ir->ctx->scratch);
	char *key = arena_alloc(ir->ctx->scratch, len), *list = key + 16 * (size_t)n;
	for (uint32_t k = 0; k < n; k++) {
		uint32_t head[2] = {(uint32_t)a[k].kind, a[k].n};
		uint64_t word = attr_word(ir, &a[k]);
		size_t bytes = attr_list_bytes(&a[k]);
		memcpy(key + 16 * (size_t)k, head, 8);
		memcpy(key + 16 * (size_t)k + 8, &word, 8);
		if (bytes)
			memcpy(list, attr_list(&a[k]), bytes);
		for (uint32_t i = 0; a[k].kind == ATTR_floats && i < a[k].n; i++)
			((double *)(void *)list)[i] = attr_canon_float(a[k].floats[i]);
		list += (bytes + 7) & ~(size_t)7;
	}
	bool fresh;
	uint32_t id = intern(&ir->attrs, key, (uint32_t)len, &fresh);
	arena_release(ir->ctx->scratch, mark);
	if (fresh) {
		const char *kept = intern_key(&ir->attrs, id);
		array_push(ir->ctx->arena, &ir->attr, attr_tuple(ir, n, a, kept + 16 * (size_t)n));
		array_push(ir->ctx->arena, &ir->nattr, n);
	}
	return (AttrId){id};
}

const Attr *ir_attr(const Ir *ir, AttrId id, uint32_t slot)
{
	return &ir->attr.data[id.i][slot];
}

uint32_t ir_nattr(const Ir *ir, AttrId id)
{
	return ir->nattr.data[id.i];
}

bool attr_equal(const Attr *a, const Attr *b)
{
	if (a->kind != b->kind || a->n != b->n)
		return false;
	size_t bytes = attr_list_bytes(a);
	switch (a->kind) {
	case ATTR_none:
		return true;
	case ATTR_bool:
		return a->b == b->b;
	case ATTR_int:
		return a->s.i == b->s.i;
	case ATTR_float:
		return float_bits(a->f) == float_bits(b->f);
	case ATTR_complex:
		return float_bits(a->z.re) == float_bits(b->z.re) &&
		       float_bits(a->z.im) == float_bits(b->z.im);
	case ATTR_str:
		return strcmp(a->str, b->str) == 0;
	case ATTR_dtype:
		return a->dtype == b->dtype;
	case ATTR_graph:
		return a->graph == b->graph;
	case ATTR_const:
		return a->c.i == b->c.i;
	case ATTR_ints:
	case ATTR_floats:
	case ATTR_bools:
		return bytes == 0 || memcmp(attr_list(a), attr_list(b), bytes) == 0;
	}
	return false;
}

/* ---- locations ---- */

#define NUMBERED UINT32_C(0x80000000) /* the rest is an index in Ir.node_loc */

LocId ir_loc(Ir *ir, const char *text)
{
	Text clean;
	while (text && *text && (unsigned char)*text <= ' ')
		text++;
	size_t n = text ? strlen(text) : 0;
	while (n && (unsigned char)text[n - 1] <= ' ')
		n--;
	if (!n)
		return (LocId){0};
	text_init(&clean, ir->ctx->scratch);
	text_visible(&clean, arena_strndup(ir->ctx->scratch, text, n), "");
	return (LocId){intern(&ir->locs, clean.data, (uint32_t)clean.n + 1, NULL)};
}

const char *ir_loc_text(const Ir *ir, LocId loc)
{
	if (loc.i & NUMBERED)
		loc = ir->node_loc.data[loc.i & ~NUMBERED].line;
	return loc.i ? intern_key(&ir->locs, loc.i) : "";
}

uint32_t ir_loc_node(const Ir *ir, LocId loc)
{
	return loc.i & NUMBERED ? ir->node_loc.data[loc.i & ~NUMBERED].node : 0;
}

LocId ir_loc_of_node(Ir *ir, LocId loc, uint32_t node)
{
	if (loc.i & NUMBERED)
		loc = ir->node_loc.data[loc.i & ~NUMBERED].line;
	array_push(ir->ctx->arena, &ir->node_loc, (NodeLoc){loc, node});
	return (LocId){NUMBERED | (ir->node_loc.n - 1)};
}

size_t ir_loc_line(const char *text)
{
	for (const char *p = text; (p = strstr(p, " in ")); p++)
		if (p > text && p[-1] >= '0' && p[-1] <= '9')
			return (size_t)(p - text);
	return strlen(text);
}

/* ---- constants ---- */

static bool begins(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

const char *input_role(Arena *a, InputKind kind, const char *name, DType d, uint32_t rank)
{
	if (!strcmp(name, RANDOM_STATE))
		return "rng";
	switch (kind) {
	case INPUT_USER:
		return d == DT_f64 && !rank     ? arena_printf(a, "scalar:%s", name)
		       : !strcmp(name, "label") ? "label"
						: "input";
	case INPUT_PARAM:
		return "param";
	default:
		if (!strcmp(name, "weft.step") || !strcmp(name, "weft.good_steps"))
			return "counter";
		return begins(name, "state.") || begins(name, "optimizer.") ||
				       begins(name, "grad.") || !strcmp(name, "weft.loss_scale")
			       ? "optimizer"
			       : "buffer";
	}
}

const char *output_role(const char *name)
{
	const bool metric = !strcmp(name, "grad_norm") || !strcmp(name, "skipped");
	return !strcmp(name, "loss") ? "loss" : metric ? "metric" : "output";
}

const char **ir_const_aliases(const Ir *ir, Arena *arena)
{
	const char **list = NULL;
	for (uint32_t k = 1; k < ir->constant.n; k++) {
		const Const *c = &ir->constant.data[k];
		if (!c->same_as.i)
			continue;
		list = list ? list : ARENA_ARRAY(arena, const char *, ir->constant.n);
		const char **of = &list[c->same_as.i];
		*of = arena_printf(arena, "%s%s\n", *of ? *of : "", c->name);
	}
	return list;
}

ConstId ir_const(Ir *ir, Const c)
{
	c.name = intern_str(&ir->strings, c.name ? c.name : "");
	c.dim = arena_dup(ir->ctx->arena, c.dim, c.rank * sizeof *c.dim);
	array_push(ir->ctx->arena, &ir->constant, c);
	return (ConstId){ir->constant.n - 1};
}

const Const *ir_const_of(const Ir *ir, ConstId id)
{
	return &ir->constant.data[id.i];
}

ConstId const_root(const Ir *ir, ConstId id)
{
	while (ir->constant.data[id.i].view_of.i)
		id = ir->constant.data[id.i].view_of;
	return id;
}

bool const_requires_grad(const Ir *ir, ConstId id)
{
	const Const *c = ir_const_of(ir, id);
	return c->is_param && !c->is_buffer && !c->frozen && dtype_is_inexact(c->dtype);
}

const char *const_holder(const Ir *ir, ConstId id)
{
	const ConstId holder = ir_const_of(ir, id)->holder;
	return holder.i ? ir_const_of(ir, holder)->name : NULL;
}

bool const_is_replaceable(const Ir *ir, ConstId id)
{
	const Const *c = ir_const_of(ir, const_root(ir, id));
	return c->is_param || c->recipe;
}

bool type_uses(const Ir *ir, TypeId id, Sym var)
{
	const Type *t = id.i ? ir_type_of(ir, id) : NULL;
	for (uint32_t k = 0; t && k < t->n; k++)
		if (t->dtype == DT_none ? type_uses(ir, t->elem[k], var)
					: sym_uses(ir->syms, t->dim[k], var))
			return true;
	return false;
}

void type_print(const Ir *ir, TypeId id, Text *out)
{
	const Type *t = ir_type_of(ir, id);
	bool tuple = t->dtype == DT_none;
	if (!tuple)
		text_add(out, dtype_name(t->dtype));
	text_char(out, tuple ? '(' : '[');
	for (uint32_t k = 0; k < t->n; k++) {
		text_add(out, k ? ", " : "");
		if (tuple)
			type_print(ir, t->elem[k], out);
		else
			sym_print(ir->syms, t->dim[k], out);
	}
	text_char(out, tuple ? ')' : ']');
}

const char *type_str(const Ir *ir, TypeId id)
{
	Text t;
	text_init(&t, ir->ctx->scratch);
	type_print(ir, id, &t);
	return t.data;
}
