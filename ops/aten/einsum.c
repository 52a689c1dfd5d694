/* einsum and tensordot: reduced to contractions of pairs. */
#include "ops/aten/priv.h"

#include <string.h>

enum { MAX_OPERANDS = 16, ELLIPSIS = 128, MAX_LABEL = 128 + MAX_RANK };

/* A value with a label per dim. */
typedef struct {
	Node x;
	uint32_t rank;
	uint8_t label[MAX_RANK];
} Labelled;

typedef struct {
	Build *b;
	uint32_t n;
	Labelled operand[MAX_OPERANDS];
	uint32_t nout;
	uint8_t out[MAX_RANK];
	Sym extent[MAX_LABEL];
	uint32_t count[MAX_LABEL]; /* operands not yet consumed, and the output, that have the label
				    */
} Einsum;

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Reads labels up to ',' or '-' or the end. `rank`: of the operand, or 0 with `dots` the dims
 * that an ellipsis stands for. */
static bool read_labels(Einsum *e, const char **p, uint32_t rank, uint32_t dots, uint8_t *label,
			uint32_t *n)
{
	uint32_t letters = 0;
	for (const char *q = *p; *q && *q != ',' && *q != '-'; q++)
		letters += is_letter(*q);
	if (rank)
		dots = rank >= letters ? rank - letters : 0;
	*n = 0;
	for (; **p && **p != ',' && **p != '-'; (*p)++) {
		if (**p == ' ')
			continue;
		if (is_letter(**p) && *n < MAX_RANK) {
			label[(*n)++] = (uint8_t) * *p;
		} else if (strncmp(*p, "...", 3) == 0) {
			/* Aligned at the right: the last dim of every ellipsis has one label. */
			for (uint32_t k = 0; k < dots && *n < MAX_RANK; k++)
				label[(*n)++] = (uint8_t)(ELLIPSIS + MAX_RANK - dots + k);
			*p += 2;
		} else {
			b_error(e->b, "cannot read the einsum equation at \"%.8s\"", *p);
			return false;
		}
	}
	return true;
}

/* Sets the output without "->": the ellipsis, then the labels that occur once, in order. */
static void implicit_output(Einsum *e)
{
	uint32_t seen[MAX_LABEL] = {0};
	for (uint32_t k = 0; k < e->n; k++)
		for (uint32_t d = 0; d < e->operand[k].rank; d++)
			seen[e->operand[k].label[d]]++;
	for (uint32_t l = ELLIPSIS; l < MAX_LABEL; l++)
		if (seen[l] && e->nout < MAX_RANK)
			e->out[e->nout++] = (uint8_t)l;
	for (uint32_t l = 0; l < ELLIPSIS; l++)
		if (seen[l] == 1 && e->nout < MAX_RANK)
			e->out[e->nout++] = (uint8_t)l;
}

static bool read_equation(Einsum *e, const char *p)
{
	uint32_t dots = 0;
	for (uint32_t k = 0; k < e->n; k++) {
		Labelled *v = &e->operand[k];
		uint32_t rank = aten_rank(e->b, v->x), letters = 0;
		for (const char *q = p; *q && *q != ',' && *q != '-'; q++)
			letters += is_letter(*q);
		if (rank > letters && rank - letters > dots)
			dots = rank - letters;
		TRY(read_labels(e, &p, rank, 0, v->label, &v->rank));
		if (v->rank != rank) {
			b_error(e->b, "einsum names %u dims of an operand of rank %u", v->rank,
				rank);
			return false;
		}
		p += strspn(p, " ");
		bool last = k + 1 == e->n;
		if (last ? *p && strncmp(p, "->", 2) != 0 : *p != ',')
			return b_error(e->b,
				       "the equation names %s operands than the %u that are given",
				       last ? "more" : "fewer", e->n)
				.i;
		p += *p == ',';
	}
	if (strncmp(p, "->", 2) == 0) {
		p += 2;
		return read_labels(e, &p, 0, dots, e->out, &e->nout);
	}
	implicit_output(e);
	return true;
}

/* ---- one operand ---- */

static int find(const Labelled *v, uint8_t label)
{
	for (uint32_t k = 0; k < v->rank; k++)
		if (v->label[k] == label)
			return (int)k;
	return -1;
}

static void drop_dim(Labelled *v, uint32_t dim)
{
	memmove(v->label + dim, v->label + dim + 1, v->rank - dim - 1);
	v->rank--;
}

/* Selects a diagonal for a label that occurs twice: of equal positions, by a mask and a sum. */
static void take_diagonals(Build *b, Labelled *v)
{
	for (uint32_t k = 0; k < v->rank; k++)
		for (uint32_t j = k + 1; j < v->rank;) {
			if (v->label[j] != v->label[k]) {
				j++;
				continue;
			}
			Shape s = aten_shape(b, v->x);
			Node i = aten_iota_dim(b, &s, k, DT_i64);
			Node on = b_bin(b, OP_eq, i, aten_iota_dim(b, &s, j, DT_i64));
			Node x = b_select(b, on, v->x, aten_like(b, v->x, 0));
			v->x = aten_sum(b, x, 1u << j, false);
			drop_dim(v, j);
		}
}

