/* Panel packing when the kernel runs, here called copying: a phase of its own copies an operand of
 * which columns (rows, of a) or steps of k are apart into panels, which are read as those of a
 * packed constant.
 *
 *     task (panels, part of k):  panel[k][j] = b[k, n + j]
 *
 * Where elements are neighbours along a summed axis, as in a product with a transposed matrix,
 * squares of as many of both as there are lanes are loaded along that axis and transposed in
 * registers; else columns are loaded or gathered. Short summed axes that continue each other, as
 * the channels and taps of a convolution's weight, are one axis for the loads; each column of a
 * square finds its place by their indices. Of rows for fragments (Panels.turned) groups are joined
 * along the rows, and squares of them transposed. Columns past the end of the last panel hold
 * anything: what is computed of them is not stored. */
#include "codegen/cpu/contract.h"

typedef struct {
	Cpu *s;
	const CopyPlan *p;
	LMem to;
	Lx first, end; /* the task's panels */
	Lx panel;      /* the current one */
	Lx lo, hi;     /* the task's part of the cut axis */
	Lx index[MAX_AXES]; /* of the unit axes, of the column of a square that is stored next */
} Copy;

static uint32_t vectors(const Copy *c)
{
	return (uint32_t)(c->p->panels.width / c->s->e.lanes.n);
}

static bool has_axis(const Copy *c, uint32_t axis)
{
	return nest_axes(c->p->nest, c->p->panels.offset) >> axis & 1;
}

static Lx take(Copy *c, Lx *task, Sym count)
{
	Cpu *s = c->s;
	Lx n = eval_size(&s->e, count), v = eval_let(&s->e, "at", lx_mod(s->e.f, *task, n));
	*task = eval_let(&s->e, "rest", lx_div(s->e.f, *task, n));
	return v;
}

static void decode_task(Copy *c)
{
	Cpu *s = c->s;
	Lx task = lx_var(s->e.f, s->e.f->task), per = lx_int(s->e.f, c->p->group);
	c->lo = eval_let(&s->e, "lo",
			 lx_mul(s->e.f, take(c, &task, c->p->parts), lx_int(s->e.f, c->p->per)));
	c->hi = eval_let(&s->e, "hi",
			 lx_min(s->e.f, lx_add(s->e.f, c->lo, lx_int(s->e.f, c->p->per)),
				eval_size(&s->e, s->e.nest->extent[c->p->cut])));
	c->first = eval_let(&s->e, "first", lx_mul(s->e.f, take(c, &task, c->p->groups), per));
	c->end = eval_let(&s->e, "end",
			  lx_min(s->e.f, lx_add(s->e.f, c->first, per),
				 eval_size(&s->e, c->p->panels.count)));
	for (uint32_t i = c->p->axes.nbatch; i-- > 0;)
		if (has_axis(c, c->p->axes.batch[i]))
			eval_at(&s->e, c->p->axes.batch[i],
				take(c, &task, s->e.nest->extent[c->p->axes.batch[i]]));
}

/* Returns the offset in the panels of vector j of the current panel at the point of the summed
 * axes. */
static Lx place(Copy *c, uint32_t j)
{
	Cpu *s = c->s;
	Lx offset = eval_index(&s->e, c->p->panels.offset);
	Lx panel = lx_mul(s->e.f, c->panel, eval_size(&s->e, c->p->panels.stride));
	Lx at = lx_add(s->e.f, panel, offset);
	return lx_add(s->e.f, at, lx_int(s->e.f, (int64_t)j * s->e.lanes.n));
}

static Lx first_column(Copy *c, uint32_t j)
{
	Cpu *s = c->s;
	return lx_add(s->e.f, lx_mul(s->e.f, c->panel, lx_int(s->e.f, c->p->panels.step)),
		      lx_int(s->e.f, (int64_t)j * s->e.lanes.n));
}

/* Whether no vector of a panel reaches past the last column. */
static bool is_whole(const Copy *c)
{
	return c->p->panels.step == c->p->panels.width &&
	       sym_divides(c->s->e.syms, c->p->panels.width,
			   c->s->e.nest->extent[c->p->panels.axis]);
}

