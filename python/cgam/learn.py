"""Gradients of recalls, and memories that learn."""
import dataclasses
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._arrays import F64, Array, f64, indices
from .results import RESULT_DTYPE, Shown

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
