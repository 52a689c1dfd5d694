/* Operators that update what they observe. Normalisations update running statistics without saying
 * so. */
#include <string.h>

#include "frontend/pt2/priv.h"
#include "ops/rules/running.h"

static bool update(Scope *s, const json_t *node, const Running *r)
{
	State *st = s->st;
	Build *b = &s->b;
	uint32_t input = arg_value(s, node, "input", 0);
	uint32_t mean_to = arg_value(s, node, "running_mean", 3);
	uint32_t var_to = arg_value(s, node, "running_var", 4);
	if (!input || (!mean_to && !var_to))
		return true;
	Node x = value_read(st, b, input), none = {0};
	if (r->some && sym_is(st->im->syms, type_numel(st->im->ir, node_type_id(st->g, x)), 0))
		return true;
	Node mean = mean_to ? value_read(st, b, mean_to) : none,
	     var = var_to ? value_read(st, b, var_to) : none;
	Node both = b_running_stats(b, r, x, mean, var, arg_double(node, "momentum", 6, 0.1));
	TRY(!mean_to || value_write(st, b, mean_to, b_get(b, both, 0)));
	return !var_to || value_write(st, b, var_to, b_get(b, both, 1));
}

bool import_running_stats(Scope *s, const json_t *node, const char *name)
{
	const Running *r = running_of(name);
	return !r || (r->flag && !arg_bool(node, r->flag, 5, false)) || update(s, node, r);
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

/* Returns the types of the values, where none was clamped, and of what is observed. */
static TypeId observed_types(const Scope *s, const NodeCall *c)
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
	NodeCall c;
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
