/* weft compile */
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tool.h"
#include "tools/train/step.h"

static int run(int argc, char **argv);

static const HelpRow rows[] = {
	{NULL, "What is written", false},
	{"-o OUT",
	 "the file to write; - is standard output. Links are followed, devices and FIFOs written "
	 "into; never over an input",
	 true},
	{"--emit LIST",
	 "what to write, with commas between; default so. Of several, so is OUT, "
	 "and the others lie beside it: OUT without .so as a folder of C, and with .h, .ir, "
	 ".program, .loops, .o, .a, "
	 ".ll, .s. A list of: so, obj, a, c, llvm, asm, header, ir, program, loops, schedules, "
	 "cuda, hip",
	 true},
	{"--weights embed|file",
	 "within the shared object (default), or a file beside it: OUT without .so, and .weights",
	 true},
	{"--replaceable-weights", "parameters can be replaced at run time", false},
	{"--cancellable",
	 "calls of a model with state can end early in any phase (WeftContext.cancel, .deadline): "
	 "they keep the old values of the state that they replace",
	 false},
	{"--duplicate-weights",
	 "a constant in each layout that some kernel reads best; else a large one is stored once",
	 false},
	{"--name NAME", "of the model (default: the file's)", false},
	{"--symbol NAME", "the exported function (default weft_model)", false},
	{"--dump PASS", "print the graph after that pass, or after \"all\"", false},
	{"--json", "print the summary as JSON", false},
	PROGRESS_HELP,
	{NULL, "How it is compiled", false},
	{"--target NAME|FILE",
	 "native (default), one that weft show --targets lists, or a .json file; "
	 "x86-64-v2,v3,v4: several levels of one family in one file",
	 true},
	{"--tune NAME|FILE",
	 "the machine whose costs decide: zen4, skylake-x, ..., or a .json file (default: what the "
	 "target assumes)",
	 false},
	{"--backend c|llvm|NAME",
	 "of a shared object: a C compiler, or LLVM and a linker (default where weft has LLVM); or "
	 "one of a library, which makes a file or folder of its own",
	 false},
	{"--backend-library FILE",
	 "back ends of the user, of a shared library that exports weft_backends_of (repeatable; "
	 "weft_backend.h)",
	 false},
	{"--cc COMMAND", "C compiler (default $CC, else cc)", false},
	{"--link FILE|NAME",
	 "a library of the functions that operators of --ops call: a file, or mylib for "
	 "libmylib.so (repeatable)",
	 false},
	{"--no-cache", "neither use nor fill the cache of objects ($WEFT_CACHE, ~/.cache/weft)",
	 false},
	{"--op-by-op", "no fusion, no planning: the baseline of `weft bench`", false},
	{"-j N", "C compilers, or threads of LLVM, at once (default: one per processor)", false},
	{NULL, "Gradients", false},
	{"--grad[=LIST]",
	 "three entries: run; forward_saving, which also gives saved.0, saved.1, ...; and "
	 "backward, which takes the inputs, those, and cotangents of the outputs, and gives "
	 "gradients. LIST is what is differentiated by: inputs, params (default: both), names",
	 true},
	{"--memory-budget X",
	 "with --grad: save no more than this part (0..1) of what is saved without, or so many "
	 "bytes (200k, 64M); more is computed again then",
	 false},
	{NULL, "Training", false},
	{"--train OPTIMIZER",
	 "two entries: step, which computes the loss, gradients and new parameters, and eval. "
	 "OPTIMIZER is as in \"adamw(lr=input, weight_decay=0.01)\"; a number is itself, "
	 "input, or a schedule such as cosine(3e-4, warmup=100, steps=10000)",
	 true},
	{"--accumulate",
	 "with --train: two entries in place of step: accumulate adds gradients of a batch, apply "
	 "updates by their sum",
	 false},
	STEP_HELP,
	{"--on-nan skip", "a step whose loss or gradient is not finite changes nothing", false},
	LOAD_HELP,
	{0}};

const Command command_compile = {
	.name = "compile",
	.summary = "turn a model into a shared object or C code",
	.usage = "MODEL | NAME=MODEL... -o OUT [options]",
	.about = "Compile MODEL (.pt2, .onnx, or the text form of a graph); of several, each with "
		 "a name, one model with several entries, which share the weights that are equal.",
	.more = "",
	.row = rows,
	.run = run};

