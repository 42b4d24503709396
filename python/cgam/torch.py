"""Recalls in PyTorch: `cgam.torch.recall` is differentiable with respect to everything it is given.

The forward pass settles the recall; the backward pass is the exact gradient of the settled answer (`Plan.grad`), by one
linear system a query. Nothing is unrolled: memory and time of the backward pass do not grow with the number of
iterations. PyTorch is imported with this module, and not before. On the CPU, in float64 or float32; all arithmetic is in
double."""
from typing import Any, Optional, Sequence, Tuple, Union

import torch
from torch.autograd import Function

from .bank import Bank
from .results import Recalls

__all__ = ["Recall", "recall"]

_ROUNDING = 1e-15  # coupled recalls are iterated to rounding, where gradcheck in double holds
_NAMES = ("Z", "q", "c", "alpha", "beta", "lam")
Number = Union[float, "torch.Tensor"]


def _numpy(x: Optional["torch.Tensor"]) -> Any:
    return None if x is None else x.detach().numpy()


def _like(x: "torch.Tensor", value: Any) -> "torch.Tensor":
    return torch.as_tensor(value, dtype=torch.float64).to(x.dtype).reshape(x.shape)


class _Recall(Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, mode: str, activation: Optional[str], *given: Any) -> Any:
        Z, q, c, alpha, beta, lam = given
        ctx.plan = Bank(Z.detach().contiguous().numpy()).plan(mode, alpha=alpha.item(), beta=beta.item(),
                                                              lam=lam.item(), activation=activation, tol=_ROUNDING)
        found = ctx.plan.recall(_numpy(q), _numpy(c), top=0, vectors=True)
        assert isinstance(found, Recalls) and found.p_all is not None
        ctx.start = found.p_all if mode == "coupled" else None
        ctx.save_for_backward(*given)
        return torch.from_numpy(found.p_all.copy()).to(q.dtype)

    @staticmethod
    def backward(ctx: Any, dp: Any) -> Tuple[Any, ...]:
        return (None, None, *_Gradient.apply(ctx, dp, *ctx.saved_tensors))


class _Gradient(Function):  # type: ignore[misc]
    """The backward pass, a function of its own, so that it can say what its derivative is not."""

    @staticmethod
    def forward(ctx: Any, outer: Any, dp: Any, *given: Any) -> Tuple[Any, ...]:
        wanted = [name for name, needed in zip(_NAMES, outer.needs_input_grad[2:]) if needed]
        g = outer.plan.grad(_numpy(given[1]), _numpy(given[2]), dp=_numpy(dp), wrt=wanted, start=outer.start)
        return tuple(_like(x, getattr(g, name)) if name in wanted else None for name, x in zip(_NAMES, given))

    @staticmethod
    def backward(ctx: Any, *none: Any) -> Any:
        raise RuntimeError("cgam.torch.recall has no second derivatives: double backward is not supported")


def _number(x: Number, name: str) -> "torch.Tensor":
    if not isinstance(x, torch.Tensor):
        return torch.tensor(float(x), dtype=torch.float64)
    if x.numel() != 1:
        raise ValueError(f"{name}: shape {tuple(x.shape)}, expected one number")
    return x


def _log(x: float) -> "torch.Tensor":
    return _number(x, "").log()


def recall(Z: "torch.Tensor", q: "torch.Tensor", c: Optional["torch.Tensor"] = None, *, alpha: Number = 0.0,
           beta: Number = 1.0, lam: Number = 1.0, mode: str = "first",
           activation: Optional[str] = None) -> "torch.Tensor":
    """The weights p (B, N) at which recalls settle, differentiable.

    Z           (N, d) memories
    q           (B, d) queries, or one (d,): p is then (N,)
    c           (B, d) contexts, or one (d,) for all; None = 0. With a projection: c @ P.T
    alpha, beta, lam   numbers or tensors of one number
    mode        "first" or "coupled", which is iterated to rounding
    activation  "softmax" (default), "sparsemax", "entmax15" or an order of entmax

    Every tensor is differentiated that requires it. Where the Hessian is not proved positive definite, as at a fold,
    the backward pass raises cgam.Error with the query and its margin. There are no second derivatives."""
    if mode not in ("first", "coupled"):
        raise ValueError(f"invalid mode '{mode}' (valid: first, coupled)")
    given = (Z, q, c, _number(alpha, "alpha"), _number(beta, "beta"), _number(lam, "lam"))
    for name, x in zip(_NAMES, given):
        if x is None and name == "c":
            continue
        if not isinstance(x, torch.Tensor):
            raise TypeError(f"{name}: expected a tensor, not {type(x).__name__}")
        if x.device.type != "cpu":
            raise ValueError(f"{name}: the tensor is on {x.device}; cgam computes on the CPU")
        if x.dtype not in (torch.float64, torch.float32):
            raise ValueError(f"{name}: unsupported dtype {x.dtype} (supported: float64, float32)")
    if q.dim() == 1:
        return _Recall.apply(mode, activation, Z, q[None], *given[2:])[0]
    return _Recall.apply(mode, activation, *given)


