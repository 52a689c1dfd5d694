/* Kernels: lowering makes them of a graph, schedules make loop IR of them.
 *
 * A Kernel has axes, which are variables of the symbol table, and stages. A stage maps axes,
 * reduces others, has a scalar body over loads and results of earlier stages, and perhaps a store.
 * Axes that all stages map are outer axes: their points are independent, and at each the stages run
 * in order. Softmax, norms and attention are several stages. A stage that reduces products of two
 * loads is that of a contraction (a product of matrices, a convolution). Loads and stores use
 * logical indices, one Sym per dimension of the buffer; schedules compose them with the buffer's
 * layout. */
#ifndef WEFT_IR_KERNEL_H
#define WEFT_IR_KERNEL_H

#include "base/array.h"
#include "ir/graph/graph.h"
#include "ir/scalar/reduce.h"

/* ---- buffers and layouts ---- */

/* One physical dimension, from slowest to fastest. The position along it is (index[axis] / divisor)
 * mod extent. The row-major layout has every axis once with divisor 1. */
typedef struct {
	uint32_t axis;   /* logical */
	int64_t divisor; /* a constant: the size of a block */
	Sym extent;      /* the number of positions */
	Sym padded;      /* the allocated number, >= extent; padding of constants and of ZERO-padded
	                    buffers is zero */
} LayoutDim;

typedef struct {
	uint32_t n;
	LayoutDim dim[2 * MAX_RANK];
} Layout;

typedef enum {
	BUF_TEMP,   /* in the workspace; the plan chooses the offset */
	BUF_INPUT,  /* input k of the caller */
	BUF_OUTPUT, /* output k of the caller */
	BUF_CONST,  /* constant k, in its layout */
	BUF_STATE   /* state k (Lowered.state): row-major, the same in all entries; has a value
	               before the first step */
} BufKind;

typedef struct { uint32_t i; } BufId; /* 0 means none */

typedef struct {
	BufKind kind;
	uint32_t k; /* the number of the input, output, constant (ConstId) or state */
	DType dtype;
	uint32_t rank;
	const Sym *dim; /* logical shape */
	Layout layout;
	bool donated; /* of an input, and of the output that replaces it: the caller may pass the
	                 same memory for both */
	bool layout_fixed; /* the layout must not change: the buffer is visible to callers or
	                      carried by a loop, or all kernels read the constant in this layout */
	const Sym *inner_lo, *inner_hi; /* the buffer is 0 at indices outside of [lo, hi) of a
	                                   dimension; NULL: unknown */
	const char *name;  /* the name of the graph value, for emitted code */
} Buffer;

/* ---- bodies ---- */

typedef struct { uint32_t i; } Kx; /* an expression of a kernel; 0: none */

typedef enum {
	KX_CONST,   /* c.f for float dtypes, c.i for integers and bool */
	KX_INDEX,   /* idx[0] as an i64 */
	KX_INRANGE, /* a bool: idx[1] <= idx[0] < idx[2] */
	KX_LOAD,    /* buf[idx...]. If the guard is false, nothing is read and the value is
		       `other` */
	KX_STAGE,   /* the result of an earlier stage; idx: an index along each axis that it maps */
	KX_OP       /* the scalar operator `op`, OP_convert or OP_bitcast of in[], which have
		       compute dtypes that the operator takes; the result has `dtype` */
} KxKind;

typedef struct {
	KxKind kind;
	DType dtype; /* the compute dtype; loads convert storage dtypes */
	Op op;
	DType round; /* KX_OP convert: the f32 operand is rounded to this storage dtype, and stays
	                f32; else none */
	DType bits;  /* KX_OP bitcast: the storage dtype whose value the f32 operand or result is;
	                else none */
	uint32_t nin;
	Kx in[4];
	union {
		double f;
		int64_t i;
	} c;
	BufId buf;
	uint32_t stage; /* index in Kernel.stage */
	uint32_t nidx;
	const Sym *idx; /* expressions of the kernel's axes, value variables and size symbols */
	Kx guard, other;
} KxData;

