/* weft check: cases, processes, the verdict. What one case does is in check_case.c. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static int run(int argc, char **argv);

static const HelpRow rows[] = {
	{NULL, "What is compared", false},
	{"--threads LIST", "such as 1,2; all results must be bit-equal", true},
	{"--sizes SPEC",
	 "such as \"s0=1,2,5 s1=17\": take every combination, fill the inputs from REF's, and "
	 "compare with the interpreter",
	 true},
	{"--against onnxruntime",
	 "compare with it, in the Python of --python; without REF inputs are made up", true},
	{"--python ENV", "the Python environment of --against (default $WEFT_PYTHON)", false},
	{"--trace-rounding", "of a wrong result: say what may be rounded otherwise", false},
	{"--weights",
	 "of compiled models: compare the checksum of weights in a file of their own first; needs "
	 "no reference",
	 false},
	{"-q", "print failures and the summary only", true},
	{"--json", "print results as JSON", true},
	PROGRESS_HELP,
	{NULL, "How it runs", false},
	{"--backend jit|c|llvm|loops|gpu-host|interp", "see weft run", true},
	{"--entry NAME", "of a shared object with several", false},
	{"--jobs N, -j N", "models at once (default 1)", false},
	{"--runner COMMAND",
	 "run the compiled model elsewhere: COMMAND MODEL.so INPUTS OUTPUTS THREADS", false},
	{"--device cuda|cuda:N", "see weft run", false},
	{"--target NAME|FILE", "for model files: see weft compile", false},
	{"--tune NAME|FILE", "for model files: see weft compile", false},
	{"--cc COMMAND", "for model files: C compiler, and --backend c", false},
	{"--no-cache", "see weft compile", false},
	{"--op-by-op", "see weft compile", false},
	MODE_HELP("(default: what the reference has gradients or tangents of). A reference "
		  "without any is skipped"),
	LOAD_HELP,
	{0}};

const Command command_check = {
	.name = "check",
	.summary = "compare results with references",
	.usage = "MODEL|MODEL.so|NAME=MODEL REF.safetensors... | DIR... [options]",
	.about = "Run a model on the inputs x.0, x.1, ... of each reference file and compare with "
		 "its results y.0, y.1, ...; of a folder: every model in it or below with a "
		 "reference of the same name. The last line is `N passed, N failed`; the status "
		 "is 1 if any failed.",
	.more = "In folders also NAME.calls.safetensors is a reference, and model.onnx has "
		"test_data_set_0, ... Each model runs in a process of its own.\n\n"
		"A result passes if its error is within\n"
		"(1) allow.<i> = \"RTOL ATOL ULPS\" of the reference's metadata (of gradients "
		"allow.g.<i>, allow.gp.NAME): RTOL x the reference + ATOL + ULPS units in the "
		"last place, else\n"
		"(2) 8 x eager_err.<i> of the metadata + 1e-6 x the largest reference, else\n"
		"(3) the tolerances of torch.testing.assert_close, for f32 and f64 times ten.\n"
		"Vectors of eig, eigh, svd and qr are compared up to their phase.\n\n"
		"State of a compiled model is compared with b.NAME after the call; a reference "
		"may have several calls in a row: 0.x.<i>, 0.y.<i>, 0.b.NAME, 1.x.<i>, ... Named "
		"models, each before its references, are compiled as one and checked one by one.",
	.row = rows,
	.run = run};

/* ---- cases ---- */

#define DATA_SET "test_data_set_"

typedef struct {
	CheckCase *item;
	int n, cap;
} Cases;

static CheckCase *cases_add(Cases *c, const char *model)
{
	if (c->n == c->cap) {
		c->cap = c->cap ? 2 * c->cap : 64;
		c->item = realloc(c->item, (size_t)c->cap * sizeof *c->item);
		if (!c->item)
			exit(fail("out of memory"));
	}
	c->item[c->n] = (CheckCase){.model = strdup(model)};
	return &c->item[c->n++];
}

static bool is_data_set(const char *name)
{
	return !strncmp(name, DATA_SET, strlen(DATA_SET));
}

