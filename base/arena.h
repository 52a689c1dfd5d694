/* Arenas: memory that is freed all at once. Running out of memory unwinds to the API boundary. */
#ifndef WEFT_BASE_ARENA_H
#define WEFT_BASE_ARENA_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct Arena Arena;

/* What longjmp delivers to the API boundary. */
enum { UNWIND_OOM = 1, UNWIND_BUG = 2 };

/* A new arena, or NULL. *unwind must outlive it; NULL: it unwinds to what arena_catch named. */
Arena *arena_new(jmp_buf *unwind);
/* Where this thread unwinds to when memory of an arena that outlives compilations runs out; NULL:
 * abort(). Returns what was there before. */
jmp_buf *arena_catch(jmp_buf *);
/* Unwind so. */
_Noreturn void arena_out_of_memory(void);
void arena_free(Arena *);

/* n zeroed bytes, 16-aligned, valid until the arena is reset or freed. n == 0 gives a valid
 * pointer. */
void *arena_alloc(Arena *, size_t n);
/* n * size bytes, overflow-checked. */
void *arena_calloc(Arena *, size_t n, size_t size);
void *arena_dup(Arena *, const void *p, size_t n);
char *arena_strdup(Arena *, const char *s);
char *arena_strndup(Arena *, const char *s, size_t n);
char *arena_printf(Arena *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Everything allocated since the mark is invalid after arena_release. */
typedef struct {
	void *block;
	size_t used;
} ArenaMark;
ArenaMark arena_mark(const Arena *);
void arena_release(Arena *, ArenaMark);
/* Bytes handed out so far, in debug builds with what guards them. */
size_t arena_used(const Arena *);

/* In debug builds: n bytes that nobody is to read until they are found (arrays: what is behind the
 * last element). Where an AddressSanitizer watches, whoever does is stopped; elsewhere he reads
 * what is neither a handle nor a pointer. */
#ifdef NDEBUG
static inline void arena_lost(void *p, size_t n) { (void)p, (void)n; }
static inline void arena_found(void *p, size_t n) { (void)p, (void)n; }
#else
void arena_lost(void *p, size_t n);
void arena_found(void *p, size_t n);
#endif

/* Failure injection for tests: the nth block allocation from now on fails; 0 turns it off. */
void arena_fail_after(size_t n);
/* For tests too: from now on every allocation of this thread is a block of its own. */
void arena_tiny_blocks(bool on);

#define ARENA_NEW(a, T) ((T *)arena_alloc((a), sizeof(T)))
#define ARENA_ARRAY(a, T, n) ((T *)arena_calloc((a), (n), sizeof(T)))

#endif
