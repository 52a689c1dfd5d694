#include "ir/interp/interp.h"

#include <stdlib.h>
#include <string.h>

#include "ir/build/adopt.h"
#include "ir/interp/priv.h"
#include "ir/op/op.h"

/* ---- symbols and storage ---- */

bool eval_sym(EvalCtx *e, Sym s, int64_t *out)
{
	if (sym_eval(e->syms, s, e->sym, e->value, e->nsym, out))
		return true;
	return ctx_error(e->ctx, NULL,
	                 "size %s has no value: unknown symbol, overflow or division by 0",
	                 sym_str(e->syms, s));
}

bool eval_syms(EvalCtx *e, const Sym *s, uint32_t n, int64_t *out)
{
	for (uint32_t k = 0; k < n; k++)
		TRY(eval_sym(e, s[k], &out[k]));
	return true;
}

/* Sets dtype and extents of t to those of a tensor type. Returns false after an error: an extent
 * is negative, or the bytes leave int64. */
static bool concrete_type(EvalCtx *e, const Graph *g, TypeId id, Tensor *t)
{
	Type type = *ir_type_of(g->ir, id);
	int64_t bytes = dtype_size(type.dtype);
	*t = (Tensor){.dtype = type.dtype, .rank = type.n};
	TRY(eval_syms(e, type.dim, type.n, t->dim));
	for (uint32_t k = 0; k < t->rank; k++) {
		if (t->dim[k] < 0)
			return ctx_error(e->ctx, NULL, "extent %s is %lld, expected at least 0",
			                 sym_str(e->syms, type.dim[k]), (long long)t->dim[k]);
		if (__builtin_mul_overflow(bytes, t->dim[k] ? t->dim[k] : 1, &bytes))
			return ctx_error(e->ctx, NULL, "a tensor is too large to address");
	}
	return true;
}

bool eval_alloc(EvalCtx *e, TypeId id, Graph *g, Tensor *out)
{
	e->syms = graph_syms(g);
	TRY(concrete_type(e, g, id, out));
	out->data = arena_alloc(e->arena, tensor_bytes(out));
	return true;
}

/* ---- values of nodes ---- */

/* Storage of one tensor, shared by the values that alias it. */
typedef struct {
	uint32_t refs;
	void *block; /* the allocation */
	_Alignas(64) char data[];
} Storage;

/* One tensor, or the elements of a tuple. Borrowed storage (inputs, constants) has own == NULL. */
typedef struct {
	uint32_t n, uses; /* uses: readers that have not run yet */
	Tensor *t;
	Storage **own;
} InterpValue;

typedef struct {
	EvalCtx e; /* the caller's, with an arena of this run */
	Graph *g;
	const Tensor *in;
	uint32_t nin;
	Tensor *out;
	uint32_t nout;
	Arena *results;  /* for outputs whose sizes depend on data */
	InterpValue *value; /* by node */
	Tensor *operand; /* scratch: operands of the node that runs */
} InterpRun;

static Storage *storage_new(Ctx *ctx, uint64_t bytes)
{
	/* calloc: the system's own memory is zero, and is not touched here */
	char *block = calloc(1, sizeof(Storage) + (size_t)bytes + 63);
	if (!block)
		longjmp(ctx->unwind, UNWIND_OOM);
	Storage *s = (Storage *)(((uintptr_t)block + 63) / 64 * 64);
	s->block = block;
	s->refs = 1;
	return s;
}

static void value_drop(InterpValue *v)
{
	for (uint32_t k = 0; k < v->n; k++) {
		if (v->own[k] && --v->own[k]->refs == 0)
			free(v->own[k]->block);
	}
	v->n = 0;
}

static void value_shape(InterpRun *r, InterpValue *v, uint32_t n)
{
	v->t = ARENA_ARRAY(r->e.arena, Tensor, n);
	v->own = ARENA_ARRAY(r->e.arena, Storage *, n);
	v->n = n;
}

static void value_alias(InterpValue *to, uint32_t at, const InterpValue *from, uint32_t k)
{
	to->t[at] = from->t[k];
	to->own[at] = from->own[k];
	if (to->own[at])
		to->own[at]->refs++;
}