/* Adds the cases of ONNX's layout: model.onnx beside test_data_set_0, test_data_set_1, ... */
static void add_node_test(Cases *c, const char *folder, const char *model)
{
	CheckCase *one = NULL;
	char ref[4096];
	for (int k = 0; k < 1000; k++) {
		snprintf(ref, sizeof ref, "%s/" DATA_SET "%d", folder, k);
		if (access(ref, R_OK))
			return;
		one = one ? one : cases_add(c, model);
		one->ref = realloc(one->ref, (size_t)(one->nref + 1) * sizeof *one->ref);
		if (!one->ref)
			exit(fail("out of memory"));
		one->ref[one->nref++] = strdup(ref);
	}
}

static bool add_folder(Cases *c, const char *path)
{
	struct dirent **list;
	int n = scandir(path, &list, NULL, alphasort);
	if (n < 0)
		return fail_open(path), false;
	for (int k = 0; k < n; k++) {
		char sub[4096], ref[4096];
		struct stat st;
		int len = snprintf(sub, sizeof sub, "%s/%s", path, list[k]->d_name);
		if (list[k]->d_name[0] == '.' || len >= (int)sizeof sub - 16 || stat(sub, &st))
			continue;
		if (S_ISDIR(st.st_mode)) {
			if (!is_data_set(list[k]->d_name))
				add_folder(c, sub);
		} else if (!strcmp(list[k]->d_name, "model.onnx")) {
			add_node_test(c, path, sub);
		} else if (has_suffix(sub, ".pt2") || has_suffix(sub, ".onnx")) {
			int stem = (int)(strrchr(sub, '.') - sub);
			snprintf(ref, sizeof ref, "%.*s.safetensors", stem, sub);
			if (access(ref, R_OK))
				snprintf(ref, sizeof ref, "%.*s.calls.safetensors", stem, sub);
			if (!access(ref, R_OK)) {
				CheckCase *one = cases_add(c, sub);
				one->ref = malloc(sizeof *one->ref);
				*one->ref = strdup(ref);
				one->nref = 1;
			}
		}
	}
	for (int k = 0; k < n; k++)
		free(list[k]);
	free(list);
	return true;
}

/* Adds NAME=FILE, one of several models that are compiled together. */
static bool add_joined(Cases *c, CheckOptions *o, char *arg)
{
	if (!add_entry(&o->load, arg))
		return false;
	cases_add(c, o->load.file.item[o->load.file.n - 1])->entry = arg;
	return true;
}

/* Checks that entries are of one model, and that beside it is no other. */
static bool check_entries(const Cases *c, const CheckOptions *o)
{
	for (int k = 0; k < c->n && o->load.entry.n; k++)
		if (!c->item[k].entry)
			return fail_usage("%s: among several models each is named, as in NAME=%s",
				    c->item[k].model, c->item[k].model),
			       false;
	return !o->load.entry.n || !o->entry ||
	       (fail_usage("--entry is for a model that is compiled: each NAME=FILE is checked"),
		false);
}

static bool collect(Cases *c, CheckOptions *o, int argc, char **argv)
{
	struct stat st;
	for (int k = 1; k < argc; k++) {
		if (is_entry(argv[k])) {
			if (!add_joined(c, o, argv[k]))
				return false;
			continue;
		}
		if (stat(argv[k], &st))
			return fail_open(argv[k]), false;
		if (S_ISDIR(st.st_mode)) {
			if (!add_folder(c, argv[k]))
				return false;
		} else if (has_suffix(argv[k], ".npz") || has_suffix(argv[k], ".npy")) {
			return fail_usage("%s: a reference is a .safetensors file (weft run "
					  "takes .npz)",
					  argv[k]),
			       false;
		} else if (!has_suffix(argv[k], ".safetensors")) {
			cases_add(c, argv[k]);
		} else {
			CheckCase *one = c->n ? &c->item[c->n - 1] : NULL;
			if (!one)
				return fail_usage("%s: name a model before its references",
						  argv[k]),
				       false;
			one->ref = realloc(one->ref, (size_t)(one->nref + 1) * sizeof *one->ref);
			one->ref[one->nref++] = strdup(argv[k]);
		}
	}
	if (!check_entries(c, o))
		return false;
	for (int k = 0; k < c->n && !o->load.entry.n; k++)
		c->item[k].entry = o->entry;
	for (int k = 0; k < c->n && !o->weights && !o->against; k++)
		if (c->item[k].nref == 0 && !has_suffix(c->item[k].model, ".onnx"))
			return fail_usage("%s: no reference given", c->item[k].model), false;
	return c->n || (fail_usage("nothing to check; see weft check --help"), false);
}

