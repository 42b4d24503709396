"""Modular energy networks: layers with Lagrangians, joined by synapses with energies, and their flows.

    net = cgam.Net(
        layers={"v": cgam.Layer(10), "h": cgam.Layer(50, "softmax", beta=4.0, tau=0.1)},
        synapses={"W": cgam.net.Bilinear("h", "v", Z)})
    flow = net.flow({"v": query}, clamps=[cgam.net.Clamp("v", query)])

Energies are available by part; their sum never rises along a flow.
"""
import dataclasses
import math
import operator
import os
import tempfile
from typing import Any, Callable, Dict, List, Mapping, Optional, Protocol, Sequence, Tuple, Union

import numpy as np
from numpy.typing import NDArray

from . import _core, net_file
from ._arrays import Array, as_array, f64, indices
from .results import Shown, axes
from .verbs import Document, run

__all__ = ["Attention", "Bias", "Bilinear", "Clamp", "Conv", "Coupling", "Custom", "Flow", "Gram", "Hidden",
           "Lagrangian", "Layer", "LowRank", "Net", "SelfEnergy", "Tensor", "Trained", "Trajectory", "Values",
           "lagrangians"]


class Lagrangian(Protocol):
    """A custom Lagrangian: convex, called with a state x (n,). Slow, because it runs in Python."""

    def value(self, x: Array) -> float:
        """L(x)."""

    def activation(self, x: Array) -> Array:
        """The gradient of L at x, (n,)."""

    def hessian(self, x: Array, v: Array) -> Array:
        """The Hessian of L at x times v, (n,)."""


def lagrangians() -> Dict[str, Tuple[str, Dict[str, float]]]:
    """The library's Lagrangians: {name: (formula, {parameter: default})}."""
    return {name: (formula, dict(params)) for name, (formula, params) in _core.lagrangians().items()}


def _copy(x: memoryview) -> Array:
    """Copies numbers that the library frees after the call, for functions that may keep them."""
    return np.frombuffer(x).copy()


def _params(lagrangian: Union[str, Lagrangian], given: Dict[str, float]) -> Tuple[Any, Tuple[float, ...]]:
    """A Lagrangian and its parameters in the form that the extension takes."""
    values = [math.nan] * 3
    if isinstance(lagrangian, str):
        table = _core.lagrangians()
        if lagrangian not in table:
            raise ValueError(f"unknown Lagrangian '{lagrangian}' (valid: {', '.join(table)})")
        names = [name for name, _ in table[lagrangian][1]]
        for name, number in given.items():
            if name not in names:
                raise TypeError(f"{lagrangian} has no parameter '{name}'; it has {', '.join(names) or 'none'}")
            values[names.index(name)] = float(number)
        return lagrangian, tuple(values)
    if given:
        raise TypeError("a Lagrangian object takes no parameters here; it holds its own")
    own: Lagrangian = lagrangian

    def value(x: memoryview) -> float:
        return float(own.value(_copy(x)))

    def activation(x: memoryview, out: memoryview) -> None:
        np.frombuffer(out)[:] = own.activation(_copy(x))

    def hessian(x: memoryview, v: memoryview, out: memoryview) -> None:
        np.frombuffer(out)[:] = own.hessian(_copy(x), _copy(v))

    return (value, activation, hessian), tuple(values)


class Layer:
    """A layer: its shape, and a Lagrangian by name with its parameters, or a custom Lagrangian.

    tau    time constant, above 0; default 1
    scale  factor of the Lagrangian, above 0; default 1
    axes   number of trailing axes that one Lagrangian covers; default all
    """

    def __init__(self, shape: Union[int, Sequence[int]], lagrangian: Union[str, Lagrangian] = "identity", *,
                 tau: Optional[float] = None, scale: Optional[float] = None, axes: Optional[int] = None,
                 **params: float) -> None:
        given: Any = (shape,) if np.ndim(shape) == 0 else shape
        self.shape: Tuple[int, ...] = tuple(operator.index(n) for n in given)
        self.lagrangian = lagrangian
        self.options = {"tau": tau, "scale": scale, "axes": axes}
        self.params = params

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class Conv:
    """A convolution in place of a matrix W: from images (height, width, in), channels last, to images (.., .., out).

    kernels  (out, in, kernel height, kernel width)
    size     (height, width) of the input images
    stride   of both axes, or (down, across)
    same     True: pad with zeros to keep the image size; False: only positions where the whole kernel fits
    """

    def __init__(self, kernels: Any, size: Sequence[int], *, stride: Union[int, Sequence[int]] = 1,
                 same: bool = False) -> None:
        self.kernels = f64(kernels, "kernels")
        if self.kernels.ndim != 4:
            raise ValueError(f"kernels: shape {self.kernels.shape}, expected (out, in, height, width)")
        given: Any = (stride, stride) if np.ndim(stride) == 0 else stride
        self.size, self.stride = (tuple(operator.index(n) for n in pair) for pair in (size, given))
        if len(self.size) != 2 or len(self.stride) != 2 or min(self.stride) < 1:
            raise ValueError(f"size {self.size}, stride {self.stride}: expected two numbers for each")
        self.same = same

    def weights(self) -> Tuple[Any, ...]:
        return (self.kernels, *self.size, *self.stride, self.same)


