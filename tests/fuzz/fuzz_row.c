/* Rows that are made of a value, of what it is reduced to, and of both: joined, cut, with borders,
 * and reduced once more. */
#include <math.h>

#include "fuzz.h"

static bool fits_row(const Fuzz *f, const Value *x)
{
	return fuzz_rank(f, *x) > 0 && fuzz_dtype(f, *x) != DT_bool;
}

static Value wider(Value x, Value y)
{
	return (Value){x.n, x.gran < y.gran ? x.gran : y.gran, x.mag > y.mag ? x.mag : y.mag,
		       fmax(x.err, y.err)};
}

/* x reduced along dimensions dim to last, which stay as ones of extent 1. */
static Value reduced(Fuzz *f, Value x, uint32_t dim, uint32_t last)
{
	Sym to[MAX_RANK];
	DType d = fuzz_dtype(f, x);
	int64_t dims[MAX_RANK];
	double count = 1;
	bool empty = false;
	for (uint32_t k = dim; k <= last; k++) {
		dims[k - dim] = k;
		empty |= fuzz_min(f, fuzz_dim(f, x, k)) < 1;
		count *= fmax((double)fuzz_max(f, fuzz_dim(f, x, k)), 1);
	}
	bool sum = empty || fuzz_chance(f, 40);
	Attr a[] = {attr_none(), attr_str(f->ir, sum ? "sum" : fuzz_chance(f, 50) ? "max" : "min"),
		    fuzz_ints(f, dims, last - dim + 1), attr_dtype(dtype_compute(d))};
	Node y = fuzz_node(f, OP_reduce, &x.n, 1, a, 4);
	if (!y.i || node_dtype(f->g, y) != d)
		return (Value){0};
	Value r = fuzz_value(f, y, x.gran, x.mag + (sum ? fuzz_log2(count) : 0),
			     (sum ? count : 1) * x.err);
	if (sum && r.err > 0)
		r.err += ldexp(count, r.mag - 24);
	for (uint32_t k = 0; k < fuzz_rank(f, x); k++)
		to[k] = k >= dim && k <= last ? sym_int(f->ir->syms, 1) : fuzz_dim(f, x, k);
	r.n = b_reshape(&f->b, r.n, fuzz_rank(f, x), to);
	return r;
}

/* x and its row's value in each element. */
static Value combined(Fuzz *f, Value x, Value r)
{
	static const Op ops[] = {OP_sub, OP_add, OP_maximum};
	Op op = ops[fuzz_below(f, 3)];
	const Type t = *node_type(f->g, x.n);
	Sym to[MAX_RANK];
	for (uint32_t k = 0; k < t.n; k++)
		to[k] = t.dim[k];
	Node row = b_broadcast(&f->b, r.n, t.n, to), in[] = {x.n, row};
	Value y = wider(x, r);
	bool swap = fuzz_chance(f, 30);
	Node n = fuzz_node(f, op, swap ? (Node[]){row, x.n} : in, 2, NULL, 0);
	return fuzz_value(f, n, y.gran, y.mag + (op != OP_maximum),
			  op == OP_maximum ? y.err : x.err + r.err);
}

/* From somewhere to the end, or all but the end. */
static Node cut(Fuzz *f, Node x, uint32_t dim)
{
	Sym d = node_dim(f->g, x, dim), at = fuzz_amount(f, 0, d), zero = sym_int(f->ir->syms, 0),
	    one = sym_int(f->ir->syms, 1);
	return fuzz_chance(f, 50) ? b_slice(&f->b, x, (int)dim, at, d, one)
				  : b_slice(&f->b, x, (int)dim, zero, at, one);
}

static Node bordered(Fuzz *f, Node x, uint32_t dim)
{
	int64_t low[MAX_RANK] = {0}, high[MAX_RANK] = {0}, interior[MAX_RANK] = {0};
	uint32_t rank = node_rank(f->g, x);
	low[dim] = fuzz_below(f, 3);
	high[dim] = fuzz_below(f, 4);
	Node value = b_full(&f->b, node_dtype(f->g, x), 1, 0, NULL);
	Attr a[] = {attr_none(), attr_none(), fuzz_ints(f, low, rank), fuzz_ints(f, high, rank),
		    fuzz_ints(f, interior, rank)};
	return fuzz_node(f, OP_pad, (Node[]){x, value}, 2, a, 5);
}

