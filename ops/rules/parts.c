/* Linear and bilinear operators of complex numbers, of their parts. */
#include "ops/rules/parts.h"

/* Adds n of other operands; the precision of sums is that of the parts. wide: not rounded to a
 * storage type, if the operator can say so. */
static Node same_op(Build *b, Node n, const Node *in, bool wide)
{
	Graph *g = b->g;
	const NodeData d = *node_data(g, n);
	const Schema *schema = op_schema(d.op);
	Attr attr[MAX_ARGS];
	for (uint32_t k = 0; k < schema->narg; k++) {
		attr[k] = *ir_attr(g->ir, d.attr, k);
		if (attr[k].kind == ATTR_dtype)
			attr[k].dtype = dtype_real(attr[k].dtype);
	}
	const DType part = node_dtype(g, in[0]), compute = dtype_compute(part);
	const int out = op_arg_index(d.op, "out");
	if (wide && out >= 0 && dtype_is_float(part) && compute != part)
		attr[out] = attr_dtype(compute);
	return b_node(b, d.op, in, d.nin, attr, schema->narg);
}

static Node on_part(Build *b, Node n, const Parts *in, bool imaginary)
{
	uint32_t nin = node_nin(b->g, n);
	Node *x = ARENA_ARRAY(b->g->ir->ctx->scratch, Node, nin + 1);
	for (uint32_t k = 0; k < nin; k++)
		x[k] = imaginary && in[k].im.i ? in[k].im : in[k].re;
	return same_op(b, n, x, false);
}

bool parts_each(Build *b, Node n, const Parts *in, Parts *out)
{
	out->re = on_part(b, n, in, false);
	out->im = on_part(b, n, in, true);
	return out->re.i && out->im.i;
}

/* Computes x * y by any bilinear operator; both parts are rounded once. */
static bool product(Build *b, Node n, const Parts *in, Parts *out)
{
	const Parts x = in[0], y = in[1];
	Node arg[4][2] = {{x.re, y.re}, {x.im, y.im}, {x.re, y.im}, {x.im, y.re}}, made[4];
	for (uint32_t k = 0; k < 4; k++)
		made[k] = same_op(b, n, arg[k], true);
	const DType d = dtype_real(node_dtype(b->g, n));
	out->re = b_convert(b, b_bin(b, OP_sub, made[0], made[1]), d);
	out->im = b_convert(b, b_bin(b, OP_add, made[2], made[3]), d);
	return out->re.i && out->im.i;
}

/* Whether every operand in which n is linear is complex, and no other. */
static bool is_linear_in_complex(const Graph *g, Node n, const Parts *in)
{
	const OpInfo *info = op_info(node_op(g, n));
	if (!info->linear || op_kind(node_op(g, n)) == OP_COMPOSITE ||
	    (info->linear_if && !info->linear_if(g, n)))
		return false;
	for (uint32_t k = 0; k < node_nin(g, n); k++) {
		bool linear = !info->linear_in || info->linear_in >> (k < 31 ? k : 31) & 1;
		if (in[k].re.i && linear != (in[k].im.i != 0))
			return false;
	}
	return true;
}

bool node_parts(Build *b, Node n, const Parts *in, Parts *out)
{
	const OpInfo *info = op_info(node_op(b->g, n));
	*out = (Parts){0};
	if (info->parts)
		return info->parts(b, n, in, out);
	if (!is_linear_in_complex(b->g, n, in))
		return false;
	return info->linear == LINEAR_ALONE ? node_nin(b->g, n) == 2 && product(b, n, in, out)
					    : parts_each(b, n, in, out);
}

bool parts_eq(Build *b, Node n, const Parts *in, Parts *out)
{
	Node im = on_part(b, n, in, true), re = on_part(b, n, in, false);
	out->re = b_bin(b, OP_bit_and, re, im);
	return out->re.i;
}

bool parts_ne(Build *b, Node n, const Parts *in, Parts *out)
{
	Node im = on_part(b, n, in, true), re = on_part(b, n, in, false);
	out->re = b_bin(b, OP_bit_or, re, im);
	return out->re.i;
}

Parts parts_multiply(Build *b, Parts x, Parts y)
{
	Parts z = {0};
	z.re = b_bin(b, OP_sub, b_bin(b, OP_mul, x.re, y.re), b_bin(b, OP_mul, x.im, y.im));
	z.im = b_bin(b, OP_add, b_bin(b, OP_mul, x.re, y.im), b_bin(b, OP_mul, x.im, y.re));
	return z;
}

Parts parts_of_pairs(Build *b, Node pairs)
{
	Parts z = {.pairs = pairs};
	z.re = b_select_dim(b, pairs, -1, b_int(b, 0));
	z.im = b_select_dim(b, pairs, -1, b_int(b, 1));
	return z;
}

Node parts_to_pairs(Build *b, const Parts *p)
{
	if (p->pairs.i)
		return p->pairs;
	Node last[2] = {b_unsqueeze(b, p->re, -1), b_unsqueeze(b, p->im, -1)};
	return b_concat(b, last, 2, -1);
}
