/* The key of a kernel: another value of any field of its structs makes another key, unless the
 * field is listed here as one that schedules do not read. The fields come from the header
 * (tests/help/key_fields.py), so that a new one is tried without a change of this file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codegen/program/distinct.h"
#include "key_fields.h"
#include "ir/build/text.h"
#include "ir/build/verify.h"
#include "lower/graph/graph.h"
#include "passes/pipeline.h"

#include <string.h>

static const char *const graphs[] = {
	"graph @f(%x: f32[6, 5], %y: f32[5, 7], %b: f32[7]) {\n"
	"  %1 = contract(%x, %y, batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], acc=f32)\n"
	"  %2 = broadcast(%b, shape=[6, 7], map=[1])\n  %3 = add(%1, %2)\n  return %3\n}\n",
	"graph @f(%x: f32[6, 5]) {\n"
	"  %1 = reduce(%x, kind=\"max\", dims=[1], acc=f32)\n"
	"  %2 = broadcast(%1, shape=[6, 5], map=[0])\n  %3 = sub(%x, %2)\n  return %3\n}\n",
	"graph @f(%x: f32[6]) {\n  %a = sort(%x, dim=0, descending=false, stable=true)\n  %1 = "
	"get(%a, index=0)\n  return %1\n}\n",
	"graph @f(%x: f32[6, 3], %i: i64[4, 1]) {\n  %1 = gather(%x, %i, batch=0, axes=[0], "
	"mode=\"check\")\n  return %1\n}\n",
	"graph @f(%x: f32[6], %i: i64[4, 1], %u: f32[4]) {\n"
	"  %1 = scatter(%x, %i, %u, batch=0, axes=[0], combine=\"add\", mode=\"clamp\", "
	"unique=false, sorted=false)\n  return %1\n}\n",
	"graph @f(%x: f32[6]) {\n  %z = full(dtype=f32, shape=[], value=0.0)\n"
	"  %a = pad(%x, %z, low=[1], high=[1], interior=[0])\n  %1 = neg(%a)\n  return %1\n}\n",
	"graph @f(%x: f32[4, 6], %p: bool[4]) {\n  assert(%p, message=\"no\")\n"
	"  %1 = cumulative(%x, kind=\"sum\", dim=1, reverse=true)\n  return %1\n}\n",
	"graph @f(%x: f32[64, 5, 5]) {\n  %a = cholesky(%x)\n  %1 = get(%a, index=0)\n"
	"  return %1\n}\n",
	"graph @f(%x: f32[6, 2], %w: f32[2, 6]) {\n"
	"  %1 = fft_lines(%x, %w, dim=0, inverse=false, real=false)\n  return %1\n}\n",
};

/* A kernel whose objects are changed, one field at a time. */
typedef struct {
	Lowered *l;
	Kernel *k;
	DistinctKernels d;
	uint32_t id;    /* of the kernel as it is */
	BufId odd;      /* a buffer unlike all others */
	const Sym *one; /* an expression that no kernel has */
	uint32_t wrong;
} Trial;

/* Fields that schedules do not read. */
#define UNREAD(FIELD)                                                                              \
	FIELD(Kernel, name)                                                                        \
	FIELD(Kernel, graph)                                                                       \
	FIELD(Kernel, computes)                                                                    \
	FIELD(Kernel, evaluates)                                                                   \
	FIELD(Kernel, stored)                                                                      \
	FIELD(Kernel, lines)                                                                       \
	FIELD(Buffer, k)                                                                           \
	FIELD(Buffer, name)
/* Fields of which schedules read whether they are one value; codegen_distinct.c has their cases. */
#define READ_IN_PART(FIELD)                                                                        \
	FIELD(Buffer, kind)                                                                        \
	FIELD(Buffer, layout_fixed)                                                                \
	FIELD(Buffer, donated)

