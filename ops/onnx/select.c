/* Elements that are chosen by their values, so that there are as many as the data say: boxes,
 * different values. */
#include "ops/onnx/priv.h"
#include "ops/prim/data_size.h"

#include <math.h>

/* ---- boxes ---- */

/* The boxes of R rows, each row in the order of its scores: [R, N] each. */
enum { X0, Y0, X1, Y1, AREA, PARTS };

typedef struct {
	Node part[PARTS];
} BoxRows;

enum { LEFT, KEPT, ROUND, MORE, CARRIED, MOST = CARRIED + PARTS, LIMIT, WHILE_INPUTS };

/* Reads boxes [B, N, 4] as coordinates [B, N]: corners in any order, or centre and size. */
static void box_sides(Build *b, Node boxes, bool centred, BoxRows *out)
{
	Node c[4];
	for (uint32_t k = 0; k < 4; k++)
		c[k] = b_select_dim(b, boxes, 2, b_int(b, k));
	for (uint32_t a = 0; a < 2; a++) { /* x, y */
		Node from = c[a ^ !centred], to = c[2 + (a ^ !centred)];
		if (centred) {
			Node half = b_bin_scalar(b, OP_div, to, 2);
			out->part[X0 + a] = b_bin(b, OP_sub, from, half);
			out->part[X1 + a] = b_bin(b, OP_add, from, half);
		} else {
			out->part[X0 + a] = b_bin(b, OP_minimum, from, to);
			out->part[X1 + a] = b_bin(b, OP_maximum, from, to);
		}
	}
	out->part[AREA] = b_bin(b, OP_mul, b_bin(b, OP_sub, out->part[X1], out->part[X0]),
				b_bin(b, OP_sub, out->part[Y1], out->part[Y0]));
}

/* Returns bool [R, N]: whether the box `one` of each row, [R, 1], and each of its row share more
 * than `limit` of their union. */
static Node overlaps(Build *b, const Node *one, const Node *all, Node limit)
{
	Node side[2], none = aten_like(b, one[AREA], 0);
	for (uint32_t a = 0; a < 2; a++) {
		Node from = b_bin(b, OP_maximum, one[X0 + a], all[X0 + a]),
		     to = b_bin(b, OP_minimum, one[X1 + a], all[X1 + a]);
		side[a] = b_bin(b, OP_maximum, b_bin(b, OP_sub, to, from), none);
	}
	Node common = b_bin(b, OP_mul, side[0], side[1]);
	Node whole = b_bin(b, OP_sub, b_bin(b, OP_add, one[AREA], all[AREA]), common);
	return b_bin(b, OP_bit_and, b_bin_scalar(b, OP_gt, common, 0),
		     b_bin(b, OP_gt, b_bin(b, OP_div, common, whole), limit));
}

static Build loop_graph(const Build *b, const char *name, const Node *like, Node *x)
{
	Build in = {.g = graph_beside(b->g, name), .loc = b->loc, .where = b->where};
	for (uint32_t k = 0; k < WHILE_INPUTS; k++)
		x[k] = graph_add_input(in.g, "x", INPUT_USER, node_type_id(b->g, like[k]));
	return in;
}

/* Whether a row has a box left, and may take one more. */
static Node goes_on(Build *b, Node left, Node round, Node most)
{
	return b_bin(b, OP_bit_and, b_reduce(b, REDUCE_OR, left, 3, DT_none),
		     b_bin(b, OP_lt, round, most));
}

/* Makes the body of a round, which takes the first box that is left of each row, and with it all
 * that overlap it. */
