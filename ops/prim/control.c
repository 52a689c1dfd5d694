/* scan, while and cond, and the effects and fences of a graph. */
#include <string.h>

#include "ir/interp/priv.h"
#include "ops/prim/priv.h"
#include "ops/prim/random.h"
#include "ops/rules/batch.h"
#include "ops/rules/parts.h"

/* ---- bodies ---- */

static const char *type_text(const Graph *g, Node n)
{
	return arena_strdup(g->ir->ctx->scratch, type_str(g->ir, node_type_id(g, n)));
}

/* Checks operand k against input `input` of a body; a slice has lost its leading axis. */
static bool check_body_input(Infer *f, const Graph *body, uint32_t input, uint32_t k, bool sliced)
{
	Type t = infer_in(f, k), want = *node_type(body, body->input.data[input].node);
	uint32_t skip = sliced ? 1 : 0;
	if (t.dtype != want.dtype || t.n != want.n + skip)
		return infer_fail(f, "operand %u: the body expects %s of rank %u", k,
		                  dtype_name(want.dtype), want.n);
	for (uint32_t d = 0; d < want.n; d++)
		TRY(infer_same(f, "extent of a body input", t.dim[d + skip], want.dim[d]));
	return true;
}

static bool infer_body(Infer *f, const char *name, const Graph **body)
{
	const Attr *a = infer_attr(f, name);
	if (a->kind != ATTR_graph)
		return infer_fail(f, "argument %s: expected a graph", name);
	*body = a->graph;
	const char *collective = graph_collective(*body);
	return !collective ||
	       infer_fail(f,
			  "graph %s communicates by %s: a rank that executes the graph less often "
			  "than another would leave it waiting, so collectives are not allowed "
			  "here",
			  (*body)->name, collective);
}

/* Checks that the graph's inputs are the n operands from `first` on. */
static bool check_whole_inputs(Infer *f, const char *name, const Graph *body, uint32_t first,
			       uint32_t n)
{
	if (body->input.n != n)
		return infer_fail(f, "graph %s has %u inputs, expected %u", name, body->input.n, n);
	for (uint32_t k = 0; k < n; k++)
		TRY(check_body_input(f, body, k, first + k, false));
	return true;
}

static bool known_equal(const Infer *f, const Graph *g, const Graph *h, Sym a, Sym b)
{
	return sym_eq(f->syms, a, b) == YES || graph_requires_equal(g, a, b) ||
	       graph_requires_equal(h, a, b);
}

/* Checks that two sizes are the same. Rounds of a loop share memory: sizes that are not known to
 * be equal have to be required by the graph or by the body. */
static bool known_same(Infer *f, const Graph *body, const char *what, Sym a, Sym b)
{
	TRY(infer_same(f, what, a, b));
	if (known_equal(f, f->g, body, a, b))
		return true;
	return infer_fail(f, "%s: %s and %s may differ: they must be the same", what,
			  sym_str(f->syms, a), sym_str(f->syms, b));
}

/* Checks that output k of the body is what operand k, which it replaces, was. */
static bool check_carry(Infer *f, const Graph *body, uint32_t k)
{
	Type t = infer_in(f, k), got = *node_type(body, body->output.data[k].node);
	if (got.dtype != t.dtype || got.n != t.n)
		return infer_fail(f,
				  "carry %u is %s, and the body makes %s of it: it must stay of "
				  "the same type",
				  k, type_text(f->g, f->in[k]),
				  type_text(body, body->output.data[k].node));
	for (uint32_t d = 0; d < t.n; d++)
		TRY(known_same(f, body, "extent of a carry", t.dim[d], got.dim[d]));
	return true;
}

/* Whether the size has a value behind the body: it is no size that a node of the body finds in
 * data. */
static bool is_known_outside(const Infer *f, const Graph *body, Sym var)
{
	return sym_var_kind(f->syms, var) != SYMVAR_UNBACKED || graph_is_given(body, var) ||
	       !graph_finds(body, var) || graph_is_given(f->g, var) || graph_finds(f->g, var);
}

/* Checks that the size of a result is known before the body runs, as its memory needs. */
static bool check_known_size(Infer *f, const Graph *body, uint32_t k, const char *why)
{
	Node y = body->output.data[k].node;
	for (uint32_t v = 0; node_has_data_size(body, y) && v < sym_nvars(f->syms); v++) {
		Sym var = sym_var_at(f->syms, v);
		if (type_uses(f->g->ir, node_type_id(body, y), var) &&
		    !is_known_outside(f, body, var))
			return infer_fail(f, "result %u is %s, and the body finds %s in data: %s",
					  k, type_text(body, y), sym_name(f->syms, var), why);
	}
	return true;
}

