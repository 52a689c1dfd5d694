/* Factors with partial pivoting, in Crout's form, in place and on two levels: columns k0..k1 of a
 * block below k0, less the product of what is known; within them the same, panel by panel; of a
 * panel, in a buffer of its own, column by column with pivots. Then rows are exchanged as the
 * pivots say, and the rows of U follow that stand right of the panel, and right of the block. */
#include "lower/factor/factor.h"
#include "lower/factor/priv.h"
#include "ops/prim/factor.h"

enum { LU_BLOCK = 64, LU_PANEL = 16 };

/* Returns the most columns of a panel. Small matrices of many members are one panel, whose rows are
 * exchanged in vectors of members. */
static int64_t panel_columns(const Factor *f)
{
	return f->inside ? LU_BLOCK : LU_PANEL;
}

/* Pairs of places are those before and after a round. */
typedef struct {
	Factor f;
	Sym least;           /* pivots */
	NodePlace result, pivots, order, info;
	NodePlace block, rows; /* columns and rows k0..k1 of a block less products, for the
	                          result */
	NodePlace panel[2];  /* columns k0..k1 of the rows from k0 on; column by column, for vectors
	                        of rows */
	NodePlace swaps[2];  /* for these rows, where they were before the panel */
	NodePlace at, best;  /* the pivot's row of the panel: its number, and the row */
	NodePlace factor;    /* a column of the panel over its pivot, rows exchanged */
	NodePlace moved, moved_order; /* rows that change places */
} Lu;

/* Columns of a block, or a panel in it, which reaches to the end of the rows; `known` columns from
 * `from` on are the block's before the panel, or all columns before the block. */
typedef struct {
	Panel p;
	Sym from, known;
} LuPart;

static Parts transposed(Build *b, Parts x)
{
	return (Parts){
		b_transpose(b, x.re, -1, -2), x.im.i ? b_transpose(b, x.im, -1, -2) : x.im, {0}};
}

/* Takes a region of a panel, which is stored column by column. */
static Parts take_panel(Body *y, NodePlace p, Sym row, Sym column, Sym rows, Sym columns)
{
	return transposed(&y->b, body_take_matrix(y, p, column, row, columns, rows));
}

static void put_panel(Body *y, Parts x, NodePlace p)
{
	Sym zero = factor_int(y->f, 0);
	body_put_matrix(y, transposed(&y->b, x), p, zero, zero);
}

/* Takes a region of the result, less the product of the known columns to the left of it and the
 * known rows above it. */
static Parts lu_rest(Body *y, const Lu *v, const LuPart *k, Sym row, Sym column, Sym rows,
		     Sym columns)
{
	Build *b = &y->b;
	Parts all = body_take_matrix(y, v->result, row, column, rows, columns);
	if (sym_is(y->f->syms, k->known, 0))
		return all;
	Parts left = body_take_matrix(y, v->result, row, k->from, rows, k->known);
	Parts above = body_take_matrix(y, v->result, k->from, column, k->known, columns);
	return mat_sub(b, all, mat_times(b, left, above));
}

/* Subtracts from a block's columns the product of what is known before the block. The difference
 * goes through a buffer, since a product, which reads more than one element for each, must not
 * write where it reads. */
static void lu_block(const Lu *v, StepList *list, const LuPart *k)
{
	const Factor *f = &v->f;
	Sym zero = factor_int(f, 0), first = k->p.first, rows = sym_sub(f->syms, f->rows, first);
	if (sym_is(f->syms, k->known, 0))
		return;
	Body y = body_new(f, "block");
	body_put_matrix(&y, lu_rest(&y, v, k, first, first, rows, k->p.width), v->block, zero,
			zero);
	body_lower(&y, list);
	Body back = body_new(f, "back");
	body_put_matrix(&back, body_take_matrix(&back, v->block, zero, zero, rows, k->p.width),
			v->result, first, first);
	body_lower(&back, list);
}

/* Starts a panel: its columns less the product of what is known before it in the block, and no
 * exchange of rows yet. */
