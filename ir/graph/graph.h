/* The Graph: nodes in program order, in arrays behind 32-bit handles, with use lists. Types,
 * attributes and source locations are interned in the Ir, which all graphs of a compilation have in
 * common.
 *
 * Memory: all that these functions make lies in ctx->arena of the Ir and is valid as long as the
 * context, unless its comment names the scratch arena, which the pass driver resets between passes.
 * Pointers are not NULL unless said; an array of no elements may be NULL. A function that takes a
 * Node wants a node of this graph, not none, unless said.
 *
 * Terms: a reader of a node is a node that has it as an operand, or a graph output. A subgraph is a
 * Graph that is an attribute: a body of scan, while, cond and invertible. State is an input that
 * the graph itself writes (INPUT_PARAM, INPUT_BUFFER). A size is unbacked if it depends on data
 * (sym.h). The schema and the composites of an operator: ir/op/op.h. */
#ifndef WEFT_IR_GRAPH_H
#define WEFT_IR_GRAPH_H

#include <assert.h>

#include "base/array.h"
#include "base/intern.h"
#include "ir/graph/dtype.h"
#include "ir/sym/sym.h"

typedef struct { uint32_t i; } Node; /* 0 means none */
typedef struct { uint32_t i; } Use; /* an operand of a node: index into Graph.use; 0 means none */
typedef struct { uint32_t i; } TypeId; /* 0 means no value */
typedef struct { uint32_t i; } AttrId; /* interned tuple; 0 is the empty one */
typedef struct { uint32_t i; } LocId;  /* 0 means unknown */
typedef struct { uint32_t i; } ConstId;
typedef struct Graph Graph;
typedef uint16_t Op; /* index in the op table (ir/op/op.h); OP_none is 0 */

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
	uint32_t n; /* length of a list; 0 for other kinds */
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
	uint64_t bytes;     /* of the data */
	uint64_t hash;      /* of dtype, shape and contents; 0: const_hash has not computed it
	                       yet */
	bool is_param;      /* a parameter or buffer of the model: set_weights may replace it */
	bool is_buffer;     /* a buffer of the model: training does not update it by gradients */
	bool frozen;        /* a parameter without requires_grad in the model's file */
	bool in_blocks;     /* other constants have taken its place (transform/model/weights.h) */
	bool absent;        /* the model's file has no value (of a tensor on `meta`): zeros */
	bool transient;     /* a buffer that state_dict() leaves out (persistent=False) */
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

/* A location that also says of which node of the compiled graph (graph_number_nodes) something was
 * made. */
typedef struct {
	LocId line;    /* without a node; 0: unknown */
	uint32_t node; /* from 1 */
} NodeLoc;

typedef struct Ir {
	Ctx *ctx;
	SymTab *syms;
	Intern strings;
	Intern types, attrs, locs;
	ARRAY(NodeLoc) node_loc;
	ARRAY(Type) type;         /* by TypeId */
	ARRAY(const Attr *) attr; /* by AttrId */
	ARRAY(uint32_t) nattr;    /* how many there are; by AttrId */
	ARRAY(Const) constant;    /* by ConstId */
	bool told_absent;         /* a warning tells of constants that are absent */
	struct Builtins **builtins; /* operators that are the compiler's own, once asked for
	                               (ops/user/builtin.c) */
	struct Collectives **collectives; /* those that communicate (ops/user/comm.c) */
	int64_t *ranks; /* in groups whose collectives do not say it; 0: unknown */
	const struct WeftComm **comm; /* the provider of communication of interpreted graphs */
	ARRAY(const struct UserOp *)
	userop; /* user operators that nodes may call
		   (ops/user/userop.h) */
	ARRAY(Node)
	operand; /* of calls whose other operands are still to be evaluated: b_operand
		    (ir/build/build.h) */
} Ir;

/* Returns an Ir without constants, whose only type and attribute tuple are those of handle 0. */
Ir *ir_new(Ctx *);

/* Returns the tensor type with these extents, which are copied. Equal types have equal handles. A
 * rank above MAX_RANK is an internal error, and so is DT_none or a dtype out of range. */
