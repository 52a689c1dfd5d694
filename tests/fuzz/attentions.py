"""Random attentions beside NumPy's float64: attentions.py WEFT SOURCE_ROOT [--seed N] [--count N] [--backends LIST]
Draws graphs that multiply queries and keys, mask and soften the scores, and multiply the probabilities by values: by PyTorch's
operator or written out; causal, windows, prefixes, lengths, caches that are filled up to a position, or hold 8 bits and scales, masks and biases as data, soft caps; groups of heads, rows of odd
lengths, rows that are masked wholly, large and infinite numbers, sizes that are symbols. Each runs by the interpreter
of loops and the JIT, a quarter also as C. As many others run with the gradients of all inputs. Half as many are of bf16 or f16, with
bounds of what rounding changes (attention_errors.py); the JIT compiles these for the instructions of this machine and for some of them
only. Without --seed, seeds come from the commit."""
import argparse
import math
import pathlib
import platform
import random
import shutil
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("no NumPy")
    sys.exit(77)

from attention_errors import Errors, rounded, stated

SIZES = (1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 40, 63, 64, 65, 96, 100, 127, 128, 129, 140, 200, 257)
WIDTHS = (1, 2, 3, 4, 5, 8, 12, 16, 20, 24, 32, 33, 40, 64, 72, 80)
WIDE, FEW = (128, 192, 256), (1, 5, 8, 16, 33, 64, 100, 128)  # widths of few rows
SAME, ONE = 100, 45  # graphs whose gradients are counted, and how many are one kernel at least
NARROW_WIDTHS = (32, 64, 64, 96)  # whole steps of matrix registers
LEVELS = ("x86-64-v4+bf16", "x86-64-v4", "x86-64-v3")  # of narrow ones, beside this machine's
LONG = (511, 512, 513, 640, 1025, 1600)  # caches, of few rows


