/* What a kernel computes, whatever the target: schedules map these roles to tiles. */
#ifndef WEFT_IR_SHAPE_H
#define WEFT_IR_SHAPE_H

#include "ir/kernel/kernel.h"

typedef enum {
	SHAPE_MAP,         /* a value for each point */
	SHAPE_ROWS,        /* rows are reduced, and perhaps mapped: sums, softmax, norms */
	SHAPE_WINDOW,      /* a reduction whose operand is read at sums of outer and inner axes:
	                      pooling */
	SHAPE_CONTRACTION, /* a sum of products of two loads, then stores at each point */
	SHAPE_SERIAL       /* steps in order: cumulative ops, sorts, scatters */
} ShapeKind;

/* Axes are sets, by bit. */
typedef struct {
	ShapeKind kind;
	/* a contraction: */
	Kx a, b;                 /* the loads */
	DType dtype;             /* of the products and their sum: f32 or f64 */
	uint64_t in_a, in_b;     /* outer axes that they depend on */
	uint64_t summed;
	bool depthwise;          /* one operand has outer axes, and the other all of these and
	                            more */
	const char *no_product;  /* of others: why the kernel is none; NULL: it is one */
} KernelShape;

KernelShape kernel_shape(const SymTab *, const Kernel *);

/* Outer axes of a contraction: in the first operand only, in the second only, in both or none. */
static inline uint64_t shape_rows(const KernelShape *s) { return s->in_a & ~s->in_b; }
static inline uint64_t shape_columns(const KernelShape *s) { return s->in_b & ~s->in_a; }

#endif
