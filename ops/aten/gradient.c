/* torch.gradient: slopes between neighbours along dims, at even or given distances. */
#include "ops/aten/priv.h"

/* Returns x[at] along dim, kept; negative from the end. */
static Node element(Build *b, Node x, uint32_t dim, int64_t at)
{
	return aten_slice(b, x, dim, at, at == -1 ? INT64_MAX : at + 1);
}

/* Returns central differences inside, one-sided ones at the ends, of edge_order 1 or 2. */
static Node even(Build *b, Node x, uint32_t dim, Node h, bool second)
{
	Node a = aten_slice(b, x, dim, 2, INT64_MAX);
	Node mid = b_bin(b, OP_sub, a, aten_slice(b, x, dim, 0, -2));
	mid = b_bin(b, OP_div, mid, b_bin_scalar(b, OP_mul, h, 2));
	Node end[2];
	for (uint32_t k = 0; k < 2; k++) {
		Node v[3];
		for (int64_t j = 0; j < (second ? 3 : 2); j++)
			v[j] = element(b, x, dim, k ? -1 - j : j);
		Node d = b_bin(b, OP_sub, v[1], v[0]);
		if (second) {
			/* (-3 x0 + 4 x1 - x2) / 2h */
			Node s = b_bin_scalar(b, OP_mul, v[1], 4);
			s = b_bin(b, OP_sub, s, b_bin_scalar(b, OP_mul, v[0], 3));
			d = b_bin_scalar(b, OP_mul, b_bin(b, OP_sub, s, v[2]), 0.5);
		}
		d = b_bin(b, OP_div, d, h);
		end[k] = k ? b_un(b, OP_neg, d) : d;
	}
	return b_concat(b, (Node[]){end[0], mid, end[1]}, 3, (int)dim);
}

/* x[at], x[at + 1], x[at + 2] weighted by the slope that their parabola has where the distances to
 * the next are p and q: inside between them, at the first or at the last. */
typedef enum { AT_FIRST, AT_MIDDLE, AT_LAST } Where;

static Node parabola(Build *b, Where where, const Node *x, Node p, Node q)
{
	Node sum = b_bin(b, OP_add, p, q), w[3];
	Node pq = b_bin(b, OP_mul, p, q);
	if (where == AT_MIDDLE) {
		w[0] = b_un(b, OP_neg, b_bin(b, OP_div, q, b_bin(b, OP_mul, p, sum)));
		w[1] = b_bin(b, OP_div, b_bin(b, OP_sub, q, p), pq);
		w[2] = b_bin(b, OP_div, p, b_bin(b, OP_mul, q, sum));
	} else if (where == AT_FIRST) {
		w[0] = b_bin(b, OP_div, b_bin(b, OP_add, sum, p), b_bin(b, OP_mul, p, sum));
		w[0] = b_un(b, OP_neg, w[0]);
		w[1] = b_bin(b, OP_div, sum, pq);
		w[2] = b_un(b, OP_neg, b_bin(b, OP_div, p, b_bin(b, OP_mul, q, sum)));
	} else {
		w[0] = b_bin(b, OP_div, q, b_bin(b, OP_mul, p, sum));
		w[1] = b_un(b, OP_neg, b_bin(b, OP_div, sum, pq));
		w[2] = b_bin(b, OP_div, b_bin(b, OP_add, sum, q), b_bin(b, OP_mul, q, sum));
	}
	Node y = b_bin(b, OP_add, b_bin(b, OP_mul, w[0], x[0]), b_bin(b, OP_mul, w[1], x[1]));
	return b_bin(b, OP_add, y, b_bin(b, OP_mul, w[2], x[2]));
}

/* Returns a slice of the distances, along dim of x. */
static Node distances(Build *b, Node x, uint32_t dim, Node step, int64_t start, int64_t end)
{
	Node v = aten_slice(b, step, 0, start, end);
	Shape s = {.rank = aten_rank(b, x)};
	for (uint32_t k = 0; k < s.rank; k++)
		s.dim[k] = k == dim && v.i ? b_dim(b, v, 0) : b_int(b, 1);
	return v.i ? aten_reshape(b, v, &s) : v;
}

/* Returns the slope at coordinates[size of dim]. */
static Node uneven(Build *b, Node x, uint32_t dim, Node coordinates, bool second)
{
	if (!x.i || aten_rank(b, coordinates) != 1)
		return b_error(b, "coordinates of rank %u, expected 1", aten_rank(b, coordinates));
	Node at = b_convert(b, coordinates, b_promote(b, (Node[]){x, coordinates}, 2));
	Node step =
		b_bin(b, OP_sub, aten_slice(b, at, 0, 1, INT64_MAX), aten_slice(b, at, 0, 0, -1));
	Node run[3] = {aten_slice(b, x, dim, 0, -2), aten_slice(b, x, dim, 1, -1),
		       aten_slice(b, x, dim, 2, INT64_MAX)};
	Node part[3];
	Node after = distances(b, x, dim, step, 1, INT64_MAX),
	     before = distances(b, x, dim, step, 0, -1);
	part[1] = parabola(b, AT_MIDDLE, run, before, after);
	for (uint32_t k = 0; k < 2; k++) {
		Node last = distances(b, x, dim, step, -1, INT64_MAX);
		Node first = distances(b, x, dim, step, 0, 1), v[3];
		if (!second) {
			v[0] = b_bin(b, OP_sub, element(b, x, dim, k ? -1 : 1),
				     element(b, x, dim, k ? -2 : 0));
			part[2 * k] = b_bin(b, OP_div, v[0], k ? last : first);
			continue;
		}
		for (int64_t j = 0; j < 3; j++)
			v[j] = element(b, x, dim, k ? j - 3 : j);
		part[2 * k] = k ? parabola(b, AT_LAST, v, distances(b, x, dim, step, -2, -1), last)
				: parabola(b, AT_FIRST, v, first, distances(b, x, dim, step, 1, 2));
	}
	return b_concat(b, part, 3, (int)dim);
}

