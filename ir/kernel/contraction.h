/* Contractions in a kernel: sums of products, which schedules compute in tiles. */
#ifndef WEFT_IR_CONTRACTION_H
#define WEFT_IR_CONTRACTION_H

#include "ir/kernel/kernel.h"

/* Sets of axes are bits: bit k is Kernel.axis k. */
typedef struct {
	uint32_t sum;        /* the stage that adds the products */
	Kx a, b;             /* the loads; loaded integers of 8 bits may be converted */
	DType dtype;         /* the dtype of products and sums: f32, f64 or i32 */
	uint64_t in_a, in_b; /* the axes that the sum maps on which a, b depend */
	uint64_t summed;     /* the axes that the sum reduces */
	uint32_t half;       /* the summed axis + 1, of extent 2, that numbers the halves of one
				operand's bytes, which are multiplied; 0: whole elements are */
	bool half_of_b;
	Kx decoded; /* what is multiplied of b, if it is computed of the load element by element,
		       besides of loads of other values that differ along fewer axes (scales of
		       groups); none: b is multiplied. The other operand is a then, whichever is
		       first */
	uint64_t fields; /* the summed axes along which `decoded` differs, and no load: a word has
			    several elements */
	uint32_t blocks; /* the stage that adds functions of the sums of blocks
			    (kernel_adds_blocks); 0: none */
} Contraction;

enum { MAX_CONTRACTIONS = 4 };
/* The contractions of a kernel whose operands are plain loads, or one of them decoded of loads, in
 * the order of their stages: the first MAX_CONTRACTIONS. */
typedef struct {
	uint32_t n;
	Contraction contraction[MAX_CONTRACTIONS];
	const char *why; /* why there is none; NULL: n is not 0 */
} Contractions;

/* Returns the contractions of the kernel. */
Contractions kernel_contractions(SymTab *, const Kernel *);
/* Returns why the kernel is not one contraction that is followed by stores at its points alone, in
 * any order; NULL: it is one, perhaps with an operand that is decoded. all: kernel_contractions of
 * the kernel. */
const char *kernel_no_contraction(const Kernel *, const Contractions *all);
/* Returns the stage that adds, over all inner axes that the contraction's sum maps, functions of
 * these sums, if the kernel is one contraction whose sums of blocks only that stage reads, at their
 * own points, and what follows it are stores at its points alone; 0: it is another kernel. all:
 * kernel_contractions of the kernel. */
uint32_t kernel_adds_blocks(const Kernel *, const Contractions *all);
/* The stages of a kernel that multiplies functions of products: first so many products, which later
 * stages read at each point of inner axes (stage_is_term); then sums, contractions along one axis
 * of a product of such a function, the weight, and something else; or one sum of weights along
 * inner axes; then stores. */
typedef struct {
	uint32_t nscore, nsum; /* nsum 0: the sum is of weights */
} WeightedStages;
/* Whether the kernel is of that form; sets *is. Takes time in proportion to the kernel's length. */
bool kernel_sums_weighted(const Kernel *, Arena *scratch, WeightedStages *is);
/* Whether the stage, a contraction whose axes need not all be listed in `map`, has an operand that
 * schedules decode, with columns: its loads, and those of the other operand, are at indices that
 * are linear in each axis. */
bool kernel_decodes(SymTab *, const Kernel *, const Stage *);
/* Whether x is the product of two values. */
bool kx_is_product(const Kernel *, Kx x);
/* Returns the first stage that adds the products of a contraction, whatever its operands are; the
 * number of stages if there is none. */
uint32_t kernel_first_contraction(const Kernel *);
/* Whether a stage adds the products of a contraction. */
static inline bool kernel_contracts(const Kernel *k)
{
	return kernel_first_contraction(k) < k->stage.n;
}
/* Returns the last stage that stores; the number of stages if none does. */
uint32_t kernel_last_store(const Kernel *);

/* Returns, as bits, the axes on which only operand a depends: rows of the result. */
static inline uint64_t contraction_rows(const Contraction *c)
{
	return c->in_a & ~c->in_b;
}
/* Returns, as bits, the axes on which only operand b depends: columns of the result. */
static inline uint64_t contraction_columns(const Contraction *c)
{
	return c->in_b & ~c->in_a;
}

#endif
