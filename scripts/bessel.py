"""Coefficients of ir/scalar/math_bessel_jyk.c: bessel.py (needs mpmath). Chebyshev interpolation in 50 digits, written as a polynomial
of u in -1..1; prints them, lowest first, and the largest error of the polynomial of rounded coefficients against the function."""
from mpmath import airyai, airybi, besseli, besselj, besselk, bessely, chebyt, cos, exp, log, mp, mpf, pi, sin, sqrt, taylor

mp.dps = 50


def fit(f, degree):
    """Coefficients of u**k of the interpolation at Chebyshev's points."""
    n = degree + 1
    at = [cos(pi * (2 * k + 1) / (2 * n)) for k in range(n)]
    value = [f(u) for u in at]
    power = [mpf(0)] * n
    for j in range(n):
        c = sum(v * cos(pi * j * (2 * k + 1) / (2 * n)) for k, v in enumerate(value)) * (2 if j else 1) / n
        for k, t in enumerate(taylor(lambda x: chebyt(j, x), 0, j)):
            power[k] += c * t
    return [mpf(float(c)) for c in power]


def show(name, f, degree):
    c = fit(f, degree)
    value = lambda u: sum(a * u**k for k, a in enumerate(c))
    points = [mpf(k) / 57 - 1 for k in range(115)]
    wrong = max(abs(value(u) - f(u)) for u in points)
    print(f"{name}: {float(wrong):.1e} of {float(max(abs(f(u)) for u in points)):.3g}, sum {float(sum(abs(a) for a in c)):.3g}\n  "
          + ", ".join(repr(float(a)) for a in c), flush=True)


def near(f, most):
    """A function of x*x up to x = most: u = x*x * 2 / most**2 - 1."""
    return lambda u: f(sqrt((u + 1) / 2) * most if u > -1 else mpf("1e-8"))


def far(f, least):
    """A function of x from least to infinity: u = 2 * least / x - 1."""
    return lambda u: f(2 * least / (u + 1) if u > -1 else mpf("1e15"))


def phase(n, part):
    """P and Q of J = sqrt(2 / (pi x)) (P cos(chi) - Q sin(chi)), Y = sqrt(2 / (pi x)) (P sin(chi) + Q cos(chi)); Q times x."""
    def value(x):
        chi, scale = x - (2 * n + 1) * pi / 4, sqrt(pi * x / 2)
        j, y = besselj(n, x) * scale, bessely(n, x) * scale
        return j * cos(chi) + y * sin(chi) if part == "p" else x * (y * cos(chi) - j * sin(chi))
    return value


def squares(f, least):
    """A function of 1 / x**2 from least to infinity: u = 2 * (least / x)**2 - 1."""
    return lambda u: f(least / sqrt((u + 1) / 2) if u > -1 else mpf("1e12"))


def zeta(x):
    return 2 * x * sqrt(x) / 3


def airy_wave(part):
    """Ai(-x) = (P sin(zeta + pi/4) - Q cos(zeta + pi/4)) / (sqrt(pi) x**(1/4)); Q times zeta. Ai and Bi by Bessel functions of order 1/3."""
    def value(x):
        z, scale = zeta(x), sqrt(pi) * x ** mpf("0.25")
        a, b = airyai(-x) * scale, airybi(-x) * scale
        s, c = sin(z + pi / 4), cos(z + pi / 4)
        return a * s + b * c if part == "p" else z * (b * s - a * c)
    return value


def by_zeta(f, least):
    """A function of x by 1 / zeta(x)**2: u = 2 * (least / zeta)**2 - 1."""
    def value(u):
        z = least / sqrt((u + 1) / 2) if u > -1 else mpf("1e9")
        return f((z * 3 / 2) ** (mpf(2) / 3))
    return value


def airy_tail(x):
    return airyai(x) * 2 * sqrt(pi) * x ** mpf("0.25") * exp(zeta(x))


def main():
    two = 2 / pi
    show("j0_near", near(lambda x: besselj(0, x), 8), 20)
    show("j1_near", near(lambda x: besselj(1, x) / x, 8), 20)
    show("y0_near", near(lambda x: bessely(0, x) - two * log(x) * besselj(0, x), 8), 20)
    show("y1_near", near(lambda x: (bessely(1, x) - two * (log(x) * besselj(1, x) - 1 / x)) / x, 8), 20)
    for n in 0, 1:
        for part in "pq":
            show(f"phase{n}{part}", squares(phase(n, part), 8), 13)
    show("k0_near", near(lambda x: besselk(0, x) + log(x) * besseli(0, x), 2), 9)
    show("k1_near", near(lambda x: (besselk(1, x) - log(x) * besseli(1, x) - 1 / x) / x, 2), 9)
    for n in 0, 1:
        show(f"k{n}_far", far(lambda x: besselk(n, x) * sqrt(x) * exp(x), 2), 26)
    show("airy_middle", lambda u: airyai(mpf(2.5) * u - 1.5), 24)
    for part in "pq":
        show(f"airy_{part}", by_zeta(airy_wave(part), zeta(mpf(4))), 16)
    show("airy_far", lambda u: airy_tail(((u + 1) / 2) ** (-mpf(2) / 3) if u > -1 else mpf("1e12")), 27)


if __name__ == "__main__":
    main()
