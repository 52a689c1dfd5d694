/* ATen factories. */
#include "ops/aten/priv.h"

#include <math.h>

/* ---- filled tensors ---- */

static Node filled(Build *b, Node n, int v)
{
	uint32_t len;
	const bool like = op_arg_index(node_op(b->g, n), "self") >= 0;
	const DType d = like ? aten_dtype(b, arg(b, n, "self")) : DT_f32;
	const Sym *dim = node_ints(b->g, n, "size", &len);
	if (len > MAX_RANK)
		return b_error(b, "rank %u is above the limit %d", len, MAX_RANK);
	Shape s = shape_of(len, dim);
	return b_full(b, aten_dtype_or(b, n, "dtype", d), v, s.rank, s.dim);
}

static Node build_empty_strided(Build *b, Node n)
{
	return aten_check_strides(b, n) ? filled(b, n, 0) : (Node){0};
}
OP(aten_new_empty_strided){
	.schema = "aten.new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, "
		  "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
		  "pin_memory=None) -> Tensor",
	.build = build_empty_strided,
	.sample = "f32[n=3, 4], size=[2, n], stride=[n, 1]",
	.overloads = (const Overload[]){
		{.schema = "aten.empty_strided(SymInt[] size, SymInt[] stride, *, ScalarType? "
			   "dtype=None, Layout? layout=None, Device? device=None, "
			   "bool? pin_memory=None) -> Tensor",
		 .sample = "size=[2, 3], stride=[3, 1]"},
		{.schema = "prims.empty_strided(SymInt[] shape, SymInt[] strides, *, "
			   "ScalarType dtype, Device device, bool requires_grad) -> Tensor",
		 .expand = "empty_strided(shape, strides, dtype=dtype)",
		 .sample = "shape=[2, 3], strides=[3, 1], dtype=f32, requires_grad=false"},
	},
};

static Node build_empty_permuted(Build *b, Node n)
{
	uint32_t rank, len, seen = 0;
	node_ints(b->g, n, "size", &rank);
	const Sym *order = node_ints(b->g, n, "physical_layout", &len);
	for (uint32_t k = 0; k < len && k < MAX_RANK; k++) {
		int64_t d;
		if (sym_is_const(b_syms(b), order[k], &d) && d >= 0 && d < rank)
			seen |= 1u << d;
	}
	if (rank <= MAX_RANK && (len != rank || seen != (1u << rank) - 1))
		return b_error(b, "physical_layout is no permutation of the %u dimensions", rank);
	return filled(b, n, 0);
}
OP(aten_empty_permuted){
	.schema = "aten.empty_permuted(SymInt[] size, int[] physical_layout, *, ScalarType? "
		  "dtype=None, Layout? layout=None, Device? device=None, "
		  "bool? pin_memory=None) -> Tensor",
	.doc = "dimensions from the outermost in memory to the innermost, "
	       "which says nothing of values",
	.build = build_empty_permuted,
	.sample = "size=[2, 3], physical_layout=[1, 0]; size=[], physical_layout=[]; "
		  "size=[3], physical_layout=[0], dtype=i32",
	.overloads = (const Overload[]){
		{.schema = "prims.empty_permuted(SymInt[] shape, int[] physical_layout, *, "
			   "ScalarType dtype, Device device, bool requires_grad) -> Tensor",
		 .expand = "empty_permuted(shape, physical_layout, dtype=dtype)",
		 .sample = "shape=[2, 3], physical_layout=[1, 0], dtype=f32, requires_grad=false"},
	},
};

