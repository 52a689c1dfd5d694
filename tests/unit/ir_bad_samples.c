/* The samples of the op table with arguments that they should not have: what is said, or what type
 * comes out, is in tests/data/bad_samples; nothing crashes, and no internal error comes. One
 * line for each change, where it is an error or changes the type of a result (of another operand:
 * to one that is not the operand's):
 *
 *     aten.split dim=2: dim 2 of rank 2
 *
 * BLESS=1 in the environment writes the file anew: read what changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/build/build.h"
#include "ir/build/verify.h"
#include "tests/help/golden.h"
#include "tests/help/records.h"
#include "tests/help/sample.h"

enum { MAX_LEVEL = 12, MAX_NODES = 5000, MAX_ATTR = 40 };

/* What is changed: an argument's value (a list's element), or an operand. */
typedef struct {
	Op op;
	uint32_t arg;
	bool is_operand;
	uint32_t which; /* of the changes there are */
} Change;

/* ---- changes ---- */

/* In the place of an integer, beside an operand of that rank; false: no more. */
static bool other_int(uint32_t which, uint32_t rank, int64_t *v)
{
	const int64_t values[] = {-(int64_t)rank - 1, -(int64_t)rank, -1, 0, 1, rank,
				  (int64_t)1 << 40};
	*v = which < 7 ? values[which] : 0;
	return which < 7;
}

static Attr of_int(Ir *ir, int64_t v)
{
	return attr_sym(sym_int(ir->syms, v));
}

/* The attribute with the change; false: there is no such change. */
static bool change_attr(Ir *ir, const Arg *arg, uint32_t which, uint32_t rank, Attr *a, Text *name)
{
	static const DType dtypes[] = {DT_bool, DT_u8, DT_f16, DT_c64};
	static const double fractions[] = {-0.5, 0, 1.5, INFINITY, NAN};
	int64_t v;
	bool *flags;
	Sym list[MAX_RANK + 1];
	switch (a->kind) {
	case ATTR_int:
		if (arg->kind == ARG_tensors || !other_int(which, rank, &v))
			return false;
		*a = of_int(ir, v);
		text_printf(name, "%lld", (long long)v);
		return true;
	case ATTR_ints:
		if (a->n > MAX_RANK || which > 8)
			return false;
		if (which == 8) { /* more than a tensor has dimensions */
			for (uint32_t k = 0; k <= MAX_RANK; k++)
				list[k] = k < a->n ? a->ints[k] : sym_int(ir->syms, 1);
			*a = attr_ints(arena_dup(ir->ctx->arena, list, sizeof list), MAX_RANK + 1);
			text_printf(name, "and more, %d", MAX_RANK + 1);
			return true;
		}
		for (uint32_t k = 0; k < a->n; k++)
			list[k] = a->ints[k];
		if (which == 7) { /* one more */
			list[a->n] = a->n ? a->ints[0] : sym_int(ir->syms, 1);
			*a = attr_ints(arena_dup(ir->ctx->arena, list, sizeof list), a->n + 1);
			text_add(name, "and one more");
			return true;
		}
		if (!a->n || !other_int(which, rank, &v))
			return false;
		list[a->n - 1] = sym_int(ir->syms, v);
		*a = attr_ints(arena_dup(ir->ctx->arena, list, sizeof list), a->n);
		text_printf(name, "..., %lld", (long long)v);
		return true;
	case ATTR_float:
		if (which >= sizeof fractions / sizeof *fractions)
			return false;
		*a = attr_float(fractions[which]);
		text_printf(name, "%g", fractions[which]);
		return true;
	case ATTR_floats:
		if (which > 1)
			return false;
		*a = (Attr){ATTR_floats,
			    which ? a->n + 1 : a->n,
			    {.floats = arena_alloc(ir->ctx->arena, (a->n + 1) * sizeof(double))}};
		text_add(name, which ? "zeros and one more" : "zeros");
		return true;
	case ATTR_bools:
		if (which)
			return false;
		flags = arena_dup(ir->ctx->arena, a->bools, a->n);
		if (a->n)
			flags[0] = !flags[0];
		*a = attr_bools(flags, a->n);
		text_add(name, "the first turned");
		return true;
	case ATTR_dtype:
		if (which >= sizeof dtypes / sizeof *dtypes)
			return false;
		*a = attr_dtype(dtypes[which]);
		text_add(name, dtype_name(dtypes[which]));
		return true;
	case ATTR_bool:
		if (which)
			return false;
		*a = attr_bool(!a->b);
		text_add(name, a->b ? "true" : "false");
		return true;
	case ATTR_str:
		if (which)
			return false;
		*a = attr_str(ir, "nonsense");
		text_add(name, "nonsense");
		return true;
	default:
		return false;
	}
}

