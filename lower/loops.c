/* Loops that do not depend on each other and have as many rounds become one:
 *
 *   loop t < 20 { a = f(a, x[t]) }                     loop t < 20, down u < 20 {
 *   loop down u < 20 { b = g(b, y[u]) }          ->            a = f(a, x[t])
 *                                                              b = g(b, y[u]) }
 *
 * Both directions of a recurrent layer are such. Steps of one round that follow each other in a
 * loop are for one thread each, if they are short; those of two loops share a phase, in which two
 * threads take one each, and there are half as many phases. What lies between the two loops moves
 * ahead of the first where the second needs it, else behind the second. Nothing that may fail is
 * moved, so that the first check that fails stays the first.
 *
 * It would cost time where the constants of either loop stay in a core's second cache from round to
 * round, and those of both do not. */
#include "lower/priv.h"

enum {
	MOST_BETWEEN = 64, /* steps between two loops, and of a round: they bound the comparisons */
	MOST_ROUND = 64
};

typedef struct {
	Lowered *l;
	double cache;
	uint32_t round;                   /* counted from 1: an attempt to join a loop */
	uint32_t *read, *written;         /* by buffer: the last round in which the loop, or what
	                                     stays behind it, does */
	uint32_t sum, *summed;            /* by buffer: the last sum of bytes that it was part of */
	double bytes;
	bool apart;
} Joining;

static void note(void *data, BufId b, bool write)
{
	Joining *j = data;
	(write ? j->written : j->read)[b.i] = j->round;
}

static void compare(void *data, BufId b, bool write)
{
	Joining *j = data;
	j->apart &= j->written[b.i] != j->round && (!write || j->read[b.i] != j->round);
}

static void add_bytes(void *data, BufId id, bool write)
{
	Joining *j = data;
	const Buffer *b = buf_of(j->l, id);
	if (write || b->kind != BUF_CONST || j->summed[id.i] == j->sum)
		return;
	double bytes = dtype_size(b->dtype);
	for (uint32_t d = 0; d < b->rank; d++)
		bytes *= (double)sym_hint(j->l->ir->syms, b->dim[d]);
	j->summed[id.i] = j->sum;
	j->bytes += bytes;
}

static void visit_step(Joining *j, const Step *s, void (*visit)(void *, BufId, bool))
{
	step_buffers(s, j->l->ir->ctx->scratch, visit, j);
}

/* Whether the step, the loop at hand and what stays behind it can be executed in any order. */
static bool is_apart(Joining *j, const Step *s)
{
	j->apart = true;
	visit_step(j, s, compare);
	return j->apart;
}

/* Returns the bytes of the constants that steps a and b read, which may be the same step. */
static double bytes_of(Joining *j, const Step *a, const Step *b)
{
	j->bytes = 0;
	j->sum++;
	visit_step(j, a, add_bytes);
	visit_step(j, b, add_bytes);
	return j->bytes;
}

static bool stays_cached(Joining *j, const Step *a, const Step *b)
{
	return bytes_of(j, a, b) <= j->cache || bytes_of(j, a, a) > j->cache ||
	       bytes_of(j, b, b) > j->cache;
}

static bool kernel_may_fail(const Kernel *k)
{
	for (uint32_t i = 0; i < k->stage.n; i++)
		if (k->stage.data[i].kind == STAGE_CHECK && k->stage.data[i].check.message)
			return true;
	for (uint32_t i = 0; i < k->vvar.n; i++)
		if (k->vvar.data[i].check)
			return true;
	return false;
}

/* Whether the step is a kernel that cannot fail, or a loop of such kernels. */
static bool is_movable(const Step *s)
{
	if (s->kind == STEP_KERNEL)
		return !kernel_may_fail(s->kernel);
	if (s->kind != STEP_LOOP || (s->body->graph && s->body->graph->guard.n))
		return false;
	for (uint32_t k = 0; k < s->body->step.n; k++)
		TRY(is_movable(&s->body->step.data[k]));
	return true;
}

