/* Launches that do not depend on each other form one phase: between them nobody waits.
 *
 * A launch continues the phase of those before it when no buffer is written by one of them and
 * touched by another; parts of one buffer that are provably not the same may be written in the same
 * phase (the border of an image and its interior, what is concatenated). A phase lies within a list
 * of steps, between steps that are no launches. */
#include "codegen/program/distinct.h"

enum { WRITERS = 16 /* of one buffer in a phase: bounds the comparisons */ };

/* A kernel that writes a buffer in the phase at hand. */
typedef struct {
	const Kernel *kernel; /* NULL: a call */
	uint32_t buf, before, count; /* the writer of the same memory before this one, and how many
	                                there are with it */
} Writer;

typedef struct {
	DistinctKernels *d;
	const uint32_t *owner; /* by buffer: the one with which it swaps memory, or 0 */
	uint32_t *read, *written; /* by buffer, then temporary: the last phase that did */
	uint32_t *writer; /* by buffer: the last of writers, if that phase is the one at hand */
	ARRAY(Writer) writers;  /* of the phase; [0] unused */
	uint32_t phase, kernel;
	bool fails; /* a launch in this phase may */
	bool open; /* the launch before is in this phase, and may be continued */
} PhaseState;

static uint32_t memory_of(const PhaseState *h, const Scheduled *k, const SchedArg *a)
{
	const Lowered *l = h->d->l;
	if (a->kind == ARG_TEMP)
		return l->buf.n + k->temp + a->k;
	uint32_t b = k->buf[a->k].i;
	while (h->owner[b])
		b = h->owner[b];
	return b;
}

bool phase_fails(const SchedPhase *p)
{
	for (uint32_t k = 0; k < p->f->ls.n; k++)
		if (p->f->ls.data[k].kind == LS_FAIL || p->f->ls.data[k].kind == LS_CALL)
			return true;
	return false;
}

static bool replaces_state(const PhaseState *h, const Scheduled *k, const SchedPhase *p)
{
	bool found = false;
	for (uint32_t a = 0; a < p->narg; a++)
		found |= p->f->buf.data[a].written && p->arg[a].kind == ARG_BUF &&
			 buf_of(h->d->l, k->buf[p->arg[a].k])->kind == BUF_STATE;
	return found;
}

/* Whether all launches of this phase that write the memory provably write other elements than the
 * kernel does. False for calls and temporaries, and where there are WRITERS such launches. */
static bool writes_apart(const PhaseState *h, const Kernel *kernel, const Scheduled *k,
			 const SchedArg *a, uint32_t memory)
{
	const Writer *last = &h->writers.data[h->writer[memory]];
	if (!kernel || a->kind == ARG_TEMP || last->count >= WRITERS)
		return false;
	for (const Writer *w = last; w->count; w = &h->writers.data[w->before])
		if (!w->kernel || w->buf != k->buf[a->k].i ||
		    !kernel_stores_apart(h->d->l, kernel, w->kernel, k->buf[a->k]))
			return false;
	return true;
}

static bool may_follow(const PhaseState *h, const Kernel *kernel, const Scheduled *k,
		       const SchedPhase *p)
{
	for (uint32_t a = 0; a < p->narg; a++) {
		const LArg *arg = &p->f->buf.data[a];
		uint32_t m = memory_of(h, k, &p->arg[a]);
		if (h->written[m] == h->phase &&
		    (arg->read || !writes_apart(h, kernel, k, &p->arg[a], m)))
			return false;
		if (arg->written && h->read[m] == h->phase)
			return false;
	}
	return true;
}

static void note_writer(PhaseState *h, const Kernel *kernel, const Scheduled *k, const SchedArg *a,
			uint32_t memory)
{
	uint32_t before = h->written[memory] == h->phase ? h->writer[memory] : 0;
	Writer w = {kernel, a->kind == ARG_BUF ? k->buf[a->k].i : 0, before,
		    h->writers.data[before].count + 1};
	h->writer[memory] = h->writers.n;
	h->written[memory] = h->phase;
	array_push(h->d->l->ir->ctx->arena, &h->writers, w);
}

static void place_launch(PhaseState *h, const Kernel *kernel, const Scheduled *k, uint32_t phase,
			 bool *continues)
{
	const SchedPhase *p = &k->schedule->phase.data[phase];
	bool state = h->d->l->state.n;
	continues[phase] = h->open && !p->opens && may_follow(h, kernel, k, p) &&
			   !(state && h->fails && replaces_state(h, k, p));
	h->phase += !continues[phase];
	if (!continues[phase])
		h->writers.n = 1;
	/* a phase is completed when a check in it fails: state is not replaced in it, then */
	h->fails = state && ((continues[phase] && h->fails) || phase_fails(p));
	h->open = !p->alone;
	for (uint32_t a = 0; a < p->narg; a++) {
		uint32_t m = memory_of(h, k, &p->arg[a]);
		if (p->f->buf.data[a].written)
			note_writer(h, kernel, k, &p->arg[a], m);
		if (p->f->buf.data[a].read)
			h->read[m] = h->phase;
	}
}

static void place_steps(PhaseState *h, const StepList *list)
{
	h->open = false;
	for (uint32_t i = 0; i < list->step.n; i++) {
		const Step *s = &list->step.data[i];
		StepList *inner[MAX_STEP_LISTS];
		if (step_is_launch(s)) {
			Scheduled *k = &h->d->kernel.data[h->kernel++];
			bool *continues =
				ARENA_ARRAY(h->d->l->ir->ctx->arena, bool, k->schedule->phase.n);
			for (uint32_t p = 0; p < k->schedule->phase.n; p++)
				place_launch(h, s->kernel, k, p, continues);
			k->continues = continues;
			continue;
		}
		for (uint32_t k = 0, n = step_lists(s, inner); k < n; k++)
			place_steps(h, inner[k]);
		h->open = false;
	}
}

void form_phases(DistinctKernels *d, const StepList *steps, const uint32_t *owner)
{
	Arena *arena = d->l->ir->ctx->arena;
	uint32_t n = d->l->buf.n + d->ntemp;
	PhaseState h = {.d = d,
			.owner = owner,
			.read = ARENA_ARRAY(arena, uint32_t, n),
			.written = ARENA_ARRAY(arena, uint32_t, n),
			.writer = ARENA_ARRAY(arena, uint32_t, n)};
	array_push(arena, &h.writers, (Writer){0});
	place_steps(&h, steps);
}
