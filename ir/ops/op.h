/* The op table: one block for each operator, in ir/ops/<room>/<family>.c. A scanner collects the
 * blocks at build time into oplist.h, so an operator is added in one place. A block has a row for
 * each overload with the same meaning (Overload). */
#ifndef WEFT_IR_OP_H
#define WEFT_IR_OP_H

#include "ir/graph/build.h"
#include "ir/graph/graph.h"
#include "ir/ops/lower.h"

/* The kind of an operator's definition. */
typedef enum {
	OP_SCALAR,    /* element-wise primitive: operands and result have one shape; meaning in
	                 .scalar */
	OP_PRIMITIVE, /* structural primitive: .infer and .eval */
	OP_COMPOSITE  /* expands: .expand or .build */
} OpKind;

/* ATen type promotion of an element-wise composite (ATen's names in brackets). */
typedef enum {
	PROMOTE_NONE,
	PROMOTE_DEFAULT,       /* common dtype                       */
	PROMOTE_FLOAT,         /* int and bool to the default float  */
	PROMOTE_BOOL,          /* common dtype, result bool          */
	PROMOTE_INT            /* bool to i64                        */
} Promote;

/* When a composite expands: in canon, so that later passes never see it; or in decompose, if it has
 * a rule or a schedule of its own. */
typedef enum { EXPANDS_IN_CANON, EXPANDS_IN_DECOMPOSE } Expands;

/* How a result is a view of an operand: the schema's Tensor(a), and some that ATen's schemas do not
 * mark. After a write through either, the importer gives the other its new value
 * (frontend/pt2/alias.c). */
typedef enum {
	VIEW_NONE,
	VIEW_SAME,    /* the operand itself */
	VIEW_DETACHED, /* the operand itself, detached: a write through it is no part of the
	                  operand's history */
	VIEW_RESHAPE, /* the same elements in the same order */
	VIEW_PERMUTE,
	VIEW_SLICE,
	VIEW_SELECT,
	VIEW_PIECES,  /* several slices of one dimension */
	VIEW_ADJOINT, /* transposed and conjugated */
	VIEW_BITS,    /* another dtype over the same bytes; .view_undo goes back */
	VIEW_OTHER    /* some of the elements, at most once each */
} ViewKind;

/* When the result is a view and not a copy. */
typedef enum {
	VIEW_ALWAYS,
	VIEW_IF_STRIDES,   /* the operand's strides allow it */
	VIEW_IF_UNCHANGED, /* dtype and strides stay the same, and `copy` is not set */
	VIEW_IF_COMPLEX,   /* real numbers are the operand itself */
	VIEW_IF_IDLE       /* dropout that drops nothing */
} ViewIf;

/* The operands (.linear_in, a bit each) in which a primitive is linear: its tangent and its
 * cotangents follow. For a scalar function, whose .deriv says the same, this is a fact for analysis
 * (ir/ops/linear.h). */
typedef enum {
	LINEAR_NOT,
	LINEAR_ALONE,   /* in each of them while the others are constant: x and y of contract */
	LINEAR_TOGETHER /* in all of them at once: the operands of concat; x and value of pad */
} Linear;

/* Whether pass_fold computes an operator with constant operands. */
typedef enum {
	FOLDS_NOT,
	FOLDS_INSIDE, /* as a step towards another constant; its own value is larger than the
	                 node */
	FOLDS         /* yes, and the value may become a constant */
} Folds;

/* The dimensions of the result, compared with those of operand 0. */
typedef enum {
	DIMS_OTHER,     /* no answer below fits */
	DIMS_SAME,      /* the same, of the same extents */
	DIMS_RESIZED,   /* the same, but extents differ */
	DIMS_APPENDED,  /* extents differ, and one more dimension is the last one */
	DIMS_ABSORBED,  /* extents differ, and the last one is not there any more */
	DIMS_REDUCED,   /* those in the attribute `dim` or `dims` are not there any more */
	DIMS_REGROUPED  /* others, of the same elements in row-major order */
} Dims;

/* What a node checks of its operands when it runs; a failure ends the call with an error. */
typedef enum {
	CHECKS_NOTHING,
	CHECKS_TRUTH, /* every element of operand 0 is true */
	CHECKS_INDEX  /* the indices in operand 1 are in range, if `mode` says so
	                 (node_index_mode) */
} Checks;

/* What a node says about its operands to the passes that choose which values are saved for
 * gradients. */
