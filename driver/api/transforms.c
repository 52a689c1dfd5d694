/* Function transforms behind the API: names and places become what transform/transform.h takes. */
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "driver/api/given.h"
#include "ir/op/op.h"
#include "transform/derive_priv.h"
#include "transform/partition/partition.h"
#include "passes/pipeline.h"

_Static_assert((int)DIM_NO_BATCH == (int)WEFT_NO_BATCH, "the options are handed on");

typedef struct {
	Weft *w;
	const WeftGraph *from;
	WeftGradOptions grad;
	WeftVmapOptions vmap;
	bool vjp, split, has_room; /* has_room: for both results of a split */
	/* What was chosen. */
	bool *input, *output; /* by input and output of the graph */
	ARRAY(ConstId) param;
	WeftGraph *out, *backward;
} Transforming;

static bool is_user(const Graph *g, uint32_t input)
{
	return g->input.data[input].kind == INPUT_USER;
}

static bool has_gradient(const Graph *g, Node n)
{
	return dtype_is_inexact(node_dtype(g, n));
}

/* ---- inputs ---- */

/* Chooses the input that is the k-th of weft_inputs. */
static bool choose_place(Transforming *t, uint32_t place)
{
	const Graph *g = t->from->g;
	uint32_t n = 0;
	for (uint32_t k = 0; k < g->input.n; k++)
		if (is_user(g, k) && n++ == place)
			return t->input[k] = true;
	return ctx_error(t->w->ctx, t->from->path, "there is no input %u: the model has %u", place,
			 n);
}

static bool choose_input(Transforming *t, const char *name)
{
	const Graph *g = t->from->g;
	bool found = false;
	for (uint32_t k = 0; k < g->input.n; k++)
		if (!strcmp(g->input.data[k].name, name))
			found = t->input[k] = true;
	return found;
}

static const char *input_names(const Transforming *t)
{
	const Graph *g = t->from->g;
	Text all;
	text_init(&all, weft_arena(t->w));
	for (uint32_t k = 0, n = 0; k < g->input.n; k++)
		if (is_user(g, k))
			text_printf(&all, "%s%s", n++ ? ", " : "", g->input.data[k].name);
	return all.n ? all.data : "none";
}

/* ---- parameters ---- */

static void add_param(Transforming *t, ConstId c)
{
	array_push(weft_arena(t->w), &t->param, c);
}

static int by_place(const void *a, const void *b)
{
	const ConstId *x = a, *y = b;
	return (x->i > y->i) - (x->i < y->i);
}

/* Puts parameters in the order of the file, whatever they were named in, each once. */
static void order_params(Transforming *t)
{
	ConstId *c = t->param.data;
	uint32_t n = 0;
	if (t->param.n)
		qsort(c, t->param.n, sizeof *c, by_place);
	for (uint32_t k = 0; k < t->param.n; k++)
		if (!n || c[n - 1].i != c[k].i)
			c[n++] = c[k];
	t->param.n = n;
}

/* Whether c is a parameter that can be learned, under its first name; a parameter that requires
 * no gradients counts only if `all` are asked for. */
static bool is_learned(const Const *c, bool all)
{
	return c->is_param && !c->is_buffer && !c->same_as.i && dtype_is_inexact(c->dtype) &&
	       (all || !c->frozen);
}

/* Chooses the weights; those that the graph replaces are inputs. */
static bool choose_params(Transforming *t, bool all)
{
	const Graph *g = t->from->g;
	bool *replaced = arena_calloc(weft_arena(t->w), g->ir->constant.n, sizeof *replaced);
	for (uint32_t k = 0; k < g->input.n; k++) {
		const GraphInput *in = &g->input.data[k];
		replaced[in->init.i] = true;
		if (in->kind == INPUT_PARAM && has_gradient(g, in->node) &&
		    (all || !ir_const_of(g->ir, in->init)->frozen))
			t->input[k] = true;
	}
	for (uint32_t k = 1; k < g->ir->constant.n; k++)
		if (!replaced[k] && is_learned(&g->ir->constant.data[k], all))
			add_param(t, (ConstId){k});
	return true;
}

