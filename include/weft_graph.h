/* Graphs in the hands of users: visit nodes, insert, replace and erase them, and replace patterns,
 * for passes outside of Weft. Programs that only compile do not need this header.
 *
 *     // relu(x) becomes clamp(x, 0, 6)
 *     for (WeftNode n = weft_node_first(w, g), next; n.index; n = next) {
 *         next = weft_node_next(w, n);
 *         if (!weft_node_is(w, n, "aten.relu"))
 *             continue;
 *         WeftNode x = weft_node_arg(w, n, "self");
 *         const WeftAttr a[] = {weft_attr_node(x), weft_attr_int(0), weft_attr_int(6)};
 *         WeftNode y = weft_node_insert_before(w, n, "aten.clamp", a, 3);
 *         if (!weft_node_replace(w, n, y) || !weft_node_erase(w, n))
 *             break;
 *     }
 *     if (!weft_graph_verify(w, g)) fputs(weft_messages(w), stderr);
 *
 * A graph is a list of nodes in program order; a node reads operands, which come before it. An
 * input, a state, a constant and the call of an operator are nodes. An output is no node: it is a
 * name for one.
 *
 * Nodes. A WeftNode names a node of a graph; it owns nothing and is copied like a number
 * (weft_node_same compares). It is valid until the node is erased, or until weft_free.
 * weft_node_erase, weft_replace_pattern and weft_transform erase nodes; a name of an erased node is
 * never reused, and every function refuses it. A node with index 0 is no node: the end of a list,
 * an absent operand, and the result after an error.
 *
 * Ownership. Graphs, nodes, texts and lists belong to the Weft until weft_free, as in weft.h. A
 * text says how things were when it was asked for.
 *
 * Errors. As in weft.h: a function records a message and returns false, NULL, 0 or a node with
 * index 0; then it has changed nothing. NULL, erased nodes, nodes of another graph or Weft, indices
 * out of range and wrong types are errors.
 *
 * A wrong graph. A change keeps the types of all nodes: the new value has the dtype, the rank and,
 * provably, the extents of the old one. But a change may break the order of nodes, and a changed
 * body may not be what its node expects. weft_graph_verify finds that, and so does every function
 * outside of this header that takes the graph: it verifies a graph that was changed first, and
 * refuses it with the message of weft_graph_verify. The functions of this header work on such
 * graphs, except weft_replace_pattern and weft_parse_like; weft_node_text shows their nodes.
 *
 * Time. Functions take time in proportion to what they take and give, except where they say so. */
#ifndef WEFT_GRAPH_H
#define WEFT_GRAPH_H

#include "weft.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
	WeftGraph *graph;
	uint32_t index; /* 0: no node */
} WeftNode;

/* Whether a and b name one node, or are both no node. */
static inline bool weft_node_same(WeftNode a, WeftNode b)
{
	return a.index == b.index && (!a.index || a.graph == b.graph);
}

/* ---- visit ---- */

/* The first node of a graph in program order: inputs and state come first. No node if the graph has
 * none. */
WeftNode weft_node_first(Weft *, WeftGraph *);
/* The last node in program order; no node if the graph has none. */
WeftNode weft_node_last(Weft *, WeftGraph *);
/* The node behind a node in program order; no node behind the last one. */
WeftNode weft_node_next(Weft *, WeftNode);
/* The node before a node in program order; no node before the first one. */
WeftNode weft_node_prev(Weft *, WeftNode);
/* The node of that name (weft_node_name), or no node, which is no error. Takes O(nodes). */
WeftNode weft_node_find(Weft *, WeftGraph *, const char *name);
/* The node that is input k (of weft_inputs, or of a body). No node, after an error, if k is out of
 * range. */
WeftNode weft_node_of_input(Weft *, WeftGraph *, uint32_t k);
/* The node that is state k (of weft_states); a body has no state. No node, after an error, if k is
 * out of range. */
WeftNode weft_node_of_state(Weft *, WeftGraph *, uint32_t k);
/* The node whose value is output k (of weft_outputs, or of a body). No node, after an error, if k
 * is out of range. */
WeftNode weft_node_of_output(Weft *, WeftGraph *, uint32_t k);
/* The value that a call of the model writes to an input or to state; no node, without an error, if
 * it writes nothing there. A node of another kind is an error. */
WeftNode weft_node_written(Weft *, WeftNode input_or_state);

/* ---- ask ---- */

