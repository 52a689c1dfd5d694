/* Which nodes share a kernel: each bound of GroupCost at its limit and one above, how evaluations,
 * loads and maps are counted; what holds of the groups of any graph. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ir/op/op.h"
#include "lower/graph/graph.h"
#include "lower/group.h"
#include "tests/unit/ir_fixture.h"

typedef struct {
	Graph *g;
	const NodeGroup *is;
} Groups;

static Groups groups_of(Graph *g, bool no_fusion)
{
	const char **stored = ARENA_ARRAY(ctx->arena, const char *, g->node.n);
	return (Groups){g, group_nodes(g, target_find("x86-64-v3"), stored, no_fusion, ctx->arena)};
}

static Node named(Graph *g, const char *name)
{
	for (Node n = g->first; n.i; n = node_next(g, n))
		if (!strcmp(graph_name(g, n), name))
			return n;
	fail_msg("no node is called %s", name);
	return (Node){0};
}

static uint32_t nroots(const Groups *s)
{
	uint32_t count = 0;
	for (Node n = s->g->first; n.i; n = node_next(s->g, n))
		count += s->is[n.i].role == ROLE_ROOT;
	return count;
}

/* ---- bounds ---- */

/* A graph that grows: of n parts. */
typedef void (*Grows)(Text *, uint32_t n);

/* One kernel up to `most` parts; of one more, `stored` is one of its own, since that is too
 * much. */
static void check_bound(const char *what, Grows grows, uint32_t most, const char *stored,
			const char *why)
{
	for (uint32_t n = most - 1; n <= most + 1; n++) {
		Text t;
		text_init(&t, ctx->arena);
		grows(&t, n);
		Groups s = groups_of(parsed(t.data), false);
		uint32_t roots = nroots(&s);
		if (roots != (n > most ? 2u : 1u))
			fail_msg("%s: of %u parts there are %u kernels", what, n, roots);
		Node at = n > most ? named(s.g, stored) : (Node){0};
		if (at.i && (s.is[at.i].role != ROLE_ROOT || strcmp(s.is[at.i].why, why)))
			fail_msg("%s: %s is stored: %s", what, stored,
				 s.is[at.i].why ? s.is[at.i].why : "no");
		assert_non_null(lower_graph(s.g, &(LowerOptions){0}));
	}
}

/* "%v<n>" of n functions, one after the other, of %from. */
static void functions(Text *t, const char *from, const char *type, uint32_t n)
{
	for (uint32_t k = 1; k <= n; k++) {
		text_printf(t, "  %%v%u = neg(%%", k);
		if (k == 1)
			text_printf(t, "%s", from);
		else
			text_printf(t, "v%u", k - 1);
		text_printf(t, ") : %s\n", type);
	}
}

/* The sum of n inputs. */
static void many_loads(Text *t, uint32_t n)
{
	text_printf(t, "graph @f(%%x0: f32[8]");
	for (uint32_t k = 1; k < n; k++)
		text_printf(t, ", %%x%u: f32[8]", k);
	text_printf(t, ") {\n  %%s1 = add(%%x0, %%x1)\n");
	for (uint32_t k = 2; k < n; k++)
		text_printf(t, "  %%s%u = add(%%s%u, %%x%u)\n", k, k - 1, k);
	text_printf(t, "  return %%s%u\n}\n", n - 1);
}

/* The same, and every input is read a second time: that is no load more, but what joins is taken to
 * read two values that are new. */
static void loads_twice(Text *t, uint32_t n)
{
	many_loads(t, n);
	*strstr(t->data, "  return") = 0;
	t->n = strlen(t->data);
	for (uint32_t k = 0; k < n; k++)
		text_printf(t, "  %%s%u = mul(%%s%u, %%x%u)\n", n + k, n + k - 1, k);
	text_printf(t, "  return %%s%u\n}\n", 2 * n - 1);
}

