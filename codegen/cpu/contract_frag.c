/* The steps of a tile whose micro-kernel works on fragments (matrix registers, as of AMX): two rows
 * of fragments of a times two of b, or fewer. Whole steps of b come from its panels; a is read in
 * place (Runs), or its rows pass through a local array, which all of a tile have even where the
 * result has no such row. Steps behind the last whole one pass through local arrays with zeros
 * behind them, of a and of b, so that nothing else in memory matters. */
#include "codegen/cpu/contract.h"

static Lx int_of(ContractCode *c, int64_t v)
{
	return lx_int(c->s->e.f, v);
}

/* Groups in a row of a fragment of a. */
static uint32_t groups_of(const ContractCode *c)
{
	return c->p->axes.step;
}

/* Returns the elements of a row of a in one step of k. */
static uint32_t step_of(const ContractCode *c)
{
	return c->p->axes.step * c->p->axes.row->group;
}

static LMem as(LMem m, DType d)
{
	m.dtype = d;
	return m;
}

static FragOp operation_of(const MicroKernel *row)
{
	FragOp op = 0;
	while (op + 1 < FRAG_OPS && (frag_row(op)->a != row->a || frag_row(op)->b != row->b ||
				     frag_row(op)->acc != row->acc))
		op++;
	return op;
}

/* Returns the rows of a fragment. The last fragment of a tile may have fewer. */
static uint32_t rows_of(const ContractCode *c)
{
	return c->p->a.runs.used ? c->p->a.runs.rows : c->p->axes.row->rows;
}

void contract_declare_frags(ContractCode *c)
{
	LoopFn *f = c->s->e.f;
	ContractFrags *g = &c->frags;
	const MicroKernel *row = c->p->axes.row;
	const uint32_t mr = c->p->tile.mr, nv = c->p->tile.nv, most = rows_of(c);
	g->op = operation_of(row);
	g->nrow = (mr + most - 1) / most;
	loop_enter(f);
	for (uint32_t i = 0; i < g->nrow; i++) {
		const uint32_t left = mr - i * most, rows = left < most ? left : most;
		g->acc[i] = ls_frag(f, "acc", row->acc, rows, row->cols, nv);
		g->a[i] = ls_frag(f, "a", row->a, rows, step_of(c), 1);
	}
	g->b = ls_frag(f, "b", row->b, groups_of(c), (uint32_t)row->cols * row->group, nv);
	ls_end(f);
	g->left = ls_local(f, "left", DT_u32, (uint64_t)mr * groups_of(c));
	g->right = ls_local(f, "right", DT_u32, (uint64_t)nv * groups_of(c) * row->cols);
	g->tile = ls_local(f, "tile", row->acc, (uint64_t)mr * nv * row->cols);
}

void contract_zero_frags(ContractCode *c, uint32_t nv)
{
	for (uint32_t i = 0; i < c->frags.nrow; i++)
		for (uint32_t j = 0; j < nv; j++)
			ls_frag_zero(c->s->e.f, lfrag(c->frags.acc[i], j));
}

/* ---- operand a ---- */

static LMem a_memory(ContractCode *c)
{
	return eval_load_memory(&c->s->e, c->p->a.load);
}

/* Copies the groups of a row of a from `offset` on to c->frags.left at `at`. left: the steps that
 * there are, fewer than a fragment has; none: all of a fragment's. */
static void copy_row(ContractCode *c, Lx offset, Lx at, Lx left)
{
	LoopFn *f = c->s->e.f;
	const int64_t group = c->p->axes.row->group;
	const LType u32 = {DT_u32, c->p->axes.row->k / (uint32_t)group};
	if (!left.i) { /* steps that some are left behind are as long as a fragment allows */
		Lx all = groups_of(c) == u32.lanes ? (Lx){0}
						   : lx_mask(f, int_of(c, groups_of(c)), u32.lanes);
		ls_store(f, c->frags.left, at,
			 lx_var(f, ls_load(f, "row", a_memory(c), offset, u32, all)), all);
		return;
	}
	if (c->p->a.turned) /* panels have whole groups */
		left = lx_add(f, left, int_of(c, group - 1));
	Lx whole = lx_div(f, left, int_of(c, group)), rest = lx_mod(f, left, int_of(c, group));
	Lx there = lx_mask(f, whole, u32.lanes);
	ls_store(f, c->frags.left, at,
		 lx_var(f, ls_load(f, "row", a_memory(c), offset, u32, there)), (Lx){0});
	if (c->p->a.turned)
		return;
	ls_if(f, lx_cmp(f, SC_gt, rest, int_of(c, 0)));
	Lx last = contract_load_a(c, lx_add(f, offset, lx_mul(f, whole, int_of(c, group))), rest);
	ls_store(f, c->frags.left, lx_add(f, at, whole), last, (Lx){0});
	ls_end(f);
}

