"""The paper's simulations in batched NumPy: the peer that bench/bench_report.sh measures against.

Written as a competent researcher would: every step works on all trials at once, one
eigen-decomposition of the Gram matrices serves every alpha, the plain iteration drops trials that
have converged, and the transient (classical Runge-Kutta, the largest stable step) drops trials that
have become one-hot. Same definitions, grids and sizes as `cgam study`; other random numbers.

    report_numpy.py separation|competition|coupled|theorems [--trials N] [--alphas a,b,..] [--seed N]

prints one JSON object with the seconds it took and the main numbers.
"""

import argparse
import json
import time

import numpy as np

N, D = 50, 10


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def clusters(rng, trials, centre=2.0, spread=0.3):
    g = rng.standard_normal((trials, 1, D))
    g *= centre / np.linalg.norm(g, axis=2, keepdims=True)
    Z = g + spread * rng.standard_normal((trials, N, D))
    return Z / np.linalg.norm(Z, axis=2, keepdims=True)


def competition_alphas():
    a = np.concatenate([np.linspace(0, 2, 17), np.linspace(1, 1.25, 60), [1.0]])
    return np.unique(np.round(a, 4))


def coupled_alphas(beta, lam):
    a = np.concatenate([competition_alphas(), np.linspace(0, 2, 100)])
    if lam > 0 and lam * lam * beta < N:
        middle = 1 - lam * lam * beta / N
        a = np.concatenate([a, np.linspace(middle - 0.1, middle + 0.1, 60)])
    a = np.unique(np.round(a, 4))
    return a[a >= 0]


def separation(rng, trials, sigma_c=0.3, alpha=0.1, beta=3.5, lambdas=(0, 1, 2, 4, 8, 16)):
    Z = rng.standard_normal((N, D))
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    S = Z @ np.linalg.inv((1 - alpha) * np.eye(D) + alpha * Z.T @ Z)
    sigmas = np.linspace(0, 3, 12)
    target = rng.integers(N, size=(12, trials))
    q = Z[target] + sigmas[:, None, None] * rng.standard_normal((12, trials, D))
    c = Z[target] + sigma_c * rng.standard_normal((12, trials, D))
    b, s = q @ Z.T, c @ S.T
    at = target[..., None]
    accuracy, gaps, violations = [], [], 0
    for lam in lambdas:
        r = b + lam * s
        own = np.take_along_axis(r, at, 2)[..., 0]
        accuracy.append((r.argmax(2) == target).mean(1))
        top = r.max(2)
        log_p = beta * (own - top) - np.log(np.exp(beta * (r - top[..., None])).sum(2))
        np.put_along_axis(r, at, -np.inf, 2)
        gap = own - r.max(2)
        bound = -np.logaddexp(0, np.log(N - 1) - beta * gap)
        violations += int((log_p < bound - 1e-12).sum())
        gaps.append(np.quantile(gap[4], [0.05, 0.25, 0.5, 0.75, 0.95]))
    return {"accuracy": np.array(accuracy).tolist(), "gaps": np.array(gaps).tolist(),
            "violations": violations}


def competition(rng, trials, beta=3.5, t_cap=50.0, delta=0.01, alphas=None):
    Z = clusters(rng, trials)
    mu, V = np.linalg.eigh(Z @ Z.transpose(0, 2, 1))
    mu[:, : N - D] = 0
    u = np.full(N, 1 / N)
    c = u @ V
    rest = np.einsum("tij,tj->ti", V[:, :, : N - D], c[:, : N - D])
    two = np.sort(rest, axis=1)[:, -2:]
    lead = two[:, 1] - two[:, 0]
    need = np.log((1 - delta) * (N - 1) / delta) / beta
    peaks = []
    for alpha in competition_alphas() if alphas is None else alphas:
        eta = 1 - alpha * (1 - mu)
        if alpha < 1:
            f = 1 / eta
        else:
            gamma = alpha - 1
            t = np.log1p(gamma * need / lead) / gamma if gamma > 1e-12 else need / lead
            t = np.minimum(t, t_cap)[:, None]
            near = np.abs(eta) < 1e-12
            f = np.where(near, t, -np.expm1(-eta * t) / np.where(near, 1, eta))
        s = (V @ (f * c)[..., None])[..., 0]
        peaks.append(softmax(beta * s).max(1))
    peaks = np.array(peaks)
    return {"peak_mean": peaks.mean(1).tolist(),
            "peak_se": (peaks.std(1, ddof=1) / np.sqrt(trials)).tolist()}


def iterate(Ainv, base, r, beta, lam, tol=1e-8, most=500):
    """r <- base + lam^2 Ainv softmax(beta r) for all trials; the arrays shrink as trials converge."""
    out, rows = r.copy(), np.arange(len(r))
    for k in range(most):
        new = base + lam * lam * (Ainv @ softmax(beta * r)[..., None])[..., 0]
        done = np.abs(new - r).max(1) < tol
        r = new
        out[rows] = r
        if done.all():
            break
        if done.sum() > len(done) // 4:
            Ainv, base, r, rows = Ainv[~done], base[~done], r[~done], rows[~done]
    return out


