"""The package's types hold, and so do those of a program that uses it."""
import os
import pathlib
import subprocess
import sys

import pytest

import cgam

USER = '''
import numpy as np
import cgam

bank = cgam.Bank(np.eye(3))
plan: cgam.Plan = bank.plan("coupled", alpha=0.1, beta=2.0)
answer = plan.recall(np.ones(3))
if isinstance(answer, cgam.Recall):
    winner: int = answer.winner
    unique: bool | None = answer.unique
else:
    winners = answer.winner.tolist()
regime: str = bank.inspect(0.1).regime
net = cgam.Net({"x": cgam.Layer(3)}, {"b": cgam.net.Bias("x", [1.0, 2.0, 3.0])})
document: cgam.Document = cgam.run("version")
gradient: cgam.Gradient = plan.grad(np.ones(3), target=0, wrt=("q", "beta"))
'''


def mypy(*words, cwd):
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--cache-dir=/dev/null", *words]
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment)


def test_types(tmp_path):
    pytest.importorskip("mypy")
    site = pathlib.Path(cgam.__file__).parent.parent
    assert (site / "cgam" / "py.typed").exists()
    (tmp_path / "user.py").write_text(USER)
    (tmp_path / "wrong.py").write_text("import cgam\ncgam.Bank(1).inspect('x').regime + 1\n")
    (tmp_path / "mypy.ini").write_text("[mypy]\n[mypy-matplotlib.*,sklearn.*]\nignore_missing_imports = True\n"
                                     "[mypy-torch.*]\nfollow_imports = skip\n")
    ini = ("--config-file", str(tmp_path / "mypy.ini"))
    done = mypy("--strict", *ini, "cgam", str(tmp_path / "user.py"), str(tmp_path / "wrong.py"), cwd=site)
    errors = [line for line in done.stdout.splitlines() if " error: " in line]
    assert len(errors) == 2 and all("wrong.py:2" in line for line in errors), done.stdout
