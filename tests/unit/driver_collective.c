/* Collectives: ranks are threads of this process, models run by the JIT, the interpreter of loop
 * IR and the reference interpreter, and each result is compared with what it should be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft.h"
#include "weft_call.h"
#include "weft_comm.h"

enum { MOST_RANKS = 8 };
typedef enum { BY_JIT, BY_LOOPS, BY_GRAPH, BACKENDS } By;

/* A computation: a graph's text, transformed, of one input and one output besides. */
typedef struct {
	const char *text;
	int ranks, n; /* elements of the input on each rank */
	int64_t shape[2];
	int rank_of_input;
	bool gradient; /* of the output's sum: the last output */
	int64_t batch; /* 0: none */
	double timeout;
	int absent; /* 1 + the number of a rank that leaves at once; 0: none */
} Case;

typedef struct {
	const Case *c;
	By by;
	int rank;
	WeftRank *comm;
	float *x, *y;
	uint64_t ny;
	WeftStatus status;
} Job;

static float input_of(int rank, int k)
{
	return (float)((rank * 37 + k * 11) % 23) - 7 + (float)rank / 8;
}

static WeftGraph *graph_of(Weft *w, const Case *c)
{
	WeftGraph *g = weft_parse(w, c->text, "f");
	if (g && c->batch)
		g = weft_vmap(w, g, &(WeftVmapOptions){.size = sizeof(WeftVmapOptions)});
	if (g && c->gradient)
		g = weft_vjp(w, g, &(WeftGradOptions){.size = sizeof(WeftGradOptions)});
	return g;
}

static void fail_by(Job *j, Weft *w)
{
	j->status.code = WEFT_ERR_COMM;
	snprintf(j->status.message, sizeof j->status.message, "%s", weft_messages(w));
}

static void keep(Job *j, const WeftTensor *y)
{
	j->ny = 1;
	for (int d = 0; d < y->ndim; d++)
		j->ny *= (uint64_t)y->shape[d];
	j->y = malloc(j->ny * sizeof *j->y + 1);
	memcpy(j->y, y->data, j->ny * sizeof *j->y);
}

static void interpret(Job *j, Weft *w, WeftGraph *g, const WeftTensor *in, uint32_t nin)
{
	WeftTensor out[4];
	uint32_t n;
	weft_outputs(w, g, &n);
	weft_interpret_comm(w, weft_rank_comm(j->comm));
	if (!weft_interpret(w, g, in, nin, out))
		fail_by(j, w);
	else
		keep(j, &out[n - 1]);
}

static void compiled(Job *j, Weft *w, const WeftGraph *g, const WeftTensor *in)
{
	WeftOptions o = {.size = sizeof o};
	const WeftModel *m = j->by == BY_JIT ? weft_jit(w, g, &o) : weft_loops(w, g, &o);
	const WeftContext context = {
		.size = sizeof context, .nthreads = 1, .comm = weft_rank_comm(j->comm)};
	WeftCall call;
	if (!m) {
		fail_by(j, w);
		return;
	}
	assert_int_equal(weft_call_open(&call, m, 0), WEFT_OK);
	call.context = &context;
	if (weft_call_run(&call, in))
		j->status = call.status;
	else
		keep(j, &call.output[weft_entry(m, 0)->noutput - 1]);
	weft_call_close(&call);
}

static void *rank_main(void *arg)
{
	Job *j = arg;
	const Case *c = j->c;
	Weft *w = weft_new();
	WeftGraph *g = graph_of(w, c);
	const int n = c->n;
	j->x = malloc((size_t)n * 2 * sizeof *j->x);
	for (int k = 0; k < n; k++)
		j->x[k] = input_of(j->rank, k);
	for (int k = 0; k < n; k++)
		j->x[n + k] = 1;
	if (!g) {
		fail_by(j, w);
	} else {
		WeftTensor in[2] = {weft_tensor(j->x, WEFT_F32, c->rank_of_input, c->shape)};
		uint32_t nin = 1;
		if (c->gradient)
			in[nin++] = weft_tensor(j->x + n, WEFT_F32, 0, c->shape);
		if (j->by == BY_GRAPH)
			interpret(j, w, g, in, nin);
		else
			compiled(j, w, g, in);
	}
	weft_free(w);
	weft_rank_close(j->comm);
	return NULL;
}

