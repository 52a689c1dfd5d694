/* A forest becomes tables. */
#include <string.h>

#include "ops/ml/trees.h"

/* Complete levels cost a vector for each of their places; slots cost three elements read by index
 * for each level. Measured on Sapphire Rapids, 500 trees: of 6 levels all complete 8 us a row, 3 of
 * them 10 us and, of a single row, 59 us; of 20 levels 3 are as good as 6. */
enum { TOP_LEVELS = 3, MOST_SLOTS = 1 << 28, MOST_TARGETS = 1 << 20 };

typedef struct {
	Build *b;
	const Forest *f;
	Arena *scratch;
	TreeTable *t;
} Arranger;

static bool too_large(const Arranger *a)
{
	b_error(a->b, "the trees have more than %d nodes, counted once for each place and target",
		MOST_SLOTS);
	return false;
}

/* ---- depth ---- */

/* Returns the most branches between a root and a leaf. */
static uint32_t depth_of(const Arranger *a)
{
	const Forest *f = a->f;
	/* levels below + 1; 0: not known */
	uint32_t *below = ARENA_ARRAY(a->scratch, uint32_t, f->node.n);
	uint32_t most = 0;
	ARRAY(uint32_t) todo = {0};
	for (uint32_t k = 0; k < f->root.n; k++) {
		array_push(a->scratch, &todo, f->root.data[k]);
		while (todo.n) {
			uint32_t v = todo.data[todo.n - 1];
			const TreeNode *n = &f->node.data[v];
			uint32_t yes = n->leaf ? 0 : below[n->yes], no = n->leaf ? 0 : below[n->no];
			if (!n->leaf && !below[v] && (!yes || !no)) {
				if (!yes)
					array_push(a->scratch, &todo, n->yes);
				if (!no)
					array_push(a->scratch, &todo, n->no);
				continue;
			}
			below[v] = n->leaf ? 1 : 1 + (yes > no ? yes : no);
			todo.n--;
		}
		uint32_t d = below[f->root.data[k]] - 1;
		most = d > most ? d : most;
	}
	return most;
}

/* ---- order of the trees ---- */

#define MANY_TARGETS (UINT32_MAX - 1)
#define NO_TARGET    UINT32_MAX

static uint32_t common(uint32_t x, uint32_t y)
{
	return x == NO_TARGET ? y : y == NO_TARGET || x == y ? x : MANY_TARGETS;
}

/* Finds, by node, the one target of all leaves below it. Children of a node are found first, as
 * depth_of does. */
static uint32_t *targets(const Arranger *a)
{
	const Forest *f = a->f;
	uint32_t *target = ARENA_ARRAY(a->scratch, uint32_t, f->node.n);
	bool *known = ARENA_ARRAY(a->scratch, bool, f->node.n);
	ARRAY(uint32_t) todo = {0};
	for (uint32_t k = 0; k < f->root.n; k++) {
		array_push(a->scratch, &todo, f->root.data[k]);
		while (todo.n) {
			uint32_t v = todo.data[todo.n - 1];
			const TreeNode *n = &f->node.data[v];
			if (!n->leaf && !(known[n->yes] && known[n->no])) {
				if (!known[n->yes])
					array_push(a->scratch, &todo, n->yes);
				if (!known[n->no])
					array_push(a->scratch, &todo, n->no);
				continue;
			}
			if (n->leaf)
				target[v] = n->n == 0   ? NO_TARGET
					    : n->n == 1 ? f->weight.data[n->first].target
							: MANY_TARGETS;
			else
				target[v] = common(target[n->yes], target[n->no]);
			known[v] = true;
			todo.n--;
		}
	}
	return target;
}

/* Orders the roots of T trees, in groups if each tree has one target and the groups are about as
 * large. Groups are filled up with trees that give nothing: UINT32_MAX. */
