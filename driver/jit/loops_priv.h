/* Private to driver/jit/loops*.c: between the table's functions, which know the runtime, and the
 * interpreter. */
#ifndef WEFT_DRIVER_JIT_LOOPS_PRIV_H
#define WEFT_DRIVER_JIT_LOOPS_PRIV_H

#include <stdbool.h>

#include "weft.h"

enum { MESSAGE = 480 }; /* bytes */

/* The table's structures are copies, so that they lead back here. */
typedef struct {
	WeftEntry table;
	struct LoopModel *model;
	const struct ProgramEntry *program;
} LoopEntry;

typedef struct LoopModel {
	WeftModel model;
	LoopEntry *entry;
	Weft *w;
	uint64_t ncall; /* each call has another order of tasks */
} LoopModel;

/* Replaces the functions of model and entries. */
void loops_functions(LoopModel *);

/* The interpreter; not WEFT_OK: message is an error's. */
int loops_sizes(LoopEntry *, const int64_t *extent, int64_t *slot, char message[MESSAGE]);
/* room: as LoopReport's. Returns LOOPS_NO_ROOM where it failed. */
enum { LOOPS_NO_ROOM = -1 };
int loops_run(LoopEntry *, void *const *buf, const int64_t *slot, bool (*room)(void *, uint32_t, const int64_t *), void *user,
              char message[MESSAGE]);

#endif
