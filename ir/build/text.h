/* The text form of graphs: printed and parsed. */
#ifndef WEFT_IR_BUILD_TEXT_H
#define WEFT_IR_BUILD_TEXT_H

#include "ir/graph/graph.h"

/* Appends the text form of the graph, with the hashes of constants (const_hash), and ends the last
 * line. */
void graph_print(const Graph *, Text *);
/* Sets used[k] to true if the symbol sym_var_at(k) of the graph's scope occurs in the types or
 * attributes of the nodes, subgraphs included; other elements stay. Guards do not count. used has
 * sym_nvars elements. */
void graph_used_symbols(const Graph *, bool *used);
/* Appends the node's statement: one line with its line break, more with subgraphs. May number all
 * nodes of the graph first: O(nodes) for the first call after a change. */
void graph_print_node(const Graph *, Node, Text *);
/* Parses the text form; `name` is the text's name in messages. Constants are looked up by id in the
 * Ir, and an id that the Ir lacks is an error. Symbols that the current scope lacks are added; the
 * ranges of symbols that it has are narrowed to those in the text, both also before an error. Does
 * not check the types that the text says (graph_verify does). Returns NULL after an error, whose
 * place is "name:line:col". */
Graph *graph_parse(Ir *, const char *text, const char *name);
/* Does as graph_parse, in the Ir and the scope of a graph: parsing its text gives an equal one. */
Graph *graph_parse_beside(const Graph *, const char *text, const char *name);
/* Parses a type, "f32[B, 3]", in the Ir of a graph; `name` is the text's name in messages. Symbols
 * that the graph's scope lacks are added to it. Returns 0 after an error, whose place is
 * "name:line:col". */
TypeId type_parse(const Graph *, const char *text, const char *name);

#endif
