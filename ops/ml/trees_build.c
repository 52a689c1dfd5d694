/* Tables of trees become operations on tensors: all rows and all trees at once, level by level. The
 * comparisons of the complete levels choose among their places; below them each row and tree has a
 * slot, whose table elements say what is compared and where the slots below are. */
#include <math.h>

#include "ir/interp/tensor.h"
#include "ops/aten/priv.h"
#include "ops/ml/trees.h"

typedef struct {
	Build *b;
	const Forest *f;
	const TreeTable *t;
	Node x;              /* [N, features] */
	uint32_t ntree;      /* groups * trees */
	bool nan, mixed;     /* where NaN goes: of all branches, or of each its own */
	double none;         /* of a target without a weight */
	Node less[TREES_MOST_COMPLETE];       /* by complete level, whether the branch goes to `no`:
	                                         [N, groups, trees] */
} Trees;

/* ---- tables ---- */

static Tensor table(Trees *w, DType d, uint32_t rank, const int64_t *dim)
{
	Tensor t = {.dtype = d, .rank = rank};
	for (uint32_t k = 0; k < rank; k++)
		t.dim[k] = dim[k];
	t.data = arena_alloc(w->b->g->ir->ctx->arena, tensor_bytes(&t));
	return t;
}

static Node constant(Trees *w, const Tensor *t)
{
	Const c = {.name = "",
		   .dtype = t->dtype,
		   .rank = t->rank,
		   .dim = arena_dup(w->b->g->ir->ctx->arena, t->dim, sizeof t->dim),
		   .data = t->data,
		   .bytes = tensor_bytes(t)};
	return b_const(w->b, ir_const(w->b->g->ir, c));
}

/* Returns a tensor with an element for each tree: [groups, trees], or [trees] of one group. */
static Tensor by_tree(Trees *w, DType d)
{
	return w->t->groups > 1 ? table(w, d, 2, (int64_t[]){w->t->groups, w->t->trees})
				: table(w, d, 1, (int64_t[]){w->t->trees});
}

typedef enum { FEATURE, AT, NAN_TO_YES, VALUE } Field;

static double field_of(const Trees *w, uint32_t node, Field field)
{
	const TreeNode *n = node == UINT32_MAX ? NULL : &w->f->node.data[node];
	if (field == VALUE)
		return n && n->leaf && n->n ? w->f->weight.data[n->first].value : w->none;
	if (!n || n->leaf)
		return 0;
	return field == FEATURE ? (double)n->feature : field == AT ? n->at : n->nan;
}

/* Returns a field of the nodes at a place. */
static Node of_place(Trees *w, uint32_t place, Field field)
{
	DType d = field == FEATURE ? DT_i64 : field == NAN_TO_YES ? DT_bool : w->f->dtype;
	Tensor t = by_tree(w, d);
	for (uint32_t k = 0; k < w->ntree; k++)
		tensor_set_f64(&t, k, field_of(w, w->t->place[place * w->ntree + k], field));
	return constant(w, &t);
}

/* Returns the field at the place of a level that the comparisons of the levels above lead to. */
static Node chosen(Trees *w, uint32_t level, Field field)
{
	Node x[1u << TREES_MOST_COMPLETE];
	uint32_t n = 1u << level;
	for (uint32_t k = 0; k < n; k++)
		x[k] = of_place(w, n - 1 + k, field);
	for (uint32_t l = level; l > 0; l--) {
		n /= 2;
		for (uint32_t k = 0; k < n; k++)
			x[k] = b_select(w->b, w->less[l - 1], x[2 * k + 1], x[2 * k]);
	}
	return x[0];
}

/* ---- comparisons ---- */

/* Returns [N, groups, trees], or [N, trees] of one group, of any shape that broadcasts to it. */
static Node for_rows(Trees *w, Node v)
{
	Shape s = {.dim = {b_dim(w->b, w->x, 0)}};
	if (w->t->groups > 1)
		s.dim[++s.rank] = b_int(w->b, w->t->groups);
	s.dim[++s.rank] = b_int(w->b, w->t->trees);
	s.rank++;
	return aten_expand_shape(w->b, v, &s);
}

