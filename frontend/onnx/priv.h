/* Private to frontend/onnx: values, names, and imports of nodes.
 *
 * Terms. A value is what a name of the file stands for: a tensor, or a list of values (a sequence;
 * an optional is a list of at most one). A value is known if its elements are known at import. Its
 * sizes are its elements as symbolic integers: of integer tensors without dimensions, or with one
 * or two and at most MAX_SIZES elements. A scope is a graph or function of the file that is being
 * imported. */
#ifndef WEFT_FRONTEND_ONNX_PRIV_H
#define WEFT_FRONTEND_ONNX_PRIV_H

#include "base/intern.h"
#include "base/nearest.h"
#include "frontend/onnx/model.h"
#include "frontend/onnx/onnx.h"
#include "ir/build/build.h"
#include "ir/op/op.h"

enum {
	MAX_SIZES = 64,
	MAX_CALLS = 32,         /* functions that call each other */
	MAX_EXPANDED = 1 << 20, /* nodes of functions, and of bodies that are inlined, counted each
	                           time */
};

typedef struct Value Value;
struct Value {
	const char *name;
	Graph *home;         /* the graph of `node` */
	Node node;           /* none: made by onnx_value_node, from what is known */
	const Tensor *known; /* NULL: not known at import */
	bool is_init;        /* a float constant that becomes a parameter */
	int64_t elem;        /* the type of the file, where the dtype only keeps its values; 0:
	                        others */
	int32_t input;       /* the input whose value the caller of the importer gave; -1: none */
	DType dtype;         /* of what has sizes and no node */
	const Sym *size;     /* NULL: not known, or as `known` says */
	uint32_t nsize;
	bool has_dim;        /* of sizes: at least one dimension, else none */
	uint32_t rows;       /* of sizes with two dimensions: the first extent; 0: others */
	bool is_list;
	ARRAY(Value *) item;
	Sym repeats;         /* of a part of a list: its items, whose leading dimension has that
	                        extent, stand once for each element of it; without items: what
	                        a loop's sequence holds in front of a round. None: others */
	const Sym *below;    /* of a bool: below[0] < below[1], by sizes; NULL: not known */
};

typedef struct {
	Ir *ir;
	Ctx *ctx;
	SymTab *syms;
	const OnnxModel *model;
	const OnnxOptions *options;
	OnnxFolder folder;
	Graph *main;
	uint32_t nsize;           /* sizes from data so far */
	uint32_t nexpanded;       /* nodes of functions and bodies so far */
	uint32_t napart;          /* errors of Ifs whose branches do not give the same types */
	ARRAY(Value *) input;     /* of the main graph */
	ARRAY(bool) checked;      /* by input: the graph compares it with its given value */
	Intern functions;         /* "domain:name:overload" -> index in model->function + 1 */
	Intern dims;              /* names of the file's dimensions; each is a symbol of its own */
	ARRAY(Sym) dim;           /* by id in dims, - 1 */
} Import;

/* The nodes of a scope that are not imported yet: an If may take some into its branches. */
typedef struct {
	const OnnxNode *next, *end;
	OnnxNames results;      /* what is read of the scope behind them */
	OnnxNames late;         /* first results of Ifs that waited for nodes behind them */
} Rest;

typedef struct Scope Scope;
struct Scope {
	Import *im;
	Build b;
	Scope *outer;               /* whose names are known here, too; NULL: none */
	const OnnxOpsets *opset;
	const OnnxFunction *function; /* that is inlined; NULL: none */
	const OnnxNode *call;         /* its call, and the scope of the call */
	Scope *caller;
	LocId loc; /* of the node around: of an inlined function or a subgraph */
	uint32_t depth;
	Intern names;
	ARRAY(Value *) value;
	Rest rest;
};

/* ---- values ---- */

void onnx_scope_init(Scope *, Import *, Graph *, Scope *outer, const OnnxOpsets *);
/* Returns the value of a name, also of an outer scope; NULL, without a message. */
Value *onnx_scope_find(const Scope *, const char *name);
/* Gives a name its value. "" is no name. Returns false after an error: the name has one already. */
bool onnx_scope_bind(Scope *, const char *name, Value *);
Value *onnx_value_new(Import *);
/* Returns the value of a node of the scope's graph. */
Value *onnx_value_of(Scope *, Node);
/* Returns the value of these elements; sizes are copied. */
Value *onnx_value_sizes(Import *, DType, const Sym *, uint32_t n, bool has_dim);
Value *onnx_value_known(Import *, const Tensor *);
Value *onnx_value_list(Import *, Value *const *, uint32_t n);
/* Returns the node of a tensor in the scope's graph. Returns no node after an error: of a list. */
Node onnx_value_node(Scope *, Value *);
/* Returns the elements, if they are known at import; NULL, without a message. The value of an input
 * that was given with the options is known, and is checked at each call from now on. */
const Tensor *onnx_value_elements(Scope *, Value *);
/* Whether the values of inputs that were given with the options decide a value of the main graph:
 * *out, in the arena. Those inputs are checked at each call from now on. Returns false if they do
 * not: after an error only where the value cannot be computed. */
