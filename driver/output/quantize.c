/* Weights of few bits, behind the API: which kind each weight gets, the errors that this makes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/nearest.h"
#include "driver/api/given.h"
#include "driver/output/samples.h"
#include "ir/build/verify.h"
#include "ir/op/op.h"
#include "transform/quantize/quantize.h"

static const char here[] = "weft_quantize";

enum { DEFAULT_GROUP = 32, LARGEST_GROUP = 128 };

static const WeightKind kinds[] = {[WEFT_WEIGHT_INT8] = WEIGHT_INT8,
				   [WEFT_WEIGHT_INT4] = WEIGHT_INT4,
				   [WEFT_WEIGHT_BF16] = WEIGHT_BF16,
				   [WEFT_WEIGHT_FLOAT] = WEIGHT_FLOAT};
static const char *const kind_names[] = {[WEIGHT_FLOAT] = "float",
					 [WEIGHT_BF16] = "bf16",
					 [WEIGHT_INT8] = "int8",
					 [WEIGHT_INT4] = "int4"};
enum { NKIND = sizeof kind_names / sizeof *kind_names };

/* A rule "NAME:KIND". */
typedef struct {
	const char *text, *name; /* the whole rule, NAME */
	WeightKind kind;
	bool used;
} KeepRule;

typedef struct {
	Weft *w;
	WeftGraph *g;
	WeftQuantizeOptions o;
	int64_t group;
	KeepRule *rule;
	FoundWeights found;
	WeightKind *kind;       /* by weight */
	const char **why;       /* by weight: why it is of another kind than was asked for, or "" */
	double **importance;    /* by weight: of each term; NULL: none is known */
	RoundedWeight *rounded; /* by weight */
	uint32_t nrounded;      /* how many are not WEIGHT_FLOAT */
	Samples samples;
	Callee model; /* the one that was not quantised */
	Callee small; /* one that was */
	WeftQuantizeReport report;
} Quantizing;

static void progress(const Quantizing *q, const char *phase, uint32_t done, uint32_t total)
{
	if (q->o.progress)
		q->o.progress(q->o.progress_user, phase, done, total);
}

static const Const *const_of(const Quantizing *q, uint32_t k)
{
	return ir_const_of(q->g->g->ir, q->found.weight.data[k].of);
}

static bool is_static(const Quantizing *q)
{
	return q->o.activations == WEFT_QUANTIZE_STATIC;
}

/* ---- rules ---- */

/* Whether a text fits a pattern, in which * stands for any text. */
static bool fits(const char *pattern, const char *text)
{
	for (; *pattern && *pattern != '*'; pattern++, text++)
		if (*pattern != *text)
			return false;
	if (!*pattern)
		return !*text;
	do
		if (fits(pattern + 1, text))
			return true;
	while (*text++);
	return false;
}

/* Whether a rule is about a name: it fits all of it, or what stands in front of one of its dots. */
static bool is_about(const KeepRule *r, const char *name)
{
	char module[512];
	for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) {
		const size_t n = (size_t)(dot - name);
		if (n >= sizeof module)
			break;
		memcpy(module, name, n);
		module[n] = 0;
		if (fits(r->name, module))
			return true;
	}
	return fits(r->name, name);
}

static bool read_rule(Quantizing *q, const char *text, KeepRule *out)
{
	Ctx *ctx = q->w->ctx;
	const char *colon = strrchr(text, ':');
	*out = (KeepRule){.text = text};
	for (uint32_t k = 0; colon && colon > text && k < NKIND; k++)
		if (!strcmp(colon + 1, kind_names[k])) {
			out->name = arena_strndup(ctx->arena, text, (size_t)(colon - text));
			out->kind = (WeightKind)k;
			return true;
		}
	return ctx_error(
		ctx, here,
		"the rule \"%s\" is not NAME:KIND, where KIND is int8, int4, bf16 or float", text);
}

static bool read_rules(Quantizing *q)
{
	q->rule = ARENA_ARRAY(weft_arena(q->w), KeepRule, q->o.nkeep);
	for (uint32_t k = 0; k < q->o.nkeep; k++)
		TRY(read_rule(q, q->o.keep[k], &q->rule[k]));
	return true;
}

