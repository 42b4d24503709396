"""A client of `cgam serve`: the verbs of a server as calls, with the documents that cgam.run returns."""
import base64
import http.client
import io
import json
import ssl
import urllib.parse
from typing import Any, List, NoReturn, Optional

import numpy as np

from ._errors import Error, InputError, MachineError, MissingError
from .verbs import Document, _option, _plain


class Client:
    """Asks a server.

    url      as `cgam serve` prints it, "http://127.0.0.1:8080/#token=.."
    token    the token, if the URL has none
    timeout  seconds to wait for an answer

    >>> client = cgam.Client("http://127.0.0.1:8080", token)
    >>> client.run("recall", bank="glove", query=q, beta=10)["queries"][0]["winner"]
    """

    def __init__(self, url: str, token: Optional[str] = None, timeout: float = 300.0) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url: expected http://HOST:PORT, got {parts.scheme}://{parts.netloc}")
        self._host, self._port, self._secure = parts.hostname, parts.port, parts.scheme == "https"
        self._path = parts.path.rstrip("/")
        self._token = token or "".join(urllib.parse.parse_qs(parts.fragment).get("token", []))
        self.timeout = timeout

    def __repr__(self) -> str:
        return f"cgam.Client({'https' if self._secure else 'http'}://{self._host}:{self._port})"

    def run(self, verb: str, **options: Any) -> Document:
        """Runs a verb ("recall", "cache get") on the server and returns its document.

        Options are as in cgam.run. Banks, stores, models and caches are ids (see `about`); arrays are sent with
        the request, in place of a file; give a list where an option takes several values."""
        given = {_option(name): _sent(value, name) for name, value in options.items() if value is not None}
        body = json.dumps(given, allow_nan=False)
        document, negative = self._ask("POST", "/api/" + urllib.parse.quote(verb.replace(" ", "/")), body)
        answer = Document(document)
        answer.negative = negative
        return answer

    def about(self) -> "dict[str, Any]":
        """What the server has: `banks`, `stores`, `models`, `caches`, `limits`."""
        return self._ask("GET", "/api/here")[0]

    def health(self) -> "dict[str, Any]":
        """{"status": "ok", "version": ..}; needs no token."""
        return self._ask("GET", "/health")[0]

    def banks(self) -> List[str]:
        """The ids of the server's banks."""
        return [bank["id"] for bank in self.about()["banks"]]

    def _ask(self, method: str, path: str, body: Optional[str] = None) -> "tuple[dict[str, Any], bool]":
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        connection = (http.client.HTTPSConnection(self._host, self._port, timeout=self.timeout, context=ssl.create_default_context())
                      if self._secure else http.client.HTTPConnection(self._host, self._port, timeout=self.timeout))
        try:
            connection.request(method, self._path + path, body, headers)
            answer = connection.getresponse()
            code, text, negative = answer.status, answer.read(), answer.getheader("Cgam-Status") == "1"
        except (OSError, http.client.HTTPException) as error:
            raise MachineError(f"{self._host}:{self._port}: {error or type(error).__name__}") from error
        finally:
            connection.close()
        try:
            document = json.loads(text)
        except ValueError:
            document = {}
        if code != 200 or not isinstance(document, dict):
            _raise(code, document.get("error") if isinstance(document, dict) else None)
        return document, negative


def _raise(code: int, message: Optional[str]) -> NoReturn:
    kind = MissingError if code == 404 else InputError if 400 <= code < 500 and code not in (401, 403, 429) else \
        MachineError if code >= 500 else Error
    raise kind(message or f"the server answered {code}")


def _sent(value: Any, name: str) -> Any:
    """Arrays travel as .npy in base64, so every bit arrives."""
    if isinstance(value, np.ndarray) and value.ndim > 0:
        file = io.BytesIO()
        np.save(file, value, allow_pickle=False)
        return {"npy": base64.b64encode(file.getvalue()).decode("ascii")}
    if isinstance(value, dict):
        return value
    return _plain(value, name)
