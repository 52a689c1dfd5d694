/* The op table: one block for each operator, in ops/<folder>/<family>.c. A scanner collects the
 * blocks at build time into oplist.h, so an operator is added in one place. A block has a row for
 * each overload with the same meaning (Overload).
 *
 * Terms. A node calls an operator; its operands are nodes, its attributes are the other arguments.
 * A scalar function is an element-wise operator of one shape; the other primitives are structural;
 * a composite is defined by its expansion into other operators. b is a Build (ir/build/build.h):
 * nodes are added in front of b->before. Errors are recorded in the context (base/ctx.h). */
#ifndef WEFT_IR_OP_OP_H
#define WEFT_IR_OP_OP_H

#include "ir/graph/graph.h"
#include "ir/op/lower.h"
#include "ir/op/node.h"

typedef struct Build Build; /* ir/build/build.h */

/* The kind of an operator's definition. */
typedef enum {
	OP_SCALAR,    /* element-wise primitive: operands and result have one shape; meaning in
			 .scalar */
	OP_PRIMITIVE, /* structural primitive: .infer and .eval */
	OP_COMPOSITE  /* expands: .expand, .build or .build_as */
} OpKind;

/* ATen type promotion of an element-wise composite (ATen's names in brackets). */
typedef enum {
	PROMOTE_NONE,
	PROMOTE_DEFAULT,       /* common dtype                       */
	PROMOTE_FLOAT,         /* int and bool to the default float  */
	PROMOTE_BOOL,          /* common dtype, result bool          */
	PROMOTE_INT            /* bool to i64                        */
} Promote;

/* What torch.autocast does with the operands of an operator before the call. In a graph whose
 * operands are f32, the result has the dtype that is said behind the class. */
typedef enum {
	AUTOCAST_ANY,    /* nothing: promotion decides */
	AUTOCAST_LOW,    /* converts all floats to the low dtype: low */
	AUTOCAST_F32,    /* converts all floats to f32: f32 */
	AUTOCAST_WIDEST, /* converts all floats to the widest dtype among them: that */
	AUTOCAST_FIRST   /* nothing, and operand 0 alone decides (weights of a normalisation may be
	                    wider): its dtype, of the first result */
} Autocast;

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
	VIEW_REAL,    /* the real parts of complex numbers */
	VIEW_IMAG,    /* their imaginary parts */
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
 * (ops/rules/linear.h). */
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
	CHECKS_ZERO,  /* every element of operand 0 is 0 */
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

/* A function for several operators, and what it is called with for one of them: an operator, a
 * kind, a flag. */
typedef struct {
	Node (*f)(Build *b, Node n, int how);
	int how;
} BuildAs;

struct Tensor;     /* ir/interp/tensor.h */
struct EvalCtx;    /* ir/interp/interp.h */
struct Parts;      /* ops/rules/parts.h */