/* Returns the first rule about a weight, under one of its names; NULL: there is none. */
static KeepRule *rule_of(Quantizing *q, ConstId of)
{
	const Ir *ir = q->g->g->ir;
	for (uint32_t r = 0; r < q->o.nkeep; r++)
		for (uint32_t k = 1; k < ir->constant.n; k++) {
			const Const *c = &ir->constant.data[k];
			if ((k == of.i || c->same_as.i == of.i) && *c->name &&
			    is_about(&q->rule[r], c->name))
				return &q->rule[r];
		}
	return NULL;
}

static bool all_used(const Quantizing *q)
{
	Arena *arena = weft_arena(q->w);
	for (uint32_t r = 0; r < q->o.nkeep; r++) {
		const char *name = q->rule[r].name;
		Nearest near = {.word = name, .most = nearest_most(strlen(name))};
		if (q->rule[r].used)
			continue;
		for (uint32_t k = 0; k < q->found.weight.n; k++)
			nearest_offer(&near, const_of(q, k)->name);
		return ctx_error(q->w->ctx, here,
				 "the rule \"%s\" fits no weight that products read%s; weft "
				 "quantize without -o lists them",
				 q->rule[r].text, nearest_hint(arena, &near));
	}
	return true;
}

/* ---- kinds ---- */

/* Returns the number of terms of a row, and sets *rows to the number of rows. */
static int64_t terms_of(const Quantizing *q, uint32_t k, int64_t *rows)
{
	const Const *c = const_of(q, k);
	int64_t terms = 1;
	*rows = 1;
	for (uint32_t d = 0; d < c->rank; d++)
		*(q->found.weight.data[k].summed >> d & 1 ? &terms : rows) *= c->dim[d];
	return terms;
}

/* Returns why a weight cannot have 4 bits; NULL: it can. */
static const char *not_in_groups(const Quantizing *q, uint32_t k)
{
	const ProductWeight *w = &q->found.weight.data[k];
	int64_t rows;
	const int64_t terms = terms_of(q, k, &rows);
	if (w->windows)
		return "a convolution reads it";
	if (w->rows)
		return "rows of it are looked up";
	if (w->summed & (w->summed - 1))
		return "its products sum over several dimensions of it";
	if (terms % q->group)
		return arena_printf(weft_arena(q->w), "its %lld terms are no groups of %lld",
				    (long long)terms, (long long)q->group);
	return NULL;
}

/* Whether a kind takes fewer bytes than the weight as it is. */
static bool saves(const Quantizing *q, uint32_t k, WeightKind kind)
{
	const Const *c = const_of(q, k);
	int64_t rows;
	const int64_t terms = terms_of(q, k, &rows);
	const uint64_t all = (uint64_t)(rows * terms);
	if (kind == WEIGHT_INT4)
		return true;
	return (kind == WEIGHT_BF16 ? all * dtype_size(DT_bf16)
				    : all + (uint64_t)rows * sizeof(float)) < c->bytes;
}

/* Chooses the kind of a weight. */
static void choose_kind(Quantizing *q, uint32_t k)
{
	const ProductWeight *w = &q->found.weight.data[k];
	KeepRule *rule = rule_of(q, w->of);
	const bool stays = w->table && !q->o.embeddings;
	WeightKind kind = rule ? rule->kind : stays ? WEIGHT_FLOAT : kinds[q->o.weights];
	const char *why = "";
	if (rule)
		rule->used = true;
	else if (stays && kinds[q->o.weights] != WEIGHT_FLOAT)
		why = "only look-ups read it: --embeddings";
	if (kind != WEIGHT_FLOAT && w->why) {
		kind = WEIGHT_FLOAT;
		why = w->why;
	}
	const char *not_halves = kind == WEIGHT_INT4 ? not_in_groups(q, k) : NULL;
	if (not_halves) {
		kind = WEIGHT_INT8;
		why = not_halves;
	}
	if (kind != WEIGHT_FLOAT && !saves(q, k, kind)) {
		kind = WEIGHT_FLOAT;
		why = "it would not be smaller";
	}
	q->kind[k] = kind;
	q->why[k] = why;
	q->nrounded += kind != WEIGHT_FLOAT;
}

