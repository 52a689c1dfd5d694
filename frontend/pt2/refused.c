/* Operators of PyTorch that are left out on purpose, and why. */
#include <fnmatch.h>
#include <string.h>

#include "frontend/pt2/priv.h"

/* patterns: of names without "torch.ops." and ".default", as a shell matches files, blanks between.
 * The first row that matches counts. */
static const struct {
	const char *why, *patterns;
} refused[] = {
	{"calls cuDNN, a library for GPUs of NVIDIA: export the model on the processor",
	 "aten.*cudnn*"},
	{"calls MIOpen, a library for GPUs of AMD: export the model on the processor",
	 "aten.*miopen*"},
	{"calls Apple's library for GPUs: export the model on the processor", "aten.*mps*"},
	{"calls Triton, a library for GPUs: export the model on the processor",
	 "aten._efficient_attention* aten._flash_attention* "
	 "aten._scaled_dot_product_efficient_attention* "
	 "aten._scaled_dot_product_flash_attention "
	 "aten._scaled_dot_product_flash_attention.quantized "
	 "aten._scaled_dot_product_flash_attention_backward "
	 "aten._scaled_dot_product_fused_attention_overrideable* aten._triton* "
	 "higher_order.triton_kernel_wrapper*"},
	{"works on tensors in the layout of oneDNN, which torch.export refuses: leave the model in "
	 "strided "
	 "layout",
	 "aten.*mkldnn*"},
	{"works on sparse tensors, which torch.export.save refuses as weights: write the model on "
	 "the tensors "
	 "of indices and values",
	 "aten.*_sparse aten.*sparse* aten._coalesce* aten._convert_indices_from_* aten._cslt* "
	 "aten._dimI "
	 "aten._dimV aten._indices* aten._nnz aten._spdiags aten._spsolve aten._to_dense "
	 "aten._values* "
	 "aten.c*_indices* aten.coalesce aten.crow_indices* aten.dense_dim aten.hspmm aten.indices "
	 "aten.indices_copy aten.is_coalesced aten.row_indices* aten.smm aten.sspaddmm "
	 "aten.to_dense* "
	 "aten.values aten.values_copy"},
	{"works on nested tensors, which torch.export refuses: write the model on padded tensors",
	 "aten.*nested* aten._jagged_to_padded* aten._padded_dense_to_jagged* "
	 "aten._transform_bias_rescale_qkv "
	 "aten.to_padded_tensor"},
	{"works on quantised tensors of eager mode, which torch.export refuses: quantise by PT2E, "
	 "whose "
	 "operators are quantized_decomposed",
	 "aten.*_quantized* aten._rowwise_prune aten._wrapped_* aten.dequantize.* aten.fbgemm* "
	 "aten.int_repr "
	 "aten.q_* aten.qscheme aten.quantize_per_* aten.quantized_* torchvision.q*"},
	{"works on a list of tensors at once, as optimisers do: write it for one tensor after the "
	 "other",
	 "aten._amp_* aten._foreach_* aten._fused_ada* aten._fused_sgd* higher_order.foreach_map"},
	{"is a test of PyTorch itself", "aten._foobar aten._nnpack* aten._test_*"},
	{"asks or changes what PyTorch knows of a tensor and no graph holds",
	 "aten._backward aten._copy_from* aten._debug_has_internal_overlap aten._fused_sdp_choice "
	 "aten._has_compatible_shallow_copy_type aten._index_put_impl aten._is_zerotensor "
	 "aten._lazy_clone "
	 "aten._make_dep_token aten._philox_* aten._propagate_xla_data aten._resize_output "
	 "aten._sobol_engine_draw aten._to_cpu aten._use_* aten._version aten.data aten.dim "
	 "aten.from_file "
	 "aten.get_device aten.get_gradients aten.is_* aten.is_set_to aten.numel aten.output_nr "
	 "aten.result_type* aten.retains_grad aten.set* aten.size.int aten.storage_offset "
	 "aten.stride.int "
	 "prims._make_token prims._sink_tokens"},
	{"synchronises statistics over several GPUs",
	 "aten.batch_norm_backward_elemt aten.batch_norm_backward_reduce aten.batch_norm_elemt "
	 "aten.batch_norm_gather_stats* aten.batch_norm_stats aten.batch_norm_update_stats"},
	{"belongs to a compiler or run time of PyTorch's, not to a model",
	 "higher_order._export_tracepoint higher_order.aoti_call_delegate "
	 "higher_order.dynamo_bypassing_wrapper higher_order.executorch_call_delegate "
	 "higher_order.flat_apply "
	 "higher_order.flex_gemm higher_order.graphsafe_run_with_rng_state "
	 "higher_order.inductor_compiled_code "
	 "higher_order.inline_asm_elementwise higher_order.run_and_save_rng_state "
	 "higher_order.run_const_graph "
	 "higher_order.run_dtensor_rng_op higher_order.run_with_rng_state "
	 "higher_order.trace_wrapped"},
	{"calls code that is not in the file: register a user operator (docs/user-operators.md)",
	 "higher_order.call_torchbind higher_order.invoke_leaf_function"},
	{"is a derivative that PyTorch's autograd calls: export the model, and let weft make the "
	 "derivative "
	 "(docs/transforms.md)",
	 "aten.*_backward aten.*_backward.* aten.*_backward_overrideable "
	 "aten._compute_linear_combination "
	 "aten._slow_conv2d_backward* aten._thnn_*_backward_impl aten.glu_backward_jvp "
	 "aten.glu_jvp "
	 "aten.slice_inverse higher_order.flex_attention_backward torchvision._*_backward"},
	{"is one of PyTorch's choices of a kernel for an operator: call the function of "
	 "torch.nn.functional",
	 "aten._batch_norm_impl_index aten._cholesky_solve_helper aten._conv_depthwise2d "
	 "aten._fused_dropout "
	 "aten._grid_sampler_2d_cpu_fallback aten._masked_softmax "
	 "aten._native_multi_head_attention "
	 "aten._scaled_dot_product_attention_math aten._thnn_fused_gru_cell "
	 "aten._thnn_fused_lstm_cell "
	 "aten._transformer_encoder_layer_fwd aten._unique aten.conv_depthwise3d "
	 "aten.convolution_overrideable prims.svd"},
	{"reads weights in a layout that a library packs: quantise by PT2E or torchao",
	 "aten._choose_qparams_per_tensor aten._convert_weight_to_int4pack* aten._dyn_quant_* "
	 "aten._mixed_dtypes_linear aten._scaled_addmm aten._scaled_grouped_mm* aten._scaled_mm_v2 "
	 "aten._weight_int4pack_mm* aten.choose_qparams_optimized"},
	{"gives sizes or truths that torch.export of 2.15 cannot trace: the model cannot be "
	 "exported with it",
	 "aten._ctc_loss* aten._pack_padded_sequence aten._pad_packed_sequence "
	 "aten._reshape_from_tensor "
	 "aten.allclose aten.corrcoef aten.cov aten.ctc_loss* aten.equal aten.gru.data "
	 "aten.linalg_lstsq aten.lstm.data "
	 "aten.narrow.Tensor aten.rnn_relu.data aten.rnn_tanh.data prims.item"},
	{"belongs to forward derivatives of eager mode: torch.func.jvp in a model is read by its "
	 "own operators",
	 "aten._fw_primal* aten._make_dual_copy aten._new_zeros_with_same_feature_meta"},
	{"computes intersections of rotated boxes, which are not there yet",
	 "torchvision.box_iou_rotated"},
	{"is a mark of torch.vmap as PyTorch's compiler sees it: export the model by "
	 "torch.export.export",
	 "aten._add_batch_dim aten._remove_batch_dim"},
	{"calls an operator in another dtype: convert its operands in the model",
	 "higher_order.out_dtype"},
	{"is part of histogramdd, which is there", "aten._histogramdd_*"},
	{"is only defined for sparse tensors", "aten.native_norm*"},
	{"checks a size while it passes a token through, as PyTorch's compiler does: export "
	 "without functional "
	 "assertions",
	 "aten._functional_assert_scalar aten._functional_sym_constrain_range*"},
	{"is an operator of higher order that torch.export.save of 2.15 refuses, or writes as "
	 "others",
	 "higher_order.auto_functionalized* higher_order.autograd_function_apply "
	 "higher_order.custom_function_call higher_order.flex_attention higher_order.invoke_quant* "
	 "higher_order.local_map_hop higher_order.strict_mode higher_order.switch "
	 "higher_order.tag_activation_checkpoint higher_order.while_loop_stack_output "
	 "higher_order.wrap_activation_checkpoint"},
};

static bool matches(const char *patterns, const char *name)
{
	char one[128];
	for (const char *p = patterns; *p; p += *p == ' ') {
		size_t n = strcspn(p, " ");
		assert(n < sizeof one);
		memcpy(one, p, n);
		one[n] = 0;
		if (!fnmatch(one, name, 0))
			return true;
		p += n;
	}
	return false;
}

const char *target_refusal(const char *target)
{
	char name[256];
	const char *from = strncmp(target, "torch.ops.", 10) ? target : target + 10;
	size_t n = strlen(from), tail = strlen(".default");
	if (n >= sizeof name)
		return NULL;
	memcpy(name, from, n + 1);
	if (n > tail && !strcmp(name + n - tail, ".default"))
		name[n - tail] = 0;
	for (size_t k = 0; k < sizeof refused / sizeof *refused; k++)
		if (matches(refused[k].patterns, name))
			return refused[k].why;
	return NULL;
}