static void cases_free(Cases *c)
{
	for (int k = 0; k < c->n; k++) {
		for (int i = 0; i < c->item[k].nref; i++)
			free(c->item[k].ref[i]);
		free(c->item[k].ref);
		free(c->item[k].model);
	}
	free(c->item);
}

/* ---- processes ---- */

static bool start(CheckCase *c, const CheckOptions *o)
{
	c->records = tmpfile();
	c->errors = tmpfile();
	if (!c->records || !c->errors)
		return fail("cannot make a temporary file"), false;
	fflush(stdout);
	if (!is_shared_object(c->model) && !o->runner)
		backend_note(o->backend);
	c->pid = fork();
	if (c->pid < 0)
		return fail("cannot start a process"), false;
	if (c->pid == 0) {
		die_with_parent();
		progress_child(o->jobs == 1);
		dup2(fileno(c->errors), 2);
		check_case(c, o);
		fflush(NULL);
		_exit(0);
	}
	return true;
}

typedef struct {
	int passed, failed, skipped;
	double *ratio;
	int nratio;
	Json json;
	bool quiet, precision; /* precision: models compute in a lower one */
} Summary;

static void print_errors(const CheckCase *c)
{
	char text[1024];
	size_t n;
	rewind(c->errors);
	while ((n = fread(text, 1, sizeof text, c->errors)) > 0)
		fwrite(text, 1, n, stderr);
}

/* Prints "largest error 3.1e-7, 0.12 of what is allowed (output 0)". What is not finite has been
 * said. */
static void print_share(const CheckRecord *r)
{
	if (!*r->of || !isfinite(r->c.largest) || (!r->c.ok && r->c.largest == 0))
		return;
	if (r->c.largest == 0)
		printf("  no error");
	else if (isfinite(r->c.share))
		printf("  largest error %.3g, %.3g of what is allowed (%s)", r->c.largest,
		       r->c.share, r->of);
	else
		printf("  largest error %.3g, none is allowed (%s)", r->c.largest, r->of);
}

static void print_ref(Summary *s, const CheckCase *c, const CheckRecord *r)
{
	const char *ref = r->ref < c->nref ? c->ref[r->ref] : "";
	s->passed += r->c.ok;
	s->failed += !r->c.ok;
	if (s->quiet && r->c.ok)
		return;
	if (s->json.f) {
		json_open(&s->json, NULL, '{');
		json_put_string(&s->json, "model", c->model);
		json_put_string(&s->json, "reference", ref);
		json_put_bool(&s->json, "passed", r->c.ok);
		json_put_number(&s->json, "error", r->c.largest);
		json_put_number(&s->json, "allowed", r->c.largest_allowed);
		json_put_number(&s->json, "of_allowed", r->c.share);
		json_put_string(&s->json, "of", r->of);
		if (r->theirs >= 0)
			json_put_number(&s->json, "theirs", r->theirs);
		json_put_number(&s->json, "ratio", r->c.ratio);
		json_put_number(&s->json, "seconds", r->seconds);
		json_put_string(&s->json, "text", r->text);
		json_close(&s->json, '}');
		return;
	}
	printf("%s %s%s%s", r->c.ok ? "ok  " : "FAIL", c->model, *r->text ? ": " : "", r->text);
	print_share(r);
	if (r->rounded)
		printf(", operands of products rounded to 8 bits");
	if (s->precision && r->theirs >= 0)
		printf(", autocast's %.3g", r->theirs);
	if (r->c.ratio >= 0)
		printf("  ratio %.2f", r->c.ratio);
	printf("  %.3f s\n", r->seconds);
}

/* Prints what a finished case left; it failed if its process did, or says nothing of a
 * reference. */
