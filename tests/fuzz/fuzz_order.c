/* Random sorting, scattering, updates in place, overlap-adds. */
#include <math.h>

#include "fuzz.h"

static bool step_sort(Fuzz *f)
{
	Value x;
	if (!fuzz_pick(f, fuzz_not_scalar, &x))
		return false;
	Attr a[] = {attr_none(), attr_int(f->ir, fuzz_below(f, fuzz_rank(f, x))),
		    attr_bool(fuzz_chance(f, 50)), attr_bool(true)};
	Node s = fuzz_node(f, OP_sort, &x.n, 1, a, 4);
	if (!s.i)
		return false;
	bool exact = fuzz_is_exact(f, &x);
	x.n = b_get(&f->b, s, 0);
	return fuzz_push(f, x) && (!exact || fuzz_push(f, (Value){b_get(&f->b, s, 1), 0, 16, 0}));
}

/* The shape of indices [B..., I..., 1] and of what they look up; false when too large. */
typedef struct {
	int64_t axis, batch, least;
	Sym index[MAX_RANK], update[MAX_RANK];
	uint32_t nindex, nupdate;
	double count; /* of indices that may name one element */
} Scatter;

static bool scatter_shape(Fuzz *f, Value x, Scatter *s)
{
	uint32_t rank = fuzz_rank(f, x), extra = fuzz_below(f, 3);
	*s = (Scatter){.batch = rank > 1 && fuzz_chance(f, 30), .count = 1};
	s->axis = s->batch + fuzz_below(f, rank - (uint32_t)s->batch);
	s->least = fuzz_min(f, fuzz_dim(f, x, (uint32_t)s->axis));
	if (s->batch)
		s->index[s->nindex++] = s->update[s->nupdate++] = fuzz_dim(f, x, 0);
	for (uint32_t k = 0; k < extra; k++) {
		Sym d = fuzz_extent(f);
		s->index[s->nindex++] = s->update[s->nupdate++] = d;
		s->count *= (double)fuzz_max(f, d);
	}
	s->index[s->nindex++] = sym_int(f->ir->syms, 1);
	for (uint32_t k = (uint32_t)s->batch; k < rank; k++)
		if (k != s->axis)
			s->update[s->nupdate++] = fuzz_dim(f, x, k);
	return s->least > 0 && fuzz_small(f, s->nindex, s->index) &&
	       fuzz_small(f, s->nupdate, s->update);
}

static bool step_scatter(Fuzz *f)
{
	static const char *const combines[] = {"set", "add", "min", "max"};
	static const char *const modes[] = {"check", "clamp", "fill", "promise"};
	Value x;
	Scatter s;
	if (!fuzz_pick(f, fuzz_not_scalar, &x) || fuzz_dtype(f, x) == DT_bool || f->is_body ||
	    !scatter_shape(f, x, &s))
		return false;
	uint32_t mode = fuzz_below(f, 4), combine = fuzz_below(f, 4);
	bool wild = mode == 1 || mode == 2;
	Value i = fuzz_index(f, s.nindex, s.index,
			     wild   ? -2
			     : mode ? 0
				    : -s.least,
			     wild ? s.least + 2 : s.least - 1);
	Value u = fuzz_input(f, fuzz_dtype(f, x), s.nupdate, s.update);
	Attr a[] = {attr_none(),
		    attr_none(),
		    attr_none(),
		    attr_int(f->ir, s.batch),
		    fuzz_ints(f, &s.axis, 1),
		    attr_str(f->ir, combines[combine]),
		    attr_str(f->ir, modes[mode]),
		    attr_bool(false),
		    attr_bool(false)};
	Node n = fuzz_node(f, OP_scatter, (Node[]){x.n, i.n, u.n}, 3, a, 9);
	int gran = x.gran < u.gran ? x.gran : u.gran, mag = x.mag > u.mag ? x.mag : u.mag;
	if (combine != 1)
		return fuzz_push(f, fuzz_value(f, n, gran, mag, x.err));
	mag += fuzz_log2(s.count + 1);
	Value v = fuzz_value(f, n, gran, mag, x.err);
	if (v.err > 0)
		v.err *= s.count + 1;
	return fuzz_push(f, v);
}

static bool step_update_slice(Fuzz *f)
{
	Value x;
	Node in[2 + MAX_RANK];
	Sym dim[MAX_RANK];
	if (!fuzz_pick(f, fuzz_not_scalar, &x) || f->is_body)
		return false;
	uint32_t rank = fuzz_rank(f, x);
	for (uint32_t k = 0; k < rank; k++) {
		int64_t least = fuzz_min(f, fuzz_dim(f, x, k));
		bool whole = fuzz_chance(f, 40) || least < 1;
		dim[k] = whole ? fuzz_dim(f, x, k) : fuzz_amount(f, 1, fuzz_dim(f, x, k));
		in[2 + k] = fuzz_index(f, 0, NULL, -1, least + 1).n;
	}
	Value u = fuzz_input(f, fuzz_dtype(f, x), rank, dim);
	in[0] = x.n;
	in[1] = u.n;
	Attr a[] = {attr_none(), attr_none(), attr_int(f->ir, rank)};
	Node n = fuzz_node(f, OP_update_slice, in, 2 + rank, a, 3);
	return fuzz_push(f, (Value){n, x.gran < u.gran ? x.gran : u.gran,
				    x.mag > u.mag ? x.mag : u.mag, x.err});
}

static bool fits_fold(const Fuzz *f, const Value *x)
{
	return fuzz_rank(f, *x) >= 2 && fuzz_dtype(f, *x) != DT_bool;
}

/* Often the way back from a window. */
static bool step_fold(Fuzz *f)
{
	Value x;
	if (!fuzz_pick(f, fits_fold, &x))
		return false;
	uint32_t rank = fuzz_rank(f, x);
	SymTab *t = f->ir->syms;
	int64_t dim = fuzz_below(f, rank - 1);
	double size = (double)fuzz_max(f, fuzz_dim(f, x, rank - 1));
	Sym extent = sym_add(t, fuzz_dim(f, x, (uint32_t)dim), fuzz_amount(f, 0, sym_int(t, 3)));
	Attr a[] = {attr_none(),
		    attr_int(f->ir, dim),
		    attr_sym(extent),
		    attr_sym(fuzz_amount(f, 1, sym_int(t, 4))),
		    attr_sym(fuzz_amount(f, 1, sym_int(t, 3))),
		    attr_sym(fuzz_amount(f, -2, sym_int(t, 3)))};
	Node n = fuzz_node(f, OP_fold, &x.n, 1, a, 6);
	if (!n.i || !fuzz_small(f, rank - 1, node_type(f->g, n)->dim))
		return false;
	Value v = fuzz_value(f, n, x.gran, x.mag + fuzz_log2(size), size * x.err);
	if (v.err > 0)
		v.err *= size;
	return fuzz_push(f, v);
}

const FuzzChoice fuzz_order_steps[] = {
	{step_sort, 1}, {step_scatter, 2}, {step_update_slice, 1}, {step_fold, 1}, {NULL, 0},
};