/* Whether the branch goes to `no`. */
static Node goes_to_no(Trees *w, Node feature, Node at, Node nan)
{
	Build *b = w->b;
	Node index = b_unsqueeze(b, for_rows(w, feature), -1);
	Node v = b_gather(b, w->x, index, 1, (uint32_t[]){1}, 1, "promise");
	Node not_less = b_un(b, OP_bit_not, b_bin(b, OP_le, v, at));
	if (w->mixed)
		return b_select(b, nan, b_bin(b, OP_gt, v, at), not_less);
	return w->nan ? b_bin(b, OP_gt, v, at) : not_less;
}

static void find_nan(Trees *w)
{
	bool first = true;
	for (uint32_t k = 0; k < w->f->node.n; k++) {
		const TreeNode *n = &w->f->node.data[k];
		if (n->leaf)
			continue;
		w->mixed = w->mixed || (!first && n->nan != w->nan);
		w->nan = n->nan;
		first = false;
	}
}

/* ---- slots ---- */

typedef struct {
	uint32_t bits; /* of features and the flag of NaN, below the slot */
	DType dtype;   /* of words: the first slot below, the feature, the flag */
	Node word, at;
} Slots;

static uint32_t bits_for(uint64_t n)
{
	uint32_t k = 0;
	while (n >> k)
		k++;
	return k;
}

static Slots slot_tables(Trees *w)
{
	const TreeTable *t = w->t;
	Slots s = {.bits = bits_for(w->f->nfeature) + w->mixed};
	s.dtype = bits_for(t->nslot) + s.bits < 31 ? DT_i32 : DT_i64;
	Tensor word = table(w, s.dtype, 1, (int64_t[]){t->nslot}),
	       at = table(w, w->f->dtype, 1, (int64_t[]){t->nslot});
	for (uint32_t k = 0; k < t->nslot; k++) {
		int64_t feature = (int64_t)field_of(w, t->slot[k], FEATURE);
		if (w->mixed)
			feature = feature * 2 + (int64_t)field_of(w, t->slot[k], NAN_TO_YES);
		tensor_set_i64(&word, k, ((int64_t)t->below[k] << s.bits) + feature);
		tensor_set_f64(&at, k, field_of(w, t->slot[k], AT));
	}
	s.word = constant(w, &word);
	s.at = constant(w, &at);
	return s;
}

static Node look_up(Trees *w, Node values, Node slot)
{
	return b_gather(w->b, values, b_unsqueeze(w->b, b_convert(w->b, slot, DT_i64), -1), 0,
			(uint32_t[]){0}, 1, "promise");
}

static Node int_like(Trees *w, Node x, int64_t v)
{
	return b_full_int(w->b, node_dtype(w->b->g, x), v, 0, NULL);
}

static Node step_down(Trees *w, const Slots *s, Node slot)
{
	Build *b = w->b;
	Node word = look_up(w, s->word, slot), at = look_up(w, s->at, slot), nan = {0};
	Node low = b_bin(b, OP_bit_and, word, int_like(w, word, (INT64_C(1) << s->bits) - 1));
	if (w->mixed) {
		nan = b_bin_scalar(b, OP_ne, b_bin(b, OP_bit_and, low, int_like(w, low, 1)), 0);
		low = b_bin(b, OP_shift_right, low, int_like(w, low, 1));
	}
	Node no = goes_to_no(w, b_convert(b, low, DT_i64), at, nan);
	Node below = b_bin(b, OP_shift_right, word, int_like(w, word, s->bits));
	return b_bin(b, OP_add, below, b_convert(b, no, s->dtype));
}

/* Returns the slot behind the complete levels: place * T + tree. */
static Node first_slot(Trees *w, DType d)
{
	Build *b = w->b;
	Node place = b_full_int(b, d, 0, 0, NULL);
	for (uint32_t l = 0; l < w->t->top; l++)
		place = b_bin(b, OP_add, b_bin(b, OP_add, place, place),
			      b_convert(b, w->less[l], d));
	Tensor tree = by_tree(w, d);
	for (uint32_t k = 0; k < w->ntree; k++)
		tensor_set_i64(&tree, k, k);
	return for_rows(w, b_bin(b, OP_add, b_bin(b, OP_mul, place, int_like(w, place, w->ntree)),
				 constant(w, &tree)));
}

