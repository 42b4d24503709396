"""Work and answers are bounded before they begin: queries of a request, rows of an answer, memory of a verb.  ctest: timeout=120"""
import json
import os
import time

import numpy as np

from client import check, finish, folder, refuse, resident, run, server


def asked(s, **options):
    at = time.monotonic()
    code, document = s.verb("recall", bank="demo", **options)
    return code, document, time.monotonic() - at


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
    refuse(3, ["out of memory", "max-memory is 500 MB"], "study", "theorems", "--trials", 2**31, "--max-memory", 500)
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
finish()
