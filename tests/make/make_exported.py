"""Models as exporters write them, with random weights and small sizes: make_exported.py FOLDER GROUP... [--only NAME,...] writes
FOLDER/NAME.onnx and its inputs, FOLDER/NAME.safetensors, for every model of the groups; --list prints the names. GROUP is torch (both exporters
of PyTorch; needs torch, torchvision, transformers, onnxscript), optimum (optimum-onnx, timm), tf (tensorflow, tf2onnx) or paddle
(paddlepaddle, paddle2onnx): each in a Python that has these. tests/oracle/onnx/exported.py compares what they give with ONNX Runtime."""
import inspect
import json
import os
import pathlib
import sys
import traceback

import numpy as np

GROUPS = {"torch": {}, "optimum": {}, "tf": {}, "paddle": {}}
TYPES = {"float32": "F32", "float64": "F64", "float16": "F16", "int64": "I64", "int32": "I32", "bool": "BOOL", "uint8": "U8"}


def write_inputs(path, arrays):
    """Inputs as x.0, x.1, ... of a safetensors file."""
    header, body = {}, b""
    for k, a in enumerate(arrays):
        data = np.ascontiguousarray(a).tobytes()
        header[f"x.{k}"] = {"dtype": TYPES[str(a.dtype)], "shape": list(a.shape), "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


# ---- PyTorch ----

def torch_model(name, make, exporters):
    """make() gives a module, its inputs, and by position which of their dimensions are dynamic: {0: {0: "batch"}}. exporters: of "ts" and
    "dynamo", each with its opset, such as "ts12 dynamo18"."""
    for exporter in exporters.split():
        kind, opset = exporter.rstrip("0123456789"), int(exporter.lstrip("tsdynamo"))
        GROUPS["torch"][f"{name}_{exporter}"] = lambda folder, file, kind=kind, opset=opset: torch_export(folder / file, make, kind, opset)


def torch_export(path, make, kind, opset):
    import torch
    torch.manual_seed(1)
    torch.backends.mha.set_fastpath_enabled(False)
    module, args, dynamic = make()
    if not isinstance(module, torch.jit.ScriptModule):
        module.eval()
    names = [f"in{k}" for k in range(len(args))]
    options = {"input_names": names, "opset_version": opset, "dynamo": kind == "dynamo"}
    if kind == "dynamo":
        options["external_data"] = False
        if dynamic:
            # Net.forward(self, *x) takes its inputs as one tuple.
            shapes = tuple({d: torch.export.Dim.DYNAMIC for d in dynamic.get(k, {})} for k in range(len(args)))
            several = any(p.kind == p.VAR_POSITIONAL for p in inspect.signature(module.forward).parameters.values())
            options["dynamic_shapes"] = (shapes,) if several else shapes
    elif dynamic:
        options["dynamic_axes"] = {names[k]: dims for k, dims in dynamic.items()}
    with torch.no_grad():
        torch.onnx.export(module, tuple(args), path, **options)
    write_inputs(path.with_suffix(".safetensors"), [a.detach().numpy() for a in args])


def torch_nets():
    import torch
    from torch import nn
    import torch.nn.functional as F

    def of(fn, *args, dynamic=None):
        class Net(nn.Module):
            def forward(self, *x):
                return fn(*x)
        return lambda: (Net(), args, dynamic or {})

    def module(make, *args, dynamic=None):
        return lambda: (make(), args, dynamic or {})

    def r(*shape):
        return torch.randn(*shape, generator=generator)

    generator = torch.Generator().manual_seed(2)
    batch = {0: {0: "batch"}}

    class First(nn.Module):
        """The first result of a module."""
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, *x):
            return self.inner(*x)[0]

    torch_model("mlp", module(lambda: nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Dropout(), nn.LayerNorm(32), nn.Linear(32, 5), nn.Softmax(-1)),
                              r(4, 16), dynamic=batch), "ts12 ts17 dynamo18 dynamo21 dynamo24")
    torch_model("cnn", module(lambda: nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU6(), nn.MaxPool2d(2, ceil_mode=True),
                                                    nn.Conv2d(8, 16, 3, stride=2, groups=4), nn.Hardswish(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                                                    nn.Linear(16, 4)), r(2, 3, 17, 17), dynamic=batch), "ts12 ts15 dynamo18 dynamo22")
    torch_model("conv1d", module(lambda: nn.Sequential(nn.Conv1d(4, 8, 5, dilation=2, padding=4), nn.ELU(), nn.AvgPool1d(3, 2), nn.ConvTranspose1d(8, 2, 4, 2, 1)),
                                 r(2, 4, 33)), "ts13 dynamo20")
    torch_model("conv3d", module(lambda: nn.Sequential(nn.Conv3d(2, 4, 3, padding=1), nn.InstanceNorm3d(4, affine=True), nn.LeakyReLU(), nn.MaxPool3d(2)),
                                 r(1, 2, 6, 8, 8)), "ts14 dynamo18")
    torch_model("lstm", module(lambda: First(nn.LSTM(8, 12, 2, batch_first=True, bidirectional=True)), r(3, 7, 8)), "ts12 ts16 dynamo18")
    torch_model("gru", module(lambda: First(nn.GRU(8, 12, batch_first=True)), r(3, 7, 8)), "ts13 dynamo18")
    torch_model("rnn", module(lambda: First(nn.RNN(6, 5, 2)), r(4, 2, 6)), "ts12 dynamo19")
    torch_model("encoder", module(lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2, enable_nested_tensor=False),
                                  r(2, 6, 16)), "ts14 dynamo18 dynamo23")
    torch_model("transformer", module(lambda: nn.Transformer(16, 2, 1, 1, 32, batch_first=True), r(2, 5, 16), r(2, 4, 16)), "dynamo18 dynamo23")
    torch_model("unet", module(lambda: Unet(nn, F), r(1, 3, 20, 20), dynamic={0: {2: "height", 3: "width"}}), "ts13 dynamo18")
    torch_model("resize", of(lambda x: (F.interpolate(x, scale_factor=2, mode="nearest"), F.interpolate(x, size=(11, 9), mode="bilinear", align_corners=False),
                                       F.interpolate(x, size=(5, 6), mode="bicubic", align_corners=True)), r(1, 2, 7, 8)), "ts12 dynamo18")
    torch_model("norms", module(lambda: nn.Sequential(nn.GroupNorm(2, 8), nn.SiLU(), nn.InstanceNorm2d(8), nn.Mish(), nn.PixelShuffle(2), nn.LocalResponseNorm(3)),
                                r(2, 8, 5, 5)), "ts18 dynamo18")
    torch_model("pads", of(lambda x: (F.pad(x, (1, 2, 2, 1), mode="reflect"), F.pad(x, (1, 1), value=3.0), F.pad(x, (-1, 2, 1, 0), mode="replicate")),
                           r(1, 2, 5, 6)), "ts12 dynamo18")
    torch_model("indexing", of(lambda x, i: (x[:, i], x[:, ::2, -3:], x[i, 1:].sum(1), torch.gather(x, 1, i[None, :, None].expand(2, 3, 5)),
                                            x.index_select(2, i), torch.where(x > 0, x, x.exp())), r(3, 6, 5), torch.tensor([2, 0, 1])), "ts12 ts16 dynamo18 dynamo23")
    torch_model("writes", of(writes, r(3, 6)), "ts13 dynamo18")
    torch_model("sorts", of(lambda x: (*torch.topk(x, 3, -1), *torch.sort(x, 1, descending=True), x.cumsum(1), x.argmax(-1), x.max(1)[0]),
                            r(3, 7)), "ts12 dynamo18")
    torch_model("einsums", of(lambda a, b: (torch.einsum("bij,bjk->bik", a, b), torch.einsum("bij,bjk->k", a, b), torch.bmm(a, b).norm(dim=1),
                                           torch.baddbmm(torch.ones(1), a, b, alpha=0.5)), r(2, 3, 4), r(2, 4, 5)), "ts12 dynamo18")
    torch_model("reductions", of(lambda x: (x.std(1), x.var(dim=(0, 2), keepdim=True), x.logsumexp(-1), x.prod(1), x.amin((0, 1)), F.normalize(x, dim=1),
                                           x.mean(), torch.cdist(x, x + 1)), r(2, 4, 5)), "ts12 ts18 dynamo18")
    torch_model("grid", of(lambda x, g: (F.grid_sample(x, g, align_corners=False), F.grid_sample(x, g, mode="nearest", padding_mode="border", align_corners=True)),
                           r(1, 2, 6, 6), r(1, 4, 5, 2).tanh()), "ts16 dynamo20")
    torch_model("masks", of(lambda x, m: (x.masked_fill(m, -1e4).softmax(-1), torch.tril(x), x * m, torch.logical_xor(m, x > 0), torch.ones_like(x).triu(1)),
                            r(4, 4), r(4, 4) > 0), "ts14 dynamo18")
    torch_model("sizes", of(lambda x: (x.reshape(x.shape[0], -1), x.view(-1, x.shape[-1]).expand(2, -1, -1), x.new_zeros(x.shape[1]) + torch.arange(x.shape[1]),
                                      x.flatten(1)[:, : x.shape[1] // 2], torch.cat([x, x], 1).unflatten(1, (2, x.shape[1])), x.repeat(1, x.shape[0], 1)),
                            r(2, 6, 4), dynamic={0: {0: "batch", 1: "length"}}), "ts12 ts17 dynamo18")
    torch_model("embedding", module(lambda: Embeds(nn), torch.tensor([[1, 5, 3], [0, 2, 9]])), "ts12 dynamo18")
    torch_model("scripted", lambda: (torch.jit.script(Scripted(nn)), (r(3, 4), torch.tensor(4)), {}), "ts13 ts17")
    torch_model("loss", of(lambda x, y: (F.cross_entropy(x, y), F.nll_loss(F.log_softmax(x, 1), y, reduction="sum"), F.smooth_l1_loss(x, x + 0.7)),
                           r(4, 6), torch.tensor([1, 0, 5, 3])), "ts12 dynamo18")
    torch_model("complex_steps", of(lambda x: (torch.fft.rfft(x).abs(), torch.stft(x, 8, 4, window=torch.ones(8), return_complex=False, center=False)), r(2, 32)),
                "dynamo20")
    torch_model("quantiser", of(lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 255), r(3, 5)), "ts13 dynamo18")
    torch_model("double", of(lambda x: (x.double() @ x.double().T).float().clamp(-1, 1).round().to(torch.int32), r(3, 4)), "ts12 dynamo18")
    torch_model("half", module(lambda: nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3)).half(), r(2, 8).half()), "ts14 dynamo18")


