"""The lm verbs from outside, on tiny models: what two runs share, pages of reports, what the machine lacks."""
import filecmp
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
from harness import BUILD, CGAM, ask, check, close, finish, refuse, run

folder = tempfile.TemporaryDirectory(prefix="cgam-lm-")
os.chdir(folder.name)
MODEL = ("--model", "m.gguf")
LABELS = (*MODEL, "--eval", "d.tsv", "--labels", "down=negative,up=positive")
PROMPTS = (*LABELS, "--queries", 24)
EXACT = (*PROMPTS, "--shots", 2, "--exact")
STORED = (*EXACT, "--store", "g.db")


def tiny(name, kind="llama", context=200, *seed):
    subprocess.run([f"{BUILD}/tests/python/tiny_model", name, kind, str(context), *map(str, seed)], check=True)


def write(name, text):
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    with open(name, "w", encoding="ascii") as f:
        f.write(text)


def read(name):
    with open(name, encoding="utf-8") as f:
        return f.read()


def first(doc, key="shots"):
    return doc[key][0]


def answers_that_cannot_be_told_apart_are_not_measured():
    write("f.tsv", "".join(f"land {i}\tQcity{i}\n" for i in range(30)))
    facts = (*MODEL, "--eval", "f.tsv", "--format", "facts", "--queries", 8, "--shots", 2)
    doc = ask("lm", "steer", *facts, "--out", "none", status=1)
    check(doc["counted"] == 0 and first(doc)["baseline"]["log_p"] is None and doc["figures"] == [], doc)
    code, out, err = run("lm", "steer", *facts)
    check(code == 1 and "none of 8 answers can be told from the others" in out + err, out, err)
    entry = first(ask("lm", "sweep", *facts, "--exact", status=1))
    check(entry["zero_shot"]["full"] is None and entry["best"]["full"]["held_out"] is None, entry)
    check(entry["controls"]["centred"]["accuracy"] is None, entry["controls"])


def texts_of(*words):
    """What an export says of the prompts of a capture."""
    for name in ("t.db", "t.db-wal", "t.db-shm"):
        if os.path.exists(name):
            os.remove(name)
    check(run("lm", "capture", *MODEL, "--queries", 2, "--shots", 1, "--store", "t.db", *words)[0] == 0, words)
    check(run("lm", "store", "--store", "t.db", "--export", "t.npy")[0] == 0, words)
    return read("t.index.csv")


def templates_and_labels_are_taken_as_they_are():
    out = texts_of("--dataset", "sentiment", "--template", "{x}>{y}\\n", "--labels", "negative=sad,positive=glad")
    check(">sad\n" in out or ">glad\n" in out, out)
    check("> " not in out and ">positive" not in out, out)
    out = texts_of("--dataset", "sentiment", "--template", "{x} >  {y}\\n")
    check(" >  positive\n" in out or " >  negative\n" in out, out)


def an_index_tells_prompts_apart():
    """Under one source, kind, seed, number of shots and query there is one prompt."""
    write("lama/relations.jsonl", "".join(json.dumps({"relation": r, "template": "[X] has [Y] ."}) + "\n" for r in ("P1", "P2")))
    for r in range(2):
        write(f"lama/TREx/P{r + 1}.jsonl",
              "".join(json.dumps({"sub_label": f"land {i}{r}", "obj_label": f"city{i}"}) + "\n" for i in range(8)))
    d = ("--eval", "d.tsv")
    for words, source in (((*d,), "d.tsv, 2 queries"),
                          ((*d, "--demos", "shared"), "d.tsv, 2 queries, demonstrations shared"),
                          ((*d, "--order", "cycled"), "d.tsv, 2 queries, cycled"),
                          ((*d, "--template", "{x}>{y}\\n"), "d.tsv, 2 queries, template {x}>{y}\\n"),
                          ((*d, "--labels", "up=good,down=bad"), "d.tsv, 2 queries, labels up=good,down=bad"),
                          (("--dataset", "lama", "--relation", "P1"), "lama-P1, 2 queries"),
                          (("--dataset", "lama", "--relation", "P2"), "lama-P2, 2 queries")):
        doc = ask("lm", "capture", *MODEL, "--queries", 2, "--shots", 2, "--store", "places.db", *words,
                  env=dict(os.environ, CGAM_DATA="."))
        check(doc["source"] == source, doc["source"])


