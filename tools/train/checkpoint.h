/* Checkpoints of a training: the state of an instance by PyTorch's names, and where the training
 * is, in a .safetensors file that is written whole or not at all. */
#ifndef WEFT_TOOLS_TRAIN_CHECKPOINT_H
#define WEFT_TOOLS_TRAIN_CHECKPOINT_H

#include "tools/tool.h"

/* Where a training is. */
typedef struct {
	uint64_t seed, data; /* of the order of samples; data_hash */
	int64_t rows, batch; /* samples in all, and of a batch */
	int64_t epoch, done; /* the epoch, from 0 on, and its batches that are done */
	int64_t step;        /* updates in all */
	int64_t parts;       /* batches of an update */
	int64_t epochs;      /* that the training was to have */
	double loss;         /* the sum of losses of the epoch, by sample */
	int64_t seen;        /* samples of the epoch */
	int64_t lost;        /* of them, those that are not in the sum: the loss was not finite */
	int64_t skipped;     /* updates of the epoch that were left out */
} Place;

/* Writes the state, the place, and what settings_text returned. Returns false after a message, with
 * the old file unchanged. */
bool checkpoint_save(const Runner *, const char *path, const Place *, const char *settings);
/* Returns the settings in a file, which the caller frees; NULL after a message. */
char *checkpoint_settings(const char *path);
/* Sets *Place alone from a file. Returns false after a message: the file is none of
 * checkpoint_save. */
bool checkpoint_place(const char *path, Place *);
/* Sets the state and *Place from a file. Returns false after a message: the file is none of
 * checkpoint_save, or has tensors of other names or shapes. */
bool checkpoint_load(const Runner *, const char *path, Place *);

#endif
