/* Values of random graphs: bounds, inputs, choices. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ir/build/build.h"
#include "tests/text/file_test.h"
#include "fuzz.h"

enum { MAX_ELEMENTS = 40000 };

uint32_t fuzz_below(Fuzz *f, uint32_t n)
{
	f->rng = f->rng * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((f->rng >> 33) % n);
}

bool fuzz_chance(Fuzz *f, uint32_t percent)
{
	return fuzz_below(f, 100) < percent;
}

int fuzz_log2(double v)
{
	int k;
	double m = frexp(v, &k);
	return m == 0.5 ? k - 1 : k;
}

/* ---- kinds ---- */

DType fuzz_dtype(const Fuzz *f, Value v)
{
	return node_dtype(f->g, v.n);
}

bool fuzz_is_float(const Fuzz *f, const Value *v)
{
	return dtype_is_float(fuzz_dtype(f, *v));
}

bool fuzz_is_exact(const Fuzz *f, const Value *v)
{
	(void)f;
	return v->err == 0;
}

bool fuzz_any(const Fuzz *f, const Value *v)
{
	(void)f, (void)v;
	return true;
}

bool fuzz_not_scalar(const Fuzz *f, const Value *v)
{
	return fuzz_rank(f, *v) > 0;
}

bool fuzz_pick(Fuzz *f, bool (*fits)(const Fuzz *, const Value *), Value *out)
{
	for (uint32_t tries = 0; f->pool.n && tries < 20; tries++) {
		uint32_t recent = f->pool.n < 4 ? f->pool.n : 4;
		uint32_t k = fuzz_chance(f, 50) ? f->pool.n - 1 - fuzz_below(f, recent)
						: fuzz_below(f, f->pool.n);
		*out = f->pool.data[k];
		if (fits(f, out))
			return true;
	}
	return false;
}

/* ---- bounds ---- */

/* Significant bits, and the exponent of the largest finite number. */
static int float_bits(DType d)
{
	return d == DT_f64 ? 53 : d == DT_f16 ? 11 : d == DT_bf16 ? 8 : 24;
}

Value fuzz_value(Fuzz *f, Node n, int gran, int mag, double err)
{
	Value v = {n, gran, mag, err};
	if (!n.i)
		return v;
	DType d = node_dtype(f->g, n);
	if (!dtype_is_float(d)) {
		int bits = d == DT_bool ? 0 : (int)dtype_size(d) * 8;
		v.mag = mag < bits ? mag : bits;
		v.gran = 0;
		v.err = 0;
	} else if (err > 0 || mag - gran > float_bits(d)) {
		v.err += ldexp(2, mag - float_bits(d));
	}
	return v;
}

bool fuzz_push(Fuzz *f, Value v)
{
	if (!v.n.i)
		return false;
	if (fuzz_is_float(f, &v) && (v.err > 0.25 || v.mag > 12))
		return true; /* built, but not read */
	array_push(f->ir->ctx->arena, &f->pool, v);
	return true;
}

bool fuzz_small(Fuzz *f, uint32_t rank, const Sym *dim)
{
	double n = 1;
	for (uint32_t k = 0; k < rank; k++) {
		if (fuzz_min(f, dim[k]) < 0)
			return false;
		n *= (double)fuzz_max(f, dim[k]);
	}
	return n >= 1 && n <= MAX_ELEMENTS && rank <= 7;
}

/* ---- nodes ---- */

Node fuzz_node(Fuzz *f, Op op, const Node *in, uint32_t nin, const Attr *attr, uint32_t nattr)
{
	for (uint32_t k = 0; k < nin; k++)
		if (!in[k].i)
			return (Node){0};
	return b_node(&f->b, op, in, nin, attr, nattr);
}

Attr fuzz_ints(Fuzz *f, const int64_t *v, uint32_t n)
{
	Sym *s = ARENA_ARRAY(f->ir->ctx->arena, Sym, n);
	for (uint32_t k = 0; k < n; k++)
		s[k] = sym_int(f->ir->syms, v[k]);
	return attr_ints(s, n);
}

static bool all_const(const Fuzz *f, uint32_t rank, const Sym *dim)
{
	for (uint32_t k = 0; k < rank; k++)
		if (!sym_is_const(f->ir->syms, dim[k], NULL))
			return false;
	return true;
}

/* Line "; input NAME = steps LO HI STEP SEED" of number k of its kind, to whose values the reader
 * adds k. */
static void add_header(Fuzz *f, const char *what, uint32_t k, const FuzzInput *in)
{
	if (f->header)
		text_printf(f->header, "; %s = steps %.17g %.17g %.17g %" PRIu64 "\n", what, in->lo,
			    in->hi, in->step, f->seed++ - k);
}

static Node new_constant(Fuzz *f, DType d, uint32_t rank, const Sym *dim, const FuzzInput *in)
{
	Arena *a = f->ir->ctx->arena;
	uint32_t at = f->ir->constant.n;
	Tensor t = {.dtype = d, .rank = rank};
	Text type;
	text_init(&type, a);
	const char *name = arena_printf(a, "%sc%u", f->prefix, at);
	text_printf(&type, "const \"%s\": %s[", name, dtype_name(d));
	for (uint32_t k = 0; k < rank; k++) {
		t.dim[k] = sym_const(f->ir->syms, dim[k]);
		text_printf(&type, "%s%lld", k ? ", " : "", (long long)t.dim[k]);
	}
	text_char(&type, ']');
	t.data = arena_alloc(a, tensor_bytes(&t));
	values_steps(&t, (double[]){in->lo, in->hi, in->step}, f->seed);
	add_header(f, type.data, at, in);
	ConstId c = ir_const(f->ir, (Const){.name = name,
					    .dtype = d,
					    .rank = rank,
					    .is_param = true,
					    .dim = arena_dup(a, t.dim, sizeof t.dim),
					    .data = t.data,
					    .bytes = tensor_bytes(&t)});
	return b_const(&f->b, c);
}