static void lu_panel(const Lu *v, StepList *list, const LuPart *k)
{
	const Factor *f = &v->f;
	const Panel *p = &k->p;
	Body y = body_new(f, "panel");
	Sym rows = sym_sub(f->syms, f->rows, p->first), dim[MAX_RANK];
	put_panel(&y, lu_rest(&y, v, k, p->first, p->first, rows, p->width), v->panel[0]);
	uint32_t rank = factor_shape(f, &rows, 1, false, dim);
	body_put(&y, b_broadcast(&y.b, b_iota(&y.b, DT_i64, rows), rank, dim), v->swaps[0]);
	body_lower(&y, list);
}

static Node pivot_size(Build *b, Parts x)
{
	Node size = b_un(b, OP_abs, x.re);
	return x.im.i ? b_bin(b, OP_add, size, b_un(b, OP_abs, x.im)) : size;
}

/* Returns one row of each member's matrix, whose number is row[]. */
static Parts row_at(Build *b, const Factor *f, Parts x, Node row)
{
	Node rows = b_unsqueeze(b, row, -1);
	return mat_of(b, factor_rows(b, mat_node(b, x), rows, f->pairs), f->pairs);
}

/* Finds the pivot of column u of the panel. The pivot's row is stored, because each member has
 * another one, which a kernel would have to gather. */
static void lu_pivot(const Lu *v, StepList *list, const Panel *p, Sym u)
{
	const Factor *f = &v->f;
	Body y = body_new(f, "pivot");
	Build *b = &y.b;
	Sym zero = factor_int(f, 0), rows = sym_sub(f->syms, f->rows, p->first),
	    c = sym_add(f->syms, p->first, u);
	Parts x = take_panel(&y, v->panel[0], zero, zero, rows, p->width);
	Parts below =
		take_panel(&y, v->panel[0], u, u, sym_sub(f->syms, rows, u), factor_int(f, 1));
	Node size = b_squeeze(b, pivot_size(b, below), -1);
	Attr attr[] = {attr_none(), attr_str(f->s->ir, "max"), attr_int(f->s->ir, f->lead)};
	Node at = b_bin(b, OP_add, b_node(b, OP_arg_reduce, &size, 1, attr, 3), b_from_size(b, u));
	Node number_of = b_convert(
		b, b_bin(b, OP_add, at, b_from_size(b, sym_addi(f->syms, p->first, 1))), DT_i32);
	body_put(&y, b_unsqueeze(b, number_of, -1), factor_part(f, v->pivots, &c, 1));
	body_put(&y, b_unsqueeze(b, at, -1), v->at);
	body_put_matrix(&y, row_at(b, f, x, at), v->best, zero, zero);
	body_lower(&y, list);
}

/* What is the same in the steps of column u. */
typedef struct {
	Sym rows;
	Parts x, mine, best; /* the panel, and its row u and that of the pivot */
	Node at, i, is_best; /* the pivot's row; rows, and whether they are it */
} LuColumn;

static LuColumn lu_take_column(Body *y, const Lu *v, const Panel *p, Sym u)
{
	const Factor *f = &v->f;
	Build *b = &y->b;
	Sym zero = factor_int(f, 0), one = factor_int(f, 1);
	LuColumn c = {.rows = sym_sub(f->syms, f->rows, p->first)};
	c.x = take_panel(y, v->panel[0], zero, zero, c.rows, p->width);
	c.mine = take_panel(y, v->panel[0], u, zero, one, p->width);
	c.at = b_squeeze(b, body_take(y, v->at, DT_i64, &one, 1, false), -1);
	c.best = body_take_matrix(y, v->best, zero, zero, one, p->width);
	c.i = b_iota(b, DT_i64, c.rows);
	c.is_best = b_bin(b, OP_eq, c.i, b_unsqueeze(b, c.at, -1));
	return c;
}

/* Computes column u over its pivot, as after the exchange of rows. The column is stored, because
 * the update reads one element for a whole row. */
static void lu_factor(const Lu *v, StepList *list, const Panel *p, Sym u)
{
	Body y = body_new(&v->f, "factor");
	Build *b = &y.b;
	const LuColumn c = lu_take_column(&y, v, p, u);
	Sym zero = factor_int(&v->f, 0), end = sym_addi(v->f.syms, u, 1);
	Parts own = mat_columns(b, c.x, u, end), mine = mat_columns(b, c.mine, u, end);
	Parts column = mat_select(b, b_unsqueeze(b, c.is_best, -1), mine, own);
	Parts pivot = mat_columns(b, c.best, u, end);
	Node none = b_bin(b, OP_eq, pivot.re, aten_like(b, pivot.re, 0));
	if (v->f.pairs)
		none = b_bin(b, OP_bit_and, none,
			     b_bin(b, OP_eq, pivot.im, aten_like(b, pivot.im, 0)));
	body_put_matrix(&y,
			mat_divide(b, column, mat_select(b, none, mat_number(b, pivot, 1), pivot)),
			v->factor, zero, zero);
	body_lower(&y, list);
}

