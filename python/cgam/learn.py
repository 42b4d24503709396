"""Gradients of recalls, and memories that learn."""
import dataclasses
import json
import os
import tempfile
from typing import TYPE_CHECKING, Any, Dict, Optional, Union

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._arrays import F64, Array, as_array, f64, indices
from .results import RESULT_DTYPE, Shown
from .verbs import Document, run

if TYPE_CHECKING:
    from .bank import Plan

_OF_ALL = ("P", "W", "Z", "alpha", "beta", "lam")
_OF_EACH = ("q", "c", "b", "u")
_LOSSES = ("nll", "readout", "margin", "own")
_NAMES = _core.grad_names()


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Gradient(Shown):
    """The gradient of a loss of settled recalls, by `Plan.grad`.

    Only what was asked for is given, all else is None. P, W, Z, alpha, beta, lam, and c of a shared context, are
    summed over the queries; the others have a row for each query, which one query (d,) does not have."""

    loss: Any = None  #: (B,) of each query, without its weight; NaN of a loss of your own
    q: Optional[Array] = None  #: (B, d)
    c: Optional[Array] = None  #: (B, d_c), or (d_c,) if the context is shared
    P: Optional[Array] = None  #: (d, d_c); of the identity, if the plan has no P
    W: Optional[Array] = None  #: (N, d_c)
    Z: Optional[Array] = None  #: (N, d), of the memories as used: normalised, if the bank is
    alpha: Optional[float] = None
    beta: Optional[float] = None
    lam: Optional[float] = None
    b: Optional[Array] = None  #: (B, N) of the evidence Z q
    u: Optional[Array] = None  #: (B, N) of the gates' input Z P c or W c
    b_error: Any = None  #: (B,) proved bound of the 2-norm of the error of b, NaN if none is proved
    u_error: Any = None  #: (B,) the same for u
    positive: Any = None  #: (B,) proved: the least eigenvalue of the Hessian is above it; NaN in mode first
    left_out: Any = None  #: (B,) queries without a gradient, if leave_out was requested
    p: Optional[Array] = None  #: (B, N) of the recall, if vectors were requested
    r: Optional[Array] = None  #: (B, N) scores
    readout: Optional[Array] = None  #: (B, d)
    results: Optional[NDArray[Any]] = None  #: (B,) structured: `cgam.fields("result")`

    def _shown(self) -> "list[str]":
        return [f.name for f in dataclasses.fields(self) if getattr(self, f.name) is not None]

    def __repr__(self) -> str:
        return f"Gradient({', '.join(self._shown())})"


def grad(plan: "Plan", query: Any, context: Any, target: Any, loss: Optional[str], own: Dict[str, Any], x: Any,
         margin: float, weight: Any, wrt: Any, start: Any, certify: bool, leave_out: bool,
         vectors: bool) -> Gradient:
    """`Plan.grad`, with the arguments in order."""
    if plan._metric is not None:
        raise ValueError("grad requires metric dot")
    q = f64(query, "query")
    single = q.ndim == 1
    if q.ndim not in (1, 2) or q.shape[-1] != plan.bank.d or q.size == 0:
        raise ValueError(f"query: shape {q.shape}, expected ({plan.bank.d},) or (B, {plan.bank.d})")
    B, n, d, d_c = 1 if single else len(q), plan._n, plan.bank.d, plan._dc
    c = None if context is None else f64(context, "context")
    if c is not None and c.shape != (d_c,) and (single or c.shape != (B, d_c)):
        raise ValueError(f"context: shape {c.shape}, expected ({d_c},) or (B, {d_c})")
    if loss is None:
        loss = "own" if any(v is not None for v in own.values()) else "nll"
    if loss != "own" and any(v is not None for v in own.values()):
        raise ValueError(f"loss '{loss}' excludes dp, dr and dy, which are the derivatives of your own")
    if loss not in _LOSSES:
        raise ValueError(f"invalid loss '{loss}' (valid: {', '.join(_LOSSES)})")
    if target is not None:
        target = indices(target, B)
    given: Dict[str, Any] = {}
    for name, value, size in (("dp", own["dp"], n), ("dr", own["dr"], n), ("dy", own["dy"], d), ("x", x, d),
                              ("start", start, n)):
        if value is not None:
            given[name] = _rows(value, name, B, size, single)
    if weight is not None:
        given["weight"] = np.atleast_1d(f64(weight, "weight"))
        if given["weight"].shape != (B,):
            raise ValueError(f"weight: shape {given['weight'].shape}, expected ({B},)")
    out = _outputs(wrt, B, n, d, d_c, c is not None and c.ndim == 1)
    out["loss"], out["positive"], out["results"] = np.empty(B), np.empty(B), np.zeros(B, RESULT_DTYPE)
    if certify:
        out.update(b_error=np.empty(B), u_error=np.empty(B))
    if leave_out:
        out["left_out"] = np.zeros(B, bool)
    if vectors:
        out.update(p=np.empty((B, n)), r=np.empty((B, n)), readout=np.empty((B, d)))
    left_out = out["left_out"].view(np.uint8) if leave_out else None
    _core.plan_grad(plan._handle, B, loss, float(margin), q, c, target, out["results"].view(np.uint8), left_out,
                    *(given.get(name, out.get(name)) for name in _NAMES))
    for name in out:
        if name in ("alpha", "beta", "lam"):
            out[name] = float(out[name][0])
        elif single and name not in _OF_ALL:
            out[name] = out[name].reshape(d_c) if name == "c" else out[name][0]
    return Gradient(**out)


