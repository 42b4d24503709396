"""A job of two ranks where the k-th call to the system fails on one of them: as tests/system/faults.py has it for one process.

    test_faults.py        a sample, for `make test`
    test_faults.py all    every k on either rank, for `make soak`

It ends soon, with status 2 or 3 and one line of one rank; every file is as it was or as a run without failures leaves it; the
next run brings the bytes of one without failures. Rows for docs/reliability.md go to the file CGAM_RELIABILITY names.

ctest: labels=nightly timeout=240
"""
import concurrent.futures
import os
import subprocess
import sys
import tempfile

import numpy as np
from jobs import PROGRAM, mpirun, ours, soon

sys.path.insert(0, os.path.join(os.environ["CGAM_SRC"], "tests/system"))
from faults import FEWER, Case, can_be_done, try_all, write_safetensors  # noqa: E402
from harness import finish  # noqa: E402

SAMPLE = 24 // FEWER
RECALL = "recall --bank {} --query q.npy --beta {} --alpha 0.01 --context c.npy --save-p p.npy --save-readout r.npy --threads 1 --json"
CASES = [
    ("recall of two ranks", RECALL.format("Z.npy", 2), RECALL.format("Z.npy", 1)),
    ("bank in parts over two ranks", None, RECALL.format("parts/Z.index.json", 1)),
]


def start(folder, before, words, rank):
    """Status and what the ranks said; standard output of rank 0 goes to a file, as that of one process does. From beside the folder: before it is
    installed the program looks for its libraries where it is started, and what the loader meets there is not to be counted."""
    command = [PROGRAM, *(os.path.join(folder, w) if w.endswith((".npy", ".json")) else w for w in words.split())]
    parts = [(1, *(before if rank == r else []), *command) for r in range(2)]
    job = mpirun(*parts, cwd=os.path.dirname(folder))
    for left in range(int(6 * soon()), -1, -1):  # seconds that we saw ourselves: who stops us stops the job too
        try:
            out, err = job.communicate(timeout=1)
            break
        except subprocess.TimeoutExpired:
            if left == 0:
                job.terminate()
                return -1, f"goes on: {job.communicate()}\n"
    with open(os.path.join(folder, "stdout"), "w", encoding="utf-8") as file:
        file.write(out)
    said = "".join(line + "\n" for line in ours(err))
    return job.returncode, said if said or not job.returncode else f"of mpirun: {err!r}\n"


def on(rank):
    return type("Ranks", (Case,), {"run": staticmethod(lambda folder, before, words: start(folder, before, words, rank))})


def world(folder):
    os.makedirs(os.path.join(folder, "parts"))
    at = lambda name: os.path.join(folder, name)
    Z = np.random.default_rng(3).normal(size=(60, 6)).astype("f4")
    np.save(at("Z.npy"), Z), np.save(at("q.npy"), Z[[1, 5]] * 0.7), np.save(at("c.npy"), Z[7])
    for name, rows in (("one", Z[:40]), ("two", Z[40:])):
        write_safetensors(at(f"parts/{name}.safetensors"), name, rows)
    with open(at("parts/Z.index.json"), "w", encoding="ascii") as f:
        f.write('{"weight_map": {"one": "one.safetensors", "two": "two.safetensors"}}')


def main():
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=base) as scratch, concurrent.futures.ThreadPoolExecutor(1) as pool:
        can_be_done(scratch)
        world(os.path.join(scratch, "world"))
        cases = [on(rank)(scratch, f"{name}, rank {rank}", before, words) for name, before, words in CASES for rank in range(2)]
        try_all(pool, cases, SAMPLE, "I/O failures of one of two ranks", "the k-th call of recall on either rank, every k", "tests/rank/test_faults.py all")


if __name__ == "__main__":
    main()
    finish()
