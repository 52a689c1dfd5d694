/* Unroll-and-jam of reductions, here called abreast: lanes are neighbouring points, as in the sum
 * of each column. One vector of columns alone reads a line here and there, and waits for its own
 * sum; so several go through long rows together:
 *
 *     for r in rows:   acc0 += x[r, c .. c + 16)   acc1 += x[r, c + 16 .. c + 32)   ...
 *
 * and through short ones, windows of images for example, where it takes arithmetic to find the next
 * element, which is done once then. Where rows are long and have many columns, a block of columns
 * has its sums in local memory, and a few rows at a time are added to them: memory is read line
 * after line, then, not a line of each page.
 *
 *     for r in rows, step 4:   for c in block:   sum[c] += x[r, c] + .. + x[r + 3, c]
 *
 * Each column is added up in the same order as alone.
 *
 * Running results of rows, without vectors, wait for the element before as well: some rows go
 * through one loop together. */
#include "codegen/cpu/generic.h"

enum { ROWS_AT_ONCE = 4 };

/* ---- points ---- */

/* The vectors: what the stages of each have given. */
typedef struct {
	Generic *g;
	uint32_t n;
	Lx here;
	StageValue *value[MAX_ABREAST], *whole;
} Abreast;

static void enter(const Abreast *p, uint32_t v)
{
	Cpu *s = p->g->s;
	eval_at(&s->e, s->e.lanes.axis,
		lx_add(s->e.f, p->here, lx_int(s->e.f, (int64_t)v * s->e.lanes.n)));
	eval_stages(&s->e, p->value[v]);
}

static void leave(const Abreast *p)
{
	Cpu *s = p->g->s;
	eval_at(&s->e, s->e.lanes.axis, p->here);
	eval_stages(&s->e, p->whole);
}

static void hoist_for_all(Cpu *s, Kx value)
{
	eval_hoist(&s->e, value, generic_known_axes(s) & ~(UINT64_C(1) << s->e.lanes.axis));
}

/* Combines the element at the current point of the row for all vectors of neighbouring points. */
static void step_abreast(const Abreast *p, StageRun *r)
{
	Cpu *s = p->g->s;
	const Branch branch = generic_branch(&r[0]);
	hoist_for_all(s, r[0].value);
	for (uint32_t v = 0; v < p->n; v++) {
		enter(p, v);
		r[v].value = r[0].value;
		generic_reduce_step(&r[v]);
		leave(p);
	}
	generic_branch_end(s, &branch);
}

static void loops_abreast(const Abreast *p, StageRun *r);

/* Writes the loop over an axis in [lo, hi) for all vectors of points. */
static void loop_abreast(const Abreast *p, StageRun *r, Lx lo, Lx hi)
{
	Cpu *s = p->g->s;
	const uint32_t axis = r->axes[r->next];
	eval_for(&s->e, axis, lo, hi, 1);
	r->next++;
	loops_abreast(p, r);
	r->next--;
	eval_end(&s->e);
	eval_at(&s->e, axis, (Lx){0});
}

/* Writes the loop over an axis in [lo, hi), in chunks if the sums are cut, for all vectors. */
static void chunks_abreast(const Abreast *p, StageRun *r, Lx lo, Lx hi)
{
	Cpu *s = p->g->s;
	SumLoop sums;
	Lv acc[MAX_ABREAST];
	if (!generic_sums(r, p->n, &sums)) {
		loop_abreast(p, r, lo, hi);
		return;
	}
	const int64_t step = sums.cut[sums.ncut - 1].rounds * sums.width;
	const bool asks = generic_expects_one_chunk(r, step);
	if (asks) {
		ls_if(s->e.f, lx_cmp(s->e.f, SC_le, lx_sub(s->e.f, hi, lo), lx_int(s->e.f, step)));
		loop_abreast(p, r, lo, hi);
		ls_else(s->e.f);
	}
	for (uint32_t v = 0; v < p->n; v++)
		acc[v] = r[v].acc;
	sum_open(&s->code, &sums, &lo, &hi, acc);
	for (uint32_t v = 0; v < p->n; v++)
		r[v].acc = acc[v];
	loop_abreast(p, r, lo, hi);
	sum_close(&s->code, &sums, acc);
	for (uint32_t v = 0; v < p->n; v++)
		r[v].acc = acc[v];
	if (asks)
		ls_end(s->e.f);
}

