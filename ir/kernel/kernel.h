/* Kernels: what fusion makes of a graph and schedules turn into loop IR.
 *
 * A Kernel has axes (variables of the symbol table). The outer ones are parallel: every point of
 * them is independent. Ordered stages compute at each outer point; a stage has inner axes of its
 * own (mapped or reduced), a scalar body over loads through index maps, and a place for its result.
 * Softmax, norms and attention are several stages; a stage whose reduction is a sum of products of
 * two loads is an anchor (contraction, convolution). Loads and stores use logical indices, one Sym
 * per logical dimension of the buffer; lowering composes them with the buffer's layout. */
#ifndef WEFT_IR_KERNEL_H
#define WEFT_IR_KERNEL_H

#include "base/array.h"
#include "ir/graph/graph.h"
#include "ir/scalar/reduce.h"

/* ---- buffers and layouts ---- */

/* One physical dimension: (index[axis] / divisor) mod extent, from slowest to fastest. `padded` >=
 * extent is the allocated size. The plain row-major layout has every axis once with divisor 1. */
typedef struct {
	uint32_t axis;   /* logical */
	int64_t divisor; /* a constant: blocks of that many */
	Sym extent;      /* number of index values along this physical dimension */
	Sym padded;      /* allocated; the padding of a CONST or ZERO-padded buffer holds zeros */
} LayoutDim;

typedef struct {
	uint32_t n;
	LayoutDim dim[2 * MAX_RANK];
} Layout;

typedef enum {
	BUF_TEMP,   /* in the workspace, offset chosen by the plan */
	BUF_INPUT,  /* user input k */
	BUF_OUTPUT, /* user output k */
	BUF_CONST,  /* constant k, packed into its layout when compiled */
	BUF_STATE   /* state k (Lowered.state): row-major, the same in all entries; it holds a value
	               before the first step */
} BufKind;

typedef struct { uint32_t i; } BufId; /* 0 means none */

typedef struct {
	BufKind kind;
	uint32_t k; /* which input, output, constant (ConstId), state */
	DType dtype;
	uint32_t rank;
	const Sym *dim; /* logical shape */
	Layout layout;
	bool donated; /* of an input and the output that replaces it: both may be the same memory,
	                 where the caller wants it */
	bool layout_fixed; /* user-visible, or carried; a constant: all kernels read it in this
	                      layout */
	const Sym *inner_lo, *inner_hi; /* 0 where an index is outside [lo, hi) of its dimension;
	                                   NULL: not known */
	const char *name;  /* of the graph value, for emitted code */
} Buffer;

/* ---- bodies ---- */

typedef struct { uint32_t i; } Kx; /* expression of a kernel; 0 means none */

typedef enum {
	KX_CONST,   /* bits: double for float dtypes, int64 for ints and bool */
	KX_INDEX,   /* the i64 value of idx[0] */
	KX_INRANGE, /* bool: lo <= idx[0] < hi with lo = idx[1], hi = idx[2] */
	KX_LOAD,    /* buf[idx...]; where guard is false nothing is read and the value is `other` */
	KX_STAGE,   /* result of an earlier stage; idx: its inner map axes at this point */
	KX_OP       /* scalar op of the table on in[], converted operands, result dtype `dtype` */
} KxKind;

typedef struct {
	KxKind kind;
	DType dtype; /* compute dtype of the value (storage types are converted by the load) */
	Op op;
	DType round; /* KX_OP convert: the f32 operand is rounded to this storage dtype and stays
	                f32; else none */
	DType bits;  /* KX_OP bitcast: the storage dtype of which the f32 operand or result is a
	                value; else none */
	uint32_t nin;
	Kx in[4];
	union {
		double f;
		int64_t i;
	} c;
	BufId buf;
	uint32_t stage; /* index into Kernel.stage */
	uint32_t nidx;
	const Sym *idx; /* over the kernel's axes, value variables and size symbols */
	Kx guard, other;
} KxData;

