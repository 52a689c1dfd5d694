"""Does my model work? Models of torchvision, timm, transformers and diffusers (survey_models.py) in three ways, and docs/models.md of it.

    PYTHON bench/survey.py run RESULTS.json [PATTERN...]    tries the models whose names contain a pattern (all), and notes the results
    PYTHON bench/survey.py compare RESULTS.json [PATTERN...]     the same, notes nothing, and fails if what worked there no longer does
    PYTHON bench/survey.py one NAME                         one model in this process, with tracebacks
    python3 bench/survey.py page RESULTS.json PAGE          writes the page
    python3 bench/survey.py page RESULTS.json PAGE --check  fails if the page is not what would be written

The ways: `file` is torch.export, weft.compile and a call; `compile` is torch.compile in evaluation; `train` is torch.compile with the backward
pass. A result is "yes" if outputs, gradients and buffers are at most 8 times as far from those of float64 as eager mode's. What is wrong
with one seed is tried with two more: of a ReLU's operand that is 0 within rounding, the gradient may pass or not. Each way of a model has a process
of its own, with at most LIMIT seconds of processor time and MEMORY bytes of data. Needs torch, weft, and of the four packages those
whose models are tried.
"""
import argparse
import collections
import copy
import datetime
import importlib.metadata
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings

LIMIT, MEMORY = 60, 6 << 30
WAYS = ("file", "compile", "train")
PACKAGES = ("torchvision", "timm", "transformers", "diffusers")
HEAD = {"file": "file: `torch.export`, `weft.compile`", "compile": "compile: `torch.compile`, inference", "train": "train: `torch.compile`, training"}


# ---- one model, one way ----

class Unfit(Exception):
    """The model does not get as far as Weft: eager mode or torch.export refuses."""


def brief(error):
    """The first line of an exception that says something."""
    lines = [x.strip() for x in str(error).splitlines() if x.strip()]
    text = lines[0] if lines else type(error).__name__
    return " ".join(text.split())[:200]


def attempt(what, f):
    try:
        return f()
    except Exception as e:
        raise Unfit(f"{what}: {type(e).__name__}: {brief(e)}") from e


def prepared(name, train, seed=0):
    """The model, without dropout and caches, its arguments and named arguments."""
    import torch
    from survey_models import MODELS
    torch.manual_seed(seed)
    model, args, named = MODELS[name]()
    for m in model.modules():
        kind = type(m).__name__
        if "Dropout" in kind or kind == "StochasticDepth":
            m.p = 0.0
        if kind == "DropPath":
            m.drop_prob = 0.0
        for field in [k for k, v in vars(m).items() if "drop" in k and isinstance(v, float)]:
            setattr(m, field, 0.0)
    for p in model.parameters():  # layers that begin with zeros would hide what is behind them
        if p.numel() and not p.any():
            torch.nn.init.normal_(p, std=0.02)
    if name.startswith("transformers/"):
        for config in {id(m.config): m.config for m in model.modules() if hasattr(m, "config")}.values():  # parts may have copies
            config.use_cache = False
            for key in [k for k, v in vars(config).items() if "drop" in k and isinstance(v, float)]:
                setattr(config, key, 0.0)
    if name.startswith("torchvision/") and "targets" in named and not train:
        named = {}
    return model.train(train), args, named


def floats(out):
    import torch
    if dict in type(out).__mro__ or isinstance(out, collections.OrderedDict):
        out = dict(out)
    return [t for t in torch.utils._pytree.tree_leaves(out) if isinstance(t, torch.Tensor) and t.is_floating_point()]


def in_double(value):
    import torch
    return torch.utils._pytree.tree_map(lambda t: t.double() if isinstance(t, torch.Tensor) and t.is_floating_point() else t, value)


def step(f, args, named, train):
    """The floats that a call gives, and of a training step the gradients of a fixed cotangent come with the call."""
    import torch
    torch.manual_seed(3)
    if not train:
        with torch.no_grad():
            return floats(f(*args, **named))
    out = floats(f(*args, **named))
    torch.manual_seed(5)
    sum((t * torch.randn(t.shape).to(t.dtype)).mean() for t in out if t.requires_grad).backward()
    return [t.detach() for t in out]


