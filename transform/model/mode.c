/* Training and evaluation: what the modules of a model asked self.training about stands in an
 * argument of some operators (OpInfo.mode). Running statistics are constants in evaluation and
 * state in training, where a running_stats behind each normalisation computes the new ones. */
#include "transform/model/mode.h"

#include <string.h>

#include "ir/build/verify.h"
#include "ir/build/state.h"
#include "ir/op/op.h"
#include "ops/prim/random.h"
#include "ops/rules/running.h"

/* A statistic that training changes, and its value at the place that is looked at. */
typedef struct {
	Node input, now;
} Statistic;

/* A normalisation that begins to train, and what its statistics are constants of. */
typedef struct {
	Node n;
	ConstId mean, var;
} Beginner;

typedef struct {
	Ctx *ctx;
	Graph *g;
	bool train;
	const RandomSource *random;
	ARRAY(Beginner) beginner;
	ARRAY(Statistic) statistic;
	bool keyed_body; /* random numbers in a body have their key */
	bool begins;     /* something begins to train */
	Unclear unclear;
} ModeChange;

typedef bool VisitNode(ModeChange *, Graph *, Node);

/* Calls f for the nodes of a graph, and for those of their bodies behind each. */
static bool visit(ModeChange *s, Graph *g, VisitNode *f)
{
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		Graph *body;
		TRY(f(s, g, n));
		for (uint32_t k = 0; (body = node_next_body(g, n, &k));)
			TRY(visit(s, body, f));
	}
	return true;
}

static const Running *statistics_of(const Graph *g, Node n)
{
	const Running *r = running_of(op_name(node_op(g, n)));
	return r && r->flag ? r : NULL;
}

/* Whether the node's operator says whether it trains. Without running statistics a normalisation
 * does not: it takes those of its input in both modes. */
static bool has_mode(const Graph *g, Node n)
{
	const bool kept = op_arg_index(node_op(g, n), "running_mean") >= 0;
	return op_info(node_op(g, n))->mode &&
	       (!kept || (node_arg(g, n, "running_mean").i && node_arg(g, n, "running_var").i));
}

static bool trains(const Graph *g, Node n)
{
	const Attr *a = node_attr(g, n, op_info(node_op(g, n))->mode);
	return a->kind != ATTR_bool || a->b;
}

/* ---- what is possible ---- */

static bool is_state(const Graph *g, Node n, uint32_t *input)
{
	for (uint32_t k = 0; k < g->input.n; k++)
		if (g->input.data[k].node.i == n.i && g->input.data[k].kind != INPUT_USER) {
			*input = k;
			return true;
		}
	return false;
}

/* Returns the constant in which a statistic begins; 0 if the statistic is computed. */
static ConstId first_of(const Graph *g, Node n)
{
	uint32_t k;
	return node_const(g, n).i   ? node_const(g, n)
	       : is_state(g, n, &k) ? g->input.data[k].init
				    : (ConstId){0};
}

typedef ARRAY(ConstId) Counters;

static ConstId root_of(const Ir *ir, uint32_t c)
{
	const ConstId same = ir_const_of(ir, (ConstId){c})->same_as;
	return same.i ? same : (ConstId){c};
}

/* Whether the module (its name's first n bytes) has the constant in that buffer. */
static bool module_has(const Ir *ir, const char *module, size_t n, const char *buffer, ConstId c)
{
	for (uint32_t k = 1; k < ir->constant.n; k++) {
		const char *name = ir->constant.data[k].name;
		if (root_of(ir, k).i == c.i && !strncmp(name, module, n) &&
		    !strcmp(name + n, buffer))
			return true;
	}
	return false;
}

/* Finds "bn.num_batches_tracked" of "bn.running_mean" and "bn.running_var", which modules of
 * PyTorch count in training. Modules that share both have several. */
