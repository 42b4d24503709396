"""Banks of memories and plans of recall."""
import dataclasses
import os
import tempfile
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _core
from ._arrays import F64, I64, Array, as_array, f64, indices, stored, vector
from .gate import Gate, GateInfo, Spectrum
from .learn import Gradient, grad
from .results import PATH_DTYPE, POINT_DTYPE, RESULT_DTYPE, Branch, Inspection, Landscape, Recall, Recalls, make
from .verbs import default

_empty = np.empty
_run = _core.plan_run


class Plan:
    """A prepared recall: the gate operator of one alpha, factored for any number of queries.

    Made by `Bank.plan`. Threads may share it."""

    __slots__ = ("bank", "names", "_handle", "_dc", "_n", "_top", "_metric", "_min_p", "__weakref__")

    bank: "Bank"
    _handle: Any
    _n: int
    _metric: Any

    def __init__(self, bank: "Bank", mode: Optional[str] = None, *, projection: Any = None,
                 gate_weights: Any = None, top: Optional[int] = None, only: Any = None, except_: Any = None,
                 where: Optional[str] = None, columns: Any = None, names: Any = None, min_p: float = 0,
                 metric: str = "dot", **options: Any) -> None:
        self.names: Optional[Sequence[str]] = bank.names if names is True else _names(names, bank.whole)
        if names is True and self.names is None:
            raise ValueError("names: the bank has no names")
        self._min_p = float(min_p)
        among, self._n = bank._handle, bank.n
        if projection is not None:
            projection = f64(projection, "projection")
        if gate_weights is not None:
            gate_weights = f64(gate_weights, "gate_weights")
        keep = _selected(bank, self.names, only, except_, where, columns)
        if keep is not None:
            among, self._n = _core.bank_only(among, _bits(keep)), 0
            self._n = int(_core.bank_info(among)["n"])
            if gate_weights is not None and gate_weights.shape[:1] == (bank.whole,):
                gate_weights = np.ascontiguousarray(gate_weights[keep])
        self._metric = None
        if metric != "dot":
            among = self._metric = _measured(among, mode, metric, projection, options)
        self._handle = _core.plan_new(among, mode, projection, gate_weights, options or None)
        self.bank = bank
        weights = gate_weights if projection is None else projection
        self._dc: int = weights.shape[1] if weights is not None else bank.d if metric == "dot" else 0
        self._top: int = min(_top() if top is None else _count(top, "top"), self._n)

    def recall(self, query: Any, context: Any = None, *, target: Any = None, top: Optional[int] = None,
               vectors: bool = False, readout: bool = False) -> Union[Recall, Recalls]:
        """A query (d,) gives a Recall, queries (B, d) give Recalls.

        context  (d_c,) for all queries, or (B, d_c); None = 0
        target   an index, or (B,) indices: the memory that p and the gaps describe, instead of the winner
        top      number of most probable memories to list
        vectors  also return p, gates s and scores r of every memory: (N,) or (B, N)
        readout  also return the mean of the memories under p: (d,) or (B, d)
        """
        q = f64(query, "query")
        if context is not None:
            context = f64(context, "context")
        k = self._top if top is None else min(_count(top, "top"), self._n)
        if self._metric is not None:
            q = self._mapped(q, context, readout)
        if q.ndim != 1:
            return self._many(q, context, target, k, vectors, readout)
        if target is not None:
            target = np.array([_index(target)], I64)
        if context is not None and context.ndim != 1:
            raise ValueError(f"context: shape {context.shape}, expected ({self._dc},) for one query")
        fields: Dict[str, Any] = {"p_all": None, "s": None, "r": None, "readout": None}
        if vectors:
            for name in ("p_all", "s", "r"):
                fields[name] = _empty(self._n, F64)
        if readout:
            fields["readout"] = _empty(self.bank.d, F64)
        fields["_block"] = _run(self._handle, 1, k, q, context, target, None, None, None, None,
                                *fields.values())
        fields["_names"] = self.names
        if self._min_p > 0:
            fields["_min_p"] = self._min_p
        return make(fields)

    def _mapped(self, q: Array, context: Optional[Array], readout: bool) -> Array:
        """Queries whose products with the rows of the plan are the metric."""
        if readout:
            raise ValueError("readout requires metric dot")
        if context is not None and self._dc == 0:
            raise ValueError("context: with a metric it requires gate_weights (the memories, to gate as without)")
        if q.shape[-1:] != (self.bank.d,):
            raise ValueError(f"query: shape {q.shape}, expected ({self.bank.d},) or (B, {self.bank.d})")
        out = _empty((*q.shape[:-1], _core.bank_info(self._metric)["d"]))
        _core.metric_queries(self._metric, self.bank.d, q, out)
        return out

    def _many(self, q: Array, c: Optional[Array], target: Any, k: int, vectors: bool,
              readout: bool) -> Recalls:
        bank = self.bank
        if q.ndim != 2 or (q.shape[1] != bank.d and self._metric is None):
            raise ValueError(f"query: shape {q.shape}, expected ({bank.d},) or (B, {bank.d})")
        B, n = q.shape[0], self._n
        if B == 0:
            raise ValueError("query: the array is empty")
        if c is not None and c.shape not in ((self._dc,), (B, self._dc)):
            raise ValueError(f"context: shape {c.shape}, expected ({self._dc},) or ({B}, {self._dc})")
        if target is not None:
            target = indices(target, B)
        results = np.zeros(B, RESULT_DTYPE)
        index, p, log_p = _empty((B, k), I64), _empty((B, k)), _empty((B, k))
        p_all = s = r = None
        if vectors:
            p_all, s, r = _empty((B, n)), _empty((B, n)), _empty((B, n))
        out = _empty((B, bank.d)) if readout else None
        _run(self._handle, B, k, q, c, target, results.view(np.uint8), index, p,
                       log_p, p_all, s, r, out)
        if self._min_p > 0:
            low = p < self._min_p
            index[low], p[low], log_p[low] = -1, 0, -np.inf
        return Recalls(results, index, p, log_p, p_all, s, r, out, self.names)

    def grad(self, query: Any, context: Any = None, *, target: Any = None, loss: Optional[str] = None, dp: Any = None,
             dr: Any = None, dy: Any = None, x: Any = None, margin: float = 1.0, weight: Any = None,
             wrt: Any = ("q", "c"), start: Any = None, certify: bool = False, leave_out: bool = False,
             vectors: bool = False) -> Gradient:
        """Settles the queries, and returns the gradient of a loss of the answers. Modes "first" and "coupled".

        loss       "nll": -log p of the target (default); "readout": |Z'p - x|^2; "margin": max(0, margin - lead of
                   the target's score)
        dp, dr, dy of your own loss: its derivatives with respect to p (B, N), the scores r (B, N), the readout Z'p (B, d)
        target     an index, or (B,) indices: of "nll" and "margin"
        x          (B, d), of "readout"
        weight     (B,) of the queries in the sum; default 1
        wrt        names of what to differentiate by: "q", "c", "P", "W", "Z", "alpha", "beta", "lam", "b", "u"
        start      (B, N), mode "coupled": start from these weights, such as an earlier p
        certify    also return proved bounds of the errors of the gradients of b and u
        leave_out  mark queries without a gradient in left_out, and leave them out of sums; default: an error
        vectors    also return p, r and readout

        The gradient is that of the settled answer, by one linear system (no unrolling). It exists only where the
        Hessian A - beta lambda^2 (diag p - pp') is positive definite. Where that is not proved, as at a fold, raises
        cgam.Error of status "CGAM_E_NOT_POSITIVE", with the query and its margin in the message.
        """
        return grad(self, query, context, target, loss, {"dp": dp, "dr": dr, "dy": dy}, x, margin, weight, wrt, start,
                    certify, leave_out, vectors)

    def landscape(self, query: Any, context: Any = None, *, starts: Optional[int] = None,
                  seed: int = 0) -> Landscape:
        """The fixed points of one recall that the starts find: minima, saddles, basins. Mode "coupled".

        starts   number of random starts, in addition to the fixed ones; default 64
        """
        count = int(default("landscape", "starts")) if starts is None else _count(starts, "starts", 2**63 - 1)
        points, p, rest = _core.plan_landscape(self._handle, *self._one(query, context), count,
                                               _count(seed, "seed", 2**64 - 1))
        found = np.frombuffer(points, POINT_DTYPE)
        return Landscape(found, np.frombuffer(p, F64).reshape(len(found), self._n), **rest)

    def branch(self, query: Any, context: Any = None) -> Branch:
        """The branch that a recall of mode "anneal" follows from small beta to the plan's beta."""
        path, transitions = _core.plan_branch(self._handle, *self._one(query, context))
        return Branch(np.frombuffer(path, PATH_DTYPE), transitions)

    def _one(self, query: Any, context: Any) -> Tuple[Array, Optional[Array]]:
        if self._metric is not None:
            raise ValueError("landscape and branch require metric dot")
        c = None if context is None else vector(context, "context", self._dc)
        return vector(query, "query", self.bank.d), c

    @property
    def gate(self) -> GateInfo:
        """Properties of the gate operator at the plan's alpha."""
        return GateInfo(**_core.plan_gate(self._handle))

    @property
    def context_margin(self) -> float:
        """Mode flow with a free context: it settles only if this is positive; NaN if the context is clamped."""
        margin: float = _core.plan_context_margin(self._handle)
        return margin

    def route(self, queries: int = 1, vectors: bool = False) -> Tuple[str, str, int]:
        """How a run is computed: path, precision of most of its arithmetic, queries that run together."""
        way: Tuple[str, str, int] = _core.plan_route(self._handle, queries, vectors)
        return way