TypeId ir_type(Ir *, DType, uint32_t rank, const Sym *dim);
/* Does as ir_type, with constant extents, which become symbolic integers. */
TypeId ir_type_ints(Ir *, DType, uint32_t rank, const int64_t *dim);
/* Returns the tuple type of these n elements, which are copied. Equal types have equal handles. */
TypeId ir_tuple(Ir *, uint32_t n, const TypeId *elem);
/* Returns the type of a handle; of 0 {DT_none, 0}. The pointer is valid until a function makes a
 * type; its dim or elem stays valid. */
const Type *ir_type_of(const Ir *, TypeId);
/* Returns the number of elements of a tensor type, the product of its extents (sym_mul); 1 for a
 * tuple and for the handle 0. */
Sym type_numel(const Ir *, TypeId);

/* Interns a tuple of n attributes, one for each argument of the schema (ir/op/op.h): equal tuples
 * have equal handles. Copies strings and lists, but refers to graphs. Every NaN becomes the same
 * NaN. If all are ATTR_none, returns 0, the empty tuple. n above MAX_ARGS is an internal error, and
 * so are lists of 4 GiB and more. */
AttrId ir_attrs(Ir *, uint32_t n, const Attr *);
/* Returns attribute k of a tuple, where k is less than the tuple's n; unchecked. Every attribute
 * k < MAX_ARGS of the empty tuple is ATTR_none. */
const Attr *ir_attr(const Ir *, AttrId, uint32_t k);
/* Returns the number of attributes of a tuple: the number of the schema's arguments; 0 of the empty
 * one. */
uint32_t ir_nattr(const Ir *, AttrId);
/* Whether two attributes are of one kind and equal. Compares strings by contents, graphs by
 * identity, floats by bits, and symbolic integers by their handles. */
bool attr_equal(const Attr *, const Attr *);
/* Interns a source location, "net.py:12", without blanks and control characters at its ends, and
 * with hidden characters inside made visible. Equal locations have equal handles. NULL, and a text
 * of which nothing is left, give 0. */
LocId ir_loc(Ir *, const char *text);
/* Returns the text of a location; "" for 0, and for a node without a line. */
const char *ir_loc_text(const Ir *, LocId);
/* Returns a new location with the text of `line`, of the node of that number. */
LocId ir_loc_of_node(Ir *, LocId line, uint32_t node);
/* Returns the number of the node that a location says (graph_number_nodes); 0 if none. */
uint32_t ir_loc_node(const Ir *, LocId);
/* Returns the length of "net.py:12" in the text "net.py:12 in MODULE": of what stands before the
 * first " in " that follows a digit. Of a text without one, returns the whole length. */
size_t ir_loc_line(const char *text);
/* Adds a constant and returns its id, which is not 0. Equal constants are not merged. Copies the
 * name (NULL: "") and dim[], but not the data, which must stay valid as long as the Ir. */
ConstId ir_const(Ir *, Const);
/* Returns a constant; for id 0 one whose fields are all zero. The pointer is valid until the next
 * ir_const. */
const Const *ir_const_of(const Ir *, ConstId);
/* Returns an array of texts by ConstId, in the given arena: the constant's other names in the file
 * (same_as), each followed by a newline, or NULL if it has none. Returns NULL if no constant has
 * other names. */
const char **ir_const_aliases(const Ir *, Arena *);
/* Returns the constant that has the bytes: follows view_of to its end. That is the constant itself
 * if its view_of is 0. Of id 0, returns 0. */
ConstId const_root(const Ir *, ConstId);
/* Whether the constant is a parameter, no buffer, of float or complex dtype that requires gradients
 * in the model's file. False for id 0. */
bool const_requires_grad(const Ir *, ConstId);
/* Returns the name of the constant in whose memory the file stores this one (Const.holder); NULL if
 * the file stores it in memory of its own. */
const char *const_holder(const Ir *, ConstId);
/* Whether set_weights may change the value: const_root of it is a parameter or buffer of the model
 * (is_param), or has a recipe. False for id 0. */
bool const_is_replaceable(const Ir *, ConstId);
/* Returns Const.hash, never 0. If the hash is 0, computes it first, from the data. (Who makes a
 * constant with a recipe sets the hash, to that of the recipe's text.) */
uint64_t const_hash(Ir *, ConstId);
/* Computes the hash of each constant whose hash is 0, as const_hash does, with up to `jobs` threads
 * at the same time. */