def accuracies_spread_over_seeds():
    seeds = (*EXACT, "--store", "seeds.db")
    doc = ask("lm", "study", *seeds, "--seeds", "1,2,3", "--out", "seeds", "--figures", "no")
    x = [first(ask("lm", "sweep", *seeds, "--seed", seed))["best"]["restricted"]["held_out"] for seed in (1, 2, 3)]
    spread = first(doc["spread"])["restricted"]["retrieval"]
    close(spread["mean"], np.mean(x), 1e-12, "mean")
    close(spread["sd"], np.std(x, ddof=1), 1e-7, "sd")
    check([d["seed"] for d in doc["draws"]] == [1, 2, 3], doc["draws"])
    check(doc["draws"][0]["sweep"]["shots"] == doc["sweep"]["shots"], "seed 1 is the study's own")
    for k, name in enumerate(("sweep: retrieval, labels", "neff: largest fall of log N_eff", "probe: best separability")):
        y = [(first(d["sweep"])["best"]["restricted"]["held_out"], max(d["neff"]["curves"][-1]["log_drop"]),
              max(d["probe"]["curves"][-1]["separability"]))[k] for d in doc["draws"]]
        line = [h for h in doc["spread"]["headlines"] if h["name"] == name][-1]
        close([line["mean"], line["sd"]], [np.mean(y), np.std(y, ddof=1)], 1e-9, name)
    check(os.path.getsize("seeds/draws.csv") > 0 and not [f for f in os.listdir("seeds") if f.startswith(".")], os.listdir("seeds"))


def nulls_stand_beside_what_they_are_nulls_of():
    """Differences query by query add up to differences of means, and the paper's protocol is that of its options."""
    doc = ask("lm", "study", *EXACT)
    own, null = doc["neff"]["curves"][-1], doc["neff"]["nulls"][-1]
    close(np.add(null["log_drop"], null["drop_behind"]), own["log_drop"], 1e-12, "drops")
    close(np.add(null["label_mass"], null["mass_behind"]), own["label_mass"], 1e-12, "masses")
    curves = first(doc["steer"])["curves"]
    base = first(doc["steer"])["baseline"]["log_p"]
    random = [np.array(c["log_p"]) for c in curves if c["context"] == "random"]
    for j, c in enumerate(curves):
        log_p, right, r = np.array(c["log_p"]), np.array(curves[j % 3]["log_p"]), random[j % 3]
        close(c["own_fall_right"], right - (log_p + base) / 2, 1e-12, "right facts")
        if c["context"] == "positive":
            continue
        close(c["behind_random"], r - log_p, 1e-12, "behind random")
        close(c["own_fall_random"], r - (log_p + base) / 2, 1e-12, "random")
        close(c["random_own_fall"], log_p - (r + base) / 2, 1e-12, "of random")
    paper = first(doc["sweep"])["paper"]
    same = first(ask("lm", "sweep", *EXACT, "--in-sample", "--lambda-scale", "absolute"))["best"]
    for over in ("restricted", "full"):
        check([paper[over][k] for k in ("context_layer", "query_layer", "lambda", "accuracy")] ==
              [same[over][k] for k in ("context_layer", "query_layer", "lambda", "accuracy")], (paper, same))
    probe = doc["probe"]
    for curve in (probe["curves"][-1], probe["nulls"][-1]):
        close([np.mean([c == "1" for c in right]) for right in curve["separability_right"]], curve["separability"], 1e-12, "separability")


def steering_with_no_coupling_changes_nothing():
    entry = first(ask("lm", "steer", *EXACT, "--lambda", "0,1", "--out", "steer"))
    log_p = np.array([curve["log_p"] for curve in entry["curves"]])
    base = entry["baseline"]["log_p"]
    check(log_p.shape == (8, 4) and (log_p < 0).all(), log_p)
    close(log_p[::2], np.full((4, 4), base), 1e-12, "without coupling")
    # the last token is the same with and without demonstrations, so is its embedding
    close(log_p[:, 0], np.full(8, base), 1e-12, "at the embedding")


