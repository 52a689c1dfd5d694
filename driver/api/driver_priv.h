/* Private to the driver: the objects of the API, and the boundary where unwinding ends. */
#ifndef WEFT_DRIVER_API_DRIVER_PRIV_H
#define WEFT_DRIVER_API_DRIVER_PRIV_H

#include "frontend/files/out_file.h"
#include "ir/graph/dtype_api.h"
#include "ir/graph/graph.h"
#include "ir/interp/tensor.h"
#include "ir/target/machine.h"
#include "weft.h"

struct Weft {
	Ctx *ctx;
	Arena *results;   /* results of the interpreter, until weft_release */
	bool dead;        /* after an internal error or running out of memory: the context must not
	                     be used */
	char fatal[2200]; /* the message of that error */
	const char *dump; /* the text of weft_dump */
	bool have_report;
	WeftReport report;
	const struct Program *program; /* the program of the report */
	const Machine *machine;        /* the machine of the report */
	ARRAY(const struct UserOp *) userop; /* the registered user operators */
	ARRAY(WeftPhaseTime) phase;
	double phase_start;
	uint32_t ntrace; /* the number of traces so far */
	struct Held *held; /* memory of the caller; released last */
};

/* A graph that becomes an entry of a compiled model. */
typedef struct {
	const char *name;
	Graph *g;
	const char *path; /* of the model file */
} GraphEntry;

/* A constant of one graph that another graph writes; it is state in both. */
typedef struct {
	const char *name;
	uint32_t entry;
} JoinedConstant;

/* A graph of the API. Graphs of a Weft use its memory and diagnostics; each has its own types and
 * symbols, except joined graphs, which are in one Ir. */
struct WeftGraph {
	Weft *w;
	Graph *g;         /* the graph; NULL: several were joined */
	const char *path; /* the path of the (first) model file */
	uint32_t nentry;  /* at least 1; the entry of a graph that was not joined is "run" */
	GraphEntry *entry;
	ARRAY(JoinedConstant) joined;
	bool changed; /* weft_graph.h changed it or a body of it, and nobody has verified it
	                 since */
	/* Of a body of control flow: the graph whose node has it, and the node. It is no graph for
	 * other functions than those of weft_graph.h. */
	WeftGraph *owner;
	Node owner_node;
	ARRAY(WeftGraph *) body; /* those that were asked for, of a graph that is no body */
	bool transformed; /* a transform or a pass made it */
	uint64_t seed; /* of WeftLoadOptions */
	bool rng_input;
};

/* Calls the release functions of all memory that weft_hold registered. */
void release_held(Weft *);
/* Makes an object of the API for a graph of a file. */
WeftGraph *graph_wrap(Weft *, Graph *, const char *path);
/* Merges constants with equal contents of several graphs of one Ir. keep_names: only constants of
 * one name. Returns false after an error: one name has different contents. Messages name the files
 * of `from`. */
bool join_constants(Weft *, const WeftGraph *from, Graph *const *g, bool keep_names);
/* What already has the name, "an input" or "a parameter" (state, too); NULL: it is free. */
const char *graph_name_owner(const Graph *, const char *name);
/* A graph that was changed is verified, once. False after ctx_error. */
bool graph_is_sound(const WeftGraph *);
/* The graph that a body is in, through all bodies; of a graph that is no body: itself. */
WeftGraph *graph_root(WeftGraph *);
/* Whether the node of a body is there still, and those of the bodies that it is in. */
bool body_is_there(const WeftGraph *);
/* For functions that need one graph: returns false after an error if several were joined. */
bool graph_is_one(Weft *, const WeftGraph *);

/* Calls f(arg); unwinding ends here. Returns false if f returns false or unwinds. */
bool boundary(Weft *, bool (*f)(void *arg), void *arg);
double seconds_now(void);

static inline Arena *weft_arena(Weft *w)
{
	return w->ctx->arena;
}

/* ---- tensors between the API and the IR ---- */

/* Makes a tensor with t's data, which is not copied; shape and strides are in the arena. */
WeftTensor tensor_to_api(Arena *, const Tensor *t);
/* The reverse; copies the data if it is not row-major. Returns false after an error, which names
 * `what`. */
bool tensor_from_api(Ctx *, Arena *, const char *what, const WeftTensor *t, Tensor *out);

/* ---- files ---- */

/* Writes a file, whole or not at all (frontend/files/out_file.h). Returns false after errors. */
bool file_write(Ctx *, const char *path, const void *data, size_t n);
/* Reads a regular file. Returns NULL, without a message, if that fails. */
char *file_read(Arena *, const char *path, size_t *n);
/* Makes a folder and its parents. Returns false after errors. */
bool folder_make(Ctx *, const char *path);
/* The file name without folder and extension, as an identifier. */
const char *path_stem(Arena *, const char *path);

#endif
