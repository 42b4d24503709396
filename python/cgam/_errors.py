"""Exceptions for failures of the library: cgam.Error, also derived from Python's own exception if there is one."""
from typing import NoReturn


class Error(Exception):
    """A call could not be carried out. `status` is the library's name of the reason, "CGAM_E_SHAPE"."""

    status: str = ""


class InputError(Error, ValueError):
    """An argument, a shape or a value is wrong, or a file is not what it claims to be."""


class MissingError(Error, FileNotFoundError):
    """There is no such file, member or library."""


class MachineError(Error, OSError):
    """The machine could not read or write."""


_CLASSES: dict[str, type[BaseException]] = {
    "CGAM_E_ARG": InputError,
    "CGAM_E_SHAPE": InputError,
    "CGAM_E_VALUE": InputError,
    "CGAM_E_FORMAT": InputError,
    "CGAM_E_UNSUPPORTED": InputError,
    "CGAM_E_NOT_POSITIVE": InputError,
    "CGAM_E_NOT_FOUND": MissingError,
    "CGAM_E_IO": MachineError,
    "CGAM_E_NOMEM": MemoryError,
}


def raise_status(status: str, message: str) -> NoReturn:
    """Called by the extension after a failure."""
    error = _CLASSES.get(status, Error)(message)
    if isinstance(error, Error):
        error.status = status
    try:
        raise error
    finally:
        del error  # breaks the cycle of traceback and frame, which would keep the caller's arrays until a collection
