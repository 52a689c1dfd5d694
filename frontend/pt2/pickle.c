/* A stack machine with a memo, as pickle defines it, whose calls do nothing but stand there. */
#include "frontend/pt2/pickle.h"

#include <string.h>

typedef struct {
	Ctx *ctx;
	const char *where;
	const uint8_t *data;
	size_t size, at;
	ARRAY(PickleValue *) stack;
	ARRAY(PickleValue *) memo; /* by index, NULL: nothing there */
} PickleReader;

static bool fails(const PickleReader *r, const char *why)
{
	return ctx_error(r->ctx, NULL, "%s: the pickle is damaged: %s at byte %zu", r->where, why,
			 r->at) ||
	       ctx_kind(r->ctx, REFUSAL_FILE);
}

/* ---- input ---- */

static bool take(PickleReader *r, uint64_t n, const uint8_t **out)
{
	if (n > r->size - r->at)
		return fails(r, "cut off");
	*out = r->data + r->at;
	r->at += n;
	return true;
}

/* Reads a number of n bytes, least first. */
static bool take_number(PickleReader *r, uint32_t n, uint64_t *out)
{
	const uint8_t *p;
	TRY(take(r, n, &p));
	*out = 0;
	for (uint32_t k = n; k-- > 0;)
		*out = *out << 8 | p[k];
	return true;
}

static bool take_text(PickleReader *r, uint64_t n, const char **out)
{
	const uint8_t *p;
	TRY(take(r, n, &p));
	if (n && memchr(p, 0, n))
		return fails(r, "a text with a NUL");
	*out = arena_strndup(r->ctx->arena, (const char *)p, n);
	return true;
}

static bool take_line(PickleReader *r, const char **out)
{
	const uint8_t *p = r->data + r->at, *end = memchr(p, '\n', r->size - r->at);
	if (!end)
		return fails(r, "a line without an end");
	TRY(take_text(r, (uint64_t)(end - p), out));
	r->at++;
	return true;
}

/* ---- the stack ---- */

static PickleValue *push(PickleReader *r, PickleKind kind)
{
	PickleValue *v = ARENA_NEW(r->ctx->arena, PickleValue);
	v->kind = kind;
	array_push(r->ctx->arena, &r->stack, v);
	return v;
}

static bool pop(PickleReader *r, PickleValue **out)
{
	if (!r->stack.n || r->stack.data[r->stack.n - 1]->kind == PICKLE_MARK)
		return fails(r, "nothing on the stack");
	*out = r->stack.data[--r->stack.n];
	return true;
}

static void add_item(PickleReader *r, PickleValue *to, PickleValue *v)
{
	array_push(r->ctx->arena, &to->item, v);
}

/* Removes the last mark, and sets *first to the number of the first value above it. */
static bool find_mark(PickleReader *r, uint32_t *first)
{
	uint32_t k = r->stack.n;
	while (k > 0 && r->stack.data[k - 1]->kind != PICKLE_MARK)
		k--;
	if (!k)
		return fails(r, "no mark on the stack");
	*first = k;
	return true;
}

/* Makes what lies above the last mark items of `to`, or of what lies below the mark. */
static bool collect(PickleReader *r, PickleValue *to)
{
	uint32_t first = 0;
	TRY(find_mark(r, &first));
	if (!to && first < 2)
		return fails(r, "nothing to add to");
	PickleValue *into = to ? to : r->stack.data[first - 2];
	if (into->kind != PICKLE_TUPLE && into->kind != PICKLE_LIST && into->kind != PICKLE_DICT)
		return fails(r, "items of something that has none");
	for (uint32_t k = first; k < r->stack.n; k++)
		add_item(r, into, r->stack.data[k]);
	r->stack.n = first - 1;
	return true;
}

static bool collect_new(PickleReader *r, PickleKind kind)
{
	PickleValue *v = ARENA_NEW(r->ctx->arena, PickleValue);
	v->kind = kind;
	TRY(collect(r, v));
	array_push(r->ctx->arena, &r->stack, v);
	return true;
}

/* Makes the n uppermost values items of a new one. */
static bool wrap(PickleReader *r, PickleKind kind, uint32_t n)
{
	PickleValue *v = ARENA_NEW(r->ctx->arena, PickleValue), *item[3];
	v->kind = kind;
	for (uint32_t k = n; k-- > 0;)
		TRY(pop(r, &item[k]));
	for (uint32_t k = 0; k < n; k++)
		add_item(r, v, item[k]);
	array_push(r->ctx->arena, &r->stack, v);
	return true;
}

