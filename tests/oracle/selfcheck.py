"""Identities that must hold if the oracle is right; each failure stops the generator.

Question: who watches the oracle?  Every number that is written was computed in longdouble by
refmath.py and reftheory.py; here the same things are reached on another way: LAPACK in double,
scipy.linalg.expm, finite differences, Woodbury's formula, and the theorems themselves.
"""

import numpy as np
import scipy.linalg

from refmath import (LD, EPS64, energy, fold_margin, inverse, ld, local_contraction,
                     plain_iteration, softmax, softmax_jacobian, solve)
from reftheory import hopfield_energy

CHECKED = [0]


def count():
    return CHECKED[0]


def near(got, want, allowed, what):
    CHECKED[0] += 1
    off = float(np.max(np.abs(ld(got) - ld(want))))
    assert off <= allowed, "%s: off by %g, allowed %g" % (what, off, allowed)


def holds(condition, what):
    CHECKED[0] += 1
    assert condition, what


def checked_solve(A, x):
    """The longdouble solution, with its backward error and LAPACK's opinion."""
    y = solve(A, x)
    size = np.max(np.sum(np.abs(A), axis=1)) * np.max(np.abs(y)) + np.max(np.abs(x))
    near(A @ y, x, 1e-17 * float(size), "backward error of a longdouble solve")
    B = A.astype(float)
    cond = np.linalg.cond(B)
    near(np.linalg.solve(B, x.astype(float)), y,
         100 * EPS64 * cond * (1 + float(np.max(np.abs(y)))), "LAPACK solve")
    return y


def woodbury(bank, alpha, x):
    """D^-1 x - alpha D^-1 Z M^-1 Z^T D^-1 x with M = I + alpha Z^T D^-1 Z."""
    D = 1 - LD(alpha) * bank.n
    M = np.eye(bank.d, dtype=LD) + LD(alpha) * (bank.Z.T / D) @ bank.Z
    y = x / D
    return y - LD(alpha) * (bank.Z @ solve(M, bank.Z.T @ y)) / D


def bank_identities(bank, alphas):
    G = bank.G.astype(float)
    scale = 1 + float(np.max(np.abs(bank.mu)))
    near(np.linalg.eigvalsh(G), bank.mu, 1e-13 * scale, "eigenvalues of G")
    near(np.linalg.eigvalsh(bank.offdiag.astype(float)), bank.omega, 1e-13 * scale, "omega")
    near(bank.offdiag @ bank.V, bank.V * bank.omega, 1e-16 * scale, "eigenvectors")
    near(bank.V.T @ bank.V, np.eye(bank.N), 1e-16, "orthogonality")
    holds(bank.rank == np.linalg.matrix_rank(bank.Z.astype(float)), "rank")
    if np.max(np.abs(bank.n - 1)) < 1e-12 and bank.alpha_crit() is not None:
        near(bank.alpha_crit(), 1 / (1 - bank.mu[0]), 1e-12, "alpha_crit of unit memories")
    x = ld(np.random.RandomState(3).standard_normal(bank.N))
    for alpha in alphas.values():
        D = 1 - LD(alpha) * bank.n
        if np.min(np.abs(D)) < 1e-3 or np.min(np.abs(bank.eta(alpha))) < 1e-3:
            continue
        y = solve(bank.A(alpha), x)
        near(woodbury(bank, alpha, x), y, 1e-12 * (1 + float(np.max(np.abs(y)))), "Woodbury")
        # Inertia of [[D, sqrt(a) Z], [., -I]] from both corners: neg A + d = neg D + pos M.
        M = np.eye(bank.d) + alpha * ((bank.Z.T / D) @ bank.Z).astype(float)
        neg = int(np.sum(D < 0)) + int(np.sum(np.linalg.eigvalsh(M) > 0)) - bank.d
        holds(int(np.sum(bank.eta(alpha) < 0)) == neg, "inertia of A")


def free_context_signs(row):
    a, b = row["free_context_lowest"], row["free_context_margin"]
    holds((a > 0) == (b > 0) or max(abs(a), abs(b)) < 1e-15, "free context: A - WW' and its dual")