/* Leaves out extents of 1 that another operand repeats. */
static void squeeze_repeated(Einsum *e, Labelled *v)
{
	SymTab *t = b_syms(e->b);
	for (uint32_t k = 0; k < v->rank;) {
		bool one = sym_is(t, b_dim(e->b, v->x, (int)k), 1);
		if (!one || sym_is(t, e->extent[v->label[k]], 1)) {
			k++;
			continue;
		}
		v->x = aten_squeeze_dims(e->b, v->x, 1u << k);
		drop_dim(v, k);
	}
}

static void take_extents(Einsum *e)
{
	Build *b = e->b;
	for (uint32_t k = 0; k < e->n; k++) {
		Labelled *v = &e->operand[k];
		take_diagonals(b, v);
		for (uint32_t d = 0; d < v->rank && v->x.i; d++) {
			Sym *extent = &e->extent[v->label[d]];
			if (!extent->i || sym_is(b_syms(b), *extent, 1))
				*extent = b_dim(b, v->x, (int)d);
		}
	}
	for (uint32_t k = 0; k < e->n; k++) {
		Labelled *v = &e->operand[k];
		if (v->x.i)
			squeeze_repeated(e, v);
		for (uint32_t d = 0; d < v->rank; d++)
			e->count[v->label[d]]++;
	}
	for (uint32_t k = 0; k < e->nout; k++)
		e->count[e->out[k]]++;
}

/* Sums an operand over its dimensions whose label no other operand and no result has. A sum of
 * integers is i64. */
static void sum_private(Einsum *e, Labelled *v)
{
	uint32_t dims = 0;
	for (uint32_t k = v->rank; k-- > 0;)
		if (e->count[v->label[k]] == 1) {
			dims |= 1u << k;
			e->count[v->label[k]] = 0;
			drop_dim(v, k);
		}
	if (dims)
		v->x = aten_sum(e->b, aten_sum_operand(e->b, v->x), dims, false);
}

/* ---- two operands ---- */

static Labelled product(Einsum *e, const Labelled *x, const Labelled *y)
{
	uint32_t batch[MAX_RANK][2], sum[MAX_RANK][2], nbatch = 0, nsum = 0;
	Labelled r = {0};
	for (uint32_t k = 0; k < x->rank; k++) {
		int j = find(y, x->label[k]);
		if (j < 0)
			continue;
		bool last = --e->count[x->label[k]] == 1; /* what remains is this product */
		uint32_t(*to)[2] = last ? &sum[nsum++] : &batch[nbatch++];
		(*to)[0] = k;
		(*to)[1] = (uint32_t)j;
		if (last)
			e->count[x->label[k]] = 0;
		else
			r.label[r.rank++] = x->label[k];
	}
	for (uint32_t k = 0; k < x->rank; k++)
		if (find(y, x->label[k]) < 0)
			r.label[r.rank++] = x->label[k];
	for (uint32_t k = 0; k < y->rank && r.rank < MAX_RANK; k++)
		if (find(x, y->label[k]) < 0)
			r.label[r.rank++] = y->label[k];
	/* By dtype alone: in ATen each operand has all the dims here, so none is a scalar that
	 * yields. */
	DType d = dtype_promote(aten_dtype(e->b, x->x), aten_dtype(e->b, y->x));
	Node right = b_convert(e->b, y->x, d), left = b_convert(e->b, x->x, d);
	r.x = b_contract(e->b, left, right, (const uint32_t(*)[2])batch, nbatch,
			 (const uint32_t(*)[2])sum, nsum);
	return r;
}

/* Puts the dims in the order of the output; labels that were squeezed everywhere come back as
 * extents of 1. */
static Node arrange(Einsum *e, Labelled *v)
{
	uint32_t perm[MAX_RANK], n = 0;
	Shape s = {.rank = e->nout};
	bool known = true;
	for (uint32_t k = 0; k < e->nout; k++) {
		int d = find(v, e->out[k]);
		s.dim[k] = e->extent[e->out[k]];
		known &= s.dim[k].i != 0;
		if (d >= 0)
			perm[n++] = (uint32_t)d;
	}
	if (!v->x.i || !known || n != v->rank)
		return b_error(e->b,
			       "the einsum output names a label twice or one that no operand has");
	return aten_reshape(e->b, b_permute(e->b, v->x, perm), &s);
}

