/* What integer inputs of a model may be, as far as its operators say: for inputs that are made up
 * (weft check --against). */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "weft_graph.h"

/* From an input forward, along integers. */
typedef struct {
	Weft *w;
	bool *met; /* by index of a node */
	uint32_t n;
	int64_t bound; /* 0: nothing is known */
} BoundWalk;

static bool is_op(const BoundWalk *k, WeftNode n, const char *op)
{
	return n.index && weft_node_kind(k->w, n) == WEFT_NODE_CALL &&
	       !strcmp(weft_node_op(k->w, n), op);
}

static void limit(BoundWalk *k, int64_t n)
{
	if (n > 0 && (!k->bound || n < k->bound))
		k->bound = n;
}

/* Limits the bound by the smallest of the extents that the indices of a gather are for. */
static void limit_by_table(BoundWalk *k, WeftNode gather)
{
	int64_t shape[12];
	WeftAttr axes;
	if (weft_node_shape(k->w, weft_node_arg(k->w, gather, "x"), 0, NULL, shape) < 0 ||
	    !weft_node_attr(k->w, gather, "axes", &axes) || axes.kind != WEFT_ATTR_INTS)
		return;
	for (uint32_t i = 0; i < axes.n; i++)
		limit(k, shape[axes.u.ints[i]]);
}

/* Limits the bound by classes that a value is compared with, one by one: 0, 1, ... n - 1. */
static void limit_by_classes(BoundWalk *k, WeftNode n)
{
	WeftAttr count;
	while (is_op(k, n, "broadcast") || is_op(k, n, "reshape") || is_op(k, n, "convert"))
		n = weft_node_operand(k->w, n, 0);
	if (is_op(k, n, "iota") && weft_node_attr(k->w, n, "n", &count) &&
	    count.kind == WEFT_ATTR_INT)
		limit(k, count.u.i);
}

static bool is_integer(const BoundWalk *k, WeftNode n)
{
	WeftDType t;
	return weft_node_nresult(k->w, n) == 1 && weft_node_shape(k->w, n, 0, &t, NULL) >= 0 &&
	       (t.code == WEFT_INT || t.code == WEFT_UINT);
}

static void walk(BoundWalk *k, WeftNode n);

static void visit(BoundWalk *k, WeftNode user, WeftNode n)
{
	if (is_op(k, user, "gather") && weft_node_same(weft_node_arg(k->w, user, "index"), n)) {
		limit_by_table(k, user);
		return;
	}
	if (is_op(k, user, "eq"))
		for (uint32_t i = 0; i < 2; i++)
			limit_by_classes(k, weft_node_operand(k->w, user, i));
	if (is_integer(k, user))
		walk(k, user);
}

static void walk(BoundWalk *k, WeftNode n)
{
	uint32_t nuser;
	if (n.index >= k->n || k->met[n.index])
		return;
	k->met[n.index] = true;
	const WeftNode *list = weft_node_users(k->w, n, &nuser);
	WeftNode *user = calloc(nuser + 1, sizeof *user);
	for (uint32_t i = 0; user && i < nuser; i++)
		user[i] = list[i];
	for (uint32_t i = 0; user && i < nuser; i++)
		visit(k, user[i], n);
	free(user);
}

static uint32_t count_nodes(Weft *w, WeftGraph *g)
{
	uint32_t n = 0;
	for (WeftNode k = weft_node_first(w, g); k.index; k = weft_node_next(w, k))
		n = k.index >= n ? k.index + 1 : n;
	return n;
}

/* Returns one more than the largest value of an input; 0 if nothing says so. */
static int64_t input_bound(Weft *w, WeftGraph *g, uint32_t input)
{
	BoundWalk k = {.w = w, .n = count_nodes(w, g)};
	WeftNode n = weft_node_of_input(w, g, input);
	k.met = calloc(k.n + 1, sizeof *k.met);
	if (k.met && n.index && is_integer(&k, n))
		walk(&k, n);
	free(k.met);
	return k.bound;
}

char *bounds_of_inputs(const char *path)
{
	char *text = NULL;
	size_t size;
	uint32_t n = 0;
	Weft *w = weft_new();
	WeftGraph *g = w ? weft_load(w, path) : NULL;
	FILE *f = open_memstream(&text, &size);
	if (g && f && weft_transform(w, g, "canon") && weft_transform(w, g, "decompose")) {
		const WeftTensorInfo *info = weft_inputs(w, g, &n);
		for (uint32_t k = 0; k < n; k++)
			fprintf(f, "%lld %s\n", (long long)input_bound(w, g, k), info[k].name);
	}
	if (f)
		fclose(f);
	weft_free(w);
	return text;
}