/* An operand of another shape or dtype, as a new input; none: there is no such change. */
static Node change_operand(Graph *g, Node x, uint32_t which, Text *name)
{
	Type t = *node_type(g, x);
	SymTab *syms = graph_syms(g);
	Sym dim[MAX_RANK + 1];
	for (uint32_t k = 0; k < t.n; k++)
		dim[k] = t.dim[k];
	uint32_t rank = t.n;
	switch (which) {
	case 0:
		if (!rank)
			return (Node){0};
		rank--;
		text_add(name, "without its last dimension");
		break;
	case 1:
		if (rank == MAX_RANK)
			return (Node){0};
		dim[rank++] = sym_int(syms, 2);
		text_add(name, "with one dimension more");
		break;
	case 2:
		if (!rank)
			return (Node){0};
		dim[rank - 1] = sym_addi(syms, dim[rank - 1], 3);
		text_add(name, "longer by 3");
		break;
	case 3:
		if (!rank)
			return (Node){0};
		dim[0] = sym_int(syms, 0);
		text_add(name, "empty");
		break;
	case 4:
		t.dtype = DT_c64;
		text_add(name, "of c64");
		break;
	case 5: /* of another dtype of its kind */
		t.dtype = t.dtype == DT_f32         ? DT_f64
			  : dtype_is_float(t.dtype) ? DT_f32
			  : t.dtype == DT_i64       ? DT_i32
						    : DT_i64;
		text_printf(name, "of %s", dtype_name(t.dtype));
		break;
	case 6:
		t.dtype = dtype_is_float(t.dtype) || dtype_is_complex(t.dtype) ? DT_i64 : DT_f32;
		text_printf(name, "of %s", dtype_name(t.dtype));
		break;
	case 7:
		t.dtype = t.dtype == DT_bool ? DT_u8 : DT_bool;
		text_printf(name, "of %s", dtype_name(t.dtype));
		break;
	default:
		return (Node){0};
	}
	return graph_add_input(g, "changed", INPUT_USER, ir_type(g->ir, t.dtype, rank, dim));
}

/* ---- one change ---- */

static bool expand_all(Graph *g)
{
	Ctx *ctx = g->ir->ctx;
	for (uint32_t level = 0; level < MAX_LEVEL && g->node.n < MAX_NODES; level++) {
		uint32_t last = g->node.n;
		bool found = false;
		for (Node n = g->first, next; n.i; n = next) {
			next = node_next(g, n);
			if (op_kind(node_op(g, n)) != OP_COMPOSITE || n.i >= last)
				continue;
			found = true;
			Build b = {.g = g, .before = n, .where = node_where(g, n)};
			Node by = op_expand_node(&b, n);
			if (ctx->nerror)
				return false;
			if (by.i)
				graph_replace(g, n, by);
			graph_erase(g, n);
		}
		if (!found)
			return graph_verify(g);
	}
	return ctx_error(ctx, NULL, "grows without end");
}

/* The types of the results, or none if it failed. */
static const char *outcome(const Sample *s, Node n)
{
	Graph *g = s->g;
	Ctx *ctx = g->ir->ctx;
	if (!n.i || ctx->nerror)
		return NULL;
	const char *type = node_type_id(g, n).i ? type_str(g->ir, node_type_id(g, n)) : "nothing";
	g->output.n = 0;
	if (node_type_id(g, n).i && node_type(g, n)->dtype != DT_none)
		graph_add_output(g, "y", n, -1);
	return expand_all(g) ? type : NULL;
}

