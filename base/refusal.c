#include "base/refusal.h"

#include <stddef.h>

static const RefusalInfo all[NREFUSAL] = {
	[REFUSAL_OPERATOR] =
		{"W0001", "an operator that Weft does not have",
		 "The model contains operators that Weft does not have. The message names each of "
		 "them,\n"
		 "with the first node that uses it.\n"
		 "- `weft ops PART` lists the operators of Weft whose names contain PART.\n"
		 "- Export the model with `.run_decompositions()`: PyTorch then replaces many "
		 "operators by\n"
		 "  simpler ones.\n"
		 "- If the operator is your own, pass the library that contains it: --ops LIBRARY\n"
		 "  (docs/user-operators.md).\n"
		 "- In a graph text or a trace, the name may be misspelt. A full name has a "
		 "namespace and\n"
		 "  an overload, as in aten.add.Tensor."},
	[REFUSAL_DTYPE] = {"W0002", "a dtype that is not supported",
			   "A tensor of the model has a dtype that Weft does not support, such as "
			   "strings, or\n"
			   "integers of 2 or 4 bits that are not quantised weights. Convert the "
			   "tensor before the\n"
			   "model is exported. Weft supports f64, f32, f16, bf16, f8, integers of "
			   "8 to 64 bits, bool\n"
			   "and complex numbers."},
	[REFUSAL_FILE] = {"W0003", "a file that is damaged",
			  "The file is incomplete or was changed, or its contents are not what the "
			  "end of its name\n"
			  "says. The message says where reading stopped. Copy the file again, or "
			  "export the model\n"
			  "again, and compare sizes or checksums. If the file is a pointer of Git "
			  "LFS, that is, a\n"
			  "short text in place of the real file, run `git lfs pull`."},
	[REFUSAL_GUARD] = {"W0004", "a condition on the inputs that cannot be checked",
			   "The exported model computes correct results only under a condition "
			   "that Weft cannot\n"
			   "check. The message quotes this condition.\n"
			   "- If all your inputs satisfy it, pass --ignore-guard 'TEXT' with the "
			   "quoted text. Other\n"
			   "  inputs then give wrong results without an error.\n"
			   "- If not, change the model: use torch.cond in place of a branch on "
			   "sizes, or export it\n"
			   "  with fixed sizes."},
	[REFUSAL_TYPES] = {"W0005", "operands that do not fit an operator",
			   "An operator cannot compute with operands of these dtypes or shapes. "
			   "The message names\n"
			   "the node, and what does not fit.\n"
			   "- If you wrote or traced the graph: `weft show --graph` prints the "
			   "types of all values.\n"
			   "- If an exporter wrote the file, the fault is the exporter's or "
			   "Weft's: please report\n"
			   "  it."},
	[REFUSAL_DATA_SIZE] = {"W0006", "a number that depends on data where a constant is needed",
			       "The size of a result may depend on data, as with nonzero, masks "
			       "and item(). An axis, a\n"
			       "number of parts or the size of a window may not depend on data. "
			       "Compute such a number\n"
			       "from the shapes of inputs, or make it a constant before the "
			       "export. In an ONNX model the\n"
			       "number may come from an input of the model: pass a file with the "
			       "value of this input by\n"
			       "--values FILE."},
	[REFUSAL_TARGET] =
		{"W0007", "a target that is not there",
		 "`weft show --targets` lists the targets, and says which of them run on this "
		 "machine.\n"
		 "--target can also name\n"
		 "- a target with added features: x86-64-v4+bf16,\n"
		 "- several levels of x86-64, for one file: x86-64-v2,v3,v4,\n"
		 "- a file of your own that describes a target: its name ends with .json.\n"
		 "docs/targets.md describes these. --tune names one of the machines that the "
		 "message\n"
		 "lists, or a .json file."},
	[REFUSAL_INPUT] =
		{"W0008", "an input that the model does not take",
		 "The inputs of a call do not fit the model. One of these is the reason:\n"
		 "- A tensor does not have the dtype, rank or sizes that the model expects.\n"
		 "- The sizes of the inputs violate a condition of the model (a guard).\n"
		 "- The file of inputs lacks an input, or contains a tensor that is not an input.\n"
		 "`weft show MODEL` lists the inputs, the symbols with their ranges, and the "
		 "guards. In a\n"
		 "file of inputs, the tensors are called x.0, x.1, ... or have the names of the "
		 "inputs. A\n"
		 "size may change between calls only if the export says so: in dynamic_shapes of\n"
		 "torch.export, or in dynamic_axes of an ONNX export."},
	[REFUSAL_CHECK] = {"W0009", "a check inside of the model has failed",
			   "A check in the model has ended the call: an index is out of range, an "
			   "assertion is\n"
			   "false, a size is negative, or a user operator has reported an error. "
			   "The message names\n"
			   "the node and the value. The state is as it was before the call. Other "
			   "calls are not\n"
			   "affected."},
	[REFUSAL_PATH] = {"W0010", "a file that cannot be opened or written",
			  "The operating system cannot open or write the file. The message states "
			  "the reason after\n"
			  "the name of the file: the file does not exist, it is a folder, you have "
			  "no permission,\n"
			  "or the disk is full. Weft writes an output file whole or not at all. If "
			  "there was such a\n"
			  "file before, it is unchanged."},
	[REFUSAL_MACHINE] =
		{"W0011", "compiled code for another machine",
		 "A compiled model runs only on processors of its target. `weft doctor` says what "
		 "this\n"
		 "machine is, and `weft show --targets` which targets run on it.\n"
		 "- To compile for this machine, do not pass --target.\n"
		 "- To get one file for several levels of x86-64: --target x86-64-v2,v3,v4.\n"
		 "- To check a model of another machine from here: weft check --runner COMMAND."},
	[REFUSAL_TOOL] = {"W0012", "a program or library that is missing or fails",
			  "Weft calls other programs and libraries: a C compiler (--backend c), a "
			  "linker, LLVM\n"
			  "(weft_llvm.so), NVIDIA's driver, or Python (--against). One of them is "
			  "missing, or ended\n"
			  "with an error, which the message quotes. `weft doctor` lists what was "
			  "found, and the\n"
			  "commands that install the rest."},
	[REFUSAL_DERIVATIVE] =
		{"W0013", "a derivative that is not there",
		 "An operator has no derivative by the operand that the message names, as in "
		 "PyTorch, or\n"
		 "this operand has a dtype without derivatives (integers, bool).\n"
		 "- Compute gradients by other inputs only: weft compile --grad=NAME,..., or weft "
		 "run\n"
		 "  --wrt NAME,...\n"
		 "- If no gradient is needed there, call detach() in the model on this operand."},
	[REFUSAL_VERSION] =
		{"W0014", "a file of a version that is not read",
		 "The file was written by a version of PyTorch, ONNX or Weft that is too old or "
		 "too new\n"
		 "for this version of Weft. The message names both versions. Export the model "
		 "again, with\n"
		 "PyTorch 2.5 to 2.15, or with an opset up to 28. If the file is a compiled model, "
		 "compile\n"
		 "it again from its model file (CHANGELOG.md says which versions go together)."},
	[REFUSAL_FORM] = {"W0015", "a part of the model that is not read",
			  "The file is complete, but a part of the model has a form that Weft does "
			  "not read: an\n"
			  "argument of another kind; a list, tuple or class where a tensor is "
			  "expected; or sizes or\n"
			  "control flow in a form that the message describes. In a file written by "
			  "hand, it may\n"
			  "also be that two parts contradict each other. The message names the "
			  "node, and its line\n"
			  "in your source if the file contains that.\n"
			  "- Export with `.run_decompositions()`, or with the other value of "
			  "`strict`: PyTorch then\n"
			  "  writes many parts in another form.\n"
			  "- Make all inputs and results of the model tensors, or write the line "
			  "that the message\n"
			  "  names in another way.\n"
			  "- If an exporter wrote the file and PyTorch runs it, Weft should read "
			  "it: please report\n"
			  "  it."},
};

const RefusalInfo *refusal_info(unsigned kind)
{
	return kind > REFUSAL_NONE && kind < NREFUSAL ? &all[kind] : NULL;
}
