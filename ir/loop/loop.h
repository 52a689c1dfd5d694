/* Loop IR: what schedules produce and emitters print. Every decision (tile, vector width,
 * unrolling, packing, task grid) has been taken. Expressions are interned, statements are lists; a
 * load is a statement; accumulators are named mutable variables. The program around the kernels
 * (`sizes`, `run`) is loop IR too, so no emitter invents guards, sizes or control flow. */
#ifndef WEFT_IR_LOOP_H
#define WEFT_IR_LOOP_H

#include "base/array.h"
#include "ir/graph/graph.h"
#include "ir/scalar/scalar.h"

typedef struct { uint32_t i; } Lx; /* interned expression, 0 none */
typedef struct { uint32_t i; } Lv; /* variable (immutable `let` or mutable `var`), 0 none */
struct Isa;
typedef struct { uint32_t i; } Lb; /* block: a statement list, 0 none */

/* Type of a value: dtype and lanes. lanes == 1 is a scalar; DT_bool with lanes > 1 is a mask.
 * Compute dtypes only (f32, f64, i32, i64, u8.. ints, bool); loads and stores convert storage
 * types. */
typedef struct {
	DType dtype;
	uint32_t lanes;
} LType;

/* Pure expressions. Index arithmetic is i64 scalars. */
typedef enum {
	LX_INT,     /* i (any int dtype or bool), splat over lanes */
	LX_FLOAT,   /* f (f32, f64), splat over lanes */
	LX_PARAM,   /* kernel parameter k: i64 scalar, from the frame */
	LX_VAR,     /* value of variable v */
	LX_SC,      /* basic operation sc on in[] (see ir/scalar/scalar.h), lane-wise */
	LX_FN,      /* call of scalar function fn, lane-wise */
	LX_SPLAT,   /* in[0] (scalar) to all lanes */
	LX_RAMP,    /* i64 or i32 lanes: in[0] + in[1] * {0, 1, ...} */
	LX_MASK,    /* mask: lane k is k < in[0] (i64 scalar); in legal functions that is 0 to all
	               lanes */
	LX_HREDUCE, /* horizontal reduction of in[0] by sc: add, mul, min, max, and, or, xor; a
	               tree: lane k with lane k + lanes/2, until one is left; legal functions have
	               shuffles */
	LX_ANY,     /* bool scalar: any lane of mask in[0] */
	LX_SHUFFLE, /* lanes of in[0], in[1] in the order u.k: a Shuffle */
	LX_TABLE,   /* table[in[0]], lane-wise; i32 indices in range; legal functions only */
	LX_ADDR     /* program only: address of byte in[0] of the function's buffer argument u.k */
} LxKind;

