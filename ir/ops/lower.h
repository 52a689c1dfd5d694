/* How a primitive becomes part of kernels: facts of its block, which lower/ asks. Scalar functions
 * need none: they are element-wise. */
#ifndef WEFT_IR_OPS_LOWER_H
#define WEFT_IR_OPS_LOWER_H

#include "ir/graph/graph.h"

typedef enum {
	LOWER_NONE,    /* never lowered: composites, which expand */
	LOWER_MAP,     /* element-wise: from the operands' elements at the same index */
	LOWER_INDEX,   /* an element of an operand: .index says which */
	LOWER_LEAF,    /* made of nothing: the integer that .index gives, or the attribute
	                  `value` */
	LOWER_MEMORY,  /* there before any kernel reads it: an input, a constant, a result of a
	                  loop */
	LOWER_REDUCE,  /* dims combined: attributes kind, dims and acc */
	LOWER_ANCHOR,  /* a sum of products of two operands' elements: .index; attribute acc */
	LOWER_ROOT,    /* kernels of its own: a function of lower/roots.c */
	LOWER_NOTHING  /* no value of its own: a tuple; an output's name for its operand */
} LowerRole;

/* When a node is computed in the kernel that reads it and not stored. */
typedef enum {
	JOIN_NEVER,
	JOIN_ALWAYS, /* it costs its index only */
	JOIN_CHEAP,  /* unless it is expensive and the kernel would evaluate it much more often than
	                it has elements */
	JOIN_FEW,    /* few operands, none of them a kernel's main work */
	JOIN_ROW,    /* a kernel without a contraction, whose root is no LOWER_ROOT */
	JOIN_ONCE    /* a kernel without other work that reads each element once: its epilogue */
} LowerJoin;

/* What a result has of its operands; each of them includes those before it. */
typedef enum {
	KEEPS_NOTHING,
	KEEPS_ELEMENTS, /* every element, once */
	KEEPS_ORDER,    /* in row-major order */
	KEEPS_INDEX     /* each at its index */
} LowerKeeps;

/* Operands that may be computed straight into the result's buffer. */
typedef enum {
	HOLDS_NOTHING,
	HOLDS_OPERANDS, /* all of them, one after the other along `dim` */
	HOLDS_INTERIOR  /* operand 0; around it `low` and `high` times operand 1, `interior` times
	                   between its elements */
} LowerHolds;

/* What an index that is out of range means. */
typedef enum {
	INDEX_CHECK,   /* negative ones count from the end; else an error */
	INDEX_FILL,    /* there is no element */
	INDEX_CLAMP,   /* the nearest one; none where the extent is 0 */
	INDEX_PROMISE, /* does not happen */
	INDEX_WITHIN,  /* an error, of negative ones too */
	INDEX_FITS     /* the nearest one; the extent is not 0 */
} IndexMode;

/* Of a gather or scatter. */
IndexMode node_index_mode(const Graph *, Node);
/* An error where it is out of range. */
static inline bool index_is_checked(IndexMode mode)
{
	return mode == INDEX_CHECK || mode == INDEX_WITHIN;
}

/* One question to .index: which elements does element at[] of n read? Numbers are symbolic
 * expressions of those in at[], of axes and of values. What fills it in knows nothing of kernels,
 * so tests ask it with plain numbers. */
typedef struct IndexMap {
	const Graph *g;
	Node n;
	uint32_t operand; /* of HOLDS_OPERANDS: the one that is asked about */
	Sym start;        /* of HOLDS_OPERANDS: where it begins */
	const Sym *at;    /* of the result; of the update for roots that write parts of operand 0 */
	Sym in[2][MAX_RANK]; /* of the operand; of operands 0 and 1 for anchors; in[0][0]: a leaf's
	                        value */
	uint32_t nrange;
	struct IndexRange {
		Sym e, lo, hi;
	} range[2 * MAX_RANK]; /* there is such an element where lo <= e < hi, for all of these */
	/* Given by who asks. A new axis that what is read is summed over; 0 for an extent of 1. */
	Sym (*axis)(struct IndexMap *, const char *name, Sym extent);
	/* The value of an operand at[] (none: 0-d) as an index below extent, in range from then
	 * on. */
	Sym (*value)(struct IndexMap *, uint32_t operand, const Sym *at, Sym extent, IndexMode);
} IndexMap;

/* It is read where lo <= e < hi only. */
static inline void index_range(IndexMap *m, Sym e, Sym lo, Sym hi)
{
	m->range[m->nrange++] = (struct IndexRange){e, lo, hi};
}

enum { ALL_OPERANDS = -1 };

typedef struct {
	LowerRole role;
	LowerJoin joins;
	LowerKeeps keeps;
	LowerHolds holds;
	int32_t reads;    /* bits of operands that are read at indices of their own: stored first,
	                     if computed */
	int32_t bordered; /* bits of operands that are best stored with the border that padding
	                     gives them */
	uint32_t other;   /* INDEX: the 0-d operand for where there is no element; 0: zero stands
	                     there */
	uint32_t cost;    /* operations per element, if not 1 */
	uint32_t axes;    /* ROOT: that its kernel has besides those of the result */
	bool updates;     /* ROOT: operand 0 with parts replaced by what operand 1 says */
	bool own_results; /* ROOT: decides itself where its results lie: no reader gives them a
	                     place */
	bool complex;     /* may have complex operands or results: it computes nothing of them */
	void (*index)(IndexMap *);
} OpLower;

/* An index map that is never computed but where it is read. */
static inline bool lower_is_map(const OpLower *l)
{
	return l->role == LOWER_INDEX && l->joins == JOIN_ALWAYS;
}

/* Operand k is read at indices of its own. */
static inline bool lower_reads(const OpLower *l, uint32_t k)
{
	return l->reads == ALL_OPERANDS || (k < 31 && l->reads >> k & 1);
}

#endif