typedef enum {
	WEFT_NODE_NONE, /* after an error */
	WEFT_NODE_INPUT,
	WEFT_NODE_STATE,
	WEFT_NODE_CONSTANT,
	WEFT_NODE_CALL
} WeftNodeKind;
/* The kind of a node. */
WeftNodeKind weft_node_kind(Weft *, WeftNode);
/* The operator, with its overload: "aten.add.Tensor". "input" and "constant" for nodes that are no
 * call. Operators with several names have one here; weft_node_is knows all of them. */
const char *weft_node_op(Weft *, WeftNode);
/* The overload alone: "Tensor"; "" if the operator has none. */
const char *weft_node_overload(Weft *, WeftNode);
/* Whether the node calls the operator `op`, by any of its names. Returns false after an
 * error: there is no such operator. */
bool weft_node_is(Weft *, WeftNode, const char *op);
/* The name in messages and in weft_graph_text. Of a node without a name it is a number, which
 * changes when the graph does; then the call takes O(nodes). */
const char *weft_node_name(Weft *, WeftNode);
/* Sets the name in messages and in weft_graph_text; the names that users of the model see stay.
 * Characters other than [A-Za-z0-9_.$] become "_"; a name that begins with a digit gets a "_" in
 * front. A number is appended to a name that any node of the graph, this one included, has or ever
 * had; weft_node_name tells the result. */
bool weft_node_set_name(Weft *, WeftNode, const char *name);
/* The name that users of the compiled model see, of an input, a state or a parameter:
 * "layer.weight"; of another constant the name that the model's file has for it, or "". "" for
 * other nodes. */
const char *weft_node_user_name(Weft *, WeftNode);
/* The line of the model's source: "net.py:12 in layer.0"; of an ONNX model without lines the name
 * of its node, if that is a path: "/layer/conv/Conv in /layer/conv". "" if it is unknown. */
const char *weft_node_line(Weft *, WeftNode);
/* The node as a line of weft_graph_text; takes O(nodes) after a change. */
const char *weft_node_text(Weft *, WeftNode);

/* The number of results: 1 for a node whose value is a tensor, 0 for an operator without a result
 * (an assertion); of an operator with several results, which is one node, their number. Nodes of
 * the operator "get" read these results one by one. */
uint32_t weft_node_nresult(Weft *, WeftNode);
/* Returns the rank of result k, which must be one tensor, or -1 after an error. Fills in, if not
 * NULL, the dtype and the extents: -1 for an extent that is not a number. */
int32_t weft_node_shape(Weft *, WeftNode, uint32_t k, WeftDType *dtype, int64_t shape[12]);
/* The type of result k as text: "f32[s0, 3]". */
const char *weft_node_type(Weft *, WeftNode, uint32_t k);
/* Extent d of result k as text: "2*s0 + 1". */
const char *weft_node_extent(Weft *, WeftNode, uint32_t k, uint32_t d);

/* The number of operands of a node. Operands are in the order of the operator's schema, those of
 * lists one by one. An optional operand that is absent counts. */
uint32_t weft_node_noperand(Weft *, WeftNode);
/* Operand k; no node, without an error, if an optional operand is absent. */
WeftNode weft_node_operand(Weft *, WeftNode, uint32_t k);
/* Returns the nodes that read the node, each once, in no order, and sets *n (n may be NULL) to
 * their number. Outputs are no nodes and are not among them. If nothing reads the node, the result
 * is not NULL. Nodes of bodies read nothing outside of their body. */
const WeftNode *weft_node_users(Weft *, WeftNode, uint32_t *n);
/* How often the node is read: by nodes, an operand each, and by outputs, including those that write
 * state. */
uint32_t weft_node_nread(Weft *, WeftNode);

