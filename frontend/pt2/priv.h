/* Private to frontend/pt2: the importer of torch.export archives. It makes a functional graph of a
 * graph that views, aliases and writes memory.
 *
 * Terms. A node of the file is an object of its JSON (json_t); Node is a node of the graph under
 * construction. A value is what a name of the file stands for: a tensor in some memory. It has a
 * number, its index in State.value; 0 is no value. State specs are the graph inputs that are no
 * inputs of the user; they are numbered like all input specs of the file's signature. History is
 * what autograd knows of a value. Errors are recorded in the context, at `where` or at the scope's
 * node. Texts that are returned live as long as the context, if nothing else is said. */
#ifndef WEFT_FRONTEND_PT2_PRIV_H
#define WEFT_FRONTEND_PT2_PRIV_H

#include <jansson.h>

#include "frontend/files/archive.h"
#include "frontend/pt2/pickle.h"
#include "frontend/pt2/pt2.h"
#include "frontend/pt2/srepr/srepr.h"
#include "ir/build/build.h"
#include "ir/op/op.h"

/* A tensor as the file describes it (TensorMeta). Strides and offset are in elements of its
 * storage. */
typedef struct {
	DType dtype;
	uint32_t rank;
	const Sym *size, *stride;
	Sym offset;
} Meta;

/* A weight of a tensor subclass that wraps tensors, such as quantised ones, or a part of it, as its
 * pickle holds it. */
typedef struct {
	const char *label; /* "a.weight", "a.weight.qdata" */
	const PickleValue *value;
	Archive *archive; /* with the contents of the pickle's tensors */
	bool is_param;
	ConstId constant; /* the contents, if the part is a plain tensor */
} Wrapped;

/* A dictionary of tensors that torch.save wrote: the weights or the constants of a file of PyTorch
 * 2.8 or older. */
typedef struct {
	Archive *archive; /* NULL: there is no such dictionary in the file */
	Intern names;
	ARRAY(const PickleValue *) value; /* by name id - 1 */
} Saved;

/* A state spec: one graph input that is not the user's. */
typedef struct {
	const char *name; /* the name of the parameter or buffer; NULL for user inputs */
	InputKind kind;
	bool written;         /* the graph writes it: it becomes an input of the result */
	ConstId constant;     /* the contents */
	Wrapped *wrapped;     /* instead of a constant; or NULL */
	const Member *member; /* the member of the archive in which the contents lie; NULL: they
				 share no memory */
	Meta meta;            /* how the contents lie in the member */
	uint32_t owner;       /* the state spec that holds this one's memory: itself, or the one of
				 which this one is a view */
	uint32_t same_as;     /* the first state spec that is the same tensor under another name, or
	                         itself */
	int32_t tangled; /* of an owner: a spec that lies in its memory and is no view of it, or
			    -1 */
	uint32_t value;  /* its value in the current pass over the nodes */
} StateSpec;

/* A condition without which a size of the file has no value (ExprEnv.need); the text of that
 * size. */
typedef struct {
	Cond cond;
	const char *text;
} Need;

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
	Saved saved[2];              /* instead: weights, constants */
	json_t *inputs, *outputs;    /* of the signature */
	bool decomposed; /* run_decompositions() made the file, which so does not say what
			    autograd sees */
	Tree input_tree, output_tree; /* the user's inputs and outputs; no leaves if the file does
					 not say */
	StateSpec *state;            /* by input spec */
	bool *ignored; /* by Pt2Options.ignore_guard: it names something in the file */
	ARRAY(Need) need; /* of sizes that were read, and not required yet */
	Intern wrapped_name;         /* the graph's names of weights that wrap tensors */
	ARRAY(Wrapped *) wrapped;    /* by name id - 1 */
	Intern loose; /* names of symbols (counts of data) whose range in the file begins
			 at 2, although 0 and 1 occur */
} Import;

