/* Random reductions, contractions, convolutions, look-ups and loops. */
#include <math.h>

#include "fuzz.h"

/* Bounds of a sum of n values like x; its rounding is that of n additions. */
static Value sum_of(Fuzz *f, Node n, Value x, double count)
{
	int mag = x.mag + fuzz_log2(count);
	Value v = fuzz_value(f, n, x.gran, mag, count * x.err);
	if (v.err > 0)
		v.err += ldexp(count, mag - 24);
	return v;
}

/* The lesser or greater of x and v. */
static Node bound(Fuzz *f, Op op, Node x, double v)
{
	return x.i ? b_bin_scalar(&f->b, op, x, v) : x;
}

static bool step_reduce(Fuzz *f)
{
	static const char *const kinds[] = {"sum", "max", "min", "sum", "prod", "and", "or", "xor"};
	Value x;
	int64_t dims[MAX_RANK];
	uint32_t n = 0;
	int64_t least = 1;
	double count = 1;
	if (!fuzz_pick(f, fuzz_not_scalar, &x))
		return false;
	DType d = fuzz_dtype(f, x);
	for (uint32_t k = 0; k < fuzz_rank(f, x); k++)
		if (fuzz_chance(f, 45)) {
			dims[n++] = k;
			count *= (double)fuzz_max(f, fuzz_dim(f, x, k));
			least = fuzz_min(f, fuzz_dim(f, x, k)) ? least : 0;
		}
	const char *name = kinds[fuzz_below(f, dtype_is_float(d) ? 4 : 8)];
	Attr a[] = {attr_none(), attr_str(f->ir, name), fuzz_ints(f, dims, n),
		    attr_dtype(dtype_compute(d))};
	Node y = fuzz_node(f, OP_reduce, &x.n, 1, a, 4);
	if (*name == 's')
		return fuzz_push(f, sum_of(f, y, x, count));
	bool empty = least < 1, extreme = *name == 'm';
	if (empty && extreme && dtype_is_float(d)) { /* of nothing: an infinity, of which nothing
	                                                can be predicted */
		y = bound(f, OP_minimum, y, ldexp(1, x.mag));
		y = bound(f, OP_maximum, y, -ldexp(1, x.mag));
		x.gran = x.gran < x.mag ? x.gran : x.mag;
	}
	int mag = *name == 'p' || empty ? 64 : x.mag + !extreme; /* the sign of bits that differ */
	return fuzz_push(f, fuzz_value(f, y, x.gran, mag, x.err));
}

static bool step_arg_reduce(Fuzz *f)
{
	Value x;
	if (!fuzz_pick(f, fuzz_is_exact, &x) || !fuzz_rank(f, x) || fuzz_dtype(f, x) == DT_bool)
		return false;
	uint32_t dim = fuzz_below(f, fuzz_rank(f, x));
	if (fuzz_min(f, fuzz_dim(f, x, dim)) < 1)
		return false;
	Attr a[] = {attr_none(), attr_str(f->ir, fuzz_chance(f, 50) ? "max" : "min"),
		    attr_int(f->ir, dim)};
	return fuzz_push(f, (Value){fuzz_node(f, OP_arg_reduce, &x.n, 1, a, 3), 0, 16, 0});
}

static bool step_cumulative(Fuzz *f)
{
	Value x;
	if (!fuzz_pick(f, fuzz_not_scalar, &x))
		return false;
	int64_t dim = fuzz_below(f, fuzz_rank(f, x));
	bool sum = fuzz_chance(f, 60);
	Attr a[] = {attr_none(), attr_str(f->ir, sum ? "sum" : "max"), attr_int(f->ir, dim),
		    attr_bool(fuzz_chance(f, 30))};
	Node y = fuzz_node(f, OP_cumulative, &x.n, 1, a, 4);
	double count = (double)fuzz_max(f, fuzz_dim(f, x, (uint32_t)dim));
	if (sum)
		return fuzz_push(f, sum_of(f, y, x, count));
	x.n = y;
	return fuzz_push(f, x);
}

/* ---- contractions ---- */

static Value dot(Fuzz *f, Node n, Value x, Value y, double count)
{
	Value p = {.gran = x.gran + y.gran,
		   .mag = x.mag + y.mag,
		   .err = ldexp(x.err, y.mag) + ldexp(y.err, x.mag) + x.err * y.err};
	if (x.gran == -100 || y.gran == -100)
		p.err += ldexp(1, p.mag - 23);
	return sum_of(f, n, p, count);
}

static bool fits_contract(const Fuzz *f, const Value *x)
{
	return fuzz_rank(f, *x) > 0 && fuzz_rank(f, *x) < 5 && fuzz_dtype(f, *x) != DT_bool;
}

