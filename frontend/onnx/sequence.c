/* Sequences and optionals: lists of values, which are resolved at import. A part of a list may be
 * what the rounds of a loop add (Value.repeats): such a list is read as a whole. */
#include <string.h>

#include "frontend/onnx/body.h"

static Value *list_in(const Item *it, uint32_t k)
{
	Value *v = onnx_item_in(it, k);
	if (!v || !v->is_list)
		onnx_item_error(it, "input %u is missing or a tensor, expected a sequence", k);
	return v && v->is_list ? v : NULL;
}

/* Whether the number of the list's values is known. */
static bool is_plain(const Value *list)
{
	for (uint32_t k = 0; k < list->item.n; k++)
		if (list->item.data[k]->repeats.i)
			return false;
	return true;
}

/* Returns input k, a list whose values are all known; NULL after an error. */
static Value *plain_in(const Item *it, uint32_t k)
{
	Value *v = list_in(it, k);
	if (!v || is_plain(v))
		return v;
	onnx_item_error(it, "a loop adds to the sequence, whose number of rounds is not known when "
			    "the model is read");
	return NULL;
}

/* Sets *out to the position that input k names, among n; n - 1 without the input. */
static bool position(const Item *it, uint32_t k, int64_t n, int64_t *out)
{
	Value *v = onnx_item_in(it, k);
	const Sym *size;
	uint32_t count;
	*out = n - 1;
	if (!v)
		return n > 0 || onnx_item_error(it, "the sequence is empty");
	TRY(onnx_value_to_sizes(it->s, v, "the position", &size, &count));
	if (count != 1 || !sym_is_const(it->s->im->syms, size[0], out))
		return onnx_item_error(
			it, "the position in a sequence must be known when the model is read");
	*out += *out < 0 ? n : 0;
	return (*out >= 0 && *out < n) || onnx_item_error(it, "position %lld of a sequence of %lld",
							  (long long)*out, (long long)n);
}

/* Returns the values of the list with `more` in front of position `at`, and without the one
 * there if `skip`. */
static Value *edited(const Item *it, const Value *list, uint32_t at, Value *more, bool skip)
{
	Value *out = onnx_value_list(it->s->im, NULL, 0);
	for (uint32_t k = 0; k <= list->item.n; k++) {
		if (k == at && more)
			array_push(it->s->im->ctx->arena, &out->item, more);
		if (k < list->item.n && !(k == at && skip))
			array_push(it->s->im->ctx->arena, &out->item, list->item.data[k]);
	}
	return out;
}

/* Returns the same value under another name. */
static Value *renamed(const Item *it, const Value *v)
{
	Value *out = arena_dup(it->s->im->ctx->arena, v, sizeof *v);
	out->name = NULL;
	return out;
}

static bool construct(const Item *it)
{
	for (uint32_t k = 0; k < it->nin; k++)
		if (!it->in[k])
			return onnx_item_error(it, "input %u is missing", k);
	return onnx_item_bind(it, 0, onnx_value_list(it->s->im, it->in, it->nin));
}

Value *list_rows(const Value *list)
{
	const Value *one = list->item.n == 1 ? list->item.data[0] : NULL;
	return one && one->repeats.i && one->item.n == 1 ? one->item.data[0] : NULL;
}

Value *list_of_rows(Import *im, Value *rows, Sym n)
{
	Value *part = onnx_value_new(im);
	part->repeats = n;
	array_push(im->ctx->arena, &part->item, rows);
	return onnx_value_list(im, &part, 1);
}

static bool at_rows(const Item *it, const Value *rows, Value *where)
{
	Build *b = &it->s->b;
	Node place = onnx_value_node(it->s, where);
	TRY(place.i);
	place = b_convert(b, b_reshape(b, place, 0, NULL), DT_i64);
	Op op = op_find_onnx(it->s->im->ctx, "", "Gather", 13);
	Attr attr[] = {attr_none(), attr_none(), attr_int(it->s->im->ir, 0)};
	Node y = b_call(b, op, (Node[]){rows->node, place}, 2, attr, 3);
	return y.i && onnx_item_bind(it, 0, onnx_value_of(it->s, y));
}