/* Updates the panel by column u: exchanges row u with the pivot's row, and subtracts multiples of
 * the pivot's row from the rows below. */
static void lu_column(const Lu *v, StepList *list, const Panel *p, Sym u)
{
	const Factor *f = &v->f;
	Body y = body_new(f, "column");
	Build *b = &y.b;
	Sym zero = factor_int(f, 0);
	const LuColumn c = lu_take_column(&y, v, p, u);
	Parts factor = body_take_matrix(&y, v->factor, zero, zero, c.rows, factor_int(f, 1));
	Node is_mine = b_bin(b, OP_eq, c.i, b_from_size(b, u)), j = b_iota(b, DT_i64, p->width);
	Parts swapped = mat_select(b, b_unsqueeze(b, c.is_best, -1), c.mine, c.x);
	swapped = mat_select(b, b_unsqueeze(b, is_mine, -1), c.best, swapped);
	Parts rest = mat_sub(b, swapped, mat_multiply(b, factor, c.best));
	Node later = b_bin(b, OP_gt, j, b_from_size(b, u)),
	     same = b_bin(b, OP_eq, j, b_from_size(b, u));
	Node lower = b_unsqueeze(b, b_bin(b, OP_gt, c.i, b_from_size(b, u)), -1);
	Parts next = mat_select(b, later, rest, mat_select(b, same, factor, swapped));
	put_panel(&y, mat_select(b, lower, next, swapped), v->panel[1]);
	body_lower(&y, list);
}

/* Exchanges row u and the pivot's row in the list of where rows were before the panel. This is no
 * part of lu_column's graph, in which both would read from memory which row is the pivot's. */
static void lu_swap(const Lu *v, StepList *list, const Panel *p, Sym u)
{
	Body y = body_new(&v->f, "swap");
	Build *b = &y.b;
	const LuColumn c = lu_take_column(&y, v, p, u);
	Node swaps = body_take(&y, v->swaps[0], DT_i64, &c.rows, 1, false);
	Node from = factor_take(b, swaps, b_unsqueeze(b, c.at, -1), v->f.lead);
	Node first = b_slice(b, swaps, -1, u, sym_addi(v->f.syms, u, 1), factor_int(&v->f, 1));
	Node is_mine = b_bin(b, OP_eq, c.i, b_from_size(b, u));
	body_put(&y, b_select(b, is_mine, from, b_select(b, c.is_best, first, swaps)), v->swaps[1]);
	body_lower(&y, list);
}

/* Returns the numbers of the rows that the panel's pivots exchange: rows k0..k1, then the pivots'
 * rows. Some rows are there twice. */
static Node exchanged(Body *y, const Lu *v, const Panel *p)
{
	const Factor *f = y->f;
	Build *b = &y->b;
	Sym dim[MAX_RANK];
	uint32_t rank = factor_shape(f, &p->width, 1, false, dim);
	Node own = b_broadcast(
		b, b_bin(b, OP_add, b_iota(b, DT_i64, p->width), b_from_size(b, p->first)), rank,
		dim);
	Node pivots =
		body_take(y, factor_part(f, v->pivots, &p->first, 1), DT_i32, &p->width, 1, false);
	Node other = b_bin_scalar(b, OP_sub, b_convert(b, pivots, DT_i64), 1);
	return b_concat(b, (Node[]){own, other}, 2, (int)rank - 1);
}

/* Exchanges rows of the result, in all columns, and in their order. The panel's columns are
 * replaced afterwards: where there are no others, the order is all. */
