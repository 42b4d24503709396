"""Recalls against NumPy and against the program."""
# ctest: timeout=300
import dataclasses
import pickle

import numpy as np
import pytest

import cgam
from conftest import CHECKED


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def reference(Z, q, c, alpha, beta, lam, mode):
    """Dense, from the equations: A = I + alpha (G - diag G)."""
    G = Z @ Z.T
    A = np.eye(len(Z)) + alpha * (G - np.diag(np.diag(G)))
    u, b = Z @ c, Z @ q
    p = softmax(beta * (b + lam * np.linalg.solve(A, u)))
    s = np.linalg.solve(A, u)
    if mode == "coupled":
        for _ in range(20000):
            s = np.linalg.solve(A, u + lam * p)
            new = softmax(beta * (b + lam * s))
            done = np.abs(new - p).max() < 1e-15
            p = new
            if done:
                break
    return p, s, b + lam * s


@pytest.mark.parametrize("mode", ["first", "coupled"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_numpy_agrees(rng, mode, dtype):
    for alpha, lam in ((0.0, 0.3), (0.2, 0.3), (0.4, 0.5)):
        Z = rng.standard_normal((30, 8))
        Z = (Z / np.linalg.norm(Z, axis=1, keepdims=True)).astype(dtype)
        q, c = rng.standard_normal(8), rng.standard_normal(8)
        r = cgam.Bank(Z).recall(q, c, mode=mode, alpha=alpha, lam=lam, beta=2.5, vectors=True,
                                readout=True, top=4)
        p, s, scores = reference(Z.astype(float), q, c, alpha, 2.5, lam, mode)
        np.testing.assert_allclose(r.p_all, p, rtol=0, atol=2e-11)
        np.testing.assert_allclose(r.s, s, rtol=0, atol=1e-10)
        np.testing.assert_allclose(r.r, scores, rtol=0, atol=1e-10)
        np.testing.assert_allclose(r.readout, Z.astype(float).T @ p, atol=1e-10)
        order = np.argsort(-p)
        assert r.winner == order[0] and list(r.top_index) == list(order[:4])
        assert r.p == pytest.approx(p[order[0]], abs=2e-11)
        assert r.neff_ipr == pytest.approx(1 / (p**2).sum(), rel=1e-9)
        assert r.p_lower_bound <= r.p + 1e-12 and r.proved["p_lower_bound"]


def same(document, recall):
    """A query of the program's document has the bits of a Recall."""
    for key in ("winner", "p", "log_p", "neff_entropy", "neff_ipr", "gap", "gap_raw", "gap_gate",
                "p_lower_bound", "iterations", "newton_steps", "change", "time", "energy_start",
                "energy_end", "energy_rise", "contraction", "local_contraction", "fold_margin", "p_error",
                "end", "unique", "fold_margin_exact", "readout_left_out"):
        ours, theirs = getattr(recall, key), document[key]
        if theirs is None:
            assert ours is None or not np.isfinite(ours), key
        else:
            assert ours == theirs, (key, ours, theirs)
    assert document["top"] == [[i, p] for i, p in recall.top]
    assert document["top_log_p"] == [x if np.isfinite(x) else None for x in recall.top_log_p.tolist()]
    for key in ("support", "exact"):
        assert document.get(key, getattr(recall, key)) == getattr(recall, key), key
    assert {k: v == "proved" for k, v in document["certificates"].items()} == recall.proved


def test_every_field_of_the_library_is_here(rng):
    Z = rng.standard_normal((20, 6))
    bank, q = cgam.Bank(Z), rng.standard_normal(6)
    one, many = bank.recall(q), bank.recall(np.stack([q, -q]))
    for name, kind, _ in cgam.fields("result"):
        name = name.removeprefix("fast.") if not name.startswith("certificates.") else name[13:] + "_proved"
        if kind == "part" or name in ("target", "target_p", "target_rank"):
            continue
        value = getattr(one, name)
        assert name in dir(one)
        mine = getattr(many, name)[0]
        assert value is None or value == mine or (np.isnan(value) and np.isnan(mine)), name
    with pytest.raises(ValueError, match="unknown struct"):
        cgam.fields("nothing")


def test_fast_none_only_and_names(rng, tmp_path):
    Z = rng.standard_normal((300, 16)).astype(np.float32)
    bank, q = cgam.Bank(Z), rng.standard_normal(16)
    exact = bank.recall(q, beta=0.5)
    fast = bank.recall(q, beta=0.5, fast=True)
    assert fast.winner == exact.winner and 0 < fast.rescored <= 300
    assert abs(fast.gap - exact.gap) < 1e-12  # without a sketch a small bank adds up in another order
    assert fast.p_from <= exact.p * (1 + 1e-6) and exact.p * (1 - 1e-6) <= fast.p_to
    narrow = bank.recall(q, beta=0.5, fast=True, tol_p=1e-9)
    assert narrow.p_to - narrow.p_from <= 1e-9 and narrow.rescored >= fast.rescored
    scores = Z.astype(float) @ q
    ghost = bank.recall(q, beta=0.5, none=float(scores.max()) + 1)
    assert ghost.winner is None and ghost.p_none == ghost.p
    assert ghost.p_none == pytest.approx(softmax(0.5 * np.append(scores, scores.max() + 1))[-1], rel=1e-6)
    assert bank.recall(np.stack([q, q]), none=1e6).winner.tolist() == [-1, -1]
    keep = rng.random(300) < 0.3
    for only in (keep, np.flatnonzero(keep), np.flatnonzero(keep).tolist()):
        some = bank.recall(q, beta=0.5, only=only, vectors=True)
        assert some.winner == np.flatnonzero(keep)[scores[keep].argmax()] and some.p_all.shape == (keep.sum(),)
        np.testing.assert_allclose(some.p_all, softmax(0.5 * scores[keep]), rtol=1e-9)
    W = rng.standard_normal((300, 2))
    alone = cgam.Bank(np.ascontiguousarray(Z[keep])).recall(q, [1.0, 2.0], gate_weights=W[keep], alpha=0.001)
    assert bank.recall(q, [1.0, 2.0], gate_weights=W, alpha=0.001, only=keep).gap == pytest.approx(alone.gap)
    names = [f"n{i}" for i in range(300)]
    (tmp_path / "Z.names").write_text("".join(name + "\n" for name in names))
    for given in (names, tmp_path / "Z.names"):
        assert bank.recall(q, names=given, top=2).top_names == [names[i] for i in bank.recall(q, top=2).top_index]
    two = bank.recall(np.stack([q, -q]), names=names, only=["n3", "n7"], top=9)
    assert sorted(two.top_names[1]) == ["n3", "n7"] and sorted(two[0].top_names) == ["n3", "n7"]
    assert exact.top_names is None
    for wrong, words in ((dict(only=[300]), "0 to 299"), (dict(only=[0.5]), "row numbers"), (dict(names=["a"]), "1 names"),
                         (dict(only=["x"], names=names), "named 'x'"), (dict(only=np.zeros(300, bool)), "300 memories")):
        with pytest.raises(ValueError, match=words):
            bank.recall(q, **wrong)


def test_packed_banks_change_and_are_selected(rng, tmp_path):
    Z, path = rng.standard_normal((40, 6)).astype(np.float32), tmp_path / "B.safetensors"
    np.save(tmp_path / "Z.npy", Z)
    (tmp_path / "Z.names").write_text("".join(f"n{i}\n" for i in range(40)))
    year, lang = rng.integers(2000, 2010, 40), rng.choice(["de", "en", "é"], 40)
    np.savez(tmp_path / "c.npz", year=year, lang=lang)
    cgam.run("bank pack", **{"from": str(tmp_path / "Z.npy"), "names": str(tmp_path / "Z.names"),
                             "columns": str(tmp_path / "c.npz"), "sketch": "no", "out": str(path)})
    bank, q = cgam.Bank.open(path), rng.standard_normal(6)
    assert bank.names == [f"n{i}" for i in range(40)] and bank.columns == {"year": "integer", "lang": "text"}
    keep = (lang == "é") | (year >= 2007)
    for options, want in (({"where": "lang = 'é' or year >= 2007"}, keep), ({"except_": ["n3", "n5"]}, ~np.isin(np.arange(40), (3, 5))),
                          ({"where": "year < 2007 and lang != 'é'", "only": np.arange(20)}, ~keep & (np.arange(40) < 20)),
                          ({"only": keep, "except_": "n1"}, keep & (np.arange(40) != 1))):
        got = bank.recall(q, vectors=True, top=40, names=True, **options)
        scores = Z[want].astype(float) @ q
        assert sorted(got.top_index) == np.flatnonzero(want).tolist() and got.top_names == [f"n{i}" for i in got.top_index]
        np.testing.assert_allclose(got.p_all, softmax(scores), rtol=1e-6)
    plain = cgam.Bank(Z)
    assert plain.recall(q, where="year = 2003", columns=tmp_path / "c.npz").winner in np.flatnonzero(year == 2003)
    few, several = bank.recall(q, top=40, min_p=0.03), bank.recall(np.stack([q, q]), top=40, min_p=0.03)
    assert len(few.top_p) < 40 and few.top_p.min() >= 0.03 and several.top == [few.top, few.top] and several[1].top == few.top
    assert bank.sketch().recall(q, fast=True).winner == bank.recall(q).winner
    old = bank.plan()
    bank.add(Z[:2] + 1, names=["x", "y"], columns={"year": [1, 2], "lang": ["de", "it"]})
    assert bank.n == 42 and bank.names[40:] == ["x", "y"] and old.recall(q).winner < 40
    bank.put([40], 100 * q[None].astype(np.float32)).drop(["n0", "n7"])
    assert bank.recall(q).winner == 40 and bank.shape == (40, 6) and bank.whole == 42 and bank.names[7] == ""
    assert bank.recall(q, where="lang = 'it'").winner == 41 and cgam.Bank.open(path).n == 40
    for wrong, words in ((dict(where="lang = 1"), "text"), (dict(where="x = 1"), "no such column at character 1: x"), (dict(except_=["z"]), "named 'z'"),
                         (dict(except_=[42]), "0 to 41"), (dict(metric="l1"), "'dot', 'cosine' or 'l2'"), (dict(metric="l2", alpha=0.1), "alpha 0")):
        with pytest.raises(ValueError, match=words):
            bank.recall(q, **wrong)
    with pytest.raises(ValueError, match="not a file"):
        plain.drop([1])
    assert {"p_lower_bound", "winner"} <= set(dir(several)) & set(dir(few))


@pytest.mark.parametrize("metric", ["cosine", "l2"])
def test_metrics(rng, metric):
    Z, Q, c = rng.standard_normal((50, 7)), rng.standard_normal((3, 7)), rng.standard_normal(7)
    if metric == "cosine":
        b = (Z / np.linalg.norm(Z, axis=1)[:, None]) @ (Q / np.linalg.norm(Q, axis=1)[:, None]).T
    else:
        b = -0.5 * ((Z[:, None] - Q) ** 2).sum(2)
    bank = cgam.Bank(Z)
    for k, got in enumerate(bank.recall(Q, metric=metric, vectors=True, beta=2.0)):
        np.testing.assert_allclose(got.p_all, softmax(2 * b[:, k]), rtol=1e-9)
        np.testing.assert_allclose(bank.recall(Q[k], metric=metric, vectors=True, beta=2.0).r, b[:, k], rtol=1e-9, atol=1e-12)
    gated = bank.recall(Q[0], c, metric=metric, gate_weights=Z, vectors=True, lam=0.5)
    np.testing.assert_allclose(gated.p_all, softmax(b[:, 0] + 0.5 * Z @ c), rtol=1e-9)
    plan = bank.plan(metric=metric)
    for call in (lambda: plan.recall(Q, c), lambda: plan.recall(Q, readout=True), lambda: plan.landscape(Q[0]), lambda: plan.recall(c[:3])):
        with pytest.raises(ValueError):
            call()


def random_call(rng):
    """Z, one query or several, c, normalize, and options of a recall, among them arrays."""
    n, d, B = int(rng.integers(1, 60)), int(rng.integers(1, 20)), int(rng.integers(2, 9))
    dtype = [np.float64, np.float32, np.float16][rng.integers(3)]
    one = bool(rng.integers(2))
    Z, q = rng.standard_normal((n, d)).astype(dtype), rng.standard_normal(d if one else (B, d))
    normalize = bool(rng.integers(2))
    crit = cgam.Bank(Z, normalize=normalize).inspect().alpha_crit
    options = dict(alpha=float(rng.uniform(0, 0.8 * crit if np.isfinite(crit) else 1)) if rng.integers(3) else 0.0,
                   beta=float(rng.uniform(0.1, 5)), lam=float(rng.uniform(0, 1)),
                   mode=["first", "coupled", "flow"][rng.integers(3)], certify=bool(rng.integers(2)))
    if rng.integers(4) == 0:
        options["activation"] = ["sparsemax", "entmax15", "entmax:1.25"][rng.integers(3)]
    width = d
    if rng.integers(3) == 0:
        width = int(rng.integers(1, 6))
        name, rows = [("projection", d), ("gate_weights", n)][rng.integers(2)]
        options[name] = rng.standard_normal((rows, width))
    if rng.integers(3) == 0:
        options["target"] = int(rng.integers(n))
    c = rng.standard_normal(width if one or rng.integers(2) else (B, width))
    return Z, q, c, normalize, options


def words_of(options, folder):
    """The options as the command line takes them, arrays as files."""
    for name, value in options.items():
        word = "--" + {"lam": "lambda"}.get(name, name.replace("_", "-"))
        if isinstance(value, np.ndarray):
            np.save(folder / f"{name}.npy", value)
            yield from (word, folder / f"{name}.npy")
        elif value is not False:
            yield from [word] if value is True else (word, value)


def test_bits_of_the_program(rng, program, tmp_path):
    """200 random calls: the numbers of the command line, bit by bit."""
    for _ in range(20 if CHECKED else 200):
        Z, q, c, normalize, options = random_call(rng)
        bank = cgam.Bank(Z, normalize=normalize)
        document, status = program("recall", *words_of(dict(bank=Z, query=q, context=c, normalize=normalize, top=3,
                                                            **options), tmp_path))
        found = bank.recall(q, c, top=3, **options)
        recalls = list(found) if q.ndim == 2 else [found]
        assert len(recalls) == len(document["queries"])
        for query, recall in zip(document["queries"], recalls):
            same(query, recall)
        assert (status == 1) == any(r.end not in ("direct", "converged", "horizon") for r in recalls)


def test_packed_banks_open(rng, program, tmp_path):
    Z, q = rng.normal(size=(30, 5)), rng.normal(size=(2, 5))
    np.save(tmp_path / "Z.npy", Z)
    program("bank", "pack", "--from", tmp_path / "Z.npy", "--alpha", "0.02", "--out", tmp_path / "Z.safetensors")
    packed, plain = cgam.Bank.open(tmp_path / "Z.safetensors"), cgam.Bank(Z)
    for mode in "first", "coupled":
        for a, b in zip(packed.recall(q, alpha=0.02, mode=mode), plain.recall(q, alpha=0.02, mode=mode)):
            assert a.winner == b.winner and a.p == b.p and a.gap == b.gap


def test_activations(rng):
    bank, q = cgam.Bank(np.eye(4)), np.array([0.0, 2.0, 0.0, 0.0])
    found = bank.recall(q, activation="sparsemax", vectors=True)
    assert found.exact and found.support == 1 and found.p_all.tolist() == [0, 1, 0, 0]
    assert bank.recall(q, activation="softmax").support == 4
    with pytest.raises(ValueError, match="activation is 'relu'"):
        bank.plan(activation="relu")
    with pytest.raises(ValueError, match="order of entmax is 3"):
        bank.plan(entmax=3.0)


def test_landscape_and_branch_are_the_programs(rng, program, tmp_path):
    Z, q, c = rng.standard_normal((12, 4)), rng.standard_normal(4), rng.standard_normal(4)
    for name, x in (("Z", Z), ("q", q), ("c", c)):
        np.save(tmp_path / f"{name}.npy", x)
    files = ("--bank", tmp_path / "Z.npy", "--query", tmp_path / "q.npy", "--context", tmp_path / "c.npy",
             "--beta", 6)
    bank = cgam.Bank(Z)
    document, _ = program("landscape", *files, "--starts", 9, "--seed", 3)
    found = bank.plan("coupled", beta=6, certify=True).landscape(q, c, starts=9, seed=3)
    assert len(found) == len(document["points"]) == len(found.p)
    for point, want in zip(found.points, document["points"]):
        for key in ("index", "energy", "winner", "p", "neff_entropy", "basin", "fold_margin", "p_error"):
            assert point[key] == want[key], key
        assert point["minimum"] == (want["kind"] == "minimum")
    np.testing.assert_allclose(found.p.max(axis=1), found.points["p"], rtol=1e-12)
    for key in ("unique", "unique_proved", "starts", "unresolved", "euler"):
        assert getattr(found, key) == document[key], key
    document, _ = program("recall", *files, "--mode", "anneal")
    branch = bank.plan("anneal", beta=6).branch(q, c)
    want = document["queries"][0]
    assert len(branch.path) == len(want["path"]) > 1
    for point, there in zip(branch.path, want["path"]):
        assert all(point[key] == there[key] for key in there)
    assert branch.transitions == [(t["beta"], t["kind"]) for t in want["transitions"]]
    assert branch.path["beta"][-1] == 6
    for wrong in (lambda: bank.plan("first").landscape(q), lambda: bank.plan("first").branch(q),
                  lambda: bank.plan("coupled").landscape(q[:3]), lambda: bank.plan("anneal").branch(q, c[:2]),
                  lambda: bank.plan("coupled").landscape(q, starts=-1), lambda: bank.plan("coupled").landscape(q, starts=2**63),
                  lambda: bank.plan("coupled").landscape(q, seed=2**64)):
        with pytest.raises(ValueError):
            wrong()


def test_a_landscape_may_be_empty(rng):
    # at such a beta no point can be told from others
    bank = cgam.Bank(rng.standard_normal((5, 1)))
    found = bank.plan("coupled", beta=1e185).landscape([1.0], [0.5], starts=2)
    assert len(found) == 0 and found.p.shape == (0, 5)
    assert found.unique is None and found.unresolved > 0 and len(found.minima) == 0


def test_inspect_is_the_programs(rng, program, tmp_path):
    Z = rng.standard_normal((20, 6))
    np.save(tmp_path / "Z.npy", Z)
    document, _ = program("inspect", "--bank", tmp_path / "Z.npy", "--alpha", 0.05, "--lambda", 0.5)
    found = cgam.Bank(Z).inspect(0.05, lam=0.5)
    for key in ("n", "d", "norm_min", "norm_max", "mu_min", "mu_max", "rank", "alpha_crit", "eta_min",
                "regime", "contraction", "unique", "lambda_unique_max", "beta"):
        assert getattr(found, key) == document[key], key


def test_flow_settles_where_coupled_does(bank, rng):
    q, c = rng.standard_normal(10), rng.standard_normal(10)
    settled = bank.recall(q, c, mode="coupled", alpha=0.2, lam=0.3, vectors=True)
    flown = bank.recall(q, c, mode="flow", alpha=0.2, lam=0.3, vectors=True, t_max=1000.0)
    assert flown.end == "converged"
    np.testing.assert_allclose(flown.p_all, settled.p_all, atol=1e-7)


def test_projection_and_weights(bank, rng):
    q, c, P = rng.standard_normal(10), rng.standard_normal(3), rng.standard_normal((10, 3))
    Z = np.array([bank[i] for i in range(len(bank))])
    one = bank.recall(q, c, projection=P)
    other = bank.recall(q, c, gate_weights=Z @ P)
    plain = bank.recall(q, P @ c)
    assert one.winner == other.winner == plain.winner
    assert one.p == pytest.approx(plain.p, rel=1e-12) and other.p == pytest.approx(plain.p, rel=1e-12)


def test_targets(bank, rng):
    q = rng.standard_normal((4, 10))
    r = bank.recall(q, target=[3, 1, 4, 1])
    assert list(r.focus) == [3, 1, 4, 1]
    assert bank.recall(q[0], target=3).p == r.p[0]
    assert list(bank.recall(q, target=7).focus) == [7] * 4


def test_results_are_frozen_and_show_themselves(bank, rng):
    r = bank.recall(rng.standard_normal(10))
    with pytest.raises(dataclasses.FrozenInstanceError):
        r.winner = 3
    assert repr(r).startswith("Recall(winner=") and len(repr(r)) < 100
    assert "<table>" in r._repr_html_() and "p_lower_bound" in r._repr_html_()
    again = pickle.loads(pickle.dumps(r))
    assert again.p == r.p and again.top == r.top
    assert dataclasses.replace(r, winner=1).winner == 1
    with pytest.raises(AttributeError):
        r.no_such_field
    many = bank.recall(rng.standard_normal((3, 10)))
    assert len(many) == 3 and many.p.shape == (3,) and many.top_p.shape == (3, 5)
    assert repr(many) == "Recalls(winner=int64[3], p=float64[3], gap=float64[3], top_index=int64[3, 5])"
    assert len(many._repr_html_()) < 1000
    assert many.top == [one.top for one in many]
    assert {name: proved[2] for name, proved in many.proved.items()} == many[2].proved
    coupled = bank.recall(rng.standard_normal((3, 10)), mode="coupled", beta=0.01)
    assert coupled.proved.keys() == coupled[0].proved.keys() >= {"p_lower_bound", "unique"}
    assert "<table>" in bank.inspect()._repr_html_()


def test_theory(bank, rng):
    t = cgam.theory
    assert t.separation_bound(50, 2.0, 3.0) == pytest.approx(1 / (1 + 49 * np.exp(-6.0)))
    assert t.separation_bound(50, 2.0, t.separation_threshold(50, 2.0, 0.01)) == pytest.approx(0.99)
    Z = np.array([bank[i] for i in range(len(bank))])
    gate = bank.gate(0.3)
    A = np.eye(50) + 0.3 * (Z @ Z.T - np.diag((Z * Z).sum(1)))
    x = rng.standard_normal(50)
    np.testing.assert_allclose(gate.apply(x), A @ x, atol=1e-12)
    np.testing.assert_allclose(gate.solve(x), np.linalg.solve(A, x), atol=1e-10)
    np.testing.assert_allclose(bank.spectrum().solve(0.3, x), np.linalg.solve(A, x), atol=1e-10)
    np.testing.assert_allclose(gate.solve_range(x[:10]), np.linalg.solve(A, Z @ x[:10]), atol=1e-10)
    p = softmax(x)
    H = A - 0.25 * 2.0 * (np.diag(p) - np.outer(p, p))
    value, proved = t.fold_margin(gate, 2.0, 0.5, p)
    assert proved and value == pytest.approx(np.linalg.eigvalsh(H)[0], abs=1e-8)
    assert t.softmax_norm(p) == pytest.approx(np.linalg.norm(np.diag(p) - np.outer(p, p), 2))
    bias, feedback = t.retrieval_parts(gate, 0.5, x, p)
    np.testing.assert_allclose(bias, 0.5 * np.linalg.solve(A, x), atol=1e-10)
    np.testing.assert_allclose(feedback, 0.25 * np.linalg.solve(A, p), atol=1e-10)
    energy, gradient = t.coupled_energy(gate, 2.0, 0.5, x, p, x)
    eps = 1e-6 * rng.standard_normal(50)
    up, down = (t.coupled_energy(gate, 2.0, 0.5, x, p, x + e)[0] for e in (eps, -eps))
    assert (up - down) / 2 == pytest.approx(gradient @ eps, rel=1e-5)
    xi = rng.standard_normal(10)
    np.testing.assert_allclose(t.hopfield_update(bank, 3.0, xi), Z.T @ softmax(3.0 * Z @ xi), atol=1e-12)
    fixed, iterations, change = t.hopfield_settle(bank, 3.0, xi)
    assert iterations > 1 and change <= 1e-12
    np.testing.assert_allclose(t.hopfield_update(bank, 3.0, fixed), fixed, atol=1e-10)
    assert t.hopfield_energy(bank, 3.0, fixed) <= t.hopfield_energy(bank, 3.0, xi)
    Q, K, V = rng.standard_normal((3, 4)), rng.standard_normal((6, 4)), rng.standard_normal((6, 2))
    W = np.array([softmax(row) for row in Q @ K.T / 2.0])
    np.testing.assert_allclose(t.attention(Q, K, V), W @ V, atol=1e-12)
    assert t.contraction(2.0, 0.5, 0.5) == pytest.approx(0.5)
    assert t.contraction_lambda_max(2.0, 0.5) == pytest.approx(np.sqrt(0.5))
    # 50 memories of norm 1 in 10 dimensions: alpha_crit is 1, and Z x does not reach the critical mode
    assert t.critical(bank)[0] == pytest.approx(1.0)
    assert t.supercritical_winner(bank.spectrum(), 1.1, Z @ xi).index == -1
    assert t.supercritical_winner(bank.spectrum(), 1.1, x).reason is None
    assert t.supercritical_horizon(bank.spectrum(), 1.1, 2.0, x).time > 0
    assert t.stability_margin(0.8, 5, 1, 0.99) == pytest.approx(0.8 - 10 * 0.99 * 0.01)
    assert t.stability_margin(0.8, 5, 1, 0.99, free_query=2) == pytest.approx(0.8 - 0.05 * 18)
    assert t.readout_bound(81, 5, 2, 3) == pytest.approx(480 * np.exp(-10) / (1 + 80 * np.exp(-10)))
    gaps = t.separation_gaps(x, p, 0.5, int(np.argmax(x)))
    assert gaps.sum <= gaps.gap + 1e-15
    assert np.isnan(t.coupled_critical(bank, 0.5, 2.0).alpha)
    assert t.fold(bank, 0.2, 2.0, x, p, alpha_max=0.5).steps >= 1
    assert t.context_margin(gate) < 0 < t.context_margin(bank.gate(0.3), 0.01 * np.eye(10))
    s = bank.spectrum().transient(0.3, 200.0, x)
    np.testing.assert_allclose(s, np.linalg.solve(A, x), atol=1e-9)
    assert t.dense_energy(bank, 1.0, 3.0, t.dense_update(bank, 1.0, 3.0, xi)) <= t.dense_energy(
        bank, 1.0, 3.0, xi)
    for power in (-1.0, 0.0, 1.0, np.nan):  # it is no memory of exponentials then
        for f in (t.dense_energy, t.dense_update):
            with pytest.raises(cgam.InputError, match="power"):
                f(bank, 1.0, power, xi)
    star = t.hopfield_bounds(bank, 30.0, 3, Z[3], Z[3])
    assert star.separation == pytest.approx(1 - np.sort(Z @ Z[3])[-2])


def test_verbs(tmp_path, rng):
    assert "recall" in cgam.verbs() and "study coupled" in cgam.verbs()
    np.save(tmp_path / "Z.npy", np.eye(3))
    np.save(tmp_path / "q.npy", np.eye(3)[1])
    document = cgam.run("recall", bank=tmp_path / "Z.npy", query=tmp_path / "q.npy", lam=0.5, top=1,
                        max_iter=7)
    assert document["queries"][0]["winner"] == 1 and document["lambda"] == 0.5
    assert not document.negative
    assert "recall" in cgam.run("help", "recall")["text"]
    for words, message in ((("recal",), "did you mean recall"), (("recall",), "query is missing")):
        with pytest.raises(cgam.Error, match=message):
            cgam.run(*words)
    with pytest.raises(ValueError, match="alpha"):
        cgam.run("recall", bank="x.npy", query="x.npy", alpha=-1)
    study = cgam.study("separation", trials=4, out=tmp_path / "s", figures="no", threads=1)
    again = cgam.study("separation", trials=4, out=tmp_path / "t", figures="no", threads=2)
    assert study["accuracy"] == again["accuracy"]
    doc = cgam.study("rivals", trials=2, banks=4, n=6, d=3, sigma_q=[0.5, 1], files="no", tables="yes")
    accuracy = doc.table("accuracy")
    assert accuracy["accuracy"].shape == accuracy["mechanism"].shape == (20,)
    assert accuracy["mechanism"][2] == "query-mixing" and np.isnan(accuracy["second"][2])
    assert accuracy["accuracy"].dtype == float and list(accuracy["sigma_q"][:2]) == [0.5, 1]
    np.testing.assert_array_equal(accuracy["accuracy"][2:4], doc["mechanisms"][1]["accuracy"])
    with pytest.raises(KeyError, match="there are accuracy, wrong"):
        doc.table("nothing")
    with pytest.raises(KeyError, match="give tables"):
        study.table("accuracy")


def test_plots(bank, rng):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    axes = bank.recall(rng.standard_normal(10)).plot()
    assert len(axes.patches) == 5
    net = cgam.Net({"x": cgam.Layer(2)}, {"b": cgam.net.Bias("x", [1.0, 2.0])})
    assert len(net.flow(record=True).trajectory.plot().lines) == 3
    pyplot.close("all")
