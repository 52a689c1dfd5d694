/* From graph to Program and C text; what a compilation reports. */
#include "driver/artifact/compile.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "codegen/cpu/host.h"
#include "codegen/print/names.h"
#include "codegen/program/schedule.h"
#include "driver/targets/embed.h"
#include "driver/api/given.h"
#include "driver/artifact/jobs.h"
#include "driver/artifact/section.h"
#include "driver/artifact/recipes.h"
#include "driver/artifact/backend.h"
#include "driver/targets/target_file.h"
#include "driver/artifact/user_links.h"
#include "ir/build/text.h"
#include "ir/loop/predict.h"
#include "lower/graph/graph.h"
#include "passes/pipeline.h"

void phase_begin(const Compilation *c, const char *name)
{
	if (c->o.progress)
		c->o.progress(c->o.progress_user, name, 0, 1);
}

void phase_end(Compilation *c, const char *name)
{
	double t = seconds_now();
	array_push(weft_arena(c->w), &c->w->phase, (WeftPhaseTime){name, t - c->w->phase_start});
	c->w->phase_start = t;
	if (c->o.progress)
		c->o.progress(c->o.progress_user, name, 1, 1);
}

/* Sets c->level to the levels that the names say. Names of several levels' code end differently. */
static bool begin_levels(Compilation *c, const char *names)
{
	Arena *a = c->ctx->arena;
	TargetList list;
	TRY(targets_read(c->ctx, names, c->o.tune, &list));
	for (uint32_t k = 0; k < list.n; k++) {
		const Target *t = list.data[k];
		const char *suffix =
			list.n == 1 ? "" : arena_printf(a, "_%s", c_identifier(a, t->isa.name));
		array_push(a, &c->level, (TargetLevel){.target = t, .suffix = suffix});
	}
	c->target = list.data[list.n - 1];
	return true;
}

/* Checks the texts that must be something: a pass, an identifier. */
static bool check_texts(const Compilation *c)
{
	const char *const *pass = pipeline_names(), *dump = c->o.dump;
	while (dump && *pass && strcmp(*pass, dump) != 0)
		pass++;
	if (dump && !*pass && strcmp(dump, "all") != 0)
		return ctx_error(c->ctx, NULL, "no pass %s to dump%s", dump,
				 pipeline_hint(c->ctx->arena, dump));
	const char *symbol = c->o.symbol, *why = symbol ? c_export_refused(symbol) : NULL;
	if (why)
		return ctx_error(c->ctx, NULL, "the exported function cannot be called %s: %s",
				 symbol, why);
	if (symbol && !strcmp(symbol, c->weights_symbol))
		return ctx_error(c->ctx, NULL,
				 "the exported function cannot be called %s: the weights are",
				 symbol);
	return !c->o.cc || c->o.cc[strspn(c->o.cc, " ")] ||
	       ctx_error(c->ctx, NULL, "the name of the C compiler is empty");
}

/* Returns what a model is called: after its file, or after its entries, if they are of several. */
static const char *graph_file_name(Arena *a, const WeftGraph *g)
{
	bool one = true;
	const char *name = g->entry[0].name;
	for (uint32_t k = 1; k < g->nentry; k++) {
		one &= strcmp(g->entry[k].path, g->path) == 0;
		name = arena_printf(a, "%s_%s", name, g->entry[k].name);
	}
	return one ? path_stem(a, g->path) : name;
}

