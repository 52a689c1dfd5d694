/* gather and scatter: slices at places that an index tensor names. */
#include <math.h>
#include <string.h>

#include "ops/prim/priv.h"
#include "ops/prim/rules_priv.h"
#include "ops/rules/batch.h"

/* ---- inference ---- */

/* Sets dim[] to the shape gather gives: [B..., I..., remaining axes of x]. */
static bool gathered_shape(Infer *f, Sym *dim, uint32_t *rank)
{
	Type x = infer_in(f, 0), index = infer_in(f, 1);
	uint32_t axis[MAX_RANK], naxis, mode, indexed = 0;
	int64_t batch;
	TRY(infer_const(f, "batch", &batch));
	TRY(infer_dims(f, "axes", x.n, axis, &naxis));
	TRY(infer_choice(f, "mode", index_mode_names, &mode));
	if (index.dtype != DT_i64)
		return infer_fail(f, "operand index: expected i64, got %s",
		                  dtype_name(index.dtype));
	if (batch < 0 || batch + 1 > index.n || batch > x.n)
		return infer_fail(f, "argument batch: %lld axes of an index of rank %u",
		                  (long long)batch, index.n);
	if (!sym_is(f->syms, index.dim[index.n - 1], naxis))
		return infer_fail(
			f, "operand index: the last extent must be %u, the number of axes", naxis);
	for (uint32_t k = 0; k < naxis; k++) {
		if (axis[k] < batch)
			return infer_fail(f, "argument axes: %u is a batch axis", axis[k]);
		indexed |= 1u << axis[k];
	}
	for (uint32_t k = 0; k < batch; k++)
		TRY(infer_same(f, "batch extent", x.dim[k], index.dim[k]));
	if (index.n - 1 + x.n - batch - naxis > MAX_RANK)
		return infer_fail(f, "the result's rank exceeds %d", MAX_RANK);
	*rank = index.n - 1;
	memcpy(dim, index.dim, *rank * sizeof *dim);
	for (uint32_t k = (uint32_t)batch; k < x.n; k++) {
		if (!(indexed >> k & 1))
			dim[(*rank)++] = x.dim[k];
	}
	return true;
}

static bool shape_gather(Infer *f)
{
	Sym dim[MAX_RANK];
	uint32_t rank;
	TRY(gathered_shape(f, dim, &rank));
	return infer_result(f, infer_in(f, 0).dtype, rank, dim);
}
INFER(gather)

static bool shape_scatter(Infer *f)
{
	Type x = infer_in(f, 0), u = infer_in(f, 2);
	Sym dim[MAX_RANK];
	uint32_t rank;
	ReduceKind combine;
	TRY(gathered_shape(f, dim, &rank));
	TRY(infer_combiner(f, "combine", COMBINES_WRITES, x.dtype, &combine));
	TRY(infer_same_dtype(f, 0, 2));
	if (u.n != rank)
		return infer_fail(f, "operand update: expected rank %u, got %u", rank, u.n);
	for (uint32_t k = 0; k < rank; k++)
		TRY(infer_same(f, "update extent", u.dim[k], dim[k]));
	return infer_result(f, x.dtype, x.n, x.dim);
}
INFER(scatter)

/* ---- batches ---- */

/* Adds the batch. Batches of x and index are one more batch axis. Those of x alone become the
 * first axis that is taken whole, those of index alone the first one of places; both stand
 * behind the batch axes, and in the result behind what comes before them. */
static Node batch_gather(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	Attr *attr = batch_attrs(b, n);
	uint32_t nbatch = (uint32_t)node_int(b->g, n, "batch"),
		 lead = node_rank(b->g, node_in(b->g, n, 1)) - 1;
	(void)size;
	if (batched[0])
		batch_next(b, n, attr, "axes");
	if (batched[0] && batched[1]) {
		attr[op_arg_index(OP_gather, "batch")] = attr_int(b->g->ir, nbatch + 1);
		return batch_again(b, n, in, attr);
	}
	Node x = batched[0] ? batch_to(b, in[0], nbatch) : in[0],
	     index = batched[1] ? batch_to(b, in[1], nbatch) : in[1];
	Node y = batch_again(b, n, (Node[]){x, index}, attr);
	return batch_from(b, y, batched[0] ? lead : nbatch);
}

