"""Random numbers against Philox and AES written here: equal bits in every back end, at every number of threads, with sizes that are symbols; the state
weft.rng; loops; gradients and batches; moments. random_numbers.py WEFT [BACKEND...] [--all]

--all: AES with every distribution, whose compilation takes minutes."""
import math
import pathlib
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "help"))
from tensor_file import read_tensors, read_types, write_tensors  # noqa: E402

weft, BACKENDS = sys.argv[1], ["interp", "loops", *(a for a in sys.argv[2:] if a != "--all")]
IN_PLACE = pathlib.Path(__file__).parent.parent / "data/import/random.pt2"
bad, seen = 0, {}
cipher = "philox" # and then the other one, --rng-cipher
LOW = 0xFFFFFFFF
DROPOUT = """graph @dropout(%x: f32[N, 8]) where 1 <= N {
  %y = aten.dropout(%x, p=0.25, train=true) : f32[N, 8]
  %z = aten.dropout(%x, p=0.25, train=true) : f32[N, 8]
  return %y, %z
}
"""
SAMPLES = """graph @samples(%x: f32[50, 80]) {
  %u = aten.rand_like(%x) : f32[50, 80]
  %n = aten.randn_like(%x) : f32[50, 80]
  %e = aten.exponential(%x, lambd=2.0) : f32[50, 80]
  %b = aten.bernoulli.p(%x, p=0.3) : f32[50, 80]
  %i = aten.randint_like.low_dtype(%x, low=-4, high=6) : f32[50, 80]
  %g = aten.geometric(%x, p=0.5) : f32[50, 80]
  %p = aten.randperm(n=1000) : i64[1000]
  %v = aten.uniform(%x, from=-1.0, to=3.0) : f32[50, 80]
  %m = aten.normal_functional(%x, mean=2.0, std=0.5) : f32[50, 80]
  %l = aten.log_normal(%x, mean=0.0, std=0.5) : f32[50, 80]
  %r = aten.random.from(%x, from=-3, to=7) : f32[50, 80]
  %k = aten.random.to(%x, to=9) : f32[50, 80]
  %t = aten.full_like(%x, fill_value=0.3) : f32[50, 80]
  %c = aten.bernoulli.Tensor(%x, %t) : f32[50, 80]
  %w = aten.cauchy(%x, median=1.0, sigma=2.0) : f32[50, 80]
  return %u, %n, %e, %b, %i, %g, %p, %v, %m, %l, %r, %k, %c, %w
}
"""
SCAN = """graph @rounds(%x: f32[4, 8]) {
  %s = scan([], [%x], [], body=graph @body(%r: f32[8]) {
    %d = aten.dropout(%r, p=0.5, train=true) : f32[8]
    return %d
  }, length=4, reverse=false) : (f32[4, 8])
  %y = get(%s, index=0) : f32[4, 8]
  return %y
}
"""
WHILE = """graph @rounds(%x: f32[8]) {
  %zero = full(value=0, shape=[], dtype=i64) : i64[]
  %w = while([%zero, %x], [], cond=graph @more(%k: i64[], %r: f32[8]) {
    %three = full(value=3, shape=[], dtype=i64) : i64[]
    %m = lt(%k, %three) : bool[]
    return %m
  }, body=graph @body(%k: i64[], %r: f32[8]) {
    %one = full(value=1, shape=[], dtype=i64) : i64[]
    %n = add(%k, %one) : i64[]
    %u = aten.rand_like(%r) : f32[8]
    %t = add(%r, %u) : f32[8]
    return %n, %t
  }) : (i64[], f32[8])
  %y = get(%w, index=1) : f32[8]
  return %y
}
"""


def say(text):
    global bad
    bad += 1
    print("FAIL", text)


def philox(counter, key):
    a, b, c, d = counter
    k, l = key
    for _ in range(10):
        p, q = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = q >> 32 ^ b ^ k, q & LOW, p >> 32 ^ d ^ l, p & LOW
        k, l = k + 0x9E3779B9 & LOW, l + 0xBB67AE85 & LOW
    return a, b, c, d


