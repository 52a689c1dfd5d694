/* Long rows in parts: where a kernel has few outer points and reduces much at each, tasks reduce parts of the rows, and the
 * phases after combine the results in the order of the parts. y = x / sum(x), with a sum over n elements:
 *
 *   phase 1   task (part):  acc over x[lo .. hi) -> temporary[part]
 *   phase 2   task (part):  r = all of temporary[..], in order;  y[lo .. hi) = x / r
 *
 * A reduction that reads another one's result has a phase of its own after it; each task of a phase combines what it needs
 * itself. How rows are cut depends on their length alone, so results have the same bits for every number of threads. */
#include <string.h>

#include "codegen/cpu/cost.h"
#include "codegen/cpu/generic.h"
#include "codegen/cpu/tuning.h"

enum {
	MAX_PARTS = 256,    /* of all rows; every later task combines those of its row */
	MAX_STAGES = 64
};

typedef struct {
	const Generic *whole;
	Cpu *s;
	uint32_t cut;                 /* the axis */
	uint32_t nphase;              /* the last one has no partial results */
	uint32_t phase[MAX_STAGES];   /* by stage: where it runs; a reduction leaves its parts there */
	uint32_t reader[MAX_STAGES];  /* by stage: the last phase that reads its result */
	uint64_t reads[MAX_STAGES];   /* by stage: reductions whose results it reads */
	Sym per, npart;
} Plan;

/* ---- what stages read ---- */

/* Stores at indices that depend on data read what the index is made of. */
static uint64_t index_reads(const Cpu *s, const Stage *st, const uint64_t *reads)
{
	uint64_t m = 0;
	uint32_t rank = st->result == RESULT_GLOBAL ? buf_of(s->e.l, st->buf)->rank : 0;
	for (uint32_t d = 0; d < rank; d++)
		for (uint32_t v = 0; v < s->e.k->vvar.n; v++)
			if (sym_uses(s->e.syms, st->idx[d], s->e.k->vvar.data[v].var))
				m |= reads[s->e.k->vvar.data[v].value.i];
	return m;
}

static void find_phases(Plan *p)
{
	const Kernel *k = p->s->e.k;
	const uint64_t *reads = p->s->e.reads; /* one word each, of so few stages */
	uint32_t last = 0;
	for (uint32_t i = 0; i < k->stage.n; i++) {
		const Stage *st = &k->stage.data[i];
		p->reads[i] = reads[st->value.i] | reads[st->guard.i] | index_reads(p->s, st, reads);
		for (uint32_t j = 0; j < i; j++)
			if (p->reads[i] >> j & 1 && p->phase[i] <= p->phase[j])
				p->phase[i] = p->phase[j] + 1;
		if (st->kind == STAGE_REDUCE && p->phase[i] + 1 > last)
			last = p->phase[i] + 1;
	}
	p->nphase = last + 1;
	for (uint32_t i = 0; i < k->stage.n; i++) {
		if (k->stage.data[i].kind == STAGE_MAP)
			p->phase[i] = last;
		for (uint32_t j = 0; j < i; j++)
			if (p->reads[i] >> j & 1 && p->reader[j] < p->phase[i])
				p->reader[j] = p->phase[i];
	}
}

/* ---- which axis, and how ---- */

static bool among(const uint32_t *axis, uint32_t n, uint32_t x)
{
	for (uint32_t i = 0; i < n; i++)
		if (axis[i] == x)
			return true;
	return false;
}

/* Why some stage cannot be part of this; NULL: none. */
static const char *unsuitable(const Cpu *s)
{
	const Stage *first = NULL;
	if (s->e.k->stage.n > MAX_STAGES)
		return "too many steps";
	for (uint32_t i = 0; i < s->e.k->stage.n; i++) {
		const Stage *st = &s->e.k->stage.data[i];
		bool reduces = st->kind == STAGE_REDUCE && st->result == RESULT_REGISTER && !st->nmap;
		if (!reduces && (st->kind != STAGE_MAP || st->result != RESULT_GLOBAL))
			return "more than reductions and stores";
		if (!reduces)
			continue;
		first = first ? first : st;
		if (!st->nred || st->nred != first->nred || memcmp(st->red, first->red, st->nred * sizeof *st->red) != 0)
			return "reductions over different rows";
	}
	return first ? NULL : "nothing is reduced";
}