static bool choose_kinds(Quantizing *q)
{
	Arena *arena = weft_arena(q->w);
	const uint32_t n = q->found.weight.n;
	q->kind = ARENA_ARRAY(arena, WeightKind, n);
	q->why = ARENA_ARRAY(arena, const char *, n);
	q->importance = ARENA_ARRAY(arena, double *, n);
	for (uint32_t k = 0; k < n; k++)
		choose_kind(q, k);
	TRY(all_used(q));
	if (q->nrounded || q->o.nkeep || q->o.weights == WEFT_WEIGHT_FLOAT)
		return true;
	if (!n)
		return ctx_error(q->w->ctx, q->g->path,
				 "there is nothing to quantise: no product or convolution reads a "
				 "constant of floats");
	return ctx_error(q->w->ctx, q->g->path, "none of its %u weights can be quantised: of %s %s",
			 n, const_of(q, 0)->name, q->why[0]);
}

/* ---- data ---- */

static bool is_finite_sum(Quantizing *q, uint32_t k, const Tensor *t)
{
	for (int64_t i = 0; i < tensor_numel(t); i++)
		if (!isfinite(tensor_f64(t, i)))
			return ctx_error(q->w->ctx, here,
					 "on the data, what weight %s is multiplied with is not "
					 "finite (term %lld)",
					 const_of(q, k)->name, (long long)i);
	return true;
}

/* Adds what the call gave for weight k. */
static bool add_squares(Quantizing *q, uint32_t k, const WeftTensor *out)
{
	Arena *arena = weft_arena(q->w);
	Tensor t;
	TRY(tensor_from_api(q->w->ctx, arena, here, out, &t) && is_finite_sum(q, k, &t));
	const int64_t n = tensor_numel(&t);
	if (!q->importance[k])
		q->importance[k] = ARENA_ARRAY(arena, double, n);
	for (int64_t i = 0; i < n; i++)
		q->importance[k][i] += tensor_f64(&t, i);
	return true;
}

/* Widens the ranges of values by those of the call, whose first output of ranges is called so. */
static bool add_ranges(Quantizing *q, int32_t first)
{
	Arena *arena = weft_arena(q->w);
	const Graph *g = q->found.expanded;
	for (uint32_t k = 0; k < q->found.value.n; k++) {
		ProductValue *v = &q->found.value.data[k];
		double end[2];
		for (uint32_t i = 0; i < 2; i++) {
			const char *name = g->output.data[(uint32_t)first + 2 * k + i].name;
			Tensor t;
			TRY(tensor_from_api(q->w->ctx, arena, here,
					    &q->model.out[callee_output(&q->model, name)], &t));
			end[i] = tensor_f64(&t, 0);
			if (!isfinite(end[i]))
				return ctx_error(
					q->w->ctx, here,
					"on the data, a value of the model is not finite: what "
					"node %s gives",
					graph_name(q->found.expanded, v->x));
		}
		v->low = fmin(v->low, end[0]);
		v->high = fmax(v->high, end[1]);
	}
	return true;
}

/* Runs the model on the data: adds up the squares of what weights are multiplied with, and finds
 * the range of that. */
static bool observe(Quantizing *q)
{
	Arena *arena = weft_arena(q->w);
	const uint32_t n = q->found.weight.n;
	int32_t *output = ARENA_ARRAY(arena, int32_t, n), ranges = -1;
	TRY(samples_open(q->w, q->g, q->o.data, &q->samples) &&
	    quantize_observe(&q->found, output));
	TRY(!is_static(q) || (ranges = quantize_observe_ranges(&q->found)) >= 0);
	const Graph *g = q->found.expanded;
	WeftGraph *wrapped = graph_wrap(q->w, q->found.expanded, q->g->path);
	TRY(callee_open(q->w, wrapped, q->o.jobs, &q->model));
	for (uint32_t call = 0; call < q->samples.ncall; call++) {
		progress(q, "observe", call, q->samples.ncall);
		callee_release(&q->model);
		TRY(callee_run(&q->model, &q->samples, call));
		TRY(ranges < 0 || add_ranges(q, ranges));
		for (uint32_t k = 0; k < n; k++) {
			if (output[k] < 0)
				continue;
			const char *name = g->output.data[output[k]].name;
			TRY(add_squares(q, k, &q->model.out[callee_output(&q->model, name)]));
		}
	}
	return true;
}

