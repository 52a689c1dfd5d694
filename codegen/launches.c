#include "codegen/launches.h"

enum { FEW = 32 }; /* launches that stay code */

typedef struct {
	LaunchTable *t;
	const LoopFn *f;
	Arena *arena;
	uint32_t *fn;    /* by index into Program.fn: in the table + 1 */
	Intern value;
} Writer;

static void put(Writer *w, int64_t word)
{
	array_push(w->arena, &w->t->word, word);
}

/* A constant c is 2 c; what is computed is 2 k + 1, k its number. */
static void put_value(Writer *w, Lx x)
{
	int64_t c, twice;
	if (lx_is_int(w->f, x, &c) && !__builtin_mul_overflow(c, 2, &twice)) {
		put(w, twice);
		return;
	}
	bool fresh;
	uint32_t id = intern(&w->value, &x, sizeof x, &fresh);
	if (fresh)
		array_push(w->arena, &w->t->value, x);
	put(w, 2 * (int64_t)(id - 1) + 1);
}

static void put_launch(Writer *w, const ProgramEntry *e, const LsData *s)
{
	LaunchTable *t = w->t;
	uint32_t fn = program_call(e, s->k)->fn, nparam = s->narg - s->nbuf;
	if (!w->fn[fn]) {
		array_push(w->arena, &t->fn, fn);
		w->fn[fn] = t->fn.n;
	}
	t->nbuf = s->nbuf > t->nbuf ? s->nbuf : t->nbuf;
	t->nparam = nparam > t->nparam ? nparam : t->nparam;
	put(w, w->fn[fn] - 1);
	put(w, launch_word(e, s));
	put(w, s->nbuf);
	put(w, nparam);
	put_value(w, s->x);
	for (uint32_t k = 0; k < s->nbuf; k++) {
		const LxData *address = &w->f->lx.data[s->arg[k].i];
		put(w, address->u.k);
		put_value(w, address->in[0]);
	}
	for (uint32_t k = s->nbuf; k < s->narg; k++)
		put_value(w, s->arg[k]);
	t->n++;
}

LaunchTable *launch_table(const ProgramEntry *e, const LoopFn *f, const LsData *launch, uint32_t n)
{
	Arena *arena = f->ir->ctx->arena;
	if (!e->run_part.n || n < FEW)
		return NULL;
	LaunchTable *t = ARENA_NEW(arena, LaunchTable);
	Writer w = {.t = t, .f = f, .arena = arena, .fn = ARENA_ARRAY(arena, uint32_t, e->program->fn.n)};
	intern_init(&w.value, arena);
	for (uint32_t k = 0; k < n; k++)
		put_launch(&w, e, &launch[k]);
	return t;
}
