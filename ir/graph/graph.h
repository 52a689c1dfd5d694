/* The Graph: ordered nodes in arrays behind 32-bit handles, with use lists. Types, attributes and
 * source locations are interned in the Ir that all graphs of a compilation share. */
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
typedef uint16_t Op; /* index into the op table, see ir/ops/op.h; OP_none is 0 */

enum { MAX_RANK = 12, MAX_ARGS = 64 }; /* arguments of a schema */

/* ---- types ---- */

/* {dtype, shape}, or a tuple of such. No strides, no layout. */
typedef struct {
	DType dtype; /* DT_none: a tuple */
	uint32_t n;  /* rank, or number of elements */
	union {
		const Sym *dim;
		const TypeId *elem;
	};
} Type;

/* ---- attributes ---- */

typedef enum {
	ATTR_none, /* absent optional; also the slot of a tensor argument */
	ATTR_bool, ATTR_int, ATTR_float, ATTR_complex, ATTR_str, ATTR_dtype, ATTR_graph, ATTR_const,
	ATTR_ints, ATTR_floats, ATTR_bools
} AttrKind;

/* A Python scalar is ATTR_bool, ATTR_int, ATTR_float or ATTR_complex. Integers are symbolic
 * everywhere. */
typedef struct {
	AttrKind kind;
	uint32_t n; /* of a list */
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
	const char *name; /* of the parameter or buffer, "" for folded values */
	DType dtype;
	uint32_t rank;
	const int64_t *dim;
	const void *data;   /* row-major, dtype_size each; a mapped file or the arena; complex as
	                       pairs. NULL: see recipe */
	uint64_t bytes;
	uint64_t hash;      /* of dtype, shape and contents; 0 until const_hash asks for it */
	bool is_param;      /* from the model's weights, so replaceable */
	bool is_buffer;     /* of these, no parameter: not what a model learns */
	bool frozen;        /* a parameter that does not require gradients (requires_grad of the
	                       file) */
	ConstId same_as;    /* another name of that one, the first in the file, which is the one
	                       that graphs read; 0: of none */
	ConstId holder;     /* in whose memory the file has it; 0: in its own */
	ConstId view_of;    /* the same bytes under this one's shape and dtype; 0: of no other */
	/* What is computed from parameters that are replaceable: how, a graph without inputs and
	 * with one output, the value. No pass looks at the data, which is NULL until the artifact's
	 * own code has made it (driver/artifact/recipes.h). */
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
	ARRAY(const struct UserOp *) userop; /* that nodes may call: ir/ops/user/userop.h */
} Ir;

Ir *ir_new(Ctx *);

TypeId ir_type(Ir *, DType, uint32_t rank, const Sym *dim);
TypeId ir_type_ints(Ir *, DType, uint32_t rank, const int64_t *dim);
TypeId ir_tuple(Ir *, uint32_t n, const TypeId *elem);
const Type *ir_type_of(const Ir *, TypeId); /* valid until the next ir_type/ir_tuple */
Sym type_numel(const Ir *, TypeId);

/* Interned tuple of n attributes, one slot per schema argument (see ir/ops/op.h). List contents are
 * copied. */
AttrId ir_attrs(Ir *, uint32_t n, const Attr *);
/* Slot k of a tuple; every slot of the empty tuple is ATTR_none. Valid as long as the Ir. */
const Attr *ir_attr(const Ir *, AttrId, uint32_t k);
bool attr_equal(const Attr *, const Attr *); /* graphs by identity, floats by bits */
LocId ir_loc(Ir *, const char *text); /* "net.py:12" */
const char *ir_loc_text(const Ir *, LocId); /* "" when unknown */
/* How many of its bytes name the line: all but " in " and the module behind it. */
size_t ir_loc_line(const char *text);
ConstId ir_const(Ir *, Const);
const Const *ir_const_of(const Ir *, ConstId); /* valid until the next ir_const */
/* By constant: its other names in the file, a newline behind each, or NULL. NULL: none has any. */
const char **ir_const_aliases(const Ir *, Arena *);
/* The constant whose bytes it has: itself, or at the end of view_of. */
ConstId const_root(const Ir *, ConstId);
/* Its value changes when weights are replaced. */
bool const_is_replaceable(const Ir *, ConstId);
uint64_t const_hash(Ir *, ConstId); /* of a recipe its text's */
void const_hash_all(Ir *, uint32_t jobs); /* that are not known yet, by so many threads */

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
/* Of a Python scalar as ATen promotes it: bool, i64, f32 for any float, c64 for any complex number.
 * DT_none of others. */
DType attr_weak_dtype(const Attr *);

/* ---- graphs ---- */

