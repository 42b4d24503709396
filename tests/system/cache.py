"""Runs `cgam cache` on random keys and compares with NumPy; kills writers; asks a server."""
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np

from harness import BUILD, CGAM, ask, check, close, finish, refuse, run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "serve"))
rng = np.random.default_rng(40)
D = 6


def numbers(x):
    return json.dumps([float(v) for v in x])


def trace(folder):
    """Random puts, gets and drops of three tenants beside a list in Python."""
    cache, entries, now = os.path.join(folder, "T.safetensors"), [], 1000.0
    keys, hits = rng.normal(size=(8, D)).astype("f4"), 0
    for step in range(90):
        now += float(rng.integers(1, 20))
        kind, tenant = rng.choice(["put", "put", "get", "get", "drop"]), str(rng.choice(["", "a", "b"]))
        key = keys[rng.integers(len(keys))]
        words = ["--cache", cache, "--now", now] + (["--tenant", tenant] if tenant else [])
        if kind == "put" or not entries:
            ttl = float(rng.choice([0, 60]))
            doc = ask("cache", "put", *words, "--key", numbers(key), "--value", f"v{step}", *(["--ttl", ttl] if ttl else []))
            same = [e for e in entries if e[1] == tenant and np.array_equal(e[0], key)]
            kept = [e for e in entries if not (e[1] == tenant and np.array_equal(e[0], key))]
            check(doc["replaced"] == bool(same), step, doc)
            entries = [e for e in kept if now < e[4]] + [(key, tenant, f"v{step}", now, now + (ttl or np.inf))]
            check(doc["n"] == len(entries), step, doc, len(entries))
        elif kind == "get":
            q = (key + 0.3 * rng.normal(size=D)).astype("f4")
            doc = ask("cache", "get", *words, "--key", numbers(q), "--threshold", 0.9, "--beta", 7)
            live = [e for e in entries if e[1] == tenant and now < e[4]]
            check(doc["among"] == len(live), step, doc)
            if not live:
                check(doc["hit"] is False and doc["score"] is None and doc["p_none"] == 1, step, doc)
                continue
            Z = np.array([e[0] for e in live], float)
            r = Z @ q.astype(float) / np.linalg.norm(Z, axis=1) / np.linalg.norm(q.astype(float))
            w = np.exp(7 * np.append(r, 0.9))
            best = live[int(r.argmax())]
            close(doc["score"], r.max(), 1e-12, step)
            close(doc["p"], w[r.argmax()] / w.sum(), 1e-12, step)
            close(doc["p_none"], w[-1] / w.sum(), 1e-12, step)
            check(doc["hit"] == (r.max() >= 0.9), step, doc)
            hits += doc["hit"]
            if doc["hit"]:
                check(doc["value"] == best[2] and doc["age"] == now - best[3] and np.allclose(doc["key"], best[0]), step, doc)
            else:
                check(doc["value"] is None and doc["key"] is None and doc["age"] is None, step, doc)
        else:
            doc = ask("cache", "drop", *words, "--key", numbers(key))
            gone = [e for e in entries if e[1] == tenant and np.array_equal(e[0], key)]
            entries = [e for e in entries if not any(e is g for g in gone) and now < e[4]]
            check(doc["dropped"] == len(gone) and doc["n"] == len(entries), step, doc)
    check(hits > 3, "too few hits to have tested any", hits)
    shown = ask("cache", "show", "--cache", cache, "--now", now)
    check({t["tenant"]: t["n"] for t in shown["tenants"]} ==
          {t: sum(e[1] == t for e in entries) for t in {e[1] for e in entries}} and shown["n"] == len(entries), shown)
    if entries:
        check(ask("bank", "show", cache, "--check")["whole"], "digests")


def isolation(folder):
    """No number of an answer depends on what other tenants have."""
    cache = os.path.join(folder, "I.safetensors")
    key, words = rng.normal(size=D), ["--cache", cache, "--now", 5]
    ask("cache", "put", *words, "--key", numbers(key), "--value", "mine", "--tenant", "a")
    before = ask("cache", "get", *words, "--key", numbers(key), "--tenant", "a")
    for i in range(5):
        ask("cache", "put", *words, "--key", numbers(key + 1e-3 * i), "--value", f"theirs{i}", "--tenant", f"b{i}")
    check(ask("cache", "get", *words, "--key", numbers(key), "--tenant", "a") == before, "others have an influence")
    check(before["hit"] and before["value"] == "mine", before)
    for tenant in ([], ["--tenant", "c"], ["--tenant", "A"], ["--tenant", "a "]):
        doc = ask("cache", "get", *words, "--key", numbers(key), *tenant)
        check(not doc["hit"] and doc["among"] == 0 and doc["score"] is None, tenant, doc)
    check(ask("cache", "drop", *words, "--tenant", "b1")["dropped"] == 1, "one tenant")
    check(ask("cache", "drop", *words, "--tenant", "a")["n"] == 4, "the others stay")


