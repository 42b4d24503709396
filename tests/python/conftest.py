"""What the tests of the Python package share. CGAM is the program, CGAM_SRC the tree."""
import json
import os
import pathlib
import subprocess

import numpy as np
import pytest

import cgam

PROGRAM = os.environ.get("CGAM", "")
CHECKED = os.environ.get("CGAM_SANITIZE", "") != ""  # many times slower


@pytest.fixture
def rng():
    return np.random.default_rng(20261116)


@pytest.fixture
def program():
    """Runs the program with --json: (document, exit status)."""
    if not os.path.exists(PROGRAM):
        pytest.skip("the program is not there")

    def run(*words):
        done = subprocess.run([PROGRAM, *map(str, words), "--json"], capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stderr
        return json.loads(done.stdout), done.returncode

    return run


@pytest.fixture
def bank(rng):
    Z = rng.standard_normal((50, 10))
    return cgam.Bank(Z / np.linalg.norm(Z, axis=1, keepdims=True))


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory):
    """A small Llama model with random weights, as a GGUF file; skips where libllama is not at hand."""
    writer = pathlib.Path(os.environ.get("CGAM_BUILD", "")) / "tests" / "python" / "tiny_model"
    if not writer.exists():
        pytest.skip("tests/python/tiny_model is not built")
    file = tmp_path_factory.mktemp("lm") / "tiny.gguf"
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    subprocess.run([writer, file], check=True, env=environment)
    try:
        cgam.lm.Model(file)
    except cgam.Error as error:
        pytest.skip(f"no libllama: {error}")
    return file
