#!/usr/bin/env python3
"""What Python costs over C, and what cgam in Python gains over NumPy and PyTorch.

usage: bench/python.py BUILD [ROWS COLUMNS]     BUILD has python/cgam, bench/bench_call and cgam

Everything is measured by turns in one run, and the best of several times counts. Claims, checked by the exit
status: a call costs at most 10 us over C on a bank of 50 x 10; a bank of 262 MB is not copied; a batch of 64
takes no more than 1.02 times what `cgam bench` says; the same retrieval in NumPy and in PyTorch, by the formula
of hopfield-layers, takes longer.
"""
import json
import pathlib
import resource
import subprocess
import sys
import time

build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
n, d = map(int, sys.argv[2:4]) if len(sys.argv) > 3 else (32000, 2048)
sys.path.insert(0, str(build / "python"))
import numpy as np  # noqa: E402

import cgam  # noqa: E402

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


def overhead():
    Z = np.array([(i * 7919 % 1000) / 1000 - 0.5 for i in range(500)]).reshape(50, 10)
    bank = cgam.Bank(Z)
    plan, q, c = bank.plan(), Z[0].copy(), Z[1].copy()

    def calls(work, count):
        def loop():
            for _ in range(count):
                work()
        return loop

    run = once = seen = c_run = c_once = float("inf")
    for _ in range(5):
        said = json.loads(subprocess.run([build / "bench" / "bench_call", "60"], check=True, capture_output=True).stdout)
        c_run, c_once = min(c_run, said["run"]), min(c_once, said["once"])
        run = min(run, best(calls(lambda: plan.recall(q, c), 100), 60) / 100 * 1e6)
        seen = min(seen, best(calls(lambda: plan.recall(q, c).winner, 100), 60) / 100 * 1e6)
        once = min(once, best(calls(lambda: bank.recall(q, c), 5), 20) / 5 * 1e6)
    claim("plan.recall on 50 x 10, over C", run - c_run, 10, "us")
    claim("the same with its winner read", seen - c_run, 10, "us")
    claim("bank.recall on 50 x 10, over C", once - c_once, max(10, 0.05 * c_once), "us")


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def peers(X, R, beta):
    def numpy():
        s = beta * (R @ X.T)
        s -= s.max(1, keepdims=True)
        np.exp(s, out=s)
        s /= s.sum(1, keepdims=True)
        return s @ X

    found = {"NumPy": numpy}
    try:
        import torch
    except ImportError:
        return found
    tx, tr = torch.from_numpy(X), torch.from_numpy(R)
    found["PyTorch, hopfield-layers' formula"] = lambda: torch.softmax(beta * (tr @ tx.T), -1) @ tx
    return found


def large():
    rng = np.random.default_rng(1)
    X = (rng.random((n, d), dtype=np.float32) - 0.5) * np.float32(12**0.5 / d**0.5)
    R = rng.standard_normal((64, d)).astype(np.float32)
    before = resident()
    bank = cgam.Bank(X)
    plan = bank.plan(beta=4.0, lam=0.0, top=1)
    plan.recall(R[:1], readout=True)
    claim(f"memory beyond a bank of {X.nbytes / 1e6:.0f} MB", (resident() - before) / 1e6, 30, "MB")
    works = {"cgam": lambda: plan.recall(R, readout=True), **peers(X, R, 4.0)}
    times = dict.fromkeys(works, float("inf"))
    program = float("inf")
    for _ in range(3):
        said = json.loads(subprocess.run([build / "cgam", "bench", "--rows", str(n), "--columns", str(d), "--runs", "2",
                                          "--json"], check=True, capture_output=True).stdout)
        program = min(program, batch_of(said))
        for name, work in works.items():
            times[name] = min(times[name], best(work, 2))
    claim("a batch of 64, in units of `cgam bench`", times["cgam"] / program, 1.02, "")
    for name in list(works)[1:]:
        claim(f"a batch of 64, in units of {name}", times["cgam"] / times[name], 1, "")


def batch_of(document):
    """Seconds of the piece `batch` in the document of `cgam bench`."""
    return document["seconds"]["batch"]["wall"]


overhead()
large()
sys.exit(failures > 0)
