"""Networks from Python: energies and gradients against NumPy, flows, functions in Python."""
import gc
import threading
import time

import numpy as np
import pytest

import cgam
from cgam.net import (Attention, Bias, Bilinear, Clamp, Coupling, Custom, Gram, Hidden, Layer, LowRank, Net,
                      SelfEnergy, Tensor)


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


class LogCosh:
    """What the library has as tanh, in Python."""

    def __init__(self, beta=1.0):
        self.beta = beta

    def value(self, x):
        return np.log(np.cosh(self.beta * x)).sum() / self.beta

    def activation(self, x):
        return np.tanh(self.beta * x)

    def hessian(self, x, v):
        return self.beta * (1 - np.tanh(self.beta * x) ** 2) * v


@pytest.fixture
def parts(rng):
    """A network of every kind of synapse, and its energy by hand."""
    W, S, Z = rng.standard_normal((4, 6)), rng.standard_normal((6, 6)), rng.standard_normal((6, 3))
    T, a = rng.standard_normal((4, 6, 6)), rng.standard_normal(6)
    S = S + S.T
    U, w = [rng.standard_normal((2, 4)), rng.standard_normal((2, 6))], rng.standard_normal(2)
    H = rng.standard_normal((5, 6))
    net = Net({"x": Layer(4, "tanh"), "y": Layer(6, "softmax", beta=2.0), "z": Layer(6, tau=0.5),
               "i": Layer((3, 2)), "k": Layer((4, 2))},
              {"b": Bilinear("x", "y", W, 0.7), "s": SelfEnergy("z", S, 0.1),
               "g": Gram("z", Z, 0.2, diagonal=(Z * Z).sum(1)), "c": Coupling("y", "z", 0.3),
               "a": Bias("z", a), "t": Tensor(["x", "y", "z"], T, 0.1), "l": LowRank(["x", "z"], U, w, 0.1),
               "h": Hidden("z", H, "softmax", 0.5, beta=3.0), "att": Attention("i", "k", beta=1.5)})

    def energies(x, y, z, i, k):
        lse = lambda v, beta: np.log(np.exp(beta * v).sum()) / beta
        ax, ay, az = np.tanh(x), softmax(2.0 * y), z
        return {
            "x": x @ ax - np.log(np.cosh(x)).sum(), "y": y @ ay - lse(y, 2.0), "z": z @ z / 2,
            "i": (i * i).sum() / 2, "k": (k * k).sum() / 2,
            "b": -0.7 * ax @ W @ ay, "s": 0.05 * az @ S @ az,
            "g": 0.1 * az @ (Z @ Z.T - np.diag((Z * Z).sum(1))) @ az, "c": -0.3 * ay @ az, "a": -a @ az,
            "t": -0.1 * np.einsum("ijk,i,j,k", T, ax, ay, az),
            "l": -0.1 * (w * (U[0] @ ax) * (U[1] @ az)).sum(), "h": -0.5 * lse(H @ az, 3.0),
            "att": -sum(lse(k @ q, 1.5) for q in i)}

    return net, energies


def test_energies_by_part(parts, rng):
    net, energies = parts
    x = {name: rng.standard_normal(layer.shape) for name, layer in net.layers.items()}
    values = net.values(x)
    want = energies(*x.values())
    for name, energy in want.items():
        assert values.parts[name] == pytest.approx(energy, abs=1e-12), name
    assert values.energy == pytest.approx(sum(want.values()), abs=1e-11)
    assert values.power <= 0
    both = net.values({name: np.stack([v, 2 * v]) for name, v in x.items()})
    assert both.energy[0] == values.energy and both.rate["i"].shape == (2, 3, 2)


