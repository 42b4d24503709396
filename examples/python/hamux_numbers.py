"""Writes hamux_numbers.json: a small network after HAMUX, its states and its energies.

The energies are those of HAMUX's definitions (Hoover et al. 2022), in f32 as JAX computes: a layer of neurons has
<x, g> - L(x) with g the gradient of its Lagrangian, a dense synapse -g1' W g2, one with a hidden Lagrangian
-L(W' g). Nothing here imports cgam.
"""
import json
import pathlib

import numpy as np

f32 = np.float32
rng = np.random.default_rng(2022)


def lagr_tanh(x, beta):
    return f32(1 / beta) * np.log(np.cosh(f32(beta) * x)).sum(dtype=f32), np.tanh(f32(beta) * x)


def lagr_relu(x):
    g = np.maximum(x, 0)
    return f32(0.5) * (g * g).sum(dtype=f32), g


def lagr_softmax(x, beta):
    z = f32(beta) * x
    e = np.exp(z - z.max())
    return f32(1 / beta) * (np.log(e.sum(dtype=f32)) + z.max()), e / e.sum(dtype=f32)


def lagr_layernorm(x, gamma, delta, eps):
    mean = x.mean(dtype=f32)
    root = np.sqrt(((x - mean) ** 2).mean(dtype=f32) + f32(eps))
    return f32(x.size * gamma) * root + f32(delta) * x.sum(dtype=f32), f32(gamma) * (x - mean) / root + f32(delta)


x = {name: rng.standard_normal(n).astype(f32) for name, n in
     {"image": 24, "hidden": 16, "label": 5, "memory": 12, "token": 8}.items()}
W = {"image_hidden": rng.standard_normal((24, 16)), "hidden_memory": rng.standard_normal((16, 12)),
     "label_memory": rng.standard_normal((5, 12)), "token_store": rng.standard_normal((8, 20))}
W = {name: (0.3 * w).astype(f32) for name, w in W.items()}

L, g = {}, {}
L["image"], g["image"] = lagr_tanh(x["image"], 1.5)
L["hidden"], g["hidden"] = lagr_relu(x["hidden"])
L["label"], g["label"] = lagr_softmax(x["label"], 2.0)
L["memory"], g["memory"] = lagr_softmax(x["memory"], 1.0)
L["token"], g["token"] = lagr_layernorm(x["token"], 0.7, 0.1, 1e-5)

energy = {name: (x[name] * g[name]).sum(dtype=f32) - L[name] for name in x}
energy["image_hidden"] = -(g["image"] @ W["image_hidden"] @ g["hidden"])
energy["hidden_memory"] = -(g["hidden"] @ W["hidden_memory"] @ g["memory"])
energy["label_memory"] = -(g["label"] @ W["label_memory"] @ g["memory"])
energy["token_store"] = -lagr_softmax(g["token"] @ W["token_store"], 3.0)[0]

out = {"states": {k: v.tolist() for k, v in x.items()}, "weights": {k: v.tolist() for k, v in W.items()},
       "energies": {k: float(v) for k, v in energy.items()}}
pathlib.Path(__file__).with_suffix(".json").write_text(json.dumps(out) + "\n")
