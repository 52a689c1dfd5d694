/* GGUF files, in which llama.cpp keeps models: metadata, an index, then tensors, most of them in
 * blocks of a few bits for each weight. Versions 2 and 3, little-endian. Errors are recorded in the
 * context and begin with the path.
 *
 * A weight of a block is integer * scale - offset, in f32: each group of neighbours in a row has
 * one scale and, of some kinds, one offset. Of kinds with units these are integers times numbers
 * that a block has one of. This is the value that llama.cpp's dequantisation gives: all these
 * products are exact in f32. */
#ifndef WEFT_FRONTEND_FILES_GGUF_H
#define WEFT_FRONTEND_FILES_GGUF_H

#include "frontend/files/file.h"
#include "ir/interp/tensor.h"

/* A kind of blocks. */
struct GgufGroups;
typedef struct {
	const char *name;  /* "Q4_K" */
	uint32_t id;       /* in files */
	uint16_t weights;  /* of a block */
	uint16_t bytes;    /* of a block in the file */
	uint16_t group;    /* weights with one scale */
	bool offsets;      /* groups have offsets */
	bool units;        /* blocks have units, in f16 */
	DType stored;      /* of scales and offsets */
	void (*unpack)(const uint8_t *block, int8_t *q, struct GgufGroups *);
} GgufBlocks;

/* What groups of a block have, as far as its kind has it. */
enum { GGUF_MOST_GROUPS = 16 };
typedef struct GgufGroups {
	float scale[GGUF_MOST_GROUPS], offset[GGUF_MOST_GROUPS];
	float scale_unit, offset_unit;
} GgufGroups;

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
	Tensor q;                       /* i8 [..., n * group] */
	Tensor scale, offset;           /* blocks->stored [..., n]; no data: the kind has none */
	Tensor scale_unit, offset_unit; /* f16 [..., blocks]; no data: 1 */
} GgufUnpacked;
/* Unpacks a tensor of blocks into the arena. */
GgufUnpacked gguf_unpack(Arena *, const GgufTensor *);

/* Returns the kind of that number, or NULL. */
const GgufBlocks *gguf_blocks(uint32_t id);

#endif
