/* Operators of torchvision. */
#include "ir/ops/data_size.h"

/* ---- nms ---- */

/* As std::max and std::min choose where one is NaN or both are equal: the second only if it is larger, or less. */
static Node larger(Build *b, Node x, Node y)
{
	return b_select(b, b_bin(b, OP_lt, x, y), y, x);
}

static Node lesser(Build *b, Node x, Node y)
{
	return b_select(b, b_bin(b, OP_lt, y, x), y, x);
}

/* Coordinate k of one box [4] or of many [4, n]: x1, y1, x2, y2. */
static Node corner(Build *b, Node box, uint32_t k)
{
	return b_select_dim(b, box, 0, b_int(b, k));
}

static Node area_of(Build *b, Node box)
{
	return b_bin(b, OP_mul, b_bin(b, OP_sub, corner(b, box, 2), corner(b, box, 0)),
	             b_bin(b, OP_sub, corner(b, box, 3), corner(b, box, 1)));
}

/* How much of the union of one box and each of many is common to both: torchvision's operations in its order. */
static Node overlaps(Build *b, Node one, Node one_area, Node many, Node areas)
{
	Node side[2], none = aten_like(b, one_area, 0);
	for (uint32_t k = 0; k < 2; k++) {
		Node from = larger(b, corner(b, one, k), corner(b, many, k)), to = lesser(b, corner(b, one, k + 2), corner(b, many, k + 2));
		side[k] = larger(b, none, b_bin(b, OP_sub, to, from));
	}
	Node common = b_bin(b, OP_mul, side[0], side[1]);
	return b_bin(b, OP_div, common, b_bin(b, OP_sub, b_bin(b, OP_add, one_area, areas), common));
}

enum { GONE, NUMBER, BOX, AREA, BOXES, AREAS, NMS_INPUTS };

/* One step, over boxes in the order of their scores: (which are gone), its number, box and area, all boxes and areas to (which
 * are gone), whether it is kept. A box that is kept takes with it those after it that overlap it by more than the threshold. */
static Graph *nms_step(Build *b, Node boxes, double threshold)
{
	static const char *const name[] = {"gone", "number", "box", "area", "boxes", "areas"};
	Graph *g = graph_new(b->g->ir, "nms");
	Build in = {.g = g, .loc = b->loc, .where = b->where};
	DType d = node_dtype(b->g, boxes);
	Sym n = b_dim(b, boxes, 1), four = b_int(b, 4);
	TypeId type[] = {ir_type(g->ir, DT_bool, 1, &n),  ir_type(g->ir, DT_i64, 0, NULL),
	                 ir_type(g->ir, d, 1, &four),     ir_type(g->ir, d, 0, NULL),
	                 node_type_id(b->g, boxes),       ir_type(g->ir, d, 1, &n)};
	Node x[NMS_INPUTS];
	for (uint32_t k = 0; k < NMS_INPUTS; k++)
		x[k] = graph_add_input(g, name[k], INPUT_USER, type[k]);
	Node kept = b_un(&in, OP_bit_not, b_reshape(&in, aten_take_dim(&in, x[GONE], 0, x[NUMBER], "promise"), 0, NULL));
	Node common = overlaps(&in, x[BOX], x[AREA], x[BOXES], x[AREAS]);
	Node much = b_bin(&in, OP_gt, b_convert(&in, common, DT_f64), b_scalar(&in, DT_f64, threshold));
	Node after = b_bin(&in, OP_gt, b_iota(&in, DT_i64, n), x[NUMBER]);
	Node goes = b_bin(&in, OP_bit_and, b_bin(&in, OP_bit_and, much, after), kept);
	graph_add_output(g, "gone", b_bin(&in, OP_bit_or, x[GONE], goes), -1);
	graph_add_output(g, "kept", kept, -1);
	return g;
}

/* Which of boxes [n, 4], in the order of their scores, are kept. */
static Node kept_boxes(Build *b, Node box, double threshold)
{
	Ir *ir = b->g->ir;
	Sym n = b_dim(b, box, 0);
	Node boxes = b_transpose(b, box, 0, 1), areas = area_of(b, boxes);
	if (!areas.i)
		return areas;
	Attr attr[] = {attr_int(ir, 1), attr_int(ir, 3), attr_int(ir, 2), attr_graph(nms_step(b, boxes, threshold)), attr_sym(n),
	               attr_bool(false)};
	Node in[] = {b_full_attr(b, DT_bool, attr_bool(false), 1, &n), b_iota(b, DT_i64, n), box, areas, boxes, areas};
	return b_get(b, b_node(b, OP_scan, in, NMS_INPUTS, attr, 6), 1);
}

static Node build_nms(Build *b, Node n)
{
	Node boxes = arg(b, n, "dets"), scores = arg(b, n, "scores");
	if (!boxes.i || !scores.i)
		return (Node){0};
	if (node_rank(b->g, boxes) != 2 || node_rank(b->g, scores) != 1 || !sym_is(b_syms(b), b_dim(b, boxes, 1), 4))
		return b_error(b, "nms of boxes of rank %u and scores of rank %u, expected [n, 4] and [n]", node_rank(b->g, boxes),
		               node_rank(b->g, scores));
	if (!dtype_is_float(node_dtype(b->g, boxes)) || node_dtype(b->g, boxes) != node_dtype(b->g, scores))
		return b_error(b, "nms of %s boxes and %s scores", dtype_name(node_dtype(b->g, boxes)),
		               dtype_name(node_dtype(b->g, scores)));
	aten_require_equal(b, b_dim(b, boxes, 0), b_dim(b, scores, 0), "nms has a score for each box");
	Node order = b_get(b, b_sort(b, scores, 0, true, true), 1);
	Node kept = kept_boxes(b, aten_take_dim(b, boxes, 0, order, "promise"), node_float(b->g, n, "iou_threshold"));
	return aten_take_dim(b, order, 0, true_elements(b, kept, data_size(b, n, 0, 0), "torchvision.nms").place, "promise");
}
OP(torchvision_nms){
	.schema = "torchvision.nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
	.doc = "boxes that overlap none with a higher score, by falling scores",
	.build = build_nms,
	.has_effect = data_size_effect,
	.no_sample = "torchvision's: tests/data/sizes compares with it",
};