/* Writes the loops over the row that are still to be opened, from number r->next on, and their
 * body. */
static void loops_abreast(const Abreast *p, StageRun *r)
{
	Cpu *s = p->g->s;
	if (r->next == r->n) {
		step_abreast(p, r);
		return;
	}
	uint32_t axis = r->axes[r->next];
	hoist_for_all(s, s->e.k->stage.data[r->stage].value);
	Lx lo, hi;
	generic_bounds(s, axis, &lo, &hi);
	chunks_abreast(p, r, lo, hi);
}

/* Reduces the rows of all vectors of points in one loop (unroll-and-jam), and finishes the
 * results. */
static void reduce_abreast(const Abreast *p, uint32_t stage)
{
	StageRun r[MAX_ABREAST];
	for (uint32_t v = 0; v < p->n; v++)
		r[v] = generic_start(p->g, stage);
	loops_abreast(p, r);
	for (uint32_t v = 0; v < p->n; v++) {
		enter(p, v);
		generic_finish(&r[v]);
		leave(p);
	}
}

static void points_at_once(Generic *g, uint32_t n)
{
	Cpu *s = g->s;
	Abreast p = {.g = g, .n = n, .here = s->e.at[s->e.lanes.axis], .whole = s->e.stage};
	for (uint32_t v = 0; v < n; v++)
		p.value[v] = ARENA_ARRAY(s->e.arena, StageValue, s->e.k->stage.n);
	for (uint32_t i = 0; i < s->e.k->stage.n; i++) {
		StageRole role = generic_role(g, i);
		const StageKind kind = s->e.k->stage.data[i].kind;
		if ((kind == STAGE_REDUCE || kind == STAGE_ARGREDUCE) &&
		    (role == RUN_WHOLE || role == RUN_PART)) {
			reduce_abreast(&p, i);
			continue;
		}
		for (uint32_t v = 0; role != RUN_NOT && v < n; v++) {
			enter(&p, v);
			generic_stage(g, i);
			leave(&p);
		}
	}
}

/* ---- blocks of columns ---- */

/* A vector of columns of a block, and its reduction so far. */
typedef struct {
	Generic *g;
	LMem sums;
	uint32_t rows; /* that are added at once */
	Lx here, column;
	StageRun run;
} Columns;

static void enter_columns(Columns *p, uint32_t stage)
{
	Cpu *s = p->g->s;
	const LType type = {stage_acc(&s->e.k->stage.data[stage]), s->e.lanes.n};
	p->column = lx_var(s->e.f, ls_for(s->e.f, "column", lx_int(s->e.f, 0),
					  lx_int(s->e.f, COLUMN_BLOCK), s->e.lanes.n));
	eval_at(&s->e, s->e.lanes.axis, lx_add(s->e.f, p->here, p->column));
	p->run = generic_start(p->g, stage);
	p->run.value = s->e.k->stage.data[stage].value;
	ls_set(s->e.f, p->run.acc,
	       lx_var(s->e.f, ls_load(s->e.f, "sum", p->sums, p->column, type, (Lx){0})));
}

static void leave_columns(Columns *p)
{
	Cpu *s = p->g->s;
	eval_at(&s->e, s->e.lanes.axis, p->here);
	ls_end(s->e.f);
}

static void add_rows(Columns *p, uint32_t stage, uint32_t axis, uint32_t rows)
{
	Cpu *s = p->g->s;
	Lx row = s->e.at[axis];
	enter_columns(p, stage);
	for (uint32_t k = 0; k < rows; k++) {
		eval_at(&s->e, axis, lx_add(s->e.f, row, lx_int(s->e.f, k)));
		generic_reduce_step(&p->run);
	}
	eval_at(&s->e, axis, row);
	ls_store(s->e.f, p->sums, p->column, lx_var(s->e.f, p->run.acc), (Lx){0});
	leave_columns(p);
}

