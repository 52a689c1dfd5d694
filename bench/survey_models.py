"""The models that survey.py tries: MODELS maps "library/name" to a function that gives a small model with random weights, its arguments and its
named arguments. One architecture of each family, with few layers and small images where its configuration allows it."""
import copy

import torch


def image(size=64, batch=2):
    return torch.randn(batch, 3, size, size)


def tokens(batch=2, length=16):
    return torch.randint(3, 90, (batch, length))


def lengths(size=99):
    """Fields of configurations that make a transformer small; those that a configuration lacks are left out."""
    return dict(vocab_size=size, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=64, d_model=32,
                n_embd=32, n_layer=2, n_head=4, d_ff=64, d_kv=8, num_layers=2, num_decoder_layers=2, num_encoder_layers=2, encoder_layers=2,
                decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, ffn_dim=64, dim=32,
                hidden_dim=64, n_layers=2, n_heads=4, max_position_embeddings=64, n_positions=64, max_seq_len=64, embedding_size=32, pad_token_id=0,
                bos_token_id=1, eos_token_id=2, num_experts=4, num_local_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, n_ctx=64)


# ---- torchvision ----

def vision(name, size=64, batch=2, **options):
    def make():
        import torchvision.models
        return torchvision.models.get_model(name, weights=None, **options), (image(size, batch),), {}
    return make


def segmentation(name):
    return vision(name, weights_backbone=None, num_classes=5)


def detection(name, images=1, **options):
    def make():
        import torchvision.models
        all_regions = dict(rpn_batch_size_per_image=1 << 20, box_batch_size_per_image=1 << 20) if "rcnn" in name else {}  # drawn are others with each generator
        model = torchvision.models.get_model(name, weights=None, weights_backbone=None, num_classes=5, **options, **all_regions)
        target = {"boxes": torch.tensor([[4.0, 6.0, 40.0, 50.0], [20.0, 10.0, 60.0, 44.0]]), "labels": torch.tensor([1, 3]),
                  "masks": torch.ones(2, 64, 64, dtype=torch.uint8), "keypoints": torch.rand(2, 17, 3) * 40 + 1}
        return model, (list(image(batch=images)),), {"targets": [copy.deepcopy(target) for _ in range(images)]}
    return make


def video(name, frames=8, size=64):
    def make():
        import torchvision.models
        return torchvision.models.get_model(name, weights=None), (torch.randn(1, 3, frames, size, size),), {}
    return make


def flow():
    import torchvision.models
    return torchvision.models.get_model("raft_small", weights=None), (image(128), image(128)), {"num_flow_updates": 2}


VISION = ("alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "efficientnet_v2_s", "mnasnet0_5", "mobilenet_v2", "mobilenet_v3_small",
          "regnet_x_400mf", "regnet_y_400mf", "resnet18", "resnet50", "resnext50_32x4d", "shufflenet_v2_x0_5", "squeezenet1_0", "squeezenet1_1", "swin_t",
          "swin_v2_t", "vgg11_bn", "wide_resnet50_2")
MODELS = {
    **{f"torchvision/{name}": vision(name) for name in VISION},
    "torchvision/googlenet": vision("googlenet", init_weights=False),
    "torchvision/inception_v3": vision("inception_v3", 96, init_weights=False, aux_logits=False),  # the other classifier takes images of 299
    "torchvision/maxvit_t": vision("maxvit_t", 224, 1), "torchvision/vit_b_32": vision("vit_b_32", image_size=64),
    **{f"torchvision/{name}": segmentation(name) for name in ("deeplabv3_mobilenet_v3_large", "deeplabv3_resnet50", "fcn_resnet50",
                                                              "lraspp_mobilenet_v3_large")},
    **{f"torchvision/{name}": detection(name, min_size=128, max_size=192) for name in ("fasterrcnn_mobilenet_v3_large_320_fpn", "fasterrcnn_resnet50_fpn",
                                                           "keypointrcnn_resnet50_fpn", "maskrcnn_resnet50_fpn", "retinanet_resnet50_fpn")},
    "torchvision/fcos_resnet50_fpn": detection("fcos_resnet50_fpn", min_size=128, max_size=192, score_thresh=0.05),
    "torchvision/ssd300_vgg16": detection("ssd300_vgg16"), "torchvision/ssdlite320_mobilenet_v3_large": detection("ssdlite320_mobilenet_v3_large", 2),
    **{f"torchvision/{name}": video(name) for name in ("r3d_18", "mc3_18", "r2plus1d_18")},
    "torchvision/s3d": video("s3d", 16, 224), "torchvision/mvit_v1_b": video("mvit_v1_b", 16, 224), "torchvision/swin3d_t": video("swin3d_t"),
    "torchvision/raft_small": flow,
}


