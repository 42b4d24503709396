"""Runs the program on files made here and checks what it prints, writes and returns."""
import json
import os
import resource
import subprocess
import tempfile

import numpy as np

from harness import CGAM, ask, check, close, finish, refuse, run


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def gate(Z, alpha):
    G = Z @ Z.T
    return np.eye(len(Z)) + alpha * (G - np.diag(np.diag(G)))


RECALL_KEYS = {"n", "d", "mode", "alpha", "beta", "lambda", "regime", "alpha_crit", "queries"}
QUERY_KEYS = {"winner", "p", "top", "neff_entropy", "neff_ipr", "gap", "gap_raw", "gap_gate",
              "p_lower_bound", "iterations", "end", "energy_start", "energy_end", "energy_rise",
              "contraction", "unique", "fold_margin", "certificates"}
INSPECT_KEYS = {"n", "d", "norm_min", "norm_max", "mu_min", "mu_max", "rank", "alpha_crit",
                "eta_min", "regime", "contraction", "unique", "lambda_unique_max"}


def sketches_ghosts_and_masks(rng):
    """--fast, --none, --only, --names and --min-p: against NumPy and against each other."""
    Z = rng.standard_normal((3000, 24)).astype(np.float32)
    Q = Z[[5, 77, 2999]] + rng.standard_normal((3, 24)) * 0.4
    np.save("Z.npy", Z), np.save("Q.npy", Q)
    at = ("recall", "--bank", "Z.npy", "--query", "Q.npy", "--beta", 0.4, "--top", 7)
    R = Q @ Z.T.astype(float)
    plain, fast = ask(*at), ask(*at, "--fast")
    check(fast["route"]["path"] == "sketch", fast["route"])
    for x, y, r in zip(plain["queries"], fast["queries"], R):
        p = softmax(0.4 * r).max()
        check(x["winner"] == y["winner"] and x["gap"] == y["gap"] and [i for i, _ in x["top"]] == [i for i, _ in y["top"]], y)
        told = y["fast"]
        check(told["p_from"] <= p <= told["p_to"] and not told["fallback"] and 7 <= told["rescored"] < 600, told)
        check(y["neff_ipr"] is None and y["p"] == told["p_from"], y)
        check(all(b <= a for (_, a), (_, b) in zip(x["top"], y["top"])), "lower ends")
    for y in ask(*at, "--fast", "--tol-p", 1e-9)["queries"]:
        check(y["fast"]["p_to"] - y["fast"]["p_from"] <= 1e-9, y["fast"])
    whole = ask(*at, "--fast", "--save-readout", "out.npy")["queries"][0]
    check(whole["fast"]["fallback"] and whole["fast"]["rescored"] == 3000 and whole["neff_ipr"] > 1, whole["fast"])
    for more in ((), ("--fast",)):
        high = float(R[1].max()) + 1
        for y, r in zip(ask(*at, "--none", high, *more)["queries"], R):
            p = softmax(0.4 * np.append(r, high))
            close(y["p_none"], p[-1], 1e-2 if more else 1e-12, "p_none")
            check((y["winner"] is None) == (p.argmax() == 3000), y)
            check(not more or y["p_none_from"] <= p[-1] <= y["p_none_to"], y)
    ghosts_with_gates(rng)
    refuse(2, ["--none", "coupled map"], *at, "--none", 1, "--certify")
    keep = rng.random(3000) < 0.5
    keep[77] = False
    np.save("keep.npy", keep), np.save("rows.npy", np.flatnonzero(keep)), np.save("few.npy", Z[keep])
    some = ask(*at, "--only", "keep.npy", "--save-p", "p.npy")
    few = ask("recall", "--bank", "few.npy", *at[3:], "--save-p", "q.npy")
    check(some["n"] == 3000 and some["among"] == keep.sum(), some["n"])
    check(np.array_equal(np.load("p.npy")[:, keep], np.load("q.npy")) and not np.load("p.npy")[:, ~keep].any(), "p")
    for x, y in zip(some["queries"], few["queries"]):
        check(x["winner"] == np.flatnonzero(keep)[y["winner"]] and x["p"] == y["p"], x)
        check(x["top"] == [[int(np.flatnonzero(keep)[i]), p] for i, p in y["top"]], x)
    check(ask(*at, "--only", "rows.npy")["queries"] == ask(*at, "--only", "keep.npy")["queries"], "numbers are a mask")
    open("Z.names", "w").writelines(f"row {i}\n" for i in range(3000))
    open("some.txt", "w").write("row 5\nrow 9\n")
    named = ask(*at, "--only", "some.txt", "--names")["queries"][0]
    check(named["top_names"] == ["row 5", "row 9"] and named["winner"] == 5, named)
    listed = ask(*at, "--min-p", 0.01, "--names", "Z.names")["queries"][0]
    check(listed["top"] == [x for x in plain["queries"][0]["top"] if x[1] >= 0.01], listed["top"])
    check(len(listed["top_names"]) == len(listed["top"]), listed)
    refuse(2, ["--fast", "mode first"], *at, "--fast", "--mode", "coupled")
    refuse(2, ["--none", "mode first"], *at, "--none", 1, "--mode", "flow")
    refuse(2, ["--tol-p"], *at, "--tol-p", 0.1)
    np.save("bad.npy", np.ones(5, bool)), np.save("real.npy", np.ones(3000))
    refuse(2, ["bad.npy", "5 booleans"], *at, "--only", "bad.npy")
    refuse(2, ["real.npy", "booleans or integers"], *at, "--only", "real.npy")
    refuse(2, ["some.txt", "2 names"], *at, "--names", "some.txt")
    refuse(2, ["target 77", "selected"], *at, "--only", "keep.npy", "--target", 77)


