/* Random branches and loops: their values and derivatives against those of the same rounds written
 * one after the other, where none is left, in two orders, by some of the inputs and of some of the
 * results; batches of them, in which members go different ways, against one call for each member;
 * each as it is and after the passes. SEED=number in the environment: that one alone, its graphs
 * printed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/interp/interp.h"
#include "passes/pipeline.h"
#include "transform/transform.h"
#include "tests/unit/ir_fixture.h"

enum {
	GRAPHS = 250,
	MAX_VALUES = 64,
	MAX_STEPS = 24,
	MAX_OUT = 8,
	MAX_OPERANDS = 10,
	ROWS = 3,
	LANES = 3,
	MOST = 8
};

static uint64_t rng;

static uint32_t below(uint32_t n)
{
	rng = rng * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((rng >> 33) % n);
}

static bool chance(uint32_t percent)
{
	return below(100) < percent;
}

/* ---- programs ---- */

/* What a value is: f64[3], i64[], f64[3, 3]. */
typedef enum { REAL, INT, TABLE } Kind;
typedef enum {
	UNARY,
	BINARY,
	SCALE,
	SUM,
	COLUMNS,
	SPREAD,
	FROM_INT,
	NEXT_INT,
	COND,
	SCAN,
	WHILE
} StepKind;

typedef struct Body Body;

/* Operands are numbers of values of the body around it; results are its next values. */
typedef struct {
	StepKind kind;
	const char *op; /* of COND and WHILE: the comparison */
	uint32_t n[3], operand[MAX_OPERANDS]; /* carries, rows, constants; other operands: n[2] */
	int number, length;                   /* SCALE: quarters; COND, NEXT_INT: the other operand;
	                                         SCAN: rounds */
	bool turned, reverse;
	struct {                              /* WHILE: from `start`, or an integer where that is
	                                         none, to `limit` in steps */
		int start, limit, step, second; /* second: another limit, of twice the counter; 0:
		                                   none */
		bool from_int, add_first, subtracts, limit_is_operand, limit_is_difference,
			second_first, says_most;
	} count;
	Body *body[2];
} Step;

struct Body {
	Kind kind[MAX_VALUES];
	uint32_t ninput, nvalue, nstep, nout, out[MAX_OUT];
	Step step[MAX_STEPS];
};

static uint32_t pick(const Body *b, Kind kind)
{
	uint32_t found = 0, first = chance(70) && b->nvalue > 5 ? b->nvalue - 5 : 0;
	for (uint32_t pass = 0; pass < 2; pass++, first = 0) {
		for (uint32_t k = first; k < b->nvalue; k++)
			found += b->kind[k] == kind;
		if (!found)
			continue;
		uint32_t at = below(found);
		for (uint32_t k = first;; k++)
			if (b->kind[k] == kind && !at--)
				return k;
	}
	return UINT32_MAX;
}

static void give(Body *b, Kind kind)
{
	b->kind[b->nvalue++] = kind;
}

static Body *random_body(uint32_t depth, const Kind *input, uint32_t ninput, const Kind *out,
			 uint32_t nout);

static void operands_of(Body *b, Step *s, uint32_t list, uint32_t n, Kind kind)
{
	for (uint32_t k = 0; k < n; k++)
		if (pick(b, kind) != UINT32_MAX) {
			s->operand[s->n[0] + s->n[1] + s->n[2]] = pick(b, kind);
			s->n[list]++;
		}
}

static void add_cond(Body *b, Step *s, uint32_t depth)
{
	static const char *const compare[] = {"lt", "le", "gt", "ge", "eq"};
	Kind in[MAX_OPERANDS], out[MAX_OUT];
	s->op = compare[below(5)];
	s->number = (int)below(5) - 1;
	s->operand[s->n[2]++] = pick(b, INT);
	operands_of(b, s, 2, 1 + below(3), REAL);
	if (chance(20))
		operands_of(b, s, 2, 1, TABLE);
	for (uint32_t k = 0; k < s->n[2]; k++)
		in[k] = b->kind[s->operand[k]];
	uint32_t nout = 1 + below(3);
	for (uint32_t k = 0; k < nout; k++)
		out[k] = chance(15) ? INT : REAL;
	for (uint32_t k = 0; k < 2; k++)
		s->body[k] = random_body(depth + 1, in, s->n[2], out, nout);
	for (uint32_t k = 0; k < nout; k++)
		give(b, out[k]);
}

