"""The documents of cgam-mpi are those of cgam: banks in several files, studies, the report; a study that was killed goes on.

ctest: timeout=240
"""
import filecmp
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np
from jobs import ALONE, PROGRAM, SLOWER, check, failures, killed, mpirun, ours, ranks_of, soon

AS_IT_COMES = ("seconds", "figure_seconds", "ranks", "traffic", "out", "report", "bank", "threads")


def strip(doc):
    """Without what depends on time and place."""
    if isinstance(doc, dict):
        return {key: strip(value) for key, value in doc.items() if key not in AS_IT_COMES}
    return [strip(value) for value in doc] if isinstance(doc, list) else doc


def alone(*words):
    done = subprocess.run([ALONE, *words, "--json"], capture_output=True, text=True)
    check(done.returncode == 0, "cgam", words, done.stderr)
    return json.loads(done.stdout or "{}")


def together(ranks, *words):
    job = mpirun((ranks, PROGRAM, *words, "--json", "--threads", "1"))
    out, err = job.communicate(timeout=100 * SLOWER)
    check(job.returncode == 0, ranks, words, job.returncode, err)
    doc = json.loads(out or "{}")
    check(doc.get("ranks") == ranks, words, "ranks", doc.get("ranks"))
    return doc


def same(ranks, want, *words):
    got = together(ranks, *words)
    check(strip(got) == strip(want), ranks, "ranks:", *words, strip(got), strip(want))
    return got


def same_folders(a, b):
    names = sorted(os.listdir(a))
    check(names == sorted(os.listdir(b)), a, b, names, os.listdir(b))
    for name in names:
        if os.path.isdir(os.path.join(a, name)):
            same_folders(os.path.join(a, name), os.path.join(b, name))
        elif name.endswith((".csv", ".json")):
            check(filecmp.cmp(os.path.join(a, name), os.path.join(b, name), False), a, b, name, "differ")


def safetensors(path, name, kind, rows):
    header = json.dumps({name: {"dtype": kind, "shape": rows.shape, "data_offsets": [0, rows.nbytes]}}).encode()
    header += b" " * (-len(header) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + rows.tobytes())


def banks():
    rng = np.random.default_rng(5)
    Z = rng.standard_normal((4000, 16)).astype(np.float32)
    Z[2003] = Z[1996]  # equal rows on both sides of every middle
    np.save("Z.npy", Z)
    np.save("q.npy", (Z[1990:1993] + 0.5 * Z[1996]).astype(float))
    np.save("c.npy", Z[3999].astype(float))
    cuts = [0, 700, 700, 1999, 2000, 2001, 2100, 2200, 2300, 2400, 3999, 4000]
    files = {}
    for k in range(len(cuts) - 1):
        rows = Z[cuts[k]:cuts[k + 1]]
        np.save(f"Z-{k}.npy", rows)
        files[f"Z.{k}"] = f"part-{k:05d}.safetensors"
        safetensors(files[f"Z.{k}"], f"Z.{k}", "F32", rows)
    with open("Z.index.json", "w") as file:
        json.dump({"metadata": {"total_size": Z.nbytes}, "weight_map": files}, file, sort_keys=True)
    how = ("--query", "q.npy", "--context", "c.npy", "--normalize", "--top", "5", "--certify")
    for mode, bank, runs in (("first", "Z-*.npy", (1, 7)), ("coupled", "Z.index.json", (2,))):
        words = (*how, "--mode", mode, "--alpha", "0.003")
        want = alone("recall", "--bank", "Z.npy", *words)
        same(3, want, "recall", "--bank", bank, *words)
        for ranks in runs:
            traffic = same(ranks, want, "recall", "--bank", "Z.npy", *words)["traffic"]
            check((traffic["bytes_per_iteration"] > 0) == (mode == "coupled"), ranks, mode, traffic)
    same(3, alone("inspect", "--bank", "Z.index.json", "--alpha", "0.003"), "inspect", "--bank", "Z.index.json", "--alpha", "0.003")
    os.remove("part-00009.safetensors")
    job = mpirun((2, PROGRAM, "recall", "--bank", "Z.index.json", "--query", "q.npy"))
    out, err = job.communicate(timeout=soon())
    check(job.returncode == 2 and out == "" and len(ours(err)) == 1 and "part-00009" in err, "a missing shard", err)


