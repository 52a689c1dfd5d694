/* The optimisers. The language is described in ops/optim/optim.h; the order of operations is that
 * of PyTorch's implementation for one tensor, so that results differ by little more than nothing.
 */
#include "ops/optim/optim.h"

#include <string.h>

#define BETAS        "beta1 = 0.9 : betas.0; beta2 = 0.999 : betas.1; "
#define SIGN         "g = -g if maximize; "
#define DECAY        "g = g + weight_decay*p; "
#define DECAY_EITHER "p = p*decay if decoupled; g = g + weight_decay*p if not decoupled; "
#define MEAN         "exp_avg = lerp.Tensor(exp_avg, g, w1); "
#define MOMENTS      MEAN "exp_avg_sq = beta2*exp_avg_sq + w2*g*g; "
#define MOMENTS_BEFORE                                                                             \
	"step = step + 1; w1 = 1 - beta1; w2 = 1 - beta2; decay = 1 - lr*weight_decay; "           \
	"c1 = 1 - pow(beta1, step); c2 = 1 - pow(beta2, step); "

#define ADAM_STATES "step[] = 0; exp_avg = 0; exp_avg_sq = 0; max_exp_avg_sq = 0 if amsgrad"
#define ADAM_BEFORE MOMENTS_BEFORE "size = lr/c1; root = sqrt(c2)"
#define ADAM_UPDATE                                                                                \
	SIGN DECAY_EITHER MOMENTS "v = exp_avg_sq; "                                               \
				  "max_exp_avg_sq = maximum(max_exp_avg_sq, v) if amsgrad; v = "   \
				  "max_exp_avg_sq if amsgrad; "                                    \
				  "p = p - size*exp_avg/(sqrt(v)/root + eps)"

/* One step of Newton and Schulz towards the orthogonal matrix that is nearest to x, whose elements
 * PyTorch rounds to bf16 after each product. */
#define BF16(value) "convert(convert(" value ", dtype=bf16), dtype=f32)"
#define GRAM        "m = " BF16("matmul(x, transpose.int(x, 0, 1))") "; "
#define SQUARED     "u = " BF16("b*m + c*matmul(m, m)") "; "
#define ORTHOGONAL  GRAM SQUARED "x = " BF16("a*x + matmul(u, x)") "; "
#define TURN        "x = transpose.int(x, 0, 1) if tall; "
#define NORM        "norm = " BF16("linalg_vector_norm(x, 2)") "; "
#define NORMALISE   NORM "x = " BF16("x/maximum(norm, eps)") "; "
#define ROUND       "x = " BF16("x") "; "
#define FIVE        ORTHOGONAL ORTHOGONAL ORTHOGONAL ORTHOGONAL ORTHOGONAL
#define MUON_MEAN                                                                                  \
	"momentum_buffer = lerp.Tensor(momentum_buffer, g, w); x = momentum_buffer; "              \
	"x = lerp.Tensor(g, x, momentum) if nesterov; "
#define MUON_SIZE                                                                                  \
	"size = lr*aspect; size = lr*ratio if spectral_unclamped; "                                \
	"size = lr*0.2*width if match_rms_adamw; "
#define MUON_UPDATE MUON_MEAN ROUND TURN NORMALISE FIVE TURN MUON_SIZE "p = p*decay - size*x"

