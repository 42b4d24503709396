"""Trains small networks: the same numbers as NumPy, the same bits after an interruption, one line for bad input."""
import json
import os
import signal
import subprocess
import tempfile
import time

import numpy as np

from harness import CGAM, ask, check, close, finish, refuse

N, D, M, BETA, RATE = 40, 6, 9, 5.0, 0.05


def write_net(path, **more):
    net = {"format": "cgam-net/1", "title": "Small",
           "layers": [{"name": "visible", "shape": D, "lagrangian": "spherical_norm", "epsilon": 1e-9}],
           "synapses": [{"name": "memories", "kind": "hidden", "layers": ["visible"], "lagrangian": "softmax", "beta": BETA,
                         "weights": {"file": "W.npy", "normalize": True}}]}
    net.update(more)
    with open(path, "w") as f:
        json.dump(net, f)


def write_layered(path):
    with open(path, "w") as f:
        json.dump({"format": "cgam-net/1",
                   "layers": [{"name": "in", "shape": D}, {"name": "hidden", "shape": 12, "lagrangian": "tanh"},
                              {"name": "out", "shape": 3}],
                   "synapses": [{"name": "W", "kind": "bilinear", "layers": ["hidden", "in"],
                                 "weights": {"normal": 0.5, "shape": [12, D], "seed": 1}},
                                {"name": "V", "kind": "bilinear", "layers": ["out", "hidden"],
                                 "weights": {"normal": 0.1, "shape": [3, 12], "seed": 2}},
                                {"name": "b", "kind": "bias", "layers": ["out"], "weights": 0}]}, f)


def tensor(path, name="0"):
    with open(path, "rb") as f:
        size = int.from_bytes(f.read(8), "little")
        head = json.loads(f.read(size))
        at, end = head[name]["data_offsets"]
        f.seek(8 + size + at)
        return np.frombuffer(f.read(end - at)).reshape(head[name]["shape"])


DENOISE = ("--clamp", "visible", "--read", "visible", "--learn", "memories", "--steps", 1)
CLASSIFY = ("--clamp", "in", "--read", "out", "--learn", "W,V,b", "--labels", "y.npy")


