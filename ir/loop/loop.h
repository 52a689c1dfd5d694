/* Loop IR: schedules make it, emitters print it. All decisions are taken: tiles, vector width,
 * unrolling, packing, tasks. Expressions are interned; statements are lists. A load is a statement;
 * an accumulator is a named mutable variable. `sizes` and `run`, the program around the kernels,
 * are loop IR too, so that emitters decide nothing about guards, sizes and control flow. */
#ifndef WEFT_IR_LOOP_H
#define WEFT_IR_LOOP_H

#include "base/array.h"
#include "ir/graph/graph.h"
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
	LS_LOCAL, /* a task-local array of `count` elements of `dtype`, in a block of the thread */
	LS_FAIL,  /* record failure k with arg[] for the message's %lld, unless this call of the
	             kernel has recorded one; go on */
	LS_CALL,  /* call a user operator, `call`. arg[]: by tensor, operands first, the extents,
	             then the value of a tensor without a buffer; at last the bytes of the
	             workspace. A failure is recorded as by LS_FAIL */
	LS_PREFETCH, /* prefetch mem[offset] into the cache of level k */
	LS_FENCE,  /* whoever sees later stores of this thread also sees its streaming stores */
	LS_COMMENT, /* text                                                                  */
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
	LS_OUTLINED, /* call function k of those outlined from `run` or `sizes` (ProgramEntry).
	                arg[]: its parameters; none: those of this function. Of `sizes`: its extents
	                start at number `count` */
	LS_LAUNCHES, /* legal functions: the launches of `body`, which the runtime reads from a
	              launch table (codegen/program/launches.h). arg[]: values computed
	              before */
	LS_COUNT
} LsKind;

enum { MAX_FAIL_ARGS = 1 + MAX_RANK }; /* of an LS_FAIL */

/* The lanes of a load that a shuffle drops. The lanes are read, so the memory must exist; its
 * contents do not matter. */
typedef enum { DROPS_NONE, DROPS_ODD, DROPS_EVEN } LsDrops;

typedef enum { MEM_BUFFER, MEM_LOCAL, MEM_SHARED } LMemKind;

/* The memory of a statement: buffer argument k of the kernel, a local or a shared array. */
typedef struct {
	LMemKind kind;
	uint32_t k;   /* the index of the buffer, or the Lv of the LS_LOCAL or LS_SHARED */
	DType dtype;  /* the storage dtype of the elements */
} LMem;

/* Whether the memory is an array of the function, which a variable stands for. */
static inline bool lmem_is_array(LMem m) { return m.kind != MEM_BUFFER; }

enum { SHARED_ALIGN = 16 }; /* the most bytes, too, that one access of a thread moves */

/* The tensors of a call of a user operator: operands, then results. */
typedef struct LoopCall {
	const struct UserOp *op; /* ir/ops/user/userop.h */
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
	int64_t step;
	uint32_t k, nbuf, narg;
	const Lx *arg;
	uint64_t count;
	bool same_phase; /* LS_LAUNCH */
	bool in_order; /* LS_LOAD */
	LsDrops drops; /* LS_LOAD of legal functions */
	bool rare;   /* LS_IF of legal functions: the branch is rarely taken */
	DType dtype;
	Lb body, other;
	const char *text;
	const struct LaunchTable *launches; /* LS_LAUNCHES: codegen/program/launches.h */
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
	V_LOOP,   /* new, in `body` only: x and more */
	V_SET     /* v is set to x */
} LsVariable;

typedef enum {
	MEM_NONE,
	MEM_READ,
	MEM_WRITE,
	MEM_HINT,
	MEM_COPY /* written from other memory: there is no value */
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
} LsRow;

/* Returns the properties of a kind. */
const LsRow *ls_row(LsKind);

/* One kernel: int name(const Frame *, int64_t begin, int64_t end) over tasks. Of one with a block
 * of threads each thread executes the statements; the block is a call for one task. */
