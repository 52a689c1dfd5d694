/* The graph of a step.
 *
 *   graph @main(%x: f32[N, 2]) {            graph @main(%x: f32[N, 2], %w: f32[2, 3] param "w",
 *     %w = constant(#1 "w")                     %label: i64[N], %lr: f64[]) {
 *     %y = matmul(%x, %w)            ->       %y = matmul(%x, %w)
 *     return %y                               %loss = cross_entropy_loss(%y, %label) ... gradients
 *   }                                         return %loss, w = %w - %lr * gradient
 *                                           }
 *
 * With several batches to an update, a first graph adds gradients to state, and a second one reads
 * their sums.
 *
 * Parameters become state first, so that passes of the derivative see inputs and fold nothing that
 * will change. */
#include "transform/step/step.h"

#include <stdlib.h>
#include <string.h>

#include "ir/build/state.h"
#include "ir/build/verify.h"
#include "ir/op/op.h"
#include "ops/rules/expand_priv.h"
#include "transform/step/making.h"
#include "transform/step/skip.h"
#include "transform/transform.h"

/* ---- parameters ---- */

/* Makes a constant state. */
static bool make_state(Graph *g, ConstId c)
{
	const Const of = *ir_const_of(g->ir, c);
	const int32_t there = making_state_of(g, c);
	if (there >= 0)
		return graph_writer(g, (uint32_t)there) < 0 ||
		       ctx_error(g->ir->ctx, g->ir->ctx->file,
				 "the model itself writes %s, so a step cannot train it: leave it "
				 "out (--trainable)",
				 of.name);
	TRY(making_is_free(g, of.name));
	const Node in = graph_add_input(g, of.name, INPUT_PARAM,
					ir_type_ints(g->ir, of.dtype, of.rank, of.dim));
	g->input.data[g->input.n - 1].init = c;
	for (Node n = g->first, next; n.i; n = next) {
		next = node_next(g, n);
		if (node_const(g, n).i != c.i)
			continue;
		if (node_nuses(g, n))
			graph_replace(g, n, in);
		graph_erase(g, n);
	}
	return true;
}

static bool make_parameters_state(Graph *g, const Step *s)
{
	for (uint32_t c = 1; c < g->ir->constant.n; c++) /* in the order of the file */
		for (uint32_t k = 0; k < s->ngroup; k++)
			for (uint32_t i = 0; i < s->group[k].nparam; i++)
				if (s->group[k].param[i].i == c)
					TRY(make_state(g, (ConstId){c}));
	return true;
}

/* ---- the loss ---- */

/* Returns the index in g->output of the model's output number `place`. */
static uint32_t output_at(const Graph *g, uint32_t place)
{
	uint32_t k = 0;
	for (;; k++)
		if (g->output.data[k].writes < 0 && !place--)
			return k;
}

/* Returns the dimension of classes of values of that rank; -1 if the loss has none, or it is out of
 * range. */
static int64_t class_dim(const Graph *g, const StepLoss *l, uint32_t rank)
{
	const OptimList numbers = optim_list(g->ir->ctx->scratch, l->of->numbers);
	const int at = optim_item(&numbers, "dim");
	const double dim = at < 0 ? -1 : l->number[at] + (l->number[at] < 0 ? rank : 0);
	return l->of->classes && dim >= 1 && dim < rank ? (int64_t)dim : -1;
}

/* Adds the input for labels of the values x. */
static bool add_label(Graph *g, const StepLoss *l, Node x, Node *out)
{
	const Type t = *node_type(g, x);
	const int64_t classes = class_dim(g, l, t.n);
	Sym dim[MAX_RANK];
	uint32_t rank = 0;
	if (l->of->classes && classes < 0)
		return ctx_error(g->ir->ctx, g->ir->ctx->file,
				 "%s: output %u is %s: expected a batch, and classes in dimension "
				 "dim=K, not 0",
				 l->of->name, l->output, type_str(g->ir, node_type_id(g, x)));
	for (uint32_t k = 0; k < t.n; k++)
		if (k != classes)
			dim[rank++] = t.dim[k];
	TRY(making_is_free(g, "label"));
	*out = graph_add_input(g, "label", INPUT_USER,
			       ir_type(g->ir, l->of->classes ? DT_i64 : t.dtype, rank, dim));
	return true;
}