def upper(k, n):
    """The upper end of Clopper and Pearson's interval: the p with P(X <= k) = 0.025, from the binomial sum itself."""
    from math import comb
    from fractions import Fraction
    low, high = 0.0, 1.0
    for _ in range(60):
        p = Fraction(0.5 * (low + high))
        tail = sum(comb(n, i) * p**i * (1 - p)**(n - i) for i in range(k + 1))
        low, high = (float(p), high) if tail > Fraction(1, 40) else (low, float(p))
    return low


def calibration(folder):
    cache, path = os.path.join(folder, "K.safetensors"), os.path.join(folder, "p.jsonl")
    rows = []
    for i in range(260):
        a = rng.normal(size=3)
        rows.append((a, a + (0.2 if i % 2 else 1.5) * rng.normal(size=3), bool(i % 2)))
    with open(path, "w", encoding="ascii") as f:
        f.writelines(json.dumps({"a": list(a), "b": list(b), "same": s}) + "\n" for a, b, s in rows)
    score = np.array([float(a.astype("f4").astype(float) @ b.astype("f4") / np.linalg.norm(a) / np.linalg.norm(b)) for a, b, _ in rows])
    same = np.array([s for *_, s in rows])
    for budget in (0.05, 0.1, 0.3):
        doc = ask("cache", "calibrate", "--pairs", path, "--budget", budget, "--cache", cache)
        t, n = doc["threshold"], int((~same).sum())
        k = int((score[~same] >= t).sum())
        check(doc["met"] and doc["stored"] and doc["different_hits"] == k and doc["different"] == n, doc)
        close(doc["false_hits"], k / n, 1e-12)
        close(doc["hits"], (score[same] >= t).mean(), 1e-12)
        close(doc["false_hits_ci95"][1], upper(k, n), 1e-9, budget)
        check(doc["false_hits_ci95"][1] <= budget < upper(k + 1, n), "not the lowest threshold", doc)
        check(ask("cache", "show", "--cache", cache)["threshold"] == t, "the threshold is kept")
    doc = ask("cache", "calibrate", "--pairs", path, "--budget", 0.01, "--cache", cache, status=1)
    check(not doc["met"] and not doc["stored"] and doc["needed"] == 368 and doc["false_hits_ci95"][1] > 0.01, doc)
    # texts that differ by their sign score higher than those that mean the same
    with open(path, "w", encoding="ascii") as f:
        for i in range(400):
            a = rng.normal(size=3)
            b, c = a + 0.01 * rng.normal(size=3), a + rng.normal(size=3)
            f.write(json.dumps({"a": list(a), "b": list(b), "same": False}) + "\n")
            f.write(json.dumps({"a": list(a), "b": list(a * 0.2 + c), "same": True}) + "\n")
    doc = ask("cache", "calibrate", "--pairs", path, "--cache", cache, status=1)
    check(not doc["met"] and doc["same_hits"] < 5 and doc["false_hits"] <= 0.01, doc)
    for line, pieces in (("{", "p.jsonl:1"), ('{"a": [1], "b": [1]}', "same"), ('{"a": [1], "b": [1, 2], "same": true}', "length"),
                         ('{"a": "x", "b": [1], "same": true}', "one kind"), ('{"a": [0], "b": [1], "same": false}', "zero"),
                         ('{"a": 3, "b": [1], "same": false}', "neither"), ('{"a": [1], "b": [1], "same": true}', "no pair"), ("", "no pairs")):
        with open(path, "w", encoding="ascii") as f:
            f.write(line + "\n")
        refuse(2, [pieces], "cache", "calibrate", "--pairs", path)


