/* Private to lowering: attention and its gradient, whose scores never lie in memory.
 *
 * Of a product of probabilities and values whose probabilities are the softmax of functions of
 * another product, one kernel is made:
 *
 *   %s = contract(%q, %k)    %x = f(%s)           scale, masks, biases: element-wise
 *   %m = reduce(%x, max)     %e = exp(%x - %m)    %l = reduce(%e, sum)
 *   %o = contract(%e / %l, %v)
 *
 * Its stages are %s, %m, %l and the sum of %e and %v, which %l divides behind the sum. Both
 * reductions and the sum run along the keys, at each of which %s is a sum of its own, so that a
 * schedule may run along them once (codegen/plan/attention/attention.h). Readers of %m and %l
 * outside get them from memory: the kernel stores a number a row.
 *
 * Gradients multiply functions of scores, too, which know the rows' sums already: of w, weights,
 *
 *   %s = contract(%q, %k)    %t = contract(%g, %v)    %p = exp(f(%s) - %lse)
 *   %dv = contract(%p^T, %g)                 w = %p
 *   %dk = contract(%w^T, %q)                 w = %p * (%t - %delta), where %delta = sum(%g * %o)
 *   %dq = contract(%w, %k)
 *
 *   %dbias = reduce(%w, sum)                 over the batch: of a bias that its members share
 *
 * Each is a kernel, with a stage for each product in w, and the sum. Kernels whose products are the
 * same become one with several results (lower/graph/join.c). What is written here is what is
 * looked for: no operator of attention is named, and neither order nor layout of operands is. */
#ifndef WEFT_LOWER_ATTENTION_H
#define WEFT_LOWER_ATTENTION_H

#include "ir/scalar/scalar.h"
#include "ir/target/target.h"
#include "lower/trace.h"

/* A product on the way from the weights of an attention to its result: one of its operands leads to
 * the weights, and the other one, as what dropout leaves, is no function of the scores. */
typedef struct {
	Node product;
	uint32_t other; /* the operand that is no function of the scores */
} WeightFactor;

enum { MOST_FACTORS = 3 };

/* The nodes of an attention. */
typedef struct AttentionNodes {
	Node result;      /* %o */
	uint32_t operand; /* the operand of %o that has the probabilities */
	WeightFactor factor[MOST_FACTORS]; /* from the result on */
	uint32_t nfactor;
	Node weights;     /* %e / %l; between it and %o are index maps, and perhaps a selection: */
	Node none_where;  /* of 0 where that holds, for whole rows; none: there is no selection, or
			     one of 0 where a weight is NaN */
	bool nan_is_none; /* of 0 where a weight is NaN, as all of its row are then */
	Node exp, logits; /* %e, %x */
	Node high, sum;   /* %m, %l */
	Node scores;      /* %s */
	uint32_t keys;    /* the dimension of %x that the softmax runs along */
	bool masked;      /* a row of -inf alone gives 0, and not NaN: */
	bool is_selected; /* %m and %l are selections that see to that */
	Node hidden_where; /* or a selection of 0 does, where that holds; none: there is none */
	bool stores_rows;  /* others read %m or %l: the kernel stores both */
	Node first_reader; /* the first of these others, in program order; none: there is none */
} AttentionNodes;

enum { MOST_SCORES = 4 };

/* The nodes of a sum with weights, a product, or of a sum of weights, a reduction. */
typedef struct WeightedNodes {
	Node result;
	uint32_t operand;        /* that has the weights */
	Node weights;            /* w, behind index maps */
	Node score[MOST_SCORES]; /* the products of which w is a function */
	uint32_t nscore;
} WeightedNodes;

/* What a node has to do with attentions. */
typedef struct FoundAttention {
	const AttentionNodes *attention; /* whose result it is; NULL: of none */
	const WeightedNodes *weighted;   /* the sum that it is; NULL: none */
	bool row;    /* the maximum or the sum of an attention that stores both */
	bool narrow; /* a key or value that is decoded of what is stored in fewer bytes, where few
			rows multiply it: it is inside, too */
	bool inside; /* computed inside of all kernels that read it: none is another one's */
} FoundAttention;

/* Whether the node is element-wise and of that one operation. */
bool attention_is(const Graph *, Node, ScOp);
/* Returns what each node has to do with attentions, by node. The array is in the arena. stored: by
 * node, not NULL: why a node is stored, or NULL; an attention has no such node inside. Only those
 * are found for which the target has a schedule, and that give it work. */
const FoundAttention *find_attentions(const Graph *, const Target *, const char *const *stored,
				      Arena *);

/* Adds the stages of an attention, or of a sum with weights, to a kernel and returns the value of
 * its result at idx; or calls trace_store_first if the kernel cannot contain them. */
Kx trace_attention(Trace *, const AttentionNodes *, const Sym *idx);
Kx trace_weighted(Trace *, const WeightedNodes *, const Sym *idx);
/* Whether the node is one of the products inside of what is being traced. */
bool trace_is_score(const Trace *, Node);
/* Returns the value of such a product at idx; or calls trace_store_first. */
Kx trace_scores(Trace *, Node score, const Sym *idx, Kx guard);

#endif