static bool is_condition(const Type *t)
{
	return t->dtype == DT_bool && t->n == 0;
}

/* Executes a body on the values of its inputs; its results are stored in out[]. What the body
 * requires of sizes is checked. */
static bool eval_body(EvalCtx *e, Graph *body, const Tensor *in, Tensor *out)
{
	TRY(interp_guards(e, body, 0));
	return interp_call(e, body, in, body->input.n, out, body->output.n);
}

/* Copies the values of operands to memory of their own. */
static Tensor *copies(EvalCtx *e, const Tensor *in, uint32_t n)
{
	Tensor *copy = EVAL_ARRAY(e, Tensor, n);
	for (uint32_t k = 0; k < n; k++) {
		copy[k] = in[k];
		copy[k].data = arena_alloc(e->arena, tensor_bytes(&in[k]));
		copy_elems(&copy[k], &in[k]);
	}
	return copy;
}

/* ---- scan ---- */

static bool check_body(Infer *f, const Graph *body, uint32_t ninit, uint32_t nxs, Sym length)
{
	if (body->input.n != f->nin)
		return infer_fail(f, "the body has %u inputs, expected %u", body->input.n, f->nin);
	if (body->output.n < ninit)
		return infer_fail(f, "the body has %u outputs, expected at least %u",
		                  body->output.n, ninit);
	for (uint32_t k = 0; k < f->nin; k++) {
		bool sliced = k >= ninit && k < ninit + nxs;
		if (sliced && infer_in(f, k).n == 0)
			return infer_fail(f, "operand %u: nothing to scan over", k);
		if (sliced)
			TRY(known_same(f, body, "leading extent", infer_in(f, k).dim[0], length));
		TRY(check_body_input(f, body, k, k, sliced));
	}
	for (uint32_t k = 0; k < ninit; k++)
		TRY(check_carry(f, body, k));
	return true;
}

static bool shape_scan(Infer *f)
{
	uint32_t first, ninit = infer_args(f, "init", &first), nxs = infer_args(f, "xs", &first);
	const Graph *body;
	Sym length;
	TRY(infer_body(f, "body", &body));
	TRY(infer_sym(f, "length", &length));
	TRY(infer_at_least(f, "length", length, 0));
	TRY(check_body(f, body, ninit, nxs, length));
	Ir *ir = f->g->ir;
	TypeId *elem = ARENA_ARRAY(ir->ctx->arena, TypeId, body->output.n);
	for (uint32_t k = 0; k < body->output.n; k++) {
		if (k < ninit) {
			elem[k] = node_type_id(f->g, f->in[k]);
			continue;
		}
		Type t = *node_type(body, body->output.data[k].node);
		TRY(check_known_size(
			f, body, k,
			"results of rounds that have different sizes cannot be stacked"));
		Sym dim[MAX_RANK + 1] = {length};
		memcpy(dim + 1, t.dim, t.n * sizeof *dim);
		TRY(infer_result(f, t.dtype, t.n + 1, dim));
		elem[k] = f->type;
	}
	f->type = ir_tuple(ir, body->output.n, elem);
	return true;
}
INFER(scan)

/* Returns slice t of a stacked tensor, without a copy. */
static Tensor slice_of(const Tensor *x, int64_t t)
{
	Tensor s = {.dtype = x->dtype, .rank = x->rank - 1};
	memcpy(s.dim, x->dim + 1, s.rank * sizeof *s.dim);
	s.data = elem_at(x, t * tensor_numel(&s));
	return s;
}

