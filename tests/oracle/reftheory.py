"""The theorems and bounds of the two-stage memory as plain dense computations (see refmath.py).

Question: what do the formulas give, and where exactly does a branch of fixed points fold?
Supercritical winner and horizon, the lambda-critical alpha with its conditions, Modern Hopfield
energy, update and bounds (Ramsauer et al. 2021, Theorems 4 and 5), fold continuation, and Newton
iterations left unguarded on purpose.
"""

import numpy as np

from refmath import (LD, cholesky, eigen, eigenvalues, energy, gap, ld, lse, plain_iteration,
                     softmax, softmax_jacobian, solve)


def separation_threshold(n, beta, eps):
    """beta^-1 ln((1-eps)(n-1)/eps); None for one memory, where nothing needs separating."""
    if n < 2:
        return None
    return np.log((1 - LD(eps)) * (n - 1) / LD(eps)) / LD(beta)


# --- supercritical gates ------------------------------------------------------------------------


def transient(bank, alpha, u, s0, tau, t):
    """s(t) of tau ds/dt = u - A s, mode by mode; expm1 keeps modes with eta near 0 exact."""
    eta = bank.eta(alpha)
    a0, c = bank.V.T @ s0, bank.V.T @ u
    x = -eta * LD(t) / LD(tau)
    safe = np.where(eta == 0, LD(1), eta)
    grown = np.where(eta == 0, LD(t) / LD(tau), -np.expm1(x) / safe)
    return bank.V @ (a0 * np.exp(x) + c * grown)


def supercritical(bank, alpha, beta, delta, tau, u, s0):
    """Winner argmax P_min (s0 + u/gamma) and, for s0 = 0, the horizons with B = 0 and with B."""
    spaces = list(bank.spaces())
    omega, basis = spaces[0]
    gamma = -1 - LD(alpha) * omega
    project = lambda x: basis @ (basis.T @ x)
    xi = project(s0 + u / gamma)
    out = dict(gamma=gamma, multiplicity=basis.shape[1], winner=None, xi=None, xi_gap=None,
               delta0=None, B=None, t_star=None, t_star_B0=None, stable_rest=None)
    etas = [1 + LD(alpha) * w for w, _ in spaces[1:]]
    out["stable_rest"] = bool(all(e > 0 for e in etas))
    scale = np.max(np.abs(s0)) + np.max(np.abs(u)) / abs(gamma)
    if np.max(np.abs(xi)) <= LD(1e-12) * scale:
        return out
    i = int(np.argmax(xi))
    out["winner"], out["xi"], out["xi_gap"] = i, xi, gap(xi, i)
    if np.any(s0 != 0):
        return out
    top = project(u)
    out["delta0"] = gap(top, i)
    level = np.log((1 - LD(delta)) * (bank.N - 1) / LD(delta))
    horizon = lambda B: LD(tau) / gamma * np.log1p(
        gamma * (level + LD(beta) * B) / (LD(beta) * out["delta0"]))
    out["t_star_B0"] = horizon(LD(0))
    if out["stable_rest"]:
        spread = np.zeros(bank.N, dtype=LD)
        for eta, (_, V) in zip(etas, spaces[1:]):
            part = V @ (V.T @ u)
            spread += np.abs(part[i] - part) / eta
        out["B"] = np.max(spread)
        out["t_star"] = horizon(out["B"])
    return out


def horizon_limit(bank, beta, delta, tau, u):
    """gamma -> 0: t* = tau (L + beta B) / (beta Delta0), with eta_k at alpha_crit."""
    spaces = list(bank.spaces())
    omega, basis = spaces[0]
    top = basis @ (basis.T @ u)
    i = int(np.argmax(top))
    delta0 = gap(top, i)
    spread = np.zeros(bank.N, dtype=LD)
    for w, V in spaces[1:]:
        part = V @ (V.T @ u)
        spread += np.abs(part[i] - part) / (1 - w / omega)
    level = np.log((1 - LD(delta)) * (bank.N - 1) / LD(delta))
    per = LD(tau) / (LD(beta) * delta0)
    return dict(winner=i, delta0=delta0, B=np.max(spread), t_star_B0=per * level,
                t_star=per * (level + LD(beta) * np.max(spread)))


def last_moment(bank, alpha, tau, u, t_max, wanting):
    """Last t on [0, t_max] with wanting(s(t)), for s(0) = 0: scan backwards, then bisect."""
    zero = np.zeros(bank.N, dtype=LD)
    fails = lambda t: wanting(transient(bank, alpha, u, zero, tau, t))
    grid = np.linspace(LD(0), LD(t_max), 2001)
    assert not fails(grid[-1]), "t_max is too short"
    k = next(k for k in range(len(grid) - 2, -1, -1) if fails(grid[k]))
    lo, hi = grid[k], grid[k + 1]
    for _ in range(80):
        mid = (lo + hi) / 2
        lo, hi = (mid, hi) if fails(mid) else (lo, mid)
    return hi


