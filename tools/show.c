/* weft show */
#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool.h"

extern char **environ;
static int run(int argc, char **argv);

static const HelpRow rows[] = {
	{NULL, "What is shown", false},
	{"--graph", "the graph only", true},
	{"--after PASS", "the graph after that pass only; --after list names the passes", true},
	{"--kernels", "the kernels only", true},
	{"--svg FILE", "draw the graph with graphviz (needs the command dot)", false},
	{"--entry NAME", "of several entries only that one", false},
	{"--json", "print everything but the graph as JSON", true},
	{NULL, "Without a model", false},
	{"--targets",
	 "the targets there are: vector bytes and registers, caches, whether the runtime is there "
	 "to link for it, whether this machine runs it, what it needs",
	 true},
	{"--backends", "the back ends there are, and whether they are found", false},
	{"--backend-library FILE", "with --backends: those of a library too (repeatable)", false},
	{NULL, "How it would be compiled", false},
	{"--target NAME|FILE",
	 "for --kernels: see weft compile; without a model: what is known of that target", false},
	{"--tune NAME|FILE", "for --kernels: see weft compile", false},
	{"--device cuda|cuda:N",
	 "show the part of the file for this GPU (without a GPU: the first GPU part); with "
	 "--kernels, compile for this GPU",
	 false},
	LOAD_HELP,
	{0}};

const Command command_show = {
	.name = "show",
	.summary = "look into a model",
	.usage = "MODEL|MODEL.so|NAME=MODEL... [options]",
	.about = "Print a model's graph as text, its inputs, outputs, symbols with ranges, guards "
		 "and operators, and the kernels with the algorithm chosen for each and why; of a "
		 "shared object its manifest.",
	.more = "",
	.row = rows,
	.run = run};

typedef struct {
	const char *after, *svg, *entry, *device;
	bool graph, kernels, targets, backends, json;
	StringList backend_library;
	WeftOptions o;
	LoadArgs load;
} ShowArgs;

/* Prints tensors. m: as tensor_info's. */
static void print_tensors(Json *j, const char *what, const WeftModel *m,
			  const WeftTensorInfo *first, uint32_t n)
{
	char type[16];
	if (j->f)
		json_open(j, what, '[');
	for (uint32_t k = 0; k < n; k++) {
		char shape[1024];
		size_t len = 0;
		const WeftTensorInfo *t = tensor_info(m, first, k);
		for (uint32_t d = 0; d < t->rank && len < sizeof shape - 1; d++) {
			len += (size_t)snprintf(shape + len, sizeof shape - len, "%s%s",
						d ? ", " : "", tensor_dim(m, t, d)->text);
		}
		shape[len < sizeof shape ? len : sizeof shape - 1] = 0;
		if (!j->f) {
			printf("%-8s ", k ? "" : what);
			print_escaped(stdout, t->name);
			printf(": %s[%s]\n", dtype_text(t->dtype, type), shape);
			continue;
		}
		json_open(j, NULL, '{');
		json_put_string(j, "name", t->name);
		json_put_string(j, "dtype", dtype_text(t->dtype, type));
		json_put_string(j, "shape", shape);
		json_put_string(j, "role", t->role);
		if (t->requires_grad)
			json_put_bool(j, "requires_grad", true);
		if (t->holder)
			json_put_string(j, "holder", t->holder);
		json_close(j, '}');
	}
	if (j->f)
		json_close(j, ']');
}

static void print_symbols(Json *j, const WeftModel *m, const WeftSymbolInfo *first, uint32_t n)
{
	if (j->f)
		json_open(j, "symbols", '[');
	for (uint32_t k = 0; k < n; k++) {
		const WeftSymbolInfo *s =
			m ? weft_element(m, WEFT_SYMBOL_INFO, first, k) : &first[k];
		if (j->f) {
			json_open(j, NULL, '{');
			json_put_string(j, "name", s->name);
			json_put_number(j, "lo", (double)s->lo);
			json_put_number(j, "hi",
				    s->hi == INT64_MAX ? (double)1 / 0.0 : (double)s->hi);
			json_close(j, '}');
		} else if (s->hi == INT64_MAX) {
			printf("%-8s %s >= %lld\n", k ? "" : "symbols", s->name,
			       (long long)s->lo);
		} else {
			printf("%-8s %lld <= %s <= %lld\n", k ? "" : "symbols", (long long)s->lo,
			       s->name, (long long)s->hi);
		}
	}
	if (j->f)
		json_close(j, ']');
}

