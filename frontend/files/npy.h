/* NumPy's .npy and .npz files. */
#ifndef WEFT_FRONTEND_FILES_NPY_H
#define WEFT_FRONTEND_FILES_NPY_H

#include "frontend/files/safetensors.h"

/* Reads one array: little-endian numbers and bool; Fortran order is transposed. Returns false after
 * errors. */
bool npy_open(Ctx *, const char *path, Tensor *);
bool npy_parse(Ctx *, const char *where, const uint8_t *data, size_t size, Tensor *);
/* Writes one array. bf16 and f8, which NumPy does not have, are errors. */
bool npy_save(Ctx *, const char *path, const Tensor *);

/* Read and write all arrays of an archive, ordered by name_compare; names have no ".npy". */
bool npz_open(Ctx *, const char *path, StFile *);
bool npz_save(Ctx *, const char *path, const NamedTensor *, uint32_t n);

#endif