/* Chooses a constant: the input that holds it where the graph replaces it, else the constant
 * itself. */
static void choose_constant(Transforming *t, ConstId c)
{
	const Graph *g = t->from->g;
	const ConstId first = ir_const_of(g->ir, c)->same_as;
	c = first.i ? first : c;
	for (uint32_t k = 0; k < g->input.n; k++)
		if (g->input.data[k].init.i == c.i) {
			t->input[k] = true;
			return;
		}
	add_param(t, c);
}

/* Returns the input or parameter that may be meant. */
static const char *name_hint(const Transforming *t, const char *name)
{
	const Graph *g = t->from->g;
	Nearest near = {.word = name, .most = nearest_most(strlen(name))};
	for (uint32_t k = 0; k < g->input.n; k++)
		nearest_offer(&near, g->input.data[k].name);
	for (uint32_t k = 1; k < g->ir->constant.n; k++)
		nearest_offer(&near, g->ir->constant.data[k].name);
	return nearest_hint(weft_arena(t->w), &near);
}

static bool choose_param(Transforming *t, const char *name)
{
	const Ir *ir = t->from->g->ir;
	for (uint32_t k = 1; k < ir->constant.n; k++) {
		const Const *c = &ir->constant.data[k];
		if (strcmp(c->name, name))
			continue;
		if (!dtype_is_inexact(c->dtype))
			return ctx_error(t->w->ctx, t->from->path,
					 "there is no derivative by %s, which is %s", name,
					 dtype_name(c->dtype)) ||
			       ctx_kind(t->w->ctx, REFUSAL_DERIVATIVE);
		choose_constant(t, (ConstId){k});
		return true;
	}
	return ctx_error(t->w->ctx, t->from->path,
			 "no input or parameter is called %s; the inputs are %s%s", name,
			 input_names(t), name_hint(t, name));
}

/* ---- derivatives ---- */

static void choose_all_inputs(Transforming *t)
{
	const Graph *g = t->from->g;
	for (uint32_t k = 0; k < g->input.n; k++)
		if (is_user(g, k) && has_gradient(g, g->input.data[k].node))
			t->input[k] = true;
}

static bool is_group(const char *name)
{
	return !strcmp(name, "params") || !strcmp(name, "all-params");
}

static bool choose_wrt(Transforming *t)
{
	const WeftGradOptions *o = &t->grad;
	if (!o->nwrt && !o->ninput)
		choose_all_inputs(t);
	for (uint32_t k = 0; k < o->ninput; k++)
		TRY(choose_place(t, o->input[k]));
	for (uint32_t k = 0; k < o->nwrt; k++) {
		const char *name = o->wrt[k];
		if (!strcmp(name, "inputs"))
			choose_all_inputs(t);
		else
			TRY(is_group(name) ? choose_params(t, *name == 'a')
					   : choose_input(t, name) || choose_param(t, name));
	}
	order_params(t);
	return true;
}

/* Chooses the outputs that the options name by their place in weft_outputs; without any, all. */
static bool choose_outputs(Transforming *t)
{
	const Graph *g = t->from->g;
	const WeftGradOptions *o = &t->grad;
	uint32_t n = 0;
	for (uint32_t k = 0; k < g->output.n; k++) {
		if (g->output.data[k].writes >= 0)
			continue;
		Node out = g->output.data[k].node;
		bool named = false;
		for (uint32_t i = 0; i < o->noutput; i++)
			named |= o->output[i] == n;
		n++;
		if (named && !has_gradient(g, out))
			return ctx_error(t->w->ctx, t->from->path,
					 "output %s is %s and takes no cotangent",
					 g->output.data[k].name, dtype_name(node_dtype(g, out)));
		t->output[k] = (named || !o->noutput) && has_gradient(g, out);
	}
	for (uint32_t i = 0; i < o->noutput; i++)
		if (o->output[i] >= n)
			return ctx_error(t->w->ctx, t->from->path,
					 "there is no output %u: the model has %u", o->output[i],
					 n);
	return true;
}

