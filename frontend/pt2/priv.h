/* Shared by the files of the .pt2 importer. */
#ifndef WEFT_FRONTEND_PT2_PRIV_H
#define WEFT_FRONTEND_PT2_PRIV_H

#include <jansson.h>

#include "frontend/files/archive.h"
#include "frontend/pt2/pickle.h"
#include "frontend/pt2/pt2.h"
#include "frontend/pt2/srepr.h"
#include "ir/graph/build.h"
#include "ir/ops/op.h"

/* A tensor as the file describes it. Strides and offset are in elements of its storage. */
typedef struct {
	DType dtype;
	uint32_t rank;
	const Sym *size, *stride;
	Sym offset;
} Meta;

/* A weight that wraps tensors, or a part of one, as its pickle holds it. */
typedef struct {
	const char *label; /* "a.weight", "a.weight.qdata" */
	const PickleValue *value;
	Archive *archive; /* with the contents of the pickle's tensors */
	bool is_param;
	ConstId constant; /* of a tensor */
} Wrapped;

/* One graph input that is not the user's. */
typedef struct {
	const char *name; /* of the parameter or buffer; NULL for user inputs */
	InputKind kind;
	bool written; /* by the graph: becomes an input of the result */
	ConstId constant;
	Wrapped *wrapped; /* instead of a constant */
	const Member *member; /* of the archive, where the contents lie; NULL: not known to share
	                         memory */
	Meta meta;            /* how they lie there */
	uint32_t owner;       /* the state spec that holds this one's memory: itself, or one that it
	                         is a view of */
	uint32_t same_as;     /* the first state spec that is the same tensor under another name, or
	                         itself */
	int32_t tangled;      /* of an owner: another that is in its memory and is no view of it, or
	                         -1 */
	uint32_t value;       /* of this pass */
} StateSpec;

typedef struct {
	const char *where, *text;
} Warning;

/* The members of a nested input or output, in the order of the flat ones. */
typedef struct {
	const PathKey *key;
	uint32_t n;
} TreeLeaf;

typedef struct {
	ARRAY(TreeLeaf) leaf;
} Tree;

typedef struct {
	Ir *ir;
	Ctx *ctx;
	SymTab *syms;
	Archive *archive;
	const Pt2Options *options;
	const char *model;
	json_t *root;                /* of models/<name>.json */
	json_t *weights, *constants; /* name -> payload; may be NULL */
	json_t *inputs, *outputs;    /* of the signature */
	bool decomposed;             /* by run_decompositions(): the file does not say what autograd
	                                sees */
	Tree input_tree, output_tree; /* of the user's; without leaves where the file does not
	                                 say */
	StateSpec *state;            /* by input spec */
	ARRAY(Warning) warning;      /* of the last pass over the nodes */
	Intern wrapped_name;         /* the graph's names of weights that wrap tensors */
	ARRAY(Wrapped *) wrapped;    /* by name id - 1 */
	Intern loose;                /* names of symbols that the file holds for 2 at least where 0
	                                is meant: meta_symbols */
} Import;

/* What a file's name of a tensor stands for. Values that share memory share a Storage. */
typedef struct {
	Node node; /* its contents when `version` is the storage's; else stale */
	uint32_t storage, version;
	uint32_t parent; /* the value it is a view of, 0 for the base of its storage */
	Node view;       /* the node that made it from the parent; none: equal to the parent */
	uint32_t self;   /* which operand of `view` is the parent */
	bool no_grad;    /* a view that was made under torch.no_grad() of memory with a history: it
	                    has none itself */
	int32_t elem;    /* which result of `view`, -1 when it has one */
	Meta meta;
} Value;

typedef struct {
	uint32_t base;    /* value */
	uint32_t version; /* grows with every write */
	int32_t spec;     /* graph input whose memory this is, or -1 */
	bool history;     /* autograd may know where its contents come from */
	bool by_mode;     /* in the other mode other values are in this memory */
} Storage;

/* A graph under construction and the memory its values live in. */
typedef struct {
	Import *im;
	Graph *g;
	ARRAY(Value) value;     /* [0] unused */
	ARRAY(Storage) storage; /* [0] unused */
	bool rewrote;           /* views were written through: there may be dead nodes */
	bool is_body;           /* of an operator: what it requires is checked when it runs */
	bool no_grad;           /* what is made now has no history: torch.no_grad() */
} State;

