"""Verbs over HTTP say what the command line says: same documents, same refusals; ids, numbers in
requests, events, metrics, the log.  ctest: labels=threads timeout=180"""
import base64
import io
import json
import os

import numpy as np

from client import SLOW, ask, check, finish, folder, server


def npy(array):
    to = io.BytesIO()
    np.save(to, array)
    return {"npy": base64.b64encode(to.getvalue()).decode()}


def same(got, want, *words):
    strip = lambda d: {k: v for k, v in d.items() if k not in ("seconds", "out")}
    check(strip(got) == strip(want), *words, "got", str(got)[:300], "want", str(want)[:300])


def documents_are_those_of_the_command_line(s, where, Z, q, c):
    for mode in "first", "coupled", "flow":
        want = ask("recall", "--bank", f"{where}/Z.npy", "--query", f"{where}/q.npy", "--context",
                   f"{where}/c.npy", "--mode", mode, "--alpha", 0.01, "--lambda", 1.5, "--top", 3)
        for query in q.tolist(), npy(q), {"values": q.tolist()}:
            code, got = s.verb("recall", bank="Z", query=query, context=c.tolist(), mode=mode,
                               alpha=0.01, top=3, **{"lambda": 1.5})
            check(code == 200, mode, code, got)
            same(got, want, "recall", mode)
    want = ask("inspect", "--bank", f"{where}/Z.npy", "--normalize", "--alpha", 0.2)
    code, got = s.verb("inspect", bank="Z", normalize=True, alpha=0.2)
    same({**got, "mapped": 0}, {**want, "mapped": 0}, "inspect")
    code, got = s.verb("recall", bank=Z.tolist(), query=q[0].tolist(), target=3)
    want = ask("recall", "--bank", f"{where}/Z.npy", "--query", f"{where}/q0.npy", "--target", 3)
    same(got, want, "a bank of the request's own")
    code, got = s.verb("recall", bank="Z", query=q[0].tolist(), activation="entmax15")
    want = ask("recall", "--bank", f"{where}/Z.npy", "--query", f"{where}/q0.npy", "--activation", "entmax15")
    check("support" in got["queries"][0], "a sparse recall", code, got)
    same(got, want, "a sparse recall")
    code, got = s.verb("recall", bank="Z", query=q[0].tolist(), activation="relu")
    check(code == 400 and "softmax, sparsemax" in str(got), "a bad activation", code, got)
    code, got = s.verb("recall", bank="Z", query=q.tolist(), target=[1, 2, 3])
    check(code == 200 and [r["target"] for r in got["queries"]] == [1, 2, 3], "targets", code, got)
    mix = 0.25 * Z[4] - 2 * Z[9]
    code, got = s.verb("recall", bank="Z", query="rows:4*0.25-9*2")
    np.save(f"{where}/mix.npy", mix)
    same(got, ask("recall", "--bank", f"{where}/Z.npy", "--query", f"{where}/mix.npy"), "mix")
    code, got = s.verb("study competition", trials=8, n=12, d=6, seed=3)
    want = ask("study", "competition", "--trials", 8, "--n", 12, "--d", 6, "--seed", 3, "--figures", "no",
               "--out", f"{where}/study")
    same(got, want, "study")
    check("out" not in got, "a study wrote somewhere", got.get("out"))


def recalls_of_every_kind(s, where, Z, q):
    """What recall can do beside its modes: the same by HTTP."""
    np.save(f"{where}/some.npy", np.array([1, 3, 5]))
    np.save(f"{where}/mask.npy", np.arange(40) % 2 == 1)
    with open(f"{where}/some.txt", "w", encoding="ascii") as f:
        f.write("m3\nm5\n")
    for options, words in (({"fast": True}, ["--fast"]), ({"fast": True, "tol-p": 0.01}, ["--fast", "--tol-p", 0.01]), ({"none": 1.5}, ["--none", 1.5]),
                           ({"min-p": 0.01}, ["--min-p", 0.01]), ({"mode": "anneal", "beta": 3}, ["--mode", "anneal", "--beta", 3]),
                           ({"activation": "sparsemax"}, ["--activation", "sparsemax"]), ({"activation": "entmax:1.3"}, ["--activation", "entmax:1.3"]),
                           ({"only": [1, 3, 5]}, ["--only", f"{where}/some.npy"]), ({"only": (np.arange(40) % 2 == 1).tolist()}, ["--only", f"{where}/mask.npy"]),
                           ({"only": {"text": "m3\nm5\n"}}, ["--only", f"{where}/some.txt"])):
        code, got = s.verb("recall", bank="Z", query=q.tolist(), **options)
        check(code == 200, options, code, got)
        same(got, ask("recall", "--bank", f"{where}/Z.npy", "--query", f"{where}/q.npy", *words), options)
    code, got = s.verb("landscape", bank="Z", query="rows:3", beta=4)
    np.save(f"{where}/three.npy", Z[3])
    same(got, ask("landscape", "--bank", f"{where}/Z.npy", "--query", f"{where}/three.npy", "--beta", 4), "landscape", code)