static void many_functions(Text *t, uint32_t n)
{
	text_printf(t, "graph @f(%%x: f32[8]) {\n");
	functions(t, "x", "f32[8]", n);
	text_printf(t, "  return %%v%u\n}\n", n);
}

/* All of n functions at two indices each. */
static void functions_at_two(Text *t, uint32_t n)
{
	text_printf(t, "graph @f(%%x: f32[9]) {\n");
	functions(t, "x", "f32[9]", n);
	text_printf(t,
		    "  %%a = slice(%%v%u, start=[0], end=[8], step=[1])\n  %%b = slice(%%v%u, "
		    "start=[1], end=[9], step=[1])\n"
		    "  %%y = add(%%a, %%b)\n  return %%y\n}\n",
		    n, n);
}

/* At the same index, by two maps that are equal. */
static void functions_at_one(Text *t, uint32_t n)
{
	text_printf(t, "graph @f(%%x: f32[9]) {\n");
	functions(t, "x", "f32[9]", n);
	text_printf(t,
		    "  %%a = slice(%%v%u, start=[1], end=[9], step=[1])\n  %%b = slice(%%v%u, "
		    "start=[1], end=[9], step=[1])\n"
		    "  %%y = add(%%a, %%b)\n  return %%y\n}\n",
		    n, n);
}

/* By two nodes that read something: what they read differs, whatever they have in common. */
static void functions_of_indices(Text *t, uint32_t n)
{
	text_printf(t, "graph @f(%%i: i64[8, 1], %%p: f32[9], %%q: f32[9]) {\n");
	functions(t, "i", "i64[8, 1]", n);
	const char *how = "batch=0, axes=[0], mode=\"clamp\"";
	text_printf(t,
		    "  %%a = gather(%%p, %%v%u, %s)\n  %%b = gather(%%q, %%v%u, %s)\n  %%y = "
		    "add(%%a, %%b)\n  return %%y\n}\n",
		    n, how, n, how);
}

static void functions_of_rows(Text *t, uint32_t n)
{
	text_printf(t, "graph @f(%%x: f32[8, 9]) {\n");
	functions(t, "x", "f32[8, 9]", n);
	text_printf(t,
		    "  %%a = reduce(%%v%u, kind=\"sum\", dims=[1], acc=f32)\n  %%b = reduce(%%v%u, "
		    "kind=\"sum\", dims=[1], acc=f32)\n"
		    "  %%y = mul(%%a, %%b)\n  return %%y\n}\n",
		    n, n);
}

/* n reductions, each of an input of its own: outer extents, then those that are reduced. */
static void reductions(Text *t, uint32_t n, const char *outer, const char *inner, const char *dims)
{
	text_printf(t, "graph @f(");
	for (uint32_t k = 0; k < n; k++)
		text_printf(t, "%s%%x%u: f32[%s, %s]", k ? ", " : "", k, outer, inner);
	text_printf(t, ") {\n");
	for (uint32_t k = 0; k < n; k++)
		text_printf(t, "  %%r%u = reduce(%%x%u, kind=\"sum\", dims=[%s], acc=f32)\n", k, k,
			    dims);
	text_printf(t, "  %%s1 = add(%%r0, %%r1)\n");
	for (uint32_t k = 2; k < n; k++)
		text_printf(t, "  %%s%u = add(%%s%u, %%r%u)\n", k, k - 1, k);
	text_printf(t, "  return %%s%u\n}\n", n - 1);
}

static void many_reductions(Text *t, uint32_t n)
{
	reductions(t, n, "8", "16", "1");
}

/* Seven reductions of three dimensions: 21 axes, and n of the result. */
static void many_axes(Text *t, uint32_t n)
{
	static const char *const outer[] = {"4", "4, 5", "4, 5, 6", "4, 5, 6, 2"};
	static const char *const dims[] = {"1, 2, 3", "2, 3, 4", "3, 4, 5", "4, 5, 6"};
	reductions(t, 7, outer[n - 1], "2, 3, 5", dims[n - 1]);
}

