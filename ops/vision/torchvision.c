/* Operators of torchvision. */
#include <math.h>

#include "ir/interp/priv.h"
#include "ops/aten/priv.h"
#include "ops/prim/data_size.h"
#include "ops/prim/priv.h"
#include "ops/rules/batch.h"

/* ---- nms ---- */

/* Chooses as std::max and std::min do where one is NaN or both are equal: the second only if it
 * is larger, or less. */
static Node larger(Build *b, Node x, Node y)
{
	return b_select(b, b_bin(b, OP_lt, x, y), y, x);
}

static Node lesser(Build *b, Node x, Node y)
{
	return b_select(b, b_bin(b, OP_lt, y, x), y, x);
}

/* Returns coordinate k of boxes [4, ...]: x1, y1, x2, y2. */
static Node corner(Build *b, Node boxes, uint32_t k)
{
	return b_select_dim(b, boxes, 0, b_int(b, k));
}

static Node area_of(Build *b, Node boxes)
{
	return b_bin(b, OP_mul, b_bin(b, OP_sub, corner(b, boxes, 2), corner(b, boxes, 0)),
	             b_bin(b, OP_sub, corner(b, boxes, 3), corner(b, boxes, 1)));
}

/* Boxes [4, n] and their areas. */
typedef struct {
	Node box, area;
} Boxes;

/* Compares x > threshold, a double: of float the next one below it decides the same. */
static Node exceeds(Build *b, Node x, double threshold)
{
	if (aten_dtype(b, x) != DT_f32)
		return b_bin(b, OP_gt, b_convert(b, x, DT_f64), b_scalar(b, DT_f64, threshold));
	float below = (float)threshold;
	if ((double)below > threshold)
		below = nextafterf(below, -INFINITY);
	return b_bin(b, OP_gt, x, b_scalar(b, DT_f32, (double)below));
}

/* Returns bool[m, n]: whether more than the threshold of the union of one of m boxes and one of
 * n belongs to both. torchvision's operations in its order. */
static Node overlap(Build *b, const Boxes *one, const Boxes *many, double threshold)
{
	Node side[2], none = aten_like(b, one->area, 0);
	for (uint32_t k = 0; k < 2; k++) {
		Node others = b_unsqueeze(b, corner(b, many->box, k), 0);
		Node from = larger(b, b_unsqueeze(b, corner(b, one->box, k), 1), others);
		others = b_unsqueeze(b, corner(b, many->box, k + 2), 0);
		Node to = lesser(b, b_unsqueeze(b, corner(b, one->box, k + 2), 1), others);
		side[k] = larger(b, none, b_bin(b, OP_sub, to, from));
	}
	Node common = b_bin(b, OP_mul, side[0], side[1]);
	Node both = b_bin(b, OP_add, b_unsqueeze(b, one->area, 1), b_unsqueeze(b, many->area, 0));
	return exceeds(b, b_bin(b, OP_div, common, b_bin(b, OP_sub, both, common)), threshold);
}

static Build body_of(const Build *b, const char *name)
{
	return (Build){.g = graph_beside(b->g, name), .loc = b->loc, .where = b->where};
}

static Node body_input(Build *in, const char *name, TypeId type)
{
	return graph_add_input(in->g, name, INPUT_USER, type);
}

/* ---- a few boxes ---- */

enum { KEPT, MORE, OVER, ALIVE, SETTLE_INPUTS };

static Build settle_body(const Build *b, const char *name, const Node *like, Node *x)
{
	static const char *const names[] = {"kept", "more", "over", "alive"};
	Build in = body_of(b, name);
	for (uint32_t k = 0; k < SETTLE_INPUTS; k++)
		x[k] = body_input(&in, names[k], node_type_id(b->g, like[k]));
	return in;
}

/* Finds which of the boxes that are alive are kept: those that no box kept before them takes
 * away. over[j, i]: j would take i. This asks again with the answer until it stays; as many
 * times as one decides the next, mostly three or four. */