static void add_scan(Body *b, Step *s, uint32_t depth)
{
	Kind in[MAX_OPERANDS], out[MAX_OUT];
	uint32_t nout = 0, nys = below(3);
	s->length = chance(60) ? ROWS : (int)below(4);
	s->reverse = chance(40);
	operands_of(b, s, 0, below(4), REAL);
	if (chance(40))
		operands_of(b, s, 0, 1, INT);
	if (s->length == ROWS)
		operands_of(b, s, 1, below(3), TABLE);
	operands_of(b, s, 2, 1 + below(2), REAL);
	if (chance(40))
		operands_of(b, s, 2, 1, INT);
	for (uint32_t k = 0; k < s->n[0] + s->n[1] + s->n[2]; k++) {
		in[k] = b->kind[s->operand[k]];
		in[k] = in[k] == TABLE ? REAL : in[k];
		if (k < s->n[0])
			out[nout++] = in[k];
	}
	for (nys += !nout; nys; nys--)
		out[nout++] = REAL;
	s->body[0] = random_body(depth + 1, in, s->n[0] + s->n[1] + s->n[2], out, nout);
	for (uint32_t k = 0; k < nout; k++)
		give(b, k >= s->n[0] && s->length == ROWS ? TABLE : out[k]);
}

/* A counter, then other carries. */
static void add_while(Body *b, Step *s, uint32_t depth)
{
	static const char *const up[] = {"lt", "le"}, *const down[] = {"gt", "ge"};
	Kind in[MAX_OPERANDS], out[MAX_OUT];
	int rounds = (int)below(5), size = 1 + (int)below(3), sign = chance(50) ? 1 : -1;
	uint32_t or_equal = below(2), nout = 0;
	s->op = sign > 0 ? up[or_equal] : down[or_equal];
	s->turned = chance(30);
	s->count.from_int = chance(35);
	s->count.start = s->count.from_int ? 0 : (int)below(5) - 2;
	int way = rounds ? size * rounds - (int)below((uint32_t)size) : -(int)below(3);
	s->count.limit = s->count.start + sign * (way - (int)or_equal);
	s->count.step = sign * size;
	s->count.second = chance(25) ? s->count.limit + (int)below(4) - 1 : 0;
	s->count.add_first = chance(50);
	s->count.subtracts = chance(40);
	s->count.limit_is_operand = s->count.from_int || chance(40);
	s->count.limit_is_difference = s->count.limit_is_operand && chance(40);
	s->count.second_first = chance(50);
	s->count.says_most = s->count.from_int || chance(20);
	s->operand[s->n[0]++] = pick(b, INT);
	operands_of(b, s, 0, 1 + below(3), REAL);
	if (chance(30))
		operands_of(b, s, 0, 1, INT);
	operands_of(b, s, 2, below(3), REAL);
	if (chance(30))
		operands_of(b, s, 2, 1, INT);
	for (uint32_t k = 0; k < s->n[0] + s->n[2]; k++)
		in[k] = b->kind[s->operand[k]];
	for (uint32_t k = 1; k < s->n[0]; k++)
		out[nout++] = in[k];
	s->body[0] = random_body(depth + 1, in, s->n[0] + s->n[2], out, nout);
	for (uint32_t k = 0; k < s->n[0]; k++)
		give(b, in[k]);
}

static void add_step(Body *b, uint32_t depth)
{
	static const char *const unary[] = {"sin", "tanh", "cos"}, *const binary[] = {"add", "mul",
										      "sub"};
	Step *s = &b->step[b->nstep];
	StepKind kind =
		depth < 3 && chance(depth == 0 ? 60 : 25) ? COND + below(3) : UNARY + below(COND);
	*s = (Step){.kind = kind};
	bool needs_int = kind == FROM_INT || kind == NEXT_INT || kind == COND || kind == WHILE;
	if ((needs_int && pick(b, INT) == UINT32_MAX) ||
	    (kind == COLUMNS && pick(b, TABLE) == UINT32_MAX) ||
	    b->nvalue + 3 * MAX_OUT > MAX_VALUES)
		return;
	b->nstep++;
	switch (kind) {
	case UNARY:
		s->op = unary[below(3)];
		break;
	case BINARY:
		s->op = binary[below(3)];
		break;
	case SCALE:
	case NEXT_INT:
		s->number = (int)below(4) - 1;
		break;
	case COND:
		add_cond(b, s, depth);
		return;
	case SCAN:
		add_scan(b, s, depth);
		return;
	case WHILE:
		add_while(b, s, depth);
		return;
	default:
		break;
	}
	s->operand[0] = pick(b, kind == COLUMNS ? TABLE : kind == NEXT_INT ? INT : REAL);
	s->operand[1] = pick(b, kind == FROM_INT ? INT : REAL);
	give(b, kind == SPREAD ? TABLE : kind == NEXT_INT ? INT : REAL);
}

