/* Phases before a contraction that copy an operand into panels, and panels of rows for
 * fragments. */
#include "codegen/plan/contract.h"

enum {
	TASK_PANELS = 4 /* copied by a task: of short ones several come from each line of memory
			   that is read */
};

/* ---- rows for fragments ---- */

/* Returns the elements from one row of turned panels to the next: whole fragments, an odd number of
 * them, so that rows do not share few sets of the caches. */
static Sym turned_row(const PlanInput *in, const ContractAxes *x)
{
	SymTab *syms = in->nest->syms;
	const int64_t groups = x->row->k / x->row->group;
	const Sym all = sym_ceildiv(syms, contract_most(in, in->nest->extent[x->k[0]]),
				    sym_int(syms, groups)),
		  half = sym_floordiv(syms, all, sym_int(syms, 2));
	return sym_muli(syms, sym_addi(syms, sym_muli(syms, half, 2), 1), groups);
}

bool contract_turns_a(const PlanInput *in, const ContractPlan *c, Panels *p)
{
	const ContractAxes *x = &c->axes;
	SymTab *syms = in->nest->syms;
	if (!x->row->nfrag || !c->a.apart || x->nm != 1 || x->nk != 1 ||
	    !nest_coef_is(in->nest, in->nest->offset[c->a.load.i], x->m[0], 1))
		return false;
	const int64_t lanes = contract_lanes(in);
	const Sym panel = sym_muli(syms, turned_row(in, x), lanes);
	*p = (Panels){.load = c->a.load,
		      .turned = true,
		      .axis = x->m[0],
		      .step = lanes,
		      .width = lanes,
		      .unit = 1,
		      .stride = panel,
		      .offset = in->nest->var[x->k[0]],
		      .count = sym_ceildiv(syms, in->nest->extent[x->m[0]], sym_int(syms, lanes)),
		      .numel = panel};
	contract_place_members(in, x, p);
	return true;
}

/* ---- the phase ---- */

/* Returns the summed axis with that stride in the operand; NO_AXIS if there is none. */
static uint32_t axis_of_stride(const PlanInput *in, Kx load, const ContractAxes *x, int64_t stride)
{
	for (uint32_t i = 0; i < x->nk; i++)
		if (nest_coef_is(in->nest, in->nest->offset[load.i], x->k[i], stride))
			return x->k[i];
	return NO_AXIS;
}

UnitAxes contract_unit_axes(const PlanInput *in, Kx load, const ContractAxes *x)
{
	const Nest *n = in->nest;
	const int64_t lanes = contract_lanes(in);
	const bool groups = micro_groups(x->row), guarded = n->k->kx.data[load.i].guard.i;
	UnitAxes unit = {.inner = 1};
	uint32_t a = groups ? x->k[x->nk - 1] : axis_of_stride(in, load, x, 1);
	if (groups &&
	    (contract_has_tail(n, x) || !nest_coef_is(n, n->offset[load.i], a, x->row->group)))
		return unit;
	while (a != NO_AXIS) {
		unit.axis[unit.n++] = a;
		int64_t extent, hint = nest_hint(n, a) * unit.inner;
		if (hint >= lanes)
			break;
		if (groups || guarded || !sym_is_const(n->syms, n->extent[a], &extent) ||
		    extent < 2)
			return (UnitAxes){0};
		unit.inner *= extent;
		a = axis_of_stride(in, load, x, unit.inner);
	}
	return a == NO_AXIS ? (UnitAxes){0} : unit;
}

/* Returns the absolute stride of a summed axis in the operand, at hint sizes; 0 if it is not
 * linear. */
static int64_t stride_of(const Nest *n, Kx load, uint32_t axis)
{
	Sym coef;
	const int64_t stride =
		nest_coef(n, n->offset[load.i], axis, &coef) ? sym_hint(n->syms, coef) : 0;
	return stride < 0 ? -stride : stride;
}

static bool is_unit_axis(const CopyPlan *c, uint32_t axis)
{
	for (uint32_t i = 0; i < c->unit.n; i++)
		if (c->unit.axis[i] == axis)
			return true;
	return false;
}

/* Fills in CopyPlan.loop, and `cut`. */
static void order_loops(CopyPlan *c)
{
	const Nest *n = c->nest;
	for (uint32_t i = 0; i < c->axes.nk; i++) {
		const uint32_t axis = c->axes.k[i];
		uint32_t at = c->nloop;
		if (is_unit_axis(c, axis))
			continue;
		const int64_t stride = stride_of(n, c->panels.load, axis);
		for (; at && stride_of(n, c->panels.load, c->loop[at - 1]) < stride; at--)
			c->loop[at] = c->loop[at - 1];
		c->loop[at] = axis;
		c->nloop++;
	}
	const int64_t widest = c->nloop ? stride_of(n, c->panels.load, c->loop[0]) : 0;
	c->cut = !c->unit.n || widest > c->unit.inner ? c->loop[0] : c->unit.axis[c->unit.n - 1];
}

/* Cuts the axis c->cut into parts that have the work of a task, of whole squares if squares are
 * transposed, and counts the parts and the groups of panels. */
static void choose_parts(const PlanInput *in, CopyPlan *c)
{
	const Nest *n = in->nest;
	int64_t inner = c->panels.width * c->group, unit = 1;
	for (uint32_t i = 0; i < c->axes.nk; i++)
		inner *= c->axes.k[i] == c->cut ? 1 : nest_hint(n, c->axes.k[i]);
	if (is_unit_axis(c, c->cut)) /* parts are whole squares */
		while (unit * c->unit.inner % contract_lanes(in))
			unit++;
	int64_t per = tuning_task_work(&in->target->machine) / (inner > 0 ? inner : 1);
	c->per = per / unit * unit < unit ? unit : per / unit * unit;
	c->parts = sym_ceildiv(n->syms, n->extent[c->cut], sym_int(n->syms, c->per));
	c->groups = sym_ceildiv(n->syms, c->panels.count, sym_int(n->syms, c->group));
}

const CopyPlan *contract_plan_copy(const PlanInput *in, const Panels *p, const ContractAxes *x)
{
	const Nest *n = in->nest;
	CopyPlan *c = ARENA_NEW(n->arena, CopyPlan);
	*c = (CopyPlan){.nest = n,
			.axes = *x,
			.panels = *p,
			.unit = p->turned ? (UnitAxes){.axis = {x->k[0]}, .n = 1, .inner = 1}
					  : contract_unit_axes(in, p->load, x),
			.vector = {micro_groups(x->row) ? DT_u32 : in->contraction.dtype,
				   contract_lanes(in)}};
	c->group = c->unit.n ? 1 : TASK_PANELS;
	order_loops(c);
	choose_parts(in, c);
	const uint64_t axes = nest_axes(n, p->offset);
	Sym members = sym_int(n->syms, 1);
	for (uint32_t i = 0; i < x->nbatch; i++)
		if (axes >> x->batch[i] & 1)
			members = sym_mul(n->syms, members, n->extent[x->batch[i]]);
	c->ntasks = sym_mul(n->syms, sym_mul(n->syms, members, c->groups), c->parts);
	return c;
}
