/* The tables of fields of ONNX's messages (onnx.proto of version 1.23). */
#include "frontend/onnx/model.h"

#include <stddef.h>

#define FIELD(number, kind, repeated, type, member)                                                \
	{                                                                                          \
		number, kind, repeated, offsetof(type, member), 0, NULL                            \
	}
#define FIELD_IF(number, kind, type, member, has)                                                  \
	{                                                                                          \
		number, kind, false, offsetof(type, member), offsetof(type, has), NULL             \
	}
#define SUB(number, repeated, type, member, message)                                               \
	{                                                                                          \
		number, WIRE_MESSAGE, repeated, offsetof(type, member), 0, &message                \
	}
#define MESSAGE(name, type, fields) {name, sizeof(type), sizeof(fields) / sizeof *(fields), fields}

static const WireField entry_fields[] = {
	FIELD(1, WIRE_TEXT, false, OnnxEntry, key),
	FIELD(2, WIRE_TEXT, false, OnnxEntry, value),
};
static const WireMessage entry_message = MESSAGE("StringStringEntryProto", OnnxEntry, entry_fields);

static const WireField tensor_fields[] = {
	FIELD(1, WIRE_INT, true, OnnxTensor, dim),
	FIELD(2, WIRE_INT, false, OnnxTensor, type),
	FIELD(4, WIRE_PACKED, true, OnnxTensor, f32),
	FIELD(5, WIRE_PACKED, true, OnnxTensor, i32),
	FIELD(6, WIRE_BYTES, true, OnnxTensor, text),
	FIELD(7, WIRE_PACKED, true, OnnxTensor, i64),
	FIELD(8, WIRE_TEXT, false, OnnxTensor, name),
	FIELD_IF(9, WIRE_BYTES, OnnxTensor, raw, has_raw),
	FIELD(10, WIRE_PACKED, true, OnnxTensor, f64),
	FIELD(11, WIRE_PACKED, true, OnnxTensor, u64),
	SUB(13, true, OnnxTensor, external, entry_message),
	FIELD(14, WIRE_INT, false, OnnxTensor, location),
};
static const WireMessage tensor_message = MESSAGE("TensorProto", OnnxTensor, tensor_fields);

static const WireField sparse_fields[] = {
	SUB(1, false, OnnxSparse, values, tensor_message),
	SUB(2, false, OnnxSparse, indices, tensor_message),
	FIELD(3, WIRE_INT, true, OnnxSparse, dim),
};
static const WireMessage sparse_message = MESSAGE("SparseTensorProto", OnnxSparse, sparse_fields);

/* Both messages have these fields; of an optional one of them is there. */
static const WireMessage held_message;
static const WireField held_fields[] = {
	SUB(3, true, OnnxHeld, tensor, tensor_message),
	SUB(5, true, OnnxHeld, sequence, held_message),
	SUB(7, true, OnnxHeld, optional, held_message),
};
static const WireMessage held_message =
	MESSAGE("SequenceProto or OptionalProto", OnnxHeld, held_fields);

static const WireMessage graph_message;

static const WireField attr_fields[] = {
	FIELD(1, WIRE_TEXT, false, OnnxAttr, name),
	FIELD_IF(2, WIRE_FLOAT, OnnxAttr, f, has_f),
	FIELD_IF(3, WIRE_INT, OnnxAttr, i, has_i),
	FIELD(4, WIRE_BYTES, false, OnnxAttr, s),
	SUB(5, false, OnnxAttr, t, tensor_message),
	SUB(6, false, OnnxAttr, g, graph_message),
	FIELD(7, WIRE_FLOAT, true, OnnxAttr, floats),
	FIELD(8, WIRE_INT, true, OnnxAttr, ints),
	FIELD(9, WIRE_BYTES, true, OnnxAttr, strings),
	FIELD(20, WIRE_INT, false, OnnxAttr, type),
	FIELD(21, WIRE_TEXT, false, OnnxAttr, refers),
	SUB(22, false, OnnxAttr, sparse, sparse_message),
};
static const WireMessage attr_message = MESSAGE("AttributeProto", OnnxAttr, attr_fields);

static const WireField node_fields[] = {
	FIELD(1, WIRE_TEXT, true, OnnxNode, in),
	FIELD(2, WIRE_TEXT, true, OnnxNode, out),
	FIELD(3, WIRE_TEXT, false, OnnxNode, name),
	FIELD(4, WIRE_TEXT, false, OnnxNode, op),
	SUB(5, true, OnnxNode, attr, attr_message),
	FIELD(6, WIRE_TEXT, false, OnnxNode, doc),
	FIELD(7, WIRE_TEXT, false, OnnxNode, domain),
	FIELD(8, WIRE_TEXT, false, OnnxNode, overload),
	SUB(9, true, OnnxNode, metadata, entry_message),
};
static const WireMessage node_message = MESSAGE("NodeProto", OnnxNode, node_fields);