static bool is_listed(const char *type, const char *field)
{
#define IS(T, f)                                                                                   \
	if (!strcmp(type, #T) && !strcmp(field, #f))                                               \
		return true;
	UNREAD(IS)
	READ_IN_PART(IS)
#undef IS
	return false;
}

/* The number of elements of arrays and of what pointers point to. */
static uint32_t stored_rank(const Trial *t, const StageStore *s)
{
	return s->buf.i ? buf_of(t->l, s->buf)->rank : 0;
}
#define COUNT_Stage_map o->nmap
#define COUNT_Stage_red o->nred
#define COUNT_StageReduce_most 2
#define COUNT_StageStore_idx  stored_rank(t, o)
#define COUNT_ValueVar_at o->nat
#define COUNT_KxData_in o->nin
#define COUNT_KxData_idx o->nidx
#define COUNT_Buffer_dim o->rank
#define COUNT_Buffer_inner_lo (o->inner_lo ? o->rank : 0)
#define COUNT_Buffer_inner_hi (o->inner_hi ? o->rank : 0)

static const Sym *with_other_first(const Trial *t, const Sym *e, uint32_t n)
{
	Sym *copy = arena_dup(t->l->ir->ctx->arena, e, n * sizeof *e);
	copy[0] = *t->one;
	return copy;
}

/* Each changes the field and says whether it did. */
#define CHANGE_VALUE(T, f) (*(unsigned char *)&o->f ^= 1, true)
#define CHANGE_COUNT(T, f) (o->f && o->f--)
#define CHANGE_SYM(T, f) (o->f = *t->one, true)
#define CHANGE_SYMS(T, f)                                                                          \
	(COUNT_##T##_##f && (o->f = with_other_first(t, o->f, COUNT_##T##_##f), true))
#define CHANGE_ELEMENTS(T, f) (COUNT_##T##_##f && (*(unsigned char *)&o->f[0] ^= 1, true))
#define CHANGE_LIST(T, f) (o->f.n && o->f.n--)
#define CHANGE_BUFFER(T, f) (o->f.i && (o->f = t->odd, true))
#define CHANGE_TEXT(T, f) (o->f = NULL, true)
#define CHANGE_INSIDE(T, f) false /* has fields of its own */

static void expect_another_key(Trial *t, const char *type, const char *field, uint32_t *tried)
{
	bool fresh;
	const uint32_t id = distinct_key(&t->d, t->k, &fresh);
	++*tried;
	if (id != t->id || is_listed(type, field))
		return;
	t->wrong++;
	print_error("another %s.%s makes no other key of kernel %s\n", type, field, t->k->name);
}

/* try_T: changes each field of the object in turn. tried_T[]: how often each field was changed. */
#define ONE(T, f, how) +1
#define TRY_FIELD(T, f, how)                                                                       \
	if (is_listed(#T, #f) ? (tried_##T[n]++, false) : CHANGE_##how(T, f)) {                    \
		expect_another_key(t, #T, #f, &tried_##T[n]);                                      \
		*o = kept;                                                                         \
	}                                                                                          \
	n++;
#define TRIES(T)                                                                                   \
	static uint32_t tried_##T[0 KEY_FIELDS_##T(ONE)];                                          \
	static void try_##T(Trial *t, T *o)                                                        \
	{                                                                                          \
		const T kept = *o;                                                                 \
		uint32_t n = 0;                                                                    \
		KEY_FIELDS_##T(TRY_FIELD)                                                          \
	}
TRIES(Kernel)
TRIES(Axis)
TRIES(Stage)
TRIES(StageStore)
TRIES(StageReduce)
TRIES(StageRunning)
TRIES(StageSort)
TRIES(StageScatter)
TRIES(StageCheck)
TRIES(StageFactor)
TRIES(StageFft)
TRIES(ValueVar)
TRIES(KxData)
TRIES(Buffer)
TRIES(Layout)
TRIES(LayoutDim)

static void try_buffers(Trial *t)
{
	/* of this kernel, in order of appearance; a changed key has others */
	bool fresh;
	assert_int_equal(distinct_key(&t->d, t->k, &fresh), t->id);
	const uint32_t n = t->d.buf.n;
	const BufId *buf = arena_dup(t->l->ir->ctx->arena, t->d.buf.data, n * sizeof *buf);
	for (uint32_t i = 0; i < n; i++) {
		Buffer *b = buf_of(t->l, buf[i]);
		try_Buffer(t, b);
		try_Layout(t, &b->layout);
		for (uint32_t j = 0; j < b->layout.n; j++)
			try_LayoutDim(t, &b->layout.dim[j]);
	}
}

/* The fields of the stage, and those that its kind alone has. */
static void try_stage(Trial *t, Stage *st)
{
	try_Stage(t, st);
	try_StageStore(t, &st->store);
	switch (st->kind) {
	case STAGE_REDUCE:
	case STAGE_ARGREDUCE:
		try_StageReduce(t, &st->reduce);
		break;
	case STAGE_RUNNING:
		try_StageRunning(t, &st->running);
		break;
	case STAGE_SORT:
		try_StageSort(t, &st->sort);
		break;
	case STAGE_SCATTER:
		try_StageScatter(t, &st->scatter);
		break;
	case STAGE_CHECK:
		try_StageCheck(t, &st->check);
		break;
	case STAGE_FACTOR:
		try_StageFactor(t, &st->factor);
		break;
	case STAGE_FFT:
		try_StageFft(t, &st->fft);
		break;
	case STAGE_MAP:
		break;
	}
}

static void try_kernel(Trial *t)
{
	bool fresh;
	t->id = distinct_key(&t->d, t->k, &fresh);
	assert_true(fresh);
	try_Kernel(t, t->k);
	for (uint32_t i = 0; i < t->k->axis.n; i++)
		try_Axis(t, &t->k->axis.data[i]);
	for (uint32_t i = 0; i < t->k->vvar.n; i++)
		try_ValueVar(t, &t->k->vvar.data[i]);
	for (uint32_t i = 1; i < t->k->kx.n; i++)
		try_KxData(t, &t->k->kx.data[i]);
	for (uint32_t i = 0; i < t->k->stage.n; i++)
		try_stage(t, &t->k->stage.data[i]);
	try_buffers(t);
}

/* Gives the operands a border of zeros, which lowering knows of few. */
static void add_borders(Lowered *l)
{
	for (uint32_t i = 1; i < l->buf.n; i++) {
		Buffer *b = buf_of(l, (BufId){i});
		if (b->kind == BUF_INPUT && !b->inner_lo) {
			b->inner_lo = with_other_first(
				&(Trial){.l = l, .one = (Sym[]){sym_int(l->ir->syms, 1)}}, b->dim,
				b->rank);
			b->inner_hi = b->dim;
		}
	}
}

static uint32_t wrong_fields(const char *graph)
{
	Ctx *ctx = ctx_new();
	assert_non_null(ctx);
	if (setjmp(ctx->unwind))
		fail_msg("an internal error");
	Trial t = {0};
	Graph *g = graph_parse(ir_new(ctx), graph, "key");
	assert_true(g && graph_verify(g));
	t.l = lower_graph(g, &(LowerOptions){.target = target_find("x86-64-v3")});
	assert_non_null(t.l);
	add_borders(t.l);
	const Sym odd = sym_int(t.l->ir->syms, 12345);
	t.one = &odd;
	t.odd = lowered_buf(t.l, BUF_TEMP, 0, DT_f64, 1, &odd, "odd");
	distinct_init(&t.d, t.l, NULL, target_find("x86-64-v3"));
	for (uint32_t k = 0; k < t.l->steps.step.n; k++) {
		t.k = t.l->steps.step.data[k].kernel;
		if (t.k)
			try_kernel(&t);
	}
	ctx_free(ctx);
	return t.wrong;
}

static void each_field_is_in_the_key(void **state)
{
	(void)state;
	uint32_t wrong = 0;
	for (size_t k = 0; k < sizeof graphs / sizeof *graphs; k++)
		wrong += wrong_fields(graphs[k]);
	assert_int_equal(wrong, 0);
}

#define UNTRIED(T, f, how)                                                                         \
	if (!tried_##T[n++] && strcmp(#how, "INSIDE") != 0) {                                      \
		print_error("no kernel of this test has a %s.%s to change\n", #T, #f);             \
		wrong++;                                                                           \
	}
#define ALL_TRIED(T)                                                                               \
	{                                                                                          \
		uint32_t n = 0;                                                                    \
		KEY_FIELDS_##T(UNTRIED)                                                            \
	}

static void each_field_was_changed(void **state)
{
	(void)state;
	uint32_t wrong = 0;
	ALL_TRIED(Kernel)
	ALL_TRIED(Axis)
	ALL_TRIED(Stage)
	ALL_TRIED(StageStore)
	ALL_TRIED(StageReduce)
	ALL_TRIED(StageRunning)
	ALL_TRIED(StageSort)
	ALL_TRIED(StageScatter)
	ALL_TRIED(StageCheck)
	ALL_TRIED(StageFactor)
	ALL_TRIED(StageFft)
	ALL_TRIED(ValueVar)
	ALL_TRIED(KxData)
	ALL_TRIED(Buffer)
	ALL_TRIED(Layout)
	ALL_TRIED(LayoutDim)
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(each_field_is_in_the_key),
					   cmocka_unit_test(each_field_was_changed)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
