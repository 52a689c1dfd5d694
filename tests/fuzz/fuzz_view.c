/* Fresh values that are read through index maps: what people hand to products and convolutions is
 * often a part of something, turned, repeated or flipped. */
#include "fuzz.h"

static Value leaf(Fuzz *f, DType d, uint32_t rank, const Sym *dim)
{
	return fuzz_input(f, d, rank, dim);
}

static Value moved(Value x, Node n)
{
	x.n = n;
	return x;
}

static Value turned(Fuzz *f, DType d, uint32_t rank, const Sym *dim)
{
	uint32_t perm[MAX_RANK];
	Sym from[MAX_RANK];
	for (uint32_t k = 0; k < rank; k++) {
		uint32_t j = fuzz_below(f, k + 1);
		perm[k] = perm[j];
		perm[j] = k;
	}
	for (uint32_t k = 0; k < rank; k++)
		from[perm[k]] = dim[k];
	Value x = leaf(f, d, rank, from);
	return moved(x, b_permute(&f->b, x.n, perm));
}

/* Of two neighbours in one, or of all of them. */
static Value merged(Fuzz *f, DType d, uint32_t rank, const Sym *dim)
{
	SymTab *t = f->ir->syms;
	Sym from[MAX_RANK];
	uint32_t n = 0, at = fuzz_below(f, rank);
	bool all = fuzz_chance(f, 40);
	for (uint32_t k = 0; k < rank; k++)
		if (n && (all || k == at))
			from[n - 1] = sym_mul(t, from[n - 1], dim[k]);
		else
			from[n++] = dim[k];
	Value x = leaf(f, d, n, from);
	return moved(x, b_reshape(&f->b, x.n, rank, dim));
}

static Value part(Fuzz *f, DType d, uint32_t rank, const Sym *dim)
{
	SymTab *t = f->ir->syms;
	Sym from[MAX_RANK];
	uint32_t at = fuzz_below(f, rank);
	int64_t step = fuzz_chance(f, 30) ? 2 + fuzz_below(f, 2) : 1, low = fuzz_below(f, 3);
	for (uint32_t k = 0; k < rank; k++)
		from[k] = dim[k];
	Sym end = sym_addi(t, sym_muli(t, dim[at], step), low);
	from[at] = sym_addi(t, end, fuzz_below(f, 2));
	Value x = leaf(f, d, rank, from);
	return moved(x, b_slice(&f->b, x.n, (int)at, sym_int(t, low), end, sym_int(t, step)));
}

/* One dimension is a smaller one several times: as a whole (repeat), or element by element (tile of
 * what is turned). */
static Value repeated(Fuzz *f, DType d, uint32_t rank, const Sym *dim)
{
	SymTab *t = f->ir->syms;
	Sym from[MAX_RANK], wide[MAX_RANK];
	uint32_t at = fuzz_below(f, rank), map[MAX_RANK];
	int64_t n, by;
	if (rank + 1 > MAX_RANK || !sym_is_const(t, dim[at], &n))
		return leaf(f, d, rank, dim);
	for (by = 1 + fuzz_below(f, (uint32_t)n); n % by; by--)
		;
	bool inside = fuzz_chance(f, 50);
	for (uint32_t k = 0, w = 0; k < rank; k++) {
		from[k] = k == at ? sym_int(t, n / by) : dim[k];
		if (k == at && !inside)
			wide[w++] = sym_int(t, by);
		map[k] = w;
		wide[w++] = from[k];
		if (k == at && inside)
			wide[w++] = sym_int(t, by);
	}
	Value x = leaf(f, d, rank, from);
	return moved(x, b_reshape(&f->b, b_broadcast_in_dim(&f->b, x.n, rank + 1, wide, map), rank,
				  dim));
}

static Value expanded(Fuzz *f, DType d, uint32_t rank, const Sym *dim)
{
	Sym from[MAX_RANK];
	uint32_t at = fuzz_below(f, rank), map[MAX_RANK], n = 0;
	bool keeps = fuzz_chance(f, 50);
	for (uint32_t k = 0; k < rank; k++)
		if (k != at || keeps) {
			map[n] = k;
			from[n++] = k == at ? sym_int(f->ir->syms, 1) : dim[k];
		}
	Value x = leaf(f, d, n, from);
	return moved(x, b_broadcast_in_dim(&f->b, x.n, rank, dim, map));
}

static Value flipped(Fuzz *f, DType d, uint32_t rank, const Sym *dim)
{
	Value x = leaf(f, d, rank, dim);
	return moved(x, b_reverse(&f->b, x.n, (int)fuzz_below(f, rank)));
}

/* The end before the beginning, as a circular pad and a roll have it. */
static Value rolled(Fuzz *f, DType d, uint32_t rank, const Sym *dim)
{
	SymTab *t = f->ir->syms;
	int at = (int)fuzz_below(f, rank);
	Value x = leaf(f, d, rank, dim);
	Sym by = fuzz_amount(f, 0, dim[at]), one = sym_int(t, 1);
	Node in[] = {b_slice(&f->b, x.n, at, by, dim[at], one),
		     b_slice(&f->b, x.n, at, sym_int(t, 0), by, one)};
	return moved(x, b_concat(&f->b, in, 2, at));
}

Value fuzz_view(Fuzz *f, DType d, uint32_t rank, const Sym *dim)
{
	static Value (*const ways[])(Fuzz *, DType, uint32_t, const Sym *) = {
		turned, merged, part, repeated, repeated, expanded, flipped, rolled};
	if (rank == 0 || fuzz_chance(f, 45))
		return leaf(f, d, rank, dim);
	return ways[fuzz_below(f, sizeof ways / sizeof *ways)](f, d, rank, dim);
}