static Body *random_body(uint32_t depth, const Kind *input, uint32_t ninput, const Kind *out,
			 uint32_t nout)
{
	Body *b = arena_calloc(ctx->arena, 1, sizeof *b);
	b->ninput = ninput;
	for (uint32_t k = 0; k < ninput; k++)
		give(b, input[k]);
	for (uint32_t k = 0, n = depth ? below(5) : 4 + below(5); k < n; k++)
		add_step(b, depth);
	for (uint32_t k = 0; k < nout; k++) {
		uint32_t of = pick(b, out[k]);
		if (of == UINT32_MAX) { /* an integer of no other: as often as the first real has
		                           elements */
			b->step[b->nstep++] =
				(Step){.kind = NEXT_INT, .number = 2, .operand = {UINT32_MAX}};
			give(b, INT);
			of = b->nvalue - 1;
		}
		b->out[b->nout++] = of;
	}
	return b;
}

/* ---- as text ---- */

typedef struct {
	uint32_t id; /* %v12 */
	int64_t i;   /* of integers: their value, while rounds are written one after the other */
} Named;

typedef struct {
	Text t;
	bool unrolled;
	uint32_t id;
} Writer;

#define LINE(w, ...)                                                                               \
	(text_printf(&(w)->t, "  %%v%u = ", ++(w)->id), text_printf(&(w)->t, __VA_ARGS__),         \
	 text_char(&(w)->t, '\n'), (w)->id)

static const char *type_text(Kind kind)
{
	return kind == REAL ? "f64[3]" : kind == INT ? "i64[]" : "f64[3, 3]";
}

static Named write_int(Writer *w, int64_t value)
{
	return (Named){LINE(w, "full(value=%lld, shape=[], dtype=i64)", (long long)value), value};
}

static void write_body(Writer *w, const Body *b, const Named *in, Named *value);

static void write_list(Writer *w, const Named *value, const uint32_t *operand, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		text_printf(&w->t, "%s%%v%u", k ? ", " : "", value[operand[k]].id);
}

/* "graph @name(%v1: f64[3], ...) {": the inputs of b, and one more integer if `extra`. */
static void write_head(Writer *w, const char *name, const Body *b, Named *in, bool extra)
{
	text_printf(&w->t, "graph @%s(", name);
	for (uint32_t k = 0; k < b->ninput + extra; k++) {
		in[k] = (Named){++w->id, 0};
		text_printf(&w->t, "%s%%v%u: %s", k ? ", " : "", in[k].id,
			    type_text(k < b->ninput ? b->kind[k] : INT));
	}
	text_add(&w->t, ") {\n");
}

static void write_end(Writer *w, const Body *b, const Named *value, const Named *first)
{
	text_add(&w->t, "  return ");
	if (first)
		text_printf(&w->t, "%%v%u%s", first->id, b->nout ? ", " : "");
	write_list(w, value, b->out, b->nout);
	text_add(&w->t, "\n}");
}

static void write_graph(Writer *w, const char *name, const Body *b)
{
	Named in[MAX_OPERANDS], value[MAX_VALUES];
	write_head(w, name, b, in, false);
	write_body(w, b, in, value);
	write_end(w, b, value, NULL);
}

static bool holds(const char *op, int64_t x, int64_t y)
{
	return !strcmp(op, "lt")   ? x < y
	       : !strcmp(op, "le") ? x <= y
	       : !strcmp(op, "gt") ? x > y
	       : !strcmp(op, "ge") ? x >= y
				   : x == y;
}

static void gather(const Named *value, const Step *s, uint32_t n, Named *in)
{
	for (uint32_t k = 0; k < n; k++)
		in[k] = value[s->operand[k]];
}

static void write_gets(Writer *w, uint32_t tuple, uint32_t n, Named *result)
{
	for (uint32_t k = 0; k < n; k++)
		result[k] = (Named){LINE(w, "get(%%v%u, index=%u)", tuple, k), 0};
}

