/* Every ATen operator of the table, from its samples, as torch.export writes calls of it
 * (tests/help/exported.h):
 *   - with arguments written in four ways, constants or symbolic ones, the graph that is read is
 *     the sample's;
 *   - in place (add_), and with a tensor for the result (add.out), what is written has the
 *     operator's values;
 *   - a write through the view that an operator returns, or through a part of it, changes those
 *     elements of the operand, wherever they lie, and no others; what is no view changes
 *     nothing.
 * OP=name in the environment: that op alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/pt2/pt2.h"
#include "ir/build/text.h"
#include "ir/interp/interp.h"
#include "ops/prim/random.h"
#include "tests/help/exported.h"
#include "tests/help/sample.h"

enum { MAX_RESULTS = 40 };

static uint32_t failures, done; /* of a test */

typedef struct {
	Op op;
	uint32_t k; /* which sample */
	const char *how;
	Ctx *ctx;
	Ir *ir;
	Sample s;
} Case;

static bool bad(const Case *c, Ctx *said, const char *what)
{
	Text t;
	text_init(&t, said->arena);
	ctx_print(said, &t);
	print_error("%s %u, %s: %s\n%s", op_name(c->op), c->k, c->how, what, t.n ? t.data : "");
	failures++;
	return false;
}

/* The graph of a model, in the context; the JSON is given away. NULL after an error. */
static Graph *load(Ctx *ctx, json_t *root)
{
	ZipBytes b = exported_archive(root, "sample");
	void *data = arena_dup(ctx->arena, b.data, b.size);
	free(b.data);
	json_decref(root);
	return pt2_load_bytes(ir_new(ctx), "sample.pt2", data, b.size, NULL);
}

/* A context in which anything may be given up; what runs in it returns false when it failed. */
static void in_context(Case *c, bool (*run)(Case *, Ctx *))
{
	Ctx *ctx = ctx_new();
	assert_non_null(ctx);
	if (setjmp(ctx->unwind))
		bad(c, ctx, ctx->bug_text);
	else
		run(c, ctx);
	ctx_free(ctx);
	done++;
}

/* Builds the sample in a context of its own, and runs. */
static void with_sample(Op op, uint32_t k, bool symbolic, void (*run)(Case *))
{
	Ctx *ctx = ctx_new();
	assert_non_null(ctx);
	Case c = {.op = op, .k = k, .how = "sample", .ctx = ctx};
	if (setjmp(ctx->unwind)) {
		bad(&(Case){.op = op, .k = k, .how = "sample"}, ctx, ctx->bug_text);
	} else {
		c.ir = ir_new(ctx);
		const char *text = sample_text(ctx->arena, op, k);
		if ((!symbolic || strchr(text, '=')) &&
		    sample_build(c.ir, op, text, (SampleForm){.symbolic = symbolic}, &c.s))
			run(&c);
	}
	ctx_free(ctx);
}

/* Each sample of each ATen operator that `takes` says. */
static void each(bool symbolic, bool (*takes)(Op), void (*run)(Case *))
{
	const char *only = sample_only();
	failures = done = 0;
	for (Op op = 1; op < op_count(); op++)
		if (strchr(op_name(op), '.') && (!only || !strcmp(only, op_name(op))) && takes(op))
			for (uint32_t k = 0, n = sample_count(op); k < n; k++)
				with_sample(op, k, symbolic, run);
	print_message("%u models\n", done);
	assert_int_equal(failures, 0);
	assert_true(only || done > 100);
}

static bool has_results(Op op)
{
	return op_schema(op)->nresult != 0;
}

/* ---- results ---- */

static bool same_values(const Tensor *a, const Tensor *b)
{
	Tensor x = tensor_flat_real(a), y = tensor_flat_real(b);
	if (a->dtype != b->dtype || a->rank != b->rank ||
	    memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) != 0)
		return false;
	for (int64_t i = 0, n = tensor_numel(&x); i < n; i++) {
		double v = tensor_f64(&x, i), w = tensor_f64(&y, i);
		if (!(isnan(v) && isnan(w)) && v != w)
			return false;
	}
	return true;
}

static Tensor empty_like(Ctx *ctx, const Tensor *t)
{
	Tensor x = *t;
	x.data = arena_alloc(ctx->arena, tensor_bytes(t) + 64);
	memset(x.data, 0, tensor_bytes(t));
	return x;
}

