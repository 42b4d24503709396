"""A classifier: the bank is the training set, a context acts on the gates.

    clf = cgam.Classifier(beta=8.0).fit(X, y)
    clf.predict(X_new), clf.predict_proba(X_new, context=C)

It follows scikit-learn's interface (clone, pipelines, cross-validation); scikit-learn is optional."""
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

from ._arrays import Array, as_array, f64
from .bank import Bank
from .results import Recalls

if TYPE_CHECKING:
    class _Mixin:
        pass

    class _Base:
        def get_params(self, deep: bool = True) -> Dict[str, Any]: ...

        def set_params(self, **params: Any) -> "Classifier": ...

    _NotFitted = ValueError

    def _checked(X: Any) -> Any: ...

    def _checked_with_classes(X: Any, y: Any) -> Tuple[Any, Any]: ...
else:
    try:
        from sklearn.base import BaseEstimator as _Base
        from sklearn.base import ClassifierMixin as _Mixin
        from sklearn.exceptions import NotFittedError as _NotFitted
        from sklearn.utils.multiclass import check_classification_targets as _check_targets
        from sklearn.utils.validation import check_array as _checked
        from sklearn.utils.validation import check_X_y as _check_both

        def _checked_with_classes(X, y):
            X, y = _check_both(X, y, estimator="Classifier")
            _check_targets(y)
            return X, y
    except ImportError:
        _NotFitted = ValueError

        def _checked(X):
            return X

        def _checked_with_classes(X, y):
            return X, y

        class _Base:
            """get_params and set_params, as in scikit-learn."""

            _names = ("beta", "alpha", "lam", "mode", "normalize")

            def get_params(self, deep=True):
                return {name: getattr(self, name) for name in self._names}

            def set_params(self, **params):
                for name, value in params.items():
                    if name not in self._names:
                        raise ValueError(f"no parameter '{name}'")
                    setattr(self, name, value)
                return self

        class _Mixin:
            _estimator_type = "classifier"


def _is_bfloat16(X: Any) -> bool:
    """True if X is bfloat16, which scikit-learn does not support."""
    return str(getattr(X, "dtype", "")).endswith("bfloat16")


class Classifier(_Mixin, _Base):
    """The probability of a class is the sum of the probabilities of its memories.

    beta, alpha, lam, mode: of the recall; None = the library's defaults. normalize: divide memories by their norms."""

    def __init__(self, beta: Optional[float] = None, alpha: Optional[float] = None, lam: Optional[float] = None,
                 mode: Optional[str] = None, normalize: bool = False) -> None:
        self.beta = beta
        self.alpha = alpha
        self.lam = lam
        self.mode = mode
        self.normalize = normalize

    def fit(self, X: Any, y: Any) -> "Classifier":
        """Keeps X (n, d) as memories, without a copy if it is f16, f32 or f64."""
        if not _is_bfloat16(X):
            X, y = _checked_with_classes(X, y)
        rows, labels = as_array(X, "X"), as_array(y, "y")
        if rows.dtype.kind != "f" and not _is_bfloat16(rows):
            rows = f64(rows, "X")
        if rows.ndim != 2 or labels.shape != (rows.shape[0],):
            raise ValueError(f"X has shape {rows.shape} and y {labels.shape}, expected (n, d) and (n,)")
        if not rows.flags.c_contiguous:
            rows = np.ascontiguousarray(rows)
        self.classes_, self._class = np.unique(labels, return_inverse=True)
        self._rows = rows
        self._open()
        self.n_features_in_ = rows.shape[1]
        return self

    def _open(self) -> None:
        self.bank_ = Bank(self._rows, normalize=self.normalize)

    def __getstate__(self) -> Dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "bank_"}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_rows" in state:
            self._open()

    def predict_proba(self, X: Any, context: Any = None) -> Array:
        """(n, classes). context: (d,) for all, or (n, d)."""
        if not hasattr(self, "bank_"):
            raise _NotFitted("this Classifier is not fitted yet")
        q = f64(X if _is_bfloat16(X) else _checked(X), "X")
        if q.ndim != 2:
            raise ValueError(f"X: shape {q.shape}, expected (n, {self.bank_.d})")
        plan = self.bank_.plan(self.mode, alpha=self.alpha, beta=self.beta, lam=self.lam, top=0)
        out = np.zeros((len(q), len(self.classes_)))
        step = max(1, 2**24 // self.bank_.n)  # queries whose p is kept at once
        c = None if context is None else f64(context, "context")
        if c is not None and c.shape not in ((self.bank_.d,), q.shape):
            raise ValueError(f"context: shape {c.shape}, expected ({self.bank_.d},) or {q.shape}")
        for at in range(0, len(q), step):
            part = slice(at, at + step)
            own = c[part] if c is not None and c.ndim == 2 else c
            found = plan.recall(q[part], own, vectors=True)
            assert isinstance(found, Recalls) and found.p_all is not None
            for k in range(len(self.classes_)):
                out[part, k] = found.p_all[:, self._class == k].sum(1)
        return out

    def predict(self, X: Any, context: Any = None) -> NDArray[Any]:
        """The most probable class, (n,)."""
        best = self.predict_proba(X, context).argmax(1)
        labels: NDArray[Any] = self.classes_[best]
        return labels
