/* The Graph: nodes in program order, in arrays behind 32-bit handles, with use lists. Types,
 * attributes and source locations are interned in the Ir, which all graphs of a compilation have in
 * common. */
#ifndef WEFT_IR_GRAPH_H
#define WEFT_IR_GRAPH_H

#include <assert.h>

#include "base/array.h"
#include "base/intern.h"
#include "ir/graph/dtype.h"
#include "ir/sym/sym.h"

typedef struct { uint32_t i; } Node; /* 0 means none */
typedef struct { uint32_t i; } Use;
typedef struct { uint32_t i; } TypeId; /* 0 means no value */
typedef struct { uint32_t i; } AttrId; /* interned tuple; 0 is the empty one */
typedef struct { uint32_t i; } LocId;  /* 0 means unknown */
typedef struct { uint32_t i; } ConstId;
typedef struct Graph Graph;
typedef uint16_t Op; /* index in the op table (ir/ops/op.h); OP_none is 0 */

enum { MAX_RANK = 12, MAX_ARGS = 64 }; /* arguments of a schema */

/* ---- types ---- */

/* A tensor type {dtype, shape}, without strides and layout; or a tuple of types. */
typedef struct {
	DType dtype; /* DT_none: the type is a tuple */
	uint32_t n;  /* the rank, or the number of elements of the tuple */
	union {
		const Sym *dim;
		const TypeId *elem;
	};
} Type;

/* ---- attributes ---- */

typedef enum {
	ATTR_none, /* an absent optional argument; the slot of a tensor argument */
	ATTR_bool, ATTR_int, ATTR_float, ATTR_complex, ATTR_str, ATTR_dtype, ATTR_graph, ATTR_const,
	ATTR_ints, ATTR_floats, ATTR_bools
} AttrKind;

/* A Python scalar is ATTR_bool, ATTR_int, ATTR_float or ATTR_complex. All integers are symbolic
 * (Sym). */
typedef struct {
	AttrKind kind;
	uint32_t n; /* length of a list */
	union {
		bool b;
		Sym s;
		double f;
		struct {
			double re, im;
		} z;
		const char *str; /* interned: compare by pointer */
		DType dtype;
		Graph *graph;
		ConstId c;
		const Sym *ints;
		const double *floats;
		const bool *bools;
	};
} Attr;

/* ---- constants: references, never copied through the IR ---- */

typedef struct {
	const char *name; /* the name of the parameter or buffer; "" for a folded constant */
	DType dtype;
	uint32_t rank;
	const int64_t *dim;
	const void *data;   /* row-major, dtype_size bytes per element, complex numbers as pairs; in
	                       a mapped file or the arena. NULL: see recipe */
	uint64_t bytes;
	uint64_t hash;      /* of dtype, shape and contents; 0: const_hash has not computed it
	                       yet */
	bool is_param;      /* a parameter or buffer of the model: set_weights may replace it */
	bool is_buffer;     /* a buffer of the model: training does not update it by gradients */
	bool frozen;        /* a parameter without requires_grad in the model's file */
	ConstId same_as;    /* this constant is another name of that constant, which is the first in
	                       the file and the one that graphs read; 0: no other name */
	ConstId holder;     /* the constant in whose memory the file stores this one; 0: its own
	                       memory */
	ConstId view_of;    /* this constant has the bytes of that one under another shape and
	                       dtype; 0: none */
	/* For a constant that is computed from replaceable parameters: a graph without inputs whose
	 * one output is the value. `data` is then NULL until code of the artifact computes the
	 * value (driver/artifact/recipes.h). No pass reads the data. */
	Graph *recipe;
} Const;

/* ---- what the graphs of one compilation share ---- */

typedef struct Ir {
	Ctx *ctx;
	SymTab *syms;
	Intern strings;
	Intern types, attrs, locs;
	ARRAY(Type) type;         /* by TypeId */
	ARRAY(const Attr *) attr; /* by AttrId */
	ARRAY(Const) constant;    /* by ConstId */
	ARRAY(const struct UserOp *) userop; /* user operators that nodes may call
	                                        (ir/ops/user/userop.h) */
} Ir;

/* An empty Ir, in the context's arena. */
Ir *ir_new(Ctx *);

