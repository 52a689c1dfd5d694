/* The tables that describe a model (weft_model.h): built once, from the C structures themselves, as
 * bytes with pointers to fill in, laid out as on every 64-bit little-endian machine, and as objects
 * whose fields have names. Emitters that make objects write the bytes, the C emitter prints the
 * objects. */
#ifndef WEFT_CODEGEN_PRINT_MODEL_IMAGE_H
#define WEFT_CODEGEN_PRINT_MODEL_IMAGE_H

#include "base/intern.h"
#include "codegen/print/emit.h"

/* The pointer at byte `at` is symbol, or when that is NULL the image's byte `to`: of the text,
 * where there is one. */
typedef struct {
	uint64_t at, to;
	const char *symbol, *text;
} ImagePointer;

typedef enum { IMAGE_U8, IMAGE_I32, IMAGE_U32, IMAGE_I64, IMAGE_U64, IMAGE_F64, IMAGE_DTYPE, IMAGE_POINTER } ImageKind;

typedef struct {
	const char *name; /* NULL: the object's elements are such a value */
	ImageKind kind;
	size_t at;
} ImageField;

typedef struct {
	const char *c_type; /* "WeftDim" */
	uint32_t size, nfield;
	const ImageField *field;
} ImageType;

/* One structure, or an array of them. */
typedef struct {
	const ImageType *type;
	const char *name;
	uint64_t at;
	uint32_t n;
	bool array;
} ImageObject;

/* A number that depends on the layout of structures: what it is in C. */
typedef struct {
	uint64_t at;
	const char *c;
} ImageNumber;

typedef struct {
	Arena *arena;
	char *data; /* 16-aligned */
	uint64_t n, cap;
	ARRAY(ImagePointer) pointer; /* by ascending `at` when finished */
	ARRAY(ImageObject) object;   /* by ascending `at` */
	ARRAY(ImageNumber) number;
	Intern texts;                /* each is there once: */
	ARRAY(uint64_t) text;        /* where, by id - 1 */
	uint64_t model;              /* where the WeftModel is */
} ModelImage;

/* features: what the processor must have. The functions of entries are named as their loop
 * functions are. */
void model_image(ModelImage *, const Program *, const Target *, const char *features, const EmitOptions *);
/* NULL: none there. */
const ImagePointer *image_pointer(const ModelImage *, uint64_t at);
const ImageObject *image_object(const ModelImage *, uint64_t at);

#endif
