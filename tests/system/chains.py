"""The cost of compiling a chain is linear in its length, whatever is used twice: chains.py WEFT [--derive TRANSFORM_TEXT] [KIND...]

A step of a chain often uses its operand twice, so that to walk its expression as a tree takes 2^N steps. Each kind is
compiled to C with 100 and with 400 steps, some of them by LLVM too: the longer one may take at most 8 times the processor
time of the shorter one, and half a second. Processor time is limited, so that a busy machine does not fail the test.
With --derive the same of gradients, tangents, batches and gradients of gradients of some kinds, which tests/text/transform_text.c
makes; vjp of a chain of 6,400 takes at most a second."""
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

SHORT, LONG, RATIO, SLACK, LIMIT = 100, 400, 8, 0.5, 30
X = "f32[4, 6]"
SQUARE = "f32[5, 5]"
ZERO = "%zero = full(dtype=f32, shape=[], value=0.0)"
SUM0 = '$a = reduce(#, kind="sum", dims=[0], acc=f32); $b = broadcast($a, shape=[4, 6], map=[1])'
SUM1 = '$c = reduce(#, kind="sum", dims=[1], acc=f32); $d = broadcast($c, shape=[4, 6], map=[0])'
TWICE = "$a = concat([#, #], dim=1); $b = slice($a, start=[0, 3], end=[4, 9], step=[1, 1])"
WINDOW = "$b = window(#, dim=1, size=3, stride=1, dilation=1, low=1, count=6)"
TURN = "$a = permute(#, perm=[1, 0]); $b = reshape($a, shape=[4, 6])"
ROLL = ("$a = slice(#, start=[0, 1], end=[4, 6], step=[1, 1]); $b = slice(#, start=[0, 0], end=[4, 1], step=[1, 1]); "
        "$c = concat([$a, $b], dim=1)")
MM = "$a = contract(#, %y, batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], acc=f32)"

# Of each kind one step: # is the value before, @ the next one, $ starts the names of this step. Then the types of the
# inputs %x, %y, where the first is not X, and lines before the chain.
STEPS = {
    "double": ("@ = add(#, #)",),
    "swish": ("$a = sigmoid(#); @ = mul(#, $a)",),
    "select": ("$n = neg(#); $c = gt(#, $n); @ = select($c, #, $n)",),
    "minmax": ("$a = maximum(#, %x); $b = minimum(#, $a); @ = sub($b, $a)",),
    "convert": ("$a = convert(#, dtype=f16); $b = convert($a, dtype=f32); @ = add($b, #)",),
    "bitcast": ("$a = bitcast(#, dtype=i32); $b = bitcast($a, dtype=f32); @ = add($b, #)",),
    "integers": ("$a = bit_xor(#, %x); $b = mul(#, $a); @ = add($b, #)", ["i32[4, 6]"]),
    "bools": ("$a = bit_xor(#, %x); $b = bit_not(#); @ = bit_and($b, $a)", ["bool[4, 6]"]),
    "barrier": ("$a = barrier(#); @ = add($a, #)",),
    "permute": ("$a = permute(#, perm=[1, 0]); @ = add(#, $a)", [SQUARE]),
    "views": (TURN + "; @ = reverse($b, dims=[0])",),
    "turn": (TURN + "; @ = add(#, $b)",),
    "symbolic": ("$a = permute(#, perm=[1, 0]); $b = reshape($a, shape=[s0, s1]); @ = add(#, $b)", ["f32[s0, s1]"]),
    "reverse": ("$a = reverse(#, dims=[1]); @ = add(#, $a)",),
    "roll": (ROLL + "; @ = add(#, $c)",),
    "shift": ("$a = slice(#, start=[0, 1], end=[4, 6], step=[1, 1]); "
              "$b = pad($a, %zero, low=[0, 0], high=[0, 1], interior=[0, 0]); @ = add(#, $b)", [X], [ZERO]),
    "crop": ("@ = pad(#, %zero, low=[0, 1], high=[0, -1], interior=[0, 0])", [X], [ZERO]),
    "twice": (TWICE + "; @ = add(#, $b)",),
    "twice views": (TWICE + "; @ = reverse($b, dims=[1])",),
    "stencil": (WINDOW + "; $c = slice($b, start=[0, 0, 1], end=[4, 6, 2], step=[1, 1, 1]); "
                         "$d = reshape($c, shape=[4, 6]); @ = add(#, $d)",),
    "pool": (WINDOW + '; @ = reduce($b, kind="max", dims=[2], acc=f32)',),
    "fold": (WINDOW + "; @ = fold($b, dim=1, extent=6, stride=1, dilation=1, low=1)",),
    "rows": (SUM1 + "; @ = sub(#, $d)",),
    "rows and columns": (SUM0 + "; " + SUM1 + "; $e = sub(#, $b); @ = sub($e, $d)",),
    "softmax": ('$m = reduce(#, kind="max", dims=[1], acc=f32); $b = broadcast($m, shape=[4, 6], map=[0]); '
                "$s = sub(#, $b); $e = exp($s); "
                '$r = reduce($e, kind="sum", dims=[1], acc=f32); $d = broadcast($r, shape=[4, 6], map=[0]); @ = div($e, $d)',),
    "nested sums": ('$a = broadcast(#, shape=[4, 6], map=[0]); $b = mul($a, $a); @ = reduce($b, kind="sum", dims=[1], acc=f32)',
                    ["f32[4]"]),
    "cumulative": ('$a = cumulative(#, kind="sum", dim=1, reverse=false); @ = add($a, #)',),
    "sort": ("$a = sort(#, dim=1, descending=false, stable=true); $b = get($a, index=0); @ = add($b, #)",),
    "contract": ("@ = contract(#, #, batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], acc=f32)", [SQUARE]),
    "mm": (MM.replace("$a", "@"), [SQUARE, SQUARE]),
    "mm residual": (MM + "; @ = add(#, $a)", [SQUARE, SQUARE]),
    "contract swish": (MM + "; $b = sigmoid($a); @ = mul($a, $b)", [SQUARE, SQUARE]),
    "gather": ('$a = gather(#, %y, batch=0, axes=[0], mode="check"); @ = add($a, #)', ["f32[24]", "i64[24, 1]"]),
    "gather index": ('$r = reshape(#, shape=[24, 1]); $a = gather(%x, $r, batch=0, axes=[0], mode="clamp"); @ = add($a, #)',
                     ["i64[24]"]),
    "slice_at": ("$a = slice_at(#, [%y, %y], size=[4, 6]); @ = add($a, #)", [X, "i64[]"]),
    "scatter": ('$a = scatter(#, %y, #, batch=0, axes=[0], combine="add", mode="fill", unique=false, sorted=false); '
                "@ = add($a, #)", ["f32[24]", "i64[24, 1]"]),
    "scan": ("$s = scan([#], [], [], body=graph ~b(%c: f32[4, 6]) { %d = mul(%c, %c) return %d }, length=3, reverse=false); "
             "$g = get($s, index=0); @ = add($g, #)",),
}


