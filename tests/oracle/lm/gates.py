#!/usr/bin/python3
"""`lm gates`, computed again from exported states by NumPy alone, with A(alpha) as a matrix.

    cgam lm gates ... --exact --store s.db --out out
    cgam lm store --store s.db --export states.safetensors
    cgam lm bank ... --no-inspect --out bank.safetensors --json > bank.json
    gates.py states.safetensors bank.safetensors bank.json out

Layers, contexts, lambda and answers of every alpha and mode, from the rules of
docs/studies/language-models.md; compared with out/gates.json. Where $CGAM names the program, `cgam recall` is
asked too, with the same queries and contexts on the exported bank. Exit status 1 names what differs.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import recompute
from recompute import Store, Task, bad, close, equal, safetensors


def interval(b, t, y):
    """Where b + lambda t is largest at y: lambda in [lo, hi)."""
    lo, hi = 0.0, np.inf
    for m in range(len(b)):
        if m == y:
            continue
        gap, rise = b[m] - b[y], t[y] - t[m]
        if rise > 0:
            lo = max(lo, gap / rise)
        elif rise < 0:
            hi = min(hi, gap / rise)
        elif gap > 0 or (gap == 0 and m < y):
            return None
    return (lo, hi) if lo < hi else None


class Whole:
    """Labels as sequences: the gates have a say in the first token, the model in the others."""

    def __init__(self, doc, words, store, Z, g, epsilon):
        sequence = doc["answer_tokens"]
        self.tokens = np.array([s[0] for s in sequence])
        self.target = np.array([doc["label_words"].index(w) for w in words])
        self.counted, self.used = len(words), np.arange(len(sequence))
        self.rest = np.zeros((len(words), len(sequence)))
        self.goes_on = np.ones(len(words), bool)
        for i, y in enumerate(self.target):
            for k, s in enumerate(sequence):
                for t in range(1, len(s)):
                    h = store.after(doc["source"], doc["seed"], [(i, s[:t])])[0].astype(np.float64)
                    scores = Z @ (g * h / np.sqrt((h * h).mean() + epsilon))
                    self.rest[i, k] += recompute.log_softmax(scores)[s[t]]
                    if k == y:
                        self.goes_on[i] &= scores.argmax() == s[t]


def first_tokens(doc, words):
    task = Task(doc, words)
    task.rest = np.zeros((len(words), len(task.tokens)))
    task.goes_on = np.ones(len(words), bool)
    return task


def inside(lo, hi):
    if np.isinf(hi):
        return 2 * lo if lo > 0 else 1.0
    return np.sqrt(lo * hi) if lo > 0 else hi / 2


def breadth(lo, hi):
    return 1.0 if np.isinf(hi) else (hi - lo) / (hi + lo)


def best_lambda(intervals):
    """The coupling that most intervals hold: of the ranges with as many, the widest for its size, of
    those within a hundredth of the widest the first."""
    ends = sorted({x for i in intervals for x in i if np.isfinite(x)} | {0.0})
    if not intervals:
        return 1.0, 0
    ranges = list(zip(ends, ends[1:] + [np.inf]))
    held = [sum(lo <= a and b <= hi for lo, hi in intervals) for a, b in ranges]
    most = max(held)
    wide = [breadth(*r) if h == most else -1 for r, h in zip(ranges, held)]
    k = next(i for i, w in enumerate(wide) if w >= 0.99 * max(wide))
    return inside(*ranges[k]), most


def softmax(r):
    e = np.exp(r - r.max())
    return e / e.sum()


def couple(a, inverse, lam):
    p = softmax(a)
    for _ in range(200000):
        after = softmax(a + lam * lam * (inverse @ p))
        if np.abs(after - p).max() <= 1e-15:
            break
        p = after
    return a + lam * lam * (inverse @ p)


def ask_recall(bank, doc, row, q, c):
    """p and log N_eff of every query under its half's coupling, by `cgam recall`."""
    n = len(q[0])
    p, log_neff = np.zeros(n), np.zeros(n)
    with tempfile.TemporaryDirectory() as folder:
        for h in range(2):
            mine = np.arange(n) % 2 != h
            np.save(folder + "/q.npy", q[h][mine])
            np.save(folder + "/c.npy", c[h][mine])
            words = [os.environ["CGAM"], "recall", "--bank", bank + ":Z", "--query",
                     folder + "/q.npy", "--context", folder + "/c.npy", "--mode", row["mode"],
                     "--alpha", repr(row["alpha"]), "--lambda", repr(row["lambdas"][h]), "--beta",
                     "1", "--json"] + (["--normalize"] if doc["rows"] == "unit" else [])
            # exit status 1: a recall came only as near as rounding lets it
            said = json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=False).stdout)
            p[mine] = [x["p"] for x in said["queries"]]
            log_neff[mine] = np.log([x["neff_entropy"] for x in said["queries"]])
    return p, log_neff