static Counters counters_of(const Ir *ir, ConstId mean, ConstId var)
{
	static const char end[] = "num_batches_tracked";
	Counters all = {0};
	for (uint32_t k = 1; k < ir->constant.n; k++) {
		const Const *c = &ir->constant.data[k];
		const size_t n = strlen(c->name), m = n < sizeof end - 1 ? 0 : n - (sizeof end - 1);
		const ConstId root = root_of(ir, k);
		bool is = c->dtype == DT_i64 && !c->rank && !strcmp(c->name + m, end);
		is = is && (!mean.i || module_has(ir, c->name, m, "running_mean", mean)) &&
		     (!var.i || module_has(ir, c->name, m, "running_var", var));
		for (uint32_t i = 0; is && i < all.n; i++)
			is = all.data[i].i != root.i;
		if (is)
			array_push(ir->ctx->scratch, &all, root);
	}
	return all;
}

static bool check_statistics(ModeChange *s, Graph *g, Node n, const Running *r)
{
	static const char *const name[] = {"running_mean", "running_var"};
	Ctx *ctx = s->ctx;
	if (g != s->g)
		return ctx_error(
			ctx, node_where(g, n),
			"running statistics in a body of another operator cannot be trained");
	for (uint32_t k = 0; k < 2; k++) {
		Node x = node_arg(g, n, name[k]);
		if (!first_of(g, x).i)
			return ctx_error(
				ctx, node_where(g, n),
				"%s is computed: expected a buffer, which training can change",
				name[k]);
		for (Node m = g->first; m.i != n.i; m = node_next(g, m))
			for (uint32_t i = 0; i < node_nin(g, m); i++)
				if (node_in(g, m, i).i == x.i &&
				    op_info(node_op(g, m))->view != VIEW_NONE)
					return ctx_error(ctx, node_where(g, m),
							 "a view of %s, which training changes: "
							 "export the model in training mode",
							 name[k]);
	}
	Counters c = {0};
	if (!r->instance)
		c = counters_of(g->ir, first_of(g, node_arg(g, n, name[0])),
				first_of(g, node_arg(g, n, name[1])));
	if (c.n > 1)
		return ctx_error(ctx, node_where(g, n),
				 "two modules share its running statistics, and the file does not "
				 "say which of "
				 "%s and %s counts this call: export the model in training mode",
				 ir_const_of(g->ir, c.data[0])->name,
				 ir_const_of(g->ir, c.data[1])->name);
	if (c.n && node_float(g, n, "momentum") == 0)
		return ctx_error(ctx, node_where(g, n),
				 "momentum is 0, which may stand for momentum=None, an average "
				 "over all batches: export "
				 "the model in training mode");
	return true;
}

/* Whether n is a dropout that does not train, which returns its operand itself. torch.export
 * then takes what reads the operand behind it for a reader of the result. With one reader there
 * is no doubt. */
static bool returns_operand(const Graph *g, Node n)
{
	return op_info(node_op(g, n))->view_if == VIEW_IF_IDLE && has_mode(g, n) && !trains(g, n);
}

static void look_for_unclear(ModeChange *s, Graph *g, Node n)
{
	if (g->exported && returns_operand(g, n) && node_nuses(g, n) > 1 && !s->unclear.n++)
		s->unclear.first = arena_strdup(s->ctx->arena, node_where(g, n));
}

static bool check(ModeChange *s, Graph *g, Node n)
{
	const Running *r = statistics_of(g, n);
	const OpInfo *info = op_info(node_op(g, n));
	if (!s->train && node_draws(g, n) && !info->mode)
		return ctx_error(s->ctx, node_where(g, n),
				 "%s draws random numbers and does not say whether only in "
				 "training: export the model in evaluation mode",
				 op_name(node_op(g, n)));
	s->keyed_body |= g != s->g && op_kind(node_op(g, n)) == OP_COMPOSITE &&
			 op_arg_index(node_op(g, n), "rng") >= 0 && node_arg(g, n, "rng").i;
	if (!s->train || !has_mode(g, n) || trains(g, n))
		return true;
	s->begins = true;
	look_for_unclear(s, g, n);
	return !r || check_statistics(s, g, n, r);
}

