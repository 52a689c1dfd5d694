/* Attributes become a forest. */
#include <math.h>
#include <string.h>

#include "frontend/onnx/trees.h"

#define NO_NODE UINT32_MAX

typedef enum {
	MODE_LEQ,
	MODE_LT,
	MODE_GTE,
	MODE_GT,
	MODE_EQ,
	MODE_NEQ,
	MODE_MEMBER,
	MODE_LEAF
} Mode;

typedef struct {
	const Item *it;
	Forest *f;
	Arena *scratch;
} TreeReader;

/* ---- attributes ---- */

typedef struct {
	const int64_t *data;
	uint32_t n;
} Ints;

static Ints ints_of(const TreeReader *r, const char *name)
{
	const OnnxAttr *a = onnx_item_attr(r->it, name);
	return a ? (Ints){a->ints.data, a->ints.n} : (Ints){0};
}

bool trees_numbers(const Item *it, const char *name, const double **out, uint32_t *n)
{
	Import *im = it->s->im;
	const OnnxAttr *a =
		onnx_item_attr(it, arena_printf(im->ctx->scratch, "%s_as_tensor", name));
	if (!a)
		a = onnx_item_attr(it, name);
	*n = a ? a->floats.n : 0;
	*out = NULL;
	if (!a)
		return true;
	Tensor t = {.dtype = DT_f32, .rank = 1, .dim = {*n}, .data = a->floats.data};
	TRY(!a->t || onnx_tensor(im->ctx, a->t, &im->folder,
				 arena_printf(im->ctx->scratch, "attribute %s", name), &t));
	*n = (uint32_t)tensor_numel(&t);
	double *v = ARENA_ARRAY(im->ctx->scratch, double, *n);
	tensor_read_f64(&t, 0, *n, v);
	*out = v;
	return true;
}

static bool length(const TreeReader *r, const char *name, uint32_t n, uint32_t want)
{
	return n == want ||
	       onnx_item_error(r->it, "%s has %u elements, expected %u", name, n, want);
}

static bool mode_of(const TreeReader *r, WireBytes text, Mode *out)
{
	static const char *const names[] = {"BRANCH_LEQ",    "BRANCH_LT", "BRANCH_GTE",
					    "BRANCH_GT",     "BRANCH_EQ", "BRANCH_NEQ",
					    "BRANCH_MEMBER", "LEAF"};
	for (uint32_t k = 0; k < sizeof names / sizeof *names; k++)
		if (k != MODE_MEMBER && strlen(names[k]) == text.n &&
		    !memcmp(names[k], text.p, text.n)) {
			*out = (Mode)k;
			return true;
		}
	return onnx_item_error(r->it, "nodes_modes: unknown mode %.*s",
			       (int)(text.n < 40 ? text.n : 40), (const char *)text.p);
}

/* ---- branches ---- */

/* Returns the greatest number of the dtype of comparisons that is less. */
static double before(const Forest *f, double v)
{
	return f->dtype == DT_f64 ? nextafter(v, -INFINITY)
				  : (double)nextafterf((float)v, -INFINITY);
}

/* Adds a branch as one or two comparisons, the first of which becomes node k. nan: NaN goes to
 * `yes`. */
static void add_branch(TreeReader *r, uint32_t k, Mode mode, uint32_t feature, double at,
		       uint32_t yes, uint32_t no, bool nan)
{
	Forest *f = r->f;
	if (f->nfeature <= feature)
		f->nfeature = feature + 1;
	TreeNode n = {.feature = feature, .at = at, .yes = yes, .no = no, .nan = nan};
	if (isnan(at)) { /* nothing is in order with NaN, and nothing is equal to it */
		uint32_t other = mode == MODE_NEQ ? yes : no;
		n.at = 0;
		n.yes = nan ? yes : other;
		n.no = other;
		if (n.yes != other) { /* only NaN goes to `yes` */
			TreeNode rest = {
				.feature = feature, .at = INFINITY, .yes = other, .no = n.yes};
			n = rest;
		}
	} else if (mode == MODE_LT || mode == MODE_GTE) {
		n.at = before(f, at);
	}
	if (!isnan(at) && (mode == MODE_GTE || mode == MODE_GT || mode == MODE_NEQ)) {
		n.yes = no;
		n.no = yes;
		n.nan = !nan;
	}
	if (!isnan(at) && (mode == MODE_EQ || mode == MODE_NEQ)) {
		/* x <= at, and not x <= the number before */
		TreeNode second = {
			.feature = feature, .at = before(f, at), .yes = n.no, .no = n.yes};
		n.yes = f->node.n;
		array_push(r->scratch, &f->node, second);
	}
	f->node.data[k] = n;
}

