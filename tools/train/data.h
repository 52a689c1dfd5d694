/* Data of a training: files with a tensor for each input of an entry, whose first dimension is that
 * of samples, in batches and in an order that is a function of a seed and the epoch. */
#ifndef WEFT_TOOLS_TRAIN_DATA_H
#define WEFT_TOOLS_TRAIN_DATA_H

#include "tools/train/entry.h"

/* A number that is an input of the step, "lr". */
typedef struct {
	const char *name;
	double value;
} Number;

typedef struct {
	const char *path;
	const EntryCall *call;
	int64_t rows, batch;   /* samples in all, and of a batch */
	bool fixed;            /* a batch has no other size */
	bool several;          /* a batch has several samples */
	const WeftTensor **of; /* by input of the entry; NULL: a number */
	WeftTensor *in;        /* by input: what a call takes */
	int64_t *order;        /* the samples of an epoch */
} Data;

/* Reads a file for the inputs of an entry; those of number[n] are none of the file. batch 0: the
 * size that the model was exported with. Returns false after a message: a tensor is missing, has
 * another dtype or shape, or another number of samples; there are fewer samples than a batch; the
 * model takes batches of another size. */
bool data_open(Data *, Weft *, const char *path, const EntryCall *, const Number *number,
	       uint32_t n, int64_t batch);
/* Puts the samples into the order of an epoch. */
void data_shuffle(Data *, uint64_t seed, uint64_t epoch);
/* Returns the number of batches of an epoch, the last smaller one included unless the model takes
 * one size only. */
int64_t data_batches(const Data *);
/* Returns the number of samples that an epoch leaves out, since they are no whole batch. */
int64_t data_left_out(const Data *);
/* Copies the samples of batch k into in[], and sets the numbers. Returns the number of samples. */
int64_t data_batch(Data *, int64_t k, const Number *number, uint32_t n);
/* Prints the least and the largest class of the labels in in[], if there are any. */
void data_tell_labels(const Data *);
/* Returns a number that is equal for equal contents. */
uint64_t data_hash(const Data *);
/* Frees the memory besides the Weft's. Does nothing to zeros. */
void data_close(Data *);

#endif