static Node new_leaf(Fuzz *f, DType d, uint32_t rank, const Sym *dim, FuzzInput in)
{
	Arena *a = f->ir->ctx->arena;
	if (f->is_body ||
	    (fuzz_chance(f, 20) && all_const(f, rank, dim) && d != DT_bool && !dtype_is_complex(d)))
		return new_constant(f, d, rank, dim, &in);
	const char *name = arena_printf(a, "%sx%u", f->prefix, f->g->input.n);
	add_header(f, arena_printf(a, "input %s", name), f->g->input.n, &in);
	return graph_add_input(f->g, name, INPUT_USER, ir_type(f->ir, d, rank, dim));
}

Value fuzz_input(Fuzz *f, DType d, uint32_t rank, const Sym *dim)
{
	if (d == DT_bool)
		return (Value){new_leaf(f, d, rank, dim, (FuzzInput){0, 1, 1}), 0, 0, 0};
	if (dtype_is_complex(d))
		return (Value){new_leaf(f, d, rank, dim, (FuzzInput){-1, 1, 0x1p-20}), -20, 0, 0};
	if (!dtype_is_float(d)) {
		bool sign = dtype_is_signed(d);
		return (Value){new_leaf(f, d, rank, dim, (FuzzInput){sign ? -8 : 0, 8, 1}), 0, 3,
			       0};
	}
	if ((d == DT_f32 || d == DT_f64) && fuzz_chance(f, 40))
		return (Value){new_leaf(f, d, rank, dim, (FuzzInput){-1, 1, 0x1p-20}), -20, 0, 0};
	return (Value){new_leaf(f, d, rank, dim, (FuzzInput){-4, 4, 0.25}), -2, 2, 0};
}

Value fuzz_index(Fuzz *f, uint32_t rank, const Sym *dim, int64_t lo, int64_t hi)
{
	FuzzInput in = {(double)lo, (double)hi, 1};
	double most = fmax(fabs(in.lo), fabs(in.hi));
	return (Value){new_leaf(f, DT_i64, rank, dim, in), 0, fuzz_log2(most + 1), 0};
}

Value fuzz_scalar(Fuzz *f, DType d, double v, Value like)
{
	const Type *t = node_type(f->g, like.n);
	return (Value){b_full(&f->b, d, v, t->n, t->dim), -2, v == 0 ? -2 : fuzz_log2(fabs(v)), 0};
}

/* ---- graphs ---- */

static const DType other_dtypes[] = {DT_f64, DT_f16,  DT_bf16, DT_i64,
				     DT_i32, DT_bool, DT_u8,   DT_i8};

static DType any_dtype(Fuzz *f)
{
	return other_dtypes[fuzz_below(f, sizeof other_dtypes / sizeof *other_dtypes)];
}

static DType leaf_dtype(Fuzz *f)
{
	return fuzz_chance(f, 25) ? any_dtype(f) : f->dtype != DT_none ? f->dtype : DT_f32;
}

static Value first_input(Fuzz *f)
{
	Sym dim[4];
	uint32_t rank;
	do {
		rank = fuzz_below(f, 5);
		for (uint32_t k = 0; k < rank; k++)
			dim[k] = fuzz_extent(f);
	} while (!fuzz_small(f, rank, dim));
	return fuzz_input(f, leaf_dtype(f), rank, dim);
}

static bool random_step(Fuzz *f)
{
	static const FuzzChoice *const lists[] = {fuzz_scalar_steps, fuzz_map_steps,
						  fuzz_sum_steps};
	const FuzzChoice *list = lists[fuzz_below(f, 3)];
	if (fuzz_chance(f, 10))
		list = fuzz_order_steps;
	else if (fuzz_chance(f, 6))
		list = fuzz_control_steps;
	if (f->has_complex && fuzz_chance(f, 20))
		list = fuzz_complex_steps;
	uint32_t total = 0;
	for (const FuzzChoice *c = list; c->step; c++)
		total += c->weight;
	uint32_t at = fuzz_below(f, total);
	while (at >= list->weight)
		at -= list++->weight;
	return list->step(f);
}

/* The last values, and those that nothing reads. */
static void add_outputs(Fuzz *f)
{
	uint32_t n = 0;
	for (uint32_t k = f->pool.n; k-- > 0 && n < 6;) {
		Value v = f->pool.data[k];
		bool unread = !node_nuses(f->g, v.n);
		if (!unread && n && !fuzz_chance(f, 15))
			continue;
		graph_add_output(f->g, arena_printf(f->ir->ctx->arena, "%so%u", f->prefix, n++),
				 v.n, -1);
		text_printf(f->tolerances, " %.3g", v.err);
	}
}

bool fuzz_graph(Fuzz *f, uint32_t nstep)
{
	uint32_t errors = f->ir->ctx->nerror;
	if (fuzz_chance(f, 35))
		f->dtype = any_dtype(f);
	for (uint32_t k = 1 + fuzz_below(f, 3); k > 0; k--)
		array_push(f->ir->ctx->arena, &f->pool, first_input(f));
	for (uint32_t k = 0, tries = 0; k < nstep && tries < 10 * nstep; tries++) {
		k += random_step(f);
		if (f->ir->ctx->nerror != errors)
			return false;
	}
	add_outputs(f);
	return true;
}
