/* The memory plan, on programs that are made up: a memory in which every write leaves its mark
 * shows whether what is read is still there; how much memory is used is compared with what is
 * alive. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/program/plan.h"
#include "ctx_fixture.h"

/* ROUNDS: of a loop; WORDS: of the simulated memory */
enum { MAX_BUFS = 600, UNIT = 64, ROUNDS = 3, WORDS = 1 << 16 };

/* ---- programs ---- */

typedef struct {
	Lowered *l;
	DistinctKernels *k;
	Sym size;  /* a symbol, of symbolic sizes */
	bool symbolic;
	uint64_t rng;
	ARRAY(uint32_t) alive;        /* buffers that may still be read */
	uint32_t now, born[MAX_BUFS]; /* phases; by buffer: the one that writes it */
} Made;

static uint32_t below(Made *m, uint32_t n)
{
	m->rng = m->rng * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(m->rng >> 33) % n;
}

static Made made(uint64_t seed, bool symbolic)
{
	Ir *ir = ir_new(ctx);
	Made m = {.l = lowered_new(ir, graph_new(ir, "f")),
		  .k = ARENA_NEW(ctx->arena, DistinctKernels),
		  .symbolic = symbolic,
		  .rng = seed};
	m.size = sym_var(ir->syms, "s", SYMVAR_SIZE, 1, 100);
	distinct_init(m.k, m.l, NULL, target_find("generic-c"));
	return m;
}

/* Units of 64 bytes; with symbols n * s, which can be compared, or s + n or 2 n. */
static uint32_t buffer(Made *m, uint32_t units)
{
	SymTab *t = m->l->ir->syms;
	Sym dim = sym_int(t, UNIT * units);
	if (m->symbolic && units % 4)
		dim = sym_muli(
			t, units % 2 ? sym_muli(t, m->size, units) : sym_addi(t, m->size, units),
			UNIT);
	return lowered_buf(m->l, BUF_TEMP, 0, DT_u8, 1, arena_dup(ctx->arena, &dim, sizeof dim),
			   "b")
		.i;
}

/* A kernel of some phases. `joins`: the first one is in that of the kernel before, if that does not
 * write what it reads. */
static void kernel(Made *m, StepList *to, uint32_t nphase, const uint32_t *arg, uint32_t narg,
		   uint32_t nwrite, bool joins)
{
	Arena *a = ctx->arena;
	Schedule *s = ARENA_NEW(a, Schedule);
	bool *join = ARENA_ARRAY(a, bool, nphase);
	for (uint32_t k = nwrite; k < narg; k++)
		joins &= m->born[arg[k]] < m->now;
	m->now += nphase - joins;
	for (uint32_t k = 0; k < nwrite; k++)
		m->born[arg[k]] = m->now;
	BufId *buf = ARENA_ARRAY(a, BufId, narg);
	join[0] = joins;
	for (uint32_t k = 0; k < narg; k++)
		buf[k].i = arg[k];
	for (uint32_t p = 0; p < nphase; p++) { /* results are written by the last phase, a
	                                           temporary lives from each to the next */
		SchedArg *args = ARENA_ARRAY(a, SchedArg, narg + 2);
		uint32_t n = 0;
		for (uint32_t k = p + 1 < nphase ? nwrite : 0; k < narg; k++)
			args[n++] = (SchedArg){ARG_BUF, k, NULL};
		if (p + 1 < nphase) {
			args[n++] = (SchedArg){ARG_TEMP, p, NULL};
			array_push(a, &s->temp,
				   (SchedTemp){.dtype = DT_u8,
					       .numel = sym_int(m->l->ir->syms, 1 + below(m, 900)),
					       .first = p,
					       .last = p + 1});
		}
		if (p)
			args[n++] = (SchedArg){ARG_TEMP, p - 1, NULL};
		array_push(a, &s->phase, (SchedPhase){.arg = args, .narg = n});
	}
	array_push(a, &m->k->kernel,
		   (Scheduled){.name = "k",
			       .schedule = s,
			       .buf = buf,
			       .temp = m->k->ntemp,
			       .continues = join});
	m->k->ntemp += s->temp.n;
	array_push(a, &to->step, (Step){.kind = STEP_KERNEL});
}

/* Reads some that are alive, writes a new one. Most die young. */
static void random_kernel(Made *m, StepList *to, uint32_t keep)
{
	uint32_t arg[4] = {buffer(m, 1 + below(m, below(m, 3) ? 12 : 60))}, n = 1,
		 nread = below(m, 4);
	bool joins = below(m, 4) == 0;
	for (uint32_t k = 0; k < nread && m->alive.n; k++) {
		uint32_t at = m->alive.n - 1 - below(m, m->alive.n < 8 ? m->alive.n : 8);
		arg[n++] = m->alive.data[at];
		if (m->alive.n > keep)
			m->alive.data[at] = m->alive.data[--m->alive.n];
	}
	kernel(m, to, 1 + (below(m, 6) == 0) * 2, arg, n, 1, joins && to->step.n);
	array_push(ctx->arena, &m->alive, arg[0]);
}

