/* Reads descriptions of targets and machines: the fields of a JSON object into a C struct. */
#ifndef WEFT_DRIVER_TARGETS_FIELDS_H
#define WEFT_DRIVER_TARGETS_FIELDS_H

#include "base/ctx.h"
#include "frontend/files/json.h"

typedef enum {
	FIELD_TEXT,   /* const char * */
	FIELD_NUMBER, /* uint32_t from lo to hi */
	FIELD_REAL,   /* float from lo to hi, not 0 */
	FIELD_BOOL,   /* bool */
	FIELD_BIT,    /* true or false: bit lo of a uint32_t */
	FIELD_REALS,  /* lo floats, all above 0 */
	FIELD_OTHER   /* read by the caller */
} FieldKind;

typedef struct {
	const char *name;
	FieldKind kind;
	size_t at; /* offset in the struct */
	uint32_t lo, hi;
} Field;

typedef struct {
	Ctx *ctx;
	const char *path;
	const Field *field;
	size_t n;
	const char *help; /* the page that explains the fields */
} FieldReader;

/* Opens a file whose root is an object; `what`: "a target". Free it by json_release. Returns NULL
 * after errors. */
JsonDoc *fields_open(Ctx *, const char *path, const char *what);
/* Reads all fields of root into the struct `to`; passes FIELD_OTHER to `other`. Returns false after
 * errors. */
bool fields_read(const FieldReader *, json_t *root, void *to,
                 bool (*other)(void *data, const Field *, const json_t *), void *data);
bool field_refuse(const FieldReader *, const Field *, const char *expected);
/* Whether a name is a path: it contains '/' or ends with ".json". */
bool is_description_file(const char *name);

#endif
