/* Arenas: memory that is freed all at once. Running out of memory unwinds (longjmp) to the API
 * boundary. */
#ifndef WEFT_BASE_ARENA_H
#define WEFT_BASE_ARENA_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct Arena Arena;

/* The values that longjmp gives to setjmp at the API boundary. */
enum { UNWIND_OOM = 1, UNWIND_BUG = 2 };

/* Returns NULL if there is no memory. unwind: where allocations of the arena unwind to; must
 * outlive the arena. NULL: to the place that arena_catch set. */
Arena *arena_new(jmp_buf *unwind);
/* Sets where this thread unwinds to if an arena without `unwind` runs out of memory; NULL: abort().
 * Returns the place that was set before. */
jmp_buf *arena_catch(jmp_buf *);
/* Unwinds to the place of arena_catch with UNWIND_OOM. */
_Noreturn void arena_out_of_memory(void);
void arena_free(Arena *);

/* Returns n zeroed bytes, 16-byte aligned, valid until the arena is released or freed. For n 0 the
 * pointer is valid too. */
void *arena_alloc(Arena *, size_t n);
/* Returns n * size zeroed bytes. An overflow of the product counts as out of memory. */
void *arena_calloc(Arena *, size_t n, size_t size);
/* Copies in the arena, valid like those of arena_alloc. */
void *arena_dup(Arena *, const void *p, size_t n);
char *arena_strdup(Arena *, const char *s);
char *arena_strndup(Arena *, const char *s, size_t n);
char *arena_printf(Arena *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* arena_release frees everything that was allocated since the mark. */
typedef struct {
	void *block;
	size_t used;
} ArenaMark;
ArenaMark arena_mark(const Arena *);
void arena_release(Arena *, ArenaMark);
/* The bytes allocated so far; in debug builds with the guards behind allocations. */
size_t arena_used(const Arena *);

/* In debug builds: nobody may read the n bytes at p between arena_lost and arena_found (the unused
 * end of an array). AddressSanitizer stops a read; without it the bytes hold values that are no
 * handle and no pointer. */
#ifdef NDEBUG
static inline void arena_lost(void *p, size_t n) { (void)p, (void)n; }
static inline void arena_found(void *p, size_t n) { (void)p, (void)n; }
#else
void arena_lost(void *p, size_t n);
void arena_found(void *p, size_t n);
#endif

/* For tests: the nth block allocation from now on fails; 0: none. */
void arena_fail_after(size_t n);
/* For tests: every allocation of this thread is a block of its own. */
void arena_tiny_blocks(bool on);

#define ARENA_NEW(a, T) ((T *)arena_alloc((a), sizeof(T)))
#define ARENA_ARRAY(a, T, n) ((T *)arena_calloc((a), (n), sizeof(T)))

#endif