bool compile_begin(Compilation *c, Weft *w, const WeftGraph *g, const WeftOptions *o)
{
	Ctx *ctx = w->ctx;
	*c = (Compilation){.w = w, .ctx = ctx, .from = g};
	options_copy(&c->o, sizeof c->o, o);
	TRY(options_fit(w, c->o.size, sizeof c->o) && given_graph(w, "compiling", g) &&
	    given_texts(w, "WeftOptions.link", "what to link with", c->o.link, c->o.nlink));
	if ((unsigned)c->o.weights > WEFT_WEIGHTS_FILE)
		return ctx_error(ctx, NULL, "options with weights %d that there are not",
				 (int)c->o.weights);
	memset(&w->phase, 0, sizeof w->phase);
	memset(&w->report, 0, sizeof w->report);
	w->have_report = false;
	w->dump = NULL;
	w->phase_start = seconds_now();
	ctx->file = g->path;
	TRY(begin_levels(c, c->o.target ? c->o.target : "native"));
	c->name = c->o.name ? path_stem(ctx->arena, c->o.name) : graph_file_name(ctx->arena, g);
	c->weights_symbol = arena_printf(ctx->arena, "%s_weights", c->name);
	TRY(check_texts(c) && backend_choose(c));
	graph_warn_absent(g);
	return user_links_check(c);
}

uint32_t compile_gpus(const Compilation *c)
{
	uint32_t n = 0;
	while (n < c->level.n && c->level.data[n].target->gpu)
		n++;
	return n;
}

bool compile_for_here(Compilation *c)
{
	uint32_t best = c->level.n - 1;
	while (best && !target_runs_here(c->level.data[best].target))
		best--;
	TargetLevel *level = c->level.data;
	level[0] = (TargetLevel){.target = level[best].target, .suffix = ""};
	c->level.n = 1;
	c->target = level[0].target;
	return target_runs_here(c->target) ||
	       ctx_error(c->ctx, NULL,
			 "this machine does not run code for %s: compile a shared object for it",
			 c->target->isa.name) ||
	       ctx_kind(c->ctx, REFUSAL_MACHINE);
}

/* Hashes the constants that have no hash yet. */
static void hash_constants(const Compilation *c)
{
	const_hash_all(c->from->entry[0].g->ir, c->o.jobs ? c->o.jobs : jobs_default());
}

/* Hashes the printed graphs, which name every constant by its hash. */
static const char *hash_source(Compilation *c)
{
	Text t;
	ArenaMark mark = arena_mark(c->ctx->scratch);
	Ir *ir = c->from->entry[0].g->ir;
	text_init(&t, c->ctx->scratch);
	hash_constants(c);
	for (uint32_t k = 0; k < c->from->nentry; k++) {
		const Graph *g = c->from->entry[k].g;
		graph_print(g, &t);
		for (uint32_t i = 0; i < g->input.n; i++)
			if (g->input.data[i].init.i)
				text_printf(
					&t, "%016llx\n",
					(unsigned long long)const_hash(ir, g->input.data[i].init));
	}
	uint64_t a = hash_bytes(t.data, t.n, 11), b = hash_bytes(t.data, t.n, 12);
	arena_release(c->ctx->scratch, mark);
	return arena_printf(c->ctx->arena, "%016llx%016llx", (unsigned long long)a,
			    (unsigned long long)b);
}

/* Lowers every graph for every level: of a level one after the other. */
static bool lower_levels(Compilation *c, ScheduleLevel *out)
{
	uint32_t errors = c->ctx->nerror, n = c->from->nentry;
	phase_begin(c, "lower");
	for (uint32_t k = 0; k < c->level.n * n; k++) {
		const Target *target = c->level.data[k / n].target;
		LowerOptions lo = {.target = target,
				   .no_fusion = c->o.op_by_op,
				   .cancellable = c->o.cancellable,
				   .after = k % n ? out[k - 1].lowered : NULL};
		c->ctx->file = c->from->entry[k % n].path;
		out[k] = (ScheduleLevel){lower_graph((target->gpu ? c->gpu_g : c->g)[k % n], &lo),
					 target};
		/* a size may have left 64 bits on the way */
		TRY(out[k].lowered && c->ctx->nerror == errors);
	}
	phase_end(c, "lower");
	return true;
}