def coupled_identities(bank, A, u, b, beta, lam, out):
    p, s = out["p"], out["s"]
    near(np.sum(p), 1, 1e-17, "p sums to 1")
    near(softmax(beta * out["r"]), p, 1e-16, "p = softmax(beta r)")
    residual = A @ s - u - lam * p
    near(residual, 0, 1e-16 * float(1 + np.max(np.abs(A) @ np.abs(s))), "dE/ds = 0")
    # dE/ds = A s - u - lam p away from the fixed point, by central differences.  h = 1e-5 in
    # longdouble leaves a truncation of at most 1e-10 (1 + beta^2 lam^3) and a rounding of about
    # 1e-18 / h times the terms that make up E.
    at = s + LD(0.1) * ld(np.cos(np.arange(len(s))))
    h = LD(1e-5)
    terms = float(np.abs(at) @ (np.abs(A) @ np.abs(at)) + np.abs(u) @ np.abs(at))
    for k in range(min(3, len(s))):
        e = np.zeros(len(s), dtype=LD)
        e[k] = h
        slope = (energy(A, u, b, beta, lam, at + e) - energy(A, u, b, beta, lam, at - e)) / (2 * h)
        grad = (A @ at - u - lam * softmax(beta * (b + lam * at)))[k]
        near(slope, grad, 1e-10 * float(1 + beta**2 * lam**3) + 1e-13 * terms,
             "finite difference of E")
    # E never rises along the plain iteration.
    inv = out["inv"]
    p0 = softmax(beta * (b + lam * (inv @ u)))
    s, last = inv @ u, energy(A, u, b, beta, lam, inv @ u)
    near(last, out["energy_start"], 0, "energy at the start")
    for k in range(50):
        s = inv @ (u + lam * p0)
        p0 = softmax(beta * (b + lam * s))
        now = energy(A, u, b, beta, lam, s)
        holds(now <= last + LD(1e-17) * (1 + abs(last)), "energy descent")
        last = now
    J = softmax_jacobian(p)
    K = (beta * lam**2 * (inv @ J)).astype(float)
    near(np.max(np.linalg.eigvals(K).real), out["local"], 1e-10 * (1 + float(out["local"])),
         "local constant by a general eigenvalue solver")
    H = (A - lam**2 * beta * J).astype(float)
    near(np.linalg.eigvalsh(H)[0], out["fold_margin"], 1e-13 * np.linalg.norm(H), "fold margin")
    eta = np.linalg.eigvalsh(A.astype(float))[0]
    holds(out["local"] <= beta * lam**2 / (2 * LD(eta)) * (1 + LD(1e-9)),
          "local <= global constant")
    holds(out["fold_margin"] >= eta - 2 * lam**2 * beta * np.max(p * (1 - p)) - LD(1e-12),
          "free bound on the fold margin")
    holds((out["fold_margin"] > 0) == (out["local"] < 1), "fold margin and local constant agree")


def fold_identities(bank, case, folds):
    for fold in folds:
        beta, lam = LD(fold["beta"]), LD(fold["lambda"])
        b, u = bank.Z @ ld(case.Q[fold["query"]]), bank.Z @ ld(case.C[fold["query"]])
        A = bank.A(fold["alpha"])
        near(A @ fold["s"] - u - lam * fold["p"], 0, 1e-16, "fold point is a fixed point")
        near(fold_margin(A, fold["p"], beta, lam), 0, 1e-15, "fold margin at the fold")
        near(local_contraction(A, fold["p"], beta, lam), 1, 1e-14, "local constant at the fold")
        # The branch ends there: just below, p0 leads close to the fold point; just above, far away.
        ends = [plain_iteration(inverse(bank.A(fold["alpha"] * (1 + LD(x)))), u, b, beta, lam,
                                floor=LD(1e-13))[0] for x in (-1e-4, 1e-4)]
        holds(np.max(np.abs(ends[0] - fold["p"])) < 0.02, "branch before the fold")
        holds(np.max(np.abs(ends[1] - fold["p"])) > 0.2, "no branch after the fold")