/* An index that depends on data. `var` (SYMVAR_AXIS, in [0, extent)) stands for the integer
 * `value`. check: the message of the run-time check that 0 <= value < extent, after which the index
 * is clamped; 0: no check. For the message: `wraps` says that the extent was added to negative
 * indices, at[] is the position. The message gets the index and then at[]; if `listed`, it gets
 * at[] alone, in which `var` stands for the index. */
typedef struct {
	Sym var;
	Kx value;
	Sym extent;
	uint32_t check, nat;
	bool wraps, listed;
	const Sym *at;
} ValueVar;

/* ---- stages ---- */

enum { MAX_KERNEL_AXES = 24 }; /* the most axes of a kernel, from lowering to schedules */

typedef enum {
	STAGE_MAP,       /* one value for each point of its inner axes */
	STAGE_REDUCE,    /* combines `value` over its reduced axes */
	STAGE_ARGREDUCE, /* the smallest index of the maximum or minimum along one axis; NaN wins */
	STAGE_RUNNING,   /* cumulative along one inner axis, serial */
	STAGE_SORT,      /* stable sort along one inner axis. Four linked stages: the values (the
			    only stage with `value`), i64 indices, and two temporaries of the same
			    shape. To sort only the first elements, two stages: as many elements as
			    the second axis red[1] has, else one */
	STAGE_SCATTER,   /* stores `value` at an index that depends on data, if `where` holds, and
			    combines it with the old value; serial along its reduced axes, in
			    order */
	STAGE_CHECK,     /* checks at run time that `value` is true; no result */
	STAGE_FACTOR,    /* factorises a matrix of rows red[0] and columns red[1], or solves a
			    triangular system, in memory of the task; all extents are numbers.
			    Several linked stages, as FactorKind says */
	STAGE_FFT        /* a discrete Fourier transform along one inner axis. Four linked stages:
			    the real and the imaginary parts; then, without a store, those of the
			    roots of unity exp(-2 pi i k / n), along an axis of their own */
} StageKind;

/* What a STAGE_FACTOR computes, by the conventions of the operators of these names
 * (ops/prim/factor.c). The stages are, in this order: */
typedef enum {
	FACTOR_NONE,
	FACTOR_LU,       /* the matrix as operand and the factors; pivots, along red[0]; the order
			    of the rows, along red[0]; info */
	FACTOR_QR,       /* the matrix and geqrf's result; tau, along red[0] */
	FACTOR_CHOLESKY, /* the matrix and the factor; info */
	FACTOR_SOLVE     /* the right side and X, red[1] only if there is more than one column; the
			    matrix, as operand only, without a store */
} FactorKind;

/* Where a stage stores its result. The store rounds to the stage's dtype. */
typedef struct {
	BufId buf;      /* none: only other stages read the result */
	const Sym *idx; /* one for each dimension of the buffer */
} StageStore;

/* What one kind of stages has. `next` is the stage that is linked to the stage, 0 for the last. */
typedef struct { /* REDUCE, ARGREDUCE */
	ReduceKind combine;
	DType acc;     /* accumulation dtype */
	bool enlarged; /* what follows enlarges the sum's errors, so that chains are shorter */
	bool contraction; /* the sum of a contraction, whose products schedules may compute in tiles
			     that overlap (ir/kernel/contraction.h) */
	uint32_t level;   /* of a sum, perhaps a contraction: a stage + 1, a maximum along the same
			    axis; 0: none. Each term has the factor exp(x - m), where x is the value
			    of that stage, and m the stage's result, perhaps 0 where that is -inf;
			    the other factors depend neither on m nor on the sum. So a schedule may
			    take any number for m, and multiply the sum by exp(that number - m)
			    later */
	uint8_t most[2];  /* of a contraction: what the magnitudes of its first and second operand's
			     integers do not exceed; 0: not known */
	uint32_t half;    /* of a contraction: which operand, 1 or 2, is a field of 4 bits of bytes
			     (kx_field); 0: none */
} StageReduce;
typedef struct {
	ReduceKind combine;
	DType acc;
	bool reverse; /* from the last element to the first */
} StageRunning;
typedef struct {
	uint32_t next;
	bool descending, stable;
} StageSort;
typedef struct {
	ReduceKind combine;
} StageScatter;
typedef struct {
	uint32_t message; /* lowered_check */
} StageCheck;
typedef struct {
	uint32_t next;
	FactorKind kind;
	bool upper, unit; /* FACTOR_SOLVE: the triangle; its diagonal counts as ones */
} StageFactor;
typedef struct {
	uint32_t next;
	bool inverse; /* with the conjugate roots */
	bool real;    /* as fft_lines says of its argument; the line has the elements of the
			 transform, and element `extent` of the operand or the result too */
} StageFft;

