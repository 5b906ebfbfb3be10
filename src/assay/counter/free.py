"""Ops that multiply no matrices, by sort: known, and free in the convention that counts products alone."""

from __future__ import annotations

_SORTS = {
    "view": """
        _unsafe_view unsafe_split unsafe_split_with_sizes resize resize_as set _resize_output t_copy
    """,
    "copy": """
        clone copy _to_copy lift lift_fresh lift_fresh_copy cat stack _stack _chunk_cat repeat constant_pad_nd flip roll
        rot90 tril triu pixel_shuffle pixel_unshuffle channel_shuffle im2col col2im block_diag diag_embed
        unfold_backward select_backward slice_backward diagonal_backward as_strided_scatter diagonal_scatter
        select_scatter slice_scatter reflection_pad1d reflection_pad1d_backward reflection_pad2d
        reflection_pad2d_backward reflection_pad3d reflection_pad3d_backward replication_pad1d
        replication_pad1d_backward replication_pad2d replication_pad2d_backward replication_pad3d
        replication_pad3d_backward _pin_memory _copy_from _copy_from_and_resize _reshape_copy to_mkldnn _to_dense
        _mkldnn_reshape _mkldnn_transpose mkldnn_reorder_conv2d_weight mkldnn_reorder_conv3d_weight
        _cudnn_rnn_flatten_weight _lazy_clone alias_copy as_strided_copy detach_copy diagonal_copy expand_copy
        narrow_copy permute_copy select_copy slice_copy split_copy split_with_sizes_copy squeeze_copy transpose_copy
        unbind_copy unfold_copy unsqueeze_copy view_copy view_as_complex_copy view_as_real_copy _reshape_alias_copy
        _conj_copy _neg_view_copy complex _convert_weight_to_int4pack _convert_weight_to_int4pack_for_cpu
        _dyn_quant_pack_4bit_weight _jagged_to_padded_dense_forward _padded_dense_to_jagged_forward to_padded_tensor
        _pack_padded_sequence _nested_tensor_from_mask
    """,
    "gather": """
        embedding embedding_dense_backward embedding_renorm _embedding_bag _embedding_bag_forward_only
        _embedding_bag_backward _embedding_bag_dense_backward _embedding_bag_per_sample_weights_backward index
        index_select index_add index_copy index_fill index_put index_reduce _index_put_impl _unsafe_index
        _unsafe_index_put _unsafe_masked_index _unsafe_masked_index_put_accumulate gather scatter scatter_add
        scatter_reduce take put masked_select masked_scatter masked_scatter_backward nonzero nonzero_static
        repeat_interleave segment_reduce _segment_reduce_backward
    """,
    "new": """
        arange range empty empty_like empty_strided empty_permuted full full_like ones ones_like zeros zeros_like eye
        linspace logspace new_empty new_empty_strided new_full new_ones new_zeros scalar_tensor tril_indices
        triu_indices hann_window hamming_window bartlett_window blackman_window kaiser_window fft_fftfreq fft_rfftfreq
        _sparse_coo_tensor_with_dims _sparse_coo_tensor_with_dims_and_tensors _efficientzerotensor
        _new_zeros_with_same_feature_meta _cudnn_init_dropout_state
    """,
    "random": """
        native_dropout native_dropout_backward _fused_dropout _masked_scale bernoulli binomial cauchy exponential
        geometric log_normal multinomial normal normal_functional poisson rand rand_like randint randint_like randn
        randn_like random randperm uniform rrelu_with_noise rrelu_with_noise_backward rrelu_with_noise_functional
        _philox_normal _philox_uniform _philox_key_split _philox_key_fold_in _standard_gamma _standard_gamma_grad
        _sample_dirichlet _dirichlet_grad
    """,
    "pointwise": """
        __ilshift__ __irshift__ __lshift__ __rshift__ _add_relu _conj_physical _prelu_kernel _prelu_kernel_backward abs
        add addcdiv addcmul atan2 bitwise_and bitwise_not bitwise_or bitwise_xor ceil clamp clamp_max clamp_min copysign
        cos div elu elu_backward eq erf exp exp2 expm1 fill floor floor_divide fmod ge gelu gelu_backward glu
        glu_backward glu_jvp glu_backward_jvp gt hardshrink hardshrink_backward hardsigmoid hardsigmoid_backward
        hardswish hardswish_backward hardtanh hardtanh_backward isin isinf isnan le leaky_relu leaky_relu_backward lerp
        linalg_cross log log_sigmoid_backward log_sigmoid_forward log1p logical_and logical_not logical_or logical_xor
        logit logit_backward lt masked_fill maximum minimum mish mish_backward mul nan_to_num ne neg polar pow
        reciprocal relu remainder round rsqrt rsub sigmoid sigmoid_backward sign silu silu_backward sin softplus
        softplus_backward softshrink softshrink_backward sqrt square sub tan tanh tanh_backward threshold
        threshold_backward trunc where xlogy zero acos asin atan cosh erfc frac lgamma log10 log2 sinh celu heaviside
        gcd lcm bitwise_left_shift bitwise_right_shift _thnn_fused_lstm_cell _thnn_fused_lstm_cell_backward_impl
        _thnn_fused_gru_cell _thnn_fused_gru_cell_backward _transform_bias_rescale_qkv
    """,
    "reduction": """
        sum mean prod amax amin aminmax _aminmax max min argmax argmin all any std std_mean var var_mean norm
        linalg_vector_norm linalg__powsum _foreach_norm _foreach_max _foreach_powsum nansum count_nonzero logsumexp
        cumsum cumprod logcumsumexp _logcumsumexp cummax cummin _cummax_helper _cummin_helper trace dist renorm
        _is_all_true _is_any_true equal allclose
    """,
    "sort": """
        sort topk kthvalue median nanmedian mode searchsorted bucketize histc histogram bincount _unique _unique2
        _coalesce unique_consecutive unique_dim unique_dim_consecutive
    """,
    "softmax": """
        _softmax _softmax_backward_data _safe_softmax _masked_softmax _masked_softmax_backward softmax _log_softmax
        _log_softmax_backward_data log_softmax
    """,
    "norm": """
        native_layer_norm native_layer_norm_backward native_group_norm native_group_norm_backward _fused_rms_norm
        _fused_rms_norm_backward native_batch_norm native_batch_norm_backward batch_norm_backward
        batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats
        batch_norm_gather_stats_with_counts batch_norm_stats batch_norm_update_stats _batch_norm_no_update
        _batch_norm_with_update _batch_norm_with_update_functional _native_batch_norm_legit
        _native_batch_norm_legit_functional _native_batch_norm_legit_no_training cudnn_batch_norm
        cudnn_batch_norm_backward miopen_batch_norm miopen_batch_norm_backward native_norm _weight_norm_interface
        _weight_norm_interface_backward
    """,
    "loss": """
        nll_loss_forward nll_loss_backward nll_loss2d_forward nll_loss2d_backward mse_loss mse_loss_backward huber_loss
        huber_loss_backward smooth_l1_loss smooth_l1_loss_backward soft_margin_loss soft_margin_loss_backward
        binary_cross_entropy binary_cross_entropy_backward binary_cross_entropy_with_logits multi_margin_loss
        multi_margin_loss_backward multilabel_margin_loss_forward multilabel_margin_loss_backward _ctc_loss
        _ctc_loss_backward _cudnn_ctc_loss miopen_ctc_loss
    """,
    "resample": """
        adaptive_avg_pool1d _adaptive_avg_pool2d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d
        _adaptive_avg_pool3d_backward adaptive_avg_pool2d adaptive_avg_pool3d adaptive_avg_pool3d_backward
        adaptive_max_pool2d adaptive_max_pool2d_backward adaptive_max_pool3d adaptive_max_pool3d_backward avg_pool1d
        avg_pool2d avg_pool2d_backward avg_pool3d avg_pool3d_backward fractional_max_pool2d
        fractional_max_pool2d_backward fractional_max_pool3d fractional_max_pool3d_backward max_pool2d_backward
        max_pool2d_with_indices max_pool2d_with_indices_backward max_pool3d_with_indices
        max_pool3d_with_indices_backward max_unpool2d max_unpool3d mkldnn_max_pool2d mkldnn_max_pool2d_backward
        mkldnn_max_pool3d mkldnn_max_pool3d_backward grid_sampler_2d grid_sampler_2d_backward grid_sampler_3d
        grid_sampler_3d_backward cudnn_grid_sampler cudnn_grid_sampler_backward _grid_sampler_2d_cpu_fallback
        _upsample_bicubic2d_aa _upsample_bicubic2d_aa_backward _upsample_bilinear2d_aa _upsample_bilinear2d_aa_backward
        _upsample_nearest_exact1d _upsample_nearest_exact1d_backward _upsample_nearest_exact2d
        _upsample_nearest_exact2d_backward _upsample_nearest_exact3d _upsample_nearest_exact3d_backward
        upsample_bicubic2d upsample_bicubic2d_backward upsample_bilinear2d upsample_bilinear2d_backward
        upsample_linear1d upsample_linear1d_backward upsample_nearest1d upsample_nearest1d_backward upsample_nearest2d
        upsample_nearest2d_backward upsample_nearest3d upsample_nearest3d_backward upsample_trilinear3d
        upsample_trilinear3d_backward _upsample_lanczos2d_aa _upsample_lanczos2d_aa_backward mkldnn_adaptive_avg_pool2d
        mkldnn_adaptive_avg_pool2d_backward
    """,
    "quantize": """
        quantize_per_tensor quantize_per_tensor_dynamic quantize_per_channel dequantize int_repr
        fake_quantize_per_tensor_affine_cachemask fake_quantize_per_channel_affine_cachemask
        _fake_quantize_per_tensor_affine_cachemask_tensor_qparams _fake_quantize_learnable_per_tensor_affine
        _fake_quantize_learnable_per_tensor_affine_backward _fake_quantize_learnable_per_channel_affine
        _fake_quantize_learnable_per_channel_affine_backward _fused_moving_avg_obs_fq_helper
    """,
    "optimizer": """
        _fused_adagrad _fused_adam _fused_adamw _fused_sgd _amp_update_scale _amp_foreach_non_finite_check_and_unscale
    """,
    "question": """
        _local_scalar_dense item is_same_size is_pinned is_coalesced is_set_to record_stream _has_same_storage_numel
        _assert_async _functional_assert_async _assert_tensor_metadata _functional_assert_scalar _assert_scalar
        _fused_sdp_choice _nested_tensor_from_mask_left_aligned
        _use_cudnn_ctc_loss _use_miopen_ctc_loss dense_dim sparse_dim q_scale q_zero_point
        sym_constrain_range sym_constrain_range_for_size _linalg_check_errors
    """,
}

FREE: dict[str, str] = {f"aten::{name}": sort for sort, names in _SORTS.items() for name in names.split()}

NAMESPACES = {"c10d": "collective", "_c10d_functional": "collective", "prim": "question", "profiler": "question"}


def sort_of(name: str) -> str | None:
    """The sort of a free op, None where nobody has said that it is free.

    A list of tensors (`_foreach_mul`) is of the sort of one.
    """
    if sort := FREE.get(name):
        return sort
    namespace, _, bare = name.partition("::")
    if bare.startswith("_foreach_"):
        return sort_of(f"aten::{bare.removeprefix('_foreach_')}")
    return NAMESPACES.get(namespace)