/* Joins loop s to loop `to`: in each round their steps alternate. */
static void join(Lowered *l, Step *to, const Step *s)
{
	Arena *arena = l->ir->ctx->arena;
	StepList *body = ARENA_NEW(arena, StepList);
	const StepList *a = to->body, *b = s->body;
	body->graph = a->graph;
	for (uint32_t k = 0; k < a->step.n || k < b->step.n; k++) {
		if (k < a->step.n)
			array_push(arena, &body->step, a->step.data[k]);
		if (k < b->step.n)
			array_push(arena, &body->step, b->step.data[k]);
	}
	struct StepCarry *carry = ARENA_ARRAY(arena, struct StepCarry, to->ncarry + s->ncarry);
	for (uint32_t k = 0; k < to->ncarry + s->ncarry; k++)
		carry[k] = k < to->ncarry ? to->carry[k] : s->carry[k - to->ncarry];
	struct StepVar *also = ARENA_ARRAY(arena, struct StepVar, to->nalso + s->nalso + 1);
	for (uint32_t k = 0; k < to->nalso + s->nalso; k++)
		also[k] = k < to->nalso ? to->also[k] : s->also[k - to->nalso];
	also[to->nalso + s->nalso] = (struct StepVar){s->var, s->reverse};
	to->body = body;
	to->carry = carry;
	to->ncarry += s->ncarry;
	to->also = also;
	to->nalso += s->nalso + 1;
}

/* Returns the number of a step behind loop `at` that can be joined with it; 0 if there is none.
 * behind: sets which steps between the two stay behind the joined loop. */
static uint32_t find_next(Joining *j, const StepList *list, uint32_t at, bool *behind)
{
	const Step *first = &list->step.data[at];
	if (first->body->step.n > MOST_ROUND)
		return 0;
	j->round++;
	visit_step(j, first, note);
	for (uint32_t next = at + 1; next < list->step.n && next - at <= MOST_BETWEEN; next++) {
		const Step *s = &list->step.data[next];
		if (!is_movable(s))
			return 0;
		const bool apart = is_apart(j, s);
		if (apart && s->kind == STEP_LOOP && s->extent.i == first->extent.i &&
		    stays_cached(j, first, s))
			return next;
		behind[next - at] = !apart;
		if (!apart)
			visit_step(j, s, note);
	}
	return 0;
}

/* Tries to join loop `at` of the list with the next one that has as many rounds. */
static bool join_next(Joining *j, StepList *list, uint32_t at)
{
	bool behind[MOST_BETWEEN + 1] = {false};
	const uint32_t next = find_next(j, list, at, behind);
	if (!next)
		return false;
	Step *step = &list->step.data[at], joined = *step, stay[MOST_BETWEEN];
	uint32_t n = 0, nstay = 0;
	join(j->l, &joined, &step[next - at]);
	for (uint32_t k = 1; k < next - at; k++) {
		if (behind[k])
			stay[nstay++] = step[k];
		else
			step[n++] = step[k];
	}
	step[n++] = joined;
	for (uint32_t k = 0; k < nstay; k++)
		step[n++] = stay[k];
	for (uint32_t k = next + 1; k < list->step.n; k++)
		step[n++] = list->step.data[k];
	list->step.n = at + n;
	return true;
}

static void join_in(Joining *j, StepList *list)
{
	for (uint32_t k = 0; k < list->step.n; k++) {
		StepList *inner[MAX_STEP_LISTS];
		while (list->step.data[k].kind == STEP_LOOP && is_movable(&list->step.data[k]) &&
		       join_next(j, list, k))
			while (list->step.data[k].kind != STEP_LOOP)
				k++;
		for (uint32_t i = 0, n = step_lists(&list->step.data[k], inner); i < n; i++)
			join_in(j, inner[i]);
	}
}

void lower_join_loops(Lowered *l, const Target *t)
{
	Arena *scratch = l->ir->ctx->scratch;
	const uint32_t n = l->buf.n;
	Joining j = {.l = l,
		     .cache = (double)t->machine.l2,
		     .read = ARENA_ARRAY(scratch, uint32_t, n),
		     .written = ARENA_ARRAY(scratch, uint32_t, n),
		     .summed = ARENA_ARRAY(scratch, uint32_t, n)};
	if (!t->isa.of_block)
		join_in(&j, &l->steps);
}