typedef enum {
	SHUFFLE_LOW, SHUFFLE_HIGH, /* half of in[0]; in[1] is the same */
	SHUFFLE_REVERSE,           /* of in[0] */
	SHUFFLE_EVEN,              /* every second lane of in[0], then of in[1] from its second one
	                              on */
	SHUFFLE_ZIP_LOW, SHUFFLE_ZIP_HIGH, /* lanes of the low or high halves of in[0] and in[1] in
	                                      turn */
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
	LS_LOAD,  /* v = mem[offset] : lanes consecutive elements, or lanes == 1;
	             with mask: masked-off lanes are not touched and give 0; in legal functions
	             one lane has no mask (as stores): an LS_IF is around it; `in_order`: back ends
	             leave it where it is among other loads, so that registers suffice       */
	LS_GATHER,/* v = mem[offset + index lanes x]; with mask as LS_LOAD; k: by a load for each
	             lane */
	LS_STORE, /* mem[offset] = x, consecutive; with mask                                 */
	LS_STREAM, /* mem[offset] = x, a vector that nobody reads soon: past the caches if it is
	              aligned to its size; before the kernel ends, a fence */
	LS_SCATTER, /* mem[offset + index lanes y] = x, lanes in order; with mask            */
	LS_FOR,   /* for v in [x, y) step `step`: body                                       */
	LS_WHILE, /* while x: body                                                           */
	LS_IF,    /* if x: body else other                                                   */
	LS_LOCAL, /* task-local array of `count` elements of `dtype`, name as memory         */
	LS_FAIL,  /* record message k, whose %lld take arg[], unless this call of the kernel has
	             recorded one; go on */
	LS_CALL,  /* a user's operator: `call`; arg[]: of its operands and results in turn the
	             extents, and the values of what lies in no buffer; then the bytes of its
	             workspace. If it fails, as LS_FAIL */
	LS_PREFETCH, /* mem[offset], level k                                                 */
	LS_FENCE,  /* who sees what this thread writes from here on sees what it has written past
	              the caches */
	LS_COMMENT, /* text                                                                  */
	/* program only */
	LS_LAUNCH, /* call k (Program.call) over x tasks: frame buffers arg[0..nbuf) (LX_ADDR),
	              parameters arg[nbuf..narg); the end of the call where a check of the phase has
	              failed; `joined`: not yet, the next statement is a launch of the same phase */
	LS_READ,  /* v = the bool or integer of `dtype` that lies at address x. All that a program
	             knows of the contents of memory. k: the buffer, count: the size symbol that it
	             is, or 0, for the interpreter */
	LS_ROOM,   /* buffer argument k gets memory: of an output arg[] are its extents, else the
	              bytes; no arg: it is given back. The end of the call where there is none */
	LS_COPY,   /* y bytes from address x to address offset                               */
	LS_SAVE,   /* n items of so many bytes (arg[nbuf], arg[nbuf + 1]) of the state at arg[1] lie
	              at arg[2], as many items behind its beginning as the integers at arg[3] say,
	              or one after the other (nbuf = 3): if the call fails, they are put back.
	              arg[0]: SAVE_RECORD bytes; k, count: the buffers arg[2] and arg[3], for the
	              interpreter */
	LS_ASSERT, /* if not x: end the call with message k, whose %lld take arg[]           */
	LS_RESULT, /* result slot k of `sizes` = x                                           */
	LS_PART,   /* what part k of this function does; arg[]: its parameters, none: those of this
	             function; of `sizes`: its extents start at number `count`              */
	LS_TABLE,  /* legal functions: the launches of body, which a table describes; arg[]: what is
	             computed for it before                                                 */
	LS_COUNT
} LsKind;

enum { MAX_FAIL_ARGS = 1 + MAX_RANK }; /* of an LS_FAIL */

/* Lanes of a load that a shuffle leaves out: they are read, so they must be there, but nothing
 * depends on what lies there. */
typedef enum { DROPS_NONE, DROPS_ODD, DROPS_EVEN } LsDrops;

/* Memory a statement touches: buffer argument k of the kernel, or a local array. */
typedef struct {
	bool local;
	uint32_t k;   /* buffer index, or the Lv of the LS_LOCAL */
	DType dtype;  /* of the stored elements (storage dtype) */
} LMem;

/* What a call of a user's operator is given: its arguments, then its results. */
typedef struct LoopCall {
	const struct UserOp *op; /* ir/ops/user/userop.h */
	uint32_t nin, nout;
	const struct LoopCallTensor {
		DType dtype;
		uint32_t rank, nvalue;
		int32_t buf; /* of the kernel; -1: nvalue integers in arg[], of an f64 its bits */
	} *tensor;
	int32_t work; /* buffer; -1: none */
} LoopCall;

typedef struct {
	LsKind kind;
	Lv v;
	Lx x, y, mask, offset; /* offset in elements */
	LMem mem;
	int64_t step;
	uint32_t k, nbuf, narg;
	const Lx *arg;
	uint64_t count;
	bool joined; /* LS_LAUNCH */
	bool in_order; /* LS_LOAD */
	LsDrops drops; /* LS_LOAD of legal functions */
	bool rare;   /* LS_IF of legal functions: its body is hardly ever executed, which the back
	                end's language can say */
	DType dtype;
	Lb body, other;
	const char *text;
	const struct LaunchTable *table; /* LS_TABLE: codegen/program/launches.h */
	const LoopCall *call;
} LsData;

typedef struct {
	LType type;
	const char *name; /* a readable stem: "acc_3_1", "i", "x"; emitters make it unique */
	bool is_mutable;
	bool nonneg; /* an i64 scalar known to be >= 0: set by ls_let and ls_for */
} LvData;

typedef struct {
	const char *name; /* as in "x", "weight", "out": from the graph value */
	DType dtype;
	bool written, read;
	bool restrict_ok; /* no other argument overlaps it while the kernel runs */
	uint32_t align;   /* known alignment in bytes, at least the element's */
} LArg;

