/* Operand b whose columns are apart: a phase of its own copies it into panels, which are read as those of a packed constant.
 *
 *     task (panel, part of k):  panel[k][j] = b[k, n + j]
 *
 * Where b's elements are neighbours along a summed axis, as in a product with a transposed matrix, squares of as many of both
 * as there are lanes are loaded along that axis and transposed in registers; else columns are gathered. Columns past the end
 * of the last panel hold anything: what is computed of them is not stored. */
#include "codegen/schedule/contract.h"
#include "codegen/schedule/cost.h"
#include "codegen/schedule/tuning.h"

typedef struct {
	Sched *s;
	const Contract *p;
	uint32_t along; /* the summed axis with unit stride, or NO_AXIS */
	uint32_t cut;   /* the summed axis of which a task has a part */
	int64_t per;    /* its steps in a task */
	LMem to;
	Lx panel;       /* the task's: its number */
	Lx lo, hi;      /* the task's part of the cut axis */
} Copy;

uint32_t contract_turned_axis(const Sched *s, Kx b, const ContractAxes *x)
{
	for (uint32_t i = 0; i < x->nk; i++)
		if (sched_coef_is(s, s->offset[b.i], x->k[i], 1) && axes_hint(s, x->k[i]) >= (int64_t)target_width(s->target))
			return x->k[i];
	return NO_AXIS;
}

static int64_t panel_width(const Copy *c)
{
	return (int64_t)c->p->operand.vectors * c->s->lanes;
}

static bool of_b(const Copy *c, uint32_t axis)
{
	return sched_axes(c->s, c->p->operand.offset) >> axis & 1;
}

static Sym parts(const Copy *c)
{
	const Sched *s = c->s;
	return sym_ceildiv(s->syms, s->extent[c->cut], sym_int(s->syms, c->per));
}

static Sym panels(const Copy *c)
{
	const Sched *s = c->s;
	return sym_ceildiv(s->syms, s->extent[c->p->axes.n], sym_int(s->syms, panel_width(c)));
}

static Sym count_batch(const Copy *c)
{
	const Sched *s = c->s;
	Sym n = sym_int(s->syms, 1);
	for (uint32_t i = 0; i < c->p->axes.nbatch; i++)
		if (of_b(c, c->p->axes.batch[i]))
			n = sym_mul(s->syms, n, s->extent[c->p->axes.batch[i]]);
	return n;
}

/* The outermost axis, in parts that are worth a task. */
static void choose_parts(Copy *c)
{
	const Sched *s = c->s;
	int64_t inner = panel_width(c), unit = 1;
	c->cut = c->p->axes.k[0];
	for (uint32_t i = 1; i < c->p->axes.nk; i++)
		inner *= axes_hint(s, c->p->axes.k[i]);
	if (c->cut == c->along)
		unit = s->lanes;
	int64_t per = tuning_task_work(&s->target->machine) / (inner > 0 ? inner : 1);
	c->per = per / unit * unit < unit ? unit : per / unit * unit;
}

static Lx take(Copy *c, Lx *task, Sym count)
{
	Sched *s = c->s;
	Lx n = sched_size(s, count), v = sched_let(s, "at", lx_mod(s->f, *task, n));
	*task = sched_let(s, "rest", lx_div(s->f, *task, n));
	return v;
}

static void decode_task(Copy *c)
{
	Sched *s = c->s;
	Lx task = lx_var(s->f, s->f->task);
	c->lo = sched_let(s, "lo", lx_mul(s->f, take(c, &task, parts(c)), lx_int(s->f, c->per)));
	c->hi = sched_let(s, "hi", lx_min(s->f, lx_add(s->f, c->lo, lx_int(s->f, c->per)), sched_size(s, s->extent[c->cut])));
	c->panel = take(c, &task, panels(c));
	for (uint32_t i = c->p->axes.nbatch; i-- > 0;)
		if (of_b(c, c->p->axes.batch[i]))
			s->at[c->p->axes.batch[i]] = take(c, &task, s->extent[c->p->axes.batch[i]]);
}

/* Where the panel's vector j is at the point of the summed axes. */
static Lx place(Copy *c, uint32_t j)
{
	Sched *s = c->s;
	Lx at = lx_add(s->f, lx_mul(s->f, c->panel, sched_size(s, c->p->operand.panel)), sched_sym(s, c->p->operand.offset));
	return lx_add(s->f, at, lx_int(s->f, (int64_t)j * s->lanes));
}

static Lx first_column(Copy *c, uint32_t j)
{
	Sched *s = c->s;
	return lx_add(s->f, lx_mul(s->f, c->panel, lx_int(s->f, panel_width(c))), lx_int(s->f, (int64_t)j * s->lanes));
}

static Lx load_row(Copy *c, Lx column)
{
	Sched *s = c->s;
	uint32_t mark = sched_mark(s);
	s->at[c->p->axes.n] = column;
	Lx x = lx_var(s->f, ls_let(s->f, "row", sched_vector(s, c->p->b)));
	sched_forget(s, mark);
	s->at[c->p->axes.n] = (Lx){0};
	return x;
}

