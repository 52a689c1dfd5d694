/* What the words of a "; run:" line do:
 *
 *   roundtrip            print; check that what is printed parses back to the same
 *   verify               check types and structure
 *   canon, simplify, ... one pass; `pipeline` and a target's name: all of them; `clean`: those
 * after decompose bf16, f16            computing in that precision (passes/precision.h) vmap the
 * batch that "; vmap: SIZE INPUT..." describes: SIZE is a number, or a symbol's name op-by-op no
 * fusion, for the words that follow vjp, jvp             the derivatives by all inputs apart
 * [BUDGET]       of vjp: print the graph that saves values and the one that computes gradients from
 * them (transform.h) undone               the distances between what blocks with an inverse take
 * and what the inverse gives random               nodes that draw get a key and a stream
 * (passes/random.h); `random-input`: the key is an input groups [TARGET]      print what each node
 * is to the kernels, and why it is stored lower                print kernels loops [TARGET] print
 * the loop IR of the kernels program [TARGET]     print the loop IR around the kernels calls
 * [TARGET]      several calls of a graph that replaces state, see file_calls.h kernels a family of
 * kernels at awkward sizes, see file_kernels.h; stands alone decide [TARGET]      print what was
 * decided: groups, schedules with reasons, costs, layouts of constants, workspace lines [TARGET]
 * print which line of the model's source each call has, and of how many emit-c [TARGET]      print
 * the C of the kernels emit-model [TARGET]  print the C around them emit-cuda TARGET     print the
 * CUDA C, or the HIP, of the kernels interp               run the interpreter, print its results
 *   compiled [TARGET]    compile, run, compare with the interpreter, and to the bit with the
 *                        interpreted loop IR (file_runner --loops: that alone)
 *   graphs [TARGET]      what random graphs go through: graph_check.h
 *   derived, composed    what derivatives and batches of random graphs go through, and transforms
 *                        of transforms: derive_check.h
 *
 * A TARGET is a name, or NAME/MACHINE to be tuned for that. The graph is printed when no word
 * printed anything. Messages stand at the end. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/print/c/emit.h"
#include "codegen/print/cuda/cuda.h"
#include "codegen/cpu/host.h"
#include "codegen/program/schedule.h"
#include "tests/oracle/derive_check.h"
#include "file_calls.h"
#include "file_kernels.h"
#include "ir/build/text.h"
#include "ir/build/verify.h"
#include "tests/oracle/graph_check.h"
#include "ir/interp/interp.h"
#include "ir/loop/predict.h"
#include "ir/op/op.h"
#include "tests/help/model.h"
#include "lower/graph/graph.h"
#include "lower/group.h"
#include "passes/pipeline.h"
#include "passes/precision.h"
#include "passes/random.h"
#include "transform/partition/partition.h"
#include "transform/transform.h"

enum { MAX_WORDS = 16 };

typedef struct {
	const FileTest *test;
	Weft *w;
	Graph *g;
	Lowered *lowered;
	Program *program;
	Model model, loops;
	bool op_by_op, printed;
	uint32_t nin, nout; /* before vjp */
	char *word[MAX_WORDS];
	uint32_t nword, at;
	Text *out;
} Run;

/* ---- graphs ---- */

static bool round_trip(Run *r)
{
	Text once, twice;
	text_init(&once, r->w->ctx->arena);
	text_init(&twice, r->w->ctx->arena);
	graph_print(r->g, &once);
	Graph *again = graph_parse(r->g->ir, once.data, "printed");
	TRY(again);
	graph_print(again, &twice);
	if (!graph_equal(r->g, again) || strcmp(once.data, twice.data))
		return ctx_error(r->w->ctx, NULL, "printed and read back it is another graph");
	return graph_verify(r->g);
}


static bool run_clean(Run *r)
{
	PipelineOptions o = {0};
	pipeline_clean(r->g, &o);
	return true;
}