def ghosts_with_gates(rng):
    """A row for "none of these" (docs/guide/banks.md): --none without gates, and a winner of mode coupled."""
    Y = rng.standard_normal((40, 24))
    Y /= np.linalg.norm(Y, axis=1)[:, None]
    far = rng.standard_normal(24)
    q = np.array([0.9 * Y[3], 0.5 * far / np.linalg.norm(far)])
    np.save("Y.npy", Y), np.save("q.npy", q)
    np.save("Yg.npy", np.block([[Y, np.zeros((40, 1))], [np.zeros((1, 24)), np.ones((1, 1))]]))
    np.save("qg.npy", np.hstack([q, np.full((2, 1), 0.6)]))
    at = ("--beta", 12, "--lambda", 0.2, "--alpha", 0.3)
    ghost = ask("recall", "--bank", "Y.npy", "--query", "q.npy", "--beta", 12, "--none", 0.6)["queries"]
    row = ask("recall", "--bank", "Yg.npy", "--query", "qg.npy", "--beta", 12)["queries"]
    both = ask("recall", "--bank", "Yg.npy", "--query", "qg.npy", "--mode", "coupled", "--certify", *at, "--save-p", "pg.npy")["queries"]
    for x, y, z, want in zip(ghost, row, both, (3, 40)):
        close([x["p"], x["gap"], x["p_lower_bound"]], [y["p"], y["gap"], y["p_lower_bound"]], 1e-12, "a ghost and a row")
        check(x["winner"] == (want if want < 40 else None) and y["winner"] == z["winner"] == want, x, y, z)
        check(z["end"] == "converged" and z["unique"] is True, z)
    p, A = np.load("pg.npy"), gate(np.load("Yg.npy"), 0.3)
    for k in range(2):
        r = np.append(Y @ q[k], 0.6) + 0.2 * np.linalg.solve(A, 0.2 * p[k])
        close(p[k], softmax(12 * r), 1e-9, "the fixed point with a row for none")


def names(Z):
    """Memories by what they are called, alone and in sums; names by their beginnings."""
    called = ["red", "x-ray", "Red wine", "o'clock;", "7", "red", "ROT", "r\u00f6d", "", "redder", "z", "re"]
    with open("Z.names", "w", encoding="utf-8") as f:
        f.writelines(f"{name}\n" for name in called)
    for text, q in (("red*0.5-'x-ray'*2+Red wine", 0.5 * Z[0] - 2 * Z[1] + Z[2]), ("'o''clock;'-7+'7'", Z[3] - Z[7] + Z[4]),
                    ("r\u00f6d*2+3", 2 * Z[7] + Z[3])):
        np.save("q.npy", q)
        got = ask("recall", "--bank", "Z.npy", "--query", f"rows:{text}", "--names")["queries"][0]
        want = ask("recall", "--bank", "Z.npy", "--query", "q.npy", "--names", "Z.names")["queries"][0]
        close(got["p"], want["p"], 1e-12, "a sum by names", text)
        check(got["top_names"] == want["top_names"] == [called[i] for i, _ in got["top"]], got)
    two = ask("recall", "--bank", "Z.npy", "--query", "rows:'o''clock;';z")["queries"]
    check(len(two) == 2 and two[1]["p"] == ask("recall", "--bank", "Z.npy", "--query", "rows:10")["queries"][0]["p"], two)
    for words, rows in ((("--prefix", "red"), [0, 2, 9]), (("--prefix", "RE"), [0, 2, 9, 11]), (("--prefix", "re"), [11, 0, 2, 9]),
                        (("--prefix", "re", "--top", 2), [11, 0]), (("--prefix", "no"), []), (("--rows", "5,1"), [5, 1]),
                        (("--top", 3), [8, 0, 1])):
        doc = ask("bank", "names", "--bank", "Z.npy", *words)
        check(doc["n"] == 12 and doc["names"] == [{"row": i, "name": called[i]} for i in rows], words, doc)
    with open("orders.names", "w", encoding="utf-8") as f:
        f.writelines(f"\x1b]0;{name}\x07\u009b2J\t\u00fc\n" for name in called)
    for words in (("bank", "names", "--bank", "Z.npy"), ("recall", "--bank", "Z.npy", "--query", "rows:1")):
        doc, shown = ask(*words, "--names", "orders.names"), run(*words, "--names", "orders.names")[1]
        check("\\u001b]0;x-ray\\u0007\\u009b2J\\t" in json.dumps(doc), "a document has names as they are", doc)
        check("?]0;x-ray???2J\t\u00fc" in shown and not set(shown) & {"\x1b", "\x07", "\u009b"}, "a terminal is given no orders", shown)
    check(ask("bank", "names", "--bank", "demo:", "--rows", "0,59")["names"][1]["name"] == "window", "names of the demo bank")
    refuse(2, ["--rows", "0 to 11"], "bank", "names", "--bank", "Z.npy", "--rows", "12")
    refuse(2, ["--prefix or --rows"], "bank", "names", "--bank", "Z.npy", "--rows", "1", "--prefix", "x")