/* Adds the batch in the same way, where every member has an x of its own. */
static Node batch_scatter(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	Attr *attr = batch_attrs(b, n);
	uint32_t nbatch = (uint32_t)node_int(b->g, n, "batch"),
		 lead = node_rank(b->g, node_in(b->g, n, 1)) - 1;
	Node x = batch_wide(b, in[0], batched[0], size),
	     update = batch_wide(b, in[2], batched[2], size);
	batch_next(b, n, attr, "axes");
	if (batched[1]) {
		attr[op_arg_index(OP_scatter, "batch")] = attr_int(b->g->ir, nbatch + 1);
		return batch_again(b, n, (Node[]){x, in[1], update}, attr);
	}
	Node y = batch_again(
		b, n, (Node[]){batch_to(b, x, nbatch), in[1], batch_to(b, update, lead)}, attr);
	return batch_from(b, y, nbatch);
}

/* ---- index ---- */

/* Maps at[], [B..., I..., remaining axes of x]: those of the index but its last, then those
 * taken whole. */
static void index_gather(IndexMap *m)
{
	const Graph *g = m->g;
	SymTab *syms = graph_syms(g);
	Node x = node_in(g, m->n, 0);
	uint32_t naxes, batch = (uint32_t)node_int(g, m->n, "batch"),
			lead = node_rank(g, node_in(g, m->n, 1)) - 1;
	const Sym *axes = node_ints(g, m->n, "axes", &naxes);
	IndexMode mode = node_index_mode(g, m->n);
	bool indexed[MAX_RANK] = {false};
	Sym at[MAX_RANK];
	memcpy(at, m->at, lead * sizeof *at);
	for (uint32_t k = 0; k < naxes; k++) {
		uint32_t a = (uint32_t)sym_const(syms, axes[k]);
		indexed[a] = true;
		at[lead] = sym_int(syms, k);
		m->in[0][a] = m->value(m, 1, at, node_dim(g, x, a), mode);
	}
	const Sym *rest = m->at + lead;
	for (uint32_t k = 0; k < node_rank(g, x); k++)
		if (k < batch)
			m->in[0][k] = m->at[k];
		else if (!indexed[k])
			m->in[0][k] = *rest++;
}

/* ---- evaluation ---- */

/* How an index addresses x, shared by both. */
typedef struct {
	EvalCtx *e;
	Graph *g;
	Node n;
	const Tensor *x, *index;
	uint32_t batch, naxis;
	int64_t axis[MAX_RANK];
	IndexMode mode;
	int64_t stride[MAX_RANK]; /* of x */
	int64_t nbatch, nindex;   /* product of B, product of I */
	uint32_t rest;            /* axes taken whole */
	int64_t rest_dim[MAX_RANK], rest_stride[MAX_RANK], rest_numel;
} IndexPlaces;

/* Checks what inference could not decide: batch extents of x and index, the shape of the slices. */
static bool check_extents(const IndexPlaces *p, const Tensor *slices)
{
	uint32_t lead = p->index->rank - 1;
	bool ok = slices->rank == lead + p->rest;
	for (uint32_t k = 0; k < p->batch; k++)
		ok = ok && p->x->dim[k] == p->index->dim[k];
	for (uint32_t k = 0; ok && k < slices->rank; k++)
		ok = slices->dim[k] == (k < lead ? p->index->dim[k] : p->rest_dim[k - lead]);
	return ok ||
	       eval_error(p->e, p->g, p->n, "the extents of the operands do not fit together");
}

static bool places_init(IndexPlaces *p, EvalCtx *e, Graph *g, Node n, const Tensor *in,
			const Tensor *slices)
{
	*p = (IndexPlaces){
		.e = e, .g = g, .n = n, .x = in, .index = in + 1, .nbatch = 1, .nindex = 1};
	p->batch = (uint32_t)node_int(g, n, "batch");
	p->mode = node_index_mode(g, n);
	TRY(eval_ints(e, g, n, "axes", p->axis, &p->naxis));
	walk_strides(p->x->rank, p->x->dim, p->stride);
	uint32_t indexed = 0;
	for (uint32_t k = 0; k < p->naxis; k++)
		indexed |= 1u << p->axis[k];
	for (uint32_t k = 0; k + 1 < p->index->rank; k++)
		*(k < p->batch ? &p->nbatch : &p->nindex) *= p->index->dim[k];
	p->rest_numel = 1;
	for (uint32_t k = p->batch; k < p->x->rank; k++) {
		if (indexed >> k & 1)
			continue;
		p->rest_dim[p->rest] = p->x->dim[k];
		p->rest_stride[p->rest++] = p->stride[k];
		p->rest_numel *= p->x->dim[k];
	}
	return check_extents(p, slices);
}

