/* Fourier transforms and windows. */
#include "ops/onnx/priv.h"

#include <math.h>

/* ---- transforms ---- */

/* Makes bins 0 and n / 2 of a transform of n real numbers real, whatever its sums round to. y:
 * pairs along the last dimension, bins along `axis`. */
static Node real_bins(Build *b, Node y, uint32_t axis, Sym n)
{
	Shape s = aten_shape(b, y);
	if (!y.i)
		return y;
	Node twice = b_bin_scalar(b, OP_mul, aten_iota_dim(b, &s, axis, DT_i64), 2);
	Node is_real =
		b_bin_scalar(b, OP_eq, b_bin(b, OP_remainder, twice, aten_size(b, n, DT_i64)), 0);
	Node imaginary = b_bin_scalar(b, OP_eq, aten_iota_dim(b, &s, s.rank - 1, DT_i64), 1);
	return b_select(b, b_bin(b, OP_bit_and, is_real, imaginary), aten_like(b, y, 0), y);
}

/* Transforms complex numbers that are pairs along the last dimension, which has extent 1 for
 * real ones. */
static Node dft(Build *b, Node n, int64_t axis)
{
	Node x = arg(b, n, "input");
	Ir *ir = b->g->ir;
	int64_t rank = aten_rank(b, x);
	bool inverse = node_bool(b->g, n, "inverse"), half = node_bool(b->g, n, "onesided");
	axis += axis < 0 ? rank : 0;
	if (rank < 2 || axis < 0 || axis >= rank - 1)
		return b_error(b,
			       "axis %lld of a tensor of rank %lld, whose last dimension holds "
			       "complex numbers",
			       (long long)axis, (long long)rank);
	Attr size = *node_attr(b->g, n, "dft_length");
	bool real = sym_is(b_syms(b), b_dim(b, x, -1), 1);
	Node z = real ? b_select_dim(b, x, -1, b_int(b, 0))
		      : onnx_call(b, "aten.view_as_complex", &x, 1, NULL, 0);
	const char *op = inverse ? (half ? "aten.fft_irfft" : "aten.fft_ifft")
			 : half  ? "aten.fft_rfft"
				 : "aten.fft_fft";
	Node y = onnx_call(b, op, &z, 1, (Attr[]){attr_none(), size, attr_int(ir, axis)}, 3);
	if (inverse && half)
		return b_unsqueeze(b, y, -1);
	y = onnx_call(b, "aten.view_as_real", &y, 1, NULL, 0);
	Sym length = size.kind == ATTR_int ? size.s : b_dim(b, x, (int)axis);
	return real ? real_bins(b, y, (uint32_t)axis, length) : y;
}

static Node build_dft(Build *b, Node n)
{
	return dft(b, n, aten_int(b, n, "axis"));
}

OP(onnx_DFT_17){
	.schema = "onnx.DFT.17(Tensor input, SymInt? dft_length, *, int axis=1, bool "
		  "inverse=False, bool onesided=False) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_dft,
	.no_sample = NODE_TESTS,
};
OP(onnx_DFT_20){
	.schema = "onnx.DFT.20(Tensor input, SymInt? dft_length, int axis=-2, *, bool "
		  "inverse=False, bool onesided=False) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_dft,
	.no_sample = NODE_TESTS,
};

