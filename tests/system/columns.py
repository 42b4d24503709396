"""Random traces of add, put, drop, --where, --only and --except against SQLite and NumPy, with writers killed in between.

    CGAM=build/cgam tests/system/columns.py [STEPS [SEED]]"""
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

import numpy as np

from harness import CGAM, ask, check, close, finish, refuse, run

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 100
rng = np.random.default_rng(int(sys.argv[2]) if len(sys.argv) > 2 else 5)
D, BETA = 6, 2.0
WORDS = ["", "de", "en", "d", "it's", "é", "z,\"q\"", "a b", "日本", "DE"]
BIG = [2**53 + 1, 2**53, -2**63, 2**63 - 1, 0, 1, 2019, 2020, 2021, -7]
REALS = [0.5, -1e-3, 2.0**53, 1e300, 2020.0, 0.1, -7.0]
OPERATORS = ["=", "!=", "<", "<=", ">", ">="]


class Model:
    """The bank in NumPy and SQLite."""

    def __init__(self):
        self.rows, self.sql, self.next = {}, sqlite3.connect(":memory:"), 0
        self.sql.execute('create table t (number integer, name text, lang text, "the year" integer, score real)')

    def add(self, rows, names, cells):
        for row, name, cell in zip(rows, names, cells):
            self.rows[self.next] = row
            self.sql.execute("insert into t values (?, ?, ?, ?, ?)", (self.next, name, *cell))
            self.next += 1

    def drop(self, numbers):
        for i in numbers:
            del self.rows[i]
            self.sql.execute("delete from t where number = ?", (i,))

    def where(self, predicate):
        return {i for i, in self.sql.execute(f"select number from t where {predicate}")}

    def names(self, numbers):
        return [self.sql.execute("select name from t where number = ?", (i,)).fetchone()[0] for i in numbers]


def literal(text):
    return "'" + text.replace("'", "''") + "'"


def predicate(depth=0):
    kind = rng.integers(6)
    if depth < 4 and kind < 3:
        both = f"{predicate(depth + 1)} {rng.choice(['and', 'or', 'AND'])} {predicate(depth + 1)}"
        return f"({both})" if rng.integers(2) else both
    if depth < 4 and kind == 3:
        return f"not {predicate(depth + 1)}" if rng.integers(2) else f"not ({predicate(depth + 1)})"
    column = rng.choice(["lang", '"the year"', "score"])

    def value():
        if column == "lang":
            return literal(WORDS[rng.integers(len(WORDS))])
        pool = (BIG[2:] if rng.integers(2) else BIG) + REALS
        x = pool[rng.integers(len(pool))]
        # SQLite reads -9223372036854775808 as the real -(2^63), which is the same number
        return repr(x)
    if kind == 4:
        return f"{column} {'not ' if rng.integers(2) else ''}in ({', '.join(value() for _ in range(rng.integers(1, 12)))})"
    return f"{column} {rng.choice(OPERATORS)} {value()}"


def cells(count):
    return [(WORDS[rng.integers(len(WORDS))], BIG[rng.integers(len(BIG))], float(REALS[rng.integers(len(REALS))])) for _ in range(count)]


def columns_file(path, rows):
    """As CSV or as .npz, whichever comes."""
    lang, year, score = zip(*rows)
    if rng.integers(2):
        np.savez(path + ".npz", **{"lang": np.array(lang), "the year": np.array(year, "i8"), "score": np.array(score)})
        return path + ".npz"

    def quoted(text):
        return '"' + text.replace('"', '""') + '"'
    with open(path + ".csv", "w", newline="") as f:
        f.write("lang,the year,score\r\n")
        f.writelines(f"{quoted(a)},{b},{c!r}\r\n" for a, b, c in rows)
    return path + ".csv"


