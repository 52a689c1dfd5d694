/* Values that have been computed while a loop function is built, found by a key: all that the value
 * depends on, as n integers. */
#ifndef WEFT_CODEGEN_EVAL_MEMO_H
#define WEFT_CODEGEN_EVAL_MEMO_H

#include "ir/loop/loop.h"

/* A value is known in the block in which it was computed, and in the blocks inside of that block;
 * and in the lanes of the mask under which it was computed. */
typedef struct {
	Lx value, mask; /* mask none: all lanes */
	Lb block;
	uint32_t depth; /* of the block, among those that were open */
	uint32_t older; /* 0, or the entry of the same key before this one */
} MemoEntry;

typedef struct {
	const LoopFn *f;
	Arena *arena;
	Intern key;
	ARRAY(uint32_t) newest; /* by key: 0, or its last entry */
	ARRAY(MemoEntry) entry; /* [0] unused */
} Memo;

/* Makes the memo empty, for the function f under construction; its memory comes from the arena. */
void memo_init(Memo *, const LoopFn *f, Arena *);
/* Returns the value of the key, n integers, that was added last, of those that are known in the
 * innermost open block of f and in all lanes of `mask` (none: all lanes); none if there is no such
 * value. That a value is known in these lanes is seen only if it has no mask, or `mask` is the
 * value's mask or an SC_and of it. */
Lx memo_find(Memo *, const uint32_t *key, uint32_t n, Lx mask);
/* Adds a value of the key, n integers, which is known until the innermost open block of f is
 * closed, in the lanes of `mask` (none: all lanes). Copies the key. */
void memo_add(Memo *, const uint32_t *key, uint32_t n, Lx mask, Lx value);

/* Whether x, an expression or none, reads a mutable variable. A value that depends on x must then
 * not be remembered. */
bool memo_changes(const LoopFn *, Lx x);

#endif
