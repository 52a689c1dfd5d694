/* .index of the op table against .eval: every element of a sample's result is the operand's element
 * that .index names, the other value where it says that there is none, or the sum of products over
 * the axes that it asks for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "ir/interp/interp.h"
#include "tests/help/sample.h"

enum { MAX_AXES = 8 };

/* Who asks: with numbers for the axes, and the operands' elements for values. */
typedef struct {
	IndexMap map;
	const Sample *s;
	uint32_t naxes;
	int64_t axis[MAX_AXES], extent[MAX_AXES];
	bool none; /* there is no such element */
} Asked;

static SymTab *syms_of(const Asked *a)
{
	return graph_syms(a->map.g);
}

static int64_t number(const Asked *a, Sym e)
{
	int64_t v;
	if (!sym_is_const(syms_of(a), e, &v))
		fail_msg("%s: an index that is no number", op_name(node_op(a->map.g, a->map.n)));
	return v;
}

static const Tensor *operand(const Asked *a, uint32_t k)
{
	Node x = node_in(a->map.g, a->map.n, k);
	for (uint32_t j = 0; j < a->s->nin; j++)
		if (a->map.g->input.data[j].node.i == x.i)
			return &a->s->in[j];
	fail_msg("%s: operand %u is no input", op_name(node_op(a->map.g, a->map.n)), k);
	return NULL;
}

/* Its offset; -1 where at[] is outside. */
static int64_t offset_of(const Asked *a, const Tensor *x, const Sym *at)
{
	int64_t offset = 0;
	for (uint32_t d = 0; d < x->rank; d++) {
		int64_t i = number(a, at[d]);
		if (i < 0 || i >= x->dim[d])
			return -1;
		offset = offset * x->dim[d] + i;
	}
	return offset;
}

static Sym axis(IndexMap *m, const char *name, Sym extent)
{
	(void)name;
	Asked *a = (Asked *)m;
	assert_true(a->naxes < MAX_AXES);
	a->extent[a->naxes] = number(a, extent);
	return sym_int(syms_of(a), a->axis[a->naxes++]);
}

static Sym value(IndexMap *m, uint32_t k, const Sym *at, Sym extent, IndexMode mode)
{
	Asked *a = (Asked *)m;
	const Tensor *x = operand(a, k);
	int64_t n = number(a, extent), offset = offset_of(a, x, at);
	assert_true(offset >= 0);
	int64_t v = tensor_i64(x, offset);
	if (mode == INDEX_CHECK && v < 0)
		v += n;
	bool inside = v >= 0 && v < n;
	a->none |= !inside && (mode == INDEX_FILL || n == 0);
	return sym_int(syms_of(a), inside ? v : v < 0 ? 0 : n - 1);
}

/* Asks about the element at a->map.at. */
static void ask(Asked *a)
{
	a->none = false;
	a->naxes = a->map.nrange = 0;
	memset(a->map.in, 0, sizeof a->map.in);
	op_lower(node_op(a->map.g, a->map.n))->index(&a->map);
	for (uint32_t k = 0; k < a->map.nrange; k++) {
		const struct IndexRange *r = &a->map.range[k];
		int64_t e = number(a, r->e);
		a->none |= e < number(a, r->lo) || e >= number(a, r->hi);
	}
}

static double element(const Tensor *x, int64_t i)
{
	return dtype_is_float(x->dtype) ? tensor_f64(x, i) : (double)tensor_i64(x, i);
}

/* What is read from an operand, 0 where there is nothing. */
static double read(const Asked *a, uint32_t k, const Sym *at)
{
	const Tensor *x = operand(a, k);
	int64_t offset = a->none ? -1 : offset_of(a, x, at);
	if (!a->none && offset < 0)
		fail_msg("%s: an index outside operand %u", op_name(node_op(a->map.g, a->map.n)),
			 k);
	return offset < 0 ? 0 : element(x, offset);
}

/* The element as lowering would have it. */
static double traced(Asked *a)
{
	const OpLower *l = op_lower(node_op(a->map.g, a->map.n));
	if (l->role == LOWER_LEAF) {
		ask(a);
		return (double)number(a, a->map.in[0][0]);
	}
	if (l->holds == HOLDS_OPERANDS) {
		uint32_t dim = (uint32_t)node_int(a->map.g, a->map.n, "dim");
		a->map.start = sym_int(syms_of(a), 0);
		for (uint32_t k = 0; k < node_nin(a->map.g, a->map.n); k++) {
			a->map.operand = k;
			ask(a);
			if (!a->none)
				return read(a, k, a->map.in[0]);
			a->map.start = sym_addi(syms_of(a), a->map.start, operand(a, k)->dim[dim]);
		}
		fail_msg("no operand holds the element");
	}
	memset(a->axis, 0, sizeof a->axis);
	double sum = 0;
	for (;;) {
		ask(a);
		if (a->none && l->other)
			return element(operand(a, l->other), 0);
		bool empty = false;
		for (uint32_t k = 0; k < a->naxes; k++)
			empty |= a->extent[k] == 0;
		if (empty)
			return 0;
		double x = read(a, 0, a->map.in[0]);
		sum += l->role == LOWER_ANCHOR ? x * read(a, 1, a->map.in[1]) : x;
		uint32_t k = 0;
		while (k < a->naxes && ++a->axis[k] == a->extent[k])
			a->axis[k++] = 0;
		if (k == a->naxes)
			return sum;
	}
}