/* A value. Values that share memory share a Storage. */
typedef struct {
	Node node; /* the contents if `version` is the storage's version; else out of date */
	uint32_t storage, version;
	uint32_t parent; /* the value of which this one is a view; 0: it is the base of its storage
			  */
	Node view;       /* the node that made it from the parent; no node: equal to the parent */
	uint32_t self;   /* the number of the operand of `view` that is the parent */
	bool no_grad;    /* a view made under torch.no_grad() of memory with a history: it has no
			    history itself */
	bool mended;     /* the file describes another shape */
	int32_t elem;    /* the number of the result of `view`; -1: it has one result */
	Meta meta;
} FileValue;

typedef struct {
	uint32_t base;    /* the value that covers the memory */
	uint32_t version; /* grows with every write */
	int32_t spec;     /* the graph input whose memory this is, or -1 */
	bool history;     /* the contents may have a history */
	bool by_mode; /* in the other mode (training, evaluation) other values share this memory */
} Storage;

/* A graph under construction and the memory its values live in. */
typedef struct {
	Import *im;
	Graph *g;
	ARRAY(FileValue) value; /* [0] unused */
	ARRAY(Storage) storage; /* [0] unused */
	bool rewrote;           /* a view was written through: there may be dead nodes */
	bool is_body; /* the graph is a body of control flow: conditions are checked when it
			 runs */
	bool no_grad; /* the current node is under torch.no_grad(): its results have no
			 history */
	bool autocast; /* the current node is in a region with autocast on */
} State;

/* A graph of the file being read into a State. Graphs that are inlined have a scope of their own.
 */
typedef struct {
	State *st;
	json_t *graph;
	Intern names;
	ARRAY(uint32_t) value; /* by name id - 1 */
	const char *where;     /* the place of the current node, for messages */
	Build b;               /* where nodes are added */
} Scope;

/* Does as pt2_load_bytes (pt2.h), with an archive that is open; the options may be NULL. Sets
 * ctx->file to the archive's path. Returns NULL after errors. */
Graph *pt2_load_archive(Ir *, Archive *, const Pt2Options *);

/* ---- pt2/meta.c: JSON to types ---- */

/* Returns the member `key` of an object, if it is a string; else NULL. */
const char *json_str(const json_t *object, const char *key);
/* Returns the one key of a tagged union, {"as_int": 3}, and sets *value to its value. Returns
 * NULL, with *value NULL, if there is not exactly one key. */
const char *json_tag(const json_t *object, json_t **value);
/* Returns the dtype of a code of torch.export's schema (ScalarType); DT_none if Weft does not
 * have it. */
DType pt2_dtype(int64_t code);
/* Returns the name of a code of the schema's, for messages: a constant text; "unknown" if no dtype
 * has the code. */
const char *pt2_dtype_name(int64_t code);
/* Returns a size, {as_int} or {as_expr}. Adds the conditions without which the size has no value to
 * Import.need. Returns no size after an error at `where`. */
Sym meta_sym(Import *, const json_t *, const char *where);
/* Reads a TensorMeta object into *Meta. A size that is a symbol is at least 0 from then on. name:
 * of the tensor, for messages. Returns false after an error at `where`. */
bool meta_read(Import *, const json_t *, const char *name, const char *where, Meta *);
/* Returns the type with the dtype and sizes; strides and offset are left out. */
TypeId meta_type(Import *, const Meta *);
/* Whether the strides are those of a row-major tensor without gaps, as far as that is known at
 * compile time; strides of extents 1 do not matter. */
bool meta_is_contiguous(Import *, const Meta *);
/* Creates the file's symbols, with their ranges and hints (the values while exporting), and fills
 * in Import.loose. Returns false after an error. */
bool meta_symbols(Import *);
/* Whether a condition is to be ignored: it only says that one of Import.loose is at least 2. */
bool meta_is_loose(const Import *, const Cond *);
/* Whether the guard or assertion with this text is to be ignored (Pt2Options). Notes in
 * Import.ignored which of the options names it. */