static bool at(const Item *it)
{
	Value *list = list_in(it, 0), *where = onnx_item_in(it, 1);
	const Value *rows = list ? list_rows(list) : NULL;
	int64_t k;
	if (rows && where && !where->is_list)
		return at_rows(it, rows, where);
	return plain_in(it, 0) && position(it, 1, list->item.n, &k) &&
	       onnx_item_bind(it, 0, renamed(it, list->item.data[k]));
}

/* Whether the position is the front of the list. */
static bool is_front(const Item *it, Value *where)
{
	const Sym *size;
	uint32_t n;
	return onnx_value_as_sizes(it->s, where, &size, &n) && n == 1 &&
	       sym_is(it->s->im->syms, size[0], 0);
}

static bool insert(const Item *it)
{
	Value *list = list_in(it, 0), *v = onnx_item_in(it, 1), *where = onnx_item_in(it, 2);
	int64_t k;
	TRY(list);
	if (!v)
		return onnx_item_error(it, "the value is missing");
	if (!where)
		k = list->item.n;
	else if (!where->is_list && is_front(it, where))
		k = 0;
	else
		TRY(plain_in(it, 0) && position(it, 2, (int64_t)list->item.n + 1, &k));
	return onnx_item_bind(it, 0, edited(it, list, (uint32_t)k, v, false));
}

static bool erase(const Item *it)
{
	Value *list = plain_in(it, 0);
	int64_t k;
	return list && position(it, 1, list->item.n, &k) &&
	       onnx_item_bind(it, 0, edited(it, list, (uint32_t)k, NULL, true));
}

static Value *count(const Item *it, DType d, Sym n)
{
	return onnx_value_sizes(it->s->im, d, &n, 1, false);
}

static bool length(const Item *it)
{
	Value *list = list_in(it, 0);
	SymTab *t = it->s->im->syms;
	Sym n = sym_int(t, 0);
	TRY(list);
	for (uint32_t k = 0; k < list->item.n; k++) {
		const Value *v = list->item.data[k];
		if (v->repeats.i && !v->item.n)
			return plain_in(it, 0);
		n = sym_add(t, n,
			    v->repeats.i ? sym_muli(t, v->repeats, v->item.n) : sym_int(t, 1));
	}
	return onnx_item_bind(it, 0, count(it, DT_i64, n));
}

enum { MAX_PIECES = 4096 };

/* Binds the pieces of 1 along a dimension whose extent is a symbol. */
static bool split_ones(const Item *it, Node x, uint32_t axis, bool keep)
{
	Build *b = &it->s->b;
	Sym n = node_dim(b->g, x, axis);
	Node rows = moved(b, x, axis, 0);
	if (keep)
		rows = b_unsqueeze(b, rows, (int)axis + 1);
	return rows.i &&
	       onnx_item_bind(it, 0, list_of_rows(it->s->im, onnx_value_of(it->s, rows), n));
}

