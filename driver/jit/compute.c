/* Constants that have recipes, computed in this process by the code that the artifact has for
 * them. */
#include "driver/jit/compute.h"

#include <string.h>

#include "codegen/cpu/host.h"
#include "driver/artifact/backend.h"
#include "driver/jit/jit.h"
#include "driver/jit/loops.h"

typedef struct {
	Compilation *c;
	const WeftModel *m;
	WeftInstance *in;
	WeftStatus status;
} Computing;

/* Returns the data of a constant, aligned: files need not align their tensors. */
static void *aligned(Arena *a, const Const *c)
{
	if ((uintptr_t)c->data % dtype_size(c->dtype) == 0)
		return (void *)(uintptr_t)c->data;
	void *copy = arena_alloc(a, c->bytes);
	memcpy(copy, c->data, c->bytes);
	return copy;
}

static WeftTensor tensor_of(Arena *a, const Const *c, void *data)
{
	int64_t *dim = arena_dup(a, c->dim, c->rank * sizeof *dim);
	return (WeftTensor){.data = data,
			    .device = {WEFT_CPU, 0},
			    .ndim = (int32_t)c->rank,
			    .dtype = dtype_to_api(c->dtype),
			    .shape = dim};
}

static bool compute_group(Computing *x, const ProgramGroup *g)
{
	Ctx *ctx = x->c->ctx;
	Ir *ir = x->c->program->ir;
	const WeftEntry *e = weft_entry(x->m, g->entry);
	const WeftContext run = {.size = sizeof run, .nthreads = (int32_t)x->c->o.jobs};
	ArenaMark mark = arena_mark(ctx->scratch);
	WeftTensor *in = ARENA_ARRAY(ctx->scratch, WeftTensor, g->input.n),
		   *out = ARENA_ARRAY(ctx->scratch, WeftTensor, g->output.n);
	WeftSizes *sizes = arena_alloc(ctx->scratch, e->sizes_bytes);
	for (uint32_t k = 0; k < g->input.n; k++) {
		const Const *c = ir_const_of(ir, g->input.data[k]);
		in[k] = tensor_of(ctx->scratch, c, aligned(ctx->scratch, c));
	}
	for (uint32_t k = 0; k < g->output.n; k++) {
		const Const *c = ir_const_of(ir, g->output.data[k]);
		out[k] = tensor_of(ctx->scratch, c, arena_alloc(ctx->arena, c->bytes + 1));
	}
	int code = x->m->sizes(x->in, g->entry, in, sizes, &x->status);
	void *work = code == WEFT_OK ? arena_alloc(ctx->scratch, sizes->workspace_bytes + 1) : NULL;
	code = work ? x->m->run(x->in, sizes, in, out, work, &run, &x->status) : code;
	for (uint32_t k = 0; code == WEFT_OK && k < g->output.n; k++)
		ir->constant.data[g->output.data[k].i].data = out[k].data;
	arena_release(ctx->scratch, mark);
	return code == WEFT_OK ||
	       ctx_error(ctx, NULL, "weights cannot be computed: %s", x->status.message);
}

static bool compute_groups(Computing *x)
{
	const ProgramRecipes *p = x->c->program->recipes;
	if (x->m->open(x->m, NULL, &x->in, &x->status) != WEFT_OK)
		return ctx_error(x->c->ctx, NULL, "weights cannot be computed: %s",
				 x->status.message);
	bool ok = true;
	for (uint32_t k = 0; k < p->group.n && ok; k++)
		ok = compute_group(x, &p->group.data[k]);
	x->m->close(x->in);
	return ok;
}

/* Makes a model of the program that computes, by a compilation that ends in this process. */
static bool model_here(Compilation *c, const WeftModel **m)
{
	Weft *w = c->w;
	const uint32_t phases = w->phase.n;
	const double start = w->phase_start;
	Compilation here = *c;
	here.o.progress = NULL;
	here.o.symbol = NULL;
	memset(&here.level, 0, sizeof here.level);
	array_push(weft_arena(w), &here.level, c->recipes);
	here.level.data[0].suffix = "";
	here.recipes = (TargetLevel){0};
	here.program = c->recipes.program;
	here.target = c->recipes.target;
	const Backend *b = backend_here();
	bool jit = target_runs_here(here.target) && backend_available(b, c);
	here.backend = jit ? b : c->backend;
	bool ok = jit ? jit_model(&here, m) : loops_model(&here, m);
	w->phase.n = phases; /* it is one of its own */
	w->phase_start = start;
	return ok;
}

bool recipes_compute(Compilation *c)
{
	Computing x = {.c = c};
	if (!c->recipes.program || c->computed)
		return true;
	TRY(model_here(c, &x.m) && compute_groups(&x));
	c->computed = true;
	return true;
}
