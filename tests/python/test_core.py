"""Every function of the extension by itself: each argument wrong in turn, each request for memory refused in turn.

The package checks most of this before it calls. What is promised here is that whatever comes in, the answer is right or an
exception says in one line what is wrong: no crash, no SystemError, and no reference that is lost.
"""
# ctest: timeout=300
import array
import gc
import json
import math
import os
import re
import signal
import struct
import subprocess
import sys
import textwrap
import types

import numpy as np
import pytest

import cgam
from cgam import _core

try:
    import _testcapi  # CPython's own way to refuse memory
except ImportError:
    _testcapi = None
refuses_memory = pytest.mark.skipif(_testcapi is None, reason="CPython's own tests are not installed")

N, D = 7, 5
PATIENCE = 12
FAILURES = (TypeError, ValueError, OverflowError, cgam.Error)


def fixed(numbers, dtype=np.float64):
    """An input: nobody may write into it."""
    array = np.array(numbers, dtype)
    array.flags.writeable = False
    return array


def room(*shape, dtype=np.float64):
    """An output."""
    return np.zeros(shape, dtype)


def with_template(model, path):
    """A copy of a GGUF file that has a template for chats; what is put in is a multiple of 32 bytes, so the rest stays aligned."""
    file = model.read_bytes()
    keys, = struct.unpack_from("<Q", file, 16)
    name = b"tokenizer.chat_template"
    text = b"{% for message in messages %}<|im_start|>{% endfor %}"
    text += b" " * (-(len(name) + len(text) + 20) % 32)
    key = struct.pack("<Q", len(name)) + name + struct.pack("<IQ", 8, len(text)) + text
    path.write_bytes(file[:16] + struct.pack("<Q", keys + 1) + key + file[24:])
    return path


class World:
    """One of every kind of object, and numbers that fit them."""

    def __init__(self, model, folder):
        rng = np.random.default_rng(5)
        self.Z = fixed(rng.standard_normal((N, D)))
        self.q, self.c = fixed(rng.standard_normal(D)), fixed(rng.standard_normal(D))
        self.b, self.u, self.s = (fixed(rng.standard_normal(N)) for _ in range(3))
        self.p = fixed(rng.dirichlet(np.ones(N)))
        self.bank = _core.bank_new(self.Z, "f64", False, 0)
        self.plan = _core.plan_new(self.bank, "coupled", None, None, {"lam": 0.1})
        self.annealing = _core.plan_new(self.bank, "anneal", None, None, {"lam": 2.0, "beta": 6.0})
        self.gate = _core.gate_new(self.bank, 0.01, True)
        self.spectrum = _core.spectrum_new(self.bank)
        self.net = net()
        self.x = fixed(rng.standard_normal(D + N))
        self.path = str(with_template(model, folder / "chat.gguf"))
        self.model = _core.model_open(self.path, 1)
        self.lens = _core.lens_new(self.model)
        self.kinds = {id(self.bank): "bank", id(self.plan): "plan", id(self.annealing): "plan", id(self.gate): "gate",
                      id(self.spectrum): "spectrum", id(self.model): "model", id(self.lens): "lens"}  # another is a net
        self.width, self.layers = (_core.model_info(self.model)[key] for key in ("width", "layers"))
        self.tokens = fixed(_core.tokenize(self.model, "The capital", True), np.int32)
        self.vectors = fixed(rng.standard_normal((2, self.width)), np.float32)
        self.stored, self.saved, self.out = (str(folder / name) for name in ("bank.npy", "vectors.npy", "out.npy"))
        np.save(self.stored, self.Z)
        self.columns, self.names, self.packed_path = (str(folder / name) for name in ("x.csv", "Z.names", "packed.safetensors"))
        (folder / "x.csv").write_text("x\n" + "".join(f"{i}\n" for i in range(N)))
        (folder / "Z.names").write_text("".join(f"n{i}\n" for i in range(N)))
        _core.run("bank pack", json.dumps({"from": self.stored, "names": self.names, "columns": self.columns, "sketch": "no",
                                           "out": self.packed_path}), 0, False)
        self.packed, self.measured = _core.bank_load(self.packed_path, False, 0), _core.bank_metric(self.bank, "cosine")
        self.kinds.update({id(self.packed): "bank", id(self.measured): "bank"})
        np.save(self.saved, self.vectors)

    def handles(self):
        return [self.bank, self.plan, self.gate, self.spectrum, self.net, self.model, self.lens]

    def kind(self, handle):
        return self.kinds.get(id(handle), "net")


class LogCosh:
    """A Lagrangian of the three functions that the extension calls, on memoryviews; without NumPy, which may crash where memory ends."""

    @staticmethod
    def value(x):
        return sum(math.log(math.cosh(v)) for v in x.cast("d"))

    @staticmethod
    def activation(x, out):
        to = out.cast("d")
        for i, v in enumerate(x.cast("d")):
            to[i] = math.tanh(v)

    @staticmethod
    def hessian(x, v, out):
        along, to = v.cast("d"), out.cast("d")
        for i, at in enumerate(x.cast("d")):
            to[i] = (1 - math.tanh(at) ** 2) * along[i]


FUNCTIONS = (LogCosh.value, LogCosh.activation, LogCosh.hessian)
PARAMS = (1.0, 0.0, 0.0)


def squares(activations, currents):
    """A synapse: the energy of its layers' lengths."""
    total = 0.0
    for view, current in zip(activations, currents):
        for i, v in enumerate(view.cast("d")):
            total += v * v / 2
            if current is not None:
                current.cast("d")[i] -= v
    return total