def a_bias_after_the_norm_is_read_on_a_grid():
    tiny("biased.gguf", "stablelm")
    biased = ("--model", "biased.gguf", *LABELS[2:], "--queries", 12, "--shots", 2)
    doc = ask("lm", "sweep", *biased, "--out", "biased")
    check(doc["lens"] == "norm" and doc["exact_lambda"] is False, doc["lens"])
    low, high = first(doc)["best"]["restricted"]["lambda"]
    check(low == high, low, high)
    refuse(2, ["adds a bias after its final norm"], "lm", "sweep", *biased, "--lens", "gain")
    refuse(2, ["architecture llama"], "lm", "neff", *biased, "--exact")
    check(ask("lm", "sweep", *biased, "--lens", "raw")["exact_lambda"] is True, "raw")
    check(ask("lm", "bank", "--model", "biased.gguf", "--out", "b.npy", "--lens", "gain")["norm"] == "layer", "gain")


def the_norm_lens_reads_the_exact_steps():
    """Where nothing follows the norm, the grid reads the exact step functions."""
    ask("lm", "sweep", *EXACT, "--out", "by_gain")
    ask("lm", "sweep", *EXACT, "--lens", "norm", "--out", "by_norm")
    check(filecmp.cmp("by_gain/sweep_grid.csv", "by_norm/sweep_grid.csv", shallow=False), "grids differ")


def models_in_one_store_are_kept_apart():
    tiny("second.gguf", "llama", 200, 9)
    two = ("--shots", 0, "--store", "two.db")
    check(ask("lm", "capture", *PROMPTS, *two)["other_models"] == 0, "one model")
    doc = ask("lm", "capture", "--model", "second.gguf", *PROMPTS[2:], *two)
    check(doc["other_models"] == 1 and doc["capture"]["found"] == 0, doc)
    export = ("lm", "store", "--store", "two.db", "--export", "x.npy")
    refuse(2, ["two.db holds states of 2 models or engines; name one"], *export)
    refuse(2, ["two.db holds no states of that model by that engine"], *export, "--sha256", "00ff")
    refuse(2, ["two.db holds no states of that model by that engine"], *export, "--engine", "exact")


def gates_begin_with_the_sweep():
    shots = (*PROMPTS, "--shots", "1,3", "--exact", "--store", "g.db")
    doc = ask("lm", "gates", *shots, "--out", "gates")
    sweep = ask("lm", "sweep", *shots)
    check(doc["rows"] == "raw" and doc["alpha_crit"] > 0 and len(doc["shots"]) == 2, doc["alpha_crit"])
    for entry, swept in zip(doc["shots"], sweep["shots"]):
        grid, best = entry["grid"], swept["best"]["restricted"]
        check(len(grid) >= 16 and grid[0]["alpha"] == 0, len(grid))
        check(grid[0]["restricted_right"] == best["right"], "right answers")
        for layers, chosen, found in zip(entry["layers"], best["held_out_choices"], grid[0]["lambdas"]):
            check(all(layers[k] == chosen[k] for k in ("context_layer", "query_layer")), layers, chosen)
            check(math.isclose(found, chosen["lambda"], rel_tol=1e-5), found, chosen)
        check(all(row["argmax_changed"] == 0 for row in grid[:2]), "no answer changes by itself, nor by feedback")
        for i, row in enumerate(grid):
            check(row["mode"] == ("first", "coupled")[i % 2] and row["alpha"] < doc["alpha_crit"] and row["neff"] >= 1, row)
            check((row["unique_share"] is None) == (i % 2 == 0) and (i % 2 == 0 or row["settled_share"] == 1), row)
    check(os.path.exists("gates/gates_spectrum.csv"), "gates_spectrum.csv")


def modes_and_layers_are_the_callers():
    doc = ask("lm", "gates", *STORED, "--modes", "coupled", "--alphas", "0.02,0.01,0.02", "--context-layer", 3, "--query-layer", 2,
              "--rows", "unit")
    entry = first(doc)
    check(len(entry["grid"]) == 3 and entry["grid"][2]["alpha"] == 0.02, entry["grid"])
    close(doc["alpha_crit"], 1, 1e-9, "alpha_crit")
    check(all(x["context_layer"] == 3 and x["query_layer"] == 2 for x in entry["layers"]), entry["layers"])