/* Integers are added up in any other kind of integer, and multiplied by one. */
static DType another(Fuzz *f, DType d)
{
	static const DType ints[] = {DT_i32, DT_i64, DT_i8, DT_u8, DT_i16};
	return dtype_is_float(d) || fuzz_chance(f, 50)
		       ? d
		       : ints[fuzz_below(f, sizeof ints / sizeof *ints)];
}

static DType accumulator(Fuzz *f, DType d)
{
	return dtype_is_float(d) ? dtype_compute(d) : another(f, d);
}

/* With one more dimension of extent 1. */
static Value with_one(Fuzz *f, Value x, uint32_t at)
{
	Sym dim[MAX_RANK];
	uint32_t rank = fuzz_rank(f, x);
	for (uint32_t k = 0; k <= rank; k++)
		dim[k] = k == at ? sym_int(f->ir->syms, 1) : fuzz_dim(f, x, k - (k > at));
	x.n = b_reshape(&f->b, x.n, rank + 1, dim);
	return x;
}

/* A value with itself, perhaps turned or flipped: axes in pairs, free on both sides, or added up.
 */
static bool step_gram(Fuzz *f)
{
	Value x;
	uint32_t batch[MAX_RANK][2], sum[MAX_RANK][2], nbatch = 0, nsum = 0, perm[MAX_RANK];
	double count = 1;
	if (!fuzz_pick(f, fits_contract, &x) || fuzz_rank(f, x) > 3)
		return false;
	Value y = x;
	uint32_t rank = fuzz_rank(f, x);
	for (uint32_t k = 0; k < rank; k++)
		perm[k] = rank - 1 - k;
	bool turns = fuzz_chance(f, 40);
	y.n = turns                ? b_permute(&f->b, x.n, perm)
	      : fuzz_chance(f, 30) ? b_reverse(&f->b, x.n, (int)fuzz_below(f, rank))
				   : x.n;
	for (uint32_t k = 0; k < rank; k++) {
		uint32_t role = fuzz_below(f, 3), other = turns ? rank - 1 - k : k;
		if (role == 0)
			batch[nbatch][0] = k, batch[nbatch++][1] = other;
		else if (role == 1)
			sum[nsum][0] = k, sum[nsum++][1] = other;
		count *= role == 1 ? (double)fuzz_max(f, fuzz_dim(f, x, k)) : 1;
	}
	Node z = b_contract(&f->b, x.n, y.n, (const uint32_t(*)[2])batch, nbatch,
			    (const uint32_t(*)[2])sum, nsum);
	return z.i && fuzz_small(f, node_rank(f->g, z), node_type(f->g, z)->dim) &&
	       fuzz_push(f, dot(f, z, x, y, count));
}

/* The axes of x in random roles; y is fresh: its axes stand in random order. */
static bool step_contract(Fuzz *f)
{
	Value x;
	int64_t axes[4][MAX_RANK]; /* batch and sum of x, batch and sum of y */
	uint32_t n[2] = {0, 0}, ry = 0, order[MAX_RANK];
	Sym dim[MAX_RANK], shuffled[MAX_RANK];
	double count = 1;
	if (!fuzz_pick(f, fits_contract, &x))
		return false;
	uint32_t one = fuzz_chance(f, 15) ? fuzz_below(f, fuzz_rank(f, x) + 1) : MAX_RANK;
	x = one < MAX_RANK ? with_one(f, x, one) : x;
	for (uint32_t k = 0; k < fuzz_rank(f, x); k++) {
		uint32_t role = k == one ? 1 : fuzz_below(f, one < MAX_RANK ? 4 : 3) % 3;
		role = one < MAX_RANK && role == 1 && k != one ? 2 : role;
		if (role == 2)
			continue;
		axes[role][n[role]] = k;
		axes[2 + role][n[role]++] = ry;
		dim[ry++] = fuzz_dim(f, x, k);
		count *= role == 1 ? (double)fuzz_max(f, fuzz_dim(f, x, k)) : 1;
	}
	for (uint32_t k = fuzz_below(f, 3); k > 0; k--)
		dim[ry++] = fuzz_chance(f, 15) ? sym_int(f->ir->syms, 1) : fuzz_extent(f);
	for (uint32_t k = 0; k < ry; k++) {
		uint32_t j = fuzz_below(f, k + 1);
		order[k] = order[j];
		order[j] = k;
	}
	uint32_t where[MAX_RANK];
	for (uint32_t k = 0; k < ry; k++) {
		shuffled[k] = dim[order[k]];
		where[order[k]] = k;
	}
	for (uint32_t role = 0; role < 2; role++)
		for (uint32_t k = 0; k < n[role]; k++)
			axes[2 + role][k] = where[axes[2 + role][k]];
	if (!fuzz_small(f, ry, shuffled))
		return false;
	Value y = fuzz_view(f, another(f, fuzz_dtype(f, x)), ry, shuffled);
	Attr a[] = {attr_none(),
		    attr_none(),
		    fuzz_ints(f, axes[0], n[0]),
		    fuzz_ints(f, axes[2], n[0]),
		    fuzz_ints(f, axes[1], n[1]),
		    fuzz_ints(f, axes[3], n[1]),
		    attr_dtype(accumulator(f, fuzz_dtype(f, x)))};
	bool swap = fuzz_chance(f, 30);
	Attr b[] = {a[0], a[1], a[3], a[2], a[5], a[4], a[6]};
	Node in[] = {swap ? y.n : x.n, swap ? x.n : y.n};
	Node z = fuzz_node(f, OP_contract, in, 2, swap ? b : a, 7);
	return z.i && fuzz_small(f, node_rank(f->g, z), node_type(f->g, z)->dim) &&
	       fuzz_push(f, dot(f, z, x, y, count));
}

