#!/usr/bin/env python3
"""What Python costs over C, and what cgam in Python gains over NumPy and PyTorch.

usage: bench/python.py BUILD [ROWS COLUMNS]     BUILD has python/cgam, bench/bench_call and cgam

Rounds in which everybody has a turn, in an order that changes; a round takes the best of a few times of each
and compares within itself, and the median over the rounds counts. So a machine that is busy for a while slows
both sides of a ratio. Claims, checked by the exit status: a call costs at most 10 us over C on a bank of
50 x 10; a bank of 262 MB is not copied; a batch of 64 takes at most 1.02 times what `cgam bench` says; the
same retrieval in NumPy, in PyTorch and by the formula of hopfield-layers takes longer.
"""
import json
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import time

build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
n, d = map(int, sys.argv[2:4]) if len(sys.argv) > 3 else (32000, 2048)
sys.path.insert(0, str(build / "python"))
import numpy as np  # noqa: E402

import cgam  # noqa: E402

ROUNDS = 7
failures = 0


def claim(words, value, limit, unit):
    global failures
    fine = value <= limit
    failures += not fine
    print(f"{words:56} {value:8.2f} {unit}  (at most {limit:g}){'' if fine else '  MISSED'}")


def best(work, times):
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def said(*words):
    return json.loads(subprocess.run(words, check=True, capture_output=True).stdout)


def by_turns(works, rounds=ROUNDS):
    """[{name: what it gave}], one for each round."""
    order, table = list(works), []
    for _ in range(rounds):
        random.shuffle(order)
        table.append({name: works[name]() for name in order})
    return table


def median(table, of):
    return statistics.median(map(of, table))


def overhead():
    Z = np.array([(i * 7919 % 1000) / 1000 - 0.5 for i in range(500)]).reshape(50, 10)
    bank = cgam.Bank(Z)
    plan, q, c = bank.plan(), Z[0].copy(), Z[1].copy()

    def calls(work, count, times):
        def loop():
            for _ in range(count):
                work()
        return lambda: best(loop, times) / count * 1e6

    table = by_turns({"C": lambda: said(build / "bench" / "bench_call", "60"),
                      "run": calls(lambda: plan.recall(q, c), 100, 60),
                      "seen": calls(lambda: plan.recall(q, c).winner, 100, 60),
                      "once": calls(lambda: bank.recall(q, c), 5, 60)})
    claim("plan.recall on 50 x 10, over C", median(table, lambda t: t["run"] - t["C"]["run"]), 10, "us")
    claim("the same with its winner read", median(table, lambda t: t["seen"] - t["C"]["run"]), 10, "us")
    claim("bank.recall on 50 x 10, over C", median(table, lambda t: t["once"] - t["C"]["once"]), 10, "us")


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def peers(X, R):
    """softmax(R X') X, the way each would write it."""
    def numpy():
        s = R @ X.T
        s -= s.max(1, keepdims=True)
        np.exp(s, out=s)
        s /= s.sum(1, keepdims=True)
        return s @ X

    found = {"NumPy": numpy}
    try:
        import torch
    except ImportError:
        print("no PyTorch here: two claims are left out (tools/deps bench installs it)")
        return found
    x, r = torch.from_numpy(X), torch.from_numpy(R)
    found["PyTorch"] = lambda: (torch.softmax(r @ x.T, -1) @ x).numpy()

    def hopfield():
        """One association: queries scaled, bmm with the stored patterns, softmax, bmm with the projected ones."""
        query, key = r.unsqueeze(0), x.unsqueeze(0)
        weights = torch.nn.functional.softmax(torch.bmm(query * 1.0, key.transpose(1, 2)), dim=-1)
        return torch.bmm(torch.nn.functional.dropout(weights, 0.0, training=False), key)[0].numpy()

    found["hopfield-layers' formula"] = hopfield
    return found


def large():
    """The batch of `cgam bench`: memories as queries, beta 1, and the readout."""
    rng = np.random.default_rng(1)
    X = (rng.random((n, d), dtype=np.float32) - 0.5) * np.float32(12**0.5 / d**0.5)
    R = X[np.arange(64) * n // 64].astype(float)
    before = resident()
    bank = cgam.Bank(X)
    plan = bank.plan(top=0)
    plan.recall(R[:1], readout=True)
    claim(f"memory beyond a bank of {X.nbytes / 1e6:.0f} MB", (resident() - before) / 1e6, 30, "MB")
    others = peers(X, R.astype(np.float32))
    mine = plan.recall(R, readout=True).readout
    for name, work in others.items():
        assert np.allclose(work(), mine, atol=1e-5), f"{name} finds something else"
    program = (build / "cgam", "bench", "--rows", str(n), "--columns", str(d), "--runs", "3", "--json")
    works = {"cgam": lambda: best(lambda: plan.recall(R, readout=True), 3),
             "program": lambda: said(*program)["seconds"]["batch"]["wall"]}
    works.update((name, lambda work=work: best(work, 2)) for name, work in others.items())
    table = by_turns(works)
    claim("a batch of 64, in units of `cgam bench`", median(table, lambda t: t["cgam"] / t["program"]), 1.02, "")
    for name in others:
        claim(f"a batch of 64, in units of {name}", median(table, lambda t: t["cgam"] / t[name]), 1, "")


random.seed(1)
overhead()
large()
sys.exit(failures > 0)
