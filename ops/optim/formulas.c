/* Losses, and schedules of numbers: what a step of training computes besides the model and its
 * optimiser. The losses are PyTorch's with the mean; the schedules are closed forms of PyTorch's.
 */
#include <math.h>
#include <string.h>

#include "base/scan.h"
#include "ops/optim/optim.h"
#include "ops/rules/expand_priv.h"

#define CLASSES_FIRST "x = movedim.int(x, dim, 1); "

static const Formula losses[] = {
	{.name = "cross_entropy",
	 .in = "x label",
	 .numbers = "dim = 1; label_smoothing = 0; ignore_index = -100",
	 .value = CLASSES_FIRST
	 "cross_entropy_loss(x, label, none, 1, ignore_index, label_smoothing)",
	 .classes = true},
	{.name = "nll",
	 .in = "x label",
	 .numbers = "dim = 1; ignore_index = -100",
	 .value = CLASSES_FIRST "nll_loss_nd(x, label, none, 1, ignore_index)",
	 .classes = true},
	{.name = "mse", .in = "x label", .numbers = "", .value = "mse_loss(x, label, 1)"},
	{.name = "l1", .in = "x label", .numbers = "", .value = "l1_loss(x, label, 1)"},
	{.name = "smooth_l1",
	 .in = "x label",
	 .numbers = "beta = 1",
	 .value = "smooth_l1_loss(x, label, 1, beta)"},
	{.name = "huber",
	 .in = "x label",
	 .numbers = "delta = 1",
	 .value = "huber_loss(x, label, 1, delta)"},
	{.name = "bce", .in = "x label", .numbers = "", .value = "binary_cross_entropy(x, label)"},
	{.name = "bce_with_logits",
	 .in = "x label",
	 .numbers = "",
	 .value = "binary_cross_entropy_with_logits(x, label)"},
};

/* warm: the part of the way up that is done at t; done: the part of the steps behind it. */
#define WARM_UP                                                                                    \
	"warm = clamp((t + 1)/(warmup + 1), none, 1.0); "                                          \
	"done = clamp((t - warmup)/(steps - warmup), 0.0, 1.0); "

static const Formula schedules[] = {
	{.name = "constant",
	 .in = "t",
	 .numbers = "value; warmup = 0",
	 .value = "warm = clamp((t + 1)/(warmup + 1), none, 1.0); value*warm"},
	{.name = "linear",
	 .in = "t",
	 .numbers = "value; steps; warmup = 0; min = 0",
	 .value = WARM_UP "warm*(value + (min - value)*done)"},
	{.name = "cosine",
	 .in = "t",
	 .numbers = "value; steps; warmup = 0; min = 0",
	 .value = WARM_UP "warm*(min + (value - min)*(0.5 + 0.5*cos(3.141592653589793*done)))"},
	{.name = "step",
	 .in = "t",
	 .numbers = "value; every; factor = 0.1",
	 .value = "value*pow(factor, floor(t/every))"},
};

const Formula *loss_at(uint32_t k)
{
	return k < sizeof losses / sizeof *losses ? &losses[k] : NULL;
}

const Formula *schedule_at(uint32_t k)
{
	return k < sizeof schedules / sizeof *schedules ? &schedules[k] : NULL;
}

/* Returns an attribute for a number: an integer if it is one and the list writes it as one. */
static Attr attr_number(Build *b, double v)
{
	return v == floor(v) && fabs(v) < 1e15 ? attr_int(b->g->ir, (int64_t)v) : attr_float(v);
}

Node formula_value(Build *b, const Formula *f, const Node *in, const double *number)
{
	Ctx *ctx = b->g->ir->ctx;
	const uint32_t errors = ctx->nerror;
	const OptimList numbers = optim_list(ctx->scratch, f->numbers);
	Eval *e = arena_calloc(ctx->scratch, 1, sizeof *e);
	*e = (Eval){.b = b, .p = f->value};
	uint32_t k = 0;
	for (const char *s = f->in; *s; scan_blanks(&s)) {
		const size_t n = scan_word(s);
		expand_let(e, arena_strndup(ctx->scratch, s, n),
			   (Val){.kind = VAL_node, .node = in[k++]});
		s += n;
	}
	for (uint32_t i = 0; i < numbers.n; i++)
		expand_let(e, numbers.item[i].name,
			   (Val){.kind = VAL_attr, .attr = attr_number(b, number[i])});
	const Val v = expand_program(e);
	if (e->err && ctx->nerror == errors)
		ctx_bug(ctx, "formula %s: %s at \"%s\"", f->name, e->err, e->errp);
	return ctx->nerror == errors && v.kind == VAL_node ? v.node : (Node){0};
}
