/* Private to driver/api/trace*.c: a trace (include/weft_trace.h) and the calls of the API on it. A
 * value names a node of a scope: the model's graph, or the graph of a body that is being traced. */
#ifndef WEFT_DRIVER_API_TRACE_H
#define WEFT_DRIVER_API_TRACE_H

#include "weft_trace.h"

#include "driver/api/given.h"
#include "ir/op/op.h"

/* Values from outside that the bodies of one call read: they become operands of the call. */
typedef struct {
	ARRAY(Node) value; /* in the scope outside */
} Captured;

/* A graph under construction: the model's, or a body in it. */
typedef struct TraceScope {
	Graph *g;
	uint32_t id;         /* WeftValue.trace of its values */
	struct TraceScope *outer; /* NULL: the model's */
	uint32_t nin;        /* the number of a body's inputs that are no captured values */
	Captured *captured;  /* of a body; NULL: the model's scope */
} TraceScope;

enum { NOT_SAID = -1 };

struct WeftTrace {
	Weft *w;
	TraceScope *scope; /* the scope in which calls add nodes */
	TraceScope model;
	const char *name;
	LocId loc; /* the source line of nodes that calls add */
	uint32_t ncall;
	int64_t gives; /* of the body that is traced: weft_body_gives, else NOT_SAID */
	bool failed, ended;
};

/* One call of a function of the API: its arguments and results. Each function uses some of the
 * fields. */
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

/* Records an error "NAME: what", where NAME is step->name. Returns false. */
bool tracing_error(const TraceStep *, const char *what);
/* Calls f(step) within the Weft's boundary, unless the trace has failed before. If f returns false,
 * records an error or unwinds, the trace has failed. Returns whether the trace has not failed. */
bool tracing_perform(TraceStep *, bool (*f)(void *));
/* Checks that the trace has not ended. Returns false after an error: it has ended. */
bool tracing_ready(const TraceStep *);
/* Does as tracing_ready, and checks that step->name is neither NULL nor empty. Returns false
 * after an error. */
bool tracing_ready_named(const TraceStep *);

/* Returns the value that names a node of the current scope. */
WeftValue tracing_value(const WeftTrace *, Node);
/* Sets *Node to the node of the current scope that has the value. A value of an outer scope becomes
 * an input of each body between, and must be one tensor. Returns false after an error. */
bool tracing_node(const TraceStep *, WeftValue, Node *);
/* Sets *Node to the node that a value names, and *TraceScope to its scope: the current one or an
 * outer one. Returns false after an error: the value is none, of another trace, of a body that has
 * ended, or of an inverse that has ended. */
bool tracing_owner(const TraceStep *, WeftValue, TraceScope **, Node *);
/* Checks that a node of the scope is one tensor. Returns false after an error. */
bool tracing_is_tensor(const TraceStep *, const TraceScope *, Node);
/* Returns a Build that appends to the current scope; where: the name of the call, for messages. */
Build tracing_build(WeftTrace *, const char *where);

#endif
