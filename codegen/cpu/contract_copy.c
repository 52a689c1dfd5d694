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
	Sched *s;
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

uint32_t contract_turned_axis(const Sched *s, Kx load, const ContractAxes *x)
{
	for (uint32_t i = 0; i < x->nk; i++)
		if (sched_coef_is(s, s->offset[load.i], x->k[i], 1) && axes_hint(s, x->k[i]) >= (int64_t)contract_lanes(s))
			return x->k[i];
	return NO_AXIS;
}

static uint32_t vectors(const Copy *c)
{
	return (uint32_t)(c->p->width / c->s->lanes);
}

static bool has_axis(const Copy *c, uint32_t axis)
{
	return sched_axes(c->s, c->p->offset) >> axis & 1;
}

static int64_t task_panels(const Copy *c)
{
	return c->along == NO_AXIS ? TASK_PANELS : 1;
}

static Sym parts(const Copy *c)
{
	const Sched *s = c->s;
	return sym_ceildiv(s->syms, s->extent[c->cut], sym_int(s->syms, c->per));
}

static Sym groups(const Copy *c)
{
	return sym_ceildiv(c->s->syms, c->p->count, sym_int(c->s->syms, task_panels(c)));
}

static Sym count_batch(const Copy *c)
{
	const Sched *s = c->s;
	Sym n = sym_int(s->syms, 1);
	for (uint32_t i = 0; i < c->x->nbatch; i++)
		if (has_axis(c, c->x->batch[i]))
			n = sym_mul(s->syms, n, s->extent[c->x->batch[i]]);
	return n;
}

/* The outermost axis, in parts that are worth a task. */
static void choose_parts(Copy *c)
{
	const Sched *s = c->s;
	int64_t inner = c->p->width * task_panels(c), unit = 1;
	c->cut = c->x->k[0];
	for (uint32_t i = 1; i < c->x->nk; i++)
		inner *= axes_hint(s, c->x->k[i]);
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
	Lx task = lx_var(s->f, s->f->task), per = lx_int(s->f, task_panels(c));
	c->lo = sched_let(s, "lo", lx_mul(s->f, take(c, &task, parts(c)), lx_int(s->f, c->per)));
	c->hi = sched_let(s, "hi", lx_min(s->f, lx_add(s->f, c->lo, lx_int(s->f, c->per)), sched_size(s, s->extent[c->cut])));
	c->first = sched_let(s, "first", lx_mul(s->f, take(c, &task, groups(c)), per));
	c->end = sched_let(s, "end", lx_min(s->f, lx_add(s->f, c->first, per), sched_size(s, c->p->count)));
	for (uint32_t i = c->x->nbatch; i-- > 0;)
		if (has_axis(c, c->x->batch[i]))
			sched_at(s, c->x->batch[i], take(c, &task, s->extent[c->x->batch[i]]));
}

/* Where the panel's vector j is at the point of the summed axes. */
static Lx place(Copy *c, uint32_t j)
{
	Sched *s = c->s;
	Lx at = lx_add(s->f, lx_mul(s->f, c->panel, sched_size(s, c->p->stride)), sched_sym(s, c->p->offset));
	return lx_add(s->f, at, lx_int(s->f, (int64_t)j * s->lanes));
}

static Lx first_column(Copy *c, uint32_t j)
{
	Sched *s = c->s;
	return lx_add(s->f, lx_mul(s->f, c->panel, lx_int(s->f, c->p->step)), lx_int(s->f, (int64_t)j * s->lanes));
}

/* No vector reaches past the last column. */
static bool is_whole(const Copy *c)
{
	return c->p->step == c->p->width && sym_divides(c->s->syms, c->p->width, c->s->extent[c->p->axis]);
}

static Lx load_row(Copy *c, Lx column)
{
	Sched *s = c->s;
	sched_at(s, c->p->axis, column);
	Lx x = lx_var(s->f, ls_let(s->f, "row", sched_vector(s, c->p->load)));
	sched_at(s, c->p->axis, (Lx){0});
	return x;
}

/* Steps [k, k + lanes) of the axis, of vector j, as columns: all of them, or the first `left` of these. */
static void copy_square(Copy *c, uint32_t j, Lx left)
{
	Sched *s = c->s;
	Lx here = s->at[c->along], *row = ARENA_ARRAY(s->arena, Lx, s->lanes), column = sched_let(s, "column", first_column(c, j));
	Lx last = lx_sub(s->f, sched_size(s, s->extent[c->p->axis]), lx_int(s->f, 1));
	bool whole = is_whole(c);
	sched_lanes(s, c->along, s->lanes);
	sched_mask(s, left.i ? lx_var(s->f, ls_let(s->f, "there", lx_mask(s->f, left, s->lanes))) : (Lx){0});
	for (uint32_t r = 0; r < s->lanes; r++) {
		Lx at = lx_add(s->f, column, lx_int(s->f, r));
		row[r] = load_row(c, whole ? at : sched_let(s, "i", lx_min(s->f, at, last)));
	}
	sched_mask(s, (Lx){0});
	sched_lanes(s, NO_AXIS, s->lanes);
	transpose_lanes(s, row);
	if (!left.i) {
		for (uint32_t i = 0; i < s->lanes; i++) {
			sched_at(s, c->along, lx_add(s->f, here, lx_int(s->f, i)));
			ls_store(s->f, c->to, place(c, j), row[i], (Lx){0});
		}
	} else {
		LMem square = ls_local(s->f, "square", s->shape.dtype, (uint64_t)s->lanes * s->lanes);
		for (uint32_t i = 0; i < s->lanes; i++)
			ls_store(s->f, square, lx_int(s->f, (int64_t)i * s->lanes), row[i], (Lx){0});
		Lx i = lx_var(s->f, ls_for(s->f, "i", lx_int(s->f, 0), left, 1));
		sched_at(s, c->along, lx_add(s->f, here, i));
		Lv v = ls_load(s->f, "column", square, lx_mul(s->f, i, lx_int(s->f, s->lanes)), (LType){s->shape.dtype, s->lanes}, (Lx){0});
		ls_store(s->f, c->to, place(c, j), lx_var(s->f, v), (Lx){0});
		ls_end(s->f);
	}
	sched_at(s, c->along, here);
}

