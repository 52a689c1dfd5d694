/* One compilation: its memory, its diagnostics, and the way out when something is impossible. */
#ifndef WEFT_BASE_CTX_H
#define WEFT_BASE_CTX_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/text.h"

typedef enum { DIAG_ERROR, DIAG_WARNING, DIAG_NOTE } Severity;

typedef struct Diag {
	Severity severity;
	const char *where; /* "model.pt2: node conv2d_3 (net.py:12)" or NULL */
	const char *text;  /* what is wrong, what was expected */
	struct Diag *next;
} Diag;

/* Something that the arena does not own: a mapped file, a handle of a library. */
typedef struct CtxCleanup {
	void (*run)(void *);
	void *arg;
	struct CtxCleanup *next;
} CtxCleanup;

typedef struct Ctx {
	Arena *arena;   /* lives as long as the compilation */
	Arena *scratch; /* reset by the pass driver between passes */
	Diag *first, *last;
	uint32_t nerror;
	const char *file;    /* being read, for messages; may be NULL */
	const char *pass;    /* running, for messages about bugs; may be NULL */
	jmp_buf unwind;      /* set by the API boundary */
	struct CtxInput *input; /* files that outputs must not replace */
	CtxCleanup *cleanup; /* run by ctx_free before the arena goes, last added first */
	char bug_text[2048]; /* filled by ctx_bug: valid even when memory ran out */
} Ctx;

/* A context, or NULL when there is no memory. The caller must setjmp(ctx->unwind) before use. */
Ctx *ctx_new(void);
void ctx_free(Ctx *);

/* Have ctx_free call run(arg). Register before acquiring, so that running out of memory cannot
 * leak. */
void ctx_defer(Ctx *, void (*run)(void *), void *arg);

/* A file by device and number: outputs that are the same one are refused. */
void ctx_input(Ctx *, uint64_t device, uint64_t number);
bool ctx_is_input(const Ctx *, uint64_t device, uint64_t number);

/* Record bad input. `where` may be NULL (the file is used then); texts are copied. Returns
 * false. */
bool ctx_error(Ctx *, const char *where, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* So that callers in other files are compiled, and analyzed, knowing which value comes back. */
static inline bool ctx_false(bool failed)
{
	(void)failed;
	return false;
}
#define ctx_error(...) ctx_false(ctx_error(__VA_ARGS__))
void ctx_warn(Ctx *, const char *where, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void ctx_note(Ctx *, const char *where, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* An internal error: records pass and text, unwinds with UNWIND_BUG. */
_Noreturn void ctx_bug(Ctx *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A verifier refused what `stage` made: an internal error that repeats what it said last. */
_Noreturn void ctx_bug_verify(Ctx *, const char *stage);
/* Memory from elsewhere ran out: unwinds with UNWIND_OOM. */
_Noreturn void ctx_out_of_memory(Ctx *);
/* What has been said so far, and that again: what was said since is forgotten, of an attempt whose
 * failure means nothing. */
typedef struct {
	Diag *last;
	uint32_t nerror;
} CtxMark;
CtxMark ctx_mark(const Ctx *);
void ctx_rewind(Ctx *, CtxMark);
/* Of the errors since then only the first stays, of which the others follow. False if there is
 * one. */
bool ctx_first_only(Ctx *, CtxMark);
/* All diagnostics, one per line: "where: error: text". */
void ctx_print(const Ctx *, Text *);

/* Of what can say no and leaves results unset then: whoever asks looks at the answer. */
#define MUST_LOOK __attribute__((warn_unused_result))

#define TRY(x)                                                                                     \
	do {                                                                                       \
		if (!(x))                                                                          \
			return false;                                                              \
	} while (0)

#endif
