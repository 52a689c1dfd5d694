/* What this module needs of DLPack 1.3: https://dmlc.github.io/dlpack. A DLTensor is a
 * WeftTensor. */
#ifndef WEFT_PYTHON_DLPACK_H
#define WEFT_PYTHON_DLPACK_H

#include "weft_model.h"

typedef struct {
	uint32_t major, minor;
} DLVersion;

typedef struct DLManaged {
	WeftTensor tensor;
	void *context;
	void (*deleter)(struct DLManaged *);
} DLManaged;

typedef struct DLVersioned {
	DLVersion version;
	void *context;
	void (*deleter)(struct DLVersioned *);
	uint64_t flags; /* DL_READ_ONLY */
	WeftTensor tensor;
} DLVersioned;

enum { DL_READ_ONLY = 1 };

/* The functions of a class that has __dlpack_c_exchange_api__. They return 0, or -1 with a Python
 * exception set (allocate: after a call of set_error). */
typedef struct DLExchange {
	DLVersion version;
	const struct DLExchange *older;
	int (*allocate)(WeftTensor *prototype, DLVersioned **out, void *error,
			void (*set_error)(void *error, const char *kind, const char *message));
	int (*from_object)(void *object, DLVersioned **out);
	int (*to_object)(DLVersioned *, void **object);
	int (*view_object)(void *object, WeftTensor *out); /* may be NULL */
	int (*stream)(int32_t device_type, int32_t device, void **out);
} DLExchange;

#endif
