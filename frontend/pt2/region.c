/* torch.vmap and torch.func.jvp inside of a model. torch.export writes the function's nodes between
 * two calls that open and close a level; what enters and leaves the level is marked:
 *
 *   _vmap_increment_nesting(4, "error")           _jvp_increment_nesting(), _enter_dual_level()
 *   a = _add_batch_dim(x, 0, 1)                   a = _make_dual(x, t, level=0)
 *   b = aten.sin(a)                               b = aten.sin(a)
 *   y = _remove_batch_dim(b, 1, 4, 0)             y, jy = _unpack_dual(b, level=0)
 *   _vmap_decrement_nesting()                     _exit_dual_level(), _jvp_decrement_nesting()
 *
 * The nodes of the level become a graph of their own, for one member of the batch, or for what is
 * differentiated. It is transformed by the functions of Pt2Options, and the result is put in the
 * place of the level. */
#include <string.h>

#include "frontend/pt2/priv.h"
#include "ops/rules/rules.h"

static const char prefix[] = "torch._functorch.predispatch.";

typedef struct {
	Scope *outer;
	json_t *nodes;
	size_t begin, end;    /* of the nodes that open and close the level */
	json_t *graph;        /* the level as a graph of the file */
	Intern own, input;    /* names that its nodes define; names of its inputs */
	ARRAY(uint32_t) value; /* of the outer scope, by input */
	ARRAY(Meta) meta;      /* by input */
	ARRAY(int32_t) dim;    /* by input: of the batch; DIM_ABSENT: none. jvp: 0 of one with a
	                          tangent */
	ARRAY(const json_t *) leaves; /* the nodes whose operands are the outputs */
} Region;

enum { DIM_ABSENT = INT32_MIN };

/* Returns "_make_dual" of a function of torch._functorch.predispatch; NULL of other targets. */
static const char *region_call(const json_t *node)
{
	const char *target = json_str(node, "target");
	size_t n = strlen(prefix);
	return target && !strncmp(target, prefix, n) ? target + n : NULL;
}

static bool calls(const json_t *node, const char *name)
{
	const char *c = region_call(node);
	return c && !strcmp(c, name);
}

static bool opens(const json_t *node)
{
	return calls(node, "_vmap_increment_nesting") || calls(node, "_jvp_increment_nesting");
}

static bool closes(const json_t *node)
{
	return calls(node, "_vmap_decrement_nesting") || calls(node, "_jvp_decrement_nesting");
}

bool region_begins(const json_t *node)
{
	return opens(node);
}

/* ---- names ---- */

static void add_name(Scope *s, Intern *set, const char *name)
{
	bool fresh;
	(void)s;
	intern(set, name, (uint32_t)strlen(name), &fresh);
}

static bool has_name(Intern *set, const char *name)
{
	return intern_find(set, name, (uint32_t)strlen(name)) != 0;
}

typedef void EachName(Region *r, const char *name);

/* Calls fn with the names of the tensors in an argument or a result. */
static void each_tensor(Region *r, const json_t *arg, EachName *fn)
{
	size_t i;
	json_t *v, *x;
	const char *tag = json_tag(arg, &v), *name;
	if (!tag)
		return;
	if (!strcmp(tag, "as_tensor") && (name = json_str(v, "name")))
		fn(r, name);
	const bool list = !strcmp(tag, "as_tensors"),
		   optional = !strcmp(tag, "as_optional_tensors");
	if (list || optional)
		json_array_foreach(v, i, x)
		{
			if (optional)
				each_tensor(r, x, fn);
			else if ((name = json_str(x, "name")))
				fn(r, name);
		}
}

static void defines(Region *r, const char *name)
{
	add_name(r->outer, &r->own, name);
}

static bool add_input(Region *r, const char *name, uint32_t value, const Meta *m, int32_t dim)
{
	Arena *a = r->outer->st->im->ctx->scratch;
	json_t *input = json_pack("{s:{s:s}}", "as_tensor", "name", name);
	add_name(r->outer, &r->input, name);
	array_push(a, &r->value, value);
	array_push(a, &r->meta, *m);
	array_push(a, &r->dim, dim);
	return !json_array_append_new(json_object_get(r->graph, "inputs"), input);
}

