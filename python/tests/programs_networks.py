"""Networks that users of torch.compile write: see programs.py."""
import math

import torch

from programs_base import F, mlp, nn, program


def trained(c, module, *args, **options):
    """The results of a module, and its gradients."""
    y = c(module, **options)(*args)
    sum(t.square().sum() for t in torch.utils._pytree.tree_leaves(y)).backward()
    return y, [p.grad for p in module.parameters()]


@program
def language_model_of_an_lstm(c):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.e, self.r, self.h = nn.Embedding(11, 8), nn.LSTM(8, 8, 2, batch_first=True), nn.Linear(8, 11)

        def forward(self, t, state=None):
            y, state = self.r(self.e(t), state)
            return self.h(y), state
    m = M()
    y, state = c(m)(torch.arange(10).view(2, 5))
    y, _ = c(m)(torch.arange(10).view(2, 5), tuple(s.detach() for s in state))
    F.cross_entropy(y.flatten(0, 1), torch.arange(10)).backward()
    return y, [p.grad for p in m.parameters()]


@program
def packed_sequences(c):
    r = nn.GRU(4, 6, bidirectional=True, batch_first=True)

    def f(x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        y, h = r(packed)
        return nn.utils.rnn.pad_packed_sequence(y, batch_first=True)[0], h
    y, h = c(f)(torch.randn(3, 5, 4), torch.tensor([3, 5, 2]))
    (y.sum() + h.sum()).backward()
    return y, h, [p.grad for p in r.parameters()]


@program
def cells_in_a_loop(c):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.LSTMCell(4, 6), nn.RNNCell(6, 3, nonlinearity="relu")

        def forward(self, x):
            h, s, k, out = x.new_zeros(x.shape[1], 6), x.new_zeros(x.shape[1], 6), x.new_zeros(x.shape[1], 3), []
            for t in x:
                h, s = self.a(t, (h, s))
                k = self.b(h, k)
                out.append(k)
            return torch.stack(out)
    return trained(c, M(), torch.randn(4, 2, 4))


class Attention(nn.Module):
    """Attention with rotations and a cache."""

    def __init__(self, n=16, heads=4, shared=2):
        super().__init__()
        self.heads, self.shared, self.d = heads, shared, n // heads
        self.q, self.kv, self.out = nn.Linear(n, n), nn.Linear(n, 2 * shared * self.d), nn.Linear(n, n)

    def rotated(self, x, positions):
        w = 1.0 / 100 ** (torch.arange(0, self.d, 2) / self.d)
        angles = positions[:, None] * w
        a, b = x[..., ::2], x[..., 1::2]
        return torch.stack([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1).flatten(-2)

    def forward(self, x, cache=None, positions=None, mask=None):
        B, T, C = x.shape
        positions = torch.arange(T) if positions is None else positions
        q = self.rotated(self.q(x).view(B, T, self.heads, self.d).transpose(1, 2), positions)
        k, v = self.kv(x).view(B, T, 2, self.shared, self.d).permute(2, 0, 3, 1, 4)
        k = self.rotated(k, positions)
        if cache is not None:
            cache[0].index_copy_(2, positions, k)
            cache[1].index_copy_(2, positions, v)
            k, v = cache
            mask = torch.arange(k.shape[2]) <= positions[:, None]
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None, enable_gqa=True)
        return self.out(y.transpose(1, 2).reshape(B, T, C))


@program
def attention_of_groups(c):
    return trained(c, Attention(), torch.randn(2, 5, 16))


@program
def decoding_with_a_static_cache(c):
    m, x = Attention(), torch.randn(1, 6, 16)
    f, cache, out = c(m), (torch.zeros(1, 2, 8, 4), torch.zeros(1, 2, 8, 4)), []
    with torch.no_grad():
        out.append(f(x[:, :3], cache, torch.arange(3)))
        for k in range(3, 6):
            out.append(f(x[:, k:k + 1], cache, torch.tensor([k])))
        return out, cache, m(x)


@program
def decoding_with_a_growing_cache(c):
    q, k, v = (nn.Linear(8, 8) for _ in range(3))

    def step(x, keys, values):
        keys, values = torch.cat([keys, k(x)], 1), torch.cat([values, v(x)], 1)
        return F.scaled_dot_product_attention(q(x), keys, values), keys, values
    f, keys, values = c(step), torch.randn(1, 2, 8), torch.randn(1, 2, 8)
    with torch.inference_mode():
        for _ in range(5):
            torch._dynamo.mark_dynamic(keys, 1)
            torch._dynamo.mark_dynamic(values, 1)
            x, keys, values = f(torch.ones(1, 1, 8), keys, values)
    return x.clone(), keys.clone()


@program
def packed_texts(c):
    """Several texts in a row: a mask of blocks, positions that begin again."""
    m = Attention()

    def f(x, ids):
        n = torch.arange(ids.shape[0])
        start = torch.where(F.pad(ids[1:] != ids[:-1], (1, 0), value=True), n, 0).cummax(0).values
        mask = (ids[:, None] == ids) & (n[:, None] >= n)
        return m(x, positions=n - start, mask=mask)
    x = torch.randn(1, 8, 16)
    y = c(f)(x, torch.tensor([0, 0, 0, 1, 1, 2, 2, 2]))
    y.square().sum().backward()
    return y, m(x[:, 3:5]), [p.grad for p in m.parameters()]


@program
def lengths_one_by_one(c):
    """Attention of each text alone, by lengths that are data."""
    def f(x, lengths):
        return torch.cat([F.scaled_dot_product_attention(p, p, p, is_causal=True) for p in x.split(lengths.tolist())])
    x = torch.randn(9, 4, requires_grad=True)
    g = c(f)
    ys = [g(x, torch.tensor(n)) for n in ([4, 5], [2, 3, 4], [1, 8])]
    sum(y.square().sum() for y in ys).backward()
    return ys, x.grad


@program
def masks_of_windows_and_biases(c):
    q, k, v = (torch.randn(1, 2, 7, 4, requires_grad=True) for _ in range(3))

    def f(q, k, v):
        i, j = torch.arange(7)[:, None], torch.arange(7)
        slopes = 2.0 ** -torch.arange(1, 3)
        scores = q @ k.mT / math.sqrt(4) - slopes[:, None, None] * (i - j).abs()
        scores = (5 * torch.tanh(scores / 5)).masked_fill((i - j > 3) | (j > i), float("-inf"))
        return torch.einsum("bhij,bhjd->bihd", scores.softmax(-1), v).flatten(2)
    c(f)(q, k, v).square().sum().backward()
    return q.grad, k.grad, v.grad


@program
def a_complex_rotation(c):
    x = torch.randn(2, 5, 8, requires_grad=True)
    turn = torch.polar(torch.ones(5, 4), torch.outer(torch.arange(5.0), torch.arange(4.0)))
    c(lambda x: torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (4, 2))) * turn).flatten(-2).exp())(x).sum().backward()
    return x.grad