static void lu_exchange(const Lu *v, StepList *list, const Panel *p)
{
	const Factor *f = &v->f;
	const bool alone = sym_is(f->syms, p->first, 0) && p->end.i == f->columns.i;
	Sym zero = factor_int(f, 0), rows = sym_sub(f->syms, f->rows, p->first),
	    many = sym_muli(f->syms, p->width, 2);
	Body y = body_new(f, "take");
	Build *b = &y.b;
	Node start = b_from_size(b, p->first),
	     swaps = body_take(&y, v->swaps[1], DT_i64, &rows, 1, false);
	Node from =
		b_bin(b, OP_add,
		      factor_take(b, swaps, b_bin(b, OP_sub, exchanged(&y, v, p), start), f->lead),
		      start);
	body_put(&y,
		 factor_take(b, body_take(&y, v->order, DT_i64, &f->rows, 1, false), from, f->lead),
		 v->moved_order);
	if (!alone) {
		Parts x = body_take_matrix(&y, v->result, zero, zero, f->rows, f->columns);
		body_put(&y, factor_rows(b, mat_node(b, x), from, f->pairs), v->moved);
	}
	body_lower(&y, list);

	Body to = body_new(f, "exchange");
	b = &to.b;
	Node rows_now = exchanged(&to, v, p),
	     order = body_take(&to, v->order, DT_i64, &f->rows, 1, false);
	Node moved_order = body_take(&to, v->moved_order, DT_i64, &many, 1, false);
	body_put(&to, factor_place(b, order, rows_now, moved_order, f->lead), v->order);
	if (!alone) {
		Parts x = body_take_matrix(&to, v->result, zero, zero, f->rows, f->columns);
		Parts moved = body_take_matrix(&to, v->moved, zero, zero, many, f->columns);
		Node moved_rows = mat_node(b, moved);
		body_put(&to, factor_place(b, mat_node(b, x), rows_now, moved_rows, f->lead),
			 v->result);
	}
	body_lower(&to, list);
}

/* Stores the panel, columns k0..k1 of L with the part of U above them, in the result. */
static void lu_left(const Lu *v, StepList *list, const Panel *p)
{
	const Factor *f = &v->f;
	Body y = body_new(f, "left");
	Sym zero = factor_int(f, 0), rows = sym_sub(f->syms, f->rows, p->first);
	body_put_matrix(&y, take_panel(&y, v->panel[1], zero, zero, rows, p->width), v->result,
			p->first, p->first);
	body_lower(&y, list);
}

/* Computes the rows of U to the right of a part, up to column `end`. */
static void lu_rows(const Lu *v, StepList *list, const LuPart *k, Sym end)
{
	const Factor *f = &v->f;
	const Panel *p = &k->p;
	Sym columns = sym_sub(f->syms, end, p->end), zero = factor_int(f, 0);
	if (sym_is(f->syms, columns, 0))
		return;
	Body right = body_new(f, "right");
	body_put_matrix(&right, lu_rest(&right, v, k, p->first, p->end, p->width, columns), v->rows,
			zero, zero);
	body_lower(&right, list);
	Body y = body_new(f, "rows");
	Build *b = &y.b;
	Parts l = body_take_matrix(&y, v->result, p->first, p->first, p->width, p->width);
	Parts rest = body_take_matrix(&y, v->rows, zero, zero, p->width, columns);
	Node right_side = mat_node(b, rest);
	Node u = factor_solve(b, mat_node(b, l), right_side,
			      (Triangle){.upper = false, .unit = true}, f->pairs);
	body_put(&y, u, factor_region(f, v->result, p->first, p->end));
	body_lower(&y, list);
}

static void lu_info(const Lu *v, StepList *list)
{
	const Factor *f = &v->f;
	Body y = body_new(f, "info");
	Build *b = &y.b;
	Sym zero = factor_int(f, 0);
	Parts x = body_take_matrix(&y, v->result, zero, zero, v->least, v->least);
	Node d = factor_diagonal(b, x.re, v->least), none = b_bin(b, OP_eq, d, aten_like(b, d, 0));
	if (f->pairs) {
		d = factor_diagonal(b, x.im, v->least);
		none = b_bin(b, OP_bit_and, none, b_bin(b, OP_eq, d, aten_like(b, d, 0)));
	}
	body_put(&y, factor_first_true(b, none), v->info);
	body_lower(&y, list);
}

static void lu_start(const Lu *v, StepList *list)
{
	const Factor *f = &v->f;
	Body y = body_new(f, "order");
	Sym dim[MAX_RANK];
	uint32_t rank = factor_shape(f, &f->rows, 1, false, dim);
	body_put(&y, b_broadcast(&y.b, b_iota(&y.b, DT_i64, f->rows), rank, dim), v->order);
	body_lower(&y, list);
}