/* The model's results for the sample's operands and one more, if it has it. */
static bool run_model(Case *c, Ctx *ctx, Graph *g, const Tensor *more, Tensor *out)
{
	Tensor in[SAMPLE_INPUTS + 1];
	memcpy(in, c->s.in, c->s.nin * sizeof *in);
	if (more)
		in[c->s.nin] = *more;
	uint32_t nin = c->s.nin + (more != NULL);
	if (g->input.n != nin || g->output.n > MAX_RESULTS)
		return bad(c, ctx, "has another number of inputs or outputs");
	return interp(ctx, g, in, nin, out, g->output.n, ctx->arena) || bad(c, ctx, "does not run");
}

/* ---- the same graph ---- */

/* One name for each result and the output that it is: "r", or "r0", "r1", ... ("y" is taken). */
static void name_results(Case *c)
{
	Graph *g = c->s.g;
	Node node[MAX_RESULTS];
	const Type *t = node_type_id(g, c->s.node).i ? node_type(g, c->s.node) : NULL;
	bool tuple = t && t->dtype == DT_none;
	uint32_t n = g->output.n < MAX_RESULTS ? g->output.n : MAX_RESULTS;
	if (t)
		graph_set_name(g, c->s.node, tuple ? "t" : "r");
	for (uint32_t k = 0; k < n; k++)
		node[k] = g->output.data[k].node;
	graph_clear_outputs(g);
	for (uint32_t k = 0; k < n; k++) {
		if (tuple)
			graph_set_name(g, node[k], arena_printf(c->ctx->arena, "r%u", k));
		graph_add_output(g, graph_name(g, node[k]), node[k], -1);
	}
}

static ArgsForm form;

/* Those of the sample's graph are the first of the other's. */
static bool same_results(Case *c, Ctx *ctx, Graph *g)
{
	Tensor x[MAX_RESULTS], y[MAX_RESULTS];
	uint32_t n = c->s.g->output.n;
	if (!run_model(c, ctx, g, NULL, x) ||
	    !interp(ctx, c->s.g, c->s.in, c->s.nin, y, n, ctx->arena))
		return false;
	for (uint32_t k = 0; k < n; k++)
		if (!same_values(&x[k], &y[k]))
			return bad(c, ctx, "gives other values");
	return true;
}

static bool read_again(Case *c, Ctx *ctx)
{
	json_t *root = exported(c->s.g, form);
	if (!root)
		return true;
	Graph *g = load(ctx, root);
	if (!g)
		return bad(c, ctx, "is refused");
	/* The reader makes what gathers from memory of one, and adds what the other does to running
	 * statistics. */
	if (c->op == OP_aten_as_strided || g->output.n > c->s.g->output.n)
		return same_results(c, ctx, g);
	Text want, got;
	text_init(&want, ctx->arena);
	text_init(&got, ctx->arena);
	graph_dce(g);
	graph_print(c->s.g, &want);
	graph_print(g, &got);
	if (strcmp(want.data, got.data) != 0) {
		print_error("expected %sgot      %s", want.data, got.data);
		return bad(c, ctx, "is another graph");
	}
	return true;
}

static void round_trip(Case *c)
{
	static const char *const how[] = {"defaults left out", "all arguments",
					  "arguments by their places", "symbolic arguments"};
	name_results(c);
	for (form = ARGS_SHORT; form <= ARGS_NAMED; form++) {
		c->how = how[form];
		in_context(c, read_again);
	}
}

static void test_read_again(void **state)
{
	(void)state;
	each(false, has_results, round_trip);
}

static void test_read_again_symbolic(void **state)
{
	(void)state;
	each(true, has_results, round_trip);
}

/* ---- in place, and into a given tensor ---- */

static bool has_one_result(Op op)
{
	const Schema *s = op_schema(op);
	return s->nresult == 1 && s->narg && s->arg[0].kind == ARG_tensor && !op_info(op)->effect &&
	       !s->arg[0].writes && op != OP_aten_as_strided;
}

static const char *base_end(const char *name)
{
	const char *dot = strchr(strchr(name, '.') + 1, '.');
	return dot ? dot : name + strlen(name);
}

/* The model as PyTorch writes it, where a call that draws has no key; then it gets that of the
 * sample, as the last input. */
