#!/usr/bin/python3
"""Trajectories of networks by SciPy, as judge of cgam's flows.

    tests/oracle/net/generate.py        writes CASE.npz beside itself, for each network below

The networks are the JSON files of examples/ and of this folder. They are read and evaluated here by
NumPy alone: activations and energies from the definitions, currents as minus the gradient of each
energy, worked out by hand a second time. solve_ivp (DOP853, or Radau where a time constant is
short) integrates each stretch between clamps at rtol 1e-11.

Each file holds time [T], states [T, size], energy [T], parts [T, layers + synapses].
"""

import json
import os

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import logsumexp, softmax

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "..", "..", "..", "examples")
CASES = [(EXAMPLES, "two_stage"), (EXAMPLES, "hopfield"), (EXAMPLES, "higher_order"),
         (HERE, "mixed"), (HERE, "stiff"), (HERE, "attention")]


class Layer:
    def __init__(self, d, at):
        self.name, self.tau, self.at = d["name"], d.get("tau", 1.0), at
        self.shape = [d["shape"]] if isinstance(d["shape"], int) else list(d["shape"])
        self.size = int(np.prod(self.shape))
        self.kind, self.d, self.scale = d.get("lagrangian", "identity"), d, d.get("scale", 1.0)
        axes = d.get("axes", 0) or len(self.shape)
        self.width = int(np.prod(self.shape[len(self.shape) - axes:]))
        self.x0 = np.zeros(self.size)
        if "init" in d:
            self.x0 = np.broadcast_to(np.asarray(d["init"], float), self.shape).ravel().copy()

    def lagrangian(self, x):
        return self.scale * sum(self._value(g) for g in x.reshape(-1, self.width))

    def activation(self, x):
        return self.scale * np.concatenate([self._slope(g) for g in x.reshape(-1, self.width)])

    def energy(self, x):
        return x @ self.activation(x) - self.lagrangian(x)

    def _value(self, x):
        b = self.d.get("beta", 1.0)
        if self.kind == "identity":
            return x @ x / 2
        if self.kind == "softmax":
            return logsumexp(b * x) / b
        if self.kind == "ghost_softmax":
            return logsumexp(np.append(b * x, 0)) / b
        if self.kind == "tanh":
            return np.sum(np.log(np.cosh(b * x))) / b
        if self.kind == "sigmoid":
            return np.sum(np.logaddexp(0, b * x)) / b
        if self.kind == "relu":
            return np.sum(np.maximum(x, 0) ** 2) / 2
        if self.kind == "power":
            k = self.d.get("power", 3.0)
            return np.sum(np.maximum(x, 0) ** k) / k
        g, e, delta = self.d.get("gamma", 1.0), self.d.get("epsilon", 1e-5), self.d.get("delta", 0.0)
        if self.kind == "layer_norm":
            return len(x) * g * np.sqrt(np.var(x) + e) + delta * np.sum(x)
        if self.kind == "spherical_norm":
            return g * np.sqrt(x @ x + e) + delta * np.sum(x)
        raise ValueError(self.kind)

    def _slope(self, x):
        b = self.d.get("beta", 1.0)
        if self.kind == "identity":
            return x
        if self.kind == "softmax":
            return softmax(b * x)
        if self.kind == "ghost_softmax":
            return softmax(np.append(b * x, 0))[:-1]
        if self.kind == "tanh":
            return np.tanh(b * x)
        if self.kind == "sigmoid":
            return 1 / (1 + np.exp(-b * x))
        if self.kind == "relu":
            return np.maximum(x, 0)
        if self.kind == "power":
            return np.maximum(x, 0) ** (self.d.get("power", 3.0) - 1)
        g, e, delta = self.d.get("gamma", 1.0), self.d.get("epsilon", 1e-5), self.d.get("delta", 0.0)
        if self.kind == "layer_norm":
            return g * (x - x.mean()) / np.sqrt(np.var(x) + e) + delta
        return g * x / np.sqrt(x @ x + e) + delta


