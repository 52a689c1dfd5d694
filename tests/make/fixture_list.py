"""The archives that make_fixtures.py makes, of its models and with its functions (f is that module). Their order decides the random numbers."""
import torch
from safetensors.torch import save_file
from torch.export import Dim, export

from decoder import make as make_decoder, programs as decoder_programs


def make_store(f):
    """join/NAME.pt2 of each, and in join/store.safetensors calls on one store: <k>.x and <k>.y, of entry <k>.e."""
    store, tensors = f.Store(), {}
    kinds = {"writer": (f.Writer, (5, 4)), "reader": (f.Reader, (3, 4)), "again": (f.AgainReader, (5, 4)), "rows": (f.RowsReader, (2, 4))}
    for name, (kind, shape) in kinds.items():
        f.save(f"join/{name}", export(kind(), (torch.randn(shape),), strict=False), True)
    f.save("join/stranger", export(f.Stranger(), (torch.randn(5, 4),)), True)
    with torch.no_grad():
        for k, e in enumerate([1, 0, 1, 2, 0, 0, 2, 1]):
            kind, shape = list(kinds.values())[e]
            x = torch.randn(shape)
            tensors |= {f"{k}.e": torch.tensor([e]), f"{k}.x": x, f"{k}.y": kind.forward(store, x).clone().contiguous()}
    save_file(tensors, f.dest / "join/store.safetensors")