static void clear_sums(const Columns *p, const Stage *st)
{
	Cpu *s = p->g->s;
	const LType type = {stage_acc(st), s->e.lanes.n};
	Lx column = lx_var(s->e.f, ls_for(s->e.f, "column", lx_int(s->e.f, 0),
					  lx_int(s->e.f, COLUMN_BLOCK), s->e.lanes.n));
	ls_store(s->e.f, p->sums, column, code_identity(&s->code, stage_combine(st), type),
		 (Lx){0});
	ls_end(s->e.f);
}

/* Adds the sums of a chunk, p->sums, to the sums before it. */
static void add_sums(const Columns *p, const Stage *st, LMem sums)
{
	Cpu *s = p->g->s;
	const LType type = {stage_acc(st), s->e.lanes.n};
	Lx column = lx_var(s->e.f, ls_for(s->e.f, "column", lx_int(s->e.f, 0),
					  lx_int(s->e.f, COLUMN_BLOCK), s->e.lanes.n));
	Lx before = lx_var(s->e.f, ls_load(s->e.f, "sum", sums, column, type, (Lx){0}));
	Lx chunk = lx_var(s->e.f, ls_load(s->e.f, "part", p->sums, column, type, (Lx){0}));
	ls_store(s->e.f, sums, column, code_combine(&s->code, stage_combine(st), before, chunk),
		 (Lx){0});
	ls_end(s->e.f);
}

static void block_loops(Columns *p, StageRun *rows);

/* Writes the loop over an axis of the rows in [lo, hi), in chunks for each of the ncut cuts. */
static void block_chunks(Columns *p, StageRun *rows, const SumCut *cut, uint32_t ncut, Lx lo, Lx hi)
{
	Cpu *s = p->g->s;
	const Stage *st = &s->e.k->stage.data[rows->stage];
	const uint32_t axis = rows->axes[rows->next];
	const LMem sums = p->sums;
	if (!ncut) {
		eval_for(&s->e, axis, lo, hi, rows->next + 1 == rows->n ? p->rows : 1);
		rows->next++;
		block_loops(p, rows);
		rows->next--;
		eval_end(&s->e);
		eval_at(&s->e, axis, (Lx){0});
		return;
	}
	p->sums = ls_local(s->e.f, "part", stage_acc(st), COLUMN_BLOCK);
	sum_chunks(&s->code, cut->rounds, &lo, &hi);
	clear_sums(p, st);
	block_chunks(p, rows, cut + 1, ncut - 1, lo, hi);
	add_sums(p, st, sums);
	ls_end(s->e.f);
	p->sums = sums;
}

static void block_loops(Columns *p, StageRun *rows)
{
	Cpu *s = p->g->s;
	if (rows->next == rows->n) {
		add_rows(p, rows->stage, rows->axes[rows->n - 1], p->rows);
		return;
	}
	const uint32_t axis = rows->axes[rows->next];
	hoist_for_all(s, s->e.k->stage.data[rows->stage].value);
	const SumCut *cut = NULL;
	const uint32_t ncut = sum_cuts(&rows->sums, rows->next, &cut);
	block_chunks(p, rows, cut, ncut, cpu_start(s, axis), cpu_limit(s, axis));
}

static void reduce_block(Columns *p, uint32_t stage)
{
	Cpu *s = p->g->s;
	StageRun rows = generic_start(p->g, stage);
	const uint32_t last = rows.axes[rows.n - 1];
	clear_sums(p, &s->e.k->stage.data[stage]);
	p->rows = last != p->g->phase->grid.cut &&
				  sym_divides(s->e.syms, ROWS_AT_ONCE, s->e.nest->extent[last])
			  ? ROWS_AT_ONCE
			  : 1;
	block_loops(p, &rows);
}