class Drawn:
    """A graph, its inputs, and its result in float64."""

    def __init__(self, rng, gradients=False, dtype="f32"):
        self.gradients, self.dtype, self.now = gradients, dtype, dtype  # now: of new nodes
        self.rng, self.lines, self.inputs, self.count = rng, [], [], 0
        self.batch, self.groups, self.shared = rng.choice((1, 1, 2, 3)), rng.choice((1, 1, 2, 3)), rng.choice((1, 1, 1, 2, 4))
        self.rows, self.keys = rng.choice(SIZES), rng.choice(SIZES)
        self.depth, self.width = rng.choice(WIDTHS), rng.choice(WIDTHS)
        if rng.random() < 0.1:
            self.depth, self.width = rng.choice(WIDE), rng.choice(WIDE)
            self.batch, self.rows, self.keys = 1, rng.choice(FEW), rng.choice(FEW)
        cache = rng.random() < 0.15
        if cache:
            self.rows, self.depth, self.width = rng.choice((1, 1, 1, 2, 3, 5)), rng.choice(WIDTHS[3:]), rng.choice(WIDTHS[3:])
        if dtype != "f32" and rng.random() < 0.5:
            self.depth, self.width = rng.choice(NARROW_WIDTHS), rng.choice(NARROW_WIDTHS)
        self.keys = 0 if rng.random() < 0.03 else self.rows if rng.random() < 0.4 else self.keys
        if cache:
            self.keys = rng.choice(LONG)
        self.symbolic = rng.random() < 0.3
        self.order = {}  # of the dimensions of inputs
        self.safe = False  # rows that are masked wholly give 0
        self.data = np.random.default_rng(rng.getrandbits(32))
        self.build()

    def new(self, text, shape, dtype=None):
        self.count += 1
        dtype = dtype or self.now
        name = f"%n{self.count}"
        self.lines.append(f"  {name} = {text} : {dtype}[{', '.join(map(str, shape))}]")
        return name

    def sizes(self, shape):
        """The shape with S for rows and T for keys, where they are symbols."""
        return [{"rows": "S", "keys": "T"}.get(d, d) if self.symbolic else {"rows": self.rows, "keys": self.keys}.get(d, d) for d in shape]

    def numbers(self, shape):
        return [{"rows": self.rows, "keys": self.keys}.get(d, d) for d in shape]

    def give(self, name, shape, values, dtype=None):
        self.inputs.append((f"%{name}: {dtype or self.dtype}[{', '.join(map(str, self.sizes(shape)))}]", values))
        return f"%{name}"

    def normal(self, shape):
        return rounded(self.data.standard_normal(self.numbers(shape)), self.dtype)

    def operand(self, name, heads, length, width):
        """An input [batch, heads, length, width], perhaps in another order of dimensions."""
        x = self.normal((self.batch, heads, length, width))
        if name == "q" and self.rng.random() < 0.1 and not self.narrow_scores:
            # scores of thousands have few digits behind the point
            x[0, 0, 0] = rounded(x[0, 0, 0] * (10 if self.gradients else 1000), self.dtype)
        shape = [self.batch, heads, length, width]
        perm = self.rng.choice(((0, 1, 2, 3), (0, 1, 2, 3), (0, 2, 1, 3), (0, 1, 3, 2)))
        inverse = [perm.index(k) for k in range(4)]
        if name != "q" and not self.gradients and self.rng.random() < 0.2:
            return self.decoded(name, shape)
        given = self.give(name, [shape[k] for k in perm], np.ascontiguousarray(x.transpose(perm)))
        self.order[name] = perm
        if perm != (0, 1, 2, 3):
            given = self.new(f"permute({given}, perm={inverse})", self.sizes(shape))
        return given, x

    def decoded(self, name, shape):
        """Numbers of 8 bits, times a scale for each row."""
        x = self.data.integers(-127, 128, self.numbers(shape)).astype(np.int8)
        scales = [*shape[:3], 1]
        s = rounded(self.data.random(self.numbers(scales)) / 64, self.dtype)
        wide = self.new(f"convert({self.give(name, shape, x, 'i8')}, dtype={self.dtype})", self.sizes(shape))
        scale = self.new(f"broadcast({self.give(name + 's', scales, s)}, shape={self.text(shape)}, map=[0, 1, 2, 3])", self.sizes(shape))
        return self.new(f"mul({wide}, {scale})", self.sizes(shape)), rounded(x.astype(np.float32) * s, self.dtype)

    def build(self):
        rng = self.rng
        heads = self.groups * self.shared
        form = None if self.dtype == "f32" else rng.choice(("operator", "operator", "wide", "softmax in f32", "narrow"))
        self.narrow_scores, self.narrow_softmax = form in ("softmax in f32", "narrow"), form == "narrow"
        q, self.q = self.operand("q", heads, "rows", self.depth)
        k, self.k = self.operand("k", self.groups, "keys", self.depth)
        v, self.v = self.operand("v", self.groups, "keys", self.width)
        scale = rng.choice((None, None, 1.0, 0.3))
        if (self.gradients and self.depth in WIDE) or self.narrow_scores:  # scores are large enough
            scale = None
        self.scale = 1 / math.sqrt(self.depth) if scale is None else scale
        if self.narrow_scores:
            self.scale = float(rounded([self.scale], self.dtype)[0])
        self.heads = heads
        (self.by_operator if form == "operator" or (not form and rng.random() < 0.5) else self.written_out)(q, k, v, scale)

    # ---- PyTorch's operator ----

    def by_operator(self, q, k, v, scale):
        rng, options = self.rng, []
        scores = self.scores()
        kind = rng.choice(("none", "causal", "mask", "bias", "lengths", "filled"))
        if kind == "causal":
            options.append("is_causal=true")
            scores = np.where(self.index("keys") <= self.index("rows")[:, None], scores, -np.inf)
        elif kind != "none":
            shape = [rng.choice((1, self.batch)), rng.choice((1, self.heads)), rng.choice(("rows", "rows", 1)), "keys"]
            seen = self.data.random(self.numbers(shape)) < rng.choice((0.02, 0.5, 0.98))
            if rng.random() < 0.3:
                seen = np.broadcast_to(self.index("keys") <= self.index("rows")[:, None] + rng.randrange(-3, 40),
                                       self.numbers(shape[:2] + ["rows", "keys"]))
                shape[2] = "rows"
            if kind == "lengths":
                n = self.data.integers(0, self.keys + 1, self.batch)
                given = self.lengths(n, [self.batch, 1, 1, "keys"])
                scores = np.where(self.index("keys") < n[:, None, None, None], scores, -np.inf)
            elif kind == "filled":
                n = self.data.integers(0, max(self.keys, 1), 1)
                given = self.filled(n, ["rows", "keys"])
                scores = np.where(self.index("keys") <= self.index("rows")[:, None] + n, scores, -np.inf)
            elif kind == "mask":
                given = self.give("m", shape, np.ascontiguousarray(seen), "bool")
                scores = np.where(seen, scores, -np.inf)
            else:
                bias = np.where(seen, self.normal(shape) * rng.choice((0, 1)), np.float32(-np.inf))
                given = self.give("m", shape, bias)
                scores = scores + bias
                self.bias = bias
            options.append(given)
            self.safe = True
        if scale is not None:
            options.append(f"scale={scale}")
        if self.shared > 1:
            options.append("enable_gqa=true")
        out = self.new(f"aten.scaled_dot_product_attention({', '.join([q, k, v] + options)})",
                       self.sizes([self.batch, self.heads, "rows", self.width]))
        self.finish(out, scores)

    def lengths(self, n, shape):
        given = self.give("n", [self.batch], n, "i64")
        wide = self.new(f"broadcast({given}, shape={self.text(shape)}, map=[0])", self.sizes(shape), "i64")
        return self.new(f"lt({self.iota('keys', shape, 3)}, {wide})", self.sizes(shape), "bool")

    def filled(self, n, shape):
        given = self.give("n", [1], n, "i64")
        wide = self.new(f"broadcast({given}, shape={self.text(['rows'])}, map=[0])", self.sizes(["rows"]), "i64")
        last = self.new(f"add({self.iota('rows', ['rows'], 0)}, {wide})", self.sizes(["rows"]), "i64")
        wide = self.new(f"broadcast({last}, shape={self.text(shape)}, map=[0])", self.sizes(shape), "i64")
        return self.new(f"le({self.iota('keys', shape, 1)}, {wide})", self.sizes(shape), "bool")

    def iota(self, size, shape, dim):
        i = self.new(f"iota(dtype=i64, n={self.sizes([size])[0]})", self.sizes([size]), "i64")
        return self.new(f"broadcast({i}, shape={self.text(shape)}, map=[{dim}])", self.sizes(shape), "i64")

    def text(self, shape):
        return "[" + ", ".join(map(str, self.sizes(shape))) + "]"

    # ---- written out ----

    def written_out(self, q, k, v, scale):
        rng, all_ = self.rng, [self.batch, self.heads, "rows", "keys"]
        if self.shared > 1:
            k, v = (self.repeated(x, w) for x, w in ((k, self.depth), (v, self.width)))
        self.now = self.dtype if self.narrow_scores else "f32"
        out = "" if self.now == self.dtype else ", out=f32"
        x = self.new(f"contract({q}, {k}, batch_x=[0, 1], batch_y=[0, 1], sum_x=[3], sum_y=[3], acc=f32{out})", self.sizes(all_))
        scores = self.scores()
        if rng.random() < 0.8 or scale is None:
            x = self.new(f"mul({x}, {self.full(all_, self.scale)})", self.sizes(all_))
        else:
            scores, self.scale = scores / self.scale, 1
        if rng.random() < 0.2:
            x, scores = self.new(f"tanh({x})", self.sizes(all_)), np.tanh(scores)
            self.slope = 1 - scores ** 2
        for _ in range(rng.choice((0, 1, 1, 2))):
            seen, given = self.condition(all_)
            if rng.random() < 0.3:
                hidden = self.new(f"aten.logical_not({given})", self.sizes(all_), "bool")
                x = self.new(f"select({hidden}, {self.full(all_, '-inf')}, {x})", self.sizes(all_))
            elif rng.random() < 0.4:
                m = self.new(f"select({given}, {self.full(all_, 0.0)}, {self.full(all_, '-inf')})", self.sizes(all_))
                x = self.new(f"add({x}, {m})", self.sizes(all_))
            else:
                x = self.new(f"select({given}, {x}, {self.full(all_, '-inf')})", self.sizes(all_))
            scores = np.where(seen, scores, -np.inf)
        self.safe = rng.random() < 0.3
        if self.now != "f32" and not self.narrow_softmax:
            x = self.converted(x, "f32", all_)
        x = self.new(f"aten.{'_safe_softmax' if self.safe else 'softmax.int'}({x}, dim={rng.choice((3, -1))})", self.sizes(all_))
        if self.now != self.dtype:
            x = self.converted(x, self.dtype, all_)
        keys = "keys"
        if rng.random() < 0.1 and not self.symbolic:  # values of the first keys only
            keys = self.cut = (self.keys + 1) // 2
            x = self.first(x, [self.batch, self.heads, "rows", keys])
            v = self.first(v, [self.batch, self.heads, keys, self.width])
        if rng.random() < 0.5:
            out = self.new(f"contract({x}, {v}, batch_x=[0, 1], batch_y=[0, 1], sum_x=[3], sum_y=[2], acc=f32)",
                           self.sizes([self.batch, self.heads, "rows", self.width]))
        else:
            out = self.new(f"aten.matmul({x}, {v})", self.sizes([self.batch, self.heads, "rows", self.width]))
        if rng.random() < 0.3:
            out = self.new(f"permute({out}, perm=[0, 2, 1, 3])", self.sizes([self.batch, "rows", self.heads, self.width]))
            self.turned = True
        self.finish(out, scores)

    turned, cut, bias, slope = False, None, None, 1

    def converted(self, x, dtype, shape):
        self.now = dtype
        return self.new(f"convert({x}, dtype={dtype})", self.sizes(shape))

    def first(self, x, shape):
        return self.new(f"slice({x}, start=[0, 0, 0, 0], end={self.text(shape)}, step=[1, 1, 1, 1])", self.sizes(shape))

    def repeated(self, x, width):
        wide = [self.batch, self.groups, self.shared, "keys", width]
        x = self.new(f"broadcast({x}, shape={self.text(wide)}, map=[0, 1, 3, 4])", self.sizes(wide))
        flat = [self.batch, self.heads, "keys", width]
        return self.new(f"reshape({x}, shape={self.text(flat)})", self.sizes(flat))

    def full(self, shape, value):
        return self.new(f"full(dtype={self.now}, shape={self.text(shape)}, value={value})", self.sizes(shape))

    def condition(self, shape):
        rng, i, j = self.rng, self.index("rows")[:, None], self.index("keys")[None]
        kind = rng.choice(("below", "strictly", "window", "prefix", "from", "all"))
        at = rng.randrange(-5, 60)
        row, key = self.iota("rows", shape, 2), self.iota("keys", shape, 3)
        moved = self.new(f"add({row}, {self.new(f'full(dtype=i64, shape={self.text(shape)}, value={at})', self.sizes(shape), 'i64')})",
                         self.sizes(shape), "i64")

        def compare(op, a, b):
            return self.new(f"{op}({a}, {b})", self.sizes(shape), "bool")
        if kind == "below":
            return (j <= i + at), compare("le", key, moved)
        if kind == "strictly":
            return (i + at > j), compare("gt", moved, key)
        if kind == "from":
            return (j >= i + at), compare("ge", key, moved)
        if kind == "window":
            both = self.new(f"bit_and({compare('le', key, row)}, {compare('lt', row, self.plus(key, abs(at) + 1, shape))})",
                            self.sizes(shape), "bool")
            return (j <= i) & (i < j + abs(at) + 1), both
        if kind == "all":  # the greatest number
            limit = self.new(f"full(dtype=i64, shape={self.text(shape)}, value={2 ** 63 - 1})", self.sizes(shape), "i64")
            return j <= j + i, compare("le", key, limit)
        limit = self.new(f"full(dtype=i64, shape={self.text(shape)}, value={at})", self.sizes(shape), "i64")
        return (j <= i) | (j < at), self.new(f"bit_or({compare('le', key, row)}, {compare('lt', key, limit)})", self.sizes(shape), "bool")

    def plus(self, x, n, shape):
        n = self.new(f"full(dtype=i64, shape={self.text(shape)}, value={n})", self.sizes(shape), "i64")
        return self.new(f"add({x}, {n})", self.sizes(shape), "i64")

    # ---- the result ----

    def index(self, size):
        return np.arange(self.rows if size == "rows" else self.keys)

    def shared_heads(self, x):
        return np.repeat(x.astype(np.float64), self.shared, axis=1)

    def scores(self):
        return self.q.astype(np.float64) @ self.shared_heads(self.k).swapaxes(2, 3) * self.scale

    def finish(self, out, scores):
        with np.errstate(all="ignore"):
            high = scores.max(-1, keepdims=True, initial=-np.inf)
            masked = np.isneginf(high)
            e = np.exp(scores - np.where(masked & self.safe, 0, high))
            total = e.sum(-1, keepdims=True)
            p = e / np.where(masked & self.safe, 1, total)
            y = p[..., :self.cut] @ self.shared_heads(self.v)[..., :self.cut, :]
        self.result = (y.swapaxes(1, 2) if self.turned else y).astype(np.float32)
        self.allowed = {}
        if self.dtype != "f32":
            q, k, v = self.q.astype(np.float64), self.shared_heads(self.k), self.shared_heads(self.v)
            self.errors = Errors(self.dtype, self.narrow_scores, q, k, self.first_values(v), self.scale, self.slope, np.nan_to_num(p), y)
            self.allowed["allow.0"] = stated(self.errors.of_y, self.dtype)
        if self.gradients:
            self.derive(p)
        where = " where 0 <= S, 0 <= T" if self.symbolic else ""
        self.graph = (f"graph @f({', '.join(text for text, _ in self.inputs)}){where} {{\n" + "\n".join(self.lines) +
                      f"\n  return {out}\n}}\n")


    def first_values(self, v):
        """Values, of which those that no probability multiplies are 0."""
        if self.cut is None:
            return v
        return np.concatenate([v[..., :self.cut, :], np.zeros_like(v[..., self.cut:, :])], 2)

    def derive(self, p):
        """The cotangent of the result, and the gradients, by number of the input."""
        ct = rounded(self.data.standard_normal(self.result.shape), self.dtype)
        g = (ct.swapaxes(1, 2) if self.turned else ct).astype(np.float64)
        v, k, q = self.shared_heads(self.v), self.shared_heads(self.k), self.q.astype(np.float64)
        gv, gp = np.zeros_like(v), np.zeros_like(p)
        gv[..., :self.cut, :] = p[..., :self.cut].swapaxes(2, 3) @ g
        gp[..., :self.cut] = g @ v[..., :self.cut, :].swapaxes(2, 3)
        gx = p * (gp - (p * gp).sum(-1, keepdims=True))
        gs = gx * self.slope * self.scale
        found = {"q": gs @ k, "k": self.summed(gs.swapaxes(2, 3) @ q), "v": self.summed(gv)}
        if self.bias is not None:
            found["m"] = gx.sum(tuple(d for d in range(4) if self.bias.shape[d] == 1), keepdims=True)
        self.tensors, off = {"ct.0": ct}, {}
        if self.dtype != "f32":
            off = self.errors.gradients(g, gp, gx, gs)
            off["k"], off["v"] = self.summed(off["k"]), self.summed(off["v"])
            # each head's gradient is rounded before they are added
            heads = self.shared > 1
            off["k"] = off["k"] + heads * self.errors.u ** 2 * self.summed((gs.swapaxes(2, 3) @ q) ** 2)
            off["v"] = off["v"] + heads * self.errors.u ** 2 * self.summed(gv ** 2)
            if self.bias is not None:
                off["m"] = off["m"].sum(tuple(d for d in range(4) if self.bias.shape[d] == 1), keepdims=True)
        for number, (text, x) in enumerate(self.inputs):
            name = text[1:text.index(":")]
            if name in found and x.dtype == np.float32:
                if off:
                    self.allowed[f"allow.g.{number}"] = stated(off[name], self.dtype)
                self.tensors[f"g.{number}"] = found[name].transpose(self.order.get(name, (0, 1, 2, 3))).astype(np.float32)

    def summed(self, x):
        """Over the heads that share one."""
        return x.reshape(self.batch, self.groups, self.shared, *x.shape[2:]).sum(2)


