/* Collectives: PyTorch's functional ones (torch.distributed._functional_collectives), which
 * torch.compile and torch.export leave in graphs. They are kept until decompose for the sake of
 * their derivatives. Then they are calls that move bytes (ops/user/comm.c), and arithmetic:
 *
 *   all_reduce       every rank gathers all and reduces all; where there is much to move, rank r
 *                    gets slice r of all, reduces it, and gathers the slices. Two ranks swap, and
 *                    each adds
 *   reduce_scatter   all_to_all, and a reduction
 *
 * Values are reduced in the order of ranks, by kernels of the model: all providers of communication
 * give the same bits. A result is complete where its node is, so wait_tensor is its operand.
 *
 * The group of a collective is a name, which the provider knows when the model runs
 * (WeftComm.group). The number of ranks in it is a constant of the graph, which that call checks;
 * rank is not in the graph, so all ranks run one model. */
#include "ops/aten/priv.h"
#include "ops/prim/priv.h"
#include "ops/rules/batch.h"

#include <string.h>

/* From so many bytes on each rank reduces a slice. Below, one exchange instead of two: the latency
 * of an exchange is that of some 100 KB. Two ranks move as many bytes either way. */
enum { SLICES_FROM = 256 << 10 };

static bool always(const Graph *g, Node n)
{
	(void)g, (void)n;
	return true;
}

/* ---- types ---- */

static bool shape_unchanged(Infer *f)
{
	const Type x = infer_in(f, 0);
	return infer_result(f, x.dtype, x.n, x.dim);
}
INFER(unchanged)

/* Sets f's type to that of operand 0 with another first extent. */
static bool with_first(Infer *f, Sym first)
{
	const Type x = infer_in(f, 0);
	Sym dim[MAX_RANK];
	if (!x.n)
		return infer_fail(f, "a tensor without dimensions has no first dimension");
	memcpy(dim, x.dim, x.n * sizeof *dim);
	dim[0] = first;
	return infer_result(f, x.dtype, x.n, dim);
}

static bool group_size(Infer *f, int64_t *ranks)
{
	TRY(infer_const(f, "group_size", ranks));
	return *ranks >= 1 || infer_fail(f, "a group of %lld ranks", (long long)*ranks);
}

static bool shape_gathered(Infer *f)
{
	int64_t ranks;
	TRY(group_size(f, &ranks));
	const Type x = infer_in(f, 0);
	return with_first(f, x.n ? sym_mul(f->syms, x.dim[0], sym_int(f->syms, ranks)) : (Sym){0});
}
INFER(gathered)

static bool shape_scattered(Infer *f)
{
	int64_t ranks;
	TRY(group_size(f, &ranks));
	const Type x = infer_in(f, 0);
	if (!x.n)
		return with_first(f, (Sym){0});
	TRY(infer_same(f, "the first dimension, which the ranks divide among them",
		       sym_mod(f->syms, x.dim[0], sym_int(f->syms, ranks)), sym_int(f->syms, 0)));
	return with_first(f, sym_divi(f->syms, x.dim[0], ranks));
}
INFER(scattered)

static bool shape_exchanged(Infer *f)
{
	const Sym *give, *take;
	uint32_t ngive, ntake;
	const Type x = infer_in(f, 0);
	Sym gives = sym_int(f->syms, 0), takes = gives;
	TRY(infer_ints(f, "output_split_sizes", &take, &ntake));
	TRY(infer_ints(f, "input_split_sizes", &give, &ngive));
	if (!ngive || ngive != ntake)
		return infer_fail(f,
				  "%u sizes of what is given and %u of what is taken: expected "
				  "one of each for every rank",
				  ngive, ntake);
	for (uint32_t k = 0; k < ngive; k++) {
		TRY(infer_at_least(f, "a size of a split", give[k], 0));
		TRY(infer_at_least(f, "a size of a split", take[k], 0));
		gives = sym_add(f->syms, gives, give[k]);
		takes = sym_add(f->syms, takes, take[k]);
	}
	if (x.n)
		TRY(infer_same(f, "the sum of input_split_sizes", gives, x.dim[0]));
	return with_first(f, takes);
}
INFER(exchanged)

