"""Runs `cgam net` and `cgam recall --mode flow` and checks what they print, write and return."""
import json
import os
import stat
import tempfile

import numpy as np

from harness import ask, check, close, finish, refuse, run

SRC = os.environ["CGAM_SRC"]


def example(name):
    return os.path.join(SRC, "examples", name + ".json")


def write(path, value):
    with open(path, "w") as f:
        f.write(value if isinstance(value, str) else json.dumps(value))
    return path


def runs_and_files(folder):
    out = os.path.join(folder, "deep", "out")
    doc = ask("net", "run", example("two_stage"), "--out", out)
    for key in ("time", "energy_start", "energy_end", "energy_rise", "parts", "layers"):
        check(key in doc, "net run lacks", key)
    check(doc["end"] == "steady" and doc["winner"] == 1, doc["end"], doc["winner"])
    close(sum(doc["parts"].values()), doc["energy_end"], 1e-12, "parts add up")
    check(doc["energy_rise"] <= 1e-12, "energy rose by", doc["energy_rise"])
    check(set(doc["parts"]) == {"context", "gates", "retrieval", "query", "h1", "h2", "h3", "h4"})
    check(doc["layers"]["context"]["clamped"] and not doc["layers"]["gates"]["clamped"])
    p = np.array(doc["layers"]["retrieval"]["activation"])
    close(p.sum(), 1, 1e-12, "a distribution")
    for path in doc["files"]:
        check(os.path.getsize(path) > 0, path, "is missing")
    with np.load(os.path.join(out, "trajectory.npz")) as z:
        close(z["parts"].sum(axis=1), z["energy"], 1e-12, "parts of the trajectory")
        check(z["layer/gates"].shape == (len(z["time"]), 6), "states", z["layer/gates"].shape)
        close(z["layer/gates"][-1], doc["layers"]["gates"]["state"], 0, "the end of the trajectory")
        check(np.all(np.diff(z["time"]) >= 0), "time goes forward")
        table = np.genfromtxt(os.path.join(out, "trajectory.csv"), delimiter=",", names=True)
        close(table["energy"], z["energy"], 0, "csv and npz")
    with open(os.path.join(out, "result.json")) as f:
        check(json.load(f) == doc, "result.json is the document")
    check(sorted(os.listdir(out)) == sorted(os.path.basename(p) for p in doc["files"]), "no litter")
    # the steady state is that of the coupled recall
    with open(example("two_stage")) as f:
        net = json.load(f)
    for name, value in (("Z", net["weights"]["Z"]["rows"]), ("q", net["clamps"][0]["value"]),
                        ("c", net["clamps"][2]["value"])):
        np.save(os.path.join(folder, name + ".npy"), np.array(value))
    words = ["recall", "--bank", os.path.join(folder, "Z.npy"), "--normalize", "--query",
             os.path.join(folder, "q.npy"), "--context", os.path.join(folder, "c.npy"), "--alpha",
             "0.5", "--lambda", "0.5", "--beta", "8", "--top", "6"]
    for mode in ("coupled", "flow"):
        got = ask(*words, "--mode", mode)["queries"][0]
        order = [i for i, _ in got["top"]]
        close(p[order], [v for _, v in got["top"]], 1e-7, "net run and recall --mode", mode)


def methods_agree(folder):
    first = ask("net", "run", example("hopfield"), "--method", "rk4")
    check(first["method"] == "rk4" and first["winner"] == 1, first["method"], first["winner"])
    check(first == ask("net", "run", example("hopfield"), "--method", "rk4"), "the same bits again")
    for method in ("adams", "bdf", "auto"):
        other = ask("net", "run", example("hopfield"), "--method", method, "--threads", "1")
        close(other["layers"]["pixels"]["state"], first["layers"]["pixels"]["state"], 1e-6, method)
    short = ask("net", "run", example("hopfield"), "--t-end", "0.5")
    check(short["end"] == "horizon" and short["time"] == 0.5, short["end"], short["time"])


