/* .safetensors files: an index in JSON, then the tensors. */
#ifndef WEFT_FRONTEND_FILES_SAFETENSORS_H
#define WEFT_FRONTEND_FILES_SAFETENSORS_H

#include "frontend/files/file.h"
#include "ir/interp/tensor.h"

typedef struct {
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

/* Maps and checks a file. Tensors are in the private mapping, valid as long as the context, or in
 * the arena if the mapping is not aligned for their dtype. Returns false after errors. */
bool st_open(Ctx *, const char *path, StFile *);
bool st_open_bytes(Ctx *, const char *path, void *data, size_t size, StFile *);
const Tensor *st_find(const StFile *, const char *name); /* NULL when absent */
const char *st_meta(const StFile *, const char *key);    /* NULL when absent */

/* Writes a file, whole or not at all. Tensors are stored in the given order, without gaps. */
bool st_save(Ctx *, const char *path, const NamedTensor *, uint32_t n, const StMeta *,
	     uint32_t nmeta);

#endif