static Node settle(Build *b, Node over, Node alive)
{
	if (!over.i || !alive.i)
		return (Node){0};
	Ir *ir = b->g->ir;
	Node init[] = {alive, b_full_attr(b, DT_bool, attr_bool(true), 0, NULL), over, alive},
	     x[SETTLE_INPUTS];
	Build test = settle_body(b, "more", init, x);
	graph_add_output(test.g, "more", x[MORE], -1);
	Build in = settle_body(b, "settle", init, x);
	Node taken =
		b_reduce(&in, REDUCE_OR,
			 b_bin(&in, OP_bit_and, x[OVER], b_unsqueeze(&in, x[KEPT], 1)), 1, DT_none);
	Node kept = b_bin(&in, OP_bit_and, x[ALIVE], b_un(&in, OP_bit_not, taken));
	graph_add_output(in.g, "kept", kept, -1);
	graph_add_output(in.g, "more",
			 b_reduce(&in, REDUCE_OR, b_bin(&in, OP_ne, kept, x[KEPT]), 1, DT_none),
			 -1);
	Attr attr[] = {attr_int(ir, 2), attr_int(ir, 2), attr_graph(test.g), attr_graph(in.g)};
	return b_get(b, b_node(b, OP_while, init, SETTLE_INPUTS, attr, 4), 0);
}

/* Finds the boxes that are kept of boxes in the order of their scores, all at once. */
static Node kept_of_few(Build *b, const Boxes *few, Node alive, double threshold)
{
	Sym n = b_dim(b, few->area, 0);
	Node number = b_iota(b, DT_i64, n),
	     before = b_bin(b, OP_lt, b_unsqueeze(b, number, 1), b_unsqueeze(b, number, 0));
	return settle(b, b_bin(b, OP_bit_and, before, overlap(b, few, few, threshold)), alive);
}

/* ---- many boxes ---- */

enum { BLOCK = 128 }; /* boxes */

/* Makes the body of one step, over blocks of boxes in the order of their scores: (which are
 * gone), the block's number, boxes and areas, those of all, to (which are gone), which of the
 * block are kept. Those that are kept take with them what comes after the block; only they are
 * looked at. */
static Graph *nms_step(Build *b, const Boxes *all, double threshold)
{
	Build in = body_of(b, "nms");
	Graph *g = in.g;
	DType d = node_dtype(b->g, all->box);
	Sym n = b_dim(b, all->area, 0), part[] = {b_int(b, 4), b_int(b, BLOCK)},
	    kept_few = data_size_new(b);
	Node gone = body_input(&in, "gone", ir_type(g->ir, DT_bool, 1, &n)),
	     number = body_input(&in, "number", ir_type(g->ir, DT_i64, 0, NULL));
	Boxes block = {body_input(&in, "block", ir_type(g->ir, d, 2, part)),
		       body_input(&in, "block_areas", ir_type(g->ir, d, 1, part + 1))};
	Boxes every = {body_input(&in, "boxes", node_type_id(b->g, all->box)),
		       body_input(&in, "areas", node_type_id(b->g, all->area))};
	Node place = b_bin(&in, OP_add, b_bin_scalar(&in, OP_mul, number, BLOCK),
			   b_iota(&in, DT_i64, part[1]));
	Node kept = kept_of_few(
		&in, &block, b_un(&in, OP_bit_not, aten_take_dim(&in, gone, 0, place, "promise")),
		threshold);
	Node which = true_elements(&in, kept, kept_few, "torchvision.nms").place;
	Boxes taking = {aten_take_dim(&in, block.box, 1, which, "promise"),
			aten_take_dim(&in, block.area, 0, which, "promise")};
	Node goes = b_reduce(&in, REDUCE_OR, overlap(&in, &taking, &every, threshold), 1, DT_none);
	graph_add_output(g, "gone", b_bin(&in, OP_bit_or, gone, goes), -1);
	graph_add_output(g, "kept", kept, -1);
	return g;
}

