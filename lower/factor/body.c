/* What the steps of all factorisations share: places, graphs over places, loops of rounds. */
#include "lower/factor/priv.h"

#include <string.h>

#include "lower/factor/factor.h"
#include "lower/stage.h"

/* Whether the matrices are small, and the members many: then vectors hold members. */
static bool has_many_members(const Factor *f)
{
	enum { SMALL = 48, MANY = 16 };
	int64_t members = 1, rows, columns;
	if (!f->lead || !sym_is_const(f->syms, f->rows, &rows) ||
	    !sym_is_const(f->syms, f->columns, &columns))
		return false;
	for (uint32_t k = 0; k < f->lead; k++)
		members *= sym_hint(f->syms, f->batch[k]);
	return rows <= SMALL && columns <= SMALL && members >= MANY;
}

Factor factor_of(Lower *s, Node n)
{
	Factor f = {.s = s, .n = n, .syms = s->ir->syms, .pairs = node_bool(s->g, n, "pairs")};
	const Type *t = node_type(s->g, node_in(s->g, n, 0));
	f.dtype = t->dtype;
	f.lead = t->n - 2 - f.pairs;
	memcpy(f.batch, t->dim, f.lead * sizeof *f.batch);
	f.rows = t->dim[f.lead];
	f.columns = t->dim[f.lead + 1];
	f.inside = has_many_members(&f);
	return f;
}

Sym factor_int(const Factor *f, int64_t v)
{
	return sym_int(f->syms, v);
}

/* ---- places ---- */

uint32_t factor_shape(const Factor *f, const Sym *extent, uint32_t n, bool pairs, Sym *dim)
{
	memcpy(dim, f->batch, f->lead * sizeof *dim);
	memcpy(dim + f->lead, extent, n * sizeof *dim);
	if (pairs)
		dim[f->lead + n] = factor_int(f, 2);
	return f->lead + n + pairs;
}

/* Writes the shape of a buffer to dim[], and returns the rank: as factor_shape, but with the
 * batches behind if f->inside. */
static uint32_t buffer_shape(const Factor *f, const Sym *extent, uint32_t n, bool pairs, Sym *dim)
{
	Sym all[MAX_RANK];
	uint32_t rank = factor_shape(f, extent, n, pairs, all), behind = rank - f->lead;
	for (uint32_t k = 0; k < rank; k++)
		dim[k] = !f->inside ? all[k] : k < behind ? all[f->lead + k] : all[k - behind];
	return rank;
}

/* Permutes the contents of a buffer, so that its batches come first. */
static Node with_batches_first(Build *b, const Factor *f, Node x)
{
	uint32_t perm[MAX_RANK], rank = node_rank(b->g, x), behind = rank - f->lead;
	for (uint32_t k = 0; k < rank; k++)
		perm[k] = k < f->lead ? behind + k : k - f->lead;
	return f->inside && behind ? b_permute(b, x, perm) : x;
}

/* Permutes a value whose batches come first to the order of a buffer; none stays none. */
static Node as_in_buffer(Build *b, const Factor *f, Node x)
{
	uint32_t perm[MAX_RANK], rank = x.i ? node_rank(b->g, x) : 0, behind = rank - f->lead;
	for (uint32_t k = 0; k < rank; k++)
		perm[k] = k < behind ? f->lead + k : k - behind;
	return x.i && f->inside && behind ? b_permute(b, x, perm) : x;
}

NodePlace factor_new_place(const Factor *f, DType d, const Sym *extent, uint32_t n, bool pairs)
{
	Sym dim[MAX_RANK];
	uint32_t rank = buffer_shape(f, extent, n, pairs, dim);
	BufId buf = lowered_buf(f->s->l, BUF_TEMP, 0, d, rank, dim, graph_name(f->s->g, f->n));
	buf_of(f->s->l, buf)->layout_fixed = f->inside;
	return (NodePlace){.buf = buf};
}

