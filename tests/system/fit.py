"""Fits memories to queries made here, and checks what is learned, written, resumed and rejected."""
import json
import os
import signal
import struct
import subprocess
import tempfile
import time

import numpy as np

from harness import CGAM, ask, check, close, finish, refuse

N, D, B = 30, 12, 300


def tensors(path):
    """The arrays of a .safetensors file."""
    with open(path, "rb") as f:
        size, = struct.unpack("<Q", f.read(8))
        head = json.loads(f.read(size))
        data = f.read()
    return {name: np.frombuffer(data[x["data_offsets"][0]:x["data_offsets"][1]]).reshape(x["shape"])
            for name, x in head.items() if name != "__metadata__"}


def make(rng):
    """Queries that say little, contexts that are rotated memories: P = I is wrong, P = the rotation is right."""
    Z = rng.standard_normal((N, D))
    Z /= np.linalg.norm(Z, axis=1)[:, None]
    y = rng.integers(0, N, B)
    turn = np.linalg.qr(rng.standard_normal((D, D)))[0]
    np.save("Z.npy", Z), np.save("y.npy", y)
    np.save("Q.npy", 0.3 * rng.standard_normal((B, D)))
    np.save("C.npy", Z[y] @ turn + 0.1 * rng.standard_normal((B, D)))
    with open("Z.names", "w") as f:
        f.writelines(f"m{i}\n" for i in range(N))
    with open("y.txt", "w") as f:
        f.writelines(f"m{i}\n" for i in y)


FIT = ("fit", "--bank", "Z.npy", "--queries", "Q.npy", "--contexts", "C.npy", "--targets", "y.npy", "--beta", 4)
RECALL = ("recall", "--query", "Q.npy", "--context", "C.npy", "--target", "y.npy")


def nll(document):
    return -np.mean([np.log(q["target_p"]) for q in document["queries"]])