def taken(model):
    """The gradients, which the model loses, and the buffers."""
    grads = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
    for p in model.parameters():
        p.grad = None
    return grads, {n: b.clone() for n, b in model.named_buffers() if b.is_floating_point()}


def parts(tensor):
    """The elements in double precision, a million at a time: weights of a gigabyte are compared in little memory."""
    return (part.double() for part in tensor.detach().reshape(-1).split(1 << 20) if part.numel())


def distance(got, exact, floor):
    """The largest difference of two lists of tensors, relative to the largest element of each; NaN and infinities are equal to themselves."""
    if [t.shape for t in got] != [t.shape for t in exact]:
        return float("inf")
    worst = 0.0
    for a, b in zip(got, exact):
        size = max((part[part.isfinite()].abs().max().item() for part in parts(b) if part.isfinite().any()), default=1.0)
        for x, y in zip(parts(a), parts(b)):
            difference = (x - y).abs().masked_fill((x == y) | (x.isnan() & y.isnan()), 0).max().item()
            worst = max(worst, difference / (floor + size) if difference == difference else float("inf"))
    return worst


def judged(what, got, eager, exact, floor, slack):
    """None if `got` is about as near to `exact` as `eager` is, else what is wrong."""
    mine, own = distance(got, exact, floor), distance(eager, exact, floor)
    return None if mine <= 8 * own + slack else f"wrong: {what}: error {mine:.1e}, eager mode's {own:.1e}"


def reference(model, start, args, named, train):
    """Outputs, gradients and buffers in float64, or None where the model insists on float32."""
    try:
        model.load_state_dict(start)
        exact = model.double()
        out = step(exact, in_double(args), in_double(named), train)
        return (out, *taken(exact))
    except Exception:
        return None


def compare(results, train):
    """What is wrong with (mine, eager, exact), each outputs, gradients and buffers; or None."""
    mine, eager, exact = results
    slack = 1 if exact else 10
    exact = exact or eager
    wrong = judged("outputs", mine[0], eager[0], exact[0], 1e-6, 1e-5 * slack)
    if wrong or not train:
        return wrong
    if mine[1].keys() != eager[1].keys():
        return f"wrong: gradients of other parameters: {sorted(mine[1].keys() ^ eager[1].keys())[:3]}"
    floor = 1e-3 * max((g.abs().max().item() for g in exact[1].values() if g.numel()), default=1) + 1e-12
    listed = [[r[1][n] for n in exact[1]] for r in (mine, eager, exact)]
    wrong = judged("gradients", *listed, floor, 1e-4 * slack)
    return wrong or judged("buffers", *([r[2][n] for n in exact[2]] for r in (mine, eager, exact)), 1e-3, 1e-4 * slack)


def by_file(model, args, named):
    """The outputs of the model as a compiled file has them."""
    import torch
    import weft
    program = attempt("torch.export", lambda: torch.export.export(model, args, named, strict=False))
    compiled = weft.compile(program)
    leaves = [t for t in torch.utils._pytree.tree_leaves((args, named)) if isinstance(t, torch.Tensor)]
    return floats(compiled(*leaves))


def by_dynamo(model, args, named, train):
    """The results by torch.compile, and what ran as PyTorch's operators."""
    import torch
    from weft import dynamo
    torch._dynamo.reset()
    dynamo.statistics.reset()
    out = step(torch.compile(model, backend=dynamo.backend), args, named, train)
    if not dynamo.statistics.compiled:
        raise Unfit("torch.compile: nothing was given to Weft")
    return out, dict(dynamo.statistics.refused)