/* Arguments by the names of the operator's schema, which are PyTorch's: operands and attributes. */
typedef enum {
	WEFT_ATTR_NONE, /* the optional argument is absent */
	WEFT_ATTR_NODE,
	WEFT_ATTR_NODES,
	WEFT_ATTR_BOOL,
	WEFT_ATTR_INT,
	WEFT_ATTR_FLOAT,
	WEFT_ATTR_COMPLEX,
	WEFT_ATTR_TEXT, /* a text or the name of a dtype */
	WEFT_ATTR_SIZE, /* an integer that is no number: "2*s0 + 1" */
	WEFT_ATTR_INTS,
	WEFT_ATTR_FLOATS,
	WEFT_ATTR_BOOLS,
	WEFT_ATTR_SIZES, /* integers of which one at least is no number */
	WEFT_ATTR_BODY,  /* a body of control flow; not for new nodes */
	WEFT_ATTR_VALUE  /* the value of a constant (weft_node_tensor); not for new nodes */
} WeftAttrKind;
typedef struct {
	const char *name; /* NULL: a positional argument, of weft_node_insert_before and _after */
	WeftAttrKind kind;
	uint32_t n; /* length of a list */
	union {
		WeftNode node;
		const WeftNode *nodes; /* no node: an absent element */
		bool b;
		int64_t i;
		double f;
		double z[2]; /* the real and the imaginary part */
		const char *text;
		const char *const *texts;
		const int64_t *ints;
		const double *floats;
		const bool *bools;
		WeftGraph *body;
	} u;
} WeftAttr;
/* The number of arguments of a call, operands and attributes, in the schema of its operator. */
uint32_t weft_node_nattr(Weft *, WeftNode);
/* Sets *out to argument k < weft_node_nattr; out->name is its name. An argument with a default that
 * the call leaves out has the default. Lists and texts belong to the Weft. Returns false after an
 * error. */
bool weft_node_attr_at(Weft *, WeftNode, uint32_t k, WeftAttr *out);
/* Sets *out to the argument of that name, as weft_node_attr_at does. Returns false after an error:
 * also if there is no such argument. */
bool weft_node_attr(Weft *, WeftNode, const char *name, WeftAttr *out);
/* The argument of that name, which is one tensor. No node if it is absent; also after an error: it
 * is something else, or there is no such argument. */
WeftNode weft_node_arg(Weft *, WeftNode, const char *name);
/* Sets *out to the value of the argument of that name: an integer, a float or a bool (0 or 1).
 * out may be NULL. Returns false after an error: the argument is something else, or there is none.
 */
bool weft_node_number(Weft *, WeftNode, const char *name, double *out);
/* The body that is the argument of that name of a loop, a condition or a scan ("body", "cond",
 * "yes"): a graph whose nodes are visited and changed like those of other graphs. It belongs to its
 * node; after that is erased, nodes of the body are refused. Besides the functions of this header
 * only weft_graph_text and weft_graph_dot take it (with after NULL). */
WeftGraph *weft_node_body(Weft *, WeftNode, const char *name);

/* ---- change ---- */

/* Calls an operator before or behind a node. op and arguments are those of weft_trace_call: names
 * may be left out in order, absent arguments have their defaults, and a number in place of a tensor
 * is one of the .Scalar overload. The type is inferred. Where an operator needs equal extents that
 * are not known to be equal, the graph requires it from then on (weft_guards). The new node has the
 * line of `at` and no name. Next to an input or a state it stands behind all inputs and state.
 *
 * A size (WEFT_ATTR_SIZE) is a text of weft_symbols' names. A size that depends on data must be one
 * of an operand. Operators that write their arguments (aten.add_, out=), that draw random numbers
 * or that have bodies are errors; so are inputs and constants. */
WeftNode weft_node_insert_before(Weft *, WeftNode at, const char *op, const WeftAttr *, uint32_t n);
/* weft_node_insert_before, but the new node stands behind `at`. No node after an error. */
WeftNode weft_node_insert_after(Weft *, WeftNode at, const char *op, const WeftAttr *, uint32_t n);
/* Inserts a node whose value is result k of the node `several`, directly behind that node, and
 * returns the new node. `several` is a call of an operator with several results. */
WeftNode weft_node_result(Weft *, WeftNode several, uint32_t k);
/* Makes all readers of `old` read `by` instead, outputs included. Only `by` itself may go on
 * reading `old`: it may compute its value from the old one. The types must be equal. If `by` has no
 * name, it gets the name of `old`, unless `old` is an input or a state. `old` stays; nothing but
 * `by` reads it. */
bool weft_node_replace(Weft *, WeftNode old, WeftNode by);
/* Replaces operand k (of weft_node_operand) of a call by `by`. With the new operand the node must
 * have the same type as before. An absent optional operand may become a node, and the reverse. Of a
 * node that makes a size that depends on data (aten.nonzero) an operand must keep its type, and
 * attributes stay. */
bool weft_node_set_operand(Weft *, WeftNode, uint32_t k, WeftNode by);
/* Replaces the argument `a->name` of a call: an attribute, an operand or a list of as many
 * operands. The node must keep its type. Bodies cannot be replaced: change their nodes. */
bool weft_node_set_attr(Weft *, WeftNode, const WeftAttr *a);
/* Erases a node that no node reads and that is no output. An input or a state is no input or state
 * of the model then; what was written to it is not computed for it any more. A node
 * that makes a size that depends on data cannot be erased while another node has the size; finding
 * that takes O(nodes). */