static Graph *load_keyless(Case *c, Ctx *ctx, json_t *root)
{
	json_t *in = json_object_get(exported_node(root, 0), "inputs");
	for (size_t k = json_array_size(in); k-- > 0;) {
		const char *name =
			json_string_value(json_object_get(json_array_get(in, k), "name"));
		if (!strcmp(name, "rng") || !strcmp(name, "stream"))
			json_array_remove(in, k);
	}
	Graph *g = load(ctx, root);
	uint32_t at;
	for (Node n = g ? g->first : (Node){0}; n.i; n = node_next(g, n))
		if (node_draws(g, n) && node_args(g, n, "rng", &at))
			graph_set_operand(g, n, at, g->input.data[c->s.nin - 1].node);
	return g;
}

static bool in_place(Case *c, Ctx *ctx)
{
	const char *name = op_name(c->op), *end = base_end(name);
	json_t *root = exported(c->s.g, ARGS_SHORT), *node = exported_node(root, 0);
	json_object_set_new(
		node, "target",
		json_string(arena_printf(ctx->arena, "torch.ops.%.*s_%s", (int)(end - name), name,
					 *end ? end : ".default")));
	json_object_set_new(exported_tensor(root, "r"), "dtype",
			    json_incref(json_object_get(exported_tensor(root, "x0"), "dtype")));
	Graph *g = load_keyless(c, ctx, root);
	if (!g)
		return bad(c, ctx, "is refused");
	Tensor want, got[MAX_RESULTS];
	Build b = {.g = c->s.g};
	graph_clear_outputs(c->s.g);
	graph_add_output(c->s.g, "r", b_convert(&b, c->s.node, c->s.in[0].dtype), -1);
	if (!run_model(c, ctx, g, NULL, got) ||
	    !interp(ctx, c->s.g, c->s.in, c->s.nin, &want, 1, ctx->arena))
		return false;
	/* t_() changes a name only */
	bool writes = op_info(c->op)->view == VIEW_NONE || op_info(c->op)->view_if != VIEW_ALWAYS;
	if (g->output.n != 1u + writes || (writes && (g->output.data[1].writes != 0 ||
						      strcmp(g->output.data[1].name, "x0") != 0)))
		return bad(c, ctx, "does not write its operand");
	for (uint32_t k = 0; k < g->output.n; k++)
		if (!same_values(&got[k], &want))
			return bad(c, ctx, "gives other values");
	return true;
}

/* Where operators with the dtype's own result, or bools, may be stored. */
static void run_in_place(Case *c)
{
	const Graph *g = c->s.g;
	const Type *x = node_type(g, g->input.data[0].node), *y = node_type(g, c->s.node);
	const char *name = op_name(c->op), *end = base_end(name);
	bool same = x->n == y->n && (y->dtype == x->dtype || y->dtype == DT_bool);
	for (uint32_t k = 0; same && k < x->n; k++)
		same = x->dim[k].i == y->dim[k].i;
	same &= strncmp(name, "prims.", 6) != 0; /* none of them writes */
	if (!same || end[-1] == '_' || node_in(g, c->s.node, 0).i != g->input.data[0].node.i)
		return;
	name_results(c);
	c->how = "in place";
	in_context(c, in_place);
}

static void test_in_place(void **state)
{
	(void)state;
	each(false, has_one_result, run_in_place);
}

static const char *out_target; /* behind "torch.ops." */

static bool into_tensor(Case *c, Ctx *ctx)
{
	json_t *root = exported(c->s.g, ARGS_SHORT), *node = exported_node(root, 0);
	json_object_set_new(node, "target",
			    json_string(arena_printf(ctx->arena, "torch.ops.%s", out_target)));
	exported_add_input(root, "o", "r");
	json_array_append_new(json_object_get(node, "inputs"),
			      json_pack("{s:s, s:{s:{s:s}}, s:i}", "name", "out", "arg",
					"as_tensor", "name", "o", "kind", 2));
	Graph *g = load_keyless(c, ctx, root);
	if (!g)
		return bad(c, ctx, "is refused");
	Tensor want, got[MAX_RESULTS];
	if (!interp(ctx, c->s.g, c->s.in, c->s.nin, &want, 1, ctx->arena))
		return true; /* what its operands do not allow */
	Tensor room = empty_like(ctx, &want);
	if (!run_model(c, ctx, g, &room, got))
		return false;
	if (g->output.n != 2 || g->output.data[1].writes != (int32_t)c->s.nin ||
	    strcmp(g->output.data[1].name, "o") != 0)
		return bad(c, ctx, "does not write the tensor");
	return (same_values(&got[0], &want) && same_values(&got[1], &want)) ||
	       bad(c, ctx, "gives other values");
}

