/* What a step is about: texts become optimisers, numbers, losses and groups of parameters. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "ir/op/op.h"
#include "transform/step/skip.h"
#include "transform/step/spec.h"
#include "transform/step/step.h"

typedef struct {
	const Graph *g;
	Ctx *ctx;
	const StepTexts *texts;
	bool onnx;
	bool *read;   /* by ConstId: the graph reads it, as a constant or as state */
	bool *inner;  /* by ConstId: a body reads it */
	bool *bias;   /* by ConstId: what ONNX's layers add to a product */
	bool *moving; /* by ConstId: statistics of a normalisation that evaluates */
	bool *table;  /* by ConstId: an embedding of the file has a sparse gradient */
	Step *out;
} Choosing;

/* ---- what the graph reads ---- */

static void note_moving(Choosing *c, const Graph *g, Node n)
{
	static const char *const name[] = {"input_mean", "input_var", "running_mean",
					   "running_var"};
	for (uint32_t k = 0; k < sizeof name / sizeof *name; k++)
		if (op_arg_index(node_op(g, n), name[k]) >= 0) {
			const Node x = node_arg(g, n, name[k]);
			c->moving[x.i ? node_const(g, x).i : 0] = true;
		}
}

/* Marks the tables of embeddings with sparse=True. */
static void note_table(Choosing *c, const Graph *g, Node n)
{
	if (op_arg_index(node_op(g, n), "sparse") < 0 || !node_bool(g, n, "sparse"))
		return;
	const Node x = node_arg(g, n, "weight");
	c->table[x.i ? node_const(g, x).i : 0] = true;
}

static bool is_onnx_op(const Graph *g, Node n, const char *name)
{
	const size_t length = strlen(name);
	return !strncmp(op_name(node_op(g, n)), name, length) &&
	       op_name(node_op(g, n))[length] == '.';
}

/* Marks the constants that a layer of ONNX adds to a product. */
static void note_bias(Choosing *c, const Graph *g, Node n)
{
	static const struct {
		const char *op, *arg;
	} all[] = {{"onnx.Gemm", "C"}, {"onnx.Conv", "B"}, {"onnx.ConvTranspose", "B"}};
	if (!c->onnx)
		return;
	for (uint32_t k = 0; k < sizeof all / sizeof *all; k++)
		if (is_onnx_op(g, n, all[k].op) && op_arg_index(node_op(g, n), all[k].arg) >= 0) {
			const Node x = node_arg(g, n, all[k].arg);
			c->bias[x.i ? node_const(g, x).i : 0] = true;
		}
	for (uint32_t k = 0; k < 2 && is_onnx_op(g, n, "onnx.Add"); k++)
		if (is_onnx_op(g, node_in(g, n, 1 - k), "onnx.MatMul"))
			c->bias[node_const(g, node_in(g, n, k)).i] = true;
}

static void note_constants(Choosing *c, const Graph *g, bool *to)
{
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		const Graph *body;
		for (uint32_t k = 0; (body = node_next_body(g, n, &k));)
			note_constants(c, body, c->inner);
		to[node_const(g, n).i] = true;
		note_moving(c, g, n);
		note_table(c, g, n);
		note_bias(c, g, n);
	}
}

static bool has_several(const Const *of)
{
	int64_t n = 1;
	for (uint32_t k = 0; k < of->rank; k++)
		n *= of->dim[k];
	return n > 1;
}

/* Whether the constant is a tensor of the model that may be trained: one that is read, under its
 * first name. */
static bool is_parameter(const Choosing *c, uint32_t k)
{
	const Const *of = &c->g->ir->constant.data[k];
	return (c->read[k] || c->inner[k]) && of->is_param && !of->is_buffer && !of->same_as.i &&
	       *of->name;
}

/* Whether the constant is trained where nobody says what is. */
static bool is_trained(const Choosing *c, uint32_t k)
{
	const Const *of = &c->g->ir->constant.data[k];
	return is_parameter(c, k) && dtype_is_float(of->dtype) && !of->frozen &&
	       (!c->onnx || ((has_several(of) || (of->rank && c->bias[k])) && !c->moving[k]));
}

/* ---- patterns ---- */

/* Whether the pattern is about the constant, by one of its names. */
static bool is_named(const Ir *ir, uint32_t k, const char *pattern)
{
	for (uint32_t i = 1; i < ir->constant.n; i++)
		if ((i == k || ir->constant.data[i].same_as.i == k) &&
		    spec_matches(pattern, ir->constant.data[i].name))
			return true;
	return false;
}