def nothing_is_written_unasked(s, where):
    """Every parameter of every verb that writes, from the table: refused, unless it is out, and then below the root."""
    before = sorted(os.listdir(where))
    verbs = json.loads(s.request("GET", "/api")[2])["verbs"]
    tried = 0
    for v in verbs:
        for p in v["parameters"]:
            if not p["writes"] or p.get("input") in ("store", "cache"):
                continue
            for value in "x.npy", "../x", f"{where}/x", True, ["x"]:
                if p["name"] == "out" and value == "x.npy" and not v["local"]:
                    continue  # a name below the root, for outs_lie_below_the_root
                code, got = s.verb(v["name"], **{p["name"]: value})
                check(code == 403 and got["status"] == 2, v["name"], p["name"], value, code, got)
                tried += 1
        if v["local"]:
            check(s.verb(v["name"])[0] == 403, v["name"], "is local")
    check(tried > 100 and {"bank pack", "bank add", "bank put", "bank drop", "serve", "lm get", "data get", "completion"} == {v["name"] for v in verbs if v["local"]},
          "verbs of the machine's user", tried)
    check(sorted(os.listdir(where)) == before, "something was written", os.listdir(where))


def memories_have_names(s, where, Z):
    table = json.loads(s.request("GET", "/api")[2])
    check([b["names"] for b in table["banks"]] == [True, False, True], "who has names", table["banks"])
    code, got = s.verb("recall", bank="Z", query="rows:'m 4'*0.25-m9*2", names=True, normalize=False)
    np.save(f"{where}/mix.npy", 0.25 * Z[4] - 2 * Z[9])
    same(got, ask("recall", "--bank", f"{where}/Z.npy", "--query", f"{where}/mix.npy", "--names"), "mix of names")
    code, got = s.verb("bank names", bank="Z", prefix="m1", top=3)
    check(code == 200 and got == {"n": 40, "names": [{"row": 1, "name": "m1"}, {"row": 10, "name": "m10"}, {"row": 11, "name": "m11"}]},
          "names by prefix", code, got)
    code, got = s.verb("recall", bank="demo", query="rows:lamp", context="rows:key*0.1", names=True, beta=9)
    check(code == 200 and got["queries"][0]["top_names"][0] == "lamp", "demo", code, got)
    code, got = s.verb("bank names", bank=[[1.0], [2.0]], names={"text": "a\nb\n"}, prefix="B")
    check(code == 200 and got["names"] == [{"row": 1, "name": "b"}], "names of the request's own", code, got)
    for verb in "map", "landscape":
        options = {"query": "rows:m9"} if verb == "landscape" else {"grid": 3, "from": "rows:'m 4'"}
        code, got = s.verb(verb, bank="Z", context="rows:'m 4'", **options)
        check(code == 200, verb, "by name", code, got)


def networks_are_sent_as_they_are(s, where):
    path = os.path.join(os.environ["CGAM_SRC"], "examples", "hopfield.json")
    with open(path, encoding="ascii") as f:
        net = json.load(f)
    for verb in "net show", "net run":
        code, got = s.verb(verb, FILE=net)
        check(code == 200, verb, code, got)
        same(got, ask(*verb.split(), path), verb)
    np.save(f"{where}/below/W.npy", np.eye(3))
    for path in "/etc/passwd", "W.npy", f"{where}/below/W.npy", "../q0.npy", "FILE":
        bad = json.loads(json.dumps(net))
        bad["synapses"][0]["weights"] = {"file": path}
        code, got = s.verb("net show", FILE=bad)
        check(code == 400, "a network named a file", path, code, got)


