"""The verbs that look into a model and put vectors into it, on the story model."""
import csv
import json
import os
import re
import struct
import sys
import tempfile

import numpy as np
from harness import ask, check, close, finish, refuse, run
from stories import EOS, Stories

models = sys.argv[1]
stories = Stories(f"{models}/stories260K.bin", f"{models}/tok512.bin")
folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
stories.write_gguf("stories.gguf")
on = ("--model", "stories.gguf", "--threads", 1)
code, _, err = run("lm", "states", *on, "--prompt", "Once")
if code == 2 and "libllama" in err:
    print("skipped:", err)
    sys.exit(77)

L, d = stories.layers, stories.dim
text = "Once upon a time, there was a little girl named Lily. She loved"
rng = np.random.default_rng(5)
vectors = rng.normal(size=(L + 1, d)).astype("f4")
np.save("v.npy", vectors)
np.save("one.npy", vectors[2])
np.save("zero.npy", 0 * vectors)
np.save("narrow.npy", vectors[:, :7])
open("text.npy", "w").write("no vector\n")


def read_safetensors(path):
    raw = open(path, "rb").read()
    (n,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + n])
    return {
        name: np.frombuffer(raw[8 + n + t["data_offsets"][0] : 8 + n + t["data_offsets"][1]], "<f4").reshape(t["shape"])
        for name, t in header.items()
        if name != "__metadata__"
    }


def tokens_of(doc, i=0):
    return [t["id"] for t in doc["prompts"][i]["tokens"]]


# ---- states ------------------------------------------------------------------------------------
for engine in ((), ("--exact",)):
    doc = ask("lm", "states", *on, "--prompt", text, "--tokens", "all", "--save", "h.npy", *engine)
    tokens = tokens_of(doc)
    check(tokens[0] == 1 and "".join(t["piece"] for t in doc["prompts"][0]["tokens"][1:]) == " " + text)
    check(doc["width"] == d and doc["layers"] == list(range(L + 1)) and doc["saved"] == "h.npy", doc)
    want, scores = stories.run(tokens)
    h = np.load("h.npy")
    check(h.dtype == np.float32 and h.shape == want.shape, h.dtype, h.shape)
    close(h, want, 2e-5 * np.abs(want).max(), "states of all tokens", engine)
    ask("lm", "states", *on, "--prompt", text, "--layers", "0,3", "--save", "last.npy", *engine)
    last = np.load("last.npy")
    check(last.shape == (1, 2, d), last.shape)
    close(last[0], want[[0, 3], -1], 2e-5 * np.abs(want).max(), "the last token")
    open("prompts.txt", "w").write(text + "\nThe cat\n\n")
    doc = ask("lm", "states", *on, "--prompts", "prompts.txt", "--tokens", "all", "--save", "h.safetensors", *engine)
    both = read_safetensors("h.safetensors")
    check(sorted(both) == ["p0", "p1"])
    close(both["p0"], want, 2e-5 * np.abs(want).max())
    close(both["p1"], stories.run(tokens_of(doc, 1))[0], 1e-3)
    doc = ask("lm", "states", *on, "--prompts", "prompts.txt", "--save", "two.npy", *engine)
    close(np.load("two.npy")[:, -1], [both["p0"][-1, -1], both["p1"][-1, -1]], 1e-4)
    # edits, against NumPy's
    n = len(tokens)
    edits = ["2:add:all:1.5:v.npy", "3:replace:-2:1:v.npy:1", "0:add:1-3:-1:one.npy"]
    words = [w for e in edits for w in ("--edit", e)]
    ask("lm", "states", *on, "--prompt", text, "--tokens", "all", "--save", "e.npy", *words, *engine)
    want, _ = stories.run(tokens, [(2, "add", range(n), 1.5 * vectors[2]), (3, "replace", [n - 2], vectors[1]), (0, "add", [1, 2, 3], -vectors[2])])
    close(np.load("e.npy"), want, 2e-5 * np.abs(want).max(), "edited states", engine)
    # whichever option they come from, edits apply in the order given
    add, replace = ("--vector", "v.npy:2:3-3"), ("--edit", "3:replace:1:1:v.npy:1")
    adding, replacing = (3, "add", range(n), 2 * vectors[3]), (3, "replace", [1], vectors[1])
    for words, edits in ((add + replace, [adding, replacing]), (replace + add, [replacing, adding])):
        ask("lm", "states", *on, "--prompt", text, "--tokens", "all", "--save", "e.npy", *words, *engine)
        want, _ = stories.run(tokens, edits)
        close(np.load("e.npy"), want, 2e-5 * np.abs(want).max(), "the order given", words, engine)
    ask("lm", "states", *on, "--prompt", text, "--tokens", "all", "--save", "z.npy", "--vector", "zero.npy", "--edit", "1:add:all:0:v.npy", *engine)
    check(np.load("z.npy").tobytes() == h.tobytes(), "nothing changes no bit", engine)