static void write_cond(Writer *w, const Step *s, const Named *value, Named *result)
{
	Named in[MAX_OPERANDS], inner[MAX_VALUES];
	if (w->unrolled) {
		const Body *b = s->body[!holds(s->op, value[s->operand[0]].i, s->number)];
		gather(value, s, s->n[2], in);
		write_body(w, b, in, inner);
		for (uint32_t k = 0; k < b->nout; k++)
			result[k] = inner[b->out[k]];
		return;
	}
	Named number = write_int(w, s->number);
	uint32_t p = LINE(w, "%s(%%v%u, %%v%u)", s->op, value[s->operand[0]].id, number.id),
		 c = ++w->id;
	text_printf(&w->t, "  %%v%u = cond(%%v%u, [", c, p);
	write_list(w, value, s->operand, s->n[2]);
	text_add(&w->t, "], yes=");
	write_graph(w, "yes", s->body[0]);
	text_add(&w->t, ", no=");
	write_graph(w, "no", s->body[1]);
	text_add(&w->t, ")\n");
	write_gets(w, c, s->body[0]->nout, result);
}

/* Rounds of a scan whose results are stacked as it says. */
static void unroll_scan(Writer *w, const Step *s, const Named *value, Named *result)
{
	const Body *b = s->body[0];
	Named in[MAX_OPERANDS], inner[MAX_VALUES], y[ROWS][MAX_OUT];
	gather(value, s, b->ninput, in);
	for (int t = 0; t < s->length; t++) {
		int row = s->reverse ? s->length - 1 - t : t;
		for (uint32_t k = s->n[0]; k < s->n[0] + s->n[1]; k++) {
			uint32_t part =
				LINE(w, "slice(%%v%u, start=[%d, 0], end=[%d, 3], step=[1, 1])",
				     value[s->operand[k]].id, row, row + 1);
			in[k].id = LINE(w, "reshape(%%v%u, shape=[3])", part);
		}
		write_body(w, b, in, inner);
		for (uint32_t k = 0; k < b->nout; k++)
			*(k < s->n[0] ? &in[k] : &y[row][k]) = inner[b->out[k]];
	}
	memcpy(result, in, s->n[0] * sizeof *in);
	for (uint32_t k = s->n[0]; k < b->nout; k++) {
		uint32_t part[ROWS];
		for (int t = 0; t < s->length; t++)
			part[t] = LINE(w, "reshape(%%v%u, shape=[1, 3])", y[t][k].id);
		if (!s->length)
			result[k].id = LINE(w, "full(value=0, shape=[0, 3], dtype=f64)");
		else if (s->length == 1)
			result[k].id = part[0];
		else
			result[k].id =
				s->length == 2
					? LINE(w, "concat([%%v%u, %%v%u], dim=0)", part[0], part[1])
					: LINE(w, "concat([%%v%u, %%v%u, %%v%u], dim=0)", part[0],
					       part[1], part[2]);
	}
}

static void write_scan(Writer *w, const Step *s, const Named *value, Named *result)
{
	const Body *b = s->body[0];
	if (w->unrolled) {
		unroll_scan(w, s, value, result);
	} else {
		uint32_t tuple = ++w->id, at = 0;
		text_printf(&w->t, "  %%v%u = scan(", tuple);
		for (uint32_t list = 0; list < 3; at += s->n[list++]) {
			text_add(&w->t, "[");
			write_list(w, value, s->operand + at, s->n[list]);
			text_add(&w->t, "], ");
		}
		text_add(&w->t, "body=");
		write_graph(w, "body", b);
		text_printf(&w->t, ", length=%d, reverse=%s)\n", s->length,
			    s->reverse ? "true" : "false");
		write_gets(w, tuple, b->nout, result);
	}
	for (uint32_t k = s->n[0]; k < b->nout && s->length != ROWS; k++)
		result[k].id =
			LINE(w, "reduce(%%v%u, kind=\"sum\", dims=[0], acc=f64)", result[k].id);
}

static Named write_count(Writer *w, const Step *s, Named counter)
{
	Named step = write_int(w, s->count.subtracts ? -s->count.step : s->count.step);
	uint32_t a = s->count.add_first || s->count.subtracts ? counter.id : step.id,
		 b = a == counter.id ? step.id : counter.id;
	return (Named){LINE(w, "%s(%%v%u, %%v%u)", s->count.subtracts ? "sub" : "add", a, b),
		       counter.i + s->count.step};
}

