/* Values of names, and what is known of them at import. */
#include <string.h>

#include "frontend/onnx/priv.h"
#include "ir/build/text.h"
#include "ir/interp/interp.h"
#include "ops/rules/common.h"

void onnx_scope_init(Scope *s, Import *im, Graph *g, Scope *outer, const OnnxOpsets *opset)
{
	*s = (Scope){.im = im,
		     .b = {.g = g},
		     .outer = outer,
		     .opset = opset,
		     .depth = outer ? outer->depth : 0};
	if (outer) {
		s->function = outer->function;
		s->call = outer->call;
		s->caller = outer->caller;
		s->b.where = outer->b.where;
		s->loc = outer->b.loc;
	}
	intern_init(&s->names, im->ctx->scratch);
}

Value *onnx_scope_find(const Scope *s, const char *name)
{
	for (; s; s = s->outer) {
		uint32_t id = intern_find(&s->names, name, strlen(name));
		if (id)
			return s->value.data[id - 1];
	}
	return NULL;
}

bool onnx_scope_bind(Scope *s, const char *name, Value *v)
{
	bool fresh;
	if (!*name)
		return true;
	intern(&s->names, name, strlen(name), &fresh);
	if (!fresh)
		return ctx_error(s->im->ctx, s->b.where, "%s is defined twice", name);
	if (!v->name)
		v->name = name;
	array_push(s->im->ctx->scratch, &s->value, v);
	return true;
}

Value *onnx_value_new(Import *im)
{
	Value *v = ARENA_NEW(im->ctx->arena, Value);
	v->input = -1;
	return v;
}

Value *onnx_value_of(Scope *s, Node n)
{
	Value *v = onnx_value_new(s->im);
	v->home = s->b.g;
	v->node = n;
	return v;
}

Value *onnx_value_sizes(Import *im, DType d, const Sym *size, uint32_t n, bool has_dim)
{
	Value *v = onnx_value_new(im);
	v->dtype = d;
	v->size = arena_dup(im->ctx->arena, size, n * sizeof *size);
	v->nsize = n;
	v->has_dim = has_dim;
	return v;
}

Value *onnx_value_known(Import *im, const Tensor *t)
{
	Value *v = onnx_value_new(im);
	v->known = arena_dup(im->ctx->arena, t, sizeof *t);
	v->dtype = t->dtype;
	return v;
}

Value *onnx_value_list(Import *im, Value *const *item, uint32_t n)
{
	Value *v = onnx_value_new(im);
	v->is_list = true;
	for (uint32_t k = 0; k < n; k++)
		array_push(im->ctx->arena, &v->item, item[k]);
	return v;
}

/* ---- nodes ---- */

static Node constant_node(Scope *s, const Value *v)
{
	const Tensor *t = v->known;
	Const c = {.name = v->name && v->is_init ? v->name : "",
		   .dtype = t->dtype,
		   .rank = t->rank,
		   .dim = t->dim,
		   .data = t->data,
		   .bytes = tensor_bytes(t),
		   .is_param = v->is_init};
	return b_const(&s->b, ir_const(s->im->ir, c));
}

static Node sizes_node(Scope *s, const Value *v)
{
	Build *b = &s->b;
	if (!v->has_dim)
		return b_convert(b, b_from_size(b, v->size[0]), v->dtype);
	if (!v->nsize)
		return b_full_int(b, v->dtype, 0, 1, (Sym[]){b_int(b, 0)});
	Node *x = ARENA_ARRAY(s->im->ctx->scratch, Node, v->nsize);
	for (uint32_t k = 0; k < v->nsize; k++)
		x[k] = b_from_size(b, v->size[k]);
	Node all = b_convert(b, aten_stack(b, x, v->nsize, 0), v->dtype);
	return v->rows ? b_reshape(b, all, 2,
				   (Sym[]){b_int(b, v->rows), b_int(b, v->nsize / v->rows)})
		       : all;
}

