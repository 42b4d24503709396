#!/usr/bin/python3
"""The language-model study, computed again from its exported states by NumPy alone.

    cgam lm study ... --exact --store s.db --out study
    cgam lm store --store s.db --export states.safetensors
    cgam lm bank ... --no-inspect --out bank.safetensors --json > bank.json
    recompute.py states.safetensors bank.safetensors bank.json study

Or a folder that `lm sweep --out` or `lm steer --out` left alone; of a sweep with --projection contexts go
through P first.
Every rule is that of docs/studies/language-models.md, "Protocol"; nothing is taken from cgam but states,
unembedding, norm and the labels' tokens. Compared with study/study.json and the tables beside it: N_eff,
the model's answers, contexts, ranges of lambda of all pairs of layers, readings on the grid, held-out
choices with their ties, baselines, what is recovered, steering with its errors, the probe. Exit status 1 names what differs.
"""
import csv
import json
import os
import sys

import numpy as np

csv.field_size_limit(1 << 30)
bad = []
checks = 0


def close(name, got, want, rtol=0.0, atol=0.0):
    """One number or array of cgam's against ours."""
    global checks
    got = np.asarray([np.nan if x is None else x for x in np.ravel(np.asarray(got, object))], float)
    want = np.ravel(np.asarray(want, float))
    checks += want.size
    if got.shape != want.shape:
        bad.append(f"{name}: {got.size} numbers, {want.size} are meant")
        return
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    with np.errstate(invalid="ignore"):
        off = np.where(same, 0, np.abs(got - want))
    allowed = atol + rtol * np.abs(want)
    wrong = ~same & ~(off <= allowed)
    if wrong.any():
        i = int(np.argmax(wrong))
        bad.append(f"{name}[{i}]: got {got[i]!r}, want {want[i]!r}, off {off[i]:.3g}, "
                   f"allowed {allowed[i] if allowed.shape else allowed:.3g}")


def equal(name, got, want):
    global checks
    checks += 1
    if got != want:
        bad.append(f"{name}: got {got!r}, want {want!r}")


# ---- Files -----------------------------------------------------------------------------------
def safetensors(path):
    with open(path, "rb") as f:
        size = int.from_bytes(f.read(8), "little")
        head = json.loads(f.read(size))
        body = f.read()
    kinds = {"F32": np.float32, "F64": np.float64, "I64": np.int64, "I32": np.int32}
    return {name: np.frombuffer(body[a["data_offsets"][0]:a["data_offsets"][1]],
                                kinds[a["dtype"]]).reshape(a["shape"])
            for name, a in head.items() if name != "__metadata__"}


