/* Optimisers of the table (ops/optim): what they have, and their steps in traces. */
#include "driver/api/trace.h"
#include "ops/optim/optim.h"

#include <stdlib.h>
#include <string.h>

bool weft_table_optimizer(uint32_t k, WeftOptimizer *out)
{
	const Optimizer *of = optim_at(k);
	if (!out)
		return false;
	const uint32_t size = out->size;
	WeftOptimizer o = {size, "", "", "", "", "", NULL, false};
	if (of)
		o = (WeftOptimizer){size,        of->name,  of->torch ? of->torch : "",
				    of->scalars, of->flags, of->states,
				    of->rows,    of->lazy};
	memcpy(out, &o, size < sizeof o ? size : sizeof o);
	return of != NULL;
}

/* The options of a call. */
typedef struct {
	TraceStep step; /* the first, for tracing_perform; of weft_optimizer_state without trace */
	Weft *w;
	const char *function;
	const WeftArg *option;
	uint32_t noption;
	const Optimizer *of;
	OptimList scalars, flags;
	bool flag[OPTIM_MAX_ITEMS], said[OPTIM_MAX_ITEMS];
	Node scalar[OPTIM_MAX_ITEMS];
	double number[OPTIM_MAX_ITEMS];
	uint32_t k; /* of weft_optimizer_state */
	WeftOptimizerState *out;
} OptimCall;

static bool refuse(const OptimCall *c, const char *name, const char *what)
{
	return ctx_error(c->w->ctx, c->step.t ? c->step.t->name : NULL, "%s: %s: %s", c->function,
			 name, what);
}

static bool take_scalar(OptimCall *c, const WeftArg *a, int at)
{
	switch (a->kind) {
	case WEFT_ARG_VALUE:
		if (!c->step.t) {
			c->scalar[at] = (Node){1}; /* some value */
			return true;
		}
		TRY(tracing_node(&c->step, a->u.value, &c->scalar[at]) &&
		    tracing_is_tensor(&c->step, c->step.t->scope, c->scalar[at]));
		const Type *type = node_type(c->step.t->scope->g, c->scalar[at]);
		return (!type->n && dtype_is_float(type->dtype)) ||
		       refuse(c, a->name, "expected a float without dimensions");
	case WEFT_ARG_FLOAT:
		c->number[at] = a->u.f;
		return true;
	case WEFT_ARG_INT:
		c->number[at] = (double)a->u.i;
		return true;
	default:
		return refuse(c, a->name, "expected a number");
	}
}

/* Sets what the options say, and defaults of the others. */
static bool read_options(OptimCall *c, const char *name)
{
	Arena *a = c->w->ctx->scratch;
	TRY(given_text(c->w, c->function, "the name of an optimiser", name) &&
	    given_list(c->w, c->function, "the options", c->option, c->noption));
	c->of = optim_find(name);
	if (!c->of)
		return refuse(c, name, "there is no optimiser of that name");
	c->scalars = optim_list(a, c->of->scalars);
	c->flags = optim_list(a, c->of->flags);
	for (uint32_t k = 0; k < c->scalars.n; k++)
		c->number[k] = strtod(c->scalars.item[k].value, NULL);
	for (uint32_t k = 0; k < c->noption; k++) {
		const WeftArg *o = &c->option[k];
		const int scalar = o->name ? optim_item(&c->scalars, o->name) : -1,
			  flag = o->name ? optim_item(&c->flags, o->name) : -1;
		if (scalar < 0 && flag < 0)
			return refuse(c, o->name ? o->name : "(no name)",
				      arena_printf(a, "%s has no such option", name));
		if (scalar >= 0)
			TRY(take_scalar(c, o, scalar));
		else if (o->kind != WEFT_ARG_BOOL)
			return refuse(c, o->name, "expected a bool");
		else
			c->flag[flag] = o->u.b;
		if (flag >= 0)
			c->said[flag] = true;
	}
	bool is[OPTIM_MAX_ITEMS] = {false};
	for (uint32_t k = 0; k < c->scalars.n; k++)
		is[k] = c->scalar[k].i || c->number[k] != 0;
	for (uint32_t k = 0; k < c->flags.n; k++)
		if (!c->said[k])
			c->flag[k] = optim_flag(&c->scalars, &c->flags.item[k], is);
	return true;
}