/* Schedules every level. The weight section of each continues the one of the level before. */
static bool schedule_levels(Compilation *c, const ScheduleLevel *lowered)
{
	uint32_t n = c->from->nentry;
	ScheduleEntry *entry = ARENA_ARRAY(c->ctx->arena, ScheduleEntry, n);
	const uint32_t ngpu = compile_gpus(c);
	phase_begin(c, "schedule");
	if (!c->o.duplicate_weights && ngpu)
		choose_const_layouts(lowered, ngpu * n);
	if (!c->o.duplicate_weights && ngpu < c->level.n)
		choose_const_layouts(lowered + ngpu * n, (c->level.n - ngpu) * n);
	for (uint32_t k = 0; k < c->level.n; k++) {
		ScheduleOptions so = {.no_plan = c->o.op_by_op,
				      .weights = c->program,
				      .plain = c->plain,
				      .name = c->name};
		for (uint32_t e = 0; e < n; e++)
			entry[e] =
				(ScheduleEntry){c->from->entry[e].name, lowered[k * n + e].lowered};
		TRY(c->program = schedule_program(entry, n, c->level.data[k].target, &so));
		c->level.data[k].program = c->program;
	}
	phase_end(c, "schedule");
	return true;
}

/* Runs the passes on the graph of an entry. Those whose result depends on costs follow once for
 * GPUs, once for CPUs, on copies. */
static bool run_passes_on(Compilation *c, uint32_t entry, PipelineOptions *po)
{
	const GraphEntry *e = &c->from->entry[entry];
	const uint32_t ngpu = compile_gpus(c);
	c->ctx->file = e->path;
	if (e->g->activations == DT_i8 && ngpu)
		return ctx_error(c->ctx, e->path,
				 "activations of 8 bits (weft_set_activations, --activations) are "
				 "for processors, and %s is a GPU",
				 c->level.data[0].target->isa.name);
	Graph *g = graph_clone(e->g);
	graph_number_nodes(g);
	if (c->from->g)
		g->name = c->name;
	else if (c->o.dump)
		text_printf(po->dump_to, "; entry %s\n", e->name);
	TRY(pipeline_expand(g, po));
	c->g[entry] = g;
	if (c->gpu_g != c->g) {
		c->gpu_g[entry] = graph_clone(g);
		po->target = c->level.data[0].target;
		TRY(pipeline_finish(c->gpu_g[entry], po));
	}
	po->target = c->level.data[ngpu < c->level.n ? ngpu : 0].target;
	return pipeline_finish(g, po);
}

static bool run_passes(Compilation *c)
{
	Text dump, floats;
	const uint32_t n = c->from->nentry, ngpu = compile_gpus(c);
	const bool both = ngpu && ngpu < c->level.n;
	phase_begin(c, "passes");
	text_init(&dump, c->ctx->arena);
	text_init(&floats, weft_arena(c->w));
	PipelineOptions po = {.dump = c->o.dump,
			      .dump_to = &dump,
			      .keep_params = c->o.replaceable,
			      .floats = &floats};
	c->g = ARENA_ARRAY(c->ctx->arena, Graph *, 2 * n);
	c->gpu_g = both ? c->g + n : c->g;
	for (uint32_t k = 0; k < n; k++)
		TRY(run_passes_on(c, k, &po));
	if (!c->from->g || both || c->o.weights == WEFT_WEIGHTS_FILE)
		hash_constants(c); /* that folding made */
	TRY((c->from->g && !both) || join_constants(c->from->entry, c->from->nentry, c->g,
						    both ? 2 * n : n, c->o.replaceable));
	c->w->dump = dump.data;
	c->floats = floats.data;
	phase_end(c, "passes");
	return true;
}