def make_all(f):
    torch.manual_seed(0)
    f.dest.mkdir(exist_ok=True)
    r = torch.randn
    f.make("mlp", f.Mlp().eval(), (r(2, 6),))
    f.make("mlp_deflated", f.Mlp().eval(), (r(2, 6),), compress=True)
    f.make("tied", f.Tied(), (r(5, 4),))
    f.make("views", f.Views(), (r(4, 6), r(2, 4)))
    f.make("resize", f.Resize(), (r(4, 6), r(3, 2)))
    f.make("state", f.State(), (r(2, 3), r(2, 2, 3)))
    f.make("state_decomposed", f.State(), (r(2, 3), r(2, 2, 3)), decompose=True)
    f.make("input_write", f.InputWrite(), (r(3, 2), r(3, 2)))
    f.make("batch_norm", f.BatchNorm().train(), (r(4, 2, 3, 3),))
    f.make("batch_norm_decomposed", f.BatchNorm().train(), (r(4, 2, 3, 3),), decompose=True)
    n, m = Dim("n", min=1, max=32), Dim("m", min=1, max=50)
    f.make("dynamic", f.Dynamic(), (r(3, 10), r(3, 10)), dynamic=({0: n, 1: 2 * m}, {0: n, 1: 2 * m}))
    f.make("scan", f.Scan(), (r(2, 3), r(4, 2, 3)))
    i, yes, no = torch.tensor([0, 4]), torch.tensor([True]), torch.tensor([False])
    x, far = r(2, 3).abs(), torch.tensor([0, 5])
    f.make_control("threshold", f.Threshold(), [(torch.tensor(a), torch.ones(3)) for a in (0.75, 0.5, 0.25, 3., 3.125, 3.5, -1.)])
    f.make_control("branch", f.Branch(), [(x, i, yes), (-x, i, no), (x, far, no), (x, far, yes), (-x, i, yes), (-x, far, yes)])
    f.make_control("size_branch", f.SizeBranch(), [(r(n, 3),) for n in (3, 4, 5, 9)], ({0: Dim.DYNAMIC},))
    f.make_control("newton", f.Newton(), [(r(b, 3).abs() + (0 if k < 4 else -3), torch.tensor(n))
                                      for k, (b, n) in enumerate([(2, 50), (5, 3), (4, 0), (3, 2), (2, 30)])],
                 ({0: Dim.DYNAMIC}, None))
    dyn = ({0: Dim.DYNAMIC}, None)
    f.make_control("cond_in_while", f.CondInWhile(), [(r(b, 3), torch.tensor(n)) for b, n in [(2, 3), (5, 2), (3, 0), (2, 4), (3, 7)]],
                 dyn)
    f.make_control("while_in_cond", f.WhileInCond(), [(r(b, 3), torch.tensor(float(x))) for b, x in [(2, 50), (5, -50), (3, 1e6)]], dyn)
    f.make_control("while_in_while", f.WhileInWhile(), [(r(b, 3), torch.tensor(n)) for b, n in [(2, 2), (4, -1), (3, 5)]], dyn)
    z, c = r(3, dtype=torch.complex64) * 0.5, r(3, dtype=torch.complex64) * 0.3
    f.make_control("complex_branch", f.ComplexBranch(), [(z, c, torch.ones(2)), (z, c, -torch.ones(2))])
    f.make_control("complex_loop", f.ComplexLoop(), [(z, c, torch.tensor(k)) for k in (3, 0, 7)])
    f.make_control("size_closure", f.SizeClosure(), [(r(b, 2), r(3) + o, torch.tensor(n)) for b, o, n in [(4, 9, 1), (3, -9, 5)]],
                 ({0: Dim.DYNAMIC}, None, None))
    d = {0: Dim.DYNAMIC}
    f.make_refused("branch_unbounded", f.BranchUnbounded(), (r(3), torch.tensor([2, 0, 1])))
    f.make_refused("loop_integer", f.LoopInteger(), (r(3),), (d,))
    f.make("promote", f.Promote(), (r(3), torch.tensor([1, 2, 3])))
    dyn = Dim.DYNAMIC
    shapes = {"x": None, "xs": [None, {0: dyn}], "d": {"q": {0: dyn}}, "p": [None, [{0: dyn}]], "k": {0: dyn}}
    args = (r(2, 4), [r(3), r(8)], {"q": r(5)}, f.Pair(r(3), [r(4)]))
    f.make_nested("nested", f.Nested(), args, {"k": r(6)}, shapes)
    f.make_nested("nested_strict", f.Nested(), args, {"k": r(6)}, shapes, strict=True)
    f.make_nested("guard_log", f.Log(), (r(9),), {}, {"xs": ({0: dyn},)}, strict=True)
    f.make("wrapped", f.Wrapped().eval(), (r(2, 6),))
    f.make("torchao", f.Quantized().eval(), (r(3, 16),))
    calls = [(r(1, 2, 1, 3), torch.tensor([k])) for k in (0, 1, 2, 5, 5)]
    f.make_calls("caches", f.Caches(), calls)
    f.make_calls("caches_strict", f.Caches(), calls, strict=True)
    f.make_calls("caches_decomposed", f.Caches(), calls, decompose=True)
    f.make_calls("shared", f.Shared(), [(r(5, 4),) for _ in range(3)])
    f.save("state/tangled", export(f.Tangled(), (r(3, 2),)), True)
    f.make_calls("lifted", f.Lifted(), [(r(1, 3), torch.tensor([k])) for k in (0, 1, 3)])
    f.make_calls("persistent", f.Persistent().eval(), [(r(2, 3, 3),) for _ in range(10)])
    f.make_calls("statistics", f.Statistics().train(), [(r(n, 3, 4),) for n in (4, 3, 2, 2, 3, 5, 2, 4, 2, 2)], ({0: Dim("n", min=2, max=8)},))
    f.make_calls("written_parameters", f.WrittenParameters().eval(), [(torch.tensor(i),) for i in ([1, 1], [0, 5], [1, 4])])
    f.save("state/roles", export(f.Roles(), (torch.ones(3),)), True)
    f.make_calls("checked", f.Checked(), [(r(1, 32), torch.tensor([99., 99.])) for _ in range(4)])
    decoder = make_decoder("tiny")
    prompts = torch.randint(16, (1, 9))
    for name, program, parts in zip(("prefill", "decode"), decoder_programs(decoder), ((0, 3, 7, 9), range(6))):
        f.make_calls(name, decoder, [(prompts[:, a:b], torch.tensor([a])) for a, b in zip(parts, parts[1:])], program=program)
    (f.dest / "join").mkdir(exist_ok=True)
    whole, one = f.Prefill().eval(), f.Decode().eval()
    one.load_state_dict(whole.state_dict())
    b, long, many = Dim("b", min=1, max=8), Dim("t", min=2, max=64), Dim("b", min=1, max=100)
    f.make("join/prefill", whole, (torch.randint(1100, (3, 7)),), dynamic=({0: b, 1: long},))
    f.make("join/decode", one, (torch.randint(1100, (9,)),), dynamic=({0: many},))
    other = f.Decode().eval()
    f.make("join/other", other, (torch.randint(1100, (4,)),), dynamic=({0: many},))
    make_store(f)
    f.make_replaceable()
    f.make_gradients()