/* "NAME" or "NAME@DIM" of an input, or of an output behind ">"; which it is, and the dimension. */
static bool find_dim(Run *r, char *word, bool output, uint32_t *which, int32_t *dim)
{
	const Graph *g = r->g;
	char *at = strchr(word, '@');
	*dim = at ? atoi(at + 1) : 0;
	if (at)
		*at = 0;
	for (uint32_t k = 0, n = output ? g->output.n : g->input.n; k < n; k++)
		if (!strcmp(output ? g->output.data[k].name : g->input.data[k].name, word)) {
			*which = k;
			return true;
		}
	return ctx_error(r->w->ctx, NULL, "no %s is called %s", output ? "output" : "input", word);
}

/* "SIZE INPUT[@DIM]... [> OUTPUT@DIM...]" */
static bool run_vmap(Run *r)
{
	Arena *a = r->w->ctx->arena;
	const char *line = header_find(a, r->test->text, "vmap:", NULL);
	SymTab *syms = graph_syms(r->g);
	char *save = NULL, *size = line ? strtok_r(arena_strdup(a, line), " ", &save) : NULL;
	bool *batched = arena_calloc(a, r->g->input.n, sizeof *batched), output = false;
	int32_t *in = arena_calloc(a, r->g->input.n, sizeof *in), *out = arena_calloc(a, r->g->output.n, sizeof *out);
	if (!size)
		return ctx_error(r->w->ctx, NULL, "expected a line \"; vmap: SIZE INPUT[@DIM]... [> OUTPUT@DIM...]\"");
	for (char *word; (word = strtok_r(NULL, " ", &save));) {
		uint32_t k;
		int32_t dim;
		if (!strcmp(word, ">") && (output = true))
			continue;
		TRY(find_dim(r, word, output, &k, &dim));
		(output ? out : in)[k] = dim;
		if (!output)
			batched[k] = true;
	}
	bool number = *size >= '0' && *size <= '9';
	Sym n = number ? sym_int(syms, atoll(size)) : sym_var(syms, size, SYMVAR_SIZE, 0, SYM_INF);
	if (!number)
		sym_set_hint(syms, n, 3);
	r->g = transform_vmap_at(r->g, batched, n, RANDOM_DIFFERENT, &(BatchDims){in, out});
	return r->g != NULL;
}

static bool run_verify(Run *r)
{
	return graph_verify(r->g);
}

static bool run_vjp(Run *r)
{
	r->nin = r->g->input.n;
	r->nout = r->g->output.n;
	return (r->g = transform_vjp(r->g, &(Wrt){0})) != NULL;
}

static bool run_jvp(Run *r)
{
	return (r->g = transform_jvp(r->g, &(Wrt){0})) != NULL;
}

/* A number may follow. */
static bool run_apart(Run *r)
{
	Graph *part[2];
	char *end = NULL;
	double budget = r->at < r->nword ? strtod(r->word[r->at], &end) : -1;
	bool given = end && !*end;
	r->at += given;
	TRY(transform_partition(graph_clone(r->g), r->nin, r->nout, given ? budget : -1, part));
	graph_print(part[0], r->out);
	graph_print(part[1], r->out);
	return r->printed = true;
}

static bool run_undone(Run *r)
{
	return (r->g = transform_check_inverses(r->g)) != NULL;
}

static bool run_random(Run *r)
{
	return random_attach(r->g, &(RandomSource){.seed = 7});
}

static bool run_bf16(Run *r)
{
	precision_lower(r->g, DT_bf16);
	return graph_verify(r->g);
}

static bool run_f16(Run *r)
{
	precision_lower(r->g, DT_f16);
	return graph_verify(r->g);
}

static bool run_random_input(Run *r)
{
	return random_attach(r->g, &(RandomSource){.input = true});
}

/* ---- kernels ---- */

static bool set_op_by_op(Run *r)
{
	return r->op_by_op = true;
}

/* For the costs of a target; NULL: portable C. */
static bool lower(Run *r, const Target *t)
{
	LowerOptions o = {.target = t, .no_fusion = r->op_by_op};
	if (!r->lowered)
		r->lowered = lower_graph(r->g, &o);
	return r->lowered != NULL;
}