def test_currents_are_gradients(parts, rng):
    """dE = (x - current)' (hess L) dx, by differences of the energy; z has the identity."""
    net, _ = parts
    x = {name: rng.standard_normal(layer.shape) for name, layer in net.layers.items()}
    values = net.values(x)
    dz = 1e-5 * rng.standard_normal(6)
    up, down = (float(net.energy(dict(x, z=x["z"] + s * dz))) for s in (1, -1))
    assert (up - down) / 2 == pytest.approx((x["z"] - values.current["z"]) @ dz, rel=1e-6)
    v = rng.standard_normal(net.size)
    state = net.state(x)
    rate = lambda at: np.concatenate([r.ravel() for r in net.values(at).rate.values()])
    numeric = (rate(state + 1e-6 * v) - rate(state - 1e-6 * v)) / 2e-6
    np.testing.assert_allclose(net.jacobian(state, v), numeric, atol=1e-6)


def test_flow_rests_where_recall_does(rng):
    Z = rng.standard_normal((12, 5))
    q, c = rng.standard_normal(5), rng.standard_normal(5)
    alpha, lam, beta = 0.02, 0.4, 1.5
    net = Net({"c": Layer(5), "s": Layer(12), "r": Layer(12, "softmax", beta=beta), "q": Layer(5)},
              {"h1": Bilinear("s", "c", Z), "h2": Gram("s", Z, alpha, diagonal=(Z * Z).sum(1)),
               "h3": Coupling("s", "r", lam), "h4": Bilinear("r", "q", Z)})
    flow = net.flow({}, clamps=[Clamp("c", c), Clamp("q", q)], watch="r", record=True, t_end=1000.0)
    want = cgam.Bank(Z).recall(q, c, mode="coupled", alpha=alpha, lam=lam, beta=beta, vectors=True)
    assert flow.end == "steady" and flow.energy_rise <= 1e-9 and flow.winner == want.winner
    np.testing.assert_allclose(softmax(beta * flow.layers["r"]), want.p_all, atol=1e-6)
    path = flow.trajectory
    assert np.all(np.diff(path.energy) <= 1e-9) and path.states["r"].shape == (len(path.time), 12)
    np.testing.assert_allclose(sum(path.parts.values()), path.energy, atol=1e-10)
    assert net.eigenvalues({"c": c, "q": q, "s": flow.layers["s"], "r": flow.layers["r"]}, 3,
                           clamped=["c", "q"])[0] < 0
    several = net.flow({"s": rng.standard_normal((3, 12))}, clamps=[Clamp("c", c), Clamp("q", q)])
    assert [f.end for f in several] == ["steady"] * 3
    assert "Flow(end='steady'" in repr(flow) and "<table>" in flow._repr_html_()


def test_functions_in_python(rng):
    W = rng.standard_normal((3, 4))

    def energy(a, b):
        return -a @ W @ b, [-W @ b, -W.T @ a]

    start = rng.standard_normal(7)
    ours = Net({"x": Layer(3, LogCosh(1.5)), "y": Layer(4)}, {"w": Custom(["x", "y"], energy)})
    library = Net({"x": Layer(3, "tanh", beta=1.5), "y": Layer(4)}, {"w": Bilinear("x", "y", W)})
    for key in ("energy", "power"):
        assert getattr(ours.values(start), key) == pytest.approx(getattr(library.values(start), key), abs=1e-12)
    a, b = ours.flow(start, t_end=5.0), library.flow(start, t_end=5.0)
    assert a.end == b.end
    np.testing.assert_allclose(a.layers["x"], b.layers["x"], atol=1e-6)
    batch = ours.flow(np.stack([start] * 4), t_end=1.0)
    assert batch[3].energy_end == batch[0].energy_end


def test_functions_may_keep_what_they_are_given(rng):
    kept, said = [], []

    class Keeping(LogCosh):
        def value(self, x):
            kept.append(x)
            said.append(x.tolist())
            return super().value(x)

        def activation(self, x):
            kept.append(x)
            said.append(x.tolist())
            return super().activation(x)

    def energy(a):
        kept.append(a)
        said.append(a.tolist())
        return float(a @ a), [2 * a]

    net = Net({"x": Layer(3000, Keeping())}, {"f": Custom(["x"], energy)})
    net.flow(rng.standard_normal(3000), t_end=0.5)
    del net
    assert len(kept) > 20 and all(a.tolist() == b for a, b in zip(kept, said))

    class Broken(LogCosh):
        def activation(self, x):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as raised:
        Net({"x": Layer(2, Broken())}, {}).values([1.0, 2.0])
    views = [v for entry in raised.traceback for v in entry.locals.values() if isinstance(v, memoryview)]
    assert len(views) == 2
    for view in views:
        with pytest.raises(ValueError, match="released"):
            view.tolist()