def gates_are_reported():
    """A report of gates alone has their table, their figures and the claims they decide."""
    ask("lm", "gates", *STORED, "--report", "report")
    page = read("report/index.html")
    for piece in ("gates.csv", "gates_spectrum.csv", "is not degenerate", "changes no answer", "proved to be the only answer"):
        check(piece in page, "report/index.html has no", piece)


def an_injection_compares_as_many_tokens_as_it_needs():
    add = ("--kinds", "add", "--layers", 1)
    # classes that begin alike are told apart by all their tokens, unasked
    doc = ask("lm", "inject", *MODEL, "--eval", "d.tsv", "--labels", "down=good film,up=good Paris", "--queries", 8, "--shots", 2,
              "--exact", *add)
    check(doc["answer"] == "sequence", doc["answer"])
    doc = ask("lm", "inject", *EXACT, *add)
    check(doc["answer"] == "first", doc["answer"])


def a_suite_is_one_table():
    for name, words in (("a", ("good film", "good France", "good is", "good of")), ("b", ("Paris", "Rome", "France", "Italy"))):
        write(f"tasks/{name}.json", json.dumps([{"input": f"the {i}", "output": words[i % 4]} for i in range(20)]))
    small = ("--exact", "--queries", 6, "--shots", 2, "--layers", 2)
    doc = ask("lm", "inject", *MODEL, "--suite", "tasks", *small, "--out", "suite")
    a, b = doc["tasks"]
    check("first token" in a["reason"] and b["task"] == "b.json" and len(b["shots"]) == 1, doc["tasks"])
    check(os.path.exists("suite/suite.csv"), "suite.csv")
    # nothing of the task before is left
    alone = ask("lm", "inject", *MODEL, "--eval", "tasks/b.json", "--format", "pairs", *small)
    check(b["shots"] == alone["shots"], "alone")


def check_way(doc, name):
    way = doc[name]
    check(0 <= way["full"] <= way["restricted"] <= 1, name, way)  # the best of all words is the best of the labels'
    check(isinstance(way["r2"], (int, float)), name, way)


def a_fit_from_the_last_layer_is_the_demonstrations():
    doc = ask("lm", "fit", *PROMPTS, "--shots", "0,2", "--exact", "--store", "f.db", "--out", "P.safetensors", "--folder", "out")
    curve = doc["curve"]
    check(doc["icl"]["r2"] == 1, doc["icl"])
    close(doc["kl"]["icl"], 0, 1e-6, "kl")
    # from the last layer x is y: P = I is all there is to find, and it answers as demonstrations do
    check(curve["identity_r2"][3] == 1 and curve["ridge_restricted"][3] == doc["icl"]["restricted"], curve)
    close(curve["ridge_r2"][3], 1, 1e-9, "ridge")
    # after the embedding the last token is the same: there is no context yet
    check(curve["ridge_restricted"][0] == doc["zero_shot"]["restricted"], curve)
    check(os.path.getsize("out/fit.csv") > 0 and os.path.getsize("out/fit.json") > 0, "files")


def recall_takes_a_projection():
    """The same states, the same P: `recall` with it scores as the fit does."""
    ask("lm", "fit", *EXACT, "--store", "f.db", "--curve", "no", "--out", "P.npy", "--layer", 2)
    c = np.cos(np.arange(64.0))
    best = int(np.argmax(np.load("P.npy") @ c))  # rows of the bank are the axes, so scores are P c
    np.save("Z.npy", np.eye(64)), np.save("c.npy", c), np.save("q.npy", np.zeros(64))
    doc = ask("recall", "--bank", "Z.npy", "--query", "q.npy", "--context", "c.npy", "--projection", "P.npy")
    check(doc["queries"][0]["winner"] == best, doc["queries"], best)
    # for other verbs: of another width, not there, not a number
    wide = np.zeros((64, 64))
    wide[1, 6] = np.nan
    np.save("narrow.npy", np.eye(2)), np.save("nan.npy", wide)
    for verb in ("sweep", "inject"):
        for name, says in (("narrow.npy", "projection: narrow.npy is 2 x 2, the model's width is 64"), ("nan.npy", "nan.npy"),
                           ("none.npy", "none.npy")):
            refuse(2, [says], "lm", verb, *PROMPTS, "--shots", 1, "--projection", name)