class Synapse:
    """An energy of the activations of some layers."""

    kind = ""

    def __init__(self, layers: Sequence[str], arrays: Sequence[Any] = (), gain: float = 1.0,
                 more: Any = None) -> None:
        self.layers = tuple(layers)
        self.arrays = tuple(a.weights() if isinstance(a, Conv) else f64(a, "weights") for a in arrays if a is not None)
        self.gain = float(gain)
        self.more = more

    def check(self, name: str, layers: Sequence[Layer]) -> None:
        """Raises if flattened arrays do not fit the layers."""


class Bilinear(Synapse):
    """-gain x' W y, W (size of x, size of y) or a Conv from y to x."""

    kind = "bilinear"

    def __init__(self, x: str, y: str, W: Any, gain: float = 1.0) -> None:
        super().__init__((x, y), (W,), gain)


class SelfEnergy(Synapse):
    """gain/2 x' W x."""

    kind = "self"

    def __init__(self, x: str, W: Any, gain: float = 1.0) -> None:
        super().__init__((x,), (W,), gain)


class Gram(Synapse):
    """gain/2 x' (Z Z' - diag(diagonal)) x, never formed."""

    kind = "gram"

    def __init__(self, x: str, Z: Any, gain: float = 1.0, diagonal: Any = None) -> None:
        super().__init__((x,), (Z, diagonal), gain)


class Coupling(Synapse):
    """-gain x' y."""

    kind = "coupling"

    def __init__(self, x: str, y: str, gain: float = 1.0) -> None:
        super().__init__((x, y), (), gain)


class Bias(Synapse):
    """-gain a' x."""

    kind = "bias"

    def __init__(self, x: str, a: Any, gain: float = 1.0) -> None:
        self.bias = f64(a, "bias")
        super().__init__((x,), (np.ravel(self.bias),), gain)

    def check(self, name: str, layers: Sequence[Layer]) -> None:
        layer = layers[0]
        if self.bias.shape not in (layer.shape, (layer.size,)):
            raise ValueError(f"{name}: bias of shape {self.bias.shape}, expected {layer.shape}")


class Tensor(Synapse):
    """-gain sum T[i1, .., ik] x1[i1] .. xk[ik]."""

    kind = "tensor"

    def __init__(self, layers: Sequence[str], T: Any, gain: float = 1.0) -> None:
        self.T = f64(T, "T")
        if self.T.ndim < 2:
            raise ValueError(f"T: shape {self.T.shape}, expected an axis for each layer")
        super().__init__(layers, (self.T.reshape(-1, self.T.shape[-1]),), gain)

    def check(self, name: str, layers: Sequence[Layer]) -> None:
        sizes = tuple(layer.size for layer in layers)
        if self.T.shape != sizes:
            raise ValueError(f"{name}: T of shape {self.T.shape}, expected {sizes}")


class LowRank(Synapse):
    """-gain sum over r of w[r] <U1[r], x1> .. <Uk[r], xk>, Uj (rank, size of xj)."""

    kind = "lowrank"

    def __init__(self, layers: Sequence[str], U: Sequence[Any], w: Any = None, gain: float = 1.0) -> None:
        super().__init__(layers, (*U, w), gain)


class Hidden(Synapse):
    """-gain L(W x): a hidden layer that is always settled."""

    kind = "hidden"

    def __init__(self, x: str, W: Any, lagrangian: Union[str, Lagrangian] = "softmax", gain: float = 1.0,
                 **params: float) -> None:
        super().__init__((x,), (W,), gain, _params(lagrangian, params))