def tried(name, way, seed=0):
    """The result: "yes", with what ran as PyTorch's behind it, or what is wrong."""
    import torch
    torch.set_num_threads(1)
    train = way == "train"
    model, args, named = attempt("making it", lambda: prepared(name, train, seed))
    start = copy.deepcopy(model.state_dict()) if train else model.state_dict()
    eager = (attempt("eager mode", lambda: step(model, args, copy.deepcopy(named), train)), *taken(model))
    if not any(t.numel() for t in eager[0]) and not eager[1]:
        raise Unfit("eager mode: no result to compare")
    if train:
        model.load_state_dict(start)
    model.train(train)
    if way == "file":
        mine, refused = (by_file(model, args, copy.deepcopy(named)), {}, {}), {}
    else:
        out, refused = by_dynamo(model, args, copy.deepcopy(named), train)
        mine = (out, *taken(model))
    wrong = compare((mine, eager, reference(model, start, args, copy.deepcopy(named), train)), train)
    lacking = ", ".join(sorted(refused))
    return wrong or (f"yes; as PyTorch's: {lacking[:160]}" if lacking else "yes")


def said(name, way, loud=False):
    warnings.simplefilter("ignore")
    try:
        for seed in range(3):
            result = tried(name, way, seed)
            if not result.startswith("wrong"):
                break
        return result
    except Unfit as e:
        return str(e)
    except MemoryError:
        return "memory"
    except Exception as e:
        if loud:
            traceback.print_exc()
        return f"refused: {type(e).__name__}: {brief(e)}"


# ---- all of them ----

def limited(name, way):
    """The result of a child of this process, which has imported what all models need."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        os.close(reading)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 2))
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        os.write(writing, said(name, way).encode())
        os._exit(0)
    os.close(writing)
    end, status = time.monotonic() + 8 * LIMIT, None
    while status is None and time.monotonic() < end:
        done, code = os.waitpid(child, os.WNOHANG)
        status = code if done else None
        time.sleep(0.02)
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        pass
    if status is None:
        os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as f:
        text = f.read().decode()
    if text:
        return f"memory: more than {MEMORY >> 30} GB" if "memory" in text and "alloc" in text else text
    killed = os.WTERMSIG(status) if status is not None else signal.SIGXCPU
    return f"time: more than {LIMIT} s" if killed in (signal.SIGXCPU, signal.SIGKILL) else f"crash: {signal.Signals(killed).name}"


def imported():
    """The versions of the packages that are there, imported once for all children."""
    import torch
    import torch._dynamo
    import torch._functorch.aot_autograd
    import torch.export
    import weft.dynamo
    torch._logging.set_logs(all=50)
    torch.set_num_threads(1)
    found = {"torch": torch.__version__.split("+")[0]}
    for name in PACKAGES:
        try:
            __import__(name)
            found[name] = importlib.metadata.version(name)
        except ImportError as e:
            print(f"{name}: not tried, {brief(e)}", flush=True)
    if "transformers" in found:
        import transformers
        transformers.utils.logging.set_verbosity_error()
    return found


def selected(patterns, found):
    from survey_models import MODELS
    return [n for n in MODELS if n.split("/")[0] in found and (not patterns or any(p in n for p in patterns))]


def survey(patterns, note):
    """Tries the models; note(name, results) hears of each."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"WEFT_CACHE": f"{folder}/weft", "TORCHINDUCTOR_CACHE_DIR": f"{folder}/torch", "HF_HUB_OFFLINE": "1"}
        found = imported()
        for name in selected(patterns, found):
            results = {way: limited(name, way) for way in WAYS}
            print(name, *(f"\n    {way}: {r}" for way, r in results.items()), flush=True)
            note(name, results)
    return found


