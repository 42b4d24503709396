"""The notebooks of examples/python run from top to bottom. What needs data that was not fetched is skipped."""
# ctest: timeout=300
import os
import pathlib
import sys

import pytest

from cgam import _core

pytest.importorskip("matplotlib")
FOLDER = pathlib.Path(os.environ["CGAM_SRC"]) / "examples" / "python"
sys.path.insert(0, str(FOLDER))
import gallery  # noqa: E402

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "cgam"
NEEDS = {"which_bank": ["glove.npy", "glove.names"],
         "digits": ["mnist.npy", "mnist.names", "mnist-train.npy", "mnist-train.names"]}


def test_every_notebook_has_its_page():
    pages = FOLDER.parent.parent / "docs" / "python" / "gallery"
    for notebook in FOLDER.glob("*.ipynb"):
        page = (pages / f"{notebook.stem}.md").read_text()
        for cell in gallery.json.loads(notebook.read_text())["cells"]:
            assert "".join(cell["source"]) in page, f"{notebook.name}: run examples/python/gallery.py --pages"


@pytest.mark.parametrize("name", ["which_bank", "digits", "hopfield_layers", "hamux"])
def test_notebook(name):
    if not all((CACHE / file).exists() for file in NEEDS.get(name, [])):
        pytest.skip(f"cgam data get {'glove' if name == 'which_bank' else 'mnist'} has not been run")
    gallery.run(FOLDER / f"{name}.ipynb")


def test_inside_a_model(tiny_model, monkeypatch):
    """On a tiny model and by the plain pass: quick, whatever else the machine does."""
    opened, observed, wrote = _core.model_open, _core.observe, _core.generate
    monkeypatch.setattr(_core, "model_open", lambda path, n: opened(str(tiny_model), n))
    monkeypatch.setattr(_core, "observe", lambda m, t, l, a, exact, e, o: observed(m, t, l, a, True, e, o))
    monkeypatch.setattr(_core, "generate", lambda m, t, options, s, e: wrote(m, t, dict(options, exact=True), s, e))
    gallery.run(FOLDER / "inside_model.ipynb")
