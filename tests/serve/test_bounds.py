"""Work and answers are bounded before they begin: queries of a request, rows of an answer, memory of a verb.  ctest: timeout=120"""
import json
import os
import subprocess
import time

import numpy as np

from client import CGAM, SLOW, check, finish, folder, patient, refuse, resident, run, server


def asked(s, **options):
    at = time.monotonic()
    code, document = s.verb("recall", bank="demo", **options)
    return code, document, time.monotonic() - at


def peak(*words):
    """Status, bytes on standard output, and most bytes of memory of a program."""
    with subprocess.Popen([CGAM, *words], stdout=subprocess.PIPE) as p:
        size = sum(len(piece) for piece in iter(lambda: p.stdout.read(1 << 20), b""))
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
    return p.returncode, size, usage.ru_maxrss * 1024


def documents_are_made_while_they_are_written():
    """As a tree, the answers of 40,000 queries are 270 MB."""
    rng = np.random.default_rng(5)
    np.save("B.npy", rng.standard_normal((200, 16)))
    np.save("Q.npy", rng.standard_normal((40000, 16)))
    base = peak("recall", "--bank", "B.npy", "--query", "rows:7", "--json")[2]
    status, size, most = peak("recall", "--bank", "B.npy", "--query", "Q.npy", "--json")
    check(status == 0 and size > 40e6, status, size)
    check(SLOW > 1 or most - base < 60e6, "a document took", most - base)
    status, size, most = peak("recall", "--bank", "B.npy", "--query", "Q.npy")
    check(status == 0 and size > 2e6, status, size)
    check(SLOW > 1 or most - base < 60e6, "its text took", most - base)
    p = subprocess.Popen([CGAM, "recall", "--bank", "B.npy", "--query", "Q.npy", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdout.read(100)  # it is being written, and nobody reads on
    time.sleep(patient(0.5))
    at = time.monotonic()
    p.terminate()
    check(p.wait(timeout=patient(30)) == 3 and time.monotonic() - at < patient(1), "a document that nobody reads", p.returncode)
    check(p.stderr.read().endswith(b"stopped on request\n"), "the last line")
    p.stdout.close()
    p.stderr.close()


def queries_and_rows(s):
    before = resident(s.process.pid)
    many = "rows:" + ";".join(["7"] * 10**6)  # a body of 2 MB, which made 1.1 GB of answer
    code, document, took = asked(s, query=many)
    check(code == 400 and "too many vectors: 1000000 (limit for one request: 10000" in document["error"], code, document)
    code, document, _ = asked(s, query=[[0.1] * 16] * 10001)
    check(code == 400 and "too many vectors: 10001" in document["error"], code, document)
    code, document, _ = asked(s, query="rows:" + ";".join(["7"] * 9000), top=60)
    check(code == 400 and "60 for each of 9000 queries" in document["error"], code, document)
    check(took < 5, "took", took)
    check(resident(s.process.pid) - before < 300e6, "took memory", resident(s.process.pid) - before)
    code, document, _ = asked(s, query="rows:" + ";".join(["7"] * 3000), top=60)
    check(code == 200 and len(document["queries"]) == 3000, "within the limits", code)
    limits = json.loads(s.request("GET", "/api/here")[2])["limits"]
    check(limits["queries"] == 10000 and limits["rows"] == 200000, limits)


def memory():
    Z = np.random.default_rng(4).standard_normal((1500, 1500))
    np.save("Z.npy", Z / np.linalg.norm(Z, axis=1, keepdims=True))
    words = ("recall", "--bank", "Z.npy", "--query", "rows:7", "--mode", "coupled", "--alpha", 0.1)
    refuse(3, ["out of memory", "max-memory is 16 MB"], *words, "--max-memory", 16)
    for verb, options in {"recall": words[3:], "landscape": words[3:5] + words[7:], "inspect": (), "map": ("--grid", 5)}.items():
        at = time.monotonic()
        refuse(3, ["the work on this bank would take", "max-memory is 16 MB"], verb, "--bank", "Z.npy", *options, "--max-memory", 16)
        check(time.monotonic() - at < patient(1), verb, "began its work")
    refuse(3, ["the gates of the bank would take", "max-memory is 16 MB"], "bank", "pack", "--from", "Z.npy", "--alpha", 0.1, "--out",
           "o.safetensors", "--max-memory", 16)
    refuse(3, ["the bank would take 11475 MB", "max-memory is 500 MB"], "bench", "--rows", 10**6, "--columns", 2000, "--max-memory", 500)
    refuse(3, ["would take 64 MB"], *words, "--certify", "--max-memory", 60)  # it fails at 64 too, and runs with 75
    refuse(3, ["the results of all trials would take", "max-memory is 500 MB"], "study", "competition", "--trials", 2**31 - 1,
           "--max-memory", 500)
    refuse(2, ["--max-memory"], *words, "--max-memory", 0)
    code, out, err = run(*words, "--max-memory", 400, "--json")
    check(code == 0 and json.loads(out)["queries"], "within the limit", code, err)
    with server("--bank", "Z=Z.npy", "--max-memory", 16) as s:
        code, document = s.verb("recall", bank="Z", query="rows:7", mode="coupled", alpha=0.1)
        check(code == 500 and "max-memory is 16 MB" in document["error"], code, document)
        s.alive()


with folder() as where:

    os.chdir(where)
    with server() as s:
        queries_and_rows(s)
    memory()
    documents_are_made_while_they_are_written()
finish()