def sums_of_rows_and_parts(rng):
    """Queries as sums of memories, scores in parts, marks: against NumPy."""
    Z = rng.standard_normal((12, 5))
    Z /= np.linalg.norm(Z, axis=1)[:, None]
    np.save("Z.npy", Z)
    q, c = 0.5 * Z[7] - 2 * Z[3] + Z[1], Z[4] * 1e-1
    np.save("q.npy", q), np.save("c.npy", c)
    for mode in ("first", "coupled", "flow"):
        at = ("--mode", mode, "--alpha", 0.3, "--lambda", 0.9, "--beta", 2, "--top", 4)
        doc = ask("recall", "--bank", "Z.npy", "--query", "rows:7*0.5-3*2+1", "--context", "rows:4*1e-1", *at, "--explain",
                  "--marks", "--save-p", "p.npy")
        plain = ask("recall", "--bank", "Z.npy", "--query", "q.npy", "--context", "c.npy", *at)
        x, parts, p = doc["queries"][0], doc["queries"][0]["parts"], np.load("p.npy")[0]
        close(x["p"], plain["queries"][0]["p"], 1e-9, "a sum of rows is the file of that sum", mode)
        inverse, top = np.linalg.inv(gate(Z, 0.3)), [i for i, _ in x["top"]]
        close(parts["evidence"], (Z @ q)[top], 1e-12, "evidence", mode)
        close(parts["bias"], (0.9 * inverse @ (Z @ c))[top], 1e-12, "bias", mode)
        close(parts["feedback"], (mode != "first") * (0.81 * inverse @ p)[top], 1e-12, "feedback", mode)
        score = sum(np.array(parts[k]) for k in parts)
        close(np.exp(2 * (score - score[0])), p[top] / p[top[0]], 1e-7, "the parts are the score", mode)
        marks = doc["marks"]
        check(marks["alpha_crit"] == 1 and 0.3 < marks["alpha_fold"] <= 1, marks)
        close(marks["lambda_unique_max"], np.sqrt(2 * 0.7 / 2), 1e-12)
        close(marks["beta_unique_max"], 2 * 0.7 / 0.81, 1e-12)
    two = ask("recall", "--bank", "Z.npy", "--query", "rows:0;5", "--context", "rows:1;2")
    one = ask("recall", "--bank", "Z.npy", "--query", "rows:5", "--context", "rows:2")
    check(two["queries"][1]["p"] == one["queries"][0]["p"] and len(two["queries"]) == 2, "a sum for each query")
    demo = ask("recall", "--bank", "demo:", "--query", "rows:7", "--beta", 40)
    check(demo["n"] == 60 and demo["queries"][0]["winner"] == 7, demo)
    other = ask("recall", "--bank", "demo:2", "--query", "rows:7", "--beta", 40)
    check(demo["queries"][0]["p"] != other["queries"][0]["p"], "another seed, another bank")
    names(Z)
    for words, text in ((["memory 12", "0 to 11"], "rows:12"), (["no memory named 'x'"], "rows:x"), (["number after '*'"], "rows:1*"),
                        (["at '/2'"], "rows:1/2"), (["number or name"], "rows:"), (["number or name"], "rows:1;"),
                        (["at 'red'"], "rows:'x-ray'red"), (["closing quote"], "rows:'x"), (["0 to 11"], "rows:" + "9" * 30)):
        refuse(2, ["--query", *words], "recall", "--bank", "Z.npy", "--query", text)
    os.remove("Z.names")
    refuse(2, ["no names", "Z.names"], "recall", "--bank", "Z.npy", "--query", "rows:red")
    refuse(2, ["demo:x", "seed"], "recall", "--bank", "demo:x", "--query", "rows:1")