class Net:
    def __init__(self, doc):
        self.layers, at = [], 0
        for d in doc["layers"]:
            self.layers.append(Layer(d, at))
            at += self.layers[-1].size
        self.size, self.doc = at, doc
        self.index = {l.name: i for i, l in enumerate(self.layers)}
        self.weights = {k: self.numbers(v) for k, v in doc.get("weights", {}).items()}
        self.synapses = doc.get("synapses", [])

    def numbers(self, v):
        if isinstance(v, str):
            return self.weights[v]
        if isinstance(v, dict):
            a = np.asarray(v["rows"], float)
            return a / np.linalg.norm(a, axis=-1, keepdims=True) if v.get("normalize") else a
        return np.asarray(v, float)

    def synapse(self, s, a):
        """Energy, and currents by layer slot."""
        g, kind, x = s.get("gain", 1.0), s["kind"], [a[self.index[n]] for n in s["layers"]]
        if kind == "bilinear":
            W = self.numbers(s["weights"])
            return -g * x[0] @ W @ x[1], [g * W @ x[1], g * W.T @ x[0]]
        if kind == "self":
            W = self.numbers(s["weights"])
            return g / 2 * x[0] @ W @ x[0], [-g / 2 * (W + W.T) @ x[0]]
        if kind == "gram":
            Z = self.numbers(s["weights"])
            G = Z @ Z.T
            if s.get("zero_diagonal", True):
                G = G - np.diag(np.diag(G))
            return g / 2 * x[0] @ G @ x[0], [-g * G @ x[0]]
        if kind == "coupling":
            return -g * x[0] @ x[1], [g * x[1], g * x[0]]
        if kind == "bias":
            b = np.broadcast_to(self.numbers(s["weights"]), x[0].shape)
            return -g * b @ x[0], [g * b]
        if kind == "tensor":
            T = self.numbers(s["weights"])
            return (-g * np.einsum("ijk,i,j,k", T, *x),
                    [g * np.einsum("ijk,j,k->i", T, x[1], x[2]),
                     g * np.einsum("ijk,i,k->j", T, x[0], x[2]),
                     g * np.einsum("ijk,i,j->k", T, x[0], x[1])])
        if kind == "lowrank":
            U = [self.numbers(u) for u in s["factors"]]
            h = [u @ v for u, v in zip(U, x)]
            w = self.numbers(s["weights"]) if "weights" in s else np.ones(len(h[0]))
            rest = [w * np.prod([h[j] for j in range(len(h)) if j != i], axis=0)
                    for i in range(len(h))]
            return -g * np.sum(w * np.prod(h, axis=0)), [g * u.T @ r for u, r in zip(U, rest)]
        if kind == "hidden":
            W = self.numbers(s["weights"])
            L = Layer(dict(s, shape=len(W), lagrangian=s["lagrangian"], name=""), 0)
            return -g * L.lagrangian(W @ x[0]), [g * W.T @ L.activation(W @ x[0])]
        if kind == "attention":
            shapes = [self.layers[self.index[n]].shape for n in s["layers"]]
            X, Y, b = x[0].reshape(shapes[0]), x[1].reshape(shapes[1]), s.get("beta", 1.0)
            E, cx, cy = 0.0, np.zeros_like(X), np.zeros_like(Y)
            for h in range(s.get("heads", 1)):
                WQ = self.numbers(s["query_weights"])[h] if "width" in s else np.eye(X.shape[1])
                WK = self.numbers(s["key_weights"])[h] if "width" in s else np.eye(Y.shape[1])
                Q, K = X @ WQ.T, Y @ WK.T
                logits = b * Q @ K.T
                if s.get("exclude_self"):
                    np.fill_diagonal(logits, -np.inf)
                E -= g / b * np.sum(logsumexp(logits, axis=1))
                p = softmax(logits, axis=1)
                cx += g * p @ K @ WQ
                cy += g * p.T @ Q @ WK
            return E, [cx.ravel(), cy.ravel()]
        raise ValueError(kind)

    def split(self, x):
        return [x[l.at:l.at + l.size] for l in self.layers]

    def parts(self, x):
        xs = self.split(x)
        a = [l.activation(v) for l, v in zip(self.layers, xs)]
        return np.array([l.energy(v) for l, v in zip(self.layers, xs)] +
                        [self.synapse(s, a)[0] for s in self.synapses])

    def rate(self, x, held):
        xs = self.split(x)
        a = [l.activation(v) for l, v in zip(self.layers, xs)]
        out = [-v for v in xs]
        for s in self.synapses:
            for name, c in zip(s["layers"], self.synapse(s, a)[1]):
                out[self.index[name]] = out[self.index[name]] + c
        return np.concatenate([np.zeros(l.size) if l.name in held else o / l.tau
                               for l, o in zip(self.layers, out)])


def flow(doc, times):
    net = Net(doc)
    clamps, t_end = doc.get("clamps", []), doc["flow"]["t_end"]
    cuts = sorted({0.0, float(t_end)} | {float(c.get("from", 0)) for c in clamps} |
                  {float(c["to"]) for c in clamps if "to" in c})
    x = np.concatenate([l.x0 for l in net.layers])
    states = np.zeros((len(times), net.size))
    stiff = min(l.tau for l in net.layers) < 0.05
    for a, b in zip(cuts[:-1], cuts[1:]):
        held = set()
        for c in clamps:
            if c.get("from", 0) <= a < c.get("to", np.inf):
                held.add(c["layer"])
                l = net.layers[net.index[c["layer"]]]
                if "value" in c and c.get("from", 0) == a:
                    x[l.at:l.at + l.size] = np.ravel(c["value"])
        here = (times >= a) & (times < b) if b < t_end else (times >= a)
        run = solve_ivp(lambda t, y: net.rate(y, held), (a, b), x, rtol=1e-11, atol=1e-13,
                        method="Radau" if stiff else "DOP853",
                        t_eval=np.append(times[here], [] if b in times[here] else b))
        assert run.success, run.message
        states[here] = run.y.T[:here.sum()]
        x = run.y[:, -1].copy()
    parts = np.array([net.parts(s) for s in states])
    return states, parts


def main():
    for folder, name in CASES:
        with open(os.path.join(folder, name + ".json")) as f:
            doc = json.load(f)
        times = np.linspace(0, doc["flow"]["t_end"], 41)
        states, parts = flow(doc, times)
        # without dates, so that the same numbers give the same bytes
        np.savez(os.path.join(HERE, name + ".npz"), time=times, states=states,
                 energy=parts.sum(axis=1), parts=parts)
        print("%-14s energy %.12g -> %.12g" % (name, parts[0].sum(), parts[-1].sum()))


if __name__ == "__main__":
    main()