def net(lagrangian="tanh", custom=None):
    """Two layers, and a matrix between them."""
    it = _core.net_new()
    _core.net_layer(it, "x", (D,), lagrangian, PARAMS, {"tau": 1.0})
    _core.net_layer(it, "y", (N,), "softmax", PARAMS, {})
    _core.net_synapse(it, "bilinear", "w", (0, 1), 1.0, (fixed(np.ones((D, N)) / 9),), None)
    if custom is not None:
        _core.net_synapse(it, "custom", "f", (0, 1), 1.0, (), custom)
    return it


def plane():
    """Two layers of two axes, for attention and convolutions."""
    it = _core.net_new()
    _core.net_layer(it, "x", (4, 3), "identity", PARAMS, {})
    _core.net_layer(it, "y", (2, 3), "identity", PARAMS, {})
    return it


# ---- every function, with arguments that are right

KERNEL, MATRIX = fixed(np.ones((1, 1, 2, 2))), fixed(np.ones((D, N)))
NO_EDITS = ((), None)


def edit(w):
    return (((1, False, "last", 0, 0, 1.0),), w.vectors[:1])


def run_args(w, plan, count, *more):
    return (plan, count, 1, fixed(np.tile(w.q, (count, 1))), *more)


def grad_args(count, **given):
    """The last arguments of plan_grad: inputs of the sizes given, and room for all outputs but those of size 0."""
    each = {"p": N, "r": N, "readout": D, "b": N, "u": N, "q": D}
    whole = {"c": D, "P": D * D, "W": N * D, "Z": N * D, "alpha": 1, "beta": 1, "lam": 1}
    for name in _core.grad_names():
        if name in ("start", "weight", "x", "dp", "dr", "dy"):
            yield fixed(np.full(count * given[name], 0.25)) if name in given else None
        else:
            yield None if given.get(name) == 0 else room(whole.get(name, count * each.get(name, 1)))


