#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"

enum { ALIGN = 16, FIRST_BLOCK = 16 << 10, LAST_BLOCK = 1 << 20 };

/* What stands behind an allocation in debug builds: values that are no handle, no size and no
 * pointer, so that what is read there shows. With AddressSanitizer it cannot be touched, nor what
 * an array that has moved left behind. */
#ifdef NDEBUG
enum { GUARD = 0 };
#else
enum { GUARD = 2 * ALIGN };
#endif
enum { LOST = 0xa5 };
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#endif
#endif
#ifndef ASAN_POISON_MEMORY_REGION
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

/* The bytes follow the header. Free bytes of a block are zero. */
typedef struct ArenaBlock {
	struct ArenaBlock *prev;
	size_t start; /* arena->used when the block was made */
	size_t fill, size;
} ArenaBlock;
_Static_assert(sizeof(ArenaBlock) % ALIGN == 0, "data behind the header is aligned");

struct Arena {
	jmp_buf *unwind;
	ArenaBlock *head;  /* small allocations come from here */
	ArenaBlock *large; /* one allocation each */
	size_t used;
	size_t next_size;
};

static _Thread_local size_t fail_after;
static _Thread_local bool tiny_blocks;

void arena_fail_after(size_t n)
{
	fail_after = n;
}

void arena_tiny_blocks(bool on)
{
	tiny_blocks = on;
}

static void *zeroed(size_t n)
{
	if (fail_after && --fail_after == 0)
		return NULL;
	return calloc(1, n);
}

static _Thread_local jmp_buf *caught_by;

jmp_buf *arena_catch(jmp_buf *to)
{
	jmp_buf *before = caught_by;
	caught_by = to;
	return before;
}

bool arena_try(void (*f)(void *arg), void *arg)
{
	jmp_buf here, *outer = arena_catch(&here);
	const bool ok = !setjmp(here);
	if (ok)
		f(arg);
	arena_catch(outer);
	return ok;
}

void arena_out_of_memory(void)
{
	if (!caught_by)
		abort();
	longjmp(*caught_by, UNWIND_OOM);
}

static _Noreturn void out_of_memory(Arena *a)
{
	if (!a->unwind)
		arena_out_of_memory();
	longjmp(*a->unwind, UNWIND_OOM);
}

Arena *arena_new(jmp_buf *unwind)
{
	Arena *a = zeroed(sizeof *a);
	if (!a)
		return NULL;
	a->unwind = unwind;
	a->next_size = FIRST_BLOCK;
	return a;
}

static ArenaBlock *free_blocks(ArenaBlock *b, const ArenaBlock *stop)
{
	while (b != stop) {
		ArenaBlock *prev = b->prev;
		free(b);
		b = prev;
	}
	return b;
}

void arena_free(Arena *a)
{
	if (!a)
		return;
	free_blocks(a->head, NULL);
	free_blocks(a->large, NULL);
	free(a);
}

static ArenaBlock *block_new(Arena *a, size_t size, ArenaBlock *prev)
{
	ArenaBlock *b = zeroed(sizeof *b + size);
	if (!b)
		out_of_memory(a);
	b->prev = prev;
	b->start = a->used;
	b->size = size;
	return b;
}

static ArenaBlock *block_with_room(Arena *a, size_t n)
{
	if (tiny_blocks)
		return a->large = block_new(a, n, a->large);
	if (a->head && a->head->size - a->head->fill >= n)
		return a->head;
	if (n > a->next_size / 4)
		return a->large = block_new(a, n, a->large);
	a->head = block_new(a, a->next_size, a->head);
	if (a->next_size < LAST_BLOCK)
		a->next_size *= 2;
	return a->head;
}

void *arena_alloc(Arena *a, size_t n)
{
	if (n > SIZE_MAX / 2)
		out_of_memory(a);
	size_t wanted = n;
	n = (n ? (n + ALIGN - 1) & ~(size_t)(ALIGN - 1) : ALIGN) + GUARD;
	ArenaBlock *b = block_with_room(a, n);
	char *p = (char *)(b + 1) + b->fill;
	b->fill += n;
	a->used += n;
	arena_lost(p + wanted, n - wanted);
	return p;
}

#ifndef NDEBUG
void arena_lost(void *p, size_t n)
{
	if (!n)
		return;
	ASAN_UNPOISON_MEMORY_REGION(p, n);
	memset(p, LOST, n);
	ASAN_POISON_MEMORY_REGION(p, n);
}

void arena_found(void *p, size_t n)
{
	ASAN_UNPOISON_MEMORY_REGION(p, n);
}
#endif

void *arena_calloc(Arena *a, size_t n, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(n, size, &bytes))
		out_of_memory(a);
	return arena_alloc(a, bytes);
}

void *arena_dup(Arena *a, const void *p, size_t n)
{
	void *copy = arena_alloc(a, n);
	if (n)
		memcpy(copy, p, n);
	return copy;
}

char *arena_strdup(Arena *a, const char *s)
{
	return arena_strndup(a, s, strlen(s));
}

char *arena_strndup(Arena *a, const char *s, size_t n)
{
	if (n == SIZE_MAX)
		out_of_memory(a);
	char *copy = arena_alloc(a, n + 1);
	if (n)
		memcpy(copy, s, n);
	return copy;
}

char *arena_printf(Arena *a, const char *fmt, ...)
{
	va_list args, again;
	va_start(args, fmt);
	va_copy(again, args);
	char local[256]; /* most fit */
	int n = format_text(local, sizeof local, fmt, args);
	va_end(args);
	char *s = arena_alloc(a, n < 0 ? 1 : (size_t)n + 1);
	if (n > 0 && (size_t)n < sizeof local)
		memcpy(s, local, (size_t)n);
	else if (n > 0)
		format_text(s, (size_t)n + 1, fmt, again);
	va_end(again);
	return s;
}

ArenaMark arena_mark(const Arena *a)
{
	return (ArenaMark){a->head, a->used};
}

void arena_release(Arena *a, ArenaMark m)
{
	a->head = free_blocks(a->head, m.block);
	while (a->large && a->large->start >= m.used)
		a->large = free_blocks(a->large, a->large->prev);
	a->used = m.used;
	if (!a->head)
		return;
	/* What the head held at the mark: all bytes since it was made but those of large blocks. */
	size_t fill = m.used - a->head->start;
	for (const ArenaBlock *b = a->large; b && b->start >= a->head->start; b = b->prev)
		fill -= b->fill;
	ASAN_UNPOISON_MEMORY_REGION((char *)(a->head + 1) + fill, a->head->fill - fill);
	memset((char *)(a->head + 1) + fill, 0, a->head->fill - fill);
	a->head->fill = fill;
}

size_t arena_used(const Arena *a)
{
	return a->used;
}
