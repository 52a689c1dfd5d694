"""What rounding to f16 or bf16 may change in a random attention (attentions.py): bounds of first order, from the values in float64.
Weft rounds the probabilities before they are multiplied by values, and results; an attention whose scores are narrow rounds each step of
these. A value that is kept in f32 instead has a smaller error, so the bounds hold then, too. Errors of rounding are independent:
their squares are added. Bounds that add the errors themselves would let a lost block of keys pass."""
import numpy as np

UNIT = {"bf16": 2.0 ** -8, "f16": 2.0 ** -11}  # the largest relative error of rounding
SMALLEST = {"bf16": 0.0, "f16": 2.0 ** -25}    # of numbers below the normal ones, absolute
F32 = 2.0 ** -22                               # of a product's terms in f32
RELATIVE, ABSOLUTE = 1.3e-5, 1e-4              # what f32 is allowed (tools/compare.c)
STEPS = 4                                      # roundings of scores, or of their gradients, if these are narrow
DEVIATIONS = 4                                 # of errors whose deviation is at most the unit: rounding's is 0.58 of it


def rounded(x, dtype):
    """The nearest numbers of the dtype, ties to even, as float32."""
    x = np.ascontiguousarray(x, np.float32)
    if dtype == "f16":
        return x.astype(np.float16).astype(np.float32)
    if dtype == "bf16":
        bits = x.view(np.uint32)
        near = (bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)
        return np.where(np.isnan(x), x, near.astype(np.uint32).view(np.float32))
    return x


def stated(square, dtype):
    """The text of a tolerance, beside that of rounding the result: of the greatest error of an element, whose squares these are."""
    most = float(np.max(square, initial=0, where=np.isfinite(square))) ** 0.5
    return f"{RELATIVE + UNIT[dtype]} {ABSOLUTE + DEVIATIONS * most} 0"


class Errors:
    """Squares of the errors of an attention. p: probabilities; y: results; narrow: its scores are of the dtype. Errors of a row's
    terms are independent, but for one that all of them share: that of the sum that they are divided by, or that is subtracted."""

    def __init__(self, dtype, narrow, q, k, v, scale, slope, p, y):
        self.u, self.least, self.narrow = UNIT[dtype], SMALLEST[dtype], narrow
        self.q, self.k, self.v, self.scale, self.slope, self.p, self.y = q, k, v, scale, slope, p, y
        terms = np.abs(q) @ np.abs(k).swapaxes(2, 3) * abs(scale)
        score = terms * F32 + (STEPS ** 0.5 * self.u * np.abs(q @ k.swapaxes(2, 3) * scale) if narrow else 0)
        self.score = np.where(p > 0, score, 0)
        self.row = (p ** 2 * self.score ** 2).sum(-1, keepdims=True)
        curved = np.exp(np.minimum(2 * self.score.max(-1, keepdims=True, initial=0), 50))
        self.of_p = np.minimum(p ** 2 * (self.score ** 2 + self.row) * curved ** 2, 1)
        self.rounded_p = self.of_p + 2 * (self.u * p) ** 2 + self.least ** 2
        self.of_y = self.rounded_p @ v ** 2 + self.row * y ** 2

    def gradients(self, g, gp, gx, gs):
        """Of the gradients of queries, keys, values and biases, by the cotangent, the gradients of probabilities, of logits, of scores."""
        u, p = self.u, self.p
        total = (p * gp).sum(-1, keepdims=True)
        of_gp = (u * gp) ** 2 + (F32 * (np.abs(g) @ np.abs(self.v).swapaxes(2, 3))) ** 2
        row = (self.rounded_p * gp ** 2 + p ** 2 * of_gp).sum(-1, keepdims=True) + self.row * total ** 2
        row += (g ** 2 * (self.of_y + (u * self.y) ** 2)).sum(-1, keepdims=True)
        of_gx = (self.rounded_p if self.narrow else self.of_p) * (gp - total) ** 2 + p ** 2 * of_gp
        of_slope = (2 * self.score + u) ** 2 if self.narrow else 0
        factor = self.slope * self.scale
        of_gs = of_gx * factor ** 2 + (gx * self.scale) ** 2 * of_slope
        of_gs = of_gs + (STEPS if self.narrow else 1) * (u * gs) ** 2 + self.least ** 2
        return {"q": of_gs @ self.k ** 2 + row * ((p * factor) @ self.k) ** 2,
                "k": (of_gs + row * (p * factor) ** 2).swapaxes(2, 3) @ self.q ** 2,
                "v": self.rounded_p.swapaxes(2, 3) @ g ** 2, "m": of_gx + p ** 2 * row}