def times(a, b):
    """In AES's field of 256 numbers."""
    product = 0
    for k in range(8):
        product ^= (a << k) * (b >> k & 1)
    for k in range(7, -1, -1):
        product ^= (0x11B << k) * (product >> k + 8 & 1)
    return product


def substituted(a):
    inverse = next((b for b in range(256) if times(a, b) == 1), 0)
    turns = inverse | inverse << 8
    return 0x63 ^ (turns ^ turns >> 4 ^ turns >> 5 ^ turns >> 6 ^ turns >> 7) & 0xFF


SBOX, TWICE, THRICE = [substituted(a) for a in range(256)], [times(a, 2) for a in range(256)], [times(a, 3) for a in range(256)]


def aes(block, key):
    """AES-128 of 16 bytes (FIPS 197)."""
    state, constant = [a ^ b for a, b in zip(block, key, strict=True)], 1
    for k in range(10):
        last = [SBOX[b] for b in (*key[13:], key[12])]
        key = [b ^ (last[j] ^ constant * (j == 0) if j < 4 else 0) for j, b in enumerate(key)]
        for j in range(4, 16):
            key[j] ^= key[j - 4]
        constant = times(constant, 2)
        state = [SBOX[state[(5 * j) % 16]] for j in range(16)]
        if k < 9:
            state = [TWICE[state[j]] ^ THRICE[state[j & 12 | j + 1 & 3]] ^ state[j & 12 | j + 2 & 3] ^ state[j & 12 | j + 3 & 3] for j in range(16)]
        state = [a ^ b for a, b in zip(state, key, strict=True)]
    return bytes(state)


def pair(low, word, key):
    """Two numbers of 64 bits, of a counter whose last word of 32 bits is `word`."""
    if cipher == "aes128-ctr":
        return struct.unpack("<2Q", aes(struct.pack("<2Q", low, word << 32), struct.pack("<2Q", *key)))
    a, b, c, d = philox((low & LOW, low >> 32, key[1] & LOW, key[1] >> 32 ^ word), (key[0] & LOW, key[0] >> 32))
    return a | b << 32, c | d << 32


def words(key, stream, i, part=0):
    """Of element i."""
    return pair(i, stream << 8 | part, key)


def fold(key, k):
    return pair(k, LOW, key)


def keeps(key, stream, n, p):
    return [words(key, stream, i)[0] >> 11 < math.ceil((1 - p) * 2**53) for i in range(n)]


def uniform(key, stream, n):
    return [(words(key, stream, i)[0] >> 40) * 2.0**-24 for i in range(n)]


def command(*args):
    p = subprocess.run([weft, *map(str, args)], capture_output=True, text=True)
    if p.returncode:
        say(f"{' '.join(map(str, args))}: {p.stderr}")
    return p


def run(text, tensors, *args):
    (here / "m.ir").write_text(text)
    write_tensors(here / "in.safetensors", tensors)
    command("run", here / "m.ir", "--inputs", here / "in.safetensors", "--outputs", here / "out.safetensors", "--rng-cipher", cipher, *args)
    return read_tensors(here / "out.safetensors")


def ones(*shape):
    return "f", list(shape), [1.0] * math.prod(shape)


def dropped(what, got, key, stream, p=0.25):
    if [v != 0 for v in got] != keeps(key, stream, len(got), p):
        say(f"{what}: other elements are dropped")
    if any(v and abs(v - 1 / (1 - p)) > 1e-6 for v in got):
        say(f"{what}: not scaled by 1 / (1 - p)")


def bits(backend):
    for n in (1, 5, 300):
        for threads in ((1, 2) if n == 300 else (1,)):
            y = run(DROPOUT, {"x.0": ones(n, 8)}, "--backend", backend, "--threads", threads, "--seed", 2**40 + 3)
            for k in range(2):
                dropped(f"{backend}, {n} rows, {threads} threads", y[f"y.{k}"], (2**40 + 3, 0), k)