static void print_guards(Json *j, const char *const *g, uint32_t n)
{
	if (j->f)
		json_open(j, "guards", '[');
	for (uint32_t k = 0; k < n; k++)
		if (j->f)
			json_put_string(j, NULL, g[k]);
		else
			printf("%-8s %s\n", k ? "" : "guards", g[k]);
	if (j->f)
		json_close(j, ']');
}

static void print_operators(Json *j, const WeftOpCount *op, uint32_t n)
{
	if (j->f)
		json_open(j, "operators", '{');
	else
		puts("operators");
	for (uint32_t k = 0; k < n; k++)
		if (j->f)
			json_put_number(j, op[k].name, op[k].count);
		else
			printf("%8u %s\n", op[k].count, op[k].name);
	if (j->f)
		json_close(j, '}');
}

static void print_plan(const char *plan)
{
	for (const char *line = plan; line && *line;) {
		const size_t length = strcspn(line, "\n");
		printf("%8splan: %.*s\n", "", (int)length, line);
		line += length + (line[length] == '\n');
	}
}

/* The parts of an estimate. */
enum { NPART = 4 };
static const char *const part_name[NPART] = {"launches", "memory", "arithmetic", "waiting"};

static const char *longest(const double part[NPART])
{
	int most = 0;
	for (int k = 1; k < NPART; k++)
		most = part[k] > part[most] ? k : most;
	return part_name[most];
}

static void print_estimate(const WeftKernelInfo *k)
{
	const WeftEstimate *e = k->estimate;
	const double part[NPART] = {e->start, e->memory, e->units, e->waits};
	printf("%8sestimated: %.3g us by %s, limited by %s: ", "", 1e6 * k->seconds, e->device,
	       longest(part));
	for (int i = 0; i < NPART; i++)
		printf("%s%s %.3g", i ? ", " : "", part_name[i], 1e6 * part[i]);
	if (e->library > 0)
		printf("; by the vendor's library %.3g us", 1e6 * e->library);
	putchar('\n');
}

static void print_estimate_json(Json *j, const WeftEstimate *e)
{
	json_open(j, "estimate", '{');
	json_put_string(j, "device", e->device);
	json_put_number(j, "start", e->start);
	json_put_number(j, "memory", e->memory);
	json_put_number(j, "units", e->units);
	json_put_number(j, "waits", e->waits);
	json_put_number(j, "library", e->library);
	json_close(j, '}');
}