def fresh(folder, count, tag):
    rows = rng.normal(size=(count, D)).astype("f4")
    np.save(f"{folder}/more.npy", rows)
    names = [f"{tag}-{k}" for k in range(count)]
    with open(f"{folder}/more.names", "w") as f:
        f.writelines(n + "\n" for n in names)
    values = cells(count)
    return rows, names, values, ["--from", f"{folder}/more.npy", "--names", f"{folder}/more.names", "--columns",
                                 columns_file(f"{folder}/more", values)]


def recall(folder, bank, model):
    """One recall of some memories: who takes part, and with which p."""
    live = sorted(model.rows)
    q = rng.normal(size=D)
    np.save(f"{folder}/q.npy", q)
    words, chosen = [], set(live)
    if rng.integers(4):
        where = predicate()
        words += ["--where", where]
        chosen &= model.where(where)
    some = [int(i) for i in rng.choice(live, rng.integers(1, len(live) + 1), replace=False)]
    kind = rng.integers(4)
    if kind == 0:
        np.save(f"{folder}/only.npy", np.array(some))
        words += ["--only", f"{folder}/only.npy"]
        chosen &= set(some)
    elif kind == 1:
        words += ["--except", ",".join(map(str, some))]
        chosen -= set(some)
    elif kind == 2:
        words += ["--except", ",".join(model.names(some)), "--names"]
        chosen -= set(some)
    if rng.integers(3) == 0:
        words += ["--fast", "--tol-p", "1e-9"]
    words = ["recall", "--bank", bank, "--query", f"{folder}/q.npy", "--beta", BETA, "--top", 1000, *words]
    if not chosen:
        refuse(2, ["the selection has none of the"], *words)
        return
    doc = ask(*words)
    check(doc.get("among", doc.get("n")) == len(chosen), words, doc.get("among"), "want", len(chosen))
    got = dict(map(tuple, doc["queries"][0]["top"]))
    check(set(got) == chosen, words, "got", sorted(got), "want", sorted(chosen))
    order = sorted(chosen)
    r = np.array([model.rows[i].astype(float) @ q for i in order])
    p = np.exp(BETA * (r - r.max()))
    p /= p.sum()
    if set(got) == chosen:
        close([got[i] for i in order], p, 1e-6, words)


