#!/usr/bin/python3 -B
"""The rivals study by NumPy alone: the same random numbers (Philox 4x32-10, by its authors' paper), dense matrices, the
definitions of docs/studies/rivals.md.

    /usr/bin/python3 -B tests/oracle/study/rivals.py           writes rivals.json beside this file
    /usr/bin/python3 -B tests/oracle/study/rivals.py --check   computes again and compares with it

test_oracle_rivals.c holds the library to rivals.json."""
import json
import os
import sys

import numpy as np

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rivals.json")
SEED, BANKS, TRIALS, N, D = 7, 6, 5, 20, 6
BETA, SIGMA_C, SIGMAS = 3.5, 0.3, (0.2, 0.8, 2.0)
LAMBDAS, ALPHAS, WRONG, GROUPS, CENTRE, SPREAD = (1.0, 4.0), (0.1, 0.4), 0.3, 4, 2.0, 0.3
BANK, TARGET, QUERY, CONTEXT, AMISS, KEYS, MASK = 1, 2, 3, 4, 8, 9, 10  # purposes
SEPARATION, RIVALS = 1, 11                                              # studies


class Stream:
    def __init__(self, study, purpose, bank, cell=0, trial=0):
        stream = study << 58 | purpose << 54 | bank << 42 | cell << 32 | trial
        self.high, self.at, self.words = (stream & 0xffffffff, stream >> 32), 0, []

    def word(self):
        if not self.words:
            c = [self.at & 0xffffffff, self.at >> 32, *self.high]
            k = [SEED & 0xffffffff, SEED >> 32]
            for _ in range(10):
                a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
                c = [(b >> 32) ^ c[1] ^ k[0], b & 0xffffffff, (a >> 32) ^ c[3] ^ k[1], a & 0xffffffff]
                k = [(k[0] + 0x9E3779B9) & 0xffffffff, (k[1] + 0xBB67AE85) & 0xffffffff]
            self.words, self.at = c, self.at + 1
        return self.words.pop(0)

    def uniform(self):
        high, low = self.word(), self.word()
        return ((high << 32 | low) >> 11) * 2.0**-53

    def normals(self, *shape):
        pairs = [(1 - self.uniform(), self.uniform()) for _ in range(int(np.prod(shape)))]
        return np.array([np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v) for u, v in pairs]).reshape(shape)


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def entmax(x, order):
    y = (order - 1) * (x - x.max())
    low, high = -1.0, 0.0
    for _ in range(100):
        tau = 0.5 * (low + high)
        low, high = (tau, high) if (np.maximum(y - tau, 0) ** (1 / (order - 1))).sum() >= 1 else (low, tau)
    p = np.maximum(y - low, 0) ** (1 / (order - 1))
    return p / p.sum()


def memories(setting, bank):
    if setting == "clusters":
        rng = Stream(RIVALS, BANK, bank)
        centres = unit(rng.normals(GROUPS, D))
        Z = unit(CENTRE * centres[np.arange(N) % GROUPS] + SPREAD * rng.normals(N, D))
    else:
        Z = unit(Stream(SEPARATION, BANK, bank).normals(N, D))
    return Z, unit(Stream(RIVALS, KEYS, bank).normals(N, D)) if setting == "space" else Z


def draw(Z, W, setting, bank, cell, trial):
    at = (bank, cell, trial)
    target = int(Stream(SEPARATION, TARGET, *at).uniform() * N)
    meant, rng = target, Stream(SEPARATION, AMISS, *at)
    if setting == "wrong" and rng.uniform() < WRONG:
        meant = int(rng.uniform() * (N - 1))
        meant += meant >= target
    q = Z[target] + SIGMAS[cell] * Stream(SEPARATION, QUERY, *at).normals(D)
    return target, q, W[meant] + SIGMA_C * Stream(SEPARATION, CONTEXT, *at).normals(D)


def masks(bank, option, share, count):
    """A random subset of units for each context: unit j is taken with the chance that is left for it."""
    rng, most = Stream(RIVALS, MASK, bank, option), max(1, round(share * D))
    on = np.zeros((count, D))
    for row in on:
        for j in range(D):
            row[j] = rng.uniform() * (D - j) < most - row.sum()
    return on


def plasticity(Z, u, q, sharpness):
    V = Z.T @ (softmax(sharpness * u)[:, None] * Z)
    x = q.copy()
    for _ in range(200):
        step = 0.5 * (2 * D * V @ (np.tanh(np.sqrt(D) * x) / np.sqrt(D)) - x)
        x += step
        if np.abs(step).max() <= 1e-7:
            break
    return Z @ (x / np.linalg.norm(x))


