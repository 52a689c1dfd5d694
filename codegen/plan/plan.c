/* Which plan takes a kernel, and plans as text: one line for each phase. */
#include "codegen/plan/plan.h"

#include <math.h>

#include "codegen/plan/contract.h"
#include "codegen/plan/depthwise.h"
#include "codegen/plan/generic.h"
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

Refusal plan_refuse_bounds(void)
{
	return refuse("an axis has bounds that depend on data");
}

void choice_consider(Choice *c, const PlanRow *row, const PlanInput *in)
{
	Plan p = {0};
	Arena *a = in->nest->arena;
	const Refusal no = row->bounded || kernel_is_plain(in->nest->k) ? row->plan(in, &p)
									: plan_refuse_bounds();
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

/* ---- text ---- */

void plan_print_axes(const Nest *n, const char *what, const uint32_t *axis, uint32_t count,
		     Text *out)
{
	if (count)
		text_printf(out, "%s", what);
	for (uint32_t i = 0; i < count; i++)
		text_printf(out, " %s<%s", sym_name(n->syms, n->var[axis[i]]),
			    sym_str(n->syms, n->extent[axis[i]]));
}

static void print_cuts(const SumPlan *sums, Text *out)
{
	for (uint32_t i = 0; i < sums->n; i++)
		text_printf(out, ", sums cut in loop %u every %lld rounds", sums->cut[i].loop,
			    (long long)sums->cut[i].rounds);
}

void plan_print_tasks(const Nest *n, Sym ntasks, Text *out)
{
	text_printf(out, "; tasks: %s", sym_str(n->syms, ntasks));
}

void plan_print_copy(const CopyPlan *c, Text *out)
{
	const Nest *n = c->nest;
	text_printf(out, "\ncopy: panels of %lld", (long long)c->panels.width);
	plan_print_axes(n, ", columns", &c->panels.axis, 1, out);
	plan_print_axes(n, ", k", c->axes.k, c->axes.nk, out);
	if (c->unit.n > 1)
		plan_print_axes(n, ", by squares along", c->unit.axis, c->unit.n, out);
	text_printf(out, "%s; tasks: %s", c->unit.n == 1 ? ", by squares" : "",
		    sym_str(n->syms, c->ntasks));
}

static const char *describe_a(const ContractPlan *c)
{
	return c->a.copied                             ? "copied"
	       : c->a.turned                           ? "copied, rows turned"
	       : c->axes.row->nfrag && !c->a.runs.used ? "through a local array"
						       : "in place";
}

void print_contract(const Plan *p, Text *out)
{
	const ContractPlan *c = p->of.contract;
	static const char *const access[] = {
		[B_IN_PLACE] = "in place", [B_GATHERED] = "gathered", [B_PACKED] = "packed",
		[B_COPIED] = "copied",     [B_BROUGHT] = "copied",    [B_ALONG] = "along k"};
	const Nest *n = c->nest;
	plan_print_axes(n, "rows", c->axes.m, c->axes.nm, out);
	plan_print_axes(n, c->axes.nm ? ", columns" : "columns", &c->axes.n, 1, out);
	plan_print_axes(n, ", k", c->axes.k, c->axes.nk, out);
	plan_print_axes(n, ", batch", c->axes.batch, c->axes.nbatch, out);
	text_printf(out, "; tile %u x %u vectors of %u, a %s, b %s%s", c->tile.mr, c->tile.nv,
		    c->vector.lanes, describe_a(c), access[c->b.access],
		    c->b.bytes ? " as bytes" : "");
	if (c->b.access == B_ALONG)
		text_printf(out, ", %u columns %s%s", c->b.abreast,
			    c->b.in_turn ? "in turn" : "abreast",
			    c->b.held ? ", rows in registers" : "");
	if (c->b.access == B_ALONG && c->b.chains > 1)
		text_printf(out, ", %u chains", c->b.chains);
	if (c->sums.held)
		text_printf(out, ", sums of blocks in registers");
	if (c->axes.row->nfrag)
		text_printf(out, ", steps of %u groups", c->axes.step);
	if (c->a.runs.used)
		text_printf(out, ", fragments of %u rows, runs of %s", c->a.runs.rows,
			    sym_str(n->syms, c->a.runs.length));
	if (c->columns.rest.nv)
		text_printf(out, ", rest of columns by %u vectors", c->columns.rest.nv);
	text_printf(out, "; block of %lld rows", (long long)c->block.rows);
	if (c->block.cols)
		text_printf(out, " x %lld columns", (long long)c->block.cols);
	if (c->columns.turn)
		text_printf(out, ", %lld tiles of columns in turn", (long long)c->columns.turn);
	if (c->columns.whole.late)
		text_printf(out, ", %u rows late at a step", c->columns.whole.late);
	if (c->k_block.used)
		text_printf(out, ", blocks of %lld steps of k",
			    (long long)(c->k_block.steps * c->k_block.inner));
	print_cuts(&c->sums.cuts, out);
	if (c->windows.n)
		text_printf(out, ", %u windows", c->windows.n);
	plan_print_tasks(n, c->tasks.n, out);
	for (uint32_t i = 0; i < MAX_COPIES && c->copy[i]; i++)
		plan_print_copy(c->copy[i], out);
}

void print_depthwise(const Plan *p, Text *out)
{
	const DepthwisePlan *d = p->of.depthwise;
	const Nest *n = d->nest;
	plan_print_axes(n, "channels", &d->channel, 1, out);
	plan_print_axes(n, ", rows", d->row, d->nrow, out);
	plan_print_axes(n, ", pixels", &d->pixel, 1, out);
	text_printf(out, "; tile %u pixels x %u lanes", d->tiles.size, d->lanes);
	if (d->tiles.rest)
		text_printf(out, ", rest %u%s", d->tiles.rest, d->tiles.beyond ? " at most" : "");
	if (d->line.n)
		text_printf(out, ", lines of %u taps, stride %u", d->line.n, d->line.stride);
	print_cuts(&d->sums, out);
	plan_print_tasks(n, d->ntasks, out);
}

static void print_phase(const GenericPlan *p, const GenericPhase *phase, Text *out)
{
	const Nest *n = p->nest;
	text_printf(out, "points");
	plan_print_axes(n, "", phase->grid.order, phase->grid.n, out);
	if (p->turned.across != NO_AXIS)
		plan_print_axes(n, ", across", &p->turned.across, 1, out);
	if (p->lanes.axis != NO_AXIS)
		plan_print_axes(n, ", lanes", &p->lanes.axis, 1, out);
	if (phase->abreast > 1)
		text_printf(out, ", %u %s abreast", phase->abreast,
			    p->lanes.axis == NO_AXIS ? "rows" : "vectors");
	if (phase->grid.cut != NO_AXIS)
		text_printf(out, ", %s in parts of %s", sym_name(n->syms, n->var[phase->grid.cut]),
			    sym_str(n->syms, phase->grid.per));
	if (generic_halves(p, &phase->grid))
		text_printf(out, ", both halves in turn");
	plan_print_tasks(n, phase->grid.ntasks, out);
}

void print_generic(const Plan *plan, Text *out)
{
	const GenericPlan *p = plan->of.generic;
	for (uint32_t i = 0; i < p->phase.n; i++) {
		if (i)
			text_char(out, '\n');
		print_phase(p, &p->phase.data[i], out);
	}
}
