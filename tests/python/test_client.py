"""cgam.Client: the verbs of a server, with the documents of the command line."""
import os
import subprocess

import numpy as np
import pytest

import cgam

PROGRAM = os.environ.get("CGAM", "")


@pytest.fixture
def address(tmp_path):
    if not os.path.exists(PROGRAM):
        pytest.skip("the program is not there")
    cache = tmp_path / "c.safetensors"
    server = subprocess.Popen([PROGRAM, "serve", "--cache", f"c={cache}"], stdout=subprocess.PIPE, text=True)
    yield server.stdout.readline().strip()
    server.terminate()
    assert server.wait(60) == 0


def test_a_recall_is_that_of_this_process(address):
    client = cgam.Client(address)
    Z, q = np.random.default_rng(4).standard_normal((30, 5)), np.ones(5)
    document = client.run("recall", bank=Z, query=q, beta=3.0, lam=0.5, max_iter=7, min_p=None)
    answer = cgam.Bank(Z).recall(q, beta=3.0, lam=0.5)
    assert document["queries"][0]["winner"] == answer.winner and document["queries"][0]["p"] == answer.p
    assert not document.negative and isinstance(document, cgam.Document)


def test_what_a_server_has(address):
    client = cgam.Client(address)
    assert client.banks() == ["demo"] and [c["id"] for c in client.about()["caches"]] == ["c"]
    assert client.health()["version"] == cgam.__version__
    assert "token" not in repr(client) and address.split("token=")[1] not in repr(client)


def test_a_cache_over_http(address):
    client = cgam.Client(address.split("#")[0], address.split("token=")[1])
    client.run("cache put", cache="c", key=np.array([1.0, 0, 0]), value="one", tenant="t")
    assert client.run("cache get", cache="c", key=[1, 0.1, 0], tenant="t")["value"] == "one"
    assert client.run("cache get", cache="c", key=[1, 0.1, 0])["hit"] is False
    assert client.run("cache calibrate", pairs={"text": '{"a": [1, 0], "b": [0, 1], "same": false}'}).negative


def test_errors_are_those_of_the_library(address):
    client = cgam.Client(address)
    with pytest.raises(cgam.MissingError, match="no 'x'"):
        client.run("recall", bank="x", query=[1.0])
    with pytest.raises(cgam.InputError, match="beta"):
        client.run("recall", bank="demo", query="rows:1", beta=-1)
    with pytest.raises(cgam.Error, match="token"):
        cgam.Client(address.split("#")[0], "wrong").run("version")
    with pytest.raises(ValueError, match="url"):
        cgam.Client("127.0.0.1:80")
    with pytest.raises(ValueError, match="finite"):
        client.run("recall", bank="demo", query="rows:1", beta=float("inf"))
    with pytest.raises(cgam.MachineError):
        cgam.Client("http://127.0.0.1:1", timeout=5).health()