/* What outputs differ by, over all calls. */
typedef struct {
	double signal, noise;
	bool floats; /* some output has such */
	uint64_t rows, same;
} Difference;

static int64_t greatest(const Tensor *t, int64_t first, int64_t n)
{
	int64_t at = 0;
	for (int64_t k = 1; k < n; k++)
		if (tensor_f64(t, first + k) > tensor_f64(t, first + at))
			at = k;
	return at;
}

/* Compares the places of the greatest numbers of rows, if that is the first output with such. */
static void compare_rows(const Tensor *was, const Tensor *is, Difference *d)
{
	const int64_t n = was->rank ? was->dim[was->rank - 1] : 1,
		      rows = n > 1 ? tensor_numel(was) / n : 0;
	for (int64_t r = 0; r < rows; r++)
		d->same += greatest(was, r * n, n) == greatest(is, r * n, n);
	d->rows += (uint64_t)rows;
}

static bool compare_call(Quantizing *q, const Callee *new, Difference *d)
{
	Arena *arena = weft_arena(q->w);
	const uint64_t rows = d->rows;
	for (uint32_t k = 0; k < new->nout; k++) {
		Tensor was, is;
		TRY(tensor_from_api(q->w->ctx, arena, here, &q->model.out[k], &was) &&
		    tensor_from_api(q->w->ctx, arena, here, &new->out[k], &is));
		if (!dtype_is_float(was.dtype) || tensor_numel(&was) != tensor_numel(&is))
			continue;
		d->floats = true;
		for (int64_t i = 0; i < tensor_numel(&was); i++) {
			const double x = tensor_f64(&was, i), e = x - tensor_f64(&is, i);
			if (!isfinite(x))
				continue;
			d->signal += x * x;
			d->noise += e * e;
		}
		if (d->rows == rows)
			compare_rows(&was, &is, d);
	}
	return true;
}

static double decibels(double signal, double noise)
{
	return noise > 0 ? 10 * log10(signal / noise) : INFINITY;
}

/* Compares the outputs of a quantised graph with those of the model on the data. */
static bool compare(Quantizing *q, WeftGraph *g)
{
	Difference d = {0};
	TRY(callee_open(q->w, g, q->o.jobs, &q->small));
	for (uint32_t call = 0; call < q->samples.ncall; call++) {
		progress(q, "compare", call, q->samples.ncall);
		callee_release(&q->model);
		TRY(callee_run(&q->model, &q->samples, call) &&
		    callee_run(&q->small, &q->samples, call) && compare_call(q, &q->small, &d));
	}
	callee_close(&q->small);
	q->report.samples = q->samples.ncall;
	if (!d.floats && q->o.least_snr > 0)
		return ctx_error(
			q->w->ctx, here,
			"the model has no output of floats, of which a ratio of signal to noise "
			"could be demanded");
	q->report.snr = d.floats ? decibels(d.signal, d.noise) : NAN;
	q->report.agreement = d.rows ? (double)d.same / (double)d.rows : NAN;
	return true;
}

/* ---- rounding ---- */

/* A weight that was rounded without data, of any graph of the Weft: another graph that has it, too,
 * such as another entry of the same model, need not round it again. */
typedef struct KnownRounding {
	struct KnownRounding *next;
	Const of; /* what was rounded */
	uint64_t hash;
	uint32_t summed;
	RoundOptions o;
	RoundedWeight to;
} KnownRounding;

static bool is_rounding(const KnownRounding *k, const Const *c, uint64_t hash, uint32_t summed,
			const RoundOptions *o)
{
	return k->hash == hash && k->summed == summed && k->o.kind == o->kind &&
	       k->o.group == o->group && k->o.zero_points == o->zero_points &&
	       k->of.dtype == c->dtype && k->of.rank == c->rank && k->of.bytes == c->bytes &&
	       !memcmp(k->of.dim, c->dim, c->rank * sizeof *c->dim) &&
	       !memcmp(k->of.data, c->data, c->bytes);
}