static const char *name_hint(const Choosing *c, const char *name)
{
	Nearest near = {.word = name, .most = nearest_most(strlen(name))};
	for (uint32_t k = 1; k < c->g->ir->constant.n; k++)
		if (is_parameter(c, k))
			nearest_offer(&near, c->g->ir->constant.data[k].name);
	return nearest_hint(c->ctx->arena, &near);
}

/* Marks what a pattern is about. Refuses one that is about nothing, and one that names what cannot
 * be trained. */
static bool mark(const Choosing *c, const char *pattern, bool *to)
{
	const Ir *ir = c->g->ir;
	const bool one = !strpbrk(pattern, "*?");
	bool any = false;
	for (uint32_t k = 1; k < ir->constant.n; k++) {
		const Const *of = &ir->constant.data[k];
		if (!is_parameter(c, k) || !is_named(ir, k, pattern))
			continue;
		if (!dtype_is_float(of->dtype)) {
			if (one)
				return ctx_error(c->ctx, c->ctx->file,
						 "%s is %s, which cannot be trained: expected "
						 "floats",
						 of->name, dtype_name(of->dtype));
			continue;
		}
		to[k] = any = true;
	}
	return any || ctx_error(c->ctx, c->ctx->file, "no parameter is called %s%s", pattern,
				name_hint(c, pattern));
}

static bool mark_all(const Choosing *c, const char *const *pattern, uint32_t n, bool *to)
{
	for (uint32_t k = 0; k < n; k++)
		TRY(mark(c, pattern[k], to));
	return true;
}

/* ---- numbers ---- */

static const char *formula_names(Ctx *ctx, const Formula *(*at)(uint32_t))
{
	Text all;
	text_init(&all, ctx->scratch);
	for (uint32_t k = 0; at(k); k++)
		text_printf(&all, "%s%s", k ? ", " : "", at(k)->name);
	return all.data;
}

static const Formula *find_formula(const Formula *(*at)(uint32_t), const char *name)
{
	for (uint32_t k = 0; at(k); k++)
		if (!strcmp(at(k)->name, name))
			return at(k);
	return NULL;
}

/* Sets the numbers of a formula from arguments, from number `first` on those without a key. A key
 * `except` is somebody else's. */
static bool read_numbers(Ctx *ctx, const char *what, const Formula *f, const Spec *s,
			 const char *except, double *out)
{
	const OptimList list = optim_list(ctx->scratch, f->numbers);
	bool given[OPTIM_MAX_ITEMS] = {false};
	uint32_t next = 0;
	for (uint32_t k = 0; k < list.n; k++)
		out[k] = strtod(list.item[k].value, NULL);
	for (uint32_t k = 0; k < s->narg; k++) {
		const SpecArg *a = &s->arg[k];
		if (a->key && except && !strcmp(a->key, except))
			continue;
		const int at = a->key ? optim_item(&list, a->key) : (int)next++;
		if (at < 0 || (uint32_t)at >= list.n)
			return ctx_error(ctx, what, "%s has no number %s: there are %s", f->name,
					 a->key ? a->key : "more",
					 *f->numbers ? f->numbers : "none");
		if (a->word)
			return ctx_error(ctx, what, "%s: %s is a number, not %s", f->name,
					 list.item[at].name, a->word->name);
		out[at] = a->number;
		given[at] = true;
	}
	for (uint32_t k = 0; k < list.n; k++)
		if (!given[k] && !*list.item[k].value)
			return ctx_error(ctx, what, "%s needs %s", f->name, list.item[k].name);
	return true;
}

/* Refuses numbers of a schedule with which it is no number. */
static bool check_schedule(Ctx *ctx, const char *what, const StepNumber *n)
{
	const Formula *f = n->schedule;
	const OptimList list = optim_list(ctx->scratch, f->numbers);
	const int steps = optim_item(&list, "steps"), warmup = optim_item(&list, "warmup"),
		  every = optim_item(&list, "every");
	for (uint32_t k = 0; k < list.n; k++)
		if (!isfinite(n->argument[k]) || n->argument[k] < 0)
			return ctx_error(ctx, what, "%s: %s=%g: expected a number from 0 on",
					 f->name, list.item[k].name, n->argument[k]);
	if (steps >= 0 && n->argument[steps] <= n->argument[warmup])
		return ctx_error(ctx, what, "%s: the warmup of %g steps takes all of the %g steps",
				 f->name, n->argument[warmup], n->argument[steps]);
	return every < 0 || n->argument[every] >= 1 ||
	       ctx_error(ctx, what, "%s: every=%g: expected a number of steps", f->name,
			 n->argument[every]);
}