def shows(folder):
    doc = ask("net", "show", example("higher_order"), "--eigen", "3")
    check(doc["size"] == 10 and len(doc["eigenvalues"]) == 3, doc.get("size"))
    check(doc["synapses"]["facts"]["kind"] == "tensor", doc["synapses"])
    check(doc["layers"]["who"]["clamped"], "who is clamped at the start")
    close(sum(doc["parts"].values()), doc["energy"], 1e-12, "parts add up")
    code, out, _ = run("net", "show", example("higher_order"))
    check(code == 0 and "who -- what -- where" in out, out)
    dot = os.path.join(folder, "g.dot")
    code, _, _ = run("net", "show", example("higher_order"), "--dot", dot)
    with open(dot) as f:
        text = f.read()
    check(code == 0 and text.startswith("graph network {") and text.count(" -- ") == 4, text)
    # a stand-in for Graphviz, and none at all
    tools = os.path.join(folder, "tools")
    os.mkdir(tools)
    fake = write(os.path.join(tools, "dot"), "#!/bin/sh\necho \"<svg>$1\"; cat; echo '</svg>'\n")
    os.chmod(fake, os.stat(fake).st_mode | stat.S_IXUSR)
    svg = os.path.join(folder, "g.svg")
    code, _, err = run("net", "show", example("higher_order"), "--svg", svg,
                       env=dict(os.environ, PATH=tools + ":/bin:/usr/bin"))
    with open(svg) as f:
        drawn = f.read()
    check(code == 0 and "-Tsvg" in drawn and "graph network" in drawn, err, drawn[:100])
    os.remove(svg)
    write(fake, "#!/bin/sh\nexit 4\n")
    os.chmod(fake, os.stat(fake).st_mode | stat.S_IXUSR)
    refuse(3, ["Graphviz ended with status 4"], "net", "show", example("higher_order"), "--svg", svg,
           env=dict(os.environ, PATH=tools + ":/bin"))
    os.remove(fake)
    refuse(2, ["Graphviz"], "net", "show", example("higher_order"), "--svg", svg,
           env=dict(os.environ, PATH=tools))
    check(not os.path.exists(svg), "nothing is written without Graphviz")
    out = os.path.join(folder, "bare")
    code, text, err = run("net", "run", example("hopfield"), "--out", out,
                          env=dict(os.environ, PATH=tools))
    check(code == 0 and err == "", "without tools", code, err)
    check(text.count("gnuplot and dot (Graphviz) were not found") == 1, "told in one line", text)
    doc = ask("net", "run", example("hopfield"), "--out", out, "--figures", "no")
    check("figures_missing" not in doc, "nothing is missed that was not asked for")


def refusals(folder):
    bad = os.path.join(folder, "bad.json")
    refuse(2, ["bad.json:2:"], "net", "run", write(bad, '{"format": "cgam-net/1",\n oops}'))
    refuse(2, ["bad.json", "$.layers[0].tau"], "net", "run",
           write(bad, {"format": "cgam-net/1", "layers": [{"name": "x", "shape": 2, "tau": "a"}]}))
    refuse(2, ["nowhere.json"], "net", "run", os.path.join(folder, "nowhere.json"))
    refuse(2, ["$.weights.W.file", "no.npy"], "net", "show",
           write(bad, {"format": "cgam-net/1", "layers": [{"name": "x", "shape": 2}],
                       "weights": {"W": {"file": "no.npy"}}}))
    # too long a step: the energy rises, and the exit status says so
    stiff = {"format": "cgam-net/1", "layers": [{"name": "x", "shape": 1, "init": 1}],
             "synapses": [{"kind": "self", "layers": ["x"], "weights": [[99]]}],
             "flow": {"method": "euler", "step": 0.03}}
    doc = ask("net", "run", write(bad, stiff), status=1)
    check(doc["end"] == "rose" and doc["energy_rise"] > 0, doc["end"])
    stiff["flow"] = {}
    check(ask("net", "run", write(bad, stiff))["end"] == "steady", "the default integrator")
    code, out, err = run("net", "run", bad) # without title and watched layer
    check(code == 0 and out.startswith("flowed to") and "winner" not in out, out)
    refuse(2, ["--sample is 1e-300", "10000000"], "net", "run", bad, "--sample", "1e-300")
    refuse(2, ["$.layers[0]", "control character, 10 at byte 1"], "net", "run",
           write(bad, {"format": "cgam-net/1", "layers": [{"name": "a\nb", "shape": 2}]}))
    # a folder that cannot be made leaves the verdict to the machine
    write(os.path.join(folder, "plain"), "x")
    code, out, err = run("net", "run", example("hopfield"), "--out", os.path.join(folder, "plain"))
    check(code == 3 and out == "", code, err)


