/* weft quantize */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

static int run(int argc, char **argv);

static const HelpRow rows[] = {
	{NULL, "What is written", false},
	{"-o OUT",
	 "the file to write, which all commands accept as a model; without it the weights are only "
	 "printed",
	 true},
	{"--report FILE", "write what is printed as JSON, too", false},
	PROGRESS_HELP,
	{NULL, "How weights are rounded", false},
	{"--weights int8|int4|bf16|float",
	 "the kind of the weights (default int8). int8: 8 bits, with a scale for each row; int4: 4 "
	 "bits, with a scale for each group of a row; float: unchanged, except for those of --keep",
	 true},
	{"--group 32|64|128", "of int4: how many numbers of a row share a scale (default 32)",
	 true},
	{"--zero-points", "of int4: each group also has a zero point", false},
	{"--embeddings", "round tables of embeddings, too", false},
	{"--keep LIST",
	 "other kinds for some weights, NAME:KIND separated by commas: "
	 "\"lm_head:int8,*.gate:float\". NAME is a weight or a module, * any text; the first rule "
	 "that fits counts (repeatable)",
	 true},
	{"--activations none|dynamic|static",
	 "dynamic: in each call, matrix products round their other operand to 8 bits, too; static: "
	 "matrix products and convolutions do, by the ranges on --data (default none; "
	 "docs/numerics.md)",
	 true},
	{"--data FILE",
	 ".npz or .safetensors with samples of the inputs, x.0, ... or by name: int4 rounds more "
	 "exactly where they are large, and outputs are compared",
	 true},
	{"--least-snr DECIBELS",
	 "with --data: give the weights that rounding changes most more bits, until the outputs "
	 "have this signal-to-noise ratio",
	 false},
	{"-j N", "threads (default: one per processor); the file does not depend on it", false},
	{NULL, "The model", false},
	{"--weights-from FILE",
	 "take weights from it instead of the model's: .safetensors, the index of several, .npz, "
	 ".gguf (repeatable)",
	 false},
	{"--weight-names FILE",
	 "what the model's weights are called there, a line each: NAME = NAME, * for any text",
	 false},
	{"--values FILE", "inputs of an ONNX model (x.0, ..., or by name), which its code may fix",
	 false},
	{"--ops LIBRARY", "a shared library of operators (weft_op.h; repeatable)", false},
	{"--ignore-guard TEXT",
	 "do not check this condition on the inputs, which weft cannot express (repeatable)",
	 false},
	{0}};

const Command command_quantize = {
	.name = "quantize",
	.summary = "store a model's weights in few bits",
	.usage = "MODEL [-o OUT] [options]",
	.about =
		"Round the weights of MODEL's matrix products and convolutions to 8 or 4 bits, and "
		"write the model as one file, OUT.weft, which weft compile reads.",
	.more = "",
	.row = rows,
	.run = run};

typedef struct {
	const char *out, *report, *weights, *group, *activations, *data, *least_snr;
	StringList keep;
	LoadArgs load;
	bool zero_points, embeddings, progress;
	int jobs;
	char *text; /* the rules, cut apart */
	const char **rule;
	uint32_t nrule;
} QuantizeArgs;

/* Cuts the lists of --keep at their commas. */
static bool cut_rules(QuantizeArgs *a)
{
	size_t length = 0, n = 0;
	for (uint32_t k = 0; k < a->keep.n; k++)
		length += strlen(a->keep.item[k]) + 1;
	a->text = malloc(length + 1);
	a->rule = malloc((length + 1) * sizeof *a->rule);
	if (!a->text || !a->rule)
		return fail("out of memory"), false;
	for (uint32_t k = 0; k < a->keep.n; k++) {
		const char *from = a->keep.item[k];
		for (size_t part; *from; from += part + (from[part] == ',')) {
			part = strcspn(from, ",");
			if (!part)
				return fail_usage("--keep %s: a rule is empty", a->keep.item[k]),
				       false;
			a->rule[a->nrule++] = memcpy(a->text + n, from, part);
			a->text[n + part] = 0;
			n += part + 1;
		}
	}
	return true;
}

/* Whether weights of that kind are asked for, for all or by a rule. */
static bool asks_for(const QuantizeArgs *a, const char *kind)
{
	for (uint32_t k = 0; k < a->nrule; k++) {
		const char *colon = strrchr(a->rule[k], ':');
		if (colon && !strcmp(colon + 1, kind))
			return true;
	}
	return !strcmp(a->weights, kind);
}

