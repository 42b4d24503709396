"""NumPy as a peer: attention over a bank, exact top-1, and coupled iterations by Woodbury.

usage: peer_numpy.py ROWS COLUMNS RUNS THREADS     prints {"work": {"wall": s, "cpu": s}, ...}
"""
import json
import os
import sys
import time

n, d, runs, threads = map(int, sys.argv[1:5])
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(threads)
import numpy as np  # noqa: E402  (threads are read when it loads)

rng = np.random.default_rng(1)
Z = ((rng.random((n, d), dtype=np.float32) - 0.5) * np.float32(12**0.5 / d**0.5))
Q = Z[:64].copy()


def attention(q):
    r = q @ Z.T
    r -= r.max(axis=1, keepdims=True)
    np.exp(r, out=r)
    r /= r.sum(axis=1, keepdims=True)
    return r @ Z


def top1(q):
    return np.argmax(q @ Z.T, axis=1)


def best(work):
    wall, cpu = [], []
    for _ in range(runs):
        start, used = time.perf_counter(), time.process_time()
        work()
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - used)
    return {"wall": min(wall), "cpu": min(cpu)}


# p = softmax(beta (b + lambda^2 A^-1 p)), A^-1 p = D^-1 (p - alpha Z M^-1 Z' D^-1 p); M is made once
alpha, lam, beta = 0.2, 0.5, 1.0
D = (1 - alpha * np.einsum("ij,ij->i", Z, Z)).astype(np.float32)
rows = min(n, 8192)
M = np.eye(d) + alpha * (Z[:rows].T / D[:rows]).astype(np.float64) @ Z[:rows]
Minv = np.linalg.inv(M).astype(np.float32)


def coupled(iterations):
    b = Z @ Q[0]
    p = np.exp(beta * (b - b.max()))
    p /= p.sum()
    for _ in range(iterations):
        x = p / D
        r = b + lam**2 * (x - alpha * (Z @ (Minv @ (Z.T @ x))) / D)
        p = np.exp(beta * (r - r.max()))
        p /= p.sum()
    return p


print(json.dumps({
    "attention_1": best(lambda: attention(Q[:1])),
    "attention_64": best(lambda: attention(Q)),
    "top1_1": best(lambda: top1(Q[:1])),
    "top1_64": best(lambda: top1(Q)),
    "coupled_2": best(lambda: coupled(2)),
    "coupled_6": best(lambda: coupled(6)),
}))
