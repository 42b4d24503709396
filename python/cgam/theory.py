"""Every theorem as a function that takes numbers and returns numbers; docs/theorems has a page for each."""
import dataclasses
from typing import TYPE_CHECKING, Any, Optional, Tuple

import numpy as np

from . import _core
from ._arrays import Array, f64, vector
from .gate import Gate, Spectrum, critical
from .results import Shown
from .verbs import default

if TYPE_CHECKING:
    from .bank import Bank

__all__ = [
    "Bounds", "CoupledCritical", "Fold", "Gaps", "Horizon", "Winner", "attention", "context_margin",
    "contraction", "contraction_lambda_max", "contraction_local", "coupled_critical", "coupled_energy",
    "critical", "dense_energy", "dense_update", "fold", "fold_margin", "hopfield_bounds",
    "hopfield_energy", "hopfield_settle", "hopfield_update", "readout_bound", "retrieval_parts",
    "separation_bound", "separation_gaps", "separation_threshold", "softmax_norm",
    "softmax_norm_bound", "stability_margin", "supercritical_horizon", "supercritical_winner",
]


# ---- separation

def separation_bound(n: int, beta: float, gap: float, *, log: bool = False) -> float:
    """P(mu) is at least 1 / (1 + (n-1) exp(-beta gap)); log: its logarithm."""
    return float(_core.separation("log" if log else "bound", n, beta, gap))


def separation_threshold(n: int, beta: float, epsilon: float) -> float:
    """The gap that makes the bound 1 - epsilon."""
    return float(_core.separation("threshold", n, beta, epsilon))


def stability_margin(eta_min: float, beta: float, lam: float, p: float, *,
                     free_query: Optional[float] = None) -> float:
    """Above 0 a fixed point in which one memory has probability p or more is asymptotically stable.

    free_query: the largest norm of a memory if the query moves too; None if the query is held."""
    return float(_core.stability(eta_min, beta, lam, -1.0 if free_query is None else abs(free_query), p))


def readout_bound(n: int, beta: float, gap: float, norm_max: float) -> float:
    """The readout Z'p is at most this far from the memory whose score leads by gap."""
    return float(_core.readout_bound(n, beta, gap, norm_max))


@dataclasses.dataclass(frozen=True, repr=False)
class Gaps(Shown):
    """Gaps of memory mu over its best competitor; sum = raw + lam gate is at most gap."""

    gap: float
    raw: float
    gate: float
    sum: float

    _short = ("gap", "raw", "gate", "sum")


def separation_gaps(b: Any, s: Any, lam: float, mu: int) -> Gaps:
    """Gaps of r = b + lam s, b and s (N,)."""
    return Gaps(*_core.gaps(vector(b, "b"), vector(s, "s"), lam, mu))


# ---- the gates by themselves

@dataclasses.dataclass(frozen=True, repr=False)
class Winner(Shown):
    """The winner above alpha_crit; index -1: no winner, and `reason` says why."""

    index: int
    gap: float
    gamma: float  #: growth rate
    reason: Optional[str]

    _short = ("index", "gap", "gamma", "reason")


def supercritical_winner(spectrum: Spectrum, alpha: float, u: Any, s0: Any = None) -> Winner:
    n = spectrum.bank.n
    start = None if s0 is None else vector(s0, "s0", n)
    return Winner(*_core.winner(spectrum._handle, alpha, vector(u, "u", n), start))


@dataclasses.dataclass(frozen=True, repr=False)
class Horizon(Shown):
    """Time from which p of the winner is at least 1 - delta; infinite: never, and `reason` says why."""

    time: float
    rest: float
    gap: float
    closed_form: bool
    winner: int
    reason: Optional[str]

    _short = ("time", "winner", "closed_form", "reason")