def tables_name_what_there_is(s):
    code, headers, data = s.request("GET", "/api")
    table = json.loads(data)
    check(code == 200 and {"recall", "lm sweep", "net run"} <= {v["name"] for v in table["verbs"]}, "verbs")
    check([b["id"] for b in table["banks"]] == ["Z", "other", "demo"], "banks", table["banks"])
    here = json.loads(s.request("GET", "/api/here")[2])
    check(here == {key: value for key, value in table.items() if key != "verbs"} and len(here) > 4, "what is here", here)
    check(table["banks"][0]["n"] == 40 and table["root"] is True, "what there is", table["banks"])
    for v in table["verbs"]:
        for p in v["parameters"]:
            names = any(w in (p["value"] or "") for w in ("FILE", "DIR")) and not v["local"]
            check(not names or p["writes"] or "input" in p or "|DIR" in p["value"], v["name"], p["name"],
                  "names a file, and the table does not say what it is read as")


def errors_are_documents(s, where):
    cases = [
        (404, 2, "no such verb", "nonsense", {}),
        (404, 2, "no such verb", "lm", {}),
        (404, 2, "glove", "recall", {"bank": "glove", "query": [1.0]}),
        (403, 2, "path", "recall", {"bank": "Z", "query": "/etc/passwd"}),
        (403, 2, "path", "lm sweep", {"eval": "/etc/passwd"}),
        (404, 2, "model", "lm neff", {"model": "/etc/passwd"}),
        (404, 2, "bank", "recall", {"bank": f"{where}/Z.npy", "query": [1.0]}),
        (403, 2, "save-p", "recall", {"bank": "Z", "query": [0.0] * 8, "save-p": "p.npy"}),
        (403, 2, "report", "lm study", {"report": "x"}),
        (403, 2, "out", "study competition", {"out": "../x"}),
        (403, 2, "out", "study competition", {"out": "a/b"}),
        (403, 2, "out", "study competition", {"out": ".."}),
        (403, 2, "out", "study competition", {"out": 7}),
        (403, 2, "over HTTP", "serve", {}),
        (403, 2, "over HTTP", "completion", {}),
        (403, 2, "over HTTP", "lm get", {}),
        (400, 2, "did you mean lambda", "recall", {"bank": "Z", "query": [0.0] * 8, "lamda": 1}),
        (400, 2, "query: queries have d = 3", "recall", {"bank": "Z", "query": [1, 2, 3]}),
        (400, 2, "equal lengths", "recall", {"bank": "Z", "query": [[1, 2], [3]]}),
        (400, 2, "equal lengths", "recall", {"bank": "Z", "query": [1, "2"]}),
        (400, 2, "base64", "recall", {"bank": "Z", "query": {"npy": "####"}}),
        (400, 2, "query", "recall", {"bank": "Z", "query": {"npy": "AAAA"}}),
        (400, 2, "query is missing", "recall", {"bank": "Z"}),
        (400, 2, "alpha", "recall", {"bank": "Z", "query": [0.0] * 8, "alpha": -1}),
        (400, 2, "positive definite", "recall",
         {"bank": "Z", "query": [0.0] * 8, "alpha": 9.0, "mode": "coupled"}),
        (400, 2, "memory 40", "recall", {"bank": "Z", "query": "rows:40"}),
        (400, 2, "no memory named '/etc/passwd'", "recall", {"bank": "Z", "query": "rows:/etc/passwd"}),
        (400, 2, "no names", "recall", {"bank": "other", "query": "rows:red"}),
        (400, 2, "no names", "bank names", {"bank": [[1.0]]}),
        (403, 2, "path", "bank names", {"bank": "Z", "names": "Z.names"}),
        (403, 2, "path", "recall", {"bank": "Z", "query": "rows:1", "projection": "rows:1"}),
        (400, 2, "as must", "lm generate", {"prompt": "x", "vector": [{"values": [1], "as": "/etc/passwd,{}"}]}),
    ]
    for want, status, piece, verb, options in cases:
        code, got = s.verb(verb, **options)
        check(code == want and got.get("status") == status and piece in got.get("error", ""), verb, options,
              "got", code, got, "want", want, piece)
        check(where not in json.dumps(got), "a path in an answer", got)