def state(backend):
    a, b = here / "a.safetensors", here / "b.safetensors"
    first = run(DROPOUT, {"x.0": ones(3, 8)}, "--backend", backend, "--seed", 9, "--save-state", a)
    second = run(DROPOUT, {"x.0": ones(3, 8)}, "--backend", backend, "--load-state", a, "--save-state", b)
    dropped(f"{backend}: the first call", first["y.0"], (9, 0), 0)
    dropped(f"{backend}: the second call", second["y.0"], (9, 1), 0)
    if list(read_tensors(b)["weft.rng"]) != [9, 2]:
        say(f"{backend}: the state is {read_tensors(b)['weft.rng']} after two calls")
    given = run(DROPOUT, {"x.0": ones(3, 8), "x.1": ("Q", [2], [5, 2**33])}, "--backend", backend, "--rng", "input")
    dropped(f"{backend}: a key as input", given["y.1"], (5, 2**33), 1)


def loops(backend):
    y = run(SCAN, {"x.0": ones(4, 8)}, "--backend", backend, "--seed", 4)["y.0"]
    for k in range(4):
        dropped(f"{backend}: round {k}", y[8 * k:8 * k + 8], fold((4, 0), k), 0, 0.5)
    got, key, want = run(WHILE, {"x.0": ones(8)}, "--backend", backend, "--seed", 4)["y.0"], fold((4, 0), 1), [1.0] * 8
    for _ in range(3):
        want = [a + b for a, b in zip(want, uniform(key, 0, 8), strict=True)]
        key = fold(key, 0)
    if any(abs(a - b) > 1e-6 for a, b in zip(got, want, strict=True)):
        say(f"{backend}: while: {got}, expected {want}")


def transforms(backend):
    g = run(DROPOUT, {"x.0": ones(3, 8), "ct.0": ones(3, 8)}, "--backend", backend, "--mode", "vjp", "--seed", 6)["g.0"]
    dropped(f"{backend}: the gradient", g, (6, 0), 0)
    t = run(DROPOUT, {"x.0": ones(3, 8), "t.0": ones(3, 8)}, "--backend", backend, "--mode", "jvp", "--seed", 6)["jy.1"]
    dropped(f"{backend}: the tangent", t, (6, 0), 1)
    for kind in ("same", "different"):
        v = run(DROPOUT, {"vx.0": ones(2, 3, 8)}, "--backend", backend, "--mode", "vmap", "--randomness", kind, "--seed", 6)["vy.0"]
        for k in range(2):
            dropped(f"{backend}: member {k}, {kind}", v[24 * k:24 * k + 24], fold((6, 0), k) if kind == "different" else (6, 0), 0)


def weights(backend):
    """multinomial takes what PyTorch takes."""
    nan, inf = math.nan, math.inf
    wrong = {"probability tensor contains either `inf`, `nan` or element < 0": ([1, -1, 2], [1, nan, 2], [1, inf, 2], [-0.5, -inf, 0]),
             "invalid multinomial distribution (sum of probabilities <= 0)": ([0, 0, 0], [0.0, -0.0, 0])}
    for count, again in ((1, "false"), (2, "false"), (4, "true")):
        (here / "m.ir").write_text(f"graph @m(%w: f32[2, 3]) {{\n  %y = aten.multinomial(%w, num_samples={count}, replacement={again})"
                                   f" : i64[2, {count}]\n  return %y\n}}\n")
        for said, rows in wrong.items():
            for row in rows:
                write_tensors(here / "in.safetensors", {"x.0": ("f", [2, 3], [1.0, 2.0, 3.0, *map(float, row)])})
                p = subprocess.run([weft, "run", here / "m.ir", "--backend", backend, "--inputs", here / "in.safetensors", "--outputs",
                                    here / "o.safetensors"], capture_output=True, text=True)
                if p.returncode != 1 or said not in p.stderr:
                    say(f"{backend}: multinomial of {row}: {p.returncode} {p.stderr}")
        y = run((here / "m.ir").read_text(), {"x.0": ("f", [2, 3], [1.0, 2.0, 0.0, 0.25, 1e-30, 3.0])}, "--backend", backend)["y.0"]
        if not all(0 <= v < 3 for v in y) or 2 in y[:count]:
            say(f"{backend}: multinomial {count} {again}: {y}")