def write(path, tensors, dtype="f32", meta=None):
    """A safetensors file: floats are of the dtype."""
    import json
    types = {"float32": "F32", "int64": "I64", "int8": "I8", "bool": "BOOL"}
    header, body = {"__metadata__": meta} if meta else {}, b""
    for name, x in tensors.items():
        kind, x = types[x.dtype.name], np.ascontiguousarray(x)
        if kind == "F32" and dtype != "f32":
            kind = dtype.upper()
            x = x.astype(np.float16) if dtype == "f16" else (rounded(x, dtype).view(np.uint32) >> 16).astype(np.uint16)
        header[name] = {"dtype": kind, "shape": list(x.shape), "data_offsets": [len(body), len(body) + x.nbytes]}
        body += x.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


def kind_of(gradients, dtype):
    """What names of the files begin with."""
    return ("g" if gradients else "a") + ("" if dtype == "f32" else "n")


def draw(folder, seed, gradients, dtype="f32"):
    """Writes a graph and what it should give."""
    rng = random.Random(seed + (1 << 40 if gradients else 0) + (0 if dtype == "f32" else 1 << 41))
    drawn = Drawn(rng, gradients, dtype)
    while gradients and np.isnan(drawn.result).any():  # rows without a key: their gradients are those of nothing
        drawn = Drawn(rng, gradients, dtype)
    path = folder / f"{kind_of(gradients, dtype)}{seed}.ir"
    path.write_text(drawn.graph)
    tensors = {f"x.{k}": x for k, (_, x) in enumerate(drawn.inputs)} | {"y.0": drawn.result}
    write(path.with_suffix(".safetensors"), tensors | (drawn.tensors if gradients else {}), dtype, drawn.allowed)