def table(path):
    with open(path, newline="", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    return {key: np.array([float(r[key]) if r[key] else np.nan for r in rows]) for key in rows[0]}


class Store:
    def __init__(self, path):
        arrays = safetensors(path)
        self.states = arrays["states"]
        index = path.rsplit(".", 1)[0] + ".index.csv"
        with open(index, newline="", encoding="utf-8") as f:
            self.index = list(csv.DictReader(f))
        equal("rows of the index", len(self.index), len(self.states))
        for name in ("query", "shots", "seed", "tokens"):
            close("index " + name, arrays[name],
                  [float(r[name]) if r[name] else -1 for r in self.index])
        ids = [int(t) for r in self.index for t in r["token_ids"].split()]
        close("token ids", arrays["token_ids"], ids)

    def series(self, source, demos, shots, seed):
        """States [n, L + 1, d] and words of the right answers, by query."""
        rows = [r for r in self.index if r["source"] == source and r["demos"] == demos and
                r["shots"] == str(shots) and r["seed"] == str(seed)]
        rows.sort(key=lambda r: int(r["query"]))
        if [int(r["query"]) for r in rows] != list(range(len(rows))) or not rows:
            raise SystemExit(f"no series {source}, {demos}, {shots} shots")
        return self.states[[int(r["row"]) for r in rows]], [r["label"] for r in rows]

    def after(self, source, seed, endings):
        """The last layer's state [count, d] of the prompt without demonstrations of each query, which these
        tokens follow."""
        of = {r["token_ids"]: int(r["row"]) for r in self.index}
        prompt = {int(r["query"]): r["token_ids"] for r in self.index if r["source"] == source and
                  r["demos"] == "true" and r["shots"] == "0" and r["seed"] == str(seed)}
        return self.states[[of[" ".join([prompt[i], *map(str, tokens)])] for i, tokens in endings], -1]


# ---- The lens --------------------------------------------------------------------------------
class Lens:
    def __init__(self, bank, epsilon):
        self.Z = bank["Z"].astype(np.float64)
        self.g = bank["norm"].astype(np.float64)
        self.epsilon = epsilon
        self.gain = self.Z * self.g

    def norm_scores(self, h):
        h = h.astype(np.float64)
        return (h / np.sqrt((h * h).mean(-1, keepdims=True) + self.epsilon)) @ self.gain.T


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


class Task:
    """A part's labels and answers."""

    def __init__(self, part, words):
        self.tokens = np.array(part["label_tokens"])
        label = {w: i for i, w in enumerate(part["label_words"])}
        y = np.array([label[w] for w in words])
        self.target = np.where(self.tokens[y] >= 0, y, -1)
        self.counted = int((self.target >= 0).sum())
        self.used = np.flatnonzero(self.tokens >= 0)


# ---- N_eff -----------------------------------------------------------------------------------
def check_neff(store, lens, part):
    source, seed = part["source"], part["seed"]
    zero = {}
    for view in (part, part["other_lens"]):
        for curve in view["curves"]:
            h, words = store.series(source, "true", curve["k"], seed)
            task = Task(part, words)
            for l in range(h.shape[1]):
                s = lens.norm_scores(h[:, l]) if view["lens"] == "norm" else \
                    h[:, l].astype(np.float64) @ lens.Z.T
                lp = log_softmax(s)
                p = np.exp(lp)
                entropy = -(p * lp).sum(-1)
                name = f"neff {view['lens']} k={curve['k']} layer {l} "
                close(name + "entropy", curve["entropy"][l], np.exp(entropy.mean()), 2e-5)
                close(name + "ipr", curve["ipr"][l],
                      np.exp(-np.log((p * p).sum(-1)).mean()), 2e-5)
                close(name + "mass", curve["label_mass"][l],
                      p[:, task.tokens[task.used]].sum(-1).mean(), 2e-5, 1e-9)
                if curve["k"] == 0:
                    zero[view["lens"], l] = entropy
                else:
                    close(name + "drop", curve["log_drop"][l],
                          (zero[view["lens"], l] - entropy).mean(), 2e-5, 2e-5)


# ---- The sweep -------------------------------------------------------------------------------
def intervals(a, b, y, before):
    """Where row i's column y[i] leads a + lambda b; a [n, m], b [m]. before [n, m]: wins ties."""
    n = len(y)
    ay, by = a[np.arange(n), y][:, None], b[y][:, None]
    rise, gap = by - b[None, :], a - ay
    with np.errstate(divide="ignore", invalid="ignore"):
        r = gap / rise
    low = np.where(rise > 0, r, 0).max(1)
    high = np.where(rise < 0, r, np.inf).min(1)
    flat = (rise == 0) & ((gap > 0) | ((gap == 0) & before))
    flat[np.arange(n), y] = False
    low = np.maximum(low, 0)
    none = flat.any(1) | ~(low < high)
    return np.where(none, np.inf, low), np.where(none, -np.inf, high)


def breadth(low, high):
    if np.isinf(high):
        return 1.0
    return (high - low) / (high + low) if high > low else 0.0


def best_range(low, high):
    """Most hits, and the range: widest, then smallest lambda."""
    ok = low < high
    cuts = np.unique(np.concatenate([low[ok], high[ok][np.isfinite(high[ok])]]))
    if cuts.size == 0:
        return 0, (0.0, np.inf)
    ends = np.append(cuts[1:], np.inf)
    held = ((low[None, ok] <= cuts[:, None]) & (cuts[:, None] < high[None, ok])).sum(1)
    most = held.max()
    ranges = [(a, b) for a, b, c in zip(cuts, ends, held) if c == most]
    widest = max(breadth(a, b) for a, b in ranges)
    return int(most), next((a, b) for a, b in ranges if breadth(a, b) >= 0.99 * widest)


def inside(low, high):
    if np.isinf(high):
        return 2 * low if low > 0 else 1.0
    return np.sqrt(low * high) if low > 0 else high / 2


def choose(steps, layers):
    """Of pairs (context, query layer): most hits, widest, latest query layer, latest context."""
    most = max(c for c, _ in steps)
    top = [p for p, (c, _) in enumerate(steps) if c == most]
    widest = max(breadth(*steps[p][1]) for p in top)
    top = [p for p in top if breadth(*steps[p][1]) >= 0.99 * widest]
    return max(top, key=lambda p: (p % layers, p // layers))


class Sweep:
    """Intervals of every context, query layer and query, under the context of either half."""

    def __init__(self, lens, zero, task, contexts, relative):
        n, self.layers = zero.shape[:2]
        self.n, self.task, self.n_contexts = n, task, len(contexts)
        tokens = task.tokens[task.used]
        column = np.full(len(task.tokens), -1)
        column[task.used] = np.arange(len(task.used))
        rows = np.flatnonzero(task.target >= 0)
        shape = (2, self.n_contexts, self.layers, 2, n)  # over, context, layer, half of it, query
        self.low, self.high = np.full(shape, np.inf), np.full(shape, -np.inf)
        b = np.array([[c[h].astype(np.float64) @ lens.gain.T for h in (0, 1)] for c in contexts])
        size = np.array([[np.linalg.norm(c[h].astype(np.float64)) for h in (0, 1)] for c in contexts])
        order = np.arange(lens.gain.shape[0])
        for l in range(self.layers):
            q = zero[:, l].astype(np.float64)
            a = q @ lens.gain.T
            norms = np.linalg.norm(q, axis=1)
            for c in range(self.n_contexts):
                for h in (0, 1):
                    s = norms[h::2].mean() / size[c, h] if relative and size[c, h] > 0 else 1.0
                    for over in (0, 1):
                        if over == 0:
                            y = column[task.target[rows]]
                            low, high = intervals(a[rows][:, tokens], b[c, h][tokens], y,
                                                  np.arange(len(tokens))[None] < y[:, None])
                        else:
                            y = task.tokens[task.target[rows]]
                            low, high = intervals(a[rows], b[c, h], y, order[None] < y[:, None])
                        self.low[over, c, l, h, rows] = low / s
                        self.high[over, c, l, h, rows] = high / s

    def of(self, over, c, l, half, own):
        """Intervals of the queries of a half (None: all), own context or the other half's."""
        i = np.arange(self.n) if half is None else np.arange(half, self.n, 2)
        h = i % 2 if own else 1 - i % 2
        return self.low[over, c, l, h, i], self.high[over, c, l, h, i]

    def check(self, name, part, over, first, count):
        pairs = [(first + p // self.layers, p % self.layers) for p in range(count * self.layers)]
        steps = [best_range(*self.of(over, c, l, None, False)) for c, l in pairs]
        p = choose(steps, self.layers)
        equal(name + " query layer", part["query_layer"], pairs[p][1])
        if count > 1:
            equal(name + " context layer", part["context_layer"], pairs[p][0] % self.layers)
        want = [steps[p][1][0], np.nan if np.isinf(steps[p][1][1]) else steps[p][1][1]]
        close(name + " lambda", part["lambda"], want, 1e-9, 1e-12)
        close(name + " accuracy", part["accuracy"], steps[p][0] / self.task.counted, 1e-12)
        right, ties, tied = np.zeros(self.n, bool), 0.0, 0.0
        for half in (0, 1):
            steps = [best_range(*self.of(over, c, l, half, True)) for c, l in pairs]
            p = choose(steps, self.layers)
            chosen = part["held_out_choices"][half]
            equal(f"{name} chosen on half {half}", chosen["query_layer"], pairs[p][1])
            if count > 1:
                equal(f"{name} chosen on half {half}, context", chosen["context_layer"],
                      pairs[p][0] % self.layers)
            close(f"{name} lambda chosen on half {half}", chosen["lambda"], inside(*steps[p][1]),
                  1e-9, 1e-12)
            hits = {}
            for k in (k for k in range(len(steps)) if steps[k][0] == steps[p][0]):
                low, high = self.of(over, *pairs[k], 1 - half, False)
                x = inside(*steps[k][1])
                hits[k] = (low <= x) & (x < high)
            right[1 - half::2] = hits[p]
            ties += np.mean([h.sum() for h in hits.values()])
            tied += len(hits) / 2
        kept = right[self.task.target >= 0]
        equal(name + " right", part["right"], "".join("01"[int(x)] for x in kept))
        close(name + " held out", part["held_out"], kept.mean(), 1e-12)
        close(name + " held out, ties", part["held_out_ties"], ties / self.task.counted, 1e-12)
        close(name + " tied", part["tied"], tied, 1e-12)


def shift(with_, zero):
    """Contexts of each half after each layer."""
    d = with_.astype(np.float64) - zero.astype(np.float64)
    return [[d[h::2, l].mean(0).astype(np.float32) for h in (0, 1)] for l in range(zero.shape[1])]


def check_halves(words):
    """A label's numbers in the two halves differ by one at most."""
    for word in set(words):
        halves = [sum(w == word for w in words[h::2]) for h in (0, 1)]
        equal(f"halves of {word}", abs(halves[0] - halves[1]) <= 1, True)


def check_threshold(lens, zero, task, part):
    """The best border between two classes, on each half by itself, and the area under the curve."""
    rows = np.flatnonzero(task.target >= 0)
    if len(task.used) != 2:
        equal("threshold", part, None)
        return
    bound, area = [], []
    for l in range(zero.shape[1]):
        # equal states must tie, so row by row: a product of matrices may round them apart
        s = (zero[:, l, None, :].astype(np.float64) * lens.gain[task.tokens[task.used]]).sum(-1)
        gap, up = s[:, 1] - s[:, 0], task.target == task.used[1]
        hits = 0
        for h in (0, 1):
            mine = rows[rows % 2 == h]
            cuts = np.append(gap[mine], np.inf)
            hits += max(((gap[mine] >= c) == up[mine]).sum() for c in cuts)
        bound.append(hits / len(rows))
        pairs = gap[rows][up[rows]][:, None] - gap[rows][~up[rows]][None, :]
        area.append(np.where(pairs > 0, 1, np.where(pairs == 0, 0.5, 0)).mean())
    close("threshold by layer", part["by_layer"], bound, 1e-12)
    close("threshold", [part["accuracy"], part["bound"]], [bound[-1], max(bound)], 1e-12)
    close("area by layer", part["auc_by_layer"], area, 1e-12)
    close("area", part["auc"], area[-1], 1e-12)


def check_recovered(entry):
    """The share of the gain that is recovered, where it is told at all."""
    for end, key in (("", "restricted"), ("_full", "full")):
        zero, icl, mine = entry["zero_shot"][key], entry["icl"][key], entry["best"][key]["held_out"]
        got = entry["recovered" + end]
        if got is not None:
            close("recovered" + end, got, (mine - zero) / (icl - zero), 1e-9)
        else:  # its gain is less than 2.33 errors, which 1000 draws tell to a tenth
            gain = np.array([int(a) - int(b) for a, b in zip(entry["icl"][key + "_right"],
                                                             entry["zero_shot"][key + "_right"])])
            error = gain.std() / np.sqrt(len(gain))
            equal("recovered" + end + " is left out", bool(gain.mean() <= 2.6 * error), True)


def cosine(x, y):
    x, y = x.astype(np.float64), y.astype(np.float64)
    size = np.linalg.norm(x) * np.linalg.norm(y)
    return x @ y / size if size > 0 else np.nan


def check_answers(lens, states, task, part, name):
    scores = lens.norm_scores(states[:, -1])
    tokens = task.tokens[task.used]
    rows = np.flatnonzero(task.target >= 0)
    y = task.target[rows]
    over = {"restricted": task.used[scores[rows][:, tokens].argmax(1)] == y,
            "full": scores[rows].argmax(1) == task.tokens[y]}
    for key, right in over.items():
        equal(f"{name} {key}", part[key + "_right"], "".join("01"[int(x)] for x in right))
        close(f"{name} {key} share", part[key], right.mean(), 1e-12)
    lp = log_softmax(scores[rows])[np.arange(len(rows)), task.tokens[y]]
    close(f"{name} log p", part["log_p"], lp.mean(), 2e-5, 2e-5)


def first_of(x, tie):
    """The index of the largest; what does not lead by more than a tie leaves the lower one."""
    best = 0
    for k in range(1, len(x)):
        if x[k] > x[best] + tie:
            best = k
    return best


def check_centred(lens, zero, task, part):
    n, layers = zero.shape[:2]
    rows = np.flatnonzero(task.target >= 0)
    tokens = task.tokens[task.used]
    y = np.searchsorted(task.used, task.target)
    right = {own: np.zeros((layers, n), bool) for own in (False, True)}
    for l in range(layers):
        s = zero[:, l].astype(np.float64) @ lens.gain[tokens].T
        mean = [s[[i for i in rows if i % 2 == h]].mean(0) for h in (0, 1)]
        for own in right:
            for i in rows:
                h = i % 2 if own else 1 - i % 2
                right[own][l, i] = first_of(s[i] - mean[h], 1e-9 * np.abs(s[i]).max()) == y[i]
    close("centred by layer", part["by_layer"], right[False][:, rows].mean(1), 1e-12)
    held = np.zeros(n, bool)
    for h in (0, 1):
        hits = right[True][:, h::2].sum(1)
        best = layers - 1 - int(hits[::-1].argmax())  # the latest of several
        held[1 - h::2] = right[False][best, 1 - h::2]
    close("centred held out", part["held_out"], held[rows].mean(), 1e-12)


def check_queries(folder, lens, zero, icl, task, entry):
    """per_query.csv: its answers, and that it agrees with the document."""
    with open(folder + "/per_query.csv", newline="", encoding="utf-8") as f:
        rows = [r for r in csv.DictReader(f) if int(r["shots"]) == entry["k"]]
    equal("queries of the table", [int(r["query"]) for r in rows], list(range(len(zero))))
    counts = [r for r in rows if r["counts"] == "1"]
    for way, states, part in (("zero", zero, entry["zero_shot"]), ("icl", icl, entry["icl"])):
        scores = lens.norm_scores(states[:, -1])
        close(way + " tokens", [int(r[way + "_token"]) for r in rows], scores.argmax(1))
        close(way + " labels", [int(r[way + "_label"]) for r in rows],
              task.used[scores[:, task.tokens[task.used]].argmax(1)])
        close(way + " log p", np.mean([float(r[way + "_log_p"]) for r in counts]), part["log_p"], 1e-9)
        for key, end in (("restricted_right", "_right"), ("full_right", "_right_full")):
            equal(way + end, "".join(r[way + end] for r in counts), part[key])
    for key, end in (("restricted", "_right"), ("full", "_right_full")):
        equal("retrieval" + end, "".join(r["retrieval" + end] for r in counts),
              entry["best"][key]["right"])
    for r in counts:
        equal("retrieved label", r["retrieval_label"] == r["label_number"], r["retrieval_right"] == "1")
        equal("retrieved token", r["retrieval_token"] == r["label_token"],
              r["retrieval_right_full"] == "1")


def check_sweep(store, lens, part, folder):
    source, seed = part["source"], part["seed"]
    equal("lens of the sweep", part["lens"], "gain")
    zero, words = store.series(source, "true", 0, seed)
    task = Task(part, words)
    check_halves(words)
    layers = zero.shape[1]
    cells, readings = table(folder + "/sweep.csv"), table(folder + "/sweep_grid.csv")
    for entry in part["shots"]:
        k, controls = entry["k"], entry["controls"]
        icl, _ = store.series(source, "true", k, seed)
        flipped, _ = store.series(source, "flipped", k, seed)
        other = controls["other_task"]["source"]
        d = store.series(other, "true", k, seed)[0].astype(np.float64) - \
            store.series(other, "true", 0, seed)[0].astype(np.float64)
        mean = lens.Z[task.tokens[task.used]].mean(0).astype(np.float32)
        contexts = shift(icl, zero) + shift(flipped, zero)
        contexts += [[d[:, l].mean(0).astype(np.float32)] * 2 for l in range(layers)]
        if part["projection"]:
            P = safetensors(folder + "/../" + part["projection"])["P"]
            contexts = [[(P @ c.astype(np.float64)).astype(np.float32) for c in two] for two in contexts]
        contexts += [[mean, mean]]
        sweep = Sweep(lens, zero, task, contexts, part["lambda_scale"] == "relative")
        name = f"sweep k={k}"
        check_answers(lens, zero, task, entry["zero_shot"], name + " zero-shot")
        check_answers(lens, icl, task, entry["icl"], name + " icl")
        for over, key in enumerate(("restricted", "full")):
            half = layers // 2
            for what, of, first, count in (
                    ("best", entry["best"], 0, layers), ("early", entry["early"], 0, half),
                    ("late", entry["late"], half, layers - half),
                    ("flipped", controls["flipped"], layers, layers),
                    ("other task", controls["other_task"], 2 * layers, layers),
                    ("label mean", controls["label_mean"], 3 * layers, 1)):
                sweep.check(f"{name} {what} {key}", of[key], over, first, count)
            steps = [best_range(*sweep.of(over, c, l, None, False))
                     for c in range(layers) for l in range(layers)]
            mine = cells["shots"] == k
            close(f"{name} cells {key}", cells[key][mine],
                  [s[0] / task.counted for s in steps], 1e-12)
            close(f"{name} from {key}", cells[key + "_from"][mine],
                  [s[1][0] for s in steps], 1e-9, 1e-12)
            close(f"{name} to {key}", cells[key + "_to"][mine], [s[1][1] for s in steps], 1e-9)
            grid = readings["lambda"][readings["shots"] == k]
            want = []
            for j, x in enumerate(grid):
                pair = j // (len(grid) // (layers * layers))
                low, high = sweep.of(over, pair // layers, pair % layers, None, False)
                want.append(((low <= x) & (x < high)).sum() / task.counted)
            close(f"{name} grid {key}", readings[key][readings["shots"] == k], want, 1e-12)
        check_centred(lens, zero, task, controls["centred"])
        check_threshold(lens, zero, task, controls["threshold"])
        check_recovered(entry)
        for group, of in ((1, "flipped"), (2, "other_task")):
            close(f"{name} cosines of {of}", controls[of]["cosine"],
                  [cosine(contexts[l][0], contexts[group * layers + l][0]) for l in range(layers)],
                  1e-6, 1e-9)
        check_queries(folder, lens, zero, icl, task, entry)


# ---- Steering --------------------------------------------------------------------------------
def normals(seed, stream, count):
    """Philox 4x32-10 (Salmon and others 2011), two words a uniform number, two of these a normal one."""
    words, out = [], []
    for at in range(count):
        c = [at & 0xffffffff, at >> 32, stream & 0xffffffff, stream >> 32]
        k = [seed & 0xffffffff, seed >> 32]
        for _ in range(10):
            a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [(b >> 32) ^ c[1] ^ k[0], b & 0xffffffff, (a >> 32) ^ c[3] ^ k[1], a & 0xffffffff]
            k = [(k[0] + 0x9E3779B9) & 0xffffffff, (k[1] + 0xBB67AE85) & 0xffffffff]
        words += c
    uniform = [((words[2 * i] << 32 | words[2 * i + 1]) >> 11) * 2.0**-53 for i in range(2 * count)]
    for i in range(count):
        out.append(np.sqrt(-2 * np.log(1 - uniform[2 * i])) * np.cos(2 * np.pi * uniform[2 * i + 1]))
    return np.array(out)


def check_steer(store, lens, part):
    source, seed = part["source"], part["seed"]
    zero, words = store.series(source, "true", 0, seed)
    task = Task(part, words)
    n, layers = zero.shape[:2]
    whole = part["answer"] != "first"
    sequence = part["answer_tokens"] if whole else [[t] for t in task.tokens]
    target = [part["label_words"].index(w) for w in words] if whole else task.target
    rows = np.flatnonzero(np.array(target) >= 0)
    # every token of every answer: whose, which, and the state before it
    asked = [(i, t) for i in rows for t in range(len(sequence[target[i]]))]
    owner = np.array([i for i, _ in asked])
    token = np.array([sequence[target[i]][t] for i, t in asked])
    first = np.array([t == 0 for _, t in asked])
    q = store.after(source, seed, [(i, sequence[target[i]][:t]) for i, t in asked]).astype(np.float64)
    equal("states before answers", np.array_equal(q[first], zero[rows, -1]), True)
    length = np.linalg.norm(zero[:, -1].astype(np.float64), axis=1).mean()
    objects = np.unique([s[0] for s in sequence]) if whole else task.tokens[task.used]
    demos = {"positive": "true", "wrong_object": "flipped", "other_relation": "foreign",
             "random": "true"}  # whose norms it has

    def measure(x):
        lp = log_softmax(lens.norm_scores(x.astype(np.float32)))
        each = lp[np.arange(len(token)), token]
        own = np.array([each[owner == i].sum() for i in rows])
        p, mass = np.exp(own), np.exp(lp[first][:, objects]).sum(1)
        odds = own - np.log(np.maximum(mass - p, 1e-16 * p))
        return own, odds, mass

    def error(x):
        return x.std(ddof=1) / np.sqrt(len(x))

    for entry in part["shots"]:
        name = f"steer k={entry['k']}"
        own0, odds0, _ = measure(q)
        right = {}  # log p with right facts, which come first
        close(name + " baseline", entry["baseline"]["log_p"], own0.mean(), 5e-5, 5e-5)
        for curve in entry["curves"]:
            with_, _ = store.series(source, demos[curve["context"]], entry["k"], seed)
            for l in range(layers):
                d = with_[:, l].astype(np.float64) - zero[:, l].astype(np.float64)
                c = (d.sum(0) - d) / (n - 1)
                size = np.linalg.norm(c, axis=1, keepdims=True)
                if curve["context"] == "random":
                    way = normals(seed, (1 << 57) + l, c.shape[1])
                    c = size * way / np.linalg.norm(way)
                if part["lambda_scale"] == "relative":
                    c = np.divide(c * length, size, out=np.zeros_like(c), where=size > 0)
                own, odds, mass = measure(q + curve["lambda"] * c[owner])
                at = f"{name} {curve['context']} {curve['lambda']} layer {l}"
                close(at + " log p", curve["log_p"][l], own.mean(), 5e-5, 5e-5)
                close(at + " gain", curve["log_p_gain"][l], (own - own0).mean(), 5e-5, 5e-5)
                right.setdefault((curve["lambda"], l), own)
                behind = right[curve["lambda"], l] - own
                close(at + " gain's error", curve["log_p_gain_se"][l], error(own - own0), 1e-4, 5e-5)
                close(at + " behind", curve["behind_right"][l], behind.mean(), 5e-5, 1e-4)
                close(at + " behind's error", curve["behind_right_se"][l], error(behind), 1e-4, 5e-5)
                close(at + " p", curve["p"][l], np.exp(own).mean(), 1e-4, 1e-9)
                close(at + " mass", curve["mass"][l], mass.mean(), 5e-5, 1e-7)
                close(at + " odds", curve["log_odds"][l], odds.mean(), 2e-4, 2e-4)
                close(at + " odds gained", curve["log_odds_gain"][l], (odds - odds0).mean(), 2e-4, 4e-4)


# ---- The probe -------------------------------------------------------------------------------
def fit(X, y, C):
    """argmin of w'w/2 + C sum log(1 + exp(-y <w, x>)), by damped Newton steps."""
    w = np.zeros(X.shape[1])

    def value(w):
        return w @ w / 2 + C * np.logaddexp(0, -y * (X @ w)).sum()

    for _ in range(100):
        s = 1 / (1 + np.exp(np.clip(y * (X @ w), -500, 500)))
        g = w - C * X.T @ (y * s)
        if np.abs(g).max() < 1e-10:
            break
        step = np.linalg.solve(np.eye(len(w)) + C * (X.T * (s * (1 - s))) @ X, g)
        t, f = 1.0, value(w)
        while value(w - t * step) > f and t > 1e-8:
            t /= 2
        w = w - t * step
    return w


def predict(X, y, C, T, classes):
    """Classes of T by one against the rest; X and T in coordinates of the training rows."""
    scores = np.array([T @ fit(X, np.where(y == c, 1.0, -1.0), C) for c in classes])
    return classes[scores.argmax(0)]


def separability(h, target):
    hits, counted = 0, int((target >= 0).sum())
    for half in (0, 1):
        rows = [i for i in range(half, len(h), 2) if target[i] >= 0]
        rest = [i for i in range(1 - half, len(h), 2) if target[i] >= 0]
        X, y = h[rows].astype(np.float64), target[rows]
        classes = np.unique(y)
        if len(classes) < 2:
            return np.nan

        def coordinates(train, test):  # by the mean and deviation of the training rows, in their span
            sd = train.std(0, ddof=1)

            def scaled(M):
                M = np.divide(M - train.mean(0), sd, out=np.zeros_like(M), where=sd > 0)
                return np.hstack([M, np.ones((len(M), 1))])
            A, B = scaled(train), scaled(test)
            _, _, V = np.linalg.svd(A, full_matrices=False)  # |w| is the same in its coordinates
            return A @ V.T, B @ V.T

        fold, seen = np.zeros(len(y), int), {}
        for i, c in enumerate(y):
            fold[i] = seen.get(c, 0) % 5
            seen[c] = seen.get(c, 0) + 1
        best, most = None, -1
        for C in (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0):
            right = 0
            for f in range(5):
                inner = fold != f
                if not inner.any() or inner.all() or len(np.unique(y[inner])) < 2:
                    continue
                A, B = coordinates(X[inner], X[~inner])
                right += (predict(A, y[inner], C, B, np.unique(y[inner])) == y[~inner]).sum()
            if right > most:
                best, most = C, right
        A, B = coordinates(X, h[rest].astype(np.float64))
        hits += (predict(A, y, best, B, classes) == target[rest]).sum()
    return hits / counted


def check_probe(store, lens, part, layers):
    for curve in part["curves"]:
        h, words = store.series(part["source"], "true", curve["k"], part["seed"])
        task = Task(part, words)
        rows = np.flatnonzero(task.target >= 0)
        Z = lens.Z[task.tokens[task.used]]
        Z = Z / np.linalg.norm(Z, axis=1, keepdims=True)
        for l in range(h.shape[1]):
            name = f"probe k={curve['k']} layer {l} "
            x = h[rows, l].astype(np.float64)
            cosine = (x / np.linalg.norm(x, axis=1, keepdims=True)) @ Z.T
            y = np.searchsorted(task.used, task.target[rows])
            own = cosine[np.arange(len(rows)), y]
            cosine[np.arange(len(rows)), y] = -np.inf
            close(name + "alignment", curve["alignment"][l], own.mean(), 1e-6, 1e-7)
            close(name + "margin", curve["margin"][l], (own - cosine.max(1)).mean(), 1e-6, 1e-7)
            if l in layers(h.shape[1]):
                # liblinear stops short of the optimum: a state on the border may go either way
                close(name + "separability", curve["separability"][l],
                      separability(h[:, l], task.target), 0, 1.5 / task.counted)


def main():
    if len(sys.argv) != 5:
        raise SystemExit(__doc__)
    states, bank, about, folder = sys.argv[1:]
    with open(about, encoding="utf-8") as f:
        facts = json.load(f)
    if facts["norm"] != "rms" or facts["norm_bias"]:
        raise SystemExit("only models with a root mean square norm without a bias are computed again")
    study = {}
    for part in ("study", "sweep", "steer"):
        if os.path.exists(f"{folder}/{part}.json"):
            with open(f"{folder}/{part}.json", encoding="utf-8") as f:
                study.update(json.load(f) if part == "study" else {part: json.load(f)})
    store, lens = Store(states), Lens(safetensors(bank), facts["norm_epsilon"])
    if study.get("neff"):
        check_neff(store, lens, study["neff"])
    if study.get("sweep"):
        check_sweep(store, lens, study["sweep"], folder)
    if study.get("steer"):
        check_steer(store, lens, study["steer"])
    if study.get("probe"):
        # every layer of a small model; of a large one the last and two more
        check_probe(store, lens, study["probe"],
                    lambda n: range(n) if n < 8 else (n // 2, 3 * n // 4, n - 1))
    for line in bad[:20]:
        print("recompute:", line, file=sys.stderr)
    print(f"{checks} numbers, {len(bad)} differ")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