bool meta_is_ignored(Import *, const char *text);
/* Adds the ranges of expressions and the guards of the file as guards of the graph, without those
 * to ignore. A range of an expression that is linear in one symbol may narrow the
 * symbol's range instead. Returns false after errors. */
bool meta_guards(Import *, Graph *);
/* Adds a condition on sizes as a guard of the graph, with the text for messages; nothing if the
 * condition always holds. Returns false after an error at `where`: the condition never holds. */
bool meta_require(Import *, Graph *, const Cond *, const char *where, const char *text);
/* Adds to the graph what the sizes read since the last such call require: no divisor is zero.
 * Returns false after an error at `where`. */
bool meta_require_divisors(Import *, Graph *, const char *where);
/* Reports that the model requires a condition which cannot be checked, for the reason of the
 * parser. Returns false. */
bool meta_cannot_check(Import *, const char *where, const char *text, const char *reason);

/* ---- pt2/tree.c: nested inputs and outputs ---- */

/* Reads the leaves of a treespec of the signature: which is "in_spec" or "out_spec". A treespec
 * that is absent or malformed gives no leaves, without an error. */
void tree_read(Import *, const char *which, Tree *);
/* Returns the name of positional argument k of `forward`, a text of the file's JSON; NULL if the
 * file does not say. */
const char *tree_argument(const Import *, size_t k);
/* Returns the number of the leaf of the inputs that the guard's text L['name']... means; path[n]:
 * the keys behind the L. Returns -1 if no leaf, or more than one, has this path. */
int64_t tree_find(const Import *, const Tree *, const PathKey *path, uint32_t n);
/* Returns a name for a leaf: its keys joined by "_"; NULL if all keys are numbers or empty. */
const char *tree_name(Import *, const TreeLeaf *);

/* ---- pt2/weights.c ---- */

/* Reads the contents of the parameter, buffer or constant of that name. Sets `constant`, `member`
 * and `meta` of the spec, and Const.frozen; or, for a weight that torch.save wrote, what
 * wrapped_read sets. Returns false after an error. */
bool weight_load(Import *, const char *name, bool is_param, StateSpec *);
/* Makes a constant of a tensor that is described by Meta in the bytes of a member, and sets
 * *ConstId. The constant refers to the bytes if they are row-major and aligned, else to a copy; to
 * zeros if there are no bytes. Returns false after an error: also if there are too few bytes. */
bool weight_contents(Import *, const char *name, const Meta *, const char *member, const Bytes *,
		     bool is_param, ConstId *);

/* ---- pt2/share.c: weights that lie in the same memory ---- */

/* Sets `owner`, `same_as` and `tangled` of Import.state[0..n), whose contents are read, and
 * Const.same_as and Const.holder of their constants. n: the number of input specs. */
void share_find(Import *, uint32_t n);
/* Notes that the graph writes a state spec, and so the memory of its owner. */
void share_written(Import *, uint32_t spec);
/* Checks that each memory that the graph writes is held by one tensor, of which the others are
 * views. Returns false after an error. */
bool share_check(Import *, uint32_t n);
/* Returns the value of a state spec as a view of `owner`, the value of the spec that holds its
 * memory; `owner` itself if both describe the memory alike. name: of a new node. Returns 0 after an
 * error. */
uint32_t share_view(Scope *, uint32_t spec, uint32_t owner, const char *name);

/* ---- pt2/saved.c: what torch.save wrote ---- */

/* Reads the pickle of an archive that torch.save wrote, from the bytes of a member, and sets
 * *Archive to that archive. what: "weight a.weight", for messages. limit: of the pickle's size.
 * Returns NULL after an error. */
const PickleValue *saved_read(Import *, const char *what, const char *member, const Bytes *,
			      size_t limit, Archive **);
/* Reads the dictionary that is a member of the file. A member that is absent or empty gives a
 * dictionary without names. Returns false after an error. */
bool saved_open(Import *, const char *member, Saved *);
/* Returns the value of a name; NULL, without an error, if the dictionary does not have it. */
const PickleValue *saved_find(const Saved *, const char *name);