def untried(found):
    """Families of which no model is tried, by package."""
    from survey_models import MODELS
    names = {p: {n.split("/")[1] for n in MODELS if n.startswith(p + "/")} for p in PACKAGES}
    out = {}
    if "timm" in found:
        import timm
        out["timm"] = [m for m in timm.list_modules() if not names["timm"] & set(timm.list_models(module=m))]
    if "transformers" in found:
        import transformers
        made = {getattr(transformers, n).config_class.model_type for n in names["transformers"] if hasattr(transformers, n)}
        kinds = set(transformers.models.auto.configuration_auto.CONFIG_MAPPING_NAMES)
        out["transformers"] = sorted(k for k in kinds - made if not any(k.startswith(o + "_") for o in kinds))  # parts of others are no models
    if "diffusers" in found:
        import diffusers
        out["diffusers"] = sorted(n for n in diffusers._import_structure["models"] if n not in names["diffusers"] and "Multi" not in n and
                                  any(w in n for w in ("Transformer", "UNet", "Autoencoder", "ControlNet", "VAE", "DiT")))
    return out


def read(path):
    return json.loads(path.read_text()) if path.exists() else {"about": {}, "models": {}}


def write(path, about, models):
    lines = ",\n".join(f"  {json.dumps(n)}: {json.dumps(models[n])}" for n in sorted(models))
    path.write_text(f'{{"about": {json.dumps(about)},\n "models": {{\n{lines}\n }}}}\n')