/* Allocates storage for a result of the type: one tensor, or each element of a tuple of tensors. */
static bool value_alloc(InterpRun *r, TypeId id, InterpValue *v)
{
	const Graph *g = r->g;
	Type type = *ir_type_of(g->ir, id);
	bool is_tuple = id.i && type.dtype == DT_none;
	uint32_t n = is_tuple ? type.n : id.i ? 1 : 0;
	value_shape(r, v, n);
	for (uint32_t k = 0; k < n; k++) {
		TRY(concrete_type(&r->e, g, is_tuple ? type.elem[k] : id, &v->t[k]));
		v->own[k] = storage_new(r->e.ctx, tensor_bytes(&v->t[k]));
		v->t[k].data = v->own[k]->data;
	}
	return true;
}

static bool same_shape(const Tensor *a, const Tensor *b)
{
	return a->dtype == b->dtype && a->rank == b->rank &&
	       memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) == 0;
}

/* ---- the four ops without .eval ---- */

static bool run_input(InterpRun *r, Node n, InterpValue *v)
{
	uint32_t k = 0;
	while (k < r->nin && r->g->input.data[k].node.i != n.i)
		k++;
	if (k == r->nin)
		ctx_bug(r->e.ctx, "input node %s is not listed", graph_name(r->g, n));
	/* when bound, or when its size is found out */
	bool checked = r->in == r->e.given && node_has_data_size(r->g, n);
	Tensor want = r->in[k];
	TRY(checked || concrete_type(&r->e, r->g, node_type_id(r->g, n), &want));
	if (!same_shape(&want, &r->in[k]))
		return ctx_error(r->e.ctx, NULL,
		                 "input \"%s\": its dtype or shape is not the one bound",
		                 r->g->input.data[k].name);
	value_shape(r, v, 1);
	v->t[0] = r->in[k];
	return true;
}

/* Computes a constant that no code has computed yet. */
static bool run_recipe(InterpRun *r, const Const *c, InterpValue *v)
{
	Tensor out;
	TRY(interp(r->e.ctx, c->recipe, NULL, 0, &out, 1, r->e.arena));
	value_shape(r, v, 1);
	v->t[0] = out;
	return true;
}

/* Gives a constant as it lies in the file. A constant that the file does not align is copied. */
static bool run_constant(InterpRun *r, Node n, InterpValue *v)
{
	const Const *c = ir_const_of(r->g->ir, node_attr(r->g, n, "value")->c);
	if (c->recipe && !c->data)
		return run_recipe(r, c, v);
	Tensor t = {.dtype = c->dtype, .rank = c->rank, .data = (void *)(uintptr_t)c->data};
	memcpy(t.dim, c->dim, c->rank * sizeof *c->dim);
	uint64_t bytes = tensor_bytes(&t);
	if (bytes > c->bytes || (bytes && !c->data))
		return ctx_error(r->e.ctx, node_where(r->g, n),
		                 "constant \"%s\": expected %llu bytes, got %llu", c->name,
		                 (unsigned long long)bytes, (unsigned long long)c->bytes);
	value_shape(r, v, 1);
	if (bytes && (uintptr_t)c->data % dtype_size(c->dtype) != 0) {
		v->own[0] = storage_new(r->e.ctx, bytes);
		memcpy(v->own[0]->data, c->data, bytes);
		t.data = v->own[0]->data;
	}
	v->t[0] = t;
	return true;
}

static bool run_tuple(InterpRun *r, Node n, InterpValue *v)
{
	value_shape(r, v, node_nin(r->g, n));
	for (uint32_t k = 0; k < v->n; k++) {
		const InterpValue *x = &r->value[node_in(r->g, n, k).i];
		if (x->n != 1)
			return ctx_error(r->e.ctx, node_where(r->g, n), "a tuple inside a tuple");
		value_alias(v, k, x, 0);
	}
	return true;
}

