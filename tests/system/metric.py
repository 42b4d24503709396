"""recall --metric against NumPy: cosines and distances, with contexts, in two modes, with a ghost, a selection and the sketch."""
import os
import tempfile

import numpy as np

from harness import ask, check, close, finish, refuse

rng = np.random.default_rng(2)
N, D, BETA, LAMBDA = 500, 9, 3.0, 0.3


def softmax(r):
    e = np.exp(BETA * (r - r.max()))
    return e / e.sum()


def shares(b, u, way):
    if way == "coupled":
        p = softmax(b)
        for _ in range(3000):
            p = softmax(b + LAMBDA * (u + LAMBDA * p))
        return p
    if way == "none":
        return softmax(np.append(b, -1.0))[:-1]
    return softmax(b + LAMBDA * u if way == "context" else b)


WAYS = {"plain": [], "fast": ["--fast", "--tol-p", "1e-9"], "context": ["--context", "c.npy", "--lambda", LAMBDA],
        "coupled": ["--context", "c.npy", "--mode", "coupled", "--lambda", LAMBDA], "none": ["--none", -1.0], "only": ["--only", "3-70"]}


def compare(kind, metric):
    Z = (rng.normal(size=(N, D)) * rng.uniform(0.5, 2, size=(N, 1))).astype(kind)
    Z[3] = 0
    Q, c = rng.normal(size=(3, D)), rng.normal(size=D)
    np.save("Z.npy", Z), np.save("Q.npy", Q), np.save("c.npy", c)
    Z = Z.astype(float)
    norms = np.where(Z.any(1), np.linalg.norm(Z, axis=1), 1)
    b = {"cosine": (Z / norms[:, None]) @ (Q / np.linalg.norm(Q, axis=1)[:, None]).T,
         "l2": -0.5 * ((Z[:, None] - Q[None])**2).sum(2)}[metric]
    for way, words in WAYS.items():
        rows = np.arange(3, 71) if way == "only" else np.arange(N)
        doc = ask("recall", "--bank", "Z.npy", "--query", "Q.npy", "--metric", metric, "--beta", BETA, "--top", 3, "--explain", *words)
        check(doc["metric"] == metric and doc["d"] == D and doc["alpha_crit"] is None, doc)
        for k, query in enumerate(doc["queries"]):
            p = shares(b[rows, k], Z[rows] @ c, way)
            order = np.argsort(-p, kind="stable")[:3]
            check([i for i, _ in query["top"]] == [int(rows[i]) for i in order], metric, kind, way, query["top"], rows[order])
            close([x for _, x in query["top"]], p[order], 1e-6, metric, kind, way)
            close(query["parts"]["evidence"], b[rows[order], k], 1e-9, metric, kind, way, "evidence")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for kind in ("f8", "f4", "f2"):
        for metric in ("cosine", "l2"):
            compare(kind, metric)
    for words, piece in ((["--alpha", 0.1], "alpha 0"), (["--mode", "flow"], "mode flow"), (["--save-readout", "x.npy"], "save-readout"),
                         (["--marks"], "marks"), (["--normalize"], "normalized bank")):
        refuse(2, [piece], "recall", "--bank", "Z.npy", "--query", "Q.npy", "--metric", "l2", *words)
    np.save("huge.npy", np.full(D, 1e200))
    refuse(2, ["|q|^2"], "recall", "--bank", "Z.npy", "--query", "huge.npy", "--metric", "cosine")
finish()
