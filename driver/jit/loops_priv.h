/* Private to driver/jit/loops*.c: the connection of the table's functions, which call the runtime,
 * to the interpreter. */
#ifndef WEFT_DRIVER_JIT_LOOPS_PRIV_H
#define WEFT_DRIVER_JIT_LOOPS_PRIV_H

#include <stdbool.h>

#include "weft.h"

enum { MESSAGE = 480 }; /* bytes */

/* Copies of the table's structures, by which the functions find the model. */
typedef struct {
	WeftEntry table;
	struct LoopModel *model;
	const struct ProgramEntry *program;
} LoopEntry;

typedef struct LoopModel {
	WeftModel model;
	LoopEntry *entry;
	Weft *w;
	uint64_t ncall; /* the number of calls; each has another order of tasks */
} LoopModel;

/* Sets the functions of the model and its entries. */
void loops_functions(LoopModel *);

/* Run the interpreter. Return a status code; after an error message[] has the text. */
int loops_sizes(LoopEntry *, const int64_t *extent, int64_t *slot, char message[MESSAGE]);
/* room: as in LoopReport. Returns LOOPS_NO_ROOM if room failed. */
enum { LOOPS_NO_ROOM = -1 };
int loops_run(LoopEntry *, void *const *buf, const int64_t *slot, bool (*room)(void *, uint32_t, const int64_t *), void *user,
              const WeftOpContext *, char message[MESSAGE]);

#endif