static Node like(Build *b, Node n, int v)
{
	Node x = arg(b, n, "self");
	Shape s = aten_shape(b, x);
	if (!x.i)
		return x;
	return b_full(b, aten_dtype_or(b, n, "dtype", node_dtype(b->g, x)), v, s.rank, s.dim);
}
OP(aten_zeros){
	.schema = "aten.zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
		  "Device? device=None, bool? pin_memory=None) -> Tensor",
	.aliases = "aten._efficientzerotensor",
	.build_as = {filled, 0},
	.sample = "size=[2, 3]; size=[3], dtype=i32",
	.overloads = (const Overload[]){
		{.schema = "aten.empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, "
			   "Layout? layout=None, Device? device=None, bool? pin_memory=None, "
			   "MemoryFormat? "
			   "memory_format=None) -> Tensor"},
		{.schema = "aten.new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, "
			   "Layout? layout=None, Device? device=None, "
			   "bool? pin_memory=None) -> Tensor",
		 .aliases = "aten.new_empty",
		 .sample = "f32[n=3, 4], size=[2, n]; f32[2], size=[3], dtype=i32"},
		{.schema = "aten.zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? "
			   "layout=None, Device? device=None, bool? pin_memory=None, "
			   "MemoryFormat? memory_format=None) "
			   "-> Tensor",
		 .aliases = "aten.empty_like",
		 .build_as = {like, 0},
		 .sample = "f32[n=3, 4]; i32[n=3], dtype=f16"},
		{.schema = "prims.empty(SymInt[] shape, *, "
			   "ScalarType dtype, Device device, bool requires_grad) -> Tensor",
		 .expand = "zeros(shape, dtype=dtype)",
		 .sample = "shape=[2, 3], dtype=f32, requires_grad=false"},
	},
};
OP(aten_ones){
	.schema = "aten.ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
		  "Device? device=None, bool? pin_memory=None) -> Tensor",
	.build_as = {filled, 1},
	.sample = "size=[2, 3]; size=[3], dtype=i32",
	.overloads = (const Overload[]){
		{.schema = "aten.new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, "
			   "Layout? layout=None, Device? device=None, "
			   "bool? pin_memory=None) -> Tensor",
		 .sample = "f32[n=3, 4], size=[2, n]; f32[2], size=[3], dtype=i32"},
		{.schema = "aten.ones_like(Tensor self, *, ScalarType? dtype=None, Layout? "
			   "layout=None, Device? device=None, bool? pin_memory=None, "
			   "MemoryFormat? memory_format=None) "
			   "-> Tensor",
		 .build_as = {like, 1},
		 .sample = "f32[n=3, 4]; i32[n=3], dtype=f16"},
	},
};

static Node full(Build *b, Node n, const Shape *s, const char *value, DType d)
{
	const Attr *v = node_attr(b->g, n, value);
	if (d == DT_none)
		d = attr_weak_dtype(v);
	Node x = aten_scalar_as(b, v, aten_dtype_or(b, n, "dtype", d));
	return s->rank ? aten_expand_shape(b, x, s) : x;
}

static Node build_full(Build *b, Node n)
{
	uint32_t len;
	const Sym *size = node_ints(b->g, n, "size", &len);
	Shape s = shape_of(len, size);
	return full(b, n, &s, "fill_value",
		    aten_dtype(b, op_arg_index(node_op(b->g, n), "self") >= 0 ? arg(b, n, "self")
									      : (Node){0}));
}