static bool run_get(InterpRun *r, Node n, InterpValue *v)
{
	const InterpValue *x = &r->value[node_in(r->g, n, 0).i];
	int64_t k = node_int(r->g, n, "index");
	if (k < 0 || k >= x->n) /* a file says how many results a composite has */
		return ctx_error(r->e.ctx, node_where(r->g, n),
				 "result %lld of an operator that gives %u here", (long long)k,
				 x->n);
	value_shape(r, v, 1);
	value_alias(v, 0, x, (uint32_t)k);
	return true;
}

/* ---- running ---- */

static bool eval_node(InterpRun *r, Node n, InterpValue *v)
{
	const OpInfo *op = op_info(node_op(r->g, n));
	for (uint32_t k = 0; k < node_nin(r->g, n); k++) {
		Node x = node_in(r->g, n, k);
		r->operand[k] = x.i && r->value[x.i].n ? r->value[x.i].t[0] : (Tensor){0};
	}
	TRY(value_alloc(r, node_type_id(r->g, n), v));
	ArenaMark mark = arena_mark(r->e.arena);
	bool ok;
	if (op->eval)
		ok = op->eval(&r->e, r->g, n, r->operand, v->t);
	else if (op->scalar)
		ok = interp_scalar(&r->e, r->g, n, r->operand, v->t);
	else
		ok = ctx_error(r->e.ctx, node_where(r->g, n), "%s: cannot be interpreted",
		               op_name(node_op(r->g, n)));
	arena_release(r->e.arena, mark);
	return ok;
}

static bool run_node(InterpRun *r, Node n)
{
	InterpValue *v = &r->value[n.i];
	switch (node_op(r->g, n)) {
	case OP_input: return run_input(r, n, v);
	case OP_constant: return run_constant(r, n, v);
	case OP_tuple: return run_tuple(r, n, v);
	case OP_get: return run_get(r, n, v);
	default: return eval_node(r, n, v);
	}
}

/* Whether nobody reads the value of a node whose turn it is: then it is not computed, as in
 * compiled code. */
static bool is_dead(const InterpRun *r, Node n)
{
	return !r->value[n.i].uses && node_op(r->g, n) != OP_input && !node_has_effect(r->g, n);
}

/* Counts the readers of each node that are not dead themselves, and makes room for the most
 * operands of a node. */
static void count_readers(InterpRun *r)
{
	const Graph *g = r->g;
	uint32_t most = 0;
	r->value = ARENA_ARRAY(r->e.arena, InterpValue, g->node.n);
	for (uint32_t k = 0; k < g->output.n; k++)
		r->value[g->output.data[k].node.i].uses++;
	for (Node n = g->last; n.i; n = node_prev(g, n)) {
		uint32_t nin = is_dead(r, n) ? 0 : node_nin(g, n);
		most = nin > most ? nin : most;
		for (uint32_t k = 0; k < nin; k++)
			r->value[node_in(g, n, k).i].uses++;
	}
	r->operand = ARENA_ARRAY(r->e.arena, Tensor, most);
}

/* Allocates an output that the caller could not allocate: its sizes are known now. */
static void size_output(InterpRun *r, uint32_t k, const Tensor *v)
{
	if (r->out[k].data || !r->results)
		return;
	r->out[k] = *v;
	r->out[k].data = arena_alloc(r->results, tensor_bytes(v));
}

static bool run_nodes(InterpRun *r)
{
	Graph *g = r->g;
	count_readers(r);
	interp_grow_symbols(&r->e);
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		if (is_dead(r, n))
			continue;
		TRY(run_node(r, n));
		if (r->value[n.i].uses == 0)
			value_drop(&r->value[n.i]);
		for (uint32_t k = 0; k < node_nin(g, n); k++) {
			InterpValue *x = &r->value[node_in(g, n, k).i];
			if (--x->uses == 0)
				value_drop(x);
		}
	}
	for (uint32_t k = 0; k < r->nout; k++) {
		const InterpValue *v = &r->value[g->output.data[k].node.i];
		if (v->n == 1)
			size_output(r, k, &v->t[0]);
		if (v->n != 1 || !same_shape(&v->t[0], &r->out[k]))
			return ctx_error(r->e.ctx, NULL,
			                 "output %u does not have the shape of its type", k);
		memcpy(r->out[k].data, v->t[0].data, tensor_bytes(&r->out[k]));
	}
	return true;
}

