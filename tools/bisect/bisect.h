/* Private to `weft bisect`: finding the smallest graph whose compiled result differs from the
 * interpreter's.
 *
 * The model is a list of nodes in program order. A piece of it is a set of nodes that are kept;
 * what these read of others becomes an input, whose value is that of the node in the interpreted
 * model. A piece is judged in a process of its own: it is compiled and run, and its results are
 * compared as weft check compares. Pieces become smaller as long as they still differ. */
#ifndef WEFT_TOOLS_BISECT_H
#define WEFT_TOOLS_BISECT_H

#include "tools/compare.h"
#include "weft_graph.h"

/* A node of the model, by its number in program order. */
typedef struct {
	WeftNodeKind kind;
	bool cuts;        /* its value is known, and can be an input in its place */
	WeftTensor value; /* of a node that cuts, a constant or a state; data NULL: not known */
	WeftNode node;    /* of the model */
	int64_t *operand; /* the numbers of what it reads; -1: absent */
	uint32_t noperand;
} Step;

typedef struct {
	Weft *w;
	WeftGraph *g;
	const char *path;
	Step *step;
	uint32_t n;
	uint32_t ncall; /* calls of operators; one that gives several results counts once */
	const WeftTensor *in; /* of the model's inputs */
	uint32_t nin, nout;
	const WeftTensor *out; /* the references of the model's own results */
	bool by_peer;          /* references are another system's */
} Model;

/* What weights and inputs of a piece are. */
typedef enum { KEEP_VALUES, DRAW_VALUES } Values;
typedef enum {
	AS_CONSTANTS, /* as in the model */
	AS_INPUTS,
	AS_FORMULAS /* computed by operators that the compiler folds: constants again, of other
		       values */
} Weights;
typedef struct {
	Weights weights;
	Values weight_values, input_values;
	bool apart; /* every step reads inputs only, also in place of other steps of the piece, and
		       is an output */
} Form;

/* A piece as a graph of its own, with its inputs, and references of its outputs. */
typedef struct {
	WeftGraph *g;
	WeftTensor *in;
	uint32_t nin, nout;
	uint32_t *from;  /* by output: the number of the step */
	WeftTensor *out; /* the references; NULL: they are to be computed (piece_interpret) */
} Piece;

/* How pieces are compiled and judged, and what has been spent. */
typedef struct {
	RunnerOptions run;
	int threads;
	double end; /* when to stop looking for smaller ones (now()) */
	uint32_t trials;
	bool crashes; /* what is sought: a piece that ends its process, not one that differs */
} Judge;

typedef enum {
	AGREES,
	DIFFERS, /* or ends its process, where that is sought */
	REFUSED  /* it is no model, or cannot be compiled or run */
} Verdict;

/* Reads the steps of the graph, and interprets it on these inputs for the values of all. peer: the
 * values that another system has, by the names of nodes, and its results, y.<i>, which are the
 * references then; a step whose value it lacks is not cut off others. NULL: the interpreter's.
 * Returns false after a message. model_free frees it then, too; values are the Weft's. */
bool model_read(Model *, Weft *, WeftGraph *, const char *path, const WeftTensor *in, uint32_t nin,
		const WeftTensors *peer);
/* Runs a peer, "onnxruntime" or "torch", on the inputs, in that Python environment. Returns its
 * values and results, a list of the Weft; NULL after a message. */
const WeftTensors *peer_values(Weft *, const char *python, const char *peer, const char *path,
			       const WeftTensor *in, uint32_t nin);
void model_free(Model *);
/* Adds to keep[] what its steps cannot go without: what they read and cannot be cut off. */
void bisect_close(const Model *, bool *keep);
/* Whether a step calls an operator; one that only reads a result of several does not count. */
bool bisect_counts(const Model *, uint32_t k);
/* Returns the operator that a step calls, of the user's its own name; and the name of its value: of
 * several results that of one that is read, if it has none itself. */
const char *bisect_operator(const Model *, uint32_t k);
const char *bisect_name(const Model *, uint32_t k);
/* Makes the piece of the steps that keep[] names, and of those that it cannot go without. Returns
 * false, without a message, if it is no graph. The lists are freed by piece_free; the graph is the
 * Weft's. Call it in a process that ends: graphs stay in memory. */
bool piece_make(const Model *, const bool *keep, Form, Piece *);
/* Makes the whole model a piece, with the model's own outputs. */
bool piece_whole(const Model *, Piece *);
/* Replaces the graph by what its text says. Returns the text; NULL, without a message, if the text
 * does not say all, because the graph has constants. */
const char *piece_print(const Model *, Piece *);
/* Sets piece->out by the interpreter, if it is NULL. Returns false, with a message in the Weft,
 * after an error. */
bool piece_interpret(const Model *, Piece *);
void piece_free(Piece *);

/* Compiles a piece, made of keep[] (NULL: the whole model) in that form, and compares. wrong[]:
 * NULL, or receives which steps have outputs that differ; worst: NULL, or receives the output that
 * differs most, of step *at. */
Verdict judge(Judge *, const Model *, const bool *keep, Form, bool *wrong, Comparison *worst,
	      uint32_t *at);
/* Reduces keep[], which differs, to steps of which none can be left out, as far as the time
 * goes. */
void reduce(Judge *, const Model *, bool *keep);

/* What is written. */
typedef struct {
	const char *out;    /* a folder, or a file NAME.zip */
	const char *report; /* the text of report.txt */
	const char *graph;  /* of graph.ir */
} Archive;
/* Writes graph.ir, graph.safetensors (x.<i>, y.<i> of the piece) and report.txt. Returns false
 * after a message. */
bool archive_write(Weft *, const Piece *, const Archive *);
/* Removes a folder that archive_write has made. */
void archive_remove(const char *folder);
/* Whether this program, called with these words, ends with status 1 (or by a signal). What it
 * prints is dropped. */
bool fails_again(const char *const *words);

#endif
