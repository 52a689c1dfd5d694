/* Loop IR: schedules make it, emitters print it. All decisions are taken: tiles, vector width,
 * unrolling, packing, tasks. Expressions are interned; statements are lists. A load is a statement;
 * an accumulator is a named mutable variable. `sizes` and `run`, the program around the kernels,
 * are loop IR too, so that emitters decide nothing about guards, sizes and control flow. */
#ifndef WEFT_IR_LOOP_H
#define WEFT_IR_LOOP_H

#include "base/array.h"
#include "ir/graph/graph.h"
#include "ir/loop/frag.h"
#include "ir/scalar/scalar.h"

typedef struct { uint32_t i; } Lx; /* an interned expression; 0: none */
typedef struct { uint32_t i; } Lv; /* a variable, immutable (`let`) or mutable (`var`); 0: none */
struct Isa;
typedef struct { uint32_t i; } Lb; /* a block, which is a list of statements; 0: none */

/* The type of a value. lanes 1: a scalar. DT_bool with more lanes: a mask. Dtypes are compute
 * dtypes (f32, f64, integers, bool); loads and stores convert storage dtypes. */
typedef struct {
	DType dtype;
	uint32_t lanes;
} LType;

/* Pure expressions. Index arithmetic is i64 scalars. */
typedef enum {
	LX_INT,     /* i (any int dtype or bool), splat over lanes */
	LX_FLOAT,   /* f (f32, f64), splat over lanes */
	LX_PARAM,   /* kernel parameter k: an i64 scalar of the frame */
	LX_VAR,     /* value of variable v */
	LX_SC,      /* basic operation `sc` on in[], lane by lane (ir/scalar/scalar.h) */
	LX_FN,      /* a call of scalar function fn, lane by lane */
	LX_SPLAT,   /* the scalar in[0] in all lanes */
	LX_RAMP,    /* i64 or i32 lanes: in[0] + in[1] * {0, 1, ...} */
	LX_MASK,    /* a mask: lane k is k < in[0] (i64 scalar); legal functions: in[0] is 0 to the
	               number of lanes */
	LX_HREDUCE, /* the lanes of in[0] combined by `sc` (add, mul, min, max, and, or, xor), as a
	               tree: lane k with lane k + lanes/2, until one is left. Legal functions have
	               shuffles instead */
	LX_ANY,     /* a bool scalar: whether any lane of the mask in[0] is true */
	LX_SHUFFLE, /* lanes of in[0] and in[1], in the order of the Shuffle u.k */
	LX_TABLE,   /* table[in[0]], lane by lane; i32 indices, in range; legal functions only */
	LX_ADDR,    /* programs only: the address of byte in[0] of buffer argument u.k */
	/* in blocks of threads only */
	LX_LANE,    /* lane u.k of in[0], a scalar */
	LX_PACK,    /* the lanes in[0], in[1], ..., scalars: of a store of several elements */
	LX_THREAD,  /* the number of the thread in its block, an i64 scalar */
	LX_WARP     /* the WarpOp u.k over the threads of the own warp: all of x of an LS_LET,
	               LS_VAR or LS_SET that all WARP threads reach together */
} LxKind;

/* Threads 32 * k .. 32 * k + 31 of a block are a warp; the position in it is the lane. */
enum { WARP = 32, MAX_THREADS = 1024 };

typedef enum {
	WARP_XOR,  /* in[0] of lane (lane ^ in[1]) */
	WARP_UP,   /* in[0] of lane - in[1]; the own one where that is below 0 */
	WARP_DOWN, /* in[0] of lane + in[1]; the own one where that is beyond the last lane */
	WARP_LANE, /* in[0] of lane in[1]. Of all four in[1] is an i64 scalar from 0 to WARP - 1 */
	WARP_ANY, WARP_ALL, /* a bool scalar: in[0] in any lane, in all lanes */
	WARP_BALLOT,        /* an u32 scalar: bit k is the bool scalar in[0] of lane k */
	WARP_COUNT
} WarpOp;

typedef enum {
	SHUFFLE_LOW, SHUFFLE_HIGH, /* one half of in[0]; in[1] is in[0] */
	SHUFFLE_REVERSE,           /* of in[0] */
	SHUFFLE_EVEN,              /* every second lane of in[0] from lane 0, then of in[1] from
	                              lane 1 */
	SHUFFLE_EVENS, SHUFFLE_ODDS, /* every second lane of in[0], then of in[1], from lane 0, or
	                                from lane 1: parts of pairs that lie one behind the other */
	SHUFFLE_TURN_EVENS, SHUFFLE_TURN_ODDS, /* lane 0 or lane 1 of each two of in[0], then of
	                                          the same two of in[1], and so on */
	SHUFFLE_LOWS, SHUFFLE_HIGHS, /* one half of in[0], then of in[1] */
	SHUFFLE_ZIP_LOW, SHUFFLE_ZIP_HIGH, /* lanes of in[0] and in[1] in turn, from the low or the
	                                      high halves */
	SHUFFLE_COUNT
} Shuffle;

typedef struct {
	LxKind kind;
	LType type;
	ScOp sc;
	unsigned known; /* LX_SC of legal functions: KNOWN_INDEX, KNOWN_NONNEG (loop_known) */
	union {
		const ScFn *fn;
		const ScTable *table;
	};
	uint32_t nin;
	Lx in[4];
	union {
		int64_t i;
		double f;
		uint32_t k;
		Lv v;
	} u;
} LxData;

