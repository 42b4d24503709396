#!/usr/bin/python3
"""Gradients of recalls by PyTorch's autograd through the unrolled iteration: tests/oracle/learn/cases.npz.

    /usr/bin/python3 tests/oracle/learn/generate.py          write it
    /usr/bin/python3 tests/oracle/learn/generate.py --check  compare with what is there

A is a dense N x N matrix, its inverse torch.linalg.inv, a coupled recall 400 plain iterations in double, all in the
graph. Needs NumPy and PyTorch (Debian's python3-torch)."""
import os
import sys

import numpy as np
import torch

torch.set_num_threads(1)
torch.set_default_dtype(torch.double)
OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases.npz")
BATCH, STEPS = 3, 400
# N, d, coupled, W in place of P, loss (0 nll, 1 readout), alpha, beta, lambda
CASES = [(9, 5, 0, 0, 0, 0.3, 1.5, 0.8), (5, 9, 0, 1, 1, 0.4, 2.0, 0.6), (9, 5, 1, 0, 0, 0.3, 1.5, 0.7), (5, 9, 1, 1, 0, 0.2, 2.0, 0.5),
         (6, 6, 1, 0, 1, 0.0, 1.2, 0.8), (12, 4, 1, 0, 1, 0.25, 3.0, 0.4), (12, 4, 0, 0, 0, 1.2, 1.0, 0.7)]


def case(number, n, d, coupled, by_W, loss, alpha, beta, lam):
    rng = np.random.RandomState(number)
    Z = rng.standard_normal((n, d)) / np.sqrt(d)
    if number % 2:
        Z /= np.linalg.norm(Z, axis=1)[:, None]
    inputs = {"Z": Z, "q": rng.standard_normal((BATCH, d)), "c": rng.standard_normal((BATCH, d)),
              "M": rng.standard_normal((n if by_W else d, d)) * 0.5,
              "numbers": np.array([alpha, beta, lam])}
    x, target = rng.standard_normal((BATCH, d)), rng.randint(0, n, BATCH)
    t = {k: torch.tensor(v, requires_grad=True) for k, v in inputs.items()}
    a, b, l = t["numbers"]
    G = t["Z"] @ t["Z"].T
    inverse = torch.linalg.inv(torch.eye(n) + a * (G - torch.diag(torch.diag(G))))
    u = t["c"] @ t["M"].T if by_W else t["c"] @ t["M"].T @ t["Z"].T
    r = r0 = t["q"] @ t["Z"].T + l * u @ inverse
    for _ in range(STEPS if coupled else 0):
        r = r0 + l ** 2 * torch.softmax(b * r, 1) @ inverse
    losses = -torch.log_softmax(b * r, 1)[range(BATCH), target] if loss == 0 else \
        ((torch.softmax(b * r, 1) @ t["Z"] - torch.tensor(x)) ** 2).sum(1)
    losses.sum().backward()
    arrays = {**inputs, "x": x, "target": target.astype("i8"), "loss": losses.detach().numpy(),
              "shape": np.array([n, d, coupled, by_W, loss], "i8")}
    arrays.update({"d" + k: v.grad.numpy() for k, v in t.items()})
    return {f"{number}/{k}": v for k, v in arrays.items()}


made = {}
for number, words in enumerate(CASES):
    made.update(case(number, *words))
if "--check" in sys.argv:
    there = np.load(OUT)
    off = [k for k in made if not np.allclose(made[k], there[k], rtol=1e-10, atol=1e-12)]
    sys.exit(f"differ: {off}" if off else 0)
np.savez(OUT, **made)
