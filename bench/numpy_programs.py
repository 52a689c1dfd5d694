"""Forty programs as users of NumPy write them, for bench/arrays.py and python/tests/test_numpy_programs.py.

Each is a function of arrays and Python numbers that calls `np`. `PROGRAMS` has, by name, the function and what makes its arguments from a
NumPy generator and a number of elements n, which is about the size of the largest argument."""
import numpy as np

PROGRAMS = {}


def program(make):
    """Adds a function to PROGRAMS; make(generator, n) returns its arguments."""
    def add(function):
        PROGRAMS[function.__name__] = (function, make)
        return function
    return add


def side(n, powers=2):
    """Returns the length of a square (a cube, ...) of about n elements, at least 4."""
    return max(4, round(n ** (1 / powers)))


def square(g, n):
    return (g.standard_normal((side(n), side(n))),)


def line(g, n):
    return (g.standard_normal(n),)


# Stencils and images.

@program(square)
def heat_2d(u):
    u = u.copy()
    for _ in range(5):
        u[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return u


@program(square)
def jacobi_residual(u):
    inner = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
    return inner, np.sqrt(np.mean((inner - u[1:-1, 1:-1]) ** 2))


@program(lambda g, n: (g.random((side(n), side(n))) < 0.4,))
def game_of_life(alive):
    cells = alive.astype(np.int32)
    near = sum(np.roll(np.roll(cells, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    return (near == 3) | (alive & (near == 2))


@program(lambda g, n: (g.standard_normal(n), g.standard_normal(n)))
def wave_1d(u, before):
    for _ in range(8):
        lap = np.roll(u, 1) - 2 * u + np.roll(u, -1)
        u, before = 2 * u - before + 0.25 * lap, u
    return u


@program(square)
def gray_scott(u):
    v = 1 - u
    lap = lambda a: np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1) - 4 * a
    r = u * v * v
    return u + 0.16 * lap(u) - r + 0.035 * (1 - u), v + 0.08 * lap(v) + r - 0.095 * v


@program(lambda g, n: (g.integers(0, 256, (side(n), side(n)), dtype=np.uint8),))
def sobel(image):
    a = np.pad(image.astype(np.float32), 1, mode="edge")
    gx = a[:-2, 2:] + 2 * a[1:-1, 2:] + a[2:, 2:] - a[:-2, :-2] - 2 * a[1:-1, :-2] - a[2:, :-2]
    gy = a[2:, :-2] + 2 * a[2:, 1:-1] + a[2:, 2:] - a[:-2, :-2] - 2 * a[:-2, 1:-1] - a[:-2, 2:]
    return np.clip(np.hypot(gx, gy), 0, 255).astype(np.uint8)


@program(square)
def blur(image):
    taps = np.exp(-0.5 * (np.arange(-3, 4) / 1.5) ** 2)
    taps = taps / taps.sum()
    h, w = image.shape
    a = np.pad(image, 3, mode="reflect") if min(h, w) > 3 else np.pad(image, 3)
    rows = sum(t * a[i:i + h] for i, t in enumerate(taps))
    return sum(t * rows[:, i:i + w] for i, t in enumerate(taps))


@program(lambda g, n: (g.standard_normal((side(n), side(n))), g.random(n), g.random(n)))
def bilinear(image, x, y):
    h, w = image.shape
    x, y = x * (w - 1), y * (h - 1)
    x0, y0 = np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)
    x1, y1 = np.minimum(x0 + 1, w - 1), np.minimum(y0 + 1, h - 1)
    fx, fy = x - x0, y - y0
    top = image[y0, x0] * (1 - fx) + image[y0, x1] * fx
    return top * (1 - fy) + (image[y1, x0] * (1 - fx) + image[y1, x1] * fx) * fy


# Particles and dynamics.

@program(lambda g, n: (g.standard_normal((side(n), 3)), g.random(side(n))))
def n_body(position, mass):
    d = position[None] - position[:, None]
    inverse = ((d ** 2).sum(-1) + 0.01) ** -1.5
    return (d * (inverse * mass)[..., None]).sum(1)


@program(lambda g, n: (g.random((side(n), 3)) * 10,))
def lennard_jones(x):
    d = x[:, None] - x[None]
    d = d - 10 * np.round(d / 10)
    r2 = (d ** 2).sum(-1) + np.eye(len(x)) * 1e9
    s6 = 1 / np.maximum(r2, 0.5) ** 3
    return 2 * np.sum(s6 * s6 - s6)


@program(lambda g, n: (g.standard_normal((3, n)),))
def lorenz(state):
    def rate(s):
        x, y, z = s
        return np.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])
    for _ in range(2):
        a = rate(state)
        b = rate(state + 0.005 * a)
        c = rate(state + 0.005 * b)
        state = state + 0.01 / 6 * (a + 2 * b + 2 * c + rate(state + 0.01 * c))
    return state


