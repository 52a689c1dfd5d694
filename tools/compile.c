/* weft compile */
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tool.h"

static int run(int argc, char **argv);

const Command command_compile = {
	"compile", "compile a model file to a shared object, C, or a look inside",
	"MODEL -o OUT [options]",
	"Compile MODEL (.pt2, or the text form of a graph).\n\n"
	"  -o OUT                 the shared object to write\n"
	"  --emit LIST            what to write, of: so,obj,a,c,llvm,asm,header,ir,program,loops\n"
	"                         (default so). With several,\n"
	"                         the others lie beside OUT: OUT without extension as a folder of "
	"C, and\n"
	"                         .h, .ir, .program, .loops, .o, .a, .ll, .s\n"
	"  --backend c|llvm       of a shared object: a C compiler, or LLVM and a linker (default where\n"
	"                         weft has LLVM)\n"
	"  --target NAME|FILE     native (default), one that weft show --targets lists, or a .json file;\n"
	"                         x86-64-v2,v3,v4: several levels of one family in one file\n"
	"  --weights embed|file   within the shared object (default), or OUT.weights beside it\n"
	"  --replaceable-weights  parameters can be replaced at run time\n"
	"  --op-by-op             no fusion, no planning: the baseline of `weft bench`\n"
	"  --name NAME            of the model (default: the file's)\n"
	"  --symbol NAME          the exported function (default weft_model)\n"
	"  --cc COMMAND           C compiler (default $CC, else cc)\n"
	"  --no-openmp            POSIX threads only\n"
	"  --no-cache             neither use nor fill the cache of objects ($WEFT_CACHE, "
	"~/.cache/weft)\n"
	"  --dump PASS            print the graph after that pass, or after \"all\"\n"
	"  -j N                   C compilers at once (default: one per processor)\n"
	"  --json                 print the summary as JSON\n",
	run};

typedef struct {
	const char *out, *emit, *weights, *dump, *backend;
	WeftOptions o;
	int jobs;
	bool json, show_help;
} Args;

/* A line that is rewritten, on a terminal, once a second has passed. */
typedef struct {
	double start;
	bool shown;
} Progress;

static void progress(void *user, const char *phase, uint32_t done, uint32_t total)
{
	Progress *p = user;
	if (now() - p->start < 1 || !isatty(2))
		return;
	fprintf(stderr, "\r\033[K%s %u/%u", phase, (unsigned)done, (unsigned)total);
	p->shown = true;
}

/* OUT without its extension, and another one. */
static const char *beside(const char *out, const char *ext, char buf[4096])
{
	const char *slash = strrchr(out, '/'), *dot = strrchr(out, '.');
	int n = (int)(dot && dot > out && (!slash || dot > slash + 1) ? (size_t)(dot - out)
								      : strlen(out));
	snprintf(buf, 4096, "%.*s%s%s", n, out, *ext || out[n] ? "" : "_c", ext);
	return buf;
}

static bool emit_one(Weft *w, const WeftGraph *g, const Args *a, const char *kind, bool only)
{
	static const struct {
		const char *name, *ext;
		WeftEmit emit;
	} kinds[] = {{"c", "", WEFT_EMIT_C},
		     {"header", ".h", WEFT_EMIT_HEADER},
		     {"ir", ".ir", WEFT_EMIT_IR},
		     {"program", ".program", WEFT_EMIT_PROGRAM},
		     {"loops", ".loops", WEFT_EMIT_LOOPS},
		     {"obj", ".o", WEFT_EMIT_OBJECT},
		     {"a", ".a", WEFT_EMIT_ARCHIVE},
		     {"llvm", ".ll", WEFT_EMIT_LLVM},
		     {"asm", ".s", WEFT_EMIT_ASM}};
	char path[4096];
	if (!strcmp(kind, "so"))
		return weft_compile(w, g, &a->o, a->out) || (fail_messages(w), false);
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
		if (!strcmp(kind, kinds[k].name))
			return weft_emit(w, g, &a->o, kinds[k].emit,
					 only ? a->out : beside(a->out, kinds[k].ext, path)) ||
			       (fail_messages(w), false);
	return fail("--emit %s: there are so, obj, a, c, llvm, asm, header, ir, program, loops", kind), false;
}

static bool emit_all(Weft *w, const WeftGraph *g, const Args *a)
{
	bool only = !strchr(a->emit, ',');
	for (const char *p = a->emit; *p;) {
		char kind[16];
		size_t n = strcspn(p, ",");
		if (n >= sizeof kind)
			return fail("--emit %s: there are so, obj, a, c, llvm, asm, header, ir, program, loops", p),
			       false;
		memcpy(kind, p, n);
		kind[n] = 0;
		if (!emit_one(w, g, a, kind, only))
			return false;
		if (a->dump && p == a->emit)
			fputs(weft_dump(w), stdout);
		p += n;
		p += *p == ',';
	}
	return true;
}