/* A loop that carries a value between two buffers, and reads what was before it. */
static void random_loop(Made *m, StepList *to, uint32_t depth)
{
	Arena *a = ctx->arena;
	StepList *body = ARENA_NEW(a, StepList);
	uint32_t from = buffer(m, 5), next = buffer(m, 5),
		 outside = m->alive.n ? m->alive.data[below(m, m->alive.n)] : 0,
		 before = m->alive.n;
	kernel(m, to, 1, &from, 1, 1, false);
	uint32_t place = to->step.n;
	for (uint32_t k = 1 + below(m, 4); k > 0; k--)
		random_kernel(m, body, 6);
	if (depth)
		random_loop(m, body, depth - 1);
	uint32_t last = m->alive.data[m->alive.n - 1], arg[4] = {next, from, last, outside};
	kernel(m, body, 1, arg, outside ? 4 : 3, 1, false);
	/* what is made inside is not read after */
	m->alive.n = m->alive.n < before ? m->alive.n : before;
	Step s = {.kind = STEP_LOOP,
		  .body = body,
		  .ncarry = 1,
		  .carry = arena_alloc(a, sizeof *s.carry)};
	s.carry[0].from.i = from;
	s.carry[0].to.i = next;
	assert_int_equal(to->step.n, place);
	array_push(a, &to->step, s);
	kernel(m, to, 1, (uint32_t[]){buffer(m, 3), next}, 2, 1, false);
	array_push(a, &m->alive, m->k->kernel.data[m->k->kernel.n - 1].buf[0].i);
}

/* Two branches that write the same buffer, by a condition that a kernel some steps before has
 * written. */
static void random_branch(Made *m, StepList *to)
{
	uint32_t pred = buffer(m, 1), result = buffer(m, 9), before;
	Step s = {.kind = STEP_IF,
		  .pred = {pred},
		  .body = ARENA_NEW(ctx->arena, StepList),
		  .other = ARENA_NEW(ctx->arena, StepList)};
	kernel(m, to, 1, &pred, 1, 1, false);
	for (uint32_t k = below(m, 3); k > 0; k--)
		random_kernel(m, to, 6);
	before = m->alive.n;
	for (uint32_t branch = 0; branch < 2; branch++) {
		StepList *list = branch ? s.other : s.body;
		uint32_t first = m->alive.n;
		for (uint32_t k = 1 + below(m, 3); k > 0; k--)
			random_kernel(m, list, UINT32_MAX);
		kernel(m, list, 1, (uint32_t[]){result, m->alive.data[m->alive.n - 1]}, 2, 1,
		       false);
		m->alive.n = first;
	}
	m->alive.n = before;
	array_push(ctx->arena, &to->step, s);
	kernel(m, to, 1, (uint32_t[]){buffer(m, 2), result}, 2, 1, false);
	array_push(ctx->arena, &m->alive, m->k->kernel.data[m->k->kernel.n - 1].buf[0].i);
}

/* ---- simulation ---- */

typedef struct {
	const Made *m;
	MemoryPlan plan;
	int64_t s, total; /* value of the symbol, of the workspace */
	uint32_t place[MAX_BUFS]; /* by buffer: whose memory it has, as carried values swap */
	/* taken: by bit, which branches */
	uint32_t word[WORDS], mark[MAX_BUFS + 400], now, kernel, taken;
	struct {
		uint32_t id;
		bool write;
	} touched[64]; /* in the phase at hand */
	uint32_t ntouched;
} Memory;

static int64_t at_size(const Memory *x, Sym e)
{
	SymTab *t = x->m->l->ir->syms;
	Sym value = sym_int(t, x->s);
	int64_t v = -1;
	assert_true(sym_is_const(t, sym_subst(t, e, &x->m->size, &value, 1), &v));
	return v;
}

/* Where buffer or temporary `id` lies, and how long it is. */
static uint32_t extent(const Memory *x, uint32_t id, uint32_t *n)
{
	const Lowered *l = x->m->l;
	bool temp = id >= l->buf.n;
	Sym numel = {0}, offset = temp ? x->plan.temp[id - l->buf.n] : x->plan.offset[x->place[id]];
	for (uint32_t k = 0; temp && k < x->m->k->kernel.n; k++) {
		const Scheduled *s = &x->m->k->kernel.data[k];
		if (id - l->buf.n >= s->temp && id - l->buf.n < s->temp + s->schedule->temp.n)
			numel = s->schedule->temp.data[id - l->buf.n - s->temp].numel;
	}
	int64_t bytes = at_size(x, temp ? numel : l->buf.data[id].dim[0]), at = at_size(x, offset);
	assert_int_equal(at % UNIT, 0);
	*n = (uint32_t)((bytes + UNIT - 1) / UNIT);
	assert_true(at >= 0 && at + (int64_t)*n * UNIT <= x->total);
	assert_true(at / UNIT + *n <= WORDS);
	return (uint32_t)(at / UNIT);
}

