"""The page of times beside other systems, docs/benchmarks.md, and what it is made of.

page.py measure WEFT ENV RESULT.json MODEL.pt2... [--threads LIST] [--rounds N] [--seconds S] [--peers LIST] [--precisions LIST]
    times each model (with MODEL.safetensors, MODEL.onnx beside it) in alternating rounds of `weft bench`: the least time of a call of
    Weft and of each peer in the Python environment ENV. Once for each model: the time to compile it, with empty caches; the size of the
    file; the time of a process that loads it and makes one call (`weft run`, the least of five), and that process's memory.
    --precisions f32,bf16 (default f32): each model in each of them, the peers, too; ONNX Runtime has f32 only.
    RESULT.json also gets the processor, versions, the commit and the load of the machine before each round.
    Then, unless --no-python, the cases of bench/page_python.py by ENV, which needs torchvision for them: training steps and a detector.
page.py page RESULT.json... -o PAGE.md
    writes the page; a file a machine.

Nothing else should run: the page prints the greatest load that was found. Times of a model that a peer does not run are left out."""
import argparse
import datetime
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEERS = {"openvino": "OpenVINO", "onnxruntime": "ONNX Runtime", "aoti": "AOTInductor, Inductor", "torch": "PyTorch, eager"}
PACKAGES = {"torch": "torch", "onnxruntime": "onnxruntime", "openvino": "openvino"}
RESULTS_FOLDER = "bench/results"


# ---- measuring


def processor():
    """The processor's name, and its family and model, since virtual machines shorten names."""
    text = pathlib.Path("/proc/cpuinfo").read_text()
    name, *numbers = (re.search(rf"^{key}\s*:\s*(.*)$", text, re.M) for key in ("model name", "cpu family", "model"))
    return name[1] + (f" (family {numbers[0][1]}, model {numbers[1][1]})" if all(numbers) else "") if name else os.uname().machine


def text_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def versions(weft, env):
    ask = "import importlib.metadata as m, json; print(json.dumps({p: m.version(p) for p in %r}))" % sorted(set(PACKAGES.values()))
    commit = text_of("git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD")
    changed = text_of("git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no")
    return {"weft": text_of(weft, "--version").split()[1], "commit": commit + ("+" if changed else ""),
            **json.loads(text_of(os.path.join(env, "bin/python"), "-c", ask))}


def options_of(precision):
    return [] if precision == "f32" else ["--precision", precision]


def round_of(weft, env, model, precision, threads, peers, seconds):
    """By name of a system, the least milliseconds of a call."""
    command = [weft, "bench", model, "--no-op-by-op", "--json", "--seconds", str(seconds), "--threads", str(threads), *options_of(precision)]
    if peers:
        command += ["--against", ",".join(peers), "--python", env]
    p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        rows = json.loads(p.stdout)["rows"]
    except ValueError:
        sys.exit(f"{' '.join(command)}: exit status {p.returncode}: {p.stderr}")
    return {row["name"].split("-")[0]: row["min_ms"] for row in rows if row["ok"]}  # peers: NAME-VERSION


def once(weft, model, precision, folder):
    """What is measured once: seconds and bytes."""
    artifact, reference = os.path.join(folder, "model.so"), os.path.splitext(model)[0] + ".safetensors"
    began = time.monotonic()
    subprocess.run([weft, "compile", model, "-o", artifact, "--no-cache", *options_of(precision)], check=True, stdout=subprocess.DEVNULL)
    compiled = time.monotonic() - began
    call = [weft, "run", artifact, "--inputs", reference, "--outputs", os.path.join(folder, "y.safetensors")]
    least = math.inf
    for _ in range(5):
        began = time.monotonic()
        p = subprocess.Popen(call)
        _, status, used = os.wait4(p.pid, 0)
        if status:
            sys.exit(f"{' '.join(call)}: failed")
        least = min(least, time.monotonic() - began)
    return {"compile_s": compiled, "file_bytes": os.path.getsize(artifact), "cold_ms": 1000 * least, "memory_bytes": 1024 * used.ru_maxrss}


def measure(args):
    out = {"date": datetime.date.today().isoformat(), "processor": processor(), "processors": os.cpu_count(),
           "versions": versions(args.weft, args.env), "loads": [], "models": {}}
    threads = [int(n) for n in args.threads.split(",")]
    for model, precision in ((m, p) for m in args.models for p in args.precisions.split(",")):
        name = pathlib.Path(model).stem + (f", {precision}" if precision != "f32" else "")
        with tempfile.TemporaryDirectory() as folder:
            entry = once(args.weft, model, precision, folder)
        entry["ms"] = {str(n): {} for n in threads}
        for _ in range(args.rounds):
            for n in threads:
                out["loads"].append(os.getloadavg()[0])
                times = entry["ms"][str(n)]
                for system, ms in round_of(args.weft, args.env, model, precision, n, args.peers, args.seconds).items():
                    times[system] = min(ms, times.get(system, math.inf))
        keep(args.result, out, name, entry)
    if args.python:
        python_cases(args, out)


def keep(path, out, name, entry):
    out["models"][name] = entry
    print(name, json.dumps(entry), flush=True)
    pathlib.Path(path).write_text(json.dumps(out, indent=1) + "\n")