TypeId ir_type(Ir *, DType, uint32_t rank, const Sym *dim);
TypeId ir_type_ints(Ir *, DType, uint32_t rank, const int64_t *dim);
TypeId ir_tuple(Ir *, uint32_t n, const TypeId *elem);
const Type *ir_type_of(const Ir *, TypeId); /* the result is valid until the next ir_type or
                                               ir_tuple */
Sym type_numel(const Ir *, TypeId);

/* Interns a tuple of n attributes, one for each argument of the schema (ir/ops/op.h). Copies
 * lists. */
AttrId ir_attrs(Ir *, uint32_t n, const Attr *);
/* Attribute k of a tuple; every attribute of the empty tuple is ATTR_none. Valid as long as the
 * Ir. */
const Attr *ir_attr(const Ir *, AttrId, uint32_t k);
bool attr_equal(const Attr *, const Attr *); /* compares graphs by identity and floats by bits */
LocId ir_loc(Ir *, const char *text); /* "net.py:12" */
const char *ir_loc_text(const Ir *, LocId); /* "" when unknown */
/* The number of leading bytes of the location that name file and line, without " in MODULE". */
size_t ir_loc_line(const char *text);
/* Adds a constant; equal constants are not merged. Copies name and dimensions, not the data. */
ConstId ir_const(Ir *, Const);
const Const *ir_const_of(const Ir *, ConstId); /* the result is valid until the next ir_const */
/* Returns, by constant, its other names in the file, each followed by a newline, or NULL. Returns
 * NULL if no constant has other names. */
const char **ir_const_aliases(const Ir *, Arena *);
/* The constant that has the bytes: follows view_of to its end. */
ConstId const_root(const Ir *, ConstId);
/* Whether it is a parameter that requires gradients in the model's file. */
bool const_requires_grad(const Ir *, ConstId);
/* The name of that of which the file stores this one as a part; NULL: it has memory of its own. */
const char *const_holder(const Ir *, ConstId);
/* Whether the value changes when set_weights replaces parameters. */
bool const_is_replaceable(const Ir *, ConstId);
uint64_t const_hash(Ir *, ConstId); /* for a constant with a recipe, the hash of the recipe's
                                       text */
void const_hash_all(Ir *, uint32_t jobs); /* computes all hashes that are not known yet, with `jobs`
                                             threads */

static inline Attr attr_none(void) { return (Attr){ATTR_none, 0, {0}}; }
static inline Attr attr_bool(bool b) { return (Attr){ATTR_bool, 0, {.b = b}}; }
static inline Attr attr_sym(Sym s) { return (Attr){ATTR_int, 0, {.s = s}}; }
static inline Attr attr_float(double f) { return (Attr){ATTR_float, 0, {.f = f}}; }
static inline Attr attr_complex(double re, double im) { return (Attr){ATTR_complex, 0, {.z = {re, im}}}; }
static inline Attr attr_dtype(DType d) { return (Attr){ATTR_dtype, 0, {.dtype = d}}; }
static inline Attr attr_bools(const bool *v, uint32_t n) { return (Attr){ATTR_bools, n, {.bools = v}}; }
static inline Attr attr_ints(const Sym *v, uint32_t n) { return (Attr){ATTR_ints, n, {.ints = v}}; }
static inline Attr attr_graph(Graph *g) { return (Attr){ATTR_graph, 0, {.graph = g}}; }
static inline Attr attr_const(ConstId c) { return (Attr){ATTR_const, 0, {.c = c}}; }
Attr attr_int(Ir *, int64_t);
Attr attr_str(Ir *, const char *);
/* The dtype with which a Python scalar takes part in type promotion: bool, i64, f32 for any float,
 * c64 for any complex number. DT_none for other attributes. */
DType attr_weak_dtype(const Attr *);

/* ---- graphs ---- */

typedef struct {
	Op op;
	uint16_t nin;
	uint32_t in;    /* operand k is use[in + k] */
	Use first_use;  /* head of the list of readers */
	Node prev, next; /* neighbours in program order, in which operands come before readers */
	TypeId type;
	AttrId attr;
	LocId loc;
} NodeData;
_Static_assert(sizeof(NodeData) == 32, "two nodes per cache line");

typedef struct {
	Node def, user;
	Use prev, next;
} UseData;