/* Returns where slice i's indices stand in the index operand: "[3, 17]". */
static const char *position_of(const IndexPlaces *p, int64_t i)
{
	Text text;
	int64_t at[MAX_RANK];
	uint32_t lead = p->index->rank - 1;
	for (uint32_t k = lead; k-- > 0;) {
		at[k] = i % p->index->dim[k];
		i /= p->index->dim[k];
	}
	text_init(&text, p->e->ctx->scratch);
	for (uint32_t k = 0; k < lead; k++)
		text_printf(&text, "%s%lld", k ? ", " : "", (long long)at[k]);
	return lead ? text.data : "";
}

/* Makes one index value, of slice i, legal. Sets *drop if the element is outside and mode fill
 * says to ignore it. */
static bool resolve_index(const IndexPlaces *p, int64_t i, uint32_t axis, int64_t *v, bool *drop)
{
	int64_t extent = p->x->dim[axis], given = *v;
	if (p->mode == INDEX_CHECK && given < 0)
		*v += extent;
	if (*v >= 0 && *v < extent)
		return true;
	if (p->mode == INDEX_CLAMP && extent > 0) {
		*v = given < 0 ? 0 : extent - 1;
		return true;
	}
	if (p->mode == INDEX_FILL || p->mode == INDEX_CLAMP) {
		*drop = true;
		return true;
	}
	return eval_error(p->e, p->g, p->n,
			  "index %lld at position [%s] is out of range for axis %u of extent %lld",
			  (long long)given, position_of(p, i), axis, (long long)extent);
}

/* Sets *offset to the offset in x of slice i (of nbatch * nindex). */
static bool place_of(const IndexPlaces *p, int64_t i, int64_t *offset, bool *drop)
{
	int64_t b = i / p->nindex, at = 0;
	for (uint32_t k = p->batch; k-- > 0;) {
		at += b % p->x->dim[k] * p->stride[k];
		b /= p->x->dim[k];
	}
	*drop = false;
	for (uint32_t k = 0; k < p->naxis; k++) {
		int64_t v = tensor_i64(p->index, i * p->naxis + k);
		TRY(resolve_index(p, i, (uint32_t)p->axis[k], &v, drop));
		at += v * p->stride[p->axis[k]];
	}
	*offset = at;
	return true;
}

/* Sets *w to the walk over one slice: dense on one side, inside x on the other. */
static void slice_walk(const IndexPlaces *p, Walk *w, bool into_x)
{
	w->rank = p->rest;
	memcpy(w->dim, p->rest_dim, sizeof p->rest_dim);
	memcpy(into_x ? w->dst : w->src, p->rest_stride, sizeof p->rest_stride);
	walk_strides(p->rest, p->rest_dim, into_x ? w->src : w->dst);
}

static bool eval_gather(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	IndexPlaces p;
	Walk w;
	TRY(places_init(&p, e, g, n, in, out));
	slice_walk(&p, &w, false);
	for (int64_t i = 0; i < p.nbatch * p.nindex; i++) {
		int64_t at;
		bool drop;
		TRY(place_of(&p, i, &at, &drop));
		char *dst = elem_at(out, i * p.rest_numel);
		if (drop)
			memset(dst, 0, (size_t)p.rest_numel * dtype_size(out->dtype));
		else
			walk_copy(&w, dst, elem_at(in, at), dtype_size(out->dtype));
	}
	return true;
}

/* ---- derivatives ---- */