def writes(x):
    y = x.clone()
    y[1:, ::2] = 7
    y[0] += x[2]
    y.clamp_(max=4)
    return y.scatter(1, (y * 0).long(), y[:, :6] + 1), y.scatter_add(1, (y * 0).long() + 2, y)


def Unet(nn, F):
    import torch

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.down, self.mid = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 1, 1)
            self.up, self.out = nn.ConvTranspose2d(8, 8, 2, 2), nn.Conv2d(11, 2, 1)

        def forward(self, x):
            y = F.relu(self.up(F.relu(self.mid(F.relu(self.down(x))))))
            y = F.interpolate(y, size=x.shape[2:], mode="bilinear", align_corners=False)
            return self.out(torch.cat([x, y], 1))
    return Net()


def Embeds(nn):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.at, self.norm = nn.Embedding(10, 8, padding_idx=0), nn.Embedding(6, 8), nn.LayerNorm(8)

        def forward(self, i):
            import torch
            return self.norm(self.words(i) + self.at(torch.arange(i.shape[1])))
    return Net()


def Scripted(nn):
    import torch

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.step = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor, n: torch.Tensor):
            for _ in range(3):
                x = torch.tanh(self.step(x))
            if bool(x.sum() > 0):
                x = x * 2
            else:
                x = x - 1
            k = 0
            while k < int(n):
                x = x + float(k)
                k += 1
            return x
    return Net()