/* Groups that are neighbours along the axis of lanes. */
static Lx load_groups(Copy *c)
{
	Cpu *s = c->s;
	const Kx load = c->p->panels.load;
	Lx at = eval_index(&s->e, s->e.nest->offset[load.i]);
	return lx_var(s->e.f, ls_load(s->e.f, "row", eval_load_memory(&s->e, load), at,
				      c->p->vector, s->e.lanes.mask));
}

/* Returns step k of a vector of groups, shifted to its place in the group; 0 if k is not less than
 * `left`, the steps that the operand has. at: the offset of step 0; along, column: the strides from
 * one step, and from one column, to the next. */
static Lx step_of_groups(Copy *c, uint32_t k, Lx at, Lx left, Sym along, Sym column)
{
	Cpu *s = c->s;
	LoopFn *f = s->e.f;
	const LType t = c->p->vector;
	const int64_t bits = 32 / c->p->axes.row->group;
	const bool tail = k && contract_has_tail(s->e.nest, &c->p->axes);
	LMem m = eval_load_memory(&s->e, c->p->panels.load);
	m.dtype = dtype_raw(m.dtype);
	Lx step = tail ? lx_min(f, lx_int(f, k), lx_sub(f, left, lx_int(f, 1))) : lx_int(f, k);
	at = lx_add(f, at, lx_mul(f, step, eval_size(&s->e, along)));
	Lv v = sym_is(s->e.syms, column, 1)
		       ? ls_load(f, "step", m, at, (LType){m.dtype, t.lanes}, s->e.lanes.mask)
		       : ls_gather(f, "step", m, at,
				   lx_ramp(f, lx_int(f, 0), eval_size(&s->e, column), t.lanes),
				   m.dtype, s->e.lanes.mask);
	Lx x = lx_var(f, v);
	x = lx_sc(f, SC_convert, t, &x, 1);
	x = lx_sc(f, SC_and, t, (Lx[]){x, lx_int_of(f, t, (INT64_C(1) << bits) - 1)}, 2);
	x = lx_sc(f, SC_shl, t, (Lx[]){x, lx_int_of(f, t, bits * k)}, 2);
	return tail ? lx_select(f, lx_cmp(f, SC_lt, lx_int(f, k), left), x, lx_int_of(f, t, 0)) : x;
}

/* Returns the groups of a vector of neighbouring columns, joined from their steps. */
static Lx join_groups(Copy *c)
{
	Cpu *s = c->s;
	LoopFn *f = s->e.f;
	const ContractAxes *x = &c->p->axes;
	const Nest *n = s->e.nest;
	const Sym offset = n->offset[c->p->panels.load.i];
	const uint32_t counts = x->k[x->nk - 1];
	Sym along, column;
	if (!nest_coef(n, offset, counts, &along) ||
	    !nest_coef(n, offset, c->p->panels.axis, &column))
		ctx_bug(s->e.l->ir->ctx, "kernel %s: panels of an operand that is not linear",
			s->e.k->name);
	along = sym_floordiv(n->syms, along, sym_int(n->syms, x->row->group));
	Lx at = eval_index(&s->e, offset), all = lx_int_of(f, c->p->vector, 0);
	Lx left = lx_sub(f, eval_size(&s->e, n->extent[x->grouped]),
			 lx_mul(f, s->e.at[counts], lx_int(f, x->row->group)));
	for (uint32_t k = 0; k < x->row->group; k++)
		all = lx_sc(f, SC_or, c->p->vector,
			    (Lx[]){all, step_of_groups(c, k, at, left, along, column)}, 2);
	return lx_var(f, ls_let(f, "groups", all));
}

/* Returns a vector of the operand's elements, converted to the dtype that is multiplied. */
static Lx load_elements(Copy *c)
{
	Cpu *s = c->s;
	Lx x = eval_convert(&s->e, eval_vector(&s->e, c->p->panels.load), c->p->vector.dtype);
	return lx_var(s->e.f, ls_let(s->e.f, "row", x));
}

