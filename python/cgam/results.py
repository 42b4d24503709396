"""Results: frozen dataclasses with a one-line repr, and a table in notebooks."""
import dataclasses
import html
from typing import Any, Dict, List, Optional, Sequence, Tuple, Type, TypeVar

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._arrays import Array

_END_NAMES: List[str] = _core.end_names()
RESULT_DTYPE = np.dtype(_core.result_layout())
POINT_DTYPE, PATH_DTYPE = (np.dtype(layout) for layout in _core.landscape_layouts())
_NUMBERS: Tuple[str, ...] = RESULT_DTYPE.names or ()
_TOP = ("top_index", "top_p", "top_log_p")
_T = TypeVar("_T")


def show(value: Any) -> str:
    """A value in a few characters."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, np.ndarray):
        if value.dtype.names:
            return f"{len(value.dtype.names)} fields{list(value.shape)}"
        return f"{value.dtype}{list(value.shape)}"
    return repr(value)


class Shown:
    """A table of the fields for notebooks, and a repr of the first few."""

    _short: Tuple[str, ...] = ()

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={show(getattr(self, name))}" for name in self._short)
        return f"{type(self).__name__}({parts})"

    def _shown(self) -> List[str]:
        return [f.name for f in dataclasses.fields(self)]

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(f)}</th>"
            f"<td>{html.escape(show(getattr(self, f)))}</td></tr>"
            for f in self._shown()
            if getattr(self, f) is not None
        )
        return f"<table><caption>{type(self).__name__}</caption>{rows}</table>"


_CERTIFICATES = ("p_lower_bound", "contraction", "local_contraction", "fold_margin", "p_error", "unique", "stable",
                 "readout_error_bound")
_DECIDED = ("unique", "stable")  # 1, 0, or -1 where undecided
_ANSWERS = np.array([False, True, None], dtype=object)  # by that number


def _with_results(cls: Type[_T]) -> Type[_T]:
    """Makes a dataclass whose first fields are those of the library's results."""
    cls.__annotations__ = {**{name: Any for name in _NUMBERS}, **cls.__annotations__}
    return dataclasses.dataclass(frozen=True, repr=False, eq=False)(cls)


@_with_results
class Recall(Shown):
    """One query's answer: the fields of cgam_result as attributes (winner, p, gap, unique, p_from, ..).

    `cgam.fields("result")` describes them. NaN marks a value that is undefined or was not computed; winner is None if
    no memory wins, unique and stable are None if undecided."""

    top_index: NDArray[np.int64]  #: (k,) most probable first
    top_p: Array  #: (k,)
    top_log_p: Array  #: (k,)
    p_all: Optional[Array] = None  #: (N,) if vectors were requested
    s: Optional[Array] = None  #: (N,) gates
    r: Optional[Array] = None  #: (N,) scores
    readout: Optional[Array] = None  #: (d,) the mean of the memories under p

    _short = ("winner", "p", "gap", "end")

    def __getattr__(self, name: str) -> Any:
        # A recall holds the bytes that the library wrote; its fields are decoded on first access.
        if (name not in _NUMBERS and name not in _TOP) or "_block" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no {name}")
        fields = self.__dict__
        if name not in _TOP:
            fields.update(_core.result_dict(fields["_block"]))
        else:
            numbers = np.frombuffer(fields["_block"], np.float64, offset=RESULT_DTYPE.itemsize)
            rows = numbers.reshape(3, -1)
            if "_min_p" in fields:  # p is sorted, largest first
                rows = rows[:, rows[1] >= fields["_min_p"]]
            for key, row in zip(_TOP, rows):
                fields[key] = row.view(np.int64) if key == "top_index" else row
        return fields[name]

    def __dir__(self) -> List[str]:
        return [*object.__dir__(self), *_NUMBERS]

    @property
    def top_names(self) -> Optional[List[str]]:
        """The names of the most probable memories, None if the plan has no names."""
        names = self.__dict__.get("_names")
        return None if names is None else [names[i] for i in self.top_index]

    @property
    def top(self) -> List[Tuple[int, float]]:
        """The most probable memories as (index, p)."""
        return list(zip(self.top_index.tolist(), self.top_p.tolist()))

    @property
    def proved(self) -> Dict[str, bool]:
        """Which certificates are proved, rounding included; omits those that were not computed."""
        return {
            name: getattr(self, name + "_proved")
            for name in _CERTIFICATES
            if getattr(self, name) is not None and np.isfinite(getattr(self, name))
        }

    def plot(self, ax: Any = None) -> Any:
        """Bars of the most probable memories; requires matplotlib."""
        ax = axes(ax)
        ax.bar([str(i) for i in self.top_index], self.top_p)
        ax.axhline(self.p_lower_bound, linestyle=":", color="black", label="p is at least")
        ax.set_xlabel("memory")
        ax.set_ylabel("p")
        ax.legend()
        return ax


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Recalls(Shown):
    """The answers of many queries: the fields of Recall as arrays (B,); `recalls[i]` is one Recall.

    `unique` and `stable` are arrays of True, False and, where undecided, None; `winner` is -1 where no memory wins."""

    results: NDArray[Any]  #: (B,) structured, a field for each number of Recall
    top_index: NDArray[np.int64]  #: (B, k)
    top_p: Array  #: (B, k)
    top_log_p: Array  #: (B, k)
    p_all: Optional[Array] = None  #: (B, N)
    s: Optional[Array] = None  #: (B, N)
    r: Optional[Array] = None  #: (B, N)
    readout: Optional[Array] = None  #: (B, d)
    names: Optional[Sequence[str]] = None  #: of all memories, if the plan has names

    _short = ("winner", "p", "gap", "top_index")

    @property
    def top_names(self) -> Optional[List[List[str]]]:
        """The names of the most probable memories of each query, None if the plan has no names."""
        names = self.names
        return None if names is None else [[names[i] for i in row if i >= 0] for row in self.top_index]

    @property
    def top(self) -> List[List[Tuple[int, float]]]:
        """The most probable memories of each query as (index, p)."""
        return [[(i, p) for i, p in zip(*row) if i >= 0] for row in zip(self.top_index.tolist(), self.top_p.tolist())]

    @property
    def proved(self) -> Dict[str, NDArray[np.bool_]]:
        """Where certificates are proved, (B,); omits those that were computed for no query."""
        return {
            name: self.results[name + "_proved"]
            for name in _CERTIFICATES
            if np.any(self.results[name] >= 0 if name in _DECIDED else np.isfinite(self.results[name]))
        }

    def __dir__(self) -> List[str]:
        return [*object.__dir__(self), *_NUMBERS]

    def __len__(self) -> int:
        return len(self.results)

    def __getattr__(self, name: str) -> NDArray[Any]:
        if name not in _NUMBERS:
            raise AttributeError(f"Recalls has no {name}")
        values: NDArray[Any] = self.results[name]
        if name == "end":
            values = np.array(_END_NAMES)[values]
        if name in _DECIDED:
            values = _ANSWERS[values]
        return values

    def __getitem__(self, i: int) -> Recall:
        row = self.results[i]
        fields = {name: row[name].item() for name in _NUMBERS}
        fields["end"] = _END_NAMES[fields["end"]]
        for name in _DECIDED:
            fields[name] = _ANSWERS[fields[name]]
        fields["winner"] = None if fields["winner"] < 0 else fields["winner"]
        fields["_names"] = self.names
        for name in ("top_index", "top_p", "top_log_p", "p_all", "s", "r", "readout"):
            whole = getattr(self, name)
            fields[name] = None if whole is None else whole[i]
        for name in _TOP[::-1]:  # without what min_p left out
            fields[name] = fields[name][fields["top_index"] >= 0]
        return make(fields)


