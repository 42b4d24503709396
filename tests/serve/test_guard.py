"""The server against clients that mean no good, or know no better.  ctest: labels=threads timeout=240"""
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time

import numpy as np

from client import CGAM, SLOW, Server, check, finish, folder, patient, refuse, server, wait_until

RECALL = json.dumps({"bank": "demo", "query": "rows:7"})
# Ends by being stopped, on any machine: half an hour of one core, in blocks of a few hundredths of a second.
LONG = json.dumps({"trials": 2000000, "n": 50, "d": 50, "seed": 1})


def post(s, body=RECALL, path="/api/recall", **headers):
    code, _, data = s.request("POST", path, body, s.headers(**headers))
    return code, json.loads(data)


def tokens(s):
    for path in "/api", "/api/here", "/api/recall", "/api/nonsense", "/api/out", "/metrics":
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
    for site, want in ("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200):
        check(post(s, Sec_Fetch_Site=site)[0] == want, "a page of a site that is", site)
    check(s.request("OPTIONS", "/api/recall", headers={"Origin": "http://evil.example"})[0] in (403, 404), "preflight")


def headers_keep_pages_apart(s):
    for path in "/", "/health", "/api", "/none":
        _, headers, _ = s.request("GET", path)
        policy = headers["Content-Security-Policy"]
        check("default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy,
              path, policy)
        check(headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer" and
              headers["X-Frame-Options"] == "DENY", path, headers)


def the_page_is_kept_and_asked_for_again(s):
    for path in "/", "/main.js":
        code, headers, data = s.request("GET", path, headers={})
        check(code == 200 and headers["Cache-Control"] == "no-cache" and len(data) > 100, path, code, headers)
        code, again, data = s.request("GET", path, headers={"If-None-Match": headers["ETag"]})
        check(code == 304 and data == b"" and again["ETag"] == headers["ETag"], "not sent again", path, code, again)
        code, _, data = s.request("GET", path, headers={"If-None-Match": '"0123"'})
        check(code == 200 and data, "another version", path, code)
    check(s.request("GET", "/api")[1]["Cache-Control"] == "no-store", "answers are not kept")


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


def malformed_http(s):
    """Heads that can be read in two ways, bodies in pieces, and what is no HTTP at all."""
    good, length = RECALL, len(RECALL)
    host, token, origin = f"Host: 127.0.0.1:{s.port}", f"Authorization: Bearer {s.token}", f"Origin: http://127.0.0.1:{s.port}"

    def codes(body, *headers, line="POST /api/recall HTTP/1.1", more=b""):
        text = "\r\n".join([line, *headers, *([] if more else ["Connection: close"]), "", body])
        with s.socket() as c:
            c.sendall(text.encode("latin-1") + more)
            c.settimeout(patient(5))
            got = b""
            with contextlib.suppress(socket.timeout, ConnectionError):
                while piece := c.recv(65536):
                    got += piece
        return [int(code) for code in re.findall(rb"HTTP/1\.1 (\d+) ", got)]

    pieces = f"8\r\n{good[:8]}\r\n{length - 8:x};note=x\r\n{good[8:]}\r\n0\r\nTrailer: x\r\n\r\n"
    check(codes(pieces, host, token, "Transfer-Encoding: chunked") == [200], "in pieces")
    check(codes(good, host, token, origin, f"Content-Length: {length}") == [200], "one of each")
    check(codes(good, host, token, "X: a\tb", f"Content-Length: {length}") == [200], "a tab in a value")
    smuggled = f"GET /health HTTP/1.1\r\n{host}\r\nConnection: close\r\n\r\n".encode()
    for name, body, headers in (("lengths", good, [f"Content-Length: {length}", "content-length: 5"]),
                                ("equal lengths", good, [f"Content-Length: {length}"] * 2),
                                ("a length and pieces", pieces, ["Content-Length: 5", "Transfer-Encoding: chunked"]),
                                ("hosts", good, ["HOST: evil.example", f"Content-Length: {length}"]),
                                ("tokens", good, ["Authorization: Bearer x", f"Content-Length: {length}"]),
                                ("origins", good, [origin, "Origin: http://evil.example", f"Content-Length: {length}"])):
        got = codes(body, host, token, *headers, more=smuggled)
        check(got == [400], "two", name, got)  # and nothing behind it is answered
    hidden = len(smuggled)  # what follows is a body to some, and the next request to others
    for name, *headers in (("a space before the colon", f"Content-Length : {hidden}"), ("a tab before it", f"Content-Length\t: {hidden}"),
                           ("a length on the next line", "Content-Length:", f" {hidden}"), ("pieces on the next line", "Transfer-Encoding:", "\tchunked"),
                           ("a line that goes on", "X: y", f" Content-Length: {hidden}"), ("a return in a value", f"X: y\rContent-Length: {hidden}"),
                           ("a letter in front", "Transfer-Encoding: \x0bchunked"), ("a byte that erases", "X: y\x7f"), ("a coding that is none", "Transfer-Encoding: xchunked"),
                           ("a space behind", "Transfer-Encoding: chunked ")):
        got = codes("", host, token, *headers, more=smuggled)
        check(got == [400], "a head with", name, got)
    for size in "zz", "-1", "ffffffffffffffffff", "":
        check(set(codes(f"{size}\r\n{good}\r\n0\r\n\r\n", host, token, "Transfer-Encoding: chunked")) <= {400, 413}, "the size of a piece", size)
    for coding in "gzip", "chunked, identity", "x" * 300:
        check(200 not in codes(good, host, token, f"Transfer-Encoding: {coding}", f"Content-Length: {length}"), "coding", coding)
    check(codes(good, host, token, f"Content-Length: {length}", more=smuggled) == [200, 200], "one after the other")
    check(codes("", host, *[f"X{k}: {'y' * 90}" for k in range(1000)], line="GET /health HTTP/1.1") == [431], "a large head")
    for line in "GET /health HTTP/2.0", "PRI * HTTP/2.0", "TRACE / HTTP/1.1", "CONNECT evil.example:443 HTTP/1.1", "\x16\x03\x01\x02\0\x01", "\0" * 500:
        check(200 not in codes("", host, token, line=line), "a request line", line[:40])
    s.alive("after what is no HTTP")


def a_line_ends_with_its_client(s):
    """One that has closed its side and waits for ours is not kept waiting, with or without a whole request."""
    for text in "GET /health HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", "POST /api/recall HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 9\r\n\r\n{":
        begun = time.monotonic()
        for _ in range(3):
            s.raw(text % s.port)
        check(time.monotonic() - begun < patient(12), "it was kept waiting", time.monotonic() - begun, text[:4])


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


def too_much_at_a_time():
    """Bodies that come slowly have four times the largest and 64 MB together; more are refused, until some have gone."""
    with server("--max-body", 1, "--max-requests", 100, "--metrics") as s:
        head = (f"POST /api/recall HTTP/1.1\r\nHost: 127.0.0.1:{s.port}\r\nAuthorization: Bearer {s.token}\r\n"
                f"Content-Length: {1 << 20}\r\n\r\n").encode()
        slow = [s.socket() for _ in range(80)]
        for c in slow:
            c.sendall(head + b" " * 600000)
        kept = lambda: gauge(s, "cgam_body_bytes")
        check(wait_until(lambda: 60 << 20 < kept() == (time.sleep(0.3) or kept())), "bytes of bodies, when no more come", kept())
        check(kept() <= 68 << 20, "bytes of bodies", kept())
        for c in slow:
            c.sendall(b" " * ((1 << 20) - 600000))
        got = [c.recv(4096) for c in slow]
        refused = sum(b" 429 " in x and b"too many large requests" in x for x in got)
        check(refused > 0 and refused + sum(b" 400 " in x for x in got) == 80, "answers", refused, [x[:12] for x in got])
        for c in slow:
            c.close()
        check(wait_until(lambda: post(s)[0] == 200 and kept() < 1 << 20), "room again", kept())


def a_client_may_take_its_time(s):
    """Half a request, and the rest when the server has looked whether its sender is still there."""
    with s.socket() as c:
        c.sendall(f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{s.port}\r\n".encode())
        time.sleep(1.6)
        c.sendall(b"\r\n")
        check(b" 200 " in c.recv(4096), "a slow client")


def slow_clients():
    with server("--timeout", 1) as s:
        slow = []
        for text in "", "POST /api", f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{s.port}\r\n", \
                f"POST /api/recall HTTP/1.1\r\nHost: 127.0.0.1:{s.port}\r\nAuthorization: Bearer {s.token}\r\n" \
                "Content-Length: 1000\r\n\r\n{":
            slow.append(s.socket())
            slow[-1].sendall(text.encode())
        start, ended = time.monotonic(), set()
        while len(ended) < len(slow) and time.monotonic() - start < patient(10):
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


def gauge(s, name):
    text = s.request("GET", "/metrics")[2].decode()
    return int(float(text.split(f"\n{name} ")[1].split()[0]))


def running(s):
    return gauge(s, "cgam_running")


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
        check(time.monotonic() - start < patient(5), "it took", time.monotonic() - start)
        check(wait_until(lambda: running(s) == 0, 5), "it still runs")
        code, _, data = s.request("POST", "/api/study/competition", LONG, s.headers(Accept="text/event-stream"))
        check(code == 200 and b"event: error" in data and b"0.5 seconds" in data, "events", code, data[-200:])
        check(post(s)[0] == 200, "after that")


def study_of(s, seconds, **options):
    """The first of ever longer studies that takes longer than that here, fast or slow as the machine may be: its trials, code, document."""
    trials, code, got = 100, 200, {"seconds": 0}
    while code == 200 and got["seconds"] <= seconds:
        trials *= 3
        code, got = post(s, json.dumps({"trials": trials, "seed": 1, **options}), "/api/study/competition")
    return trials, code, got


def a_study_has_a_time_of_its_own(where):
    with server("--timeout", 0.2, "--out-timeout", 60 * SLOW, "--root", f"{where}/below") as s:
        limits = json.loads(s.request("GET", "/api")[2])["limits"]
        check(limits["seconds"] == 0.2 and limits["out_seconds"] == 60 * SLOW, "limits", limits)
        trials, code, got = study_of(s, 0.2, out="long", figures="no", overwrite=True)
        check(code == 200 and got["out"] == "long" and got["seconds"] > 0.2, "a study was stopped by --timeout", trials, code, str(got)[:200])
    with server("--timeout", 60, "--out-timeout", 0.3, "--root", f"{where}/below") as s:
        body = json.dumps({**json.loads(LONG), "out": "cut", "figures": "no"})
        code, got = post(s, body, "/api/study/competition")
        check(code == 503 and got["error"] == "stopped after 0.3 seconds, as out-timeout says", "a study's time", code, got)
        code, _, data = s.request("POST", "/api/study/competition", body, s.headers(Accept="text/event-stream"))
        last = data.decode().strip().split("\n\n")[-1].split("\n")
        check(code == 200 and last[0] == "event: error" and len(last) == 2 and "0.3 seconds" in last[1], "said in the stream", last)
        left = os.listdir(f"{where}/below/cut") if os.path.isdir(f"{where}/below/cut") else []  # none: stopped before it began
        check(left in ([], [".competition.progress"]), "what it goes on from", left)


def too_many_verbs_are_told_so():
    with server("--max-requests", 1, "--timeout", patient(20), "--metrics") as s:
        c = s.connect()
        c.request("POST", "/api/study/competition", LONG, s.headers())
        check(wait_until(lambda: running(s) == 1), "the verb does not run")
        code, headers, data = s.request("POST", "/api/recall", RECALL)
        check(code == 429 and headers["Retry-After"] and json.loads(data)["status"] == 2, "too many", code, data)
        s.alive("while a verb runs")
        c.close()
        check(wait_until(lambda: post(s)[0] == 200), "room again")
        codes = [s.request("POST", "/api/recall", RECALL)[0] for _ in range(400)]
        check(codes == [200] * 400, "whoever has an answer may ask again", len([c for c in codes if c != 200]))


def an_end_waits_for_verbs():
    s = Server("--metrics")
    answers = []
    work = json.dumps({"trials": study_of(s, 0.5)[0], "seed": 2})
    t = threading.Thread(target=lambda: answers.append(post(s, work, "/api/study/competition")))
    t.start()
    check(wait_until(lambda: running(s) == 1), "the verb does not run")
    s.stop()
    t.join()
    check(answers and answers[0][0] in (200, 503), "an answer", answers and answers[0][0])
    # A busy machine does not do half a second's work in the time that an end waits for it.
    check(answers and (answers[0][0] == 200 or patient(1) >= 2), "the verb was not let end", answers)


def an_end_takes_nothing_more_on():
    """While it ends, newcomers are told so at once, and so is a request whose body comes too late."""
    s = Server()
    with s.socket() as late:
        late.sendall(f"POST /api/study/competition HTTP/1.1\r\nHost: 127.0.0.1:{s.port}\r\nAuthorization: Bearer {s.token}\r\n"
                     f"Content-Length: {len(LONG)}\r\n\r\n".encode())
        time.sleep(0.3)  # its head is read, and the end waits for it
        s.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        code, _, data = s.request("GET", "/health", headers={}, connection=s.connect(timeout=patient(3)))
        check(code == 503 and json.loads(data)["error"] == "the server is shutting down", "a newcomer", code, data)
        late.sendall(LONG.encode())
        check(b" 503 " in late.recv(65536), "a body that comes too late")
    check(s.process.wait(patient(30)) == 0 and s.process.stderr.read() == "", "exit", s.process.returncode)


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
    refuse(2, ["--token, --token-file or --no-token"], "serve", "--token", "x", "--no-token")
    refuse(2, ["nothing.npy"], "serve", "--bank", f"{where}/nothing.npy")
    refuse(2, ["duplicate id a"], "serve", "--bank", f"a={where}/Z.npy", "--bank", f"a={where}/Z.npy")
    for name, lines, words in ("few", "a\n", ["1 names", "3"]), ("Z", "a\nb\nc\n", []):
        with open(f"{where}/{name}.names", "w", encoding="ascii") as f:
            f.write(lines)
        if words:
            refuse(2, words, "serve", "--bank", f"{where}/Z.npy", "--names", f"Z={where}/{name}.names")
    refuse(2, ["no bank 'few'"], "serve", "--bank", f"{where}/Z.npy", "--names", f"{where}/few.names")
    refuse(2, ["already has names"], "serve", "--bank", f"{where}/Z.npy", *["--names", f"{where}/Z.names"] * 2)
    refuse(2, ["invalid id"], "serve", "--bank", f"a b={where}/Z.npy")
    refuse(2, ["letters"], "serve", "--token", "two words")
    refuse(2, ["x..y"], "serve", "--host", "x..y")
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
        the_page_is_kept_and_asked_for_again(main)
        path_tricks(main)
        malformed_http(main)
        a_line_ends_with_its_client(main)
        malformed_bodies(main)
        a_client_may_take_its_time(main)
        many_connections(main)
        a_client_that_leaves_stops_its_verb(main)
    oversize_bodies()
    too_much_at_a_time()
    slow_clients()
    a_verb_has_its_time()
    a_study_has_a_time_of_its_own(place)
    too_many_verbs_are_told_so()
    an_end_waits_for_verbs()
    an_end_takes_nothing_more_on()
    a_kill_leaves_nothing_behind()
    options(place)
finish()
