/* Private to the driver: back ends. A back end is a row; only the row's file knows which one it is.
 * Others ask the fields below. */
#ifndef WEFT_DRIVER_ARTIFACT_BACKEND_H
#define WEFT_DRIVER_ARTIFACT_BACKEND_H

#include "driver/artifact/compile.h"

/* Where an artifact is put together. */
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
	/* Why the compilation's options or targets do not fit, asked where the back end is named;
	 * NULL: they fit. The field may be NULL: all fit. */
	const char *(*refuses)(const Compilation *);
	/* Whether the back end may be chosen where none is named. NULL: never. */
	bool (*suits)(const Compilation *);
	/* Whether `load` will succeed; loads nothing. NULL: always. */
	bool (*available)(const Compilation *);
	/* The note if another one is chosen because the back end is not available. */
	const char *absent;
	/* Loads what the back end needs; may end the process, so nothing is half written before.
	 * Returns false after errors. NULL: nothing is needed. */
	bool (*load)(Compilation *);
	/* The number of units for so many kernels. It does not depend on the machine, so that the
	 * output does not either. */
	uint32_t (*units)(uint32_t kernels);
	/* After compile_lower: makes the shared object. Returns false after errors. */
	bool (*shared)(Compilation *, const Place *);
	/* Other outputs: bits 1 << WeftEmit. Of `objects`, weights are part; Place.weights_object
	 * has them. A folder (WEFT_EMIT_C) has weights in a file of its own, which the caller
	 * writes. No kind has two back ends. */
	uint32_t texts, objects;
	bool (*emit)(Compilation *, WeftEmit, const Place *);
	/* After compile_lower of one level: makes code in this process, which refers to symbol[n],
	 * and calls phase_end. small: as few pages as possible. Returns false after errors. NULL:
	 * the back end makes none. */
	bool (*here)(Compilation *, const HereSymbol *symbol, uint32_t n, bool small, Here *);
	/* Whether shared objects may be loaded to check them: no program of the caller made them.
	 * NULL: no. */
	bool (*trusted)(const Compilation *);
	void *user; /* of the row's own functions */
} Backend;

extern const Backend backend_llvm, backend_c;

/* The built-in rows, in the order of preference, followed by NULL. */
extern const Backend *const backends[];
/* The row that writes such an output; NULL: no back end is needed. */
const Backend *backend_of_kind(WeftEmit);
/* The row that makes code in this process. */
const Backend *backend_here(void);
/* Sets c->backend as the options say; c->fallback: what a note has to say of the choice. Returns
 * false after errors. */
bool backend_choose(Compilation *);
/* Calls the row's functions of these names; those that are NULL do nothing. */
bool backend_load(Compilation *);
bool backend_available(const Backend *, const Compilation *);

#endif