/* Splits a tensor in pieces of 1, of one extent, or of given extents. */
static bool split(const Item *it)
{
	Build *b = &it->s->b;
	SymTab *t = it->s->im->syms;
	Value *v = onnx_item_in(it, 0), *given = onnx_item_in(it, 1);
	Node x = v ? onnx_value_node(it->s, v) : (Node){0};
	if (!x.i)
		return v ? false : onnx_item_error(it, "the operand is missing");
	int64_t axis = onnx_item_int(it, "axis", 0), extent, rank = node_rank(b->g, x), each = 1;
	bool keep = given || onnx_item_int(it, "keepdims", 1);
	axis += axis < 0 ? rank : 0;
	if (axis < 0 || axis >= rank)
		return onnx_item_error(it, "axis %lld of rank %lld", (long long)axis,
				       (long long)rank);
	const Sym *size = NULL;
	uint32_t n = 0;
	TRY(!given || onnx_value_to_sizes(it->s, given, "split", &size, &n));
	bool list = given && onnx_value_rank(it->s, given) == 1;
	if (given && !list && (!sym_is_const(t, size[0], &each) || each < 1))
		return onnx_item_error(it, "split must be a constant above 0");
	if (!sym_is_const(t, node_dim(b->g, x, (uint32_t)axis), &extent))
		return !list && each == 1
			       ? split_ones(it, x, (uint32_t)axis, keep)
			       : onnx_item_error(it,
						 "axis %lld must be a dimension of "
						 "constant extent, or the pieces of extent 1",
						 (long long)axis);
	Value *out = onnx_value_list(it->s->im, NULL, 0);
	for (int64_t start = 0, k = 0; start < extent || (list && k < n); k++) {
		if (list && (k >= n || !sym_is_const(t, size[k], &each) || each < 0 ||
			     each > extent - start))
			return onnx_item_error(it, "split: the pieces must be constants, as long "
						   "as the operand together");
		if (k == MAX_PIECES)
			return onnx_item_error(it, "more than %d pieces", MAX_PIECES);
		int64_t end = each < extent - start ? start + each : extent;
		Node part = b_slice(b, x, (int)axis, b_int(b, start), b_int(b, end), b_int(b, 1));
		if (!keep)
			part = b_select_dim(b, part, (int)axis, b_int(b, 0));
		TRY(part.i);
		array_push(it->s->im->ctx->arena, &out->item, onnx_value_of(it->s, part));
		start = end;
	}
	return onnx_item_bind(it, 0, out);
}

/* Joins what a loop added in one tensor: the pieces one behind the other along the axis, or
 * stacked there. */
static Node join_rows(const Item *it, const Value *part, int64_t axis, bool fresh)
{
	Build *b = &it->s->b;
	uint32_t n = part->item.n;
	Node *x = ARENA_ARRAY(it->s->im->ctx->scratch, Node, n + 1);
	for (uint32_t k = 0; k < n; k++) {
		x[k] = onnx_value_node(it->s, part->item.data[k]);
		uint32_t rank = x[k].i ? node_rank(b->g, x[k]) - 1 + fresh : 0; /* of a piece */
		if (axis < -(int64_t)rank || axis >= rank)
			return b_error(b, "axis %lld of rank %u", (long long)axis, rank);
		axis += axis < 0 ? rank : 0;
		if (fresh)
			x[k] = b_unsqueeze(b, x[k], (int)axis + 1);
	}
	if (!n)
		return b_error(b, "the sequence of a loop is read in it");
	/* [rounds, ..., extent, ...] -> [..., rounds * extent, ...] */
	Node all = moved(b, b_concat(b, x, n, (int)axis + 1), 0, (uint32_t)axis);
	if (!all.i)
		return all;
	Type t = *node_type(b->g, all);
	Sym dim[MAX_RANK];
	memcpy(dim, t.dim, (size_t)axis * sizeof *dim);
	for (uint32_t d = (uint32_t)axis + 1; d < t.n; d++)
		dim[d - 1] = t.dim[d];
	dim[axis] = sym_mul(b_syms(b), t.dim[axis], t.dim[axis + 1]);
	return b_reshape(b, all, t.n - 1, dim);
}

static bool concat(const Item *it)
{
	Build *b = &it->s->b;
	Value *list = list_in(it, 0);
	bool fresh = onnx_item_int(it, "new_axis", 0) != 0;
	TRY(list);
	if (!list->item.n)
		return onnx_item_error(it, "the sequence is empty");
	Node *x = ARENA_ARRAY(it->s->im->ctx->scratch, Node, list->item.n);
	int64_t axis = onnx_item_int(it, "axis", 0);
	for (uint32_t k = 0; k < list->item.n; k++) {
		if (list->item.data[k]->repeats.i) {
			x[k] = join_rows(it, list->item.data[k], axis, fresh);
			TRY(x[k].i);
			continue;
		}
		x[k] = onnx_value_node(it->s, list->item.data[k]);
		TRY(x[k].i);
		int64_t rank = node_rank(b->g, x[k]) + fresh;
		if (axis < -rank || axis >= rank)
			return onnx_item_error(it, "axis %lld of rank %lld", (long long)axis,
					       (long long)rank);
		if (fresh)
			x[k] = b_unsqueeze(b, x[k], (int)axis);
	}
	Node y = b_concat(b, x, list->item.n, (int)axis);
	return y.i && onnx_item_bind(it, 0, onnx_value_of(it->s, y));
}

