/* The view of a program in weft_backend.h: texts of loop functions, and the tables that a model of
 * interpreted loop IR has. */
#include "driver/output/user_program.h"

#include <string.h>

#include "codegen/legal/legalise.h"
#include "driver/jit/loops.h"

typedef struct {
	Arena *arena;
	Ir *ir;
	const Isa *isa;
	Intern known; /* functions and tables by name */
	ARRAY(WeftBackendFunction) function;
	ARRAY(WeftBackendTable) table;
} ProgramView;

static WeftBackendFunction text_of(ProgramView *v, const LoopFn *f, const char *name,
				   uint32_t lanes)
{
	LoopFn named = *f;
	Text t;
	named.name = name;
	text_init(&t, v->arena);
	loop_print(&named, &t, false);
	return (WeftBackendFunction){.name = name, .text = t.data, .lanes = lanes};
}

static bool is_new(ProgramView *v, const char *name)
{
	bool fresh;
	intern(&v->known, name, strlen(name), &fresh);
	return fresh;
}

static void add_table(ProgramView *v, const ScTable *t)
{
	if (is_new(v, arena_printf(v->arena, "table %s", t->name)))
		array_push(v->arena, &v->table,
			   (WeftBackendTable){t->name, dtype_to_api(t->dtype), t->n, t->data});
}

static void add_calls(ProgramView *, const LoopFn *);

static void add_function(ProgramView *v, const ScFn *fn, uint32_t lanes)
{
	if (!is_new(v, arena_printf(v->arena, "%s x%u", fn->name, lanes)))
		return;
	const LoopFn *f = library_function(v->ir, fn, lanes, v->isa);
	add_calls(v, f);
	array_push(v->arena, &v->function, text_of(v, f, fn->name, lanes));
}

typedef struct {
	ProgramView *view;
	const LoopFn *f;
	bool *met; /* by expression */
} FunctionWalk;

static void meet(void *arg, Lx x)
{
	FunctionWalk *w = arg;
	const LxData *d = &w->f->lx.data[x.i];
	if (w->met[x.i])
		return;
	w->met[x.i] = true;
	for (uint32_t k = 0; k < d->nin; k++)
		meet(w, d->in[k]);
	if (d->kind == LX_FN)
		add_function(w->view, d->fn, d->type.lanes);
	else if (d->kind == LX_TABLE)
		add_table(w->view, d->table);
}

static void walk(FunctionWalk *w, Lb b)
{
	for (uint32_t k = 0; b.i && k < w->f->block.data[b.i].stmt.n; k++) {
		const LsData *s = &w->f->ls.data[w->f->block.data[b.i].stmt.data[k]];
		ls_visit(w->f, s, meet, w);
		walk(w, s->body);
		walk(w, s->other);
	}
}

/* Adds what the function calls and reads. */
static void add_calls(ProgramView *v, const LoopFn *f)
{
	FunctionWalk w = {v, f, ARENA_ARRAY(v->arena, bool, f->lx.n)};
	walk(&w, f->body);
	if (f->result.i)
		meet(&w, f->result);
}

static const WeftBackendFunction *outlined_of(ProgramView *v, LoopFn *const *fn, uint32_t n)
{
	WeftBackendFunction *out = ARENA_ARRAY(v->arena, WeftBackendFunction, n);
	for (uint32_t k = 0; k < n; k++) {
		add_calls(v, fn[k]);
		out[k] = text_of(v, fn[k], fn[k]->name, 1);
	}
	return out;
}

static WeftBackendEntry entry_of(ProgramView *v, const ProgramEntry *e)
{
	uint32_t *kernel = ARENA_ARRAY(v->arena, uint32_t, e->ncall);
	for (uint32_t k = 0; k < e->ncall; k++)
		kernel[k] = program_call(e, k)->fn;
	return (WeftBackendEntry){
		.sizes = *outlined_of(v, &e->sizes, 1),
		.run = *outlined_of(v, &e->run, 1),
		.nsizes_outlined = e->sizes_outlined.n,
		.nrun_outlined = e->run_outlined.n,
		.sizes_outlined = outlined_of(v, e->sizes_outlined.data, e->sizes_outlined.n),
		.run_outlined = outlined_of(v, e->run_outlined.data, e->run_outlined.n),
		.kernel = kernel,
	};
}

bool user_program(Compilation *c, WeftBackendProgram *out)
{
	const Program *p = c->program;
	Arena *a = c->ctx->arena;
	ProgramView v = {.arena = a, .ir = p->ir, .isa = &c->target->isa};
	const WeftModel *model;
	TRY(loops_model(c, &model));
	intern_init(&v.known, a);
	const char *const *name = kernel_names(p, "");
	WeftBackendFunction *kernel = ARENA_ARRAY(a, WeftBackendFunction, p->fn.n);
	WeftBackendEntry *entry = ARENA_ARRAY(a, WeftBackendEntry, p->entry.n);
	WeftTargetInfo *target = ARENA_NEW(a, WeftTargetInfo);
	*target = target_info(c->target);
	for (uint32_t k = 0; k < p->fn.n; k++) {
		add_calls(&v, p->fn.data[k]);
		kernel[k] = text_of(&v, p->fn.data[k], name[k], 1);
	}
	for (uint32_t k = 0; k < p->entry.n; k++)
		entry[k] = entry_of(&v, &p->entry.data[k]);
	*out = (WeftBackendProgram){
		.size = sizeof *out,
		.name = c->name,
		.target = target,
		.model = model,
		.nentry = p->entry.n,
		.entry = entry,
		.nkernel = p->fn.n,
		.kernel = kernel,
		.nfunction = v.function.n,
		.function = v.function.data,
		.ntable = v.table.n,
		.table = v.table.data,
		.nmessage = p->message.n,
		.message = p->message.data,
	};
	return true;
}
