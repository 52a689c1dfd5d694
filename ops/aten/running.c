/* In training, batch_norm stores (1 - momentum) * running + momentum * batch statistics. The mean
 * and variance here are the same expressions that the expansion of batch_norm computes, so they
 * merge with it. */
#include "ops/rules/running.h"

#include "ops/aten/priv.h"

static Node mean_over(Build *b, Node x, uint32_t dims, Sym n, bool keep)
{
	Node sum = keep ? b_reduce_keep(b, REDUCE_SUM, x, dims, DT_none)
			: b_reduce(b, REDUCE_SUM, x, dims, DT_none);
	return b_bin(b, OP_div, sum, b_convert(b, b_from_size(b, n), node_dtype(b->g, x)));
}

/* Returns old * (1 - momentum) + stat * momentum where `some` holds (none: always). */
static Node blend(Build *b, Node old, Node stat, double momentum, Node some)
{
	if (!old.i)
		return b_full(b, DT_f32, 0, 1, (Sym[]){b_int(b, 0)});
	Node kept = b_bin_scalar(b, OP_mul, old, 1 - momentum);
	Node added = b_bin_scalar(b, OP_mul, b_convert(b, stat, node_dtype(b->g, old)), momentum);
	Node blended = b_bin(b, OP_add, kept, added);
	return some.i ? b_select(b, some, blended, old) : blended;
}

/* Returns the dimensions that statistics are taken over, and how many elements these have. */
static uint32_t stat_dims(Build *b, Node x, bool instance, Sym *n)
{
	uint32_t dims = 0;
	*n = b_int(b, 1);
	for (uint32_t k = instance ? 2 : 0; k < node_rank(b->g, x); k++)
		if (k != 1) {
			dims |= 1u << k;
			*n = sym_mul(b_syms(b), *n, b_dim(b, x, k));
		}
	return dims;
}

static Node build_running_stats(Build *b, Node node)
{
	Node x = arg(b, node, "input"), old[2] = {arg(b, node, "mean"), arg(b, node, "var")},
	     none = {0};
	const bool instance = node_bool(b->g, node, "instance");
	double momentum = node_float(b->g, node, "momentum");
	Sym all = type_numel(b->g->ir, node_type_id(b->g, x)), zero = b_int(b, 0), n,
	    batch = b_dim(b, x, 0);
	const bool watched = node_bool(b->g, node, "some") && sym_lt(b_syms(b), zero, all) != YES;
	Node some = watched ? b_bin(b, OP_gt, b_from_size(b, all), b_from_size(b, zero)) : none;
	uint32_t dims = stat_dims(b, x, instance, &n);
	x = b_convert(b, x, dtype_compute(node_dtype(b->g, x)));
	Node centred = b_bin(b, OP_sub, x, mean_over(b, x, dims, n, true));
	Node mean = mean_over(b, x, dims, n, false);
	Sym free = sym_addi(b_syms(b), n, -1); /* unbiased */
	Node var = mean_over(b, b_bin(b, OP_mul, centred, centred), dims, free, false);
	if (instance) {
		mean = mean_over(b, mean, 1, batch, false);
		var = mean_over(b, var, 1, batch, false);
	}
	Node now[2] = {blend(b, old[0], mean, momentum, some),
		       blend(b, old[1], var, momentum, some)};
	for (uint32_t k = 0; k < 2; k++)
		now[k] = aten_detached(b, now[k]); /* as PyTorch writes them */
	return b_tuple(b, now, 2);
}

static TypeId infer_running_stats(Graph *g, Op op, const Node *in, uint32_t nin, AttrId attr,
				  const char *where)
{
	TypeId elem[2];
	(void)op, (void)attr;
	if (!in[0].i || node_rank(g, in[0]) < 2)
		return ctx_error(g->ir->ctx, where, "statistics of something without channels"),
		       (TypeId){0};
	for (uint32_t k = 0; k < 2; k++)
		elem[k] = k + 1 < nin && in[k + 1].i
				  ? node_type_id(g, in[k + 1])
				  : ir_type_ints(g->ir, DT_f32, 1, (int64_t[]){0});
	return ir_tuple(g->ir, 2, elem);
}
OP(running_stats){
	.schema = "running_stats(Tensor input, Tensor? mean, Tensor? var, float momentum, bool "
		  "instance=False, "
		  "bool some=False) -> (Tensor, Tensor)",
	.doc = "the running mean and variance behind a normalisation that trains",
	.infer = infer_running_stats,
	.build = build_running_stats,
	.no_sample = "part of normalisations that train: tests/data/mode",
};