/* A graph of the file being read into a State. Graphs that are inlined have a scope of their own.
 */
typedef struct {
	State *st;
	json_t *graph;
	Intern names;
	ARRAY(uint32_t) value; /* by name id - 1 */
	const char *where;     /* of the node being read */
	Build b;
} Scope;

/* pt2_load of an open archive. */
Graph *pt2_load_archive(Ir *, Archive *, const Pt2Options *);

/* ---- pt2/meta.c: JSON to types ---- */

/* A member of an object as a string, NULL when it is absent or something else. */
const char *json_str(const json_t *object, const char *key);
/* The one key of a tagged union, NULL when there is not exactly one; *value receives its value. */
const char *json_tag(const json_t *object, json_t **value);
DType pt2_dtype(int64_t code);            /* DT_none when unsupported */
const char *pt2_dtype_name(int64_t code); /* for messages */
/* {as_int} or {as_expr}; none after ctx_error. */
Sym meta_sym(Import *, const json_t *, const char *where);
/* A TensorMeta object; `name` is the tensor's. False after ctx_error. */
bool meta_read(Import *, const json_t *, const char *name, const char *where, Meta *);
TypeId meta_type(Import *, const Meta *);
/* Row-major with gaps nowhere? */
bool meta_is_contiguous(Import *, const Meta *);
/* Create the symbols with their ranges and hints. False after ctx_error. */
bool meta_symbols(Import *);
/* The condition is none of the model's: that a result which the exporter knows nothing of has 2
 * elements. */
