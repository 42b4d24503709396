"""Sixteen clients at once, then 64 of whom some break off: no error, no wrong answer, no growth of memory, nothing left
open.  CGAM_CROWD=100000 asks as often as that.  ctest: labels=threads timeout=240"""
import os
import subprocess

from client import SLOW, check, finish, resident, row, server, wait_until

CROWD = os.path.join(os.environ["CGAM_BUILD"], "tests", "serve", "crowd")
COUNT = int(os.environ.get("CGAM_CROWD", 12000 // SLOW))


def ask(s, count, clients=16, rude=0):
    done = subprocess.run([CROWD, str(s.port), s.token, str(clients), str(count), str(rude)], capture_output=True, text=True, check=False)
    check(done.returncode == 0, "crowd", done.stdout, done.stderr)
    return done.stdout.strip()


def open_files(s):
    return len(os.listdir(f"/proc/{s.process.pid}/fd"))


with server("--metrics") as main:
    ask(main, COUNT // 3)
    before, files = resident(main.process.pid), open_files(main)
    print(ask(main, COUNT))
    grown = resident(main.process.pid) - before
    print(f"memory grew by {grown / 1e6:.2f} MB over {COUNT} requests")
    # Arenas and kept blocks settle within a few hundred kB; a leak of 64 bytes a request would show.
    check(SLOW > 1 or grown < 64 * COUNT + (1 << 20), "memory grew by", grown)
    # The server closes the last connections after their clients have gone.
    check(wait_until(lambda: open_files(main) <= files + 2, 10), "open files", files, open_files(main))
    row("Server, 16 clients", "recalls, each answer compared with that of a client alone", COUNT, 0, "make soak")
    text = main.request("GET", "/metrics")[2].decode()
    hits = float(text.split("\ncgam_gate_hits_total ")[1].split()[0])
    misses = float(text.split("\ncgam_gate_misses_total ")[1].split()[0])
    check(misses <= 64 and hits >= COUNT, "gates were not shared", hits, misses)

with server("--max-requests", 128) as main:
    nobody = open_files(main)
    ask(main, COUNT // 6, 64, 10)
    before = resident(main.process.pid)
    print(ask(main, COUNT // 2, 64, 10), "with 64 clients, a tenth of the requests broken off")
    grown = resident(main.process.pid) - before
    print(f"memory grew by {grown / 1e6:.2f} MB")
    # 64 clients may meet in another way the second time: a few arenas more.
    check(SLOW > 1 or grown < 32 * COUNT + (16 << 20), "memory grew by", grown)
    check(ask(main, 200).endswith(" 0 wrong"), "it goes on as before")
    # Half a request is waited for as long as any other: half a minute, which only the long run has.
    check("CGAM_CROWD" not in os.environ or wait_until(lambda: open_files(main) <= nobody + 2, 60), "open files", nobody, open_files(main))
    row("Server, 64 clients", "a tenth of the requests broken off in the middle", COUNT // 2, 0, "make soak")
finish()