typedef enum {
	LS_LET,   /* v = x, once                                                             */
	LS_VAR,   /* declare mutable v with initial value x                                  */
	LS_SET,   /* v = x                                                                   */
	LS_LOAD,  /* v = mem[offset], consecutive elements. Masked-off lanes are not read and give
	             0. Legal functions: one lane has no mask, an LS_IF is around the load (stores
	             alike). `in_order`: back ends keep the load's position among loads, so that
	             registers suffice */
	LS_GATHER,/* v = mem[offset + lanes of x]; with mask as LS_LOAD. k 1: as a load for each
	             lane */
	LS_STORE, /* mem[offset] = x, consecutive; with mask */
	LS_STREAM, /* mem[offset] = x by a streaming store, which does not go through the caches, if
	              the address is aligned to the vector; else a store. A fence follows before the
	              task ends */
	LS_SCATTER, /* mem[offset + lanes of y] = x, lane 0 first; with mask */
	LS_FOR,   /* for v in [x, y) step `step`: body                                       */
	LS_WHILE, /* while x: body                                                           */
	LS_IF,    /* if x: body else other                                                   */
	LS_LOCAL, /* an array of `count` elements of `dtype` that belongs to the task; of blocks, to
	             the thread */
	LS_FAIL,  /* record failure k with arg[] for the message's %lld, unless this call of the
	             kernel has recorded one; go on */
	LS_CALL,  /* call a user operator, `call`. arg[]: by tensor, operands first, the extents,
	             then the value of a tensor without a buffer; at last the bytes of the
	             workspace. A failure is recorded as by LS_FAIL */
	LS_PREFETCH, /* prefetch mem[offset] into the cache of level k */
	LS_FENCE,  /* whoever sees later stores of this thread also sees its streaming stores */
	LS_COMMENT, /* text                                                                  */
	/* fragments (ir/loop/frag.h), in kernels of CPUs only */
	LS_FRAG, /* `count` fragments, numbers k .. k + count - 1 of the function, of `rows` rows of
	            `cols` elements of `dtype`; in `enter`. A task begins with no values in them */
	LS_FRAG_ZERO,  /* frag[0] = 0 */
	LS_FRAG_LOAD,  /* frag[0] = rows that begin at mem[offset], mem[offset + y], ...; elements
	                  as they lie in memory. `passing`: the rows need not enter the first
	                  cache */
	LS_FRAG_STORE, /* rows that begin at mem[offset], mem[offset + y], ... = frag[0] */
	LS_FRAG_DOT,   /* frag[0] += frag[1] . frag[2] by the FragOp k */
	LS_FRAG_CONFIG,  /* the registers of fragments become those that are declared, as
	                    loop_frag_config says; the end of `enter` of legal functions */
	LS_FRAG_RELEASE, /* they are nobody's; the end of `leave` of legal functions */
	/* in blocks of threads only */
	LS_SHARED, /* an array of `count` elements of `dtype` that the threads of the block have in
	              common, aligned to SHARED_ALIGN; in no loop and no branch */
	LS_SYNC,   /* all threads of the block wait for each other here: what each did to memory
	              before is seen by all after */
	LS_COPY_ASYNC, /* begin to copy `count` bytes (4, 8 or 16) from from[x], of a buffer, to
	                  mem[offset], which is shared; both addresses are multiples of count. With
	                  a mask that does not hold: to make these bytes 0. Until the thread has
	                  waited, nobody reads or writes them; others until a barrier after that */
	LS_COPY_COMMIT, /* the copies that the thread began since its last commit are a group */
	LS_COPY_WAIT,   /* wait until at most the newest k groups of the thread are under way */
	/* program only */
	LS_LAUNCH, /* launch call k (Program.call) over x tasks. Buffers: arg[0..nbuf) (LX_ADDR);
	              parameters: arg[nbuf..narg). The call of the model ends here if a check of the
	              phase failed. `same_phase`: the next statement is a launch of the same
	              phase */
	LS_READ,  /* v = the bool or integer of `dtype` at address x: the only way from memory to
	             control flow. For the interpreter: k is the buffer, count the size symbol that
	             is read, or 0 */
	LS_ROOM,   /* allocate buffer argument k. arg[]: the extents of an output, else the bytes;
	              no arg: free the buffer. The call of the model ends here if there is no
	              memory */
	LS_COPY,   /* copy y bytes from address x to address `offset` */
	LS_SAVE,   /* register old state that is put back if the call fails: arg[nbuf] items of
	              arg[nbuf + 1] bytes of the state at arg[1] were copied to arg[2]. Their
	              positions are the integers at arg[3]; nbuf 3: consecutive. arg[0]: SAVE_RECORD
	              bytes. For the interpreter: k and count are the buffers of arg[2] and
	              arg[3] */
	LS_ASSERT, /* if not x: end the call with message k; arg[] for its %lld */
	LS_RESULT, /* result slot k of `sizes` = x */
	LS_OUTLINED, /* call function k of those outlined from `run` or `sizes` (ProgramEntry). Of
	                `run`: arg[] are its parameters; no arg: those of this function. Of `sizes`:
	                its extents start at number `count` */
	LS_LAUNCHES, /* legal functions: the launches of `body`, which the runtime reads from a
	              launch table (codegen/legal/launches.h). arg[]: values computed
	              before */
	LS_COUNT
} LsKind;

enum { MAX_FAIL_ARGS = 1 + MAX_RANK }; /* of an LS_FAIL */

/* The lanes of a load that a shuffle drops. The lanes are read, so the memory must exist; its
 * contents do not matter. */
typedef enum { DROPS_NONE, DROPS_ODD, DROPS_EVEN } LsDrops;

typedef enum { MEM_BUFFER, MEM_LOCAL, MEM_SHARED } LMemKind;

/* Fragment k of an LS_FRAG. */
typedef struct {
	Lv of;
	uint32_t k;
} LFrag;

/* The memory of a statement: buffer argument k of the kernel, a local or a shared array. */
typedef struct {
	LMemKind kind;
	uint32_t k;   /* the index of the buffer, or the Lv of the LS_LOCAL or LS_SHARED */
	DType dtype;  /* the storage dtype of the elements */
} LMem;

/* Returns how many elements of the memory an LS_LOAD reads for each lane of a value of that
 * type: a u32 of a narrower dtype is a whole group, its first element in the lowest bits; else
 * 1. */