typedef enum {
	MARK_NONE,
	MARK_BEGIN, /* a checkpointed block begins, whose values are computed again instead of
	               saved */
	MARK_END,   /* the block ends */
	MARK_KEEP   /* the value is saved although it is in a block */
} Mark;

struct Tensor;     /* ir/interp/tensor.h */
struct EvalCtx;    /* ir/interp/interp.h */
struct Parts;      /* ir/ops/parts.h */

/* An overload: an op that shares the definition of its block under another schema: other kinds or
 * numbers of arguments (add.Scalar beside add.Tensor), another rank (conv2d beside conv1d), a
 * second name that models use (arcsin beside asin), a copy instead of a view, more results
 * (var_mean beside var), a function that asks which op it is (ceil beside floor). It is an op of
 * its own: it has an enumerator, OP_ and the name of its schema with "_" for ".", and is found by
 * that name and by its aliases; op_info, op_schema and the tests treat it like a block.
 *
 * A row says its schema and what differs. What it does not say it has from its block:
 *   - .aliases are its own; there are none if it says none;
 *   - .expand or .build replace what the block expands to; a row that says neither is expanded by
 *     the block's, whose function finds the arguments by their names and asks which are there;
 *   - .sample or .no_sample replace the block's samples; a row that says neither has the samples of
 *     the block, whose calls must then be calls of its own schema;
 *   - .view, .view_if, .view_undo and .itself are the block's if the schemas of both mark a result
 *     as a view (Tensor(a)) or neither does; otherwise the row is no view;
 *   - everything else (promotion, derivatives, rules of transforms, effects, level, types) is the
 *     block's and cannot differ: an op for which it would is a block.
 * Only composites have overloads. A row that says what it would have anyway, or both of two, is a
 * fault of the table (tests/unit/ir_op.c); a field that is not here does not compile. */
typedef struct {
	const char *schema;
	const char *aliases;
	const char *doc;
	const char *expand;
	Node (*build)(Build *b, Node n);
	bool narrow_scalars; /* as in OpInfo, or as the block */
	const char *sample;
	const char *no_sample;
} Overload;

/* Samples: calls of the op as the text form of graphs writes them, with ";" between calls; each
 * operand is a type with its values.
 *
 *   call   = item { "," item } [ "->" k ]     "-> 1": the graph returns result 1 only
 *   item   = tensor | "[" tensor { "," tensor } "]" | "none" | name "=" attribute
 *   tensor = dtype "[" extents "]" [ "in" lo ".." hi | "distinct" lo ".." hi | "of" numbers ]
 *
 *   "f32[n=3, 4] in -8..8, i64[n] of 0 2 1, dim=1; f32[2, 5] distinct -4..5, dim=0"
 *
 * An extent "n=3" names a size, which the same call may use in extents and attributes; the tests
 * take it as a number and as a symbol. Values: "in", pseudo-random and the same everywhere
 * (fractions are one of 65 places between lo and hi, so that ties occur); "distinct", a permutation
 * of equal steps (of lo, lo + 1, ... for integers); "of", the numbers, over and over, where blanks
 * separate them; otherwise -4..4, for unsigned dtypes 0..8. f32 stands for every dtype that the op
 * accepts there. tests/help/sample.c reads it, tests/make/make_samples.py asks PyTorch for the
 * results. */