/* Makes samples with classes in the last dimension rows of one matrix: what is summed over then
 * lies side by side in memory. Returns the loss without its dimension of classes, which is 1 then.
 */
static StepLoss as_rows(Build *b, const StepLoss *l, Node value[2])
{
	Graph *g = b->g;
	const OptimList numbers = optim_list(g->ir->ctx->scratch, l->of->numbers);
	const uint32_t rank = node_rank(g, value[0]);
	StepLoss out = *l;
	if (rank < 3 || class_dim(g, l, rank) != rank - 1)
		return out;
	const Sym dim[2] = {type_numel(g->ir, node_type_id(g, value[1])),
			    node_dim(g, value[0], rank - 1)};
	value[0] = b_reshape(b, value[0], 2, dim);
	value[1] = b_reshape(b, value[1], 1, dim);
	out.number[optim_item(&numbers, "dim")] = 1;
	return out;
}

/* Returns the loss, a float without dimensions, at the end of the graph; none after an error. */
static Node loss_of(Graph *g, const StepLoss *l)
{
	Node value[2] = {g->output.data[output_at(g, l->output)].node};
	const char *file = g->ir->ctx->file;
	Build b = {.g = g, .where = file};
	if (!value[0].i || !node_is_tensor(g, value[0]) || !dtype_is_float(node_dtype(g, value[0])))
		return b_error(&b, "a loss of output %u: expected a tensor of floats", l->output);
	if (l->of) {
		if (!add_label(g, l, value[0], &value[1]))
			return (Node){0};
		const StepLoss rows = as_rows(&b, l, value);
		return formula_value(&b, l->of, value, rows.number);
	}
	if (!sym_is(graph_syms(g), type_numel(g->ir, node_type_id(g, value[0])), 1))
		return b_error(
			&b,
			"output %u is %s, and is to be the loss: expected one number (or a "
			"loss of the output, which --loss names, such as cross_entropy(output=%u))",
			l->output, type_str(g->ir, node_type_id(g, value[0])), l->output);
	return b_reshape(&b, value[0], 0, NULL);
}

/* Makes the loss output 0; the model's other outputs stay behind it if `keep`. New values of inputs
 * and of state stay. */
static bool put_loss(Graph *g, const StepLoss *l, bool keep)
{
	const Node loss = loss_of(g, l);
	TRY(loss.i);
	const uint32_t n = g->output.n, own = output_at(g, l->output);
	GraphOutput *all = arena_dup(g->ir->ctx->scratch, g->output.data, n * sizeof *all);
	graph_clear_outputs(g);
	graph_add_output(g, "loss", loss, -1);
	for (uint32_t k = 0; k < n; k++)
		if (all[k].writes >= 0 || (keep && (l->of || k != own)))
			graph_add_output(g, all[k].name, all[k].node, all[k].writes);
	return true;
}

/* Names the model's outputs from index `first` on: "output", of several "output.0" and so on. */
static void name_outputs(Graph *g, uint32_t first)
{
	uint32_t n = 0, at = 0;
	for (uint32_t k = first; k < g->output.n; k++)
		n += g->output.data[k].writes < 0;
	for (uint32_t k = first; k < g->output.n; k++)
		if (g->output.data[k].writes < 0)
			g->output.data[k].name =
				n == 1 ? "output"
				       : arena_printf(g->ir->ctx->arena, "output.%u", at++);
}

/* ---- gradients ---- */

/* Names all operators without a derivative, if there are several; the first one was refused
 * already, as error number `errors`. */
static void refuse_operators(const Graph *g, const Wrt *wrt, uint32_t errors)
{
	Ctx *ctx = g->ir->ctx;
	Text names;
	text_init(&names, ctx->scratch);
	if (ctx->nerror == errors + 1 && transform_underived(g, wrt, &names) > 1)
		(void)ctx_error(ctx, ctx->file, "operators without a derivative, in all: %s",
				names.data);
}

/* Returns the graph of gradients of output 0 by the parameters; *first: the index of the first
 * gradient among its outputs; *seed: the input that the loss's cotangent is. */
