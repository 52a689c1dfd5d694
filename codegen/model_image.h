/* The tables that describe a model (weft_model.h) as bytes with pointers to fill in: built from the C structures
 * themselves, laid out as on every 64-bit little-endian machine. For emitters that print no C. */
#ifndef WEFT_CODEGEN_MODEL_IMAGE_H
#define WEFT_CODEGEN_MODEL_IMAGE_H

#include "codegen/emit.h"

/* The pointer at byte `at` is symbol, or when that is NULL the image's byte `to`. */
typedef struct {
	uint64_t at, to;
	const char *symbol;
} ImagePointer;

typedef struct {
	Arena *arena;
	char *data; /* 16-aligned */
	uint64_t n, cap;
	ARRAY(ImagePointer) pointer; /* by ascending `at` when finished */
	uint64_t model;              /* where the WeftModel is */
} ModelImage;

/* Names of the entry's functions in the pointers' symbols. */
#define IMAGE_SIZES "sizes"
#define IMAGE_RUN "run"

void model_image(ModelImage *, const Program *, const Target *, const EmitOptions *);

#endif