def settling(bank, alpha, beta, delta, tau, u, winner, t_max):
    """When p_winner >= 1 - delta for good, and when the gap alone guarantees it for good."""
    level = np.log((1 - LD(delta)) * (bank.N - 1) / LD(delta))
    p_low = lambda s: softmax(LD(beta) * s)[winner] < 1 - LD(delta)
    gap_low = lambda s: LD(beta) * gap(s, winner) < level
    return dict(t_settled=last_moment(bank, alpha, tau, u, t_max, p_low),
                t_gap=last_moment(bank, alpha, tau, u, t_max, gap_low))


# --- lambda-critical alpha ----------------------------------------------------------------------


def lambda_critical(bank, beta, lam):
    """(1 - lam^2 beta/N) / (1 - mu_perp_min) with every condition it needs.

    The theorem is about lam > 0: at lam = 0 the formula gives the alpha at which A is singular.
    """
    assert lam > 0
    one = np.ones(bank.N, dtype=LD)
    rows = bank.G @ one
    mu_G = rows.mean()
    out = dict(unit=bool(np.max(np.abs(bank.n - 1)) < 1e-12),
               equal_row_sums=bool(np.max(np.abs(rows - mu_G)) < LD(1e-12) * bank.N),
               weak_coupling=bool(LD(lam) ** 2 * LD(beta) < bank.N),
               mu_G=None, mu_perp_min=None, mu_perp_below_1=None, A_positive=None,
               alpha=None, valid=False)
    if not (out["unit"] and out["equal_row_sums"]) or bank.N < 2:
        return out
    out["mu_G"] = mu_G
    # Lift the direction 1 above everything else, so that the smallest eigenvalue is on its
    # orthogonal complement.
    lift = 2 * bank.mu[-1] + 2
    perp = bank.G + (lift - mu_G) / bank.N * np.ones((bank.N, bank.N), dtype=LD)
    mu = eigenvalues(perp)[0]
    out["mu_perp_min"] = LD(0) if abs(mu) < LD(1e-15) else mu
    out["mu_perp_below_1"] = bool(mu < 1 - LD(1e-12))
    if not (out["weak_coupling"] and out["mu_perp_below_1"]):
        return out
    alpha = (1 - LD(lam) ** 2 * LD(beta) / bank.N) / (1 - out["mu_perp_min"])
    out["A_positive"] = bool(1 - alpha * (1 - mu_G) > 0)
    out["valid"] = out["A_positive"]
    out["alpha"] = alpha if out["valid"] else None
    return out


# --- fold of a branch ---------------------------------------------------------------------------


def newton_branch(A, u, b, beta, lam, s, limit=60):
    """Newton on A s - u - lam p(s) = 0; returns s or None when it does not settle."""
    for _ in range(limit):
        p = softmax(beta * (b + lam * s))
        H = A - lam * lam * beta * softmax_jacobian(p)
        step = solve(H, A @ s - u - lam * p)
        s = s - step
        if not np.all(np.isfinite(s)):
            return None
        if np.max(np.abs(step)) <= LD(1e-16) * (1 + np.max(np.abs(s))):
            return s
    return None


def fold_alpha(bank, u, b, beta, lam):
    """First alpha at which A - lam^2 beta J is singular on the branch that starts at alpha = 0.

    Fine continuation from below (steps halve when Newton fails, leaves the neighbourhood or meets a
    negative margin), then Newton on the fold equations F(s, a) = 0, H phi = 0, phi^T phi = 1.
    """
    beta, lam = LD(beta), LD(lam)
    one = np.eye(bank.N, dtype=LD)
    p, _ = plain_iteration(one, u, b, beta, lam)
    s, alpha, step = u + lam * p, LD(0), bank.alpha_crit() / 400
    while step > LD(1e-9):
        trial = newton_branch(bank.A(alpha + step), u, b, beta, lam, s)
        good = trial is not None and np.max(np.abs(trial - s)) < LD(0.2)
        if good:
            p = softmax(beta * (b + lam * trial))
            try:
                cholesky(bank.A(alpha + step) - lam * lam * beta * softmax_jacobian(p))
            except ArithmeticError:
                good = False
        if good:
            alpha, s = alpha + step, trial
        else:
            step = step / 2
    lower = alpha
    H = bank.A(alpha) - lam * lam * beta * softmax_jacobian(softmax(beta * (b + lam * s)))
    phi = eigen(H)[1][:, 0]
    n = bank.N
    for _ in range(50):
        p = softmax(beta * (b + lam * s))
        J = softmax_jacobian(p)
        A = bank.A(alpha)
        H = A - lam * lam * beta * J
        # d/ds of J phi, where J = diag p - p p^T and dp = beta lam J ds.
        mean = p @ phi
        dJ = beta * lam * ((phi - mean)[:, None] * J - p[:, None] * (J @ phi))
        F = np.concatenate([A @ s - u - lam * p, H @ phi, [phi @ phi - 1]])
        M = np.zeros((2 * n + 1, 2 * n + 1), dtype=LD)
        M[:n, :n] = H
        M[n : 2 * n, :n] = -lam * lam * beta * dJ
        M[n : 2 * n, n : 2 * n] = H
        M[: n, -1] = bank.offdiag @ s
        M[n : 2 * n, -1] = bank.offdiag @ phi
        M[-1, n : 2 * n] = 2 * phi
        step = solve(M, F)
        s, phi, alpha = s - step[:n], phi - step[n : 2 * n], alpha - step[-1]
        if np.max(np.abs(step)) < LD(1e-16) * (1 + np.max(np.abs(s))):
            break
    else:
        raise ArithmeticError("fold equations did not settle")
    assert abs(alpha - lower) < LD(1e-6), (alpha, lower)
    return dict(alpha=alpha, s=s, p=softmax(beta * (b + lam * s)), bracket_low=lower)