def numpy_step(V, x, noisy):
    """Loss of one step of size 1 and its gradient with respect to V, by hand."""
    norm = np.linalg.norm(V, axis=1, keepdims=True)
    W = V / norm
    act = lambda v: v / np.sqrt((v * v).sum(1, keepdims=True) + 1e-9)
    a = act(noisy)
    z = BETA * a @ W.T
    p = np.exp(z - z.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    end = p @ W
    out = act(end)
    loss = ((out - x) ** 2).mean()
    g = 2 * (out - x) / x.size
    rho = np.sqrt((end * end).sum(1, keepdims=True) + 1e-9)
    r = (g - out * (out * g).sum(1, keepdims=True)) / rho
    dp = r @ W.T
    dz = BETA * p * (dp - (p * dp).sum(1, keepdims=True))
    dW = p.T @ r + dz.T @ a
    return loss, (dW - W * (W * dW).sum(1, keepdims=True)) / norm


def same_as_numpy(rng):
    """Three steps of Adam on all examples."""
    x = rng.standard_normal((N, D))
    np.save("x.npy", 7 * x)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    V = np.load("W.npy")
    doc = ask("net", "train", "net.json", "--data", "x.npy", "--normalize", *DENOISE, "--epochs", 3, "--rate", RATE,
              "--batch", N, "--out", "after.json", "--figure", "figure", "--figures", "no")
    m, v = np.zeros_like(V), np.zeros_like(V)
    for t in range(1, 4):
        loss, g = numpy_step(V, x, x)
        close(doc["epochs"][t - 1]["loss"], loss, 1e-10 * loss)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        V = V - RATE * (m / (1 - 0.9 ** t)) / (np.sqrt(v / (1 - 0.999 ** t)) + 1e-8)
    check({"learned", "epochs", "train", "before", "saved", "weights", "test", "held_out"} <= set(doc), sorted(doc))
    check(doc["learned"] == ["memories"] and doc["params"] == M * D and doc["loss"] == "denoise", doc)
    check({"loss.csv", "loss.json"} <= set(os.listdir("figure")), os.listdir("figure"))
    # the best epoch is the one along which the loss was least, so its weights are those after it
    check(doc["best_epoch"] == 3, doc["best_epoch"])
    W = tensor("after.safetensors")
    check(np.abs(W - V / np.linalg.norm(V, axis=1, keepdims=True)).max() < 1e-7, "weights")
    shown = ask("net", "show", "after.json")
    check(shown["synapses"]["memories"]["kind"] == "hidden", shown)


def learns_classes(rng):
    centres = 2 * rng.standard_normal((3, D))
    y = rng.integers(0, 3, 200)
    np.save("c.npy", centres[y] + 0.3 * rng.standard_normal((200, D)))
    np.save("y.npy", y)
    with open("y.names", "w") as f:
        f.writelines(f"{k}\n" for k in y)
    for method in (("--method", "implicit"), ("--method", "equilibrium", "--nudge", 0.1), ("--steps", 4),
                   ("--method", "adjoint", "--t-end", 5)):
        few = method[1] == "adjoint"
        doc = ask("net", "train", "layers.json", "--data", "c.npy", *CLASSIFY, *method, "--step-size", 0.5, "--epochs",
                  2 if few else 6, "--batch", 20, "--rate", 0.02, "--held-out", 0.2, "--out", "classes.json")
        check(doc["held_out"]["examples"] == 40 and doc["train"]["examples"] == 160, doc["held_out"])
        check(doc["before"]["accuracy"] < 0.8 and doc["held_out"]["accuracy"] > 0.9 or few, method, doc["before"], doc["held_out"])
        check(doc["held_out"]["loss"] < doc["before"]["loss"], method, doc["held_out"])
    again = ask("net", "train", "layers.json", "--data", "c.npy", "--clamp", "in", "--read", "out", "--learn", "W,V,b",
                "--labels", "y.names", "--steps", 4, "--step-size", 0.5, "--epochs", 2, "--out", "classes.json", "--optimizer",
                "lbfgs")
    check(again["epochs"][-1]["loss"] < again["before"]["loss"], again["epochs"])


def same_bits(rng):
    np.save("many.npy", rng.standard_normal((3000, D)))
    args = ("net", "train", "net.json", "--data", "many.npy", "--normalize", *DENOISE, "--noise", 0.1, "--batch", 150, "--rate",
            0.02, "--stop", 0.1, "--patience", 0)
    one = ask(*args, "--epochs", 6, "--out", "one.json", "--threads", 1)
    two = ask(*args, "--epochs", 6, "--out", "two.json", "--threads", 3)
    check(one["epochs"] == two["epochs"], "threads")
    check(open("one.safetensors", "rb").read() == open("two.safetensors", "rb").read(), "threads: weights")
    ask(*args, "--epochs", 3, "--out", "part.json", "--journal", "j")
    rest = ask(*args, "--epochs", 6, "--out", "rest.json", "--journal", "j")
    check(rest["epochs"] == one["epochs"], "resumed")
    check(open("one.safetensors", "rb").read() == open("rest.safetensors", "rb").read(), "resumed: weights")


def interrupted(rng):
    words = [CGAM, "net", "train", "net.json", "--data", "many.npy", "--normalize", *map(str, DENOISE), "--epochs", "1000000",
             "--patience", "0", "--out", "stopped.json"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    end = time.time() + 60
    while not os.path.exists("stopped.json") and time.time() < end:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    check(process.returncode == 130 or process.returncode == 3, process.returncode, error)
    check(ask("net", "show", "stopped.json")["size"] == D, "stopped.json")


def rejects():
    base = ("net", "train", "net.json", "--data", "x.npy", "--out", "o.json")
    cases = (
        (("--clamp", "no", "--read", "visible", "--learn", "memories"), "no layer named 'no'"),
        (("--clamp", "visible", "--read", "visible", "--learn", "no"), "no synapse or layer named 'no'"),
        (("--clamp", "visible", "--read", "visible", "--learn", "visible"), "is a layer"),
        ((*DENOISE, "--steady", 1e-3), "cannot be combined"),
        ((*DENOISE, "--labels", "short.txt"), "labels for"),
        ((*DENOISE, "--labels", "bad.txt"), "line 2 is not a class"),
        ((*DENOISE, "--loss", "classify"), "requires --labels"),
    )
    with open("short.txt", "w") as f:
        f.write("1\n")
    with open("bad.txt", "w") as f:
        f.write("1\nx\n")
    for words, text in cases:
        refuse(2, [text], *base, *words)
    bad = np.ones((4, D))
    bad[2, 1] = np.nan
    np.save("nan.npy", bad)
    refuse(2, ["row 2, column 1 is NaN"], "net", "train", "net.json", "--data", "nan.npy", "--out", "o.json", *DENOISE)
    np.save("wide.npy", np.ones((4, D + 1)))
    refuse(2, [f"rows of {D + 1} numbers"], "net", "train", "net.json", "--data", "wide.npy", "--out", "o.json", *DENOISE)
    refuse(2, ["must end in .json"], "net", "train", "net.json", "--data", "x.npy", "--out", "o.txt", *DENOISE)


with tempfile.TemporaryDirectory() as scratch:
    os.chdir(scratch)
    numbers = np.random.default_rng(5)
    np.save("W.npy", numbers.standard_normal((M, D)))
    write_net("net.json")
    write_layered("layers.json")
    same_as_numpy(numbers)
    learns_classes(numbers)
    same_bits(numbers)
    interrupted(numbers)
    rejects()
finish()