typedef struct OpInfo {
	const char *schema; /* "aten.add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) ->
	                       Tensor" */
	const char *aliases; /* other names for it, with the same arguments, blanks between; NULL:
	                        none */
	const char *doc;    /* one line, for docs and `weft show` */
	Promote promote;
	Expands expands;
	bool effect;        /* never removed, kept in order */
	bool (*has_effect)(const Graph *, Node); /* of some nodes only; NULL: as `effect` says */
	bool (*draws)(const Graph *, Node); /* of those with a key (ir/ops/prim/random.h): whether
	                                       it is needed; NULL: always */
	const char *mode; /* the argument that says whether the model trains; NULL: none */
	ViewKind view;
	ViewIf view_if;
	bool itself; /* a call that changes neither shape nor dtype returns the operand, history and
	                all, as one of the view_ifs does */
	const char *view_undo; /* VIEW_BITS: the operator that goes back; NULL: nothing can be
	                          written through it */

	/* Function transforms (docs/transforms.md). A composite that has one of these, or .deriv,
	 * is kept by canon, so that it is derived and batched as a whole; where it has none for a
	 * transform its expansion is transformed.
	 *
	 * .vjp: the cotangents of the operands as a list, "lets; [gx, none]", in terms of the
	 * arguments, the results (y, or y0, y1, ...) and their cotangents (g, or g0, g1, ...; zeros
	 * where there is none). The language of .expand. Those of a broadcast or promoted operand
	 * are summed and converted to its type by the caller. Must be linear in g. .adjoint: the
	 * same as a function: g[k] for operand k where want[k]; none is zero. ct[r]: of result r;
	 * none is zero, and at least one is not. False after b_error. Of a primitive that is linear
	 * nothing but attributes and the other operands is read, so it may be called where those
	 * operands have no value. .jvp: the tangent of the result, in terms of the arguments, y and
	 * t_NAME for every tensor argument. Without one the transposed .vjp or .adjoint is taken.
	 * .tangent: the same as a function: t[k] of operand k, none is zero; ty[r] of result r.
	 * .tangent_if: of some nodes only. .batch: n for a batch of `size`: in[k] is operand k,
	 * with the batch as a new first dimension where batched[k] (of one at least); n keeps its
	 * operands, whose types and attributes a rule may read. All results have the batch. None
	 * after b_error. Of scalar functions it is known. .batch_leading: n itself, where leading
	 * dimensions are independent of each other and no attribute counts them. */
	Linear linear;
	uint32_t linear_in; /* 0, of those that are linear: every operand; of a composite: it is
	                       linear in these, which its expansion does not show */
	bool (*linear_if)(const Graph *, Node); /* of some nodes only; NULL: of all */
	const char *vjp, *jvp;
	bool (*adjoint)(Build *b, Node n, const Node *ct, const bool *want, Node *g);
	bool (*tangent)(Build *b, Node n, const Node *t, Node *ty);
	bool (*tangent_if)(const Graph *, Node);
	Node (*batch)(Build *b, Node n, const Node *in, const bool *batched, Sym size);
	bool batch_leading;

	/* Of complex numbers: n of the real and imaginary parts of its operands (node_parts in
	 * ir/ops/parts.h has the contract). NULL: a linear primitive (.linear) is applied to each
	 * part, a bilinear one is four products; others stay complex, for the interpreter. */
	bool (*parts)(Build *b, Node n, const struct Parts *in, struct Parts *out);

	/* ---- facts that passes and transforms ask about ----
	 * The facts up to .along only make code better: an operator that does not state them is
	 * compiled correctly. The facts from .along on must be stated if they hold. */

	/* .eval takes about as long as reading the operands and writing the result. A scalar
	 * function always folds. Asked by passes/fold.c. */
	Folds folds;
	/* The node has one operand, and every element of the result is an element of the operand,
	 * unchanged. So the result of a splat is a splat. Asked by passes/simplify_*.c. */
	bool moves;
	/* The elements of the result are numbers of its dtype wherever they are read. (Arithmetic
	 * in a storage dtype gives such numbers only when its result is stored, docs/numerics.md.)
	 * The result of an operator that moves is rounded if the operand is. Asked by
	 * passes/simplify_scalar.c. */
	bool rounded;
	/* f(x, y) and f(y, x) have the same bits, apart from the payload of a NaN. Asked by
	 * passes/simplify_scalar.c. */
	bool commutes;
	/* What becomes of dimensions. Element-wise operators need not say DIMS_SAME. Asked by
	 * transform/partition_order.c, which follows images. */
	Dims dims;
	/* The value of a 0-d integer as an expression of sizes, from the values of the operands.
	 * Returns none if the value is not known. The caller checks that the value fits the node's
	 * dtype. Asked by transform/derive_while.c, which counts the rounds of a loop. */
	Sym (*integer)(const Graph *, Node, const Sym *in);
	/* Of an operator that sums products (LOWER_ANCHOR), which must have it: from[d] is the
	 * dimension of operand 1 along which dimension d of the result runs, or -1. The other
	 * dimensions of operand 1 are summed over. Asked by passes/fold_scale.c and
	 * transform/partition_cost.c. */
	void (*along)(const Graph *, Node, int from[MAX_RANK]);
	/* Two equal nodes stay two nodes. Asked by passes/cse.c. */
	bool apart;
	/* The call ends with an error unless an operand is as it must be. Asked by
	 * transform/batch*.c, which must not check for members of a batch that do not execute the
	 * node, and by passes/fold.c. */
	Checks checks;
	/* The node runs code of the user: only the author of that code knows what the node does
	 * with its operands. Asked by ir/ops/linear.c and transform/batch_control.c. */
	bool foreign;
	/* The node may execute its graphs without end, so it must not begin if no member of a batch
	 * wants its results. Asked by transform/batch_control.c. */
	bool endless;
	/* The results are the first operands, and the node does not execute its graphs: it only
	 * says something about these values (Mark). Such an operator is a composite that expands in
	 * decompose; transform/partition*.c read the marks before. */
	Mark (*marks)(const Graph *, Node);

	/* OP_SCALAR; .deriv also of composites that are element-wise up to broadcasting */
	const char *scalar;   /* body over the operand names, see ir/scalar/scalar.h */
	const char *deriv[4]; /* d result / d operand k, in terms of the operands and the result
	                         y */
	const char *no_deriv; /* why an operand of a function of real numbers has none */
	const char *complex;  /* of complex numbers: "lets; y" or "lets; [re, im]", the language of
	                         .expand, of operands x and their parts x_re and x_im */
	DType result;         /* DT_none: the operands' dtype; else fixed (DT_bool for
	                         comparisons) */
	bool exact;           /* the result is a value of any storage type that holds the
	                         operands */

	/* OP_PRIMITIVE: the result's type from operands and attributes; 0 after ctx_error. */
	TypeId (*infer)(Graph *, Op, const Node *in, uint32_t nin, AttrId, const char *where);
	/* Compute out[0..nout) (allocated, row-major, concrete shape) from in[]. False after
	 * ctx_error. */
	bool (*eval)(struct EvalCtx *, Graph *, Node, const struct Tensor *in, struct Tensor *out);
	bool accumulates;     /* adds or multiplies: rounds to a storage type */
	OpLower lower;        /* how it becomes part of kernels */

	/* OP_COMPOSITE: one expression over argument names, or a function that builds the
	 * replacement at b's position and returns it (a tuple node when the op has several
	 * results); none after ctx_error. A composite may also carry .infer and .eval of its
	 * own. */
	bool rounds_each; /* a composite that PyTorch makes of operators, each of which rounds; the
	                     expansion rounds by itself */
	bool narrow_scalars; /* scalar arguments take the operand's storage type; else composites
	                        see f32 */
	const char *expand;
	Node (*build)(Build *b, Node n);

	const char *sample;    /* calls for the generic tests, see below */
	const char *no_sample; /* why there is none */

	const Overload *overloads; /* (const Overload[]){...}; scripts/oplist.py counts them; NULL:
	                              none */
} OpInfo;

