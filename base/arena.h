/* Arenas: memory that is freed all at once. No allocation returns NULL: running out of memory
 * unwinds, which means that longjmp leaves all callers up to the function of the API that called
 * setjmp (the API boundary). */
#ifndef WEFT_BASE_ARENA_H
#define WEFT_BASE_ARENA_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct Arena Arena;

/* The values that longjmp gives to setjmp at the API boundary. */
enum { UNWIND_OOM = 1, UNWIND_BUG = 2 };

/* Returns an empty arena, or NULL if there is no memory. unwind: where allocations of the arena
 * unwind to; must outlive the arena. NULL: they unwind to the place that arena_catch set. */
Arena *arena_new(jmp_buf *unwind);
/* Sets where this thread unwinds to if an arena without `unwind` runs out of memory; NULL: abort().
 * Returns the place that was set before. */
jmp_buf *arena_catch(jmp_buf *);
/* Calls f(arg). Returns false if an arena without `unwind` ran out of memory in the call, which
 * then ended there; what f did before stays done. */
bool arena_try(void (*f)(void *arg), void *arg);
/* Unwinds to the place that arena_catch set for this thread, with UNWIND_OOM; abort() if there is
 * none. */
_Noreturn void arena_out_of_memory(void);
/* Frees the arena and all its allocations. NULL is allowed. */
void arena_free(Arena *);

/* Returns n zeroed bytes, 16-byte aligned, valid until arena_release to an earlier mark or
 * arena_free. For n 0 the pointer is not NULL either. */
void *arena_alloc(Arena *, size_t n);
/* Returns n * size zeroed bytes. An overflow of the product counts as out of memory. */
void *arena_calloc(Arena *, size_t n, size_t size);
/* Returns a copy, in the arena, of the n bytes at p. p may be NULL if n is 0. */
void *arena_dup(Arena *, const void *p, size_t n);
/* Returns a copy, in the arena, of the string s, which must not be NULL. */
char *arena_strdup(Arena *, const char *s);
/* Returns a copy, in the arena, of exactly n bytes of s, with a NUL behind them; a NUL in s does
 * not end it. s may be NULL if n is 0. */
char *arena_strndup(Arena *, const char *s, size_t n);
/* Returns the text that printf would print, as long as needed, in the arena. */
char *arena_printf(Arena *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A position in an arena, for arena_release. */
typedef struct {
	void *block;
	size_t used;
} ArenaMark;
/* Returns the arena's present position. */
ArenaMark arena_mark(const Arena *);
/* Frees all that was allocated in the arena since the mark. Marks are released in reverse order:
 * releasing one invalidates those taken after it. */
void arena_release(Arena *, ArenaMark);
/* Returns the bytes that all live allocations take: each rounded up to a multiple of 16, at least
 * 16, in debug builds with the guard behind it. */
size_t arena_used(const Arena *);

/* arena_lost: nobody may read or write the n bytes at p (the unused end of an array) until
 * arena_found gives them back. arena_found: the bytes have unspecified values. Both check in debug
 * builds only: AddressSanitizer stops an access; without it the lost bytes hold 0xa5, so that what
 * is read is no handle and no pointer. */
#ifdef NDEBUG
static inline void arena_lost(void *p, size_t n) { (void)p, (void)n; }
static inline void arena_found(void *p, size_t n) { (void)p, (void)n; }
#else
void arena_lost(void *p, size_t n);
void arena_found(void *p, size_t n);
#endif

/* Makes arenas of this thread find no memory, once, when they next take a block from the system
 * for the nth time from now on (1: the next time; 0: never). For tests. */
void arena_fail_after(size_t n);
/* Sets whether every allocation from arenas by this thread is a block of its own from now on.
 * For tests. */
void arena_tiny_blocks(bool on);

/* A zeroed T, and a zeroed array of n Ts, in the arena. */
#define ARENA_NEW(a, T) ((T *)arena_alloc((a), sizeof(T)))
#define ARENA_ARRAY(a, T, n) ((T *)arena_calloc((a), (n), sizeof(T)))

#endif