/* Extents of 1 are no axes: the bound is where it was. */
static void axes_of_one(Text *t, uint32_t n)
{
	static const char *const outer[] = {"4, 1", "4, 1, 5", "4, 1, 5, 6", "4, 1, 5, 6, 2"};
	static const char *const dims[] = {"2, 3, 4", "3, 4, 5", "4, 5, 6", "5, 6, 7"};
	reductions(t, 7, outer[n - 1], "2, 3, 5", dims[n - 1]);
}

/* Transposes between functions. */
static void many_maps(Text *t, uint32_t n)
{
	text_printf(t, "graph @f(%%x: f32[8, 8]) {\n  %%v0 = neg(%%x)\n");
	for (uint32_t k = 1; k <= n; k++)
		text_printf(t, "  %%p%u = permute(%%v%u, perm=[1, 0])\n  %%v%u = neg(%%p%u)\n", k,
			    k - 1, k, k);
	text_printf(t, "  return %%v%u\n}\n", n);
}

/* A reshape that joins two dimensions is as much as 11 maps: of them, with one that splits again,
 * there are three. n transposes more. */
static void joining_maps(Text *t, uint32_t n)
{
	text_printf(t, "graph @f(%%x: f32[8, 8]) {\n  %%v0 = neg(%%x)\n");
	for (uint32_t k = 1; k <= n; k++)
		text_printf(t, "  %%p%u = permute(%%v%u, perm=[1, 0])\n  %%v%u = neg(%%p%u)\n", k,
			    k - 1, k, k);
	text_printf(t, "  %%w0 = neg(%%v%u)\n", n);
	for (uint32_t k = 1; k <= 3; k++)
		text_printf(t,
			    "  %%j%u = reshape(%%w%u, shape=[64])\n  %%n%u = neg(%%j%u)\n  %%s%u = "
			    "reshape(%%n%u, shape=[8, 8])\n"
			    "  %%w%u = neg(%%s%u)\n",
			    k, k - 1, k, k, k, k, k, k);
	text_printf(t, "  return %%w3\n}\n");
}

static void test_bounds(void **state)
{
	(void)state;
	const char *evaluations = "one kernel has no more than 1280 evaluations";
	const char *axes = "one kernel has no more than 24 axes",
		   *maps = "one kernel has no more than 40 index maps one after the other";
	check_bound("loads", many_loads, 64, "s1", "one kernel has no more than 64 loads");
	check_bound("loads that are read twice", loads_twice, 62, "s62",
		    "one kernel has no more than 64 loads");
	check_bound("functions", many_functions, 1280, "v1", evaluations);
	check_bound("functions at two indices", functions_at_two, 638, "v1", evaluations);
	check_bound("functions at one index by two maps", functions_at_one, 1277, "v1",
		    evaluations);
	check_bound("functions of indices", functions_of_indices, 638, "v1", evaluations);
	check_bound("functions below two reductions", functions_of_rows, 638, "v1", evaluations);
	check_bound("reductions", many_reductions, 8, "r0",
		    "one kernel has no more than 8 reductions");
	check_bound("axes", many_axes, 3, "r0", axes);
	check_bound("axes, and dimensions of 1", axes_of_one, 3, "r0", axes);
	check_bound("maps", many_maps, 40, "v0", maps);
	check_bound("maps that join", joining_maps, 4, "v0", maps);
}