static Node build_full_like(Build *b, Node n)
{
	Shape s = aten_shape(b, arg(b, n, "self"));
	return full(b, n, &s, "fill_value", aten_dtype(b, arg(b, n, "self")));
}
OP(aten_full){
	.schema = "aten.full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, "
		  "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
	.build = build_full,
	.sample = "size=[2, 3], fill_value=1.5; size=[3], fill_value=7; size=[2], fill_value=true; "
		  "size=[2], fill_value=2.5, dtype=i32; "
		  "size=[2], fill_value=complex(1.5, -2); size=[2], fill_value=complex(3, 0), "
		  "dtype=f32",
	.overloads = (const Overload[]){
		{.schema = "aten.new_full(Tensor self, SymInt[] size, Scalar fill_value, *, "
			   "ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
			   "bool? pin_memory=None) "
			   "-> Tensor",
		 .sample = "f32[n=3, 4], size=[2, n], fill_value=1.5; "
			   "i32[2], size=[3], fill_value=7, dtype=f16; "
			   "c64[2], size=[3], fill_value=complex(0, 1); "
			   "c64[2], size=[3], fill_value=7"},
		{.schema = "aten.full_like(Tensor self, Scalar fill_value, *, ScalarType? "
			   "dtype=None, Layout? layout=None, Device? device=None, "
			   "bool? pin_memory=None, "
			   "MemoryFormat? memory_format=None) -> Tensor",
		 .build = build_full_like,
		 .sample = "f32[n=3, 4], fill_value=1.5; i32[n=3], fill_value=7, dtype=f16; "
			   "i32[3], fill_value=7; c64[n=3, 4], fill_value=complex(1.5, -2); "
			   "f32[n=3], fill_value=complex(0, 2), dtype=c128"},
		{.schema = "prims.full(SymInt[] shape, Scalar fill_value, *, "
			   "ScalarType dtype, Device device, bool requires_grad) -> Tensor",
		 .expand = "full_like(zeros(shape, dtype=dtype), fill_value)",
		 .sample = "shape=[2, 3], fill_value=1.5, dtype=f32, requires_grad=false; "
			   "shape=[], fill_value=7, dtype=i32, requires_grad=false; "
			   "shape=[2], fill_value=complex(1.5, -2), dtype=c64, "
			   "requires_grad=false"},
		{.schema = "prims.full_like(Tensor a, Scalar fill_value, *, "
			   "ScalarType dtype, Device device, bool requires_grad) -> Tensor",
		 .expand = "full_like(a, fill_value, dtype=dtype)",
		 .sample = "f32[n=3, 4], fill_value=1.5, dtype=f64, requires_grad=false; i32[n=3], "
			   "fill_value=7, dtype=i32, requires_grad=false"},
	},
};

static Node build_fill(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	Shape s = aten_shape(b, x);
	return aten_expand_shape(
		b, aten_scalar_as(b, node_attr(b->g, n, "value"), aten_dtype(b, x)), &s);
}

static Node build_fill_tensor(Build *b, Node n)
{
	Node x = arg(b, n, "self"), v = arg(b, n, "value");
	Shape s = aten_shape(b, x);
	if (!x.i || !v.i)
		return (Node){0};
	return aten_expand_shape(b, b_convert(b, v, node_dtype(b->g, x)), &s);
}
OP(aten_fill_Scalar){
	.schema = "aten.fill.Scalar(Tensor self, Scalar value) -> Tensor",
	.aliases = "prims.fill",
	.build = build_fill,
	.sample = "f32[n=3, 4], value=1.5; i32[n=3], value=7; "
		  "c64[n=3, 4], value=complex(0, 2.5)",
	.overloads = (const Overload[]){
		{.schema = "aten.fill.Tensor(Tensor self, Tensor value) -> Tensor",
		 .build = build_fill_tensor,
		 .sample = "f32[n=3, 4], f32[] of 1.5; i32[n=3], i64[] of 7"},
	},
};

static Node build_scalar_tensor(Build *b, Node n)
{
	return aten_scalar_factor(b, node_attr(b->g, n, "s"),
				  aten_dtype_or(b, n, "dtype", DT_f32));
}
OP(aten_scalar_tensor){
	.schema = "aten.scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, "
		  "Device? device=None, bool? pin_memory=None) -> Tensor",
	.build = build_scalar_tensor,
	.sample = "s=1.5; s=3; s=3, dtype=i32; s=true; "
		  "s=complex(1.5, -2), dtype=c64",
	.overloads = (const Overload[]){
		{.schema = "prims.scalar_tensor(Scalar s, *, ScalarType? dtype=None, Device? "
			   "device=None) -> Tensor",
		 .expand = "scalar_tensor(s, dtype=dtype)",
		 .no_sample = "PyTorch's wants a device, which is not written in samples"},
	},
};