/* False: there is no such change. */
static bool try_change(const Change *c, const char *plain, Text *line)
{
	Ctx *volatile ctx = ctx_new();
	Text name;
	assert_non_null(ctx);
	if (setjmp(ctx->unwind)) {
		text_printf(line, " INTERNAL: %s\n", ctx->bug_text);
		ctx_free(ctx);
		return true;
	}
	Ir *ir = ir_new(ctx);
	Sample s;
	text_init(&name, ctx->arena);
	assert_true(
		sample_build(ir, c->op, sample_text(ctx->arena, c->op, 0), (SampleForm){0}, &s));
	Graph *g = s.g;
	const Schema *schema = op_schema(c->op);
	Node in[SAMPLE_INPUTS];
	Attr attr[MAX_ATTR];
	uint32_t nin = node_nin(g, s.node),
		 rank = nin && node_in(g, s.node, 0).i ? node_rank(g, node_in(g, s.node, 0)) : 0;
	bool changed;
	for (uint32_t k = 0; k < nin; k++)
		in[k] = node_in(g, s.node, k);
	for (uint32_t k = 0; k < schema->narg; k++)
		attr[k] = *ir_attr(ir, node_data(g, s.node)->attr, k);
	if (c->is_operand) {
		Node by = in[c->arg].i ? change_operand(g, in[c->arg], c->which, &name) : (Node){0};
		changed = by.i != 0;
		in[c->arg] = changed ? by : in[c->arg];
		text_printf(line, " operand %u %s: ", c->arg, name.n ? name.data : "");
	} else {
		const Arg *arg = &schema->arg[c->arg];
		changed = change_attr(ir, arg, c->which, rank, &attr[c->arg], &name) &&
			  op_attr_fits(ir, arg, &attr[c->arg]);
		text_printf(line, " %s=%s: ", arg->name, name.n ? name.data : "");
	}
	if (changed) {
		Build b = {.g = g, .where = op_name(c->op)};
		const char *type = outcome(&s, b_node(&b, c->op, in, nin, attr, schema->narg));
		const char *same =
			c->is_operand ? type_str(ir, node_type_id(g, in[c->arg])) : plain;
		if (type && same && strcmp(type, same) == 0)
			line->n = 0;
		else
			text_printf(line, "%s\n",
				    type         ? type
				    : ctx->first ? ctx->first->text
						 : "fails without a word");
	} else {
		line->n = 0;
	}
	line->data[line->n] = 0;
	ctx_free(ctx);
	return changed || (!c->is_operand && c->which < 8);
}

/* The type without a change. */
static const char *plain_type(Arena *a, Op op, uint32_t *nin)
{
	Ctx *ctx = ctx_new();
	assert_non_null(ctx);
	assert_int_equal(setjmp(ctx->unwind), 0);
	Ir *ir = ir_new(ctx);
	Sample s;
	assert_true(sample_build(ir, op, sample_text(ctx->arena, op, 0), (SampleForm){0}, &s));
	*nin = node_nin(s.g, s.node);
	TypeId t = node_type_id(s.g, s.node);
	const char *type = t.i ? arena_strdup(a, type_str(ir, t)) : NULL;
	ctx_free(ctx);
	return type;
}

static void add_changes(Arena *a, Op op, Text *out)
{
	uint32_t nin;
	const char *plain = plain_type(a, op, &nin);
	text_printf(out, "%s\n", op_name(op));
	for (uint32_t operand = 0; operand < 2; operand++)
		for (uint32_t k = 0; k < (operand ? nin : op_schema(op)->narg); k++)
			for (uint32_t which = 0;; which++) {
				Text line;
				text_init(&line, a);
				if (!try_change(&(Change){op, k, operand, which}, plain, &line))
					break;
				text_add(out, line.data);
			}
}

/* ---- the test ---- */

enum { MAX_FAMILIES = 512 };

/* What is said, by family of operators. */
typedef struct {
	const char *family[MAX_FAMILIES];
	Text text[MAX_FAMILIES];
	uint32_t n;
} Said;

static Text *of_family(Arena *a, Said *said, Op op)
{
	const char *family = records_family(op_name(op));
	uint32_t k = 0;
	while (k < said->n && strcmp(said->family[k], family) != 0)
		k++;
	if (k == said->n) {
		assert_true(k < MAX_FAMILIES);
		said->family[said->n++] = family;
		text_init(&said->text[k], a);
	}
	return &said->text[k];
}

static void check_all(Arena *a, const Said *said)
{
	for (uint32_t k = 0; k < said->n; k++) {
		const char *text = said->text[k].data;
		golden_check(arena_printf(a, TEST_DATA "/bad_samples/%s.txt", said->family[k]),
			     text);
		assert_null(strstr(text, "INTERNAL"));
		assert_null(strstr(text, "without a word"));
	}
	records_only("bad_samples", said->family, said->n);
}

static void bad_samples(void **state)
{
	(void)state;
	const char *only = sample_only();
	Ctx *ctx = ctx_new();
	assert_non_null(ctx);
	assert_int_equal(setjmp(ctx->unwind), 0);
	Said said = {0};
	for (Op op = 1; op < op_count(); op++)
		if (op_info(op)->sample && (!only || strcmp(only, op_name(op)) == 0))
			add_changes(ctx->arena, op, of_family(ctx->arena, &said, op));
	for (uint32_t k = 0; only && k < said.n; k++)
		print_message("%s", said.text[k].data);
	if (!only)
		check_all(ctx->arena, &said);
	ctx_free(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(bad_samples)};
	op_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
