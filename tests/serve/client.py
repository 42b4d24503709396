"""What the tests of the server share: a server, a client that can also misbehave."""
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.environ["CGAM_SRC"], "tests", "system"))
from harness import CGAM, ask, check, finish, refuse, row, run  # noqa: E402,F401

SLOW = 10 if os.environ.get("CGAM_SANITIZE") else 1


def patient(seconds):
    """A limit of time for a machine with nothing else to do, as long again as all takes on this one: where 20 processes wait for 2
    processors, ten times."""
    return seconds * SLOW * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


class Server:
    def __init__(self, *words, **how):
        self.process = subprocess.Popen([CGAM, "serve", *map(str, words)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, **how)
        self.line = self.process.stdout.readline()
        m = re.fullmatch(r"http://(\[[^]]+\]|[^:/]+):(\d+)/(?:#token=(\S+))?\n", self.line)
        if not m:
            raise SystemExit(f"no address: {self.line!r} {self.process.stderr.read()}")
        self.host, self.port, self.token = m[1].strip("[]"), int(m[2]), m[3]

    def connect(self, timeout=None):
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout or patient(60))

    def socket(self):
        return socket.create_connection((self.host, self.port), timeout=patient(60))

    def headers(self, **more):
        own = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return {**own, **{k.replace("_", "-"): v for k, v in more.items()}}

    def request(self, method, path, body=None, headers=None, connection=None):
        """Code, headers, bytes."""
        c = connection or self.connect()
        c.request(method, path, body, self.headers() if headers is None else headers)
        r = c.getresponse()
        data = r.read()
        if not connection:
            c.close()
        return r.status, r.headers, data

    def verb(self, name, connection=None, **options):
        """Code and document of a verb; underscores stand for hyphens."""
        body = json.dumps({k.replace("_", "-"): v for k, v in options.items()})
        code, _, data = self.request("POST", "/api/" + name.replace(" ", "/"), body, connection=connection)
        return code, json.loads(data)

    def raw(self, text):
        """All that comes back for bytes sent as they are."""
        got = b""
        with self.socket() as s:
            with contextlib.suppress(OSError):
                s.sendall(text if isinstance(text, bytes) else text.encode())
                s.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionError):
                while piece := s.recv(65536):
                    got += piece
        return got

    def alive(self, *words):
        code, _, data = self.request("GET", "/health", headers={})
        check(code == 200 and json.loads(data)["status"] == "ok", "health", code, data, *words)

    def stop(self, by=signal.SIGTERM, status=0):
        """Ends it and looks at how it went; standard error."""
        self.process.send_signal(by)
        try:
            out, err = self.process.communicate(timeout=patient(30))
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate()
            check(False, "the server did not end", err)
        check(self.process.returncode == status, "exit", self.process.returncode, "want", status, err)
        check(out == "", "more than one line on standard output", out)
        return err


@contextlib.contextmanager
def server(*words, **how):
    s = Server(*words, **how)
    try:
        yield s
        if s.process.poll() is None:
            s.stop()
    finally:
        if s.process.poll() is None:
            s.process.kill()
            s.process.wait()


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory(prefix="cgam-serve-") as path:
        yield path


def resident(pid):
    """Bytes of memory that a process has."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def wait_until(what, seconds=20):
    end = time.monotonic() + patient(seconds)
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.02)
    return False