enum { NKIND = 13, NO_EMIT = -1 /* the shared object is weft_compile's */ };

/* One thing to write. */
typedef struct {
	const struct Kind *kind;
	char path[4096];
} EmittedItem;

typedef struct {
	const char *out, *emit, *weights, *dump, *backend, *grad, *budget;
	WeftOptions o;
	LoadArgs load;
	StepArgs step;
	StringList link, backend_library;
	EmittedItem item[NKIND];
	int nitem, jobs;
	bool json, quiet, progress;
} CompileArgs;

/* ---- what is written ---- */

typedef struct Kind {
	const char *name, *ext;
	int emit; /* WeftEmit */
} Kind;

static const Kind kinds[] = {{"so", ".so", NO_EMIT},
			     {"obj", ".o", WEFT_EMIT_OBJECT},
			     {"a", ".a", WEFT_EMIT_ARCHIVE},
			     {"c", "", WEFT_EMIT_C},
			     {"llvm", ".ll", WEFT_EMIT_LLVM},
			     {"asm", ".s", WEFT_EMIT_ASM},
			     {"header", ".h", WEFT_EMIT_HEADER},
			     {"ir", ".ir", WEFT_EMIT_IR},
			     {"program", ".program", WEFT_EMIT_PROGRAM},
			     {"loops", ".loops", WEFT_EMIT_LOOPS},
			     {"schedules", ".schedules", WEFT_EMIT_SCHEDULES},
			     {"cuda", ".cu", WEFT_EMIT_CUDA},
			     {"hip", ".hip", WEFT_EMIT_HIP}};

/* Returns the kind of that name of n bytes, in the list `all`. */
static const Kind *find_kind(const char *all, const char *name, size_t n)
{
	for (size_t k = 0; k < NKIND; k++)
		if (strlen(kinds[k].name) == n && !strncmp(kinds[k].name, name, n))
			return &kinds[k];
	if (!n)
		return fail_usage("--emit %s: a name is missing", all), NULL;
	fail_usage("--emit %.*s: there are so, obj, a, c, llvm, asm, header, ir, program, loops, "
	     "schedules, cuda, hip",
	     (int)n, name);
	return NULL;
}

static bool parse_emit(CompileArgs *a)
{
	for (const char *p = a->emit; *p || a->nitem == 0;) {
		size_t n = strcspn(p, ",");
		const Kind *kind = find_kind(a->emit, p, n);
		if (!kind)
			return false;
		for (int k = 0; k < a->nitem; k++)
			if (a->item[k].kind == kind)
				return fail_usage("--emit %s: %s is named twice", a->emit,
						  kind->name),
				       false;
		a->item[a->nitem++].kind = kind;
		p += n;
		if (*p == ',' && !p[1])
			return find_kind(a->emit, p, 0);
		p += *p == ',';
	}
	return true;
}

/* Returns the length of OUT without an extension that one of the kinds has; others belong to the
 * name, as in model.v2. */
static size_t stem_length(const char *out)
{
	size_t n = strlen(out);
	for (size_t k = 0; k < NKIND; k++) {
		size_t e = strlen(kinds[k].ext);
		if (e && n > e && out[n - e - 1] != '/' && !strcmp(out + n - e, kinds[k].ext))
			return n - e;
	}
	return n;
}

/* Names the files. One item is OUT itself; several lie beside each other, but for the shared
 * object, which is OUT. */
static bool place(CompileArgs *a)
{
	size_t n = stem_length(a->out);
	for (int k = 0; k < a->nitem; k++) {
		EmittedItem *i = &a->item[k];
		const Kind *kind = i->kind;
		bool itself = a->nitem == 1 || kind->emit == NO_EMIT;
		int len = itself ? snprintf(i->path, sizeof i->path, "%s", a->out)
				 : snprintf(i->path, sizeof i->path, "%.*s%s%s", (int)n, a->out,
					    *kind->ext || a->out[n] ? "" : "_c", kind->ext);
		if (len >= (int)sizeof i->path)
			return fail_usage("-o: the name is too long"), false;
		for (int j = 0; j < k; j++)
			if (!strcmp(a->item[j].path, i->path) ||
			    same_file(a->item[j].path, i->path))
				return fail_usage("-o: %s and %s would both be written to %s",
						  kind->name, a->item[j].kind->name, i->path),
				       false;
	}
	return true;
}