static inline uint32_t ls_group(LMem m, LType t)
{
	return t.dtype == DT_u32 && m.dtype != DT_bool && dtype_size(m.dtype) < 4
		       ? 4 / dtype_size(m.dtype)
		       : 1;
}

/* Whether the memory is an array of the function, which a variable stands for. */
static inline bool lmem_is_array(LMem m) { return m.kind != MEM_BUFFER; }

enum { SHARED_ALIGN = 16 }; /* the most bytes, too, that one access of a thread moves */

/* The tensors of a call of a user operator: operands, then results. */
typedef struct LoopCall {
	const struct UserOp *op; /* ops/user/userop.h */
	uint32_t nin, nout;
	const struct LoopCallTensor {
		DType dtype;
		uint32_t rank, nvalue;
		int32_t buf; /* a buffer of the kernel; -1: the values are nvalue integers in arg[],
		                of f64 the bits */
	} *tensor;
	int32_t work; /* buffer; -1: none */
} LoopCall;

typedef struct {
	LsKind kind;
	Lv v;
	Lx x, y, mask, offset; /* offset: in elements */
	LMem mem;
	LMem from; /* LS_COPY_ASYNC */
	LFrag frag[3];       /* as many as LsRow.frags */
	uint32_t rows, cols; /* LS_FRAG */
	int64_t step;
	uint32_t k, nbuf, narg;
	const Lx *arg;
	uint64_t count;
	bool same_phase; /* LS_LAUNCH */
	bool in_order; /* LS_LOAD */
	bool passing;  /* LS_FRAG_LOAD */
	LsDrops drops; /* LS_LOAD of legal functions */
	bool rare;   /* LS_IF of legal functions: the branch is rarely taken */
	DType dtype;
	Lb body, other;
	const char *text;
	const struct LaunchTable *launches; /* LS_LAUNCHES: codegen/legal/launches.h */
	const LoopCall *call;
} LsData;

typedef struct {
	LType type;
	const char *name; /* a readable stem, "acc_3_1", "i", "x"; emitters make it unique */
	bool is_mutable;
	bool nonneg; /* an i64 scalar that is known to be >= 0; set by ls_let and ls_for */
} LvData;

typedef struct {
	const char *name; /* from the graph value: "x", "weight", "out" */
	DType dtype;
	bool written, read;
	bool restrict_ok; /* no other argument overlaps the buffer while the kernel runs */
	uint32_t align;   /* the known alignment in bytes, at least the element's size */
} LArg;

/* The meaning of a field of a statement. */
typedef enum {
	FIELD_NONE,    /* not used */
	FIELD_VALUE,   /* the value that v or memory receives */
	FIELD_INDEX,   /* an i64 scalar */
	FIELD_BOOL,    /* a bool scalar */
	FIELD_LANES,   /* i32 or i64, with the lanes of the moved value */
	FIELD_ADDRESS, /* LX_ADDR */
	FIELD_BUFFERS  /* arg: nbuf addresses, then i64 scalars */
} LsField;

/* What the statement does to v. */
typedef enum {
	V_NONE,
	V_LET,    /* new: x */
	V_LOADED, /* new: the value in mem */
	V_DATA,   /* new: data, never index arithmetic */
	V_VAR,    /* new and mutable, initially x */
	V_ARRAY,  /* a new array */
	V_LOOP,   /* new, in `body` only: x in the first round, then larger values */
	V_SET     /* v is set to x */
} LsVariable;

typedef enum {
	MEM_NONE,
	MEM_READ,
	MEM_WRITE,
	MEM_HINT,
	MEM_COPY, /* written from other memory: there is no value */
	MEM_READ_ROWS, MEM_WRITE_ROWS /* by a fragment, which y separates: there is no value */
} LsMemory;

/* The properties of a kind of statement. Walks over statements (visit, map, verify, print, parse,
 * liveness, copies, costs) read the row and list no kinds. */
typedef struct {
	const char *name; /* in messages */
	const char *form; /* the text form, see print.c */
	LsField x, y, offset, arg;
	LsVariable v;
	LsMemory mem;     /* with offset */
	bool masked;      /* may have a mask */
	bool body, other; /* may have these blocks */
	bool anew;        /* x is evaluated before each round, not once */
	bool effect;      /* the statement is kept although nothing reads v */
	bool legal;       /* in legal functions only */
	bool block;       /* in blocks of threads only */
	uint32_t most;    /* the most arguments; 0: any number */
	uint32_t frags;   /* how many fragments it reads or writes */
} LsRow;

/* Returns the properties of a kind of statement, for a kind below LS_COUNT. */
const LsRow *ls_row(LsKind);

/* The function computes a product, and so can a library: rows of a times columns of b, both summed
 * along k, for each member of a batch. Of each operand and of the result, whose columns lie side by
 * side, the other dimension has a stride. The numbers are parameters of the function, in the order
 * of LoopProductSize, from number `param` on, which no statement reads. */
typedef enum {
	PRODUCT_M, PRODUCT_N, PRODUCT_K, PRODUCT_BATCH,
	PRODUCT_A_STRIDE, PRODUCT_B_STRIDE, PRODUCT_C_STRIDE, /* in elements */
	PRODUCT_A_MEMBER, PRODUCT_B_MEMBER, PRODUCT_C_MEMBER, /* between members of the batch */
	PRODUCT_A_FIRST, PRODUCT_B_FIRST, PRODUCT_C_FIRST, PRODUCT_BIAS_FIRST, /* the first one */
	PRODUCT_SIZES
} LoopProductSize;
typedef struct LoopProduct {
	DType a_type, b_type, c_type;
	uint32_t a, b, c, bias; /* buffers; bias, of the type of c, one for each column: UINT32_MAX:
	                           there is none */
	bool a_rows, b_rows;    /* a's rows, or b's summed steps, lie side by side; else a's
	                           summed steps, b's columns */
	bool relu, gelu;        /* of the result; gelu: with tanh */
	uint32_t least[3];      /* M, N, K from which the library is faster */
	uint32_t param;
} LoopProduct;

