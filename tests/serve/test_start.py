"""How the server begins: the address it says, the browser it opens, the connections it has files for.  ctest: labels=threads timeout=120"""
import json
import os
import resource
import signal
import socket
import subprocess

from client import CGAM, Server, check, finish, folder, patient, server, wait_until

RECALL = json.dumps({"bank": "demo", "query": "rows:7"})


def answers(s, *words):
    code, _, data = s.request("POST", "/api/recall", RECALL)
    check(code == 200 and json.loads(data)["queries"], *words, code, data[:100])


def has_six():
    try:
        with socket.socket(socket.AF_INET6) as c:
            c.bind(("::1", 0))
        return True
    except OSError:
        return False


def addresses_of_six_numbers():
    with server("--host", "::1") as s:
        check(s.line.startswith("http://[::1]:"), "its address", s.line)
        answers(s, "::1")
        check(s.request("POST", "/api/recall", RECALL, s.headers(Host=f"[::1]:{s.port}"))[0] == 200, "its Host")


def the_document_has_standard_output_alone():
    with subprocess.Popen([CGAM, "serve", "--json", "--no-token"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        line = p.stderr.readline()
        check(line.startswith("http://127.0.0.1:"), "the address", line)
        p.send_signal(signal.SIGTERM)
        out, err = p.communicate(timeout=patient(30))
    doc = json.loads(out)
    check(p.returncode == 0 and err == "" and line.strip().endswith(f":{doc['port']}/") and doc["requests"] == 0, "the document", doc, err)


def an_address_that_cannot_be_said():
    with open("/dev/full", "w", encoding="ascii") as full:
        p = subprocess.run([CGAM, "serve"], stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=patient(60))
    check(p.returncode == 3 and p.stderr.count("\n") == 1 and "standard output" in p.stderr, "a full device", p.returncode, p.stderr)


def a_browser_is_opened_where_there_is_one(where):
    with open(f"{where}/xdg-open", "w", encoding="ascii") as f:
        f.write(f'#!/bin/sh\nprintf %s "$1" >{where}/opened.part && mv {where}/opened.part {where}/opened\n')
    os.chmod(f"{where}/xdg-open", 0o755)
    with server("--open", env={**os.environ, "PATH": f"{where}:{os.environ['PATH']}"}) as s:
        check(wait_until(lambda: os.path.exists(f"{where}/opened")), "no browser was opened")
        with open(f"{where}/opened", encoding="ascii") as f:
            check(f.read() == s.line.strip(), "its address, with the token", s.line)
        answers(s, "with a browser")
    os.mkdir(f"{where}/empty")
    s = Server("--open", env={**os.environ, "PATH": f"{where}/empty"})
    answers(s, "without one")
    err = s.stop()
    check(err.count("\n") == 1 and "no browser" in err, "and it is said", err)


def few_files_are_few_connections():
    """With as many clients as there are files for, all of them idle, the next one waits, and is answered when one has gone."""
    for files, most in (300, 172), (200, 128):
        limit = lambda n=files: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))
        with server("--metrics", preexec_fn=limit) as s:
            answers(s, files, "files")
            crowd = [s.socket() for _ in range(most + 20)]
            late = s.connect()
            late.request("POST", "/api/recall", RECALL, s.headers())
            for c in crowd:
                c.close()
            check(late.getresponse().status == 200, files, "files and a crowd")
            late.close()
            answers(s, files, "files, afterwards")


if has_six():
    addresses_of_six_numbers()
the_document_has_standard_output_alone()
an_address_that_cannot_be_said()
with folder() as place:
    a_browser_is_opened_where_there_is_one(place)
few_files_are_few_connections()
finish()