/* What a field of a statement holds. */
typedef enum {
	FIELD_NONE,    /* not used */
	FIELD_VALUE,   /* the value that v gets, or memory does */
	FIELD_INDEX,   /* an i64 scalar */
	FIELD_BOOL,    /* a bool scalar */
	FIELD_LANES,   /* i32 or i64 of the lanes of the value that is moved */
	FIELD_ADDRESS, /* LX_ADDR */
	FIELD_BUFFERS  /* arg: nbuf addresses, then i64 scalars */
} LsField;

/* What becomes of v. */
typedef enum {
	V_NONE,
	V_LET,    /* new: x */
	V_LOADED, /* new: what lies in mem */
	V_DATA,   /* new: not index arithmetic, whatever lies where it comes from */
	V_VAR,    /* new and mutable: x at first */
	V_ARRAY,  /* a new array */
	V_LOOP,   /* new, in body only: x and more */
	V_SET     /* gets x */
} LsVariable;

typedef enum { MEM_NONE, MEM_READ, MEM_WRITE, MEM_HINT } LsMemory;

/* What there is to know of a kind of statement: walks over statements (visit, map, verify, print,
 * parse, liveness, copies, costs) ask its row and list no kinds. */
typedef struct {
	const char *name; /* in messages */
	const char *form; /* its text, see print.c */
	LsField x, y, offset, arg;
	LsVariable v;
	LsMemory mem;     /* with offset */
	bool masked;      /* may have a mask */
	bool body, other; /* may have these blocks */
	bool anew;        /* x is computed before each round, not once */
	bool effect;      /* is kept although nothing reads what it gives */
	bool legal;       /* in legal functions only */
	uint32_t most;    /* arguments; 0: any number */
} LsRow;

const LsRow *ls_row(LsKind);

/* One kernel: int name(const Frame *, int64_t begin, int64_t end) over tasks. */
typedef struct LoopFn {
	Ir *ir;
	const char *name;
	const char *comment; /* graph lines; may hold line breaks */
	ARRAY(LArg) buf;
	ARRAY(const char *) param; /* names of the i64 parameters */
	ARRAY(Lv) arg;        /* of a library function: its arguments, values of any type */
	Lx result;            /* and its result, at the end of the body */
	bool is_inline;       /* worth repeating wherever it is called */
	ARRAY(LxData) lx;     /* [0] unused */
	ARRAY(bool) nonneg;   /* by Lx, of operations: known when it is made */
	Intern lx_table;
	ARRAY(LvData) lv;     /* [0] unused */
	ARRAY(LsData) ls;
	/* [0] unused; statement indices into ls */
	ARRAY(struct LBlock { ARRAY(uint32_t) stmt; }) block;
	Lb body;              /* for kernels: the body of one task */
	Lv task;              /* i64: the task number */
	ARRAY(Lb) open;       /* while building: innermost last */
} LoopFn;

LoopFn *loop_new(Ir *, const char *name);
uint32_t loop_buf(LoopFn *, LArg);           /* returns the buffer index */
uint32_t loop_param(LoopFn *, const char *name);
Lv loop_arg(LoopFn *, const char *name, LType);

/* Expressions: interned, folded when operands are literals (x+0, x*1, constants). Where one operand
 * is a vector and another a scalar, the scalar is splat. */
