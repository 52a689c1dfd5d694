/* Weights of few bits with a scale for each block of them. */
#include "ops/contrib/priv.h"

Node contrib_unpacked(Build *b, Node x, int64_t bits)
{
	uint32_t rank = aten_rank(b, x);
	int64_t each = bits > 0 ? 8 / bits : 0, shift[4];
	if (!x.i || !rank || (bits != 2 && bits != 4 && bits != 8))
		return b_error(b, "weights of %lld bits, expected 2, 4 or 8", (long long)bits);
	if (bits == 8)
		return x;
	for (int64_t k = 0; k < each; k++)
		shift[k] = k * bits;
	Node v = b_bin(b, OP_shift_right, b_unsqueeze(b, x, -1),
		       b_convert(b, aten_const_ints(b, shift, each), DT_u8));
	v = b_bin(b, OP_bit_and, v, b_full_int(b, DT_u8, (1 << bits) - 1, 0, NULL));
	return aten_flatten(b, v, rank - 1, rank);
}

Node contrib_blocks(Build *b, Node w, Node scale, Node zero, int64_t block, double otherwise)
{
	SymTab *t = b_syms(b);
	uint32_t rank = aten_rank(b, w);
	if (!w.i || !scale.i || node_rank(b->g, scale) != rank)
		return b_error(b, "scales of rank %u for weights of rank %u", aten_rank(b, scale),
			       rank);
	Shape s = aten_shape(b, w), blocked;
	Sym count = b_dim(b, scale, -1), low[MAX_RANK], high[MAX_RANK];
	for (uint32_t k = 0; k < rank; k++)
		low[k] = high[k] = b_int(b, 0);
	high[rank - 1] = sym_sub(t, sym_muli(t, count, block), s.dim[rank - 1]);
	if (!sym_is(t, high[rank - 1], 0))
		w = b_pad(b, w, low, high, b_scalar(b, node_dtype(b->g, w), 0));
	blocked = s;
	blocked.dim[rank - 1] = count;
	blocked = shape_insert(blocked, rank, b_int(b, block));
	DType d = node_dtype(b->g, scale);
	Node v = b_convert(b, aten_reshape(b, w, &blocked), d);
	v = b_bin(b, OP_sub, v,
		  zero.i ? b_unsqueeze(b, b_convert(b, zero, d), -1) : b_scalar(b, d, otherwise));
	v = aten_flatten(b, b_bin(b, OP_mul, v, b_unsqueeze(b, scale, -1)), rank - 1, rank);
	return b_slice(b, v, -1, b_int(b, 0), s.dim[rank - 1], b_int(b, 1));
}

/* ---- products ---- */

/* Returns x[N * count] or [N, count] as [N, count]. */
static Node by_row(Build *b, Node x, int64_t rows, int64_t count)
{
	return b_reshape(b, x, 2, (Sym[]){b_int(b, rows), b_int(b, count)});
}

static Node product(Build *b, Node x, Node w, Node bias)
{
	return x.i && w.i ? aten_linear(b, x, b_convert(b, w, node_dtype(b->g, x)), bias)
			  : (Node){0};
}

/* Whether the model allows operand A in 8 bits. */
static bool rounds_matmul_bits(const Graph *g, Node n)
{
	enum { INT8 = 4 }; /* 0: not said; 1 to 3: f32, f16, bf16 */
	return node_int(g, n, "accuracy_level") == INT8;
}

static Node build_matmul_bits(Build *b, Node n)
{
	Node x = arg(b, n, "A"), w = arg(b, n, "B"), scale = arg(b, n, "scales"),
	     zero = arg(b, n, "zero_points");
	int64_t rows = aten_int(b, n, "N"), k = aten_int(b, n, "K"),
		block = aten_int(b, n, "block_size"), bits = aten_int(b, n, "bits");
	if (rows < 1 || k < 1 || block < 16 || (block & (block - 1)))
		return b_error(b, "N %lld, K %lld, block_size %lld", (long long)rows, (long long)k,
			       (long long)block);
	if (aten_int(b, n, "weight_prepacked") || arg(b, n, "g_idx").i)
		return b_error(b, "weights in an order of a device, and g_idx, are not supported");
	int64_t count = (k + block - 1) / block, bytes = block * bits / 8;
	w = contrib_unpacked(b, by_row(b, w, rows, count * bytes), bits);
	w = b_slice(b, w, 1, b_int(b, 0), b_int(b, k), b_int(b, 1));
	if (zero.i && node_dtype(b->g, zero) == DT_u8) {
		zero = contrib_unpacked(b, by_row(b, zero, rows, (count * bits + 7) / 8), bits);
		zero = b_slice(b, zero, 1, b_int(b, 0), b_int(b, count), b_int(b, 1));
	} else if (zero.i) {
		zero = by_row(b, zero, rows, count);
	}
	w = contrib_blocks(b, w, by_row(b, scale, rows, count), zero, block,
			   (double)(1 << (bits - 1)));
	if (rounds_matmul_bits(b->g, n))
		x = b_node(b, OP_roundable, &x, 1, NULL, 0);
	return product(b, x, w, arg(b, n, "bias"));
}

OP(com_microsoft_MatMulNBits_1){
	.schema = "com_microsoft.MatMulNBits.1(Tensor A, Tensor B, Tensor scales, Tensor? "
		  "zero_points, Tensor? g_idx, Tensor? bias, *, int K, int N, "
		  "int accuracy_level=0, int bits=4, int block_size, "
		  "int weight_prepacked=0) -> Tensor",
	.build = build_matmul_bits,
	.rounds = rounds_matmul_bits,
	.no_sample = CONTRIB_CASES,
};