def commit():
    done = subprocess.run(["git", "-C", pathlib.Path(__file__).parent, "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip()


def run(path, patterns):
    kept = read(path)
    about = {"date": str(datetime.date.today()), "commit": commit()}

    def note(name, results):
        kept["models"][name] = results
        write(path, {**kept["about"], **about}, kept["models"])
    found = survey(patterns, note)
    from survey_models import MODELS
    waiting = {p: [n.split("/")[1] for n in MODELS if n.startswith(p + "/") and n not in kept["models"]] for p in PACKAGES}
    more = {**found, "untried": untried(found), "waiting": {p: names for p, names in waiting.items() if names}}
    write(path, {**kept["about"], **about, **more}, {n: r for n, r in kept["models"].items() if n in MODELS})


def compared(path, patterns):
    known, worse = read(path)["models"], []

    def note(name, results):
        before = known.get(name, {})
        worse.extend(f"{name}, {way}: {results[way]}" for way in WAYS if before.get(way, "").startswith("yes") and not results[way].startswith("yes"))
    survey(patterns, note)
    print(*(f"WORSE {w}" for w in worse), sep="\n")
    return bool(worse)


# ---- the page ----

INTRO = """# Does my model work?

This page lists models of torchvision, timm, transformers and diffusers, and says which of them Weft compiles. One or a
few models of each family were tried, with random weights, small images and few layers. In most cases, the larger models
of a family have the same operators. The lists below also name the families of which no model was tried.

Each model was tried in three ways:

- *file*: `torch.export`, then `weft.compile`;
- *compile*: inference by `torch.compile`;
- *train*: training by `torch.compile`.

A model works if its error is at most 8 times that of PyTorch's eager mode, plus 1e-5 of the largest element. Both
errors are differences from results in float64. In training, gradients and buffers are compared too (plus 1e-4). Each
try was limited to {limit} seconds of processor time and {memory} GB of memory.

To try your own model, call `weft.explain(module, x)`: it lists the operators that PyTorch would run in place of Weft
([python.md](python.md)). `weft.check(module, (x,))` compares Weft's results with PyTorch's. To try a model of this page
again, run `PYTHON bench/survey.py one PACKAGE/NAME`, for example with `timm/dla34`. PYTHON is a Python with Weft and
these packages.

`bench/survey.json` has the results. `python3 bench/survey.py page bench/survey.json docs/models.md` writes this page.
"""
TRIED = "The models were tried on {date}, with {versions} and Weft of commit {commit}."


def wrapped(words, width=120):
    lines = [""]
    for w in words:
        if len(lines[-1]) + len(w) + 1 > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {w}".strip()
    return "\n".join(lines)


def listed(names):
    return wrapped([n + ("," if n != names[-1] else ".") for n in names]) if names else "None."


def cell(text):
    """A result, with what is quoted of others as code."""
    if text == "yes":
        return text
    start, _, rest = text.split(" (unhinted")[0].partition(": ")
    if start.startswith("yes; "):
        return f"yes, but PyTorch runs `{rest}`, which Weft lacks"
    said = f"{start}: `{rest.replace('`', chr(39))}`"
    return f"no; the error of {said}" if not_weft(text) else said


def item(text):
    """A line of a list."""
    return wrapped(text.split(), 118).replace("\n", "\n  ").join(("- ", ""))


def counted(models, way):
    tried_ones = [r for r in models.values() if not_weft(r[way]) is None]
    return f"{sum(r[way].startswith('yes') for r in tried_ones)} of {len(tried_ones)}"


def not_weft(text):
    """Why a way was not tried, or None: what stops in front of Weft."""
    for start in ("making it", "eager mode", "torch.export", "torch.compile"):
        if text.startswith(start):
            return text
    return None


def sections(models, package):
    """The lines about a package."""
    mine = {n.split("/")[1]: r for n, r in models.items() if n.startswith(package + "/")}
    if not mine:
        return [f"## {package}", ""]
    whole = [n for n, r in mine.items() if all(r[w] == "yes" for w in WAYS)]
    out = [f"## {package}", "", f"These models work in all three ways ({len(whole)} of {len(mine)}):", "", listed(whole), ""]
    rest = {n: r for n, r in mine.items() if n not in whole}
    if not rest:
        return out
    for n, r in rest.items():
        said = {}
        for w in WAYS:
            said.setdefault(r[w], []).append(w)
        out.append(item(f"**{n}**: " + "; ".join(f"{', '.join(ways)}: {cell(text)}" for text, ways in said.items())))
    return out + [""]


def page(results):
    models, about = results["models"], results["about"]
    versions = ", ".join(f"{n} {about[n]}" for n in ("torch", *PACKAGES) if n in about)
    out = INTRO.format(limit=LIMIT, memory=MEMORY >> 30).splitlines()
    out += ["", wrapped(TRIED.format(date=about["date"], commit=about["commit"], versions=versions).split()), ""]
    out += ["| | " + " | ".join(HEAD[w] for w in WAYS) + " |", "|---|---|---|---|"]
    for package in PACKAGES:
        mine = {n: r for n, r in models.items() if n.startswith(package + "/")}
        out.append(f"| {package} | " + " | ".join(counted(mine, w) for w in WAYS) + " |")
    out += ["", wrapped(("In this table, \"31 of 31\" means that 31 models work in this way, of the 31 that PyTorch itself can run, export or trace. If PyTorch cannot "
                         "do this with a model, the lists below quote the error of PyTorch. If Weft lacks an operator of a model, PyTorch runs this operator in the "
                         "ways *compile* and *train*; the lists below name it. "
                         "`torch.compile` divides detection models and Longformer into several graphs, with every back end.").split()), ""]
    for package in PACKAGES:
        out += sections(models, package)
        if rest := [n for n in about.get("waiting", {}).get(package, []) if f"{package}/{n}" not in models]:
            out += ["These models have not been tried yet:", "", listed(rest), ""]
        if rest := about.get("untried", {}).get(package):
            kind = {"timm": "modules", "transformers": "model types", "diffusers": "classes"}[package]
            out += [f"No model was tried of these {kind}:", "", listed(rest), ""]
    return "\n".join(out).rstrip() + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=["run", "compare", "one", "page"])
    p.add_argument("target")
    p.add_argument("more", nargs="*")
    p.add_argument("--check", action="store_true")
    o = p.parse_args()
    if o.what == "one":
        imported()
        return [print(way, said(o.target, way, loud=True), flush=True) for way in o.more or WAYS] and 0
    if o.what == "page":
        text, path = page(read(pathlib.Path(o.target))), pathlib.Path(o.more[0])
        if not o.check:
            return path.write_text(text) and 0
        if path.read_text() != text:
            return print(f"FAIL {path} is not what bench/survey.py writes of {o.target}") or 1
        return 0
    return run(pathlib.Path(o.target), o.more) if o.what == "run" else compared(pathlib.Path(o.target), o.more)


if __name__ == "__main__":
    sys.exit(main())
