"""Runs the notebooks of this folder without Jupyter, and makes their pages.

    python3 examples/python/gallery.py NOTEBOOK.ipynb ...    run, say how long it took
    python3 examples/python/gallery.py --pages DIR [...]     and write a page with its pictures for each

A cell is executed as it stands; what it prints, the value of its last line and the figures it drew come out.
"""
import ast
import contextlib
import dataclasses
import io
import json
import os
import pathlib
import shutil
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass
class Cell:
    kind: str  # "markdown" or "code"
    source: str
    text: str = ""
    figures: list = dataclasses.field(default_factory=list)


def execute(source, name, space):
    """Runs a cell; the value of a last expression is shown by its repr."""
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), space)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), name, "eval"), space)
        if value is not None:
            print(repr(value))


def run(path, setup=None):
    """The cells of a notebook, executed in order in a space and a folder of their own."""
    import matplotlib
    matplotlib.use("Agg")
    raws = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["cells"]
    space = {"__name__": "__notebook__", **(setup or {})}
    home = os.getcwd()
    with tempfile.TemporaryDirectory() as scratch:
        for beside in HERE.glob("*.json"):
            shutil.copy(beside, scratch)
        os.chdir(scratch)
        try:
            return [run_cell(raw, f"{pathlib.Path(path).name}[{k}]", space) for k, raw in enumerate(raws)]
        finally:
            os.chdir(home)


def run_cell(raw, name, space):
    from matplotlib import pyplot
    cell = Cell(raw["cell_type"], "".join(raw["source"]))
    if cell.kind != "code":
        return cell
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        execute(cell.source, name, space)
    cell.text = printed.getvalue()
    for number in pyplot.get_fignums():
        picture = io.BytesIO()
        pyplot.figure(number).savefig(picture, format="png", dpi=80)
        cell.figures.append(picture.getvalue())
    pyplot.close("all")
    return cell


def write_page(path, cells, folder):
    """Markdown, code, what it printed and the figures, as one page."""
    name, pieces, count = pathlib.Path(path).stem, [], 0
    for cell in cells:
        if cell.kind == "markdown":
            pieces.append(cell.source)
            continue
        pieces.append(f"```python\n{cell.source}\n```")
        if cell.text:
            pieces.append("```text\n" + "\n".join(line.rstrip() for line in cell.text.rstrip().split("\n")) + "\n```")
        for figure in cell.figures:
            count += 1
            (folder / f"{name}_{count}.png").write_bytes(figure)
            pieces.append(f"![{name}, figure {count}]({name}_{count}.png)")
    pieces.append(f"Made from [`{name}.ipynb`](../../../examples/python/{name}.ipynb) by `examples/python/gallery.py`.")
    (folder / f"{name}.md").write_text("\n\n".join(pieces) + "\n", encoding="utf-8")


def main(words):
    folder = None
    if words[:1] == ["--pages"]:
        folder = pathlib.Path(words[1])
        folder.mkdir(parents=True, exist_ok=True)
        words = words[2:]
    for path in words or sorted(map(str, HERE.glob("*.ipynb"))):
        start = time.perf_counter()
        cells = run(path)
        if folder:
            write_page(path, cells, folder)
        print(f"{pathlib.Path(path).name}: {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