static bool eval_scan(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	uint32_t first, nin = node_nin(g, n);
	uint32_t ninit = node_args(g, n, "init", &first), nxs = node_args(g, n, "xs", &first);
	Graph *body = interp_expand(node_attr(g, n, "body")->graph);
	TRY(body);
	bool reverse = node_bool(g, n, "reverse");
	int64_t length;
	TRY(eval_int(e, g, n, "length", &length));
	for (uint32_t k = ninit; k < ninit + nxs; k++) {
		if (in[k].dim[0] != length)
			return eval_error(e, g, n, "operand %u has %lld slices, expected %lld", k,
			                  (long long)in[k].dim[0], (long long)length);
	}
	uint32_t nout = body->output.n;
	Tensor *arg = EVAL_ARRAY(e, Tensor, nin), *result = EVAL_ARRAY(e, Tensor, nout);
	Tensor *carry = copies(e, in, ninit); /* the one being read; out[] is being written */
	for (uint32_t k = 0; k < nin; k++)
		arg[k] = in[k];
	for (uint32_t k = 0; k < ninit; k++)
		copy_elems(&out[k], &in[k]);
	for (int64_t i = 0; i < length; i++) {
		int64_t t = reverse ? length - 1 - i : i;
		for (uint32_t k = 0; k < ninit; k++) {
			copy_elems(&carry[k], &out[k]);
			arg[k] = carry[k];
			result[k] = out[k];
		}
		for (uint32_t k = ninit; k < ninit + nxs; k++)
			arg[k] = slice_of(&in[k], t);
		for (uint32_t k = ninit; k < nout; k++)
			result[k] = slice_of(&out[k], t);
		TRY(eval_body(e, body, arg, result));
	}
	return true;
}

OP(scan) {
	.schema = "scan(Tensor[] init, Tensor[] xs, Tensor[] consts, *, graph body, int length, "
		  "bool reverse) -> Tensor[]",
	.doc = "body(carry..., slices of xs..., consts...) -> (carry..., ys...), length times",
	.infer = infer_scan,
	.eval = eval_scan,
	.lower = {.role = LOWER_ROOT, .reads = ALL_OPERANDS, .own_results = true},
	.sample = "[f32[2, 3]], [f32[4, 2, 3] in -1..1], [f32[3]], body=graph @step(%h: f32[2, 3], "
		  "%x: f32[2, 3], %w: f32[3]) {\n  %b = broadcast(%w, shape=[2, 3], "
		  "map=[1])\n  %a = mul(%h, %b)\n  %s = add(%a, "
		  "%x)\n  return %s, %a\n}, length=4, reverse=true",
};

/* ---- while ---- */

static bool shape_while(Infer *f)
{
	uint32_t first, ninit = infer_args(f, "init", &first);
	const Graph *test, *body;
	TRY(infer_body(f, "cond", &test) && infer_body(f, "body", &body));
	TRY(check_whole_inputs(f, "cond", test, 0, f->nin) &&
	    check_whole_inputs(f, "body", body, 0, f->nin));
	if (test->output.n != 1 || !is_condition(node_type(test, test->output.data[0].node)))
		return infer_fail(f, "graph cond must give a bool without dimensions");
	if (body->output.n != ninit)
		return infer_fail(f, "the body has %u outputs, expected %u", body->output.n, ninit);
	TypeId *elem = ARENA_ARRAY(f->g->ir->ctx->arena, TypeId, ninit);
	for (uint32_t k = 0; k < ninit; k++) {
		TRY(check_carry(f, body, k));
		elem[k] = node_type_id(f->g, f->in[k]);
	}
	f->type = ir_tuple(f->g->ir, ninit, elem);
	return true;
}
INFER(while)

/* Executes a loop; out[] holds what is carried. */
static bool eval_while(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	uint32_t first, nin = node_nin(g, n), ninit = node_args(g, n, "init", &first);
	Graph *test = interp_expand(node_attr(g, n, "cond")->graph),
	      *body = interp_expand(node_attr(g, n, "body")->graph);
	TRY(test && body);
	uint8_t more;
	Tensor flag = {.dtype = DT_bool, .data = &more};
	Tensor *carry = copies(e, in, ninit), *arg = EVAL_ARRAY(e, Tensor, nin);
	for (uint32_t k = 0; k < nin; k++)
		arg[k] = k < ninit ? carry[k] : in[k];
	for (uint32_t k = 0; k < ninit; k++)
		copy_elems(&out[k], &in[k]);
	for (;;) {
		TRY(eval_body(e, test, arg, &flag));
		if (!more)
			return true;
		TRY(eval_body(e, body, arg, out));
		for (uint32_t k = 0; k < ninit; k++)
			copy_elems(&carry[k], &out[k]);
	}
}

