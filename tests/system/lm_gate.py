"""`lm generate --gate`: at lambda = 0 plain text, at alpha = 0 an edit after the last layer, else A formed and solved in NumPy."""
import os
import subprocess
import sys
import tempfile

import numpy as np
from harness import BUILD, ask, check, close, finish, refuse, run
from tiny_pass import Pass

folder = tempfile.TemporaryDirectory(prefix="cgam-gate-")
os.chdir(folder.name)


def tiny(name, kind):
    subprocess.run([f"{BUILD}/tests/python/tiny_model", name, kind, "200"], check=True)


tiny("llama.gguf", "llama")
code, _, err = run("lm", "states", "--model", "llama.gguf", "--prompt", "the")
if code == 2 and "libllama" in err:
    print("skipped:", err)
    sys.exit(77)
tiny("tied.gguf", "tied")
TEXT, COUNT = "the capital of France", 8
for name in ("llama.gguf", "tied.gguf"):
    model = Pass(name)
    c = (6 * np.random.default_rng(3).normal(size=model.width)).astype("f4")
    np.save("c.npy", c)
    Z = model.unembedding()
    G = Z @ Z.T
    critical = -1 / np.linalg.eigvalsh(G - np.diag(np.diag(G)))[0]
    start = [t["id"] for t in ask("lm", "states", "--model", name, "--prompt", TEXT)["prompts"][0]["tokens"]]
    for engine in ((), ("--exact",)):
        on = ("lm", "generate", "--model", name, "--prompt", TEXT, "--max-tokens", COUNT, "--threads", 1, *engine)
        plain = ask(*on)
        for alpha in (0, 0.4 * critical):
            same = ask(*on, "--gate", "c.npy", "--gate-lambda", 0, "--gate-alpha", alpha)
            check(same == plain, "lambda = 0 is plain text, bit for bit", name, engine)
        gated = ask(*on, "--gate", "c.npy", "--gate-lambda", 0.7)
        added = ask(*on, "--edit", f"{model.layers}:add:all:0.7:c.npy")
        check([t["id"] for t in gated["tokens"]] == [t["id"] for t in added["tokens"]], "alpha = 0 is an add after the last layer", gated, added)
        check(gated["tokens"] != plain["tokens"], "and does something", gated)
        for alpha, coupling in ((0, 0.7), (0.4 * critical, 0.5), (0.9 * critical, -0.8)):
            doc = ask(*on, "--gate", "c.npy", "--gate-alpha", alpha, "--gate-lambda", coupling)
            A = np.eye(len(Z)) + alpha * (G - np.diag(np.diag(G)))
            push = np.linalg.solve(A, Z @ (c.astype(float) * model.w["output_norm.weight"]))
            tokens, want = list(start), []
            for t in doc["tokens"]:
                out = model.run(tokens)
                h = out.stream[-1, -1]
                z = out.scores[-1] + coupling * push / np.sqrt((h * h).mean() + model.epsilon)
                p = np.exp(z - z.max())
                p /= p.sum()
                want.append((int(np.argmax(z)), np.log(p.max()), np.exp(-(p * np.log(p)).sum())))
                tokens.append(t["id"])
            check([t["id"] for t in doc["tokens"]] == [w[0] for w in want], name, engine, alpha, doc["text"])
            close([t["log_p"] for t in doc["tokens"]], [w[1] for w in want], 1e-3, "log p", alpha)
            close([t["neff"] / w[2] for t, w in zip(doc["tokens"], want)], np.ones(len(want)), 2e-3, "neff", alpha)
    # beside an edit, whose stream the gate reads
    np.save("v.npy", c)
    both = ask(*on, "--gate", "c.npy", "--gate-lambda", 0.3, "--edit", f"{model.layers}:add:all:0.4:v.npy")
    one = ask(*on, "--gate", "c.npy", "--gate-lambda", 0.7)
    check([t["id"] for t in both["tokens"]] == [t["id"] for t in one["tokens"]], "a gate and an edit", both, one)

# the layer norm takes the mean of the context out; a bias is added as it is
tiny("s.gguf", "stablelm")
on = ("lm", "generate", "--model", "s.gguf", "--prompt", TEXT, "--max-tokens", 4)
np.save("ones.npy", np.full(model.width, 5, "f4"))
got, plain = ask(*on, "--gate", "ones.npy"), ask(*on)
check([t["id"] for t in got["tokens"]] == [t["id"] for t in plain["tokens"]], "a constant is no context of a layer norm", got, plain)
close([t["log_p"] for t in got["tokens"]], [t["log_p"] for t in plain["tokens"]], 1e-4, "layer norm")

on = ("lm", "generate", "--model", "llama.gguf", "--prompt", "the", "--max-tokens", 2)
np.save("narrow.npy", np.zeros(7, "f4"))
refuse(2, ["require gate"], *on, "--gate-alpha", 0.1)
refuse(2, ["narrow.npy"], *on, "--gate", "narrow.npy")
refuse(2, ["gate-alpha"], *on, "--gate", "c.npy", "--gate-alpha", -1)
refuse(2, ["none.npy"], *on, "--gate", "none.npy")
finish()
