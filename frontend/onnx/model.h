/* The messages of ONNX models as structures, and what tensors in them hold. Names and the
 * structures lie in the arena; bytes lie in the mapped file. Texts that are absent are NULL. */
#ifndef WEFT_FRONTEND_ONNX_MODEL_H
#define WEFT_FRONTEND_ONNX_MODEL_H

#include "base/intern.h"
#include "frontend/files/file.h"
#include "frontend/onnx/wire.h"
#include "ir/interp/tensor.h"

typedef ARRAY(const char *) OnnxNames;

typedef struct {
	const char *key, *value;
} OnnxEntry;

typedef struct {
	const char *name;
	ARRAY(int64_t) dim;
	int64_t type; /* TensorProto.DataType */
	bool has_raw;
	WireBytes raw;
	WireList f32, i32, i64, f64, u64; /* runs of numbers */
	WireList text;
	ARRAY(OnnxEntry) external;
	int64_t location; /* 1: in another file, as `external` says */
} OnnxTensor;

typedef struct {
	OnnxTensor *values, *indices;
	ARRAY(int64_t) dim;
} OnnxSparse;

typedef struct OnnxGraph OnnxGraph;

typedef struct {
	const char *name;
	const char *refers; /* in a function: the attribute of the call that stands here */
	int64_t type;       /* AttributeProto.AttributeType; 0: not said */
	float f;
	int64_t i;
	WireBytes s;
	OnnxTensor *t;
	OnnxGraph *g;
	OnnxSparse *sparse;
	ARRAY(float) floats;
	ARRAY(int64_t) ints;
	WireList strings;
	bool has_f, has_i;
} OnnxAttr;

typedef struct {
	const char *name, *op, *domain, *overload, *doc;
	OnnxNames in, out; /* "": absent */
	ARRAY(OnnxAttr) attr;
	ARRAY(OnnxEntry) metadata;
} OnnxNode;

/* The values of a sequence, or the one of an optional. */
typedef struct OnnxHeld OnnxHeld;
struct OnnxHeld {
	ARRAY(OnnxTensor) tensor;
	ARRAY(OnnxHeld) sequence, optional;
};

typedef struct {
	int64_t value;
	bool has_value;
	const char *param;
} OnnxDim;

typedef struct {
	ARRAY(OnnxDim) dim;
} OnnxShape;

typedef struct {
	int64_t elem;
	OnnxShape *shape; /* NULL: the rank is unknown */
} OnnxTensorType;

typedef struct OnnxType OnnxType;

/* Of a sequence or an optional. */
typedef struct {
	OnnxType *elem;
} OnnxHolder;

struct OnnxType {
	OnnxTensorType *tensor, *sparse;
	OnnxHolder *sequence, *optional, *map; /* map: without a meaning here */
};

typedef struct {
	const char *name;
	OnnxType *type;
} OnnxInfo;

struct OnnxGraph {
	const char *name;
	ARRAY(OnnxNode) node;
	ARRAY(OnnxTensor) init;
	ARRAY(OnnxSparse) sparse_init;
	ARRAY(OnnxInfo) in, out, info;
};

typedef struct {
	const char *domain; /* NULL and "": ai.onnx */
	int64_t version;
} OnnxOpset;

typedef ARRAY(OnnxOpset) OnnxOpsets;

typedef struct {
	const char *name, *domain, *overload;
	OnnxNames in, out, attr;
	ARRAY(OnnxAttr) attr_default;
	ARRAY(OnnxNode) node;
	OnnxOpsets opset;
} OnnxFunction;

typedef struct {
	int64_t ir_version;
	OnnxOpsets opset;
	OnnxGraph *graph;
	ARRAY(OnnxFunction) function;
} OnnxModel;

/* Reads a model. Returns NULL after an error, also if it has no graph. */
OnnxModel *onnx_model_read(Ctx *, const void *data, size_t size);
/* Reads a file of ONNX's test data: a TensorProto; a SequenceProto or an OptionalProto. Each
 * returns false after an error. */
bool onnx_tensor_read(Ctx *, const void *data, size_t size, OnnxTensor *out);
bool onnx_held_read(Ctx *, const void *data, size_t size, OnnxHeld *out);

/* Numbers of TensorProto.DataType that the importer names. */
enum {
	ONNX_UINT4 = 21, ONNX_INT4, ONNX_FLOAT4E2M1, ONNX_FLOAT8E8M0, ONNX_UINT2, ONNX_INT2
};

/* Returns the dtype in which values of a TensorProto.DataType are kept: INT4, INT2 in i8, UINT4,
 * UINT2 in u8, FLOAT4E2M1 in f8e4m3, FLOAT8E8M0 in bf16. Returns DT_none, without a message, for
 * strings and numbers that are no type. */
DType onnx_dtype(int64_t type);
/* Returns the name of a TensorProto.DataType for messages: "STRING"; "type 99". In the arena. */
const char *onnx_dtype_name(Ctx *, int64_t type);

/* The folder of a model, "" for the current one, and the files of external data in it, each mapped
 * once, however many tensors lie in it. Protocol buffers end at 2 GB, so larger models have such
 * files; the reader itself has no limit. */
typedef struct {
	const char *path;
	Intern name;
	ARRAY(FileMap) file; /* by id in `name`, from 1 on */
	uint64_t dense;      /* bytes that sparse tensors took so far */
} OnnxFolder;

/* Gives the contents of a tensor, *out, which lie in the file where they have the dtype's layout
 * and alignment there, else in the arena. folder: where files of external data are; NULL:
 * external data is an error. what: "initializer w", for messages. Sizes are checked against the
 * bytes that are there before memory is allocated. Returns false after an error. */
bool onnx_tensor(Ctx *, const OnnxTensor *, OnnxFolder *, const char *what, Tensor *out);
/* Computes the dense tensor that a sparse one is, as onnx_tensor does for a dense one. */
bool onnx_sparse(Ctx *, const OnnxSparse *, OnnxFolder *, const char *what, Tensor *out);

#endif
