/* From graph to Program and C text; what a compilation reports. */
#include "driver/compile.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "codegen/schedule/schedule.h"
#include "driver/target_file.h"
#include "passes/pipeline.h"

void phase_end(Compilation *c, const char *name)
{
	double t = seconds_now();
	array_push(weft_arena(c->w), &c->w->phase, (WeftPhaseTime){name, t - c->w->phase_start});
	c->w->phase_start = t;
	if (c->o.progress)
		c->o.progress(c->o.progress_user, name, 1, 1);
}

bool compile_begin(Compilation *c, Weft *w, const WeftGraph *g, const WeftOptions *o)
{
	Ctx *ctx = w->ctx;
	*c = (Compilation){.w = w, .ctx = ctx, .from = g};
	if (o && o->size > sizeof *o)
		return ctx_error(ctx, NULL, "options of a newer version of the library");
	if (o)
		memcpy(&c->o, o, o->size);
	memset(&w->phase, 0, sizeof w->phase);
	memset(&w->report, 0, sizeof w->report);
	w->have_report = false;
	w->dump = NULL;
	w->phase_start = seconds_now();
	ctx->file = g->path;
	const char *target = c->o.target ? c->o.target : "native";
	c->target = target_read(ctx, target);
	TRY(c->target);
	c->name = c->o.name ? path_stem(ctx->arena, c->o.name) : path_stem(ctx->arena, g->path);
	c->llvm = c->o.backend == WEFT_BACKEND_LLVM;
	c->weights_symbol = arena_printf(ctx->arena, "%s_weights", c->name);
	return true;
}

/* Of the printed graph, which names every constant by its hash. */
static const char *hash_source(Compilation *c)
{
	Text t;
	ArenaMark mark = arena_mark(c->ctx->scratch);
	text_init(&t, c->ctx->scratch);
	for (uint32_t k = 1; k < c->from->g->ir->constant.n; k++)
		const_hash(c->from->g->ir, (ConstId){k});
	graph_print(c->from->g, &t);
	uint64_t a = hash_bytes(t.data, t.n, 11), b = hash_bytes(t.data, t.n, 12);
	arena_release(c->ctx->scratch, mark);
	return arena_printf(c->ctx->arena, "%016llx%016llx", (unsigned long long)a,
			    (unsigned long long)b);
}

bool compile_lower(Compilation *c)
{
	uint32_t errors = c->ctx->nerror;
	Text dump;
	text_init(&dump, c->ctx->arena);
	c->source_hash = hash_source(c);
	phase_end(c, "hash");
	c->g = graph_clone(c->from->g);
	c->g->name = c->name;
	PipelineOptions po = {.dump = c->o.dump, .dump_to = &dump, .keep_params = c->o.replaceable};
	TRY(pipeline_run(c->g, &po));
	c->w->dump = dump.data;
	phase_end(c, "passes");
	LowerOptions lo = {.no_fusion = c->o.op_by_op};
	Lowered *l = lower_graph(c->g, &lo);
	TRY(l && c->ctx->nerror == errors); /* a size may have left 64 bits on the way */
	phase_end(c, "lower");
	ScheduleOptions so = {.no_plan = c->o.op_by_op};
	c->program = schedule_program(l, c->target, &so);
	TRY(c->program);
	phase_end(c, "schedule");
	return true;
}

/* Few, balanced units; the number does not depend on the machine, so that the output does not either. For a C
 * compiler each costs a quarter of a second for its own vector header; LLVM only gains. */
static uint32_t unit_count(uint32_t kernels, bool llvm)
{
	if (kernels < 4)
		return 1;
	if (kernels < 16)
		return llvm ? 4 : 2;
	return kernels < 100 && !llvm ? 4 : 8;
}

EmitOptions compile_emit_options(const Compilation *c, const char *weights_file)
{
	return (EmitOptions){
		.nunits = unit_count(c->program->fn.n, c->llvm),
		.export_name = c->o.symbol,
		.weights_symbol =
			weights_file || !c->program->weight_bytes ? NULL : c->weights_symbol,
		.weights_file = weights_file,
		.version = WEFT_VERSION,
		.source_hash = c->source_hash,
		.compiler = "",
		.replaceable = c->o.replaceable,
	};
}

bool compile_print(Compilation *c, const char *weights_file)
{
	EmitOptions eo = compile_emit_options(c, weights_file);
	TRY(emit_c(c->program, c->target, &eo, &c->files));
	phase_end(c, "print");
	return true;
}

void compile_report(Compilation *c)
{
	WeftReport *r = &c->w->report;
	const Program *p = c->program;
	Arena *a = weft_arena(c->w);
	WeftKernelInfo *k = ARENA_ARRAY(a, WeftKernelInfo, p->call.n);
	for (uint32_t i = 0; i < p->call.n; i++) {
		const ProgramCall *pc = &p->call.data[i];
		k[i] = (WeftKernelInfo){pc->name, pc->algorithm ? pc->algorithm : "",
					p->fn.data[pc->fn]->name, pc->flops, pc->bytes};
	}
	r->operators = 0;
	for (Node n = c->from->g->first; n.i; n = node_next(c->from->g, n))
		r->operators += node_nin(c->from->g, n) > 0;
	r->kernels = p->call.n;
	r->distinct = p->fn.n;
	r->flops = p->flops;
	r->weight_bytes = p->weight_bytes;
	r->workspace_bytes = p->workspace_hint;
	r->nkernel = p->call.n;
	r->kernel = k;
	r->nphase = c->w->phase.n;
	r->phase = c->w->phase.data;
	c->w->have_report = true;
}

const WeftReport *weft_report(Weft *w)
{
	return w->have_report ? &w->report : NULL;
}

const char *weft_dump(Weft *w)
{
	return w->dump ? w->dump : "";
}