/* ---- pt2/subclass.c: weights that wrap tensors ---- */

/* Reads a weight that torch.save wrote, from the bytes of a member. Sets `constant` of the spec if
 * it is a plain tensor, else `wrapped`. label: for messages. Returns false after an error. */
bool wrapped_read(Import *, const char *label, const char *member, const Bytes *, bool is_param,
		  StateSpec *);
/* Does as wrapped_read, with a value of a pickle, and the archive with the contents of its
 * tensors. Also sets `member` and `meta` of the spec, and Const.frozen. */
bool wrapped_load(Import *, const char *label, const PickleValue *, Archive *, bool is_param,
		  StateSpec *);
/* Binds a name of the graph to a weight that wraps tensors; replaces an earlier binding. */
void wrapped_bind(Import *, const char *name, Wrapped *);
/* Returns the weight to which wrapped_bind bound the name, or NULL. */
Wrapped *wrapped_find(const Import *, const char *name);
/* Imports a node that reads one tensor of a weight that wraps tensors (TARGET_INNER_TENSOR): adds
 * nodes and binds the name of its result. Returns false after an error. */
bool import_inner_tensor(Scope *, const json_t *node);

/* ---- pt2/alias.c: which results are views, and how to write through them ---- */

/* Returns how the result `out` of the node shares the memory of its operand `in`: the ViewKind of
 * its operator (ir/op/op.h; VIEW_SAME if that is for complex numbers only and `in` is real), or
 * VIEW_NONE if this call makes a copy. */
ViewKind alias_kind(State *, Node made, const Meta *in, const Meta *out);
/* Whether such a result, of the kind that alias_kind gave, is the operand itself: autograd then
 * sees no operator. */
bool alias_is_itself(const State *, Node made, ViewKind, const Meta *in, const Meta *out);
/* Returns the new contents of the parent of v, which had the contents `parent`, after v was
 * overwritten with `update`. Returns no node after an error. */
Node alias_inverse(State *, Build *, const FileValue *v, Node parent, Node update);

/* ---- pt2/functional.c: memory ---- */

/* Makes a value with memory of its own, whose contents are a node. Returns its number. */
uint32_t value_new(State *, Node, const Meta *);
/* Makes a value that is a view of value `parent`: result `elem` (-1: the only one) of the node
 * `view`, whose operand number `self` is the parent. contents: the node that is the result. Returns
 * its number. */
uint32_t value_view(State *, uint32_t parent, Node view, uint32_t self, int32_t elem, Node contents,
		    const Meta *);
/* Adds a copy of the view that made v, applied to `parent`: contents of the parent's shape and of
 * this dtype. Returns the result; `parent` itself if v is equal to its parent. */
Node view_replay(State *, const FileValue *v, Node parent, DType);
/* Returns the current contents of a value. If its memory was written through another value since,
 * adds nodes that apply the view again. */
Node value_read(State *, Build *, uint32_t v);
/* Sets the contents of a value, and so of all values in the same memory. Returns false after an
 * error; also, without another one, if `contents` is no node. */
bool value_write(State *, Build *, uint32_t v, Node contents);
/* Returns the value to read at this place instead of v. Where gradients are enabled, v is cut off
 * from the history of what was computed under torch.no_grad(): if v's memory was made there, its
 * contents change and the result is v; if v is a view made there, the result is a new value. Else
 * the result is v. Returns 0 after an error. */
uint32_t value_enter(State *, Build *, uint32_t v);
/* Returns a node with the contents `value` and the derivatives of `old`, which has the type of
 * `value`; the derivatives of `value` are lost. Returns `value` itself if its dtype has no
 * derivatives, or `old` is no node. */
Node value_with_history(Build *, Node value, Node old);
/* Makes a view with one dimension of the whole memory in which v lies, and returns its number.
 * Returns 0 after an error: the memory has gaps. */
uint32_t value_flat(State *, Build *, uint32_t v);

/* ---- pt2/args.c: arguments of the file's nodes ---- */