/* Makes a value that is read from outside an input. */
static void reads(Region *r, const char *name)
{
	uint32_t v = scope_find(r->outer, name);
	if (v && !has_name(&r->own, name) && !has_name(&r->input, name))
		add_input(r, name, v, &r->outer->st->value.data[v].meta, DIM_ABSENT);
}

/* ---- the level as a graph ---- */

static bool region_start(Region *r, Scope *s, size_t at)
{
	static const char *const shared[] = {"tensor_values", "sym_int_values", "sym_bool_values",
					     "sym_float_values"};
	Import *im = s->st->im;
	uint32_t depth = 0;
	*r = (Region){.outer = s,
		      .nodes = json_object_get(s->graph, "nodes"),
		      .begin = at,
		      .graph = json_object()};
	intern_init(&r->own, im->ctx->scratch);
	intern_init(&r->input, im->ctx->scratch);
	for (r->end = at; r->end < json_array_size(r->nodes); r->end++) {
		const json_t *node = json_array_get(r->nodes, r->end);
		depth += opens(node);
		depth -= closes(node);
		if (!depth)
			break;
	}
	if (r->end == json_array_size(r->nodes))
		return ctx_error(im->ctx, s->where, "no call closes this level");
	/* the file's object keeps it */
	json_t *kept = json_object_get(im->root, "weft_regions");
	if (!kept) {
		kept = json_array();
		json_object_set_new(im->root, "weft_regions", kept);
	}
	json_array_append_new(kept, r->graph);
	for (size_t k = 0; k < sizeof shared / sizeof *shared; k++)
		if (json_object_get(s->graph, shared[k]))
			json_object_set(r->graph, shared[k], json_object_get(s->graph, shared[k]));
	json_object_set_new(r->graph, "nodes", json_array());
	json_object_set_new(r->graph, "inputs", json_array());
	json_object_set_new(r->graph, "outputs", json_array());
	return true;
}

/* Returns the name of the tensor that is argument k, or NULL. */
static const char *tensor_of(const json_t *node, const char *name, size_t k)
{
	const char *tag;
	json_t *v = arg_find(node, name, k, &tag);
	return tag && !strcmp(tag, "as_tensor") ? json_str(v, "name") : NULL;
}

static const char *result_of(const json_t *node, size_t k)
{
	json_t *v, *out = json_array_get(json_object_get(node, "outputs"), k);
	const char *tag = json_tag(out, &v);
	return tag && !strcmp(tag, "as_tensor") ? json_str(v, "name") : NULL;
}

static bool integer(Scope *s, const json_t *node, size_t k, int64_t *out)
{
	const char *tag;
	json_t *v = arg_find(node, "", k, &tag);
	if (!tag || strcmp(tag, "as_int"))
		return ctx_error(s->st->im->ctx, s->where, "argument %zu: expected an integer", k);
	*out = json_integer_value(v);
	return true;
}

/* Adds what enters the level: argument 0, member by member along `dim`. */
static bool enter(Region *r, const json_t *node, int32_t dim)
{
	Scope *s = r->outer;
	const char *from = tensor_of(node, "", 0), *name = result_of(node, 0);
	uint32_t v = from ? scope_find(s, from) : 0;
	Meta m;
	if (!v || !name)
		return ctx_error(s->st->im->ctx, s->where,
				 "%s enters the level and is no tensor from outside of it",
				 from ? from : "?");
	TRY(scope_meta(s, name, &m));
	return add_input(r, name, v, &m, dim);
}

static void leave(Region *r, const json_t *node)
{
	const char *name = tensor_of(node, "", 0);
	json_array_append_new(json_object_get(r->graph, "outputs"),
			      json_pack("{s:{s:s}}", "as_tensor", "name", name ? name : "?"));
	array_push(r->outer->st->im->ctx->scratch, &r->leaves, node);
}

static void own_node(Region *r, json_t *node)
{
	size_t k;
	json_t *x;
	json_array_append(json_object_get(r->graph, "nodes"), node);
	json_array_foreach(json_object_get(node, "outputs"), k, x)
	{
		each_tensor(r, x, defines);
	}
}