/* Handles "-": the output goes where the summary goes otherwise. */
static bool to_stdout(CompileArgs *a)
{
	if (strcmp(a->out, "-") != 0)
		return true;
	if (a->nitem > 1 || a->item[0].kind->emit == WEFT_EMIT_C)
		return fail_usage("-o -: standard output takes one file, not several or a folder"),
		       false;
	if (a->json || a->dump)
		return fail_usage("-o -: standard output takes one file, and not %s beside it",
			    a->json ? "--json" : "--dump"),
		       false;
	if (a->o.weights == WEFT_WEIGHTS_FILE && a->item[0].kind->emit == NO_EMIT)
		return fail_usage("-o -: no file of weights can lie beside standard output"), false;
	a->out = "/dev/stdout";
	a->quiet = true;
	return true;
}

static bool emit_all(Weft *w, const WeftGraph *g, const CompileArgs *a)
{
	for (int k = 0; k < a->nitem; k++) {
		const EmittedItem *i = &a->item[k];
		bool ok = i->kind->emit == NO_EMIT
				  ? weft_compile(w, g, &a->o, i->path)
				  : weft_emit(w, g, &a->o, (WeftEmit)i->kind->emit, i->path);
		if (!ok)
			return fail_messages(w), false;
		if (a->dump && k == 0)
			progress_clear(), fputs(weft_dump(w), stdout);
	}
	return true;
}

/* ---- the summary ---- */

/* Returns the peak memory of this process, or the largest of its compilers and linkers. */
static double peak_memory(void)
{
	struct rusage children;
	getrusage(RUSAGE_CHILDREN, &children);
	double self = peak_bytes(), others = 1024.0 * (double)children.ru_maxrss;
	return self > others ? self : others;
}