def energy_map(rng):
    """The energy over a plane, rest points and flows: against NumPy."""
    Z = rng.standard_normal((9, 6))
    Z /= np.linalg.norm(Z, axis=1)[:, None]
    np.save("Z.npy", Z)
    alpha, beta, lam, c = 0.3, 6, 0.8, Z[4]
    inverse, u = np.linalg.inv(gate(Z, alpha)), Z @ c

    def energy(q, settled, u=u):
        s = inverse @ u
        for _ in range(3000 if settled else 0):
            s = inverse @ (u + lam * softmax(beta * (Z @ q + lam * s)))
        x = beta * (Z @ q + lam * s)
        return q @ q / 2 + s @ gate(Z, alpha) @ s / 2 - u @ s - (x.max() + np.log(np.exp(x - x.max()).sum())) / beta

    at = ("map", "--bank", "Z.npy", "--alpha", alpha, "--beta", beta, "--lambda", lam, "--grid", 7)
    for settled in (False, True):
        words = (*at, "--gates", "settled" if settled else "context", "--context", "rows:4")
        doc = ask(*words, "--through", "1,4,6", "--from", "rows:1;6", "--at", "0.1,-0.2")
        origin = (Z[1] + Z[4] + Z[6]) / 3
        e1 = (Z[4] - Z[1]) / np.linalg.norm(Z[4] - Z[1])
        e2 = Z[6] - Z[1] - (Z[6] - Z[1]) @ e1 * e1
        e2 /= np.linalg.norm(e2)
        X, Y = np.array(doc["x"]), np.array(doc["y"])
        want = [[energy(origin + x * e1 + y * e2, settled) for x in X] for y in Y]
        close(doc["energy"], want, 1e-9, "energy on the grid", settled)
        check(doc["energy_range"] == [np.min(doc["energy"]), np.max(doc["energy"])], "its range")
        anchors = {m["index"]: m for m in doc["memories"][:3]}
        check(sorted(anchors) == [1, 4, 6] and all(m["off"] < 1e-12 for m in anchors.values()), anchors)
        close(origin + anchors[6]["x"] * e1 + anchors[6]["y"] * e2, Z[6], 1e-12, "a memory's place")
        check(sum(a["starts"] for a in doc["attractors"]) == 28 and all(a["settled"] for a in doc["attractors"]), doc["attractors"])
        # NumPy finds the rest point that memory 4 leads to
        q = Z[4]
        for _ in range(3000):
            s = inverse @ u
            for _ in range(200 if settled else 0):
                s = inverse @ (u + lam * softmax(beta * (Z @ q + lam * s)))
            last, q = q, Z.T @ softmax(beta * (Z @ q + lam * s))
            if np.abs(q - last).max() < 1e-12:
                break
        x, y = (q - origin) @ e1, (q - origin) @ e2
        near = min(doc["attractors"], key=lambda a: abs(a["x"] - x) + abs(a["y"] - y))
        close([near["x"], near["y"], near["off"]], [x, y, np.linalg.norm(q - origin - x * e1 - y * e2)], 1e-6, "a rest point")
        close(near["energy"], energy(q, settled), 1e-8, "its energy")
        check(len(doc["flows"]) == 3, "three starts")
        for flow in doc["flows"]:
            check(flow["end"] == "converged" and np.diff(flow["time"]).min() > 0, flow["end"])
            check(np.diff(flow["energy"]).max() < 1e-7, "energy falls along a flow")
        if settled:  # the network comes to rest where the map has a rest point
            for flow in doc["flows"]:
                close(min(abs(a["x"] - flow["x"][-1]) + abs(a["y"] - flow["y"][-1]) for a in doc["attractors"]), 0, 1e-4, "a flow's end")
    free = ask(*at, "--through", "1,4,6")
    close(free["energy"][0][0], energy(origin + free["x"][0] * e1 + free["y"][0] * e2, False, 0 * u), 1e-9, "without a context")
    doc = ask(*at, "--through", "1,4", "--from", "rows:1", "--context", "rows:1*3", "--switch", 4, "--context-then", "rows:4*3")
    flow = doc["flows"][0]
    check(flow["winner"][0] == 1 and flow["winner"][-1] == 4 and 4 in flow["time"] and flow["time"][-1] == 30, "the context switches", flow["winner"])
    doc = ask(*at)
    V = np.linalg.svd(Z - Z.mean(0))[2][:2]
    close(np.abs([doc["memories"][0]["x"], doc["memories"][0]["y"]]), np.abs(V @ (Z[0] - Z.mean(0))), 1e-9, "principal components")
    for words, extra in ((["2 or 3 memories"], ("--through", "1,2,3,4")), (["memory 9"], ("--through", "1,9")), (["do not span a plane"], ("--through", "1,1")),
                         (["x and y"], ("--at", "1")), (["expected one row"], ("--context", "rows:1;2"))):
        refuse(2, words, *at, *extra)
    refuse(2, ["supercritical"], "map", "--bank", "Z.npy", "--gates", "settled", "--alpha", 3)


def landscape(rng):
    """Every minimum that NumPy finds from 400 random starts is a point, and at the energy it says."""
    Z = rng.standard_normal((6, 5))
    Z /= np.linalg.norm(Z, axis=1)[:, None]
    np.save("Z.npy", Z)
    alpha, beta, lam = 0.2, 8, 0.9
    inverse, b, u = np.linalg.inv(gate(Z, alpha)), Z @ (0.2 * Z[1] + 0.2 * Z[4]), Z @ (0.1 * Z[4])
    at = ("landscape", "--bank", "Z.npy", "--query", "rows:1*0.2+4*0.2", "--beta", beta, "--lambda", lam)
    doc = ask(*at, "--alpha", alpha, "--context", "rows:4*0.1", "--out", "land")
    minima = [x for x in doc["points"] if x["kind"] == "minimum"]
    found = {}
    for _ in range(400):
        p = rng.dirichlet(np.full(6, rng.choice([0.1, 1])))
        for _ in range(4000):
            last, s = p, inverse @ (u + lam * p)
            p = softmax(beta * (b + lam * s))
            if np.abs(p - last).max() < 1e-14:
                break
        r = beta * (b + lam * s)
        E = s @ gate(Z, alpha) @ s / 2 - u @ s - (r.max() + np.log(np.exp(r - r.max()).sum())) / beta
        found[round(E, 7)] = (E, p)
    for E, p in found.values():
        near = min(minima, key=lambda x: abs(x["energy"] - E))
        close(near["energy"], E, 1e-9, "energy of a minimum")
        check(near["winner"] == p.argmax() and near["fold_margin"] > 0 and near["index"] == 0, near)
        close(near["p"], p.max(), 1e-8, "p of a minimum")
    check(1 < len(found) <= len(minima), "minima", len(found), len(minima))
    check(doc["unique"] is False and doc["unique_proved"] and doc["euler"] == 1 and doc["unresolved"] == 0, doc["euler"])
    check(sorted(os.listdir("land")) == ["landscape." + x for x in ("csv", "gp", "json", "pdf", "png", "svg")], os.listdir("land"))
    table = np.genfromtxt("land/landscape.csv", delimiter=",", names=True)
    alone = ask(*at, "--alpha", alpha)
    check((table["context"] == 1).sum() == len(doc["points"]) and (table["context"] == 0).sum() == len(alone["points"]), "both sides")
    one = ask(*at[:-2], "--alpha", alpha, "--lambda", 0.1)
    check(one["unique"] is True and len(one["points"]) == 1 and one["points"][0]["basin"] == 1, one)
    refuse(2, ["a landscape needs A(alpha) positive definite", "supercritical", "alpha_crit"], *at, "--alpha", 3)
    refuse(2, ["query", "expected one row"], "landscape", "--bank", "Z.npy", "--query", "Z.npy")
    refuse(2, ["starts"], *at, "--starts", -1)