class Attention(Synapse):
    """-gain/beta sum over heads and queries of log sum over keys of exp(beta <query, key>).

    beta is 1 by default. Queries are the rows of x, keys those of y; WQ and WK (heads, width, columns) project
    them."""

    kind = "attention"

    def __init__(self, x: str, y: str, *, beta: Optional[float] = None, WQ: Any = None, WK: Any = None,
                 exclude_self: bool = False, gain: float = 1.0) -> None:
        heads, width = 1, 0
        if (WQ is None) != (WK is None):
            raise ValueError("give both WQ and WK, or neither")
        if WQ is not None:
            WQ, WK = f64(WQ, "WQ"), f64(WK, "WK")
            if WQ.ndim != 3 or WK.ndim != 3 or WQ.shape[:2] != WK.shape[:2]:
                raise ValueError(f"WQ {WQ.shape}, WK {WK.shape}: expected (heads, width, columns)")
            heads, width = WQ.shape[:2]
        super().__init__((x, y), (WQ, WK), gain, (beta, heads, width, exclude_self))


class Custom(Synapse):
    """A custom energy: f(a1, .., ak) -> (energy, [dE/da1, .., dE/dak]), each flat. Slow, because it runs
    in Python; derivatives of the currents are central differences."""

    kind = "custom"

    def __init__(self, layers: Sequence[str], f: Callable[..., Tuple[float, Sequence[Any]]]) -> None:
        def evaluate(act: List[memoryview], current: List[Optional[memoryview]]) -> float:
            energy, gradients = f(*(_copy(a) for a in act))
            if len(gradients) != len(act):
                raise ValueError(f"{len(gradients)} gradients for {len(act)} layers")
            for out, gradient in zip(current, gradients):
                if out is not None:
                    np.frombuffer(out)[:] -= gradient
            return float(energy)

        super().__init__(layers, (), 1.0, evaluate)


@dataclasses.dataclass(frozen=True)
class Clamp:
    """Holds a layer at a value from `start` to `stop`; None holds it at its value at `start`."""

    layer: str
    value: Any = None  #: the layer's shape, or (B, ...) with one value per state
    start: float = 0.0
    stop: float = math.inf


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Values(Shown):
    """A network at a point; a batch adds a first axis."""

    energy: Array
    parts: Dict[str, Array]  #: by layer, then by synapse; their sum is the energy
    activation: Dict[str, Array]
    current: Dict[str, Array]
    rate: Dict[str, Array]  #: dx/dt, 0 in clamped layers
    power: Array  #: dE/dt, predicted from the Hessians

    _short = ("energy", "power")


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Trajectory(Shown):
    """The moments of one flow."""

    time: Array
    energy: Array
    power: Array
    residual: Array
    parts: Dict[str, Array]
    events: NDArray[np.int64]
    winner: NDArray[np.int64]
    states: Dict[str, Array]  #: (moments, ...) by layer; empty if not kept

    _short = ("time", "energy")

    def plot(self, ax: Any = None) -> Any:
        """Energy in time, by part; requires matplotlib."""
        ax = axes(ax)
        for name, part in self.parts.items():
            ax.plot(self.time, part, linewidth=0.8, label=name)
        ax.plot(self.time, self.energy, color="black", label="energy")
        ax.set_xlabel("time")
        ax.legend()
        return ax


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Flow(Shown):
    """How a flow ended, and where."""

    end: str  #: "steady", "horizon", "settled", "winner", "rose", "diverged", "steps", "stuck"
    method: str
    time: float
    steps: int
    evaluations: int
    jacobians: int
    energy_start: float
    energy_end: float
    energy_rise: float
    rise_time: float
    power: float
    residual: float
    settled: float
    winner: int
    winner_changes: int
    winner_time: float
    reason: str  #: the integrator's message if it is stuck; empty otherwise
    layers: Dict[str, Array]  #: states at the end
    trajectory: Optional[Trajectory] = None

    _short = ("end", "time", "energy_start", "energy_end")


State = Union[Mapping[str, Any], Any]


@dataclasses.dataclass(frozen=True, repr=False)
class Trained(Shown):
    """What `Net.train` learned. The document has the loss of every epoch, and that `before` and after."""

    net: "Net"
    document: Document

    _short = ("net",)


