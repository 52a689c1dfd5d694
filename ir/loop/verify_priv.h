/* Private to ir/loop/verify*.c. */
#ifndef WEFT_IR_LOOP_VERIFY_PRIV_H
#define WEFT_IR_LOOP_VERIFY_PRIV_H

#include "ir/loop/loop.h"

/* Checks what threads of a block do together, and their memory. The function is right otherwise.
 * Returns false after errors. */
bool verify_block(LoopFn *);

#endif
