#include "base/refusal.h"

#include <stddef.h>

static const RefusalInfo all[NREFUSAL] = {
	[REFUSAL_OPERATOR] =
		{"W0001", "an operator that Weft does not have",
		 "The model calls operators that are none of Weft's table, "
		 "or that Weft leaves out on\npurpose; the message names all of them, "
		 "with the first node of each.\n"
		 "- `weft ops PART` lists the operators whose names have that part.\n"
		 "- Export with `.run_decompositions()`: PyTorch then writes many operators by "
		 "others.\n- An operator of your own comes with a library: --ops LIBRARY\n"
		 "  (docs/user-operators.md).\n"
		 "- In a text or a trace the name may be misspelt: names have a namespace and an\n"
		 "  overload, as in aten.add.Tensor."},
	[REFUSAL_DTYPE] =
		{"W0002", "a dtype that is not supported",
		 "A tensor of the model has a dtype that Weft has not: strings, "
		 "integers of 2 or 4 bits\noutside of quantised weights, "
		 "or a dtype that came after this version. Convert the\n"
		 "tensor before the model is exported; f64, f32, f16, bf16, f8, "
		 "integers of 8 to 64\nbits, bool and complex numbers are there."},
	[REFUSAL_FILE] =
		{"W0003", "a file that is damaged",
		 "The file is cut off, changed, or of another kind than its name says; "
		 "the message says\nwhere reading ended. Copy or export it again, "
		 "and compare sizes or checksums. A\n"
		 "pointer of Git LFS is a small text in place of the file: `git lfs pull`."},
	[REFUSAL_GUARD] =
		{"W0004", "a condition on the inputs that cannot be checked",
		 "torch.export found that the model holds only under a condition, and Weft cannot\n"
		 "express it; a compiled model that does not check it could give wrong results.\n"
		 "- If the condition holds for all your inputs: --ignore-guard 'TEXT', "
		 "with the text of\n  the message. Where it does not hold, results are wrong.\n"
		 "- Else write the model without it: torch.cond in place of a branch on sizes, "
		 "or fixed\n  sizes in place of dynamic ones."},
	[REFUSAL_TYPES] =
		{"W0005", "operands that do not fit an operator",
		 "Dtypes, ranks or extents of the operands are not what the operator takes; "
		 "the message\nnames the node, and both shapes with their symbols. In a graph that "
		 "was written or\n"
		 "traced by hand: `weft show --graph` prints the types of all values. In a file of "
		 "an\nexporter it is a fault of the file, or of Weft: please report it."},
	[REFUSAL_DATA_SIZE] =
		{"W0006", "a number that depends on data where a constant is needed",
		 "Sizes may depend on data (nonzero, masks, item()), "
		 "but some arguments decide the code\nitself: axes, numbers of parts, "
		 "kernels of windows. Compute such a number from the\n"
		 "shapes of inputs, or fix it while exporting. Inputs of ONNX models that decide "
		 "the\ngraph get their values by --values FILE."},
	[REFUSAL_TARGET] =
		{"W0007", "a target that is not there",
		 "`weft show --targets` lists the targets, and which of them run here; "
		 "docs/targets.md\ndescribes them, features that are added to one "
		 "(x86-64-v4+bf16), several levels in one\n"
		 "file (x86-64-v2,v3,v4), and files of your own (.json)."},
	[REFUSAL_INPUT] =
		{"W0008", "an input that the model does not take",
		 "A tensor of the call has another dtype, rank or extent than the model says, "
		 "or sizes\nviolate a condition between them. `weft show MODEL` lists inputs, "
		 "symbols with their\n"
		 "ranges, and guards. A size that was a number while exporting stays one: name it "
		 "in\ndynamic_shapes of torch.export, or dynamic_axes of an ONNX export, "
		 "to let it change."},
	[REFUSAL_CHECK] =
		{"W0009", "a check inside of the model has failed",
		 "The model itself ends the call: an index out of range, an assertion, "
		 "a size that\nbecomes negative, or a user operator that reports an error. The "
		 "message names the\n"
		 "node and the value. State is as before the call; other calls are not affected."},
};

const RefusalInfo *refusal_info(unsigned kind)
{
	return kind > REFUSAL_NONE && kind < NREFUSAL ? &all[kind] : NULL;
}