typedef struct {
	Op op;
	uint16_t nin;
	uint32_t in;    /* operand k is use[in + k] */
	Use first_use;  /* readers of this node */
	Node prev, next; /* program order, kept topological */
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

/* Inputs are nodes with OP_input; parameters and buffers that are never written become OP_constant
 * nodes on import, so INPUT_PARAM/INPUT_BUFFER stand only for state that the graph replaces.
 * Printed as `%m: f32[4] buffer #3 "bn.mean"`: constant 3 is the first contents. */
typedef struct {
	Node node;
	InputKind kind;
	const char *name; /* user-visible */
	ConstId init;     /* of state: its first contents; 0 of users' inputs */
} GraphInput;

typedef struct {
	Node node;
	const char *name;
	int32_t writes; /* index of the input whose value this replaces after the call, or -1; of
	                   each input at most one */
} GraphOutput;

struct Graph {
	Ir *ir;
	const char *name;
	uint32_t scope;       /* of its symbols' names (sym.h) */
	ARRAY(NodeData) node; /* [0] unused */
	ARRAY(UseData) use;   /* [0] unused */
	ARRAY(const char *) node_name; /* printed name by node, NULL: its number */
	ARRAY(uint32_t) nread, nout;   /* by node: how many operands and outputs it is */
	Node first, last;
	ARRAY(GraphInput) input;
	ARRAY(GraphOutput) output;
	/* Conditions on symbols that must hold at entry: sym == 0 means violated; text for the
	 * message. */
	ARRAY(struct GraphGuard) guard;
	bool decomposed; /* by the exporter, whose file does not say what torch.no_grad() and detach
	                    kept from autograd */
	/* Private to graph.c. */
	Intern names;              /* ever given to a node; name_uses counts how often */
	ARRAY(uint32_t) name_uses; /* by name id */
	uint32_t *number;          /* of unnamed nodes in program order, valid while `numbered` */
	uint32_t nnumber;          /* its length */
	bool numbered;
};

typedef enum { GUARD_EQ, GUARD_NE, GUARD_LE } GuardKind;
struct GraphGuard {
	GuardKind kind;
	Sym a, b; /* a == b, a != b, a <= b */
	const char *why;
};

typedef struct GraphGuard GraphGuard;

/* Its symbols are those of the current scope. */
Graph *graph_new(Ir *, const char *name);
/* Where an Ir holds graphs of several files: symbols are those of this one from now on. */
static inline void graph_enter(const Graph *g) { sym_set_scope(g->ir->syms, g->scope); }
/* Insert before `before` (none: at the end). Operands may be none for absent optional tensors. */
Node graph_add(Graph *, Node before, Op, const Node *in, uint32_t nin, AttrId, TypeId, LocId);
Node graph_add_input(Graph *, const char *name, InputKind, TypeId);
/* The first node in program order that is no input: inputs come first. None if there is none. */
Node graph_behind_inputs(const Graph *);
void graph_add_output(Graph *, const char *name, Node, int32_t writes);
/* Another value for output k. */
void graph_set_output(Graph *, uint32_t k, Node);
/* No results; their nodes stay. */
void graph_clear_outputs(Graph *);
/* Every reader of `old`, graph outputs included, reads `new` from now on. O(readers). */
void graph_replace(Graph *, Node old, Node new);
/* The node must have no readers. */
void graph_erase(Graph *, Node);
void graph_set_operand(Graph *, Node user, uint32_t k, Node def);
/* Readers are to take the new type. */
void graph_set_type(Graph *, Node, TypeId);
void graph_set_attrs(Graph *, Node, AttrId);
/* Characters other than [A-Za-z0-9_.$] become "_"; a name that is taken gets a number appended. */
void graph_set_name(Graph *, Node, const char *);
const char *graph_name(Graph *, Node); /* "conv2d_3" or "17"; never NULL */
/* The same in the graph as it was when last numbered; its operator where it is newer. For messages:
 * O(1). */
const char *graph_last_name(Graph *, Node);
/* NO: they differ, provably, at the hints or at a sampled point of sizes of 2 and more. MAYBE:
 * equal as far as one can see, to be required by graph_guard. */
Truth graph_same_extent(const Graph *, Sym, Sym);
/* Require a condition at entry; one that is provably true or already there is not added. */
void graph_guard(Graph *, GuardKind, Sym a, Sym b, const char *why);
/* The first dimension of an input in which a size symbol stands. */
bool graph_symbol_input(const Graph *, Sym var, uint32_t *input, uint32_t *dim);
/* " (input \"x\" dimension 0)": where the value of a size symbol comes from; "" when from no input.
 * In the scratch arena. */
const char *graph_symbol_origin(const Graph *, Sym var);
/* Remove nodes without readers and without effects, inputs excepted. True if any went. */
bool graph_dce(Graph *);
/* Subgraphs are cloned too: no two nodes share one. */
Graph *graph_clone(const Graph *);
/* A copy in another Ir, in a new scope, which becomes the current one; data of constants is shared,
 * so both live as long as one context. */
Graph *graph_import(Ir *, const Graph *);
/* A copy of n, which is of src, with its name: its operands are map[] of n's, by handle in src.
 * Subgraphs are cloned. */
Node graph_copy_node(Graph *dst, Node before, const Graph *src, Node n, const Node *map);
/* Append the body of `src` with inputs replaced by arg[k]; out[k] receives the outputs. */
void graph_inline(Graph *dst, Node before, const Graph *src, const Node *arg, Node *out);
/* Same nodes in the same order, names, types, attributes, inputs, outputs, guards. One Ir only. */
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
uint32_t node_nuses(const Graph *, Node); /* readers, a graph output counts as one */
bool node_is_output(const Graph *, Node);
bool node_has_effect(const Graph *, Node); /* its own or a subgraph's */
bool node_has_graph(const Graph *, Node);  /* scan, while, cond */
/* How many values it gives (0, 1, or as many as its tuple has), and their types. */
uint32_t node_nresult(const Graph *, Node);
TypeId node_result_type(const Graph *, Node, uint32_t k);
/* Its type has a size that depends on data, which it may be the one to find out. */
bool node_has_data_size(const Graph *, Node);
/* The next `get` of result k of a tuple, from the reader *u on, which then is the one after it;
 * none at the end. */
Node node_next_get(const Graph *, Use *u, uint32_t k);

/* Output k replaces state, which no caller passes: it is none of a compiled model's outputs. */
static inline bool graph_output_is_state(const Graph *g, uint32_t k)
{
	int32_t in = g->output.data[k].writes;
	return in >= 0 && g->input.data[in].kind != INPUT_USER;
}

/* The constant that a node is; 0 for other nodes. */
ConstId node_const(const Graph *, Node);

/* Attribute by schema argument name; a bug when the schema has none of that name. */
const Attr *node_attr(const Graph *, Node, const char *name);
Sym node_sym(const Graph *, Node, const char *name);
int64_t node_int(const Graph *, Node, const char *name); /* a constant integer; else a bug */
bool node_bool(const Graph *, Node, const char *name);
double node_float(const Graph *, Node, const char *name); /* int, bool accepted; NaN after ctx_error
                                                             of a complex number */
const char *node_str(const Graph *, Node, const char *name);
/* A list of symbolic integers; *n receives the length. */
const Sym *node_ints(const Graph *, Node, const char *name, uint32_t *n);
/* Operand by schema argument name, none when absent. For a Tensor[]: the first; *n the count. */
Node node_arg(const Graph *, Node, const char *name);
uint32_t node_args(const Graph *, Node, const char *name, uint32_t *first);

/* Of a `to_size` node: what is wrong with a value that its size cannot have, a format for that
 * value (%lld). */
const char *node_size_message(const Graph *, Node);
/* Of one whose size is known already, from the inputs of `bound` (or NULL): a format for the value
 * and what is known (%lld). */
const char *node_size_differs(const Graph *, Node, const Graph *bound);
/* "model.pt2: node conv2d_3 (net.py:12)" for diagnostics, in the scratch arena. */
const char *node_where(Graph *, Node);
/* The same with graph_last_name: for what is made for every node and rarely read. */
const char *node_near(Graph *, Node);

/* ---- text form ---- */

void graph_print(const Graph *, Text *);
/* used[k] for sym_var_at(k): in the types and attributes of the nodes, those of subgraphs
 * included. */
void graph_used_symbols(const Graph *, bool *used);
void graph_print_node(const Graph *, Node, Text *); /* its line, with a line break */
void type_print(const Ir *, TypeId, Text *); /* "f32[s0, 3]", "(f32[2], i64[])" */
const char *type_str(const Ir *, TypeId);    /* in the scratch arena */
/* NULL with diagnostics ("name:line:col") on bad text. Parsing what was printed gives an equal
 * graph; constants are looked up by id in the Ir. Symbols that do not exist yet are created. */
Graph *graph_parse(Ir *, const char *text, const char *name);
/* "f32[B, 3]". Symbols that do not exist yet are created. 0 with diagnostics, in which `name` is
 * where it stands. */
TypeId type_parse(Ir *, const char *text, const char *name);
/* Structure, types, order, use lists. False with diagnostics. */
bool graph_verify(Graph *);
/* Less than 2^48 bytes: sizes then fit 64 bits with room for sums. Symbols count with the least
 * they can be; at run time the program checks. A map that only views a value, however large, is
 * counted too. */
bool node_fits(const Graph *, Node);

#endif
