"""Networks on graphs, written with plain PyTorch as PyTorch Geometric writes them and with sparse matrices: results and gradients beside
eager mode in float64, with nodes and edges as two sizes of a call, and graphs without edges."""
import pytest

torch = pytest.importorskip("torch")
import weft
import weft.sparse

nn, F = torch.nn, torch.nn.functional
pytestmark = [pytest.mark.skipif(not weft.has_llvm(), reason="weft_llvm.so is not there"), pytest.mark.filterwarnings("ignore")]
C, H = 6, 8


def added(x, at, n):
    return torch.zeros(n, x.shape[1], dtype=x.dtype).index_add_(0, at, x)


def largest(x, at, n):
    index = at.unsqueeze(1).expand_as(x)
    return torch.zeros(n, x.shape[1], dtype=x.dtype).scatter_reduce(0, index, x, "amax", include_self=False)


def softmax_at(x, at, n):
    """Softmax over the edges that end at one node."""
    x = x - largest(x.detach(), at, n)[at]
    e = x.exp()
    return e / (added(e, at, n)[at] + 1e-16)


class GCN(nn.Module):
    """Kipf and Welling: normalised sums of neighbours."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(C, H), nn.Linear(H, 3)

    def forward(self, x, edge):
        row, col = edge
        n = x.shape[0]
        degree = torch.ones(n, dtype=x.dtype).index_add_(0, col, torch.ones(row.shape[0], dtype=x.dtype)).rsqrt()
        scale = (degree[row] * degree[col]).unsqueeze(1)
        for layer in (self.a, self.b):
            y = layer(x)
            x = added(y[row] * scale, col, n) + y * degree.square().unsqueeze(1)
            x = torch.relu(x) if layer is self.a else x
        return x


class GAT(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.src, self.dst = nn.Linear(C, 2 * H, bias=False), nn.Parameter(torch.randn(2, H)), nn.Parameter(torch.randn(2, H))

    def forward(self, x, edge):
        row, col = edge
        y = self.lin(x).view(-1, 2, H)
        score = F.leaky_relu((y * self.src).sum(-1)[row] + (y * self.dst).sum(-1)[col], 0.2)
        weight = softmax_at(score, col, x.shape[0])
        return added((y[row] * weight.unsqueeze(-1)).flatten(1), col, x.shape[0])


class GIN(nn.Module):
    def __init__(self):
        super().__init__()
        self.eps, self.mlp = nn.Parameter(torch.tensor(0.1)), nn.Sequential(nn.Linear(C, H), nn.ReLU(), nn.Linear(H, C))

    def forward(self, x, edge):
        for _ in range(2):
            x = self.mlp((1 + self.eps) * x + added(x[edge[0]], edge[1], x.shape[0]))
        return x


class EdgeConv(nn.Module):
    """Wang et al.: the maximum of what a network says of a node and a neighbour."""

    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(2 * C, H), nn.ELU(), nn.Linear(H, H))

    def forward(self, x, edge):
        row, col = edge
        return largest(self.mlp(torch.cat([x[col], x[row] - x[col]], -1)), col, x.shape[0])


class SAGE(nn.Module):
    def __init__(self):
        super().__init__()
        self.own, self.others = nn.Linear(C, H), nn.Linear(C, H, bias=False)

    def forward(self, x, edge):
        row, col = edge
        mean = torch.zeros_like(x).scatter_reduce(0, col.unsqueeze(1).expand(-1, C), x[row], "mean", include_self=False)
        return F.normalize(self.own(x) + self.others(mean), dim=-1, eps=1e-6)


class Principal(nn.Module):
    """Several ways to combine neighbours (PNA)."""

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4 * C, H)

    def forward(self, x, edge):
        row, col = edge
        n, y = x.shape[0], x[edge[0]]
        count = added(torch.ones_like(y[:, :1]), col, n).clamp(min=1)
        mean = added(y, col, n) / count
        spread = (added(y * y, col, n) / count - mean * mean).clamp(min=0).add(1e-5).sqrt()
        return self.out(torch.cat([mean, spread, largest(y, col, n), -largest(-y, col, n)], 1))


class Gated(nn.Module):
    """Messages and a recurrent cell (gated graph networks)."""

    def __init__(self):
        super().__init__()
        self.message, self.cell = nn.Linear(C, C), nn.GRUCell(C, C)

    def forward(self, x, edge):
        for _ in range(3):
            x = self.cell(added(self.message(x)[edge[0]], edge[1], x.shape[0]), x)
        return x


class Pooled(nn.Module):
    """Sums of sorted edges, and a mean over halves of the nodes, by segments."""

    def __init__(self):
        super().__init__()
        self.a, self.out = nn.Linear(C, H), nn.Linear(H, 2)

    def forward(self, x, edge):
        row, col = edge
        n = x.shape[0]
        begin = torch.searchsorted(col, torch.arange(n + 1))
        y = torch.segment_reduce(torch.tanh(self.a(x))[row], "sum", offsets=begin, unsafe=True, initial=0)
        # Equal edges have different terms: PyTorch shares no negative cotangent among equals (docs/operators.md)
        apart = torch.arange(row.shape[0]).unsqueeze(1) * 1e-3
        top = torch.segment_reduce(self.a(x)[row] + apart, "max", offsets=begin, unsafe=True, initial=0)
        return self.out(y + top + self.a(x))


class SchNet(nn.Module):
    """Schuett et al.: an energy of positions, and forces, which are its gradient."""

    def __init__(self):
        super().__init__()
        self.filter, self.a, self.out = nn.Sequential(nn.Linear(10, H), nn.Softplus(), nn.Linear(H, H)), nn.Linear(H, H), nn.Linear(H, 1)
        self.kind, self.register = nn.Linear(3, H), self.register_buffer("centres", torch.linspace(0, 3, 10))

    def forward(self, x, edge):
        row, col = edge
        h = self.kind(torch.cos(x[:, 3:]))
        distance = (x[row, :3] - x[col, :3]).square().sum(-1).add(1e-3).sqrt()
        weight = self.filter(torch.exp(-2 * (distance.unsqueeze(1) - self.centres).square()))
        for _ in range(2):
            h = h + F.softplus(self.a(added(h[row] * weight, col, x.shape[0])))
        return self.out(h).sum().reshape(1)


class Adjacency(nn.Module):
    """Layers whose neighbours are a sparse matrix."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(C, H), nn.Linear(H, 3)

    def forward(self, x, a):
        return torch.mm(a, self.b(torch.relu(torch.mm(a, self.a(x)))))


