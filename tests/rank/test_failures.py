"""What goes wrong on one rank ends the job: soon, with one line that names it, the exit status that one
process would have, no half-written file and nobody left running.

ctest: timeout=200
"""
import os
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
from jobs import PROGRAM, check, failures, family, killed, mpirun, ours, ranks_of, soon, still_here


def fails(what, status, words, *parts):
    """From mpirun's start on: what fails here fails as soon as the ranks have met."""
    limit = soon()
    end = time.monotonic() + limit
    job = mpirun(*parts)
    try:
        out, err = job.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        for pid in family(job.pid):
            os.kill(pid, signal.SIGKILL)
        job.kill()
        check(False, what, "did not end")
        return
    left = still_here(end)
    check(not left, what, "left running", left)
    lines = ours(err)
    check(job.returncode == status, what, "status", job.returncode, err)
    check(len(lines) == 1 and all(word in lines[0] for word in words), what, lines, err)
    check(out == "", what, "printed", out)


def main():
    folder = tempfile.mkdtemp(prefix="cgam-failures-")
    os.chdir(folder)
    rng = np.random.default_rng(5)
    Z = rng.standard_normal((5000, 24)).astype(np.float32)
    np.save("Z.npy", Z)
    np.save("other.npy", Z[::-1])
    np.save("narrow.npy", Z[:, :20].copy())
    np.save("q.npy", Z[:64].astype(float))
    np.save("long.npy", rng.standard_normal((200000, 4)))
    np.save("short_q.npy", rng.standard_normal((8, 4)))
    np.save("many.npy", rng.standard_normal((20000, 24)))
    holed = Z.copy()
    holed[4700, 3] = np.nan
    np.save("holed.npy", holed)
    with open("Z.npy", "rb") as whole, open("short.npy", "wb") as file:
        file.write(whole.read()[:100000])
    files = sorted(os.listdir("."))
    def recall(bank, *more, query="q.npy"):
        return (PROGRAM, "recall", "--bank", bank, "--query", query, "--threads", "1", *more)


    fails("a bad file", 2, ["rank 1: short.npy"], (1, *recall("Z.npy")), (2, *recall("short.npy")))
    fails("no file", 2, ["rank 1: ", "gone.npy"], (1, *recall("Z.npy")), (1, *recall("gone.npy")))
    fails("another file", 2, ["rank 2: other.npy", "rank 0"], (2, *recall("Z.npy")), (1, *recall("other.npy")))
    fails("another shape", 2, ["rank 1: narrow.npy", "24"], (1, *recall("Z.npy")), (1, *recall("narrow.npy")))
    fails("a hole", 2, ["rank 2: holed.npy: nan at row 4700, column 3"], (3, *recall("holed.npy")))
    fails("bad usage", 2, ["--beta"], (3, *recall("Z.npy", "--beta", "-1")))
    # words that differ: nobody waits for anybody, and there is no answer to half a question
    fails("another beta", 2, ["different"], (1, *recall("Z.npy", "--beta", "1")), (2, *recall("Z.npy", "--beta", "2")))
    fails("another query", 2, ["different"], (2, *recall("Z.npy")), (1, *recall("Z.npy", query="many.npy")))
    fails("another verb", 2, ["different"], (1, *recall("Z.npy")), (1, PROGRAM, "inspect", "--bank", "Z.npy"))
    fails("help on one", 2, ["different"], (1, *recall("Z.npy")), (1, PROGRAM, "recall", "--help"))
    fails("no verb on one", 2, ["different"], (1, *recall("Z.npy")), (1, PROGRAM))
    fails("one process's work", 2, ["ranks"], (2, PROGRAM, "serve"))
    if not os.environ.get("CGAM_SANITIZE"):  # which reserve more than any limit
        greedy = recall("Z.npy", "--top", "5000", "--max-memory", "64000", query="many.npy")  # lists of 2.4 GB
        fails("no memory", 3, ["rank 1: out of memory"], (1, *greedy),
              (1, "bash", "-c", "ulimit -v 1800000; exec \"$@\"", "-", *greedy))
    # rank 0 writes: 13 MB of a few queries do not fit into a file of 8 MiB
    wide = recall("long.npy", "--normalize", "--save-p", "p.npy", query="short_q.npy")
    fails("no disk", 3, ["rank 0: "], (1, "bash", "-c", "ulimit -f 8192; exec \"$@\"", "-", *wide), (1, *wide))
    check(sorted(os.listdir(".")) == files, "left behind", set(os.listdir(".")) - set(files))

    # killed in the middle: many iterations of a large batch
    job = mpirun((3, *recall("Z.npy", "--normalize", "--mode", "coupled", "--alpha", "0.02", "--save-p", "p.npy",
                             query="many.npy")))
    begin = time.monotonic()
    while len(ranks_of(job)) < 3 and time.monotonic() - begin < 30:
        time.sleep(0.05)
    time.sleep(1.5)
    ranks = ranks_of(job)
    check(len(ranks) == 3, "ranks at work", ranks)
    err = killed(job, ranks[1], signal.SIGKILL)
    check("signal 9" in err and "rank" in err, "killed: not told", err)
    check(sorted(os.listdir(".")) == files, "killed: left behind", set(os.listdir(".")) - set(files))
    subprocess.run(["rm", "-rf", folder], check=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