# --- Newton without a guard ---------------------------------------------------------------------


def newton_in_p(inv, u, b, beta, lam, limit=200):
    """Full Newton on p - softmax(beta(b + lam A^-1 u + lam^2 A^-1 p)) from p0."""
    base, back = beta * (b + lam * (inv @ u)), beta * lam * lam * inv
    p = softmax(base)
    for _ in range(limit):
        f = softmax(base + back @ p)
        step = solve(np.eye(len(p), dtype=LD) - softmax_jacobian(f) @ back, f - p)
        p = p + step
        if not np.all(np.isfinite(p)) or np.max(np.abs(p)) > 1e6:
            return None
        if np.max(np.abs(step)) < LD(1e-15):
            return p
    return None


def newton_in_s(A, u, b, beta, lam, s):
    s = newton_branch(A, u, b, beta, lam, s, limit=200)
    return None if s is None else softmax(beta * (b + lam * s))


def newton_then_plain(A, inv, u, b, beta, lam, s, damped, limit=30):
    """At most 30 Newton steps in s, halved until E falls if damped, then the plain iteration."""
    now = energy(A, u, b, beta, lam, s)
    for _ in range(limit):
        p = softmax(beta * (b + lam * s))
        slope = A @ s - u - lam * p
        if np.max(np.abs(slope)) < LD(1e-14):
            break
        step = solve(A - lam * lam * beta * softmax_jacobian(p), -slope)
        after = energy(A, u, b, beta, lam, s + step)
        halvings = 0
        while damped and after > now and halvings < 30:
            step, halvings = step / 2, halvings + 1
            after = energy(A, u, b, beta, lam, s + step)
        if damped and after > now:
            break
        s, now = s + step, after
    return plain_iteration(inv, u, b, beta, lam, p=softmax(beta * (b + lam * s)))[0]


# --- Modern Hopfield and attention --------------------------------------------------------------


def hopfield_energy(Z, beta, xi):
    """-lse(beta, Z xi) + |xi|^2/2 + ln(N)/beta + M^2/2."""
    M2 = np.max(np.sum(Z * Z, axis=1))
    return -lse(beta * (Z @ xi)) / beta + xi @ xi / 2 + np.log(LD(len(Z))) / beta + M2 / 2


def hopfield_update(Z, beta, xi):
    return Z.T @ softmax(beta * (Z @ xi))


def hopfield_fixed_point(Z, beta, xi, limit=100000):
    for k in range(limit):
        new = hopfield_update(Z, beta, xi)
        change = np.max(np.abs(new - xi))
        xi = new
        if change <= LD(1e-18) * max(LD(1), np.max(np.abs(xi))):
            return xi
    raise ArithmeticError("Hopfield update: change %g" % change)


def hopfield_bounds(Z, beta, index, xi, star):
    """Right-hand sides of Theorems 4 and 5 for the pattern x = Z[index]."""
    N, x = len(Z), Z[index]
    norm = lambda v: np.sqrt(v @ v)
    M = np.max(np.sqrt(np.sum(Z * Z, axis=1)))
    delta = np.min(x @ x - np.delete(Z @ x, index))
    away = max(norm(xi - x), norm(star - x))
    decay = np.exp(-LD(beta) * (delta - 2 * away * M))
    # Ramsauer et al. prove both for well separated patterns and queries in the sphere S_i.
    separated = delta >= 2 / (LD(beta) * N) + np.log(2 * (N - 1) * N * LD(beta) * M * M) / LD(beta)
    inside = away <= 1 / (LD(beta) * N * M)
    # Their bound of |x - x*| is for x* and xi within 1/(2 beta M) of x.
    close = away <= 1 / (2 * LD(beta) * M)
    return dict(fixed_point_bound=2 * np.exp(LD(1)) * (N - 1) * M * np.exp(-LD(beta) * delta)
                if close else None,
                M=M, delta=delta,
                one_step=2 * LD(beta) * N * M * M * (N - 1) * decay * norm(xi - star),
                retrieval=2 * (N - 1) * decay * M, premises=bool(separated and inside))


def attention(Q, K, V):
    return np.array([softmax(K @ q / np.sqrt(LD(K.shape[1]))) @ V for q in Q], dtype=LD)