/* A stage that stores is a root of the kernel. A value that several buffers get is stored by as
 * many maps of one expression, which is evaluated once. */
typedef struct {
	StageKind kind;
	uint8_t nmap, nred;
	uint8_t map[MAX_KERNEL_AXES]; /* all axes of whose points the result is a function, by
					 number in Kernel.axis; the outer ones first */
	uint8_t red[MAX_RANK];        /* the axes that the stage reduces, runs or sorts along */
	Kx value;
	Kx where;         /* SCATTER: the condition of the store, or none */
	DType dtype;      /* the storage dtype of the result */
	StageStore store;
	union {
		StageReduce reduce; /* of an ARGREDUCE, too */
		StageRunning running;
		StageSort sort;
		StageScatter scatter;
		StageCheck check;
		StageFactor factor;
		StageFft fft;
	};
} Stage;

/* Whether the stage stores its result in a buffer. */
static inline bool stage_stores(const Stage *st)
{
	return st->store.buf.i != 0;
}
/* Makes the stage map the first n axes of its kernel, and no others. */
void stage_map_first(Stage *, uint32_t n);

/* Returns the set of axes in a list, as bits. */
static inline uint64_t axes_set(const uint8_t *axis, uint32_t n)
{
	uint64_t set = 0;
	for (uint32_t i = 0; i < n; i++)
		set |= UINT64_C(1) << axis[i];
	return set;
}

typedef struct {
	const uint8_t *axis; /* by number in Kernel.axis */
	uint32_t n;
} AxisList;
/* Returns the inner axes that a stage maps. nouter: kernel_nouter of its kernel. */
static inline AxisList stage_inner(const Stage *st, uint32_t nouter)
{
	return (AxisList){st->map + nouter, st->nmap - nouter};
}
/* Whether later stages read the result at each point of inner axes, as a row: a map without a store
 * that has inner axes. A plan says where rows live. nouter: as above. */
static inline bool stage_keeps_row(const Stage *st, uint32_t nouter)
{
	return st->kind == STAGE_MAP && !stage_stores(st) && st->nmap > nouter;
}
/* Whether the result is no row (stage_keeps_row), and only other stages read it. */
static inline bool stage_keeps_value(const Stage *st, uint32_t nouter)
{
	return !stage_stores(st) && !stage_keeps_row(st, nouter);
}
/* Whether later stages read the result at each point of inner axes, which they reduce: a REDUCE
 * without a store that maps inner axes. It is computed anew where it is read. nouter: as above. */
static inline bool stage_is_term(const Stage *st, uint32_t nouter)
{
	return st->kind == STAGE_REDUCE && !stage_stores(st) && st->nmap > nouter;
}
/* Returns how a REDUCE, ARGREDUCE, RUNNING or SCATTER combines values. */
ReduceKind stage_combine(const Stage *);
/* Returns the dtype in which a stage computes: the accumulation dtype of a REDUCE, ARGREDUCE or
 * RUNNING, the compute dtype of the result of another. */
DType stage_acc(const Stage *);
/* Returns the stage that is linked to a SORT, FACTOR or FFT; 0 for the last one, and for other
 * kinds. */
uint32_t stage_next(const Stage *);

/* An axis with bounds runs over rows of different lengths that lie one behind the other (segments
 * of a ragged tensor). Its variable keeps the range of the dimension that it indexes, so that what
 * is proven of indices holds. Axes are not merged with it, nor is it split, cut, or run along by
 * lanes. An index through a table needs no field: it is a value variable. */