static Graph *take_first(const Build *b, const Node *like)
{
	Node x[WHILE_INPUTS], one[PARTS];
	Build in = loop_graph(b, "take", like, x);
	Node first =
		b_unsqueeze(&in, b_arg_reduce(&in, true, b_convert(&in, x[LEFT], DT_u8), 1), 1);
	for (uint32_t k = 0; k < PARTS; k++)
		one[k] = aten_gather_dim(&in, x[CARRIED + k], 1, first);
	Node is_first = b_bin(&in, OP_eq, b_iota(&in, DT_i64, b_dim(&in, x[LEFT], 1)), first);
	Node goes = b_bin(&in, OP_bit_or, is_first, overlaps(&in, one, x + CARRIED, x[LIMIT]));
	Node left = b_bin(&in, OP_bit_and, x[LEFT], b_un(&in, OP_bit_not, goes)),
	     round = b_bin_scalar(&in, OP_add, x[ROUND], 1);
	graph_add_output(in.g, "left", left, -1);
	graph_add_output(in.g, "kept",
			 b_bin(&in, OP_bit_or, x[KEPT], b_bin(&in, OP_bit_and, is_first, x[LEFT])),
			 -1);
	graph_add_output(in.g, "round", round, -1);
	graph_add_output(in.g, "more", goes_on(&in, left, round, x[MOST]), -1);
	return in.g;
}

static Graph *is_more(const Build *b, const Node *like)
{
	Node x[WHILE_INPUTS];
	Build in = loop_graph(b, "more", like, x);
	graph_add_output(in.g, "more", x[MORE], -1);
	return in.g;
}

/* Returns an input of one number; `otherwise` where there is no input. */
static Node number(Build *b, Node n, const char *name, DType d, double otherwise)
{
	Node x = arg(b, n, name);
	return x.i ? b_convert(b, b_reshape(b, x, 0, NULL), d) : b_full(b, d, otherwise, 0, NULL);
}

/* Returns bool [R, N]: which boxes are kept, of those that stand in the order of their scores. */
static Node kept_boxes(Build *b, Node n, Node score, const BoxRows *boxes)
{
	Ir *ir = b->g->ir;
	DType d = aten_dtype(b, boxes->part[AREA]);
	Node in[WHILE_INPUTS], threshold = arg(b, n, "score_threshold");
	Shape s = aten_shape(b, score);
	in[LEFT] = b_full(b, DT_bool, 1, s.rank, s.dim);
	if (threshold.i)
		in[LEFT] = b_bin(b, OP_gt, score, b_reshape(b, threshold, 0, NULL));
	in[KEPT] = b_full(b, DT_bool, 0, s.rank, s.dim);
	in[ROUND] = b_full_int(b, DT_i64, 0, 0, NULL);
	in[MOST] = number(b, n, "max_output_boxes_per_class", DT_i64, 0);
	in[LIMIT] = number(b, n, "iou_threshold", d, 0);
	for (uint32_t k = 0; k < PARTS; k++)
		in[CARRIED + k] = boxes->part[k];
	in[MORE] = goes_on(b, in[LEFT], in[ROUND], in[MOST]);
	for (uint32_t k = 0; k < WHILE_INPUTS; k++)
		if (!in[k].i)
			return in[k];
	Attr attr[] = {attr_int(ir, CARRIED), attr_int(ir, WHILE_INPUTS - CARRIED),
		       attr_graph(is_more(b, in)), attr_graph(take_first(b, in))};
	return b_get(b, b_node(b, OP_while, in, WHILE_INPUTS, attr, 4), KEPT);
}

/* Chooses boxes by rows, which are classes of images. */
static Node build_non_max_suppression(Build *b, Node n)
{
	Node boxes = arg(b, n, "boxes"), scores = arg(b, n, "scores");
	if (aten_rank(b, boxes) != 3 || aten_rank(b, scores) != 3)
		return b_error(b,
			       "boxes of rank %u and scores of rank %u, expected [batch, n, 4] and "
			       "[batch, classes, n]",
			       aten_rank(b, boxes), aten_rank(b, scores));
	Shape s = aten_shape(b, scores), per_row = shape_insert(aten_shape(b, boxes), 1, s.dim[1]);
	SymTab *t = b_syms(b);
	Sym rows[] = {sym_mul(t, s.dim[0], s.dim[1]), s.dim[2]};
	aten_require_equal(b, b_dim(b, boxes, 0), s.dim[0],
			   "boxes and scores are of the same images");
	aten_require_equal(b, b_dim(b, boxes, 1), s.dim[2], "there is a score of each box");
	aten_require_equal(b, b_dim(b, boxes, 2), b_int(b, 4), "a box has 4 numbers");
	BoxRows sides;
	box_sides(b, boxes, node_bool(b->g, n, "center_point_box"), &sides);
	Node sorted = b_sort(b, b_reshape(b, scores, 2, rows), 1, true, true),
	     order = b_get(b, sorted, 1);
	per_row.rank = 3;
	for (uint32_t k = 0; k < PARTS; k++) {
		Node all = aten_expand_shape(b, b_unsqueeze(b, sides.part[k], 1), &per_row);
		sides.part[k] = aten_gather_dim(b, b_reshape(b, all, 2, rows), 1, order);
	}
	Node kept = kept_boxes(b, n, b_get(b, sorted, 0), &sides);
	Node place = true_elements(b, kept, data_size_new(b), op_name(node_op(b->g, n))).place;
	Shape flat = {1, {sym_mul(t, rows[0], rows[1])}},
	      places = {3, {s.dim[0], s.dim[1], s.dim[2]}};
	Node box = aten_take_dim(b, aten_reshape(b, order, &flat), 0, place, "promise");
	return aten_stack(
		b,
		(Node[]){place_along(b, place, &places, 0), place_along(b, place, &places, 1), box},
		3, 1);
}

