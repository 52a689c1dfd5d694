#include "base/refusal.h"

#include <stddef.h>

static const RefusalInfo all[NREFUSAL] = {
	[REFUSAL_OPERATOR] =
		{"W0001", "an operator that Weft does not have",
		 "The model calls operators that Weft does not have. The message names all of "
		 "them, with\nthe first node of each.\n"
		 "- `weft ops PART` lists the operators whose names have that part.\n"
		 "- Export with `.run_decompositions()`: PyTorch then replaces many operators by\n"
		 "  simpler ones.\n- An operator of your own comes with a library: --ops LIBRARY\n"
		 "  (docs/user-operators.md).\n"
		 "- In a text or a trace the name may be misspelt: names have a namespace and an\n"
		 "  overload, as in aten.add.Tensor."},
	[REFUSAL_DTYPE] = {"W0002", "a dtype that is not supported",
			   "A tensor of the model has a dtype that Weft does not support, "
			   "such as strings, or\nintegers of 2 or 4 bits outside of quantised "
			   "weights. Convert the tensor before the\nmodel is exported. Weft "
			   "supports f64, f32, f16, bf16, f8, integers of 8 to 64 bits,\n"
			   "bool and complex numbers."},
	[REFUSAL_FILE] =
		{"W0003", "a file that is damaged",
		 "The file is cut off, changed, or of another kind than its name says; "
		 "the message says\nwhere reading ended. Copy or export it again, "
		 "and compare sizes or checksums. A\n"
		 "pointer of Git LFS is a small text in place of the file: `git lfs pull`."},
	[REFUSAL_GUARD] =
		{"W0004", "a condition on the inputs that cannot be checked",
		 "The exported model is right only under a condition that Weft cannot check.\n"
		 "- If it holds for all your inputs, use --ignore-guard 'TEXT', with the text that "
		 "the\n  message quotes. For inputs that violate it, results are wrong.\n"
		 "- Otherwise change the model: torch.cond instead of a branch on sizes, or fixed "
		 "sizes."},
	[REFUSAL_TYPES] =
		{"W0005", "operands that do not fit an operator",
		 "The dtypes or shapes of the operands do not fit the operator. The message names "
		 "the\nnode and both shapes.\n"
		 "- If you wrote or traced the graph: `weft show --graph` prints the types of all "
		 "values.\n"
		 "- If an exporter wrote the file, the fault is the exporter's or Weft's: please "
		 "report it."},
	[REFUSAL_DATA_SIZE] =
		{"W0006", "a number that depends on data where a constant is needed",
		 "The size of a result may depend on data (nonzero, masks, item()). An axis, a "
		 "number of\nparts or the size of a window may not. Compute such a number from "
		 "the shapes of inputs,\nor make it a constant before the export. In an ONNX "
		 "model it may come from an input of\nthe model: give the input's value by "
		 "--values FILE."},
	[REFUSAL_TARGET] = {"W0007", "a target that is not there",
			    "`weft show --targets` lists the targets, and which of them run here; "
			    "docs/targets.md\ndescribes them, features that are added to one "
			    "(x86-64-v4+bf16), several levels in one\n"
			    "file (x86-64-v2,v3,v4), and files of your own (.json). --tune takes "
			    "one of the machines\n"
			    "that the message lists, or a .json file."},
	[REFUSAL_INPUT] =
		{"W0008", "an input that the model does not take",
		 "A tensor of the call does not have the dtype, rank or sizes that the model "
		 "expects; or\nthe sizes of the inputs violate a condition; or the file of inputs "
		 "lacks an input, or\nhas a tensor that is no input. `weft show MODEL` lists the "
		 "inputs, the symbols with\ntheir ranges, and the conditions (guards). In the "
		 "file, tensors are called x.0, x.1, ...\nor like the inputs. A size is constant "
		 "unless the export says that it may change: name\nit in dynamic_shapes of "
		 "torch.export, or in dynamic_axes of an ONNX export."},
	[REFUSAL_CHECK] =
		{"W0009", "a check inside of the model has failed",
		 "The model itself ends the call: an index out of range, an assertion, "
		 "a size that\nbecomes negative, or a user operator that reports an error. The "
		 "message names the\n"
		 "node and the value. State is as before the call; other calls are not affected."},
	[REFUSAL_PATH] =
		{"W0010", "a file that cannot be opened or written",
		 "The system refuses the file, for the reason that stands behind its name: it is "
		 "not\nthere, it is a folder, rights are missing, or the disk is full. Outputs are "
		 "written\nwhole or not at all: what was there before is still there."},
	[REFUSAL_MACHINE] =
		{"W0011", "compiled code for another machine",
		 "A compiled model runs on processors of its target only. `weft doctor` says what "
		 "this\nmachine is, `weft show --targets` what runs here.\n"
		 "- For this machine: compile without --target.\n"
		 "- For several levels of x86-64 in one file: --target x86-64-v2,v3,v4.\n"
		 "- To check a model of another machine from here: weft check --runner COMMAND."},
	[REFUSAL_TOOL] = {"W0012", "a program or library that is missing or fails",
			  "Something that Weft calls is not there, or ended with an error, which "
			  "the message "
			  "has: a\nC compiler (--backend c), a linker, LLVM (weft_llvm.so), "
			  "NVIDIA's driver, "
			  "or Python\n(--against). `weft doctor` lists what was found, and the "
			  "commands that "
			  "install the rest."},
	[REFUSAL_DERIVATIVE] =
		{"W0013", "a derivative that is not there",
		 "An operator has no derivative by the operand that the message names, as in "
		 "PyTorch, or\nthe tensor has a dtype without derivatives (integers, bool).\n"
		 "- Leave such inputs out: weft compile --grad=NAME,..., weft run --wrt NAME,...\n"
		 "- Where no gradient is wanted, write detach() in the model in front of the "
		 "operator."},
	[REFUSAL_VERSION] =
		{"W0014", "a file of a version that is not read",
		 "The file was written by a version of PyTorch, ONNX or Weft that is older or "
		 "newer "
		 "than\nthis version of Weft reads; the message names both. Export it again with "
		 "PyTorch 2.5 to\n2.15, or with an opset up to 28. A compiled model is compiled "
		 "again from its model file\n(CHANGELOG.md says which versions go together)."},
	[REFUSAL_FORM] =
		{"W0015", "a part of the model that is not read",
		 "The file is whole, and has something that Weft does not read there: an argument "
		 "of another\nkind, a list, tuple or class where a tensor is expected, sizes or "
		 "control flow in a form\nthat the message describes; or a file written by hand "
		 "contradicts itself. The message\nnames the node, with its line in your source "
		 "if the file has that.\n"
		 "- Export with `.run_decompositions()`, or with another value of `strict`: "
		 "PyTorch "
		 "then\n  writes many parts by others.\n"
		 "- Make inputs and results of the model tensors; write the line that the message "
		 "names in\n  another way.\n"
		 "- What an exporter wrote and PyTorch runs, Weft should read: please report it."},
};

const RefusalInfo *refusal_info(unsigned kind)
{
	return kind > REFUSAL_NONE && kind < NREFUSAL ? &all[kind] : NULL;
}