class Recall(torch.nn.Module):  # type: ignore[misc]
    """A layer of memories: forward(q, c) gives p (B, N), or with readout=True the mean of the memories under p (B, d).

    memories    (N, d), where they start
    projection  P (d, d_c), through which gates see contexts; None = the identity
    learn       which of "Z", "P", "alpha", "beta", "lam" are parameters

    beta and lam stay above 0 as exponentials, and alpha stays below a limit just under 1 / max |memory|^2, where A is
    positive definite, as limit / (1 + exp(-x)); an alpha of 0 that is learned starts at a thousandth of the limit."""

    def __init__(self, memories: "torch.Tensor", *, projection: Optional["torch.Tensor"] = None, alpha: float = 0.0,
                 beta: float = 1.0, lam: float = 1.0, mode: str = "first", activation: Optional[str] = None,
                 learn: Sequence[str] = ("Z",), readout: bool = False) -> None:
        super().__init__()
        learn = (learn,) if isinstance(learn, str) else tuple(learn)
        for name in learn:
            if name not in ("Z", "P", "alpha", "beta", "lam"):
                raise ValueError(f"learn: invalid name {name!r} (valid: Z, P, alpha, beta, lam)")
        self.mode, self.activation, self.readout = mode, activation, readout
        Z = torch.as_tensor(memories).detach().clone()
        P = None if projection is None else torch.as_tensor(projection, dtype=Z.dtype).detach().clone()
        if P is None and "P" in learn:
            P = torch.eye(Z.shape[1], dtype=Z.dtype)
        share = min(max(alpha / self._limit(Z).item(), 1e-3), 1 - 1e-3)  # of the limit
        self._put("Z", Z, "Z" in learn)
        self._put("P", P, "P" in learn)
        for name, value, start in (("alpha", alpha, _log(share / (1 - share))),
                                   ("beta", beta, _log(beta)),
                                   ("lam", lam, _log(lam))):
            if name in learn and (value < 0 if name == "alpha" else value <= 0):
                raise ValueError(f"{name} is {value}, it must be positive to be learned")
            number = start if name in learn else _number(value, name)
            self._put(("raw_" if name in learn else "fixed_") + name, number, name in learn)

    def _put(self, name: str, value: Optional["torch.Tensor"], learned: bool) -> None:
        if learned:
            self.register_parameter(name, torch.nn.Parameter(value))
        else:
            self.register_buffer(name, value)

    @staticmethod
    def _limit(Z: "torch.Tensor") -> "torch.Tensor":
        return (1 - 1e-6) / (Z.double() ** 2).sum(1).max()

    @property
    def alpha(self) -> "torch.Tensor":
        raw = getattr(self, "raw_alpha", None)
        return self.fixed_alpha if raw is None else self._limit(self.Z) * torch.sigmoid(raw)

    @property
    def beta(self) -> "torch.Tensor":
        raw = getattr(self, "raw_beta", None)
        return self.fixed_beta if raw is None else raw.exp()

    @property
    def lam(self) -> "torch.Tensor":
        raw = getattr(self, "raw_lam", None)
        return self.fixed_lam if raw is None else raw.exp()

    def forward(self, q: "torch.Tensor", c: Optional["torch.Tensor"] = None) -> "torch.Tensor":
        if c is not None and self.P is not None:
            c = c @ self.P.T
        p = recall(self.Z, q, c, alpha=self.alpha, beta=self.beta, lam=self.lam, mode=self.mode,
                   activation=self.activation)
        return p @ self.Z if self.readout else p

    def extra_repr(self) -> str:
        numbers = ", ".join(f"{name}={getattr(self, name).item():.4g}" for name in ("alpha", "beta", "lam"))
        return f"{self.Z.shape[0]} x {self.Z.shape[1]}, mode={self.mode}, {numbers}"