OP(while) {
	.endless = true,
	.schema = "while(Tensor[] init, Tensor[] consts, *, graph cond, graph body, int? "
		  "most=None) -> Tensor[]",
	.doc = "as long as cond(carry..., consts...): carry... = body(carry..., consts...); "
	       "derivatives may rely on `most` rounds at most",
	.infer = infer_while,
	.eval = eval_while,
	.lower = {.role = LOWER_ROOT, .reads = ALL_OPERANDS, .own_results = true},
	.sample = "[i64[] of 0, f32[2, 3] in -1..1], [f32[2, 3]], cond=graph @more(%i: i64[], %x: "
		  "f32[2, 3], %w: f32[2, 3]) {\n  %n = full(value=5, shape=[], "
		  "dtype=i64)\n  %c = lt(%i, %n)\n  return %c\n}, body=graph @step(%i: "
		  "i64[], %x: f32[2, 3], %w: f32[2, 3]) {\n  %one = full(value=1, shape=[], "
		  "dtype=i64)\n  %j = add(%i, %one)\n  %p = mul(%x, %w)\n  %s = add(%p, "
		  "%x)\n  return %j, %s\n}, most=8",
};

/* ---- cond ---- */

/* Checks a dimension of a result. Either branch writes the same memory, so sizes that are not
 * known to be equal have to be required by one of them. */
static bool check_branch_size(Infer *f, const Graph *yes, const Graph *no, uint32_t k, uint32_t d)
{
	Sym a = node_dim(yes, yes->output.data[k].node, d),
	    b = node_dim(no, no->output.data[k].node, d);
	if (known_equal(f, yes, no, a, b))
		return true;
	return infer_fail(f,
			  "dimension %u of result %u has size %s in one branch and %s in the "
			  "other: they must be "
			  "the same",
			  d, k, sym_str(f->syms, a), sym_str(f->syms, b));
}

static bool check_branches(Infer *f, const Graph *yes, const Graph *no)
{
	const char *in_branch = "the size of a branch's result must be known outside of it";
	if (yes->output.n != no->output.n)
		return infer_fail(f, "the branches have %u and %u results", yes->output.n,
				  no->output.n);
	for (uint32_t k = 0; k < yes->output.n; k++) {
		Type a = *node_type(yes, yes->output.data[k].node),
		     b = *node_type(no, no->output.data[k].node);
		if (a.dtype != b.dtype || a.n != b.n)
			return infer_fail(f,
					  "result %u is %s in one branch and %s in the other: it "
					  "must be of the same type",
					  k, type_text(yes, yes->output.data[k].node),
					  type_text(no, no->output.data[k].node));
		TRY(check_known_size(f, yes, k, in_branch) &&
		    check_known_size(f, no, k, in_branch));
		for (uint32_t d = 0; d < a.n; d++)
			TRY(check_branch_size(f, yes, no, k, d));
	}
	return true;
}

static bool shape_cond(Infer *f)
{
	uint32_t first, nxs = infer_args(f, "xs", &first);
	const Graph *yes, *no;
	TRY(infer_body(f, "yes", &yes) && infer_body(f, "no", &no));
	Type pred = infer_in(f, 0);
	if (!is_condition(&pred))
		return infer_fail(f, "operand pred: expected a bool without dimensions");
	TRY(check_whole_inputs(f, "yes", yes, first, nxs) &&
	    check_whole_inputs(f, "no", no, first, nxs));
	TRY(check_branches(f, yes, no));
	TypeId *elem = ARENA_ARRAY(f->g->ir->ctx->arena, TypeId, yes->output.n);
	for (uint32_t k = 0; k < yes->output.n; k++)
		elem[k] = node_type_id(yes, yes->output.data[k].node);
	f->type = ir_tuple(f->g->ir, yes->output.n, elem);
	return true;
}
INFER(cond)

static bool eval_cond(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	Graph *body = interp_expand(node_attr(g, n, tensor_i64(&in[0], 0) ? "yes" : "no")->graph);
	return body && eval_body(e, body, in + 1, out);
}

OP(cond) {
	.schema = "cond(Tensor pred, Tensor[] xs, *, graph yes, graph no) -> Tensor[]",
	.doc = "yes(xs...) where pred holds, else no(xs...): the other one is not executed",
	.infer = infer_cond,
	.eval = eval_cond,
	.lower = {.role = LOWER_ROOT, .reads = ALL_OPERANDS},
	.sample = "bool[] of 1, [f32[2, 3] in -1..1, f32[3]], yes=graph @yes(%x: f32[2, 3], %w: "
		  "f32[3]) {\n  %b = broadcast(%w, shape=[2, 3], map=[1])\n  %a = mul(%x, "
		  "%b)\n  return %a\n}, no=graph @no(%x: f32[2, 3], %w: "
		  "f32[3]) {\n  %e = neg(%x)\n  return %e\n}; bool[] of 0, [f32[2] in -1..1], "
		  "yes=graph @yes(%x: f32[2]) {\n  %s = sqrt(%x)\n  return %s, %x\n}, "
		  "no=graph @no(%x: f32[2]) {\n  %e = exp(%x)\n  return %e, %e\n}",
};

