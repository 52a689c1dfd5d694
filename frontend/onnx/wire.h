/* The wire format of protocol buffers, read by tables of fields. What a message says of its bytes
 * (names, tensors) stays where it lies, in the mapped file: only structures of the tables and texts
 * are copied.
 *
 * A message is a C structure, described by a WireMessage. A field that is absent leaves its member
 * as zeros; a number that no table has is skipped, as the format asks. Of a field that is not
 * repeated the last value counts; messages are merged. */
#ifndef WEFT_FRONTEND_ONNX_WIRE_H
#define WEFT_FRONTEND_ONNX_WIRE_H

#include "base/array.h"
#include "base/ctx.h"

/* Bytes of the file. p is not NULL if the field is there. */
typedef struct {
	const uint8_t *p;
	size_t n;
} WireBytes;

typedef ARRAY(WireBytes) WireList;

/* How a field is stored, and the member that holds it; in brackets the member of a repeated
 * field. */
typedef enum {
	WIRE_INT,    /* int64_t (ARRAY(int64_t)): any integer type of varints but sint */
	WIRE_FLOAT,  /* float (ARRAY(float)) */
	WIRE_TEXT,   /* const char *, a copy in the arena; a NUL inside is an error
	                (ARRAY(const char *)) */
	WIRE_BYTES,  /* WireBytes (WireList) */
	WIRE_PACKED, /* only repeated: WireList of runs of numbers, each as it lies in the file */
	WIRE_MESSAGE /* a pointer to the structure (ARRAY of the structure) */
} WireKind;

typedef struct WireMessage WireMessage;

typedef struct {
	uint32_t number;
	WireKind kind;
	bool repeated;
	size_t at;                   /* offset of the member */
	size_t present;              /* offset of a bool that is set if the field is there; 0:
	                                none */
	const WireMessage *message;  /* of WIRE_MESSAGE */
} WireField;

struct WireMessage {
	const char *name; /* for messages: "TensorProto" */
	size_t size;      /* of the structure */
	uint32_t n;
	const WireField *field;
};

enum { WIRE_DEPTH = 96 }; /* messages in messages; a subgraph takes three */

/* Reads a message into *out, which holds zeros. Returns false after an error, which names the
 * message and the offset in `file`, the bytes of the whole file, of which `bytes` is a part: a
 * length beyond the end, a varint of more than 10 bytes, a field of another wire type, more than
 * WIRE_DEPTH messages in each other. */
bool wire_read(Ctx *, WireBytes file, WireBytes bytes, const WireMessage *, void *out);

/* Reads one number of a run of varints and moves *run behind it. Returns false, without a message,
 * at the end and where the run is malformed. */
bool wire_varint(WireBytes *run, uint64_t *out);

#endif