/* Whether every option has an effect. */
static bool uses_all(const QuantizeArgs *a)
{
	const bool int4 = asks_for(a, "int4"), rounds = int4 || asks_for(a, "int8");
	if (!int4 && (a->group || a->zero_points))
		return fail_usage("%s is for --weights int4",
				  a->group ? "--group" : "--zero-points"),
		       false;
	if (!rounds && strcmp(a->activations, "none"))
		return fail_usage("--activations %s is for weights of int8 or int4",
				  a->activations),
		       false;
	return (rounds || asks_for(a, "bf16") || !a->least_snr) ||
	       (fail_usage("--least-snr is for weights of fewer bits"), false);
}

static bool to_options(const QuantizeArgs *a, WeftQuantizeOptions *o)
{
	static const char *const kinds[] = {[WEFT_WEIGHT_INT8] = "int8",
					    [WEFT_WEIGHT_INT4] = "int4",
					    [WEFT_WEIGHT_BF16] = "bf16",
					    [WEFT_WEIGHT_FLOAT] = "float"};
	static const char *const ways[] = {[WEFT_QUANTIZE_NONE] = "none",
					   [WEFT_QUANTIZE_DYNAMIC] = "dynamic",
					   [WEFT_QUANTIZE_STATIC] = "static"};
	enum { NKIND = sizeof kinds / sizeof *kinds, NWAY = sizeof ways / sizeof *ways };
	uint32_t kind = 0;
	while (kind < NKIND && strcmp(a->weights, kinds[kind]) != 0)
		kind++;
	if (kind == NKIND)
		return fail_usage("--weights is int8, int4, bf16 or float, not %s", a->weights),
		       false;
	uint32_t way = 0;
	while (way < NWAY && strcmp(a->activations, ways[way]) != 0)
		way++;
	if (way == NWAY)
		return fail_usage("--activations is none, dynamic or static, not %s",
				  a->activations),
		       false;
	if (a->group && strcmp(a->group, "32") && strcmp(a->group, "64") && strcmp(a->group, "128"))
		return fail_usage("--group is 32, 64 or 128, not %s", a->group), false;
	if (!uses_all(a))
		return false;
	char *end = NULL;
	const double least = a->least_snr ? strtod(a->least_snr, &end) : 0;
	if (a->least_snr && (end == a->least_snr || *end || !(least > 0) || isinf(least)))
		return fail_usage("--least-snr is a number of decibels above 0, not %s",
				  a->least_snr),
		       false;
	if (a->least_snr && !a->data)
		return fail_usage("--least-snr is for --data, on which outputs are compared"),
		       false;
	*o = (WeftQuantizeOptions){.size = sizeof *o,
				   .weights = (WeftWeightKind)kind,
				   .group = a->group ? (uint32_t)atoi(a->group) : 0,
				   .zero_points = a->zero_points,
				   .embeddings = a->embeddings,
				   .activations = (WeftQuantizeActivations)way,
				   .nkeep = a->nrule,
				   .keep = a->rule,
				   .least_snr = least,
				   .jobs = (uint32_t)a->jobs,
				   .progress = progress_phase};
	return true;
}

/* ---- report ---- */

static const char *decibels(double snr, char buf[32])
{
	if (isnan(snr))
		return "have no floats to compare";
	if (isinf(snr))
		return "exact";
	snprintf(buf, 32, "%.1f dB", snr);
	return buf;
}

static int widest(const WeftQuantizeReport *r)
{
	int width = 0;
	for (uint32_t k = 0; k < r->nweight; k++) {
		const int n = (int)strlen(r->weight[k].name);
		width = n > width ? n : width;
	}
	return width;
}

/* Prints a name in a column, without control characters. */
static void print_name(const char *name, int width)
{
	const int n = (int)strlen(name);
	for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
		const bool c1 = *c == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f;
		putchar(*c < ' ' || *c == 0x7f || c1 ? '?' : *c);
	}
	printf("%*s", width > n ? width - n : 0, "");
}

static void print_report(const WeftQuantizeReport *r, const char *out)
{
	char a[32], b[32];
	const int width = widest(r);
	for (uint32_t k = 0; k < r->nweight; k++) {
		const WeftQuantizedWeight *w = &r->weight[k];
		print_name(w->name, width);
		printf("  %-22s %-6s %6sB", w->type, w->kind, human((double)w->bytes, a));
		if (strcmp(w->kind, "float"))
			printf("  %8s", decibels(w->snr, a));
		printf(*w->why ? "  (%s)\n" : "\n", w->why);
	}
	printf("%s%sconstants %sB instead of %sB\n", out ? out : "", out ? ": " : "",
	       human((double)r->bytes, a), human((double)r->bytes_before, b));
	if (!r->samples)
		return;
	printf("on %u call%s: outputs %s", r->samples, r->samples == 1 ? "" : "s",
	       decibels(r->snr, a));
	if (!isnan(r->agreement))
		printf(", %.2f %% of the greatest numbers at their place", 100 * r->agreement);
	putchar('\n');
}