static Graph *gradients(Graph *g, const Step *s, uint32_t *first, uint32_t *seed)
{
	Arena *a = g->ir->ctx->scratch;
	bool *input = arena_calloc(a, g->input.n + 1, sizeof *input),
	     *output = arena_calloc(a, g->output.n + 1, sizeof *output);
	for (uint32_t k = 0; k < s->ngroup; k++)
		for (uint32_t i = 0; i < s->group[k].nparam; i++)
			input[making_state_of(g, s->group[k].param[i])] = true;
	output[0] = true;
	*first = g->output.n;
	*seed = g->input.n;
	const Wrt wrt = {.input = input, .output = output};
	const uint32_t errors = g->ir->ctx->nerror;
	Graph *v = transform_vjp(g, &wrt);
	if (!v) {
		refuse_operators(g, &wrt, errors);
		return NULL;
	}
	return v;
}

/* Finds the parameters of which only rows are updated that the step reads. Their gradients become
 * sums of these rows. sums: gradients of several batches are summed. */
static bool find_rows(Making *m, const Gradients *all, bool sums)
{
	for (uint32_t k = 0, at = 0; k < m->s->ngroup; k++) {
		const StepGroup *s = &m->s->group[k];
		for (uint32_t i = 0; i < s->nparam; i++, at++) {
			const char *name = ir_const_of(m->g->ir, s->param[i])->name;
			if (!s->rows[s->param[i].i] || (sums && s->rows[s->param[i].i] == ROWS_MAY))
				continue;
			if (sums)
				return ctx_error(m->ctx, m->ctx->file,
						 "the gradient of %s is of few rows, and a sum of "
						 "several would not be: leave out sparse or "
						 "--accumulate",
						 name);
			if (!rows_find(&m->b, all->g[at], &all->rows[at], &all->g[at]) &&
			    s->rows[s->param[i].i] == ROWS_MUST)
				return ctx_error(m->ctx, m->ctx->file,
						 "%s, which updates rows: the step reads %s not "
						 "only by rows, so that its gradient has all of "
						 "them",
						 s->of->name, name);
		}
	}
	return true;
}

/* ---- the scale of the loss, steps that are skipped ---- */

static bool add_scale(Making *m)
{
	return !m->s->scaled || making_add_state(m, "weft.loss_scale", DT_f32, 0, (int64_t[]){0},
						 m->s->scale[0], &m->scale);
}

/* Replaces the cotangent of the loss, an input, by 1, or by the scale of the loss. */
static bool set_seed(Making *m, uint32_t seed)
{
	Graph *g = m->g;
	const Node ct = g->input.data[seed].node;
	const DType d = node_dtype(g, ct);
	TRY(add_scale(m));
	Build b = {.g = g, .before = graph_behind_inputs(g), .where = m->ctx->file};
	const Node value = m->scale.i ? b_convert(&b, m->scale, d) : b_scalar(&b, d, 1);
	if (node_nuses(g, ct))
		graph_replace(g, ct, value);
	graph_remove_input(g, seed);
	return true;
}

/* Divides gradients by the scale of the loss, as torch.amp.GradScaler does. */
static void unscale(Making *m, const Gradients *all)
{
	if (!m->scale.i)
		return;
	const Node one = b_scalar(&m->b, DT_f64, 1), scale = b_convert(&m->b, m->scale, DT_f64),
		   inverse = b_convert(&m->b, b_bin(&m->b, OP_div, one, scale), DT_f32);
	for (uint32_t k = 0; k < all->n; k++)
		all->g[k] = b_bin(&m->b, OP_mul, all->g[k],
				  b_convert(&m->b, inverse, node_dtype(m->g, all->g[k])));
}

/* Finds whether the step is skipped: the loss, if it is known here, or a gradient is not finite. */
static bool find_skip(Making *m, const Gradients *all)
{
	if (!m->s->skips)
		return true;
	m->skip = skip_not_finite(&m->b, all->g, all->n);
	if (m->lost.i)
		m->skip = b_bin(&m->b, OP_bit_or, m->skip, m->lost);
	return m->skip.i;
}

/* Changes the scale of the loss after an update. */
static bool rescale(Making *m)
{
	Node good, out[2];
	if (!m->scale.i)
		return true;
	TRY(making_add_state(m, "weft.good_steps", DT_i32, 0, (int64_t[]){0}, 0, &good));
	skip_rescale(&m->b, m->scale, good, m->skip, m->s->scale, out);
	making_set_always(m, m->scale, out[0]);
	making_set_always(m, good, out[1]);
	return true;
}

/* ---- clipping ---- */