/* Combines the places of n, a gather or a scatter, with update. */
static Node write_places(Build *b, Node n, Node x, Node update, const char *combine, bool unique)
{
	Ir *ir = b->g->ir;
	Attr attr[] = {attr_none(),
		       attr_none(),
		       attr_none(),
		       *node_attr(b->g, n, "batch"),
		       *node_attr(b->g, n, "axes"),
		       attr_str(ir, combine),
		       *node_attr(b->g, n, "mode"),
		       attr_bool(unique),
		       attr_bool(false)};
	Node in[] = {x, node_in(b->g, n, 1), update};
	return x.i && update.i ? b_node(b, OP_scatter, in, 3, attr, 9) : (Node){0};
}

/* Returns what n, a scatter, combines with of x. */
static Node read_places(Build *b, Node n, Node x)
{
	Attr attr[] = {attr_none(), attr_none(), *node_attr(b->g, n, "batch"),
		       *node_attr(b->g, n, "axes"), *node_attr(b->g, n, "mode")};
	Node in[] = {x, node_in(b->g, n, 1)};
	return x.i ? b_node(b, OP_gather, in, 2, attr, 5) : x;
}

Node rule_scatter_along(Build *b, Node x, Node index, Node update, uint32_t dim,
			const char *combine, bool unique)
{
	Graph *g = b->g;
	Ir *ir = g->ir;
	uint32_t rank = node_rank(g, x), last = rank - 1;
	if (!x.i || !index.i || !update.i)
		return (Node){0};
	Sym axis = b_int(b, last);
	Attr attr[] = {attr_none(),
		       attr_none(),
		       attr_none(),
		       attr_int(ir, last),
		       attr_ints(&axis, 1),
		       attr_str(ir, combine),
		       attr_str(ir, "promise"),
		       attr_bool(unique),
		       attr_bool(false)};
	Node in[] = {b_transpose(b, x, (int)dim, (int)last),
		     b_unsqueeze(b, b_transpose(b, index, (int)dim, (int)last), -1),
		     b_transpose(b, update, (int)dim, (int)last)};
	return b_transpose(b, b_node(b, OP_scatter, in, 3, attr, 9), (int)dim, (int)last);
}

static bool adjoint_gather(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	g[0] = write_places(b, n, b_zeros_like(b, node_in(b->g, n, 0)), ct[0], "add", false);
	return g[0].i;
}

OP(gather) {
	.linear = LINEAR_TOGETHER,
	.linear_in = 1,
	.adjoint = adjoint_gather,
	.schema = "gather(Tensor x, Tensor index, *, int batch, int[] axes, str mode) -> Tensor",
	.doc = "slices of x at index [B..., I..., len(axes)]: result [B..., I..., remaining axes]",
	.folds = FOLDS,
	.checks = CHECKS_INDEX,
	.infer = infer_gather,
	.eval = eval_gather,
	.batch = batch_gather,
	.lower = {.role = LOWER_INDEX, .fuses = FUSE_CHEAP, .reads = 1, .cost = 8, .index = index_gather},
	.sample = "f32[5, 3], i64[4, 1] in -5..5, batch=0, axes=[0], mode=\"check\"; "
		  "f32[5, 3], i64[4, 1] of 4 0 3 0, batch=0, axes=[0], mode=\"within\"; "
		  "f32[2, 5, 3], i64[2, 4, 1] in -2..7, batch=1, axes=[2], mode=\"fill\"",
};

/* Combines the updates. Sums of floats are rounded to the dtype once, at the end. */
static bool scatter_combine(const IndexPlaces *p, ReduceKind how, const Tensor *update, Tensor *out)
{
	bool floats = eval_as_float(out->dtype);
	int64_t n = tensor_numel(out), m = p->rest_numel;
	double *acc = EVAL_ARRAY(p->e, double, floats ? n : 0);
	int64_t *iacc = EVAL_ARRAY(p->e, int64_t, floats ? 0 : n);
	int64_t *at = EVAL_ARRAY(p->e, int64_t, m), *index = EVAL_ARRAY(p->e, int64_t, n);
	Walk w;
	slice_walk(p, &w, false);
	for (int64_t i = 0; i < n; i++)
		index[i] = i;
	if (n)
		walk_copy(&w, at, index, sizeof *at); /* offsets of a slice's elements within x */
	if (floats)
		tensor_read_f64(p->x, 0, n, acc);
	else
		tensor_read_i64(p->x, 0, n, iacc);
	for (int64_t i = 0; i < p->nbatch * p->nindex; i++) {
		int64_t base;
		bool drop;
		TRY(place_of(p, i, &base, &drop));
		for (int64_t j = 0; j < m && !drop; j++) {
			int64_t to = base + at[j], from = i * m + j;
			if (floats)
				acc[to] = reduce_f64(how, acc[to], tensor_f64(update, from));
			else
				iacc[to] = reduce_i64(how, out->dtype, iacc[to],
						      tensor_i64(update, from));
		}
	}
	if (floats)
		tensor_write_f64(out, 0, n, acc);
	else
		tensor_write_i64(out, 0, n, iacc);
	return true;
}