/* The target that may follow a word; and of a machine, after a slash. */
static const Target *target(Run *r)
{
	Arena *a = r->w->ctx->arena;
	const char *word = r->at < r->nword ? r->word[r->at] : "", *slash = strchr(word, '/');
	const Target *t = target_named(slash ? arena_strndup(a, word, (size_t)(slash - word)) : word);
	const Machine *m = slash ? machine_find(slash + 1) : NULL;
	if (!t || (slash && !m))
		return target_find("generic-c");
	r->at++;
	if (!m)
		return t;
	Target *tuned = arena_dup(a, t, sizeof *t);
	tuned->machine = *m;
	return tuned;
}

/* All passes, for the costs of the target that may follow. */
static bool run_pipeline(Run *r)
{
	PipelineOptions o = {.target = target(r)};
	return pipeline_run(r->g, &o);
}

static bool run_groups(Run *r)
{
	Graph *g = r->g;
	Arena *a = r->w->ctx->arena;
	const NodeGroup *is = group_nodes(g, target(r), ARENA_ARRAY(a, const char *, g->node.n), r->op_by_op, a);
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		const NodeGroup *at = &is[n.i];
		const char *root = at->root ? graph_name(g, (Node){at->root}) : NULL;
		text_printf(r->out, "%s: ", graph_name(g, n));
		switch (at->role) {
		case ROLE_NONE: text_printf(r->out, "nothing\n"); break;
		case ROLE_LEAF: text_printf(r->out, "read where it is used\n"); break;
		case ROLE_VIRTUAL: text_printf(r->out, root ? "an index of %s\n" : "repeated by each reader\n", root); break;
		case ROLE_INLINE: text_printf(r->out, "in %s\n", root); break;
		case ROLE_ROOT: text_printf(r->out, "stored: %s\n", at->why); break;
		}
	}
	return r->printed = true;
}

static bool run_lower(Run *r)
{
	TRY(lower(r, NULL));
	lowered_print(r->lowered, r->out);
	r->printed = true;
	return lowered_verify(r->lowered);
}

/* The text of a function is all there is to it. */
static bool round_trips(Run *r, const LoopFn *f)
{
	Text first, second;
	Arena *a = r->w->ctx->arena;
	text_init(&first, a);
	text_init(&second, a);
	loop_print(f, &first, true);
	LoopFn *again = loop_parse(r->program->ir, first.data);
	TRY(again);
	loop_print(again, &second, true);
	size_t n = 0;
	while (n < first.n && first.data[n] == second.data[n])
		n++;
	return n == first.n || ctx_error(r->w->ctx, f->name, "its text becomes another one at \"%.60s\"", second.data + n);
}

static bool all_round_trip(Run *r)
{
	const Program *p = r->program;
	for (uint32_t k = 0; k < p->fn.n; k++)
		TRY(round_trips(r, p->fn.data[k]));
	const ProgramEntry *e = p->entry.data;
	for (uint32_t k = 0; k < e->sizes_outlined.n; k++)
		TRY(round_trips(r, e->sizes_outlined.data[k]));
	for (uint32_t k = 0; k < e->run_outlined.n; k++)
		TRY(round_trips(r, e->run_outlined.data[k]));
	return round_trips(r, e->sizes) && round_trips(r, e->run);
}

/* plain: functions as schedules made them, not as emitters get them. */
static bool schedule(Run *r, const Target *t, bool plain)
{
	ScheduleOptions o = {.no_plan = r->op_by_op, .plain = plain};
	TRY(lower(r, NULL) && lowered_verify(r->lowered));
	choose_const_layouts(&(ScheduleLevel){r->lowered, t}, 1);
	r->program = schedule_program(&(ScheduleEntry){"run", r->lowered}, 1, t, &o);
	TRY(r->program);
	r->printed = true;
	return program_verify(r->program, plain ? NULL : &t->isa) && all_round_trip(r);
}