static void unroll_while(Writer *w, const Step *s, Named counter, Named limit, const Named *value,
			 Named *result)
{
	const Body *b = s->body[0];
	Named in[MAX_OPERANDS], inner[MAX_VALUES];
	gather(value, s, b->ninput, in);
	in[0] = counter;
	while (holds(s->op, in[0].i, limit.i) &&
	       (!s->count.second || holds(s->op, 2 * in[0].i, s->count.second))) {
		write_body(w, b, in, inner);
		in[0] = write_count(w, s, in[0]);
		for (uint32_t k = 0; k < b->nout; k++)
			in[1 + k] = inner[b->out[k]];
	}
	memcpy(result, in, s->n[0] * sizeof *in);
}

static uint32_t write_compare(Writer *w, const Step *s, uint32_t x, uint32_t limit)
{
	const char *turned = *s->op == 'l'     ? (s->op[1] == 't' ? "gt" : "ge")
			     : s->op[1] == 't' ? "lt"
					       : "le";
	return s->turned ? LINE(w, "%s(%%v%u, %%v%u)", turned, limit, x)
			 : LINE(w, "%s(%%v%u, %%v%u)", s->op, x, limit);
}

static void write_test(Writer *w, const Step *s, const Body *b)
{
	Named in[MAX_OPERANDS + 1];
	write_head(w, "more", b, in, s->count.limit_is_operand);
	Named limit = s->count.limit_is_operand ? in[b->ninput] : write_int(w, s->count.limit);
	uint32_t p = write_compare(w, s, in[0].id, limit.id);
	if (s->count.second) {
		uint32_t twice = LINE(w, "add(%%v%u, %%v%u)", in[0].id, in[0].id);
		uint32_t q = write_compare(w, s, twice, write_int(w, s->count.second).id);
		p = s->count.second_first ? LINE(w, "bit_and(%%v%u, %%v%u)", q, p)
					  : LINE(w, "bit_and(%%v%u, %%v%u)", p, q);
	}
	text_printf(&w->t, "  return %%v%u\n}", p);
}

static void write_while(Writer *w, const Step *s, const Named *value, Named *result)
{
	const Body *b = s->body[0];
	Named start = s->count.from_int ? value[s->operand[0]] : write_int(w, s->count.start),
	      limit = write_int(w, s->count.limit);
	if (s->count.limit_is_difference) {
		Named more = write_int(w, s->count.limit + 3), three = write_int(w, 3);
		limit.id = LINE(w, "sub(%%v%u, %%v%u)", more.id, three.id);
	}
	if (s->count.from_int)
		limit = (Named){LINE(w, "add(%%v%u, %%v%u)", start.id, limit.id),
				start.i + limit.i};
	if (w->unrolled) {
		unroll_while(w, s, start, limit, value, result);
		return;
	}
	Named in[MAX_OPERANDS + 1], inner[MAX_VALUES];
	bool extra = s->count.limit_is_operand;
	uint32_t tuple = ++w->id;
	text_printf(&w->t, "  %%v%u = while([%%v%u%s", tuple, start.id, s->n[0] > 1 ? ", " : "");
	write_list(w, value, s->operand + 1, s->n[0] - 1);
	text_add(&w->t, "], [");
	write_list(w, value, s->operand + s->n[0], s->n[2]);
	if (extra)
		text_printf(&w->t, "%s%%v%u", s->n[2] ? ", " : "", limit.id);
	text_add(&w->t, "], cond=");
	write_test(w, s, b);
	text_add(&w->t, ", body=");
	write_head(w, "round", b, in, extra);
	write_body(w, b, in, inner);
	Named next = write_count(w, s, in[0]);
	write_end(w, b, inner, &next);
	if (s->count.says_most)
		text_printf(&w->t, ", most=%d", MOST);
	text_add(&w->t, ")\n");
	write_gets(w, tuple, s->n[0], result);
}