/* Reads the dims in order: an int, a list, or all. */
static uint32_t gradient_dims(Build *b, Node n, uint32_t rank, uint32_t *dim)
{
	const Attr *a = node_attr(b->g, n, "dim");
	uint32_t count = a->kind == ATTR_ints ? a->n : a->kind == ATTR_none ? rank : 1;
	for (uint32_t k = 0; k < count && k < MAX_RANK; k++) {
		int64_t d = k;
		if (a->kind == ATTR_ints)
			aten_const(b, a->ints[k], &d);
		else if (a->kind == ATTR_int)
			aten_const(b, a->s, &d);
		dim[k] = b_wrap_dim(b, d, rank);
		for (uint32_t j = 0; j < k; j++)
			if (dim[j] == dim[k])
				b_error(b, "dimension %lld stands twice in dim", (long long)d);
	}
	aten_check_arg_within(b, n, "edge_order", 1, 2);
	return count < MAX_RANK ? count : MAX_RANK;
}

/* Returns the k-th distance: one number for all, or one each. */
static Node spacing(Build *b, Node n, Node x, uint32_t k)
{
	if (op_arg_index(node_op(b->g, n), "spacing") < 0 || !aten_has(b, n, "spacing"))
		return aten_like(b, x, 1);
	const Attr *a = node_attr(b->g, n, "spacing");
	if (a->kind == ATTR_floats)
		return k < a->n ? aten_like(b, x, a->floats[k])
				: b_error(b, "%u spacings, expected more", a->n);
	return aten_scalar_arg(b, n, "spacing", x);
}

static Node build_gradient(Build *b, Node n)
{
	Node x = aten_to_float(b, arg(b, n, "self")), part[MAX_RANK];
	uint32_t rank = aten_rank(b, x), dim[MAX_RANK], count = gradient_dims(b, n, rank, dim);
	int at_spacing = op_arg_index(node_op(b->g, n), "spacing");
	const Attr *by =
		at_spacing < 0 ? NULL
			       : ir_attr(b->g->ir, node_data(b->g, n)->attr, (uint32_t)at_spacing);
	if (by && by->kind == ATTR_floats && by->n != count)
		return b_error(b, "%u spacings for %u dims", by->n, count);
	bool second = aten_int(b, n, "edge_order") == 2;
	for (uint32_t k = 0; k < count && x.i; k++)
		part[k] = even(b, x, dim[k], spacing(b, n, x, k), second);
	return x.i ? b_tuple(b, part, count) : x;
}
static Node build_gradient_tensors(Build *b, Node n)
{
	Node x = aten_to_float(b, arg(b, n, "self")), part[MAX_RANK], at[MAX_RANK];
	uint32_t rank = aten_rank(b, x), dim[MAX_RANK], count = gradient_dims(b, n, rank, dim);
	bool second = aten_int(b, n, "edge_order") == 2;
	if (aten_list(b, n, "spacing", at, MAX_RANK) != count)
		return b_error(b, "expected coordinates for each of %u dims", count);
	for (uint32_t k = 0; k < count && x.i; k++)
		part[k] = uneven(b, x, dim[k], at[k], second);
	return x.i ? b_tuple(b, part, count) : x;
}
OP(aten_gradient_scalarint){
	.schema = "aten.gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, "
		  "int edge_order=1) -> Tensor[]",
	.build = build_gradient,
	.sample = "f32[n=3, 5], dim=1; f32[n=3, 5], spacing=0.5, dim=1, edge_order=2; "
		  "f32[3, 4], spacing=2",
	.overloads = (const Overload[]){
		{.schema = "aten.gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim, "
			   "int edge_order=1) -> Tensor[]",
		 .sample = "f32[n=3, 5], spacing=0.5, dim=[1, 0]"},
		{.schema = "aten.gradient.array(Tensor self, *, int[] dim, int edge_order=1) -> "
			   "Tensor[]",
		 .sample = "f32[n=3, 5], dim=[1, 0], edge_order=2"},
		{.schema = "aten.gradient.scalarrayint(Tensor self, *, Scalar[] spacing, int? "
			   "dim=None, int edge_order=1) -> Tensor[]",
		 .sample = "f32[n=3, 5], spacing=[0.5, 2.0]"},
		{.schema = "aten.gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] "
			   "dim, int edge_order=1) -> Tensor[]",
		 .sample = "f32[n=3, 5], spacing=[0.5, 2.0], dim=[1, 0], edge_order=2"},
		{.schema = "aten.gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? "
			   "dim=None, int edge_order=1) -> Tensor[]",
		 .build = build_gradient_tensors,
		 .sample = "f32[3, 5], [f32[3] of 0 0.5 2, f32[5] of -1 0 2 2.5 4]; "
			   "f32[3, 5], [f32[5] of -1 0 2 2.5 4], dim=1, edge_order=2"},
		{.schema = "aten.gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, "
			   "int edge_order=1) -> Tensor[]",
		 .build = build_gradient_tensors,
		 .sample = "f32[3, 5], [f32[5] of -1 0 2 2.5 4, f32[3] of 0 0.5 2], dim=[1, 0]"},
	},
};