static void summary_json(const WeftReport *r, double seconds)
{
	Json j = {.f = stdout};
	json_open(&j, NULL, '{');
	json_put_number(&j, "operators", r->operators);
	json_put_number(&j, "kernels", r->kernels);
	json_put_number(&j, "distinct", r->distinct);
	json_put_number(&j, "flops", r->flops);
	json_put_number(&j, "weight_bytes", (double)r->weight_bytes);
	json_put_number(&j, "copied_bytes", (double)r->copied_bytes);
	json_put_number(&j, "workspace_bytes", (double)r->workspace_bytes);
	json_put_number(&j, "code_bytes", (double)r->code_bytes);
	json_put_number(&j, "units", r->objects);
	json_put_number(&j, "cached", r->cached);
	json_put_number(&j, "peak_bytes", peak_memory());
	json_put_number(&j, "seconds", seconds);
	json_open(&j, "phases", '{');
	for (uint32_t k = 0; k < r->nphase; k++)
		json_put_number(&j, r->phase[k].name, r->phase[k].seconds);
	json_close(&j, '}');
	json_open(&j, "entries", '[');
	for (uint32_t k = 0; k < r->nentry; k++) {
		const WeftEntryReport *e = &r->entry[k];
		json_open(&j, NULL, '{');
		json_put_string(&j, "name", e->name);
		json_put_number(&j, "operators", e->operators);
		json_put_number(&j, "kernels", e->nkernel);
		json_put_number(&j, "flops", e->flops);
		json_put_number(&j, "workspace_bytes", (double)e->workspace_bytes);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_open(&j, "state", '[');
	for (uint32_t k = 0; k < r->nstate; k++) {
		const WeftStateReport *s = &r->state[k];
		json_open(&j, NULL, '{');
		json_put_string(&j, "name", s->name);
		json_put_number(&j, "bytes", (double)s->bytes);
		json_put_string(&j, "written_by", s->written_by);
		json_put_string(&j, "read_by", s->read_by);
		json_put_string(&j, "constant_in", s->constant_in);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
}

/* Prints what entries share by writing it. */
static void summary_state(const WeftReport *r)
{
	enum { LINES = 8 };
	char a[32];
	for (uint32_t k = 0; r->nentry > 1 && k < r->nstate; k++) {
		const WeftStateReport *s = &r->state[k];
		if (k == LINES && r->nstate > LINES + 1) {
			printf("  and %u more; --json lists them\n", r->nstate - k);
			return;
		}
		printf("  state %s, %sB: written by %s", s->name, human((double)s->bytes, a),
		       *s->written_by ? s->written_by : "none");
		if (*s->read_by)
			printf(", read by %s", s->read_by);
		if (*s->constant_in)
			printf(" (no constant in %s, so not packed there)", s->constant_in);
		putchar('\n');
	}
}

static void summary_entries(const WeftReport *r)
{
	char a[32], b[32];
	for (uint32_t k = 0; r->nentry > 1 && k < r->nentry; k++) {
		const WeftEntryReport *e = &r->entry[k];
		printf("  %s: %u operators in %u kernels, %sFLOP, workspace %sB\n", e->name,
		       e->operators, e->nkernel, human(e->flops, a),
		       human((double)e->workspace_bytes, b));
	}
}

static void summary(const WeftReport *r, const char *out, double seconds)
{
	char a[32], b[32], c[32];
	printf("%s: ", out);
	if (r->nentry > 1)
		printf("%u entries, ", r->nentry);
	printf("%u operators in %u kernels (%u distinct), %sFLOP\n", r->operators, r->kernels,
	       r->distinct, human(r->flops, a));
	summary_entries(r);
	summary_state(r);
	printf("  weights %sB", human((double)r->weight_bytes, a));
	if (r->copied_bytes)
		printf(" (%sB of them in a second layout)", human((double)r->copied_bytes, a));
	printf(", workspace %sB", human((double)r->workspace_bytes, b));
	if (r->code_bytes) /* else none was compiled */
		printf(", code %sB", human((double)r->code_bytes, c));
	putchar('\n');
	printf("  %.2f s:", seconds);
	for (uint32_t k = 0; k < r->nphase; k++)
		printf("%s %s %.2f", k ? "," : "", r->phase[k].name, r->phase[k].seconds);
	if (r->objects)
		printf("; %u of %u units from the cache", r->cached, r->objects);
	printf("; peak memory %sB\n", human(peak_memory(), a));
}

static bool emits(const CompileArgs *a, const char *name)
{
	for (int k = 0; k < a->nitem; k++)
		if (!strcmp(a->item[k].kind->name, name))
			return true;
	return false;
}

/* Whether a back end makes the shared object, and what is of its own kind. */
static bool by_backend(const CompileArgs *a)
{
	const bool llvm = emits(a, "obj") || emits(a, "a") || emits(a, "llvm") || emits(a, "asm");
	return emits(a, "so") || (a->backend && ((!strcmp(a->backend, "llvm") && llvm) ||
						 (!strcmp(a->backend, "c") && emits(a, "c"))));
}

static bool check_use(const CompileArgs *a)
{
	static const char *const export[] = {"so", "obj", "a", "c", "llvm", "asm", "header"};
	bool exports = false;
	for (size_t k = 0; k < sizeof export / sizeof *export; k++)
		exports |= emits(a, export[k]);
	const OptUse use[] = {
		{a->budget, a->grad, "--memory-budget", "--grad"},
		{step_option_given(&a->step), a->step.optimizer, step_option_given(&a->step),
		 "--train"},
		{a->step.on_nan, a->step.optimizer, "--on-nan", "--train"},
		{a->step.optimizer, !a->grad, "--train", "a model without --grad"},
		{a->backend, by_backend(a), "--backend", "--emit so, and what it can emit itself"},
		{a->backend_library.n, a->backend, "--backend-library", "--backend NAME"},
		{!strcmp(a->weights, "file"), emits(a, "so"), "--weights file", "--emit so"},
		{a->o.cc, emits(a, "so"), "--cc", "--emit so"},
		{a->o.symbol, exports, "--symbol", "what defines or declares a function"}};
	return options_used(&command_compile, use, sizeof use / sizeof *use);
}

static bool parse(CompileArgs *a, int *argc, char **argv)
{
	const Opt opt[] = {{"-o", OPT_STRING, &a->out},
			   {"--emit", OPT_STRING, &a->emit},
			   {"--grad", OPT_MAYBE, &a->grad},
			   {"--memory-budget", OPT_STRING, &a->budget},
			   {"--train", OPT_STRING, &a->step.optimizer},
			   {"--accumulate", OPT_FLAG, &a->step.accumulate},
			   {"--on-nan", OPT_STRING, &a->step.on_nan},
			   STEP_OPTIONS(&a->step),
			   {"--target", OPT_STRING, &a->o.target},
			   {"--tune", OPT_STRING, &a->o.tune},
			   {"--backend", OPT_STRING, &a->backend},
			   {"--weights", OPT_STRING, &a->weights},
			   {"--replaceable-weights", OPT_FLAG, &a->o.replaceable},
			   {"--duplicate-weights", OPT_FLAG, &a->o.duplicate_weights},
			   {"--cancellable", OPT_FLAG, &a->o.cancellable},
			   {"--op-by-op", OPT_FLAG, &a->o.op_by_op},
			   {"--name", OPT_STRING, &a->o.name},
			   {"--symbol", OPT_STRING, &a->o.symbol},
			   {"--cc", OPT_STRING, &a->o.cc},
			   {"--no-cache", OPT_FLAG, &a->o.no_cache},
			   {"--dump", OPT_STRING, &a->dump},
			   {"-j", OPT_INT, &a->jobs},
			   {"--json", OPT_FLAG, &a->json},
			   {"--progress", OPT_FLAG, &a->progress},
			   LOAD_OPTIONS(&a->load),
			   {"--link", OPT_LIST, &a->link},
			   {"--backend-library", OPT_LIST, &a->backend_library},
			   {0}};
	if (!options_parse(&command_compile, opt, argc, argv))
		return false;
	if (!take_entries(&a->load, argc, argv))
		return false;
	if (*argc != (a->load.entry.n ? 1 : 2))
		return fail_usage("compile takes one model file, or several as NAME=FILE; see weft "
			    "compile --help"),
		       false;
	if (!a->out)
		return fail_usage("compile: name the result with -o"), false;
	if (a->grad && a->load.entry.n)
		return fail_usage("--grad makes entries of one model file, not of several as "
				  "NAME=FILE"),
		       false;
	if (a->step.optimizer && a->load.entry.n)
		return fail_usage("--train makes entries of one model file, not of several as "
				  "NAME=FILE"),
		       false;
	if (a->step.on_nan && strcmp(a->step.on_nan, "skip"))
		return fail_usage("--on-nan of compile is skip, not %s", a->step.on_nan), false;
	if (strcmp(a->weights, "embed") && strcmp(a->weights, "file"))
		return fail_usage("--weights is embed or file, not %s", a->weights), false;
	if (!parse_emit(a) || !check_use(a))
		return false;
	a->o.backend_name = a->backend;
	a->o.weights = a->weights[0] == 'f' ? WEFT_WEIGHTS_FILE : WEFT_WEIGHTS_EMBED;
	a->o.jobs = (uint32_t)a->jobs;
	a->o.nlink = a->link.n;
	a->o.link = a->link.item;
	a->o.dump = a->dump;
	return to_stdout(a) && place(a);
}

/* Checks, before anything is written, that no output is an input. */
static bool keep_inputs(const CompileArgs *a, const char *model)
{
	for (int k = 0; k < a->nitem; k++) {
		const char *out = a->item[k].path;
		if (!keep_input(out, model) || !keep_input(out, a->o.target) ||
		    !keep_input(out, a->o.tune))
			return false;
		for (uint32_t e = 0; e < a->load.entry.n; e++)
			if (!keep_input(out, a->load.file.item[e]))
				return false;
	}
	return true;
}

static int run(int argc, char **argv)
{
	CompileArgs a = {.emit = "so", .weights = "embed", .o = {.size = sizeof a.o}};
	const double start = now();
	if (!parse(&a, &argc, argv))
		return argc == -1 ? 0 : 1;
	const char *model = argc > 1 ? argv[1] : NULL; /* NULL: several */
	if (!keep_inputs(&a, model))
		return 1;
	progress_begin(a.progress);
	progress_show("reading %s", model ? model : a.load.file.item[0]);
	a.o.progress = progress_phase;
	Weft *w = weft_new();
	bool have = w && load_backends(w, &a.backend_library);
	WeftGraph *g = !have              ? NULL
		       : a.step.optimizer ? load_step(w, model, &a.step, &a.load, false)
					  : load_model(w, model, &a.load, NULL);
	if (g && a.grad) {
		progress_show("gradients");
		g = with_gradients(w, g, a.grad, a.budget);
	}
	bool ok = g ? emit_all(w, g, &a) : (fail_messages(w), false);
	progress_end();
	if (ok && weft_nmessages(w))
		fputs(weft_messages(w), stderr);
	const WeftReport *r = ok ? weft_report(w) : NULL;
	if (r && a.json)
		summary_json(r, now() - start);
	else if (r && !a.quiet)
		summary(r, a.out, now() - start);
	weft_free(w);
	return ok ? 0 : 1;
}