/* ---- inputs and outputs ---- */

static void shift_writes(Graph *g, uint32_t from, int32_t by)
{
	for (uint32_t k = 0; k < g->output.n; k++)
		if (g->output.data[k].writes >= (int32_t)from)
			g->output.data[k].writes += by;
}

/* Makes a constant state, in the order of the file, as the importer does. */
static Node add_state(Graph *g, ConstId c)
{
	Ir *ir = g->ir;
	const Const *of = ir_const_of(ir, c);
	uint32_t at = 0;
	while (at < g->input.n &&
	       (g->input.data[at].kind == INPUT_USER || g->input.data[at].init.i < c.i))
		at++;
	Node before = at < g->input.n ? g->input.data[at].node : graph_behind_inputs(g);
	Node n = graph_add(g, before, OP_input, NULL, 0, (AttrId){0},
			   ir_type_ints(ir, of->dtype, of->rank, of->dim), (LocId){0});
	graph_set_name(g, n, of->name);
	array_push(ir->ctx->arena, &g->input, (GraphInput){0});
	GraphInput *in = g->input.data;
	memmove(in + at + 1, in + at, (g->input.n - 1 - at) * sizeof *in);
	in[at] = (GraphInput){.node = n,
			      .kind = of->is_buffer ? INPUT_BUFFER : INPUT_PARAM,
			      .name = of->name,
			      .init = c};
	shift_writes(g, at, 1);
	for (Node m = g->first, next; m.i; m = next) {
		next = node_next(g, m);
		if (node_const(g, m).i != c.i)
			continue;
		graph_replace(g, m, n);
		graph_erase(g, m);
	}
	return n;
}

/* Returns the place of an output: those of the user come first, then state in the order of
 * inputs, then written inputs, and the source of random numbers. */
static uint32_t output_place(const Graph *g, const GraphOutput *o)
{
	if (o->writes < 0)
		return 0;
	const GraphInput *in = &g->input.data[o->writes];
	return in->kind == INPUT_USER ? g->input.n + 1 : (uint32_t)o->writes + 1;
}

static void sort_outputs(Graph *g)
{
	const uint32_t n = g->output.n;
	GraphOutput *all = arena_dup(g->ir->ctx->scratch, g->output.data, n * sizeof *all);
	graph_clear_outputs(g);
	for (uint32_t place = 0; place < g->input.n + 2; place++)
		for (uint32_t k = 0; k < n; k++)
			if (output_place(g, &all[k]) == place)
				graph_add_output(g, all[k].name, all[k].node, all[k].writes);
}

/* ---- to evaluation ---- */

static bool adds_one(const Graph *g, Node n)
{
	return node_op(g, n) == OP_aten_add_Scalar && node_attr(g, n, "other")->kind == ATTR_int &&
	       node_int(g, n, "other") == 1;
}

/* Makes a counter behind a normalisation that does not train what it was before. A model that
 * counts more than the calls of its modules does so in evaluation, too. */
static void uncount(Graph *g, Node value, Node input, uint32_t calls)
{
	uint32_t n = 0;
	for (Node v = value; v.i != input.i && ++n; v = node_in(g, v, 0))
		if (!adds_one(g, v))
			return;
	for (Node v = value, before; n <= calls && v.i != input.i; v = before) {
		before = node_in(g, v, 0);
		graph_replace(g, v, before);
	}
}

/* Makes state that keeps its value a constant. */
static void freeze_statistic(Graph *g, ConstId c)
{
	for (uint32_t k = 0; c.i && k < g->input.n; k++) {
		const GraphInput in = g->input.data[k];
		int32_t o = graph_writer(g, k);
		if (in.init.i != c.i || o < 0 || g->output.data[o].node.i != in.node.i)
			continue;
		graph_remove_output(g, (uint32_t)o);
		graph_freeze_input(g, k);
		return;
	}
}

