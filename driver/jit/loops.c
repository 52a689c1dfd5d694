/* A model of interpreted loop IR: its tables are those that an emitter would write. */
#include "driver/jit/loops.h"

#include <stdio.h>
#include <string.h>

#include "codegen/print/model_image.h"
#include "driver/jit/loops_priv.h"
#include "driver/artifact/section.h"
#include "driver/jit/compute.h"
#include "ir/loop/interp/interp.h"
#include "runtime/runtime.h"

/* ---- the table ---- */

/* Fills in the pointers of the image in memory. Pointers to functions stay NULL: loops_functions
 * sets them. */
static const WeftModel *load_image(ModelImage *im, const void *weights, const char *weights_symbol)
{
	for (uint32_t k = 0; k < im->pointer.n; k++) {
		const ImagePointer *p = &im->pointer.data[k];
		const void *to = !p->symbol                               ? im->data + p->to
				 : strcmp(p->symbol, weights_symbol) == 0 ? weights
									  : NULL;
		memcpy(im->data + p->at, &to, sizeof to);
	}
	return (const WeftModel *)(const void *)(im->data + im->model);
}

static void copy_entries(LoopModel *m, const Program *p)
{
	const WeftEntry **entry = ARENA_ARRAY(weft_arena(m->w), const WeftEntry *, p->entry.n);
	m->entry = ARENA_ARRAY(weft_arena(m->w), LoopEntry, p->entry.n);
	for (uint32_t k = 0; k < p->entry.n; k++) {
		m->entry[k] = (LoopEntry){*m->model.entry[k], m, &p->entry.data[k]};
		entry[k] = &m->entry[k].table;
	}
	m->model.entry = entry;
}

/* Gives the model the recipes' model instead of a function that returns it. */
static void point_to_recipes(LoopModel *m, const WeftModel *recipes)
{
	WeftRecipes *p = ARENA_NEW(weft_arena(m->w), WeftRecipes);
	*p = *m->model.recipes;
	p->model = recipes;
	m->model.recipes = p;
}

/* Makes a model of a level: c->program's, or c->recipes. */
static LoopModel *model_of(Compilation *c, const TargetLevel *level, const void *weights)
{
	ModelImage im;
	LoopModel *m = ARENA_NEW(c->ctx->arena, LoopModel);
	EmitOptions o = compile_emit_options(c, level, NULL);
	/* the interpreter expects what emitters do: types and scopes that fit */
	if (!program_verify(level->program, &level->target->isa))
		return NULL;
	model_image(&im, level->program, level->target, "" /* whatever this processor has */, &o);
	m->model = *load_image(&im, weights, c->weights_symbol);
	m->w = c->w;
	copy_entries(m, level->program);
	loops_functions(m);
	return m;
}

bool loops_model(Compilation *c, const WeftModel **out)
{
	SectionMap *weights;
	LoopModel *recipes = NULL;
	TRY(!c->recipes.program || (recipes = model_of(c, &c->recipes, NULL)));
	TRY(recipes_compute(c) && section_map(c->program, c->o.jobs, &weights));
	phase_end(c, "weights");
	LoopModel *m = model_of(c, &c->level.data[0], weights->data);
	TRY(m);
	if (recipes)
		point_to_recipes(m, &recipes->model);
	*out = &m->model;
	return true;
}

/* ---- calls ---- */

typedef struct {
	LoopEntry *e;
	Arena *arena;
	const int64_t *in;
	int64_t *out;       /* of sizes */
	void *const *buf;   /* of run */
	LoopReport report;
	LoopOutcome outcome;
} EntryCall;

static bool interpret(void *arg)
{
	EntryCall *c = arg;
	const ProgramEntry *e = c->e->program;
	c->outcome = c->buf ? loop_interp_run(e, c->arena, c->buf, c->in, &c->report)
			    : loop_interp_sizes(e, c->arena, c->in, c->out, &c->report);
	return true;
}

/* Executes a call in an arena of its own: it leaves nothing behind. */
static bool call(EntryCall *c, char message[MESSAGE])
{
	Weft *w = c->e->model->w;
	c->arena = w->dead ? NULL : arena_new(&w->ctx->unwind);
	c->report.seed = c->e->model->ncall++;
	bool ok = c->arena && boundary(w, interpret, c);
	arena_free(c->arena);
	snprintf(message, MESSAGE, "%.*s", MESSAGE - 1,
		 ok        ? c->report.message
		 : w->dead ? w->fatal
			   : "out of memory");
	return ok;
}

int loops_sizes(LoopEntry *e, const int64_t *extent, int64_t *slot, char message[MESSAGE])
{
	EntryCall c = {.e = e, .in = extent, .out = slot};
	if (!call(&c, message))
		return WEFT_ERR_MEMORY;
	return c.outcome == LOOP_DONE     ? WEFT_OK
	       : c.outcome == LOOP_FAILED ? WEFT_ERR_INPUT
					  : WEFT_ERR_CHECK;
}

int loops_run(LoopEntry *e, void *const *buf, const int64_t *slot,
	      bool (*room)(void *, uint32_t, const int64_t *), void *user,
	      const WeftOpContext *context, char message[MESSAGE])
{
	EntryCall c = {.e = e,
		       .in = slot,
		       .buf = buf,
		       .report = {.room = room, .user = user, .context = context}};
	bool ok = call(&c, message);
	return ok && c.outcome == LOOP_NO_ROOM ? LOOPS_NO_ROOM
	       : ok && c.outcome == LOOP_DONE  ? WEFT_OK
					       : WEFT_ERR_CHECK;
}
