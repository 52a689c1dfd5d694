/* weft report */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/report/report.h"

static int run(int argc, char **argv);

static const HelpRow rows[] = {
	{NULL, "What is written", false},
	{"-o FILE", "a page (.html) or the data (.json); else a summary is printed", true},
	{"--json", "write, or print, the data as JSON", true},
	{"--trace FILE", "the launches of one call, for Perfetto or chrome://tracing", true},
	{"--diff", "compare two reports (.json): weft report --diff BEFORE AFTER", true},
	{"--no-source", "leave the code of kernels out", false},
	{NULL, "How it is measured", false},
	{"--inputs FILE", "tensors x.0, x.1, ... (default MODEL.safetensors, else made up)", true},
	{"--entry NAME", "which of several entries", false},
	{"--threads N", "threads (default 1)", true},
	{"--seconds S", "how long calls are timed, and profiled (default 1)", false},
	{NULL, "How it is compiled", false},
	{"--backend jit|c|llvm", "see weft run", false},
	{"--target NAME|FILE", "see weft compile", false},
	{"--tune NAME|FILE", "see weft compile", false},
	{"--cc COMMAND", "the C compiler of --backend c", false},
	{"--no-cache", "see weft compile", false},
	PROGRESS_HELP,
	LOAD_HELP,
	{0}};

const Command command_report = {
	.name = "report",
	.summary = "write a page about a model's kernels, times and memory",
	.usage = "MODEL|MODEL.so|NAME=MODEL... [options]",
	.about = "Compile a model, measure the time of its kernels, and write a report: an HTML "
		 "page in one file, or JSON (docs/report.md). Without -o, print a summary.",
	.more = "A report in JSON becomes a page by weft report REPORT.json -o PAGE.html. "
		"A shared object does not describe nodes and memory: these parts of its report are "
		"empty.",
	.row = rows,
	.run = run};

bool report_begin(ReportText *t)
{
	*t = (ReportText){0};
	t->f = open_memstream(&t->data, &t->n);
	return t->f || (fail("out of memory"), false);
}

bool report_end(ReportText *t)
{
	const bool ok = !ferror(t->f);
	if (fclose(t->f) || !ok)
		return free(t->data), fail("out of memory"), false;
	return true;
}

bool report_write(const char *path, const char *data, size_t n)
{
	Weft *w = weft_new();
	bool ok = w && weft_write_file(w, path, data, n);
	if (!ok)
		fail_messages(w);
	weft_free(w);
	return ok;
}

static bool write_trace(const Report *p)
{
	ReportText t;
	if (!p->o->trace)
		return true;
	if (!report_begin(&t))
		return false;
	report_trace(p, t.f);
	if (!report_end(&t))
		return false;
	const bool ok = report_write(p->o->trace, t.data, t.n);
	free(t.data);
	return ok;
}

/* Writes the JSON, or the page around it. */
static bool write_data(const Report *p)
{
	const ReportOptions *o = p->o;
	ReportText data, page;
	if (!report_begin(&data))
		return false;
	report_json(p, data.f);
	if (!report_end(&data))
		return false;
	if (!o->output) {
		const bool ok = fwrite(data.data, 1, data.n, stdout) == data.n;
		free(data.data);
		return ok || (fail("cannot write to standard output: %s", strerror(errno)), false);
	}
	if (o->json) {
		const bool ok = report_write(o->output, data.data, data.n);
		free(data.data);
		return ok;
	}
	bool ok = report_begin(&page);
	if (ok)
		report_page(page.f, data.data, data.n);
	free(data.data);
	ok = ok && report_end(&page);
	ok = ok && report_write(o->output, page.data, page.n);
	if (ok)
		free(page.data);
	return ok;
}

static bool make_report(const ReportOptions *o)
{
	Report p;
	bool ok = report_measure(&p, o) && report_findings(&p);
	progress_end();
	if (ok && (o->output || o->json))
		ok = write_data(&p);
	else if (ok)
		report_text(&p);
	ok = ok && write_trace(&p);
	free(p.in);
	free(p.finding);
	free(p.seconds);
	free(p.launches);
	free(p.event);
	return ok; /* the process ends here: the model stays open */
}

/* Chooses the back end, as weft bench does. */
static bool choose_backend(ReportOptions *o, const char *text)
{
	if (!parse_backend(text, &o->backend))
		return false;
	if (o->backend == RUN_INTERP || o->backend == RUN_LOOPS || o->backend == RUN_GPU_HOST)
		return fail_usage("--backend is jit, c or llvm: interpreters and gpu-host are not "
				  "timed"),
		       false;
	if (!is_shared_object(o->model))
		return true;
	const char *given = text                ? "--backend"
			    : o->compile.target ? "--target"
			    : o->compile.tune   ? "--tune"
			    : o->compile.cc     ? "--cc"
						: load_option_given(&o->load);
	return !given || (fail("%s is compiled: %s is for model files", o->model, given), false);
}