static void run_into_tensor(Case *c)
{
	const char *name = op_name(c->op), *end = base_end(name);
	if (strstr(name, "_out") || end[-1] == '_')
		return;
	name_results(c);
	c->how = "into a tensor";
	out_target = arena_printf(c->ctx->arena, *end ? "%s_out" : "%s.out", name);
	if (op_find(out_target) == OP_none)
		in_context(c, into_tensor);
	out_target = arena_printf(c->ctx->arena, "%.*s.out", (int)(end - name), name);
	bool usual = !strcmp(end, ".Tensor")
			     ? op_find(arena_strndup(c->ctx->arena, name, (size_t)(end - name))) ==
				       OP_none
			     : false;
	if (usual && op_find(out_target) == OP_none)
		in_context(c, into_tensor);
}

static void test_into_tensor(void **state)
{
	(void)state;
	each(false, has_one_result, run_into_tensor);
}

/* ---- writes through views ---- */

/* What a model of this test is: base = clone(x0), or what is turned of that; v = the operator of
 * it; then v, or the last of its first dimension, is overwritten. */
static bool turned, part;

typedef struct {
	uint32_t result;  /* which is written */
	Tensor at;        /* where its elements lie in x0 */
	int64_t stride[MAX_RANK], offset; /* in the base's memory */
	bool is_view;
	int64_t first, n; /* the elements that are written */
} Written;

/* Where element p of x0 lies in the base. */
static int64_t place(const Tensor *x, int64_t p)
{
	if (!turned)
		return p;
	int64_t rest = tensor_numel(x) / x->dim[0] / x->dim[1], row = p / rest / x->dim[1],
		column = p / rest % x->dim[1];
	return (column * x->dim[0] + row) * rest + p % rest;
}

static void dense(const Tensor *t, int64_t *stride)
{
	int64_t step = 1;
	for (uint32_t d = t->rank; d-- > 0; step *= t->dim[d])
		stride[d] = step;
}

/* Strides over which the elements lie there; false: there are none. */
static bool find_strides(const Tensor *x, Written *w)
{
	const Tensor *at = &w->at;
	int64_t n = tensor_numel(at), step = 1, index[MAX_RANK] = {0};
	memset(w->stride, 0, sizeof w->stride);
	w->offset = n ? place(x, tensor_i64(at, 0)) : 0;
	for (uint32_t d = at->rank; n && d-- > 0; step *= at->dim[d])
		w->stride[d] = at->dim[d] > 1 ? place(x, tensor_i64(at, step)) - w->offset : step;
	if (!n)
		dense(at->rank == x->rank ? x : at, w->stride);
	for (int64_t i = 0; i < n; i++) {
		int64_t want = w->offset;
		for (uint32_t d = 0; d < at->rank; d++)
			want += index[d] * w->stride[d];
		if (place(x, tensor_i64(at, i)) != want)
			return false;
		for (uint32_t d = at->rank; d-- > 0 && ++index[d] == at->dim[d];)
			index[d] = 0;
	}
	return true;
}

static bool is_distinct(Ctx *ctx, const Tensor *x, const Tensor *at)
{
	bool *seen = ARENA_ARRAY(ctx->arena, bool, tensor_numel(x) + 1);
	for (int64_t i = 0; i < tensor_numel(at); i++) {
		int64_t p = tensor_i64(at, i);
		if (p < 0 || p >= tensor_numel(x) || seen[p])
			return false;
		seen[p] = true;
	}
	return true;
}

/* Whether PyTorch returns a view, by what the table says of when it does. */
static bool returns_view(Case *c, const Written *w, bool strided)
{
	const Graph *g = c->s.g;
	int64_t own[MAX_RANK];
	switch (op_info(c->op)->view_if) {
	case VIEW_IF_STRIDES: return strided;
	case VIEW_IF_UNCHANGED:
		if (op_arg_index(c->op, "copy") >= 0 && node_bool(g, c->s.node, "copy"))
			return false;
		dense(&w->at, own);
		return !strstr(op_name(c->op), "contiguous") ||
		       !memcmp(own, w->stride, w->at.rank * sizeof *own);
	default: return true;
	}
}

static void set_strides(Case *c, json_t *root, Tensor *where, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		Written w = {.at = where[k]};
		bool strided = find_strides(&c->s.in[0], &w);
		if (!strided || !returns_view(c, &w, strided)) {
			dense(&w.at, w.stride);
			w.offset = 0;
		}
		exported_set_strides(exported_tensor(root, c->s.g->output.data[k].name), w.stride,
				     w.at.rank, w.offset);
	}
}

