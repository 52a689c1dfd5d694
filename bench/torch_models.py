"""Models of torchvision, timm and transformers through torch.compile: Weft beside eager mode and Inductor.

    PYTHON bench/torch_models.py check [NAME...]              values, gradients and buffers; graph breaks; what ran as PyTorch's
    PYTHON bench/torch_models.py first [NAME...]              processor seconds of the first call, with those of its children
    PYTHON bench/torch_models.py time [--alone COMMAND] [NAME...]   milliseconds of a call with 1 and 2 threads
    PYTHON bench/torch_models.py beside [--alone COMMAND] [NAME...] first and time

Each model is run in evaluation and in training (forward and backward; `--mode` selects one), from random weights, dropout
off. `check` compares with the model in float64: an error is wrong if it is above 8 times eager mode's. `first` runs each
back end in processes of its own, twice with one empty cache folder: cold, and warm; `--traced` with PyTorch's cache of
what Dynamo traced. `time` alternates between the back
ends and takes the least; `--alone COMMAND` runs `COMMAND sh -c ...` for as long as it measures. `beside` does both with
one folder, so that Inductor compiles once. Needs torch, torchvision, timm, transformers.
"""
import argparse
import copy
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings

import torch


def vision(name, **options):
    def make():
        import torchvision.models
        return getattr(torchvision.models, name)(weights=None, **options), (torch.randn(2, 3, 64, 64),), {}
    return make


def timm(name, size=64, **options):
    def make():
        import timm
        return timm.create_model(name, pretrained=False, **options), (torch.randn(2, 3, size, size),), {}
    return make


def text(model, config, **options):
    def make():
        import transformers
        made = getattr(transformers, model)(getattr(transformers, config)(vocab_size=100, **options))
        return made, (), {"input_ids": torch.randint(0, 90, (2, 16))}
    return make


SMALL = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)
MODELS = {
    **{name: vision(name) for name in ("resnet18", "mobilenet_v2", "mobilenet_v3_small", "squeezenet1_1", "shufflenet_v2_x0_5", "mnasnet0_5",
                                       "efficientnet_b0", "densenet121", "regnet_y_400mf", "swin_t", "convnext_tiny")},
    "googlenet": vision("googlenet", init_weights=False, aux_logits=False),
    **{f"timm.{name}": timm(name) for name in ("resnet10t", "mobilenetv4_conv_small", "ghostnet_100", "repvgg_a0", "edgenext_xx_small",
                                               "poolformer_s12")},
    "timm.mixer_s32_224": timm("mixer_s32_224", 224), "timm.levit_128s": timm("levit_128s", 224),
    "timm.deit_tiny_patch16_224": timm("deit_tiny_patch16_224", 224, depth=2),
    "bert": text("BertModel", "BertConfig", **SMALL), "roberta": text("RobertaModel", "RobertaConfig", **SMALL),
    "electra": text("ElectraModel", "ElectraConfig", embedding_size=32, **SMALL),
    "albert": text("AlbertModel", "AlbertConfig", embedding_size=16, **SMALL),
    "distilbert": text("DistilBertModel", "DistilBertConfig", dim=32, n_layers=2, n_heads=2, hidden_dim=64),
    "gpt2": text("GPT2LMHeadModel", "GPT2Config", n_embd=32, n_layer=2, n_head=2),
    "llama": text("LlamaForCausalLM", "LlamaConfig", **SMALL),
    "qwen2": text("Qwen2ForCausalLM", "Qwen2Config", num_key_value_heads=2, **SMALL),
    "mistral": text("MistralForCausalLM", "MistralConfig", num_key_value_heads=2, **SMALL),
    "t5_encoder": text("T5EncoderModel", "T5Config", dropout_rate=0.0, d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2),
    "opt": text("OPTForCausalLM", "OPTConfig", hidden_size=32, num_hidden_layers=2, num_attention_heads=2, ffn_dim=64, word_embed_proj_dim=32,
                max_position_embeddings=64),
}


def made(name, train):
    """The model without dropout, its arguments and named arguments."""
    torch.manual_seed(0)
    model, args, named = MODELS[name]()
    for m in model.modules():
        kind = type(m).__name__
        if "Dropout" in kind or kind == "StochasticDepth":
            m.p = 0.0
        if kind == "DropPath":
            m.drop_prob = 0.0
    if config := getattr(model, "config", None):
        config.use_cache = False
        for key in vars(config):
            if "dropout" in key or "pdrop" in key:
                setattr(config, key, 0.0)
    return model.train(train), args, named


def results(out):
    return [t for t in torch.utils._pytree.tree_leaves(out if isinstance(out, (tuple, list, torch.Tensor)) else dict(out))
            if isinstance(t, torch.Tensor) and t.is_floating_point()]


def step(f, args, named, train):
    """The results of a call, which in training is followed by the backward pass of a fixed cotangent."""
    if not train:
        with torch.no_grad():
            return results(f(*args, **named))
    out = results(f(*args, **named))
    torch.manual_seed(5)
    sum((t * torch.randn(t.shape).to(t.dtype)).mean() for t in out if t.requires_grad).backward()
    return out


def gradients(model):
    return {n: p.grad for n, p in model.named_parameters() if p.grad is not None}


def error(got, exact, floor):
    return max((((a - b).abs().max() / (b.abs().max() + floor)).item() for a, b in zip(got, exact)), default=0.0)


