"""The gate operator A(alpha) = I + alpha (G - diag G), G = Z Z', never formed."""
import dataclasses
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple

import numpy as np

from . import _core
from ._arrays import Array, vector
from .results import Shown
from .verbs import default

if TYPE_CHECKING:
    from .bank import Bank


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class GateInfo(Shown):
    """Properties of A(alpha)."""

    alpha: float
    regime: str  #: "subcritical", "critical" or "supercritical"
    alpha_crit: float  #: NaN: only the bounds are known; infinite: no alpha is critical
    alpha_crit_from: float
    alpha_crit_to: float
    alpha_crit_proved: bool
    eta_min: float  #: a proved lower bound of the smallest eigenvalue
    eta_min_exact: bool
    negative: int  #: number of negative eigenvalues
    iterative: bool  #: solves use conjugate gradients

    _short = ("alpha", "regime", "alpha_crit", "eta_min")


class Gate:
    """A(alpha) of a bank, factored for many solves. Made by `Bank.gate`."""

    def __init__(self, bank: "Bank", alpha: float, *, full: bool = False) -> None:
        self.bank = bank
        self._handle = _core.gate_new(bank._handle, alpha, full)

    @property
    def info(self) -> GateInfo:
        return GateInfo(**_core.gate_info(self._handle))

    def apply(self, x: Any) -> Array:
        """A x, (N,)."""
        out = np.empty(self.bank.n)
        _core.gate_apply(self._handle, vector(x, "x", self.bank.n), out)
        return out

    def solve(self, x: Any) -> Array:
        """A^-1 x, (N,), with iterative refinement."""
        out = np.empty(self.bank.n)
        _core.gate_solve(self._handle, vector(x, "x", self.bank.n), out)
        return out

    def solve_range(self, v: Any) -> Array:
        """A^-1 Z v of v (d,), (N,), in one pass."""
        out = np.empty(self.bank.n)
        _core.gate_solve_range(self._handle, vector(v, "v", self.bank.d), out)
        return out

    def __repr__(self) -> str:
        return f"Gate({self.info!r})"


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class SpectrumInfo(Shown):
    """Eigenvalues omega of G - diag G and mu of G."""

    modes: int  #: explicit ones
    kernel: int  #: dimension of their complement
    omega_min: float
    omega_max: float
    mu_min: float
    mu_max: float
    rank: int
    alpha_crit: float

    _short = ("modes", "rank", "mu_min", "mu_max", "alpha_crit")


class Spectrum:
    """One eigen-decomposition for every alpha. Made by `Bank.spectrum`."""

    def __init__(self, bank: "Bank") -> None:
        self.bank = bank
        self._handle = _core.spectrum_new(bank._handle)

    @property
    def info(self) -> SpectrumInfo:
        fields: Dict[str, Any] = _core.spectrum_info(self._handle)
        return SpectrumInfo(**fields)

    @property
    def omega(self) -> Array:
        """Eigenvalues of the explicit modes, rising: (modes,)."""
        out = np.empty(self.info.modes)
        _core.spectrum_omega(self._handle, out)
        return out

    def solve(self, alpha: float, x: Any) -> Array:
        """A(alpha)^-1 x, (N,)."""
        return self._run("solve", x, alpha=alpha)

    def project_min(self, x: Any) -> Array:
        """The projection of x on the modes of the smallest omega, (N,)."""
        return self._run("project", x)

    def transient(self, alpha: float, t: float, u: Any, *, s0: Any = None, tau: Optional[float] = None) -> Array:
        """s(t) of tau ds/dt = u - A s from s(0) = s0 (None = 0), in closed form: (N,). tau: None = that of a recall."""
        if tau is None:
            tau = float(default("recall", "tau-s"))
        return self._run("transient", u, alpha=alpha, tau=tau, t=t, s0=s0)

    def _run(self, what: str, x: Any, alpha: float = 0.0, tau: float = 1.0, t: float = 0.0,
             s0: Any = None) -> Array:
        n = self.bank.n
        out = np.empty(n)
        start = None if s0 is None else vector(s0, "s0", n)
        _core.spectrum_run(self._handle, what, alpha, tau, t, vector(x, "x", n), start, out)
        return out

    def __repr__(self) -> str:
        return f"Spectrum({self.info!r})"


def critical(bank: "Bank", *, full: bool = True) -> Tuple[float, float, float, bool]:
    """alpha_crit as (best value, proved from, proved to, is the value proved)."""
    found: Tuple[float, float, float, bool] = _core.gate_critical(bank._handle, full)
    return found