static bool run_loops(Run *r)
{
	TRY(schedule(r, target(r), true));
	for (uint32_t k = 0; k < r->program->fn.n; k++)
		loop_print(r->program->fn.data[k], r->out, false);
	return true;
}

static bool run_program(Run *r)
{
	TRY(schedule(r, target(r), true));
	loop_print(r->program->entry.data->sizes, r->out, false);
	loop_print(r->program->entry.data->run, r->out, false);
	return true;
}

/* One phase of the program each, or part of one. */
static void print_call(const ProgramEntry *e, uint32_t k, double cycles, Text *out)
{
	const ProgramCall *c = program_call(e, k);
	ProgramCount n = program_count(e, k, NULL);
	text_printf(out, "  %s: %s: %s\n", c->name, c->algorithm, c->why);
	text_printf(out, "    %.0f flop, %.0f bytes, %.0f launches, %.2g cycles\n", n.flops, n.bytes, n.launches, cycles);
	for (const char *line = c->plan; line && *line;) {
		const size_t end = strcspn(line, "\n");
		text_printf(out, "    plan: %.*s\n", (int)end, line);
		line += end + (line[end] == '\n');
	}
	if (c->stored)
		text_printf(out, "    stored: %s\n", c->stored);
	for (uint32_t i = 0; i < c->nrefused; i++)
		text_printf(out, "    %s %s: %s\n", c->refused[i].near ? "nearly" : "not", c->refused[i].schedule, c->refused[i].why);
}

static void print_constant(const SymTab *syms, const ProgramConst *c, Text *out)
{
	text_printf(out, "  const %s: %" PRIu64 " bytes, layout", c->name, c->bytes);
	for (uint32_t k = 0; k < c->layout.n; k++) {
		const LayoutDim *d = &c->layout.dim[k];
		text_printf(out, " %u/%" PRId64 "%%%s<%s", d->axis, d->divisor, sym_str(syms, d->extent), sym_str(syms, d->padded));
	}
	text_char(out, '\n');
}

static bool run_decide(Run *r)
{
	const Target *t = target(r);
	r->lowered = NULL; /* groups and layouts are a target's */
	TRY(lower(r, t) && schedule(r, t, true));
	const Program *p = r->program;
	const ProgramEntry *e = p->entry.data;
	double *cycles = ARENA_ARRAY(r->w->ctx->arena, double, p->call.n);
	program_predict(e, &t->machine, NULL, cycles);
	text_printf(r->out, "%s for %s: %u calls of %u functions, workspace %" PRIu64 " bytes\n", t->isa.name, t->machine.name, p->call.n, p->fn.n, e->workspace_hint);
	for (uint32_t k = 0; k < p->call.n; k++)
		print_call(e, k, cycles[k], r->out);
	for (uint32_t k = 0; k < p->constant.n; k++)
		print_constant(p->ir->syms, &p->constant.data[k], r->out);
	return true;
}

static bool run_lines(Run *r)
{
	const Target *t = target(r);
	r->lowered = NULL;
	TRY(lower(r, t) && schedule(r, t, true));
	const ProgramEntry *e = r->program->entry.data;
	for (uint32_t k = 0; k < e->ncall; k++) {
		const ProgramCall *c = program_call(e, k);
		text_printf(r->out, "%s: %s, of %u\n", c->name, c->lines.at.i ? ir_loc_text(r->program->ir, c->lines.at) : "none", c->lines.nline);
	}
	return true;
}

static bool emit(Run *r, bool model)
{
	const Target *t = target(r);
	EmitOptions o = {.version = "", .source_hash = "", .compiler = ""};
	EmitFiles files = {0};
	TRY(schedule(r, t, false));
	emit_c(r->program, t, &o, &files);
	emit_cuda_blocks(r->program, t, &o, &files);
	for (uint32_t k = 0; k < files.file.n; k++) {
		const EmitFile *f = &files.file.data[k];
		if (!f->is_header && (strcmp(f->name, "model.c") == 0) == model)
			text_add(r->out, f->text.data);
	}
	return true;
}

