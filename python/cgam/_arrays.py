"""Input arrays: used as they are, converted or rejected."""
from typing import Any, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

F64 = np.dtype(np.float64)
I64 = np.dtype(np.int64)
_STORED = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16"}
_NAMES = ("f64", "f32", "f16", "bf16")


def as_array(x: Any, name: str) -> NDArray[Any]:
    """Returns x as an ndarray, without a copy if x can share its memory."""
    if isinstance(x, np.ndarray):
        if isinstance(x, np.ma.MaskedArray) and np.any(x.mask):
            raise ValueError(f"{name}: the array has masked numbers; replace them with .filled(value)")
        return x
    try:
        if hasattr(x, "__array_interface__") or not hasattr(x, "__dlpack__"):
            return np.asarray(x)
        return np.from_dlpack(x)
    except (TypeError, ValueError, BufferError, RuntimeError) as error:
        raise ValueError(f"{name}: cannot convert {type(x).__name__} to an array: {error}") from None


def f64(x: Any, name: str) -> Array:
    """x as contiguous doubles; other real numbers are widened by value."""
    if type(x) is np.ndarray and x.dtype is F64 and (flags := x.flags).c_contiguous and flags.aligned:
        return x
    a = as_array(x, name)
    if a.dtype.kind not in "fiu" and a.dtype.name != "bfloat16":
        raise ValueError(f"{name}: dtype {a.dtype} is not a real number")
    if a.dtype.itemsize > 8:
        raise ValueError(f"{name}: dtype {a.dtype} does not fit into f64")
    if a.dtype.kind in "iu" and a.dtype.itemsize == 8 and a.size and max(int(a.max()), -int(a.min())) > 2**53:
        raise ValueError(f"{name}: an integer is beyond 2^53, which f64 does not hold exactly")
    wide = np.ascontiguousarray(a, dtype=F64) if a.ndim else a.astype(F64)
    return wide if wide.flags.aligned else wide.copy()


def f32(x: Any, name: str) -> NDArray[np.float32]:
    """x rounded to contiguous singles."""
    with np.errstate(over="ignore"):
        a = f64(x, name).astype(np.float32)
    if not np.isfinite(a).all():
        raise ValueError(f"{name}: a number is not finite in f32")
    return a


def vector(x: Any, name: str, size: Optional[int] = None) -> Array:
    a = f64(x, name)
    if a.ndim != 1:
        raise ValueError(f"{name}: shape {a.shape}, expected one axis")
    if size is not None and a.size != size:
        raise ValueError(f"{name}: {a.size} numbers, expected {size}")
    return a


def indices(x: Any, count: int) -> Any:
    """Targets: an index for all, or one for each query."""
    a = as_array(x, "target")
    if a.dtype.kind not in "iu":
        raise ValueError(f"target: dtype {a.dtype}, expected integers")
    if a.ndim == 0:
        a = np.full(count, a)
    if a.shape != (count,):
        raise ValueError(f"target: shape {a.shape}, expected ({count},)")
    return np.require(a, I64, ["C", "A"])


def stored(x: Any, name: str, dtype: Optional[str], copy: bool) -> Tuple[NDArray[Any], str]:
    """Returns rows (N, d) and the library's name of their type. Converts nothing; copy=True copies to C order."""
    a = as_array(x, name)
    if a.ndim != 2:
        raise ValueError(f"{name}: shape {a.shape}, expected two axes (N, d)")
    if not a.dtype.isnative:
        raise ValueError(f"{name}: dtype {a.dtype} is not in this machine's byte order; convert it with .astype(...)")
    kind = _STORED.get(a.dtype.name)
    if dtype is not None:
        if not isinstance(dtype, str) or dtype not in _NAMES:
            raise ValueError(f"{name}: invalid dtype '{dtype}' (valid: {', '.join(_NAMES)})")
        if dtype == "bf16" and a.dtype == np.uint16:
            kind = "bf16"
        elif kind != dtype:
            raise ValueError(f"{name}: the array is {a.dtype}, not {dtype}")
    if kind is None:
        hint = "; bfloat16 kept as uint16 needs dtype='bf16'" if a.dtype == np.uint16 else ""
        raise ValueError(f"{name}: unsupported dtype {a.dtype} (supported: float64, float32, float16, bfloat16){hint}")
    if kind == "bf16":
        a = a.view(np.uint16)
    if copy:
        a = np.array(a, order="C", copy=True)
    return a, kind