void const_hash_all(Ir *, uint32_t jobs);

/* Returns an attribute of the kind in the function's name, with this value. attr_sym and
 * attr_int: ATTR_int. A list and a graph are referred to, not copied (ir_attrs copies lists).
 * attr_str interns the string. */
static inline Attr attr_none(void) { return (Attr){ATTR_none, 0, {0}}; }
static inline Attr attr_bool(bool b) { return (Attr){ATTR_bool, 0, {.b = b}}; }
static inline Attr attr_sym(Sym s) { return (Attr){ATTR_int, 0, {.s = s}}; }
static inline Attr attr_float(double f) { return (Attr){ATTR_float, 0, {.f = f}}; }
static inline Attr attr_complex(double re, double im)
{
	return (Attr){ATTR_complex, 0, {.z = {re, im}}};
}
static inline Attr attr_dtype(DType d) { return (Attr){ATTR_dtype, 0, {.dtype = d}}; }
static inline Attr attr_bools(const bool *v, uint32_t n)
{
	return (Attr){ATTR_bools, n, {.bools = v}};
}
static inline Attr attr_ints(const Sym *v, uint32_t n) { return (Attr){ATTR_ints, n, {.ints = v}}; }
static inline Attr attr_graph(Graph *g) { return (Attr){ATTR_graph, 0, {.graph = g}}; }
static inline Attr attr_const(ConstId c) { return (Attr){ATTR_const, 0, {.c = c}}; }
Attr attr_int(Ir *, int64_t);
Attr attr_str(Ir *, const char *);
/* Returns the dtype with which a Python scalar takes part in type promotion: bool, i64, f32 for any
 * float, c64 for any complex number. DT_none for other attributes. */
DType attr_weak_dtype(const Attr *);

/* ---- graphs ---- */

typedef struct {
	Op op; /* OP_none: the node was erased */
	uint16_t nin;
	uint32_t in;    /* operand k is use[in + k] */
	Use first_use;  /* head of the list of readers */
	Node prev, next; /* neighbours in program order, in which operands come before readers */
	TypeId type;
	AttrId attr;
	LocId loc;
} NodeData;
_Static_assert(sizeof(NodeData) == 32, "two nodes per cache line");

/* An operand of node `user`: the value of node `def` (0: an absent optional tensor). prev and next
 * are its neighbours in the list of the operands that read `def`. */
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
#define RANDOM_STATE "weft.rng" /* the name of the state, or input, that random numbers depend on */
/* Returns the role of an input, as in WeftTensorInfo.role: "input", "param" or "buffer" by its
 * kind; "rng" if its name is RANDOM_STATE; those of a step of training by the names that
 * transform/step and weft.train_step give: "label", "scalar:NAME" of an f64 without dimensions,
 * "optimizer", "counter". In the arena. */
const char *input_role(Arena *, InputKind, const char *name, DType, uint32_t rank);
/* Returns the role of an output by its name: "output", "loss", or "metric". */
const char *output_role(const char *name);

typedef struct {
	Node node;        /* none: no tensor; lowering and the interpreter refuse the output */
	const char *name; /* the name that users see */
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
	bool exported; /* torch.export wrote it */
	const char *other_mode; /* a node that writes memory which some operator shares in training
				   or in evaluation only, so that the graph of the other mode is not
				   this one with other arguments; NULL: none */
	DType unrounded; /* precision_lower made the graph compute in that dtype: a result that one
			    reader widens need not be rounded (passes/simplify/low.c). DT_none
			    elsewhere. Passes give subgraphs that of the graph around them */
	DType activations; /* DT_i8: what products multiply with constant weights of at most 8 bits
			      is rounded to 8 bits (passes/quantize/blocks.c), and the graph has no
			      derivative. DT_f32: none is. DT_none: where the model says so
			      (OpInfo.rounds). Passes give it to subgraphs, too */
	bool requires; /* private to graph_require: infer functions add guards */
	/* Private to graph.c. */
	Intern names;              /* all names that nodes ever had; name_uses counts them */
	ARRAY(uint32_t) name_uses; /* by name id */
	uint32_t *number;          /* by node: the number of an unnamed node in program order; valid
	                              if `numbered` */
	uint32_t nnumber;          /* length of `number` */
	uint32_t number_room;      /* how long it may become */
	bool numbered;
};