/* The least and the greatest value. */
typedef struct {
	int64_t lo, hi;
} LoopRange;

/* One kernel: int name(const Frame *, int64_t begin, int64_t end) over tasks. Of one with a block
 * of threads each thread executes the statements; the block is a call for one task. */
typedef struct LoopFn {
	Ir *ir;
	const char *name;
	const char *comment; /* lines of the graph; may hold line breaks */
	ARRAY(LArg) buf;
	ARRAY(const char *) param; /* names of the i64 parameters */
	ARRAY(LoopRange) given; /* by parameter: of what all launches of the program pass; empty:
	                           unknown */
	int64_t tasks_most;     /* the most tasks of a launch; 0: unknown */
	ARRAY(Lv) arg;        /* of a library function: the arguments, of any type */
	Lx result;            /* of a library function: the result, evaluated at the end of the
	                         body */
	bool is_inline;       /* repeat the body at every call */
	ARRAY(LxData) lx;     /* [0] unused */
	ARRAY(bool) nonneg;   /* by Lx: known to be >= 0; set when the expression is made */
	Intern lx_table;
	ARRAY(LvData) lv;     /* [0] unused */
	ARRAY(LsData) ls;
	/* [0] unused; statement indices into ls */
	ARRAY(struct LBlock { ARRAY(uint32_t) stmt; }) block;
	uint32_t threads;     /* of a block; 1: of CPUs */
	const LoopProduct *product; /* NULL: none that a library computes */
	uint64_t shared_most; /* of a block: the most bytes of shared memory that the target has */
	Lb enter;             /* executed once per call, before its tasks; 0: nothing */
	Lb body;              /* of a kernel: the statements of one task */
	Lb leave;             /* executed once per call, after its tasks; 0: nothing */
	Lv task;              /* the number of the task, i64; in `body` */
	ARRAY(Lb) open;       /* the open blocks while building; the innermost is last */
} LoopFn;

/* Returns a top-level block of a function, in the order in which the blocks are executed: 0 enter,
 * 1 body, 2 leave; none if the function has no such block. Variables that `enter` defines are
 * visible in all three, those of another block only there. */
enum { LOOP_TOPS = 3 };
static inline Lb loop_top(const LoopFn *f, uint32_t k)
{
	return k == 0 ? f->enter : k == 1 ? f->body : f->leave;
}

/* Returns an empty function of a CPU in the arena of the Ir's context. Its `body` is open and stays
 * open: ls_end never closes it. Keeps the name, without copying it. */
LoopFn *loop_new(Ir *, const char *name);
/* Makes the function one that blocks of threads execute. threads: the number of threads of a block,
 * a multiple of WARP up to MAX_THREADS. shared: the most bytes of shared memory that a block has on
 * the target. loop_verify checks them, this function does not. */
void loop_block(LoopFn *, uint32_t threads, uint64_t shared);
/* Turns a finished function of a CPU into one of blocks: each task becomes a thread, and `threads`
 * of them the block of the new task. So the caller launches ntasks / threads tasks, rounded up.
 * ntasks: the number of tasks before, an expression of literals and parameters; threads of the last
 * block past that number execute nothing of the body. threads, shared: as for loop_block. */
void loop_tasks_to_threads(LoopFn *, uint32_t threads, uint64_t shared, Lx ntasks);
/* Opens the top-level block `enter`, for further statements if it has some; ls_end closes it. */
void loop_enter(LoopFn *);
/* Opens the top-level block `leave`, for further statements if it has some; ls_end closes it. */
void loop_leave(LoopFn *);
/* Whether the function is one of blocks of threads, or an expression or a statement that only such
 * functions have was ever made in it, even if nothing uses it now. */
bool loop_is_of_block(const LoopFn *);
/* Adds a buffer argument. Returns its number, from 0. Keeps LArg.name, without copying it. */
uint32_t loop_buf(LoopFn *, LArg);
/* Adds a parameter, an i64 that is never negative. Returns its number, from 0. Keeps the name,
 * without copying it. */
uint32_t loop_param(LoopFn *, const char *name);
/* Adds an argument of a library function, behind those added before. Returns its variable. Keeps
 * the name, without copying it. */
Lv loop_arg(LoopFn *, const char *name, LType);

/* Makes an expression, as each of the next functions does; equal expressions are one Lx.
 * Operations become a simpler expression of the same value where a rule says so (literals, x +
 * 0, x * 1, x - x); the rules take i64 scalars not to overflow. Of a vector and a scalar operand
 * the scalar is splat. Types are checked by loop_verify, not here. */
Lx lx_int(LoopFn *, int64_t value); /* an i64 scalar literal */
Lx lx_int_of(LoopFn *, LType, int64_t value); /* an integer or bool literal in all lanes */
Lx lx_float(LoopFn *, LType, double value);   /* an f32 or f64 literal in all lanes; f32: rounded */
Lx lx_param(LoopFn *, uint32_t k);           /* the value of the kernel's parameter k */
Lx lx_var(LoopFn *, Lv);                     /* the value of a variable */
/* Returns a basic operation with a result of the type, or a simpler expression of the same value.
 * Scalar operands are splat to the lanes of the type. nin: sc_arity of the operation, 1 to 3. */
Lx lx_sc(LoopFn *, ScOp, LType, const Lx *in, uint32_t nin);
/* Returns a call of a scalar function on `lanes` lanes, to which scalar operands are splat. nin:
 * the function's number of parameters. */
Lx lx_fn(LoopFn *, const ScFn *, uint32_t lanes, const Lx *in, uint32_t nin);
/* Makes a basic operation on operands of one dtype, which the result has, too, as each of the
 * next functions does, or a simpler expression of the same value. A scalar operand beside a
 * vector is splat. */