/* ---- weights ---- */

/* Returns, by slot or place, a weight for each target. */
static Node wide_values(Trees *w, const uint32_t *node, uint32_t n)
{
	Tensor t = table(w, w->f->dtype, 2, (int64_t[]){n, w->f->ntarget});
	for (int64_t k = 0; k < (int64_t)n * w->f->ntarget; k++)
		tensor_set_f64(&t, k, w->none);
	for (uint32_t k = 0; k < n; k++) {
		const TreeNode *l = node[k] == UINT32_MAX ? NULL : &w->f->node.data[node[k]];
		for (uint32_t j = 0; l && l->leaf && j < l->n; j++) {
			const TreeWeight *v = &w->f->weight.data[l->first + j];
			int64_t at = (int64_t)k * w->f->ntarget + v->target;
			double old = tensor_f64(&t, at);
			tensor_set_f64(&t, at,
				       w->none == 0  ? old + v->value
				       : w->none < 0 ? fmax(old, v->value)
						     : fmin(old, v->value));
		}
	}
	return constant(w, &t);
}

static Node narrow_values(Trees *w)
{
	Tensor t = table(w, w->f->dtype, 1, (int64_t[]){w->t->nslot});
	for (uint32_t k = 0; k < w->t->nslot; k++)
		tensor_set_f64(&t, k, field_of(w, w->t->slot[k], VALUE));
	return constant(w, &t);
}

/* Returns the weights that each row gets of each tree: [N, trees, targets] if leaves are wide,
 * [N, groups, trees] or [N, trees] else. */
static Node weights(Trees *w)
{
	const TreeTable *t = w->t;
	if (t->depth == t->top && !t->wide)
		return for_rows(w, chosen(w, t->top, VALUE));
	if (t->depth == t->top) {
		uint32_t last = (1u << t->top) - 1;
		Node slot = first_slot(w, DT_i32);
		Node values =
			wide_values(w, t->place + (size_t)last * w->ntree, w->ntree << t->top);
		return look_up(w, values, slot);
	}
	Slots s = slot_tables(w);
	Node slot = first_slot(w, s.dtype);
	for (uint32_t l = t->top; l < t->depth; l++)
		slot = step_down(w, &s, slot);
	return look_up(w, t->wide ? wide_values(w, t->slot, t->nslot) : narrow_values(w), slot);
}

Node trees_build(Build *b, const Forest *f, const TreeTable *t, TreesCombine combine, Node x)
{
	Trees w = {.b = b, .f = f, .t = t, .x = x, .ntree = t->groups * t->trees};
	w.none = combine == TREES_MIN   ? (double)INFINITY
		 : combine == TREES_MAX ? -(double)INFINITY
					: 0;
	find_nan(&w);
	for (uint32_t l = 0; l < t->top; l++) {
		Node nan_to_yes = w.mixed ? chosen(&w, l, NAN_TO_YES) : (Node){0};
		Node at = chosen(&w, l, AT);
		w.less[l] = goes_to_no(&w, chosen(&w, l, FEATURE), at, nan_to_yes);
	}
	Node v = weights(&w);
	uint32_t over = t->groups > 1 ? 2 : 1;
	Node y = aten_reduce(b,
			     combine == TREES_MIN   ? REDUCE_MIN
			     : combine == TREES_MAX ? REDUCE_MAX
						    : REDUCE_SUM,
			     v, 1u << over, false);
	if (w.none != 0)
		y = b_select(b, b_bin_scalar(b, OP_eq, y, w.none), aten_like(b, y, 0), y);
	if (combine == TREES_AVERAGE)
		y = b_bin_scalar(b, OP_div, y, f->root.n);
	return t->groups == 1 && !t->wide ? b_unsqueeze(b, y, 1) : y;
}