# ---- timm ----

def timm(name, size=64, **options):
    """An image of that size, or of the size that the model was made for if it takes no other."""
    def make():
        import timm
        model = timm.create_model(name, pretrained=False, **options)
        own = model.default_cfg["input_size"][1]
        return model, (image(own if model.default_cfg.get("fixed_input_size") or size is None else size),), {}
    return make


TIMM = ("repvgg_a0", "mobileone_s0", "gernet_s", "resnet32ts", "lambda_resnet26t", "coat_lite_tiny", "convnext_atto", "convnextv2_atto", "cspresnet50",
        "cs3darknet_m", "densenet121", "dla34", "dla46x_c", "dpn48b", "edgenext_xx_small", "efficientnet_b0", "mobilenetv2_050", "mnasnet_small",
        "fbnetc_100", "spnasnet_100", "tinynet_e", "mixnet_s", "efficientnet_lite0", "efficientvit_b0", "fasternet_t0", "fastvit_t8", "focalnet_tiny_srf",
        "ghostnet_050", "ghostnetv2_100", "hardcorenas_a", "hgnetv2_b0", "hgnet_tiny", "hrnet_w18_small", "inception_next_atto", "mambaout_femto",
        "poolformer_s12", "poolformerv2_s12", "convformer_s18", "caformer_s18", "mobilenetv3_small_050", "mobilenetv4_conv_small", "fbnetv3_b",
        "lcnet_035", "mobilevit_xxs", "mobilevitv2_050", "nextvit_small", "eca_nfnet_l0", "nf_resnet26", "nf_regnet_b0", "pvt_v2_b0", "rdnet_tiny",
        "regnetx_002", "regnety_002", "regnetz_005", "repghostnet_050", "repvit_m1", "res2net50_14w_8s", "resnest14d", "resnet10t", "ecaresnet26t",
        "resnet50d", "resnetv2_50", "rexnet_100", "selecsls42b", "legacy_seresnet18", "seresnext26d_32x4d", "shvit_s1", "skresnet18", "starnet_s1",
        "swiftformer_xs", "tresnet_m", "vgg11", "vovnet39a", "ese_vovnet19b_slim", "xception41", "mvitv2_tiny", "davit_tiny", "csatv2")
LARGER = ("inception_v3", "inception_v4", "inception_resnet_v2", "legacy_xception", "sequencer2d_s", "twins_svt_small", "twins_pcpvt_small",
          "efficientvit_m0", "gcvit_xxtiny", "convmixer_768_32")
OWN_SIZE = ("mixer_s32_224", "gmlp_ti16_224", "resmlp_12_224", "levit_128s", "crossvit_tiny_240", "efficientformer_l1", "efficientformerv2_s0", "hiera_tiny_224",
            "coatnet_nano_rw_224", "maxvit_tiny_tf_224", "nest_tiny", "pit_ti_224", "swin_tiny_patch4_window7_224", "swinv2_tiny_window8_256",
            "swinv2_cr_tiny_ns_224", "tiny_vit_5m_224", "tnt_s_patch16_224", "visformer_tiny", "vit_tiny_r_s16_p8_224", "volo_d1_224",
            "xcit_nano_12_p16_224", "botnet26t_256", "halonet26t", "bat_resnext26ts", "convit_tiny", "cait_xxs24_224", "vitamin_small_224")
TWO_LAYERS = ("vit_tiny_patch16_224", "deit_tiny_patch16_224", "deit3_small_patch16_224", "beit_base_patch16_224", "eva02_tiny_patch14_224",
              "vit_relpos_small_patch16_224", "samvit_base_patch16_224")
MODELS |= {
    **{f"timm/{name}": timm(name) for name in TIMM},
    **{f"timm/{name}": timm(name, 128) for name in LARGER},
    **{f"timm/{name}": timm(name, None) for name in OWN_SIZE},
    **{f"timm/{name}": timm(name, None, depth=2) for name in TWO_LAYERS},
}