bool weft_node_erase(Weft *, WeftNode);
/* Erases all nodes without readers and effects, except inputs and state, until there are none; then
 * state that a call writes with itself becomes a constant, and the state "weft.rng" of a model that
 * draws no random numbers any more is removed. Returns how many nodes are fewer; 0 also after an
 * error. */
uint32_t weft_graph_sweep(Weft *, WeftGraph *);

/* Makes output k (of weft_outputs, or of a body) the value of a node, which must be one tensor. An
 * output of the model may get another type; an output of a body must keep its type. */
bool weft_graph_set_output(Weft *, WeftGraph *, uint32_t k, WeftNode);
/* Appends an output with the value of a node, which must be one tensor; no other output may have
 * the name. Not for bodies. */
bool weft_graph_add_output(Weft *, WeftGraph *, const char *name, WeftNode);
/* Removes output k; those behind it move up. The only output of a graph that writes no state and no
 * input cannot be removed. Not for bodies. */
bool weft_graph_remove_output(Weft *, WeftGraph *, uint32_t k);
/* Appends an input behind the others; name and type as for weft_trace_input. Names of sizes in the
 * type are those of the graph; others are new sizes. Returns the node of the input. No extent may
 * depend on data. Not for bodies. */
WeftNode weft_graph_add_input(Weft *, WeftGraph *, const char *name, const char *type);
/* Changes what a call of the model writes to an input or a state that it writes already. The type
 * must be equal. */
bool weft_graph_set_written(Weft *, WeftNode input_or_state, WeftNode value);

/* Gives a size of the graph another name, in messages, in text and to users of the compiled model
 * (WeftSymbol). The name is a C identifier that no other size has. Not for bodies. */
bool weft_graph_rename_size(Weft *, WeftGraph *, const char *size, const char *name);

/* ---- constants ---- */

/* Sets *out to the value of a constant, or to the initial contents of a state: row-major, to be
 * read only, valid until weft_free. Other nodes are errors, and so is a constant that a pass
 * computes from replaceable parameters. */
bool weft_node_tensor(Weft *, WeftNode, WeftTensor *out);
/* Adds a constant behind all inputs, so that every node may read it. The tensor is copied. name
 * NULL: a value that nobody can replace. Else a parameter of that name, which must be new;
 * replaceable weights (WeftOptions) include it. A body may have constants. */
WeftNode weft_graph_constant(Weft *, WeftGraph *, const char *name, const WeftTensor *);

/* ---- the whole graph ---- */

/* Whether the graph is correct: order, operands, attributes, types, outputs, bodies. Returns false
 * after a message that says what is wrong. Takes O(nodes). If the graph is a body, the whole graph
 * that has the body is verified. */
bool weft_graph_verify(Weft *, WeftGraph *);
/* Parses the text form, as weft_parse does; constants (`const #3`) are those of the graph `like`,
 * which has them in its text. So weft_graph_text and weft_parse_like give an equal graph. */
WeftGraph *weft_parse_like(Weft *, const WeftGraph *like, const char *text, const char *name);

/* Replaces each place in `g` that is like `pattern` by `replacement`, as torch.fx.replace_pattern
 * does. Both are graphs, traced or parsed. Returns the number of places, or -1 after an error; then
 * g is unchanged. g must be correct; it is verified first.
 *
 *     WeftGraph *p = weft_parse(w, "graph @p(%x: f32[A, B]) -> f32[A, B] {\n %1 = aten.relu(%x)\n"
 *                                  " %2 = aten.relu(%1)\n return %2\n}", "p");
 *     WeftGraph *r = weft_parse(w, "graph @r(%x: f32[A, B]) -> f32[A, B] {\n %1 = aten.relu(%x)\n"
 *                                  " return %1\n}", "r");
 *     int64_t n = weft_replace_pattern(w, g, p, r);
 *
 * - An input of the pattern is any value of its dtype and rank. A number as an extent must be
 *   equal; a size by name is any extent within the range of the size, the same one at every place.
 *   An expression must be equal once its sizes have their values: 2*A is any even extent where no
 *   other extent is A. A size that no extent gives a value is an error.
 *   An input that is read several times is the same value everywhere. Each input is read at least
 *   once.
 * - A call is a call of the same operator whose operands match, in order. Attributes must be equal;
 *   integers and floats are compared by value, sizes after the names have got their extents.
 * - A constant is one with equal contents. Constants of the replacement are values that nobody can
 *   replace, unless they are constants of g (weft_parse_like).
 * - A value inside of a place, which is no output of the pattern, must have no other reader.
 * - Places are sought in program order of the node that is output 0 of the pattern. Of places that
 *   have a node in common, the first one counts. What was put in is not searched again.
 * - Nodes of the pattern, at most 4096, are connected. Neither graph has state, bodies or written
 *   inputs. An output of the pattern is a call; of the replacement it may be an input or a
 *   constant.
 * - pattern and replacement have equally many inputs and outputs. The inputs of the replacement
 *   take the values of the pattern's, in order; they must fit in dtype, rank and extents. Its
 *   operators are called on these values, so types are inferred for each place; an output with
 *   another type than the one it replaces is an error.
 * - Conditions on sizes that the replacement needs become conditions of g (weft_guards).
 * - With several outputs, which are different values, a place is left as it is if a value that it
 *   reads is computed from a reader of one of its outputs. Where such a reader stands in front of
 *   what the place reads, nodes move up, so that definitions stand before uses.
 * - Bodies of g are not searched: call the function for each of them (weft_node_body).
 *
 * Takes O(nodes * nodes of the pattern) for patterns with one output; with several, the product
 * with the readers of the values that connect them. */