def check(args, folder, backend, gradients, dtype, target=None):
    """Whether all graphs in the folder give what they should."""
    paths = sorted(folder.glob(f"{kind_of(gradients, dtype)}[0-9]*.ir"))[::4 if backend == "c" else 1]
    pairs = [str(f) for path in paths for f in (path, path.with_suffix(".safetensors"))]
    mode = ["--mode", "vjp"] if gradients else []
    if target:
        mode += ["--target", target]
    done = subprocess.run([args.weft, "check", *mode, *pairs, "-q", "--jobs", "2", "--backend", backend], capture_output=True, text=True,
                          check=False)
    print(f"{backend}{' ' + target if target else ''}, {dtype}{' with gradients' if gradients else ''}, seeds from {args.seed}: "
          f"{done.stdout.splitlines()[-1] if done.stdout else done.stderr}", flush=True)
    if done.returncode:
        print(done.stdout[-4000:], done.stderr[-4000:])
    return not done.returncode


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("weft")
    p.add_argument("root", type=pathlib.Path)
    p.add_argument("--seed", type=int)
    p.add_argument("--count", type=int, default=100)
    p.add_argument("--backends", default="loops,jit,c")
    p.add_argument("--dtypes", default="f32,narrow")
    p.add_argument("--levels", action="store_true", help="narrow ones for all levels, and not for one")
    p.add_argument("--keep", type=pathlib.Path, help="leave the graphs in this folder")
    args = p.parse_args()
    if args.seed is None:
        commit = ""
        if shutil.which("git"):
            commit = subprocess.run(["git", "-C", str(args.root), "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout
        args.seed = int(commit[:8] or "1", 16)
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or pathlib.Path(temporary)
        folder.mkdir(exist_ok=True)
        for seed in range(args.seed, args.seed + args.count):
            for gradients in (False, True):
                if "f32" in args.dtypes:
                    draw(folder, seed, gradients)
                if "narrow" in args.dtypes and seed % 2 == 0:
                    draw(folder, seed, gradients, "f16" if seed % 4 else "bf16")
        levels = LEVELS if args.levels else LEVELS[args.seed // 2 % len(LEVELS):][:1]
        for backend in args.backends.split(","):
            runs = [(dtype, None) for dtype in args.dtypes.split(",")]
            if "narrow" in args.dtypes and backend == "jit" and platform.machine() == "x86_64":
                runs += [("narrow", level) for level in levels]
            for dtype, target in runs:
                for gradients in (False, True):
                    if not check(args, folder, backend, gradients, dtype, target):
                        return 1
        if "f32" not in args.dtypes:
            return 0
        taken = 0
        for path in sorted(folder.glob("a[0-9]*.ir")):
            shown = subprocess.run([args.weft, "show", "--kernels", str(path)], capture_output=True, text=True, check=False).stdout
            taken += "attention, " in shown
        # Seeds that are the same each time: of few draws the part varies by a fifth.
        same, one = folder / "same", 0
        same.mkdir(exist_ok=True)
        for seed in range(SAME):
            draw(same, seed, True)
        for path in sorted(same.glob("g*.ir")):
            made = subprocess.run([args.weft, "compile", "--grad=inputs", "--emit", "loops", "-o", str(path.with_suffix(".loops")), str(path)],
                                  capture_output=True, text=True, check=False)
            if made.returncode:
                print(f"{path.stem} is not compiled with its gradients: {made.stderr}\n{path.read_text()}")
                return 1
            one += "products" in path.with_suffix(".loops").read_text()
        print(f"{taken} of {args.count} are one kernel, {one} of {SAME} gradients of the same seeds are")
        # not those with a gradient of the mask, with few rows, or with fewer keys than columns
        return 0 if taken * 2 > args.count and one >= ONE else 1


if __name__ == "__main__":
    sys.exit(main())