typedef struct {
	Sym var; /* SYMVAR_AXIS, in [0, extent) */
	Sym extent;
	uint32_t lo, hi; /* value variable + 1: only points with lo <= var < hi are there; 0: no
			    bound. Such a variable has the extent `extent` + 1, and depends on axes
			    before this one alone */
	double mean;     /* of an axis with bounds: how many points there are at hint sizes, for
			    costs; 0: not known */
} Axis;

/* Whether the axis has no bounds. */
static inline bool axis_is_plain(const Axis *a)
{
	return !a->lo && !a->hi;
}

/* The lines of the model's source in a kernel. Lowering finds them (lower/source.c); calls and
 * tables of artifacts have them. */
typedef struct {
	LocId at;       /* the line of the slowest operator; if nline is 0, no line, but perhaps the
			   number of a node (ir_loc_node) */
	uint32_t nline; /* the number of different lines, `at` included */
} SourceLines;

typedef struct Kernel {
	const char *name; /* from the root's name: "conv2d_3_relu" */
	const Graph *graph;    /* of `computes`, and must not change any more; NULL if there are no
	                          such nodes */
	ARRAY(Node) computes;  /* the nodes that the kernel computes, in the graph's order */
	ARRAY(Node)
	evaluates;          /* nodes that the kernel evaluates, those that other kernels
			       evaluate, too, included: with `computes` they are all. In no
			       order, some several times; for reports */
	const char *stored; /* why the result is stored and not computed in the kernel that reads
	                       it; NULL: it only copies */
	SourceLines lines;
	ARRAY(KxData) kx;      /* [0] unused */
	ARRAY(Axis) axis;      /* outer axes first (kernel_nouter) */
	ARRAY(ValueVar) vvar;
	ARRAY(Stage) stage;
} Kernel;

/* ---- the list that fusion produces ---- */

typedef enum {
	STEP_KERNEL,
	STEP_CALL, /* a call of a user operator */
	STEP_COPY, /* copy buffer `from` to `to`, row-major, unless both are the same memory */
	STEP_SAVE, /* keep old state that is put back if the call fails */
	STEP_LOOP, /* body, for var in [0, extent); kernels may use `var` in indices, and those of
	              `also`, which have the same extent */
	STEP_IF,   /* body if `pred` holds, else `other` */
	STEP_WHILE, /* test; while `pred` holds: body, test */
	STEP_SIZE  /* the size symbol gets the value in `pred`; if its value is known, both must be
	              equal */
} StepKind;

/* A call of a user operator. Operands and results are whole buffers, row-major, of the extents that
 * the operator's types say. */
typedef struct StepCall {
	const struct UserOp *op; /* ops/user/userop.h */
	const char *name, *text; /* the name, and the line of the graph for the comment in emitted
	                            code */
	const BufId *buf;        /* operands, then results */
	const Sym *ints;         /* UserScalars */
	const double *floats;
	uint32_t nint, nfloat;
	Sym work;                /* bytes of workspace; none: no workspace */
	SourceLines lines;
} StepCall;

/* Old state that the next step may overwrite. With `at`: values[i] was the item at position at[i]
 * (an earlier step has read it). Without: this step copies all of the state to `values`. `values`,
 * `at` and `record` keep their contents until the call ends. */
typedef struct StepSave {
	BufId state, values, at, record;
	Sym n; /* items */
} StepSave;

enum { SAVE_RECORD = 64 }; /* bytes of a record, see weft_save in runtime.h */

/* A step. Steps are executed in order; a check that fails ends the call before the next step.
 *
 * STEP_IF: both lists write the buffers of the results; other buffers that one list writes are not
 * read afterwards. Loops: a carried value is a pair of buffers. `init` is copied to `from` before
 * the first round; a round reads `from` and writes `to`; the two swap after each round (the plan
 * gives both memory). Steps after the loop read `to`. The test of a STEP_WHILE reads `from`. */
