/* Private to driver/jit/loops*.c: a model whose `sizes_fn` and `run_fn` are calls of the
 * interpreter of loop IR (ir/loop/interp/interp.h). The other functions of the table are the
 * runtime's. */
#ifndef WEFT_DRIVER_JIT_LOOPS_PRIV_H
#define WEFT_DRIVER_JIT_LOOPS_PRIV_H

#include <stdbool.h>

#include "weft.h"

enum { MESSAGE = 480 }; /* bytes */

/* The structures of the table, with fields behind them by which functions find the model. */
typedef struct {
	WeftEntry table;
	struct LoopModel *model;
	const struct ProgramEntry *program;
} LoopEntry;

typedef struct LoopModel {
	WeftModel model;
	LoopEntry *entry;
	Weft *w;
	uint64_t ncall; /* the number of calls so far; each runs tasks in another order */
} LoopModel;

/* Sets all function pointers of the model's table and of its entries. */
void loops_functions(LoopModel *);

/* Interprets sizes_fn of the entry: extent and slot as in WeftEntry. Returns WEFT_OK; or, with the
 * reason in message[], WEFT_ERR_INPUT if the extents do not fit, WEFT_ERR_CHECK if the code does
 * something that is not allowed, WEFT_ERR_MEMORY if there is no memory or the Weft is dead. */
int loops_sizes(LoopEntry *, const int64_t *extent, int64_t *slot, char message[MESSAGE]);
enum { LOOPS_NO_ROOM = -1 };
/* Interprets run_fn of the entry: buf and slot as in WeftEntry. room(user, k, p): allocates buffer
 * k, or returns false after a failure that it has reported (weft_room in runtime.h has p). The
 * WeftOpContext is for user operators. Returns WEFT_OK; LOOPS_NO_ROOM if room returned false; or
 * WEFT_ERR_CHECK for every other failure, with the reason in message[]. */
int loops_run(LoopEntry *, void *const *buf, const int64_t *slot,
	      bool (*room)(void *, uint32_t, const int64_t *), void *user, const WeftOpContext *,
	      char message[MESSAGE]);

#endif
