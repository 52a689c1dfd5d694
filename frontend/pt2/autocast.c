/* Regions with autocast on. The file holds the operators as they were called, and the dtypes of
 * their results as autocast made them; the conversions of operands in between are not in the
 * file. To which dtype operands were converted the dtype of the result says. */
#include "frontend/pt2/priv.h"

/* Whether autocast converts the operands, on processors or on GPUs: the file does not say on
 * which of them it was exported. */
static bool is_converted(Op op)
{
	const OpInfo *info = op_info(op);
	return (info->autocast != AUTOCAST_ANY && info->autocast != AUTOCAST_FIRST) ||
	       info->autocast_gpu != AUTOCAST_ANY;
}

/* Whether autocast may convert the dtype. It leaves f64 alone. */
static bool may_convert(DType d)
{
	return d == DT_f16 || d == DT_bf16 || d == DT_f32;
}

bool autocast_operands(Scope *s, const json_t *node, NodeCall *c)
{
	Results r;
	if (!s->st->autocast || !is_converted(c->op))
		return true;
	TRY(read_results(s, node, &r));
	DType to = DT_none;
	for (uint32_t k = 0; k < r.n && to == DT_none; k++) {
		DType d = r.data[k].name ? r.data[k].meta.dtype : DT_none;
		to = d == DT_none ? d : dtype_is_complex(d) ? dtype_real(d) : d;
	}
	if (!may_convert(to))
		return true;
	for (uint32_t k = 0; k < c->in.n; k++) {
		Node x = c->in.data[k];
		if (!x.i || !may_convert(node_dtype(s->st->g, x)) || node_dtype(s->st->g, x) == to)
			continue;
		c->in.data[k] = b_convert(&s->b, x, to);
		c->value.data[k] = 0; /* a new tensor: the result is no view of the operand */
		TRY(c->in.data[k].i);
	}
	return true;
}