class Personalised(Adjacency):
    """APPNP: repeated products with the adjacency."""

    def forward(self, x, a):
        y = z = self.b(torch.relu(self.a(x)))
        for _ in range(4):
            z = torch.addmm(y, a, z, beta=0.1, alpha=0.9)
        return z


class Sampled(nn.Module):
    """Attention along the entries of a matrix: sampled products, softmax, a sparse product."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(C, H) for _ in range(3))

    def forward(self, x, a):
        scores = torch.sparse.sampled_addmm(a, self.q(x), self.k(x).t(), beta=0., alpha=H ** -0.5)
        return torch.mm(weft.sparse.softmax(scores, 1), self.v(x)) if isinstance(scores, weft.sparse.Matrix) else scores


def graph(nodes, edges, seed=0):
    g = torch.Generator().manual_seed(seed)
    edge = torch.randint(0, nodes, (2, edges), generator=g)
    return torch.randn(nodes, C, generator=g), edge[:, torch.argsort(edge[1], stable=True)]


EDGES = [GCN, GAT, GIN, EdgeConv, SAGE, Principal, Gated, Pooled, SchNet]
SIZES = [(10, 30), (25, 70), (4, 3), (7, 0)]


def made(cls):
    torch.manual_seed(0)
    return cls()


def near(got, want):
    torch.testing.assert_close(got.double(), want.double(), rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("cls", EDGES, ids=lambda c: c.__name__)
def test_results(cls):
    """One model for all graphs, also those without edges."""
    net = made(cls)
    n, e = torch.export.Dim("n", max=1000), torch.export.Dim("e", max=10000)
    model = weft.compile(net, graph(*SIZES[0]), dynamic_shapes=({0: n}, {1: e}))
    wide = made(cls).double()
    for k, size in enumerate(SIZES):
        x, edge = graph(*size, seed=k)
        near(model(x, edge), wide(x.double(), edge))
    x, edge = graph(5, 6)
    edge[0, 3] = 99
    with pytest.raises(weft.CheckError, match="out of range"):
        model(x, edge)


@pytest.mark.parametrize("cls", EDGES, ids=lambda c: c.__name__)
def test_gradients(cls):
    """Gradients of parameters and of nodes, by torch.compile with sizes that change."""
    net, wide = made(cls), made(cls).double()
    torch._dynamo.reset()
    fast = torch.compile(net, backend="weft", dynamic=True)
    for k, size in enumerate(SIZES[:3]):
        x, edge = graph(*size, seed=k)
        compare(net, wide, fast(x.requires_grad_(), edge), wide(y := x.detach().double().requires_grad_(), edge), x, y)


def compare(net, wide, got, want, x, y):
    for f, m, inputs in ((got, net, x), (want, wide, y)):
        m.zero_grad()
        (f * torch.linspace(-1, 1, f.numel(), dtype=f.dtype).reshape(f.shape) + f.square()).sum().backward()
    near(got, want)
    near(x.grad, y.grad)
    for p, q in zip(net.parameters(), wide.parameters()):
        near(p.grad, q.grad)


class Forces(nn.Module):
    """Energy and forces in one model, by the gradient inside of the module."""

    def __init__(self):
        super().__init__()
        self.net = SchNet()

    def forward(self, x, edge):
        slope, energy = torch.func.grad_and_value(lambda p: self.net(p, edge).sum())(x)
        return energy, -slope[:, :3]


def test_forces():
    """By torch.compile; and ahead of time, as the entries of weft.compile(grad=), which take the energy's cotangent."""
    net, wide = made(Forces), made(Forces).double()
    torch._dynamo.reset()
    fast = torch.compile(net, backend="weft", dynamic=True, fullgraph=True)
    n, e = torch.export.Dim("n", max=1000), torch.export.Dim("e", max=10000)
    model = weft.compile(net.net, graph(*SIZES[0]), dynamic_shapes=({0: n}, {1: e}), grad=["x"])
    forward, backward = model.entries["forward_saving"], model.entries["backward"]
    for k, size in enumerate(SIZES):
        x, edge = graph(*size, seed=k)
        energy, forces = wide(x.double(), edge)
        for got, want in zip(fast(x, edge), (energy, forces)):
            near(got, want)
        saved = forward(x, edge)
        near(saved[0].sum(), energy)
        known = dict(zip([t.name for t in forward.outputs], saved), x=x, edge=edge)
        slope = backward(*(known.get(t.name, torch.ones(1)) for t in backward.inputs))
        near(-(slope[0] if isinstance(slope, tuple) else slope)[:, :3], forces)