# ---- all tokens into a store, and out of it -------------------------------------------------------
for done in (0, 2):
    doc = ask("lm", "capture", *on, "--prompts", "prompts.txt", "--store", "s.db", "--tokens", "all")
    check(doc["capture"]["found"] == done and doc["capture"]["computed"] == 2 - done, doc["capture"])
doc = ask("lm", "store", "--store", "s.db", "--check", "--export", "all.safetensors", "--tokens", "all")
check(doc["check"]["sound"] and doc["groups"][0]["all_tokens"] == 2 and doc["exported_rows"] == 2, doc)
ask("lm", "states", *on, "--prompts", "prompts.txt", "--tokens", "all", "--save", "h.safetensors")
raw, want = read_safetensors("all.safetensors"), read_safetensors("h.safetensors")
check(sorted(raw) == ["p0", "p0_tokens", "p1", "p1_tokens"] and raw["p0_tokens"].view("<i4").tolist() == tokens)
order = (0, 1) if raw["p0"].shape == want["p0"].shape else (1, 0)
for i in (0, 1):
    check(raw[f"p{i}"].tobytes() == want[f"p{order[i]}"].tobytes(), "an export has the bits of lm states")


# ---- generated text ----------------------------------------------------------------------------
def greedy(tokens, count, edits):
    """Without a cache; edits has functions of (prompt tokens, tokens)."""
    start, told = len(tokens), []
    while len(told) < count:
        _, scores = stories.run(tokens, edits(start, len(tokens)))
        z = scores[-1] - scores[-1].max()
        p = np.exp(z) / np.exp(z).sum()
        best = int(np.argmax(p))
        if best == EOS:
            break
        told.append((best, np.log(p[best]), np.exp(-(p * np.log(p)).sum())))
        tokens = tokens + [best]
    return told


cases = [
    ([], lambda n, m: []),
    (["--vector", "v.npy:0.3:2-3"], lambda n, m: [(l, "add", range(m), np.float32(0.3) * vectors[l]) for l in (2, 3)]),
    (["--edit", "1:add:generated:0.7:v.npy", "--edit", "4:replace:last:1:v.npy"],
     lambda n, m: [(1, "add", range(n, m), np.float32(0.7) * vectors[1]), (4, "replace", [n - 1], vectors[4])]),
]
start = tokens_of(ask("lm", "states", *on, "--prompt", "Once upon a time"))
for words, edits in cases:
    want = greedy(start, 24, edits)
    for engine in ((), ("--exact",)):
        doc = ask("lm", "generate", *on, "--prompt", "Once upon a time", "--max-tokens", 24, *words, *engine)
        check([t["id"] for t in doc["tokens"]] == [w[0] for w in want], words, doc["text"], want)
        close([t["log_p"] for t in doc["tokens"]], [w[1] for w in want], 1e-3, "log p", words)
        close([t["neff"] / w[2] for t, w in zip(doc["tokens"], want)], np.ones(len(want)), 1e-3, "neff", words)
        check(doc["prompt_tokens"] == len(start) and doc["stop"] in ("length", "eos"))
plain = ask("lm", "generate", *on, "--prompt", "Once upon a time")["text"]
check(plain.startswith(", there was a little girl named Lily."), plain)
doc = ask("lm", "generate", *on, "--prompt", "Once upon a time", "--stop", "girl nam", "--stop", "nowhere")
check(doc["text"] == plain[: plain.index("girl nam")] and doc["stop"] == "word", doc)
drawn = [ask("lm", "generate", *on, "--prompt", "Once", "--temperature", 1, "--top-p", 0.9, "--seed", s)["text"] for s in (1, 1, 2)]
check(drawn[0] == drawn[1] != drawn[2], drawn)
for cold in ("1e-9", "1e-310"):  # 1 / temperature is infinite for the second
    doc = ask("lm", "generate", *on, "--prompt", "Once upon a time", "--temperature", cold)
    check(doc["text"] == plain, "next to no temperature is none", cold, doc["text"])