def learns(rng):
    doc = ask(*FIT, "--out", "M.safetensors", "--figure", "figure")
    check({"learned", "epochs", "train", "held_out", "before", "saved"} <= set(doc), sorted(doc))
    check(doc["learned"] == ["P"] and doc["saved"] == "M.safetensors", doc)
    check(all({"loss", "held_out_loss"} <= set(e) for e in doc["epochs"]) and len(doc["epochs"]) > 2, doc["epochs"])
    check(doc["before"]["accuracy"] < 0.2 and doc["held_out"]["accuracy"] > 0.9, doc["before"], doc["held_out"])
    check(doc["held_out"]["nll"] < doc["before"]["nll"] / 10, doc["held_out"])
    check(doc["held_out"]["queries"] == B // 5 and doc["train"]["queries"] == B - B // 5, doc)
    check({"loss.csv", "loss.json"} <= set(os.listdir("figure")), os.listdir("figure"))
    got = tensors("M.safetensors")
    check(set(got) == {"P", "alpha", "beta", "lambda"} and got["P"].shape == (D, D) and got["beta"][0] == 4, got)
    fitted = ask(*RECALL, "--bank", "Z.npy", "--fitted", "M.safetensors")
    close(fitted["beta"], 4, 0, "beta of the file")
    np.save("P.npy", got["P"])
    plain = ask(*RECALL, "--bank", "Z.npy", "--projection", "P.npy", "--beta", 4)
    check(fitted["queries"] == plain["queries"], "the file is its arrays")
    close(nll(fitted), (doc["train"]["nll"] * (B - B // 5) + doc["held_out"]["nll"] * (B // 5)) / B, 1e-9, "nll")
    check(ask(*RECALL, "--bank", "Z.npy", "--fitted", "M.safetensors", "--beta", 2)["beta"] == 2, "options win")
    by_name = ask(*(w if w != "y.npy" else "y.txt" for w in FIT), "--out", "N.safetensors")
    check(by_name["held_out"] == doc["held_out"], "targets by name")
    one = ask(*FIT, "--out", "N.safetensors", "--threads", 1)
    check(one["epochs"] == doc["epochs"], "any number of threads")


def learns_everything(rng):
    doc = ask(*FIT, "--learn", "W,Z,alpha,beta,lambda", "--alpha", 0.1, "--lambda", 0.4, "--mode", "coupled", "--out", "A.safetensors")
    got = tensors("A.safetensors")
    check(set(got) == {"W", "Z", "alpha", "beta", "lambda"} and doc["learned"] == ["W", "Z", "alpha", "beta", "lambda"], doc)
    check(0 < got["alpha"][0] < 1 / (got["Z"] ** 2).sum(1).max() and got["beta"][0] > 0 and got["lambda"][0] > 0, got["alpha"])
    check(doc["held_out"]["nll"] < doc["before"]["nll"], doc["held_out"], doc["before"])
    fitted = ask(*RECALL, "--fitted", "A.safetensors", "--mode", "coupled")
    check(fitted["n"] == N and fitted["alpha"] == got["alpha"][0], "memories from the file")
    for loss in "readout", "margin":
        doc = ask(*FIT, "--loss", loss, "--rank", 5, "--out", "L.safetensors")
        check(doc["epochs"][-1]["loss"] < doc["epochs"][0]["loss"], loss, doc["epochs"])
        check(np.linalg.matrix_rank(tensors("L.safetensors")["P"] - np.eye(D), tol=1e-9) <= 5, "rank")


def resumes(rng):
    adam = (*FIT, "--optimizer", "adam", "--epochs", 40, "--patience", 0, "--batch", 8)
    whole = ask(*adam, "--out", "W1.safetensors")
    few = ask(*(w if w != 40 else 7 for w in adam), "--out", "W2.safetensors", "--journal", "j")
    check(few["epochs"] == whole["epochs"][:7], "a shorter run is the beginning of a longer one")
    rest = ask(*adam, "--out", "W2.safetensors", "--journal", "j")
    check(rest["epochs"] == whole["epochs"], "the same bits")
    check(open("W1.safetensors", "rb").read() == open("W2.safetensors", "rb").read(), "the same file")
    refuse(2, ["j:", "other data or options"], *adam, "--ridge", 2, "--out", "W3.safetensors", "--journal", "j")
    check(not os.path.exists("W3.safetensors"), "nothing was written")
    refuse(2, ["y.npy", "not a journal"], *adam, "--out", "W3.safetensors", "--journal", "y.npy")
    # Ctrl-C leaves the best so far, and a journal to go on from
    slow = (*FIT, "--optimizer", "adam", "--epochs", 10**6, "--patience", 0, "--out", "I.safetensors", "--journal", "k")
    process = subprocess.Popen([CGAM, *map(str, slow)], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    end = time.time() + 60
    while not os.path.exists("I.safetensors") and time.time() < end:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    check(process.wait(timeout=10) != 0, "stopped")
    check(tensors("I.safetensors")["P"].shape == (D, D), "the best so far")


def rejects(rng):
    out = ("--out", "X.safetensors")
    bad = np.load("y.npy")
    bad[3] = N
    np.save("bad.npy", bad)
    with open("bad.txt", "w") as f:
        f.writelines(["m0\n", "nobody\n"] + ["m1\n"] * (B - 2))
    np.save("short.npy", bad[:5] % N)
    nan = np.load("Q.npy")
    nan[2, 1] = np.nan
    np.save("nan.npy", nan)
    np.save("c5.npy", np.ones((B, 5)))
    base = dict(zip(FIT[1::2], FIT[2::2]))

    def without(*more, **changed):
        words = {**base, **{f"--{k}": v for k, v in changed.items()}}
        return ["fit", *(w for pair in words.items() if pair[1] is not None for w in pair), *out, *more]

    refuse(2, ["target 30 of query 3"], *without(targets="bad.npy"))
    refuse(2, ["line 2 of bad.txt", "'nobody'"], *without(targets="bad.txt"))
    refuse(2, ["short.npy", "expected 300"], *without(targets="short.npy"))
    refuse(2, ["nan.npy", "row 2"], *without(queries="nan.npy"))
    refuse(2, ["--rank is 13", "12"], *without("--rank", 13))
    refuse(2, ["--rank", "P"], *without("--learn", "beta", "--rank", 2))
    refuse(2, ["--learn P", "contexts"], *without(contexts=None))
    refuse(2, ["P or W"], *without("--learn", "P,W"))
    refuse(2, ["alpha is 3", "alpha_crit"], *without("--learn", "alpha", "--alpha", 3))
    refuse(2, ["training diverged", "epoch", "1e+300"], *without("--optimizer", "adam", "--rate", 1e300))
    refuse(2, ["--out", "safetensors"], *[w if w != "X.safetensors" else "X.npy" for w in without()])
    refuse(2, ["--learn"], *without("--learn", "Q"))
    refuse(2, ["--held-out"], *without("--held-out", 0.95))
    check(not os.path.exists("X.safetensors"), "nothing was written")
    refuse(2, ["--bank is missing", "M.safetensors"], *RECALL, "--fitted", "M.safetensors")
    refuse(2, ["--bank is missing"], *RECALL)
    refuse(2, ["P.npy"], *RECALL, "--bank", "Z.npy", "--fitted", "P.npy")
    refuse(2, ["gone.safetensors"], *RECALL, "--bank", "Z.npy", "--fitted", "gone.safetensors")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    rng = np.random.default_rng(7)
    make(rng)
    for part in learns, learns_everything, resumes, rejects:
        part(rng)
finish()