static bool any(const bool *x, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		if (x[k])
			return true;
	return false;
}

/* Checks that there is something to differentiate, and something to differentiate by. */
static bool is_defined(Transforming *t)
{
	const Graph *g = t->from->g;
	if (!t->param.n && !any(t->input, g->input.n))
		return ctx_error(t->w->ctx, t->from->path,
				 "there is nothing to differentiate by: of what was named, nothing "
				 "is of a float or complex dtype");
	if (!any(t->output, g->output.n))
		return ctx_error(t->w->ctx, t->from->path,
				 "there is nothing to differentiate: no output is of a float or "
				 "complex dtype");
	return true;
}

static bool begin(Transforming *t, const char *function, uint32_t size, size_t known)
{
	Ctx *ctx = t->w->ctx;
	const WeftGradOptions *grad = &t->grad;
	const WeftVmapOptions *vmap = &t->vmap;
	TRY(options_fit(t->w, size, known));
	TRY(given_graph(t->w, function, t->from) && graph_is_one(t->w, t->from));
	TRY(given_texts(t->w, function, "names of inputs or parameters", grad->wrt, grad->nwrt));
	TRY(given_list(t->w, function, "places of inputs", grad->input, grad->ninput));
	TRY(given_list(t->w, function, "places of outputs", grad->output, grad->noutput));
	TRY(given_texts(t->w, function, "names of inputs", vmap->batched, vmap->nbatched));
	TRY(given_list(t->w, function, "places of inputs", vmap->input, vmap->ninput));
	TRY(given_list(t->w, function, "dimensions of inputs", vmap->in_dim, vmap->nin_dim));
	TRY(given_list(t->w, function, "dimensions of outputs", vmap->out_dim, vmap->nout_dim));
	ctx->file = t->from->path;
	t->input = arena_calloc(ctx->arena, t->from->g->input.n, sizeof(bool));
	t->output = arena_calloc(ctx->arena, t->from->g->output.n, sizeof(bool));
	return true;
}

static bool done(Transforming *t, Graph *g)
{
	TRY(g);
	t->out = graph_wrap(t->w, g, t->from->path);
	t->out->transformed = true;
	g->activations = t->from->g->activations;
	return true;
}

static bool derive(void *arg)
{
	Transforming *t = arg;
	TRY(begin(t,
		  t->split ? "weft_vjp_split"
		  : t->vjp ? "weft_vjp"
			   : "weft_jvp",
		  t->grad.size, sizeof t->grad));
	if (t->from->g->activations == DT_i8)
		return ctx_error(t->w->ctx, t->from->path,
				 "what is rounded to 8 bits (weft_set_activations, --activations) "
				 "has no derivative");
	TRY(choose_wrt(t) && choose_outputs(t) && is_defined(t));
	if (t->from->g->decomposed)
		ctx_note(t->w->ctx, t->from->path,
			 "the file is decomposed: what the model computes under torch.no_grad() is "
			 "not in it, and has derivatives here");
	const Wrt wrt = {.input = t->input,
			 .nparam = t->param.n,
			 .param = t->param.data,
			 .output = t->output};
	TRY(done(t, (t->vjp ? transform_vjp : transform_jvp)(t->from->g, &wrt)));
	if (graph_rounds(t->from->g)) {
		t->out->g->activations = DT_f32;
		ctx_note(t->w->ctx, t->from->path,
			 "products that the model lets round an operand to 8 bits are exact in the "
			 "graph with derivatives");
	}
	return true;
}

static WeftGraph *derived(Weft *w, const WeftGraph *g, const WeftGradOptions *o, bool vjp)
{
	Transforming t = {.w = w, .from = g, .vjp = vjp};
	options_copy(&t.grad, sizeof t.grad, o);
	return boundary(w, derive, &t) ? t.out : NULL;
}