def several_tasks_are_left_out_in_turn():
    doc = ask("lm", "fit", *MODEL, "--dataset", "sentiment", "--dataset", "facts", "--queries", 30, "--shots", 1, "--exact", "--store",
              "g.db", "--curve", "no", "--method", "lowrank", "--rank", 2, "--iterations", 3)
    check([task["task"] for task in doc["by_task"]] == ["sentiment", "facts"], doc["by_task"])
    check_way(doc, "left_out")
    check_way(doc, "ridge")
    for task in doc["by_task"]:
        check_way(task, "left_out")
    check(len(doc["refined"]) == 3, doc["refined"])


def whole_answers_are_compared():
    """Of whole answers the first token is not enough; from the last layer P = I adds y after every beginning, which is not
    quite what demonstrations do there, but the first tokens are theirs."""
    whole = (*MODEL, "--eval", "d.tsv", "--labels", "down=good film,up=good bad", "--queries", 24, "--shots", 2, "--exact", "--store",
             "w.db")
    doc = ask("lm", "fit", *whole, "--layer", 2)
    check(doc["by_task"][0]["answer"] == "sequence" and doc["counted"] == 24, doc)
    check_way(doc, "held_out")
    check_way(doc, "icl")
    entry = first(ask("lm", "sweep", *whole))
    for way in ("zero_shot", "icl"):
        for key in ("restricted_right", "full_right"):
            check(doc[way][key] == entry[way][key], way, key)


def holds(name, *pieces):
    text = read(name)
    for piece in pieces:
        check(piece in text, name, "has no", piece)


def studies_enter_reports():
    """A study before the report has a page, one after, an injection alone and beside the study of the same data."""
    tiny("m.gguf", "llama", 400)
    shutil.copy("d.tsv", "d_`x`.tsv")
    data = (*MODEL, "--eval", "d_`x`.tsv", "--labels", "down=negative,up=positive", "--exact")
    study = ("lm", "study", *data, "--queries", 24, "--shots", "2,4")
    inject = ("lm", "inject", *data, "--queries", 12, "--shots", 2, "--layers", "1,2")
    place, gnuplot = "lm/d_-x--m", shutil.which("gnuplot")

    def says(piece, *words):
        code, out, err = run(*words)
        check(code == 0 and piece in out, words, "exit", code, piece, "is not in", out, err)

    says("and in rep/index.html", *study, "--report", "rep", "--figures", "no")
    holds("rep/index.html", "d_-x--m</h3>")
    for name in (f"{place}/study.json", "lm/states.db", "lm/claims.csv"):
        check(os.path.getsize(f"rep/{name}") > 0, name)
    check(not os.path.exists(f"rep/{place}/neff.gp"), "neff.gp")
    report = ("report", "--scale", 0.01, "--figures", "no", "--out")
    says("About language models", *report, "rep")
    holds("rep/index.html", "d_-x--m</h3>", "--labels down=negative,up=positive")

    says("", *report, "rep2")
    holds("rep2/index.html", "No study of a language model")
    says("and in rep2/index.html", *study, "--report", "rep2")
    holds("rep2/index.html", "Definitions</h2>", "The collapse is onto the label set")
    if gnuplot:
        for figure in ("neff", "mass", "shots", "sweep_2", "sweep_4", "steer_2", "steer_4", "probe"):
            for kind in ("gp", "svg", "png", "pdf"):
                check(os.path.exists(f"rep2/{place}/{figure}.{kind}"), figure, kind)
            # scripts run by hand in their folder, without a word
            done = subprocess.run(["gnuplot", f"{figure}.gp"], cwd=f"rep2/{place}", capture_output=True, text=True)
            check(done.returncode == 0 and not done.stdout + done.stderr, figure, done.stderr)
        holds(f"rep2/{place}/neff.svg", "24 queries, seed 1")
        holds("rep2/index.html", 'src="data:image/')
        check(not [f for _, _, names in os.walk("rep2") for f in names if f.startswith(".")], "hidden files")

    says("and in rep4/index.html", *inject, "--report", "rep4")
    check(os.path.getsize(f"rep4/{place}/inject.json") > 0 and os.path.getsize("rep4/lm/states.db") > 0, "files")
    holds("rep4/index.html", "d_-x--m</h3>", '<th class="n">replace</th>', "<pre>cgam lm inject",
          "A vector inside the model does what the demonstrations say.", *([f"{place}/inject_2"] if gnuplot else []))
    page = read("rep4/index.html")
    check("<pre>cgam lm study" not in page and '<th class="n">centred</th>' not in page, "a study is there")
    says("", *study, "--report", "rep4", "--figures", "no")
    holds("rep4/index.html", "<pre>cgam lm study", '<th class="n">centred</th>', '<th class="n">replace</th>')
    for words in (study, inject):
        refuse(2, ["--report or --out"], *words, "--report", "rep4", "--out", "elsewhere")
    doc = ask("lm", "neff", *MODEL, "--dataset", "sentiment", "--queries", 4, "--shots", 2, "--out", "n",
              env=dict(os.environ, PATH="/nowhere"))
    check(doc["figures_missing"] == "gnuplot was not found", doc)
    check(os.path.exists("n/neff.csv") and os.path.exists("n/neff.gp") and not os.path.exists("n/neff.svg"), "files")