/* Copies the rows of the current step of k to c->frags.left. left: as for copy_row. */
static void copy_rows(ContractCode *c, Lx step, Lx left)
{
	LoopFn *f = c->s->e.f;
	const Runs *r = &c->p->a.runs;
	const uint32_t most = rows_of(c), rows = c->p->tile.mr < most ? c->p->tile.mr : most;
	if (!r->used) {
		Lx i = lx_var(f, ls_for(f, "i", int_of(c, 0), int_of(c, c->p->tile.mr), 1));
		copy_row(c, lx_add(f, contract_a_row(c, i), step),
			 lx_mul(f, i, int_of(c, groups_of(c))), left);
		ls_end(f);
		return;
	}
	for (uint32_t k = 0; k < c->frags.nrow; k++) {
		Lx i = lx_var(f, ls_for(f, "i", int_of(c, 0), int_of(c, rows), 1));
		Lx offset =
			lx_add(f, c->frags.base[k], lx_mul(f, i, eval_size(&c->s->e, r->distance)));
		Lx at = lx_mul(f, lx_add(f, i, int_of(c, (int64_t)k * rows)),
			       int_of(c, groups_of(c)));
		copy_row(c, lx_add(f, offset, step), at, left);
		ls_end(f);
	}
}

/* Loads fragment k of a, in place or from c->frags.left. */
static void load_a(ContractCode *c, uint32_t k, bool in_place)
{
	LoopFn *f = c->s->e.f;
	const ContractFrags *g = &c->frags;
	if (in_place) {
		Lx distance = eval_size(&c->s->e, c->p->a.runs.distance);
		Lx at = lx_add(f, g->base[k], contract_step_offset(c, c->p->a.load));
		if (c->p->a.turned) { /* of groups */
			Lx group = int_of(c, c->p->axes.row->group);
			at = lx_mul(f, at, group);
			distance = lx_mul(f, distance, group);
		}
		ls_frag_load(f, lfrag(g->a[k], 0), as(a_memory(c), c->p->axes.row->a), at,
			     distance);
	} else {
		ls_frag_load(f, lfrag(g->a[k], 0), as(g->left, c->p->axes.row->a),
			     int_of(c, (int64_t)k * rows_of(c) * step_of(c)),
			     int_of(c, step_of(c)));
	}
}

/* ---- operand b ---- */

/* Copies the last `groups` groups of b to c->frags.right, and zeros behind them. */
static void copy_b(ContractCode *c, uint32_t nv, Lx panel, Lx groups)
{
	Cpu *s = c->s;
	LoopFn *f = s->e.f;
	const uint32_t axis = c->p->axes.k[c->p->axes.nk - 1];
	const LType u32 = {DT_u32, c->p->axes.row->cols};
	Lx first = s->e.at[axis],
	   k = lx_var(f, ls_for(f, "k", int_of(c, 0), int_of(c, groups_of(c)), 1));
	for (uint32_t j = 0; j < nv; j++) {
		Lx at = lx_mul(f, lx_add(f, int_of(c, (int64_t)j * groups_of(c)), k),
			       int_of(c, u32.lanes));
		ls_if(f, lx_cmp(f, SC_lt, k, groups));
		eval_at(&s->e, axis, lx_add(f, first, k));
		Lv v = ls_load(f, "b", contract_b_memory(c), contract_b_offset(c, j, panel), u32,
			       (Lx){0});
		ls_store(f, c->frags.right, at, lx_var(f, v), (Lx){0});
		eval_at(&s->e, axis, first);
		ls_else(f);
		ls_store(f, c->frags.right, at, lx_int_of(f, u32, 0), (Lx){0});
		ls_end(f);
	}
	ls_end(f);
}

/* Loads fragment j of b: from its panels, or, of the last steps, from c->frags.right. Panels that
 * no tile reads again soon bypass the first cache, which holds the rows of a. */
