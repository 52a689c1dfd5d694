"""Sparse tensors of torch.sparse (weft.sparse): products, sums, softmax, conversions and gradients of values beside PyTorch."""
import pytest

torch = pytest.importorskip("torch")
import weft
import weft.sparse

nn, F = torch.nn, torch.nn.functional
pytestmark = [pytest.mark.skipif(not weft.has_llvm(), reason="weft_llvm.so is not there"), pytest.mark.filterwarnings("ignore")]
LAYOUTS = {"coo": lambda d: d.to_sparse_coo(), "csr": lambda d: d.to_sparse_csr(), "csc": lambda d: d.to_sparse_csc(), "bsr": lambda d: d.to_sparse_bsr((2, 2))}
N, M, K = 12, 8, 5


class Call(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, *args):
        return self.f(*args)


def drawn(*shape, dtype=torch.float32, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def holed(n=N, m=M, dtype=torch.float32, seed=0):
    """A matrix with rows and columns without entries."""
    d = drawn(n, m, dtype=dtype, seed=seed)
    d[d.abs() < 1] = 0
    d[n // 3] = 0
    d[:, m // 2] = 0
    return d


def repeated(dtype=torch.float32):
    """COO: unsorted, with repeated entries."""
    indices = torch.tensor([[3, 0, 3, 11, 0, 3, 7], [1, 2, 1, 0, 0, 1, 7]])
    return torch.sparse_coo_tensor(indices, drawn(7, dtype=dtype, seed=3), (N, M))


def plain(t):
    return t.to_dense() if t.layout != torch.strided else t


def near(got, want):
    assert got.layout == want.layout and got.shape == want.shape and got.dtype == want.dtype, (got.layout, got.shape, got.dtype)
    torch.testing.assert_close(plain(got), plain(want), rtol=1e-5, atol=1e-5)


def all_near(got, want):
    got, want = torch.utils._pytree.tree_leaves(got), torch.utils._pytree.tree_leaves(want)
    assert len(got) == len(want)
    for g, w in zip(got, want):
        near(g, w)


# ---- products ----

PRODUCTS = {
    "mm": (lambda a, x: torch.mm(a, x), (M, K)),
    "matmul": (lambda a, x: torch.matmul(a, x), (M, K)),
    "mv": (lambda a, v: torch.mv(a, v), (M,)),
    "addmm": (lambda a, x: torch.addmm(torch.ones(N, 1, dtype=x.dtype), a, x, beta=0.5, alpha=2), (M, K)),
    "linear": (lambda a, x: F.linear(x, a, torch.ones(N, dtype=x.dtype)), (3, M)),
    "left": (lambda a, x: torch.mm(x, a), (3, N)),
    "left_vector": (lambda a, v: torch.matmul(v, a), (N,)),
    "transposed": (lambda a, x: torch.mm(torch.t(a), x), (N, K)),
    "scaled": (lambda a, x: torch.mm(a * 0.5, x), (M, K)),
    "twice": (lambda a, x: torch.mm(torch.t(a), torch.mm(a, x)), (M, K)),
}


def expected(f, a, x):
    return f(a.to_dense(), x)  # not every product is there in PyTorch for every layout


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name, layout):
    """Forty products, by weft.compile and by torch.compile, and the gradient of the values beside float64."""
    f, shape = PRODUCTS[name]
    a, x = LAYOUTS[layout](holed()), drawn(*shape, seed=1)
    want = expected(f, a, x)
    near(weft.compile(Call(f), (a, x))(a, x), want)
    torch._dynamo.reset()
    near(torch.compile(f, backend="weft", fullgraph=True)(weft.sparse.matrix(a), x), want)

    class Weighted(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(a.clone())

        def forward(self, x):
            return f(self.weight, x)
    model = weft.compile(Weighted(), (x,), grad="params")
    near(model(x), want)
    saved, ct = model.entries["forward_saving"](x), drawn(*want.shape, seed=2)
    known = dict(zip([t.name for t in model.entries["forward_saving"].outputs], saved if isinstance(saved, tuple) else (saved,)))
    got = model.entries["backward"](*(ct if t.name.startswith("ct.") else known.get(t.name, x) for t in model.entries["backward"].inputs))
    dense = a.to_dense().double().requires_grad_()
    expected(f, Dense(dense), x.double()).backward(ct.double())
    pattern = values_of(a, dense.grad)
    torch.testing.assert_close(first(got), pattern.float(), rtol=1e-5, atol=1e-5)


class Dense:
    def __init__(self, d):
        self.d = d

    def to_dense(self):
        return self.d


def first(out):
    return out[0] if isinstance(out, tuple) else out


def values_of(a, dense):
    """The elements of a dense matrix that are entries of `a`, in their order."""
    if a.layout == torch.sparse_coo:
        return dense[tuple(a._indices())]
    if a.layout == torch.sparse_bsr:
        blocks = dense.reshape(N // 2, 2, M // 2, 2).transpose(1, 2)
        rows = torch.repeat_interleave(torch.arange(N // 2), a.crow_indices().diff())
        return blocks[rows, a.col_indices()]
    offsets = a.crow_indices() if a.layout == torch.sparse_csr else a.ccol_indices()
    others = a.col_indices() if a.layout == torch.sparse_csr else a.row_indices()
    ids = torch.repeat_interleave(torch.arange(len(offsets) - 1), offsets.diff())
    return dense[ids, others] if a.layout == torch.sparse_csr else dense[others, ids]


# ---- what else there is ----

def coo(seed=0):
    return holed(seed=seed).to_sparse_coo()


def csr(seed=0):
    return holed(seed=seed).to_sparse_csr()


OTHERS = {
    "add_csr": (lambda a, b: a + b, lambda: (csr(), csr(1))),
    "add_coo": (lambda a, b: torch.add(a, b, alpha=2), lambda: (coo(), coo(1))),
    "add_repeated": (lambda a, b: a + b, lambda: (repeated(), coo())),
    "sub_coo": (lambda a, b: a - b, lambda: (coo(), coo(1))),
    "add_same": (lambda a: a + a * 2., lambda: (csr(),)),
    "add_dense": (lambda x, a: x + a, lambda: (torch.ones(N, M), repeated())),
    "mul_dense": (lambda a, x: a * x, lambda: (coo(), drawn(N, M, seed=2))),
    "mul_csr_dense": (lambda a, x: a * x, lambda: (csr(), drawn(N, M, seed=2))),
    "sddmm": (lambda a, x, y: torch.sparse.sampled_addmm(a, x, y, beta=0.5, alpha=2.), lambda: (csr(), drawn(N, 3, seed=1), drawn(3, M, seed=2))),
    "softmax_rows": (lambda a: torch.sparse.softmax(a, 1), lambda: (coo(),)),
    "softmax_columns": (lambda a: torch.sparse.softmax(a, 0), lambda: (coo(),)),
    "log_softmax": (lambda a: torch.sparse.log_softmax(a, 1), lambda: (coo(),)),
    "softmax_repeated": (lambda a: torch.sparse.softmax(a.coalesce(), 1), lambda: (repeated(),)),
    "sum": (lambda a: torch.sparse.sum(a), lambda: (repeated(),)),
    "sum_rows": (lambda a: torch.sparse.sum(a, 1), lambda: (coo(),)),
    "sum_columns": (lambda a: torch.sparse.sum(a, 0), lambda: (coo(),)),
    "sum_csr": (lambda a: torch.sum(a, 1, keepdim=True), lambda: (csr(),)),
    "sum_csr_columns": (lambda a: torch.sum(a, 0, keepdim=True), lambda: (csr(),)),
    "relu": (torch.relu, lambda: (csr(),)),
    "tanh_csc": (torch.tanh, lambda: (holed().to_sparse_csc(),)),
    "neg_repeated": (lambda a: -a, lambda: (repeated(),)),
    "t_csr": (lambda a: a.t(), lambda: (csr(),)),
    "t_coo": (lambda a: a.t(), lambda: (coo(),)),
    "coo_to_csr": (lambda a: a.to_sparse_csr(), lambda: (coo(),)),
    "repeated_to_csr": (lambda a: a.to_sparse_csr(), lambda: (repeated(),)),
    "csc_to_csr": (lambda a: a.to_sparse_csr(), lambda: (holed().to_sparse_csc(),)),
    "csr_to_csc": (lambda a: a.to_sparse_csc(), lambda: (csr(),)),
    "csr_to_coo": (lambda a: a.to_sparse_coo(), lambda: (csr(),)),
    "coalesce": (lambda a: a.coalesce(), lambda: (repeated(),)),
    "bsr_to_dense": (lambda a: a.to_dense(), lambda: (holed().to_sparse_bsr((3, 2)),)),
    "repeated_to_dense": (lambda a: a.to_dense(), lambda: (repeated(),)),
    "repeated_mm": (lambda a, x: a @ x, lambda: (repeated(), drawn(M, K, seed=1))),
    "several": (lambda a, x: (a @ x, {"a": a * 2., "s": a.sum()}), lambda: (csr(), drawn(M, K, seed=1))),
    "list": (lambda both, x: both[0] @ x + both[1] @ x, lambda: ([csr(), coo(1)], drawn(M, K, seed=1))),
}


@pytest.mark.parametrize("name", OTHERS)
def test_others(name):
    f, make = OTHERS[name]
    args = make()
    all_near(weft.compile(Call(f), args)(*args), f(*args))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_dtypes(dtype, index):
    a = holed(dtype=dtype).to_sparse_csr()
    a = torch.sparse_csr_tensor(a.crow_indices().to(index), a.col_indices().to(index), a.values(), a.shape)
    x = drawn(M, K, dtype=dtype)
    want = (a.to_dense().double() @ x.double()).to(dtype)
    got = weft.compile(Call(torch.mm), (a, x))(a, x)
    assert got.dtype == dtype
    torch.testing.assert_close(got, want)


@pytest.mark.parametrize("n, m, k", [(1, 1, 1), (3, 1, 2), (1, 4, 1), (0, 3, 2), (3, 2, 0)])
def test_sizes_0_and_1(n, m, k):
    for d in (torch.ones(n, m), torch.zeros(n, m)):
        for make in ("coo", "csr", "csc"):
            a, x = LAYOUTS[make](d), drawn(m, k)
            near(weft.compile(Call(torch.mm), (a, x))(a, x), d @ x)


# ---- sizes of a call ----

def with_entries(n, m, seed):
    d = drawn(n, m, seed=seed)
    d[d.abs() < 1] = 0
    return d


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
@pytest.mark.parametrize("f", [lambda a, x: torch.mm(a, x), lambda a, x: torch.mm(torch.t(a), torch.mm(a, x)), lambda a, x: a.to_dense() + x.sum(), lambda a, x: a * 2.],
                         ids=["mm", "both", "to_dense", "sparse"])
def test_symbolic_sizes(f, layout):
    n, m, e = (torch.export.Dim(s, max=1000) for s in ("n", "m", "e"))
    make = LAYOUTS[layout]
    a, x = make(with_entries(12, 8, 0)), drawn(8, 5)
    model = weft.compile(Call(f), (a, x), dynamic_shapes=(({0: n, 1: m, "nnz": e}, {0: m}),))
    for k, (rows, columns) in enumerate([(12, 8), (30, 17), (4, 9), (3, 3)]):
        b, y = make(with_entries(rows, columns, k)), drawn(columns, 5)
        near(model(b, y), f(b, y))
    empty = make(torch.zeros(6, 7))  # no entry at all
    near(model(empty, drawn(7, 5)), f(empty, drawn(7, 5)))


def test_a_file(tmp_path):
    """A file takes the parts of a matrix."""
    a, x = csr(), drawn(M, K, seed=1)
    made = weft.compile(Call(torch.mm), (a, x), path=tmp_path / "product.so")
    near(made(a, x), a @ x)
    model = weft.load(tmp_path / "product.so")
    assert [t.shape for t in model.inputs[:2]] == [(N + 1,), (a.values().numel(),)]
    near(model(a.crow_indices(), a.col_indices(), a.values(), x), a @ x)


def test_threads():
    a, x = with_entries(300, 200, 0).to_sparse_csr(), drawn(200, 70)
    model, results = weft.compile(Call(torch.mm), (a, x)), []
    for threads in (1, 2, 3):
        model.threads = threads
        results.append(model(a, x))
    assert all(torch.equal(results[0], r) for r in results)


# ---- weights ----

class Pruned(nn.Module):
    """Layers with sparse weights of several layouts, beside dense ones."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(M, N)
        self.first.weight = nn.Parameter(csr())
        self.second = nn.Linear(N, 6)
        self.second.weight = nn.Parameter(holed(6, N).to_sparse_bsr((2, 3)), requires_grad=False)
        self.register_buffer("last", holed(6, 6).to_sparse_coo())
        self.scale = nn.Parameter(torch.ones(6))

    def forward(self, x):
        y = self.second(torch.relu(self.first(x)))
        return torch.mm(self.last, y.t()).t() * self.scale


def dense_of(net):
    y = Pruned()
    y.load_state_dict({k: v.detach().clone() for k, v in net.state_dict().items()})
    y.first.weight, y.second.weight = nn.Parameter(net.first.weight.to_dense().detach()), nn.Parameter(net.second.weight.to_dense().detach())
    y.last = net.last.to_dense()
    return y


def test_weights():
    torch.manual_seed(0)
    net, x = Pruned(), drawn(4, M, seed=5)
    want = dense_of(net)(x)
    near(weft.compile(net, (x,))(x), want)
    assert net.first.weight.layout == torch.sparse_csr  # the module stays as it is
    apart = weft.sparse.replace(net)
    assert {n for n, _ in apart.named_parameters()} == {"scale", "first.bias", "first.weight_values", "second.bias", "second.weight_values"}
    torch._dynamo.reset()
    fast = torch.compile(apart, backend="weft", fullgraph=True)
    near(fast(x).detach(), want.detach())
    fast(x).square().sum().backward()
    dense = dense_of(net)
    dense(x).square().sum().backward()
    torch.testing.assert_close(apart.first.weight.requires_grad, True)
    got = dict(apart.named_parameters())["first.weight_values"].grad
    torch.testing.assert_close(got, values_of(net.first.weight, dense.first.weight.grad), rtol=1e-4, atol=1e-5)


def test_training_step():
    """weft.train_step of a module whose weights were taken apart: values are updated, the pattern stays."""
    torch.manual_seed(0)
    net = weft.sparse.replace(Pruned())
    x, y = drawn(4, M, seed=5), drawn(4, 6, seed=6)
    import copy
    other = copy.deepcopy(net)
    step = weft.train_step(net, F.mse_loss, torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1), (x, y))
    optimizer = torch.optim.SGD([p for p in other.parameters() if p.requires_grad], lr=0.1)
    for _ in range(3):
        loss = step(x, y)
        optimizer.zero_grad()
        want = F.mse_loss(other(x), y)
        want.backward()
        optimizer.step()
        torch.testing.assert_close(torch.as_tensor(float(loss)), torch.as_tensor(float(want)), rtol=1e-5, atol=1e-6)


def test_gradients_of_a_tensor():
    """Gradients flow to a sparse tensor of PyTorch that requires them."""
    a = csr().requires_grad_()
    x = drawn(M, K, seed=1)
    torch._dynamo.reset()
    torch.compile(torch.mm, backend="weft", fullgraph=True)(weft.sparse.matrix(a), x).sum().backward()
    b = csr().requires_grad_()
    (b @ x).sum().backward()
    torch.testing.assert_close(values_of(a, plain(a.grad)), values_of(a, plain(b.grad)))


# ---- what there is not ----

@pytest.mark.parametrize("f, args, says", [
    (lambda a, b: a @ b, lambda: (csr(), holed(M, N).to_sparse_csr()), "has no product of a CSR matrix and a CSR matrix"),
    (torch.exp, lambda: (csr(),), "has no exp of a CSR matrix"),
    (lambda a: torch.sparse.softmax(a, 1), lambda: (repeated(),), "softmax of a COO matrix whose entries may be repeated: call coalesce()"),
    (lambda a, x: a @ x, lambda: (torch.stack([holed()] * 2).to_sparse_csr(), drawn(M, K)), "3 dimensions"),
    (lambda a, x: a @ x, lambda: (csr(), drawn(N, K)), "a product of \\[12, 8\\] and \\[12, 5\\]"),
    (lambda a, x: a @ x, lambda: (csr(), drawn(M, K).double()), "a product of torch.float32 and torch.float64"),
    (lambda a: a.to_sparse_coo(), lambda: (holed().to_sparse_bsr((2, 2)),), "has no to_sparse_coo of a BSR matrix"),
], ids=["two", "exp", "softmax", "batch", "shape", "dtype", "blocks"])
def test_refused(f, args, says):
    args = args()
    with pytest.raises((TypeError, ValueError), match=says):
        weft.compile(Call(f), args)


def test_wrong_arguments():
    a, x = csr(), drawn(M, K)
    model = weft.compile(Call(torch.mm), (a, x))
    with pytest.raises(TypeError, match="argument 0 is COO, expected a CSR matrix"):
        model(coo(), x)
    with pytest.raises(TypeError, match="argument 0 is dense, expected a CSR matrix"):
        model(a.to_dense(), x)
    with pytest.raises(ValueError, match="expected 12 in dimension 0"):
        model(holed(13, M).to_sparse_csr(), x)
    wrong = torch.sparse_csr_tensor(a.crow_indices(), a.col_indices() + M, a.values(), (N, M), check_invariants=False)
    with pytest.raises(weft.CheckError, match="args_0_col is out of range, expected 0 <= index < 8"):
        model(wrong, x)


def test_operator_under_dynamo():
    """Dynamo exchanges the operands of @: refused, not computed the wrong way round."""
    a = weft.sparse.matrix(holed(8, 8).to_sparse_csr())
    torch._dynamo.reset()
    with pytest.raises(Exception, match="which operand of @ is the left one: write torch.mm"):
        torch.compile(lambda a, x: a @ x, backend="weft", fullgraph=True)(a, drawn(8, 8))
    torch._dynamo.reset()
    near(torch.compile(lambda a, x: a @ x, backend="weft")(a, drawn(8, 8)), a.to_dense() @ drawn(8, 8))


def test_keyword_arguments():
    """Dense arguments by keyword, beside a sparse one by position, are behind it."""
    class Scaled(torch.nn.Module):
        def forward(self, a, x, *, factor):
            return torch.mm(a, x) * factor
    a, x, factor = torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse_csr(), torch.randn(2, 3), torch.tensor([1.0, 2.0, 3.0])
    for given in (a, weft.sparse.matrix(a)):
        model = weft.compile(Scaled(), (given, x), {"factor": factor})
        torch.testing.assert_close(model(a, x, factor), torch.mm(a, x) * factor)