/* A condition on sizes that the compiled model checks at the start of each call. If the condition
 * does not hold, the call fails with a message that contains `why` ("": no reason is given). */
typedef enum { GUARD_EQ, GUARD_NE, GUARD_LE } GuardKind;
struct GraphGuard {
	GuardKind kind;
	Sym a, b; /* a == b, a != b, a <= b */
	const char *why;
};

typedef struct GraphGuard GraphGuard;

/* Returns an empty graph in the current scope of symbols. The name is copied; NULL counts as "". */
Graph *graph_new(Ir *, const char *name);
/* Returns an empty graph in the Ir and the scope of another one: a body of one of its nodes, or a
 * part of it. The name is as in graph_new. */
Graph *graph_beside(const Graph *, const char *name);
/* Returns the table of symbols of the graph's Ir, whose current scope is the graph's from then on:
 * questions about names and variables are about this graph. */
static inline SymTab *graph_syms(const Graph *g)
{
	if (sym_scope(g->ir->syms) != g->scope)
		sym_set_scope(g->ir->syms, g->scope);
	return g->ir->syms;
}
/* Adds a node in front of `before` (none: at the end) and returns it. in[k] may be none for an
 * absent optional tensor. The node has no name. Does not check whether operands, attributes and
 * type fit: b_node (build.h) checks, and infers the type. Invalidates NodeData pointers. */
Node graph_add(Graph *, Node before, Op, const Node *in, uint32_t nin, AttrId, TypeId, LocId);
/* Adds an input behind all other inputs and returns its node, which gets the name as by
 * graph_set_name. GraphInput.name is a copy of the name; NULL counts as "". GraphInput.init is 0
 * (of state, the caller sets it). Invalidates NodeData pointers. */
Node graph_add_input(Graph *, const char *name, InputKind, TypeId);
/* Returns the first node in program order that is no input; none if there is none. All inputs come
 * before it. */
Node graph_behind_inputs(const Graph *);
/* Adds an output behind the other outputs. The name is copied; NULL counts as "". The node may be
 * none, and writes is the index of an input or -1, as in GraphOutput. */
void graph_add_output(Graph *, const char *name, Node, int32_t writes);
/* Makes the node, which may be none, the value of output k, which exists. */
void graph_set_output(Graph *, uint32_t k, Node);
/* Removes output k, which exists; its node stays. Each later output gets the next smaller index. */
void graph_remove_output(Graph *, uint32_t k);
/* Removes all outputs; their nodes stay. */
void graph_clear_outputs(Graph *);
/* Makes every reader of `old`, graph outputs included, read `new`, which must be another node that
 * does not read `old`. If `new` has no name, the name of `old` becomes that of `new`, unless `old`
 * is an input. `old` stays in the graph, without readers. Takes O(readers) if `old` is no graph
 * output, else O(readers + outputs). */
void graph_replace(Graph *, Node old, Node new);
/* Removes a node from the graph. It is an internal error if another node has it as an operand, or
 * if it was erased before. The node must be no graph output, which is not checked. The entry of an
 * input in Graph.input stays: the caller removes it. */
void graph_erase(Graph *, Node);
/* Makes operand k < node_nin of `user` read `def`, which may be none. */
void graph_set_operand(Graph *, Node user, uint32_t k, Node def);
/* Changes a node's type. The caller sees to it that readers accept the new type. */
void graph_set_type(Graph *, Node, TypeId);
/* Changes a node's attributes. The caller sees to it that its type still fits them. */
void graph_set_attrs(Graph *, Node, AttrId);
/* Names a node; NULL and "" take its name away. Characters other than [A-Za-z0-9_.$] become "_"; a
 * name that begins with a digit gets a "_" in front. If a node of the graph, this one included, has
 * or ever had the name, "_" and a number are appended. */
void graph_set_name(Graph *, Node, const char *);
/* Returns the node's name, "conv2d_3"; of an unnamed node its number among the unnamed nodes,
 * "17", inputs first, then in program order, in the scratch arena; "none" for 0. May number all
 * nodes, in O(nodes). */