static long peak_kb(void)
{
	struct rusage self, children;
	getrusage(RUSAGE_SELF, &self);
	getrusage(RUSAGE_CHILDREN, &children);
	return self.ru_maxrss > children.ru_maxrss ? self.ru_maxrss : children.ru_maxrss;
}

static void summary_json(const WeftReport *r, double seconds)
{
	Json j = {.f = stdout};
	json_open(&j, NULL, '{');
	json_number(&j, "operators", r->operators);
	json_number(&j, "kernels", r->kernels);
	json_number(&j, "distinct", r->distinct);
	json_number(&j, "flops", r->flops);
	json_number(&j, "weight_bytes", (double)r->weight_bytes);
	json_number(&j, "workspace_bytes", (double)r->workspace_bytes);
	json_number(&j, "code_bytes", (double)r->code_bytes);
	json_number(&j, "units", r->objects);
	json_number(&j, "cached", r->cached);
	json_number(&j, "peak_bytes", 1024.0 * (double)peak_kb());
	json_number(&j, "seconds", seconds);
	json_open(&j, "phases", '{');
	for (uint32_t k = 0; k < r->nphase; k++)
		json_number(&j, r->phase[k].name, r->phase[k].seconds);
	json_close(&j, '}');
	json_close(&j, '}');
}

static void summary(const WeftReport *r, const char *out, double seconds)
{
	char a[32], b[32], c[32];
	printf("%s: %u operators in %u kernels (%u distinct), %sFLOP\n", out, r->operators,
	       r->kernels, r->distinct, human(r->flops, a));
	printf("  weights %sB, workspace %sB, code %sB\n", human((double)r->weight_bytes, a),
	       human((double)r->workspace_bytes, b), human((double)r->code_bytes, c));
	printf("  %.2f s:", seconds);
	for (uint32_t k = 0; k < r->nphase; k++)
		printf("%s %s %.2f", k ? "," : "", r->phase[k].name, r->phase[k].seconds);
	printf("; %u of %u units from the cache; peak memory %sB\n", r->cached, r->objects,
	       human(1024.0 * (double)peak_kb(), a));
}

static bool parse(Args *a, int *argc, char **argv)
{
	const Opt opt[] = {{"-o", OPT_STRING, &a->out},
			   {"--emit", OPT_STRING, &a->emit},
			   {"--target", OPT_STRING, &a->o.target},
			   {"--backend", OPT_STRING, &a->backend},
			   {"--weights", OPT_STRING, &a->weights},
			   {"--replaceable-weights", OPT_FLAG, &a->o.replaceable},
			   {"--op-by-op", OPT_FLAG, &a->o.op_by_op},
			   {"--name", OPT_STRING, &a->o.name},
			   {"--symbol", OPT_STRING, &a->o.symbol},
			   {"--cc", OPT_STRING, &a->o.cc},
			   {"--no-openmp", OPT_FLAG, &a->o.no_openmp},
			   {"--no-cache", OPT_FLAG, &a->o.no_cache},
			   {"--dump", OPT_STRING, &a->dump},
			   {"-j", OPT_INT, &a->jobs},
			   {"--json", OPT_FLAG, &a->json},
			   {0}};
	if (!options_parse(&command_compile, opt, argc, argv))
		return false;
	if (*argc != 2)
		return fail("compile takes one model file; see weft compile --help"), false;
	if (!a->out)
		return fail("compile: name the result with -o"), false;
	if (strcmp(a->weights, "embed") && strcmp(a->weights, "file"))
		return fail("--weights is embed or file, not %s", a->weights), false;
	if (a->backend && strcmp(a->backend, "c") && strcmp(a->backend, "llvm"))
		return fail("--backend is c or llvm, not %s", a->backend), false;
	a->o.backend = !a->backend		  ? WEFT_BACKEND_DEFAULT
		       : a->backend[0] == 'c' ? WEFT_BACKEND_C
					      : WEFT_BACKEND_LLVM;
	a->o.weights = a->weights[0] == 'f' ? WEFT_WEIGHTS_FILE : WEFT_WEIGHTS_EMBED;
	a->o.jobs = (uint32_t)a->jobs;
	a->o.dump = a->dump;
	return true;
}

static int run(int argc, char **argv)
{
	Args a = {.emit = "so", .weights = "embed", .o = {.size = sizeof a.o}};
	Progress p = {.start = now()};
	if (!parse(&a, &argc, argv))
		return argc == -1 ? 0 : 1;
	a.o.progress = progress;
	a.o.progress_user = &p;
	Weft *w = weft_new();
	WeftGraph *g = w ? weft_load(w, argv[1]) : NULL;
	double start = p.start;
	bool ok = g ? emit_all(w, g, &a) : (fail_messages(w), false);
	if (p.shown)
		fputs("\r\033[K", stderr);
	if (ok && weft_nmessages(w))
		fputs(weft_messages(w), stderr);
	const WeftReport *r = ok ? weft_report(w) : NULL;
	if (r && a.json)
		summary_json(r, now() - start);
	else if (r)
		summary(r, a.out, now() - start);
	weft_free(w);
	return ok ? 0 : 1;
}