/* An overload: an op that shares the definition of its block under another schema: other kinds or
 * numbers of arguments (add.Scalar beside add.Tensor), another rank (conv2d beside conv1d), a
 * second name that models use (arcsin beside asin), a copy instead of a view, more results
 * (var_mean beside var), a function that asks which op it is (ceil beside floor). It is an op of
 * its own: it has an enumerator, OP_ and the name of its schema with "_" for ".", and is found by
 * that name and by its aliases; op_info, op_schema and the tests treat it like a block.
 *
 * A row says its schema and what differs. What it does not say it has from its block:
 *   - .aliases are its own; there are none if it says none;
 *   - .expand, .build or .build_as replace what the block expands to; a row that says neither is
 * expanded by the block's, whose function finds the arguments by their names and asks which are
 * there;
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
	BuildAs build_as;
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
	const char *deviates; /* where the results are not PyTorch's, on purpose: a sentence without
	                         a full stop, for docs/operators.md and `weft ops` */
	/* What the operands are converted to before the operator computes. Of an operator with
	 * .build, which converts them itself, this says only that it does: an integer beside a
	 * storage type is rounded to that type first (ops/rules/expand_wide.h). */
	Promote promote;
	/* What autocast does on CPUs, and on GPUs where that is another class (ANY: as on CPUs).
	 * Asked by passes/precision.c and, whichever of the two is said, for regions of files with
	 * autocast on (frontend/pt2/autocast.c). */
	Autocast autocast, autocast_gpu;
	Expands expands;
	bool effect;                             /* nodes are never removed, and stay in order */
	bool (*has_effect)(const Graph *, Node); /* whether this node has an effect; NULL: as
						    `effect` says */
	bool (*draws)(const Graph *, Node);      /* of an operator with RANDOM_ARGS
						    (ops/prim/random.h): whether this node draws
						    random numbers; NULL: it does */
	const char *mode; /* the argument that says whether the model trains; NULL: none */
	ViewKind view;
	ViewIf view_if;
	bool itself; /* in PyTorch, a call that changes neither shape nor dtype returns the operand
			itself, with its autograd history */
	const char *view_undo; /* VIEW_BITS: the operator that turns the view back; NULL: a write
				  through the view is an error */

	/* Function transforms (docs/transforms.md). A composite that has one of these fields, or
	 * .deriv, is kept by canon, so that it is derived and batched as a whole. If it has no rule
	 * for a transform, its expansion is transformed.
	 *
	 * .vjp: a text in the language of .expand, "lets; [gx, none]": the list of the cotangents
	 * of the operands, in terms of the arguments, the results (y, or y0, y1, ...) and their
	 * cotangents (g, or g0, g1, ...; zeros if there is none). It must be linear in g. The
	 * caller sums the cotangent of a broadcast operand and converts it to the operand's type.
	 *
	 * .adjoint: the same as a function. ct[r] is the cotangent of result r; no node means zero,
	 * and one at least is a node. The rule sets g[k] for operand k if want[k]; g[] holds no
	 * nodes before, and no node means zero. It returns false after b_error. The rule of a
	 * linear primitive reads nothing but attributes and the operands in which the primitive is
	 * not linear, so it may be called if the others have no value.
	 *
	 * .jvp: a text, the tangent of the result in terms of the arguments, y, and t_NAME for each
	 * tensor argument NAME. NULL, and no .tangent: the transpose of the rule for cotangents.
	 *
	 * .tangent: the same as a function. t[k] is the tangent of operand k, no node means zero;
	 * the rule sets ty[r] of result r, and returns false after b_error. .tangent_if: whether
	 * the rule holds for this node; NULL: it does.
	 *
	 * .batch: adds n for a batch of `size` members (op_batch). in[k] is operand k, with the
	 * batch as a new first dimension if batched[k], which one at least is. n is in the graph,
	 * and the rule may read its attributes and its operands' types. Returns the result, with
	 * the batch dimension, or no node after b_error. Scalar functions need no rule.
	 *
	 * .batch_leading: n's operator itself computes the batch: leading dimensions are
	 * independent of each other, and no attribute counts dimensions from the front. */
	Linear linear;
	uint32_t linear_in; /* bits: the operands in which the operator is linear (.linear); 0: all,
			       if .linear is set. Where .linear is not set: linear in these,
			       which its expansion, if it has one, does not show */
	bool (*linear_if)(const Graph *, Node); /* whether .linear holds for this node; NULL: it
						   does */
	const char *vjp, *jvp;
	bool (*adjoint)(Build *b, Node n, const Node *ct, const bool *want, Node *g);
	bool (*tangent)(Build *b, Node n, const Node *t, Node *ty);
	bool (*tangent_if)(const Graph *, Node);
	Node (*batch)(Build *b, Node n, const Node *in, const bool *batched, Sym size);
	bool batch_leading;

	/* The rules hold for complex operands, too: the transforms leave nodes of the operator
	 * whole. (Nodes of other operators with complex operands are taken apart first, by
	 * .parts.) */
	bool whole;

	/* How n is computed on the real and imaginary parts of its operands (the contract is that
	 * of node_parts, ops/rules/parts.h). NULL: a linear primitive (.linear) is applied to each
	 * part, a bilinear one is four products; other operators stay complex, for the interpreter.
	 */
	bool (*parts)(Build *b, Node n, const struct Parts *in, struct Parts *out);

	/* ---- facts that passes and transforms ask about ----
	 * The facts up to .along only make code better: an operator that does not state them is
	 * compiled correctly. The facts from .along on must be stated if they hold. */

	/* .eval takes about as long as reading the operands and writing the result. A scalar
	 * function always folds. Asked by passes/fold/fold.c. */
	Folds folds;
	/* The node has one operand, and every element of the result is an element of the operand,
	 * unchanged. So the result of a splat is a splat. Asked by the rules of passes/simplify. */
	bool moves;
	/* The elements of the result are numbers of its dtype wherever they are read. (Arithmetic
	 * in a storage dtype gives such numbers only when its result is stored, docs/numerics.md.)
	 * The result of an operator that moves is rounded if the operand is. Asked by
	 * passes/simplify/scalar.c. */
	bool rounded;
	/* f(x, y) and f(y, x) have the same bits, apart from the payload of a NaN. Asked by
	 * passes/simplify/scalar.c. */
	bool commutes;
	/* What becomes of dimensions. Element-wise operators need not say DIMS_SAME. Asked by
	 * transform/partition/order.c, which follows images. */
	Dims dims;
	/* The value of a 0-d integer as an expression of sizes, from the values of the operands.
	 * Returns none if the value is not known. The caller checks that the value fits the node's
	 * dtype. Asked by transform/derive_while.c, which counts the rounds of a loop. */
	Sym (*integer)(const Graph *, Node, const Sym *in);
	/* Of an operator that sums products (LOWER_ANCHOR), which must have it: from[d] is the
	 * dimension of operand 1 along which dimension d of the result runs, or -1. The other
	 * dimensions of operand 1 are summed over. Asked by passes/fold/fold_scale.c and
	 * transform/partition/cost.c. */
	void (*along)(const Graph *, Node, int from[MAX_RANK]);
	/* Two equal nodes stay two nodes. Asked by passes/cse.c. */
	bool apart;
	/* The call ends with an error unless an operand is as it must be. Asked (node_checks) by
	 * transform/batch*.c, which must not check for members of a batch that do not execute the
	 * node, by passes/fold/fold.c, and by ops/prim/control.c: a check may be repeated. */
	Checks checks;
	/* The node runs code of the user: only the author of that code knows what the node does
	 * with its operands. Asked by ops/rules/linear.c and transform/batch_control.c. */
	bool foreign;
	/* Whether all ranks that work on one computation execute the node, or none, in one order.
	 * NULL: no. Asked (graph_collective) by ops/prim/control.c, which refuses such nodes in
	 * the graphs of control flow. */
	bool (*collective)(const Graph *, Node);
	/* The node may execute its graphs without end, so it must not begin if no member of a batch
	 * wants its results. Asked by transform/batch_control.c. */
	bool endless;
	/* The results are the first operands, and the node does not execute its graphs: it only
	 * says something about these values (Mark). Such an operator is a composite that expands in
	 * decompose; transform/partition reads the marks before. */
	Mark (*marks)(const Graph *, Node);
	/* Whether the node lets products of f32 and of constant weights of at most 8 bits round
	 * their other operand to 8 bits: of a composite that has such products, or of a primitive
	 * whose result is that operand. NULL: no. Asked (graph_rounds) by
	 * passes/quantize/quantize.c and driver/api. */
	bool (*rounds)(const Graph *, Node);

	/* Scalar functions; .deriv also of composites that are element-wise up to broadcasting */
	const char *scalar;   /* an expression of the operands' names, see ir/scalar/scalar.h */
	const char *deriv[4]; /* d result / d operand k, in terms of the operands and the result
	                         y */
	const char *no_deriv; /* for messages: why an operand has no derivative */
	const char *complex;  /* the value for complex operands, in the language of .expand: "lets;
				 y" or "lets; [re, im]", in terms of an operand x and its parts x_re
				 and x_im */
	DType result;         /* DT_none: the operands' dtype; else fixed (DT_bool for
	                         comparisons) */
	bool exact;           /* the result is a value of any storage type that holds the
	                         operands */

	/* Primitives: returns the result's type from operands and attributes, or 0 after an error,
	 * which begins with `where`. */
	TypeId (*infer)(Graph *, Op, const Node *in, uint32_t nin, AttrId, const char *where);
	/* Primitives: computes all results out[] of a node from in[], for the interpreter. All
	 * tensors are row-major and have their extents; out[] has memory. Returns false after an
	 * error. */
	bool (*eval)(struct EvalCtx *, Graph *, Node, const struct Tensor *in, struct Tensor *out);
	bool accumulates;     /* adds or multiplies: rounds to a storage type */
	OpLower lower;        /* how it becomes part of kernels */

	/* Composites: .expand is a text over the names of arguments (the grammar is in
	 * ops/rules/expand.c); .build is a function that adds the expansion of n and returns its
	 * result, a tuple if there are several, or no node after an error; .build_as is such a
	 * function with a parameter, {triangle, true}. A composite may have .infer and .eval, too.
	 */
	bool rounds_each; /* PyTorch computes it by several operators, each of which rounds to the
	                     storage type; so does the expansion (else see
	                     ops/rules/expand_wide.h) */
	bool narrow_scalars; /* scalar arguments are rounded to the operand's storage type; else
				they are f32 */
	bool unrounded_other; /* a tensor `other` without dimensions beside a tensor of a storage
				 type is not rounded to that type: it is f32 */
	const char *expand;
	Node (*build)(Build *b, Node n);
	BuildAs build_as;

	const char *sample;    /* calls for the generic tests, see above */
	const char *no_sample; /* why there is no sample */

	const Overload *overloads; /* (const Overload[]){...}; scripts/oplist.py counts them; NULL:
	                              none */
} OpInfo;

