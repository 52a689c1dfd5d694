/* How a primitive becomes part of kernels: the field .lower of its block (ir/op/op.h), which
 * lower/ reads. Scalar functions have none: they are element-wise. A kernel computes its root, the
 * node whose result it stores, and the nodes that are fused into it, whose values it computes where
 * it reads them. */
#ifndef WEFT_IR_OP_LOWER_H
#define WEFT_IR_OP_LOWER_H

#include "ir/graph/graph.h"

typedef enum {
	LOWER_NONE,    /* never lowered: a composite, which expands */
	LOWER_MAP,     /* element-wise: an element of the result needs the operands' elements at the
	                  same index */
	LOWER_INDEX,   /* an index map: an element of an operand; .index says which */
	LOWER_LEAF,    /* needs no operand: the integer that .index gives, or the attribute
	                  `value` */
	LOWER_MEMORY,  /* in memory before any kernel reads it: an input, a constant, a result of a
	                  loop */
	LOWER_REDUCE,  /* a reduction: attributes kind, dims and acc */
	LOWER_ANCHOR,  /* a sum of products of two operands' elements (.index); attribute acc */
	LOWER_TILES,   /* winograd_output: the elements of a tile of the result share what is
	                  computed of operand 0, so that kernels run over tiles
	                  (lower/winograd.c) */
	LOWER_ROOT,    /* has kernels of its own: a function of lower/roots.c */
	LOWER_NOTHING  /* has no value: a tuple; an output's name for its operand */
} LowerRole;

/* When a node is fused into the kernel that reads it, and not stored. */
typedef enum {
	FUSE_NEVER,
	FUSE_ALWAYS, /* costs nothing but its index */
	FUSE_CHEAP,  /* unless it is expensive and the kernel would evaluate it much more often than
	                it has elements */
	FUSE_FEW,    /* if it has few operands, none of them the main work of a kernel */
	FUSE_ROW,    /* into a kernel without a contraction whose root is no LOWER_ROOT */
	FUSE_ONCE    /* into a kernel without other work that reads each element once: its
	                epilogue */
} LowerFuse;

/* What a result keeps of its operands; each includes those before it. */
typedef enum {
	KEEPS_NOTHING,
	KEEPS_ELEMENTS, /* every element, exactly once */
	KEEPS_ORDER,    /* the row-major order of elements */
	KEEPS_INDEX     /* the index of each element */
} LowerKeeps;

/* Operands that may be computed directly in the result's buffer. */
typedef enum {
	HOLDS_NOTHING,
	HOLDS_OPERANDS, /* all operands, one after the other along `dim` */
	HOLDS_INTERIOR  /* operand 0 as the interior: around it `low` and `high`, between its
	                   elements `interior` times, operand 1 */
} LowerHolds;

/* How an index out of range is treated. */
typedef enum {
	INDEX_CHECK,   /* a negative index counts from the end; then out of range is an error */
	INDEX_FILL,    /* the element does not exist (INDEX: `other`) */
	INDEX_CLAMP,   /* the nearest element; none if the extent is 0 */
	INDEX_PROMISE, /* never happens */
	INDEX_WITHIN,  /* out of range is an error, negative too */
	INDEX_FITS     /* the nearest element; the extent is not 0 */
} IndexMode;

/* The values of the attribute `mode` of a gather or scatter, in order of IndexMode; NULL is
 * last. */
extern const char *const index_mode_names[];
/* Returns the attribute `mode` of a gather or scatter. A node of an operator without the attribute
 * is an internal error. */
IndexMode node_index_mode(const Graph *, Node);
/* Whether an index out of range is an error at run time. */
static inline bool index_is_checked(IndexMode mode)
{
	return mode == INDEX_CHECK || mode == INDEX_WITHIN;
}

/* The argument of .index: which elements of the operands does element at[] of n read? Answers are
 * symbolic expressions of at[], of axes and of values. .index knows nothing of kernels, so tests
 * call it with numbers. */
typedef struct IndexMap {
	const Graph *g;
	Node n;
	uint32_t operand; /* HOLDS_OPERANDS: the operand that is asked about */
	Sym start;        /* HOLDS_OPERANDS: where that operand begins along `dim` */
	const Sym *at;    /* the index of an element of the result; for roots that write parts of
	                     operand 0, of the update */
	Sym in[2][MAX_RANK]; /* answer: the index in the operand; for anchors in operands 0 and 1;
	                        for a leaf, in[0][0] is the value */
	uint32_t nrange;
	struct IndexRange {
		Sym e, lo, hi;
	} range[2 * MAX_RANK]; /* answer: the element exists if lo <= e < hi, for all of these */
	/* Given by the caller: makes a new axis over which the operand is summed; returns 0 for an
	 * extent of 1. */
	Sym (*axis)(struct IndexMap *, const char *name, Sym extent);
	/* Given by the caller: the value of an operand at at[] (NULL: without dimensions) as an
	 * index below extent, in range after the check of the mode. */
	Sym (*value)(struct IndexMap *, uint32_t operand, const Sym *at, Sym extent, IndexMode);
} IndexMap;

/* Adds a condition to the answer of .index: the element exists only if lo <= e < hi. At most 2 *
 * MAX_RANK conditions. */
static inline void index_range(IndexMap *m, Sym e, Sym lo, Sym hi)
{
	m->range[m->nrange++] = (struct IndexRange){e, lo, hi};
}

enum { ALL_OPERANDS = -1 };

/* The field .lower. */
typedef struct {
	LowerRole role;
	LowerFuse fuses;
	LowerKeeps keeps;
	LowerHolds holds;
	int32_t reads;    /* bits of operands that are read at indices of their own: a computed
	                     operand is stored first */
	int32_t bordered; /* bits of operands that are best stored with the border that padding
	                     gives them (halo) */
	uint32_t other;   /* INDEX: the operand without dimensions that replaces elements that do
	                     not exist; 0: zero does */
	uint32_t cost;    /* operations per element; 0: 1 */
	uint32_t axes;    /* ROOT: the axes of its kernel besides those of the result */
	bool updates;     /* ROOT: the result is operand 0 with parts replaced, as operand 1 says */
	bool own_results; /* ROOT: chooses the places of its results; no reader gives them a
	                     place */
	bool fields;      /* INDEX: the value is a field, of `bits` bits, of the operand's element;
	                     dimension `dim` of the result counts fields from the lowest on */
	bool complex;     /* accepts complex operands or results, with which it does no
	                     arithmetic */
	void (*index)(IndexMap *);
} OpLower;

/* Whether the operator is an index map that is always fused, such as permute. */
static inline bool lower_is_map(const OpLower *l)
{
	return l->role == LOWER_INDEX && l->fuses == FUSE_ALWAYS;
}

/* Whether the kernel reads operand k at indices of its own (OpLower.reads), so that a computed
 * operand is stored first. */
static inline bool lower_reads(const OpLower *l, uint32_t k)
{
	return l->reads == ALL_OPERANDS || (k < 31 && l->reads >> k & 1);
}

#endif