static Lx load_row(Copy *c, Lx column)
{
	Cpu *s = c->s;
	eval_at(&s->e, c->p->panels.axis, column);
	Lx x = !micro_groups(c->p->axes.row) ? load_elements(c)
	       : !c->p->unit.n               ? join_groups(c)
					     : load_groups(c);
	eval_at(&s->e, c->p->panels.axis, (Lx){0});
	return x;
}

/* Sets the unit axes to the element with that number: the first of them to the number, for loads,
 * which see one axis; the others to 0. */
static void at_element(Copy *c, Lx number)
{
	const UnitAxes *u = &c->p->unit;
	for (uint32_t i = 1; i < u->n; i++)
		eval_at(&c->s->e, u->axis[i], lx_int(c->s->e.f, 0));
	eval_at(&c->s->e, u->axis[0], number);
}

/* Sets each unit axis to its own index at the element with that number. */
static void at_indices(Copy *c, Lx number)
{
	Cpu *s = c->s;
	const UnitAxes *u = &c->p->unit;
	for (uint32_t i = 0; i < u->n; i++) {
		Lx n = eval_size(&s->e, s->e.nest->extent[u->axis[i]]);
		const bool last = i + 1 == u->n;
		c->index[i] =
			last ? number : eval_let(&s->e, "index", lx_mod(s->e.f, number, n));
		number = last ? number : eval_let(&s->e, "number", lx_div(s->e.f, number, n));
		eval_at(&s->e, u->axis[i], c->index[i]);
	}
}

/* Moves the unit axes to the element after that of the last call, or of at_indices. */
static void at_next(Copy *c)
{
	Cpu *s = c->s;
	LoopFn *f = s->e.f;
	const UnitAxes *u = &c->p->unit;
	Lx more = lx_int(f, 1), zero = lx_int(f, 0);
	for (uint32_t i = 0; i < u->n; i++) {
		Lx next = eval_let(&s->e, "next", lx_add(f, c->index[i], more));
		if (i + 1 < u->n) {
			Lx n = eval_size(&s->e, s->e.nest->extent[u->axis[i]]);
			Lx wraps = eval_let(&s->e, "wraps", lx_cmp(f, SC_eq, next, n));
			more = lx_select(f, wraps, lx_int(f, 1), zero);
			next = eval_let(&s->e, "index", lx_select(f, wraps, zero, next));
		}
		c->index[i] = next;
		eval_at(&s->e, u->axis[i], next);
	}
}

/* Stores all columns of a square that begins at element `here` of the unit axes, in vector j. */
static void store_square(Copy *c, uint32_t j, Lx here, const Lx *column)
{
	Cpu *s = c->s;
	for (uint32_t i = 0; i < s->e.lanes.n; i++) {
		if (c->p->unit.n == 1)
			at_element(c, lx_add(s->e.f, here, lx_int(s->e.f, i)));
		else if (i)
			at_next(c);
		else
			at_indices(c, here);
		ls_store(s->e.f, c->to, place(c, j), column[i], (Lx){0});
	}
}

/* Stores the first `left` columns of a square that begins at element `here` of the unit axes, in
 * vector j. */
static void store_columns(Copy *c, uint32_t j, Lx here, Lx left, const Lx *column)
{
	Cpu *s = c->s;
	LMem square = ls_local(s->e.f, "square", c->p->vector.dtype,
			       (uint64_t)s->e.lanes.n * s->e.lanes.n);
	for (uint32_t i = 0; i < s->e.lanes.n; i++)
		ls_store(s->e.f, square, lx_int(s->e.f, (int64_t)i * s->e.lanes.n), column[i],
			 (Lx){0});
	Lx i = lx_var(s->e.f, ls_for(s->e.f, "i", lx_int(s->e.f, 0), left, 1));
	at_indices(c, lx_add(s->e.f, here, i));
	Lv v = ls_load(s->e.f, "column", square, lx_mul(s->e.f, i, lx_int(s->e.f, s->e.lanes.n)),
		       c->p->vector, (Lx){0});
	ls_store(s->e.f, c->to, place(c, j), lx_var(s->e.f, v), (Lx){0});
	ls_end(s->e.f);
}

/* Copies a square of vector j: as many elements of the unit axes as there are lanes become columns.
 * left: how many of them there are; none: all. */
