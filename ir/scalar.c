/* The process-wide cache of scalar functions: instances are built on first use under one lock. */
#include "ir/scalar.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "ir/op.h"
#include "ir/scalar_priv.h"

static struct {
	pthread_mutex_t lock;
	Arena *arena; /* never freed: functions are handed out for good */
	Intern keys;
	ARRAY(const ScFn *) fn; /* by key id - 1; NULL: there is none */
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

const char *sc_name(ScOp op)
{
	static const char *const name[] = {
#define X(n) #n,
		SC_OPS(X)
#undef X
	};
	return op < SC_COUNT ? name[op] : "?";
}

Arena *scalar_arena(void)
{
	return cache.arena;
}

static void lock_cache(void)
{
	pthread_mutex_lock(&cache.lock);
	if (!cache.arena) {
		cache.arena = arena_new(NULL);
		intern_init(&cache.keys, cache.arena);
	}
}

static void unlock_cache(void)
{
	pthread_mutex_unlock(&cache.lock);
}

/* "kind:name/f32,f32" */
typedef struct {
	char text[128];
} Key;

static Key key_of(const char *kind, const char *name, const DType *in, uint32_t nin)
{
	Key key;
	size_t n = (size_t)snprintf(key.text, sizeof key.text, "%s:%s/", kind, name);
	for (uint32_t k = 0; k < nin && n < sizeof key.text; k++)
		n += (size_t)snprintf(key.text + n, sizeof key.text - n, "%s,", dtype_name(in[k]));
	return key;
}

/* Where the function of this key is kept; *fresh when it has to be built. Building may add keys. */
static uint32_t slot_of(Key key, bool *fresh)
{
	uint32_t id = intern(&cache.keys, key.text, strlen(key.text), fresh);
	if (*fresh)
		array_push(cache.arena, &cache.fn, NULL);
	return id - 1;
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

/* Split "x, y" into names; returns the count. */
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

/* The compute dtype of an instance: that of the last operand (a select starts with a bool). */
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
	uint32_t k = slot_of(key_of("lib", d->name, in, nin), &fresh);
	if (fresh) {
		const ScFn *f = build_lib(d, in, nin, NULL);
		cache.fn.data[k] = f;
	}
	return cache.fn.data[k];
}

/* A text of the op table over the op's operand names, and y for a derivative. */
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
	uint32_t k = slot_of(key_of("op", op_name(op), in, nin), &fresh);
	if (fresh) {
		DType t = in[nin - 1];
		char *name = arena_printf(cache.arena, "%s_%s", op_name(op), dtype_name(t));
		const ScFn *f = build_op(op, name, info->scalar, in, nin, t);
		cache.fn.data[k] = f;
	}
	return cache.fn.data[k];
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

const ScFn *scalar_fn(Op op, const DType *in, uint32_t nin)
{
	if (nin == 0 || nin > 4 || op_kind(op) != OP_SCALAR)
		return NULL;
	for (uint32_t k = 0; k < nin; k++)
		if (!class_of(in[k]))
			return NULL; /* storage dtypes are converted by loads */
	lock_cache();
	const ScFn *f = op_fn(op, in, nin);
	unlock_cache();
	return f;
}

const ScFn *scalar_lib(const char *name, DType t)
{
	const DType in[4] = {t, t, t, t};
	const char *param[4];
	if (!class_of(t))
		return NULL;
	lock_cache();
	const LibDef *d = find_def(name, t);
	const ScFn *f = d ? lib_fn(d, in, split_names(d->params, param)) : NULL;
	unlock_cache();
	return f;
}

const ScFn *scalar_round(DType d)
{
	char name[16];
	snprintf(name, sizeof name, "round_%s", dtype_name(d));
	return scalar_lib(name, DT_f32);
}

const ScFn *scalar_deriv(Op op, uint32_t k, const DType *in, uint32_t nin)
{
	const OpInfo *info = op_info(op);
	if (nin == 0 || nin > 3 || k >= nin || !info->deriv[k])
		return NULL;
	DType all[4] = {DT_none};
	memcpy(all, in, nin * sizeof in[0]);
	all[nin] = info->result != DT_none ? info->result : in[nin - 1];
	lock_cache();
	bool fresh;
	const char kind[] = {'d', (char)('0' + k), '\0'};
	uint32_t slot = slot_of(key_of(kind, op_name(op), in, nin), &fresh);
	if (fresh) {
		DType t = in[nin - 1];
		char *name = arena_printf(cache.arena, "d%u_%s_%s", k, op_name(op), dtype_name(t));
		const ScFn *f = build_op(op, name, info->deriv[k], all, nin + 1, t);
		cache.fn.data[slot] = f;
	}
	const ScFn *f = cache.fn.data[slot];
	unlock_cache();
	return f;
}

const ScFn *scalar_convert(DType from, DType to)
{
	if (dtype_is_complex(from) || dtype_is_complex(to) || from == DT_none || to == DT_none)
		return NULL;
	const DType key[2] = {from, to};
	const char *x = "x";
	lock_cache();
	bool fresh;
	uint32_t k = slot_of(key_of("convert", "", key, 2), &fresh);
	if (fresh) {
		char *name = arena_printf(cache.arena, "convert_%s_%s", dtype_name(from),
		                          dtype_name(to));
		char *text = arena_printf(cache.arena, "convert[%s](x)", dtype_name(to));
		const ScFn *f = scalar_build(name, text, 1, &x, &from, to, NULL);
		cache.fn.data[k] = f;
	}
	const ScFn *f = cache.fn.data[k];
	unlock_cache();
	return f;
}