/* Rounds weight w, or takes what an equal one was rounded to. */
static bool round_weight(Quantizing *q, uint32_t w, const RoundOptions *o, RoundedWeight *out)
{
	Ir *ir = q->g->g->ir;
	const ProductWeight *of = &q->found.weight.data[w];
	if (o->importance)
		return quantize_round(ir, of, o, out);
	const uint64_t hash = const_hash(ir, of->of);
	const Const *c = const_of(q, w);
	for (KnownRounding *k = q->w->rounded; k; k = k->next)
		if (is_rounding(k, c, hash, of->summed, o)) {
			*out = k->to;
			out->of = of->of;
			return true;
		}
	TRY(quantize_round(ir, of, o, out));
	KnownRounding *k = ARENA_NEW(weft_arena(q->w), KnownRounding);
	*k = (KnownRounding){q->w->rounded, *c, hash, of->summed, *o, *out};
	q->w->rounded = k;
	return true;
}

static uint32_t threads(const Quantizing *q)
{
	const long n = sysconf(_SC_NPROCESSORS_ONLN);
	return q->o.jobs ? q->o.jobs : n > 0 ? (uint32_t)n : 1;
}

static bool round_weights(Quantizing *q)
{
	uint32_t n = 0;
	q->rounded = ARENA_ARRAY(weft_arena(q->w), RoundedWeight, q->found.weight.n);
	q->w->ctx->file = q->g->path;
	for (uint32_t k = 0; k < q->found.weight.n; k++) {
		q->rounded[k] = (RoundedWeight){.of = q->found.weight.data[k].of};
		if (q->kind[k] == WEIGHT_FLOAT)
			continue;
		progress(q, "round", n++, q->nrounded);
		const RoundOptions o = {.kind = q->kind[k],
					.group = q->group,
					.zero_points = q->o.zero_points,
					.importance = q->importance[k],
					.jobs = threads(q)};
		TRY(round_weight(q, k, &o, &q->rounded[k]));
	}
	return true;
}

/* ---- report ---- */

static uint64_t bytes_of_constants(const Ir *ir)
{
	uint64_t n = 0;
	for (uint32_t k = 1; k < ir->constant.n; k++) {
		const Const *c = &ir->constant.data[k];
		if (c->is_param && !c->same_as.i && !c->view_of.i)
			n += c->bytes;
	}
	return n;
}

static const char *name_of(const Quantizing *q, uint32_t k)
{
	const char *name = const_of(q, k)->name;
	return *name ? name : arena_printf(weft_arena(q->w), "#%u", q->found.weight.data[k].of.i);
}

/* Fills in the report, before names of constants are lost. */
static void make_report(Quantizing *q)
{
	Arena *arena = weft_arena(q->w);
	WeftQuantizedWeight *all = ARENA_ARRAY(arena, WeftQuantizedWeight, q->found.weight.n);
	q->report.nweight = q->found.weight.n;
	q->report.weight = all;
	q->report.bytes = q->report.bytes_before = bytes_of_constants(q->g->g->ir);
	for (uint32_t k = 0; k < q->found.weight.n; k++) {
		const Const *c = const_of(q, k);
		Tensor t = {.dtype = c->dtype, .rank = c->rank};
		memcpy(t.dim, c->dim, sizeof *c->dim * c->rank);
		const RoundedWeight *r = q->kind[k] == WEIGHT_FLOAT ? NULL : &q->rounded[k];
		all[k] = (WeftQuantizedWeight){.name = name_of(q, k),
					       .type = tensor_type_str(arena, &t),
					       .kind = kind_names[q->kind[k]],
					       .why = q->why[k],
					       .bytes_before = c->bytes,
					       .bytes = r ? rounded_bytes(r) : c->bytes,
					       .snr = r ? decibels(r->signal, r->noise) : INFINITY};
		if (!c->is_param)
			q->report.bytes_before += c->bytes;
		q->report.bytes += all[k].bytes - (c->is_param ? c->bytes : 0);
	}
}

/* ---- all of it ---- */

