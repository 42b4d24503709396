"""`lm heads` against a forward pass in NumPy (tiny_pass.py) on the tokens that cgam stored; of cgam it takes only those."""
import csv
import os
import subprocess
import sys
import tempfile

import numpy as np
from harness import BUILD, ask, check, close, finish, refuse, run
from tiny_pass import Pass

folder = tempfile.TemporaryDirectory(prefix="cgam-heads-")
os.chdir(folder.name)
words = ["good", "bad", "film", "Paris", "Rome", "France", "Italy", "capital", "Review", "the", "of", "is"]
with open("d.tsv", "w") as f:
    for i, a in enumerate(words):
        f.write(f"up\t{a} good\ndown\t{a} bad\n" if i % 2 else f"up\t{a} film\ndown\t{a} is\n")
K, QUERIES, TOP = 2, 8, 3


def softmax(z):
    e = np.exp(z - z.max())
    return e / e.sum()


def prompts(data):
    """{(demos, shots, query): tokens}, and the queries' labels."""
    ask("lm", "sweep", *data, "--store", "s.db")
    ask("lm", "store", "--store", "s.db", "--export", "s.npy")
    out, label = {}, {}
    with open("s.index.csv", newline="") as f:
        for r in csv.DictReader(f):
            if not r["source"].startswith("d.tsv"):
                continue
            out[r["demos"], int(r["shots"]), int(r["query"])] = list(map(int, r["token_ids"].split()))
            label[int(r["query"])] = r["label"]
    return out, label


def shares(model, tokens, label, token, edits):
    """By layer, of the even and the odd queries; edits(l) is added to the last token after layer l."""
    right = []
    for l in range(2, model.layers + 1):
        said = []
        for i in range(QUERIES):
            t = tokens["true", 0, i]
            said.append(np.argmax(model.run(t, edits=[(l, len(t) - 1, edits(l))]).scores[-1]) == token[label[i]])
        right.append((np.mean(said[0::2]), np.mean(said[1::2])))
    best = int(np.argmax([r[0] for r in right]))
    return right[best][1], best + 2


def likely(name):
    """A word that the model gives as the answer to some rows, so that shares are not all 0: pieces begin with a blank."""
    model = Pass(name)
    rows = [line.rstrip("\n").split("\t")[1] for line in open("d.tsv")]
    open("rows.txt", "w").write("".join(f"the {r} is:\n" for r in rows))
    asked = ask("lm", "states", "--model", name, "--prompts", "rows.txt")["prompts"]
    said = [int(np.argmax(model.run([t["id"] for t in p["tokens"]]).scores[-1])) for p in asked]
    pieces = [model.keys["tokenizer.ggml.tokens"][t] for t in said]
    words = [p[1:] for p in pieces if p.startswith("\u2581") and len(p) > 1]
    return max(set(words), key=words.count) if len(words) > 4 and words.count(max(set(words), key=words.count)) > 4 else None