static uint32_t marked(const Memory *x, uint32_t id)
{
	return x->mark[id < x->m->l->buf.n ? x->place[id] : id];
}

/* What is read in the phase holds what was written last; nothing in it overlaps what is written in
 * it. */
static void end_phase(Memory *x)
{
	uint32_t n, before = x->now;
	for (uint32_t i = 0; i < x->ntouched; i++) {
		uint32_t at = extent(x, x->touched[i].id, &n);
		for (uint32_t w = at; w < at + n && !x->touched[i].write; w++)
			assert_int_equal(x->word[w], marked(x, x->touched[i].id));
	}
	for (uint32_t i = 0; i < x->ntouched; i++) {
		uint32_t id = x->touched[i].id, at = extent(x, id, &n);
		if (!x->touched[i].write)
			continue;
		x->mark[id < x->m->l->buf.n ? x->place[id] : id] = ++x->now;
		for (uint32_t w = at; w < at + n; w++) {
			assert_true(x->word[w] <= before);
			x->word[w] = x->now;
		}
	}
	for (uint32_t i = 0; i < x->ntouched; i++) {
		uint32_t at = extent(x, x->touched[i].id, &n);
		for (uint32_t w = at; w < at + n && !x->touched[i].write; w++)
			assert_true(x->word[w] <= before);
	}
	x->ntouched = 0;
}

static void touch(Memory *x, uint32_t id, bool write)
{
	assert_true(x->ntouched < 64);
	x->touched[x->ntouched].id = id;
	x->touched[x->ntouched++].write = write;
}

static void run_kernel(Memory *x, const Scheduled *k)
{
	const Schedule *s = k->schedule;
	for (uint32_t p = 0; p < s->phase.n; p++) {
		if (!k->continues[p])
			end_phase(x);
		for (uint32_t a = 0; a < s->phase.data[p].narg; a++) {
			const SchedArg *arg = &s->phase.data[p].arg[a];
			if (arg->kind == ARG_TEMP)
				touch(x, x->m->l->buf.n + k->temp + arg->k, arg->k == p);
			else
				touch(x, k->buf[arg->k].i, arg->k == 0);
		}
	}
}

static uint32_t kernels_of(const StepList *list)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < list->step.n; i++)
		n += list->step.data[i].kind == STEP_KERNEL ? 1
							    : kernels_of(list->step.data[i].body);
	return n;
}

static void run_steps(Memory *x, const StepList *list)
{
	for (uint32_t i = 0; i < list->step.n; i++) {
		const Step *s = &list->step.data[i];
		if (s->kind == STEP_KERNEL) {
			run_kernel(x, &x->m->k->kernel.data[x->kernel++]);
			continue;
		}
		end_phase(x);
		if (s->kind == STEP_IF) {
			bool yes = x->taken & 1;
			x->taken = x->taken >> 1 | (uint32_t)yes << 31;
			touch(x, s->pred.i, false);
			end_phase(x);
			x->kernel += yes ? 0 : kernels_of(s->body);
			run_steps(x, yes ? s->body : s->other);
			end_phase(x);
			x->kernel += yes ? kernels_of(s->other) : 0;
			continue;
		}
		uint32_t first = x->kernel, from = s->carry[0].from.i, to = s->carry[0].to.i;
		for (uint32_t r = 0; r < ROUNDS; r++) {
			x->kernel = first;
			x->place[from] = r % 2 ? to : from;
			x->place[to] = r % 2 ? from : to;
			run_steps(x, s->body);
			end_phase(x);
		}
		/* the last round's result is read by the name of `to`, which it has the place of */
	}
}

static int64_t simulate(const Made *m, bool share, int64_t s)
{
	Memory *x = ARENA_NEW(ctx->arena, Memory);
	*x = (Memory){.m = m,
		      .plan = plan_memory(m->k, share),
		      .s = s,
		      .taken = 0x9d3a6c57u * (uint32_t)s};
	x->total = at_size(x, x->plan.total);
	assert_true(m->l->buf.n <= MAX_BUFS);
	for (uint32_t k = 0; k < m->l->buf.n; k++)
		x->place[k] = k;
	run_steps(x, &m->l->steps);
	end_phase(x);
	return x->total;
}