/* ---- sequences ---- */

static double number(Build *b, const Attr *a)
{
	int64_t v = 0;
	if (a->kind == ATTR_int)
		aten_const(b, a->s, &v);
	return a->kind == ATTR_float ? a->f : a->kind == ATTR_bool ? a->b : (double)v;
}

/* Returns start + k * step for k < n: computed in i64, or in f64 and rounded once. */
static Node sequence(Build *b, Sym count, Node start, Node step, DType d)
{
	if (!start.i || !step.i)
		return (Node){0};
	Node i = b_iota(b, node_dtype(b->g, step), count);
	i = b_bin(b, OP_mul, i, step);
	return b_convert(b, b_bin(b, OP_add, i, start), d);
}

static Node arange_numbers(Build *b, Node n, const Attr *start, const Attr *end, const Attr *step)
{
	SymTab *t = b_syms(b);
	bool ints =
		start->kind != ATTR_float && end->kind != ATTR_float && step->kind != ATTR_float;
	DType d = aten_dtype_or(b, n, "dtype", ints ? DT_i64 : DT_f32);
	if (!ints) {
		double s = number(b, start), by = number(b, step);
		double len = ceil((number(b, end) - s) / by);
		if (!(len >= 0 && len < 1e15) || (number(b, end) - s) * by < 0)
			return b_error(b, "arange with bounds that do not fit its step");
		Node from = b_scalar(b, DT_f64, s);
		return sequence(b, b_int(b, (int64_t)len), from, b_scalar(b, DT_f64, by), d);
	}
	int64_t by;
	if (!sym_is_const(t, step->s, &by)) { /* a size: PyTorch has checked while exporting that
	                                         the step is not negative */
		aten_require_le(b, b_int(b, 1), step->s, "the step of arange is positive");
		Sym some = sym_sub(t, end->s, start->s),
		    count = sym_ceildiv(t, some, sym_max(t, step->s, b_int(b, 1)));
		aten_require_le(b, b_int(b, 0), some,
				"the bounds of arange fit the sign of its step");
		Node apart = aten_size(b, step->s, DT_i64);
		return sequence(b, count, aten_size(b, start->s, DT_i64), apart, d);
	}
	by = (int64_t)number(b, step);
	if (by == 0)
		return b_error(b, "arange with step 0");
	Sym span = by > 0 ? sym_sub(t, end->s, start->s) : sym_sub(t, start->s, end->s);
	Sym len = sym_ceildiv(t, span, b_int(b, by > 0 ? by : -by));
	aten_require_le(b, b_int(b, 0), span, "the bounds of arange fit the sign of its step");
	aten_require_le(b, b_int(b, 0), len, "arange length");
	if (sym_is(t, start->s, 0) && by == 1)
		return b_iota(b, d, len);
	Node from = aten_size(b, start->s, DT_i64);
	return sequence(b, len, from, b_full_int(b, DT_i64, by, 0, NULL), d);
}

/* Returns an argument of arange, a bool as an integer; the number `otherwise` where the operator
 * has no such argument. */
static Attr arange_number(Build *b, Node n, const char *name, int64_t otherwise)
{
	if (op_arg_index(node_op(b->g, n), name) < 0)
		return attr_int(b->g->ir, otherwise);
	const Attr *a = node_attr(b->g, n, name);
	return a->kind == ATTR_bool ? attr_int(b->g->ir, a->b) : *a;
}

static Node build_arange(Build *b, Node n)
{
	Attr start = arange_number(b, n, "start", 0), end = arange_number(b, n, "end", 0),
	     step = arange_number(b, n, "step", 1);
	if (start.kind == ATTR_complex || end.kind == ATTR_complex || step.kind == ATTR_complex)
		return b_error(b, "expected real bounds and a real step, got a complex number");
	return arange_numbers(b, n, &start, &end, &step);
}