def anneal(rng):
    """The branch from small beta in 4,000 steps of NumPy ends where mode anneal does."""
    Z = rng.standard_normal((6, 4))
    Z /= np.linalg.norm(Z, axis=1)[:, None]
    np.save("Z.npy", Z)
    alpha, beta, lam = 0.3, 12, 0.8
    inverse = np.linalg.inv(gate(Z, alpha))
    a = Z @ (0.1 * Z[2]) + lam * inverse @ (Z @ (0.05 * Z[3]))
    p = np.full(6, 1 / 6)
    for b in np.geomspace(0.05, beta, 4000):
        for _ in range(100000):
            last, p = p, softmax(b * (a + lam**2 * inverse @ p))
            if np.abs(p - last).max() < 1e-13:
                break
    words = ("recall", "--bank", "Z.npy", "--query", "rows:2*0.1", "--context", "rows:3*0.05", "--alpha", alpha, "--beta", beta, "--lambda", lam)
    doc = ask(*words, "--mode", "anneal")
    q = doc["queries"][0]
    check(doc["route"]["path"] == "anneal" and q["end"] == "converged" and q["winner"] == p.argmax(), q["end"])
    close(q["p"], p.max(), 1e-7, "p at the end of the branch")
    betas = [x["beta"] for x in q["path"]]
    close(betas[-1], beta, 1e-9, "the branch reaches beta")
    check(np.diff(betas).min() > 0 and betas[0] < beta and q["path"][-1]["winner"] == q["winner"], betas)
    check(all(t["kind"] in ("fold", "pitchfork", "winner") for t in q["transitions"]), q["transitions"])
    check("path" not in ask(*words, "--mode", "coupled")["queries"][0], "other modes have no branch")
    refuse(2, ["beta-start", "at most beta"], *words, "--mode", "anneal", "--beta-start", 13)
    refuse(2, ["--beta-start requires --mode anneal"], *words, "--mode", "coupled", "--beta-start", 1)
    refuse(2, ["mode anneal", "alpha_crit"], *words[:-5], 9, *words[-4:], "--mode", "anneal")


def first_order(rng):
    Z = rng.standard_normal((40, 8))
    q, c = rng.standard_normal(8), rng.standard_normal(8)
    np.save("Z.npy", Z), np.save("q.npy", q), np.save("c.npy", c)
    for alpha in (0, 0.02, 0.3):  # the last is supercritical: mode first still answers
        doc = ask("recall", "--bank", "Z.npy", "--query", "q.npy", "--context", "c.npy", "--alpha",
                  alpha, "--lambda", 0.7, "--beta", 1.3, "--save-p", "p.npy", "--save-readout",
                  "m.npy", "--top", 3)
        check(RECALL_KEYS <= set(doc), "recall keys", RECALL_KEYS - set(doc))
        x = doc["queries"][0]
        check(QUERY_KEYS <= set(x), "query keys", QUERY_KEYS - set(x))
        s = np.linalg.solve(gate(Z, alpha), Z @ c)
        b, r = Z @ q, Z @ q + 0.7 * s
        p = softmax(1.3 * r)
        w = int(r.argmax())
        close(np.load("p.npy"), p[None], 1e-12, "p at alpha", alpha)
        close(np.load("m.npy"), (Z.T @ p)[None], 1e-12, "readout at alpha", alpha)
        check(x["winner"] == w and x["end"] == "direct" and x["iterations"] == 0, "winner", x)
        check(x["energy_start"] is None and x["energy_rise"] is None, "mode first has no energy")
        gaps = [v[w] - np.delete(v, w).max() for v in (r, b, s)]
        close([x["gap"], x["gap_raw"], x["gap_gate"]], gaps, 1e-11, "gaps")
        bound = 1 / (1 + 39 * np.exp(-1.3 * gaps[0]))  # lower by what rounding may have added
        check(bound - 1e-11 <= x["p_lower_bound"] <= bound * (1 + 1e-12), "bound", x["p_lower_bound"])
        close(x["neff_entropy"], np.exp(-(p * np.log(p)).sum()), 1e-10, "N_eff")
        close(x["neff_ipr"], 1 / (p * p).sum(), 1e-10, "N_eff")
        order = np.argsort(-r, kind="stable")[:3]
        check([i for i, _ in x["top"]] == order.tolist(), "top", x["top"])
        w_min = np.linalg.eigvalsh(gate(Z, 1) - np.eye(40))[0]
        if doc["alpha_crit"] is not None: # it was free, or needed
            close(doc["alpha_crit"], -1 / w_min, 1e-10, "alpha_crit")
        check(doc["regime"] == ("supercritical" if alpha > -1 / w_min else "subcritical"), "regime")
    defaults = ask("recall", "--bank", "Z.npy", "--query", "q.npy")
    check([defaults[k] for k in ("alpha", "lambda", "beta", "mode")] == [0, 1, 1, "first"],
          "defaults", defaults)
    check(len(defaults["queries"][0]["top"]) == 5, "top 5 by default")


