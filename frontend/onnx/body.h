/* Private to frontend/onnx: the graphs that nodes hold, for If, Loop and Scan. */
#ifndef WEFT_FRONTEND_ONNX_BODY_H
#define WEFT_FRONTEND_ONNX_BODY_H

#include "frontend/onnx/priv.h"

typedef ARRAY(Node) Rows;

/* Values of scopes around a body that the body reads, and that are computed when the model runs. */
typedef struct {
	Scope *outer;
	Intern local, seen;
	ARRAY(const char *) name;
	ARRAY(Value *) value;
	ARRAY(Node) node;
} Captures;

/* Adds what a body, or nodes, read of the scope. Return false after an error. */
bool captures_of(Captures *, Scope *outer, const OnnxGraph *);
bool captures_of_nodes(Captures *, Scope *outer, const OnnxNode *, uint32_t n);
/* Adds a name that no later body reads of the scope. NULL is no name. */
void captures_local(Captures *, Scope *outer, const char *name);
/* Adds an input for each captured value. Returns false after an error. */
bool bind_captures(Scope *, const Captures *);

/* Adds an input of the scope's graph; "" and NULL are no names. */
Node body_input(Scope *, const char *name, TypeId);
/* Returns the graph of an attribute; NULL after an error. Its inputs have names. */
const OnnxGraph *body_of(const Item *, const char *name);
/* Returns the value of result k of a body; NULL after an error. */
Value *body_result(const Item *, Scope *, const OnnxGraph *, uint32_t k);
/* Makes a scope of the same graph, for a body that is inlined. */
void inline_scope(Scope *, const Item *);
/* Whether a result of the body is a sequence or an optional. */
bool gives_lists(const OnnxGraph *);

/* Whether one bool is known: *out. given: also by an input whose value was given. */
bool known_bool(Scope *, Value *, bool given, bool *out);
/* Returns a condition as a bool without dimensions. */
Node body_condition(Scope *, Value *);
/* Returns what a list of pieces of one type holds, whose number is a size: [n, ...piece]. Returns
 * NULL for another list. */
Value *list_rows(const Value *list);
/* Returns the list of n pieces, the rows of a tensor [n, ...piece]. */
Value *list_of_rows(Import *, Value *rows, Sym n);
/* Returns x with dimension `from` moved to place `to`. */
Node moved(Build *, Node x, uint32_t from, uint32_t to);

#endif
