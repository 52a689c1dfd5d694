/* The process-wide cache of scalar functions: instances are built on first use under one lock. */
#include "ir/scalar/scalar.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "ir/op/op.h"
#include "ir/scalar/priv.h"

/* What a key stands for. */
typedef struct {
	enum { SLOT_NEW, SLOT_BUILDING, SLOT_DONE } state;
	const ScFn *fn; /* NULL: there is none */
} Slot;

static struct {
	pthread_mutex_t lock;
	Arena *arena; /* never freed: functions are handed out for good */
	Intern keys;
	ARRAY(Slot) slot; /* by key id - 1 */
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

const char *sc_name(ScOp op)
{
	static const char *const name[] = {
#define X(n, operands) #n,
		SC_OPS(X)
#undef X
	};
	return op < SC_COUNT ? name[op] : "?";
}

uint32_t sc_arity(ScOp op)
{
	static const uint8_t arity[] = {
#define X(n, operands) operands,
		SC_OPS(X)
#undef X
	};
	return op < SC_COUNT ? arity[op] : 0;
}

Arena *scalar_arena(void)
{
	return cache.arena;
}

static void lock_cache(void)
{
	pthread_mutex_lock(&cache.lock);
}

static void unlock_cache(void)
{
	pthread_mutex_unlock(&cache.lock);
}

static void make_cache(void)
{
	if (cache.arena)
		return;
	cache.arena = arena_new(NULL);
	if (!cache.arena)
		arena_out_of_memory();
	intern_init(&cache.keys, cache.arena);
	pthread_atfork(lock_cache, unlock_cache, unlock_cache);
}

/* A question to the cache. */
typedef struct {
	Op op;
	const char *name;
	uint32_t nin, deriv;
	DType in[4];
} Query;

/* A call of `find` with the answer. */
typedef struct {
	const ScFn *(*find)(const Query *);
	const Query *q;
	const ScFn *found;
} CacheCall;

static void find_in_cache(void *arg)
{
	CacheCall *a = arg;
	make_cache();
	a->found = a->find(a->q);
}

/* Finds or builds a function under the lock. Without memory, what was being built is forgotten,
 * and built by whoever asks next. */
static const ScFn *ask(const ScFn *(*find)(const Query *), const Query *q)
{
	CacheCall a = {.find = find, .q = q};
	lock_cache();
	const bool ok = arena_try(find_in_cache, &a);
	for (uint32_t k = 0; !ok && k < cache.slot.n; k++)
		if (cache.slot.data[k].state == SLOT_BUILDING)
			cache.slot.data[k].state = SLOT_NEW;
	unlock_cache();
	if (!ok)
		arena_out_of_memory();
	return a.found;
}

/* Kind and name, each with its NUL, and the dtypes. */
typedef struct {
	size_t n;
	char text[128];
} CacheKey;

static void key_add(CacheKey *key, const void *part, size_t n)
{
	assert(n <= sizeof key->text - key->n);
	memcpy(key->text + key->n, part, n);
	key->n += n;
}

static CacheKey key_of(const char *kind, const char *name, const DType *in, uint32_t nin)
{
	CacheKey key;
	key.n = 0;
	key_add(&key, kind, strlen(kind) + 1);
	key_add(&key, name, strlen(name) + 1);
	key_add(&key, in, nin * sizeof *in);
	return key;
}

/* Returns where the function of this key is kept; sets *fresh if it has to be built, and then
 * told by slot_fill. Building may add keys; who asks for what is being built gets none. */
static uint32_t slot_of(const CacheKey *key, bool *fresh)
{
	uint32_t id = intern(&cache.keys, key->text, key->n, NULL);
	while (cache.slot.n < id)
		array_push(cache.arena, &cache.slot, (Slot){0});
	Slot *s = &cache.slot.data[id - 1];
	*fresh = s->state == SLOT_NEW;
	if (*fresh)
		s->state = SLOT_BUILDING;
	return id - 1;
}

static void slot_fill(uint32_t k, const ScFn *f)
{
	cache.slot.data[k] = (Slot){SLOT_DONE, f};
}

const ScFn *scalar_by_name(const char *name)
{
	const ScFn *found = NULL;
	lock_cache();
	for (uint32_t k = 0; !found && k < cache.slot.n; k++)
		if (cache.slot.data[k].fn && !strcmp(cache.slot.data[k].fn->name, name))
			found = cache.slot.data[k].fn;
	unlock_cache();
	return found;
}

static LibClass class_of(DType t)
{
	if (t == DT_f32)
		return LIB_F32;
	if (t == DT_f64)
		return LIB_F64;
	if (t == DT_bool)
		return LIB_BOOL;
	return !dtype_is_int(t) ? 0 : dtype_is_signed(t) ? LIB_SINT : LIB_UINT;
}

static const LibDef *find_def(const char *name, DType t)
{
	LibClass cls = class_of(t);
	for (uint32_t k = 0; lib_lists[k]; k++)
		for (const LibDef *d = lib_lists[k]; d->name; d++)
			if ((d->cls & cls) && !strcmp(d->name, name))
				return d;
	return NULL;
}

/* Splits "x, y" into names; returns the count. */
static uint32_t split_names(const char *list, const char **name)
{
	uint32_t n = 0;
	for (const char *s = list; *s && n < 4; n++) {
		size_t len = strcspn(s, ", ");
		name[n] = arena_strndup(cache.arena, s, len);
		s += len;
		s += strspn(s, ", ");
	}
	return n;
}

/* Builds an instance. Its compute dtype is that of the last operand (a select starts with a
 * bool). */
static const ScFn *build_lib(const LibDef *d, const DType *in, uint32_t nin, const char **why)
{
	const char *param[4];
	if (nin == 0 || split_names(d->params, param) != nin)
		return NULL;
	DType t = in[nin - 1];
	const char *name = arena_printf(cache.arena, "%s_%s", d->name, dtype_name(t));
	return scalar_build(name, d->text, nin, param, in, t, why);
}

static const ScFn *lib_fn(const LibDef *d, const DType *in, uint32_t nin)
{
	bool fresh;
	const CacheKey key = key_of("lib", d->name, in, nin);
	uint32_t k = slot_of(&key, &fresh);
	if (fresh)
		slot_fill(k, build_lib(d, in, nin, NULL));
	return cache.slot.data[k].fn;
}

/* Builds a text of the op table over the op's operand names, and y for a derivative. */
static const ScFn *build_op(Op op, const char *name, const char *text, const DType *in,
                            uint32_t nin, DType T)
{
	const Schema *s = op_schema(op);
	const char *param[4];
	uint32_t n = 0;
	for (uint32_t k = 0; k < s->narg && n < 4; k++)
		if (s->arg[k].kind == ARG_tensor)
			param[n++] = s->arg[k].name;
	if (n < nin && n < 4)
		param[n++] = "y";
	return n == nin ? scalar_build(name, text, nin, param, in, T, NULL) : NULL;
}

static const ScFn *op_fn(Op op, const DType *in, uint32_t nin)
{
	const OpInfo *info = op_info(op);
	if (!info->scalar)
		return NULL;
	bool fresh;
	const CacheKey key = key_of("op", op_name(op), in, nin);
	uint32_t k = slot_of(&key, &fresh);
	if (fresh) {
		DType t = in[nin - 1];
		char *name = arena_printf(cache.arena, "%s_%s", op_name(op), dtype_name(t));
		slot_fill(k, build_op(op, name, info->scalar, in, nin, t));
	}
	return cache.slot.data[k].fn;
}

const ScFn *scalar_named(const char *name, const DType *in, uint32_t nin, bool *expand)
{
	const LibDef *d = nin ? find_def(name, in[nin - 1]) : NULL;
	const ScFn *f = d ? lib_fn(d, in, nin) : NULL;
	*expand = d && d->expand;
	if (f)
		return f;
	Op op = op_find(name);
	return op != OP_none && op_kind(op) == OP_SCALAR ? op_fn(op, in, nin) : NULL;
}

static const ScFn *find_op(const Query *q)
{
	return op_fn(q->op, q->in, q->nin);
}

const ScFn *scalar_fn(Op op, const DType *in, uint32_t nin)
{
	if (nin == 0 || nin > 4 || op_kind(op) != OP_SCALAR)
		return NULL;
	for (uint32_t k = 0; k < nin; k++)
		if (!class_of(in[k]))
			return NULL; /* storage dtypes are converted by loads */
	Query q = {.op = op, .nin = nin};
	memcpy(q.in, in, nin * sizeof *in);
	return ask(find_op, &q);
}

static const ScFn *find_lib(const Query *q)
{
	const char *param[4];
	const LibDef *d = find_def(q->name, q->in[0]);
	return d ? lib_fn(d, q->in, split_names(d->params, param)) : NULL;
}

const ScFn *scalar_lib(const char *name, DType t)
{
	Query q = {.name = name, .in = {t, t, t, t}};
	return class_of(t) ? ask(find_lib, &q) : NULL;
}

ScIns scalar_single(const ScFn *fn)
{
	const ScIns none = {.op = SC_const};
	if (!fn || fn->nins != fn->nparam + 1)
		return none;
	const ScIns *last = &fn->ins[fn->nparam];
	if (last->nin != fn->nparam)
		return none;
	for (uint32_t i = 0; i < last->nin; i++)
		if (fn->ins[last->in[i]].op != SC_param || fn->ins[last->in[i]].k != i)
			return none;
	return *last;
}

DType sc_dot_acc(ScOp op)
{
	return op == SC_dot2_bf16 ? DT_f32 : DT_i32;
}

static const ScFn *find_dot(const Query *q)
{
	const LibDef *d = find_def(q->name, q->in[2]);
	return d ? lib_fn(d, q->in, 3) : NULL;
}

const ScFn *scalar_dot(ScOp op)
{
	Query q = {.name = sc_name(op), .in = {DT_u32, DT_u32, sc_dot_acc(op)}};
	return ask(find_dot, &q);
}

const ScFn *scalar_round(DType d)
{
	char name[24];
	snprintf(name, sizeof name, "round_%s", dtype_name(d));
	return scalar_lib(name, DT_f32);
}

/* Finds or builds a derivative. in: of the operands and the result. */
static const ScFn *find_deriv(const Query *q)
{
	bool fresh;
	const char kind[] = {'d', (char)('0' + q->deriv), '\0'};
	const uint32_t nin = q->nin;
	const CacheKey key = key_of(kind, op_name(q->op), q->in, nin);
	uint32_t slot = slot_of(&key, &fresh);
	if (fresh) {
		DType t = q->in[nin - 1];
		char *name = arena_printf(cache.arena, "d%u_%s_%s", q->deriv, op_name(q->op),
					  dtype_name(t));
		slot_fill(slot, build_op(q->op, name, op_info(q->op)->deriv[q->deriv], q->in,
					 nin + 1, t));
	}
	return cache.slot.data[slot].fn;
}

const ScFn *scalar_deriv(Op op, uint32_t k, const DType *in, uint32_t nin)
{
	const OpInfo *info = op_info(op);
	if (nin == 0 || nin > 3 || k >= nin || !info->deriv[k])
		return NULL;
	Query q = {.op = op, .nin = nin, .deriv = k};
	memcpy(q.in, in, nin * sizeof *in);
	q.in[nin] = info->result != DT_none ? info->result : in[nin - 1];
	return ask(find_deriv, &q);
}

static bool is_real(DType d)
{
	return d != DT_none && !dtype_is_complex(d);
}

static const ScFn *find_convert(const Query *q)
{
	const char *x = "x";
	bool fresh;
	const CacheKey key = key_of("convert", "", q->in, 2);
	uint32_t k = slot_of(&key, &fresh);
	if (fresh) {
		const char *from = dtype_name(q->in[0]), *to = dtype_name(q->in[1]);
		char *name = arena_printf(cache.arena, "convert_%s_%s", from, to);
		char *text = arena_printf(cache.arena, "convert[%s](x)", to);
		slot_fill(k, scalar_build(name, text, 1, &x, q->in, q->in[1], NULL));
	}
	return cache.slot.data[k].fn;
}

const ScFn *scalar_convert(DType from, DType to)
{
	Query q = {.in = {from, to}};
	return is_real(from) && is_real(to) ? ask(find_convert, &q) : NULL;
}

/* Returns the name of the type whose bits a value has. Bools have no bits of their own. */
static const char *bits_name(DType d)
{
	return dtype_name(d == DT_bool ? DT_u8 : d);
}

static const ScFn *find_bitcast(const Query *q)
{
	DType from = q->in[0], to = q->in[1], param = dtype_compute(from),
	      result = dtype_compute(to);
	const char *x = "x";
	bool fresh;
	const CacheKey key = key_of("bitcast", "", q->in, 2);
	uint32_t k = slot_of(&key, &fresh);
	if (fresh) {
		char *name = arena_printf(cache.arena, "bitcast_%s_%s", dtype_name(from),
					  dtype_name(to));
		char *text = arena_printf(cache.arena, "convert[%s](bitcast[%s](convert[%s](x)))",
		                          dtype_name(result), bits_name(to), bits_name(from));
		slot_fill(k, scalar_build(name, text, 1, &x, &param, result, NULL));
	}
	return cache.slot.data[k].fn;
}

const ScFn *scalar_bitcast(DType from, DType to)
{
	Query q = {.in = {from, to}};
	bool same_size = is_real(from) && is_real(to) && dtype_size(from) == dtype_size(to);
	return same_size ? ask(find_bitcast, &q) : NULL;
}
