/* Many small matrices: one kernel, in which a task has as many matrices as there are lanes in local
 * memory, factorises them side by side, and stores the results (codegen/cpu/factor.c). The same
 * operators of larger matrices, of complex numbers and on GPUs are lu.c, qr.c and triangular.c. */
#include "ir/target/target.h"
#include "lower/factor/factor.h"
#include "lower/factor/priv.h"
#include "lower/trace.h"

enum { LEAST_MEMBERS = 8, MOST_ROWS = 1024 }; /* far more rows or columns than local memory holds */

/* The kernel at hand. */
typedef struct {
	const Factor *f;
	Trace t;
	Sym at[MAX_RANK]; /* variables of the batches, and room for places in the matrix */
	Stage axes;       /* red[]: rows and columns */
} Small;

static FactorKind kind_of(Op op)
{
	switch (op) {
	case OP_lu:
		return FACTOR_LU;
	case OP_geqrf:
		return FACTOR_QR;
	case OP_cholesky:
		return FACTOR_CHOLESKY;
	default:
		return FACTOR_SOLVE;
	}
}

/* Returns the elements of all matrices of a member; INT64_MAX if there are too many for local
 * memory, or their number is not known. */
static int64_t elements_of(const Factor *f)
{
	int64_t rows, columns, right = 0;
	if (!sym_is_const(f->syms, f->rows, &rows) ||
	    !sym_is_const(f->syms, f->columns, &columns) || rows < 2 || columns < 2)
		return INT64_MAX;
	if (node_nin(f->s->g, f->n) > 1 &&
	    !sym_is_const(f->syms, node_dim(f->s->g, node_in(f->s->g, f->n, 1), f->lead + 1),
			  &right))
		return INT64_MAX;
	return rows > MOST_ROWS || columns > MOST_ROWS || right > MOST_ROWS
		       ? INT64_MAX
		       : rows * (columns + right + 2);
}

static bool takes(const Factor *f)
{
	const Target *target = f->s->target;
	const int64_t elements = elements_of(f);
	int64_t members = 1;
	for (uint32_t k = 0; k < f->lead; k++)
		members *= sym_hint(f->syms, f->batch[k]);
	return target && !f->pairs && members >= LEAST_MEMBERS &&
	       target_holds_members(target, f->dtype, elements);
}

/* Returns a stage that stores result k at `to`; the result has n axes beside the batches. */
static Stage stage_of(Small *v, const NodePlace *to, uint32_t n)
{
	Stage st = trace_global_stage(&v->t, STAGE_FACTOR, to, v->at, v->f->lead + n);
	st.nred = n < v->axes.nred ? (uint8_t)n : v->axes.nred;
	for (uint32_t k = 0; k < st.nred; k++)
		st.red[k] = v->axes.red[k];
	return st;
}

static Kx operand(Small *v, uint32_t k)
{
	const Factor *f = v->f;
	const NodePlace p = factor_operand(f->s, f->n, k);
	const uint32_t rank = f->lead + 2;
	return kx_load(v->t.k, f->s->arena, p.buf, f->dtype, rank,
		       trace_place_index(&v->t, &p, v->at, rank), (Kx){0}, (Kx){0});
}

static void start(Small *v)
{
	const Factor *f = v->f;
	trace_start(&v->t, lower_name(f->s, f->n));
	for (uint32_t k = 0; k < f->lead; k++)
		v->at[k] = trace_root_axis(&v->t, f->batch[k]);
	trace_all_outer(&v->t);
}

/* Adds the axes of a matrix with so many columns. */
static void matrix_axes(Small *v, Sym columns)
{
	v->axes.nred = 0;
	v->at[v->f->lead] = trace_inner_axis(&v->t, "r", v->f->rows, &v->axes);
	v->at[v->f->lead + 1] = trace_inner_axis(&v->t, "c", columns, &v->axes);
}

static void push(Small *v, FactorKind kind, Stage st, bool last)
{
	st.factor.kind = kind;
	st.factor.next = last ? 0 : v->t.k->stage.n + 1;
	trace_push_stage(&v->t, st);
}

/* Adds the stages of a triangular system: X, in place of the right side, then the matrix. */
static void solve_stages(Small *v, const NodePlace *to)
{
	const Factor *f = v->f;
	Graph *g = f->s->g;
	matrix_axes(v, node_dim(g, node_in(g, f->n, 1), f->lead + 1));
	Stage x = stage_of(v, to, 2);
	x.value = operand(v, 1);
	x.factor.upper = node_bool(g, f->n, "upper");
	x.factor.unit = node_bool(g, f->n, "unit");
	push(v, FACTOR_SOLVE, x, false);
	matrix_axes(v, f->columns);
	Stage a = {.kind = STAGE_FACTOR, .dtype = stage_acc(&x), .nred = v->axes.nred};
	for (uint32_t k = 0; k < a.nred; k++)
		a.red[k] = v->axes.red[k];
	a.value = operand(v, 0);
	push(v, FACTOR_SOLVE, a, true);
}

/* Adds the stages of a factorisation: the factors, then the other results, each along an axis of
 * its own, or a number. */
static void factor_stages(Small *v, FactorKind kind, const NodePlace *to, uint32_t nout)
{
	const Factor *f = v->f;
	matrix_axes(v, f->columns);
	Stage x = stage_of(v, &to[0], 2);
	x.value = operand(v, 0);
	push(v, kind, x, false);
	for (uint32_t k = 1; k < nout; k++) {
		const bool is_info = kind != FACTOR_QR && k + 1 == nout,
			   is_order = kind == FACTOR_LU && k == 2;
		v->axes.nred = 0;
		if (!is_info)
			v->at[f->lead] = trace_inner_axis(
				&v->t, "r",
				is_order ? f->rows : sym_min(f->syms, f->rows, f->columns),
				&v->axes);
		push(v, kind, stage_of(v, &to[k], !is_info), k + 1 == nout);
	}
}

bool lower_small(Lower *s, Node n)
{
	enum { MOST_RESULTS = 4 };
	const Factor f = factor_of(s, n);
	const FactorKind kind = kind_of(node_op(s->g, n));
	if (!takes(&f))
		return false;
	const Type *t = node_type(s->g, n);
	const uint32_t nout = t->dtype == DT_none ? t->n : 1;
	NodePlace to[MOST_RESULTS];
	for (uint32_t k = 0; k < nout; k++)
		to[k] = lower_result_place(s, n, k);
	Small v = {.f = &f, .t = {.s = s, .root = n}};
	start(&v);
	if (kind == FACTOR_SOLVE)
		solve_stages(&v, to);
	else
		factor_stages(&v, kind, to, nout);
	trace_order_axes(&v.t);
	v.t.k->name = lower_name(s, n);
	lower_push_kernel(s, v.t.k);
	for (uint32_t k = 0; k < nout; k++)
		lower_publish_result(s, n, k, &to[k]);
	return true;
}