NodePlace factor_new_matrix(const Factor *f, Sym rows, Sym columns)
{
	return factor_new_place(f, f->dtype, (Sym[]){rows, columns}, 2, f->pairs);
}

NodePlace factor_part(const Factor *f, NodePlace p, const Sym *at, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		Sym *off = &p.off[f->inside ? k : f->lead + k];
		*off = off->i ? sym_add(f->syms, *off, at[k]) : at[k];
	}
	return p;
}

NodePlace factor_region(const Factor *f, NodePlace p, Sym row, Sym column)
{
	return factor_part(f, p, (Sym[]){row, column}, 2);
}

/* ---- graphs over places ---- */

Body body_new(const Factor *f, const char *name)
{
	Graph *g = graph_beside(f->s->g, name);
	return (Body){.f = f,
		      .b = {.g = g,
			    .loc = node_data(f->s->g, f->n)->loc,
			    .where = node_near(f->s->g, f->n)}};
}

Node body_take(Body *y, NodePlace p, DType d, const Sym *extent, uint32_t n, bool pairs)
{
	Sym dim[MAX_RANK];
	uint32_t rank = buffer_shape(y->f, extent, n, pairs, dim);
	y->in[y->b.g->input.n] = p;
	Node x = graph_add_input(y->b.g, "", INPUT_USER, ir_type(y->f->s->ir, d, rank, dim));
	return with_batches_first(&y->b, y->f, x);
}

Parts body_take_matrix(Body *y, NodePlace p, Sym row, Sym column, Sym rows, Sym columns)
{
	const Factor *f = y->f;
	Node x = body_take(y, factor_region(f, p, row, column), f->dtype, (Sym[]){rows, columns}, 2,
			   f->pairs);
	return mat_of(&y->b, x, f->pairs);
}

void body_put(Body *y, Node x, NodePlace p)
{
	y->out[y->b.g->output.n] = p;
	x = as_in_buffer(&y->b, y->f, x);
	if (x.i)
		graph_add_output(y->b.g, "", x, -1);
}

void body_put_matrix(Body *y, Parts x, NodePlace p, Sym row, Sym column)
{
	body_put(y, mat_node(&y->b, x), factor_region(y->f, p, row, column));
}

void body_lower(Body *y, StepList *to)
{
	factor_lower_graph(y->f->s, y->b.g, y->in, y->out, to);
}

/* ---- loops ---- */

static StepList *new_list(const Factor *f)
{
	return ARENA_NEW(f->s->arena, StepList);
}

Rounds rounds_of(const Factor *f, const char *name, Sym extent, StepList *list)
{
	Rounds r = {.none = sym_is(f->syms, extent, 0),
		    .loops = !sym_is(f->syms, extent, 1),
		    .at = factor_int(f, 0),
		    .body = list};
	if (!r.loops || r.none)
		return r;
	r.body = new_list(f);
	r.at = sym_axis(f->syms, name, extent);
	/* schedules are chosen for the middle */
	sym_set_hint(f->syms, r.at, sym_hint(f->syms, extent) / 2);
	r.step = (Step){.kind = STEP_LOOP, .var = r.at, .extent = extent, .body = r.body};
	return r;
}

void rounds_carry(const Factor *f, Rounds *r, const NodePlace *pair, uint32_t n)
{
	r->step.ncarry = n;
	r->step.carry = ARENA_ARRAY(f->s->arena, struct StepCarry, n);
	for (uint32_t k = 0; k < n; k++)
		r->step.carry[k] = (struct StepCarry){pair[2 * k].buf, pair[2 * k + 1].buf};
}

void rounds_end(const Factor *f, const Rounds *r, StepList *list)
{
	if (r->loops && !r->none)
		array_push(f->s->arena, &list->step, r->step);
}

Panel panel_at(const Factor *f, Sym t, Sym extent, int64_t most)
{
	Panel p = {.first = sym_muli(f->syms, t, most)};
	p.width = sym_min(f->syms, factor_int(f, most), sym_sub(f->syms, extent, p.first));
	p.end = sym_add(f->syms, p.first, p.width);
	return p;
}