def what_the_machine_lacks_is_said_in_one_line():
    """What commands alone can be wrong about is in said.txt."""
    bank = ("lm", "bank", *MODEL, "--out", "x.npy")
    plain = {k: v for k, v in os.environ.items() if k not in ("CGAM_DATA", "CGAM_LLAMA")}
    refuse(2, ["CGAM_DATA"], "lm", "neff", *MODEL, "--dataset", "sst2", env=plain)
    refuse(2, ["no libllama in"], *bank, env=dict(plain, CGAM_LLAMA="/tmp/cgam-nowhere"))
    write("l1/lib/libllama.so", "text\n")
    refuse(2, ["libllama cannot be loaded"], *bank, env=dict(plain, CGAM_LLAMA="l1"))
    write("l2/libllama.txt", "")
    known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout.split("\n")
    os.symlink([line.split()[-1] for line in known if "libm.so.6 (libc6,x86-64" in line or "libm.so.6 (libc6,AArch64" in line][0], "l2/libllama.so.9")
    refuse(2, ["libllama.so.9 lacks "], *bank, env=dict(plain, CGAM_LLAMA="l2"))
    refuse(2, ["libllama was not found"], *bank, env=dict(plain, XDG_CACHE_HOME="/nonexistent"))
    # a disk that fills up: no file may grow beyond 64 KB
    done = subprocess.run(["bash", "-c", 'ulimit -f 64; exec "$0" "$@"', CGAM, *map(str, ("lm", "capture", *PROMPTS, "--shots", "0,2",
                           "--store", "full.db"))], capture_output=True, text=True, env=dict(os.environ, LLVM_PROFILE_FILE="/dev/null"))
    check(done.returncode == 3 and "full.db" in done.stderr and done.stderr.count("\n") == 1, done.returncode, done.stderr)


tiny("m.gguf")
write("d.tsv", "".join(f"{('down', 'up')[i % 2]}\t{'the' if i % 3 else 'a'} film {i} is {('bad', 'good')[i % 2]}\n" for i in range(60)))
code, _, err = run("lm", "states", *MODEL, "--prompt", "the")
if code == 2 and "libllama" in err:
    print("skipped:", err)
    sys.exit(77)
for test in (answers_that_cannot_be_told_apart_are_not_measured, templates_and_labels_are_taken_as_they_are, an_index_tells_prompts_apart,
             accuracies_spread_over_seeds, nulls_stand_beside_what_they_are_nulls_of, steering_with_no_coupling_changes_nothing, a_bias_after_the_norm_is_read_on_a_grid,
             the_norm_lens_reads_the_exact_steps, models_in_one_store_are_kept_apart, gates_begin_with_the_sweep,
             modes_and_layers_are_the_callers, gates_are_reported, an_injection_compares_as_many_tokens_as_it_needs, a_suite_is_one_table,
             a_fit_from_the_last_layer_is_the_demonstrations, recall_takes_a_projection, several_tasks_are_left_out_in_turn,
             whole_answers_are_compared, what_the_machine_lacks_is_said_in_one_line, studies_enter_reports):
    test()
finish()
