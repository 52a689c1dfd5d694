/* Private to driver/api/trace*.c: what weft_trace.h's calls have in common. */
#ifndef WEFT_DRIVER_API_TRACE_H
#define WEFT_DRIVER_API_TRACE_H

#include "weft_trace.h"

#include "driver/api/given.h"
#include "ir/ops/op.h"

/* Values that bodies of one call read from outside: operands of that call. */
typedef struct {
	ARRAY(Node) value; /* in the scope outside */
} Captured;

/* A graph under construction: the model's, or a body in it. */
typedef struct Scope {
	Graph *g;
	uint32_t id;         /* in its values */
	struct Scope *outer; /* NULL: the model's */
	uint32_t nin;        /* inputs of a body that are no captured values */
	Captured *captured;
} Scope;

struct WeftTrace {
	Weft *w;
	Scope *scope; /* in which calls add nodes */
	Scope model;
	const char *name;
	LocId loc; /* of the nodes that calls add */
	uint32_t ncall;
	bool failed, ended;
};

/* One call of the API, and what it gives. */
typedef struct {
	WeftTrace *t;
	const char *function; /* of the API */
	const char *name, *type;
	const void *data;
	int64_t lo, hi;
	InputKind kind;
	WeftValue value, to;
	const WeftArg *arg;
	uint32_t n;
	int64_t *shape;
	int32_t rank;
	WeftGraph *graph;
} TraceStep;

/* False after ctx_error: "NAME: what". */
bool tracing_error(const TraceStep *, const char *what);
/* Calls f(step) inside of the Weft's boundary, unless the trace has failed; it has failed if f
 * returns false. */
bool tracing_perform(TraceStep *, bool (*f)(void *));
/* The trace has not ended. */
bool tracing_ready(const TraceStep *);
/* Nor is the name that the caller gave missing or empty. */
bool tracing_ready_named(const TraceStep *);

/* A node of the current scope as a value. */
WeftValue tracing_value(const WeftTrace *, Node);
/* A value as a node of the current scope: a value of a scope outside becomes an input of each body
 * between. False after ctx_error. */
bool tracing_node(const TraceStep *, WeftValue, Node *);
/* A value as a node of the scope to which it belongs. False after ctx_error. */
bool tracing_owner(const TraceStep *, WeftValue, Scope **, Node *);
/* It is one tensor. False after ctx_error. */
bool tracing_is_tensor(const TraceStep *, const Scope *, Node);
/* Appends to the current scope; `where` names the call. */
Build tracing_build(WeftTrace *, const char *where);

#endif