const char *graph_name(Graph *, Node);
/* Compares two extents. YES: they are provably equal. NO: they provably differ, or they differ at a
 * point that no guard of the graph refuses: the hints of the symbols, or one of 16 samples of
 * sizes in range, of at least 2 where the range allows. MAYBE: they may be equal; require that by
 * graph_guard. */
Truth graph_same_extent(const Graph *, Sym, Sym);
/* Adds a guard, unless the condition is provably true or already a guard. A condition that is
 * provably false is added too, without an error. why: the reason in the message if the guard fails;
 * copied; NULL counts as "". */
void graph_guard(Graph *, GuardKind, Sym a, Sym b, const char *why);
/* Whether a guard requires that two sizes are equal. */
bool graph_requires_equal(const Graph *, Sym, Sym);
/* Finds the first dimension of an input whose extent contains the size symbol, and sets *input to
 * the index in g->input and *dim to the dimension. Returns false if there is none; *input and *dim
 * then have no meaning. All inputs are tensors. */
bool graph_symbol_input(const Graph *, Sym var, uint32_t *input, uint32_t *dim);
/* Returns the dimension that graph_symbol_input finds, for a message: " (input \"x\" dimension 0)",
 * in the scratch arena; "" if there is none. */
const char *graph_symbol_origin(const Graph *, Sym var);
/* Makes order[] the program order. order[] has all n nodes of the graph, each once, inputs first
 * and operands before their readers, which is not checked. */
void graph_set_order(Graph *, const Node *order, uint32_t n);
/* Returns a copy in the same Ir, of which no node has a subgraph in common with another node. Node
 * handles of the original mean nothing in the copy; inputs, outputs and nodes are in the same
 * order. */
Graph *graph_clone(const Graph *);
/* Adds to dst, in front of `before` (none: at the end), a copy of node n of src, with its name (as
 * by graph_set_name), and returns the copy. map[i]: the node of dst that the copy reads where n
 * reads node i of src; map[0] is none. Subgraphs are copied. Both graphs are of one Ir. map[]
 * itself stays unchanged. */
Node graph_copy_node(Graph *dst, Node before, const Graph *src, Node n, const Node *map);
/* Adds copies of the nodes of src, inputs apart, to dst in front of `before` (none: at the end),
 * and src's guards. arg[k], a node of dst, takes the place of input k. Sets out[k] to the node of
 * dst that is output k, none for an output that is none. Both graphs are of one Ir. */
void graph_inline(Graph *dst, Node before, const Graph *src, const Node *arg, Node *out);
/* Gives the location of every node the node's number: 1, 2, ... in program order, the nodes of
 * subgraphs right behind the node that has them (graph_visit). Nodes that passes make of a node
 * have its location, so they tell of which node they were made. Texts of locations stay. */
void graph_number_nodes(Graph *);
/* Calls visit(user, graph, node, around) for every node in the order of graph_number_nodes. around:
 * the number of the node whose subgraph has the node; 0 for nodes of the graph itself. Returns the
 * number of nodes. */
uint32_t graph_visit(Graph *, void (*visit)(void *user, Graph *, Node, uint32_t around),
		     void *user);
/* Whether both graphs have equal nodes in the same order, names (also that of the graph), types,
 * attributes, texts of locations, inputs, outputs and guards. Subgraphs are compared the same way.
 * Graphs of different Irs are not equal. The fields decomposed, exported, other_mode, unrounded and
 * activations do not count. */
bool graph_equal(const Graph *, const Graph *);

/* ---- questions about a node ----
 * Pointers to NodeData are valid until a function adds a node; those to a Type until a function
 * makes a type. */

/* Returns the data of a node, valid until a function adds a node. */
static inline const NodeData *node_data(const Graph *g, Node n) { return &g->node.data[n.i]; }
/* Returns the operator of a node. */
static inline Op node_op(const Graph *g, Node n) { return g->node.data[n.i].op; }
/* Returns the number of operands of a node, absent optional tensors included. */
static inline uint32_t node_nin(const Graph *g, Node n) { return g->node.data[n.i].nin; }
/* Returns operand k < node_nin; none for an absent optional tensor. */
static inline Node node_in(const Graph *g, Node n, uint32_t k)
{
	assert(k < g->node.data[n.i].nin);
	return g->use.data[g->node.data[n.i].in + k].def;
}
/* Returns the node behind n in program order; none for the last. */
static inline Node node_next(const Graph *g, Node n) { return g->node.data[n.i].next; }
/* Returns the node before n in program order; none for the first. */
static inline Node node_prev(const Graph *g, Node n) { return g->node.data[n.i].prev; }
/* Returns the handle of the type of a node's value; 0 of a node without a value. */
static inline TypeId node_type_id(const Graph *g, Node n) { return g->node.data[n.i].type; }
/* Returns the type of a node's value; {DT_none, 0} of a node without a value. The pointer is valid
 * until a function makes a type. */
