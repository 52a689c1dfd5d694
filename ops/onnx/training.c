/* Steps of optimisers. Results are new values of the parameters, then of the states, each in the
 * order of the parameters. */
#include "ops/onnx/priv.h"

/* The operands of a step: the rate R, how many steps T went before, and n parameters X, n gradients
 * G, and n of each state behind them. */
typedef struct {
	Node r, t;
	Node *x;
	uint32_t n;
} TrainingStep;

enum { GRADIENT = 1, STATE = 2 };

static bool read_step(Build *b, Node n, uint32_t nstate, TrainingStep *s)
{
	uint32_t count;
	s->r = b_reshape(b, arg(b, n, "R"), 0, NULL);
	s->t = b_reshape(b, arg(b, n, "T"), 0, NULL);
	s->x = onnx_list(b, n, "values", &count);
	s->n = count / (STATE + nstate);
	if (count % (STATE + nstate) || !count)
		return b_error(b,
			       "%u tensors: expected parameters, as many gradients, and as many of "
			       "each of %u states",
			       count, nstate)
			.i;
	return s->r.i && s->t.i;
}

/* Returns group `which` of parameter k. */
static Node of(const TrainingStep *s, uint32_t which, uint32_t k)
{
	return s->x[which * s->n + k];
}

/* Returns the gradient with that of the regularisation. */
static Node gradient(Build *b, Node n, const TrainingStep *s, uint32_t k)
{
	return b_bin(b, OP_add,
		     b_bin_scalar(b, OP_mul, of(s, 0, k), node_float(b->g, n, "norm_coefficient")),
		     of(s, GRADIENT, k));
}

/* Returns x * v + (1 - x) * more. */
static Node mixed(Build *b, double x, Node v, Node more)
{
	return b_bin(b, OP_add, b_bin_scalar(b, OP_mul, v, x),
		     b_bin_scalar(b, OP_mul, more, 1 - x));
}

static Node *results(const Build *b, uint32_t n)
{
	return ARENA_ARRAY(b->g->ir->ctx->scratch, Node, n);
}

static Node build_adagrad(Build *b, Node n)
{
	TrainingStep s;
	if (!read_step(b, n, 1, &s))
		return (Node){0};
	Node *y = results(b, 2 * s.n), t = b_convert(b, s.t, aten_dtype(b, s.r));
	Node r = b_bin(b, OP_div, s.r,
		       b_bin_scalar(b, OP_add,
				    b_bin_scalar(b, OP_mul, t, node_float(b->g, n, "decay_factor")),
				    1));
	for (uint32_t k = 0; k < s.n; k++) {
		Node g = gradient(b, n, &s, k),
		     h = b_bin(b, OP_add, of(&s, STATE, k), b_bin(b, OP_mul, g, g));
		Node root = b_bin_scalar(b, OP_add, b_un(b, OP_sqrt, h),
					 node_float(b->g, n, "epsilon"));
		y[k] = b_bin(b, OP_sub, of(&s, 0, k),
			     b_bin(b, OP_div, b_bin(b, OP_mul, r, g), root));
		y[s.n + k] = h;
	}
	return b_tuple(b, y, 2 * s.n);
}

OP(onnx_preview_training_Adagrad_1){
	.schema = "onnx_preview_training.Adagrad.1(Tensor R, Tensor T, Tensor[] values, *, float "
		  "decay_factor=0.0, float epsilon=9.999999974752427e-07, "
		  "float norm_coefficient=0.0) -> Tensor[]",
	.build = build_adagrad,
	.no_sample = NODE_TESTS,
};

/* Returns the rate, corrected for means that began with 0: of the first step as it is. */
static Node corrected(Build *b, const TrainingStep *s, double alpha, double beta)
{
	DType d = aten_dtype(b, s->r);
	Node t = b_convert(b, s->t, d), one = b_scalar(b, d, 1);
	Node a = b_bin(b, OP_sub, one, b_bin(b, OP_pow, b_scalar(b, d, alpha), t)),
	     v = b_bin(b, OP_sub, one, b_bin(b, OP_pow, b_scalar(b, d, beta), t));
	return b_select(b, b_bin_scalar(b, OP_gt, s->t, 0),
			b_bin(b, OP_div, b_bin(b, OP_mul, s->r, b_un(b, OP_sqrt, v)), a), s->r);
}

static Node build_adam(Build *b, Node n)
{
	TrainingStep s;
	double alpha = node_float(b->g, n, "alpha"), beta = node_float(b->g, n, "beta"),
	       post = node_float(b->g, n, "norm_coefficient_post");
	if (!read_step(b, n, 2, &s))
		return (Node){0};
	Node *y = results(b, 3 * s.n), r = corrected(b, &s, alpha, beta);
	for (uint32_t k = 0; k < s.n; k++) {
		Node g = gradient(b, n, &s, k), v = mixed(b, alpha, of(&s, STATE, k), g),
		     h = mixed(b, beta, of(&s, STATE + 1, k), b_bin(b, OP_mul, g, g));
		Node root = b_bin_scalar(b, OP_add, b_un(b, OP_sqrt, h),
					 node_float(b->g, n, "epsilon"));
		Node x = b_bin(b, OP_sub, of(&s, 0, k),
			       b_bin(b, OP_mul, r, b_bin(b, OP_div, v, root)));
		y[k] = b_bin_scalar(b, OP_mul, x, 1 - post);
		y[s.n + k] = v;
		y[2 * s.n + k] = h;
	}
	return b_tuple(b, y, 3 * s.n);
}

OP(onnx_preview_training_Adam_1){
	.schema = "onnx_preview_training.Adam.1(Tensor R, Tensor T, Tensor[] values, *, float "
		  "alpha=0.8999999761581421, float beta=0.9990000128746033, "
		  "float epsilon=9.999999974752427e-07, float norm_coefficient=0.0, "
		  "float norm_coefficient_post=0.0) -> Tensor[]",
	.build = build_adam,
	.no_sample = NODE_TESTS,
};

/* Updates parameters; the gradient counts in full at the first step. */
static Node build_momentum(Build *b, Node n)
{
	TrainingStep s;
	double alpha = node_float(b->g, n, "alpha");
	if (!aten_check_word(b, n, "mode", "standard nesterov") || !read_step(b, n, 1, &s))
		return (Node){0};
	DType d = aten_dtype(b, s.r);
	Node *y = results(b, 2 * s.n),
	     beta = b_select(b, b_bin_scalar(b, OP_gt, s.t, 0),
			     b_scalar(b, d, node_float(b->g, n, "beta")), b_scalar(b, d, 1));
	for (uint32_t k = 0; k < s.n; k++) {
		Node g = gradient(b, n, &s, k),
		     v = b_bin(b, OP_add, b_bin_scalar(b, OP_mul, of(&s, STATE, k), alpha),
			       b_bin(b, OP_mul, beta, g));
		Node by = aten_is(b, n, "mode", "nesterov")
				  ? b_bin(b, OP_add, g, b_bin_scalar(b, OP_mul, v, alpha))
				  : v;
		y[k] = b_bin(b, OP_sub, of(&s, 0, k), b_bin(b, OP_mul, s.r, by));
		y[s.n + k] = v;
	}
	return b_tuple(b, y, 2 * s.n);
}

OP(onnx_preview_training_Momentum_1){
	.schema = "onnx_preview_training.Momentum.1(Tensor R, Tensor T, Tensor[] values, *, float "
		  "alpha, float beta, str mode, float norm_coefficient) -> Tensor[]",
	.build = build_momentum,
	.no_sample = NODE_TESTS,
};
