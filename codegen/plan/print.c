/* Plans as text: one line for each phase. */
#include "codegen/plan/contract.h"
#include "codegen/plan/depthwise.h"
#include "codegen/plan/generic.h"

static void print_axes(const Nest *n, const char *what, const uint32_t *axis, uint32_t count,
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

static void print_tasks(const Nest *n, Sym ntasks, Text *out)
{
	text_printf(out, "; tasks: %s", sym_str(n->syms, ntasks));
}

static void print_copy(const CopyPlan *c, Text *out)
{
	const Nest *n = c->nest;
	text_printf(out, "\ncopy: panels of %lld", (long long)c->panels.width);
	print_axes(n, ", columns", &c->panels.axis, 1, out);
	print_axes(n, ", k", c->axes.k, c->axes.nk, out);
	if (c->unit.n > 1)
		print_axes(n, ", by squares along", c->unit.axis, c->unit.n, out);
	text_printf(out, "%s; tasks: %s", c->unit.n == 1 ? ", by squares" : "",
		    sym_str(n->syms, c->ntasks));
}

static const char *describe_a(const ContractPlan *c)
{
	return c->a.copied                             ? "copied"
	       : c->axes.row->nfrag && !c->a.runs.used ? "through a local array"
						       : "in place";
}

void print_contract(const Plan *p, Text *out)
{
	const ContractPlan *c = p->of.contract;
	static const char *const access[] = {[B_IN_PLACE] = "in place",
					     [B_GATHERED] = "gathered",
					     [B_PACKED] = "packed",
					     [B_COPIED] = "copied",
					     [B_BROUGHT] = "copied",
					     [B_ALONG] = "along k"};
	const Nest *n = c->nest;
	print_axes(n, "rows", c->axes.m, c->axes.nm, out);
	print_axes(n, c->axes.nm ? ", columns" : "columns", &c->axes.n, 1, out);
	print_axes(n, ", k", c->axes.k, c->axes.nk, out);
	print_axes(n, ", batch", c->axes.batch, c->axes.nbatch, out);
	text_printf(out, "; tile %u x %u vectors of %u, a %s, b %s", c->tile.mr, c->tile.nv,
		    c->vector.lanes, describe_a(c), access[c->b.access]);
	if (c->b.access == B_ALONG)
		text_printf(out, ", %u columns %s%s", c->b.abreast,
			    c->b.in_turn ? "in turn" : "abreast",
			    c->b.held ? ", rows in registers" : "");
	if (c->b.access == B_ALONG && c->b.chains > 1)
		text_printf(out, ", %u chains", c->b.chains);
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
	print_tasks(n, c->tasks.n, out);
	for (uint32_t i = 0; i < MAX_COPIES && c->copy[i]; i++)
		print_copy(c->copy[i], out);
}

void print_depthwise(const Plan *p, Text *out)
{
	const DepthwisePlan *d = p->of.depthwise;
	const Nest *n = d->nest;
	print_axes(n, "channels", &d->channel, 1, out);
	print_axes(n, ", rows", d->row, d->nrow, out);
	print_axes(n, ", pixels", &d->pixel, 1, out);
	text_printf(out, "; tile %u pixels x %u lanes", d->tiles.size, d->lanes);
	if (d->tiles.rest)
		text_printf(out, ", rest %u%s", d->tiles.rest, d->tiles.beyond ? " at most" : "");
	if (d->line.n)
		text_printf(out, ", lines of %u taps, stride %u", d->line.n, d->line.stride);
	print_cuts(&d->sums, out);
	print_tasks(n, d->ntasks, out);
}

static void print_phase(const GenericPlan *p, const GenericPhase *phase, Text *out)
{
	const Nest *n = p->nest;
	text_printf(out, "points");
	print_axes(n, "", phase->grid.order, phase->grid.n, out);
	if (p->turned.across != NO_AXIS)
		print_axes(n, ", across", &p->turned.across, 1, out);
	if (p->lanes.axis != NO_AXIS)
		print_axes(n, ", lanes", &p->lanes.axis, 1, out);
	if (phase->abreast > 1)
		text_printf(out, ", %u %s abreast", phase->abreast,
			    p->lanes.axis == NO_AXIS ? "rows" : "vectors");
	if (phase->grid.cut != NO_AXIS)
		text_printf(out, ", %s in parts of %s", sym_name(n->syms, n->var[phase->grid.cut]),
			    sym_str(n->syms, phase->grid.per));
	print_tasks(n, phase->grid.ntasks, out);
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
