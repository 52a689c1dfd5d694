/* Calls of the entries of one model that trains, on one instance. */
#ifndef WEFT_TOOLS_TRAIN_ENTRY_H
#define WEFT_TOOLS_TRAIN_ENTRY_H

#include "tools/tool.h"

/* An entry, its outputs and its workspace. */
typedef struct {
	const Runner *r; /* a compiled model */
	const WeftEntry *entry;
	uint32_t which;
	WeftSizes *sizes;
	WeftTensor *result; /* the outputs of the last call */
	void *work;
	uint64_t work_bytes;
	bool ready; /* sizes, outputs and workspace are those of the last inputs' shapes */
} EntryCall;

/* Finds the entry of that name. Returns false, without a message, if the model has none. */
bool entry_find(EntryCall *, const Runner *, const char *name);
/* Says that the next call has inputs of other shapes. */
void entry_reshape(EntryCall *);
/* Calls the entry with at most `threads` threads (0: as the model chooses). Returns false after a
 * message. */
bool entry_call(EntryCall *, const WeftTensor *inputs, int threads);
/* Returns what is known of input k of the entry. */
const WeftTensorInfo *entry_input(const EntryCall *, uint32_t k);
/* Returns the number of the output of that name; -1 if there is none. */
int entry_output(const EntryCall *, const char *name);
/* Frees what the entry has. Does nothing to zeros. */
void entry_close(EntryCall *);

#endif
