/* GGUF files, in which llama.cpp keeps models: metadata, an index, then tensors, most of them in
 * blocks of a few bits for each weight. Versions 2 and 3, little-endian. Errors are recorded in the
 * context and begin with the path.
 *
 * A weight of a block is integer * scale - offset, in f32: each group of neighbours in a row has
 * one scale and, of some kinds, one offset. This is the value that llama.cpp's dequantisation
 * gives: products of a scale and a small integer are exact in f32. */
#ifndef WEFT_FRONTEND_FILES_GGUF_H
#define WEFT_FRONTEND_FILES_GGUF_H

#include "frontend/files/file.h"
#include "ir/interp/tensor.h"

/* A kind of blocks. */
typedef struct {
	const char *name;  /* "Q4_K" */
	uint32_t id;       /* in files */
	uint16_t weights;  /* of a block */
	uint16_t bytes;    /* of a block in the file */
	uint16_t group;    /* weights with one scale */
	bool offsets;      /* groups have offsets */
	DType stored;      /* the narrowest dtype that holds its scales and offsets */
	/* Unpacks a block: weights integers, and a scale and, if the kind has them, an offset for
	 * each group. */
	void (*unpack)(const uint8_t *block, int8_t *q, float *scale, float *offset);
} GgufBlocks;

typedef struct {
	const char *name;
	Tensor tensor;            /* its data lie in the file; dtype DT_none: whole blocks */
	const GgufBlocks *blocks; /* NULL: numbers of tensor.dtype */
} GgufTensor;

typedef struct {
	const char *key;
	const char *text; /* of a string; NULL: a number */
	int64_t number;   /* an integer or bool */
} GgufMeta;

typedef struct {
	uint32_t n, nmeta;
	GgufTensor *tensor; /* in the order of the file */
	GgufMeta *meta;     /* strings, integers and bools; no arrays and no floats */
} GgufFile;

/* Whether the bytes begin as a GGUF file does. */
bool is_gguf(const void *data, size_t size);
/* Maps a file and checks it: all tensors lie within it, in kinds that are known; names differ.
 * Data are valid as long as the context. Returns false after an error. */
bool gguf_open(Ctx *, const char *path, GgufFile *);
/* Checks the contents of a file in memory, to which tensors refer: they must stay as long as the
 * context. path: for messages. Returns false after an error. */
bool gguf_open_bytes(Ctx *, const char *path, const void *data, size_t size, GgufFile *);
/* Returns the metadata of that key, or NULL, without an error, if there are none. */
const GgufMeta *gguf_meta(const GgufFile *, const char *key);

/* A tensor of blocks, unpacked. n: groups of a row. */
typedef struct {
	Tensor q;      /* i8 [..., n * group] */
	Tensor scale;  /* blocks->stored [..., n] */
	Tensor offset; /* blocks->stored [..., n]; no data: the kind has none */
} GgufUnpacked;
/* Unpacks a tensor of blocks into the arena. */
GgufUnpacked gguf_unpack(Arena *, const GgufTensor *);

/* Returns the kind of that number, or NULL. */
const GgufBlocks *gguf_blocks(uint32_t id);

#endif
