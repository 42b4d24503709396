"""What the peers' scripts share: the bank of `cgam bench`, and the best time of several runs.

usage of a peer: peer_NAME.py ROWS COLUMNS RUNS THREADS     prints {"work": {"wall": s, "cpu": s}, ...}
"""
import json
import os
import sys
import time

n, d, runs, threads = map(int, sys.argv[1:5])
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(threads)
import numpy as np  # noqa: E402  (threads are read when it loads)


def bank():
    """[n, d] in f32, entries of variance 1/d."""
    rng = np.random.default_rng(1)
    return (rng.random((n, d), dtype=np.float32) - 0.5) * np.float32(12**0.5 / d**0.5)


def report(**works):
    """Runs every piece of work by turns and prints the best times."""
    best = {name: {"wall": float("inf"), "cpu": float("inf")} for name in works}
    for _ in range(runs):
        for name, work in works.items():
            start, used = time.perf_counter(), time.process_time()
            work()
            best[name] = {"wall": min(best[name]["wall"], time.perf_counter() - start),
                          "cpu": min(best[name]["cpu"], time.process_time() - used)}
    print(json.dumps(best))
