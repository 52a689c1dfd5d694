/* libFuzzer: the bytes are the text form of a graph. What parses must verify or be refused with a
 * message; what verifies must print and parse back to the same, and then goes the way of a model:
 * passes, kernels, program, each verified. Seeds: the graphs of tests/ir, tests/passes,
 * tests/lower, tests/run and tests/errors. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/schedule/schedule.h"
#include "ir/ops/op.h"
#include "passes/lower.h"
#include "passes/pipeline.h"
#include "tests/fuzz/mutate.h"

static const char *printed(Ctx *ctx, const Graph *g)
{
	Text t;
	text_init(&t, ctx->arena);
	graph_print(g, &t);
	return t.data;
}

static void compile(Ctx *ctx, Graph *g)
{
	PipelineOptions passes = {0};
	LowerOptions lower = {0};
	ScheduleOptions schedule = {0};
	const Target *target = target_find("x86-64-v3");
	uint32_t errors = ctx->nerror;
	if (!pipeline_run(g, &passes) && ctx->nerror == errors)
		abort(); /* refused without saying why */
	if (ctx->nerror != errors)
		return;
	Lowered *l = lower_graph(g, &lower);
	if (l && ctx->nerror == errors) {
		choose_const_layouts(&(ScheduleLevel){l, target}, 1);
		schedule_program(&(ScheduleEntry){"run", l}, 1, target, &schedule);
	} else if (ctx->nerror == errors) {
		abort();
	}
}

static void read_all(Ctx *ctx, uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	(void)size;
	Ir *ir = ir_new(ctx);
	Graph *g = graph_parse(ir, text, "fuzz");
	bool loaded = g && graph_verify(g) && !ctx->nerror;
	fuzz_count(loaded);
	if (!loaded) {
		if (!ctx->nerror)
			abort();
		return;
	}
	const char *once = printed(ctx, g);
	Graph *again = graph_parse(ir, once, "printed");
	if (!again || strcmp(once, printed(ctx, again)))
		abort();
	compile(ctx, g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_run(data, size, 1, read_all);
}

/* ---- mutants that keep to the language ---- */

typedef struct {
	uint8_t *data;
	size_t size, max;
	unsigned *state;
} Mutant;

enum { MAX_WORD = 64 };

static bool in_word(int c)
{
	return isalnum(c) || c == '_' || c == '.' || c == '%';
}

/* One of the words that are accepted, drawn at random; *len 0 when there is none. */
static size_t draw_word(const Mutant *m, bool (*accept)(const Mutant *, size_t at, size_t len),
			size_t *len)
{
	size_t end = 0, found = 0;
	uint32_t seen = 0;
	*len = 0;
	for (size_t i = 0; i < m->size; i = end) {
		end = i + 1;
		if (!in_word(m->data[i]))
			continue;
		while (end < m->size && in_word(m->data[end]))
			end++;
		if (end - i < MAX_WORD && accept(m, i, end - i) &&
		    fuzz_below(m->state, ++seen) == 0) {
			found = i;
			*len = end - i;
		}
	}
	return found;
}

/* Every occurrence of a word. */
static void replace_all(Mutant *m, size_t at, size_t len, const char *text)
{
	char old[MAX_WORD];
	size_t n = strlen(text);
	memcpy(old, m->data + at, len);
	for (size_t i = 0; i + len <= m->size; i++) {
		bool whole = (!i || !in_word(m->data[i - 1])) &&
			     (i + len == m->size || !in_word(m->data[i + len]));
		if (whole && memcmp(m->data + i, old, len) == 0) {
			m->size = fuzz_splice(m->data, m->size, m->max, i, len, text, n);
			i += n;
		}
	}
}

static bool is_number(const Mutant *m, size_t at, size_t len)
{
	for (size_t k = 0; k < len; k++)
		if (!isdigit(m->data[at + k]))
			return false;
	return true;
}

static bool is_dtype(const Mutant *m, size_t at, size_t len)
{
	return dtype_parse((const char *)m->data + at, (uint32_t)len) != DT_none;
}

static bool is_value(const Mutant *m, size_t at, size_t len)
{
	return len > 1 && m->data[at] == '%';
}

static Op op_at(const Mutant *m, size_t at, size_t len)
{
	char name[MAX_WORD + 1];
	memcpy(name, m->data + at, len);
	name[len] = 0;
	return op_find(name);
}

static bool is_scalar_op(const Mutant *m, size_t at, size_t len)
{
	Op op = op_at(m, at, len);
	return op != OP_none && op_is_scalar(op);
}

/* One extent or number becomes another everywhere: most graphs stay consistent. */
static void change_number(Mutant *m)
{
	static const char *const number[] = {"0",  "1",  "2",    "3",     "5",         "8",
					     "17", "64", "1000", "65537", "4294967296"};
	size_t len, at = draw_word(m, is_number, &len);
	if (len)
		replace_all(m, at, len,
			    number[fuzz_below(m->state, sizeof number / sizeof *number)]);
}

static void change_dtype(Mutant *m)
{
	size_t len, at = draw_word(m, is_dtype, &len);
	if (len)
		replace_all(m, at, len,
			    dtype_name((DType)(1 + fuzz_below(m->state, DT_COUNT - 1))));
}

/* A scalar operation for another of as many operands. */
static void change_op(Mutant *m)
{
	size_t len, at = draw_word(m, is_scalar_op, &len);
	if (!len)
		return;
	Op old = op_at(m, at, len), op = old;
	uint32_t start = fuzz_below(m->state, OP_COUNT);
	for (uint32_t k = 0; k < OP_COUNT; k++) {
		op = (Op)((start + k) % OP_COUNT);
		if (op != OP_none && op_kind(op) == OP_SCALAR &&
		    op_schema(op)->narg == op_schema(old)->narg &&
		    op_info(op)->result == op_info(old)->result)
			break;
	}
	m->size = fuzz_splice(m->data, m->size, m->max, at, len, op_name(op), strlen(op_name(op)));
}

/* An operand becomes another value; what is defined later, or has another type, is refused. */
static void change_operand(Mutant *m)
{
	char name[MAX_WORD];
	size_t from_len, len, from = draw_word(m, is_value, &from_len),
			      at = draw_word(m, is_value, &len);
	if (!len || !from_len)
		return;
	memcpy(name, m->data + from, from_len);
	m->size = fuzz_splice(m->data, m->size, m->max, at, len, name, from_len);
}

/* The result types of lines go: they are inferred, so that changes stay consistent. */
static void drop_types(Mutant *m)
{
	for (size_t i = 0; i + 3 < m->size; i++) {
		if (memcmp(m->data + i, ") : ", 4) != 0)
			continue;
		size_t end = i;
		while (end < m->size && m->data[end] != '\n' && m->data[end] != ';')
			end++;
		m->size = fuzz_splice(m->data, m->size, m->max, i + 1, end - i - 1, "", 0);
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	static void (*const change[])(Mutant *) = {change_number, change_dtype,   change_op,
						   change_op,     change_operand, drop_types};
	unsigned state = seed;
	Mutant m = {data, size, max, &state};
	if (fuzz_below(&state, 16) == 0)
		return LLVMFuzzerMutate(data, size, max);
	change[fuzz_below(&state, sizeof change / sizeof *change)](&m);
	if (fuzz_below(&state, 8) != 0)
		drop_types(&m);
	return m.size;
}
