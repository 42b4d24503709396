"""Every verb of the table at a size that takes some 20 seconds or more, and how soon it answers each request to stop."""
import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import time

import numpy as np

from client import CGAM, Server, check, folder, patient, wait_until

WITHIN = 1.0  # seconds, measured from the request to stop, on a machine that does nothing else
TRIES = 3            # on a machine that does other things, the best of these counts
TINY = os.path.join(os.environ["CGAM_BUILD"], "tests", "python", "tiny_model")
BEGIN = 2.0          # seconds into the verb

# Options at which a verb takes 20 seconds or more; `bank`, `query` and `starts` are replaced by the files of make_inputs.
LONG = {
    "recall": {"bank": "square", "query": "one", "mode": "coupled", "alpha": 0.1, "certify": True},
    "inspect": {"bank": "square", "alpha": 0.1},
    "map": {"bank": "tall", "grid": 400, "gates": "settled", "alpha": 0.1, "beta": 4},
    "landscape": {"bank": "square", "query": "one", "alpha": 0.1},
    "fit": {"bank": "square", "queries": "many", "contexts": "many", "targets": "targets", "learn": "P", "epochs": 10**6,
            "optimizer": "adam", "patience": 0, "out": "fit.safetensors"},
    "net train": {"FILE": "denoiser", "data": "square", "clamp": "visible", "read": "visible", "learn": "memories", "steps": 1,
                  "noise": 0.1, "epochs": 10**6, "patience": 0, "out": "denoised.json"},
    "report": {"scale": 50, "figures": "no", "out": "page"},
    "study separation": {"banks": 512, "out": "separation"},
    "study competition": {"trials": 10**6, "out": "competition"},
    "study coupled": {"n": 2048, "out": "coupled"},
    "study timescale": {"trials": 10**6, "out": "timescale"},
    "study theorems": {"trials": 2**31, "out": "theorems"},
    "study capacity": {"trials": 10**5, "out": "capacity"},
    "study phase": {"trials": 10**5, "out": "phase"},
    "study convergence": {"trials": 10**5, "out": "convergence"},
    "study annealing": {"trials": 10**5, "out": "annealing"},
    "study sparse": {"trials": 10**5, "out": "sparse"},
    "study rivals": {"banks": 4096, "out": "rivals"},
    "net run": {"FILE": "net"},
    "bench": {"rows": 64000, "columns": 2048, "runs": 100},
    "bank pack": {"from": "large", "dtype": "f64", "alpha": 0.1, "out": "packed.safetensors"},
}
# Verbs of models; `slow` is the model of tiny_model.c with that name.
TASK = {"model": "slow", "eval": "task", "labels": "down=negative,up=positive", "shots": "0,4", "queries": 1200, "exact": True}
LONG_LM = {
    "lm states": {"model": "slow", "prompts": "lines", "exact": True},
    "lm lens": {"model": "slow", "prompt": "words", "exact": True},
    "lm generate": {"model": "slow", "prompt": "the", "max-tokens": 30000, "exact": True},
    "lm trace": {"model": "slow", "prompt": "words", "edit": "edit", "exact": True},
    "lm vector": {**TASK, "out": "vector.npy"},
    "lm heads": TASK,
    "lm capture": {**TASK, "store": "store"},
    "lm neff": TASK,
    "lm sweep": TASK,
    "lm steer": TASK,
    "lm probe": TASK,
    "lm inject": TASK,
    "lm gates": TASK,
    "lm fit": TASK,
    "lm study": TASK,
}
LONG.update(LONG_LM)
QUICK = ["inspect", "landscape", "study coupled", "study separation", "study theorems", "lm lens"]
# Every verb has a row above, or a reason here why no options make it long.
SHORT = {
    "study": "prints help",
    "bank show": "reads a header, or at --check a file once",
    "bank names": "reads or writes one list",
    "bank embed": "runs the texts of a file, like lm states",
    "cache put": "copies one file once",
    "cache get": "reads one file once",
    "cache drop": "copies one file once",
    "cache show": "reads one file once",
    "cache calibrate": "scores the pairs of a file once",
    "bank add": "copies one file once",
    "bank put": "copies one file once",
    "bank drop": "copies one file once",
    "data get": "waits for a network; a test has a server of its own",
    "lm get": "waits for a network; a test has a server of its own",
    "lm bank": "reads the vocabulary of a model once",
    "lm store": "reads a store once",
    "net show": "reads one small file",
    "demo": "has no sizes",
    "help": "prints a table",
    "completion": "prints a script",
    "version": "prints a line",
    "serve": "runs until it is stopped: test_stop.py of its clients, test_start.py",
}
NOT_OVER_HTTP = ("bank pack", "lm vector", "fit", "net train")  # they only write files
SHOWS_WHAT_IT_HAS = ("lm generate",)        # a stop ends its text, and is no failure


