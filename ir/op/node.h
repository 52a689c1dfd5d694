/* Questions about a node that need its operator: attributes and operands by the names of arguments,
 * effects, sizes that depend on data; and what messages say of a node. Other questions about nodes:
 * ir/graph/graph.h. */
#ifndef WEFT_IR_OP_NODE_H
#define WEFT_IR_OP_NODE_H

#include "ir/graph/graph.h"

/* Whether the node, or a node of its subgraphs, does more than compute its value: it must run even
 * without readers, in program order (a check that fails the call, a size read from data). */
bool node_has_effect(const Graph *, Node);
/* Returns a node of the graph, or one of a subgraph in it, that communicates with other ranks
 * (OpInfo.collective), as the name of its operator; NULL if there is none. */
const char *graph_collective(const Graph *);
/* Whether the node's operator takes subgraphs: scan, while, cond, invertible. */
bool node_has_graph(const Graph *, Node);
/* Removes nodes without readers and effects, except inputs, also those whose last reader it
 * removed. Returns true if it removed any. Subgraphs stay as they are. */
bool graph_dce(Graph *);
/* Copies the node's attributes to attr[], one for each argument of the schema, and returns how many
 * there are: at most MAX_ARGS. */
uint32_t node_copy_attrs(const Graph *, Node, Attr *attr);
/* Changes one attribute of a node, by its name in the schema, as graph_set_attrs does. A name that
 * the schema lacks is an internal error. */
void graph_set_attr(Graph *, Node, const char *name, Attr);
/* Walks the readers of a node that are an OP_get of result k, in no particular order. Returns the
 * first of them from the use *u on, and moves *u behind it; returns none at the end. Start: Use u =
 * node_data(g, n)->first_use. */
Node node_next_get(const Graph *, Use *u, uint32_t k);
/* Returns the constant of an OP_constant node; 0 for other nodes. */
ConstId node_const(const Graph *, Node);

/* Whether the node's type or an attribute contains the symbol, or those of a node of its
 * subgraphs. */
bool node_uses(const Graph *, Node, Sym var);
/* Whether the node's type or an attribute contains the symbol, subgraphs apart. */
bool node_uses_itself(const Graph *, Node, Sym var);
/* Whether the node gives an unbacked symbol its value: an OP_to_size whose size contains the
 * symbol, or a node of another operator, but no input, whose type contains the symbol while no
 * operand's type and no attribute does. */
bool node_finds(const Graph *, Node, Sym var);
/* Whether node_finds is true for a node of the graph; nodes of subgraphs do not count. */
bool graph_finds(const Graph *, Sym var);

/* The next functions return an attribute of a node, by the name of the argument in the schema. It
 * is an internal error (ctx_bug) if the schema has no such argument, or if the attribute is of
 * another kind than the function accepts; only node_attr and node_ints accept ATTR_none. */

/* Returns the attribute `name`, of any kind; ATTR_none for a tensor. */
const Attr *node_attr(const Graph *, Node, const char *name);
/* Returns the attribute `name`, an integer, or a bool as 0 or 1. */
Sym node_sym(const Graph *, Node, const char *name);
/* Returns the attribute `name`, a constant integer, or a bool as 0 or 1. */
int64_t node_int(const Graph *, Node, const char *name);
/* Returns the attribute `name`, a bool, or whether a constant integer is not 0. */
bool node_bool(const Graph *, Node, const char *name);
/* Returns the attribute `name`, a float, constant integer or bool, as a double. If the attribute is
 * a complex number, records an error (ctx_error) and returns NaN. */
double node_float(const Graph *, Node, const char *name);
/* Returns the attribute `name`, a text. */
const char *node_str(const Graph *, Node, const char *name);
/* Returns the attribute `name`, a list of symbolic integers, and sets *n to its length. Returns
 * NULL and sets *n to 0 if the list is empty or absent. */
const Sym *node_ints(const Graph *, Node, const char *name, uint32_t *n);
/* Returns the bits of the dimensions that the attribute `name` lists: constants below MAX_RANK. */
uint32_t node_dim_bits(const Graph *, Node, const char *name);
/* Returns the operand of a Tensor argument, by its name in the schema; none if the operand is
 * absent, and for an argument that is no tensor. Of a Tensor[] argument, returns the first tensor;
 * none if the list is empty. A name that the schema lacks is an internal error. */
Node node_arg(const Graph *, Node, const char *name);
/* Returns the number of operands of an argument, by its name in the schema: of a Tensor[] argument
 * the length of the list; of a Tensor argument 1, also if the operand is absent; of an argument
 * that is no tensor 0. Sets *first to the index of the first of these operands (as in node_in); of
 * 0 operands, to the number of operands of the arguments before. A name that the schema lacks is an
 * internal error. */
uint32_t node_args(const Graph *, Node, const char *name, uint32_t *first);

/* Returns the message of an OP_to_size node for a value out of the size's range, a format of printf
 * with one %lld for the value. */
const char *node_size_message(const Graph *, Node);
/* Returns the message of an OP_to_size node whose size is known before it runs, for another
 * value: a format of printf with two %lld, the value and the known size. bound: the graph of
 * whose inputs the size is an extent, or NULL. */
const char *node_size_differs(const Graph *, Node, const Graph *bound);
/* Returns where the node is, for diagnostics: "model.pt2: node conv2d_3 (net.py:12)", with
 * ctx->file and the node's location where they are known, and the name of graph_name. In the
 * scratch arena. The node may be none. */
const char *node_where(Graph *, Node);
/* Does as node_where, but with the name of graph_last_name, which takes O(1): for texts that are
 * made for every node and rarely read. */
const char *node_near(Graph *, Node);
/* Does as graph_name, but with the numbers that the last call of graph_name gave which had to
 * number; of an unnamed node that has no such number, returns the name of its operator. For
 * messages: takes O(1), but numbers all nodes if no call has numbered yet. */
const char *graph_last_name(Graph *, Node);

#endif