/* Transforms frames of signal[B, n, 1 or 2] times the window: [B, frames, bins, 2]. */
static Node build_stft(Build *b, Node n)
{
	Node x = arg(b, n, "signal"), window = arg(b, n, "window");
	Ir *ir = b->g->ir;
	int64_t step = aten_int(b, n, "frame_step"), length = 0;
	bool real = sym_is(b_syms(b), b_dim(b, x, -1), 1), half = node_bool(b->g, n, "onesided");
	if (aten_rank(b, x) != 3 || step < 1)
		return b_error(b, "a signal of rank %u and frame_step %lld", aten_rank(b, x),
			       (long long)step);
	if (aten_has(b, n, "frame_length")
		    ? !aten_const(b, node_sym(b->g, n, "frame_length"), &length)
		    : !window.i || !aten_const(b, b_dim(b, window, 0), &length))
		return (Node){0};
	if (length < 1)
		return b_error(b, "a frame of %lld elements", (long long)length);
	Sym frames = aten_window_count(b, b_dim(b, x, 1), b_int(b, length), step);
	Node f = b_window(b, x, 1, length, step, 1, 0, frames); /* [B, frames, 1 or 2, length] */
	if (window.i)
		f = b_bin(b, OP_mul, f, window);
	f = b_transpose(b, f, 2, 3);
	Node z = real ? b_select_dim(b, f, -1, b_int(b, 0))
		      : onnx_call(b, "aten.view_as_complex", &f, 1, NULL, 0);
	Node y = onnx_call(b, half && real ? "aten.fft_rfft" : "aten.fft_fft", &z, 1,
			   (Attr[]){attr_none(), attr_none(), attr_int(ir, -1)}, 3);
	y = onnx_call(b, "aten.view_as_real", &y, 1, NULL, 0);
	return real ? real_bins(b, y, 2, b_int(b, length)) : y;
}

OP(onnx_STFT_17){
	.schema = "onnx.STFT.17(Tensor signal, int frame_step, Tensor? window, SymInt? "
		  "frame_length, *, bool onesided=True) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_stft,
	.no_sample = NODE_TESTS,
};

/* ---- windows ---- */

/* Returns c0 - c1 cos(2 pi i / n) + c2 cos(4 pi i / n); of a symmetric window n is one less than
 * the size. */
static Node window(Build *b, Node n, const double c[3])
{
	Sym size = node_sym(b->g, n, "size");
	DType d = aten_dtype_or(b, n, "output_datatype", DT_f32);
	Sym period = node_bool(b->g, n, "periodic") ? size : sym_addi(b_syms(b), size, -1);
	Node angle = b_bin_scalar(b, OP_mul, b_iota(b, DT_f64, size), 2 * 3.141592653589793);
	angle = b_bin(b, OP_div, angle, aten_size(b, period, DT_f64));
	Node y = b_bin_scalar(b, OP_add, b_bin_scalar(b, OP_mul, b_un(b, OP_cos, angle), -c[1]),
			      c[0]);
	y = b_bin(
		b, OP_add, y,
		b_bin_scalar(b, OP_mul, b_un(b, OP_cos, b_bin_scalar(b, OP_mul, angle, 2)), c[2]));
	return b_convert(b, y, d);
}

static Node build_hann(Build *b, Node n)
{
	return window(b, n, (double[]){0.5, 0.5, 0});
}

static Node build_hamming(Build *b, Node n)
{
	return window(b, n, (double[]){25.0 / 46, 21.0 / 46, 0});
}

static Node build_blackman(Build *b, Node n)
{
	return window(b, n, (double[]){0.42, 0.5, 0.08});
}

OP(onnx_HannWindow_17){
	.schema = "onnx.HannWindow.17(SymInt size, *, ScalarType? output_datatype=None, bool "
		  "periodic=True) -> Tensor",
	.build = build_hann,
	.no_sample = NODE_TESTS,
};
OP(onnx_HammingWindow_17){
	.schema = "onnx.HammingWindow.17(SymInt size, *, ScalarType? output_datatype=None, bool "
		  "periodic=True) -> Tensor",
	.build = build_hamming,
	.no_sample = NODE_TESTS,
};
OP(onnx_BlackmanWindow_17){
	.schema = "onnx.BlackmanWindow.17(SymInt size, *, ScalarType? output_datatype=None, bool "
		  "periodic=True) -> Tensor",
	.build = build_blackman,
	.no_sample = NODE_TESTS,
};

/* ---- mel spectrum ---- */

enum { HERTZ_PER_UNIT = 700, MELS = 2595 };