static void print_reasons(Json *j, const WeftKernelInfo *k)
{
	if (!j->f) {
		if (k->stored)
			printf("%8s%s: %s\n", "", "stored", k->stored);
		if (k->why)
			printf("%8s%s: %s\n", "", "chosen", k->why);
		print_plan(k->plan);
		if (k->estimate)
			print_estimate(k);
		else if (k->seconds > 0)
			printf("%8spredicted: %.3g us by one core\n", "", 1e6 * k->seconds);
		for (uint32_t i = 0; i < k->nrefused; i++)
			if (k->refused[i].near)
				printf("%8snot %s: %s\n", "", k->refused[i].schedule,
				       k->refused[i].why);
		return;
	}
	if (!k->why)
		return;
	json_put_string(j, "why", k->why);
	if (k->stored)
		json_put_string(j, "stored", k->stored);
	if (k->plan)
		json_put_string(j, "plan", k->plan);
	json_open(j, "refused", '[');
	for (uint32_t i = 0; i < k->nrefused; i++) {
		json_open(j, NULL, '{');
		json_put_string(j, "schedule", k->refused[i].schedule);
		json_put_string(j, "why", k->refused[i].why);
		json_put_bool(j, "near", k->refused[i].near);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void print_line(const WeftKernelInfo *k)
{
	if (!k->line)
		return;
	printf("%8sline: ", "");
	print_lines(k);
	putchar('\n');
}

static void print_kernels(Json *j, const WeftKernelInfo *kernel, uint32_t n)
{
	char a[32], d[32];
	if (j->f)
		json_open(j, "kernels", '[');
	for (uint32_t k = 0; k < n; k++) {
		const WeftKernelInfo *i = &kernel[k];
		if (!j->f) {
			printf("%-40s %8sFLOP %8sB  %s\n", i->name, human(i->flops, a),
			       human(i->bytes, d), i->algorithm);
			print_line(i);
			print_reasons(j, i);
			continue;
		}
		json_open(j, NULL, '{');
		json_put_string(j, "name", i->name);
		if (i->function)
			json_put_string(j, "function", i->function);
		json_put_string(j, "algorithm", i->algorithm);
		json_put_number(j, "flops", i->flops);
		json_put_number(j, "bytes", i->bytes);
		if (i->seconds > 0)
			json_put_number(j, "seconds", i->seconds);
		if (i->estimate)
			print_estimate_json(j, i->estimate);
		if (i->line) {
			json_put_string(j, "line", i->line);
			json_put_number(j, "lines", i->nline);
		}
		print_reasons(j, i);
		json_close(j, '}');
	}
	if (j->f)
		json_close(j, ']');
}

/* Prints what is estimated of the whole model on a GPU. Kernels of which nothing is known count
 * 0. */
static void print_estimated(const WeftReport *r)
{
	double part[NPART] = {0}, all = 0, library = 0;
	const char *device = NULL;
	for (uint32_t k = 0; k < r->nkernel; k++) {
		const WeftEstimate *e = r->kernel[k].estimate;
		if (!e)
			continue;
		const double of[NPART] = {e->start, e->memory, e->units, e->waits};
		for (int i = 0; i < NPART; i++)
			part[i] += of[i];
		all += r->kernel[k].seconds;
		library += e->library > 0 ? e->library : r->kernel[k].seconds;
		device = e->device;
	}
	if (!device)
		return;
	printf("estimated, not measured: %.3g ms by %s, limited by %s: ", 1e3 * all, device,
	       longest(part));
	for (int i = 0; i < NPART; i++)
		printf("%s%s %.3g", i ? ", " : "", part_name[i], 1e3 * part[i]);
	printf("; with products and convolutions by the vendor's library %.3g ms\n", 1e3 * library);
}

static void print_totals(const WeftReport *r)
{
	char a[32], b[32], c[32];
	printf("%u kernels, %u distinct, %sFLOP, weights %sB, workspace %sB\n", r->kernels,
	       r->distinct, human(r->flops, a), human((double)r->weight_bytes, b),
	       human((double)r->workspace_bytes, c));
	if (r->state_bytes)
		printf("state %sB; a call saves %sB of it, for a check that fails after it is "
		       "replaced\n",
		       human((double)r->state_bytes, a), human((double)r->saved_bytes, b));
	print_estimated(r);
	if (*r->floats)
		printf("products of dequantised numbers that are products of floats:\n%s",
		       r->floats);
}

static void print_manifest(Json *j, const WeftModel *m)
{
	const WeftManifest *f = m->manifest;
	const char *const pair[][2] = {{"model", f->name},         {"weft", f->weft_version},
				       {"target", f->target},      {"features", f->features},
				       {"source", f->source_hash}, {"compiler", f->compiler}};
	char a[32];
	for (size_t k = 0; k < sizeof pair / sizeof *pair; k++)
		if (j->f)
			json_put_string(j, pair[k][0], pair[k][1]);
		else if (*pair[k][1])
			printf("%-8s %s\n", pair[k][0], pair[k][1]);
	const char *calls = m->user_ops;
	if (calls && j->f)
		json_put_string(j, "calls", calls);
	else if (calls)
		printf("%-8s %s\n", "calls", calls);
	if (j->f) {
		json_put_number(j, "weight_bytes", (double)m->weights_bytes);
		json_put_bool(j, "replaceable", m->replaceable);
		if (!m->weights && m->weights_file)
			json_put_string(j, "weights_file", m->weights_file);
		return;
	}
	printf("%-8s %sB%s%s%s\n", "weights", human((double)m->weights_bytes, a),
	       m->weights_file && !m->weights ? " in " : "",
	       m->weights_file && !m->weights ? m->weights_file : "",
	       m->replaceable ? ", replaceable" : "");
}

/* Prints the calls that the table holds; how many functions they share and what they need beside
 * weights it does not say. */
static void print_calls(Json *j, const WeftModel *m, const WeftEntry *e)
{
	char a[32], b[32];
	WeftKernelInfo *k = calloc(e->ncall + 1, sizeof *k);
	for (uint32_t i = 0; k && i < e->ncall; i++)
		k[i] = call_info(m, weft_call(m, e, i));
	if (!j->f)
		printf("%u kernels, %sFLOP, weights %sB\n", e->ncall, human(e->flops, a),
		       human((double)m->weights_bytes, b));
	print_kernels(j, k, k ? e->ncall : 0);
	free(k);
}

/* Prints which state the entry uses, and how. */
static void print_uses(Json *j, const WeftModel *m, const WeftEntry *e)
{
	bool first = true;
	if (j->f)
		json_open(j, "uses", '[');
	for (uint32_t k = 0; e->state_use && k < m->nstate; k++) {
		const bool reads = e->state_use[k] & WEFT_ENTRY_READS_STATE,
			   writes = e->state_use[k] & WEFT_ENTRY_WRITES_STATE;
		if (!reads && !writes)
			continue;
		if (j->f) {
			json_open(j, NULL, '{');
			json_put_string(j, "state", weft_state_info(m, k)->name);
			json_put_bool(j, "reads", reads);
			json_put_bool(j, "writes", writes);
			json_close(j, '}');
			continue;
		}
		printf("%-8s ", first ? "uses" : "");
		print_escaped(stdout, weft_state_info(m, k)->name);
		printf(": %s\n", !writes ? "read" : reads ? "read, written" : "written");
		first = false;
	}
	if (j->f)
		json_close(j, ']');
}

static void print_entry(Json *j, const WeftModel *m, const WeftEntry *e, const ShowArgs *a)
{
	if (!a->kernels) {
		if (m->nstate)
			print_uses(j, m, e);
		print_tensors(j, "inputs", m, e->input, e->ninput);
		print_tensors(j, "outputs", m, e->output, e->noutput);
		print_symbols(j, m, e->symbol, e->nsymbol);
	}
	print_calls(j, m, e);
}

/* Begins what follows of one of several entries. */
static void open_entry(Json *j, const char *name)
{
	if (!j->f) {
		printf("\nentry    %s\n", name);
		return;
	}
	json_open(j, NULL, '{');
	json_put_string(j, "name", name);
}

static int show_object(const char *path, const ShowArgs *a)
{
	Runner r;
	RunnerOptions ro = {.entry = a->entry,
			    .any_entry = true,
			    .shown = true,
			    .device = a->device,
			    .load = &a->load,
			    .compile = &a->o};
	Json j = {.f = a->json ? stdout : NULL};
	if (!runner_open(&r, path, &ro))
		return 1;
	bool one = a->entry || r.model->nentry == 1;
	if (j.f)
		json_open(&j, NULL, '{');
	if (!a->kernels)
		print_manifest(&j, r.model);
	if (!a->kernels && r.model->nstate)
		print_tensors(&j, "state", r.model, r.model->state, r.model->nstate);
	if (one)
		print_entry(&j, r.model, r.entry, a);
	if (!one && j.f)
		json_open(&j, "entries", '[');
	for (uint32_t k = 0; !one && k < r.model->nentry; k++) {
		const WeftEntry *e = weft_entry(r.model, k);
		open_entry(&j, e->name);
		print_entry(&j, r.model, e, a);
		if (j.f)
			json_close(&j, '}');
	}
	if (!one && j.f)
		json_close(&j, ']');
	if (j.f)
		json_close(&j, '}');
	runner_close(&r);
	return 0;
}

/* Runs dot between two files. */
static bool run_dot(FILE *in, FILE *out)
{
	int status;
	pid_t pid;
	char *argv[] = {"dot", "-Tsvg", NULL};
	posix_spawn_file_actions_t fa;
	if (posix_spawn_file_actions_init(&fa))
		return fail("cannot start dot"), false;
	posix_spawn_file_actions_adddup2(&fa, fileno(in), 0);
	posix_spawn_file_actions_adddup2(&fa, fileno(out), 1);
	int err = posix_spawnp(&pid, "dot", &fa, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&fa);
	if (err)
		return fail("cannot run dot (of graphviz): %s", strerror(err)), false;
	if (waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
		return fail("dot failed"), false;
	return true;
}

static bool write_svg(Weft *w, FILE *drawn, const char *svg)
{
	long n = fseek(drawn, 0, SEEK_END) ? -1 : ftell(drawn);
	char *text = n > 0 ? malloc((size_t)n) : NULL;
	rewind(drawn);
	bool read = text && fread(text, 1, (size_t)n, drawn) == (size_t)n;
	bool ok = read ? weft_write_file(w, svg, text, (size_t)n) || (fail_messages(w), false)
		       : (fail("dot made nothing"), false);
	free(text);
	return ok;
}

static bool draw(Weft *w, const char *dot, const char *svg)
{
	FILE *in = tmpfile(), *out = tmpfile();
	bool ok = in && out && fputs(dot, in) >= 0 && fflush(in) == 0;
	if (!ok)
		fail("cannot write a temporary file: %s", strerror(errno));
	else
		rewind(in);
	ok = ok && run_dot(in, out) && write_svg(w, out, svg);
	if (in)
		fclose(in);
	if (out)
		fclose(out);
	return ok;
}

static void print_interface(Json *j, Weft *w, const WeftGraph *g)
{
	uint32_t n;
	const WeftTensorInfo *t = weft_inputs(w, g, &n);
	print_tensors(j, "inputs", NULL, t, n);
	t = weft_outputs(w, g, &n);
	print_tensors(j, "outputs", NULL, t, n);
	t = weft_states(w, g, &n);
	if (n)
		print_tensors(j, "state", NULL, t, n);
	const WeftSymbolInfo *s = weft_symbols(w, g, &n);
	print_symbols(j, NULL, s, n);
	const char *const *guards = weft_guards(w, g, &n);
	print_guards(j, guards, n);
	const WeftOpCount *ops = weft_operators(w, g, &n);
	print_operators(j, ops, n);
}

/* Prints what is asked for beside the text, of all graphs that became entries, or of the chosen
 * one. */
static void print_graphs(Json *j, Weft *w, WeftGraph *const *one, const ShowArgs *a, bool interface,
			 const WeftReport *r)
{
	uint32_t n = a->load.entry.n;
	bool several = n && !a->entry;
	if (several && j->f)
		json_open(j, "entries", '[');
	for (uint32_t k = 0; k < (n ? n : 1); k++) {
		if (a->entry && n && strcmp(a->load.entry.item[k], a->entry) != 0)
			continue;
		if (several)
			open_entry(j, a->load.entry.item[k]);
		if (interface)
			print_interface(j, w, one[k]);
		if (r && !j->f && !n)
			print_totals(r);
		if (r && j->f && *r->floats)
			json_put_string(j, "floats", r->floats);
		if (r)
			print_kernels(j, r->entry[k].kernel, r->entry[k].nkernel);
		if (several && j->f)
			json_close(j, '}');
	}
	if (several && j->f)
		json_close(j, ']');
}

static bool show_graph(Weft *w, WeftGraph *g, WeftGraph *const *one, const ShowArgs *a)
{
	bool all = !a->graph && !a->kernels && !a->after;
	Json j = {.f = a->json ? stdout : NULL};
	const WeftGraph *drawn = g;
	for (uint32_t k = 0; a->entry && k < a->load.entry.n; k++)
		if (!strcmp(a->load.entry.item[k], a->entry))
			drawn = one[k];
	if (a->svg) {
		const char *dot = weft_graph_dot(w, drawn, a->after);
		return dot ? draw(w, dot, a->svg) : (fail_messages(w), false);
	}
	if ((all || a->graph || a->after) && !j.f) {
		const char *text = weft_graph_text(w, drawn, a->after);
		if (!text)
			return fail_messages(w), false;
		fputs(text, stdout);
	}
	bool planned = !all && !a->kernels ? true : weft_plan(w, g, &a->o);
	const WeftReport *r = (all || a->kernels) && planned ? weft_report(w) : NULL;
	if (j.f)
		json_open(&j, NULL, '{');
	if (r && !j.f && a->load.entry.n)
		print_totals(r);
	print_graphs(&j, w, one, a, all, r);
	if (j.f)
		json_close(&j, '}');
	return planned || (fail_messages(w), false);
}

/* Checks the options. compiled: a shared object is shown; listed: targets or back ends, without
 * a model. */
static bool check_options(const ShowArgs *a, bool compiled, bool listed)
{
	const bool plan = a->kernels || (!a->graph && !a->after && !a->svg);
	const char *load = load_option_given(&a->load);
	const OptUse use[] = {
		{a->o.tune, plan && !listed, "--tune", "--kernels"},
		{a->o.target, plan || listed, "--target", "--kernels"},
		{a->device, (plan && !a->o.target && !listed) || compiled, "--device",
		 "--kernels without --target"},
		{a->backend_library.n, a->backends, "--backend-library", "--backends"},
		{a->json, !a->svg && !a->graph && !a->after, "--json",
		 "all but the graph"},
		{a->kernels || a->graph, !a->svg, a->kernels ? "--kernels" : "--graph",
		 "text: --svg draws the graph"},
		{a->graph || a->kernels || a->after || a->svg || a->entry, !listed,
		 a->graph     ? "--graph"
		 : a->kernels ? "--kernels"
		 : a->after   ? "--after"
		 : a->svg     ? "--svg"
			      : "--entry",
		 "a model"},
		{load, !listed, load, "a model"},
		{a->backends, !a->targets && !a->o.target, "--backends",
		 "back ends alone, without --targets and --target"}};
	return options_used(&command_show, use, sizeof use / sizeof *use);
}

static int run(int argc, char **argv)
{
	ShowArgs a = {.o = {.size = sizeof a.o}};
	const Opt opt[] = {{"--entry", OPT_STRING, &a.entry},
			   {"--after", OPT_STRING, &a.after},
			   {"--graph", OPT_FLAG, &a.graph},
			   {"--kernels", OPT_FLAG, &a.kernels},
			   {"--svg", OPT_STRING, &a.svg},
			   {"--device", OPT_STRING, &a.device},
			   {"--target", OPT_STRING, &a.o.target},
			   {"--tune", OPT_STRING, &a.o.tune},
			   {"--targets", OPT_FLAG, &a.targets},
			   {"--backends", OPT_FLAG, &a.backends},
			   {"--backend-library", OPT_LIST, &a.backend_library},
			   {"--json", OPT_FLAG, &a.json},
			   LOAD_OPTIONS(&a.load),
			   {0}};
	if (!options_parse(&command_show, opt, &argc, argv))
		return argc == -1 ? 0 : 1;
	if (a.after && !strcmp(a.after, "list")) {
		for (const char *const *p = weft_passes(); *p; p++)
			puts(*p);
		return 0;
	}
	if (!take_entries(&a.load, &argc, argv))
		return 1;
	uint32_t n = a.load.entry.n;
	const bool listed = argc == 1 && !n && (a.targets || a.o.target || a.backends),
		   compiled = !n && argc == 2 && is_shared_object(argv[1]);
	if (!check_options(&a, compiled, listed))
		return 1;
	if (argc == 1 && !n && (a.targets || a.o.target))
		return show_targets(a.o.target, a.json);
	if (argc == 1 && !n && a.backends)
		return show_backends(&a.backend_library, a.json);
	if (argc != (n ? 1 : 2) || a.targets || a.backends)
		return fail_usage(
			"show takes one model, or --targets, or --backends; see weft show --help");
	if (n && a.entry && !entry_file(&a.load, a.entry))
		return 1;
	if (!n && a.entry && strcmp(a.entry, "run") && !is_shared_object(argv[1]))
		return fail("%s: no entry %s: there is run", argv[1], a.entry);
	if (a.svg && n && !a.entry)
		return fail_usage("--svg draws one graph: choose it with --entry");
	for (uint32_t k = 0; a.svg && k < (n ? n : 1); k++)
		if (!keep_input(a.svg, n ? a.load.file.item[k] : argv[1]))
			return 1;
	if (compiled && (a.svg || a.graph || a.after))
		return fail("%s is compiled: --graph, --after and --svg are for model files",
			    argv[1]);
	if (compiled)
		return show_object(argv[1], &a);
	if (!a.o.target)
		a.o.target = a.device;
	Weft *w = weft_new();
	WeftGraph *one[MAX_LIST], *g = w ? load_model(w, argv[1], &a.load, one) : NULL;
	bool ok = g ? show_graph(w, g, one, &a) : (fail_messages(w), false);
	if (ok && weft_nmessages(w)) /* warnings */
		fputs(weft_messages(w), stderr);
	weft_free(w);
	return ok ? 0 : 1;
}