bool compile_lower(Compilation *c)
{
	ScheduleLevel *lowered =
		ARENA_ARRAY(c->ctx->arena, ScheduleLevel, c->level.n * c->from->nentry);
	phase_begin(c, "hash");
	c->source_hash = hash_source(c);
	phase_end(c, "hash");
	TRY(run_passes(c) && lower_levels(c, lowered) && schedule_levels(c, lowered));
	for (uint32_t k = 0; k < c->level.n; k++)
		c->level.data[k].own_bytes = c->level.data[k].program->weight_bytes;
	TRY(recipes_lower(c));
	for (uint32_t k = 0; k < c->level.n; k++)
		c->level.data[k].program->weight_bytes = c->program->weight_bytes;
	c->weights_hash = c->o.weights == WEFT_WEIGHTS_FILE ? section_hash(c->program) : NULL;
	return true;
}

/* Returns the name of the function that returns a level's table. */
static const char *level_export(const Compilation *c, const TargetLevel *level)
{
	const char *name = c->o.symbol ? c->o.symbol : "weft_model";
	return arena_printf(c->ctx->arena, "%s%s", name, level->suffix);
}

EmitSelect compile_select(const Compilation *c)
{
	uint32_t n = c->level.n;
	const char **name = ARENA_ARRAY(c->ctx->arena, const char *, n);
	for (uint32_t k = 0; k < n; k++)
		name[k] = level_export(c, &c->level.data[n - 1 - k]);
	return (EmitSelect){.export_name = c->o.symbol, .level_export = name, .n = n};
}

EmitOptions compile_emit_options(const Compilation *c, const TargetLevel *level,
				 const char *weights_file)
{
	return (EmitOptions){
		.nunits = c->backend->units(level->program->fn.n),
		.export_name = level_export(c, level),
		.suffix = level->suffix,
		.hidden = c->level.n > 1 || level == &c->recipes,
		.weights_symbol =
			weights_file || !level->program->weight_bytes ? NULL : c->weights_symbol,
		.weights_file = weights_file,
		.version = WEFT_VERSION,
		.weights_hash = c->weights_hash,
		.source_hash = c->source_hash,
		.compiler = "",
		.progress = c->o.progress,
		.progress_user = c->o.progress_user,
		.recipes_export = c->recipes.program ? level_export(c, &c->recipes) : NULL,
	};
}

uint32_t compile_programs(const Compilation *c, const TargetLevel **out)
{
	for (uint32_t k = 0; k < c->level.n; k++)
		out[k] = &c->level.data[k];
	if (c->recipes.program)
		out[c->level.n] = &c->recipes;
	return c->level.n + (c->recipes.program != NULL);
}

static const WeftEstimate *estimate_of(Arena *a, const Gpu *g, const GpuTime *t, double launches)
{
	const double by = 1e-9 * launches;
	return arena_dup(a,
			 &(WeftEstimate){g->device, by * t->start, by * t->memory, by * t->units,
					 by * t->waits, by * t->library},
			 sizeof(WeftEstimate));
}

/* Reports the kernels of an entry; returns their number. Times of a GPU are known at hint sizes
 * only. */
static uint32_t report_kernels(Arena *a, const ProgramEntry *e, const Target *t,
			       const int64_t *value, WeftKernelInfo *k)
{
	double *cycles = ARENA_ARRAY(a, double, e->ncall);
	if (!t->gpu)
		program_predict(e, &t->machine, value, cycles);
	for (uint32_t i = 0; i < e->ncall; i++) {
		const ProgramCall *pc = program_call(e, i);
		ProgramCount n = program_count(e, i, value);
		WeftRefusal *refused = ARENA_ARRAY(a, WeftRefusal, pc->nrefused);
		for (uint32_t j = 0; j < pc->nrefused; j++)
			refused[j] = (WeftRefusal){pc->refused[j].schedule, pc->refused[j].why,
						   pc->refused[j].near};
		k[i] = (WeftKernelInfo){pc->name,
					pc->algorithm,
					e->program->fn.data[pc->fn]->name,
					n.flops,
					n.bytes,
					n.launches,
					pc->why,
					pc->nrefused,
					refused,
					1e-9 * cycles[i] / (double)t->machine.ghz,
					pc->stored,
					pc->lines.nline ? ir_loc_text(e->program->ir, pc->lines.at)
							: NULL,
					pc->lines.nline,
					pc->plan,
					NULL};
		if (t->gpu && !value && pc->time.all > 0) {
			k[i].seconds = 1e-9 * n.launches * pc->time.all;
			k[i].estimate = estimate_of(a, t->gpu, &pc->time, n.launches);
		}
	}
	return e->ncall;
}