/* The 16 numbers of bitsandbytes' types. */
static const float fp4[16] = {
	0.0f,  0.00520833f,  0.6666667f,  1.0f,  0.33333333f,  0.5f,  0.16666667f,  0.25f,
	-0.0f, -0.00520833f, -0.6666667f, -1.0f, -0.33333333f, -0.5f, -0.16666667f, -0.25f};
static const float nf4[16] = {-1.0f,
			      -0.6961928009986877f,
			      -0.5250730514526367f,
			      -0.39491748809814453f,
			      -0.28444138169288635f,
			      -0.18477343022823334f,
			      -0.09105003625154495f,
			      0.0f,
			      0.07958029955625534f,
			      0.16093020141124725f,
			      0.24611230194568634f,
			      0.33791524171829224f,
			      0.44070982933044434f,
			      0.5626170039176941f,
			      0.7229568362236023f,
			      1.0f};

/* Unpacks bytes that hold two numbers, the high half first. */
static Node build_matmul_bnb4(Build *b, Node n)
{
	Node x = arg(b, n, "A"), w = arg(b, n, "B"), most = arg(b, n, "absmax");
	int64_t rows = aten_int(b, n, "N"), k = aten_int(b, n, "K"),
		block = aten_int(b, n, "block_size"), type = aten_int(b, n, "quant_type");
	if (rows < 1 || k < 1 || block < 1 || (type != 0 && type != 1) || rows * k % block)
		return b_error(b, "N %lld, K %lld, block_size %lld, quant_type %lld",
			       (long long)rows, (long long)k, (long long)block, (long long)type);
	const int64_t sixteen = 16;
	Node table = b_const(b, ir_const(b->g->ir, (Const){.name = "",
							   .dtype = DT_f32,
							   .rank = 1,
							   .dim = &sixteen,
							   .data = type ? nf4 : fp4,
							   .bytes = sizeof nf4}));
	w = b_reshape(b, w, 2, (Sym[]){b_int(b, (rows * k + 1) / 2), b_int(b, 1)});
	Node high = b_bin(b, OP_shift_right, w, b_full_int(b, DT_u8, 4, 0, NULL)),
	     low = b_bin(b, OP_bit_and, w, b_full_int(b, DT_u8, 15, 0, NULL));
	Node v = aten_flatten(b, b_concat(b, (Node[]){high, low}, 2, 1), 0, 1);
	v = b_slice(b, v, 0, b_int(b, 0), b_int(b, rows * k), b_int(b, 1));
	v = aten_take_dim(b, table, 0, b_convert(b, v, DT_i64), "promise");
	v = b_reshape(b, v, 2, (Sym[]){b_int(b, rows * k / block), b_int(b, block)});
	v = b_bin(b, OP_mul, v, b_unsqueeze(b, b_convert(b, most, DT_f32), -1));
	Sym stored[2] = {b_int(b, rows), b_int(b, k)};
	return product(b, x, b_reshape(b, v, 2, stored), (Node){0});
}

OP(com_microsoft_MatMulBnb4_1){
	.schema = "com_microsoft.MatMulBnb4.1(Tensor A, Tensor B, Tensor absmax, *, int K, int N, "
		  "int block_size, int quant_type, int training_mode=0, int transB=1) -> Tensor",
	.build = build_matmul_bnb4,
	.no_sample = CONTRIB_CASES,
};

/* ---- rows by index ---- */

/* Takes rows as they are stored, then unpacks them. */
static Node build_gather_blocks(Build *b, Node n)
{
	Node data = arg(b, n, "data"), index = arg(b, n, "indices"), scale = arg(b, n, "scales"),
	     zero = arg(b, n, "zero_points");
	int64_t bits = aten_int(b, n, "bits"), block = aten_int(b, n, "block_size"),
		elem = aten_int(b, n, "elem0");
	uint32_t rank = aten_rank(b, data), axis = onnx_axis(b, n, "gather_axis", data),
		 along = onnx_axis(b, n, "quantize_axis", data);
	if (!data.i || !scale.i)
		return (Node){0};
	if (axis != 0 || along != rank - 1 || block < 16)
		return b_error(b,
			       "gather_axis %u, quantize_axis %u, block_size %lld: expected the "
			       "first and the last axis",
			       axis, along, (long long)block);
	bool packed = !elem && node_dtype(b->g, data) == DT_u8;
	data = aten_take_dim(b, data, 0, index, "check");
	scale = aten_take_dim(b, scale, 0, index, "check");
	zero = zero.i ? aten_take_dim(b, zero, 0, index, "check") : zero;
	if (packed)
		data = contrib_unpacked(b, data, bits);
	if (packed && zero.i)
		zero = b_slice(b, contrib_unpacked(b, zero, bits), -1, b_int(b, 0),
			       b_dim(b, scale, -1), b_int(b, 1));
	return contrib_blocks(b, data, scale, zero, block, packed ? (double)(1 << (bits - 1)) : 0);
}

OP(com_microsoft_GatherBlockQuantized_1){
	.schema = "com_microsoft.GatherBlockQuantized.1(Tensor data, Tensor indices, Tensor "
		  "scales, Tensor? zero_points, *, int bits=4, int block_size=128, "
		  "int gather_axis=0, int quantize_axis=1, int elem0=0) -> Tensor",
	.build = build_gather_blocks,
	.no_sample = CONTRIB_CASES,
};
