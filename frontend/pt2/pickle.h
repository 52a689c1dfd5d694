/* Pickles as data: torch.save's are read into a tree in which a call is a record of what would be
 * called with what. Nothing is imported, called or executed. */
#ifndef WEFT_FRONTEND_PT2_PICKLE_H
#define WEFT_FRONTEND_PT2_PICKLE_H

#include "base/array.h"
#include "base/ctx.h"

typedef enum {
	PICKLE_NONE,
	PICKLE_BOOL,
	PICKLE_INT,
	PICKLE_FLOAT,
	PICKLE_TEXT,
	PICKLE_GLOBAL, /* text: "torch._utils _rebuild_tensor_v2" */
	PICKLE_TUPLE,
	PICKLE_LIST,
	PICKLE_DICT,       /* item: key, value, key, value, ... */
	PICKLE_CALL,       /* item: what is called, its arguments, then what its state is set
	                      from */
	PICKLE_PERSISTENT, /* item: what stands for something outside of the pickle */
	PICKLE_MARK        /* never in a result */
} PickleKind;

typedef struct PickleValue {
	PickleKind kind;
	int64_t i; /* BOOL, INT */
	double f;
	const char *text;
	ARRAY(struct PickleValue *) item; /* a container may hold itself */
} PickleValue;

/* The value of a pickle (protocols 0 to 5, the operations that tensors need). NULL after ctx_error;
 * `where` begins its message. Takes time and memory linear in size. */
const PickleValue *pickle_read(Ctx *, const char *where, const uint8_t *data, size_t size);
/* Item k; NULL where there is none. */
const PickleValue *pickle_item(const PickleValue *, uint32_t k);
/* What a dictionary has for a text, NULL when nothing. */
const PickleValue *pickle_get(const PickleValue *, const char *key);
bool pickle_is(const PickleValue *, PickleKind, const char *text);
/* The arguments of a call of this global, else NULL. */
const PickleValue *pickle_call_of(const PickleValue *, const char *global);

#endif
