/* Sequences and optionals: lists of values, which are resolved at import. */
#include <string.h>

#include "frontend/onnx/priv.h"

static Value *list_in(const Item *it, uint32_t k)
{
	Value *v = onnx_item_in(it, k);
	if (!v || !v->is_list)
		onnx_item_error(it, "input %u is missing or a tensor, expected a sequence", k);
	return v && v->is_list ? v : NULL;
}

/* The position that input k names, among n; n - 1 without the input. */
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

/* The values of the list with `more` in front of position `at`, and without the one there if
 * `skip`. */
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

/* The same value under another name. */
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

static bool at(const Item *it)
{
	Value *list = list_in(it, 0);
	int64_t k;
	return list && position(it, 1, list->item.n, &k) &&
	       onnx_item_bind(it, 0, renamed(it, list->item.data[k]));
}

static bool insert(const Item *it)
{
	Value *list = list_in(it, 0), *v = onnx_item_in(it, 1);
	int64_t k;
	TRY(list);
	if (!v)
		return onnx_item_error(it, "the value is missing");
	TRY(position(it, 2, (int64_t)list->item.n + 1, &k));
	return onnx_item_bind(it, 0, edited(it, list, (uint32_t)k, v, false));
}

static bool erase(const Item *it)
{
	Value *list = list_in(it, 0);
	int64_t k;
	return list && position(it, 1, list->item.n, &k) &&
	       onnx_item_bind(it, 0, edited(it, list, (uint32_t)k, NULL, true));
}

static Value *count(const Item *it, DType d, int64_t n)
{
	Sym s = sym_int(it->s->im->syms, n);
	return onnx_value_sizes(it->s->im, d, &s, 1, false);
}

static bool length(const Item *it)
{
	Value *list = list_in(it, 0);
	return list && onnx_item_bind(it, 0, count(it, DT_i64, list->item.n));
}

enum { MAX_PIECES = 4096 };

/* In pieces of 1, of one extent, or of given extents. */
static bool split(const Item *it)
{
	Build *b = &it->s->b;
	SymTab *t = it->s->im->syms;
	Value *v = onnx_item_in(it, 0), *given = onnx_item_in(it, 1);
	Node x = v ? onnx_value_node(it->s, v) : (Node){0};
	if (!x.i)
		return v ? false : onnx_item_error(it, "the operand is missing");
	int64_t axis = onnx_item_int(it, "axis", 0), extent, rank = node_rank(b->g, x), each = 1;
	axis += axis < 0 ? rank : 0;
	if (axis < 0 || axis >= rank ||
	    !sym_is_const(t, node_dim(b->g, x, (uint32_t)axis), &extent))
		return onnx_item_error(it, "axis %lld must be a dimension of constant extent",
				       (long long)axis);
	const Sym *size = NULL;
	uint32_t n = 0;
	TRY(!given || onnx_value_to_sizes(it->s, given, "split", &size, &n));
	bool list = given && onnx_value_rank(it->s, given) == 1;
	if (given && !list && (!sym_is_const(t, size[0], &each) || each < 1))
		return onnx_item_error(it, "split must be a constant above 0");
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
		if (!given && !onnx_item_int(it, "keepdims", 1))
			part = b_select_dim(b, part, (int)axis, b_int(b, 0));
		TRY(part.i);
		array_push(it->s->im->ctx->arena, &out->item, onnx_value_of(it->s, part));
		start = end;
	}
	return onnx_item_bind(it, 0, out);
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

/* The body once for each element of the first sequence; other sequences are read beside it. */
static bool map(const Item *it)
{
	const OnnxAttr *a = onnx_item_attr(it, "body");
	Value *first = list_in(it, 0);
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
			if (!v || (v->is_list && k >= v->item.n) || !g->in.data[i].name)
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

/* An optional that holds nothing is a list of nothing; one that holds a value is that value. */
static bool optional(const Item *it)
{
	Value *v = onnx_item_in(it, 0);
	return onnx_item_bind(it, 0, v ? renamed(it, v) : onnx_value_list(it->s->im, NULL, 0));
}

static bool has_element(const Item *it)
{
	Value *v = onnx_item_in(it, 0);
	return onnx_item_bind(it, 0, count(it, DT_bool, v && !(v->is_list && !v->item.n)));
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
