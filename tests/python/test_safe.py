"""What must not happen: copies, leaks, crashes, a library that does not stop."""
# ctest: labels=nightly timeout=300
import gc
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
import types
import weakref

import numpy as np
import pytest

import cgam
from cgam import _core
from conftest import CHECKED


def rss():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


# ---- arrays

def test_no_copies(rng):
    Z = rng.standard_normal((40, 6))
    bank = cgam.Bank(Z)
    before = bank.recall(np.ones(6), vectors=True).r
    Z[5] *= 3  # forbidden to users, and proof that the rows are shared
    assert bank.recall(np.ones(6), vectors=True).r[5] == pytest.approx(3 * before[5])


def test_a_large_bank_is_not_copied():
    Z = np.ones((32000, 2048), np.float32)  # 262 MB
    Z[7] *= 2
    before = rss()
    bank = cgam.Bank(Z)
    r = bank.recall(np.ones(2048), beta=1e-3)
    assert r.winner == 7
    assert rss() - before < 60e6


def test_layouts(rng):
    Z = rng.standard_normal((12, 8))
    q = rng.standard_normal(8)
    want = cgam.Bank(Z[::2].copy()).recall(q)
    assert cgam.Bank(Z[::2]).recall(q).p == want.p
    assert cgam.Bank(Z[:, :4]).recall(q[:4]).p == cgam.Bank(Z[:, :4].copy()).recall(q[:4]).p
    for wrong, word in ((Z.T, "Fortran"), (np.asfortranarray(Z), "Fortran"), (Z[::-1], "backwards"),
                        (Z[:, ::2], "side by side"), (Z[0], "two axes"), (Z[None], "two axes"),
                        (Z.astype(int), "int64"), (Z.astype(">f8"), "byte order"),
                        (Z.astype(complex), "complex128"), (Z.astype(np.uint16), "uint16"),
                        (Z[:0], "empty"), (Z[:, :0], "empty"), ("text", "two axes"), (None, "two axes"),
                        (Z > 0, "bool"), (np.full((2, 2), np.nan), "row 0, column 0")):
        with pytest.raises(ValueError, match=word):
            cgam.Bank(wrong)
    assert cgam.Bank(np.asfortranarray(Z), copy=True).recall(q).p == cgam.Bank(Z).recall(q).p
    bits = (Z.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    wide = (bits.astype(np.uint32) << 16).view(np.float32)
    assert cgam.Bank(bits, dtype="bf16").dtype == "bf16"
    assert cgam.Bank(bits, dtype="bf16").recall(q).p == pytest.approx(cgam.Bank(wide).recall(q).p, rel=1e-12)
    with pytest.raises(ValueError, match="not f32"):
        cgam.Bank(Z, dtype="f32")


def halves(rng):
    """bfloat16 numbers (12, 8) as bits, and by value."""
    bits = (rng.standard_normal((12, 8)).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return bits, (bits.astype(np.uint32) << 16).view(np.float32)


class Bfloat16(np.ndarray):
    """uint16 under a dtype that has the name and the size of the one of ml_dtypes, and no more of it."""

    @property
    def dtype(self):
        return types.SimpleNamespace(name="bfloat16", isnative=True, itemsize=2, kind="V")

    @dtype.setter
    def dtype(self, other):  # of a view
        np.ndarray.dtype.__set__(self, other)


def test_bfloat16_by_name(rng):
    bits, wide = halves(rng)
    named = bits.view(Bfloat16)
    bank = cgam.Bank(named)
    assert bank.dtype == "bf16"
    assert bank.recall(np.ones(8)).p == cgam.Bank(bits, dtype="bf16").recall(np.ones(8)).p
    np.testing.assert_array_equal([bank[i] for i in range(12)], wide)
    with pytest.raises(ValueError, match="not f16"):
        cgam.Bank(named, dtype="f16")


def test_bfloat16_of_ml_dtypes(rng):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    bits, wide = halves(rng)
    bank = cgam.Bank(wide.astype(ml_dtypes.bfloat16))
    assert bank.dtype == "bf16"
    assert bank.recall(np.ones(8, ml_dtypes.bfloat16)).p == cgam.Bank(bits, dtype="bf16").recall(np.ones(8)).p


def test_torch_tensors(rng):
    torch = pytest.importorskip("torch")
    Z = torch.from_numpy(rng.standard_normal((12, 8)).astype(np.float32))
    q = torch.ones(8, dtype=torch.float64)
    bank, other = cgam.Bank(Z), cgam.Bank(Z.numpy().copy())
    assert bank.dtype == "f32" and bank.recall(q).p == other.recall(np.ones(8)).p
    before = bank.recall(q, vectors=True).r[5]
    Z[5] *= 3  # forbidden to users, and proof that the rows are shared
    assert bank.recall(q, vectors=True).r[5] == pytest.approx(3 * before)
    del Z
    gc.collect()
    assert bank.recall(q).winner >= 0
    assert cgam.Bank(torch.eye(3, dtype=torch.float16)).dtype == "f16"
    for wrong in (torch.eye(3, dtype=torch.int32), torch.ones((3, 3), dtype=torch.bfloat16), torch.eye(3, requires_grad=True),
                  torch.eye(3).to_sparse(), torch.ones(2, 3).T):
        with pytest.raises(ValueError, match="^bank: "):
            cgam.Bank(wrong)


def test_interfaces_and_owners(rng, tmp_path):
    Z = rng.standard_normal((12, 8)).astype(np.float32)
    q = rng.standard_normal(8)
    want = cgam.Bank(Z).recall(q).p

    class Interface:
        def __init__(self, a):
            self.a = a
            self.__array_interface__ = a.__array_interface__

    class Dlpack:
        def __init__(self, a):
            self.a = a

        def __dlpack__(self, **k):
            return self.a.__dlpack__(**k)

        def __dlpack_device__(self):
            return self.a.__dlpack_device__()

    for kind in (Interface, Dlpack):
        bank = cgam.Bank(kind(Z.copy()))
        gc.collect()
        assert bank.recall(q).p == want
    np.save(tmp_path / "Z.npy", Z)
    mapped = cgam.Bank(np.load(tmp_path / "Z.npy", mmap_mode="r"))
    gc.collect()
    assert mapped.recall(q).p == want
    opened = cgam.Bank.open(tmp_path / "Z.npy")
    assert opened.mapped and opened.recall(q).p == want
    with pytest.raises(FileNotFoundError):
        cgam.Bank.open(tmp_path / "none.npy")
    (tmp_path / "bad.npy").write_bytes(b"\x93NUMPY???")
    with pytest.raises(ValueError, match="bad.npy"):
        cgam.Bank.open(tmp_path / "bad.npy")


def test_queries_are_widened_by_value_or_refused(bank):
    want = bank.recall(np.arange(10.0)).p
    for same in (np.arange(10), np.arange(10, dtype=np.float32), list(range(10)), np.arange(20.0)[::2] / 2,
                 tuple(range(10)), np.arange(10, dtype=np.float16)):
        assert bank.recall(same).p == want
    for wrong in (np.zeros(9), np.zeros((2, 9)), np.zeros((1, 1, 10)), np.zeros((0, 10)), 3.0, "x", None,
                  np.zeros(10, complex), np.zeros(10, bool), [[1] * 10, [1] * 9], np.array([2**63 - 1] * 10),
                  np.full(10, np.inf)):
        with pytest.raises(ValueError):
            bank.recall(wrong)


def test_masked_numbers_are_refused(bank):
    whole = np.ma.array(np.arange(10.0))
    assert bank.recall(whole).p == bank.recall(np.arange(10.0)).p
    whole[3] = np.ma.masked
    with pytest.raises(ValueError, match="query: the array has masked numbers"):
        bank.recall(whole)
    with pytest.raises(ValueError, match="bank: the array has masked numbers"):
        cgam.Bank(np.ma.array(np.eye(3), mask=np.eye(3) > 0))


def test_numbers_between_addresses_are_moved(bank):
    apart = np.frombuffer(b"x" + np.arange(10.0).tobytes(), offset=1)
    assert not apart.flags.aligned
    assert bank.recall(apart).p == bank.recall(np.arange(10.0)).p
    with pytest.raises(ValueError, match="x: its numbers are not aligned"):
        _core.bank_score(bank._handle, apart, np.empty(50))
    with pytest.raises(ValueError, match="aligned"):
        cgam.Bank(np.frombuffer(b"x" + bytes(80), offset=1).reshape(1, 10))


def test_threads_that_fail_at_once_read_of_their_own(rng):
    bank = cgam.Bank(rng.standard_normal((50, 10)))
    mixed = []

    def fail(target):
        for _ in range(300):
            try:
                bank.recall(np.ones(10), target=target)
            except ValueError as error:
                if f"no memory {target} " not in str(error):
                    mixed.append(str(error))

    threads = [threading.Thread(target=fail, args=(50 + i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not mixed


def test_wrong_options(bank):
    q = np.ones(10)
    for error, options in ((ValueError, dict(alpha=-1.0)), (ValueError, dict(beta=0.0)), (ValueError, dict(mode="x")),
                           (TypeError, dict(gamma=1)), (TypeError, dict(alpha="1")), (ValueError, dict(alpha=np.nan)),
                           (ValueError, dict(context=np.ones(9))), (ValueError, dict(context=np.ones((2, 10)))),
                           (ValueError, dict(target=50)), (ValueError, dict(target=1.5)), (ValueError, dict(top=-1)),
                           (ValueError, dict(projection=np.ones((9, 2)))), (ValueError, dict(max_iter=2**70)),
                           (ValueError, dict(alpha=1.5, mode="coupled")), (ValueError, dict(gate_weights=np.ones(50)))):
        with pytest.raises(error):
            bank.recall(q, **options)
    with pytest.raises(TypeError, match="max_iter: expected an integer"):
        bank.recall(q, max_iter=1.5)
    for name in ("mode", "activation"):
        with pytest.raises(TypeError, match=f"{name}: expected a str"):
            bank.plan(**{name: 3})
    with pytest.raises(ValueError, match="NUL"):
        bank.plan("first\0")
    with pytest.raises(cgam.Error, match="no verb"):
        cgam.run("version" + " " * 90 + "no such verb")
    with pytest.raises(cgam.Error, match="alpha_crit"):
        bank.recall(q, alpha=1.5, mode="coupled")


def test_messages_have_any_bytes(tmp_path):
    """Those of a file, or the first of a character whose others had no room."""
    (tmp_path / "Z.csv").write_bytes(b"1,2\n3,\xff\xfe\n")
    with pytest.raises(cgam.InputError, match="Z.csv: .*\ufffd"):
        cgam.Bank.open(tmp_path / "Z.csv")
    for first in ("", "x"):
        with pytest.raises(cgam.InputError, match="^no verb"):
            cgam.run(first + "\u00e4" * 300)


# ---- memory and lifetimes

def test_any_order_of_deletion(rng):
    gc.collect()
    before = _core.references()
    for _ in range(30):
        bank = cgam.Bank(rng.standard_normal((9, 4)))
        things = [bank, bank.plan(), bank.plan("coupled"), bank.gate(0.01), bank.spectrum()]
        cycle = {"things": things}
        cycle["self"] = cycle
        del bank
        rng.shuffle(things)
        while len(things) > 2:
            del things[0]
            gc.collect(0)
        del things, cycle
    gc.collect()
    assert _core.references() == before


def test_an_array_that_has_its_bank_is_collected():
    class Memories(np.ndarray):
        pass

    Z = np.eye(4).view(Memories)
    Z.bank = cgam.Bank(Z)
    Z.plan = Z.bank.plan(projection=np.eye(4))
    alive = weakref.ref(Z)
    del Z
    gc.collect()
    assert alive() is None


def test_a_plan_keeps_its_bank_and_array(rng):
    plan = cgam.Bank(rng.standard_normal((9, 4))).plan(projection=rng.standard_normal((4, 2)))
    gc.collect()
    assert plan.recall(np.ones(4), np.ones(2)).winner >= 0


def test_no_growth(bank):
    q, c = np.ones(10), np.ones(10)
    plan = bank.plan()
    count = 10**4 if CHECKED else 10**5
    for _ in range(2000):
        plan.recall(q, c).winner
    references, before = sys.getrefcount(q), rss()
    for _ in range(count):
        plan.recall(q, c)
    for _ in range(20):
        bank.recall(q, c, alpha=0.1, mode="coupled", vectors=True)
        with pytest.raises(ValueError):
            plan.recall(q, np.ones(3))
        with pytest.raises(ValueError):
            cgam.Bank(np.full((2, 2), np.inf))
    gc.collect()
    assert sys.getrefcount(q) == references
    assert rss() - before < 8e6


def test_a_failure_that_is_over_holds_nothing(bank):
    """Without the collector: an exception that has gone leaves no cycle behind that keeps the caller's arrays."""

    def fail(q):
        try:
            bank.recall(q, alpha=-1.0)
        except cgam.Error as error:
            return weakref.ref(q), str(error)

    gc.collect()
    gc.disable()
    try:
        alive, said = fail(np.ones(10))
        assert "alpha" in said and alive() is None
    finally:
        gc.enable()


# ---- threads and signals

def test_threads_share_a_bank(rng):
    Z = rng.standard_normal((3000, 64)).astype(np.float32)
    Q, c = rng.standard_normal((8, 40, 64)), rng.standard_normal(64)
    bank = cgam.Bank(Z)
    plan = bank.plan(alpha=0.001, beta=0.3)
    want = [[plan.recall(q, c).p for q in part] for part in Q]
    got, errors = [None] * 8, []

    def work(k):
        try:
            got[k] = [plan.recall(q, c).p for q in Q[k]]
            with pytest.raises(ValueError):
                bank.recall(Q[k][0], alpha=-1.0)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors and got == want


def test_the_lock_is_free_while_c_works(rng):
    bank = cgam.Bank(rng.standard_normal((20000, 256)).astype(np.float32))
    q = rng.standard_normal((256, 256))
    bank.recall(q[:64])
    ticks, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            ticks[0] += 1
            time.sleep(0.0005)

    thread = threading.Thread(target=count)
    thread.start()
    bank.recall(q, mode="coupled", lam=0.01, beta=0.05)
    stop.set()
    thread.join()
    assert ticks[0] > 5


INTERRUPTED = """
    import os, signal, threading, time
    import numpy as np, cgam
    rng = np.random.default_rng(1)
    {setup}
    sent = []

    def press():
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Timer(1.0, press).start()
    try:
        {work}
        print("it ended by itself")
    except KeyboardInterrupt:
        late = time.process_time() - sent[0]
        assert late < {limit}, late
        {after}
        print("stopped")
"""


@pytest.mark.parametrize("setup, work, after", [
    ("Z = rng.standard_normal((20000, 256)).astype(np.float32); bank = cgam.Bank(Z); q = Z[:2000].astype(float)",
     "[bank.recall(q, mode='coupled', lam=0.2, beta=0.5) for _ in range(100)]",
     "assert bank.recall(q[3], beta=1.0).winner == 3"),
    ("Z = rng.standard_normal((1500, 1500)); Z /= np.linalg.norm(Z, axis=1, keepdims=True); bank = cgam.Bank(Z)",
     "[bank.plan(mode='coupled', alpha=0.1).landscape(Z[0]) for _ in range(100)]",
     "assert bank.recall(Z[3], beta=10.0).winner == 3"),
    ("pass", "cgam.study('coupled', trials=100000, figures='no', out=os.environ['SCRATCH'])",
     "assert cgam.run('version')['version'] == cgam.__version__"),
], ids=["recall", "landscape", "study"])
def test_ctrl_c(setup, work, after, tmp_path):
    """Within a second. What the process has still done counts, on all its threads: others may use the machine."""
    limit = 10 if CHECKED else 1
    script = textwrap.dedent(INTERRUPTED).format(setup=setup, work=work, after=after, limit=limit)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100,
                          env=dict(os.environ, SCRATCH=str(tmp_path / "s")))
    assert done.stdout.strip() == "stopped", done.stderr


def test_handlers_of_the_user_stay():
    seen = []
    old = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        bank = cgam.Bank(np.eye(3))
        bank.inspect()
        assert signal.getsignal(signal.SIGINT) is not old
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
        assert seen == [1]
    finally:
        signal.signal(signal.SIGINT, old)


def test_forks(bank):
    """A child makes banks of its own; what it inherited says so instead of hanging, and may go."""
    bank.recall(np.ones(10))
    others = [cgam.Bank(np.eye(4)), cgam.Bank(np.eye(4), threads=2), bank.plan(), cgam.Net({"x": cgam.Layer(2)}, {})]
    child = os.fork()
    if child == 0:
        code = 1
        try:
            others.clear()
            try:
                bank.recall(np.ones(10))
            except RuntimeError:
                code = 0 if cgam.Bank(np.eye(500)).recall(np.ones(500)).winner == 0 else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def test_ctrl_c_in_a_child_forked_during_a_call(rng):
    """By another thread than the one that is in the call, whose handler the child inherits."""
    Z = rng.standard_normal((20000, 64)).astype(np.float32)
    bank, ended = cgam.Bank(Z), []

    def fork():
        time.sleep(0.2)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                own = cgam.Bank(np.eye(200))
                try:
                    os.kill(os.getpid(), signal.SIGINT)
                    time.sleep(10)
                except KeyboardInterrupt:
                    own.recall(np.ones((64, 200)), mode="coupled", lam=0.01)
                    code = 0
            finally:
                os._exit(code)
        ended.append(os.waitpid(child, 0)[1])

    thread = threading.Thread(target=fork)
    thread.start()
    while thread.is_alive():
        bank.recall(Z[:100].astype(float), mode="coupled", lam=0.2, beta=0.5)
    assert ended == [0]


def test_numpy_keeps_its_threads():
    import ctypes
    try:
        blas = ctypes.CDLL("libopenblas.so.0")
    except OSError:
        pytest.skip("another BLAS")
    before = blas.openblas_get_num_threads()
    bank = cgam.Bank(np.random.default_rng(0).standard_normal((300, 40)))
    bank.recall(np.ones(40), alpha=0.001)
    bank.inspect()
    assert blas.openblas_get_num_threads() == before


# ---- without the others

@pytest.mark.parametrize("missing", ["matplotlib", "sklearn", "ml_dtypes", "torch"])
def test_import_without(missing):
    script = f"""
        import sys
        sys.modules[{missing!r}] = None
        import numpy as np, cgam
        r = cgam.Bank(np.eye(3)).recall([1.0, 0, 0])
        assert r.winner == 0
        if {missing!r} == "matplotlib":
            try:
                r.plot()
            except ImportError as error:
                assert "matplotlib" in str(error)
            else:
                raise SystemExit("plotted")
    """
    env = dict(os.environ, CGAM_LLAMA="/nonexistent")
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True, env=env)


def test_numbers_of_other_countries(bank):
    import locale
    old = locale.setlocale(locale.LC_ALL)
    for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"):
        try:
            locale.setlocale(locale.LC_ALL, name)
        except locale.Error:
            continue
        try:
            assert cgam.study("separation", trials=2, figures="no", sigma_c=0.25, n=5, d=3)["parameters"]["sigma_c"] == 0.25
        finally:
            locale.setlocale(locale.LC_ALL, old)


# ---- anything at all

def test_random_arguments(rng):
    """Whatever comes in, an answer or an exception comes out."""
    bank = cgam.Bank(rng.standard_normal((7, 5)))
    plan = bank.plan("coupled", lam=0.1)
    gate, spectrum = bank.gate(0.01), bank.spectrum()
    odd = [None, 0, -1, 3, 2**70, 0.5, -0.5, float("nan"), float("inf"), "first", "x", "", b"y", [], {}, (),
           True, np.zeros(5), np.zeros(7), np.zeros((7, 5)), np.zeros((5, 2)), np.zeros((3, 5)), np.zeros(0),
           np.zeros((2, 2, 2)), np.ones(5, np.float32), np.ones(5, complex), np.array("t"), object(),
           np.ones(5)[::-1], np.ones((3, 5), order="F"), np.array([1, 2, 3]), np.full(5, np.nan), bank, plan,
           np.ma.masked_array(np.ones(5)), np.ones(5, [("a", "f8")]), range(5), 1j, np.float16(1)]

    def pick(*fine):
        """Mostly one of those that will do, where any are given; else anything."""
        some = fine if fine and rng.random() < 0.8 else odd
        return some[rng.integers(len(some))]

    def five():
        return pick(np.ones(5), rng.standard_normal(5), np.arange(5), [1, 2, 3, 4, 5])

    def seven():
        return pick(np.ones(7) / 7, rng.dirichlet(np.ones(7)), np.arange(7, dtype=np.float32))

    def queries():
        return pick(np.ones(5), rng.standard_normal((3, 5)), rng.standard_normal((1, 5)))

    def number():
        return pick(0.1, 0.5, 2.0, 1, np.float32(0.3))

    def index():
        return pick(0, 1, 6, np.int64(3))

    t, net = cgam.theory, cgam.net
    two = cgam.Net({"x": cgam.Layer(5), "y": cgam.Layer(7, "softmax")}, {"w": net.Bilinear("x", "y", np.ones((5, 7)))})
    calls = [
        lambda: cgam.Net({"x": cgam.Layer(pick(), pick(), tau=pick(), axes=pick()), "y": cgam.Layer(5)},
                         {"w": net.Bilinear("x", "y", pick(), pick())}),
        lambda: cgam.Net({"x": cgam.Layer(5), "y": cgam.Layer((7, 5))},
                         {"s": [net.Gram("x", pick(), 1.0, pick()), net.Bias("x", pick()), net.Attention("y", "y"),
                                net.Tensor(["x", "x"], pick()), net.LowRank(["x", "x"], [pick(), pick()], pick()),
                                net.Custom(["x"], pick())][rng.integers(6)]}).values(pick()),
        lambda: two.values(pick(np.ones(12), np.ones((2, 12))), clamped=pick((), ["x"])),
        lambda: two.jacobian(pick(np.ones(12)), pick(np.ones(12), np.ones((3, 12)))),
        lambda: two.flow(pick(np.ones(12), np.ones((2, 12))), t_end=number(), method=pick(None, "bdf", "rk4"), max_steps=50),
        lambda: two.flow({"x": five()}, clamps=[net.Clamp("y", seven(), pick(0.0), pick(1.0))], max_steps=50,
                         watch=pick(None, "y")),
        lambda: two.eigenvalues(pick(np.ones(12)), index()),
        lambda: _core.net_layer(*[pick() for _ in range(8)]), lambda: _core.net_synapse(*[pick() for _ in range(7)]),
        lambda: _core.net_synapse(two._handle, "bilinear", "v", (0, 1), 1.0, (pick(),), pick()),
        lambda: _core.net_flow(two._handle, pick(), pick(), None, {}, pick(), pick(), pick(), pick()),
        lambda: _core.observe(*[pick() for _ in range(8)]), lambda: _core.contrast(pick(), pick(), pick(), pick(), "mean"),
        lambda: cgam.Bank(pick(np.ones((7, 5)), np.ones((3, 2), np.float32), np.eye(4)[::2]), normalize=pick(True, False),
                          dtype=pick(None), copy=bool(rng.integers(2))),
        lambda: bank.recall(queries(), pick(None, np.ones(5)), mode=pick("first", "coupled", "flow"), alpha=pick(0.0, 0.01),
                            target=pick(None, 3)),
        lambda: bank.recall(queries(), five(), top=index(), beta=number(), lam=number()),
        lambda: plan.recall(queries(), five(), target=pick(None, 2), top=index(), vectors=bool(rng.integers(2))),
        lambda: bank.plan(projection=pick(None, np.ones((5, 2))), gate_weights=pick(None, np.ones((7, 3))),
                          max_iter=index(), tol=number()),
        lambda: bank.inspect(pick(0.0, 0.01), beta=number(), lam=number()),
        lambda: bank.gate(pick(0.0, 0.01)), lambda: gate.solve(seven()), lambda: gate.solve_range(five()),
        lambda: spectrum.solve(pick(0.01, 0.02), seven()),
        lambda: spectrum.transient(pick(0.01), number(), seven(), s0=pick(None, np.ones(7))),
        lambda: t.separation_bound(pick(5, 7), number(), number()),
        lambda: t.separation_gaps(seven(), seven(), number(), index()),
        lambda: t.supercritical_winner(spectrum, number(), seven(), pick(None, np.ones(7))),
        lambda: t.fold_margin(gate, number(), number(), seven()), lambda: t.softmax_norm(seven()),
        lambda: t.hopfield_update(bank, number(), five()),
        lambda: t.attention(*[pick(np.ones((3, 2)), np.ones((3, 3))) for _ in range(3)]),
        lambda: t.hopfield_bounds(bank, number(), index(), five(), five()),
        lambda: t.context_margin(gate, pick(None, np.ones((5, 2)))),
        lambda: t.retrieval_parts(gate, number(), seven(), seven()),
        lambda: t.coupled_energy(gate, number(), number(), seven(), seven(), seven()),
        lambda: bank[index()], lambda: bank.score(five()), lambda: bank.combine(seven()),
        lambda: cgam.run(pick("version", "help")), lambda: cgam.run("recall", pick(), bank=pick(), query=pick()),
        lambda: _core.plan_run(*[pick() for _ in range(14)]), lambda: _core.bank_new(pick(), pick(), pick(), pick()),
        lambda: _core.plan_run(plan._handle, 1, index(), np.ones(5), *[pick(None) for _ in range(10)]),
        lambda: _core.plan_new(bank._handle, pick(), pick(), pick(), pick()), lambda: _core.result_dict(pick()),
        lambda: _core.gate_solve(pick(), pick(), pick()), lambda: _core.hopfield(*[pick() for _ in range(8)]),
    ]
    answers = 0
    for _ in range(10**4):
        try:
            calls[rng.integers(len(calls))]()
            answers += 1
        except (ValueError, TypeError, IndexError, KeyError, AttributeError, OverflowError, cgam.Error, MemoryError,
                ArithmeticError):
            pass
    assert answers > 3000
    assert bank.recall(np.ones(5)).winner >= 0


OTHER = """
    import array, importlib.util, threading
    where = importlib.util.spec_from_file_location("cgam._core", {path!r})
    core = importlib.util.module_from_spec(where)
    where.loader.exec_module(core)
    core.set_up(print, threading.main_thread().ident)
    Z = memoryview(array.array("d", [1, 0, 0, 1])).cast("B").cast("d", (2, 2))
    plan = core.plan_new(core.bank_new(Z, "f64", False, 0), None, None, None, None)
    q = array.array("d", [0, 1])
    block = core.plan_run(plan, 1, 1, q, *[None] * 10)
    print(core.version(), core.result_dict(block)["winner"])
"""


def python(name):
    """An interpreter of that name that starts, from the PATH or from pyenv."""
    kept = sorted(pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")).glob(f"versions/*/bin/{name}"))
    for found in filter(None, (shutil.which(name), *kept)):
        if subprocess.run([found, "--version"], capture_output=True).returncode == 0:
            return found
    return None


@pytest.mark.parametrize("name", ["python3.11", "python3.12", "python3.13", "python3.14"])
def test_other_pythons(name):
    """The extension built for one CPython works in the others that are here, whether or not they have NumPy."""
    found = None if CHECKED else python(name)
    if found is None:
        pytest.skip(f"no {name}")
    script = textwrap.dedent(OTHER).format(path=_core.__file__)
    done = subprocess.run([found, "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == [cgam.__version__, "1"], done.stderr