def drop_args(w):
    """The first memory that is left of those that pack_add gave: the file changes with every call."""
    packed = _core.bank_load(w.packed_path, False, 0)
    names = _core.bank_names(packed)
    row = max(i for i, name in enumerate(names) if name and i)
    mask = np.zeros((len(names) + 63) // 64, np.uint64)
    mask[row // 64] = 1 << row % 64
    return (w.packed, w.packed_path, len(names), fixed(mask, np.uint64))


CALLS = [
    ("version", lambda w: ()),
    ("references", lambda w: ()),
    ("run", lambda w: ("version", "{}", 0, False)),
    ("run", lambda w: ("version", "{}", 1, True)),
    ("bank_new", lambda w: (w.Z, "f64", False, 0)),
    ("bank_new", lambda w: (w.Z, "f64", True, 2)),
    ("bank_load", lambda w: (w.stored, False, 0)),
    ("bank_load", lambda w: (w.stored, True, 1)),
    ("bank_info", lambda w: (w.bank,)),
    ("bank_score", lambda w: (w.bank, w.q, room(N))),
    ("bank_combine", lambda w: (w.bank, w.p, room(D))),
    ("bank_row", lambda w: (w.bank, 3, room(D))),
    ("bank_inspect", lambda w: (w.bank, 0.01, None, None)),
    ("bank_only", lambda w: (w.bank, fixed([5], np.uint64))),
    ("bank_metric", lambda w: (w.bank, "l2")),
    ("bank_metric", lambda w: (w.bank, "cosine")),
    ("metric_queries", lambda w: (w.measured, D, w.q, room(D))),
    ("bank_where", lambda w: (w.bank, w.columns, "x > 2 and not x in (3, 4)")),
    ("bank_names", lambda w: (w.packed,)),
    ("bank_columns", lambda w: (w.packed,)),
    ("bank_sketch", lambda w: (w.bank,)),
    ("pack_add", lambda w: (w.packed, w.packed_path, w.stored, w.names, w.columns)),
    ("pack_drop", lambda w: drop_args(w)),
    ("pack_put", lambda w: (w.packed, w.packed_path, w.stored, fixed(range(N), np.int64))),
    ("plan_new", lambda w: (w.bank, "coupled", fixed(np.ones((D, 2))), None, {"alpha": 0.01, "memory_max": 10**9})),
    ("plan_new", lambda w: (w.bank, None, None, fixed(np.ones((N, 2))), {"max_iter": 5, "plain": True})),
    ("plan_new", lambda w: (w.bank, None, None, None, {"none": 0.5, "tol_p": 0.1, "fast": True})),
    ("plan_new", lambda w: (w.bank, None, None, None, None)),
    ("plan_run", lambda w: run_args(w, w.plan, 1, w.c, None, *[None] * 4, *[None] * 4)),
    ("plan_run", lambda w: run_args(w, w.plan, 2, w.c, fixed([1, 2], np.int64), room(2 * RESULT, dtype=np.uint8),
                                    room(2, dtype=np.int64), room(2), room(2), room(2, N), room(2, N), room(2, N), room(2, D))),
    ("plan_run", lambda w: run_args(w, w.plan, 2, fixed(np.ones((2, D))), None, room(2 * RESULT, dtype=np.uint8),
                                    room(2, dtype=np.int64), room(2), room(2), *[None] * 4)),
    ("plan_grad", lambda w: (w.plan, 2, "own", 1.0, fixed(np.tile(w.q, (2, 1))), w.c, None, room(2 * RESULT, dtype=np.uint8),
                             room(2, dtype=np.uint8), *grad_args(2, start=N, weight=1, x=D, dp=N, dr=N, dy=D, W=0))),
    ("plan_grad", lambda w: (w.plan, 1, "nll", 1.0, w.q, None, fixed([1], np.int64), None, None, *grad_args(1, P=0, c=D))),
    ("grad_names", lambda w: ()),
    ("plan_route", lambda w: (w.plan, 3, True)),
    ("plan_route", lambda w: (w.plan, 1, False)),
    ("plan_context_margin", lambda w: (w.plan,)),
    ("plan_gate", lambda w: (w.plan,)),
    ("plan_landscape", lambda w: (w.plan, w.q, w.c, 4, 1)),
    ("plan_branch", lambda w: (w.annealing, w.q, w.c)),
    ("landscape_layouts", lambda w: ()),
    ("fields", lambda w: ("result",)),
    ("result_dict", lambda w: (_core.plan_run(*run_args(w, w.plan, 1, w.c, *[None] * 9)),)),
    ("result_layout", lambda w: ()),
    ("end_names", lambda w: ()),
    ("gate_new", lambda w: (w.bank, 0.01, False)),
    ("gate_new", lambda w: (w.bank, 0.01, True)),
    ("gate_info", lambda w: (w.gate,)),
    ("gate_apply", lambda w: (w.gate, w.s, room(N))),
    ("gate_solve", lambda w: (w.gate, w.u, room(N))),
    ("gate_solve_range", lambda w: (w.gate, w.c, room(N))),
    ("gate_critical", lambda w: (w.bank, True)),
    ("gate_critical", lambda w: (w.bank, False)),
    ("spectrum_new", lambda w: (w.bank,)),
    ("spectrum_info", lambda w: (w.spectrum,)),
    ("spectrum_omega", lambda w: (w.spectrum, room(_core.spectrum_info(w.spectrum)["modes"]))),
    ("spectrum_run", lambda w: (w.spectrum, "solve", 0.01, 1.0, 1.0, w.u, None, room(N))),
    ("spectrum_run", lambda w: (w.spectrum, "project", 0.01, 1.0, 1.0, w.u, None, room(N))),
    ("spectrum_run", lambda w: (w.spectrum, "transient", 0.01, 1.0, 1.0, w.u, w.s, room(N))),
    ("separation", lambda w: ("bound", 7, 1.0, 0.5)),
    ("separation", lambda w: ("log", 7, 1.0, 0.5)),
    ("separation", lambda w: ("threshold", 7, 1.0, 0.5)),
    ("stability", lambda w: (0.8, 5.0, 1.0, -1.0, 0.99)),
    ("readout_bound", lambda w: (7, 5.0, 2.0, 1.0)),
    ("gaps", lambda w: (w.b, w.s, 0.5, 2)),
    ("contraction", lambda w: (1.0, 0.1, 0.9)),
    ("softmax_norm", lambda w: (w.p,)),
    ("winner", lambda w: (w.spectrum, 10.0, w.u, w.s)),
    ("horizon", lambda w: (w.spectrum, 10.0, 1.0, 1.0, 0.1, w.u, None, True)),
    ("coupled_critical", lambda w: (w.bank, 0.1, 1.0)),
    ("fold", lambda w: (w.bank, 0.1, 1.0, w.b, w.u, 0.02, 1e-6)),
    ("at_p", lambda w: (w.gate, "contraction", 1.0, 0.1, w.p)),
    ("at_p", lambda w: (w.gate, "margin", 1.0, 0.1, w.p)),
    ("parts", lambda w: (w.gate, 0.1, w.u, w.p, room(N), room(N))),
    ("energy", lambda w: (w.gate, 1.0, 0.1, w.b, w.u, w.s, room(N))),
    ("context_margin", lambda w: (w.gate, fixed(np.ones((D, 2))), 2)),
    ("hopfield", lambda w: (w.bank, "energy", 1.0, None, w.q, None, 1e-6, 10)),
    ("hopfield", lambda w: (w.bank, "energy", 1.0, 3.0, w.q, None, 1e-6, 10)),
    ("hopfield", lambda w: (w.bank, "settle", 1.0, None, w.q, room(D), 1e-6, 10)),
    ("hopfield", lambda w: (w.bank, "update", 1.0, None, w.q, room(D), 1e-6, 10)),
    ("hopfield", lambda w: (w.bank, "update", 1.0, 3.0, w.q, room(D), 1e-6, 10)),
    ("hopfield_bound", lambda w: (w.bank, 1.0, 2, w.q, w.c)),
    ("attention", lambda w: (2, 3, 4, 5, fixed(np.ones((2, 4))), fixed(np.ones((3, 4))), fixed(np.ones((3, 5))), room(2, 5))),
    ("net_new", lambda w: ()),
    ("net_layer", lambda w: (_core.net_new(), "z", (2, 3), "softmax", PARAMS, {"scale": 1.0, "axes": 1})),
    ("net_layer", lambda w: (_core.net_new(), "z", (2,), FUNCTIONS, PARAMS, {})),
    ("net_synapse", lambda w: (net(), "bilinear", "b", (0, 1), 1.0, (MATRIX,), None)),
    ("net_synapse", lambda w: (net(), "custom", "b", (0, 1), 1.0, (), squares)),
    ("net_synapse", lambda w: (net(), "coupling", "b", (0, 0), 1.0, (), None)),
    ("net_synapse", lambda w: (net(), "bias", "b", (0,), 1.0, (w.q,), None)),
    ("net_synapse", lambda w: (net(), "hidden", "b", (0,), 1.0, (MATRIX.T.copy(),), (FUNCTIONS, PARAMS))),
    ("net_synapse", lambda w: (net(), "gram", "b", (0,), 1.0, (MATRIX, w.q), None)),
    ("net_synapse", lambda w: (net(), "self", "b", (0,), 1.0, (fixed(np.eye(D)),), None)),
    ("net_synapse", lambda w: (net(), "tensor", "b", (0, 1), 1.0, (MATRIX,), None)),
    ("net_synapse", lambda w: (net(), "lowrank", "b", (0, 1), 1.0, (fixed(np.ones((2, D))), fixed(np.ones((2, N))), fixed([1, 2])),
                               None)),
    ("net_synapse", lambda w: (plane(), "attention", "a", (0, 1), 1.0, (fixed(np.ones((1, 2, 3))), fixed(np.ones((1, 2, 3)))),
                               (1.5, 1, 2, False))),
    ("net_synapse", lambda w: (plane(), "attention", "a", (0, 1), 1.0, (), (None, 1, 0, False))),
    ("net_synapse", lambda w: (plane(), "hidden", "h", (0,), 1.0, ((KERNEL, 4, 3, 1, 1, False),), ("identity", PARAMS))),
    ("net_size", lambda w: (w.net,)),
    ("net_eval", lambda w: (w.net, 1, w.x, (True, False), room(1), room(3), *[room(D + N) for _ in range(3)], room(1))),
    ("net_eval", lambda w: (net(FUNCTIONS, squares), 1, w.x, None, room(1), None, None, room(D + N), room(D + N), room(1))),
    ("net_eval", lambda w: (net(FUNCTIONS, squares), 1, w.x, None, room(1), *[None] * 5)),
    ("net_eigen", lambda w: (w.net, w.x, (False, True), 2, 1e-9, room(2))),
    ("net_jacobian", lambda w: (net(FUNCTIONS), w.x, None, 1, w.x, room(D + N))),
    ("net_flow", lambda w: (w.net, 1, room(D + N), "rk4", {"t_end": 0.5, "step": 0.1, "watch": 1}, ("steady",),
                            ((0, 0.0, 1.0, w.q, False),), True, True)),
    ("net_flow", lambda w: (w.net, 2, room(2, D + N), None, {"max_steps": 50}, None, ((0, 0.0, 1.0, fixed(np.ones((2, D))), True),
                                                                                   (1, 0.0, 1.0, None, False)), False, False)),
    ("net_flow", lambda w: (w.net, 1, room(D + N), None, {"t_end": 0.5}, (), (), True, False)),
    ("lagrangians", lambda w: ()),
    ("model_open", lambda w: (w.path, 1)),
    ("model_info", lambda w: (w.model,)),
    ("tokenize", lambda w: (w.model, "The capital", True)),
    ("chat", lambda w: (w.model, (("system", "Be short."), ("user", "The capital")))),
    ("piece", lambda w: (w.model, 5)),
    ("observe", lambda w: (w.model, [w.tokens], None, True, True, NO_EDITS,
                           [room(w.layers + 1, len(w.tokens), w.width, dtype=np.float32)], "residual")),
    ("observe", lambda w: (w.model, [w.tokens, w.tokens], fixed([1, 2], np.int64), False, True, edit(w),
                           [room(2, w.width, dtype=np.float32) for _ in range(2)], "attention")),
    ("edit_default", lambda w: ()),
    ("generate", lambda w: (w.model, w.tokens, {"max_tokens": 3, "exact": True, "seed": 1}, ("zzzz",), edit(w))),
    ("score", lambda w: (w.model, w.tokens, [w.tokens[:2], w.tokens[:1]], True, room(2))),
    ("model_bank", lambda w: (w.model, "raw", "f32")),
    ("lens_new", lambda w: (w.model,)),
    ("lens_view", lambda w: (w.lens, "The capital", "norm", 2, True)),
    ("lens_layouts", lambda w: ()),
    ("vector_load", lambda w: (w.saved,)),
    ("vector_save", lambda w: (w.out, 2, w.width, w.vectors, None)),
    ("contrast", lambda w: (2, 1, w.width, w.vectors, "mean")),
]
RESULT = _core.result_layout()["itemsize"]


@pytest.fixture(scope="module")
def world(tiny_model, tmp_path_factory):
    return World(tiny_model, tmp_path_factory.mktemp("core"))


def name_of(call):
    return call[0]


def test_every_function_has_a_call_that_is_answered(world):
    functions = {name for name, it in vars(_core).items() if isinstance(it, types.BuiltinFunctionType)}
    assert functions == {name for name, _ in CALLS} | {"set_up", "forked"}
    for name, arguments in CALLS:
        getattr(_core, name)(*arguments(world))


# ---- arguments that are wrong

class Undecided:
    def __bool__(self):
        raise ZeroDivisionError("neither")


# Arrays that may be None, by function and place; and those of any size, or of any of two sizes.
MAY_BE_NONE = {("plan_new", 2), ("plan_new", 3), *(("plan_run", i) for i in (4, 5, 6, 10, 11, 12, 13)), ("plan_landscape", 2),
               ("plan_branch", 2), ("spectrum_run", 6), ("winner", 3), ("context_margin", 1), *(("net_eval", i) for i in range(4, 10)),
               ("observe", 2), *(("plan_grad", i) for i in range(5, 32))}
ANY_SIZE = {("softmax_norm", 0)}
AS_OFTEN = {("plan_landscape", 3)}  # as one asks for: it would be long


def wrong_numbers(array):
    """An array of f64 in other forms, and what is said of them; who may be written into is an output."""
    flat = array.ravel()
    yield "text", "expected a contiguous array"
    if array.size > 1:
        yield np.repeat(flat, 2)[::2], "expected a contiguous array"
    yield np.ones(array.shape, np.float32), "expected f64"
    yield array.astype(">f8"), "expected f64"
    yield np.zeros(array.shape, np.int64), "expected f64"
    yield np.append(flat, 1.0), "expected"
    if array.flags.writeable:
        yield fixed(array), "to write into"
    else:
        for odd, word in ((np.nan, "NaN"), (np.inf, "an infinity")):
            other = array.copy()
            other.flat[array.size - 1] = odd
            yield other, f"is {word}"


def instead(world, where, value):
    """What can stand in place of an argument: (it, None or the exception that it must give, words of it)."""
    if isinstance(value, _core.Handle):
        kind = world.kind(value)
        for other in (None, 3, "text", *(h for h in world.handles() if world.kind(h) != kind)):
            yield other, TypeError, f"^expected a {kind}$"
    elif isinstance(value, np.ndarray):
        if where not in MAY_BE_NONE and where != ("bank_new", 0):
            yield None, ValueError, "is missing"
        if value.dtype == np.float64 and where != ("bank_new", 0):
            for other, words in wrong_numbers(value):
                yield other, None if where in ANY_SIZE and words == "expected" else ValueError, words
        else:
            for other in ("text", value.astype(complex), value[..., ::-1] if value.shape[-1] > 1 else 3, np.zeros((0, 3))):
                yield other, (TypeError, ValueError), ""
    elif isinstance(value, bool):
        yield Undecided(), ZeroDivisionError, "neither"
    elif isinstance(value, int):
        yield "text", TypeError, ""
        yield 2**70, None if where == ("plan_landscape", 4) else OverflowError, ""  # a seed is taken modulo 2^64
        yield from ((other, None, "") for other in (-1, 0, *(() if where in AS_OFTEN else (10**15, 2**62))))
    elif isinstance(value, float):
        yield "text", TypeError, ""
        yield from ((other, None, "") for other in (-1.0, np.nan, np.inf, 1e300))
    elif isinstance(value, str):
        yield 3, TypeError, ""
        yield "a\0b", ValueError, ""
        yield from ((other, None, "") for other in ("", "nonsense", "n" * 2000, "\u00e4" * 800))
    elif isinstance(value, dict):
        for other, error, words in ((3, TypeError, ""), ({"nothing": 1}, TypeError, "no option 'nothing'"), ({3: 1}, TypeError, ""),
                                    ({"a\0b": 1}, ValueError, "NUL")):
            yield other, error, words
        for key in value:
            yield {key: "text"}, None if isinstance(value[key], bool) else TypeError, f"{key}: "
            yield {key: Undecided()}, ZeroDivisionError if isinstance(value[key], bool) else TypeError, ""
            if type(value[key]) is int:
                yield {key: 2**70}, ValueError, f"{key}: the number is out of range"
    elif isinstance(value, (tuple, list)):
        other = list if isinstance(value, tuple) else tuple
        yield from ((wrong, (TypeError, ValueError), "") for wrong in (3, other(value) if value else {}))
        kind = type(value)
        yield from ((kind(some), None, "") for some in ((3,), (None,), ("text",), ((3,),), ((),), (None,) * 2, (3, 4, 5), (0,) * 90,
                                                        (2**40, 0), (-1, 0), (np.ones(3),), (np.ones((2, 2)),), ()))
    elif callable(value):
        yield 3, None, ""


def refused(name, arguments, error, words):
    """None, or what is wrong with the answer: an exception must be one of those, and say in one line what is the matter."""
    try:
        getattr(_core, name)(*arguments)
    except Exception as raised:
        said = str(raised)
        fine = isinstance(raised, error or FAILURES) and said and "\n" not in said and re.search(words, said)
        return None if fine else f"{name}{tuple(arguments)}: {raised!r}, not {error} with '{words}'"
    return None if error is None else f"{name}{tuple(arguments)} was answered"


def owners(arguments):
    """References to those that are ours alone."""
    return [sys.getrefcount(it) for it in arguments if isinstance(it, (_core.Handle, np.ndarray))]


def all_refused(world, name, given):
    """What was not refused as it should be, with one argument too many, one too few, and each of them wrong in turn."""
    wrong = [refused(name, some, TypeError, "") for some in (given + (None,), *([given[:-1]] if given else []))]
    for i in range(len(given)):
        wrong += [refused(name, (*given[:i], other, *given[i + 1:]), error, words)
                  for other, error, words in instead(world, (name, i), given[i])]
    return [one for one in wrong if one]


@pytest.mark.parametrize("name, arguments", CALLS, ids=map(name_of, CALLS))
def test_wrong_arguments_are_refused_in_a_line(world, name, arguments):
    given = arguments(world)
    before, references = owners(given), _core.references()
    assert not all_refused(world, name, given)
    assert owners(given) == before and _core.references() == references


def rows_apart():
    """Three numbers and a byte, again and again: rows that are no whole number of elements apart."""
    return np.zeros(4, [("a", "f8", 3), ("b", "u1")])["a"]


def between(array):
    """The same numbers between addresses."""
    return np.frombuffer(b"x" + array.tobytes(), array.dtype, offset=1)


# What only one function can be told, and what it says.
REFUSED = [
    ("bank_new", lambda w: (np.zeros((2, 3, 4)), "f64", False, 0), "bank: expected two axes"),
    ("bank_new", lambda w: (w.Z, "f32", False, 0), "bank: the element size does not match"),
    ("bank_new", lambda w: (np.zeros((3, 0)), "f64", False, 0), "bank: the array is empty"),
    ("bank_new", lambda w: (np.asfortranarray(w.Z), "f64", False, 0), "bank: .* not side by side"),
    ("bank_new", lambda w: (w.Z[::-1], "f64", False, 0), "bank: its rows run backwards"),
    ("bank_new", lambda w: (rows_apart(), "f64", False, 0), "bank: its rows "),
    ("bank_new", lambda w: (between(w.Z).reshape(N, D), "f64", False, 0), "bank: .* not aligned"),
    ("bank_new", lambda w: (np.full((2, 2), np.nan), "f64", False, 0), "row 0, column 0"),
    ("bank_new", lambda w: (w.Z, "f64", False, -1), "^threads is -1, it must be at least 1$"),
    ("plan_new", lambda w: (w.bank, None, np.zeros((D, 0)), None, None), "projection: expected shape \\(5, d_c\\)"),
    ("plan_new", lambda w: (w.bank, None, np.zeros((N, 2)), None, None), "projection: expected shape \\(5, d_c\\)"),
    ("plan_run", lambda w: (w.plan, 2, 1, fixed(np.ones((2, D))), w.c, *[None] * 9), "invalid sizes: 2 queries, top 1"),
    ("plan_run", lambda w: (w.plan, 1, N + 1, w.q, w.c, *[None] * 9), "invalid sizes: 1 queries, top 8"),
    ("plan_grad", lambda w: (w.plan, 1, "l2", 1.0, w.q, *[None] * 27), "invalid loss 'l2'"),
    ("plan_grad", lambda w: (w.plan, 0, "nll", 1.0, w.q, *[None] * 27), "invalid sizes: 0 queries"),
    ("plan_branch", lambda w: (w.plan, w.q, w.c), "branch requires mode anneal"),
    ("result_dict", lambda w: (b"short",), "a result of 5 bytes has an unknown layout"),
    ("result_dict", lambda w: ("text",), "bytes"),
    ("fields", lambda w: ("nothing",), "unknown struct 'nothing'"),
    ("plan_new", lambda w: (w.bank, None, None, None, {"activation": "relu"}), "activation is 'relu': .* softmax"),
    ("bank_only", lambda w: (w.bank, np.zeros(2, np.uint64)), "mask: 2 words, expected 1"),
    ("net_layer", lambda w: (_core.net_new(), "z", (), "tanh", PARAMS, {}), "layer z has 0 axes"),
    ("net_layer", lambda w: (_core.net_new(), "z", (1,) * 99, "tanh", PARAMS, {}), "layer z has 99 axes"),
    ("net_layer", lambda w: (_core.net_new(), "z", (2,), "tanh", ("1", 0.0, 0.0), {}), "real number"),
    ("net_layer", lambda w: (_core.net_new(), "z", (2,), "tanh", (1.0,), {}), "three parameters"),
    ("net_layer", lambda w: (_core.net_new(), "z", (2,), "relu6", PARAMS, {}), "unknown Lagrangian 'relu6'"),
    ("net_synapse", lambda w: (net(), "bilinear", "b", (0,), 1.0, (MATRIX,), None), "no kind 'bilinear' joins 1 layers"),
    ("net_synapse", lambda w: (net(), "bilinear", "b", (0, 1, 1), 1.0, (MATRIX,), None), "no kind 'bilinear' joins 3 layers"),
    ("net_synapse", lambda w: (net(), "bilinear", "b", (0, 1), 1.0, (), None), "weights is missing"),
    ("net_synapse", lambda w: (net(), "bilinear", "b", (0, 1), 1.0, (w.q,), None), "weights: expected two axes"),
    ("net_synapse", lambda w: (net(), "bilinear", "b", (0, 1), 1.0, (np.zeros((0, 3)),), None), "0 x 3"),
    ("net_synapse", lambda w: (net(), "bilinear", "b", (0, 2**32 + 1), 1.0, (MATRIX,), None), "b: no layer 4294967297"),
    ("net_synapse", lambda w: (net(), "bilinear", "b", (0, 1), 1.0, ((KERNEL[0], 4, 3, 1, 1, False),), None), "four axes"),
    ("net_synapse", lambda w: (net(), "hidden", "b", (0,), 1.0, (MATRIX.T.copy(),), ("tanh", (1.0,))), "three parameters"),
    ("net_synapse", lambda w: (net(), "hidden", "b", (0,), 1.0, (MATRIX.T.copy(),), ("tanh",)), "hidden"),
    ("net_synapse", lambda w: (net(), "bias", "b", (0,), 1.0, (), None), "bias: the vector is missing"),
    ("net_synapse", lambda w: (net(), "bias", "b", (0,), 1.0, (w.u,), None), "vector: 7 numbers, expected 5"),
    ("net_synapse", lambda w: (net(), "attention", "a", (0, 1), 1.0, (), (None, 0, 0, False)), "two axes"),
    ("net_synapse", lambda w: (plane(), "attention", "a", (0, 1), 1.0, (w.q, w.q), (1.0, 1, 2, False)), "WQ: 5 numbers, expected 6"),
    ("net_jacobian", lambda w: (w.net, w.x, (True,), 1, w.x, room(D + N)), "clamped: expected a bool"),
    ("net_flow", lambda w: (w.net, 1, room(D + N), "euler9", {}, None, (), False, False), "method: invalid value 'euler9'"),
    ("net_flow", lambda w: (w.net, 1, room(D + N), None, {}, ("noon",), (), False, False), "stop: invalid event 'noon'"),
    ("net_flow", lambda w: (w.net, 1, room(D + N), None, {}, ["steady"], (), False, False), "stop: expected a tuple"),
    ("net_flow", lambda w: (w.net, 1, room(D + N), None, {}, None, ((-1, 0.0, 1.0, None, False),), False, False), "no layer -1"),
    ("net_flow", lambda w: (w.net, 1, room(D + N), None, {}, None, ((2, 0.0, 1.0, None, False),), False, False), "no layer 2"),
    ("net_flow", lambda w: (w.net, 1, room(D + N), None, {}, None, ((0, 0.0, 1.0, None, False),) * 32, False, False), "at most 31"),
    ("net_flow", lambda w: (w.net, 0, room(D + N), None, {}, None, (), False, False), "holds no states"),
    ("chat", lambda w: (w.model, ()), "messages: 0 of them"),
    ("chat", lambda w: (w.model, (("user", "x"),) * 65), "messages: 65 of them"),
    ("chat", lambda w: (w.model, (("user",),)), "message"),
    ("piece", lambda w: (w.model, 10**6), "no token 1000000"),
    ("generate", lambda w: (w.model, w.tokens, {}, ("x",) * 17, NO_EDITS), "stop: too many words \\(at most 16"),
    ("generate", lambda w: (w.model, w.tokens, {}, ("a\0b",), NO_EDITS), "NUL"),
    ("generate", lambda w: (w.model, w.tokens, {}, (), ((3,), w.vectors[:1])), "edit: expected a tuple"),
    ("generate", lambda w: (w.model, w.tokens, {}, (), (((1, False),), w.vectors[:1])), "edit"),
    ("generate", lambda w: (w.model, w.tokens, {}, (), (((1, False, "here", 0, 0, 1.0),), w.vectors[:1])), "edit 0: invalid positions"),
    ("generate", lambda w: (w.model, w.tokens, {}, (), (edit(w)[0], w.vectors)), "edits: expected vectors of shape \\(1, "),
    ("generate", lambda w: (w.model, w.tokens, {}, (), (edit(w)[0], None)), "edits is missing"),
    ("observe", lambda w: (w.model, [w.tokens[:0]], None, True, True, NO_EDITS, [room(0, dtype=np.float32)], "residual"), "prompt 0: empty"),
    ("observe", lambda w: (w.model, [], None, True, True, NO_EDITS, [], "residual"), "prompts: the list is empty"),
    ("observe", lambda w: (w.model, [w.tokens], None, True, True, NO_EDITS, [room(3)], "residual"), "an array has the wrong type"),
    ("observe", lambda w: (w.model, [between(w.tokens)], None, True, True, NO_EDITS,
                           [room(w.layers + 1, len(w.tokens), w.width, dtype=np.float32)], "residual"), "not aligned"),
    ("observe", lambda w: (w.model, [w.tokens], None, True, True, NO_EDITS, [room(3)], "gate"), "part: invalid value 'gate'"),
    ("score", lambda w: (w.model, w.tokens, [w.tokens] * 257, True, room(257)), "continuations: their number must be from 1 to 256"),
    ("score", lambda w: (w.model, fixed([10**6], np.int32), [w.tokens], True, room(1)), "."),
    ("model_bank", lambda w: (w.model, "raw", "f128"), "invalid lens 'raw' or dtype 'f128'"),
    ("contrast", lambda w: (2, 1, w.width, w.vectors, "mode"), "kind 'mode'"),
    ("vector_save", lambda w: (w.out, 3, w.width, w.vectors, None), "vectors: wrong size"),
    ("attention", lambda w: (0, 0, 0, 0, *[room(0)] * 4), "attention: invalid sizes: 0 queries"),
    ("gaps", lambda w: (w.b, w.s, 0.5, N), "no memory mu = 7"),
    ("context_margin", lambda w: (w.gate, None, 0), "d_c is 0"),
    ("separation", lambda w: ("bound", 0, 1.0, 0.5), "n must be at least 1"),
]


@pytest.mark.parametrize("name, arguments, words", REFUSED, ids=map(name_of, REFUSED))
def test_what_is_refused_is_said(world, name, arguments, words):
    references = _core.references()
    assert refused(name, arguments(world), (TypeError, ValueError), words) is None
    assert _core.references() == references


def test_truth_values_that_raise(world):
    with pytest.raises(ZeroDivisionError):
        _core.net_jacobian(world.net, world.x, (Undecided(), False), 1, world.x, room(D + N))


# ---- functions in Python

@pytest.mark.parametrize("answer, error", [(None, TypeError), ("text", TypeError), (10**400, OverflowError)])
def test_functions_that_return_no_number(world, answer, error):
    for it in (net((lambda x: answer, LogCosh.activation, LogCosh.hessian)), net(custom=lambda a, c: answer)):
        for _ in range(2):
            with pytest.raises(error):
                _core.net_eval(it, 1, world.x, None, room(1), *[None] * 4, room(1))


def test_functions_may_call_the_library(world):
    """A call within a call: Ctrl-C stays with the outer one, reaches Python once, and its handler is back after it."""
    inner, press = [], False

    def value(x):
        inner.append(_core.bank_inspect(world.bank, None, None, None)["n"])
        if press:
            os.kill(os.getpid(), signal.SIGINT)
        return LogCosh.value(x)

    ours, energy, want = net((value, LogCosh.activation, LogCosh.hessian)), room(1), room(1)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        _core.net_eval(ours, 1, world.x, None, energy, *[None] * 5)
        _core.net_eval(world.net, 1, world.x, None, want, *[None] * 5)
        assert energy[0] == pytest.approx(want[0], rel=1e-12) and set(inner) == {N}
        press = True
        with pytest.raises(KeyboardInterrupt):
            _core.net_eval(ours, 1, world.x, None, energy, *[None] * 5)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


PRESSED = """
    import os, signal
    import numpy as np
    from cgam import _core
    signal.signal(signal.SIGINT, signal.{how})

    def value(x):
        os.kill(os.getpid(), signal.SIGINT)
        return 2.0

    def activation(x, out):
        out[:] = bytes(len(out))

    net, energy = _core.net_new(), np.zeros(1)
    _core.net_layer(net, "x", (3,), (value, activation, None), (0.0, 0.0, 0.0), {{}})
    _core.net_eval(net, 1, np.ones(3), None, energy, *[None] * 5)
    print(energy[0], signal.getsignal(signal.SIGINT) == signal.{how})
"""


@pytest.mark.parametrize("how, status, said", [("SIG_DFL", -signal.SIGINT, ""), ("SIG_IGN", 0, "-2.0 True")])
def test_a_signal_that_ends_the_program_or_is_ignored_does_so_in_a_call(how, status, said):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(PRESSED).format(how=how)], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (status, said), done.stderr


# ---- the module itself

IMPORTED = """
    import _imp, _testcapi, array, importlib.util, threading
    where = importlib.util.spec_from_file_location("cgam._core", {path!r})
    requests, core = 0, None
    while core is None:
        _testcapi.set_nomemory(requests, requests + 1)
        try:
            core = _imp.create_dynamic(where)
        except MemoryError:
            requests += 1
        finally:
            _testcapi.remove_mem_hooks()
    assert requests > 50, requests
    bad = memoryview(array.array("d", [1, float("nan")])).cast("B").cast("d", (1, 2))

    def said():
        try:
            core.bank_new(bad, "f64", False, 0)
        except RuntimeError as error:
            return str(error)

    assert "row 0, column 1" in said(), said()
    for wrong in ((), (print,), (print, "text")):
        try:
            core.set_up(*wrong)
        except TypeError:
            continue
        raise SystemExit("set up")
    core.set_up(lambda status, message: None, threading.main_thread().ident)  # it should have raised
    assert "row 0, column 1" in said(), said()
    print(core.references(), core.version())
"""

LIMITED = """
    import resource
    import numpy as np
    from cgam import _core
    Z, path = np.eye(3), {path!r}
    np.save(path, Z)
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    pages = int(open("/proc/self/statm").read().split()[0])
    for call in (lambda: _core.bank_new(Z, "f64", False, 64), lambda: _core.bank_load(path, False, 64),
                 lambda: _core.run("version", "{{}}", 64, False), lambda: _core.model_open(None, 64)):
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2**26, most))  # stacks take 2^29
        try:
            call()
            raise SystemExit("it had threads all the same")
        except MemoryError:
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
    _core.bank_new(Z, "f64", False, 2)
    print(_core.references(), _core.version())
"""


@pytest.mark.parametrize("script", [pytest.param(IMPORTED, marks=refuses_memory), LIMITED], ids=["import", "threads"])
def test_what_begins_without_memory_can_begin_again(script, tmp_path):
    """The module while it is imported, and before anyone has told it how to raise; an env without room for its threads."""
    if script is LIMITED and os.environ.get("CGAM_SANITIZE") == "address":
        pytest.skip("ASan takes all addresses there are")
    path = _core.__file__ if script is IMPORTED else str(tmp_path / "v.npy")
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script).format(path=path)], capture_output=True, text=True)
    assert done.stdout.split() == ["0", cgam.__version__], done.stderr