def graph(args, lines, result):
    where = " where 1 <= s0 <= 4, 1 <= s1 <= 5" if "s0" in args else ""
    return f"graph @chain({args}){where} {{\n" + "".join(f"  {line}\n" for line in lines) + f"  return {result}\n}}\n"


def chain(step, types=(X,), before=()):
    def text(n):
        lines, x = list(before), "%x"
        for i in range(n):
            for line in step.split("; "):
                lines.append(line.replace("@", f"%v{i}").replace("#", x).replace("$", f"%t{i}_").replace("~", "@"))
            x = f"%v{i}"
        return graph(", ".join(f"%{'xy'[k]}: {t}" for k, t in enumerate(types)), lines, x)
    return text


def inputs(n, type=X):
    return ", ".join(f"%x{i}: {type}" for i in range(n))


def all_inputs(n):
    """5 n inputs added, one after the other."""
    lines = [f"%v{i} = add({f'%v{i - 1}' if i > 1 else '%x0'}, %x{i})" for i in range(1, 5 * n)]
    return graph(inputs(5 * n), lines, f"%v{5 * n - 1}")


def tree(n):
    """The same, in pairs."""
    lines, x = [], [f"%x{i}" for i in range(5 * n)]
    while len(x) > 1:
        lines.append(f"%v{len(lines)} = add({x.pop(0)}, {x.pop(0)})")
        x.append(f"%v{len(lines) - 1}")
    return graph(inputs(5 * n), lines, x[0])


def joined(n):
    lines = [f"%y{i} = sin(%x{i})" for i in range(n)]
    return graph(inputs(n), lines + [f"%c = concat([{', '.join(f'%y{i}' for i in range(n))}], dim=0)"], "%c")


def outputs(n):
    lines = [f"%v{i} = add({f'%v{i - 1}' if i else '%x'}, %x)" for i in range(n)]
    return graph("%x: " + X, lines, ", ".join(f"%v{i}" for i in range(n)))


def sums(n):
    """Weight decay: one sum over all elements of each of many parameters."""
    lines = []
    for i in range(n):
        lines += [f"%q{i} = mul(%x{i}, %x{i})", f'%r{i} = reduce(%q{i}, kind="sum", dims=[0, 1, 2], acc=f32)']
        lines += [f"%v{i} = add({f'%v{i - 1}' if i > 1 else '%r0'}, %r{i})"] if i else []
    return graph(inputs(n, "f32[2, 3, 4]"), lines, f"%v{n - 1}")


def body(n):
    """A loop whose body is the chain."""
    lines = [f"%d{i} = mul({x}, {x})" for i in range(n) for x in [f"%d{i - 1}" if i else "%c"]]
    inner = f"graph @b(%c: {X}) {{ " + "\n".join(lines) + f"\nreturn %d{n - 1} }}"
    return graph("%x: " + X, [f"%s = scan([%x], [], [], body={inner}, length=3, reverse=false)", "%g = get(%s, index=0)"], "%g")