def same_samples(backend):
    """Every distribution is that of the interpreter."""
    want, got = (run(SAMPLES, {"x.0": ones(50, 80)}, "--backend", b) for b in ("interp", backend))
    for k, v in want.items():
        if any(abs(a - b) > 1e-5 * abs(a) + 1e-6 for a, b in zip(v, got[k], strict=True)):
            say(f"{backend}: {k} is not what the interpreter draws")


def moments():
    """Means within 5 deviations of a mean of 4,000, and what is certain. The seed is fixed: this cannot fail by chance."""
    y = run(SAMPLES, {"x.0": ones(50, 80)}, "--backend", "interp", "--seed", 1)
    wanted = {"u": (0.5, 1 / math.sqrt(12)), "n": (0, 1), "e": (0.5, 0.5), "b": (0.3, math.sqrt(0.21)), "i": (0.5, math.sqrt(99 / 12)), "g": (2, math.sqrt(2)),
              "v": (1, 4 / math.sqrt(12)), "m": (2, 0.5), "l": (math.exp(0.125), math.sqrt(math.exp(0.5) - math.exp(0.25))),
              "r": (1.5, math.sqrt(99 / 12)), "k": (4, math.sqrt(80 / 12)), "c": (0.3, math.sqrt(0.21))}
    for name, (mean, deviation) in wanted.items():
        v = y[f"y.{'unebigpvmlrkcw'.index(name)}"]
        m = sum(v) / len(v)
        d = math.sqrt(sum((a - m) ** 2 for a in v) / len(v))
        if abs(m - mean) > 5 * deviation / math.sqrt(len(v)) or abs(d - deviation) > 0.1 * deviation:
            say(f"{name}: mean {m} and deviation {d}, expected {mean} and {deviation}")
    for below, part in ((-1, 0.25), (1, 0.5), (3, 0.75)): # quartiles: there is no mean
        n = sum(v < below for v in y["y.13"])
        if abs(n - 4000 * part) > 5 * math.sqrt(4000 * part * (1 - part)):
            say(f"cauchy: {n} of 4000 below {below}")
    if list(y["y.0"]) != uniform((1, 0), 0, 4000):
        say("rand_like: other numbers than 24 bits")
    tenth = [0] * 10
    for u in y["y.0"]:
        tenth[int(u * 10)] += 1
    if sum((c - 400) ** 2 / 400 for c in tenth) > 27.9: # chi square, 9 degrees of freedom, 0.1 %
        say(f"rand_like: tenths {tenth}")
    if sorted(set(y["y.4"])) != list(range(-4, 6)) or sorted(y["y.6"]) != list(range(1000)):
        say("randint: not all of the range, or randperm: no permutation")
    if sorted(set(y["y.10"])) != list(range(-3, 7)) or sorted(set(y["y.11"])) != list(range(9)):
        say("random_: not all of the range")


ROUNDS = """graph @rounds(%a: f64[A, N], %l: f64[L, N], %c: f64[C, N], %q: f64[C, N], %d: f64[N, 3]) where 1 <= N, 1 <= A, 1 <= L, 1 <= C {
  %g = aten._standard_gamma(%a) : f64[A, N]
  %p = aten.poisson(%l) : f64[L, N]
  %b = aten.binomial(%c, %q) : f64[C, N]
  %s = aten._sample_dirichlet(%d) : f64[N, 3]
  return %g, %p, %b, %s
}
"""
ALPHA, RATE, TRIALS, ODDS = [0.3, 1, 2.5, 40], [0, 0.5, 7, 9.99, 10, 40, 5e5], [20, 20, 100, 1000, 1000000, 30], [0.1, 0.95, 0.5, 0.02, 0.3, 1]


def poisson(m, k):
    return math.exp(k * math.log(m) - m - math.lgamma(k + 1)) if m else float(k == 0)


def binomial(n, p, k):
    if p in (0, 1) or k > n:
        return float(k == n * p)
    return math.exp(math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * math.log(p) + (n - k) * math.log1p(-p))