class Bank:
    """A bank of memories, the rows of Z (N, d).

        bank = cgam.Bank(Z)                     # f64, f32, f16, bfloat16; shared, not copied
        bank = cgam.Bank.open("Z.safetensors")  # mapped if the file allows

    Z is an array, a memmap, or any object with __array_interface__ or __dlpack__ (a torch tensor on the CPU).
    The bank borrows it and keeps it alive: do not write into it meanwhile. Rows may have gaps (a slice
    Z[:, :64] or Z[::2]); any other layout or dtype raises a ValueError.

    normalize  divide each row by its norm, without a copy
    dtype      "bf16": Z is uint16 that holds bfloat16
    copy       True: copy the rows to C order
    threads    None: shared by all banks, one per core
    """

    __slots__ = ("_handle", "n", "d", "_info", "_path", "_how", "_own_names", "__weakref__")

    n: int  #: memories
    d: int  #: numbers of a memory

    def __init__(self, Z: Any, *, normalize: bool = False, dtype: Optional[str] = None,
                 copy: bool = False, threads: Optional[int] = None) -> None:
        self._path, self._how = None, (normalize, count_threads(threads))
        rows, kind = stored(Z, "bank", dtype, copy)
        self._take(_core.bank_new(rows, kind, normalize, count_threads(threads)))

    @classmethod
    def open(cls, path: Union[str, "os.PathLike[str]"], *, normalize: bool = False,
             threads: Optional[int] = None) -> "Bank":
        """Opens a bank from FILE or FILE:MEMBER, .npy, .npz, .safetensors or .csv."""
        bank = cls.__new__(cls)
        bank._path, bank._how = os.fspath(path), (normalize, count_threads(threads))
        bank._reopen()
        return bank

    _path: Optional[str]
    _how: Tuple[bool, int]
    _own_names: Union[None, bool, List[str]]

    def _reopen(self) -> None:
        self._take(_core.bank_load(self._path, *self._how))

    def _take(self, handle: Any) -> None:
        self._handle = handle
        self._own_names = False  # not read yet
        self._info: Dict[str, Any] = _core.bank_info(handle)
        self.n = self._info["n"]
        self.d = self._info["d"]

    @property
    def shape(self) -> Tuple[int, int]:
        return self.n, self.d

    @property
    def dtype(self) -> str:
        """Type of the stored rows: "f64", "f32", "f16" or "bf16"."""
        return str(self._info["dtype"])

    @property
    def norms(self) -> Tuple[float, float]:
        """The smallest and the largest norm of a memory."""
        return self._info["norm_min"], self._info["norm_max"]

    @property
    def unit(self) -> bool:
        return bool(self._info["unit"])

    @property
    def mapped(self) -> bool:
        """True if rows are pages of the file passed to `open`."""
        return bool(self._info["mapped"])

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        return f"Bank({self.n} x {self.d}, {self.dtype})"

    def __getitem__(self, i: int) -> Array:
        """Memory i in double, (d,)."""
        i = _index(i)
        if not -self.n <= i < self.n:
            raise IndexError(f"no memory {i} (valid: 0 to {self.n - 1})")
        out = _empty(self.d)
        _core.bank_row(self._handle, i % self.n, out)
        return out

    @property
    def whole(self) -> int:
        """Memory numbers are below this: n, and the memories that were dropped from a packed bank."""
        return int(self._info["whole"])

    @property
    def names(self) -> Optional[List[str]]:
        """The names in a packed bank, by memory number ("" for a dropped memory); None if it has none."""
        if self._own_names is False:
            self._own_names = _core.bank_names(self._handle)
        return self._own_names  # type: ignore[return-value]

    @property
    def columns(self) -> Dict[str, str]:
        """The columns in a packed bank: {name: "integer", "real" or "text"}."""
        found: Dict[str, str] = _core.bank_columns(self._handle)
        return found

    def sketch(self) -> "Bank":
        """Makes the sketch that recalls with fast=True search, once for all plans. Not while other threads use the bank."""
        _core.bank_sketch(self._handle)
        self._info["sketch"] = True
        return self

    def add(self, rows: Any, *, names: Any = None, columns: Any = None) -> "Bank":
        """Appends rows (k, d) to the packed bank's file, and opens it again. Plans made before keep the old bank.

        rows     an array, or a file
        names    of the new rows, if the bank has names: a sequence, or a file with one per line
        columns  of the new rows, if the bank has columns: a dict of arrays, or a .csv or .npz file
        """
        with tempfile.TemporaryDirectory() as folder:
            def put(value: Any, name: str, write: Callable[[str, Any], Any]) -> Optional[str]:
                if value is None or isinstance(value, (str, os.PathLike)):
                    return None if value is None else os.fspath(value)
                write(os.path.join(folder, name), value)
                return os.path.join(folder, name)
            _core.pack_add(self._handle, self._packed(), put(rows, "rows.npy", _save_rows), put(names, "names", _save_names),
                           put(columns, "columns.npz", lambda path, arrays: np.savez(path, **arrays)))
        self._reopen()
        return self

    def put(self, rows: Any, values: Any) -> "Bank":
        """Replaces memories in the packed bank's file by values (k, d), an array or a file, and opens it again."""
        numbers = np.require(as_array(rows, "rows"), I64, ["C", "A"]).reshape(-1)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows.npy")
            if isinstance(values, (str, os.PathLike)):
                path = os.fspath(values)
            else:
                _save_rows(path, values)
            _core.pack_put(self._handle, self._packed(), path, numbers)
        self._reopen()
        return self

    def drop(self, rows: Any) -> "Bank":
        """Drops memories from the packed bank's file - booleans (whole,), numbers, or names - and opens it again."""
        keep = _mask(rows, self, None, "rows")
        _core.pack_drop(self._handle, self._packed(), self.whole, _bits(keep))
        self._reopen()
        return self

    def _packed(self) -> str:
        if self._path is None:
            raise ValueError("the bank is not a file; cgam.Bank.open opens a packed bank")
        return self._path

    def plan(self, mode: Optional[str] = None, *, projection: Any = None, gate_weights: Any = None,
             top: Optional[int] = None, only: Any = None, except_: Any = None, where: Optional[str] = None,
             columns: Any = None, names: Any = None, min_p: float = 0, metric: str = "dot", **options: Any) -> Plan:
        """Prepares recalls of one mode.

        mode          "first" (default), "coupled", "flow" or "anneal"
        projection    P (d, d_c): gates see Z P c;   gate_weights  W (N, d_c): gates see W c
        only          recall among these memories: booleans (N,), row numbers, or names; rows keep their numbers
        except_       leave these memories out, in the same forms
        where         recall among memories whose columns fulfil a predicate: "lang = 'de' and year >= 2020"
        columns       for where: a .csv or .npz file; None: those of the packed bank
        names         of all memories: a sequence, or a file with one name per line; True: those of the packed bank.
                      Results then have top_names
        min_p         list only memories at least this probable; the lists of several queries are filled up with index -1
        metric        "dot" (default), "cosine" or "l2", at alpha = 0: how query and memories are compared. A context
                      then requires gate_weights
        certify       how much to prove: "usual" (default), "full" or True (everything, at any cost), "none"
        options       alpha, beta, lam, activation, fast, tol_p, none, tol, max_iter, ..: all options that
                      `cgam.fields("recall_opts")` describes, with _ for -, and lam for lambda
        """
        return Plan(self, mode, projection=projection, gate_weights=gate_weights, top=top, only=only, except_=except_,
                    where=where, columns=columns, names=names, min_p=min_p, metric=metric, **options)

    def recall(self, query: Any, context: Any = None, *, target: Any = None, top: Optional[int] = None,
               vectors: bool = False, readout: bool = False, **options: Any) -> Union[Recall, Recalls]:
        """A plan and a recall in one call: `options` are those of `plan`, the others those of `Plan.recall`."""
        return self.plan(top=top, **options).recall(query, context, target=target, vectors=vectors,
                                           readout=readout)

    def inspect(self, alpha: Optional[float] = None, *, beta: Optional[float] = None,
                lam: Optional[float] = None) -> Inspection:
        """Spectrum, critical penalty, and what the parameters mean for a coupled recall."""
        found = _core.bank_inspect(self._handle, alpha, beta, lam)
        found["negative_modes"] = found["negative"]
        return Inspection(**{f.name: found[f.name] for f in dataclasses.fields(Inspection)})

    def gate(self, alpha: float, *, full: bool = False) -> Gate:
        """The gate operator A(alpha), factored; full: also compute alpha_crit, at any cost."""
        return Gate(self, alpha, full=full)

    def spectrum(self) -> Spectrum:
        """One decomposition for every alpha."""
        return Spectrum(self)

    def score(self, x: Any) -> Array:
        """Z x, (N,), in one pass."""
        out = _empty(self.n)
        _core.bank_score(self._handle, vector(x, "x", self.d), out)
        return out

    def combine(self, w: Any) -> Array:
        """Z' w, (d,), in one pass."""
        out = _empty(self.d)
        _core.bank_combine(self._handle, vector(w, "w", self.n), out)
        return out


