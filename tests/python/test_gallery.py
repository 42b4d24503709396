"""The notebooks of examples/python run from top to bottom. What needs data that was not fetched is skipped."""
# ctest: labels=nightly timeout=300
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

from cgam import _core

pytest.importorskip("matplotlib")
FOLDER = pathlib.Path(os.environ["CGAM_SRC"]) / "examples" / "python"
sys.path.insert(0, str(FOLDER))
import gallery  # noqa: E402

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "cgam"
NEEDS = {"which_bank": ["glove.npy", "glove.names"],
         **dict.fromkeys(["digits", "learned_contexts"], ["mnist.npy", "mnist.names", "mnist-train.npy", "mnist-train.names"])}


def test_every_notebook_has_its_page():
    pages = FOLDER.parent.parent / "docs" / "python" / "gallery"
    for notebook in FOLDER.glob("*.ipynb"):
        page = (pages / f"{notebook.stem}.md").read_text()
        for cell in json.loads(notebook.read_text())["cells"]:
            assert "".join(cell["source"]) in page, f"{notebook.name}: run examples/python/gallery.py --pages"


def test_committed_numbers_are_what_their_generator_writes(tmp_path):
    script = tmp_path / "hamux_numbers.py"
    shutil.copy(FOLDER / script.name, script)
    subprocess.run([sys.executable, "-I", script], check=True)
    now, then = (json.loads((folder / "hamux_numbers.json").read_text()) for folder in (tmp_path, FOLDER))
    assert now.keys() == then.keys()
    for group in then:
        assert now[group].keys() == then[group].keys()
        for name, numbers in then[group].items():
            np.testing.assert_allclose(now[group][name], numbers, rtol=1e-6)


@pytest.mark.parametrize("name", ["which_bank", "digits", "learned_contexts", "hopfield_layers", "hamux"])
def test_notebook(name):
    if not all((CACHE / file).exists() for file in NEEDS.get(name, [])):
        pytest.skip(f"cgam data get {'glove' if name == 'which_bank' else 'mnist'} has not been run")
    gallery.run(FOLDER / f"{name}.ipynb")


def test_inside_a_model(tiny_model, monkeypatch):
    """On a tiny model and by the plain pass: quick, whatever else the machine does."""
    opened, observed, wrote = _core.model_open, _core.observe, _core.generate
    monkeypatch.setattr(_core, "model_open", lambda path, n: opened(str(tiny_model), n))
    monkeypatch.setattr(_core, "observe", lambda m, t, l, a, exact, *rest: observed(m, t, l, a, True, *rest))
    monkeypatch.setattr(_core, "generate", lambda m, t, options, s, e: wrote(m, t, dict(options, exact=True), s, e))
    gallery.run(FOLDER / "inside_model.ipynb")