/* Runs the nodes. If an internal error or lack of memory unwinds, frees the values first, then
 * unwinds on. */
static bool run_guarded(InterpRun *r)
{
	Ctx *ctx = r->e.ctx;
	jmp_buf outer;
	volatile bool ok = false;
	memcpy(&outer, &ctx->unwind, sizeof outer);
	r->e.arena = arena_new(&ctx->unwind);
	if (!r->e.arena)
		longjmp(ctx->unwind, UNWIND_OOM);
	int why = setjmp(ctx->unwind);
	if (why == 0)
		ok = run_nodes(r);
	memcpy(&ctx->unwind, &outer, sizeof outer);
	for (uint32_t k = 0; r->value && k < r->g->node.n; k++)
		value_drop(&r->value[k]);
	arena_free(r->e.arena);
	if (why != 0)
		longjmp(ctx->unwind, why);
	return ok;
}

static bool call(EvalCtx *e, Graph *g, const Tensor *in, uint32_t nin, Tensor *out, uint32_t nout,
		 Arena *results)
{
	Graph *full = interp_expand(g);
	TRY(full);
	TRY(interp_guards(e, full, g->guard.n));
	if (nin != full->input.n || nout != full->output.n)
		return ctx_error(e->ctx, NULL, "expected %u inputs and %u outputs, got %u and %u",
		                 full->input.n, full->output.n, nin, nout);
	InterpRun r = {.e = *e,
		       .g = full,
		       .in = in,
		       .nin = nin,
		       .out = out,
		       .nout = nout,
		       .results = results};
	return run_guarded(&r);
}

bool interp_call(EvalCtx *e, Graph *g, const Tensor *in, uint32_t nin, Tensor *out, uint32_t nout)
{
	return call(e, g, in, nin, out, nout, NULL);
}

bool interp_run(EvalCtx *e, Graph *g, const Tensor *input, uint32_t nin, Tensor *out, uint32_t nout)
{
	e->syms = graph_syms(g);
	if (nout != g->output.n)
		return ctx_error(e->ctx, NULL, "expected %u outputs, got %u", g->output.n, nout);
	for (uint32_t k = 0; k < nout; k++) {
		out[k] = (Tensor){0};
		if (!g->output.data[k].node.i)
			return ctx_error(e->ctx, NULL, "output %u is none, expected a tensor", k);
		if (!node_has_data_size(g, g->output.data[k].node))
			TRY(eval_alloc(e, node_type_id(g, g->output.data[k].node), g, &out[k]));
	}
	return call(e, g, input, nin, out, nout, e->arena);
}

bool interp(Ctx *ctx, Graph *g, const Tensor *input, uint32_t nin, Tensor *out, uint32_t nout,
            Arena *arena)
{
	EvalCtx e = {.ctx = ctx, .arena = arena};
	TRY(interp_bind(&e, g, input, nin));
	return interp_run(&e, g, input, nin, out, nout);
}

/* ---- composites ---- */

static bool must_expand(const Graph *g, Node n)
{
	Op op = node_op(g, n);
	return (op_kind(op) == OP_COMPOSITE && !op_info(op)->eval) || node_has_complex(g, n);
}

Graph *interp_expand(Graph *g)
{
	Node n = g->first;
	while (n.i && !must_expand(g, n))
		n = node_next(g, n);
	if (!n.i)
		return g;
	g = graph_clone(g);
	for (n = g->first; n.i;) {
		if (!must_expand(g, n)) {
			n = node_next(g, n);
			continue;
		}
		Node prev = node_prev(g, n);
		Build b = {.g = g,
		           .before = n,
		           .loc = node_data(g, n)->loc,
		           .where = node_where(g, n)};
		Node by = node_has_complex(g, n) ? op_complex(&b, n) : op_expand_node(&b, n);
		if (!by.i)
			return NULL;
		TypeId file = node_type_id(g, n);
		if (file.i && adopt_compare(g, node_type_id(g, by), file) == MAYBE)
			by = adopt_type(&b, by, file);
		graph_replace(g, n, by);
		graph_erase(g, n);
		n = prev.i ? node_next(g, prev) : g->first;
	}
	return g;
}