Node onnx_value_node(Scope *s, Value *v)
{
	if (v->is_list)
		return b_error(&s->b, "%s is a sequence or an optional, expected a tensor",
			       v->name ? v->name : "a value");
	if (v->node.i && v->home == s->b.g)
		return v->node;
	if (!v->known && !v->size)
		return b_error(&s->b, "%s is a value of another graph",
			       v->name ? v->name : "an operand");
	if (v->node.i && v->input >= 0)
		return b_error(&s->b, "%s is an input of another graph", v->name);
	Node n = v->known ? constant_node(s, v) : sizes_node(s, v);
	if (!v->node.i) {
		v->node = n;
		v->home = s->b.g;
	}
	return n;
}

/* ---- what is known ---- */

/* Makes the graph end the call unless the input has the value that was given. */
static void check_input(Scope *s, Value *v)
{
	Import *im = s->im;
	if (v->input < 0 || im->checked.data[v->input])
		return;
	im->checked.data[v->input] = true;
	Build b = {.g = im->main,
		   .before = node_next(im->main, im->main->input.data[im->main->input.n - 1].node),
		   .where = s->b.where};
	Value is = {.name = v->name, .known = v->known};
	Scope at = {.im = im, .b = b};
	Node same = b_bin(&b, OP_eq, v->node, constant_node(&at, &is));
	uint32_t rank = node_rank(im->main, v->node);
	same = b_reduce(&b, REDUCE_AND, same, (1u << rank) - 1, DT_none);
	Attr attr[] = {
		attr_none(),
		attr_str(im->ir,
			 arena_printf(im->ctx->scratch,
				      "input %s has another value than the model was compiled for",
				      v->name))};
	b_node(&b, OP_assert, &same, 1, attr, 2);
}

const Tensor *onnx_value_elements(Scope *s, Value *v)
{
	if (v->known)
		check_input(s, v);
	return v->known;
}

/* Marks n and all that it reads. */
static void mark_needed(const Graph *g, Node n, bool *needed)
{
	needed[n.i] = true;
	for (; n.i; n = node_prev(g, n))
		for (uint32_t k = 0; needed[n.i] && k < node_nin(g, n); k++)
			needed[node_in(g, n, k).i] = true;
}

/* Returns a graph without inputs that computes n, where their values are known; NULL if one is
 * not. */
static Graph *without_inputs(Scope *s, Node n, const bool *needed)
{
	Import *im = s->im;
	Graph *from = im->main, *g = graph_new(im->ir, "decided");
	Node *map = arena_calloc(im->ctx->scratch, from->node.n, sizeof *map);
	Scope at = {.im = im, .b = {.g = g}};
	for (uint32_t k = 0; k < im->input.n; k++) {
		const Value *v = im->input.data[k];
		if (!needed[v->node.i])
			continue;
		if (!v->known)
			return NULL;
		Value is = {.known = v->known};
		map[v->node.i] = constant_node(&at, &is);
	}
	for (Node x = from->first; x.i; x = node_next(from, x)) {
		if (needed[x.i] && node_op(from, x) != OP_input)
			map[x.i] = graph_copy_node(g, (Node){0}, from, x, map);
		if (x.i == n.i)
			break;
	}
	graph_add_output(g, "y", map[n.i], -1);
	return g;
}

/* Whether a graph has sizes that stay open: of an input, or of data. */
static bool uses_symbols(const Graph *g)
{
	uint32_t n = sym_nvars(graph_syms(g));
	bool *used = arena_calloc(g->ir->ctx->scratch, n, sizeof *used), any = false;
	graph_used_symbols(g, used);
	for (uint32_t k = 0; k < n; k++)
		any |= used[k];
	return any;
}

bool onnx_value_decided(Scope *s, const Value *v, Tensor *out)
{
	Import *im = s->im;
	if (!v->node.i || v->home != im->main || node_has_data_size(im->main, v->node))
		return false;
	bool *needed = arena_calloc(im->ctx->scratch, im->main->node.n, sizeof *needed);
	mark_needed(im->main, v->node, needed);
	needed[0] = false;
	Graph *g = without_inputs(s, v->node, needed);
	TRY(g && !uses_symbols(g) && interp(im->ctx, g, NULL, 0, out, 1, im->ctx->arena));
	for (uint32_t k = 0; k < im->input.n; k++)
		if (needed[im->input.data[k]->node.i])
			check_input(s, im->input.data[k]);
	return true;
}

