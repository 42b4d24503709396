"""Every verb of the program as a function: `cgam.run("lm sweep", dataset="sst2")`.

Names, defaults and checks come from the table of the command line."""
import functools
import json
import os
from typing import Any, Dict, List

import numpy as np

from . import _core


class Document(Dict[str, Any]):
    """A verb's JSON document; `negative`: completed with a negative answer (exit status 1 of the program)."""

    negative: bool = False

    def table(self, name: str) -> Dict[str, "np.ndarray[Any, Any]"]:
        """A table of a study that was run with tables="yes": each column as an array, a missing number as NaN.

        cgam.study("sparse", trials=100, tables="yes", files="no").table("cells")["support"]"""
        tables = self.get("table") or {}
        if name not in tables:
            known = ", ".join(tables) or 'none: give tables="yes"'
            raise KeyError(f"no table {name!r}; there are {known}")
        return {column: np.array([np.nan if cell is None else cell for cell in cells])
                for column, cells in tables[name].items()}


def run(verb: str, *arguments: Any, progress: bool = False, **options: Any) -> Document:
    """Runs a verb ("recall", "lm sweep") and returns its document.

    arguments  positional arguments, as on the command line
    options    as on the command line, with _ for - ("max_iter"); lam is --lambda; flags are True or False;
               lists if an option takes several values; None = not given
    progress   show progress on standard error
    """
    given = {_option(name): _plain(value, name) for name, value in options.items()}
    for name, value in zip(_positional(verb, len(arguments)) if arguments else (), arguments):
        given.setdefault(name, []).append(_plain(value, name))
    for name, value in given.items():
        if name.isupper() and isinstance(value, list) and len(value) == 1:
            given[name] = value[0]
    threads = given.get("threads")
    count = threads if isinstance(threads, int) and 0 < threads <= _core.THREADS_MAX else 0
    text, negative = _core.run(verb, json.dumps(given, allow_nan=False), count, progress)
    document = Document(json.loads(text))
    document.negative = negative
    return document


def study(kind: str, **options: Any) -> Document:
    """A study by its name: `cgam.study("coupled", trials=100)`; see `cgam help study`."""
    return run(f"study {kind}", **options)


@functools.lru_cache(maxsize=None)
def _table() -> Dict[str, Dict[str, Any]]:
    document = json.loads(_core.run("help", "{}", 0, False)[0])
    return {about["name"]: about for about in document["verbs"]}


def verbs() -> List[str]:
    """The names of all verbs."""
    return list(_table())


@functools.lru_cache(maxsize=None)
def default(verb: str, name: str) -> Any:
    """The default of an option, from the table."""
    for param in _table()[verb]["parameters"]:
        if param["name"] == name:
            return param["default"]
    raise KeyError(name)


def _positional(verb: str, count: int) -> List[str]:
    params = [p for p in _table().get(verb, {}).get("parameters", []) if p["positional"]]
    names = [p["name"] for p in params]
    if params and params[-1].get("many"):
        names += [names[-1]] * count
    if len(names) < count:
        raise TypeError(f"{verb} takes {len(names)} positional arguments, got {count}")
    return names[:count]


def _option(name: str) -> str:
    return "lambda" if name in ("lam", "lambda_") else name if name.isupper() else name.replace("_", "-")


def _plain(value: Any, name: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (np.ndarray, tuple, list)):
        return [_plain(item, name) for item in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, float) and not np.isfinite(value):
        raise ValueError(f"{name}: {value} is not a finite number")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{name}: expected a number, text, path or list of these, not {type(value).__name__}")


