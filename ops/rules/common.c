#include "ops/rules/common.h"

#include <math.h>
#include <string.h>

/* ---- arguments ---- */

bool aten_const(Build *b, Sym s, int64_t *out)
{
	*out = 0;
	if (sym_is_const(b_syms(b), s, out))
		return true;
	b_error(b,
		"symbolic size %s where a constant is needed (inputs that decide it can be given "
		"when the model is compiled: --values)",
		sym_str(b_syms(b), s));
	return false;
}

int64_t aten_int(Build *b, Node n, const char *name)
{
	int64_t v;
	aten_const(b, node_sym(b->g, n, name), &v);
	return v;
}

/* ---- shapes ---- */

Shape shape_of(uint32_t rank, const Sym *dim)
{
	Shape s = {.rank = rank};
	for (uint32_t k = 0; k < rank && k < MAX_RANK; k++)
		s.dim[k] = dim[k];
	return s;
}

Shape aten_shape(const Build *b, Node x)
{
	if (!x.i)
		return (Shape){0};
	const Type *t = node_type(b->g, x);
	return t->dtype == DT_none ? (Shape){0} : shape_of(t->n, t->dim);
}

DType aten_dtype(const Build *b, Node x)
{
	return x.i ? node_dtype(b->g, x) : DT_none;
}

uint32_t aten_rank(const Build *b, Node x)
{
	return x.i ? node_rank(b->g, x) : 0;
}

Sym shape_numel(const Build *b, const Shape *s)
{
	Sym n = b_int(b, 1);
	for (uint32_t k = 0; k < s->rank; k++)
		n = sym_mul(b_syms(b), n, s->dim[k]);
	return n;
}

/* ---- nodes ---- */

Node aten_size(Build *b, Sym s, DType d)
{
	int64_t v;
	if (sym_is_const(b_syms(b), s, &v))
		return dtype_is_float(d) ? b_scalar(b, d, (double)v) : b_full_int(b, d, v, 0, NULL);
	return b_convert(b, b_from_size(b, s), d);
}

Node aten_like(Build *b, Node x, double v)
{
	return x.i ? b_scalar(b, node_dtype(b->g, x), v) : x;
}

Node aten_move_dim(Build *b, Node x, uint32_t from, uint32_t to)
{
	uint32_t perm[MAX_RANK], rank = aten_rank(b, x);
	if (from == to || !x.i)
		return x;
	for (uint32_t k = 0, src = 0; k < rank; k++) {
		if (k == to) {
			perm[k] = from;
			continue;
		}
		if (src == from)
			src++;
		perm[k] = src++;
	}
	return b_permute(b, x, perm);
}

Node aten_stack(Build *b, const Node *x, uint32_t n, uint32_t dim)
{
	Node *part = arena_calloc(b->g->ir->ctx->scratch, n, sizeof *part);
	for (uint32_t k = 0; k < n; k++)
		part[k] = b_unsqueeze(b, x[k], (int)dim);
	return b_concat(b, part, n, (int)dim);
}

Node aten_iota_dim(Build *b, const Shape *s, uint32_t dim, DType d)
{
	return b_broadcast_in_dim(b, b_iota(b, d, s->dim[dim]), s->rank, s->dim, &dim);
}

Node aten_reduce(Build *b, ReduceKind kind, Node x, uint32_t dims, bool keep)
{
	if (!x.i || dims == 0)
		return x;
	return keep ? b_reduce_keep(b, kind, x, dims, DT_none)
		    : b_reduce(b, kind, x, dims, DT_none);
}

Node aten_detached(Build *b, Node x)
{
	return x.i && dtype_is_inexact(node_dtype(b->g, x)) ? b_node(b, OP_detached, &x, 1, NULL, 0)
							    : x;
}

/* ---- running ---- */

static Node multiplied(Build *b, Node carry, Node x)
{
	return b_bin(b, OP_mul, carry, x);
}

static Node is_nan(Build *b, Node x)
{
	Node re = b_part(b, x, false), im = b_part(b, x, true);
	return b_bin(b, OP_bit_or, b_bin(b, OP_ne, re, re), b_bin(b, OP_ne, im, im));
}

/* Returns log(exp(carry) + exp(x)) as PyTorch has it (LogAddExp.h): from the one with the
 * greater real part, and the angle is what comes out, not between -pi and pi. Where both real
 * parts are -inf it is one of them, where both are inf the sum itself. Branches that are not
 * taken have finite operands, so that their derivatives add nothing. */