Lx lx_add(LoopFn *, Lx a, Lx b); /* the sum; integers wrap around */
Lx lx_sub(LoopFn *, Lx a, Lx b); /* the difference a - b; integers wrap around */
Lx lx_mul(LoopFn *, Lx a, Lx b); /* the product; integers wrap around */
Lx lx_div(LoopFn *, Lx a, Lx b); /* integers only: the quotient a / b rounded down */
Lx lx_mod(LoopFn *, Lx a, Lx b); /* integers only: the remainder of a / b with the sign of b */
Lx lx_min(LoopFn *, Lx a, Lx b); /* the smaller one, SC_min */
Lx lx_max(LoopFn *, Lx a, Lx b); /* the greater one, SC_max */
Lx lx_and(LoopFn *, Lx a, Lx b); /* of integers or bools: SC_and, bit by bit */
Lx lx_fma(LoopFn *, Lx a, Lx b, Lx c); /* of floats: a * b + c with one rounding */
/* Returns the comparison of a and b, of one dtype, by SC_eq to SC_ge. The result is a bool in each
 * lane. A scalar operand beside a vector is splat. */
Lx lx_cmp(LoopFn *, ScOp, Lx a, Lx b);
/* Returns c ? a : b, lane by lane. c is a bool or mask, a and b are of the result's dtype; scalars
 * beside a vector are splat. */
Lx lx_select(LoopFn *, Lx c, Lx a, Lx b);
/* Returns LX_SPLAT: the scalar x in all lanes. A vector is returned as it is. */
Lx lx_splat(LoopFn *, Lx x, uint32_t lanes);
/* Returns LX_RAMP: base + k * step in lane k; both are scalars of one dtype, i64 or i32. Of one
 * lane: base itself. */
Lx lx_ramp(LoopFn *, Lx base, Lx step, uint32_t lanes);
/* Returns LX_MASK: the lanes k < n are active; n is any i64 scalar. Of one lane: the bool n > 0. */
Lx lx_mask(LoopFn *, Lx n, uint32_t lanes);
/* Returns LX_HREDUCE: all lanes of x combined to a scalar by the operation. A scalar is returned as
 * it is. */
Lx lx_hreduce(LoopFn *, ScOp, Lx x);
/* Returns LX_ANY: a bool scalar, whether a lane of the mask x is active. A scalar is returned as it
 * is. */
Lx lx_any(LoopFn *, Lx x);
/* Returns LX_SHUFFLE: lanes of the vectors a and b, of one type, in another order; half as many for
 * SHUFFLE_LOW and SHUFFLE_HIGH. b is a unless shuffle_is_of_two. */
Lx lx_shuffle(LoopFn *, Shuffle, Lx a, Lx b);
/* Returns which lane of the operands becomes lane k of the result. Operands have `lanes` lanes
 * each: 0 to lanes - 1 are those of in[0], from `lanes` on those of in[1]. */
uint32_t shuffle_lane(Shuffle, uint32_t k, uint32_t lanes);
/* Returns the name of a shuffle in the text form: "zip_low". */
const char *shuffle_name(Shuffle);
/* Whether the shuffle reads in[1]. */
bool shuffle_is_of_two(Shuffle);
/* Returns LX_TABLE: the element of a table at an index, lane by lane. */
Lx lx_table(LoopFn *, const ScTable *, Lx index);
/* Returns a basic operation, without folding. Each of the nin operands (sc_arity) has the lanes of
 * the type. known: KNOWN_ bits that hold for the operation, or 0. */
Lx lx_op(LoopFn *, ScOp, LType, const Lx *in, uint32_t nin, unsigned known);
/* Returns an expression that is as x but for its operands in[], as many as x has; without
 * folding. */
Lx lx_with(LoopFn *, Lx x, const Lx *in);
/* Returns LX_ADDR: the address of the byte at offset `bytes` of buffer argument buf. */
Lx lx_addr(LoopFn *, uint32_t buf, Lx bytes);
/* Returns LX_LANE: one lane of a vector, as a scalar. Of an LX_PACK: the packed scalar itself. */
Lx lx_lane(LoopFn *, Lx vector, uint32_t lane);
/* Returns LX_PACK: a vector of 2 or 4 scalars of one dtype, lane[k] in lane k. */
Lx lx_pack(LoopFn *, const Lx *lane, uint32_t lanes);
/* Returns LX_THREAD: the number of the thread in its block. */
Lx lx_thread(LoopFn *);
/* Returns LX_WARP: an exchange in the warp, with in[0] a and in[1] b. Votes ignore b. */
Lx lx_warp(LoopFn *, WarpOp, Lx a, Lx b);
/* Returns the name of an exchange in the text form. */
const char *warp_name(WarpOp);
/* Whether the exchange is a vote, which gives all threads of the warp one result: WARP_ANY,
 * WARP_ALL, WARP_BALLOT. */
static inline bool warp_is_vote(WarpOp op) { return op >= WARP_ANY; }
/* Whether x is an i64 scalar that is known to be >= 0 if nothing overflows: literals, parameters,
 * LX_THREAD, variables with LvData.nonneg; sums, products, quotients, selections and the like of
 * such. False for other types, and if that is not known. */
bool lx_nonneg(const LoopFn *, Lx x);
/* Calls visit(data, e) for every expression e of a statement, in the order offset, x, y, mask,
 * arg[]; skips absent ones. Subexpressions and the statements of `body` and `other` are not
 * visited. */
void ls_visit(const LoopFn *, const LsData *, void (*visit)(void *, Lx), void *data);
/* Replaces every expression e that ls_visit visits by map(data, e); absent ones stay absent. arg[]
 * becomes a new array in the arena of the Ir's context. */
void ls_map(LoopFn *, LsData *, Lx (*map)(void *, Lx), void *data);
/* Whether x is a literal of an integer dtype or bool, in any number of lanes. If so, sets *value to
 * its value unless `value` is NULL; else leaves *value as it is. False if x is none. */
MUST_LOOK bool lx_is_int(const LoopFn *, Lx x, int64_t *value);
/* Returns -1 or 2 if the statement is an unmasked LS_GATHER whose index x is an LX_RAMP from
 * literal 0 with that literal step: loads and a shuffle can replace the gather. Returns 0 for
 * everything else. */
