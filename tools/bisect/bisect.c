/* weft bisect */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "tools/bisect/bisect.h"

static int run(int argc, char **argv);

static const HelpRow rows[] = {
	{NULL, "What is sought", false},
	{"-o FOLDER|FILE.zip", "what to write; default MODEL.bisect.zip in the current folder",
	 true},
	{"--backend jit|c|llvm|loops|gpu-host", "see weft run", true},
	{"--against interp|onnxruntime|torch",
	 "compare with the reference interpreter (default), or with that system, in the Python of "
	 "--python: ONNX Runtime, of a model of ONNX; PyTorch, of a .pt2",
	 true},
	{"--python ENV", "the Python environment of --against (default $WEFT_PYTHON)", false},
	{"--threads N", "default 1", true},
	{"--seconds S", "how long to look for a smaller graph (default 600)", true},
	{"--json", "print what is found as JSON", true},
	PROGRESS_HELP,
	{NULL, "How it is compiled", false},
	{"--target NAME|FILE", "see weft compile", false},
	{"--tune NAME|FILE", "see weft compile", false},
	{"--cc COMMAND", "C compiler, and --backend c", false},
	{"--no-cache", "see weft compile", false},
	{"--op-by-op", "see weft compile", false},
	LOAD_HELP,
	{0}};

const Command command_bisect = {
	.name = "bisect",
	.summary = "find the smallest part of a model whose compiled result is wrong",
	.usage = "MODEL INPUTS [options]",
	.about = "Compile a model, run it on the inputs x.0, x.1, ... of a file, and compare with "
		 "the reference interpreter, as weft check compares without metadata. If a result "
		 "differs, or the process ends: find the smallest set of operators that still "
		 "does, and write an archive ready to post: graph.ir, graph.safetensors and "
		 "report.txt, with the command that repeats it. The status is 0 if nothing "
		 "differs, else 1.",
	.more = "Values that the set reads become inputs of its graph, and so do weights; where "
		"the difference needs weights that are constants, they are computed by a formula. "
		"Weights and inputs are replaced by random numbers of the same shapes, and of "
		"about the same size, if it differs then, too; the report says which numbers are "
		"the model's.",
	.row = rows,
	.run = run};

typedef struct {
	const char *model, *inputs, *out, *backend, *seconds, *against, *python;
	WeftOptions o;
	LoadArgs load;
	int threads;
	bool json, progress;
	char path[4096]; /* of the default of -o */
} BisectArgs;

/* What was found. */
typedef struct {
	const Model *m;
	bool *keep;
	uint32_t n, at; /* how many steps; that of the output that differs most */
	Comparison worst;
	const char *form; /* what weights and inputs of the archive are; NULL: there is none */
	bool repeats;     /* the command of the archive fails in a process of its own */
} FoundSteps;

/* ---- texts ---- */

typedef struct {
	char *data;
	size_t n, room;
} Text;

