/* Private to the runtime: instances, and questions about tensors. */
#ifndef WEFT_RUNTIME_INSTANCE_PRIV_H
#define WEFT_RUNTIME_INSTANCE_PRIV_H

#include "region_priv.h"

#define TRY(x)                                                                                     \
	do {                                                                                       \
		int try_code = (x);                                                                \
		if (try_code != WEFT_OK)                                                           \
			return try_code;                                                           \
	} while (0)

struct WeftInstance {
	const WeftModel *model;
	const void *weights;
	void *map; /* of the weight file, or NULL */
	size_t map_bytes;
	void *replaced; /* weights built by set_weights, or NULL */
	void *state;
	int32_t ncpu;
};

static inline size_t dtype_bytes(WeftDType t)
{
	return ((size_t)t.bits * t.lanes + 7) / 8;
}

static inline int tensor_row_major(const WeftTensor *t)
{
	int64_t stride = 1;
	if (!t->strides)
		return 1;
	for (int32_t k = t->ndim; k-- > 0; stride *= t->shape[k])
		if (t->shape[k] != 1 && t->strides[k] != stride)
			return t->shape[k] == 0;
	return 1;
}

#endif
