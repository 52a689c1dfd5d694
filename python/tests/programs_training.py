"""How users of torch.compile train: see programs.py."""
import copy
import functools
import math

import torch
import torch.nn.utils.prune

from programs_base import PROGRAMS, F, mlp, nn, program, training, values

optim = torch.optim
schedules = optim.lr_scheduler


def linear():
    return nn.Sequential(nn.Linear(8, 16, bias=False), nn.ReLU(), nn.Linear(16, 4, bias=False))


for _name, _optimizer in {
        "asgd": lambda p: optim.ASGD(p, 0.01), "rprop": lambda p: optim.Rprop(p, 0.01), "adafactor": lambda p: optim.Adafactor(p, 0.01),
        "nesterov_of_a_tensor": lambda p: optim.Adam(p, torch.tensor(0.01)), "maximized": lambda p: optim.AdamW(p, 0.01, maximize=True)}.items():
    PROGRAMS[f"train_{_name}"] = functools.partial(training, optimizer=_optimizer, compile_step=True)
for _name, _schedule in {
        "warm_restarts": lambda o: schedules.CosineAnnealingWarmRestarts(o, 2), "cyclic": lambda o: schedules.CyclicLR(o, 0.01, 0.1, 2),
        "polynomial": lambda o: schedules.PolynomialLR(o, 4), "chained": lambda o: schedules.ChainedScheduler([schedules.ConstantLR(o, 0.5, 2), schedules.ExponentialLR(o, 0.9)]),
        "sequence": lambda o: schedules.SequentialLR(o, [schedules.LinearLR(o, 0.1, total_iters=2), schedules.MultiStepLR(o, [1, 2])], [2])}.items():
    PROGRAMS[f"schedule_{_name}"] = functools.partial(training, optimizer=lambda p: optim.SGD(p, 0.1, momentum=0.9), schedule=_schedule)
PROGRAMS["train_muon"] = lambda c: training(c, lambda p: optim.Muon(p, 0.01), module=linear())


@program
def lbfgs(c):
    m, x = mlp(), torch.randn(6, 8)
    f, o = c(m), optim.LBFGS(m.parameters(), 0.1, max_iter=4)

    def closure():
        o.zero_grad()
        loss = f(x).square().mean()
        loss.backward()
        return loss
    return [o.step(closure).detach() for _ in range(3)], values(m)


@program
def a_whole_step(c):
    m = mlp()
    o = optim.AdamW(m.parameters(), 0.01)

    @c
    def step(x, t):
        loss = F.cross_entropy(m(x), t)
        loss.backward()
        nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        o.step()
        o.zero_grad()
        return loss.detach()
    return [step(torch.randn(6, 8), torch.arange(6) % 4) for _ in range(4)], values(m)


@program
def plateau_and_groups(c):
    m = mlp()
    o = optim.SGD([{"params": m[0].parameters(), "lr": 0.01}, {"params": [*m[1].parameters(), *m[3].parameters()], "weight_decay": 0.1}], 0.1, momentum=0.5)
    s, f, step = schedules.ReduceLROnPlateau(o, factor=0.5, patience=0), c(m), c(o.step)
    for _ in range(5):
        o.zero_grad()
        loss = f(torch.randn(6, 8)).square().mean()
        loss.backward()
        step()
        s.step(loss.detach())
    return [g["lr"] for g in o.param_groups], values(m)


@program
def an_optimizer_by_hand(c):
    m = mlp()
    averages = [torch.zeros_like(p) for p in m.parameters()]

    @c
    @torch.no_grad()
    def update(params, averages, lr):
        for p, a in zip(params, averages):
            a.mul_(0.9).add_(p.grad, alpha=0.1)
            p.sub_(lr * a.sign() + 0.01 * p)
            p.grad = None
    for k in range(3):
        c(m)(torch.randn(5, 8)).square().mean().backward()
        update(list(m.parameters()), averages, 0.1 / (k + 1))
    return values(m), averages


