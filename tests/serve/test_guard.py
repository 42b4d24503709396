"""The server against clients that mean no good, or know no better.  ctest: labels=threads timeout=240"""
import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
import time

import numpy as np

from client import CGAM, SLOW, Server, check, finish, folder, refuse, server, wait_until

RECALL = json.dumps({"bank": "demo", "query": "rows:7"})
# Long enough to be stopped, short enough to end should that fail.
LONG = json.dumps({"trials": 200000, "seed": 1})


def post(s, body=RECALL, path="/api/recall", **headers):
    code, _, data = s.request("POST", path, body, s.headers(**headers))
    return code, json.loads(data)


def tokens(s):
    for path in "/api", "/api/recall", "/api/nonsense", "/api/out", "/metrics":
        for wrong in None, "Bearer", "Bearer ", "Bearer x", f"Bearer {s.token}x", f"Bearer {s.token[:-1]}", \
                f"Basic {s.token}", s.token, f"Bearer {s.token.swapcase()}":
            headers = {"Authorization": wrong} if wrong else {}
            for method in "GET", "POST":
                code, got, data = s.request(method, path, headers=headers)
                check(code == 401 and json.loads(data)["status"] == 2, method, path, wrong, code, data[:80])
                check(got["WWW-Authenticate"] == "Bearer", "challenge", got)
    check(s.request("GET", f"/api?token={s.token}", headers={})[0] == 401, "a token in the address")
    check(post(s)[0] == 200, "with its token")
    check(post(s, Authorization=f"bearer {s.token}")[0] == 200, "schemes know no case")
    for path in "/", "/health":
        check(s.request("GET", path, headers={})[0] == 200, path, "is open")