/* Fills in the counts of a report, at the values of the entries' symbols, one entry after the
 * other; NULL: at those seen while exporting. */
static void report_counts(Arena *a, const Program *p, const Target *t, const int64_t *value,
			  WeftReport *r)
{
	WeftKernelInfo *k = ARENA_ARRAY(a, WeftKernelInfo, p->call.n);
	WeftEntryReport *entry = ARENA_ARRAY(a, WeftEntryReport, p->entry.n);
	r->flops = r->bytes = 0;
	r->kernel = k;
	r->nkernel = p->call.n;
	for (uint32_t i = 0; i < p->entry.n; i++) {
		const ProgramEntry *e = &p->entry.data[i];
		ProgramCount total = program_total(e, value);
		if (r->entry)
			entry[i] = r->entry[i];
		entry[i].flops = total.flops;
		entry[i].bytes = total.bytes;
		entry[i].kernel = k;
		entry[i].nkernel = report_kernels(a, e, t, value, k);
		k += entry[i].nkernel;
		value = value ? value + e->symbol.n : NULL;
		r->flops += total.flops;
		r->bytes += total.bytes;
	}
	r->entry = entry;
	r->nentry = p->entry.n;
}

/* Returns the bytes of constants that are stored before in another layout. */
static uint64_t count_copies(Compilation *c)
{
	const Program *p = c->program;
	ArenaMark mark = arena_mark(c->ctx->scratch);
	bool *met = ARENA_ARRAY(c->ctx->scratch, bool, p->ir->constant.n);
	uint64_t bytes = 0;
	for (uint32_t k = 0; k < p->constant.n; k++) {
		const ProgramConst *x = &p->constant.data[k];
		bytes += met[x->source.i] ? x->bytes : 0;
		met[x->source.i] = true;
	}
	arena_release(c->ctx->scratch, mark);
	return bytes;
}

static void report_entries(Compilation *c)
{
	WeftReport *r = &c->w->report;
	WeftEntryReport *entry = ARENA_ARRAY(weft_arena(c->w), WeftEntryReport, c->from->nentry);
	r->operators = 0;
	r->workspace_bytes = r->saved_bytes = 0;
	for (uint32_t k = 0; k < c->from->nentry; k++) {
		const GraphEntry *from = &c->from->entry[k];
		const ProgramEntry *e = &c->program->entry.data[k];
		uint64_t workspace = e->workspace_hint, saved = e->saved_hint;
		entry[k] = (WeftEntryReport){
			.name = from->name, .workspace_bytes = workspace, .saved_bytes = saved};
		for (Node n = from->g->first; n.i; n = node_next(from->g, n))
			entry[k].operators += node_nin(from->g, n) > 0;
		r->operators += entry[k].operators;
		r->workspace_bytes =
			workspace > r->workspace_bytes ? workspace : r->workspace_bytes;
		r->saved_bytes = saved > r->saved_bytes ? saved : r->saved_bytes;
	}
	r->entry = entry;
}

static bool was_constant(const WeftGraph *from, uint32_t entry, const char *name)
{
	for (uint32_t k = 0; k < from->joined.n; k++)
		if (from->joined.data[k].entry == entry && !strcmp(from->joined.data[k].name, name))
			return true;
	return false;
}

static void add_word(Text *t, const char *word)
{
	text_printf(t, "%s%s", t->n ? ", " : "", word);
}

