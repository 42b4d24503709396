"""A classifier after scikit-learn's fashion: the bank is the training set, a context leans on the gates.

    clf = cgam.Classifier(beta=8.0).fit(X, y)
    clf.predict(X_new), clf.predict_proba(X_new, context=C)

scikit-learn is used where it is present (clone, pipelines, cross-validation); it is not needed."""
from typing import TYPE_CHECKING, Any, Dict, Optional

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
else:
    try:
        from sklearn.base import BaseEstimator as _Base
        from sklearn.base import ClassifierMixin as _Mixin
    except ImportError:
        class _Base:
            """get_params and set_params, as scikit-learn has them."""

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


class Classifier(_Mixin, _Base):
    """The probability of a class is the sum of those of its memories.

    beta, alpha, lam, mode: of the recall; None = the library's defaults. normalize: memories by their norm."""

    def __init__(self, beta: Optional[float] = None, alpha: Optional[float] = None, lam: Optional[float] = None,
                 mode: Optional[str] = None, normalize: bool = False) -> None:
        self.beta = beta
        self.alpha = alpha
        self.lam = lam
        self.mode = mode
        self.normalize = normalize

    def fit(self, X: Any, y: Any) -> "Classifier":
        """Keeps X (n, d) as memories, without a copy where it is f16, f32 or f64."""
        rows, labels = as_array(X, "X"), as_array(y, "y")
        if rows.dtype.kind != "f":
            rows = f64(rows, "X")
        if rows.ndim != 2 or labels.shape != (rows.shape[0],):
            raise ValueError(f"X {rows.shape} and y {labels.shape}: (n, d) and (n,) are expected")
        if not rows.flags.c_contiguous:
            rows = np.ascontiguousarray(rows)
        self.classes_, self._class = np.unique(labels, return_inverse=True)
        self.bank_ = Bank(rows, normalize=self.normalize)
        self.n_features_in_ = rows.shape[1]
        return self

    def predict_proba(self, X: Any, context: Any = None) -> Array:
        """(n, classes). context: (d,) for all, or (n, d)."""
        if not hasattr(self, "bank_"):
            raise ValueError("this Classifier is not fitted yet")
        q = f64(X, "X")
        if q.ndim != 2:
            raise ValueError(f"X: shape {q.shape}, (n, {self.bank_.d}) is expected")
        plan = self.bank_.plan(self.mode, alpha=self.alpha, beta=self.beta, lam=self.lam, top=0)
        out = np.zeros((len(q), len(self.classes_)))
        step = max(1, 2**24 // self.bank_.n)  # p of so many queries is kept at once
        c = None if context is None else f64(context, "context")
        if c is not None and c.shape not in ((self.bank_.d,), q.shape):
            raise ValueError(f"context: shape {c.shape}, ({self.bank_.d},) or {q.shape} is expected")
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
