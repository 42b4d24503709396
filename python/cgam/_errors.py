"""What a failure of the library becomes: cgam.Error, and Python's own word for it where there is one."""
from typing import NoReturn


class Error(Exception):
    """A call could not be carried out. `status` is the library's name for why, "CGAM_E_SHAPE"."""

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
        del error  # or the traceback would hold this frame, and this frame it: arrays of the caller live until they are collected