/* Argument kinds of a schema. */
typedef enum {
	ARG_tensor,
	ARG_tensors, /* operands */
	ARG_int,
	ARG_ints,
	ARG_float,
	ARG_floats,
	ARG_bool,
	ARG_bools,
	ARG_scalar,
	ARG_str,
	ARG_dtype,
	ARG_graph,
	ARG_const,
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
	bool tensor_results; /* each result is a Tensor */
} Schema;

/* Begins a block (ops/). */
#define OP(name) \
	extern const OpInfo op_##name; \
	const OpInfo op_##name =

#include "oplist.h" /* generated: enum { OP_none, OP_input, ... } of the ops that code names */

/* Parses the text of one schema into *s, with all that *s points to in the arena. Sets *err to NULL
 * and returns true. If the text is no schema, returns false: *s has no meaning, and *err is a
 * sentence in the arena that says what was expected, and where. */
bool schema_parse(Arena *, const char *text, Schema *s, const char **err);

/* Builds the table of names, once per process. Any thread may call; the functions below call it
 * where they need it, and parse a schema or complete an overload when it is first asked for.
 * Running out of memory, in op_init and in these, unwinds to the place of arena_catch
 * (base/arena.h). */
void op_init(void);
/* Returns "; did you mean aten.relu?", in the arena, for a name that is no operator's; "" if no
 * operator has a name like it. */
