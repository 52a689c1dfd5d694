/* Mutants of the text form that keep to its structure: values, types, attributes and operations are
 * changed as such, so that most of them are read and something is left to be found behind the
 * parser. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "ir/op/op.h"
#include "tests/fuzz/mutate.h"

typedef struct {
	uint8_t *data;
	size_t size, max;
	unsigned *state;
	bool changed;
} Mutant;

typedef struct {
	size_t at, len;
} Span;

enum { MAX_WORD = 64, MAX_VALUES = 512 };

/* A value where it is defined; type.len 0: none is written, or it is a tuple. */
typedef struct {
	Span name, type;
} Value;

typedef struct {
	Value value[MAX_VALUES];
	uint32_t n;
} Values;

static bool in_word(int c)
{
	return isalnum(c) || c == '_' || c == '.' || c == '%';
}

/* The next word from `from` on; len 0 behind the last. */
static Span next_word(const Mutant *m, size_t from)
{
	while (from < m->size && !in_word(m->data[from]))
		from++;
	Span s = {from, 0};
	while (from + s.len < m->size && in_word(m->data[from + s.len]))
		s.len++;
	return s;
}

static bool same_text(const Mutant *m, Span a, Span b)
{
	return a.len == b.len && memcmp(m->data + a.at, m->data + b.at, a.len) == 0;
}

static void put(Mutant *m, Span at, const char *text)
{
	size_t n = strlen(text);
	m->changed |= n != at.len || memcmp(m->data + at.at, text, n) != 0;
	m->size = fuzz_splice(m->data, m->size, m->max, at.at, at.len, text, n);
}

/* One of the words that are accepted, drawn at random; len 0 when there is none. */
static Span draw_word(const Mutant *m, bool (*accept)(const Mutant *, Span))
{
	Span found = {0, 0};
	uint32_t seen = 0;
	for (Span s = next_word(m, 0); s.len; s = next_word(m, s.at + s.len))
		if (s.len < MAX_WORD && accept(m, s) && fuzz_below(m->state, ++seen) == 0)
			found = s;
	return found;
}

/* Every occurrence of a word. */
static void replace_all(Mutant *m, Span word, const char *text)
{
	char old[MAX_WORD];
	memcpy(old, m->data + word.at, word.len);
	for (Span s = next_word(m, 0); s.len; s = next_word(m, s.at + s.len))
		if (s.len == word.len && memcmp(m->data + s.at, old, s.len) == 0) {
			put(m, s, text);
			s.len = strlen(text);
		}
}

/* ---- values and their types ---- */

static size_t end_of_line(const Mutant *m, size_t at)
{
	while (at < m->size && m->data[at] != '\n')
		at++;
	return at;
}

/* DTYPE[...] at `at`; len 0: something else. */
static Span type_at(const Mutant *m, size_t at)
{
	Span s = {at, 0};
	size_t end = at;
	while (end < m->size && isalnum(m->data[end]))
		end++;
	if (end == m->size || m->data[end] != '[' ||
	    dtype_parse((const char *)m->data + at, (uint32_t)(end - at)) == DT_none)
		return s;
	while (end < m->size && m->data[end] != ']' && m->data[end] != '\n')
		end++;
	if (end < m->size && m->data[end] == ']')
		s.len = end + 1 - at;
	return s;
}

/* Where the type behind "%x = op(...)" stands. */
static Span type_behind_call(const Mutant *m, size_t at)
{
	size_t end = end_of_line(m, at);
	for (; at + 4 < end && m->data[at] != ';'; at++)
		if (memcmp(m->data + at, ") : ", 4) == 0)
			return type_at(m, at + 4);
	return (Span){at, 0};
}

/* What stands behind a word: ':' of an input, '=' of a node, else a use. */
static int behind(const Mutant *m, Span s)
{
	size_t at = s.at + s.len;
	while (at < m->size && m->data[at] == ' ')
		at++;
	return at < m->size && (m->data[at] == ':' || m->data[at] == '=') ? m->data[at] : 0;
}

static void find_values(const Mutant *m, Values *v)
{
	v->n = 0;
	for (Span s = next_word(m, 0); s.len && v->n < MAX_VALUES; s = next_word(m, s.at + s.len)) {
		int c = s.len > 1 && m->data[s.at] == '%' ? behind(m, s) : 0;
		if (!c || s.len >= MAX_WORD)
			continue;
		size_t from = s.at + s.len;
		while (from < m->size && (m->data[from] == ' ' || m->data[from] == ':'))
			from++;
		v->value[v->n++] =
			(Value){s, c == ':' ? type_at(m, from) : type_behind_call(m, from)};
	}
}

static const Value *value_of(const Mutant *m, const Values *v, Span name)
{
	for (uint32_t k = v->n; k-- > 0;)
		if (v->value[k].name.at < name.at && same_text(m, v->value[k].name, name))
			return &v->value[k];
	return NULL;
}

static bool is_use(const Mutant *m, Span s)
{
	return s.len > 1 && m->data[s.at] == '%' && !behind(m, s);
}