def coupled(rng):
    Z = rng.standard_normal((30, 6))
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    Q, C = rng.standard_normal((5, 6)), rng.standard_normal((5, 6))
    np.save("Z.npy", Z), np.save("Q.npy", Q), np.save("C.npy", C)
    np.save("t.npy", np.arange(5) * 3)
    doc = ask("recall", "--bank", "Z.npy", "--query", "Q.npy", "--context", "C.npy", "--mode",
              "coupled", "--alpha", 0.4, "--beta", 2, "--lambda", 0.8, "--target", "t.npy",
              "--save-p", "p.npy", "--certify", "--threads", 2)
    A = gate(Z, 0.4)
    inverse = np.linalg.inv(A)
    saved = np.load("p.npy")
    for k, x in enumerate(doc["queries"]):
        bias = Z @ Q[k] + 0.8 * inverse @ (Z @ C[k])
        p = softmax(2 * bias)
        for _ in range(4000):
            p = softmax(2 * (bias + 0.64 * inverse @ p))
        close(saved[k], p, 1e-11, "coupled p", k)
        check(x["target"] == 3 * k, "target", x)
        close([x["p"], x["target_p"]], [p[3 * k]] * 2, 1e-11, "p of the target")
        check(x["target_rank"] == int((p > p[3 * k]).sum()), "rank of the target", x)
        check(x["energy_end"] <= x["energy_start"] + 1e-12 and x["energy_rise"] < 1e-12, "energy", x)
        cov = np.diag(p) - np.outer(p, p)
        close(x["fold_margin"], np.linalg.eigvalsh(A - 1.28 * cov)[0], 1e-9, "fold margin")
        close(x["contraction"], 1.28 / (2 * 0.6), 1e-9, "contraction")
        check(all(v in ("proved", "estimate") for v in x["certificates"].values()), "certificates")
        check(x["end"] == "converged", "end", x)
    alone = ask("recall", "--bank", "Z.npy", "--query", "Q.npy", "--context", "C.npy", "--mode",
                "coupled", "--alpha", 0.4, "--beta", 2, "--lambda", 0.8, "--target", "t.npy",
                "--certify", "--threads", 1)
    check(alone == doc, "one thread and two give the same document")
    short = ask("recall", "--bank", "Z.npy", "--query", "Q.npy", "--mode", "coupled", "--beta", 2,
                "--max-iter", 1, status=1)
    check(short["queries"][0]["end"] == "max_iter", "max_iter is exit 1")
    np.save("P.npy", rng.standard_normal((6, 4))), np.save("W.npy", rng.standard_normal((30, 4)))
    np.save("c4.npy", rng.standard_normal(4))
    for option in ("projection", "gate-weights"):
        weights = np.load("P.npy") if option == "projection" else np.load("W.npy")
        u = (Z @ weights if option == "projection" else weights) @ np.load("c4.npy")
        ask("recall", "--bank", "Z.npy", "--query", "Q.npy", "--context", "c4.npy", "--" + option,
            "P.npy" if option == "projection" else "W.npy", "--alpha", 0.4, "--save-p", "p.npy")
        want = softmax(Z @ Q[2] + np.linalg.solve(A, u))
        close(np.load("p.npy")[2], want, 1e-12, option)
    refuse(2, ["alpha_crit = 1", "supercritical"], "recall", "--bank", "Z.npy", "--query", "Q.npy",
           "--mode", "coupled", "--alpha", 1.5)


def loose_margins(rng):
    """At a loose --tol, fold_margin bounds that of the fixed point too where p_error is proved, and the text says where not."""
    proved = above = 0
    for lam in (0.5, 1, 1.5):
        np.save("Zf.npy", rng.standard_normal((17, 9))), np.save("Qf.npy", rng.standard_normal((8, 9)))
        at = ("recall", "--bank", "Zf.npy", "--query", "Qf.npy", "--mode", "coupled", "--lambda", lam, "--alpha", 0.01, "--certify")
        for x, y in zip(ask(*at, "--tol", 0.1)["queries"], ask(*at, "--tol", 1e-13)["queries"]):
            if "p_error" in x["certificates"]:
                proved += 1
                check(x["fold_margin"] <= y["fold_margin"], lam, x, y)
            else:
                above += x["fold_margin"] > y["fold_margin"]
    check(proved > 5 and above > 0, "both are seen", proved, above)
    one = ("recall", "--bank", "Zf.npy", "--query", "rows:3*0.2", "--mode", "coupled", "--lambda", 1.5, "--alpha", 0.01, "--certify")
    for tol, words in ((0.1, "at the p above"), (1e-12, "above 0 the state is stable")):
        line = next(x for x in run(*one, "--tol", tol)[1].splitlines() if "fold margin" in x)
        check(words in line, tol, line)


