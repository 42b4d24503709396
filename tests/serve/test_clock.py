"""A clock that is set back an hour holds nothing up: a server asked to end while a verb runs, a request past its time, a program asked
to stop.  ctest: timeout=100"""
import os
import shutil
import subprocess
import time

from client import CGAM, SLOW, check, finish, folder, patient, server

# A time taken before the clock was set back lies an hour ahead for those who wait until then.
AHEAD = """
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *at)
{
    int failed = (int)syscall(SYS_clock_gettime, id, at);
    if (id == CLOCK_REALTIME) at->tv_sec += 3600;
    return failed;
}
"""


def ends(where):
    with open("ahead.c", "w", encoding="ascii") as f:
        f.write(AHEAD)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "ahead.so", "ahead.c"], check=True)
    env = {**os.environ, "LD_PRELOAD": f"{where}/ahead.so"}
    with server("--timeout", 2, env=env) as s:
        code, document = s.verb("study competition", trials=10**6)
        check(code == 503 and "stopped after 2 seconds" in document["error"], code, document)
    with server("--timeout", 600, env=env) as s:
        c = s.connect()
        c.request("POST", "/api/study/competition", '{"trials": 1000000}', s.headers())
        time.sleep(patient(0.5))
        at = time.monotonic()
        s.stop()
        check(time.monotonic() - at < patient(8), "a server that ends took", time.monotonic() - at)
        c.close()
    p = subprocess.Popen([CGAM, "study", "competition", "--trials", "1000000", "--out", "out"], env=env, stderr=subprocess.DEVNULL)
    time.sleep(patient(1))
    at = time.monotonic()
    p.terminate()
    check(p.wait(timeout=patient(30)) == 3 and time.monotonic() - at < patient(1), "a program that is stopped", p.returncode)


if SLOW > 1 or not shutil.which("cc"):
    print("skipped: needs a plain build and a C compiler")
else:
    with folder() as here:
        os.chdir(here)
        ends(here)
finish()