static void finish(Summary *s, CheckCase *c)
{
	CheckRecord r;
	char first[sizeof r.text] = ""; /* what is said of the first output that failed */
	int seen = 0;
	progress_clear();
	rewind(c->records);
	while (fread(&r, sizeof r, 1, c->records) == 1) {
		if (r.skipped) {
			s->skipped++;
			seen = r.ref + 1;
		} else if (r.is_ref) {
			if (s->json.f && !*r.text)
				memcpy(r.text, first, sizeof first);
			*first = 0;
			print_ref(s, c, &r);
			seen = r.ref + 1;
		} else if (s->json.f) {
			if (!r.c.ok && *first)
				strncat(first, "; ", sizeof first - strlen(first) - 1);
			if (!r.c.ok)
				strncat(first, r.text, sizeof first - strlen(first) - 1);
		} else if (!r.c.ok) {
			printf("     %s\n", r.text);
		}
		if (!r.is_ref && r.c.ratio >= 0) {
			s->ratio = realloc(s->ratio, (size_t)(s->nratio + 1) * sizeof *s->ratio);
			s->ratio[s->nratio++] = r.c.ratio;
		}
	}
	bool crashed = WIFSIGNALED(c->status);
	if (crashed || WEXITSTATUS(c->status) || seen < (c->nref ? c->nref : 1)) {
		r = (CheckRecord){.is_ref = true, .ref = seen, .c.ratio = -1};
		snprintf(r.text, sizeof r.text,
			 crashed ? "crashed with signal %d"
				 : "the process ended early, with status %d",
			 crashed ? WTERMSIG(c->status) : WEXITSTATUS(c->status));
		print_ref(s, c, &r);
	}
	fflush(stdout);
	print_errors(c);
	fclose(c->records);
	fclose(c->errors);
}

/* Shows the progress. Of one model at a time its process goes on with the line. */
static void show_progress(const Cases *cs, const CheckOptions *o, int next, int done)
{
	if (o->jobs > 1)
		progress_show("%d of %d models checked", done, cs->n);
	else if (next < cs->n)
		progress_prefix("%d of %d, %.60s: ", next + 1, cs->n, cs->item[next].model);
}

static bool run_cases(Cases *cs, const CheckOptions *o, Summary *s)
{
	int next = 0, running = 0, printed = 0;
	while (printed < cs->n) {
		while (next < cs->n && running < o->jobs) {
			show_progress(cs, o, next, printed);
			if (!start(&cs->item[next], o))
				return false;
			next++;
			running++;
		}
		int status;
		pid_t pid = wait(&status);
		if (pid < 0)
			return fail("lost a process"), false;
		for (int k = 0; k < next; k++)
			if (cs->item[k].pid == pid) {
				cs->item[k].done = true;
				cs->item[k].status = status;
				running--;
			}
		for (; printed < next && cs->item[printed].done; printed++)
			finish(s, &cs->item[printed]);
		show_progress(cs, o, cs->n, printed);
	}
	return true;
}

static int by_value(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;
	return (a > b) - (a < b);
}

static void print_summary(Summary *s)
{
	progress_end();
	if (s->nratio)
		qsort(s->ratio, (size_t)s->nratio, sizeof *s->ratio, by_value);
	if (s->json.f) {
		json_close(&s->json, ']');
		json_put_number(&s->json, "passed", s->passed);
		json_put_number(&s->json, "failed", s->failed);
		json_put_number(&s->json, "skipped", s->skipped);
		if (s->nratio)
			json_put_number(&s->json, "median_ratio", s->ratio[s->nratio / 2]);
		json_close(&s->json, '}');
		return;
	}
	if (s->nratio)
		printf("median error / PyTorch's error: %.2f\n", s->ratio[s->nratio / 2]);
	if (s->skipped)
		printf("%d references without anything for --mode\n", s->skipped);
	printf("%d passed, %d failed\n", s->passed, s->failed);
}

