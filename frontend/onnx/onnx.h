/* Import of ONNX models (.onnx). Nodes become calls of the operators in ops/onnx, which expand
 * into those that all models are made of. Sizes that a model computes with tensors (Shape, Gather,
 * Concat, ...) become symbolic sizes. */
#ifndef WEFT_FRONTEND_ONNX_ONNX_H
#define WEFT_FRONTEND_ONNX_ONNX_H

#include "frontend/files/safetensors.h"
#include "ir/graph/graph.h"

typedef struct {
	/* Values of inputs, named x.0, x.1, ... in the order of the model's inputs: they are needed
	 * where an input decides what cannot be a size that depends on data, such as axes. The
	 * graph then checks at each call that the input has this value. Others are not read.
	 *
	 * Tensors of a sequence are named x.<i>.0, x.<i>.1, ...: how many there are, and whether an
	 * optional holds a value, is decided by them, so they are needed. */
	const NamedTensor *value;
	uint32_t nvalue;
} OnnxOptions;

/* Reads a model from the contents of its file, which must stay as long as the context, because
 * constants refer to them. path: for messages, and the folder for files of external data. options
 * may be NULL. Inputs and outputs are the model's, in its order, each tensor of a sequence by
 * itself as NAME.0, NAME.1, ...; initializers are constants, also where the model lists them among
 * its inputs, and those of float dtypes with dimensions are parameters. Returns NULL after
 * errors. */
Graph *onnx_load_bytes(Ir *, const char *path, const void *data, size_t size, const OnnxOptions *);

/* Reads a folder of ONNX's test data, which lies beside model.onnx: input_<i>.pb becomes x.<i>,
 * output_<i>.pb becomes y.<i>; tensors of a sequence x.<i>.0, x.<i>.1, ...; an optional that holds
 * nothing has no tensor. Without a model all files are of tensors. Metadata: `allow.<k>`, what
 * ONNX's tests allow of float outputs (tools/compare.h), and `lists` if there are sequences or
 * optionals. Returns false after an error. */
bool onnx_open_data(Ctx *, const char *folder, StFile *);

#endif
