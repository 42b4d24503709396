"""Sixteen clients at once: no error, no wrong answer, no growth of memory, nothing left open.
CGAM_CROWD=100000 asks as often as that.  ctest: labels=threads timeout=240"""
import os
import subprocess

from client import SLOW, check, finish, resident, server

CROWD = os.path.join(os.environ["CGAM_BUILD"], "tests", "serve", "crowd")
COUNT = int(os.environ.get("CGAM_CROWD", 12000 // SLOW))


def ask(s, count):
    done = subprocess.run([CROWD, str(s.port), s.token, "16", str(count)], capture_output=True, text=True, check=False)
    check(done.returncode == 0, "crowd", done.stdout, done.stderr)
    return done.stdout.strip()


with server("--metrics") as main:
    ask(main, COUNT // 3)
    before, files = resident(main.process.pid), len(os.listdir(f"/proc/{main.process.pid}/fd"))
    print(ask(main, COUNT))
    grown = resident(main.process.pid) - before
    print(f"memory grew by {grown / 1e6:.2f} MB over {COUNT} requests")
    # Arenas and kept blocks settle within a few hundred kB; a leak of 64 bytes a request would show.
    check(SLOW > 1 or grown < 64 * COUNT + (1 << 20), "memory grew by", grown)
    left = len(os.listdir(f"/proc/{main.process.pid}/fd"))
    check(left <= files + 2, "open files", files, left)
    text = main.request("GET", "/metrics")[2].decode()
    hits = float(text.split("\ncgam_gate_hits_total ")[1].split()[0])
    misses = float(text.split("\ncgam_gate_misses_total ")[1].split()[0])
    check(misses <= 64 and hits >= COUNT, "gates were not shared", hits, misses)
finish()
