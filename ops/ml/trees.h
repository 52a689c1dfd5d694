/* Ensembles of decision trees: arranged in tables (trees_table.c), and built as operations on
 * tensors (trees_build.c). Importers read them (frontend/onnx/trees.h).
 *
 * A forest has nodes, which branch or are leaves, and weights of leaves. Every branch is one
 * comparison: to `yes` if x[feature] <= at. The other modes of ONNX are written with it when they
 * are read, so that all nodes of all trees are computed alike. Nodes may be shared: a forest has no
 * cycles, but need not be trees. */
#ifndef WEFT_OPS_ML_TREES_H
#define WEFT_OPS_ML_TREES_H

#include "base/array.h"
#include "ir/build/build.h"

typedef struct {
	bool leaf;
	bool nan;          /* NaN goes to `yes`, too */
	uint32_t feature;
	double at;
	uint32_t yes, no;  /* nodes */
	uint32_t first, n; /* of a leaf: its weights */
} TreeNode;

typedef struct {
	uint32_t target;
	double value;
} TreeWeight;

typedef struct {
	ARRAY(TreeNode) node;
	ARRAY(TreeWeight) weight;
	ARRAY(uint32_t) root;
	uint32_t ntarget;
	uint32_t nfeature; /* one more than the greatest feature */
	DType dtype;       /* f32 or f64: of comparisons and weights */
} Forest;

typedef enum { TREES_SUM, TREES_AVERAGE, TREES_MIN, TREES_MAX } TreesCombine;

enum { TREES_MOST_COMPLETE = 6 }; /* levels */

/* How the trees lie in tables. Levels of nodes next to the roots, `top` of them, are complete:
 * level l has 2^l places, each with one element for each tree. Trees of more levels go on by slots:
 * the first 2^top * T slots are the places behind these levels (place-major); each slot holds a
 * node, and the two nodes below it have two slots side by side. A leaf stays where it is. */
typedef struct {
	uint32_t top, depth;    /* levels: complete ones, and all */
	uint32_t groups, trees; /* T = groups * trees. Several groups: group k gives target k */
	bool wide;              /* of one group: a leaf has a weight for each target */
	const uint32_t *place;  /* [2^(top + 1) - 1][T] nodes: level by level */
	uint32_t nslot;         /* 0: depth is top */
	const uint32_t *slot;   /* its node */
	const uint32_t *below;  /* its first slot below; of a leaf one that holds the leaf */
} TreeTable;

/* Arranges a forest. Returns false after an error: too large. */
bool trees_arrange(Build *, const Forest *, TreeTable *);

/* Returns the sums (or others) of weights for the rows of x [N, features], of dtype f->dtype:
 * [N, targets]. Returns no node after an error. */
Node trees_build(Build *, const Forest *, const TreeTable *, TreesCombine, Node x);

#endif
