/* Facts that passes ask of the op table (ir/op/op.h) against .eval and the operator's samples:
 * what moves only moves, what commutes gives the same bits, a mark is its operand, dimensions are
 * as .dims says, and an integer is what .integer makes of the operands'. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "ir/interp/interp.h"
#include "tests/help/sample.h"

enum { MOST_RESULTS = 8 };

/* A sample with its results. */
typedef struct {
	Sample s;
	Tensor out[MOST_RESULTS];
	uint32_t nout;
	const OpInfo *info;
	const char *text;
} Known;

static const char *name_of(const Known *k)
{
	return op_name(node_op(k->s.g, k->s.node));
}

static const char *element(const Tensor *x, int64_t i)
{
	return (const char *)x->data + (size_t)i * dtype_size(x->dtype);
}

static bool same_element(const Tensor *x, int64_t i, const Tensor *y, int64_t j)
{
	size_t size = dtype_size(x->dtype);
	return size == dtype_size(y->dtype) && memcmp(element(x, i), element(y, j), size) == 0;
}

static bool same_values(const Tensor *x, const Tensor *y)
{
	bool same = tensor_numel(x) == tensor_numel(y);
	for (int64_t i = 0; same && i < tensor_numel(x); i++)
		same = same_element(x, i, y, i);
	return same;
}

static const Tensor *operand(const Known *k, uint32_t at)
{
	Node x = node_in(k->s.g, k->s.node, at);
	for (uint32_t j = 0; j < k->s.nin; j++)
		if (k->s.g->input.data[j].node.i == x.i)
			return &k->s.in[j];
	fail_msg("%s: operand %u is no input", name_of(k), at);
	return NULL;
}

static void check_moves(const Known *k)
{
	if (node_nin(k->s.g, k->s.node) != 1 || k->out->dtype != operand(k, 0)->dtype)
		fail_msg("%s: .moves of several operands, or to another dtype", name_of(k));
	const Tensor *x = operand(k, 0);
	for (int64_t i = 0; i < tensor_numel(k->out); i++) {
		bool found = false;
		for (int64_t j = 0; j < tensor_numel(x) && !found; j++)
			found = same_element(k->out, i, x, j);
		if (!found)
			fail_msg("%s: %s: element %lld is none of the operand", name_of(k), k->text,
				 (long long)i);
	}
}

static void check_commutes(Ctx *ctx, const Known *k)
{
	Tensor swapped[] = {k->s.in[1], k->s.in[0]}, out;
	assert_int_equal(k->s.nin, 2);
	assert_true(interp(ctx, k->s.g, swapped, 2, &out, 1, ctx->arena));
	if (!same_values(k->out, &out))
		fail_msg("%s: %s: does not commute", name_of(k), k->text);
}

static void check_marks(const Known *k)
{
	for (uint32_t r = 0; r < k->nout; r++)
		if (!same_values(&k->out[r], operand(k, r)))
			fail_msg("%s: result %u is not operand %u", name_of(k), r, r);
}

static uint32_t reduced(const Known *k)
{
	uint32_t n = 1;
	if (op_arg_index(node_op(k->s.g, k->s.node), "dim") < 0)
		node_ints(k->s.g, k->s.node, "dims", &n);
	return n;
}

static void check_dims(const Known *k)
{
	const Tensor *x = operand(k, 0), *y = k->out;
	Dims d = k->info->dims;
	bool fits = d == DIMS_REGROUPED  ? same_values(x, y)
		    : d == DIMS_REDUCED  ? y->rank + reduced(k) == x->rank
		    : d == DIMS_APPENDED ? y->rank == x->rank + 1
		    : d == DIMS_ABSORBED ? y->rank + 1 == x->rank
					 : y->rank == x->rank;
	for (uint32_t i = 0; i < x->rank && d == DIMS_SAME && fits; i++)
		fits = x->dim[i] == y->dim[i];
	if (!fits)
		fail_msg("%s: %s: the dimensions are not as .dims says", name_of(k), k->text);
}

