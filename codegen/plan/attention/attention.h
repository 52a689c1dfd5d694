/* Plans of attention: the kernel of lower/attention.h in one reading of its keys.
 *
 * A task has a block of rows of queries. For each block of keys it makes the scores, by tiles as
 * those of a contraction, and functions of them, the logits; raises the maxima of its rows, and
 * multiplies what it has summed so far by exp(old maximum - new maximum); and adds the
 * exponentials, and their products with the values. Scores of one block of keys are all that is in
 * memory. Multiplying by exp(0), which is 1, changes no bit: blocks that a condition leaves out
 * wholly change nothing. */
#ifndef WEFT_CODEGEN_PLAN_ATTENTION_H
#define WEFT_CODEGEN_PLAN_ATTENTION_H

#include "codegen/plan/contract.h"

enum { MAX_KEY_BOUNDS = 8, MAX_MASKS = 4 };

/* A condition without which a logit is -inf: the key + `add` is less than the limit, or not less
 * than it. The limit depends on no key. */
typedef struct {
	Kx limit; /* an integer */
	Sym add;
	bool below;     /* the key + add is below the limit, and not from it on */
	bool inclusive; /* the limit + 1 counts */
} KeyBound;

/* A mask that is read from memory: a condition for the logit to be no -inf, or to be one (hides);
 * or a number that is added (is_added), -inf where the logit is. Blocks of keys in which it lets no
 * key of any row through are left out. */
typedef struct {
	Kx value;
	bool is_added, hides;
} KeyMask;

typedef struct AttentionPlan {
	const Nest *nest; /* what is copied is read from panels */
	LType vector;     /* of sums */
	const MicroKernel *row; /* how both products are computed */
	struct {
		uint32_t scores, high, sum, result;
	} stage;
	struct {
		Kx logits, weights; /* values of the stages `high` and `sum` */
		Kx factor;          /* weights as values are multiplied by them: perhaps rounded */
		Kx q, k, v;         /* loads */
	} value;
	struct {
		uint32_t row; /* queries in a task; NO_AXIS: there is one */
		uint32_t key, depth, column;
		uint32_t k_step, v_step; /* of steps in panels: `depth` and `key`, or axes that
					    count groups of these (MicroKernel.group) */
		int64_t depths, columns; /* extents */
		uint32_t batch[MAX_AXES], nbatch; /* of tasks, besides `row` */
	} axis;
	Panels k_panels, v_panels;
	const CopyPlan *copy[2]; /* of keys, of values: phases before; NULL: values are read in
				    place */
	TileSize tile;           /* of scores, and of results */
	BlockSize block;         /* of queries and keys: multiples of the tile's */
	struct {
		uint32_t n;
		KeyBound at[MAX_KEY_BOUNDS];
	} bounds;
	struct {
		uint32_t n;
		KeyMask at[MAX_MASKS];
	} masks;
	Sym blocks, ntasks; /* blocks of rows */
	KernelCost cost;
} AttentionPlan;

/* Whether a sum of the kernel has a level (StageReduce.level): the plan is for such kernels. */
bool attention_is_asked(const PlanInput *);
/* Returns the vectors of a row of values. */
static inline uint32_t attention_vectors(const AttentionPlan *p)
{
	return (uint32_t)((p->axis.columns + p->vector.lanes - 1) / p->vector.lanes);
}

#endif
