"""Every verb that reads or writes, with its k-th call to the system failing.

    faults.py            a sample, for `make test`
    faults.py all        every k of every verb, for `make soak`
    faults.py all WORD.. only the verbs whose names hold one of the words

Each run must end with status 2 or 3 and one line, leave every file as it was or as it is after a run without
failures, no other file beside them, and the next run must bring the very same bytes as one without failures. Where
a call may be made again (EINTR, short counts; but for standard output, which only a signal that asks us to stop
interrupts, and what libllama reads by itself), and where the failure does not matter (a file that was read does not
close), the run itself must bring them. Rows for docs/reliability.md go to the file CGAM_RELIABILITY names."""
import concurrent.futures
import json
import os
import random
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile

import numpy as np

from harness import CGAM, BUILD, SRC, check, finish, row

FAULTS, TINY = os.path.join(BUILD, "tests/system/faults"), os.path.join(BUILD, "tests/python/tiny_model")
KINDS = ("EIO", "ENOSPC", "EINTR", "ENOMEM", "short")
MUST_SURVIVE = ("EINTR", "short")
NOT_HERE, TOO_FEW = 77, 78
# Results of several files are exchanged when all new ones are on the disk: the old ones' names go, the new ones' come.
EXCHANGE = re.compile(r"(unlink|rename) |(openat|fsync|close) [^.#]*$")
ALL = "all" in sys.argv[1:2]
FEWER = 3 if os.environ.get("CGAM_SANITIZE") else 1  # all is slow there
SAMPLE = 90 // FEWER  # runs in `make test`, of these verbs
SAMPLED = ("recall --json", "recall --save-p", "landscape", "bank add", "net run", "study coupled", "lm states", "lm capture, more",
           "lm store --export", "lm gates")