static void load_b(ContractCode *c, uint32_t j, Lx panel, bool last)
{
	LoopFn *f = c->s->e.f;
	const MicroKernel *row = c->p->axes.row;
	const bool bytes = c->p->b.bytes;
	LMem m = last ? c->frags.right : bytes ? as(c->local_b, DT_u32) : contract_b_memory(c);
	Lx offset = last    ? int_of(c, (int64_t)j * groups_of(c) * row->cols)
		    : bytes ? contract_place_of_bytes(c, j)
			    : contract_b_offset(c, j, panel);
	if (m.dtype == DT_u32) /* of groups */
		offset = lx_mul(f, offset, int_of(c, row->group));
	const bool passing = c->p->columns.turn && !last;
	(passing ? ls_frag_load_passing : ls_frag_load)(f, lfrag(c->frags.b, j), as(m, row->b),
							offset,
							int_of(c, (int64_t)row->cols * row->group));
}

/* ---- steps ---- */

/* Adds the products of the current step of k. Operations stand right behind the loads of their
 * operands, so that both units are busy. left: the last steps, fewer than a fragment has; none: all
 * of a fragment's. */
static void add_step(ContractCode *c, uint32_t nv, Lx panel, Lx left)
{
	LoopFn *f = c->s->e.f;
	const ContractFrags *g = &c->frags;
	const bool last = left.i, in_place = c->p->a.runs.used && !last;
	const int64_t group = c->p->axes.row->group;
	if (!in_place)
		copy_rows(c, contract_step_offset(c, c->p->a.load), left);
	if (last)
		copy_b(c, nv, panel,
		       lx_div(f, lx_add(f, left, int_of(c, group - 1)), int_of(c, group)));
	for (uint32_t i = 0; i < g->nrow; i++) {
		load_a(c, i, in_place);
		for (uint32_t j = 0; j < nv; j++) {
			if (!i)
				load_b(c, j, panel, last);
			ls_frag_dot(f, g->op, lfrag(g->acc[i], j), lfrag(g->a[i], 0),
				    lfrag(g->b, j));
		}
	}
}

void contract_frag_steps(ContractCode *c, const TileCode *how, Lx panel, Lx next)
{
	Cpu *s = c->s;
	LoopFn *f = s->e.f;
	const MicroKernel *row = c->p->axes.row;
	const uint32_t axis = c->p->axes.k[c->p->axes.nk - 1];
	const bool tail = contract_has_tail(s->e.nest, &c->p->axes);
	/* without a tail the axis may have been merged with others */
	const Sym extent =
		tail ? s->e.nest->extent[c->p->axes.grouped]
		     : sym_mul(s->e.syms, s->e.nest->extent[axis], sym_int(s->e.syms, row->group));
	Lx steps = eval_size(&s->e, extent), whole = lx_div(f, steps, int_of(c, step_of(c)));
	Lx groups = eval_let(&s->e, "whole", lx_mul(f, whole, int_of(c, groups_of(c))));
	eval_for(&s->e, axis, int_of(c, 0), groups, groups_of(c));
	if (how->ahead)
		contract_prefetch(c, next, how->ahead, how->unroll);
	add_step(c, how->nv, panel, (Lx){0});
	if (c->frags.late.used)
		contract_late_rows(c, how);
	eval_end(&s->e);
	if (sym_divides(s->e.syms, step_of(c), extent))
		return;
	Lx left = eval_let(&s->e, "left", lx_mod(f, steps, int_of(c, step_of(c))));
	ls_if(f, lx_cmp(f, SC_gt, left, int_of(c, 0)));
	eval_at(&s->e, axis, groups);
	add_step(c, how->nv, panel, left);
	eval_at(&s->e, axis, (Lx){0});
	ls_end(f);
}

void contract_store_frags(ContractCode *c, uint32_t nv)
{
	const MicroKernel *row = c->p->axes.row;
	const int64_t width = (int64_t)nv * row->cols;
	for (uint32_t i = 0; i < c->frags.nrow; i++)
		for (uint32_t j = 0; j < nv; j++)
			ls_frag_store(c->s->e.f, c->frags.tile,
				      int_of(c, i * rows_of(c) * width + (int64_t)j * row->cols),
				      int_of(c, width), lfrag(c->frags.acc[i], j));
}

void contract_add_block(ContractCode *c, const TileCode *how, Lx panel, Lx next)
{
	Cpu *s = c->s;
	const ContractAxes *x = &c->p->axes;
	for (uint32_t i = x->nblock; i < x->nk; i++)
		eval_at(&s->e, x->k[i], int_of(c, 0));
	if (how->ahead)
		contract_prefetch(c, next, how->ahead, how->unroll);
	contract_zero_frags(c, how->nv);
	add_step(c, how->nv, panel, (Lx){0});
	for (uint32_t i = x->nblock; i < x->nk; i++)
		eval_at(&s->e, x->k[i], (Lx){0});
}