static uint32_t *order(const Arranger *a)
{
	const Forest *f = a->f;
	TreeTable *t = a->t;
	const uint32_t *target = targets(a);
	uint32_t *size = ARENA_ARRAY(a->scratch, uint32_t, f->ntarget), most = 0;
	t->groups = 1;
	t->trees = f->root.n;
	for (uint32_t k = 0; k < f->root.n && !t->wide; k++) {
		uint32_t of = target[f->root.data[k]];
		t->wide = of == MANY_TARGETS;
		if (!t->wide && ++size[of == NO_TARGET ? 0 : of] > most)
			most = size[of == NO_TARGET ? 0 : of];
	}
	t->wide = t->wide || (uint64_t)most * f->ntarget > 2 * (uint64_t)f->root.n;
	if (!t->wide) {
		t->groups = f->ntarget;
		t->trees = most;
	}
	uint32_t *root = ARENA_ARRAY(a->scratch, uint32_t, t->groups * t->trees),
		 *used = ARENA_ARRAY(a->scratch, uint32_t, t->groups);
	for (uint32_t k = 0; k < t->groups * t->trees; k++)
		root[k] = UINT32_MAX;
	for (uint32_t k = 0; k < f->root.n; k++) {
		uint32_t of = t->wide || target[f->root.data[k]] == NO_TARGET
				      ? 0
				      : target[f->root.data[k]];
		root[of * t->trees + used[of]++] = f->root.data[k];
	}
	return root;
}

/* ---- places and slots ---- */

static uint32_t child(const Arranger *a, uint32_t node, bool no)
{
	const TreeNode *n = node == UINT32_MAX ? NULL : &a->f->node.data[node];
	return !n || n->leaf ? node : no ? n->no : n->yes;
}

/* Fills in the places. Level l begins at (2^l - 1) * T; place p of it has the places 2p and 2p +
 * 1 below. */
static void fill_places(const Arranger *a, const uint32_t *root)
{
	TreeTable *t = a->t;
	uint32_t ntree = t->groups * t->trees, n = (2u << t->top) - 1;
	uint32_t *place = ARENA_ARRAY(a->scratch, uint32_t, (size_t)n * ntree);
	memcpy(place, root, ntree * sizeof *root);
	for (uint32_t p = 1; p < n; p++)
		for (uint32_t k = 0; k < ntree; k++)
			place[p * ntree + k] = child(a, place[(p - 1) / 2 * ntree + k], p % 2 == 0);
	t->place = place;
}

static bool fill_slots(const Arranger *a)
{
	TreeTable *t = a->t;
	const Forest *f = a->f;
	uint32_t first = (t->groups * t->trees) << t->top;
	/* by node, the last one: no node; 0: none yet */
	uint32_t *below_of = ARENA_ARRAY(a->scratch, uint32_t, f->node.n + 1);
	ARRAY(uint32_t) slot = {0}, below = {0};
	for (uint32_t k = 0; k < first; k++)
		array_push(a->scratch, &slot,
			   t->place[((1u << t->top) - 1) * t->groups * t->trees + k]);
	for (uint32_t k = 0; k < slot.n; k++) {
		uint32_t node = slot.data[k], at = node == UINT32_MAX ? f->node.n : node;
		if (!below_of[at]) {
			if (slot.n >= MOST_SLOTS)
				return too_large(a);
			below_of[at] = slot.n;
			array_push(a->scratch, &slot, child(a, node, false));
			array_push(a->scratch, &slot, child(a, node, true));
		}
		array_push(a->scratch, &below, below_of[at]);
	}
	t->nslot = slot.n;
	t->slot = slot.data;
	t->below = below.data;
	return true;
}

bool trees_arrange(Build *b, const Forest *f, TreeTable *t)
{
	Arranger a = {.b = b, .f = f, .scratch = b->g->ir->ctx->scratch, .t = t};
	*t = (TreeTable){0};
	if (f->ntarget > MOST_TARGETS) {
		b_error(b, "%u targets or classes, expected at most %d", f->ntarget, MOST_TARGETS);
		return false;
	}
	const uint32_t *root = order(&a);
	if ((uint64_t)t->groups * t->trees > MOST_SLOTS >> (TREES_MOST_COMPLETE + 1))
		return too_large(&a);
	t->depth = depth_of(&a);
	t->top = t->depth <= TREES_MOST_COMPLETE ? t->depth : TOP_LEVELS;
	fill_places(&a, root);
	TRY(t->depth == t->top || fill_slots(&a));
	uint64_t n = t->nslot ? t->nslot : (uint64_t)t->trees << t->top;
	return !t->wide || n * f->ntarget <= MOST_SLOTS || too_large(&a);
}
