/* Windows of signals: numbers of a given count, by formulas. */
#include "ops/aten/priv.h"

#include <math.h>

/* Positions 0, 1, ... of a window in f64. */
typedef struct {
	Node k;
	double last; /* the position of the last element, of a periodic window of one more */
} WindowPositions;

static bool window_begin(Build *b, Node n, WindowPositions *w)
{
	int64_t length = aten_int(b, n, "window_length");
	bool periodic =
		op_arg_index(node_op(b->g, n), "periodic") < 0 || node_bool(b->g, n, "periodic");
	if (length < 0)
		return b_error(b, "a window of %lld elements", (long long)length).i;
	*w = (WindowPositions){b_iota(b, DT_f64, b_int(b, length)), (double)(length - !periodic)};
	return w->k.i;
}

/* Returns the window, which is 1 of one element. */
static Node window_end(Build *b, Node n, const WindowPositions *w, Node y)
{
	DType d = aten_dtype_or(b, n, "dtype", DT_f32);
	if (!dtype_is_float(d))
		return b_error(b, "a window of %s, expected a float type", dtype_name(d));
	Sym length = b_dim(b, w->k, 0);
	return b_convert(b, sym_is(b_syms(b), length, 1) ? b_full(b, DT_f64, 1, 1, &length) : y, d);
}

/* Returns a0 - a1 cos(2 pi k / last) + a2 cos(4 pi k / last). */
static Node cosines(Build *b, Node n, double a0, double a1, double a2)
{
	static const double turn = 6.283185307179586476925286766559;
	WindowPositions w;
	if (!window_begin(b, n, &w))
		return (Node){0};
	Node first = b_un(b, OP_cos, b_bin_scalar(b, OP_mul, w.k, turn / w.last));
	Node y = b_bin_scalar(b, OP_add, b_bin_scalar(b, OP_mul, first, -a1), a0);
	Node second = b_un(b, OP_cos, b_bin_scalar(b, OP_mul, w.k, 2 * turn / w.last));
	return window_end(b, n, &w,
			  a2 != 0 ? b_bin(b, OP_add, y, b_bin_scalar(b, OP_mul, second, a2)) : y);
}

static Node build_hann(Build *b, Node n)
{
	return cosines(b, n, 0.5, 0.5, 0);
}

static double given(Build *b, Node n, const char *name, double otherwise)
{
	return op_arg_index(node_op(b->g, n), name) < 0 ? otherwise : node_float(b->g, n, name);
}

static Node build_hamming(Build *b, Node n)
{
	return cosines(b, n, given(b, n, "alpha", 0.54), given(b, n, "beta", 0.46), 0);
}

static Node build_blackman(Build *b, Node n)
{
	return cosines(b, n, 0.42, 0.5, 0.08);
}

static Node build_bartlett(Build *b, Node n)
{
	WindowPositions w;
	if (!window_begin(b, n, &w))
		return (Node){0};
	Node x = b_bin_scalar(b, OP_sub, b_bin_scalar(b, OP_mul, w.k, 2 / w.last), 1);
	return window_end(b, n, &w, b_bin(b, OP_sub, aten_like(b, x, 1), b_un(b, OP_abs, x)));
}

/* Builds I0(beta sqrt(1 - x^2)) / I0(beta), x from -1 to 1. */
static Node build_kaiser(Build *b, Node n)
{
	WindowPositions w;
	if (!window_begin(b, n, &w))
		return (Node){0};
	double beta = given(b, n, "beta", 12);
	Node x = b_bin_scalar(b, OP_sub, b_bin_scalar(b, OP_mul, w.k, 2 / w.last), 1);
	Node root = b_un(b, OP_sqrt, b_bin(b, OP_sub, aten_like(b, x, 1), b_bin(b, OP_mul, x, x)));
	Node y = b_un(b, OP_i0, b_bin_scalar(b, OP_mul, root, beta));
	return window_end(b, n, &w, b_bin(b, OP_div, y, b_un(b, OP_i0, b_scalar(b, DT_f64, beta))));
}

