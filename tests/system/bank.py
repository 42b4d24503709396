"""Runs `cgam bank` and `cgam recall` on packed banks; crash.py kills some."""
import fcntl
import json
import os
import struct
import subprocess
import tempfile
import time

import numpy as np

from harness import CGAM, ask, check, close, finish, refuse, run

rng = np.random.default_rng(17)
D = 12


def save(folder, name, array):
    path = os.path.join(folder, name)
    np.save(path, array)
    return path


def lines(folder, name, words):
    path = os.path.join(folder, name)
    with open(path, "w") as f:
        f.writelines(w + "\n" for w in words)
    return path


def arrays(path):
    """The file by the format's own description, without the library."""
    with open(path, "rb") as f:
        data = f.read()
    size, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    types = {"F64": "f8", "F32": "f4", "I64": "i8", "I32": "i4", "I8": "i1", "U8": "u1"}
    end, out = 0, {}
    notes = header.pop("__metadata__")
    for name, t in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, stop = t["data_offsets"]
        check(begin == end, name, "does not begin where the one before ends")
        end = stop
        out[name] = np.frombuffer(data, types[t["dtype"]], (stop - begin) // np.dtype(
            types[t["dtype"]]).itemsize, 8 + size + begin).reshape(t["shape"])
    check(8 + size + end == len(data), "the arrays end with the file")
    return notes, out


def verbs(folder):
    Z = rng.normal(size=(40, D)).astype("f4")
    more = rng.normal(size=(3, D)).astype("f4")
    rows, bank = save(folder, "Z.npy", Z), os.path.join(folder, "B.safetensors")
    names = lines(folder, "Z.names", [f"w{i}" for i in range(40)])
    doc = ask("bank", "pack", "--from", rows, "--names", names, "--alpha", "0.02", "--alpha", "0.01", "--out", bank)
    check(doc["n"] == doc["live"] == 40 and doc["d"] == D and doc["dtype"] == "f32" and doc["sketch"]
          and doc["alphas"] == [0.02, 0.01] and doc["bytes"] == os.path.getsize(bank), doc)
    notes, parts = arrays(bank)
    check(np.array_equal(parts["rows"], Z), "the rows are in it")
    close(parts["norm2"], (Z.astype(float)**2).sum(1), 1e-12, "norms")
    check(bytes(parts["names"]).decode().split() == [f"w{i}" for i in range(40)], "names")
    hat = parts["sketch.rows"].astype(float) * np.repeat(parts["sketch.scale"], D, axis=1)
    units = 2.0 ** np.frexp(np.sqrt(parts["norm2"].max()) * (1 + 2.0**-19))[1]
    left = np.linalg.norm(Z.astype(float) / units - hat, axis=1)
    check(np.all(left <= parts["sketch.rest"]) and np.all(left > 0.99 * parts["sketch.rest"]), "what the sketch leaves out")

    q = save(folder, "q.npy", Z[[5, 9]] + 0.1 * rng.normal(size=(2, D)))
    c = save(folder, "c.npy", rng.normal(size=D))
    for more_words in ([], ["--fast"], ["--mode", "coupled"], ["--none", "1"], ["--only", lines(folder, "few", ["w5", "w8"])]):
        words = ["--query", q, "--context", c, "--alpha", "0.02", "--names", *more_words]
        check(ask("recall", "--bank", bank, *words) == ask("recall", "--bank", rows, *words), more_words)
    check(ask("recall", "--bank", bank, "--query", "rows:w5")["queries"] ==
          ask("recall", "--bank", rows, "--query", "rows:5")["queries"], "memories by name")

    doc = ask("bank", "add", bank, "--from", save(folder, "more.npy", more), "--names", lines(folder, "m", "xyz"))
    check(doc["n"] == 43, doc)
    doc = ask("bank", "drop", bank, "--rows", "5,7-8")
    check(doc["n"] == 43 and doc["live"] == 40, doc)
    doc = ask("bank", "drop", bank, "--names", lines(folder, "d", ["w0"]))
    check(doc["live"] == 39, doc)
    doc = ask("bank", "put", bank, "--rows", "42", "--from", save(folder, "one.npy", Z[5:6]))
    kept = [i for i in range(43) if i not in (0, 5, 7, 8)]
    got = ask("recall", "--bank", bank, "--query", "rows:42", "--names", "--top", "3")
    check("39 of 43 memories" in run("recall", "--bank", bank, "--query", q)[1], "how many count")
    check(got["n"] == 43 and got["among"] == 39 and got["queries"][0]["winner"] in kept, got)
    check(got["queries"][0]["top_names"][0] == "z", got["queries"][0]["top_names"])
    anew = np.concatenate([Z, more])
    anew[42] = Z[5]
    few = save(folder, "few.npy", anew[kept])
    want = ask("recall", "--bank", few, "--query", q, "--context", c, "--top", "4", "--save-p", os.path.join(folder, "p0.npy"))
    got = ask("recall", "--bank", bank, "--query", q, "--context", c, "--top", "4", "--save-p", os.path.join(folder, "p1.npy"))
    for a, b in zip(got["queries"], want["queries"]):
        check(a["p"] == b["p"] and a["gap"] == b["gap"], a, b)
        check([i for i, _ in a["top"]] == [kept[i] for i, _ in b["top"]], "numbers stay")
    p0, p1 = np.load(os.path.join(folder, "p0.npy")), np.load(os.path.join(folder, "p1.npy"))
    check(p1.shape == (2, 43) and np.array_equal(p1[:, kept], p0) and p1[:, [0, 5, 7, 8]].sum() == 0, "p by numbers")
    refuse(2, ["memory 5 was dropped"], "recall", "--bank", bank, "--query", "rows:5")
    refuse(2, ["dropped"], "map", "--bank", bank)
    high = ask("landscape", "--bank", bank, "--query", "rows:41", "--beta", "9", "--starts", "4")
    check(high["points"][0]["winner"] == ask("recall", "--bank", bank, "--query", "rows:41", "--beta", "9", "--mode",
                                             "coupled")["queries"][0]["winner"], "a landscape knows memories by number")
    refuse(2, ["no memory 5"], "bank", "put", bank, "--rows", "5", "--from", os.path.join(folder, "one.npy"))
    refuse(2, ["3,7,10-12"], "bank", "drop", bank, "--rows", "3-1")
    refuse(2, ["0 to 42"], "bank", "drop", bank, "--rows", "43")
    refuse(2, ["no memory 3000000", "0 to 42"], "bank", "put", bank, "--rows", "1,0-3000000", "--from", few)
    refuse(2, ["0 to 42"], "bank", "drop", bank, "--rows", f"0-{2**63 - 1},1")
    refuse(2, ["rows", "names"], "bank", "drop", bank)
    refuse(2, ["not a packed bank"], "bank", "show", few)
    refuse(2, ["only packed banks"], "recall", "--bank", few, "--query", q, "--check")
    compact = os.path.join(folder, "compact.safetensors")
    doc = ask("bank", "pack", "--from", bank, "--dtype", "bf16", "--sketch", "no", "--normalize", "--out", compact)
    check(doc["n"] == doc["live"] == 39 and doc["dtype"] == "bf16" and not doc["sketch"] and doc["names"]
          and doc["normalized"] and doc["alphas"] == [], doc)
    got = ask("recall", "--bank", compact, "--query", "rows:z", "--names", "--top", "1")
    check(got["queries"][0]["top_names"] == ["z"], got["queries"][0]["top_names"])

    check(ask("bank", "show", bank, "--check")["whole"], "it is whole")
    data = bytearray(open(bank, "rb").read())
    data[8 + struct.unpack("<Q", data[:8])[0] + 100] ^= 1
    open(bank, "wb").write(data)
    doc = ask("bank", "show", bank, "--check", status=1)
    check(doc["whole"] is False and doc["damaged"] == "rows", doc)
    refuse(2, ["digest", "rows"], "recall", "--bank", bank, "--query", q, "--check")


