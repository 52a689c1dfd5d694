/* NumPy's .npy and .npz files. */
#ifndef WEFT_FRONTEND_FILES_NPY_H
#define WEFT_FRONTEND_FILES_NPY_H

#include "frontend/files/safetensors.h"

/* One array. Little-endian numbers and bool; Fortran order is transposed. False after ctx_error. */
bool npy_open(Ctx *, const char *path, Tensor *);
bool npy_parse(Ctx *, const char *where, const uint8_t *data, size_t size, Tensor *);
/* bf16 and f8, which NumPy lacks, are refused. */
bool npy_save(Ctx *, const char *path, const Tensor *);

/* All arrays of an archive, ordered by name_compare; names without ".npy". */
bool npz_open(Ctx *, const char *path, StFile *);
bool npz_save(Ctx *, const char *path, const NamedTensor *, uint32_t n);

#endif
