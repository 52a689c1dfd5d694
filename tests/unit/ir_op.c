/* The op table: every schema parses, every expansion text is well formed, names are found, defaults
 * become attributes of the right kind. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ops/rules/rules.h"
#include "optable.h"
#include "tests/unit/ir_fixture.h"

static void test_table(void **state)
{
	(void)state;
	assert_true(OP_COUNT > 1);
	for (Op op = 1; op < OP_COUNT; op++) {
		const OpInfo *info = op_info(op);
		const Schema *s = op_schema(op);
		assert_string_not_equal(s->name, "");
		assert_int_equal(op_find(s->name), op);
		assert_string_equal(op_name(op), s->name);
		int kinds = !!info->scalar + !!info->expand + !!info->build + !!info->build_as.f;
		if (kinds != (op_kind(op) != OP_PRIMITIVE) || (!kinds && !info->infer))
			fail_msg("%s: expected exactly one kind of definition", s->name);
		if (op_expand_check(op))
			fail_msg("%s: expansion \"%s\": %s", s->name, info->expand,
				 op_expand_check(op));
		for (uint32_t k = 0; k < s->narg; k++) {
			Attr a = op_default(ir, &s->arg[k]);
			if (!op_default_reads(&s->arg[k]))
				fail_msg("%s: default of %s does not read", s->name,
					 s->arg[k].name);
			if (s->arg[k].has_default && a.kind != ATTR_none &&
			    !op_attr_fits(ir, &s->arg[k], &a))
				fail_msg("%s: default of %s", s->name, s->arg[k].name);
		}
	}
	assert_int_equal(op_find("no_such_op"), OP_none);
	assert_int_equal(op_find("inpu"), OP_none);
}

static bool has_args(Op op, const char *const *name)
{
	for (; *name; name++)
		if (op_arg_index(op, *name) < 0)
			return false;
	return true;
}

/* Is what a block says of its lowering all that lowering will ask for? What is wrong, else NULL. */
static const char *lowering_fault(Op op)
{
	const OpLower *l = op_lower(op);
	bool is_root = l->role == LOWER_ROOT;
	if ((op_kind(op) == OP_COMPOSITE) != (l->role == LOWER_NONE))
		return "a role is for what does not expand";
	if (op_is_scalar(op) && op_info(op)->lower.role != LOWER_NONE)
		return "scalar functions are element-wise";
	if ((l->role == LOWER_INDEX || l->role == LOWER_ANCHOR) && !l->index)
		return "no .index";
	if (l->role == LOWER_LEAF && !l->index && !has_args(op, (const char *[]){"value", NULL}))
		return "a leaf without .index and `value`";
	if (l->role == LOWER_REDUCE && !has_args(op, (const char *[]){"kind", "dims", "acc", NULL}))
		return "a reduction without kind, dims and acc";
	if (l->role == LOWER_ANCHOR && !has_args(op, (const char *[]){"acc", NULL}))
		return "an anchor without acc";
	if (l->role == LOWER_ANCHOR && l->reads != ALL_OPERANDS)
		return "an anchor reads all operands at indices of their own";
	if (l->holds == HOLDS_OPERANDS && !has_args(op, (const char *[]){"dim", NULL}))
		return "operands are held along dim";
	if (l->holds == HOLDS_INTERIOR &&
	    (!l->other || !has_args(op, (const char *[]){"low", "high", "interior", NULL})))
		return "a border without its value, low, high and interior";
	if ((l->holds || l->other) && l->role != LOWER_INDEX)
		return "only index maps hold operands";
	if (l->fuses == FUSE_ALWAYS && (l->role != LOWER_INDEX || l->reads))
		return "what always joins is an index map";
	if (l->role == LOWER_MAP && l->keeps != KEEPS_INDEX)
		return "element-wise keeps the index";
	if ((l->axes || l->own_results) && !is_root)
		return "axes and results of its own are for roots";
	return is_root && l->fuses ? "a root joins nothing" : NULL;
}

static void test_lowering(void **state)
{
	(void)state;
	for (Op op = 1; op < OP_COUNT; op++)
		if (lowering_fault(op))
			fail_msg("%s: %s", op_name(op), lowering_fault(op));
}