def _outputs(wrt: Any, B: int, n: int, d: int, d_c: int, shared: bool) -> Dict[str, Any]:
    names = (wrt,) if isinstance(wrt, str) else tuple(wrt)
    shapes = {"q": (B, d), "c": (d_c,) if shared else (B, d_c), "P": (d, d_c), "W": (n, d_c), "Z": (n, d),
              "alpha": (1,), "beta": (1,), "lam": (1,), "b": (B, n), "u": (B, n)}
    out: Dict[str, Any] = {}
    for name in names:
        if name not in shapes:
            raise ValueError(f"wrt: invalid name {name!r} (valid: {', '.join(_OF_EACH + _OF_ALL)})")
        out[name] = np.empty(shapes[name], F64)
    return out


def _rows(value: Any, name: str, B: int, size: int, single: bool) -> Array:
    a = f64(value, name)
    if single and a.size == size and a.ndim <= 1:
        return a.reshape(1, size)
    if a.shape != (B, size):
        raise ValueError(f"{name}: shape {a.shape}, expected {f'({size},)' if single else f'({B}, {size})'}")
    return a


class Fitted:
    """Parameters that `cgam.fit` learned, and how well they do.

    alpha, beta, lam   numbers
    P, W, Z            arrays, or None: what was learned, and what it started from if that was given; Z is None
                       unless memories were learned
    document           that of the verb: epochs, and accuracy and nll of `train`, `held_out` and `before`"""

    def __init__(self, content: bytes, document: Document) -> None:
        self._content = content
        self.document = document
        arrays = safetensors(content)
        self.alpha, self.beta, self.lam = (float(arrays[name].item()) for name in ("alpha", "beta", "lambda"))
        self.P, self.W, self.Z = (arrays.get(name) for name in ("P", "W", "Z"))

    def __repr__(self) -> str:
        done, start = self.document["held_out"], self.document["before"]
        return (f"Fitted({', '.join(self.document['learned'])}; accuracy {start['accuracy']:.4g} -> "
                f"{done['accuracy']:.4g} on {done['queries']} held out)")

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the file for `cgam recall --fitted`, .safetensors."""
        with open(path, "wb") as file:
            file.write(self._content)

    def plan(self, bank: Any = None, **options: Any) -> "Plan":
        """A plan with the learned numbers; `bank` is a Bank or an array, and may be left out if memories were learned.

        options  as of `Bank.plan`; they win over the file"""
        from .bank import Bank

        if bank is None:
            if self.Z is None:
                raise ValueError("bank is missing: the memories were not learned")
            bank = self.Z
        given = {"mode": self.document["mode"], "alpha": self.alpha, "beta": self.beta, "lam": self.lam,
                 "projection": self.P, "gate_weights": self.W, "activation": self.document.get("activation"), **options}
        return (bank if isinstance(bank, Bank) else Bank(bank)).plan(**given)


def fit(bank: Any, queries: Any, targets: Any, contexts: Any = None, *, learn: Any = None, projection: Any = None,
        gate_weights: Any = None, out: Any = None, progress: bool = False, **options: Any) -> Fitted:
    """Learns parameters of a memory from queries whose memory is known: the verb `fit` over arrays.

    bank      memories (N, d), a Bank, or a file
    queries   (B, d);   targets  (B,) the memory of each, by index
    contexts  (d_c,) for all, or (B, d_c)
    learn     which of "P" (default), "W", "Z", "alpha", "beta", "lam"
    projection, gate_weights   P (d, d_c) or W (N, d_c) to start from
    out       also keep the result in this file, .safetensors
    options   of the command line: rank, mode, alpha, beta, lam, loss, optimizer, epochs, batch, rate,
              ridge, held_out, seed, journal, ..; see `cgam help fit`
    """
    from .bank import Bank

    if learn is not None:
        learn = ["lambda" if name == "lam" else name for name in ((learn,) if isinstance(learn, str) else learn)]
    if isinstance(bank, Bank):
        bank = np.stack([bank[i] for i in range(bank.n)])
    with tempfile.TemporaryDirectory(prefix="cgam-fit-") as folder:
        def file(name: str, value: Any) -> Any:
            if value is None or isinstance(value, (str, os.PathLike)):
                return value
            array = as_array(value, name)
            if name == "targets":
                array = indices(array, array.size)
            elif array.dtype not in (np.float16, np.float32, np.float64):
                array = f64(array, name)
            if name != "targets" and array.ndim != 2:
                raise ValueError(f"{name}: shape {array.shape}, expected two axes")
            path = os.path.join(folder, name + ".npy")
            np.save(path, np.ascontiguousarray(array))
            return path

        if contexts is not None and not isinstance(contexts, (str, os.PathLike)) and np.ndim(contexts) == 1:
            contexts = as_array(contexts, "contexts")[None]
        where = os.path.join(folder, "fitted.safetensors") if out is None else os.fspath(out)
        document = run("fit", bank=file("bank", bank), queries=file("queries", queries), targets=file("targets", targets),
                       contexts=file("contexts", contexts), projection=file("projection", projection),
                       gate_weights=file("gate_weights", gate_weights), out=where, learn=learn,
                       progress=progress, **options)
        with open(where, "rb") as saved:
            content = saved.read()
    if out is None:
        del document["saved"]
    return Fitted(content, document)


_SAFETENSORS = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64}


def safetensors(content: bytes) -> Dict[str, NDArray[Any]]:
    """The arrays of a .safetensors file: a length, a JSON table, and the numbers."""
    size = 8 + int.from_bytes(content[:8], "little")
    arrays: Dict[str, NDArray[Any]] = {}
    for name, about in json.loads(content[8:size]).items():
        if name != "__metadata__":
            start, end = about["data_offsets"]
            flat = np.frombuffer(content[size + start:size + end], _SAFETENSORS[about["dtype"]])
            arrays[name] = flat.reshape(about["shape"])
    return arrays
