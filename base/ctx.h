/* The context of one compilation: its memory, its diagnostics (errors, warnings and notes for the
 * user), and the way out after an error that cannot be handled. To unwind is to longjmp to
 * ctx->unwind with a value of base/arena.h. */
#ifndef WEFT_BASE_CTX_H
#define WEFT_BASE_CTX_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/refusal.h"
#include "base/text.h"

typedef enum { DIAG_ERROR, DIAG_WARNING, DIAG_NOTE } Severity;

typedef struct Diag {
	Severity severity;
	const char *where; /* "model.pt2: node conv2d_3 (net.py:12)" or NULL */
	const char *text;  /* what is wrong, what was expected */
	struct Diag *next;
	RefusalKind kind; /* of an error */
} Diag;

/* A resource outside of the arena: a mapped file, the handle of a library. */
typedef struct CtxCleanup {
	void (*run)(void *);
	void *arg;
	struct CtxCleanup *next;
} CtxCleanup;

typedef struct Ctx {
	Arena *arena;   /* valid until ctx_free */
	Arena *scratch; /* reset by the pass driver between passes */
	Diag *first, *last;
	uint32_t nerror;
	const char *file;    /* the file that is read, for messages; may be NULL */
	const char *pass;    /* the pass that runs, for messages about bugs; may be NULL */
	jmp_buf unwind;      /* set by the API boundary */
	struct CtxInput *input; /* files that outputs must not replace */
	CtxCleanup *cleanup; /* run by ctx_free before the arena is freed, last added first */
	char bug_text[2048]; /* the message of ctx_bug; valid after running out of memory */
} Ctx;

/* Returns NULL if there is no memory. The caller must call setjmp(ctx->unwind) before using the
 * context. */
Ctx *ctx_new(void);
/* Runs the functions of ctx_defer, then frees both arenas and the context. NULL is allowed. */
void ctx_free(Ctx *);

/* Makes ctx_free call run(arg). Call ctx_defer before acquiring the resource, so that running out
 * of memory in ctx_defer leaks nothing. */
void ctx_defer(Ctx *, void (*run)(void *), void *arg);

/* Registers a file that the compilation reads, by device and inode number. */
void ctx_input(Ctx *, uint64_t device, uint64_t number);
/* Whether a file was registered by ctx_input. out_begin (frontend/files/out_file.h) asks, and
 * refuses to replace such a file. */
bool ctx_is_input(const Ctx *, uint64_t device, uint64_t number);

/* Records an error about bad input. where: the place; NULL means ctx->file. Copies the texts, with
 * hidden characters made visible. Returns false; the caller cleans up and returns its own sign of
 * failure ("after ctx_error" in other headers). */
bool ctx_error(Ctx *, const char *where, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* States the kind of the error that was recorded last, if none is stated. Returns false. */
bool ctx_kind(Ctx *, RefusalKind);
/* Returns false whatever the argument is: with this function compilers and analysers know in every
 * file that ctx_error returns false. */
static inline bool ctx_false(bool failed)
{
	(void)failed;
	return false;
}
#define ctx_error(...) ctx_false(ctx_error(__VA_ARGS__))
#define ctx_kind(...) ctx_false(ctx_kind(__VA_ARGS__))
/* Records a warning; otherwise as ctx_error. */
void ctx_warn(Ctx *, const char *where, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Records a note about the diagnostic before it; otherwise as ctx_error. */
void ctx_note(Ctx *, const char *where, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Reports an internal error, which is a bug of Weft: writes the pass and the text to ctx->bug_text
 * and unwinds with UNWIND_BUG. */
_Noreturn void ctx_bug(Ctx *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Calls ctx_bug because a verifier refused the result of `stage`; the text repeats the last
 * diagnostic, which is the verifier's. */
_Noreturn void ctx_bug_verify(Ctx *, const char *stage);
/* Unwinds with UNWIND_OOM, because memory outside of the arena ran out. */
_Noreturn void ctx_out_of_memory(Ctx *);
/* A position in the diagnostics, for ctx_rewind and ctx_first_only. */
typedef struct {
	Diag *last;
	uint32_t nerror;
} CtxMark;
/* Returns the present position. */
CtxMark ctx_mark(const Ctx *);
/* Removes all diagnostics recorded since the mark: those of an attempt whose failure does not
 * matter. */
void ctx_rewind(Ctx *, CtxMark);
/* Removes every diagnostic behind the first error since the mark, because later errors follow from
 * that error, and returns false. Returns true, and removes nothing, if there was no error since the
 * mark. */
bool ctx_first_only(Ctx *, CtxMark);
/* Appends all diagnostics to the text, each as "where: error: text" (warning, note) and a line
 * break; without "where: " if the diagnostic has no place. */
void ctx_print(const Ctx *, Text *);

/* For functions that leave results unset if they return false: the caller must look at the
 * answer. */
#define MUST_LOOK __attribute__((warn_unused_result))

/* Returns false from the calling function if x is false. */
#define TRY(x)                                                                                     \
	do {                                                                                       \
		if (!(x))                                                                          \
			return false;                                                              \
	} while (0)

#endif