static const Stage *first_reduction(const Cpu *s)
{
	const Stage *st = s->e.k->stage.data;
	while (st->kind != STAGE_REDUCE)
		st++;
	return st;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

/* Work of a task for each element of the axis, where other outer axes than the vector axis are tasks. */
static double work_along(const Cpu *s, uint32_t cut)
{
	const Stage *st = first_reduction(s);
	double work = eval_outer_vector(&s->e) ? (double)axes_hint(s, s->e.lanes.axis) : 1;
	for (uint32_t i = 0; i < st->nred; i++)
		work *= st->red[i] == cut ? 1 : (double)axes_hint(s, st->red[i]);
	return work < 1 ? 1 : work;
}

static int64_t outer_tasks(const Generic *g)
{
	double n = 1;
	for (uint32_t i = 0; i < g->norder; i++)
		n *= (double)axes_hint(g->s, g->order[i]);
	return n < 1 ? 1 : n > MAX_PARTS ? MAX_PARTS : (int64_t)n;
}

/* Parts of at least so many elements along the axis. */
static int64_t least_part(const Cpu *s, uint32_t cut)
{
	int64_t unit = cut == s->e.lanes.axis ? 4 * (int64_t)s->e.lanes.n : 1;
	return ceil_div(ceil_div(tuning_part_work(&s->target->machine), (int64_t)work_along(s, cut)), unit) * unit;
}

static int64_t nparts_at_hint(const Plan *p, uint32_t cut)
{
	int64_t most = ceil_div(MAX_PARTS, outer_tasks(p->whole));
	int64_t n = axes_hint(p->s, cut) / least_part(p->s, cut);
	return n < most ? n : most;
}

/* The axis that gives the most parts, the outermost of several. */
static void choose_cut(Plan *p)
{
	const Stage *st = first_reduction(p->s);
	for (uint32_t i = 0; i < st->nred; i++)
		if (!i || nparts_at_hint(p, st->red[i]) > nparts_at_hint(p, p->cut))
			p->cut = st->red[i];
}

/* Even parts. */
static void choose_parts(Plan *p)
{
	SymTab *syms = p->s->e.syms;
	Sym extent = p->s->e.axes.extent[p->cut];
	int64_t unit = p->cut == p->s->e.lanes.axis ? 4 * (int64_t)p->s->e.lanes.n : 1, n;
	Sym most = sym_int(syms, ceil_div(MAX_PARTS, outer_tasks(p->whole)));
	Sym per = sym_max(syms, sym_ceildiv(syms, extent, most), sym_int(syms, least_part(p->s, p->cut)));
	if (sym_is_const(syms, extent, &n))
		per = sym_ceildiv(syms, extent, sym_ceildiv(syms, extent, per));
	p->per = sym_muli(syms, sym_ceildiv(syms, per, sym_int(syms, unit)), unit);
	p->npart = sym_ceildiv(syms, extent, p->per);
}

/* A refusal is near if rows hold more than one part of the least size. */
static Refusal refuse_rows(Plan *p, Sym ntasks)
{
	Cpu *s = p->s;
	const char *why = unsuitable(s);
	int64_t tasks = sym_hint(s->e.syms, ntasks);
	if (why)
		return refuse(why);
	choose_cut(p);
	bool near = axes_hint(s, p->cut) > least_part(s, p->cut);
	if (tasks >= tuning_tasks(&s->target->machine))
		return (Refusal){.why = arena_printf(s->e.arena, "whole rows are %lld tasks, enough", (long long)tasks), .near = near};
	if (nparts_at_hint(p, p->cut) < 2)
		return (Refusal){.why = arena_printf(s->e.arena, "rows are short: parts would have less than %lld elements",
		                                     (long long)tuning_part_work(&s->target->machine)),
		                 .near = near};
	return s->e.axes.n == MAX_AXES ? refuse("too many axes") : taken();
}

/* ---- phases ---- */

static Sym slot_of(Plan *p, uint32_t number)
{
	Cpu *s = p->s;
	Sym slot = s->e.axes.var[number];
	for (uint32_t pass = 0; pass < 2; pass++) /* the vector axis is the fastest */
		for (uint32_t a = 0; a < s->e.axes.n; a++)
			if (s->e.axes.var[a].i && s->e.axes.outer >> a & 1 && (a == s->e.lanes.axis) == (pass == 1))
				slot = sym_add(s->e.syms, sym_mul(s->e.syms, slot, s->e.axes.extent[a]), s->e.axes.var[a]);
	return slot;
}

static Sym outer_points(const Cpu *s)
{
	Sym n = sym_int(s->e.syms, 1);
	for (uint32_t a = 0; a < s->e.axes.n; a++)
		if (s->e.axes.var[a].i && s->e.axes.outer >> a & 1)
			n = sym_mul(s->e.syms, n, s->e.axes.extent[a]);
	return n;
}

static const uint32_t *make_temps(Plan *p)
{
	Cpu *s = p->s;
	uint32_t *temp = ARENA_ARRAY(s->e.arena, uint32_t, s->e.k->stage.n);
	Sym numel = sym_mul(s->e.syms, p->npart, outer_points(s));
	for (uint32_t i = 0; i < s->e.k->stage.n; i++) {
		const Stage *st = &s->e.k->stage.data[i];
		if (st->kind == STAGE_REDUCE)
			temp[i] = cpu_temp(s, (SchedTemp){.name = "parts", .dtype = st->acc, .numel = numel,
			                                    .first = p->phase[i], .last = p->reader[i]});
	}
	return temp;
}

/* Stages that run in a phase, and the results they read. */
static uint64_t find_roles(const Plan *p, uint32_t phase, StageRole *role)
{
	const Kernel *k = p->s->e.k;
	uint64_t here = 0, read = 0;
	for (uint32_t i = 0; i < k->stage.n; i++) {
		role[i] = RUN_NOT;
		if (p->phase[i] != phase)
			continue;
		role[i] = k->stage.data[i].kind == STAGE_REDUCE ? RUN_PART : RUN_WHOLE;
		here |= UINT64_C(1) << i;
		read |= p->reads[i];
	}
	for (uint32_t i = 0; i < k->stage.n; i++)
		if (read >> i & 1)
			role[i] = RUN_FROM_PARTS;
	return here;
}

/* The stores of the last phase go along the axis: each task has a part of it. */
static bool maps_parts(const Plan *p)
{
	for (uint32_t i = 0; i < p->s->e.k->stage.n; i++) {
		const Stage *st = &p->s->e.k->stage.data[i];
		if (st->kind == STAGE_MAP && !among(st->map, st->nmap, p->cut))
			return false;
	}
	return true;
}

static void make_phase(const Plan *p, uint32_t phase, Parts *parts, const Eval *before)
{
	Cpu *s = p->s;
	Generic g = *p->whole;
	StageRole *role = ARENA_ARRAY(s->e.arena, StageRole, s->e.k->stage.n);
	uint64_t here = find_roles(p, phase, role);
	bool cut = phase + 1 < p->nphase || maps_parts(p);
	parts->role = role;
	g.parts = parts;
	if (cut) {
		g.ntask = g.norder;
		g.cut = p->cut;
		g.per = p->per;
		g.npart = p->npart;
	} else {
		generic_choose_tasks(&g, (double)sym_hint(s->e.syms, p->npart) + generic_work_per_point(s, here));
	}
	generic_run(&g);
	cpu_finish_phase(s, generic_ntasks(&g), kernel_cost(before, here));
}

Refusal schedule_parts(const Generic *whole, Sym ntasks, Kernel *before)
{
	Cpu *s = whole->s;
	Eval plain;
	Plan p = {.whole = whole, .s = s, .cut = NO_AXIS};
	Refusal no = refuse_rows(&p, ntasks);
	if (no.why)
		return no;
	eval_init(&plain, s->e.l, before, s->out);
	choose_parts(&p);
	find_phases(&p);
	Parts parts = {.number = eval_add_axis(&s->e, "part", p.npart)};
	parts.slot = slot_of(&p, parts.number);
	parts.temp = make_temps(&p);
	for (uint32_t i = 0; i < p.nphase; i++)
		make_phase(&p, i, &parts, &plain);
	s->out->algorithm = "parts of rows";
	int64_t tasks = sym_hint(s->e.syms, ntasks);
	s->out->why = arena_printf(s->e.arena, "whole rows would be %lld task%s; %s", (long long)tasks,
	                           tasks == 1 ? "" : "s",
	                           s->e.lanes.axis == NO_AXIS               ? "no lanes"
	                           : eval_outer_vector(&s->e) ? "lanes are neighbouring points"
	                                                      : "lanes are one row");
	return taken();
}
