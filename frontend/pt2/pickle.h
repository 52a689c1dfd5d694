/* Pickles as data: reads pickles of torch.save into a tree. A call is a record of the function's
 * name and its arguments; nothing is imported, called or executed. */
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
	PICKLE_DICT,       /* item: key, value, key, value, ...; also collections.OrderedDict */
	PICKLE_CALL,       /* item: the function, its arguments, then the values that set its
	                      state */
	PICKLE_PERSISTENT, /* item: the reference to something outside of the pickle */
	PICKLE_MARK        /* never in a result */
} PickleKind;

typedef struct PickleValue {
	PickleKind kind;
	int64_t i; /* BOOL, INT */
	double f;
	const char *text;
	ARRAY(struct PickleValue *) item; /* a container may hold itself */
} PickleValue;

/* Reads a pickle (protocols 0 to 5, the operations that tensors need). The tree is in the arena.
 * Takes time and memory linear in size. Returns NULL after an error, which begins with `where`. */
const PickleValue *pickle_read(Ctx *, const char *where, const uint8_t *data, size_t size);
/* Returns item k of the value; NULL if there is none, or the value is NULL. */
const PickleValue *pickle_item(const PickleValue *, uint32_t k);
/* Returns the value of a text key in a dictionary, the last one if the key occurs twice; NULL if
 * there is none, or the PickleValue is NULL or no dictionary. */
const PickleValue *pickle_get(const PickleValue *, const char *key);
/* Whether the value is not NULL, of the kind and, if text is not NULL, has that text; the kind must
 * then be one with a text. */
bool pickle_is(const PickleValue *, PickleKind, const char *text);
/* Returns the tuple of arguments if the value is a call of this global, "torch._utils
 * _rebuild_tensor_v2"; else NULL. The value may be NULL. */
const PickleValue *pickle_call_of(const PickleValue *, const char *global);

#endif