/* ---- assert ---- */

static bool shape_assert(Infer *f)
{
	if (infer_in(f, 0).dtype != DT_bool)
		return infer_fail(f, "operand cond: expected bool, got %s",
		                  dtype_name(infer_in(f, 0).dtype));
	return true; /* no value */
}
INFER(assert)

static Node batch_assert(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	(void)batched, (void)size;
	Node all = b_reduce(b, REDUCE_AND, in[0], (1u << node_rank(b->g, in[0])) - 1, DT_bool);
	return batch_again(b, n, &all, batch_attrs(b, n));
}

static bool eval_assert(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	(void)out;
	for (int64_t i = 0; i < tensor_numel(in); i++) {
		if (!tensor_i64(in, i))
			return eval_error(e, g, n, "%s", node_str(g, n, "message"));
	}
	return true;
}

OP(assert) {
	.schema = "assert(Tensor cond, *, str message) -> ()",
	.doc = "a run-time error with this message unless every element is true",
	.checks = CHECKS_TRUTH,
	.effect = true,
	.infer = infer_assert,
	.eval = eval_assert,
	.batch = batch_assert,
	.lower = {.role = LOWER_ROOT, .reads = ALL_OPERANDS},
	.sample = "bool[] of 1, message=\"must hold\"",
};

/* ---- assert_zero ---- */

static bool shape_assert_zero(Infer *f)
{
	const DType d = infer_in(f, 0).dtype;
	if (dtype_is_float(d) || dtype_is_complex(d) || d == DT_bool)
		return infer_fail(f, "operand code: expected integers, got %s", dtype_name(d));
	return true; /* no value */
}
INFER(assert_zero)

static Node batch_assert_zero(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	(void)batched, (void)size;
	return batch_again(b, n, in, batch_attrs(b, n));
}

static bool eval_assert_zero(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	(void)out;
	for (int64_t i = 0; i < tensor_numel(in); i++) {
		if (!tensor_i64(in, i))
			continue;
		Arena *a = g->ir->ctx->scratch;
		Text message;
		text_init(&message, a);
		assert_zero_message(&message, node_str(g, n, "message"),
				    node_rank(g, node_in(g, n, 0))
					    ? arena_printf(a, "%lld", (long long)i)
					    : NULL,
				    arena_printf(a, "%lld", (long long)tensor_i64(in, i)));
		return eval_error(e, g, n, "%s", message.data ? message.data : "");
	}
	return true;
}

OP(assert_zero) {
	.schema = "assert_zero(Tensor code, *, str message) -> ()",
	.doc = "a run-time error unless every element is 0; in the message {code} is the first "
	       "other one, {place} says where it is",
	.checks = CHECKS_ZERO,
	.effect = true,
	.infer = infer_assert_zero,
	.eval = eval_assert_zero,
	.batch = batch_assert_zero,
	.lower = {.role = LOWER_ROOT, .reads = ALL_OPERANDS},
	.sample = "i32[] of 0, message=\"{place}step {code}\"; "
		  "i64[n=2, 3] of 0, message=\"{place}step {code}\"",
};

/* ---- barrier ---- */

static bool shape_barrier(Infer *f)
{
	Type x = infer_in(f, 0);
	return infer_result(f, x.dtype, x.n, x.dim);
}
INFER(barrier)

static bool eval_barrier(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	(void)e, (void)g, (void)n;
	copy_elems(out, in);
	return true;
}

static void index_barrier(IndexMap *m)
{
	memcpy(m->in[0], m->at, node_rank(m->g, m->n) * sizeof *m->at);
}

/* Returns the tangent of x itself: a barrier keeps a recomputation of x from being merged back,
 * which tangents have no part in. */
static bool tangent_barrier(Build *b, Node n, const Node *t, Node *ty)
{
	(void)b, (void)n;
	ty[0] = t[0];
	return true;
}