/* Chooses what is written by the end of the file's name. */
static bool choose_output(ReportOptions *o)
{
	const bool page = o->output && has_suffix(o->output, ".html"),
		   data = o->output && has_suffix(o->output, ".json");
	if (o->output && page && o->json)
		return fail_usage("--json writes JSON, and %s is the name of a page", o->output),
		       false;
	if (o->output && !page && !data && !o->json)
		return fail_usage("-o takes a file name that ends with .html or .json, not %s",
				  o->output),
		       false;
	o->json |= data;
	return true;
}

static bool parse_seconds(const char *text, double *out)
{
	char *end;
	*out = strtod(text, &end);
	return (*out > 0 && *out < 1e6 && !*end) ||
	       (fail_usage("--seconds takes a positive number of seconds, not %s", text), false);
}

/* What the command line says besides ReportOptions. */
typedef struct {
	const char *seconds, *backend; /* NULL: not given */
	int threads;                   /* 0: not given */
	bool diff, progress;
} GivenOptions;

/* Checks that each option has an effect. measured: a model is measured; else reports are read. */
static bool check_options(const ReportOptions *o, const GivenOptions *g, bool measured)
{
	static const char model[] = "a model, and here reports are read";
	const char *load = load_option_given(&o->load);
	if (o->trace && o->output && !strcmp(o->trace, o->output))
		return fail_usage("-o and --trace are both %s", o->trace), false;
	const OptUse use[] = {
		{o->no_source, measured && (o->output || o->json), "--no-source",
		 "a page or JSON of a model"},
		{o->trace, measured, "--trace", model},
		{o->inputs, measured, "--inputs", model},
		{o->entry, measured, "--entry", model},
		{g->threads, measured, "--threads", model},
		{g->seconds, measured, "--seconds", model},
		{g->backend, measured, "--backend", model},
		{o->compile.target, measured, "--target", model},
		{o->compile.tune, measured, "--tune", model},
		{o->compile.cc, measured, "--cc", model},
		{o->compile.no_cache, measured, "--no-cache", model},
		{g->progress, measured, "--progress", model},
		{load, measured, load, model},
	};
	return options_used(&command_report, use, sizeof use / sizeof *use);
}

/* Makes the report of a model, once its options are checked. */
static int report_model(ReportOptions *o, const GivenOptions *g)
{
	static char beside[4096];
	const char *dot = strrchr(o->model, '.');
	snprintf(beside, sizeof beside, "%.*s.safetensors",
		 (int)(dot ? dot - o->model : (long)strlen(o->model)), o->model);
	if (!o->inputs && !access(beside, R_OK))
		o->inputs = beside;
	o->threads = g->threads ? g->threads : 1;
	progress_begin(g->progress);
	o->compile.progress = progress_phase;
	return make_report(o) ? 0 : 1;
}

static int run(int argc, char **argv)
{
	ReportOptions o = {.compile = {.size = sizeof o.compile}};
	GivenOptions g = {0};
	const Opt opt[] = {{"-o", OPT_STRING, &o.output},
			   {"--json", OPT_FLAG, &o.json},
			   {"--trace", OPT_STRING, &o.trace},
			   {"--diff", OPT_FLAG, &g.diff},
			   {"--no-source", OPT_FLAG, &o.no_source},
			   {"--inputs", OPT_STRING, &o.inputs},
			   {"--entry", OPT_STRING, &o.entry},
			   {"--threads", OPT_INT, &g.threads},
			   {"--seconds", OPT_STRING, &g.seconds},
			   {"--backend", OPT_STRING, &g.backend},
			   {"--target", OPT_STRING, &o.compile.target},
			   {"--tune", OPT_STRING, &o.compile.tune},
			   {"--cc", OPT_STRING, &o.compile.cc},
			   {"--no-cache", OPT_FLAG, &o.compile.no_cache},
			   {"--progress", OPT_FLAG, &g.progress},
			   LOAD_OPTIONS(&o.load),
			   {0}};
	if (!options_parse(&command_report, opt, &argc, argv))
		return argc == -1 ? 0 : 1;
	if (!parse_seconds(g.seconds ? g.seconds : "1", &o.seconds) || !choose_output(&o) ||
	    !take_entries(&o.load, &argc, argv))
		return 1;
	const uint32_t n = o.load.entry.n;
	const bool reads = g.diff || (argc == 2 && !n && has_suffix(argv[1], ".json"));
	if (g.diff && (argc != 3 || n))
		return fail_usage("--diff takes two reports: weft report --diff BEFORE AFTER");
	if (argc != (g.diff ? 3 : n ? 1 : 2))
		return fail_usage("report takes one model; see weft report --help");
	if (!check_options(&o, &g, !reads))
		return 1;
	if (g.diff)
		return report_diff(argv[1], argv[2], o.output, o.json);
	if (reads && (!o.output || o.json))
		return fail_usage("%s is a report: -o PAGE.html writes its page", argv[1]);
	if (reads)
		return report_convert(argv[1], o.output);
	o.model = n ? entry_file(&o.load, o.entry) : argv[1];
	if (!o.model || !choose_backend(&o, g.backend) ||
	    !keep_input(o.output ? o.output : "", o.model))
		return 1;
	return report_model(&o, &g);
}
