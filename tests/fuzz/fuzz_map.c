/* Random index maps. */
#include "fuzz.h"

/* Same elements, elsewhere. */
static bool push_moved(Fuzz *f, Node n, Value x)
{
	x.n = n;
	return fuzz_push(f, x);
}

static bool push_small(Fuzz *f, Node n, Value x)
{
	return n.i && fuzz_small(f, node_rank(f->g, n), node_type(f->g, n)->dim) &&
	       push_moved(f, n, x);
}

static bool step_permute(Fuzz *f)
{
	Value x;
	int64_t perm[MAX_RANK];
	if (!fuzz_pick(f, fuzz_not_scalar, &x) || fuzz_rank(f, x) < 2)
		return false;
	uint32_t rank = fuzz_rank(f, x);
	for (uint32_t k = 0; k < rank; k++) {
		uint32_t j = fuzz_below(f, k + 1);
		perm[k] = perm[j];
		perm[j] = k;
	}
	Attr a[] = {attr_none(), fuzz_ints(f, perm, rank)};
	return push_moved(f, fuzz_node(f, OP_permute, &x.n, 1, a, 2), x);
}

/* A divisor of d: a small number, a symbol. None: neither that was drawn is one. */
static Sym divisor(Fuzz *f, Sym d)
{
	SymTab *t = f->ir->syms;
	Sym by = sym_int(t, 2 + fuzz_below(f, 3));
	if (fuzz_chance(f, 50) && !sym_is_const(t, d, NULL))
		by = f->size[fuzz_below(f, FUZZ_SYMBOLS)];
	return sym_is(t, d, 0) || sym_mul(t, by, sym_floordiv(t, d, by)).i != d.i ? (Sym){0} : by;
}

/* Merge neighbours, split by a divisor, add and remove ones. */
static bool step_reshape(Fuzz *f)
{
	Value x;
	Sym dim[2 * MAX_RANK];
	uint32_t n = 0;
	SymTab *t = f->ir->syms;
	if (!fuzz_pick(f, fuzz_any, &x))
		return false;
	for (uint32_t k = 0; k < fuzz_rank(f, x); k++) {
		Sym d = fuzz_dim(f, x, k);
		Sym by = divisor(f, d);
		if (n && fuzz_chance(f, 40)) {
			dim[n - 1] = sym_mul(t, dim[n - 1], d);
		} else if (by.i && fuzz_chance(f, 50)) {
			bool first = fuzz_chance(f, 50);
			dim[n++] = first ? by : sym_floordiv(t, d, by);
			dim[n++] = first ? sym_floordiv(t, d, by) : by;
		} else if (!sym_is(t, d, 1) || fuzz_chance(f, 50)) {
			dim[n++] = d;
		}
		if (fuzz_chance(f, 10))
			dim[n++] = sym_int(t, 1);
	}
	return n <= 6 && push_moved(f, b_reshape(&f->b, x.n, n, dim), x);
}

static bool step_broadcast(Fuzz *f)
{
	Value x;
	Sym dim[MAX_RANK];
	uint32_t map[MAX_RANK], n = 0;
	if (!fuzz_pick(f, fuzz_any, &x) || fuzz_rank(f, x) > 4)
		return false;
	for (uint32_t k = 0; k < fuzz_rank(f, x); k++) {
		if (fuzz_chance(f, 25))
			dim[n++] = fuzz_extent(f);
		map[k] = n;
		bool one = sym_is(f->ir->syms, fuzz_dim(f, x, k), 1);
		dim[n++] = one ? fuzz_extent(f) : fuzz_dim(f, x, k);
	}
	if (fuzz_chance(f, 25))
		dim[n++] = fuzz_extent(f);
	return fuzz_small(f, n, dim) &&
	       push_moved(f, b_broadcast_in_dim(&f->b, x.n, n, dim, map), x);
}

