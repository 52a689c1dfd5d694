/* Elements moved. */
#include "ops/contrib/priv.h"

static Node build_expand_dims(Build *b, Node n)
{
	Node x = arg(b, n, "X");
	int64_t axis = aten_int(b, n, "axis"), rank = aten_rank(b, x) + 1;
	if (axis < -rank || axis >= rank)
		return b_error(b, "axis %lld of a result of rank %lld", (long long)axis,
			       (long long)rank);
	return b_unsqueeze(b, x, (int)(axis < 0 ? axis + rank : axis));
}

OP(com_microsoft_ExpandDims_1){
	.schema = "com_microsoft.ExpandDims.1(Tensor X, int axis) -> Tensor",
	.build = build_expand_dims,
	.no_sample = CONTRIB_CASES,
};