static void write_step(Writer *w, const Step *s, const Named *value, Named *result)
{
	uint32_t x = s->operand[0] == UINT32_MAX ? 0 : value[s->operand[0]].id,
		 y = s->operand[1] == UINT32_MAX ? 0 : value[s->operand[1]].id;
	switch (s->kind) {
	case UNARY:
		result->id = LINE(w, "%s(%%v%u)", s->op, x);
		return;
	case BINARY: /* the sine keeps it bounded */
		x = LINE(w, "%s(%%v%u, %%v%u)", s->op, x, y);
		result->id = LINE(w, "sin(%%v%u)", x);
		return;
	case SCALE:
		y = LINE(w, "full(value=%g, shape=[3], dtype=f64)", 0.25 * s->number);
		result->id = LINE(w, "mul(%%v%u, %%v%u)", x, y);
		return;
	case SUM:
		x = LINE(w, "reduce(%%v%u, kind=\"sum\", dims=[0], acc=f64)", x);
		x = LINE(w, "broadcast(%%v%u, shape=[3], map=[])", x);
		result->id = LINE(w, "sin(%%v%u)", x);
		return;
	case COLUMNS:
		result->id = LINE(w, "reduce(%%v%u, kind=\"sum\", dims=[0], acc=f64)", x);
		return;
	case SPREAD:
		result->id = LINE(w, "broadcast(%%v%u, shape=[3, 3], map=[1])", x);
		return;
	case FROM_INT:
		y = LINE(w, "convert(%%v%u, dtype=f64)", y);
		y = LINE(w, "broadcast(%%v%u, shape=[3], map=[])", y);
		y = LINE(w, "mul(%%v%u, %%v%u)", x, y);
		result->id = LINE(w, "sin(%%v%u)", y);
		return;
	case NEXT_INT:
		*result = write_int(w, s->number);
		if (x)
			*result = (Named){LINE(w, "add(%%v%u, %%v%u)", result->id, x),
					  result->i + value[s->operand[0]].i};
		return;
	case COND:
		write_cond(w, s, value, result);
		return;
	case SCAN:
		write_scan(w, s, value, result);
		return;
	case WHILE:
		write_while(w, s, value, result);
		return;
	}
}

static uint32_t results_of(const Step *s)
{
	return s->kind < COND ? 1 : s->kind == WHILE ? s->n[0] : s->body[0]->nout;
}

static void write_body(Writer *w, const Body *b, const Named *in, Named *value)
{
	uint32_t n = b->ninput;
	memcpy(value, in, n * sizeof *in);
	for (uint32_t k = 0; k < b->nstep; n += results_of(&b->step[k++]))
		write_step(w, &b->step[k], value, value + n);
}

/* ---- graphs and their inputs ---- */

static const Kind main_inputs[] = {INT, REAL, TABLE, REAL, INT, REAL};
enum { NINPUT = sizeof main_inputs / sizeof *main_inputs };
static const int64_t main_ints[] = {1, 0, 0, 0, 2, 0};

typedef struct {
	Graph *g, *plain; /* with loops and branches; without */
	Tensor in[NINPUT];
} Program;

static double random_real(void)
{
	return 0.1 + 0.001 * below(1000);
}

static Tensor random_tensor(TypeId type, int64_t number)
{
	const Type *t = ir_type_of(ir, type);
	Tensor x = {.dtype = t->dtype, .rank = t->n};
	for (uint32_t k = 0; k < t->n; k++)
		assert_true(sym_is_const(ir->syms, t->dim[k], &x.dim[k]));
	x.data = arena_calloc(ctx->arena, tensor_bytes(&x) + 1, 1);
	for (int64_t i = 0; i < tensor_numel(&x); i++)
		if (dtype_is_float(x.dtype))
			tensor_set_f64(&x, i, random_real() - 0.3);
		else
			tensor_set_i64(&x, i, number);
	return x;
}

static Graph *written(const Body *b, bool unrolled, bool print)
{
	Writer w = {.unrolled = unrolled};
	Named in[NINPUT], value[MAX_VALUES];
	text_init(&w.t, ctx->arena);
	write_head(&w, "main", b, in, false);
	for (uint32_t k = 0; k < NINPUT; k++)
		in[k].i = main_ints[k];
	write_body(&w, b, in, value);
	write_end(&w, b, value, NULL);
	text_char(&w.t, '\n');
	if (print)
		fputs(w.t.data, stderr);
	return parsed(w.t.data);
}

static Program random_program(bool print)
{
	Kind out[MAX_OUT] = {REAL, REAL, REAL, REAL, INT, TABLE};
	Body *b = random_body(0, main_inputs, NINPUT, out, 4 + below(3));
	Program p = {.g = written(b, false, print), .plain = written(b, true, false)};
	for (uint32_t k = 0; k < NINPUT; k++)
		p.in[k] = random_tensor(node_type_id(p.g, p.g->input.data[k].node), main_ints[k]);
	return p;
}

/* ---- comparisons ---- */

typedef struct {
	uint32_t seed;
	char what[100];
} Where;

static void run(const Where *w, Graph *g, const Tensor *in, uint32_t nin, Tensor *out)
{
	if (!g || !interp(ctx, g, in, nin, out, g->output.n, ctx->arena))
		fail_msg("seed %u, %s: %s", w->seed, w->what,
			 ctx->last ? ctx->last->text : "no graph");
}