typedef struct Step {
	StepKind kind;
	Kernel *kernel;
	const struct StepCall *call;
	const StepSave *save;
	BufId from, to;
	Sym var, extent;
	bool reverse;    /* var runs downwards */
	uint32_t nalso;  /* of loops that were joined (lower/loops.c) */
	struct StepVar {
		Sym var;
		bool reverse;
	} *also;
	BufId pred;      /* a bool without dimensions; of a STEP_SIZE an i64 */
	Sym size;        /* known in later steps, and in lists inside those */
	const char *message; /* of a STEP_SIZE: the message for a value out of range, a format with
	                        that value */
	const char *differs; /* of a STEP_SIZE with a known size: the message for another value, a
	                        format with both */
	struct StepList *test, *body, *other;
	uint32_t ncarry;
	struct StepCarry {
		BufId from, to;
	} *carry;
} Step;

typedef struct StepList {
	const Graph *graph; /* its guards are checked before the first step; NULL: they were checked
	                       when the call began */
	ARRAY(Step) step;
} StepList;

/* Whether the step becomes launches: one for each phase of its schedule. The steps inside of a
 * nested step do not count. */
static inline bool step_is_launch(const Step *s)
{
	return s->kind == STEP_KERNEL || s->kind == STEP_CALL;
}

/* Whether the step has lists of steps inside (step_lists). Copies, saves and sizes have none, and
 * are no launches either. */
static inline bool step_is_nested(const Step *s)
{
	return s->kind == STEP_LOOP || s->kind == STEP_IF || s->kind == STEP_WHILE;
}

enum { MAX_STEP_LISTS = 2 };
/* Sets list[] to the lists inside a step (test, body, other), in order of execution. Returns their
 * number, 0 for a step that is not nested. */
uint32_t step_lists(const Step *, StepList *list[MAX_STEP_LISTS]);

/* State: keeps its value from call to call. The shape is constant; complex numbers are pairs. */
typedef struct {
	const char *name;
	DType dtype;
	uint32_t rank;
	const int64_t *dim;
	ConstId init;  /* the initial contents */
	InputKind kind;
	bool written;  /* a step writes the state */
} LoweredState;

/* A lowered graph: buffers, steps, messages. */
typedef struct Lowered {
	Ir *ir;
	const Graph *graph; /* for names, guards, descriptions of inputs and outputs */
	ARRAY(Buffer) buf;  /* [0] unused */
	ARRAY(LoweredState) state; /* each has at most one buffer, so one buffer id is the only form
	                              of aliasing */
	ARRAY(int32_t) donates;    /* by output: the input whose memory the caller may pass for it,
	                              or -1 */
	bool cancellable;          /* LowerOptions */
	bool half_updates;         /* a check may fail after a step has written such memory */
	StepList steps;
	ARRAY(const char *) check; /* messages of run-time checks, formats as for LS_FAIL; [0]
	                              unused */
	Intern others;             /* messages of graphs lowered before, and, by id - 1, their
	                              numbers: */
	ARRAY(uint32_t) other;
} Lowered;

/* Returns a Lowered of the graph without buffers, steps and messages, in the arena of the Ir's
 * context. Lowered.steps has no graph yet. */
Lowered *lowered_new(Ir *, const Graph *);
/* Makes all messages of `before` messages of this Lowered, with the numbers that they have in
 * `before`, so that kernels of both can be equal. Keeps the pointers. Call it at most once, before
 * lowered_check. */
void lowered_check_after(Lowered *, const Lowered *before);
/* Returns the number (>= 1) of a message of run-time checks: that of lowered_check_after if
 * `before` has the message, else a new one, also if an earlier call has added an equal message.
 * Keeps the pointer. */
uint32_t lowered_check(Lowered *, const char *message);
/* Adds a buffer in row-major layout and returns its id. Copies dim[], keeps the name's pointer. k:
 * as in Buffer. The buffer is neither donated nor of a fixed layout, and inner_lo and inner_hi are
 * NULL. */
BufId lowered_buf(Lowered *, BufKind, uint32_t k, DType, uint32_t rank, const Sym *dim,
		  const char *name);
/* Returns the buffer with an id other than 0; the pointer is valid until the next lowered_buf. */
static inline Buffer *buf_of(const Lowered *l, BufId b) { return &l->buf.data[b.i]; }
/* Whether buffer `to` is buffer `from`, or an output for which the caller may pass the memory of
 * the input `from`. */