/* Evaluates an expression of values x and y. */
static Node of_two(Making *m, const char *text, Node x, Node y)
{
	static const char *const name[] = {"x", "y"};
	const Node in[] = {x, y};
	Eval *e = arena_calloc(m->ctx->scratch, 1, sizeof *e);
	*e = (Eval){.b = &m->b, .p = text};
	for (uint32_t k = 0; k < 2; k++)
		expand_let(e, name[k], (Val){.kind = VAL_node, .node = in[k]});
	const Val v = expand_program(e);
	if (e->err)
		ctx_bug(m->ctx, "clipping: %s at \"%s\"", e->err, e->errp);
	return v.node;
}

static bool clip_values(Making *m, const Gradients *all)
{
	Node most;
	if (!m->s->clip_value)
		return true;
	TRY(making_number(m, m->s->clip_value, &most));
	for (uint32_t k = 0; k < all->n; k++)
		all->g[k] = of_two(m, "minimum(maximum(x, -y), y)", all->g[k],
				   b_convert(&m->b, most, node_dtype(m->g, all->g[k])));
	return true;
}

/* Scales gradients as torch.nn.utils.clip_grad_norm_ does, and sets *norm to their norm. */
static bool clip_norm(Making *m, const Gradients *all, Node *norm)
{
	Node most, factor, *each = ARENA_ARRAY(m->ctx->scratch, Node, all->n);
	DType d = DT_f32;
	*norm = (Node){0};
	if (!m->s->clip_norm)
		return true;
	for (uint32_t k = 0; k < all->n; k++)
		if (node_dtype(m->g, all->g[k]) == DT_f64)
			d = DT_f64;
	for (uint32_t k = 0; k < all->n; k++) {
		const Node x = d == DT_f64 ? b_convert(&m->b, all->g[k], d) : all->g[k];
		each[k] = b_unsqueeze(
			&m->b, b_convert(&m->b, of_two(m, "linalg_vector_norm(x, 2)", x, x), d), 0);
	}
	const Node stacked = b_concat(&m->b, each, all->n, 0);
	*norm = of_two(m, "linalg_vector_norm(x, 2)", stacked, stacked);
	TRY(making_number(m, m->s->clip_norm, &most));
	factor = of_two(m, "clamp(y/(x + 1e-6), none, 1.0)", *norm, b_convert(&m->b, most, d));
	for (uint32_t k = 0; k < all->n; k++)
		all->g[k] = b_bin(&m->b, OP_mul, all->g[k],
				  b_convert(&m->b, factor, node_dtype(m->g, all->g[k])));
	return true;
}

/* ---- the graph ---- */

/* Whether all elements of a node are known to be 0. */
static bool is_zero(const Graph *g, Node n)
{
	Attr v;
	if (!node_splat(g, n, &v))
		return false;
	return v.kind == ATTR_float ? v.f == 0
				    : v.kind == ATTR_int && sym_is(graph_syms(g), v.s, 0);
}

/* Leaves parameters out of the step that have no influence on the loss: they are constants again.
 * Sets all->g[], in the order of groups. */
static Step reached(Graph *v, const Step *s, uint32_t first, Gradients *all)
{
	Arena *a = v->ir->ctx->arena;
	Step out = *s;
	Text names;
	uint32_t *place = ARENA_ARRAY(a, uint32_t, v->input.n + 1), at = first;
	bool *drop = arena_calloc(a, v->ir->constant.n, sizeof *drop);
	text_init(&names, v->ir->ctx->scratch);
	for (uint32_t k = 0; k < v->input.n; k++) {
		for (uint32_t j = 0; j < s->ngroup; j++)
			for (uint32_t i = 0; i < s->group[j].nparam; i++)
				if (v->input.data[k].kind != INPUT_USER &&
				    v->input.data[k].init.i == s->group[j].param[i].i)
					place[k] = at++;
	}
	out.group = ARENA_ARRAY(a, StepGroup, s->ngroup);
	out.ngroup = 0;
	all->g = ARENA_ARRAY(v->ir->ctx->scratch, Node, v->output.n);
	all->rows = arena_calloc(v->ir->ctx->scratch, v->output.n + 1, sizeof *all->rows);
	all->n = 0;
	for (uint32_t j = 0; j < s->ngroup; j++) {
		StepGroup g = s->group[j];
		g.param = ARENA_ARRAY(a, ConstId, g.nparam);
		g.nparam = 0;
		for (uint32_t i = 0; i < s->group[j].nparam; i++) {
			const ConstId c = s->group[j].param[i];
			const Node n = v->output.data[place[making_state_of(v, c)]].node;
			if (is_zero(v, n)) {
				drop[c.i] = true;
				text_printf(&names, "%s%s", names.n ? ", " : "",
					    ir_const_of(v->ir, c)->name);
				continue;
			}
			g.param[g.nparam++] = c;
			all->g[all->n++] = n;
		}
		if (g.nparam)
			out.group[out.ngroup++] = g;
	}
	while (v->output.n > first)
		graph_remove_output(v, v->output.n - 1);
	for (uint32_t k = v->input.n; k-- > 0;)
		if (v->input.data[k].kind == INPUT_PARAM && drop[v->input.data[k].init.i])
			graph_freeze_input(v, k);
	if (names.n)
		ctx_note(v->ir->ctx, v->ir->ctx->file,
			 "not trained, since the loss does not depend on them: %s", names.data);
	return out;
}