typedef enum { INPUT_USER, INPUT_PARAM, INPUT_BUFFER } InputKind;

/* An input is a node with OP_input. The importer makes OP_constant nodes of parameters and buffers
 * that the graph never writes; INPUT_PARAM and INPUT_BUFFER are state, which the graph writes. The
 * text form of state is `%m: f32[4] buffer #3 "bn.mean"`: constant 3 has the initial contents. */
typedef struct {
	Node node;
	InputKind kind;
	const char *name; /* the name that users see */
	ConstId init;     /* of state: the initial contents; 0 for inputs that callers pass */
} GraphInput;
#define RANDOM_STATE "weft.rng" /* the state, or input, that random numbers depend on */
/* Its WeftTensorInfo.role. */
const char *input_role(InputKind, const char *name);

typedef struct {
	Node node;
	const char *name;
	int32_t writes; /* the index of the input that the call replaces with this value, or -1; no
	                   two outputs have the same index */
} GraphOutput;

struct Graph {
	Ir *ir;
	const char *name;
	uint32_t scope;       /* the scope of its symbols' names (sym.h) */
	ARRAY(NodeData) node; /* [0] unused */
	ARRAY(UseData) use;   /* [0] unused */
	ARRAY(const char *) node_name; /* by node: its name; NULL: it has only a number */
	ARRAY(uint32_t) nread, nout;   /* by node: how many operands, and how many graph outputs,
	                                  are the node */
	Node first, last;
	ARRAY(GraphInput) input;
	ARRAY(GraphOutput) output;
	/* Conditions on symbols that a call checks first. */
	ARRAY(struct GraphGuard) guard;
	bool decomposed; /* the exporter decomposed the graph: the file does not say which values
	                    torch.no_grad() and detach kept from autograd */
	const char *other_mode; /* a node that writes memory which some operator shares in training
				   or in evaluation only, so that the graph of the other mode is not
				   this one with other arguments; NULL: none */
	/* Private to graph.c. */
	Intern names;              /* all names that nodes ever had; name_uses counts them */
	ARRAY(uint32_t) name_uses; /* by name id */
	uint32_t *number;          /* by node: the number of an unnamed node in program order; valid
	                              if `numbered` */
	uint32_t nnumber;          /* length of `number` */
	uint32_t number_room;      /* how long it may become */
	bool numbered;
};

typedef enum { GUARD_EQ, GUARD_NE, GUARD_LE } GuardKind;
struct GraphGuard {
	GuardKind kind;
	Sym a, b; /* a == b, a != b, a <= b */
	const char *why;
};

typedef struct GraphGuard GraphGuard;

/* Returns an empty graph in the current scope of symbols. */
Graph *graph_new(Ir *, const char *name);
/* Makes the graph's scope the current one: names of symbols mean this graph's. Needed if the Ir
 * holds graphs of several files. */
static inline void graph_enter(const Graph *g) { sym_set_scope(g->ir->syms, g->scope); }
/* Adds a node in front of `before` (none: at the end). in[k] may be none for an absent optional
 * tensor. Invalidates NodeData pointers. */
Node graph_add(Graph *, Node before, Op, const Node *in, uint32_t nin, AttrId, TypeId, LocId);
Node graph_add_input(Graph *, const char *name, InputKind, TypeId);
/* The first node in program order that is no input, or none. Inputs come first. */
Node graph_behind_inputs(const Graph *);
void graph_add_output(Graph *, const char *name, Node, int32_t writes);
/* Changes the value of output k. */
void graph_set_output(Graph *, uint32_t k, Node);
/* Removes output k; its node stays. */
void graph_remove_output(Graph *, uint32_t k);
/* Removes all outputs; their nodes stay. */
void graph_clear_outputs(Graph *);
/* Makes every reader of `old`, graph outputs included, read `new`. Takes O(readers). */
void graph_replace(Graph *, Node old, Node new);
/* Removes a node, which must have no readers. */
void graph_erase(Graph *, Node);
void graph_set_operand(Graph *, Node user, uint32_t k, Node def);
/* Changes a node's type. The caller sees to it that readers accept the new type. */
void graph_set_type(Graph *, Node, TypeId);
void graph_set_attrs(Graph *, Node, AttrId);
/* Names a node. Characters other than [A-Za-z0-9_.$] become "_"; a number is appended to a name
 * that is taken. */