static void add(Text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(Text *t, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	const int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (t->n + (size_t)n + 1 > t->room) {
		t->room = 2 * (t->n + (size_t)n) + 256;
		t->data = realloc(t->data, t->room);
		if (!t->data)
			exit(fail("out of memory"));
	}
	va_start(ap, fmt);
	vsnprintf(t->data + t->n, (size_t)n + 1, fmt, ap);
	va_end(ap);
	t->n += (size_t)n;
}

/* Adds "%conv2d_3 (aten.conv2d, net.py:12 in layer.0)". */
static void add_step(Text *t, const Model *m, uint32_t k)
{
	const WeftNode n = m->step[k].node;
	const char *line = weft_node_line(m->w, n);
	add(t, "%%%s (%s%s%s)", bisect_name(m, k), bisect_operator(m, k), *line ? ", " : "",
	    line);
}

/* Adds the error of the output that differs most; of a process that ended nothing is known. */
static void add_error(Text *t, const Judge *j, const FoundSteps *f)
{
	if (j->crashes)
		add(t, "its process ends");
	else if (*f->worst.why)
		add(t, "%s", f->worst.why);
	else
		add(t, "largest error %.3g, %.3g of what is allowed", f->worst.largest,
		    f->worst.share);
}

static const char *backend_name(const BisectArgs *a)
{
	RunBackend b;
	parse_backend(a->backend, &b);
	switch (backend_resolve(b, &a->o)) {
	case RUN_JIT:
		return "jit";
	case RUN_LLVM:
		return "llvm";
	case RUN_LOOPS:
		return "loops";
	case RUN_GPU_HOST:
		return "gpu-host";
	default:
		return "c";
	}
}

enum { MOST_WORDS = 3 * MAX_LIST };
typedef struct {
	const char *word[MOST_WORDS];
	int n;
	char threads[16];
} Words;

/* Lists the words of the command that repeats the difference, on these files. */
static void list_words(Words *w, const BisectArgs *a, const char *graph, const char *tensors)
{
	const char *const first[] = {"weft", "check", graph, tensors, "--backend", backend_name(a)},
		   *const pair[][2] = {{"--threads", a->threads == 1 ? NULL : w->threads},
				       {"--target", a->o.target},
				       {"--tune", a->o.tune},
				       {"--cc", a->o.cc}};
	snprintf(w->threads, sizeof w->threads, "%d", a->threads);
	w->n = sizeof first / sizeof *first;
	memcpy(w->word, first, sizeof first);
	for (size_t k = 0; k < sizeof pair / sizeof *pair; k++)
		for (int i = 0; pair[k][1] && i < 2; i++)
			w->word[w->n++] = pair[k][i];
	if (a->o.op_by_op)
		w->word[w->n++] = "--op-by-op";
	for (uint32_t k = 0; k < a->load.ops.n; k++) {
		w->word[w->n++] = "--ops";
		w->word[w->n++] = a->load.ops.item[k];
	}
	w->word[w->n] = NULL;
}

static void add_command(Text *t, const BisectArgs *a)
{
	Words w;
	list_words(&w, a, "graph.ir", "graph.safetensors");
	for (int k = 0; k < w.n; k++)
		add(t, strchr(w.word[k], ' ') ? "%s'%s'" : "%s%s", k ? " " : "", w.word[k]);
}

static void add_machine(Text *t, Weft *w)
{
	static const char *const wanted[] = {"processor", "back end llvm", "C compiler"};
	struct utsname u;
	uint32_t n;
	const WeftFinding *f = weft_findings(w, &n);
	add(t, "weft %s\n", WEFT_VERSION);
	if (uname(&u) == 0)
		add(t, "system: %s %s, %s\n", u.sysname, u.release, u.machine);
	for (uint32_t k = 0; f && k < n; k++)
		for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
			if (!strcmp(f[k].name, wanted[i]))
				add(t, "%s: %s\n", f[k].name, f[k].what);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static const char not_repeated[] =
	"\n(that alone does not repeat it: it depends on what has run before in the process)";

static void add_report(Text *t, const BisectArgs *a, const Judge *j, const FoundSteps *f)
{
	const Model *m = f->m;
	add(t, "A compiled result that is not that of %s.\n\nrepeat: ",
	    m->by_peer ? a->against : "the reference interpreter");
	add_command(t, a);
	add(t, "%s\ndifference: ", f->repeats ? "" : not_repeated);
	add_error(t, j, f);
	add(t, "\n%u of %u operators of %s:\n", (unsigned)f->n, (unsigned)m->ncall,
	    base_name(a->model));
	for (uint32_t k = 0; k < m->n; k++)
		if (f->keep[k] && bisect_counts(m, k)) {
			add(t, "    ");
			add_step(t, m, k);
			add(t, "\n");
		}
	add(t, "weights and inputs: %s\n\n", f->form);
	add_machine(t, m->w);
}

/* ---- the archive ---- */

static const struct {
	Form form;
	const char *what;
} forms[] = {
	{{AS_INPUTS, DRAW_VALUES, DRAW_VALUES, false}, "random numbers, all of them inputs"},
	{{AS_FORMULAS, DRAW_VALUES, DRAW_VALUES, false},
	 "random numbers; weights are constants, by a formula"},
	{{AS_INPUTS, DRAW_VALUES, KEEP_VALUES, false},
	 "weights are random numbers and inputs of the graph; values of the model are its other "
	 "inputs"},
	{{AS_FORMULAS, DRAW_VALUES, KEEP_VALUES, false},
	 "weights are constants, by a formula; inputs are values of the model"},
	{{AS_INPUTS, KEEP_VALUES, KEEP_VALUES, false},
	 "those of the model, all of them inputs: it does not differ with random ones"}};
enum { NFORM = sizeof forms / sizeof *forms };

/* Whether the command fails on these files, which are there for a while. */
static bool repeats(const BisectArgs *a, Weft *w, const Piece *p, const char *graph)
{
	const char *base = getenv("TMPDIR");
	char folder[4000], path[2][4096];
	Words words;
	snprintf(folder, sizeof folder, "%s/weft-bisect-XXXXXX", base && *base ? base : "/tmp");
	if (!mkdtemp(folder))
		return fail("cannot make a temporary folder %s", folder), false;
	weft_temporary(folder);
	const Archive files = {folder, "", graph};
	snprintf(path[0], sizeof *path, "%s/graph.ir", folder);
	snprintf(path[1], sizeof *path, "%s/graph.safetensors", folder);
	list_words(&words, a, path[0], path[1]);
	const bool failed = archive_write(w, p, &files) && fails_again(words.word);
	archive_remove(folder);
	weft_not_temporary(folder);
	return failed;
}

/* Writes the first form in which the piece differs. Returns false, after a message, where it
 * cannot be written; f->form stays NULL where there is no such form. */
static bool write_archive(const BisectArgs *a, Judge *j, FoundSteps *f)
{
	const Model *m = f->m;
	/* of other numbers than the model's the other system has not given the results */
	size_t k = m->by_peer ? NFORM - 1 : 0;
	while (k < NFORM && judge(j, m, f->keep, forms[k].form, NULL, &f->worst, &f->at) != DIFFERS)
		k++;
	if (k == NFORM)
		return true;
	Piece p;
	Text report = {0};
	f->form = m->by_peer ? "those of the model, all of them inputs" : forms[k].what;
	const char *graph = piece_make(m, f->keep, forms[k].form, &p) ? piece_print(m, &p) : NULL;
	bool ok = graph && piece_interpret(m, &p);
	if (!ok)
		fail_messages(m->w);
	f->repeats = ok && repeats(a, m->w, &p, graph);
	add_report(&report, a, j, f);
	const Archive all = {a->out, report.data, graph};
	ok = ok && archive_write(m->w, &p, &all);
	free(report.data);
	piece_free(&p);
	return ok;
}

/* ---- what is printed ---- */

static void print_found(const BisectArgs *a, const Judge *j, const FoundSteps *f)
{
	Text t = {0};
	add(&t, "%s: ", a->model);
	add_step(&t, f->m, f->at);
	add(&t, " differs: ");
	add_error(&t, j, f);
	add(&t, "\n%u of %u operators, after %u trials:", (unsigned)f->n, (unsigned)f->m->ncall,
	    (unsigned)j->trials);
	for (uint32_t k = 0; k < f->m->n; k++)
		if (f->keep[k] && bisect_counts(f->m, k))
			add(&t, " %s", bisect_operator(f->m, k));
	if (f->form) {
		add(&t, "\nweights and inputs: %s\n%s: graph.ir, graph.safetensors, report.txt\n",
		    f->form, a->out);
		add_command(&t, a);
		add(&t, "%s\n", f->repeats ? "" : not_repeated);
	} else {
		add(&t,
		    "\nno archive: it differs only with weights that are the model's constants, "
		    "which the text of a graph does not have\n");
	}
	fputs(t.data, stdout);
	free(t.data);
}

static void print_json(const BisectArgs *a, const Judge *j, const FoundSteps *f)
{
	Json json = {.f = stdout};
	Text command = {0};
	add_command(&command, a);
	json_open(&json, NULL, '{');
	json_put_string(&json, "model", a->model);
	json_put_bool(&json, "differs", f->n);
	json_put_number(&json, "trials", j->trials);
	json_put_number(&json, "of", f->m->ncall);
	json_open(&json, "operators", '[');
	for (uint32_t k = 0; f->n && k < f->m->n; k++) {
		const WeftNode n = f->m->step[k].node;
		if (!f->keep[k] || !bisect_counts(f->m, k))
			continue;
		json_open(&json, NULL, '{');
		json_put_string(&json, "name", bisect_name(f->m, k));
		json_put_string(&json, "operator", bisect_operator(f->m, k));
		json_put_string(&json, "line", weft_node_line(f->m->w, n));
		json_close(&json, '}');
	}
	json_close(&json, ']');
	if (f->n) {
		json_put_bool(&json, "crashes", j->crashes);
		json_put_number(&json, "error", f->worst.largest);
		json_put_number(&json, "of_allowed", f->worst.share);
	}
	if (f->form) {
		json_put_string(&json, "archive", a->out);
		json_put_string(&json, "values", f->form);
		json_put_string(&json, "command", command.data);
		json_put_bool(&json, "repeats", f->repeats);
	}
	json_close(&json, '}');
	free(command.data);
}

/* ---- the command ---- */

/* Returns false after a message. Sets f->n to 0 where nothing differs. */
static bool search(const BisectArgs *a, Judge *j, FoundSteps *f)
{
	const Model *m = f->m;
	const Form same = {AS_CONSTANTS, KEEP_VALUES, KEEP_VALUES, false};
	progress_show("compiling the whole model");
	const Verdict whole = judge(j, m, NULL, same, NULL, &f->worst, &f->at);
	if (whole != DIFFERS)
		return whole == AGREES;
	for (uint32_t k = 0; k < m->n; k++)
		f->n += f->keep[k] = m->step[k].kind == WEFT_NODE_CALL && m->step[k].cuts;
	if (judge(j, m, f->keep, same, NULL, &f->worst, &f->at) != DIFFERS)
		return fail("%s differs, but not when values within it are outputs, too: it cannot "
			    "be cut",
			    a->model),
		       false;
	reduce(j, m, f->keep);
	judge(j, m, f->keep, same, NULL, &f->worst, &f->at);
	bisect_close(m, f->keep);
	f->n = 0;
	for (uint32_t k = 0; k < m->n; k++)
		f->n += f->keep[k] && bisect_counts(m, k);
	progress_show("the archive");
	return write_archive(a, j, f);
}

static int bisect(const BisectArgs *a, Judge *j, const Model *m)
{
	FoundSteps f = {.m = m, .keep = calloc(m->n + 1, sizeof *f.keep)};
	if (!f.keep)
		return fail("out of memory");
	const bool ok = search(a, j, &f);
	progress_end();
	if (ok && a->json)
		print_json(a, j, &f);
	else if (ok && f.n)
		print_found(a, j, &f);
	else if (ok)
		printf("no difference: compiled (%s), all results of %s are those of %s\n",
		       backend_name(a), a->model, m->by_peer ? a->against : "the interpreter");
	free(f.keep);
	return ok && !f.n ? 0 : 1;
}

static int bisect_file(BisectArgs *a, Judge *j)
{
	Runner r;
	Model m = {0};
	const WeftTensors *peer = NULL;
	const bool other = a->against && strcmp(a->against, "interp") != 0;
	const RunnerOptions how = {.backend = RUN_INTERP, .load = &a->load};
	progress_show("reading %s", a->model);
	if (!runner_open(&r, a->model, &how))
		return 1;
	int code = 1;
	const WeftTensors *t = weft_tensors_read(r.w, a->inputs);
	WeftTensor *in = calloc(r.ninput + 1, sizeof *in);
	if (!t)
		fail_messages(r.w);
	bool ok = t && in && runner_takes_all(&r, t, a->inputs) &&
		  runner_inputs(&r, t, a->inputs, in);
	if (ok && other) {
		progress_show("%s", a->against);
		peer = peer_values(r.w, a->python, a->against, a->model, in, r.ninput);
		ok = peer;
	}
	progress_show("interpreting");
	if (ok && model_read(&m, r.w, r.one, a->model, in, r.ninput, peer))
		code = bisect(a, j, &m);
	model_free(&m);
	free(in);
	runner_close(&r);
	return code;
}

static bool check_peer(const BisectArgs *a)
{
	char python[4096];
	const char *peer = a->against && strcmp(a->against, "interp") ? a->against : NULL;
	const OptUse use[] = {{a->python != python_default(), peer, "--python", "--against"}};
	if (peer && strcmp(peer, "onnxruntime") && strcmp(peer, "torch"))
		return fail_usage("--against is interp, onnxruntime or torch, not %s", peer), false;
	if (!options_used(&command_bisect, use, 1))
		return false;
	if (peer && !has_suffix(a->model, *peer == 't' ? ".pt2" : ".onnx"))
		return fail("%s: --against %s is for models of %s", a->model, peer,
			    *peer == 't' ? "torch.export (.pt2)" : "ONNX"),
		       false;
	if (peer && (a->load.mode.n || a->load.precision.n))
		return fail_usage("%s is for --against interp: %s runs the file as it is",
				  a->load.mode.n ? "--set-mode" : "--precision", peer),
		       false;
	if (peer && !a->python)
		return fail_usage("--against needs --python ENV or $WEFT_PYTHON"), false;
	return !peer || python_find(a->python, python) ||
	       (fail_usage("--python: no Python %s", a->python), false);
}

static bool parse(BisectArgs *a, Judge *j, int *argc, char **argv)
{
	const Opt opt[] = {{"-o", OPT_STRING, &a->out},
			   {"--backend", OPT_STRING, &a->backend},
			   {"--against", OPT_STRING, &a->against},
			   {"--python", OPT_STRING, &a->python},
			   {"--threads", OPT_INT, &a->threads},
			   {"--seconds", OPT_STRING, &a->seconds},
			   {"--target", OPT_STRING, &a->o.target},
			   {"--tune", OPT_STRING, &a->o.tune},
			   {"--cc", OPT_STRING, &a->o.cc},
			   {"--no-cache", OPT_FLAG, &a->o.no_cache},
			   {"--op-by-op", OPT_FLAG, &a->o.op_by_op},
			   {"--json", OPT_FLAG, &a->json},
			   {"--progress", OPT_FLAG, &a->progress},
			   LOAD_OPTIONS(&a->load),
			   {0}};
	char *end;
	if (!options_parse(&command_bisect, opt, argc, argv))
		return false;
	if (*argc != 3)
		return fail_usage("bisect takes a model and a file of inputs; see weft bisect "
				  "--help"),
		       false;
	a->model = argv[1];
	a->inputs = argv[2];
	const double seconds = strtod(a->seconds, &end);
	if (!(seconds > 0 && seconds < 1e7) || *end)
		return fail_usage("--seconds takes a positive number of seconds, not %s",
				  a->seconds),
		       false;
	if (!check_peer(a))
		return false;
	if (is_shared_object(a->model))
		return fail("%s is compiled: weft bisect is for model files", a->model), false;
	if (!parse_backend(a->backend, &j->run.backend))
		return false;
	if (j->run.backend == RUN_INTERP)
		return fail_usage("--backend is jit, c, llvm, loops or gpu-host: the interpreter "
				  "is what is compared with"),
		       false;
	j->end = now() + seconds;
	return runner_backend_takes(j->run.backend, &a->o);
}

/* Names the output: "net.bisect.zip" of "models/net.pt2". */
static void default_out(BisectArgs *a)
{
	const char *name = base_name(a->model), *dot = strrchr(name, '.');
	snprintf(a->path, sizeof a->path, "%.*s.bisect.zip",
		 (int)(dot && dot > name ? dot - name : (long)strlen(name)), name);
	a->out = a->path;
}

static int run(int argc, char **argv)
{
	BisectArgs a = {.o = {.size = sizeof a.o},
			.threads = 1,
			.seconds = "600",
			.python = python_default()};
	Judge j = {.run = {.compile = &a.o, .load = &a.load}};
	if (!parse(&a, &j, &argc, argv))
		return argc == -1 ? 0 : 1;
	if (!a.out)
		default_out(&a);
	if (!keep_input(a.out, a.model) || !keep_input(a.out, a.inputs))
		return 1;
	j.threads = a.threads;
	progress_begin(a.progress);
	return bisect_file(&a, &j);
}