static bool run_emit_c(Run *r)
{
	return emit(r, false);
}

static bool run_emit_model(Run *r)
{
	return emit(r, true);
}

static bool run_emit_cuda(Run *r)
{
	const Target *t = target(r);
	if (!t->gpu)
		return ctx_error(r->w->ctx, NULL, "emit-cuda: %s is no GPU", t->isa.name);
	r->lowered = NULL; /* groups are a target's */
	TRY(lower(r, t) && schedule(r, t, false));
	const Program *p = r->program;
	LoopFn **fn = ARENA_ARRAY(r->w->ctx->arena, LoopFn *, p->fn.n + 1);
	const char **name = ARENA_ARRAY(r->w->ctx->arena, const char *, p->fn.n + 1);
	const uint32_t n = cuda_kernels(p, kernel_names(p, ""), fn, name);
	if (n)
		emit_cuda(fn, name, n, t, r->out);
	return true;
}

/* ---- numbers ---- */

static bool bind(Run *r, EvalCtx *e, const char *s)
{
	return values_bind(r->w->ctx, graph_syms(r->g), s, e);
}

static void print_result(Run *r, const char *sizes, const char *name)
{
	text_printf(r->out, "%s%s%%%s: ", sizes, *sizes ? ": " : "", name);
}

static void compare(Run *r, const Tensor *x, const Tensor *y)
{
	const char *s = header_find(r->w->ctx->arena, r->test->text, "tolerance:", NULL);
	const int64_t i = values_differ(x, y, s ? strtod(s, NULL) : 0);
	values_print_type(y, r->out);
	if (i < 0) {
		text_add(r->out, " agrees\n");
		return;
	}
	text_add(r->out, " differs at ");
	values_index(y, i, r->out);
	text_printf(r->out, ": compiled %.9g, expected %.9g\n", tensor_f64(x, i), tensor_f64(y, i));
}

/* The loop IR, executed without its emitter, does what the compiled model does: the same bits, or
 * the same refusal. */
static bool check_loops(Run *r, const Tensor *in, uint32_t nin, const Tensor *have, int code)
{
	Arena *a = r->w->ctx->arena;
	Tensor *out = ARENA_ARRAY(a, Tensor, r->g->output.n);
	int again = model_run(&r->loops, in, nin, out, 1, a);
	if (again != code || (code != WEFT_OK && strcmp(r->loops.status.message, r->model.status.message))) {
		text_printf(r->out, "loop IR: %s\n", again == WEFT_OK ? "no failure" : r->loops.status.message);
		return false;
	}
	const WeftEntry *e = weft_entry(r->loops.model, 0);
	for (uint32_t k = 0; k < e->noutput && code == WEFT_OK; k++) {
		int64_t i = values_other_bits(&have[k], &out[k]);
		if (i < 0)
			continue;
		text_printf(r->out, "loop IR: %s has other bits at element %lld: %.9g, compiled %.9g\n", weft_output(r->loops.model, e, k)->name,
			    (long long)i, tensor_f64(&out[k], i), tensor_f64(&have[k], i));
		return false;
	}
	return true;
}

/* "; threads: 1 8": with as many threads as that, the same bits. */
static bool check_threads(Run *r, const Tensor *in, uint32_t nin, const Tensor *have)
{
	Arena *a = r->w->ctx->arena;
	const char *s = header_find(a, r->test->text, "threads:", NULL);
	Tensor *out = ARENA_ARRAY(a, Tensor, r->g->output.n);
	char *end;
	for (long n; s && (n = strtol(s, &end, 10)) > 0; s = end) {
		if (model_run(&r->model, in, nin, out, (int32_t)n, a) != WEFT_OK)
			return false;
		for (uint32_t k = 0; k < weft_entry(r->model.model, 0)->noutput; k++) {
			int64_t i = values_other_bits(&have[k], &out[k]);
			if (i < 0)
				continue;
			text_printf(r->out, "%ld threads: %s has other bits at element %lld: %.9g and %.9g\n", n,
			            weft_output(r->model.model, weft_entry(r->model.model, 0), k)->name, (long long)i, tensor_f64(&out[k], i),
			            tensor_f64(&have[k], i));
			return false;
		}
	}
	return true;
}