/* ---- checks ---- */

typedef struct {
	uint32_t node;
	bool left;
} TreeVisit;

/* Checks that no node is below itself. */
static bool check_cycles(TreeReader *r)
{
	Forest *f = r->f;
	uint8_t *state = ARENA_ARRAY(r->scratch, uint8_t, f->node.n); /* 1: on the path, 2: done */
	ARRAY(TreeVisit) todo = {0};
	for (uint32_t k = 0; k < f->root.n; k++) {
		array_push(r->scratch, &todo, (TreeVisit){f->root.data[k], false});
		while (todo.n) {
			TreeVisit v = todo.data[--todo.n];
			const TreeNode *n = &f->node.data[v.node];
			if (v.left) {
				state[v.node] = 2;
				continue;
			}
			if (state[v.node] == 1)
				return onnx_item_error(r->it, "the nodes of a tree form a cycle");
			if (state[v.node] == 2 || n->leaf)
				continue;
			state[v.node] = 1;
			array_push(r->scratch, &todo, (TreeVisit){v.node, true});
			array_push(r->scratch, &todo, (TreeVisit){n->yes, false});
			array_push(r->scratch, &todo, (TreeVisit){n->no, false});
		}
	}
	return true;
}

static bool check_target(const TreeReader *r, int64_t target)
{
	return (target >= 0 && target < (int64_t)r->f->ntarget) ||
	       onnx_item_error(r->it, "a weight is of target %lld, of %u", (long long)target,
			       r->f->ntarget);
}

static bool check_feature(const TreeReader *r, int64_t feature)
{
	return (feature >= 0 && feature < INT32_MAX) ||
	       onnx_item_error(r->it, "a node reads feature %lld", (long long)feature);
}

/* ---- TreeEnsembleClassifier, TreeEnsembleRegressor ---- */

typedef struct {
	Ints tree, id, feature, yes, no, missing;
	const double *at;
	const WireList *mode;
	Intern places; /* (tree, id) -> number of the node + 1 */
} TreeColumns;

static uint32_t find_node(const TreeColumns *c, int64_t tree, int64_t id)
{
	int64_t key[2] = {tree, id};
	uint32_t at = intern_find(&c->places, key, sizeof key);
	return at ? at - 1 : NO_NODE;
}

static bool read_columns(TreeReader *r, TreeColumns *c)
{
	uint32_t n, nat;
	const OnnxAttr *mode = onnx_item_attr(r->it, "nodes_modes");
	c->tree = ints_of(r, "nodes_treeids");
	c->id = ints_of(r, "nodes_nodeids");
	c->feature = ints_of(r, "nodes_featureids");
	c->yes = ints_of(r, "nodes_truenodeids");
	c->no = ints_of(r, "nodes_falsenodeids");
	c->missing = ints_of(r, "nodes_missing_value_tracks_true");
	n = c->id.n;
	if (!n || !mode)
		return onnx_item_error(r->it, "an ensemble without nodes");
	c->mode = &mode->strings;
	TRY(trees_numbers(r->it, "nodes_values", &c->at, &nat) &&
	    length(r, "nodes_values", nat, n));
	TRY(length(r, "nodes_treeids", c->tree.n, n) &&
	    length(r, "nodes_featureids", c->feature.n, n));
	TRY(length(r, "nodes_truenodeids", c->yes.n, n) &&
	    length(r, "nodes_falsenodeids", c->no.n, n));
	TRY(length(r, "nodes_modes", c->mode->n, n) &&
	    (!c->missing.n || length(r, "nodes_missing_value_tracks_true", c->missing.n, n)));
	intern_init(&c->places, r->scratch);
	for (uint32_t k = 0; k < n; k++) {
		int64_t key[2] = {c->tree.data[k], c->id.data[k]};
		bool fresh;
		intern(&c->places, key, sizeof key, &fresh);
		if (!fresh)
			return onnx_item_error(r->it, "node %lld of tree %lld stands twice",
					       (long long)key[1], (long long)key[0]);
	}
	return true;
}

