#!/usr/bin/python3
"""The fit of a projection, computed again from exported states by NumPy alone.

    cgam lm fit ... --exact --store s.db --out P.safetensors --json > fit.json
    cgam lm store --store s.db --export states.safetensors
    cgam lm bank ... --no-inspect --out bank.safetensors --json > bank.json
    fit.py states.safetensors bank.safetensors bank.json fit.json P.safetensors

P by solving the d x d normal equations, leave-one-out by leaving out, accuracies and R2 of every way over
all queries and over each task, tasks left out, and of low rank the rank of P - I and the divergence that
the optimiser names. Nothing is taken from cgam but states, unembedding, norm, the labels' tokens and rho.
"""
import json
import sys

import numpy as np
import recompute
from recompute import Lens, Store, Task, close, equal, log_softmax, safetensors


def ridge(X, Y, rho, to_zero):
    T = np.zeros((X.shape[1],) * 2) if to_zero else np.eye(X.shape[1])
    A = X.T @ X + rho * np.eye(X.shape[1])
    return np.linalg.solve(A, (Y.T @ X + rho * T).T).T


def left_out(X, Y, rho, to_zero):
    keep = ~np.eye(len(X), dtype=bool)
    return np.mean([((X[i] @ ridge(X[k], Y[k], rho, to_zero).T - Y[i])**2).sum()
                    for i, k in enumerate(keep)])


def check_rho(name, X, Y, rho, to_zero):
    """No worse than what is near it and what is far from it."""
    least = left_out(X, Y, rho, to_zero)
    for factor in (1e-3, 0.1, 0.8, 1.25, 10, 1e3):
        equal(f"{name} x {factor}", left_out(X, Y, rho * factor, to_zero) >= least * (1 - 1e-9), True)


class Pool:
    """All queries of all tasks, one after the other."""

    def __init__(self, store, doc):
        self.tasks, zero, icl, layer = [], [], [], doc["layer"]
        for part in doc["by_task"]:
            z, words = store.series(part["source"], "true", 0, doc["seed"])
            h, _ = store.series(part["source"], "true", doc["k"], doc["seed"])
            first = self.tasks[-1][1].stop if self.tasks else 0
            self.tasks.append((Task(part, words), slice(first, first + len(words))))
            zero.append(z.astype(np.float64))
            icl.append(h.astype(np.float64))
        zero, icl = np.concatenate(zero), np.concatenate(icl)
        self.base, self.aim, self.y = zero[:, -1], icl[:, -1], (icl - zero)[:, -1]
        self.x = zero[:, layer] if doc["from"] == "query" else (icl - zero)[:, layer]
        self.half = np.concatenate([np.arange(at.stop - at.start) % 2 for _, at in self.tasks])
        self.n = len(self.y)

    def check(self, name, of, lens, made, at, tasks):
        right = {"restricted": 0, "full": 0}
        counted = 0
        for task, where in tasks:
            scores = lens.norm_scores(self.base[where] + made[where])
            rows = np.flatnonzero(task.target >= 0)
            best = task.used[scores[:, task.tokens[task.used]].argmax(1)]
            right["restricted"] += (best == task.target)[rows].sum()
            right["full"] += (scores.argmax(1) == task.tokens[task.target])[rows].sum()
            counted += len(rows)
        for over, hits in right.items():
            close(f"{name} {over}", of[over], hits / counted, 0, 1e-12)
        y, left = self.y[at], ((made - self.y)[at]**2).sum()
        close(f"{name} r2", of["r2"], 1 - left / ((y - y.mean(0))**2).sum(), 1e-5, 1e-6)


def main():
    if len(sys.argv) != 6:
        raise SystemExit(__doc__)
    states, bank, about, fit, saved = sys.argv[1:]
    with open(about, encoding="utf-8") as f:
        facts = json.load(f)
    with open(fit, encoding="utf-8") as f:
        doc = json.load(f)
    lens, P = Lens(safetensors(bank), facts["norm_epsilon"]), safetensors(saved)["P"]
    pool, to_zero = Pool(Store(states), doc), doc["from"] == "query"
    X, Y = pool.x, pool.y
    check_rho("rho", X, Y, doc["rho"], to_zero)
    own = "held_out" if doc["method"] == "ridge" else "ridge"
    if doc["method"] == "ridge":
        want = ridge(X, Y, doc["rho"], to_zero)
        close("P", P, want, 0, 1e-8 * np.abs(want).max())
    else:
        size = np.linalg.svd(P - np.eye(len(P)), compute_uv=False)
        equal("rank of P - I", bool(size[doc["rank"]] < 1e-10 * size[0]), True)
        aim, made = log_softmax(lens.norm_scores(pool.aim)), log_softmax(
            lens.norm_scores(pool.base + X @ P.T))
        close("divergence", doc["refined"][0]["after"],
              (np.exp(aim) * (aim - made)).sum(1).mean(), 1e-4, 1e-5)
        for r in doc["refined"]:
            equal("divergence falls", r["after"] < r["before"], True)
    made = {"identity": X.copy(), "icl": Y, "zero_shot": 0 * Y, own: 0 * Y, "mean": 0 * Y}
    if doc["method"] == "ridge":
        made["train"] = 0 * Y
    for h in (0, 1):
        train, test = pool.half == h, pool.half != h
        check_rho(f"rho of half {h}", X[train], Y[train], doc["rho_halves"][h], to_zero)
        of_half = ridge(X[train], Y[train], doc["rho_halves"][h], to_zero)
        made[own][test] = X[test] @ of_half.T
        if "train" in made:
            made["train"][train] = X[train] @ of_half.T
        for _, at in pool.tasks:
            inside = np.zeros(pool.n, bool)
            inside[at] = True
            made["mean"][test & inside] = Y[train & inside].mean(0)
    for way, states in made.items():
        pool.check(way, doc[way], lens, states, slice(0, pool.n), pool.tasks)
        for part, one in zip(doc["by_task"], pool.tasks):
            pool.check(f"{part['task']} {way}", part[way], lens, states, one[1], [one])
    equal("tasks are left out", doc["left_out"] is None, len(pool.tasks) == 1)
    if doc["left_out"] and doc["method"] == "ridge":
        away = 0 * Y
        for part, one in zip(doc["by_task"], pool.tasks):
            train = np.ones(pool.n, bool)
            train[one[1]] = False
            away[one[1]] = X[one[1]] @ ridge(X[train], Y[train], part["rho_left_out"], to_zero).T
            check_rho("rho without " + part["task"], X[train], Y[train], part["rho_left_out"], to_zero)
            pool.check(part["task"] + " left out", part["left_out"], lens, away, one[1], [one])
        pool.check("left out", doc["left_out"], lens, away, slice(0, pool.n), pool.tasks)
    layer = [int(l) for l in doc["curve"]["layer"]].index(doc["layer"])
    for key in ("restricted", "full", "r2"):
        close("curve " + key, doc["curve"]["ridge_" + key][layer], doc[own][key])
    for line in recompute.bad[:20]:
        print("fit:", line, file=sys.stderr)
    print(f"{recompute.checks} numbers, {len(recompute.bad)} differ")
    return 1 if recompute.bad else 0


if __name__ == "__main__":
    sys.exit(main())