/* Tells which of the numbers below n are not below `count`. */
static Node missing(Build *b, Sym n, Sym count)
{
	return b_bin(b, OP_ge, b_iota(b, DT_i64, n), aten_size(b, count, DT_i64));
}

static Node kept_of_many(Build *b, const Boxes *boxes, double threshold)
{
	SymTab *t = b_syms(b);
	Ir *ir = b->g->ir;
	Sym count = b_dim(b, boxes->area, 0), few = b_int(b, BLOCK);
	Sym blocks = sym_floordiv(t, sym_addi(t, count, BLOCK - 1), few),
	    n = sym_mul(t, blocks, few), zero = b_int(b, 0);
	Sym low[] = {zero, zero}, high[] = {zero, sym_sub(t, n, count)};
	Node none = aten_like(b, boxes->area, 0);
	Boxes all = {b_pad(b, boxes->box, low, high, none),
		     b_pad(b, boxes->area, low, high + 1, none)};
	if (!all.box.i || !all.area.i)
		return (Node){0};
	Sym part[] = {b_int(b, 4), blocks, few};
	Boxes block = {b_transpose(b, b_reshape(b, all.box, 3, part), 0, 1),
		       b_reshape(b, all.area, 2, part + 1)};
	Attr attr[] = {attr_int(ir, 1),  attr_int(ir, 3),
		       attr_int(ir, 2),  attr_graph(nms_step(b, &all, threshold)),
		       attr_sym(blocks), attr_bool(false)};
	Node init[] = {missing(b, n, count),
		       b_iota(b, DT_i64, blocks),
		       block.box,
		       block.area,
		       all.box,
		       all.area};
	Node kept = b_get(b, b_node(b, OP_scan, init, sizeof init / sizeof *init, attr, 6), 1);
	return b_slice(b, b_reshape(b, kept, 1, &n), 0, zero, count, b_int(b, 1));
}

static Node build_kept(Build *b, Node n)
{
	Node box = aten_wide(b, aten_to_float(b, arg(b, n, "boxes")));
	double threshold = node_float(b->g, n, "threshold");
	Boxes boxes = {.box = b_transpose(b, box, 0, 1)};
	boxes.area = area_of(b, boxes.box);
	if (!boxes.area.i)
		return boxes.area;
	Sym count = b_dim(b, box, 0);
	if (sym_le(b_syms(b), count, b_int(b, BLOCK)) == YES)
		return kept_of_few(b, &boxes, b_full_attr(b, DT_bool, attr_bool(true), 1, &count),
				   threshold);
	return kept_of_many(b, &boxes, threshold);
}

static bool shape_nms_kept(Infer *f)
{
	Type x = infer_in(f, 0);
	if (x.n != 2 || !sym_is(f->syms, x.dim[1], 4) || dtype_is_complex(x.dtype))
		return infer_fail(f, "boxes: expected real numbers of shape [n, 4]");
	return infer_result(f, DT_bool, 1, x.dim);
}
INFER(nms_kept)

/* Arithmetic of doubles, rounded to f32 where that is what boxes are computed in: the same as f32's
 * own. */
typedef struct {
	const Tensor *box;
	const double *area;
	bool single;
} Reference;

static double round_to(const Reference *r, double x)
{
	return r->single ? (double)(float)x : x;
}

static double coordinate(const Reference *r, int64_t box, int64_t k)
{
	return round_to(r, tensor_f64(r->box, 4 * box + k));
}