# ---- transformers ----

def configured(config, model=None, plain=False, **options):
    """A model of transformers, by its configuration with the sizes of `lengths`, or plain."""
    import transformers
    made = getattr(transformers, config)
    default = made()
    fields = {k: v for k, v in lengths().items() if hasattr(default, k) and not isinstance(getattr(made, k, None), property)} if not plain else {}
    fields |= options
    return getattr(transformers, model or config.replace("Config", "Model"))(made(**fields))


def text(model, config=None, more=None, **options):
    def make():
        return configured(config or stem(model) + "Config", model, **options), (), {"input_ids": tokens(), **(more() if more else {})}
    return make


def stem(model):
    for end in ("ForConditionalGeneration", "ForCausalLM", "ForMaskedLM", "LMHeadModel", "EncoderModel", "Model"):
        if model.endswith(end):
            return model[:-len(end)]


def pairs(model, config=None, **options):
    return text(model, config, lambda: {"decoder_input_ids": tokens(2, 8), "use_cache": False}, **options)


def pixels(model, config=None, size=64, **options):
    def make():
        return configured(config or stem(model) + "Config", model, **options), (), {"pixel_values": image(size)}
    return make


def sound(model, config=None, name="input_values", shape=(2, 4000), **options):
    def make():
        return configured(config or stem(model) + "Config", model, **options), (), {name: torch.randn(shape)}
    return make


def clip(name, **sizes):
    def make():
        import transformers
        towers = {"text_config": dict(lengths(), **sizes), "vision_config": dict(lengths(), image_size=32, patch_size=8)}
        config = getattr(transformers, name + "Config")(**towers)
        return getattr(transformers, name + "Model")(config), (), {"input_ids": tokens(), "pixel_values": image(32)}
    return make


def detr():
    import transformers
    backbone = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], out_features=["stage2"])
    return (configured("DetrConfig", "DetrForObjectDetection", use_timm_backbone=False, backbone=None, backbone_config=backbone, num_queries=5), (),
            {"pixel_values": image()})


def whisper():
    model = configured("WhisperConfig", "WhisperForConditionalGeneration", max_source_positions=50, max_target_positions=32, num_mel_bins=16,
                       decoder_start_token_id=1, suppress_tokens=None, begin_suppress_tokens=None)
    return model, (), {"input_features": torch.randn(2, 16, 100), "decoder_input_ids": tokens(2, 8)}


def series(name, **options):
    def make():
        return configured(name + "Config", name + "Model", num_input_channels=3, context_length=32, patch_length=8, **options), (), {
            "past_values": torch.randn(2, 32, 3)}
    return make


ENCODERS = ("AlbertModel", "BertModel", "CamembertModel", "ConvBertModel", "DebertaModel", "DebertaV2Model", "DistilBertModel", "ElectraModel",
            "ErnieModel", "FNetModel", "FunnelModel", "LayoutLMModel", "MPNetModel", "MegatronBertModel", "MobileBertModel", "ModernBertModel",
            "NystromformerModel", "RemBertModel", "RoFormerModel", "RobertaModel", "SplinterModel", "SqueezeBertModel", "XLMModel", "XLMRobertaModel",
            "XLNetModel", "YosoModel")
DECODERS = ("ArceeForCausalLM", "BioGptForCausalLM", "BloomForCausalLM", "CohereForCausalLM", "FalconForCausalLM", "GPT2LMHeadModel",
            "GPTBigCodeForCausalLM", "GPTNeoXForCausalLM", "GemmaForCausalLM", "Gemma2ForCausalLM", "GlmForCausalLM",
            "GraniteForCausalLM", "GraniteMoeForCausalLM", "HeliumForCausalLM", "LlamaForCausalLM", "MistralForCausalLM", "MixtralForCausalLM", "MptForCausalLM",
            "NemotronForCausalLM", "OlmoForCausalLM", "Olmo2ForCausalLM", "OlmoeForCausalLM", "PersimmonForCausalLM", "PhiForCausalLM", "Phi3ForCausalLM",
            "Qwen2ForCausalLM", "Qwen2MoeForCausalLM", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM", "SmolLM3ForCausalLM", "StableLmForCausalLM",
            "Starcoder2ForCausalLM", "XGLMForCausalLM")
