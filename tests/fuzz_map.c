/* Random index maps. */
#include "fuzz.h"

/* Same elements, elsewhere. */
static bool push_moved(Fuzz *f, Node n, Value x)
{
	x.n = n;
	return fuzz_push(f, x);
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
		int64_t by = 2 + fuzz_below(f, 3);
		if (n && fuzz_chance(f, 40)) {
			dim[n - 1] = sym_mul(t, dim[n - 1], d);
		} else if (sym_divides(t, by, d) && fuzz_chance(f, 50)) {
			bool first = fuzz_chance(f, 50);
			dim[n++] = first ? sym_int(t, by) : sym_divi(t, d, by);
			dim[n++] = first ? sym_divi(t, d, by) : sym_int(t, by);
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
		uint32_t least = (uint32_t)fuzz_min(f, d),
			 cut = fuzz_below(f, least < 5 ? least : 5);
		uint32_t low = fuzz_below(f, cut + 1);
		bool cuts = fuzz_chance(f, 60);
		start[k] = sym_int(t, cuts ? low : 0);
		end[k] = cuts ? sym_addi(t, d, (int64_t)low - cut) : d;
		step[k] = sym_int(t, fuzz_chance(f, 25) ? 2 + fuzz_below(f, 2) : 1);
	}
	Attr a[] = {attr_none(), attr_ints(start, rank), attr_ints(end, rank),
		    attr_ints(step, rank)};
	return push_moved(f, fuzz_node(f, OP_slice, &x.n, 1, a, 4), x);
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

static bool step_pad(Fuzz *f)
{
	Value x;
	int64_t low[MAX_RANK], high[MAX_RANK], interior[MAX_RANK];
	if (!fuzz_pick(f, fuzz_not_scalar, &x))
		return false;
	uint32_t rank = fuzz_rank(f, x);
	for (uint32_t k = 0; k < rank; k++) {
		int64_t crop = fuzz_min(f, fuzz_dim(f, x, k)) > 3;
		bool pads = fuzz_chance(f, 50);
		low[k] = pads ? (int64_t)fuzz_below(f, 3) - crop : 0;
		high[k] = pads ? (int64_t)fuzz_below(f, 4) - crop : 0;
		interior[k] = fuzz_chance(f, 12);
	}
	double v = fuzz_chance(f, 70) ? 0 : 1;
	Node value = b_full(&f->b, fuzz_dtype(f, x), v, 0, NULL);
	Attr a[] = {attr_none(), attr_none(), fuzz_ints(f, low, rank), fuzz_ints(f, high, rank),
		    fuzz_ints(f, interior, rank)};
	Node n = fuzz_node(f, OP_pad, (Node[]){x.n, value}, 2, a, 5);
	if (!n.i || !fuzz_small(f, rank, node_type(f->g, n)->dim))
		return false;
	x.gran = x.gran < 0 ? x.gran : 0;
	x.mag = x.mag > 0 ? x.mag : 0;
	return push_moved(f, n, x);
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
	Node y = b_concat(&f->b, in, n, (int)dim);
	return y.i && fuzz_small(f, node_rank(f->g, y), node_type(f->g, y)->dim) &&
	       push_moved(f, y, x);
}

/* Often several blocks along a symbolic extent. */
static bool step_window(Fuzz *f)
{
	Value x;
	if (!fuzz_pick(f, fuzz_not_scalar, &x) || fuzz_rank(f, x) > 5)
		return false;
	SymTab *t = f->ir->syms;
	int64_t dim = fuzz_below(f, fuzz_rank(f, x)), size = 1 + fuzz_below(f, 4),
		low = fuzz_below(f, 3);
	int64_t stride = 1 + fuzz_below(f, 3), dilation = 1 + fuzz_below(f, 2);
	Sym count = fuzz_dim(f, x, (uint32_t)dim);
	if (stride > 1)
		count = sym_addi(t, sym_divi(t, count, stride), 1);
	Attr a[] = {attr_none(),
		    attr_int(f->ir, dim),
		    attr_int(f->ir, size),
		    attr_int(f->ir, stride),
		    attr_int(f->ir, dilation),
		    attr_int(f->ir, low),
		    attr_sym(count)};
	Node n = fuzz_node(f, OP_window, &x.n, 1, a, 7);
	return n.i && fuzz_small(f, node_rank(f->g, n), node_type(f->g, n)->dim) &&
	       push_moved(f, n, x);
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
	{step_reverse, 1}, {step_pad, 2},     {step_concat, 3},    {step_window, 2},
	{step_iota, 1},    {NULL, 0},
};
