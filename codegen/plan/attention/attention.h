/* Plans of attention by online softmax, as in FlashAttention: the kernel of lower/attention.h in
 * one reading of its keys.
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

PlanFn plan_attention, plan_weighted;
PrintFn print_attention, print_weighted;

enum { MAX_KEY_BOUNDS = 8, MAX_MASKS = 4 };

/* A condition without which a logit is -inf: the key + `add` is less than the limit, or not less
 * than it. The limit depends on no key. */
typedef struct {
	Kx limit; /* an integer */
	Sym add;
	bool below;     /* the key + add is below the limit, and not from it on */
	bool inclusive; /* the limit + 1 counts */
	Kx condition;   /* the comparison, which is `holds` of keys that the bound lets through */
	bool holds;
} KeyBound;

/* A mask that is read from memory: a condition for the logit to be no -inf, or to be one (hides);
 * or a number that is added (is_added), -inf where the logit is. Blocks of keys in which it lets no
 * key of any row through are left out. */
typedef struct {
	Kx value;
	bool is_added, hides;
} KeyMask;

/* What limits the keys of a row. */
typedef struct {
	uint32_t row, key; /* axes; row NO_AXIS: there is one */
	struct {
		uint32_t n, axis[MAX_AXES];
	} inner; /* more axes of rows, which go faster than `row`, the last one fastest */
	struct {
		bool asked; /* masks are asked by a phase before which keys a block of rows sees */
		uint32_t n, axis[MAX_AXES]; /* of the batch, on which masks depend */
		Sym ntasks;
		KernelCost cost;
	} seen;
	uint32_t nbound, nmask;
	KeyBound bound[MAX_KEY_BOUNDS];
	KeyMask mask[MAX_MASKS];
} KeyLimits;

/* How the products of few rows are made (plan_few): keys and values are read in place, once. */
typedef struct {
	int64_t rows;     /* 0: the plan is of tiles */
	uint32_t abreast; /* keys whose dot products are made together: a power of two, at most the
			     lanes */
	int64_t keys;     /* of a task; 0: it has all */
	Sym parts;        /* tasks of a member of the batch */
	KernelCost cost;  /* of adding up the parts */
} FewRows;

/* The micro-kernels of products of tiles. */
typedef struct {
	const MicroKernel *row;
	const MicroKernel *frag; /* whole steps, on fragments; NULL: as all others */
} ProductRows;

typedef struct AttentionPlan {
	const Nest *nest;       /* what is copied is read from panels */
	FewRows few;
	LType vector;           /* of sums */
	ProductRows by;         /* how both products are computed */
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
	const CopyPlan *copy[2]; /* of keys, of values: phases before; NULL: they are read in
				    place */
	TileSize tile;           /* of scores, and of results */
	BlockSize block;         /* of queries and keys: multiples of the tile's */
	KeyLimits limits;
	Sym blocks, ntasks; /* blocks of rows */
	KernelCost cost;
} AttentionPlan;

/* ---- sums with weights ---- */

/* A product of rows of two operands, at each row and key: the weights are functions of these. */
typedef struct {
	Kx row, key;          /* loads */
	uint32_t depth, step; /* step: the axis of steps in panels, `depth` or one of groups */
	int64_t depths;
	Panels panels; /* of keys */
	const CopyPlan *copy;
} WeightedScore;

/* A sum of products of weights and rows of an operand. */
typedef struct {
	uint32_t stage;
	uint32_t weight; /* WeightedPlan.weights */
	bool of_row;     /* for each row, along the keys; else for each key, along the rows */
	Kx operand;      /* a load */
	uint32_t column, along, step; /* step: of panels, as in WeightedScore */
	int64_t columns;
	Panels panels;
	const CopyPlan *copy; /* NULL: it is read in place */
} WeightedSum;

enum { MAX_WEIGHTED = MAX_CONTRACTIONS };

/* The plan of a kernel that sums with weights (kernel_sums_weighted): in the field's words the
 * backward pass of FlashAttention. A task has a member of the batch. For each block of keys, and of
 * rows, it makes the products, by register tiles, and the weights of them; then adds the products
 * of weights and operands, to sums of the keys, which are complete when all rows have passed by,
 * and to sums of the rows, which lie in a temporary until all keys have. Blocks in which conditions
 * leave out all keys of all rows are left out: weights are 0 there. If all sums are of rows, or all
 * of keys, a task has a block of these. If the weights themselves are added up (is.nsum is 0), a
 * task has a block of rows and keys, and goes through the members of the batch that are added, in
 * order. */
