"""Recalls in PyTorch: gradcheck, and autograd through an unrolled iteration. A file of its own, since torch takes seconds to import."""
import subprocess
import sys

import numpy as np
import pytest

import cgam

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

recall = cgam.torch.recall
NAMES = ("Z", "q", "c", "alpha", "beta", "lam")


def inputs(n, d, B=2, seed=3):
    torch.manual_seed(seed)
    Z = torch.randn(n, d, dtype=torch.float64) / d**0.5
    q, c = torch.randn(2, B, d, dtype=torch.float64)
    return (Z, q, c, *(torch.tensor(x, dtype=torch.float64) for x in (0.1, 1.3, 0.6)))


def call(mode, activation=None):
    return lambda Z, q, c, alpha, beta, lam: recall(Z, q, c, alpha=alpha, beta=beta, lam=lam, mode=mode,
                                                    activation=activation)


def unrolled(Z, q, c, alpha, beta, lam, mode):
    G = Z @ Z.T
    A = torch.eye(len(Z), dtype=Z.dtype) + alpha * (G - torch.diag(torch.diagonal(G)))
    u, b = c @ Z.T, q @ Z.T
    p = torch.softmax(beta * (b + lam * torch.linalg.solve(A, u.T).T), 1)
    for _ in range(80 if mode == "coupled" else 0):  # a step shrinks the error to less than a half
        p = torch.softmax(beta * (b + lam * torch.linalg.solve(A, (u + lam * p).T).T), 1)
    return p


@pytest.mark.parametrize("mode", ["first", "coupled"])
@pytest.mark.parametrize("n, d", [(4, 6), (5, 5), (8, 3)])
def test_gradcheck_of_every_input(mode, n, d):
    given = inputs(n, d)
    for i in range(len(NAMES)):
        own = tuple(x.clone().requires_grad_(k == i) for k, x in enumerate(given))
        assert torch.autograd.gradcheck(call(mode), own), NAMES[i]
    assert torch.autograd.gradcheck(call(mode), tuple(x.clone().requires_grad_() for x in given))


@pytest.mark.parametrize("mode", ["first", "coupled"])
@pytest.mark.parametrize("n, d", [(4, 6), (12, 5)])
def test_it_agrees_with_autograd_through_an_unrolled_iteration(mode, n, d):
    torch.manual_seed(1)
    pull = torch.randn(7, n, dtype=torch.float64)
    found = []
    for f in (call(mode), lambda *given: unrolled(*given, mode)):
        given = tuple(x.requires_grad_() for x in inputs(n, d, B=7))
        p = f(*given)
        found.append((p.detach(), *torch.autograd.grad((p * pull).sum(), given)))
    for name, ours, theirs in zip(("p", *NAMES), *found):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=1e-9, rtol=1e-9, err_msg=name)


def test_other_activations_shared_contexts_and_one_query():
    Z, q, c, *rest = inputs(5, 4)
    own = (Z.requires_grad_(), q.requires_grad_(), c.requires_grad_(), *rest)
    assert torch.autograd.gradcheck(call("coupled", "entmax15"), own)
    one = recall(Z, q[0], c[0], alpha=0.1, mode="coupled")
    many = recall(Z, q, c[0], alpha=0.1, mode="coupled")
    assert one.shape == (5,) and torch.equal(one, many[0])
    assert torch.autograd.gradcheck(lambda c: recall(Z.detach(), q.detach(), c, alpha=0.1), c.detach()[0].requires_grad_())
    assert torch.autograd.gradcheck(lambda q: recall(Z.detach(), q), q.detach()[0].requires_grad_())


def test_singles_are_computed_in_double():
    given = inputs(6, 4)
    singles = tuple(x.float().requires_grad_() for x in given)
    doubles = tuple(x.detach().double().requires_grad_() for x in singles)
    p, want = call("coupled")(*singles), call("coupled")(*doubles)
    assert p.dtype == torch.float32 and torch.equal(p, want.float())
    for ours, theirs in zip(torch.autograd.grad(p.log().sum(), singles), torch.autograd.grad(want.log().sum(), doubles)):
        assert ours.dtype == torch.float32
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_double_backward_is_rejected_by_name():
    given = tuple(x.requires_grad_() for x in inputs(5, 4))
    dq, = torch.autograd.grad(call("first")(*given).log().sum(), given[1], create_graph=True)
    with pytest.raises(RuntimeError, match="cgam.torch.recall has no second derivatives"):
        torch.autograd.grad(dq.sum(), given[0])