/* Reads a number of a step: itself, `input`, or a schedule. name: of the input. */
static bool read_number(const Choosing *c, const char *what, const SpecArg *a, const char *name,
			StepNumber *out)
{
	*out = (StepNumber){.number = a->number};
	if (!a->word)
		return isfinite(a->number) ||
		       ctx_error(c->ctx, what, "%s: expected a finite number", name);
	if (!strcmp(a->word->name, "input") && !a->word->narg) {
		out->input = name;
		return true;
	}
	out->schedule = find_formula(schedule_at, a->word->name);
	return out->schedule
		       ? read_numbers(c->ctx, what, out->schedule, a->word, NULL, out->argument) &&
				 check_schedule(c->ctx, what, out)
		       : ctx_error(c->ctx, what,
				   "%s is a number, input, or one of the schedules %s, not "
				   "%s",
				   name, formula_names(c->ctx, schedule_at), a->word->name);
}

/* ---- optimisers ---- */

static const char *optimizer_names(Ctx *ctx)
{
	Text all;
	text_init(&all, ctx->scratch);
	for (uint32_t k = 0; optim_at(k); k++)
		text_printf(&all, "%s%s", k ? ", " : "", optim_at(k)->name);
	return all.data;
}

static const char *item_names(Ctx *ctx, const OptimList *a, const OptimList *b)
{
	Text all;
	text_init(&all, ctx->scratch);
	for (uint32_t k = 0; k < a->n + b->n; k++)
		text_printf(&all, "%s%s", k ? ", " : "",
			    k < a->n ? a->item[k].name : b->item[k - a->n].name);
	return all.data;
}

/* Sets *out to what an argument says: true or false. */
static bool read_flag(const Choosing *c, const char *what, const SpecArg *a, bool *out)
{
	const bool yes = a->word ? !strcmp(a->word->name, "true") : a->number == 1,
		   no = a->word ? !strcmp(a->word->name, "false") : a->number == 0;
	*out = yes;
	return yes || no || ctx_error(c->ctx, what, "%s is true or false", a->key);
}

/* Sets what arguments say of an optimiser; said[]: by flag. */
static bool read_options(const Choosing *c, const char *what, const Spec *s, StepGroup *g,
			 bool *said)
{
	const OptimList scalars = optim_list(c->ctx->scratch, g->of->scalars),
			flags = optim_list(c->ctx->scratch, g->of->flags);
	for (uint32_t k = 0; k < s->narg; k++) {
		const SpecArg *a = &s->arg[k];
		const int scalar = a->key ? optim_item(&scalars, a->key) : -1,
			  flag = a->key ? optim_item(&flags, a->key) : -1;
		if (scalar >= 0) {
			const char *name =
				g->text ? arena_printf(c->ctx->arena, "%s.%u", a->key, g->number)
					: a->key;
			TRY(read_number(c, what, a, name, &g->scalar[scalar]));
		} else if (flag >= 0) {
			TRY(read_flag(c, what, a, &g->flag[flag]));
			said[flag] = true;
		} else if (a->key && !strcmp(a->key, "sparse")) {
			TRY(read_flag(c, what, a, &g->sparse));
		} else {
			return ctx_error(c->ctx, what, "%s has no option %s: there are %s",
					 g->of->name, a->key ? a->key : "without a name",
					 item_names(c->ctx, &scalars, &flags));
		}
	}
	return true;
}

/* Reads "sgd(lr=0.1)" into a group, on defaults. */
static bool read_optimizer(const Choosing *c, const char *what, const Spec *s, StepGroup *g,
			   bool *said)
{
	g->of = optim_find(s->name);
	if (!g->of)
		return ctx_error(c->ctx, what, "there is no optimiser %s: there are %s", s->name,
				 optimizer_names(c->ctx));
	const OptimList scalars = optim_list(c->ctx->scratch, g->of->scalars);
	memset(said, 0, OPTIM_MAX_ITEMS * sizeof *said);
	memset(g->flag, 0, sizeof g->flag);
	for (uint32_t k = 0; k < scalars.n; k++)
		g->scalar[k] = (StepNumber){.number = strtod(scalars.item[k].value, NULL)};
	return read_options(c, what, s, g, said);
}