/* An index that depends on data: `var` (a SYMVAR_AXIS variable with range [0, extent)) stands for
 * the integer `value`. `check` != 0: the message id of a run-time check that 0 <= value < extent,
 * after which lowering clamps. `wraps`: what was negative has had the extent added; at[]: where it
 * stands in the index. Both are for the message. */
typedef struct {
	Sym var;
	Kx value;
	Sym extent;
	uint32_t check, nat;
	bool wraps;
	const Sym *at;
} ValueVar;

/* ---- stages ---- */

typedef enum {
	STAGE_MAP,       /* one value per point of its inner axes */
	STAGE_REDUCE,    /* combine `value` over its reduce axes */
	STAGE_ARGREDUCE, /* smallest index of the maximum / minimum over one reduce axis; NaN
	                    wins */
	STAGE_RUNNING,   /* cumulative along one inner axis, serial */
	STAGE_SORT,      /* stable, along one inner axis: four stages that out2 links, for values
	                    (the only one with a `value`), i64 indices, and room for both of the
	                    same shape; or the first two, for the first elements: as many as a
	                    second axis, red[1], has places, else one */
	STAGE_SCATTER,   /* store of `value` at a data-dependent index where `guard` holds,
	                    combining with what is there; serial along its reduce axes, in order */
	STAGE_CHECK      /* run-time check that `value` is true, no result */
} StageKind;

typedef enum { RESULT_REGISTER, RESULT_LOCAL, RESULT_GLOBAL } StageResult; /* where it lies */

typedef struct {
	StageKind kind;
	ReduceKind combine;
	uint32_t nmap;    /* inner axes this stage maps over (indices into Kernel.axis) */
	uint32_t map[MAX_RANK];
	uint32_t nred;    /* inner axes it reduces, runs or sorts along */
	uint32_t red[MAX_RANK];
	Kx value;
	Kx guard;         /* SCATTER: none, or where it stores */
	uint32_t check;   /* CHECK: the message id */
	DType dtype;      /* of the result in its place */
	DType acc;        /* accumulation dtype */
	bool reverse, descending, stable;
	StageResult result;
	BufId buf;        /* RESULT_GLOBAL: stored at idx (one per logical dimension of the
	                     buffer) */
	const Sym *idx;
	uint32_t out2;    /* SORT: the next stage of the same sort, or 0 */
} Stage;

typedef struct {
	Sym var;    /* SYMVAR_AXIS */
	Sym extent;
} Axis;

enum { MAX_KERNEL_AXES = 24 }; /* of what lowering makes and schedules read */

/* Which lines of the model's source became a kernel. Lowering finds them (lower/source.c); calls
 * and the tables of artifacts carry them. */
typedef struct {
	LocId at;       /* of the operator that takes most of its time; none: no operator of it has
	                   a location */
	uint32_t nline; /* different lines, that one among them */
} SourceLines;

typedef struct Kernel {
	const char *name; /* from the root's name: "conv2d_3_relu" */
	const Graph *graph;    /* of which it computes these nodes, in their order; may be NULL,
	                          and */
	ARRAY(Node) computes;  /* is not to be changed any more */
	const char *stored; /* why its result is stored and not computed where it is read; NULL: it
	                       only copies */
	SourceLines lines;
	ARRAY(KxData) kx;      /* [0] unused */
	ARRAY(Axis) axis;      /* outer ones first */
	uint32_t nouter;
	ARRAY(ValueVar) vvar;
	ARRAY(Stage) stage;
	uint32_t anchor;       /* stage index + 1 of the contraction, 0 none */
} Kernel;

/* ---- the list that fusion produces ---- */

typedef enum {
	STEP_KERNEL,
	STEP_CALL, /* of a user's operator */
	STEP_COPY, /* all of buffer `from` to `to`, row-major, unless they are the same memory */
	STEP_SAVE, /* what a call that fails later puts back into state */
	STEP_LOOP, /* body for t in [0, extent): its kernels may index buffers with `var` */
	STEP_IF,   /* body where pred holds, else `other`: one of them is executed */
	STEP_WHILE, /* test, and as long as it has made pred true body and test again */
	STEP_SIZE  /* size, a symbol that depends on data, is what pred holds; known already: it is
	              the same */
} StepKind;