WeftGraph *weft_vjp(Weft *w, const WeftGraph *g, const WeftGradOptions *o)
{
	return derived(w, g, o, true);
}

WeftGraph *weft_jvp(Weft *w, const WeftGraph *g, const WeftGradOptions *o)
{
	return derived(w, g, o, false);
}

/* ---- two entries ---- */

static bool split(void *arg)
{
	Transforming *t = arg;
	Graph *part[2];
	t->vjp = t->split = true;
	if (!t->has_room)
		return ctx_error(t->w->ctx, "weft_vjp_split", "room for a result is missing: NULL");
	TRY(derive(t));
	if (t->grad.memory_budget && !(*t->grad.memory_budget >= 0))
		return ctx_error(t->w->ctx, t->from->path, "a memory budget of %g",
				 *t->grad.memory_budget);
	TRY(transform_partition(t->out->g, t->from->g->input.n, t->from->g->output.n,
				t->grad.memory_budget ? *t->grad.memory_budget : -1, part));
	t->out = graph_wrap(t->w, part[0], t->from->path);
	t->backward = graph_wrap(t->w, part[1], t->from->path);
	t->out->transformed = t->backward->transformed = true;
	return true;
}

bool weft_vjp_split(Weft *w, const WeftGraph *g, const WeftGradOptions *o, WeftGraph **forward,
		    WeftGraph **backward)
{
	Transforming t = {.w = w, .from = g, .has_room = forward && backward};
	options_copy(&t.grad, sizeof t.grad, o);
	bool ok = boundary(w, split, &t);
	if (forward)
		*forward = ok ? t.out : NULL;
	if (backward)
		*backward = ok ? t.backward : NULL;
	return ok;
}

/* ---- blocks with an inverse ---- */

static bool check_inverses(void *arg)
{
	Transforming *t = arg;
	TRY(begin(t, "weft_check_inverses", 0, 0));
	return done(t, transform_check_inverses(t->from->g));
}

WeftGraph *weft_check_inverses(Weft *w, const WeftGraph *g)
{
	Transforming t = {.w = w, .from = g};
	return boundary(w, check_inverses, &t) ? t.out : NULL;
}

/* ---- batches ---- */

/* Makes a size for the batch, of a name that the graph does not have yet. */
static Sym new_symbol(Transforming *t)
{
	SymTab *s = graph_syms(t->from->g);
	const char *base = t->vmap.symbol ? t->vmap.symbol : "batch", *name = base;
	for (uint32_t k = 1; sym_find(s, name, (uint32_t)strlen(name)).i; k++)
		name = arena_printf(t->w->ctx->arena, "%s%u", base, k);
	Sym v = sym_var(s, name, SYMVAR_SIZE, 0, SYM_INF);
	sym_set_hint(s, v, 8);
	return v;
}

/* Sets *out to a number for each of `count` inputs or outputs: of none (0), one for all of them,
 * or one for each. */
static bool spread_dims(Transforming *t, const char *what, const int32_t *dim, uint32_t ndim,
			uint32_t count, int32_t **out)
{
	if (ndim > 1 && ndim != count)
		return ctx_error(t->w->ctx, t->from->path,
				 "dimensions of the batch are given for %u %ss: the model has %u",
				 ndim, what, count);
	*out = ARENA_ARRAY(weft_arena(t->w), int32_t, count + 1);
	for (uint32_t k = 0; k < count; k++)
		(*out)[k] = !ndim ? 0 : dim[ndim == 1 ? 0 : k];
	return true;
}