@program(lambda g, n: (g.random(n), 0.3, 0.1))
def epidemic(infected, beta, gamma):
    s, i, r = 1 - infected, infected, np.zeros_like(infected)
    for _ in range(6):
        new, gone = beta * s * i, gamma * i
        s, i, r = s - new, i + new - gone, r + gone
    return s, i, r


# Complex numbers and spectra.

@program(lambda g, n: (g.uniform(-2, 1, n) + 1j * g.uniform(-1.5, 1.5, n),))
def mandelbrot(c):
    z, count = np.zeros_like(c), np.zeros(c.shape, dtype=np.int64)
    for _ in range(12):
        inside = np.abs(z) <= 2
        z = np.where(inside, z * z + c, z)
        count = count + inside
    return count


@program(lambda g, n: (g.standard_normal(n),))
def derivative_by_fft(u):
    k = 2j * np.pi * np.fft.fftfreq(len(u), 1 / len(u))
    return np.fft.ifft(k * np.fft.fft(u)).real


@program(square)
def poisson_by_fft(f):
    h, w = f.shape
    k2 = (np.fft.fftfreq(h)[:, None] ** 2 + np.fft.fftfreq(w)[None] ** 2) * (2 * np.pi) ** 2
    k2[0, 0] = 1.0
    u = -np.fft.fft2(f) / k2
    u[0, 0] = 0
    return np.fft.ifft2(u).real