LM = "--model tiny.gguf --threads 1"
DATA = "--dataset sentiment --shots 0,1 --queries 4"
# Name; what is run beforehand, with other options, to leave old outputs; what is run.
CASES = [
    ("recall", None, "recall --bank Z.npy --query q.npy --context c.npy --alpha 0.01 --names"),
    ("recall --json", None, "recall --bank Z.csv --query q.npy --json"),
    ("recall --save-p", "recall --bank Z.npy --query q.npy --save-p p.npy --save-readout r.npy",
     "recall --bank Z.npy --query q.npy --beta 2 --save-p p.npy --save-readout r.npy"),
    ("recall --only", None, "recall --bank Z.npz --query q.npy --only only.txt --names Z.names --fast"),
    ("recall with P and targets", None, "recall --bank Z.npy --query q.npy --context c.npy --projection P.npy --target t.npy --alpha 0.01"),
    ("recall of a bank in parts", None, "recall --bank parts/Z.index.json --query q.npy"),
    ("recall of a packed bank", None, "recall --bank B.safetensors --query q.npy --alpha 0.01 --check"),
    ("inspect", None, "inspect --bank Z.npy --alpha 0.02"),
    ("map", None, "map --bank Z.npy --grid 8 --json"),
    ("landscape", "landscape --bank Z.npy --query q1.npy --starts 4 --out land --figures no",
     "landscape --bank Z.npy --query q1.npy --starts 5 --beta 3 --out land --figures no"),
    ("figures", None, "landscape --bank Z.npy --query q1.npy --starts 4 --out land"),
    ("bank names", None, "bank names --bank Z.npy --prefix w"),
    ("bank pack", "bank pack --from Z.npy --out P.safetensors", "bank pack --from Z.npy --names Z.names --alpha 0.02 --out P.safetensors"),
    ("bank add", None, "bank add B.safetensors --from q.npy --names two.names"),
    ("bank put", None, "bank put B.safetensors --rows 3,4 --from q.npy"),
    ("bank drop", None, "bank drop B.safetensors --rows 3,4"),
    ("bank show", None, "bank show B.safetensors --check"),
    ("net run", "net run net.json --out flow --t-end 1 --figures no", "net run net.json --out flow --t-end 2 --figures no"),
    ("net show", "net show net.json --dot n.dot", "net show net.json --dot n.dot --eigen 2"),
    ("demo", None, "demo"),
    ("help", None, "help --man recall"),
    ("completion", None, "completion bash"),
    ("data get", None, "data get glove"),
    ("lm bank", f"lm bank {LM} --dtype f16 --out lb.safetensors", f"lm bank {LM} --out lb.safetensors"),
    ("lm states", f"lm states {LM} --prompt dog --save st.npy", f"lm states {LM} --prompts prompts.txt --save st.npy"),
    ("lm states --edit", None, f"lm states {LM} --prompt cat --edit 1:add:last:0.5:e.npy --save st.npy"),
    ("lm generate", None, f"lm generate {LM} --prompt cat --max-tokens 2"),
    ("lm trace", f"lm trace {LM} --prompt cat --vector v.safetensors:0.5 --max-tokens 2 --out tr --figures no",
     f"lm trace {LM} --prompt cat --vector v.safetensors --max-tokens 2 --out tr --figures no"),
    ("lm capture", None, f"lm capture {LM} {DATA} --store s.db"),
    ("lm capture, more", None, f"lm capture {LM} --dataset sentiment --shots 0,2 --queries 5 --store S.db"),
    ("lm capture --tokens", None, f"lm capture {LM} --prompts prompts.txt --tokens all --store S.db"),
    ("lm capture of files", None, f"lm capture {LM} --eval e.tsv --train t.tsv --shots 0,1 --queries 2 --store s.db"),
    ("lm store", None, "lm store --store S.db"),
    ("lm store --check", None, "lm store --store S.db --check"),
    ("lm store --export", "lm store --store S.db --export x.npy", "lm store --store S.db --export x.safetensors"),
    ("lm neff", f"lm neff {LM} {DATA} --store S.db --out neff --seed 2 --figures no", f"lm neff {LM} {DATA} --store S.db --out neff --figures no"),
    ("lm sweep", None, f"lm sweep {LM} {DATA} --store S.db --intervals --out sweep --figures no"),
    ("lm lens", None, f"lm lens {LM} --prompt cat --out lens --figures no"),
    ("lm vector", f"lm vector {LM} {DATA} --store S.db --seed 2 --out v.safetensors", f"lm vector {LM} {DATA} --store S.db --out v.safetensors"),
    ("lm vector --from", "lm vector --from v.safetensors --out w.gguf", "lm vector --from v.safetensors:2 --out w.gguf"),
    ("lm vector --contrast", None, f"lm vector {LM} --contrast pairs.tsv --out w.npy"),
    ("lm inject --suite", None, f"lm inject {LM} --suite suite --shots 0,1 --queries 4 --store S.db --out inject --figures no"),
    ("lm inject", None, f"lm inject {LM} {DATA} --store S.db --out inject --figures no"),
    ("lm gates", None, f"lm gates {LM} {DATA} --store S.db --out gates --figures no"),
    ("lm fit", None, f"lm fit {LM} {DATA} --store S.db --out W.safetensors --folder fit --figures no"),
    ("lm steer", None, f"lm steer {LM} --dataset facts --shots 0,1 --queries 4 --store S.db --out steer --figures no"),
    ("lm probe", None, f"lm probe {LM} {DATA} --store S.db --out probe --figures no"),
    ("lm study", None, f"lm study {LM} {DATA} --store S.db --out study --figures no"),
    ("lm study --report", None, f"lm study {LM} {DATA} --parts neff --figures no --report report"),
    ("lm gates --report", None, f"lm gates {LM} {DATA} --store S.db --figures no --report report"),
    ("lm fit --report", None, f"lm fit {LM} {DATA} --store S.db --out W.safetensors --figures no --report report"),
    ("study phase of a bank", None, "study phase --bank Z.npy --trials 2 --threads 1 --figures no --out study"),
    ("report", None, "report --scale 0.001 --figures no --threads 1 --out report"),
]
CASES += [(f"study {kind}", f"study {kind} --trials 2 --seed 5 --threads 1 --figures no --out study",
           f"study {kind} --trials 3 --threads 1 --figures no --out study --overwrite")
          for kind in ("separation", "competition", "coupled", "timescale", "theorems", "capacity", "phase",
                       "convergence", "annealing", "sparse", "rivals")]
HEAVY = ("report", "figures", "lm study --report", "lm gates --report", "lm fit --report")  # a run takes seconds: also in the soak only some k