static void put_report(Json *j, const WeftQuantizeReport *r)
{
	json_open(j, NULL, '{');
	json_put_number(j, "bytes", (double)r->bytes);
	json_put_number(j, "bytes_before", (double)r->bytes_before);
	json_put_number(j, "samples", r->samples);
	if (r->samples) {
		json_put_number(j, "snr", r->snr);
		json_put_number(j, "agreement", r->agreement);
	}
	json_open(j, "weights", '[');
	for (uint32_t k = 0; k < r->nweight; k++) {
		const WeftQuantizedWeight *w = &r->weight[k];
		json_open(j, NULL, '{');
		json_put_string(j, "name", w->name);
		json_put_string(j, "type", w->type);
		json_put_string(j, "kind", w->kind);
		json_put_string(j, "why", w->why);
		json_put_number(j, "bytes", (double)w->bytes);
		json_put_number(j, "bytes_before", (double)w->bytes_before);
		json_put_number(j, "snr", w->snr);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_close(j, '}');
}

/* Writes the report as JSON, whole or not at all. */
static bool write_report(Weft *w, const WeftQuantizeReport *r, const char *path)
{
	char *text = NULL;
	size_t n = 0;
	Json j = {.f = open_memstream(&text, &n)};
	if (!j.f)
		return fail("out of memory"), false;
	put_report(&j, r);
	bool ok = !fclose(j.f) || (fail("out of memory"), false);
	if (ok && !(ok = weft_write_file(w, path, text, n)))
		fail_messages(w);
	free(text);
	return ok;
}

/* ---- the command ---- */

static bool parse(QuantizeArgs *a, int *argc, char **argv)
{
	const Opt opt[] = {{"-o", OPT_STRING, &a->out},
			   {"--report", OPT_STRING, &a->report},
			   {"--progress", OPT_FLAG, &a->progress},
			   {"--weights", OPT_STRING, &a->weights},
			   {"--group", OPT_STRING, &a->group},
			   {"--zero-points", OPT_FLAG, &a->zero_points},
			   {"--embeddings", OPT_FLAG, &a->embeddings},
			   {"--keep", OPT_LIST, &a->keep},
			   {"--activations", OPT_STRING, &a->activations},
			   {"--data", OPT_STRING, &a->data},
			   {"--least-snr", OPT_STRING, &a->least_snr},
			   {"-j", OPT_INT, &a->jobs},
			   {"--weights-from", OPT_LIST, &a->load.weights_from},
			   {"--weight-names", OPT_STRING, &a->load.weight_names},
			   {"--values", OPT_STRING, &a->load.values},
			   {"--ops", OPT_LIST, &a->load.ops},
			   {"--ignore-guard", OPT_LIST, &a->load.ignore_guard},
			   {0}};
	if (!options_parse(&command_quantize, opt, argc, argv))
		return false;
	if (*argc != 2)
		return fail_usage("quantize takes one model file; see weft quantize --help"), false;
	if (a->out && !has_suffix(a->out, ".weft"))
		return fail_usage("-o %s: the name ends with .weft", a->out), false;
	if (a->out && a->report && !strcmp(a->out, a->report))
		return fail_usage("-o and --report are both %s", a->out), false;
	return cut_rules(a);
}

static bool quantize(Weft *w, const char *model, QuantizeArgs *a)
{
	WeftQuantizeOptions o;
	if (!to_options(a, &o))
		return false;
	progress_show("reading %s", model);
	WeftGraph *g = load_model(w, model, &a->load, NULL);
	WeftTensors *data = g && a->data ? weft_tensors_read(w, a->data) : NULL;
	o.data = data;
	if (!g || (a->data && !data) || !weft_quantize(w, g, &o) ||
	    (a->out && !weft_save_graph(w, g, a->out)))
		return fail_messages(w), false;
	progress_end();
	if (weft_nmessages(w))
		fputs(weft_messages(w), stderr);
	const WeftQuantizeReport *r = weft_quantize_report(w);
	print_report(r, a->out);
	return !a->report || write_report(w, r, a->report);
}

static int run(int argc, char **argv)
{
	QuantizeArgs a = {.weights = "int8", .activations = "none"};
	int code = 1;
	if (!parse(&a, &argc, argv)) {
		code = argc == -1 ? 0 : 1;
	} else if (!a.out || (keep_input(a.out, argv[1]) && keep_input(a.out, a.data))) {
		progress_begin(a.progress);
		Weft *w = weft_new();
		code = w ? !quantize(w, argv[1], &a) : fail_messages(w);
		progress_end();
		weft_free(w);
	}
	free(a.text);
	free(a.rule);
	return code;
}