def check_shot(doc, entry, store, bank, Z, raw, g, epsilon):
    source, seed = doc["source"], doc["seed"]
    zero, words = store.series(source, "true", 0, seed)
    icl, _ = store.series(source, "true", entry["k"], seed)
    task = Whole(doc, words, store, raw, g, epsilon) if doc["answer"] != "first" else \
        first_tokens(doc, words)
    zero, icl = zero.astype(np.float64), icl.astype(np.float64)
    n, N = len(zero), len(Z)
    half = np.arange(n) % 2
    G = Z @ Z.T
    G -= np.diag(np.diag(G))
    full = doc["over"] == "full"
    equal("queries", entry["queries"], task.counted)
    b, q, c, factor = {}, {}, {}, {}
    for h in range(2):
        layers = entry["layers"][h]
        mine = half == h
        shift = icl[:, layers["context_layer"]] - zero[:, layers["context_layer"]]
        context = shift[mine].mean(0).astype(np.float32).astype(np.float64)
        x = zero[:, layers["query_layer"]]
        if doc["lambda_scale"] == "relative":
            context *= np.linalg.norm(x[mine], axis=1).mean() / np.linalg.norm(context)
        factor[h] = 1 / np.sqrt((x * x).mean(1) + epsilon)
        q[h] = x * g * factor[h][:, None]
        b[h] = q[h] @ Z.T
        c[h] = context * g
    before = {}
    for row in entry["grid"]:
        alpha, coupled = row["alpha"], row["mode"] == "coupled"
        inverse = np.linalg.inv(np.eye(N) + alpha * G)
        right, wide, entropy, top, settled = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), 0
        winner = np.zeros(n, int)
        for h in range(2):
            t = inverse @ (Z @ c[h])
            chosen = []
            for i in np.flatnonzero(half == h):
                if task.target[i] < 0:
                    continue
                y, used = task.target[i], task.used
                at = task.tokens[used]
                if full:
                    found = interval(b[h][i], factor[h][i] * t, task.tokens[y]) \
                        if task.goes_on[i] else None
                else:
                    found = interval(b[h][i][at] + task.rest[i, used], factor[h][i] * t[at],
                                     int(np.flatnonzero(used == y)[0]))
                chosen += [found] if found else []
            lam, _ = best_lambda(chosen)
            close(f"lambda at {alpha} of half {h}", row["lambdas"][h], lam, 1e-6)
            lam = row["lambdas"][h]
            for i in np.flatnonzero(half != h):
                r = b[h][i] + lam * factor[h][i] * t
                if coupled:
                    r = couple(r, inverse, lam)
                p = softmax(r)
                winner[i] = r.argmax()
                label = task.used[(r[task.tokens[task.used]] + task.rest[i, task.used]).argmax()]
                right[i] = label == task.target[i]
                wide[i] = task.target[i] >= 0 and winner[i] == task.tokens[task.target[i]] and \
                    task.goes_on[i]
                entropy[i] = -(p * np.log(np.maximum(p, 1e-300))).sum()
                top[i] = p.max()
        name = f"k = {entry['k']}, alpha {alpha}, {row['mode']}: "
        close(name + "restricted", row["restricted"], right.sum() / task.counted, 1e-12)
        close(name + "full", row["full"], wide.sum() / task.counted, 1e-12)
        close(name + "neff", row["neff"], np.exp(entropy.mean()), 1e-8)
        close(name + "p_max", row["p_max"], top.mean(), 1e-8)
        against = before[alpha] if coupled else before.get(0.0, winner)
        close(name + "argmax_changed", row["argmax_changed"], (winner != against).mean(), 1e-12)
        if not coupled:
            before[alpha] = winner
        if "CGAM" in os.environ:
            p, log_neff = ask_recall(bank, doc, row, q, {h: np.outer(factor[h], c[h]) for h in c})
            close(name + "p_max of recall", row["p_max"], p.mean(), 1e-9)
            close(name + "neff of recall", row["neff"], np.exp(log_neff.mean()), 1e-9)


def main(states, bank, bank_json, out):
    arrays = safetensors(bank)
    Z, g = arrays["Z"].astype(np.float64), arrays["norm"].astype(np.float64)
    with open(bank_json, encoding="utf-8") as f:
        epsilon = json.load(f)["norm_epsilon"]
    with open(out + "/gates.json", encoding="utf-8") as f:
        doc = json.load(f)
    raw = Z
    if doc["rows"] == "unit":
        Z = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    G = Z @ Z.T
    off = np.linalg.eigvalsh(G - np.diag(np.diag(G)))
    close("alpha_crit", doc["alpha_crit"], -1 / off[0], 1e-6)
    close("mu_max", doc["mu_max"], np.linalg.eigvalsh(G)[-1], 1e-9)
    store = Store(states)
    for entry in doc["shots"]:
        check_shot(doc, entry, store, bank, Z, raw, g, epsilon)
    for line in bad[:20]:
        print(line)
    print(f"{recompute.checks} numbers, {len(bad)} differ")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