static inline bool buf_may_be(const Lowered *l, BufId to, BufId from)
{
	const Buffer *out = buf_of(l, to), *in = buf_of(l, from);
	return to.i == from.i ||
	       (out->kind == BUF_OUTPUT && out->donated && in->kind == BUF_INPUT && in->donated &&
		l->donates.data[out->k] == (int32_t)in->k);
}
/* Returns the row-major layout, without padding, of the shape dim[rank]. */
Layout layout_row_major(Ir *, uint32_t rank, const Sym *dim);
/* Returns the layout, without padding, of the shape dim[rank] with its dimensions in the order
 * perm[0] (slowest) ... perm[rank-1] (fastest). */
Layout layout_permuted(Ir *, uint32_t rank, const Sym *dim, const uint32_t *perm);
/* Whether the layout is the one that layout_row_major gives a shape of that rank. */
bool layout_is_row_major(const Layout *, uint32_t rank);
/* Whether all fields of two layouts are equal. */
bool layout_equal(const Layout *, const Layout *);
/* Returns the offset, in elements, of the element with the logical index idx[], which has one value
 * for each dimension of the buffer. */
Sym layout_offset(Ir *, const Layout *, const Sym *idx);
/* Returns the number of allocated elements, padding included. */
Sym layout_numel(Ir *, const Layout *);
/* Returns a bound of that number which contains no AXIS: the product of the bounds of the extents
 * (sym_most), which may be known where sym_most knows none of the product; none if one has none. */
Sym layout_most(Ir *, const Layout *);

/* Returns a copy in the arena whose expressions, axes, value variables and stages may be changed.
 * `computes` and the arrays of indices (KxData.idx, Stage.idx, ValueVar.at) are those of the
 * original, so they may be replaced, but not written. */
Kernel *kernel_copy(Arena *, const Kernel *);

/* Functions that add an expression to the kernel, in the arena, and return it; an equal expression
 * is not added twice. They copy idx[]. Fields: see KxData. */

/* Returns an expression with these fields, whose operands are the kernel's. Copies idx[]. */
Kx kx_copy(Kernel *, Arena *, const KxData *);
/* Returns a constant of a float dtype. */
Kx kx_const(Kernel *, Arena *, DType, double);
/* Returns a constant of an integer dtype or bool. */
Kx kx_const_int(Kernel *, Arena *, DType, int64_t);
/* Returns a KX_OP on nin <= 4 operands; its result has the compute dtype `result`. */
Kx kx_op(Kernel *, Arena *, Op, DType result, const Kx *in, uint32_t nin);
/* Returns x, an f32, rounded to a value of the storage dtype (f16, bf16, f8), as an f32. */
Kx kx_round(Kernel *, Arena *, DType storage, Kx x);
/* Returns the bits of x, a value of dtype `from` in its compute dtype, as a value of `to` in its
 * compute dtype; x itself if both dtypes are one. Both dtypes have one size. */
Kx kx_bitcast(Kernel *, Arena *, DType from, DType to, Kx x);
/* Returns the scalar function of an OP_bitcast expression whose operand has the compute dtype `in`;
 * NULL if the sizes differ. Adds nothing. */
const ScFn *kx_bitcast_fn(const KxData *, DType in);
/* Returns the element buf[idx], converted to the compute dtype of the buffer's dtype; nidx is the
 * buffer's rank. If guard (none: true) is false, nothing is read and the value is `other`, which is
 * none without a guard. */
Kx kx_load(Kernel *, Arena *, BufId, DType compute, uint32_t nidx, const Sym *idx, Kx guard,
	   Kx other);
/* Returns the value of a symbolic integer as an i64. */
Kx kx_index(Kernel *, Arena *, Sym);
/* Returns the bool lo <= e < hi. */
Kx kx_inrange(Kernel *, Arena *, Sym e, Sym lo, Sym hi);
/* Returns the result of an earlier stage, in its compute dtype. idx[i] is the index along axis
 * Stage.map[i] of that stage; nidx is its nmap, and of a STAGE_RUNNING, SORT or FFT may be nmap +
 * nred, with the indices along Stage.red[] last. */