/* Sets *dims to where the batch stands, by input and output of the graph. */
static bool choose_dims(Transforming *t, BatchDims *dims)
{
	const Graph *g = t->from->g;
	const WeftVmapOptions *o = &t->vmap;
	uint32_t nin = 0, nout = 0;
	int32_t *of[2], *in = ARENA_ARRAY(weft_arena(t->w), int32_t, g->input.n + 1),
			*out = ARENA_ARRAY(weft_arena(t->w), int32_t, g->output.n + 1);
	for (uint32_t k = 0; k < g->input.n; k++)
		nin += is_user(g, k);
	for (uint32_t k = 0; k < g->output.n; k++)
		nout += g->output.data[k].writes < 0;
	TRY(spread_dims(t, "input", o->in_dim, o->nin_dim, nin, &of[0]) &&
	    spread_dims(t, "output", o->out_dim, o->nout_dim, nout, &of[1]));
	for (uint32_t k = 0, n = 0; k < g->input.n; k++)
		in[k] = is_user(g, k) ? of[0][n++] : 0;
	for (uint32_t k = 0, n = 0; k < g->output.n; k++)
		out[k] = g->output.data[k].writes < 0 ? of[1][n++] : 0;
	*dims = (BatchDims){in, out};
	return true;
}

/* Chooses the inputs with a batch. Refuses those that are named and have no dimension for it. */
static bool choose_batched(Transforming *t, const BatchDims *dims)
{
	const Graph *g = t->from->g;
	const WeftVmapOptions *o = &t->vmap;
	bool all = !o->nbatched && !o->ninput;
	for (uint32_t k = 0; k < g->input.n && all; k++)
		t->input[k] = is_user(g, k) && dims->in[k] != DIM_NO_BATCH;
	for (uint32_t k = 0; k < o->ninput; k++)
		TRY(choose_place(t, o->input[k]));
	for (uint32_t k = 0; k < o->nbatched; k++)
		if (!choose_input(t, o->batched[k]))
			return ctx_error(t->w->ctx, t->from->path,
					 "no input is called %s; there are %s", o->batched[k],
					 input_names(t));
	bool any = false;
	for (uint32_t k = 0; k < g->input.n; k++) {
		if (t->input[k] && !is_user(g, k))
			return ctx_error(t->w->ctx, t->from->path,
					 "%s is state, of which a batch shares one",
					 g->input.data[k].name);
		if (t->input[k] && dims->in[k] == DIM_NO_BATCH)
			return ctx_error(
				t->w->ctx, t->from->path,
				"input %s is to have a batch and is given no dimension for it",
				g->input.data[k].name);
		any |= t->input[k];
	}
	return any ||
	       ctx_error(t->w->ctx, t->from->path, "the model has no input that could be batched");
}

static bool batch(void *arg)
{
	Transforming *t = arg;
	TRY(begin(t, "weft_vmap", t->vmap.size, sizeof t->vmap));
	if ((unsigned)t->vmap.randomness > WEFT_RANDOM_DIFFERENT)
		return ctx_error(t->w->ctx, t->from->path, "there is no randomness %d",
				 (int)t->vmap.randomness);
	BatchDims dims;
	TRY(choose_dims(t, &dims) && choose_batched(t, &dims));
	if (t->vmap.extent < 0 || t->vmap.extent >= INT64_C(1) << 48)
		return ctx_error(t->w->ctx, t->from->path,
				 "a batch of %lld: expected 0 (a symbol) or fewer than 2^48",
				 (long long)t->vmap.extent);
	if (t->vmap.symbol && !text_is_identifier(t->vmap.symbol))
		return ctx_error(
			t->w->ctx, t->from->path,
			"\"%s\" cannot be the name of a size: it must be an identifier of C",
			t->vmap.symbol);
	Sym size = t->vmap.extent ? sym_int(graph_syms(t->from->g), t->vmap.extent) : new_symbol(t);
	return done(t, transform_vmap_at(t->from->g, t->input, size, (Randomness)t->vmap.randomness,
					 &dims));
}

WeftGraph *weft_vmap(Weft *w, const WeftGraph *g, const WeftVmapOptions *o)
{
	Transforming t = {.w = w, .from = g};
	options_copy(&t.vmap, sizeof t.vmap, o);
	return boundary(w, batch, &t) ? t.out : NULL;
}