def events_end_with_the_document(s):
    c = s.connect()
    c.request("POST", "/api/study/competition", json.dumps({"trials": 400 // SLOW, "seed": 5}),
              s.headers(Accept="text/event-stream"))
    r = c.getresponse()
    check(r.status == 200 and r.headers["Content-Type"] == "text/event-stream", "events", r.status)
    events = [dict(line.split(": ", 1) for line in e.split("\n")) for e in r.read().decode().strip().split("\n\n")]
    check(all(e["event"] == "progress" for e in events[:-1]), "events", [e["event"] for e in events])
    for e in events[:-1]:
        check({"phase", "share", "seconds_left"} <= set(json.loads(e["data"])), "progress", e)
    check(events[-1]["event"] == "document", "the last event", events[-1]["event"])
    same(json.loads(events[-1]["data"]), s.verb("study competition", trials=400 // SLOW, seed=5)[1], "events")
    c.request("POST", "/api/recall", "{}", s.headers(Accept="text/event-stream"))
    r = c.getresponse()
    check(r.status == 400 and "missing" in json.loads(r.read())["error"], "a bad request for events", r.status)


def a_long_document_comes_whole_in_its_event(s):
    """Longer than what is sent at a time."""
    options = {"bank": "Z", "context": "rows:'m 4'", "grid": 61}
    code, _, data = s.request("POST", "/api/map", json.dumps(options), s.headers(Accept="text/event-stream"))
    name, text = data.decode().strip().split("\n\n")[-1].split("\n")
    check(code == 200 and name == "event: document" and len(text) > 1 << 16, "a long event", code, name, len(text))
    same(json.loads(text.removeprefix("data: ")), s.verb("map", **options)[1], "a long event")


def addresses_have_their_forms(s):
    code, headers, data = s.request("HEAD", "/health")
    check(code == 200 and data == b"" and int(headers["Content-Length"]) > 10, "HEAD", code, headers, data)
    check(s.request("GET", "/api/")[2] == s.request("GET", "/api")[2], "/api/ and /api")
    code, _, data = s.request("GET", "/api/outside")
    check(code == 404 and "POST" in json.loads(data)["error"], "beside /api/out", code, data)
    for path in "/api/lm/sweep/x", "/api/a/b/c/d/e/f", "/api/recall" + "l" * 90:
        check(s.request("POST", path, "{}")[0] == 404, path)


def outs_lie_below_the_root(s, where):
    code, got = s.verb("study competition", trials=4, out="first", figures="no")
    check(code == 200 and got["out"] == "first", "out", code, got.get("out"))
    check(os.path.exists(f"{where}/below/first/summary.json"), "nothing below the root")
    code, _, data = s.request("GET", "/api/out/first")
    names = [f["name"] for f in json.loads(data)["files"]]
    check(code == 200 and "summary.json" in names, "list", code, names)
    code, headers, data = s.request("GET", "/api/out/first/summary.json")
    check(code == 200 and json.loads(data)["study"] == "competition", "file", code)
    check("attachment" in headers["Content-Disposition"], "disposition")
    with open(f"{where}/below/first/some.bin", "wb") as f:
        f.write(b"\0\1")
    code, headers, data = s.request("GET", "/api/out/first/some.bin")
    check(code == 200 and data == b"\0\1" and headers["Content-Type"] == "application/octet-stream", "bytes", code, headers)
    code, _, data = s.request("GET", "/api/out")
    check(code == 200 and {"name": "first", "folder": True} in [{k: f[k] for k in ("name", "folder")} for f in json.loads(data)["files"]],
          "folders", code, data)
    os.symlink("/etc", f"{where}/below/link")
    os.mkdir(f"{where}/outside")
    os.symlink(f"{where}/outside", f"{where}/below/out")
    code, got = s.verb("study competition", trials=4, out="out", figures="no")
    check(code == 403 and "link" in got["error"] and not os.listdir(f"{where}/outside"), "a link leads out", code, got)
    for path in "..", "first/../..", "link", "link/passwd", "%2e%2e/q.npy", "first//summary.json/x", "none":
        code, _, data = s.request("GET", f"/api/out/{path}")
        check(code == 404, "path", path, code, data[:100])


def metrics_and_log_count(s):
    code, _, data = s.request("GET", "/metrics")
    text = data.decode()
    check(code == 200 and 'cgam_requests_total{verb="recall",code="200"}' in text, "metrics", code, text[:300])
    check("cgam_gate_hits_total" in text, "plans")
    check(s.request("GET", "/metrics", headers={})[0] == 401, "metrics without token")


def packed_banks_bring_what_they_hold(where, q, c):
    packed = f"{where}/P.safetensors"
    ask("bank", "pack", "--from", f"{where}/Z.npy", "--names", f"{where}/Z.names", "--alpha", 0.01, "--out", packed)
    ask("bank", "drop", packed, "--rows", "3")
    with server("--bank", packed, cwd=where) as s:
        for more in {"mode": "coupled"}, {"fast": True, "none": 0.5}, {"normalize": True, "fast": True}:
            words = [w for k, v in more.items() for w in ([f"--{k}"] if v is True else [f"--{k}", v])]
            want = ask("recall", "--bank", packed, "--query", f"{where}/q.npy", "--context", f"{where}/c.npy",
                       "--alpha", 0.01, "--names", *words)
            code, got = s.verb("recall", bank="P", query=q.tolist(), context=c.tolist(), alpha=0.01, names=True, **more)
            same(got, want, "a packed bank", code, more)
        code, got = s.verb("bank show", BANK="P", check=True)
        check(code == 200 and got["whole"] and got["n"] == 40 and got["live"] == 39, "bank show", code, got)
        code, headers, _ = s.request("POST", "/api/bank/show", json.dumps({"BANK": "P", "check": True}))
        check(code == 200 and "Cgam-Status" not in headers, "the answer is yes", code, headers)
        check(s.request("GET", "/metrics")[0] == 404, "metrics that were not asked for")
        code, _, data = s.request("GET", "/api/out")
        check(code == 404 and "no --root" in json.loads(data)["error"], "nothing is kept", code, data)
        code, got = s.verb("bank drop", BANK="P", rows="4")
        check(code in (403, 404), "a bank is not changed from outside", code, got)
    with open(packed, "rb+") as f:
        f.seek(-1, os.SEEK_END)
        last = f.read(1)
        f.seek(-1, os.SEEK_END)
        f.write(bytes([last[0] ^ 1]))
    with server("--bank", packed, cwd=where) as s:
        code, headers, data = s.request("POST", "/api/bank/show", json.dumps({"BANK": "P", "check": True}))
        check(code == 200 and json.loads(data)["whole"] is False and headers["Cgam-Status"] == "1", "the answer is no", code, data)


with folder() as where:
    rng = np.random.default_rng(1)
    Z, q, c = rng.normal(size=(40, 8)), rng.normal(size=(3, 8)), rng.normal(size=8)
    for name, array in ("Z", Z), ("other", Z[:5]), ("q", q), ("q0", q[0]), ("c", c):
        np.save(f"{where}/{name}.npy", array)
    with open(f"{where}/Z.names", "w", encoding="ascii") as f:
        f.writelines(f"m{' ' if i == 4 else ''}{i}\n" for i in range(40))
    with open(f"{where}/bank.names", "w", encoding="ascii") as f:
        f.write("not for requests\n")
    s = None
    with server("--bank", f"{where}/Z.npy", "--bank", f"other={where}/other.npy", "--root", f"{where}/below",
                "--metrics", "--log", cwd=where) as s:
        documents_are_those_of_the_command_line(s, where, Z, q, c)
        recalls_of_every_kind(s, where, Z, q)
        nothing_is_written_unasked(s, where)
        memories_have_names(s, where, Z)
        networks_are_sent_as_they_are(s, where)
        tables_name_what_there_is(s)
        errors_are_documents(s, where)
        events_end_with_the_document(s)
        a_long_document_comes_whole_in_its_event(s)
        addresses_have_their_forms(s)
        outs_lie_below_the_root(s, where)
        metrics_and_log_count(s)
        s.alive()
        err = s.stop()
    packed_banks_bring_what_they_hold(where, q, c)
    lines = [json.loads(line) for line in err.splitlines()]
    check(all({"time", "method", "path", "code", "seconds"} <= set(line) for line in lines), "log")
    check(s.token not in err, "the token is in the log")
    check(sum(line["code"] == 403 for line in lines) >= 8, "log of refusals")
finish()