def flows(folder):
    rng = np.random.default_rng(3)
    Z = rng.standard_normal((60, 12))
    Q = 0.3 * Z[:3] + 0.1 * rng.standard_normal((3, 12))
    for name, value in (("Z", Z), ("q", Q), ("c", 0.2 * Z[5])):
        np.save(os.path.join(folder, name + ".npy"), value)
    words = ["recall", "--bank", os.path.join(folder, "Z.npy"), "--normalize", "--query",
             os.path.join(folder, "q.npy"), "--context", os.path.join(folder, "c.npy"), "--lambda",
             "0.4", "--beta", "3", "--top", "60"]
    flow = ask(*words, "--alpha", "0.5", "--mode", "flow")
    coupled = ask(*words, "--alpha", "0.5", "--mode", "coupled")
    check(flow["mode"] == "flow" and flow["regime"] == "subcritical")
    for a, b in zip(flow["queries"], coupled["queries"]):
        check(a["end"] == "converged" and a["time"] > 0 and a["energy_end"] < a["energy_start"], a)
        check(b["time"] is None, "time is for flows")
        close(sorted(v for _, v in a["top"]), sorted(v for _, v in b["top"]), 1e-7, "p")
    above = ask(*words, "--alpha", "1.5", "--mode", "flow")
    check(above["regime"] == "supercritical", above["regime"])
    for q in above["queries"]:
        check(q["end"] in ("horizon", "diverged") and q["p"] > 0.999, q["end"], q["p"])
    free = ask(*words, "--mode", "flow", "--free-context", "--t-max", "5")
    check(free["context_stable"] is False and free["context_margin"] <= 0, free["context_margin"])
    code, out, _ = run(*words, "--mode", "flow", "--free-context", "--t-max", "5")
    check(code == 0 and "it cannot settle" in out, out)
    refuse(2, ["--free-query requires --mode flow"], *words, "--free-query")
    slow = ask(*words, "--alpha", "0.5", "--mode", "flow", "--tau-s", "1e-6", "--free-query")
    check(all(q["end"] == "converged" for q in slow["queries"]), "a ratio of a million")


def schema_and_reader_agree(folder):
    """Every key the schema lists for an object is known there, and no other is."""
    with open(os.path.join(SRC, "docs", "format", "network.schema.json")) as f:
        schema = json.load(f)
    defs, path = schema["$defs"], os.path.join(folder, "keys.json")
    kinds = {s["properties"]["kind"]["const"]: s for s in defs["synapse"]["oneOf"]}
    of_synapses = {k for s in kinds.values() for k in s["properties"]}

    def known(key, make):
        doc = make({key: None})
        code, _, err = run("net", "show", write(path, doc))
        check(code == 2, "null is accepted for", key, err)
        return "no such key: '%s'" % key not in err

    def layered(**more):
        return dict({"format": "cgam-net/1", "layers": [{"name": "x", "shape": 1}]}, **more)

    def compare(what, listed, make, others=()):
        got = {key for key in set(listed) | set(others) | {"no_such_key"} if known(key, make)}
        check(got == set(listed), what, "reader", sorted(got), "schema", sorted(listed))

    compare("document", schema["properties"], lambda d: dict(layered(), **d))
    for kind, s in kinds.items():
        base = {"kind": kind, "layers": ["x"] * s["properties"]["layers"]["minItems"]}
        compare(kind, s["properties"], lambda d: layered(synapses=[dict(base, **d)]), of_synapses)
    compare("clamp", defs["clamp"]["properties"], lambda d: layered(clamps=[d]))
    compare("flow", defs["flow"]["properties"], lambda d: layered(flow=d))
    common = {"name", "shape", "lagrangian", "scale", "tau", "axes", "init"}
    for rule in defs["layer"]["allOf"]:
        name = rule["if"].get("properties", {}).get("lagrangian", {}).get("const")
        base = {"name": "x", "shape": 1, **({"lagrangian": name} if name else {})}
        own = set(defs["layer"]["properties"]) - set(rule["then"]["properties"])
        check(common <= own, name, own)
        compare(name or "a layer", own - common, lambda d: layered(layers=[dict(base, **d)]),
                rule["then"]["properties"])
    compare("a layer", common, lambda d: layered(layers=[dict({"name": "x", "shape": 1}, **d)]))


with tempfile.TemporaryDirectory() as folder:
    for part in (runs_and_files, methods_agree, shows, refusals, flows, schema_and_reader_agree):
        part(folder)
finish()
