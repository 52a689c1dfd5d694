/* An operand of which columns (rows, of a) or steps of k are apart: a phase of its own copies it into panels, which are read as those of a
 * packed constant.
 *
 *     task (panels, part of k):  panel[k][j] = b[k, n + j]
 *
 * Where elements are neighbours along a summed axis, as in a product with a transposed matrix, squares of as many of both
 * as there are lanes are loaded along that axis and transposed in registers; else columns are loaded or gathered. Columns past the end
 * of the last panel hold anything: what is computed of them is not stored. */
#include "codegen/cpu/contract.h"
#include "codegen/cpu/cost.h"

/* Panels of a task: of short ones several come from each line of memory that is read. */
enum { TASK_PANELS = 4 };

typedef struct {
	Cpu *s;
	const Panels *p;
	const ContractAxes *x;
	uint32_t along; /* the summed axis with unit stride, or NO_AXIS */
	uint32_t cut;   /* the summed axis of which a task has a part */
	int64_t per;    /* its steps in a task */
	LMem to;
	Lx first, end;  /* the task's panels */
	Lx panel;       /* the current one */
	Lx lo, hi;      /* the task's part of the cut axis */
} Copy;

uint32_t contract_turned_axis(const Cpu *s, Kx load, const ContractAxes *x)
{
	for (uint32_t i = 0; i < x->nk; i++)
		if (eval_coef_is(&s->e, s->e.offset[load.i], x->k[i], 1) && axes_hint(s, x->k[i]) >= (int64_t)contract_lanes(s))
			return x->k[i];
	return NO_AXIS;
}

static uint32_t vectors(const Copy *c)
{
	return (uint32_t)(c->p->width / c->s->e.lanes.n);
}

static bool has_axis(const Copy *c, uint32_t axis)
{
	return eval_axes(&c->s->e, c->p->offset) >> axis & 1;
}

static int64_t task_panels(const Copy *c)
{
	return c->along == NO_AXIS ? TASK_PANELS : 1;
}

static Sym parts(const Copy *c)
{
	const Cpu *s = c->s;
	return sym_ceildiv(s->e.syms, s->e.axes.extent[c->cut], sym_int(s->e.syms, c->per));
}

static Sym groups(const Copy *c)
{
	return sym_ceildiv(c->s->e.syms, c->p->count, sym_int(c->s->e.syms, task_panels(c)));
}

static Sym count_batch(const Copy *c)
{
	const Cpu *s = c->s;
	Sym n = sym_int(s->e.syms, 1);
	for (uint32_t i = 0; i < c->x->nbatch; i++)
		if (has_axis(c, c->x->batch[i]))
			n = sym_mul(s->e.syms, n, s->e.axes.extent[c->x->batch[i]]);
	return n;
}

/* The outermost axis, in parts that are worth a task. */
static void choose_parts(Copy *c)
{
	const Cpu *s = c->s;
	int64_t inner = c->p->width * task_panels(c), unit = 1;
	c->cut = c->x->k[0];
	for (uint32_t i = 1; i < c->x->nk; i++)
		inner *= axes_hint(s, c->x->k[i]);
	if (c->cut == c->along)
		unit = s->e.lanes.n;
	int64_t per = tuning_task_work(&s->target->machine) / (inner > 0 ? inner : 1);
	c->per = per / unit * unit < unit ? unit : per / unit * unit;
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
	Lx task = lx_var(s->e.f, s->e.f->task), per = lx_int(s->e.f, task_panels(c));
	c->lo = eval_let(&s->e, "lo", lx_mul(s->e.f, take(c, &task, parts(c)), lx_int(s->e.f, c->per)));
	c->hi = eval_let(&s->e, "hi", lx_min(s->e.f, lx_add(s->e.f, c->lo, lx_int(s->e.f, c->per)), eval_size(&s->e, s->e.axes.extent[c->cut])));
	c->first = eval_let(&s->e, "first", lx_mul(s->e.f, take(c, &task, groups(c)), per));
	c->end = eval_let(&s->e, "end", lx_min(s->e.f, lx_add(s->e.f, c->first, per), eval_size(&s->e, c->p->count)));
	for (uint32_t i = c->x->nbatch; i-- > 0;)
		if (has_axis(c, c->x->batch[i]))
			eval_at(&s->e, c->x->batch[i], take(c, &task, s->e.axes.extent[c->x->batch[i]]));
}