/* Argument kinds of a schema. */
typedef enum {
	ARG_tensor, ARG_tensors, /* operands */
	ARG_int, ARG_ints, ARG_float, ARG_floats, ARG_bool, ARG_bools, ARG_scalar, ARG_str, ARG_dtype,
	ARG_graph, ARG_const,
	ARG_ignored /* layout, device, memory format, pin_memory, generator: accepted, no meaning */
} ArgKind;

typedef struct {
	const char *name;
	ArgKind kind;
	bool optional;    /* "?" in the schema */
	bool has_default;
	bool kw_only;
	bool shares;      /* (a): results may share its memory */
	bool writes;      /* (a!) */
	uint32_t size;    /* int[2]: a lone int is repeated that often; 0 none */
	const char *text; /* the default as written, "" none */
} Arg;

typedef struct {
	const char *name; /* "aten.add.Tensor", "reduce" */
	uint32_t narg;
	const Arg *arg;
	uint32_t nresult; /* 0: none; UINT32_MAX: Tensor[] */
	bool view;        /* a result shares memory with an argument: Tensor(a) */
	bool tensor_results; /* each result is one */
} Schema;

#define OP(name) \
	extern const OpInfo op_##name; \
	const OpInfo op_##name =

#include "oplist.h" /* generated: enum { OP_none, OP_input, ... } of the ops that code names */

/* Parses one schema into the arena. Returns false on bad text; *err says what was expected, and
 * where. */
bool schema_parse(Arena *, const char *text, Schema *, const char **err);

/* Parses all schemas and completes all overloads, once per process. Any thread may call; the
 * functions below call it. */
void op_init(void);
uint32_t op_count(void); /* operators are 1 .. op_count() - 1; 0 is none */
const OpInfo *op_info(Op); /* of an overload: its row, completed from its block; .overloads is
                              NULL */
