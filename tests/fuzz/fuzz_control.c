/* Random branches and loops on data. What decides is an input, so that it is exact. */
#include <math.h>

#include "fuzz.h"

static bool fits(const Fuzz *f, const Value *x)
{
	return fuzz_dtype(f, *x) == DT_f32 && x->mag <= 2 && x->err < 1e-3;
}

/* A graph of its own with inputs like these; their values are its pool. */
static Graph *start_body(Fuzz *f, Fuzz *in, const Value *x, uint32_t n)
{
	Graph *g = graph_new(f->ir, "body");
	*in = (Fuzz){.g = g,
		     .ir = f->ir,
		     .b = {.g = g},
		     .rng = f->rng,
		     .prefix = "b",
		     .is_body = true,
		     .header = f->header,
		     .seed = f->seed,
		     .size = {f->size[0], f->size[1], f->size[2]}};
	for (uint32_t k = 0; k < n; k++) {
		Value v = x[k];
		v.n = graph_add_input(g, "x", INPUT_USER, node_type_id(f->g, x[k].n));
		array_push(f->ir->ctx->arena, &in->pool, v);
	}
	return g;
}

static void end_body(Fuzz *f, Fuzz *in)
{
	graph_dce(in->g);
	f->rng = in->rng;
	f->seed = in->seed;
}

/* ---- cond ---- */

/* The largest element along the first dimension, for all of them: more than an element-wise
 * body. */
static Node largest_of_rows(Fuzz *f, Value x)
{
	uint32_t rank = fuzz_rank(f, x), map[MAX_RANK];
	const Type *t = node_type(f->g, x.n);
	Sym zero = sym_int(f->ir->syms, 0);
	Attr a[] = {attr_none(), attr_str(f->ir, "max"), attr_ints(&zero, 1), attr_dtype(DT_f32)};
	Node m = fuzz_node(f, OP_reduce, &x.n, 1, a, 4);
	for (uint32_t k = 0; k < rank; k++)
		map[k] = k + 1;
	return m.i ? b_broadcast_in_dim(&f->b, m, rank, t->dim, map) : m;
}

/* A function of x, bounded like x; *err: what rounding may change. */
static Graph *branch(Fuzz *f, Value x, double *err)
{
	Fuzz in;
	Graph *g = start_body(f, &in, &x, 1);
	Value last = in.pool.data[0], own = last;
	for (uint32_t k = 0, n = fuzz_below(f, 4); k < n; k++)
		fuzz_scalar_steps[fuzz_below(&in, 8)].step(&in);
	if (fuzz_dtype(&in, in.pool.data[in.pool.n - 1]) == DT_f32)
		last = in.pool.data[in.pool.n - 1];
	Node y = b_un(&in.b, OP_tanh, last.n);
	if (fuzz_rank(f, x) && fuzz_chance(&in, 60))
		y = b_bin(&in.b, OP_maximum, y, largest_of_rows(&in, own));
	if (!y.i)
		return NULL;
	graph_add_output(g, "y", y, -1);
	*err = fmax(*err, last.err + x.err + 1e-5);
	end_body(f, &in);
	return g;
}

static bool step_cond(Fuzz *f)
{
	Value x;
	double err = 0;
	if (!fuzz_pick(f, fits, &x) || f->is_body)
		return false;
	Value p = fuzz_input(f, DT_bool, 0, NULL);
	Graph *yes = branch(f, x, &err), *no = yes ? branch(f, x, &err) : NULL;
	if (!no)
		return false;
	Attr a[] = {attr_none(), attr_int(f->ir, 1), attr_graph(yes), attr_graph(no)};
	Node c = fuzz_node(f, OP_cond, (Node[]){p.n, x.n}, 2, a, 4);
	return c.i && fuzz_push(f, (Value){b_get(&f->b, c, 0), -100, x.mag > 0 ? x.mag : 0, err});
}

/* ---- while ---- */

/* One more round while i is positive. */
static Graph *test(Fuzz *f, const Value *x)
{
	Fuzz in;
	Graph *g = start_body(f, &in, x, 3);
	Node i = in.pool.data[0].n;
	graph_add_output(g, "more",
			 b_bin(&in.b, OP_gt, i, fuzz_scalar(&in, DT_i64, 0, in.pool.data[0]).n),
			 -1);
	return g;
}

/* i - 1 and tanh(c / 2 + x), which keeps errors bounded. */
static Graph *round_of(Fuzz *f, const Value *x)
{
	Fuzz in;
	Graph *g = start_body(f, &in, x, 3);
	const Value *v = in.pool.data;
	Node next = b_un(&in.b, OP_tanh,
			 b_bin(&in.b, OP_add, b_bin_scalar(&in.b, OP_mul, v[1].n, 0.5), v[2].n));
	graph_add_output(g, "i", b_bin_scalar(&in.b, OP_sub, v[0].n, 1), -1);
	graph_add_output(g, "c", next, -1);
	return g;
}

static bool step_while(Fuzz *f)
{
	Value x[3];
	if (!fuzz_pick(f, fits, &x[2]) || f->is_body)
		return false;
	x[0] = fuzz_index(f, 0, NULL, -1, 4);
	x[1] = x[2];
	x[1].n = b_un(&f->b, OP_tanh, x[2].n);
	Attr a[] = {attr_int(f->ir, 2), attr_int(f->ir, 1), attr_graph(test(f, x)),
		    attr_graph(round_of(f, x)), attr_int(f->ir, 4)};
	Node w = fuzz_node(f, OP_while, (Node[]){x[0].n, x[1].n, x[2].n}, 3, a, 5);
	if (!w.i)
		return false;
	bool count = fuzz_push(f, (Value){b_get(&f->b, w, 0), 0, 3, 0});
	return fuzz_push(f, (Value){b_get(&f->b, w, 1), -100, 0, 2 * x[2].err + 2e-5}) && count;
}

const FuzzChoice fuzz_control_steps[] = {{step_cond, 2}, {step_while, 1}, {NULL, 0}};