/* Adds inputs for what the nodes, and the outputs, read from outside. */
static void find_reads(Region *r)
{
	size_t i, k;
	json_t *node, *input, *output;
	json_array_foreach(json_object_get(r->graph, "nodes"), i, node)
	{
		json_array_foreach(json_object_get(node, "inputs"), k, input)
		{
			each_tensor(r, json_object_get(input, "arg"), reads);
		}
	}
	json_array_foreach(json_object_get(r->graph, "outputs"), i, output)
	{
		each_tensor(r, output, reads);
	}
}

/* Returns the level as a graph; if it draws random numbers its last input is a key, which is
 * none of r->value. */
static Graph *region_body(Region *r, const Pt2Transforms *t)
{
	Graph *body = import_subgraph(r->outer, r->graph, r->meta.data, r->meta.n);
	return body && t->attach(body) ? body : NULL;
}

/* Adds a key for the level; where it comes from is told when the model has been read
 * (passes/random.h). */
static Node own_key(Build *b)
{
	Ir *ir = b->g->ir;
	Attr attr[] = {attr_none(), attr_int(ir, 0), attr_none()};
	return graph_add(b->g, (Node){0}, OP_random_own, (Node[]){{0}}, 1, ir_attrs(ir, 3, attr),
			 ir_type_ints(ir, DT_u64, 1, (int64_t[]){2}), b->loc);
}

/* Puts the transformed graph in the place of the level: sets out[] to its results for arguments.
 * body: the level. */
static void place(Region *r, const Graph *body, const Graph *made, const Node *more, uint32_t nmore,
		  Node *out)
{
	State *st = r->outer->st;
	Build *b = &r->outer->b;
	Node *in = ARENA_ARRAY(st->im->ctx->scratch, Node, made->input.n + 1);
	uint32_t n = 0;
	while (n < r->value.n) {
		in[n] = value_read(st, b, r->value.data[n]);
		n++;
	}
	if (n < body->input.n)
		in[n++] = own_key(b);
	for (uint32_t k = 0; k < nmore; k++)
		in[n++] = more[k];
	graph_inline(st->g, (Node){0}, made, in, out);
}

static bool bind_node(Scope *s, const char *name, Node n)
{
	Meta m;
	return !name || (scope_meta(s, name, &m) && scope_bind(s, name, value_new(s->st, n, &m)));
}

static const Pt2Transforms *transforms(Scope *s)
{
	Import *im = s->st->im;
	if (im->options && im->options->transforms)
		return im->options->transforms;
	ctx_error(im->ctx, s->where,
		  "a function is transformed inside of the model, and nobody transforms here");
	return NULL;
}

/* ---- vmap ---- */

static bool collect_members(Region *r)
{
	Scope *s = r->outer;
	uint32_t depth = 0;
	for (size_t k = r->begin + 1; k < r->end; k++) {
		json_t *node = json_array_get(r->nodes, k);
		int64_t dim;
		bool here = !depth;
		depth += opens(node);
		depth -= closes(node);
		if (here && calls(node, "_add_batch_dim")) {
			TRY(integer(s, node, 1, &dim));
			TRY(enter(r, node, (int32_t)dim));
		} else if (here && calls(node, "_remove_batch_dim")) {
			leave(r, node);
		} else {
			own_node(r, node);
		}
	}
	find_reads(r);
	return true;
}

static Pt2Randomness randomness(const json_t *node)
{
	const char *tag, *kind = json_string_value(arg_find(node, "", 1, &tag));
	return kind && !strcmp(kind, "same")        ? PT2_SAME
	       : kind && !strcmp(kind, "different") ? PT2_DIFFERENT
						    : PT2_NONE;
}

/* Checks that what enters member by member has one more dimension than a member, of the batch's
 * size. */
