/* What a node's target means. */
#include <stdlib.h>
#include <string.h>

#include "frontend/pt2/priv.h"
#include "ops/user/userop.h"

static const struct {
	const char *name; /* without overload */
	TargetKind kind;
} special[] = {
	{"aten.copy", TARGET_COPY},
	{"aten.copy_", TARGET_COPY},
	{"aten.fill_", TARGET_FILL},
	{"aten.zero_", TARGET_ZERO},
	{"aten.as_strided", TARGET_AS_STRIDED},
	{"aten.resize", TARGET_RESIZE},
	{"aten.resize_", TARGET_RESIZE},
	{"aten.resize_as", TARGET_RESIZE},
	{"aten.resize_as_", TARGET_RESIZE},
	{"aten.sym_size", TARGET_SYMBOLIC},
	{"aten.sym_stride", TARGET_SYMBOLIC},
	{"aten.sym_numel", TARGET_SYMBOLIC},
	{"aten.sym_storage_offset", TARGET_SYMBOLIC},
	{"aten.sym_is_contiguous", TARGET_SYMBOLIC},
	{"aten.sym_constrain_range", TARGET_NOTHING},
	{"aten.sym_constrain_range_for_size", TARGET_NOTHING},
	{"aten.promote_types", TARGET_NOTHING}, /* its result is a dtype, which the program already
	                                           knows */
	/* their results are truths of sizes, which the program already knows */
	{"aten.is_same_size", TARGET_NOTHING},
	{"aten._has_same_storage_numel", TARGET_NOTHING},
	/* PyTorch writes them beside those of torch._functorch.predispatch, and nobody reads
	 * them */
	{"aten._make_dual", TARGET_NOTHING},
	{"aten._unpack_dual", TARGET_NOTHING},
	{"aten.item", TARGET_ITEM},
	{"aten._local_scalar_dense", TARGET_ITEM},
	{"aten._assert_scalar", TARGET_ASSERT_SCALAR},
	{"aten._assert_tensor_metadata", TARGET_ASSERT_METADATA},
	{"export.access_subclass_inner_tensor", TARGET_INNER_TENSOR},
	{"higher_order.print", TARGET_NOTHING}, /* compiled models print nothing */
	{"higher_order.wrap_with_set_grad_enabled", TARGET_INLINE},
	{"higher_order.wrap_with_autocast", TARGET_INLINE},
	{"higher_order.wrap", TARGET_INLINE},
	{"higher_order.hints_wrapper", TARGET_INLINE},
	{"higher_order.invoke_subgraph", TARGET_INLINE},
	{"higher_order.with_effects", TARGET_EFFECTS},
	{"higher_order.cond", TARGET_COND},
	{"higher_order.while_loop", TARGET_WHILE},
	{"higher_order.scan", TARGET_SCAN},
	{"higher_order.associative_scan", TARGET_ASSOCIATIVE},
	{"higher_order.map_impl", TARGET_MAP},
};

