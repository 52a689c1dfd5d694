/* The tables that describe a model (weft_model.h), made once from the C structures: as bytes with
 * pointers to fill in, in the layout of every 64-bit little-endian machine; and as objects with
 * named fields. Emitters of objects write the bytes, the C emitter prints the objects. */
#ifndef WEFT_CODEGEN_PRINT_MODEL_IMAGE_H
#define WEFT_CODEGEN_PRINT_MODEL_IMAGE_H

#include "base/intern.h"
#include "codegen/print/emit.h"

/* A pointer at byte `at`: to `symbol`; if that is NULL, to byte `to` of the image, where `text` is,
 * if it is a text. */
typedef struct {
	uint64_t at, to;
	const char *symbol, *text;
} ImagePointer;

typedef enum {
	IMAGE_U8,
	IMAGE_I32,
	IMAGE_U32,
	IMAGE_I64,
	IMAGE_U64,
	IMAGE_F64,
	IMAGE_DTYPE,
	IMAGE_POINTER
} ImageKind;

typedef struct {
	const char *name; /* NULL: the elements of the object are such values */
	ImageKind kind;
	size_t at;
} ImageField;

typedef struct {
	const char *c_type; /* "WeftDim" */
	uint32_t size, nfield;
	const ImageField *field;
} ImageType;

/* A structure, or an array of n. */
typedef struct {
	const ImageType *type;
	const char *name;
	uint64_t at;
	uint32_t n;
	bool array;
} ImageObject;

/* A number that depends on the layout of structures, and its C expression. */
typedef struct {
	uint64_t at;
	const char *c;
} ImageNumber;

typedef struct {
	Arena *arena;
	char *data; /* 16-byte aligned */
	uint64_t n, cap;
	ARRAY(ImagePointer) pointer; /* by ascending `at` when finished */
	ARRAY(ImageObject) object;   /* by ascending `at` */
	ARRAY(ImageNumber) number;
	Intern texts;                /* each text once: */
	ARRAY(uint64_t) text;        /* by id - 1: its offset */
	uint64_t model;              /* the offset of the WeftModel */
} ModelImage;

/* Sets *im to the image of the program's tables, in the arena of the Ir's context. features: those
 * that a processor must have, for the manifest ("avx2 fma"). Pointers to functions of entries have
 * the names of their loop functions as symbols. */
void model_image(ModelImage *im, const Program *, const Target *, const char *features,
		 const EmitOptions *);
/* Returns the pointer that is exactly at byte `at` of the image; NULL if there is none. */
const ImagePointer *image_pointer(const ModelImage *, uint64_t at);
/* Returns the object that begins exactly at byte `at` of the image; NULL if there is none. */
const ImageObject *image_object(const ModelImage *, uint64_t at);

#endif
