/* Values that have been computed while a loop function is built, found by what they depend on. */
#ifndef WEFT_CODEGEN_EVAL_MEMO_H
#define WEFT_CODEGEN_EVAL_MEMO_H

#include "ir/loop/loop.h"

/* A value is there in the block in which it was computed and in the blocks inside; and in the lanes
 * of the mask under which it was. */
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

/* Nothing is known of `f`, the function under construction. */
void memo_init(Memo *, const LoopFn *f, Arena *);
/* The value that was added last of those that can be seen from the innermost open block and whose
 * mask has all lanes of `mask`. None: there is no such value. The key says all that the value
 * depends on. */
Lx memo_find(Memo *, const uint32_t *key, uint32_t n, Lx mask);
/* Until the innermost open block is closed, by whomever. */
void memo_add(Memo *, const uint32_t *key, uint32_t n, Lx mask, Lx value);

/* Whether x reads a variable that may be set: what depends on such a value cannot be remembered. */
bool memo_changes(const LoopFn *, Lx x);

#endif