def estimates():
    """What people read claims no more than the document: a bound of scores beyond the largest number."""
    np.save("wide.npy", np.array([[1e150, 0], [0, 1]]))
    for query, word in (([1e153, 1e153], "proved"), ([0, 1e159], "estimate")):
        np.save("far.npy", np.array(query, float))
        said = [line for line in run("recall", "--bank", "wide.npy", "--query", "far.npy")[1].splitlines() if "p >=" in line]
        claim = ask("recall", "--bank", "wide.npy", "--query", "far.npy")["queries"][0]["certificates"]["p_lower_bound"]
        check(claim == word, "bound by the gap", query, claim)
        check(len(said) == 1 and ("not proved" in said[0]) == (word == "estimate"), "text and document", query, said)


def inspect(rng):
    Z = rng.standard_normal((5, 9))
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    np.save("wide.npy", Z)
    doc = ask("inspect", "--bank", "wide.npy", "--alpha", 0.5, "--beta", 2, "--lambda", 0.3)
    check(INSPECT_KEYS <= set(doc), "inspect keys", INSPECT_KEYS - set(doc))
    mu = np.linalg.eigvalsh(Z @ Z.T)
    close([doc["mu_min"], doc["mu_max"]], [mu[0], mu[-1]], 1e-12, "mu")
    close(doc["alpha_crit"], 1 / (1 - mu[0]), 1e-11, "alpha_crit of unit memories")
    eta = 1 - 0.5 * (1 - mu[0])
    close(doc["eta_min"], eta, 1e-12, "eta_min")
    close(doc["contraction"], 2 * 0.09 / (2 * eta), 1e-12, "contraction")
    close(doc["lambda_unique_max"], np.sqrt(eta), 1e-12, "lambda_unique_max")
    check(doc["unique"] is True and doc["rank"] == 5, "unique, rank", doc)
    np.save("tall.npy", np.vstack([Z, Z]).astype(np.float32))
    doc = ask("inspect", "--bank", "tall.npy", "--normalize", "--alpha", 1)
    check(doc["mu_min"] == 0 and doc["alpha_crit"] == 1, "duplicates: mu_min 0, alpha_crit 1", doc)
    check(doc["regime"] == "critical" and doc["rank"] == 5, "critical", doc)
    np.save("eye.npy", np.eye(4))
    doc = ask("inspect", "--bank", "eye.npy", "--alpha", 50)
    check(doc["alpha_crit"] is None and doc["regime"] == "subcritical", "orthonormal", doc)
    np.save("one.npy", np.array([[3.0, 4.0]])), np.save("q2.npy", np.array([1.0, 0.0]))
    doc = ask("recall", "--bank", "one.npy", "--query", "q2.npy", "--mode", "coupled", "--alpha", 2)
    x = doc["queries"][0]
    check([doc["alpha_crit"], x["gap"], x["gap_raw"], x["gap_gate"]] == [None] * 4, "N = 1", doc)
    check([x["p"], x["p_lower_bound"], x["neff_entropy"], x["neff_ipr"]] == [1] * 4, "N = 1", x)
    check(ask("inspect", "--bank", "one.npy")["alpha_crit"] is None, "N = 1")


def critical(rng):
    """At alpha_crit itself the modes that blow up are not excited by u = Z c: an answer exists."""
    Z = rng.standard_normal((20, 4))
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    np.save("Z.npy", Z), np.save("q.npy", Z[3]), np.save("c.npy", Z[5])
    doc = ask("recall", "--bank", "Z.npy", "--query", "q.npy", "--context", "c.npy", "--alpha", 1,
              "--save-p", "p.npy", "--normalize")
    check(doc["regime"] == "critical", "critical", doc)
    want = softmax(Z @ Z[3] + Z @ np.linalg.solve(Z.T @ Z, Z[5]))
    close(np.load("p.npy")[0], want, 1e-9, "first order at alpha_crit")