static void test_aliases(void **state)
{
	(void)state;
	assert_int_equal(op_find("aten.concat"), op_find("aten.cat"));
	assert_int_equal(op_find("aten.concatenate"), OP_aten_cat);
	assert_int_equal(op_find("aten.transpose"), OP_aten_transpose_int);
	assert_int_equal(op_find("aten.concat aten.concatenate"), OP_none);
	for (Op op = 1; op < OP_COUNT; op++) {
		const char *alias = op_info(op)->aliases ? op_info(op)->aliases : "";
		for (size_t n; *alias; alias += n + (alias[n] == ' ')) {
			n = strcspn(alias, " ");
			const char *name = arena_strndup(ctx->arena, alias, n);
			if (!n || op_find(name) != op)
				fail_msg("%s: alias \"%s\"", op_name(op), name);
		}
	}
}

static void test_views(void **state)
{
	(void)state;
	for (Op op = 1; op < OP_COUNT; op++) {
		const OpInfo *info = op_info(op);
		if (op_schema(op)->view && !info->view)
			fail_msg("%s: returns Tensor(a), and no .view says which", op_name(op));
		if (info->view &&
		    !(op_schema(op)->narg && op_schema(op)->arg[0].kind <= ARG_tensors))
			fail_msg("%s: a view of what is not its first argument", op_name(op));
		if (!info->view && info->view_if)
			fail_msg("%s: .view_if of no view", op_name(op));
		if (info->view_undo &&
		    (info->view != VIEW_BITS || op_find(info->view_undo) == OP_none))
			fail_msg("%s: .view_undo is not the way back from other bits", op_name(op));
		if (info->view_if == VIEW_IF_IDLE &&
		    !has_args(op, (const char *[]){"p", "train", NULL}))
			fail_msg("%s: dropout without p and train", op_name(op));
	}
}

/* ---- overloads ---- */

static bool same_text(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
}

/* What is wrong with a row of the block, else NULL. */
static const char *row_fault(const OpInfo *block, const Overload *row)
{
	if (!block->expand && !op_builds(block))
		return "an overload of what is no composite";
	if (!!row->expand + !!row->build + !!row->build_as.f > 1)
		return "two of .expand, .build and .build_as";
	if (row->sample && row->no_sample)
		return "both .sample and .no_sample";
	if (same_text(row->expand, block->expand) || (row->build && row->build == block->build) ||
	    (row->build_as.f && row->build_as.f == block->build_as.f &&
	     row->build_as.how == block->build_as.how))
		return "expands to what its block expands to anyway";
	if (same_text(row->sample, block->sample) || same_text(row->no_sample, block->no_sample))
		return "has the samples of its block anyway";
	if (same_text(row->doc, block->doc) || (row->narrow_scalars && block->narrow_scalars))
		return "says what its block says anyway";
	return same_text(row->schema, block->schema) ? "the schema of its block" : NULL;
}

/* OP_aten_add_Scalar is "aten.add.Scalar". */
static void check_name(Op op, const char *enumerator)
{
	char *name = arena_strndup(ctx->arena, op_name(op), strlen(op_name(op)));
	for (char *p = name; *p; p++)
		if (*p == '.')
			*p = '_';
	assert_string_equal(name, enumerator);
}

static void check_row(Op op, Op block, uint32_t k)
{
	const OpInfo *of = op_info(block), *info = op_info(op);
	const Overload *row = &of->overloads[k];
	if (row_fault(of, row))
		fail_msg("%s, an overload of %s: %s", op_name(op), op_name(block),
			 row_fault(of, row));
	assert_int_equal(op_block(op), block);
	assert_string_equal(info->schema, row->schema);
	assert_null(info->overloads);
	bool own = row->expand || row->build || row->build_as.f;
	assert_ptr_equal(info->expand, own ? row->expand : of->expand);
	assert_true(info->build == (own ? row->build : of->build));
	assert_true(info->build_as.f == (own ? row->build_as.f : of->build_as.f));
	assert_int_equal(info->build_as.how, own ? row->build_as.how : of->build_as.how);
	if (!row->sample && !row->no_sample)
		assert_ptr_equal(info->sample, of->sample);
	assert_int_equal(info->promote, of->promote);
	assert_ptr_equal(info->deriv[0], of->deriv[0]);
	assert_true(info->adjoint == of->adjoint && info->batch == of->batch);
	assert_int_equal(info->view,
			 op_schema(op)->view == op_schema(block)->view ? of->view : VIEW_NONE);
}