/* Returns the new value of an input: the old one where `skip` holds, if it is a node. */
static Node kept(Making *m, uint32_t input, Node value, Node skip)
{
	const Node old = m->g->input.data[input].node;
	return skip.i ? b_select(&m->b, skip, old, value) : value;
}

/* Returns what the model itself writes into an input: random numbers go on in any case. */
static Node own_value(Making *m, const GraphOutput *o)
{
	const bool random = !strcmp(m->g->input.data[o->writes].name, RANDOM_STATE);
	return kept(m, (uint32_t)o->writes, o->node, random ? (Node){0} : m->lost);
}

/* Puts the step's own outputs behind the model's, then new values of inputs. */
static void put_outputs(Making *m, Node norm)
{
	Graph *g = m->g;
	const uint32_t n = g->output.n;
	GraphOutput *all = arena_dup(m->ctx->scratch, g->output.data, n * sizeof *all);
	graph_clear_outputs(g);
	for (uint32_t k = 0; k < n; k++)
		if (all[k].writes < 0)
			graph_add_output(g, all[k].name, all[k].node, -1);
	if (norm.i)
		graph_add_output(g, "grad_norm", norm, -1);
	if (m->skip.i)
		graph_add_output(g, "skipped", m->skip, -1);
	for (uint32_t k = 0; k < n; k++)
		if (all[k].writes >= 0)
			graph_add_output(g, all[k].name, own_value(m, &all[k]), all[k].writes);
	for (uint32_t k = 0; k < m->write.n; k++) {
		const Write *w = &m->write.data[k];
		const Node value = kept(m, w->input, w->value, w->always ? (Node){0} : m->skip);
		graph_add_output(g, g->input.data[w->input].name, value, (int32_t)w->input);
	}
}

static bool update(Making *m, const Gradients *all)
{
	Node norm;
	TRY(find_skip(m, all) && clip_values(m, all) && clip_norm(m, all, &norm));
	for (uint32_t k = 0, at = 0; k < m->s->ngroup; at += m->s->group[k++].nparam)
		TRY(making_update(m, &m->s->group[k], all->g + at, all->rows + at));
	TRY(rescale(m));
	put_outputs(m, norm);
	graph_dce(m->g);
	return graph_verify(m->g);
}

/* ---- gradients of several batches ---- */

/* Returns the name of the state in which gradients of a parameter are added up. */
static const char *sum_name(Making *m, ConstId param)
{
	return arena_printf(m->ctx->arena, "grad.%s", ir_const_of(m->g->ir, param)->name);
}

/* Makes the graph one that adds its gradients, times the input "weight", to state. Sets sum[] to
 * the contents of that state, in the order of groups. */
static bool accumulate(Making *m, const Gradients *all, ConstId *sum)
{
	Node weight;
	TRY(making_number(m, &(StepNumber){.input = "weight"}, &weight));
	for (uint32_t k = 0, at = 0; k < m->s->ngroup; k++)
		for (uint32_t i = 0; i < m->s->group[k].nparam; i++, at++) {
			const ConstId param = m->s->group[k].param[i];
			const Const c = *ir_const_of(m->g->ir, param);
			Node state;
			TRY(making_add_state(m, sum_name(m, param), c.dtype, c.rank, c.dim, 0,
					     &state));
			const uint32_t input = making_input_of(m->g, state);
			sum[at] = m->g->input.data[input].init;
			const Node by = b_convert(&m->b, weight, c.dtype),
				   term = b_bin(&m->b, OP_mul, all->g[at], by);
			making_set(m, input, b_bin(&m->b, OP_add, state, term));
		}
	put_outputs(m, (Node){0});
	graph_dce(m->g);
	return graph_verify(m->g);
}