@program
def steps_during_backward(c):
    m = mlp()
    optimizers = {p: optim.SGD([p], 0.1) for p in m.parameters()}

    def hook(p):
        optimizers[p].step()
        optimizers[p].zero_grad()
    for p in m.parameters():
        p.register_post_accumulate_grad_hook(hook)
    f = c(m)
    for _ in range(3):
        f(torch.randn(4, 8)).square().mean().backward()
    return values(m)


@program
def scaled_f16(c):
    m, scaler = mlp(), torch.amp.GradScaler("cpu", init_scale=256.0)
    f, o = c(m), optim.SGD(m.parameters(), 0.1)
    for _ in range(3):
        o.zero_grad()
        with torch.autocast("cpu", torch.float16):
            loss = F.cross_entropy(f(torch.randn(8, 8)), torch.arange(8) % 4)
        scaler.scale(loss).backward()
        scaler.unscale_(o)
        nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        scaler.step(o)
        scaler.update()
    return [(v / 8).round(decimals=2) + 0.0 for v in values(m).values()], scaler.get_scale()


@program
def parametrized_weights(c):
    p = nn.utils.parametrizations
    m = nn.Sequential(p.weight_norm(nn.Linear(8, 8)), p.spectral_norm(nn.Linear(8, 8)), p.orthogonal(nn.Linear(8, 8, bias=False)), nn.Linear(8, 2))
    f = c(m)
    for _ in range(2):
        f(torch.randn(3, 8)).square().sum().backward()
    return [q.grad for q in m.parameters()], values(m)


@program
def anomalies(c):
    with torch.autograd.detect_anomaly(check_nan=False):
        return training(c, lambda p: optim.SGD(p, 0.1))


@program
def pruned_weights(c):
    m = mlp()
    nn.utils.prune.l1_unstructured(m[0], "weight", 0.5)
    nn.utils.prune.random_structured(m[3], "weight", 0.25, dim=1)
    c(m)(torch.randn(3, 8)).square().sum().backward()
    nn.utils.prune.remove(m[0], "weight")
    return [q.grad for q in m.parameters()], c(m)(torch.ones(3, 8))


@program
def averaged_with_new_statistics(c):
    m = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8, momentum=None), nn.ReLU(), nn.Linear(8, 2))
    o, f = optim.SGD(m.parameters(), 0.1), c(m)
    averaged = optim.swa_utils.AveragedModel(m)
    for _ in range(3):
        o.zero_grad()
        f(torch.randn(6, 8)).square().mean().backward()
        o.step()
        averaged.update_parameters(m)
    optim.swa_utils.update_bn([torch.randn(6, 8) for _ in range(3)], c(averaged))
    return values(averaged), values(m)


@program
def adversaries(c):
    g, d = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 6)), nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
    og, od, fg, fd = optim.Adam(g.parameters(), 0.01), optim.Adam(d.parameters(), 0.01), c(g), c(d)
    for _ in range(3):
        made = fg(torch.randn(5, 4))
        od.zero_grad()
        (F.softplus(-fd(torch.randn(5, 6))).mean() + F.softplus(fd(made.detach())).mean()).backward()
        od.step()
        og.zero_grad()
        F.softplus(-fd(made)).mean().backward()
        og.step()
    return values(g), values(d)


@program
def q_learning(c):
    net, o = mlp(), None
    target = copy.deepcopy(net).requires_grad_(False)
    o = optim.RMSprop(net.parameters(), 0.01)

    @c
    def loss(s, a, r, s2, done):
        with torch.no_grad():
            best = target(s2).amax(1)
        return F.smooth_l1_loss(net(s).gather(1, a[:, None]).squeeze(1), r + 0.9 * best * ~done)
    for _ in range(3):
        o.zero_grad()
        loss(torch.randn(6, 8), torch.randint(4, (6,)), torch.randn(6), torch.randn(6, 8), torch.rand(6) > 0.7).backward()
        o.step()
        for p, q in zip(target.parameters(), net.parameters()):
            p.lerp_(q.detach(), 0.1)
    return values(target)


