#!/usr/bin/python3
"""Entmax and sparse recall by SciPy, for tests/oracle/test_oracle_entmax.c.

    /usr/bin/python3 tests/oracle/entmax/generate.py           writes cases.npz beside this file
    /usr/bin/python3 tests/oracle/entmax/generate.py --check   compares with what is there

p = [(A - 1) beta r - tau]_+^(1 / (A - 1)) with tau by scipy.optimize.brentq, in the parametrisation of the
literature (Peters, Niculae and Martins 2019), not the library's; for A = 2 also the projection on the simplex
by sorting (Held, Wolfe and Crowder 1974), and both checked as the solution of the convex problem by
scipy.optimize.minimize. Coupled recall: the plain iteration with dense inverses.
"""

import os
import sys

import numpy as np
from scipy.optimize import brentq, minimize

HERE = os.path.dirname(os.path.abspath(__file__))
ORDERS = [1.1, 1.25, 1.5, 1.75, 2.0]
N, CASES = 24, 60


def entmax(order, z):
    k = order - 1
    x = k * z

    def power(tau):
        return np.maximum(x - tau, 0) ** (1 / k)

    top = x.max()
    tau = brentq(lambda t: power(t).sum() - 1, top - 1, top - len(z) ** -k, xtol=1e-300, rtol=8.9e-16)
    return power(tau)


def projection(z):
    down = np.sort(z)[::-1]
    tau = (np.cumsum(down) - 1) / np.arange(1, len(z) + 1)
    last = np.nonzero(down > tau)[0][-1]
    return np.maximum(z - tau[last], 0)


def check_optimal(order, z, p):
    """No point that SLSQP finds on the simplex is better."""

    def loss(y):
        y = np.maximum(y, 0)
        return -(z @ y + (y - y**order).sum() / (order * (order - 1)))

    start = np.full(len(z), 1 / len(z))
    found = minimize(loss, start, bounds=[(0, 1)] * len(z), method="SLSQP",
                     constraints={"type": "eq", "fun": lambda y: y.sum() - 1}, options={"ftol": 1e-14})
    y = np.maximum(found.x, 0) / np.maximum(found.x, 0).sum()
    assert loss(p) <= loss(y) + 1e-9, (order, loss(p), loss(y))


def weights():
    rng = np.random.RandomState(20)
    z, p, order = np.zeros((CASES, N)), np.zeros((CASES, N)), np.zeros(CASES)
    for i in range(CASES):
        order[i] = ORDERS[i % len(ORDERS)]
        z[i] = rng.normal(size=N) * 10 ** rng.uniform(-2, 2)
        if i % 7 == 0:
            z[i, 1::2] = z[i, ::2]
        if i % 11 == 0:
            z[i] += 1e3
        p[i] = entmax(order[i], z[i])
        if order[i] == 2:
            assert np.abs(p[i] - projection(z[i])).max() < 1e-12
        if i < 20:
            check_optimal(order[i], z[i], p[i])
    return {"order": order, "z": z, "p": p}


def coupled():
    rng = np.random.RandomState(21)
    n, d, alpha, beta, lam = 16, 6, 0.2, 2.5, 0.35
    Z = rng.normal(size=(n, d))
    Z /= np.linalg.norm(Z, axis=1)[:, None]
    q, c = rng.normal(size=d), rng.normal(size=d)
    G = Z @ Z.T
    A = np.eye(n) + alpha * (G - np.diag(np.diag(G)))
    assert beta * lam**2 / np.linalg.eigvalsh(A)[0] < 1
    a = Z @ q + lam * np.linalg.solve(A, Z @ c)
    inverse, rows = np.linalg.inv(A), []
    for order in ORDERS:
        p = entmax(order, beta * a)
        for _ in range(2000):
            p = entmax(order, beta * (a + lam**2 * inverse @ p))
        rows.append(p)
    return {"Z": Z, "q": q, "c": c, "parameters": np.array([alpha, beta, lam]), "fixed": np.array(rows),
            "orders": np.array(ORDERS)}


def main():
    arrays, path = {**weights(), **coupled()}, os.path.join(HERE, "cases.npz")
    if sys.argv[1:] != ["--check"]:
        np.savez(path, **arrays)
        return 0
    have = np.load(path)
    wrong = [k for k in arrays if np.abs(have[k] - arrays[k]).max() > 1e-12]
    print("differs: " + " ".join(wrong) if wrong else "same")
    return bool(wrong)


sys.exit(main())