/* Where the panel's vector j is at the point of the summed axes. */
static Lx place(Copy *c, uint32_t j)
{
	Cpu *s = c->s;
	Lx at = lx_add(s->e.f, lx_mul(s->e.f, c->panel, eval_size(&s->e, c->p->stride)), eval_index(&s->e, c->p->offset));
	return lx_add(s->e.f, at, lx_int(s->e.f, (int64_t)j * s->e.lanes.n));
}

static Lx first_column(Copy *c, uint32_t j)
{
	Cpu *s = c->s;
	return lx_add(s->e.f, lx_mul(s->e.f, c->panel, lx_int(s->e.f, c->p->step)), lx_int(s->e.f, (int64_t)j * s->e.lanes.n));
}

/* No vector reaches past the last column. */
static bool is_whole(const Copy *c)
{
	return c->p->step == c->p->width && sym_divides(c->s->e.syms, c->p->width, c->s->e.axes.extent[c->p->axis]);
}

static Lx load_row(Copy *c, Lx column)
{
	Cpu *s = c->s;
	eval_at(&s->e, c->p->axis, column);
	Lx x = lx_var(s->e.f, ls_let(s->e.f, "row", eval_vector(&s->e, c->p->load)));
	eval_at(&s->e, c->p->axis, (Lx){0});
	return x;
}

/* Steps [k, k + lanes) of the axis, of vector j, as columns: all of them, or the first `left` of these. */
static void copy_square(Copy *c, uint32_t j, Lx left)
{
	Cpu *s = c->s;
	Lx here = s->e.axes.at[c->along], *row = ARENA_ARRAY(s->e.arena, Lx, s->e.lanes.n), column = eval_let(&s->e, "column", first_column(c, j));
	Lx last = lx_sub(s->e.f, eval_size(&s->e, s->e.axes.extent[c->p->axis]), lx_int(s->e.f, 1));
	bool whole = is_whole(c);
	eval_lanes(&s->e, c->along, s->e.lanes.n);
	eval_mask(&s->e, left.i ? lx_var(s->e.f, ls_let(s->e.f, "there", lx_mask(s->e.f, left, s->e.lanes.n))) : (Lx){0});
	for (uint32_t r = 0; r < s->e.lanes.n; r++) {
		Lx at = lx_add(s->e.f, column, lx_int(s->e.f, r));
		row[r] = load_row(c, whole ? at : eval_let(&s->e, "i", lx_min(s->e.f, at, last)));
	}
	eval_mask(&s->e, (Lx){0});
	eval_lanes(&s->e, NO_AXIS, s->e.lanes.n);
	transpose_lanes(s, row);
	if (!left.i) {
		for (uint32_t i = 0; i < s->e.lanes.n; i++) {
			eval_at(&s->e, c->along, lx_add(s->e.f, here, lx_int(s->e.f, i)));
			ls_store(s->e.f, c->to, place(c, j), row[i], (Lx){0});
		}
	} else {
		LMem square = ls_local(s->e.f, "square", s->shape.dtype, (uint64_t)s->e.lanes.n * s->e.lanes.n);
		for (uint32_t i = 0; i < s->e.lanes.n; i++)
			ls_store(s->e.f, square, lx_int(s->e.f, (int64_t)i * s->e.lanes.n), row[i], (Lx){0});
		Lx i = lx_var(s->e.f, ls_for(s->e.f, "i", lx_int(s->e.f, 0), left, 1));
		eval_at(&s->e, c->along, lx_add(s->e.f, here, i));
		Lv v = ls_load(s->e.f, "column", square, lx_mul(s->e.f, i, lx_int(s->e.f, s->e.lanes.n)), (LType){s->shape.dtype, s->e.lanes.n}, (Lx){0});
		ls_store(s->e.f, c->to, place(c, j), lx_var(s->e.f, v), (Lx){0});
		ls_end(s->e.f);
	}
	eval_at(&s->e, c->along, here);
}