/* A call under construction: operands and attributes in the order of a schema. */
typedef struct {
	Op op;
	ARRAY(Node) in;
	ARRAY(uint32_t) value; /* the value of operand k; 0: the file has none for it */
	Attr attr[MAX_ARGS];   /* by argument of the schema */
	DType beside; /* the promoted dtype of the tensors among the arguments; numbers that
			 depend on data are promoted with it */
} NodeCall;

/* Reads the arguments of a node for the operator, or for the overload of it that fits the arguments
 * (c->op). Returns false after an error. */
bool call_read(Scope *, const json_t *node, Op op, NodeCall *c);
/* Reads the arguments of a node for a given schema. c must be zeros; c->op stays as it is. Returns
 * false after an error. */
bool call_read_as(Scope *, const json_t *node, const Schema *, NodeCall *c);
/* Finds the argument of that name, or, where the file gives no names, argument k. Returns its
 * value, and sets *tag to its tag, "as_tensor". Returns NULL, with *tag NULL, if there is no such
 * argument. */
json_t *arg_find(const json_t *node, const char *name, size_t k, const char **tag);
/* Whether an argument, found as by arg_find, is true; `fallback` if there is none, or it is no
 * bool. */
bool arg_bool(const json_t *node, const char *name, size_t k, bool fallback);
/* Returns the value of a number argument, found as by arg_find; `fallback` if there is none, or it
 * is no constant number. */
double arg_double(const json_t *node, const char *name, size_t k, double fallback);
/* Returns the value of a tensor argument, found as by arg_find; 0, without an error, if there is
 * none, or no node so far has defined the tensor. */
uint32_t arg_value(Scope *, const json_t *node, const char *name, size_t k);
/* The next functions read an argument that arg_find found; another kind of argument is an error. */

/* Returns a number, which may depend on data, as an f64 without dimensions; no node after an
 * error. */
Node arg_float_value(Scope *, const char *tag, const json_t *arg);
/* Sets *Attr to any Python scalar that does not depend on data. name: of the argument, for
 * messages. Returns false after an error. */
bool arg_scalar(Scope *, const char *name, const char *tag, const json_t *arg, Attr *);
/* Sets *Sym to an integer, constant or symbolic. Returns false after an error. */
bool arg_sym(Scope *, const char *tag, const json_t *arg, Sym *);
/* Sets out[*n], in the arena, to a list of integers, constant or symbolic. Returns false after an
 * error. */
bool arg_syms(Scope *, const char *tag, const json_t *arg, const Sym **out, uint32_t *n);
/* Whether the argument is a float that depends on data. */
bool arg_is_data(Scope *, const char *tag, const json_t *arg);
/* Whether a node has an argument that is a float which depends on data. */
bool call_has_data(Scope *, const json_t *node);

/* ---- pt2/node.c ---- */

/* A result of a file's node. */
typedef struct {
	const char *name; /* NULL: None; meta is then a tensor without elements */
	Meta meta;
	bool mended; /* the file describes another shape */
} Result;

typedef ARRAY(Result) Results;

/* Sets *Results, whose old contents are not read, to the results of a node; lists are flattened.
 * The array is in the scratch arena. Returns false after an error. */
bool read_results(Scope *, const json_t *node, Results *);
/* Returns the value of a name; 0, without an error, if no node so far has defined the name. */
uint32_t scope_find(const Scope *, const char *name);
/* Defines a name. Returns false after an error: the name is defined already. */
bool scope_bind(Scope *, const char *name, uint32_t value);
/* Makes all names of value `old` names of value `new`. */
void scope_rebind(Scope *, uint32_t old, uint32_t new);
/* Reads the description of the tensor of that name in the file's graph. Returns false after an
 * error. */
bool scope_meta(Scope *, const char *name, Meta *);
/* Whether ranks are equal, and sizes are the same expressions. */
bool meta_shapes_agree(const Meta *, const Meta *);
/* Returns the name of a node, else of its first result, else its target; never NULL. */
const char *node_label(const json_t *node);
/* Returns "net.py:12 in encoder.layer.0", the user's line and the module, in the scratch arena;
 * NULL if the file does not say. */