OP(onnx_NonMaxSuppression_10){
	.schema = "onnx.NonMaxSuppression.10(Tensor boxes, Tensor scores, Tensor? "
		  "max_output_boxes_per_class, Tensor? iou_threshold, Tensor? score_threshold, *, "
		  "bool center_point_box=False) -> Tensor",
	.build = build_non_max_suppression,
	.no_sample = NODE_TESTS,
};

/* ---- different values ---- */

/* Returns values, inverse and counts as ATen gives them; along the axis, or of all elements. */
static Node unique_of(Build *b, Node x, bool flat, uint32_t axis)
{
	Attr all[] = {attr_none(), attr_bool(true), attr_bool(true), attr_bool(true)};
	Attr along[] = {attr_none(), attr_int(b->g->ir, axis), attr_bool(true), attr_bool(true),
			attr_bool(true)};
	return flat ? onnx_call(b, "aten._unique2", &x, 1, all, 4)
		    : onnx_call(b, "aten.unique_dim", &x, 1, along, 5);
}

/* Finds where each value stands first. */
static Node first_places(Build *b, Node inverse, Sym count)
{
	uint32_t axis = 0;
	Sym n = b_dim(b, inverse, 0);
	Node place = b_iota(b, DT_i64, n), index = b_unsqueeze(b, inverse, -1);
	Node behind = b_broadcast(b, aten_size(b, n, DT_i64), 1, &count);
	return b_scatter(b, behind, index, place, 0, &axis, 1, "min");
}

/* Orders values, if they are not sorted, as they come. */
static Node build_unique(Build *b, Node n)
{
	Node x = arg(b, n, "X");
	bool flat = !aten_has(b, n, "axis");
	uint32_t axis = flat ? 0 : onnx_axis(b, n, "axis", x);
	Shape s = aten_shape(b, x);
	Sym numel = shape_numel(b, &s);
	Node u = unique_of(b, flat ? b_reshape(b, x, 1, &numel) : x, flat, axis);
	if (!u.i)
		return u;
	Node y = b_get(b, u, 0), inverse = b_get(b, u, 1), counts = b_get(b, u, 2),
	     first = first_places(b, inverse, b_dim(b, counts, 0));
	if (!node_bool(b->g, n, "sorted")) {
		Node by_place = b_sort(b, first, 0, false, true), order = b_get(b, by_place, 1);
		first = b_get(b, by_place, 0);
		y = aten_take_dim(b, y, flat ? 0 : axis, order, "promise");
		counts = aten_take_dim(b, counts, 0, order, "promise");
		Node rank = b_get(b, b_sort(b, order, 0, false, true), 1);
		inverse = aten_take_dim(b, rank, 0, inverse, "promise");
	}
	return b_tuple(b, (Node[]){y, first, inverse, counts}, 4);
}

OP(onnx_Unique_11){
	.schema = "onnx.Unique.11(Tensor X, *, int? axis=None, bool sorted=True) -> (Tensor, "
		  "Tensor, Tensor, Tensor)",
	.build = build_unique,
	.no_sample = NODE_TESTS,
};
