"""Language models over HTTP: the documents of the command line, from a model that stays open.
ctest: labels=threads timeout=240"""
import json
import os
import subprocess
import threading

from client import SLOW, ask, check, finish, folder, patient, run, server

TINY = os.path.join(os.environ["CGAM_BUILD"], "tests", "python", "tiny_model")
PLACES = ("out", "files", "command", "saved", "prompts", "store", "model", "figures", "source", "task")


def strip(doc):
    if isinstance(doc, dict):
        return {k: strip(v) for k, v in doc.items() if k not in PLACES and not k.endswith("seconds")}
    return [strip(x) for x in doc] if isinstance(doc, list) else doc


def same(got, want, *words):
    got, want = strip(got), strip(want)
    differ = [(k, got.get(k), want.get(k)) for k in {**got, **want} if got.get(k) != want.get(k)]
    check(not differ, *words, str(differ)[:600])


def words_of(options):
    for key, value in options.items():
        yield f"--{key}"
        if value is not True:
            yield value


def opened(s):
    text = s.request("GET", "/metrics")[2].decode()
    return int(float(text.split("\ncgam_models_opened_total ")[1].split()[0]))


def documents(s, where, tsv):
    data = {"labels": "down=negative,up=positive", "queries": 8, "shots": "2", "exact": True}
    for verb, options in (("lm lens", {"prompt": "the good film", "exact": True}), ("lm generate", {"prompt": "the", "max-tokens": 4}),
                          ("lm states", {"prompt": "the film"}), ("lm neff", data), ("lm sweep", data), ("lm probe", data),
                          ("lm gates", {**data, "alphas": "0.01"}), ("lm fit", {**data, "rank": 1})):
        from_file = {"eval": tsv} if "labels" in options else {}
        want = ask(*verb.split(), "--model", "m.gguf", "--threads", 1, *words_of({**options, **from_file}))
        if from_file:
            with open(tsv, encoding="utf-8") as f:
                from_file = {"eval": {"text": f.read()}}
        code, got = s.verb(verb, threads=1, **options, **from_file)
        check(code == 200, verb, code, got)
        if code == 200:
            same({**got, "dataset": 0}, {**want, "dataset": 0}, verb)
    check(opened(s) == 1, "one model for all of them", opened(s))
    code, got = s.verb("lm fit", out="../x.npy", **data, eval={"text": "up\tx\n"})
    check(code == 403 and "root" in got["error"], "lm fit writes", code, got)
    code, got = s.verb("lm sweep", **data, eval={"text": "up\tx\n"}, store="new.db")
    check(code == 404, "a store by its path", code, got)
    check(where not in json.dumps(got), "a path in an answer", got)


def at_the_same_time(s):
    want = s.verb("lm lens", prompt="the good film", exact=True)
    answers = [None] * 4

    def one(k):
        answers[k] = [s.verb("lm lens", prompt="the good film", exact=True) for _ in range(6 if SLOW == 1 else 2)]

    threads = [threading.Thread(target=one, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check(all(x == want for a in answers for x in a), "four clients on one model")
    check(opened(s) >= 1, "models", opened(s))


def a_text_is_cut_by_the_time():
    """A time that is over ends the text of `lm generate`; what there is of it is the answer, as docs/server.md says."""
    subprocess.run([TINY, "slow.gguf", "slow"], check=True)
    options = {"prompt": "the", "max-tokens": 30000, "exact": True}
    with server("--model", "slow.gguf", "--timeout", patient(2)) as s:
        code, got = s.verb("lm generate", **options)
        check(code == 200 and got["stop"] == "interrupt" and 0 < len(got["tokens"]) < 30000, "what there is", code, str(got)[:300])
        code, headers, data = s.request("POST", "/api/lm/generate", json.dumps(options), s.headers(Accept="text/event-stream"))
        last = data.decode().strip().split("\n\n")[-1].split("\n")
        check(last[0] == "event: document" and json.loads(last[1][6:])["stop"] == "interrupt", "the last event", last[0], last[1][-200:])
        s.alive("after texts that were cut")


with folder() as here:
    os.chdir(here)
    subprocess.run([TINY, "m.gguf"], check=True)
    if run("lm", "states", "--model", "m.gguf", "--prompt", "the", "--exact")[0] != 0:
        print("skipped: no libllama")
    else:
        with open("d.tsv", "w", encoding="ascii") as f:
            f.writelines(f"{'up' if i % 2 else 'down'}\ta {'good' if i % 2 else 'bad'} film {i}\n" for i in range(40))
        with server("--model", "m.gguf", "--metrics") as served:
            documents(served, here, "d.tsv")
            at_the_same_time(served)
        a_text_is_cut_by_the_time()
finish()