static Node build_einsum(Build *b, Node n)
{
	Einsum e = {.b = b};
	Node x[MAX_OPERANDS];
	e.n = aten_list(b, n, "tensors", x, MAX_OPERANDS);
	if (e.n == 0 || e.n > MAX_OPERANDS)
		return b_error(b, "einsum of %u operands", e.n);
	for (uint32_t k = 0; k < e.n; k++)
		e.operand[k].x = x[k];
	if (!read_equation(&e, node_str(b->g, n, "equation")))
		return (Node){0};
	take_extents(&e);
	Labelled r = e.operand[0];
	sum_private(&e, &r);
	for (uint32_t k = 1; k < e.n && r.x.i; k++) {
		Labelled y = e.operand[k];
		sum_private(&e, &y);
		r = product(&e, &r, &y);
	}
	return arrange(&e, &r);
}
OP(aten_einsum){
	.schema = "aten.einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor",
	.autocast = AUTOCAST_LOW,
	.build = build_einsum,
	.sample = "equation=\"bij,bjk->bik\", [f32[n=2, 3, 4], f32[n, 4, 2]]; "
		  "equation=\"ij,ij,j->i\", [f32[n=3, 4], f32[n, 4], f32[4]]; "
		  "equation=\"ii->i\", [f32[3, 3]]; equation=\"...ab->...ba\", [f32[n=2, 3, 4]]; "
		  "equation=\"ij,k\", [f32[2, 3], f32[2]]; "
		  "equation=\"ii\", [f32[3, 3]]; equation=\"ii,jk->jk\", [i32[3, 3], i32[2, 3]]; "
		  "equation=\"ij,kj->\", [i32[2, 3], i32[2, 3]]; equation=\"ij,->ij\", "
		  "[i32[2, 3], i64[]]",
};

static Node build_tensordot(Build *b, Node n)
{
	Node x = arg(b, n, "self"), y = arg(b, n, "other");
	int64_t dx[MAX_RANK], dy[MAX_RANK];
	uint32_t nx, ny, sum[MAX_RANK][2];
	node_ints(b->g, n, "dims_self", &nx);
	node_ints(b->g, n, "dims_other", &ny);
	if (!x.i || !y.i || nx != ny || nx > MAX_RANK ||
	    (nx && (!aten_ints(b, n, "dims_self", nx, 0, dx) ||
		    !aten_ints(b, n, "dims_other", nx, 0, dy))))
		return b_error(b, "tensordot over %u and %u dims", nx, ny);
	for (uint32_t k = 0; k < nx; k++) {
		sum[k][0] = b_wrap_dim(b, dx[k], node_rank(b->g, x));
		sum[k][1] = b_wrap_dim(b, dy[k], node_rank(b->g, y));
		/* An extent of 1 repeats. */
		Sym ex = b_dim(b, x, (int)sum[k][0]), ey = b_dim(b, y, (int)sum[k][1]);
		if (sym_is(b_syms(b), ex, 1) && !sym_is(b_syms(b), ey, 1))
			y = aten_sum(b, y, 1u << sum[k][1], true);
		else if (sym_is(b_syms(b), ey, 1) && !sym_is(b_syms(b), ex, 1))
			x = aten_sum(b, x, 1u << sum[k][0], true);
	}
	return b_contract(b, x, y, NULL, 0, (const uint32_t(*)[2])sum, nx);
}
OP(aten_tensordot){
	.schema = "aten.tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) "
		  "-> Tensor",
	.autocast = AUTOCAST_LOW,
	.build = build_tensordot,
	.sample = "f32[n=2, 3, 4], f32[4, 3, m=5], dims_self=[1, 2], dims_other=[1, 0]; "
		  "f32[2], f32[3], dims_self=[], dims_other=[]; "
		  "f32[2, 1, 4], f32[4, 3, 5], dims_self=[1, 2], dims_other=[1, 0]; "
		  "f32[2, 3, 4], f32[4, 1, 5], dims_self=[1, 2], dims_other=[1, 0]",
};

static Node build_bilinear(Build *b, Node n)
{
	Node x = arg(b, n, "input1"), y = arg(b, n, "input2"), w = arg(b, n, "weight");
	Node bias = arg(b, n, "bias");
	uint32_t rank = aten_rank(b, x);
	if (rank == 0 || aten_rank(b, y) != rank || aten_rank(b, w) != 3)
		return b_error(b, "bilinear of ranks %u, %u, %u", rank, aten_rank(b, y),
			       aten_rank(b, w));
	/* x[.., i] w[o, i, j] = t[.., o, j], then sum over j with y[.., j] */
	const uint32_t first[1][2] = {{rank - 1, 1}};
	Node t = b_contract(b, x, w, NULL, 0, first, 1);
	t = aten_sum(b, b_bin(b, OP_mul, t, b_unsqueeze(b, y, -2)), 1u << rank, false);
	return bias.i ? b_bin(b, OP_add, t, bias) : t;
}
OP(aten_bilinear){
	.schema = "aten.bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) "
		  "-> Tensor",
	.autocast_gpu = AUTOCAST_WIDEST,
	.build = build_bilinear,
	.sample = "f32[n=2, 3], f32[n, 4], f32[2, 3, 4], f32[2]; f32[n=2, 3], f32[n, 4], "
		  "f32[2, 3, 4]",
};