def world(folder):
    """All that the cases read."""
    os.mkdir(folder)
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(20, 6)).astype("f4")
    at = lambda name: os.path.join(folder, name)
    np.save(at("Z.npy"), Z), np.savetxt(at("Z.csv"), Z, delimiter=","), np.savez(at("Z.npz"), Z=Z)
    np.save(at("q.npy"), Z[[1, 5]] * 0.7), np.save(at("q1.npy"), Z[2]), np.save(at("c.npy"), Z[7])
    for name, lines in (("Z.names", [f"w{i}" for i in range(20)]), ("only.txt", ["w1", "w5", "w6"]), ("two.names", "ab"),
                        ("prompts.txt", ["cat", "the dog"])):
        open(at(name), "w").writelines(f"{x}\n" for x in lines)
    np.save(at("P.npy"), np.eye(6)[::-1] * 0.5), np.save(at("t.npy"), np.array([1, 5])), np.save(at("e.npy"), np.ones(64))
    for name, lines in (("e.tsv", ["up\ta good film", "down\ta bad film"] * 2), ("t.tsv", ["up\tfine", "down\tpoor"] * 4),
                        ("pairs.tsv", ["good\tbad", "up\tdown"])):
        open(at(name), "w").writelines(f"{x}\n" for x in lines)
    os.mkdir(at("parts")), os.mkdir(at("suite"))
    for name, rows in (("one", Z[:12]), ("two", Z[12:])):
        write_safetensors(at(f"parts/{name}.safetensors"), name, rows)
    with open(at("parts/Z.index.json"), "w") as f:
        json.dump({"weight_map": {name: f"{name}.safetensors" for name in ("one", "two")}}, f)
    for name, pairs in (("signs.json", "cat dog,dog cat,the a,a the,up down,down up"), ("same.json", "cat cat,dog dog,the the,a a,up up,down down")):
        with open(at(f"suite/{name}"), "w") as f:
            json.dump([dict(zip(("input", "output"), pair.split())) for pair in pairs.split(",")], f)
    # libllama's builds would look for it here; a loader that does fails
    open(at("libstdc++.so.6"), "w").close()
    shutil.copy(os.path.join(SRC, "examples/hopfield.json"), at("net.json"))
    subprocess.run([TINY, at("tiny.gguf")], check=True)
    for name in ("glove.npy", "glove.names"):
        os.makedirs(at("cache/cgam"), exist_ok=True)
        open(at(f"cache/cgam/{name}"), "w").close()
    for words in ("bank pack --from Z.npy --names Z.names --alpha 0.01 --out B.safetensors",
                  f"lm capture {LM} {DATA} --store S.db", f"lm vector {LM} {DATA} --store S.db --out v.safetensors"):
        plainly(folder, words)


def write_safetensors(path, name, rows):
    head = json.dumps({name: {"dtype": "F32", "shape": rows.shape, "data_offsets": [0, rows.nbytes]}}).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(head)) + head + rows.tobytes())


def environment(folder, words):
    env = {k: v for k, v in os.environ.items() if k not in ("CGAM_DATA", "COLUMNS")}
    if os.environ.get("CGAM_SANITIZE"):
        env["ASAN_OPTIONS"] = "detect_leaks=0"  # LeakSanitizer cannot look while somebody watches
    if words.startswith("data"):
        env["XDG_CACHE_HOME"] = os.path.join(folder, "cache")
    return env


def start(folder, before, words):
    """Status and what was said; standard output goes to a file of the folder, where its writes can fail too."""
    with open(os.path.join(folder, "stdout"), "wb") as out:
        done = subprocess.run([*before, CGAM, *words.split()], cwd=folder, stdout=out, stderr=subprocess.PIPE, timeout=600,
                              stdin=subprocess.DEVNULL, env=environment(folder, words), start_new_session=True)
    return done.returncode, progress(done.stderr.decode(errors="replace"))


def progress(said):
    """Without what a long run tells of its progress, which is no message."""
    return re.sub(r"^.*: \d+%.*\n", "", said, flags=re.M)


def plainly(folder, words, run=start):
    code, said = run(folder, [], words)
    check(code in (0, 1) and not said, words, "exit", code, said)
    return code