@program(line)
def low_pass(signal):
    spectrum = np.fft.rfft(signal)
    spectrum[len(spectrum) // 4:] = 0
    return np.fft.irfft(spectrum, n=len(signal))


@program(line)
def power_spectrum(signal):
    frames = signal[:len(signal) // 64 * 64].reshape(-1, 64) * np.hanning(64)
    return (np.abs(np.fft.rfft(frames, axis=1)) ** 2).mean(0)


# Statistics and learning.

@program(lambda g, n: (g.standard_normal((max(n // 4, 8), 4)), g.standard_normal((8, 4))))
def k_means(points, centers):
    nearest = ((points[:, None] - centers[None]) ** 2).sum(-1).argmin(1)
    hot = (nearest[:, None] == np.arange(len(centers))).astype(points.dtype)
    return hot.T @ points / np.maximum(hot.sum(0), 1)[:, None], nearest


@program(lambda g, n: (g.standard_normal((side(n), 16)), g.standard_normal((side(n), 16))))
def distances(a, b):
    return np.sqrt(np.maximum((a * a).sum(1)[:, None] + (b * b).sum(1) - 2 * a @ b.T, 0))


@program(lambda g, n: (g.standard_normal((max(n // 8, 8), 8)), g.integers(0, 2, max(n // 8, 8)), g.standard_normal(8)))
def logistic_regression(x, y, w):
    for _ in range(3):
        p = 1 / (1 + np.exp(-(x @ w)))
        w = w - 0.1 * x.T @ (p - y) / len(y)
    return w


@program(square)
def log_softmax(x):
    x = x - x.max(axis=1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=1, keepdims=True))


@program(lambda g, n: (g.integers(0, 100, n), g.standard_normal(n)))
def sums_by_group(group, value):
    total = np.bincount(group, weights=value, minlength=100)
    return total / np.maximum(np.bincount(group, minlength=100), 1)


@program(line)
def histogram(x):
    return np.histogram(x, bins=32, range=(-3.0, 3.0))[0]


@program(line)
def standardise(x):
    low, middle, high = np.percentile(x, [25, 50, 75])
    z = (x - middle) / (high - low)
    z[np.abs(z) > 3] = 0
    return z


@program(line)
def ranks(x):
    order = np.argsort(x, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(x))
    return rank, x[order]


@program(square)
def covariance(x):
    c = x - x.mean(axis=0)
    cov = c.T @ c / (len(x) - 1)
    std = np.sqrt(np.diag(cov))
    return cov / std[:, None] / std


@program(lambda g, n: (g.standard_normal((max(n // 4, 16), 4)),))
def principal_axes(x):
    c = x - x.mean(axis=0)
    values, vectors = np.linalg.eigh(c.T @ c / len(x))
    return values, np.abs(vectors)


# Series and finance.

@program(lambda g, n: (g.random(n) + 0.5, g.random(n) + 0.5, g.random(n) + 0.1))
def black_scholes(spot, strike, years):
    def normal(d):
        k = 1 / (1 + 0.2316419 * np.abs(d))
        tail = np.exp(-d * d / 2) / np.sqrt(2 * np.pi) * k * (
            0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
        return np.where(d > 0, 1 - tail, tail)
    root = 0.2 * np.sqrt(years)
    d1 = (np.log(spot / strike) + (0.01 + 0.02) * years) / root
    discount = strike * np.exp(-0.01 * years)
    call = spot * normal(d1) - discount * normal(d1 - root)
    return call, call - spot + discount


@program(line)
def moving_average(x):
    total = np.cumsum(np.concatenate([np.zeros(1), x]))
    return (total[8:] - total[:-8]) / 8


@program(line)
def largest_fall(x):
    path = np.cumsum(x)
    return np.max(np.maximum.accumulate(path) - path)


@program(lambda g, n: (np.sort(g.random(n)), g.standard_normal(n)))
def integrate(x, y):
    return np.sum(np.diff(x) * (y[1:] + y[:-1]) / 2), np.gradient(y)


@program(lambda g, n: (g.random(n), np.sort(g.random(64)), g.random(64)))
def interpolate(x, xp, fp):
    i = np.clip(np.searchsorted(xp, x) - 1, 0, len(xp) - 2)
    t = (x - xp[i]) / (xp[i + 1] - xp[i])
    return fp[i] * (1 - t) + fp[i + 1] * t


@program(lambda g, n: (g.random(n), g.random(n)))
def monte_carlo_pi(x, y):
    return 4 * np.count_nonzero(x * x + y * y < 1) / x.size


@program(line)
def polynomial(x):
    y = np.zeros_like(x)
    for c in (0.5, -1.25, 0.75, 2.0, -0.3, 1.0):
        y = y * x + c
    return y


@program(line)
def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@program(lambda g, n: (g.integers(0, 2 ** 31, n),))
def integer_hash(x):
    x = (x ^ (x >> 16)) * 0x45d9f3b & 0xffffffff
    x = (x ^ (x >> 16)) * 0x45d9f3b & 0xffffffff
    return (x ^ (x >> 16)) % 1024


# Linear algebra.

@program(lambda g, n: (lambda a: (a @ a.T + len(a) * np.eye(len(a)), g.standard_normal(len(a))))(g.standard_normal((side(n), side(n)))))
def cholesky_solve(a, b):
    l = np.linalg.cholesky(a)
    return np.linalg.solve(l.T, np.linalg.solve(l, b)), 2 * np.log(np.diag(l)).sum()


@program(lambda g, n: (g.standard_normal((max(n // 8, 16), 8)), g.standard_normal(max(n // 8, 16))))
def least_squares(x, y):
    q, r = np.linalg.qr(x)
    return np.linalg.solve(r, q.T @ y)


@program(lambda g, n: (g.random((side(n), side(n))),))
def power_iteration(a):
    v = np.ones(len(a))
    for _ in range(10):
        v = a @ v
        v = v / np.linalg.norm(v)
    return v @ a @ v, v


@program(lambda g, n: (g.standard_normal((16, side(n // 16 + 1), 4)), g.standard_normal((16, 4, 8))))
def batched_products(a, b):
    return np.einsum("bij,bjk->bik", a, b), np.einsum("bij,bij->b", a, a)