SMALL_HEADS = ("Gemma2ForCausalLM", "GemmaForCausalLM", "GlmForCausalLM", "HeliumForCausalLM", "MistralForCausalLM", "MixtralForCausalLM",
               "NemotronForCausalLM", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM", "LlamaForCausalLM")
WORDS = {
    **{name: text(name) for name in ENCODERS},
    **{name: text(name, **({"head_dim": 8} if name in SMALL_HEADS else {})) for name in DECODERS},
    "BigBirdModel": text("BigBirdModel", attention_type="original_full"),
    "CodeGenForCausalLM": text("CodeGenForCausalLM", rotary_dim=4), "GPTJForCausalLM": text("GPTJForCausalLM", rotary_dim=4),
    "CTRLLMHeadModel": text("CTRLLMHeadModel", dff=64), "EsmModel": text("EsmModel", position_embedding_type="rotary"),
    "GPTNeoForCausalLM": text("GPTNeoForCausalLM", num_heads=4, attention_types=[[["global", "local"], 1]], window_size=4),
    "Gemma3ForCausalLM": text("Gemma3ForCausalLM", "Gemma3TextConfig", head_dim=8),
    "GptOssForCausalLM": text("GptOssForCausalLM", head_dim=8, num_local_experts=4),
    "DeepseekV3ForCausalLM": text("DeepseekV3ForCausalLM", num_key_value_heads=4, n_routed_experts=4, n_group=2, topk_group=1, num_experts_per_tok=2, kv_lora_rank=8, q_lora_rank=8,
                                  qk_rope_head_dim=8, v_head_dim=8, qk_nope_head_dim=8, first_k_dense_replace=1),
    "LongformerModel": text("LongformerModel", attention_window=8), "MambaForCausalLM": text("MambaForCausalLM", state_size=8, time_step_rank=4),
    "Mamba2ForCausalLM": text("Mamba2ForCausalLM", state_size=8, num_heads=8, head_dim=8, n_groups=1, chunk_size=8),
    "OPTForCausalLM": text("OPTForCausalLM", word_embed_proj_dim=32), "RwkvModel": text("RwkvModel", attention_hidden_size=32, context_length=32),
    "RecurrentGemmaForCausalLM": text("RecurrentGemmaForCausalLM", lru_width=32, head_dim=8, attention_window_size=8),
    "T5EncoderModel": text("T5EncoderModel", "T5Config", num_heads=4), "UMT5EncoderModel": text("UMT5EncoderModel", "UMT5Config", num_heads=4),
    "CanineModel": text("CanineModel", num_hash_buckets=64, local_transformer_stride=8, downsampling_rate=4),
    "T5ForConditionalGeneration": pairs("T5ForConditionalGeneration", num_heads=4),
    "SwitchTransformersForConditionalGeneration": pairs("SwitchTransformersForConditionalGeneration", num_heads=4),
    **{name: pairs(name) for name in ("BartForConditionalGeneration", "BlenderbotForConditionalGeneration", "M2M100ForConditionalGeneration",
                                      "MBartForConditionalGeneration", "MarianModel", "PegasusForConditionalGeneration", "PLBartForConditionalGeneration",
                                      "MvpForConditionalGeneration")},
    "LEDModel": pairs("LEDModel", attention_window=8, max_encoder_position_embeddings=64, max_decoder_position_embeddings=64),
    "ProphetNetModel": pairs("ProphetNetModel", num_encoder_attention_heads=4, num_decoder_attention_heads=4),
}
SIGHT = {
    **{name: pixels(name, image_size=64, patch_size=16) for name in ("ViTModel", "DeiTModel", "BeitModel", "Dinov2Model", "ViTMSNModel")},
    "YolosModel": pixels("YolosModel", image_size=[64, 64], patch_size=16, num_detection_tokens=5),
    "ASTModel": sound("ASTModel", shape=(2, 64, 32), max_length=64, num_mel_bins=32),
    "BitModel": pixels("BitModel", embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], num_groups=4),
    **{name: pixels(name, plain=True, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]) for name in ("ConvNextModel", "ConvNextV2Model")},
    "FocalNetModel": pixels("FocalNetModel", plain=True, embed_dim=8, depths=[1, 1, 1, 1], image_size=64),
    "CvtModel": pixels("CvtModel", plain=True, embed_dim=[16, 32, 48], num_heads=[1, 2, 3], depth=[1, 2, 3]),
    "DPTForDepthEstimation": pixels("DPTForDepthEstimation", "DPTConfig", image_size=64, patch_size=16, num_hidden_layers=4, backbone_out_indices=[0, 1, 2, 3],
                                    neck_hidden_sizes=[8, 16, 32, 32], fusion_hidden_size=16),
    "DetrForObjectDetection": detr, "EfficientNetModel": pixels("EfficientNetModel", "EfficientNetConfig", width_coefficient=0.5, hidden_dim=640),
    "GLPNModel": pixels("GLPNModel", hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], decoder_hidden_size=16, num_attention_heads=[1, 2, 4, 4]),
    "LevitModel": pixels("LevitModel", size=64, image_size=64, hidden_sizes=[16, 24, 32], num_attention_heads=[2, 3, 4], depths=[1, 1, 1]),
    "MobileNetV1Model": pixels("MobileNetV1Model", depth_multiplier=0.25), "MobileNetV2Model": pixels("MobileNetV2Model", depth_multiplier=0.35),
    "MobileViTModel": pixels("MobileViTModel", image_size=64), "MobileViTV2Model": pixels("MobileViTV2Model", image_size=64, width_multiplier=0.5),
    "PoolFormerModel": pixels("PoolFormerModel", hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]),
    "PvtModel": pixels("PvtModel", image_size=64, hidden_sizes=[8, 16, 40, 64], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 5, 8]),
    "RegNetModel": pixels("RegNetModel", embedding_size=16, hidden_sizes=[16, 24, 32, 48], depths=[1, 1, 1, 1], groups_width=8),
    "ResNetModel": pixels("ResNetModel", embedding_size=16, hidden_sizes=[16, 24, 32, 48], depths=[1, 1, 1, 1]),
    "SegformerForSemanticSegmentation": pixels("SegformerForSemanticSegmentation", "SegformerConfig", hidden_sizes=[8, 16, 40, 64], depths=[1, 1, 1, 1],
                                               decoder_hidden_size=16, num_attention_heads=[1, 2, 5, 8]),
    "SwinModel": pixels("SwinModel", plain=True, image_size=64, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4),
    "Swinv2Model": pixels("Swinv2Model", plain=True, image_size=64, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4),
    **{name: sound(name, conv_dim=[16, 16, 16], conv_stride=[5, 4, 4], conv_kernel=[10, 4, 4], num_feat_extract_layers=3, num_conv_pos_embeddings=16,
                   num_conv_pos_embedding_groups=4, mask_time_prob=0.0, layerdrop=0.0) for name in ("Wav2Vec2Model", "HubertModel", "WavLMModel", "UniSpeechModel",
                                                                                                    "Data2VecAudioModel")},
    "WhisperForConditionalGeneration": whisper, "CLIPModel": clip("CLIP"), "SiglipModel": clip("Siglip"), "ChineseCLIPModel": clip("ChineseCLIP"),
    "PatchTSTModel": series("PatchTST", patch_stride=8, do_mask_input=False), "PatchTSMixerModel": series("PatchTSMixer", patch_stride=8),
}
MODELS |= {f"transformers/{name}": make for name, make in {**WORDS, **SIGHT}.items()}