static void test_overloads(void **state)
{
	(void)state;
#define BLOCK(name) check_name(OP_##name, #name), assert_int_equal(op_block(OP_##name), OP_##name);
#define ROW(name, of, k) check_name(OP_##name, #name), check_row(OP_##name, OP_##of, k);
	OP_LIST(BLOCK, ROW)
#undef BLOCK
#undef ROW
	assert_int_equal(op_find("aten.add.Scalar"), OP_aten_add_Scalar);
	assert_int_equal(op_block(OP_aten_add_Scalar), OP_aten_add_Tensor);
	assert_int_equal(op_block(OP_COUNT), OP_none);
}

static Node build_other(Build *b, Node n)
{
	(void)b;
	return n;
}

static void test_row_faults(void **state)
{
	(void)state;
	static const OpInfo block = {.schema = "f.x(Tensor a) -> Tensor",
				     .doc = "d",
				     .expand = "neg(a)",
				     .narrow_scalars = true,
				     .sample = "f32[2]"},
			    scalar = {.schema = "g(Tensor a) -> Tensor", .scalar = "neg(a)"};
	static const Overload good = {.schema = "f.y(Tensor a) -> Tensor", .sample = "f32[3]"},
			      built = {.schema = "f.y(Tensor a) -> Tensor", .build = build_other};
	static const Overload bad[] = {
		{.schema = "f.x(Tensor a) -> Tensor"},
		{.schema = "f.y(Tensor a) -> Tensor", .expand = "neg(a)"},
		{.schema = "f.y(Tensor a) -> Tensor", .expand = "abs(a)", .build = build_other},
		{.schema = "f.y(Tensor a) -> Tensor", .sample = "f32[2]"},
		{.schema = "f.y(Tensor a) -> Tensor", .sample = "f32[3]", .no_sample = "none"},
		{.schema = "f.y(Tensor a) -> Tensor", .doc = "d"},
		{.schema = "f.y(Tensor a) -> Tensor", .narrow_scalars = true},
	};
	assert_null(row_fault(&block, &good));
	assert_null(row_fault(&block, &built));
	assert_non_null(row_fault(&scalar, &good));
	for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
		if (!row_fault(&block, &bad[k]))
			fail_msg("accepted row %zu", k);
}

static Schema parse(const char *text)
{
	Schema s;
	const char *err;
	if (!schema_parse(ctx->arena, text, &s, &err))
		fail_msg("%s", err);
	return s;
}