def supercritical_horizon(spectrum: Spectrum, alpha: float, beta: float, u: Any, *,
                          delta: Optional[float] = None, tau: Optional[float] = None,
                          s0: Any = None, use_rest: bool = True) -> Horizon:
    """t* of gates that start at s0, None = 0; use_rest=False takes B = 0, as the paper's study does.

    delta None = the default of that study, 0.01; tau None = the default of a recall, 1."""
    if delta is None:
        delta = float(default("study competition", "delta"))
    if tau is None:
        tau = float(default("recall", "tau-s"))
    n = spectrum.bank.n
    start = None if s0 is None else vector(s0, "s0", n)
    return Horizon(*_core.horizon(spectrum._handle, alpha, tau, beta, delta, vector(u, "u", n), start,
                                  use_rest))


# ---- with coupling

@dataclasses.dataclass(frozen=True, repr=False)
class CoupledCritical(Shown):
    """alpha_crit^lambda; NaN unless all five conditions hold."""

    alpha: float
    mu_perp_min: float
    unit: bool
    balanced: bool
    weak: bool
    below_one: bool
    positive: bool

    _short = ("alpha", "mu_perp_min", "balanced", "weak")


def coupled_critical(bank: "Bank", lam: float, beta: float) -> CoupledCritical:
    return CoupledCritical(*_core.coupled_critical(bank._handle, lam, beta))


@dataclasses.dataclass(frozen=True, repr=False)
class Fold(Shown):
    """End of the branch of fixed points from alpha = 0; NaN: not before alpha_max."""

    alpha: float
    margin: float
    steps: int

    _short = ("alpha", "margin", "steps")


def fold(bank: "Bank", lam: float, beta: float, b: Any, u: Any, *, alpha_max: float = np.inf,
         tol: float = 1e-9) -> Fold:
    """Follows the coupled fixed point from alpha = 0; b and u (N,)."""
    most = min(float(alpha_max), float(np.finfo(np.float64).max))
    return Fold(*_core.fold(bank._handle, lam, beta, vector(b, "b", bank.n), vector(u, "u", bank.n),
                            most, tol))


def contraction(beta: float, lam: float, eta_min: float) -> float:
    """beta lam^2 / (2 eta_min), rounded up; below 1 the coupled fixed point is unique."""
    return float(_core.contraction(beta, lam, eta_min)[0])


def contraction_lambda_max(beta: float, eta_min: float) -> float:
    """The largest lam for which `contraction` proves uniqueness, rounded down."""
    return float(_core.contraction(beta, 0.0, eta_min)[1])


def contraction_local(gate: Gate, beta: float, lam: float, p: Any) -> Tuple[float, bool]:
    """(largest eigenvalue of beta lam^2 A^-1 (diag p - pp'), proved)."""
    value, proved = _core.at_p(gate._handle, "contraction", beta, lam, vector(p, "p", gate.bank.n))
    return value, proved


def fold_margin(gate: Gate, beta: float, lam: float, p: Any) -> Tuple[float, bool]:
    """(smallest eigenvalue of A - lam^2 beta (diag p - pp') from below, proved)."""
    value, proved = _core.at_p(gate._handle, "margin", beta, lam, vector(p, "p", gate.bank.n))
    return value, proved


def retrieval_parts(gate: Gate, lam: float, u: Any, p: Any) -> Tuple[Array, Array]:
    """(lam A^-1 u, lam^2 A^-1 p): the contributions of context and feedback to r, (N,) each."""
    n = gate.bank.n
    bias, feedback = np.empty(n), np.empty(n)
    _core.parts(gate._handle, lam, vector(u, "u", n), vector(p, "p", n), bias, feedback)
    return bias, feedback


def coupled_energy(gate: Gate, beta: float, lam: float, b: Any, u: Any, s: Any) -> Tuple[float, Array]:
    """E(s) = s'As/2 - u's - lse(beta (b + lam s)) / beta, and its gradient (N,)."""
    n = gate.bank.n
    gradient = np.empty(n)
    energy = _core.energy(gate._handle, beta, lam, vector(b, "b", n), vector(u, "u", n),
                          vector(s, "s", n), gradient)
    return energy, gradient


def softmax_norm(p: Any) -> float:
    """|diag p - pp'|, at most 1/2."""
    return float(_core.softmax_norm(vector(p, "p"))[0])