typedef struct LoopFn {
	Ir *ir;
	const char *name;
	const char *comment; /* lines of the graph; may hold line breaks */
	ARRAY(LArg) buf;
	ARRAY(const char *) param; /* names of the i64 parameters */
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
	uint64_t shared_most; /* of a block: the most bytes of shared memory that the target has */
	Lb enter;             /* executed once per call, before its tasks; 0: nothing */
	Lb body;              /* of a kernel: the statements of one task */
	Lb leave;             /* executed once per call, after its tasks; 0: nothing */
	Lv task;              /* the number of the task, i64; in `body` */
	ARRAY(Lb) open;       /* the open blocks while building; the innermost is last */
} LoopFn;

/* The top-level blocks of a function in the order in which they are executed: 0 enter, 1 body,
 * 2 leave. A variable that one defines is visible in those behind it. */
enum { LOOP_TOPS = 3 };
static inline Lb loop_top(const LoopFn *f, uint32_t k)
{
	return k == 0 ? f->enter : k == 1 ? f->body : f->leave;
}

/* Returns an empty function of a CPU in the arena of the Ir's context, with `task` and an open
 * `body`, which is never closed. Keeps the pointer of the name. */
LoopFn *loop_new(Ir *, const char *name);
/* Says that the function is executed by blocks of `threads` threads, a multiple of WARP up to
 * MAX_THREADS, each with at most `shared` bytes of shared memory. */
void loop_block(LoopFn *, uint32_t threads, uint64_t shared);
/* Turns a finished function of a CPU into one of blocks: each task becomes a thread, and `threads`
 * of them the block of the new task. ntasks: the number of tasks before, an expression of literals
 * and parameters; threads of the last block past that number execute nothing. threads, shared: as
 * for loop_block. */
void loop_tasks_to_threads(LoopFn *, uint32_t threads, uint64_t shared, Lx ntasks);
/* Opens the top-level block `enter`, for further statements if it has some; ls_end closes it. */
void loop_enter(LoopFn *);
/* Opens the top-level block `leave`, for further statements if it has some; ls_end closes it. */
void loop_leave(LoopFn *);
/* Whether the function contains anything that only blocks of threads execute, not CPUs. */
bool loop_is_of_block(const LoopFn *);
/* Adds a buffer argument. Returns its number, from 0. */
uint32_t loop_buf(LoopFn *, LArg);
/* Adds a parameter, an i64. Returns its number, from 0. */
uint32_t loop_param(LoopFn *, const char *name);
/* Adds an argument of a library function. Returns its variable. */
Lv loop_arg(LoopFn *, const char *name, LType);

/* Make expressions: interned, and folded if operands are literals (x+0, x*1, constants). If one
 * operand is a vector and another a scalar, the scalar is splat. */
Lx lx_int(LoopFn *, int64_t);                /* an i64 scalar */
Lx lx_int_of(LoopFn *, LType, int64_t);      /* an integer or bool literal in all lanes */
Lx lx_float(LoopFn *, LType, double);        /* a float in all lanes, rounded to the dtype */
Lx lx_param(LoopFn *, uint32_t k);           /* parameter k */
Lx lx_var(LoopFn *, Lv);                     /* the value of a variable */
/* Returns a basic operation with a result of the type; scalar operands are splat to its lanes. */
Lx lx_sc(LoopFn *, ScOp, LType, const Lx *in, uint32_t nin);
/* Returns a call of a scalar function on `lanes` lanes, to which scalar operands are splat. */
Lx lx_fn(LoopFn *, const ScFn *, uint32_t lanes, const Lx *in, uint32_t nin);
/* Basic operations on two operands of one dtype, which the result has. */
Lx lx_add(LoopFn *, Lx, Lx); /* the sum; integers wrap around */
Lx lx_sub(LoopFn *, Lx, Lx); /* the difference; integers wrap around */
Lx lx_mul(LoopFn *, Lx, Lx); /* the product; integers wrap around */
Lx lx_div(LoopFn *, Lx, Lx); /* of integers: the quotient rounded down */
Lx lx_mod(LoopFn *, Lx, Lx); /* of integers: the remainder with the sign of the divisor */
Lx lx_min(LoopFn *, Lx, Lx); /* the smaller one, SC_min */
Lx lx_max(LoopFn *, Lx, Lx); /* the greater one, SC_max */
Lx lx_cmp(LoopFn *, ScOp, Lx, Lx); /* SC_eq to SC_ge; the result is a bool or mask */
Lx lx_and(LoopFn *, Lx, Lx); /* bit by bit, SC_and */
Lx lx_select(LoopFn *, Lx c, Lx a, Lx b); /* c ? a : b, lane by lane */
Lx lx_fma(LoopFn *, Lx a, Lx b, Lx c); /* a * b + c with one rounding */
Lx lx_splat(LoopFn *, Lx, uint32_t lanes); /* LX_SPLAT: a scalar in all lanes; a vector as it is */
Lx lx_ramp(LoopFn *, Lx base, Lx step, uint32_t lanes); /* LX_RAMP: base + k * step in lane k; of
							   one lane, base */