static void test_schema(void **state)
{
	(void)state;
	Schema s = parse(
		"aten.conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, "
		"SymInt[2] padding=[0, 1], int[2] dilation=1, SymInt groups=1) -> Tensor");
	assert_string_equal(s.name, "aten.conv2d");
	assert_int_equal(s.narg, 7);
	assert_int_equal(s.nresult, 1);
	assert_int_equal(s.arg[2].kind, ARG_tensor);
	assert_true(s.arg[2].optional && !s.arg[1].optional);
	assert_int_equal(s.arg[3].kind, ARG_ints);
	assert_int_equal(s.arg[3].size, 2);
	Attr a = op_default(ir, &s.arg[3]);
	assert_int_equal(a.n, 2);
	assert_true(sym_is(ir->syms, a.ints[0], 1) && sym_is(ir->syms, a.ints[1], 1));
	a = op_default(ir, &s.arg[4]);
	assert_int_equal(a.n, 2);
	assert_true(sym_is(ir->syms, a.ints[0], 0) && sym_is(ir->syms, a.ints[1], 1));
	assert_true(sym_is(ir->syms, op_default(ir, &s.arg[6]).s, 1));
	assert_int_equal(op_default(ir, &s.arg[0]).kind, ATTR_none);

	s = parse(
		"f(Tensor(a!) self, Tensor?[] indices, Tensor(b)[] xs, *, ScalarType? dtype=None, "
		"Layout? layout=None, bool? pin_memory=None, MemoryFormat "
		"memory_format=contiguous_format, "
		"float eps=1e-05, bool[4] mask=[True,False,True,True], float[]? scale=None, "
		"str mode=\"a, (b\", int reduction=Mean, Scalar alpha=1, Scalar p=0.5, bool "
		"t=True, "
		"ScalarType d=long, graph body, const value) -> (Tensor(a!) output, Tensor "
		"hidden)");
	assert_int_equal(s.narg, 18);
	assert_int_equal(s.nresult, 2);
	assert_true(s.arg[0].writes && !s.arg[2].writes);
	assert_int_equal(s.arg[1].kind, ARG_tensors);
	assert_true(s.arg[1].optional && !s.arg[2].optional);
	assert_true(s.arg[3].kw_only && !s.arg[2].kw_only);
	assert_int_equal(s.arg[4].kind, ARG_ignored);
	assert_int_equal(s.arg[5].kind, ARG_ignored);
	assert_int_equal(op_default(ir, &s.arg[6]).kind, ATTR_none);
	assert_true(op_default(ir, &s.arg[7]).f == 1e-05);
	a = op_default(ir, &s.arg[8]);
	assert_int_equal(a.n, 4);
	assert_true(a.bools[0] && !a.bools[1]);
	assert_int_equal(op_default(ir, &s.arg[9]).kind, ATTR_none);
	assert_string_equal(op_default(ir, &s.arg[10]).str, "a, (b");
	assert_true(sym_is(ir->syms, op_default(ir, &s.arg[11]).s, 1));
	assert_int_equal(op_default(ir, &s.arg[12]).kind, ATTR_int);
	assert_true(op_default(ir, &s.arg[13]).f == 0.5);
	assert_true(op_default(ir, &s.arg[14]).b);
	assert_int_equal(op_default(ir, &s.arg[15]).dtype, DT_i64);
	assert_int_equal(s.arg[16].kind, ARG_graph);
	assert_int_equal(s.arg[17].kind, ARG_const);

	assert_int_equal(parse("f() -> ()").nresult, 0);
	assert_int_equal(parse("f(Tensor x) -> Tensor[]").nresult, UINT32_MAX);
	assert_int_equal(parse("f(int[] x=[]) -> (Tensor, Tensor, Tensor)").nresult, 3);
}

static void test_bad_schemas(void **state)
{
	(void)state;
	static const char *const bad[] = {"",
					  "f",
					  "f(",
					  "f()",
					  "f() ->",
					  "f(Tensor)",
					  "f(Foo x) -> Tensor",
					  "f(Tensor x Tensor y) -> Tensor",
					  "f(Tensor x=) -> Tensor",
					  "f(int[2 x) -> Tensor",
					  "f(Tensor x) -> Tensor y z",
					  "f(*) -> Tensor",
					  "f(Tensor(a! x) -> Tensor",
					  "(Tensor x) -> Tensor"};
	for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
		Schema s;
		const char *err = NULL;
		if (schema_parse(ctx->arena, bad[k], &s, &err))
			fail_msg("accepted \"%s\"", bad[k]);
		assert_non_null(err);
	}
}

static void test_promotion(void **state)
{
	(void)state;
	static const struct {
		DType a, b, r;
	} pairs[] = {
		{DT_bool, DT_u8, DT_u8},   {DT_u8, DT_i8, DT_i16},    {DT_u8, DT_i32, DT_i32},
		{DT_i64, DT_f16, DT_f16},  {DT_f16, DT_bf16, DT_f32}, {DT_bf16, DT_f32, DT_f32},
		{DT_f32, DT_f64, DT_f64},  {DT_c64, DT_f64, DT_c128}, {DT_c32, DT_i64, DT_c32},
		{DT_c32, DT_bf16, DT_c64}, {DT_u32, DT_i32, DT_i64},  {DT_bool, DT_bool, DT_bool},
	};
	for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
		assert_int_equal(dtype_promote(pairs[k].a, pairs[k].b), pairs[k].r);
		assert_int_equal(dtype_promote(pairs[k].b, pairs[k].a), pairs[k].r);
	}
	Promotion p = {DT_none, DT_none, DT_none};
	promote_tensor(&p, DT_f16, 2);
	promote_tensor(&p, DT_f64, 0);
	promote_weak(&p, DT_f64);
	assert_int_equal(promote_result(&p), DT_f16); /* a 0-d tensor does not widen */
	p = (Promotion){DT_i32, DT_f64, DT_none};
	assert_int_equal(promote_result(&p), DT_f64); /* but a higher category wins */
	p = (Promotion){DT_i8, DT_none, DT_f32};
	assert_int_equal(promote_result(&p), DT_f32);
	p = (Promotion){DT_bool, DT_none, DT_i64};
	assert_int_equal(promote_result(&p), DT_i64);
	p = (Promotion){DT_i8, DT_i64, DT_i64};
	assert_int_equal(promote_result(&p), DT_i8);
	p = (Promotion){DT_f64, DT_c64, DT_none};
	assert_int_equal(promote_result(&p), DT_c128);
}