/* Combines acc with x; pairs of parts. */
static void combine_pair(ReduceKind how, double acc[2], const double x[2])
{
	double re = acc[0], im = acc[1];
	acc[0] = how == REDUCE_SUM ? re + x[0] : re * x[0] - im * x[1];
	acc[1] = how == REDUCE_SUM ? im + x[1] : re * x[1] + im * x[0];
}

/* Combines complex numbers: sums and products, rounded to the dtype once, at the end. */
static bool scatter_combine_complex(const IndexPlaces *p, ReduceKind how, const Tensor *update,
				    Tensor *out)
{
	int64_t n = tensor_numel(out), m = p->rest_numel;
	Tensor x = tensor_flat_real(p->x), u = tensor_flat_real(update), y = tensor_flat_real(out);
	double *acc = EVAL_ARRAY(p->e, double, 2 * n);
	int64_t *at = EVAL_ARRAY(p->e, int64_t, m), *index = EVAL_ARRAY(p->e, int64_t, n);
	Walk w;
	slice_walk(p, &w, false);
	for (int64_t i = 0; i < n; i++)
		index[i] = i;
	if (n)
		walk_copy(&w, at, index, sizeof *at);
	tensor_read_f64(&x, 0, 2 * n, acc);
	for (int64_t i = 0; i < p->nbatch * p->nindex; i++) {
		int64_t base;
		bool drop;
		TRY(place_of(p, i, &base, &drop));
		for (int64_t j = 0; j < m && !drop; j++) {
			double v[2];
			tensor_read_f64(&u, 2 * (i * m + j), 2, v);
			combine_pair(how, acc + 2 * (base + at[j]), v);
		}
	}
	tensor_write_f64(&y, 0, 2 * n, acc);
	return true;
}

static bool scatter_set(const IndexPlaces *p, const Tensor *update, Tensor *out)
{
	Walk w;
	slice_walk(p, &w, true);
	copy_elems(out, p->x);
	for (int64_t i = 0; i < p->nbatch * p->nindex; i++) {
		int64_t at;
		bool drop;
		TRY(place_of(p, i, &at, &drop));
		if (!drop)
			walk_copy(&w, elem_at(out, at), elem_at(update, i * p->rest_numel),
			          dtype_size(out->dtype));
	}
	return true;
}

static bool eval_scatter(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	IndexPlaces p;
	ReduceKind how;
	if (!reduce_parse(node_str(g, n, "combine"), &how))
		return eval_error(e, g, n, "unknown combine");
	TRY(places_init(&p, e, g, n, in, &in[2]));
	if (how == REDUCE_SET)
		return scatter_set(&p, &in[2], out);
	if (dtype_is_complex(out->dtype))
		return scatter_combine_complex(&p, how, &in[2], out);
	return scatter_combine(&p, how, &in[2], out);
}

/* ---- derivatives ---- */

static ReduceKind combine_of(const Graph *g, Node n)
{
	ReduceKind how;
	return reduce_parse(node_str(g, n, "combine"), &how) ? how : REDUCE_SET;
}

static bool adds_or_sets(const Graph *g, Node n)
{
	ReduceKind how = combine_of(g, n);
	return how == REDUCE_SUM || how == REDUCE_SET;
}

static Node is_number(Build *b, Node x, double v)
{
	return b_bin_scalar(b, OP_eq, x, v);
}

/* Computes the cotangents as PyTorch does: an element takes 0 where it is overwritten, and each
 * update its cotangent, also one that a later one overwrites. */
static void adjoint_set(Build *b, Node n, Node ct, const bool *want, Node *g)
{
	if (want[0])
		g[0] = write_places(b, n, ct, b_zeros_like(b, node_in(b->g, n, 2)), "set",
				    node_bool(b->g, n, "unique"));
	if (want[2])
		g[2] = read_places(b, n, ct);
}