Kx kx_stage(Kernel *, Arena *, uint32_t stage, DType compute, uint32_t nidx, const Sym *idx);

/* ---- questions about kernels and steps ---- */

/* Returns the axes of the stage at which every expression reads its result at the axis' own
 * variable, as bits: readers need the result only at their own point of these axes. */
uint64_t kernel_aligned_axes(const Kernel *, uint32_t stage);
/* Whether all axes are plain. */
bool kernel_is_plain(const Kernel *);
/* Returns the number of outer axes: those that all stages map, and at which all are read at their
 * own point (kernel_aligned_axes), before the first one with bounds. They are the first axes of the
 * kernel, and the first of each stage's map, in order. */
uint32_t kernel_nouter(const Kernel *);

/* Sets mark[x.i] for every expression x that is the value or the guard of one of the stages first
 * .. end - 1, or the value of any value variable, or an operand, guard or `other` of such an
 * expression, at any depth. Other elements stay. mark has kx.n elements. Operands of an expression
 * that was marked before the call are taken to be marked, too. */
void kernel_reached(const Kernel *, uint32_t first, uint32_t end, bool *mark);
/* Whether buffer `to`, which the kernel stores, may have the memory of buffer `from`, which it
 * loads. True if provably each element of `from` is loaded at the index at which `to` is stored,
 * before the store, and no schedule stores it twice. Also true if the kernel does not load `from`
 * or does not store `to`. */
MUST_LOOK bool kernel_replaces(const Kernel *, BufId to, BufId from, Arena *scratch);
/* Whether two kernels provably store different elements of the buffer: for any two of their stages
 * that store the buffer, in some dimension all indices of one are less than those of the other.
 * Also true if one of the kernels does not store the buffer. */
MUST_LOOK bool kernel_stores_apart(const Lowered *, const Kernel *, const Kernel *, BufId);
/* Whether provably no stage stores an element of a buffer or checks a value, because an axis has
 * extent 0. False if that is not known. */
bool kernel_stores_nothing(const Lowered *, const Kernel *);
/* Returns a bool expression of the kernel, which does not read the stage, such that the result of
 * the stage is needed only at points where the expression is true; none if no such expression was
 * found. */
Kx kernel_needed_where(const Kernel *, uint32_t stage, Arena *scratch);
/* Calls visit(data, buffer, write) for every buffer that the step, or a step inside it, reads
 * (write false) or writes (true); some more than once. The buffers of the step itself come first,
 * then those of the steps inside, in order. A STAGE_SCATTER counts as a write only. */
void step_buffers(const Step *, Arena *scratch, void (*visit)(void *, BufId, bool write),
		  void *data);

/* ---- text, checks ---- */

/* Appends the text form of a kernel of the Lowered: axes, stages and expressions. */
void kernel_print(const Lowered *, const Kernel *, Text *);
/* Appends the text form of all buffers, messages of checks, and steps. */
void lowered_print(const Lowered *, Text *);
/* Makes k evaluate what two kernels evaluate together (Kernel.evaluates). */
void kernel_join_evaluated(Kernel *k, const Kernel *, const Kernel *, Arena *);
/* Returns all nodes that the kernel computes, those included that other kernels compute, too, each
 * once, and sets *n to their number. place: by Node of Kernel.graph, its place in the order in
 * which they are returned. The list is in the arena. */
const Node *kernel_evaluated(const Kernel *, const uint32_t *place, Arena *, uint32_t *n);
/* Returns the lines of the graph that the kernel computes, without the last line break, for the
 * comment in emitted code; "" if Kernel.computes is empty. The text is in the arena. */
const char *kernel_text(const Kernel *, Arena *);
/* Checks that no index is provably out of range, axes are in scope, dtypes agree, buffers are
 * written before they are read, and no two stages of a kernel store at the same indices, unless
 * they scatter. Returns true if all is well; false after errors, which the context has recorded. */
MUST_LOOK bool lowered_verify(Lowered *);

#endif