def foreign_hosts(s):
    own = f"127.0.0.1:{s.port}", f"localhost:{s.port}", f"LOCALHOST:{s.port}", f"[::1]:{s.port}"
    for host in own:
        check(post(s, Host=host)[0] == 200, "own host", host)
    for host in "evil.example", f"evil.example:{s.port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example", \
            f"127.0.0.1.evil.example:{s.port}", f"10.0.0.1:{s.port}", f"localhost:{s.port}x", "[::1", "", \
            f"127.0.0.1:{s.port}@evil.example", f"2130706433:{s.port}":
        for path in "/", "/health", "/api/recall":
            code, _, data = s.request("POST" if "api" in path else "GET", path, RECALL, s.headers(Host=host))
            check(code in (400, 403), "host", host, path, code, data[:80])
    got = s.raw(f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{s.port}\r\nHost: evil.example\r\n\r\n")
    check(b" 200 " in got.split(b"\r\n")[0] or b" 400 " in got.split(b"\r\n")[0] or b" 403 " in got.split(b"\r\n")[0],
          "two hosts", got[:80])
    check(b" 200 " not in s.raw("GET /health HTTP/1.0\r\n\r\n"), "no host")


def foreign_origins(s):
    for origin in f"http://127.0.0.1:{s.port}", f"http://localhost:{s.port}":
        code, headers, _ = s.request("POST", "/api/recall", RECALL, s.headers(Origin=origin))
        check(code == 200, "own origin", origin, code)
        check("Access-Control-Allow-Origin" not in headers, "a CORS header unasked")
    for origin in "null", "http://evil.example", f"https://127.0.0.1:{s.port}", "http://127.0.0.1", \
            f"http://evil.example:{s.port}", f"http://127.0.0.1:{s.port}.evil.example", "file://", "x":
        code, headers, _ = s.request("POST", "/api/recall", RECALL, s.headers(Origin=origin))
        check(code == 403 and "Access-Control-Allow-Origin" not in headers, "origin", origin, code)
    check(post(s, Sec_Fetch_Site="cross-site")[0] == 403, "a page of another site")
    check(s.request("OPTIONS", "/api/recall", headers={"Origin": "http://evil.example"})[0] in (403, 404), "preflight")


def headers_keep_pages_apart(s):
    for path in "/", "/health", "/api", "/none":
        _, headers, _ = s.request("GET", path)
        policy = headers["Content-Security-Policy"]
        check("default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy,
              path, policy)
        check(headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer" and
              headers["X-Frame-Options"] == "DENY", path, headers)


def path_tricks(s):
    for path in "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc/passwd", "//etc/passwd", "/index.html/", \
            "/serve/page/index.html", "/./index.html", "/report/style.css", "/../report/style.css", "/api/../recall", \
            "/api//recall", "/api/recall/", "/api/recall/x", "/api/RECALL", "/api/lm%20sweep", "/" + "a" * 5000, \
            "/api/" + "x" * 300, "/api/%00recall", "/%00", "/api/recall%0d%0aX:y":
        for method in "GET", "POST":
            code, _, data = s.request(method, path, RECALL if method == "POST" else None)
            check(code in (400, 404, 413, 414, 431), method, path[:40], code, data[:80])
            check(b"root:" not in data, "a file leaked", path)
    for line in "GET", "GET /health", "GET /health HTTP/9.9", "GET http://evil.example/ HTTP/1.1", \
            "POST /api/recall HTTP/1.1\r\nContent-Length: -1", "POST /api/recall HTTP/1.1\r\nContent-Length: 1e9", \
            "GET /health HTTP/1.1\r\nX: " + "y" * 100000:
        got = s.raw(line + "\r\n\r\n")
        check(b" 200 " not in got.split(b"\r\n")[0], "a request line", line[:40], got[:80])
    s.alive("after path tricks")


def malformed_bodies(s):
    deep = "[" * 100000
    for body in "{", "[]", "1", "null", '{"a":1}', '{"bank":"demo","bank":"demo"}', '{"bank":"demo"} x', "\xff", deep, \
            '{"query":' + deep, '{"bank":"demo","query":1e999}', '{"bank":"demo","query":[NaN]}', "{'a':1}", "\0", \
            '{"bank":["demo"],"query":[1]}', '{"bank":{"x":1},"query":[1]}', '{"bank":"demo","query":{}}':
        code, got = post(s, body.encode("latin-1"))
        check(code == 400 and got["status"] == 2 and "\n" not in got["error"], body[:40], code, got)
    check(post(s, "")[0] == 400, "no body at all")


def oversize_bodies():
    with server("--max-body", 1) as s:
        code, _, data = s.request("POST", "/api/recall", " " * (2 << 20))
        check(code == 413 and json.loads(data)["status"] == 2, "declared", code)
        c = s.connect()
        c.request("POST", "/api/recall", iter([b" " * 65536] * 40), s.headers(), encode_chunked=True)
        check(c.getresponse().status == 413, "in chunks")
        fits = RECALL + " " * ((1 << 20) - len(RECALL))
        check(post(s, fits)[0] == 200, "exactly as much as is allowed")
        check(post(s, fits + " ")[0] == 413, "a byte more")
        with s.socket() as raw:
            raw.sendall(f"POST /api/recall HTTP/1.1\r\nHost: 127.0.0.1:{s.port}\r\nAuthorization: Bearer {s.token}\r\n"
                        "Content-Length: 999999999999\r\n\r\n".encode())
            check(b" 413 " in raw.recv(4096), "before the body comes")
        s.alive()


def slow_clients():
    with server("--timeout", 1) as s:
        slow = []
        for text in "", "POST /api", f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{s.port}\r\n", \
                f"POST /api/recall HTTP/1.1\r\nHost: 127.0.0.1:{s.port}\r\nAuthorization: Bearer {s.token}\r\n" \
                "Content-Length: 1000\r\n\r\n{":
            slow.append(s.socket())
            slow[-1].sendall(text.encode())
        start, ended = time.monotonic(), set()
        while len(ended) < len(slow) and time.monotonic() - start < 10 * SLOW:
            for k, c in enumerate(slow):  # a byte now and then is no way to stay
                with contextlib.suppress(OSError):
                    c.send(b"x")
                    c.settimeout(0.05)
                    if c.recv(4096) == b"":
                        ended.add(k)
                    continue
                if c.fileno() >= 0:
                    with contextlib.suppress(socket.timeout):
                        try:
                            c.recv(1)
                        except (ConnectionError, BrokenPipeError):
                            ended.add(k)
            time.sleep(0.1)
        check(len(ended) == len(slow), "slow clients stayed", ended, time.monotonic() - start)
        s.alive()


def many_connections(s):
    crowd = []
    with contextlib.suppress(OSError):
        for _ in range(1000):
            crowd.append(s.socket())
    check(len(crowd) == 1000, "connections", len(crowd))
    check(post(s)[0] == 200, "an answer in a crowd")
    for c in crowd[::2]:
        c.sendall(b"GET /hea")
    check(post(s)[0] == 200, "an answer in a talking crowd")
    for c in crowd:
        c.close()
    s.alive()


def running(s):
    text = s.request("GET", "/metrics")[2].decode()
    return int(float(text.split("\ncgam_running ")[1].split()[0]))


def a_client_that_leaves_stops_its_verb(s):
    for accept in "*/*", "text/event-stream":
        c = s.connect()
        c.request("POST", "/api/study/competition", LONG, s.headers(Accept=accept))
        check(wait_until(lambda: running(s) == 1), "the verb does not run", accept)
        c.sock.shutdown(socket.SHUT_RDWR)
        c.close()
        check(wait_until(lambda: running(s) == 0, 10), "the verb goes on without its client", accept)
    check(post(s)[0] == 200, "after that")


def a_verb_has_its_time():
    with server("--timeout", 0.5, "--metrics") as s:
        start = time.monotonic()
        code, got = post(s, LONG, "/api/study/competition")
        check(code == 503 and got["status"] == 3 and "0.5 seconds" in got["error"], "timeout", code, got)
        check(time.monotonic() - start < 5 * SLOW, "it took", time.monotonic() - start)
        check(wait_until(lambda: running(s) == 0, 5), "it still runs")
        code, _, data = s.request("POST", "/api/study/competition", LONG, s.headers(Accept="text/event-stream"))
        check(code == 200 and b"event: error" in data and b"0.5 seconds" in data, "events", code, data[-200:])
        check(post(s)[0] == 200, "after that")


def too_many_verbs_are_told_so():
    with server("--max-requests", 1, "--timeout", 20 * SLOW, "--metrics") as s:
        c = s.connect()
        c.request("POST", "/api/study/competition", LONG, s.headers())
        check(wait_until(lambda: running(s) == 1), "the verb does not run")
        code, headers, data = s.request("POST", "/api/recall", RECALL)
        check(code == 429 and headers["Retry-After"] and json.loads(data)["status"] == 2, "too many", code, data)
        s.alive("while a verb runs")
        c.close()
        check(wait_until(lambda: post(s)[0] == 200), "room again")


def an_end_waits_for_verbs():
    s = Server("--metrics")
    answers = []
    work = json.dumps({"trials": 6000 // SLOW, "seed": 2})
    t = threading.Thread(target=lambda: answers.append(post(s, work, "/api/study/competition")))
    t.start()
    check(wait_until(lambda: running(s) == 1), "the verb does not run")
    s.stop()
    t.join()
    check(answers and answers[0][0] in (200, 503), "an answer", answers and answers[0][0])
    check(answers and (answers[0][0] == 200 or SLOW > 1), "the verb was not let end", answers)


def a_kill_leaves_nothing_behind():
    s = Server("--no-token")
    port = s.port
    keep = s.connect()
    s.request("GET", "/health", connection=keep)
    s.process.kill()
    s.process.wait()
    with server("--port", port, "--no-token") as again:
        check(again.port == port and again.token is None, "the same port", again.line)
        check(post(again)[0] == 200, "no token is needed")
        check(post(again, Origin="http://evil.example")[0] == 403, "pages of others are not let in without one")


def options(where):
    refuse(2, ["--no-token", "0.0.0.0"], "serve", "--host", "0.0.0.0", "--no-token")
    refuse(2, ["exclude"], "serve", "--token", "x", "--no-token")
    refuse(2, ["nothing.npy"], "serve", "--bank", f"{where}/nothing.npy")
    refuse(2, ["twice"], "serve", "--bank", f"a={where}/Z.npy", "--bank", f"a={where}/Z.npy")
    refuse(2, ["no id"], "serve", "--bank", f"a b={where}/Z.npy")
    refuse(2, ["letters"], "serve", "--token", "two words")
    with open(f"{where}/token", "w", encoding="ascii") as f:
        f.write("s3cret\nmore\n")
    with server("--token-file", f"{where}/token", "--allow-origin", "http://ours.example", "--allow-host",
                "cgam.example") as s:
        check(s.token == "s3cret", "token of a file", s.line)
        code, headers, _ = s.request("POST", "/api/recall", RECALL, s.headers(Origin="http://ours.example"))
        check(code == 200 and headers["Access-Control-Allow-Origin"] == "http://ours.example", "CORS where asked for", code)
        check(s.request("OPTIONS", "/api/recall", headers={"Origin": "http://ours.example"})[0] == 204, "preflight")
        check(post(s, Host="cgam.example", Origin="https://cgam.example")[0] == 200, "behind a proxy")
        busy = subprocess.run([CGAM, "serve", "--port", str(s.port)], capture_output=True, text=True, check=False)
        check(busy.returncode == 2 and str(s.port) in busy.stderr, "a port in use", busy.stderr)
    s = Server("--host", "0.0.0.0", "--token", "abc")
    s.host = "127.0.0.1"
    check(post(s)[0] == 200, "any address")
    check("in clear" in s.stop(signal.SIGINT), "a word of warning")


with folder() as place:
    np.save(f"{place}/Z.npy", np.eye(3))
    with server("--metrics") as main:
        tokens(main)
        foreign_hosts(main)
        foreign_origins(main)
        headers_keep_pages_apart(main)
        path_tricks(main)
        malformed_bodies(main)
        many_connections(main)
        a_client_that_leaves_stops_its_verb(main)
    oversize_bodies()
    slow_clients()
    a_verb_has_its_time()
    too_many_verbs_are_told_so()
    an_end_waits_for_verbs()
    a_kill_leaves_nothing_behind()
    options(place)
finish()