static void test_half(void **state)
{
	(void)state;
	for (uint32_t v = 0; v < 65536; v++) {
		float f = f16_to_f32((uint16_t)v), b = bf16_to_f32((uint16_t)v);
		if (f == f)
			assert_int_equal(f32_to_f16(f), v);
		else
			assert_true(f16_to_f32(f32_to_f16(f)) != f16_to_f32(f32_to_f16(f)));
		if (b == b)
			assert_int_equal(f32_to_bf16(b), v);
	}
	for (uint32_t v = 0; v < 256; v++)
		for (DType d = DT_f8e4m3; d <= DT_f8e5m2fnuz; d++) {
			float f = narrow_to_f32(d, v);
			if (f == f)
				assert_int_equal(f32_to_narrow(d, f), v);
		}
	assert_int_equal(f32_to_f16(65519.0f), 0x7bff); /* ties to even, then infinity */
	assert_int_equal(f32_to_f16(65520.0f), 0x7c00);
	assert_int_equal(f32_to_f16(2.98023223876953125e-8f), 0);
	assert_int_equal(f32_to_f16(2.9802325e-8f), 1);
	assert_int_equal(f32_to_f16(1.00048828125f), 0x3c00);
	assert_int_equal(f32_to_narrow(DT_f8e4m3, 464.0f), 0x7e);
	assert_int_equal(f32_to_narrow(DT_f8e4m3, 465.0f), 0x7e);
	assert_int_equal(f32_to_narrow(DT_f8e5m2, 1e9f), 0x7c);
	assert_true(narrow_to_f32(DT_f8e4m3, 0x7e) == 448.0f);
}

/* One NaN, no infinity, no -0; what rounds beyond the greatest number is NaN. */
static void test_fnuz(void **state)
{
	(void)state;
	static const struct {
		DType d;
		float most, beyond, least; /* beyond: halfway to what would be next */
	} of[] = {{DT_f8e4m3fnuz, 240, 248, 0x1p-10f}, {DT_f8e5m2fnuz, 57344, 61440, 0x1p-17f}};
	for (uint32_t k = 0; k < 2; k++) {
		DType d = of[k].d;
		assert_true(isnan(narrow_to_f32(d, 0x80)));
		assert_true(dtype_max(d) == (double)of[k].most);
		assert_true(narrow_to_f32(d, 1) == of[k].least);
		assert_int_equal(f32_to_narrow(d, NAN), 0x80);
		assert_int_equal(f32_to_narrow(d, -INFINITY), 0x80);
		assert_int_equal(f32_to_narrow(d, of[k].beyond), 0x80);
		assert_int_equal(f32_to_narrow(d, -nextafterf(of[k].beyond, 0)), 0xff);
		assert_int_equal(f32_to_narrow(d, -0.0f), 0);
		assert_int_equal(f32_to_narrow(d, -of[k].least / 2), 0);
		assert_int_equal(f32_to_narrow(d, nextafterf(-of[k].least / 2, -1)), 0x81);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_table, setup, teardown),
		cmocka_unit_test(test_lowering),
		cmocka_unit_test(test_views),
		cmocka_unit_test_setup_teardown(test_aliases, setup, teardown),
		cmocka_unit_test_setup_teardown(test_overloads, setup, teardown),
		cmocka_unit_test(test_row_faults),
		cmocka_unit_test_setup_teardown(test_schema, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_schemas, setup, teardown),
		cmocka_unit_test(test_promotion),
		cmocka_unit_test(test_half),
		cmocka_unit_test(test_fnuz),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