int64_t weft_replace_pattern(Weft *, WeftGraph *g, const WeftGraph *pattern,
			     const WeftGraph *replacement);

/* ---- arguments, by kind ---- */

/* Each function returns an argument without a name (weft_attr_named). Lists and texts are referred
 * to: they must stay valid until the argument is used.
 *
 * The optional argument is absent. */
static inline WeftAttr weft_attr_none(void)
{
	WeftAttr a = {NULL, WEFT_ATTR_NONE, 0, {{NULL, 0}}};
	return a;
}
/* A tensor; with no node: the argument is absent. */
static inline WeftAttr weft_attr_node(WeftNode n)
{
	WeftAttr a = {NULL, n.index ? WEFT_ATTR_NODE : WEFT_ATTR_NONE, 1, {n}};
	return a;
}
/* A list of n tensors. */
static inline WeftAttr weft_attr_nodes(const WeftNode *v, uint32_t n)
{
	WeftAttr a = {NULL, WEFT_ATTR_NODES, n, {{NULL, 0}}};
	a.u.nodes = v;
	return a;
}
/* An argument that is a bool. */
static inline WeftAttr weft_attr_bool(bool b)
{
	WeftAttr a = {NULL, WEFT_ATTR_BOOL, 1, {{NULL, 0}}};
	a.u.b = b;
	return a;
}
/* An argument that is an integer. */
static inline WeftAttr weft_attr_int(int64_t i)
{
	WeftAttr a = {NULL, WEFT_ATTR_INT, 1, {{NULL, 0}}};
	a.u.i = i;
	return a;
}
/* An argument that is a float. */
static inline WeftAttr weft_attr_float(double f)
{
	WeftAttr a = {NULL, WEFT_ATTR_FLOAT, 1, {{NULL, 0}}};
	a.u.f = f;
	return a;
}
/* A text, or the name of a dtype, "f32". */
static inline WeftAttr weft_attr_text(const char *text)
{
	WeftAttr a = {NULL, WEFT_ATTR_TEXT, 1, {{NULL, 0}}};
	a.u.text = text;
	return a;
}
/* An integer that is an expression of sizes, "2*s0 + 1". */
static inline WeftAttr weft_attr_size(const char *text)
{
	WeftAttr a = {NULL, WEFT_ATTR_SIZE, 1, {{NULL, 0}}};
	a.u.text = text;
	return a;
}
/* A list of n integers. */
static inline WeftAttr weft_attr_ints(const int64_t *v, uint32_t n)
{
	WeftAttr a = {NULL, WEFT_ATTR_INTS, n, {{NULL, 0}}};
	a.u.ints = v;
	return a;
}
/* A list of n sizes, each an expression or a number as text: {"s0", "3"}. */
static inline WeftAttr weft_attr_sizes(const char *const *v, uint32_t n)
{
	WeftAttr a = {NULL, WEFT_ATTR_SIZES, n, {{NULL, 0}}};
	a.u.texts = v;
	return a;
}
/* Returns the argument a with a name, which is referred to: weft_attr_named("dim",
 * weft_attr_int(1)). */
static inline WeftAttr weft_attr_named(const char *name, WeftAttr a)
{
	a.name = name;
	return a;
}

#ifdef __cplusplus
}
#endif
#endif