/* ---- changes ---- */

static bool is_number(const Mutant *m, Span s)
{
	for (size_t k = 0; k < s.len; k++)
		if (!isdigit(m->data[s.at + k]))
			return false;
	return true;
}

/* Of more than a dimension or a flag. */
static bool is_extent(const Mutant *m, Span s)
{
	return is_number(m, s) && (s.len > 1 || m->data[s.at] > '3');
}

/* One extent becomes another everywhere: most graphs stay consistent. */
static void change_extent(Mutant *m)
{
	static const char *const number[] = {"0",  "1",  "2",  "3",    "5",     "8",         "16",
					     "17", "31", "64", "1000", "65537", "4294967296"};
	uint32_t n = sizeof number / sizeof *number;
	Span s = draw_word(m, is_extent);
	if (s.len)
		replace_all(m, s,
			    number[fuzz_below(m->state, fuzz_below(m->state, 8) ? n - 2 : n)]);
}

static bool is_dtype(const Mutant *m, Span s)
{
	return dtype_parse((const char *)m->data + s.at, (uint32_t)s.len) != DT_none;
}

/* Everywhere; mostly to one of its kind. */
static void change_dtype(Mutant *m)
{
	Span s = draw_word(m, is_dtype);
	if (!s.len)
		return;
	DType old = dtype_parse((const char *)m->data + s.at, (uint32_t)s.len), d = old;
	bool any = fuzz_below(m->state, 8) == 0;
	for (int tries = 0; tries < 64 && d == old; tries++) {
		DType e = (DType)(1 + fuzz_below(m->state, DT_COUNT - 1));
		if (any || (dtype_is_float(e) == dtype_is_float(old) &&
			    dtype_is_int(e) == dtype_is_int(old) &&
			    dtype_is_inexact(e) == dtype_is_inexact(old)))
			d = e;
	}
	replace_all(m, s, dtype_name(d));
}

static Op op_at(const Mutant *m, Span s)
{
	char name[MAX_WORD + 1];
	memcpy(name, m->data + s.at, s.len);
	name[s.len] = 0;
	return op_find(name);
}

static bool is_scalar_op(const Mutant *m, Span s)
{
	Op op = s.at + s.len < m->size && m->data[s.at + s.len] == '(' ? op_at(m, s) : OP_none;
	return op != OP_none && op_is_scalar(op);
}

/* An operation drawn from those that promote alike. */
static Op draw_op(Mutant *m, uint32_t narg, Promote promote, DType result)
{
	uint32_t start = fuzz_below(m->state, op_count());
	for (uint32_t k = 0; k < op_count(); k++) {
		Op op = (Op)((start + k) % op_count());
		if (op != OP_none && op_kind(op) == OP_SCALAR && op_schema(op)->narg == narg &&
		    op_info(op)->promote == promote && op_info(op)->result == result)
			return op;
	}
	return OP_none;
}

static void change_op(Mutant *m)
{
	Span s = draw_word(m, is_scalar_op);
	Op old = s.len ? op_at(m, s) : OP_none;
	if (old != OP_none)
		put(m, s,
		    op_name(draw_op(m, op_schema(old)->narg, op_info(old)->promote,
				    op_info(old)->result)));
}

/* An operand becomes another value of its type. */
static void change_operand(Mutant *m)
{
	static Values v;
	char name[MAX_WORD + 1];
	find_values(m, &v);
	Span use = draw_word(m, is_use), other = {0, 0};
	const Value *old = use.len ? value_of(m, &v, use) : NULL;
	uint32_t seen = 0;
	for (uint32_t k = 0; old && k < v.n; k++) {
		const Value *w = &v.value[k];
		bool before = w->name.at < use.at && end_of_line(m, w->name.at) < use.at;
		if (before && w != old && old->type.len && same_text(m, w->type, old->type) &&
		    fuzz_below(m->state, ++seen) == 0)
			other = w->name;
	}
	memcpy(name, m->data + other.at, other.len);
	name[other.len] = 0;
	if (other.len)
		put(m, use, name);
}

/* Two neighbours change places, mostly where they have one type. */
static void swap_operands(Mutant *m)
{
	static Values v;
	char first[MAX_WORD + 1];
	find_values(m, &v);
	Span a = draw_word(m, is_use);
	if (!a.len)
		return;
	Span b = next_word(m, a.at + a.len);
	const Value *x = value_of(m, &v, a), *y = value_of(m, &v, b);
	bool neighbours = b.len && b.len < MAX_WORD && is_use(m, b) && b.at == a.at + a.len + 2 &&
			  m->data[a.at + a.len] == ',';
	if (!neighbours || !x || !y || (!same_text(m, x->type, y->type) && fuzz_below(m->state, 8)))
		return;
	memcpy(first, m->data + a.at, a.len);
	first[a.len] = 0;
	char second[MAX_WORD + 1];
	memcpy(second, m->data + b.at, b.len);
	second[b.len] = 0;
	put(m, b, first);
	put(m, a, second);
}