@program
def experts(c):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate, self.up, self.down = nn.Linear(8, 4, bias=False), nn.Parameter(torch.randn(4, 8, 16) / 4), nn.Parameter(torch.randn(4, 16, 8) / 4)

        def forward(self, x):
            p, i = self.gate(x).softmax(-1).topk(2, -1)
            p = p / p.sum(-1, keepdim=True)
            out = torch.zeros_like(x)
            for e in range(4):
                token, k = torch.where(i == e)
                out.index_add_(0, token, p[token, k, None] * (F.silu(x[token] @ self.up[e]) @ self.down[e]))
            return out
    return trained(c, M(), torch.randn(6, 8))


@program
def beams(c):
    table = torch.randn(6, 6).log_softmax(-1)

    def step(scores, texts):
        total = scores[:, None] + table[texts[:, -1]]
        scores, i = total.flatten().topk(3)
        return scores, torch.cat([texts[i // 6], (i % 6)[:, None]], 1)
    f, scores, texts = c(step), torch.zeros(3), torch.tensor([[0], [1], [2]])
    for _ in range(4):
        scores, texts = f(scores, texts)
    return scores, texts


@program
def sampling(c):
    def f(logits, u):
        logits = logits.masked_fill(logits < logits.topk(6, -1).values[:, -1:], -float("inf"))
        p, i = logits.softmax(-1).sort(-1, descending=True)
        p = p.masked_fill(p.cumsum(-1) - p > 0.8, 0)
        p = p / p.sum(-1, keepdim=True)
        return i.gather(-1, (p.cumsum(-1) > u).to(torch.uint8).argmax(-1, keepdim=True))
    return c(f)(torch.randn(5, 9), torch.rand(5, 1))


@program
def suppressed_boxes(c):
    def area(b):
        return (b[..., 2:] - b[..., :2]).clamp(min=0).prod(-1)

    def f(boxes, scores):
        keep, order = [], scores.argsort(descending=True)
        while order.numel():
            k, rest = order[0], order[1:]
            keep.append(k)
            both = torch.cat([torch.max(boxes[k, :2], boxes[rest, :2]), torch.min(boxes[k, 2:], boxes[rest, 2:])], -1)
            iou = area(both) / (area(boxes[k]) + area(boxes[rest]) - area(both))
            order = rest[iou < 0.4]
        return torch.stack(keep)
    corner = torch.rand(8, 2) * 4
    return c(f)(torch.cat([corner, corner + 2], 1), torch.rand(8))


@program
def messages_in_graphs(c):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.w = nn.Linear(8, 1), nn.Linear(4, 4)

        def forward(self, x, edges):
            source, target = edges
            score = F.leaky_relu(self.a(torch.cat([x[source], x[target]], -1))).squeeze(-1)
            most = torch.full((x.shape[0],), -1e9).scatter_reduce(0, target, score, "amax")
            weight = (score - most[target]).exp()
            weight = weight / torch.zeros(x.shape[0]).index_add(0, target, weight)[target]
            mean = torch.zeros_like(x).scatter_reduce(0, target[:, None].expand(-1, 4), x[source], "mean", include_self=False)
            return torch.zeros_like(x).index_add_(0, target, weight[:, None] * self.w(x)[source]) + mean
    return trained(c, M(), torch.randn(5, 4), torch.tensor([[0, 1, 2, 3, 4, 0], [1, 2, 0, 1, 3, 4]]))


@program
def bags_of_words(c):
    m = nn.ModuleDict({mode: nn.EmbeddingBag(9, 4, mode=mode, padding_idx=2) for mode in ("sum", "mean", "max")})

    def f(t, offsets):
        return {mode: bag(t, offsets) for mode, bag in m.items()}
    y = c(f)(torch.tensor([1, 2, 4, 5, 4, 3, 2, 8]), torch.tensor([0, 4, 6]))
    sum(v.square().sum() for v in y.values()).backward()
    return y, [p.grad for p in m.parameters()]


@program
def a_spatial_transformer(c):
    x, theta = torch.randn(2, 3, 6, 6, requires_grad=True), (torch.eye(2, 3) + torch.randn(2, 2, 3) / 10).requires_grad_()

    def f(x, theta):
        grid = F.affine_grid(theta, [2, 3, 5, 7], align_corners=False)
        return [F.grid_sample(x, grid, mode, pad, False) for mode, pad in (("bilinear", "zeros"), ("bicubic", "border"), ("nearest", "reflection"))]
    y = c(f)(x, theta)
    sum(t.square().sum() for t in y).backward()
    return y, x.grad, theta.grad


@program
def volumes(c):
    x, grid = torch.randn(1, 2, 4, 4, 4, requires_grad=True), torch.rand(1, 3, 3, 3, 3) * 2 - 1
    g = grid.requires_grad_()
    y = c(lambda x, g: F.grid_sample(F.interpolate(F.max_pool3d(x, 2), scale_factor=2, mode="trilinear"), g, align_corners=True))(x, g)
    y.square().sum().backward()
    return y, x.grad, g.grad


@program
def resized_images(c):
    x = torch.randn(1, 2, 8, 9, requires_grad=True)

    def f(x, n):
        return (F.interpolate(x, (n, n + 1), mode="bilinear", antialias=True), F.interpolate(x, scale_factor=0.5, mode="area"), F.interpolate(x, n, mode="bicubic", antialias=True),
                F.interpolate(x, (n, n), mode="nearest-exact"), F.adaptive_max_pool2d(x, 3), F.pad(x, (1, 2, 2, 1), "reflect"), F.pad(x, (1,) * 4, "circular"))
    y = c(f)(x, 5)
    sum(t.square().sum() for t in y).backward()
    return y, x.grad


@program
def encoder_and_decoder(c):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList([nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(2, b), nn.SiLU()) for a, b in ((2, 4), (4, 8))])
            self.up, self.last = nn.ConvTranspose2d(8, 4, 2, 2), nn.Conv2d(8, 4, 1)

        def forward(self, x):
            kept = []
            for block in self.down:
                x = block(x)
                kept.append(x)
                x = F.avg_pool2d(x, 2) if len(kept) < len(self.down) else x
            return F.pixel_shuffle(self.last(torch.cat([self.up(x), kept[0]], 1)), 2)
    return trained(c, M(), torch.randn(2, 2, 8, 8).to(memory_format=torch.channels_last))


@program
def windows_that_shift(c):
    m = nn.MultiheadAttention(8, 2, batch_first=True)

    def f(x):
        x = torch.roll(x, (-2, -2), (1, 2)).unflatten(1, (2, 4)).unflatten(3, (2, 4)).transpose(2, 3).reshape(-1, 16, 8)
        y, weights = m(x, x, x, average_attn_weights=False)
        return y.view(-1, 2, 2, 4, 4, 8).transpose(2, 3).reshape(-1, 8, 8, 8).roll((2, 2), (1, 2)), weights
    y, w = c(f)(torch.randn(2, 8, 8, 8))
    (y.square().sum() + w.square().sum()).backward()
    return y, [p.grad for p in m.parameters()]


@program
def a_state_space(c):
    a, b, d = (torch.randn(4, 3, requires_grad=True) for _ in range(3))

    def f(x, a, b, d):
        h, out = torch.zeros(4, 3), []
        for k in range(x.shape[0]):
            step = F.softplus(x[k])[:, None]
            h = (-step * a.exp()).exp() * h + step * b * x[k][:, None]
            out.append((h * d).sum(-1))
        return torch.stack(out)
    y = c(f)(torch.randn(6, 4), a, b, d)
    y.square().sum().backward()
    return y, a.grad, b.grad, d.grad


@program
def linear_attention(c):
    q, k, v = (torch.randn(2, 6, 4, requires_grad=True) for _ in range(3))

    def f(q, k, v):
        q, k = F.elu(q) + 1, F.elu(k) + 1
        s = torch.einsum("btd,bte->btde", k, v).cumsum(1)
        return torch.einsum("btd,btde->bte", q, s) / (q * k.cumsum(1)).sum(-1, keepdim=True)
    c(f)(q, k, v).square().sum().backward()
    return q.grad, k.grad, v.grad


@program
def an_equation_over_time(c):
    m = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))

    def solve(x, h):
        for _ in range(4):
            a = m(x)
            b = m(x + h / 2 * a)
            d = m(x + h / 2 * b)
            x = x + h / 6 * (a + 2 * b + 2 * d + m(x + h * d))
        return x
    y = c(solve)(torch.randn(5, 2), 0.1)
    y.square().sum().backward()
    return y, [p.grad for p in m.parameters()]