/* ---- convolutions ---- */

/* [N, G, C, spatial...] from a value of the pool by adding ones; false if it has too many dims. */
static bool conv_operand(Fuzz *f, Value *x, uint32_t nsp)
{
	Sym dim[MAX_RANK];
	uint32_t rank = fuzz_rank(f, *x), want = 3 + nsp, n = 0;
	if (rank > want || rank < nsp)
		return false;
	uint32_t skip = rank > nsp && rank < want ? fuzz_below(f, 3) : 0;
	for (uint32_t k = 0; k < want; k++) {
		bool take = n < rank && (want - k <= rank - n ||
					 (k >= skip && want - k > rank - n && fuzz_chance(f, 50)));
		dim[k] = take ? fuzz_dim(f, *x, n++) : sym_int(f->ir->syms, 1);
	}
	x->n = b_reshape(&f->b, x->n, want, dim);
	return n == rank && x->n.i;
}

/* A value's own padding by the widths of a convolution that reads it, but not always with zeros:
 * rank dims, the last nsp of them [low, high] wider. */
static bool pad_like_conv(Fuzz *f, Value x, uint32_t nsp, const Sym *low, const Sym *high)
{
	Sym lo[MAX_RANK], hi[MAX_RANK], zero = sym_int(f->ir->syms, 0);
	uint32_t rank = fuzz_rank(f, x);
	for (uint32_t k = 0; k < rank; k++) {
		lo[k] = k + nsp < rank ? zero : low[k + nsp - rank];
		hi[k] = k + nsp < rank ? zero : high[k + nsp - rank];
	}
	Node value = b_full(&f->b, fuzz_dtype(f, x), fuzz_chance(f, 30) ? 0 : 1, 0, NULL);
	Attr a[] = {attr_none(), attr_none(), attr_ints(lo, rank), attr_ints(hi, rank),
		    fuzz_ints(f, (int64_t[MAX_RANK]){0}, rank)};
	x.n = fuzz_node(f, OP_pad, (Node[]){x.n, value}, 2, a, 5);
	x.gran = x.gran < 0 ? x.gran : 0;
	x.mag = x.mag > 0 ? x.mag : 0;
	return x.n.i && fuzz_small(f, rank, node_type(f->g, x.n)->dim) && fuzz_push(f, x);
}