/* The most that is alive in one phase; without loops. */
static int64_t peak(const Made *m)
{
	const Lowered *l = m->l;
	uint32_t first[MAX_BUFS + 400], last[MAX_BUFS + 400], now = 0, n = l->buf.n + m->k->ntemp;
	int64_t size[MAX_BUFS + 400] = {0}, most = 0;
	memset(first, 0xff, sizeof first);
	for (uint32_t k = 0; k < m->k->kernel.n; k++) {
		const Scheduled *s = &m->k->kernel.data[k];
		for (uint32_t p = 0; p < s->schedule->phase.n; p++) {
			now += !s->continues[p];
			for (uint32_t a = 0; a < s->schedule->phase.data[p].narg; a++) {
				const SchedArg *arg = &s->schedule->phase.data[p].arg[a];
				bool temp = arg->kind == ARG_TEMP;
				uint32_t id = temp ? l->buf.n + s->temp + arg->k : s->buf[arg->k].i;
				size[id] = sym_const(l->ir->syms,
						     temp ? s->schedule->temp.data[arg->k].numel
							  : l->buf.data[id].dim[0]);
				first[id] = first[id] == UINT32_MAX ? now : first[id];
				last[id] = now;
			}
		}
	}
	for (uint32_t t = 0; t <= now; t++) {
		int64_t sum = 0;
		for (uint32_t k = 1; k < n; k++)
			sum += first[k] <= t && t <= last[k] ? (size[k] + UNIT - 1) / UNIT * UNIT
							     : 0;
		most = sum > most ? sum : most;
	}
	return most;
}

/* ---- tests ---- */

static Made random_program(uint64_t seed, uint32_t n, uint32_t keep, bool loops, bool symbolic)
{
	Made m = made(seed, symbolic);
	for (uint32_t k = 0; k < n; k++)
		if (loops && below(&m, 6) == 0)
			random_loop(&m, &m.l->steps, below(&m, 3));
		else if (loops && below(&m, 6) == 0)
			random_branch(&m, &m.l->steps);
		else
			random_kernel(&m, &m.l->steps, keep);
	return m;
}

static void keeps_what_is_read(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 150; seed++) {
		Made m = random_program(seed, 30, 3 + (uint32_t)seed % 9, seed % 2, seed % 3 == 0);
		int64_t apart = simulate(&m, false, 3);
		assert_true(simulate(&m, true, 1) <= apart && simulate(&m, true, 3) <= apart &&
			    simulate(&m, true, 17) > 0);
	}
}

/* Of what is alive at the same time: more than that is needed where a free place is too small. */
static void wastes_little(void **state)
{
	(void)state;
	double sum = 0;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		Made m = random_program(seed, 60, 4 + (uint32_t)seed % 20, false, false);
		double ratio = (double)simulate(&m, true, 1) / (double)peak(&m);
		assert_true(ratio >= 1 && ratio <= 1.2);
		sum += ratio;
	}
	assert_true(sum / 60 <= 1.04);
}

/* So many live at the same time that they are placed in one sweep. */
static void sweeps(void **state)
{
	(void)state;
	double sum = 0;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		Made m = random_program(seed, 560, 150 + 10 * (uint32_t)seed, false, false);
		double ratio = (double)simulate(&m, true, 1) / (double)peak(&m);
		assert_true(ratio >= 1 && ratio <= 1.15);
		sum += ratio;
	}
	assert_true(sum / 12 <= 1.05);
}

/* Each reads the one before: two places, whatever is symbolic. */
static void chains(void **state)
{
	(void)state;
	for (uint32_t n = 2; n < 200; n += 61) {
		Made m = made(1, false), v = made(1, true);
		uint32_t units[] = {4, 4}, old = 0, symbolic = 0;
		for (uint32_t k = 0; k < n; k++) {
			uint32_t b[2] = {buffer(&m, units[0]), old},
				 c[2] = {buffer(&v, 7), symbolic};
			kernel(&m, &m.l->steps, 1, b, k ? 2 : 1, 1, false);
			kernel(&v, &v.l->steps, 1, c, k ? 2 : 1, 1, false);
			old = b[0];
			symbolic = c[0];
		}
		assert_int_equal(simulate(&m, true, 1), 2 * 4 * UNIT);
		assert_int_equal(simulate(&m, false, 1), n * 4 * UNIT);
		assert_int_equal(simulate(&v, true, 5), 2 * 7 * 5 * UNIT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(keeps_what_is_read, setup, teardown),
		cmocka_unit_test_setup_teardown(wastes_little, setup, teardown),
		cmocka_unit_test_setup_teardown(sweeps, setup, teardown),
		cmocka_unit_test_setup_teardown(chains, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