int ls_stride(const LoopFn *, const LsData *);
/* Returns the type of an expression's value. */
static inline LType lx_type(const LoopFn *f, Lx x) { return f->lx.data[x.i].type; }

/* Adds a statement at the end of the innermost open block, as each of the next functions does,
 * and all below that say "adds"; LsKind says what the statements do. Those that return an Lv
 * return the new variable. A mask may be none: all lanes. Offsets count elements. An access to a
 * buffer argument sets its LArg.read or LArg.written. Names and texts are kept, not copied. */
Lv ls_let(LoopFn *, const char *name, Lx value); /* an immutable variable with this value */
Lv ls_var(LoopFn *, const char *name, Lx init);  /* a mutable variable with this first value */
void ls_set(LoopFn *, Lv v, Lx value); /* sets the mutable v; a scalar is splat to its lanes */
/* Adds an LS_LOAD of consecutive elements, one for each lane of `type`. type: the type of the
 * loaded value; its dtype is the compute dtype of the memory's dtype, or u32 for whole groups of
 * elements (ls_group), for which offset need be no multiple of the group. mask: none, or a bool in
 * each lane. Returns the variable that holds the value. */
Lv ls_load(LoopFn *, const char *name, LMem, Lx offset, LType type, Lx mask);
/* Does as ls_load; back ends keep the load's position among other loads. */
Lv ls_load_in_order(LoopFn *, const char *name, LMem, Lx offset, LType type, Lx mask);
/* Adds an LS_GATHER: lane k has the element at offset + index[k]. index: i32 or i64 lanes. dtype:
 * of the loaded value, the compute dtype of the memory's dtype. mask: as for ls_load. Returns the
 * variable that holds the value. */
Lv ls_gather(LoopFn *, const char *name, LMem, Lx offset, Lx index, DType dtype, Lx mask);
/* Adds an LS_STORE of the value's lanes to consecutive elements. mask: as for ls_load. */
void ls_store(LoopFn *, LMem, Lx offset, Lx value, Lx mask);
/* Adds an LS_STREAM: a store of the value's lanes past the caches. The caller adds an ls_fence
 * behind it before the task ends. */
void ls_stream(LoopFn *, LMem, Lx offset, Lx value);
/* Adds an LS_SCATTER: lane k goes to offset + index[k]. index, mask: as for ls_gather. */
void ls_scatter(LoopFn *, LMem, Lx offset, Lx index, Lx value, Lx mask);
/* Opens a loop over [lo, hi), i64 scalars that are evaluated once; ls_end closes its body. step: at
 * least 1. Returns the loop's variable, visible in the body only. */
Lv ls_for(LoopFn *, const char *name, Lx lo, Lx hi, int64_t step);
/* Opens a loop that runs while the condition, a bool scalar evaluated before each round, holds;
 * ls_end closes its body. */
void ls_while(LoopFn *, Lx condition);
/* Opens what is executed if the condition, a bool scalar, holds; ls_end closes it. */
void ls_if(LoopFn *, Lx condition);
/* Closes the body of the innermost ls_if, and opens its other block; ls_end closes that. */
void ls_else(LoopFn *);
/* Closes the innermost open block: of a for, while or if, or of loop_enter or loop_leave. */
void ls_end(LoopFn *);
/* Returns the number of statements in the innermost open block. */
uint32_t ls_place(const LoopFn *);
/* Orders the last statements of the innermost open block, n sequences from place from[k] to
 * from[k + 1], the last one up to the end: one statement of each in turn, what reads a variable
 * behind what sets it. No sequence loads what another stores. Does nothing if one has a statement
 * besides LS_LET, LS_LOAD and LS_STORE. */
void ls_interleave(LoopFn *, const uint32_t *from, uint32_t n);
/* Adds an LS_LOCAL: an array of `count` elements, at least 1, of a storage dtype. An element has no
 * value before a store to it. Returns the array's memory. */
LMem ls_local(LoopFn *, const char *name, DType dtype, uint64_t count);
/* Adds an LS_FAIL: records a failure with that message (a number of lowered_check), and arg[], at
 * most MAX_FAIL_ARGS i64 scalars, for its %lld. Copies arg[]. */
void ls_fail(LoopFn *, uint32_t message, const Lx *arg, uint32_t narg);
/* Returns an expression, in which lanes a check fails: not ok, and in the mask unless that is none.
 * ok: a bool scalar or a mask. Adds no statement. */
Lx lx_fails(LoopFn *, Lx ok, Lx mask);
/* Whether the statement is an LS_IF whose body ends with an LS_FAIL: the branch is rarely taken. */
bool ls_is_rare(const LoopFn *, const LsData *);
/* Returns a name for messages: of the memory that the statement writes, else of the variable that
 * the statement sets; "" if there is neither. */
const char *ls_subject(const LoopFn *, const LsData *);
/* Returns the position of a statement of the function, an element of f->ls, among the statements of
 * its kind, from 1, in the order of the text. */
uint32_t ls_number(const LoopFn *, const LsData *);
/* Returns the bytes of shared memory up to the end of the array of an LS_SHARED, if the arrays in
 * front of it take `before` bytes. */
uint64_t loop_shared_bytes(const LsData *, uint64_t before);
/* Returns the number of statements of a block, nested ones included; 0 if the block is none. */
uint32_t loop_statements(const LoopFn *, Lb);
/* Adds an LS_CALL of a user operator. Copies arg[], which LS_CALL describes; keeps the pointer to
 * the LoopCall. */
void ls_call(LoopFn *, const LoopCall *, const Lx *arg, uint32_t narg);
/* Adds an LS_PREFETCH of the element at the offset, into the cache of level 1, 2 or 3. */
void ls_prefetch(LoopFn *, LMem, Lx offset, uint32_t level);
/* Returns the locality of an LS_PREFETCH as C compilers and LLVM take it: 3 for level 1 (keep the
 * line in all caches) to 1 for level 3. */