static void freeze_counter(Graph *g, ConstId c, uint32_t calls)
{
	for (uint32_t k = 0; k < g->input.n; k++) {
		int32_t o = graph_writer(g, k);
		if (g->input.data[k].init.i == c.i && o >= 0)
			uncount(g, g->output.data[o].node, g->input.data[k].node, calls);
	}
	freeze_statistic(g, c);
}

static void drop_statistics(Graph *g)
{
	Counters stat = {0};
	Arena *a = g->ir->ctx->scratch;
	uint32_t *calls = ARENA_ARRAY(a, uint32_t, g->ir->constant.n); /* by counter */
	for (Node n = g->first, next; n.i; n = next) {
		next = node_next(g, n);
		if (node_op(g, n) != OP_running_stats)
			continue;
		Node old[2] = {node_arg(g, n, "mean"), node_arg(g, n, "var")}, get;
		for (uint32_t k = 0; k < 2; k++) {
			Use u = node_data(g, n)->first_use;
			while (old[k].i && (get = node_next_get(g, &u, k)).i)
				graph_replace(g, get, old[k]);
		}
		ConstId first[2] = {{0}};
		for (uint32_t k = 0; k < 2; k++)
			if (old[k].i) {
				first[k] = first_of(g, old[k]);
				array_push(a, &stat, first[k]);
			}
		Counters c = {0};
		if (!node_bool(g, n, "instance") && (first[0].i || first[1].i))
			c = counters_of(g->ir, first[0], first[1]);
		for (uint32_t k = 0; k < c.n; k++)
			calls[c.data[k].i]++;
	}
	for (uint32_t k = 0; k < stat.n; k++)
		freeze_statistic(g, stat.data[k]);
	for (uint32_t c = 1; c < g->ir->constant.n; c++)
		if (calls[c])
			freeze_counter(g, (ConstId){c}, calls[c]);
}

/* Removes the keys and streams of nodes that draw, which get them again, in program order. */
static void drop_keys(Graph *g)
{
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		uint32_t at;
		if (op_kind(node_op(g, n)) != OP_COMPOSITE ||
		    op_arg_index(node_op(g, n), "rng") < 0)
			continue;
		node_args(g, n, "rng", &at);
		if (at < node_nin(g, n))
			graph_set_operand(g, n, at, (Node){0});
		graph_set_attr(g, n, "stream", attr_int(g->ir, 0));
	}
	for (uint32_t k = 0; k < g->input.n; k++) {
		if (strcmp(g->input.data[k].name, RANDOM_STATE) != 0)
			continue;
		int32_t o = graph_writer(g, k);
		if (o >= 0)
			graph_remove_output(g, (uint32_t)o);
		graph_dce(g);
		graph_remove_input(g, k);
		return;
	}
}

/* ---- to training ---- */

static Statistic *statistic_at(ModeChange *s, ConstId c)
{
	Graph *g = s->g;
	for (uint32_t k = 0; k < s->statistic.n; k++) {
		uint32_t input;
		if (is_state(g, s->statistic.data[k].input, &input) &&
		    g->input.data[input].init.i == c.i)
			return &s->statistic.data[k];
	}
	Statistic t = {0};
	for (uint32_t k = 0; k < g->input.n && !t.input.i; k++)
		if (g->input.data[k].init.i == c.i && g->input.data[k].kind != INPUT_USER)
			t.input = g->input.data[k].node;
	if (!t.input.i)
		t.input = add_state(g, c);
	t.now = t.input;
	array_push(s->ctx->scratch, &s->statistic, t);
	return &s->statistic.data[s->statistic.n - 1];
}

