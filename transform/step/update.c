/* Updates of a step: new values of parameters, of the optimiser's state, and of averages. */
#include <stdlib.h>

#include "ir/op/op.h"
#include "transform/step/making.h"

/* A state of a group, or a number of all of its parameters. */
typedef struct {
	Node node;
	uint32_t param; /* its number in the group; that of none if the state is a number */
} State;

/* Adds the states of a group: those that are there under its flags, in order. */
static bool add_states(Making *m, const StepGroup *s, const Node *p, State *state, uint32_t *n)
{
	Arena *a = m->ctx->arena;
	const OptimList scalars = optim_list(a, s->of->scalars),
			flags = optim_list(a, s->of->flags), states = optim_list(a, s->of->states);
	DType count = DT_f64; /* of numbers: as PyTorch's in a model of that dtype */
	for (uint32_t k = 0; k < s->nparam; k++)
		if (node_dtype(m->g, p[k]) != DT_f64)
			count = DT_f32;
	*n = 0;
	for (uint32_t j = 0; j < states.n; j++) {
		const OptimItem *i = &states.item[j];
		if (!optim_holds(&flags, s->flag, i->condition))
			continue;
		const int of = optim_item(&scalars, i->value);
		const double begins = of < 0 ? strtod(i->value, NULL) : s->scalar[of].number;
		if (i->number) {
			state[*n].param = s->nparam;
			TRY(making_add_state(
				m, arena_printf(a, "optimizer.%u.%s", s->number, i->name), count, 1,
				(int64_t[]){s->nparam}, begins, &state[(*n)++].node));
			continue;
		}
		for (uint32_t k = 0; k < s->nparam; k++) {
			const Const c = *ir_const_of(m->g->ir, s->param[k]);
			state[*n].param = k;
			TRY(making_add_state(m, arena_printf(a, "state.%s.%s", c.name, i->key),
					     c.dtype, c.rank, c.dim, begins, &state[(*n)++].node));
		}
	}
	return true;
}

/* Moves the averages of parameters towards their new values. */
static bool average(Making *m, const StepGroup *s, const Node *value)
{
	Node stays, state;
	if (!m->s->ema)
		return true;
	TRY(making_number(m, m->s->ema, &stays));
	for (uint32_t k = 0; k < s->nparam; k++) {
		const Const c = *ir_const_of(m->g->ir, s->param[k]);
		const DType d = c.dtype == DT_f64 ? DT_f64 : DT_f32;
		TRY(making_add_state_of(m, arena_printf(m->ctx->arena, "ema.%s", c.name), c.dtype,
					c.rank, c.dim, c.data, &state));
		const Node old = b_convert(&m->b, state, d), new = b_convert(&m->b, value[k], d),
			   one = b_scalar(&m->b, DT_f64, 1),
			   part = b_bin(&m->b, OP_sub, one, stays),
			   apart = b_bin(&m->b, OP_sub, new, old),
			   share = b_convert(&m->b, part, d),
			   step = b_bin(&m->b, OP_mul, apart, share),
			   now = b_bin(&m->b, OP_add, old, step);
		making_set(m, making_input_of(m->g, state), b_convert(&m->b, now, c.dtype));
	}
	return true;
}

/* Writes the new value of a parameter or its state: of some rows, as they were if the step is
 * skipped. Returns the value of all rows. */
static Node write_value(Making *m, const StepRows *r, Node old, Node taken, Node value)
{
	if (!r->at.i) {
		making_set(m, making_input_of(m->g, old), value);
		return value;
	}
	if (m->skip.i)
		value = b_select(&m->b, m->skip, taken, value);
	value = rows_put(&m->b, r, old, value);
	making_set_always(m, old, value);
	return value;
}

bool making_update(Making *m, const StepGroup *s, const Node *gradient, const StepRows *rows)
{
	static const StepRows all;
	Arena *a = m->ctx->scratch;
	const OptimList scalars = optim_list(a, s->of->scalars);
	const uint32_t n = s->nparam, most = OPTIM_MAX_ITEMS * n;
	State *state = ARENA_ARRAY(a, State, most);
	Node *own = ARENA_ARRAY(a, Node, n), *in = ARENA_ARRAY(a, Node, n + most),
	     *out = ARENA_ARRAY(a, Node, n + most), scalar[OPTIM_MAX_ITEMS] = {{0}};
	double number[OPTIM_MAX_ITEMS];
	uint32_t nstate;
	for (uint32_t k = 0; k < n; k++)
		own[k] = m->g->input.data[making_state_of(m->g, s->param[k])].node;
	TRY(add_states(m, s, own, state, &nstate));
	for (uint32_t k = 0; k < scalars.n; k++) {
		number[k] = s->scalar[k].number;
		TRY(making_number_node(m, &s->scalar[k], &scalar[k]));
	}
	for (uint32_t k = 0; k < n; k++)
		in[k] = rows_take(&m->b, &rows[k], own[k]);
	for (uint32_t k = 0; k < nstate; k++)
		in[n + k] = rows_take(&m->b, state[k].param < n ? &rows[state[k].param] : &all,
				      state[k].node);
	TRY(optim_step(&m->b,
		       &(OptimStep){.of = s->of,
				    .flag = s->flag,
				    .scalar = scalar,
				    .number = number,
				    .n = n,
				    .p = in,
				    .g = gradient,
				    .state = in + n,
				    .nstate = nstate},
		       out));
	for (uint32_t k = 0; k < n; k++)
		out[k] = write_value(m, &rows[k], own[k], in[k], out[k]);
	for (uint32_t k = 0; k < nstate; k++)
		write_value(m, state[k].param < n ? &rows[state[k].param] : &all, state[k].node,
			    in[n + k], out[n + k]);
	return average(m, s, out);
}
