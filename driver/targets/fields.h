/* Reads descriptions of targets and machines: the fields of a JSON object into a C struct. Errors
 * are recorded in the context and begin with the path. */
#ifndef WEFT_DRIVER_TARGETS_FIELDS_H
#define WEFT_DRIVER_TARGETS_FIELDS_H

#include "base/ctx.h"
#include "frontend/files/json.h"

typedef enum {
	FIELD_TEXT,   /* const char * */
	FIELD_NUMBER, /* uint32_t from lo to hi, an integer in the file */
	FIELD_REAL,   /* float from lo to hi, above 0 */
	FIELD_BOOL,   /* bool */
	FIELD_BIT,    /* true or false: the bits of the mask lo in a uint32_t */
	FIELD_REALS,  /* lo floats, all above 0 and at most hi */
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
	const Field *field; /* field[n]: all fields that an object may have, but "base" */
	size_t n;
	const char *help; /* the page that explains the fields */
} FieldReader;

/* Reads a JSON file whose root is an object, and protects it from being overwritten by an output
 * (out_spare). what: "a target", for messages. The caller frees it by json_release; ctx_free does
 * so, too. Returns NULL after an error. */
JsonDoc *fields_open(Ctx *, const char *path, const char *what);
/* Reads the fields that root (an object) has into the struct `to`; other fields of the struct stay.
 * "base" is skipped. Calls other(data, field, value) for FIELD_OTHER, which returns false after an
 * error; NULL if there are no such fields. Texts are copied into the arena. Returns false after an
 * error: an unknown field, or a wrong value; fields before it are set then. */
bool fields_read(const FieldReader *, json_t *root, void *to,
                 bool (*other)(void *data, const Field *, const json_t *), void *data);
/* Records an error: the field's value is not what is expected ("a number from 1 to 8"). Returns
 * false. */
bool field_refuse(const FieldReader *, const Field *, const char *expected);
/* Whether the name of a target or machine is the path of a description: it contains '/', or ends
 * with ".json". */
bool is_description_file(const char *name);

#endif