static bool adjoint_barrier(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)b, (void)n, (void)want;
	g[0] = ct[0];
	return true;
}

OP(barrier) {
	.parts = parts_each,
	.adjoint = adjoint_barrier,
	.tangent = tangent_barrier,
	.schema = "barrier(Tensor x) -> Tensor",
	.doc = "x, hidden from simplification: keeps a recomputation from being merged back",
	.apart = true,
	.infer = infer_barrier,
	.eval = eval_barrier,
	.batch_leading = true,
	.lower = {.role = LOWER_INDEX, .fuses = FUSE_ALWAYS, .keeps = KEEPS_INDEX, .index = index_barrier},
	.sample = "f32[3, 4]",
};

/* ---- roundable ---- */

static bool roundable_rounds(const Graph *g, Node n)
{
	(void)g, (void)n;
	return true;
}

OP(roundable) {
	.parts = parts_each,
	.adjoint = adjoint_barrier,
	.tangent = tangent_barrier,
	.schema = "roundable(Tensor x) -> Tensor",
	.doc = "x; products of it and of constant weights of at most 8 bits may round it to 8 "
	       "bits; of weights, what is multiplied by them",
	.moves = true,
	.rounds = roundable_rounds,
	.infer = infer_barrier,
	.eval = eval_barrier,
	.batch_leading = true,
	.lower = {.role = LOWER_INDEX,
		  .fuses = FUSE_ALWAYS,
		  .keeps = KEEPS_INDEX,
		  .index = index_barrier},
	.sample = "f32[3, 4]",
};

/* ---- checkpoint ---- */

static bool shape_checkpoint(Infer *f)
{
	static const char *const places[] = {"begin", "end", "keep", NULL};
	uint32_t which;
	TRY(infer_choice(f, "at", places, &which));
	return shape_barrier(f);
}
INFER(checkpoint)

static Mark mark_checkpoint(const Graph *g, Node n)
{
	const char *at = node_str(g, n, "at");
	return !strcmp(at, "begin") ? MARK_BEGIN : !strcmp(at, "end") ? MARK_END : MARK_KEEP;
}

/* Kept while graphs are transformed, since it has rules; compiled as x. */
OP(checkpoint) {
	.marks = mark_checkpoint,
	.schema = "checkpoint(Tensor x, *, str at) -> Tensor",
	.doc = "x, marked for what is saved for gradients: where a region begins (\"begin\") and "
	       "ends (\"end\") whose values are computed again, "
	       "or to be saved within one (\"keep\")",
	.expands = EXPANDS_IN_DECOMPOSE,
	.vjp = "[g]",
	.jvp = "t_x",
	.batch_leading = true,
	.infer = infer_checkpoint,
	.eval = eval_barrier,
	.expand = "x",
	.sample = "f32[3, 4], at=\"begin\"; f32[n=3], at=\"end\"; f32[2], at=\"keep\"",
};

/* ---- invertible ---- */

/* Whether the body may be executed again: what is computed to find the inputs is computed anew
 * each time. */
static bool is_pure(const Graph *body)
{
	for (Node n = body->first; n.i; n = node_next(body, n)) {
		if (node_checks(body, n) == CHECKS_TRUTH || node_checks(body, n) == CHECKS_ZERO)
			continue;
		const OpInfo *info = op_info(node_op(body, n));
		if (info->effect || (info->has_effect && info->has_effect(body, n)) ||
		    (node_draws(body, n) && !node_arg(body, n, "rng").i))
			return false;
		const Graph *inner;
		for (uint32_t k = 0; (inner = node_next_body(body, n, &k));)
			if (!is_pure(inner))
				return false;
	}
	return true;
}

/* Whether both types may be the same. Sizes that are not known to differ may be equal. */
static bool may_be_same(const Infer *f, Node x, const Graph *body, Node y)
{
	const Type a = *node_type(f->g, x), b = *node_type(body, y);
	bool same = a.dtype == b.dtype && a.n == b.n;
	for (uint32_t d = 0; d < a.n && same; d++)
		same = sym_eq(f->syms, a.dim[d], b.dim[d]) != NO;
	return same;
}