def torch_vision():
    import torch
    import torchvision.models as tv
    from torchvision.models import segmentation
    image = torch.randn(1, 3, 64, 64, generator=torch.Generator().manual_seed(3))
    batch = {0: {0: "batch"}}
    for name, exporters in {"resnet18": "ts12 dynamo18", "mobilenet_v3_small": "ts13 dynamo20", "squeezenet1_1": "ts12", "shufflenet_v2_x0_5": "ts14 dynamo18",
                            "efficientnet_b0": "ts15 dynamo22", "mnasnet0_5": "ts12", "regnet_x_400mf": "dynamo18", "densenet121": "ts16", "googlenet": "ts13",
                            "convnext_tiny": "dynamo23", "swin_t": "ts17 dynamo18", "maxvit_t": "dynamo18"}.items():
        options = {"init_weights": False, "aux_logits": False} if name == "googlenet" else {}
        x = torch.randn(1, 3, 224, 224, generator=torch.Generator().manual_seed(3)) if name == "maxvit_t" else image
        torch_model(name, lambda name=name, options=options, x=x: (getattr(tv, name)(weights=None, **options), (x,), {} if "swin" in name or "max" in name else batch), exporters)
    torch_model("lraspp", lambda: (Dict(segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None)), (image,), {}), "ts13 dynamo18")
    torch_model("vit", lambda: (tv.VisionTransformer(32, 8, 2, 4, 48, 96), (torch.randn(1, 3, 32, 32),), {}), "ts14 dynamo18")
    torch_model("ssdlite", lambda: (Boxes(tv.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5)), (image,), {}), "ts16")


