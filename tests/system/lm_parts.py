"""`lm states --part` on tiny models with grouped heads, tied and untied: every block, token and head."""
import json
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np
from harness import BUILD, ask, check, close, finish, refuse, run
from tiny_pass import Pass

folder = tempfile.TemporaryDirectory(prefix="cgam-parts-")
os.chdir(folder.name)
PARTS = ("attention", "mlp", "heads")
TEXT = "the capital of France is Paris , a good film"


def tiny(name, kind):
    subprocess.run([f"{BUILD}/tests/python/tiny_model", name, kind, "200"], check=True)


def states(model, part, *more):
    doc = ask("lm", "states", "--model", model, "--part", part, "--save", "s.npy", "--threads", 1, *more)
    check(doc["part"] == part, doc)
    return doc, np.load("s.npy")


tiny("llama.gguf", "llama")
code, _, err = run("lm", "states", "--model", "llama.gguf", "--prompt", "the")
if code == 2 and "libllama" in err:
    print("skipped:", err)
    sys.exit(77)
tiny("tied.gguf", "tied")
for name in ("llama.gguf", "tied.gguf"):
    reference = Pass(name)
    check(("output.weight" in reference.w) == (name == "llama.gguf") and reference.kv < reference.heads)
    for engine in ((), ("--exact",)):
        doc, stream = states(name, "residual", "--prompt", TEXT, "--tokens", "all", *engine)
        want = reference.run([t["id"] for t in doc["prompts"][0]["tokens"]])
        got = {}
        for part in PARTS:
            doc, got[part] = states(name, part, "--prompt", TEXT, "--tokens", "all", *engine)
            check(doc["layers"] == list(range(1, reference.layers + 1)), doc["layers"])
            a = getattr(want, part)
            check(got[part].dtype == np.float32 and got[part].shape == a.shape, part, got[part].shape)
            close(got[part], a, 2e-5 * np.abs(a).max(), name, part, engine)
            _, last = states(name, part, "--prompt", TEXT, "--layers", "1,3", *engine)
            close(last, a[None, [0, 2], -1], 2e-5 * np.abs(a).max(), name, part, "last token")
        # to f32 rounding: as large as the numbers that are summed
        close(got["heads"].sum(2), got["attention"], 4e-6 * np.abs(stream).max(), "heads sum to the attention")
        close(got["attention"] + got["mlp"], np.diff(stream, axis=0), 4e-6 * np.abs(stream).max(), "parts sum to the step")
    # the stream has the same bits whether parts are read or not, and edits come after the parts
    np.save("v.npy", np.linspace(-3, 3, reference.width).astype("f4"))
    edit = ("--edit", "2:add:all:1:v.npy")
    for engine in ((), ("--exact",)):
        _, edited = states(name, "mlp", "--prompt", TEXT, "--tokens", "all", *edit, *engine)
        tokens = [t["id"] for t in doc["prompts"][0]["tokens"]]
        want = reference.run(tokens, edits=[(2, t, np.load("v.npy").astype(float)) for t in range(len(tokens))])
        close(edited, want.mlp, 2e-5 * np.abs(want.mlp).max(), "with an edit", engine)
        rows = np.zeros((reference.layers + 1, reference.width), "f4")
        rows[2] = np.load("v.npy")
        np.save("v2.npy", rows)
        _, vector = states(name, "mlp", "--prompt", TEXT, "--tokens", "all", "--vector", "v2.npy", *engine)
        close(vector, want.mlp, 2e-5 * np.abs(want.mlp).max(), "with libllama's adapter", engine)

# several texts, in one file
open("p.txt", "w").write(TEXT + "\nthe film\n")
ask("lm", "states", "--model", "tied.gguf", "--prompts", "p.txt", "--tokens", "all", "--part", "heads", "--save", "h.safetensors", "--exact")
raw = open("h.safetensors", "rb").read()
(n,) = struct.unpack("<Q", raw[:8])
head = json.loads(raw[8 : 8 + n])
doc, two = states("tied.gguf", "heads", "--prompts", "p.txt", "--exact")
reference = Pass("tied.gguf")
for i, p in enumerate(doc["prompts"]):
    want = reference.run([t["id"] for t in p["tokens"]]).heads
    t = head[f"p{i}"]
    got = np.frombuffer(raw[8 + n + t["data_offsets"][0] : 8 + n + t["data_offsets"][1]], "<f4").reshape(t["shape"])
    close(got, want, 2e-5 * np.abs(want).max(), "safetensors")
    close(two[i], want[:, -1], 2e-5 * np.abs(want).max(), "last tokens")
check(two.shape == (2, reference.layers, reference.heads, reference.width), two.shape)

# libllama rounds what it multiplies with quantised weights to 8 bits: sums of heads are within 2 % of the attention's norm
tiny("packed.gguf", "packed")
got = {p: states("packed.gguf", p, "--prompt", TEXT, "--tokens", "all")[1] for p in ("residual", *PARTS)}
off = np.linalg.norm(got["heads"].sum(2) - got["attention"]) / np.linalg.norm(got["attention"])
check(0 < off < 0.02, "quantised activations", off)
close(got["attention"] + got["mlp"], np.diff(got["residual"], axis=0), 4e-6 * np.abs(got["residual"]).max(), "sums of quantised models")
exact = {p: states("packed.gguf", p, "--prompt", TEXT, "--tokens", "all", "--exact")[1] for p in ("attention", "heads")}
close(exact["heads"].sum(2), exact["attention"], 4e-6 * np.abs(exact["attention"]).max(), "the plain pass does not round")

# other architectures: sums hold, or the model is refused
for kind in ("stablelm", "gemma", "xverse"):
    tiny(f"{kind}.gguf", kind)
    got = {p: states(f"{kind}.gguf", p, "--prompt", TEXT, "--tokens", "all")[1] for p in ("residual", *PARTS)}
    close(got["attention"] + got["mlp"], np.diff(got["residual"], axis=0), 1e-5 * np.abs(got["residual"]).max(), kind)
    close(got["heads"].sum(2), got["attention"], 3e-3 * np.abs(got["attention"]).max(), kind)  # two of them are stored in f16

on = ("lm", "states", "--model", "llama.gguf", "--prompt", "the")
refuse(2, ["layer 0 is no block: it has no mlp (valid: 1 to 3)"], *on, "--part", "mlp", "--layers", "0,1")
refuse(2, ["layer 4"], *on, "--part", "heads", "--layers", "4")
refuse(2, ["part"], *on, "--part", "stream")
check(run(*on, "--part", "heads")[1].strip().splitlines()[-1].startswith("3 layers of 64 numbers for each of 4 heads"))
finish()
