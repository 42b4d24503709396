"""Gradients of recalls: against central differences of an iteration in NumPy that shares no code with the library."""
import numpy as np
import pytest

import cgam

WRT = ("q", "c", "P", "Z", "alpha", "beta", "lam")
SCALARS = ("alpha", "beta", "lam")


def settled(v, mode):
    """p of every query, (B, N), by plain iteration; v: q, c, Z, alpha, beta, lam, and P or W."""
    Z = v["Z"]
    G = Z @ Z.T
    A = np.eye(len(Z)) + v["alpha"] * (G - np.diag(np.diag(G)))
    u = v["c"] @ v["W"].T if "W" in v else v["c"] @ v["P"].T @ Z.T
    b = v["q"] @ Z.T

    def weights(s):
        r = v["beta"] * (b + v["lam"] * s)
        e = np.exp(r - r.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    p = weights(np.linalg.solve(A, u.T).T)
    for _ in range(60 if mode == "coupled" else 0):  # a step shrinks the error to less than a half
        p = weights(np.linalg.solve(A, (u + v["lam"] * p).T).T)
    return p


def differences(loss, v, name, h=1e-5):
    """Central differences of loss(v) by every number of v[name]: they leave about 1e-10."""
    x = np.array(v[name], dtype=float)
    out = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        sides = []
        for step in (h, -h):
            moved = x.copy()
            moved[at] += step
            sides.append(loss({**v, name: moved if moved.ndim else float(moved)}))
        out[at] = (sides[0] - sides[1]) / (2 * h)
    return out


def problem(rng, n, d, d_c=3, B=3):
    v = {"Z": rng.standard_normal((n, d)) / np.sqrt(d), "q": rng.standard_normal((B, d)),
         "c": rng.standard_normal((B, d_c)), "P": rng.standard_normal((d, d_c)), "alpha": 0.1, "beta": 1.3, "lam": 0.6}
    return v, rng.integers(0, n, B)


def plan_of(v, mode, **options):
    how = {"gate_weights": v["W"]} if "W" in v else {"projection": v["P"]}
    return cgam.Bank(v["Z"]).plan(mode, alpha=v["alpha"], beta=v["beta"], lam=v["lam"], tol=1e-15, **how, **options)


@pytest.mark.parametrize("mode", ["first", "coupled"])
@pytest.mark.parametrize("n, d", [(4, 6), (5, 5), (9, 4)])
def test_a_gradient_is_that_of_central_differences(rng, mode, n, d):
    v, target = problem(rng, n, d)
    rows = np.arange(len(target))

    def loss(v):
        return -np.log(settled(v, mode)[rows, target]).sum()

    g = plan_of(v, mode).grad(v["q"], v["c"], target=target, wrt=WRT)
    np.testing.assert_allclose(g.loss.sum(), loss(v), rtol=1e-12)
    for name in WRT:
        np.testing.assert_allclose(getattr(g, name), differences(loss, v, name), rtol=1e-6, atol=1e-8, err_msg=name)
    w = {name: value for name, value in v.items() if name != "P"}
    w["W"] = rng.standard_normal((n, 3))
    g = plan_of(w, mode).grad(v["q"], v["c"], target=target, wrt=("W", "Z"))
    for name in ("W", "Z"):
        np.testing.assert_allclose(getattr(g, name), differences(loss, w, name), rtol=1e-6, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("mode", ["first", "coupled"])
def test_losses_of_ones_own_readout_and_weights(rng, mode):
    v, _ = problem(rng, 6, 4)
    dp, x, weight = rng.standard_normal((3, 6)), rng.standard_normal((3, 4)), np.array([1.0, 0.5, 2.0])
    plan = plan_of(v, mode)
    g = plan.grad(v["q"], v["c"], dp=dp, weight=weight, wrt="Z", vectors=True)
    np.testing.assert_allclose(g.p, settled(v, mode), atol=1e-12)
    want = differences(lambda v: (weight[:, None] * dp * settled(v, mode)).sum(), v, "Z")
    np.testing.assert_allclose(g.Z, want, rtol=1e-6, atol=1e-8)
    assert np.isnan(g.loss).all()
    g = plan.grad(v["q"], v["c"], loss="readout", x=x, wrt=("q", "Z"))
    for name in ("q", "Z"):
        want = differences(lambda v: ((settled(v, mode) @ v["Z"] - x) ** 2).sum(), v, name)
        np.testing.assert_allclose(getattr(g, name), want, rtol=1e-6, atol=1e-8)
    g = plan.grad(v["q"], v["c"], dy=x, wrt="lam")
    want = differences(lambda v: (settled(v, mode) @ v["Z"] * x).sum(), v, "lam")
    np.testing.assert_allclose(g.lam, want, rtol=1e-6, atol=1e-8)


def test_one_query_has_no_axis_of_queries(rng, bank):
    q, c = rng.standard_normal(10), rng.standard_normal(10)
    plan = bank.plan("coupled", alpha=0.01, beta=1.0, lam=0.5)
    one = plan.grad(q, c, target=3, wrt=("q", "c", "beta", "b"), certify=True, vectors=True)
    many = plan.grad(q[None], c[None], target=[3], wrt=("q", "c", "beta", "b"), certify=True)
    assert one.q.shape == one.c.shape == (10,) and one.b.shape == one.p.shape == (50,) and one.readout.shape == (10,)
    np.testing.assert_array_equal(one.q, many.q[0])
    np.testing.assert_array_equal(one.c, many.c[0])
    assert one.beta == many.beta and one.loss == many.loss[0] and one.loss == pytest.approx(-np.log(one.p[3]))
    assert 0 < one.b_error < 1e-9 and one.positive > 0 and one.results["end"] == 1
    assert abs(one.b.sum()) < 1e-14  # a loss of p alone does not change when all evidence does
    assert "beta" in repr(one) and "lam" not in repr(one)
    shared = plan.grad(np.stack([q, 2 * q]), c, target=3, wrt="c")
    apart = plan.grad(np.stack([q, 2 * q]), np.stack([c, c]), target=3, wrt="c")
    np.testing.assert_allclose(shared.c, apart.c.sum(0), rtol=1e-12)
    none, zero = (plan.grad(np.stack([q, 2 * q]), c, target=3, wrt="c").c for c in (None, np.zeros((2, 10))))
    np.testing.assert_array_equal(none, zero)
    assert plan.grad(q, target=3, wrt="c").c.shape == (10,)


def test_a_start_keeps_the_answer(rng, bank):
    q = rng.standard_normal((4, 10))
    plan = bank.plan("coupled", alpha=0.01, beta=3.0, lam=0.5)
    g = plan.grad(q, target=0, wrt="q", vectors=True)
    again = plan.grad(q, target=0, wrt="q", start=g.p)
    np.testing.assert_allclose(again.q, g.q, atol=1e-9)
    assert again.results["iterations"].sum() < g.results["iterations"].sum()


def test_at_a_fold_there_is_no_gradient():
    # Between two equal memories the symmetric answer is a saddle: beta lambda^2 / 2 = 2 > 1.
    plan = cgam.Bank(np.eye(2)).plan("coupled", beta=4.0)
    q = np.array([[0.5, 0.5], [3.0, 0.0]])
    with pytest.raises(cgam.Error, match=r"query 0 is at a fold.*-1,") as caught:
        plan.grad(q, target=0)
    assert caught.value.status == "CGAM_E_NOT_POSITIVE"
    g = plan.grad(q, target=0, wrt=("q", "beta"), leave_out=True)
    assert g.left_out.tolist() == [True, False]
    assert g.beta == plan.grad(q[1], target=0, wrt="beta").beta


def test_bad_input_is_named(rng, bank):
    plan = bank.plan("coupled", alpha=0.01)
    q = rng.standard_normal((2, 10))
    for words, given in [("requires a target", {}), ("wrt: invalid name 'lambda'", {"wrt": "lambda"}),
                         ("target: shape", {"target": [1, 2, 3]}), ("dp: shape", {"dp": q}),
                         ("invalid loss 'l2'", {"loss": "l2"}), ("excludes dp", {"loss": "nll", "dp": q}),
                         ("requires x", {"loss": "readout"}), ("weight: shape", {"target": 0, "weight": [1.0]}),
                         ("target", {"target": [0, 50]}), ("loss own requires", {"loss": "own"}),
                         ("context: shape", {"target": 0, "context": q[:, :3]}),
                         ("dy: row 1, column 2 is NaN", {"dy": np.where(np.arange(20).reshape(2, 10) == 12, np.nan, q)})]:
        with pytest.raises(ValueError, match=words):
            plan.grad(q, **given)
    with pytest.raises(ValueError, match="gate weights W"):
        bank.plan(gate_weights=np.ones((50, 2))).grad(q, target=0, wrt="P")
    with pytest.raises(ValueError, match="mode flow"):
        bank.plan("flow").grad(q, target=0)
    with pytest.raises(ValueError, match="query: shape"):
        plan.grad(q[:, :4], target=0)


def test_memories_that_are_left_out(rng, bank):
    keep = np.arange(0, 50, 2)
    q = rng.standard_normal((2, 10))
    Z = np.stack([bank[i] for i in keep])
    g = bank.plan("coupled", alpha=0.01, only=keep).grad(q, target=[4, 8], wrt="Z")
    want = cgam.Bank(Z).plan("coupled", alpha=0.01).grad(q, target=[2, 4], wrt="Z")
    assert g.Z.shape == (25, 10)
    np.testing.assert_allclose(g.Z, want.Z, atol=1e-13)


# ---- fit


@pytest.fixture
def turned(rng):
    """A memory whose contexts are in another space: P must turn them. Z, q, c, y, and that P."""
    Z = rng.standard_normal((8, 6))
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    turn = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    y = rng.integers(0, 8, 300)
    c = Z[y] @ turn + 0.1 * rng.standard_normal((300, 6))
    return Z, 0.3 * rng.standard_normal((300, 6)), c, y


def test_fit_has_the_bits_of_the_command_line(turned, tmp_path, program):
    Z, q, c, y = turned
    options = dict(learn=["P", "beta"], alpha=0.05, beta=4.0, epochs=12, seed=5)
    kept = tmp_path / "kept.safetensors"
    fitted = cgam.fit(Z, q, y, c, out=kept, **options)
    for name, array in (("Z", Z), ("q", q), ("c", c), ("y", y)):
        np.save(tmp_path / f"{name}.npy", array)
    files = [word for option, name in (("bank", "Z"), ("queries", "q"), ("contexts", "c"), ("targets", "y"))
             for word in (f"--{option}", tmp_path / f"{name}.npy")]
    document, _ = program("fit", *files, "--learn", "P,beta", "--alpha", 0.05, "--beta", 4, "--epochs", 12, "--seed", 5,
                          "--out", tmp_path / "line.safetensors")
    assert (tmp_path / "line.safetensors").read_bytes() == kept.read_bytes()
    assert fitted.document["held_out"] == document["held_out"] and fitted.beta == document["beta"]
    held_out, before = fitted.document["held_out"], fitted.document["before"]
    assert held_out["accuracy"] > before["accuracy"] + 0.3 and "0." in repr(fitted)
    again = tmp_path / "again.safetensors"
    fitted.save(again)
    assert again.read_bytes() == kept.read_bytes()
    np.save(tmp_path / "one.npy", q[0])
    np.save(tmp_path / "context.npy", c[0])
    line, _ = program("recall", "--fitted", again, "--bank", tmp_path / "Z.npy", "--query", tmp_path / "one.npy",
                      "--context", tmp_path / "context.npy")
    ours = fitted.plan(Z).recall(q[0], c[0])
    assert ours.p == line["queries"][0]["p"] and ours.winner == line["queries"][0]["winner"]


def test_fit_from_banks_singles_and_shared_contexts(turned):
    Z, q, c, y = turned
    options = dict(learn="W", epochs=3, beta=3.0, mode="coupled")
    one = cgam.fit(Z, q, y, c, **options)
    same = cgam.fit(cgam.Bank(Z), q.tolist(), y.tolist(), c, **options)
    np.testing.assert_array_equal(one.W, same.W)
    assert one.W.shape == (8, 6) and one.P is None and one.Z is None and "saved" not in one.document
    assert one.plan(Z).recall(q[0], c[0]).end == "converged"
    learned = cgam.fit(Z.astype(np.float32), q, y, c[0], learn=("Z", "lam"), epochs=3, projection=np.eye(6))
    assert learned.Z.shape == (8, 6) and not np.array_equal(learned.Z, Z) and learned.lam > 0
    np.testing.assert_array_equal(learned.plan().recall(q, vectors=True).p_all, learned.plan(learned.Z).recall(q, vectors=True).p_all)
    with pytest.raises(ValueError, match="bank is missing"):
        one.plan()


def test_fit_resumes_from_a_journal_with_the_same_bits(turned, tmp_path):
    options = dict(learn=("P", "alpha"), alpha=0.05, beta=4.0, optimizer="adam", patience=0)
    part = cgam.fit(*turned_in_order(turned), journal=tmp_path / "j", epochs=2, **options)
    whole = cgam.fit(*turned_in_order(turned), epochs=5, **options)
    again = cgam.fit(*turned_in_order(turned), journal=tmp_path / "j", epochs=5, **options)
    assert again.document["epochs"] == whole.document["epochs"] and again.document["epochs"][:2] == part.document["epochs"]
    np.testing.assert_array_equal(again.P, whole.P)
    Z, q, c, y = turned
    with pytest.raises(cgam.Error, match="j"):
        cgam.fit(Z, q + 1, y, c, journal=tmp_path / "j", epochs=5, **options)


def turned_in_order(turned):
    Z, q, c, y = turned
    return Z, q, y, c


def test_fit_names_bad_input(turned, tmp_path):
    Z, q, c, y = turned
    for words, given, options in [("target: shape", (Z, q, y[:, None], c), {}), ("target: dtype", (Z, q, y * 0.5, c), {}),
                                  ("queries: queries have d = 5", (Z, q[:, :5], y, c), {}), ("number of contexts is 9", (Z, q, y, c[:9]), {}),
                                  ("target", (Z, q, y + 1, c), {}), ("rank", (Z, q, y, c), {"rank": 9}),
                                  ("wrong", (Z, q, y, c), {"learn": "wrong"}), ("safetensors", (Z, q, y, c), {"out": tmp_path / "x"})]:
        with pytest.raises(ValueError, match=words):
            cgam.fit(*given, epochs=1, **options)