static void same(const Where *w, uint32_t k, const Tensor *x, const Tensor *y)
{
	if (x->dtype != y->dtype || x->rank != y->rank ||
	    memcmp(x->dim, y->dim, x->rank * sizeof *x->dim) != 0)
		fail_msg("seed %u, %s, output %u: another type", w->seed, w->what, k);
	double size = 1e-3;
	for (int64_t i = 0; i < tensor_numel(y); i++)
		size = fmax(size, fabs(tensor_f64(y, i)));
	for (int64_t i = 0; i < tensor_numel(x); i++)
		if (!(fabs(tensor_f64(x, i) - tensor_f64(y, i)) <= 1e-9 * size))
			fail_msg("seed %u, %s, output %u, element %lld: %.15g, not %.15g", w->seed,
				 w->what, k, (long long)i, tensor_f64(x, i), tensor_f64(y, i));
}

/* Both give the same; g also after the passes. */
static void same_results(Where *w, Graph *g, Graph *plain, const Tensor *in, uint32_t nin)
{
	Tensor x[40], y[40];
	run(w, plain, in, nin, y);
	run(w, g, in, nin, x);
	assert_int_equal(g->output.n, plain->output.n);
	for (uint32_t k = 0; k < g->output.n; k++)
		same(w, k, &x[k], &y[k]);
	Graph *clean = graph_clone(g);
	if (!pipeline_run(clean, &(PipelineOptions){0}))
		fail_msg("seed %u, %s: %s", w->seed, w->what,
			 ctx->last ? ctx->last->text : "the passes fail");
	strcat(w->what, ", after passes");
	run(w, clean, in, nin, x);
	for (uint32_t k = 0; k < g->output.n; k++)
		same(w, k, &x[k], &y[k]);
}

/* Each input of g of which there are values, as the last transform made it. */
static uint32_t extended(const Graph *g, const Tensor *in, uint32_t nin, Tensor *more)
{
	memcpy(more, in, nin * sizeof *in);
	for (uint32_t k = nin; k < g->input.n; k++)
		more[k] = random_tensor(node_type_id(g, g->input.data[k].node), 0);
	return g->input.n;
}

static bool *some(const Graph *g, uint32_t percent, bool of_outputs)
{
	uint32_t n = of_outputs ? g->output.n : g->input.n;
	bool *b = arena_calloc(ctx->arena, n + 1, sizeof *b), any = false;
	for (uint32_t pass = 0; pass < 2 && !any; pass++, percent = 100)
		for (uint32_t k = 0; k < n; k++) {
			Node x = of_outputs ? g->output.data[k].node : g->input.data[k].node;
			any |= b[k] = dtype_is_float(node_dtype(g, x)) && chance(percent);
		}
	return b;
}

static void check_derivatives(uint32_t seed, const Program *p)
{
	Tensor in[40], more[40];
	Where w = {.seed = seed, .what = "values"};
	same_results(&w, p->g, p->plain, p->in, NINPUT);
	for (uint32_t mode = 0; mode < 2; mode++) {
		Wrt by = {.input = some(p->g, 60, false),
			  .output = mode ? NULL : some(p->g, 50, true)};
		Graph *g = (mode ? transform_jvp : transform_vjp)(p->g, &by),
		      *plain = (mode ? transform_jvp : transform_vjp)(p->plain, &by);
		w = (Where){.seed = seed};
		snprintf(w.what, sizeof w.what, "%s", mode ? "jvp" : "vjp");
		if (!g || !plain)
			fail_msg("seed %u, %s: %s", seed, w.what, ctx->last ? ctx->last->text : "");
		uint32_t nin = extended(g, p->in, NINPUT, in);
		same_results(&w, g, plain, in, nin);
		if (seed % 2)
			continue;
		uint32_t second = below(2);
		by = (Wrt){.input = some(g, 40, false),
			   .output = second ? NULL : some(g, 30, true)};
		g = (second ? transform_jvp : transform_vjp)(g, &by);
		plain = (second ? transform_jvp : transform_vjp)(plain, &by);
		w = (Where){.seed = seed};
		snprintf(w.what, sizeof w.what, "%s of %s", second ? "jvp" : "vjp",
			 mode ? "jvp" : "vjp");
		if (!g || !plain)
			fail_msg("seed %u, %s: %s", seed, w.what, ctx->last ? ctx->last->text : "");
		same_results(&w, g, plain, more, extended(g, in, nin, more));
	}
}