static bool read_nodes(TreeReader *r, const TreeColumns *c)
{
	Forest *f = r->f;
	uint32_t n = c->id.n;
	bool *is_below = ARENA_ARRAY(r->scratch, bool, n);
	for (uint32_t k = 0; k < n; k++)
		array_push(r->scratch, &f->node, (TreeNode){.leaf = true});
	for (uint32_t k = 0; k < n; k++) {
		Mode mode = MODE_LEAF;
		TRY(mode_of(r, c->mode->data[k], &mode));
		if (mode == MODE_LEAF)
			continue;
		uint32_t yes = find_node(c, c->tree.data[k], c->yes.data[k]),
			 no = find_node(c, c->tree.data[k], c->no.data[k]);
		if (yes == NO_NODE || no == NO_NODE)
			return onnx_item_error(
				r->it, "node %lld of tree %lld has a branch to no node",
				(long long)c->id.data[k], (long long)c->tree.data[k]);
		TRY(check_feature(r, c->feature.data[k]));
		is_below[yes] = is_below[no] = true;
		bool nan = mode == MODE_NEQ || (c->missing.n && c->missing.data[k]);
		add_branch(r, k, mode, (uint32_t)c->feature.data[k], c->at[k], yes, no, nan);
	}
	for (uint32_t k = 0; k < n; k++)
		if (!is_below[k])
			array_push(r->scratch, &f->root, k);
	return f->root.n || onnx_item_error(r->it, "the nodes of a tree form a cycle");
}

/* Reads the weights, sorted by leaf. */
static bool read_weights(TreeReader *r, const TreeColumns *c, const char *prefix)
{
	Forest *f = r->f;
	Ints tree = ints_of(r, arena_printf(r->scratch, "%s_treeids", prefix)),
	     id = ints_of(r, arena_printf(r->scratch, "%s_nodeids", prefix));
	Ints target = ints_of(r, arena_printf(r->scratch, "%s_ids", prefix));
	const double *value;
	const char *name = arena_printf(r->scratch, "%s_weights", prefix);
	uint32_t n, *leaf = ARENA_ARRAY(r->scratch, uint32_t, id.n);
	TRY(trees_numbers(r->it, name, &value, &n) && length(r, name, n, id.n) &&
	    length(r, arena_printf(r->scratch, "%s_treeids", prefix), tree.n, n));
	TRY(length(r, arena_printf(r->scratch, "%s_ids", prefix), target.n, n));
	for (uint32_t k = 0; k < n; k++) {
		TRY(check_target(r, target.data[k]));
		leaf[k] = find_node(c, tree.data[k], id.data[k]);
		if (leaf[k] == NO_NODE)
			return onnx_item_error(
				r->it,
				"a weight is of node %lld of tree %lld, which does not exist",
				(long long)id.data[k], (long long)tree.data[k]);
		f->node.data[leaf[k]].n++;
		array_push(r->scratch, &f->weight, (TreeWeight){0});
	}
	uint32_t at = 0;
	for (uint32_t k = 0; k < f->node.n; k++) {
		f->node.data[k].first = at;
		at += f->node.data[k].n;
		f->node.data[k].n = 0;
	}
	for (uint32_t k = 0; k < n; k++) {
		TreeNode *l = &f->node.data[leaf[k]];
		f->weight.data[l->first + l->n++] =
			(TreeWeight){(uint32_t)target.data[k], value[k]};
	}
	return true;
}

/* ---- TreeEnsemble ---- */

typedef struct {
	uint32_t n, nleaf;
	Ints feature, yes, no, yes_leaf, no_leaf, missing, root, target;
	const double *mode, *at, *member, *weight;
	uint32_t nmember, next; /* values of sets, and the next one that is read */
} Ensemble;

static bool read_ensemble_attrs(TreeReader *r, Ensemble *e)
{
	uint32_t n, nat, nweight;
	e->feature = ints_of(r, "nodes_featureids");
	e->yes = ints_of(r, "nodes_truenodeids");
	e->no = ints_of(r, "nodes_falsenodeids");
	e->yes_leaf = ints_of(r, "nodes_trueleafs");
	e->no_leaf = ints_of(r, "nodes_falseleafs");
	e->missing = ints_of(r, "nodes_missing_value_tracks_true");
	e->root = ints_of(r, "tree_roots");
	e->target = ints_of(r, "leaf_targetids");
	n = e->n = e->feature.n;
	TRY(trees_numbers(r->it, "nodes_modes", &e->mode, &nat) &&
	    length(r, "nodes_modes", nat, n));
	TRY(trees_numbers(r->it, "nodes_splits", &e->at, &nat) &&
	    length(r, "nodes_splits", nat, n));
	TRY(trees_numbers(r->it, "membership_values", &e->member, &e->nmember) &&
	    trees_numbers(r->it, "leaf_weights", &e->weight, &nweight));
	e->nleaf = nweight;
	TRY(length(r, "leaf_targetids", e->target.n, nweight) &&
	    length(r, "nodes_truenodeids", e->yes.n, n));
	TRY(length(r, "nodes_falsenodeids", e->no.n, n) &&
	    length(r, "nodes_trueleafs", e->yes_leaf.n, n));
	return length(r, "nodes_falseleafs", e->no_leaf.n, n) &&
	       (!e->missing.n || length(r, "nodes_missing_value_tracks_true", e->missing.n, n));
}