def bad_input(rng):
    Z = rng.standard_normal((6, 3))
    np.save("Z.npy", Z), np.save("q.npy", Z[0])
    with open("Z.npy", "rb") as f:
        whole = f.read()
    with open("cut.npy", "wb") as f:
        f.write(whole[:-8])
    with open("empty.npy", "wb"):
        pass
    Z[4, 1] = np.nan
    np.save("nan.npy", Z), np.save("i.npy", np.full((2, 2), 2**53 + 1)), np.save("cube.npy", np.zeros((2, 2, 2)))
    np.save("void.npy", np.zeros((0, 3))), np.save("q4.npy", np.zeros(4)), np.save("big.npy", Z.astype(">f8"))
    refuse(2, ["cut.npy", "truncated"], "inspect", "--bank", "cut.npy")
    refuse(2, ["empty.npy"], "inspect", "--bank", "empty.npy")
    refuse(2, ["nan.npy", "row 4", "column 1"], "inspect", "--bank", "nan.npy")
    refuse(2, ["missing.npy"], "inspect", "--bank", "missing.npy")
    refuse(2, ["i.npy", "9007199254740993", "row 0, column 0"], "inspect", "--bank", "i.npy")
    refuse(2, ["cube.npy", "2 dimensions"], "inspect", "--bank", "cube.npy")
    refuse(2, ["void.npy"], "inspect", "--bank", "void.npy")
    refuse(2, ["big.npy"], "inspect", "--bank", "big.npy")
    refuse(2, ["."], "inspect", "--bank", ".")
    recall = ("recall", "--bank", "Z.npy", "--query", "q.npy")
    refuse(2, ["--query", "4", "3"], "recall", "--bank", "Z.npy", "--query", "q4.npy")
    refuse(2, ["--context", "4", "3"], *recall, "--context", "q4.npy")
    refuse(2, ["nan.npy", "row 4"], "recall", "--bank", "Z.npy", "--query", "nan.npy")
    refuse(2, ["--lambda", "-1"], *recall, "--lambda", -1)
    refuse(2, ["--beta"], *recall, "--beta", 0)
    refuse(2, ["--beta", "nan"], *recall, "--beta", "nan")
    refuse(2, ["--alpha", "1x"], *recall, "--alpha", "1x")
    refuse(2, ["--mode", "third"], *recall, "--mode", "third")
    refuse(2, ["--nonsense"], *recall, "--nonsense", 1)
    refuse(2, ["--beta", "twice"], *recall, "--beta", 1, "--beta", 2)
    refuse(2, ["--top"], *recall, "--top", -1)
    refuse(2, ["target 6"], *recall, "--target", 6)
    refuse(2, ["--bank"], "recall", "--query", "q.npy")
    refuse(2, ["recall"], "recal")
    check(run("version", "--threads=1")[0] == 0, "--threads=1")
    refuse(2, ["--threads needs a value"], "version", "--threads")
    refuse(2, ["--threads is 0"], "version", "--threads", 0)
    refuse(2, ["--threads is 5000, it must be from 1 to 4096"], "version", "--threads=5000")
    refuse(2, ["--projection or --gate-weights"], *recall, "--projection", "Z.npy", "--gate-weights", "Z.npy")
    # nothing is lost or half-written
    with open("old.npy", "w") as f:
        f.write("old")
    refuse(2, ["4"], "recall", "--bank", "Z.npy", "--query", "q4.npy", "--save-p", "old.npy")
    refuse(2, ["alpha_crit"], *recall, "--mode", "coupled", "--alpha", 99, "--save-p", "old.npy")
    check(open("old.npy").read() == "old", "a failing call leaves its target alone")
    refuse(3, ["nowhere/p.npy"], *recall, "--save-p", "nowhere/p.npy")
    def limit():
        os.putenv("LLVM_PROFILE_FILE", "/dev/null")  # counts of make coverage are a file too
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
    refuse(3, ["old.npy"], *recall, "--save-p", "old.npy", preexec_fn=limit)
    check(open("old.npy").read() == "old", "a full disk leaves the target alone")
    check(not [f for f in os.listdir(".") if "old.npy" in f and f != "old.npy"], "temporaries stay",
          os.listdir("."))
    with open("/dev/full", "w") as full:
        code = subprocess.run([CGAM, *recall, "--json"], stdout=full, stderr=subprocess.PIPE).returncode
    check(code == 3, "a full standard output is exit 3, got", code)


def words():
    code, out, err = run("help")
    check(code == 0 and "recall" in out and not err, "help")
    check(run("--help")[0] == 0 and run("recall", "--help")[0] == 0, "--help")
    check(run()[0] == 2, "no verb is usage")
    for verb in run("help", "--verbs")[1].split("\n")[:-1]:
        code, out, _ = run("help", *verb.split())
        check(code == 0 and out.startswith("cgam " + verb), "help", verb)
        check(run("help", "--man", *verb.split())[1].startswith(".TH"), "man page", verb)
    check(ask("version")["version"] == run("version")[1].split()[1], "version")
    code, out, _ = run("demo")
    check(code == 0 and "near 7" in out, "demo")
    doc = ask("demo")
    winners = [row["winner"] for row in doc["recalls"]]
    check(winners[1] == 7 and winners[2] == 23, "context decides recall", winners)
    doc = ask("bench", "--rows", "3000", "--columns", "30", "--runs", "1")
    check(len(doc["ratios"]) >= 6 and all(row["ratio"] > 0 for row in doc["ratios"]
                                          if "iteration" not in row["work"]), "bench")
    check(run("bench", "--rows", "1")[0] == 2, "bench of one row")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        rng = np.random.default_rng(20260214)
        for part in (first_order, coupled, inspect, critical, bad_input):
            part(rng)
        sums_of_rows_and_parts(np.random.default_rng(11))
        sketches_ghosts_and_masks(np.random.default_rng(11))
        energy_map(np.random.default_rng(12))
        landscape(np.random.default_rng(13))
        anneal(np.random.default_rng(14))
        loose_margins(np.random.default_rng(15))
        estimates()
        words()
        os.chdir("/")
    finish()


main()