static void run_block(Generic *g, uint32_t stage, LMem sums)
{
	Cpu *s = g->s;
	Columns p = {.g = g, .sums = sums, .here = s->e.at[s->e.lanes.axis]};
	StageValue *whole = s->e.stage;
	reduce_block(&p, stage);
	eval_stages(&s->e, ARENA_ARRAY(s->e.arena, StageValue, s->e.k->stage.n));
	enter_columns(&p, stage);
	generic_finish(&p.run);
	for (uint32_t i = 0; i < s->e.k->stage.n; i++)
		if (i != stage && generic_role(g, i) != RUN_NOT)
			generic_stage(g, i);
	leave_columns(&p);
	eval_stages(&s->e, whole);
}

static Lx run_blocks(Generic *g, uint32_t stage, Lx lo, Lx hi)
{
	Cpu *s = g->s;
	const StageRole role = generic_role(g, stage);
	if (role != RUN_WHOLE && role != RUN_PART)
		return lo;
	LMem sums = ls_local(s->e.f, "sums", stage_acc(&s->e.k->stage.data[stage]), COLUMN_BLOCK);
	Lx rest = lx_mod(s->e.f, lx_sub(s->e.f, hi, lo), lx_int(s->e.f, COLUMN_BLOCK));
	Lx end = eval_let(&s->e, "blocks", lx_sub(s->e.f, hi, rest));
	eval_for(&s->e, s->e.lanes.axis, lo, end, COLUMN_BLOCK);
	run_block(g, stage, sums);
	eval_end(&s->e);
	return end;
}

Lx abreast_run(Generic *g, Lx lo, Lx hi)
{
	Cpu *s = g->s;
	uint32_t axis = s->e.lanes.axis, n = g->phase->abreast, blocked = g->p->blocked;
	if (blocked != NO_STAGE)
		lo = run_blocks(g, blocked, lo, hi);
	if (n == 1)
		return lo;
	int64_t step = (int64_t)n * s->e.lanes.n;
	Lx rest = lx_mod(s->e.f, lx_sub(s->e.f, hi, lo), lx_int(s->e.f, step));
	Lx end = eval_let(&s->e, "whole", lx_sub(s->e.f, hi, rest));
	eval_for(&s->e, axis, lo, end, step);
	points_at_once(g, n);
	eval_end(&s->e);
	return end;
}

/* ---- running rows ---- */

/* Combines the running rows of n neighbouring points of an axis, from the current one on, in one
 * loop. */
static void run_together(Generic *g, uint32_t axis, uint32_t n)
{
	Cpu *s = g->s;
	const Stage *st = &s->e.k->stage.data[0];
	const uint32_t along = st->red[0];
	const Lx here = s->e.at[axis];
	StageRun r[MAX_ABREAST];
	for (uint32_t v = 0; v < n; v++)
		r[v] = generic_start(g, 0);
	eval_hoist(&s->e, st->value, generic_known_axes(s) & ~(UINT64_C(1) << axis));
	generic_open_row(s, st, along, cpu_start(s, along), cpu_limit(s, along));
	for (uint32_t v = 0; v < n; v++) {
		eval_at(&s->e, axis, lx_add(s->e.f, here, lx_int(s->e.f, v)));
		generic_running_step(&r[v]);
	}
	eval_at(&s->e, axis, here);
	eval_end(&s->e);
	eval_at(&s->e, along, (Lx){0});
}

Lx abreast_run_rows(Generic *g, uint32_t axis, Lx lo, Lx hi)
{
	Cpu *s = g->s;
	const uint32_t n = g->phase->abreast;
	Lx rest = lx_mod(s->e.f, lx_sub(s->e.f, hi, lo), lx_int(s->e.f, n));
	Lx end = eval_let(&s->e, "whole", lx_sub(s->e.f, hi, rest));
	eval_for(&s->e, axis, lo, end, n);
	run_together(g, axis, n);
	eval_end(&s->e);
	eval_at(&s->e, axis, (Lx){0});
	return end;
}
