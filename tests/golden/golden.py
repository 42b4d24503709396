#!/usr/bin/python3 -B
"""ctest: timeout=240
Every verb's --json, held to what it was: cases.txt has the command lines, data/NAME.json the answers.

    CGAM=build/cgam CGAM_BUILD=build tests/golden/golden.py [--update | --strict] [NAME ..]

An answer is the same if it has the same keys in the same order, the same types, the same texts and exit status, and
numbers within the case's tolerance. --update writes data/ anew: for a change that is meant, told in CHANGELOG.md.
--strict allows no more than nine digits do: for a tree that moves, on the machine that wrote data/.
Of the help of every verb the tables of parameters are held, not the prose (data/help.json, a line a parameter).
Verbs that fetch or never end (data get, lm get, serve) and bench, whose answer is time, are held by that table alone."""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
CGAM, BUILD = os.path.abspath(os.environ["CGAM"]), os.path.abspath(os.environ.get("CGAM_BUILD", "build"))
USUAL = 1e-6  # relative; sums run in another order on another CPU
SMALLEST = 1e-9  # numbers below it are rounding: energies that do not rise, residuals, what is 0 in exact arithmetic

# Keys whose values belong to the run (machine, time, version): only types and inner keys are compared.
MASKED = {"version", "machine", "seconds", "microseconds", "unit"}
# Keys of flows, sketches and fits, whose steps follow the rounding of the CPU: relative.
LOOSE = {"iterations": 0.3, "work": 0.3, "evaluations": 0.3, "time": 0.05, "residual": 1.0, "rescored": 0.2}
# A share of variance, r2, that is far below 0 says that a prediction is worse than the mean. How much worse follows the rounding of the
# CPU: the error of one fit divided by what is left of another's numbers. That it is far below 0 is what is compared.
WORSE_THAN_THE_MEAN = -10
STRICT = "--strict" in sys.argv

DATA = "--model m.gguf --eval d.tsv --labels down=negative,up=positive --queries 8 --shots 2 --exact"
SHORT = {"@data": DATA,
         "@pairs": "--model m.gguf --eval pairs.json --format pairs --queries 4 --shots 2 --exact",
         "@facts": "--model m.gguf --eval facts.tsv --format facts --queries 4 --shots 1 --exact"}


def make_inputs():
    """Small files, the same on every machine: sines, so that no generator of random numbers matters."""
    def numbers(*shape, seed=1.0):
        i = np.arange(1, 1 + int(np.prod(shape)), dtype=float)
        return np.round(np.sin(i * i * 0.7071 * seed + seed), 6).reshape(shape)

    Z = numbers(12, 5)
    Z /= np.linalg.norm(Z, axis=1)[:, None]
    F = numbers(1500, 16, seed=1.3).astype("f4") * 2
    arrays = {"Z": Z, "Q": Z[[1, 7]] + 0.3 * numbers(2, 5, seed=2), "C": numbers(2, 5, seed=3), "q": Z[4] * 0.8 + Z[2] * 0.3,
              "c": numbers(5, seed=4), "c4": numbers(4, seed=5), "P": numbers(5, 4, seed=6), "W": numbers(12, 4, seed=7),
              "F": F, "FQ": F[[5, 1400]] + 0.4 * numbers(2, 16, seed=8), "keep": np.arange(12) % 3 != 0,
              "rows": np.array([1, 2, 7, 11]), "t": np.array([3, 0]), "t8": np.arange(8), "l4": 2 * np.eye(4)[[0, 1, 2, 3, 1]], "one": np.array([[3.0, 4.0]]), "q2": np.array([1.0, 0.0]),
              "twice": np.vstack([Z[:4], Z[:4]]), "eye": np.eye(4), "more": numbers(2, 5, seed=9), "two": numbers(2, 5, seed=10),
              "v": numbers(4, 64, seed=11).astype("f4")}
    for name, array in arrays.items():
        np.save(name + ".npy", array)
    texts = {"Z.names": [f"w{i}" for i in range(12)], "more.names": ["w100", "x"], "some.txt": ["w7", "w2", "w9"],
             "cols.csv": ["lang,year"] + [f"{('de', 'en', 'fr')[i % 3]},{2010 + i}" for i in range(12)],
             "prompts.txt": ["the good film", "a bad film is"],
             "d.tsv": [f"{('down', 'up')[i % 2]}\ta {('bad', 'good')[i % 2]} film {i}" for i in range(40)],
             "pairs.json": [json.dumps([{"input": a, "output": b} for a, b in (
                 ("good", "bad"), ("a", "the"), ("France", "Paris"), ("Italy", "Rome"), ("film", "capital"), ("is", "of"))])],
             "facts.tsv": [f"{a}\t{b}" for a, b in (("France", "Paris"), ("Italy", "Rome"), ("film", "good"), ("Review", "bad"),
                                                    ("the", "a"), ("capital", "positive"), ("of", "is"), ("Sentiment", "negative"))],
             "pairs.jsonl": [json.dumps({"a": [1, 0.1 * i], "b": [1, 0.1 * i + (0.01 if i % 2 else i - 4.5)], "same": i % 2 == 1}) for i in range(60)],
             "contrast.txt": ["a good film\ta bad film", "the good capital\tthe bad capital", "good\tbad", "is good\tis bad"]}
    for name, lines in texts.items():
        with open(name, "w", encoding="ascii") as f:
            f.writelines(line + "\n" for line in lines)
    for name in ("two_stage", "hopfield", "higher_order"):
        os.symlink(os.path.join(HERE, "..", "..", "examples", name + ".json"), name + ".json")
    writer = os.path.join(BUILD, "tests", "python", "tiny_model")
    if not os.path.exists(writer):
        return False
    subprocess.run([writer, "m.gguf"], check=True)
    return run(["lm", "states", "--model", "m.gguf", "--prompt", "the"])[0] == 0


