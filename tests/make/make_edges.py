"""Record what PyTorch gives for the samples of the op table with one thing changed: make_edges.py FOLDER [OP...] (tests/data/edges).
tests/unit/ir_edge_samples.c compares the interpreter with it.

    aten.max.dim f32[1, 3], dim=1     a sample in which an extent is 0 or 1, an operand has another dtype or is missing, or an argument
                                      has another value; those that PyTorch refuses are not kept
    = f32[1] 2.25                     its results, one a line: the sum of all values with weights, and of a code where they are not finite
    ? f32[1] 2.25                     a result that is not PyTorch's here: none may be added

With OP names only these are recorded anew. EDGES=list build/ir_edge_samples prints what differs; `--differs FILE` marks these lines."""
import multiprocessing
import random
import re
import sys
import time

import torch

import make_samples as ms

MOST = 6  # of each sample
ALL = 12  # of each operator
LIMIT = 4096  # elements of a result


def other_extents(items):
    """Extents that are 1 or 0: all of a name or a number at once, or a single one."""
    text = ", ".join(items)
    for name, value in re.findall(r"(?<=[\[ ])([a-z])=(\d+)(?=[,\]])", text):
        for v in "10":
            yield [item.replace(f"{name}={value}", f"{name}={v}") for item in items]
    shapes = [(k, m) for k, item in enumerate(items) for m in re.finditer(r"\b(\w+)\[([^\[\]]*)\]", item) if m[1] in ms.DTYPES]
    numbers = sorted({d.strip() for _, m in shapes for d in m[2].split(",") if d.strip().isdigit() and int(d) > 1})

    def put(k, m, dims):
        return items[:k] + [items[k][:m.start(2)] + dims + items[k][m.end(2):]] + items[k + 1:]
    for n in numbers:
        for v in "10":
            yield [re.sub(r"\b(\w+)\[([^\[\]]*)\]", lambda m, n=n, v=v: f"{m[1]}[{re.sub(rf'(?<![=0-9])(?:{n})(?![0-9])', v, m[2])}]"
                          if m[1] in ms.DTYPES else m[0], item) for item in items]
    for k, m in shapes:
        for d in re.finditer(r"(?<![\w=])\d+", m[2]):
            yield put(k, m, m[2][:d.start()] + "1" + m[2][d.end():])


def other_dtypes(items):
    """Of one operand."""
    for k, item in enumerate(items):
        for m in re.finditer(r"\b(\w+)(?=\[)", item):
            for d in {"f32": ("f16", "f64", "i64", "bool", "c64"), "i64": ("i32", "u8", "f32"), "bool": ("u8", "f32"), "u8": ("i64",), "c64": ("f64",),
                      "f64": ("f32",), "i32": ("i64",)}.get(m[1], ()):
                yield items[:k] + [item[:m.start()] + d + item[m.end():]] + items[k + 1:]


def other_arguments(items):
    for k, item in enumerate(items):
        m = re.match(r"(\w+)=(.*)", item, re.S)
        if not m or m[1] in ms.DTYPES:
            if item.split("[")[0] in ms.DTYPES:
                yield items[:k] + ["none"] + items[k + 1:]
            continue
        value, new = m[2], []
        if value in ("true", "false"):
            new = ["false" if value == "true" else "true"]
        elif re.fullmatch(r"-?\d+", value):
            new = ["-1", "0", "1", str(int(value) + 1), "none", "-2"]
        elif re.fullmatch(r"-?\d+\.\d*(e-?\d+)?", value):
            new = ["0.0", "-" + value.lstrip("-"), "1.0", str(float(value) + 0.5), "none"]
        elif value in ms.DTYPES:
            new = ["f16", "f64", "i64", "none"]
        elif value[0] == "[":
            inner = ms.split(value[1:-1], ",")
            new = ["[" + ", ".join(inner[:j] + [v] + inner[j + 1:]) + "]" for j, x in enumerate(inner) for v in ("0", "1", "2", "3", "true", "false")
                   if (v in ("true", "false")) == (x in ("true", "false")) and "." not in x]
            new += ["[]", "none"] + (["[" + ", ".join(inner[:1]) + "]"] if len(inner) > 1 else [])
        for v in new:
            if v != value:
                yield items[:k] + [f"{m[1]}={v}"] + items[k + 1:]


def changed(case, name, k):
    body, arrow, only = case.partition(" -> ")
    items = ms.split(body, ",")
    groups = [list(f(items)) for f in (other_extents, other_dtypes, other_arguments)]
    seen, out = {case}, []
    for g in groups:
        random.Random(f"{name} {k}").shuffle(g)
    while any(groups):
        for g in groups:
            if g:
                text = ", ".join(g.pop()) + arrow + only
                if text not in seen:
                    seen.add(text)
                    out.append(text)
    return out


