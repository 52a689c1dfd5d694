/* ATen softmax and log-sum-exp. */
#include "ops/aten/priv.h"
#include "ops/rules/batch.h"

#include <math.h>

/* Returns the operand of a softmax in the dtype of its result. */
static Node operand(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	bool typed = op_arg_index(node_op(b->g, n), "dtype") >= 0;
	if (!x.i)
		return x;
	DType d = typed ? aten_dtype_or(b, n, "dtype", node_dtype(b->g, x)) : node_dtype(b->g, x);
	return aten_to_float(b, b_convert(b, x, d));
}

static Node softmax(Build *b, Node n, int log)
{
	Node x = operand(b, n);
	if (!x.i)
		return x;
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), node_rank(b->g, x));
	return log ? aten_log_softmax(b, x, dim) : aten_softmax(b, x, dim);
}
OP(aten_softmax_int){
	.schema = "aten.softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.aliases = "aten.special_softmax",
	.build_as = {softmax, false},
	.vjp = "[(g - sum.dim_IntList(g * y, [dim], true)) * y]",
	.batch = batch_along,
	.sample = "f32[n=3, 4], dim=1; f32[n=3, 4], dim=0; f32[3], dim=-1, dtype=f64; "
		  "f32[2, 2] of -inf -inf 1 -inf, dim=1",
	.overloads = (const Overload[]){
		{.schema = "aten._softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
		 .sample = "f32[n=3, 4], dim=1, half_to_float=false; "
			   "f32[n=3, 4], dim=0, half_to_float=false"},
	},
};
OP(aten_log_softmax_int){
	.schema = "aten.log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.build_as = {softmax, true},
	.vjp = "[g - exp(y) * sum.dim_IntList(g, [dim], true)]",
	.batch = batch_along,
	.sample = "f32[n=3, 4], dim=1; f32[n=3, 4], dim=0; f32[3], dim=-1, dtype=f64; "
		  "f32[2, 2] of -inf -inf 1 -inf, dim=1",
	.overloads = (const Overload[]){
		{.schema = "aten.special_log_softmax(Tensor self, int dim, *, ScalarType? "
			   "dtype=None) -> Tensor"},
		{.schema = "aten._log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
		 .sample = "f32[n=3, 4], dim=1, half_to_float=false; "
			   "f32[n=3, 4], dim=0, half_to_float=false"},
	},
};

/* Returns the softmax; of elements that are all -inf it is 0. */
static Node build_safe_softmax(Build *b, Node n)
{
	Node x = operand(b, n);
	if (!x.i || node_rank(b->g, x) == 0)
		return softmax(b, n, false);
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), node_rank(b->g, x));
	Node p = aten_softmax_parts(b, aten_wide(b, x), 1u << dim, true).p;
	return p.i ? b_convert(b, p, node_dtype(b->g, x)) : p;
}
OP(aten__safe_softmax){
	.schema = "aten._safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
	.build = build_safe_softmax,
	.vjp = "[(g - sum.dim_IntList(g * y, [dim], true)) * y]",
	.batch = batch_along,
	.sample = "f32[n=3, 4], dim=1; f32[n=3, 4], dim=0; f32[3], dim=-1, dtype=f64; "
		  "f32[2, 2] of -inf -inf 1 -inf, dim=1",
};

static Node build_logsumexp(Build *b, Node n)
{
	Node x = aten_to_float(b, arg(b, n, "self"));
	uint32_t dims = aten_dims(b, n, "dim", aten_rank(b, x)),
		 drop = aten_keepdim(b, n) ? 0 : dims;
	DType d = aten_dtype(b, x);
	x = aten_wide(b, x);
	Node high = aten_reduce(b, REDUCE_MAX,
				dtype_is_complex(aten_dtype(b, x)) ? b_part(b, x, false) : x, dims,
				true);
	/* An infinite maximum would give inf - inf. */
	Node finite = b_un(b, OP_isfinite, high);
	high = b_select(b, finite, high, aten_like(b, x, 0));
	Node sum = aten_sum(b, b_un(b, OP_exp, b_bin(b, OP_sub, x, high)), dims, true);
	Node y = b_bin(b, OP_add, b_un(b, OP_log, sum), high);
	y = aten_squeeze_dims(b, y, drop);
	return y.i ? b_convert(b, y, d) : y;
}
OP(aten_logsumexp){
	.schema = "aten.logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.aliases = "aten.special_logsumexp",
	.build = build_logsumexp,
	.adjoint = aten_adjoint_logsumexp,
	.sample = "f32[n=3, 4], dim=[1]; f32[3, 4], dim=[0, 1], keepdim=true; "
		  "f32[2, 2] of -inf -inf 1 inf, dim=[1]",
};
