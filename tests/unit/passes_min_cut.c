/* Minimal cuts, against all cuts of small networks; and of large ones, in time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "transform/partition/min_cut.h"

typedef struct {
	uint32_t from, to;
	int64_t capacity;
} Edge;

static uint64_t seed;

static uint32_t below(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

static int64_t value_of(const Edge *edge, uint32_t n, uint32_t sink_side)
{
	int64_t sum = 0;
	for (uint32_t k = 0; k < n; k++)
		if (!(sink_side >> edge[k].from & 1) && sink_side >> edge[k].to & 1)
			sum += edge[k].capacity;
	return sum;
}

/* Vertex 0 is the source, 1 the sink. The set of the sink is the smallest of those whose cuts are
 * minimal: part of all of them. */
static void check_all_cuts(const Edge *edge, uint32_t n, uint32_t nvertex, uint32_t found)
{
	int64_t best = value_of(edge, n, found);
	assert_true(!(found & 1) && found & 2);
	for (uint32_t set = 2; set < 1u << nvertex; set += 1) {
		if (set & 1 || !(set & 2))
			continue;
		int64_t value = value_of(edge, n, set);
		assert_true(value >= best);
		if (value == best)
			assert_int_equal(set & found, found);
	}
}

static void test_small(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < 3000; round++) {
		enum { MOST = 8 };
		Edge edge[40];
		uint32_t nvertex = 2 + below(MOST - 1), n = 1 + below(40), found[2] = {0, 0};
		bool side[MOST];
		Arena *a = arena_new(NULL);
		Network *w = network_new(a, nvertex);
		for (uint32_t k = 0; k < n; k++) {
			edge[k] = (Edge){below(nvertex), below(nvertex),
					 below(4) ? below(12) : CUT_NEVER / 64};
			network_edge(w, edge[k].from, edge[k].to, edge[k].capacity);
		}
		for (uint32_t again = 0; again < 2; again++) { /* other capacities, and back */
			for (uint32_t k = 0; k < n; k++)
				network_set_capacity(w, k, 1);
			network_cut(w, 0, 1, side);
			for (uint32_t k = 0; k < n; k++)
				network_set_capacity(w, k, edge[k].capacity);
			network_cut(w, 0, 1, side);
			for (uint32_t v = 0; v < nvertex; v++)
				found[again] |= (uint32_t)side[v] << v;
		}
		assert_int_equal(found[0], found[1]);
		check_all_cuts(edge, n, nvertex, found[0]);
		arena_free(a);
	}
}

/* A deep one: values of which each may be computed from the one before, and every tenth is
 * needed. */
static void test_deep(void **state)
{
	(void)state;
	for (uint32_t n = 100; n <= 100000; n *= 10) {
		Arena *a = arena_new(NULL);
		Network *w = network_new(a, 2 + 2 * n);
		bool *side = ARENA_ARRAY(a, bool, 2 + 2 * n);
		for (uint32_t k = 0; k < n; k++) {
			network_edge(w, 0, 2 + 2 * k, k % 7 ? 3 : CUT_NEVER);
			network_edge(w, 2 + 2 * k, 3 + 2 * k, 10 + k % 3);
			if (k)
				network_edge(w, 1 + 2 * k, 2 + 2 * k, CUT_NEVER);
			if (k % 10 == 9)
				network_edge(w, 3 + 2 * k, 1, CUT_NEVER);
		}
		network_cut(w, 0, 1, side);
		for (uint32_t k = 9; k < n; k += 10)
			assert_true(side[3 + 2 * k]);
		arena_free(a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_small),
					   cmocka_unit_test(test_deep)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
