/* Private to lowering: attention, whose scores never lie in memory.
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
 * schedule may run along them once (codegen/plan/attention.h). */
#ifndef WEFT_LOWER_ATTENTION_H
#define WEFT_LOWER_ATTENTION_H

#include "ir/target/target.h"
#include "lower/trace.h"

/* The nodes of an attention. No node outside reads those between scores and result. */
typedef struct AttentionNodes {
	Node result;      /* %o */
	uint32_t operand; /* the operand of %o that has the probabilities */
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
} AttentionNodes;

/* Returns, by node, the attention whose result the node is, or inside of which the node is computed
 * whoever reads it; NULL for other nodes. The array is in the arena. stored: by node, not NULL: why
 * a node is stored, or NULL; an attention has no such node inside. Only those are found for which
 * the target has a schedule, and that give it work. */
const AttentionNodes **find_attentions(const Graph *, const Target *, const char *const *stored,
				       Arena *);

/* Adds the stages of an attention to a kernel and returns the value of its result at idx; or calls
 * trace_store_first if the kernel cannot contain them. */
Kx trace_attention(Trace *, const AttentionNodes *, const Sym *idx);
/* Returns the value of the scores of the attention that is traced at idx; or calls
 * trace_store_first. */
Kx trace_scores(Trace *, Node scores, const Sym *idx, Kx guard);

#endif
