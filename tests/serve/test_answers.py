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
        (403, 2, "this machine", "serve", {}),
        (403, 2, "this machine", "completion", {}),
        (403, 2, "this machine", "lm get", {}),
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
        (403, 2, "path", "recall", {"bank": "Z", "query": "rows:/etc/passwd"}),
        (400, 2, "as is", "lm generate", {"prompt": "x", "vector": [{"values": [1], "as": "/etc/passwd,{}"}]}),
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
    os.symlink("/etc", f"{where}/below/link")
    for path in "..", "first/../..", "link", "link/passwd", "%2e%2e/q.npy", "first//summary.json/x", "none":
        code, _, data = s.request("GET", f"/api/out/{path}")
        check(code == 404, "path", path, code, data[:100])


def metrics_and_log_count(s):
    code, _, data = s.request("GET", "/metrics")
    text = data.decode()
    check(code == 200 and 'cgam_requests_total{verb="recall",code="200"}' in text, "metrics", code, text[:300])
    check("cgam_gate_hits_total" in text, "plans")
    check(s.request("GET", "/metrics", headers={})[0] == 401, "metrics without token")


with folder() as where:
    rng = np.random.default_rng(1)
    Z, q, c = rng.normal(size=(40, 8)), rng.normal(size=(3, 8)), rng.normal(size=8)
    for name, array in ("Z", Z), ("other", Z[:5]), ("q", q), ("q0", q[0]), ("c", c):
        np.save(f"{where}/{name}.npy", array)
    s = None
    with server("--bank", f"{where}/Z.npy", "--bank", f"other={where}/other.npy", "--root", f"{where}/below",
                "--metrics", "--log") as s:
        documents_are_those_of_the_command_line(s, where, Z, q, c)
        networks_are_sent_as_they_are(s, where)
        tables_name_what_there_is(s)
        errors_are_documents(s, where)
        events_end_with_the_document(s)
        outs_lie_below_the_root(s, where)
        metrics_and_log_count(s)
        s.alive()
        err = s.stop()
    lines = [json.loads(line) for line in err.splitlines()]
    check(all({"time", "method", "path", "code", "seconds"} <= set(line) for line in lines), "log")
    check(s.token not in err, "the token is in the log")
    check(sum(line["code"] == 403 for line in lines) >= 8, "log of refusals")
finish()