def rows_of_store(path):
    """What a store holds, but when it was written."""
    with tempfile.TemporaryDirectory() as folder:
        for end in ("", "-wal"):
            if os.path.exists(path + end):
                shutil.copy(path + end, os.path.join(folder, "x.db" + end))
        db = sqlite3.connect(os.path.join(folder, "x.db"))
        ids = dict(db.execute("SELECT id, hex(prompt) || engine || dtype FROM state")) if tables(db) else {}
        return frozenset((t, *(ids[v] if (t, k) == ("place", "state") else v for k, v in zip(names, x) if k not in ("id", "made")))
                         for t in tables(db) for x in db.execute(f"SELECT * FROM {t}")
                         for names in [[d[1] for d in db.execute(f"PRAGMA table_info({t})")]])


def tables(db):
    return [t for t, in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]


def between(old, now, new):
    """A file is old or new; a store may have some of the rows."""
    if isinstance(now, frozenset):
        return (old or frozenset()) <= now <= (new or frozenset())
    return now in (old, new)


def told(name, data):
    """Bytes as they are compared: without the time a run took, how many states it found, the hour that a PDF names."""
    if name.endswith(".pdf"):
        return data[:4] + data[-6:]
    if name.endswith(".json") or data[:1] == b"{":
        try:
            doc = json.loads(data)
        except ValueError:
            return data
        strip(doc)
        return json.dumps(doc)
    return re.sub(rb"[0-9.]+ (s|ms|tokens/s|min)\b", b"", data) if name.endswith(("stdout", ".html")) else data


def strip(doc):
    for x in doc.values() if isinstance(doc, dict) else doc if isinstance(doc, list) else ():
        strip(x)
    if isinstance(doc, dict):
        for key in [k for k in doc if "seconds" in k or k == "capture"]:
            del doc[key]


def tree(folder):
    """Every file's contents; a store's rows."""
    out = {}
    for at, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(at, name)
            if name.endswith((".db-wal", ".db-shm", ".db-journal")):
                continue
            if name.endswith(".db"):
                out[os.path.relpath(path, folder)] = rows_of_store(path)
            else:
                with open(path, "rb") as f:
                    out[os.path.relpath(path, folder)] = told(name, f.read().replace(folder.encode(), b""))
    return out


def settle(files):
    """Without what a kill may leave: a whole file on its way from a temporary name to its own."""
    return {k: v for k, v in files.items() if not os.path.basename(k).startswith(".cgam-")}


class Case:
    run = staticmethod(start)

    def __init__(self, scratch, name, before, words):
        self.name, self.words, self.scratch = name, words, scratch
        self.folder = os.path.join(scratch, "case-" + name.replace(" ", "-"))
        used = set(words.split()) | set((before or "").split())
        keep = lambda f: f in used or f.startswith("lib") or f.split(".")[0] + ".npy" in used or f.split(".")[0] + ".db" in used
        os.makedirs(self.folder)
        for f in os.listdir(os.path.join(scratch, "world")):
            path = os.path.join(scratch, "world", f)
            if os.path.isdir(path):
                shutil.copytree(path, os.path.join(self.folder, f))
            elif keep(f) or any(u.startswith(f) or u.endswith(":" + f) for u in used):
                shutil.copy(path, self.folder)
        if before:
            plainly(self.folder, before, self.run)
        self.old = tree(self.folder)
        with self.copy() as folder:
            self.status = plainly(folder, words, self.run)
            self.new = tree(folder)
        with self.copy() as folder:
            log = os.path.join(scratch, "count-" + name.replace(" ", "-"))
            code, said = self.run(folder, [FAULTS, folder, "count", log, "--"], words)
            again = tree(folder)
            check(code == self.status and again == self.new, name, "differs from run to run: exit", code, said, differences(again, self.new))
            self.calls = {k: int(n) for k, n in (line.split() for line in open(log))}

    def copy(self):
        folder = tempfile.TemporaryDirectory(dir=self.scratch)
        shutil.copytree(self.folder, folder.name, dirs_exist_ok=True)
        return folder

    def fail(self, kind, k):
        """One run with a failure, and one after it; what was wrong. A disk that is full stays full meanwhile."""
        with self.copy() as folder, tempfile.NamedTemporaryFile(dir=self.scratch) as log:
            before = [FAULTS, folder, kind, f"{k}+" if kind == "ENOSPC" else str(k), log.name, "--"]
            code, said = self.run(folder, before, self.words)
            if code == TOO_FEW:
                return []
            where = log.read().decode().strip().replace(folder, "")
            now = tree(folder)
            wrong = self.judge(kind, code, said, now, where)
            if not (now.items() ^ self.new.items()) - {("stdout", x.get("stdout")) for x in (now, self.new)}:
                pass  # all of it was done: what changes a bank in place would change it twice
            else:
                code, said = self.run(folder, [], self.words)
                now = tree(folder)
                if ".db" in self.words:  # it tells how many states were there
                    now["stdout"] = self.new["stdout"]
                if code != self.status or said or now != self.new:
                    wrong.append(f"the next run: exit {code} {said.strip()} " + differences(now, self.new))
            return [f"{self.name}: {kind} at call {before[3]}, {where}: {w}" for w in wrong]

    def judge(self, kind, code, said, now, where):
        wrong = []
        if code == self.status:
            if said or {k: v for k, v in now.items() if k in self.new or not k.endswith(".progress")} != self.new:
                wrong.append(f"exit {code}, but {said.strip()} " + differences(now, self.new))
            return wrong
        if kind in MUST_SURVIVE and not where.endswith(("/stdout", ".gguf")):
            wrong.append(f"not survived: exit {code} {said.strip()}")
        if code not in (2, 3):
            wrong.append(f"exit {code} {said.strip()}")
        if said.count("\n") != 1 or not said.startswith("cgam"):
            wrong.append("not one line: " + repr(said))
        for name in now:
            if name != "stdout" and not name.endswith(".progress") and not between(self.old.get(name), now[name], self.new.get(name)):
                wrong.append(f"{name} is neither old nor new" if name in self.old or name in self.new else f"{name} was left")
        if not EXCHANGE.match(where):
            wrong += [f"{name} is gone" for name in self.old if name not in now and name in self.new]
        return wrong