code, out, err = run("lm", "generate", *on, "--prompt", "Once upon a time", "--max-tokens", 20)
check(code == 0 and out.strip() and plain.startswith(out.rstrip("\n")), out)

# ---- chats: a template that libllama knows by its marks ---------------------------------------------
stories.write_gguf("chat.gguf", "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}")
chat = ("lm", "generate", "--model", "chat.gguf", "--threads", 1, "--prompt", "Hello", "--max-tokens", 3)
said = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
plain = ask(*chat)["prompt_tokens"]
asked = ask(*chat, "--chat")
ordered = ask(*chat, "--system", "Be brief.")
written = ask("lm", "generate", *on, "--prompt", said, "--max-tokens", 3)
check(plain < asked["prompt_tokens"] < ordered["prompt_tokens"] == written["prompt_tokens"], plain, asked, ordered, written)
check(ordered["tokens"] == written["tokens"], "the template is what it says", ordered, written)
doc = ask("lm", "trace", *chat[2:], "--system", "Be brief.")
check(len(doc["tokens"]) == 3 and all(t["kl"] > 0 and t["context_norm"][0] >= 0 for t in doc["tokens"]), doc)
# Demonstrations are turns: asked by the user, answered by the assistant; the query is the last of them. The second
# template says eos_token, which libllama takes for a family whose turns do not end.
turn = "{%% if message['role'] == '%s' %%}\n{{ '<|%s|>\n' + message['content'] + eos_token }}\n{%% endif %%}\n"
zephyr = "{% for message in messages %}\n" + "".join(turn % (r, r) for r in ("user", "system", "assistant")) + (
    "{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n{% endfor %}")
stories.write_gguf("zephyr.gguf", zephyr)
for model, begin, end in (("chat", "<|im_start|>%s\n", "<|im_end|>\n"), ("zephyr", "<|%s|>\n", "</s>\n")):
    ask("lm", "capture", "--model", model + ".gguf", "--threads", 1, "--chat", "--dataset", "sentiment", "--queries", 2,
        "--shots", 2, "--store", model + ".db")
    ask("lm", "store", "--store", model + ".db", "--export", model + ".npy")
    user, assistant, end = (re.escape(t) for t in (begin % "user", begin % "assistant", end))
    shown = f"{user}Review: [^\n]+\nSentiment:{end}{assistant}(?:positive|negative){end}"
    with open(model + ".index.csv", newline="") as f:
        rows = list(csv.DictReader(f))
    check([r["shots"] for r in rows] == ["0", "0", "2", "2"], rows)
    for r in rows:
        want = shown * int(r["shots"]) + f"{user}Review: [^\n]+\nSentiment:{end}{assistant}"
        check(re.fullmatch(want, r["text"]), r["text"])
        ends = 1 + 2 * int(r["shots"]) if model == "zephyr" else 0
        check(r["token_ids"].split().count("2") == ends, r["token_ids"])
stories.write_gguf("strange.gguf", "{{ messages | somehow }}")
refuse(2, ["strange.gguf", "chat template"], "lm", "generate", "--model", "strange.gguf", "--prompt", "Hello", "--chat")

# ---- a trace ------------------------------------------------------------------------------------
def softmax(z):
    p = np.exp(z - z.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True)


for engine in ((), ("--exact",)):
    doc = ask("lm", "trace", *on, "--prompt", "Once upon a time", "--vector", "v.npy:0.3:2-3", "--max-tokens", 12, "--out", "trace", "--figures", "no", *engine)
    told = [t["id"] for t in doc["tokens"]]
    check(told == [w[0] for w in greedy(start, 12, cases[1][1])], doc["text"])
    whole, at = start + told[:-1], len(start) - 1
    with_, z = stories.run(whole, cases[1][1](0, len(whole)))
    without, y = stories.run(whole)
    p, q = softmax(z[at:]), softmax(y[at:])
    diff = (with_ - without)[:, at:]
    size = np.sqrt((diff**2).sum(-1))
    with np.errstate(invalid="ignore"):
        cosine = np.einsum("lti,li->lt", diff, diff[:, 0]) / size / size[:, :1]
    close([t["kl"] for t in doc["tokens"]], (p * np.log(p / q)).sum(-1), 1e-3, "KL")
    for name, a in (("neff_with", p), ("neff_without", q)):
        close(np.log([t[name] for t in doc["tokens"]]), -(a * np.log(a)).sum(-1), 1e-3, name)
    close([t["context_norm"] for t in doc["tokens"]], size.T, 1e-3, "norms")
    for l in range(L + 1):
        got = [t["persistence"][l] for t in doc["tokens"]]
        check(got == [None] * len(got) if l < 2 else np.allclose(got, cosine[l], atol=1e-3), "cosines", l, got, cosine[l])
    rows = open("trace/trace.csv").read().splitlines()
    check(len(rows) >= len(told) * (L + 1) and json.load(open("trace/trace.json"))["text"] == doc["text"])