static bool starts(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

/* Whether the operator writes its first operand: relu_ and __iand__ do; __and__ does not. */
static bool is_in_place(const char *op, size_t n)
{
	if (n > 5 && !strncmp(op, "__i", 3))
		return op[n - 1] == '_' && strncmp(op, "__invert__", n) != 0;
	return n > 1 && op[n - 1] == '_' && op[n - 2] != '_';
}

/* Returns the name of the functional form: "aten.relu_" -> "aten.relu", "aten.__iand__.Tensor"
 * -> "aten.__and__.Tensor", "aten.pow_.Scalar" -> "aten.pow.Tensor_Scalar", "aten.ldexp_" ->
 * "aten.ldexp.Tensor": what is written is a tensor, and "aten.pow.Scalar" has a number there. */
static const char *functional_name(Arena *a, const char *name, size_t base)
{
	const char *dot = strchr(name, '.');
	size_t ns = dot ? (size_t)(dot - name) + 1 : 0;
	if (starts(name + ns, "__i"))
		return arena_printf(a, "%.*s__%s", (int)ns, name, name + ns + 3);
	const char *same = arena_printf(a, "%.*s%s", (int)base - 1, name, name + base);
	const char *both = name[base] ? arena_printf(a, "%.*s.Tensor_%s", (int)base - 1, name,
						     name + base + 1)
				      : arena_printf(a, "%s.Tensor", same);
	return op_find(both) && (name[base] || !op_find(same)) ? both : same;
}

/* Returns the length of "aten.add" in "aten.add.Tensor". */
static size_t base_length(const char *name)
{
	const char *dot = strchr(name, '.');
	const char *end = dot ? strchr(dot + 1, '.') : NULL;
	return end ? (size_t)(end - name) : strlen(name);
}

/* Finds the operator whose result goes to an operand: "aten.add.out" is "aten.add.Tensor",
 * "aten.pow.Scalar_out" is "aten.pow.Scalar". None for other overloads. */
static Op out_operator(Import *im, const char *name, size_t base)
{
	static const char *const overload[] = {"", ".Tensor", ".dim"};
	size_t n = strlen(name);
	Op op = OP_none;
	if (n - base > strlen("._out") && !strcmp(name + n - strlen("_out"), "_out"))
		return op_find(arena_strndup(im->ctx->scratch, name, n - strlen("_out")));
	if (strcmp(name + base, ".out") != 0)
		return op;
	for (size_t k = 0; k < sizeof overload / sizeof *overload && op == OP_none; k++)
		op = op_find(
			arena_printf(im->ctx->scratch, "%.*s%s", (int)base, name, overload[k]));
	return op;
}

static const char *strip(Import *im, const char *target)
{
	const char *name = starts(target, "torch.ops.") ? target + strlen("torch.ops.") : target;
	size_t n = strlen(name), tail = strlen(".default");
	if (n > tail && !strcmp(name + n - tail, ".default"))
		n -= tail;
	return arena_strndup(im->ctx->arena, name, n);
}

CallTarget target_of(Import *im, const char *target)
{
	CallTarget t = {.name = strip(im, target)};
	if (starts(target, "_operator.") || starts(target, "math.") ||
	    starts(target, "torch.sym_") || starts(target, "torch._sym_")) {
		t.kind = TARGET_SYMBOLIC;
		return t;
	}
	static const char functorch[] = "torch._functorch.predispatch.";
	if (starts(target, functorch)) {
		t.kind = strcmp(target + strlen(functorch), "lazy_load_decompositions")
				 ? TARGET_REGION
				 : TARGET_NOTHING;
		return t;
	}
	if (!starts(target, "torch.ops."))
		return t;
	size_t base = base_length(t.name);
	for (size_t k = 0; k < sizeof special / sizeof *special; k++)
		if (strlen(special[k].name) == base && !strncmp(special[k].name, t.name, base))
			t.kind = special[k].kind;
	const char *dot = strchr(t.name, '.');
	bool in_place = dot && is_in_place(dot + 1, base - (size_t)(dot + 1 - t.name));
	const char *op = in_place ? functional_name(im->ctx->scratch, t.name, base) : t.name;
	t.op = op_find(op);
	if (t.kind == TARGET_UNKNOWN && t.op != OP_none) {
		const OpInfo *info = op_info(t.op);
		bool view = info->view != VIEW_NONE && info->view_if == VIEW_ALWAYS;
		t.kind = !in_place ? TARGET_OP : view ? TARGET_IN_PLACE_VIEW : TARGET_IN_PLACE;
		t.name = op_name(t.op);
	}
	if (t.kind == TARGET_UNKNOWN) {
		t.op = out_operator(im, t.name, base);
		t.kind = t.op != OP_none ? TARGET_OUT : TARGET_UNKNOWN;
	}
	if (t.kind == TARGET_UNKNOWN && (t.op = observed_operator(t.name)) != OP_none)
		t.kind = TARGET_OBSERVED;
	if (im->decomposed && t.kind == TARGET_OP && !strcmp(op, "aten.alias"))
		t.op = OP_maybe_detached;
	t.user = t.kind == TARGET_UNKNOWN ? userop_find(im->ir, t.name) : NULL;
	if (t.user)
		t.kind = TARGET_USER;
	return t;
}

/* ---- what is not supported ---- */

typedef struct {
	const char *target;
	const json_t *first; /* node */
	uint32_t count;
} Missing;

typedef struct {
	Import *im;
	Intern names;
	ARRAY(Missing) missing;
} Report;

static void report(Report *r, const char *target, const json_t *node)
{
	bool fresh;
	uint32_t id = intern(&r->names, target, (uint32_t)strlen(target), &fresh);
	if (fresh)
		array_push(r->im->ctx->scratch, &r->missing, (Missing){target, node, 0});
	r->missing.data[id - 1].count++;
}

static void check_graph(Report *r, const json_t *graph, uint32_t depth)
{
	size_t i, k;
	json_t *node, *input;
	json_array_foreach(json_object_get(graph, "nodes"), i, node)
	{
		const char *target = json_str(node, "target"), *inner = NULL;
		if (target && target_of(r->im, target).kind == TARGET_EFFECTS)
			inner = effects_target(node);
		target = inner ? inner : target;
		if (target && target_of(r->im, target).kind == TARGET_UNKNOWN)
			report(r, target, node);
		json_array_foreach(json_object_get(node, "inputs"), k, input)
		{
			json_t *arg = json_object_get(input, "arg");
			json_t *sub = json_object_get(json_object_get(arg, "as_graph"), "graph");
			if (sub && depth < 32)
				check_graph(r, sub, depth + 1);
		}
	}
}

static int by_target(const void *a, const void *b)
{
	return strcmp(((const Missing *)a)->target, ((const Missing *)b)->target);
}

/* Adds "torch.ops.aten.x.default x2 (first at x, net.py:12 in encoder)", and why if that is
 * known: ", which calls cuDNN"; else the operator of a name that is near. */
static void report_one(Import *im, const Missing *m, uint32_t k, Text *t)
{
	const char *frame = node_frame(im, m->first);
	const char *why = target_refusal(m->target);
	const bool guess = !why && starts(m->target, "torch.ops.");
	text_printf(t, "%s%s x%u (first at %s%s%s%s)", k ? "; " : "", m->target, m->count,
		    node_label(m->first), frame ? ", " : "", frame ? frame : "",
		    guess ? op_hint(im->ctx->scratch, strip(im, m->target)) : "");
	if (why)
		text_printf(t, ", which %s", why);
}

/* Whether the target is none of PyTorch's namespaces. */
static bool is_foreign(const char *target)
{
	static const char *const own[] = {"aten.",         "prims.",   "prim.",
					  "higher_order.", "export.",  "quantized",
					  "torchvision.",  "torchao.", "_c10d"};
	if (!starts(target, "torch.ops."))
		return false;
	for (size_t k = 0; k < sizeof own / sizeof *own; k++)
		if (starts(target + strlen("torch.ops."), own[k]))
			return false;
	return true;
}

bool targets_check(Import *im, const json_t *graph)
{
	Report r = {.im = im};
	intern_init(&r.names, im->ctx->scratch);
	check_graph(&r, graph, 0);
	if (!r.missing.n)
		return true;
	qsort(r.missing.data, r.missing.n, sizeof *r.missing.data, by_target);
	Text t;
	bool foreign = false;
	text_init(&t, im->ctx->scratch);
	for (uint32_t k = 0; k < r.missing.n; k++) {
		report_one(im, &r.missing.data[k], k, &t);
		foreign |= is_foreign(r.missing.data[k].target);
	}
	ctx_error(im->ctx, NULL,
			 "%u unsupported operator%s: %s. Export with .run_decompositions(), which "
			 "may write %s with "
			 "others, or compute the same with other operators%s",
			 r.missing.n, r.missing.n > 1 ? "s" : "", t.data,
			 r.missing.n > 1 ? "them" : "it",
			 foreign ? "; operators of yours come with a library: --ops LIBRARY" : "");
	return ctx_kind(im->ctx, REFUSAL_OPERATOR);
}