@program
def gaussian_processes(c):
    x, length = torch.randn(6, 2), torch.tensor(0.7, requires_grad=True)

    def f(x, y, length):
        k = (-torch.cdist(x, x).square() / (2 * length**2)).exp() + 0.1 * torch.eye(6)
        low = torch.linalg.cholesky(k)
        a = torch.cholesky_solve(y[:, None], low)
        return 0.5 * y @ a.squeeze(1) + low.diagonal().log().sum(), torch.linalg.solve_triangular(low, y[:, None], upper=False)
    y, z = c(f)(x, torch.randn(6), length)
    (y + z.sum()).backward()
    return y, length.grad


@program
def matrices(c):
    a, b = (torch.randn(4, 4) + 4 * torch.eye(4)).requires_grad_(), torch.randn(4, 2)

    def f(a, b):
        s = a @ a.mT
        w, v = torch.linalg.eigh(s)
        return (torch.linalg.solve(a, b), torch.linalg.inv(a), torch.linalg.det(a), torch.linalg.slogdet(s)[1], w, v.abs(), torch.linalg.svdvals(a), torch.linalg.qr(a)[1].abs(),
                torch.linalg.pinv(a[:, :3]), torch.linalg.norm(a, "nuc"), torch.linalg.lstsq(a, b).solution, torch.matrix_exp(a / 8), torch.linalg.cond(s), torch.kron(b, b))
    y = c(f)(a, b)
    sum(t.sum() for t in y[:5]).backward()
    return y, a.grad