def options(Z, W, setting, bank):
    """(mechanism, strength, second, scores of (sigma_q, q, c), p of scores), in the order of the study."""
    P = np.linalg.lstsq(W, Z, rcond=None)[0].T if setting == "space" else np.eye(D)
    G = Z @ Z.T
    inverse = {a: np.linalg.inv(np.eye(N) + a * (G - np.diag(np.diag(G)))) for a in ALPHAS}
    soft = lambda r: softmax(BETA * r)

    def coupled(a, lam):
        def scores(_, q, c):
            base = Z @ q + lam * inverse[a] @ W @ c
            r = base
            for _ in range(5000):
                new = base + lam * lam * inverse[a] @ soft(r)
                done, r = np.abs(new - r).max() < 1e-12, new
                if done:
                    break
            return r
        return scores

    def best(k):
        def scores(_, q, c):
            keep = np.argsort(-(W @ c), kind="stable")[:k]
            r = np.full(N, -np.inf)
            r[keep] = Z[keep] @ q
            return r
        return scores

    def units(k, share, count):
        on = masks(bank, k, share, count)
        stored = Z * on[np.arange(N) % count]
        length = np.linalg.norm(stored, axis=1, keepdims=True)
        stored = np.divide(stored, length, out=np.zeros_like(stored), where=length > 0)
        return lambda _, q, c: stored @ (on[(W @ c).argmax() % count] * q)

    def bayes(sigma_q, q, c):
        x = np.array([-((c - w) ** 2).sum() for w in W]) / (2 * SIGMA_C**2)
        e, wrong = np.exp(x - x.max()), WRONG if setting == "wrong" else 0
        with np.errstate(divide="ignore"):
            says = np.log((1 - wrong) * e + wrong * (e.sum() - e) / (N - 1)) if wrong else x
        return says - np.array([((q - z) ** 2).sum() for z in Z]) / (2 * sigma_q**2)

    mixing = lambda lam: lambda _, q, c: Z @ (q + lam * P @ c)
    yield "hopfield", 0, None, lambda _, q, c: Z @ q, soft
    for lam in LAMBDAS:
        yield "query-mixing", lam, None, mixing(lam), soft
    for a in ALPHAS:
        for lam in LAMBDAS:
            yield "gates-first", lam, a, (lambda _, q, c, a=a, lam=lam: Z @ q + lam * inverse[a] @ (W @ c)), soft
    for a in ALPHAS:
        for lam in LAMBDAS:
            yield "gates-coupled", lam, a, coupled(a, lam), soft
    for lam in LAMBDAS:
        yield "experts", lam, None, (lambda _, q, c, lam=lam: np.log(softmax(BETA * Z @ q)) / BETA
                                     + lam * np.log(softmax(BETA * W @ c)) / BETA), soft
    for k in (0, 1, 2, 4, 8, 16, 32, 64):
        yield "plasticity", k, None, (lambda _, q, c, k=k: plasticity(Z, W @ c, q, k)), soft
    for k in (1, 2, 3, 5, 10, 20):
        yield "mask-memories", k, None, best(k), soft
    for k, (count, share) in enumerate((c, s) for c in (2, 5, 10, 25) for s in (0.3, 0.5, 0.8)):
        yield "mask-units", share, count, units(k, share, count), soft
    for order in (1.5, 2):
        for lam in LAMBDAS:
            yield "sparse", lam, order, mixing(lam), lambda r, order=order: entmax(BETA * r, order)
    yield "bayes", 0, None, bayes, softmax


def count(setting):
    """[bank, sigma_q, option, (right, error, neff)] means over trials, and what the options are."""
    table, names = [], []
    for bank in range(BANKS):
        Z, W = memories(setting, bank)
        every = list(options(Z, W, setting, bank))
        names = [one[:3] for one in every]
        sums = np.zeros((len(SIGMAS), len(every), 3))
        for cell, sigma in enumerate(SIGMAS):
            for trial in range(TRIALS):
                target, q, c = draw(Z, W, setting, bank, cell, trial)
                for k, (_, _, _, scores, weigh) in enumerate(every):
                    r = scores(sigma, q, c)
                    p = weigh(r)
                    entropy = -(p[p > 0] * np.log(p[p > 0])).sum()
                    sums[cell, k] += r.argmax() == target, np.linalg.norm(Z.T @ p - Z[target]), np.exp(entropy)
        table.append(sums / TRIALS)
    return names, np.array(table)


def main():
    out = {"seed": SEED, "banks": BANKS, "trials": TRIALS, "n": N, "d": D, "beta": BETA, "sigma_c": SIGMA_C,
           "sigma_q": SIGMAS, "lambda": LAMBDAS, "alpha": ALPHAS, "wrong": WRONG, "groups": GROUPS, "settings": []}
    for setting in ("plain", "wrong", "space", "clusters"):
        names, table = count(setting)
        on, counted = table[0::2].mean((0, 1)), table[1::2]
        rows = []
        for mechanism in dict.fromkeys(name for name, _, _ in names):
            own = [k for k, name in enumerate(names) if name[0] == mechanism]
            k = max(own, key=lambda k: (round(on[k, 0], 9), round(-on[k, 1], 9), -k))
            mean, se = counted[:, :, k].mean(0), counted[:, :, k].std(0, ddof=1) / np.sqrt(len(counted))
            rows.append({"name": mechanism, "strength": names[k][1], "second": names[k][2],
                         "accuracy": mean[:, 0].tolist(), "se": se[:, 0].tolist(),
                         "readout_error": mean[:, 1].tolist(), "neff": mean[:, 2].tolist()})
        out["settings"].append({"name": setting, "mechanisms": rows})
    text = json.dumps(out, indent=1) + "\n"
    if "--check" not in sys.argv:
        with open(FILE, "w") as f:
            f.write(text)
        return
    with open(FILE) as f:
        old = json.load(f)
    for was, now in zip(old["settings"], json.loads(text)["settings"]):
        for a, b in zip(was["mechanisms"], now["mechanisms"]):
            for key in a:
                same = np.allclose(a[key], b[key], 1e-7, 1e-9) if isinstance(a[key], list) else a[key] == b[key]
                if not same:
                    sys.exit(f"rivals.json: {was['name']} {a['name']} {key}: {a[key]}, now {b[key]}")
    print("  rivals.json: every number is as it was")


main()
