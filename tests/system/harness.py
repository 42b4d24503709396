"""What the tests of the program share: run it, check what it does, count."""
import json
import os
import subprocess
import sys

import numpy as np

CGAM = os.environ["CGAM"]
BUILD, SRC = os.environ.get("CGAM_BUILD"), os.environ.get("CGAM_SRC")
checks = failures = 0


def check(ok, *words):
    global checks, failures
    checks += 1
    if not ok:
        failures += 1
        print("FAILED:", *words)


def close(got, want, allowed, *words):
    got, want = np.asarray(got, float), np.asarray(want, float)
    off = np.max(np.abs(got - want)) if got.shape == want.shape else np.inf
    check(off <= allowed, *words, "got", got, "want", want, "off by", off, "allowed", allowed)


def run(*words, **how):
    """Exit status, standard output, standard error."""
    done = subprocess.run([CGAM, *map(str, words)], capture_output=True, text=True, **how)
    return done.returncode, done.stdout, done.stderr


def ask(*words, status=0, **how):
    code, out, err = run(*words, "--json", **how)
    check(code == status, words, "exit", code, "want", status, err)
    try:
        return json.loads(out)
    except ValueError:
        check(False, words, "printed no JSON document", out[:200], err)
        return {}


def refuse(status, pieces, *words, **how):
    """One clear line, the right status, nothing on standard output."""
    code, out, err = run(*words, **how)
    check(code == status, words, "exit", code, "want", status, err)
    check(out == "", words, "printed", out[:100])
    check(err.count("\n") == 1 and err.endswith("\n"), words, "not one line:", repr(err))
    for piece in pieces:
        check(piece in err, words, "message lacks", repr(piece), "in", repr(err))


def row(name, injected, count, lost, command, *more):
    """A row of docs/reliability.md, for the file that CGAM_RELIABILITY names; `more` has five words for each other that was run mixed with it."""
    if os.environ.get("CGAM_RELIABILITY"):
        words = map(str, (name, injected, count, lost, command, *more))
        subprocess.run([f"{SRC}/tools/reliability", "--log", os.environ["CGAM_RELIABILITY"], *words], check=True)


def finish():
    print(f"{checks - failures} of {checks} checks passed")
    sys.exit(failures > 0)