def has_models(where):
    """Is there a libllama? Without one, verbs of models end at once."""
    tiny = f"{where}/tiny.gguf"
    subprocess.run([TINY, tiny], check=True)
    return subprocess.run([CGAM, "lm", "states", "--model", tiny, "--prompt", "the", "--exact"], capture_output=True).returncode == 0


class Inputs:
    """Files for the command line; the same as ids or data for a request."""

    def __init__(self, where, quick, models):
        rng = np.random.default_rng(35)
        shapes = {"square": (2400, 2400), "tall": (20000, 64)} if quick else \
            {"square": (3000, 3000), "tall": (20000, 64), "large": (200000, 1024)}
        self.where, self.files, self.data = where, {}, {"square": "square", "tall": "tall", "one": "rows:0", "slow": "slow", "store": "store"}
        for name, shape in shapes.items():
            Z = rng.standard_normal(shape, dtype=np.float32)
            np.save(self.path(f"{name}.npy"), Z / np.linalg.norm(Z, axis=1, keepdims=True))
            self.files[name] = self.path(f"{name}.npy")
            if name == "square":
                np.save(self.path("one.npy"), Z[0])
                self.files["one"] = self.path("one.npy")
                np.save(self.path("many.npy"), Z[:640])
                np.save(self.path("targets.npy"), np.arange(640))
                self.files.update(many=self.path("many.npy"), targets=self.path("targets.npy"))
        self.write("net", "net.json", json.dumps(long_net()))
        self.write("denoiser", "denoiser.json", json.dumps(denoiser(shapes["square"][1])))
        self.data["net"] = long_net()
        if models:
            self.make_models(rng)

    def path(self, name):
        return f"{self.where}/{name}"

    def write(self, name, file, text):
        with open(self.path(file), "w", encoding="utf-8") as f:
            f.write(text)
        self.files[name] = self.path(file)
        self.data[name] = {"text": text}

    def make_models(self, rng):
        slow, edit = self.path("slow.gguf"), rng.standard_normal(512).astype(np.float32) / 100
        subprocess.run([TINY, slow, "slow"], check=True)
        np.save(self.path("edit.npy"), edit)
        self.write("lines", "lines.txt", "".join(f"the good film {i} {'the bad film ' * 100}\n" for i in range(1500)))
        self.write("task", "task.tsv", "".join(f"{'up' if i % 2 else 'down'}\t{'the good film ' * 30}{i}\n" for i in range(3000)))
        self.files.update(slow=slow, store=self.path("store.db"), words="the " * 20000, edit="2:add:all:1:" + self.path("edit.npy"))
        self.write("few", "few.txt", "the good film\n")
        subprocess.run([CGAM, "lm", "capture", "--model", slow, "--store", self.files["store"], "--prompts", self.files["few"], "--exact"],
                       check=True, stdout=subprocess.DEVNULL)
        self.data.update(words=self.files["words"], edit={"values": edit.tolist(), "as": "2:add:all:1:{}"})


def denoiser(d):
    return {"format": "cgam-net/1", "layers": [{"name": "visible", "shape": d, "lagrangian": "spherical_norm"}],
            "synapses": [{"name": "memories", "kind": "hidden", "layers": ["visible"], "lagrangian": "softmax", "beta": 10,
                          "weights": {"normal": 1, "shape": [300, d], "normalize": True}}]}


def long_net():
    """The network of examples/, for a hundred million steps."""
    with open(f"{os.environ['CGAM_SRC']}/examples/two_stage.json", encoding="utf-8") as f:
        net = json.load(f)
    net["flow"] = {"t_end": 1e6, "method": "rk4", "step": 0.01, "max_steps": 10**9, "steady": 0, "sample": 1e6}
    return net


def words_of(verb, inputs):
    words = verb.split()
    for name, value in LONG[verb].items():
        value = inputs.files.get(value, value) if isinstance(value, str) else value
        if name == "out":
            value = inputs.path(value)
        if name.isupper():
            words.append(str(value))
        else:
            words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return words


def body_of(verb, inputs):
    return json.dumps({k: inputs.data.get(v, v) if isinstance(v, str) else v for k, v in LONG[verb].items()})