const char *op_hint(Arena *, const char *name);
/* Returns one more than the number of operators: operators are 1 .. op_count() - 1, and 0 is
 * OP_none. */
uint32_t op_count(void);
/* Returns the block of an operator; of an overload its row, completed from the block, with
 * .overloads NULL. Never NULL: of OP_none and of numbers out of range it is a block with nothing
 * but a schema. */
const OpInfo *op_info(Op);
/* Returns the operator whose block has the row of an overload; another operator itself; OP_none
 * for a number out of range. */
Op op_block(Op);
/* Returns what defines the operator: OP_SCALAR if its block has .scalar, OP_COMPOSITE if it has
 * .expand, .build or .build_as, else OP_PRIMITIVE, also for OP_none and numbers out of range. */
OpKind op_kind(Op);
/* Returns the parsed schema; never NULL. Of OP_none and of numbers out of range: a schema without
 * arguments and results. */
const Schema *op_schema(Op);
/* Returns the name in the schema: "aten.add.Tensor". "none" for OP_none and for numbers out of
 * range. */
const char *op_name(Op);
/* Returns the operator whose schema has the name, or which has the name as an alias; the name of an
 * operator without overload may end with ".default", as PyTorch writes it. OP_none if there is
 * none. */
Op op_find(const char *name);
/* Returns the index of the argument in op_schema(op)->arg; -1 if the schema has no such
 * argument. */
int op_arg_index(Op op, const char *name);
/* Returns what the node checks when it runs: .checks of its operator, but CHECKS_NOTHING instead of
 * CHECKS_INDEX if node_index_mode is a mode that checks no indices. */
Checks node_checks(const Graph *, Node);
/* Returns what .marks of the node's operator says of the node; MARK_NONE if it has no .marks. */
Mark node_mark(const Graph *, Node);
/* Returns the value of which n says something (Mark). If n's operator has .marks and n's value is a
 * tensor: operand 0. If n is a `get` of result k of a node whose operator has .marks: operand k of
 * that node. No node for other nodes. */