def Dict(model):
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, x):
            return self.model(x)["out"]
    return Net()


def Boxes(model):
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, x):
            d = self.model([x[0]])[0]
            return d["boxes"], d["scores"], d["labels"]
    return Net()


def torch_transformers():
    import torch
    import transformers as t
    ids = torch.tensor([[5, 9, 2, 31, 7, 1, 4, 8], [3, 3, 17, 22, 6, 40, 11, 12]])
    small = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48, "max_position_embeddings": 32}
    image = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(4))
    dynamic = {0: {0: "batch", 1: "length"}}

    def named(model, *names):
        """A module that takes its inputs by position and gives the first result."""
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self, *x):
                return self.model(**dict(zip(names, x)), return_dict=False, **({"use_cache": False} if hasattr(model.config, "use_cache") else {}))[0]
        return Net()

    def text(name, config, cls, exporters, **options):
        torch_model(name, lambda: (named(getattr(t, cls)(getattr(t, config)(**{**small, **options})), "input_ids"), (ids,), dynamic), exporters)

    text("bert", "BertConfig", "BertModel", "ts14 dynamo18 dynamo23")
    text("distilbert", "DistilBertConfig", "DistilBertForMaskedLM", "dynamo18", dim=32, hidden_dim=48, n_layers=2, n_heads=2)
    text("roberta", "RobertaConfig", "RobertaForSequenceClassification", "dynamo20", num_labels=3)
    text("electra", "ElectraConfig", "ElectraModel", "dynamo18", embedding_size=16)
    text("gpt2", "GPT2Config", "GPT2LMHeadModel", "dynamo18", n_embd=32, n_layer=2, n_head=2, n_positions=32)
    text("llama", "LlamaConfig", "LlamaForCausalLM", "dynamo18 dynamo23", num_key_value_heads=1)
    text("mistral", "MistralConfig", "MistralForCausalLM", "dynamo18", num_key_value_heads=1, sliding_window=4)
    text("qwen2", "Qwen2Config", "Qwen2ForCausalLM", "dynamo21", num_key_value_heads=2)
    text("gemma", "GemmaConfig", "GemmaForCausalLM", "dynamo18", num_key_value_heads=1, head_dim=16)
    text("phi", "PhiConfig", "PhiForCausalLM", "dynamo18")
    text("opt", "OPTConfig", "OPTForCausalLM", "dynamo18", ffn_dim=48, word_embed_proj_dim=32)
    text("neox", "GPTNeoXConfig", "GPTNeoXForCausalLM", "dynamo18")
    t5 = {"vocab_size": 64, "d_model": 32, "d_kv": 16, "d_ff": 48, "num_layers": 2, "num_heads": 2, "decoder_start_token_id": 0}
    torch_model("t5", lambda: (named(t.T5ForConditionalGeneration(t.T5Config(**t5)), "input_ids", "decoder_input_ids"), (ids, ids[:, :5]), {}), "ts14 dynamo18")
    bart = {"vocab_size": 64, "d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
            "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 32}
    torch_model("bart", lambda: (named(t.BartModel(t.BartConfig(**bart)), "input_ids", "decoder_input_ids"), (ids, ids[:, :5]), {}), "dynamo18")
    vit = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48, "image_size": 32, "patch_size": 8}
    torch_model("hf_vit", lambda: (named(t.ViTForImageClassification(t.ViTConfig(**vit)), "pixel_values"), (image,), {}), "ts14 dynamo18")
    torch_model("segformer", lambda: (named(t.SegformerForSemanticSegmentation(t.SegformerConfig(hidden_sizes=[8, 16, 16, 16], depths=[1] * 4, num_attention_heads=[1, 2, 2, 2],
                                                                                                  decoder_hidden_size=16)), "pixel_values"),
                                      (torch.randn(1, 3, 64, 64),), {}), "dynamo18")
    torch_model("whisper_encoder", lambda: (named(t.models.whisper.modeling_whisper.WhisperEncoder(t.WhisperConfig(
        d_model=32, encoder_layers=1, encoder_attention_heads=2, encoder_ffn_dim=48, num_mel_bins=20, max_source_positions=50)), "input_features"),
        (torch.randn(1, 20, 100),), {}), "dynamo18")