@program
def clipped_policies(c):
    m, x = mlp(), torch.randn(10, 8)
    a, old, adv = torch.randint(4, (10,)), torch.randn(10), torch.randn(10)

    def loss(x):
        policy = torch.distributions.Categorical(logits=m(x))
        ratio = (policy.log_prob(a) - old).exp()
        return -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean() - 0.01 * policy.entropy().mean()
    c(loss)(x).backward()
    return [p.grad for p in m.parameters()]


@program
def variational_autoencoder(c):
    enc, dec = nn.Linear(8, 6), nn.Linear(3, 8)

    def loss(x, eps):
        mean, logvar = enc(x).chunk(2, -1)
        y = dec(mean + (0.5 * logvar).exp() * eps)
        return F.binary_cross_entropy(y.sigmoid(), x) - 0.5 * (1 + logvar - mean**2 - logvar.exp()).sum(-1).mean()
    c(loss)(torch.rand(4, 8), torch.randn(4, 3)).backward()
    return [p.grad for m in (enc, dec) for p in m.parameters()]


@program
def distillation(c):
    teacher, student = mlp().eval(), linear()

    def loss(x, t):
        with torch.no_grad():
            soft = (teacher(x) / 2).log_softmax(-1)
        return F.kl_div((student(x) / 2).log_softmax(-1), soft, reduction="batchmean", log_target=True) * 4 + F.cross_entropy(student(x), t)
    c(loss)(torch.randn(6, 8), torch.arange(6) % 4).backward()
    return [p.grad for p in (*student.parameters(), *teacher.parameters())]


@program
def contrastive_pairs(c):
    a, b, scale = mlp(), mlp(), nn.Parameter(torch.tensor(math.log(10.0)))

    def loss(x, y):
        p, q = F.normalize(a(x), dim=-1), F.normalize(b(y), dim=-1)
        logits, t = scale.exp().clamp(max=100) * p @ q.t(), torch.arange(x.shape[0])
        return (F.cross_entropy(logits, t) + F.cross_entropy(logits.t(), t)) / 2
    f = c(loss, dynamic=True)
    for n in (5, 7):
        f(torch.randn(n, 8), torch.randn(n, 8)).backward()
    return scale.grad, [p.grad for p in a.parameters()]


@program
def layers_thawed_later(c):
    m = mlp()
    m[0].requires_grad_(False)
    f = c(m)
    f(torch.randn(3, 8)).sum().backward()
    first = [p.grad for p in m.parameters()]
    m[0].requires_grad_(True)
    m.eval()
    f(torch.randn(3, 8)).square().sum().backward()
    return first, [p.grad for p in m.parameters()]


@program
def adversarial_examples(c):
    m, x = mlp(), torch.randn(4, 8)
    f = c(m)
    for _ in range(3):
        x = x.detach().requires_grad_()
        g, = torch.autograd.grad(F.cross_entropy(f(x), torch.arange(4)), x)
        x = (x + 0.1 * g.sign()).clamp(-2, 2)
    return x, f(x)


@program
def backward_hooks_of_modules(c):
    m, seen = mlp(), []
    m[2].register_full_backward_hook(lambda mod, gi, go: (gi[0] * 2,))
    m[0].register_forward_pre_hook(lambda mod, args: (args[0] + 1,))
    m[3].register_forward_hook(lambda mod, args, kwargs, out: seen.append(out.detach().mean()), with_kwargs=True)
    c(m)(torch.randn(3, 8)).square().sum().backward()
    return [p.grad for p in m.parameters()], seen