def moments_of(what, v, mean, variance, kurtosis):
    """Mean and variance within 5 of their own deviations."""
    n = len(v)
    m = sum(v) / n
    s = sum((x - mean) ** 2 for x in v) / n
    if abs(m - mean) > 5 * math.sqrt(variance / n) + 1e-12 or abs(s - variance) > 5 * variance * math.sqrt((kurtosis + 2) / n) + 1e-12:
        say(f"{what}: mean {m} and variance {s}, expected {mean} and {variance}")


def counts_of(what, v, chance):
    """Chi square of how often each count came, those that are expected less than ten times together; below its mean and 6 deviations."""
    seen, rest, wanted, chi, cells = {}, len(v), len(v), 0, 0
    for x in v:
        seen[x] = seen.get(x, 0) + 1
    for k in range(int(min(v)), int(max(v)) + 1):
        if (e := len(v) * chance(k)) >= 10:
            chi, cells, rest, wanted = chi + (seen.get(k, 0) - e) ** 2 / e, cells + 1, rest - seen.get(k, 0), wanted - e
    chi += (rest - wanted) ** 2 / wanted if wanted >= 10 else 0
    if cells and chi > cells + 6 * math.sqrt(2 * cells):
        say(f"{what}: chi square {chi} of {cells} counts")


def rounds(n=4000):
    """Numbers that are drawn in rounds: moments, counts, and the same bits in all back ends, of sizes that are symbols."""
    results = []
    columns = lambda x: [v for v in x for _ in range(n)]
    given = {"x.0": ("d", [len(ALPHA), n], columns(ALPHA)), "x.1": ("d", [len(RATE), n], columns(RATE)), "x.2": ("d", [len(TRIALS), n], columns(TRIALS)),
             "x.3": ("d", [len(ODDS), n], columns(ODDS)), "x.4": ("d", [n, 3], [0.5, 1, 3.5] * n)}
    for backend in [b for b in BACKENDS if b != "loops"]:
        results.append(run(ROUNDS, given, "--backend", backend, "--seed", 3))
        for k in range(3):
            if list(results[-1][f"y.{k}"]) != list(results[0][f"y.{k}"]):
                say(f"drawn in rounds: result {k}: {backend} draws other numbers than interp")
        if any(abs(x - y) > 1e-14 * y for x, y in zip(results[-1]["y.3"], results[0]["y.3"])):  # a sum of three may be in another order
            say(f"dirichlet: {backend} draws other numbers than interp")
    g, p, b, s = (list(results[0][f"y.{k}"]) for k in range(4))
    for k, a in enumerate(ALPHA):
        moments_of(f"gamma {a}", g[k * n : k * n + n], a, a, 6 / a)
    for k, m in enumerate(RATE):
        v = p[k * n : k * n + n]
        moments_of(f"poisson {m}", v, m, m, 1 / m if m else 0)
        counts_of(f"poisson {m}", v, lambda c, m=m: poisson(m, c))
    for k, (c, q) in enumerate(zip(TRIALS, ODDS)):
        v, var = b[k * n : k * n + n], c * q * (1 - q)
        moments_of(f"binomial {c} {q}", v, c * q, var, (1 - 6 * q * (1 - q)) / var if var else 0)
        counts_of(f"binomial {c} {q}", v, lambda x, c=c, q=q: binomial(c, q, x))
    for k, a in enumerate((0.5, 1, 3.5)):
        moments_of(f"dirichlet {a}", s[k::3], a / 5, a * (5 - a) / (25 * 6), 3)
    if max(abs(sum(s[k : k + 3]) - 1) for k in range(0, 3 * n, 3)) > 1e-12:
        say("dirichlet: a sum that is not 1")


def gradient(backend, x, result):
    """Of the sum of one result of the model that draws in place."""
    given = {"x.0": ("f", [6, 4], x)} | {f"ct.{k}": ("f", [6, 4], [float(k == result)] * 24) for k in (0, 1, 2, 3, 4, 6, 7)}
    write_tensors(here / "in.safetensors", given)
    command("run", IN_PLACE, "--mode", "vjp", "--seed", 8, "--backend", backend, "--inputs", here / "in.safetensors", "--outputs", here / "out.safetensors")
    return list(read_tensors(here / "out.safetensors")["g.0"])


