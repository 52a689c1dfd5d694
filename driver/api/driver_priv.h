/* Private to the driver: the objects of the API (include/weft.h), the boundary where unwinding
 * ends, and the conversion of tensors. Running out of memory and internal errors unwind: control
 * returns to the boundary, and the Weft is dead. Other errors are recorded in the context
 * (base/ctx.h). The arena is that of the Weft: it lives until weft_free. */
#ifndef WEFT_DRIVER_API_DRIVER_PRIV_H
#define WEFT_DRIVER_API_DRIVER_PRIV_H

#include "frontend/files/out_file.h"
#include "ir/graph/dtype_api.h"
#include "ir/graph/graph.h"
#include "ir/interp/tensor.h"
#include "ir/target/target.h"
#include "transform/model/join.h"
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
	bool have_quantized;
	WeftQuantizeReport quantized;  /* of the last weft_quantize */
	struct KnownRounding *rounded; /* the weights that weft_quantize rounded so far */
	const struct Program *program; /* the program of the report */
	const Target *target;          /* the target of the report */
	const WeftGraph *compiled;     /* the graph of the report */
	ARRAY(const struct UserOp *) userop; /* the registered user operators */
	ARRAY(const struct Backend *) backend; /* the registered back ends */
	ARRAY(WeftPhaseTime) phase;
	double phase_start;
	uint32_t ntrace; /* the number of traces so far */
	const WeftComm *comm; /* of weft_interpret_comm */
	uint32_t ranks;       /* of weft_ranks */
	struct Held *held; /* memory of the caller (weft_hold); its release is called last */
};

/* A graph of the API. Graphs of a Weft use its memory and diagnostics; each has its own types and
 * symbols, except joined graphs, which are in one Ir. */
struct WeftGraph {
	Weft *w;
	Graph *g;         /* the graph; NULL: several were joined */
	const char *path; /* the path of the (first) model file */
	uint32_t nentry;  /* at least 1; the entry of a graph that was not joined is "run" */
	GraphEntry *entry;
	JoinedConstants joined;
	bool changed; /* weft_graph.h changed it or a body of it, and nobody has verified it
	                 since */
	/* Of a body of control flow: the graph whose node has it, and the node. It is no graph for
	 * other functions than those of weft_graph.h. */
	WeftGraph *owner;
	Node owner_node;
	ARRAY(WeftGraph *) body; /* those that were asked for, of a graph that is no body */
	bool named;              /* WeftLoadOptions named its outputs */
	bool transformed; /* a transform or a pass made it */
	uint64_t seed; /* of WeftLoadOptions */
	bool rng_input;
	const char *rng_cipher; /* a cipher_name */
};

/* Calls the release functions of all memory that weft_hold registered, and forgets the memory. */
void release_held(Weft *);
/* Returns a new object of the API for a graph, with one entry "run", in the arena. path: the model
 * file, for messages and the model's name; it is copied. */
WeftGraph *graph_wrap(Weft *, Graph *, const char *path);
/* Returns what has the name: "an input" of the graph, or "a parameter", which is state of the graph
 * or a parameter of any graph of its Ir. Returns NULL if the name is free. */
const char *graph_name_owner(const Graph *, const char *name);
/* Verifies a graph, which is no body, if weft_graph.h has changed it or a body of it since it was
 * verified last; else does nothing. Returns false after errors: the graph is not correct. */
bool graph_is_sound(const WeftGraph *);
/* Returns the outermost graph in which a body of control flow is; of a graph that is no body, the
 * graph itself. */
WeftGraph *graph_root(WeftGraph *);
/* Whether the node that has the body is still in its graph, and so on up to graph_root; true of a
 * graph that is no body. */
bool body_is_there(const WeftGraph *);
/* Records a warning, once, of weights that the model's file has no values of: they are 0. */
void graph_warn_absent(const WeftGraph *);
/* Checks that the object has one graph. Returns false after an error: several were joined. */
bool graph_is_one(Weft *, const WeftGraph *);

/* Loads a library of the user, which stays loaded until ctx_free, and sets *function to its
 * function `symbol`. A path without '/' is a file of the current folder. what: the library's
 * contents, "operators", for messages. Returns false after an error: the file is not there, is no
 * library, or has no such function. */
bool library_open(Ctx *, const char *path, const char *what, const char *symbol, void **function);
struct Target;
/* Returns a target as the API describes it; the texts are those of the target, not copies. */
WeftTargetInfo target_info(const struct Target *);

/* Calls f(arg), in the C locale; unwinding ends here. Returns what f returns; false if f unwinds,
 * after which the Weft is dead and `fatal` says why. If the Weft is NULL or dead already, returns
 * false without calling f. Calls may be nested. */
bool boundary(Weft *, bool (*f)(void *arg), void *arg);
/* Returns the time in seconds since some fixed moment, which never goes back. */
double seconds_now(void);

/* Returns the Weft's arena, which lives until weft_free. */
static inline Arena *weft_arena(Weft *w)
{
	return w->ctx->arena;
}

/* ---- tensors between the API and the IR ---- */

struct NamedTensor;
/* Returns the tensors of a list and sets *n to their number; NULL and 0 for NULL and an empty list.
 * Valid until the next weft_tensors_add. */
const struct NamedTensor *tensors_list(const WeftTensors *, uint32_t *n);

/* Returns a tensor of the API on the CPU with t's data, which are not copied; its shape is in the
 * arena, strides NULL (row-major). */
WeftTensor tensor_to_api(Arena *, const Tensor *t);
/* Sets *out to a tensor of the IR with the type and shape of t: it refers to the data of t, or to a
 * copy in the arena if t is not row-major. Returns false after an error, which begins with `what`:
 * a dtype that Weft lacks, a device other than the CPU, more than MAX_RANK dimensions, a shape that
 * is missing, has a negative extent or overflows, or data that are missing though t has
 * elements. */
bool tensor_from_api(Ctx *, Arena *, const char *what, const WeftTensor *t, Tensor *out);

/* ---- files ---- */

/* Writes n bytes into a file, whole or not at all (frontend/files/out_file.h). Returns false after
 * an error. */
bool file_write(Ctx *, const char *path, const void *data, size_t n);
/* Reads a regular file into the arena and sets *n to its size. No 0 follows the bytes. Returns
 * NULL, without an error, if there is no regular file of that path or it cannot be read. */
char *file_read(Arena *, const char *path, size_t *n);
/* Makes a folder and its parents; folders that exist are fine. Returns false after an error. */
bool folder_make(Ctx *, const char *path);
/* Returns the file name without folder and last extension, in the arena. What is no letter or digit
 * becomes '_'; a '_' is put before a first digit: "a/my-net.pt2" gives "my_net". */
const char *path_stem(Arena *, const char *path);

#endif
