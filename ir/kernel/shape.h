/* The form of a kernel, whatever the target; schedules map it to tiles. */
#ifndef WEFT_IR_SHAPE_H
#define WEFT_IR_SHAPE_H

#include "ir/kernel/kernel.h"

typedef enum {
	SHAPE_MAP,         /* one value for each point */
	SHAPE_ROWS,        /* rows are reduced, and perhaps mapped: sums, softmax, norms */
	SHAPE_WINDOW,      /* a reduction that reads its operand at sums of outer and inner axes:
	                      pooling */
	SHAPE_CONTRACTION, /* a sum of products of two loads, then stores at each point */
	SHAPE_SERIAL       /* steps in order: cumulative ops, sorts, scatters, Fourier transforms */
} ShapeKind;

/* Sets of axes are bits: bit k is Kernel.axis k. */
typedef struct {
	ShapeKind kind;
	/* of a contraction: */
	Kx a, b;                 /* the loads; loaded integers of 8 bits may be converted */
	DType dtype;             /* the dtype of products and sums: f32, f64 or i32 */
	uint64_t in_a, in_b;     /* the outer axes on which a, b depend */
	uint64_t summed;         /* the axes that the sum reduces */
	bool depthwise;          /* both operands have outer axes, and one has all of the other's
	                            and more */
	const char *no_product;  /* why the kernel is no contraction; NULL: it is one */
} KernelShape;

/* Returns the form of the kernel. Any kernel has one. The fields `a` to `depthwise` are 0 unless
 * the kind is SHAPE_CONTRACTION. */
KernelShape kernel_shape(const SymTab *, const Kernel *);

/* Returns, as bits, the outer axes of a contraction on which only operand a depends: rows of the
 * result. */
static inline uint64_t shape_rows(const KernelShape *s) { return s->in_a & ~s->in_b; }
/* Returns, as bits, the outer axes of a contraction on which only operand b depends: columns of the
 * result. */
static inline uint64_t shape_columns(const KernelShape *s) { return s->in_b & ~s->in_a; }

#endif