/* Builds a range with its end, of floats unless a dtype is given. */
static Node build_range(Build *b, Node n)
{
	Attr one = attr_int(b->g->ir, 1), start = *node_attr(b->g, n, "start"),
	     end = *node_attr(b->g, n, "end");
	Attr step = op_arg_index(node_op(b->g, n), "step") < 0 ? one : *node_attr(b->g, n, "step");
	double s = number(b, &start), by = number(b, &step),
	       len = floor((number(b, &end) - s) / by) + 1;
	if (!(len >= 1 && len < 1e15))
		return b_error(b, "range with bounds that do not fit its step");
	Node each = b_scalar(b, DT_f64, by);
	return sequence(b, b_int(b, (int64_t)len), b_scalar(b, DT_f64, s), each,
			aten_dtype_or(b, n, "dtype", DT_f32));
}

OP(aten_arange){
	.schema = "aten.arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, "
		  "Device? device=None, bool? pin_memory=None) -> Tensor",
	.build = build_arange,
	.sample = "end=5; end=3.5; end=4, dtype=f32",
	.overloads = (const Overload[]){
		{.schema = "aten.arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, "
			   "Layout? layout=None, Device? device=None, "
			   "bool? pin_memory=None) -> Tensor",
		 .sample = "start=2, end=6; start=-1.5, end=3; start=1, end=4, dtype=f16"},
		{.schema = "aten.arange.start_step(Scalar start, Scalar end, Scalar step=1, *, "
			   "ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
			   "bool? pin_memory=None) -> Tensor",
		 .sample = "start=2, end=9, step=3; start=3, end=-4, step=-2; "
			   "start=0.5, end=2, step=0.25; start=1, end=9, step=3, dtype=f32"},
		{.schema = "aten.range(Scalar start, Scalar end, *, ScalarType? dtype=None, "
			   "Layout? layout=None, Device? device=None, "
			   "bool? pin_memory=None) -> Tensor",
		 .build = build_range,
		 .sample = "start=2, end=6; start=-1.5, end=3"},
		{.schema = "aten.range.step(Scalar start, Scalar end, Scalar step=1, *, "
			   "ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
			   "bool? pin_memory=None) -> Tensor",
		 .build = build_range,
		 .sample = "start=2, end=8, step=3; start=0.5, end=-2, step=-0.25, dtype=f64"},
	},
};

/* Evenly spaced in f64: from the start in the lower half, from the end in the upper one, as ATen.
 */
/* Returns a number or the one element of a tensor, in f64; integers go from one integer to
 * another. */
static Node end_of(Build *b, Node n, const char *name)
{
	DType d = aten_dtype_or(b, n, "dtype", DT_f32);
	Node x = arg(b, n, name);
	if (!x.i)
		x = aten_scalar_as(b, node_attr(b->g, n, name), DT_f64);
	else if (!sym_is(b_syms(b), type_numel(b->g->ir, node_type_id(b->g, x)), 1))
		return b_error(b, "%s has several elements, expected one", name);
	x = b_reshape(b, x, 0, NULL);
	if (x.i && dtype_is_int(d))
		x = b_convert(b, x, d);
	return x.i ? b_convert(b, x, DT_f64) : x;
}

/* Computes from either end to the middle. */
static Node spaced(Build *b, Node n)
{
	int64_t steps = aten_int(b, n, "steps");
	Node start = end_of(b, n, "start"), end = end_of(b, n, "end");
	if (steps < 0 || !start.i || !end.i)
		return b_error(b, "%lld steps", (long long)steps);
	Node k = b_iota(b, DT_f64, b_int(b, steps));
	if (steps < 2)
		return b_bin(b, OP_add, k, start);
	Node by = b_bin_scalar(b, OP_div, b_bin(b, OP_sub, end, start), (double)(steps - 1));
	Node low = b_bin(b, OP_add, b_bin(b, OP_mul, k, by), start);
	Node back = b_bin_scalar(b, OP_add, b_bin_scalar(b, OP_mul, k, -1), (double)(steps - 1));
	Node high = b_bin(b, OP_sub, end, b_bin(b, OP_mul, back, by));
	return b_select(b, b_bin_scalar(b, OP_lt, k, (double)(steps / 2)), low, high);
}