/* ---- states ---- */

static bool find_state(void *arg)
{
	OptimCall *c = arg;
	Arena *a = weft_arena(c->w);
	TRY(read_options(c, c->step.name));
	const OptimList states = optim_list(a, c->of->states);
	uint32_t n = 0;
	for (uint32_t k = 0; k < states.n; k++) {
		const OptimItem *i = &states.item[k];
		if (!optim_holds(&c->flags, c->flag, i->condition) || n++ != c->k)
			continue;
		const int of = optim_item(&c->scalars, i->value);
		WeftOptimizerState s = {c->out->size, i->name, i->key,
					of < 0 ? strtod(i->value, NULL) : c->number[of], i->number};
		memcpy(c->out, &s, s.size < sizeof s ? s.size : sizeof s);
		return true;
	}
	return false;
}

bool weft_optimizer_state(Weft *w, const char *optimizer, const WeftArg *option, uint32_t noption,
			  uint32_t k, WeftOptimizerState *out)
{
	OptimCall c = {.step = {.name = optimizer},
		       .w = w,
		       .function = "weft_optimizer_state",
		       .option = option,
		       .noption = noption,
		       .k = k,
		       .out = out};
	return w && out && boundary(w, find_state, &c);
}

/* ---- steps ---- */

typedef struct {
	OptimCall call; /* the first, for tracing_perform */
	const WeftValue *p, *g, *state;
	uint32_t n, nstate;
	WeftValue *out;
} Stepping;

static Node *nodes(const Stepping *s, const WeftValue *v, uint32_t n)
{
	const TraceStep *step = &s->call.step;
	Node *out = ARENA_ARRAY(s->call.w->ctx->scratch, Node, n);
	for (uint32_t k = 0; k < n; k++)
		if (!tracing_node(step, v[k], &out[k]) ||
		    !tracing_is_tensor(step, step->t->scope, out[k]))
			return NULL;
	return out;
}

static bool add_step(void *arg)
{
	Stepping *s = arg;
	OptimCall *c = &s->call;
	WeftTrace *t = c->step.t;
	TRY(tracing_ready(&c->step) && read_options(c, c->step.name) &&
	    given_list(c->w, c->function, "the parameters", s->p, s->n) &&
	    given_list(c->w, c->function, "the gradients", s->g, s->n) &&
	    given_list(c->w, c->function, "the states", s->state, s->nstate) &&
	    given_list(c->w, c->function, "room for results", s->out, s->n + s->nstate));
	Build b = tracing_build(t, arena_printf(c->w->ctx->scratch, "%s: call %u (%s)", t->name,
						++t->ncall, c->function));
	const Node *p = nodes(s, s->p, s->n), *g = nodes(s, s->g, s->n),
		   *state = nodes(s, s->state, s->nstate);
	TRY(p && g && state);
	Node *out = ARENA_ARRAY(c->w->ctx->scratch, Node, s->n + s->nstate);
	const OptimStep step = {.of = c->of,
				.flag = c->flag,
				.scalar = c->scalar,
				.number = c->number,
				.n = s->n,
				.p = p,
				.g = g,
				.state = state,
				.nstate = s->nstate};
	TRY(optim_step(&b, &step, out));
	for (uint32_t k = 0; k < s->n + s->nstate; k++)
		s->out[k] = tracing_value(t, out[k]);
	return true;
}

void weft_optimizer_step(WeftTrace *t, const char *optimizer, const WeftArg *option,
			 uint32_t noption, const WeftValue *p, const WeftValue *g, uint32_t n,
			 const WeftValue *state, uint32_t nstate, WeftValue *out)
{
	Stepping s = {.call = {.step = {.t = t, .name = optimizer},
			       .w = t ? t->w : NULL,
			       .function = "weft_optimizer_step",
			       .option = option,
			       .noption = noption},
		      .p = p,
		      .g = g,
		      .state = state,
		      .n = n,
		      .nstate = nstate,
		      .out = out};
	if (!(t && tracing_perform(&s.call.step, add_step)) && out)
		memset(out, 0, (n + nstate) * sizeof *out);
}