static void swap_sizes(json_t *tensor)
{
	json_t *list = json_object_get(tensor, "sizes"),
	       *first = json_incref(json_array_get(list, 0));
	json_array_set(list, 0, json_array_get(list, 1));
	json_array_set_new(list, 1, first);
}

/* The operand is "base", or "turned_base", of that shape whose first two dimensions lie in memory
 * the other way around. */
static void add_base(Case *c, json_t *root)
{
	const Tensor *x = &c->s.in[0];
	int64_t stride[MAX_RANK];
	Tensor t = *x;
	const char *const turn[] = {"self=x0", "dim0=0", "dim1=1", NULL}, *const back[] = {
										  "self=base",
										  "dim0=0",
										  "dim1=1", NULL};
	const char *const plain[] = {"self=x0", NULL}, *const after[] = {"self=turned_x", NULL};
	if (turned) {
		exported_add_call(root, 0, "torch.ops.aten.transpose.int", turn, "turned_x", "x0");
		dense(&t, stride);
		int64_t last = stride[0];
		stride[0] = stride[1], stride[1] = last;
		swap_sizes(exported_tensor(root, "turned_x"));
		exported_set_strides(exported_tensor(root, "turned_x"), stride, t.rank, 0);
	}
	exported_add_call(root, turned, "torch.ops.aten.clone.default", turned ? after : plain,
			  "base", turned ? "turned_x" : "x0");
	if (turned) {
		t.dim[0] = x->dim[1], t.dim[1] = x->dim[0];
		dense(&t, stride);
		exported_set_strides(exported_tensor(root, "base"), stride, t.rank, 0);
		int64_t last = stride[0];
		stride[0] = stride[1], stride[1] = last;
		exported_add_call(root, 2, "torch.ops.aten.transpose.int", back, "turned_base",
				  "x0");
		exported_set_strides(exported_tensor(root, "turned_base"), stride, t.rank, 0);
	}
	json_t *args = json_object_get(exported_node(root, turned ? 3 : 1), "inputs");
	json_object_set_new(
		json_array_get(args, 0), "arg",
		json_pack("{s:{s:s}}", "as_tensor", "name", turned ? "turned_base" : "base"));
}

/* The call that overwrites, by what is in the new input "u". */
static void add_write(Case *c, json_t *root, Written *w)
{
	const char *name = c->s.g->output.data[w->result].name;
	const char *const last[] = {arena_printf(c->ctx->arena, "self=%s", name), "dim=0",
				    "index=-1", NULL};
	const char *const whole[] = {last[0], "src=u", NULL}, *const one[] = {"self=part", "src=u",
									      NULL};
	size_t at = turned ? 4 : 2;
	int64_t own[MAX_RANK];
	Tensor t = w->at;
	if (part) {
		int64_t stride[MAX_RANK],
			last_at = (w->at.dim[0] - 1) *
				  (w->is_view ? w->stride[0] : tensor_numel(&w->at) / w->at.dim[0]);
		exported_add_call(root, at++, "torch.ops.aten.select.int", last, "part", name);
		json_array_remove(json_object_get(exported_tensor(root, "part"), "sizes"), 0);
		dense(&w->at, stride);
		memcpy(stride, w->is_view ? w->stride : stride, sizeof stride);
		exported_set_strides(exported_tensor(root, "part"), stride + 1, t.rank - 1,
				     (w->is_view ? w->offset : 0) + last_at);
		memmove(t.dim, t.dim + 1, --t.rank * sizeof *t.dim);
		w->n /= w->at.dim[0];
		w->first = (w->at.dim[0] - 1) * w->n;
	}
	exported_add_input(root, "u", part ? "part" : name);
	dense(&t, own);
	exported_set_strides(exported_tensor(root, "u"), own, t.rank, 0);
	exported_add_call(root, at, "torch.ops.aten.copy_.default", part ? one : whole, "w",
			  part ? "part" : name);
	exported_add_output(root, "base");
}

static Tensor new_values(Ctx *ctx, const Written *w)
{
	Tensor u = empty_like(ctx, &w->at);
	if (part)
		memmove(u.dim, u.dim + 1, --u.rank * sizeof *u.dim);
	for (int64_t i = 0; i < w->n; i++)
		tensor_set_i64(&u, i, 1000 + i);
	return u;
}