def scans(n):
    """Loops one after the other, each with a loop in its body."""
    inner = f"graph @i(%d: {X}) {{ %e = mul(%d, %d) return %e }}"
    outer = f"graph @o(%c: {X}) {{ %s = scan([%c], [], [], body={inner}, length=2, reverse=false)\n%g = get(%s, index=0) return %g }}"
    lines, x = [], "%x"
    for i in range(n):
        lines += [f"%s{i} = scan([{x}], [], [], body={outer}, length=3, reverse=false)", f"%g{i} = get(%s{i}, index=0)"]
        x = f"%g{i}"
    return graph("%x: " + X, lines, x)


def weights(n):
    """Products with 21 n constants that differ, each packed by its kernel: with 400 steps twice 4,096."""
    lines, x = ["%i = iota(dtype=f32, n=4)", "%b = broadcast(%i, shape=[4, 4], map=[1])"], "%x"
    for i in range(21 * n):
        lines += [f"%f{i} = full(dtype=f32, shape=[4, 4], value={i}.5)", f"%w{i} = add(%b, %f{i})",
                  f"%v{i} = contract({x}, %w{i}, batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], acc=f32)"]
        x = f"%v{i}"
    return graph("%x: f32[4, 4]", lines, x)


def alive(n):
    """Values that are all read at the end only."""
    lines = [f"%r{i} = contract(%x, {'%y' if i == 0 else f'%r{i - 1}'}, batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], acc=f32)"
             for i in range(n)]
    x = "%x"
    for i in range(n):
        lines.append(f"%v{i} = mul({x}, %r{i})")
        x = f"%v{i}"
    return graph(f"%x: {SQUARE}, %y: {SQUARE}", lines, x)


KINDS = {name: chain(*kind) for name, kind in STEPS.items()}
KINDS.update({"inputs": all_inputs, "tree": tree, "joined": joined, "outputs": outputs, "sums": sums, "body": body, "scans": scans,
              "weights": weights, "alive": alive})
BY_LLVM = ["double", "swish", "inputs", "outputs", "mm"]
BY_C = ["inputs", "outputs", "joined", "mm"]


# transformed: kinds whose steps have derivatives of their own kind
DERIVED = ["double", "swish", "select", "views", "stencil", "softmax", "mm", "mm residual", "tree", "joined", "sums", "body", "scans", "alive"]
MODES = ["vjp", "jvp", "vmap", "vjp vjp"]
LONGEST = 6400


def transformed(tool, modes, text):
    """A graph's text after transforms, and the processor time of each; None, None where they fail."""
    run = subprocess.run([tool, *modes.split()], input=text, capture_output=True, text=True)
    if run.returncode:
        print(f"{modes}: {run.stderr.strip()[-200:]}")
        return None, None
    return run.stdout, [float(line.split()[1]) for line in run.stderr.splitlines()]


def derived(weft, tool, kinds):
    good = []
    for kind in kinds:
        for modes in MODES:
            took = []
            for n in (SHORT, LONG):
                text, _ = transformed(tool, modes, KINDS[kind](n))
                took.append(text and seconds(weft, text, ["--emit", "c"]))
            good.append(None not in took and took[1] <= RATIO * took[0] + SLACK)
            print(f"{'' if good[-1] else 'FAIL: '}{kind} {modes}: {took[0]} s, four times as long: {took[1]} s", flush=True)
    for kind in ("mm", "mm residual", "softmax"):
        _, took = transformed(tool, "vjp", KINDS[kind](LONGEST))
        good.append(took is not None and took[0] <= 1)
        print(f"{'' if good[-1] else 'FAIL: '}vjp of {kind}, {LONGEST}: {took} s")
    return good


def seconds(weft, text, options):
    """Processor time of a compilation; None where it fails or takes too long."""
    pathlib.Path("m.ir").write_text(text)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run([weft, "compile", "m.ir", "-o", "m." + options[1], "--no-cache", "-j", "1", *options], capture_output=True, text=True,
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT)))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if run.returncode:
        print(f"status {run.returncode}: {run.stderr.strip()[-200:]}")
        return None
    return after.ru_utime - before.ru_utime


def linear(weft, kind, options):
    short = seconds(weft, KINDS[kind](SHORT), options)
    long = seconds(weft, KINDS[kind](LONG), options)
    ok = short is not None and long is not None and long <= RATIO * short + SLACK
    print(f"{'' if ok else 'FAIL: '}{kind} {options[1]}: {short} s, four times as long: {long} s")
    return ok


def main():
    weft, kinds, tool = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2:], None
    if kinds[:1] == ["--derive"]:
        tool, kinds = str(pathlib.Path(kinds[1]).resolve()), kinds[2:] or DERIVED
    kinds = kinds or list(KINDS)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        if tool:
            good = derived(weft, tool, kinds)
            os.chdir("/")
            sys.exit(0 if all(good) else 1)
        good = [linear(weft, kind, ["--emit", "c"]) for kind in kinds]
        llvm = subprocess.run([weft, "compile", "m.ir", "-o", "m.o", "--emit", "obj"], capture_output=True).returncode == 0
        good += [linear(weft, kind, ["--emit", "obj"]) for kind in kinds if llvm and kind in BY_LLVM]
        good += [linear(weft, kind, ["--emit", "so", "--backend", "c"]) for kind in kinds if kind in BY_C]
        os.chdir("/")
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