/* Adds the rounds over the panels of a block. */
static void lu_panels(const Lu *v, StepList *list, const LuPart *block)
{
	const Factor *f = &v->f;
	const Sym width = block->p.width;
	Rounds panels = rounds_of(f, "s", panel_count(f, width, panel_columns(f)), list);
	const Panel in = panel_at(f, panels.at, width, panel_columns(f));
	const Panel p = {sym_add(f->syms, block->p.first, in.first), in.width,
			 sym_add(f->syms, block->p.first, in.end)};
	const LuPart part = {.p = p, .from = block->p.first, .known = in.first};
	lu_panel(v, panels.body, &part);
	Rounds columns = rounds_of(f, "u", p.width, panels.body);
	rounds_carry(f, &columns, (NodePlace[]){v->panel[0], v->panel[1], v->swaps[0], v->swaps[1]},
		     2);
	lu_pivot(v, columns.body, &p, columns.at);
	lu_factor(v, columns.body, &p, columns.at);
	lu_column(v, columns.body, &p, columns.at);
	lu_swap(v, columns.body, &p, columns.at);
	rounds_end(f, &columns, panels.body);
	lu_exchange(v, panels.body, &p);
	lu_left(v, panels.body, &p);
	lu_rows(v, panels.body, &part, block->p.end);
	rounds_end(f, &panels, list);
}

static void lu_blocks(const Lu *v, StepList *list)
{
	const Factor *f = &v->f;
	Rounds blocks = rounds_of(f, "t", panel_count(f, v->least, LU_BLOCK), list);
	lu_start(v, list);
	if (blocks.none) {
		factor_fill(f, list, v->pivots, DT_i32, &v->least, 1, false);
		return;
	}
	const Panel p = panel_at(f, blocks.at, v->least, LU_BLOCK);
	const LuPart block = {.p = p, .from = factor_int(f, 0), .known = p.first};
	lu_block(v, blocks.body, &block);
	lu_panels(v, blocks.body, &block);
	lu_rows(v, blocks.body, &block, f->columns);
	rounds_end(f, &blocks, list);
}

void lower_lu(Lower *s, Node n)
{
	Lu v = {.f = factor_of(s, n)};
	const Factor *f = &v.f;
	SymTab *syms = f->syms;
	const Sym all[] = {f->rows, f->columns};
	v.least = sym_min(syms, f->rows, f->columns);
	const Sym width = sym_min(syms, factor_int(f, panel_columns(f)), v.least),
		  one = factor_int(f, 1), many = sym_muli(syms, width, 2);
	NodePlace x = factor_operand_inside(f, 0, f->rows, f->columns);
	v.result = factor_result_inside(f, 0, f->dtype, all, 2, f->pairs);
	v.pivots = factor_result_inside(f, 1, DT_i32, &v.least, 1, false);
	v.order = factor_result_inside(f, 2, DT_i64, &f->rows, 1, false);
	v.info = lower_result_place(s, n, 3);
	for (uint32_t k = 0; k < 2; k++) {
		v.swaps[k] = factor_new_place(f, DT_i64, &f->rows, 1, false);
		v.panel[k] = factor_new_matrix(f, width, f->rows);
	}
	v.at = factor_new_place(f, DT_i64, &one, 1, false);
	v.factor = factor_new_matrix(f, f->rows, one);
	v.best = factor_new_matrix(f, one, width);
	v.moved = factor_new_matrix(f, many, f->columns);
	v.moved_order = factor_new_place(f, DT_i64, &many, 1, false);
	v.rows = factor_new_matrix(f, sym_min(syms, factor_int(f, LU_BLOCK), v.least), f->columns);
	v.block = factor_new_matrix(f, f->rows, sym_min(syms, factor_int(f, LU_BLOCK), v.least));
	factor_copy(f, s->steps, x, v.result, f->rows, f->columns);
	lu_blocks(&v, s->steps);
	lu_info(&v, s->steps);
	factor_publish(f, 0, v.result, f->dtype, all, 2, f->pairs);
	factor_publish(f, 1, v.pivots, DT_i32, &v.least, 1, false);
	factor_publish(f, 2, v.order, DT_i64, &f->rows, 1, false);
	lower_publish_result(s, n, 3, &v.info);
}