static bool check(Quantizing *q)
{
	const WeftQuantizeOptions *o = &q->o;
	Ctx *ctx = q->w->ctx;
	TRY(options_fit(q->w, o->size, sizeof *o));
	if ((uint32_t)o->activations > WEFT_QUANTIZE_STATIC)
		return ctx_error(ctx, here, "there are no activations %d", (int)o->activations);
	if (is_static(q) && !o->data)
		return ctx_error(ctx, here,
				 "static activations need data, on which their ranges are observed "
				 "(--data)");
	TRY(given_graph(q->w, here, q->g) && graph_is_one(q->w, q->g));
	TRY(given_texts(q->w, here, "rules", o->keep, o->nkeep));
	if ((uint32_t)o->weights >= sizeof kinds / sizeof *kinds)
		return ctx_error(ctx, here, "there is no kind of weights %d", (int)o->weights);
	if (o->least_snr > 0 && !o->data)
		return ctx_error(ctx, here,
				 "a signal-to-noise ratio of outputs needs data, on which they are "
				 "compared (--data)");
	q->group = o->group ? o->group : DEFAULT_GROUP;
	if (q->group < DEFAULT_GROUP || q->group > LARGEST_GROUP || q->group & (q->group - 1))
		return ctx_error(ctx, here, "groups have 32, 64 or 128 terms, not %lld",
				 (long long)q->group);
	if (q->g->transformed)
		return ctx_error(ctx, q->g->path,
				 "the graph was transformed: quantise the graph that was loaded, "
				 "then transform it");
	return true;
}

/* Makes a graph with rounded weights of the one of the API; with static activations one in basic
 * operations. */
static bool make(Quantizing *q, WeftGraph **out)
{
	const Graph *from = q->g->g;
	FoundWeights own;
	Graph *g;
	if (is_static(q)) {
		bool *fixed = ARENA_ARRAY(weft_arena(q->w), bool, q->found.weight.n);
		TRY(quantize_find(q->g->g, &own));
		for (uint32_t k = 0; k < own.value.n; k++) {
			own.value.data[k].low = q->found.value.data[k].low;
			own.value.data[k].high = q->found.value.data[k].high;
		}
		for (uint32_t k = 0; k < q->found.weight.n; k++)
			fixed[k] = q->kind[k] == WEIGHT_INT8;
		TRY(quantize_values(&own, fixed));
		g = own.expanded;
		graph_dce(g);
	} else {
		g = graph_clone(from);
	}
	for (uint32_t k = 0; k < q->found.weight.n; k++)
		q->rounded[k].kind = q->kind[k];
	TRY(quantize_replace(g, &q->found, q->rounded, q->found.weight.n,
			     q->o.activations == WEFT_QUANTIZE_DYNAMIC) &&
	    graph_verify(g));
	g->unrounded = from->unrounded;
	g->activations = from->activations;
	*out = graph_wrap(q->w, g, q->g->path);
	return true;
}

/* Makes the graph that of the API. */
static void adopt(Quantizing *q, const WeftGraph *made)
{
	quantize_forget(made->g->ir, q->rounded, q->found.weight.n);
	q->g->g = q->g->entry[0].g = made->g;
	q->g->transformed = is_static(q);
}

/* ---- weights of more bits, for the outputs ---- */

/* A weight that may get more bits. */
typedef struct {
	uint32_t weight;
	double harm; /* RoundedWeight.harm, of few bits */
	WeightKind to;
} Upgrade;

/* What weights are before some of them get more bits. */
typedef struct {
	Upgrade *order; /* those first that rounding changed most */
	uint32_t n;
	WeightKind *kind;       /* by weight */
	RoundedWeight *rounded; /* by weight */
	RoundedWeight *eight;   /* by weight of 4 bits: rounded to 8 */
} Search;

static int by_harm(const void *a, const void *b)
{
	const Upgrade *x = a, *y = b;
	if (x->harm != y->harm)
		return x->harm < y->harm ? 1 : -1;
	return x->weight < y->weight ? -1 : 1;
}