static double overlap_of(const Reference *r, int64_t i, int64_t j)
{
	double side[2];
	for (int64_t k = 0; k < 2; k++) {
		double a = coordinate(r, i, k), b = coordinate(r, j, k);
		double from = a < b ? b : a;
		a = coordinate(r, i, k + 2);
		b = coordinate(r, j, k + 2);
		double length = round_to(r, (b < a ? b : a) - from);
		side[k] = 0 < length ? length : 0;
	}
	double common = round_to(r, side[0] * side[1]);
	return round_to(r, common / round_to(r, round_to(r, r->area[i] + r->area[j]) - common));
}

static bool eval_nms_kept(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	int64_t count = in->dim[0];
	double *area = EVAL_ARRAY(e, double, count), threshold = node_float(g, n, "threshold");
	Reference r = {.box = in, .area = area, .single = in->dtype != DT_f64};
	for (int64_t i = 0; i < count; i++) {
		double width = round_to(&r, coordinate(&r, i, 2) - coordinate(&r, i, 0));
		area[i] = round_to(
			&r, width * round_to(&r, coordinate(&r, i, 3) - coordinate(&r, i, 1)));
		tensor_set_i64(out, i, 1);
	}
	for (int64_t i = 0; i < count; i++)
		for (int64_t j = i + 1; tensor_i64(out, i) && j < count; j++)
			if (tensor_i64(out, j) && overlap_of(&r, i, j) > threshold)
				tensor_set_i64(out, j, 0);
	return true;
}

OP(nms_kept){
	.schema = "nms_kept(Tensor boxes, *, float threshold) -> Tensor",
	.doc = "which boxes [n, 4] overlap none that is kept before them by more than the "
	       "threshold of their union",
	.expands = EXPANDS_IN_DECOMPOSE,
	.infer = infer_nms_kept,
	.eval = eval_nms_kept,
	.build = build_kept,
	.batch = batch_by_scan, /* how many boxes of a block are kept differs among members */
	.sample = "f32[n=6, 4] of 0 0 4 4 1 0 5 4 2 0 6 4 0 0 4 4 9 9 8 8 nan 0 1 1, "
		  "threshold=0.5; f32[3, 4] of 0 0 2 1 1 0 3 1 0 0 0 0, threshold=0.1",
};

static Node build_nms(Build *b, Node n)
{
	Node boxes = arg(b, n, "dets"), scores = arg(b, n, "scores");
	if (!boxes.i || !scores.i)
		return (Node){0};
	if (node_rank(b->g, boxes) != 2 || node_rank(b->g, scores) != 1 ||
	    !sym_is(b_syms(b), b_dim(b, boxes, 1), 4))
		return b_error(
			b, "nms of boxes of rank %u and scores of rank %u, expected [n, 4] and [n]",
			node_rank(b->g, boxes), node_rank(b->g, scores));
	if (!dtype_is_float(node_dtype(b->g, boxes)) ||
	    node_dtype(b->g, boxes) != node_dtype(b->g, scores))
		return b_error(b, "nms of %s boxes and %s scores",
			       dtype_name(node_dtype(b->g, boxes)),
			       dtype_name(node_dtype(b->g, scores)));
	aten_require_equal(b, b_dim(b, boxes, 0), b_dim(b, scores, 0),
			   "nms has a score for each box");
	Node order = b_get(b, b_sort(b, scores, 0, true, true), 1);
	Node sorted = aten_wide(b, aten_take_dim(b, boxes, 0, order, "promise"));
	Attr attr[] = {attr_none(), *node_attr(b->g, n, "iou_threshold")};
	Node kept = sorted.i ? b_node(b, OP_nms_kept, &sorted, 1, attr, 2) : sorted;
	return aten_take_dim(b, order, 0,
			     true_elements(b, kept, data_size(b, n, 0, 0), "torchvision.nms").place,
			     "promise");
}
OP(torchvision_nms){
	.schema = "torchvision.nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
	.doc = "boxes that overlap none with a higher score, by falling scores",
	.build = build_nms,
	.has_effect = data_size_effect,
	.no_sample = "torchvision's: tests/data/sizes compares with it",
};
