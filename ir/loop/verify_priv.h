/* Private to ir/loop/verify*.c. */
#ifndef WEFT_IR_LOOP_VERIFY_PRIV_H
#define WEFT_IR_LOOP_VERIFY_PRIV_H

#include "ir/loop/loop.h"

/* Checks what threads of a block do together, and their memory. The other checks of loop_verify
 * found no error. Returns false after errors, which the context has recorded. */
bool verify_block(LoopFn *);
/* Checks the fragments of a function that has some: their numbers and shapes, and that each is
 * zeroed or loaded in a task before it is read. The other checks of loop_verify found no error.
 * Returns false after errors, which the context has recorded. */
bool verify_frag(LoopFn *);

#endif