# ---- optimum ----

def optimum():
    """Tiny checkpoints of random weights, by the recipes of optimum's exporter."""
    def add(name, config, cls, task, opset=None, **options):
        def make(folder, file):
            import tempfile
            import torch
            import transformers as t
            from optimum.exporters.onnx import onnx_export_from_model
            torch.manual_seed(1)
            model = getattr(t, cls)(getattr(t, config)(**options)).eval()
            with tempfile.TemporaryDirectory() as d:
                onnx_export_from_model(model, d, task=task, opset=opset, do_validation=False, no_post_process=True)
                for k, path in enumerate(sorted(pathlib.Path(d).glob("*.onnx"))):
                    stem = file[:-5] + (f"_{path.stem}" if k or len(list(pathlib.Path(d).glob("*.onnx"))) > 1 else "")
                    os.replace(path, folder / f"{stem}.onnx")
                    write_random(folder / f"{stem}.onnx", {"vocab": 60})
        GROUPS["optimum"][name] = make

    small = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48, "max_position_embeddings": 64}
    add("optimum_bert", "BertConfig", "BertForSequenceClassification", "text-classification", **small)
    add("optimum_distilbert", "DistilBertConfig", "DistilBertModel", "feature-extraction", vocab_size=64, dim=32, hidden_dim=48, n_layers=2, n_heads=2)
    add("optimum_gpt2", "GPT2Config", "GPT2LMHeadModel", "text-generation", vocab_size=64, n_embd=32, n_layer=2, n_head=2, n_positions=64)
    add("optimum_gpt2_past", "GPT2Config", "GPT2LMHeadModel", "text-generation-with-past", vocab_size=64, n_embd=32, n_layer=2, n_head=2, n_positions=64)
    add("optimum_llama_past", "LlamaConfig", "LlamaForCausalLM", "text-generation-with-past", num_key_value_heads=1, **small)
    add("optimum_t5", "T5Config", "T5ForConditionalGeneration", "text2text-generation", vocab_size=64, d_model=32, d_kv=16, d_ff=48, num_layers=2, num_heads=2,
        decoder_start_token_id=0)
    add("optimum_vit", "ViTConfig", "ViTForImageClassification", "image-classification", hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=48, image_size=32, patch_size=8)
    add("optimum_roberta_qa", "RobertaConfig", "RobertaForQuestionAnswering", "question-answering", **small)