void graph_set_name(Graph *, Node, const char *);
const char *graph_name(Graph *, Node); /* "conv2d_3", or "17" for an unnamed node; never NULL */
/* The name at the last numbering of the graph; for a newer node its operator. For messages: takes
 * O(1). */
const char *graph_last_name(Graph *, Node);
/* Compares two extents. NO: they differ provably, or at the hints, or at a sampled point of sizes
 * of 2 and more. MAYBE: they may be equal; require that by graph_guard. */
Truth graph_same_extent(const Graph *, Sym, Sym);
/* Adds a guard, unless the condition is provably true or already a guard. */
void graph_guard(Graph *, GuardKind, Sym a, Sym b, const char *why);
/* Finds the first input dimension whose extent contains the size symbol. Returns false if there is
 * none. */
bool graph_symbol_input(const Graph *, Sym var, uint32_t *input, uint32_t *dim);
/* Names the first input dimension whose extent contains a size symbol, for messages: " (input \"x\"
 * dimension 0)"; "" if there is none. The text lies in the scratch arena. */
const char *graph_symbol_origin(const Graph *, Sym var);
/* Removes nodes without readers and effects, except inputs. Returns true if it removed any. */
bool graph_dce(Graph *);
/* Returns a copy. Subgraphs are copied too: no two nodes have the same subgraph. */
Graph *graph_clone(const Graph *);
/* Returns a copy in another Ir, in a new scope, which becomes the current one. The data of
 * constants is not copied: both Irs must live equally long. */
Graph *graph_import(Ir *, const Graph *);
/* The same in the current scope of `to`: size[k], a symbol of src, becomes by[k] of `to`; other
 * symbols get names that are new there. constant[]: by constant of src's Ir what it becomes, none:
 * a new constant, which the call writes there. */
Graph *graph_import_at(Ir *to, const Graph *src, const Sym *size, const Sym *by, uint32_t n, ConstId *constant);
/* Adds to dst a copy of node n of src, with its name. map[]: by handle in src, the node of dst that
 * replaces an operand. Subgraphs are copied. */
Node graph_copy_node(Graph *dst, Node before, const Graph *src, Node n, const Node *map);
/* Adds the nodes of src to dst in front of `before`. arg[k] takes the place of input k; out[k]
 * receives output k. */
void graph_inline(Graph *dst, Node before, const Graph *src, const Node *arg, Node *out);
/* Whether both graphs have equal nodes in the same order, names, types, attributes, inputs, outputs
 * and guards. Both must be of one Ir. */
bool graph_equal(const Graph *, const Graph *);

static inline const NodeData *node_data(const Graph *g, Node n) { return &g->node.data[n.i]; }
static inline Op node_op(const Graph *g, Node n) { return g->node.data[n.i].op; }
static inline uint32_t node_nin(const Graph *g, Node n) { return g->node.data[n.i].nin; }
static inline Node node_in(const Graph *g, Node n, uint32_t k)
{
	assert(k < g->node.data[n.i].nin);
	return g->use.data[g->node.data[n.i].in + k].def;
}
static inline Node node_next(const Graph *g, Node n) { return g->node.data[n.i].next; }
static inline Node node_prev(const Graph *g, Node n) { return g->node.data[n.i].prev; }
static inline TypeId node_type_id(const Graph *g, Node n) { return g->node.data[n.i].type; }
static inline const Type *node_type(const Graph *g, Node n)
{
	return ir_type_of(g->ir, g->node.data[n.i].type);
}
static inline DType node_dtype(const Graph *g, Node n) { return node_type(g, n)->dtype; }
static inline uint32_t node_rank(const Graph *g, Node n) { return node_type(g, n)->n; }
static inline Sym node_dim(const Graph *g, Node n, uint32_t k)
{
	const Type *t = node_type(g, n);
	assert(t->dtype != DT_none && k < t->n);
	return t->dim[k];
}
uint32_t node_nuses(const Graph *, Node); /* the number of readers, graph outputs included */
bool node_is_output(const Graph *, Node);
bool node_has_effect(const Graph *, Node); /* of the node or of its subgraphs */
bool node_has_graph(const Graph *, Node);  /* whether it has subgraphs: scan, while, cond */
/* The number of results (0, 1, or the number of elements of its tuple), and their types. */
uint32_t node_nresult(const Graph *, Node);
TypeId node_result_type(const Graph *, Node, uint32_t k);
/* Whether its type has a size that depends on data; the node may be the one that computes the
 * size. */