def whole(bank, sizes):
    doc = ask("bank", "show", bank, "--check")
    check(doc.get("whole") and doc["n"] in sizes, doc)
    return doc["n"]


def at_once(folder):
    """Writers take turns, none is lost; readers always find a whole bank."""
    bank = os.path.join(folder, "W.safetensors")
    Z = rng.normal(size=(200, D))
    Z[3] *= 4
    ask("bank", "pack", "--from", save(folder, "W.npy", Z), "--out", bank)
    one, q = save(folder, "W1.npy", rng.normal(size=(1, D))), save(folder, "Wq.npy", Z[3])
    writers = [subprocess.Popen(f'for i in 1 2 3 4 5; do "{CGAM}" bank add "{bank}" --from "{one}" || exit 1; done',
                                shell=True, stdout=subprocess.DEVNULL) for _ in range(3)]
    reads = 0
    while any(w.poll() is None for w in writers) or reads < 3:
        doc = ask("recall", "--bank", bank, "--query", q, "--fast", "--check")
        check(200 <= doc["n"] <= 215 and doc["queries"][0]["winner"] == 3, "a reader meanwhile")
        reads += 1
    check(all(w.wait() == 0 for w in writers), "no writer fails")
    check(whole(bank, [215]) == 215, "none is lost")


def waited(folder):
    """Who has waited for another writer drops by the bank that this one left."""
    bank, next_one = os.path.join(folder, "V.safetensors"), os.path.join(folder, "V1.safetensors")
    rows, names = save(folder, "V.npy", rng.normal(size=(9, D))), [f"v{i}" for i in range(9)]
    ask("bank", "pack", "--from", rows, "--names", lines(folder, "V.names", names), "--out", bank)
    ask("bank", "pack", "--from", save(folder, "V8.npy", rng.normal(size=(8, D))), "--names", lines(folder, "V8.names", names[:0:-1]),
        "--out", next_one)
    with open(bank, "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        second = subprocess.Popen([CGAM, "bank", "drop", bank, "--names", lines(folder, "V.drop", ["v7"])], stdout=subprocess.DEVNULL)
        time.sleep(0.5)  # it has opened what it will not find any more
        os.replace(next_one, bank)
    check(second.wait() == 0, "who waited fails")
    left = [row["name"] for row in ask("bank", "names", "--bank", bank)["names"]]
    check(left == [n for n in names[:0:-1] if n != "v7"], left)


def threads(folder):
    """The same file for any number of threads."""
    rows = save(folder, "T.npy", rng.normal(size=(500, 40)).astype("f2"))
    files = []
    for k in (1, 2, 3):
        out = os.path.join(folder, f"T{k}.safetensors")
        ask("bank", "pack", "--from", rows, "--alpha", "0.001", "--out", out, "--threads", str(k))
        files.append(open(out, "rb").read())
    check(files[0] == files[1] == files[2], "threads change the file")


with tempfile.TemporaryDirectory() as folder:
    for part in (verbs, at_once, waited, threads):
        part(folder)
finish()