def write_random(path, ranges):
    """Inputs for a model whose dimensions have names: small extents, ids below ranges["vocab"]."""
    import onnx
    g = onnx.load(path, load_external_data=False).graph
    rng, arrays = np.random.RandomState(5), []
    # a mask covers what is kept and what is new
    extent = {"batch_size": 2, "sequence_length": 5, "past_sequence_length": 3, "past_sequence_length + 1": 4, "past_sequence_length + sequence_length": 8,
              "decoder_sequence_length": 4, "encoder_sequence_length": 5}
    inits = {i.name for i in g.initializer}
    for i in g.input:
        if i.name in inits:
            continue
        t = i.type.tensor_type
        shape = [d.dim_value or extent.get(d.dim_param, 32 if d.dim_param in ("height", "width") else 3 if d.dim_param == "num_channels" else 2) for d in t.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(t.elem_type)
        if "mask" in i.name:
            arrays.append(np.ones(shape, dtype))
        elif "position" in i.name:
            arrays.append(np.broadcast_to(np.arange(shape[-1]) + 3 * any("past" in j.name for j in g.input), shape).astype(dtype))
        elif "token_type" in i.name:
            arrays.append(rng.randint(0, 2, shape).astype(dtype))
        elif dtype.kind == "f":
            arrays.append(rng.randn(*shape).astype(dtype))
        else:
            arrays.append(rng.randint(1, ranges["vocab"], shape).astype(dtype))
    write_inputs(path.with_suffix(".safetensors"), arrays)


# ---- TensorFlow ----

def tensorflow():
    import tensorflow as tf
    L = tf.keras.layers

    def add(name, make, shape, opset, dtype="float32"):
        def run(folder, file):
            import tf2onnx
            tf.keras.utils.set_random_seed(1)
            fn = make()
            spec = [tf.TensorSpec([None, *shape], dtype, name="x")]
            call = tf.function(lambda x: fn(x), input_signature=spec)
            tf2onnx.convert.from_function(call, input_signature=spec, opset=opset, output_path=str(folder / file))
            rng = np.random.RandomState(5)
            x = rng.randn(2, *shape).astype(dtype) if dtype == "float32" else rng.randint(0, 9, (2, *shape)).astype(dtype)
            write_inputs((folder / file).with_suffix(".safetensors"), [x])
        GROUPS["tf"][name] = run

    seq = tf.keras.Sequential
    add("tf_mlp", lambda: seq([L.Dense(16, "relu"), L.BatchNormalization(), L.Dense(4, "softmax")]), (8,), 13)
    add("tf_cnn", lambda: seq([L.Conv2D(8, 3, padding="same", activation="relu"), L.MaxPooling2D(), L.DepthwiseConv2D(3), L.GlobalAveragePooling2D(), L.Dense(3)]),
        (16, 16, 3), 15)
    add("tf_lstm", lambda: seq([L.LSTM(8, return_sequences=True), L.Bidirectional(L.LSTM(4))]), (6, 5), 17)
    add("tf_gru", lambda: seq([L.GRU(8)]), (6, 5), 14)
    add("tf_transposed", lambda: seq([L.Conv2DTranspose(4, 3, 2, padding="same"), L.UpSampling2D(2, interpolation="bilinear"), L.LayerNormalization()]), (5, 5, 2), 16)
    add("tf_embedding", lambda: seq([L.Embedding(10, 8), L.Conv1D(4, 3, padding="causal"), L.GlobalMaxPooling1D()]), (7,), 13, "int32")
    add("tf_functions", lambda: lambda x: (tf.nn.top_k(x, 3)[0], tf.math.cumsum(x, 1), tf.strided_slice(x, [0, 1], [2, 7], [1, 2]), tf.one_hot(tf.argmax(x, 1), 8),
                                          tf.where(x > 0, tf.exp(x), tf.abs(x)), tf.einsum("bi,bj->bij", x, x), tf.reshape(x, [-1, 4]), tf.math.erf(x)), (8,), 13)
    add("tf_attention", lambda: Attend(tf, L), (6, 16), 18)
    add("tf_mobilenet", lambda: tf.keras.applications.MobileNetV2((32, 32, 3), weights=None, alpha=0.35), (32, 32, 3), 15)
    add("tf_resnet", lambda: tf.keras.applications.ResNet50V2(input_shape=(32, 32, 3), weights=None), (32, 32, 3), 17)


def Attend(tf, L):
    layer = L.MultiHeadAttention(2, 8)
    norm = L.LayerNormalization()
    return lambda x: norm(x + layer(x, x))


# ---- PaddlePaddle ----

def paddle():
    import paddle as p
    from paddle import nn

    def add(name, make, shape, opset, dtype="float32"):
        def run(folder, file):
            p.seed(1)
            model = make()
            model.eval()
            stem = str(folder / file)[:-5]
            p.onnx.export(model, stem, input_spec=[p.static.InputSpec([None, *shape], dtype, "x")], opset_version=opset)
            rng = np.random.RandomState(5)
            x = rng.randn(2, *shape).astype(dtype) if dtype == "float32" else rng.randint(0, 9, (2, *shape)).astype(dtype)
            write_inputs((folder / file).with_suffix(".safetensors"), [x])
        GROUPS["paddle"][name] = run

    def of(fn):
        class Net(nn.Layer):
            def forward(self, x):
                return fn(x)
        return Net

    add("paddle_mlp", lambda: nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4), nn.Softmax()), (8,), 13)
    add("paddle_cnn", lambda: nn.Sequential(nn.Conv2D(3, 8, 3, padding=1), nn.BatchNorm2D(8), nn.Hardswish(), nn.MaxPool2D(2), nn.Flatten(), nn.Linear(8 * 64, 5)),
        (3, 16, 16), 12)
    add("paddle_lstm", lambda: First(nn), (6, 5), 15)
    add("paddle_encoder", lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32), 2), (6, 16), 14)
    add("paddle_upsample", lambda: nn.Sequential(nn.Conv2DTranspose(2, 4, 4, 2, 1), nn.Upsample(size=[24, 24], mode="bilinear"), nn.Swish()), (2, 6, 6), 16)
    add("paddle_functions", of(lambda x: (p.topk(x, 3)[0], p.cumsum(x, 1), x[:, 1:7:2], p.where(x > 0, p.exp(x), p.abs(x)), x.reshape([-1, 4]), p.argmax(x, 1),
                                          p.nn.functional.one_hot(p.argmax(x, 1), 8), p.std(x, 1))), (8,), 13)
    add("paddle_embedding", lambda: nn.Sequential(nn.Embedding(10, 8), nn.Conv1D(7, 4, 3)), (7,), 17, "int64")
    add("paddle_resnet18", lambda: p.vision.models.resnet18(num_classes=10), (3, 32, 32), 13)
    add("paddle_mobilenet", lambda: p.vision.models.mobilenet_v3_small(num_classes=10), (3, 32, 32), 15)