doc = ask("lm", "trace", *on, "--prompt", "Once", "--vector", "zero.npy", "--max-tokens", 5)
check([t["kl"] for t in doc["tokens"]] == [0.0] * 5, "nothing leaves no trace", doc["tokens"])

# ---- what is refused ---------------------------------------------------------------------------
states, one = ("lm", "states", *on), ("--prompt", "Once upon a time")
refuse(2, ["prompt"], *states)
refuse(2, ["lm states: text 0 has 2802 tokens, the model's context holds 512"], *states, "--prompt", "many words " * 400)
refuse(2, ["--prompt or --prompts"], *states, *one, "--prompts", "prompts.txt")
refuse(2, ["layers 0 to 5"], *states, *one, "--edit", "6:add:last:1:v.npy")
refuse(2, ["5 tokens"], *states, *one, "--edit", "1:add:5:1:v.npy")
refuse(2, ["5 tokens"], *states, *one, "--edit", "1:add:-6:1:v.npy")
refuse(2, ["7 numbers", "64"], *states, *one, "--edit", "1:add:last:1:narrow.npy")
refuse(2, ["text.npy"], *states, *one, "--edit", "1:add:last:1:text.npy")
refuse(2, ["absent.npy"], *states, *one, "--vector", "absent.npy")
refuse(2, ["rows 0 to 5"], *states, *one, "--edit", "1:add:last:1:v.npy:6")
refuse(2, ["form"], *states, *one, "--edit", "1:more:last:1:v.npy")
refuse(2, ["layer 9"], *states, *one, "--layers", "9")
refuse(2, [".safetensors"], *states, "--prompts", "prompts.txt", "--tokens", "all", "--save", "x.npy")
refuse(2, ["x.txt"], *states, *one, "--save", "x.txt")
refuse(2, ["--system, --vector or --edit"], "lm", "trace", *on, *one)
refuse(2, ["chat template"], "lm", "trace", *on, *one, "--system", "be brief", "--out", "new/folder")
check(not os.path.exists("new"), "a refusal leaves no folder")
refuse(2, ["prompt 0, which has 5 tokens, and up to 64 follow"], "lm", "generate", *on, *one, "--edit", "1:add:70:1:v.npy")
refuse(2, ["chat template"], "lm", "generate", *on, *one, "--chat")
refuse(2, ["chat template"], "lm", "generate", *on, *one, "--system", "be brief")
check(not [f for f in os.listdir(".") if f.startswith((".cgam", "x."))], "nothing half-written", os.listdir("."))
# ---- where each query is right, of every pair of layers: the grid reads it -----------------------
doc = ask("lm", "sweep", *on, "--dataset", "antonyms", "--queries", 6, "--shots", "0,2", "--exact", "--intervals", "--figures", "no", "--out", "sweep")
with open("sweep/sweep_intervals.csv") as of, open("sweep/sweep_grid.csv") as at:
    intervals, grid = list(csv.DictReader(of)), list(csv.DictReader(at))
pair = ("shots", "context_layer", "query_layer")
for row in grid:
    for over, name in enumerate(("restricted", "full")):
        held = [x for x in intervals if all(x[k] == row[k] for k in pair) and int(x["over_vocabulary"]) == over
                and float(x["lambda_from"]) <= float(row["lambda"]) < float(x["lambda_to"])]
        close(len(held) / doc["shots"][-1]["queries"], float(row[name]), 1e-12, "intervals", row)
check(len({x["over_vocabulary"] for x in intervals}) == 2, "both ways of counting")

finish()