/* x and below are one value; the dims of x are those of a convolution's operand. */
static bool conv_node(Fuzz *f, Value x, uint32_t nsp, Value below)
{
	SymTab *t = f->ir->syms;
	Sym high[3];
	int64_t dilation[3], dilation_in[3], kernel;
	Sym wdim[6] = {fuzz_dim(f, x, 1), sym_int(t, 1 + fuzz_below(f, 9)), fuzz_dim(f, x, 2)},
	    size[3], stride[3], pad[3];
	bool padded = fuzz_rank(f, below) >= nsp && fuzz_chance(f, 50), first = fuzz_chance(f, 50);
	double count = (double)fuzz_max(f, wdim[2]);
	for (uint32_t k = 0; k < nsp; k++) {
		Sym d = fuzz_dim(f, x, 3 + k);
		kernel = 1 + fuzz_below(f, 3);
		stride[k] = fuzz_chance(f, 30) ? fuzz_amount(f, 1, sym_int(t, 3)) : sym_int(t, 1);
		bool wide = fuzz_chance(f, 25); /* whole taps lie on padding */
		dilation[k] = 1 + (wide ? 1 + fuzz_below(f, 12) : fuzz_chance(f, 20));
		dilation_in[k] = 1 + fuzz_chance(f, 15);
		pad[k] = sym_int(t, wide ? fuzz_below(f, (uint32_t)(kernel * dilation[k]))
					 : (int64_t)fuzz_below(f, 4) - 1);
		if (fuzz_chance(f, 20))
			pad[k] = fuzz_amount(f, -2, sym_int(t, kernel * dilation[k]));
		size[k] = !sym_is(t, stride[k], 1) ? sym_addi(t, sym_floordiv(t, d, stride[k]), 1)
						   : sym_addi(t, d, fuzz_below(f, 2));
		wdim[3 + k] = sym_int(t, kernel);
		count *= (double)kernel;
		Sym reach = sym_addi(t, sym_mul(t, sym_addi(t, size[k], -1), stride[k]),
				     (kernel - 1) * dilation[k]);
		high[k] = sym_sub(t, sym_sub(t, reach, pad[k]), sym_addi(t, d, -1));
		padded &= dilation_in[k] == 1 && fuzz_min(f, pad[k]) >= 0 &&
			  fuzz_min(f, high[k]) >= 0 &&
			  fuzz_dim(f, below, fuzz_rank(f, below) - nsp + k).i == d.i;
	}
	if (!fuzz_small(f, 3 + nsp, wdim))
		return false;
	Value w = fuzz_view(f, another(f, fuzz_dtype(f, x)), 3 + nsp, wdim);
	Attr a[] = {attr_none(),
		    attr_none(),
		    attr_ints(stride, nsp),
		    fuzz_ints(f, dilation, nsp),
		    fuzz_ints(f, dilation_in, nsp),
		    attr_ints(pad, nsp),
		    attr_ints(size, nsp),
		    attr_dtype(accumulator(f, fuzz_dtype(f, x)))};
	if (padded && first && !pad_like_conv(f, below, nsp, pad, high))
		return false;
	Node y = fuzz_node(f, OP_conv, (Node[]){x.n, w.n}, 2, a, 8);
	return y.i && fuzz_small(f, node_rank(f->g, y), node_type(f->g, y)->dim) &&
	       fuzz_push(f, dot(f, y, x, w, count)) &&
	       (!padded || first || pad_like_conv(f, below, nsp, pad, high));
}

static bool step_conv(Fuzz *f)
{
	Value x, below;
	uint32_t nsp = 1 + fuzz_below(f, 2);
	if (!fuzz_pick(f, fits_contract, &x))
		return false;
	below = x;
	return conv_operand(f, &x, nsp) && conv_node(f, x, nsp, below);
}

/* ---- look-ups ---- */

static bool step_gather(Fuzz *f)
{
	static const char *const modes[] = {"check", "clamp", "fill", "promise"};
	Value x;
	Sym dim[MAX_RANK];
	if (!fuzz_pick(f, fuzz_not_scalar, &x) || f->is_body)
		return false;
	uint32_t rank = fuzz_rank(f, x), batch = rank > 1 && fuzz_chance(f, 30), n = 0,
		 extra = fuzz_below(f, 3);
	int64_t axis = batch + fuzz_below(f, rank - batch),
		least = fuzz_min(f, fuzz_dim(f, x, (uint32_t)axis));
	if (batch)
		dim[n++] = fuzz_dim(f, x, 0);
	for (uint32_t k = 0; k < extra; k++)
		dim[n++] = fuzz_extent(f);
	dim[n++] = sym_int(f->ir->syms, 1);
	uint32_t mode = fuzz_below(f, 4);
	int64_t low = mode == 3   ? 0
		      : mode == 0 ? -least
				  : -2,
		high = mode == 0 || mode == 3 ? least - 1 : least + 2;
	if (!fuzz_small(f, n, dim) || least < 1)
		return false;
	Value i = fuzz_index(f, n, dim, low, high);
	Attr a[] = {attr_none(), attr_none(), attr_int(f->ir, batch), fuzz_ints(f, &axis, 1),
		    attr_str(f->ir, modes[mode])};
	x.n = fuzz_node(f, OP_gather, (Node[]){x.n, i.n}, 2, a, 5);
	return x.n.i && fuzz_small(f, fuzz_rank(f, x), node_type(f->g, x.n)->dim) &&
	       fuzz_push(f, x);
}