# ---- diffusers ----

def diffuser(name, options, inputs):
    def make():
        import diffusers
        return getattr(diffusers, name)(**options), (), inputs()
    return make


BLOCKS = dict(block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=4)
STEP = torch.tensor([3, 7])


def noise(*shape):
    return lambda: {"sample": torch.randn(*shape)}


def conditioned(sample, states, **more):
    return lambda: {"hidden_states": torch.randn(*sample), "timestep": STEP.float(), "encoder_hidden_states": torch.randn(*states),
                    **{k: v() for k, v in more.items()}}


VAE = dict(down_block_types=["DownEncoderBlock2D"] * 2, up_block_types=["UpDecoderBlock2D"] * 2, latent_channels=4, **BLOCKS)
FLUX = dict(patch_size=1, in_channels=4, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=2, joint_attention_dim=32,
            pooled_projection_dim=32, axes_dims_rope=[4, 4, 8])
DIFFUSERS = {
    "UNet2DModel": (dict(sample_size=16, down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
                         attention_head_dim=4, **BLOCKS), lambda: {"sample": image(16), "timestep": STEP}),
    "UNet2DConditionModel": (dict(sample_size=16, down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
                                  cross_attention_dim=32, attention_head_dim=4, **BLOCKS),
                             lambda: {"sample": torch.randn(2, 4, 16, 16), "timestep": STEP, "encoder_hidden_states": torch.randn(2, 6, 32)}),
    "UNet3DConditionModel": (dict(sample_size=16, down_block_types=("CrossAttnDownBlock3D", "DownBlock3D"), up_block_types=("UpBlock3D", "CrossAttnUpBlock3D"),
                                  cross_attention_dim=32, attention_head_dim=4, **BLOCKS),
                             lambda: {"sample": torch.randn(2, 4, 3, 16, 16), "timestep": STEP, "encoder_hidden_states": torch.randn(2, 6, 32)}),
    "UNet1DModel": (dict(block_out_channels=(8, 16, 16), in_channels=14, out_channels=14, time_embedding_type="positional", use_timestep_embedding=True,
                         out_block_type="OutConv1DBlock", flip_sin_to_cos=False, freq_shift=1.0, act_fn="swish", norm_num_groups=4,
                         down_block_types=("DownResnetBlock1D",) * 3, up_block_types=("UpResnetBlock1D",) * 2, mid_block_type="MidResTemporalBlock1D",
                         downsample_each_block=False), lambda: {"sample": torch.randn(2, 14, 16), "timestep": STEP}),
    "ControlNetModel": (dict(down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), cross_attention_dim=32, attention_head_dim=4,
                             conditioning_embedding_out_channels=(8, 16), **BLOCKS),
                        lambda: {"sample": torch.randn(2, 4, 16, 16), "timestep": STEP, "encoder_hidden_states": torch.randn(2, 6, 32),
                                 "controlnet_cond": image(32)}),
    "AutoencoderKL": (VAE, noise(2, 3, 32, 32)),
    "AutoencoderTiny": (dict(encoder_block_out_channels=(8, 8), decoder_block_out_channels=(8, 8), num_encoder_blocks=(1, 1), num_decoder_blocks=(1, 1)),
                        noise(2, 3, 32, 32)),
    "VQModel": (dict(block_out_channels=(8, 16), norm_num_groups=4, latent_channels=3, down_block_types=["DownEncoderBlock2D"] * 2,
                     up_block_types=["UpDecoderBlock2D"] * 2), noise(2, 3, 32, 32)),
    "AutoencoderKLTemporalDecoder": (dict(down_block_types=["DownEncoderBlock2D"] * 2, latent_channels=4, block_out_channels=(32, 64)),
                                     lambda: {"sample": torch.randn(2, 3, 32, 32), "num_frames": 2}),
    "AsymmetricAutoencoderKL": (dict(down_block_types=["DownEncoderBlock2D"] * 2, up_block_types=["UpDecoderBlock2D"] * 2, down_block_out_channels=(8, 16),
                                     up_block_out_channels=(8, 16), norm_num_groups=4, layers_per_down_block=1, layers_per_up_block=1), noise(2, 3, 32, 32)),
    "AutoencoderKLWan": (dict(base_dim=4, z_dim=4, dim_mult=[1, 2], num_res_blocks=1, temperal_downsample=[True]), noise(1, 3, 5, 16, 16)),
    "AutoencoderDC": (dict(in_channels=3, latent_channels=4, attention_head_dim=2, encoder_block_types=("ResBlock", "EfficientViTBlock"),
                           decoder_block_types=("ResBlock", "EfficientViTBlock"), encoder_block_out_channels=(8, 8), decoder_block_out_channels=(8, 8),
                           encoder_qkv_multiscales=((), (5,)), decoder_qkv_multiscales=((), (5,)), encoder_layers_per_block=(1, 1),
                           decoder_layers_per_block=[1, 1], downsample_block_type="conv", upsample_block_type="interpolate",
                           decoder_norm_types="rms_norm", decoder_act_fns="silu"), noise(2, 3, 32, 32)),
    "DiTTransformer2DModel": (dict(num_attention_heads=2, attention_head_dim=8, in_channels=4, num_layers=2, sample_size=8, patch_size=2, norm_num_groups=4,
                                   out_channels=8, num_embeds_ada_norm=10),
                              lambda: {"hidden_states": torch.randn(2, 4, 8, 8), "timestep": STEP, "class_labels": torch.tensor([1, 2])}),
    "PixArtTransformer2DModel": (dict(num_attention_heads=2, attention_head_dim=8, in_channels=4, num_layers=2, sample_size=8, patch_size=2,
                                      norm_num_groups=4, out_channels=8, cross_attention_dim=16, caption_channels=32, use_additional_conditions=False),
                                 lambda: {"hidden_states": torch.randn(2, 4, 8, 8), "timestep": STEP, "encoder_hidden_states": torch.randn(2, 6, 32),
                                          "added_cond_kwargs": {"resolution": None, "aspect_ratio": None}}),
    "SD3Transformer2DModel": (dict(sample_size=8, patch_size=1, in_channels=4, num_layers=2, attention_head_dim=8, num_attention_heads=4,
                                   caption_projection_dim=32, joint_attention_dim=32, pooled_projection_dim=64, out_channels=4),
                              conditioned((2, 4, 8, 8), (2, 6, 32), pooled_projections=lambda: torch.randn(2, 64))),
    "FluxTransformer2DModel": (FLUX, conditioned((2, 16, 4), (2, 6, 32), timestep=lambda: STEP / 10, pooled_projections=lambda: torch.randn(2, 32),
                                                 img_ids=lambda: torch.zeros(16, 3), txt_ids=lambda: torch.zeros(6, 3))),  # the model multiplies by 1000
    "SanaTransformer2DModel": (dict(patch_size=1, in_channels=4, out_channels=4, num_layers=1, attention_head_dim=4, num_attention_heads=2,
                                    num_cross_attention_heads=2, cross_attention_head_dim=4, cross_attention_dim=8, caption_channels=8, sample_size=16),
                               conditioned((2, 4, 16, 16), (2, 6, 8))),
    "AuraFlowTransformer2DModel": (dict(sample_size=16, patch_size=2, in_channels=4, num_mmdit_layers=1, num_single_dit_layers=1, attention_head_dim=8,
                                        num_attention_heads=4, caption_projection_dim=32, joint_attention_dim=32, out_channels=4, pos_embed_max_size=256),
                                   conditioned((2, 4, 16, 16), (2, 6, 32), timestep=lambda: STEP / 10)),  # times 1000, too
    "CogVideoXTransformer3DModel": (dict(num_attention_heads=2, attention_head_dim=16, in_channels=4, out_channels=4, time_embed_dim=2, text_embed_dim=8,
                                         num_layers=1, sample_width=8, sample_height=8, sample_frames=5, patch_size=2, temporal_compression_ratio=4,
                                         max_text_seq_length=6), conditioned((1, 2, 4, 8, 8), (1, 6, 8), timestep=lambda: STEP[:1])),
    "WanTransformer3DModel": (dict(patch_size=(1, 2, 2), num_attention_heads=2, attention_head_dim=12, in_channels=4, out_channels=4, text_dim=16, freq_dim=256,
                                   ffn_dim=32, num_layers=2, cross_attn_norm=True, qk_norm="rms_norm_across_heads", rope_max_seq_len=32),
                              conditioned((1, 4, 2, 16, 16), (1, 6, 16), timestep=lambda: STEP[:1])),
    "LTXVideoTransformer3DModel": (dict(in_channels=4, out_channels=4, num_attention_heads=2, attention_head_dim=8, cross_attention_dim=16, num_layers=1,
                                        caption_channels=16),
                                   conditioned((2, 32, 4), (2, 6, 16), timestep=lambda: STEP, encoder_attention_mask=lambda: torch.ones(2, 6).bool(),
                                               num_frames=lambda: 2, height=lambda: 4, width=lambda: 4)),
    "PriorTransformer": (dict(num_attention_heads=2, attention_head_dim=4, num_layers=2, embedding_dim=8, num_embeddings=7, additional_embeddings=4),
                         lambda: {"hidden_states": torch.randn(2, 8), "timestep": STEP, "proj_embedding": torch.randn(2, 8),
                                  "encoder_hidden_states": torch.randn(2, 7, 8)}),
}
MODELS |= {f"diffusers/{name}": diffuser(name, *row) for name, row in DIFFUSERS.items()}