@program
def meta_learning(c):
    m = mlp()
    params = {n: p.detach() for n, p in m.named_parameters()}

    def loss(p, x, t):
        return F.mse_loss(torch.func.functional_call(m, p, (x,)), t)

    def outer(p, x, t):
        inner = p
        for _ in range(2):
            g = torch.func.grad(loss)(inner, x, t)
            inner = {n: inner[n] - 0.1 * g[n] for n in inner}
        return loss(inner, x + 1, t)
    return c(torch.func.grad_and_value(outer))(params, torch.randn(5, 8), torch.randn(5, 4))


@program
def gradients_of_each_sample(c):
    m = mlp()
    params = {n: p.detach() for n, p in m.named_parameters()}
    one = lambda p, x, t: F.cross_entropy(torch.func.functional_call(m, p, (x[None],)), t[None])
    g = c(torch.func.vmap(torch.func.grad(one), in_dims=(None, 0, 0)))(params, torch.randn(5, 8), torch.arange(5) % 4)
    norms = torch.stack([v.flatten(1).norm(dim=1) for v in g.values()]).norm(dim=0)
    return g, norms


@program
def physics(c):
    m = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
    params = dict(m.named_parameters())
    u = lambda p, x, t: torch.func.functional_call(m, p, (torch.stack([x, t]),)).squeeze()

    def residual(p, x, t):
        ut, uxx = torch.func.grad(u, 2)(p, x, t), torch.func.grad(torch.func.grad(u, 1), 1)(p, x, t)
        return ut + u(p, x, t) * torch.func.grad(u, 1)(p, x, t) - 0.01 * uxx
    loss = lambda p, x, t: torch.func.vmap(residual, (None, 0, 0))(p, x, t).square().mean()
    c(loss)(params, torch.randn(6), torch.rand(6)).backward()
    return [p.grad for p in m.parameters()]


@program
def adapters(c):
    class Lora(nn.Module):
        def __init__(self, base):
            super().__init__()
            self.base, self.a, self.b, self.merged = base.requires_grad_(False), nn.Parameter(torch.randn(2, 8)), nn.Parameter(torch.randn(8, 2)), False

        def forward(self, x):
            y = self.base(x)
            return y if self.merged else y + 0.5 * (x @ self.a.t()) @ self.b.t()

        @torch.no_grad()
        def merge(self):
            self.base.weight += 0.5 * self.b @ self.a
            self.merged = True
    m = Lora(nn.Linear(8, 8))
    f, x = c(m), torch.randn(3, 8)
    y = f(x)
    y.square().sum().backward()
    m.merge()
    return y, f(x), m.a.grad, m.b.grad


@program
def fake_quantization(c):
    m = nn.Linear(8, 8)

    def through(x, scale):
        q = (x / scale).round().clamp(-8, 7) * scale
        return x + (q - x).detach()

    def f(x):
        w = torch.fake_quantize_per_channel_affine(m.weight, m.weight.detach().abs().amax(1) / 127, torch.zeros(8, dtype=torch.int32), 0, -128, 127)
        x = torch.fake_quantize_per_tensor_affine(x, 0.05, 3, 0, 255)
        return through(F.linear(x, w, m.bias), 0.1)
    x = torch.randn(3, 8, requires_grad=True)
    c(f)(x).square().sum().backward()
    return x.grad, m.weight.grad


@program
def saved_by_hooks(c):
    m, x = mlp(), torch.randn(3, 8, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.double() if t.is_floating_point() else t, lambda t: t.float() if t.is_floating_point() else t):
        y = m(x)
    c(lambda y: y.exp().sum())(y).backward()
    with torch.autograd.graph.save_on_cpu():
        c(m)(x).sum().backward()
    return x.grad