static bool step_slice(Fuzz *f)
{
	Value x;
	SymTab *t = f->ir->syms;
	Sym start[MAX_RANK], end[MAX_RANK], step[MAX_RANK];
	if (!fuzz_pick(f, fuzz_not_scalar, &x))
		return false;
	uint32_t rank = fuzz_rank(f, x);
	for (uint32_t k = 0; k < rank; k++) {
		Sym d = fuzz_dim(f, x, k);
		bool cuts = fuzz_chance(f, 60);
		start[k] = cuts ? fuzz_amount(f, 0, d) : sym_int(t, 0);
		end[k] = cuts ? sym_sub(t, d, fuzz_amount(f, 0, sym_sub(t, d, start[k]))) : d;
		step[k] = fuzz_chance(f, 25) ? fuzz_amount(f, 1, sym_int(t, 4)) : sym_int(t, 1);
	}
	Attr a[] = {attr_none(), attr_ints(start, rank), attr_ints(end, rank),
		    attr_ints(step, rank)};
	return push_small(f, fuzz_node(f, OP_slice, &x.n, 1, a, 4), x);
}

static bool step_reverse(Fuzz *f)
{
	Value x;
	int64_t dims[MAX_RANK];
	uint32_t n = 0;
	if (!fuzz_pick(f, fuzz_not_scalar, &x))
		return false;
	for (uint32_t k = 0; k < fuzz_rank(f, x); k++)
		if (fuzz_chance(f, 50))
			dims[n++] = k;
	Attr a[] = {attr_none(), fuzz_ints(f, dims, n)};
	return push_moved(f, fuzz_node(f, OP_reverse, &x.n, 1, a, 2), x);
}

/* Of one side: 0, more, or less. */
static Sym pad_amount(Fuzz *f, Sym d)
{
	SymTab *t = f->ir->syms;
	if (fuzz_chance(f, 50))
		return fuzz_amount(f, 0, sym_int(t, 6));
	return sym_sub(t, sym_int(t, 0), fuzz_amount(f, 0, d));
}

static bool crops_too_much(Fuzz *f, Sym d, Sym low, Sym high, Sym interior)
{
	SymTab *t = f->ir->syms;
	Sym gaps = sym_mul(t, sym_max(t, sym_addi(t, d, -1), sym_int(t, 0)), interior);
	return fuzz_min(f, sym_add(t, sym_add(t, d, gaps), sym_add(t, low, high))) < 0;
}

static bool step_pad(Fuzz *f)
{
	Value x;
	Sym low[MAX_RANK], high[MAX_RANK], interior[MAX_RANK], zero = sym_int(f->ir->syms, 0);
	if (!fuzz_pick(f, fuzz_not_scalar, &x))
		return false;
	uint32_t rank = fuzz_rank(f, x);
	for (uint32_t k = 0; k < rank; k++) {
		Sym d = fuzz_dim(f, x, k);
		low[k] = fuzz_chance(f, 50) ? pad_amount(f, d) : zero;
		high[k] = fuzz_chance(f, 50) ? pad_amount(f, d) : zero;
		interior[k] =
			fuzz_chance(f, 12) ? fuzz_amount(f, 1, sym_int(f->ir->syms, 4)) : zero;
		if (crops_too_much(f, d, low[k], high[k], interior[k]))
			low[k] = high[k] = zero;
	}
	double v = fuzz_chance(f, 70) ? 0 : 1;
	Node value = b_full(&f->b, fuzz_dtype(f, x), v, 0, NULL);
	Attr a[] = {attr_none(), attr_none(), attr_ints(low, rank), attr_ints(high, rank),
		    attr_ints(interior, rank)};
	Node n = fuzz_node(f, OP_pad, (Node[]){x.n, value}, 2, a, 5);
	x.gran = x.gran < 0 ? x.gran : 0;
	x.mag = x.mag > 0 ? x.mag : 0;
	return push_small(f, n, x);
}

/* The end of x before its beginning. */
static bool step_roll(Fuzz *f)
{
	Value x;
	if (!fuzz_pick(f, fuzz_not_scalar, &x))
		return false;
	int dim = (int)fuzz_below(f, fuzz_rank(f, x));
	SymTab *t = f->ir->syms;
	Sym d = fuzz_dim(f, x, (uint32_t)dim), at = fuzz_amount(f, 0, d), one = sym_int(t, 1);
	Node in[] = {b_slice(&f->b, x.n, dim, at, d, one),
		     b_slice(&f->b, x.n, dim, sym_int(t, 0), at, one)};
	return push_moved(f, b_concat(&f->b, in, 2, dim), x);
}

