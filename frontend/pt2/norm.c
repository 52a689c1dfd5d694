/* Operators that update what they observe. Normalisations update running statistics without saying
 * so: in training, batch_norm stores (1 - momentum) * running + momentum * batch statistics. The
 * mean and variance here are the same expressions that the operator's own expansion computes, so
 * they merge with it. */
#include <string.h>

#include "frontend/pt2/priv.h"

typedef struct {
	const char *name, *flag; /* argument that says whether statistics are taken; NULL: always */
	bool instance;           /* statistics of each sample, averaged over the batch */
	bool some;               /* where there is no element, they stay */
} Norm;

static const Norm norms[] = {
	{"aten.batch_norm", "training", false, true},
	{"aten.native_batch_norm", "training", false},
	{"aten.cudnn_batch_norm", "training", false},
	{"aten._native_batch_norm_legit", "training", false},
	{"aten._batch_norm_with_update", NULL, false},
	{"aten.instance_norm", "use_input_stats", true},
};

static Node mean_over(Build *b, Node x, uint32_t dims, Sym n, bool keep)
{
	Node sum = keep ? b_reduce_keep(b, REDUCE_SUM, x, dims, DT_none)
			: b_reduce(b, REDUCE_SUM, x, dims, DT_none);
	return b_bin(b, OP_div, sum, b_convert(b, b_from_size(b, n), node_dtype(b->g, x)));
}

/* running * (1 - momentum) + stat * momentum, written to the running tensor where `some` holds
 * (none: always). */
static bool blend(Scope *s, uint32_t running, Node stat, double momentum, Node some)
{
	Build *b = &s->b;
	Node old = value_read(s->st, b, running);
	DType d = node_dtype(s->st->g, old);
	Node kept = b_bin_scalar(b, OP_mul, old, 1 - momentum);
	Node added = b_bin_scalar(b, OP_mul, b_convert(b, stat, d), momentum);
	Node blended = b_bin(b, OP_add, kept, added);
	if (some.i)
		blended = b_select(b, some, blended, old);
	return value_write(s->st, b, running, blended);
}

static bool update(Scope *s, const json_t *node, const Norm *norm)
{
	State *st = s->st;
	SymTab *t = st->im->syms;
	Build *b = &s->b;
	uint32_t input = arg_value(s, node, "input", 0);
	uint32_t mean_to = arg_value(s, node, "running_mean", 3);
	uint32_t var_to = arg_value(s, node, "running_var", 4);
	if (!input || (!mean_to && !var_to))
		return true;
	double momentum = arg_double(node, "momentum", 6, 0.1);
	Node x = value_read(st, b, input), some = {0};
	Sym all = type_numel(st->im->ir, node_type_id(st->g, x)), zero = sym_int(t, 0);
	if (norm->some && sym_is(t, all, 0))
		return true;
	if (norm->some && sym_lt(t, zero, all) != YES)
		some = b_bin(b, OP_gt, b_from_size(b, all), b_from_size(b, zero));
	uint32_t rank = node_rank(st->g, x), dims = 0;
	Sym n = sym_int(t, 1), batch = node_dim(st->g, x, 0);
	for (uint32_t k = norm->instance ? 2 : 0; k < rank; k++)
		if (k != 1) {
			dims |= 1u << k;
			n = sym_mul(t, n, node_dim(st->g, x, k));
		}
	x = b_convert(b, x, dtype_compute(node_dtype(st->g, x)));
	Node centred = b_bin(b, OP_sub, x, mean_over(b, x, dims, n, true));
	Node mean = mean_over(b, x, dims, n, false);
	Sym free = sym_addi(t, n, -1); /* unbiased */
	Node var = mean_over(b, b_bin(b, OP_mul, centred, centred), dims, free, false);
	if (norm->instance) {
		mean = mean_over(b, mean, 1, batch, false);
		var = mean_over(b, var, 1, batch, false);
	}
	TRY(!mean_to || blend(s, mean_to, mean, momentum, some));
	return !var_to || blend(s, var_to, var, momentum, some);
}

bool import_running_stats(Scope *s, const json_t *node, const char *name)
{
	for (size_t k = 0; k < sizeof norms / sizeof *norms; k++) {
		const Norm *norm = &norms[k];
		if (!strcmp(name, norm->name) &&
		    (!norm->flag || arg_bool(node, norm->flag, 5, false)))
			return update(s, node, norm);
	}
	return true;
}

/* ---- fake quantisation with an observer: (output, mask), and four operands are replaced ---- */

enum {
	OBSERVED_OPERAND = 3,
	OBSERVED_RESULT = 2,
	OBSERVED = 4
}; /* running_min, running_max, scale, zero_point */

Op observed_operator(const char *name)
{
	bool known = !strcmp(name, "aten.fused_moving_avg_obs_fake_quant") ||
		     !strcmp(name, "aten._fused_moving_avg_obs_fq_helper");
	return known ? OP_aten__fused_moving_avg_obs_fq_helper_functional : OP_none;
}

/* The values, where none was clamped, and what is observed. */
static TypeId observed_types(const Scope *s, const Call *c)
{
	const Graph *g = s->st->g;
	Ir *ir = s->st->im->ir;
	Type mask = *node_type(g, c->in.data[0]);
	TypeId elem[OBSERVED_RESULT + OBSERVED] = {node_type_id(g, c->in.data[0]),
						   ir_type(ir, DT_bool, mask.n, mask.dim)};
	for (uint32_t k = 0; k < OBSERVED; k++)
		elem[OBSERVED_RESULT + k] = node_type_id(g, c->in.data[OBSERVED_OPERAND + k]);
	return ir_tuple(ir, OBSERVED_RESULT + OBSERVED, elem);
}

bool import_observed(Scope *s, const json_t *node, Op functional)
{
	State *st = s->st;
	Call c;
	Results r;
	TRY(call_read(s, node, functional, &c) && read_results(s, node, &r));
	if (r.n > OBSERVED_RESULT)
		return ctx_error(st->im->ctx, s->where,
				 "%u results, expected the values and the mask", r.n);
	AttrId attr = ir_attrs(st->im->ir, op_schema(functional)->narg, c.attr);
	Node made = graph_add(st->g, (Node){0}, functional, c.in.data, c.in.n, attr,
			      observed_types(s, &c), s->b.loc);
	graph_set_name(st->g, made, node_label(node));
	for (uint32_t k = 0; k < r.n; k++)
		TRY(!r.data[k].name ||
		    scope_bind(s, r.data[k].name,
			       value_new(st, b_get(&s->b, made, k), &r.data[k].meta)));
	for (uint32_t k = 0; k < OBSERVED; k++) {
		uint32_t to = c.value.data[OBSERVED_OPERAND + k];
		TRY(!to || value_write(st, &s->b, to, b_get(&s->b, made, OBSERVED_RESULT + k)));
	}
	return true;
}
