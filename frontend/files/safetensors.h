/* .safetensors files: an index in JSON, then the tensors. Errors are recorded in the context and
 * begin with the path. */
#ifndef WEFT_FRONTEND_FILES_SAFETENSORS_H
#define WEFT_FRONTEND_FILES_SAFETENSORS_H

#include "frontend/files/file.h"
#include "ir/interp/tensor.h"

typedef struct NamedTensor {
	const char *name;
	Tensor tensor;
} NamedTensor;

typedef struct {
	const char *key, *value;
} StMeta;

typedef struct {
	uint32_t n, nmeta;
	NamedTensor *tensor; /* ordered by name_compare: x.2 before x.10 */
	StMeta *meta;        /* in the order of the file */
} StFile;

/* Whether the bytes begin as a .safetensors file does, and are no fewer than its index says. */
bool is_safetensors(const void *data, size_t size);
/* Maps a file and checks it. A tensor lies in the mapping, or in the arena if it is not aligned
 * for its dtype there; both are valid as long as the context, and writes do not reach the file.
 * Returns false after an error. */
bool st_open(Ctx *, const char *path, StFile *);
/* Checks the contents of a file in memory, to which tensors that are aligned refer: they must stay
 * as long as the context. path: for messages. Returns false after an error. */
bool st_open_bytes(Ctx *, const char *path, void *data, size_t size, StFile *);
/* Returns the tensor of that name, or NULL, without an error, if there is none. */
const Tensor *st_find(const StFile *, const char *name);
/* Returns the value of that key in the metadata, or NULL, without an error, if there is none. */
const char *st_meta(const StFile *, const char *key);

/* Writes a file, whole or not at all (out_file.h), with n tensors in the given order, without gaps,
 * and nmeta pairs of metadata. The names must differ, which is not checked. Returns false after an
 * error; a dtype that the format lacks (c128) is one. */
bool st_save(Ctx *, const char *path, const NamedTensor *, uint32_t n, const StMeta *,
	     uint32_t nmeta);

#endif
