"""What the studies should give, by NumPy, with random numbers of its own: expect.json.

    /usr/bin/python3 tests/oracle/study/generate.py      (some three minutes)

The means and standard errors are compared with cgam's own by tests/oracle/test_oracle_study.c; both
are random, so they agree within the two standard errors together. The peer of the benchmark,
bench/report_numpy.py, is the independent program; this file adds what it does not have.
"""

import json
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "bench"))
import report_numpy as peer  # noqa: E402


def between_banks(values):
    values = np.array(values)
    return values.mean(0), values.std(0, ddof=1) / np.sqrt(len(values))


def separation(rng, sigma_c, banks=40, trials=400):
    runs = [peer.separation(rng, trials, sigma_c=sigma_c) for _ in range(banks)]
    mean, se = between_banks([r["accuracy"] for r in runs])
    median, median_se = between_banks([[g[2] for g in r["gaps"]] for r in runs])
    return {"banks": banks, "trials": trials, "sigma_c": sigma_c, "mean": mean.tolist(),
            "se": se.tolist(), "median": median.tolist(), "median_se": median_se.tolist(),
            "violations": sum(r["violations"] for r in runs)}


def capacity(rng, d=16, loads=(0.5, 4, 32), lambdas=(0, 2), alpha=0.1, sigma_q=0.5, sigma_c=0.3,
             banks=40, trials=200):
    rows = []
    for load in loads:
        n, shares = round(load * d), []
        for _ in range(banks):
            Z = rng.standard_normal((n, d))
            Z /= np.linalg.norm(Z, axis=1, keepdims=True)
            G = Z @ Z.T
            A = np.eye(n) + alpha * (G - np.diag(np.diag(G)))
            target = rng.integers(n, size=trials)
            q = Z[target] + sigma_q * rng.standard_normal((trials, d))
            c = Z[target] + sigma_c * rng.standard_normal((trials, d))
            s = np.linalg.solve(A, Z @ c.T).T
            shares.append([((q @ Z.T + lam * s).argmax(1) == target).mean() for lam in lambdas])
        mean, se = between_banks(shares)
        rows += [{"load": load, "lambda": lam, "mean": m, "se": e}
                 for lam, m, e in zip(lambdas, mean, se)]
    return {"banks": banks, "trials": trials, "rows": rows}


def timescale(rng, ratios=(0.1, 1, 10), trials=1500, n=50, d=10, alpha=0.1, beta=3.5, lam=2.0,
              sigma_q=1.0, sigma_c=0.3):
    Z = rng.standard_normal((trials, n, d))
    Z /= np.linalg.norm(Z, axis=2, keepdims=True)
    target = rng.integers(n, size=trials)
    zeta = Z[np.arange(trials), target]
    b = np.einsum("tij,tj->ti", Z, zeta + sigma_q * rng.standard_normal((trials, d)))
    u = np.einsum("tij,tj->ti", Z, zeta + sigma_c * rng.standard_normal((trials, d)))
    Zt = Z.transpose(0, 2, 1)
    rows = []
    for ratio in ratios:
        def slopes(s, r):
            Gs = (Z @ (Zt @ s[..., None]))[..., 0]
            ds = u + lam * peer.softmax(beta * r) - (1 - alpha) * s - alpha * Gs
            return ds, (lam * s + b - r) / ratio

        s, r, h = np.zeros_like(u), np.zeros_like(u), 0.25 * min(1.0, ratio)
        for _ in range(int(20 * max(1, ratio) / h)):
            s1, r1 = slopes(s, r)
            s2, r2 = slopes(s + h / 2 * s1, r + h / 2 * r1)
            s3, r3 = slopes(s + h / 2 * s2, r + h / 2 * r2)
            s4, r4 = slopes(s + h * s3, r + h * r3)
            s = s + h / 6 * (s1 + 2 * s2 + 2 * s3 + s4)
            r = r + h / 6 * (r1 + 2 * r2 + 2 * r3 + r4)
        share = (r.argmax(1) == target).mean()
        rows.append({"ratio": ratio, "mean": share, "se": np.sqrt(share * (1 - share) / trials)})
    return {"trials": trials, "rows": rows}


def main():
    rng = np.random.default_rng(20261115)
    competition_alphas = [0.0, 0.5, 0.875, 1.0, 1.03, 1.06, 1.09, 1.12, 1.2, 1.5]
    coupled_alphas = [0.05, 0.3, 0.4, 0.6, 0.66, 0.8, 0.84, 0.9, 0.957, 1.0, 1.03, 1.06, 1.3]
    doc = {
        "about": "means and standard errors of the studies by NumPy; tests/oracle/study/generate.py",
        "separation": [separation(rng, 0.3), separation(rng, 0.3 / np.sqrt(10))],
        "competition": dict(peer.competition(rng, 2000, alphas=competition_alphas),
                            alpha=competition_alphas, trials=2000),
        "coupled": dict(peer.coupled(rng, 400, lambdas=(0, 0.5, 1, 1.5, 2, 3),
                                     alphas=coupled_alphas), trials=400),
        "capacity": capacity(rng),
        "timescale": timescale(rng),
    }
    with open(os.path.join(HERE, "expect.json"), "w") as f:
        json.dump(doc, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