def softmax_norm_bound(p: Any) -> float:
    """A cheap upper bound of softmax_norm, 2 max p (1 - p)."""
    return float(_core.softmax_norm(vector(p, "p"))[1])


def context_margin(gate: Gate, projection: Any = None) -> float:
    """lambda_min(I - W'A^-1 W), W = Z P: a free context settles only if it is positive."""
    if projection is None:
        return float(_core.context_margin(gate._handle, None, gate.bank.d))
    P = f64(projection, "projection")
    if P.ndim != 2 or P.shape[0] != gate.bank.d:
        raise ValueError(f"projection: shape {P.shape}, expected ({gate.bank.d}, d_c)")
    return float(_core.context_margin(gate._handle, P, P.shape[1]))


# ---- memories of one stage

def hopfield_energy(bank: "Bank", beta: float, xi: Any) -> float:
    """-lse(beta, Z xi) + |xi|^2/2 + ln(N)/beta + M^2/2."""
    return float(_core.hopfield(bank._handle, "energy", beta, None, vector(xi, "xi", bank.d), None, 0.0,
                                1)[0])


def hopfield_update(bank: "Bank", beta: float, xi: Any) -> Array:
    """Z' softmax(beta Z xi), (d,)."""
    out = np.empty(bank.d)
    _core.hopfield(bank._handle, "update", beta, None, vector(xi, "xi", bank.d), out, 0.0, 1)
    return out


def hopfield_settle(bank: "Bank", beta: float, xi: Any, *, tol: Optional[float] = None,
                    max_iter: Optional[int] = None) -> Tuple[Array, int, float]:
    """Iterates from xi: (fixed point (d,), iterations, last step).

    tol and max_iter: None = the defaults of a recall."""
    if tol is None:
        tol = float(default("recall", "tol"))
    if max_iter is None:
        max_iter = int(default("recall", "max-iter"))
    out = np.empty(bank.d)
    _, iterations, change = _core.hopfield(bank._handle, "settle", beta, None, vector(xi, "xi", bank.d),
                                           out, tol, max_iter)
    return out, iterations, change


@dataclasses.dataclass(frozen=True, repr=False)
class Bounds(Shown):
    """Theorems 4 and 5 of Ramsauer et al. for one memory."""

    separation: float
    one_step: float
    retrieval: float
    fixed_point: float

    _short = ("separation", "one_step", "retrieval")


def hopfield_bounds(bank: "Bank", beta: float, i: int, xi: Any, x_star: Any) -> Bounds:
    """For memory i, query xi and fixed point x_star, both (d,)."""
    return Bounds(*_core.hopfield_bound(bank._handle, beta, i, vector(xi, "xi", bank.d),
                                        vector(x_star, "x_star", bank.d)))


def dense_energy(bank: "Bank", beta: float, power: float, v: Any) -> float:
    """The energy of the dense associative memory with rectified powers."""
    return float(_core.hopfield(bank._handle, "energy", beta, power, vector(v, "v", bank.d), None, 0.0,
                                1)[0])


def dense_update(bank: "Bank", beta: float, power: float, v: Any) -> Array:
    """Z' max(Z a, 0)^(power - 1), a = tanh(beta v): (d,)."""
    out = np.empty(bank.d)
    _core.hopfield(bank._handle, "update", beta, power, vector(v, "v", bank.d), out, 0.0, 1)
    return out


def attention(Q: Any, K: Any, V: Any) -> Array:
    """softmax(Q K' / sqrt(d_k)) V of Q (m, d_k), K (n, d_k), V (n, d_v): (m, d_v)."""
    q, k, v = f64(Q, "Q"), f64(K, "K"), f64(V, "V")
    if q.ndim != 2 or k.ndim != 2 or v.ndim != 2 or q.shape[1] != k.shape[1] or k.shape[0] != v.shape[0]:
        raise ValueError(f"Q {q.shape}, K {k.shape}, V {v.shape}: expected (m, d_k), (n, d_k), (n, d_v)")
    out = np.empty((q.shape[0], v.shape[1]))
    _core.attention(q.shape[0], k.shape[0], q.shape[1], v.shape[1], q, k, v, out)
    return out