Lx lx_int(LoopFn *, int64_t);                /* i64 scalar */
Lx lx_int_of(LoopFn *, LType, int64_t);
Lx lx_float(LoopFn *, LType, double);
Lx lx_param(LoopFn *, uint32_t k);
Lx lx_var(LoopFn *, Lv);
Lx lx_sc(LoopFn *, ScOp, LType, const Lx *in, uint32_t nin);
Lx lx_fn(LoopFn *, const ScFn *, uint32_t lanes, const Lx *in, uint32_t nin);
Lx lx_add(LoopFn *, Lx, Lx);
Lx lx_sub(LoopFn *, Lx, Lx);
Lx lx_mul(LoopFn *, Lx, Lx);
Lx lx_div(LoopFn *, Lx, Lx); /* i64, floor; operands non-negative in index arithmetic */
Lx lx_mod(LoopFn *, Lx, Lx);
Lx lx_min(LoopFn *, Lx, Lx);
Lx lx_max(LoopFn *, Lx, Lx);
Lx lx_cmp(LoopFn *, ScOp, Lx, Lx);
Lx lx_and(LoopFn *, Lx, Lx);
Lx lx_select(LoopFn *, Lx c, Lx a, Lx b);
Lx lx_fma(LoopFn *, Lx a, Lx b, Lx c); /* a * b + c */
Lx lx_splat(LoopFn *, Lx, uint32_t lanes);
Lx lx_ramp(LoopFn *, Lx base, Lx step, uint32_t lanes);
Lx lx_mask(LoopFn *, Lx n, uint32_t lanes);
Lx lx_hreduce(LoopFn *, ScOp, Lx);
Lx lx_any(LoopFn *, Lx);
Lx lx_shuffle(LoopFn *, Shuffle, Lx a, Lx b);
/* Which lane of the operands (of so many lanes, in[1]'s after in[0]'s) is lane k of the result. */
uint32_t shuffle_lane(Shuffle, uint32_t k, uint32_t lanes);
const char *shuffle_name(Shuffle);
/* It has lanes of in[1]. */
bool shuffle_is_of_two(Shuffle);
Lx lx_table(LoopFn *, const ScTable *, Lx index);
/* Without folding: an operation as it is to be emitted, and the same expression of other
 * operands. */
Lx lx_op(LoopFn *, ScOp, LType, const Lx *in, uint32_t nin, unsigned known);
Lx lx_with(LoopFn *, Lx, const Lx *in);
Lx lx_addr(LoopFn *, uint32_t buf, Lx bytes);
/* Known to be >= 0: literals, parameters (always non-negative by contract), loop variables, and
 * sums, products, quotients and so on of such. */
bool lx_nonneg(const LoopFn *, Lx);
/* Every expression of a statement: calls visit for x, y, mask, offset and arg[], absent ones
 * skipped. */
void ls_visit(const LoopFn *, const LsData *, void (*visit)(void *, Lx), void *data);
/* Each of them becomes what map gives; arg[] is a new array. */
void ls_map(LoopFn *, LsData *, Lx (*map)(void *, Lx), void *data);
MUST_LOOK bool lx_is_int(const LoopFn *, Lx, int64_t *value);
/* Distance of the elements that an unmasked gather of several lanes reads, where it is -1 or 2:
 * what loads and a shuffle do instead. Else 0. */
int ls_stride(const LoopFn *, const LsData *);
static inline LType lx_type(const LoopFn *f, Lx x) { return f->lx.data[x.i].type; }

/* Statements are appended to the innermost open block. */
Lv ls_let(LoopFn *, const char *name, Lx);
Lv ls_var(LoopFn *, const char *name, Lx init);
void ls_set(LoopFn *, Lv, Lx);
Lv ls_load(LoopFn *, const char *name, LMem, Lx offset, LType, Lx mask); /* type: compute dtype */
Lv ls_load_in_order(LoopFn *, const char *name, LMem, Lx offset, LType, Lx mask);
Lv ls_gather(LoopFn *, const char *name, LMem, Lx offset, Lx index, DType, Lx mask);
void ls_store(LoopFn *, LMem, Lx offset, Lx value, Lx mask);
void ls_stream(LoopFn *, LMem, Lx offset, Lx value);
void ls_scatter(LoopFn *, LMem, Lx offset, Lx index, Lx value, Lx mask);
Lv ls_for(LoopFn *, const char *name, Lx lo, Lx hi, int64_t step); /* opens the body */
void ls_while(LoopFn *, Lx);
void ls_if(LoopFn *, Lx);
void ls_else(LoopFn *);
void ls_end(LoopFn *); /* closes the innermost for, while or if */
LMem ls_local(LoopFn *, const char *name, DType, uint64_t count);
void ls_fail(LoopFn *, uint32_t message, const Lx *arg, uint32_t narg);
/* Where ok (bool scalar or mask) does not hold; with mask only in its lanes. */
Lx lx_fails(LoopFn *, Lx ok, Lx mask);
/* A branch that ends in a failure: hardly ever taken, so it belongs out of the way. */
bool ls_is_rare(const LoopFn *, const LsData *);
/* Statements of a block, those inside of others included. */
uint32_t loop_statements(const LoopFn *, Lb);
void ls_call(LoopFn *, const LoopCall *, const Lx *arg, uint32_t narg);
void ls_prefetch(LoopFn *, LMem, Lx offset, uint32_t level); /* into the cache of that level: 1, 2
                                                                or 3 */