/* Steps [k, k + lanes) of the axis, of vector j, as columns: all of them, or the first `left` of these. */
static void copy_square(Copy *c, uint32_t j, Lx left)
{
	Sched *s = c->s;
	Lx here = s->at[c->along], *row = ARENA_ARRAY(s->arena, Lx, s->lanes), column = sched_let(s, "column", first_column(c, j));
	Lx last = lx_sub(s->f, sched_size(s, s->extent[c->p->axes.n]), lx_int(s->f, 1));
	bool whole = sym_divides(s->syms, panel_width(c), s->extent[c->p->axes.n]);
	s->vaxis = c->along;
	s->mask = left.i ? lx_var(s->f, ls_let(s->f, "there", lx_mask(s->f, left, s->lanes))) : (Lx){0};
	for (uint32_t r = 0; r < s->lanes; r++) {
		Lx at = lx_add(s->f, column, lx_int(s->f, r));
		row[r] = load_row(c, whole ? at : sched_let(s, "i", lx_min(s->f, at, last)));
	}
	s->mask = (Lx){0};
	s->vaxis = NO_AXIS;
	transpose_lanes(s, row);
	if (!left.i) {
		for (uint32_t i = 0; i < s->lanes; i++) {
			s->at[c->along] = lx_add(s->f, here, lx_int(s->f, i));
			ls_store(s->f, c->to, place(c, j), row[i], (Lx){0});
		}
	} else {
		LMem square = ls_local(s->f, "square", DT_f32, (uint64_t)s->lanes * s->lanes);
		for (uint32_t i = 0; i < s->lanes; i++)
			ls_store(s->f, square, lx_int(s->f, (int64_t)i * s->lanes), row[i], (Lx){0});
		Lx i = lx_var(s->f, ls_for(s->f, "i", lx_int(s->f, 0), left, 1));
		uint32_t mark = sched_mark(s);
		s->at[c->along] = lx_add(s->f, here, i);
		Lv v = ls_load(s->f, "column", square, lx_mul(s->f, i, lx_int(s->f, s->lanes)), (LType){DT_f32, s->lanes}, (Lx){0});
		ls_store(s->f, c->to, place(c, j), lx_var(s->f, v), (Lx){0});
		sched_end(s, mark);
	}
	s->at[c->along] = here;
}

static void copy_squares(Copy *c)
{
	Sched *s = c->s;
	Lx lanes = lx_int(s->f, s->lanes), hi = c->cut == c->along ? c->hi : sched_size(s, s->extent[c->along]);
	Lx lo = c->cut == c->along ? c->lo : lx_int(s->f, 0);
	Lx n = lx_sub(s->f, hi, lo);
	Lx end = sched_let(s, "whole", lx_add(s->f, lo, lx_sub(s->f, n, lx_mod(s->f, n, lanes))));
	uint32_t mark = sched_for(s, c->along, lo, end, s->lanes);
	for (uint32_t j = 0; j < c->p->operand.vectors; j++)
		copy_square(c, j, (Lx){0});
	sched_end(s, mark);
	if (sym_divides(s->syms, s->lanes, s->extent[c->along]))
		return;
	ls_if(s->f, lx_cmp(s->f, SC_lt, end, hi));
	s->at[c->along] = end;
	mark = sched_mark(s);
	Lx left = sched_let(s, "left", lx_sub(s->f, hi, end));
	for (uint32_t j = 0; j < c->p->operand.vectors; j++)
		copy_square(c, j, left);
	sched_end(s, mark);
	s->at[c->along] = (Lx){0};
}

static void copy_gathered(Copy *c)
{
	Sched *s = c->s;
	bool whole = sym_divides(s->syms, panel_width(c), s->extent[c->p->axes.n]);
	s->vaxis = c->p->axes.n;
	for (uint32_t j = 0; j < c->p->operand.vectors; j++) {
		Lx column = sched_let(s, "column", first_column(c, j));
		Lx left = lx_max(s->f, lx_sub(s->f, sched_size(s, s->extent[c->p->axes.n]), column), lx_int(s->f, 0));
		s->mask = whole ? (Lx){0} : lx_var(s->f, ls_let(s->f, "there", lx_mask(s->f, lx_min(s->f, left, lx_int(s->f, s->lanes)), s->lanes)));
		Lx x = load_row(c, column);
		s->mask = (Lx){0};
		ls_store(s->f, c->to, place(c, j), x, (Lx){0});
	}
	s->vaxis = NO_AXIS;
}

static KernelCost copy_cost(const Sched *s, Sym numel)
{
	const Cost *bytes = cost_mul(s->arena, cost_number(s->arena, 2 * (double)dtype_size(DT_f32)), cost_sym(s->arena, numel));
	return (KernelCost){.flops = cost_number(s->arena, 0), .bytes = bytes};
}

uint32_t contract_copy(Sched *s, const Contract *p)
{
	Copy c = {.s = s, .p = p, .along = contract_turned_axis(s, p->b, &p->axes)};
	uint32_t mark[MAX_AXES], n = 0, vaxis = s->vaxis;
	choose_parts(&c);
	Sym tasks = sym_mul(s->syms, count_batch(&c), panels(&c)), numel = sym_mul(s->syms, tasks, p->operand.panel);
	uint32_t temp = sched_temp(s, (SchedTemp){.name = "panels", .dtype = DT_f32, .numel = numel, .first = 0, .last = 1});
	s->vaxis = NO_AXIS;
	c.to = sched_temp_memory(s, temp);
	decode_task(&c);
	for (uint32_t i = 0; i < p->axes.nk; i++) {
		uint32_t k = p->axes.k[i];
		if (k == c.along)
			continue;
		Lx lo = k == c.cut ? c.lo : lx_int(s->f, 0), hi = k == c.cut ? c.hi : sched_size(s, s->extent[k]);
		mark[n++] = sched_for(s, k, lo, hi, 1);
	}
	if (c.along == NO_AXIS)
		copy_gathered(&c);
	else
		copy_squares(&c);
	while (n)
		sched_end(s, mark[--n]);
	sched_finish_phase(s, sym_mul(s->syms, tasks, parts(&c)), copy_cost(s, numel));
	s->vaxis = vaxis;
	return temp;
}