/* One execution; the inputs without state go to the compiled model. */
static bool execute(Run *r, const char *sizes, bool compiled)
{
	Graph *g = r->g;
	Arena *a = r->w->ctx->arena;
	EvalCtx e;
	Tensor *in = ARENA_ARRAY(a, Tensor, g->input.n), *user = ARENA_ARRAY(a, Tensor, g->input.n);
	Tensor *out = ARENA_ARRAY(a, Tensor, g->output.n),
	       *have = ARENA_ARRAY(a, Tensor, g->output.n);
	uint32_t nuser = 0, nout = 0;
	TRY(bind(r, &e, sizes));
	for (uint32_t k = 0; k < g->input.n; k++) {
		TRY(values_input(r->test, &e, g, k, &in[k]));
		if (g->input.data[k].kind == INPUT_USER)
			user[nuser++] = in[k];
	}
	bool ok = interp(r->w->ctx, g, in, g->input.n, out, g->output.n, a);
	int code = compiled ? model_run(&r->model, user, nuser, have, 0, a) : WEFT_OK;
	bool machine = compiled && !r->test->loops;
	ok = (!machine || check_loops(r, user, nuser, have, code)) && ok;
	if (code == WEFT_OK && machine)
		ok = check_threads(r, user, nuser, have) && ok;
	if (code != WEFT_OK)
		text_printf(r->out, "compiled: %s\n", r->model.status.message);
	if (!ok || code != WEFT_OK)
		return false;
	for (uint32_t k = 0; k < g->output.n; k++) {
		const GraphOutput *o = &g->output.data[k];
		if (compiled && o->writes >= 0)
			continue;
		print_result(r, sizes, o->name);
		if (compiled)
			compare(r, &have[nout++], &out[k]);
		else
			values_print(&out[k], r->out);
	}
	return true;
}

static bool execute_all(Run *r, bool compiled)
{
	const char *s = header_find(r->w->ctx->arena, r->test->text, "sizes:", NULL);
	r->printed = true;
	if (!s)
		return execute(r, "", compiled);
	for (s += strspn(s, " "); *s; s += strspn(s, " ")) {
		size_t n = strcspn(s, " ");
		TRY(execute(r, arena_strndup(r->w->ctx->arena, s, n), compiled));
		s += n;
	}
	return true;
}

static bool run_interp(Run *r)
{
	return execute_all(r, false);
}

/* Returns the options of the target that may follow a word, and of a machine, after a slash.
 * Portable C stands for a target whose code this processor cannot run. A machine is kept for its
 * own target only. */
static WeftOptions options(Run *r)
{
	const char *word = r->at < r->nword ? r->word[r->at] : "", *slash = strchr(word, '/');
	const size_t n = slash ? (size_t)(slash - word) : strlen(word);
	const Target *t = target_named(arena_strndup(r->w->ctx->arena, word, n));
	r->at += t != NULL;
	WeftOptions o = {.size = sizeof o, .no_cache = true, .op_by_op = r->op_by_op};
	o.target = !t ? "native" : target_runs_here(t) ? t->isa.name : "generic-c";
	o.target = r->test->loops ? r->test->loops : o.target;
	o.tune = t && slash && o.target == t->isa.name ? slash + 1 : NULL;
	return o;
}

static bool run_compiled(Run *r)
{
	WeftOptions o = options(r);
	WeftGraph *g = graph_wrap(r->w, r->g, r->test->name);
	bool only = r->test->loops, ok = only || model_open(&r->model, r->w, g, &o);
	ok = ok && model_open_loops(only ? &r->model : &r->loops, r->w, g, &o) && execute_all(r, true);
	model_close(&r->model);
	model_close(&r->loops);
	return ok;
}