/* Operands and results are whole buffers, row-major, of the extents that the operator's types
 * say. */
typedef struct StepCall {
	const struct UserOp *op; /* ir/ops/user/userop.h */
	const char *name, *text; /* as a kernel's, and its line of the graph, for the comment in
	                            emitted code */
	const BufId *buf;        /* tensors: operands, then results */
	const Sym *ints;         /* UserScalars */
	const double *floats;
	uint32_t nint, nfloat;
	Sym work;                /* bytes of the workspace; none: it has none */
	SourceLines lines;
} StepCall;

/* Items of state that the next step may overwrite: values[i] lay at[i] items behind its beginning
 * (a step before has read them), or, where `at` is none, all of it is copied to `values` now.
 * `values`, `at` and `record` hold what they do until the call ends. */
typedef struct StepSave {
	BufId state, values, at, record;
	Sym n; /* items */
} StepSave;

enum { SAVE_RECORD = 64 }; /* bytes of a record, see weft_save in runtime.h */

/* What is computed in one branch of a STEP_IF only is not read after it: both write the buffers of
 * its results. Values carried by loops are pairs of buffers: `from` is read, `to` is written; they
 * swap after each iteration (the plan gives both the storage); init is copied to `from` before the
 * first one, and readers after the loop use `to`. The test of a STEP_WHILE reads `from`. Steps are
 * executed in order; a check that fails in one ends the call before the next. */
typedef struct Step {
	StepKind kind;
	Kernel *kernel;
	const struct StepCall *call;
	const StepSave *save;
	BufId from, to;
	Sym var, extent;
	bool reverse;    /* t runs downwards */
	BufId pred;      /* a bool without dimensions; of a STEP_SIZE an i64 */
	Sym size;        /* known in the steps after it, and in lists inside those */
	const char *message; /* of a STEP_SIZE whose value is out of range: a format for that
	                        value */
	const char *differs; /* whose size has another value already: for the two */
	struct StepList *test, *body, *other;
	uint32_t ncarry;
	struct StepCarry {
		BufId from, to;
	} *carry;
} Step;

typedef struct StepList {
	const Graph *graph; /* whose guards hold before its first step, else the call fails; NULL:
	                       checked at entry */
	ARRAY(Step) step;
} StepList;

/* It becomes launches; the others are made of steps. */
static inline bool step_is_launch(const Step *s)
{
	return s->kind == STEP_KERNEL || s->kind == STEP_CALL;
}

static inline bool step_is_nested(const Step *s)
{
	return s->kind == STEP_LOOP || s->kind == STEP_IF || s->kind == STEP_WHILE;
}

enum { MAX_STEP_LISTS = 2 };
/* The lists inside a step, in the order in which they are executed. Returns how many. */
uint32_t step_lists(const Step *, StepList *list[MAX_STEP_LISTS]);

/* What lives from call to call. Its shape is constant; complex numbers lie as pairs. */
typedef struct {
	const char *name;
	DType dtype;
	uint32_t rank;
	const int64_t *dim;
	ConstId init;  /* its first contents */
	bool written;  /* some step stores into it */
} LoweredState;

/* Everything below the graph: buffers, steps, guards. */
typedef struct Lowered {
	Ir *ir;
	const Graph *graph; /* for names, guards, input and output descriptions */
	ARRAY(Buffer) buf;  /* [0] unused */
	ARRAY(LoweredState) state; /* each has one buffer at most: that is the only form of
	                              aliasing */
	ARRAY(int32_t) donates;    /* by output: the input whose memory it may have, or -1 */
	StepList steps;
	ARRAY(const char *) check; /* messages of run-time checks, [0] unused: formats, see
	                              LS_FAIL */
	Intern others;             /* those of them that are of graphs before, and by id - 1 their
	                              numbers: */
	ARRAY(uint32_t) other;
} Lowered;