def in_place(backend):
    """What is drawn in place is what the operator of that name draws; the gradient knows it, and what is overwritten has none."""
    x, key = [k / 8 - 1.25 for k in range(24)], (8, 0)
    write_tensors(here / "in.safetensors", {"x.0": ("f", [6, 4], x)})
    command("run", IN_PLACE, "--seed", 8, "--backend", backend, "--inputs", here / "in.safetensors", "--outputs", here / "out.safetensors")
    y = {k: list(v) for k, v in read_tensors(here / "out.safetensors").items()}
    if seen.setdefault("in place", y) != y:
        say(f"{backend}: in place: not the bits of {BACKENDS[0]}")
    kept, rows = keeps(key, 0, 24, 0.25), keeps(key, 1, 6, 0.25)
    wanted = {0: [m / 0.75 for m in kept], 1: [rows[k // 4] / 0.75 for k in range(24)],
              3: [2.0 * (not (4 <= k < 12 or (k >= 12 and k % 4 == 1))) for k in range(24)], 4: [1.0] * 24, 7: [0.0] * 24}
    for k, want in wanted.items():
        got = gradient(backend, x, k)
        if any(abs(a - b) > 1e-6 for a, b in zip(got, want, strict=True)):
            say(f"{backend}: in place, gradient of result {k}: {got}, expected {want}")
        if k < 2 and any(abs(a - b * c) > 1e-6 for a, b, c in zip(y[f"y.{k}"], x, want, strict=True)):
            say(f"{backend}: in place, result {k}: {y[f'y.{k}']}")
    if any(abs(a - 4 * u + 1) > 1e-6 for a, u in zip(y["y.3"][4:12], uniform(key, 3, 8), strict=True)):
        say(f"{backend}: uniform_ of a part: {y['y.3']}")
    slope = gradient(backend, x, 6)
    drawn = [0.25 * u + 0.25 for u in uniform(key, 9, 24)]
    features = keeps(key, 10, 24, 0.5) # one per row and channel, which here are the elements
    alpha = 1.7580993408473766
    scale = 1 / math.sqrt((alpha * alpha * 0.5 + 1) * 0.5)
    for v, u, keep, g in zip(x, drawn, features, slope, strict=True):
        if abs(g - (u if v <= 1 else 1) - scale * keep) > 1e-5:
            say(f"{backend}: rrelu_ and feature_alpha_dropout_: gradient {g} at {v}")
    if any(sum(y["y.2"][4 * k:4 * k + 4]) != 1 or max(y["y.2"][4 * k:4 * k + 4]) != 1 for k in range(6)):
        say(f"{backend}: gumbel_softmax: {y['y.2']}")


with tempfile.TemporaryDirectory() as folder:
    here = pathlib.Path(folder)
    if philox((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)) != (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1):
        say("philox: another known answer")
    moments()
    rounds()
    for name in BACKENDS:
        bits(name)
        state(name)
        loops(name)
        transforms(name)
        weights(name)
        in_place(name)
    cipher = "aes128-ctr"
    if aes(bytes(range(0, 256, 17)), bytes(range(16))).hex() != "69c4e0d86a7b0430d8cdb78070b4c55a":
        say("AES: another known answer")
    moments()
    rounds(100)
    for name in [b for b in BACKENDS if b != "loops"]:
        compiles = name not in ("interp", "loops")
        if name != "c":  # a C compiler takes 15 seconds for AES
            state(name)
        if not compiles or "--all" in sys.argv:
            same_samples(name)
        if not compiles or (name != "c" and "--all" in sys.argv):
            loops(name)
            transforms(name)
    (here / "m.ir").write_text(DROPOUT)
    write_tensors(here / "in.safetensors", {"vx.0": ones(2, 3, 8)})
    p = subprocess.run([weft, "run", here / "m.ir", "--mode", "vmap", "--inputs", here / "in.safetensors", "--outputs", here / "o.safetensors"],
                       capture_output=True, text=True)
    if p.returncode != 1 or "randomness" not in p.stderr:
        say(f"vmap without a choice: {p.returncode} {p.stderr}")
sys.exit(bad > 0)
