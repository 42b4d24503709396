"""faiss as a peer: exact top-1 by inner product.

usage: peer_faiss.py ROWS COLUMNS RUNS THREADS     prints {"work": {"wall": s, "cpu": s}, ...}
"""
import json
import sys
import time

import faiss
import numpy as np

n, d, runs, threads = map(int, sys.argv[1:5])
faiss.omp_set_num_threads(threads)
rng = np.random.default_rng(1)
Z = ((rng.random((n, d), dtype=np.float32) - 0.5) * np.float32(12**0.5 / d**0.5))
index = faiss.IndexFlatIP(d)
index.add(Z)


def best(work):
    wall, cpu = [], []
    for _ in range(runs):
        start, used = time.perf_counter(), time.process_time()
        work()
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - used)
    return {"wall": min(wall), "cpu": min(cpu)}


print(json.dumps({
    "top1_1": best(lambda: index.search(Z[:1], 1)),
    "top1_64": best(lambda: index.search(Z[:64], 1)),
}))