def First(nn):
    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(5, 8, 2, direction="bidirect")

        def forward(self, x):
            return self.lstm(x)[0]
    return Net()


FILL = {"torch": [torch_nets, torch_vision, torch_transformers], "optimum": [optimum], "tf": [tensorflow], "paddle": [paddle]}


def main():
    words = [a for a in sys.argv[1:] if not a.startswith("--")]
    only = next((sys.argv[k + 1].split(",") for k, a in enumerate(sys.argv) if a == "--only"), None)
    groups = [w for w in words if w in GROUPS]
    for group in groups:
        for fill in FILL[group]:
            fill()
    names = [(n, m) for g in groups for n, m in GROUPS[g].items() if not only or n in only]
    if "--list" in sys.argv:
        return print("\n".join(n for n, _ in names))
    folder, failed = pathlib.Path(words[0]), 0
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in names:
        if list(folder.glob(f"{name}*.safetensors")):
            continue
        try:
            make(folder, f"{name}.onnx")
        except Exception as e:
            failed += 1
            (folder / f"{name}.failed").write_text(traceback.format_exc())
            (folder / f"{name}.onnx").unlink(missing_ok=True)
            print(f"{name}: not exported: {type(e).__name__}: {str(e).strip().splitlines()[0][:150] if str(e).strip() else ''}", flush=True)
    print(f"{len(names) - failed} of {len(names)} models exported")


if __name__ == "__main__":
    main()