bool onnx_value_decided(Scope *, const Value *, Tensor *out);
/* Sets *out and *n to the sizes of a value; false, without a message, if they are not known or have
 * two dimensions. An input's are not known, whatever value was given. */
bool onnx_value_as_sizes(Scope *, Value *, const Sym **out, uint32_t *n);
/* Does as onnx_value_as_sizes, for what must have sizes: those of an input are the value that
 * was given, others that are not known become sizes that depend on data. Returns false after an
 * error. what: the name in messages. */
bool onnx_value_to_sizes(Scope *, Value *, const char *what, const Sym **out, uint32_t *n);
/* Returns a new size, which the i64 x has, at most `most` (none: no bound is known); what: its name
 * in messages. */
Sym onnx_size_from_data(Scope *, Node x, Sym most, const char *what);
/* Returns the number of a TensorProto.DataType if its values are kept in a dtype that has others,
 * too; 0 for other numbers. */
int64_t onnx_kept_type(int64_t type);
/* Returns the dtype, rank and extents of a value that is a tensor; rank UINT32_MAX of a list. */
DType onnx_value_dtype(Scope *, const Value *);
uint32_t onnx_value_rank(Scope *, const Value *);
Sym onnx_value_dim(Scope *, const Value *, uint32_t k);

/* ---- nodes ---- */

/* A node of the file with its operands. */
typedef struct {
	Scope *s;
	const OnnxNode *n;
	int64_t opset;   /* of the node's domain */
	Value **in;      /* NULL: absent */
	uint32_t nin;
} Item;

/* Returns the attribute of that name; where a function's body refers to an attribute of its call,
 * that one. NULL, without a message, if there is none. */
const OnnxAttr *onnx_item_attr(const Item *, const char *name);
int64_t onnx_item_int(const Item *, const char *name, int64_t otherwise);
/* Returns operand k; NULL, without a message, if it is absent. */
static inline Value *onnx_item_in(const Item *it, uint32_t k)
{
	return k < it->nin ? it->in[k] : NULL;
}
/* Gives result k its value. Nothing if the node has no such result. */
bool onnx_item_bind(const Item *, uint32_t k, Value *);
/* Records an error at the node. Returns false. */
bool onnx_item_error(const Item *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Whether the domain is ai.onnx. */
bool onnx_is_main_domain(const char *domain);

/* Imports nodes of a scope, of which the values `results` are read afterwards. Returns false after
 * an error. */
bool onnx_scope_nodes(Scope *, const OnnxNode *, uint32_t n, OnnxNames results);
/* Imports the initializers and nodes of a graph into a scope that has its inputs. Returns false
 * after an error. */
bool onnx_scope_graph(Scope *, const OnnxGraph *);
/* Returns the type of a graph's input; extents that are not numbers are symbols, whose hints the
 * tensor gives (NULL: none). Returns 0 after an error. */
TypeId onnx_type_of_info(Import *, const OnnxInfo *, const Tensor *hint);
/* Adds the names of all initializers. */
void onnx_init_names(const OnnxGraph *, Intern *);
/* Makes initializers values of the scope. Returns false after an error. */
bool onnx_scope_inits(Scope *, const OnnxGraph *);

/* Returns the operator of the op table for a node; OP_none if there is none (call.c). */
Op op_find_onnx(Ctx *, const char *domain, const char *name, int64_t opset);
/* Returns what may be meant by a name that op_find_onnx does not find: "; opset 20 has it", or
 * "; did you mean Relu?"; "" if nothing is near. */
const char *onnx_op_hint(Ctx *, const char *domain, const char *name, int64_t opset);
/* Imports a node as a call of an operator (call.c). Returns false after an error. */
bool onnx_import_call(const Item *, Op);
/* Binds all results of the node and sets *done, if they follow from sizes of its operands
 * (sizes.c). Returns false after an error. */
bool onnx_import_sizes(const Item *, bool *done);
/* Notes that an imported node's result compares sizes, if it does (Value.below; sizes.c). */
void onnx_note_comparison(const Item *);

/* Imports of operators that are more than a call; false after an error. */
typedef bool (*Importer)(const Item *);
/* Returns how a node is imported; NULL if it is a call or unknown (special.c). */
Importer onnx_special_importer(const OnnxNode *);
/* Offers the operators of a domain that have such a function. */
void onnx_offer_specials(const char *domain, Nearest *);
/* Returns why a node is not supported, where more can be said than that; else NULL (special.c). */
const char *onnx_refusal(const OnnxNode *);
bool onnx_import_flex_attention(const Item *); /* flex.c */
bool onnx_import_sequence(const Item *); /* sequence.c */
bool onnx_import_if(const Item *); /* branch.c */
bool onnx_import_loop(const Item *);
bool onnx_import_scan(const Item *);
bool onnx_import_tree_ensemble(const Item *); /* trees.c */
bool onnx_import_tree_classifier(const Item *);
bool onnx_import_tree_regressor(const Item *);

#endif