typedef struct WeightedPlan {
	const Nest *nest; /* what is copied is read from panels */
	LType vector;     /* of sums */
	ProductRows by;
	KeyLimits limits; /* and the axes of rows and keys */
	WeightedStages is;
	WeightedScore score[MAX_WEIGHTED];
	WeightedSum sum[MAX_WEIGHTED];
	struct {
		uint32_t n;
		Kx at[MAX_WEIGHTED];
	} weights;
	struct {
		uint32_t n, axis[MAX_AXES];
	} batch, added; /* added: those that a sum of weights runs along, of the batch otherwise */
	TileSize tile;
	BlockSize block; /* of rows and keys */
	enum { TASK_MEMBER, TASK_ROWS, TASK_KEYS, TASK_PAIRS } task; /* PAIRS: a block of both */
	Sym members, parts; /* of the batch; tasks of each */
	KernelCost cost;
} WeightedPlan;

/* Whether the kernel sums with weights: the plan is for such kernels. */
bool weighted_is_asked(const PlanInput *);
/* Returns elements in a row of so many, in whole vectors. */
int64_t weighted_row(const WeightedPlan *, int64_t n);
/* Returns elements from one row of weights to the next: columns of whole tiles, and rows do not
 * share places of the caches. */
int64_t weighted_pitch(const WeightedPlan *);

/* ---- both ---- */

/* Returns the dtype of what a load reads. */
DType attention_stored(const PlanInput *, Kx load);
/* Whether x is a load of floats, as f32, at an index that is linear in all axes, without a guard.
 */
bool attention_is_load(const PlanInput *, Kx x);
/* The axes of an operand in panels of one vector along `across`, in steps of `along`. */
typedef struct {
	uint32_t across, along;
	uint32_t grouped;      /* the axis of whose groups `along` counts, where the row of the
				  input has groups */
	const uint32_t *batch; /* and others that the operand may have */
	uint32_t nbatch;
} PanelAxes;

/* Plans the phase that copies an operand into panels, and sets *panels. */
const CopyPlan *attention_plan_panels(const PlanInput *, Kx load, const PanelAxes *,
				      Panels *panels);
/* Whether an operand of so many columns that `times` tiles read, each in so many steps, is read in
 * place: in whole vectors, and unless its rows share so few places of the caches that copying them,
 * by that phase, takes less time. */
bool attention_reads_in_place(const PlanInput *, Kx load, const PanelAxes *, int64_t columns,
			      double steps, double times, const CopyPlan *copy);
/* Returns the best row for operands of one dtype, if all are of it, whose groups are whole along so
 * many steps, and that neither takes them apart nor has fragments. */
const MicroKernel *attention_choose_row(const PlanInput *, DType, bool same, const int64_t *steps,
					uint32_t n);
/* Returns the row on fragments that reads panels as `row` does, and of which n numbers of steps are
 * whole; NULL: there is none. */
const MicroKernel *attention_choose_frag(const PlanInput *, const MicroKernel *row,
					 const int64_t *steps, uint32_t n);
/* Adds an axis that counts groups of steps of another one, in which a load is read. */
uint32_t attention_count_groups(const PlanInput *, Nest *, Kx load, uint32_t axis);
/* Returns the register tile for sums of so many columns: three quarters of the registers. */
TileSize attention_choose_tile(const PlanInput *, uint32_t lanes, int64_t columns);
/* Appends the sizes of tiles and blocks, and how many bounds and masks limit the keys. */
void attention_print_blocks(TileSize, uint32_t lanes, BlockSize, const KeyLimits *, Text *out);
/* Makes *l, whose axes are set, the limits without which logits are -inf: conditions of selections,
 * and of masks that are added. nscore: logits are a function of the first so many stages. */
void attention_find_limits(const Nest *, KeyLimits *l, uint32_t nscore, Kx logits);
/* Makes a plan of which the axes are known one of few rows, or refuses. tiles: the plan of
 * tiles can take the kernel, too. */
Refusal attention_plan_few(const PlanInput *, AttentionPlan *, bool tiles);
/* Returns the cycles of such a plan at in->at. */
double attention_few_cycles(const PlanInput *, const AttentionPlan *);
/* Returns the product of the extents of the batch axes. */
Sym attention_members(const Nest *, const AttentionPlan *);
/* Returns the cycles of the functions of so many scores. */
double attention_logit_cycles(const PlanInput *, const AttentionPlan *, double rows, double keys);
/* Whether a sum of the kernel has a level (StageReduce.level): the plan is for such kernels. */
bool attention_is_asked(const PlanInput *);
/* Returns elements from one row of scores to the next: tiles of fragments have many rows, which do
 * not share places of the caches. */
int64_t attention_pitch(const AttentionPlan *);
/* Returns the vectors of a row of values. */
static inline uint32_t attention_vectors(const AttentionPlan *p)
{
	return (uint32_t)((p->axis.columns + p->vector.lanes - 1) / p->vector.lanes);
}

#endif