/* Makes a call of the upper two values. An ordered dictionary without items, which the next
 * operations fill, is a dictionary. */
static bool call(PickleReader *r)
{
	PickleValue *args = r->stack.n > 1 ? r->stack.data[r->stack.n - 1] : NULL;
	if (args && pickle_is(args, PICKLE_TUPLE, NULL) && !args->item.n &&
	    pickle_is(r->stack.data[r->stack.n - 2], PICKLE_GLOBAL, "collections OrderedDict")) {
		r->stack.n -= 2;
		push(r, PICKLE_DICT);
		return true;
	}
	return wrap(r, PICKLE_CALL, 2);
}

/* Adds the n uppermost values to the one below them. */
static bool append(PickleReader *r, PickleKind kind, uint32_t n)
{
	PickleValue *item[2], *to;
	for (uint32_t k = n; k-- > 0;)
		TRY(pop(r, &item[k]));
	TRY(pop(r, &to));
	if (to->kind != kind)
		return fails(r, "items of something that has none");
	for (uint32_t k = 0; k < n; k++)
		add_item(r, to, item[k]);
	array_push(r->ctx->arena, &r->stack, to);
	return true;
}

/* Makes the uppermost value the state of the one below it: the last item of a call. The
 * attributes of a dictionary are left out. */
static bool set_state(PickleReader *r)
{
	PickleValue *state;
	if (r->stack.n < 2 || r->stack.data[r->stack.n - 2]->kind != PICKLE_DICT)
		return append(r, PICKLE_CALL, 1);
	return pop(r, &state);
}

/* ---- the memo ---- */

static bool remember(PickleReader *r, uint64_t index)
{
	if (index >= r->size) /* each takes at least a byte */
		return fails(r, "an impossible number of remembered values");
	while (r->memo.n <= index)
		array_push(r->ctx->arena, &r->memo, NULL);
	if (!r->stack.n)
		return fails(r, "nothing to remember");
	r->memo.data[index] = r->stack.data[r->stack.n - 1];
	return true;
}

static bool recall(PickleReader *r, uint64_t index)
{
	if (index >= r->memo.n || !r->memo.data[index])
		return fails(r, "a value that was not remembered");
	array_push(r->ctx->arena, &r->stack, r->memo.data[index]);
	return true;
}

static bool remember_at(PickleReader *r, uint32_t bytes)
{
	uint64_t index;
	return take_number(r, bytes, &index) && remember(r, index);
}

static bool recall_at(PickleReader *r, uint32_t bytes)
{
	uint64_t index;
	return take_number(r, bytes, &index) && recall(r, index);
}

/* ---- values ---- */

static bool push_int(PickleReader *r, uint32_t bytes, bool is_signed)
{
	uint64_t v;
	TRY(take_number(r, bytes, &v));
	if (is_signed && bytes < 8 && v >> (8 * bytes - 1))
		v |= UINT64_MAX << 8 * bytes;
	push(r, PICKLE_INT)->i = (int64_t)v;
	return true;
}

/* Reads a length, then that many bytes of a two's complement. */
static bool push_long(PickleReader *r)
{
	uint64_t n;
	TRY(take_number(r, 1, &n));
	if (n > 8)
		return fails(r, "an integer of more than 64 bits");
	return n ? push_int(r, (uint32_t)n, true) : (push(r, PICKLE_INT), true);
}

/* Reads a float of eight bytes, most significant first. */
static bool push_float(PickleReader *r)
{
	const uint8_t *p;
	uint64_t bits = 0;
	TRY(take(r, 8, &p));
	for (uint32_t k = 0; k < 8; k++)
		bits = bits << 8 | p[k];
	memcpy(&push(r, PICKLE_FLOAT)->f, &bits, sizeof bits);
	return true;
}

static bool push_text(PickleReader *r, uint32_t bytes)
{
	uint64_t n;
	const char *text;
	TRY(take_number(r, bytes, &n));
	TRY(take_text(r, n, &text));
	push(r, PICKLE_TEXT)->text = text;
	return true;
}

static bool push_global(PickleReader *r)
{
	const char *module, *name;
	TRY(take_line(r, &module));
	TRY(take_line(r, &name));
	push(r, PICKLE_GLOBAL)->text = arena_printf(r->ctx->arena, "%s %s", module, name);
	return true;
}