static bool check_against(const CheckOptions *o)
{
	char python[4096];
	if (!o->against)
		return true;
	if (strcmp(o->against, "onnxruntime"))
		return fail_usage("--against is onnxruntime, not %s", o->against), false;
	if (!o->python)
		return fail_usage("--against needs --python ENV or $WEFT_PYTHON"), false;
	return python_find(o->python, python) ||
	       (fail_usage("--python: no Python %s", o->python), false);
}

static bool parse(CheckOptions *o, bool *quiet, bool *json, int *argc, char **argv)
{
	const char *backend = NULL, *threads = NULL, *mode = NULL, *wrt = NULL;
	const Opt opt[] = {{"--backend", OPT_STRING, &backend},
			   {"--mode", OPT_STRING, &mode},
			   {"--wrt", OPT_STRING, &wrt},
			   {"--randomness", OPT_STRING, &o->mode.randomness},
			   {"--in-dims", OPT_STRING, &o->mode.in_dims},
			   {"--out-dims", OPT_STRING, &o->mode.out_dims},
			   {"--threads", OPT_STRING, &threads},
			   {"--sizes", OPT_STRING, &o->sizes},
			   {"--jobs", OPT_INT, &o->jobs},
			   {"-j", OPT_INT, &o->jobs},
			   {"--weights", OPT_FLAG, &o->weights},
			   {"--trace-rounding", OPT_FLAG, &o->trace_rounding},
			   {"--runner", OPT_STRING, &o->runner},
			   {"--device", OPT_STRING, &o->device},
			   {"--target", OPT_STRING, &o->compile.target},
			   {"--tune", OPT_STRING, &o->compile.tune},
			   {"--no-cache", OPT_FLAG, &o->compile.no_cache},
			   {"--cc", OPT_STRING, &o->compile.cc},
			   {"--op-by-op", OPT_FLAG, &o->compile.op_by_op},
			   {"--entry", OPT_STRING, &o->entry},
			   {"--against", OPT_STRING, &o->against},
			   {"--python", OPT_STRING, &o->python},
			   {"-q", OPT_FLAG, quiet},
			   {"--json", OPT_FLAG, json},
			   {"--progress", OPT_FLAG, &o->progress},
			   LOAD_OPTIONS(&o->load),
			   {0}};
	if (!options_parse(&command_check, opt, argc, argv))
		return false;
	if (!parse_backend(backend, &o->backend) || !parse_mode(mode, wrt, &o->mode))
		return false;
	if (!check_against(o))
		return false;
	const bool runs = o->backend != RUN_INTERP && o->backend != RUN_LOOPS;
	const OptUse use[] = {
		{o->python != python_default(), o->against, "--python", "--against"},
		{o->trace_rounding, !o->mode.mode && !o->sizes, "--trace-rounding",
		 "references, without --mode and --sizes"},
		{threads && strchr(threads, ','), runs, "--threads with several numbers",
		 "compiled code: interpreters have one"}};
	if (!options_used(&command_check, use, sizeof use / sizeof *use))
		return false;
	o->nthreads = 1;
	if (threads && !(o->nthreads = parse_list("--threads", threads, o->threads, 8)))
		return false;
	return true;
}

static int run(int argc, char **argv)
{
	CheckOptions o = {
		.compile = {.size = sizeof o.compile}, .python = python_default(), .jobs = 1};
	Summary s = {0};
	Cases cases = {0};
	bool json = false;
	if (!parse(&o, &s.quiet, &json, &argc, argv))
		return argc == -1 ? 0 : 1;
	s.precision = o.load.precision.n;
	/* Several models at once already keep the processors busy. */
	o.compile.jobs = o.jobs > 1 ? 1 : 0;
	o.compile.progress = progress_phase;
	progress_begin(o.progress);
	bool ok = collect(&cases, &o, argc, argv);
	if (ok && json) {
		s.json.f = stdout;
		json_open(&s.json, NULL, '{');
		json_open(&s.json, "results", '[');
	}
	ok = ok && run_cases(&cases, &o, &s);
	if (ok)
		print_summary(&s);
	if (ok && !s.passed && !s.failed)
		ok = (fail("no reference has anything for --mode"), false);
	free(s.ratio);
	cases_free(&cases);
	return ok && s.failed == 0 ? 0 : 1;
}