Op op_block(Op); /* the operator whose block has the overload's row; else the operator itself */
OpKind op_kind(Op);
const Schema *op_schema(Op);
const char *op_name(Op); /* the schema's name */
Op op_find(const char *name); /* by schema name or alias; OP_none if unknown */
int op_arg_index(Op, const char *name); /* -1 if the schema has no such argument */
/* The checks of a node; CHECKS_INDEX only if its mode checks. */
Checks node_checks(const Graph *, Node);
/* The mark of a node; MARK_NONE if its block has no .marks. */
Mark node_mark(const Graph *, Node);
/* n is a node with .marks, or a `get` of one: returns the operand whose value n is. Returns none
 * for other nodes. */
Node node_marked(const Graph *, Node);
static inline bool op_is_scalar(Op op) { return op_kind(op) == OP_SCALAR; }
const OpLower *op_lower(Op); /* LOWER_NONE for composites */
/* The default of an argument, as an attribute; ATTR_none for None, and if there is no default. */
Attr op_default(Ir *, const Arg *);
/* Whether the text of the default is complete and of the argument's kind: an integer of 64 bits, a
 * finite number, inf or nan, True or False, a list of integers. True for other kinds. */
bool op_default_reads(const Arg *);
/* Whether the argument may have this attribute. The slot of a Tensor[] has the constant number of
 * tensors. */
bool op_attr_fits(const Ir *, const Arg *, const Attr *);

/* Infers the result type of a scalar function, or of an operator with .infer. Returns 0 after
 * errors, for operators without a result, and for composites without .infer. */
TypeId op_infer(Build *, Op, const Node *in, uint32_t nin, AttrId);

/* Expands a composite at b's position, by .expand or .build. Returns the result (a tuple if there
 * are several), or none after errors. */
Node op_expand(Build *, Op, const Node *in, uint32_t nin, AttrId);
/* Expands an existing node, which stays. b->before must be the node, or a node before it. */
Node op_expand_node(Build *, Node);
/* op_complex expands a scalar node of complex numbers by .complex, at b's position; none after
 * errors. node_has_complex: whether .complex says how. */
bool node_has_complex(const Graph *, Node);
Node op_complex(Build *, Node n);
/* The real or imaginary part of x; the complex number of two parts. */
Node b_part(Build *, Node x, bool imaginary);
Node b_complex(Build *, Node re, Node im);

/* ---- rules of transforms (ir/ops/derive.c); n is a node of b->g, before b->before ---- */

/* Whether an operator has a rule: for cotangents (.deriv, .vjp, .adjoint), for tangents (.deriv,
 * .linear, .jvp, .tangent), for batches. A composite without a rule expands. A node without a rule
 * for tangents uses the transposed rule for cotangents. */
bool op_has_vjp(Op);
bool op_has_jvp(Op);
bool op_has_batch(Op);
bool node_has_jvp(const Graph *, Node);
/* Whether canon does not expand the composite: it has a rule, or a schedule (.expands). */
bool op_is_kept(Op);
/* Computes cotangents of n's operands from those of its results. ct[r]: of result r; none means
 * zero. Sets g[k], of operand k's type, for each operand with want[k]; none means zero. Returns
 * false after an error, also if no derivative is known. */
bool op_vjp(Build *, Node n, const Node *ct, const bool *want, Node *g);
/* Computes tangents of n's results, ty[r], from those of its operands, t[k] (none: zero). The node
 * must have a rule (node_has_jvp). */
bool op_jvp(Build *, Node n, const Node *t, Node *ty);
/* For rules: zeros of a value's type; the sum of x and y (none: zero); n with other operands, whose
 * types may differ. */
Node b_zeros_like(Build *, Node);
Node b_add(Build *, Node x, Node y);
Node b_again(Build *, Node n, const Node *in);
/* n for a batch of `size` members. in[k]: operand k, with the batch as new first dimension if
 * batched[k]; at least one is batched. All results have the batch dimension. Without a rule, n is
 * executed for one member after the other. Returns none after errors, and for a node without a
 * result. */
Node op_batch(Build *, Node n, const Node *in, const bool *batched, Sym size);
/* The sum of x over the dimensions that broadcasting `like` to x's shape repeats, in the dtype of
 * `like`. */
Node b_sum_to(Build *, Node x, Node like);

/* Checks the texts of .expand and of the rules of a composite: names and calls are known, numbers
 * of arguments right. Returns NULL, or what is wrong. */
const char *op_expand_check(Op);

#endif