static bool check_members(const Region *r, Sym size)
{
	Scope *s = r->outer;
	Import *im = s->st->im;
	for (uint32_t k = 0; k < r->dim.n; k++) {
		const Meta *x = &s->st->value.data[r->value.data[k]].meta,
			   *member = &r->meta.data[k];
		const int32_t dim =
			r->dim.data[k] < 0 ? r->dim.data[k] + (int32_t)x->rank : r->dim.data[k];
		if (r->dim.data[k] == DIM_ABSENT)
			continue;
		bool fits = x->rank == member->rank + 1 && x->dtype == member->dtype && dim >= 0 &&
			    dim < (int32_t)x->rank;
		for (uint32_t d = 0; d < member->rank && fits; d++)
			fits = member->size[d].i == x->size[d + (d >= (uint32_t)dim)].i;
		if (!fits || sym_eq(im->syms, x->size[dim], size) == NO)
			return ctx_error(im->ctx, s->where,
					 "operand %u of vmap does not have members of that type, "
					 "or another number of them",
					 k);
		Cond same = {.kind = GUARD_EQ, .a = x->size[dim], .b = size};
		TRY(meta_require(im, s->st->g, &same, s->where,
				 "operands of vmap have one number of members"));
	}
	return true;
}

static bool import_vmap(Scope *s, size_t *at)
{
	Region r;
	const Pt2Transforms *t = transforms(s);
	Import *im = s->st->im;
	const char *tag;
	Sym size;
	const json_t *head = json_array_get(json_object_get(s->graph, "nodes"), *at);
	TRY(t && region_start(&r, s, *at));
	json_t *count = arg_find(head, "", 0, &tag);
	TRY(tag && arg_sym(s, tag, count, &size));
	TRY(collect_members(&r) && check_members(&r, size));
	Graph *body = region_body(&r, t);
	TRY(body);
	bool *batched = ARENA_ARRAY(im->ctx->scratch, bool, body->input.n + 1);
	int32_t *in_dim = ARENA_ARRAY(im->ctx->scratch, int32_t, body->input.n + 1);
	int32_t *out_dim = ARENA_ARRAY(im->ctx->scratch, int32_t, r.leaves.n + 1);
	for (uint32_t k = 0; k < r.dim.n; k++) {
		batched[k] = r.dim.data[k] != DIM_ABSENT;
		in_dim[k] = batched[k] ? r.dim.data[k] : 0;
	}
	for (uint32_t k = 0; k < r.leaves.n; k++) {
		int64_t dim;
		TRY(integer(s, r.leaves.data[k], 3, &dim));
		out_dim[k] = (int32_t)dim;
	}
	const Graph *made = t->vmap(body, batched, size, randomness(head), in_dim, out_dim);
	TRY(made);
	Node *out = ARENA_ARRAY(im->ctx->scratch, Node, made->output.n + 1);
	place(&r, body, made, NULL, 0, out);
	for (uint32_t k = 0; k < r.leaves.n; k++)
		TRY(bind_node(s, result_of(r.leaves.data[k], 0), out[k]));
	*at = r.end;
	return true;
}

/* ---- jvp ---- */

/* Finds the last _make_dual of the level, and the first _unpack_dual. */
static void find_duals(const Region *r, size_t *make, size_t *unpack)
{
	*make = r->begin;
	*unpack = r->end;
	uint32_t depth = 0;
	for (size_t k = r->begin + 1; k < r->end; k++) {
		const json_t *node = json_array_get(r->nodes, k);
		bool here = !depth;
		depth += opens(node);
		depth -= closes(node);
		if (here && calls(node, "_make_dual"))
			*make = k;
		if (here && calls(node, "_unpack_dual") && *unpack == r->end)
			*unpack = k;
	}
}

static bool is_leftover(const json_t *node)
{
	const char *target = json_str(node, "target");
	return target && (!strncmp(target, "torch.ops.aten._make_dual.", 26) ||
			  !strncmp(target, "torch.ops.aten._unpack_dual.", 28));
}

/* Imports what stands in front of the function, such as tangents that are made; collects the
 * function; finds its results. */