/* Returns f64 of an input of one number. */
static Node one_number(Build *b, Node n, const char *name)
{
	return b_convert(b, b_reshape(b, arg(b, n, name), 0, NULL), DT_f64);
}

static Node mel_of_hertz(Build *b, Node hertz)
{
	Node units = b_un(b, OP_log1p, b_bin_scalar(b, OP_div, hertz, HERTZ_PER_UNIT));
	return b_bin_scalar(b, OP_div, b_bin_scalar(b, OP_mul, units, MELS), log(10));
}

/* Returns the bins of the transform at which triangle i begins, peaks and ends: i, i + 1 and i +
 * 2 of the result, f64 [bins + 2]. */
static Node mel_edges(Build *b, Node n, Sym bins, Sym length)
{
	Node low = mel_of_hertz(b, one_number(b, n, "lower_edge_hertz")),
	     high = mel_of_hertz(b, one_number(b, n, "upper_edge_hertz"));
	Sym count = sym_addi(b_syms(b), bins, 2);
	Node step = b_bin(b, OP_div, b_bin(b, OP_sub, high, low), aten_size(b, count, DT_f64));
	Node mel = b_bin(b, OP_add, b_bin(b, OP_mul, b_iota(b, DT_f64, count), step), low);
	Node hertz = b_bin_scalar(
		b, OP_mul,
		b_un(b, OP_expm1,
		     b_bin_scalar(b, OP_mul, b_bin_scalar(b, OP_div, mel, MELS), log(10))),
		HERTZ_PER_UNIT);
	Node scaled = b_bin(b, OP_mul, hertz, aten_size(b, sym_addi(b_syms(b), length, 1), DT_f64));
	return b_un(b, OP_floor, b_bin(b, OP_div, scaled, one_number(b, n, "sample_rate")));
}

/* Builds [length / 2 + 1, bins]: each column is a triangle over the bins of a Fourier transform. */
static Node build_mel(Build *b, Node n)
{
	SymTab *t = b_syms(b);
	Sym bins = node_sym(b->g, n, "num_mel_bins"), length = node_sym(b->g, n, "dft_length"),
	    one = b_int(b, 1);
	Node edges = mel_edges(b, n, bins, length), edge[3];
	for (int k = 0; k < 3; k++)
		edge[k] = b_slice(b, edges, 0, b_int(b, k), sym_addi(t, bins, k), one);
	Node at = b_unsqueeze(
		b, b_iota(b, DT_f64, sym_addi(t, sym_floordiv(t, length, b_int(b, 2)), 1)), 1);
	Node side[2]; /* rising, falling: where the triangle is, and 0 elsewhere */
	for (int k = 0; k < 2; k++) {
		Node here = b_bin(b, OP_bit_and, b_bin(b, k ? OP_gt : OP_ge, at, edge[k]),
				  b_bin(b, OP_lt, at, edge[k + 1]));
		Node far = k ? b_bin(b, OP_sub, edge[2], at) : b_bin(b, OP_sub, at, edge[0]);
		side[k] = b_select(b, here,
				   b_bin(b, OP_div, far, b_bin(b, OP_sub, edge[k + 1], edge[k])),
				   b_scalar(b, DT_f64, 0));
	}
	Node y = b_select(b, b_bin(b, OP_eq, at, edge[1]), b_scalar(b, DT_f64, 1),
			  b_bin(b, OP_add, side[0], side[1]));
	return b_convert(b, y, aten_dtype_or(b, n, "output_datatype", DT_f32));
}

OP(onnx_MelWeightMatrix_17){
	.schema = "onnx.MelWeightMatrix.17(SymInt num_mel_bins, SymInt dft_length, Tensor "
		  "sample_rate, Tensor lower_edge_hertz, Tensor upper_edge_hertz, *, "
		  "ScalarType? output_datatype=None) -> Tensor",
	.build = build_mel,
	.no_sample = NODE_TESTS,
};