/* Makes a graph in which the first n weights in order have more bits, and compares it. */
static bool upgrade(Quantizing *q, const Search *s, uint32_t n, WeftGraph **out)
{
	memcpy(q->kind, s->kind, sizeof *s->kind * q->found.weight.n);
	memcpy(q->rounded, s->rounded, sizeof *s->rounded * q->found.weight.n);
	for (uint32_t k = 0; k < n; k++) {
		const Upgrade *u = &s->order[k];
		q->kind[u->weight] = u->to;
		if (u->to == WEIGHT_INT8)
			q->rounded[u->weight] = s->eight[u->weight];
	}
	return make(q, out) && compare(q, *out);
}

/* Finds how few weights must have more bits for the outputs that are asked for, if all of them
 * suffice. */
static bool find_least(Quantizing *q, Search *s, WeftGraph **out)
{
	Arena *arena = weft_arena(q->w);
	uint32_t low = 0, high = s->n;
	s->kind = arena_dup(arena, q->kind, sizeof *q->kind * q->found.weight.n);
	s->rounded = arena_dup(arena, q->rounded, sizeof *q->rounded * q->found.weight.n);
	qsort(s->order, s->n, sizeof *s->order, by_harm);
	while (low < high) {
		const uint32_t middle = (low + high) / 2;
		TRY(upgrade(q, s, middle, out));
		if (q->report.snr >= q->o.least_snr)
			high = middle;
		else
			low = middle + 1;
	}
	TRY(upgrade(q, s, high, out));
	for (uint32_t k = 0; k < high; k++)
		q->why[s->order[k].weight] = "for the outputs: --least-snr";
	return true;
}

/* Rounds the weights of 4 bits to 8 bits, too. */
static bool round_to_eight(Quantizing *q, Search *s)
{
	const uint32_t n = q->found.weight.n;
	s->eight = ARENA_ARRAY(weft_arena(q->w), RoundedWeight, n);
	for (uint32_t k = 0; k < n; k++) {
		if (q->kind[k] != WEIGHT_INT4 || !saves(q, k, WEIGHT_INT8))
			continue;
		const RoundOptions o = {
			.kind = WEIGHT_INT8, .importance = q->importance[k], .jobs = threads(q)};
		TRY(round_weight(q, k, &o, &s->eight[k]));
		s->order[s->n++] = (Upgrade){k, q->rounded[k].harm, WEIGHT_INT8};
	}
	return true;
}

/* Gives weights more bits, those first that rounding changes most, until the outputs are as is
 * asked for: of 4 bits 8, and if that does not suffice, as they are. */
static bool search(Quantizing *q, WeftGraph **out)
{
	const uint32_t n = q->found.weight.n;
	Search s = {.order = ARENA_ARRAY(weft_arena(q->w), Upgrade, n)};
	TRY(round_to_eight(q, &s) && find_least(q, &s, out));
	if (q->report.snr >= q->o.least_snr)
		return true;
	s.n = 0;
	for (uint32_t k = 0; k < n; k++)
		if (q->kind[k] != WEIGHT_FLOAT)
			s.order[s.n++] = (Upgrade){k, q->rounded[k].harm, WEIGHT_FLOAT};
	return find_least(q, &s, out);
}

static bool quantize(void *arg)
{
	Quantizing *q = arg;
	WeftGraph *made;
	TRY(check(q) && read_rules(q));
	q->w->ctx->file = q->g->path;
	TRY(quantize_find(q->g->g, &q->found) && choose_kinds(q));
	TRY(!q->o.data || observe(q));
	TRY(round_weights(q));
	if (q->o.least_snr > 0)
		TRY(search(q, &made));
	else
		TRY(make(q, &made) && (!q->o.data || compare(q, made)));
	make_report(q);
	adopt(q, made);
	return true;
}

bool weft_quantize(Weft *w, WeftGraph *g, const WeftQuantizeOptions *options)
{
	Quantizing q = {.w = w, .g = g};
	options_copy(&q.o, sizeof q.o, options);
	if (w)
		w->have_quantized = false;
	const bool ok = boundary(w, quantize, &q);
	callee_close(&q.model);
	callee_close(&q.small);
	if (ok && w) {
		w->quantized = q.report;
		w->have_quantized = true;
	}
	return ok;
}

const WeftQuantizeReport *weft_quantize_report(Weft *w)
{
	return w && !w->dead && w->have_quantized ? &w->quantized : NULL;
}