/* Padding of convolutions is another operator's before anyone asks. */
static bool has_padding(const Graph *g, Node n)
{
	uint32_t rank;
	if (op_arg_index(node_op(g, n), "dilation_in") < 0)
		return false;
	const Sym *pad = node_ints(g, n, "pad", &rank),
		  *dilation = node_ints(g, n, "dilation_in", &rank);
	bool any = false;
	for (uint32_t k = 0; k < rank; k++)
		any |= sym_le(graph_syms(g), pad[k], sym_int(graph_syms(g), 0)) != YES ||
		       !sym_is(graph_syms(g), dilation[k], 1);
	if (any)
		return true;
	/* the last window may reach beyond the end */
	for (uint32_t k = 0; k < rank; k++) {
		Sym stride = node_ints(g, n, "stride", &rank)[k],
		    step = node_ints(g, n, "dilation", &rank)[k];
		Sym last = sym_mul(graph_syms(g),
				   sym_addi(graph_syms(g), node_dim(g, n, 3 + k), -1), stride);
		Node w = node_in(g, n, 1);
		Sym tap = sym_mul(graph_syms(g), sym_addi(graph_syms(g), node_dim(g, w, 3 + k), -1),
				  step);
		Sym top = sym_sub(graph_syms(g), sym_add(graph_syms(g), last, tap), pad[k]);
		any |= sym_lt(graph_syms(g), top, node_dim(g, node_in(g, n, 0), 3 + k)) != YES;
	}
	return any;
}

/* The element of operand 1 is where .along says, and it is summed over what is left. */
static void check_along(const Asked *a, uint32_t rank)
{
	const OpInfo *info = op_info(node_op(a->map.g, a->map.n));
	int from[MAX_RANK];
	uint32_t kept = 0;
	if (!info->along)
		return;
	info->along(a->map.g, a->map.n, from);
	for (uint32_t d = 0; d < rank; d++) {
		kept += from[d] >= 0;
		if (from[d] >= 0 && a->map.in[1][from[d]].i != a->map.at[d].i)
			fail_msg("dimension %u of %s is not along dimension %d of operand 1", d,
			         op_name(node_op(a->map.g, a->map.n)), from[d]);
	}
	assert_int_equal(kept + a->naxes, operand(a, 1)->rank);
}

/* The field of an element, of an operator whose results are such. */
static double field(const Asked *a, double x)
{
	const Graph *g = a->map.g;
	if (!op_lower(node_op(g, a->map.n))->fields)
		return x;
	const int64_t bits = node_int(g, a->map.n, "bits"),
		      number = sym_const(g->ir->syms, a->map.at[node_int(g, a->map.n, "dim")]);
	const int64_t at = (int64_t)x >> bits * number & ((1 << bits) - 1);
	uint32_t n;
	const Sym *table = node_ints(g, a->map.n, "table", &n);
	return (double)(n ? sym_const(g->ir->syms, table[at]) : at);
}

static uint32_t check(Ctx *ctx, Op op, const char *text)
{
	Sample s;
	Tensor out[1];
	Ir *ir = ir_new(ctx);
	if (!sample_build(ir, op, text, (SampleForm){false, DT_none}, &s))
		fail_msg("%s: %s does not build", op_name(op), text);
	if (has_padding(s.g, s.node))
		return 0;
	assert_true(interp(ctx, s.g, s.in, s.nin, out, 1, ctx->arena));
	Sym at[MAX_RANK];
	Asked a = {.map = {.g = s.g, .n = s.node, .at = at, .axis = axis, .value = value}, .s = &s};
	for (int64_t i = 0; i < tensor_numel(out); i++) {
		int64_t rest = i;
		for (uint32_t d = out->rank; d-- > 0;) {
			at[d] = sym_int(ir->syms, rest % out->dim[d]);
			rest /= out->dim[d];
		}
		double got = field(&a, traced(&a)), want = element(out, i);
		check_along(&a, out->rank);
		if (!(got == want || (isnan(got) && isnan(want)) ||
		      fabs(got - want) <= 2e-6 * fabs(want) + 2e-6))
			fail_msg("%s: %s: element %lld is %g, .index gives %g", op_name(op), text,
				 (long long)i, want, got);
	}
	return 1;
}

static void check_op(Op op)
{
	Ctx *ctx = ctx_new();
	assert_non_null(ctx);
	if (setjmp(ctx->unwind))
		fail_msg("%s: an internal error", op_name(op));
	const char *text;
	uint32_t checked = 0;
	for (uint32_t k = 0; (text = sample_text(ctx->arena, op, k)); k++)
		checked += check(ctx, op, text);
	if (!checked)
		fail_msg("%s: no sample was checked", op_name(op));
	ctx_free(ctx);
}

static void test_index(void **state)
{
	(void)state;
	uint32_t checked = 0;
	for (Op op = 1; op < op_count(); op++) {
		const OpLower *l = op_lower(op);
		bool reads = l->role == LOWER_INDEX || l->role == LOWER_LEAF ||
			     l->role == LOWER_ANCHOR || l->axes;
		if (!l->index || !reads)
			continue;
		check_op(op);
		checked++;
	}
	assert_true(checked >= 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_index)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