static void set_flags(Ctx *ctx, StepGroup *g, const bool *said)
{
	const OptimList scalars = optim_list(ctx->scratch, g->of->scalars),
			flags = optim_list(ctx->scratch, g->of->flags);
	bool is[OPTIM_MAX_ITEMS] = {false};
	for (uint32_t k = 0; k < scalars.n; k++)
		is[k] = g->scalar[k].input || g->scalar[k].schedule || g->scalar[k].number != 0;
	for (uint32_t k = 0; k < flags.n; k++)
		if (!said[k])
			g->flag[k] = optim_flag(&scalars, &flags.item[k], is);
}

/* ---- groups ---- */

/* Reads "PATTERN,PATTERN: key=value, optimizer=sgd(lr=0.1)". */
static bool read_group(const Choosing *c, const char *text, const StepGroup *base,
		       const bool *base_said, StepGroup *g, bool *named)
{
	static const char what[] = "--group";
	Ctx *ctx = c->ctx;
	bool said[OPTIM_MAX_ITEMS];
	const char *colon = strchr(text, ':');
	if (!colon)
		return ctx_error(ctx, what, "\"%s\": expected PATTERNS: KEY=VALUE", text);
	uint32_t n;
	const char *const *pattern = spec_list(ctx->arena, text, (size_t)(colon - text), &n);
	if (!n)
		return ctx_error(ctx, what, "\"%s\": a pattern is missing", text);
	TRY(mark_all(c, pattern, n, named));
	Spec *s = spec_read_args(ctx, what, colon + 1);
	TRY(s);
	memcpy(g->scalar, base->scalar, sizeof g->scalar);
	memcpy(g->flag, base->flag, sizeof g->flag);
	memcpy(said, base_said, sizeof said);
	g->of = base->of;
	g->sparse = base->sparse;
	for (uint32_t k = 0; k < s->narg; k++) {
		if (strcmp(s->arg[k].key, "optimizer") != 0)
			continue;
		if (!s->arg[k].word)
			return ctx_error(ctx, what, "\"%s\": optimizer is a name", text);
		TRY(read_optimizer(c, what, s->arg[k].word, g, said));
		memmove(&s->arg[k], &s->arg[k + 1], (s->narg - k - 1) * sizeof *s->arg);
		s->narg--;
		break;
	}
	TRY(read_options(c, what, s, g, said));
	set_flags(ctx, g, said);
	return true;
}

/* Lists the constants that cannot be state. Returns whether there are none. */
static bool check_places(const Choosing *c, const bool *trained)
{
	const Ir *ir = c->g->ir;
	Text inner, part;
	text_init(&inner, c->ctx->scratch);
	text_init(&part, c->ctx->scratch);
	for (uint32_t k = 1; k < ir->constant.n; k++) {
		const Const *of = &ir->constant.data[k];
		if (trained[k] && c->inner[k])
			text_printf(&inner, "%s%s", inner.n ? ", " : "", of->name);
		if (trained[k] && of->holder.i && trained[of->holder.i])
			text_printf(&part, "%s%s", part.n ? ", " : "", of->name);
	}
	if (inner.n)
		ctx_error(
			c->ctx, c->ctx->file,
			"a branch or a loop reads %s as constants, which cannot be trained there: "
			"leave them out (--trainable)",
			inner.data);
	if (part.n)
		ctx_error(c->ctx, c->ctx->file,
			  "%s lie in the memory of other parameters that are trained: leave one of "
			  "them out (--trainable)",
			  part.data);
	return !inner.n && !part.n;
}

/* Records a warning of constants with several readers: exporters of ONNX store equal tensors once,
 * so that biases of zeros are one parameter. */
static void warn_shared(const Choosing *c, const bool *trained)
{
	const Graph *g = c->g;
	Text names;
	text_init(&names, c->ctx->scratch);
	uint32_t *readers = arena_calloc(c->ctx->scratch, g->ir->constant.n, sizeof *readers);
	for (Node n = g->first; n.i; n = node_next(g, n))
		readers[node_const(g, n).i] += node_nuses(g, n);
	for (uint32_t k = 1; k < g->ir->constant.n; k++)
		if (trained[k] && readers[k] > 1)
			text_printf(&names, "%s%s", names.n ? ", " : "",
				    g->ir->constant.data[k].name);
	if (c->onnx && names.n)
		ctx_warn(
			c->ctx, c->ctx->file,
			"several operators read %s, each trained as one parameter: exporters store "
			"tensors once that are equal when the file is written",
			names.data);
}

/* Returns the first scalar that is not 0 and must be where only rows are updated; NULL: all are 0,
 * as far as the optimiser updates rows at all. */