static Node state_input(Graph *g, ConstId c, InputKind kind)
{
	const Const of = *ir_const_of(g->ir, c);
	const Node n =
		graph_add_input(g, of.name, kind, ir_type_ints(g->ir, of.dtype, of.rank, of.dim));
	g->input.data[g->input.n - 1].init = c;
	return n;
}

/* Makes an empty graph one that updates the parameters by the sums of gradients, and sets these to
 * 0. */
static bool apply(Making *m, const ConstId *sum)
{
	const uint32_t most = m->g->ir->constant.n;
	Gradients all = {.g = ARENA_ARRAY(m->ctx->scratch, Node, most),
			 .rows = arena_calloc(m->ctx->scratch, most, sizeof *all.rows)};
	for (uint32_t k = 0; k < m->s->ngroup; k++)
		for (uint32_t i = 0; i < m->s->group[k].nparam; i++)
			state_input(m->g, m->s->group[k].param[i], INPUT_PARAM);
	for (uint32_t k = 0; k < m->s->ngroup; k++)
		for (uint32_t i = 0; i < m->s->group[k].nparam; i++) {
			const Node state = state_input(m->g, sum[all.n], INPUT_BUFFER);
			making_set_always(m, state, b_zeros(&m->b, node_type_id(m->g, state)));
			all.g[all.n++] = state;
		}
	return update(m, &all);
}

/* Makes m about the graph that applies sums of gradients. */
static void begin_apply(Making *m, Graph *g)
{
	const ConstId scale =
		m->scale.i ? m->g->input.data[making_input_of(m->g, m->scale)].init : (ConstId){0};
	m->g = m->b.g = g;
	m->write.n = m->nown = 0;
	m->lost = (Node){0};
	if (m->scale.i)
		m->scale = state_input(g, scale, INPUT_BUFFER);
}

bool transform_step(Graph *g, const Step *s, Graph **step, Graph **applies)
{
	uint32_t first, seed;
	Gradients all;
	Ctx *ctx = g->ir->ctx;
	TRY(make_parameters_state(g, s) && put_loss(g, &s->loss, s->outputs));
	name_outputs(g, 1);
	graph_dce(g);
	Graph *v = *step = gradients(g, s, &first, &seed);
	TRY(v);
	Making m = {.s = s, .ctx = ctx, .g = v, .b = {.g = v, .where = ctx->file}};
	TRY(set_seed(&m, seed));
	const Step left = reached(v, s, first, &all);
	if (!left.ngroup)
		return ctx_error(ctx, ctx->file,
				 "the loss depends on no parameter that is trained");
	m.s = &left;
	m.nown = v->input.n;
	TRY(find_rows(&m, &all, applies));
	unscale(&m, &all);
	if (s->skips)
		m.lost = skip_not_finite(&m.b, &v->output.data[0].node, 1);
	if (!applies)
		return update(&m, &all);
	ConstId *sum = ARENA_ARRAY(ctx->scratch, ConstId, all.n);
	TRY(accumulate(&m, &all, sum));
	begin_apply(&m, *applies = graph_beside(g, "apply"));
	return apply(&m, sum);
}

void transform_step_averages(Graph *g, const Graph *step)
{
	for (uint32_t k = 1; k < g->ir->constant.n; k++) {
		Const *c = &g->ir->constant.data[k];
		const char *name = arena_printf(g->ir->ctx->arena, "ema.%s", c->name);
		if (*c->name && making_input_named(step, name) >= 0)
			c->name = name;
	}
}

bool transform_step_evaluation(Graph *g, const StepLoss *l, bool rename)
{
	TRY(!l || put_loss(g, l, true));
	if (rename)
		name_outputs(g, l ? 1 : 0);
	for (uint32_t k = 0; k < g->output.n; k++)
		if (graph_output_is_state(g, k) &&
		    strcmp(g->output.data[k].name, RANDOM_STATE) != 0)
			return ctx_error(
				g->ir->ctx, g->ir->ctx->file,
				"the graph that evaluates writes %s: give a file of the "
				"model that was exported in evaluation mode (--eval-model)",
				g->output.data[k].name);
	graph_dce(g);
	return graph_verify(g);
}
