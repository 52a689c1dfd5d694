/* Complex tensors as real ones with a last dimension of two, and back: the same memory. All other
 * arithmetic of complex numbers is that of pairs (passes/split_complex.c). */
#include <string.h>

#include "ops/prim/priv.h"
#include "ops/rules/parts.h"

/* ---- view_real ---- */

static bool shape_view_real(Infer *f)
{
	Type x = infer_in(f, 0);
	Sym dim[MAX_RANK];
	if (!dtype_is_complex(x.dtype))
		return infer_fail(f, "expected complex numbers, got %s", dtype_name(x.dtype));
	if (x.n == MAX_RANK)
		return infer_fail(f, "the result has more than %d dimensions", MAX_RANK);
	if (x.n)
		memcpy(dim, x.dim, x.n * sizeof *dim);
	dim[x.n] = sym_int(f->syms, 2);
	return infer_result(f, dtype_real(x.dtype), x.n + 1, dim);
}
INFER(view_real)

static bool eval_view(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	(void)e, (void)g, (void)n;
	Tensor x = tensor_flat_real(in), y = tensor_flat_real(out);
	copy_elems(&y, &x);
	return true;
}

static bool adjoint_view_real(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)n, (void)want;
	g[0] = b_node(b, OP_view_complex, ct, 1, NULL, 0);
	return g[0].i;
}

static bool parts_view_real(Build *b, Node n, const Parts *in, Parts *out)
{
	(void)n;
	out->re = parts_to_pairs(b, &in[0]);
	return out->re.i;
}

OP(view_real) {
	.parts = parts_view_real,
	.linear = LINEAR_TOGETHER,
	.adjoint = adjoint_view_real,
	.schema = "view_real(Tensor x) -> Tensor",
	.doc = "complex numbers as pairs along a new last dimension",
	.infer = infer_view_real,
	.eval = eval_view,
	.batch_leading = true,
	.lower = {.role = LOWER_MEMORY, .complex = true},
	.sample = "c64[n=3, 4]",
};

/* ---- view_complex ---- */

static bool shape_view_complex(Infer *f)
{
	Type x = infer_in(f, 0);
	DType d = dtype_complex(x.dtype);
	if (d == DT_none)
		return infer_fail(f, "no complex numbers are made of %s", dtype_name(x.dtype));
	if (x.n == 0)
		return infer_fail(f, "expected a last dimension of two, got a scalar");
	TRY(infer_same(f, "a last dimension of two", x.dim[x.n - 1], sym_int(f->syms, 2)));
	return infer_result(f, d, x.n - 1, x.dim);
}
INFER(view_complex)

static bool adjoint_view_complex(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)n, (void)want;
	g[0] = b_node(b, OP_view_real, ct, 1, NULL, 0);
	return g[0].i;
}

static bool parts_view_complex(Build *b, Node n, const Parts *in, Parts *out)
{
	(void)n;
	*out = parts_of_pairs(b, in[0].re);
	return out->re.i;
}

OP(view_complex) {
	.parts = parts_view_complex,
	.linear = LINEAR_TOGETHER,
	.adjoint = adjoint_view_complex,
	.schema = "view_complex(Tensor x) -> Tensor",
	.doc = "pairs along the last dimension as complex numbers",
	.infer = infer_view_complex,
	.eval = eval_view,
	.batch_leading = true,
	.lower = {.role = LOWER_NOTHING, .complex = true},
	.sample = "f32[n=3, 4, 2]",
};