def refusals(folder):
    cache, missing = os.path.join(folder, "R.safetensors"), os.path.join(folder, "none.safetensors")
    ask("cache", "put", "--cache", cache, "--key", "[1, 2]", "--value", "x")
    for words, piece in ((("get", "--cache", missing, "--key", "[1]"), "No such file"), (("drop", "--cache", missing, "--key", "[1]"), "no such file"),
                         (("get", "--cache", cache, "--key", "[1]"), "d = 1"), (("put", "--cache", cache, "--key", "[1]", "--value", "x"), "d = 1"),
                         (("put", "--cache", cache, "--key", "[0, 0]", "--value", "x"), "zero"), (("get", "--cache", cache, "--key", "[0, 0]"), "zero"),
                         (("drop", "--cache", cache), "or --expired"), (("drop", "--cache", cache, "--expired", "--tenant", "a"), "expired"),
                         (("put", "--cache", os.path.join(folder, "x.npy"), "--key", "[1]", "--value", "x"), ".safetensors"),
                         (("get", "--cache", cache, "--key", "text:"), "empty"), (("get", "--cache", cache, "--key", "no.npy"), "no.npy"),
                         (("get", "--cache", cache, "--key", "hello", "--model", missing), "none.safetensors")):
        refuse(2, [piece], "cache", *words)
    check(not os.path.exists(missing), "a failed call leaves a file")
    where = dict(os.environ, HOME=folder, XDG_CACHE_HOME=folder)
    done = subprocess.run([CGAM, "cache", "get", "--cache", cache, "--key", "hello"], env=where, capture_output=True, text=True)
    check(done.returncode == 2 and "model" in done.stderr and done.stderr.count("\n") == 1, done.stderr)
    bank = os.path.join(folder, "bank.safetensors")
    np.save(os.path.join(folder, "Z.npy"), np.eye(3))
    ask("bank", "pack", "--from", os.path.join(folder, "Z.npy"), "--out", bank)
    refuse(2, ["not a cache"], "cache", "show", "--cache", bank)
    data = open(cache, "rb").read()
    for i in range(0, len(data), 97):  # one byte changed: refused or answered, never a crash
        damaged = os.path.join(folder, "damaged.safetensors")
        with open(damaged, "wb") as f:
            f.write(data[:i] + bytes([data[i] ^ 0x41]) + data[i + 1:])
        check(run("cache", "get", "--cache", damaged, "--key", "[1, 2]")[0] in (0, 2), "byte", i)


def at_once(folder):
    """Writers take turns, none is lost, one that is killed leaves a whole cache; readers always find one."""
    cache = os.path.join(folder, "W.safetensors")
    loop = 'for i in 1 2 3 4 5 6; do "{0}" cache put --cache "{1}" --key "[$i, {2}]" --value v --tenant {2} >/dev/null || exit 1; done'
    writers = [subprocess.Popen(loop.format(CGAM, cache, w), shell=True) for w in (1, 2, 3)]
    reads = 0
    while any(w.poll() is None for w in writers) or reads < 3:
        if os.path.exists(cache):
            check(0 <= ask("cache", "show", "--cache", cache)["n"] <= 18, "a reader meanwhile")
            reads += 1
    check(all(w.wait() == 0 for w in writers), "a writer fails")
    check(ask("cache", "show", "--cache", cache)["n"] == 18, "an entry is lost")
    for i in range(12):
        n = ask("cache", "show", "--cache", cache)["n"]
        writer = subprocess.Popen([CGAM, "cache", "put", "--cache", cache, "--key", f"[{i}, 0.5]", "--value", "k"], stdout=subprocess.DEVNULL)
        time.sleep(float(rng.uniform(0, 0.05)))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        check(ask("cache", "show", "--cache", cache)["n"] in (n, n + 1) and ask("bank", "show", cache, "--check")["whole"], "killed")


def model(folder):
    """Keys that are texts, by a tiny model."""
    tiny, cache = os.path.join(folder, "m.gguf"), os.path.join(folder, "M.safetensors")
    subprocess.run([os.path.join(BUILD, "tests/python/tiny_model"), tiny], check=True)
    if run("lm", "states", "--model", tiny, "--prompt", "the")[0] != 0:
        return print("skipped: texts as keys, no libllama")
    words = ["--cache", cache, "--model", tiny]
    ask("cache", "put", *words, "--key", "the good film", "--value", "yes")
    doc = ask("cache", "get", *words, "--key", "the good film")
    check(doc["hit"] and doc["value"] == "yes" and doc["key"] == "the good film" and doc["score"] > 0.99999, doc)
    ask("cache", "put", *words, "--key", "the good film", "--value", "no")
    check(ask("cache", "get", *words, "--key", "the good film")["value"] == "no", "a text replaces itself")
    shown = ask("cache", "show", "--cache", cache)
    check(shown["model"] == "m.gguf" and shown["pool"] == "mean" and shown["n"] == 1, shown)
    refuse(2, ["pool mean"], "cache", "put", *words, "--key", "a film", "--value", "x", "--pool", "last")
    refuse(2, ["layer"], "cache", "get", *words, "--key", "a film", "--layer", "99")
    states = os.path.join(folder, "h.npy")
    ask("lm", "states", "--model", tiny, "--prompt", "the good film", "--tokens", "all", "--save", states)
    last = np.load(states)[-1]
    mean = last[1:].mean(0) if last.shape[0] > 3 else last.mean(0)
    doc = ask("cache", "get", "--cache", cache, "--key", numbers(mean))
    check(doc["score"] > 0.9999, "the vector is the mean of the states", doc["score"])
    ask("cache", "drop", "--cache", cache, "--key", "the good film")
    check(ask("cache", "show", "--cache", cache)["n"] == 0, "dropped by its text, without a model")


