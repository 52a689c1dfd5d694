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

/* Map and check a file. Tensors lie in the private mapping, which lives as long as the context, or,
 * where that is not aligned for their dtype, in the arena. False after ctx_error. */
bool st_open(Ctx *, const char *path, StFile *);
bool st_open_bytes(Ctx *, const char *path, void *data, size_t size, StFile *);
const Tensor *st_find(const StFile *, const char *name); /* NULL when absent */
const char *st_meta(const StFile *, const char *key);    /* NULL when absent */

/* Write whole or not at all. Tensors are stored in the order given, without gaps. */
bool st_save(Ctx *, const char *path, const NamedTensor *, uint32_t n, const StMeta *,
	     uint32_t nmeta);

#endif