Lx lx_mask(LoopFn *, Lx n, uint32_t lanes); /* LX_MASK: the lanes k < n are active */
Lx lx_hreduce(LoopFn *, ScOp, Lx);          /* LX_HREDUCE: all lanes combined to a scalar; a
					       scalar as it is */
Lx lx_any(LoopFn *, Lx);                    /* LX_ANY: whether a lane of a mask is active; a
					       scalar as it is */
Lx lx_shuffle(LoopFn *, Shuffle, Lx a, Lx b); /* LX_SHUFFLE: lanes of a and b in another order;
						 b is a unless shuffle_is_of_two */
/* The lane of the operands that becomes lane k of the result. Operands have `lanes` lanes each;
 * those of in[1] count after those of in[0]. */
uint32_t shuffle_lane(Shuffle, uint32_t k, uint32_t lanes);
const char *shuffle_name(Shuffle); /* "zip_low" */
/* Whether the shuffle reads in[1]. */
bool shuffle_is_of_two(Shuffle);
/* Returns LX_TABLE: the element of a table at an index, lane by lane. */
Lx lx_table(LoopFn *, const ScTable *, Lx index);
/* Returns a basic operation, without folding. The operands have the lanes of the type. known:
 * KNOWN_ bits. */
Lx lx_op(LoopFn *, ScOp, LType, const Lx *in, uint32_t nin, unsigned known);
/* Returns an expression that is as x but for its operands in[], as many as x has; without
 * folding. */
Lx lx_with(LoopFn *, Lx x, const Lx *in);
/* Returns LX_ADDR: the address of the byte at offset `bytes` of buffer argument buf. */
Lx lx_addr(LoopFn *, uint32_t buf, Lx bytes);
/* The expressions LX_LANE and LX_PACK of 2 or 4 lanes: a thread moves several elements in one
 * access, and computes with one at a time. A lane of an LX_PACK is the packed scalar itself. */
Lx lx_lane(LoopFn *, Lx vector, uint32_t lane);
Lx lx_pack(LoopFn *, const Lx *lane, uint32_t lanes);
/* Returns LX_THREAD: the number of the thread in its block. */
Lx lx_thread(LoopFn *);
/* Returns LX_WARP: an exchange in the warp, with in[0] a and in[1] b. b is none for votes. */
Lx lx_warp(LoopFn *, WarpOp, Lx a, Lx b);
/* Returns the name of an exchange in the text form. */
const char *warp_name(WarpOp);
/* Whether the result is one for all threads of the warp: WARP_ANY, WARP_ALL, WARP_BALLOT. */
static inline bool warp_is_vote(WarpOp op) { return op >= WARP_ANY; }
/* Whether x is an i64 scalar that is known to be >= 0: literals, parameters (never negative, by
 * contract), LX_THREAD, variables with LvData.nonneg; sums, products, quotients, selections and the
 * like of such. False for other types, and if that is not known. */
bool lx_nonneg(const LoopFn *, Lx);
/* Calls visit(data, e) for every expression e of a statement, in the order offset, x, y, mask,
 * arg[]; skips absent ones. Subexpressions and the statements of `body` and `other` are not
 * visited. */
