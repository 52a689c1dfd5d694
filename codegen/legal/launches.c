#include "codegen/legal/launches.h"

enum { FEW = 32 }; /* launches that stay code */

typedef struct {
	LaunchTable *t;
	const LoopFn *f;
	Arena *arena;
	uint32_t *fn; /* by index into Program.fn: in the table + 1 */
	Intern value, shape;
	ARRAY(int64_t) text;  /* of the shape at hand */
	ARRAY(int64_t) begin; /* of the shapes, in their order */
} Writer;

/* Returns the word of a value in the table: 2 c for a constant c, 2 k + 1 for value k of those that
 * are computed ahead. */
static int64_t word_of(Writer *w, Lx x)
{
	int64_t c, twice;
	if (lx_is_int(w->f, x, &c) && !__builtin_mul_overflow(c, 2, &twice))
		return twice;
	bool fresh;
	uint32_t id = intern(&w->value, &x, sizeof x, &fresh);
	if (fresh)
		array_push(w->arena, &w->t->value, x);
	return 2 * (int64_t)(id - 1) + 1;
}

static int64_t kernel_of(Writer *w, uint32_t fn)
{
	if (!w->fn[fn]) {
		array_push(w->arena, &w->t->fn, fn);
		w->fn[fn] = w->t->fn.n;
	}
	return w->fn[fn] - 1;
}

/* Adds the shape of a launch, what equal launches have in common, unless the table has it. Returns
 * where the shape begins in LaunchTable.shape. */
static int64_t put_shape(Writer *w, const ProgramEntry *e, const LsData *s)
{
	LaunchTable *t = w->t;
	const uint32_t nparam = s->narg - s->nbuf;
	const int64_t head[] = {kernel_of(w, program_call(e, s->k)->fn), s->nbuf, nparam,
				word_of(w, s->x)};
	w->text.n = 0;
	for (uint32_t k = 0; k < sizeof head / sizeof *head; k++)
		array_push(w->arena, &w->text, head[k]);
	for (uint32_t k = 0; k < s->nbuf; k++)
		array_push(w->arena, &w->text, w->f->lx.data[s->arg[k].i].u.k);
	for (uint32_t k = s->nbuf; k < s->narg; k++)
		array_push(w->arena, &w->text, word_of(w, s->arg[k]));
	bool fresh;
	uint32_t id = intern(&w->shape, w->text.data, w->text.n * sizeof *w->text.data, &fresh);
	if (fresh) {
		array_push(w->arena, &w->begin, (int64_t)t->shape.n);
		for (uint32_t k = 0; k < w->text.n; k++)
			array_push(w->arena, &t->shape, w->text.data[k]);
	}
	t->nbuf = s->nbuf > t->nbuf ? s->nbuf : t->nbuf;
	t->nparam = nparam > t->nparam ? nparam : t->nparam;
	return w->begin.data[id - 1];
}

static void put_launch(Writer *w, const ProgramEntry *e, const LsData *s)
{
	LaunchTable *t = w->t;
	array_push(w->arena, &t->word, put_shape(w, e, s));
	array_push(w->arena, &t->word, (int64_t)launch_word(e, s));
	for (uint32_t k = 0; k < s->nbuf; k++)
		array_push(w->arena, &t->word, word_of(w, w->f->lx.data[s->arg[k].i].in[0]));
	t->n++;
}

LaunchTable *launch_table(const ProgramEntry *e, const LoopFn *f, const LsData *launch, uint32_t n)
{
	Arena *arena = f->ir->ctx->arena;
	if (!e->run_outlined.n || n < FEW)
		return NULL;
	LaunchTable *t = ARENA_NEW(arena, LaunchTable);
	Writer w = {.t = t,
		    .f = f,
		    .arena = arena,
		    .fn = ARENA_ARRAY(arena, uint32_t, e->program->fn.n)};
	intern_init(&w.value, arena);
	intern_init(&w.shape, arena);
	for (uint32_t k = 0; k < n; k++)
		put_launch(&w, e, &launch[k]);
	return t;
}