/* Runs the case on all ranks. */
static void run(const Case *c, By by, Job *job)
{
	pthread_t thread[MOST_RANKS];
	WeftRank *rank[MOST_RANKS];
	WeftStatus status;
	assert_int_equal(
		weft_ranks_threads(c->ranks, c->timeout > 0 ? c->timeout : 30, rank, &status),
		WEFT_OK);
	for (int r = 0; r < c->ranks; r++) {
		job[r] = (Job){.c = c, .by = by, .rank = r, .comm = rank[r]};
		if (r != c->absent - 1)
			assert_int_equal(pthread_create(&thread[r], NULL, rank_main, &job[r]), 0);
	}
	if (c->absent)
		weft_rank_close(rank[c->absent - 1]);
	for (int r = 0; r < c->ranks; r++)
		if (r != c->absent - 1)
			pthread_join(thread[r], NULL);
}

static void release(const Case *c, Job *job)
{
	for (int r = 0; r < c->ranks; r++) {
		free(job[r].x);
		free(job[r].y);
	}
}

/* Returns what element k of the result of rank r should be. */
typedef float Expected(const Case *c, int r, uint64_t k);

static void check(Case c, uint64_t ny, Expected *expected)
{
	Job job[MOST_RANKS];
	for (By by = 0; by < BACKENDS; by++) {
		run(&c, by, job);
		for (int r = 0; r < c.ranks; r++) {
			if (job[r].status.code)
				fail_msg("%s, back end %d: %s", c.text, (int)by,
					 job[r].status.message);
			assert_int_equal(job[r].ny, ny);
			for (uint64_t k = 0; k < ny; k++) {
				const float want = expected(&c, r, k), got = job[r].y[k];
				if (!(got >= want - 1e-4F && got <= want + 1e-4F))
					fail_msg("%s, back end %d, rank %d: element %llu is %g, "
						 "expected %g",
						 c.text, (int)by, r, (unsigned long long)k,
						 (double)got, (double)want);
			}
		}
		release(&c, job);
	}
}

static Case vector(const char *text, int ranks, int n)
{
	return (Case){.text = text, .ranks = ranks, .n = n, .shape = {n}, .rank_of_input = 1};
}

#define GRAPH(shape, call)                                                                         \
	"graph @f(%x: f32[" shape "]) {\n  %y = _c10d_functional." call "\n  return %y\n}\n"

/* ---- all_reduce ---- */

static float sum_of(const Case *c, int r, uint64_t k)
{
	float sum = 0;
	(void)r;
	for (int i = 0; i < c->ranks; i++)
		sum += input_of(i, (int)k);
	return sum;
}

static float mean_of(const Case *c, int r, uint64_t k)
{
	return sum_of(c, r, k) / (float)c->ranks;
}

static float most_of(const Case *c, int r, uint64_t k)
{
	float most = input_of(0, (int)k);
	(void)r;
	for (int i = 1; i < c->ranks; i++)
		most = input_of(i, (int)k) > most ? input_of(i, (int)k) : most;
	return most;
}

static float product_of(const Case *c, int r, uint64_t k)
{
	float y = 1;
	(void)r;
	for (int i = 0; i < c->ranks; i++)
		y *= input_of(i, (int)k);
	return y;
}

static void test_all_reduce(void **state)
{
	(void)state;
	check(vector(GRAPH("5",
			   "all_reduce(%x, reduce_op=\"sum\", group_name=\"0\", group_size=2)"),
		     2, 5),
	      5, sum_of);
	check(vector(GRAPH("7", "all_reduce(%x, reduce_op=\"avg\", group_name=\"\", group_size=3)"),
		     3, 7),
	      7, mean_of);
	check(vector(GRAPH("4",
			   "all_reduce(%x, reduce_op=\"max\", group_name=\"tp\", group_size=4)"),
		     4, 4),
	      4, most_of);
	check(vector(GRAPH("3",
			   "all_reduce(%x, reduce_op=\"product\", group_name=\"0\", group_size=2)"),
		     2, 3),
	      3, product_of);
	check(vector(GRAPH("6",
			   "all_reduce(%x, reduce_op=\"sum\", group_name=\"0\", group_size=1)"),
		     1, 6),
	      6, sum_of);
}

/* So many bytes that each rank reduces a slice, and not a multiple of ranks. */
static void test_slices(void **state)
{
	(void)state;
	check(vector(GRAPH("70001",
			   "all_reduce(%x, reduce_op=\"sum\", group_name=\"0\", group_size=3)"),
		     3, 70001),
	      70001, sum_of);
}

/* ---- the others ---- */

static float gathered(const Case *c, int r, uint64_t k)
{
	(void)r;
	return input_of((int)k / c->n, (int)k % c->n);
}

static float scattered(const Case *c, int r, uint64_t k)
{
	return sum_of(c, r, (uint64_t)(r * c->n / c->ranks) + k);
}

/* Compares an exchange in which of 6 elements 2 go to rank 0 and 4 to rank 1. */
static float exchanged(const Case *c, int r, uint64_t k)
{
	const int each = r ? 4 : 2, first = r ? 2 : 0;
	(void)c;
	return input_of((int)k / each, first + (int)k % each);
}