static const char *scalar_against_rows(const Choosing *c, const StepGroup *g)
{
	const OptimList scalars = optim_list(c->ctx->scratch, g->of->scalars),
			zero = optim_list(c->ctx->scratch, g->of->rows ? g->of->rows : "");
	for (uint32_t k = 0; k < zero.n; k++) {
		const StepNumber *n = &g->scalar[optim_item(&scalars, zero.item[k].name)];
		if (n->input || n->schedule || n->number != 0)
			return zero.item[k].name;
	}
	return NULL;
}

/* Gives a group its parameters, and says of which only rows are updated. */
static bool fill(const Choosing *c, StepGroup *g, const bool *of)
{
	const uint32_t n = c->g->ir->constant.n;
	const char *against = scalar_against_rows(c, g);
	const bool must = g->sparse || g->of->lazy, may = g->of->rows && !against;
	RowsAsked *rows = arena_calloc(c->ctx->arena, n, sizeof *rows);
	if (g->sparse && !g->of->rows)
		return ctx_error(c->ctx, c->ctx->file,
				 "sparse: %s changes rows that have no gradient, too", g->of->name);
	if (g->sparse && against)
		return ctx_error(c->ctx, c->ctx->file,
				 "sparse: %s is not 0, so that rows change that have no gradient",
				 against);
	g->param = ARENA_ARRAY(c->ctx->arena, ConstId, n);
	g->rows = rows;
	for (uint32_t k = 1; k < n; k++) {
		if (!of[k])
			continue;
		g->param[g->nparam++] = (ConstId){k};
		rows[k] = must ? ROWS_MUST : may && c->table[k] ? ROWS_MAY : ROWS_ALL;
	}
	return true;
}

static bool choose_groups(Choosing *c)
{
	const StepTexts *t = c->texts;
	Arena *a = c->ctx->scratch;
	const uint32_t n = c->g->ir->constant.n;
	bool said[OPTIM_MAX_ITEMS], *trained = arena_calloc(a, n, sizeof *trained), any = false;
	for (uint32_t k = 0; k < t->ntrainable; k++) {
		uint32_t count;
		const char *const *pattern =
			spec_list(a, t->trainable[k], strlen(t->trainable[k]), &count);
		TRY(mark_all(c, pattern, count, trained));
	}
	for (uint32_t k = 1; k < n; k++) {
		trained[k] = t->ntrainable ? trained[k] : is_trained(c, k);
		any |= trained[k];
	}
	if (!any)
		return ctx_error(c->ctx, c->ctx->file,
				 "the model has no parameter that is trained");
	TRY(check_places(c, trained));
	warn_shared(c, trained);
	StepGroup *all = arena_calloc(c->ctx->arena, t->ngroup + 1, sizeof *all);
	const Spec *s = spec_read(c->ctx, "--train", t->optimizer);
	TRY(s && read_optimizer(c, "--train", s, &all[0], said));
	for (uint32_t k = 0; k < t->ngroup; k++) {
		bool *named = arena_calloc(a, n, sizeof *named);
		StepGroup *g = &all[k + 1];
		g->number = k + 1;
		g->text = t->group[k];
		TRY(read_group(c, t->group[k], &all[0], said, g, named));
		for (uint32_t i = 1; i < n; i++) { /* the first group that names it has it */
			named[i] &= trained[i];
			trained[i] &= !named[i];
		}
		TRY(fill(c, g, named));
	}
	set_flags(c->ctx, &all[0], said);
	TRY(fill(c, &all[0], trained));
	c->out->group = all;
	for (uint32_t k = 0; k <= t->ngroup; k++)
		if (all[k].nparam)
			all[c->out->ngroup++] = all[k];
	return true;
}

/* ---- the loss, clipping ---- */

/* Sets *out to the number of an output. */
static bool read_place(const Choosing *c, double number, uint32_t *out)
{
	uint32_t n = 0;
	for (uint32_t k = 0; k < c->g->output.n; k++)
		n += c->g->output.data[k].writes < 0;
	if (!(number >= 0 && number < n && number == floor(number)))
		return ctx_error(c->ctx, "--loss", "there is no output %g: the model has %u",
				 number, n);
	*out = (uint32_t)number;
	return true;
}