@program
def waves(c):
    x, w = torch.randn(2, 64, requires_grad=True), torch.hann_window(16)

    def f(x):
        s = torch.stft(x, 16, 4, window=w, return_complex=True)
        return torch.istft(s * 0.5, 16, 4, window=w), s.abs().pow(2).clamp(min=1e-6).log(), torch.angle(s[:, 1:3])
    y, power, angle = c(f)(x)
    (y.sum() + power.mean()).backward()
    return y, power, angle.cos(), x.grad


@program
def operators_of_waves(c):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.randn(2, 3, 4, 4, dtype=torch.complex64))

        def forward(self, x):
            s = torch.fft.rfft2(x)
            out = torch.zeros(x.shape[0], 3, 8, 5, dtype=torch.complex64)
            out[..., :4, :4] = torch.einsum("bixy,ioxy->boxy", s[..., :4, :4], self.w)
            return torch.fft.irfft2(out, s=(8, 8)), torch.fft.fftshift(s.real), torch.fft.ifft(s, norm="ortho").imag
    return trained(c, M(), torch.randn(2, 2, 8, 8))


@program
def products_by_letters(c):
    a, b, d = torch.randn(3, 4, 5, requires_grad=True), torch.randn(4, 5, 2, requires_grad=True), torch.randn(3, 3, requires_grad=True)
    f = lambda a, b, d: (torch.einsum("ijk,jkl->il", a, b), torch.einsum("ii->i", d), torch.einsum("...jk,jkl->...l", a, b), torch.einsum("ij,jkl,mkl->im", d, a, a[:2]),
                         torch.einsum(a, [0, 1, 2], d, [0, 3], [3, 2]), torch.tensordot(a, b, 2), torch.einsum("ij->", d), torch.einsum("ijk,ljk->lji", a, a))
    y = c(f)(a, b, d)
    sum(t.square().sum() for t in y).backward()
    return y, a.grad, b.grad, d.grad