void ls_visit(const LoopFn *, const LsData *, void (*visit)(void *, Lx), void *data);
/* Replaces every expression e that ls_visit visits by map(data, e); absent ones stay absent. arg[]
 * becomes a new array in the arena of the Ir's context. */
void ls_map(LoopFn *, LsData *, Lx (*map)(void *, Lx), void *data);
/* Whether x is a literal of an integer dtype or bool, in any number of lanes. If so, sets *value to
 * its value unless the pointer is NULL; else leaves *value as it is. False if x is none. */
MUST_LOOK bool lx_is_int(const LoopFn *, Lx x, int64_t *value);
/* Returns the stride of an unmasked gather of several lanes, if it is -1 or 2 (loads and a shuffle
 * can replace such a gather); else 0, also for statements of other kinds. */
int ls_stride(const LoopFn *, const LsData *);
/* Returns the type of an expression's value. */
static inline LType lx_type(const LoopFn *f, Lx x) { return f->lx.data[x.i].type; }

/* Functions that add a statement at the end of the innermost open block; LsKind says what the
 * statements do. Those that return an Lv return the new variable; a mask may be none: all lanes. An
 * access to a buffer argument sets its LArg.read or LArg.written. Names and texts are kept, not
 * copied. */
Lv ls_let(LoopFn *, const char *name, Lx);      /* an immutable variable with this value */
Lv ls_var(LoopFn *, const char *name, Lx init); /* a mutable one */
void ls_set(LoopFn *, Lv, Lx);                  /* sets a mutable variable; a scalar is splat */
/* Adds an LS_LOAD of one element or consecutive ones. The type is that of the loaded value, in the
 * compute dtype of the memory's. */
Lv ls_load(LoopFn *, const char *name, LMem, Lx offset, LType, Lx mask);
/* Adds an LS_LOAD that keeps its position among loads. */
Lv ls_load_in_order(LoopFn *, const char *name, LMem, Lx offset, LType, Lx mask);
/* Adds an LS_GATHER: lane k has the element at offset + index[k]. */
Lv ls_gather(LoopFn *, const char *name, LMem, Lx offset, Lx index, DType, Lx mask);
/* Adds an LS_STORE of one element or consecutive ones. */
void ls_store(LoopFn *, LMem, Lx offset, Lx value, Lx mask);
/* Adds an LS_STREAM: a store past the caches. */
void ls_stream(LoopFn *, LMem, Lx offset, Lx value);
/* Adds an LS_SCATTER: lane k goes to offset + index[k]. */
void ls_scatter(LoopFn *, LMem, Lx offset, Lx index, Lx value, Lx mask);
/* Opens a loop over [lo, hi) by step; ls_end closes its body. Returns the variable. */
Lv ls_for(LoopFn *, const char *name, Lx lo, Lx hi, int64_t step);
/* Opens a loop that runs while the condition, a bool scalar, holds; ls_end closes its body. */
void ls_while(LoopFn *, Lx);
/* Opens what is executed if the condition, a bool scalar, holds; ls_end closes it. */
void ls_if(LoopFn *, Lx);
/* Closes the body of the innermost ls_if, and opens its other block; ls_end closes that. */
void ls_else(LoopFn *);
/* Closes the innermost open block: of a for, while or if, or of loop_enter or loop_leave. */
void ls_end(LoopFn *);
/* Adds a task-local array and returns its memory. */
LMem ls_local(LoopFn *, const char *name, DType, uint64_t count);
/* Adds an LS_FAIL: a failure with that message (lowered_check), and arg[] for its %lld. Copies
 * arg[]. */
void ls_fail(LoopFn *, uint32_t message, const Lx *arg, uint32_t narg);
/* Returns the condition of a failure: not ok (a bool scalar or a mask), and mask unless that is
 * none. Adds no statement. */
Lx lx_fails(LoopFn *, Lx ok, Lx mask);
/* Whether the statement is an LS_IF whose body ends with an LS_FAIL: the branch is rarely taken. */
bool ls_is_rare(const LoopFn *, const LsData *);
/* Returns a name for messages: of the memory that the statement writes, else of the variable that
 * the statement sets; "" if there is neither. */