static bool choose_loss(const Choosing *c)
{
	static const char what[] = "--loss";
	const char *text = c->texts->loss;
	StepLoss *l = &c->out->loss;
	SpecArg place;
	if (!strncmp(text, "output:", 7))
		return spec_read_value(c->ctx, what, text + 7, &place) &&
		       read_place(c, place.word ? -1 : place.number, &l->output);
	const Spec *s = spec_read(c->ctx, what, text);
	TRY(s);
	l->of = find_formula(loss_at, s->name);
	if (!l->of)
		return ctx_error(c->ctx, what, "there is no loss %s: there are output:K, %s",
				 s->name, formula_names(c->ctx, loss_at));
	double output = 0;
	for (uint32_t k = 0; k < s->narg; k++)
		if (s->arg[k].key && !strcmp(s->arg[k].key, "output"))
			output = s->arg[k].word ? -1 : s->arg[k].number;
	return read_place(c, output, &l->output) &&
	       read_numbers(c->ctx, what, l->of, s, "output", l->number);
}

static bool choose_clip(const Choosing *c, const char *what, const char *name, const char *text,
			const StepNumber **out)
{
	SpecArg a;
	if (!text)
		return true;
	StepNumber *n = ARENA_NEW(c->ctx->arena, StepNumber);
	TRY(spec_read_value(c->ctx, what, text, &a) && read_number(c, what, &a, name, n));
	*out = n;
	return n->input || n->schedule || n->number > 0 ||
	       ctx_error(c->ctx, what, "%s: expected a number above 0", text);
}

/* Whether the graph is of ONNX, whose files do not say what is trained. */
static bool is_onnx(const Graph *g)
{
	for (Node n = g->first; n.i; n = node_next(g, n))
		if (!strncmp(op_name(node_op(g, n)), "onnx.", 5))
			return true;
	return false;
}

static bool choose_ema(const Choosing *c)
{
	static const char what[] = "--ema";
	TRY(choose_clip(c, what, "ema", c->texts->ema, &c->out->ema));
	const StepNumber *n = c->out->ema;
	return !n || n->input || n->schedule || n->number < 1 ||
	       ctx_error(c->ctx, what, "%s: expected a number below 1", c->texts->ema);
}

static bool choose_scale(const Choosing *c)
{
	static const char what[] = "--loss-scale";
	const Formula *dynamic = skip_scale();
	Step *out = c->out;
	if (!c->texts->loss_scale)
		return true;
	const Spec *s = spec_read(c->ctx, what, c->texts->loss_scale);
	TRY(s);
	if (strcmp(s->name, dynamic->name) != 0)
		return ctx_error(c->ctx, what, "expected %s(%s), not %s", dynamic->name,
				 dynamic->numbers, s->name);
	TRY(read_numbers(c->ctx, what, dynamic, s, NULL, out->scale));
	out->skips = out->scaled = true;
	for (uint32_t k = 0; k < 4; k++)
		if (!(out->scale[k] > 0 && isfinite(out->scale[k])))
			return ctx_error(c->ctx, what, "\"%s\": expected numbers above 0",
					 c->texts->loss_scale);
	return (out->scale[3] == floor(out->scale[3]) && out->scale[3] < 1e9) ||
	       ctx_error(c->ctx, what, "every is a number of steps, not %g", out->scale[3]);
}

bool transform_step_read(const Graph *g, const StepTexts *texts, Step *out)
{
	Ctx *ctx = g->ir->ctx;
	const uint32_t n = g->ir->constant.n;
	Choosing c = {.g = g,
		      .ctx = ctx,
		      .texts = texts,
		      .onnx = is_onnx(g),
		      .read = arena_calloc(ctx->scratch, n, sizeof(bool)),
		      .inner = arena_calloc(ctx->scratch, n, sizeof(bool)),
		      .bias = arena_calloc(ctx->scratch, n, sizeof(bool)),
		      .moving = arena_calloc(ctx->scratch, n, sizeof(bool)),
		      .table = arena_calloc(ctx->scratch, n, sizeof(bool)),
		      .out = out};
	*out = (Step){.outputs = texts->outputs, .skips = texts->skips};
	note_constants(&c, g, c.read);
	for (uint32_t k = 0; k < g->input.n; k++)
		c.read[g->input.data[k].init.i] |= g->input.data[k].kind == INPUT_PARAM;
	c.read[0] = c.inner[0] = false;
	return choose_loss(&c) && choose_groups(&c) && choose_ema(&c) && choose_scale(&c) &&
	       choose_clip(&c, "--clip-norm", "clip_norm", texts->clip_norm, &out->clip_norm) &&
	       choose_clip(&c, "--clip-value", "clip_value", texts->clip_value, &out->clip_value);
}