/* Of maps alone every 41st is stored, whoever reads it. */
static void test_long_maps(void **state)
{
	(void)state;
	Text t;
	text_init(&t, ctx->arena);
	text_printf(&t, "graph @f(%%x: f32[8, 8]) {\n  %%p0 = permute(%%x, perm=[1, 0])\n");
	for (uint32_t k = 1; k < 100; k++)
		text_printf(&t, "  %%p%u = permute(%%p%u, perm=[1, 0])\n", k, k - 1);
	text_printf(&t, "  %%y = neg(%%p99)\n  %%z = exp(%%p99)\n  return %%y, %%z\n}\n");
	Groups s = groups_of(parsed(t.data), false);
	assert_int_equal(nroots(&s), 4);
	for (uint32_t k = 0; k < 100; k++) {
		char name[8];
		snprintf(name, sizeof name, "p%u", k);
		const NodeGroup *at = &s.is[named(s.g, name).i];
		assert_int_equal(at->role, k == 40 || k == 81 ? ROLE_ROOT : ROLE_VIRTUAL);
		if (at->role == ROLE_ROOT)
			assert_string_equal(at->why, "so many index maps follow each other");
	}
}

/* ---- any graph ---- */

static uint64_t seed = 5;

static uint32_t below(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

/* %v<k> of %<x> and %<y>, some of them in two steps. */
static void random_step(Text *t, uint32_t k, const char *x, const char *y)
{
	static const char *const one[] = {"exp(%%%s)\n", "neg(%%%s)\n",
					  "permute(%%%s, perm=[1, 0])\n",
					  "reverse(%%%s, dims=[0])\n",
					  "cumulative(%%%s, kind=\"sum\", dim=1, reverse=false)\n"};
	static const char *const two[] = {
		"mul(%%%s, %%%s)\n", "add(%%%s, %%%s)\n",
		"contract(%%%s, %%%s, batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], acc=f32)\n"};
	static const char *const first[] = {"reduce(%%%s, kind=\"sum\", dims=[1], acc=f32)\n",
					    "reduce(%%%s, kind=\"max\", dims=[0], acc=f32)\n",
					    "reshape(%%%s, shape=[64])\n"};
	static const char *const then[] = {"broadcast(%%t%u, shape=[8, 8], map=[0])\n",
					   "broadcast(%%t%u, shape=[8, 8], map=[1])\n",
					   "reshape(%%t%u, shape=[8, 8])\n"};
	uint32_t kind = below(12), step = below(3), unary = below(5);
	if (kind < 4) {
		text_printf(t, "  %%v%u = ", k);
		text_printf(t, one[unary], x);
	} else if (kind < 7) {
		text_printf(t, "  %%v%u = ", k);
		text_printf(t, two[step], x, y);
	} else if (kind < 10) {
		text_printf(t, "  %%t%u = ", k);
		text_printf(t, first[step], x);
		text_printf(t, "  %%v%u = ", k);
		text_printf(t, then[step], k);
	} else {
		text_printf(t, "  %%t%u = concat([%%%s, %%%s], dim=0)\n", k, x, kind == 10 ? x : y);
		text_printf(t, "  %%v%u = slice(%%t%u, start=[4, 0], end=[12, 8], step=[1, 1])\n",
			    k, k);
	}
}

/* Functions, maps, reductions, products and choices of values of one type; some are results. */
static const char *random_graph(uint32_t nodes)
{
	Text t;
	text_init(&t, ctx->arena);
	text_printf(&t, "graph @r(%%x: f32[8, 8], %%y: f32[8, 8]) {\n");
	for (uint32_t k = 0; k < nodes; k++) {
		char name[2][12];
		for (uint32_t j = 0; j < 2; j++) {
			uint32_t from = k - (k < 5 ? below(k + 1) : below(5));
			if (from == 0)
				snprintf(name[j], sizeof name[j], "%s", below(2) ? "x" : "y");
			else
				snprintf(name[j], sizeof name[j], "v%u", from - 1);
		}
		random_step(&t, k, name[0], name[1]);
	}
	text_printf(&t, "  return %%v%u, %%v%u\n}\n", nodes - 1, below(nodes));
	return t.data;
}

static const uint32_t OUTSIDE = UINT32_MAX;

/* The kernel in which this use reads its value; OUTSIDE: it is in memory for it, or more than one
 * kernel reads it so. */
static uint32_t reader(const Groups *s, Node n, Node user)
{
	const Graph *g = s->g;
	const NodeGroup *at = &s->is[user.i];
	const OpLower *l = op_lower(node_op(g, user));
	bool memory = at->role == ROLE_ROOT && l->holds != HOLDS_NOTHING;
	for (uint32_t k = 0; k < node_nin(g, user); k++)
		memory |= node_in(g, user, k).i == n.i && lower_reads(l, k);
	return memory || !at->root ? OUTSIDE : at->root;
}

static void check_node(const Groups *s, Node n)
{
	const Graph *g = s->g;
	const NodeGroup *at = &s->is[n.i];
	LowerRole role = op_lower(node_op(g, n))->role;
	bool is_output = false, readers = false, outside = false, other = false, mixed = false;
	uint32_t first = 0;
	for (uint32_t k = 0; k < g->output.n; k++)
		is_output |= lower_output(g, k).i == n.i;
	for (Use u = node_data(g, n)->first_use; u.i; u = g->use.data[u.i].next) {
		Node user = g->use.data[u.i].user;
		if (!user.i || s->is[user.i].role == ROLE_NONE)
			continue;
		uint32_t r = reader(s, n, user);
		outside |= r == OUTSIDE;
		mixed |= readers && r != first;
		first = readers ? first : r;
		readers = true;
	}
	other = outside || mixed;
	bool dead = !readers && !is_output;
	switch (at->role) {
	case ROLE_NONE:
		assert_true(dead);
		break;
	case ROLE_LEAF:
		assert_true(role == LOWER_MEMORY || role == LOWER_LEAF);
		break;
	case ROLE_INLINE:
		assert_true(!is_output && !other && at->root == first &&
			    s->is[first].role == ROLE_ROOT);
		break;
	case ROLE_VIRTUAL:
		assert_true(!is_output && (lower_is_map(op_lower(node_op(g, n))) ||
					   (role == LOWER_MAP && !at->root)));
		assert_true(at->root == (other ? 0 : first));
		break;
	case ROLE_ROOT:
		assert_non_null(at->why);
		assert_int_equal(at->root, n.i);
		assert_true(!strcmp(at->why, "an output") == is_output);
		if (!strcmp(at->why, "several kernels read it"))
			assert_true(other);
		break;
	}
}

/* How much of what is bounded a kernel has, counted from its nodes. */
static void check_size(const Groups *s, uint32_t root)
{
	const Graph *g = s->g;
	uint32_t reductions = 0, anchors = 0, special = 0;
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		if (s->is[n.i].root != root)
			continue;
		LowerRole role = op_lower(node_op(g, n))->role;
		reductions += role == LOWER_REDUCE;
		anchors += role == LOWER_ANCHOR;
		special += role == LOWER_ROOT;
	}
	assert_true(reductions <= 8 && anchors + special <= 1 && (!anchors || !reductions));
}

static void test_any(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < 400; round++) {
		Graph *g = parsed(random_graph(2 + below(30)));
		for (int apart = 0; apart < 2; apart++) {
			Groups s = groups_of(g, apart);
			for (Node n = g->first; n.i; n = node_next(g, n)) {
				check_node(&s, n);
				LowerRole role = op_lower(node_op(g, n))->role;
				bool computes = role != LOWER_MEMORY && role != LOWER_LEAF &&
						!lower_is_map(op_lower(node_op(g, n)));
				if (apart && computes && s.is[n.i].role != ROLE_NONE)
					assert_int_equal(s.is[n.i].role, ROLE_ROOT);
				if (s.is[n.i].role == ROLE_ROOT)
					check_size(&s, n.i);
			}
		}
		assert_non_null(lower_graph(g, &(LowerOptions){0}));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_bounds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_maps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_any, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
