"""One process that answers verb after verb: memory and descriptors stay flat.  long_run.py ROUNDS, for `make soak` and
`make nightly_asan`.

A round has a recall in every mode, an inspection, a landscape, a map, a study whose results are written, and states of
a small model. Memory is looked at after a fifth of the rounds, when caches and arenas have settled, and at the end."""
import os
import subprocess
import sys

from client import SLOW, check, finish, folder, resident, row, server

ROUNDS = int(sys.argv[1])
TINY = os.path.join(os.environ["CGAM_BUILD"], "tests", "python", "tiny_model")


def one(s, i):
    asked = [("recall", {"bank": "demo", "query": f"rows:{i % 60}", "mode": mode, "alpha": 0.01 * (i % 7), "beta": 4}) for mode in
             ("first", "coupled", "flow", "anneal")]
    asked += [("inspect", {"bank": "demo", "alpha": 0.01}), ("landscape", {"bank": "demo", "query": f"rows:{i % 60}", "starts": 3}),
              ("map", {"bank": "demo", "grid": 8}),
              ("study competition", {"trials": 4, "seed": i, "out": f"study{i % 3}", "figures": "no", "overwrite": True}),
              ("lm states", {"model": "tiny", "prompt": f"cat {i}"})]
    for verb, options in asked:
        code, doc = s.verb(verb, **options)
        check(code == 200, verb, options, code, doc)


with folder() as at:
    subprocess.run([TINY, os.path.join(at, "tiny.gguf")], check=True)
    with server("--root", at, "--model", f"tiny={at}/tiny.gguf") as main:
        seen = []
        for i in range(ROUNDS):
            one(main, i)
            if i in (ROUNDS // 5, ROUNDS - 1):
                seen.append((resident(main.process.pid), len(os.listdir(f"/proc/{main.process.pid}/fd"))))
        grown, more = seen[1][0] - seen[0][0], seen[1][1] - seen[0][1]
        print(f"{ROUNDS} rounds of 9 verbs: memory grew by {grown / 1e6:.2f} MB, {more} more descriptors")
        # 256 bytes a verb would be a leak; what the allocator keeps is below that.
        # A sanitizer keeps what was freed; it looks for leaks itself when the server ends.
        flat = (SLOW > 1 or grown < 256 * 9 * ROUNDS + (4 << 20)) and more <= 2
        check(flat, "memory or descriptors grew", seen)
        row("Long run in one process", "recalls, landscapes, studies, states of a model: memory and descriptors flat", 9 * ROUNDS, 0 if flat else 1,
            "tests/serve/long_run.py 1000")
finish()