seen = []
for name, kind in (("m.gguf", "llama"), ("t.gguf", "tied")):
    for seed in range(1, 60):
        subprocess.run([f"{BUILD}/tests/python/tiny_model", name, kind, "200", str(seed)], check=True)
        if run("lm", "states", "--model", name, "--prompt", "the")[0] == 2 or likely(name):
            break
    code, _, err = run("lm", "states", "--model", name, "--prompt", "the")
    if code == 2 and "libllama" in err:
        print("skipped:", err)
        sys.exit(77)
    labels = f"down=negative,up={likely(name)}"
    os.path.exists("s.db") and os.remove("s.db")
    data = ("--model", name, "--eval", "d.tsv", "--labels", labels, "--queries", QUERIES, "--shots", K, "--template", "the {x} is: {y}\\n", "--threads", 1)
    tokens, label = prompts((*data, "--exact"))
    model = Pass(name)
    L, H = model.layers, model.heads
    token = {}
    for word in set(label.values()):  # the first token after the cue
        cue, both = ("is:", f"is: {word}")
        ids = [[t["id"] for t in ask("lm", "states", "--model", name, "--prompt", p)["prompts"][0]["tokens"]] for p in (cue, both)]
        token[word] = ids[1][len(ids[0])]
    mean = np.mean([model.run(tokens["true", K, i]).slices[:, -1] for i in range(0, QUERIES, 2)], 0)
    effect = np.zeros((L, H))
    for i in range(0, QUERIES, 2):
        t = tokens["flipped", K, i]
        p = lambda patches: softmax(model.run(t, patches).scores[-1])[token[label[i]]]
        bare = p(())
        for l in range(L):
            for h in range(H):
                effect[l, h] += (p([(l, h, len(t) - 1, mean[l, h])]) - bare) / (QUERIES / 2)
    order = np.argsort(-effect.ravel(), kind="stable")[:TOP]
    projection = [model.w[f"blk.{l}.attn_output.weight"].reshape(model.width, H, model.size) for l in range(L)]
    vector = sum(projection[c // H][:, c % H] @ mean[c // H, c % H] for c in order)
    last = lambda demos, k, i: model.run(tokens[demos, k, i])
    shift = np.mean([last("true", K, i).stream[:, -1] - last("true", 0, i).stream[:, -1] for i in range(0, QUERIES, 2)], 0)
    plain = {k: np.mean([np.argmax(last("true", k, i).scores[-1]) == token[label[i]] for i in range(1, QUERIES, 2)]) for k in (0, K)}
    heads, layer = shares(model, tokens, label, token, lambda l: vector)
    mean_effect, effect_layer = shares(model, tokens, label, token, lambda l: shift[l])
    for engine in (("--exact",), ()):
        doc = ask("lm", "heads", *data, "--top", TOP, "--out", "v.npy", *engine)
        check(doc["layers"] == L and doc["heads"] == H and doc["patches"] == L * H * QUERIES // 2, doc)
        close(doc["effect"], effect, 2e-4 * np.abs(effect).max(), "effects", name, engine)
        check(doc["top"] == [[int(c) // H + 1, int(c) % H] for c in order], doc["top"], order)
        saved = np.load("v.npy")
        check(saved.shape == (L + 1, model.width) and not np.delete(saved, doc["layer"], 0).any(), saved.shape)
        close(saved[doc["layer"]], vector, 2e-5 * np.abs(vector).max(), "the vector", engine)
        close(doc["norm"], np.linalg.norm(vector), 1e-4, "its norm")
        accuracy = doc["accuracy"]
        check(accuracy["zero_shot"] == plain[0] and accuracy["icl"] == plain[K], accuracy, plain)
        check((accuracy["heads"], doc["layer"]) == (heads, layer), accuracy, heads, layer)
        check((accuracy["mean_effect"], doc["mean_effect_layer"]) == (mean_effect, effect_layer), accuracy, mean_effect, effect_layer)
        check(0 <= accuracy["random_heads"] <= 1 and doc["weak"] == (plain[K] <= plain[0]))
        # each prompt once, and a token a patch
        want = sum(len(tokens["flipped", K, i]) + L * H for i in range(0, QUERIES, 2))
        check(doc["tokens"] == want, doc["tokens"], want)
    seen.append((seed, labels, accuracy))
check(any(0 < max(a["zero_shot"], a["icl"], a["heads"]) for _, _, a in seen), "some answers are right", seen)
check(any(len(set(a.values())) > 1 for _, _, a in seen), "and some are not", seen)
print(seen)

on = ("lm", "heads", "--model", "m.gguf", "--eval", "d.tsv", "--labels", "down=negative,up=positive", "--queries", 8)
three = [ask(*on, "--shots", 2, "--exact", "--threads", n) for n in (1, 2, 2)]
check(three[0] == three[1] == three[2], "threads change nothing")
text = run(*on, "--shots", 2, "--exact")[1]
check(text.startswith("note: 2 demonstrations do not beat zero-shot") == three[0]["weak"], text)
refuse(2, ["at least 1 demonstration"], *on, "--shots", 0)
refuse(2, ["must end in .gguf"], *on, "--out", "v.txt")
refuse(2, ["too few"], *on[:-1], 2, "--shots", 1)
refuse(2, ["top"], *on, "--top", 0)
finish()