/* Checks that the inverse takes the results and the constants, and gives what went in. */
static bool check_inverse(Infer *f, const char *name, const Graph *body)
{
	uint32_t first_x, first_const, first, ny = infer_args(f, "ys", &first),
					      nx = infer_args(f, "xs", &first_x),
					      nconst = infer_args(f, "consts", &first_const);
	if (body->input.n != ny + nconst)
		return infer_fail(f,
				  "block \"%s\": its inverse takes %u values, expected %u: the "
				  "block's %u results and %u more",
				  name, body->input.n, ny + nconst, ny, nconst);
	if (body->output.n != nx)
		return infer_fail(
			f, "block \"%s\": its inverse gives %u values, and the block takes %u",
			name, body->output.n, nx);
	for (uint32_t k = 0; k < body->input.n; k++) {
		Node x = f->in[k < ny ? k : first_const + k - ny], in = body->input.data[k].node;
		if (!may_be_same(f, x, body, in))
			return infer_fail(
				f, "block \"%s\": operand %u of its inverse is %s, expected %s",
				name, k, type_text(body, in), type_text(f->g, x));
	}
	for (uint32_t k = 0; k < nx; k++) {
		Node x = f->in[first_x + k], out = body->output.data[k].node;
		if (!may_be_same(f, x, body, out))
			return infer_fail(f,
					  "block \"%s\": result %u of its inverse is %s, and "
					  "operand %u of the block %s",
					  name, k, type_text(body, out), k, type_text(f->g, x));
	}
	return is_pure(body) ||
	       infer_fail(f,
			  "block \"%s\": its inverse draws random numbers of no key or has an "
			  "effect, which would "
			  "not be the same a second time: compute these outside and hand them in",
			  name);
}

static bool shape_invertible(Infer *f)
{
	uint32_t first, ny = infer_args(f, "ys", &first);
	const Attr *name = infer_attr(f, "name");
	const Graph *body;
	TRY(infer_body(f, "inverse", &body) &&
	    check_inverse(f, name->kind == ATTR_str ? name->str : "", body));
	TypeId *elem = ARENA_ARRAY(f->g->ir->ctx->arena, TypeId, ny);
	for (uint32_t k = 0; k < ny; k++)
		elem[k] = node_type_id(f->g, f->in[k]);
	f->type = ir_tuple(f->g->ir, ny, elem);
	return true;
}
INFER(invertible)

static bool eval_invertible(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	(void)e;
	for (uint32_t k = 0; k < node_nresult(g, n); k++)
		copy_elems(&out[k], &in[k]);
	return true;
}

static Node build_invertible(Build *b, Node n)
{
	uint32_t first, ny = node_args(b->g, n, "ys", &first);
	Node *y = ARENA_ARRAY(b->g->ir->ctx->scratch, Node, ny);
	for (uint32_t k = 0; k < ny; k++)
		y[k] = node_in(b->g, n, k);
	return b_tuple(b, y, ny);
}

/* Marks the end of a region: a block ends the one that it is. */
static Mark mark_invertible(const Graph *g, Node n)
{
	(void)g, (void)n;
	return MARK_END;
}

static bool adjoint_invertible(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	memcpy(g, ct, node_nresult(b->g, n) * sizeof *g);
	return true;
}

/* Makes tangents leave the region, too. */
static bool tangent_invertible(Build *b, Node n, const Node *t, Node *ty)
{
	Attr attr[] = {attr_none(), attr_str(b->g->ir, "end")};
	for (uint32_t k = 0; k < node_nresult(b->g, n); k++)
		ty[k] = t[k].i ? b_node(b, OP_checkpoint, &t[k], 1, attr, 2) : t[k];
	return true;
}

/* Kept while graphs are transformed, for transform/partition/undo.c. */
OP(invertible) {
	.marks = mark_invertible,
	.adjoint = adjoint_invertible,
	.tangent = tangent_invertible,
	.schema = "invertible(Tensor[] ys, Tensor[] xs, Tensor[] consts, *, graph inverse, str "
		  "name) -> Tensor[]",
	.doc = "ys, the results of a block of xs: xs... = inverse(ys..., consts...), "
	       "from which gradients may compute them again",
	.expands = EXPANDS_IN_DECOMPOSE,
	.infer = infer_invertible,
	.eval = eval_invertible,
	.build = build_invertible,
	.sample = "[f32[2, 3]], [f32[2, 3]], [f32[3]], inverse=graph @undo(%y: f32[2, 3], %w: "
		  "f32[3]) {\n  %b = broadcast(%w, shape=[2, 3], map=[1])\n  %a = sub(%y, "
		  "%b)\n  return %a\n}, name=\"shift\"",
};