/* A new node behind a value, read by a later use of it. */
static void insert_node(Mutant *m)
{
	static Values v;
	char line[4 * MAX_WORD + 300], name[MAX_WORD];
	find_values(m, &v);
	const Value *x = v.n ? &v.value[fuzz_below(m->state, v.n)] : NULL;
	if (!x || !x->type.len || x->type.len > 200 || behind(m, x->name) != '=')
		return;
	size_t dtype = 0;
	while (m->data[x->type.at + dtype] != '[')
		dtype++;
	DType d = dtype_parse((const char *)m->data + x->type.at, (uint32_t)dtype);
	Op op = draw_op(m, 1,
			dtype_is_float(d) && fuzz_below(m->state, 2) ? PROMOTE_FLOAT
								     : PROMOTE_DEFAULT,
			DT_none);
	if (op == OP_none || d == DT_bool)
		return;
	snprintf(name, sizeof name, "%%mutant%u", (unsigned)fuzz_below(m->state, 10000));
	size_t end = end_of_line(m, x->name.at);
	Span use = {end, 0};
	while ((use = next_word(m, use.at + use.len)).len &&
	       !(is_use(m, use) && same_text(m, use, x->name)))
		;
	snprintf(line, sizeof line, "\n  %s = %s(%.*s) : %.*s", name, op_name(op), (int)x->name.len,
		 (const char *)m->data + x->name.at, (int)x->type.len,
		 (const char *)m->data + x->type.at);
	if (use.len)
		put(m, use, name);
	put(m, (Span){end, 0}, line);
}

/* A number or a flag behind "name=", alone or in a list. */
static bool is_attribute(const Mutant *m, Span s)
{
	size_t at = s.at;
	bool flag = (s.len == 4 && !memcmp(m->data + at, "true", 4)) ||
		    (s.len == 5 && !memcmp(m->data + at, "false", 5));
	if (!flag && !isdigit(m->data[at]))
		return false;
	while (at > 0 && (isalnum(m->data[at - 1]) || strchr(" ,.-[", m->data[at - 1])))
		at--;
	return at > 1 && m->data[at - 1] == '=' && m->data[at - 2] != ' ';
}

/* A neighbouring value. */
static void change_attribute(Mutant *m)
{
	char text[32];
	Span s = draw_word(m, is_attribute);
	if (!s.len || s.len > 18)
		return;
	int c = m->data[s.at];
	if (!isdigit(c)) {
		put(m, s, c == 't' ? "false" : "true");
	} else if (is_number(m, s)) {
		long long v = 0;
		for (size_t k = 0; k < s.len; k++)
			v = 10 * v + (m->data[s.at + k] - '0');
		v += fuzz_below(m->state, 2) || !v ? 1 : -1;
		snprintf(text, sizeof text, "%lld", v);
		put(m, s, text);
	} else {
		snprintf(text, sizeof text, "%g", (double)fuzz_below(m->state, 4000) / 16);
		put(m, s, text);
	}
}

/* ---- types ---- */

/* Is the type of a call of this operation inferred when none is written? */
static bool has_rule(const Mutant *m, size_t line)
{
	size_t end = line;
	while (end < m->size && m->data[end] != '(' && m->data[end] != '\n')
		end++;
	size_t at = end;
	while (at > line && in_word(m->data[at - 1]))
		at--;
	Op op = end - at < MAX_WORD ? op_at(m, (Span){at, end - at}) : OP_none;
	return op != OP_none && (op_is_scalar(op) || op_info(op)->infer);
}

/* The result types of lines go where they are inferred, so that changes stay consistent. */
static void drop_types(Mutant *m)
{
	for (size_t line = 0, end; line < m->size; line = end + 1) {
		end = end_of_line(m, line);
		if (!has_rule(m, line))
			continue;
		for (size_t i = line; i + 4 < end; i++) {
			if (memcmp(m->data + i, ") : ", 4) != 0)
				continue;
			size_t to = i;
			while (to < end && m->data[to] != ';')
				to++;
			put(m, (Span){i + 1, to - i - 1}, "");
			end = end_of_line(m, line);
			break;
		}
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	static const struct {
		void (*change)(Mutant *);
		bool types; /* of results that may be other ones then */
	} changes[] = {{change_extent, true},   {change_dtype, false}, {change_op, false},
		       {change_operand, false}, {swap_operands, true}, {insert_node, false},
		       {change_attribute, true}};
	unsigned state = seed;
	Mutant m = {data, size, max, &state, false};
	if (fuzz_below(&state, 16) == 0)
		return LLVMFuzzerMutate(data, size, max);
	uint32_t k = 0;
	/* a graph has not something of each kind */
	for (int tries = 0; tries < 16 && !m.changed; tries++) {
		k = fuzz_below(&state, sizeof changes / sizeof *changes);
		changes[k].change(&m);
	}
	if (fuzz_below(&state, 8) < (changes[k].types ? 7 : 1))
		drop_types(&m);
	return m.size;
}