def weighted(x):
    """(sum, code) as in ir_edge_samples.c."""
    whole = not (x.is_floating_point() or x.is_complex())
    total, code = 0, 0
    for i, v in enumerate(ms.flat(x).tolist()):
        w = i * 37 % 101 + 1
        if whole:
            total = (total + int(v) * w) % 2**64
        elif v != v or v in (float("inf"), float("-inf")):
            code += (1 if v != v else 2 if v > 0 else 3) * w
        else:
            total += v * w
    return (str(total - 2**64 if total >= 2**63 else total) if whole else f"{total:.8g}") + (f" {code}" if code else "")


def digest(f, scalar, args, text):
    y, _ = ms.run(f, scalar, ms.Sample(args, text))
    if not y or any(x is not None and (x.numel() > LIMIT or x.layout != torch.strided or x.is_quantized) for x in y):
        return None
    y = ms.as_exported(f, scalar, ms.Sample(args, text), y)
    wide, _ = ms.run(f, scalar, ms.wider(ms.Sample(args, text)))
    lines = []
    for i, x in enumerate(y):
        if x is None:
            lines.append("= none")
            continue
        w = wide[i] if wide and i < len(wide) and wide[i] is not None else None
        v = x
        if w is not None and w.shape == x.shape and x.dtype == torch.float32 and w.dtype == torch.float64:
            largest = float(x[x.isfinite()].abs().max()) if x.isfinite().any() else 0
            v = w if torch.allclose(x.double(), w, rtol=1e-3, atol=1e-3 * largest, equal_nan=True) else x
        lines.append(f"= {ms.NAMES[x.dtype]}[{', '.join(map(str, x.shape))}] {weighted(v)}")
    return "\n".join(lines)


def work(out, todo):
    for at, (name, args, text, scalar) in todo:
        try:
            lines = digest(ms.function(name, scalar), scalar, args, text)
        except Exception:  # a text that is none, a dtype without a name
            lines = None
        out.put((at, lines))


def results(todo):
    """By place in todo: the lines. PyTorch crashes on some."""
    found, rest = {}, list(enumerate(todo))
    while rest:
        out = multiprocessing.SimpleQueue()
        p = multiprocessing.Process(target=work, args=(out, rest))
        p.start()
        late = time.time() + 20
        while rest and time.time() < late:
            if out._reader.poll(0.2):
                at, lines = out.get()
                found[at], rest, late = lines, rest[1:], time.time() + 20
            elif not p.is_alive():
                break
        p.kill()
        p.join()
        if rest:
            print("ended by:", rest[0][1][0], rest[0][1][2], flush=True)
            rest = rest[1:]
    return found


def mark(folder, differs, lines=False):
    """Marks what the file DIFFERS names: operator and sample, whose result gets "?" for "="; lines: a tab and the line behind them, which gets
    "? " in front (make_borders.py)."""
    wrong = set(open(differs).read().splitlines())
    for path in ms.families.files(folder):
        out, name, key = [], "", ""
        for line in path.read_text().splitlines():
            if line[0] == " ":
                key = name + line
            elif line[0] not in "=?<>":
                name = line
            if line[0] in "=<>" and (f"{key}\t{line}" if lines else key) in wrong:
                line = "? " + line if lines else "?" + line[1:]
            out.append(line)
        path.write_text("\n".join(out) + "\n")


def thinned(entries):
    """ALL of them at most, from all over."""
    n = min(ALL, len(entries))
    return [entries[k * len(entries) // n] for k in range(n)]


def main():
    folder, only = sys.argv[1], sys.argv[2:]
    if only[:1] == ["--differs"]:
        return mark(folder, only[1])
    ms.known(only)
    old = ms.read_entries(folder, " =?") if only else {}
    texts, begin, todo = {}, {}, []
    for name, args, cases, scalar in ms.blocks_in_order(old):
        texts[name] = old.get(name, "")
        if only and name not in only:
            continue
        begin[name] = len(todo)
        if ms.function(name, scalar) is None or re.search("rand|empty|dropout|bernoulli|normal|multinomial|rrelu|exponential|uniform", name):
            continue
        for k, case in enumerate(cases):
            todo += [(name, args, text, scalar, k) for text in changed(case, name, k) if not re.search(r"graph @|\bf64\[", text)]  # f32 is as f64
    found = results([t[:4] for t in todo])
    for name, first in begin.items():
        count = {}
        entries = []
        for at in range(first, len(todo)):
            if todo[at][0] != name:
                break
            k = todo[at][4]
            if found.get(at) and count.get(k, 0) < MOST:
                count[k] = count.get(k, 0) + 1
                entries.append(f" {todo[at][2]}\n{found[at]}\n")
        texts[name] = name + "\n" + "".join(thinned(entries))
    ms.families.write(folder, texts)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