@program
def unfolded_images(c):
    x, w = torch.randn(2, 3, 6, 6, requires_grad=True), torch.randn(4, 27, requires_grad=True)

    def f(x, w):
        columns = F.unfold(x, 3, padding=1, stride=2)
        return (w @ columns).view(2, 4, 3, 3), F.fold(columns, (6, 6), 3, padding=1, stride=2), x.unfold(2, 3, 2).unfold(3, 3, 2).amax((-1, -2))
    y = c(f)(x, w)
    sum(t.square().sum() for t in y).backward()
    return y, x.grad, w.grad


@program
def order_and_ranks(c):
    x = torch.randperm(20).float().view(4, 5).requires_grad_()

    def f(x):
        v, i = x.sort(stable=True, dim=-1, descending=True)
        return (v, i, x.topk(2).values, x.median(-1).values, x.kthvalue(3).values, x.argsort(0).argsort(0), x.quantile(0.3, dim=-1), x.mode(-1).values, x.msort(),
                x.cummax(-1).values, x.logcumsumexp(-1), (x / 9).cumprod(-1), x.aminmax(dim=0), torch.searchsorted(v.flip(-1), x), torch.bucketize(x, torch.tensor([3.0, 9.0])))
    y = torch.utils._pytree.tree_leaves(c(f)(x))
    sum(t.sum() for t in y if t.is_floating_point()).backward()
    return y, x.grad