static float from_last(const Case *c, int r, uint64_t k)
{
	(void)r;
	return input_of(c->ranks - 1, (int)k);
}

static float to_first(const Case *c, int r, uint64_t k)
{
	return r ? 0 : sum_of(c, r, k);
}

static void test_others(void **state)
{
	(void)state;
	check(vector(GRAPH("5", "all_gather_into_tensor(%x, group_size=3, group_name=\"0\")"), 3,
		     5),
	      15, gathered);
	check(vector(GRAPH("6", "reduce_scatter_tensor(%x, reduce_op=\"sum\", group_size=3, "
				"group_name=\"0\")"),
		     3, 6),
	      2, scattered);
	check(vector(GRAPH("4", "broadcast(%x, src=2, group_name=\"0\", group_size=3)"), 3, 4), 4,
	      from_last);
	check(vector("graph @f(%x: f32[4]) {\n  %y = reduce_to(%x, dst=0, group_name=\"0\", "
		     "group_size=3)\n  return %y\n}\n",
		     3, 4),
	      4, to_first);
}

/* Ranks take other numbers of elements, so each has a graph of its own. */
static void *uneven_main(void *arg)
{
	Job *j = arg;
	const char *const text[] = {GRAPH("6", "all_to_all_single(%x, output_split_sizes=[2, 2], "
					       "input_split_sizes=[2, 4], group_name=\"0\")"),
				    GRAPH("6", "all_to_all_single(%x, output_split_sizes=[4, 4], "
					       "input_split_sizes=[2, 4], group_name=\"0\")")};
	Case c = vector(text[j->rank], 2, 6);
	j->c = &c;
	rank_main(j);
	j->c = NULL;
	return NULL;
}

static void test_all_to_all(void **state)
{
	(void)state;
	for (By by = 0; by < BACKENDS; by++) {
		pthread_t thread[2];
		WeftRank *rank[2];
		Job job[2];
		const Case c = vector("", 2, 6);
		assert_int_equal(weft_ranks_threads(2, 30, rank, NULL), WEFT_OK);
		for (int r = 0; r < 2; r++) {
			job[r] = (Job){.by = by, .rank = r, .comm = rank[r]};
			pthread_create(&thread[r], NULL, uneven_main, &job[r]);
		}
		for (int r = 0; r < 2; r++)
			pthread_join(thread[r], NULL);
		for (int r = 0; r < 2; r++) {
			assert_string_equal(job[r].status.message, "");
			assert_int_equal(job[r].ny, r ? 8 : 4);
			for (uint64_t k = 0; k < job[r].ny; k++)
				assert_true(job[r].y[k] == exchanged(&c, r, k));
		}
		release(&c, job);
	}
}

/* ---- derivatives, batches ---- */

#define SUMMED(shape, calls)                                                                       \
	"graph @f(%x: f32[" shape "]) {\n" calls "  %s = aten.sum(%z)\n  return %s\n}\n"

/* Each rank's loss is the sum of y * x, where y is the sum of x over ranks. */
static float gradient_of_product(const Case *c, int r, uint64_t k)
{
	return sum_of(c, r, k) + sum_of(c, r, k);
}

static float gradient_of_gathered(const Case *c, int r, uint64_t k)
{
	return (float)c->ranks * 2 * input_of(r, (int)k);
}

static float gradient_of_most(const Case *c, int r, uint64_t k)
{
	int n = 0;
	for (int i = 0; i < c->ranks; i++)
		n += input_of(i, (int)k) == most_of(c, r, k);
	return input_of(r, (int)k) == most_of(c, r, k) ? (float)c->ranks / (float)n : 0;
}

static void test_gradients(void **state)
{
	(void)state;
	Case c = vector(SUMMED("5", "  %y = _c10d_functional.all_reduce(%x, reduce_op=\"sum\", "
				    "group_name=\"0\", "
				    "group_size=3)\n  %z = mul(%y, %x)\n"),
			3, 5);
	c.gradient = true;
	check(c, 5, gradient_of_product);
	c = vector(SUMMED("5", "  %y = _c10d_functional.all_gather_into_tensor(%x, group_size=2, "
			       "group_name=\"0\")\n"
			       "  %z = mul(%y, %y)\n"),
		   2, 5);
	c.gradient = true;
	check(c, 5, gradient_of_gathered);
	c = vector(SUMMED("5", "  %z = _c10d_functional.all_reduce(%x, reduce_op=\"max\", "
			       "group_name=\"0\", "
			       "group_size=2)\n"),
		   2, 5);
	c.gradient = true;
	check(c, 5, gradient_of_most);
}