const char *ls_subject(const LoopFn *, const LsData *);
/* Returns the statement's position among those of its kind in the text of the function, from 1. */
uint32_t ls_number(const LoopFn *, const LsData *);
/* Returns the bytes of shared memory up to the end of the array of an LS_SHARED, if the arrays in
 * front of it take `before` bytes. */
uint64_t loop_shared_bytes(const LsData *, uint64_t before);
/* The number of statements of a block, nested ones included; 0 if the block is none. */
uint32_t loop_statements(const LoopFn *, Lb);
/* Adds an LS_CALL of a user operator. Copies arg[]. */
void ls_call(LoopFn *, const LoopCall *, const Lx *arg, uint32_t narg);
void ls_prefetch(LoopFn *, LMem, Lx offset, uint32_t level); /* into the cache of level 1, 2 or 3 */
/* The locality that C compilers and LLVM take: 3 keeps the line in all caches. */
static inline uint32_t ls_locality(const LsData *prefetch) { return 4 - prefetch->k; }
/* Adds an LS_FENCE: what LS_STREAM wrote is visible to other threads behind it. */
void ls_fence(LoopFn *);
/* Adds a comment to the text of the function. */
void ls_comment(LoopFn *, const char *);
/* For blocks of threads. Adds an LS_SHARED: an array in shared memory. Returns its memory. */
LMem ls_shared(LoopFn *, const char *name, DType dtype, uint64_t count);
/* Adds an LS_SYNC: a barrier of all threads of the block. */
void ls_sync(LoopFn *);
/* Adds an LS_COPY_ASYNC: begins a copy of `bytes` bytes to shared memory. mask: a bool scalar, or
 * none. */
void ls_copy_async(LoopFn *, LMem to, Lx offset, LMem from, Lx from_offset, uint32_t bytes, Lx mask);
/* Adds an LS_COPY_COMMIT: the copies that the thread began since the last one are a group. */
void ls_copy_commit(LoopFn *);
/* Adds an LS_COPY_WAIT: at most `groups` groups of the thread are still under way behind it. */
void ls_copy_wait(LoopFn *, uint32_t groups);
/* Returns the memory of buffer argument k, with elements of storage dtype d. */
static inline LMem lmem_buf(uint32_t k, DType d) { return (LMem){MEM_BUFFER, k, d}; }

/* Removes statements whose results are not used, and loops and branches that literals decide;
 * does as loop_propagate, too. Other lets that are used once stay (C compilers fold them). */
void loop_simplify(LoopFn *);
/* Unrolls loops of a constant number of rounds, at most 4, with at most 6 statements, none of which
 * has a body; then does as loop_propagate. A step of legalising. */
void loop_unroll(LoopFn *);
/* Removes lets of literals, parameters and immutable variables; readers read the value. */
void loop_propagate(LoopFn *);
/* Returns an expression that is as x but for its operands in[], as many as x has; folded again, but
 * for LX_SHUFFLE, LX_TABLE and LX_WARP. An expression without operands stays as it is. */
Lx lx_rebuild(LoopFn *, Lx x, const Lx *in);
/* Turns integer literals of index arithmetic whose absolute value exceeds `keep`, except in offsets
 * into local and shared arrays, in numbers of lanes of exchanges, and in arithmetic of LX_THREAD
 * and literals only, into parameters, in order of first appearance. Returns the number of new
 * parameters, and sets *value to the array of their values, which are all positive, in the arena of
 * the Ir's context. So equal layers have equal code. */
uint32_t loop_parametrise(LoopFn *, int64_t keep, const int64_t **value);
/* Appends the text form of the function; a library function has a form of its own, which loop_parse
 * does not take. anonymous: the
 * text does not depend on name and comment, and is the key by which equal functions are found. */
void loop_print(const LoopFn *, Text *, bool anonymous);
/* Parses printed text whose buffers and parameters have distinct names. Scalar functions must exist
 * already. Tables of launches lose their words; calls of user operators are errors. Returns NULL
 * after an error. */
