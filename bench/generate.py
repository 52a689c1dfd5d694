"""generate of a language model beside transformers' own, one thread: generate.py FOLDER [--forms f32,bf16,int8,int4,int4-rounded] [--batch 1]
    [--prompt 128] [--new 64] [--rounds 3]

A Llama of 110 M (4 layers of width 1,024, 16 and 4 heads, 2,816, vocabulary 32,000; random weights) through weft.transformers, and eager with a
static cache. Prints the least time from the call of generate to the first token, the tokens per second behind it, the seconds from the start of the
load to the first token, and the memory of the process (the most, and of that what no file holds). Each run is a process of its own; they alternate.
Wants a Python with torch and transformers, and weft in PYTHONPATH."""
import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

FORMS = {"f32": {}, "bf16": {"weights": "bf16"}, "int8": {"weights": "int8"}, "int4": {"weights": "int4"},
         "int8-rounded": {"weights": "int8", "activations": "dynamic"}, "int4-rounded": {"weights": "int4", "activations": "dynamic"}}


def llama():
    import torch
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM
    torch.manual_seed(0)
    config = LlamaConfig(num_hidden_layers=4, hidden_size=1024, num_attention_heads=16, num_key_value_heads=4, intermediate_size=2816, vocab_size=32000,
                         max_position_embeddings=2048)
    model = LlamaForCausalLM(config).eval()
    model.generation_config = GenerationConfig(pad_token_id=0)
    return model


def memory():
    """(most resident, resident and of no file) in MB"""
    fields = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    return [int(fields[name].split()[0]) / 1000 for name in ("VmHWM", "RssAnon")]


def one(folder, form, batch, prompt, new):
    import torch
    torch.set_num_threads(1)
    ids = torch.randint(1, 32000, (batch, prompt), generator=torch.Generator().manual_seed(1))
    from transformers import AutoModelForCausalLM
    options = {}
    if form != "eager":
        import weft.transformers
    begin = time.perf_counter()
    if form == "eager":
        model = AutoModelForCausalLM.from_pretrained(folder / "checkpoint")
        options = {"cache_implementation": "static", "disable_compile": True}
    else:
        model = weft.transformers.load(folder / f"{form}_{batch}")

    def generate(count):
        at = time.perf_counter()
        model.generate(ids, max_new_tokens=count, min_new_tokens=count, do_sample=False, **options)
        return time.perf_counter() - at
    generate(1)
    loaded = time.perf_counter() - begin
    first = min(generate(1) for _ in range(3))
    rest = min(generate(new + 1) for _ in range(2)) - first
    print(json.dumps([first, batch * new / rest, loaded, *memory()]))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words = lambda text: [x for x in text.split(",") if x]
    p.add_argument("folder", type=Path)
    p.add_argument("--forms", type=words, default=list(FORMS))
    p.add_argument("--batch", type=int, default=1)
    p.add_argument("--prompt", type=int, default=128)
    p.add_argument("--new", type=int, default=64)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--prepare", action="store_true", help="only make the files")
    p.add_argument("--one", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.one:
        return one(args.folder, args.one, args.batch, args.prompt, args.new)
    if not (args.folder / "checkpoint").exists():
        llama().save_pretrained(args.folder / "checkpoint")
    for form in args.forms:
        if not (args.folder / f"{form}_{args.batch}").exists():
            import weft.transformers
            begin = time.perf_counter()
            weft.transformers.export(llama(), args.folder / f"{form}_{args.batch}", batch=args.batch, max_length=1024, **FORMS[form])
            size = (args.folder / f"{form}_{args.batch}" / "model.weights").stat().st_size
            print(f"{form}: compiled in {time.perf_counter() - begin:.1f} s, weights {size / 1e6:.0f} MB, this process had {memory()[0]:.0f} MB", flush=True)
    best = {}
    for _ in range(0 if args.prepare else args.rounds):
        for form in ["eager", *args.forms]:
            command = [sys.executable, __file__, args.folder, "--one", form, "--batch", str(args.batch), "--prompt", str(args.prompt), "--new", str(args.new)]
            out = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])
            old = best.get(form, out)
            best[form] = [min(old[0], out[0]), max(old[1], out[1]), *(min(a, b) for a, b in zip(old[2:], out[2:]))]
    for form, (first, rate, loaded, most, own) in best.items():
        print(f"{form:13} first token {1e3 * first:7.1f} ms, then {rate:7.1f} tokens/s, load and first token {loaded:5.2f} s, memory {most:5.0f} MB, "
              f"of no file {own:5.0f}")


if __name__ == "__main__":
    sys.exit(main())