def python_cases(args, out):
    """Adds the cases of bench/page_python.py, with caches that are empty at first."""
    build = pathlib.Path(args.weft).resolve().parent
    command = [os.path.join(args.env, "bin/python"), str(ROOT / "bench/page_python.py"), "--threads", args.threads,
               "--rounds", str(args.rounds), "--seconds", str(args.seconds)]
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "PYTHONPATH": str(build / "python"), "WEFT_LLVM_FOLDER": str(build), "WEFT_CACHE": f"{folder}/weft",
               "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor"}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as p:
            for line in p.stdout:
                out["loads"].append(os.getloadavg()[0])
                entry = json.loads(line)
                keep(args.result, out, entry.pop("name"), entry)
        if p.returncode:
            sys.exit(f"{' '.join(command)}: exit status {p.returncode}")


# ---- the page


def row(cells):
    return "| " + " | ".join(cells) + " |\n"


def number(ms):
    return f"{ms:.3g}" if ms < 100 else f"{ms:.0f}"


def ratio_text(entries, threads, system):
    """The geometric mean of a system's times over Weft's."""
    ratios = [e["ms"][threads][system] / e["ms"][threads]["compiled"] for e in entries if system in e["ms"][threads]]
    return f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}" if ratios else "-"


def time_table(models, threads):
    systems = [s for s in PEERS if any(s in e["ms"][threads] for e in models.values())]
    text = row(["", "Weft", *(PEERS[s] for s in systems)]) + row(["---"] * (2 + len(systems)))
    for name, entry in models.items():
        times = entry["ms"][threads]
        best = min(times.values())
        text += row([name, *(f"**{number(times[s])}**" if times.get(s) == best else number(times[s]) if s in times else "-"
                             for s in ("compiled", *systems))])
    return text + row(["times Weft's (geometric mean)", "1", *(ratio_text(models.values(), threads, s) for s in systems)])


def models_of(result, key):
    return {name: e for name, e in result["models"].items() if key in e}


def first_calls(models):
    """A table of the seconds of first calls from Python."""
    systems = {"compiled": "Weft", **PEERS}
    there = [s for s in systems if any(s in e["first_s"] for e in models.values())]
    text = row(["", *(systems[s] for s in there)]) + row(["---"] * (1 + len(there)))
    for name, e in models.items():
        text += row([name, *(f"{e['first_s'][s]:.1f}" if s in e["first_s"] else "-" for s in there)])
    return text


def page(results):
    text = ("# Times beside other systems\n\n"
            "The first tables show how long one call of a model takes, in milliseconds. Each number is the time of the shortest of\n"
            "several calls. The systems take turns, so that other programs disturb all of them equally. The shortest time of a row is\n"
            "bold; `-` means that a system was not measured with this model. The last row compares each system\n"
            "with Weft: it is the geometric mean, over the models that both ran, of the system's time divided by Weft's. Models\n"
            "whose names end in `_3l` have three layers. ONNX Runtime's tools quantised the models whose names end in `_q` to 8 bits.\n"
            "In a row whose name ends in `bf16`, all systems compute in bf16. In the column \"AOTInductor, Inductor\", Inductor\n"
            "compiled the training steps (by `torch.compile`), and AOTInductor all other models.\n\n"
            "`bench/page.py` writes this page. `python3 bench/page.py --help` explains how to measure on your own machine.\n")
    for path in results:
        r = json.loads(pathlib.Path(path).read_text())
        v = r["versions"]
        text += (f"\n## {r['processor']}, {r['processors']} processors\n\n"
                 f"Measured on {r['date']}: Weft {v['weft']} of commit {v['commit']}, PyTorch {v['torch']}, ONNX Runtime {v['onnxruntime']}, OpenVINO {v['openvino']}.\n"
                 f"The load average before the measurements was {min(r['loads']):.1f} to {max(r['loads']):.1f}. The numbers are in `{RESULTS_FOLDER}/{pathlib.Path(path).name}`.\n")
        for threads in sorted({n for e in r["models"].values() for n in e["ms"]}, key=int):
            text += f"\nMilliseconds per call, {threads} thread{'s' * (threads != '1')}:\n\n" + time_table(r["models"], threads)
        text += ("\nThe next table has numbers of Weft alone: the time to compile a model with empty caches, the size of the compiled file,\n"
                 "the time of a new process that loads the file and makes one call, and the memory of this process:\n\n"
                 + row(["", "compile, s", "file, MB", "process, ms", "memory, MB"]) + row(["---"] * 5))
        for name, e in models_of(r, "compile_s").items():
            text += row([name, f"{e['compile_s']:.1f}", f"{e['file_bytes'] / 1e6:.1f}", number(e["cold_ms"]), f"{e['memory_bytes'] / 1e6:.0f}"])
        if calls := models_of(r, "first_s"):
            text += "\nSeconds of the first call from Python, with empty caches. In this call, Weft and Inductor compile the model:\n\n" + first_calls(calls)
    return text


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = p.add_subparsers(dest="what", required=True)
    m = sub.add_parser("measure")
    m.add_argument("weft")
    m.add_argument("env")
    m.add_argument("result")
    m.add_argument("models", nargs="+")
    m.add_argument("--threads", default="1,2")
    m.add_argument("--rounds", type=int, default=3)
    m.add_argument("--seconds", type=float, default=1)
    m.add_argument("--peers", type=lambda s: [x for x in s.split(",") if x], default=list(PEERS))
    m.add_argument("--precisions", default="f32")
    m.add_argument("--no-python", dest="python", action="store_false", help="without the cases of bench/page_python.py")
    w = sub.add_parser("page")
    w.add_argument("results", nargs="+")
    w.add_argument("-o", dest="to", required=True)
    args = p.parse_args()
    if args.what == "measure":
        measure(args)
    else:
        pathlib.Path(args.to).write_text(page(args.results))


if __name__ == "__main__":
    main()