/* Returns the node of a branch: nodes come first, then leaves. */
static uint32_t branch(const Ensemble *e, int64_t id, bool leaf)
{
	uint32_t n = leaf ? e->nleaf : e->n;
	return id < 0 || id >= (int64_t)n ? NO_NODE : (uint32_t)id + (leaf ? e->n : 0);
}

/* Adds a set as a comparison with each of its values; NaN ends its list. */
static bool add_member(TreeReader *r, Ensemble *e, uint32_t k, uint32_t yes, uint32_t no, bool nan)
{
	Forest *f = r->f;
	uint32_t feature = (uint32_t)e->feature.data[k];
	for (bool first = true;; first = false) {
		if (e->next >= e->nmember)
			return onnx_item_error(r->it, "membership_values ends within a set");
		double v = e->member[e->next++];
		bool empty = first && isnan(v),
		     last = empty || e->next >= e->nmember || isnan(e->member[e->next]);
		uint32_t rest = last ? no : f->node.n;
		if (!last)
			array_push(r->scratch, &f->node, (TreeNode){0});
		add_branch(r, k, MODE_EQ, feature, v, yes, rest, nan && last);
		if (last) {
			e->next += !empty;
			return true;
		}
		k = rest;
	}
}

static bool read_ensemble(TreeReader *r)
{
	Forest *f = r->f;
	Ensemble e = {0};
	TRY(read_ensemble_attrs(r, &e));
	for (uint32_t k = 0; k < e.n; k++)
		array_push(r->scratch, &f->node, (TreeNode){0});
	for (uint32_t k = 0; k < e.nleaf; k++) {
		TRY(check_target(r, e.target.data[k]));
		array_push(r->scratch, &f->node, (TreeNode){.leaf = true, .first = k, .n = 1});
		array_push(r->scratch, &f->weight,
			   (TreeWeight){(uint32_t)e.target.data[k], e.weight[k]});
	}
	for (uint32_t k = 0; k < e.n; k++) {
		uint32_t yes = branch(&e, e.yes.data[k], e.yes_leaf.data[k] != 0),
			 no = branch(&e, e.no.data[k], e.no_leaf.data[k] != 0);
		if (yes == NO_NODE || no == NO_NODE ||
		    !(e.mode[k] >= MODE_LEQ && e.mode[k] <= MODE_MEMBER))
			return onnx_item_error(
				r->it, "node %u has a branch to no node, or an unknown mode", k);
		TRY(check_feature(r, e.feature.data[k]));
		Mode mode = (Mode)e.mode[k];
		bool nan = mode == MODE_NEQ || (e.missing.n && e.missing.data[k]);
		if (mode == MODE_MEMBER)
			TRY(add_member(r, &e, k, yes, no, nan));
		else
			add_branch(r, k, mode, (uint32_t)e.feature.data[k], e.at[k], yes, no, nan);
	}
	for (uint32_t k = 0; k < e.root.n; k++) {
		if (e.root.data[k] < 0 || e.root.data[k] >= (int64_t)e.n)
			return onnx_item_error(r->it, "tree_roots names node %lld, of %u",
					       (long long)e.root.data[k], e.n);
		array_push(r->scratch, &f->root, (uint32_t)e.root.data[k]);
	}
	return f->root.n || onnx_item_error(r->it, "an ensemble without trees");
}

bool trees_read(const Item *it, const char *prefix, Forest *f)
{
	TreeReader r = {.it = it, .f = f, .scratch = it->s->im->ctx->scratch};
	TreeColumns c = {0};
	if (prefix)
		TRY(read_columns(&r, &c) && read_nodes(&r, &c) && read_weights(&r, &c, prefix));
	else
		TRY(read_ensemble(&r));
	return check_cycles(&r);
}