class Net:
    """A network of layers and synapses, by name."""

    def __init__(self, layers: Mapping[str, Layer], synapses: Mapping[str, Synapse]) -> None:
        self.layers = dict(layers)
        self.synapses = dict(synapses)
        self._handle = _core.net_new()
        self._index = {name: i for i, name in enumerate(self.layers)}
        for name, layer in self.layers.items():
            lagrangian, params = _params(layer.lagrangian, layer.params)
            _core.net_layer(self._handle, name, layer.shape, lagrangian, params, layer.options)
        for name, synapse in self.synapses.items():
            joined = tuple(self._layer(layer, name) for layer in synapse.layers)
            synapse.check(name, [self.layers[layer] for layer in synapse.layers])
            _core.net_synapse(self._handle, synapse.kind, name, joined, synapse.gain, synapse.arrays,
                              synapse.more)
        self.size: int = _core.net_size(self._handle)[0]
        self._names = [*self.layers, *self.synapses]

    def _layer(self, layer: str, where: str) -> int:
        if layer not in self._index:
            raise ValueError(f"{where}: no layer '{layer}' (valid: {', '.join(self._index)})")
        return self._index[layer]

    def __repr__(self) -> str:
        return f"Net({', '.join(self.layers)}; {', '.join(self.synapses)})"

    def state(self, values: State = None) -> Array:
        """The layers in order as one array (size,) or (B, size); missing layers are 0."""
        if values is None:
            return np.zeros(self.size)
        if not isinstance(values, Mapping):
            x = f64(values, "x")
            if x.ndim not in (1, 2) or x.shape[-1] != self.size:
                raise ValueError(f"x: shape {x.shape}, expected ({self.size},) or (B, {self.size})")
            return x
        flat = {name: self._flat(name, value) for name, value in values.items()}
        counts = {x.shape[0] for x in flat.values() if x.ndim == 2}
        if len(counts) > 1:
            raise ValueError(f"x: batches of {' and '.join(map(str, sorted(counts)))} states")
        out = np.zeros((*counts, self.size))
        at = 0
        for name, layer in self.layers.items():
            if name in flat:
                out[..., at : at + layer.size] = flat[name]
            at += layer.size
        return out

    def _flat(self, name: str, value: Any) -> Array:
        layer = self.layers[list(self.layers)[self._layer(name, "x")]]
        x = f64(value, name)
        if x.shape == layer.shape or x.shape == (layer.size,):
            return x.reshape(layer.size)
        if x.ndim and (x.shape[1:] == layer.shape or x.shape[1:] == (layer.size,)):
            return x.reshape(x.shape[0], layer.size)
        raise ValueError(f"{name}: shape {x.shape}, expected {layer.shape}")

    def _split(self, x: Array) -> Dict[str, Array]:
        out, at = {}, 0
        for name, layer in self.layers.items():
            out[name] = x[..., at : at + layer.size].reshape(*x.shape[:-1], *layer.shape)
            at += layer.size
        return out

    def _clamped(self, clamped: Sequence[str]) -> Optional[Tuple[bool, ...]]:
        for name in clamped:
            self._layer(name, "clamped")
        return tuple(name in clamped for name in self.layers) if clamped else None

    def values(self, x: State = None, *, clamped: Sequence[str] = ()) -> Values:
        """Energies, activations, currents and rates at x."""
        at = self.state(x)
        head = at.shape[:-1]
        B = at.shape[0] if at.ndim == 2 else 1
        energy, power = np.empty(head), np.empty(head)
        parts = np.empty((*head, len(self._names)))
        activation, current, rate = (np.empty(at.shape) for _ in range(3))
        _core.net_eval(self._handle, B, at, self._clamped(clamped), energy, parts, activation, current, rate,
                       power)
        return Values(energy, {name: parts[..., i] for i, name in enumerate(self._names)},
                      self._split(activation), self._split(current), self._split(rate), power)

    def energy(self, x: State = None) -> Array:
        """The sum of all parts at x."""
        return self.values(x).energy

    def jacobian(self, x: State, v: Any, *, clamped: Sequence[str] = ()) -> Array:
        """The derivative of the rates at x in the directions v, (size,) or (k, size)."""
        along = f64(v, "v")
        if along.ndim not in (1, 2) or along.shape[-1] != self.size:
            raise ValueError(f"v: shape {along.shape}, expected ({self.size},) or (k, {self.size})")
        out = np.empty(along.shape)
        count = along.shape[0] if along.ndim == 2 else 1
        _core.net_jacobian(self._handle, self.state(x), self._clamped(clamped), count, along, out)
        return out

    def eigenvalues(self, x: State, count: int = 1, *, clamped: Sequence[str] = (),
                    tol: Optional[float] = None) -> Array:
        """The largest eigenvalues of the Jacobian at x, falling; all negative: a steady x is stable.

        tol: largest residual, relative to the largest eigenvalue; None = the library's default."""
        values = np.empty(operator.index(count))
        found, _, converged = _core.net_eigen(self._handle, self.state(x), self._clamped(clamped), count,
                                              0.0 if tol is None else tol, values)
        if not converged:
            raise ArithmeticError("the iteration for eigenvalues did not converge")
        return values[:found]

    def flow(self, x: State = None, *, clamps: Sequence[Clamp] = (), method: Optional[str] = None,
             stop: Optional[Sequence[str]] = None, watch: Optional[str] = None, record: bool = False,
             **options: Any) -> Union[Flow, List[Flow]]:
        """tau dx/dt = currents - x from x (a batch gives a list) to a steady state or t_end.

        method   "auto" (default), "adams", "bdf", "rk4" or "euler"
        stop     events that end the flow: "steady" (default), "settled", "winner"
        watch    layer whose largest element is tracked
        record   keep the trajectory of the first state
        options  t_end, rtol, atol, step, step_max, max_steps, steady, settle, energy_tol, limit, sample
                 (include/cgam/flow.h describes them)
        """
        state = np.array(self.state(x))
        B = state.shape[0] if state.ndim == 2 else 1
        if watch is not None:
            options["watch"] = self._layer(watch, "watch")
        held = []
        for c in clamps:
            value = None if c.value is None else self._flat(c.layer, c.value)
            held.append((self._layer(c.layer, "clamp"), float(c.start), float(c.stop), value,
                         value is not None and value.ndim == 2))
        reports, moments = _core.net_flow(self._handle, B, state, method, options,
                                          None if stop is None else tuple(stop), tuple(held), record, record)
        path = self._trajectory(moments) if moments else None
        if state.ndim == 1:
            return Flow(**reports[0], layers=self._split(state), trajectory=path)
        return [Flow(**report, layers=self._split(state[i]), trajectory=path if i == 0 else None)
                for i, report in enumerate(reports)]

    def save(self, path: Union[str, "os.PathLike[str]"], start: State = None) -> None:
        """Writes a file for `cgam net run` and `cgam net train`, .json, and the arrays beside it, .npz.

        start  the state that it starts from; missing layers are 0"""
        path, state = os.fspath(path), self.state(start)
        if not path.endswith(".json"):
            raise ValueError(f"path: {path} must end in .json")
        if state.ndim != 1:
            raise ValueError(f"start: {len(state)} states, expected one")
        net_file.save(self, path, self._split(state))

    def train(self, data: Any, labels: Any = None, *, clamp: str, read: str, learn: Any, start: State = None,
              test: Any = None, test_labels: Any = None, progress: bool = False, **options: Any) -> Trained:
        """Learns weights from rows of data: the verb `net train` over arrays. The result has a new network.

        data     (examples, size of the layer clamp);   labels  (examples,) classes from 0
        clamp    layer that an example fills: held there, or if it is also read, its start
        read     layer whose activations the loss compares
        learn    names of synapses, for all their weights, or of single numbers: "memories.beta", "visible.gamma"
        start    state of the other layers; missing layers are 0
        test     rows that are only counted, before and after; test_labels: their classes
        options  of the command line: loss, noise, steps, step_size, steady, method ("implicit", "adjoint", "equilibrium"),
                 optimizer, epochs, batch, rate, ridge, held_out, stop, seed, journal, ..; see `cgam help net train`
        """
        for name in (clamp, read):
            self._layer(name, "train")
        with tempfile.TemporaryDirectory(prefix="cgam-net-") as folder:
            def file(name: str, value: Any, whole: bool) -> Optional[str]:
                if value is None:
                    return None
                array = as_array(value, name)
                if whole:
                    array = indices(array, array.size)
                else:
                    array = array if array.dtype in (np.float16, np.float32, np.float64) else f64(array, name)
                    array = array.reshape(len(array), -1) if array.ndim > 1 else array
                at = os.path.join(folder, name + ".npy")
                np.save(at, array)
                return at

            self.save(os.path.join(folder, "net.json"), start)
            out = os.path.join(folder, "trained.json")
            document = run("net train", os.path.join(folder, "net.json"), data=file("data", data, False),
                           labels=file("labels", labels, True), test=file("test", test, False),
                           test_labels=file("test_labels", test_labels, True), clamp=clamp, read=read,
                           learn=[learn] if isinstance(learn, str) else list(learn), out=out, progress=progress, **options)
            for name in ("saved", "weights"):
                document.pop(name, None)
            return Trained(net_file.trained(self, out), document)

    def _trajectory(self, moments: Tuple[Any, ...]) -> Trajectory:
        count, time, energy, power, residual, parts, events, winner, states = moments
        table = np.frombuffer(parts).reshape(count, -1)
        return Trajectory(
            np.frombuffer(time), np.frombuffer(energy), np.frombuffer(power), np.frombuffer(residual),
            {name: table[:, i] for i, name in enumerate(self._names)}, np.frombuffer(events, np.int64),
            np.frombuffer(winner, np.int64),
            self._split(np.frombuffer(states).reshape(count, -1)) if states else {})