def rows(path):
    with open(path, "rb") as f:
        data = f.read()
    size, = struct.unpack("<Q", data[:8])
    part = json.loads(data[8:8 + size])["rows"]
    return np.frombuffer(data, "<f4", int(np.prod(part["shape"])), 8 + size + part["data_offsets"][0]).reshape(part["shape"])


def embed(folder):
    """Texts to a packed bank: each row is the pool of the states that `lm states` gives for its text."""
    tiny, texts, bank = (os.path.join(folder, name) for name in ("m.gguf", "texts.txt", "E.safetensors"))
    if run("lm", "states", "--model", tiny, "--prompt", "the")[0] != 0:
        return
    lines = ["the good film", "a bad film is", "the capital of France"]
    with open(texts, "w", encoding="ascii") as f:
        f.writelines(line + "\n" for line in lines)
    for pool in "last", "mean":
        for layer in 1, None:
            doc = ask("bank", "embed", "--texts", texts, "--model", tiny, "--pool", pool, "--out", bank, *(["--layer", layer] if layer else []))
            check(doc["n"] == 3 and doc["pool"] == pool and doc["names"] and doc["sketch"] and (doc["layer"] == layer or not layer), doc)
            for i, line in enumerate(lines):
                h = os.path.join(folder, "h.npy")
                ask("lm", "states", "--model", tiny, "--prompt", line, "--tokens", "all", "--save", h)
                state = np.load(h)[layer or -1].astype(float)
                want = state[-1] if pool == "last" else state[1:].mean(0)
                close(rows(bank)[i], want, 1e-2 * np.abs(want).max(), pool, layer, line)
    names = ask("bank", "names", "--bank", bank)["names"]
    check([n["name"] for n in names] == lines and ask("bank", "show", bank, "--check")["whole"], names)
    refuse(2, [".safetensors"], "bank", "embed", "--texts", texts, "--model", tiny, "--out", os.path.join(folder, "E.npy"))
    with open(texts, "w", encoding="ascii") as f:
        f.write(json.dumps({"prompt": "a\nb"}) + "\n")
    refuse(2, ["texts.txt:1", "several lines"], "bank", "embed", "--texts", texts, "--model", tiny, "--out", bank)


def over_http(folder):
    from client import server
    cache = os.path.join(folder, "H.safetensors")
    secret = os.path.join(folder, "secret.npy")
    np.save(secret, np.ones(3))
    with server("--cache", f"c={cache}") as s:
        code, doc = s.verb("cache get", cache="c", key=[1, 0, 0])
        check(code == 200 and doc["hit"] is False and doc["among"] == 0, "before the first put", doc)
        code, doc = s.verb("cache put", cache="c", key=[1, 0, 0], value="one", tenant="t")
        check(code == 200 and doc["n"] == 1 and folder not in json.dumps(doc), doc)
        code, doc = s.verb("cache get", cache="c", key=[1, 0.1, 0], tenant="t")
        check(code == 200 and doc["hit"] and doc["value"] == "one", doc)
        code, doc = s.verb("cache get", cache="c", key=[1, 0.1, 0])
        check(code == 200 and not doc["hit"], doc)
        code, doc = s.verb("cache get", cache=cache, key=[1, 0, 0])
        check(code == 404, "a path is no id", code, doc)
        for text in (secret, "file:" + secret):
            code, doc = s.verb("cache get", cache="c", key=text, tenant="t", model="none")
            check(code in (400, 404), "a key is never a path", code, doc)
        code, doc = s.verb("cache calibrate", pairs={"text": '{"a": [1, 0], "b": [0, 1], "same": false}\n'})
        check(code == 200 and doc["met"] is False, doc)
        check([c["id"] for c in json.loads(s.request("GET", "/api")[2])["caches"]] == ["c"], "GET /api lists it")
    check(ask("cache", "get", "--cache", cache, "--key", "[1, 0, 0]", "--tenant", "t")["hit"], "the file is the same")


with tempfile.TemporaryDirectory() as folder:
    for part in (trace, isolation, calibration, refusals, at_once, model, embed, over_http):
        part(folder)
finish()