def check(name, train):
    from weft import dynamo
    model, args, named = made(name, train)
    twin, exact = copy.deepcopy(model), copy.deepcopy(model).double()
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    dynamo.statistics.reset()
    want, got = step(model, args, named, train), step(torch.compile(twin, backend=dynamo.backend), args, named, train)
    reference = step(exact, [a.double() if a.is_floating_point() else a for a in args], named, train)
    errors = [error(got, reference, 1e-6), error(want, reference, 1e-6), 0.0, 0.0]
    if train:
        g = [gradients(m) for m in (twin, model, exact)]
        assert g[0].keys() == g[1].keys(), g[0].keys() ^ g[1].keys()
        floor = 1e-3 * max(v.abs().max().item() for v in g[2].values())
        errors[2:] = (error([g[k][n] for n in g[2]], g[2].values(), floor) for k in (0, 1))
    right = errors[0] <= 8 * errors[1] + 1e-5 and errors[2] <= 8 * errors[3] + 1e-4 and all(
        torch.allclose(p, q, rtol=1e-3, atol=1e-4) for p, q in zip(model.buffers(), twin.buffers()) if p.is_floating_point())
    counters = torch._dynamo.utils.counters
    print(f"{'right' if right else 'WRONG'} {name} {'train' if train else 'eval'}: error {errors[0]:.1e} (eager {errors[1]:.1e}), of gradients "
          f"{errors[2]:.1e} ({errors[3]:.1e}); graphs {counters['stats']['unique_graphs']}, breaks {sum(counters['graph_break'].values())}, "
          f"nodes {dynamo.statistics.nodes}, eager: {dict(dynamo.statistics.refused)}", flush=True)
    return right


def seconds():
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def back_end(name):
    if name == "weft":
        from weft import dynamo
        return dynamo.backend
    if name == "inductor":
        import torch._inductor.compile_fx
    return name


def breaks():
    return sum(torch._dynamo.utils.counters["graph_break"].values())


def first(name, train, backend):
    model, args, named = made(name, train)
    start = seconds()
    backend = back_end(backend)
    step(torch.compile(model, backend=backend), args, named, train)
    spent = seconds() - start
    if torch._dynamo.config.caching_precompile:
        torch.compiler.save_cache_artifacts()
    print(f"{spent:.1f} ({breaks()} graph breaks)", flush=True)


def in_process(what, backend, name, train, folder):
    """The last line of a process that uses the folder for all caches."""
    env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": f"{folder}/{backend}", "WEFT_CACHE": f"{folder}/{backend}"}
    command = [sys.executable, __file__, what, backend, name, "train" if train else "eval"]
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip().splitlines()[-1] if done.stdout.strip() and not done.returncode else f"failed ({done.returncode})"


def first_of_processes(name, train, folder, backends):
    for backend in backends:
        cold, warm = (in_process("once", backend, name, train, folder) for _ in range(2))
        print(f"{name} {'train' if train else 'eval'} {backend}: cold {cold}, warm {warm}", flush=True)


def measured(name, train, alone, peer):
    """The least time of a call by back end and threads, and the processor seconds of the first calls, of Weft's before the peer's."""
    functions, least, spent, broken = {}, {}, {}, {}
    torch._dynamo.reset()
    for backend in ("weft", peer):
        torch._dynamo.utils.counters.clear()
        model, args, named = made(name, train)
        functions[backend] = torch.compile(model, backend=back_end(backend))
        for threads in (1, 2):
            torch.set_num_threads(threads)
            start = seconds()
            step(functions[backend], args, named, train)
            spent[backend, threads] = seconds() - start
            broken.setdefault(backend, breaks())
    gate = subprocess.Popen([*alone.split(), "sh", "-c", "echo; read line"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    gate.stdout.readline()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            for f in functions.values():  # what a model keeps between calls may ask for another graph
                step(f, args, named, train)
            end = time.monotonic() + 0.5
            while time.monotonic() < end:
                for backend, f in functions.items():
                    start = time.perf_counter()
                    step(f, args, named, train)
                    key = backend, threads
                    least[key] = min(least.get(key, 1e9), time.perf_counter() - start)
    finally:
        gate.communicate(b"\n")
    print(f"{name} {'train' if train else 'eval'}: " + ", ".join(
        f"{t} threads {1e3 * least['weft', t]:.2f} beside {1e3 * least[peer, t]:.2f} ms" for t in (1, 2)) +
        f"; first call {spent['weft', 1]:.1f} beside {spent[peer, 1]:.1f} s; graph breaks {broken['weft']} and {broken[peer]}", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=["check", "first", "once", "time", "beside"])
    p.add_argument("--alone", default="")
    p.add_argument("--traced", action="store_true", help="keep what Dynamo traced, too (TORCH_CACHING_PRECOMPILE)")
    p.add_argument("--peer", default="inductor", help="what time compares with: eager is eager mode behind Dynamo")
    p.add_argument("--mode", choices=["eval", "train"])
    p.add_argument("names", nargs="*")
    options = p.parse_intermixed_args()
    warnings.simplefilter("ignore")
    torch._logging.set_logs(all=50)
    torch.set_num_threads(1)
    if options.what == "once":
        backend, name, mode = options.names
        return first(name, mode == "train", backend)
    if options.traced:
        os.environ["TORCH_CACHING_PRECOMPILE"] = "1"
    bad = 0
    for name in options.names or MODELS:
        for train in (False, True) if not options.mode else (options.mode == "train",):
            if options.what == "check":
                bad += not check(name, train)
            elif options.what == "time":
                measured(name, train, options.alone, options.peer)
            else:
                with tempfile.TemporaryDirectory() as folder:
                    first_of_processes(name, train, folder, ("weft", options.peer))
                    if options.what == "beside":
                        command = [sys.executable, __file__, "time", "--alone", options.alone, "--mode", "train" if train else "eval", name]
                        subprocess.run(command, env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor", "WEFT_CACHE": f"{folder}/weft"})
    return bad


if __name__ == "__main__":
    sys.exit(main())