static bool stack_global(PickleReader *r)
{
	PickleValue *module, *name;
	TRY(pop(r, &name));
	TRY(pop(r, &module));
	if (module->kind != PICKLE_TEXT || name->kind != PICKLE_TEXT)
		return fails(r, "a global without a name");
	push(r, PICKLE_GLOBAL)->text =
		arena_printf(r->ctx->arena, "%s %s", module->text, name->text);
	return true;
}

static bool discard(PickleReader *r, uint32_t bytes)
{
	const uint8_t *p;
	return take(r, bytes, &p);
}

static bool unknown(PickleReader *r, uint8_t op)
{
	return ctx_error(
		r->ctx, NULL,
		"%s: the pickle has an operation (0x%02x at byte %zu) that tensors do not need",
		r->where, op, r->at - 1);
}

/* Executes one operation; a table. */
static bool operation(PickleReader *r, uint8_t op)
{
	switch (op) {
	case 0x80: return discard(r, 1); /* protocol */
	case 0x95: return discard(r, 8); /* frame */
	case '(': push(r, PICKLE_MARK); return true;
	case 'N': push(r, PICKLE_NONE); return true;
	case 0x88: push(r, PICKLE_BOOL)->i = 1; return true;
	case 0x89: push(r, PICKLE_BOOL); return true;
	case 'J': return push_int(r, 4, true);
	case 'K': return push_int(r, 1, false);
	case 'M': return push_int(r, 2, false);
	case 0x8a: return push_long(r);
	case 'G': return push_float(r);
	case 'X': return push_text(r, 4);
	case 0x8c: return push_text(r, 1);
	case 0x8d: return push_text(r, 8);
	case 'c': return push_global(r);
	case 0x93: return stack_global(r);
	case ')': push(r, PICKLE_TUPLE); return true;
	case 0x85: return wrap(r, PICKLE_TUPLE, 1);
	case 0x86: return wrap(r, PICKLE_TUPLE, 2);
	case 0x87: return wrap(r, PICKLE_TUPLE, 3);
	case 't': return collect_new(r, PICKLE_TUPLE);
	case ']': push(r, PICKLE_LIST); return true;
	case 'l': return collect_new(r, PICKLE_LIST);
	case 'a': return append(r, PICKLE_LIST, 1);
	case 'e': return collect(r, NULL);
	case '}': push(r, PICKLE_DICT); return true;
	case 'd': return collect_new(r, PICKLE_DICT);
	case 's': return append(r, PICKLE_DICT, 2);
	case 'u': return collect(r, NULL);
	case 'q': return remember_at(r, 1);
	case 'r': return remember_at(r, 4);
	case 0x94: return remember(r, r->memo.n);
	case 'h': return recall_at(r, 1);
	case 'j': return recall_at(r, 4);
	case 'R': case 0x81: return call(r); /* a function; a class */
	case 'b': return set_state(r);
	case 'Q': return wrap(r, PICKLE_PERSISTENT, 1);
	default: return unknown(r, op);
	}
}

const PickleValue *pickle_read(Ctx *ctx, const char *where, const uint8_t *data, size_t size)
{
	PickleReader r = {.ctx = ctx, .where = where, .data = data, .size = size};
	PickleValue *result;
	while (r.at < size && data[r.at] != '.') {
		uint8_t op = data[r.at++];
		if (!operation(&r, op))
			return NULL;
	}
	if (r.at == size) {
		fails(&r, "it does not end");
		return NULL;
	}
	return pop(&r, &result) ? result : NULL;
}

/* ---- looking ---- */

const PickleValue *pickle_item(const PickleValue *v, uint32_t k)
{
	return v && k < v->item.n ? v->item.data[k] : NULL;
}

bool pickle_is(const PickleValue *v, PickleKind kind, const char *text)
{
	return v && v->kind == kind && (!text || !strcmp(v->text, text));
}

const PickleValue *pickle_get(const PickleValue *v, const char *key)
{
	const PickleValue *found = NULL;
	for (uint32_t k = 0; pickle_is(v, PICKLE_DICT, NULL) && k + 1 < v->item.n; k += 2)
		if (pickle_is(v->item.data[k], PICKLE_TEXT, key))
			found = v->item.data[k + 1]; /* the last one counts */
	return found;
}

const PickleValue *pickle_call_of(const PickleValue *v, const char *global)
{
	bool call = pickle_is(v, PICKLE_CALL, NULL) &&
		    pickle_is(pickle_item(v, 0), PICKLE_GLOBAL, global);
	const PickleValue *args = call ? pickle_item(v, 1) : NULL;
	return pickle_is(args, PICKLE_TUPLE, NULL) ? args : NULL;
}