static inline const Type *node_type(const Graph *g, Node n)
{
	return ir_type_of(g->ir, g->node.data[n.i].type);
}
/* Returns the dtype of a node's value; DT_none of a tuple and of a node without a value. */
static inline DType node_dtype(const Graph *g, Node n) { return node_type(g, n)->dtype; }
/* Returns the rank of a node's value; of a tuple the number of its elements; 0 of a node without a
 * value. */
static inline uint32_t node_rank(const Graph *g, Node n) { return node_type(g, n)->n; }
/* Returns extent k < rank of a node's value, which is a tensor. */
static inline Sym node_dim(const Graph *g, Node n, uint32_t k)
{
	const Type *t = node_type(g, n);
	assert(t->dtype != DT_none && k < t->n);
	return t->dim[k];
}
/* Returns how many operands of nodes, and how many graph outputs, are the node, added: a node that
 * has it as two operands counts twice. */
uint32_t node_nuses(const Graph *, Node);
/* Returns the node that is the head of n's list of readers; none: nothing, or an output, reads n
 * there. */
static inline Node node_first_user(const Graph *g, Node n)
{
	const Use u = node_data(g, n)->first_use;
	return u.i ? g->use.data[u.i].user : (Node){0};
}
/* Whether a graph output is the node. */
bool node_is_output(const Graph *, Node);
/* Whether the node has a value, which is no tuple. */
static inline bool node_is_tensor(const Graph *g, Node n)
{
	return node_type_id(g, n).i && node_dtype(g, n) != DT_none;
}
/* Walks the subgraphs of a node, in the order of the schema. Returns the first whose argument is *k
 * or a later one, and moves *k behind that argument; returns NULL at the end. Start: uint32_t k =
 * 0. */
Graph *node_next_body(const Graph *, Node, uint32_t *k);
/* Returns the node's attributes with a copy of each subgraph (graph_clone) in its place. */
AttrId node_clone_attrs(const Graph *, Node);
/* Returns the number of results: 0 without a type, the number of elements of a tuple, else 1. */
uint32_t node_nresult(const Graph *, Node);
/* Returns the type of result k < node_nresult. */
TypeId node_result_type(const Graph *, Node, uint32_t k);
/* Whether an extent of the node's type, of a tuple an extent of one of its types, contains an
 * unbacked size. The node may be the one that computes the size. Returns false for a node without a
 * value. */
bool node_has_data_size(const Graph *, Node);
/* Appends the text of a type: "f32[s0, 3]", "(f32[2], i64[])". The handle 0 gives "()". */
void type_print(const Ir *, TypeId, Text *);
/* Returns the text of type_print, in the scratch arena. */
const char *type_str(const Ir *, TypeId);
/* Whether an extent of the type contains the symbol; of a tuple, an extent of one of its types.
 * Returns false for the handle 0. */
bool type_uses(const Ir *, TypeId, Sym var);
/* Whether the type of an input of the graph contains the symbol. */
bool graph_is_given(const Graph *, Sym var);
/* Returns operand k < node_nin of an OP_tuple; none for another node. */
Node node_element(const Graph *, Node, uint32_t k);

/* Whether output k writes state (an input that is no INPUT_USER). Such an output is no output of
 * the compiled model. */
static inline bool graph_output_is_state(const Graph *g, uint32_t k)
{
	int32_t in = g->output.data[k].writes;
	return in >= 0 && g->input.data[in].kind != INPUT_USER;
}

/* Returns the index of the output that writes input `input`; -1 if none does. */
static inline int32_t graph_writer(const Graph *g, uint32_t input)
{
	for (uint32_t k = 0; k < g->output.n; k++)
		if (g->output.data[k].writes == (int32_t)input)
			return (int32_t)k;
	return -1;
}


#endif