static void copy_squares(Copy *c)
{
	Sched *s = c->s;
	Lx lanes = lx_int(s->f, s->lanes), hi = c->cut == c->along ? c->hi : sched_size(s, s->extent[c->along]);
	Lx lo = c->cut == c->along ? c->lo : lx_int(s->f, 0);
	Lx n = lx_sub(s->f, hi, lo);
	Lx end = sched_let(s, "whole", lx_add(s->f, lo, lx_sub(s->f, n, lx_mod(s->f, n, lanes))));
	sched_for(s, c->along, lo, end, s->lanes);
	for (uint32_t j = 0; j < vectors(c); j++)
		copy_square(c, j, (Lx){0});
	sched_end(s);
	if (sym_divides(s->syms, s->lanes, s->extent[c->along]))
		return;
	ls_if(s->f, lx_cmp(s->f, SC_lt, end, hi));
	sched_at(s, c->along, end);
	Lx left = sched_let(s, "left", lx_sub(s->f, hi, end));
	for (uint32_t j = 0; j < vectors(c); j++)
		copy_square(c, j, left);
	ls_end(s->f);
	sched_at(s, c->along, (Lx){0});
}

static void copy_columns(Copy *c)
{
	Sched *s = c->s;
	c->panel = lx_var(s->f, ls_for(s->f, "panel", c->first, c->end, 1));
	sched_lanes(s, c->p->axis, s->lanes);
	for (uint32_t j = 0; j < vectors(c); j++) {
		Lx column = sched_let(s, "column", first_column(c, j)), lanes = lx_int(s->f, s->lanes);
		if (!is_whole(c)) {
			Lx left = lx_max(s->f, lx_sub(s->f, sched_size(s, s->extent[c->p->axis]), column), lx_int(s->f, 0));
			sched_mask(s, lx_var(s->f, ls_let(s->f, "there", lx_mask(s->f, lx_min(s->f, left, lanes), s->lanes))));
		}
		Lx x = load_row(c, column);
		sched_mask(s, (Lx){0});
		ls_store(s->f, c->to, place(c, j), x, (Lx){0});
	}
	sched_lanes(s, NO_AXIS, s->lanes);
	ls_end(s->f);
}

static KernelCost copy_cost(const Sched *s, Sym numel)
{
	const Cost *bytes = cost_mul(s->arena, cost_number(s->arena, 2 * (double)dtype_size(s->shape.dtype)), cost_sym(s->arena, numel));
	return (KernelCost){.flops = cost_number(s->arena, 0), .bytes = bytes};
}

/* Every phase after this one reads the panels: of the copies, that of the other operand comes after it. */
uint32_t contract_copy(Sched *s, const Panels *p, const ContractAxes *x)
{
	Copy c = {.s = s, .p = p, .x = x, .along = contract_turned_axis(s, p->load, x)};
	uint32_t n = 0, vaxis = s->vaxis, first = s->out->phase.n;
	choose_parts(&c);
	uint32_t temp = sched_temp(s, (SchedTemp){.name = "panels", .dtype = s->shape.dtype, .numel = p->numel, .first = first, .last = first + 1});
	for (uint32_t i = 0; i < temp; i++)
		s->out->temp.data[i].last = first + 1;
	sched_lanes(s, NO_AXIS, s->lanes);
	c.to = sched_temp_memory(s, temp);
	decode_task(&c);
	c.panel = c.first;
	for (uint32_t i = 0; i < x->nk; i++) {
		uint32_t k = x->k[i];
		if (k == c.along)
			continue;
		Lx lo = k == c.cut ? c.lo : lx_int(s->f, 0), hi = k == c.cut ? c.hi : sched_size(s, s->extent[k]);
		sched_for(s, k, lo, hi, 1);
		n++;
	}
	if (c.along == NO_AXIS)
		copy_columns(&c);
	else
		copy_squares(&c);
	while (n--)
		sched_end(s);
	Sym tasks = sym_mul(s->syms, sym_mul(s->syms, count_batch(&c), groups(&c)), parts(&c));
	sched_finish_phase(s, tasks, copy_cost(s, p->numel));
	sched_lanes(s, vaxis, s->lanes);
	return temp;
}