/* A batch of two: [2, 3], each member gathered along its own dimension. */
static float gathered_batch(const Case *c, int r, uint64_t k)
{
	const int member = (int)k / 6, at = (int)k % 6;
	(void)c, (void)r;
	return input_of(at / 3, member * 3 + at % 3);
}

static void test_batches(void **state)
{
	(void)state;
	const Case c = {
		.text = GRAPH("3", "all_gather_into_tensor(%x, group_size=2, group_name=\"0\")"),
		.ranks = 2,
		.n = 6,
		.shape = {2, 3},
		.rank_of_input = 2,
		.batch = 2};
	check(c, 12, gathered_batch);
}

/* ---- failures ---- */

static void check_failure(const Case *c, const char *said)
{
	Job job[MOST_RANKS];
	for (By by = 0; by < BY_GRAPH; by++) {
		run(c, by, job);
		for (int r = 0; r < c->ranks; r++)
			if (r != c->absent - 1 && !strstr(job[r].status.message, said))
				fail_msg("rank %d says \"%s\", expected \"%s\"", r,
					 job[r].status.message, said);
		release(c, job);
	}
}

#define SUM_OF(n, ranks)                                                                           \
	GRAPH(n, "all_reduce(%x, reduce_op=\"sum\", group_name=\"0\", group_size=" ranks ")")

static void test_failures(void **state)
{
	(void)state;
	Case c = vector(SUM_OF("5", "2"), 3, 5);
	check_failure(&c, "compiled for 2 ranks in group \"0\", which has 3 here");
	c = vector(SUM_OF("5", "3"), 3, 5);
	c.absent = 2;
	check_failure(&c, "has ended");
	Weft *w = weft_new();
	assert_null(
		weft_parse(w,
			   "graph @f(%p: bool[], %x: f32[3]) {\n"
			   "  %y = cond(%p, [%x], yes=graph @a(%v: f32[3]) {\n"
			   "    %r = _c10d_functional.all_reduce(%v, reduce_op=\"sum\", "
			   "group_name=\"0\", group_size=2)\n"
			   "    return %r\n  }, no=graph @b(%v: f32[3]) {\n    return %v\n  })\n"
			   "  %z = get(%y, index=0)\n  return %z\n}\n",
			   "f"));
	assert_non_null(strstr(weft_messages(w), "collectives are not allowed here"));
	weft_free(w);
}

/* Without a provider: alone. */
static void test_alone(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftCall call;
	float x[5] = {1, 2, 3, 4, 5};
	const WeftTensor in = weft_tensor(x, WEFT_F32, 1, (const int64_t[]){5});
	WeftGraph *g = weft_parse(w, SUM_OF("5", "2"), "f");
	assert_int_equal(weft_call_open(&call, weft_jit(w, g, NULL), 0), WEFT_OK);
	assert_int_equal(weft_call_run(&call, &in), WEFT_ERR_COMM);
	assert_non_null(strstr(call.status.message, "this process is alone"));
	weft_call_close(&call);
	weft_free(w);
}

/* Tests that each of ranks that give other numbers of bytes, or do other collectives, says so. */
static void *differing_main(void *arg)
{
	Job *j = arg;
	const bool other = j->ny;
	const Case c =
		!j->rank ? vector(SUM_OF("5", "2"), 2, 5)
		: other ? vector(GRAPH("5", "broadcast(%x, src=0, group_name=\"0\", group_size=2)"),
				 2, 5)
			: vector(SUM_OF("6", "2"), 2, 6);
	j->c = &c;
	rank_main(j);
	j->c = NULL;
	return NULL;
}

static void test_differing(void **state)
{
	(void)state;
	for (uint64_t other = 0; other < 2; other++) {
		pthread_t thread[2];
		WeftRank *rank[2];
		Job job[2];
		const Case c = vector("", 2, 6);
		assert_int_equal(weft_ranks_threads(2, 30, rank, NULL), WEFT_OK);
		for (int r = 0; r < 2; r++) {
			job[r] = (Job){.by = BY_JIT, .rank = r, .comm = rank[r], .ny = other};
			pthread_create(&thread[r], NULL, differing_main, &job[r]);
		}
		for (int r = 0; r < 2; r++)
			pthread_join(thread[r], NULL);
		for (int r = 0; r < 2; r++)
			if (!strstr(job[r].status.message,
				    other ? "another collective" : "which expects"))
				fail_msg("rank %d says \"%s\"", r, job[r].status.message);
		release(&c, job);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_reduce), cmocka_unit_test(test_slices),
		cmocka_unit_test(test_others),     cmocka_unit_test(test_all_to_all),
		cmocka_unit_test(test_gradients),  cmocka_unit_test(test_batches),
		cmocka_unit_test(test_failures),   cmocka_unit_test(test_alone),
		cmocka_unit_test(test_differing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