const char *node_frame(Import *, const json_t *node);
/* Returns the place of a node for messages, "model.pt2: node add (net.py:12)", in the arena; never
 * NULL. */
const char *node_position(Import *, const json_t *node);
/* Begins the import of a graph of the file into a State; no name is defined. */
void scope_init(Scope *, State *, json_t *graph);
/* Begins a graph under construction, without values. */
void state_init(State *, Import *, Graph *);
/* Imports all nodes of scope->graph. Returns false after an error. */
bool scope_nodes(Scope *);

/* Returns the operands of a call, in the scratch arena, with a key of random numbers, a new node,
 * for an operator that draws: the call's own key comes when the graph has been read. */
Node *call_operands(Scope *, const NodeCall *);

/* ---- pt2/mend.c ---- */

/* Corrects the shapes of results that torch.export describes wrongly, and of those that have an
 * operand with a corrected shape. Returns false after an error. */
bool results_mend(Scope *, const NodeCall *, Results *);

/* ---- pt2/strided.c ---- */

/* Makes a view of the memory in which value `self` lies: sizes and strides of *m from `offset` on,
 * in elements of the file's storage (Meta). name: of the node. Returns 0 after an error. */
uint32_t strided_view(Scope *, uint32_t self, const Meta *m, Sym offset, const char *name);
struct CallTarget;
/* Imports a call of as_strided. Returns false after an error. */
bool import_as_strided(Scope *, const json_t *node);
/* Imports a call of resize, resize_, resize_as or resize_as_. Returns false after an error: also if
 * the result needs more memory than the operand has. */
bool import_resize(Scope *, const json_t *node, const struct CallTarget *);

/* ---- pt2/target.c ---- */

/* How a node of the file is imported. */
typedef enum {
	TARGET_UNKNOWN,
	TARGET_OP,       /* a call of `op` */
	TARGET_IN_PLACE, /* relu_: `op` is the functional form */
	TARGET_OUT,      /* add.out: `op` is the functional form, and the result is written to the
			    argument `out` */
	TARGET_IN_PLACE_VIEW, /* transpose_: `op` is the view; the name of the operand gets the view
			       */
	TARGET_COPY, /* copy_: all elements are replaced by those of a tensor; copy returns the
			same as a new tensor */
	TARGET_FILL, /* fill_: all elements are replaced by a number */
	TARGET_ZERO, /* zero_: by 0 */
	TARGET_AS_STRIDED,
	TARGET_OBSERVED, /* `op` is the functional form, whose last results replace the arguments
			    that are written */
	TARGET_RESIZE,  /* resize, resize_: the name of the operand of resize_ gets the new shape */
	TARGET_NOTHING, /* no tensors result, and the call has no meaning here */
	TARGET_SYMBOLIC, /* arithmetic of Python numbers, whose results the file gives as
			    expressions */
	TARGET_ITEM,     /* the one element of a tensor as a Python number */
	TARGET_ASSERT_SCALAR,
	TARGET_ASSERT_METADATA,
	TARGET_INNER_TENSOR, /* a tensor of a weight that wraps tensors */
	TARGET_REGION,       /* a mark of torch.vmap or torch.func.jvp inside of a model */
	TARGET_USER,         /* a user operator */
	TARGET_EFFECTS,      /* with_effects: an operator that must not move past others of its
	                        kind */
	TARGET_INLINE,       /* a call with a graph as argument, which is executed in place */
	TARGET_COND,
	TARGET_WHILE,
	TARGET_SCAN,
	TARGET_ASSOCIATIVE,
	TARGET_MAP
} TargetKind;

typedef struct CallTarget {
	TargetKind kind;
	Op op;                     /* as the kind says; else OP_none */
	const struct UserOp *user; /* of TARGET_USER */
	const char *name;          /* "aten.add.Tensor"; an overload "default" is left out */
} CallTarget;