Node node_marked(const Graph *, Node n);
/* Whether .rounds holds for the node. */
bool node_rounds(const Graph *, Node);
/* Whether products of the graph round operands to 8 bits: all that can (Graph.activations), or
 * those of nodes that let them (.rounds), unless the graph is to be exact. */
bool graph_rounds(const Graph *);
/* Whether the expansion is a function: .build or .build_as. */
static inline bool op_builds(const OpInfo *i)
{
	return i->build || i->build_as.f;
}
/* Whether the operator is a scalar function. */
static inline bool op_is_scalar(Op op) { return op_kind(op) == OP_SCALAR; }
/* Returns how the operator becomes part of kernels; never NULL. Of a scalar function the row is of
 * role LOWER_MAP, fuses FUSE_CHEAP and keeps KEEPS_INDEX; of a composite, of OP_none and of a
 * number out of range the row is of role LOWER_NONE. */
const OpLower *op_lower(Op);
/* Returns the default of an argument, as an attribute; one of kind ATTR_none if the default is
 * None, if there is no default, and for arguments that are tensors, graphs, constants or ignored.
 * Lists lie in the arena of the Ir's context. */
Attr op_default(Ir *, const Arg *);
/* Whether the default's text is well-formed for the argument's kind. int: an integer of 64 bits,
 * Mean or Sum. float: a finite number, inf or nan. bool: True or False. int[]: a list of
 * integers, or one integer if the schema says how many. Any kind if the argument is optional:
 * None. True for arguments of other kinds, and if there is no default. For the test of the
 * table. */
bool op_default_reads(const Arg *);
/* Whether an attribute is of the argument's kind. The attribute of a Tensor argument, and of an
 * ignored one, is ATTR_none. The attribute of a Tensor[] argument is the constant number of its
 * tensors. ATTR_none fits every other argument that is optional. A Scalar argument takes a bool, an
 * integer, a float or a complex number. */
bool op_attr_fits(const Ir *, const Arg *, const Attr *);

/* Whether an operator has a rule for cotangents: .deriv, .vjp or .adjoint. A composite without a
 * rule is expanded before it is transformed. */
bool op_has_vjp(Op);
/* Whether an operator has a rule for tangents (.deriv, .linear, .jvp or .tangent), or one for
 * cotangents, whose transpose gives tangents. */
bool op_has_jvp(Op);
/* Whether an operator has a rule for batches: it is a scalar function or a composite with .deriv,
 * or has .batch or .batch_leading. */
bool op_has_batch(Op);
/* Whether op_jvp can be called: the node has a rule for tangents of its own. (Else its rule for
 * cotangents is transposed.) */
bool node_has_jvp(const Graph *, Node);
/* Whether the node is its own tangent: a primitive with .linear that holds for this node. Scalar
 * functions have .deriv instead. */
bool node_is_linear(const Graph *, Node);
/* Whether an operator is a composite with .deriv: it broadcasts its operands and computes element
 * by element. */
bool op_is_element_wise(Op);
/* Whether pass canon keeps the composite: it has a rule, or EXPANDS_IN_DECOMPOSE. */
bool op_is_kept(Op);

/* Adds the expansion of a call of a composite with these operands and attributes, by its
 * block. Returns the result, a tuple if there are several or none; no node after errors. Of
 * several errors only the first is recorded. */
Node op_expand(Build *, Op, const Node *in, uint32_t nin, AttrId);
/* Adds the expansion of a node n of a composite and returns as op_expand does; n stays in the
 * graph, unread by the expansion. b->before must be n, or a node before n. An expansion in a
 * storage type is done in f32 where PyTorch computes in f32 (ops/rules/expand_wide.h). */
Node op_expand_node(Build *b, Node n);
/* Whether n is a sum of products of elements of two operands, along and beside dimensions. */
bool node_is_contraction(const Graph *, Node n);
/* Whether n converts floats to floats: no other operator of one operand changes their dtype. */
bool node_converts_floats(const Graph *, Node n);
/* Whether n's last operand is complex and its operator has .complex. */
bool node_has_complex(const Graph *, Node n);
/* Adds nodes that compute n's value by .complex, from real and imaginary parts, and returns it;
 * node_has_complex must hold. Returns no node after errors. */
Node op_complex(Build *, Node n);
#endif