Sym panel_count(const Factor *f, Sym extent, int64_t most)
{
	return sym_ceildiv(f->syms, extent, factor_int(f, most));
}

/* ---- small graphs ---- */

void factor_fill(const Factor *f, StepList *list, NodePlace p, DType d, const Sym *extent,
		 uint32_t n, bool pairs)
{
	Sym dim[MAX_RANK];
	Body y = body_new(f, "zeros");
	uint32_t rank = factor_shape(f, extent, n, pairs, dim);
	body_put(&y, b_zeros(&y.b, ir_type(f->s->ir, d, rank, dim)), p);
	body_lower(&y, list);
}

void factor_copy(const Factor *f, StepList *list, NodePlace from, NodePlace to, Sym rows,
		 Sym columns)
{
	Body y = body_new(f, "copy");
	Sym zero = factor_int(f, 0);
	body_put_matrix(&y, body_take_matrix(&y, from, zero, zero, rows, columns), to, zero, zero);
	body_lower(&y, list);
}

/* Returns the factorisation with buffers as other nodes have them: batches come first. */
static Factor outside_of(const Factor *f)
{
	Factor outside = *f;
	outside.inside = false;
	return outside;
}

/* Copies between places inside and outside; into: to the inside. */
static void move(const Factor *f, NodePlace from, NodePlace to, bool into, DType d,
		 const Sym *extent, uint32_t n, bool pairs)
{
	const Factor outside = outside_of(f);
	Body y = body_new(f, "move");
	y.f = into ? &outside : f;
	Node x = body_take(&y, from, d, extent, n, pairs);
	y.f = into ? f : &outside;
	body_put(&y, x, to);
	y.f = f;
	body_lower(&y, f->s->steps);
}

NodePlace factor_operand_inside(const Factor *f, uint32_t k, Sym rows, Sym columns)
{
	NodePlace p = factor_operand(f->s, f->n, k);
	if (!f->inside)
		return p;
	NodePlace own = factor_new_matrix(f, rows, columns);
	move(f, p, own, true, f->dtype, (Sym[]){rows, columns}, 2, f->pairs);
	return own;
}

NodePlace factor_result_inside(const Factor *f, uint32_t k, DType d, const Sym *extent, uint32_t n,
			       bool pairs)
{
	return f->inside ? factor_new_place(f, d, extent, n, pairs)
			 : lower_result_place(f->s, f->n, k);
}

void factor_publish(const Factor *f, uint32_t k, NodePlace p, DType d, const Sym *extent,
		    uint32_t n, bool pairs)
{
	NodePlace to = p;
	if (f->inside) {
		to = lower_result_place(f->s, f->n, k);
		move(f, p, to, false, d, extent, n, pairs);
	}
	lower_publish_result(f->s, f->n, k, &to);
}

Node factor_first_true(Build *b, Node wrong)
{
	uint32_t last = node_rank(b->g, wrong) - 1;
	Sym n = node_dim(b->g, wrong, last);
	Node k = b_bin_scalar(b, OP_add, b_iota(b, DT_i64, n), 1),
	     never = b_full_int(b, DT_i64, INT64_MAX, 0, NULL);
	Node first = b_reduce(b, REDUCE_MIN, b_select(b, wrong, k, never), 1u << last, DT_none);
	first = b_select(b, b_bin(b, OP_eq, first, never), b_full_int(b, DT_i64, 0, 0, NULL),
			 first);
	return b_convert(b, first, DT_i32);
}

Node factor_diagonal(Build *b, Node x, Sym n)
{
	uint32_t rank = node_rank(b->g, x);
	Node on = b_bin(b, OP_eq, b_unsqueeze(b, b_iota(b, DT_i64, n), -1), b_iota(b, DT_i64, n));
	return b_reduce(b, REDUCE_SUM, b_select(b, on, x, aten_like(b, x, 0)), 1u << (rank - 1),
			DT_none);
}
