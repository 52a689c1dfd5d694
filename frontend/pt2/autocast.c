/* Regions with autocast on. The file holds the operators as they were called, and the dtypes of
 * their results as autocast made them; the conversions of operands in between are not in the
 * file. */
#include <string.h>

#include "frontend/pt2/priv.h"

/* Operators before which autocast converts operands, of processors and GPUs together, without
 * overloads: to the dtype of the region, or to f32 where digits would be lost. Which of the two it
 * was the dtype of the result says. */
static const char *const converted[] = {
	/* to the dtype of the region */
	"conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "convolution", "_convolution",
	"bmm", "mm", "mv", "baddbmm", "addmm", "addmv", "addr", "addbmm", "linear", "matmul", "einsum", "linalg_vecdot", "linalg_multi_dot",
	"chain_matmul", "prelu", "scaled_dot_product_attention", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell",
	/* to f32 */
	"__pow__", "__rdiv__", "__rpow__", "__rtruediv__", "acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p",
	"reciprocal", "rsqrt", "sinh", "tan", "pow", "softplus", "layer_norm", "native_layer_norm", "group_norm", "frobenius_norm",
	"nuclear_norm", "cosine_similarity", "poisson_nll_loss", "cosine_embedding_loss", "nll_loss", "nll_loss2d", "nll_loss_nd",
	"hinge_embedding_loss", "kl_div", "l1_loss", "smooth_l1_loss", "huber_loss", "mse_loss", "margin_ranking_loss",
	"multilabel_margin_loss", "soft_margin_loss", "triplet_margin_loss", "multi_margin_loss", "cross_entropy_loss", "ctc_loss",
	"binary_cross_entropy", "binary_cross_entropy_with_logits", "dist", "pdist", "cdist", "renorm", "logsumexp", "softmax", "log_softmax",
	"prod", "cumprod", "cumsum", "sum", "norm", "grid_sampler", "polar", "quantile", "nanquantile", "stft", "trace", "view_as_complex",
	"cholesky", "cholesky_inverse", "cholesky_solve", "inverse", "lu_solve", "orgqr", "ormqr", "pinverse", "max_unpool2d",
	"max_unpool3d", "avg_pool3d", "adaptive_avg_pool3d", "adaptive_max_pool3d", "fractional_max_pool2d", "fractional_max_pool3d",
	"reflection_pad1d", "reflection_pad2d", "replication_pad1d", "replication_pad2d", "replication_pad3d", "fft_fft", "fft_ifft",
	"fft_fft2", "fft_ifft2", "fft_fftn", "fft_ifftn", "fft_rfft", "fft_irfft", "fft_rfft2", "fft_irfft2", "fft_rfftn", "fft_irfftn",
	"fft_hfft", "fft_ihfft", "linalg_cond", "linalg_matrix_rank", "linalg_solve", "linalg_cholesky", "linalg_svdvals", "linalg_eigvals",
	"linalg_eigvalsh", "linalg_inv", "linalg_householder_product", "linalg_tensorinv", "linalg_tensorsolve", "linalg_qr", "linalg_eig",
	"linalg_eigh", "linalg_lstsq", "fake_quantize_per_tensor_affine", "geqrf", "qr", "svd", "triangular_solve",
	/* to the widest of them */
	"cat", "stack", "index_copy", "index_put", "bilinear", "cross", "dot", "vdot", "tensordot", "scatter_add", "addcdiv", "addcmul", "atan2",
};

static bool is_converted(const char *op)
{
	const char *name = strncmp(op, "aten.", 5) ? "" : op + 5;
	size_t n = strcspn(name, ".");
	for (size_t k = 0; k < sizeof converted / sizeof *converted; k++)
		if (strlen(converted[k]) == n && !strncmp(converted[k], name, n))
			return true;
	return false;
}

/* f64 is left alone. */
static bool may_convert(DType d)
{
	return d == DT_f16 || d == DT_bf16 || d == DT_f32;
}

bool autocast_operands(Scope *s, const json_t *node, Call *c)
{
	Results r;
	if (!s->st->autocast || !is_converted(op_name(c->op)))
		return true;
	TRY(read_results(s, node, &r));
	DType to = DT_none;
	for (uint32_t k = 0; k < r.n && to == DT_none; k++) {
		DType d = r.data[k].name ? r.data[k].meta.dtype : DT_none;
		to = d == DT_none ? d : dtype_is_complex(d) ? dtype_real(d) : d;
	}
	if (!may_convert(to))
		return true;
	for (uint32_t k = 0; k < c->in.n; k++) {
		Node x = c->in.data[k];
		if (!x.i || !may_convert(node_dtype(s->st->g, x)) || node_dtype(s->st->g, x) == to)
			continue;
		c->in.data[k] = b_convert(&s->b, x, to);
		c->value.data[k] = 0; /* a new tensor: the result is no view of the operand */
		TRY(c->in.data[k].i);
	}
	return true;
}