@pytest.mark.parametrize("same", (False, True))
@pytest.mark.parametrize("stride", (1, (2, 3)))
def test_convolutions(rng, same, stride):
    K, image = rng.standard_normal((4, 2, 3, 3)), rng.standard_normal((7, 8, 2))
    down, across = (stride, stride) if stride == 1 else stride
    rows, columns = (-(-7 // down), -(-8 // across)) if same else ((7 - 3) // down + 1, (8 - 3) // across + 1)
    padded = image
    if same:  # as much before as after, the odd one after
        pads = [max((count - 1) * step + 3 - size, 0)
                for count, step, size in ((rows, down, 7), (columns, across, 8))]
        padded = np.pad(image, [(p // 2, p - p // 2) for p in pads] + [(0, 0)])
    want = np.array([[np.einsum("oiyx,yxi->o", K, padded[r * down:r * down + 3, c * across:c * across + 3])
                      for c in range(columns)] for r in range(rows)])
    conv = cgam.net.Conv(K, (7, 8), stride=stride, same=same)
    net = Net({"y": Layer(want.shape), "x": Layer(image.shape)}, {"w": Bilinear("y", "x", conv)})
    np.testing.assert_allclose(net.values({"x": image}).current["y"], want, atol=1e-12)
    hidden = Net({"x": Layer(image.shape)}, {"w": Hidden("x", conv, "identity")})
    assert float(hidden.values({"x": image}).parts["w"]) == pytest.approx(-0.5 * (want**2).sum())


def test_wrong_convolutions(rng):
    K = rng.standard_normal((4, 2, 3, 3))
    for wrong in (lambda: cgam.net.Conv(K[0], (7, 8)), lambda: cgam.net.Conv(K, (7,)),
                  lambda: cgam.net.Conv(K, (7, 8), stride=0), lambda: Net({"x": Layer((7, 8, 2))}, {
                      "w": Hidden("x", cgam.net.Conv(K, (8, 8)), "identity")}), lambda: Net({"x": Layer((2, 2, 2))}, {
                          "w": Hidden("x", cgam.net.Conv(K, (2, 2)), "identity")}),
                  lambda: Net({"x": Layer((7, 8, 2))}, {"w": Hidden("x", cgam.net.Conv(K, (-7, -8)), "identity")})):
        with pytest.raises(ValueError):
            wrong()


@pytest.mark.parametrize("method", ["adams", "bdf", "rk4", "euler"])
@pytest.mark.parametrize("batch", [1, 8])
def test_an_exception_ends_a_flow(method, batch):
    """It is no number out of range, after which smaller steps are tried; nothing of it is left for later calls."""
    calls = []

    def once(a):
        calls.append(1)
        if len(calls) == 12:
            raise SystemExit("in a callback")
        return float(a @ a), [2 * a]

    net = Net({"x": Layer(3, "tanh")}, {"f": Custom(["x"], once)})
    with pytest.raises(SystemExit, match="in a callback"):
        net.flow(np.ones((batch, 3)), method=method, t_end=5.0, step=0.1)
    with pytest.raises(ValueError, match="t_end"):
        net.flow(np.ones(3), t_end=-1.0)
    assert net.flow(np.ones(3), method=method, t_end=5.0, step=0.1).end in ("horizon", "steady")


def test_exceptions_of_threads_are_their_own():
    class Mine(Exception):
        pass

    def fail(a):
        time.sleep(0.001)  # others come in between
        raise Mine(threading.get_ident())

    net, wrong = Net({"x": Layer(3)}, {"f": Custom(["x"], fail)}), []

    def work():
        for _ in range(40):
            try:
                net.values(np.ones(3))
            except Exception as error:
                if error.args != (threading.get_ident(),):
                    wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_exceptions_in_functions_come_back(rng):
    class Broken(LogCosh):
        def activation(self, x):
            raise ZeroDivisionError("in a callback")

    net = Net({"x": Layer(2, Broken())}, {"b": Bias("x", [1.0, 2.0])})
    for _ in range(3):
        with pytest.raises(ZeroDivisionError, match="in a callback"):
            net.values([1.0, 2.0])
        with pytest.raises(ZeroDivisionError):
            net.flow([1.0, 2.0])
    wrong = Net({"x": Layer(2)}, {"f": Custom(["x"], lambda a: ("no number", [a]))})
    with pytest.raises(ValueError):
        wrong.values([1.0, 2.0])
    for gradients in ([np.ones(3)], [], [np.ones(2), np.ones(2)]):
        short = Net({"x": Layer(2)}, {"f": Custom(["x"], lambda a, g=gradients: (0.0, g))})
        with pytest.raises(ValueError):
            short.values([1.0, 2.0])


def test_who_is_stuck_says_why():
    net = cgam.Net({"x": cgam.Layer(3)}, {"b": cgam.net.Bias("x", [1.0, 2.0, 3.0])})
    assert net.flow().reason == ""
    for flow in net.flow(np.ones((4, 3)), rtol=1e-16, atol=1e-18):
        assert flow.end == "stuck" and "accuracy" in flow.reason


def test_cycles_are_collected():
    import weakref

    class Own(LogCosh):
        pass

    def make():
        lagrangian = Own()
        net = Net({"x": Layer(2, lagrangian)}, {"b": Bias("x", [1.0, 2.0])})
        lagrangian.net = net
        return weakref.ref(lagrangian)

    alive = make()
    gc.collect()
    assert alive() is None


def test_wrong_networks():
    W = np.ones((2, 3))
    for layers, synapses, word in (
            ({"x": Layer(2, "none")}, {}, "unknown Lagrangian 'none'"),
            ({"x": Layer(2, "softmax", gamma=1.0)}, {}, "no parameter"),
            ({"x": Layer(2)}, {"b": Bilinear("x", "y", W)}, "no layer 'y'"),
            ({"x": Layer(2), "y": Layer(2)}, {"b": Bilinear("x", "y", W)}, "2 x 3"),
            ({"x": Layer(2, tau=-1.0)}, {}, "tau"),
            ({"x": Layer(2)}, {"a": Bias("x", [1.0])}, r"expected \(2,\)"),
            ({"x": Layer(2)}, {"a": Attention("x", "x")}, "two axes"),
            ({"x": Layer((2, 3))}, {"a": Bias("x", np.ones((3, 2)))}, r"bias of shape \(3, 2\)"),
            ({"x": Layer(2), "y": Layer(3)}, {"t": Tensor(["x", "x", "y"], np.ones((1, 4, 3)))}, r"\(2, 2, 3\)"),
            ({"x": Layer(2), "y": Layer(3)}, {"t": Tensor(["x", "y", "y"], np.ones((3, 2, 3)))}, r"\(2, 3, 3\)"),
            ({"x": Layer(())}, {}, "axes")):
        with pytest.raises((ValueError, TypeError), match=word):
            Net(layers, synapses)
    for wrong in (dict(WQ=np.ones((1, 2, 3))), dict(WK=np.ones((1, 2, 3))), dict(WQ=1.0, WK=1.0),
                  dict(WQ=np.ones((4, 2, 3)), WK=np.ones((2, 4, 3)))):
        with pytest.raises(ValueError, match="WQ"):
            Attention("x", "x", **wrong)
    with pytest.raises(ValueError, match="T: shape"):
        Tensor(["x", "x"], 1.0)
    assert Layer(np.int64(5)).shape == Layer([np.uint8(5)]).shape == (5,)
    with pytest.raises(TypeError):
        Layer(2.5)
    for error, options in ((ValueError, dict(axes=2**40)), (TypeError, dict(axes=0.5)), (TypeError, dict(tau="1"))):
        with pytest.raises(error):
            Net({"x": Layer(2, **options)}, {})
    with pytest.raises(TypeError):
        Net({"x": Layer((2, 2))}, {"a": Attention("x", "x", beta="1")})
    net = Net({"x": Layer(2)}, {})
    for call in (lambda: net.values([1.0]), lambda: net.values({"y": [1.0]}), lambda: net.values({"x": np.ones(3)}),
                 lambda: net.flow(method="x"), lambda: net.flow(stop=["x"]), lambda: net.flow(t_end=-1.0),
                 lambda: net.flow(clamps=[Clamp("y")]), lambda: net.values([np.nan, 1.0]),
                 lambda: net.flow(clamps=[Clamp("x", [1.0])]), lambda: net.values(clamped=["y"])):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(TypeError, match="no option"):
        net.flow(speed=3)
    assert "softmax" in cgam.net.lagrangians()


# ---- files and training

def every_kind(rng):
    """A network with every synapse that a file can hold, and a start."""
    Z = rng.standard_normal((3, 4))
    layers = {"x": cgam.Layer(4, "tanh", beta=0.8, tau=2.0), "h": cgam.Layer(3, "softmax", beta=1.5, scale=0.7),
              "a": cgam.Layer((2, 3), "identity"), "b": cgam.Layer((4, 3), "layer_norm", gamma=0.5, axes=1),
              "i": cgam.Layer((4, 4, 1)), "o": cgam.Layer((2, 2, 2))}
    n = cgam.net
    return cgam.Net(layers, {
        "bilinear": n.Bilinear("h", "x", Z, gain=0.5), "self": n.SelfEnergy("x", np.eye(4) * 0.3), "gram": n.Gram("h", Z),
        "apart": n.Gram("h", 0.5 * Z, 0.1, diagonal=(0.25 * Z**2).sum(1)), "coupling": n.Coupling("a", "a", 0.01),
        "bias": n.Bias("a", rng.standard_normal((2, 3))), "tensor": n.Tensor(["x", "h", "h"], 0.1 * rng.standard_normal((4, 3, 3))),
        "lowrank": n.LowRank(["x", "h"], [rng.standard_normal((2, 4)), rng.standard_normal((2, 3))], [0.1, 0.2]),
        "plain": n.LowRank(["x", "h"], [rng.standard_normal((2, 4)), rng.standard_normal((2, 3))], gain=0.1), "hidden": n.Hidden("x", Z, "softmax", 0.2, beta=2.0),
        "attention": n.Attention("a", "b", beta=0.7, gain=0.3),
        "heads": n.Attention("a", "b", WQ=rng.standard_normal((2, 2, 3)), WK=rng.standard_normal((2, 2, 3)), gain=0.1),
        "conv": n.Bilinear("o", "i", n.Conv(rng.standard_normal((2, 1, 2, 2)), (4, 4), stride=2))})


def test_a_file_holds_every_kind_of_synapse(rng, tmp_path, program):
    net = every_kind(rng)
    x = 0.3 * rng.standard_normal(net.size)
    net.save(tmp_path / "net.json", x)
    document, _ = program("net", "run", tmp_path / "net.json", "--t-end", "1e-9")
    assert document["energy_start"] == pytest.approx(float(net.energy(x)), rel=1e-12)
    again = cgam.net.net_file.trained(net, str(tmp_path / "net.json"))
    assert again.energy(x) == net.energy(x) and again.layers["h"].params == {"beta": 1.5}
    with pytest.raises(ValueError, match="must end in .json"):
        net.save(tmp_path / "net")
    with pytest.raises(ValueError, match="start: 2 states"):
        net.save(tmp_path / "net.json", np.stack([x, x]))
    own = cgam.Net({"x": cgam.Layer(2)}, {"f": cgam.net.Custom(["x"], lambda a: (0.0, [a]))})
    with pytest.raises(ValueError, match="f: an energy of your own"):
        own.save(tmp_path / "own.json")
    gram = cgam.Net({"x": cgam.Layer(2)}, {"g": cgam.net.Gram("x", np.eye(2), diagonal=[1.0, 2.0])})
    with pytest.raises(ValueError, match="g: a diagonal"):
        gram.save(tmp_path / "gram.json")


def test_training_has_the_bits_of_the_command_line(rng, tmp_path, program):
    W = rng.standard_normal((5, 6))
    net = cgam.Net({"pixels": cgam.Layer((2, 3)), "letters": cgam.Layer(5, "softmax", beta=0.5, tau=0.5)},
                   {"memories": cgam.net.Bilinear("letters", "pixels", W)})
    data = rng.standard_normal((20, 2, 3))
    start = {"letters": rng.standard_normal(5)}
    options = dict(clamp="pixels", read="pixels", learn=["memories", "letters.beta"], noise=0.1, steps=2, step_size=0.3, epochs=4,
                   batch=8, rate=0.05, test=data[:5])
    done = net.train(data, start=start, **options)
    assert done.document["train"]["loss"] < done.document["before"]["loss"] and "saved" not in done.document
    changed, beta = done.net.synapses["memories"].arrays[0], done.net.layers["letters"].params["beta"]
    assert not np.array_equal(changed, W) and beta != 0.5 and net.synapses["memories"].arrays[0] is not changed
    net.save(tmp_path / "net.json", start)
    np.save(tmp_path / "data.npy", data.reshape(20, 6))
    line, _ = program("net", "train", tmp_path / "net.json", "--data", tmp_path / "data.npy", "--clamp", "pixels", "--read", "pixels",
                      "--learn", "memories,letters.beta", "--noise", 0.1, "--steps", 2, "--step-size", 0.3, "--epochs", 4, "--batch", 8,
                      "--rate", 0.05, "--out", tmp_path / "out.json")
    assert line["epochs"] == done.document["epochs"]
    by_file = cgam.net.net_file.trained(net, str(tmp_path / "out.json"))
    np.testing.assert_array_equal(by_file.synapses["memories"].arrays[0], changed)
    assert by_file.layers["letters"].params["beta"] == beta
    done.net.flow({"pixels": data[0]})  # it is a network like any other


@pytest.mark.parametrize("method", ["implicit", "equilibrium"])
def test_a_network_learns_classes(rng, method):
    centres = 2 * rng.standard_normal((3, 4))
    y = rng.integers(0, 3, 60)
    net = cgam.Net({"x": cgam.Layer(4), "y": cgam.Layer(3, "softmax")}, {"W": cgam.net.Bilinear("y", "x", np.zeros((3, 4)))})
    done = net.train(centres[y] + 0.3 * rng.standard_normal((60, 4)), y, clamp="x", read="y", learn="W", method=method, epochs=10,
                     rate=0.1)
    assert done.document["before"]["accuracy"] < 0.7 and done.document["train"]["accuracy"] > 0.95
    assert done.net.synapses["W"].arrays[0].shape == (3, 4)


def test_training_names_bad_input(rng):
    net = cgam.Net({"x": cgam.Layer(4), "y": cgam.Layer(3, "softmax")}, {"W": cgam.net.Bilinear("y", "x", np.zeros((3, 4)))})
    data, y = rng.standard_normal((6, 4)), np.array([0, 1, 2, 0, 1, 2])
    for words, given, options in [("no layer 'z'", (data, y), {"read": "z"}), ("'V'", (data, y), {"learn": "V"}),
                                  ("loss denoise compares layer 'y'", (data,), {}), ("3", (data[:, :3], y), {}),
                                  ("dtype float64, expected integers", (data, np.ones(6)), {}), ("label", (data, y + 1), {}),
                                  ("backprop", (data, y), {"method": "backprop"})]:
        with pytest.raises(ValueError, match=words):
            net.train(*given, **{"clamp": "x", "read": "y", "learn": "W", "epochs": 1, **options})