/* Starts out of range are clamped. */
static bool step_slice_at(Fuzz *f)
{
	Value x;
	Node in[1 + MAX_RANK];
	Sym size[MAX_RANK];
	if (!fuzz_pick(f, fuzz_not_scalar, &x) || f->is_body)
		return false;
	uint32_t rank = fuzz_rank(f, x);
	in[0] = x.n;
	for (uint32_t k = 0; k < rank; k++) {
		int64_t least = fuzz_min(f, fuzz_dim(f, x, k));
		bool whole = fuzz_chance(f, 50) || least < 1;
		in[1 + k] = whole ? b_full_int(&f->b, DT_i64, 0, 0, NULL)
				  : fuzz_index(f, 0, NULL, -1, least + 1).n;
		size[k] = whole ? fuzz_dim(f, x, k) : fuzz_amount(f, 1, fuzz_dim(f, x, k));
	}
	Attr a[] = {attr_none(), attr_int(f->ir, rank), attr_ints(size, rank)};
	x.n = fuzz_node(f, OP_slice_at, in, 1 + rank, a, 3);
	return fuzz_push(f, x);
}

/* ---- loops ---- */

/* The body: c' = tanh(c / 2 + something of x), which keeps errors bounded. */
static Graph *scan_body(Fuzz *f, Value c, Value x, const Sym *dim, uint32_t rank, Value *y)
{
	Graph *g = graph_new(f->ir, "step");
	Fuzz in = {.g = g,
		   .ir = f->ir,
		   .b = {.g = g},
		   .rng = f->rng,
		   .prefix = "b",
		   .is_body = true,
		   .header = f->header,
		   .seed = f->seed,
		   .size = {f->size[0], f->size[1], f->size[2]}};
	TypeId type = ir_type(f->ir, DT_f32, rank, dim);
	Value cin = {graph_add_input(g, "c", INPUT_USER, type), -100, 1, c.err + 1e-5};
	Value xin = {graph_add_input(g, "x", INPUT_USER, type), x.gran, x.mag, x.err};
	array_push(f->ir->ctx->arena, &in.pool, cin);
	array_push(f->ir->ctx->arena, &in.pool, xin);
	for (uint32_t k = 0, n = 1 + fuzz_below(f, 4); k < n; k++)
		fuzz_scalar_steps[fuzz_below(&in, 8)].step(&in);
	*y = in.pool.data[in.pool.n - 1];
	Node half = b_bin_scalar(&in.b, OP_mul, cin.n, 0.5);
	Node next = b_un(&in.b, OP_tanh, b_bin(&in.b, OP_add, half, xin.n));
	if (!next.i)
		return NULL;
	graph_add_output(g, "c", next, -1);
	graph_add_output(g, "y", y->n, -1);
	graph_dce(g);
	f->rng = in.rng;
	f->seed = in.seed;
	return g;
}

static bool fits_scan(const Fuzz *f, const Value *x)
{
	return fuzz_rank(f, *x) > 0 && fuzz_dtype(f, *x) == DT_f32 && x->mag <= 2 && x->err < 1e-3;
}

static bool step_scan(Fuzz *f)
{
	Value x, y;
	Sym dim[MAX_RANK];
	if (!fuzz_pick(f, fits_scan, &x) || f->is_body)
		return false;
	uint32_t rank = fuzz_rank(f, x) - 1;
	Sym length = fuzz_dim(f, x, 0);
	for (uint32_t k = 0; k < rank; k++)
		dim[k] = fuzz_dim(f, x, k + 1);
	Value c = fuzz_input(f, DT_f32, rank, dim);
	c.n = b_un(&f->b, OP_tanh, c.n);
	c.err = 1e-6;
	Graph *body = scan_body(f, c, x, dim, rank, &y);
	if (!body)
		return false;
	Attr a[] = {attr_int(f->ir, 1), attr_int(f->ir, 1), attr_int(f->ir, 0),
		    attr_graph(body),   attr_sym(length),   attr_bool(fuzz_chance(f, 40))};
	Node s = fuzz_node(f, OP_scan, (Node[]){c.n, x.n}, 2, a, 6);
	if (!s.i)
		return false;
	bool first = fuzz_push(f, (Value){b_get(&f->b, s, 0), -100, 0, 2 * x.err + 2e-5});
	y.n = b_get(&f->b, s, 1);
	return fuzz_push(f, y) && first;
}

const FuzzChoice fuzz_sum_steps[] = {
	{step_reduce, 5},
	{step_arg_reduce, 1},
	{step_cumulative, 1},
	{step_contract, 4},
	{step_gram, 1},
	{step_conv, 4},
	{step_gather, 2},
	{step_slice_at, 1},
	{step_scan, 1},
	{fuzz_own_row, 3},
	{NULL, 0},
};