static void copy_square(Copy *c, uint32_t j, Lx left)
{
	Cpu *s = c->s;
	const uint32_t first = c->p->unit.axis[0];
	Lx here = s->e.at[first], *row = ARENA_ARRAY(s->e.arena, Lx, s->e.lanes.n),
	   column = eval_let(&s->e, "column", first_column(c, j));
	Lx last = lx_sub(s->e.f, eval_size(&s->e, s->e.nest->extent[c->p->panels.axis]),
			 lx_int(s->e.f, 1));
	bool whole = is_whole(c);
	eval_lanes(&s->e, first, s->e.lanes.n);
	eval_mask(&s->e, left.i ? lx_var(s->e.f, ls_let(s->e.f, "there",
							lx_mask(s->e.f, left, s->e.lanes.n)))
				: (Lx){0});
	for (uint32_t r = 0; r < s->e.lanes.n; r++) {
		Lx at = lx_add(s->e.f, column, lx_int(s->e.f, r));
		row[r] = load_row(c, whole ? at : eval_let(&s->e, "i", lx_min(s->e.f, at, last)));
	}
	eval_mask(&s->e, (Lx){0});
	eval_lanes(&s->e, NO_AXIS, s->e.lanes.n);
	transpose_lanes(s, row);
	if (left.i)
		store_columns(c, j, here, left, row);
	else
		store_square(c, j, here, row);
	at_element(c, here);
}

/* Copies a square of rows of a whose groups become neighbours: as many groups as there are lanes,
 * each loaded along the rows. left: how many groups there are; none: all. Groups behind them, and
 * rows behind the last one, hold anything. */
static void turn_square(Copy *c, Lx left)
{
	Cpu *s = c->s;
	LoopFn *f = s->e.f;
	const uint32_t k = c->p->unit.axis[0], rows = c->p->panels.axis, n = s->e.lanes.n;
	Lx here = s->e.at[k], *line = ARENA_ARRAY(s->e.arena, Lx, n),
	   first = eval_let(&s->e, "row", first_column(c, 0));
	eval_lanes(&s->e, rows, n);
	if (!is_whole(c)) {
		Lx there = lx_sub(f, eval_size(&s->e, s->e.nest->extent[rows]), first);
		there = lx_mask(f, lx_min(f, there, lx_int(f, n)), n);
		eval_mask(&s->e, lx_var(f, ls_let(f, "there", there)));
	}
	eval_at(&s->e, rows, first);
	for (uint32_t i = 0; i < n; i++) {
		Lx at = lx_int(f, i);
		at = left.i ? lx_min(f, at, lx_sub(f, left, lx_int(f, 1))) : at;
		eval_at(&s->e, k, eval_let(&s->e, "group", lx_add(f, here, at)));
		line[i] = join_groups(c);
	}
	eval_at(&s->e, rows, (Lx){0});
	eval_mask(&s->e, (Lx){0});
	eval_lanes(&s->e, NO_AXIS, n);
	eval_at(&s->e, k, here);
	transpose_lanes(s, line);
	Lx row = eval_size(&s->e, sym_divi(s->e.syms, c->p->panels.stride, n)),
	   to = eval_let(&s->e, "to", place(c, 0));
	for (uint32_t i = 0; i < n; i++)
		ls_store(f, c->to, lx_add(f, to, lx_mul(f, row, lx_int(f, i))), line[i], (Lx){0});
}

/* Copies the squares of a panel that begin at the current element of the unit axes. left: as for
 * copy_square. */
static void copy_panel(Copy *c, Lx left)
{
	if (c->p->panels.turned) {
		turn_square(c, left);
		return;
	}
	for (uint32_t j = 0; j < vectors(c); j++)
		copy_square(c, j, left);
}