/* ---- batches ---- */

static Tensor lane_of(const Tensor *x, int64_t lane)
{
	Tensor y = *x;
	y.rank--;
	memmove(y.dim, x->dim + 1, y.rank * sizeof *y.dim);
	y.data = (char *)x->data + (size_t)lane * tensor_bytes(&y);
	return y;
}

static Tensor lanes_of(const Tensor *x)
{
	Tensor y = *x;
	y.rank++;
	y.dim[0] = LANES;
	memcpy(y.dim + 1, x->dim, x->rank * sizeof *x->dim);
	y.data = arena_calloc(ctx->arena, tensor_bytes(&y) + 1, 1);
	for (int64_t lane = 0, n = tensor_numel(x); lane < LANES; lane++)
		for (int64_t i = 0; i < n; i++)
			if (dtype_is_float(x->dtype))
				tensor_set_f64(&y, lane * n + i,
					       tensor_f64(x, i) +
						       0.2 * random_real() * (double)lane);
			else
				tensor_set_i64(&y, lane * n + i,
					       tensor_i64(x, i) + (lane + 1) % LANES - 1);
	return y;
}

/* A batch of g and one call for each member give the same. */
static Graph *check_batch(Where w, Graph *g, const bool *batched, const Tensor *in, uint32_t nin)
{
	Tensor wide[40], one[40], x[40], y[40];
	Graph *v = transform_vmap(g, batched, sym_int(ir->syms, LANES), RANDOM_SAME);
	for (uint32_t k = 0; k < nin; k++)
		wide[k] = batched[k] ? lanes_of(&in[k]) : in[k];
	run(&w, v, wide, nin, x);
	for (int64_t lane = 0; lane < LANES; lane++) {
		for (uint32_t k = 0; k < nin; k++)
			one[k] = batched[k] ? lane_of(&wide[k], lane) : in[k];
		run(&w, g, one, nin, y);
		for (uint32_t k = 0; k < g->output.n; k++) {
			Tensor got = lane_of(&x[k], lane);
			same(&w, k, &got, &y[k]);
		}
	}
	return v;
}

static void check_batches(uint32_t seed, const Program *p)
{
	bool batched[40] = {0}, any = false;
	Tensor in[40], more[40], x[40], y[40];
	for (uint32_t k = 0; k < NINPUT; k++)
		any |= batched[k] = chance(k == 0 || k == 4 ? 40 : 50);
	batched[1] |= !any;
	Graph *v = check_batch((Where){seed, "vmap"}, p->g, batched, p->in, NINPUT);
	Wrt by = {.input = arena_calloc(ctx->arena, NINPUT, sizeof(bool))};
	for (uint32_t k = any = 0; k < NINPUT; k++)
		any |= ((bool *)by.input)[k] = batched[k] && main_inputs[k] != INT;
	if (!any)
		return;
	Graph *vjp = transform_vjp(p->g, &by), *of_batch = transform_vjp(v, &by);
	uint32_t nin = extended(vjp, p->in, NINPUT, in);
	for (uint32_t k = NINPUT; k < nin; k++)
		batched[k] = true;
	Graph *batch_of = check_batch((Where){seed, "vmap of vjp"}, vjp, batched, in, nin);
	for (uint32_t k = 0; k < nin; k++)
		more[k] = batched[k] ? lanes_of(&in[k]) : in[k];
	Where w = {seed, "vjp of vmap"};
	run(&w, batch_of, more, nin, y);
	run(&w, of_batch, more, nin, x);
	for (uint32_t k = 0; k < of_batch->output.n; k++)
		same(&w, k, &x[k], &y[k]);
}

static void test_seed(uint32_t seed, bool print)
{
	rng = seed * 0x9e3779b97f4a7c15u + 12345;
	ctx = ctx_new();
	assert_non_null(ctx);
	ir = ir_new(ctx);
	if (setjmp(ctx->unwind))
		fail_msg("seed %u: %s", seed, ctx->bug_text);
	Program p = random_program(print);
	check_derivatives(seed, &p);
	check_batches(seed, &p);
	ctx_free(ctx);
}

static void test_programs(void **state)
{
	(void)state;
	const char *one = getenv("SEED");
	for (uint32_t seed = 0; seed < GRAPHS && !one; seed++)
		test_seed(seed, false);
	if (one)
		test_seed((uint32_t)atoi(one), true);
}

int main(void)
{
	op_init();
	(void)setup, (void)teardown;
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_programs)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
