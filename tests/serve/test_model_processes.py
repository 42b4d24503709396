"""Models run in processes of their own: what ends or holds up one of them is an error for its client, and for nobody else.
ctest: labels=threads timeout=240"""
import contextlib
import json
import os
import re
import signal
import subprocess
import threading
import time

from client import SLOW, check, finish, folder, patient, run, server, wait_until

TINY = os.path.join(os.environ["CGAM_BUILD"], "tests", "python", "tiny_model")


def processes(s):
    """Process ids of the server's model processes."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                fields = f.read().rpartition(")")[2].split()
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            continue
        if int(fields[1]) == s.process.pid and b"--guest" in words:
            found.append(int(pid))
    return found


def lens(s, **more):
    return s.verb("lm lens", prompt="the good film", exact=True, **more)


def a_process_that_dies(s, want):
    for how in (signal.SIGKILL, signal.SIGABRT) + (signal.SIGSEGV,) * (SLOW == 1):  # sanitizers take the last for theirs
        (pid,) = processes(s)
        os.kill(pid, signal.SIGSTOP)
        got = []
        t = threading.Thread(target=lambda: got.append(lens(s)))
        t.start()
        time.sleep(patient(0.3))
        os.kill(pid, how)
        with contextlib.suppress(ProcessLookupError):  # SIGKILL ends a stopped process too, and the server may have waited for it
            os.kill(pid, signal.SIGCONT)
        t.join()
        code, doc = got[0]
        check(code == 500 and doc["status"] == 3 and f"signal {int(how)}" in doc["error"], how, code, doc)
        s.alive("after", how)
        check(lens(s) == want, "another process is started after", how)


def a_process_that_hangs(s, want):
    (pid,) = processes(s)
    os.kill(pid, signal.SIGSTOP)
    begun = time.time()
    code, doc = lens(s)
    check(code == 503 and "stopped after" in doc["error"], "one that hangs", code, doc)
    check(time.time() - begun < patient(30), "it took", time.time() - begun)
    check(wait_until(lambda: pid not in processes(s), 10), "it is gone", pid)
    check(lens(s) == want, "another process is started after one that hung")


def a_process_that_does_not_read_its_request(s, want):
    """More than a socket takes is on its way: the request has its time all the same, and so has the server's end."""
    (pid,) = processes(s)
    os.kill(pid, signal.SIGSTOP)
    code, doc = s.verb("lm states", prompts={"text": "the good film\n" * 100000}, exact=True)
    check(code == 503 and "stopped after" in doc["error"], "one that does not read", code, doc)
    check(wait_until(lambda: pid not in processes(s), 10), "it is gone", pid)
    check(lens(s) == want, "another process is started after one that did not read")


def children(pid):
    with contextlib.suppress(OSError):
        return [child for t in os.listdir(f"/proc/{pid}/task")
                for child in open(f"/proc/{pid}/task/{t}/children", encoding="ascii").read().split()]
    return []


def what_a_process_has_started_ends_with_it(where):
    with open(f"{where}/gnuplot", "w", encoding="ascii") as f:
        f.write("#!/bin/sh\nexec sleep 300\n")
    os.chmod(f"{where}/gnuplot", 0o755)
    with server("--model", "m.gguf", "--root", "out", env={**os.environ, "PATH": f"{where}:{os.environ['PATH']}"}) as s:
        t = threading.Thread(target=sweep, args=(s,), kwargs={"out": "drawn"})
        t.start()
        check(wait_until(lambda: any(children(pid) for pid in processes(s)), 60), "no figure is drawn")
        (pid,) = processes(s)
        (child,) = children(pid)
        os.kill(pid, signal.SIGKILL)
        t.join()
        check(wait_until(lambda: not running(child)), "what it started goes on", child)


def running(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
        return f.read().rpartition(")")[2].split()[0] != "Z"
    return False


def a_client_that_leaves(s):
    (pid,) = processes(s)
    os.kill(pid, signal.SIGSTOP)
    c = s.connect()
    c.request("POST", "/api/lm/lens", json.dumps({"prompt": "the", "exact": True}), s.headers())
    time.sleep(patient(0.3))
    c.close()
    time.sleep(0.5)
    os.kill(pid, signal.SIGCONT)
    code, _ = lens(s)
    check(code == 200, "after a client that left", code)


def limits(s):
    (pid,) = processes(s)
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        status = f.read()
    check(re.search(r"^NoNewPrivs:\t1$", status, re.M), "no new privileges", status)
    if re.search(r"^Seccomp:\t", status, re.M):
        check(re.search(r"^Seccomp:\t2$", status, re.M), "seccomp", status)
    open_files = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    check(sum(x.startswith("socket:") for x in open_files) == 1, "one socket to the server, nothing else of it", open_files)


def sweep(s, **more):
    data = {"labels": "down=negative,up=positive", "queries": 8, "shots": "2", "exact": True, **more,
            "eval": {"text": "".join(f"{'up' if i % 2 else 'down'}\ta {'good' if i % 2 else 'bad'} film {i}\n" for i in range(40))}}
    return s.request("POST", "/api/lm/sweep", json.dumps(data), s.headers(Accept="text/event-stream"))


def events(s):
    code, _, text = sweep(s)
    names = re.findall(rb"^event: (\w+)$", text, re.M)
    check(code == 200 and names[-1] == b"document" and b"progress" in names, "events of a model process", code, names)


def damaged(name):
    with open("m.gguf", "rb") as f:
        data = bytearray(f.read())
    at = data.index(b"llama.block_count") + len(b"llama.block_count") + 4
    data[at:at + 4] = bytes(4)
    with open(name, "wb") as f:
        f.write(data)


with folder() as here:
    os.chdir(here)
    subprocess.run([TINY, "m.gguf"], check=True)
    damaged("bad.gguf")
    if run("lm", "states", "--model", "m.gguf", "--prompt", "the", "--exact")[0] != 0:
        print("skipped: no libllama")
    else:
        with server("--model", "m.gguf", "--model", "bad.gguf", "--timeout", patient(2), "--root", "out") as served:
            first = lens(served)
            check(first[0] == 200, "a model process answers", first)
            limits(served)
            events(served)
            a_process_that_dies(served, first)
            a_process_that_hangs(served, first)
            a_process_that_does_not_read_its_request(served, first)
            a_client_that_leaves(served)
            answer = lens(served, model="bad")
            check(answer[0] == 400 and "block_count is 0" in answer[1]["error"], "a damaged model", answer)
            served.alive("at the end")
        check(not processes(served), "no process is left behind")
        what_a_process_has_started_ends_with_it(here)
        if SLOW == 1:
            with server("--model", "m.gguf", "--model-memory", 4) as served:
                answer = lens(served)
                check(answer[0] == 500, "too little memory", answer)
                served.alive("too little memory")
finish()