static bool run_calls(Run *r)
{
	EvalCtx e;
	WeftOptions o = options(r);
	r->printed = true;
	return bind(r, &e, "") && file_calls(r->test, r->w, r->g, &e, &o, false, r->out);
}

static bool run_graphs(Run *r)
{
	GraphCheck c = {.test = r->test, .w = r->w, .g = r->g, .target = options(r).target, .jit = !r->test->loops, .c = {!r->test->loops, !r->test->loops}};
	bool ok = graph_check(&c);
	if (ok || *c.how)
		text_printf(r->out, "%s\n", ok ? "agrees" : c.how);
	r->printed = true;
	return ok;
}

static bool check_derivatives(Run *r, bool (*check)(DeriveCheck *))
{
	DeriveCheck c = {.test = r->test, .w = r->w, .g = r->g, .c = !r->test->loops, .jit = !r->test->loops};
	bool ok = check(&c);
	if (ok || *c.how)
		text_printf(r->out, "%s\n", ok ? "agrees" : c.how);
	r->printed = true;
	return ok;
}

static bool run_derived(Run *r)
{
	return check_derivatives(r, derive_check);
}

static bool run_composed(Run *r)
{
	return check_derivatives(r, compose_check);
}

/* ---- a test ---- */

typedef struct {
	const char *word;
	bool (*run)(Run *);
} StepWord;

static const StepWord steps[] = {
	{"roundtrip", round_trip},      {"verify", run_verify},   {"pipeline", run_pipeline},
	{"clean", run_clean},           {"lower", run_lower},     {"op-by-op", set_op_by_op},
	{"loops", run_loops},           {"program", run_program}, {"decide", run_decide}, {"lines", run_lines},
	{"emit-c", run_emit_c},         {"emit-model", run_emit_model}, {"emit-cuda", run_emit_cuda}, {"interp", run_interp},
	{"compiled", run_compiled},     {"calls", run_calls},     {"vmap", run_vmap},
	{"vjp", run_vjp},               {"jvp", run_jvp},         {"apart", run_apart},
	{"undone", run_undone},         {"random", run_random},   {"random-input", run_random_input},
	{"groups", run_groups},         {"graphs", run_graphs},   {"derived", run_derived},
	{"composed", run_composed},     {"bf16", run_bf16},       {"f16", run_f16},
};

static bool step(Run *r, const char *word)
{
	for (size_t k = 0; k < sizeof steps / sizeof *steps; k++)
		if (!strcmp(steps[k].word, word))
			return steps[k].run(r);
	return pipeline_run_one(r->g, word);
}

static bool run_words(void *arg)
{
	Run *r = arg;
	Ctx *ctx = r->w->ctx;
	const char *line = header_find(ctx->arena, r->test->text, "run:", NULL);
	if (!line)
		return ctx_error(ctx, NULL, "expected a line \"; run: ...\"");
	char *words = arena_strdup(ctx->arena, line), *save = NULL;
	for (char *s = strtok_r(words, " ", &save); s && r->nword < MAX_WORDS;
	     s = strtok_r(NULL, " ", &save))
		r->word[r->nword++] = s;
	Ir *ir = ir_new(ctx);
	ctx->file = r->test->name;
	TRY(values_constants(r->test, ir));
	r->g = graph_parse(ir, r->test->text, r->test->name);
	TRY(r->g);
	while (r->at < r->nword)
		TRY(step(r, r->word[r->at++]));
	if (!r->printed)
		graph_print(r->g, r->out);
	return true;
}

void file_test_run(const FileTest *test, Text *out)
{
	Run r = {.test = test, .w = weft_new(), .out = out};
	if (strstr(test->text, "; run: kernels\n") == test->text) {
		(test->draw ? file_kernels_drawn : file_kernels)(test, out);
		weft_free(r.w);
		return;
	}
	if (!r.w) {
		text_add(out, "out of memory\n");
		return;
	}
	boundary(r.w, run_words, &r);
	text_add(out, weft_messages(r.w));
	weft_free(r.w);
}