static const Optimizer table[] = {
	{
		.name = "sgd",
		.torch = "SGD",
		.scalars = "lr = 0.001; momentum = 0; dampening = 0; weight_decay = 0",
		.flags = "nesterov; maximize; buffered : momentum",
		.states = "started[] = 0 : - if buffered; momentum_buffer = 0 if buffered",
		.before = "new = 1 - dampening*started if buffered; started = 1 if buffered",
		.update = SIGN DECAY
		"momentum_buffer = momentum*momentum_buffer + new*g if buffered; "
		"g = g + momentum*momentum_buffer if buffered and nesterov; "
		"g = momentum_buffer if buffered and not nesterov; "
		"p = p - lr*g",
		.rows = "momentum; weight_decay",
	},
	{
		.name = "adam",
		.torch = "Adam",
		.scalars = "lr = 0.001; " BETAS "eps = 1e-8; weight_decay = 0",
		.flags = "amsgrad; maximize; decoupled : decoupled_weight_decay",
		.states = ADAM_STATES,
		.before = ADAM_BEFORE,
		.update = ADAM_UPDATE,
	},
	{
		.name = "adamw",
		.torch = "AdamW",
		.scalars = "lr = 0.001; " BETAS "eps = 1e-8; weight_decay = 0.01",
		.flags = "amsgrad; maximize; decoupled = 1 : decoupled_weight_decay",
		.states = ADAM_STATES,
		.before = ADAM_BEFORE,
		.update = ADAM_UPDATE,
	},
	{
		.name = "sparse_adam",
		.torch = "SparseAdam",
		.scalars = "lr = 0.001; " BETAS "eps = 1e-8",
		.flags = "maximize",
		.states = "step[] = 0; exp_avg = 0; exp_avg_sq = 0",
		.before = "step = step + 1; w1 = 1 - beta1; w2 = 1 - beta2; "
			  "size = lr*sqrt(1 - pow(beta2, step))/(1 - pow(beta1, step))",
		.update = SIGN "exp_avg = (g - exp_avg)*w1 + exp_avg; "
			       "exp_avg_sq = (g*g - exp_avg_sq)*w2 + exp_avg_sq; "
			       "p = p - size*(exp_avg/(sqrt(exp_avg_sq) + eps))",
		.rows = "",
		.lazy = true,
	},
	{
		.name = "rmsprop",
		.torch = "RMSprop",
		.scalars = "lr = 0.01; alpha = 0.99; eps = 1e-8; weight_decay = 0; momentum = 0",
		.flags = "centered; maximize; buffered : momentum; eps_inside",
		.states = "step[] = 0; square_avg = 0; momentum_buffer = 0 if buffered; "
			  "grad_avg = 0 if centered",
		.before = "step = step + 1; w = 1 - alpha",
		.update = SIGN DECAY
		"square_avg = alpha*square_avg + w*g*g; v = square_avg; "
		"grad_avg = lerp.Tensor(grad_avg, g, w) if centered; "
		"v = v - grad_avg*grad_avg if centered; "
		"d = sqrt(v) + eps if not eps_inside; d = sqrt(v + eps) if eps_inside; "
		"momentum_buffer = momentum*momentum_buffer + g/d if buffered; "
		"p = p - lr*momentum_buffer if buffered; p = p - lr*g/d if not buffered",
	},
	{
		.name = "adagrad",
		.torch = "Adagrad",
		.scalars = "lr = 0.01; lr_decay = 0; weight_decay = 0; "
			   "initial_accumulator_value = 0; eps = 1e-10",
		.flags = "maximize",
		.states = "step[] = 0; sum = initial_accumulator_value",
		.before = "size = lr/(1 + step*lr_decay); step = step + 1",
		.update = SIGN DECAY "sum = sum + g*g; p = p - size*g/(sqrt(sum) + eps)",
		.rows = "weight_decay",
	},
	{
		.name = "adamax",
		.torch = "Adamax",
		.scalars = "lr = 0.002; " BETAS "eps = 1e-8; weight_decay = 0",
		.flags = "maximize",
		.states = "step[] = 0; exp_avg = 0; exp_inf = 0",
		.before = "step = step + 1; w1 = 1 - beta1; size = lr/(1 - pow(beta1, step))",
		.update = SIGN DECAY MEAN "exp_inf = maximum(beta2*exp_inf, abs(g) + eps); "
					  "p = p - size*exp_avg/exp_inf",
	},
	{
		.name = "adadelta",
		.torch = "Adadelta",
		.scalars = "lr = 1; rho = 0.9; eps = 1e-6; weight_decay = 0",
		.flags = "maximize",
		.states = "step[] = 0; square_avg = 0; acc_delta = 0",
		.before = "step = step + 1; w = 1 - rho",
		.update = SIGN DECAY "square_avg = rho*square_avg + w*g*g; "
				     "d = sqrt(acc_delta + eps)/sqrt(square_avg + eps)*g; "
				     "acc_delta = rho*acc_delta + w*d*d; p = p - lr*d",
	},
	{
		.name = "nadam",
		.torch = "NAdam",
		.scalars =
			"lr = 0.002; " BETAS "eps = 1e-8; weight_decay = 0; momentum_decay = 0.004",
		.flags = "maximize; decoupled : decoupled_weight_decay",
		.states = "step[] = 0; mu_product[] = 1; exp_avg = 0; exp_avg_sq = 0",
		.before = MOMENTS_BEFORE
		"mu = beta1*(1 - 0.5*pow(0.96, step*momentum_decay)); "
		"next = beta1*(1 - 0.5*pow(0.96, (step + 1)*momentum_decay)); "
		"mu_product = mu_product*mu; "
		"of_g = lr*(1 - mu)/(1 - mu_product); "
		"of_m = lr*next/(1 - mu_product*next)",
		.update = SIGN DECAY_EITHER MOMENTS "d = sqrt(exp_avg_sq/c2) + eps; "
						    "p = p - of_g*g/d; p = p - of_m*exp_avg/d",
	},
	{
		.name = "radam",
		.torch = "RAdam",
		.scalars = "lr = 0.001; " BETAS "eps = 1e-8; weight_decay = 0",
		.flags = "maximize; decoupled : decoupled_weight_decay",
		.states = "step[] = 0; exp_avg = 0; exp_avg_sq = 0",
		.before = MOMENTS_BEFORE
		"most = 2/(1 - beta2) - 1; "
		"rho = most - 2*step*pow(beta2, step)/c2; "
		"rect = sqrt((rho - 4)*(rho - 2)*most/((most - 4)*(most - 2)*rho)); "
		"rectified = select(rho > 5, 1, 0); root = sqrt(c2)",
		.update = SIGN DECAY_EITHER MOMENTS
		"u = exp_avg/c1*lr; "
		"u = select(rectified > 0, u*(root/(sqrt(exp_avg_sq) + eps))*rect, u); "
		"p = p - u",
	},
	{
		.name = "lion",
		.scalars = "lr = 0.0001; beta1 = 0.9 : betas.0; beta2 = 0.99 : betas.1; "
			   "weight_decay = 0",
		.flags = "maximize",
		.states = "exp_avg = 0",
		.before = "w1 = 1 - beta1; w2 = 1 - beta2; decay = 1 - lr*weight_decay",
		.update = SIGN "p = p*decay; "
			       "p = p - lr*sign(beta1*exp_avg + w1*g); "
			       "exp_avg = beta2*exp_avg + w2*g",
	},
	{
		.name = "muon",
		.torch = "Muon",
		.scalars = "lr = 0.001; momentum = 0.95; weight_decay = 0.1; eps = 1e-7; "
			   "a = 3.4445 : ns_coefficients.0; b = -4.775 : ns_coefficients.1; "
			   "c = 2.0315 : ns_coefficients.2",
		.flags = "nesterov = 1; match_rms_adamw : adjust_lr_fn.match_rms_adamw; "
			 "spectral_unclamped : adjust_lr_fn.spectral_unclamped; tall : -",
		.states = "momentum_buffer = 0",
		.before = "w = 1 - momentum; decay = 1 - lr*weight_decay",
		.update = MUON_UPDATE,
		.matrix = true,
	},
};

const Optimizer *optim_at(uint32_t k)
{
	return k < sizeof table / sizeof *table ? &table[k] : NULL;
}

const Optimizer *optim_find(const char *name)
{
	for (uint32_t k = 0; k < sizeof table / sizeof *table; k++)
		if (!strcmp(table[k].name, name))
			return &table[k];
	return NULL;
}