def _names(names: Any, n: int) -> Optional[Sequence[str]]:
    if names is None:
        return None
    if isinstance(names, (str, os.PathLike)):
        with open(names, encoding="utf-8") as file:
            names = file.read().splitlines()
    if len(names) != n:
        raise ValueError(f"names: {len(names)} names, but the bank has {n} memories")
    known: Sequence[str] = list(names)
    return known


def _mask(rows: Any, bank: Bank, names: Optional[Sequence[str]], what: str) -> Any:
    """The selected memories as booleans (whole,)."""
    n = bank.whole
    if isinstance(rows, str):
        rows = [rows]
    if not hasattr(rows, "dtype") and len(rows) > 0 and all(isinstance(name, str) for name in rows):
        names = names if names is not None else bank.names
        if names is None:
            raise ValueError(f"{what}: the bank has no names")
        wanted = set(rows)
        unknown = wanted.difference(names)
        if unknown:
            raise ValueError(f"{what}: no memory named '{min(unknown)}'")
        return np.array([name in wanted for name in names])
    rows = as_array(rows, what)
    if rows.dtype == bool and rows.shape == (n,):
        return rows
    if rows.dtype.kind not in "iu" or rows.ndim != 1:
        raise ValueError(f"{what}: expected {n} booleans or row numbers, not {rows.dtype}{list(rows.shape)}")
    if rows.size and not (0 <= rows.min() and rows.max() < n):
        raise ValueError(f"{what}: row numbers must be from 0 to {n - 1}")
    keep = np.zeros(n, bool)
    keep[rows] = True
    return keep