static const WireField dim_fields[] = {
	FIELD_IF(1, WIRE_INT, OnnxDim, value, has_value),
	FIELD(2, WIRE_TEXT, false, OnnxDim, param),
};
static const WireMessage dim_message = MESSAGE("TensorShapeProto.Dimension", OnnxDim, dim_fields);

static const WireField shape_fields[] = {
	SUB(1, true, OnnxShape, dim, dim_message),
};
static const WireMessage shape_message = MESSAGE("TensorShapeProto", OnnxShape, shape_fields);

static const WireField tensor_type_fields[] = {
	FIELD(1, WIRE_INT, false, OnnxTensorType, elem),
	SUB(2, false, OnnxTensorType, shape, shape_message),
};
static const WireMessage tensor_type_message =
	MESSAGE("TypeProto.Tensor", OnnxTensorType, tensor_type_fields);

static const WireMessage type_message;

static const WireField holder_fields[] = {
	SUB(1, false, OnnxHolder, elem, type_message),
};
static const WireMessage holder_message = MESSAGE("TypeProto.Sequence", OnnxHolder, holder_fields);
static const WireMessage map_message = {"TypeProto.Map", sizeof(OnnxHolder), 0, NULL};

static const WireField type_fields[] = {
	SUB(1, false, OnnxType, tensor, tensor_type_message),
	SUB(4, false, OnnxType, sequence, holder_message),
	SUB(5, false, OnnxType, map, map_message),
	SUB(8, false, OnnxType, sparse, tensor_type_message),
	SUB(9, false, OnnxType, optional, holder_message),
};
static const WireMessage type_message = MESSAGE("TypeProto", OnnxType, type_fields);

static const WireField info_fields[] = {
	FIELD(1, WIRE_TEXT, false, OnnxInfo, name),
	SUB(2, false, OnnxInfo, type, type_message),
};
static const WireMessage info_message = MESSAGE("ValueInfoProto", OnnxInfo, info_fields);

static const WireField graph_fields[] = {
	SUB(1, true, OnnxGraph, node, node_message),
	FIELD(2, WIRE_TEXT, false, OnnxGraph, name),
	SUB(5, true, OnnxGraph, init, tensor_message),
	SUB(11, true, OnnxGraph, in, info_message),
	SUB(12, true, OnnxGraph, out, info_message),
	SUB(13, true, OnnxGraph, info, info_message),
	SUB(15, true, OnnxGraph, sparse_init, sparse_message),
};
static const WireMessage graph_message = MESSAGE("GraphProto", OnnxGraph, graph_fields);

static const WireField opset_fields[] = {
	FIELD(1, WIRE_TEXT, false, OnnxOpset, domain),
	FIELD(2, WIRE_INT, false, OnnxOpset, version),
};
static const WireMessage opset_message = MESSAGE("OperatorSetIdProto", OnnxOpset, opset_fields);

static const WireField function_fields[] = {
	FIELD(1, WIRE_TEXT, false, OnnxFunction, name),
	FIELD(4, WIRE_TEXT, true, OnnxFunction, in),
	FIELD(5, WIRE_TEXT, true, OnnxFunction, out),
	FIELD(6, WIRE_TEXT, true, OnnxFunction, attr),
	SUB(7, true, OnnxFunction, node, node_message),
	SUB(9, true, OnnxFunction, opset, opset_message),
	FIELD(10, WIRE_TEXT, false, OnnxFunction, domain),
	SUB(11, true, OnnxFunction, attr_default, attr_message),
	FIELD(13, WIRE_TEXT, false, OnnxFunction, overload),
};
static const WireMessage function_message = MESSAGE("FunctionProto", OnnxFunction, function_fields);

static const WireField model_fields[] = {
	FIELD(1, WIRE_INT, false, OnnxModel, ir_version),
	SUB(7, false, OnnxModel, graph, graph_message),
	SUB(8, true, OnnxModel, opset, opset_message),
	SUB(25, true, OnnxModel, function, function_message),
};
static const WireMessage model_message = MESSAGE("ModelProto", OnnxModel, model_fields);

OnnxModel *onnx_model_read(Ctx *ctx, const void *data, size_t size)
{
	OnnxModel *m = ARENA_NEW(ctx->arena, OnnxModel);
	const WireBytes file = {data, size};
	if (!wire_read(ctx, file, file, &model_message, m))
		return NULL;
	if (!m->graph) {
		ctx_error(ctx, NULL, "the model has no graph: expected a file of ONNX");
		ctx_kind(ctx, REFUSAL_FILE);
		return NULL;
	}
	return m;
}

bool onnx_tensor_read(Ctx *ctx, const void *data, size_t size, OnnxTensor *out)
{
	const WireBytes file = {data, size};
	return wire_read(ctx, file, file, &tensor_message, out);
}

bool onnx_held_read(Ctx *ctx, const void *data, size_t size, OnnxHeld *out)
{
	const WireBytes file = {data, size};
	return wire_read(ctx, file, file, &held_message, out);
}