/* Imports the body once for each element of the first sequence; other sequences are read beside
 * it. */
static bool map(const Item *it)
{
	const OnnxAttr *a = onnx_item_attr(it, "body");
	Value *first = plain_in(it, 0);
	const OnnxGraph *g = a ? a->g : NULL;
	Import *im = it->s->im;
	TRY(first);
	if (!g || g->in.n != it->nin)
		return onnx_item_error(it, "expected a body with %u inputs", it->nin);
	Value **out = ARENA_ARRAY(im->ctx->scratch, Value *, it->n->out.n + 1);
	for (uint32_t r = 0; r < it->n->out.n; r++)
		out[r] = onnx_value_list(im, NULL, 0);
	for (uint32_t k = 0; k < first->item.n; k++) {
		Scope s;
		onnx_scope_init(&s, im, it->s->b.g, it->s, it->s->opset);
		for (uint32_t i = 0; i < it->nin; i++) {
			Value *v = it->in[i];
			if (!v || (v->is_list && (k >= v->item.n || !is_plain(v))) ||
			    !g->in.data[i].name)
				return onnx_item_error(
					it, "input %u is missing, or a shorter sequence", i);
			TRY(onnx_scope_bind(&s, g->in.data[i].name,
					    renamed(it, v->is_list ? v->item.data[k] : v)));
		}
		TRY(onnx_scope_graph(&s, g));
		for (uint32_t r = 0; r < it->n->out.n; r++) {
			Value *v = r < g->out.n && g->out.data[r].name
					   ? onnx_scope_find(&s, g->out.data[r].name)
					   : NULL;
			if (!v)
				return onnx_item_error(
					it, "no node of the body gives its result %u", r);
			array_push(im->ctx->arena, &out[r]->item, v);
		}
	}
	for (uint32_t r = 0; r < it->n->out.n; r++)
		TRY(onnx_item_bind(it, r, out[r]));
	return true;
}

/* Makes an optional: one that holds nothing is a list of nothing; one that holds a value is that
 * value. */
static bool optional(const Item *it)
{
	Value *v = onnx_item_in(it, 0);
	return onnx_item_bind(it, 0, v ? renamed(it, v) : onnx_value_list(it->s->im, NULL, 0));
}

static bool has_element(const Item *it)
{
	Value *v = onnx_item_in(it, 0);
	return onnx_item_bind(
		it, 0,
		count(it, DT_bool, sym_int(it->s->im->syms, v && !(v->is_list && !v->item.n))));
}

static bool get_element(const Item *it)
{
	Value *v = onnx_item_in(it, 0);
	if (!v || (v->is_list && !v->item.n))
		return onnx_item_error(it, "the optional holds no value");
	return onnx_item_bind(it, 0, renamed(it, v));
}

bool onnx_import_sequence(const Item *it)
{
	static const struct {
		const char *op;
		Importer import;
	} row[] = {
		{"SequenceConstruct", construct},
		{"SequenceEmpty", construct},
		{"SequenceAt", at},
		{"SequenceInsert", insert},
		{"SequenceErase", erase},
		{"SequenceLength", length},
		{"SequenceMap", map},
		{"SplitToSequence", split},
		{"ConcatFromSequence", concat},
		{"Optional", optional},
		{"OptionalHasElement", has_element},
		{"OptionalGetElement", get_element},
	};
	for (size_t k = 0; k < sizeof row / sizeof *row; k++)
		if (!strcmp(row[k].op, it->n->op))
			return row[k].import(it);
	return onnx_item_error(it, "the operator is not supported");
}