static Node build_linspace(Build *b, Node n)
{
	Node x = spaced(b, n);
	return x.i ? b_convert(b, x, aten_dtype_or(b, n, "dtype", DT_f32)) : x;
}
OP(aten_linspace){
	.schema = "aten.linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, "
		  "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
	.build = build_linspace,
	.sample = "start=-1, end=2, steps=5; start=0.5, end=-3.5, steps=4, dtype=f64; "
		  "start=-3, end=9, steps=4, dtype=i64; start=2, end=5, steps=1",
	.overloads = (const Overload[]){
		{.schema = "aten.linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, *, "
			   "ScalarType? dtype=None, "
			   "Layout? layout=None, Device? device=None, "
			   "bool? pin_memory=None) -> Tensor",
		 .sample = "f32[] of -1, f32[] of 2.5, steps=5; f32[] of 2, f32[] of 5, steps=1"},
		{.schema = "aten.linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, *, "
			   "ScalarType? dtype=None, "
			   "Layout? layout=None, Device? device=None, "
			   "bool? pin_memory=None) -> Tensor",
		 .sample = "f32[] of -1, end=2.5, steps=5"},
		{.schema = "aten.linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, *, "
			   "ScalarType? dtype=None, "
			   "Layout? layout=None, Device? device=None, "
			   "bool? pin_memory=None) -> Tensor",
		 .sample = "start=-1, f32[] of 2.5, steps=6"},
	},
};

static Node build_logspace(Build *b, Node n)
{
	Node x = b_bin(b, OP_pow, b_scalar(b, DT_f64, node_float(b->g, n, "base")), spaced(b, n));
	return x.i ? b_convert(b, x, aten_dtype_or(b, n, "dtype", DT_f32)) : x;
}
OP(aten_logspace){
	.schema = "aten.logspace(Scalar start, Scalar end, int steps, float base=10.0, *, "
		  "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
		  "pin_memory=None) -> Tensor",
	.build = build_logspace,
	.sample = "start=-1, end=2, steps=5; start=0.5, end=-3.5, steps=4, base=2.5, dtype=f64; "
		  "start=2, end=5, steps=1",
	.overloads = (const Overload[]){
		{.schema = "aten.logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float "
			   "base=10.0, *, "
			   "ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
			   "bool? pin_memory=None) -> Tensor",
		 .sample = "f32[] of -1, f32[] of 2.5, steps=5; f32[] of 2, f32[] of 5, steps=4, "
			   "base=2.0"},
		{.schema = "aten.logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float "
			   "base=10.0, *, "
			   "ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
			   "bool? pin_memory=None) -> Tensor",
		 .sample = "f32[] of -1, end=2.5, steps=5"},
		{.schema = "aten.logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float "
			   "base=10.0, *, "
			   "ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
			   "bool? pin_memory=None) -> Tensor",
		 .sample = "start=-1, f32[] of 2.5, steps=6, base=2.0"},
	},
};

/* ---- indices of triangles ---- */

/* Returns how many columns of a row are in the triangle of a matrix with so many columns, whose
 * diagonal begins at column `offset`; *first: the first of them. */
static int64_t columns_of_row(int64_t row, int64_t columns, int64_t offset, bool lower,
			      int64_t *first)
{
	int64_t edge = row + offset + lower; /* the first column behind the lower triangle, or of
	                                        the upper one */
	edge = edge < 0 ? 0 : edge > columns ? columns : edge;
	*first = lower ? 0 : edge;
	return lower ? edge : columns - edge;
}

/* Returns [2, elements]: the rows, then the columns, of the elements of a triangle in row-major
 * order. */