/* ---- arguments ---- */

static const struct {
	const char *name;
	ReduceKind kind;
} kinds[] = {{"sum", REDUCE_SUM}, {"avg", REDUCE_SUM}, {"product", REDUCE_PROD},
	     {"max", REDUCE_MAX}, {"min", REDUCE_MIN}, {"band", REDUCE_AND},
	     {"bor", REDUCE_OR},  {"bxor", REDUCE_XOR}};

/* Sets *kind to the reduction that the argument reduce_op names. */
static bool find_kind(Build *b, Node n, ReduceKind *kind)
{
	const char *name = node_str(b->g, n, "reduce_op");
	for (uint32_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
		if (!strcmp(kinds[k].name, name)) {
			*kind = kinds[k].kind;
			return true;
		}
	b_error(b, "%s: no reduction \"%s\": sum, avg, product, max, min, band, bor, bxor",
		op_name(node_op(b->g, n)), name);
	return false;
}

static bool is_kind(Build *b, Node n, const char *kind)
{
	return !strcmp(node_str(b->g, n, "reduce_op"), kind);
}

/* Returns the number of ranks in n's group; 0 after an error. */
static int64_t ranks_of(Build *b, Node n)
{
	const Attr *size = node_attr(b->g, n, "group_size");
	int64_t ranks = 0;
	if (size && size->kind == ATTR_int && !aten_const(b, size->s, &ranks))
		return 0;
	if (ranks < 1)
		ranks = *b->g->ir->ranks;
	if (ranks < 1)
		b_error(b,
			"%s: nothing says how many ranks group \"%s\" has: give the number "
			"(--ranks N)",
			op_name(node_op(b->g, n)), node_str(b->g, n, "group_name"));
	return ranks;
}

/* ---- calls ---- */

/* Adds a call of weft::NAME on x, flat. more: integers behind the group. */
static Node exchange(Build *b, const char *name, Node x, Node n, int64_t ranks, const Sym *more,
		     uint32_t nmore)
{
	Ir *ir = b->g->ir;
	const char *group = node_str(b->g, n, "group_name");
	const uint32_t length = (uint32_t)strlen(group);
	Sym *ints = ARENA_ARRAY(ir->ctx->scratch, Sym, 2 + length + nmore);
	if (!x.i)
		return x;
	ints[0] = b_int(b, ranks);
	ints[1] = b_int(b, length);
	for (uint32_t k = 0; k < length; k++)
		ints[2 + k] = b_int(b, (unsigned char)group[k]);
	for (uint32_t k = 0; k < nmore; k++)
		ints[2 + length + k] = more[k];
	const Attr attr[] = {attr_int(ir, 1),
			     attr_str(ir, arena_printf(ir->ctx->arena, "weft::%s", name)),
			     attr_ints(ints, 2 + length + nmore),
			     {.kind = ATTR_floats}};
	Node call = b_node(b, OP_call, &x, 1, attr, 4);
	return call.i ? b_get(b, call, 0) : call;
}

/* Adds an all_to_all of x[ranks * count], of which `count` elements go to each rank. */
static Node exchange_equal(Build *b, Node x, Node n, int64_t ranks, Sym count)
{
	const uint32_t r = (uint32_t)ranks;
	Sym *more = ARENA_ARRAY(b->g->ir->ctx->scratch, Sym, 2 * (r + 1) + 1);
	for (uint32_t k = 0; k < 2 * (r + 1); k++)
		more[k] = k % (r + 1) ? count : b_int(b, r);
	more[2 * (r + 1)] = sym_mul(graph_syms(b->g), count, b_int(b, r));
	return exchange(b, "all_to_all", x, n, ranks, more, 2 * (r + 1) + 1);
}

/* Calls n's operator on pairs of real numbers instead of complex ones. */
static Node on_pairs(Build *b, Node n, Node x)
{
	Attr *attr = batch_attrs(b, n);
	Node pairs = b_node(b, OP_view_real, &x, 1, NULL, 0);
	if (!pairs.i)
		return pairs;
	Node y = b_call(b, node_op(b->g, n), &pairs, 1, attr, op_schema(node_op(b->g, n))->narg);
	return y.i ? b_node(b, OP_view_complex, &y, 1, NULL, 0) : y;
}

static bool is_complex(const Build *b, Node x)
{
	return dtype_is_complex(node_dtype(b->g, x));
}

/* Returns the sum of all ranks, or their mean if n is to give that. */
static Node mean_of(Build *b, Node n, Node sum, int64_t ranks)
{
	if (!sum.i || !is_kind(b, n, "avg"))
		return sum;
	if (!dtype_is_inexact(node_dtype(b->g, sum)))
		return b_error(b, "%s: avg of integers", op_name(node_op(b->g, n)));
	return b_bin_scalar(b, OP_div, sum, (double)ranks);
}

/* Returns rows[ranks, ...] reduced in the order of ranks. */
static Node reduced(Build *b, Node n, ReduceKind kind, Node rows, int64_t ranks)
{
	if (!rows.i)
		return rows;
	const DType d = node_dtype(b->g, rows);
	Node sum = b_reduce(b, kind, rows, 1, dtype_is_inexact(d) ? DT_none : d);
	return mean_of(b, n, b_convert(b, sum, d), ranks);
}

/* ---- all_reduce ---- */

/* Returns flat[n], each rank's, reduced: rank r reduces slice r. */
static Node reduce_slices(Build *b, Node n, ReduceKind kind, Node flat, int64_t ranks)
{
	SymTab *t = graph_syms(b->g);
	const Sym zero = b_int(b, 0), numel = aten_shape(b, flat).dim[0];
	const Sym slice = sym_ceildiv(t, numel, b_int(b, ranks)),
		  all = sym_mul(t, slice, b_int(b, ranks)), more = sym_sub(t, all, numel);
	const Sym rows[] = {b_int(b, ranks), slice};
	Node padded = b_pad(b, flat, &zero, &more, b_scalar(b, node_dtype(b->g, flat), 0));
	Node theirs = exchange_equal(b, padded, n, ranks, slice);
	theirs = theirs.i ? b_reshape(b, theirs, 2, rows) : theirs;
	Node whole =
		exchange(b, "all_gather", reduced(b, n, kind, theirs, ranks), n, ranks, NULL, 0);
	return whole.i ? b_slice(b, b_ravel(b, whole), 0, zero, numel, b_int(b, 1)) : whole;
}

/* Returns the same of two ranks. Both add the same numbers, in either order. */
static Node reduce_two(Build *b, Node n, ReduceKind kind, Node flat)
{
	const Op op = kind == REDUCE_SUM ? OP_add : OP_mul;
	Node theirs = exchange(b, "swap", flat, n, 2, NULL, 0);
	return mean_of(b, n, b_bin(b, op, flat, theirs), 2);
}

static Node build_all_reduce(Build *b, Node n)
{
	Node x = node_in(b->g, n, 0);
	const Shape s = aten_shape(b, x);
	const int64_t ranks = ranks_of(b, n);
	ReduceKind kind;
	if (!ranks || !find_kind(b, n, &kind))
		return (Node){0};
	if (is_complex(b, x))
		return on_pairs(b, n, x);
	const Sym numel = shape_numel(b, &s);
	const int64_t bytes = sym_hint(graph_syms(b->g), numel) * dtype_size(node_dtype(b->g, x));
	Node flat = b_ravel(b, x), y;
	if (ranks == 2 && (kind == REDUCE_SUM || kind == REDUCE_PROD))
		y = reduce_two(b, n, kind, flat);
	else if (ranks > 2 && bytes >= SLICES_FROM)
		y = reduce_slices(b, n, kind, flat, ranks);
	else
		y = reduced(b, n, kind, exchange(b, "all_gather", flat, n, ranks, NULL, 0), ranks);
	return y.i ? b_reshape(b, y, s.rank, s.dim) : y;
}

/* Returns all_reduce of x within n's group. */
static Node all_reduce(Build *b, Node n, Node x, const char *kind)
{
	Ir *ir = b->g->ir;
	const Attr attr[] = {attr_none(), attr_str(ir, kind), *node_attr(b->g, n, "group_name"),
			     attr_int(ir, ranks_of(b, n))};
	return x.i ? b_call(b, OP__c10d_functional_all_reduce, &x, 1, attr, 4) : x;
}

/* Returns where x is the value that n gives, as a number of x's dtype, divided by on how many ranks
 * it is: the share of this rank in the derivative. */
static Node share(Build *b, Node n)
{
	Node x = node_in(b->g, n, 0);
	Node mine = b_convert(b, b_bin(b, OP_eq, x, n), node_dtype(b->g, x));
	return b_bin(b, OP_div, mine, all_reduce(b, n, mine, "sum"));
}

static bool is_linear(Build *b, Node n)
{
	return is_kind(b, n, "sum") || is_kind(b, n, "avg");
}

/* Returns `known`; where it is false, after an error: n's reduction has no derivative. */
static bool derives(Build *b, Node n, bool known)
{
	if (!known)
		b_error(b, "%s: no derivative of \"%s\"", op_name(node_op(b->g, n)),
			node_str(b->g, n, "reduce_op"));
	return known;
}

static bool all_reduce_derives(Build *b, Node n)
{
	return derives(b, n, is_linear(b, n) || is_kind(b, n, "max") || is_kind(b, n, "min"));
}

/* Computes cotangents. The loss is the sum of all ranks' losses, as torch.distributed counts. */
static bool adjoint_all_reduce(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	if (!want[0] || !ct[0].i)
		return true;
	TRY(all_reduce_derives(b, n));
	if (is_linear(b, n)) {
		g[0] = all_reduce(b, n, ct[0], node_str(b->g, n, "reduce_op"));
		return g[0].i;
	}
	Node mine = share(b, n), all = all_reduce(b, n, ct[0], "sum");
	g[0] = b_bin(b, OP_mul, all, mine);
	return g[0].i;
}

static bool tangent_all_reduce(Build *b, Node n, const Node *t, Node *ty)
{
	if (!t[0].i)
		return true;
	TRY(all_reduce_derives(b, n));
	if (is_linear(b, n)) {
		ty[0] = all_reduce(b, n, t[0], node_str(b->g, n, "reduce_op"));
		return ty[0].i;
	}
	Node mine = share(b, n);
	ty[0] = all_reduce(b, n, b_bin(b, OP_mul, t[0], mine), "sum");
	return ty[0].i;
}

/* .no_sample: PyTorch records a result only within a group of processes. */
#define TESTS "tests/unit/driver_collective.c and python/tests/test_distributed.py compare it"

OP(_c10d_functional_all_reduce){
	.schema = "_c10d_functional.all_reduce(Tensor input, str reduce_op, str group_name, int "
		  "group_size=0) -> Tensor",
	.doc = "input of all ranks of a group, reduced by sum, avg, product, max, min, band, bor "
	       "or "
	       "bxor, on each of them",
	.effect = true,
	.collective = always,
	.whole = true,
	.infer = infer_unchanged,
	.build = build_all_reduce,
	.expands = EXPANDS_IN_DECOMPOSE,
	.adjoint = adjoint_all_reduce,
	.tangent = tangent_all_reduce,
	.batch_leading = true,
	.no_sample = TESTS,
};

/* ---- all_gather, reduce_scatter, all_to_all: along the first dimension ---- */

static Node build_all_gather(Build *b, Node n)
{
	Node x = node_in(b->g, n, 0);
	const int64_t ranks = ranks_of(b, n);
	Shape s = aten_shape(b, x);
	if (!ranks || !s.rank)
		return (Node){0};
	if (is_complex(b, x))
		return on_pairs(b, n, x);
	Node y = exchange(b, "all_gather", b_ravel(b, x), n, ranks, NULL, 0);
	s.dim[0] = sym_mul(graph_syms(b->g), s.dim[0], b_int(b, ranks));
	return y.i ? b_reshape(b, y, s.rank, s.dim) : y;
}

static Node build_reduce_scatter(Build *b, Node n)
{
	SymTab *t = graph_syms(b->g);
	Node x = node_in(b->g, n, 0);
	const int64_t ranks = ranks_of(b, n);
	Shape s = aten_shape(b, x);
	ReduceKind kind;
	if (!ranks || !s.rank || !find_kind(b, n, &kind))
		return (Node){0};
	if (is_complex(b, x))
		return on_pairs(b, n, x);
	s.dim[0] = sym_divi(t, s.dim[0], ranks);
	const Sym slice = shape_numel(b, &s), rows[] = {b_int(b, ranks), slice};
	Node theirs = exchange_equal(b, b_ravel(b, x), n, ranks, slice);
	theirs = theirs.i ? b_reshape(b, theirs, 2, rows) : theirs;
	Node y = reduced(b, n, kind, theirs, ranks);
	return y.i ? b_reshape(b, y, s.rank, s.dim) : y;
}

static Node build_all_to_all(Build *b, Node n)
{
	SymTab *t = graph_syms(b->g);
	Node x = node_in(b->g, n, 0);
	Shape s = aten_shape(b, x);
	uint32_t ranks;
	const Sym *take = node_ints(b->g, n, "output_split_sizes", &ranks),
		  *give = node_ints(b->g, n, "input_split_sizes", &ranks);
	if (!s.rank)
		return (Node){0};
	if (is_complex(b, x))
		return on_pairs(b, n, x);
	Sym row = b_int(b, 1), all = b_int(b, 0);
	for (uint32_t d = 1; d < s.rank; d++)
		row = sym_mul(t, row, s.dim[d]);
	Sym *more = ARENA_ARRAY(b->g->ir->ctx->scratch, Sym, 2 * (ranks + 1) + 1);
	more[0] = more[ranks + 1] = b_int(b, ranks);
	for (uint32_t k = 0; k < ranks; k++) {
		more[1 + k] = sym_mul(t, give[k], row);
		more[ranks + 2 + k] = sym_mul(t, take[k], row);
		all = sym_add(t, all, take[k]);
	}
	more[2 * (ranks + 1)] = sym_mul(t, all, row);
	s.dim[0] = all;
	Node y = exchange(b, "all_to_all", b_ravel(b, x), n, ranks, more, 2 * (ranks + 1) + 1);
	return y.i ? b_reshape(b, y, s.rank, s.dim) : y;
}

/* Executes n with the batch as second dimension. */
static Node batch_second(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	const uint32_t narg = op_schema(node_op(b->g, n))->narg;
	(void)batched, (void)size;
	Node x = batch_to(b, in[0], 1);
	Node y = x.i ? b_call(b, node_op(b->g, n), &x, 1, batch_attrs(b, n), narg) : x;
	return batch_from(b, y, 1);
}

OP(_c10d_functional_all_gather_into_tensor){
	.schema = "_c10d_functional.all_gather_into_tensor(Tensor input, int group_size, str "
		  "group_name) -> Tensor",
	.aliases = "_c10d_functional_autograd.all_gather_into_tensor",
	.doc = "input of all ranks of a group, in their order along the first dimension, on each",
	.effect = true,
	.collective = always,
	.whole = true,
	.infer = infer_gathered,
	.build = build_all_gather,
	.expands = EXPANDS_IN_DECOMPOSE,
	.vjp = "[_c10d_functional.reduce_scatter_tensor(g, \"sum\", group_size, group_name)]",
	.jvp = "_c10d_functional.all_gather_into_tensor(t_input, group_size, group_name)",
	.batch = batch_second,
	.no_sample = TESTS,
};

static bool adjoint_reduce_scatter(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	if (!want[0] || !ct[0].i)
		return true;
	TRY(derives(b, n, is_linear(b, n)));
	const Attr attr[] = {attr_none(), attr_int(b->g->ir, ranks_of(b, n)),
			     *node_attr(b->g, n, "group_name")};
	g[0] = b_call(b, OP__c10d_functional_all_gather_into_tensor, &ct[0], 1, attr, 3);
	if (g[0].i && is_kind(b, n, "avg"))
		g[0] = b_bin_scalar(b, OP_div, g[0], (double)ranks_of(b, n));
	return g[0].i;
}

static bool tangent_reduce_scatter(Build *b, Node n, const Node *t, Node *ty)
{
	if (!t[0].i)
		return true;
	TRY(derives(b, n, is_linear(b, n)));
	ty[0] = b_call(b, node_op(b->g, n), &t[0], 1, batch_attrs(b, n), 4);
	return ty[0].i;
}

OP(_c10d_functional_reduce_scatter_tensor){
	.schema = "_c10d_functional.reduce_scatter_tensor(Tensor input, str reduce_op, int "
		  "group_size, str group_name) -> Tensor",
	.aliases = "_c10d_functional_autograd.reduce_scatter_tensor",
	.doc = "all_reduce of input, of which rank r of the group gets slice r along the first "
	       "dimension",
	.effect = true,
	.collective = always,
	.whole = true,
	.infer = infer_scattered,
	.build = build_reduce_scatter,
	.expands = EXPANDS_IN_DECOMPOSE,
	.adjoint = adjoint_reduce_scatter,
	.tangent = tangent_reduce_scatter,
	.batch = batch_second,
	.no_sample = TESTS,
};

OP(_c10d_functional_all_to_all_single){
	.schema =
		"_c10d_functional.all_to_all_single(Tensor input, int[] output_split_sizes, int[] "
		"input_split_sizes, str group_name) -> Tensor",
	.aliases = "_c10d_functional_autograd.all_to_all_single",
	.doc = "slices of input along the first dimension, slice r for rank r of the group, and in "
	       "their place those that came from the ranks",
	.effect = true,
	.collective = always,
	.whole = true,
	.infer = infer_exchanged,
	.build = build_all_to_all,
	.expands = EXPANDS_IN_DECOMPOSE,
	.vjp = "[_c10d_functional.all_to_all_single(g, input_split_sizes, output_split_sizes, "
	       "group_name)]",
	.jvp = "_c10d_functional.all_to_all_single(t_input, output_split_sizes, input_split_sizes, "
	       "group_name)",
	.batch = batch_second,
	.no_sample = TESTS,
};

/* ---- broadcast, reduce ---- */

/* Sets *rank to an argument that names a rank. */
static bool rank_of(Build *b, Node n, const char *name, int64_t ranks, Sym *rank)
{
	const int64_t r = aten_int(b, n, name);
	*rank = b_int(b, r);
	if (r >= 0 && r < ranks)
		return true;
	b_error(b, "%s: %s is rank %lld of %lld", op_name(node_op(b->g, n)), name, (long long)r,
		(long long)ranks);
	return false;
}

static Node build_broadcast(Build *b, Node n)
{
	Node x = node_in(b->g, n, 0);
	const Shape s = aten_shape(b, x);
	const int64_t ranks = ranks_of(b, n);
	Sym source;
	if (!ranks || !rank_of(b, n, "src", ranks, &source))
		return (Node){0};
	if (is_complex(b, x))
		return on_pairs(b, n, x);
	Node y = exchange(b, "broadcast", b_ravel(b, x), n, ranks, &source, 1);
	return y.i ? b_reshape(b, y, s.rank, s.dim) : y;
}
OP(_c10d_functional_broadcast){
	.schema = "_c10d_functional.broadcast(Tensor input, int src, str group_name, int "
		  "group_size=0) -> Tensor",
	.doc = "input of rank src of a group, on each of its ranks",
	.effect = true,
	.collective = always,
	.whole = true,
	.infer = infer_unchanged,
	.build = build_broadcast,
	.expands = EXPANDS_IN_DECOMPOSE,
	.vjp = "[reduce_to(g, src, group_name, group_size)]",
	.jvp = "_c10d_functional.broadcast(t_input, src, group_name, group_size)",
	.batch_leading = true,
	.no_sample = TESTS,
};

static Node build_reduce_to(Build *b, Node n)
{
	Node x = node_in(b->g, n, 0);
	const Shape s = aten_shape(b, x);
	const int64_t ranks = ranks_of(b, n);
	Sym target;
	if (!ranks || !rank_of(b, n, "dst", ranks, &target))
		return (Node){0};
	if (is_complex(b, x))
		return on_pairs(b, n, x);
	Node rows = exchange(b, "gather", b_ravel(b, x), n, ranks, &target, 1);
	Node y = rows.i ? b_reduce(b, REDUCE_SUM, rows, 1, DT_none) : rows;
	return y.i ? b_reshape(b, y, s.rank, s.dim) : y;
}
OP(reduce_to){
	.schema = "reduce_to(Tensor input, int dst, str group_name, int group_size=0) -> Tensor",
	.doc = "the sum of input of all ranks of a group on its rank dst, zeros on others: the "
	       "derivative of broadcast",
	.effect = true,
	.collective = always,
	.whole = true,
	.infer = infer_unchanged,
	.build = build_reduce_to,
	.expands = EXPANDS_IN_DECOMPOSE,
	.vjp = "[_c10d_functional.broadcast(g, dst, group_name, group_size)]",
	.jvp = "reduce_to(t_input, dst, group_name, group_size)",
	.batch_leading = true,
	.no_sample = TESTS,
};

/* ---- several at once ---- */

/* Adds the operator for each tensor, with n's other arguments. */
static Node each(Build *b, Node n, int op)
{
	uint32_t first, count = node_args(b->g, n, "inputs", &first);
	Node *y = ARENA_ARRAY(b->g->ir->ctx->scratch, Node, count + 1);
	const Attr *attr = batch_attrs(b, n);
	Attr one[4] = {attr_none()};
	const uint32_t narg = op_schema((Op)op)->narg;
	memcpy(one + 1, attr + 1, (narg - 1) * sizeof *one);
	for (uint32_t k = 0; k < count; k++) {
		Node x = node_in(b->g, n, first + k);
		y[k] = b_call(b, (Op)op, &x, 1, one, narg);
		if (!y[k].i)
			return y[k];
	}
	return b_tuple(b, y, count);
}

OP(_c10d_functional_all_reduce_coalesced){
	.schema = "_c10d_functional.all_reduce_coalesced(Tensor[] inputs, str reduce_op, str "
		  "group_name, int group_size=0) -> Tensor[]",
	.doc = "all_reduce of each of inputs",
	.build_as = {each, OP__c10d_functional_all_reduce},
	.collective = always,
	.no_sample = TESTS,
};

OP(_c10d_functional_all_gather_into_tensor_coalesced){
	.schema = "_c10d_functional.all_gather_into_tensor_coalesced(Tensor[] inputs, int "
		  "group_size, str group_name) -> Tensor[]",
	.doc = "all_gather_into_tensor of each of inputs",
	.build_as = {each, OP__c10d_functional_all_gather_into_tensor},
	.collective = always,
	.no_sample = TESTS,
};

OP(_c10d_functional_reduce_scatter_tensor_coalesced){
	.schema =
		"_c10d_functional.reduce_scatter_tensor_coalesced(Tensor[] inputs, str reduce_op, "
		"int group_size, str group_name) -> Tensor[]",
	.doc = "reduce_scatter_tensor of each of inputs",
	.build_as = {each, OP__c10d_functional_reduce_scatter_tensor},
	.collective = always,
	.no_sample = TESTS,
};

/* ---- waiting ---- */

OP(_c10d_functional_wait_tensor){
	.schema = "_c10d_functional.wait_tensor(Tensor tensor) -> Tensor",
	.aliases = "_c10d_functional._wrap_tensor_autograd",
	.doc = "tensor, once the collective that gives it is complete: it is",
	.expand = "tensor",
	.no_sample = TESTS,
};

static Node build_wait_tensors(Build *b, Node n)
{
	uint32_t first, count = node_args(b->g, n, "tensors", &first);
	Node *y = ARENA_ARRAY(b->g->ir->ctx->scratch, Node, count + 1);
	for (uint32_t k = 0; k < count; k++)
		y[k] = node_in(b->g, n, first + k);
	return b_tuple(b, y, count);
}
OP(_c10d_functional_wait_tensors){
	.schema = "_c10d_functional.wait_tensors(Tensor[] tensors) -> Tensor[]",
	.doc = "tensors, once the collectives that give them are complete: they are",
	.build = build_wait_tensors,
	.no_sample = TESTS,
};