def transient(Z, start, u, alpha, beta, lam, t_cap=50.0):
    """Peak at t_cap of s' = u - A s + lam p, r' = lam s - r; the arrays shrink as trials end."""
    largest = np.linalg.norm(Z, 2, axis=(1, 2)).max() ** 2
    steps = int(np.ceil(t_cap * (1 + alpha * (largest - 1)) / 2.5))
    h = t_cap / steps
    peaks, rows = np.ones(len(Z)), np.arange(len(Z))
    s, r = np.zeros_like(start), start.copy()
    Zt = Z.transpose(0, 2, 1)

    def slopes(s, r):
        Gs = (Z @ (Zt @ s[..., None]))[..., 0]
        return u + lam * softmax(beta * r) - (1 - alpha) * s - alpha * Gs, lam * s - r

    for k in range(steps):
        s1, r1 = slopes(s, r)
        s2, r2 = slopes(s + h / 2 * s1, r + h / 2 * r1)
        s3, r3 = slopes(s + h / 2 * s2, r + h / 2 * r2)
        s4, r4 = slopes(s + h * s3, r + h * r3)
        s = s + h / 6 * (s1 + 2 * s2 + 2 * s3 + s4)
        r = r + h / 6 * (r1 + 2 * r2 + 2 * r3 + r4)
        if k % 10 == 9 or k == steps - 1:
            peak = softmax(beta * r).max(1)
            peaks[rows] = peak
            left = peak < 1 - 1e-12
            if not left.any():
                break
            if left.sum() < 0.75 * len(left):
                Z, s, r, rows = Z[left], s[left], r[left], rows[left]
                Zt = Z.transpose(0, 2, 1)
    return peaks


def coupled(rng, trials, beta=5.0, lambdas=(0, 0.5, 1, 1.5, 2, 2.5, 3), t_cap=50.0, alphas=None):
    Z = clusters(rng, trials)
    start = 1e-4 * rng.standard_normal((trials, N))
    mu, V = np.linalg.eigh(Z @ Z.transpose(0, 2, 1))
    mu[:, : N - D] = 0
    u = np.full(N, 1 / N)
    c = u @ V
    own = {lam: coupled_alphas(beta, lam) if alphas is None else np.array(alphas)
           for lam in lambdas}
    peaks = {lam: {} for lam in lambdas}
    for alpha in np.unique(np.concatenate(list(own.values()))):
        rows = [lam for lam in lambdas if (own[lam] == alpha).any()]
        eta = 1 - alpha * (1 - mu)
        if alpha < 1:
            Ainv = (V / eta[:, None, :]) @ V.transpose(0, 2, 1)
            s0 = Ainv @ u
            for lam in rows:
                r = iterate(Ainv, lam * s0, start, beta, lam) if lam > 0 else s0
                peaks[lam][alpha] = softmax(beta * r).max(1)
        else:
            if 0 in rows:
                near = np.abs(eta) < 1e-12
                f = np.where(near, t_cap, -np.expm1(-eta * t_cap) / np.where(near, 1, eta))
                s = (V @ (f * c)[..., None])[..., 0]
                peaks[0][alpha] = softmax(beta * s).max(1)
            for lam in rows:
                if lam > 0:
                    peaks[lam][alpha] = transient(Z, start, u, alpha, beta, lam, t_cap)
    curves = []
    for lam in lambdas:
        values = np.array([peaks[lam][a] for a in own[lam]])
        mean = values.mean(1)
        cross = np.nonzero((mean[:-1] < 0.5) & (mean[1:] >= 0.5))[0]
        half = None
        if len(cross):
            i = cross[0]
            half = own[lam][i] + (own[lam][i + 1] - own[lam][i]) * (0.5 - mean[i]) / (
                mean[i + 1] - mean[i])
        curves.append({"lambda": lam, "alpha": own[lam].tolist(), "peak_mean": mean.tolist(),
                       "peak_se": (values.std(1, ddof=1) / np.sqrt(trials)).tolist(),
                       "alpha_half": half})
    return {"curves": curves}