/* Of the first elements; false: there is no integer. */
static bool check_integer(const Known *k)
{
	SymTab *syms = graph_syms(k->s.g);
	Sym in[SAMPLE_INPUTS];
	int64_t v;
	if (!dtype_is_int(k->out->dtype) || !tensor_numel(k->out))
		return false;
	for (uint32_t j = 0; j < k->s.nin; j++) {
		if (!dtype_is_int(operand(k, j)->dtype))
			return false;
		in[j] = sym_int(syms, tensor_i64(operand(k, j), 0));
	}
	Sym got = k->info->integer(k->s.g, k->s.node, in);
	if (!sym_is_const(syms, got, &v) || v != tensor_i64(k->out, 0))
		fail_msg("%s: %s: .integer is not the value", name_of(k), k->text);
	return true;
}

/* How many of the facts in a block a sample has said something about. */
static bool check(Ctx *ctx, Op op, const char *text, DType real, bool *integer)
{
	Known k = {.info = op_info(op), .text = text};
	Ir *ir = ir_new(ctx);
	if (!sample_build(ir, op, text, (SampleForm){false, real}, &k.s))
		return false;
	k.nout = k.s.g->output.n;
	assert_true(k.nout <= MOST_RESULTS);
	assert_true(interp(ctx, k.s.g, k.s.in, k.s.nin, k.out, k.nout, ctx->arena));
	if (k.info->moves)
		check_moves(&k);
	if (k.info->commutes)
		check_commutes(ctx, &k);
	if (k.info->marks)
		check_marks(&k);
	if (k.info->dims)
		check_dims(&k);
	if (k.info->integer)
		*integer |= check_integer(&k);
	return true;
}

static bool has_facts(const OpInfo *info)
{
	return info->moves || info->commutes || info->marks || info->dims || info->integer;
}

static void check_op(Op op)
{
	static const DType reals[] = {DT_none, DT_i64};
	Ctx *ctx = ctx_new();
	assert_non_null(ctx);
	if (setjmp(ctx->unwind))
		fail_msg("%s: an internal error", op_name(op));
	const char *text;
	bool checked = false, integer = false;
	for (uint32_t k = 0; (text = sample_text(ctx->arena, op, k)); k++)
		for (uint32_t r = 0; r < 2; r++)
			checked |= check(ctx, op, text, reals[r], &integer);
	if (!checked || (op_info(op)->integer && !integer))
		fail_msg("%s: no sample was checked", op_name(op));
	ctx_free(ctx);
}

static void test_samples(void **state)
{
	(void)state;
	uint32_t checked = 0;
	for (Op op = 1; op < op_count(); op++) {
		const OpInfo *info = op_info(op);
		if (!has_facts(info) || info->no_sample)
			continue;
		check_op(op);
		checked++;
	}
	assert_true(checked >= 20);
}

static bool has_arg(Op op, const char *name)
{
	return op_arg_index(op, name) >= 0;
}

/* What is wrong with a block's facts, else NULL. */
static const char *fault(Op op)
{
	const OpInfo *info = op_info(op);
	if (info->folds && op_is_scalar(op))
		return ".folds of a scalar function, which always folds";
	if (info->folds && op_kind(op) == OP_COMPOSITE)
		return ".folds of a composite, which has expanded";
	if (info->folds && (info->effect || info->foreign))
		return "an effect folds";
	if (info->commutes && !op_is_scalar(op))
		return ".commutes is of scalar functions";
	if ((info->moves || info->dims) && op_kind(op) != OP_PRIMITIVE)
		return "movement and dimensions are of structural primitives";
	if ((op_lower(op)->role == LOWER_ANCHOR) != (info->along != NULL))
		return ".along is of anchors, and required of them";
	bool indexed = op_kind(op) == OP_PRIMITIVE && has_arg(op, "mode") && has_arg(op, "axes");
	if ((info->checks == CHECKS_INDEX) != indexed)
		return "CHECKS_INDEX is of primitives with mode and axes, and required of them";
	if (info->marks && (op_kind(op) != OP_COMPOSITE || info->expands != EXPANDS_IN_DECOMPOSE))
		return "a mark is a composite that stays until decompose";
	return info->parts && info->complex ? "both .parts and .complex" : NULL;
}

static void test_blocks(void **state)
{
	(void)state;
	for (Op op = 1; op < op_count(); op++)
		if (fault(op))
			fail_msg("%s: %s", op_name(op), fault(op));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_samples),
					   cmocka_unit_test(test_blocks)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