static void report_state(Compilation *c)
{
	WeftReport *r = &c->w->report;
	Arena *a = weft_arena(c->w);
	const Program *p = c->program;
	WeftStateReport *list = ARENA_ARRAY(a, WeftStateReport, p->state.n);
	for (uint32_t k = 0; k < p->state.n; k++) {
		const ProgramState *s = &p->state.data[k];
		Text written, read, constant;
		text_init(&written, a);
		text_init(&read, a);
		text_init(&constant, a);
		for (uint32_t e = 0; e < p->entry.n; e++) {
			uint8_t use = p->entry.data[e].state_use.data[k];
			if (use)
				add_word(use & PROGRAM_WRITES ? &written : &read,
					 p->entry.data[e].name);
			if (use && was_constant(c->from, e, s->name))
				add_word(&constant, p->entry.data[e].name);
		}
		list[k] = (WeftStateReport){arena_strdup(a, s->name), s->bytes,
					    written.n ? written.data : "", read.n ? read.data : "",
					    constant.n ? constant.data : ""};
	}
	r->nstate = p->state.n;
	r->state = list;
}

void compile_report(Compilation *c)
{
	WeftReport *r = &c->w->report;
	const Program *p = c->program;
	report_entries(c);
	r->kernels = p->call.n;
	r->distinct = p->fn.n;
	report_counts(weft_arena(c->w), p, c->target, NULL, r);
	r->weight_bytes = p->weight_bytes;
	r->copied_bytes = count_copies(c);
	r->state_bytes = p->state_bytes;
	r->floats = c->floats;
	report_state(c);
	c->w->program = p;
	c->w->target = c->target;
	c->w->compiled = c->from;
	c->w->have_report = true;
}

const WeftReport *weft_report(Weft *w)
{
	if (!w || !w->have_report)
		return NULL;
	w->report.nphase = w->phase.n; /* some end after compile_report */
	w->report.phase = w->phase.data;
	return &w->report;
}

typedef struct {
	Weft *w;
	const int64_t *value;
	uint32_t n;
	WeftReport *out;
} Counting;

static bool check_values(Ctx *ctx, const ProgramEntry *e, const int64_t *value)
{
	const SymTab *syms = e->program->ir->syms;
	for (uint32_t k = 0; k < e->symbol.n; k++) {
		int64_t lo, hi;
		sym_range(syms, e->symbol.data[k], &lo, &hi);
		if (value[k] < lo || value[k] > hi)
			return ctx_error(ctx, NULL, "%s cannot be %lld",
					 sym_name(syms, e->symbol.data[k]), (long long)value[k]);
	}
	return true;
}

static bool report_at(void *arg)
{
	Counting *x = arg;
	Ctx *ctx = x->w->ctx;
	const Program *p = x->w->program;
	uint32_t n = 0;
	if (!x->w->have_report)
		return ctx_error(ctx, NULL, "nothing was compiled that could be counted");
	for (uint32_t k = 0; k < p->entry.n; k++)
		n += p->entry.data[k].symbol.n;
	if (x->n != n)
		return ctx_error(ctx, NULL, "values of %u symbols to count with, expected %u", x->n,
				 n);
	TRY(given_list(x->w, "weft_report_at", "values of symbols", x->value, n));
	n = 0;
	for (uint32_t k = 0; k < p->entry.n; n += p->entry.data[k++].symbol.n)
		TRY(check_values(ctx, &p->entry.data[k], x->value + n));
	x->out = ARENA_NEW(weft_arena(x->w), WeftReport);
	*x->out = *weft_report(x->w);
	report_counts(weft_arena(x->w), p, x->w->target, x->value, x->out);
	return true;
}

const WeftReport *weft_report_at(Weft *w, const int64_t *symbol, uint32_t n)
{
	Counting x = {w, symbol, n, NULL};
	return boundary(w, report_at, &x) ? x.out : NULL;
}

const char *weft_dump(Weft *w)
{
	return w && w->dump ? w->dump : "";
}
