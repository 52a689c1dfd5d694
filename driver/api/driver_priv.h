/* Private to the driver: the API's objects, and the way through its boundary. */
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
	Arena *results;   /* of the interpreter, until weft_release */
	bool dead;        /* an internal error or no memory: the context is in no known state */
	char fatal[2200]; /* its message */
	const char *dump; /* what WeftOptions.dump asked for */
	bool have_report;
	WeftReport report;
	const struct Program *program; /* that the report is about */
	const Machine *machine;        /* that it is tuned for */
	ARRAY(const struct UserOp *) userop; /* registered */
	ARRAY(WeftPhaseTime) phase;
	double phase_start;
	uint32_t ntrace; /* so far */
};

/* What becomes an entry of a compiled model. */
typedef struct {
	const char *name;
	Graph *g;
	const char *path; /* of the model file */
} GraphEntry;

/* A constant of a graph that another one writes: state in both. */
typedef struct {
	const char *name;
	uint32_t entry;
} JoinedConstant;

/* Graphs of a Weft share its memory and diagnostics, not their types and symbols; those of joined
 * ones live in one Ir. */
struct WeftGraph {
	Weft *w;
	Graph *g;         /* the only one; NULL: several were joined */
	const char *path; /* of the model file; of several the first */
	uint32_t nentry;  /* at least 1; the only one of a file is "run" */
	GraphEntry *entry;
	ARRAY(JoinedConstant) joined;
};

/* A graph of a file. */
WeftGraph *graph_wrap(Weft *, Graph *, const char *path);
/* Constants that the graphs, of one Ir, have in common become one; `keep_names`: only those of one
 * name. False after ctx_error: then their contents differ in two graphs. The files in messages are
 * those of `from`. */
bool join_constants(Weft *, const WeftGraph *from, Graph *const *g, bool keep_names);
/* For what is asked of one graph. False after ctx_error: these are several. */
bool graph_is_one(Weft *, const WeftGraph *);

/* Call f(arg) so that unwinding ends here. False when f says so or unwound. */
bool boundary(Weft *, bool (*f)(void *arg), void *arg);
double seconds_now(void);

static inline Arena *weft_arena(Weft *w)
{
	return w->ctx->arena;
}

/* ---- tensors between the API and the IR ---- */

/* A tensor that shares t's data; shape and strides from the arena. */
WeftTensor tensor_to_api(Arena *, const Tensor *t);
/* The other way; copies when t is not row-major. False after ctx_error naming `what`. */
bool tensor_from_api(Ctx *, Arena *, const char *what, const WeftTensor *t, Tensor *out);

/* ---- files ---- */

/* Write all of it or nothing, as frontend/files/out_file.h says. False after ctx_error. */
bool file_write(Ctx *, const char *path, const void *data, size_t n);
/* All of a regular file. NULL, without a message, when it cannot be read. */
char *file_read(Arena *, const char *path, size_t *n);
/* mkdir -p. False after ctx_error. */
bool folder_make(Ctx *, const char *path);
/* The file name without folder and extension, made an identifier. */
const char *path_stem(Arena *, const char *path);

#endif