bool meta_is_loose(const Import *, const Cond *);
/* Ranges of expressions and the guards of the file become guards of the graph. */
bool meta_guards(Import *, Graph *);
/* Add a condition to the graph: as a guard when it is about sizes; a warning otherwise. */
bool meta_require(Import *, Graph *, const Cond *, const char *where, const char *text);
void import_warn(Import *, const char *where, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- pt2/tree.c: nested inputs and outputs ---- */

/* The leaves of the treespec "in_spec" or "out_spec" of the signature; none where it is absent or
 * malformed. */
void tree_read(Import *, const char *which, Tree *);
/* The name of argument k of forward, NULL when the file does not say. */
const char *tree_argument(const Import *, size_t k);
/* The leaf of the inputs that a guard means by L['name']..., -1 when there is none, or more than
 * one. */
int64_t tree_find(const Import *, const Tree *, const PathKey *path, uint32_t n);
/* The keys joined by "_"; NULL when none of them is a name. */
const char *tree_name(Import *, const TreeLeaf *);

/* ---- weights.c ---- */

/* The contents of a parameter, buffer or constant: a constant, or tensors in a wrapper. False after
 * ctx_error. */
bool weight_load(Import *, const char *name, bool is_param, StateSpec *);
/* A tensor in the bytes of a member. False after ctx_error. */
bool weight_contents(Import *, const char *name, const Meta *, const char *member, const Bytes *, bool is_param, ConstId *);

/* ---- pt2/share.c: weights that lie in the same memory ---- */

/* Fill in `owner`, `same_as` and `tangled` of all n specs, whose contents are read. */
void share_find(Import *, uint32_t n);
/* The graph writes it, and with it the memory of others. */
void share_written(Import *, uint32_t spec);
/* No memory that is written has tensors that are not views of one. False after ctx_error. */
bool share_check(Import *, uint32_t n);
/* The value of a spec that lies in the memory of another's value; 0 after ctx_error. */
uint32_t share_view(Scope *, uint32_t spec, uint32_t owner, const char *name);

/* ---- subclass.c: weights that wrap tensors ---- */

/* What torch.save wrote, the bytes of a member. False after ctx_error. */
bool wrapped_read(Import *, const char *label, const char *member, const Bytes *, bool is_param, StateSpec *);
/* The graph calls it so. */
void wrapped_bind(Import *, const char *name, Wrapped *);
Wrapped *wrapped_find(const Import *, const char *name); /* NULL: none */
/* A node that names one of its tensors. */
bool import_inner_tensor(Scope *, const json_t *node);

/* ---- alias.c: which results are views, and how to write through them ---- */

/* How result `out` of the operator shares the memory of operand `in`. */
ViewKind alias_kind(State *, Node made, const Meta *in, const Meta *out);
/* Of such a result: it is the operand itself, so autograd sees no operator. */
bool alias_is_itself(const State *, Node made, ViewKind, const Meta *in, const Meta *out);
/* The contents of value v's parent after v became `update`; none after ctx_error. */
Node alias_inverse(State *, Build *, const Value *v, Node parent, Node update);

/* ---- functional.c: memory ---- */

uint32_t value_new(State *, Node, const Meta *);
uint32_t value_view(State *, uint32_t parent, Node view, uint32_t self, int32_t elem, Node,
		    const Meta *);
/* What made v from its parent, applied to other contents of the parent's shape, of this dtype. */
Node view_replay(State *, const Value *v, Node parent, DType);
/* The current contents. */
Node value_read(State *, Build *, uint32_t v);
/* All views of the same memory change too. False after ctx_error. */
bool value_write(State *, Build *, uint32_t v, Node);
/* The value in a graph where autograd is as it is now: what was made under torch.no_grad() is cut
 * off from what it was made of where gradients are enabled again. 0 after ctx_error. */
uint32_t value_enter(State *, Build *, uint32_t v);
/* `value` in the place of `old`, whose history it has; of dtypes without derivatives the value
 * itself. */
Node value_with_history(Build *, Node value, Node old);
/* One-dimensional view of the whole memory v lives in; 0 after ctx_error. */
uint32_t value_flat(State *, Build *, uint32_t v);

/* ---- pt2/args.c ---- */

/* A call under construction: operands and attributes in the order of the op's schema. */
typedef struct {
	Op op;
	ARRAY(Node) in;
	ARRAY(uint32_t) value; /* of operand k, 0 when it is none of the file's */
	Attr attr[MAX_ARGS];
	DType beside; /* of the tensors among the arguments, promoted: what a number that depends on
	                 data takes part in */
} Call;

/* Read the arguments of a file's node for `op`. False after ctx_error. */
bool call_read(Scope *, const json_t *node, Op op, Call *);
/* The same in the order of a schema that is none of the op table's; c->op is left as it is. */
bool call_read_as(Scope *, const json_t *node, const Schema *, Call *c);
/* A list of symbolic integers (as_ints, as_sym_ints). False after ctx_error. */
bool arg_syms(Scope *, const char *tag, const json_t *arg, const Sym **out, uint32_t *n);
/* The argument of that name, or the k-th positional one; its tag in *tag, NULL when absent. */
json_t *arg_find(const json_t *node, const char *name, size_t k, const char **tag);
/* A constant argument; the fallback when absent. */
bool arg_bool(const json_t *node, const char *name, size_t k, bool fallback);
double arg_double(const json_t *node, const char *name, size_t k, double fallback);
/* A tensor argument's value; 0 when absent or unknown. */
uint32_t arg_value(Scope *, const json_t *node, const char *name, size_t k);
/* A fraction as an f64 without dimensions, where it or a part of it depends on data too. None after
 * ctx_error. */
Node arg_float_value(Scope *, const char *tag, const json_t *arg);
/* It is a fraction that depends on data; the call has such an argument. */
bool arg_is_data(Scope *, const char *tag, const json_t *arg);
bool call_has_data(Scope *, const json_t *node);
/* Any Python scalar, for the argument of that name. False after ctx_error. */
bool arg_scalar(Scope *, const char *name, const char *tag, const json_t *arg, Attr *);
/* A symbolic integer argument (as_int, as_sym_int). False after ctx_error. */
bool arg_sym(Scope *, const char *tag, const json_t *arg, Sym *);

/* ---- pt2/node.c ---- */

/* A result of a file's node. */
typedef struct {
	const char *name; /* NULL: not a tensor */
	Meta meta;
} Result;

typedef ARRAY(Result) Results;

/* False after ctx_error. */
bool read_results(Scope *, const json_t *node, Results *);
uint32_t scope_find(const Scope *, const char *name);
bool scope_bind(Scope *, const char *name,
		uint32_t value); /* false after ctx_error: defined twice */
void scope_rebind(Scope *, uint32_t old, uint32_t new); /* the names of one value are another's */
bool scope_meta(Scope *, const char *name, Meta *);
bool meta_shapes_agree(const Meta *, const Meta *);
const char *node_label(const json_t *node);              /* its name; never NULL */
/* "net.py:12 in encoder.layer.0", the user's line and the module; NULL when the file does not
 * say. */
const char *node_frame(Import *, const json_t *node);
const char *node_position(Import *, const json_t *node); /* "model.pt2: node add (net.py:12)" */
void scope_init(Scope *, State *, json_t *graph);
void state_init(State *, Import *, Graph *);
/* All nodes of scope->graph. False after ctx_error. */
bool scope_nodes(Scope *);

/* ---- pt2/strided.c ---- */

/* A view of the memory of value `self`, whatever view of it that is: sizes and strides of *m from
 * `offset`, in elements of the file's storage. 0 after ctx_error. */
uint32_t strided_view(Scope *, uint32_t self, const Meta *m, Sym offset, const char *name);
bool import_as_strided(Scope *, const json_t *node);
struct Target;
bool import_resize(Scope *, const json_t *node, const struct Target *);

/* ---- pt2/target.c ---- */

typedef enum {
	TARGET_UNKNOWN,
	TARGET_OP,
	TARGET_IN_PLACE,      /* op: its functional form */
	TARGET_OUT,           /* op: its functional form; the result replaces argument `out` */
	TARGET_IN_PLACE_VIEW, /* transpose_ and the like: op is the view */
	TARGET_COPY,
	TARGET_FILL,
	TARGET_ZERO, /* all elements replaced; "aten.copy" returns a new tensor */
	TARGET_AS_STRIDED,
	TARGET_OBSERVED, /* op: its functional form, whose last results replace the arguments that
			    are written */
	TARGET_RESIZE,   /* resize_: the name of the operand changes its shape, too */
	TARGET_NOTHING,  /* no tensors result, no meaning here */
	TARGET_SYMBOLIC, /* scalars, known from their expressions */
	TARGET_ITEM,     /* the one element of a tensor as a number */
	TARGET_ASSERT_SCALAR,
	TARGET_ASSERT_METADATA,
	TARGET_INNER_TENSOR, /* of a weight that wraps tensors */
	TARGET_USER,         /* an operator of the user */
	TARGET_INLINE,
	TARGET_COND,
	TARGET_WHILE,
	TARGET_SCAN,
	TARGET_MAP
} TargetKind;

typedef struct Target {
	TargetKind kind;
	Op op;
	const struct UserOp *user;
	const char *name; /* "aten.add.Tensor", ".default" dropped */
} Target;

Target target_of(Import *, const char *target);
/* One error listing what the graph uses that is not supported. */
bool targets_check(Import *, const json_t *graph);

/* ---- pt2/hop.c: operators with graphs as arguments ---- */

/* A condition on sizes, as a value: an argument {as_sym_bool}. None after ctx_error. */
Node symbolic_condition(Scope *, const json_t *arg);

bool import_hop(Scope *, const json_t *node, Target);

/* ---- pt2/number.c ---- */

/* The result, of this type, of an operator whose schema has a constant where the call has a
 * fraction that depends on data: full, the alpha of a sum. None: it is another call, or an
 * error. */
Node import_with_number(Scope *, const json_t *node, const char *op, const Meta *);

/* x.item(): an integer or a bool is a symbol from here on, a fraction a value without
 * dimensions. */
bool import_item(Scope *, const json_t *node);
/* Arithmetic of fractions that depend on data; all other numbers are known from their
 * expressions. */
bool import_symbolic(Scope *, const json_t *node, const char *target);

/* ---- pt2/user.c ---- */

/* A call of an operator of the user. */
bool import_user(Scope *, const json_t *node, const struct UserOp *);

/* ---- pt2/norm.c ---- */

/* The running statistics that a normalisation updates in training, as new values. */
bool import_running_stats(Scope *, const json_t *node, const char *name);
/* The functional form of a fake quantisation that writes what it observes; OP_none of other
 * operators. */
Op observed_operator(const char *name);
/* A call of one: its results, and what it observes as new values. */
bool import_observed(Scope *, const json_t *node, Op functional);

#endif