Lowered *lowered_new(Ir *, const Graph *);
/* The numbers of another graph's messages mean the same here; before there are any. */
void lowered_check_after(Lowered *, const Lowered *before);
/* The number of a message: that of another graph's, if that has it, so that kernels can be
 * equal. */
uint32_t lowered_check(Lowered *, const char *message);
BufId lowered_buf(Lowered *, BufKind, uint32_t k, DType, uint32_t rank, const Sym *dim, const char *name);
static inline Buffer *buf_of(const Lowered *l, BufId b) { return &l->buf.data[b.i]; }
Layout layout_row_major(Ir *, uint32_t rank, const Sym *dim);
/* Row-major in the order perm[0] (slowest) ... perm[rank-1] (fastest). */
Layout layout_permuted(Ir *, uint32_t rank, const Sym *dim, const uint32_t *perm);
bool layout_is_row_major(const Layout *, uint32_t rank);
bool layout_equal(const Layout *, const Layout *);
/* Element offset of a logical index in a layout. */
Sym layout_offset(Ir *, const Layout *, const Sym *idx);
Sym layout_numel(Ir *, const Layout *); /* allocated elements */

/* A copy whose axes, stages and indices may be rewritten. */
Kernel *kernel_copy(Arena *, const Kernel *);

Kx kx_const(Kernel *, Arena *, DType, double);
Kx kx_const_int(Kernel *, Arena *, DType, int64_t);
Kx kx_op(Kernel *, Arena *, Op, DType result, const Kx *in, uint32_t nin);
/* x: f32 rounded to a storage dtype. */
Kx kx_round(Kernel *, Arena *, DType storage, Kx x);
/* What an OP_bitcast expression computes from an operand of dtype `in`; NULL where the sizes
 * differ. */
const ScFn *kx_bitcast_fn(const KxData *, DType in);
/* x, a value of dtype `from`, by its bits as one of `to`. */
Kx kx_bitcast(Kernel *, Arena *, DType from, DType to, Kx x);
Kx kx_load(Kernel *, Arena *, BufId, DType, uint32_t nidx, const Sym *idx, Kx guard, Kx other);
Kx kx_index(Kernel *, Arena *, Sym);
Kx kx_inrange(Kernel *, Arena *, Sym e, Sym lo, Sym hi);
Kx kx_stage(Kernel *, Arena *, uint32_t stage, DType, uint32_t nidx, const Sym *idx);

/* How kernels touch buffers: */
/* Marks what stages and value variables are made of, from stage `first` to before stage `end`:
 * mark[kx]. */
void kernel_reached(const Kernel *, uint32_t first, uint32_t end, bool *mark);
/* What is stored into `to` may lie where `from` does, although the kernel reads that: each element
 * is read where it is stored, before it is, and no schedule stores it twice. */
MUST_LOOK bool kernel_replaces(const Kernel *, BufId to, BufId from, Arena *scratch);
/* No element of the buffer is stored by both: one ends in some dimension before the other begins.
 * False: it may be. */
MUST_LOOK bool kernel_stores_apart(const Lowered *, const Kernel *, const Kernel *, BufId);
/* No stage stores an element, or is a check: an axis of each has the extent 0. */
bool kernel_stores_nothing(const Lowered *, const Kernel *);
/* The condition without which no other stage needs this one's result; none: it is needed always. */
Kx kernel_needed_where(const Kernel *, uint32_t stage, Arena *scratch);
/* Every buffer that a step, or one inside it, reads or writes; in order, some more than once. A
 * STAGE_SCATTER writes. */
void step_buffers(const Step *, Arena *scratch, void (*visit)(void *, BufId, bool write), void *data);

void kernel_print(const Lowered *, const Kernel *, Text *);
/* The lines of the graph that it computes, for the comment in emitted code; NULL: there are
 * none. */
const char *kernel_text(const Kernel *, Arena *);
void lowered_print(const Lowered *, Text *);
/* Indices in range, axes in scope, dtypes agree, places written once. False with diagnostics. */
MUST_LOOK bool lowered_verify(Lowered *);

#endif
