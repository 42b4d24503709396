#!/usr/bin/python3
"""The gradient of a batch of coupled recalls by PyTorch's autograd through the converged iteration, and by cgam, in one run.

    bench/peer_gradient.py [BUILD] [rows] [columns] [runs]      default build 32000 2048 1

PyTorch is given the inverse of the small system of A(alpha), which cgam factors with the plan, and iterates in f32
until p moves by less than 1e-6; cgam solves to 1e-12 in double. Both give dL/dq, c, P, beta and lambda of the mean of
-log p. The best of the runs counts. Exit status 1 if the two disagree, 77 without PyTorch."""
import json
import os
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
    import torch
except ImportError:
    print("peer_gradient.py: without PyTorch", file=sys.stderr)
    sys.exit(77)

build, rows, columns, runs = (sys.argv[1:] + ["build", "32000", "2048", "1"][len(sys.argv) - 1:])[:4]
ALPHA, BETA, LAMBDA = 0.3, 8.0, 0.5
torch.set_num_threads(len(os.sched_getaffinity(0)))

with tempfile.TemporaryDirectory() as folder:
    done = subprocess.run([f"{build}/bench/bench_gradient", rows, columns, runs, folder], capture_output=True, text=True, check=True)
    ours = json.loads(done.stdout)
    Z, Q, C, y = (torch.from_numpy(np.load(f"{folder}/{name}.npy")) for name in "ZQCy")

Q, C = Q.float(), C.float()
n, d = Z.shape
D = 1 - ALPHA  # unit rows
M = torch.linalg.inv(torch.eye(d, dtype=torch.double) + (ALPHA / D * (Z.T @ Z)).double()).float()


def solve(x):
    """A^-1 x for rows x."""
    return (x - ALPHA / D * (x @ Z) @ M @ Z.T) / D


def gradient():
    q, c = Q.clone().requires_grad_(), C.clone().requires_grad_()
    P = torch.eye(d).requires_grad_()
    beta, lam = torch.tensor(BETA, requires_grad=True), torch.tensor(LAMBDA, requires_grad=True)
    b, s0 = q @ Z.T, (c @ P.T) @ M @ Z.T / D
    p, steps = torch.softmax(beta * (b + lam * s0), 1), 0
    while True:
        r = b + lam * s0 + lam ** 2 * solve(p)
        new, steps = torch.softmax(beta * r, 1), steps + 1
        change = (new - p).abs().max().item()
        p = new
        if change < 1e-6 or steps == 200:
            break
    loss = torch.nn.functional.nll_loss(torch.log_softmax(beta * r, 1), y)
    loss.backward()
    return loss.item(), q.grad, beta.grad.item(), lam.grad.item(), steps


best = np.inf
for _ in range(int(runs)):
    start = time.perf_counter()
    loss, dq, dbeta, dlambda, steps = gradient()
    best = min(best, time.perf_counter() - start)
batch = ours["batch"]
agree = all(abs(mine - theirs) <= 1e-3 * abs(mine) for mine, theirs in
            ((batch["loss"], loss), (batch["dbeta"], dbeta), (batch["dlambda"], dlambda), (batch["dq"], dq.norm().item() * len(y) ** 0.5)))
print(f"gradient of 64 coupled recalls, {n} x {d}: cgam {batch['small']:.2f} s (recall {batch['recall']:.2f} s), "
      f"PyTorch's autograd through {steps} steps {best:.2f} s: {best / batch['small']:.2f} times as long; "
      f"{'the same numbers' if agree else f'DIFFERENT: {batch} {loss} {dbeta} {dlambda}'}")
for name in "one", "batch":
    t = ours[name]
    print(f"{name}: dL/dq, c, P, alpha, beta, lambda add {t['ratio']:.2f} recalls; dL/dZ adds the time of {t['readings']:.1f} readings of the bank")
sys.exit(not agree)
