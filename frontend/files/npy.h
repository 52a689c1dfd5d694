/* NumPy's .npy and .npz files. Errors are recorded in the context and begin with the path. Tensors
 * are row-major, in the context's arena. */
#ifndef WEFT_FRONTEND_FILES_NPY_H
#define WEFT_FRONTEND_FILES_NPY_H

#include "frontend/files/safetensors.h"

/* Reads a .npy file: one array of little-endian numbers or bool, in C or Fortran order; the Tensor
 * is row-major. Returns false after an error. */
bool npy_open(Ctx *, const char *path, Tensor *);
/* Reads the contents of a .npy file from memory. The tensor is a copy. where: for messages. Returns
 * false after an error. */
bool npy_parse(Ctx *, const char *where, const uint8_t *data, size_t size, Tensor *);
/* Writes a .npy file, whole or not at all (out_file.h). Returns false after an error; bf16 and f8,
 * which NumPy does not have, are errors. */
bool npy_save(Ctx *, const char *path, const Tensor *);

/* Reads all arrays of a .npz file, ordered by name_compare (file.h), without metadata. A name is
 * the member's without ".npy"; other members are ignored. Returns false after an error. */
bool npz_open(Ctx *, const char *path, StFile *);
/* Writes n > 0 arrays of different names as a .npz file, whole or not at all (out_file.h). Returns
 * false after an error; dtypes that NumPy does not have are errors, as for npy_save. */
bool npz_save(Ctx *, const char *path, const NamedTensor *, uint32_t n);

#endif
