#!/usr/bin/python3
"""The gradient of a batch of coupled recalls by PyTorch's autograd through the converged iteration, and by cgam, in one run.

    bench/peer_gradient.py [BUILD] [rows] [columns] [runs]      default build 32000 2048 1

PyTorch is given the inverse of the small system of A(alpha), which cgam factors with the plan. Like cgam it iterates in
double until p moves by less than 1e-12; as a second line in f32, to 1e-6. Both give dL/dq, c, P, beta and lambda of the
mean of -log p. The best of the runs counts; seconds are those of all threads, since other programs may run. Exit status
1 if the two disagree, 77 without PyTorch."""
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

n, d = Z.shape
D = 1 - ALPHA  # unit rows
M = torch.linalg.inv(torch.eye(d, dtype=torch.double) + (ALPHA / D * (Z.T @ Z)).double())


def gradient(Z, Q, C, M, tol):
    def solve(x):
        """A^-1 x for rows x."""
        return (x - ALPHA / D * (x @ Z) @ M @ Z.T) / D

    q, c = Q.clone().requires_grad_(), C.clone().requires_grad_()
    P = torch.eye(d, dtype=Z.dtype).requires_grad_()
    beta, lam = (torch.tensor(x, dtype=Z.dtype, requires_grad=True) for x in (BETA, LAMBDA))
    b, s0 = q @ Z.T, (c @ P.T) @ M @ Z.T / D
    p, steps = torch.softmax(beta * (b + lam * s0), 1), 0
    while True:
        r = b + lam * s0 + lam ** 2 * solve(p)
        new, steps = torch.softmax(beta * r, 1), steps + 1
        change = (new - p).abs().max().item()
        p = new
        if change < tol or steps == 200:
            break
    loss = torch.nn.functional.nll_loss(torch.log_softmax(beta * r, 1), y)
    loss.backward()
    return loss.item(), beta.grad.item(), lam.grad.item(), q.grad.norm().item() * len(y) ** 0.5, steps


batch, failed = ours["batch"], False
for name, dtype, tol in ("double", torch.double, 1e-12), ("f32", torch.float, 1e-6):
    inputs = [x.to(dtype) for x in (Z, Q, C, M)]
    best = np.inf
    for _ in range(int(runs)):
        start = time.process_time()
        *theirs, steps = gradient(*inputs, tol)
        best = min(best, time.process_time() - start)
    mine = [batch[k] for k in ("loss", "dbeta", "dlambda", "dq")]
    agree = np.allclose(mine, theirs, rtol=1e-6 if dtype is torch.double else 1e-3)
    failed |= not agree
    print(f"gradient of 64 coupled recalls, {n} x {d}: cgam {batch['small_cpu']:.2f} s, PyTorch's autograd through {steps} steps in "
          f"{name} {best:.2f} s: {best / batch['small_cpu']:.2f} times as long; {'the same numbers' if agree else f'DIFFERENT: {mine} {theirs}'}")
for name in "one", "batch":
    t = ours[name]
    print(f"{name}: dL/dq, c, P, alpha, beta, lambda add {t['ratio_cpu']:.2f} recalls; dL/dZ adds {t['readings_cpu']:.1f} readings of the bank")
sys.exit(failed)