/* x, itself again, a piece of it, or a fresh value of another extent along dim. */
static Value part(Fuzz *f, Value x, uint32_t dim)
{
	Sym d[MAX_RANK];
	Value y;
	if (fuzz_chance(f, 40) && fuzz_pick(f, fuzz_not_scalar, &y) &&
	    fuzz_rank(f, y) == fuzz_rank(f, x) && fuzz_dtype(f, y) == fuzz_dtype(f, x)) {
		bool same = true;
		for (uint32_t k = 0; k < fuzz_rank(f, x); k++)
			same &= k == dim || fuzz_dim(f, y, k).i == fuzz_dim(f, x, k).i;
		if (same)
			return y;
	}
	if (fuzz_chance(f, 30))
		return x;
	for (uint32_t k = 0; k < fuzz_rank(f, x); k++)
		d[k] = k == dim ? fuzz_extent(f) : fuzz_dim(f, x, k);
	return fuzz_input(f, fuzz_dtype(f, x), fuzz_rank(f, x), d);
}

static bool step_concat(Fuzz *f)
{
	Value x;
	Node in[4];
	if (!fuzz_pick(f, fuzz_not_scalar, &x))
		return false;
	uint32_t dim = fuzz_below(f, fuzz_rank(f, x)), n = 2 + fuzz_below(f, 3),
		 at = fuzz_below(f, n);
	for (uint32_t k = 0; k < n; k++) {
		Value p = k == at ? x : part(f, x, dim);
		in[k] = p.n;
		x.gran = p.gran < x.gran ? p.gran : x.gran;
		x.mag = p.mag > x.mag ? p.mag : x.mag;
		x.err = p.err > x.err ? p.err : x.err;
	}
	return push_small(f, b_concat(&f->b, in, n, (int)dim), x);
}

/* Often several blocks along a symbolic extent. */
static bool step_window(Fuzz *f)
{
	Value x;
	if (!fuzz_pick(f, fuzz_not_scalar, &x) || fuzz_rank(f, x) > 5)
		return false;
	SymTab *t = f->ir->syms;
	int64_t dim = fuzz_below(f, fuzz_rank(f, x));
	Sym size = fuzz_chance(f, 20) ? sym_int(t, 1) : fuzz_amount(f, 1, sym_int(t, 5)),
	    stride = fuzz_amount(f, 1, sym_int(t, 4)), low = pad_amount(f, sym_int(t, 3)),
	    dilation = fuzz_amount(f, 1, sym_int(t, 3));
	Sym count = fuzz_dim(f, x, (uint32_t)dim);
	if (!sym_is(t, stride, 1))
		count = sym_addi(t, sym_floordiv(t, count, stride), 1);
	count = fuzz_chance(f, 10) ? sym_int(t, 1) : count;
	Attr a[] = {attr_none(),
		    attr_int(f->ir, dim),
		    attr_sym(size),
		    attr_sym(stride),
		    attr_sym(dilation),
		    attr_sym(low),
		    attr_sym(count)};
	return push_small(f, fuzz_node(f, OP_window, &x.n, 1, a, 7), x);
}

static bool step_iota(Fuzz *f)
{
	static const DType dtypes[] = {DT_f32, DT_i64, DT_i32};
	Sym n = fuzz_extent(f);
	DType d = dtypes[fuzz_below(f, 3)];
	Attr a[] = {attr_dtype(d), attr_sym(n)};
	return fuzz_push(f, (Value){fuzz_node(f, OP_iota, NULL, 0, a, 2), 0, 6, 0});
}

const FuzzChoice fuzz_map_steps[] = {
	{step_permute, 3}, {step_reshape, 4}, {step_broadcast, 2}, {step_slice, 3},
	{step_reverse, 1}, {step_pad, 3},     {step_concat, 3},    {step_window, 2},
	{step_iota, 1},    {step_roll, 1},    {NULL, 0},
};