def supercritical_against_expm(bank, row):
    """s(t) from the matrix exponential of [[-A, u], [0, 0]] / tau."""
    n = bank.N
    M = np.zeros((n + 1, n + 1))
    M[:n, :n] = -bank.A(row["alpha"]).astype(float) / row["tau"]
    M[:n, n] = ld(row["u"]).astype(float) / row["tau"]
    start = np.append(ld(row["s0"]).astype(float), 1)
    run = lambda t: (scipy.linalg.expm(M * float(t)) @ start)[:n]
    for point in row["transient"]:
        s = run(point["t"])
        near(point["s"], s, 1e-11 * (1 + np.max(np.abs(s))), "closed-form transient")
    if row["winner"] is None:
        return
    late = run(60 * row["tau"] / float(row["gamma"]) if row["stable_rest"] else 12 * row["tau"])
    if row["stable_rest"]:
        holds(int(np.argmax(late)) == row["winner"], "winner of the transient")
    reached = lambda t: softmax(LD(row["beta"]) * ld(run(t)))[row["winner"]]
    if row["t_star"] is not None:
        holds(reached(row["t_star"]) >= 1 - row["delta"] - 1e-9, "p at the horizon t*")
        holds(row["t_gap"] <= row["t_star"] * (1 + LD(1e-12)), "the gap is there by t*")
    if row["t_settled"] is not None:
        near(reached(row["t_settled"]), 1 - row["delta"], 1e-8, "p when it has settled")
        holds(row["t_settled"] <= row["t_gap"], "p settles before the gap guarantees it")


def threshold_is_where_uniform_state_turns(bank, row):
    if not row["valid"]:
        holds(row["alpha"] is None, "no alpha without validity")
        return
    lam, beta, n = LD(row["lambda"]), LD(row["beta"]), bank.N
    J = softmax_jacobian(np.full(n, LD(1) / n))
    for side in (-1, 1):
        A = bank.A(row["alpha"] * (1 + side * LD(1e-6)))
        top = np.linalg.eigvalsh((A - lam**2 * beta * J).astype(float))[0]
        holds((top > 0) == (side < 0) or row["alpha"] == 0, "uniform state turns at the threshold")


def hopfield_identities(Z, beta, xi, row):
    h = LD(1e-5)
    for k in range(3):
        e = np.zeros(len(xi), dtype=LD)
        e[k] = h
        slope = (hopfield_energy(Z, beta, xi + e) - hopfield_energy(Z, beta, xi - e)) / (2 * h)
        near(slope, (xi - row["update"])[k], 1e-10 * float(1 + beta**2), "dE/dxi = xi - f(xi)")
    holds(row["energy"] >= 0 and row["energy_fixed"] <= row["energy"], "Hopfield energy")
    near(row["fixed_point"], Z.T @ softmax(beta * (Z @ row["fixed_point"])), 1e-17, "fixed point")
    if row["premises"]:
        holds(row["one_step_error"] <= row["one_step"], "Theorem 4")
        holds(row["retrieval_error"] <= row["retrieval"], "Theorem 5")
        away = row["fixed_point"] - Z[row["index"]]
        holds(np.sqrt(away @ away) <= row["fixed_point_bound"], "Theorem 5, fixed point")


def scalar_identities(sep, bounds, norms):
    for row in sep:
        if row["threshold"] is not None:
            g, n = row["threshold"], row["n"]
            near(1 / (1 + (n - 1) * np.exp(-LD(row["beta"]) * g)), 1 - LD(row["eps"]), 1e-17,
                 "threshold inverts the logistic bound")
    for row in norms:
        holds(row["norm"] <= LD(0.5) * (1 + LD(1e-18)) and row["norm"] <= row["bound"] + LD(1e-18),
              "norm of diag p - p p^T")
        p = ld(row["p"]).astype(float)
        near(np.linalg.norm(np.diag(p) - np.outer(p, p), 2), row["norm"], 1e-15, "spectral norm")
    for row in bounds:
        holds(0 <= row["p_lower_bound"] <= 1, "logistic bound")