static void copy_squares(Copy *c)
{
	Cpu *s = c->s;
	Lx lanes = lx_int(s->e.f, s->e.lanes.n), hi = c->cut == c->along ? c->hi : eval_size(&s->e, s->e.axes.extent[c->along]);
	Lx lo = c->cut == c->along ? c->lo : lx_int(s->e.f, 0);
	Lx n = lx_sub(s->e.f, hi, lo);
	Lx end = eval_let(&s->e, "whole", lx_add(s->e.f, lo, lx_sub(s->e.f, n, lx_mod(s->e.f, n, lanes))));
	eval_for(&s->e, c->along, lo, end, s->e.lanes.n);
	for (uint32_t j = 0; j < vectors(c); j++)
		copy_square(c, j, (Lx){0});
	eval_end(&s->e);
	if (sym_divides(s->e.syms, s->e.lanes.n, s->e.axes.extent[c->along]))
		return;
	ls_if(s->e.f, lx_cmp(s->e.f, SC_lt, end, hi));
	eval_at(&s->e, c->along, end);
	Lx left = eval_let(&s->e, "left", lx_sub(s->e.f, hi, end));
	for (uint32_t j = 0; j < vectors(c); j++)
		copy_square(c, j, left);
	ls_end(s->e.f);
	eval_at(&s->e, c->along, (Lx){0});
}

static void copy_columns(Copy *c)
{
	Cpu *s = c->s;
	c->panel = lx_var(s->e.f, ls_for(s->e.f, "panel", c->first, c->end, 1));
	eval_lanes(&s->e, c->p->axis, s->e.lanes.n);
	for (uint32_t j = 0; j < vectors(c); j++) {
		Lx column = eval_let(&s->e, "column", first_column(c, j)), lanes = lx_int(s->e.f, s->e.lanes.n);
		if (!is_whole(c)) {
			Lx left = lx_max(s->e.f, lx_sub(s->e.f, eval_size(&s->e, s->e.axes.extent[c->p->axis]), column), lx_int(s->e.f, 0));
			eval_mask(&s->e, lx_var(s->e.f, ls_let(s->e.f, "there", lx_mask(s->e.f, lx_min(s->e.f, left, lanes), s->e.lanes.n))));
		}
		Lx x = load_row(c, column);
		eval_mask(&s->e, (Lx){0});
		ls_store(s->e.f, c->to, place(c, j), x, (Lx){0});
	}
	eval_lanes(&s->e, NO_AXIS, s->e.lanes.n);
	ls_end(s->e.f);
}

static KernelCost copy_cost(const Cpu *s, Sym numel)
{
	const Cost *bytes = cost_mul(s->e.arena, cost_number(s->e.arena, 2 * (double)dtype_size(s->shape.dtype)), cost_sym(s->e.arena, numel));
	return (KernelCost){.flops = cost_number(s->e.arena, 0), .bytes = bytes};
}

/* Every phase after this one reads the panels: of the copies, that of the other operand comes after it. */
uint32_t contract_copy(Cpu *s, const Panels *p, const ContractAxes *x)
{
	Copy c = {.s = s, .p = p, .x = x, .along = contract_turned_axis(s, p->load, x)};
	uint32_t n = 0, vaxis = s->e.lanes.axis, first = s->out->phase.n;
	choose_parts(&c);
	uint32_t temp = cpu_temp(s, (SchedTemp){.name = "panels", .dtype = s->shape.dtype, .numel = p->numel, .first = first, .last = first + 1});
	for (uint32_t i = 0; i < temp; i++)
		s->out->temp.data[i].last = first + 1;
	eval_lanes(&s->e, NO_AXIS, s->e.lanes.n);
	c.to = eval_temp_memory(&s->e, temp);
	decode_task(&c);
	c.panel = c.first;
	for (uint32_t i = 0; i < x->nk; i++) {
		uint32_t k = x->k[i];
		if (k == c.along)
			continue;
		Lx lo = k == c.cut ? c.lo : lx_int(s->e.f, 0), hi = k == c.cut ? c.hi : eval_size(&s->e, s->e.axes.extent[k]);
		eval_for(&s->e, k, lo, hi, 1);
		n++;
	}
	if (c.along == NO_AXIS)
		copy_columns(&c);
	else
		copy_squares(&c);
	while (n--)
		eval_end(&s->e);
	Sym tasks = sym_mul(s->e.syms, sym_mul(s->e.syms, count_batch(&c), groups(&c)), parts(&c));
	cpu_finish_phase(s, tasks, copy_cost(s, p->numel));
	eval_lanes(&s->e, vaxis, s->e.lanes.n);
	return temp;
}
