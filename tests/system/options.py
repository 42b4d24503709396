"""Every verb under random options, and where permission is denied.

    options.py           a sample, for `make test`
    options.py N         N runs, for `make soak` (under ASan and UBSan there)

Verbs, options, their kinds and ranges are those of `cgam help --json`; values are good ones, bad ones, the ends of
ranges, files of all sorts. A run ends with status 0 to 3, what is refused in one line; who takes longer than a few
seconds is asked to stop and stops."""
import concurrent.futures
import json
import os
import random
import signal
import subprocess
import sys
import tempfile

from faults import FEWER, progress, world
from harness import CGAM, check, finish, row, run

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 160 // FEWER
SLOW = 8 if os.environ.get("CGAM_SANITIZE") else 1
PATIENCE = (3, 30 * SLOW)  # seconds until it is asked to stop, and from then until it has
NOBODY = 65534
DENIED = {**os.environ, "LLVM_PROFILE_FILE": "/dev/null"}  # counts of make coverage are a file too
NOT_RUN = ("serve", "lm get", "data get")  # they wait for others
SMALL = ("trials", "n", "d", "queries", "rows", "columns", "runs", "starts", "banks", "grid", "max-tokens", "threads", "fold-trials")
FILES = ["Z.npy", "Z.csv", "Z.npz", "q.npy", "c.npy", "Z.names", "only.txt", "B.safetensors", "net.json", "tiny.gguf", "S.db",
         "v.safetensors", "prompts.txt", "none.npy", "empty", "folder", "closed.npy", "shut/x", "/dev/null", "-", "demo:", "rows:1"]
WORDS = ["", "x", "cat", "0", "a" * 300, "\u00e4", "{x} {y}", "%s%n", "w1", "rows:1;2", "--", "1,2", "0-3", "../..", "first"]
NUMBERS = ["0", "1", "2", "0.5", "1e-300", "1e300", "-1", "nan", "inf", "1e999", "x", "", "0x10", "1,2", "3"]
WHOLE = ["0", "1", "2", "3", "5", "-1", "2147483648", "9223372036854775807", "1.5", "x", "", "1,2", "0,0,1"]


def value(rng, p):
    kind = p["kind"]
    if kind in ("choice", "words"):
        return rng.choice(p["words"] + (["x"] if not p["words"] or rng.random() < 0.1 else []))
    if kind in ("real", "reals"):
        ends = [repr(p[k]) for k in ("min", "max") if p[k] is not None]
        return rng.choice(NUMBERS + ends)
    if kind in ("int", "ints"):
        ends = [str(int(p[k])) for k in ("min", "max") if p[k] is not None]
        return str(rng.randint(1, 6)) if p["name"] in SMALL and rng.random() < 0.9 else rng.choice(WHOLE + ends)
    if p["writes"]:
        return rng.choice(["out", "out.npy", "out.safetensors", "shut/out", "folder", "Z.npy/x", "closed.npy", "no/such"])
    named = [f for f in FILES if f.endswith((p.get("value") or "")[4:].rstrip("]")) and "." in (p.get("value") or "")]
    return rng.choice(named or (FILES if "FILE" in (p.get("value") or "") and rng.random() < 0.8 else WORDS))


def line(rng, verb):
    words, given = verb["name"].split(), []
    for p in verb["parameters"]:
        if p["name"] == "json" or rng.random() > (0.95 if p["required"] or p["positional"] else 0.2):
            continue
        if p["positional"]:
            words.append(value(rng, p))
        else:
            given.append(["--" + p["name"]] + ([value(rng, p)] if p["kind"] != "flag" else []))
    if any(p["name"] == "model" for p in verb["parameters"]) and rng.random() < 0.9:
        given = [g for g in given if g[0] != "--model"] + [["--model", "tiny.gguf"]]
    for name, small in (("scale", "0.001"), ("trials", "2"), ("queries", "2"), ("figures", "no"), ("runs", "1"), ("threads", "1")):
        if any(p["name"] == name for p in verb["parameters"]) and not any(g[0] == "--" + name for g in given):
            given.append(["--" + name, small])
    rng.shuffle(given)
    return words + sum(given, []) + (["--json"] if rng.random() < 0.3 else [])


def attempt(scratch, verbs, seed):
    rng = random.Random(seed)
    words = line(rng, rng.choice(verbs))
    denied = os.geteuid() == 0 and rng.random() < 0.2
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        for name in os.listdir(os.path.join(scratch, "world")):
            os.symlink(os.path.join(scratch, "world", name), os.path.join(folder, name))
        os.mkdir(os.path.join(folder, "folder"))
        os.mkdir(os.path.join(folder, "shut"), 0)
        for name, mode in (("empty", 0o644), ("closed.npy", 0)):
            os.close(os.open(os.path.join(folder, name), os.O_CREAT, mode))
        os.chmod(folder, 0o755 if rng.random() < 0.5 else 0o777)
        child = subprocess.Popen([CGAM, *words], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, start_new_session=True,
                                 **({"user": NOBODY, "group": NOBODY, "extra_groups": [], "env": DENIED} if denied else {}))
        stopped = False
        try:
            said = child.communicate(timeout=PATIENCE[0])[1]
        except subprocess.TimeoutExpired:
            stopped = True
            child.send_signal(signal.SIGINT)
            try:
                said = child.communicate(timeout=PATIENCE[1])[1]
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                said = child.communicate()[1]
                return f"seed {seed}: {' '.join(words)}: did not stop"
    said = progress(said.decode(errors="replace"))
    lines = 1 if child.returncode > 1 else 0
    usage = child.returncode == 2 and said.startswith("Usage")
    if child.returncode in (0, 1, 2, 3) and (usage or said.count("\n") == lines):
        return None
    return f"seed {seed}{', as nobody' if denied else ''}{', stopped' if stopped else ''}: {' '.join(words)}: exit {child.returncode} {said[:2000]!r}"


def main():
    verbs = [v for v in json.loads(run("help", "--json")[1])["verbs"] if v["name"] not in NOT_RUN]
    first = int(os.environ.get("CGAM_SEED", 0))
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(2) as pool:
        os.chmod(scratch, 0o755)
        world(os.path.join(scratch, "world"))
        wrong = [w for w in pool.map(lambda s: attempt(scratch, verbs, s), range(first, first + COUNT)) if w]
    check(not wrong, *(f"\n  {w}" for w in wrong))
    print(f"{COUNT} runs of {len(verbs)} verbs, {len(wrong)} wrong")
    row("Random options", f"{len(verbs)} verbs, files and folders closed to them too" + (", under ASan and UBSan" if SLOW > 1 else ""),
        COUNT, len(wrong), "tests/system/options.sh 5000")


main()
finish()