def killed(folder, bank, model):
    """A writer that is killed leaves the old bank or the new one."""
    rows, names, values, words = fresh(folder, 2, f"k{model.next}")
    writer = subprocess.Popen([CGAM, "bank", "add", bank, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(float(rng.uniform(0, 0.05)))
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    n = ask("bank", "show", bank, "--check")["n"]
    check(n in (model.next, model.next + 2), "after a kill", n, "before", model.next)
    if n > model.next:
        model.add(rows, names, values)


def trace(folder):
    bank, model = f"{folder}/B.safetensors", Model()
    rows, names, values, words = fresh(folder, 30, "n")
    ask("bank", "pack", *words, "--out", bank)
    model.add(rows, names, values)
    for step in range(STEPS):
        kind = rng.integers(10)
        live = sorted(model.rows)
        if kind == 0:
            rows, names, values, words = fresh(folder, int(rng.integers(1, 5)), f"s{step}")
            ask("bank", "add", bank, *words)
            model.add(rows, names, values)
        elif kind == 1 and len(live) > 10:
            out = [int(i) for i in rng.choice(live, rng.integers(1, 4), replace=False)]
            ask("bank", "drop", bank, "--rows", ",".join(map(str, out)))
            model.drop(out)
        elif kind == 2:
            some = [int(i) for i in rng.choice(live, 2, replace=False)]
            new = rng.normal(size=(2, D)).astype("f4")
            np.save(f"{folder}/put.npy", new)
            ask("bank", "put", bank, "--rows", ",".join(map(str, some)), "--from", f"{folder}/put.npy")
            for i, row in zip(some, new):
                model.rows[i] = row
        elif kind == 3:
            killed(folder, bank, model)
        else:
            recall(folder, bank, model)
    shown = ask("bank", "show", bank, "--check")
    check(shown["whole"] and [c["name"] for c in shown["columns"]] == ["lang", "the year", "score"]
          and [c["type"] for c in shown["columns"]] == ["text", "integer", "real"], shown)
    ask("bank", "pack", "--from", bank, "--out", f"{folder}/C.safetensors")  # numbers count from 0 again
    for _ in range(10):
        where = predicate()
        want = {sorted(model.rows).index(i) for i in model.where(where)}
        words = ["recall", "--bank", f"{folder}/C.safetensors", "--query", "rows:0", "--top", 1000, "--where", where]
        if want:
            check({i for i, _ in ask(*words)["queries"][0]["top"]} == want, where)
        else:
            refuse(2, ["the selection has none of the"], *words)


def missing_numbers(folder):
    """A missing number is only different: NumPy's rules."""
    x = np.array([1.5, np.nan, 2.0, np.nan, -1.0])
    with open(f"{folder}/x.csv", "w") as f:
        f.write("x,y\n" + "".join(f"{'' if np.isnan(v) else v},t\n" for v in x))
    np.save(f"{folder}/Z.npy", rng.normal(size=(5, D)))
    for text, want in (("x < 2", x < 2), ("x >= 2", x >= 2), ("x != 2", x != 2), ("not x < 2", ~(x < 2)), ("x in (2, 1.5)", np.isin(x, (2, 1.5))),
                       ("x not in (2)", ~np.isin(x, (2,)))):
        doc = ask("recall", "--bank", f"{folder}/Z.npy", "--columns", f"{folder}/x.csv", "--query", "rows:0", "--where", text)
        check({i for i, _ in doc["queries"][0]["top"]} == set(np.flatnonzero(want)), text)


def refusals(folder):
    rows, names, values, words = fresh(folder, 4, "r")
    bank, plain = f"{folder}/R.safetensors", f"{folder}/P.safetensors"
    ask("bank", "pack", *words, "--out", bank)
    ask("bank", "pack", *words[:4], "--out", plain)
    query = ["--query", "rows:0"]
    refuse(2, ["where", "the bank has no columns"], "recall", "--bank", plain, *query, "--where", "x = 1")
    refuse(2, ["no such column at character 1: x"], "recall", "--bank", bank, *query, "--where", "x = 1")
    refuse(2, ["holds text", "at character 8: 1"], "recall", "--bank", bank, *query, "--where", "lang = 1")
    refuse(2, ["columns", "need them"], "bank", "add", bank, *words[:4])
    refuse(2, ["columns", "have none"], "bank", "add", plain, *words)
    with open(f"{folder}/few.csv", "w") as f:
        f.write("lang,the year,score\na,1,2\n")
    refuse(2, ["few.csv", "1 rows for 4 memories"], "bank", "add", bank, *words[:4], "--columns", f"{folder}/few.csv")
    refuse(2, ["few.csv", "1 rows for 4 memories"], "recall", "--bank", bank, *query, "--columns", f"{folder}/few.csv", "--where", "score = 1")
    with open(f"{folder}/mixed.csv", "w") as f:
        f.write("lang,the year,score\n" + "a,soon,2\n" * 4)
    refuse(2, ["'the year' holds text, the bank has integer"], "bank", "add", bank, *words[:4], "--columns", f"{folder}/mixed.csv")
    with open(f"{folder}/other.csv", "w") as f:
        f.write("lang,score\n" + "a,2\n" * 4)
    refuse(2, ["no column 'the year'"], "bank", "add", bank, *words[:4], "--columns", f"{folder}/other.csv")
    refuse(2, ["no memory named 'x'"], "recall", "--bank", bank, *query, "--except", "x")
    refuse(2, ["no memory 4 "], "recall", "--bank", bank, *query, "--except", "2-4")
    code, out, _ = run("bank", "show", bank)
    check(code == 0 and "column   the year, integer" in out, out)


with tempfile.TemporaryDirectory() as folder:
    trace(folder)
    missing_numbers(folder)
    refusals(folder)
finish()