static Node log_added(Build *b, Node carry, Node x)
{
	Node less = b_bin(b, OP_lt, b_part(b, x, false), b_part(b, carry, false));
	Node min = b_select(b, less, x, carry), max = b_select(b, less, carry, x),
	     zero = aten_like(b, x, 0);
	Node low = b_part(b, min, false), equal = b_bin(b, OP_eq, low, b_part(b, max, false));
	Node none = b_bin(b, OP_bit_and, equal, b_bin_scalar(b, OP_eq, low, -HUGE_VAL));
	Node all = b_bin(b, OP_bit_and, equal, b_bin_scalar(b, OP_eq, low, HUGE_VAL));
	Node apart = b_select(b, b_bin(b, OP_bit_or, none, all), zero, b_bin(b, OP_sub, min, max));
	Node y = b_bin(b, OP_add, b_un(b, OP_log1p, b_un(b, OP_exp, apart)), max);
	Node sum = b_bin(b, OP_add, b_un(b, OP_exp, b_select(b, all, min, zero)),
			 b_un(b, OP_exp, b_select(b, all, max, zero)));
	y = b_select(b, all, b_un(b, OP_log, sum), b_select(b, none, min, y));
	Node nan = b_bin(b, OP_bit_or, is_nan(b, carry), is_nan(b, x)),
	     lost = aten_like(b, low, NAN);
	return b_select(b, nan, b_complex(b, lost, lost), y);
}

typedef Node CombineFn(Build *, Node carry, Node x);

/* Returns a body of one step: the next carry, which is a result too, is what fn makes of the
 * carry and x. */
static Graph *running_body(Build *b, TypeId type, CombineFn *fn)
{
	Graph *g = graph_beside(b->g, "running");
	Build in = {.g = g, .loc = b->loc, .where = b->where};
	Node carry = graph_add_input(g, "carry", INPUT_USER, type),
	     x = graph_add_input(g, "x", INPUT_USER, type);
	Node y = fn(&in, carry, x);
	graph_add_output(g, "carry", y, -1);
	graph_add_output(g, "y", y, -1);
	return g;
}

/* Runs over complex numbers, which nothing that runs over real ones gives: one step for each
 * along dim. */
static Node running(Build *b, Node x, uint32_t dim, bool reverse, double first, CombineFn *fn)
{
	Ir *ir = b->g->ir;
	Node rows = aten_move_dim(b, x, dim, 0);
	const Type t = *node_type(b->g, rows);
	Node in[] = {b_full(b, t.dtype, first, t.n - 1, t.dim + 1), rows};
	Attr attr[] = {attr_int(ir, 1),
		       attr_int(ir, 1),
		       attr_int(ir, 0),
		       attr_graph(running_body(b, ir_type(ir, t.dtype, t.n - 1, t.dim + 1), fn)),
		       attr_sym(t.dim[0]),
		       attr_bool(reverse)};
	return aten_move_dim(b, b_get(b, b_node(b, OP_scan, in, 2, attr, 6), 1), 0, dim);
}

Node b_cumulative(Build *b, const char *kind, Node x, uint32_t dim, bool reverse)
{
	if (!x.i)
		return x;
	Ir *ir = b->g->ir;
	if (dtype_is_complex(node_dtype(b->g, x)) && !strcmp(kind, "sum"))
		return b_complex(b, b_cumulative(b, kind, b_part(b, x, false), dim, reverse),
		                 b_cumulative(b, kind, b_part(b, x, true), dim, reverse));
	if (dtype_is_complex(node_dtype(b->g, x)) && !strcmp(kind, "prod"))
		return running(b, x, dim, reverse, 1, multiplied);
	if (dtype_is_complex(node_dtype(b->g, x)) && !strcmp(kind, "logaddexp"))
		return b_convert(
			b, running(b, b_convert(b, x, DT_c128), dim, reverse, -HUGE_VAL, log_added),
			node_dtype(b->g, x));
	Attr attr[] = {attr_none(), attr_str(ir, kind), attr_int(ir, dim), attr_bool(reverse)};
	return b_node(b, OP_cumulative, &x, 1, attr, 4);
}

/* ---- messages ---- */

uint32_t assert_zero_message(Text *t, const char *message, const char *place, const char *code)
{
	static const char at[] = "{place}", of[] = "{code}";
	uint32_t n = 0;
	while (*message) {
		if (!strncmp(message, at, sizeof at - 1)) {
			if (place)
				text_printf(t, "(Batch element %s): ", place);
			message += sizeof at - 1;
		} else if (!strncmp(message, of, sizeof of - 1)) {
			text_add(t, code);
			message += sizeof of - 1;
			n++;
		} else {
			text_char(t, *message++);
		}
	}
	return n;
}