LoopFn *loop_parse(Ir *, const char *text);
/* Functions that add a statement of programs, LS_LAUNCH to LS_OUTLINED, which LsKind describes.
 * They copy arg[]. */
void ls_launch(LoopFn *, uint32_t call, Lx ntasks, const Lx *arg, uint32_t nbuf, uint32_t narg);
/* Says that the next launch belongs to the phase of the launch before, which is the last statement
 * of the innermost open block. Has no effect if that statement is no launch. */
void ls_same_phase(LoopFn *);
/* Adds an LS_READ of the value of the dtype, an integer or bool, at the address. Returns its
 * variable: a bool for DT_bool, else an i64. owner: ProgramArg.owner, or 0. */
Lv ls_read(LoopFn *, const char *name, DType, Lx address, uint32_t owner);
/* Adds an LS_SAVE; see LsKind. values, at: the owners (ProgramArg.owner) of the buffers of arg[2]
 * and arg[3]; at 0: nbuf is 3. */
void ls_save(LoopFn *, const Lx *arg, uint32_t nbuf, uint32_t narg, uint32_t values, uint32_t at);
/* Marks the statement that was added last, an LS_READ, as the one that reads the size symbol; for
 * the interpreter. */
void ls_reads_size(LoopFn *, Sym);
/* Allocates (narg > 0) or frees the room that is buffer argument buf. */
void ls_room(LoopFn *, uint32_t buf, const Lx *arg, uint32_t narg);
/* Copies bytes between two addresses (LX_ADDR). */
void ls_copy(LoopFn *, Lx to, Lx from, Lx bytes);
/* Ends the call unless ok, with that message (program_message) and arg[] for its %lld. Adds nothing
 * if ok is a literal that is true. */
void ls_assert(LoopFn *, Lx ok, uint32_t message, const Lx *arg, uint32_t narg);
/* Sets result slot `slot` of `sizes`. */
void ls_result(LoopFn *, uint32_t slot, Lx);
/* Calls function k of those that are outlined from this one. first_extent: of `sizes`, the number
 * of the extent with which those of the called function start; else 0. */
void ls_outlined(LoopFn *, uint32_t k, uint64_t first_extent, const Lx *arg, uint32_t narg);
/* Checks scopes, types, memory and structure; of blocks that all threads reach barriers together,
 * and all of a warp its exchanges. With isa also that every operation is legal for
 * it (codegen/program/legalise.h); NULL: an operation may be any. Returns false after errors, which
 * the context has recorded. */
MUST_LOOK bool loop_verify(LoopFn *, const struct Isa *);

/* The subexpressions that one statement uses more than once, operands first; printers name them
 * ahead of the statement. The caller zeroes the struct before the first use. */
typedef struct {
	uint32_t *uses; /* by expression; all 0 between calls */
	uint32_t n;     /* length of uses */
	ARRAY(Lx) x;
} LoopShared;
/* Sets s->x to those subexpressions of the statement's expressions. Expressions without operands
 * (literals, parameters, variables, LX_THREAD) are left out. What is inside of such a subexpression
 * counts once for all its uses. Arrays lie in the arena of the Ir's context; the next call with s
 * overwrites s->x. */
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
/* Analyses the function and sets *n; arrays lie in the arena. */
void loop_index_init(LoopIndex *n, const LoopFn *, Arena *);
/* Whether the expression is index arithmetic. */
bool loop_is_index(LoopIndex *, Lx);
/* KNOWN_INDEX: the i64 operation is index arithmetic: it does not overflow and divisors are not 0.
 * KNOWN_NONNEG: operands are not negative. */
enum { KNOWN_INDEX = 1, KNOWN_NONNEG = 2 };
/* Returns which of these are known of an LX_SC expression, as bits; 0 if the expression is no index
 * arithmetic. */
unsigned loop_known(LoopIndex *, Lx);
/* Returns an array by Lx, in the arena: whether the expression reads a mutable variable, so that
 * its value may differ between two statements. */
const bool *loop_find_mutable(const LoopFn *, Arena *);

#endif
