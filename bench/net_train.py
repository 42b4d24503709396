#!/usr/bin/python3
"""The denoising demonstration of HAMUX, by cgam net train and by PyTorch, one after the other.

    bench/net_train.py [BATCHES] [ROUNDS]        needs cgam data get mnist, and python3-torch

784 pixels of norm 1, 900 memories of norm 1, beta 10, noise 0.3, one step, batches of 100, Adam at 0.04. Prints for each the
least time of a batch over the rounds, on two threads, in wall time and processor time; PyTorch in f32 and f64, and on one thread, because its threads wait actively for each other on a busy machine. cgam
computes in double. Losses and the epochs' overhead are not compared here: see docs/guide/networks-learning.md.
"""
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CGAM = os.environ.get("CGAM", f"{ROOT}/build/cgam")
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "cgam")
BATCHES, ROUNDS = (int(word) for word in (sys.argv[1:] + ["40", "3"][len(sys.argv) - 1:])[:2])
THREADS = 2


def cpu(who):
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def by_cgam(x, folder):
    """Time of epochs of that many batches: that of two less that of one, so that set-up and judging cancel."""
    np.save(f"{folder}/x.npy", x)
    times = []
    for epochs in (1, 2):
        begin = cpu(resource.RUSAGE_CHILDREN)
        out = subprocess.run(
            [CGAM, "net", "train", f"{ROOT}/examples/denoise.json", "--data", f"{folder}/x.npy", "--normalize", "--clamp", "visible",
             "--read", "visible", "--learn", "memories", "--noise", "0.3", "--steps", "1", "--batch", "100", "--rate", "0.04",
             "--epochs", str(epochs), "--threads", str(THREADS), "--out", f"{folder}/out.json", "--json"],
            check=True, capture_output=True, text=True).stdout
        times.append((json.loads(out)["seconds"], cpu(resource.RUSAGE_CHILDREN) - begin))
    return [(b - a) / BATCHES for a, b in zip(*times)]


def by_torch(x, dtype, threads=THREADS):
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    x = torch.from_numpy(x.astype(np.float64)).to(dtype)
    x /= x.norm(dim=1, keepdim=True)
    V = torch.nn.Parameter(torch.randn(900, 784, dtype=dtype))
    optimizer = torch.optim.Adam([V], lr=0.04)

    def activation(v):
        return v / torch.sqrt((v * v).sum(1, keepdim=True) + 1e-12)

    def step(batch):
        W = V / V.norm(dim=1, keepdim=True)
        noisy = activation(batch + 0.3 * torch.randn_like(batch))
        end = torch.softmax(10 * noisy @ W.T, 1) @ W
        loss = ((activation(end) - batch) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    step(x[:100])
    wall, used = time.perf_counter(), cpu(resource.RUSAGE_SELF)
    for k in range(BATCHES):
        step(x[100 * k:100 * k + 100])
    return (time.perf_counter() - wall) / BATCHES, (cpu(resource.RUSAGE_SELF) - used) / BATCHES


data = np.load(f"{CACHE}/mnist-train.npy", mmap_mode="r")[:100 * BATCHES]
ways = {"cgam, f64": lambda: by_cgam(data, scratch), "PyTorch, f32": lambda: by_torch(data, torch.float32),
        "PyTorch, f64": lambda: by_torch(data, torch.float64), "PyTorch, f32, 1 thread": lambda: by_torch(data, torch.float32, 1)}
with tempfile.TemporaryDirectory() as scratch:
    found = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            found[name].append(way())
print(f"{BATCHES} batches of 100, {ROUNDS} rounds, {THREADS} threads; load {os.getloadavg()[0]:.1f}")
for name, times in found.items():
    wall, used = (min(column) for column in zip(*times))
    print(f"{name:22s} {1000 * wall:8.1f} ms a batch {1000 * used:8.1f} ms of processor")
