"""Jobs of several ranks, for the tests beside this file."""
import os
import signal
import subprocess
import sys
import time

BUILD = os.environ["CGAM_BUILD"]
PROGRAM = os.path.join(BUILD, "cgam-mpi")
ALONE = os.environ["CGAM"]
ENV = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
           OMPI_MCA_mpi_yield_when_idle="1",
           ASAN_OPTIONS="detect_leaks=0")  # same.sh looks for them
SLOWER = 5 if os.environ.get("CGAM_SANITIZE") else 1
failures = []


def soon():
    """Seconds for a job that cannot go on to end: ten, and more where more is at work than there are cores."""
    crowd = os.getloadavg()[0] / len(os.sched_getaffinity(0))
    return 10 * SLOWER * min(max(crowd, 1), 6)


def check(fine, *said):
    if not fine:
        failures.append(said)
        print(os.path.basename(sys.argv[0]) + ":", *said, file=sys.stderr)


def mpirun(*parts, cwd=None):
    """parts: (how many, words..); started, not awaited."""
    words = ["mpirun", "--oversubscribe"]
    for at, (count, *command) in enumerate(parts):
        words += ([":"] if at else []) + ["-n", str(count), *command]
    return subprocess.Popen(words, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd)


def ours(text):
    return [line for line in text.splitlines() if line.startswith("cgam")]


def family(pid):
    """Processes that a process started, and those they started."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat") as file:
                parent = int(file.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        if parent == pid:
            found += [int(name), *family(int(name))]
    return found


def ranks_of(job):
    found = []
    for pid in family(job.pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if file.read().split(b"\0")[0].endswith(b"cgam-mpi"):
                    found.append(pid)
        except OSError:
            pass
    return found


def still_here(end):
    """Who else is at work in this folder at that time; mpirun may return a little before its ranks."""
    while True:
        left = []
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and int(name) != os.getpid() and os.readlink(f"/proc/{name}/cwd") == os.getcwd():
                    left.append(int(name))
            except OSError:
                pass
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.05)


def killed(job, pid, number):
    """One of its ranks gets a signal: mpirun and all ranks end soon. What it printed."""
    os.kill(pid, number)
    limit = soon()
    end = time.monotonic() + limit
    try:
        out, err = job.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        check(False, "killed: goes on")
        job.kill()
        out, err = job.communicate()
    left = still_here(end)
    check(not left, "killed: left running", left)
    for rank in left:
        os.kill(rank, signal.SIGKILL)
    check(job.returncode != 0 and out == "", "killed: status", job.returncode, out)
    return err