def _selected(bank: Bank, names: Optional[Sequence[str]], only: Any, except_: Any, where: Optional[str], columns: Any) -> Any:
    """The memories that take part as booleans (whole,); None: all."""
    keep = None if only is None else _mask(only, bank, names, "only")
    if except_ is not None:
        out = _mask(except_, bank, names, "except_")
        keep = ~out if keep is None else keep & ~out
    if where is not None:
        file = None if columns is None else os.fspath(columns)
        words = np.frombuffer(_core.bank_where(bank._handle, file, where), np.uint8)
        true = np.unpackbits(words, count=bank.whole, bitorder="little").astype(bool)
        keep = true if keep is None else keep & true
    return keep


def _measured(among: Any, mode: Optional[str], metric: str, projection: Any, options: Dict[str, Any]) -> Any:
    """A bank whose products with mapped queries are the metric."""
    if metric not in ("cosine", "l2"):
        raise ValueError(f"metric is {metric!r}, it must be 'dot', 'cosine' or 'l2'")
    if options.get("alpha", 0) > 0 or mode == "flow" or projection is not None:
        raise ValueError(f"metric {metric} requires alpha 0, no projection and a mode other than flow")
    return _core.bank_metric(among, metric)


def _save_rows(path: str, rows: Any) -> None:
    values = as_array(rows, "rows")
    np.save(path, values.reshape(1, -1) if values.ndim == 1 else values)


def _save_names(path: str, names: Sequence[str]) -> None:
    if any("\n" in name for name in names):
        raise ValueError("names: a name cannot contain a line end")
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.writelines(name + "\n" for name in names)


def _bits(keep: Any) -> Any:
    """A mask in the library's form: 64 memories per word, the first in the lowest bit."""
    padded = np.zeros((len(keep) + 63) // 64 * 64, bool)
    padded[:len(keep)] = keep
    return np.packbits(padded, bitorder="little").view("<u8")


def _top() -> int:
    return int(default("recall", "top"))


def _count(x: Any, name: str, most: Optional[int] = None) -> int:
    k = _index(x)
    if k < 0 or (most is not None and k > most):
        raise ValueError(f"{name} is {k}, it must be {'0 or more' if most is None else f'from 0 to {most}'}")
    return k


def _index(x: Any) -> int:
    try:
        return int(x.__index__())
    except AttributeError:
        raise ValueError(f"expected an index, not {type(x).__name__}") from None


def count_threads(threads: Optional[int]) -> int:
    if threads is None:
        return 0
    if not 1 <= _index(threads) <= _core.THREADS_MAX:
        raise ValueError(f"threads is {threads}, it must be from 1 to {_core.THREADS_MAX}")
    return _index(threads)
