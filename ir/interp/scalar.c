/* Element-wise nodes: storage types widen, the scalar function runs in blocks, the result rounds
 * once. */
#include "ir/interp/priv.h"
#include "ir/op/op.h"
#include "ir/scalar/scalar.h"

enum { BLOCK = 512, MAX_OPERANDS = 4 };

static void load(const Tensor *t, int64_t first, int64_t n, ScVal *v)
{
	if (dtype_is_float(t->dtype))
		tensor_read_f64(t, first, n, &v->f);
	else
		tensor_read_i64(t, first, n, &v->i);
}

static void store(Tensor *t, int64_t first, int64_t n, const ScVal *v)
{
	if (dtype_is_float(t->dtype))
		tensor_write_f64(t, first, n, &v->f);
	else
		tensor_write_i64(t, first, n, &v->i);
}

static bool check_extents(EvalCtx *e, Graph *g, Node n, const Tensor *in, uint32_t nin,
                          const Tensor *out)
{
	for (uint32_t k = 0; k < nin; k++) {
		for (uint32_t d = 0; d < out->rank; d++) {
			if (in[k].dim[d] != out->dim[d])
				return ctx_error(e->ctx, node_where(g, n),
				                 "%s: operand %u has extent %lld in dimension %u, "
				                 "expected %lld",
				                 op_name(node_op(g, n)), k, (long long)in[k].dim[d],
				                 d, (long long)out->dim[d]);
		}
	}
	return true;
}

/* ---- complex numbers ---- */

typedef struct {
	double re, im;
} Complex;

static Complex get_complex(const Tensor *t, int64_t i)
{
	Tensor flat = tensor_flat_real(t);
	return (Complex){tensor_f64(&flat, 2 * i), tensor_f64(&flat, 2 * i + 1)};
}

static void put_complex(Tensor *t, int64_t i, Complex v)
{
	Tensor flat = tensor_flat_real(t);
	tensor_set_f64(&flat, 2 * i, v.re);
	tensor_set_f64(&flat, 2 * i + 1, v.im);
}

/* Sets *y to the operator's value at element i. Returns false for an operator that is not
 * defined. */
static bool eval_complex(Op op, const Tensor *in, uint32_t nin, int64_t i, Complex *y)
{
	if (op == OP_select) {
		*y = get_complex(&in[tensor_i64(&in[0], i) ? 1 : 2], i);
		return true;
	}
	Complex a = get_complex(&in[0], i), b = get_complex(&in[nin - 1], i);
	switch (op) {
	case OP_neg:
		*y = (Complex){-a.re, -a.im};
		return true;
	case OP_add:
		*y = (Complex){a.re + b.re, a.im + b.im};
		return true;
	case OP_sub:
		*y = (Complex){a.re - b.re, a.im - b.im};
		return true;
	case OP_mul:
		*y = (Complex){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
		return true;
	case OP_eq:
	case OP_ne:
		y->re = (a.re == b.re && a.im == b.im) == (op == OP_eq);
		return true;
	default:
		return false;
	}
}

static bool interp_complex(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	Op op = node_op(g, n);
	for (int64_t i = 0, total = tensor_numel(out); i < total; i++) {
		Complex y = {0, 0};
		if (!eval_complex(op, in, node_nin(g, n), i, &y))
			return ctx_error(e->ctx, node_where(g, n),
			                 "%s of complex numbers is not supported", op_name(op));
		if (dtype_is_complex(out->dtype))
			put_complex(out, i, y);
		else
			tensor_set_i64(out, i, y.re != 0);
	}
	return true;
}

/* ---- all ---- */

bool interp_scalar(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	Op op = node_op(g, n);
	uint32_t nin = node_nin(g, n);
	DType compute[MAX_OPERANDS] = {DT_none};
	if (nin > MAX_OPERANDS)
		ctx_bug(e->ctx, "%s has %u operands", op_name(op), nin);
	TRY(check_extents(e, g, n, in, nin, out));
	if (nin && dtype_is_complex(in[nin - 1].dtype))
		return interp_complex(e, g, n, in, out);
	for (uint32_t k = 0; k < nin; k++)
		compute[k] = dtype_compute(in[k].dtype);
	const ScFn *fn = scalar_fn(op, compute, nin);
	if (!fn)
		return ctx_error(e->ctx, node_where(g, n), "%s: not defined for %s", op_name(op),
		                 nin ? dtype_name(in[nin - 1].dtype) : "no operands");
	/* debug builds do not fill these: it would take longer than small tensors */
	__attribute__((uninitialized)) ScVal arg[MAX_OPERANDS][BLOCK], result[BLOCK];
	const ScVal *args[MAX_OPERANDS] = {arg[0], arg[1], arg[2], arg[3]};
	int64_t total = tensor_numel(out);
	for (int64_t i = 0; i < total; i += BLOCK) {
		int64_t count = total - i < BLOCK ? total - i : BLOCK;
		for (uint32_t k = 0; k < nin; k++)
			load(&in[k], i, count, arg[k]);
		scalar_eval_n(fn, args, result, (uint32_t)count);
		store(out, i, count, result);
	}
	return true;
}