static void copy_squares(Copy *c)
{
	Cpu *s = c->s;
	LoopFn *f = s->e.f;
	const UnitAxes *u = &c->p->unit;
	const uint32_t outermost = u->axis[u->n - 1];
	Lx lanes = lx_int(f, s->e.lanes.n), inner = lx_int(f, u->inner),
	   lo = c->p->cut == outermost ? c->lo : lx_int(f, 0),
	   hi = c->p->cut == outermost ? c->hi : eval_size(&s->e, s->e.nest->extent[outermost]);
	lo = lx_mul(f, lo, inner);
	hi = lx_mul(f, hi, inner);
	Lx n = lx_sub(f, hi, lo);
	Lx end = eval_let(&s->e, "whole", lx_add(f, lo, lx_sub(f, n, lx_mod(f, n, lanes))));
	at_element(c, lo);
	eval_for(&s->e, u->axis[0], lo, end, s->e.lanes.n);
	copy_panel(c, (Lx){0});
	eval_end(&s->e);
	const Sym all = sym_muli(s->e.syms, s->e.nest->extent[outermost], u->inner);
	if (!sym_divides(s->e.syms, s->e.lanes.n, all)) {
		ls_if(f, lx_cmp(f, SC_lt, end, hi));
		at_element(c, end);
		Lx left = eval_let(&s->e, "left", lx_sub(f, hi, end));
		copy_panel(c, left);
		ls_end(f);
	}
	for (uint32_t i = 0; i < u->n; i++)
		eval_at(&s->e, u->axis[i], (Lx){0});
}

static void copy_columns(Copy *c)
{
	Cpu *s = c->s;
	c->panel = lx_var(s->e.f, ls_for(s->e.f, "panel", c->first, c->end, 1));
	eval_lanes(&s->e, c->p->panels.axis, s->e.lanes.n);
	for (uint32_t j = 0; j < vectors(c); j++) {
		Lx column = eval_let(&s->e, "column", first_column(c, j)),
		   lanes = lx_int(s->e.f, s->e.lanes.n);
		if (!is_whole(c)) {
			Lx left = lx_max(
				s->e.f,
				lx_sub(s->e.f,
				       eval_size(&s->e, s->e.nest->extent[c->p->panels.axis]),
				       column),
				lx_int(s->e.f, 0));
			eval_mask(&s->e,
				  lx_var(s->e.f, ls_let(s->e.f, "there",
							lx_mask(s->e.f, lx_min(s->e.f, left, lanes),
								s->e.lanes.n))));
		}
		Lx x = load_row(c, column);
		eval_mask(&s->e, (Lx){0});
		ls_store(s->e.f, c->to, place(c, j), x, (Lx){0});
	}
	eval_lanes(&s->e, NO_AXIS, s->e.lanes.n);
	ls_end(s->e.f);
}

static KernelCost copy_cost(const Cpu *s, const CopyPlan *p)
{
	const Cost *bytes = cost_mul(
		s->e.arena, cost_number(s->e.arena, 2 * (double)dtype_size(p->vector.dtype)),
		cost_sym(s->e.arena, p->panels.numel));
	return (KernelCost){.flops = cost_number(s->e.arena, 0), .bytes = bytes};
}

/* Writes the loops over the summed axes but the unit axes, and the copy of the task's panels in
 * them. */
static void copy_steps(Copy *c)
{
	Cpu *s = c->s;
	for (uint32_t i = 0; i < c->p->nloop; i++) {
		uint32_t k = c->p->loop[i];
		Lx lo = k == c->p->cut ? c->lo : lx_int(s->e.f, 0),
		   hi = k == c->p->cut ? c->hi : eval_size(&s->e, s->e.nest->extent[k]);
		eval_for(&s->e, k, lo, hi, 1);
	}
	if (c->p->unit.n)
		copy_squares(c);
	else
		copy_columns(c);
	for (uint32_t i = 0; i < c->p->nloop; i++)
		eval_end(&s->e);
}

void contract_copy(Cpu *s, const CopyPlan *p, uint32_t last)
{
	Copy c = {.s = s, .p = p};
	const uint32_t temp = code_temp(&s->code, (SchedTemp){.name = "panels",
						      .dtype = p->vector.dtype,
						      .numel = p->panels.numel,
						      .first = s->out->phase.n,
						      .last = last});
	cpu_begin_phase(s, p->nest);
	eval_lanes(&s->e, NO_AXIS, p->vector.lanes);
	c.to = eval_temp_memory(&s->e, temp);
	decode_task(&c);
	c.panel = c.first;
	copy_steps(&c);
	cpu_finish_phase(s, p->ntasks, copy_cost(s, p));
}