/* As C compilers and LLVM count it: 3 stays in all caches. */
static inline uint32_t ls_locality(const LsData *prefetch) { return 4 - prefetch->k; }
void ls_fence(LoopFn *);
void ls_comment(LoopFn *, const char *);
static inline LMem lmem_buf(uint32_t k, DType d) { return (LMem){false, k, d}; }

/* Statements that compute nothing that is used go, and so do loops and branches decided by literals
 * and lets of what has a name already; single-use lets stay (the C compiler folds them). */
void loop_simplify(LoopFn *);
/* Loops of a few constant rounds become copies of their bodies; a part of legalising. */
void loop_unroll(LoopFn *);
/* Lets of literals, parameters and other immutable variables go; what reads them reads the
 * value. */
void loop_propagate(LoopFn *);
/* The same operation on new operands, folded again. */
Lx lx_rebuild(LoopFn *, Lx, const Lx *in);
/* Integer literals of absolute value above `keep` in index arithmetic, offsets into local arrays
 * excepted, become parameters, in order of first appearance; value[] (arena) receives what each new
 * parameter stands for. Makes equal layers share code. */
uint32_t loop_parametrise(LoopFn *, int64_t keep, const int64_t **value);
/* Text, deterministic, independent of name and comment when `anonymous`: the key for interning. */
void loop_print(const LoopFn *, Text *, bool anonymous);
/* From such text, whose buffers and parameters have names of their own; NULL after ctx_error.
 * Scalar functions are those that exist already. Tables of launches stay without their words, and
 * calls of users' operators are refused. */
LoopFn *loop_parse(Ir *, const char *text);
/* Program statements. */
void ls_launch(LoopFn *, uint32_t call, Lx ntasks, const Lx *arg, uint32_t nbuf, uint32_t narg);
/* The next launch belongs to the phase of the launch before, if that is the last statement of the
 * open block. */
void ls_join(LoopFn *);
/* A bool, else an i64. owner: as ProgramArg's, or 0. */
Lv ls_read(LoopFn *, const char *name, DType, Lx address, uint32_t owner);
void ls_save(LoopFn *, const Lx *arg, uint32_t nbuf, uint32_t narg, uint32_t values, uint32_t at);
/* The value read is that of a size symbol, which the interpreter remembers. */
void ls_reads_size(LoopFn *, Sym);
void ls_room(LoopFn *, uint32_t buf, const Lx *arg, uint32_t narg);
void ls_copy(LoopFn *, Lx to, Lx from, Lx bytes);
void ls_assert(LoopFn *, Lx ok, uint32_t message, const Lx *arg, uint32_t narg);
void ls_result(LoopFn *, uint32_t slot, Lx);
void ls_part(LoopFn *, uint32_t part, uint64_t first_extent, const Lx *arg, uint32_t narg);
/* Scopes, types, memory, structure; with isa also that every operation is one that it takes
 * (codegen/program/legalise.h). */
MUST_LOOK bool loop_verify(LoopFn *, const struct Isa *);

/* Subexpressions with operands that one statement uses more than once, operands first: what
 * printers name ahead of the statement. Zero the struct before the first use; x is overwritten by
 * each call. */
typedef struct {
	uint32_t *uses; /* by expression, all 0 between calls */
	uint32_t n;     /* length of uses */
	ARRAY(Lx) x;
} LoopShared;
void loop_shared(const LoopFn *, const LsData *, LoopShared *);

/* Index arithmetic: i64 scalars computed from literals, parameters and loop variables. Sizes and
 * indices do not overflow, and divisors in them are not 0. The function must not change while this
 * is in use. */
typedef struct {
	const LoopFn *f;
	bool *data;     /* by variable: its value (contents) comes from elsewhere */
	uint8_t *index; /* by expression: 0 not asked yet, 1 index arithmetic, 2 not */
	bool changed;
} LoopIndex;
void loop_index_init(LoopIndex *, const LoopFn *, Arena *);
bool loop_is_index(LoopIndex *, Lx);
/* What is known of the operands of an i64 operation: sizes and indices, so it does not overflow and
 * divisors are not 0; not negative. */
enum { KNOWN_INDEX = 1, KNOWN_NONNEG = 2 };
unsigned loop_known(LoopIndex *, Lx);
/* By Lx: its value may differ from one statement to the next. */
const bool *loop_find_mutable(const LoopFn *, Arena *);

#endif