static inline uint32_t ls_locality(const LsData *prefetch) { return 4 - prefetch->k; }
/* Adds an LS_FENCE: whoever sees a later store of the thread also sees what it wrote by LS_STREAM
 * before. */
void ls_fence(LoopFn *);
/* Adds an LS_FRAG, for kernels of CPUs, in loop_enter: `count` fragments of rows x cols elements
 * of a storage dtype, numbered behind those declared before. Returns the variable for lfrag. */
Lv ls_frag(LoopFn *, const char *name, DType dtype, uint32_t rows, uint32_t cols, uint32_t count);
/* Returns fragment k of those that ls_frag declared together. */
static inline LFrag lfrag(Lv of, uint32_t k) { return (LFrag){of, k}; }
/* Adds an LS_FRAG_ZERO: all elements become 0. */
void ls_frag_zero(LoopFn *, LFrag);
/* Adds an LS_FRAG_LOAD of rows from memory of the fragment's dtype; `stride` elements lie between
 * the first elements of two rows. */
void ls_frag_load(LoopFn *, LFrag, LMem, Lx offset, Lx stride);
/* Does as ls_frag_load, of rows that other data in the first cache shall not give way to. */
void ls_frag_load_passing(LoopFn *, LFrag, LMem, Lx offset, Lx stride);
/* Adds an LS_FRAG_STORE of rows to memory of the fragment's dtype; stride: as for ls_frag_load. */
void ls_frag_store(LoopFn *, LMem, Lx offset, Lx stride, LFrag);
/* Adds an LS_FRAG_DOT: c += a . b. Shapes: as FragOp says. */
void ls_frag_dot(LoopFn *, FragOp, LFrag c, LFrag a, LFrag b);
/* Whether the function has statements on fragments. */
bool loop_has_frags(const LoopFn *);
/* Returns the LS_FRAG that declares a fragment; NULL if there is none. */
const LsData *loop_frag(const LoopFn *, LFrag);
/* Returns the number of a fragment among all fragments of the function, which is its register. */
uint32_t loop_frag_number(const LoopFn *, LFrag);
/* Sets the operand of AMX's LDTILECFG (palette 1) for the fragments that the function declares. */
enum { FRAG_CONFIG_BYTES = 64 };
void loop_frag_config(const LoopFn *, uint8_t config[FRAG_CONFIG_BYTES]);
/* Adds an LS_COMMENT, a line of text that emitted C shows at this place. Keeps the text, without
 * copying it. */
void ls_comment(LoopFn *, const char *text);
/* Adds an LS_SHARED, for blocks of threads, outside of loops and branches: an array of `count`
 * elements in shared memory. Returns its memory. */
LMem ls_shared(LoopFn *, const char *name, DType dtype, uint64_t count);
/* Adds an LS_SYNC: a barrier of all threads of the block. */
void ls_sync(LoopFn *);
/* Adds an LS_COPY_ASYNC: begins a copy of `bytes` bytes (4, 8 or 16) from a buffer to shared
 * memory; the offsets count elements of each side. mask: a bool scalar, or none: true; where the
 * mask is false the bytes become 0. */
void ls_copy_async(LoopFn *, LMem to, Lx offset, LMem from, Lx from_offset, uint32_t bytes,
		   Lx mask);
/* Adds an LS_COPY_COMMIT: the copies that the thread began since its last commit are a group, even
 * if there are none. */
void ls_copy_commit(LoopFn *);
/* Adds an LS_COPY_WAIT: at most `groups` groups of the thread are still under way behind it. */
void ls_copy_wait(LoopFn *, uint32_t groups);
/* Returns the memory of buffer argument k, with elements of storage dtype d. */
static inline LMem lmem_buf(uint32_t k, DType d) { return (LMem){MEM_BUFFER, k, d}; }

/* Does as loop_propagate; replaces an LS_IF on a literal by the branch taken, and an LS_FOR of one
 * round with literal bounds by its body; removes an LS_FOR of no round, and statements without an
 * effect whose results nothing reads. */
void loop_simplify(LoopFn *);
/* Replaces each LS_FOR with literal bounds, 1 to 4 rounds and at most 6 statements, none of which
 * has a body, by copies of its body; then does as loop_propagate. A step of legalising. */
void loop_unroll(LoopFn *);
/* Removes each LS_LET of a literal, a parameter, LX_THREAD or an immutable variable; what read its
 * variable reads that value, and is folded again. A mask that is a literal goes: an access that it
 * holds has none, one that it does not hold is removed, and what it would have loaded is 0. */
void loop_propagate(LoopFn *);
/* Returns an expression that is as x but for its operands in[], as many as x has; folded again, but
 * for LX_SHUFFLE, LX_TABLE and LX_WARP. KNOWN_ bits of x are lost. An expression without operands
 * is returned as it is. */
Lx lx_rebuild(LoopFn *, Lx x, const Lx *in);
/* Turns i64 scalar literals whose absolute value exceeds `keep` (at least 0) into parameters, one
 * for each value, in order of first appearance: so equal layers have equal code. Literals stay in
 * offsets into local and shared arrays, in numbers of lanes of exchanges, and in arithmetic of
 * LX_THREAD and literals only. Returns the number of new parameters, and sets *value to the array
 * of their values, all positive, in the arena of the Ir's context. */
uint32_t loop_parametrise(LoopFn *, int64_t keep, const int64_t **value);
/* Appends the text form of the function; a library function has a form of its own, which loop_parse
 * does not take. anonymous: the text of a kernel does not depend on the names of the kernel, its
 * buffers, parameters and variables, nor on comments; it is the key by which equal kernels are
 * found. */
