"""Every example in docs/python runs, page by page, top to bottom; the default model is a tiny one."""
import os
import pathlib
import re

import pytest

from cgam import _core

PAGES = sorted((pathlib.Path(os.environ["CGAM_SRC"]) / "docs" / "python").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_of(page, tmp_path, monkeypatch, request):
    if "import torch" in page.read_text():
        pytest.importorskip("torch", reason="PyTorch is not installed")
    if "cgam.lm.Model()" in page.read_text():
        tiny = request.getfixturevalue("tiny_model")
        opened = _core.model_open
        monkeypatch.setattr(_core, "model_open", lambda path, n: opened(str(tiny) if path is None else path, n))
    monkeypatch.chdir(tmp_path)
    pieces = list(re.finditer(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S))
    assert pieces
    space = {"__name__": "page"}
    for piece in pieces:
        line = page.read_text()[: piece.start(1)].count("\n")
        exec(compile("\n" * line + piece.group(1), str(page), "exec"), space)
