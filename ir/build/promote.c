#include "ir/build/build.h"

static DType to_complex(DType d)
{
	return d == DT_f64 ? DT_c128 : d == DT_f16 ? DT_c32 : DT_c64;
}

/* Returns the promoted dtype where `higher` is of higher priority: `lower` changes it only by
 * being of a higher category. */
static DType combine(DType higher, DType lower)
{
	if (dtype_is_complex(higher))
		return higher;
	if (dtype_is_float(higher))
		return dtype_is_complex(lower) ? to_complex(higher) : higher;
	if (higher == DT_bool || dtype_is_inexact(lower))
		return dtype_promote(higher, lower);
	return higher != DT_none ? higher : lower;
}

void promote_tensor(Promotion *p, DType d, uint32_t rank)
{
	DType *slot = rank ? &p->dim : &p->zero;
	*slot = dtype_promote(*slot, d);
}

void promote_weak(Promotion *p, DType d)
{
	if (dtype_is_complex(d))
		d = DT_c64;
	else if (dtype_is_float(d))
		d = DT_f32;
	p->weak = dtype_promote(p->weak, d);
}

DType promote_result(const Promotion *p)
{
	return combine(p->dim, combine(p->zero, p->weak));
}

DType b_promote(const Build *b, const Node *x, uint32_t n)
{
	Promotion p = {DT_none, DT_none, DT_none};
	for (uint32_t k = 0; k < n; k++)
		if (x[k].i)
			promote_tensor(&p, node_dtype(b->g, x[k]), node_rank(b->g, x[k]));
	return promote_result(&p);
}