def test_a_fold_raises_in_the_backward_pass():
    q = torch.full((1, 2), 0.5, dtype=torch.float64, requires_grad=True)
    p = recall(torch.eye(2, dtype=torch.float64), q, beta=4.0, mode="coupled")
    with pytest.raises(cgam.Error, match="query 0 is at a fold") as caught:
        p[0, 0].backward()
    assert caught.value.status == "CGAM_E_NOT_POSITIVE"


def test_memories_that_change_between_the_passes_are_noticed():
    Z, q, *_ = (x.requires_grad_() for x in inputs(5, 4))
    p = recall(Z, q)
    with torch.no_grad():
        Z += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        p[0, 0].backward()


def test_bad_input_is_named():
    Z, q, c, *_ = inputs(5, 4)
    for words, error, given, options in [
            ("invalid mode 'flow'", ValueError, (Z, q), {"mode": "flow"}), ("Z: expected a tensor", TypeError, (Z.numpy(), q), {}),
            ("q: unsupported dtype", ValueError, (Z, q.half()), {}), ("beta: shape", ValueError, (Z, q), {"beta": torch.ones(2)}),
            ("c: the tensor is on meta", ValueError, (Z, q, c.to("meta")), {}), ("query: shape", ValueError, (Z, q[:, :3]), {}),
            ("alpha_crit", ValueError, (Z, q), {"mode": "coupled", "alpha": 50.0})]:
        with pytest.raises(error, match=words):
            recall(*given, **options)


def test_a_layer_learns_what_its_contexts_mean():
    torch.manual_seed(0)
    Z, q, c = torch.eye(4, dtype=torch.float64), torch.zeros(4, 4, dtype=torch.float64), torch.eye(4, dtype=torch.float64)
    wanted = torch.tensor([1, 2, 3, 0])  # context k stands for memory k + 1: P must turn it
    layer = cgam.torch.Recall(Z, alpha=0.2, beta=2.0, mode="coupled", learn=("P", "alpha", "beta", "lam"))
    assert {name for name, _ in layer.named_parameters()} == {"P", "raw_alpha", "raw_beta", "raw_lam"}
    assert [round(x.item(), 12) for x in (layer.alpha, layer.beta, layer.lam)] == [0.2, 2.0, 1.0]
    best = torch.optim.Adam(layer.parameters(), lr=0.1)
    losses = []
    for _ in range(60):
        best.zero_grad()
        loss = -layer(q, c)[torch.arange(4), wanted].log().mean()
        loss.backward()
        best.step()
        losses.append(loss.item())
    assert losses[0] > 1 and losses[-1] < 0.1 and layer(q, c).argmax(1).tolist() == wanted.tolist()
    assert 0 < layer.alpha < 1 and "4 x 4, mode=coupled" in repr(layer)
    again = cgam.torch.Recall(Z, mode="coupled", learn=("P", "alpha", "beta", "lam"))
    again.load_state_dict(layer.state_dict())
    assert torch.equal(again(q, c), layer(q, c))


def test_a_layer_reads_out_and_learns_memories():
    torch.manual_seed(0)
    layer = cgam.torch.Recall(torch.randn(5, 3, dtype=torch.float64), learn=("Z", "alpha"), readout=True)
    assert torch.autograd.gradcheck(layer, torch.randn(2, 3, dtype=torch.float64, requires_grad=True))
    names = [name for name, _ in layer.named_parameters()]
    start = {name: p.detach().clone() for name, p in layer.named_parameters()}

    def of(*values):
        return torch.nn.utils.stateless.functional_call(layer, dict(zip(names, values)), (torch.ones(1, 3).double(), torch.ones(3).double()))

    assert torch.autograd.gradcheck(of, tuple(p.requires_grad_() for p in start.values()))
    with pytest.raises(ValueError, match="learn: invalid name 'W'"):
        cgam.torch.Recall(torch.eye(3), learn="W")


@pytest.mark.parametrize("script", ["import cgam; cgam.Bank([[1.0]]).recall([1.0])", "import cgam.learn; dir(cgam)"])
def test_torch_is_not_imported_with_cgam(script):
    said = subprocess.run([sys.executable, "-c", script + "; import sys; print('torch' in sys.modules, 'cgam.torch' in sys.modules)"],
                          capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["False", "False"]