def make(fields: Dict[str, Any], new: Any = object.__new__, put: Any = object.__setattr__) -> Recall:
    """Makes a Recall whose __dict__ is `fields`, in a tenth of the time of its constructor."""
    recall: Recall = new(Recall)
    put(recall, "__dict__", fields)
    return recall


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Inspection(Shown):
    """Spectrum, critical penalty and uniqueness of a bank at alpha, beta and lam."""

    n: int
    d: int
    norm_min: float
    norm_max: float
    mu_min: float  #: eigenvalues of the Gram matrix
    mu_max: float
    rank: int
    alpha: float
    beta: float
    lam: float
    alpha_crit: float  #: infinite: no penalty is critical
    alpha_crit_from: float
    alpha_crit_to: float
    eta_min: float  #: a proved lower bound of the gate operator's eigenvalues
    regime: str  #: "subcritical", "critical" or "supercritical"
    negative_modes: int
    contraction: float
    unique: Optional[bool]  #: True: one answer, proved; None: undecided
    lambda_unique_max: float

    _short = ("n", "d", "alpha_crit", "regime", "contraction")


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Landscape(Shown):
    """The fixed points of one coupled recall, by rising energy."""

    points: NDArray[Any]  #: (count,) minimum, index, energy, winner, p, neff_entropy, basin, fold_margin, p_error
    p: Array  #: (count, N)
    unique: Optional[bool]  #: True proved, False several were found, None undecided
    unique_proved: bool
    starts: int  #: total number of descents
    unresolved: int  #: searches that ended at a point not distinct from others
    euler: int  #: sum of (-1)^index: 1 if all points are found and none is degenerate

    _short = ("points", "unique", "euler")

    def __len__(self) -> int:
        return len(self.points)

    @property
    def minima(self) -> NDArray[Any]:
        """The minima, where recalls end."""
        minima: NDArray[Any] = self.points[self.points["minimum"]]
        return minima


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Branch(Shown):
    """Fixed points in order of rising beta, and where the branch folds, forks or changes its leader."""

    path: NDArray[Any]  #: (points,) beta, energy, winner, p, fold_margin
    transitions: List[Tuple[float, str]]  #: (beta, "fold", "pitchfork" or "winner")

    _short = ("path", "transitions")

    def plot(self, ax: Any = None) -> Any:
        """p of the leader along the branch; requires matplotlib."""
        ax = axes(ax)
        ax.plot(self.path["beta"], self.path["p"])
        for beta, kind in self.transitions:
            ax.axvline(beta, linestyle=":", color="black", label=kind)
        ax.set_xscale("log")
        ax.set_xlabel("beta")
        ax.set_ylabel("p of the leader")
        if self.transitions:
            ax.legend()
        return ax


def axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("plot() needs matplotlib") from None
    return pyplot.subplots()[1]


def fields(struct: str) -> List[Tuple[str, str, str]]:
    """Describes the fields of a struct: (name, kind, words) each. "recall_opts" are the options of a recall, "result"
    is its answer; also "bank_info", "gate_info", "spectrum_info", "point", "anneal_point", "flow_report", .."""
    rows: List[Tuple[str, str, str]] = _core.fields(struct)
    return rows