def signalled(verb, by, inputs):
    """Seconds from a signal to the end of a program; None: it ended before."""
    p = subprocess.Popen([CGAM, *words_of(verb, inputs)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        err = p.communicate(timeout=BEGIN)[1]
        check(False, verb, "ended before it was asked to stop:", p.returncode, err)
        return None
    except subprocess.TimeoutExpired:
        pass
    at = time.monotonic()
    p.send_signal(by)
    try:
        err = p.communicate(timeout=60)[1]
    except subprocess.TimeoutExpired:
        p.kill()
        p.communicate()
        return 60.0
    took = time.monotonic() - at
    if verb in SHOWS_WHAT_IT_HAS:
        check(p.returncode == 0, verb, by, p.returncode, err)
    else:
        check(p.returncode == 3 and err.endswith("stopped on request\n"), verb, by, p.returncode, err)
    return took


def drawn(verb, inputs):
    """Seconds to the first progress on a terminal."""
    ours, theirs = pty.openpty()
    out = ours if verb in SHOWS_WHAT_IT_HAS else None  # its text is its progress
    at = time.monotonic()
    p = subprocess.Popen([CGAM, *words_of(verb, inputs)], stdout=theirs if out else subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    shown_at = select.select([ours], [], [], 30)[0]
    took = time.monotonic() - at
    text = os.read(ours, 4096) if shown_at else b""
    check(p.poll() is None, verb, "ended before it was asked to stop:", p.returncode, text)
    p.kill()
    p.wait()
    os.close(ours)
    return took - 1  # as in `shown`


def shown(verb, server, inputs):
    """Seconds to the first progress of a stream of events."""
    c = server.connect()
    at = time.monotonic()
    c.request("POST", "/api/" + verb.replace(" ", "/"), body_of(verb, inputs), server.headers(Accept="text/event-stream"))
    first = c.getresponse().readline()
    took = time.monotonic() - at
    check(first == b"event: progress\n", verb, first)
    c.close()
    wait_until(lambda: running(server) == 0, 30)
    return took - 1  # two seconds are allowed, and one is what `within` compares with


def running(server):
    lines = server.request("GET", "/metrics")[2].decode().splitlines()
    return sum(float(line.split()[1]) for line in lines if line.startswith(("cgam_running ", "cgam_waiting ")))


def timed_out(verb, server, inputs):
    """Seconds from the end of the time allowed to the answer, and to the end of the work."""
    at = time.monotonic() + server.allowed
    code, _, data = server.request("POST", "/api/" + verb.replace(" ", "/"), body_of(verb, inputs))
    took = time.monotonic() - at
    check(code == 200 if verb in SHOWS_WHAT_IT_HAS else code == 503 and b"timeout" in data, verb, code, data[:200])
    wait_until(lambda: running(server) == 0, 30)
    return took, time.monotonic() - at


def left_alone(verb, server, inputs):
    """Seconds from the end of the connection to the end of the work."""
    body = body_of(verb, inputs)
    with socket.create_connection((server.host, server.port)) as s:
        s.sendall(f"POST /api/{verb.replace(' ', '/')} HTTP/1.1\r\nHost: {server.host}:{server.port}\r\n"
                  f"Authorization: Bearer {server.token}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        time.sleep(1)
        check(running(server) == 1, verb, "does not run")
    at = time.monotonic()
    wait_until(lambda: running(server) == 0, 30)
    return time.monotonic() - at


def within(verb, how, measure):
    """The best of some tries."""
    best = 60.0
    for _ in range(TRIES):
        took = measure()
        if took is None:
            return
        best = min(best, took)
        if best <= patient(WITHIN):
            break
    print(f"{verb:20} {how:12} {best:.2f} s")
    check(best <= patient(WITHIN), verb, how, f"{best:.2f} s")


def test(verbs, quick=False):
    with folder() as where:
        models = has_models(where)
        verbs = [v for v in verbs if models or v not in LONG_LM]
        inputs = Inputs(where, quick, models)
        for verb in verbs:
            for by in (signal.SIGINT,) if quick else (signal.SIGINT, signal.SIGTERM):
                within(verb, by.name, lambda: signalled(verb, by, inputs))
            if not quick:
                within(verb, "terminal", lambda: drawn(verb, inputs))
        served = [word for name in ("square", "tall") for word in ("--bank", f"{name}={inputs.files[name]}")]
        if models:
            served += ["--model", f"slow={inputs.files['slow']}", "--store", f"store={inputs.files['store']}"]
        os.mkdir(f"{where}/root")
        server = Server(*served, "--metrics", "--timeout", 3, "--out-timeout", 3, "--root", f"{where}/root")
        server.allowed = 3
        for verb in verbs:
            if verb not in NOT_OVER_HTTP:
                within(verb, "progress", lambda: shown(verb, server, inputs))
                within(verb, "timeout", lambda: max(timed_out(verb, server, inputs)))
                if not quick:
                    within(verb, "client gone", lambda: left_alone(verb, server, inputs))
        server.stop()


def test_table():
    """A verb without a row fails here, so that a new one cannot be forgotten; and so does a row of none."""
    table = json.loads(subprocess.run([CGAM, "help", "--json"], capture_output=True, text=True, check=True).stdout)["verbs"]
    names = [verb["name"] for verb in table]
    for name in names:
        check((name in LONG) != (name in SHORT), name, "must be in one list of tests/serve/stops.py: LONG, or SHORT with a reason")
    for name in [*LONG, *SHORT]:
        check(name in names, name, "is in a list of tests/serve/stops.py and no verb")
