"""Calls that end early, with deadlines, limits and counters: cancel.py WEFT SOURCE_ROOT
tests/system/c/cancel.c runs models with and without state, each with and without --cancellable. With the option nearly all calls with state
can end early; without it those that end late are complete."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

weft, root = sys.argv[1], pathlib.Path(sys.argv[2])
cc = os.environ.get("CC", "cc").split()
MODELS = [root / "examples/digits/digits_cnn.pt2", root / "tests/golden/graphs/step.pt2", root / "tests/data/control/cond_in_while.pt2",
          *(root / f"tests/data/state/{name}.pt2" for name in ["caches", "decode", "prefill", "persistent", "shared", "written_parameters"])]
bad = 0
with tempfile.TemporaryDirectory() as folder:
    program, so = f"{folder}/cancel", f"{folder}/model.so"
    subprocess.run([*cc, "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-g", "-I", root / "include", root / "tests/system/c/cancel.c", "-o", program,
                    "-ldl"], check=True)
    for model in MODELS:
        ended = []
        for options in [], ["--cancellable"]:
            subprocess.run([weft, "compile", model, "-o", so, *options], check=True, stdout=subprocess.DEVNULL)
            done = subprocess.run([program, so], capture_output=True, text=True)
            count = re.search(r"(\d+) of (\d+) calls ended early", done.stdout)
            if done.returncode or not count:
                bad += 1
                print(f"FAIL {model.name} {options}: {done.stdout}{done.stderr}")
                break
            ended.append([int(n) for n in count.groups()])
        print(model.name, ended)
        if "state" in model.parts and len(ended) == 2 and ended[1][0] < ended[1][1] - 4:
            bad += 1
            print(f"FAIL {model.name}: with --cancellable only {ended[1][0]} of {ended[1][1]} calls ended early")
sys.exit(bad != 0)
