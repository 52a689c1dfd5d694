/* Private to the driver: back ends. A back end turns the programs of a compilation (compile.h) into
 * files or into code in this process. It is a row; only the row's file knows which one it is.
 * Others ask the fields below. */
#ifndef WEFT_DRIVER_ARTIFACT_BACKEND_H
#define WEFT_DRIVER_ARTIFACT_BACKEND_H

#include "driver/artifact/compile.h"

/* The paths of one output. */
typedef struct {
	const char *folder;         /* of temporary files */
	const char *weights_object; /* the weights to link; NULL: there are none, or in a file */
	const char *weights_file;   /* the name of that file beside the artifact; NULL: embedded */
	const char *out;            /* the path to write to */
} Place;

/* A definition that code in this process refers to. */
typedef struct {
	const char *name;
	const void *address;
} HereSymbol;

/* Code in this process. */
typedef struct {
	void *code;
	void (*free)(void *code);
	void *entry; /* the address of the function that returns the model */
} Here;

typedef struct Backend {
	const char *name;  /* of WeftOptions.backend_name */
	const char *about; /* what it makes, for lists */
	bool gpus;         /* takes GPUs, and no CPUs; else CPUs, and no GPUs */
	/* Why the compilation's options or targets do not fit, asked where the back end is named;
	 * NULL: they fit. The field may be NULL: all fit. */
	const char *(*refuses)(const Compilation *);
	/* Whether the back end may be chosen where none is named. NULL: never. */
	bool (*suits)(const Compilation *);
	/* Whether `load` will succeed, as far as that is known without loading. NULL: always. */
	bool (*available)(const Compilation *);
	/* The note to print if another back end is chosen because this one is not available. */
	const char *absent;
	/* Loads what the back end needs; may end the process, so nothing is half written before.
	 * Returns false after errors. NULL: nothing is needed. */
	bool (*load)(Compilation *);
	/* The number of translation units for so many kernels. It does not depend on the machine,
	 * so that the output does not either. */
	uint32_t (*units)(uint32_t kernels);
	/* After compile_lower: makes the shared object. Returns false after errors. */
	bool (*shared)(Compilation *, const Place *); /* or NULL, see below */
	/* The other kinds of output that `emit` writes, bits 1 << WeftEmit; no kind has two back
	 * ends but WEFT_EMIT_SHARED: a row without `shared` makes something else instead of a
	 * shared object. The kinds in `objects` contain the weights, from Place.weights_object;
	 * those in `texts` do not. Those in `folders` are a folder, Place.out, to which the caller
	 * adds the file of weights, but for WEFT_EMIT_SHARED. emit: after compile_lower; returns
	 * false after errors. */
	uint32_t texts, objects, folders;
	bool (*emit)(Compilation *, WeftEmit, const Place *);
	/* After compile_lower of one level: makes code in this process, which refers to symbol[n],
	 * and calls phase_end. small: as few pages as possible. Returns false after errors. NULL:
	 * the back end makes none. */
	bool (*here)(Compilation *, const HereSymbol *symbol, uint32_t n, bool small, Here *);
	/* Whether this process may load its shared objects to check them: no program that the
	 * caller named made them. NULL: no. */
	bool (*trusted)(const Compilation *);
	void *user; /* for the row's own functions */
} Backend;

extern const Backend backend_llvm, backend_c, backend_cuda, backend_gpu_host;

/* The built-in rows, in the order of preference, followed by NULL. */
extern const Backend *const backends[];
/* Returns the row of that name (not NULL), registered with the Weft or built in. Returns NULL,
 * without an error, if there is none. */
const Backend *backend_named(const Weft *, const char *name);
/* Returns the built-in row whose `texts`, `objects` or `folders` has the kind; NULL if no back end
 * is needed for the kind. Do not ask for WEFT_EMIT_SHARED, which gives NULL: backend_choose finds
 * that back end. */
const Backend *backend_of_kind(WeftEmit);
/* Returns the built-in row that makes code in this process. The row is there in builds without
 * LLVM, too; backend_available says whether it can be used. */
const Backend *backend_here(void);
/* Sets c->backend as the options say. If they name none, c->backend is the first built-in row
 * that suits and is available, and c->fallback the note of a row before it that suits but is not
 * available; else c->fallback stays. Loads nothing. Returns false after an error: the options
 * name a back end that does not exist or does not fit, or two different ones. A step of
 * compile_begin, after c->o, c->level and c->target are set. */
bool backend_choose(Compilation *);
/* Loads what c->backend needs (Backend.load). May be repeated. Returns false after errors. */
bool backend_load(Compilation *);
/* Checks that the back end is for GPUs if c->target is a GPU, and for CPUs if it is a CPU. Returns
 * false after an error. */
bool backend_takes(const Backend *, const Compilation *);
/* Whether backend_load will succeed with this row, as far as that is known without loading. */
bool backend_available(const Backend *, const Compilation *);

#endif