/* Returns how to import nodes with this target, "torch.ops.aten.add.Tensor"; TARGET_UNKNOWN if none
 * is known. Its name lives as long as the context. */
CallTarget target_of(Import *, const char *target);
/* Returns why nodes with this target are not imported, where that is so on purpose: a constant
 * text that goes on from "an operator, which". NULL for other targets (refused.c). */
const char *target_refusal(const char *target);
/* Checks that all nodes of a graph of the file, and of graphs in it, can be imported. Returns false
 * after one error that lists the operators that cannot. */
bool targets_check(Import *, const json_t *graph);

/* ---- imports of one node ---- */

/* Each import_ function adds the nodes for a node of the file and binds the names of its results.
 * It returns false after an error. */

/* Returns a bool of Python that is an argument, {as_sym_bool}, as a bool tensor without dimensions.
 * Returns no node after an error (hop.c). */
Node symbolic_condition(Scope *, const json_t *arg);
/* Converts the operands of a call in a region with autocast on as autocast did, which the dtype
 * of the node's result says (autocast.c). Returns false after an error. */
bool autocast_operands(Scope *, const json_t *node, NodeCall *);
/* Makes a graph of its own of a graph of the file, whose n inputs have these types. Returns NULL
 * after an error (hop.c). */
Graph *import_subgraph(Scope *outer, json_t *json, const Meta *in, uint32_t n);
/* Imports a node whose operator has graphs as arguments: TARGET_INLINE to TARGET_MAP (hop.c).
 * Returns false after an error. */
bool import_hop(Scope *, const json_t *node, CallTarget);

/* Adds a call of the operator `op` that has a number which depends on data where the schema has a
 * constant: the value of aten.full, the alpha of aten.add. Returns the result, of the type of *m.
 * Returns no node if the call is another one, or after an error (number.c). */
Node import_with_number(Scope *, const json_t *node, const char *op, const Meta *m);
/* Imports x.item(): an integer or a bool becomes the value of a symbol, a float a value without
 * dimensions (number.c). Returns false after an error. */
bool import_item(Scope *, const json_t *node);
/* Imports a node of TARGET_SYMBOLIC: arithmetic of floats that depend on data. Adds nothing for
 * other numbers, which their readers take from the file's expressions (number.c). Returns false
 * after an error. */
bool import_symbolic(Scope *, const json_t *node, const char *target);

/* Whether the node opens a level of torch.vmap or torch.func.jvp (region.c). */
bool region_begins(const json_t *node);
/* Imports the level that node *at of the scope's graph opens, and sets *at to the node that closes
 * it (region.c). Returns false after an error. */
bool import_region(Scope *, size_t *at);
/* Returns the target that a node of TARGET_EFFECTS calls; NULL: the node is malformed (node.c). */
const char *effects_target(const json_t *node);
/* Imports a node of TARGET_REGION that opens no level (region.c). Returns false after an error. */
bool import_region_mark(Scope *, const json_t *node);
/* Imports one node of the file. Returns false after an error (node.c). */
bool scope_node(Scope *, const json_t *node);
/* Imports a call of a user operator (user.c). Returns false after an error: also if the arguments
 * do not fit the operator's types. */
bool import_user(Scope *, const json_t *node, const struct UserOp *);

/* Adds the update of the running statistics that an operator of that name makes in training, and
 * writes them; does nothing for other operators, or if the call does not train. Call it for a node
 * that is imported as TARGET_OP, too (norm.c). Returns false after an error. */
bool import_running_stats(Scope *, const json_t *node, const char *name);
/* Returns the functional form of a fake quantisation that writes what it observes; OP_none for
 * other operators (norm.c). */
Op observed_operator(const char *name);
/* Imports a node of TARGET_OBSERVED: a call of the functional form, which observed_operator gave,
 * and the writes of what it observes (norm.c). Returns false after an error. */
bool import_observed(Scope *, const json_t *node, Op functional);

#endif
