"""Record which arguments PyTorch refuses: make_refused.py FOLDER [OP...] (tests/data/refused). tests/unit/ir_refused_samples.c asks the
same of the op table.

    aten.softmax.int
     f32[n=3, 4], dim=13     a sample with one argument (a dimension, a size, a bound, a probability, a word, or none) that PyTorch refuses
    ?f32[n=3, 4], dim=13     one that is accepted here; none may be added
    +f32[n=3, 4], dim=[] | R one that is accepted here on purpose: R says why; written by hand, kept when it is recorded anew

With OP names only these are recorded anew. REFUSED=list build/ir_refused_samples FILE prints those accepted; `--accepted FILE` marks them."""
import re
import sys

import torch

import make_edges as me
import make_samples as ms

MOST = 6  # of each sample
ALL = 20  # of each operator
# What PyTorch lacks, or has of other devices only.
LACKS = r"not implemented|Could not run|NYI|not currently support|does not support|not supported|no kernel|unsupported|INTERNAL ASSERT|Expected out tensor"


def others(value):
    """In place of an argument's value."""
    if re.fullmatch(r"-?\d+", value):
        return ["13", "-14", "-1", "0", str(int(value) + 1)]
    if re.fullmatch(r"-?\d*\.\d*(e-?\d+)?", value):
        return ["3.5", "-0.5"]
    if value[0] == '"':
        return ['"nonsense"']
    if value[0] == "[" and not re.search(r"[\[\"]", value[1:]):
        inner = ms.split(value[1:-1], ",")
        if any(x in ("true", "false") for x in inner):
            return []
        new = [inner[:j] + [v] + inner[j + 1:] for j in range(len(inner)) for v in ("13", "-14", "-1", "0")]
        new += [inner + inner[:1], inner + ["1"], inner[:-1], [], inner[:1] * len(inner)]
        return ["[" + ", ".join(v) + "]" for v in new]
    return []


def changed(args, case):
    kinds = dict(args)
    body, arrow, only = case.partition(" -> ")
    items = ms.split(body, ",")
    for k, item in enumerate(items):
        m = re.match(r"(\w+)=(.*)", item, re.S)
        if m and m[1] not in ms.DTYPES:
            for v in others(m[2]):
                if v != m[2]:
                    yield ", ".join(items[:k] + [f"{m[1]}={v}"] + items[k + 1:]) + arrow + only
            if kinds.get(m[1], "").endswith("?"):
                yield ", ".join(items[:k] + [f"{m[1]}=none"] + items[k + 1:]) + arrow + only


def refusal(f, scalar, args, text):
    """The message; None: it is accepted, or the text is none."""
    try:
        y, why = ms.run(f, scalar, ms.Sample(args, text))
    except Exception:
        return None
    said = str(why).splitlines()[0] if y is None and str(why) else ""
    return None if not said or re.search(LACKS, said) else said


def work(out, todo):
    for at, (name, args, text, scalar) in todo:
        f = ms.function(name, scalar)
        try:
            plain, _ = ms.run(f, scalar, ms.Sample(args, text[0]))
            said = refusal(f, scalar, args, text[1]) if plain is not None else None
        except Exception:
            said = None
        out.put((at, said))


def mark(folder, accepted):
    wrong = set(open(accepted).read().splitlines())
    for path in ms.families.files(folder):
        name, lines = "", []
        for line in path.read_text().splitlines():
            if line[0] not in " ?+":
                name = line
            elif line[0] != "+":
                line = ("?" if f"{name} {line[1:]}" in wrong else " ") + line[1:]
            lines.append(line)
        path.write_text("\n".join(lines) + "\n")


def main():
    folder, only = sys.argv[1], sys.argv[2:]
    if only[:1] == ["--accepted"]:
        return mark(folder, only[1])
    ms.known(only)
    old = ms.read_entries(folder, " ?+")
    decided = {line[1:].partition(" | ")[0]: line for text in old.values() for line in text.splitlines() if line[0] == "+"}
    texts, todo = {}, []
    for name, args, cases, scalar in ms.blocks_in_order(old):
        texts[name] = old.get(name, "") if only and name not in only else ""
        if only and name not in only:
            continue
        if scalar or "." not in name or ms.function(name, scalar) is None:
            continue
        todo += [(name, args, (case, text), scalar) for case in cases for text in dict.fromkeys(changed(args, case)) if "graph @" not in text]
    me.work = work
    found = me.results(todo)
    by = {}
    for at, (name, _, (case, text), _) in enumerate(todo):
        if found.get(at):
            by.setdefault(name, {}).setdefault(case, []).append(text)
    for name in by:
        all_of = list(dict.fromkeys(t for case in by[name].values() for t in me.thinned(case)))
        n = min(ALL, len(all_of))
        texts[name] = name + "\n" + "".join(decided.get(t, f" {t}") + "\n" for t in (all_of[k * len(all_of) // n] for k in range(n)))
    ms.families.write(folder, texts)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