@program
def chains_of_tags(c):
    e, t = torch.randn(5, 3, requires_grad=True), torch.randn(3, 3, requires_grad=True)

    def f(e, t, tags):
        a = e[0]
        for k in range(1, e.shape[0]):
            a = (a[:, None] + t + e[k]).logsumexp(0)
        score = e.gather(1, tags[:, None]).sum() + t[tags[:-1], tags[1:]].sum()
        return a.logsumexp(0) - score
    y = c(f)(e, t, torch.tensor([0, 2, 1, 1, 0]))
    y.backward()
    return y, e.grad, t.grad


@program
def filters_over_time(c):
    def f(z, F_, Q, R):
        x, P, out = torch.zeros(2), torch.eye(2), []
        for k in range(z.shape[0]):
            x, P = F_ @ x, F_ @ P @ F_.T + Q
            K = P[:, :1] / (P[0, 0] + R)
            x, P = x + K[:, 0] * (z[k] - x[0]), P - K @ P[:1]
            out.append(x)
        return torch.stack(out)
    q = (torch.eye(2) * 0.1).requires_grad_()
    y = c(f)(torch.randn(5), torch.tensor([[1.0, 0.1], [0.0, 1.0]]), q, 0.5)
    y.sum().backward()
    return y, q.grad


@program
def hashed_grids(c):
    table = torch.randn(64, 2, requires_grad=True)

    def f(x):
        cell = (x * 16).floor().long()
        h = (cell[:, 0] * 1) ^ (cell[:, 1] * 2654435761)
        h = (h ^ (h >> 15)) & 63
        part = x * 16 - cell
        return table[h] * part[:, :1] + table[(h + 1) % 64] * (1 - part[:, :1])
    y = c(f)(torch.rand(9, 2))
    y.square().sum().backward()
    return y, table.grad


@program
def networks_of_networks(c):
    hyper, net = nn.Linear(3, 8 * 4 + 4), nn.Linear(8, 4)

    def f(z, x):
        w, b = hyper(z).split([32, 4])
        return torch.func.functional_call(net, {"weight": w.view(4, 8), "bias": b}, (x,)).tanh()
    y = c(f)(torch.randn(3), torch.randn(5, 8))
    y.square().sum().backward()
    return y, [p.grad for p in hyper.parameters()]


@program
def normalized_by_running_statistics(c):
    m = nn.Sequential(nn.Conv1d(3, 4, 3), nn.InstanceNorm1d(4, affine=True, track_running_stats=True), nn.PReLU(4), nn.BatchNorm1d(4, momentum=0.3), nn.LocalResponseNorm(2))
    f = c(m)
    ys = [f(torch.randn(n, 3, 8)) for n in (2, 3, 4)]
    m.eval()
    return ys, f(torch.randn(2, 3, 8)), dict(m.named_buffers())