static bool sizes_of_elements(Scope *s, const Tensor *t, const Sym **out, uint32_t *n)
{
	if (t->rank > 1 || tensor_numel(t) > MAX_SIZES)
		return false;
	*n = (uint32_t)tensor_numel(t);
	Sym *size = ARENA_ARRAY(s->im->ctx->arena, Sym, *n);
	for (uint32_t k = 0; k < *n; k++)
		size[k] = sym_int(s->im->syms, tensor_i64(t, k));
	*out = size;
	return true;
}

bool onnx_value_as_sizes(Scope *s, Value *v, const Sym **out, uint32_t *n)
{
	if (v->size) {
		*out = v->size;
		*n = v->nsize;
		return !v->rows;
	}
	const Tensor *t = v->known;
	return t && v->input < 0 && (dtype_is_int(t->dtype) || t->dtype == DT_bool) &&
	       sizes_of_elements(s, t, out, n);
}

Sym onnx_size_from_data(Scope *s, Node x, Sym most, const char *what)
{
	Import *im = s->im;
	const char *name = arena_printf(im->ctx->scratch, "data%u", im->nsize++);
	Sym size = sym_var(im->syms, name, SYMVAR_UNBACKED, 0, SYM_INF);
	b_to_size(&s->b, x, size, most, what);
	return size;
}

bool onnx_value_to_sizes(Scope *s, Value *v, const char *what, const Sym **out, uint32_t *n)
{
	if (onnx_value_as_sizes(s, v, out, n))
		return true;
	if (v->known && sizes_of_elements(s, v->known, out, n)) {
		check_input(s, v);
		return true;
	}
	Build *b = &s->b;
	Node x = onnx_value_node(s, v);
	int64_t extent = 1;
	if (!x.i)
		return false;
	uint32_t rank = node_rank(b->g, x);
	if (!dtype_is_int(node_dtype(b->g, x)))
		return ctx_error(s->im->ctx, b->where, "%s are of %s, expected integers", what,
				 dtype_name(node_dtype(b->g, x)));
	if (rank > 1 || (rank == 1 && (!sym_is_const(s->im->syms, node_dim(b->g, x, 0), &extent) ||
				       extent > MAX_SIZES)))
		return ctx_error(
			s->im->ctx, b->where,
			"%s have the type %s, expected a constant number of sizes, at most %d",
			what, type_str(s->im->ir, node_type_id(b->g, x)), MAX_SIZES);
	Sym *size = ARENA_ARRAY(s->im->ctx->arena, Sym, extent);
	x = b_convert(b, x, DT_i64);
	for (uint32_t k = 0; k < extent; k++)
		size[k] = onnx_size_from_data(s, rank ? b_select_dim(b, x, 0, b_int(b, k)) : x,
					      (Sym){0}, what);
	v->size = size; /* asked again, it is the same size */
	v->nsize = (uint32_t)extent;
	v->has_dim = rank == 1;
	*out = size;
	*n = (uint32_t)extent;
	return true;
}

/* ---- types ---- */

int64_t onnx_kept_type(int64_t type)
{
	return type >= ONNX_UINT4 && type <= ONNX_INT2 ? type : 0;
}

DType onnx_value_dtype(Scope *s, const Value *v)
{
	(void)s;
	return v->node.i ? node_dtype(v->home, v->node) : v->known ? v->known->dtype : v->dtype;
}

uint32_t onnx_value_rank(Scope *s, const Value *v)
{
	(void)s;
	if (v->is_list)
		return UINT32_MAX;
	return v->node.i  ? node_rank(v->home, v->node)
	       : v->known ? v->known->rank
	       : v->rows  ? 2
			  : v->has_dim;
}

Sym onnx_value_dim(Scope *s, const Value *v, uint32_t k)
{
	if (v->node.i)
		return node_dim(v->home, v->node, k);
	if (v->rows)
		return sym_int(s->im->syms, k ? v->nsize / v->rows : v->rows);
	return sym_int(s->im->syms, v->known ? v->known->dim[k] : (int64_t)v->nsize);
}
