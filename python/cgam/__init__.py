"""cgam: context-gated associative memory.

A bank of memories is searched by a query while a *context* decides which memories may win.

    >>> import numpy as np, cgam
    >>> bank = cgam.Bank(np.eye(4))
    >>> bank.recall([1.0, 0.9, 0, 0], context=[0, 1.0, 0, 0], beta=4.0).winner
    1

Arrays are used without copies if layout and dtype allow. The interpreter's lock is released while the C
library works; Ctrl-C stops it. Every result says which of its bounds are proved.
"""
import os as _os
import threading as _threading
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

import numpy as _numpy  # before the library: both then share one BLAS, and NumPy keeps its threads

from . import _core
from ._errors import Error, InputError, MachineError, MissingError, raise_status as _raise_status

_core.set_up(_raise_status, _threading.main_thread().ident)
_os.register_at_fork(after_in_child=_core.forked)

from . import lm, net, theory  # noqa: E402
from .bank import Bank, Plan  # noqa: E402
from .client import Client  # noqa: E402
from .gate import Gate, GateInfo, Spectrum, SpectrumInfo  # noqa: E402
from .learn import Fitted, Gradient, fit  # noqa: E402
from .net import Flow, Layer, Net  # noqa: E402
from .results import Branch, Inspection, Landscape, Recall, Recalls, fields  # noqa: E402
from .verbs import Document, run, study, verbs  # noqa: E402

if _TYPE_CHECKING:
    from .classifier import Classifier


def __getattr__(name: str) -> _Any:
    # Imported on first use: it imports scikit-learn, which takes a second.
    if name == "Classifier":
        from .classifier import Classifier as found

        return found
    if name == "torch":  # imports PyTorch
        import importlib

        return importlib.import_module(".torch", __name__)
    raise AttributeError(f"module 'cgam' has no attribute '{name}'")


__version__ = _core.version()
__all__ = [
    "Bank", "Branch", "Classifier", "Client", "Document", "Error", "Fitted", "Flow", "Gate", "GateInfo", "Gradient", "InputError", "Inspection", "Landscape", "Layer",
    "MachineError", "MissingError", "Net", "Plan", "Recall", "Recalls", "Spectrum", "SpectrumInfo", "fields", "fit", "lm", "net",
    "run", "study", "theory", "verbs",
]