def run(words):
    at = words.index("--") if "--" in words else len(words)
    done = subprocess.run([CGAM, *words[:at], "--json", *words[at:]], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    try:
        return done.returncode, json.loads(done.stdout)
    except ValueError:
        return done.returncode, done.stderr.strip()


def differences(got, want, tolerance, where="", key="", masked=False):
    """Yields a line for each difference; `key` is the innermost name on the way to here."""
    masked = masked or key in MASKED or key.endswith("_seconds")
    if type(got) is not type(want):
        yield f"{where}: got {type(got).__name__} {str(got)[:60]}, want {type(want).__name__} {str(want)[:60]}"
    elif isinstance(want, dict):
        if list(got) != list(want):
            yield f"{where}: keys are {list(got)}, want {list(want)}"
        for k in want:
            if k in got:
                yield from differences(got[k], want[k], tolerance, f"{where}.{k}", k, masked)
    elif isinstance(want, list):
        if len(got) != len(want):
            yield f"{where}: {len(got)} entries, want {len(want)}"
        for i, (x, y) in enumerate(zip(got, want)):
            yield from differences(x, y, tolerance, f"{where}[{i}]", key, masked)
    elif masked:
        return
    elif key.endswith("r2") and isinstance(want, float) and max(got, want) < WORSE_THAN_THE_MEAN and not STRICT:
        return
    elif isinstance(want, float) or (isinstance(want, int) and key in LOOSE):
        relative = 1e-9 if STRICT else max(tolerance, LOOSE.get(key, 0))
        # Numbers of a language model are rounded to f32 on the way, so what is 0 in exact arithmetic is larger there.
        allowed = max(1e-15 if STRICT else max(SMALLEST, 1e-5 * tolerance), relative * max(abs(got), abs(want)))
        if not abs(got - want) <= allowed:
            yield f"{where}: got {got}, want {want}, off by {abs(got - want):.3g}, allowed {allowed:.3g}"
    elif got != want:
        yield f"{where}: got {str(got)[:200]!r}, want {str(want)[:200]!r}"


def rounded(x):
    """Ten digits are more than any tolerance asks for."""
    if isinstance(x, dict):
        return {k: rounded(v) for k, v in x.items()}
    if isinstance(x, list):
        return [rounded(v) for v in x]
    return float(f"{x:.10g}") if isinstance(x, float) else x


def text_of(x, indent=""):
    """JSON with a line for each entry, and short entries on one line."""
    flat = json.dumps(x, ensure_ascii=False)
    if len(flat) + len(indent) <= 140 or not isinstance(x, (dict, list)):
        return flat
    inner = indent + " "
    if isinstance(x, dict):
        entries = [f"{inner}{json.dumps(k)}: {text_of(v, inner)}" for k, v in x.items()]
        return "{\n" + ",\n".join(entries) + "\n" + indent + "}"
    if all(not isinstance(v, (dict, list)) for v in x):
        return flat
    return "[\n" + ",\n".join(inner + text_of(v, inner) for v in x) + "\n" + indent + "]"


def help_tables():
    """Of every verb its parameters without their words: the number of its shape (which keys it has), then its values."""
    told, shapes = {}, []
    for verb in run(["help"])[1]["verbs"]:
        alone = run(["help", *verb["name"].split()])[1]
        same = {k: alone.get(k) for k in verb} == verb
        rows = []
        for p in verb["parameters"]:
            shape = " ".join(p)
            shapes += [shape] * (shape not in shapes)
            rows.append([shapes.index(shape), *(v for k, v in p.items() if k != "help")])
        told[verb["name"]] = {"same in help": same, "local": verb["local"], "parameters": rows}
    return {"keys": list(alone), "shapes": shapes, "verbs": told}


def cases():
    with open(os.path.join(HERE, "cases.txt"), encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                name, tolerance, words = (part.strip() for part in line.split("|", 2))
                for short, long in SHORT.items():
                    words = words.replace(short, long)
                yield name, USUAL if tolerance == "-" else float(tolerance), shlex.split(words)


def main():
    update, only = "--update" in sys.argv, [a for a in sys.argv[1:] if not a.startswith("--")]
    passed = failed = skipped = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        models = make_inputs()
        answers = [("help", 0, 0, help_tables())]
        for name, tolerance, words in cases():
            if words[0] == "lm" and not models:
                skipped += 1
                continue
            answers.append((name, tolerance, *run(words)))
        for name, tolerance, code, document in answers:
            if only and name not in only:
                continue
            path = os.path.join(HERE, "data", name + ".json")
            got = {"exit": code, "document": document}
            if isinstance(document, str):
                wrong = [f"no document, exit {code}: {document}"]
            elif update:
                wrong = []
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text_of(rounded(got)) + "\n")
            elif not os.path.exists(path):
                wrong = ["no such file in data; --update makes it"]
            else:
                with open(path, encoding="utf-8") as f:
                    wrong = list(differences(got, json.load(f), tolerance))
            passed, failed = passed + (not wrong), failed + bool(wrong)
            for line in wrong[:8]:
                print(f"FAILED: {name}{line}")
            if len(wrong) > 8:
                print(f"FAILED: {name}: and {len(wrong) - 8} more")
        os.chdir("/")
    print(f"{passed} of {passed + failed} answers are as they were" + (f"; {skipped} skipped, no libllama" if skipped else ""))
    sys.exit(failed > 0)


main()