static Node triangle_indices(Build *b, Node n, int lower)
{
	const int64_t rows = aten_int(b, n, "row"), columns = aten_int(b, n, "col"),
		      offset = aten_int(b, n, "offset");
	int64_t count = 0, first, at = 0;
	if (rows < 0 || columns < 0)
		return b_error(b, "a matrix of %lld rows and %lld columns", (long long)rows,
			       (long long)columns);
	if (rows > INT32_MAX || columns > INT32_MAX || offset > INT32_MAX || offset < -INT32_MAX)
		return b_error(b, "a matrix or an offset above 2^31 - 1");
	for (int64_t r = 0; r < rows && columns; r++)
		count += columns_of_row(r, columns, offset, lower, &first);
	if (count > INT32_MAX / 16)
		return b_error(b, "%lld indices are too many", (long long)count);
	int64_t *v = ARENA_ARRAY(b->g->ir->ctx->scratch, int64_t, 2 * count + 1);
	for (int64_t r = 0; r < rows && columns; r++) {
		const int64_t width = columns_of_row(r, columns, offset, lower, &first);
		for (int64_t c = first; c < first + width; c++, at++) {
			v[at] = r;
			v[count + at] = c;
		}
	}
	Sym dim[2] = {b_int(b, 2), b_int(b, count)};
	Node index = b_reshape(b, aten_const_ints(b, v, 2 * count), 2, dim);
	return index.i ? b_convert(b, index, aten_dtype_or(b, n, "dtype", DT_i64)) : index;
}
OP(aten_tril_indices){
	.schema = "aten.tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=None, "
		  "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
	.build_as = {triangle_indices, true},
	.sample = "row=3, col=4; row=4, col=2, offset=1; row=3, col=5, offset=-1, dtype=i32; "
		  "row=0, col=3; row=2, col=2, offset=-4; row=3, col=0",
	.overloads = (const Overload[]){
		{.schema = "aten.triu_indices(int row, int col, int offset=0, *, ScalarType? "
			   "dtype=None, Layout? layout=None, Device? device=None, "
			   "bool? pin_memory=None) -> Tensor",
		 .build_as = {triangle_indices, false}},
	},
};

/* ---- matrices ---- */

static Node build_eye(Build *b, Node n)
{
	const bool square = op_arg_index(node_op(b->g, n), "m") < 0;
	Sym rows = node_sym(b->g, n, "n"), cols = square ? rows : node_sym(b->g, n, "m");
	Shape s = shape_of(2, (Sym[]){rows, cols});
	Node i = aten_iota_dim(b, &s, 0, DT_i64), j = aten_iota_dim(b, &s, 1, DT_i64);
	Node y = b_bin(b, OP_eq, i, j);
	return b_convert(b, y, aten_dtype_or(b, n, "dtype", DT_f32));
}

OP(aten_eye){
	.schema = "aten.eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? "
		  "device=None, bool? pin_memory=None) -> Tensor",
	.build = build_eye,
	.sample = "n=3; n=2, dtype=i32",
	.overloads = (const Overload[]){
		{.schema = "aten.eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? "
			   "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
		 .sample = "n=3, m=4; n=3, m=2, dtype=bool"},
	},
};

/* Keeps x[..., i, j] where j - i <= d (tril) or >= d (triu). */
static Node triangle(Build *b, Node n, int lower)
{
	Node x = arg(b, n, "self");
	Shape s = aten_shape(b, x);
	if (s.rank < 2)
		return b_error(b, "triangle of an operand of rank %u", s.rank);
	Node i = aten_iota_dim(b, &s, s.rank - 2, DT_i64);
	Node j = aten_iota_dim(b, &s, s.rank - 1, DT_i64);
	Node diff = b_bin(b, OP_sub, j, i);
	Node keep = b_bin(b, lower ? OP_le : OP_ge, diff,
			  aten_size(b, node_sym(b->g, n, "diagonal"), DT_i64));
	return b_select(b, keep, x, aten_like(b, x, 0));
}
OP(aten_tril){
	.schema = "aten.tril(Tensor self, SymInt diagonal=0) -> Tensor",
	.build_as = {triangle, true},
	.sample = "f32[n=3, 4] in 1..2; f32[n=2, 4, 3] in 1..2, diagonal=1; "
		  "i32[4, 3] in 1..9, diagonal=-2",
	.overloads = (const Overload[]){
		{.schema = "aten.triu(Tensor self, SymInt diagonal=0) -> Tensor",
		 .build_as = {triangle, false}},
	},
};