OP(aten_hann_window){
	.schema = "aten.hann_window(int window_length, *, ScalarType? dtype=None, Layout? "
		  "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
	.build = build_hann,
	.sample = "window_length=7; window_length=4, dtype=f64; window_length=1; window_length=0",
	.overloads = (const Overload[]){
		{.schema = "aten.hann_window.periodic(int window_length, bool periodic, *, "
			   "ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
			   "bool? pin_memory=None) -> Tensor",
		 .sample = "window_length=6, periodic=false; window_length=5, periodic=true, "
			   "dtype=f64; window_length=1, periodic=false"},
		{.schema = "aten.hamming_window(int window_length, *, ScalarType? dtype=None, "
			   "Layout? layout=None, Device? device=None, "
			   "bool? pin_memory=None) -> Tensor",
		 .build = build_hamming},
		{.schema = "aten.hamming_window.periodic(int window_length, bool periodic, *, "
			   "ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
			   "bool? pin_memory=None) -> Tensor",
		 .build = build_hamming,
		 .sample = "window_length=6, periodic=false; window_length=5, periodic=true, "
			   "dtype=f64; window_length=1, periodic=false"},
		{.schema = "aten.hamming_window.periodic_alpha(int window_length, bool periodic, "
			   "float alpha, *, ScalarType? dtype=None, Layout? layout=None, "
			   "Device? device=None, bool? pin_memory=None) -> Tensor",
		 .build = build_hamming,
		 .sample = "window_length=6, periodic=true, alpha=0.25"},
		{.schema = "aten.hamming_window.periodic_alpha_beta(int window_length, bool "
			   "periodic, float alpha, float beta, *, "
			   "ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
			   "bool? pin_memory=None) -> Tensor",
		 .build = build_hamming,
		 .sample = "window_length=6, periodic=false, alpha=0.25, beta=0.5"},
		{.schema = "aten.blackman_window(int window_length, *, ScalarType? dtype=None, "
			   "Layout? layout=None, Device? device=None, "
			   "bool? pin_memory=None) -> Tensor",
		 .build = build_blackman},
		{.schema = "aten.blackman_window.periodic(int window_length, bool periodic, *, "
			   "ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
			   "bool? pin_memory=None) -> Tensor",
		 .build = build_blackman,
		 .sample = "window_length=6, periodic=false; window_length=5, periodic=true, "
			   "dtype=f64; window_length=1, periodic=false"},
		{.schema = "aten.bartlett_window(int window_length, *, ScalarType? dtype=None, "
			   "Layout? layout=None, Device? device=None, "
			   "bool? pin_memory=None) -> Tensor",
		 .build = build_bartlett},
		{.schema = "aten.bartlett_window.periodic(int window_length, bool periodic, *, "
			   "ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
			   "bool? pin_memory=None) -> Tensor",
		 .build = build_bartlett,
		 .sample = "window_length=6, periodic=false; window_length=5, periodic=true, "
			   "dtype=f64; window_length=1, periodic=false"},
		{.schema = "aten.kaiser_window(int window_length, *, ScalarType? dtype=None, "
			   "Layout? layout=None, Device? device=None, "
			   "bool? pin_memory=None) -> Tensor",
		 .build = build_kaiser},
		{.schema = "aten.kaiser_window.periodic(int window_length, bool periodic, *, "
			   "ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
			   "bool? pin_memory=None) -> Tensor",
		 .build = build_kaiser,
		 .sample = "window_length=6, periodic=false; window_length=5, periodic=true, "
			   "dtype=f64; window_length=1, periodic=false"},
		{.schema = "aten.kaiser_window.beta(int window_length, bool periodic, float beta, "
			   "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
			   "bool? pin_memory=None) -> Tensor",
		 .build = build_kaiser,
		 .sample = "window_length=6, periodic=false, beta=3.5"},
	},
};
