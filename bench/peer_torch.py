"""PyTorch as a peer: attention in its usual form (a batch of queries through softmax(QK')V as
modules write it) and in its best (functions in place on contiguous tensors, no gradients).

usage: peer_torch.py ROWS COLUMNS RUNS THREADS     prints {"work": {"wall": s, "cpu": s}, ...}
"""
import json
import sys
import time

import torch

n, d, runs, threads = map(int, sys.argv[1:5])
torch.set_num_threads(threads)
torch.manual_seed(1)
Z = (torch.rand(n, d) - 0.5) * (12**0.5 / d**0.5)
Q = Z[:64].clone()


def usual(q):
    scores = torch.matmul(q.unsqueeze(0), Z.unsqueeze(0).transpose(-2, -1))
    return torch.matmul(torch.softmax(scores, dim=-1), Z.unsqueeze(0))


def leanest(q):
    with torch.inference_mode():
        if q.shape[0] == 1:
            return torch.mv(Z.t(), torch.softmax(torch.mv(Z, q[0]), 0))
        return torch.mm(torch.softmax(torch.mm(q, Z.t()), 1), Z)


def best(work):
    wall, cpu = [], []
    for _ in range(runs):
        start, used = time.perf_counter(), time.process_time()
        work()
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - used)
    return {"wall": min(wall), "cpu": min(cpu)}


print(json.dumps({
    "usual_1": best(lambda: usual(Q[:1])),
    "usual_64": best(lambda: usual(Q)),
    "best_1": best(lambda: leanest(Q[:1])),
    "best_64": best(lambda: leanest(Q)),
}))