static Node build_one_hot(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	int64_t classes = aten_int(b, n, "num_classes");
	Shape s = aten_shape(b, x);
	if (classes < 0)
		return b_error(b, "one_hot needs num_classes: a shape must not depend on values");
	if (!x.i || s.rank == MAX_RANK)
		return (Node){0};
	Node inside = b_bin(b, OP_bit_and, b_bin_scalar(b, OP_ge, x, 0),
			    b_bin_scalar(b, OP_lt, x, (double)classes));
	b_node(b, OP_assert, &inside, 1,
	       (Attr[]){attr_none(),
			attr_str(b->g->ir,
				 "one_hot: a class is negative, or not below num_classes")},
	       2);
	Shape r = shape_insert(s, s.rank, b_int(b, classes));
	Node k = aten_iota_dim(b, &r, s.rank, DT_i64);
	return b_convert(b, b_bin(b, OP_eq, b_unsqueeze(b, x, -1), k), DT_i64);
}
OP(aten_one_hot){
	.schema = "aten.one_hot(Tensor self, int num_classes=-1) -> Tensor",
	.build = build_one_hot,
	.sample = "i64[n=2, 3] in 0..3, num_classes=4",
};

/* ---- checks that the importer's types have answered ---- */

static Node build_assert_metadata(Build *b, Node n)
{
	Node x = arg(b, n, "a");
	DType d = aten_dtype_or(b, n, "dtype", DT_none);
	if (x.i && d != DT_none && d != node_dtype(b->g, x))
		return b_error(b, "a tensor of dtype %s, expected %s",
			       dtype_name(node_dtype(b->g, x)), dtype_name(d));
	if (x.i && aten_has(b, n, "size")) {
		uint32_t rank;
		const Sym *dim = node_ints(b->g, n, "size", &rank);
		Shape want = shape_of(rank, dim);
		if (!aten_require_shape(b, x, &want, "the size that is asserted"))
			return (Node){0};
	}
	return b_tuple(b, NULL, 0);
}
OP(aten__assert_tensor_metadata){
	.schema = "aten._assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? "
		  "stride=None, ScalarType? dtype=None, *, Device? device=None, Layout? "
		  "layout=None) -> ()",
	.build = build_assert_metadata,
	.effect = true,
	.sample = "f32[2, 3], size=[2, 3], dtype=f32",
};

static Node build_assert_async(Build *b, Node n)
{
	Node x = aten_truth(b, arg(b, n, "self"));
	x = b_reshape(b, x, 0, NULL);
	const Attr *msg = op_arg_index(node_op(b->g, n), "assert_msg") >= 0
				  ? node_attr(b->g, n, "assert_msg")
				  : NULL;
	const char *text = msg && msg->kind == ATTR_str ? msg->str : "assertion failed";
	Attr attr[] = {attr_none(), attr_str(b->g->ir, text)};
	b_node(b, OP_assert, &x, 1, attr, 2);
	return b_tuple(b, NULL, 0);
}
OP(aten__assert_async){
	.schema = "aten._assert_async(Tensor self) -> ()",
	.build = build_assert_async,
	.effect = true,
	.sample = "bool[] of 1",
	.overloads = (const Overload[]){
		{.schema = "aten._assert_async.msg(Tensor self, str assert_msg) -> ()",
		 .sample = "i32[1] of 7, assert_msg=\"positive\""},
	},
};
