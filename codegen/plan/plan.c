#include "codegen/plan/plan.h"

#include <math.h>

#include "codegen/plan/split.h"

enum { LARGER = 16, MAX_SIZES = 32 };

int64_t plan_size(const PlanInput *in, Sym e)
{
	int64_t v;
	if (in->at.n && sym_eval(in->nest->syms, e, in->at.var, in->at.value, in->at.n, &v))
		return v;
	return sym_hint(in->nest->syms, e);
}

int64_t plan_extent(const PlanInput *in, uint32_t axis)
{
	return plan_size(in, in->nest->extent[axis]);
}

static void add_size(const SymTab *syms, Sym var, Sym *list, uint32_t *n)
{
	for (uint32_t i = 0; i < *n; i++)
		if (list[i].i == var.i)
			return;
	if (*n < MAX_SIZES && sym_var_kind(syms, var) != SYMVAR_AXIS)
		list[(*n)++] = var;
}

static void find_sizes(const SymTab *syms, Sym e, Sym *list, uint32_t *n)
{
	if (sym_kind(syms, e) == SYM_VAR)
		add_size(syms, e, list, n);
	for (uint32_t i = 0; i < sym_nargs(syms, e); i++)
		find_sizes(syms, sym_arg(syms, e, i), list, n);
}

static int64_t larger(const SymTab *syms, Sym var)
{
	int64_t lo, hi, hint = sym_hint(syms, var);
	sym_range(syms, var, &lo, &hi);
	const int64_t want = LARGER * (hint > 0 ? hint : 1);
	return want < hi ? want : hi;
}

PlanSizes plan_larger_sizes(const Nest *nest)
{
	Sym list[MAX_SIZES];
	uint32_t n = 0;
	for (uint32_t a = 0; a < nest->n; a++)
		find_sizes(nest->syms, nest->extent[a], list, &n);
	int64_t *value = ARENA_ARRAY(nest->arena, int64_t, n);
	for (uint32_t i = 0; i < n; i++)
		value[i] = larger(nest->syms, list[i]);
	return (PlanSizes){n, arena_dup(nest->arena, list, n * sizeof *list), value};
}

/* ---- which plan takes a kernel ---- */

void plan_find_contraction(PlanInput *in)
{
	const Kernel *k = in->nest->k;
	const Contractions all = kernel_contractions(in->nest->syms, k);
	in->no_contraction = kernel_no_contraction(k, &all);
	const uint32_t blocks = kernel_adds_blocks(k, &all);
	if (!in->no_contraction || blocks)
		in->contraction = all.contraction[0];
	in->contraction.blocks = blocks;
	if (in->contraction.decoded.i && !in->no_contraction)
		in->no_contraction = "an operand is decoded of what is loaded";
	in->last_store = kernel_last_store(k);
}

PlanInput plan_input(const Lowered *l, const Kernel *kernel, const Target *target, bool packs)
{
	Kernel *k = kernel_copy(l->ir->ctx->arena, kernel);
	kernel_split_axes(l, k, packs);
	PlanInput in = {.nest = nest_new(l, k), .target = target};
	plan_find_contraction(&in);
	in.cost = kernel_cost(in.nest, UINT64_MAX);
	in.larger = plan_larger_sizes(in.nest);
	return in;
}

static void refuse_row(Choice *c, Arena *a, const PlanRow *row, Refusal no)
{
	no.schedule = row->name;
	array_push(a, &c->refused, no);
}

double plan_worst(const Plan *p, const Plan *other)
{
	return fmax(1, fmax(p->cycles / other->cycles, p->larger / other->larger));
}

/* Whether a plan of a row further down is taken instead. Predictions that are close do not decide.
 */
static bool is_faster(const Plan *p, const Plan *than)
{
	return plan_worst(p, than) < 0.9 * plan_worst(than, p);
}

/* Refuses the slower plan, of a row. Near if that takes less than twice as long as the best. */
static void refuse_slower(Choice *c, Arena *a, const PlanRow *row, const Plan *p,
			  const PlanRow *than, const Plan *best)
{
	refuse_row(c, a, row,
		   (Refusal){.why = c->slower(a, p, than, best), .near = plan_worst(p, best) < 2});
}

void choice_consider(Choice *c, const PlanRow *row, const PlanInput *in)
{
	Plan p = {0};
	Arena *a = in->nest->arena;
	const Refusal no = row->plan(in, &p);
	if (no.why) {
		refuse_row(c, a, row, no);
		return;
	}
	if (c->row && !is_faster(&p, &c->plan)) {
		refuse_slower(c, a, row, &p, c->row, &c->plan);
		return;
	}
	if (c->row)
		refuse_slower(c, a, c->row, &c->plan, row, &p);
	c->row = row;
	c->in = *in;
	c->plan = p;
}

void choice_tell(const Choice *c, Schedule *s)
{
	Text text;
	text_init(&text, c->in.nest->arena);
	c->row->print(&c->plan, &text);
	s->algorithm = c->plan.algorithm;
	s->why = c->plan.why;
	s->plan = text.data;
}

void choice_tell_refused(const Choice *c, Schedule *s)
{
	Arena *a = c->in.nest->arena;
	for (uint32_t i = 0; i < c->refused.n; i++)
		array_push(a, &s->refused, c->refused.data[i]);
	for (uint32_t i = 0; i < c->plan.nrefused; i++)
		array_push(a, &s->refused, c->plan.refused[i]);
}
