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


def check(fine, *said):
    if not fine:
        failures.append(said)
        print(os.path.basename(sys.argv[0]) + ":", *said, file=sys.stderr)


def mpirun(*parts):
    """parts: (how many, words..); started, not awaited."""
    words = ["mpirun", "--oversubscribe"]
    for at, (count, *command) in enumerate(parts):
        words += ([":"] if at else []) + ["-n", str(count), *command]
    return subprocess.Popen(words, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


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


def running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


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


def killed(job, pid, number):
    """One of its ranks gets a signal: mpirun and all ranks end within ten seconds. What it printed."""
    team = ranks_of(job)
    os.kill(pid, number)
    end = time.monotonic() + 10 * SLOWER
    try:
        out, err = job.communicate(timeout=10 * SLOWER)
    except subprocess.TimeoutExpired:
        check(False, "killed: goes on")
        job.kill()
        out, err = job.communicate()
    while any(map(running, team)) and time.monotonic() < end:  # mpirun may return a little before them
        time.sleep(0.05)
    left = [rank for rank in team if running(rank)]
    check(not left, "killed: left running", left)
    for rank in left:
        os.kill(rank, signal.SIGKILL)
    check(job.returncode != 0 and out == "", "killed: status", job.returncode, out)
    return err
