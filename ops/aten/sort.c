/* ATen sorting: whole dims, the first k. */
#include "ops/aten/priv.h"
#include "ops/rules/batch.h"

static Node sort(Build *b, Node x, uint32_t dim, bool descending, bool stable)
{
	if (aten_rank(b, x) > 0)
		return b_sort(b, x, dim, descending, stable);
	return x.i ? b_tuple(b, (Node[]){x, b_full_int(b, DT_i64, 0, 0, NULL)}, 2) : x;
}

static Node build_sort(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), aten_rank(b, x));
	return sort(b, x, dim, node_bool(b->g, n, "descending"), true);
}

static Node build_argsort(Build *b, Node n)
{
	return b_get(b, build_sort(b, n), 1);
}
OP(aten_argsort){
	.schema = "aten.argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
	.build = build_argsort,
	.sample = "f32[n=3, 4] distinct -4..5; f32[3, 4] distinct -4..5, dim=0, descending=true; "
		  "f32[4] of 2 nan 1 -3",
	.overloads = (const Overload[]){
		{.schema = "aten.argsort.stable(Tensor self, *, bool stable, int dim=-1, bool "
			   "descending=False) -> Tensor",
		 .sample = "i32[n=3, 6] in -2..2, stable=true; i32[6, 2] in -2..2, stable=true, "
			   "dim=0, descending=true"},
	},
};

static Node build_msort(Build *b, Node n)
{
	return b_get(b, sort(b, arg(b, n, "self"), 0, false, true), 0);
}
OP(aten_sort){
	.schema = "aten.sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, "
		  "Tensor indices)",
	.build = build_sort,
	.sample = "f32[n=3, 4] distinct -4..5; f32[3, 4] distinct -4..5, dim=0, descending=true; "
		  "f32[4] of 2 nan 1 -3",
	.overloads = (const Overload[]){
		{.schema = "aten.sort.stable(Tensor self, *, bool? stable, int dim=-1, bool "
			   "descending=False) -> (Tensor values, Tensor indices)",
		 .sample = "i32[n=3, 6] in -2..2, stable=true; i32[6, 2] in -2..2, stable=true, "
			   "dim=0, descending=true"},
		{.schema = "aten.msort(Tensor self) -> Tensor",
		 .build = build_msort,
		 .sample = "f32[4, n=3] distinct -4..5"},
	},
};

static Node build_topk(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), aten_rank(b, x));
	Sym k = node_sym(b->g, n, "k");
	if (aten_rank(b, x) == 0)
		return sort(b, x, dim, false, true);
	aten_require_le(b, k, b_dim(b, x, (int)dim), "topk");
	return b_sort_first(b, x, dim, node_bool(b->g, n, "largest"), k);
}
OP(aten_topk){
	.schema = "aten.topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool "
		  "sorted=True) -> (Tensor values, Tensor indices)",
	.build = build_topk,
	.sample = "f32[n=2, 6] distinct -4..5, k=3; f32[5, 2] distinct -4..5, k=2, dim=0, "
		  "largest=false",
};