void loop_print(const LoopFn *, Text *, bool anonymous);
/* Parses text that loop_print wrote, of a function whose buffers and parameters have distinct
 * names. Scalar functions in the text must exist already (scalar_by_name). What the text does not
 * say is lost: LoopFn.comment, LoopFn.product, LsData.rare, tables of launches, what statements
 * keep for the interpreter. A call of a user operator is an error. Returns a function to which no
 * statements can be added, in the arena of the Ir's context; NULL after an error, which the context
 * has recorded. */
LoopFn *loop_parse(Ir *, const char *text);
/* Adds an LS_LAUNCH of call `call`, the number that program_add_call returned, over ntasks tasks.
 * arg[]: nbuf addresses (lx_addr), then the parameters, narg in all. Copies arg[]. */
void ls_launch(LoopFn *, uint32_t call, Lx ntasks, const Lx *arg, uint32_t nbuf, uint32_t narg);
/* Says that the next statement, which must be a launch, belongs to the phase of the launch before,
 * which is the last statement of the innermost open block. Has no effect if that statement is no
 * launch. */
void ls_same_phase(LoopFn *);
/* Adds an LS_READ of the value of the dtype, an integer or bool, at the address (lx_addr). Returns
 * its variable: a bool for DT_bool, else an i64. owner: of the buffer at the address
 * (ProgramArg.owner), for the interpreter; 0: not known. */
Lv ls_read(LoopFn *, const char *name, DType dtype, Lx address, uint32_t owner);
/* Adds an LS_SAVE, whose arg[] LsKind describes: nbuf addresses (3 or 4), then 2 scalars. values,
 * at: the owners (ProgramArg.owner) of the buffers of arg[2] and arg[3]; at is 0 if nbuf is 3.
 * Copies arg[]. */
void ls_save(LoopFn *, const Lx *arg, uint32_t nbuf, uint32_t narg, uint32_t values, uint32_t at);
/* Marks the statement that was added last, an LS_READ, as the one that reads the size symbol; for
 * the interpreter. */
void ls_reads_size(LoopFn *, Sym size);
/* Adds an LS_ROOM. narg > 0: allocates the room that is buffer argument buf; arg[]: the extents of
 * an output, else the bytes. narg 0: frees the room. Copies arg[]. */
void ls_room(LoopFn *, uint32_t buf, const Lx *arg, uint32_t narg);
/* Adds an LS_COPY of bytes from one address (lx_addr) to another. */
void ls_copy(LoopFn *, Lx to, Lx from, Lx bytes);
/* Adds an LS_ASSERT: ends the call unless ok, a bool scalar, with that message (program_message)
 * and arg[] for its %lld. Adds nothing if ok is a literal that is true. Copies arg[]. */
void ls_assert(LoopFn *, Lx ok, uint32_t message, const Lx *arg, uint32_t narg);
/* Adds an LS_RESULT: sets result slot `slot` of `sizes` to an i64 scalar. */
void ls_result(LoopFn *, uint32_t slot, Lx value);
/* Adds an LS_OUTLINED: calls function k of those that are outlined from `sizes` or `run`
 * (ProgramEntry). Of `run`: arg[] are the parameters of the called function, narg 0: those of this
 * one; first_extent is 0. Of `sizes`: the called function reads the slots of the symbols, then the
 * extents from number first_extent on; narg is 0. Copies arg[]. */
void ls_outlined(LoopFn *, uint32_t k, uint64_t first_extent, const Lx *arg, uint32_t narg);
/* Checks scopes, types, memory and structure, of a library function its result, too; of blocks that
 * all threads reach barriers together, and all of a warp its exchanges. isa: the instruction set
 * for which every operation and statement must be legal (codegen/legal/legalise.h); NULL: the
 * function is not legalised yet. Returns false after errors, which the context has recorded. */
MUST_LOOK bool loop_verify(LoopFn *, const struct Isa *);

/* The subexpressions that one statement uses more than once, operands first; printers name them
 * ahead of the statement. The caller zeroes the struct before the first use. */
typedef struct {
	uint32_t *uses; /* by expression; all 0 between calls */
	uint32_t n;     /* length of uses */
	ARRAY(Lx) x;
} LoopShared;
/* Sets s->x to the subexpressions that the statement's own expressions use more than once, operands
 * before what uses them. Expressions without operands (literals, parameters, variables, LX_THREAD)
 * are left out. What is inside of such a subexpression counts once for all its uses. Arrays lie in
 * the arena of the Ir's context; the next call with s overwrites s->x. */
void loop_shared(const LoopFn *, const LsData *, LoopShared *s);

/* Finds index arithmetic: i64 scalars computed from literals, parameters, LX_THREAD and immutable
 * variables that hold such, also those that were loaded from arrays of such. Index
 * arithmetic does not overflow, and its divisors are not 0. The function must not change while a
 * LoopIndex is in use. */
typedef struct {
	const LoopFn *f;
	bool *data;     /* by variable: its value is no index arithmetic; of an array: an
	                   element's */
	uint8_t *index; /* by expression: 0 unknown yet, 1 index arithmetic, 2 not */
	bool changed;
} LoopIndex;
/* Finds out which variables and local arrays of the function hold indices, and sets *n; arrays
 * lie in the arena. Not for library functions. */
void loop_index_init(LoopIndex *n, const LoopFn *, Arena *);
/* Whether the expression is index arithmetic. It existed when loop_index_init was called. */
bool loop_is_index(LoopIndex *, Lx x);
/* KNOWN_INDEX: the i64 operation is index arithmetic: it does not overflow and divisors are not 0.
 * KNOWN_NONNEG: operands are not negative. */
enum { KNOWN_INDEX = 1, KNOWN_NONNEG = 2 };
/* Returns which KNOWN_ bits hold of an LX_SC expression; 0 if the expression is no index
 * arithmetic. It existed when loop_index_init was called. */
unsigned loop_known(LoopIndex *, Lx x);
/* Returns an array of bools by Lx, in the arena: whether the expression reads a mutable variable,
 * so that its value may differ between two statements. */
const bool *loop_find_mutable(const LoopFn *, Arena *);

#endif