def studies():
    words = ("study", "separation", "--trials", "40", "--figures", "no", "--out")
    same(7, alone(*words, "one"), *words, "many")
    same_folders("one", "many")
    words = ("study", "capacity", "--trials", "2", "--load", "0.5", "--files", "no", "--bank")
    np.save("memories.npy", np.random.default_rng(6).standard_normal((80, 12)))
    same(3, alone(*words, "memories.npy"), *words, "memories.npy")
    one = alone("study", "coupled", "--only-trial", "1")
    check(strip(together(2, "study", "coupled", "--only-trial", "1")) == strip(one), "only-trial")
    job = mpirun((1, PROGRAM, "study", "phase", "--trials", "2", "--out", "odd"),
                 (1, PROGRAM, "study", "phase", "--trials", "3", "--out", "odd"))
    out, err = job.communicate(timeout=soon())
    check(job.returncode == 2 and out == "" and len(ours(err)) == 1 and "different verbs or options" in err, "options", err)
    np.save("others.npy", np.random.default_rng(7).standard_normal((80, 12)))
    words = ("study", "capacity", "--trials", "2", "--load", "0.5", "--out", "odd", "--bank")
    job = mpirun((1, PROGRAM, *words, "memories.npy"), (1, PROGRAM, *words, "others.npy"))
    out, err = job.communicate(timeout=soon())
    check(job.returncode == 2 and out == "" and len(ours(err)) == 1 and "rank 1: options, memories" in err, "memories", err)
    check(not os.path.exists("odd/summary.json"), "half a study")


def a_report():
    """Of every study."""
    words = ("report", "--scale", "0.0005", "--figures", "no", "--out")
    want = alone(*words, "page-one")
    got = together(3, *words, "page-many")
    for doc in (want, got):
        doc["studies"] = [run["name"] for run in doc["studies"]]
    check(strip(got) == strip(want), "report", got, want)
    same_folders("page-one", "page-many")


def killed_study():
    """A rank dies, then one of two ranks is stopped, and one process ends the study with the bits of any other."""
    words = ("study", "coupled", "--trials", "96", "--figures", "no", "--out", "broken")
    progress = "broken/.coupled.progress"
    for ranks, number in ((3, signal.SIGKILL), (2, signal.SIGTERM)):
        before = os.path.getsize(progress) if os.path.exists(progress) else 0
        job = mpirun((ranks, PROGRAM, *words, "--threads", "1"))
        begin = time.monotonic()
        while time.monotonic() - begin < 60 and job.poll() is None:
            if os.path.exists(progress) and os.path.getsize(progress) > max(before, 100):
                break
            time.sleep(0.02)
        team = ranks_of(job)
        check(len(team) == ranks, "ranks at work", team)
        err = killed(job, team[-1], number)
        lines = [line for line in err.splitlines() if f"rank {ranks - 1}" in line]
        check(len(lines) == 1, "killed: told", err)
        check(os.listdir("broken") == [".coupled.progress"], "killed: left", os.listdir("broken"))
        check(os.path.getsize(progress) > before, "killed: no progress", before)
    want = alone(*words[:-1], "whole")
    check(strip(alone(*words)) == strip(want), "went on alone")
    same_folders("whole", "broken")


def main():
    with tempfile.TemporaryDirectory(prefix="cgam-ranks-") as folder:
        os.chdir(folder)
        for part in (banks, studies, a_report, killed_study):
            begin = time.monotonic()
            part()
            print(f"{part.__name__}: {time.monotonic() - begin:.1f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