def differences(a, b):
    return "files differ: " + ", ".join(sorted(k for k in a.keys() | b.keys() if a.get(k) != b.get(k)))


def tell(wrong):
    check(not wrong, *(f"\n  {w}" for w in wrong))
    sys.stdout.flush()
    return wrong


def chosen(cases, sample):
    """(case, kind, k): all there are, or a sample."""
    everything = [(c, kind, k) for c in cases for kind in KINDS for k in range(1, c.calls[kind] + 1)]
    rng = random.Random(int(os.environ.get("CGAM_SEED", 1)))
    heavy = [x for x in everything if x[0].name in HEAVY]
    if ALL:
        return [x for x in everything if x[0].name not in HEAVY] + rng.sample(heavy, min(40, len(heavy)))
    return rng.sample(everything, min(sample, len(everything)))


def can_be_done(scratch):
    """Some machines let nobody watch a program."""
    if subprocess.run([FAULTS, scratch, "count", os.path.join(scratch, "log"), "--", "/bin/true"], check=False).returncode == NOT_HERE:
        print("skipped: no ptrace or no seccomp here")
        sys.exit(NOT_HERE)


def try_all(pool, cases, sample, name, injected, command):
    runs = chosen(cases, sample)
    wrong = [(x[1], w) for x, w in zip(runs, pool.map(lambda x: tell(x[0].fail(*x[1:])), runs))]
    rows = []
    for kind in KINDS:
        bad = [w for k, w in wrong if k == kind and w]
        count = sum(k == kind for k, _ in wrong)
        print(f"{kind}: {count} runs, {len(bad)} wrong")
        rows += [f"{name}: {kind}", injected, count, len(bad), command] if count else []
    if rows:
        row(*rows)
    return {kind for kind, _ in wrong}


def main():
    only = sys.argv[2:]
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=base) as scratch, concurrent.futures.ThreadPoolExecutor(2) as pool:
        can_be_done(scratch)
        world(os.path.join(scratch, "world"))
        wanted = [c for c in CASES if ALL and (not only or any(w in c[0] for w in only)) or not ALL and c[0] in SAMPLED]
        cases = list(pool.map(lambda c: Case(scratch, *c), wanted))
        tried = try_all(pool, cases, SAMPLE, "I/O failures in turn", "the k-th call of a verb that reads or writes, every k; of report and figures 40 runs in all",
                        "tests/system/faults.sh all")
    check(tried == set(KINDS) or only or FEWER > 1, "nothing was tried with", *(set(KINDS) - tried))


if __name__ == "__main__":
    main()
    finish()