/* The base afterwards, and the results as views of it. */
static bool check_written(Case *c, Ctx *ctx, const Written *w, const Tensor *where, uint32_t n,
			  const Tensor *u, const Tensor *got)
{
	const Tensor *x = &c->s.in[0], *base = &got[n];
	Tensor want = empty_like(ctx, x);
	memcpy(want.data, x->data, tensor_bytes(x));
	for (int64_t i = 0; w->is_view && i < w->n; i++)
		tensor_set_i64(&want, tensor_i64(&w->at, w->first + i), tensor_i64(u, i));
	for (int64_t p = 0; p < tensor_numel(x); p++)
		if (tensor_f64(base, place(x, p)) != tensor_f64(&want, p))
			return bad(c, ctx, "the operand has other elements afterwards");
	for (uint32_t k = 0; k < n; k++)
		for (int64_t i = 0; i < tensor_numel(&where[k]); i++) {
			bool own = !w->is_view && k == w->result && i >= w->first &&
				   i < w->first + w->n;
			double v = own ? tensor_f64(u, i - w->first)
				       : tensor_f64(&want, tensor_i64(&where[k], i));
			if (tensor_f64(&got[k], i) != v)
				return bad(c, ctx, "a result has other elements afterwards");
		}
	return true;
}

static uint32_t which; /* of the results is written */

static bool write_through(Case *c, Ctx *ctx)
{
	const Tensor *x = &c->s.in[0];
	Tensor in[SAMPLE_INPUTS], where[MAX_RESULTS], got[MAX_RESULTS + 1];
	uint32_t n = c->s.g->output.n;
	memcpy(in, c->s.in, c->s.nin * sizeof *in);
	in[0] = empty_like(ctx, x);
	for (int64_t i = 0; i < tensor_numel(x); i++)
		tensor_set_i64(&in[0], i, i);
	if (!interp(ctx, c->s.g, in, c->s.nin, where, n, ctx->arena))
		return bad(c, ctx, "does not run");
	Written w = {.result = which, .at = where[which], .n = tensor_numel(&where[which])};
	bool strided = find_strides(x, &w);
	w.is_view = returns_view(c, &w, strided);
	if (w.at.dtype != x->dtype || !is_distinct(ctx, x, &w.at) ||
	    (part && (!w.at.rank || !w.at.dim[0])))
		return true;
	json_t *root = exported(c->s.g, ARGS_SHORT);
	add_base(c, root);
	set_strides(c, root, where, n);
	add_write(c, root, &w);
	Graph *g = load(ctx, root);
	Tensor u = new_values(ctx, &w);
	return (g || bad(c, ctx, "is refused")) && run_model(c, ctx, g, &u, got) &&
	       check_written(c, ctx, &w, where, n, &u, got);
}

static bool is_view(Op op)
{
	return op_info(op)->view != VIEW_NONE && op_info(op)->view_if != VIEW_IF_IDLE &&
	       op_info(op)->view != VIEW_BITS && op_schema(op)->arg[0].kind == ARG_tensor &&
	       op != OP_aten_as_strided;
}

static void run_writes(Case *c)
{
	const Tensor *x = &c->s.in[0];
	bool fits = x->dtype == DT_f32 || x->dtype == DT_f64 || x->dtype == DT_i32 ||
		    x->dtype == DT_i64;
	if (!fits || !c->s.g->output.n || c->s.g->output.n > MAX_RESULTS ||
	    node_in(c->s.g, c->s.node, 0).i != c->s.g->input.data[0].node.i)
		return;
	name_results(c);
	for (int form_of = 0; form_of < 4; form_of++) {
		static const char *const how[] = {"written", "a part written",
						  "written in turned memory",
						  "a part written in turned memory"};
		turned = form_of & 2, part = form_of & 1;
		c->how = how[form_of];
		if (turned && (x->rank < 2 || !tensor_numel(x)))
			continue;
		for (which = 0; which<c->s.g->output.n; which += c->s.g->output.n> 1
					? c->s.g->output.n - 1
					: 1)
			in_context(c, write_through);
	}
}

static void test_writes(void **state)
{
	(void)state;
	each(false, is_view, run_writes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_again), cmocka_unit_test(test_read_again_symbolic),
		cmocka_unit_test(test_in_place),   cmocka_unit_test(test_into_tensor),
		cmocka_unit_test(test_writes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