bool node_has_data_size(const Graph *, Node);
/* Returns element k of a value that a `tuple` node makes of its operands. Returns none if the value
 * has another operator. */
Node node_element(const Graph *, Node, uint32_t k);
/* Returns the next reader, from *u on, that is a `get` of result k of a tuple; *u becomes the use
 * behind it. Returns none at the end. */
Node node_next_get(const Graph *, Use *u, uint32_t k);

/* Whether output k writes state. Such an output is no output of the compiled model. */
static inline bool graph_output_is_state(const Graph *g, uint32_t k)
{
	int32_t in = g->output.data[k].writes;
	return in >= 0 && g->input.data[in].kind != INPUT_USER;
}

/* The output that writes input `input`; -1: none does. */
static inline int32_t graph_writer(const Graph *g, uint32_t input)
{
	for (uint32_t k = 0; k < g->output.n; k++)
		if (g->output.data[k].writes == (int32_t)input)
			return (int32_t)k;
	return -1;
}

/* The constant of an OP_constant node; 0 for other nodes. */
ConstId node_const(const Graph *, Node);

/* The attribute of an argument, by its name in the schema; an internal error if the schema has no
 * such argument. */
const Attr *node_attr(const Graph *, Node, const char *name);
Sym node_sym(const Graph *, Node, const char *name);
int64_t node_int(const Graph *, Node, const char *name); /* an internal error if the value is not a
                                                            constant integer */
bool node_bool(const Graph *, Node, const char *name);
double node_float(const Graph *, Node, const char *name); /* int and bool are converted; of a
                                                             complex number: NaN after ctx_error */
const char *node_str(const Graph *, Node, const char *name);
/* A list of symbolic integers, of length *n. */
const Sym *node_ints(const Graph *, Node, const char *name, uint32_t *n);
/* The operand of a tensor argument, by its name in the schema; none if absent. node_args, for
 * Tensor[]: returns the number of tensors; *first is the index of the first operand. */
Node node_arg(const Graph *, Node, const char *name);
uint32_t node_args(const Graph *, Node, const char *name, uint32_t *first);

/* For a `to_size` node: the message for a value out of the size's range, a format of printf with
 * one %lld. */
const char *node_size_message(const Graph *, Node);
/* For a `to_size` node whose size is known already, from the inputs of `bound` (or NULL): the
 * message for another value, a format with two %lld: the value and the known size. */
const char *node_size_differs(const Graph *, Node, const Graph *bound);
/* Where the node is, for diagnostics: "model.pt2: node conv2d_3 (net.py:12)". In the scratch
 * arena. */
const char *node_where(Graph *, Node);
/* node_where with graph_last_name: for texts that are made for every node and rarely read. */
const char *node_near(Graph *, Node);

/* ---- text form ---- */

void graph_print(const Graph *, Text *);
/* Sets used[k] if sym_var_at(k) occurs in the types or attributes of the nodes, subgraphs
 * included. */
void graph_used_symbols(const Graph *, bool *used);
void graph_print_node(const Graph *, Node, Text *); /* one line, with a line break */
void type_print(const Ir *, TypeId, Text *); /* "f32[s0, 3]", "(f32[2], i64[])" */
const char *type_str(const Ir *, TypeId);    /* in the scratch arena */
/* Parses the text form. Parsing a printed graph gives an equal graph; constants are looked up by id
 * in the Ir; new symbols are created. Returns NULL after errors at "name:line:col". */
Graph *graph_parse(Ir *, const char *text, const char *name);
/* Parses a type, "f32[B, 3]". New symbols are created. Returns 0 after an error, which says `name`
 * for the place. */
TypeId type_parse(Ir *, const char *text, const char *name);
/* Checks structure, types, order and use lists. Returns false after errors. */
bool graph_verify(Graph *);
/* Whether the node's value has less than 2^48 bytes, so that sizes and their sums fit 64 bits.
 * Symbols count with their least value; the program checks the real value at run time. Index maps
 * that only view a value are counted too. */
bool node_fits(const Graph *, Node);

#endif