static bool collect_dual(Region *r, size_t make, size_t unpack)
{
	Scope *s = r->outer;
	for (size_t k = r->begin + 1; k < unpack; k++) {
		json_t *node = json_array_get(r->nodes, k);
		if (calls(node, "_make_dual"))
			TRY(enter(r, node, 0));
		else if (k < make && !calls(node, "_enter_dual_level") && !is_leftover(node))
			TRY(scope_node(s, node));
		else if (k > make && !is_leftover(node))
			own_node(r, node);
	}
	for (size_t k = unpack; k < r->end; k++)
		if (calls(json_array_get(r->nodes, k), "_unpack_dual"))
			leave(r, json_array_get(r->nodes, k));
	find_reads(r);
	return true;
}

static bool has_tangent(const Graph *g, uint32_t k)
{
	return dtype_is_inexact(node_dtype(g, g->output.data[k].node));
}

static bool import_jvp(Scope *s, size_t *at)
{
	Region r;
	size_t make, unpack;
	const Pt2Transforms *t = transforms(s);
	State *st = s->st;
	TRY(t && region_start(&r, s, *at));
	find_duals(&r, &make, &unpack);
	ARRAY(Node) tangent = {0};
	Arena *scratch = st->im->ctx->scratch;
	TRY(collect_dual(&r, make, unpack));
	for (size_t k = r.begin + 1; k <= make; k++) {
		json_t *node = json_array_get(r.nodes, k);
		uint32_t v = calls(node, "_make_dual") ? arg_value(s, node, "", 1) : 0;
		if (!v)
			continue;
		const uint32_t place = tangent.n < r.dim.n ? tangent.n : 0;
		const Meta *t_meta = &st->value.data[v].meta;
		if (!r.dim.n || t_meta->dtype != r.meta.data[place].dtype ||
		    !meta_shapes_agree(t_meta, &r.meta.data[place]))
			return ctx_error(st->im->ctx, s->where,
					 "a tangent of another type than its value");
		array_push(scratch, &tangent, value_read(st, &s->b, v));
	}
	Graph *body = region_body(&r, t);
	TRY(body);
	bool *wrt = ARENA_ARRAY(scratch, bool, body->input.n + 1);
	uint32_t nwrt = 0;
	for (uint32_t k = 0; k < r.dim.n; k++)
		nwrt += wrt[k] = r.dim.data[k] != DIM_ABSENT;
	if (nwrt != tangent.n)
		return ctx_error(st->im->ctx, s->where,
				 "%u values have tangents, and %u tangents are there", nwrt,
				 tangent.n);
	const Graph *made = t->jvp(body, wrt);
	TRY(made);
	Node *out = ARENA_ARRAY(scratch, Node, made->output.n + 1);
	place(&r, body, made, tangent.data, tangent.n, out);
	for (uint32_t k = 0, j = r.leaves.n; k < r.leaves.n; k++) {
		TRY(bind_node(s, result_of(r.leaves.data[k], 0), out[k]));
		Node jy = has_tangent(made, k) ? out[j++] : b_zeros_like(&s->b, out[k]);
		TRY(bind_node(s, result_of(r.leaves.data[k], 1), jy));
	}
	for (size_t k = unpack; k < r.end; k++) {
		json_t *node = json_array_get(r.nodes, k);
		if (!calls(node, "_unpack_dual") && !is_leftover(node))
			TRY(scope_node(s, node));
	}
	*at = r.end;
	return true;
}

bool import_region(Scope *s, size_t *at)
{
	const json_t *node = json_array_get(json_object_get(s->graph, "nodes"), *at);
	s->where = s->b.where = node_position(s->st->im, node);
	return calls(node, "_vmap_increment_nesting") ? import_vmap(s, at) : import_jvp(s, at);
}

bool import_region_mark(Scope *s, const json_t *node)
{
	uint32_t v = calls(node, "_unwrap_for_grad") ? arg_value(s, node, "", 0) : 0;
	const char *name = v ? result_of(node, 0) : NULL;
	if (calls(node, "_add_batch_dim") || calls(node, "_remove_batch_dim") ||
	    calls(node, "_make_dual"))
		return ctx_error(s->st->im->ctx, s->where, "%s outside of a level",
				 region_call(node));
	return !name || scope_bind(s, name, v);
}