/* Makes the readers behind `value` read it in place of the statistic. */
static void renew(ModeChange *s, Statistic *t, Node value)
{
	Graph *g = s->g;
	uint32_t input = 0;
	for (Node n = node_next(g, value); n.i; n = node_next(g, n))
		for (uint32_t k = 0; k < node_nin(g, n); k++)
			if (node_in(g, n, k).i == t->now.i)
				graph_set_operand(g, n, k, value);
	for (uint32_t k = 0; k < g->output.n; k++)
		if (g->output.data[k].node.i == t->now.i)
			graph_set_output(g, k, value);
	is_state(g, t->input, &input);
	if (graph_writer(g, input) < 0)
		graph_add_output(g, g->input.data[input].name, value, (int32_t)input);
	t->now = value;
}

static void count_batch(ModeChange *s, Node before, ConstId counter)
{
	Graph *g = s->g;
	Statistic *t = statistic_at(s, counter);
	Build b = {.g = g, .before = before, .loc = node_data(g, before)->loc};
	Attr attr[] = {attr_none(), attr_int(g->ir, 1)};
	Node n = b_call(&b, OP_aten_add_Scalar, &t->now, 1, attr, 2);
	graph_set_name(g, n, "add_");
	renew(s, t, n);
}

/* Adds what the importer makes of a normalisation that trains. */
static void add_statistics(ModeChange *s, const Beginner *beginner)
{
	const Node n = beginner->n;
	Graph *g = s->g;
	const Running *r = statistics_of(g, n);
	const ConstId mean = beginner->mean, var = beginner->var;
	Counters counter = {0};
	if (!r->instance)
		counter = counters_of(g->ir, mean, var);
	statistic_at(s, mean);
	statistic_at(s, var);
	if (counter.n)
		count_batch(s, n, counter.data[0]);
	Build b = {.g = g, .before = node_next(g, n), .loc = node_data(g, n)->loc};
	Node x = node_arg(g, n, "input"),
	     now[2] = {statistic_at(s, mean)->now, statistic_at(s, var)->now};
	Node both = b_running_stats(&b, r, x, now[0], now[1], node_float(g, n, "momentum"));
	Node new[2] = {b_get(&b, both, 0), b_get(&b, both, 1)};
	renew(s, statistic_at(s, mean), new[0]);
	renew(s, statistic_at(s, var), new[1]);
}

static bool is_empty(const Graph *g, Node n)
{
	return sym_is(graph_syms(g), type_numel(g->ir, node_type_id(g, n)), 0);
}

static bool switch_mode(ModeChange *s, Graph *g, Node n)
{
	if (!has_mode(g, n) || trains(g, n) == s->train)
		return true;
	const Running *r = statistics_of(g, n);
	graph_set_attr(g, n, op_info(node_op(g, n))->mode, attr_bool(s->train));
	if (s->train && r && !(r->some && is_empty(g, node_arg(g, n, "input"))))
		array_push(s->ctx->scratch, &s->beginner,
			   ((Beginner){n, first_of(g, node_arg(g, n, "running_mean")),
				       first_of(g, node_arg(g, n, "running_var"))}));
	return true;
}

/* ---- the graph ---- */

static bool set_mode(ModeChange *s)
{
	TRY(visit(s, s->g, check));
	if (s->keyed_body && s->begins)
		return ctx_error(s->ctx, s->ctx->file,
				 "random numbers in a body have their places in the order already: "
				 "load the model again");
	TRY(visit(s, s->g, switch_mode));
	if (!s->keyed_body)
		drop_keys(s->g);
	if (!s->train)
		drop_statistics(s->g);
	for (uint32_t k = 0; k < s->beginner.n; k++)
		add_statistics(s, &s->beginner.data[k]);
	sort_outputs(s->g);
	graph_dce(s->g);
	return random_attach(s->g, s->random) && graph_verify(s->g);
}

bool transform_mode(Graph *g, bool train, const RandomSource *random, Unclear *unclear)
{
	ModeChange s = {.ctx = g->ir->ctx, .g = g, .train = train, .random = random}, copy = s;
	copy.g = graph_clone(g);
	TRY(set_mode(&copy) && set_mode(&s));
	*unclear = s.unclear;
	return true;
}