/* Computes the cotangents of products. Of several factors at a place each gets the product of
 * the others: with one 0 among them that is 0 but for that one, with more it is 0. */
static void adjoint_mul(Build *b, Node n, Node ct, const bool *want, Node *g)
{
	Node x = node_in(b->g, n, 0), u = node_in(b->g, n, 2);
	const Type t = *node_type(b->g, x);
	Node zero = b_scalar(b, t.dtype, 0), one = b_scalar(b, t.dtype, 1),
	     is_zero = is_number(b, u, 0);
	Node each_zero = b_convert(b, is_zero, t.dtype);
	Node zeros = write_places(b, n, b_zeros_like(b, x), each_zero, "add", false);
	Node others = b_select(b, is_zero, one, u);
	Node product = write_places(b, n, b_full(b, t.dtype, 1, t.n, t.dim), others, "mul", false);
	if (want[0])
		g[0] = b_select(b, is_number(b, zeros, 0), b_bin(b, OP_mul, ct, product), zero);
	if (!want[2])
		return;
	Node all = b_bin(b, OP_mul, x, product), own = read_places(b, n, ct),
	     factor = b_select(b, is_zero, one, u);
	Node if_zero = read_places(b, n, b_select(b, is_number(b, zeros, 1), all, zero));
	Node else_all = read_places(b, n, b_select(b, is_number(b, zeros, 0), all, zero));
	g[2] = b_bin(b, OP_mul, own,
		     b_select(b, is_zero, if_zero, b_bin(b, OP_div, else_all, factor)));
}

/* Shares the cotangent evenly among all that are the extremum, x included, as PyTorch's
 * scatter_reduce does. */
static void adjoint_extremum(Build *b, Node n, Node ct, const bool *want, Node *g)
{
	Node x = node_in(b->g, n, 0), u = node_in(b->g, n, 2);
	DType d = node_dtype(b->g, x);
	Node zero = b_scalar(b, d, 0), is_x = b_bin(b, OP_eq, x, n),
	     is_u = b_bin(b, OP_eq, u, read_places(b, n, n));
	Node each_u = b_convert(b, is_u, d), each_x = b_convert(b, is_x, d);
	Node count = write_places(b, n, each_x, each_u, "add", false);
	Node share = b_bin(b, OP_div, ct, count);
	if (want[0])
		g[0] = b_select(b, is_x, share, zero);
	if (want[2])
		g[2] = b_select(b, is_u, read_places(b, n, share), zero);
}

static bool adjoint_scatter(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	switch (combine_of(b->g, n)) {
	case REDUCE_SUM:
		g[0] = ct[0];
		if (want[2])
			g[2] = read_places(b, n, ct[0]);
		break;
	case REDUCE_SET:
		adjoint_set(b, n, ct[0], want, g);
		break;
	case REDUCE_PROD:
		adjoint_mul(b, n, ct[0], want, g);
		break;
	case REDUCE_MAX:
	case REDUCE_MIN:
		adjoint_extremum(b, n, ct[0], want, g);
		break;
	default:
		return b_error(b, "scatter of kind %s has no derivative",
			       node_str(b->g, n, "combine"))
			.i;
	}
	return (g[0].i || !want[0]) && (g[2].i || !want[2]);
}

OP(scatter) {
	.linear = LINEAR_TOGETHER,
	.linear_in = 1 | 4,
	.linear_if = adds_or_sets,
	.adjoint = adjoint_scatter,
	.schema = "scatter(Tensor x, Tensor index, Tensor update, *, int batch, int[] axes, "
		  "str combine, str mode, bool unique, bool sorted) -> Tensor",
	.doc = "x with the slices that gather would read combined with update, in row-major order",
	.checks = CHECKS_INDEX,
	.infer = infer_scatter,
	.eval = eval_scatter,
	.batch = batch_scatter,
	.lower = {.role = LOWER_ROOT, .reads = ALL_OPERANDS, .updates = true, .index = index_gather},
	.accumulates = true,
	.sample = "f32[5, 3], i64[4, 1] in -5..5, f32[4, 3], batch=0, axes=[0], combine=\"add\", "
		  "mode=\"check\", unique=false, sorted=false",
};