def theorems(rng, trials):
    """The same kinds of statements, on batches of instances of one size (n = 13, d = 7)."""
    n, d, T = 13, 7, trials
    Z = rng.standard_normal((T, n, d))
    Z /= np.linalg.norm(Z, axis=2, keepdims=True)
    G = Z @ Z.transpose(0, 2, 1)
    mu, V = np.linalg.eigh(G)
    counts = {}

    def count(name, margin, tol=1e-9):
        counts[name] = [int(margin.size), int((margin < -tol).sum()), float(margin.min())]

    beta = np.exp(rng.uniform(-1, 2, T))[:, None]
    r = rng.standard_normal((T, n))
    p = softmax(beta * r)
    other = np.sort(np.delete(r, 0, 1), axis=1)[:, -1]
    count("bound", np.log(p[:, 0]) + np.logaddexp(0, np.log(n - 1) - beta[:, 0] * (r[:, 0] - other)))
    eps = np.exp(rng.uniform(np.log(1e-3), np.log(0.5), T))
    gap = np.log((1 - eps) * (n - 1) / eps) / beta[:, 0]
    r2 = r.copy()
    r2[:, 0] = other + gap
    count("threshold", softmax(beta * r2)[:, 0] - (1 - eps))
    C = p[:, :, None] * np.eye(n) - p[:, :, None] * p[:, None, :]
    count("jacobian", 0.5 - np.linalg.eigvalsh(C)[:, -1])
    alpha = rng.uniform(0, 0.95, T)[:, None]
    eta = 1 - alpha * (1 - np.where(np.arange(n) < n - d, 0, mu))
    Ainv = (V / eta[:, None, :]) @ V.transpose(0, 2, 1)
    x = rng.standard_normal((T, n))
    y = (Ainv @ x[..., None])[..., 0]
    count("amplification", 1 - np.linalg.norm(y, axis=1) * eta.min(1) / np.linalg.norm(x, axis=1))
    A = (1 - alpha)[..., None] * np.eye(n) + alpha[..., None] * G
    count("response", -np.abs((np.linalg.solve(A, x[..., None])[..., 0] - y)).max(1))
    kappa = np.exp(rng.uniform(-3, 2, T))[:, None]
    lam = np.sqrt(2 * kappa * eta.min(1, keepdims=True) / beta)
    b, uu = (Z @ rng.standard_normal((T, d, 1)))[..., 0], (Z @ rng.standard_normal((T, d, 1)))[..., 0]

    def phi(p, lam):
        return softmax(beta * (b + lam * (Ainv @ (uu + lam * p)[..., None])[..., 0]))

    p1, p2 = softmax(rng.standard_normal((T, n))), softmax(3 * rng.standard_normal((T, n)))
    moved = np.linalg.norm(phi(p1, lam) - phi(p2, lam), axis=1)
    count("contraction", 1 - moved / (kappa[:, 0] * np.linalg.norm(p1 - p2, axis=1)))
    local = np.linalg.eigvals(beta[..., None] * lam[..., None] ** 2 * Ainv @ C).real.max(1)
    count("local contraction", kappa[:, 0] - local)
    weak = np.sqrt(2 * rng.uniform(0.05, 0.9, T)[:, None] * eta.min(1, keepdims=True) / beta)
    for _ in range(300):
        p1, p2 = phi(p1, weak), phi(p2, weak)
    count("uniqueness", -np.linalg.norm(p1 - p2, axis=1), 1e-8)
    energy, q = [], softmax(r)
    for _ in range(50):
        s = (Ainv @ (uu + lam * q)[..., None])[..., 0]
        z = beta * (b + lam * s)
        energy.append(0.5 * np.einsum("ti,tij,tj->t", s, A, s) - (uu * s).sum(1)
                      - (z.max(1) + np.log(np.exp(z - z.max(1, keepdims=True)).sum(1))) / beta[:, 0])
        q = softmax(z)
    count("energy", -np.diff(energy, axis=0).max(0))
    up = 1 + np.exp(rng.uniform(-5, 0, T))[:, None]
    eta = 1 - up * (1 - np.where(np.arange(n) < n - d, 0, mu))
    c = np.einsum("ti,tij->tj", x, V)
    rest = np.einsum("tij,tj->ti", V[:, :, : n - d], c[:, : n - d])
    t = 40 / (up - 1)
    growth = np.exp(np.clip(-eta * t - (up - 1) * t, -700, 0))
    late = np.einsum("tij,tj->ti", V, (growth - np.exp(-(up - 1) * t)) / -eta * c)
    count("winner", np.where(late.argmax(1) == rest.argmax(1), 0.0, -1.0))
    return {"checks": counts}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("study", choices=["separation", "competition", "coupled", "theorems"])
    parser.add_argument("--trials", type=int)
    parser.add_argument("--alphas")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    usual = {"separation": 6000, "competition": 1000, "coupled": 1000, "theorems": 500}
    trials = args.trials or usual[args.study]
    options = {}
    if args.alphas:
        options["alphas"] = [float(a) for a in args.alphas.split(",")]
    rng = np.random.default_rng(args.seed)
    begun = time.perf_counter()
    doc = globals()[args.study](rng, trials, **options)
    doc["seconds"] = time.perf_counter() - begun
    doc["trials"] = trials
    print(json.dumps(doc))


if __name__ == "__main__":
    main()
