"""Runs the rows of said.txt: exit status | words that the text has, && between them | words after `cgam`.

Text goes to standard output with status 0 or 1; with another one line goes to standard error. Dashes before the names of
options do not count."""
import json
import os
import shlex
import subprocess
import tempfile

import numpy as np
from harness import BUILD, SRC, check, finish, run

SHORT = {"@ask": "recall --threads 1 --bank Z.csv --query", "@prompts": "@data --queries 24", "@six": "@data --shots 1 --queries 6",
         "@eight": "--shots 2 --queries 8", "@data": "--model m.gguf --eval d.tsv --labels down=negative,up=positive",
         "@long": "'" + "film " * 300 + "'"}


def up(*texts):
    return [f"up\t{text}" for text in texts]


FILES = {  # six memories with names in four dimensions, two queries, two contexts
    "Z.csv": ["1,0,0,0.5", "0,1,0,0.25", "0,0,1,0", "0.5,0.5,0,0", "-1,0,0.25,0", "0,-1,0,0.75"],
    "Z.names": ["bank", "water", "money", "mill", "lamp", "key"], "only.txt": ["bank", "money", "mill", "key"],
    "q.csv": ["0.5,0.25,0,0.125", "0,0.5,0.5,0"], "c.csv": ["0.25,0,0,0.5", "0,0,0.5,0"], "three.csv": ["1,2,3"],
    "P.csv": ["1,0,0,0", "0,1,0,0", "0,0,1,0", "0,0,0,1"], "W.csv": ["1,0,0,0", "0,1,0,0", "0,0,1,0", "0,0,0,1", "1,1,0,0", "0,0,1,1"],
    "key.txt": ["key"], "two.txt": ["new", "newer"],
    # language models
    "d.tsv": [f"{('down', 'up')[i % 2]}\t{'the' if i % 3 else 'a'} film {i} is {('bad', 'good')[i % 2]}" for i in range(60)],
    "one.tsv": up(*(f"film {i}" for i in range(40))), "few.tsv": up(*"a the good bad is of six seven".split()),
    "empty.tsv": ["up\ta film", "\tthe film"], "lone.tsv": up(*"xyzwvu"), "same.tsv": [f"{'ab'[i % 2]}\tfilm {i}" for i in range(40)],
    "pairs.tsv": ["the film is good\tthe film is bad", "a film is good\ta film is bad"], "p.txt": ["The capital of France is", "the film"],
    "p.bad": ['{"prompt": 1}'], "other.gguf": ["this is no model at all, but it is long enough"],
    "text.db": ["this is no database, though it has a fitting name. Far from it. ......"],
    "tasks/a.json": [json.dumps([{"input": f"the {i}", "output": ("Paris", "Rome", "France", "Italy")[i % 4]} for i in range(20)])]}
ARRAYS = {"target": [1, 2], "beyond": [1.0, 6.0], "half": [0.5, 1.0], "cube": np.ones((1, 2, 2)), "empty": np.ones((0, 4)), "gone": [7]}


def make_inputs():
    os.mkdir("tasks")
    for name, lines in FILES.items():
        with open(name, "w", encoding="ascii") as f:
            f.writelines(line + "\n" for line in lines)
    for name, array in ARRAYS.items():
        np.save(name + ".npy", np.asarray(array))
    os.symlink(f"{SRC}/examples/hopfield.json", "net.json")
    subprocess.run([f"{BUILD}/tests/python/tiny_model", "m.gguf", "llama", "200"], check=True)
    with open("m.gguf", "rb") as f, open("cut.gguf", "wb") as cut:
        cut.write(f.read(20000))
    with open("x.gguf", "wb") as f:
        f.write(b"GGUF\3\0\0\0" + bytes(16))


def rows():
    with open(f"{SRC}/tests/system/said.txt", encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                status, pieces, words = (part.strip() for part in line.split(" | ", 2))
                for short, long in SHORT.items():
                    words = words.replace(short, long)
                yield int(status), pieces.split(" && "), shlex.split(words)


with tempfile.TemporaryDirectory(prefix="cgam-said-") as folder:
    os.chdir(folder)
    os.environ["COLUMNS"] = "48"
    make_inputs()
    models = run("lm", "states", "--model", "m.gguf", "--prompt", "the")
    if models[0] != 0:
        print("verbs of models are left out:", models[2])
    for want, pieces, words in rows():
        if words[0] == "lm" and models[0] != 0:
            continue
        code, out, err = run(*words)
        said, quiet = (out, "") if want < 2 else (err, out)
        check(code == want, words, "exit", code, "want", want, err)
        check(quiet == "" and (want < 2 or said.count("\n") == 1), words, "not one line:", out[:200], err)
        for piece in pieces:
            check(piece.replace("--", "") in said.replace("--", ""), words, repr(piece), "is not in:", said)
    os.chdir("/")
finish()