@program
def selective_checkpoints(c):
    from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts
    m, x = mlp(), torch.randn(3, 8, requires_grad=True)
    policy = lambda ctx, op, *a, **k: CheckpointPolicy.MUST_SAVE if op == torch.ops.aten.addmm.default else CheckpointPolicy.PREFER_RECOMPUTE
    contexts = functools.partial(create_selective_checkpoint_contexts, policy)
    c(lambda x: checkpoint(m, x, use_reentrant=False, context_fn=contexts).square().sum())(x).backward()
    return x.grad, [p.grad for p in m.parameters()]


@program
def losses_of_pairs(c):
    a, b, d = (torch.randn(5, 6, requires_grad=True) for _ in range(3))
    sign = torch.tensor([1.0, -1.0, 1.0, 1.0, -1.0])

    def f(a, b, d):
        return (F.triplet_margin_loss(a, b, d) + F.cosine_embedding_loss(a, b, sign) + F.margin_ranking_loss(a[:, 0], b[:, 0], sign, 0.1)
                + F.hinge_embedding_loss(a[:, 1], sign) + F.soft_margin_loss(a[:, 2], sign) + F.multi_margin_loss(a, torch.arange(5))
                + F.gaussian_nll_loss(a, b, d.square() + 0.1) + F.poisson_nll_loss(a, b.square()) + F.multilabel_margin_loss(a, torch.arange(30).view(5, 6) % 6)
                + F.multilabel_soft_margin_loss(a, (b > 0).float()) + F.l1_loss(a, b) + F.smooth_l1_loss(a, d, beta=0.3))
    c(f)(a, b, d).backward()
    return a.grad, b.grad, d.grad


@program
def losses_of_sequences(c):
    x = torch.randn(7, 3, 5, requires_grad=True)
    lengths, t = torch.tensor([7, 5, 6]), torch.tensor([[1, 2, 2], [3, 4, 0], [1, 1, 0]])

    def f(x):
        return F.ctc_loss(x.log_softmax(-1), t, lengths, torch.tensor([3, 2, 2]), zero_infinity=True)
    y = c(f)(x)
    y.backward()
    return y, x.grad


@program
def losses_of_images(c):
    x, t = torch.randn(2, 3, 6, 6, requires_grad=True), torch.randint(3, (2, 6, 6))

    def f(x):
        p, hot = x.softmax(1), F.one_hot(t, 3).permute(0, 3, 1, 2).to(x.dtype)
        dice = 1 - (2 * (p * hot).sum((0, 2, 3)) + 1) / (p.sum((0, 2, 3)) + hot.sum((0, 2, 3)) + 1)
        ce = F.cross_entropy(x, t, weight=torch.tensor([1.0, 2.0, 0.5]), ignore_index=1, reduction="none")
        focal = (1 - (-ce).exp()) ** 2 * ce
        variation = x.diff(dim=-1).abs().mean() + x.diff(dim=-2).abs().mean()
        return dice.mean() + focal.mean() + 0.1 * variation
    c(f)(x).backward()
    return x.grad


@program
def distributions(c):
    D = torch.distributions
    a, b = torch.randn(4, requires_grad=True), torch.rand(4, requires_grad=True)

    def f(a, b, x):
        scale = b + 0.5
        cov = torch.eye(4) * 0.5 + scale[:, None] * scale * 0.1
        return (D.Normal(a, scale).log_prob(x).sum() + D.kl_divergence(D.Normal(a, scale), D.Normal(0.0, 1.0)).sum() + D.Laplace(a, scale).cdf(x).sum()
                + D.Categorical(logits=a).entropy() + D.Beta(scale, scale + 1).log_prob(x.sigmoid()).sum() + D.Bernoulli(logits=a).log_prob((x > 0).float()).sum()
                + D.Gamma(scale, scale).log_prob(x.exp()).sum() + D.StudentT(3.0, a, scale).log_prob(x).sum()
                + D.MultivariateNormal(a, covariance_matrix=cov).log_prob(x))
    y = c(f)(a, b, torch.randn(4))
    y.backward()
    return y, a.grad, b.grad