# ---- without memory

def starve(name, arguments, request):
    """The answer, with one request of the interpreter for memory refused: the one after so many."""
    function = getattr(_core, name)
    gc.collect()  # or small objects come from what is kept for them
    _testcapi.set_nomemory(request, request + 1)
    try:
        return function(*arguments)
    finally:
        _testcapi.remove_mem_hooks()


def starved(world, name, arguments):
    """Answers with each request refused in turn, as text, until many in a row were not missed: the call makes fewer. None is a
    MemoryError."""
    answers = []
    while len(answers) < PATIENCE or None in answers[-PATIENCE:]:
        try:
            answer = starve(name, arguments(world), len(answers))
            answers.append("" if isinstance(answer, (_core.Handle, bytes)) else repr(answer))
            del answer
        except MemoryError:
            answers.append(None)
    return answers


@pytest.fixture(scope="module")
def frozen(world):
    """The collector sees only what is new, and is quick."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@refuses_memory
@pytest.mark.parametrize("name, arguments", CALLS, ids=map(name_of, CALLS))
def test_every_request_for_memory_may_be_refused(world, frozen, name, arguments):
    """A MemoryError comes out or the right answer, and nothing is lost: blocks that grow do not grow each time."""
    references = _core.references()
    answers = starved(world, name, arguments)
    assert set(answers) <= {None, answers[-1]}

    blocks = array.array("q", [0] * 30)  # which keeps no objects of its own
    for i in range(len(blocks)):
        starved(world, name, arguments)
        gc.collect()
        blocks[i] = sys.getallocatedblocks()
        if i and blocks[i] <= blocks[i - 1]:
            break
    else:
        pytest.fail(f"each round loses some: {blocks}")
    assert _core.references() == references
