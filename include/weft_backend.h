/* Back ends outside of Weft: what makes something of a compiled program. A library exports its back
 * ends by weft_backends_of:
 *
 *     static int print(void *user, const WeftBackendProgram *p, WeftBackendOutput *out)
 *     {
 *             for (uint32_t k = 0; k < p->nkernel; k++)
 *                     if (!out->add(out, NULL, p->kernel[k].text, strlen(p->kernel[k].text)))
 *                             return 1;
 *             return 0;
 *     }
 *     static const WeftBackendDef listing = {.size = sizeof(WeftBackendDef), .name = "listing",
 *                                            .emit = print};
 *     const WeftBackendLibrary *weft_backends_of(void)
 *     {
 *             static const WeftBackendDef *const list[] = {&listing, NULL};
 *             static const WeftBackendLibrary library = {WEFT_BACKEND_VERSION, list};
 *             return &library;
 *     }
 *
 * `weft compile M --backend-library ./liblisting.so --backend listing -o OUT` uses it. A program
 * that uses weft.h calls weft_backend_load or weft_backend_register, and sets
 * WeftOptions.backend_name. See docs/backends.md, which describes the text of loop IR, and
 * examples/backend. */
#ifndef WEFT_BACKEND_H
#define WEFT_BACKEND_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "weft.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of the structures below and of the text of loop IR. A library of another version is refused.
 * WeftBackendDef has one size per version. WeftBackendProgram and WeftBackendOutput, which Weft
 * fills, may get fields at their end in the same version: `size` tells which there are. */
#define WEFT_BACKEND_VERSION 2

/* A function in loop IR. Its operations are those that the target has. */
typedef struct {
	const char *name; /* of a kernel: a C identifier, different from those of other kernels */
	const char *text;
	/* Of WeftBackendProgram.function: the lanes of its arguments and its result. A call has the
	 * name only; the types of the operands tell which function of that name it is. Else 1. */
	uint32_t lanes;
	uint32_t reserved;
} WeftBackendFunction;

/* A table that functions read: constants of their polynomials. */
typedef struct {
	const char *name;
	WeftDType dtype;
	uint32_t n;
	const void *data;
} WeftBackendTable;

/* An entry; its tensors, symbols and calls are those of model->entry[k]. */
typedef struct {
	/* `sizes`: parameters are the extents of the inputs; result slots are the symbols, the
	 * extents of the outputs, the bytes of the workspace. `run`: parameters are the first of
	 * these slots, the symbols; buffers are the inputs, the outputs, the weight section, the
	 * workspace, the state, then rooms. */
	WeftBackendFunction sizes, run;
	/* The functions that are outlined from them, which `outlined k` calls. */
	uint32_t nsizes_outlined, nrun_outlined;
	const WeftBackendFunction *sizes_outlined, *run_outlined;
	const uint32_t *kernel; /* by call, as `launch` counts them: the kernel */
} WeftBackendEntry;

/* A program, valid until `emit` returns. */
typedef struct {
	uint32_t size;                /* of this structure */
	uint32_t nentry, nkernel, nfunction, ntable, nmessage;
	const char *name;             /* of the model, a C identifier */
	const WeftTargetInfo *target;
	/* The tables that the compiled model has, weights included (model->weights). Its functions
	 * execute the program in the interpreter of loop IR, so they tell what is right. */
	const WeftModel *model;
	const WeftBackendEntry *entry;
	const WeftBackendFunction *kernel;   /* distinct kernels: one may have several calls */
	const WeftBackendFunction *function; /* that kernels call; what a function calls comes
	                                        before it */
	const WeftBackendTable *table;
	const char *const *message;          /* of checks: formats of printf; [0] is unused */
} WeftBackendProgram;

typedef struct WeftBackendOutput {
	uint32_t size; /* of this structure */
	uint32_t reserved;
	/* Appends n bytes to the file of that name in the folder; name NULL: to the file that is
	 * the output, if the back end makes no folder. Copies them. Returns false if that is not
	 * possible; then `emit` returns, and Weft says why. */
	bool (*add)(struct WeftBackendOutput *, const char *name, const void *data, size_t n);
	char message[500]; /* of an `emit` that fails; see weft_backend_fail */
} WeftBackendOutput;

typedef struct {
	uint32_t size;     /* of this structure */
	bool folder;       /* the output is a folder of files */
	const char *name;  /* letters, digits, - and _ */
	const char *about; /* what it makes, in a line; NULL: "" */
	void *user;        /* for the functions */
	/* Why the back end does not take the target, as the rest of a sentence that begins with its
	 * name ("needs vectors of 64 bytes"); NULL: it takes it. May be NULL. */
	const char *(*refuses)(void *user, const WeftTargetInfo *);
	/* Makes the output. Returns 0 after success. Nothing is left of the output if it returns
	 * another value: Weft reports the name and out->message. */
	int (*emit)(void *user, const WeftBackendProgram *, WeftBackendOutput *out);
} WeftBackendDef;

typedef struct {
	uint32_t version; /* WEFT_BACKEND_VERSION; the first field of every version */
	const WeftBackendDef *const *backend; /* followed by NULL */
} WeftBackendLibrary;

/* The type of weft_backends_of, which a library of back ends exports. */
typedef const WeftBackendLibrary *(*WeftBackendsFn)(void);

/* Registers a back end of this program for all later compilations of the Weft. Copies the
 * definition, its name and `about` (not what `user` points to). Returns false after a message if
 * `size` is not sizeof(WeftBackendDef), the name is missing, wrong or taken, or `emit` is NULL. */
bool weft_backend_register(Weft *, const WeftBackendDef *);

/* For `emit`: sets out->message, formatted as by printf. Returns 1: return weft_backend_fail(out,
 * "no kernel may call %s", name); */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static inline int weft_backend_fail(WeftBackendOutput *out, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(out->message, sizeof out->message, fmt, ap);
	va_end(ap);
	return 1;
}

#ifdef __cplusplus
}
#endif
#endif
