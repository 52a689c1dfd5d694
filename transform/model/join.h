/* Graphs that become the entries of one model: constants and state that they share. */
#ifndef WEFT_TRANSFORM_MODEL_JOIN_H
#define WEFT_TRANSFORM_MODEL_JOIN_H

#include "base/array.h"
#include "ir/graph/graph.h"

/* A graph that becomes an entry of a model. */
typedef struct {
	const char *name;
	Graph *g;
	const char *path; /* of the model file, for messages */
} GraphEntry;

/* A constant of one graph that another graph writes; it is state in both. */
typedef struct {
	const char *name;
	uint32_t entry;
} JoinedConstant;
typedef ARRAY(JoinedConstant) JoinedConstants;

/* Merges constants with equal contents in graphs of one Ir, g[n], in place; g[k] is of entry k
 * modulo nentry. keep_names: parameters are merged only if their names are equal, too. Returns
 * false after an error: with keep_names, if parameters of two graphs have one name and different
 * contents. */
bool join_constants(const GraphEntry *entry, uint32_t nentry, Graph *const *g, uint32_t n,
		    bool keep_names);

/* What is joined. */
typedef struct {
	uint32_t n;
	const GraphEntry *entry;  /* copies of the graphs, in one Ir */
	const Graph *const *from; /* the graphs to join, each in its own Ir */
	const uint32_t *first;    /* n + 1 numbers: the constants of graph k are those from
				     first[k] to first[k + 1] */
	JoinedConstants *joined;  /* what join_state adds to */
	uint32_t nprivate, nsame;
	const char *const *private; /* names of state of which each entry has its own */
	const char *const *same;    /* "a.x=b.y": y of entry b is the state x of entry a */
} Joining;

/* Makes state shared: a parameter or buffer that one graph writes becomes state of all graphs that
 * have the name, except as `private` and `same` say. Changes the graphs of `entry` in place.
 * Returns false after an error: types or initial contents differ, a name of `private` or `same` is
 * no state, or another graph reads the tensor in a branch or a loop. */
bool join_state(const Joining *);

#endif