/* A fresh value like y but of extent 1 in the last dimension, with a border to extent d there. */
static Node column(Fuzz *f, Value like, int64_t d, Value *x)
{
	int64_t low[MAX_RANK] = {0}, high[MAX_RANK] = {0}, interior[MAX_RANK] = {0};
	uint32_t rank = fuzz_rank(f, like);
	Sym dim[MAX_RANK];
	for (uint32_t k = 0; k < rank; k++)
		dim[k] = k + 1 < rank ? fuzz_dim(f, like, k) : sym_int(f->ir->syms, 1);
	*x = fuzz_input(f, fuzz_dtype(f, like), rank, dim);
	low[rank - 1] = fuzz_below(f, (uint32_t)d);
	high[rank - 1] = d - 1 - low[rank - 1];
	Node value = b_full(&f->b, fuzz_dtype(f, like), 1, 0, NULL);
	Attr a[] = {attr_none(), attr_none(), fuzz_ints(f, low, rank), fuzz_ints(f, high, rank),
		    fuzz_ints(f, interior, rank)};
	return fuzz_node(f, OP_pad, (Node[]){x->n, value}, 2, a, 5);
}

/* y, whose rows are short, and columns with borders: so many that lanes go down the columns. */
static bool push_columns(Fuzz *f, Value y)
{
	uint32_t n = 4 + fuzz_below(f, 9);
	int64_t d = fuzz_max(f, fuzz_dim(f, y, fuzz_rank(f, y) - 1));
	for (uint32_t k = 0; k < n; k++) {
		Value x;
		Node part = column(f, y, d, &x), in[] = {y.n, part};
		Value all = wider(x, y);
		y = fuzz_value(f, fuzz_node(f, OP_add, in, 2, NULL, 0), all.gran, all.mag + 1,
			       x.err + y.err);
	}
	return fuzz_push(f, y);
}

/* What costs so much that a row of it is kept in memory. */
static Value costly(Fuzz *f, Value x)
{
	if (!dtype_is_float(fuzz_dtype(f, x)) || x.mag > 6)
		return x;
	return fuzz_value(f, b_un(&f->b, fuzz_chance(f, 50) ? OP_tanh : OP_sin, x.n), -100, 0,
			  x.err);
}

/* A costly value of short rows, what it is reduced to, and columns. */
static bool short_rows(Fuzz *f)
{
	Sym many = sym_int(f->ir->syms, 7 + fuzz_below(f, 14)),
	    dim[2] = {fuzz_chance(f, 50) ? many : fuzz_extent(f),
		      sym_int(f->ir->syms, 2 + fuzz_below(f, 2))};
	Value x = costly(f, fuzz_input(f, DT_f32, 2, dim)),
	      r = reduced(f, x, 0, fuzz_chance(f, 70));
	return r.n.i && push_columns(f, combined(f, x, r));
}

/* Up to three of: the value, its reduction, both combined; whole, cut or with a border. */
bool fuzz_own_row(Fuzz *f)
{
	Value x;
	Node in[3];
	if (!f->is_body && fuzz_chance(f, 20))
		return short_rows(f);
	if (!fuzz_pick(f, fits_row, &x))
		return false;
	uint32_t dim = fuzz_below(f, fuzz_rank(f, x)), n = 1 + fuzz_below(f, 3);
	uint32_t last = fuzz_chance(f, 60) ? dim : fuzz_rank(f, x) - 1;
	Value r = reduced(f, x, dim, last);
	if (!r.n.i)
		return false;
	Value y = combined(f, x, r), part[] = {x, last == dim ? r : x, y, y},
	      all = {.gran = 0, .mag = 0};
	for (uint32_t k = 0; k < n; k++) {
		Value p = part[fuzz_below(f, 4)];
		uint32_t how = fuzz_below(f, 4);
		all = wider(all, p);
		in[k] = how == 0 ? cut(f, p.n, dim) : how == 1 ? bordered(f, p.n, dim) : p.n;
		if (!in[k].i)
			return false;
	}
	all.n = n > 1 ? b_concat(&f->b, in, n, (int)dim) : in[0];
	if (!all.n.i || !fuzz_small(f, node_rank(f->g, all.n), node_type(f->g, all.n)->dim))
		return false;
	if (fuzz_chance(f, 40)) {
		Value again = reduced(f, all, dim, dim);
		return again.n.i && fuzz_push(f, again);
	}
	return fuzz_push(f, all);
}