def adjacency(nodes, edges, seed=0, dtype=torch.float32):
    x, edge = graph(nodes, edges, seed)
    d = torch.zeros(nodes, nodes, dtype=dtype)
    d[edge[1], edge[0]] = torch.linspace(0.1, 1, edges, dtype=dtype)
    return x, d.to_sparse_csr()


def by_dense(net, x, d):
    """The same with a dense adjacency, in float64."""
    if isinstance(net, Sampled):
        scores = (net.q(x) @ net.k(x).t()) * H ** -0.5
        scores = scores.masked_fill(d == 0, -torch.inf)
        return torch.softmax(scores, 1).nan_to_num() @ net.v(x)
    return net(x, d)


@pytest.mark.parametrize("cls", [Adjacency, Personalised, Sampled], ids=lambda c: c.__name__)
def test_adjacency(cls):
    net, wide = made(cls), made(cls).double()
    n, e = torch.export.Dim("n", max=1000), torch.export.Dim("e", max=10000)
    x, a = adjacency(*SIZES[0])
    model = weft.compile(net, (x, a), dynamic_shapes=({0: n}, {0: n, 1: n, "nnz": e}))
    torch._dynamo.reset()
    fast = torch.compile(net, backend="weft", dynamic=True)
    for k, size in enumerate(SIZES):
        x, a = adjacency(*size, seed=k)
        y = x.double().requires_grad_()
        want = by_dense(wide, y, a.to_dense().double())
        near(model(x, a), want.detach())
        if size[1]:
            compare(net, wide, fast(x.requires_grad_(), weft.sparse.matrix(a)), want, x, y)
